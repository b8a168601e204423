"""Commands in a sandbox: section K, over the client protocol."""

import os
import signal
import subprocess
import time

import pytest

import instance


@pytest.mark.parametrize("line,status", [
    ("exit 0", 0), ("exit 7", 7), ("exit 255", 255),
    ("kill -KILL $$", 137), ("kill -TERM $$", 143)])
def test_the_status_is_the_commands_own(session, line, status):
    assert session().sh(line)[0] == status


def test_what_is_not_found_or_not_executable(session):
    s = session()
    assert s.run("no-such-program")[0] == 127
    s.ok("echo x > plain")
    assert s.run("./plain")[0] == 126
    assert s.run("/usr")[0] == 126


def test_shell_and_argv_are_exclusive(session):
    s = session()
    for params in ({}, {"argv": ["true"], "shell": "true"}, {"argv": []}):
        with pytest.raises(instance.RpcError) as error:
            s.client.call("sandbox.exec", sessionId=s.name, **params)
        assert error.value.name == "badParams"
    with pytest.raises(instance.RpcError) as error:
        s.client.call("sandbox.exec", sessionId="nobody-has-this",
                      argv=["true"])
    assert error.value.name == "notFound"


def test_events_have_no_gaps(service, client):
    client.call("events.subscribe")
    client.launch("gaps", service.workdir())
    exec_id = client.call("sandbox.exec", sessionId="gaps",
                          argv=["echo", "x"])["execId"]
    seen = []
    while True:
        event = client.event(lambda e: e["sessionId"] == "gaps")
        seen.append(event)
        if event["type"] == "exit":
            break
    client.call("sandbox.destroy", sessionId="gaps")
    while seen[-1].get("state") != "destroyed":
        seen.append(client.event(lambda e: e["sessionId"] == "gaps"))
    assert [e["seq"] for e in seen] == list(range(1, len(seen) + 1))
    types = [e["type"] for e in seen]
    assert types[0] == "starting"
    assert types.count("ready") == types.count("exit") == 1
    assert types.index("ready") < types.index("stdout") < types.index("exit")
    assert all(e.get("execId") == exec_id for e in seen
               if e["type"] in ("stdout", "exit"))


def test_standard_input_is_settled(session):
    s = session()
    assert s.run("cat")[:2] == (0, b"")
    assert s.run("cat", stdin=b"data")[:2] == (0, b"data")


def test_streamed_input(session):
    s = session()
    s.client.call("events.subscribe", sessionId=s.name)
    exec_id = s.client.call("sandbox.exec", sessionId=s.name, argv=["cat"],
                            stdin=True)["execId"]
    for part in (b"one ", b"two"):
        s.client.call("sandbox.stdin", sessionId=s.name, execId=exec_id,
                      data=part)
    s.client.call("sandbox.stdin", sessionId=s.name, execId=exec_id, eof=True)
    assert s.client.collect(exec_id)[:2] == (0, b"one two")


def test_much_output_is_complete_and_in_order(session):
    s = session()
    status, out, _ = s.run("seq", "1", "400000", timeout=120)
    assert status == 0
    assert out == b"".join(b"%d\n" % i for i in range(1, 400001))


def test_undecodable_bytes_pass(session):
    s = session()
    assert s.run("/usr/bin/printf", "\\377\\0\\200x")[1] == b"\xff\0\x80x"


def test_a_time_out_is_reported(session):
    s = session()
    s.client.call("events.subscribe", sessionId=s.name)
    start = time.monotonic()
    exec_id = s.client.call(
        "sandbox.exec", sessionId=s.name, timeoutMs=1000,
        argv=["/bin/sh", "-c", "sleep 60 & sleep 60"])["execId"]
    events = []
    while not events or events[-1]["type"] != "exit":
        events.append(s.client.event(
            lambda e: e.get("execId") == exec_id))
    assert events[-1]["exitCode"] == 124
    assert time.monotonic() - start < 10
    assert any(e["type"] == "stderr" and
               b"command exceeded 1s" in e["data"] for e in events)
    kinds = [e["type"] for e in events]
    assert kinds.index("killed") < kinds.index("exit")
    assert [e for e in events if e["type"] == "killed"][0]["cause"] == \
        "timeout"
    # Both are gone: this shell, ls and init are left.
    # (Events of this session are subscribed twice here, so no `run`.)
    assert int(s.ok("ls -d /proc/[0-9]* | wc -l").split()[0]) <= 5


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "KILL",
                                  "USR1", "USR2"])
def test_signals_reach_the_process_group(session, name):
    s = session()
    s.client.call("events.subscribe", sessionId=s.name)
    exec_id = s.client.call("sandbox.exec", sessionId=s.name, argv=[
        "/bin/sh", "-c", "echo up; sleep 60; true"])["execId"]
    s.client.event(lambda e: e["type"] == "stdout")
    s.client.call("sandbox.signal", sessionId=s.name, execId=exec_id,
                  signal=name)
    number = getattr(signal, "SIG" + name)
    assert s.client.collect(exec_id)[0] == 128 + number


def test_a_signal_that_is_not_listed_is_refused(session):
    s = session()
    exec_id = s.client.call("sandbox.exec", sessionId=s.name,
                            argv=["sleep", "60"])["execId"]
    for name in ("SEGV", "9", "RTMIN", "", "TERM "):
        with pytest.raises(instance.RpcError) as error:
            s.client.call("sandbox.signal", sessionId=s.name, execId=exec_id,
                          signal=name)
        assert error.value.name == "badParams"


def test_a_terminal_is_the_commands_own(session):
    s = session()
    s.client.call("events.subscribe", sessionId=s.name)
    exec_id = s.client.call(
        "sandbox.exec", sessionId=s.name, tty=True, rows=33, cols=99,
        argv=["/bin/sh", "-c", "tty; stty size; ps -o pid= -p $$ "
              ">/dev/null 2>&1; test -t 0 && test -t 1 && test -t 2 && "
              "echo all; : </dev/tty && echo controls"])["execId"]
    status, out, _ = s.client.collect(exec_id)
    assert status == 0
    words = out.split()
    assert words[0].startswith(b"/dev/pts/")
    assert words[1:] == [b"33", b"99", b"all", b"controls"]


def test_the_working_directory_lies_in_a_mount(session):
    s = session()
    s.ok("mkdir sub")
    sub = os.path.join(s.workdir, "sub")
    assert s.run("pwd", cwd=sub)[1].decode().strip() == sub
    for cwd in ("/etc", "/", s.workdir + "/..", "relative", "/root"):
        with pytest.raises(instance.RpcError) as error:
            s.run("pwd", cwd=cwd)
        assert error.value.name in ("badParams", "badPath"), cwd


def test_a_missing_directory_is_an_error(session):
    s = session()
    status_or_error = None
    try:
        status_or_error = s.run("pwd", cwd=s.workdir + "/missing")[0]
    except instance.RpcError as error:
        status_or_error = error.name
    assert status_or_error in ("badPath", "hostError", "badParams")


def test_children_end_with_the_session(session, service):
    s = session()
    s.ok("(setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 &) ; "
         "sleep 0.2")
    before = len(instance.all_pids_below(
        service.children()["stockade-launcherd"]))
    s.destroy()
    after = len(instance.all_pids_below(
        service.children()["stockade-launcherd"]))
    assert before >= 4 and after <= before - 4


def cpu_ticks(pids):
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid, encoding="ascii") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return total


def test_a_suspended_run_uses_no_processor(session, service):
    s = session()
    s.client.call("sandbox.exec", sessionId=s.name, argv=[
        "/bin/sh", "-c", "while :; do :; done"])
    pids = instance.all_pids_below(service.children()["stockade-launcherd"])
    start = cpu_ticks(pids)
    time.sleep(0.5)
    assert cpu_ticks(pids) > start      # it does run
    assert s.client.call("sandbox.suspend", sessionId=s.name)["state"] == \
        "suspended"
    start = cpu_ticks(pids)
    time.sleep(0.5)
    assert cpu_ticks(pids) <= start + 1
    with pytest.raises(instance.RpcError) as error:
        s.client.call("sandbox.exec", sessionId=s.name, argv=["true"])
    assert error.value.name == "badState"
    assert s.client.call("sandbox.resume", sessionId=s.name)["state"] == \
        "active"
    start = cpu_ticks(pids)
    time.sleep(0.5)
    assert cpu_ticks(pids) > start


def test_a_suspended_run_can_be_destroyed(session):
    s = session()
    s.client.call("sandbox.exec", sessionId=s.name, argv=["sleep", "1000"])
    s.client.call("sandbox.suspend", sessionId=s.name)
    assert s.client.call("sandbox.destroy", sessionId=s.name)["state"] == \
        "destroyed"


def test_an_equal_launch_returns_the_live_handle(session, client):
    s = session()
    again = client.launch(s.name, s.workdir)
    assert again["details"]["planDigest"] == s.handle["details"]["planDigest"]
    with pytest.raises(instance.RpcError) as error:
        client.launch(s.name, s.workdir, mode="review")
    assert error.value.name == "exists"
    replaced = client.call("sandbox.launch", replace=True, spec=client.spec(
        s.name, s.workdir, mode="review"))["handle"]
    assert replaced["state"] == "warm"
    assert s.sh("echo x > file")[0] != 0


def test_the_digest_does_not_depend_on_the_order(session, service):
    a, b = service.workdir(), service.workdir()
    mounts = [{"hostPath": a}, {"hostPath": b, "readOnly": True}]
    one = session(bindMounts=mounts, guestWorkdir=a,
                  denyWrite=[a + "/x", a + "/y"])
    name = one.name
    one.destroy()
    again = one.client.call("sandbox.launch", spec=one.client.spec(
        name, one.workdir, bindMounts=mounts[::-1], guestWorkdir=a,
        denyWrite=[a + "/y", a + "/x"]))["handle"]
    assert again["details"]["planDigest"] == \
        one.handle["details"]["planDigest"]


def test_confinement_is_reported_as_it_is(session):
    s = session()
    confinement = s.handle["details"]["confinement"]
    values = {k: (v if isinstance(v, str) else v.get("value", v.get("state")))
              for k, v in confinement.items()}
    assert set(values) == {"files", "names", "network", "environment",
                           "commands", "push", "kernel"}
    assert values["names"] == "partial"
    assert values["network"] == "enforced"
    assert values["commands"] == "none"
    assert s.handle["backend"] == "native"


@pytest.mark.parametrize("field,value", [
    ("unknownField", 1), ("bindMounts", "x"), ("networkEnabled", 1),
    ("mode", "other"), ("guestWorkdir", "relative"),
    ("bindMounts", [{"hostPath": "/a/../b"}]),
    ("bindMounts", [{"hostPath": "/a", "guestPath": "/b"}]),
    ("bindMounts", [{"hostPath": "/a\0b"}]),
    ("goneMs", 10001), ("goneMs", -1), ("limits", {"other": 1}),
    ("env", {"A=B": "x"}), ("denyRead", ["relative"]),
    ("backend", "vmware"), ("sessionId", "has space"),
    ("egressAllowlist", [""])])
def test_a_bad_field_is_named(service, client, field, value):
    spec = client.spec("bad", service.workdir())
    spec[field] = value
    with pytest.raises(instance.RpcError) as error:
        client.call("sandbox.launch", spec=spec)
    assert error.value.name == "badParams", error.value
    assert field in error.value.detail.get("field", ""), error.value.detail


def test_an_unknown_backend_is_refused_with_the_choices(service, client):
    with pytest.raises(instance.RpcError) as error:
        client.launch("bad", service.workdir(), backend="vmware")
    assert error.value.message == \
        'unknown backend "vmware": use microvm, native or none'


def test_backends_of_later_versions_are_unsupported(service, client):
    for backend in ("microvm", "none"):
        with pytest.raises(instance.RpcError) as error:
            client.launch("bad", service.workdir(), backend=backend)
        assert error.value.name in ("unsupported", "unavailable")


def test_a_missing_source_is_refused(service, client):
    with pytest.raises(instance.RpcError) as error:
        client.launch("bad", service.workdir() + "/missing")
    assert error.value.name in ("badPath", "lookupFailed")
    assert "missing" in error.value.message


def test_too_much_memory_kills_the_run_and_says_so(session):
    s = session(limits={"memoryBytes": 64 << 20})
    s.client.call("events.subscribe", sessionId=s.name)
    s.client.call("sandbox.exec", sessionId=s.name, argv=[
        "/usr/bin/python3", "-c", "x=b'x'*(256<<20)"])
    killed = s.client.event("killed")
    assert killed["cause"] == "oom"
    assert killed["limit"] == 64 << 20


def test_too_many_processes_are_refused_and_reported(session):
    s = session(limits={"pids": 30})
    s.client.call("events.subscribe", sessionId=s.name)
    exec_id = s.client.call("sandbox.exec", sessionId=s.name, argv=[
        "/usr/bin/python3", "-c",
        "import os,time\nn=0\n"
        "try:\n"
        "  for i in range(100):\n"
        "    if os.fork()==0: time.sleep(5); os._exit(0)\n"
        "    n+=1\n"
        "except OSError as e: print('refused', e.errno)\n"])["execId"]
    notice = s.client.event(lambda e: e["type"] == "notice" and
                            e.get("code") == "pidLimit")
    assert notice
    assert exec_id


def test_twenty_at_once_in_one_directory(service):
    workdir = service.workdir()
    argv = [instance.CTL, "--socket", service.socket, "run", "--quiet",
            "--user", instance.RUN_USER, "-C", workdir, "--", "true"]
    runs = [subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                             stderr=subprocess.PIPE) for _ in range(20)]
    results = [(run.communicate()[1], run.returncode) for run in runs]
    assert [code for _, code in results] == [0] * 20, results
