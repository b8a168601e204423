"""stockade-broker with the test as its launcherd (facts: names are refused when
they are made). Every refusal has a control without the guard, in which the same
program makes the name."""

import difflib
import errno
import os
import re
import signal
import stat
import subprocess
import sys
import time

import pytest

import brokerbox
from brokerbox import (BROKER_GID, BROKER_UID, GID, SLOW, TOOLS, UID, Box,
                       Tree)
import messages

pytestmark = pytest.mark.skipif(brokerbox.can_run() is not None,
                                reason=str(brokerbox.can_run()))

GUARD = os.path.join(messages.SOURCE, "tests", "guard")
ATTACK = os.path.join(TOOLS, "attack")
PYTHON = sys.executable
PRELUDE = """
import os, socket, stat, subprocess, sys, threading, time
sys.path.insert(0, %r)
from semantics import *
os.chdir(ROOT)
""" % GUARD
CREATE, DATA, UNLINK, RENAME, LINK = (
    "file-write-create", "file-write-data", "file-write-unlink",
    "file-write-rename", "file-write-link")


def program(tree, code):
    return [PYTHON, "-c", PRELUDE + code, tree.root, tree.out]


@pytest.fixture
def tree():
    with Tree() as it:
        yield it


def kernel():
    return tuple(int(n) for n in os.uname().release.split(".")[:2])


def numbers(text):
    return {k: float(v) for k, v in re.findall(r"(\w+)=([\d.]+)", text)}


# ---------------------------------------------------------------- refusals

def case(label, code, action, path, *files, rule=None):
    return pytest.param(code, action, path, files, rule, id=label)


CASES = [
    case("open", "os.open('.env', os.O_CREAT | 1)", CREATE, ".env",
         rule="**/.env"),
    case("open_deep", "os.open('a/b/c/d/e/.env', os.O_CREAT | 1)", CREATE,
         "a/b/c/d/e/.env", "root/a/b/c/d/e/"),
    case("open_absolute", "os.open(ROOT + '/.env.local', os.O_CREAT | 1)",
         CREATE, ".env.local", rule="**/.env.*"),
    case("open_key", "os.open('x.key', os.O_CREAT | os.O_EXCL | 2)", CREATE,
         "x.key", rule="**/*.key"),
    case("open_upper", "os.open('SERVER.PEM', os.O_CREAT | 2)", CREATE,
         "SERVER.PEM", rule="**/*.pem"),
    case("creat", "libc.creat(b'.env', 0o644) >= 0 or failed()", CREATE,
         ".env"),
    case("openat2", "openat2('.env', os.O_CREAT | 1, 0o600)", CREATE, ".env"),
    case("openat2_beneath", "openat2('d/.env', os.O_CREAT | 1, 0o600, BENEATH,"
         " os.open('.', 0))", CREATE, "d/.env", "root/d/"),
    case("not_utf8", "os.open(b'\\xff\\xfe.key', os.O_CREAT | 1)", CREATE,
         "\udcff\udcfe.key"),
    case("newline", "os.open('a\\nb.key', os.O_CREAT | 1)", CREATE,
         "a\nb.key"),
    case("long", "os.open('k' * 251 + '.key', os.O_CREAT | 1)", CREATE,
         "k" * 251 + ".key"),
    case("mkdir", "os.mkdir('.env')", CREATE, ".env"),
    case("mkdir_slash", "os.mkdir('.env/')", CREATE, ".env"),
    case("mkdirat", "os.mkdir('.env', dir_fd=os.open('d', 0))", CREATE,
         "d/.env", "root/d/"),
    case("fifo", "os.mkfifo('x.pem')", CREATE, "x.pem"),
    case("mknod", "os.mknod('x.pem', stat.S_IFREG | 0o600)", CREATE, "x.pem"),
    case("symlink", "os.symlink('plain', '.env')", CREATE, ".env"),
    case("bind", "socket.socket(socket.AF_UNIX).bind('.env')", CREATE,
         ".env"),
    case("link", "os.link('plain', '.env')", LINK, ".env", "root/plain"),
    case("tmpfile", "call('linkat', AT_FDCWD, '/proc/self/fd/%d' % os.open('.', "
         "os.O_TMPFILE | 2), AT_FDCWD, '.env', AT_SYMLINK_FOLLOW)", LINK, ".env"),
    case("tmpfile_empty", "call('linkat', os.open('.', os.O_TMPFILE | 2), '', "
         "AT_FDCWD, '.env', AT_EMPTY_PATH)", LINK, ".env"),
    case("rename", "os.rename('plain', '.env')", RENAME, ".env",
         "root/plain"),
    case("rename_across", "os.rename('plain', 'd/.env')", RENAME, "d/.env",
         "root/plain", "root/d/"),
    case("rename_noreplace", "rename2('plain', '.env', 1)", RENAME, ".env",
         "root/plain"),
    case("exchange", "rename2('plain', '.env', 2)", RENAME, ".env",
         "root/plain", "root/.env"),
    case("exchange_back", "rename2('.env', 'plain', 2)", RENAME, ".env",
         "root/plain", "root/.env"),
    case("write", "os.open('.env', os.O_WRONLY)", DATA, ".env", "root/.env"),
    case("write_create", "os.open('.env', os.O_RDWR | os.O_CREAT)", DATA,
         ".env", "root/.env"),
    case("trunc", "os.open('.env', os.O_RDONLY | os.O_TRUNC)", DATA, ".env",
         "root/.env"),
    case("truncate", "os.truncate('.env', 0)", DATA, ".env", "root/.env"),
    case("unlink", "os.unlink('.env')", UNLINK, ".env", "root/.env"),
    case("rmdir", "os.rmdir('x.key')", UNLINK, "x.key", "root/x.key/"),
    case("rename_away", "os.rename('.env', 'plain')", RENAME, ".env",
         "root/.env"),
    case("link_out", "os.link('.env', 'plain')", LINK, ".env", "root/.env"),
    case("reopen", "os.open('/proc/self/fd/%d' % os.open('.env', 0), 2)",
         DATA, ".env", "root/.env"),
    case("reopen_dev", "os.open('/dev/fd/%d' % os.open('.env', 0), 2)", DATA,
         ".env", "root/.env"),
    case("hook", "os.open('.git/hooks/pre-commit', os.O_CREAT | 1)", CREATE,
         ".git/hooks/pre-commit", "root/.git/hooks/"),
    case("prepared_tree", "os.rename('.git2', '.git')", RENAME, ".git",
         "root/.git2/hooks/x"),
    case("prepared_hooks", "os.rename('h', '.git/hooks')", RENAME,
         ".git/hooks", "root/h/x", "root/.git/"),
    case("link_renamed", "os.rename('l', '.git')", RENAME, ".git",
         "root/l->.git2", "root/.git2/hooks/x"),
    case("link_made", "os.symlink('.git2', '.git')", CREATE, ".git",
         "root/.git2/hooks/x"),
    case("tree_away", "os.rename('.git', 'old')", RENAME, ".git",
         "root/.git/hooks/x"),
    case("link_in", "os.open('ln', os.O_CREAT | 1)", CREATE, ".env",
         "root/ln->.env"),
    case("link_from_outside", "os.open(OUT + '/in/.env', os.O_CREAT | 1)",
         CREATE, ".env", "out/in->../root"),
    case("dangling_from_outside", "os.open(OUT + '/in', os.O_CREAT | 1)",
         CREATE, ".env", "out/in->../root/.env"),
    case("cwd", "os.open('/proc/self/cwd/.env', os.O_CREAT | 1)", CREATE,
         ".env"),
    case("root", "os.open('/proc/self/root' + ROOT + '/.env', os.O_CREAT | 1)",
         CREATE, ".env"),
    case("dots", "os.open('d/../d/./../.env', os.O_CREAT | 1)", CREATE,
         ".env", "root/d/"),
    case("thread", "run_in_thread(lambda: os.mkdir('.env'))", CREATE, ".env"),
    case("daemon", "as_daemon(lambda: os.mkdir('.env'))", CREATE, ".env"),
    case("shell", "subprocess.run(['sh', '-c', ': >.env'], "
         "stderr=subprocess.DEVNULL).returncode == 0 or "
         "failed(errno.EPERM)", CREATE, ".env"),
]
HELPERS = """
def failed(number=None):
    raise OSError(number or ctypes.get_errno(), "")
def run_in_thread(fn):
    result = []
    t = threading.Thread(target=lambda: result.append(attempt(fn)))
    t.start(); t.join()
    if result[0]: failed(getattr(errno, result[0]))
def as_daemon(fn):
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(w, (attempt(fn) or "ok").encode())
        os._exit(0)
    os.wait()
    said = os.read(r, 20).decode()
    if said != "ok": failed(getattr(errno, said))
before = sorted(os.walk("."))
r = attempt(lambda: %s)
print(r if isinstance(r, str) else "ok", flush=True)
print("changed" if sorted(os.walk(".")) != before else "same")
"""


def prepare(tree, files):
    for name in files:
        if "->" in name:
            link, to = name.split("->")
            path = os.path.join(tree.base, link)
            os.symlink(to, path)
            os.chown(path, UID, GID, follow_symlinks=False)
        else:
            tree.make(name)


@pytest.mark.parametrize("code, action, path, files, rule", CASES)
def test_refused_with_one_violation(tree, code, action, path, files, rule):
    code = HELPERS % code
    with Tree() as other:
        prepare(other, files)
        said = Box(other, mode="none").run(program(other, code))[1].split()[0]
        if said == "ENOENT" and "AT_EMPTY_PATH" in code and kernel() < (6, 10):
            pytest.skip("this kernel wants CAP_DAC_READ_SEARCH for it")
        assert said == "ok"
    prepare(tree, files)
    box = Box(tree)
    status, said = box.run(program(tree, code))
    assert (status, said.split()) == (0, ["EPERM", "same"])
    assert len(box.denials) == 1, box.denials
    denial = box.denials[0]
    assert brokerbox.ACTIONS[denial.action] == action
    assert denial.path == tree.root + "/" + path
    assert denial.count == 1 and denial.pid > 1
    assert os.path.basename(denial.exe) == os.path.basename(
        os.path.realpath("/bin/sh" if "sh" in code and "'sh'" in code
                         else PYTHON))
    assert denial.rule if rule is None else denial.rule == rule


def test_what_would_have_failed_anyway_is_no_violation(tree):
    tree.make("root/.env")
    box = Box(tree)
    status, said = box.run(program(tree, """
say = lambda *a: print(attempt(*a))
say(os.mkdir, '.env')
say(os.open, '.env', os.O_CREAT | os.O_EXCL | 1)
say(os.unlink, 'x.key')
say(os.open, 'x.key', os.O_WRONLY)
say(os.rename, 'x.key', 'y')
say(os.truncate, 'x.key', 0)
"""))
    assert (status, said.split()) == (0, ["EEXIST", "EEXIST"] +
                                      ["ENOENT"] * 4)
    assert box.denials == []


# ---------------------------------------------------------------- semantics

def test_calls_answer_as_without_the_guard():
    said = {}
    for mode in ("none", "full"):
        with Tree() as tree:
            box = Box(tree, mode=mode)
            status, text = box.run(
                [PYTHON, os.path.join(GUARD, "semantics.py"), tree.root,
                 tree.out], timeout=200)
            assert status == 0
            assert box.denials == []
            said[mode] = text.splitlines()
    assert len(said["none"]) > 2000
    assert list(difflib.unified_diff(said["none"], said["full"], "none",
                                     "guarded", lineterm="", n=0)) == []


GIT = """
set -e
export HOME=$OUT GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
cd $ROOT/work
echo two >b; git add b; git commit -qm two
git checkout -qb side; echo three >c; git add c; git commit -qm three
git checkout -q main; echo four >d; git add d; git commit -qm four
git merge -q -m merge side; git rebase -q HEAD~1
echo dirty >>b; git stash -q; git stash pop -q; git checkout -q b
git gc -q; git fsck --no-progress >/dev/null; git log --oneline | wc -l
git status --porcelain; find . -name '*.lock'
"""


def test_git_works_and_its_configuration_is_refused(tree):
    work = tree.make("root/work/")
    as_user = dict(user=UID, group=GID, extra_groups=[], check=True, cwd=work,
                   env={"PATH": os.environ["PATH"], "HOME": tree.out})
    subprocess.run(["git", "init", "-q", "-b", "main"], **as_user)
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b",
                    "commit", "-q", "--allow-empty", "-m", "one"], **as_user)
    rules = [("**/" + r if r.startswith(".git/") else r)
             for r in brokerbox.NAMES]
    env = {"ROOT": tree.root, "OUT": tree.out, "HOME": tree.out,
           "GIT_CONFIG_NOSYSTEM": "1"}
    box = Box(tree, rules)
    status, said = box.run(["sh", "-c", GIT], env=env)
    assert (status, said.split()) == (0, ["4"]), said
    assert box.denials == []
    status, said = box.run(
        ["sh", "-c", "cd $ROOT/work; git config a.b c 2>&1; git status "
         "--porcelain"], env=env)
    assert "could not write config file" in said
    assert [d.rule for d in box.denials] == ["**/.git/config"]


NEW_REPOSITORY = """
export HOME=$OUT GIT_CONFIG_NOSYSTEM=1
cd $ROOT
git init -q new 2>&1 && git -C new config a.b c 2>&1 &&
    : >new/.git/hooks/pre-commit && echo made
cd new
echo x >.git/x.key; mv .git moved; mv ../old/.git ../old/moved
echo x >../old/.git/hooks/pre-commit
cd ..; ls -A new old new/.git
"""


@pytest.mark.parametrize("allow", [False, True])
def test_new_repositories(tree, allow):
    tree.make("root/old/.git/hooks/")
    tree.make("root/old/.git/config")
    rules = [("**/" + r if r.startswith(".git/") else r)
             for r in brokerbox.NAMES] + (["-n"] if allow else [])
    box = Box(tree, rules)
    said = box.run(["sh", "-c", NEW_REPOSITORY], stderr=subprocess.DEVNULL,
                   env={"ROOT": tree.root, "OUT": tree.out})[1]
    names = tree.names()
    assert ("made" in said.split()) == allow
    assert ("new/.git/hooks/pre-commit" in names) == allow
    # Neither kind of repository is moved, and other rules hold in both.
    assert "new/moved" not in names and "old/moved" not in names
    assert "new/.git/x.key" not in names
    assert "old/.git/hooks/pre-commit" not in names
    assert len(box.denials) >= 3


def test_a_number_of_a_new_repository_is_no_other_ones(tree):
    """The run's .git is gone; a host program makes one, which may get its
    inode number."""
    box = Box(tree, [("**/" + r if r.startswith(".git/") else r)
                     for r in brokerbox.NAMES] + ["-n"])
    box.start(["sh", "-c", """
for i in 1 2 3 4 5 6 7 8; do
    mkdir -p $ROOT/r$i/.git; rmdir $ROOT/r$i/.git
done
echo; read go
for i in 1 2 3 4 5 6 7 8; do echo x >$ROOT/r$i/.git/hooks/pre-commit; done
"""], env={"ROOT": tree.root}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
              stderr=subprocess.DEVNULL)
    assert box.process.stdout.readline() == b"\n"
    for i in range(1, 9):
        tree.make("root/r%d/.git/hooks/" % i)
    box.process.stdin.write(b"go\n")
    box.process.stdin.flush()
    box.finish()
    assert not any("pre-commit" in name for name in tree.names())


def inside(box):
    """A process in the box's mount namespace: the harness's child."""
    ours = os.readlink("/proc/self/ns/mnt")
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="ascii",
                      errors="replace") as f:
                parent = f.read().rsplit(")", 1)[1].split()[1]
            if (int(parent) == box.process.pid and
                    os.readlink("/proc/%s/ns/mnt" % name) != ours):
                return int(name)
        except OSError:
            pass
    raise AssertionError("no process of the box")


@pytest.mark.parametrize("mode", ["none", "full"])
def test_who_waits_for_a_lease_delays_nobody(tree, mode):
    """The holder of a lease is waited for by whoever opens or cuts the file,
    and by nobody else: not for 45 seconds, not for one."""
    tree.make("root/f", "a text of some length")
    status, said = Box(tree, mode=mode).run(program(tree, """
import fcntl, signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open("f", os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
waits = [threading.Thread(target=os.truncate, args=("f", 3)),
         threading.Thread(target=lambda: os.open("f", os.O_WRONLY))]
for one in waits: one.start()
time.sleep(0.3)
begin = time.monotonic()
os.mkdir("d")
print(time.monotonic() - begin < 1, os.stat("f").st_size,
      [one.is_alive() for one in waits])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
for one in waits: one.join(5)
print(os.stat("f").st_size, attempt(os.truncate, "d", 0))
"""))
    assert (status, said.splitlines()) == (
        0, ["True 21 [True, True]", "3 EISDIR"])


@pytest.mark.parametrize("mode", ["none", "full"])
def test_the_broker_opens_nothing_of_the_kernel(tree, mode):
    """What a host program mounts in the tree while the run lives: the broker
    may trace processes, so what it opens in /proc is not the run's to have."""
    tree.make("root/proc/")
    null = tree.base + "/root/null"
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.chmod(null, 0o666)
    other = subprocess.Popen(["sleep", "60"], user=UID, group=GID,
                             extra_groups=[])
    box = Box(tree, mode=mode)
    try:
        box.start(program(tree, """
print(os.getpid(), flush=True)
input()
for name in ("null", "proc/%d/mem", "proc/%d/oom_score_adj"):
    print(attempt(os.open, name, os.O_RDWR))
print(attempt(os.open, "proc/%d/oom_score_adj", os.O_WRONLY | os.O_TRUNC))
""".replace("%d", str(other.pid))), stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE)
        box.process.stdout.readline()
        subprocess.run(["nsenter", "-t", str(inside(box)), "-m", "mount", "-t",
                        "proc", "proc", tree.root + "/proc"], check=True)
        box.process.stdin.write(b"\n")
        box.process.stdin.flush()
        said = box.finish()[1].split()
    finally:
        other.kill()
        other.wait()
    assert said == (["EACCES"] * 4 if mode == "full" else
                    [w for w in said if w.isdigit()])
    assert len(said) == 4


def test_rename_and_link_across_roots_are_refused(tree):
    two = tree.make("two/")
    box = Box(tree, roots=[tree.root, two],
              writable=[tree.root, two, tree.out], binds=[])
    tree.make("root/f")
    tree.make("out/f")
    tree.make("elsewhere/f")
    code = """
two = os.path.dirname(ROOT) + '/two'
for old, new in ((ROOT + '/f', two + '/f'), (OUT + '/f', ROOT + '/g'),
                 (two + '/../elsewhere/f', ROOT + '/g')):
    print(attempt(os.rename, old, new), attempt(os.link, old, new + '2'))
"""
    assert box.run(program(tree, code))[1].split() == [
        "EXDEV", "None"] + ["EXDEV"] * 4


@pytest.mark.parametrize("mode", ["none", "full"])
def test_names_that_the_kernel_cannot_tell_are_judged(tree, mode):
    """Deeper than PATH_MAX, where getcwd(2) gives nothing; and so deep that
    the broker gives up, where nothing at all is made."""
    box = Box(tree, mode=mode)
    said = box.run(program(tree, """
for i in range(45):
    if attempt(os.mkdir, 'd' * 200) is not None:
        break
    os.chdir('d' * 200)
    if i in (15, 25):
        print(attempt(os.mkdir, '.env'), attempt(os.mkdir, 'env'))
print(i)
"""))[1].split()
    if mode == "none":
        assert said == ["None"] * 4 + ["44"]
        return
    assert said[:4] == ["EPERM", "None"] * 2 and 30 < int(said[4]) < 44
    assert len(box.denials) == 2


# ---------------------------------------------------------------- attacks

@pytest.mark.parametrize("mode, attempts", [
    ("none", 20000), ("filter", 30000), ("full", 100000 // SLOW)])
def test_race_leaves_no_protected_name(tree, mode, attempts):
    """"filter" is the broker without Landlock behind it: what the kernel reads
    again after the check makes protected names then."""
    begin = time.monotonic()
    # A control that loses each of its races, as on a busy machine it may,
    # tries again.
    for _ in range(1 if mode == "full" else 20):
        box = Box(tree, mode=mode)
        status, said = box.run([ATTACK, "race", tree.root, tree.out,
                                str(attempts)], timeout=150)
        found = [n for n in tree.names() if n.endswith(".env")]
        got = numbers(said)
        assert status == 0 and got["ok"] > 0
        if found:
            break
    if mode != "full":
        assert found
        return
    assert found == []
    assert got["eperm"] > 0
    assert time.monotonic() - begin < 140 * SLOW
    # The last second of a flood ends with the run, untold.
    assert 0 < sum(d.count for d in box.denials)


def test_busy_programs_see_no_difference(tree):
    box = Box(tree)
    for args in (["busy", str(1500 // SLOW)],
                 ["timer", str(10000 // SLOW)], ["threads"]):
        got = numbers(box.run([ATTACK, args[0], tree.root] + args[1:],
                              timeout=120)[1])
        assert set(got.values()) == {0}, (args, got)
    assert box.denials == []


def test_flood_of_refusals_does_not_stall_the_run(tree):
    flood = 30000 // SLOW
    box = Box(tree)
    begin = time.monotonic()
    status, said = box.run(program(tree, """
n = 0
for i in range(%d):
    n += attempt(os.open, 'f%%d.key' %% (i %% 1000), os.O_CREAT | 1) == 'EPERM'
print(n)
time.sleep(2.5)
""" % flood))
    assert (status, said.strip()) == (0, str(flood))
    assert time.monotonic() - begin < 30
    assert sum(d.count for d in box.denials) == flood
    assert len(box.denials) < flood / 3
    assert any(d.path == "" for d in box.denials)


def test_other_ways_round_are_closed(tree):
    box = Box(tree)
    status, said = box.run(program(tree, """
say = lambda nr, *a: print(
    ctypes.get_errno() if libc.syscall(nr, *a) < 0 else 'ok')
class prog(ctypes.Structure):
    _fields_ = [('n', ctypes.c_ushort), ('f', ctypes.c_char_p)]
def filt(flags):
    p = prog(1, struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
    say(317, 1, flags, ctypes.byref(p))
say(425, 8, ctypes.create_string_buffer(200))
say(444, None, 0, 1)
say(446, 0, 0)
say(304, -100, None, 0)
filt(8)
filt(0)
"""))
    assert said.split() == [str(n) for n in (
        errno.EPERM, errno.EOPNOTSUPP, errno.EOPNOTSUPP, errno.EPERM,
        errno.EBUSY, "ok")]
    assert status == 0


@pytest.mark.parametrize("mode", ["none", "landlock", "full"])
def test_io_uring(tree, mode):
    """It is refused; where it was not, Landlock would refuse its writes."""
    for name in ("plain", "gone"):
        tree.make("root/" + name)
    before = tree.names()
    said = Box(tree, mode=mode).run([ATTACK, "uring", tree.root])[1]
    got = [int(n) for n in re.findall(r"=(-?\d+)", said)]
    if mode == "none" and got[0] == -errno.EPERM:
        pytest.skip("no io_uring here")
    if mode == "none":
        assert min(got) >= 0 and tree.names() == [
            "u1", "u2", "u3", "u4", "u5", "u6"]
        return
    assert got == ([-errno.EPERM] if mode == "full" else
                   [0] + [-errno.EACCES] * 8)
    assert tree.names() == before


def test_busy_loops_do_not_starve_the_broker(tree):
    box = Box(tree)
    status, said = box.run(program(tree, """
pids = []
for i in range(2 * os.cpu_count()):
    pids.append(os.fork())
    if pids[-1] == 0:
        while True: pass
t = time.monotonic()
for i in range(1000):
    os.mkdir('d'); os.rmdir('d')
print(time.monotonic() - t)
for pid in pids: os.kill(pid, 9)
"""))
    assert status == 0 and float(said) < 20


def test_without_the_listener_landlock_still_refuses(tree):
    """The twin of everything that goes on by itself: the broker is stopped,
    and a place above the root is not granted either."""
    home = tree.make("home/")
    root = tree.make("home/proj/")
    box = Box(tree, roots=[root], empty=[home], writable=[home, tree.out],
              binds=[home, root])
    box.start(program(tree, """
print('ready', flush=True)
sys.stdin.readline()
base = os.path.dirname(ROOT)
for place in ('home', 'home/proj', 'out'):
    print(attempt(os.mkdir, base + '/' + place + '/d'),
          len(open(base + '/home/f').read()), flush=True)
"""), stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    tree.make("home/f")
    box.process.stdout.readline()
    os.kill(box.broker_pid(), signal.SIGKILL)
    box.process.stdin.write(b"\n")
    box.process.stdin.flush()
    status, said = box.finish()
    assert said.split() == ["ENOSYS", "4"] * 3
    assert not os.path.exists(home + "/d") and not os.path.exists(root + "/d")


def test_private_home_is_mediated_without_rules(tree):
    home = tree.make("home/")
    root = tree.make("home/proj/")
    box = Box(tree, roots=[root], empty=[home], writable=[home, tree.out],
              binds=[home, root])
    status, said = box.run(program(tree, """
base = os.path.dirname(ROOT) + '/home/'
print(try_open(base + '.env', os.O_CREAT | 1) != 'EPERM',
      try_open(base + 'proj/.env', os.O_CREAT | 1))
"""))
    assert said.split() == ["True", "EPERM"]
    assert os.listdir(root) == []


def test_twenty_runs_in_one_directory_meet_their_own_rules(tree):
    code = """
for i in range(200):
    for name in ('%d.env' % i, '%d.key' % i):
        fd = attempt(os.open, sys.argv[3] + name, os.O_CREAT | 1)
        if isinstance(fd, int): os.close(fd)
"""
    boxes = []
    for i in range(20):
        box = Box(tree, ["-w", "**/*.key" if i % 2 else "**/*.env"])
        box.start(program(tree, code) + ["run%d-" % i],
                  stdout=subprocess.PIPE)
        boxes.append(box)
    assert [box.finish()[0] for box in boxes] == [0] * 20
    names = tree.names()
    for i in range(20):
        mine = [n for n in names if n.startswith("run%d-" % i)]
        assert len(mine) == 200
        assert all(n.endswith(".env" if i % 2 else ".key") for n in mine)


# ---------------------------------------------------------------- pipes

def test_pipe_without_reader_delays_nobody_and_ends_with_its_caller(tree):
    box = Box(tree)
    status, said = box.run(program(tree, """
os.mkfifo('p')
pids = []
for i in range(5):
    pid = os.fork()
    if pid == 0:
        os.open('p', os.O_WRONLY)
        os._exit(0)
    pids.append(pid)
time.sleep(0.2)
t = time.monotonic()
for i in range(200):
    os.mkdir('d%d' % i)
print(time.monotonic() - t < 1)
t = time.monotonic()
for pid in pids[1:]:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
print(time.monotonic() - t < 0.5)
fd = os.open('p', os.O_RDONLY)
print(os.waitpid(pids[0], 0)[1])
"""))
    assert (status, said.split()) == (0, ["True", "True", "0"])


# ---------------------------------------------------------------- the process

def started(tree, code="sys.stdin.readline()", **kw):
    box = Box(tree, **kw)
    box.start(program(tree, "print('ready', flush=True)\n" + code),
              stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert box.process.stdout.readline() == b"ready\n"
    return box, box.broker_pid()


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        return dict(re.findall(r"(\w+):\s*(.*)", f.read()))


def test_identity(tree):
    groups = b"".join(g.to_bytes(4, "little") for g in (70001, 70000))
    box, pid = started(tree, groups=groups)
    got = status_of(pid)
    ids = (BROKER_UID,) * 3 + (UID,)
    assert got["Uid"].split() == [str(i) for i in ids]
    assert got["Gid"].split() == [str(i) for i in (BROKER_GID,) * 3 + (GID,)]
    assert got["Groups"].split() == ["70000", "70001"]
    ptrace = 1 << 19
    for name, want in (("CapInh", 0), ("CapPrm", ptrace), ("CapEff", ptrace),
                       ("CapBnd", ptrace), ("CapAmb", 0)):
        assert int(got[name], 16) == want, name
    assert got["NoNewPrivs"] == "1" and got["Seccomp"] == "2"
    # Owned by root: not dumpable.
    assert os.stat("/proc/%d/fd" % pid).st_uid == 0
    box.process.stdin.write(b"\n")
    box.process.stdin.flush()
    assert box.finish()[0] == 0


def test_the_run_cannot_reach_its_broker(tree):
    box = Box(tree)
    status, said = box.run(program(tree, """
say = lambda fn, *a: print(attempt(fn, *a))
other = [int(p) for p in os.listdir('/proc') if p.isdigit() and
         'stockade-broker' in open('/proc/%s/comm' % p).read()][0]
say(os.kill, other, 9)
say(os.kill, other, 0)
say(os.setpriority, os.PRIO_PROCESS, other, 19)
say(os.sched_setaffinity, other, [0])
say(os.listdir, '/proc/%d/fd' % other)
say(os.open, '/proc/%d/mem' % other, os.O_RDWR)
say(os.open, '/proc/%d/oom_score_adj' % other, os.O_WRONLY)
say(os.readlink, '/proc/%d/cwd' % other)
print('EPERM' if libc.ptrace(16, other, 0, 0) < 0 else 'ok')
"""))
    said = said.split()
    assert status == 0 and len(said) == 9
    assert set(said) <= {"EPERM", "EACCES"}, said


def test_end_of_the_channel_ends_the_broker(tree):
    box, pid = started(tree, "sys.stdin.readline()\n"
                             "print(attempt(os.mkdir, 'd'))")
    box.chan.sock.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if status_of(pid)["State"].startswith("Z"):
                break
        except OSError:
            break
    box.process.stdin.write(b"\n")
    box.process.stdin.flush()
    text = box.process.communicate(timeout=10)[0]
    assert text.strip() == b"ENOSYS"
    box.control.close()


def test_end_of_the_run_ends_the_broker(tree):
    box, pid = started(tree)
    box.process.stdin.write(b"\n")
    box.process.stdin.flush()
    assert box.finish()[0] == 0
    assert not os.path.exists("/proc/%d" % pid)


def bare_broker(uid=BROKER_UID, gid=BROKER_GID):
    """A broker with no run, by descriptor 3; as launcherd would start it but
    for the capabilities."""
    ours, theirs = messages.pair()

    def channel():
        os.dup2(theirs.fileno(), 3)
        os.set_inheritable(3, True)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    process = subprocess.Popen([brokerbox.BROKER], preexec_fn=channel,
                               close_fds=False, stderr=subprocess.DEVNULL)
    theirs.close()
    return process, messages.Channel(ours, me="launcherd", peer="broker")


@pytest.mark.parametrize("uid", [0, BROKER_UID, UID])
def test_start_without_the_right_ids_fails(uid):
    process, chan = bare_broker(uid, uid)
    fd = messages.memfd(b"x")
    chan.send("broker_setup", [fd], uid=UID, gid=GID)
    os.close(fd)
    msg = chan.expect("broker_failed")
    assert msg.step
    assert process.wait(5) == 125
    chan.close()


def test_a_view_that_cannot_be_joined_is_told():
    process, chan = bare_broker()
    fds = [messages.memfd(b"x"), os.open("/dev/null", os.O_RDONLY)]
    chan.send("broker_setup", fds, uid=UID, gid=GID)
    for fd in fds:
        os.close(fd)
    assert chan.expect("broker_failed").step == "mount namespace"
    assert process.wait(5) == 125
    chan.close()


@pytest.mark.parametrize("label, packet, nfds", [
    pytest.param(*row, id=row[0]) for row in
    messages.hostile_packets("launcherd", "broker")])
def test_broken_packet_ends_the_broker(label, packet, nfds):
    process, chan = bare_broker()
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(nfds)]
    messages.send_packet(chan.sock, packet, fds)
    for fd in fds:
        os.close(fd)
    assert process.wait(5) == 1
    chan.close()


def test_broken_table_is_told(tree):
    box = Box(tree)
    brokerbox_table, brokerbox.table = brokerbox.table, lambda *_: b"\x90"
    try:
        with pytest.raises(AssertionError, match="the table of rules"):
            box.start(["true"])
    finally:
        brokerbox.table = brokerbox_table
        box.process.kill()
        box.process.wait()
        box.close()


def test_a_listener_above_us_is_told_apart(tree):
    code = """
import ctypes, os, struct, sys
class Prog(ctypes.Structure):
    _fields_ = [('n', ctypes.c_ushort), ('f', ctypes.c_char_p)]
p = Prog(1, struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
fd = libc.syscall(317 if os.uname().machine == 'x86_64' else 277, 1, 8,
                  ctypes.byref(p))
assert fd > 0
os.set_inheritable(fd, True)
os.execv(sys.argv[1], sys.argv[1:])
"""
    ours, theirs = messages.pair()
    done = subprocess.run(
        [PYTHON, "-c", code, os.path.join(TOOLS, "harness"), "-c",
         str(theirs.fileno()), "-m", "filter", "-B", "/bin/true", "-u",
         str(UID), "-g", str(GID), "-U", str(BROKER_UID), "-G",
         str(BROKER_GID), "-r", tree.root, "-w", tree.root, "true"],
        pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, check=False)
    ours.close()
    theirs.close()
    assert done.returncode == 125
    assert b"listener: " + os.strerror(errno.EBUSY).encode() in done.stderr


def test_started_by_hand_says_so():
    done = subprocess.run([brokerbox.BROKER], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 125
    assert b"stockade-launcherd" in done.stderr


def test_figures(tree):
    """Prints; asserts nothing about time."""
    for mode in ("none", "full"):
        box = Box(tree, mode=mode)
        status, said = box.run([ATTACK, "bench", tree.root, "600"], pin=True,
                               timeout=120)
        assert status == 0
        print("%s: %s" % (mode, " ".join(said.split())))
