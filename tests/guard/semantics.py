"""What file system calls answer, as seen by a program: run natively and under
the guard, and compared line by line by tests/proc/test_broker.py.

    semantics.py ROOT OUT

No name here is protected. Every case has a directory of its own. A line is
`case: result`, where a result is a value or the name of an errno.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import pty
import shutil
import signal
import socket
import stat
import struct
import sys
import threading

ROOT, OUT = sys.argv[1:3]
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = -100, 0x1000, 0x400
SYS = {"openat": 257, "openat2": 437, "renameat2": 316, "linkat": 265,
       "mknod": 133, "unlinkat": 263, "truncate": 76, "mkdirat": 258}
if os.uname().machine == "aarch64":
    SYS = {"openat": 56, "openat2": 437, "renameat2": 276, "linkat": 37,
           "mknod": 0, "unlinkat": 35, "truncate": 45, "mkdirat": 34}
NO_XDEV, NO_MAGIC, NO_SYM, BENEATH, IN_ROOT, CACHED = 1, 2, 4, 8, 16, 32
CASES = []


def case(fn):
    CASES.append(fn)
    return fn


def text(value):
    return value if isinstance(value, bytes) else value.encode()


def call(name, *args):
    raw = [ctypes.c_char_p(text(a)) if isinstance(a, (str, bytes)) else
           a if not isinstance(a, int) else ctypes.c_long(a) for a in args]
    r = libc.syscall(ctypes.c_long(SYS[name]), *raw)
    if r < 0:
        raise OSError(ctypes.get_errno(), name)
    return r


def openat2(path, flags, mode=0, resolve=0, at=AT_FDCWD, size=24, tail=b""):
    how = struct.pack("QQQ", flags, mode, resolve) + tail
    buf = ctypes.create_string_buffer(how, max(len(how), size))
    return call("openat2", at, path, buf, size)


def rename2(old, new, flags):
    return call("renameat2", AT_FDCWD, old, AT_FDCWD, new, flags)


def attempt(fn, *args, **kw):
    try:
        return fn(*args, **kw)
    except OSError as e:
        return errno.errorcode[e.errno]


def touch(name, data=b"text"):
    with open(name, "wb") as f:
        f.write(data)


def flags_of(fd):
    if isinstance(fd, str):
        return fd
    got = "fl=%o fd=%d" % (fcntl.fcntl(fd, fcntl.F_GETFL),
                           fcntl.fcntl(fd, fcntl.F_GETFD))
    os.close(fd)
    return got


def try_open(name, flags, mode=0o666):
    return flags_of(attempt(os.open, name, flags, mode))


def look(*names):
    rows = []
    for name in names:
        st = attempt(os.lstat, name)
        rows.append("%s=%s" % (name, st if isinstance(st, str) else
                               "%o/%d/%d/%d/%d" % (
                                   st.st_mode, st.st_nlink, st.st_size
                                   if stat.S_ISREG(st.st_mode) else 0,
                                   st.st_uid, st.st_gid)))
    return " ".join(rows)


FLAGS = {"WR": os.O_WRONLY, "RDWR": os.O_RDWR, "CREAT": os.O_CREAT,
         "EXCL": os.O_EXCL, "TRUNC": os.O_TRUNC, "APPEND": os.O_APPEND,
         "NONBLOCK": os.O_NONBLOCK, "NOFOLLOW": os.O_NOFOLLOW,
         "DIRECTORY": os.O_DIRECTORY, "SYNC": os.O_SYNC,
         "DSYNC": os.O_DSYNC, "NOATIME": os.O_NOATIME,
         "CLOEXEC": os.O_CLOEXEC, "PATH": os.O_PATH, "NOCTTY": os.O_NOCTTY,
         "THREE": 3, "DIRECT": os.O_DIRECT, "ODD": 0x8000000}
COMBINATIONS = [
    "WR", "RDWR", "WR CREAT", "WR CREAT EXCL", "RDWR CREAT TRUNC", "WR TRUNC",
    "TRUNC", "CREAT", "CREAT EXCL", "WR APPEND", "WR NONBLOCK",
    "WR NONBLOCK CREAT", "WR NOFOLLOW", "WR CREAT NOFOLLOW", "WR DIRECTORY",
    "CREAT DIRECTORY", "WR SYNC", "WR DSYNC CREAT", "RDWR NOATIME",
    "WR CLOEXEC", "PATH WR", "PATH CREAT", "WR NOCTTY", "THREE",
    "THREE CREAT", "WR ODD", "WR APPEND TRUNC CREAT CLOEXEC"]
TARGETS = ["file", "new", "dir", "to_file", "to_new", "to_dir", "loop",
           "dir/", "file/", "new/", ".", "..", "dir/.", "missing/x", "file/x",
           "to_dir/x", "locked/x", "unwritable", "nowrite/x", "a/../file",
           "dir/../file", "to_out", "deep/a/b/c/new", "x" * 255, "x" * 256,
           "", "/", "//", "./file", "dir//in", "chain0"]


def set_up():
    touch("file")
    os.mkdir("dir")
    touch("dir/in")
    for link, to in (("to_file", "file"), ("to_new", "absent"),
                     ("to_dir", "dir"), ("loop", "loop"),
                     ("to_out", OUT + "/outside")):
        os.symlink(to, link)
    os.makedirs("deep/a/b/c")
    os.mkdir("locked")
    os.chmod("locked", 0)
    os.mkdir("nowrite")
    os.chmod("nowrite", 0o555)
    touch("unwritable")
    os.chmod("unwritable", 0o444)
    # Half of what the kernel permits: it counts a second look twice.
    for i in range(19):
        os.symlink("chain%d" % (i + 1), "chain%d" % i)
    os.symlink("file", "chain19")


@case
def opens(say):
    for target in TARGETS:
        for combination in COMBINATIONS:
            here = os.getcwd()
            os.mkdir("o")
            os.chdir("o")
            set_up()
            flags = 0
            for word in combination.split():
                flags |= FLAGS[word]
            say("open %.20s %s" % (target, combination),
                try_open(target, flags), look(*sorted(
                    n for n in ("file", "new", "absent"))))
            os.chdir(here)
            os.chmod("o/locked", 0o755)
            shutil.rmtree("o")
            attempt(os.unlink, OUT + "/outside")


@case
def paths_that_are_none(say):
    for size in (4094, 4095, 4096, 5000):
        say("long %d" % size, attempt(os.mkdir, "x/" * (size // 2)))
    say("null", attempt(call, "mkdirat", AT_FDCWD, 0, 0o755))
    say("wild", attempt(call, "mkdirat", AT_FDCWD, 4096, 0o755))
    say("bad dir", attempt(call, "mkdirat", 99, "x", 0o755))
    say("bad dir, absolute", attempt(call, "mkdirat", 99,
                                     os.getcwd() + "/abs", 0o755))
    fd = os.open("plain", os.O_CREAT | os.O_RDWR)
    say("file as dir", attempt(call, "mkdirat", fd, "x", 0o755))
    say("made", look("abs", "plain"))


@case
def paths_longer_than_the_kernel_can_name(say):
    """The longest path of a call, below a directory whose own is long."""
    deep = "/".join(["d" * 127] * 31)
    os.makedirs(deep)
    name = deep + "/" + "n" * (4095 - len(deep) - 1)
    say("open", try_open(name, os.O_CREAT | os.O_RDWR))
    say("again", try_open(name, os.O_RDWR))
    say("truncate", attempt(os.truncate, name, 5), os.stat(name).st_size)
    say("link", attempt(os.link, name, "short"))
    say("rename", attempt(os.rename, name, name[:-1]))
    say("rename back", attempt(os.rename, name[:-1], name))
    top = os.open(".", os.O_DIRECTORY)
    os.chdir(deep)
    say("mkdir", attempt(os.mkdir, "m" * 200), attempt(os.rmdir, "m" * 200))
    for i in range(3):
        say("deeper", attempt(os.mkdir, "e" * 255))
        os.chdir("e" * 255)
    say("symlink", attempt(os.symlink, "x", "s"), attempt(os.unlink, "s"))
    os.fchdir(top)
    say("unlink", attempt(os.unlink, name))
    shutil.rmtree("d" * 127)


@case
def path_at_the_end_of_a_page(say):
    area = mmap.mmap(-1, 8192)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc.mprotect(ctypes.c_void_p(base + 4096), 4096, 0)
    name = b"edge\0"
    area[4096 - len(name):4096] = name
    at = base + 4096 - len(name)
    say("edge", attempt(call, "mkdirat", AT_FDCWD, at, 0o755))
    area[4095:4096] = b"x"
    say("over", attempt(call, "mkdirat", AT_FDCWD, at, 0o755))
    say("made", look("edge"))


@case
def making_and_removing(say):
    set_up()
    for target in TARGETS:
        say("mkdir %.20s" % target, attempt(os.mkdir, target, 0o700),
            look("new", "absent"))
        say("rmdir %.20s" % target, attempt(os.rmdir, target))
        say("mkfifo %.20s" % target, attempt(os.mkfifo, target, 0o640),
            look("new"))
        say("unlink %.20s" % target, attempt(os.unlink, target),
            look("new", "file"))
        say("mknod %.20s" % target, attempt(
            os.mknod, target, stat.S_IFREG | 0o777), look("new", "file"))
        say("symlink %.20s" % target, attempt(os.symlink, "to", target),
            look("new"))
        say("unlink %.20s" % target, attempt(os.unlink, target))
    say("symlink to nothing", attempt(os.symlink, "", "s"))
    say("symlink long", attempt(os.symlink, "x" * 4095, "s"))
    say("symlink longer", attempt(os.symlink, "x" * 4096, "s2"))
    say("setuid", attempt(os.mkdir, "set", 0o7777), look("set"))
    say("mknod dir", attempt(os.mknod, "n", stat.S_IFDIR | 0o700))
    say("mknod sock", attempt(os.mknod, "n", stat.S_IFSOCK | 0o700),
        look("n"))
    for target in ("device", "n", "missing/x", "nowrite/x", "to_new", "dir/"):
        for kind in (stat.S_IFCHR, stat.S_IFBLK):
            say("mknod %o %s" % (kind, target), attempt(
                os.mknod, target, kind | 0o600, os.makedev(1, 3)),
                look("device"))
    for target in ("whiteout", "n", "missing/x"):
        say("mknod 0 %s" % target, attempt(
            os.mknod, target, stat.S_IFCHR | 0o644, 0), look("whiteout"))
    say("unlinkat", attempt(call, "unlinkat", AT_FDCWD, "n", 0x999))
    say("not empty", attempt(os.rmdir, "deep"))


@case
def renames(say):
    for flags in (0, 1, 2, 3, 8):
        for old in ("file", "dir", "to_file", "to_dir", "missing", "deep",
                    "dir/", "file/", ".", "dir/in", "locked/x", "nowrite/x"):
            for new in ("new", "file", "dir", "dir/x", "to_file", "deep/a",
                        "new/", "dir/", "..", "missing/x", "file/x",
                        "nowrite/x", OUT + "/new"):
                os.mkdir("o")
                os.chdir("o")
                set_up()
                say("rename %s %s %d" % (old, new.replace(OUT, "OUT"), flags),
                    attempt(rename2, old, new, flags),
                    look(*sorted({"file", "dir", "new", "to_file"})))
                os.chdir("..")
                os.chmod("o/locked", 0o755)
                shutil.rmtree("o")


@case
def links(say):
    set_up()
    touch(OUT + "/far")
    for old in ("file", "dir", "to_file", "to_new", "missing", "file/", "",
                OUT + "/far", "/etc/passwd", "dir/in", "nowrite/x"):
        for flags in (0, AT_SYMLINK_FOLLOW):
            for new in ("new", "file", "dir/new", "missing/x", "new/",
                        "nowrite/y", OUT + "/l"):
                say("link %s %s %d" % (old.replace(OUT, "OUT"),
                                       new.replace(OUT, "OUT"), flags),
                    attempt(call, "linkat", AT_FDCWD, old, AT_FDCWD, new,
                            flags), look("new"))
                attempt(os.unlink, new)
                if not os.path.lexists("file"):
                    touch("file")


@case
def temporary_files(say):
    for target in (".", "dir", "missing", "file", "dir/", "to_dir", "/"):
        attempt(set_up)
        say("tmpfile " + target, try_open(target, os.O_TMPFILE | os.O_RDWR))
        say("tmpfile read " + target, try_open(target, os.O_TMPFILE))
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, b"abc")
    say("linkat magic", attempt(call, "linkat", AT_FDCWD,
                                "/proc/self/fd/%d" % fd, AT_FDCWD, "made",
                                AT_SYMLINK_FOLLOW), look("made"))
    say("linkat empty", attempt(call, "linkat", fd, "", AT_FDCWD, "made2",
                                AT_EMPTY_PATH), look("made2"))
    say("again", attempt(call, "linkat", fd, "", AT_FDCWD, "made2",
                         AT_EMPTY_PATH))
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_EXCL)
    say("exclusive", attempt(call, "linkat", AT_FDCWD,
                             "/proc/self/fd/%d" % fd, AT_FDCWD, "made3",
                             AT_SYMLINK_FOLLOW))


@case
def truncates(say):
    set_up()
    for target in ("file", "to_file", "to_new", "dir", "missing", "dir/..",
                   "file/", "unwritable", "locked/x", ""):
        for size in (0, 2, 100, -1):
            say("truncate %s %d" % (target, size), attempt(
                call, "truncate", target, size), look("file"))
    fd = os.open("file", os.O_RDWR)
    os.ftruncate(fd, 7)
    say("ftruncate", look("file"))
    say("by descriptor", attempt(call, "truncate", "/proc/self/fd/%d" % fd, 3),
        look("file"))


@case
def openat2_restricted(say):
    attempt(set_up)
    os.symlink("/etc/hostname", "absolute")
    os.symlink("../" + os.path.basename(os.getcwd()) + "/file", "above")
    here = os.open(".", os.O_RDONLY)
    create = os.O_CREAT | os.O_WRONLY
    for resolve in (0, NO_XDEV, NO_MAGIC, NO_SYM, BENEATH, IN_ROOT,
                    NO_SYM | BENEATH):
        for target in ("file", "new", "to_file", "absolute", "above",
                       "/file", "../x", "dir/new", "to_dir/new2", "missing/x",
                       "dir/../file", "dir"):
            for flags in (os.O_WRONLY, create, create | os.O_EXCL,
                          os.O_RDWR | os.O_TRUNC):
                mode = 0o640 if flags & os.O_CREAT else 0
                say("openat2 %s %d %d" % (target, resolve, flags), flags_of(
                    attempt(openat2, target, flags, mode, resolve, here)),
                    look("new", "dir/new", "dir/new2"))
                for made in ("new", "dir/new", "dir/new2"):
                    attempt(os.unlink, made)
    say("mode", attempt(openat2, "file", os.O_WRONLY, 0o640))
    say("unknown flag", attempt(openat2, "file", os.O_WRONLY | 1 << 40))
    say("short", attempt(openat2, "file", os.O_WRONLY, size=16))
    say("zero tail", flags_of(attempt(openat2, "file", os.O_WRONLY, size=64)))
    say("tail", attempt(openat2, "file", os.O_WRONLY, size=32,
                        tail=b"\1" * 8))
    say("huge", attempt(openat2, "file", os.O_WRONLY, size=5000))
    say("tmpfile", flags_of(attempt(
        openat2, ".", os.O_TMPFILE | os.O_RDWR, 0o600, BENEATH, here)))
    say("read", flags_of(attempt(openat2, "file", os.O_RDONLY)))


@case
def sockets(say):
    attempt(set_up)
    for target in ("sock", "dir/sock", "file", "missing/s", "new/", "to_new",
                   "dir", os.getcwd() + "/absolute"):
        s = socket.socket(socket.AF_UNIX)
        say("bind " + os.path.basename(target), attempt(s.bind, target),
            look("sock", "dir/sock", "absolute"))
        say("listen", attempt(s.listen, 1))
        c = socket.socket(socket.AF_UNIX)
        say("connect", attempt(c.connect, target))
        say("twice", attempt(s.bind, "second"))
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    say("abstract", attempt(s.bind, "\0name"), s.getsockname())
    s = socket.socket(socket.AF_UNIX)
    say("auto", attempt(s.bind, ""), len(s.getsockname()))
    s = socket.socket(socket.AF_INET)
    say("inet", attempt(s.bind, ("127.0.0.1", 0)))


@case
def own_descriptors(say):
    touch("file")
    fd = os.open("file", os.O_RDONLY)
    name = "/proc/self/fd/%d" % fd
    say("reopen", try_open(name, os.O_RDWR))
    say("reopen create", try_open(name, os.O_WRONLY | os.O_CREAT))
    say("reopen excl", try_open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    say("reopen nofollow", try_open(name, os.O_WRONLY | os.O_NOFOLLOW))
    say("thread-self", try_open("/proc/thread-self/fd/%d" % fd, os.O_WRONLY))
    say("by pid", try_open("/proc/%d/fd/%d" % (os.getpid(), fd), os.O_WRONLY))
    say("dev/fd", try_open("/dev/fd/%d" % fd, os.O_WRONLY | os.O_APPEND))
    os.unlink("file")
    say("unlinked", try_open(name, os.O_RDWR))
    r, w = os.pipe()
    say("pipe", try_open("/proc/self/fd/%d" % w, os.O_WRONLY))
    m = os.memfd_create("m")
    say("memfd", try_open("/proc/self/fd/%d" % m, os.O_RDWR))
    d = os.open(".", os.O_RDONLY)
    say("below a directory", try_open("/proc/self/fd/%d/made" % d,
                                      os.O_CREAT | os.O_WRONLY), look("made"))
    say("below cwd", try_open("/proc/self/cwd/made2",
                              os.O_CREAT | os.O_WRONLY), look("made2"))
    say("below root", try_open("/proc/self/root" + os.getcwd() + "/made3",
                               os.O_CREAT | os.O_WRONLY), look("made3"))
    say("missing", try_open("/proc/self/fd/99", os.O_WRONLY))
    say("comm", try_open("/proc/self/comm", os.O_WRONLY))
    say("comm of task", try_open("/proc/self/task/%d/comm" % os.getpid(),
                                 os.O_WRONLY))
    say("other", try_open("/proc/1/comm", os.O_WRONLY))
    say("null", try_open("/dev/null", os.O_WRONLY | os.O_CREAT))
    os.dup2(r, 0)
    saved = os.dup(1)
    out = os.open("stdout", os.O_CREAT | os.O_WRONLY)
    os.dup2(out, 1)
    result = try_open("/dev/stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(saved, 1)
    say("dev/stdout", result, look("stdout"))
    say("dev/stdin", try_open("/dev/stdin", os.O_RDWR))
    for i in (r, w, m, d, out):
        os.close(i)
    touch("lowest")
    low = os.open("lowest", os.O_RDWR)
    os.close(low)
    say("lowest", os.open("lowest", os.O_RDWR) == low)


@case
def umasks(say):
    for mask in (0, 0o77, 0o22, 0o777):
        os.umask(mask)
        os.mkdir("d%o" % mask, 0o777)
        os.close(os.open("f%o" % mask, os.O_CREAT | os.O_WRONLY, 0o666))
        say("umask %o" % mask, look("d%o" % mask, "f%o" % mask))
        pid = os.fork()
        if pid == 0:
            os.umask(0o50)
            os.mkdir("c%o" % mask, 0o777)
            os._exit(0)
        os.waitpid(pid, 0)
        os.mkdir("e%o" % mask, 0o777)
        say("child", look("c%o" % mask, "e%o" % mask))
    os.umask(0o22)


@case
def working_directories(say):
    os.makedirs("a/b")
    for where in ("a", "b", "..", "..", "a/b"):
        os.chdir(where)
        attempt(os.mkdir, "here")
    os.chdir("../..")
    fd = os.open("a", os.O_RDONLY)
    os.fchdir(fd)
    os.mkdir("by_fd")
    os.chdir("..")
    say("made", look("here", "a/here", "a/b/here", "a/by_fd"))
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    say("in a removed directory", attempt(os.mkdir, "x"),
        try_open("y", os.O_CREAT | os.O_WRONLY), attempt(os.mkdir, "../up"))
    os.chdir(os.path.join(ROOT, "working_directories"))
    os.chdir("a")
    os.rename("../a", "../moved")
    os.mkdir("after")
    say("moved", look("../moved/after", "../a"))

    def other():
        os.chdir("b")
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    os.mkdir("of_thread")
    say("thread", look("../b/of_thread"))


@case
def modes_and_groups(say):
    os.mkdir("set")
    os.chmod("set", 0o2775)
    os.mkdir("set/d")
    touch("set/f")
    say("setgid", look("set/d", "set/f"))
    say("create modes", try_open("m0", os.O_CREAT | os.O_WRONLY, 0),
        try_open("m0", os.O_WRONLY), try_open("m7", os.O_CREAT | os.O_RDWR,
                                             0o6755), look("m0", "m7"))


@case
def descriptors_have_full_power(say):
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, 8192)
    with mmap.mmap(fd, 8192) as m:
        m[0:4] = b"mmap"
    say("fallocate", attempt(os.posix_fallocate, fd, 0, 10000), look("f"))
    say("fchmod", attempt(os.fchmod, fd, 0o600), look("f"))
    say("xattr", attempt(os.setxattr, fd, "user.x", b"1"))
    say("lock", attempt(fcntl.flock, fd, fcntl.LOCK_EX),
        attempt(fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB))
    say("read", os.pread(fd, 4, 0))
    say("direct", try_open("g", os.O_CREAT | os.O_WRONLY | os.O_DIRECT))


@case
def terminals(say):
    pid, master = pty.fork()
    if pid == 0:
        fd = attempt(os.open, "/dev/tty", os.O_RDWR)
        os.write(1, b"tty " + (b"ok" if isinstance(fd, int) else
                               fd.encode()))
        os._exit(0)
    said = b""
    while True:
        try:
            more = os.read(master, 100)
        except OSError:
            break
        if not more:
            break
        said += more
    os.waitpid(pid, 0)
    say("forkpty", said)
    master, slave = os.openpty()
    name = os.ttyname(slave)
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fd = os.open(name, os.O_RDWR)
        os.write(w, b"%d" % (os.tcgetpgrp(fd) == os.getpid()))
        os._exit(0)
    os.waitpid(pid, 0)
    say("setsid + open", os.read(r, 10))


@case
def pipes_with_names(say):
    os.mkfifo("p")
    say("nobody reads", try_open("p", os.O_WRONLY | os.O_NONBLOCK))
    pid = os.fork()
    if pid == 0:
        fd = os.open("p", os.O_RDONLY)
        os.read(fd, 10)
        os._exit(7)
    fd = os.open("p", os.O_WRONLY)
    say("flags", "%o" % fcntl.fcntl(fd, fcntl.F_GETFL))
    os.write(fd, b"x")
    say("reader", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os.close(fd)
    say("both", try_open("p", os.O_RDWR))


@case
def signals_end_a_wait(say):
    os.mkfifo("p")
    pid = os.fork()
    if pid == 0:
        os.open("p", os.O_WRONLY)
        os._exit(1)
    signal.sigtimedwait([signal.SIGUSR1], 0.1)
    os.mkdir("meanwhile")
    os.kill(pid, signal.SIGTERM)
    say("killed", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    say("made", look("meanwhile"))


@case
def names_of_all_kinds(say):
    for name in (b"\xff\xfe", b"new\nline", b"n" * 255, b"n" * 256,
                 b".env ", b"env", b".envrc", b"x.keys", b"x.key ",
                 b".env.example", "\u00e9".encode(), b"e\xcc\x81", b"~", b"*",
                 b".gitignore", b"git/hooks/x"):
        attempt(os.mkdir, b"git")
        attempt(os.mkdir, b"git/hooks")
        fd = attempt(os.open, name, os.O_CREAT | os.O_WRONLY)
        say("name %r" % name[:20], fd if isinstance(fd, str) else "ok")
        if isinstance(fd, int):
            os.close(fd)
    say("list", sorted(os.listdir(b".")))


@case
def outside_of_the_root(say):
    os.chdir(OUT)
    say("mkdir", attempt(os.mkdir, "d"), try_open("d/.env", os.O_CREAT | 1))
    say("rename", attempt(os.rename, "d/.env", ".env"), look(".env"))
    os.symlink(ROOT + "/outside_of_the_root", "in")
    say("through a link", try_open("in/plain", os.O_CREAT | os.O_WRONLY),
        look("in/plain"))
    os.symlink("in/plain2", "to_plain")
    say("dangling link in", try_open("to_plain", os.O_CREAT | os.O_WRONLY),
        look("in/plain2"))
    say("etc", try_open("/etc/passwd", os.O_WRONLY),
        try_open("/etc/none", os.O_CREAT | os.O_WRONLY),
        attempt(os.mkdir, "/usr/x"))


def main():
    for fn in CASES:
        os.chdir(ROOT)
        os.mkdir(fn.__name__)
        os.chdir(fn.__name__)

        def say(what, *results, name=fn.__name__):
            line = "%s, %s: %s" % (name, what, " ".join(map(str, results)))
            print(line.replace(ROOT, "ROOT").replace(OUT, "OUT"))
        fn(say)


if __name__ == "__main__":
    main()
