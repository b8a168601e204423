"""Daemons are killed under a live sandbox: what goes on, what ends, and that
nothing is left (SPEC A22, A23)."""

import glob
import os
import signal
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import instance  # noqa: E402

WHY = instance.missing()
pytestmark = pytest.mark.skipif(WHY is not None, reason=WHY or "")


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            return f.read().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def wait(test, timeout, what):
    end = time.monotonic() + timeout
    while not test():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def cgroups(service):
    """The host's cgroups of this instance: the supervisor names it after its
    runtime directory (FNV-1a, supervisor/runtime.c)."""
    value = 0xcbf29ce484222325
    for byte in service.runtime.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return glob.glob("/sys/fs/cgroup/**/stockade-%016x*" % value,
                     recursive=True)


@pytest.fixture
def service():
    with instance.Instance() as running:
        yield running
        running.stop()
        assert cgroups(running) == []


def reconnect(service, timeout=5.0):
    end = time.monotonic() + timeout
    while True:
        try:
            return service.client()
        except (OSError, instance.Closed):
            assert time.monotonic() < end, service.read_log()
            time.sleep(0.01)


def kill(service, name):
    """Kills a daemon and waits until another one has its name."""
    old = service.children()[name]
    os.kill(old, signal.SIGKILL)
    wait(lambda: service.children().get(name) not in (None, old), 5,
         service.read_log())


def launch(service, client, name):
    handle = client.launch(name, service.workdir(), detach=True)
    return handle["details"]["pid"]


def test_a_sandbox_outlives_control(service):
    client = service.client()
    pid = launch(service, client, "kept")
    assert cgroups(service)                 # the twin of the fixture's check
    started = client.call("sandbox.exec", sessionId="kept",
                          argv=["sleep", "300"])
    before = time.monotonic()
    os.kill(service.children()["stockade-control"], signal.SIGKILL)
    client = reconnect(service)
    assert time.monotonic() - before < 2
    assert alive(pid)
    execs = client.call("sandbox.get", sessionId="kept", adopt=True)["execs"]
    assert [e["execId"] for e in execs] == [started["execId"]]
    assert client.run("kept", ["echo", "on"]) == (0, b"on\n", b"")


def told_until_exit(client, exec_id):
    """[(type, what it carries)] of a command, less its output."""
    told = []
    while not told or told[-1][0] != "exit":
        event = client.event(lambda e: e.get("execId") == exec_id, 15)
        told.append((event["type"], event.get(
            {"stderr": "data", "killed": "cause", "exit": "exitCode"}.get(
                event["type"]))))
    return told


def test_a_time_out_outlives_control(service):
    client = service.client()
    launch(service, client, "kept")
    exec_id = client.call("sandbox.exec", sessionId="kept", timeoutMs=3000,
                          argv=["sleep", "300"])["execId"]
    begin = time.monotonic()
    os.kill(service.children()["stockade-control"], signal.SIGKILL)
    client = reconnect(service)
    client.call("events.subscribe", sessionId="kept")
    assert told_until_exit(client, exec_id) == [
        ("stderr", b"command exceeded 3s\n"), ("killed", "timeout"),
        ("exit", 124)]
    assert 2.5 < time.monotonic() - begin < 5


def test_a_time_out_that_passed_meanwhile_ends_the_command(service):
    """TERM is ignored, so control is killed between TERM and KILL."""
    client = service.client()
    launch(service, client, "kept")
    exec_id = client.call(
        "sandbox.exec", sessionId="kept", timeoutMs=100,
        argv=["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])["execId"]
    client.call("events.subscribe", sessionId="kept")
    client.event("stderr", 5)
    os.kill(service.children()["stockade-control"], signal.SIGKILL)
    client = reconnect(service)
    client.call("events.subscribe", sessionId="kept")
    told = told_until_exit(client, exec_id)
    assert told[-2:] == [("killed", "timeout"), ("exit", 124)]


def test_a_silence_limit_outlives_control(service):
    client = service.client()
    launch(service, client, "kept")
    exec_id = client.call("sandbox.exec", sessionId="kept", silenceMs=2000,
                          argv=["sleep", "300"])["execId"]
    os.kill(service.children()["stockade-control"], signal.SIGKILL)
    client = reconnect(service)
    client.call("events.subscribe", sessionId="kept")
    assert ("killed", "silence") in told_until_exit(client, exec_id)


@pytest.mark.parametrize("name", ["stockade-proxyd", "stockade-resolver"])
def test_a_sandbox_outlives_its_proxy_and_gets_a_new_one(service, name):
    client = service.client()
    pid = launch(service, client, "kept")
    kill(service, name)
    assert alive(pid)
    script = ("import socket; s = socket.create_connection(('127.0.0.1', "
              "3128), 10); s.sendall(b'CONNECT no.invalid:443 HTTP/1.1\\r\\n"
              "Host: no.invalid:443\\r\\n\\r\\n'); print(s.recv(64)"
              ".split(b' ')[1].decode())")
    status, out, err = client.run("kept", ["python3", "-c", script])
    assert (status, out) == (0, b"403\n"), err


def test_sandboxes_end_with_launcherd_and_new_ones_start(service):
    client = service.client()
    pid = launch(service, client, "gone")
    client.call("events.subscribe", sessionId="gone")
    os.kill(service.children()["stockade-launcherd"], signal.SIGKILL)
    assert client.event("killed", 5)["cause"] == "service"
    wait(lambda: not alive(pid), 2, "the run goes on")
    wait(lambda: "stockade-launcherd" in service.children(), 5,
         service.read_log())
    end = time.monotonic() + 5
    while True:
        try:
            launch(service, client, "new")
            break
        except instance.RpcError as e:
            assert time.monotonic() < end, e
            time.sleep(0.05)
    assert client.run("new", ["true"])[0] == 0


def test_everything_ends_with_stockaded_and_the_next_start_is_clean(service):
    client = service.client()
    pids = [launch(service, client, "gone")]
    pids += service.children().values()
    service.process.kill()
    service.process.wait()
    wait(lambda: not any(alive(pid) for pid in pids), 2, pids)
    service.start()
    client = service.client()
    assert client.call("sandbox.list")["handles"] == []
    launch(service, client, "gone")         # the name is free again
    assert client.run("gone", ["true"])[0] == 0


def test_a_stop_leaves_nothing(service):
    client = service.client()
    pids = [launch(service, client, "s%d" % i) for i in range(3)]
    pids += service.children().values()
    assert service.stop() == 0
    assert not any(alive(pid) for pid in pids)
    assert os.listdir(service.runtime) == []
