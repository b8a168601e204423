"""stockaded with stub daemons: start, restart, stop, who may do what."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import supervisorbox as sb  # noqa: E402
from messages import memfd  # noqa: E402

WHY = sb.missing()
pytestmark = pytest.mark.skipif(WHY is not None, reason=WHY or "")
CLIENT = 995
USER, OTHER = 40001, 40002


def gid(name):
    return sb.grp.getgrnam(name).gr_gid


@pytest.fixture
def box():
    with sb.Box() as running:
        yield running.open()


def close(msg):
    for fd in msg.fds:
        os.close(fd)


# ------------------------------------------------ start

def test_the_start_has_its_order(box):
    box.wait_log("STOCKADE_EVENT=STARTED")
    rows = [box.control.expect("probe_row") for _ in range(sb.ROWS)]
    assert [r.row for r in rows] == list(range(sb.ROWS))
    assert box.control.expect("probe_done").tools == 3
    box.proxyd.expect("resolver_link")
    box.resolver.expect("resolver_link")


def test_the_two_ends_of_the_resolver_link_are_one_pair(box):
    a, b = box.proxyd.expect("resolver_link"), box.resolver.expect(
        "resolver_link")
    left, right = socket.socket(fileno=a.fds[0]), socket.socket(
        fileno=b.fds[0])
    left.send(b"hello")
    assert right.recv(16) == b"hello"
    left.close()
    right.close()


def test_directories_and_socket_have_their_modes(box):
    run, state = os.stat(box.runtime), os.stat(box.values["state_dir"])
    assert (run.st_uid, stat.S_IMODE(run.st_mode)) == (0, 0o711)
    assert state.st_uid == sb.pwd.getpwnam("stockade-control").pw_uid
    assert stat.S_IMODE(state.st_mode) == 0o700
    sock = os.stat(box.socket)
    assert stat.S_ISSOCK(sock.st_mode)
    assert (sock.st_gid, stat.S_IMODE(sock.st_mode)) == (
        gid(sb.CLIENT_GROUP), 0o660)
    assert sorted(os.listdir(box.runtime)) == ["control.sock", "empty"]
    empty = os.stat(os.path.join(box.runtime, "empty"))
    assert (empty.st_uid, stat.S_IMODE(empty.st_mode)) == (0, 0o755)


def test_no_socket_before_everything_stands():
    with sb.Box() as box:
        box.start_control()
        box.start_launcherd()
        box.start_proxyd()
        resolver = box.next("stockade-resolver")
        assert not os.path.exists(box.socket)
        resolver.send("ready")
        box.wait_log("EVENT=STARTED")
        assert os.path.exists(box.socket)


def test_a_daemon_gets_its_descriptors_and_a_clean_environment(box):
    for name, extra in (("stockade-control", [4]), ("stockade-launcherd", [])):
        about = box.last[name].about
        # one more: the directory that the stub reads to list them
        want = [0, 1, 2, 3] + extra
        assert about["open"] == want + [len(want)]
        assert set(about["env"]) <= {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS",
                                     "LSAN_OPTIONS", "LC_CTYPE"}
        assert about["ppid"] == box.process.pid
    assert box.control.about["argv"][1:] == ["-f", "test.conf"]
    assert box.launcherd.about["argv"][1:] == []
    assert box.proxyd.about["argv"][1:] == ["-l", "7", "-r", os.path.join(
        box.runtime, "empty")]
    assert box.resolver.about["argv"][1:] == ["-l", "7"]
    assert os.readlink("/proc/self/fd/%d" % box.control.extra[0]) == box.dir


def test_setup_names_the_instance_and_the_directory(box):
    setup = box.launcherd.setup
    assert re.fullmatch("[0-9a-f]{16}", setup.instance)
    assert setup.libexec_dir == box.libexec
    assert os.path.samestat(os.fstat(setup.fds[0]), os.stat(box.runtime))


@pytest.mark.parametrize("args, env, want", [
    (["--sandbox", "off"], {"CC_SERVER_SANDBOX": "on"}, ["off", "option"]),
    ([], {"CC_SERVER_SANDBOX": " Require "}, [" Require ", "environment"]),
])
def test_the_setting_is_passed_on_with_its_source(args, env, want):
    with sb.Box(args=args, env=env) as box:
        argv = box.next("stockade-control").about["argv"]
        assert argv[3:] == ["-s", want[0], "-S", want[1]]


@pytest.mark.parametrize("status", [1, 2])
def test_a_start_that_control_refuses_ends_with_its_status(status):
    with sb.Box() as box:
        box.next("stockade-control").exit(status)
        assert box.wait() == status


def test_a_missing_program_ends_the_start():
    with sb.Box() as box:
        os.unlink(os.path.join(box.libexec, "stockade-proxyd"))
        box.start_control()
        assert box.wait() == 1


def test_ready_before_the_configuration_breaks_the_rules():
    with sb.Box() as box:
        box.next("stockade-control").send("ready")
        assert box.wait() == 1
        assert "PEER_RULES" in box.log()


@pytest.mark.parametrize("change, text", [
    ({"client_group": "no-such-group-x"}, "no such group"),
    ({"client_group": "root"}, "group 0"),
    ({"runtime_dir": "/proc/x"}, "/proc/x"),
    ({"runtime_dir": "/tmp/../run/x"}, "no clean"),
    ({"socket_path": "/no/such/dir/s"}, "/no/such/dir/s"),
])
def test_a_start_with_bad_names_ends_with_a_reason(change, text):
    with sb.Box(conf=change) as box:
        box.start_control()
        if "socket_path" in change:
            box.start_launcherd()
            box.start_proxyd()
            box.start_resolver()
        assert box.wait() == 1
        assert text in box.log()


def test_a_runtime_directory_of_another_user_is_refused():
    with sb.Box() as box:
        os.mkdir(box.runtime)
        os.chown(box.runtime, USER, USER)
        box.start_control()
        assert box.wait() == 1
        assert "belongs to another user" in box.log()


def test_a_link_is_no_runtime_directory():
    with sb.Box() as box:
        os.symlink("/usr", box.runtime)
        box.start_control()
        assert box.wait() == 1
    assert stat.S_IMODE(os.stat("/usr").st_mode) == 0o755


@pytest.mark.parametrize("which", ["runtime_dir", "state_dir"])
def test_a_directory_that_exists_is_used_and_never_changed(which):
    with sb.Box() as box:
        path = box.values[which]
        os.mkdir(path)
        os.chmod(path, 0o755)
        box.open()
        info = os.stat(path)
        assert (info.st_uid, stat.S_IMODE(info.st_mode)) == (0, 0o755)


@pytest.mark.parametrize("which", ["runtime_dir", "state_dir"])
def test_a_directory_that_others_write_is_refused(which):
    with sb.Box() as box:
        os.mkdir(box.values[which])
        os.chmod(box.values[which], 0o777)
        box.start_control()
        assert box.wait() == 1
        assert "writable by others" in box.log()


def test_two_instances_do_not_share_a_directory(box):
    with sb.Box() as second:
        second.values = dict(box.values)
        second.start_control()
        assert second.wait() == 1
        assert "in use by another instance" in second.log()
    assert box.process.poll() is None
    assert os.path.exists(box.socket)


def test_a_socket_left_behind_is_removed():
    with sb.Box() as box:
        os.mkdir(box.runtime, 0o711)
        old = socket.socket(socket.AF_UNIX)
        old.bind(box.socket)
        old.close()
        box.start_control()
        box.wait_log("LEFTOVER_REMOVED")
        assert not os.path.exists(box.socket)


def test_a_missing_capability_is_named():
    code = ("import ctypes, os; libc = ctypes.CDLL(None); "
            "[libc.prctl(24, c, 0, 0, 0) for c in (7, 21)]; "
            "os.execv(%r, ['stockaded', '-d', '--libexec', '/'])" %
            sb.STOCKADED)
    done = subprocess.run(["/usr/bin/python3", "-c", code],
                          capture_output=True, timeout=20)
    assert done.returncode == 1
    text = done.stderr.decode()
    assert text.count("\n") == 1
    assert "CAP_SYS_ADMIN" in text


def test_what_the_process_holds(box):
    with open("/proc/%d/status" % box.process.pid, encoding="ascii") as f:
        fields = dict(re.findall(r"^(\w+):\s*(.*)$", f.read(), re.M))
    assert fields["CapPrm"] == fields["CapBnd"] == fields["CapEff"]
    assert bin(int(fields["CapPrm"], 16)).count("1") == 11
    assert fields["CapInh"] == fields["CapAmb"] == "0" * 16
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


def test_check_executes_control_in_place():
    with sb.Box() as box:
        path = os.path.join(box.libexec, "stockade-control")
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nprintf '%s\\n' \"$*\"\nls /proc/self/fd/4/\n"
                    "test -e /proc/self/fd/3 && echo three\nexit 7\n")
        for flag in ("-n", "-nv"):
            done = subprocess.run(
                [sb.STOCKADED, flag, "-f", box.conf, "--libexec", box.libexec,
                 "--sandbox", "off"], capture_output=True, timeout=20)
            words = done.stdout.decode().split("\n")
            assert done.returncode == 7
            assert words[0] == flag + " -f test.conf -s off -S option"
            assert "test.conf" in words


def test_usage_is_two():
    for args in (["-x"], ["extra"], ["-v"], ["--sandbox"]):
        assert subprocess.run([sb.STOCKADED] + args, stderr=-3,
                              timeout=20).returncode == 2


# ------------------------------------------------ the manager

def test_the_manager_hears_and_the_watchdog_is_fed():
    with sb.Box() as box:
        box.__exit__()
    box = sb.Box()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = os.path.join(box.dir, "notify")
    server.bind(path)
    server.settimeout(10)
    box.env = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}

    def until(text):
        while True:
            if server.recv(256).decode().startswith(text):
                return
    with box:
        box.open()
        until("READY=1")
        until("WATCHDOG=1")
        box.process.send_signal(signal.SIGHUP)
        until("RELOADING=1\nMONOTONIC_USEC=")
        box.control.expect("reload_ask")
        box.control.send("reload_done", ok=1)
        until("READY=1")
        box.process.send_signal(signal.SIGTERM)
        until("STOPPING=1")
    server.close()


# ------------------------------------------------ clients

def test_the_kernel_tells_who_a_client_is(box):
    root = box.client()
    assert (root.uid, root.is_operator) == (0, 1)
    user = box.client(uid=USER, gid=USER, groups=[gid(sb.CLIENT_GROUP)])
    assert (user.uid, user.is_operator) == (USER, 0)
    admin = box.client(uid=OTHER, gid=OTHER, groups=[
        gid(sb.CLIENT_GROUP), gid(sb.ADMIN_GROUP)])
    assert (admin.uid, admin.is_operator) == (OTHER, 1)
    numbers = [root.client, user.client, admin.client]
    assert len(set(numbers)) == 3 and 0 not in numbers


def test_a_number_is_never_given_out_again(box):
    first = box.client().client
    box.control.send("client_gone", client=first)
    assert box.client().client > first


def test_a_stranger_is_refused_even_with_an_open_socket(box):
    # The twin: the mode alone does not keep it out once it is opened.
    os.chmod(box.socket, 0o666)
    answer = box.client(uid=USER, gid=USER)
    assert (answer.client, answer.is_operator) == (0, 0)
    assert "CLIENT_REFUSED" in box.log()
    os.chmod(box.socket, 0o660)
    with pytest.raises(OSError):
        box.connect(uid=USER, gid=USER)


def test_a_connection_to_a_root_process_is_no_operator(box):
    """Control could connect to any socket of root and hand that up: the peer
    of such a connection is root."""
    path = os.path.join(box.dir, "other")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(1)
    mine = socket.socket(socket.AF_UNIX)
    mine.connect(path)
    # The twin: the kernel says that its peer is root.
    assert mine.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8] == \
        b"\0" * 4
    box.control.send("client_ask", fds=[mine.fileno()], conn=900)
    assert box.control.expect("client_answer", conn=900).client == 0
    pair = socket.socketpair()
    box.control.send("client_ask", fds=[pair[0].fileno()], conn=901)
    assert box.control.expect("client_answer", conn=901).client == 0
    box.control.send("client_ask", fds=[box.listener.fileno()], conn=902)
    assert box.control.expect("client_answer", conn=902).client == 0
    for sock in (mine, server, *pair):
        sock.close()


# ------------------------------------------------ look-ups and launches

def user_client(box, uid=USER, extra=()):
    return box.client(uid=uid, gid=uid, groups=[gid(sb.CLIENT_GROUP),
                                                *extra]).client


def test_a_client_runs_as_itself_with_its_own_groups(box):
    client = user_client(box, extra=[7001, 7002])
    start = box.lookup(client, USER, 5)
    groups = [int.from_bytes(start.groups[i:i + 4], sys.byteorder)
              for i in range(0, len(start.groups), 4)]
    assert (start.run_uid, start.from_client) == (USER, 1)
    assert sorted(groups) == [7001, 7002]
    assert start.client_gid == gid(sb.CLIENT_GROUP)
    assert start.admin_gid == gid(sb.ADMIN_GROUP)


def test_a_client_cannot_run_as_another(box):
    client = user_client(box)
    fd = memfd(b"question")
    box.control.send("lookup_ask", fds=[fd], request=6, client=client,
                     run_uid=OTHER)
    answer = box.control.expect("lookup_answer", request=6)
    assert answer.error == 1 and answer.fds == []
    # The twin: an operator may.
    box.control.send("lookup_ask", fds=[fd], request=7,
                     client=box.client().client, run_uid=OTHER)
    start = box.launcherd.expect("lookup_start")
    assert (start.run_uid, start.from_client, start.groups) == (OTHER, 0, b"")
    assert start.request != 6
    os.close(fd)


@pytest.mark.parametrize("name", ["stockade-control", "stockade-proxy",
                                  "stockade-resolve"])
def test_no_run_is_a_daemons_user(box, name):
    fd = memfd(b"question")
    box.control.send("lookup_ask", fds=[fd], request=8,
                     client=box.client().client,
                     run_uid=sb.pwd.getpwnam(name).pw_uid)
    os.close(fd)
    answer = box.control.expect("lookup_answer", request=8)
    assert answer.error == 1 and "daemon" in answer.reason


def test_a_launch_and_its_end(box):
    client = user_client(box)
    sandbox, path = box.launch(client, USER, 8)
    box.launcherd.send("run_ended", sandbox=sandbox, cause=0, peak=5)
    ended = box.control.expect("run_ended", sandbox=sandbox)
    assert ended.peak == 5
    box.proxyd.expect("egress_close", sandbox=sandbox)
    assert not sb.killed(path)
    second, _ = box.launch(client, USER, 9)
    assert second > sandbox


@pytest.mark.parametrize("request_number, uid, by_other", [
    (99, USER, False), (10, OTHER, False), (10, USER, True)])
def test_a_launch_needs_its_own_look_up(box, request_number, uid, by_other):
    client = user_client(box)
    other = user_client(box)
    box.lookup(client, USER, 10)
    box.ask_launch(other if by_other else client, uid, request_number)
    answer = box.control.expect("launch_answer", request=request_number)
    assert (answer.code, answer.sandbox) == (5, 0)
    box.ask_launch(client, USER, 10)        # the twin
    close(box.launcherd.expect("launch_start"))


def test_a_look_up_is_good_for_one_launch(box):
    client = user_client(box)
    box.launch(client, USER, 11)
    box.ask_launch(client, USER, 11)
    assert box.control.expect("launch_answer", request=11).code == 5


def test_the_number_of_sandboxes_is_bounded(box):
    client = user_client(box)
    for request in range(20, 24):
        box.launch(client, USER, request)
    box.lookup(client, USER, 24)
    box.ask_launch(client, USER, 24)
    assert box.control.expect("launch_answer", request=24).code == 8


def test_a_failed_launch_is_told_and_forgotten(box):
    client = user_client(box)
    box.lookup(client, USER, 12)
    box.ask_launch(client, USER, 12)
    start = box.launcherd.expect("launch_start")
    path = box.made(start.sandbox)
    box.launcherd.send("launch_answer", request=start.request,
                       sandbox=start.sandbox, code=25, error=13, step="spawn",
                       reason="because")
    answer = box.control.expect("launch_answer", request=12)
    assert (answer.code, answer.error, answer.step) == (25, 13, "spawn")
    box.proxyd.expect("egress_close", sandbox=start.sandbox)
    assert sb.killed(path)
    box.launcherd.send("run_ended", sandbox=start.sandbox)  # late: no fault
    box.launch(client, USER, 13)


# ------------------------------------------------ what a client may touch

def exec_ask(box, sandbox, client, number, passed=0, fds=1):
    made = [memfd(b"exec") for _ in range(fds)]
    box.control.send("exec_ask", fds=made, sandbox=sandbox, exec=number,
                     client=client, passed=passed)
    for fd in made:
        os.close(fd)


def test_only_the_owner_and_operators_use_a_sandbox(box):
    owner, other, root = user_client(box), user_client(box, OTHER), \
        box.client().client
    sandbox, _ = box.launch(owner, USER, 14)
    exec_ask(box, sandbox, other, 1)
    answer = box.control.expect("exec_answer", exec=1)
    assert (answer.error, answer.fds) == (1, [])
    box.control.send("destroy_ask", sandbox=sandbox, client=other)
    for number, client in ((2, owner), (3, root)):
        exec_ask(box, sandbox, client, number)
        close(box.launcherd.expect("exec_ask", exec=number))
    # The refused ones never arrived there.
    assert [m.name for m in box.launcherd.backlog] == []
    box.control.send("destroy_ask", sandbox=sandbox, client=0, cause=3)
    assert box.launcherd.expect("destroy_ask").cause == 3
    exec_ask(box, sandbox, owner, 4)
    assert box.control.expect("exec_answer", exec=4).error == 3


def test_descriptors_of_a_command_are_passed_through(box):
    client = user_client(box)
    sandbox, _ = box.launch(client, USER, 15)
    exec_ask(box, sandbox, client, 1, passed=2, fds=3)
    msg = box.launcherd.expect("exec_ask")
    assert len(msg.fds) == 3 and msg.passed == 2
    box.launcherd.send("exec_answer", fds=msg.fds[:1], sandbox=sandbox, exec=1,
                       pid=9, io=4)
    answer = box.control.expect("exec_answer", exec=1)
    assert (answer.pid, answer.io, len(answer.fds)) == (9, 4, 1)
    box.launcherd.send("exec_exit", sandbox=sandbox, exec=1, status=3)
    assert box.control.expect("exec_exit").status == 3
    close(msg)
    close(answer)


def test_questions_and_orders_go_through(box):
    client = user_client(box)
    sandbox, _ = box.launch(client, USER, 16)
    box.control.send("freeze_ask", request=1, sandbox=sandbox, frozen=1)
    box.control.send("stat_ask", request=1, sandbox=sandbox)
    freeze = box.launcherd.expect("freeze_ask")
    ask = box.launcherd.expect("stat_ask")
    assert freeze.request != ask.request
    box.launcherd.send("freeze_answer", request=freeze.request,
                       sandbox=sandbox, frozen=1)
    box.launcherd.send("stat_answer", request=ask.request, sandbox=sandbox,
                       memory_bytes=4096, pids=2)
    assert box.control.expect("freeze_answer").request == 1
    assert box.control.expect("stat_answer").pids == 2
    for name, values in (("exec_signal", {"signal": 15}),
                         ("exec_resize", {"rows": 2, "cols": 3}),
                         ("exec_eof", {})):
        box.control.send(name, sandbox=sandbox, exec=5, **values)
        assert box.launcherd.expect(name).exec == 5
    box.launcherd.send("run_notice", sandbox=sandbox, code=0, detail="x")
    assert box.control.expect("run_notice").detail == "x"


def test_violations_reach_control(box):
    client = user_client(box)
    sandbox, _ = box.launch(client, USER, 17)
    box.proxyd.send("violation", sandbox=sandbox, action=8, target="evil",
                    port=443, reason="host_not_allowed", count=1)
    msg = box.control.expect("violation")
    assert (msg.sandbox, msg.target, msg.port) == (sandbox, "evil", 443)


# ------------------------------------------------ restarts

def test_a_killed_control_is_back_and_gets_its_runs(box):
    client = user_client(box)
    sandbox, path = box.launch(client, USER, 18)
    box.control.send("freeze_ask", request=1, sandbox=sandbox, frozen=1)
    ask = box.launcherd.expect("freeze_ask")
    box.launcherd.send("freeze_answer", request=ask.request, sandbox=sandbox,
                       frozen=1)
    box.control.expect("freeze_answer")
    before = time.monotonic()
    box.control.kill()
    control = box.restart_control()
    assert time.monotonic() - before < 2
    assert len([control.expect("probe_row") for _ in range(sb.ROWS)]) == \
        sb.ROWS
    control.expect("probe_done")
    run = control.expect("restore_run")
    assert (run.sandbox, run.owner_uid, run.run_uid, run.frozen, run.pid,
            run.landlock_abi) == (sandbox, USER, USER, 1, 77, 6)
    assert run.plan_digest == b"\x07" * 32
    assert os.pread(run.fds[0], 10, 0) == b"plan"
    assert os.pread(run.fds[1], 10, 0) == b"egress"
    close(run)
    ask = box.launcherd.expect("restore_ask")
    with pytest.raises(TimeoutError):
        control.expect("control_open", timeout=0.3)
    fd = os.open("/dev/null", os.O_RDONLY)
    # Sent before the question was read: restore_exec has it as well, and the
    # new control did not ask.
    box.launcherd.send("exec_answer", fds=[fd], sandbox=sandbox, exec=5, pid=9,
                       io=2)
    box.launcherd.send("restore_exec", fds=[fd], sandbox=sandbox, exec=5,
                       pid=9, io=2)
    os.close(fd)
    box.launcherd.send("restore_done", generation=ask.generation)
    execs = control.expect("restore_exec")
    assert (execs.exec, len(execs.fds)) == (5, 1)
    close(execs)
    assert control.expect("restore_done").generation == 2
    assert control.backlog == []
    opened = control.expect("control_open")
    assert opened.generation == 2
    close(opened)
    assert not sb.killed(path)
    # The old control's client number means nothing now.
    exec_ask(box, sandbox, client, 6)
    assert control.expect("exec_answer", exec=6).error == 1
    fresh = user_client(box)
    assert fresh > client
    exec_ask(box, sandbox, fresh, 7)
    close(box.launcherd.expect("exec_ask", exec=7))


def test_an_answer_for_a_dead_control_reaches_nobody(box):
    client = user_client(box)
    fd = memfd(b"question")
    box.control.send("lookup_ask", fds=[fd], request=30, client=client,
                     run_uid=USER)
    start = box.launcherd.expect("lookup_start")
    close(start)
    box.control.kill()
    control = box.restart_control()
    ask = box.launcherd.expect("restore_ask")
    box.launcherd.send("lookup_answer", fds=[fd], request=start.request,
                       run_uid=USER)
    box.launcherd.send("restore_done", generation=ask.generation)
    close(control.expect("control_open"))
    assert [m.name for m in control.backlog if m.name == "lookup_answer"] == []
    # Its number may be used again and names another question.
    again = user_client(box)
    box.control.send("lookup_ask", fds=[fd], request=30, client=again,
                     run_uid=USER)
    second = box.launcherd.expect("lookup_start")
    assert second.request != start.request
    close(second)
    os.close(fd)


def test_a_launch_whose_control_died_is_ended(box):
    client = user_client(box)
    box.lookup(client, USER, 31)
    box.ask_launch(client, USER, 31)
    start = box.launcherd.expect("launch_start")
    close(start)
    box.made(start.sandbox)
    box.control.kill()
    control = box.restart_control()
    ask = box.launcherd.expect("restore_ask")
    box.launcherd.send("restore_done", generation=ask.generation)
    close(control.expect("control_open"))
    box.launcherd.send("launch_answer", request=start.request,
                       sandbox=start.sandbox, pid=1)
    assert box.launcherd.expect("destroy_ask").sandbox == start.sandbox
    assert not [m for m in control.backlog if m.name == "restore_run"]


def test_runs_end_with_their_launcherd(box):
    client = user_client(box)
    sandbox, path = box.launch(client, USER, 32)
    box.lookup(client, USER, 33)
    box.ask_launch(client, USER, 33)
    close(box.launcherd.expect("launch_start"))
    fd = memfd(b"question")
    box.control.send("lookup_ask", fds=[fd], request=34, client=client,
                     run_uid=USER)
    os.close(fd)
    close(box.launcherd.expect("lookup_start"))
    assert not sb.killed(path)
    box.launcherd.kill()
    ended = box.control.expect("run_ended", sandbox=sandbox)
    assert ended.cause == 8                  # service
    assert sb.killed(path)
    assert box.control.expect("launch_answer", request=33).code == 25
    assert box.control.expect("lookup_answer", request=34).error == 11
    box.proxyd.expect("egress_close", sandbox=sandbox)
    box.launcherd = box.start_launcherd(probe=False)
    box.launch(client, USER, 35)


def test_a_restarted_proxyd_gets_the_listeners_and_a_new_link(box):
    client = user_client(box)
    sandbox, _ = box.launch(client, USER, 36)
    close(box.resolver.expect("resolver_link"))
    box.proxyd.kill()
    box.proxyd = box.start_proxyd()
    opened = box.proxyd.expect("egress_open")
    assert opened.sandbox == sandbox
    assert [os.pread(fd, 9, 0) for fd in opened.fds] == [b"http", b"socks",
                                                        b"egress"]
    close(opened)
    close(box.proxyd.expect("resolver_link"))
    close(box.resolver.expect("resolver_link"))
    box.resolver.kill()
    box.resolver = box.start_resolver()
    close(box.proxyd.expect("resolver_link"))
    close(box.resolver.expect("resolver_link"))


def test_the_delay_grows(box):
    times = [time.monotonic()]
    for _ in range(4):
        box.last["stockade-resolver"].kill()
        box.start_resolver()
        times.append(time.monotonic())
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert [int(d) for d in re.findall(r"DELAY_MS=(\d+)", box.log())] == [
        100, 200, 400, 800]
    assert gaps[3] > 0.8


def test_a_launcherd_that_does_not_probe_is_no_success():
    with sb.Box() as box:
        control = box.start_control()
        box.start_proxyd()
        box.start_resolver()
        for _ in range(3):
            launcherd = box.next("stockade-launcherd")
            launcherd.send("ready")
            close(launcherd.expect("launcher_setup", probe=1))
            launcherd.send("probe_row", row=0, available=1)
            launcherd.kill()
        done = control.expect("probe_done")
        assert done.error and done.tools == 0
        close(control.expect("control_open"))
        assert not [m for m in control.backlog if m.name == "probe_row"]


# ------------------------------------------------ stop

def test_a_stop_ends_the_runs_first_and_then_the_daemons(box):
    client = user_client(box)
    sandbox, path = box.launch(client, USER, 37)
    box.process.send_signal(signal.SIGTERM)
    ask = box.launcherd.expect("destroy_ask")
    assert (ask.sandbox, ask.cause) == (sandbox, 8)
    # Every daemon is still there; no client comes in any more.
    sock, accepted = box.connect()
    box.control.send("client_ask", fds=[accepted.fileno()], conn=77)
    assert box.control.expect("client_answer", conn=77).client == 0
    sock.close()
    accepted.close()
    box.launcherd.send("run_ended", sandbox=sandbox, cause=8)
    box.control.expect("run_ended")
    for daemon in (box.control, box.launcherd, box.proxyd, box.resolver):
        assert daemon.ended()
        daemon.exit(0)
    assert box.wait() == 0
    assert not sb.killed(path)
    assert os.listdir(box.runtime) == []


def test_a_launcherd_that_hangs_does_not_stop_the_stop(box):
    client = user_client(box)
    _, path = box.launch(client, USER, 38)
    box.process.send_signal(signal.SIGINT)
    box.launcherd.expect("destroy_ask")
    box.process.send_signal(signal.SIGINT)      # and at once
    assert box.wait() == 0
    assert sb.killed(path)
    for daemon in box.daemons:
        assert not daemon.alive()


def test_daemons_that_do_not_go_are_killed(box):
    box.process.send_signal(signal.SIGTERM)
    assert box.wait(10) == 0
    for daemon in box.daemons:
        assert not daemon.alive()
