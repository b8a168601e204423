"""Peers of stockade-proxyd and stockade-resolver that break the message rules,
every case made from the message table. The supervisor is the parent: when it
breaks the rules the daemon ends. The resolver is not trusted: when it breaks
them, its link ends and proxyd goes on."""

import os
import re
import socket
import time

import pytest

import messages
import proxybox
from proxybox import PUBLIC4, FakeResolver, Origin, Proxy, World

pytestmark = pytest.mark.skipif(proxybox.why_not() is not None,
                                reason=str(proxybox.why_not()))


@pytest.fixture(scope="module")
def world():
    with World() as w:
        yield w


def null_fds(n):
    return [os.open("/dev/null", os.O_RDONLY) for _ in range(n)]


def send(sock, packet, count):
    fds = null_fds(count)
    try:
        messages.send_packet(sock, packet, fds)
    finally:
        for fd in fds:
            os.close(fd)


SUPERVISOR_ROWS = messages.hostile_packets("supervisor", "proxyd")
RESOLVER_ROWS = messages.hostile_packets("resolver", "proxyd")
PROXYD_ROWS = messages.hostile_packets("proxyd", "resolver")
TO_RESOLVER_ROWS = messages.hostile_packets("supervisor", "resolver")


def ended(proxy):
    """The daemon went by itself and said why."""
    proxy.process.wait(5)
    proxy.chan.close()
    os.rmdir(proxy.root)
    assert proxy.process.returncode == 0, proxy.process.returncode
    assert "PEER_RULES" in proxy.text() or "STOPPING" in proxy.text()
    assert "Sanitizer" not in proxy.text()


@pytest.mark.parametrize("row", SUPERVISOR_ROWS, ids=lambda row: row[0])
def test_a_supervisor_that_breaks_the_rules_is_left(world, row):
    _, packet, count = row
    proxy = Proxy(world, link=False)
    send(proxy.chan.sock, packet, count)
    ended(proxy)


@pytest.mark.parametrize("label", ["open before setup", "close before setup",
                                   "setup twice", "session twice"])
def test_messages_in_the_wrong_state_are_refused(world, label):
    proxy = Proxy(world, setup=False, link=False)
    if label == "open before setup":
        proxy.open(1)
    elif label == "close before setup":
        proxy.chan.send("egress_close", sandbox=1)
    else:
        proxy.chan.send("proxy_setup", tunnels_session=1, tunnels_all=1)
    if label == "setup twice":
        proxy.chan.send("proxy_setup", tunnels_session=1, tunnels_all=1)
    elif label == "session twice":
        proxy.open(1)
        proxy.open(1)
    ended(proxy)


def test_the_same_messages_in_order_are_accepted(world):
    """Twin of the two above."""
    with Proxy(world, setup=False, link=False) as proxy:
        proxy.chan.send("proxy_setup", tunnels_session=1, tunnels_all=1)
        proxy.open(1).close()
        proxy.open(2)
        assert not proxy.chan.ended(0.3)


def test_descriptors_that_are_no_listeners_open_nothing(world):
    with Proxy(world) as proxy:
        fds = null_fds(3)
        proxy.chan.send("egress_open", fds=fds, sandbox=1)
        a, b = socket.socketpair()
        proxy.chan.send("egress_open", sandbox=2, fds=[
            a.fileno(), b.fileno(), fds[0]])
        for fd in fds:
            os.close(fd)
        session = proxy.open(3, names={})
        assert session.status(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n") == 403
        assert b"egress session" in proxy.text().encode()


@pytest.mark.parametrize("row", RESOLVER_ROWS, ids=lambda row: row[0])
def test_a_resolver_that_breaks_the_rules_loses_its_link(world, proxy_module,
                                                         row):
    _, packet, count = row
    proxy, session, origin = proxy_module
    proxy.link()
    send(proxy.resolver.chan.sock, packet, count)
    assert hung_up(proxy.resolver.chan.sock)
    # And the daemon serves on with the next one.
    proxy.link()
    session.tunnel().close()


@pytest.fixture(scope="module")
def proxy_module(world):
    with Proxy(world) as proxy, Origin(world, lambda conn: conn.recv(1),
                                       port=443) as origin:
        session = proxy.open(1, allow=["ok.test", "*.w.test"],
                             names={"ok.test": [PUBLIC4]})
        yield proxy, session, origin


def hung_up(sock, timeout=5):
    """The far end is closed; the reader thread may take the end of file."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            sock.send(b"")
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("reply", [
    dict(request=99999, status=0, addresses=bytes(17)),
    dict(status=0, addresses=b""),
    dict(status=0, addresses=b"\x04" + bytes(15)),
    dict(status=0, addresses=b"\x05" + bytes(16)),
    dict(status=0, addresses=b"\x00" + bytes(16)),
    dict(status=1, addresses=b"\x04" + bytes(16)),
])
def test_a_lying_answer_ends_the_link_and_the_look_up_fails(
        world, proxy_module, reply):
    proxy, session, _ = proxy_module
    proxy.link()

    class Liar(FakeResolver):
        def answer(self, msg, value):
            values = dict(reply)
            values.setdefault("request", msg.request)
            self.chan.send("resolve_answer", **values)
    ours, theirs = messages.pair()
    proxy.chan.send("resolver_link", fds=[theirs.fileno()])
    theirs.close()
    proxy.resolver = Liar(ours)
    number = len(proxy.text())
    name = b"n%d.w.test" % number
    assert session.status(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % name) == 502
    assert hung_up(ours)
    proxy.link()
    proxy.resolver.names["ok.test"] = [PUBLIC4]


def test_an_answer_given_twice_ends_the_link(world, proxy_module):
    proxy, session, _ = proxy_module

    class Twice(FakeResolver):
        def answer(self, msg, value):
            for _ in range(2):
                self.chan.send("resolve_answer", request=msg.request,
                               status=0, addresses=b"\x04" + bytes(
                                   [93, 184, 216, 34]) + bytes(12))
    ours, theirs = messages.pair()
    proxy.chan.send("resolver_link", fds=[theirs.fileno()])
    theirs.close()
    proxy.resolver = Twice(ours)
    session.tunnel("twice.w.test").close()
    assert hung_up(ours)
    proxy.link()
    proxy.resolver.names["ok.test"] = [PUBLIC4]


def test_a_resolver_that_does_not_answer_cannot_hold_sessions(world,
                                                              proxy_module):
    proxy, session, _ = proxy_module
    proxy.link()
    proxy.resolver.names["known.w.test"] = [PUBLIC4]
    session.tunnel("known.w.test").close()
    held = []
    for i in range(80):
        proxy.resolver.names["mute%d.w.test" % i] = lambda: None
        sock = session.connect()
        sock.sendall(b"CONNECT mute%d.w.test:443 HTTP/1.1\r\n\r\n" % i)
        held.append(sock)
    session.tunnel("known.w.test").close()
    # More than 64 of one session do not wait.
    assert held[-1].recv(12) == b"HTTP/1.1 502"


def test_a_flood_from_the_supervisor_is_survived(world):
    with Proxy(world) as proxy:
        for number in range(3000):
            proxy.chan.send("egress_close", sandbox=number + 1)
        session = proxy.open(9999)
        assert session.status(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n") == 403


# ---------------------------------------------------------------- resolver

class Resolver:
    def __init__(self, world, tmp_path, hosts=""):
        self.log = open(tmp_path / "log", "w+b")
        path = tmp_path / "hosts"
        path.write_text("127.0.0.1 localhost\n" + hosts)
        os.chmod(path, 0o644)
        os.chmod(tmp_path, 0o755)
        ours, theirs = messages.pair()
        shell = ('mount --bind "$1" /etc/hosts && mount --bind /dev/null '
                 '/etc/resolv.conf && exec "$2"')
        self.process = proxybox.spawn(
            world, ["unshare", "-m", "sh", "-c", shell, "sh", str(path),
                    proxybox.RESOLVER], theirs, stderr=self.log)
        theirs.close()
        self.chan = messages.Channel(ours, "supervisor", "resolver")
        self.chan.expect("ready")
        self.link()

    def link(self):
        ours, theirs = messages.pair()
        self.chan.send("resolver_link", fds=[theirs.fileno()])
        theirs.close()
        self.proxyd = messages.Channel(ours, "proxyd", "resolver")

    def question(self, name, request=1):
        # The field `name` hides the parameter of Channel.send().
        messages.send_packet(self.proxyd.sock, messages.TABLE[
            "resolve_ask"].pack(request=request, name=name))

    def ask(self, name, request=1):
        self.question(name, request)
        msg = self.proxyd.expect("resolve_answer", request=request,
                                 timeout=30)
        return msg.status, [
            socket.inet_ntop(socket.AF_INET if r[0] == 4 else socket.AF_INET6,
                             r[1:5] if r[0] == 4 else r[1:])
            for r in re.findall(b".{17}", msg.addresses, re.S)]

    def close(self):
        self.chan.close()
        self.process.wait(5)
        self.log.seek(0)
        text = self.log.read().decode(errors="replace")
        assert self.process.returncode == 0, (self.process.returncode, text)
        assert "Sanitizer" not in text


@pytest.fixture
def resolver(world, tmp_path):
    r = Resolver(world, tmp_path, "93.184.216.34 one.test two.test\n"
                 "2606:2800::1 two.test\n10.0.0.7 three.test.corp.test\n")
    yield r
    r.close()


def test_the_hosts_file_is_used_and_no_search_list(resolver):
    assert resolver.ask("one.test", 1) == (0, ["93.184.216.34"])
    status, addresses = resolver.ask("two.test", 2)
    assert status == 0 and set(addresses) == {"93.184.216.34",
                                              "2606:2800::1"}
    assert resolver.ask("three.test", 3)[0] != 0


@pytest.mark.parametrize("name", ["localhost", "127.1", "a b.test", "A.test",
                                  "a.test.", "a..b", "[::1]"])
def test_a_name_that_was_not_checked_ends_the_link(resolver, name):
    resolver.question(name)
    assert resolver.proxyd.ended()
    resolver.link()
    assert resolver.ask("one.test")[0] == 0


@pytest.mark.parametrize("row", PROXYD_ROWS, ids=lambda row: row[0])
def test_a_proxyd_that_breaks_the_rules_loses_its_link(world, resolver_module,
                                                       row):
    _, packet, count = row
    resolver = resolver_module
    resolver.link()
    send(resolver.proxyd.sock, packet, count)
    assert resolver.proxyd.ended()
    resolver.link()
    assert resolver.ask("one.test")[0] == 0


@pytest.fixture(scope="module")
def resolver_module(world, tmp_path_factory):
    r = Resolver(world, tmp_path_factory.mktemp("resolver"),
                 "93.184.216.34 one.test\n")
    yield r
    r.close()


@pytest.mark.parametrize("row", TO_RESOLVER_ROWS, ids=lambda row: row[0])
def test_the_resolver_leaves_a_supervisor_that_breaks_the_rules(
        world, tmp_path, row):
    _, packet, count = row
    resolver = Resolver(world, tmp_path)
    send(resolver.chan.sock, packet, count)
    resolver.process.wait(5)
    resolver.close()


def test_a_flood_of_questions_is_answered(resolver):
    for i in range(1, 600):
        resolver.question("one.test", i)
    seen = {resolver.proxyd.expect("resolve_answer", timeout=20).request
            for _ in range(1, 600)}
    assert seen == set(range(1, 600))


def test_the_resolver_is_confined(resolver):
    # sh execs the resolver, so the process is the one that was started.
    with open("/proc/%d/status" % resolver.process.pid) as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines()
                      if ":\t" in line)
    assert status["Name"] == "stockade-resolv"
    assert status["CapPrm"] == status["CapEff"] == status["CapBnd"] == "0" * 16
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert "0" not in status["Uid"].split()
    for task in os.listdir("/proc/%d/task" % resolver.process.pid):
        with open("/proc/%d/task/%s/status" % (resolver.process.pid,
                                               task)) as f:
            assert "\nSeccomp:\t2\n" in f.read()
