"""Attacks from inside a run, by a client on other clients, and on the service
itself. One attack a test, short; each asserts what the run saw and what the
host saw, and has its twin: the same attack where nothing protects."""

import collections
import grp
import os
import pwd
import re
import select
import signal
import socket
import stat
import subprocess
import textwrap
import time
import uuid

import msgpack
import pytest

import instance
from conftest import own

PYTHON = "/usr/bin/python3"
SYS = "import ctypes,os,socket,struct,errno\n" \
    "l=ctypes.CDLL(None,use_errno=True)\n" \
    "def call(*a):\n" \
    "  ctypes.set_errno(0)\n" \
    "  r=l.syscall(*a)\n" \
    "  return 0 if r>=0 else ctypes.get_errno()\n" \
    "def tried(fn):\n" \
    "  try: fn(); return 0\n" \
    "  except OSError as e: return e.errno\n"
EPERM, ENOENT, EACCES, EROFS = 1, 2, 13, 30
REFUSED = re.compile(b"Read-only|not permitted")     # the mount or the broker


def inside(session, code, **more):
    """Runs Python in the run and returns the words that it printed."""
    status, out, err = session.run(PYTHON, "-c", SYS + textwrap.dedent(code),
                                   **more)
    assert status == 0, (status, out, err)
    return out.decode().split()


def outside_python(outside, code, **more):
    """The twin: the same code as the same user, not in a run."""
    path = "/tmp/stockade-twin-" + uuid.uuid4().hex
    with open(path, "w", encoding="utf-8") as f:
        f.write(SYS + textwrap.dedent(code))
    os.chmod(path, 0o644)
    try:
        done = outside(PYTHON + " " + path, **more)
    finally:
        os.unlink(path)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split()


def write(path, text="secret", mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)


def until(test, what, timeout=5.0):
    end = time.monotonic() + timeout
    while not test():
        assert time.monotonic() < end, what
        time.sleep(0.02)    # nobody announces it


# ------------------------------------------------- pid 1 and its channel

INIT = """
buf=ctypes.create_string_buffer(64)
class iov(ctypes.Structure):
  _fields_=[("b",ctypes.c_void_p),("n",ctypes.c_size_t)]
v=iov(ctypes.addressof(buf),64)
fd=os.pidfd_open(TARGET)
print(call(101,16,TARGET,0,0), call(101,0x4206,TARGET,0,0),
  tried(lambda:os.open("/proc/%d/mem"%TARGET,os.O_RDWR)),
  tried(lambda:os.listdir("/proc/%d/fd"%TARGET)),
  tried(lambda:open("/proc/%d/environ"%TARGET).read()),
  tried(lambda:os.readlink("/proc/%d/root"%TARGET)),
  call(438,fd,1,0))
"""


def test_init_cannot_be_traced_read_or_robbed(session):
    s = session()
    assert inside(s, "TARGET=1\n" + INIT) == \
        [str(e) for e in (EPERM, EPERM, EACCES, EACCES, EACCES, EACCES,
                          EPERM)]
    # Twin: another process of the run, which is dumpable. Tracing it a second
    # time after the attach fails since it is traced already.
    twin = inside(s, "TARGET=os.fork()\n"
                  "if TARGET==0:\n  import time; time.sleep(30)\n" + INIT +
                  "os.kill(TARGET,9)\n")
    assert twin[0] == "0" and twin[2:] == ["0"] * 5


def test_no_signal_ends_init(session):
    s = session()
    inside(s, """
        for n in range(1, 65): os.kill(1, n)
        fd = os.pidfd_open(1)
        call(424, fd, 9, 0, 0)
        child = os.fork()
        if child == 0:
            import time; time.sleep(30)
        os.kill(child, 9)
        assert os.waitpid(child, 0)[1] == 9   # the twin
    """)
    assert s.ok("echo alive") == "alive"


def test_the_limits_of_init_are_not_the_runs(session):
    s = session()
    assert inside(s, """
        import resource
        print(tried(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE,
            (3, 3))))
        child = os.fork()
        if child == 0:
            import time; time.sleep(30)
        print(tried(lambda: resource.prlimit(child, resource.RLIMIT_NOFILE,
            (3, 3))))
        os.kill(child, 9)
    """) == [str(EPERM), "0"]
    assert s.ok("echo alive") == "alive"


def test_a_kill_of_everything_leaves_the_session_alive(session):
    s = session()
    s.sh("kill -9 -1")
    assert s.ok("echo alive") == "alive"


def test_descriptors_of_the_service_do_not_reach_a_run(session):
    s = session()
    found = inside(s, """
        for fd in os.listdir("/proc/self/fd"):
            try: target = os.readlink("/proc/self/fd/" + fd)
            except OSError: continue
            print(target)
    """)
    assert all(t.startswith(("pipe:", "/dev/null", "/proc/"))
               for t in found), found
    assert len(found) == 3      # the directory itself is closed again


# ------------------------------------------------- the kernel

def test_no_set_user_id_file_can_be_made(session, outside):
    code = """
        def made(n):
            st = os.stat(n)
            return bool(st.st_mode & 0o4000 and st.st_size)
        open("a", "w").write("#!/bin/sh")
        print(tried(lambda: os.chmod("a", 0o4755)),
            tried(lambda: os.chmod(os.open("a", 0), 0o4755)),
            call(452, -100, b"a", 0o4755, 0) in (1, 38), made("a"))
        def born(name, fill):
            fd = os.open(name, os.O_CREAT | os.O_RDWR, 0o4755)
            try: fill(fd)
            except OSError: pass
            os.close(fd)
            return made(name)
        print(born("b", lambda fd: os.write(fd, b"#!/bin/sh")),
            born("c", lambda fd: os.ftruncate(fd, 10)),
            born("d", lambda fd: os.posix_fallocate(fd, 0, 10)),
            born("e", lambda fd: os.sendfile(fd, os.open("a", 0), 0, 9)),
            born("f", lambda fd: os.copy_file_range(os.open("a", 0), fd, 9)))
    """
    s = session()
    assert inside(s, code) == [str(EPERM), str(EPERM), "True", "False"] + \
        ["False"] * 5
    assert not any(os.stat(os.path.join(s.workdir, n)).st_mode & 0o4000 and
                   os.stat(os.path.join(s.workdir, n)).st_size
                   for n in os.listdir(s.workdir))
    assert outside("cp /bin/true x && chmod 4755 x && test -u x",
                   cwd=s.workdir).returncode == 0


def test_devices_cannot_be_made(session):
    s = session()
    said = inside(s, """
        import stat
        for name in ("/tmp/x", "y", "/dev/z"):
            print(tried(lambda: os.mknod(name, stat.S_IFCHR | 0o600,
                os.makedev(1, 1))),
                tried(lambda: os.mknod(name, stat.S_IFBLK | 0o600,
                os.makedev(254, 0))))
        print(tried(lambda: os.mkfifo("/tmp/fifo")))    # the twin
    """)
    # From the kernel that asks for a capability, or from Landlock before it.
    assert said[6] == "0" and set(said[:6]) <= {str(EPERM), str(EACCES)}


def test_privileged_attributes_cannot_be_set(session):
    s = session()
    assert inside(s, """
        open("f", "w").close()
        for n in ("security.capability", "trusted.x"):
            print(tried(lambda: os.setxattr("f", n, b"\\1\\0\\0\\2" +
                b"\\0" * 16)))
    """) == [str(EPERM)] * 2


def test_the_upper_half_of_an_argument_hides_nothing(session):
    # The kernel takes 32 bits of these: a filter that compares 64 is passed.
    s = session()
    assert inside(s, """
        big = lambda n: ctypes.c_ulong(0x7700000000 + n)
        m, t = os.openpty()
        print(call(16, t, big(0x5412), b"x"), call(41, big(17), 3, 0),
            call(272, big(0x10000000)), call(56, big(0x10000011), 0, 0, 0, 0),
            call(16, t, big(0x5423), struct.pack("i", 27)))
    """) == [str(EPERM)] * 5


def test_line_disciplines_cannot_be_loaded(session, outside):
    code = """
        m, t = os.openpty()
        print(call(16, t, 0x5423, struct.pack("i", 27)))
    """
    assert inside(session(), code) == [str(EPERM)]
    assert outside_python(outside, code) == ["0"]


def test_old_entry_points_are_closed(session):
    s = session()
    assert inside(s, """
        import mmap
        # mov $20,%eax; int $0x80; ret: getpid by the 32-bit entry
        code = mmap.mmap(-1, 4096, prot=7)
        code.write(b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3")
        at = ctypes.addressof(ctypes.c_char.from_buffer(code))
        print(ctypes.CFUNCTYPE(ctypes.c_int)(at)(), call(0x40000000 | 39))
    """) == ["-38", "38"]


def test_keys_are_neither_used_nor_listed(session, outside):
    name = "stockade-key-" + uuid.uuid4().hex[:8]
    code = """
        print(call(248, b"user", NAME, b"x", 1, -4),
            call(250, 0, -4, 0, 0, 0))
        try: print(NAME in open("/proc/keys", "rb").read())
        except OSError as e: print(e.errno)
    """
    try:
        twin = outside_python(outside, "NAME=b'%s'\n" % name +
                              textwrap.dedent(code))
        assert twin == ["0", "0", "True"]
        assert inside(session(), "NAME=b'%s'\n" % name +
                      textwrap.dedent(code)) == \
            [str(EPERM), str(EPERM), str(EACCES)]
    finally:
        outside_python(outside, "l.syscall(250,3,l.syscall(249,b'user',b'%s',"
                       "0,-4))" % name)


def test_the_host_is_not_in_proc(session):
    s = session()
    for path in ("/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem",
                 "/proc/sysrq-trigger", "/proc/1/root/etc/passwd",
                 "/dev/kvm", "/sys/kernel/uevent_seqnum"):
        assert s.sh("cat %s" % path)[0] != 0, path
        assert s.sh("echo 1 > %s" % path)[0] != 0, path
    assert s.sh("ls /sys/fs/cgroup")[0] != 0
    out = s.ok("cat /proc/self/cgroup")
    assert all(line.endswith(":/") for line in out.splitlines()), out
    assert s.sh("echo -1000 > /proc/self/oom_score_adj")[0] != 0
    s.ok("echo 500 > /proc/self/oom_score_adj")


def test_netlink_and_loopback_cannot_be_changed(session):
    s = session()
    # RTM_NEWADDR, RTM_DELADDR, RTM_NEWROUTE, RTM_NEWLINK of lo; then the
    # question that getifaddrs asks, as the twin.
    out = inside(s, """
        def ask(kind, flags, body):
            n = socket.socket(16, 3, 0)
            n.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0)
                + body)
            got = n.recv(8192)
            return struct.unpack_from("=i", got, 16)[0] \\
                if struct.unpack_from("=H", got, 4)[0] == 2 else 0
        addr = struct.pack("=BBBBIHHI", 2, 8, 0, 0, 1, 8, 2, 0x0100630a)
        route = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 253, 1, 0)
        link = struct.pack("=BBHiII", 0, 0, 0, 1, 0, 1)
        print(ask(20, 0x505, addr), ask(21, 5, addr), ask(24, 0x505, route),
            ask(16, 5, link), ask(22, 0x301, b"\\0" * 8))
    """)
    assert out == [str(-EPERM)] * 4 + ["0"]


# ------------------------------------------------- two runs of one user

MAKE = """
l.shmget(0x5afe, 4096, 0o1666); l.semget(0x5afe, 1, 0o1666)
l.msgget(0x5afe, 0o1666)
a = socket.socket(socket.AF_UNIX); a.bind("\\0stockade-twin"); a.listen()
m, t = os.openpty()
print("up", flush=True)
"""
LOOK = """
print(l.shmget(0x5afe, 0, 0) >= 0, l.semget(0x5afe, 0, 0) >= 0,
    l.msgget(0x5afe, 0) >= 0,
    tried(lambda: socket.socket(1).connect("\\0stockade-twin")) == 0,
    os.listdir("/dev/pts") != ["ptmx"],
    len([p for p in os.listdir("/proc") if p.isdigit()]) > 3)
"""


def test_ipc_and_terminals_are_each_sessions_own(session):
    a, b = session(), session()
    a.client.call("events.subscribe", sessionId=a.name)
    a.client.call("sandbox.exec", sessionId=a.name, argv=[
        PYTHON, "-c", SYS + MAKE + "import time; time.sleep(60)"])
    a.client.event("stdout")
    assert inside(b, LOOK) == ["False"] * 6
    # Twin: within one session it is all there, though a Landlock domain is
    # around each init and not each command. The third process is the broker.
    assert inside(a, LOOK) == ["True"] * 6


def test_host_ipc_is_not_seen(session, outside):
    key = 0x5afe0000 | os.getpid() & 0xffff
    make = "print(l.shmget(%d, 4096, 0o1666) >= 0)" % key
    look = "print(l.shmget(%d, 0, 0) >= 0)" % key
    try:
        assert outside_python(outside, make) == ["True"]
        assert outside_python(outside, look) == ["True"]
        assert inside(session(), look) == ["False"]
    finally:
        outside_python(outside, "l.shmctl(l.shmget(%d,0,0),0,0)" % key)


def test_abstract_names_of_the_host_are_not_there(session, outside):
    name = "\0stockade-" + uuid.uuid4().hex
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        code = "print(tried(lambda: socket.socket(1).connect(%r)))" % name
        assert outside_python(outside, code) == ["0"]
        assert inside(session(), code) == ["111"]


def test_runtime_sockets_are_not_in_the_view(session, service):
    s = session()
    for path in (service.socket, "/run/dbus/system_bus_socket",
                 "/var/run/docker.sock", "/run/containerd/containerd.sock",
                 "/run/systemd/journal/socket", "/dev/log",
                 "/run/systemd/notify"):
        assert inside(s, "print(tried(lambda: socket.socket(1)"
                      ".connect(%r)), tried(lambda: socket.socketpair(1, 2)"
                      "[0].sendto(b'x', %r)))" % (path, path)) == \
            [str(ENOENT)] * 2, path
    assert os.path.exists(service.socket)       # and this one is there


def test_the_services_directories_are_masked_in_a_mount(service, client):
    # A mount that holds them: the run sees empty directories.
    client.launch("around", service.dir)
    try:
        status, out, _ = client.run("around", [
            "/bin/sh", "-c", "ls -A %s %s; ls -d %s" % (
                service.runtime, service.state, service.socket)])
        assert status != 0 and b"sock" not in out and b"view" not in out
    finally:
        client.call("sandbox.destroy", sessionId="around")
    assert "control.sock" in os.listdir(service.runtime)
    for path in (service.runtime, service.state):
        with pytest.raises(instance.RpcError) as error:
            client.launch("refused", path)
        assert error.value.name == "badPath"


# ------------------------------------------------- files and spellings

def test_one_rule_in_every_spelling(session, service, client):
    workdir = service.workdir()
    write(workdir + "/real/token")
    os.symlink("real", workdir + "/link")
    os.symlink(workdir + "/real/token", workdir + "/direct")
    own(workdir)
    spellings = ["/real/token", "//real//token", "/./real/./token",
                 "/real/token/", "/link/token", "/direct"]
    for i, spelling in enumerate(spellings):
        name = "spelling-%d" % i
        client.launch(name, workdir, denyRead=[workdir + spelling])
        status, out, _ = client.run(name, [
            "/bin/sh", "-c", "cat real/token; cat link/token; cat direct; "
            "cat ./real/../real/token; cat /proc/self/cwd/real/token"])
        assert status != 0 and out == b"", spelling
        client.call("sandbox.destroy", sessionId=name)
    client.launch("spelling-twin", workdir)
    assert client.run("spelling-twin", ["cat", "direct"])[1] == b"secret"
    client.call("sandbox.destroy", sessionId="spelling-twin")


def test_a_rule_that_cannot_be_checked_is_not_dropped(service, client):
    workdir = service.workdir()
    os.symlink("loop", workdir + "/loop")
    os.mkdir(workdir + "/closed")
    own(workdir)
    os.chmod(workdir + "/closed", 0o700)
    os.chown(workdir + "/closed", 0, 0)
    for path in ("/loop", "/loop/x", "/" + "a" * 256, "/closed/x"):
        for field in ("denyRead", "denyWrite", "protectedPaths"):
            with pytest.raises(instance.RpcError) as error:
                client.launch("unchecked", workdir, **{field: [workdir + path]})
            assert error.value.name == "lookupFailed", path
    assert client.call("sandbox.list")["handles"] == []
    client.launch("checked", workdir, denyRead=[workdir + "/absent"])
    client.call("sandbox.destroy", sessionId="checked")


def test_a_link_planted_for_the_next_launch_frees_nothing(service, client):
    # A run turns what is protected into links; the next launch must neither
    # follow them out of the tree nor lose a rule of something that exists.
    workdir = service.workdir()
    write(workdir + "/.git/config", "[core]\n")
    write(workdir + "/stash/pre-commit", "mine")
    for name, target in ((".git/hooks", "../stash"), (".npmrc", "/nowhere"),
                         (".bashrc", "/etc/passwd"),
                         (".mcp.json", ".mcp.json")):
        os.symlink(target, os.path.join(workdir, name))
    own(workdir)
    try:
        client.launch("planted", workdir)
    except instance.RpcError as error:
        assert error.name == "lookupFailed"     # the loop, and by name
        assert ".mcp.json" in error.message
        os.unlink(workdir + "/.mcp.json")
        client.launch("planted", workdir)
    try:
        for line in ("echo evil > stash/pre-commit",
                     "echo evil > .git/hooks/pre-commit",
                     "echo evil > stash/new", "echo evil >> .git/config"):
            status, _, err = client.run("planted", ["/bin/sh", "-c", line])
            assert status != 0 and REFUSED.search(err), (line, err)
        assert client.run("planted", ["/bin/sh", "-c", "echo x > twin"])[0] \
            == 0
    finally:
        client.call("sandbox.destroy", sessionId="planted")
    with open(workdir + "/stash/pre-commit", encoding="ascii") as f:
        assert f.read() == "mine"


def test_hooks_and_config_of_the_work_tree_are_protected(session):
    git = ".git"
    files = [git + "/" + n for n in ("config", "hooks/pre-commit",
                                     "info/attributes", "config.worktree")]

    def prepare(workdir):
        for name in files + [git + "/HEAD", git + "/other"]:
            write(os.path.join(workdir, name), "[core]\n")

    s = session(prepare=prepare)
    for name in files + [git + "/hooks/new"]:
        status, _, err = s.sh("echo evil >> " + name)
        assert status != 0 and REFUSED.search(err), name
    s.ok("echo x >> %s/other && echo x > %s/index" % (git, git))
    for name in files:
        with open(os.path.join(s.workdir, name), encoding="ascii") as f:
            assert f.read() == "[core]\n"


def test_odd_git_files_neither_hang_nor_fail(service, client):
    for i, text in enumerate(("gitdir: /etc\n", "gitdir: /proc/self/root\n",
                              "gitdir: .git\n", "gitdir: " + "x" * 100000,
                              "gitdir: a\0b\n", "")):
        workdir = service.workdir()
        write(workdir + "/.git", text)
        own(workdir)
        client.launch("gitfile-%d" % i, workdir)
        client.call("sandbox.destroy", sessionId="gitfile-%d" % i)
    workdir = service.workdir()
    os.mkfifo(workdir + "/.git")
    own(workdir)
    client.launch("gitfifo", workdir)
    client.call("sandbox.destroy", sessionId="gitfifo")


def test_git_of_the_host_runs_nothing_that_was_planted(session):
    def prepare(workdir):
        subprocess.run(["git", "init", "-q", workdir], check=True)
        write(os.path.join(workdir, ".git/info/attributes"), "")

    s = session(prepare=prepare)
    marker = os.path.join(s.service.dir, "planted-" + uuid.uuid4().hex)
    plant = ("printf '#!/bin/sh\\ntouch %s\\n' > /tmp/h; chmod +x /tmp/h; "
             "cp /tmp/h .git/hooks/post-checkout; cp /tmp/h "
             ".git/hooks/pre-commit; git config core.fsmonitor 'touch %s'; "
             "git config core.pager 'touch %s'; echo '* filter=x' > "
             ".git/info/attributes; true" % (marker, marker, marker))
    s.ok(plant)
    s.ok("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")
    s.destroy()
    git = ["git", "-c", "safe.directory=*", "-C", s.workdir]
    subprocess.run([*git, "status"], check=True, capture_output=True)
    subprocess.run([*git, "checkout", "-q", "-b", "b"], check=True)
    assert not os.path.exists(marker)
    # Twin: the same plant outside runs.
    subprocess.run(["/bin/sh", "-c", plant], cwd=s.workdir, check=True,
                   env={**os.environ, "GIT_CONFIG_COUNT": "1",
                        "GIT_CONFIG_KEY_0": "safe.directory",
                        "GIT_CONFIG_VALUE_0": "*"})
    subprocess.run([*git, "checkout", "-q", "-b", "c"], check=True)
    assert os.path.exists(marker)


def test_look_up_time_does_not_grow_with_the_tree(service, client):
    workdir = service.workdir()
    for i in range(250):
        write("%s/d%d/x" % (workdir, i))
    own(workdir)
    started = time.monotonic()
    client.launch("many", workdir,
                  denyRead=["%s/d%d" % (workdir, i) for i in range(125)],
                  denyWrite=["%s/d%d" % (workdir, i)
                             for i in range(125, 250)],
                  protectedPaths=["%s/p%d" % (workdir, i)
                                  for i in range(1024)])
    assert time.monotonic() - started < 5
    try:
        status, out, _ = client.run("many", [
            "/bin/sh", "-c", "cat d*/x | wc -c; echo x > d200/x"])
        assert status != 0 and out == b"%d\n" % (125 * len("secret"))
    finally:
        client.call("sandbox.destroy", sessionId="many")


def test_state_directories_are_all_that_a_review_may_write(session, service):
    state = service.workdir()
    s = session(mode="review", runnerStateDirs=[state])
    assert s.sh("echo x > file")[0] != 0
    s.ok("echo x > %s/file" % state)
    assert os.listdir(state) == ["file"] and os.listdir(s.workdir) == []
    os.symlink("/etc", state + "/link")
    for path in (state + "/link", "/etc", service.runtime, service.state,
                 "/", state + "/.."):
        with pytest.raises(instance.RpcError):
            session(mode="review", runnerStateDirs=[path])


def test_a_working_directory_never_widens(session, service, client):
    s = session()
    os.symlink("/etc", s.workdir + "/link")
    for cwd in ("/", "/etc", "..", s.workdir + "/..", "relative",
                s.workdir + "/absent"):
        with pytest.raises(instance.RpcError):
            s.run("pwd", cwd=cwd)
    assert s.sh("echo x > passwd", cwd=s.workdir + "/link")[0] != 0
    for workdir in ("/", "/etc", s.workdir + "/absent"):
        with pytest.raises(instance.RpcError):
            client.launch("refused", workdir,
                          bindMounts=[{"hostPath": s.workdir}])


# ------------------------------------------------- the proxies

ASK = """
import time
def ask(port, *parts):
    s = socket.create_connection(("127.0.0.1", port)); s.settimeout(1)
    got = b""
    try:
        for p in parts: s.sendall(p); time.sleep(0.01)
        while True:
            d = s.recv(65536)
            if not d: break
            got += d
    except OSError: pass
    return got
def status(got):
    w = got.split(b" ", 2)
    return w[1].decode() if len(w) > 1 else "none"
"""
CONNECTS = {
    "127.0.0.1:3128": "403", "127.0.0.1:1080": "403", "[::1]:3128": "403",
    "localhost:80": "403", "0:80": "403", "2130706433:80": "403",
    "0x7f.1:80": "403", "0177.0.0.1:80": "403", "[fe80::1%lo]:80": "403",
    "[::ffff:10.99.0.1]:80": "403", "allowed.example.net": "400",
    "allowed.example.net:": "400", "allowed.example.net:0": "400",
    "allowed.example.net:65616": "400", "allowed.example.net:+80": "400",
    "allowed.example.net:080": "400", "allowed.example.net:0x50": "400",
    "allowed.example.net:80x": "400", "allowed.example.net:80:80": "400",
    "x@allowed.example.net:80": "400",
    "allowed.example.net:80@denied.example.net": "400",
    "allowed.example.net:80/": "400", "allowed.example.net\\0.b:80": "400",
    "allowed.example.net#b:80": "400", "allowed.example.net%2e:80": "403",
    "allowed.example.net..:80": "403", ".allowed.example.net:80": "403",
    "evilallowed.example.net:80": "403",
    "allowed.example.net.evil.net:80": "403", "a" * 254 + ":80": "403",
    "allowed.example.net:22": "403", "allowed.example.net:25": "403",
    "allowed.example.net:5432": "403", "ALLOWED.example.net.:80": "200",
}


def test_odd_targets_of_connect(session):
    s = session()
    targets = list(CONNECTS)
    out = inside(s, ASK + "for t in %r:\n print(status(ask(3128, b'CONNECT '+"
                 "t.encode().decode('unicode_escape').encode('latin1')+"
                 "b' HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')))\n" % targets)
    assert dict(zip(targets, out)) == CONNECTS


HEAD = "POST http://allowed.example.net/ HTTP/1.1\r\n" \
    "Host: allowed.example.net\r\n"
GET = "GET http://allowed.example.net/ HTTP/1.1\r\n"
SECOND = "GET http://denied.example.net/ HTTP/1.1\r\n" \
    "Host: denied.example.net\r\n\r\n"
SMUGGLED = {
    "both lengths": HEAD + "Content-Length: 5\r\nTransfer-Encoding: chunked"
    "\r\n\r\n0\r\n\r\n" + SECOND,
    "two lengths": HEAD + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "list of lengths": HEAD + "Content-Length: 5, 5\r\n\r\nhello",
    "signed length": HEAD + "Content-Length: +5\r\n\r\nhello",
    "foreign coding": HEAD + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": HEAD + "Transfer-Encoding: chunked, identity\r\n\r\n",
    "tab in coding": HEAD + "Transfer-Encoding: \x0bchunked\r\n\r\n",
    "blank before colon": GET + "Host : allowed.example.net\r\n\r\n",
    "fold": GET + "Host: allowed.example.net\r\nA: b\r\n c\r\n\r\n",
    "bare LF": GET + "Host: allowed.example.net\nA: b\r\n\r\n",
    "bare CR": GET + "Host: allowed.example.net\r\nA: b\rc\r\n\r\n",
    "NUL": GET + "Host: allowed.example.net\r\nA: b\0c\r\n\r\n",
    "two hosts": GET + "Host: allowed.example.net\r\n" * 2 + "\r\n",
    "origin form": "GET / HTTP/1.1\r\nHost: allowed.example.net\r\n\r\n",
    "https": GET.replace("http:", "https:") + "Host: x\r\n\r\n",
    "user in URI": "GET http://allowed.example.net@denied.example.net/ "
    "HTTP/1.1\r\nHost: x\r\n\r\n",
    "chunk overflow": HEAD + "Transfer-Encoding: chunked\r\n\r\n"
    "fffffffffffffffff\r\n",
}


def test_doubtful_framing_is_refused_and_reaches_nobody(session):
    s = session()
    names = list(SMUGGLED)
    out = inside(s, ASK + "for r in %r:\n"
                 " g = ask(3128, r.encode('latin1'))\n"
                 " print(status(g), b'hello' in g)\n" %
                 [SMUGGLED[n] for n in names])
    assert dict(zip(names, zip(out[::2], out[1::2]))) == \
        {n: ("400", "False") for n in names}
    plain = GET + "Host: denied.example.net\r\nConnection: close\r\n\r\n"
    assert inside(s, ASK + "g = ask(3128, %r.encode())\n"
                  "print(status(g), b'hello' in g)" % plain) == \
        ["200", "True"]         # the twin; Host is rebuilt from the URI


def test_each_request_of_one_connection_is_judged(session):
    s = session()
    one = GET + "Host: allowed.example.net\r\n\r\n"
    out = inside(s, ASK + "g = ask(3128, %r.encode())\n"
                 "print(g.count(b' 200 OK'), g.count(b' 403 '),"
                 "g.count(b'hello'))\n" % (one + SECOND + one))
    assert out == ["2", "1", "2"]
    tail = "CONNECT denied.example.net:80 HTTP/1.1\r\nHost: x\r\n\r\n"
    out = inside(s, ASK + "g = ask(3128, %r.encode())\n"
                 "print(g.count(b' 200 '), g.count(b' 403 '))\n" %
                 (one + tail))
    assert out == ["1", "1"]


def socks(command, kind, address, port=80):
    return bytes([5, 1, 0, 5, command, 0, kind]) + address + \
        port.to_bytes(2, "big")


def name(text):
    return bytes([len(text)]) + text.encode()


SOCKS = {
    "connect": (socks(1, 3, name("allowed.example.net")), "0"),
    "denied": (socks(1, 3, name("denied.example.net")), "2"),
    "bind": (socks(2, 3, name("allowed.example.net")), "7"),
    "associate": (socks(3, 3, name("allowed.example.net")), "7"),
    "empty": (socks(1, 3, name("")), "2"),
    "nul": (socks(1, 3, name("allowed.example.net\0x")), "2"),
    "newline": (socks(1, 3, name("allowed.example.net\nx")), "2"),
    "kind": (socks(1, 9, b"\0\0\0\0"), "8"),
    "own": (socks(1, 1, bytes([127, 0, 0, 1]), 3128), "2"),
    "literal": (socks(1, 1, bytes([10, 99, 0, 1])), "2"),
    "mapped": (socks(1, 4, bytes(10) + b"\xff\xff" + bytes([10, 99, 0, 1])),
               "2"),
    "number": (socks(1, 3, name("2130706433")), "2"),
    "version 4": (b"\x04\x01\0\x50\x0a\x63\0\x01\0", "none"),
}


def test_odd_requests_of_socks(session):
    s = session()
    keys = list(SOCKS)
    out = inside(s, ASK + "for r in %r:\n g = ask(1080, r)\n"
                 " print(g[3] if len(g) > 3 else 'none')\n" %
                 [SOCKS[k][0] for k in keys])
    assert dict(zip(keys, out)) == {k: SOCKS[k][1] for k in keys}
    split = [bytes([b]) for b in SOCKS["connect"][0]]
    assert inside(s, ASK + "print(ask(1080, *%r, b'GET / HTTP/1.0\\r\\n\\r\\n'"
                  ").count(b'hello'))" % split) == ["1"]


def test_more_tunnels_than_the_limit_harm_no_other_session(session):
    a, b = session(), session()
    out = inside(a, """
        import collections
        socks = []
        for i in range(1100):
            s = socket.create_connection(("127.0.0.1", 3128))
            s.sendall(b"CONNECT allowed.example.net:80 HTTP/1.1\\r\\n"
                b"Host: x\\r\\n\\r\\n")
            socks.append(s)
        seen = collections.Counter()
        for s in socks:
            s.settimeout(20)
            try: seen[s.recv(12)[9:12]] += 1
            except OSError: seen[b"reset"] += 1
        print(seen[b"200"], seen[b"503"] > 0)
    """)
    assert out == ["1024", "True"]
    assert b.ok("curl -sS http://allowed.example.net/") == \
        "hello from outside"
    assert a.ok("for i in 1 2 3 4 5 6 7 8 9; do curl -sS "
                "http://allowed.example.net/ && exit; sleep 0.2; done") == \
        "hello from outside"


def test_another_user_finds_no_way_into_a_session(session, service):
    session()
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534",
              "--clear-groups"]
    for port in (3128, 1080):
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port), 2)
        assert subprocess.run(
            ["nsenter", "-t", str(service.process.pid), "-n", *nobody, PYTHON,
             "-c", "import socket;socket.create_connection(('127.0.0.1',%d),"
             "2)" % port], check=False, capture_output=True).returncode != 0
    for pid in instance.all_pids_below(service.process.pid):
        done = subprocess.run(
            [*nobody, "/bin/sh", "-c", "cat /proc/%d/environ /proc/%d/maps "
             "|| ls /proc/%d/fd /proc/%d/root/tmp" % (pid, pid, pid, pid)],
            check=False, capture_output=True)
        assert done.stdout == b"", (pid, done.stdout[:200])
    assert subprocess.run([*nobody, PYTHON, "-c",
                           "import socket;socket.socket(1).connect(%r)" %
                           service.socket], check=False,
                          capture_output=True).returncode != 0


# ------------------------------------------------- clients

def as_client(service, uid, code):
    """Code with a client `c` of another uid in the group of clients."""
    group = grp.getgrnam("stockade").gr_gid
    text = "import sys\nsys.path.insert(0,%r)\nfrom instance import *\n" \
        "c=Client(%r)\ndef t(m,**k):\n" \
        "  try: c.call(m,**k); print('ok')\n" \
        "  except RpcError as e: print(e.name)\n%s" % (
            os.path.dirname(instance.__file__), service.socket,
            textwrap.dedent(code))
    done = subprocess.run(
        ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--groups",
         str(group), PYTHON, "-c", text], check=False, capture_output=True,
        timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split()


def test_a_client_touches_nothing_of_another_uid(session, service):
    s = session()
    exec_id = s.client.call("sandbox.exec", sessionId=s.name, argv=["cat"],
                            stdin=True)["execId"]
    out = as_client(service, 65534, """
        S, E = %r, %r
        t("sandbox.get", sessionId=S); t("sandbox.get", sessionId="absent")
        t("sandbox.get", sessionId=S, adopt=True)
        t("sandbox.exec", sessionId=S, argv=["id"])
        t("sandbox.stdin", sessionId=S, execId=E, data=b"x")
        t("sandbox.signal", sessionId=S, execId=E, signal="KILL")
        t("sandbox.suspend", sessionId=S); t("sandbox.destroy", sessionId=S)
        t("events.subscribe", sessionId=S); t("sandbox.explain", sessionId=S)
        t("admin.reload")
        print(len(c.call("sandbox.list")["handles"]),
            len(c.call("admin.sessions")["rows"]),
            len(c.call("admin.violations")["rows"]))
    """ % (s.name, exec_id))
    assert out == ["notFound"] * 10 + ["forbidden", "0", "0", "0"]
    assert s.client.call("sandbox.get", sessionId=s.name)["alive"]


def test_a_client_launches_as_itself_only(service):
    workdir = service.workdir()
    os.chown(workdir, 65534, 65534)
    out = as_client(service, 65534, """
        W = %r
        for u in ("root", "0", "stockade-run", "990000"):
            t("sandbox.launch", spec=dict(c.spec("as-" + u, W), user=u))
        t("sandbox.launch", spec=c.spec("own", W))
        print(c.run("own", ["id", "-u"])[1].decode())
        t("sandbox.launch", spec=c.spec("root-home", "/root/x"))
    """ % workdir)
    assert out == ["badParams", "badParams", "forbidden", "forbidden", "ok",
                   "65534", "badPath"]


def test_a_label_of_another_uid_is_not_taken(session, service):
    s = session()
    workdir = service.workdir()
    os.chown(workdir, 65534, 65534)
    assert as_client(service, 65534, """
        t("sandbox.launch", spec=c.spec(%r, %r), replace=True)
        t("sandbox.destroy", sessionId=%r)
    """ % (s.name, workdir, s.name)) == ["ok", "ok"]
    assert s.ok("echo alive") == "alive"


def test_strings_stay_strings(session, service):
    s = session(env={"A": "x\nLD_PRELOAD=/evil.so"})
    evil = "$(touch /tmp/x)`id`;\n\x1b]0;t\x07 STOCKADE_RUN_UID=0 '\""
    assert s.run("printf", "%s", evil)[1].decode() == evil
    assert "LD_PRELOAD" not in inside(s, "print(*os.environ)")
    s.sh("curl -sS 'http://denied.example.net:80/' -H 'Host: x'")
    for label in ("", "a b", "a\nb", "a\0b", "x'$(id)", "a" * 129):
        with pytest.raises(instance.RpcError) as error:
            session().client.launch(label, s.workdir)
        assert error.value.name == "badParams"
    for variables in ({"A=B": "1"}, {"": "1"}, {"B\nC": "1"}, {"A": "a\0b"}):
        with pytest.raises(instance.RpcError):
            s.run("true", env=variables)
    assert "\x1b" not in service.read_log()


def test_words_at_the_limit(session):
    s = session()
    status, out, _ = s.run("echo", *["a"] * 4095)
    assert status == 0 and len(out.split()) == 4095
    for argv in (["a"] * 4097, [], [""], ["a\0b"]):
        with pytest.raises(instance.RpcError):
            s.run(*argv)
    with pytest.raises(instance.RpcError) as error:
        s.run("/bin/echo", "a" * 200000)
    assert error.value.name == "hostError"


def test_commands_beyond_the_limit_end_no_other(session):
    s = session()
    asked = [s.client.start("sandbox.exec", sessionId=s.name,
                            argv=["sleep", "5"]) for _ in range(64)]
    seen = collections.Counter()
    for one in asked:
        try:
            s.client.finish(one)
            seen["ok"] += 1
        except instance.RpcError as error:
            seen[error.name] += 1
    assert seen == {"ok": 32, "limit": 32}


def test_who_does_not_read_makes_its_run_wait(session, service):
    s = session()
    s.client.call("events.subscribe", sessionId=s.name)
    exec_id = s.client.call("sandbox.exec", sessionId=s.name, argv=[
        "/bin/sh", "-c", "head -c 30000000 /dev/zero; touch done"])["execId"]
    with service.client() as lazy:
        lazy.call("events.subscribe", sessionId=s.name)
        time.sleep(1)       # the test is that nothing happens
        assert not os.path.exists(s.workdir + "/done")
        total = 0
        while True:
            event = s.client.event(lambda e: e.get("execId") == exec_id)
            if event["type"] == "exit":
                break
            total += len(event["data"])
        assert total == 30000000
        # The other one never stopped it, and is told what it has missed.
        assert lazy.event("overrun")["first"] > 0
        assert lazy.event("exit")["exitCode"] == 0


def test_much_input_arrives_whole(session):
    s = session()
    s.client.call("events.subscribe", sessionId=s.name)
    exec_id = s.client.call("sandbox.exec", sessionId=s.name,
                            argv=["cksum"], stdin=True)["execId"]
    data, sent = b"0123456789abcdef" * 8192, 0
    while sent < 8 << 20:
        part = data[sent % len(data):]
        try:
            sent += s.client.call("sandbox.stdin", sessionId=s.name,
                                  execId=exec_id, data=part)["accepted"]
        except instance.RpcError as error:
            assert error.name == "busy"
    s.client.call("sandbox.stdin", sessionId=s.name, execId=exec_id, eof=True)
    want = subprocess.run(["cksum"], input=(data * 65)[:sent], check=True,
                          capture_output=True).stdout
    assert s.client.collect(exec_id)[1] == want


def test_many_calls_at_once_and_a_client_that_never_reads(service, client):
    workdir = service.workdir()
    asked = [client.start("sandbox.launch", spec=client.spec(
        "flood-%d" % i, workdir)) for i in range(32)]
    for one in asked:
        client.finish(one, 60)
    asked = [client.start("sandbox.destroy", sessionId="flood-%d" % i)
             for i in range(32)]
    for one in asked:
        client.finish(one, 60)
    with service.client() as lazy:
        lazy.sock.settimeout(1)
        with pytest.raises(OSError):
            for _ in range(1000000):
                lazy.start("ping")
        started = time.monotonic()
        client.call("ping")
        assert time.monotonic() - started < 1


def still_alive(s):
    """What the flood left in the queues is worked off first."""
    end = time.monotonic() + 20
    while True:
        try:
            assert s.ok("echo alive") == "alive"
            return
        except instance.RpcError as error:
            assert error.name == "limit" and time.monotonic() < end
            time.sleep(0.05)


def test_a_flood_of_signals_ends_nothing(session, service):
    s = session()
    daemons = service.children()
    exec_id = s.client.call("sandbox.exec", sessionId=s.name,
                            argv=["sleep", "60"])["execId"]
    with service.client() as other:
        for _ in range(40):
            asked = [other.start("sandbox.signal", sessionId=s.name,
                                 execId=exec_id, signal="CONT")
                     for _ in range(1000)]
            for one in asked:
                other.finish(one)
    assert service.children() == daemons
    still_alive(s)


@pytest.mark.parametrize("method,more,frozen", [
    ("signal", {"signal": "CONT"}, False), ("signal", {"signal": "CONT"}, True),
    ("resize", {"rows": 2, "cols": 2}, False), ("suspend", {}, False),
    ("exec", {"argv": ["true"]}, True)])
def test_a_pipeline_of_calls_ends_nothing(session, service, method, more,
                                          frozen):
    """160,000 of them, written as fast as they are taken."""
    s = session()
    daemons = service.children()
    exec_id = s.client.call("sandbox.exec", sessionId=s.name, tty=True,
                            argv=["sleep", "60"])["execId"]
    if method in ("signal", "resize"):
        more = dict(more, execId=exec_id)
    if frozen:
        s.client.call("sandbox.suspend", sessionId=s.name)
    with service.client() as other:
        params = dict(more, sessionId=s.name)
        end = time.monotonic() + 60
        for first in range(10, 160000, 2000):
            left = memoryview(b"".join(msgpack.packb(
                [0, first + i, "sandbox." + method, [params]],
                use_bin_type=True) for i in range(2000)))
            while left:
                ready = select.select([other.sock], [other.sock], [], 10)
                assert (ready[0] or ready[1]) and time.monotonic() < end
                if ready[0]:
                    assert other.sock.recv(1 << 20)
                if ready[1]:
                    left = left[other.sock.send(left, socket.MSG_DONTWAIT):]
        assert service.children() == daemons
        assert s.client.call("sandbox.get", sessionId=s.name)["alive"]
    if frozen or method == "suspend":
        s.client.call("sandbox.resume", sessionId=s.name)
    assert service.children() == daemons
    still_alive(s)
    s.client.call("events.subscribe", sessionId=s.name)
    s.client.call("sandbox.signal", sessionId=s.name, execId=exec_id,
                  signal="KILL")
    s.client.event(lambda e: e["type"] == "exit" and e["execId"] == exec_id)


def test_many_lists_of_many_sessions_at_once(service, client):
    workdir = service.workdir()
    control = service.children()["stockade-control"]
    for i in range(100):
        client.launch("list-%d" % i, workdir)
    others = [service.client() for _ in range(8)]
    asked = [(c, c.start("sandbox.list")) for _ in range(60) for c in others]
    for c, one in asked:
        assert len(c.finish(one)["handles"]) >= 100
    for c in others:
        c.close()
    assert service.children()["stockade-control"] == control
    for i in range(100):
        client.call("sandbox.destroy", sessionId="list-%d" % i)


# ------------------------------------------------- ends

def test_a_fork_bomb_stays_in_its_limit_and_ends(session, service):
    before = len(instance.all_pids_below(service.process.pid))
    s = session(limits={"pids": 100})
    s.client.call("events.subscribe", sessionId=s.name)
    s.client.call("sandbox.exec", sessionId=s.name, argv=[
        "/bin/bash", "-c", "trap '' TERM HUP INT; b(){ b|b& }; b; sleep 1"])
    assert s.client.event("notice")["code"] == "pidLimit"
    assert len(instance.all_pids_below(service.process.pid)) < before + 110
    other = session()
    assert other.ok("echo alive") == "alive"
    started = time.monotonic()
    s.destroy()
    assert time.monotonic() - started < 6
    other.destroy()
    until(lambda: len(instance.all_pids_below(service.process.pid)) <=
          before, "processes are left")


def test_nothing_that_a_run_does_to_its_processes_outlives_it(session,
                                                              service):
    before = len(instance.all_pids_below(service.process.pid))
    s = session()
    s.client.call("sandbox.exec", sessionId=s.name, argv=[PYTHON, "-c", SYS +
                  textwrap.dedent("""
        import signal, time
        for n in range(1, 65):
            try: signal.signal(n, signal.SIG_IGN)
            except (OSError, ValueError): pass
        l.prctl(36, 1, 0, 0, 0)     # PR_SET_CHILD_SUBREAPER
        for i in range(8):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    if i % 2: os.kill(os.getpid(), signal.SIGSTOP)
                    while True: time.sleep(60)
                os._exit(0)
        open("up", "w").close()
        while True: time.sleep(60)
    """)])
    until(lambda: os.path.exists(s.workdir + "/up"), "not up")
    s.client.call("sandbox.suspend", sessionId=s.name)
    s.destroy()
    until(lambda: len(instance.all_pids_below(service.process.pid)) <=
          before, "processes are left")


def test_memory_of_tmp_counts_and_the_limit_of_tmp_holds(session):
    s = session(limits={"tmpBytes": 8 << 20, "memoryBytes": 256 << 20})
    status, _, err = s.sh("head -c 20000000 /dev/zero > /tmp/x")
    assert status != 0 and b"No space" in err
    s = session(limits={"memoryBytes": 96 << 20})
    s.client.call("events.subscribe", sessionId=s.name)
    s.client.call("sandbox.exec", sessionId=s.name, argv=[
        "/bin/sh", "-c", "head -c 400000000 /dev/zero > /tmp/x; echo after"])
    assert s.client.event("killed")["cause"] == "oom"
    assert s.client.event("exit")["exitCode"] == 137


def test_a_refused_operation_is_not_logged_as_roots(session, service):
    s = session()
    s.sh("curl -sS http://denied.example.net/")
    rows = [r for r in service.read_log().splitlines()
            if "EVENT=VIOLATION" in r and "SESSION=%s " % s.name in r]
    assert rows and all("RUN_UID=0" not in r for r in rows)


@pytest.fixture(scope="module")
def private():
    with instance.Instance("limit idle none") as running:
        yield running


@pytest.mark.parametrize("victim", ["stockade-launcherd", "stockade-control",
                                    "stockade-proxyd", "stockade-lookup",
                                    "bwrap"])
def test_a_kill_in_the_middle_of_a_launch(private, victim):
    workdir = private.workdir()
    for delay in (0, 0.004, 0.009):
        until(lambda: serves(private), "not back", 20)
        with private.client() as c:
            asked = c.start("sandbox.launch", spec=c.spec(
                "killed", workdir, detach=True))
            time.sleep(delay)       # the attack is the moment
            kill_one(private, victim)
            try:
                c.finish(asked, 15)
            except (instance.RpcError, instance.Closed):
                pass
    until(lambda: serves(private), "not back", 20)
    with private.client() as c:
        for handle in c.call("sandbox.list")["handles"]:
            c.call("sandbox.destroy", sessionId=handle["sessionId"])
        assert c.call("sandbox.list")["handles"] == []
    until(lambda: not names_below(private) & {"bwrap", "init"},
          "processes are left")
    assert os.listdir(workdir) == []


def names_below(service):
    names = set()
    for pid in instance.all_pids_below(service.process.pid):
        try:
            with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                names.add(f.read().strip())
        except OSError:
            continue
    return names


def kill_one(service, name):
    for pid in instance.all_pids_below(service.process.pid):
        try:
            with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                comm = f.read().strip()
        except OSError:
            continue
        if comm == name[:15]:
            os.kill(pid, signal.SIGKILL)
            return


def serves(service):
    try:
        with service.client() as c:
            c.launch("probe", service.dir)
            done = c.run("probe", ["true"])[0] == 0
            c.call("sandbox.destroy", sessionId="probe")
            return done
    except (instance.RpcError, instance.Closed, OSError):
        return False


def test_a_broken_reload_changes_nothing_under_load(service, client):
    workdir = service.workdir()
    with open(service.conf, encoding="utf-8") as f:
        good = f.read()
    client.launch("load", workdir)
    try:
        for i, more in enumerate(['allow host { "denied.example.net" } x',
                                  "nonsense", 'allow host { "*.com" }',
                                  "limit idle", "\0", "allow {" * 1000] * 3):
            with open(service.conf, "w", encoding="utf-8") as f:
                f.write(good + more + "\n")
            with pytest.raises(instance.RpcError) as error:
                client.call("admin.reload")
            assert error.value.name == "badParams"
            assert "stockade.conf:" in error.value.message
            client.launch("load-%d" % i, workdir)
            out = client.run("load-%d" % i, [
                "curl", "-sSi", "http://denied.example.net/"])[1]
            assert b" 403 " in out
            client.call("sandbox.destroy", sessionId="load-%d" % i)
    finally:
        with open(service.conf, "w", encoding="utf-8") as f:
            f.write(good)
        client.call("sandbox.destroy", sessionId="load")
    client.call("admin.reload")
    assert stat.S_IMODE(os.stat(service.socket).st_mode) == 0o660
    assert pwd.getpwuid(os.stat(service.socket).st_uid).pw_name == "root"
