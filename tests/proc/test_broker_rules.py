"""stockade-broker when its rules are replaced (SPEC D13), and what it tells of
new repositories (D18); with the test as launcherd."""

import os
import subprocess
import threading

import pytest

import brokerbox
import messages
from brokerbox import Box, Tree, table

pytestmark = pytest.mark.skipif(brokerbox.can_run() is not None,
                                reason=str(brokerbox.can_run()))

NAMES = ["-w", "**/*.key"]
OTHERS = ["-w", "**/*.new"]
GIT = ["-g", "**/.git/config", "-g", "**/.git/hooks/**"]
LOOP = ("while read name; do echo x 2>/dev/null >$name && echo yes || "
        "echo no; done")


@pytest.fixture
def tree():
    with Tree() as one:
        yield one


class Shell:
    """A guarded shell that says of each name whether it could be made."""

    def __init__(self, tree, rules):
        self.box = Box(tree, rules)
        self.tree = tree
        self.process = self.box.start(
            ["/bin/sh", "-c", "cd %s && %s" % (tree.root, LOOP)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.makes("started")

    def makes(self, name):
        self.process.stdin.write(name.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline() == b"yes\n"

    def replace(self, raw, request=7, sealed=True):
        fd = messages.memfd(raw, sealed)
        self.box.chan.send("broker_rules", [fd], request=request)
        os.close(fd)
        answer = self.box.chan.expect("broker_rules_answer")
        assert answer.request == request
        return answer.error

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.box.close()


@pytest.fixture
def shell(tree):
    one = Shell(tree, NAMES)
    yield one
    one.close()


def test_other_rules_hold_from_the_next_call_on(shell, tree):
    assert not shell.makes("a.key") and shell.makes("a.new")
    for n in range(50):
        assert shell.replace(table([tree.root], (), OTHERS), n + 1) == 0
        assert shell.makes("a.key") and not shell.makes("b.new")
        assert shell.replace(table([tree.root], (), NAMES), n + 1000) == 0
        assert not shell.makes("b.key") and shell.makes("a.new")


@pytest.mark.parametrize("kind", ["empty", "cut", "garbage", "not sealed",
                                  "other places", "more places",
                                  "new repositories"])
def test_the_old_ones_stay(shell, tree, kind):
    good = table([tree.root], (), OTHERS)
    raw, sealed = {
        "empty": (b"", True), "cut": (good[:-1], True),
        "garbage": (b"\xff" * 99, True), "not sealed": (good, False),
        "other places": (table([tree.root + "2"], (), OTHERS), True),
        "more places": (table([tree.root, tree.out], (), OTHERS), True),
        "new repositories": (table([tree.root], (), OTHERS + ["-n"]), True),
    }[kind]
    assert shell.replace(raw, sealed=sealed) != 0
    assert not shell.makes("a.key") and shell.makes("a.new")
    assert shell.replace(good) == 0
    assert shell.makes("a.key") and not shell.makes("b.new")


@pytest.mark.parametrize("label,packet,nfds",
                         messages.hostile_packets("launcherd", "broker"),
                         ids=lambda v: v if isinstance(v, str) else "")
def test_a_broken_packet_ends_it_and_writes_fail(shell, label, packet, nfds):
    fds = [messages.memfd(b"x") for _ in range(nfds)]
    try:
        messages.send_packet(shell.box.chan.sock, packet, fds)
    except (BrokenPipeError, ConnectionResetError):
        pass
    for fd in fds:
        os.close(fd)
    assert shell.box.chan.ended()
    assert not shell.makes("a.new")


def test_rules_change_while_names_are_made(tree):
    """A protected name is made between two changes at most, never under the
    rules that forbid it: each name belongs to the rules of its time."""
    shell = Shell(tree, NAMES)
    stop = threading.Event()
    failed = []

    def change():
        n = 1
        while not stop.is_set():
            n += 1
            if shell.replace(table([tree.root], (), [OTHERS, NAMES][n % 2]),
                             n) != 0:
                failed.append(n)

    # The names that both sets of rules forbid: one or the other always does.
    both = NAMES + ["-w", "**/x.*"], OTHERS + ["-w", "**/x.*"]
    assert shell.replace(table([tree.root], (), both[0])) == 0
    for i in range(100):
        assert shell.replace(table([tree.root], (), both[i % 2]), i + 2) == 0
        assert not shell.makes("x.%d" % i)
    thread = threading.Thread(target=change)
    thread.start()
    for i in range(300):
        shell.makes("%d.free" % i)
    stop.set()
    thread.join()
    shell.close()
    assert failed == []
    assert len([n for n in os.listdir(tree.root) if n.endswith(".free")]) == 300


# ------------------------------------------------------------ repositories

def told(tree, line, rules):
    box = Box(tree, rules)
    status, _ = box.run(["/bin/sh", "-c", "cd %s && %s" % (tree.root, line)])
    assert status == 0
    return [m for m in box.denials if m.name == "broker_repository"]


def test_a_new_git_directory_is_told_and_followed(tree):
    rows = told(tree, "mkdir -p a/.git b/x && mv a b/x/a && mkdir c && "
                "mv -T b c/b && mkdir .git", GIT + ["-n"])
    r = tree.root
    assert [(m.number, m.path) for m in rows] == [
        (0, r + "/a/.git"), (0, r + "/b/x/a/.git"), (0, r + "/c/b/x/a/.git"),
        (1, r + "/.git")]
    assert rows[0].ino == os.stat(r + "/c/b/x/a/.git").st_ino


def test_nothing_is_told_where_none_may_be_configured(tree):
    assert told(tree, "mkdir -p a/.git", GIT) == []
