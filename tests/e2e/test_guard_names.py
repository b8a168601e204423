"""Names of every kind under the rules of a run (SPEC C19, D8, D9; facts:
names that are no text), and what a host process sees of the guard: nothing."""

import ctypes
import os
import shlex
import signal
import struct
import subprocess
import time

import pytest

import instance
from conftest import own

PYTHON = "/usr/bin/python3"
# Each name is tried: "1 EPERM", or "1 made" and it is gone again.
TRY = """
import errno, os, sys
for i, name in enumerate(os.fsencode(a) for a in sys.argv[1:]):
    try:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        print(i, 'made')
        os.unlink(name)
    except OSError as e:
        print(i, errno.errorcode[e.errno])
"""


def tried(s, names):
    """Of bytes that are no text tests/proc/test_broker.py has its own."""
    status, out, err = s.run(PYTHON, "-c", TRY, *names)
    assert status == 0, err
    return [line.split()[1] for line in out.decode().splitlines()]


ODD = ["new\nline", "back\\slash", "[x]", "st*r", "wh?t", "-dash", "--", "~",
       "end ", " start", "$HOME", "`id`", "a\tb", "\x7f", "\u00e9", "e\u0301",
       "{a,b}", "!x", "#x", "'", '"', "x" * 255]


def test_literal_rules_of_odd_names(service, session, outside):
    """They are names: none is a pattern, none stands for another one."""
    work = service.workdir()
    s = session(protectedPaths=[os.path.join(work, n) for n in ODD],
                bindMounts=[{"hostPath": work}], guestWorkdir=work)
    others = ["newline", "backslash", "x", "star", "what", "dash", "end",
              "start", "a b", "e", "a", "b", "X" * 255, "x" * 254]
    assert tried(s, ODD) == ["EPERM"] * len(ODD)
    assert tried(s, others) == ["made"] * len(others)
    assert os.listdir(work) == []
    end = time.monotonic() + 3
    while len({v["target"] for v in s.client.violations(s.name)}) < len(ODD):
        assert time.monotonic() < end
        time.sleep(0.05)
    done = outside("cd %s && exec %s -c \"$CODE\" %s" % (
        work, PYTHON, " ".join(map(shlex.quote, ODD))), env={"CODE": TRY})
    assert done.stdout.count(b"made") == len(ODD)


def test_patterns_meet_odd_names(session):
    s = session()
    bad = ["\u0130.key", "a\nb.key", "*.key", "[x].pem", "-x.key",
           " .env", "back\\.pem", ".key", "k" * 251 + ".key", "X.KEY", ".Env",
           ".ENV.local", "\u00e9.pem"]
    # ".env " has another name; a key's ending counts, not a key in it.
    free = [".env ", ".env~", ".envy", "x.key ", "x.keys", "key", "env",
            "\u0130.keY\u200b", ".env.example", "x.pem.txt"]
    got = tried(s, bad)
    # " .env" is another name, too: it does not begin with the dot.
    assert got == ["EPERM"] * 5 + ["made"] + ["EPERM"] * 7, got
    assert tried(s, free) == ["made"] * len(free)


def test_rules_of_a_spec_know_upper_and_lower_case(service, session):
    work = service.workdir()
    s = session(denyWrite=[work + "/**/*.Lock"],
                bindMounts=[{"hostPath": work}], guestWorkdir=work)
    assert tried(s, ["a.Lock", "a.lock", "a.LOCK"]) == [
        "EPERM", "made", "made"]


def test_repositories_at_every_depth(session):
    def prepare(path):
        for depth in range(1, 9):
            at = os.path.join(path, *["d%d" % i for i in range(depth)])
            os.makedirs(at, exist_ok=True)
            subprocess.run(["git", "init", "-q", at], check=True)

    s = session(prepare=prepare)
    names = []
    for depth in range(1, 9):
        at = "/".join("d%d" % i for i in range(depth))
        names += [at + "/.git/hooks/post-checkout", at + "/.git/config",
                  at + "/.git/info/attributes", at + "/.git/config.worktree"]
    # One that is there is mounted read-only, or refused by name.
    assert set(tried(s, names)) <= {"EPERM", "EROFS", "EACCES"}
    assert tried(s, [n.replace("hooks/post-checkout", "index.lock")
                     for n in names[::4]]) == ["made"] * 8


# ---------------------------------------------------------------- the host

class Watcher:
    """Names that come to be in some directories, as inotify tells."""

    MASK = 0x100 | 0x80 | 0x40      # IN_CREATE, IN_MOVED_TO, IN_MOVED_FROM

    def __init__(self, *paths):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        for path in paths:
            assert libc.inotify_add_watch(self.fd, os.fsencode(path),
                                          self.MASK) > 0

    def names(self):
        found = []
        try:
            while True:
                data = os.read(self.fd, 65536)
                while data:
                    _, _, _, size = struct.unpack_from("iIII", data)
                    found.append(data[16:16 + size].rstrip(b"\0"))
                    data = data[16 + size:]
        except BlockingIOError:
            return found


def test_nothing_is_made_whatever_is_killed():
    """Neither while a run starts, refuses and ends, nor by the death of any
    part of it."""
    if instance.missing():
        pytest.skip(instance.missing())
    with instance.Instance("limit idle none") as service:
        work = service.workdir()
        subprocess.run(["git", "init", "-q", work], check=True)
        own(work)
        watcher = Watcher(work, work + "/.git", work + "/.git/hooks")
        for name in ("broker", *instance.DAEMONS, "stockaded"):
            with service.client() as c:
                c.launch(name, work, protectedPaths=[work + "/no/such"])
                assert c.run(name, ["sh", "-c", "echo x >.env; mkdir x.key; "
                                    "git config a.b c; ls"])[0] == 0
            pids = instance.all_pids_below(
                service.children()["stockade-launcherd"])
            pid = (service.process.pid if name == "stockaded" else
                   service.children()[name] if name != "broker" else
                   next(p for p in pids if instance.comm(p) ==
                        "stockade-broker"))
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.3)     # what would be left is being left
            if name == "stockaded":
                service.process.wait()
                service.start()
            else:
                service.wait_ready()
        # git's own lock, which it takes away again when it is refused.
        assert set(watcher.names()) <= {b"config.lock"}
        assert sorted(os.listdir(work)) == [".git"]
        assert "config.lock" not in os.listdir(work + "/.git")
        with open(work + "/probe", "w", encoding="ascii"):
            pass
        assert watcher.names() == [b"probe"]
