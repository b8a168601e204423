"""Every broken packet at stockade-init, in each of its states: it ends, and
with it everything inside. It has nobody else to protect, so ending is the
whole answer."""

import os

import pytest

import initbox
from initbox import Box
import messages

pytestmark = pytest.mark.skipif(initbox.can_run() is not None,
                                reason=str(initbox.can_run()))

ROWS = messages.hostile_packets("launcherd", "init")


def attack(box, packet, nfds):
    fds = [messages.memfd(b"x") for _ in range(nfds)]
    try:
        messages.send_packet(box.chan.sock, packet, fds)
    except (BrokenPipeError, ConnectionResetError):
        pass
    for fd in fds:
        os.close(fd)


def pick(step):
    """Starting a sandbox costs 20 ms: the rows are spread over the states."""
    return [ROWS[i] for i in range(len(ROWS)) if i % 2 == step]


@pytest.mark.parametrize("label,packet,nfds", pick(0),
                         ids=[r[0] for r in pick(0)])
def test_broken_packet_before_setup_ends_it(label, packet, nfds):
    box = Box()
    attack(box, packet, nfds)
    assert box.chan.ended()
    assert box.process.wait(5) == 1
    box.close()


@pytest.mark.parametrize("label,packet,nfds", pick(1),
                         ids=[r[0] for r in pick(1)])
def test_broken_packet_after_setup_ends_all(label, packet, nfds):
    box = Box()
    box.setup()
    r, w = os.pipe()
    box.start(["sleep", "60"], [0, w, 2])
    os.close(w)
    attack(box, packet, nfds)
    assert box.chan.ended()
    assert os.read(r, 1) == b""     # nothing of the run is left
    os.close(r)
    box.close()


@pytest.mark.parametrize("name", ["init_exec", "init_signal", "init_stop"])
def test_message_before_its_state_ends_it(name):
    box = Box()
    row = messages.TABLE[name]
    attack(box, row.pack(), row.min_fds)
    assert box.chan.ended()
    box.close()


def test_second_setup_ends_it():
    box = Box()
    box.setup()
    box.send_setup()
    assert box.chan.ended()
    box.close()


@pytest.mark.parametrize("raw,sealed", [
    (b"", True), (b"\xff" * 100, True), (b"\xdd\xff\xff\xff\xff", True),
    (initbox.plan()[:-1], True), (initbox.plan() + b"\0", True),
    (initbox.plan(), False),
    (initbox.plan([("/usr", 0, False)]), True),
    (initbox.plan([("/a/../etc", 0, False)]), True)],
    ids=["empty", "garbage", "huge count", "cut", "longer", "not sealed",
         "fixed view", "not clean"])
def test_broken_plan_is_told_and_nothing_runs(raw, sealed):
    box = Box()
    box.send_setup(raw_plan=raw, sealed=sealed)
    assert box.chan.expect("init_failed").step == "plan"
    assert box.chan.ended()
    box.close()


def test_a_plan_that_is_a_pipe_is_told():
    box = Box()
    r, w = os.pipe()
    box.chan.send("init_setup", [r], uid=5, gid=5, home="/home/u")
    assert box.chan.expect("init_failed").step == "plan"
    os.close(r)
    os.close(w)
    box.close()


@pytest.mark.parametrize("home", ["relative", "/a/../b", "/", "/home/u/"])
def test_broken_home_is_told(home):
    box = Box()
    box.send_setup(home=home)
    assert box.chan.expect("init_failed").step == "home"
    box.close()


def test_broken_exec_plans_are_answered_and_the_run_goes_on():
    box = Box()
    box.setup()
    for number, raw in enumerate((b"", b"\xff" * 50,
                                  initbox.exec_plan([]),
                                  initbox.exec_plan([""]),
                                  initbox.exec_plan(["a"], cwd="x"),
                                  initbox.exec_plan(["a"], env=["=x"]),
                                  initbox.exec_plan(["a"]) + b"x"), 1000):
        fd = messages.memfd(raw)
        box.chan.send("init_exec", [fd, 0, 1, 2], exec=number)
        os.close(fd)
        answer = box.chan.expect("init_exec_answer", exec=number)
        assert answer.error != 0 and answer.step == "plan"
    assert box.run(["true"])[0] == 0
    box.close()


def test_reused_number_of_a_live_command_ends_it():
    box = Box()
    box.setup()
    box.start(["sleep", "60"], [0, 1, 2])
    box.next_exec = 1
    fd = messages.memfd(initbox.exec_plan(["true"]))
    box.chan.send("init_exec", [fd, 0, 1, 2], exec=1)
    os.close(fd)
    assert box.chan.ended()
    box.close()


def test_too_few_descriptors_for_pipes_end_it():
    box = Box()
    box.setup()
    fd = messages.memfd(initbox.exec_plan(["true"]))
    box.chan.send("init_exec", [fd, 0], exec=1)
    os.close(fd)
    assert box.chan.ended()
    box.close()


def test_flood_of_signals_for_nobody_is_harmless():
    box = Box()
    box.setup()
    for i in range(5000):
        box.chan.send("init_signal", exec=10 ** 9 + i, signal=9)
    assert box.run(["true"])[0] == 0
    box.close()


def test_descriptors_of_commands_do_not_pile_up():
    box = Box()
    box.setup()
    for _ in range(300):
        assert box.run(["true"])[0] == 0
    inside = [p for p in os.listdir("/proc") if p.isdigit()]
    init = [p for p in inside if parent_of(p) == box.process.pid]
    assert len(os.listdir("/proc/%s/fd" % init[0])) == 5
    box.close()


def parent_of(pid):
    try:
        with open("/proc/%s/stat" % pid) as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
