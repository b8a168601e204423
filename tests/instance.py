"""A private instance of the service and a client of it, for tests and
benchmarks that need the real thing.

    with Instance() as service:                 # root only
        with service.client() as c:             # as this process's uid
            c.launch("s1", service.workdir())
            status, out, err = c.run("s1", ["id", "-u"])

The instance has its own configuration, runtime and state directory below a
fresh directory and shares nothing with an installed one (SPEC Z11). The client
speaks MessagePack-RPC with python3-msgpack, an encoder of another author.
"""

import array
import collections
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import msgpack

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("STOCKADE_BUILD") or os.path.join(SOURCE, "build")
STOCKADED = os.path.join(BUILD, "sbin", "stockaded")
CTL = os.path.join(BUILD, "bin", "stockadectl")
RUN_USER = "stockade-run"
DAEMONS = ("stockade-control", "stockade-launcherd", "stockade-proxyd",
           "stockade-resolver")


def missing():
    """Why no instance can be started here, or None."""
    if os.geteuid() != 0:
        return "not root"
    if not os.access(STOCKADED, os.X_OK):
        return "not built: " + STOCKADED
    for name in ("stockade-control", "stockade-proxy", "stockade-resolve",
                 RUN_USER):
        try:
            pwd.getpwnam(name)
        except KeyError:
            return "no user " + name
    return None


class RpcError(Exception):
    def __init__(self, error):
        super().__init__("%s: %s" % (error.get("name"), error.get("message")))
        self.code = error.get("code")
        self.name = error.get("name")
        self.message = error.get("message")
        self.detail = error.get("detail") or {}


class Closed(Exception):
    """The service closed the connection."""


class Client:
    """One connection. Answers are matched by id; events are kept in order."""

    def __init__(self, path, hello=True):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(path)
        self.unpacker = msgpack.Unpacker(raw=False, max_buffer_size=1 << 26)
        self.answers = {}
        self.events = collections.deque()
        self.fds = []
        self.last = 0
        if hello:
            self.hello = self.call("hello", protocol=1, client="test 1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def start(self, method, fds=(), **params):
        """Sends a request and returns its id."""
        self.last += 1
        data = msgpack.packb([0, self.last, method, [params]],
                             use_bin_type=True)
        if fds:
            sent = self.sock.sendmsg([data], [(
                socket.SOL_SOCKET, socket.SCM_RIGHTS,
                array.array("i", list(fds)))])
            data = data[sent:]
        self.sock.sendall(data)
        return self.last

    def _read(self, timeout):
        self.sock.settimeout(timeout)
        data, anc, _, _ = self.sock.recvmsg(1 << 16, socket.CMSG_SPACE(16 * 4))
        for level, kind, body in anc:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(body[:len(body) - len(body) % fds.itemsize])
                self.fds.extend(fds)
        if not data:
            raise Closed()
        self.unpacker.feed(data)
        for message in self.unpacker:
            if message[0] == 1:
                self.answers[message[1]] = message[2:]
            elif message[0] == 2:
                self.events.append((message[1], message[2][0]))
            else:
                raise AssertionError("not an answer: %r" % (message,))

    def finish(self, ident, timeout=30.0):
        end = time.monotonic() + timeout
        while ident not in self.answers:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer to request %d" % ident)
            try:
                self._read(left)
            except socket.timeout:
                pass
        error, result = self.answers.pop(ident)
        if error is not None:
            raise RpcError(error)
        return result

    def call(self, method, fds=(), timeout=30.0, **params):
        return self.finish(self.start(method, fds, **params), timeout)

    def event(self, want, timeout=30.0):
        """The next event for which want(event) is true; those before it are
        dropped. `want` may be a type."""
        test = want if callable(want) else lambda e: e["type"] == want
        end = time.monotonic() + timeout
        while True:
            while self.events:
                name, event = self.events.popleft()
                if name == "event" and test(event):
                    return event
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("no event %s" % (want,))
            try:
                self._read(left)
            except socket.timeout:
                pass

    # ------------------------------------------------ what tests do often

    def spec(self, session, workdir, **more):
        spec = {"sessionId": session, "workspaceId": "tests",
                "bindMounts": [{"hostPath": workdir}],
                "guestWorkdir": workdir}
        if os.geteuid() == 0:
            spec["user"] = RUN_USER
        spec.update(more)
        return spec

    def launch(self, session, workdir, **more):
        return self.call("sandbox.launch", spec=self.spec(
            session, workdir, **more))["handle"]

    def run(self, session, argv, timeout=60.0, **more):
        """Runs a command to its end: (status, stdout, stderr)."""
        sub = self.call("events.subscribe", sessionId=session)["subscription"]
        try:
            exec_id = self.call("sandbox.exec", sessionId=session, argv=argv,
                                **more)["execId"]
            return self.collect(exec_id, timeout)
        finally:
            self.call("events.unsubscribe", subscription=sub)

    def collect(self, exec_id, timeout=60.0):
        out = {"stdout": b"", "stderr": b""}
        end = time.monotonic() + timeout
        while True:
            event = self.event(lambda e: e.get("execId") == exec_id,
                               end - time.monotonic())
            if event["type"] in out:
                out[event["type"]] += event["data"]
            elif event["type"] == "exit":
                return event["exitCode"], out["stdout"], out["stderr"]

    def violations(self, session):
        return [v for v in self.call("admin.violations",
                                     sessionId=session)["rows"]]


class Instance:
    """conf: more configuration lines. hosts: {name: address}: the service then
    lives in a network namespace of its own whose loopback has these (private)
    addresses, with an /etc/hosts that names them; `origin()` starts a server
    there, which stands for the world outside."""

    def __init__(self, conf="", log=None, hosts=None, libexec=None):
        self.conf_lines = conf
        self.log = log
        self.hosts = hosts
        self.libexec = libexec or os.path.join(BUILD, "libexec")
        self.process = None
        self.servers = []

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="stockade-test-")
        os.chmod(self.dir, 0o755)
        self.runtime = os.path.join(self.dir, "run")
        self.state = os.path.join(self.dir, "state")
        self.socket = os.path.join(self.runtime, "control.sock")
        self.conf = os.path.join(self.dir, "stockade.conf")
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write('runtime-dir "%s"\nstate-dir "%s"\nsocket "%s"\n'
                    'run-user "%s"\n%s\n' % (self.runtime, self.state,
                                             self.socket, RUN_USER,
                                             self.conf_lines))
        os.chmod(self.conf, 0o644)
        self.logfile = os.path.join(self.dir, "log")
        self.works = 0
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        env = {k: v for k, v in os.environ.items()
               if k not in ("NOTIFY_SOCKET", "JOURNAL_STREAM",
                            "CC_SERVER_SANDBOX")}
        argv = [STOCKADED, "-f", self.conf, "--libexec",
                self.libexec, "-d"]
        if self.hosts is not None:
            argv = self.own_network() + argv
        with open(self.logfile, "ab") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=env)
        self.wait_ready()

    def own_network(self):
        hosts = os.path.join(self.dir, "hosts")
        with open(hosts, "w", encoding="ascii") as f:
            f.write("127.0.0.1 localhost\n")
            for name, address in self.hosts.items():
                f.write("%s %s\n" % (address, name))
        script = "ip link set lo up && mount --bind %s /etc/hosts && " % hosts
        for address in sorted(set(self.hosts.values())):
            if not address.startswith("127."):
                script += "ip addr add %s/32 dev lo && " % address
        return ["unshare", "-n", "-m", "--propagation", "private", "sh", "-c",
                script + 'exec "$@"', "sh"]

    def origin(self, argv, ready):
        """Starts a server in the service's network namespace; `ready` is what
        it prints on a line of standard output when it listens."""
        server = subprocess.Popen(
            ["nsenter", "-t", str(self.process.pid), "-n", *argv],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.servers.append(server)
        line = server.stdout.readline().decode().strip()
        assert line == ready, line
        return server

    def wait_ready(self, timeout=30.0):
        # An emulated machine (tests/vm) is that much slower.
        end = time.monotonic() + timeout * int(
            os.environ.get("STOCKADE_SLOW", "1"))
        while True:
            if self.process.poll() is not None:
                raise AssertionError("stockaded ended with %d:\n%s" % (
                    self.process.returncode, self.read_log()))
            try:
                self.client().close()
                return
            except (OSError, Closed):
                if time.monotonic() > end:
                    raise AssertionError("stockaded is not ready:\n" +
                                         self.read_log())
            time.sleep(0.02)    # there is no event to wait for yet

    def stop(self, timeout=20.0):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        return self.process.returncode

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            for server in self.servers:
                server.kill()
                server.wait()
            if self.log:
                shutil.copyfile(self.logfile, self.log)
            shutil.rmtree(self.dir, ignore_errors=True)

    def read_log(self):
        with open(self.logfile, encoding="utf-8", errors="replace") as f:
            return f.read()

    def client(self, **more):
        return Client(self.socket, **more)

    def workdir(self, name=None):
        """A fresh directory that belongs to the run's user."""
        self.works += 1
        path = os.path.join(self.dir, name or "work%d" % self.works)
        os.mkdir(path)
        user = pwd.getpwnam(RUN_USER)
        os.chown(path, user.pw_uid, user.pw_gid)
        return path

    def children(self):
        """{program name: pid} of the daemons."""
        found = {}
        for pid in child_pids(self.process.pid):
            try:
                with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                    comm = f.read().strip()
                exe = os.path.basename(os.readlink("/proc/%d/exe" % pid))
            except OSError:
                continue
            found[exe or comm] = pid
        return found

    def ctl(self, *args, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("capture_output", True)
        return subprocess.run([CTL, "--socket", self.socket, *args],
                              check=False, timeout=more.pop("timeout", 120),
                              **more)


def child_pids(pid):
    children = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, encoding="ascii",
                      errors="replace") as f:
                rest = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(rest[1]) == pid:
            children.append(int(entry))
    return children


def comm(pid):
    try:
        with open("/proc/%d/comm" % pid, encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


def all_pids_below(pid):
    """But the look-up that waits for the next launch: it belongs to none."""
    found = []
    queue = [pid]
    while queue:
        for child in child_pids(queue.pop()):
            if comm(child) != "stockade-lookup":
                found.append(child)
            queue.append(child)
    return found
