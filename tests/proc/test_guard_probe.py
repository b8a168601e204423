"""The guard's part of the probe (SPEC A16, D3, Z6): each thing that a mechanism
needs is taken away for real, and the row says which it was; and what a launch
verifies (D16). The twin of each is the probe of a host that lacks nothing."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile

import pytest

import brokerbox
import launcherbox
from launcherbox import AUTO, BROKER, DIR, Launcherd

pytestmark = pytest.mark.skipif(
    (launcherbox.can_run() or brokerbox.can_run()) is not None,
    reason=str(launcherbox.can_run() or brokerbox.can_run()))
GUARD_UNAVAILABLE = 11
VERIFY = ".stockade-verify-"

# Runs argv[2:] below a filter: argv[1] is it, in hexadecimal.
FILTERED = """
import ctypes, os, sys
prog = ctypes.create_string_buffer(bytes.fromhex(sys.argv[1]))
class Fprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
fprog = Fprog((len(prog) - 1) // 8, ctypes.addressof(prog))
assert libc.prctl(22, 2, ctypes.byref(fprog), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[2], sys.argv[2:])
"""


def bpf(code, jt=0, jf=0, k=0):
    return struct.pack("=HBBI", code, jt, jf, k)


def refusing(call, errno, flags=None):
    """The call fails, with these flags as its second argument or any."""
    load, equal, has, ret = 0x20, 0x15, 0x45, 0x06
    test = [] if flags is None else [bpf(load, k=24), bpf(has, 0, 1, flags)]
    prog = [bpf(load, k=0), bpf(equal, 0, len(test) + 1, call)] + test + [
        bpf(ret, k=0x00050000 | errno), bpf(ret, k=0x7fff0000)]
    return [sys.executable, "-c", FILTERED, b"".join(prog).hex(),
            launcherbox.PROGRAM]


def mounted(*lines):
    """With other mounts than the rest of the host."""
    return ["unshare", "-m", "sh", "-ec",
            "\n".join(lines) + '\nexec "$0"', launcherbox.PROGRAM]


@pytest.fixture
def scratch():
    path = tempfile.mkdtemp(prefix="stockade-probe-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def tree():
    path = launcherbox.work_tree()
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def shared():
    daemon = Launcherd()
    yield daemon
    assert daemon.close() == 0


def probed(**kw):
    """The daemon after its probe, what is in force, the rows by name."""
    daemon = Launcherd(probe=1, **{"guard": BROKER, **kw})
    rows = {}
    while True:
        msg = daemon.chan.expect("probe_row", "probe_done", timeout=30)
        if msg.name == "probe_done":
            return daemon, msg.guard, rows
        rows[launcherbox.ROWS[msg.row]] = (msg.available, msg.detail)


def told(why, tree=None, **kw):
    """A probe that must say this of the broker; launches with name rules are
    refused, others are not."""
    daemon, guard, rows = probed(**kw)
    assert guard == AUTO
    assert rows["guard.create"] == (
        0, "broker: %s; bpf-lsm: not chosen" % why), rows
    for name in ("guard.read", "guard.connect"):
        assert rows[name] == (0, "no mechanism is in force")
    if tree is not None:
        assert rows["namespaces"][0] == rows["seccomp"][0] == 1
        answer = daemon.refused(mounts=[(tree, False)], roots=[(tree, False)],
                                table=brokerbox.table([tree]))
        assert answer.code == GUARD_UNAVAILABLE, vars(answer)
        assert os.listdir(tree) == []
        daemon.launch(mounts=[(tree, False)]).destroy()
    assert "scratch" not in os.listdir(daemon.runtime + "/view")
    assert daemon.cgroups() == []
    assert daemon.close() == 0


# ---------------------------------------------------------------- what is missing

def test_nothing_is_missing():
    daemon, guard, rows = probed()
    assert guard == BROKER
    assert rows["guard.create"] == (1, "broker; bpf-lsm: not chosen")
    assert daemon.close() == 0


def test_auto_says_of_every_mechanism_what_it_is():
    daemon, guard, rows = probed(guard=AUTO)
    text = rows["guard.create"][1]
    assert rows["guard.create"][0] == 1
    if guard == BROKER:
        assert text.startswith("broker; bpf-lsm: ")
        assert not text.endswith("bpf-lsm: ")
    else:
        assert text == "bpf-lsm; broker: not needed"
        for name in ("guard.read", "guard.connect"):
            assert rows[name] == (1, "refused with EPERM")
    assert daemon.close() == 0


def test_a_kernel_without_killable_waits(tree):
    told("the kernel's seccomp lacks WAIT_KILLABLE_RECV (Linux 5.19)", tree,
         program=refusing(317, 22, flags=1 << 5))


def test_a_kernel_without_landlock():
    """Without it there is no sandbox at all; the row names it all the same."""
    told("the kernel has no Landlock", program=refusing(444, 95))


def test_yama_that_forbids_every_look(tree, scratch):
    """/proc/sys/kernel with that level, and what bubblewrap reads there."""
    os.mkdir(scratch + "/yama")
    for name, text in (("yama/ptrace_scope", "3"), ("overflowuid", "65534"),
                       ("overflowgid", "65534"), ("cap_last_cap", "40"),
                       ("ngroups_max", "65536"), ("pid_max", "32768")):
        with open(os.path.join(scratch, name), "w", encoding="ascii") as f:
            f.write(text + "\n")
    program = mounted("mount --bind %s /proc/sys/kernel" % scratch)
    told("kernel.yama.ptrace_scope is 3", tree, program=program)
    with open(scratch + "/yama/ptrace_scope", "w", encoding="ascii") as f:
        f.write("2\n")
    daemon, guard, _ = probed(program=program)
    assert guard == BROKER
    assert daemon.close() == 0


def test_without_its_user_there_is_no_broker(tree, scratch):
    with open("/etc/passwd", encoding="utf-8") as f:
        lines = [x for x in f if not x.startswith("stockade-broker:")]
    with open(scratch + "/passwd", "w", encoding="utf-8") as f:
        f.writelines(lines)
    told("the user stockade-broker is not there", tree,
         program=mounted("mount --bind %s/passwd /etc/passwd" % scratch))


def with_broker(scratch, program):
    for name in os.listdir(launcherbox.LIBEXEC):
        os.symlink(program if name == "stockade-broker" else
                   os.path.join(launcherbox.LIBEXEC, name),
                   os.path.join(scratch, name))
    return scratch


def test_a_broker_that_does_not_work(tree, scratch):
    """All that a list could ask for is there; only the test finds it."""
    told("stockade-broker ended while the run was starting", tree,
         libexec=with_broker(scratch, os.path.realpath("/bin/true")))


# ---------------------------------------------------------------- its twin

def test_the_test_fails_where_nothing_refuses(shared, tree):
    """What the probe runs, in a run without a guard: each act succeeds."""
    run = shared.launch(mounts=[(tree, "/tree", DIR, False, 0, 0)])
    status, out, _ = run.command(["/run/stockade/init", "probe", "guard"])
    rows = [line.split(" ", 2) for line in out.decode().splitlines()]
    assert status == 1 and rows == [
        ["guard.create", "fail", "creating .env: not refused"],
        ["guard.read", "fail", "not refused"],
        ["guard.connect", "fail", "not refused"],
        ["end", "ok", "rows=3"]]
    assert not os.path.exists(tree + "/.env")
    run.destroy()


# ---------------------------------------------------------------- D16

def launched(daemon, places, rules=brokerbox.NAMES, **kw):
    return dict(mounts=[(p, False) for p in places],
                roots=[(p, False) for p in places],
                table=brokerbox.table(places, rules=rules), **kw)


def verified(shared, run):
    run.destroy()
    assert [m for m in shared.chan.backlog
            if m.name == "denial" and m.sandbox == run.sandbox] == []


@pytest.fixture
def submount(tree):
    point = os.path.join(tree, "sub")
    os.mkdir(point)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "tmpfs", point],
                   check=True)
    yield point
    subprocess.run(["umount", "-l", point], check=True)


def test_each_mount_below_is_tried(shared, tree, submount):
    """Rules that hold the name at the top alone: the mount is found."""
    rules = ("-V", "-w", "/" + VERIFY + "*")
    answer = shared.refused(**launched(shared, [tree], rules))
    assert answer.code == GUARD_UNAVAILABLE, vars(answer)
    assert "a protected name could be made in " + submount in answer.reason
    assert os.listdir(submount) == [] and os.listdir(tree) == ["sub"]
    subprocess.run(["umount", submount], check=True)
    try:
        verified(shared, shared.launch(**launched(shared, [tree], rules)))
    finally:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", submount], check=True)


@pytest.mark.parametrize("options", ["ro", "remount,bind,ro", "mode=700"])
def test_a_mount_that_cannot_be_written_is_no_fault(shared, tree, submount,
                                                    options):
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", submount, "-o", options]
                   if "remount" not in options else
                   ["mount", "-o", options, submount], check=True)
    try:
        run = shared.launch(**launched(shared, [tree]))
        assert run.sh("echo x >%s/file" % submount)[0] != 0
        verified(shared, run)
    finally:
        if "remount" not in options:
            subprocess.run(["umount", submount], check=True)


def test_many_masks_with_long_names(shared, tree):
    """Each is a mount; their list alone is some megabytes."""
    masks = []
    for i in range(12000 // brokerbox.SLOW):
        place = os.path.join(tree, "d" * 100 + str(i // 1000))
        if i % 1000 == 0:
            os.mkdir(place)
        path = os.path.join(place, "%s%d.key" % ("x" * 100, i))
        with open(path, "w", encoding="ascii"):
            masks.append((path, launcherbox.READ_ONLY, launcherbox.FILE, False,
                          True))
    verified(shared, shared.launch(masks=masks, **launched(shared, [tree])))


def test_a_place_of_another_user_is_no_fault(shared, tree):
    os.chown(tree, 0, 0)
    verified(shared, shared.launch(**launched(shared, [tree])))


@pytest.mark.parametrize("name", [VERIFY, VERIFY + "0", VERIFY[:-1]])
def test_a_file_of_such_a_name_is_no_fault(shared, tree, name):
    """A tree can bring one along; it stays as it is."""
    path = os.path.join(tree, name)
    with open(path, "w", encoding="ascii") as f:
        f.write("mine")
    os.chown(path, launcherbox.NOBODY, launcherbox.NOBODY)
    run = shared.launch(**launched(shared, [tree]))
    assert run.sh("cat " + path)[1] == b"mine"
    run.destroy()
    with open(path, encoding="ascii") as f:
        assert f.read() == "mine"
    assert os.listdir(tree) == [name]


def test_one_directory_at_two_places(shared, tree):
    """Both are tried: a rule of the one place does not hold the other."""
    os.mkdir(tree + "/a")
    os.chown(tree + "/a", launcherbox.NOBODY, launcherbox.NOBODY)
    mounts = [(tree + "/a", "/one", DIR, False, 0, 0),
              (tree + "/a", "/two", DIR, False, 0, 0)]
    roots = [("/one", False), ("/two", False)]
    run = shared.launch(mounts=mounts, roots=roots,
                        table=brokerbox.table(["/one", "/two"]))
    for place in ("/one", "/two"):
        assert run.sh("echo x >%s/.env" % place)[0] != 0
    run.destroy()
    assert os.listdir(tree + "/a") == []
    answer = shared.refused(mounts=mounts, roots=roots, table=brokerbox.table(
        ["/one", "/two"], rules=["-V", "-w", "/nothing"]))
    assert "a protected name could be made in /one" in answer.reason


def test_a_name_of_a_run_is_told_although_it_is_that_one(shared, tree):
    """Only what pid 1 tries before the run is no violation."""
    run = shared.launch(**launched(shared, [tree]))
    path = os.path.join(tree, VERIFY + "0")
    assert run.sh("echo x >" + path)[0] != 0
    denial = shared.chan.expect("denial", sandbox=run.sandbox, timeout=10)
    assert denial.path == path and denial.count == 1
    verified(shared, run)
