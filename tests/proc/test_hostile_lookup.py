"""Broken packets and broken questions at stockade-lookup, and what it has
become by the time it reads one."""

import os
import time

import msgpack
import pytest

import messages
from test_lookup import LOOKUP, NOBODY, Lookup, question

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(LOOKUP),
    reason="needs root and " + LOOKUP)

ROWS = messages.hostile_packets("launcherd", "lookup")


@pytest.mark.parametrize("label,packet,nfds", ROWS, ids=[r[0] for r in ROWS])
def test_broken_packet_ends_it_without_an_answer(label, packet, nfds):
    it = Lookup()
    it.chan.expect("lookup_user")
    fds = [messages.memfd(question(["/"])) for _ in range(nfds)]
    messages.send_packet(it.chan.sock, packet, fds)
    for fd in fds:
        os.close(fd)
    assert it.process.wait(5) == 1
    it.close()


@pytest.mark.parametrize("raw,sealed", [
    (b"", True), (b"\xff" * 64, True), (b"\xdd\xff\xff\xff\xff", True),
    (question(["/"])[:-1], True), (question(["/"]) + b"\0", True),
    (question(["/"]), False), (question(["relative"]), True),
    (question([""]), True), (msgpack.packb([3, [[b"/a\0b\0", 0]], [0, 0, [], [], b"", b""]]), True),
    (msgpack.packb([2, [], [0, 0, [], [], b"", b""]]), True), (question(["/"] * 8193), True)],
    ids=["empty", "garbage", "huge count", "cut", "longer", "not sealed",
         "relative", "empty path", "NUL inside", "version", "too many"])
def test_broken_question_is_answered_with_an_error(raw, sealed):
    it = Lookup()
    it.chan.expect("lookup_user")
    it.send(raw, sealed=sealed)
    answer = it.chan.expect("lookup_result")
    assert answer.error != 0 and answer.fds == []
    assert answer.reason == "the question is broken"
    it.close()


def test_other_uid_than_the_one_it_was_started_for_is_refused():
    it = Lookup()
    it.chan.expect("lookup_user")
    it.send(question(["/"]), uid=NOBODY - 1)
    answer = it.chan.expect("lookup_result")
    assert answer.error == 1 and answer.fds == []
    it.close()


def test_end_of_the_channel_ends_it():
    it = Lookup()
    it.chan.expect("lookup_user")
    it.chan.sock.close()
    assert it.process.wait(5) == 0


def test_a_question_in_a_pipe_is_refused():
    it = Lookup()
    it.chan.expect("lookup_user")
    r, w = os.pipe()
    it.chan.send("lookup_question", [r], uid=NOBODY, gid=NOBODY)
    assert it.chan.expect("lookup_result").error != 0
    os.close(r)
    os.close(w)
    it.close()


def test_it_is_the_user_alone_while_it_reads():
    """Caught while it works through a long question."""
    for _ in range(20):
        it = Lookup()
        it.chan.expect("lookup_user")
        it.send(question(["/usr/lib/x86_64-linux-gnu/../../bin/env"] * 8192))
        status = {}
        end = time.monotonic() + 2
        while it.process.poll() is None and time.monotonic() < end:
            try:
                with open("/proc/%d/status" % it.process.pid) as f:
                    status = dict(line.split(":\t", 1) for line in f)
            except (OSError, ValueError):
                break
            if status.get("Seccomp", "0").strip() == "2":
                break
        if status.get("Seccomp", "0").strip() == "2":
            break
        it.close()
    assert status["Uid"].split() == [str(NOBODY)] * 4
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0
    assert status["NoNewPrivs"].strip() == "1"
    it.close()


def test_two_questions_are_one_too_many():
    it = Lookup()
    it.chan.expect("lookup_user")
    it.send(question(["/"]))
    try:
        it.send(question(["/"]))
    except OSError:
        pass
    assert it.chan.expect("lookup_result").error == 0
    assert it.process.wait(5) == 0
    it.close()


