"""The real stockaded, started with a directory of stub daemons, so that the
test itself is every daemon: a stub hands its channel to the test and waits.

    with Box() as box:
        box.open()                       # the whole start
        box.control.send("client_ask", ...)
        box.next("stockade-proxyd")      # the next process of that name
"""

import array
import grp
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from messages import Channel, closed_set, memfd

BUILD = os.environ.get("STOCKADE_BUILD") or os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__)))), "build")
STOCKADED = os.path.join(BUILD, "sbin", "stockaded")
CLIENT_GROUP, ADMIN_GROUP = "stockade", "stockade-admin"
NAMES = {"stockade-control": "control", "stockade-launcherd": "launcherd",
         "stockade-proxyd": "proxyd", "stockade-resolver": "resolver"}
ROWS = len(closed_set("PROBE_ROWS"))

# Hands descriptor 3 (and 4 if there is one) to the test, lets go of them, and
# ends when the test says so.
STUB = """#!%s -ISE
import array, json, os, socket, sys
opened = sorted(int(n) for n in os.listdir("/proc/self/fd"))
fds = [3]
try:
    os.fstat(4)
    fds.append(4)
except OSError:
    pass
if not os.path.exists(%r):
    sys.exit(9)
hub = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
hub.connect(%r)
about = {"name": os.path.basename(sys.argv[0]), "pid": os.getpid(),
         "ppid": os.getppid(), "argv": sys.argv, "env": dict(os.environ),
         "open": opened}
hub.sendmsg([json.dumps(about).encode() + b"\\n"], [(socket.SOL_SOCKET,
            socket.SCM_RIGHTS, array.array("i", fds))])
for fd in fds:
    os.close(fd)
word = hub.recv(16)
os._exit(int(word) if word else 0)
"""


def missing():
    if os.geteuid() != 0:
        return "not root"
    if not os.access(STOCKADED, os.X_OK):
        return "not built: " + STOCKADED
    for name in ("stockade-control",):
        try:
            pwd.getpwnam(name)
        except KeyError:
            return "no user " + name
    for name in (CLIENT_GROUP, ADMIN_GROUP):
        try:
            grp.getgrnam(name)
        except KeyError:
            return "no group " + name
    return None


class Daemon(Channel):
    """The test's end of a stub: its channel and its process."""

    def __init__(self, about, hub, fds):
        kind = NAMES[about["name"]]
        super().__init__(socket.socket(fileno=fds[0]), kind, "supervisor")
        self.about, self.hub, self.extra = about, hub, fds[1:]
        self.pid = about["pid"]

    def alive(self):
        try:
            with open("/proc/%d/stat" % self.pid, encoding="ascii") as f:
                return f.read().split(") ")[1][0] not in "ZX"
        except OSError:
            return False

    def exit(self, status):
        self.hub.sendall(b"%d" % status)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def close(self):
        super().close()
        self.hub.close()
        for fd in self.extra:
            os.close(fd)
        self.extra = []


class Box:
    def __init__(self, args=(), conf=None, env=None):
        self.dir = tempfile.mkdtemp(prefix="stockade-box-")
        os.chmod(self.dir, 0o755)
        self.libexec = os.path.join(self.dir, "libexec")
        self.runtime = os.path.join(self.dir, "run")
        self.socket = os.path.join(self.runtime, "control.sock")
        self.conf = os.path.join(self.dir, "test.conf")
        self.log_path = os.path.join(self.dir, "log")
        self.args, self.env = list(args), dict(env or {})
        self.values = dict(sandbox=1, socket_path=self.socket,
                           runtime_dir=self.runtime,
                           state_dir=os.path.join(self.dir, "state"),
                           client_group=CLIENT_GROUP, admin_group=ADMIN_GROUP,
                           log_level=7, allow_userns=0, tunnels_session=16,
                           tunnels_all=64, tunnel_idle_s=60, sessions_all=4)
        self.values.update(conf or {})
        self.process = None
        self.daemons = []
        self.waiting = []
        self.last = {}
        os.mkdir(self.libexec)
        with open(self.conf, "w", encoding="ascii") as f:
            f.write("# empty\n")
        hub = os.path.join(self.dir, "hub")
        self.hub = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.hub.bind(hub)
        self.hub.listen(64)
        for name in NAMES:
            path = os.path.join(self.libexec, name)
            with open(path, "w", encoding="ascii") as f:
                f.write(STUB % ("/usr/bin/python3", hub, hub))
            os.chmod(path, 0o755)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for daemon in self.daemons:
            daemon.close()
        self.hub.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        env = {"PATH": "/usr/bin:/bin", **self.env}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        self.process = subprocess.Popen(
            [STOCKADED, "-d", "-f", self.conf, "--libexec", self.libexec]
            + self.args, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=open(self.log_path, "ab"))

    def log(self):
        with open(self.log_path, encoding="utf-8") as f:
            return f.read()

    def wait_log(self, text, timeout=10.0, count=1):
        end = time.monotonic() + timeout
        while self.log().count(text) < count:
            if time.monotonic() > end:
                raise TimeoutError("no %r in:\n%s" % (text, self.log()))
            time.sleep(0.01)

    def wait(self, timeout=15.0):
        return self.process.wait(timeout)

    def _accept(self, timeout):
        self.hub.settimeout(timeout)
        conn, _ = self.hub.accept()
        conn.settimeout(5)
        data, anc, _, _ = conn.recvmsg(1 << 16, socket.CMSG_SPACE(8 * 4))
        fds = array.array("i")
        for _, _, body in anc:
            fds.frombytes(body)
        while not data.endswith(b"\n"):
            data += conn.recv(1 << 16)
        return Daemon(json.loads(data), conn, list(fds))

    def next(self, name, timeout=10.0):
        """The next process of that name that was not handed out yet."""
        end = time.monotonic() + timeout
        while True:
            for i, daemon in enumerate(self.waiting):
                if daemon.about["name"] == name:
                    self.last[name] = daemon
                    return self.waiting.pop(i)
            try:
                daemon = self._accept(max(0.01, end - time.monotonic()))
            except socket.timeout:
                raise TimeoutError("no %s\n%s" % (name, self.log()))
            self.daemons.append(daemon)
            self.waiting.append(daemon)

    # -------------------------------------------- the usual course

    def start_control(self):
        control = self.next("stockade-control")
        control.send("conf_service", **self.values)
        control.send("ready")
        return control

    def start_launcherd(self, probe=True):
        launcherd = self.next("stockade-launcherd")
        launcherd.send("ready")
        setup = launcherd.expect("launcher_setup")
        assert setup.probe == (1 if probe else 0)
        launcherd.setup = setup
        launcherd.extra += setup.fds
        if probe:
            for row in range(ROWS):
                launcherd.send("probe_row", row=row, available=1, detail="ok")
            launcherd.send("probe_done", tools=3)
        return launcherd

    def start_proxyd(self):
        proxyd = self.next("stockade-proxyd")
        proxyd.send("ready")
        setup = proxyd.expect("proxy_setup")
        for name in ("tunnels_session", "tunnels_all", "tunnel_idle_s"):
            assert getattr(setup, name) == self.values[name]
        return proxyd

    def start_resolver(self):
        resolver = self.next("stockade-resolver")
        resolver.send("ready")
        return resolver

    def open(self):
        self.control = self.start_control()
        self.launcherd = self.start_launcherd()
        self.proxyd = self.start_proxyd()
        self.resolver = self.start_resolver()
        msg = self.control.expect("control_open")
        self.listener = socket.socket(fileno=msg.fds[0])
        assert msg.generation == 1
        return self

    def restart_control(self):
        self.control = self.start_control()
        return self.control

    def connect(self, uid=0, gid=0, groups=()):
        """A client of that identity; (its socket, the accepted one)."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups(list(groups))
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sock.connect(self.socket)
                socket.send_fds(theirs, [b"x"], [sock.fileno()])
            except OSError as e:
                theirs.send(b"e%d" % e.errno)
            finally:
                os._exit(0)
        data, fds, _, _ = socket.recv_fds(ours, 16, 1)
        os.waitpid(pid, 0)
        ours.close()
        theirs.close()
        if not fds:
            raise OSError(int(data[1:]), "connect")
        self.listener.settimeout(5)
        accepted, _ = self.listener.accept()
        return socket.socket(fileno=fds[0]), accepted

    def client(self, **identity):
        """A client's number as the supervisor gives it."""
        sock, accepted = self.connect(**identity)
        self.conn = getattr(self, "conn", 0) + 1
        self.control.send("client_ask", fds=[accepted.fileno()],
                          conn=self.conn)
        accepted.close()
        self.keep = getattr(self, "keep", []) + [sock]
        return self.control.expect("client_answer", conn=self.conn)

    def lookup(self, client, uid, request):
        fd = memfd(b"question")
        self.control.send("lookup_ask", fds=[fd], request=request,
                          client=client, run_uid=uid)
        os.close(fd)
        start = self.launcherd.expect("lookup_start")
        os.close(start.fds[0])
        fd = memfd(b"result")
        self.launcherd.send("lookup_answer", fds=[fd], request=start.request,
                            run_uid=uid, run_gid=uid, user="u", home="/home/u",
                            shell="/bin/sh")
        os.close(fd)
        answer = self.control.expect("lookup_answer", request=request)
        assert answer.error == 0, answer
        os.close(answer.fds[0])
        return start

    def ask_launch(self, client, uid, request):
        fds = [memfd(b"plan"), memfd(b"egress")]
        self.control.send("launch_ask", fds=fds, request=request,
                          client=client, run_uid=uid,
                          plan_digest=b"\x07" * 32)
        for fd in fds:
            os.close(fd)

    def cgroup(self):
        """A directory that stands for a cgroup: its cgroup.kill is a file."""
        path = tempfile.mkdtemp(dir=self.dir, prefix="cgroup-")
        with open(os.path.join(path, "cgroup.kill"), "wb"):
            pass
        return path

    def made(self, sandbox):
        """launch_made with things that stand for cgroup and listeners."""
        path = self.cgroup()
        fds = [os.open(path, os.O_RDONLY), memfd(b"http"), memfd(b"socks")]
        self.launcherd.send("launch_made", fds=fds, sandbox=sandbox)
        for fd in fds:
            os.close(fd)
        return path

    def launch(self, client, uid, request=1):
        """A running sandbox; its number, and its cgroup."""
        self.lookup(client, uid, request)
        self.ask_launch(client, uid, request)
        start = self.launcherd.expect("launch_start")
        os.close(start.fds[0])
        path = self.made(start.sandbox)
        opened = self.proxyd.expect("egress_open", sandbox=start.sandbox)
        for fd in opened.fds:
            os.close(fd)
        self.launcherd.send("launch_answer", request=start.request,
                            sandbox=start.sandbox, pid=77, landlock_abi=6)
        answer = self.control.expect("launch_answer", request=request)
        assert answer.code == 0 and answer.sandbox == start.sandbox
        return start.sandbox, path


def killed(path):
    with open(os.path.join(path, "cgroup.kill"), "rb") as f:
        return f.read() == b"1"


if __name__ == "__main__":
    sys.exit("a module for tests")
