#!/usr/bin/python3
"""Storms of writes in guarded runs: tests/e2e/storms.py [TIMES [ATTEMPTS]]
(20, 1000000). Root, a built tree with its test programs (STOCKADE_BUILD). Not
part of `check`, which has a few of each in test_storms.py.

race    names that change under the call, ATTEMPTS times: no protected name;
        with nothing of ours there are some
kill    SIGKILL of the broker and of each daemon in the storm, TIMES each: no
        protected name, and the run goes on guarded or ends with its reason
start   SIGKILL of each at any moment of a start, TIMES each: a program that
        would make a protected name has made none
"""

import os
import pwd
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import instance  # noqa: E402

TOOLS = os.path.join(instance.BUILD, "tests", "guard")
ATTACK = os.path.join(TOOLS, "attack")
ENDLESS = 1 << 31
AN_INSTANCE = 4     # the delay before a restart doubles
END_S = 3
START_MS = 40
KEPT = ("stockade-control", "stockade-proxyd", "stockade-resolver")
PARTS = ("stockade-broker", "stockade-launcherd", *KEPT, "stockaded")


def protected(path):
    """Names in a tree that no run may have made."""
    return [os.path.join(at, n) for at, dirs, files in os.walk(path)
            for n in dirs + files if n.endswith(".env")]


def until(test, what, limit=END_S):
    """Seconds until `test` held."""
    begin = time.monotonic()
    while not test():
        assert time.monotonic() - begin < limit, what
        time.sleep(0.005)    # nobody announces it
    return time.monotonic() - begin


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            return f.read().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def line(work, attempts):
    return "mkdir -p /tmp/out && exec %s race %s /tmp/out %d" % (
        ATTACK, work, attempts)


def launch(service, client, name):
    """Once what was killed before is back."""
    work = service.workdir()
    end = time.monotonic() + 20
    while True:
        try:
            client.launch(name, work, bindMounts=[
                {"hostPath": work}, {"hostPath": TOOLS, "readOnly": True}])
            return work
        except instance.RpcError as error:
            if error.name != "restarting" or time.monotonic() > end:
                raise
        time.sleep(0.05)


# ---------------------------------------------------------------- race

def race(service, attempts):
    """What the attack counted, and how many violations were told."""
    with service.client() as c:
        work = launch(service, c, "race")
        status, out, err = c.run("race", ["sh", "-c", line(work, attempts)],
                                 timeout=attempts / 1000 + 60)
        assert status == 0, err
        assert protected(work) == []
        time.sleep(1.5)     # D15: within a second
        told = sum(v["count"] for v in c.violations("race"))
        c.call("sandbox.destroy", sessionId="race")
    return dict(row.split("=") for row in out.decode().split()), told


def race_bare(attempts):
    """Protected names that are left when nobody guards."""
    user = pwd.getpwnam(instance.RUN_USER)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        for name in ("root", "out"):
            os.mkdir(os.path.join(top, name))
            os.chown(os.path.join(top, name), user.pw_uid, user.pw_gid)
        subprocess.run([ATTACK, "race", top + "/root", top + "/out",
                        str(attempts)], check=True, user=user.pw_uid,
                       group=user.pw_gid, extra_groups=[],
                       stdout=subprocess.DEVNULL)
        return protected(top + "/root")


# ---------------------------------------------------------------- kill

def part(service, name):
    if name == "stockaded":
        return service.process.pid
    if name != "stockade-broker":
        return service.children()[name]
    below = instance.all_pids_below(service.children()["stockade-launcherd"])
    return next(p for p in below if instance.comm(p) == name)


def goes_on(service, work, before):
    """Control and its helpers may die: the storm is still refused."""
    def answers():
        try:
            with service.client() as c:
                return c.call("sandbox.get", sessionId="storm")["alive"]
        except (OSError, instance.Closed, instance.RpcError):
            return False
    took = until(answers, "the run is lost")
    assert all(alive(p) for p in before), "a process of the run has ended"
    time.sleep(0.1)     # of more storm
    assert protected(work) == []
    with service.client() as c:
        c.call("sandbox.destroy", sessionId="storm")
    return took


def ends(client, before, name):
    """The run goes, and says why."""
    if name != "stockaded":
        killed = client.event("killed", END_S)
        assert killed["cause"] == "service", killed
    return until(lambda: not any(alive(p) for p in before), "a process is left")


def kill(service, name):
    """Seconds until the run goes on, or has ended."""
    with service.client() as c:
        work = launch(service, c, "storm")
        c.call("events.subscribe", sessionId="storm")
        c.call("sandbox.exec", sessionId="storm",
               argv=["sh", "-c", line(work, ENDLESS)])
        until(lambda: os.path.exists(work + "/good"), "no storm")
        time.sleep(random.random() * 0.2)
        # One that was killed a moment ago is not back at once.
        until(lambda: all(n in service.children() for n in KEPT),
              "a daemon is not back", 10)
        before = instance.all_pids_below(
            service.children()["stockade-launcherd"])
        os.kill(part(service, name), signal.SIGKILL)
        if name not in KEPT:
            took = ends(c, before, name)
    if name in KEPT:
        took = goes_on(service, work, before)
    if name == "stockaded":
        service.process.wait()
        service.start()
    assert protected(work) == []
    return took


# ---------------------------------------------------------------- start

def start(service, name):
    """Whether the program of the run was reached."""
    work = service.workdir()
    run = subprocess.Popen(
        [instance.CTL, "--socket", service.socket, "run", "--quiet", "--user",
         instance.RUN_USER, "-C", work, "--", "sh", "-c",
         "echo >ran; echo >.env; mkdir .env; mv ran .env; ln -s ran .env; :"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    end = time.monotonic() + random.random() * START_MS / 1000
    try:
        while True:
            try:
                pid = part(service, name)
            except (StopIteration, KeyError):
                pid = None      # a broker lives for some of these moments
            if run.poll() is not None or (pid and time.monotonic() > end):
                break
        if pid:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    run.wait(30)
    if name == "stockaded":
        service.process.wait()
        service.start()
    assert protected(work) == [], "half armed"
    until(lambda: subprocess.run(
        [instance.CTL, "--socket", service.socket, "run", "--quiet", "--user",
         instance.RUN_USER, "-C", work, "--", "sh", "-c",
         "! echo 2>/dev/null >.env"], stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False).returncode == 0,
        "no run starts", 10)
    assert protected(work) == []
    return os.path.exists(work + "/ran")


# ---------------------------------------------------------------- all

def rounds(how, name, times):
    """What each returned; the failures are told."""
    got, wrong = [], 0
    while len(got) + wrong < times:
        with instance.Instance("limit idle none") as service:
            for _ in range(min(AN_INSTANCE, times - len(got) - wrong)):
                try:
                    got.append(how(service, name))
                except (AssertionError, OSError, TimeoutError,
                        instance.Closed, instance.RpcError) as error:
                    wrong += 1
                    print("%s of %s: %r" % (how.__name__, name, error))
                    break
    return got, wrong


def main():
    why = instance.missing()
    if why:
        sys.exit("storms: " + why)
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    attempts = int(sys.argv[2]) if len(sys.argv) > 2 else 10 ** 6
    bad = 0
    with instance.Instance("limit idle none") as service:
        begin = time.monotonic()
        counts, told = race(service, attempts)
        print("race: %s; %d violations told, no protected name, %.0f s" % (
            counts, told, time.monotonic() - begin), flush=True)
    left = race_bare(attempts)
    print("race without a guard: %d protected names" % len(left), flush=True)
    bad += not left
    for name in PARTS:
        got, wrong = rounds(kill, name, times)
        print("kill %-18s %d times, %d wrong, at most %.2f s" % (
            name, times, wrong, max(got, default=0)), flush=True)
        bad += wrong
        got, wrong = rounds(start, name, times)
        print("start, kill %-18s %d times, %d wrong, %d had begun" % (
            name, times, wrong, sum(got)), flush=True)
        bad += wrong
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
