"""The mechanism bpf-lsm without daemons, in a kernel that has it
(tests/vm/jobs/bpf): the broker's cases, and what the broker cannot do. Every
refusal has its control without a label."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import bpfbox
from bpfbox import Box
import brokerbox
from brokerbox import TOOLS, Tree
from test_broker import CASES, HELPERS, kernel, prepare, program

WHY = bpfbox.can_run()
pytestmark = pytest.mark.skipif(WHY is not None, reason=str(WHY))


@pytest.fixture
def tree():
    with Tree() as it:
        yield it


@pytest.fixture(scope="module", autouse=True)
def pins():
    yield
    assert bpfbox.unload().returncode == 0
    assert not os.path.exists(bpfbox.PINS)


@pytest.mark.parametrize("code, action, path, files, rule", CASES)
def test_refused_with_one_violation(tree, code, action, path, files, rule):
    code = HELPERS % code
    with Tree() as other:
        prepare(other, files)
        said = brokerbox.Box(other, mode="none").run(
            program(other, code))[1].split()[0]
        if said == "ENOENT" and "AT_EMPTY_PATH" in code and kernel() < (6, 10):
            pytest.skip("this kernel wants CAP_DAC_READ_SEARCH for it")
        assert said == "ok"
    prepare(tree, files)
    box = Box(tree)
    status, said = box.run(program(tree, code))
    assert (status, said.split()) == (0, ["EPERM", "same"])
    assert len(box.denials) == 1, [vars(d) for d in box.denials]
    denial = box.denials[0]
    assert denial.name == action
    assert denial.path == tree.root + "/" + path
    assert denial.count == 1 and denial.pid > 1
    assert os.path.basename(denial.exe) == os.path.basename(
        os.path.realpath("/bin/sh" if "sh" in code and "'sh'" in code
                         else sys.executable))
    assert denial.rule if rule is None else denial.rule == rule


# ------------------------------------------------- what the broker leaves open

MODE, DATA, READ = "file-write-mode", "file-write-data", "file-read*"
META = {
    "chmod": "os.chmod('.env', 0o600)",
    "fchmod": "os.fchmod(os.open('.env', 0), 0o600)",
    "chown": "os.chown('.env', -1, os.getgid())",
    "utime": "os.utime('.env')",
    "setxattr": "os.setxattr('.env', 'user.a', b'b')",
    "removexattr": "os.removexattr('.env', 'user.old')",
    "acl": "os.setxattr('.env', 'system.posix_acl_access', ACL)",
}
ACL = ("ACL = bytes.fromhex('02000000' '01000600ffffffff' '04000400ffffffff'"
       " '20000400ffffffff')\n")


@pytest.mark.parametrize("name", META)
def test_metadata_of_a_protected_file_stays(name):
    code = ACL + HELPERS % META[name]
    for box in (brokerbox.Box, Box):
        with Tree() as tree:
            os.setxattr(tree.make("root/.env"), "user.old", b"x")
            b = (box(tree, mode="none") if box is brokerbox.Box
                 else box(tree))
            said = b.run(program(tree, code))[1].split()[0]
            assert said == ("ok" if box is brokerbox.Box else "EPERM")
            if box is Box:
                assert [(d.name, d.path) for d in b.denials] == [
                    (MODE, tree.root + "/.env")]


READS = {
    "open": ("os.open('d/secret', 0)", READ),
    "path": ("os.open('/proc/self/fd/%d' % os.open('d/secret', os.O_PATH), 0)",
             READ),
    "link": ("os.link('d/secret', 'other')", "file-write-link"),
    "rename": ("os.rename('d/secret', 'other')", "file-write-rename"),
    "execute": ("os.execv('d/secret', ['x'])", READ),
}


@pytest.mark.parametrize("name", READS)
def test_a_denied_file_is_not_read(tree, name):
    code, action = READS[name]
    os.chmod(tree.make("root/d/secret"), 0o755)
    tree.make("root/d/open")
    box = Box(tree, rules=["-R", "**/secret"])
    said = box.run(program(tree, HELPERS % code))[1].split()
    assert said == ["EPERM", "same"]
    assert [(d.name, d.path) for d in box.denials] == [
        (action, tree.root + "/d/secret")]
    box.run(program(tree, "os.stat('d/secret'); open('d/open').read()"))
    assert box.denials == []


def test_a_bind_mount_in_a_user_namespace_is_no_way_round(tree):
    tree.make("root/d/")
    code = ("import subprocess; print(subprocess.run(['unshare', '-Urm', "
            "'sh', '-c', 'mount --bind . /mnt && : >/mnt/plain && "
            ": >/mnt/d/.env'], stderr=-3).returncode)")
    box = Box(tree)
    box.run(program(tree, code))
    assert tree.names() == ["d", "plain"]
    assert [d.path for d in box.denials] == [tree.root + "/d/.env"]


def test_calls_answer_as_without_the_guard():
    said = []
    for box in (brokerbox.Box, Box):
        with Tree() as tree:
            b = (box(tree, mode="none") if box is brokerbox.Box
                 else box(tree))
            status, text = b.run(
                [sys.executable, os.path.join(
                    os.path.dirname(os.path.abspath(__file__)), "..",
                    "guard", "semantics.py"), tree.root, tree.out],
                timeout=300)
            assert status == 0
            assert [(d.name, d.path) for d in b.denials] == []
            said.append(text.splitlines())
    assert len(said[0]) > 2000
    assert [(a, b) for a, b in zip(*said) if a != b] == []


def test_race_leaves_no_protected_name(tree):
    box = Box(tree)
    status, said = box.run([os.path.join(TOOLS, "attack"), "race", tree.root,
                            tree.out, "20000"], timeout=300)
    assert status == 0
    assert [n for n in tree.names() if n.endswith(".env")] == []
    assert sum(d.count for d in box.denials) + box.lost > 0


def test_each_refusal_of_a_flood_is_told_or_counted(tree):
    box = Box(tree)
    box.run(program(tree, """
for i in range(5000):
    try: os.mkdir('.env')
    except PermissionError: pass
"""), timeout=200)
    assert len(box.denials) + box.lost == 5000


def test_rules_are_replaced_in_a_live_run(tree):
    box = Box(tree, rules=["-w", "**/a"], other=["-w", "**/b", "-w", "d/e"])
    said = box.run(program(tree, """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print(attempt(os.mkdir, 'a'), attempt(os.mkdir, 'b'))
os.rmdir('b')
os.kill(os.getppid(), signal.SIGUSR1)
signal.sigwait([signal.SIGUSR1])
print(attempt(os.mkdir, 'a'), attempt(os.mkdir, 'b'))
os.mkdir('d')
print(attempt(os.mkdir, 'd/e'))
"""), nest=False)[1].split()
    assert [s == "EPERM" for s in said] == [True, False, False, True, True]


def test_rules_hold_when_the_daemon_is_killed(tree):
    """The pins hold them; and a new run takes nothing over."""
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "out")
        code = """
parent = os.getppid()
print(os.getpid(), flush=True)
while os.getppid() == parent: time.sleep(0.01)
print(attempt(os.mkdir, '.env'), attempt(os.mkdir, 'plain'), flush=True)
while not os.path.exists(%r): time.sleep(0.01)
print(attempt(os.mkdir, 'late'), flush=True)
""" % (tree.out + "/go")
        with open(out, "wb") as f:
            p = subprocess.Popen(Box(tree).arguments(
                scratch, program(tree, code), nest=False), stdout=f)

        def lines(n):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with open(out, encoding="ascii") as f:
                    got = f.read().splitlines()
                if len(got) >= n:
                    return got
                time.sleep(0.02)
            raise AssertionError(got)
        run = int(lines(1)[0])
        p.send_signal(signal.SIGKILL)
        p.wait()
        said = lines(2)[1].split()
        assert said[0] == "EPERM" and said[1] != "EPERM"
        assert bpfbox.bpfbox("-l").stdout.startswith(b"kept")
        with Tree() as other:
            box = Box(other)
            assert box.run(program(other, HELPERS % "os.mkdir('.env')"))[
                1].split()[0] == "EPERM"
        # Its slot was given to another run: it may do nothing more.
        tree.make("out/go")
        time.sleep(0.5)
        assert "late" not in tree.names()
        try:
            os.kill(run, signal.SIGKILL)
        except ProcessLookupError:
            pass
