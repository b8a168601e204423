"""How runs and daemons end: SPEC A22, A23, C23, K21, Y8. Each test has an
instance of its own, since it kills parts of it."""

import os
import re
import signal
import subprocess
import time

import pytest

import conftest
import instance


@pytest.fixture
def own():
    conftest.need_service()
    with instance.Instance("limit idle none") as running:
        yield running


def until(test, what, timeout=5.0):
    """Waits for a state of the host that nobody announces."""
    end = time.monotonic() + timeout
    while not test():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def alive(pids):
    left = []
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid, encoding="ascii") as f:
                if f.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    left.append(pid)
        except OSError:
            continue
    return left


RUN = {"bwrap", "init", "sh", "sleep"}


def named(pids, names):
    found = []
    for pid in pids:
        try:
            with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                if f.read().strip() in names:
                    found.append(pid)
        except OSError:
            continue
    return found


def cgroups(service):
    """The run directories of this instance in every tree; others may be at
    work on the machine. Needs a live run, once."""
    if not hasattr(service, "cgroup"):
        run = named(instance.all_pids_below(
            service.children()["stockade-launcherd"]), {"init"})
        with open("/proc/%d/cgroup" % run[0], encoding="ascii") as f:
            service.cgroup = re.search(r"stockade-[^/]+", f.read()).group(0)
    return {path for path, _, _ in os.walk("/sys/fs/cgroup")
            if service.cgroup in path.split("/")[:-1]}


def descriptors(daemons):
    """How many each holds, once that is the same for half a second: after a
    run launcherd makes what the next one needs."""
    count = since = None
    while count is None or time.monotonic() - since < 0.5:
        now = {n: len(os.listdir("/proc/%d/fd" % p))
               for n, p in daemons.items()}
        if now != count:
            count, since = now, time.monotonic()
        time.sleep(0.02)
    return count


def test_nothing_is_left_after_a_destroy(own):
    with own.client() as c:
        c.launch("warmup", own.workdir())
        assert cgroups(own)
        c.call("sandbox.destroy", sessionId="warmup")
        daemons = own.children()
        before = descriptors(daemons)
        assert not cgroups(own)
        with open("/proc/self/mountinfo", encoding="ascii") as f:
            mounts = f.read()
        workdir = own.workdir()
        for i in range(10):
            c.launch("s%d" % i, workdir)
            c.run("s%d" % i, ["true"])
            c.call("sandbox.destroy", sessionId="s%d" % i)
        assert not cgroups(own)
        assert descriptors(daemons) == before
        with open("/proc/self/mountinfo", encoding="ascii") as f:
            assert f.read() == mounts
        assert os.listdir(workdir) == []
        assert own.children() == daemons


def test_kill_of_the_supervisor_ends_everything(own):
    with own.client() as c:
        c.launch("s", own.workdir(), detach=True)
        c.call("sandbox.exec", sessionId="s", argv=["sleep", "1000"])
        pids = instance.all_pids_below(own.process.pid)
        assert len(alive(pids)) > 6
        own.process.kill()
        own.process.wait()
        until(lambda: not alive(pids), "processes are left", 2.0)
    own.start()
    with own.client() as c:
        assert c.call("sandbox.list")["handles"] == []
        c.launch("s", own.workdir())
        assert c.run("s", ["true"])[0] == 0


def test_leftover_cgroups_are_removed_at_the_next_start(own):
    with own.client() as c:
        c.launch("s", own.workdir(), detach=True)
        live = cgroups(own)
        assert live
        own.process.kill()
        own.process.wait()
    own.start()
    assert not cgroups(own)


@pytest.mark.parametrize("name", ["stockade-control", "stockade-proxyd",
                                  "stockade-resolver"])
def test_a_killed_daemon_is_back_and_ends_no_detached_run(own, name):
    workdir = own.workdir()
    with own.client() as c:
        c.launch("s", workdir, detach=True)
        c.call("sandbox.exec", sessionId="s", argv=[
            "/bin/sh", "-c", "echo up > up; while :; do sleep 1; done"])
        until(lambda: os.path.exists(workdir + "/up"), "not started")
    run = named(instance.all_pids_below(
        own.children()["stockade-launcherd"]), {"bwrap", "init", "sh"})
    assert len(run) >= 3
    for _ in range(3):
        pid = own.children()[name]
        os.kill(pid, signal.SIGKILL)
        until(lambda p=pid: own.children().get(name) not in (None, p),
              name + " is not back", 4.0)
        own.wait_ready()
        with own.client() as c:
            handle = c.call("sandbox.get", sessionId="s")["handle"]
            assert handle["state"] in ("warm", "active")
            assert c.run("s", ["echo", "still"])[1] == b"still\n"
        assert set(alive(run)) == set(run)


def test_output_goes_on_after_a_restart_of_control(own):
    workdir = own.workdir()
    with own.client() as c:
        c.launch("s", workdir, detach=True)
        exec_id = c.call("sandbox.exec", sessionId="s", argv=[
            "/bin/sh", "-c", "while [ ! -e stop ]; do sleep 0.05; done; "
            "echo after; exit 5"])["execId"]
    os.kill(own.children()["stockade-control"], signal.SIGKILL)
    until(lambda: "stockade-control" in own.children(), "not back")
    own.wait_ready()
    with own.client() as c:
        c.call("events.subscribe", sessionId="s")
        with pytest.raises(instance.RpcError) as error:
            c.call("events.subscribe", sessionId="s", since=1)
        assert error.value.name == "gone"
        with open(workdir + "/stop", "w", encoding="ascii"):
            pass
        status, out, _ = c.collect(exec_id)
        assert (status, out) == (5, b"after\n")


def test_kill_of_launcherd_ends_all_runs_with_the_cause(own):
    with own.client() as c:
        c.call("events.subscribe")
        c.launch("s", own.workdir(), detach=True)
        c.call("sandbox.exec", sessionId="s", argv=["sleep", "1000"])
        launcherd = own.children()["stockade-launcherd"]
        run = instance.all_pids_below(launcherd)
        os.kill(launcherd, signal.SIGKILL)
        assert c.event("killed")["cause"] == "service"
        until(lambda: not alive(run), "processes are left", 2.0)
        until(lambda: own.children().get("stockade-launcherd") not in
              (None, launcherd), "not back")
        deadline = time.monotonic() + 10
        while True:
            try:
                c.launch("again", own.workdir())
                break
            except instance.RpcError as error:
                assert error.name in ("restarting", "unavailable", "exists")
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert c.run("again", ["true"])[0] == 0


def test_a_client_that_goes_takes_its_run_along(own):
    with own.client() as c:
        c.launch("mine", own.workdir(), goneMs=0)
        c.launch("detached", own.workdir(), detach=True)
    with own.client() as c:
        until(lambda: [h["sessionId"] for h in
                       c.call("sandbox.list")["handles"]] == ["detached"],
              "the run did not end")


def test_another_connection_may_adopt(own):
    first = own.client()
    first.launch("s", own.workdir(), goneMs=2000)
    with own.client() as c:
        c.call("sandbox.get", sessionId="s", adopt=True)
        first.close()
        time.sleep(2.5)     # longer than goneMs
        assert c.call("sandbox.get", sessionId="s")["alive"] is True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM,
                                 signal.SIGINT, signal.SIGHUP])
def test_a_killed_tool_ends_its_run(own, how):
    workdir = own.workdir()
    tool = subprocess.Popen(
        [instance.CTL, "--socket", own.socket, "run", "--quiet", "--user",
         instance.RUN_USER, "-C", workdir, "--", "sh", "-c",
         "echo up > up; sleep 1000"], stdin=subprocess.DEVNULL)
    until(lambda: os.path.exists(workdir + "/up"), "not started", 10)
    run = named(instance.all_pids_below(
        own.children()["stockade-launcherd"]), RUN)
    assert run
    tool.send_signal(how)
    status = tool.wait(5)
    assert status != 0
    until(lambda: not alive(run), "processes are left", 2.0)


@pytest.mark.parametrize("victim", ["bwrap", "stockade-init"])
def test_a_run_whose_part_dies_ends_as_a_whole(own, victim):
    with own.client() as c:
        c.call("events.subscribe")
        c.launch("s", own.workdir())
        c.call("sandbox.exec", sessionId="s", argv=["sleep", "1000"])
        run = named(instance.all_pids_below(
            own.children()["stockade-launcherd"]), RUN)
        for pid in run:
            with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                comm = f.read().strip()
            if comm == victim or (victim == "stockade-init" and
                                  comm == "init"):
                os.kill(pid, signal.SIGKILL)
                break
        else:
            pytest.fail("no process " + victim)
        c.event(lambda e: e["type"] == "state" and
                e.get("state") in ("destroyed", "error"))
        until(lambda: not alive(run), "processes are left", 2.0)


def test_an_orderly_stop_leaves_nothing(own):
    with own.client() as c:
        c.launch("s", own.workdir(), detach=True)
        c.call("sandbox.exec", sessionId="s", argv=["sleep", "1000"])
        assert cgroups(own)
    pids = instance.all_pids_below(own.process.pid)
    assert own.stop() == 0
    assert not alive(pids)
    assert not os.path.exists(own.socket)
    assert not cgroups(own)


def test_two_instances_touch_nothing_of_each_other(own):
    with instance.Instance() as other:
        with own.client() as a, other.client() as b:
            a.launch("same", own.workdir())
            b.launch("same", other.workdir())
            b.call("sandbox.destroy", sessionId="same")
            assert a.run("same", ["true"])[0] == 0
    with own.client() as a:
        a.launch("after", own.workdir())
        assert a.run("after", ["true"])[0] == 0


def test_another_user_sees_nothing(own):
    """A client of another uid: notFound, equal to what does not exist."""
    import grp
    import json
    with own.client() as c:
        c.launch("theirs", own.workdir(), detach=True)
    script = (
        "import sys,json;sys.path.insert(0,%r)\nimport instance\n"
        "c=instance.Client(%r)\nr={'role':c.hello['role'],'list':"
        "len(c.call('sandbox.list')['handles'])}\n"
        "for n in ('theirs','never'):\n"
        "  try: c.call('sandbox.get',sessionId=n)\n"
        "  except instance.RpcError as e: r[n]=[e.name,e.message.replace("
        "n,'X')]\n"
        "print(json.dumps(r))\n" % (os.path.join(instance.SOURCE, "tests"),
                                    own.socket))
    run = ["setpriv", "--reuid", "65534", "--regid", "65534", "--groups"]
    denied = subprocess.run([*run, "65534", "/usr/bin/python3", "-c", script],
                            check=False, capture_output=True)
    assert denied.returncode != 0       # not in the group: no connection
    done = subprocess.run(
        [*run, str(grp.getgrnam("stockade").gr_gid), "/usr/bin/python3", "-c",
         script], check=True, capture_output=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"})
    seen = json.loads(done.stdout)
    assert seen["role"] == "client" and seen["list"] == 0
    assert seen["theirs"] == seen["never"]
    assert seen["theirs"][0] == "notFound"
