"""Sessions of stockade-control: sections B, I, J, K, M over the client
protocol, with the test as the supervisor behind it."""

import errno
import os
import signal
import socket
import time

import pytest

import controlbox
import messages
import sessionbox
from sessionbox import cause

pytestmark = pytest.mark.skipif(controlbox.can_run() is not None,
                                reason=str(controlbox.can_run()))


@pytest.fixture(name="make")
def _make():
    hosts = []

    def make(conf="", **more):
        hosts.append(sessionbox.Host(conf, **more))
        return hosts[-1]
    yield make
    for host in hosts:
        assert host.close() == 0, host.box


@pytest.fixture(name="host")
def _host(make):
    return make().open()


@pytest.fixture(name="client")
def _client(host):
    client = host.box.client(uid=sessionbox.UID)
    client.call("events.subscribe")
    return client


# ------------------------------------------------------------ launch, handle

def test_a_launch_returns_a_warm_handle(host, client):
    run = host.launch(client, host.spec())
    handle = run.handle
    assert handle["sessionId"] == "s" and handle["backend"] == "native"
    assert handle["state"] == "warm" and "error" not in handle
    details = handle["details"]
    assert details["workdir"] == host.work
    assert details["planDigest"] == run.digest.hex()
    assert details["pid"] == 4001
    assert details["confinement"]["names"]["value"] == "partial"
    assert details["confinement"]["network"]["value"] == "enforced"
    assert set(details["confinement"]) == {
        "files", "names", "network", "environment", "commands", "push",
        "kernel"}
    assert run.run_uid == sessionbox.UID and run.client == client.number


def test_events_of_a_launch_come_in_order(host, client):
    host.launch(client, host.spec())
    seen = []
    while not seen or seen[-1].get("state") != "warm":
        seen.append(client.event())
    assert [e["seq"] for e in seen] == list(range(1, len(seen) + 1))
    kinds = [e["type"] for e in seen]
    assert kinds[0] == "starting" and kinds.count("ready") == 1
    assert kinds.index("ready") < len(kinds) - 1


@pytest.mark.parametrize("field, value, name", [
    ("unknown", 1, "badParams"), ("bindMounts", "x", "badParams"),
    ("bindMounts", [{"hostPath": "relative"}], "badParams"),
    ("bindMounts", [{"hostPath": "/a/../b"}], "badParams"),
    ("bindMounts", [{"hostPath": "/a", "guestPath": "/b"}], "badParams"),
    ("bindMounts", [{"hostPath": "/a", "other": 1}], "badParams"),
    ("bindMounts", [{"readOnly": True}], "badParams"),
    ("bindMounts", [{"hostPath": "/a"}] * 65, "badParams"),
    ("sessionId", "has space", "badParams"),
    ("sessionId", "x" * 129, "badParams"),
    ("workspaceId", None, "badParams"),
    ("networkEnabled", 1, "badParams"), ("mode", "other", "badParams"),
    ("guestWorkdir", "relative", "badParams"),
    ("goneMs", 10001, "badParams"), ("goneMs", -1, "badParams"),
    ("limits", {"other": 1}, "badParams"),
    ("limits", {"egressBytes": 1}, "unsupported"),
    ("backend", "vmware", "badParams"),
    ("backend", "none", "unsupported"), ("backend", "microvm", "unsupported"),
    ("nameExemptions", "/x.key", "badParams"),
    ("unixSockets", ["/run/x"], "unsupported"),
    ("loopbackPorts", [8080], "unsupported"),
    ("newRepositories", "perhaps", "badParams"),
    ("denyRead", ["/a/*.pem"], "unsupported"),
    ("denyWrite", ["relative"], "badParams"),
    ("credentials", "all", "badParams"), ("repo", {"owner": "x"}, "badParams"),
    ("env", {"A": 1}, "badParams"), ("env", [], "badParams"),
    ("user", "root", "badParams"), ("user", "0", "badParams"),
    ("user", "no-such-user-here", "badParams"), ("user", "1001", "forbidden"),
    ("egressAllowlist", [""], "badParams"),
])
def test_a_bad_field_is_refused_before_anything_is_asked(
        host, client, field, value, name):
    spec = host.spec()
    spec[field] = value
    if value is None:
        del spec[field]
    error = host.refused(client, spec, look_up=False)
    assert error.name == name, error
    if name == "badParams":
        assert field in error.detail["field"]
    assert client.call("sandbox.list")["handles"] == []


@pytest.mark.parametrize("field, value", [
    ("nameExemptions", []), ("unixSockets", []), ("loopbackPorts", []),
    ("newRepositories", "deny"), ("newRepositories", "allow"),
    ("nameExemptions", ["/x.key"]), ("credentials", "none"),
    ("credentials", "auto"), ("repo", {"owner": "o", "name": "n"}),
    ("linkedRepos", [{"owner": "o", "name": "n"}]), ("adapter", "codex"),
    ("execGrantRoots", ["/opt"]), ("acceptUnconfined", True),
    ("storedBackend", "docker"), ("backend", "docker")])
def test_fields_without_effect_are_accepted(host, client, field, value):
    host.launch(client, host.spec(**{field: value}))


@pytest.mark.parametrize("entry, ok", [
    ("example.com", True), ("*.example.com", True), ("example.com:8443", True),
    ("[2001:db8::1]:443", True), ("*", False), ("a*.example.com", False),
    ("*.com", False), ("example.com:0", False), ("example.com:x", False),
    ("0x7f.1", False)])
def test_allowed_hosts_are_checked_when_they_are_read(host, client, entry, ok):
    if not ok:
        error = host.refused(client, host.spec(egressAllowlist=[entry]))
        assert error.name == "badParams"
        assert "egressAllowlist" in error.detail["field"]
        return
    run = host.launch(client, host.spec(egressAllowlist=[entry]))
    assert [r for r in run.egress[3] if b"spec" in str(r).encode()]


def test_no_network_is_an_empty_list(host, client):
    run = host.launch(client, host.spec(networkEnabled=False))
    assert run.egress[1] is False and run.egress[3] == []


def test_root_needs_a_user(make):
    host = make().open()
    root = host.box.client(uid=0, operator=True)
    error = host.refused(root, host.spec(), look_up=False)
    assert (error.name, error.message) == (
        "badParams", "a run needs a user that is not root")
    run = host.launch(root, host.spec(user="1234"))
    assert run.run_uid == 1234


def test_a_run_is_none_of_the_services_users(make):
    host = make().open()
    root = host.box.client(uid=0, operator=True)
    error = host.refused(root, host.spec(user="stockade-control"),
                         look_up=False)
    assert error.name == "badParams" and "spec.user" in error.detail["field"]


def test_the_configured_user_is_roots_default(make):
    host = make('run-user "nobody"\n').open()
    root = host.box.client(uid=0, operator=True)
    assert host.launch(root, host.spec()).run_uid == 65534


# ------------------------------------------------------------ backends

def test_without_a_backend_a_run_is_refused(make):
    host = make().open(false=["landlock"])
    client = host.box.client()
    error = host.refused(client, host.spec(backend="native"), look_up=False)
    assert error.name == "unavailable"
    error = host.refused(client, host.spec(), look_up=False)
    assert error.name == "unsupported" and "none" in error.message


def test_require_refuses_an_unwrapped_run(make):
    host = make("sandbox require\n").open(false=["landlock"])
    client = host.box.client()
    for more in ({}, {"backend": "none"}):
        error = host.refused(client, host.spec(**more), look_up=False)
        assert error.name == "unconfined"


# ------------------------------------------------------------ the plan

def test_the_digest_does_not_depend_on_order(host, client):
    a, b = host.dir("a"), host.dir("b")
    mounts = [{"hostPath": a}, {"hostPath": b, "readOnly": True}]
    first = host.launch(client, host.spec(
        bindMounts=mounts, denyWrite=[a + "/x", a + "/y"],
        egressAllowlist=["a.example.com", "b.example.com"],
        env={"A": "1", "B": "2"}))
    again = client.send("sandbox.launch", spec=host.spec(
        bindMounts=mounts[::-1], denyWrite=[a + "/y", a + "/x"],
        egressAllowlist=["b.example.com", "a.example.com"],
        env={"B": "2", "A": "1"}))
    host.look_up()
    handle = client.answer(again)["handle"]
    assert handle["details"]["planDigest"] == first.digest.hex()
    assert handle["state"] == "warm"


def test_another_plan_of_the_label_is_refused_or_replaces(host, client):
    host.launch(client, host.spec())
    error = host.refused(client, host.spec(mode="review"))
    assert error.name == "exists"
    ident = client.send("sandbox.launch", replace=True,
                        spec=host.spec(mode="review"))
    host.look_up()
    ask = host.channel.expect("destroy_ask", sandbox=1)
    assert ask.cause == cause("manual")
    host.channel.send("run_ended", sandbox=1, cause=cause("manual"))
    run = host.asked("s")
    assert run.plan.targets() == {host.work: True}
    host.ready(run)
    assert client.answer(ident)["handle"]["state"] == "warm"


def test_two_equal_launches_share_one_start(host, client):
    first, run = host.planned(client, host.spec())
    second = client.send("sandbox.launch", spec=host.spec())
    host.look_up()
    assert client.call("sandbox.get", sessionId="s")["handle"]["state"] == \
        "created"
    host.ready(run)
    assert client.answer(first) == client.answer(second)


@pytest.mark.parametrize("mode, read_only", [
    ("chat", False), ("review", True), ("plan", True), ("orchestrate", True)])
def test_the_mode_decides_what_is_writable(host, client, mode, read_only):
    state = host.dir("state-dir")
    fixed = host.dir("fixed")
    run = host.launch(client, host.spec(
        mode=mode, runnerStateDirs=[state],
        bindMounts=[{"hostPath": host.work},
                    {"hostPath": fixed, "readOnly": True}]))
    assert run.plan.targets() == {
        host.work: read_only, fixed: True, state: False}


def test_a_missing_state_directory_is_a_notice(host, client):
    run = host.launch(client, host.spec(
        runnerStateDirs=[host.home + "/nowhere"]))
    assert list(run.plan.targets()) == [host.work]
    notice = client.event("notice")
    assert notice["code"] == "stateDirMissing"
    assert notice["detail"] == host.home + "/nowhere"


@pytest.mark.parametrize("path, name", [
    ("/", "badPath"), ("/etc", "badPath"), ("/tmp", "badPath"),
    ("/proc", "badPath"), ("/usr", "badPath"), ("/etc/ssl", "badPath"),
    ("/missing/for/sure", "badPath"), ("/dev/null", "badPath")])
def test_places_that_cannot_be_given(host, client, path, name):
    error = host.refused(client, host.spec(bindMounts=[{"hostPath": path}]))
    assert error.name == name, error
    assert error.detail["field"] == "spec.bindMounts"


def test_a_home_as_a_whole_needs_permission(host, client):
    error = host.refused(client, host.spec(
        bindMounts=[{"hostPath": host.home}]))
    assert error.name == "badPath" and "home" in error.message
    error = host.refused(client, host.spec(
        bindMounts=[{"hostPath": os.path.dirname(host.work) + "/."}]))
    assert error.name == "badPath"


def test_a_permitted_home_shows_without_its_secrets(make):
    host = make(lambda home: 'permit home-mount { "%s" }\n' % home).open()
    for name in (".ssh/id", ".bashrc", ".netrc", ".config/gh/hosts.yml"):
        host.file(name)
    client = host.box.client()
    run = host.launch(client, host.spec(bindMounts=[{"hostPath": host.home}]))
    masks = run.plan.masks
    assert masks[host.home + "/.ssh"] == (0, 0, False)       # empty
    assert masks[host.home + "/.netrc"] == (1, 1, False)     # no file
    assert masks[host.home + "/.config/gh"] == (0, 0, False)
    assert masks[host.home + "/.bashrc"] == (2, 1, False)    # read-only
    assert not any(p.startswith(host.home + "/.ssh/") for p in masks)


def test_the_services_own_directories_never_appear(host, client):
    for path in (host.base + "/state", host.base + "/run"):
        error = host.refused(client, host.spec(
            bindMounts=[{"hostPath": path}]))
        assert error.name == "badPath"
    run = host.launch(client, host.spec(bindMounts=[{"hostPath": host.base}]))
    assert run.plan.masks[host.base + "/state"] == (0, 0, False)
    assert run.plan.masks[host.base + "/run"] == (0, 0, False)
    assert host.base + "/shared" not in run.plan.masks


def test_links_are_mounted_in_both_spellings(host, client):
    real = host.dir("real")
    os.symlink(real, host.home + "/link")
    run = host.launch(client, host.spec(
        bindMounts=[{"hostPath": host.home + "/link"}],
        guestWorkdir=host.home + "/link"))
    assert {(s, t) for s, t, _, _ in run.plan.mounts} == {
        (real, real), (real, host.home + "/link")}
    assert run.plan.cwd == host.home + "/link"


def test_a_link_inside_a_mount_leads_by_itself(host, client):
    real = host.dir("real")
    os.symlink(real, host.work + "/link")
    run = host.launch(client, host.spec(
        bindMounts=[{"hostPath": host.work},
                    {"hostPath": host.work + "/link"}]))
    assert run.plan.targets() == {host.work: False, real: False}


def test_deny_paths_are_found_through_links(host, client):
    secret = host.file("work/secret")
    os.symlink(host.work, host.home + "/alias")
    os.symlink(secret, host.home + "/spelled")
    run = host.launch(client, host.spec(
        bindMounts=[{"hostPath": host.home + "/alias"}],
        denyRead=[host.home + "/spelled"]))
    assert run.plan.masks[secret][0] == 1
    assert run.plan.masks[host.home + "/alias/secret"][0] == 1


def test_more_specific_mounts_decide(host, client):
    inner = host.dir("work/inner")
    run = host.launch(client, host.spec(bindMounts=[
        {"hostPath": inner, "readOnly": True}, {"hostPath": host.work}]))
    assert [m[1] for m in run.plan.mounts] == [host.work, inner]
    assert run.plan.targets() == {host.work: False, inner: True}
    error = host.refused(client, host.spec("t", bindMounts=[
        {"hostPath": inner, "readOnly": True}, {"hostPath": inner}]))
    assert error.name == "badParams"


def test_protected_paths_are_never_writable(host, client):
    checkout = host.dir("work/checkout")
    sub = host.dir("work/checkout/sub")
    run = host.launch(client, host.spec(
        bindMounts=[{"hostPath": host.work}, {"hostPath": sub}],
        protectedPaths=[checkout, host.home + "/absent"]))
    assert run.plan.targets() == {host.work: False, sub: True}
    assert run.plan.masks[checkout] == (2, 0, False)


def test_a_protected_path_that_cannot_be_checked_fails_the_launch(
        host, client):
    for error in (errno.EACCES, errno.EIO, errno.ELOOP):
        host.errors = {host.home + "/p": error}
        answer = host.refused(client, host.spec(
            protectedPaths=[host.home + "/p"]))
        assert answer.name == "lookupFailed"
        assert host.home + "/p" in answer.message
    host.errors = {host.home + "/p": errno.ENOENT}
    host.launch(client, host.spec(protectedPaths=[host.home + "/p"]))


def test_mandatory_paths_in_a_writable_root_are_read_only(host, client):
    for name in (".git/config", ".git/hooks/pre-commit", ".bashrc",
                 ".vscode/tasks.json", "src/x"):
        host.file("work/" + name)
    run = host.launch(client, host.spec())
    masks = {p: how[0] for p, how in run.plan.masks.items()
             if p.startswith(host.work)}
    assert masks == {host.work + "/.git": 3, host.work + "/.git/config": 2,
                     host.work + "/.git/hooks": 2, host.work + "/.bashrc": 2,
                     host.work + "/.vscode": 2}
    run = host.launch(client, host.spec("r", mode="review"))
    assert not [p for p in run.plan.masks if p.startswith(host.work)]


def test_a_bare_repository_keeps_hooks_and_config(host, client):
    for name in ("HEAD", "config", "hooks/x", "objects/x", "refs/x"):
        host.file("work/" + name)
    run = host.launch(client, host.spec())
    assert {p for p in run.plan.masks if p.startswith(host.work)} == {
        host.work + "/config", host.work + "/hooks"}


def test_a_rule_never_shadows_another_kind(host, client):
    host.dir("work/.bashrc")
    error = host.refused(client, host.spec())
    assert error.name == "badPath" and ".bashrc" in error.message


def test_an_adapters_state_directory_keeps_its_configuration(host, client):
    host.file(".codex/config.toml")
    run = host.launch(client, host.spec(
        adapter="codex", runnerStateDirs=[host.home + "/.codex"]))
    assert run.plan.targets()[host.home + "/.codex"] is False
    assert run.plan.masks[host.home + "/.codex/config.toml"][0] == 2
    run = host.launch(client, host.spec(
        "without", runnerStateDirs=[host.home + "/.codex"]))
    assert run.plan.targets()[host.home + "/.codex"] is True


def test_what_is_denied_for_reading_cannot_be_given(host, client):
    host.file(".ssh/id")
    error = host.refused(client, host.spec(
        bindMounts=[{"hostPath": host.home + "/.ssh"}]))
    assert error.name == "badPath"


def test_denied_programs_are_masked(host, client):
    run = host.launch(client, host.spec())
    for name in ("/usr/bin/mount", "/usr/bin/su", "/usr/bin/unshare"):
        if os.path.exists(name):
            assert run.plan.masks[os.path.realpath(name)] == (1, 1, True)
    assert "/usr/bin/rm" not in run.plan.masks


@pytest.mark.parametrize("workdir, name", [
    ("/etc", "badParams"), ("missing", "badPath"), ("file", "badPath")])
def test_the_working_directory_must_be_there(host, client, workdir, name):
    host.file("work/file")
    path = os.path.join(host.work, workdir)
    error = host.refused(client, host.spec(guestWorkdir=path))
    assert error.name == name
    assert error.detail["field"] == "spec.guestWorkdir"


def test_generated_files_name_the_user_and_nobody_else(host, client):
    files = host.launch(client, host.spec()).plan.files
    assert "tester:x:1000:1000::%s:/bin/bash\n" % host.home in \
        files["/etc/passwd"]
    assert len(files["/etc/passwd"].splitlines()) == 3
    assert "nameserver 127.0.0.1" in files["/etc/resolv.conf"]
    assert host.work in files["/etc/gitconfig"]
    assert "default = current" in files["/etc/gitconfig"]
    assert len(files["/etc/machine-id"].strip()) == 32
    if os.path.exists("/etc/machine-id"):
        with open("/etc/machine-id", encoding="ascii") as f:
            assert f.read() != files["/etc/machine-id"]


def test_limits_of_the_spec_and_of_the_operator(make):
    host = make("limit memory 256M\nlimit pids 100\n").open()
    client = host.box.client()
    run = host.launch(client, host.spec(limits={
        "memoryBytes": 64 << 20, "cpus": 1.5, "tmpBytes": 1 << 20}))
    memory, pids, cpu, tmp, _, _, named = run.plan.limits
    assert (memory, pids, cpu, tmp) == (64 << 20, 100, 1500, 1 << 20)
    assert named == 1 | 4
    error = host.refused(client, host.spec("more", limits={
        "memoryBytes": 512 << 20}))
    assert error.name == "limit"


def test_a_look_up_that_fails_refuses(host, client):
    for number, name in ((errno.EIO, "lookupFailed"),
                         (errno.EPERM, "forbidden"),
                         (errno.EAGAIN, "restarting")):
        ident = client.send("sandbox.launch", spec=host.spec())
        host.fail_look_up(number, "no such user")
        with pytest.raises(controlbox.Error) as error:
            client.answer(ident)
        assert error.value.name == name


def test_an_answer_to_another_question_refuses(host, client):
    ident = client.send("sandbox.launch", spec=host.spec())
    real = host.result
    host.result = lambda path: real("/etc/passwd" if path == host.work
                                    else path)
    host.look_up()
    with pytest.raises(controlbox.Error) as error:
        client.answer(ident)
    assert error.value.name == "lookupFailed"


def test_a_failed_start_passes_through_error(host, client):
    ident, run = host.planned(client, host.spec())
    host.channel.send("launch_answer", request=run.request, code=25,
                      error=errno.ENOSPC, step="cgroup", reason="no room")
    with pytest.raises(controlbox.Error) as error:
        client.answer(ident)
    assert error.value.name == "hostError"
    assert error.value.detail == {"step": "cgroup", "errno": errno.ENOSPC}
    event = client.event("state", state="error")
    assert event["error"]["step"] == "cgroup"
    got = client.call("sandbox.get", sessionId="s")
    assert got["handle"]["state"] == "error" and got["alive"] is False
    assert client.refused("sandbox.exec", sessionId="s",
                          argv=["x"]).name == "badState"
    assert client.call("sandbox.destroy", sessionId="s")["state"] == \
        "destroyed"
    host.launch(client, host.spec())


def test_explain_shows_the_plan_and_starts_nothing(host, client):
    ident = client.send("sandbox.explain", spec=host.spec(
        env={"SECRET_TOKEN": "hunter2"}))
    host.look_up()
    plan = client.answer(ident)["plan"]
    assert plan["mounts"][0]["path"] == host.work
    assert "SECRET_TOKEN" in plan["environment"]
    assert "hunter2" not in repr(plan)
    assert plan["network"]["enabled"] is True
    assert client.call("sandbox.list")["handles"] == []
    run = host.launch(client, host.spec())
    shown = client.call("sandbox.explain", sessionId="s")["plan"]
    assert shown["digest"] == run.digest.hex()


# ------------------------------------------------------------ who sees what

def test_sessions_of_another_user_do_not_exist(host, client):
    host.launch(client, host.spec())
    other = host.box.client(uid=1001)
    assert other.call("sandbox.list")["handles"] == []
    for method, more in (("sandbox.get", {}), ("sandbox.destroy", {}),
                         ("sandbox.exec", {"argv": ["x"]}),
                         ("sandbox.explain", {}), ("sandbox.suspend", {}),
                         ("sandbox.stdin", {"execId": "x1"}),
                         ("sandbox.signal", {"execId": "x1",
                                             "signal": "TERM"})):
        mine = other.refused(method, sessionId="s", **more)
        none = other.refused(method, sessionId="t", **more)
        assert (mine.name, mine.message) == (none.name, none.message)
        assert mine.name == "notFound"
    host.launch(other, host.spec())      # the label is free for them
    operator = host.box.client(uid=0, operator=True)
    assert len(operator.call("sandbox.list")["handles"]) == 2


def test_sessions_are_limited(make):
    host = make("limit sessions-uid 2\n").open()
    client = host.box.client()
    for name in ("a", "b"):
        host.launch(client, host.spec(name))
    assert host.refused(client, host.spec("c"),
                        look_up=False).name == "limit"
    host.launch(host.box.client(uid=1001), host.spec("c"))


def test_a_list_waits_for_figures_but_not_for_long(host, client):
    run = host.launch(client, host.spec())
    start = time.monotonic()
    (handle,) = client.call("sandbox.list")["handles"]
    assert 0.05 < time.monotonic() - start < 1.0
    assert handle["details"]["memoryBytes"] == 0
    host.channel.backlog.clear()
    ident = client.send("sandbox.list")
    ask = host.channel.expect("stat_ask")
    host.channel.send("stat_answer", request=ask.request, sandbox=run.sandbox,
                      memory_bytes=4096, pids=3)
    (handle,) = client.answer(ident)["handles"]
    assert handle["details"]["memoryBytes"] == 4096
    assert handle["details"]["pids"] == 3


def test_added_hosts_are_in_the_log(host, client):
    host.launch(client, host.spec(egressAllowlist=["added.example.com"]))
    (line,) = [x for x in host.box.log().splitlines() if "egressAdded" in x]
    assert "STOCKADE_HOST=added.example.com" in line
    assert "STOCKADE_RULE=spec" in line


# ------------------------------------------------------------ commands

def collect(client, ident):
    out = {"stdout": b"", "stderr": b""}
    while True:
        event = client.event(execId=ident)
        if event["type"] in out:
            out[event["type"]] += event["data"]
        elif event["type"] == "exit":
            return event, out["stdout"], out["stderr"]


def test_a_command_runs_to_its_end(host, client):
    run = host.launch(client, host.spec(env={"A": "spec"}))
    command = run.exec(client, argv=["prog", "arg"], env={"B": "exec"})
    assert command.answer["pid"] == 7
    assert command.argv == ["prog", "arg"] and command.cwd == host.work
    assert command.env["A"] == "spec" and command.env["B"] == "exec"
    assert command.env["HOME"] == host.home
    assert command.env["HTTPS_PROXY"] == "http://127.0.0.1:3128"
    assert command.env["STOCKADE_RUN_DIR"] == "/run/stockade/run"
    assert client.event("state", state="active")
    os.write(command.stdout, b"out\xff\0")
    os.write(command.stderr, b"err")
    command.exit(7)
    event, out, err = collect(client, command.id)
    assert (event["exitCode"], out, err) == (7, b"out\xff\0", b"err")
    assert "signal" not in event
    assert client.event("state", state="warm")
    with pytest.raises(socket.timeout):
        client.event("exit", timeout=0.4)       # exactly once


def test_shell_has_a_time_out_and_argv_has_none(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, shell="echo hi")
    assert command.argv == ["/bin/bash", "-c", "echo hi"]
    command.exit()
    for params in ({}, {"argv": ["x"], "shell": "x"}, {"argv": []},
                   {"argv": [""]}):
        assert client.refused("sandbox.exec", sessionId="s",
                              **params).name == "badParams"


def test_stripped_names_are_reported(host, client):
    ident, run = host.planned(client, host.spec(env={"LD_PRELOAD": "x"}))
    host.ready(run)
    handle = client.answer(ident)["handle"]
    assert handle["details"]["stripped"] == ["LD_PRELOAD"]
    assert client.event("notice")["code"] == "envStripped"
    command = run.exec(client, argv=["x"], env={"BASH_ENV": "y"})
    assert command.answer["stripped"] == ["BASH_ENV", "LD_PRELOAD"]
    assert not {"BASH_ENV", "LD_PRELOAD"} & set(command.env)
    command.exit()


@pytest.mark.parametrize("error, step, status", [
    (errno.ENOENT, "exec", 127), (errno.ENOTDIR, "exec", 127),
    (errno.EACCES, "exec", 126), (errno.ENOEXEC, "exec", 126)])
def test_what_cannot_be_executed_ends_as_in_a_shell(
        host, client, error, step, status):
    run = host.launch(client, host.spec())
    command = run.ask_exec(client, argv=["no-such"])
    command.fail(error, step)
    ident = client.answer(command.ident)["execId"]
    event, _, err = collect(client, ident)
    assert event["exitCode"] == status and b"no-such" in err
    assert client.call("sandbox.get", sessionId="s")["execs"] == []


def test_a_start_that_fails_is_an_error(host, client):
    run = host.launch(client, host.spec())
    command = run.ask_exec(client, argv=["x"], cwd=host.work + "/missing")
    command.fail(errno.ENOENT, "cwd")
    with pytest.raises(controlbox.Error) as error:
        client.answer(command.ident)
    assert error.value.name == "badPath"
    command = run.ask_exec(client, argv=["x"])
    command.fail(errno.EAGAIN, "fork")
    with pytest.raises(controlbox.Error) as error:
        client.answer(command.ident)
    assert error.value.name == "hostError"
    assert client.refused("sandbox.exec", sessionId="s", argv=["x"],
                          cwd="/etc").name == "badPath"
    assert client.refused("sandbox.exec", sessionId="s", argv=["x"],
                          cwd=host.work + "/..").name == "badParams"


def read_all(fd):
    data = b""
    while True:
        part = os.read(fd, 65536)
        if not part:
            return data
        data += part


def test_input_is_settled(host, client):
    run = host.launch(client, host.spec())
    none = run.exec(client, argv=["cat"])
    assert none.ask.stdin_open == 0
    none.exit()
    given = run.exec(client, argv=["cat"], stdin=b"data")
    assert read_all(given.stdin) == b"data"
    assert host.channel.expect("exec_eof").exec == given.number
    given.exit()
    stream = run.exec(client, argv=["cat"], stdin=True)
    assert client.call("sandbox.stdin", sessionId="s", execId=stream.id,
                       data=b"one")["accepted"] == 3
    client.call("sandbox.stdin", sessionId="s", execId=stream.id, data=b"two",
                eof=True)
    assert read_all(stream.stdin) == b"onetwo"
    assert client.refused("sandbox.stdin", sessionId="s", execId=stream.id,
                          data=b"x").name == "badState"
    stream.exit()


def test_the_input_queue_is_bounded(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["sleep"], stdin=True)
    total = 0
    for _ in range(20):
        try:
            total += client.call("sandbox.stdin", sessionId="s",
                                 execId=command.id,
                                 data=b"x" * (128 << 10))["accepted"]
        except controlbox.Error as error:
            assert error.name == "busy"
            break
    else:
        raise AssertionError("never busy")
    assert (256 << 10) <= total <= (256 << 10) + (64 << 10) + (128 << 10)
    command.exit()


def test_exit_comes_behind_the_last_byte(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"])
    command.told(0)
    os.write(command.stdout, b"late")
    command.close()
    event, out, _ = collect(client, command.id)
    assert (event["exitCode"], out) == (0, b"late")


def test_a_background_child_does_not_hold_the_exit(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"])
    os.write(command.stdout, b"mine")
    command.told(3)
    event, out, _ = collect(client, command.id)
    assert (event["exitCode"], out) == (3, b"mine")
    os.write(command.stdout, b"y" * 65536)      # nobody dies of a closed pipe
    os.write(command.stdout, b"y" * 65536)
    command.close()
    assert client.call("sandbox.get", sessionId="s")["execs"] == []


def test_a_slow_reader_makes_the_run_wait_and_loses_nothing(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"])
    os.set_blocking(command.stdout, False)
    written = 0
    quiet = 0
    while quiet < 20:
        try:
            written += os.write(command.stdout, b"z" * 65536)
            quiet = 0
        except BlockingIOError:
            time.sleep(0.01)
            quiet += 1
    assert written < 4 << 20        # it does not swallow without end
    os.set_blocking(command.stdout, True)
    ident = command.id
    command.exit()
    event, out, _ = collect(client, ident)
    assert len(out) == written and event["exitCode"] == 0
    assert not [e for e in client.events if e["type"] == "overrun"]


def test_execs_are_limited(make):
    host = make("limit execs 2\n").open()
    client = host.box.client()
    run = host.launch(client, host.spec())
    commands = [run.exec(client, argv=["x"]) for _ in range(2)]
    assert client.refused("sandbox.exec", sessionId="s",
                          argv=["x"]).name == "limit"
    commands.pop().exit()
    host.channel.backlog.clear()
    client.call("events.subscribe", sessionId="s")
    deadline = time.monotonic() + 5
    while len(client.call("sandbox.get", sessionId="s")["execs"]) > 1:
        assert time.monotonic() < deadline
    run.exec(client, argv=["x"]).exit()
    commands.pop().exit()


def test_a_time_out_says_so_and_kills(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"], timeoutMs=200)
    assert host.channel.expect("exec_signal").signal == signal.SIGTERM
    event = client.event("stderr", execId=command.id)
    assert event["data"] == b"command exceeded 1s\n"
    assert host.channel.expect("exec_signal").signal == signal.SIGKILL
    ident = command.id
    command.exit(0, signal.SIGKILL)
    killed = client.event("killed")
    assert killed["cause"] == "timeout" and killed["execId"] == ident
    event = client.event("exit")
    assert event["exitCode"] == 124 and killed["seq"] < event["seq"]


def test_silence_kills_too(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"], silenceMs=300)
    for _ in range(3):
        time.sleep(0.15)
        os.write(command.stdout, b".")
    assert "exec_signal" not in [m.name for m in host.channel.backlog]
    assert host.channel.expect("exec_signal").signal == signal.SIGTERM
    command.exit(0, signal.SIGTERM)
    assert client.event("killed")["cause"] == "silence"
    assert client.event("exit")["exitCode"] == 143


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "KILL", "USR1",
                                  "USR2", "WINCH", "CONT", "STOP"])
def test_listed_signals_are_passed_on(host, client, name):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"])
    client.call("sandbox.signal", sessionId="s", execId=command.id,
                signal=name)
    asked = host.channel.expect("exec_signal")
    assert (asked.exec, asked.signal) == (
        command.number, getattr(signal, "SIG" + name))
    command.exit()


def test_other_signals_are_refused(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"])
    for name in ("SEGV", "9", "term", "TERM "):
        assert client.refused("sandbox.signal", sessionId="s",
                              execId=command.id,
                              signal=name).name == "badParams"
    assert client.refused("sandbox.signal", sessionId="s", execId="x0",
                          signal="TERM").name == "notFound"
    command.exit()


# ------------------------------------------------------------ terminals, fds

def test_a_terminals_output_comes_as_events(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"], tty=True, rows=33, cols=99)
    assert (command.ask.tty, command.ask.rows, command.ask.cols) == (1, 33, 99)
    os.write(command.master, b"hello")
    assert b"hello" in client.event("stdout")["data"]
    client.call("sandbox.stdin", sessionId="s", execId=command.id,
                data=b"typed\n")
    assert os.read(command.master, 100) == b"typed\n"
    client.call("sandbox.resize", sessionId="s", execId=command.id, rows=10,
                cols=20)
    asked = host.channel.expect("exec_resize")
    assert (asked.rows, asked.cols) == (10, 20)
    command.exit(0)
    assert client.event("exit")["exitCode"] == 0


def receive_fds(client):
    data, fds, _, _ = socket.recv_fds(client.sock, 1 << 16, 4)
    client.unpacker.feed(data)
    for message in client.unpacker:
        if message[0] == 1:
            client.answers[message[1]] = message[2:]
        else:
            client.events.append(message[2][0])
    return fds


def test_the_terminal_itself_can_be_had(host):
    client = host.box.client()
    run = host.launch(client, host.spec())
    command = run.ask_exec(client, argv=["x"], tty=True, passFds=0)
    master, slave = os.openpty()
    host.channel.send("exec_answer", [master], sandbox=run.sandbox,
                      exec=command.number, pid=9, io=sessionbox.IO_TTY)
    os.close(master)
    client.sock.settimeout(5)
    (mine,) = receive_fds(client)
    assert client.answer(command.ident)["pid"] == 9
    os.write(mine, b"typed\n")
    assert os.read(slave, 100) == b"typed\n"
    os.close(mine)
    os.close(slave)
    command.told(0)


def test_passed_descriptors_reach_the_run(host, client):
    run = host.launch(client, host.spec())
    r, w = os.pipe()
    with open("/dev/null", "rb") as null:
        command = run.exec(client, fds=[null.fileno(), w, w], passFds=3,
                           argv=["x"])
    os.close(w)
    assert command.ask.passed == 3 and len(command.passed) == 3
    os.write(command.passed[1], b"direct")
    for fd in command.passed:
        os.close(fd)
    assert read_all(r) == b"direct"
    os.close(r)
    command.told(5)
    assert client.event("exit")["exitCode"] == 5
    assert not [e for e in client.events if e["type"] == "stdout"]
    with open("/dev/null", "rb") as null:
        assert client.refused("sandbox.exec", [null.fileno()] * 2, passFds=2,
                              sessionId="s", argv=["x"],
                              silenceMs=5).name == "badParams"
        assert client.refused("sandbox.exec", [null.fileno()], passFds=1,
                              sessionId="s", argv=["x"],
                              stdin=b"x").name == "badParams"
    for wrong in ("text", False, 1):
        assert client.refused("sandbox.exec", sessionId="s", argv=["x"],
                              stdin=wrong).name == "badParams"


# ------------------------------------------------------------ freeze and end

def test_suspend_and_resume(host, client):
    run = host.launch(client, host.spec())
    ident = client.send("sandbox.suspend", sessionId="s")
    ask = host.channel.expect("freeze_ask")
    assert ask.frozen == 1
    host.channel.send("freeze_answer", request=ask.request,
                      sandbox=run.sandbox, frozen=1)
    assert client.answer(ident)["state"] == "suspended"
    for method, more in (("sandbox.exec", {"argv": ["x"]}),
                         ("sandbox.suspend", {})):
        assert client.refused(method, sessionId="s", **more).name == "badState"
    ident = client.send("sandbox.resume", sessionId="s")
    ask = host.channel.expect("freeze_ask")
    assert ask.frozen == 0
    host.channel.send("freeze_answer", request=ask.request,
                      sandbox=run.sandbox, frozen=0)
    assert client.answer(ident)["state"] == "warm"
    ident = client.send("sandbox.suspend", sessionId="s")
    ask = host.channel.expect("freeze_ask")
    host.channel.send("freeze_answer", request=ask.request,
                      sandbox=run.sandbox, error=errno.EIO)
    with pytest.raises(controlbox.Error) as error:
        client.answer(ident)
    assert error.value.name == "hostError"
    assert client.refused("sandbox.resume", sessionId="s").name == "badState"


def test_destroy_is_idempotent_and_answers_at_the_end(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"])
    first = client.send("sandbox.destroy", sessionId="s")
    ask = host.channel.expect("destroy_ask")
    assert (ask.cause, ask.grace_ms) == (cause("manual"), 3000)
    second = client.send("sandbox.destroy", sessionId="s")
    os.write(command.stdout, b"last words")
    ident = command.id
    command.close()
    run.end("manual")
    assert client.answer(first) == client.answer(second) == {
        "state": "destroyed"}
    killed = client.event("killed")
    assert killed["cause"] == "manual"
    event, out, _ = collect(client, ident)
    assert event["exitCode"] == 137 and out == b"last words"
    assert killed["seq"] < event["seq"]
    assert client.event("state", state="destroyed")["seq"] > event["seq"]
    assert client.call("sandbox.destroy", sessionId="s")["state"] == \
        "destroyed"
    assert client.refused("sandbox.get", sessionId="s").name == "notFound"
    assert "destroy_ask" not in [m.name for m in host.channel.backlog]


def test_out_of_memory_is_told_before_the_exit(host, client):
    run = host.launch(client, host.spec())
    command = run.exec(client, argv=["x"])
    command.exit(0, signal.SIGKILL)
    run.end("oom", limit=1000, peak=999)
    killed = client.event("killed")
    assert (killed["cause"], killed["limit"], killed["peak"]) == (
        "oom", 1000, 999)
    event = client.event("exit")
    assert event["exitCode"] == 137 and event["seq"] > killed["seq"]
    assert client.event("state", state="destroyed")["cause"] == "oom"


def test_a_run_that_ends_with_launcherd_says_service(host, client):
    run = host.launch(client, host.spec(detach=True))
    command = run.exec(client, argv=["x"])
    command.close()
    run.end("service")
    assert client.event("killed")["cause"] == "service"
    assert client.event("exit")["exitCode"] == 137
    assert client.event("state", state="destroyed")["cause"] == "service"
    assert client.call("sandbox.list")["handles"] == []


def test_pid_exhaustion_is_told_once(host, client):
    run = host.launch(client, host.spec())
    for _ in range(3):
        host.channel.send("run_notice", sandbox=run.sandbox,
                          code=sessionbox.RUN_NOTICES.index("pidLimit"),
                          detail="30")
    assert client.event("notice")["code"] == "pidLimit"
    client.call("ping")
    assert not [e for e in client.events if e["type"] == "notice"]


def test_limits_without_a_controller_are_noticed(host, client):
    ident, run = host.planned(client, host.spec())
    host.ready(run, limits_unset=1 | 4)
    client.answer(ident)
    assert [client.event("notice")["detail"] for _ in range(2)] == [
        "memory", "cpus"]


def test_the_wall_ends_a_session(host, client):
    host.launch(client, host.spec(limits={"wallMs": 200}))
    assert host.channel.expect("destroy_ask").cause == cause("wall")
    assert client.event("killed")["cause"] == "wall"


def test_an_idle_session_ends_unless_a_command_runs(host, client):
    run = host.launch(client, host.spec(idleMs=300))
    command = run.exec(client, argv=["x"])
    time.sleep(0.5)
    client.call("ping")
    assert "destroy_ask" not in [m.name for m in host.channel.backlog]
    command.exit()
    assert host.channel.expect("destroy_ask").cause == cause("idle")


def test_a_session_goes_with_its_client(host, client):
    mine = host.box.client()
    host.launch(mine, host.spec("mine", goneMs=0))
    host.launch(mine, host.spec("kept", detach=True))
    mine.close()
    ask = host.channel.expect("destroy_ask")
    assert (ask.sandbox, ask.cause) == (1, cause("clientGone"))
    client.call("ping")
    assert "destroy_ask" not in [m.name for m in host.channel.backlog]


def test_a_session_can_be_adopted(host, client):
    mine = host.box.client()
    run = host.launch(mine, host.spec(goneMs=300))
    mine.close()
    host.channel.expect("client_gone", client=mine.number)
    client.call("sandbox.get", sessionId="s", adopt=True)
    time.sleep(0.5)
    client.call("ping")
    assert "destroy_ask" not in [m.name for m in host.channel.backlog]
    client.close()
    assert host.channel.expect("destroy_ask").sandbox == run.sandbox


def test_a_client_that_goes_during_the_start_takes_it_along(host):
    mine = host.box.client()
    _, run = host.planned(mine, host.spec(goneMs=0))
    mine.close()
    host.channel.expect("client_gone", client=mine.number)
    host.ready(run)
    assert host.channel.expect("destroy_ask").sandbox == run.sandbox


def test_a_destroy_during_the_start_is_done_behind_it(host, client):
    _, run = host.planned(client, host.spec())
    ident = client.send("sandbox.destroy", sessionId="s")
    client.call("ping")
    host.ready(run)
    assert host.channel.expect("destroy_ask").sandbox == run.sandbox
    run.end("manual")
    assert client.answer(ident)["state"] == "destroyed"


def test_a_late_answer_of_nobodys_launch_is_destroyed(host, client):
    client.call("ping")
    host.channel.send("launch_answer", request=999999999, sandbox=77, pid=1)
    assert host.channel.expect("destroy_ask").sandbox == 77


# ------------------------------------------------------------ restart

def restore(old, make, **values):
    """The sandbox of `old` comes to a fresh control."""
    host = make(conf="")
    fds = [os.dup(fd) for fd in old.fds]
    host.box.probe()
    row = dict(sandbox=old.sandbox, owner_uid=sessionbox.UID,
               run_uid=sessionbox.UID, plan_digest=old.digest, pid=4444,
               landlock_abi=5)
    row.update(values)
    host.channel.send("restore_run", fds, **row)
    for fd in fds:
        os.close(fd)
    return host


def reopen(host):
    host.channel.send("restore_done", generation=2)
    host.channel.send("control_open", [host.box.listener.fileno()],
                      generation=2)
    return host.box.client()


def test_sessions_come_back_after_a_restart(host, client, make):
    old = host.launch(client, host.spec(detach=True, mode="plan",
                                        env={"A": "kept"}))
    new = restore(old, make)
    out, write = os.pipe()
    new.channel.send("restore_exec", [out], sandbox=old.sandbox, exec=5,
                     pid=8, io=sessionbox.IO_STDOUT)
    os.close(out)
    again = reopen(new)
    got = again.call("sandbox.get", sessionId="s")
    assert got["digest"] == old.digest.hex()
    assert got["handle"]["state"] == "active"
    assert got["handle"]["details"]["mode"] == "plan"
    assert got["handle"]["details"]["workspaceId"] == "w"
    (command,) = got["execs"]
    assert again.refused("events.subscribe", sessionId="s",
                         since=1).name == "gone"
    again.call("events.subscribe", sessionId="s")
    os.write(write, b"goes on")
    os.close(write)
    new.channel.send("exec_exit", sandbox=old.sandbox, exec=5, status=5)
    event, data, _ = collect(again, command["execId"])
    assert (event["exitCode"], data) == (5, b"goes on")
    old.host, old.fds = new, ()
    run = old.exec(again, argv=["x"])
    assert run.env["A"] == "kept" and run.cwd == host.work
    run.exit()
    again.close()
    again = new.box.client()
    assert again.call("sandbox.get", sessionId="s")["alive"] is True


def test_a_restored_session_that_is_not_detached_ends(host, client, make):
    old = host.launch(client, host.spec(goneMs=200))
    new = restore(old, make)
    reopen(new)
    ask = new.channel.expect("destroy_ask")
    assert (ask.sandbox, ask.cause) == (old.sandbox, cause("clientGone"))


def test_the_wall_goes_on_after_a_restart(host, client, make):
    old = host.launch(client, host.spec(detach=True,
                                        limits={"wallMs": 800}))
    new = restore(old, make)
    start = time.monotonic()
    reopen(new)
    ask = new.channel.expect("destroy_ask")
    assert ask.cause == cause("wall")
    assert time.monotonic() - start < 0.8


def test_a_frozen_session_comes_back_suspended(host, client, make):
    old = host.launch(client, host.spec(detach=True))
    again = reopen(restore(old, make, frozen=1))
    assert again.call("sandbox.get", sessionId="s")["handle"]["state"] == \
        "suspended"


def test_a_plan_that_cannot_be_read_is_ended(host, client, make):
    old = host.launch(client, host.spec(detach=True))
    bad = messages.memfd(b"\x91\x01")
    host.fds.append(bad)
    old.fds = (bad, old.fds[1])
    new = restore(old, make)
    assert new.channel.expect("destroy_ask").cause == cause("service")
    assert reopen(new).call("sandbox.list")["handles"] == []


# ------------------------------------------------------------ secrets

def test_values_of_variables_are_in_no_log(host, client):
    run = host.launch(client, host.spec(env={"MY_TOKEN": "hunter2hunter2"}))
    command = run.exec(client, argv=["x", "hunter3hunter3"],
                       env={"OTHER": "hunter4hunter4"})
    assert command.env["MY_TOKEN"] == "hunter2hunter2"
    command.exit()
    client.event("exit")
    assert "hunter" not in host.box.log()
