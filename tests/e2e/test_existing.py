"""SPEC D5, J3, J4, J8, J9, C12: what exists and is protected when a run starts,
by its name, by another name, by a link, by git's files. Every refusal has a
twin that shows the attack without the protection."""

import os
import pwd
import socket
import subprocess
import time

import pytest

from conftest import own
from instance import RUN_USER

PYTHON = "/usr/bin/python3"
TRY = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "")
def connect(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect(path)
def write(path):
    with open(path, "a") as f:
        f.write("x")
for line in sys.argv[1:]:
    try:
        exec(line)
        print("done")
    except OSError as e:
        print(errno.errorcode[e.errno])
"""
REFUSED = {"EPERM", "EACCES", "EROFS", "EBUSY"}


def put(path, *files):
    """Each file as (name, text) or name below path."""
    for one in files:
        name, text = one if isinstance(one, tuple) else (one, "text")
        where = os.path.join(path, name)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "w", encoding="ascii") as f:
            f.write(text)


def attempt(s, *lines):
    status, out, err = s.run(PYTHON, "-c", TRY, *lines)
    assert status == 0, err
    return out.decode().split()


@pytest.fixture
def twin(outside):
    """twin(path, *lines): the same in a tree without stockade."""
    def run(path, *lines):
        argv = " ".join("'%s'" % line.replace("'", "'\\''") for line in lines)
        done = outside("cd %s && exec %s -c \"$CODE\" %s" % (
            path, PYTHON, argv), env={"CODE": TRY})
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().split()

    return run


@pytest.fixture
def place(service):
    def make(*files):
        path = service.workdir()
        put(path, *files)
        own(path)
        return path

    return make


def mounts(*paths):
    return {"bindMounts": [{"hostPath": p} for p in paths],
            "guestWorkdir": paths[0]}


def refused(outcomes, n):
    assert len(outcomes) == n and set(outcomes) <= REFUSED, outcomes


def reason(s):
    return s.handle["details"]["confinement"]["names"]["reason"]


# ---------------------------------------------------------------- D5

META = ["os.chmod('%s', 0o777)", "os.chown('%s', -1, os.getgid())",
        "os.utime('%s', (1, 1))", "os.setxattr('%s', 'user.a', b'b')",
        "os.truncate('%s', 0)", "write('%s')", "os.rename('%s', 'away')",
        "os.link('%s', 'l2')", "os.unlink('%s')"]
TARGETS = ["a/b/.env", "x.KEY", ".git/hooks/pre-commit", ".git/config",
           "sub/.vscode/settings.json", ".claude/hooks/x"]


@pytest.mark.parametrize("name", TARGETS)
def test_existing_file_keeps_content_and_metadata(session, place, twin, name):
    lines = [line % name for line in META]
    path = place(name)
    assert twin(path, *lines[:6]) == ["done"] * 6
    for line in lines[6:]:
        assert twin(place(name), line) == ["done"], line
    s = session(prepare=lambda p: put(p, name))
    before = os.stat(os.path.join(s.workdir, name))
    refused(attempt(s, *lines), len(lines))
    after = os.stat(os.path.join(s.workdir, name))
    assert (before.st_mode, before.st_mtime, before.st_gid, before.st_nlink,
            before.st_size) == (after.st_mode, after.st_mtime, after.st_gid,
                                after.st_nlink, after.st_size)
    assert s.ok("cat " + name) == "text"


def test_exempt_and_ordinary_files_are_free(session):
    s = session(prepare=lambda p: put(p, "a.pem", "t/b.pem", ".env.example",
                                      "plain"), nameExemptions=["/t/*.pem"])
    free = ["t/b.pem", ".env.example", "plain"]
    assert attempt(s, *["os.chmod('%s', 0o600)" % f for f in free]) == \
        ["done"] * 3
    refused(attempt(s, "os.chmod('a.pem', 0o600)"), 1)


def test_names_are_bytes(session):
    names = [b"\xff\xfe.pem", b"a\nb.pem", b"x" * 251 + b".pem"]

    def prepare(p):
        for name in names:
            with open(os.path.join(os.fsencode(p), name), "w",
                      encoding="ascii"):
                pass
        os.symlink(b"\xff\xfe", os.path.join(os.fsencode(p), b".env"))

    s = session(prepare=prepare)
    refused(attempt(s, *["os.chmod(%r, 0o777)" % n for n in names],
                    "write(%r)" % b"\xff\xfe"), 4)
    plan = s.client.call("sandbox.explain",
                         spec=s.client.spec("other", s.workdir))["plan"]
    assert s.workdir + "/\\xff\\xfe.pem" in [
        row["path"] for row in plan["denied"]]


def test_many_existing_files(session):
    n = 3000
    s = session(prepare=lambda p: put(p, *["m/%d.pem" % i for i in range(n)]))
    assert attempt(s, "print(sum(os.statvfs('m/%%d.pem' %% i).f_flag & 1 "
                   "for i in range(%d)))" % n) == [str(n), "done"]
    plan = s.client.call("sandbox.explain",
                         spec=s.client.spec("other", s.workdir))["plan"]
    assert any("%d paths" % n in line for line in plan["words"])
    assert 2000 < len(plan["denied"]) < n   # as many as an answer has room for


# ---------------------------------------------------------------- J4

def test_hard_links_of_denied_files(session, place):
    away = place("secret", "keep", "dir/deep")

    def prepare(p):
        put(p, ".env", ".git/hooks/h", "plain")
        for source, name in ((away + "/secret", "one"),
                             (away + "/keep", "two"),
                             (away + "/dir/deep", "three"),
                             (p + "/.env", "four"), (p + "/.git/hooks/h",
                                                     "five"),
                             (p + "/plain", "six")):
            os.link(source, os.path.join(p, name))

    lines = ["open('one').read()"] + [
        line % name for name in ("two", "three", "four", "five")
        for line in ("write('%s')", "os.chmod('%s', 0o777)")]
    free = session(prepare=prepare, protectedPaths=[])
    assert attempt(free, *lines[:5]) == ["done"] * 5
    s = session(prepare=prepare, denyRead=[away + "/secret"],
                denyWrite=[away + "/keep"], protectedPaths=[away + "/dir"])
    refused(attempt(s, *lines), len(lines))
    assert attempt(s, "write('six')", "open('two').read()") == ["done"] * 2
    # none of them can be moved out of the way
    refused(attempt(s, *["os.rename('%s', 'x')" % n for n in
                         ("one", "two", "three", "four", "five")]), 5)


def test_another_mount_of_the_same_directory(session, service, place):
    first, second = place("protected/f", "plain"), service.workdir()
    inside = ["nsenter", "-m", "-t",
              str(service.children()["stockade-launcherd"])]
    subprocess.run(inside + ["mount", "--bind", first, second], check=True)
    try:
        line = "write('%s/protected/f')" % second
        free = session(**mounts(first, second))
        assert attempt(free, line) == ["done"]
        s = session(protectedPaths=[first + "/protected"],
                    **mounts(first, second))
        refused(attempt(
            s, line, "write('%s/protected/new')" % second,
            "os.rename('%s/protected', '%s/p2')" % (second, second)), 3)
        assert attempt(s, "write('%s/plain')" % second) == ["done"]
    finally:
        subprocess.run(inside + ["umount", "-l", second], check=True)


def test_every_spelling(session, place, twin):
    def prepare(p):
        put(p, "d/.env", "e/plain")
        os.symlink("d", os.path.join(p, "link"))
        os.symlink("../d/.env", os.path.join(p, "e/name"))

    path = place()
    prepare(path)
    own(path)
    names = ["d/.env", "link/.env", "./e/../d/.env", "d//.env", "e/name",
             "/proc/self/cwd/d/.env"]
    lines = [line % n for n in names
             for line in ("write('%s')", "os.chmod('%s', 0o700)")]
    assert twin(path, *lines) == ["done"] * len(lines)
    s = session(prepare=prepare)
    refused(attempt(s, *lines), len(lines))


# ---------------------------------------------------------------- J3, J9

def test_what_a_protected_link_leads_to(session, place, twin):
    def prepare(p):
        put(p, "conf/real", "other")
        os.symlink("conf/real", os.path.join(p, ".env"))
        os.symlink("conf/later", os.path.join(p, "x.key"))

    lines = ["write('conf/real')", "os.chmod('conf/real', 0o700)",
             "os.rename('conf/real', 'r2')", "os.rename('conf', 'c2')",
             "write('conf/later')", "os.unlink('conf/real')"]
    for line in lines:
        path = place()
        prepare(path)
        own(path)
        assert twin(path, line) == ["done"], line
    s = session(prepare=prepare)
    refused(attempt(s, *lines), len(lines))
    assert attempt(s, "write('conf/new')", "write('other')") == ["done"] * 2


def test_no_ancestor_gives_way(session, place, twin):
    files = ("a/b/.git/hooks/h", "a/b/.claude/commands/c", "a/plain", "z/f")
    lines = ["os.rename('a/b/.git', 'a/g')", "os.rename('a/b/.claude', 'c')",
             "exchange('a/b/.git', 'z')", "exchange('z', 'a/b/.git')",
             "os.rename('a/b/.git/hooks', 'h')",
             "os.symlink('z', 'a/b/.git/x') or os.rename('z', "
             "'a/b/.claude/commands')"]
    for line in lines[:5]:
        assert twin(place(*files), line) == ["done"], line
    s = session(prepare=lambda p: put(p, *files))
    refused(attempt(s, *lines), len(lines))
    work = place("p/q/f")
    s = session(protectedPaths=[work + "/p/q/f"], **mounts(work))
    refused(attempt(s, "os.rename('p', 'x')", "os.rename('p/q', 'x')",
                    "os.rename('p/q/f', 'x')", "os.unlink('p/q/f')",
                    "os.mkdir('n') or exchange('n', 'p')"), 5)


# ---------------------------------------------------------------- C12

@pytest.mark.parametrize("read_only", [False, True])
def test_socket_files_are_hidden(session, place, twin, read_only):
    path = place("f")
    held = []
    for kind, name in ((socket.SOCK_STREAM, "stream"),
                       (socket.SOCK_DGRAM, "dgram")):
        s = socket.socket(socket.AF_UNIX, kind)
        s.bind(os.path.join(path, name))
        held.append(s)
    held[0].listen()
    own(path)
    lines = ["connect('stream')", "connect('dgram', socket.SOCK_DGRAM)"]
    assert twin(path, *lines) == ["done"] * 2
    s = session(bindMounts=[{"hostPath": path, "readOnly": read_only}],
                guestWorkdir=path)
    outcomes = attempt(s, *lines)
    assert len(outcomes) == 2 and set(outcomes) <= REFUSED | {"ECONNREFUSED"}
    if not read_only:
        assert attempt(s, "a = socket.socket(socket.AF_UNIX); a.bind('own'); "
                       "a.listen(); connect('own')") == ["done"]
    for one in held:
        one.close()


# ---------------------------------------------------------------- J8

IDENTITY = ["-c", "user.name=a", "-c", "user.email=a@b", "-c",
            "safe.directory=*", "-c", "protocol.file.allow=always"]
GIT_WORK = """
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@b
base=$(git symbolic-ref --short HEAD)
echo 1 >f; git add f; git commit -qm 1
git checkout -qb side1; echo 2 >g; git add g; git commit -qm 2
git checkout -q $base; echo 3 >h; git add h; git commit -qm 3
git merge -q -m merge side1; git checkout -q side1; echo 4 >i; git add i
git commit -qm 4; git rebase -q $base; echo 5 >>f; git stash -q
git stash pop -q; git checkout -q f; git branch other; git branch -qD other
git status --porcelain
"""


def git(path, *args):
    subprocess.run(["git", "-C", path, *IDENTITY, *args], check=True,
                   stdout=subprocess.DEVNULL)


def repository(path):
    git(path, "init", "-q", "-b", "main")
    git(path, "commit", "-q", "--allow-empty", "-m", "one")


def locks(path):
    return [os.path.join(base, n) for base, dirs, files in os.walk(path)
            for n in dirs + files if n.endswith(".lock")]


def clean(*paths):
    """No phantom file, no lock, as the host's user sees it."""
    user = pwd.getpwnam(RUN_USER)
    for path in paths:
        out = subprocess.run(
            ["setpriv", "--reuid", str(user.pw_uid), "--regid",
             str(user.pw_gid), "--clear-groups", "git", "-C", path, "status",
             "--porcelain", "--ignored"], check=True, capture_output=True)
        assert out.stdout == b""
        assert locks(path) == []


@pytest.mark.parametrize("whole", [True, False])
def test_linked_worktree(session, service, twin, whole):
    main, tree = service.workdir(), service.workdir()
    repository(main)
    os.rmdir(tree)
    git(main, "worktree", "add", "-q", "-b", "wt", tree)
    admin = os.path.join(main, ".git/worktrees", os.path.basename(tree))
    own(main)
    own(tree)
    attacks = ["write('%s/config.worktree')" % admin,
               "write('%s/commondir')" % admin,
               "os.chmod('%s/commondir', 0o777)" % admin,
               "write('%s/.git/hooks/post-checkout')" % main,
               "write('%s/.git/config')" % main,
               "os.rename('%s', '%s2')" % (admin, admin),
               "write('%s/.git')" % tree, "os.unlink('%s/.git')" % tree,
               "os.rename('%s/.git', '%s/g')" % (tree, tree)]
    s = session(**mounts(tree, main if whole else main + "/.git"))
    status, out, err = s.sh(GIT_WORK)
    assert (status, out) == (0, b""), err
    refused(attempt(s, *attacks), len(attacks))
    clean(tree, main)
    s.destroy()
    assert twin(tree, *attacks[:5]) == ["done"] * 5


def test_a_new_worktree_is_refused_and_leaves_nothing(session):
    s = session(prepare=repository)
    status, _, err = s.sh("git worktree add -q inner")
    assert status != 0 and b"Operation not permitted" in err, err
    assert os.listdir(s.workdir) == [".git"]
    assert os.listdir(s.workdir + "/.git/worktrees") == []
    assert locks(s.workdir) == []
    assert len(s.client.violations(s.name)) == 1


def test_submodule(session, service, twin):
    inner, outer = service.workdir(), service.workdir()
    repository(inner)
    repository(outer)
    git(outer, "submodule", "--quiet", "add", inner, "lib/sub")
    git(outer, "commit", "-q", "-m", "sub")
    git(os.path.join(outer, "lib/sub"), "checkout", "-q", "-B", "main")
    own(outer)
    modules = ".git/modules/lib/sub"
    attacks = ["write('%s/%s')" % (modules, n) for n in
               ("hooks/pre-commit", "config", "commondir", "config.worktree",
                "info/attributes", "objects/info/alternates")]
    attacks += ["write('lib/sub/.git')", "os.unlink('lib/sub/.git')",
                "os.rename('%s', 'm')" % modules]
    s = session(**mounts(outer))
    for where in ("lib/sub", "."):
        status, out, err = s.sh("cd %s && %s" % (where, GIT_WORK))
        assert (status, out) in ((0, b""), (0, b" M lib/sub\n")), err
    refused(attempt(s, *attacks), len(attacks))
    assert locks(outer) == []
    s.ok("git add lib/sub && git -c user.name=a -c user.email=a@b commit -qm s")
    clean(outer, os.path.join(outer, "lib/sub"))
    assert twin(outer, *attacks[:6]) == ["done"] * 6


def test_git_directories_by_another_name(session, service, twin):
    def prepare(p):
        os.mkdir(p + "/tree")
        git(p, "init", "-q", "--separate-git-dir", "admin", "tree")
        git(p, "init", "-q", "--bare", "bare")
        put(p, "admin/info/x", "plain/config", "bare/info/x")

    attacks = ["write('%s/%s')" % (d, n) for d in ("admin", "bare")
               for n in ("config", "hooks/post-checkout", "commondir",
                         "info/attributes")]
    path = service.workdir()
    prepare(path)
    own(path)
    assert twin(path, *attacks) == ["done"] * len(attacks)
    s = session(prepare=prepare)
    refused(attempt(s, *attacks, "os.chmod('admin/config', 0o777)",
                    "os.rename('admin', 'b')"), len(attacks) + 2)
    assert attempt(s, "write('plain/config')", "write('admin/x')") == \
        ["done"] * 2


def test_what_configuration_leads_to(session, service, twin):
    def prepare(p):
        repository(p)
        put(p, "hooks.d/old", ("shared", "[core]\n\thooksPath = more\n"))
        git(p, "config", "core.hooksPath", "hooks.d")
        git(p, "config", "include.path", "../shared")
        git(p, "config", "includeIf.gitdir:/x.path", p + "/sometimes")

    attacks = ["write('hooks.d/pre-commit')", "write('shared')",
               "os.rename('hooks.d', 'h')",
               "os.mkdir('more') or write('more/pre-commit')",
               "write('sometimes')"]
    path = service.workdir()
    prepare(path)
    own(path)
    assert twin(path, *attacks) == ["done"] * len(attacks)
    s = session(prepare=prepare)
    refused(attempt(s, *attacks, "os.chmod('hooks.d/old', 0o777)"),
            len(attacks) + 1)
    assert attempt(s, "write('plain')") == ["done"]


def test_links_on_the_way(service, session, twin):
    """What is protected is reached by links of the tree: neither do they give
    way, nor does what is absent come to be where they lead."""
    def prepare(p):
        repository(p)
        git(p, "config", "core.hooksPath", "a/b/hooks")
        os.makedirs(p + "/real/b")
        os.makedirs(p + "/gd")
        put(p, "gd/HEAD", ("wt/.git", "gitdir: ../lnk/x\n"), "dir/key")
        os.symlink("dir", p + "/keys")
        for link, to in (("a", "real"), ("lnk", "c"), ("c", "."), ("x", "gd"),
                         (".env", "keys/key"), ("n", "dir"),
                         ("sub/.git", "../gd")):
            os.makedirs(os.path.dirname(p + "/" + link), exist_ok=True)
            os.symlink(to, p + "/" + link)

    attacks = ["os.mkdir('real/b/hooks')", "write('n/secret')",
               "write('dir/secret')", "write('dir/deny')"] + [
                   "os.unlink('%s')" % n for n in
                   ("a", "lnk", "c", "x", "keys", ".env", "sub/.git")]
    path = service.workdir()
    prepare(path)
    own(path)
    assert twin(path, *attacks) == ["done"] * len(attacks)
    work = service.workdir()
    prepare(work)
    own(work)
    s = session(protectedPaths=[work + "/n/secret"],
                denyWrite=[work + "/n/deny"], **mounts(work))
    refused(attempt(s, *attacks), len(attacks))
    assert attempt(s, "write('dir/plain')", "os.symlink('dir', 'l')",
                   "os.unlink('l')") == ["done"] * 3


def test_hostile_configuration_takes_no_grant_away(session):
    def prepare(p):
        repository(p)
        git(p, "config", "core.hooksPath", ".")
        put(p, ("sub/.git", "gitdir: /etc"), ("sub2/.git", "gitdir: /"),
            ("sub3/.git", "gitdir: ..\n"))

    s = session(prepare=prepare)
    assert attempt(s, "write('plain')", "write('sub/x')") == ["done"] * 2


# ---------------------------------------------------------------- limits

def test_what_is_left_out_is_told(session):
    def prepare(p):
        put(p, "shut/.env")

    s = session(prepare=prepare)
    assert "overlooked" not in reason(s)
    work = s.workdir
    os.chown(work + "/shut", 0, 0)
    os.chmod(work + "/shut", 0o711)
    s = session(**mounts(work))
    assert "overlooked: a directory could not be listed" in reason(s)
    os.chmod(work + "/shut", 0o755)


def test_a_relaunch_finds_its_session_whatever_came_meanwhile(session):
    s = session(detach=True, prepare=lambda p: put(p, "plain"))
    digest = s.handle["details"]["planDigest"]
    put(s.workdir, "new/.env", "new/x.pem", ("w/.git", "gitdir: ../g"))
    own(s.workdir)
    again = s.client.launch(s.name, s.workdir, detach=True)
    assert again["details"]["planDigest"] == digest


def test_the_second_launch_in_a_tree_finds_what_is_new(session):
    s = session(prepare=lambda p: put(p, "a/b/plain", "c/plain", "c/d/.env"))
    work = s.workdir
    time.sleep(2.1)     # then what did not change is not read again
    s.destroy()
    s = session(**mounts(work))
    for name in ("a/b/x.pem", "c/y.pem", "c/d/z.pem", "e/.env"):
        put(work, name)
        own(work)
        s.destroy()
        s = session(**mounts(work))
        refused(attempt(s, "os.chmod('%s', 0o600)" % name,
                        "os.chmod('c/d/.env', 0o600)"), 2)
    assert attempt(s, "write('a/b/plain')") == ["done"]
