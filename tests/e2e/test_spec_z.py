"""SPEC Z1, Z3, Z10..Z12: reload of a running service, includes, owners, and
that nothing of a client is configuration."""

import os
import signal
import subprocess
import time

import pytest

import instance as instance_module
from instance import Instance, RpcError


@pytest.fixture
def own():
    if instance_module.missing():
        pytest.skip(instance_module.missing())
    with Instance("limit idle none\n") as service:
        yield service


def add(service, text):
    with open(service.conf, "a", encoding="utf-8") as f:
        f.write(text + "\n")


def wait_log(service, text, count=1, timeout=10):
    end = time.monotonic() + timeout
    while service.read_log().count(text) < count:
        assert time.monotonic() < end, service.read_log()[-2000:]
        time.sleep(0.02)


def patterns(client, session):
    plan = client.call("sandbox.explain", sessionId=session)["plan"]
    return {row["pattern"] for row in plan["network"]["allow"]}


@pytest.mark.skipif(os.path.exists("/etc/stockade"), reason="configured")
def test_without_a_configuration_all_is_default():
    if instance_module.missing():
        pytest.skip(instance_module.missing())
    command = [instance_module.STOCKADED, "-n", "--libexec",
               os.path.join(instance_module.BUILD, "libexec")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    assert (done.returncode, done.stdout) == (0, "configuration OK\n"), \
        done.stderr


@pytest.mark.parametrize("check", [["-n"], ["-nv"], []])
@pytest.mark.parametrize("path", ["/no/such/stockade.conf",
                                  "/etc/no-such-stockade.conf"])
def test_a_configuration_that_is_named_has_to_be_there(check, path):
    if instance_module.missing():
        pytest.skip(instance_module.missing())
    done = subprocess.run(
        [instance_module.STOCKADED, *check, "-f", path, "--libexec",
         os.path.join(instance_module.BUILD, "libexec")],
        capture_output=True, text=True, timeout=10)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.rstrip("\n").endswith(
        path + ": No such file or directory"), done.stderr


def test_a_reload_misses_a_configuration_that_was_named(own):
    os.rename(own.conf, own.conf + ".old")
    with own.client() as c:
        with pytest.raises(RpcError):
            c.call("admin.reload")
        os.rename(own.conf + ".old", own.conf)
        c.call("admin.reload")


def test_a_reload_applies_to_new_sessions_and_says_what_waits(own):
    with own.client() as c:
        c.launch("before", own.workdir())
        add(own, 'allow host { "new.example.org" }\nlimit execs 3\n'
                 'client-group "games"')
        answer = c.call("admin.reload")
        assert sorted(answer["changed"]) == sorted([
            '+ allow host { "new.example.org" }', "- limit execs 32",
            "+ limit execs 3", '- client-group "stockade"',
            '+ client-group "games"'])
        assert any("client-group" in row for row in answer["warnings"])
        c.launch("after", own.workdir())
        assert "new.example.org" in patterns(c, "after")
        assert "new.example.org" not in patterns(c, "before")


def test_a_reload_names_what_takes_effect_with_a_restart(own):
    add(own, "sandbox require\npermit user-namespaces on\n"
             "limit sessions 9\nlimit tunnels 8\nlimit tunnel-idle 5m\n"
             "limit tunnels-session 1025\nlog level debug")
    with own.client() as c:
        assert set(c.call("admin.reload")["warnings"]) == {
            "sandbox", "permit user-namespaces", "limit sessions",
            "limit tunnels", "limit tunnels-session", "limit tunnel-idle",
            "log level"}
        assert c.call("status")["setting"] == "on"


def test_fewer_tunnels_of_a_session_need_no_restart(own):
    add(own, "limit tunnels-session 2")
    with own.client() as c:
        assert c.call("admin.reload")["warnings"] == []


def test_a_hangup_reloads_and_an_error_changes_nothing(own):
    add(own, 'allow host { "one.example.org" }')
    own.process.send_signal(signal.SIGHUP)
    wait_log(own, "STOCKADE_EVENT=CONFIG_LOADED", 2)
    with own.client() as c:
        c.launch("one", own.workdir())
        assert "one.example.org" in patterns(c, "one")
        add(own, 'allow host { "two.example.org" }\nfrob')
        own.process.send_signal(signal.SIGHUP)
        wait_log(own, "STOCKADE_EVENT=CONFIG_ERROR")
        with pytest.raises(RpcError) as caught:
            c.call("admin.reload")
        assert caught.value.name == "badParams"
        assert "stockade.conf:" in caught.value.message + repr(
            caught.value.detail)
        c.launch("two", own.workdir())
        assert patterns(c, "two") == patterns(c, "one")


def test_an_include_stands_beside_the_configuration(own):
    with open(os.path.join(own.dir, "more.conf"), "w", encoding="utf-8") as f:
        f.write('allow host { "included.example.org" }\n')
    add(own, 'include "more.conf"')
    with own.client() as c:
        c.call("admin.reload")
        c.launch("s", own.workdir())
        assert "included.example.org" in patterns(c, "s")
        os.chmod(os.path.join(own.dir, "more.conf"), 0o666)
        with pytest.raises(RpcError):
            c.call("admin.reload")


@pytest.mark.parametrize("name", ["../x.conf", "/etc/passwd", "a/b"])
def test_an_include_is_a_single_name(own, name):
    add(own, 'include "%s"' % name)
    with own.client() as c:
        with pytest.raises(RpcError) as caught:
            c.call("admin.reload")
        assert caught.value.name == "badParams"


def test_a_work_tree_is_no_configuration(service, client):
    workdir = service.workdir()
    for name in ("stockade.conf", ".stockade.conf", ".stockaderc"):
        with open(os.path.join(workdir, name), "w", encoding="utf-8") as f:
            f.write('allow host { "evil.example.org" }\nsandbox off\n')
    client.launch("tree", workdir, env={"STOCKADE_SOCKET": "/x",
                                        "CC_SERVER_SANDBOX": "off"})
    try:
        assert "evil.example.org" not in patterns(client, "tree")
    finally:
        client.call("sandbox.destroy", sessionId="tree")
    assert client.call("status")["setting"] == "on"
