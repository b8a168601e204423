"""SPEC K on a live service: states, the order of events, causes, limits."""

import errno
import os
import resource

import pytest

from instance import Instance, RpcError, missing


def test_states_are_entered_and_told_in_order(session, service):
    s = session()
    client = s.client
    assert s.handle["state"] == "warm" and "error" not in s.handle
    s.ok("true")
    assert client.call("sandbox.suspend", sessionId=s.name)["state"] == \
        "suspended"
    for method, more in (("sandbox.suspend", {}),
                         ("sandbox.exec", {"argv": ["true"]})):
        with pytest.raises(RpcError) as caught:
            client.call(method, sessionId=s.name, **more)
        assert caught.value.name == "badState"
    assert client.call("sandbox.resume", sessionId=s.name)["state"] == "warm"
    with pytest.raises(RpcError) as caught:
        client.call("sandbox.resume", sessionId=s.name)
    assert caught.value.name == "badState"
    client.call("sandbox.exec", sessionId=s.name, argv=["sleep", "60"])
    assert client.call("sandbox.get",
                       sessionId=s.name)["handle"]["state"] == "active"
    with service.client() as other:
        assert client.call("sandbox.destroy",
                           sessionId=s.name)["state"] == "destroyed"
        with pytest.raises(RpcError):
            other.call("events.subscribe", sessionId=s.name, since=1)


def test_a_destroy_is_told_by_its_cause_before_the_exit(session, service):
    s = session()
    with service.client() as c:
        c.call("events.subscribe", sessionId=s.name, since=1)
        c.call("sandbox.exec", sessionId=s.name, argv=["sleep", "60"])
        s.client.call("sandbox.destroy", sessionId=s.name)
        seen = []
        while not seen or seen[-1].get("state") != "destroyed":
            seen.append(c.event(lambda e: True))
    assert [e["seq"] for e in seen] == list(range(1, len(seen) + 1))
    told = [(e["type"], e.get("state") or e.get("cause")) for e in seen]
    assert told[:5] == [("starting", None), ("state", "created"),
                        ("ready", None), ("state", "warm"),
                        ("state", "active")]
    assert told.index(("killed", "manual")) < told.index(("exit", None))


@pytest.mark.parametrize("params,cause", [
    ({"timeoutMs": 300}, "timeout"), ({"silenceMs": 300}, "silence")])
def test_a_limit_of_a_command_kills_it_with_its_cause(session, service, params,
                                                      cause):
    s = session()
    with service.client() as c:
        c.call("events.subscribe", sessionId=s.name)
        c.call("sandbox.exec", sessionId=s.name, argv=["sleep", "60"],
               **params)
        assert c.event("killed")["cause"] == cause
        code = c.event("exit")["exitCode"]
    assert code == 124 if cause == "timeout" else code > 128
    assert s.ok("echo the session goes on") == "the session goes on"


def test_the_line_of_a_time_out_rounds_up(session):
    s = session()
    assert s.run("sleep", "60", timeoutMs=300)[::2] == (
        124, b"command exceeded 1s\n")


def test_wall_and_idle_end_the_session(session, service):
    for spec, cause in (({"limits": {"wallMs": 400}}, "wall"),
                        ({"idleMs": 400}, "idle")):
        s = session(**spec)
        with service.client() as c:
            c.call("events.subscribe", sessionId=s.name, since=1)
            assert c.event("killed")["cause"] == cause
            assert c.event(lambda e: e.get("state") == "destroyed")


def test_a_further_command_is_limit_and_ends_no_other():
    if missing():
        pytest.skip(missing())
    with Instance("limit idle none\nlimit execs 2\n") as service:
        with service.client() as c:
            c.launch("few", service.workdir())
            for _ in range(2):
                c.call("sandbox.exec", sessionId="few", argv=["sleep", "60"])
            with pytest.raises(RpcError) as caught:
                c.call("sandbox.exec", sessionId="few", argv=["true"])
            assert caught.value.name == "limit"
            assert len(c.call("sandbox.get", sessionId="few")["execs"]) == 2


def test_shell_is_bash_and_not_a_login_shell(session, client):
    s = session()
    client.call("events.subscribe", sessionId=s.name)
    exec_id = client.call(
        "sandbox.exec", sessionId=s.name,
        shell="echo $0 ${BASH_VERSION%%.*} $PATH; shopt -q login_shell || "
        "echo no")["execId"]
    rows = client.collect(exec_id)[1].decode().split("\n")
    assert rows[0].startswith("/bin/bash 5 /usr/local/bin:/usr/bin:/bin")
    assert rows[1] == "no"


def test_confinement_has_its_seven_entries(session):
    rows = session().handle["details"]["confinement"]
    assert list(rows) == ["files", "names", "network", "environment",
                          "commands", "push", "kernel"]
    assert all(row["value"] in ("enforced", "partial", "none") and
               row["reason"] for row in rows.values())
    assert rows["names"]["value"] == "partial"
    assert "owner" in rows["names"]["reason"]
    assert "no kernel boundary" in rows["kernel"]["reason"]


def test_a_stdin_that_is_absent_is_closed_and_one_that_stays_streams(session,
                                                                     client):
    s = session()
    assert s.run("cat")[:2] == (0, b"")
    assert s.run("cat", stdin=b"given")[:2] == (0, b"given")
    client.call("events.subscribe", sessionId=s.name)
    exec_id = client.call("sandbox.exec", sessionId=s.name, argv=["cat"],
                          stdin=True)["execId"]
    assert client.call("sandbox.stdin", sessionId=s.name, execId=exec_id,
                       data=b"more", eof=True)["accepted"] == 4
    assert client.collect(exec_id)[:2] == (0, b"more")


def few_descriptors(launcherd, more):
    """launcherd may open `more` descriptors above those it has."""
    top = max(int(fd) for fd in os.listdir("/proc/%d/fd" % launcherd))
    _, hard = resource.prlimit(launcherd, resource.RLIMIT_NOFILE)
    resource.prlimit(launcherd, resource.RLIMIT_NOFILE,
                     (top + more, hard))


def failed_launch(service, client, name):
    """A launch that fails for want of descriptors in launcherd: after the
    look-up, which needs fewer to be free."""
    launcherd = service.children()["stockade-launcherd"]
    before = resource.prlimit(launcherd, resource.RLIMIT_NOFILE)
    workdir = service.workdir()
    try:
        for more in range(16, 64, 4):
            few_descriptors(launcherd, more)
            with pytest.raises(RpcError) as error:
                client.launch(name, workdir)
            if error.value.name == "hostError":
                return error.value
        pytest.fail("no launch failed in launcherd")
    finally:
        resource.prlimit(launcherd, resource.RLIMIT_NOFILE, before)


def test_a_session_in_error_can_only_be_looked_at_and_destroyed(service,
                                                               client):
    """SPEC K22; the twin is the same label afterwards."""
    error = failed_launch(service, client, "failed")
    assert error.detail["step"] and error.detail["errno"] == errno.EMFILE
    got = client.call("sandbox.get", sessionId="failed")
    assert got["alive"] is False and got["execs"] == []
    assert got["handle"]["state"] == "error"
    assert got["handle"]["error"]["step"] == error.detail["step"]
    for method, params in (("exec", {"argv": ["true"]}), ("suspend", {}),
                           ("resume", {})):
        with pytest.raises(RpcError) as refused:
            client.call("sandbox." + method, sessionId="failed", **params)
        assert refused.value.name == "badState", method
    for method, params in (("stdin", {"eof": True}), ("signal", {
            "signal": "TERM"}), ("resize", {"rows": 1, "cols": 1})):
        with pytest.raises(RpcError) as refused:
            client.call("sandbox." + method, sessionId="failed", execId="x1",
                        **params)
        assert refused.value.name == "notFound", method
    assert client.call("sandbox.destroy", sessionId="failed")["state"] == \
        "destroyed"
    with pytest.raises(RpcError) as gone:
        client.call("sandbox.get", sessionId="failed")
    assert gone.value.name == "notFound"
    client.launch("failed", service.workdir())
    assert client.run("failed", ["true"])[0] == 0
    client.call("sandbox.destroy", sessionId="failed")


def test_a_label_whose_launch_failed_may_be_used_at_once(service, client):
    failed_launch(service, client, "again")
    client.launch("again", service.workdir())
    assert client.run("again", ["true"])[0] == 0
    client.call("sandbox.destroy", sessionId="again")
