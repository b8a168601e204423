"""Limits where cgroup v2 is all there is and the service has a cgroup of its
own with the controllers delegated, as in a unit with Delegate=yes (SPEC C15,
K19). Run by tests/vm/jobs/cgroup2: it makes and removes cgroups at the root of
the tree."""

import glob
import os
import signal
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.environ["STOCKADE_SOURCE"], "tests"))
import instance  # noqa: E402
from instance import Instance, RpcError  # noqa: E402

ROOT = "/sys/fs/cgroup"
PYTHON = "/usr/bin/python3"
HOG = "x = b'x' * (256 << 20)"
# Sixty attempts, forty of them refused where pids is 20.
FORKS = """
import os, time
refused = 0
for i in range(60):
    try:
        if os.fork() == 0:
            time.sleep(60)
    except OSError:
        refused += 1
print(refused, flush=True)
time.sleep(60)
"""


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def until(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def pids_of(run):
    """Of its broker, and of what that serves."""
    return {int(p) for directory in (run, run + "/processes")
            for p in read(directory + "/cgroup.procs").split()}


class Unit(Instance):
    """The service alone in ROOT/name."""

    def __init__(self, name="unit", conf=""):
        super().__init__("limit idle none\n" + conf, hosts={})
        self.cgroup = os.path.join(ROOT, name)

    def own_network(self):
        os.makedirs(self.cgroup, exist_ok=True)
        return ["sh", "-c", 'echo $$ >%s/cgroup.procs && exec "$@"' %
                self.cgroup, "sh"]

    def runs(self):
        return glob.glob(self.cgroup + "/stockade-*/run-*")

    def __exit__(self, *args):
        super().__exit__(*args)
        until(self.removed, "a process of the service is left")

    def removed(self):
        try:
            for base, _, _ in os.walk(self.cgroup, topdown=False):
                os.rmdir(base)
        except OSError:
            return False
        return True


@pytest.fixture(scope="class")
def unit():
    with Unit() as running:
        yield running


@pytest.fixture
def client(unit):
    with unit.client() as c:
        yield c


def start(client, name, *argv):
    client.call("events.subscribe", sessionId=name)
    return client.call("sandbox.exec", sessionId=name, argv=list(argv))


def launch(unit, client, name, **limits):
    client.launch(name, unit.workdir(), limits=limits)
    directory, = unit.runs()
    return directory


def test_the_tree_is_as_assumed():
    assert " - cgroup " not in read("/proc/self/mountinfo")
    assert {"memory", "pids", "cpu"} <= set(read(
        ROOT + "/cgroup.subtree_control").split())


class TestUnit:
    def test_daemons_make_room_for_controllers(self, unit):
        """A cgroup with processes cannot give controllers to its children."""
        assert read(unit.cgroup + "/cgroup.procs") == ""
        leaf = read(unit.cgroup + "/stockade-service/cgroup.procs").split()
        assert {unit.process.pid, *unit.children().values()} <= {
            int(pid) for pid in leaf}
        assert {"memory", "pids", "cpu"} <= set(read(
            unit.cgroup + "/cgroup.subtree_control").split())
        probe = unit.ctl("probe").stdout.decode()
        assert "limits: memory pids cpu" in probe

    def test_limits_are_the_kernels(self, unit, client):
        run = launch(unit, client, "set", memoryBytes=100 << 20, pids=33,
                     cpus=1.5)
        assert {name: read(run + "/" + name) for name in (
            "memory.max", "memory.oom.group", "pids.max", "cpu.max")} == {
                "memory.max": str(100 << 20), "memory.oom.group": "1",
                "pids.max": "33", "cpu.max": "150000 100000"}
        if os.path.exists(run + "/memory.swap.max"):
            assert read(run + "/memory.swap.max") == "0"
        # Everything of the run is in it, its broker too, and is limited there.
        pids = pids_of(run)
        assert len(pids) >= 2
        assert "stockade-broker" in {instance.comm(p) for p in pids}
        assert read(run + "/pids.current") == str(len(pids))
        assert read(run + "/cgroup.subtree_control") == ""
        client.call("sandbox.destroy", sessionId="set")
        assert unit.runs() == []

    def test_too_much_memory_kills_the_run_as_a_group(self, unit, client):
        run = launch(unit, client, "oom", memoryBytes=64 << 20)
        start(client, "oom", "/bin/sleep", "1000")
        bystanders = [str(p) for p in pids_of(run)]
        start(client, "oom", PYTHON, "-c", HOG)
        killed = client.event("killed", 60)
        assert (killed["cause"], killed["limit"]) == ("oom", 64 << 20)
        assert 60 << 20 <= killed["peak"] <= 64 << 20
        until(lambda: not any(os.path.exists("/proc/" + p) for p in bystanders),
              "a process of the run is left")
        until(lambda: unit.runs() == [], "the cgroup is left")
        # The twin: without the limit the same program ends well.
        client.launch("free", unit.workdir())
        assert client.run("free", [PYTHON, "-c", HOG])[0] == 0
        client.call("sandbox.destroy", sessionId="free")

    def test_refused_forks_are_told_once_and_as_such(self, unit, client):
        run = launch(unit, client, "forks", pids=20)
        start(client, "forks", PYTHON, "-c", FORKS)
        notice = client.event("notice", 60)
        assert notice["code"] == "pidLimit"
        refused = int(client.event("stdout", 60)["data"])
        assert refused >= 40
        assert read(run + "/pids.events") == "max %d" % refused
        client.call("sandbox.destroy", sessionId="forks")
        told = []
        client.event(lambda e: told.append(e) or
                     e.get("state") == "destroyed", 60)
        assert [e["code"] for e in told if e["type"] == "notice"] == []
        assert {e["cause"] for e in told if e["type"] == "killed"} <= {"manual"}

    def test_a_new_launcherd_finds_its_place(self, unit, client):
        """The next launcherd is born where the daemons are now, which is not
        where the runs belong."""
        launch(unit, client, "before", memoryBytes=64 << 20)
        old = unit.children()["stockade-launcherd"]
        os.kill(old, signal.SIGKILL)
        until(lambda: unit.children().get("stockade-launcherd", old) != old,
              "no new launcherd")
        end = time.monotonic() + 20
        while True:
            try:
                client.launch("after", unit.workdir(),
                              limits={"memoryBytes": 64 << 20})
                break
            except RpcError:
                assert time.monotonic() < end
                time.sleep(0.1)
        run, = unit.runs()
        assert read(run + "/memory.max") == str(64 << 20)
        assert os.listdir(unit.cgroup + "/stockade-service") and not glob.glob(
            unit.cgroup + "/stockade-service/stockade-*")
        start(client, "after", PYTHON, "-c", HOG)
        assert client.event("killed", 60)["cause"] == "oom"


def test_nothing_is_left_at_the_end():
    with Unit("short") as unit, unit.client() as client:
        client.launch("one", unit.workdir())
        assert len(unit.runs()) == 1
        unit.stop()
        assert glob.glob(unit.cgroup + "/stockade-*/run-*") == []


def test_a_strangers_presence_does_not_cost_the_limits():
    """Started from a login session, say: the cgroup cannot be had alone, and
    the runs go below the root of the tree."""
    os.makedirs(ROOT + "/shared", exist_ok=True)
    stranger = os.fork()
    if stranger == 0:
        write(ROOT + "/shared/cgroup.procs", "0")
        signal.pause()
    try:
        until(lambda: read(ROOT + "/shared/cgroup.procs"), "no stranger")
        with Unit("shared") as unit, unit.client() as client:
            client.launch("one", unit.workdir(),
                          limits={"memoryBytes": 64 << 20})
            assert str(stranger) in read(
                unit.cgroup + "/cgroup.procs").split()
            start(client, "one", PYTHON, "-c", HOG)
            assert client.event("killed", 60)["cause"] == "oom"
            os.kill(stranger, signal.SIGKILL)
            os.waitpid(stranger, 0)
            stranger = 0
    finally:
        if stranger > 0:
            os.kill(stranger, signal.SIGKILL)
            os.waitpid(stranger, 0)


def test_limit_without_a_controller():
    """Last: the whole tree loses its memory controller."""
    write(ROOT + "/cgroup.subtree_control", "-memory")
    try:
        with Unit("poor", "limit memory 256M\n") as unit, \
                unit.client() as client:
            with pytest.raises(RpcError) as refused:
                client.launch("named", unit.workdir(),
                              limits={"memoryBytes": 64 << 20})
            assert refused.value.name == "unavailable", refused.value
            handle = client.launch("default", unit.workdir())
            assert handle["state"] in ("warm", "ready")
            client.call("events.subscribe", sessionId="default", since=1)
            assert client.event("notice", 60)["code"] == "limitNotSet"
    finally:
        write(ROOT + "/cgroup.subtree_control", "+memory")
