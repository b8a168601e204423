"""The supervisor is trusted by stockade-control to be the supervisor: whatever
breaks the message rules on the channel is not one, and the process ends at
once, with status 1 and the rule in the log. Never a crash."""

import os

import pytest

import controlbox
import messages

pytestmark = pytest.mark.skipif(controlbox.can_run() is not None,
                                reason=str(controlbox.can_run()))


def descriptors(n):
    fds = []
    for _ in range(n):
        fds.append(os.open("/dev/null", os.O_RDONLY))
    return fds


def ends_by_rules(box):
    assert box.process.wait(5) == 1, box.log()
    assert "PEER_RULES" in box.log()


PACKETS = messages.hostile_packets("supervisor", "control")


@pytest.mark.parametrize("row", PACKETS, ids=[row[0] for row in PACKETS])
def test_a_packet_that_breaks_the_rules(row):
    _, packet, nfds = row
    box = controlbox.Box("")
    fds = descriptors(nfds)
    try:
        box.open()
        client = box.client()
        messages.send_packet(box.channel.sock, packet, fds)
        ends_by_rules(box)
        assert client.ended()
    finally:
        for fd in fds:
            os.close(fd)
        box.close()


# What is accepted in one state of the process and not in the other.
ONLY_BEFORE = ["probe_row", "probe_done", "restore_run", "restore_exec",
               "restore_done", "control_open"]
ONLY_AFTER = ["client_answer", "lookup_answer", "launch_answer",
              "freeze_answer", "stat_answer", "exec_answer"]


@pytest.mark.parametrize("name", ONLY_BEFORE)
def test_in_the_wrong_state_after_open(name):
    box = controlbox.Box("")
    fds = descriptors(messages.TABLE[name].min_fds)
    try:
        box.open()
        box.client()
        box.channel.send(name, fds)
        ends_by_rules(box)
    finally:
        for fd in fds:
            os.close(fd)
        box.close()


@pytest.mark.parametrize("name", ONLY_AFTER)
def test_in_the_wrong_state_before_open(name):
    box = controlbox.Box("")
    fds = descriptors(messages.TABLE[name].min_fds)
    try:
        box.channel.send(name, fds)
        ends_by_rules(box)
    finally:
        for fd in fds:
            os.close(fd)
        box.close()


@pytest.mark.parametrize("name", ["probe_done", "restore_done"])
def test_only_once(name):
    box = controlbox.Box("")
    try:
        box.channel.send(name)
        box.channel.send(name)
        ends_by_rules(box)
    finally:
        box.close()


LATE = ["client_answer", "lookup_answer", "launch_answer", "run_ended",
        "freeze_answer", "stat_answer", "run_notice", "exec_answer",
        "exec_exit", "violation"]


@pytest.mark.parametrize("name", LATE)
def test_an_answer_to_nobody_is_ignored(name):
    """A late answer names something that has ended: no rule is broken. What
    comes with it is closed."""
    box = controlbox.Box("")
    message = messages.TABLE[name]
    fds = descriptors(message.max_fds)
    try:
        box.open()
        client = box.client()
        before = len(os.listdir("/proc/%d/fd" % box.process.pid))
        values = {"error": 5} if name.endswith("_answer") and any(
            f.name == "error" for f in message.fields) else {}
        for _ in range(50):
            box.channel.send(name, fds if not values else fds[:0],
                             **values)
        assert client.call("ping")
        assert len(os.listdir("/proc/%d/fd" % box.process.pid)) == before
        assert box.alive()
    finally:
        for fd in fds:
            os.close(fd)
        box.close()


def test_a_flood_of_reloads_is_answered():
    box = controlbox.Box("")
    try:
        box.open()
        for _ in range(200):
            box.channel.send("reload_ask")
        for _ in range(200):
            assert box.channel.expect("reload_done").ok == 1
        assert box.client().call("ping")
    finally:
        box.close()
