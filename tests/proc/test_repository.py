"""The look at repositories that a run has made: stockade-lookup, with the test
as launcherd (SPEC D18)."""

import os
import shutil
import stat
import tempfile

import pytest

import messages
from test_lookup import LOOKUP, NOBODY, Lookup

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(LOOKUP),
    reason="needs root and " + LOOKUP)

FOUND, GONE, UNREADABLE = range(3)


@pytest.fixture
def git():
    path = tempfile.mkdtemp(prefix="stockade-git-")
    os.chmod(path, 0o755)
    made = os.path.join(path, ".git")
    os.makedirs(made + "/hooks")
    yield made
    shutil.rmtree(path)


class Inspect(Lookup):
    def __init__(self, uid=NOBODY):
        super().__init__(argv=[LOOKUP])
        self.chan.send("inspect_begin", uid=uid, gid=NOBODY, groups=b"")

    def look(self, path, ino=None):
        st = os.stat(path) if os.path.exists(path) else None
        self.chan.send("inspect_ask", path=path, dev=st.st_dev if st else 1,
                       ino=(ino or st.st_ino) if st else 1)
        answer = self.chan.expect("inspect_answer")
        return answer.state, answer.programs


@pytest.fixture
def it():
    one = Inspect()
    yield one
    one.close()


def put(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text)
    os.chmod(path, mode)


CONFIGS = {
    b"": "",
    b"[core]\n\tbare = false\n[user]\n\tname = x\n[remote \"o\"]\n\turl = u\n":
        "",
    b"[core]\n\tfsmonitor = x\n\tsshCommand = y\n\tfsmonitor = z\n":
        "core.fsmonitor, core.sshcommand",
    b"[ALIAS]\n\tst = status\n": "alias.st",
    b"[filter \"a.b\"]\n\tClean = x\n": "filter.clean",
    b"[credential \"https://x\"]\n\thelper = !x\n": "credential.helper",
    b"[include]\n\tpath = /tmp/x\n[includeIf \"gitdir:/\"]\n\tpath = y\n":
        "include.path, includeif.path",
    b"[remote \"o\"]\n\turl = ext::sh -c id\n": "remote.url",
    b"[remote \"o\"]\n\turl = --upload-pack=x\n": "remote.url",
    b"[core] hooksPath = /tmp\n": "core.hookspath",
    b"[submodule \"a\"]\n\tupdate = !x\n": "submodule.update",
}


@pytest.mark.parametrize("text", CONFIGS)
def test_keys_that_run_something_are_named(git, it, text):
    put(git + "/config", text)
    assert it.look(git) == (FOUND, CONFIGS[text])


def test_hooks_are_named_when_git_would_run_them(git, it):
    put(git + "/hooks/pre-push", b"", 0o755)
    put(git + "/hooks/note", b"", 0o644)
    put(git + "/hooks/x.sample", b"", 0o755)
    os.symlink("/bin/true", git + "/hooks/update")
    state, programs = it.look(git)
    assert state == FOUND
    assert sorted(programs.split(", ")) == ["hooks/pre-push", "hooks/update"]


def test_modules_and_worktrees_are_looked_at(git, it):
    put(git + "/modules/a/b/HEAD", b"")
    put(git + "/modules/a/b/config", b"[core]\nfsmonitor=x\n")
    put(git + "/worktrees/w/config.worktree", b"[core]\neditor=x\n")
    assert it.look(git) == (FOUND, "core.editor, modules/a/modules/b/"
                            "core.fsmonitor")


def test_links_are_told_and_not_followed(git, it):
    os.rmdir(git + "/hooks")
    os.symlink("/tmp", git + "/hooks")
    os.symlink("/etc/passwd", git + "/config")
    assert it.look(git) == (FOUND, "config (a link), hooks (a link)")


def test_what_leads_elsewhere_is_told(git, it):
    """git takes configuration and hooks from where `commondir` says."""
    put(git + "/commondir", b"../../elsewhere\n")
    os.mkdir(git + "/modules")
    os.symlink("/tmp", git + "/modules/m")
    assert it.look(git) == (FOUND, "commondir, modules/m (a link)")


def test_modules_too_deep_are_not_passed_over(git, it):
    put(git + "/modules/" + "d/" * 9 + "config", b"[core]\nfsmonitor=x\n")
    assert it.look(git)[0] == UNREADABLE


def test_what_cannot_be_read_is_said(git, it):
    put(git + "/config", b"[core\n")
    assert it.look(git)[0] == UNREADABLE
    put(git + "/config", b"[core]\nfsmonitor = x\n", 0o600)
    assert it.look(git)[0] == UNREADABLE
    os.unlink(git + "/config")
    os.mkfifo(git + "/config", 0o666)
    assert it.look(git)[0] == UNREADABLE
    os.unlink(git + "/config")
    put(git + "/config", b"#" * (300 << 10))
    assert it.look(git)[0] == UNREADABLE


def test_another_directory_is_not_looked_at(git, it):
    put(git + "/config", b"[core]\nfsmonitor = x\n")
    assert it.look(git, ino=3) == (GONE, "")
    assert it.look(git + "/nothing") == (GONE, "")
    assert it.look(git) == (FOUND, "core.fsmonitor")


def test_a_flood_is_cut(git, it):
    put(git + "/config", b"[alias]\n" + b"".join(
        b"a%d = x\n" % i for i in range(5000)))
    state, programs = it.look(git)
    assert state == FOUND and len(programs) <= 1024
    assert programs.endswith(", and more")
    for i in range(5000):
        put(git + "/hooks/h%d" % i, b"", 0o755)
    assert it.look(git)[0] == UNREADABLE


def test_it_is_the_user_while_it_looks(git, it):
    it.look(git)
    with open("/proc/%d/status" % it.process.pid, encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f
                      if ":\t" in line)
    assert status["Uid"].split() == [str(NOBODY)] * 4
    assert status["CapEff"] == "0" * 16 and status["Seccomp"] == "2"
    assert stat.S_ISDIR(os.stat(git).st_mode)


@pytest.mark.parametrize("label,packet,nfds",
                         messages.hostile_packets("launcherd", "lookup"),
                         ids=lambda v: v if isinstance(v, str) else "")
def test_a_broken_packet_ends_it(it, label, packet, nfds):
    fds = [messages.memfd(b"x") for _ in range(nfds)]
    messages.send_packet(it.chan.sock, packet, fds)
    for fd in fds:
        os.close(fd)
    assert it.process.wait(5) == 1


def test_root_is_nobody_to_become():
    it = Lookup(argv=[LOOKUP])
    packet = messages.TABLE["inspect_begin"].pack(uid=0)
    messages.send_packet(it.chan.sock, packet)
    assert it.process.wait(5) == 1
    it.close()
