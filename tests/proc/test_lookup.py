"""stockade-lookup as launcherd starts it, with the test as launcherd."""

import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile

import msgpack
import pytest

import messages

BUILD = os.environ.get("STOCKADE_BUILD", "build")
LOOKUP = os.path.join(BUILD, "libexec", "stockade-lookup")
NOBODY = pwd.getpwnam("nobody").pw_uid

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(LOOKUP),
    reason="needs root and " + LOOKUP)

NONE, DIR, FILE, SOCKET, OTHER = range(5)
FIELDS = ("literal", "resolved", "error", "kind", "dev", "ino", "mode", "uid",
          "readable", "writable")


READABLE, WRITABLE, DENIED = 1, 2, 3
NAME, LINK, SOCK, GIT, TARGET = range(5)
NO_ITEM = 8192

question = messages.lookup_question


def decode(fd):
    data = os.pread(fd, 16 << 20, 0)
    os.close(fd)
    version, rows, found, stopped, dropped, _, _ = msgpack.unpackb(data,
                                                                   raw=False)
    assert (version, stopped, dropped) == (3, 0, 0)
    result = []
    for row in rows:
        it = dict(zip(FIELDS, row))
        for name in ("literal", "resolved"):
            assert it[name].endswith(b"\0")
            it[name] = it[name][:-1].decode()
        result.append(it)
    return result, [[what, path[:-1].decode(), kind, item, source]
                    for what, path, kind, item, source in found]


class Lookup:
    def __init__(self, uid=NOBODY, argv=None):
        ours, theirs = messages.pair()

        def child():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)

        self.uid = uid
        self.process = subprocess.Popen(
            argv or [LOOKUP], preexec_fn=child, close_fds=False,
            stdin=subprocess.DEVNULL)
        theirs.close()
        self.chan = messages.Channel(ours, me="launcherd", peer="lookup")
        if argv is None:
            self.chan.send("lookup_begin", uid=uid)

    def send(self, raw, uid=None, gid=NOBODY, groups=b"", sealed=True):
        fd = messages.memfd(raw, sealed)
        self.chan.send("lookup_question", [fd], uid=uid or self.uid, gid=gid,
                       groups=groups)
        os.close(fd)

    def ask(self, paths, **kw):
        return self.scan(question(paths), **kw)[0]

    def scan(self, raw, **kw):
        self.user = self.chan.expect("lookup_user")
        self.send(raw, **kw)
        answer = self.chan.expect("lookup_result")
        assert answer.error == 0, answer.reason
        assert self.process.wait(5) == 0
        return decode(answer.fds[0])

    def close(self):
        self.chan.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def lookup():
    it = Lookup()
    yield it
    it.close()


@pytest.fixture
def tree():
    path = os.path.realpath(tempfile.mkdtemp(prefix="stockade-lookup-"))
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


def test_user_is_told_before_anything_is_asked(lookup):
    user = lookup.chan.expect("lookup_user")
    entry = pwd.getpwuid(NOBODY)
    assert (user.error, user.uid, user.gid, user.user, user.home,
            user.shell) == (0, NOBODY, entry.pw_gid, "nobody", entry.pw_dir,
                            entry.pw_shell)
    groups = [int.from_bytes(user.groups[i:i + 4], "little")
              for i in range(0, len(user.groups), 4)]
    assert sorted(groups) == sorted(os.getgrouplist("nobody", entry.pw_gid))


def test_unknown_user_is_told():
    it = Lookup(uid=3999999999)
    user = it.chan.expect("lookup_user")
    assert user.error == 2
    assert it.process.wait(5) == 0
    it.close()


def test_paths_are_resolved_in_order(lookup, tree):
    os.mkdir(tree + "/d")
    with open(tree + "/d/f", "w"):
        pass
    os.symlink("d", tree + "/l")
    os.symlink("none", tree + "/dangling")
    os.symlink("loop", tree + "/loop")
    os.mkfifo(tree + "/p")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(tree + "/s")
    names = ["/d", "/l/f", "/none", "/dangling", "/loop", "/d/f/x", "/p", "/s",
             "/l"]
    rows = lookup.ask([tree + n for n in names])
    assert [r["literal"] for r in rows] == [tree + n for n in names]
    assert [r["error"] for r in rows] == [0, 0, 2, 2, 40, 20, 0, 0, 0]
    assert [r["kind"] for r in rows] == [DIR, FILE, NONE, NONE, NONE, NONE,
                                         OTHER, SOCKET, DIR]
    assert rows[1]["resolved"] == tree + "/d/f"
    assert rows[8]["resolved"] == tree + "/d"
    # Of what is absent: where it would come to be.
    assert [rows[i]["resolved"] for i in (2, 3, 4, 5)] == [
        tree + "/none", tree + "/none", "", tree + "/d/f/x"]
    st = os.stat(tree + "/d/f")
    assert (rows[1]["dev"], rows[1]["ino"], rows[1]["mode"], rows[1]["uid"]) \
        == (st.st_dev, st.st_ino, stat.S_IMODE(st.st_mode), st.st_uid)
    sock.close()


def test_home_stands_for_the_tilde(lookup):
    home = pwd.getpwuid(NOBODY).pw_dir
    assert lookup.ask(["~/x/y"])[0]["literal"] == home + "/x/y"


def test_it_sees_what_the_user_sees(lookup, tree):
    os.mkdir(tree + "/closed", 0o700)
    with open(tree + "/closed/f", "w"):
        pass
    with open(tree + "/secret", "w"):
        pass
    os.chmod(tree + "/secret", 0o600)
    with open(tree + "/own", "w"):
        pass
    os.chown(tree + "/own", NOBODY, NOBODY)
    rows = lookup.ask([tree + "/closed", tree + "/closed/f",
                       tree + "/secret", tree + "/own", "/etc/passwd"])
    assert [r["error"] for r in rows] == [0, 13, 0, 0, 0]
    assert [(r["readable"], r["writable"]) for r in rows] == [
        (False, False), (False, False), (False, False), (True, True),
        (True, False)]


def test_twin_root_would_have_seen_it(tree):
    os.mkdir(tree + "/closed", 0o700)
    with open(tree + "/closed/f", "w"):
        pass
    assert os.stat(tree + "/closed/f")


def test_groups_of_the_message_count(tree):
    with open(tree + "/g", "w"):
        pass
    os.chown(tree + "/g", 0, 70007)
    os.chmod(tree + "/g", 0o640)
    for groups, want in ((b"", False), ((70007).to_bytes(4, "little"), True)):
        it = Lookup()
        assert it.ask([tree + "/g"], groups=groups)[0]["readable"] is want
        it.close()


def test_magic_links_are_not_followed(lookup):
    row = lookup.ask(["/proc/self/root/etc/passwd"])[0]
    assert row["error"] == 40 and row["kind"] == NONE


def test_many_items(lookup):
    rows = lookup.ask(["/usr/bin/env"] * 8192)
    assert len(rows) == 8192 and rows[-1]["resolved"].startswith("/usr")


def test_an_answer_that_would_be_too_large_is_refused(lookup):
    lookup.chan.expect("lookup_user")
    lookup.send(question(["/usr" + "/." * 999] * 4170))
    answer = lookup.chan.expect("lookup_result")
    assert answer.error != 0 and answer.fds == []


def test_the_scan_runs_in_its_confinement(lookup, tree):
    for name in ("w/.git/hooks", "r", "home/.ssh"):
        os.makedirs(os.path.join(tree, name))
    for name, text in (("w/.env", ""), ("w/.git/config",
                       "[core]\nhooksPath = .githooks\n"),
                       ("home/.ssh/id", ""), ("r/plain", "")):
        with open(os.path.join(tree, name), "w") as f:
            f.write(text)
    os.link(tree + "/home/.ssh/id", tree + "/r/copy")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(tree + "/r/s")
    _, found = lookup.scan(question(
        [tree + "/w", tree + "/r", tree + "/home/.ssh"],
        [WRITABLE, READABLE, DENIED],
        [("**/.env", 0), ("**/.git/hooks/**", 0)], entries=1000))
    assert sorted((what, path[len(tree):], kind, item) for
                  what, path, kind, item, _ in found) == [
        (NAME, "/w/.env", FILE, NO_ITEM), (NAME, "/w/.git/hooks", DIR, NO_ITEM),
        (LINK, "/r/copy", FILE, 2), (SOCK, "/r/s", SOCKET, NO_ITEM),
        (TARGET, "/w/.githooks", NONE, NO_ITEM)]
    sock.close()


def test_the_scan_lists_what_the_user_may_list(lookup, tree):
    os.makedirs(tree + "/w/closed")
    for name in ("/w/.env", "/w/closed/.env"):
        with open(tree + name, "w"):
            pass
    os.chmod(tree + "/w/closed", 0o700)
    _, found = lookup.scan(question([tree + "/w"], [WRITABLE],
                                    [("**/.env", 0)], entries=1000))
    assert [path for _, path, _, _, _ in found] == [tree + "/w/.env"]


def test_the_answer_is_sealed(lookup):
    import fcntl
    lookup.chan.expect("lookup_user")
    lookup.send(question(["/"]))
    answer = lookup.chan.expect("lookup_result")
    assert fcntl.fcntl(answer.fds[0], 1034) & 15 == 15
    os.close(answer.fds[0])


def test_arguments_are_checked():
    for argv in ([LOOKUP, "0"], [LOOKUP, "-"], [LOOKUP, "1", "2"]):
        it = Lookup(argv=argv)
        assert it.process.wait(5) == 125
        it.close()
    assert subprocess.run([LOOKUP], stderr=subprocess.DEVNULL
                          ).returncode == 125
