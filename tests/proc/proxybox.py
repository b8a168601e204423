"""stockade-proxyd as the supervisor starts it, in a world of its own.

Three network namespaces: `host` runs proxyd, `net` is the internet (a veth
pair away, with addresses that are public elsewhere), `run` is a sandbox with
loopback only, in which the listeners are made. The test is the supervisor on
descriptor 3 and the resolver on the link; both speak by python3-msgpack.

    with World() as world, Proxy(world) as proxy:
        session = proxy.open(1, allow=[("ok.test", 0)])
        reply = session.http(b"CONNECT ok.test:443 HTTP/1.1\\r\\n\\r\\n")
"""

import ctypes
import os
import resource
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

import msgpack

import messages

BUILD = os.environ.get("STOCKADE_BUILD", "build")
PROXYD = os.path.join(os.path.abspath(BUILD), "libexec", "stockade-proxyd")
RESOLVER = os.path.join(os.path.abspath(BUILD), "libexec",
                        "stockade-resolver")
CONNECT = os.path.join(os.path.abspath(BUILD), "libexec", "stockade-connect")
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)

HOST4, NET4 = "10.77.0.1", "10.77.0.2"
PUBLIC4 = "93.184.216.34"
PUBLIC4B = "93.184.216.35"
PUBLIC6 = "2606:2800:220:1::1"
HOST_PUBLIC4 = "45.33.32.156"   # an address of the proxy's own host
PRIVATE4 = "10.99.0.5"

BASELINE_DENY = [
    "169.254.169.254", "metadata.google.internal", "*.sentry.io", "sentry.io",
    "metadata", "[fd00:ec2::254]",
]


def why_not():
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists(PROXYD):
        return "no " + PROXYD
    if subprocess.run(["ip", "-V"], capture_output=True).returncode != 0:
        return "no ip"
    return None


def setns(fd):
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Netns:
    """A network namespace held by a sleeping process."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        path = "/proc/%d/ns/net" % self.holder.pid
        own = os.readlink("/proc/self/ns/net")
        for _ in range(1000):
            if os.readlink(path) != own:
                break
            time.sleep(0.005)
        self.fd = os.open(path, os.O_RDONLY)

    def sh(self, *commands):
        for command in commands:
            subprocess.run(["nsenter", "-t", str(self.holder.pid), "-n"] +
                           command.split(), check=True)

    def __enter__(self):
        self.saved = os.open("/proc/self/ns/net", os.O_RDONLY)
        setns(self.fd)
        return self

    def __exit__(self, *exc):
        setns(self.saved)
        os.close(self.saved)

    def close(self):
        os.close(self.fd)
        self.holder.kill()
        self.holder.wait()


class World:
    def __init__(self):
        self.host, self.net, self.run = Netns(), Netns(), Netns()
        net = self.net.holder.pid
        self.host.sh(
            "ip link set lo up",
            "ip link add v0 type veth peer name v1 netns %d" % net,
            "ip link set v0 up", "ip addr add %s/24 dev v0" % HOST4,
            "ip -6 addr add 2001:db8:77::1/64 dev v0 nodad",
            "ip addr add %s/32 dev lo" % HOST_PUBLIC4)
        self.net.sh(
            "ip link set lo up", "ip link set v1 up",
            "ip addr add %s/24 dev v1" % NET4,
            "ip -6 addr add 2001:db8:77::2/64 dev v1 nodad",
            "ip addr add %s/32 dev lo" % PUBLIC4,
            "ip addr add %s/32 dev lo" % PUBLIC4B,
            "ip addr add %s/32 dev lo" % PRIVATE4,
            "ip -6 addr add %s/128 dev lo nodad" % PUBLIC6,
            "ip route add default via %s" % HOST4)
        self.host.sh("ip route add default via %s" % NET4,
                     "ip -6 route add default via 2001:db8:77::2")
        self.run.sh("ip link set lo up")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for ns in (self.host, self.net, self.run):
            ns.close()

    def listen(self, addr=PUBLIC4, port=0, backlog=128, ns=None):
        family = socket.AF_INET6 if ":" in addr else socket.AF_INET
        with ns or self.net:
            sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((addr, port))
        sock.listen(backlog)
        sock.settimeout(10)
        return sock


class Origin:
    """A listener in `net` whose every connection runs serve(conn)."""

    def __init__(self, world, serve, addr=PUBLIC4, port=80, ns=None):
        self.sock = world.listen(addr, port, ns=ns)
        self.sock.settimeout(None)
        self.serve = serve
        self.count = 0
        self.lock = threading.Lock()
        self.errors = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _waits(self, timeout):
        try:
            return bool(select.select([self.sock], [], [], timeout)[0])
        except (OSError, ValueError):   # closed
            return False

    @property
    def connections(self):
        """Those that were made, whether or not our thread has run since."""
        while True:
            with self.lock:
                if self.sock.fileno() < 0 or not self._waits(0):
                    return self.count
            time.sleep(0.001)

    def _accept(self):
        while True:
            if not self._waits(None):
                return
            with self.lock:
                try:
                    conn, _ = self.sock.accept()
                except OSError:
                    return
                self.count += 1
            conn.settimeout(20)
            threading.Thread(target=self._serve, args=(conn,),
                             daemon=True).start()

    def _serve(self, conn):
        try:
            with conn:
                self.serve(conn)
        except OSError as error:
            self.errors.append(error)

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def pack_lists(allow=(), deny=(), private=(), network=True, tunnels=1024):
    def rules(rows):
        out = []
        for row in rows:
            row = (row, 0) if isinstance(row, str) else row
            out.append([row[0], row[1], row[2] if len(row) > 2 else "spec"])
        return out
    return msgpack.packb([1, network, tunnels, rules(allow), rules(deny),
                          [list(p) for p in private]], use_bin_type=True)


def pack_addresses(addrs):
    out = b""
    for addr in addrs:
        if ":" in addr:
            out += b"\x06" + socket.inet_pton(socket.AF_INET6, addr)
        else:
            out += b"\x04" + socket.inet_pton(socket.AF_INET, addr) + bytes(12)
    return out


STATUS = {name: i for i, (name, _) in
          enumerate(messages.closed_set("RESOLVE_STATUSES"))}


class FakeResolver(threading.Thread):
    """The resolver's end of the link: answers from `names`, a name's value
    being a list of addresses, a status, or a function that gives either (or
    None: no answer)."""

    def __init__(self, sock):
        super().__init__(daemon=True)
        self.chan = messages.Channel(sock, "resolver", "proxyd")
        self.names = {}
        self.asked = []
        self.start()

    def run(self):
        while True:
            try:
                msg = self.chan.receive(3600)
            except (messages.Ended, OSError):
                return
            # The field `name` hides the name of the message.
            self.asked.append(msg.name)
            self.answer(msg, self.names.get(msg.name, "NOT_FOUND"))

    def answer(self, msg, value):
        if callable(value):
            value = value()
        if value is None:
            return
        if isinstance(value, str):
            self.chan.send("resolve_answer", request=msg.request,
                           status=STATUS[value], addresses=b"")
        else:
            self.chan.send("resolve_answer", request=msg.request, status=0,
                           addresses=pack_addresses(value))


class Session:
    def __init__(self, proxy, number, lists):
        self.proxy, self.number = proxy, number
        world = proxy.world
        self.http_sock = world.listen("127.0.0.1", ns=world.run, backlog=1024)
        self.socks_sock = world.listen("127.0.0.1", ns=world.run,
                                       backlog=1024)
        fd = messages.memfd(lists)
        proxy.chan.send("egress_open", fds=[self.http_sock.fileno(),
                                            self.socks_sock.fileno(), fd],
                        sandbox=number)
        os.close(fd)

    def connect(self, socks=False, timeout=10):
        with self.proxy.world.run:
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(timeout)
        sock.connect((self.socks_sock if socks else
                      self.http_sock).getsockname())
        return sock

    def http(self, data, timeout=10, half_close=False):
        """Sends data, reads to the end of file."""
        with self.connect(timeout=timeout) as sock:
            sock.sendall(data)
            if half_close:
                sock.shutdown(socket.SHUT_WR)
            return read_all(sock)

    def status(self, data, **kw):
        reply = self.http(data, **kw)
        return int(reply.split(b" ", 2)[1]) if reply else None

    def tunnel(self, host="ok.test", port=443, extra=b""):
        """A socket behind a CONNECT that was answered 200."""
        sock = self.connect()
        sock.sendall(b"CONNECT %s:%d HTTP/1.1\r\nHost: x\r\n\r\n%s" % (
            host.encode(), port, extra))
        head = read_head(sock)
        assert head == b"HTTP/1.1 200 Connection Established\r\n\r\n", head
        return sock

    def socks(self, host, port, atyp=3):
        """(reply code, socket)."""
        sock = self.connect(socks=True)
        if atyp == 3:
            dest = bytes([len(host)]) + host
        else:
            dest = socket.inet_pton(socket.AF_INET6 if atyp == 4 else
                                    socket.AF_INET, host)
        sock.sendall(b"\x05\x01\x00" + b"\x05\x01\x00" + bytes([atyp]) +
                     dest + port.to_bytes(2, "big"))
        assert read_exactly(sock, 2) == b"\x05\x00"
        return read_exactly(sock, 10)[1], sock

    def close(self):
        self.proxy.chan.send("egress_close", sandbox=self.number)
        self.http_sock.close()
        self.socks_sock.close()


def read_all(sock):
    out = b""
    while True:
        try:
            data = sock.recv(65536)
        except ConnectionResetError:
            return out
        if not data:
            return out
        out += data


def read_exactly(sock, n):
    out = b""
    while len(out) < n:
        data = sock.recv(n - len(out))
        if not data:
            raise EOFError(out)
        out += data
    return out


def read_head(sock):
    """Byte by byte up to the empty line, so nothing behind it is taken."""
    out = b""
    while not out.endswith(b"\r\n\r\n"):
        data = sock.recv(1)
        if not data:
            return out
        out += data
    return out


def read_reply(sock):
    """(status, head, body) of one answer framed by length or chunks."""
    head = read_head(sock)
    if not head:
        return None, b"", b""
    fields = head.lower()
    body = b""
    if b"\r\ncontent-length: " in fields:
        n = int(fields.split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
        body = read_exactly(sock, n)
    elif b"\r\ntransfer-encoding: chunked\r\n" in fields:
        while True:
            line = b""
            while not line.endswith(b"\r\n"):
                line += read_exactly(sock, 1)
            n = int(line, 16)
            body += read_exactly(sock, n)
            assert read_exactly(sock, 2) == b"\r\n"
            if n == 0:
                break
    return int(head.split(b" ", 2)[1]), head, body


def spawn(world, argv, channel, stderr=None, nofile=None):
    """A daemon with `channel` as descriptor 3, in the host's namespace."""
    def prepare():
        setns(world.host.fd)
        if nofile is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))
        os.dup2(channel.fileno(), 3, inheritable=True)
    if channel.fileno() == 3:
        os.set_inheritable(3, True)
    # A confined process cannot be searched for leaks: that traces it.
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:" +
               os.environ.get("ASAN_OPTIONS", ""))
    return subprocess.Popen(argv, preexec_fn=prepare, close_fds=False,
                            stderr=stderr, env=env)


class Proxy:
    def __init__(self, world, tunnels_session=1024, tunnels_all=16384,
                 tunnel_idle_s=3600, options=(), setup=True, link=True, log=None, nofile=None):
        self.world = world
        self.root = tempfile.mkdtemp(prefix="stockade-empty-")
        os.chmod(self.root, 0o755)
        ours, theirs = messages.pair()
        self.log = log or tempfile.TemporaryFile()
        self.process = spawn(world, [PROXYD, "-r", self.root, *options],
                             theirs, stderr=self.log, nofile=nofile)
        theirs.close()
        self.chan = messages.Channel(ours, "supervisor", "proxyd")
        self._ready()
        self.resolver = None
        if setup:
            self.chan.send("proxy_setup", tunnels_session=tunnels_session,
                           tunnels_all=tunnels_all,
                           tunnel_idle_s=tunnel_idle_s)
        if link:
            self.link()

    def _ready(self):
        try:
            self.chan.expect("ready")
        except messages.Ended:
            raise AssertionError("proxyd ended (%s): %s" % (
                self.process.wait(5), self.text())) from None

    def link(self):
        ours, theirs = messages.pair()
        self.chan.send("resolver_link", fds=[theirs.fileno()])
        theirs.close()
        names = self.resolver.names if self.resolver else {}
        self.resolver = FakeResolver(ours)
        self.resolver.names = names

    def open(self, number, names=None, deny=(), **lists):
        if self.resolver is not None:
            self.resolver.names.update(names or {})
        lists.setdefault("tunnels", 1024)
        return Session(self, number, pack_lists(
            deny=[(d, 0, "baseline") for d in BASELINE_DENY] + list(deny),
            **lists))

    def violation(self, **values):
        return self.chan.expect("violation", **values)

    def no_violation(self, seconds=0.3):
        try:
            msg = self.chan.expect("violation", timeout=seconds)
        except TimeoutError:
            return
        raise AssertionError(msg)

    def text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def close(self):
        self.chan.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            raise
        finally:
            os.rmdir(self.root)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        code = self.close()
        if exc[0] is None:
            text = self.text()
            assert code == 0, (code, text)
            assert "Sanitizer" not in text, text
