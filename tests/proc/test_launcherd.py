"""stockade-launcherd with real sandboxes; the test is its supervisor."""

import os
import random
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import pytest

import brokerbox
import launcherbox
import messages
from launcherbox import (DIR, EMPTY_DIR, FILE, NO_FILE, NOBODY, PINNED,
                         READ_ONLY, Launcherd)

# Of each kind of race; more by hand.
SWAPS = int(os.environ.get("STOCKADE_SWAPS", "120"))

pytestmark = pytest.mark.skipif(launcherbox.can_run() is not None,
                                reason=str(launcherbox.can_run()))


@pytest.fixture(scope="module")
def shared():
    daemon = Launcherd(allow_userns=1)
    yield daemon
    assert daemon.close() == 0


@pytest.fixture
def own():
    daemon = Launcherd()
    yield daemon
    daemon.close()


@pytest.fixture
def tree():
    path = launcherbox.work_tree()
    yield path
    subprocess.run(["rm", "-rf", path], check=True)


@pytest.fixture
def run(shared, tree):
    it = shared.launch(mounts=[(tree, False)])
    it.tree = tree
    yield it
    it.destroy()


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii",
                  errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids, timeout=5.0):
    """Waits by pidfd until none of the processes is left."""
    end = time.monotonic() + timeout
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        select.select([fd], [], [], max(0, end - time.monotonic()))
        os.close(fd)
    return not any(alive(p) for p in pids)


def read(fd, size=100, timeout=5):
    """Our ends do not block."""
    assert select.select([fd], [], [], timeout)[0], "no output"
    return os.read(fd, size)


def children_of(pid):
    out = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="],
                         stdout=subprocess.PIPE, check=False).stdout
    return [int(p) for p in out.split()]


def left_of(pid):
    """Children but the look-up that waits for the next launch, once what is
    being started or reaped is through."""
    end = time.monotonic() + 3
    while True:
        left = left_now(pid)
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.01)


def left_now(pid):
    found = []
    for child in children_of(pid):
        try:
            name = launcherbox.read_file("/proc/%d/comm" % child).strip()
        except FileNotFoundError:
            continue
        found.append((child, name))
    return [it for it in found if it[1] != "stockade-lookup"][:1] + \
        [it for it in found if it[1] == "stockade-lookup"][1:]


# ------------------------------------------------------------------ the view

def test_view_is_the_fixed_one_and_the_mount(run):
    status, out, err = run.sh(
        "ls /; ls -d /sys /boot /root /var; id -u; id -G; umask; hostname")
    assert err.count(b"No such file") == 4
    words = out.decode().split()
    for name in ("bin", "dev", "etc", "home", "proc", "run", "tmp", "usr"):
        assert name in words
    assert words[-4:] == [str(NOBODY), str(NOBODY), "0022", "box"]


def test_private_directories_are_empty_and_writable(run):
    for path in ("/tmp", "/dev/shm", "/home/u", "/run/stockade/run",
                 run.tree):
        line = "ls -A %s | wc -l; touch %s/x && stat -c %%u %s/x" % (
            (path,) * 3)
        assert run.sh(line) == (0, b"0\n%d\n" % NOBODY, b""), path


def test_everything_else_refuses_writes(run):
    for path in ("/", "/usr", "/etc", "/run", "/run/stockade", "/home",
                 "/run/stockade/etc", "/proc/sys/kernel/x"):
        status, _, err = run.sh("touch %s/x" % path)
        assert status == 1, path


def test_no_capability_no_new_privs_seccomp(run):
    out = run.sh("cat /proc/self/status")[1].decode()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert re.search(name + r":\t0{16}\n", out)
    assert "NoNewPrivs:\t1\n" in out and "Seccomp:\t2\n" in out


def test_descriptors_are_exactly_three(run):
    out = run.command(["/bin/ls", "/proc/self/fd"])[1].split()
    assert out == [b"0", b"1", b"2", b"3"]  # 3: ls's own directory


def test_etc_has_the_listed_entries_and_the_generated_files(run):
    status, out, _ = run.sh(
        "cat /etc/passwd; head -c1 /etc/debian_version >/dev/null && "
        "echo version;"
        "test -e /etc/shadow || echo none; cat /etc/os-release | head -1;"
        "ls /etc/ssl")
    text = out.decode()
    assert text.startswith(launcherbox.PASSWD.decode())
    assert os.path.exists("/etc/debian_version") == ("version\n" in text)
    assert "none\n" in text
    assert re.search(r"^PRETTY_NAME|^NAME|^ID", text, re.M)
    assert "certs" in text and "private" not in text


def test_links_of_etc_lead_somewhere(run):
    """A relative link of the host's was rewritten, not broken."""
    out = run.sh("find /etc/ -maxdepth 1 -type l | while read -r l; do "
                 "test -e \"$l\" || echo \"$l\"; done")[1].decode().split()
    host = [l for l in out if os.path.exists(l)]
    assert host == []


def test_new_copy_of_etc_after_a_change_on_the_host(own, tree):
    first = own.launch(mounts=[(tree, False)])
    before = first.sh("ls -di /run/stockade/etc")[1]
    os.utime("/etc/shells")         # an event of a listed name
    second = own.launch(mounts=[(tree, False)])
    assert second.sh("ls -di /run/stockade/etc")[1] != before
    # the one that a live run uses stays whole
    assert first.sh("cat /etc/shells")[0] == 0
    first.destroy()
    second.destroy()


def test_network_has_loopback_and_the_listeners_only(run):
    out = run.sh("cat /proc/net/dev | tail -n +3 | cut -d: -f1;"
                 "cat /proc/net/route | tail -n +2")[1].decode()
    assert [w for w in out.split() if w != "sit0"] in (
        ["lo"], ["lo", "tunl0"], ["tunl0", "lo"])
    sock = socket.socket(fileno=os.dup(run.http))
    assert sock.getsockname() == ("127.0.0.1", 3128)
    socks = socket.socket(fileno=os.dup(run.socks))
    assert socks.getsockname() == ("127.0.0.1", 1080)
    number, answer = run.start(
        ["/bin/bash", "-c", "exec 5<>/dev/tcp/127.0.0.1/3128; echo hi >&5"])
    sock.settimeout(5)
    conn, _ = sock.accept()
    assert conn.recv(10) == b"hi\n"
    assert run.wait(number) == 0
    for it in (sock, socks, conn):
        it.close()
    for fd in answer.fds:
        os.close(fd)


def test_launcherd_came_back_to_its_own_network(run):
    own = os.stat("/proc/self/ns/net").st_ino
    assert os.stat("/proc/%d/ns/net" % run.l.process.pid).st_ino == own


def test_each_run_has_a_network_namespace_of_its_own(own, tree):
    """One is made ahead; it must serve one launch alone."""
    runs = [own.launch(mounts=[(tree, False)]) for _ in range(6)]
    spaces = {os.stat("/proc/%d/ns/net" % children_of(r.answer.pid)[0]).st_ino
              for r in runs}
    assert len(spaces) == 6
    assert os.stat("/proc/self/ns/net").st_ino not in spaces
    for run in runs:
        run.destroy()


def test_arguments_show_nothing(shared, tree):
    run = shared.launch(mounts=[(tree, False)])
    for pid in run.pids():
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            line = f.read()
        assert tree.encode() not in line and b"passwd" not in line
    run.destroy()


# ------------------------------------------------------------------ mounts

def test_read_only_mount_refuses_writes(shared, tree):
    run = shared.launch(mounts=[(tree, True)])
    assert run.sh("touch %s/x" % tree)[0] == 1
    assert os.listdir(tree) == []
    run.destroy()


def test_nested_mount_and_directory_between(shared, tree):
    inner = os.path.join(tree, "a", "b")
    os.makedirs(inner)
    subprocess.run(["chown", "-R", str(NOBODY), tree], check=True)
    run = shared.launch(mounts=[(tree, True), (inner, False)])
    assert run.sh("touch %s/x && ! touch %s/x 2>/dev/null" % (inner, tree))[
        0] == 0
    run.destroy()


def test_missing_mount_point_inside_a_mount_is_refused(shared, tree):
    other = launcherbox.work_tree()
    try:
        answer = shared.refused(mounts=[
            (tree, False), (other, tree + "/no", DIR, False, 0, 0)])
        assert "mount point" in answer.reason
        assert os.listdir(tree) == []       # nothing was made (C19)
    finally:
        os.rmdir(other)


def test_source_is_opened_as_the_user(shared, tree):
    """The twin: root, who starts the sandbox, could read it."""
    secret = os.path.join(tree, "secret")
    os.mkdir(secret, 0o700)
    os.mkdir(secret + "/deep")
    os.stat(secret + "/deep")
    answer = shared.refused(mounts=[(secret + "/deep", True)])
    assert answer.step == "mounts" and "Permission denied" in answer.reason


def test_supplementary_group_opens_what_the_uid_cannot(shared, tree):
    secret = os.path.join(tree, "secret")
    os.mkdir(secret, 0o750)
    os.chown(secret, 0, 4321)
    os.mkdir(secret + "/deep", 0o755)
    shared.refused(mounts=[(secret + "/deep", True)])
    run = shared.launch(mounts=[(secret + "/deep", True)], groups=[4321])
    assert run.command(["/usr/bin/id", "-G"])[1] == b"%d 4321\n" % NOBODY
    run.destroy()


def test_replaced_source_is_refused(shared, tree):
    path = os.path.join(tree, "d")
    os.mkdir(path)
    st = os.stat(path)
    os.rename(path, path + ".old")
    os.mkdir(path)
    answer = shared.refused(mounts=[(path, path, DIR, False, st.st_dev,
                                     st.st_ino)])
    assert "replaced" in answer.reason
    st = os.stat(path)
    run = shared.launch(mounts=[(path, path, DIR, False, st.st_dev,
                                 st.st_ino)])
    run.destroy()


def test_magic_link_is_not_followed(shared, tree):
    """Of a process of the same user, so that nothing else stands in the way."""
    os.mkdir(tree + "/real")
    os.chown(tree + "/real", NOBODY, NOBODY)
    sleeper = subprocess.Popen(["sleep", "100"], cwd=tree + "/real",
                               user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        link = "/proc/%d/cwd" % sleeper.pid
        os.symlink(link, tree + "/l")
        assert os.path.samefile(tree + "/l", tree + "/real")
        answer = shared.refused(mounts=[(tree + "/l", tree + "/l", DIR, True,
                                         0, 0)])
        assert "symbolic links" in answer.reason
    finally:
        sleeper.kill()
        sleeper.wait()
    # an ordinary link is followed
    os.symlink("real", tree + "/m")
    shared.launch(mounts=[(tree + "/m", tree + "/m", DIR, True, 0,
                           0)]).destroy()


def test_wrong_kind_is_refused(shared, tree):
    answer = shared.refused(mounts=[(tree, tree, FILE, True, 0, 0)])
    assert "not a regular file" in answer.reason


@pytest.mark.parametrize("source", ["/", "/etc", "/usr", "/proc", "/sys",
                                    "/tmp", "/dev", "/sys/fs/cgroup",
                                    "/proc/self/task", "/dev/pts"])
def test_places_that_are_never_mounted(shared, source):
    answer = shared.refused(mounts=[(source, "/srv/x", DIR, True, 0, 0)])
    assert answer.step == "mounts", vars(answer)
    assert "ever mounted" in answer.reason


def test_file_system_of_the_kernel_below_a_source_is_refused(tree):
    """A bind is recursive: what an administrator mounted there would come
    along. In a mount namespace of its own, so that the host has none of it."""
    os.mkdir(tree + "/sub")

    def enter():
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(0x20000) == 0
        assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
        assert libc.mount(b"proc", (tree + "/sub").encode(), b"proc", 0,
                          None) == 0
    daemon = Launcherd(preexec=enter)
    answer = daemon.refused(mounts=[(tree, False)])
    assert "mounted below it" in answer.reason
    daemon.close()


def test_link_to_such_a_place_is_refused_too(shared, tree):
    os.symlink("/etc", tree + "/l")
    answer = shared.refused(mounts=[(tree + "/l", "/srv/x", DIR, True, 0, 0)])
    assert "never mounted" in answer.reason


@pytest.mark.parametrize("target", ["/usr/local/x", "/etc/x", "/run/x",
                                    "/proc/x", "/dev/shm/x", "/lib/x"])
def test_targets_in_the_fixed_view_are_refused(shared, tree, target):
    answer = shared.refused(mounts=[(tree, target, DIR, True, 0, 0)])
    assert answer.code != 0


def test_mount_that_hides_the_home_is_refused(shared, tree):
    answer = shared.refused(mounts=[(tree, "/srv/h", DIR, False, 0, 0)],
                            home="/srv/h/u")
    assert "hide the home" in answer.reason


def test_home_may_be_mounted_as_a_whole(shared, tree):
    run = shared.launch(mounts=[(tree, tree, DIR, False, 0, 0)], home=tree)
    assert run.sh("touch %s/in-home" % tree)[0] == 0
    assert os.listdir(tree) == ["in-home"]
    run.destroy()


# ------------------------------------------------------------------ masks

def test_masks(shared, tree):
    for name in ("dir", "ro"):
        os.mkdir(os.path.join(tree, name))
        with open(os.path.join(tree, name, "f"), "w") as f:
            f.write("text")
    for name in ("secret", "kept"):
        with open(os.path.join(tree, name), "w") as f:
            f.write("text")
    subprocess.run(["chown", "-R", str(NOBODY), tree], check=True)
    masks = [(tree + "/dir", EMPTY_DIR, DIR, False),
             (tree + "/ro", READ_ONLY, DIR, False),
             (tree + "/secret", NO_FILE, FILE, False),
             (tree + "/kept", READ_ONLY, FILE, False)]
    plain = shared.launch(mounts=[(tree, False)])     # the twin
    assert plain.sh("cat dir/f secret && echo x >>kept && touch ro/y",
                    cwd=tree)[0] == 0
    plain.destroy()
    run = shared.launch(mounts=[(tree, False)], masks=masks)
    assert run.sh("ls -A dir | wc -l; test -w dir || echo no; touch dir/x",
                  cwd=tree)[:2] == (1, b"0\nno\n")
    status, _, err = run.sh("cat secret", cwd=tree)
    assert status == 1 and b"Permission denied" in err
    assert run.sh("cat ro/f kept; touch ro/x", cwd=tree)[0] == 1
    assert run.sh("cat kept", cwd=tree)[1].startswith(b"text")
    assert run.sh("echo x >>kept", cwd=tree)[0] != 0
    assert run.sh("rm -rf dir ro secret kept 2>/dev/null; ls", cwd=tree)[
        1].split() == [b"dir", b"kept", b"ro", b"secret"]
    run.destroy()
    with open(tree + "/secret") as f:
        assert f.read() == "text"


def test_order_of_masks_does_not_matter(shared, tree):
    """A bind over a parent would uncover what was bound below it before."""
    os.makedirs(tree + "/a/b")
    os.makedirs(tree + "/a-")
    for name in ("/a/secret", "/a/b/secret", "/a-/secret"):
        with open(tree + name, "w") as f:
            f.write("text")
    subprocess.run(["chown", "-R", str(NOBODY), tree], check=True)
    masks = [(tree + "/a/secret", NO_FILE, FILE, False),
             (tree + "/a/b/secret", NO_FILE, FILE, False),
             (tree + "/a-", EMPTY_DIR, DIR, False),
             (tree + "/a/b", EMPTY_DIR, DIR, False),
             (tree + "/a", READ_ONLY, DIR, False),
             (tree + "/a/secret", READ_ONLY, FILE, False)]
    for order in (masks, masks[::-1]):
        run = shared.launch(mounts=[(tree, False)], masks=order)
        assert run.sh("cat a/secret a/b/secret a-/secret; ls a/b a-; "
                      "touch a/x && echo wrote", cwd=tree)[1] == \
            b"a-:\n\na/b:\n"
        run.destroy()


def test_a_pinned_directory_stays_and_is_never_a_way_to_write(shared, tree):
    for name in ("/pin/ro", "/ro/pin", "/real"):
        os.makedirs(tree + name)
    os.symlink("real", tree + "/link")
    subprocess.run(["chown", "-hR", str(NOBODY), tree], check=True)
    run = shared.launch(mounts=[(tree, False)], masks=[
        (tree + "/pin/ro", READ_ONLY, DIR, False),
        (tree + "/pin", PINNED, DIR, False),
        (tree + "/ro/pin", PINNED, DIR, False),
        (tree + "/ro", READ_ONLY, DIR, False)])
    assert run.sh("echo x > pin/f && mv pin/f pin/g", cwd=tree)[0] == 0
    for line in ("mv pin away", "rm -r pin", "touch pin/ro/f",
                 "touch ro/pin/f"):
        assert run.sh(line, cwd=tree)[0] != 0, line
    assert run.sh("mv real away && mv away real", cwd=tree)[0] == 0
    run.destroy()
    for path, read_only, why in (("/link", False, "was replaced"),
                                 ("/real", True, "read-only mount")):
        answer = shared.refused(mounts=[(tree, read_only)],
                                masks=[(tree + path, PINNED, DIR, False)])
        assert why in answer.reason
    answer = shared.refused(mounts=[(tree, False)],
                            masks=[(tree + "/pin/g", PINNED, FILE, False)])
    assert answer.step == "plan"


def test_a_found_file_that_is_gone_is_left_out(shared, tree):
    """The start scan found it, and the tree is in use."""
    with open(tree + "/f", "w") as f:
        f.write("text")
    os.mkdir(tree + "/d")
    os.symlink("f", tree + "/l")
    subprocess.run(["chown", "-hR", str(NOBODY), tree], check=True)
    paths = ["/gone", "/f/x", "/d", "/l"]
    for path in paths:
        shared.refused(mounts=[(tree, False)],
                       masks=[(tree + path, READ_ONLY, FILE, False)])
    run = shared.launch(mounts=[(tree, False)], masks=[
        (tree + path, READ_ONLY, FILE, False, True)
        for path in paths + ["/f"]])
    assert run.sh("echo x >f", cwd=tree)[0] != 0
    assert run.sh("echo x >d/new && rm l", cwd=tree)[0] == 0
    run.destroy()


def test_mount_over_the_parent_of_another_is_refused(shared, tree):
    os.mkdir(tree + "/in")
    answer = shared.refused(mounts=[(tree + "/in", True), (tree, False)])
    assert "comes after one below it" in answer.reason


def test_a_mask_that_leads_through_a_link_is_refused(shared, tree):
    """The plan's paths were resolved: a link was put there since."""
    os.makedirs(tree + "/real/d")
    os.symlink("real", tree + "/link")
    subprocess.run(["chown", "-hR", str(NOBODY), tree], check=True)
    for path in ("/link", "/link/d"):
        answer = shared.refused(mounts=[(tree, False)],
                                masks=[(tree + path, EMPTY_DIR, DIR, False)])
        assert path + ": was replaced" in answer.reason


def test_a_mask_is_of_the_mount_and_not_of_its_path(shared, tree):
    """A parent that is moved away and linked to since the look-up: the mount
    is the same directory, and its masks are not lost."""
    os.makedirs(tree + "/moved/work")
    os.symlink("moved", tree + "/was")
    with open(tree + "/moved/work/secret", "w") as f:
        f.write("text")
    subprocess.run(["chown", "-hR", str(NOBODY), tree], check=True)
    work = tree + "/was/work"
    st = os.stat(work)
    grants = [(work, work, DIR, False, st.st_dev, st.st_ino)]
    for masks, status in (((), 0), ([(work + "/secret", NO_FILE, FILE,
                                      False)], 1)):
        run = shared.launch(mounts=grants, masks=masks)
        assert run.sh("cat secret", cwd=work)[0] == status
        run.destroy()


def test_mask_of_the_wrong_type_or_missing_is_refused(shared, tree):
    os.mkdir(tree + "/d")
    answer = shared.refused(mounts=[(tree, False)],
                            masks=[(tree + "/d", NO_FILE, FILE, False)])
    assert "is a directory" in answer.reason
    answer = shared.refused(mounts=[(tree, False)],
                            masks=[(tree + "/x", NO_FILE, FILE, False)])
    assert "No such file" in answer.reason


def test_system_mask_denies_a_program(shared, tree):
    mount = os.path.realpath("/usr/bin/mount")
    plain = shared.launch(mounts=[(tree, False)])
    assert plain.sh("mount --version")[0] == 0
    plain.destroy()
    run = shared.launch(mounts=[(tree, False)],
                        masks=[(mount, NO_FILE, FILE, True)])
    assert run.sh(mount + " --version")[0] == 126
    number, answer = run.start([mount])
    assert answer.error == 13
    run.destroy()


def read_at(directory, name):
    fd = os.open(name, os.O_RDONLY, dir_fd=directory)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)


def freeze(cgroup, on):
    fd = os.open("cgroup.freeze", os.O_WRONLY, dir_fd=cgroup)
    os.write(fd, b"%d" % on)
    os.close(fd)
    while b"frozen %d" % on not in read_at(cgroup, "cgroup.events"):
        time.sleep(0.0001)


def launch_stopped(daemon, path, **kw):
    """Starts a run and freezes it before it has a mount at path."""
    while True:
        sandbox = daemon.send_launch(**kw)
        made = daemon.chan.expect("launch_made", sandbox=sandbox)
        freeze(made.fds[0], True)
        if not any((" %s " % path) in launcherbox.read_file(
                "/proc/%d/mountinfo" % int(pid))
                for pid in read_at(made.fds[0], "cgroup.procs").split()):
            return sandbox, made
        freeze(made.fds[0], False)
        answer = daemon.chan.expect("launch_answer", sandbox=sandbox)
        launcherbox.Run(daemon, sandbox, made, answer).destroy()


def many_files(tree, n):
    """Names of n files of one byte, a hundred to a directory."""
    paths = []
    for i in range(n):
        if i % 100 == 0:
            os.mkdir("%s/d%d" % (tree, i // 100))
        paths.append("%s/d%d/f%d" % (tree, i // 100, i))
        with open(paths[-1], "w") as f:
            f.write("x")
    subprocess.run(["chown", "-R", str(NOBODY), tree], check=True)
    return paths


def test_masks_start_up_to_their_limit(shared, tree):
    """More than bubblewrap takes, and than there are descriptors."""
    paths = many_files(tree, 16385)
    hows = (NO_FILE, READ_ONLY)
    masks = [(path, hows[i % 2], FILE, False) for i, path in enumerate(paths)]
    assert shared.refused(mounts=[(tree, False)], masks=masks).step == "plan"
    twin = shared.launch(mounts=[(tree, False)])
    assert twin.sh("cat d*/f* | wc -c; for i in d0/f1 d163/f16383; do "
                   "echo >$i && echo wrote; done", cwd=tree)[1] == \
        b"16385\nwrote\nwrote\n"
    twin.destroy()
    run = shared.launch(mounts=[(tree, False)], masks=masks[:16384])
    assert run.sh("cat d*/f* 2>/dev/null | wc -c; find . -type f -size +0 "
                  "-writable | wc -l; for i in d*/f*; do "
                  "(echo >$i) 2>/dev/null && echo $i; done; rm d0/f1",
                  cwd=tree, timeout=60)[:2] == (1, b"8193\n1\nd163/f16384\n")
    run.destroy()


def mask_child(daemon):
    """The status of launcherd's child that mounts masks, or None."""
    tids = "/proc/%d/task/%d/children" % ((daemon.process.pid,) * 2)
    for pid in launcherbox.read_file(tids).split():
        try:
            status = dict(line.split(":", 1) for line in launcherbox.read_file(
                "/proc/%s/status" % pid).splitlines())
        except OSError:
            continue
        if status["Uid"].split()[3] == str(NOBODY) and \
                status["Name"].strip() == "stockade-launch":
            return status
    return None


def start_masking(daemon, tree, masks):
    """A start that is stopped while masks are mounted: (sandbox, made, status
    of what mounts them); None when it was ready before we looked."""
    sandbox = daemon.send_launch(mounts=[(tree, False)], masks=masks)
    made = daemon.chan.expect("launch_made", sandbox=sandbox)
    while not select.select([daemon.chan.sock], [], [], 0)[0]:
        status = mask_child(daemon)
        if status is not None and int(status["CapPrm"], 16) == 1 << 21:
            freeze(made.fds[0], True)
            if mask_child(daemon) is not None:
                return sandbox, made, status
            freeze(made.fds[0], False)
    answer = daemon.chan.expect("launch_answer", sandbox=sandbox)
    launcherbox.Run(daemon, sandbox, made, answer).destroy()
    return None


def test_what_mounts_masks_has_one_capability_and_ends_with_the_run(own, tree):
    masks = [(p, READ_ONLY, FILE, False) for p in many_files(tree, 16384)]
    found = None
    while found is None:
        found = start_masking(own, tree, masks)
    sandbox, made, status = found
    for field in ("CapPrm", "CapEff", "CapBnd"):
        assert int(status[field], 16) == 1 << 21, field
    for field in ("CapInh", "CapAmb"):
        assert int(status[field], 16) == 0, field
    own.chan.send("destroy_ask", sandbox=sandbox, cause=0, grace_ms=0)
    answer = own.chan.expect("launch_answer", sandbox=sandbox)
    assert "destroyed while it was starting" in answer.reason
    assert own.cgroups() == [] and mask_child(own) is None
    for fd in made.fds:
        os.close(fd)


def test_masks_where_mounts_are(shared, tree):
    """In a read-only mount, in another file system, on a mounted file, and on
    a directory with a file system mounted in it, now and later."""
    for name in ("read-only", "fs", "ro/sub", "ro/late", "rw/late"):
        os.makedirs(os.path.join(tree, name))
    subprocess.run(["chown", "-R", str(NOBODY), tree], check=True)
    mounts = [["--bind", tree, tree], ["--make-shared", tree]] + [
        ["-t", "tmpfs", "-o", "mode=777", "tmpfs", tree + "/" + name]
        for name in ("fs", "ro/sub")]
    late = [["-t", "tmpfs", "-o", "mode=777", "tmpfs", tree + "/" + name]
            for name in ("ro/late", "rw/late")]
    names = ("read-only/f", "fs/f", "mounted")
    try:
        for args in mounts:
            subprocess.run(["mount"] + args, check=True)
        for name in names:
            with open(os.path.join(tree, name), "w") as f:
                f.write("text")
            os.chown(os.path.join(tree, name), NOBODY, NOBODY)
        subprocess.run(["mount", "--bind"] + [tree + "/mounted"] * 2,
                       check=True)
        grants = [(tree, False), (tree + "/read-only", True)]
        masks = [(tree + "/read-only/f", NO_FILE, FILE, False),
                 (tree + "/fs/f", READ_ONLY, FILE, False),
                 (tree + "/mounted", READ_ONLY, FILE, False),
                 (tree + "/ro", READ_ONLY, DIR, False)]
        tries = ("cat read-only/f", "echo x >fs/f", "echo x >mounted",
                 "echo x >ro/sub/f")
        twin = shared.launch(mounts=grants)
        run = shared.launch(mounts=grants, masks=masks)
        for line in tries:
            assert twin.sh(line, cwd=tree)[0] == 0, line
            assert run.sh(line, cwd=tree)[0] != 0, line
        assert run.sh("cat fs/f mounted", cwd=tree)[1] == b"x\nx\n"
        for args in late:
            subprocess.run(["mount"] + args, check=True)
        assert twin.sh("echo x >ro/late/f", cwd=tree)[0] == 0
        assert run.sh("echo x >rw/late/f", cwd=tree)[0] == 0
        assert run.sh("echo x >ro/late/f", cwd=tree)[0] != 0
        twin.destroy()
        run.destroy()
    finally:
        subprocess.run(["umount", "-R", tree], check=True)


def test_a_grant_in_a_masked_directory_is_masked(shared, tree):
    os.makedirs(tree + "/a/b")
    os.mkdir(tree + "/other")
    subprocess.run(["chown", "-R", str(NOBODY), tree], check=True)
    grants = [(tree, False), (tree + "/other", tree + "/a/b", DIR, False,
                              0, 0)]
    for masks, status in (((), 0), ([(tree + "/a", READ_ONLY, DIR, False)],
                                    1)):
        run = shared.launch(mounts=grants, masks=masks)
        assert min(run.sh("echo x >a/b/f", cwd=tree)[0], 1) == status
        assert run.sh("cat a/b/f", cwd=tree)[1] == b"x\n"
        run.destroy()


def test_a_run_cannot_take_its_masks_off(shared, tree):
    with open(tree + "/secret", "w") as f:
        f.write("text")
    os.chown(tree + "/secret", NOBODY, NOBODY)
    masks = [(tree + "/secret", NO_FILE, FILE, False)]
    script = ("umount secret; umount -l secret; mount -o remount,bind,rw "
              "secret; mount --bind . /tmp; cat /tmp/secret secret")
    for userns in (False, True):
        run = shared.launch(mounts=[(tree, False)], masks=masks,
                            userns=userns)
        for line in (script, "unshare -Urm sh -c '%s'" % script):
            status, out, err = run.sh(line, cwd=tree)
            assert status != 0 and b"text" not in out, (out, err)
        run.destroy()


def swaps(tree, outside):
    """Ways to put something else where a protected file was."""
    name, kept = tree + "/d/secret", tree + "/kept"

    def link():
        os.rename(name, kept)
        os.symlink(outside, name)

    def file():
        shutil.copy(name, kept)
        os.rename(kept, name)

    def directory():
        os.unlink(name)
        os.mkdir(name)

    def parent():
        os.rename(tree + "/d", tree + "/e")
        os.symlink("e", tree + "/d")

    def other_parent():
        os.rename(tree + "/d", tree + "/e")
        os.mkdir(tree + "/d")
        shutil.copy(tree + "/e/secret", name)

    def removed():
        os.unlink(name)

    return link, file, directory, parent, other_parent, removed


def make_secret(tree):
    subprocess.run("rm -rf %s/*; mkdir %s/d; echo text >%s/d/secret; "
                   "chown -R %d %s" % (tree, tree, tree, NOBODY, tree),
                   shell=True, check=True)


def test_a_swap_between_look_and_mount_does_not_go_through(shared, tree):
    """Replaced after launcherd has looked, while nothing goes on: each time
    the launch fails and says where."""
    outside = launcherbox.work_tree()
    with open(outside + "/victim", "w") as f:
        f.write("text")
    kinds = len(swaps(tree, outside))
    name = tree + "/d/secret"
    masks = [(name, READ_ONLY, FILE, False)]
    make_secret(tree)
    run = shared.launch(mounts=[(tree, False)], masks=masks)
    assert run.sh("echo x >d/secret", cwd=tree)[0] != 0
    run.destroy()
    run = shared.launch(mounts=[(tree, False)])        # the twin
    assert run.sh("echo x >d/secret", cwd=tree)[0] == 0
    run.destroy()
    for i in range(SWAPS):
        make_secret(tree)
        sandbox, made = launch_stopped(shared, name, mounts=[(tree, False)],
                                       masks=masks)
        swaps(tree, outside + "/victim")[i % kinds]()
        freeze(made.fds[0], False)
        answer = shared.chan.expect("launch_answer", sandbox=sandbox)
        for fd in made.fds:
            os.close(fd)
        assert answer.step == "masks" and \
            name + ": was replaced" in answer.reason, vars(answer)
    assert shared.cgroups() == []
    subprocess.run(["rm", "-rf", outside], check=True)


def test_a_found_file_that_is_swapped_is_left_out(shared, tree):
    """Its name is guarded, and what is there now is not what was found."""
    outside = launcherbox.work_tree()
    with open(outside + "/victim", "w") as f:
        f.write("text")
    os.chown(outside + "/victim", NOBODY, NOBODY)
    grants = [(tree, False), (outside, False)]
    name = tree + "/d/secret"
    for i, _ in enumerate(swaps(tree, outside)):
        make_secret(tree)
        with open(tree + "/d/z", "w") as f:
            f.write("text")
        os.chown(tree + "/d/z", NOBODY, NOBODY)
        masks = [(p, READ_ONLY, FILE, False, True)
                 for p in (name, tree + "/d/z")]
        sandbox, made = launch_stopped(shared, name, mounts=grants,
                                       masks=masks)
        swaps(tree, outside + "/victim")[i]()
        freeze(made.fds[0], False)
        answer = shared.chan.expect("launch_answer", sandbox=sandbox)
        assert answer.code == 0, vars(answer)
        run = launcherbox.Run(shared, sandbox, made, answer)
        assert run.sh("echo x >%s/victim" % outside)[0] == 0
        if i < 3:
            assert run.sh("echo x >d/z", cwd=tree)[0] != 0
        run.destroy()
    subprocess.run(["rm", "-rf", outside], check=True)


def test_a_swap_at_any_moment_masks_nothing_else(shared, tree):
    outside = launcherbox.work_tree()
    with open(outside + "/victim", "w") as f:
        f.write("text")
    os.chown(outside + "/victim", NOBODY, NOBODY)
    kinds = len(swaps(tree, outside))
    masks = [(tree + "/d/secret", READ_ONLY, FILE, False)]
    counts = [0, 0]
    for i in range(SWAPS):
        make_secret(tree)
        sandbox = shared.send_launch(mounts=[(tree, False),
                                             (outside, False)], masks=masks)
        made = shared.chan.expect("launch_made", sandbox=sandbox)
        time.sleep(random.random() * 0.008)
        swaps(tree, outside + "/victim")[i % kinds]()
        answer = shared.chan.expect("launch_answer", sandbox=sandbox)
        counts[answer.code == 0] += 1
        if answer.code != 0:
            assert "was replaced" in answer.reason, vars(answer)
            for fd in made.fds:
                os.close(fd)
            continue
        # The mask was there first: the host's own swap has taken it along.
        run = launcherbox.Run(shared, sandbox, made, answer)
        assert run.sh("echo x >%s/victim" % outside)[0] == 0
        points = [line.split()[4] for line in launcherbox.read_file(
            "/proc/%d/mountinfo" % run.pids()[-1]).splitlines()]
        assert outside + "/victim" not in points
        run.destroy()
    assert counts[0] > 0, counts
    subprocess.run(["rm", "-rf", outside], check=True)


def test_a_failure_in_the_middle_leaves_no_run(shared, tree):
    paths = many_files(tree, 300)
    masks = [(p, NO_FILE, FILE, False) for p in paths]
    sandbox, made = launch_stopped(shared, paths[150], mounts=[(tree, False)],
                                   masks=masks)
    os.unlink(paths[150])
    freeze(made.fds[0], False)
    answer = shared.chan.expect("launch_answer", sandbox=sandbox)
    assert paths[150] + ": was replaced" in answer.reason
    assert shared.cgroups() == []
    for fd in made.fds:
        os.close(fd)
    with open(paths[0]) as f:
        assert f.read() == "x"


# ------------------------------------------------------------------ plan

def test_plan_that_is_not_sealed_or_broken_is_refused(shared):
    assert shared.refused(sealed=False).step == "plan"
    assert shared.refused(raw=b"").code == 2
    answer = shared.refused(raw=launcherbox.plan(home="/home/../x"))
    assert answer.code == 2 and "head" in answer.reason


# ------------------------------------------------------------------ guard

guarded = pytest.mark.skipif(brokerbox.can_run() is not None,
                             reason=str(brokerbox.can_run()))


@guarded
def test_table_and_guarded_places_come_together(shared, tree):
    table = brokerbox.table([tree])
    mounts, roots = [(tree, False)], [(tree, False)]
    for kw in ({"roots": roots}, {"table": table},
               {"roots": [("/tmp", True)], "table": table},
               {"roots": roots + [("/tmp", True)], "table": table},
               {"roots": [("/usr", False)], "table": table}):
        answer = shared.refused(mounts=mounts, **kw)
        assert (answer.code, answer.step) == (2, "guard"), vars(answer)


@guarded
def test_broken_table_refuses_the_launch(shared, tree):
    answer = shared.refused(mounts=[(tree, False)], roots=[(tree, False)],
                            table=b"no table")
    assert answer.code == 11 and "the table of rules" in answer.reason


@guarded
def test_guarded_run_tells_what_was_refused(shared, tree):
    run = shared.launch(mounts=[(tree, False)], roots=[(tree, False)],
                        table=brokerbox.table([tree]))
    assert run.sh("cd %s; echo x >a; echo x >.env" % tree)[0] != 0
    denial = shared.chan.expect("denial", sandbox=run.sandbox)
    assert (denial.path, denial.rule) == (tree + "/.env", "**/.env")
    assert os.listdir(tree) == ["a"]
    # Without the guard the same line works.
    plain = shared.launch(mounts=[(tree, False)])
    assert plain.sh("cd %s; echo x >.env" % tree)[0] == 0
    plain.destroy()
    assert run.destroy().cause == launcherbox.CAUSES.index("MANUAL")


@guarded
def test_guarded_run_that_ends_by_itself_took_its_broker_along(own, tree):
    run = own.launch(mounts=[(tree, False)], roots=[(tree, False)],
                     table=brokerbox.table([tree]))
    run.send_destroy(grace_ms=5000)
    assert run.ended().cause == launcherbox.CAUSES.index("MANUAL")
    assert [m for m in own.chan.backlog if m.name == "run_notice"] == []
    assert own.cgroups() == []


def comms(pids):
    return sorted(launcherbox.read_file("/proc/%d/comm" % p).strip()
                  for p in pids)


@guarded
def test_broker_has_the_limits_and_the_end_of_its_run(own, tree):
    run = own.launch(mounts=[(tree, False)], roots=[(tree, False)],
                     table=brokerbox.table([tree]), memory=256 << 20,
                     pids=100, cpus=500)
    run.start(["/bin/sleep", "100"])
    broker, = run.pids_in("")
    assert comms([broker]) == ["stockade-broker"]
    assert {"bwrap", "init"} < set(comms(run.pids_in("processes/")))
    # Whatever limits and counts is the run's, in both layouts.
    own.chan.send("stat_ask", request=9, sandbox=run.sandbox)
    assert own.chan.expect("stat_answer").pids == len(run.pids())
    places = [launcherbox.read_file("/proc/%d/cgroup" % p).replace(
        "/processes", "") for p in run.pids()]
    assert len(set(places)) == 1
    pids = run.pids()
    assert run.freeze(True).error == 0
    assert b"frozen 1" in read_at(run.cgroup, "cgroup.events")
    # As the supervisor does it, by the descriptor alone.
    fd = os.open("cgroup.kill", os.O_WRONLY, dir_fd=run.cgroup)
    os.write(fd, b"1")
    os.close(fd)
    run.ended()
    assert gone(pids) and own.cgroups() == []


@guarded
def test_broker_has_the_view_of_its_run_and_one_capability(own, tree):
    run = own.launch(mounts=[(tree, False)], roots=[(tree, False)],
                     table=brokerbox.table([tree]))
    broker, = run.pids_in("")
    init, = [p for p in run.pids() if comms([p]) == ["init"]]
    for name in ("mnt", "pid", "net"):
        assert os.readlink("/proc/%d/ns/%s" % (broker, name)) == \
            os.readlink("/proc/%d/ns/%s" % (init, name))
    assert os.path.samestat(*[os.stat("/proc/%d/root" % p)
                              for p in (broker, init)])
    status = launcherbox.read_file("/proc/%d/status" % broker)
    for line in ("CapInh:\t%016x" % 0, "CapPrm:\t%016x" % (1 << 19),
                 "CapEff:\t%016x" % (1 << 19), "CapBnd:\t%016x" % (1 << 19),
                 "CapAmb:\t%016x" % 0, "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in status, status
    run.destroy()


@guarded
def test_guarded_run_is_thawed_for_its_grace(own, tree):
    run = own.launch(mounts=[(tree, False)], roots=[(tree, False)],
                     table=brokerbox.table([tree]))
    line = "import os\nwhile True: os.close(os.open('%s/a', 65))" % tree
    run.start(["/usr/bin/python3", "-c", line])
    for _ in range(5):
        assert run.freeze(True).error == 0
        assert run.freeze(False).error == 0
    assert run.freeze(True).error == 0
    start = time.monotonic()
    assert run.destroy(grace_ms=5000).cause == \
        launcherbox.CAUSES.index("MANUAL")
    assert time.monotonic() - start < 3
    assert own.cgroups() == []


@guarded
def test_leftovers_of_a_guarded_run_are_removed(tree):
    daemon = Launcherd()
    run = daemon.launch(mounts=[(tree, False)], roots=[(tree, False)],
                        table=brokerbox.table([tree]))
    pids = run.pids()
    assert run.freeze(True).error == 0
    daemon.process.kill()
    daemon.process.wait()
    daemon.chan.close()
    assert daemon.cgroups() != [] and not gone(pids, 0.2)
    daemon.start()
    daemon.lookup()
    assert gone(pids, 2.0) and daemon.cgroups() == []
    run.release()
    assert daemon.close() == 0


def test_generated_file_below_a_host_directory_is_refused(shared):
    answer = shared.refused(files=[("/etc/profile.d/x.sh", b"")])
    assert "generated file" in answer.reason


def test_userns_needs_the_configuration(own):
    assert own.refused(userns=True).code == 5       # forbidden


def test_ids_come_from_the_look_up_alone(shared, tree):
    answer = shared.lookup(groups=[777, 5, 777, 9], client_gid=5, admin_gid=9)
    assert (answer.run_uid, answer.user) == (NOBODY, "nobody")
    for fd in answer.fds:
        os.close(fd)
    run = shared.launch(request=answer.request, mounts=[(tree, False)])
    assert run.command(["/usr/bin/id", "-G"])[1] == b"%d 777\n" % NOBODY
    run.destroy()
    # each look-up serves one launch
    assert shared.refused(request=answer.request).step == "user"


def test_launch_of_another_uid_than_looked_up_is_refused(shared):
    answer = shared.lookup()
    for fd in answer.fds:
        os.close(fd)
    assert shared.refused(request=answer.request, uid=1).step == "user"


def test_unknown_user(shared):
    answer = shared.lookup(uid=3999999999)
    assert answer.error == 2 and "no such user" in answer.reason


# ------------------------------------------------------------------ commands

def test_exit_status_and_signal(run):
    assert run.sh("exit 7")[0] == 7
    assert run.sh("kill -TERM $$")[0] == -15
    assert run.command(["/bin/cat"]) == (0, b"", b"")      # /dev/null
    number, answer = run.start(["/nonexistent"])
    assert (answer.error, answer.step) == (2, "exec")


def test_stdin_pipe_and_eof(run):
    number, answer = run.start(["/bin/cat"], stdin_open=1)
    stdin, stdout, stderr = answer.fds
    assert answer.io == 7
    os.write(stdin, b"hello")
    os.close(stdin)
    assert read(stdout) == b"hello"
    # launcherd's duplicate keeps it open until it is told
    run.l.chan.send("exec_eof", sandbox=run.sandbox, exec=number)
    assert run.wait(number) == 0
    os.close(stdout)
    os.close(stderr)


def test_passed_descriptors_are_the_commands_own(run):
    r, w = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    number, answer = run.start(["/bin/echo", "direct"], passed=[null, w, w])
    assert answer.io == 0 and answer.fds == []
    os.close(w)
    os.close(null)
    assert run.wait(number) == 0
    assert os.read(r, 100) == b"direct\n" and os.read(r, 1) == b""
    os.close(r)


def test_directory_as_standard_input_is_refused(run):
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    number, answer = run.start(["/bin/ls"], passed=[fd])
    assert (answer.error, answer.step) == (21, "stdio")
    os.close(fd)


def test_terminal(run):
    number, answer = run.start(
        ["/bin/bash", "-c", "tty; stty size; read x; stty size"], tty=1,
        rows=33, cols=44)
    assert answer.io == 8
    master, = answer.fds
    text = b""
    while b"33 44" not in text:
        select.select([master], [], [], 5)
        text += os.read(master, 1000)
    assert b"/dev/pts/" in text
    run.l.chan.send("exec_resize", sandbox=run.sandbox, exec=number, rows=20,
                    cols=30)
    run.l.chan.send("stat_ask", request=run.l.number(), sandbox=run.sandbox)
    run.l.chan.expect("stat_answer")
    os.write(master, b"\n")
    text = b""
    try:
        while b"20 30" not in text:
            select.select([master], [], [], 5)
            text += os.read(master, 1000)
    except OSError:
        pass
    assert b"20 30" in text
    assert run.wait(number) == 0
    os.close(master)


def test_signal_reaches_the_command(run):
    number, answer = run.start(["/bin/sleep", "100"])
    run.l.chan.send("exec_signal", sandbox=run.sandbox, exec=number,
                    signal=signal.SIGSEGV)      # not in the list
    run.l.chan.send("exec_signal", sandbox=run.sandbox, exec=number,
                    signal=signal.SIGTERM)
    assert run.wait(number) == -15
    for fd in answer.fds:
        os.close(fd)


def test_exec_in_an_unknown_run_and_twice_the_same_number(run):
    fd = messages.memfd(launcherbox.exec_plan(["/bin/true"]))
    run.l.chan.send("exec_ask", [fd], sandbox=10**9, exec=5, client=1)
    assert run.l.chan.expect("exec_answer", exec=5).error == 2
    number, answer = run.start(["/bin/sleep", "100"])
    run.l.chan.send("exec_ask", [fd], sandbox=run.sandbox, exec=number,
                    client=1)
    assert run.l.chan.expect("exec_answer", exec=number).error == 17
    os.close(fd)
    for fd in answer.fds:
        os.close(fd)


def test_more_commands_than_the_limit(shared, tree):
    run = shared.launch(mounts=[(tree, False)])
    numbers = [run.send_exec(["/bin/sleep", "100"]) for _ in range(65)]
    answers = [shared.chan.expect("exec_answer", exec=n) for n in numbers]
    assert [a.error for a in answers[:64]] == [0] * 64
    assert answers[64].error == 11
    for answer in answers:
        for fd in answer.fds:
            os.close(fd)
    run.destroy()


def test_restore_sends_the_same_pipes_again(own, tree):
    run = own.launch(mounts=[(tree, False)])
    number, answer = run.start(["/bin/sh", "-c", "read x; echo got $x"],
                               stdin_open=1)
    done, ended = run.start(["/bin/sh", "-c", "echo left; exit 3"])
    own.chan.expect("exec_exit", exec=done)
    for fd in answer.fds + ended.fds:       # control is gone
        os.close(fd)
    own.chan.send("restore_ask", generation=2)
    live = own.chan.expect("restore_exec", exec=number)
    dead = own.chan.expect("restore_exec", exec=done)
    assert own.chan.expect("restore_done").generation == 2
    assert (live.io, live.ended, live.pid) == (7, 0, answer.pid)
    assert (dead.io, dead.ended, dead.status) == (6, 1, 3)
    assert read(dead.fds[0]) == b"left\n"
    os.write(live.fds[0], b"again\n")
    assert run.wait(number) == 0
    assert read(live.fds[1]) == b"got again\n"
    for fd in live.fds + dead.fds:
        os.close(fd)
    run.destroy()


def test_restore_returns_the_times_as_they_came(own, tree):
    run = own.launch(mounts=[(tree, False)])
    times = {"timeout_ms": 7, "deadline_ms": 2**64 - 1, "silence_ms": 9}
    number, answer = run.start(["/bin/sleep", "100"], times=times)
    own.chan.send("restore_ask", generation=2)
    live = own.chan.expect("restore_exec", exec=number)
    assert {name: getattr(live, name) for name in times} == times
    for fd in answer.fds + live.fds:
        os.close(fd)
    run.destroy()


def test_a_command_that_starts_after_a_restore_is_ended(own, tree):
    """Its control is gone before it had the answer: nobody knows it, and no
    time-out would end it. A stopped init makes the answer late."""
    run = own.launch(mounts=[(tree, False)])
    alone = sorted(run.pids())
    init = run.answer.pid
    for late in (False, True):              # the first is the twin
        if late:
            os.kill(init, signal.SIGSTOP)
        number = run.send_exec(["/bin/sleep", "300"])
        if late:
            own.chan.send("restore_ask", generation=2)
            own.chan.expect("restore_done")
            os.kill(init, signal.SIGCONT)
            end = time.monotonic() + 5
            while sorted(run.pids()) != alone:
                assert time.monotonic() < end, run.pids()
                time.sleep(0.01)            # nobody is told of its end
            assert number not in [m.exec for m in own.chan.backlog]
        else:
            for fd in own.chan.expect("exec_answer", exec=number).fds:
                os.close(fd)
            assert sorted(run.pids()) != alone
            own.chan.send("exec_signal", sandbox=run.sandbox, exec=number,
                          signal=signal.SIGKILL)
            own.chan.expect("exec_exit", exec=number)
    assert run.sh("exit 3")[0] == 3
    run.destroy()


# ------------------------------------------------------------------ the end

def test_destroy_at_once_leaves_nothing(own, tree):
    run = own.launch(mounts=[(tree, False)])
    number, answer = run.start(["/bin/sh", "-c", "setsid sleep 100 & sleep 99"])
    for fd in answer.fds:
        os.close(fd)
    pids = run.pids()
    assert len(pids) >= 3
    run.send_destroy("IDLE")
    end = own.chan.expect("run_ended")
    assert launcherbox.CAUSES[end.cause] == "IDLE"
    assert gone(pids)
    assert own.cgroups() == []
    run.release()
    assert left_of(own.process.pid) == []


def test_destroy_with_grace_lets_it_end(own, tree):
    run = own.launch(mounts=[(tree, False)])
    number, answer = run.start(
        ["/bin/sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; "
         "while :; do sleep 0.05; done"])
    assert read(answer.fds[0], 10) == b"up\n"
    start = time.monotonic()
    run.send_destroy(grace_ms=5000)
    assert run.wait(number) == 5
    run.ended()
    assert time.monotonic() - start < 4
    assert read(answer.fds[0], 10) == b"bye\n"


def test_destroy_while_it_starts(own, tree):
    sandbox = own.send_launch(mounts=[(tree, False)])
    own.chan.send("destroy_ask", sandbox=sandbox, cause=1, grace_ms=3000)
    answer = own.chan.expect("launch_answer", sandbox=sandbox)
    if answer.code == 0:        # it was faster
        own.chan.expect("run_ended", sandbox=sandbox)
    else:
        assert answer.code == 23 and "destroyed" in answer.reason
    assert own.cgroups() == []


def test_term_ends_it_and_all_runs(tree):
    daemon = Launcherd()
    run = daemon.launch(mounts=[(tree, False)])
    pids = run.pids()
    daemon.process.terminate()
    assert daemon.process.wait(5) == 0
    assert gone(pids) and daemon.cgroups() == []
    run.release()
    daemon.close()


def test_grace_ends(own, tree):
    run = own.launch(mounts=[(tree, False)])
    number, answer = run.start(
        ["/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"])
    assert read(answer.fds[0], 10) == b"up\n"
    start = time.monotonic()
    run.send_destroy(grace_ms=300)
    run.ended()
    assert 0.25 < time.monotonic() - start < 2


def test_freeze_stops_everything_and_kill_works_on_it(own, tree):
    run = own.launch(mounts=[(tree, False)])
    number, answer = run.start(
        ["/bin/sh", "-c", "while :; do echo x; done"], )
    assert read(answer.fds[0])
    froze = run.freeze(True)
    assert (froze.error, froze.frozen) == (0, 1)
    # refused while frozen
    n = run.send_exec(["/bin/true"])
    assert own.chan.expect("exec_answer", exec=n).error == 16
    while True:     # what was in the pipe
        try:
            if not os.read(answer.fds[0], 65536):
                break
        except BlockingIOError:
            break
    assert select.select([answer.fds[0]], [], [], 0.3)[0] == []
    thawed = run.freeze(False)
    assert (thawed.error, thawed.frozen) == (0, 0)
    assert select.select([answer.fds[0]], [], [], 3)[0]
    run.freeze(True)
    pids = run.pids()
    run.destroy()
    assert gone(pids)


def test_destroy_with_grace_thaws(own, tree):
    run = own.launch(mounts=[(tree, False)])
    run.start(["/bin/sleep", "100"])
    run.freeze(True)
    start = time.monotonic()
    run.destroy(grace_ms=5000)
    assert time.monotonic() - start < 3


@pytest.mark.parametrize("victim", ["bwrap", "init"])
def test_kill_of_bubblewrap_or_init_ends_the_run(own, tree, victim):
    run = own.launch(mounts=[(tree, False)])
    number, answer = run.start(["/bin/sleep", "100"])
    pids = run.pids()
    bwrap = run.answer.pid
    init, = children_of(bwrap)
    os.kill(bwrap if victim == "bwrap" else init, signal.SIGKILL)
    end = run.ended()
    assert launcherbox.CAUSES[end.cause] == "SERVICE"
    assert gone(pids)
    assert own.cgroups() == []


def test_end_of_file_kills_all_runs(tree):
    daemon = Launcherd()
    runs = [daemon.launch(mounts=[(tree, False)]) for _ in range(3)]
    pids = [p for r in runs for p in r.pids()]
    runtime = daemon.runtime
    view = os.path.join(runtime, "view")
    assert os.path.isdir(view)
    daemon.chan.close()
    assert daemon.process.wait(5) == 0
    assert gone(pids, 2.0)
    assert daemon.cgroups() == []
    assert not os.path.exists(view)
    for path in launcherbox.own_cgroup_dirs():
        assert not os.path.exists(os.path.join(
            path, "stockade-" + daemon.instance))
    for run in runs:
        run.release()
    daemon.close()


def test_kill_of_launcherd_leaves_nothing_after_the_next_start(tree):
    daemon = Launcherd()
    runs = [daemon.launch(mounts=[(tree, False)]) for _ in range(3)]
    for run in runs:
        run.start(["/bin/sleep", "100"])
    pids = [p for r in runs for p in r.pids()]
    daemon.process.kill()
    daemon.process.wait()
    daemon.chan.close()
    # init ends at end of file of its channel; nobody else helps here
    assert gone(pids, 2.0)
    assert len(daemon.cgroups()) >= 3
    daemon.start()
    again = daemon.launch(mounts=[(tree, False)])
    # memory and pids directories of a live run, no others
    assert {os.path.basename(p) for p in daemon.cgroups()} == {
        "run-%d" % again.sandbox}
    again.destroy()
    for run in runs:
        run.release()
    assert daemon.close() == 0


def test_leftover_processes_are_killed_at_start():
    daemon = Launcherd()
    daemon.close()
    unified = [p for p in launcherbox.own_cgroup_dirs()
               if os.path.exists(os.path.join(p, "cgroup.procs")) and
               os.path.exists(os.path.join(p, "cgroup.controllers"))][0]
    top = os.path.join(unified, "stockade-" + daemon.instance)
    left = os.path.join(top, "run-77")
    os.makedirs(left)
    sleeper = subprocess.Popen(["sleep", "100"])
    with open(left + "/cgroup.procs", "w") as f:
        f.write(str(sleeper.pid))
    again = Launcherd(instance=daemon.instance)
    again.lookup()                      # it has come so far
    assert sleeper.wait(3) == -9
    assert not os.path.exists(left)
    assert "leftover" in again.log_text()
    again.close()


# ------------------------------------------------------------------ limits

def test_memory_limit_kills_the_run_and_says_so(own, tree):
    run = own.launch(mounts=[(tree, False)], memory=64 << 20)
    pids = run.pids()
    number, answer = run.start(
        ["/usr/bin/python3", "-c", "x = bytearray(200 << 20)"])
    assert answer.error == 0
    end = own.chan.expect("run_ended", "exec_exit", timeout=20)
    assert end.name == "run_ended"      # before any exit (K8)
    assert launcherbox.CAUSES[end.cause] == "OOM"
    assert end.limit == 64 << 20 and end.peak >= 60 << 20
    assert gone(pids)
    assert own.cgroups() == []


def test_same_program_without_the_limit_ends_well(own, tree):
    run = own.launch(mounts=[(tree, False)])
    assert run.command(["/usr/bin/python3", "-c",
                        "x = bytearray(200 << 20)"])[0] == 0
    run.destroy()


def test_pid_limit_is_told_once(own, tree):
    run = own.launch(mounts=[(tree, False)], pids=12)
    line = ("import os\nfor i in range(30):\n try:\n  if os.fork() == 0:\n"
            "   import time; time.sleep(50)\n except OSError: pass")
    number, answer = run.start(["/usr/bin/python3", "-c", line])
    notice = own.chan.expect("run_notice")
    assert notice.sandbox == run.sandbox and notice.code == 0
    run.wait(number)
    run.start(["/bin/true"])
    run.send_destroy()
    while True:
        msg = own.chan.receive()
        assert msg.name != "run_notice"
        if msg.name == "run_ended":
            break


def test_pid_limit_is_told_while_the_command_lives(own, tree):
    """Also where the kernel does not notify: nothing ends meanwhile."""
    run = own.launch(mounts=[(tree, False)], pids=12)
    line = ("import os, time\nfor i in range(30):\n try:\n"
            "  if os.fork() == 0: time.sleep(50)\n except OSError: pass\n"
            "time.sleep(50)")
    run.start(["/usr/bin/python3", "-c", line])
    notice = own.chan.expect("run_notice", timeout=5)
    assert notice.sandbox == run.sandbox and notice.code == 0
    run.destroy()


def without_controllers():
    """A mount namespace in which the v1 trees are not mounted."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(0x20000) == 0
    assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
    for line in launcherbox.read_file("/proc/self/mountinfo").splitlines():
        left, right = line.split(" - ")
        if right.startswith("cgroup "):
            assert libc.umount2(left.split(" ")[4].encode(), 2) == 0


@pytest.mark.skipif("memory" in launcherbox.read_file(
    launcherbox.unified_top() + "/cgroup.controllers").split(),
    reason="the host's cgroup2 tree has the controllers")
def test_limit_without_a_controller(tree):
    daemon = Launcherd(preexec=without_controllers)
    answer = daemon.refused(mounts=[(tree, False)], memory=1 << 30, named=1)
    assert (answer.code, answer.step) == (10, "cgroup")
    assert "no cgroup controller" in answer.reason
    run = daemon.launch(mounts=[(tree, False)], memory=1 << 30, pids=100,
                        named=4)
    assert run.answer.limits_unset == 3
    assert run.freeze(True).error == 0
    run.destroy()
    assert daemon.close() == 0


def test_stat(own, tree):
    run = own.launch(mounts=[(tree, False)], memory=256 << 20, pids=100,
                     cpus=500)
    own.chan.send("stat_ask", request=9, sandbox=run.sandbox)
    answer = own.chan.expect("stat_answer")
    assert answer.error == 0 and answer.pids == 2
    assert 0 < answer.memory_bytes < 64 << 20
    own.chan.send("stat_ask", request=10, sandbox=10**6)
    assert own.chan.expect("stat_answer").error == 2
    run.destroy()


# ------------------------------------------------------------------ many

def test_twenty_at_once_in_one_directory(own, tree):
    requests = []
    for _ in range(20):
        answer = own.lookup()
        for fd in answer.fds:
            os.close(fd)
        requests.append(answer.request)
    sandboxes = [own.send_launch(request=r, mounts=[(tree, False)])
                 for r in requests]
    answers = [own.chan.expect("launch_answer", sandbox=s, timeout=20)
               for s in sandboxes]
    assert [a.code for a in answers] == [0] * 20
    runs = [launcherbox.Run(own, s, own.chan.expect("launch_made", sandbox=s),
                            a) for s, a in zip(sandboxes, answers)]
    runs[0].destroy()
    for run in runs[1:]:
        assert run.sh("echo ok")[1] == b"ok\n"
    for run in runs[1:]:
        run.send_destroy()
    for run in runs[1:]:
        run.ended()
    assert own.cgroups() == []


def test_descriptors_and_children_do_not_leak(own, tree):
    def count():
        return len(os.listdir("/proc/%d/fd" % own.process.pid))
    own.launch(mounts=[(tree, False)]).destroy()
    before = count()
    for _ in range(10):
        run = own.launch(mounts=[(tree, False)])
        number, answer = run.start(["/bin/true"])
        run.wait(number)
        for fd in answer.fds:
            os.close(fd)
        run.destroy()
        own.refused(mounts=[("/nonexistent", "/nonexistent", DIR, True, 0,
                             0)])
    # What is made ahead (look-up, namespace) may be there now; ten runs with
    # a leak of one descriptor each would be more.
    assert count() <= before + 6
    assert left_of(own.process.pid) == []


# ------------------------------------------------------------------ start

def probed(daemon):
    """(probe_done, rows by name)"""
    rows = {}
    while True:
        msg = daemon.chan.expect("probe_row", "probe_done", timeout=20)
        if msg.name == "probe_done":
            return msg, rows
        rows[launcherbox.ROWS[msg.row]] = (msg.available, msg.detail)


def test_probe_executes_what_it_promises():
    daemon = Launcherd(probe=1)
    msg, rows = probed(daemon)
    assert msg.tools == 3 and msg.error == ""
    assert list(rows) == launcherbox.ROWS
    for name in ("bubblewrap", "namespaces", "cgroup", "landlock", "seccomp",
                 "egress.refuse", "userns.refused", "procsys.readonly"):
        assert rows[name][0] == 1, (name, rows[name])
    assert rows["egress.transparent"] == (0, "not in this version")
    assert daemon.cgroups() == []
    assert daemon.close() == 0


@guarded
def test_probe_tries_the_guard_in_a_run_of_its_own(tree):
    daemon = Launcherd(probe=1, guard=launcherbox.BROKER)
    msg, rows = probed(daemon)
    assert msg.guard == launcherbox.BROKER
    assert rows["guard.create"] == (1, "broker; bpf-lsm: not chosen")
    for name in ("guard.read", "guard.connect"):
        assert rows[name][0] == 0 and "not by broker" in rows[name][1]
    # None of its refusals is a violation, and nothing of it is left.
    assert [m for m in daemon.chan.backlog if m.name == "denial"] == []
    assert os.listdir(daemon.runtime + "/view").count("scratch") == 0
    assert daemon.cgroups() == []
    run = daemon.launch(mounts=[(tree, False)], roots=[(tree, False)],
                        table=brokerbox.table([tree]))
    assert run.sh("cd %s; echo x >.env" % tree)[0] != 0
    run.destroy()
    assert daemon.close() == 0


def refused_for_the_guard(daemon, tree, **kw):
    answer = daemon.refused(mounts=[(tree, False)], roots=[(tree, False)],
                            table=brokerbox.table([tree]), **kw)
    assert answer.code == 11, vars(answer)      # guardUnavailable
    # Without name rules the same launch goes on.
    daemon.launch(mounts=[(tree, False)]).destroy()
    return answer.reason


@guarded
def test_a_mechanism_that_is_named_is_not_replaced(tree):
    daemon = Launcherd(probe=1, guard=launcherbox.BPF_LSM)
    msg, rows = probed(daemon)
    if msg.guard == launcherbox.BPF_LSM:
        pytest.skip("bpf-lsm works here")
    assert msg.guard == 0 and rows["guard.create"][0] == 0
    assert rows["guard.create"][1].startswith("bpf-lsm: ")
    refused_for_the_guard(daemon, tree)
    assert daemon.close() == 0


@guarded
def test_without_its_program_there_is_no_broker(tree):
    links = tempfile.mkdtemp(prefix="stockade-libexec-")
    os.chmod(links, 0o755)
    for name in os.listdir(launcherbox.LIBEXEC):
        if name != "stockade-broker":
            os.symlink(os.path.join(launcherbox.LIBEXEC, name),
                       os.path.join(links, name))
    daemon = Launcherd(probe=1, guard=launcherbox.BROKER, libexec=links)
    msg, rows = probed(daemon)
    text = "the program stockade-broker is not there"
    assert msg.guard == 0
    assert rows["guard.create"] == (
        0, "broker: %s; bpf-lsm: not chosen" % text)
    refused_for_the_guard(daemon, tree)
    assert daemon.close() == 0
    subprocess.run(["rm", "-rf", links], check=True)


LISTENER = """
import array, ctypes, os, socket, struct, sys
prog = struct.pack("=HBBI", 6, 0, 0, 0x7fff0000)        # RET ALLOW
buf = ctypes.create_string_buffer(prog)
fprog = struct.pack("@HP", 1, ctypes.addressof(buf))
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(317, 1, 1 << 3, fprog)                # NEW_LISTENER
assert fd >= 0, ctypes.get_errno()
socket.socket(fileno=9).sendmsg([b"L"], [
    (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
os.close(fd)
os.execv(sys.argv[1], sys.argv[1:])
"""


@guarded
def test_a_listener_above_us_is_named(tree):
    """The kernel takes one listener in a chain of filters."""
    ours, theirs = socket.socketpair()

    def child():
        os.dup2(theirs.fileno(), 9)
        os.set_inheritable(9, True)
    daemon = Launcherd(probe=1, guard=launcherbox.BROKER, preexec=child,
                       program=[sys.executable, "-c", LISTENER,
                                launcherbox.PROGRAM])
    theirs.close()
    msg, rows = probed(daemon)
    assert rows["guard.create"][0] == 0 and msg.guard == 0
    assert "another program has a seccomp listener above" in \
        rows["guard.create"][1], rows["guard.create"]
    assert rows["seccomp"][0] == 1
    assert daemon.close() == 0
    ours.close()


@guarded
def test_a_launch_verifies_its_guard(shared, tree):
    """SPEC D16: rules that do not hold the one name refuse the launch."""
    answer = shared.refused(mounts=[(tree, False)], roots=[(tree, False)],
                            table=brokerbox.table([tree], rules=["-V"]))
    assert answer.code == 11, vars(answer)
    assert "a protected name could be made in " + tree in answer.reason
    assert os.listdir(tree) == [] and shared.cgroups() == []
    run = shared.launch(mounts=[(tree, False)], roots=[(tree, False)],
                        table=brokerbox.table([tree]))
    run.destroy()
    assert os.listdir(tree) == []
    assert [m for m in shared.chan.backlog
            if m.name == "denial" and m.sandbox == run.sandbox] == []


@guarded
def test_a_mount_in_the_tree_is_verified_and_held_too(shared, tree):
    point = os.path.join(tree, "sub")
    os.mkdir(point)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "tmpfs", point],
                   check=True)
    try:
        run = shared.launch(mounts=[(tree, False)], roots=[(tree, False)],
                            table=brokerbox.table([tree]))
        status, out, err = run.sh(
            "cd %s && echo x >ok; echo x >.env" % point)
        assert status != 0 and os.listdir(point) == ["ok"], (out, err)
        run.destroy()
    finally:
        subprocess.run(["umount", point], check=True)


def test_missing_capability_is_named():
    def drop():
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(24, 12, 0, 0, 0) == 0     # CAPBSET_DROP NET_ADMIN
    daemon = Launcherd(setup=False, preexec=drop)
    assert daemon.process.wait(5) == 1
    assert "CAP_NET_ADMIN is missing" in daemon.log_text()
    daemon.close()


def test_started_by_hand():
    done = subprocess.run([launcherbox.PROGRAM], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 125
    assert b"not by hand" in done.stderr


def test_privileges(shared):
    with open("/proc/%d/status" % shared.process.pid) as f:
        text = f.read()
    want = sum(1 << c for c in (21, 7, 6, 8, 0, 12, 10, 5, 19, 18, 2))
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(re.search(name + r":\t(\w+)", text).group(1), 16) == want
    for name in ("CapInh", "CapAmb"):
        assert int(re.search(name + r":\t(\w+)", text).group(1), 16) == 0
    assert "NoNewPrivs:\t1\n" in text and "Seccomp:\t2\n" in text
    assert stat.S_ISSOCK(os.stat("/proc/%d/fd/3" %
                                 shared.process.pid).st_mode)
