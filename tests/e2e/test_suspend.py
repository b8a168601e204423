"""SPEC K17 for runs under name rules: a caller that waits for its broker cannot
be frozen, so the broker answers until everybody is, and is frozen last."""

import os
import time

import pytest

import instance

PYTHON = "/usr/bin/python3"
WRITERS = 4
CYCLES = 20
SUSPEND_S = 2   # at most, each

# Every call is one for the broker; a number that no libc knows must not come
# out of one that is begun again.
WRITER = """
import errno, os, sys
me, n = sys.argv[1], 0
while True:
    n += 1
    try:
        os.close(os.open("f" + me, os.O_CREAT | os.O_WRONLY | os.O_TRUNC))
        os.rename("f" + me, "g" + me)
        os.mkdir("d" + me)
        os.rmdir("d" + me)
        os.unlink("g" + me)
    except OSError as e:
        os.open("failed-%d" % e.errno, os.O_CREAT | os.O_WRONLY)
        raise
    try:
        os.close(os.open(me + ".key", os.O_CREAT | os.O_WRONLY))
        os.open("made", os.O_CREAT | os.O_WRONLY)
    except PermissionError:
        pass
    with open("count" + me, "w") as f:
        f.write("%d" % n)
"""
# Opens that wait: for a reader, with handlers and without.
WAITERS = """
import os, signal, sys, time
os.mkfifo("p")
for i in range(4):
    if os.fork() == 0:
        if i % 2:
            signal.signal(signal.SIGUSR1, lambda *_: None)
        open("up%d" % i, "w").close()
        try:
            fd = os.open("p", os.O_WRONLY)
            os.write(fd, b"%d" % i)
            open("done%d" % i, "w").close()
        except OSError as e:
            open("failed-%d" % e.errno, "w").close()
        os._exit(0)
time.sleep(1000)
"""


def until(true, what, seconds=10.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def start(s, text, *args):
    return s.client.call("sandbox.exec", sessionId=s.name,
                         argv=[PYTHON, "-c", text, *args])["execId"]


def writers(s):
    for i in range(WRITERS):
        start(s, WRITER, str(i))
    until(lambda: all(n > 0 for n in counts(s)), "they do not write")


def counts(s):
    """How often each has been round; 0 for one that writes it just now."""
    found = []
    for i in range(WRITERS):
        try:
            with open("%s/count%d" % (s.workdir, i), encoding="ascii") as f:
                found.append(int(f.read() or 0))
        except OSError:
            found.append(0)
    return found


def freeze(s, method="sandbox.suspend"):
    began = time.monotonic()
    state = s.client.call(method, sessionId=s.name)["state"]
    assert time.monotonic() - began < SUSPEND_S, method
    return state


def ticks(pids):
    total = {}
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid, encoding="ascii") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total[pid] = int(fields[11]) + int(fields[12])
    return total


def processes(service):
    """Of all runs, brokers too: what launcherd has below it."""
    return instance.all_pids_below(service.children()["stockade-launcherd"])


def failures(s):
    return [n for n in os.listdir(s.workdir)
            if n.startswith("failed") or n.endswith(".key") or n == "made"]


def test_writers_are_suspended_and_go_on(session, service):
    s = session()
    writers(s)
    for cycle in range(CYCLES):
        assert freeze(s) == "suspended", cycle
        names, before = sorted(os.listdir(s.workdir)), counts(s)
        pids = processes(service)
        assert "stockade-broker" in [instance.comm(p) for p in pids]
        used = ticks(pids)
        time.sleep(0.3 if cycle == 0 else 0.02)
        assert ticks(pids) == used
        assert sorted(os.listdir(s.workdir)) == names and counts(s) == before
        assert freeze(s, "sandbox.resume") == "active"
        until(lambda: all(late > early for late, early in
                          zip(counts(s), before)), "they do not go on")
    assert failures(s) == []


def test_the_broker_is_what_waits_least(session):
    """Resumed and suspended at once, so that calls are under way each time."""
    s = session()
    writers(s)
    for _ in range(CYCLES):
        assert freeze(s) == "suspended"
        assert freeze(s, "sandbox.resume") == "active"
    before = counts(s)
    until(lambda: all(late > early for late, early in zip(counts(s), before)),
          "they do not go on")
    assert failures(s) == []


def test_an_open_that_waits_is_suspended_and_waits_on(session, service):
    s = session()
    start(s, WAITERS)
    until(lambda: all(os.path.exists("%s/up%d" % (s.workdir, i))
                      for i in range(4)), "they are not up")
    time.sleep(0.1)
    for _ in range(5):
        assert freeze(s) == "suspended"
        used = ticks(processes(service))
        time.sleep(0.05)
        assert ticks(processes(service)) == used
        assert freeze(s, "sandbox.resume") == "active"
        time.sleep(0.02)
    assert [n for n in os.listdir(s.workdir) if n.startswith("done")] == []
    out = s.ok("timeout 5 head -c 4 p")
    assert sorted(out) == ["0", "1", "2", "3"]
    until(lambda: all(os.path.exists("%s/done%d" % (s.workdir, i))
                      for i in range(4)), "they are not done")
    assert failures(s) == []


@pytest.mark.parametrize("text", [WRITER, WAITERS], ids=["writers", "fifo"])
def test_suspended_and_destroyed(session, service, text):
    before = len(processes(service))
    s = session()
    for i in range(WRITERS if text is WRITER else 1):
        start(s, text, str(i))
    time.sleep(0.3)
    assert freeze(s) == "suspended"
    began = time.monotonic()
    s.destroy()
    assert time.monotonic() - began < SUSPEND_S
    until(lambda: len(processes(service)) <= before, "processes are left")


def test_suspended_until_the_session_s_time_is_over(session, service):
    before = len(processes(service))
    s = session(limits={"wallMs": 1500})
    s.client.call("events.subscribe", sessionId=s.name)
    writers(s)
    assert freeze(s) == "suspended"
    assert s.client.event("killed", 5)["cause"] == "wall"
    until(lambda: len(processes(service)) <= before, "processes are left")
    assert failures(s) == []


def test_suspended_until_a_command_s_time_is_over(session):
    s = session()
    s.client.call("events.subscribe", sessionId=s.name)
    exec_id = s.client.call(
        "sandbox.exec", sessionId=s.name, timeoutMs=500,
        argv=[PYTHON, "-c", WRITER, "0"])["execId"]
    until(lambda: counts(s)[0] > 0, "it does not write", 5)
    assert freeze(s) == "suspended"
    time.sleep(0.8)
    freeze(s, "sandbox.resume")
    end = s.client.event(lambda e: e["type"] == "exit" and
                         e["execId"] == exec_id, 10)
    assert end["exitCode"] == 124
    assert failures(s) == []
