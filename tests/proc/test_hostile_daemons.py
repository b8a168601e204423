"""Every daemon of stockaded breaks every rule: it is killed, the event is
logged, the service goes on. Twins: the same message sent as it should be is
accepted (test_supervisor.py)."""

import os
import socket
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import supervisorbox as sb  # noqa: E402
from messages import (TABLE, hostile_packets, memfd,  # noqa: E402
                      send_packet)
from test_supervisor import USER, close, gid, user_client  # noqa: E402

WHY = sb.missing()
pytestmark = pytest.mark.skipif(WHY is not None, reason=WHY or "")
KINDS = ("control", "launcherd", "proxyd", "resolver")


def gone(daemon, timeout=5.0):
    """Its channel is closed and its process dead, by the supervisor's hand."""
    if not daemon.ended(timeout):
        return False
    end = time.monotonic() + timeout
    while daemon.alive():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def send_raw(daemon, packet, nfds):
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(nfds)]
    try:
        send_packet(daemon.sock, packet, fds)
    finally:
        for fd in fds:
            os.close(fd)


def waves():
    """The packets of all four, four at a time."""
    rows = [hostile_packets(kind, "supervisor") for kind in KINDS]
    for i in range(max(len(r) for r in rows)):
        yield [(kind, r[i]) for kind, r in zip(KINDS, rows) if i < len(r)]


def test_every_broken_packet_ends_its_sender():
    for wave in waves():
        with sb.Box() as box:
            box.open()
            for kind, (_, packet, nfds) in wave:
                send_raw(getattr(box, kind), packet, nfds)
            for kind, (label, _, _) in wave:
                assert gone(getattr(box, kind)), (kind, label)
            box.wait_log("CHILD_ENDED", count=len(wave))
            assert box.log().count("PEER_RULES") == len(wave), (wave,
                                                                box.log())
            assert box.process.poll() is None


@pytest.mark.parametrize("kind", KINDS)
def test_before_ready_nothing_else_is_accepted(kind):
    """Each type that the daemon may send later, in its first state."""
    for m in TABLE.values():
        if kind not in m.senders or "supervisor" not in m.receivers or \
                m.name in ("ready", "conf_service"):
            continue
        with sb.Box() as box:
            if kind != "control":
                box.start_control()
            daemon = box.next("stockade-" + kind)
            send_raw(daemon, m.pack(), m.min_fds)
            assert gone(daemon), m.name
            box.wait_log("PEER_RULES")
            if kind != "control":
                assert box.process.poll() is None


@pytest.mark.parametrize("kind", KINDS)
def test_ready_comes_once(kind):
    with sb.Box() as box:
        box.open()
        getattr(box, kind).send("ready")
        assert gone(getattr(box, kind))
        box.next("stockade-" + kind)            # and it is started again


@pytest.mark.parametrize("name", ["lookup_ask", "client_ask", "exec_ask"])
def test_control_asks_nothing_before_it_is_opened(name):
    with sb.Box() as box:
        control = box.start_control()
        send_raw(control, TABLE[name].pack(), TABLE[name].min_fds)
        assert gone(control)


def test_no_probe_row_after_the_probe_and_none_twice():
    with sb.Box() as box:
        box.open()
        box.launcherd.send("probe_row", row=1, available=1)
        assert gone(box.launcherd)
    with sb.Box() as box:
        box.start_control()
        launcherd = box.next("stockade-launcherd")
        launcherd.send("ready")
        launcherd.send("probe_row", row=1, available=0)
        launcherd.send("probe_row", row=1, available=1)
        assert gone(launcherd)


# ------------------------------------------------ well formed, but a lie

def running(box):
    box.open()
    box.user = user_client(box)
    box.sandbox, box.path = box.launch(box.user, USER, 1)
    return box


NEVER = 1 << 40
CONTROL_LIES = {
    "client_gone of a client that never was":
        ("client_gone", {"client": NEVER}, 0),
    "destroy of a sandbox that never was":
        ("destroy_ask", {"sandbox": NEVER}, 0),
    "freeze of a sandbox that never was":
        ("freeze_ask", {"sandbox": NEVER}, 0),
    "stat of a sandbox that never was": ("stat_ask", {"sandbox": NEVER}, 0),
    "signal to a sandbox that never was":
        ("exec_signal", {"sandbox": NEVER, "signal": 15}, 0),
    "a signal that no client may send":
        ("exec_signal", {"sandbox": 1, "signal": 11}, 0),
    "resize of a sandbox that never was":
        ("exec_resize", {"sandbox": NEVER}, 0),
    "eof of a sandbox that never was": ("exec_eof", {"sandbox": NEVER}, 0),
    "exec in a sandbox that never was":
        ("exec_ask", {"sandbox": NEVER, "client": 1}, 1),
    "fewer descriptors than it says":
        ("exec_ask", {"sandbox": 1, "client": 1, "passed": 2}, 2),
    "more descriptors than it says":
        ("exec_ask", {"sandbox": 1, "client": 1, "passed": 1}, 3),
    "a terminal with three descriptors":
        ("exec_ask", {"sandbox": 1, "client": 1, "passed": 3, "tty": 1}, 4),
}


@pytest.mark.parametrize("lie", CONTROL_LIES)
def test_a_lie_ends_control_and_no_run(lie):
    name, values, nfds = CONTROL_LIES[lie]
    with sb.Box() as box:
        running(box)
        fds = [memfd(b"x") for _ in range(nfds)]
        box.control.send(name, fds=fds, **values)
        for fd in fds:
            os.close(fd)
        assert gone(box.control)
        assert box.launcherd.alive() and box.proxyd.alive()
        assert not sb.killed(box.path)
        assert not [m for m in box.launcherd.backlog if m.name == name]


def bad_memfds():
    big = os.memfd_create("big", os.MFD_ALLOW_SEALING)
    os.ftruncate(big, 64 << 20)
    import fcntl
    fcntl.fcntl(big, 1033, 15)
    return {"unsealed": memfd(b"x", sealed=False), "too large": big,
            "no memfd": os.open("/dev/null", os.O_RDONLY)}


@pytest.mark.parametrize("what", ["unsealed", "too large", "no memfd"])
@pytest.mark.parametrize("name, values, place, nfds", [
    ("lookup_ask", {"request": 9, "client": 1, "run_uid": USER}, 0, 1),
    ("launch_ask", {"request": 1, "client": 1, "run_uid": USER}, 0, 2),
    ("launch_ask", {"request": 1, "client": 1, "run_uid": USER}, 1, 2),
    ("exec_ask", {"sandbox": 1, "client": 1}, 0, 1),
])
def test_a_memfd_that_could_change_or_fill_memory_ends_control(
        what, name, values, place, nfds):
    with sb.Box() as box:
        running(box)
        made = bad_memfds()
        fds = [memfd(b"ok") for _ in range(nfds)]
        os.close(fds[place])
        fds[place] = made[what]
        box.control.send(name, fds=fds, **values)
        assert gone(box.control)
        for fd in set(fds) | set(made.values()):
            os.close(fd)
        assert not box.launcherd.backlog


def test_one_request_number_names_one_question():
    with sb.Box() as box:
        running(box)
        for _ in range(2):
            box.control.send("stat_ask", request=5, sandbox=box.sandbox)
        assert gone(box.control)


LAUNCHERD_LIES = {
    "an answer to no look-up": ("lookup_answer", {"request": NEVER,
                                                  "error": 1}, 0),
    "a second answer to a look-up": ("lookup_answer", {"request": 1,
                                                       "error": 1}, 0),
    "descriptors for a sandbox that never was":
        ("launch_made", {"sandbox": NEVER}, 3),
    "new descriptors for a running one": ("launch_made", {"sandbox": 1}, 3),
    "a second launch answer": ("launch_answer", {"request": 1, "sandbox": 1},
                               0),
    "the end of a sandbox that never was": ("run_ended", {"sandbox": NEVER},
                                            0),
    "an answer to no freeze": ("freeze_answer", {"request": 5, "sandbox": 1},
                               0),
    "an answer to no stat": ("stat_answer", {"request": 5, "sandbox": 1}, 0),
    "a notice about a sandbox that never was":
        ("run_notice", {"sandbox": NEVER}, 0),
    "a bit without its descriptor":
        ("exec_answer", {"sandbox": 1, "io": 3}, 1),
    "a descriptor without its bit":
        ("exec_answer", {"sandbox": 1, "io": 1}, 2),
    "an exit in a sandbox that never was": ("exec_exit", {"sandbox": NEVER},
                                            0),
    "a restore that nobody asked for": ("restore_exec", {"sandbox": 1}, 0),
    "the end of no restore": ("restore_done", {}, 0),
    "a violation of a sandbox that never was":
        ("violation", {"sandbox": NEVER}, 0),
}


@pytest.mark.parametrize("lie", LAUNCHERD_LIES)
def test_a_lie_ends_launcherd_and_with_it_every_run(lie):
    name, values, nfds = LAUNCHERD_LIES[lie]
    with sb.Box() as box:
        running(box)
        fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(nfds)]
        box.launcherd.send(name, fds=fds, **values)
        for fd in fds:
            os.close(fd)
        assert gone(box.launcherd)
        assert box.control.expect("run_ended").cause == 8
        assert sb.killed(box.path)
        assert box.control.alive() and box.proxyd.alive()


def test_a_run_is_not_ready_before_its_kill_switch_is_here():
    with sb.Box() as box:
        box.open()
        client = user_client(box)
        box.lookup(client, USER, 1)
        box.ask_launch(client, USER, 1)
        start = box.launcherd.expect("launch_start")
        close(start)
        box.launcherd.send("launch_answer", request=start.request,
                           sandbox=start.sandbox, pid=1)
        assert gone(box.launcherd)
        assert box.control.expect("launch_answer").code != 0


def test_the_user_of_a_look_up_cannot_be_exchanged():
    with sb.Box() as box:
        box.open()
        client = user_client(box)
        fd = memfd(b"q")
        box.control.send("lookup_ask", fds=[fd], request=1, client=client,
                         run_uid=USER)
        start = box.launcherd.expect("lookup_start")
        close(start)
        box.launcherd.send("lookup_answer", fds=[fd], request=start.request,
                           run_uid=USER + 1)
        os.close(fd)
        assert gone(box.launcherd)


@pytest.mark.parametrize("values", [
    {"sandbox": NEVER, "action": 8}, {"sandbox": 1, "action": 0}])
def test_proxyd_speaks_of_its_sandboxes_and_of_the_network_only(values):
    with sb.Box() as box:
        running(box)
        box.proxyd.send("violation", target="x", count=1, **values)
        assert gone(box.proxyd)
        assert not sb.killed(box.path)


# ------------------------------------------------ floods

def test_a_flood_of_violations_waits_for_control_and_drops_nobody():
    with sb.Box() as box:
        running(box)
        packet = TABLE["violation"].pack(sandbox=box.sandbox, action=8,
                                         target="t" * 200, count=1)
        box.proxyd.sock.setblocking(False)
        sent, idle = 0, time.monotonic()
        while sent < 20000 and time.monotonic() - idle < 0.5:
            try:
                box.proxyd.sock.send(packet)
                sent, idle = sent + 1, time.monotonic()
            except BlockingIOError:
                time.sleep(0.001)
        # It was stopped long before our queue was full, and all of it comes.
        assert sent < 4000
        assert box.proxyd.alive() and box.control.alive()
        for _ in range(sent):
            box.control.expect("violation")
        box.proxyd.sock.setblocking(True)
        box.proxyd.sock.send(packet)
        box.control.expect("violation")
        assert "PEER_QUEUE" not in box.log()


def test_a_control_that_reads_nothing_is_dropped_in_the_end():
    """Its own questions are answered into a queue that has a limit."""
    with sb.Box() as box:
        running(box)
        packet = TABLE["client_ask"].pack(conn=1)
        left, right = socket.socketpair()
        box.control.sock.settimeout(5)
        try:
            for _ in range(60000):
                send_packet(box.control.sock, packet, [left.fileno()])
        except (BrokenPipeError, ConnectionResetError, socket.timeout):
            pass
        left.close()
        right.close()
        box.wait_log("PEER_QUEUE")
        assert box.log().count("CLIENT_REFUSED") < 400
        assert not sb.killed(box.path)
        assert box.process.poll() is None
        box.next("stockade-control")
