"""A stockade-control as stockaded starts it: the channel on descriptor 3, the
configuration's directory on 4. The test is the supervisor, and its clients.

    box = Box(conf='limit connections-uid 2\n')
    box.open()                        # rows, probe_done, control_open
    client = box.client(uid=1000)     # connected, identified, hello said
    client.call("ping")
"""

import array
import fcntl
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time

import msgpack

import messages

BUILD = os.environ.get("STOCKADE_BUILD", "build")
CONTROL = os.path.join(BUILD, "libexec", "stockade-control")
# A leak check traces the process, which non-dumpable ones cannot be; it would
# wait for ever at the end of a sanitizer build.
ENV = {"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "detect_leaks=0"}
ROWS = [value for _, value in messages.closed_set("PROBE_ROWS")]


def can_run():
    """Why not, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists(CONTROL):
        return "no " + CONTROL
    try:
        import pwd
        pwd.getpwnam("stockade-control")
    except KeyError:
        return "no user stockade-control"
    return None


class Error(Exception):
    """An error answer."""

    def __init__(self, error):
        super().__init__("%(code)d %(name)s: %(message)s" % error)
        self.code, self.name = error["code"], error["name"]
        self.message = error["message"]
        self.detail = error.get("detail", {})


class Gone(Exception):
    """The connection was closed by the service."""


class Client:
    """One connection. Events that nobody waited for are kept in order."""

    def __init__(self, sock, uid, number):
        self.sock, self.uid, self.number = sock, uid, number
        self.unpacker = msgpack.Unpacker(raw=False, max_buffer_size=16 << 20)
        self.events, self.answers = [], {}
        self.next_id = 1

    def send_raw(self, data, fds=()):
        anc = []
        if fds:
            anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                    array.array("i", list(fds)))]
        self.sock.sendmsg([data], anc)

    def send(self, method, fds=(), id=None, **params):
        if id is None:
            id = self.next_id
            self.next_id += 1
        self.send_raw(msgpack.packb([0, id, method, [params]],
                                    use_bin_type=True), fds)
        return id

    def _read(self, timeout):
        self.sock.settimeout(timeout)
        try:
            data = self.sock.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Gone()
        self.unpacker.feed(data)
        for message in self.unpacker:
            if message[0] == 1:
                self.answers[message[1]] = message[2:]
            else:
                assert message[0] == 2 and message[1] == "event", message
                self.events.append(message[2][0])

    def answer(self, id, timeout=10.0):
        end = time.monotonic() + timeout
        while id not in self.answers:
            self._read(max(0.01, end - time.monotonic()))
        error, result = self.answers.pop(id)
        if error is not None:
            raise Error(error)
        return result

    def call(self, method, fds=(), **params):
        return self.answer(self.send(method, fds, **params))

    def refused(self, method, fds=(), **params):
        """The error of a call that must fail."""
        try:
            result = self.call(method, fds, **params)
        except Error as error:
            return error
        raise AssertionError("%s was answered %r" % (method, result))

    def event(self, type=None, timeout=10.0, **fields):
        """The next event of this type with these fields."""
        def fits(ev):
            return (type is None or ev["type"] == type) and all(
                ev.get(k) == v for k, v in fields.items())
        end = time.monotonic() + timeout
        while True:
            for i, ev in enumerate(self.events):
                if fits(ev):
                    return self.events.pop(i)
            self._read(max(0.01, end - time.monotonic()))

    def ended(self, timeout=5.0):
        """True when the service closes the connection within the time."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                self._read(max(0.01, end - time.monotonic()))
            except Gone:
                return True
            except socket.timeout:
                return False
        return False

    def close(self):
        self.sock.close()


class Box:
    def __init__(self, conf=None, args=(), program=CONTROL, ready=True,
                 mode=0o644, nofile=None):
        self.dir = tempfile.mkdtemp(prefix="stockade-controlbox-")
        os.chmod(self.dir, 0o711)
        self.conf_dir = os.path.join(self.dir, "conf")
        os.mkdir(self.conf_dir)
        os.chmod(self.conf_dir, 0o755)
        self.clients, self.last_client = [], 0
        self.log_path = os.path.join(self.dir, "log")
        if conf is not None:
            self.write_conf(conf, mode=mode)
        ours, theirs = messages.pair()
        conf_fd = os.open(self.conf_dir, os.O_RDONLY | os.O_DIRECTORY)

        def wire():
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)
                    for fd in (theirs.fileno(), conf_fd)]
            os.dup2(high[0], 3, inheritable=True)
            os.dup2(high[1], 4, inheritable=True)
            if nofile:
                resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))

        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, "-f", "stockade.conf", "-m", *args], preexec_fn=wire,
                close_fds=False, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=ENV)
        theirs.close()
        os.close(conf_fd)
        self.channel = messages.Channel(ours, "supervisor", "control")
        self.path = os.path.join(self.dir, "sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(64)
        if ready:
            self.service = self.channel.expect("conf_service")
            self.channel.expect("ready")

    def write_conf(self, text, name="stockade.conf", mode=0o644):
        path = os.path.join(self.conf_dir, name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path + ".new", mode)
        os.rename(path + ".new", path)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_log(self, text, timeout=5.0):
        end = time.monotonic() + timeout
        while text not in self.log():
            assert time.monotonic() < end, (text, self.log())
            time.sleep(0.01)

    def probe(self, false=(), tools=3, error=""):
        for i, name in enumerate(ROWS):
            self.channel.send("probe_row", row=i, available=int(name not in false),
                              detail="tried " + name)
        self.channel.send("probe_done", tools=tools, error=error)

    def open(self, generation=1, **probe):
        self.probe(**probe)
        self.channel.send("control_open", [self.listener.fileno()],
                          generation=generation)

    def connect(self, uid=1000, operator=False, accept=True):
        """Connected and answered for by the supervisor; no hello."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(self.path)
        ask = self.channel.expect("client_ask")
        for fd in ask.fds:
            os.close(fd)
        number = 0
        if accept:
            self.last_client += 1
            number = self.last_client
        self.channel.send("client_answer", conn=ask.conn, client=number,
                          uid=uid, is_operator=int(operator))
        client = Client(sock, uid, number)
        self.clients.append(client)
        return client

    def client(self, uid=1000, operator=False):
        client = self.connect(uid, operator)
        client.hello = client.call("hello", protocol=1, client="test")
        return client

    def alive(self):
        return self.process.poll() is None

    def status_field(self, name):
        with open("/proc/%d/status" % self.process.pid) as f:
            for line in f:
                if line.startswith(name + ":"):
                    return line.partition(":")[2].strip()
        return None

    def close(self):
        for client in self.clients:
            client.close()
        self.channel.close()
        self.listener.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir)
        return self.process.returncode
