"""stockade-init in a real sandbox, with the test as its launcherd."""

import os
import shutil
import subprocess
import time

import pytest

import initbox
from initbox import GID, HOME, UID, Box
import messages

pytestmark = pytest.mark.skipif(initbox.can_run() is not None,
                                reason=str(initbox.can_run()))

READ_STATUS = ["cat", "/proc/self/status"]


@pytest.fixture
def tree():
    path = initbox.temporary_tree()
    yield path
    shutil.rmtree(path)


@pytest.fixture
def box(tree):
    it = Box(mounts=[(tree, HOME + "/a/b/proj", False)])
    it.setup()
    yield it
    it.close()


def status_of(text):
    return dict(line.split(":\t", 1) for line in text.decode().splitlines())


# ---------------------------------------------------------------- identity

def test_run_has_its_ids_and_nothing_else(box):
    status = status_of(box.run(READ_STATUS)[1])
    assert status["Uid"] == "\t".join([str(UID)] * 4)
    assert status["Gid"] == "\t".join([str(GID)] * 4)
    assert status["Groups"].strip() == ""
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert status["SigBlk"] == status["SigIgn"] == "0" * 16
    assert status["Umask"] == "0022"


def test_supplementary_groups_are_those_of_the_message():
    box = Box()
    groups = b"".join(g.to_bytes(4, "little") for g in (70001, 70000))
    box.setup(groups=groups)
    assert status_of(box.run(READ_STATUS)[1])["Groups"].split() == [
        "70000", "70001"]
    box.close()


def test_only_three_descriptors_are_open(box):
    # 3 is the directory that ls reads.
    assert box.run(["ls", "/proc/self/fd"])[1].split() == [
        b"0", b"1", b"2", b"3"]


def test_every_row_of_the_probe_is_ok(box):
    status, out, _ = box.run(["/run/stockade/init", "probe"])
    rows = out.decode().splitlines()
    assert [r for r in rows if r.split()[1] != "ok"] == []
    assert rows[-1] == "end ok rows=%d" % (len(rows) - 1)
    assert status == 0


def test_twin_probe_fails_where_nothing_confines():
    done = subprocess.run([initbox.INIT, "probe"], user=UID, group=GID,
                          extra_groups=[], stdout=subprocess.PIPE)
    rows = dict(line.split(" ", 1)
                for line in done.stdout.decode().splitlines())
    assert done.returncode == 1
    for name in ("capabilities", "seccomp", "landlock", "userns.refused",
                 "namespaces"):
        assert rows[name].startswith("fail"), (name, rows[name])


def test_private_directories_belong_to_the_run(box, tree):
    stat = ["stat", "-c", "%u %a"]
    for path, want in ((HOME, "700"), (HOME + "/a", "755"),
                       (HOME + "/a/b", "755"),
                       ("/run/stockade/run", "700")):
        assert box.run(stat + [path])[1].decode().split() == [str(UID), want]
    assert box.run(["sh", "-c", "cd ~ && : >x && : >/run/stockade/run/y"],
                   env=["HOME=" + HOME])[0] == 0


def test_owner_of_a_mounted_tree_is_never_changed(tree):
    # A mount inside a mount: the directories between are the host's.
    os.makedirs(tree + "/deep/inner")
    os.chown(tree + "/deep", 0, 0)
    inner = initbox.temporary_tree()
    os.symlink("/etc", tree + "/link")
    box = Box(mounts=[(tree, HOME + "/proj", False),
                      (inner, HOME + "/proj/deep/inner", False)])
    box.setup()
    assert os.stat(tree + "/deep").st_uid == 0
    assert os.lstat(tree + "/link").st_uid == 0
    box.close()
    shutil.rmtree(inner)


def test_uid_zero_is_refused():
    box = Box(uid=1)
    fd = messages.memfd(initbox.plan())
    # The table forbids it: the message is a broken rule.
    box.chan.send("init_setup", [fd], uid=0, gid=0, home=HOME)
    os.close(fd)
    assert box.chan.ended()
    box.close()


def test_missing_capability_ends_before_anything_runs():
    box = Box(cap_add=("SETUID", "SETGID", "CHOWN"))
    box.send_setup()
    msg = box.chan.expect("init_failed")
    assert msg.step == "bounding set" and msg.error == 1
    assert box.chan.ended()
    box.close()


def test_a_missing_mount_target_fails_the_start():
    box = Box()
    box.send_setup(raw_plan=initbox.plan([("/srv/none", 0, False)]))
    msg = box.chan.expect("init_failed")
    assert msg.step == "landlock: a writable mount" and msg.error == 2
    box.close()


def test_started_by_hand_says_so():
    done = subprocess.run([initbox.INIT], stderr=subprocess.PIPE)
    assert done.returncode == 125
    assert b"started by stockade-launcherd" in done.stderr


# ---------------------------------------------------------------- Landlock

def test_a_read_only_mount_is_not_written_and_a_writable_one_is(tree):
    other = initbox.temporary_tree()
    box = Box(mounts=[(tree, HOME + "/rw", False), (other, HOME + "/ro", True)])
    box.setup()
    assert box.run(["touch", HOME + "/rw/x"])[0] == 0
    assert box.run(["touch", HOME + "/ro/x"])[0] == 1
    assert os.path.exists(tree + "/x") and os.listdir(other) == []
    box.close()
    shutil.rmtree(other)


def test_landlock_refuses_what_mount_and_mode_would_permit(tree):
    # The plan calls the tree read-only, the mount is writable: Landlock alone
    # stands in the way. Twin: with the plan's word changed, it works.
    for read_only, want in ((True, 1), (False, 0)):
        box = Box(mounts=[(tree, "/srv", False)])
        box.setup(raw_plan=initbox.plan([("/srv", 0, read_only)]))
        assert box.run(["touch", "/srv/x"])[0] == want
        box.close()
    assert os.listdir(tree) == ["x"]


def test_rename_and_link_across_directories_work(box):
    line = ("cd %s/a/b/proj && mkdir p q && echo 1 >p/f && mv p/f q/g && "
            "ln q/g p/h && cat p/h" % HOME)
    assert box.run(["sh", "-c", line])[:2] == (0, b"1\n")


# ---------------------------------------------------------------- seccomp

CALLS = r"""
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*a):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_long(x) for x in a])
    return errno.errorcode.get(ctypes.get_errno(), "0") if r < 0 else "ok"
for line in sys.stdin:
    print(call(*[int(x, 0) for x in line.split()]), flush=True)
"""

# Numbers of x86_64: the call, what comes back inside.
REFUSED = [
    ("mount", "165 0 0 0 0 0", "EPERM"),
    ("umount2", "166 0 0", "EPERM"),
    ("pivot_root", "155 0 0", "EPERM"),
    ("chroot", "161 0", "EPERM"),
    ("fsopen", "430 0 0", "EPERM"),
    ("open_tree", "428 0 0 0", "EPERM"),
    ("open_tree_attr", "467 0 0 0", "EPERM"),
    ("unshare user", "272 0x10000000", "EPERM"),
    ("unshare net", "272 0x40000000", "EPERM"),
    ("unshare time", "272 0x80", "EPERM"),
    ("unshare files", "272 0x400", "ok"),
    ("clone user", "56 0x10000011 0 0 0 0", "EPERM"),
    ("clone pid", "56 0x20000011 0 0 0 0", "EPERM"),
    ("clone3", "435 0 0", "ENOSYS"),
    ("setns", "308 0 0", "EPERM"),
    ("bpf", "321 0 0 0", "EPERM"),
    ("perf_event_open", "298 0 0 0 0 0", "EPERM"),
    ("userfaultfd", "323 0", "EPERM"),
    ("keyctl", "250 0 0 0 0 0", "EPERM"),
    ("add_key", "248 0 0 0 0 0", "EPERM"),
    ("request_key", "249 0 0 0 0", "EPERM"),
    ("io_uring_setup", "425 1 0", "EPERM"),
    ("open_by_handle_at", "304 0 0 0", "EPERM"),
    ("init_module", "175 0 0 0", "EPERM"),
    ("kexec_load", "246 0 0 0 0", "EPERM"),
    ("TIOCSTI", "16 0 0x5412 0", "EPERM"),
    ("TIOCSTI with high bits", "16 0 0x100005412 0", "EPERM"),
    ("TIOCLINUX", "16 0 0x541c 0", "EPERM"),
    ("AF_PACKET", "41 17 3 0", "EPERM"),
    ("AF_VSOCK", "41 40 1 0", "EPERM"),
    ("AF_ALG", "41 38 5 0", "EPERM"),
    ("AF_UNIX with high bits", "41 0x100000001 1 0", "ok"),
    ("AF_INET", "41 2 1 0", "ok"),
    ("netlink route", "41 16 3 0", "ok"),
    ("netlink audit", "41 16 3 9", "EPERM"),
    ("socketpair inet", "53 2 1 0 0", "EPERM"),
    ("landlock_create_ruleset", "444 0 0 1", "ENOTSUP"),
    ("landlock_restrict_self", "446 0 0", "ENOTSUP"),
    ("personality 32", "135 8", "EPERM"),
    ("swapon, not named", "167 0 0", "ENOSYS"),
    ("reboot, not named", "169 0 0 0 0", "ENOSYS"),
    ("modify_ldt, not named", "154 0 0 0", "ENOSYS"),
    ("no such call", "9999", "ENOSYS"),
    ("x32 getpid", "0x40000027", "ENOSYS"),
]


def test_named_calls_are_refused_as_the_table_says(box):
    if os.uname().machine != "x86_64":
        pytest.skip("numbers are those of x86_64")
    lines = "".join(row[1] + "\n" for row in REFUSED)
    status, out, err = box.run(["python3", "-c", CALLS], lines.encode())
    assert status == 0, err
    got = dict(zip([r[0] for r in REFUSED], out.decode().split()))
    assert got == {r[0]: r[2] for r in REFUSED}


def test_twin_the_same_calls_are_not_refused_outside():
    if os.uname().machine != "x86_64":
        pytest.skip("numbers are those of x86_64")
    rows = [r for r in REFUSED if r[0] in (
        "unshare user", "landlock_create_ruleset", "AF_UNIX with high bits",
        "personality 32", "netlink audit", "TIOCSTI")]
    lines = "".join(r[1] + "\n" for r in rows)
    done = subprocess.run(["python3", "-c", CALLS], input=lines.encode(),
                          stdout=subprocess.PIPE)
    for row, got in zip(rows, done.stdout.decode().split()):
        assert got not in (row[2],) or row[2] == "ok", row[0]


INT80 = r"""
import ctypes, mmap
code = bytes([0x53, 0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x5b, 0xc3])
m = mmap.mmap(-1, 4096, prot=7)
m.write(code)
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(
    ctypes.c_char.from_buffer(m)))
print(f())
"""


def test_calls_of_32_bit_programs_are_not_there(box):
    if os.uname().machine != "x86_64":
        pytest.skip("x86_64 only")
    status, out, _ = box.run(["python3", "-c", INT80])
    assert (status, out) == (0, b"-38\n")


def test_user_namespaces_where_permitted_but_never_a_mount(tree):
    box = Box(mounts=[(tree, HOME + "/proj", False)])
    box.setup(userns=1, raw_plan=initbox.plan(
        [(HOME + "/proj", 0, False)], userns=True))
    assert box.run(["unshare", "-U", "true"])[0] == 0
    line = "unshare -Urm mount -t tmpfs none /tmp"
    assert box.run(["sh", "-c", line])[0] != 0
    box.close()


# ---------------------------------------------------------------- commands

def test_status_and_signal_are_reported(box):
    assert box.run(["sh", "-c", "exit 7"])[0] == 7
    assert box.run(["sh", "-c", "kill -9 $$"])[0] == -9


def test_environment_is_the_plans_alone(box):
    out = box.run(["/usr/bin/env"], env=["A=1", "B=x y"])[1]
    assert out == b"A=1\nB=x y\n"


def test_program_is_searched_in_the_plans_path(box, tree):
    with open(tree + "/mine", "w") as f:
        f.write("#!/bin/sh\necho found\n")
    os.chmod(tree + "/mine", 0o755)
    path = "PATH=/none:" + HOME + "/a/b/proj:/usr/bin"
    assert box.run(["mine"], env=[path])[1] == b"found\n"
    assert box.run(["mine"])[:2] == (2, b"exec")


def test_a_program_that_is_not_there_is_told_before_any_exit(box):
    number, answer = box.start(["/no/such"], [0, 1, 2])
    assert (answer.error, answer.step, answer.pid) == (2, "exec", 0)
    assert box.run(["true"])[0] == 0
    assert [m.name for m in box.chan.backlog] == []


def test_a_directory_is_no_program(box):
    assert box.run(["/usr"])[:2] == (13, b"exec")


def test_a_missing_working_directory_is_told(box):
    assert box.run(["true"], cwd=HOME + "/none")[:2] == (2, b"cwd")


def test_large_arguments_and_input_arrive(box):
    word = "x" * 100000
    assert box.run(["sh", "-c", 'printf %s "${#1}"', "-", word])[1] == b"100000"
    assert box.run(["wc", "-c"], b"y" * 60000)[1].strip() == b"60000"


def test_each_command_leads_its_own_session(box):
    out = box.run(["sh", "-c", "cut -d' ' -f1,5,6 /proc/$$/stat"])[1].split()
    assert out[0] == out[1] == out[2]


def test_signal_reaches_the_process_group_only(box):
    r, w = os.pipe()
    first, _ = box.start(["sh", "-c", "sleep 60 & wait"], [0, w, 2])
    second, _ = box.start(["sleep", "60"], [0, 1, 2])
    os.close(w)
    box.chan.send("init_signal", exec=first, signal=15)
    assert box.chan.expect("init_exit", exec=first).signal == 15
    assert os.read(r, 1) == b""     # the child of the shell is gone too
    os.close(r)
    box.chan.send("init_signal", exec=second, signal=9)
    assert box.chan.expect("init_exit", exec=second).signal == 9


@pytest.mark.parametrize("signal", [5, 11, 13, 21, 33, 64])
def test_other_signals_are_not_sent(box, signal):
    number, _ = box.start(["sleep", "60"], [0, 1, 2])
    box.chan.send("init_signal", exec=number, signal=signal)
    box.chan.send("init_signal", exec=number, signal=2)
    assert box.chan.expect("init_exit", exec=number).signal == 2


def test_stop_and_continue(box):
    number, answer = box.start(["sleep", "60"], [0, 1, 2])
    line = "cut -d' ' -f3 /proc/%d/stat" % answer.pid
    box.chan.send("init_signal", exec=number, signal=19)
    end = time.monotonic() + 5
    while box.run(["sh", "-c", line])[1] != b"T\n":
        assert time.monotonic() < end
    box.chan.send("init_signal", exec=number, signal=18)
    box.chan.send("init_signal", exec=number, signal=15)
    assert box.chan.expect("init_exit", exec=number).signal == 15


def test_orphans_are_reaped(box):
    box.run(["sh", "-c", "(sleep 0 & ) ; (true &) ; exit 0"])
    end = time.monotonic() + 5
    while b"Z" in box.run(["sh", "-c", "cat /proc/[0-9]*/stat | "
                           "cut -d' ' -f3"])[1]:
        assert time.monotonic() < end


def test_many_commands_at_once_and_a_limit(box):
    numbers = [box.start(["sleep", "60"], [0, 1, 2])[0] for _ in range(64)]
    answer = box.start(["true"], [0, 1, 2])[1]
    assert (answer.error, answer.step) == (11, "limit")
    for number in numbers:
        box.chan.send("init_signal", exec=number, signal=9)
    for number in numbers:
        assert box.chan.expect("init_exit", exec=number).signal == 9
    assert box.run(["true"])[0] == 0


# ---------------------------------------------------------------- terminal

def test_terminal_is_the_controlling_one(box):
    line = "tty; stty size; echo ok >/dev/tty; ps -o tpgid= -p $$; echo $$"
    number, answer = box.start(["sh", "-c", line], tty=True, rows=33, cols=99)
    assert answer.error == 0 and len(answer.fds) == 1
    box.chan.expect("init_exit", exec=number)
    out = b""
    while True:
        try:
            got = os.read(answer.fds[0], 4096)
        except OSError:
            break
        out += got
    os.close(answer.fds[0])
    words = out.decode().split()
    assert words[0].startswith("/dev/pts/")
    assert words[1:4] == ["33", "99", "ok"]
    assert words[4] == words[5]


def test_interrupt_of_the_terminal_reaches_the_command(box):
    number, answer = box.start(["sleep", "60"], tty=True)
    os.write(answer.fds[0], b"\x03")
    assert box.chan.expect("init_exit", exec=number).signal == 2
    os.close(answer.fds[0])


def test_error_output_may_be_apart_from_the_terminal(box):
    r, w = os.pipe()
    number = box.next_exec
    box.next_exec += 1
    fd = messages.memfd(initbox.exec_plan(["sh", "-c", "echo e >&2"]))
    box.chan.send("init_exec", [fd, w], exec=number, tty=1)
    os.close(fd)
    os.close(w)
    assert os.read(r, 100) == b"e\n"
    os.close(r)
    box.chan.expect("init_exit", exec=number)


def test_hang_up_when_the_master_is_closed(box):
    number, answer = box.start(["sleep", "60"], tty=True)
    os.close(answer.fds[0])
    assert box.chan.expect("init_exit", exec=number).signal == 1


# ---------------------------------------------------------------- the end

def test_end_of_the_channel_ends_the_sandbox(box):
    r, w = os.pipe()
    box.start(["sh", "-c", "trap '' TERM HUP; sleep 60"], [0, w, 2])
    os.close(w)
    box.chan.sock.close()
    assert os.read(r, 1) == b""
    os.close(r)
    assert box.process.wait(5) is not None


def test_stop_asks_and_ends_when_all_are_gone(box):
    r, w = os.pipe()
    number, _ = box.start(["sh", "-c", "trap 'echo bye; exit 3' TERM; "
                           "echo up; while :; do sleep 0.05; done"], [0, w, 2])
    os.close(w)
    assert os.read(r, 100) == b"up\n"
    box.chan.send("init_stop")
    assert box.chan.expect("init_exit", exec=number).status == 3
    assert os.read(r, 100) == b"bye\n"
    os.close(r)
    assert box.chan.ended()


def test_stop_of_an_idle_sandbox_ends_it_at_once(box):
    box.chan.send("init_stop")
    assert box.chan.ended()


def test_stop_refuses_new_commands(box):
    r, w = os.pipe()
    box.start(["sh", "-c", "trap '' TERM; echo; sleep 60"], [0, w, 2])
    os.read(r, 1)
    box.chan.send("init_stop")
    answer = box.start(["true"], [0, 1, 2])[1]
    assert answer.error == 108
    os.close(r)
    os.close(w)


# ---------------------------------------------------------------- from inside

ATTACK = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, f):
    try:
        print(name, "yes" if f() else "no")
    except OSError as e:
        print(name, "no")
tried("mem", lambda: open("/proc/1/mem", "rb"))
tried("fd", lambda: os.readlink("/proc/1/fd/3"))
tried("root", lambda: os.listdir("/proc/1/root"))
tried("environ", lambda: open("/proc/1/environ", "rb").read())
tried("ptrace", lambda: libc.ptrace(16, 1, 0, 0) == 0)
tried("getfd", lambda: libc.syscall(438, os.pidfd_open(1), 3, 0) >= 0)
for s in (9, 15, 19, 2):
    os.kill(1, s)
"""


def test_a_run_cannot_reach_into_its_init(box):
    status, out, err = box.run(["python3", "-c", ATTACK])
    assert status == 0, err
    assert {line.split()[1] for line in out.decode().splitlines()} == {"no"}
    assert box.run(["true"])[0] == 0    # and the signals did nothing


def test_twin_a_dumpable_process_of_the_run_can_be_reached(box):
    number, answer = box.start(["sleep", "60"], [0, 1, 2])
    line = "readlink /proc/%d/fd/0" % answer.pid
    assert box.run(["sh", "-c", line])[0] == 0
    box.chan.send("init_signal", exec=number, signal=9)
    box.chan.expect("init_exit", exec=number)
