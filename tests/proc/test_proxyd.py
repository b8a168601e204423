"""stockade-proxyd from outside: what a run sees, what reaches the internet,
what the supervisor is told. The internet and the resolver are the test's
(proxybox.py). Every refusal has a twin where the same thing works because the
protection does not apply."""

import os
import re
import resource
import socket
import subprocess
import threading
import time

import pytest

import messages
import proxybox
from proxybox import (HOST_PUBLIC4, NET4, PRIVATE4, PUBLIC4, PUBLIC4B,
                      PUBLIC6, Origin, Proxy, World, read_all, read_exactly,
                      read_head, read_reply)

pytestmark = pytest.mark.skipif(proxybox.why_not() is not None,
                                reason=str(proxybox.why_not()))

CRLF = b"\r\n"


@pytest.fixture(scope="module")
def world():
    with World() as w:
        yield w


@pytest.fixture
def proxy(world):
    with Proxy(world) as p:
        yield p


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Echo:
    """A web server: answers each request with what it got, and keeps it."""

    def __init__(self):
        self.heads = []
        self.bodies = []

    def __call__(self, conn):
        while True:
            head = read_head(conn)
            if not head:
                return
            body = self.body(conn, head.lower())
            self.heads.append(head)
            self.bodies.append(body)
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" %
                         (len(head), head))

    @staticmethod
    def body(conn, head):
        match = re.search(rb"\r\ncontent-length: (\d+)", head)
        if match:
            return read_exactly(conn, int(match.group(1)))
        out = b""
        if b"\r\ntransfer-encoding: chunked" in head:
            while True:
                line = b""
                while not line.endswith(CRLF):
                    line += read_exactly(conn, 1)
                n = int(line, 16)
                out += read_exactly(conn, n)
                assert read_exactly(conn, 2) == CRLF
                if n == 0:
                    return out
        return out


def echo_tunnel(conn):
    """Sends back what comes, and says goodbye after the end of file."""
    while True:
        data = conn.recv(65536)
        if not data:
            conn.sendall(b"<bye>")
            return
        conn.sendall(data)


@pytest.fixture
def web(world):
    echo = Echo()
    with Origin(world, echo, port=80) as origin:
        echo.origin = origin
        yield echo


@pytest.fixture
def tls(world):
    """Port 443; opaque bytes."""
    with Origin(world, echo_tunnel, port=443) as origin:
        yield origin


@pytest.fixture
def ok(proxy):
    return proxy.open(1, allow=["ok.test"], names={"ok.test": [PUBLIC4]})


# ---------------------------------------------------------------- tunnels

def test_bytes_behind_the_head_are_relayed(ok, tls):
    sock = ok.tunnel(extra=b"hello")
    sock.shutdown(socket.SHUT_WR)
    assert read_all(sock) == b"hello<bye>"


def test_a_head_in_single_bytes_is_read(ok, tls):
    sock = ok.connect()
    for byte in b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n":
        sock.sendall(bytes([byte]))
    assert read_head(sock).startswith(b"HTTP/1.1 200 Connection Established")


def test_half_close_keeps_the_other_direction(world, proxy):
    def serve(conn):
        data = read_all(conn)
        time.sleep(0.2)
        conn.sendall(b"answer to %d bytes" % len(data))
    with Origin(world, serve, port=443):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.tunnel()
        sock.sendall(b"x" * 1000)
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b"answer to 1000 bytes"


def test_half_close_by_the_origin_keeps_the_upload(world, proxy):
    got = []

    def serve(conn):
        conn.sendall(b"first")
        conn.shutdown(socket.SHUT_WR)
        got.append(read_all(conn))
        done.set()
    done = threading.Event()
    with Origin(world, serve, port=443):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.tunnel()
        assert read_all(sock) == b"first"
        sock.sendall(b"y" * 500)
        sock.close()
        assert done.wait(5)
        assert got == [b"y" * 500]


def test_large_transfers_both_ways_arrive_whole(world, proxy):
    size = 20 << 20
    block = os.urandom(1 << 20)

    def serve(conn):
        total = 0
        while total < size:
            total += len(conn.recv(1 << 20))
        for _ in range(size >> 20):
            conn.sendall(block)
    with Origin(world, serve, port=443):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.tunnel()
        sock.settimeout(60)
        for _ in range(size >> 20):
            sock.sendall(block)
        got = read_all(sock)
    assert got == block * (size >> 20)


def test_a_slow_receiver_does_not_make_the_proxy_hold_the_bytes(world, proxy):
    sent = []

    def serve(conn):
        conn.settimeout(3)
        total = 0
        try:
            while total < 64 << 20:
                total += conn.send(b"z" * 65536)
        except socket.timeout:
            pass
        sent.append(total)
        done.set()
    done = threading.Event()
    with Origin(world, serve, port=443):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        before = rss_kib(proxy)
        sock = session.tunnel()
        assert done.wait(20)
        assert sent[0] < 32 << 20       # it stopped: nobody read
        assert rss_kib(proxy) - before < 2048
        sock.close()


def test_a_reset_of_one_tunnel_harms_no_other(world, ok, tls):
    other = ok.tunnel()
    sock = ok.tunnel()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()
    other.sendall(b"still here")
    assert read_exactly(other, 10) == b"still here"


def test_a_reset_by_the_origin_is_not_seen_as_an_end(world, proxy):
    def serve(conn):
        conn.sendall(b"half of it")
        conn.recv(1)
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        b"\1\0\0\0\0\0\0\0")
    with Origin(world, serve, port=443):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.tunnel()
        assert read_exactly(sock, 10) == b"half of it"
        sock.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            sock.recv(1)


def test_an_idle_tunnel_ends_and_a_busy_one_does_not(world, tls):
    with Proxy(world, tunnel_idle_s=2) as proxy:
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        idle, busy = session.tunnel(), session.tunnel()
        end = time.monotonic() + 4
        while time.monotonic() < end:
            busy.sendall(b"x")
            assert read_exactly(busy, 1) == b"x"
            time.sleep(0.2)
        assert read_all(idle) == b""


# ---------------------------------------------------------------- rows of
# facts on what proxies do with odd and hostile input

HEAD_400 = [
    b"CONNECT ok.test HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test: HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:0 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:65979 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:443x HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:+443 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:-443 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:0443 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:443:443 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test@real.test:443 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:443@evil.test:443 HTTP/1.1\r\n\r\n",
    b"CONNECT user@ok.test:443 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:443/path HTTP/1.1\r\n\r\n",
    b"CONNECT http://ok.test:443 HTTP/1.1\r\n\r\n",
    b"CONNECT /ok.test:443 HTTP/1.1\r\n\r\n",
    b"CONNECT ok\0.test:443 HTTP/1.1\r\n\r\n",
    b"CONNECT ok.test:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"CONNECT ok.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"CONNECT ok.test:443 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /x HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    b"GET https://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    b"GET ftp://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    b"GET http://user@ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    b"GET http://ok.test:x/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    b"GET http:///x HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    b"GET http://ok.test/ HTTP/1.1\r\n\r\n",
    b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET http://ok.test/ HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
    b"GET http://ok.test/ HTTP/1.1\nHost: a\n\n",
    b"GET http://ok.test/ HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
    b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
    b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n",
    b"GET  http://ok.test/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://ok.test/ HTTP/1.1 \r\nHost: a\r\n\r\n",
    b"GARBAGE\r\n\r\n",
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
    b"\r\nGET http://ok.test/ HTTP/1.1\r\nHost: a\r\n\r\n",
]
BODY = b"POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n%s\r\n\r\nhello"
BODY_400 = [BODY % field for field in (
    b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    b"Content-Length: 5\r\nContent-Length: 5",
    b"Content-Length: 5\r\nContent-Length: 6",
    b"Content-Length: 5, 5",
    b"Content-Length: +5",
    b"Content-Length: 0x5",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: ",
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: \x0bchunked",
    b"Content-Length : 5",
    b"Content-Length: 5\r\n X: y",
)]
CHUNK = (b"POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
         b"Transfer-Encoding: chunked\r\n\r\n")
CHUNK_400 = [CHUNK + chunks for chunks in (
    b"fffffffffffffffff\r\nx",
    b"ffffffffffffffff\r\nx",
    b"0x5\r\nhello\r\n",
    b"+5\r\nhello\r\n",
    b"5 \r\nhello\r\n",
    b"5\nhello\r\n",
    b"5\r\nhelloX\r\n",
    b"5;" + b"e" * 300 + b"\r\nhello\r\n",
    b"5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
    b"g\r\n",
)]


@pytest.mark.parametrize("data", HEAD_400)
def test_a_malformed_head_is_400_and_reaches_nobody(ok, web, tls, data):
    reply = ok.http(data)
    assert reply.startswith(b"HTTP/1.1 400 "), reply
    assert b"\r\nConnection: close\r\n" in reply
    assert web.heads == [] and tls.connections == 0


@pytest.mark.parametrize("data", BODY_400)
def test_doubtful_framing_is_400_and_reaches_nobody(ok, web, data):
    reply = ok.http(data)
    assert reply.startswith(b"HTTP/1.1 400 "), reply
    assert web.heads == []


@pytest.mark.parametrize("data", CHUNK_400)
def test_a_malformed_chunk_is_400_and_the_request_is_not_completed(
        ok, web, data):
    reply = ok.http(data)
    assert reply.startswith(b"HTTP/1.1 400 "), reply
    assert web.heads == []


def test_the_same_without_the_fault_is_forwarded(ok, web, tls):
    """Twin of the three above."""
    assert ok.status(b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\n"
                     b"Connection: close\r\n\r\n") == 200
    assert ok.status(BODY % b"Content-Length: 5\r\nConnection: close") == 200
    assert ok.status(CHUNK.replace(b"\r\n\r\n", b"\r\nConnection: close"
                                   b"\r\n\r\n") +
                     b"5;a=b\r\nhello\r\n0\r\nT: v\r\n\r\n") == 200
    assert web.bodies == [b"", b"hello", b"hello"]
    assert b"T: v" not in b"".join(web.heads)
    ok.tunnel().close()


@pytest.mark.parametrize("data", [
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET http://ok.test/ HTTP/3.0\r\nHost: a\r\n\r\n",
])
def test_other_versions_are_505(ok, web, data):
    assert ok.status(data) == 505
    assert web.heads == []


def test_a_head_that_is_too_large_is_431(ok, web):
    head = b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\n"
    assert ok.status(head + b"X: " + b"y" * 70000 + b"\r\n\r\n") == 431
    assert ok.status(head + b"X: y\r\n" * 100 + b"\r\n") == 431
    assert ok.status(b"GET http://ok.test/" + b"p" * 4100 +
                     b" HTTP/1.1\r\nHost: a\r\n\r\n") == 431
    assert web.heads == []
    assert ok.status(head + b"Connection: close\r\n" + b"X: y\r\n" * 98 +
                     b"\r\n") == 200
    assert ok.status(head + b"Connection: close\r\nX: " + b"y" * 15000 +
                     b"\r\n\r\n") == 200


def test_a_slow_head_is_408_and_a_silent_client_is_closed(ok):
    sock, silent = ok.connect(timeout=20), ok.connect(timeout=20)
    start = time.monotonic()
    sock.sendall(b"CONNECT ok.test:443 HT")
    assert read_all(sock).startswith(b"HTTP/1.1 408 ")
    assert 8 < time.monotonic() - start < 13
    assert read_all(silent) == b""


# ---------------------------------------------------------------- names

@pytest.mark.parametrize("name", [
    "2130706433", "0x7f.1", "0x7f000001", "127.1", "0177.0.0.1", "0",
    "017700000001", "2852039166", "0xa9fea9fe", "127.0.0.01", "a..b", ".a.b",
    "a%2e.test", "a\\b.test", "a#b.test", "a,b.test", "*.test", "a" * 64 +
    ".test", "a." * 127 + "test", "[::1", "[fe80::1%25eth0]", "[127.0.0.1]",
    "b\u00fccher.test",
])
def test_what_is_no_name_is_403_bad_name(proxy, ok, name):
    reply = ok.http(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % name.encode())
    if "\u00fc" in name or "#" in name or name == "[::1":
        assert reply.startswith(b"HTTP/1.1 400 ")   # no target byte at all
        return
    assert reply.startswith(
        b"HTTP/1.1 403 Blocked by sandbox: the host name is not valid\r\n")
    assert proxy.violation().reason == "bad_name"
    assert proxy.resolver.asked == []


@pytest.mark.parametrize("name,reason", [
    ("127.0.0.1", "ip_literal"), ("[::1]", "ip_literal"),
    ("[::ffff:127.0.0.1]", "ip_literal"), ("10.0.0.1", "ip_literal"),
    ("8.8.8.8", "ip_literal"), ("localhost", "host_not_allowed"),
    ("169.254.169.254", "host_denied"),
    ("[::ffff:169.254.169.254]", "host_denied"),
    ("[fd00:ec2::254]", "host_denied"), ("metadata", "host_denied"),
    ("metadata.google.internal", "host_denied"),
    ("x.metadata.google.internal", "host_denied"),
    ("o1.ingest.sentry.io", "host_denied"), ("sentry.io", "host_denied"),
    ("evilok.test", "host_not_allowed"), ("test", "host_not_allowed"),
    ("ok.test.evil.test", "host_not_allowed"),
    ("a.ok.test", "host_not_allowed"),
])
def test_a_name_that_is_not_listed_is_refused_before_it_is_looked_up(
        proxy, ok, name, reason):
    reply = ok.http(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % name.encode())
    assert reply.startswith(b"HTTP/1.1 403 Blocked by sandbox: "), reply
    assert b"\r\nX-Deny-Reason: %s\r\n" % reason.encode() in reply
    assert proxy.violation().reason == reason
    assert proxy.resolver.asked == []


def test_spellings_of_an_allowed_name_are_the_name(ok, tls, proxy):
    for host in ("ok.test", "OK.Test", "ok.test.", "OK.TEST."):
        ok.tunnel(host).close()
    assert proxy.resolver.asked == ["ok.test"]


def test_a_refusal_is_told_in_three_places_and_never_407(proxy, ok):
    reply = ok.http(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
    head, body = reply.split(b"\r\n\r\n", 1)
    lines = head.split(CRLF)
    assert lines[0] == (b"HTTP/1.1 403 Blocked by sandbox: example.com is "
                        b"not on the allow list")
    assert b"X-Deny-Reason: host_not_allowed" in lines
    assert (b"Proxy-Status: stockade; error=http_request_denied; "
            b'details="host_not_allowed"') in lines
    assert b"Content-Length: %d" % len(body) in lines
    assert b"--allow example.com" in body
    seen = proxy.violation()
    assert (seen.sandbox, seen.target, seen.port, seen.count) == (
        1, "example.com", 443, 1)
    assert messages.closed_set("VIOLATIONS")[seen.action][1] == (
        "network-outbound")
    assert seen.reason == "host_not_allowed" and seen.remedy


def test_a_refusal_of_a_plain_request_is_the_same(proxy, ok):
    reply = ok.http(b"GET http://example.com/secret?token=1 HTTP/1.1\r\n"
                    b"Host: ok.test\r\nConnection: close\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 403 Blocked by sandbox: example.com ")
    assert proxy.violation().target == "example.com"
    assert "token" not in proxy.text()


def test_a_long_name_is_cut_in_the_reason_phrase(ok):
    name = b"a" * 60 + b"." + b"b" * 60 + b"." + b"c" * 60 + b".test"
    reply = ok.http(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % name)
    phrase = reply.split(CRLF)[0][len("HTTP/1.1 403 "):]
    assert len(phrase) <= 100 and b"..." in phrase
    assert phrase.endswith(b".test is not on the allow list")


def test_ports_are_those_of_the_rules(proxy, ok, tls):
    for port in (22, 25, 5432, 8080, 444):
        reply = ok.http(b"CONNECT ok.test:%d HTTP/1.1\r\n\r\n" % port)
        assert reply.startswith(
            b"HTTP/1.1 403 Blocked by sandbox: port %d of ok.test is not "
            b"allowed\r\n" % port)
        assert proxy.violation(port=port).reason == "port_not_allowed"
    ok.tunnel(port=443).close()


def test_a_rule_with_a_port_opens_it(world, proxy):
    with Origin(world, echo_tunnel, port=22):
        session = proxy.open(1, allow=[("git.test", 22)],
                             names={"git.test": [PUBLIC4]})
        session.tunnel("git.test", 22).close()
        assert session.status(b"CONNECT git.test:443 HTTP/1.1\r\n\r\n") == 403


def test_wildcards(proxy, tls):
    names = {n: [PUBLIC4] for n in ("a.w.test", "a.b.w.test",
                                    "m.one.x.test")}
    session = proxy.open(1, allow=["*.w.test", "m.*.x.test"], names=names)
    for name in names:
        session.tunnel(name).close()
    for name in ("w.test", "eviw.test", "m.x.test", "m.a.b.x.test",
                 "a.w.test.evil.test"):
        assert session.status(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" %
                              name.encode()) == 403, name


def test_deny_wins_over_allow(proxy, tls):
    names = {"a.sentry.io": [PUBLIC4], "b.w.test": [PUBLIC4]}
    session = proxy.open(1, allow=["*.sentry.io", "a.sentry.io", "*.w.test"],
                         deny=["b.w.test"], names=names)
    for name in names:
        reply = session.http(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" %
                             name.encode())
        assert b"is on the deny list" in reply
    # The twin: without the deny list the same rules let it through.
    other = proxy.open(2, allow=["*.w.test"])
    other.tunnel("b.w.test").close()


def test_no_network_refuses_what_is_listed(proxy, tls):
    off = proxy.open(1, network=False, allow=["ok.test"],
                     names={"ok.test": [PUBLIC4]})
    reply = off.http(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 403 Blocked by sandbox: the network "
                            b"is off for this run\r\n")
    assert off.socks(b"ok.test", 443)[0] == 2
    assert proxy.violation().reason == "network_off"
    proxy.open(2, allow=["ok.test"]).tunnel().close()


def test_an_empty_list_allows_nothing(proxy, tls):
    session = proxy.open(1, names={"ok.test": [PUBLIC4]})
    for name in (b"ok.test", b"github.com", b"93.184.216.34"):
        assert session.status(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" %
                              name) == 403
    assert tls.connections == 0


@pytest.mark.parametrize("lists", [
    b"", b"\xc0", b"\x96\x02\xc3\x01\x90\x90\x90", b"\x96\x01\xc3\x01\x91",
    proxybox.pack_lists(allow=["*"]), proxybox.pack_lists(allow=["OK.test"]),
    proxybox.pack_lists(allow=["ok.test"], private=[("10.0.0.1/8", "a.b")]),
    proxybox.pack_lists(allow=["ok.test"])[:-1],
])
def test_lists_that_cannot_be_read_allow_nothing(proxy, tls, lists):
    proxy.resolver.names["ok.test"] = [PUBLIC4]
    session = proxybox.Session(proxy, 1, lists)
    assert session.status(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n") == 403
    assert tls.connections == 0


def test_lists_that_are_not_sealed_allow_nothing(proxy, tls):
    proxy.resolver.names["ok.test"] = [PUBLIC4]
    real = messages.memfd
    messages.memfd = lambda data: real(data, sealed=False)
    try:
        session = proxybox.Session(
            proxy, 1, proxybox.pack_lists(allow=["ok.test"]))
    finally:
        messages.memfd = real
    assert session.status(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n") == 403


def test_sessions_have_their_own_lists_and_violations(proxy, tls):
    one = proxy.open(1, allow=["ok.test"], names={"ok.test": [PUBLIC4]})
    two = proxy.open(2, allow=["other.test"])
    one.tunnel().close()
    assert two.status(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n") == 403
    assert proxy.violation().sandbox == 2
    assert one.status(b"CONNECT other.test:443 HTTP/1.1\r\n\r\n") == 403
    assert proxy.violation().sandbox == 1


# ---------------------------------------------------------------- addresses

REFUSED = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254",
    "169.254.170.2", "169.254.1.1", "172.16.0.1", "192.0.0.1", "192.0.2.1",
    "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "168.63.129.16", "100.100.100.200", "::", "::1", "::7f00:1",
    "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "2002:7f00:1::1",
    "2002:a00:1::1", "100::1", "2001::1", "2001:db8::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", HOST_PUBLIC4,
    proxybox.HOST4,
]


@pytest.mark.parametrize("address", REFUSED)
def test_a_name_with_a_private_address_is_refused(proxy, ok, tls, address):
    proxy.resolver.names["ok.test"] = [address]
    reply = ok.http(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 403 Blocked by sandbox: ok.test "
                            b"resolves to a private address\r\n"), reply
    assert proxy.violation().reason == "private_address"
    assert tls.connections == 0


def test_only_the_public_ones_of_mixed_addresses_are_used(proxy, ok, tls):
    proxy.resolver.names["ok.test"] = ["10.0.0.1", "127.0.0.1", "::1",
                                       PUBLIC4, "169.254.169.254"]
    start = time.monotonic()
    ok.tunnel().close()
    assert time.monotonic() - start < 0.2
    assert tls.connections == 1


def test_a_private_range_is_permitted_for_its_name_only(world, proxy):
    names = {n: [PRIVATE4] for n in ("in.corp.test", "ok.test")}
    with Origin(world, echo_tunnel, PRIVATE4, 443) as origin:
        session = proxy.open(1, allow=["*.corp.test", "ok.test"],
                             private=[("10.99.0.0/16", "*.corp.test")],
                             names=names)
        session.tunnel("in.corp.test").close()
        assert origin.connections == 1
        assert session.status(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n") == 403
        assert proxy.violation().remedy.startswith("permit private")
        # Another session has no such permission.
        other = proxy.open(2, allow=["*.corp.test"])
        assert other.status(
            b"CONNECT in.corp.test:443 HTTP/1.1\r\n\r\n") == 403
        assert origin.connections == 1


@pytest.mark.parametrize("address,cidr", [
    ("127.0.0.1", "127.0.0.0/8"), ("::1", "::/0"),
    ("169.254.169.254", "169.254.0.0/16"), ("fd00:ec2::254", "fd00::/8"),
    ("0.0.0.0", "0.0.0.0/0"), ("::ffff:127.0.0.1", "127.0.0.0/8"),
])
def test_loopback_and_metadata_cannot_be_permitted(world, proxy, address,
                                                   cidr):
    session = proxy.open(1, allow=["ok.test"], private=[(cidr, "ok.test")],
                         names={"ok.test": [address]})
    with Origin(world, echo_tunnel, "127.0.0.1", 443, ns=world.host) as host:
        assert session.status(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n") == 403
        assert host.connections == 0
        seen = proxy.violation()
        assert (seen.reason, seen.remedy) == ("private_address", "")
        assert "cannot be permitted" in seen.rule
        # The twin: nothing but the check stands between the two.
        with world.host:
            socket.create_connection(("127.0.0.1", 443)).close()


def test_a_literal_is_allowed_only_if_listed_literally(proxy, tls):
    session = proxy.open(1, allow=[PUBLIC4, "10.0.0.9", "127.0.0.1"])
    session.tunnel(PUBLIC4).close()
    for host, reason in ((PUBLIC4B, "ip_literal"),
                         ("10.0.0.9", "private_address"),
                         ("127.0.0.1", "private_address")):
        assert session.status(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" %
                              host.encode()) == 403
        assert proxy.violation().reason == reason
    assert proxy.resolver.asked == []


def test_addresses_change_of_the_host_is_followed(world, proxy, ok):
    proxy.resolver.names["ok.test"] = ["45.33.32.200"]
    world.host.sh("ip addr add 45.33.32.200/32 dev lo")
    try:
        time.sleep(0.2)
        reply = ok.http(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n")
        assert b"resolves to a private address" in reply
    finally:
        world.host.sh("ip addr del 45.33.32.200/32 dev lo")


def test_both_families_are_tried(world, proxy):
    with Origin(world, echo_tunnel, PUBLIC6, 443) as six, \
            Origin(world, echo_tunnel, PUBLIC4B, 443) as four:
        session = proxy.open(1, allow=["a.test", "b.test"], names={
            "a.test": [PUBLIC4B, PUBLIC6], "b.test": [PUBLIC6, PUBLIC4]})
        session.tunnel("a.test").close()
        assert (six.connections, four.connections) == (1, 0)
        session.tunnel("b.test").close()
    # IPv6 is refused at once now, IPv4 answers.
    with Origin(world, echo_tunnel, PUBLIC4B, 443):
        proxy.resolver.names["c.test"] = [PUBLIC6, PUBLIC4B]
        session2 = proxy.open(2, allow=["c.test"])
        start = time.monotonic()
        session2.tunnel("c.test").close()
        assert time.monotonic() - start < 0.2


def test_a_silent_address_costs_a_quarter_of_a_second(world, proxy, tls):
    world.net.sh("ip route add blackhole 93.184.217.0/24")
    session = proxy.open(1, allow=["ok.test"], names={
        "ok.test": ["93.184.217.1", PUBLIC4]})
    start = time.monotonic()
    session.tunnel().close()
    took = time.monotonic() - start
    world.net.sh("ip route del blackhole 93.184.217.0/24")
    assert took < 1.0
    assert tls.connections == 1


# ---------------------------------------------------------------- failures

def test_failures_have_their_status(world, proxy):
    world.host.sh("ip route add unreachable 93.184.218.0/24")
    names = {"none.test": "NOT_FOUND", "fail.test": "FAILED",
             "busy.test": "BUSY", "refused.test": [PUBLIC4],
             "far.test": ["93.184.218.1"], "late.test": "TIMEOUT"}
    long = ".".join(["a" * 50, "b" * 50, "c" * 50, "test"])
    names[long] = "NOT_FOUND"
    lost, far = b"cannot be resolved", b"cannot be reached"
    rows = {"none.test": (502, 4, b"dns_error", lost),
            "fail.test": (502, 4, b"dns_error", lost),
            "busy.test": (502, 1, b"dns_error", lost),
            "refused.test": (502, 5, b"connection_refused", far),
            "far.test": (502, 3, b"destination_unavailable", far),
            "late.test": (504, 6, b"connection_timeout",
                          b"did not answer in time"),
            long: (502, 4, b"dns_error", lost)}
    session = proxy.open(1, allow=list(names), names=names)
    for name, (status, socks, error, words) in rows.items():
        reply = session.http(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" %
                             name.encode())
        assert reply.startswith(b"HTTP/1.1 %d " % status), (name, reply)
        phrase = reply.split(b"\r\n")[0].split(b" ", 2)[2]
        if name is long:
            assert re.fullmatch(b"a+\\.\\.\\.c+\\.test " + words, phrase)
            assert 96 <= len(phrase) <= 100, phrase
        else:
            assert phrase == name.encode() + b" " + words
        assert b"Proxy-Status: stockade; error=" + error in reply
        assert b"X-Deny-Reason" not in reply
        assert session.socks(name.encode(), 443)[0] == socks, name
    proxy.no_violation()
    world.host.sh("ip route del unreachable 93.184.218.0/24")


def test_a_name_that_is_never_answered_is_504_after_fifteen_seconds(proxy):
    session = proxy.open(1, allow=["mute.test"],
                         names={"mute.test": lambda: None})
    start = time.monotonic()
    assert session.status(b"CONNECT mute.test:443 HTTP/1.1\r\n\r\n",
                          timeout=25) == 504
    assert 13 < time.monotonic() - start < 18


def test_answers_are_kept_and_failures_shortly(proxy, ok, tls):
    ok.tunnel().close()
    ok.tunnel().close()
    assert proxy.resolver.asked == ["ok.test"]
    session = proxy.open(2, allow=["late.test"],
                         names={"late.test": "NOT_FOUND"})
    assert session.status(b"CONNECT late.test:443 HTTP/1.1\r\n\r\n") == 502
    proxy.resolver.names["late.test"] = [PUBLIC4]
    assert session.status(b"CONNECT late.test:443 HTTP/1.1\r\n\r\n") == 502
    assert proxy.resolver.asked.count("late.test") == 1
    time.sleep(6)
    session.tunnel("late.test").close()


def test_equal_questions_are_asked_once(proxy, tls):
    gate = threading.Event()
    session = proxy.open(1, allow=["ok.test"], names={
        "ok.test": lambda: gate.wait(5) and [PUBLIC4]})
    socks = [session.connect() for _ in range(20)]
    for sock in socks:
        sock.sendall(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n")
    time.sleep(0.3)
    gate.set()
    for sock in socks:
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
    assert proxy.resolver.asked == ["ok.test"]


def test_a_new_link_replaces_the_resolver(proxy, ok, tls):
    old = proxy.resolver
    old.chan.sock.shutdown(socket.SHUT_RDWR)
    time.sleep(0.2)
    assert ok.status(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n") == 502
    proxy.link()
    ok.tunnel().close()


# ---------------------------------------------------------------- plain HTTP

def test_host_comes_from_the_uri_and_hop_fields_are_dropped(ok, web):
    assert ok.status(
        b"GET http://ok.test:80/p?q=1 HTTP/1.1\r\nHost: evil.test\r\n"
        b"Connection: X-Secret, close\r\nX-Secret: 1\r\nTE: trailers\r\n"
        b"Keep-Alive: 5\r\nProxy-Connection: keep-alive\r\n"
        b"Proxy-Authorization: Basic Zm9v\r\nUpgrade: websocket\r\n"
        b"Trailer: a\r\nX-Kept: yes\r\n\r\n") == 200
    assert web.heads == [b"GET /p?q=1 HTTP/1.1\r\nHost: ok.test\r\n"
                         b"X-Kept: yes\r\n\r\n"]


def test_each_request_on_a_kept_connection_is_judged(proxy, ok, web):
    sock = ok.connect()
    sock.sendall(b"".join(
        b"GET http://%s/%d HTTP/1.1\r\nHost: ok.test\r\n\r\n" % (host, i)
        for i, host in enumerate((b"ok.test", b"no.test", b"ok.test",
                                  b"127.1", b"ok.test"))))
    assert [read_reply(sock)[0] for _ in range(5)] == [200, 403, 200, 403,
                                                       200]
    assert [h.split(b" ")[1] for h in web.heads] == [b"/0", b"/2", b"/4"]
    assert web.origin.connections == 1


def test_many_pipelined_refusals_are_all_answered(ok):
    one = b"GET http://no.test/ HTTP/1.1\r\nHost: a\r\n\r\n"
    sock = ok.connect(timeout=20)
    threading.Thread(target=sock.sendall, args=(one * 2000,),
                     daemon=True).start()
    for _ in range(2000):
        assert read_reply(sock)[0] == 403


def test_the_upstream_follows_the_target(world, ok, web, proxy):
    other = Echo()
    with Origin(world, other, PUBLIC4B, 80):
        session = proxy.open(2, allow=["ok.test", "b.test"],
                             names={"b.test": [PUBLIC4B]})
        sock = session.connect()
        for host in (b"ok.test", b"b.test", b"ok.test"):
            sock.sendall(b"GET http://%s/ HTTP/1.1\r\nHost: x\r\n\r\n" % host)
            status, _, body = read_reply(sock)
            assert status == 200 and b"Host: " + host in body
    assert len(web.heads) == 2 and len(other.heads) == 1


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_large_body_is_streamed(world, proxy, framing):
    size = 8 << 20
    got = []

    def serve(conn):
        head = read_head(conn)
        got.append(Echo.body(conn, head.lower()))
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    data = os.urandom(size)
    with Origin(world, serve, port=80):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        before = rss_kib(proxy)
        sock = session.connect(timeout=60)
        head = b"PUT http://ok.test/ HTTP/1.1\r\nHost: a\r\n"
        if framing == "length":
            sock.sendall(head + b"Content-Length: %d\r\n\r\n" % size + data)
        else:
            sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            for i in range(0, size, 100000):
                part = data[i:i + 100000]
                sock.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            sock.sendall(b"0\r\n\r\n")
        assert read_reply(sock)[0] == 200
        assert rss_kib(proxy) - before < 2048
    assert got == [data]


def answer_with(*parts):
    def serve(conn):
        read_head(conn)
        for part in parts:
            if part is None:
                time.sleep(0.1)
            else:
                conn.sendall(part)
    return serve


GOOD_ANSWERS = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
     b"2\r\nhe\r\n3;x\r\nllo\r\n0\r\nT: v\r\n\r\n", b"hello"),
    (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello"),
    (b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
     b"Content-Length: 5\r\n\r\nhello", b"hello"),
]


@pytest.mark.parametrize("answer,body", GOOD_ANSWERS)
@pytest.mark.parametrize("split", [False, True])
def test_answers_are_framed_anew(world, proxy, answer, body, split):
    parts = [bytes([b]) for b in answer] if split else [answer]
    with Origin(world, answer_with(*parts), port=80):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.connect()
        sock.sendall(b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\n\r\n")
        status, head, got = read_reply(sock)
        if status == 100:
            status, head, got = read_reply(sock)
        assert (status, got) == (200, body)
        assert b"T: v" not in head
        # HTTP/1.0 gets no chunks.
        reply = session.http(b"GET http://ok.test/ HTTP/1.0\r\n\r\n")
        assert reply.split(b"\r\n\r\n", 1)[1] == body
        assert b"chunked" not in reply.lower()


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked"
    b"\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=x\r\n"
    b"Content-Length: 0\r\n\r\n",
    b"HTTP/2.0 200 OK\r\n\r\n", b"garbage\r\n\r\n", b"", b"HTTP/1.1 200",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20000 + b"\r\n\r\n",
])
def test_a_doubtful_answer_is_502(world, proxy, answer):
    with Origin(world, answer_with(answer), port=80):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        reply = session.http(b"POST http://ok.test/ HTTP/1.1\r\nHost: a\r\n"
                             b"Content-Length: 0\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 502 "), reply
        assert b"Proxy-Authenticate" not in reply


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX",
])
def test_an_answer_cut_short_does_not_look_whole(world, proxy, answer):
    with Origin(world, answer_with(answer), port=80):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.connect()
        sock.sendall(b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\n\r\n")
        got = b""
        with pytest.raises(ConnectionResetError):
            while True:
                data = sock.recv(65536)
                assert data, "a clean end of file"
                got += data
        assert not got.endswith(b"0\r\n\r\n")


def test_an_origin_cannot_fake_a_refusal(world, proxy):
    with Origin(world, answer_with(
            b"HTTP/1.1 403 Blocked\r\nX-Deny-Reason: host_denied\r\n"
            b"Proxy-Status: stockade; error=x\r\nproxy-x: y\r\nX-Own: kept"
            b"\r\nContent-Length: 0\r\n\r\n"), port=80):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.connect()
        sock.sendall(b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\n\r\n")
        status, head, _ = read_reply(sock)
    assert status == 403 and b"X-Own: kept" in head
    for field in (b"deny-reason", b"proxy-status", b"proxy-x"):
        assert field not in head.lower()


def test_an_answer_to_head_has_no_body_and_keeps_its_length(world, proxy):
    def serve(conn):
        while read_head(conn):
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
    with Origin(world, serve, port=80):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.connect()
        for _ in range(2):
            sock.sendall(b"HEAD http://ok.test/ HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"Content-Length: 99" in read_head(sock)
        sock.sendall(b"HEAD http://no.test/ HTTP/1.1\r\nHost: a\r\n\r\n"
                     b"HEAD http://no.test/ HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_head(sock).startswith(b"HTTP/1.1 403 ")
        assert read_head(sock).startswith(b"HTTP/1.1 403 ")


def test_bytes_behind_an_answer_reach_no_other_request(world, proxy):
    """Response splitting by the origin: the second answer is not used."""
    def serve(conn):
        while read_head(conn):
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"
                         b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    with Origin(world, serve, port=80) as origin:
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.connect()
        for _ in range(3):
            sock.sendall(b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\n\r\n")
            assert read_reply(sock)[2] == b"1"
            time.sleep(0.05)
        assert origin.connections == 3


def test_a_kept_upstream_that_ended_is_replaced(world, proxy):
    def serve(conn):
        read_head(conn)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    with Origin(world, serve, port=80) as origin:
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.connect()
        for _ in range(20):
            sock.sendall(b"GET http://ok.test/ HTTP/1.1\r\nHost: a\r\n\r\n")
            assert read_reply(sock)[0] == 200
        assert origin.connections == 20


def test_an_early_answer_ends_the_upload(world, proxy):
    def serve(conn):
        read_head(conn)
        conn.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        conn.recv(1)
    with Origin(world, serve, port=80):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.connect()
        sock.sendall(b"PUT http://ok.test/ HTTP/1.1\r\nHost: a\r\n"
                     b"Content-Length: 100000\r\n\r\nstart")
        assert read_reply(sock)[:3:2] == (413, b"big")


def test_expect_is_passed_on(world, proxy):
    def serve(conn):
        head = read_head(conn)
        assert b"Expect: 100-continue" in head
        conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert read_exactly(conn, 5) == b"hello"
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    with Origin(world, serve, port=80):
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        sock = session.connect()
        sock.sendall(b"PUT http://ok.test/ HTTP/1.1\r\nHost: a\r\n"
                     b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert read_head(sock).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"hello")
        assert read_reply(sock)[0] == 200


def test_a_refused_upload_is_answered_although_it_goes_on(ok):
    sock = ok.connect()
    sock.sendall(b"PUT http://no.test/ HTTP/1.1\r\nHost: a\r\n"
                 b"Content-Length: 1000000\r\n\r\n")
    sock.sendall(b"x" * 1000000)
    assert read_all(sock).startswith(b"HTTP/1.1 403 ")


# ---------------------------------------------------------------- SOCKS

def test_socks_names_and_literals(proxy, tls):
    session = proxy.open(1, allow=["ok.test", PUBLIC4, "[%s]" % PUBLIC6],
                         names={"ok.test": [PUBLIC4]})
    for host, atyp in ((b"ok.test", 3), (b"OK.TEST.", 3), (PUBLIC4, 1),
                       (b"93.184.216.34", 3)):
        code, sock = session.socks(host, 443, atyp)
        assert code == 0
        sock.sendall(b"ping")
        assert read_exactly(sock, 4) == b"ping"


@pytest.mark.parametrize("host,atyp", [
    (b"no.test", 3), (b"evilok.test", 3), (b"", 3), (b"ok\0.test", 3),
    (b"ok.test\0", 3), (b"ok.test:443", 3), (b"127.1", 3),
    (b"2130706433", 3), (b"user@ok.test", 3), (b"\xff\xfe", 3),
    ("127.0.0.1", 1), ("8.8.8.8", 1), ("::1", 4),
    ("::ffff:169.254.169.254", 4),
])
def test_socks_refusals_are_reply_2(proxy, ok, tls, host, atyp):
    assert ok.socks(host, 443, atyp)[0] == 2
    assert proxy.violation().sandbox == 1
    assert tls.connections == 0


def test_socks_ports(ok, tls, proxy):
    for port in (0, 22, 8080):
        assert ok.socks(b"ok.test", port)[0] == 2
        assert proxy.violation(port=port).reason == "port_not_allowed"


def test_other_socks_commands_and_types(ok):
    for tail, code in ((b"\x02\x00\x01\x01\x02\x03\x04\x01\xbb", 7),
                       (b"\x03\x00\x01\x01\x02\x03\x04\x01\xbb", 7),
                       (b"\x01\x00\x02\x01\x02\x03\x04\x01\xbb", 8)):
        sock = ok.connect(socks=True)
        sock.sendall(b"\x05\x01\x00\x05" + tail)
        assert read_exactly(sock, 2) == b"\x05\x00"
        assert read_exactly(sock, 10)[1] == code
        assert read_all(sock) == b""


@pytest.mark.parametrize("data,answer", [
    (b"\x04\x01\x01\xbb\x01\x02\x03\x04\x00", b""),
    (b"\x04\x01\x01\xbb\x00\x00\x00\x01\x00ok.test\x00", b""),
    (b"GET http://ok.test/ HTTP/1.1\r\n\r\n", b""),
    (b"\x05\x01\x02", b"\x05\xff"),
    (b"\x05\x00", b"\x05\xff"),
    (b"\x05\x01\x00\x04\x01\x00\x01", b"\x05\x00"),
    (b"\x05\x01\x00\x05\x01\x01\x01\x01\x02\x03\x04\x01\xbb", b"\x05\x00"),
])
def test_what_is_not_socks5_is_closed(ok, data, answer):
    sock = ok.connect(socks=True)
    sock.sendall(data)
    assert read_all(sock) == answer


def test_socks_in_single_bytes_and_data_behind_the_request(ok, tls):
    sock = ok.connect(socks=True)
    data = b"\x05\x02\x02\x00\x05\x01\x00\x03\x07ok.test\x01\xbb"
    for byte in data:
        sock.sendall(bytes([byte]))
    sock.sendall(b"early")
    assert read_exactly(sock, 2) == b"\x05\x00"
    assert read_exactly(sock, 10)[1] == 0
    assert read_exactly(sock, 5) == b"early"


# ---------------------------------------------------------------- limits

def test_tunnels_of_a_session_are_limited(world, tls):
    with Proxy(world, tunnels_session=5) as proxy:
        session = proxy.open(1, allow=["ok.test"], tunnels=3,
                             names={"ok.test": [PUBLIC4]})
        held = [session.tunnel() for _ in range(3)]
        reply = session.http(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n")
        assert reply.startswith(
            b"HTTP/1.1 503 Blocked by sandbox: too many connections\r\n")
        assert session.socks(b"ok.test", 443)[0] == 1
        assert proxy.violation().reason == "limit"
        # Another session has its own limit.
        other = proxy.open(2, allow=["ok.test"], tunnels=3)
        other.tunnel().close()
        held.pop().close()
        time.sleep(0.2)
        session.tunnel().close()


def test_tunnels_of_all_sessions_are_limited(world, tls):
    with Proxy(world, tunnels_all=4) as proxy:
        names = {"ok.test": [PUBLIC4]}
        one = proxy.open(1, allow=["ok.test"], names=names)
        two = proxy.open(2, allow=["ok.test"])
        held = [one.tunnel() for _ in range(4)]
        assert two.status(b"CONNECT ok.test:443 HTTP/1.1\r\n\r\n") == 503
        held.pop().close()
        time.sleep(0.2)
        two.tunnel().close()


def test_descriptors_that_run_out_stop_nothing_for_good(world, tls,
                                                       many_files):
    """700 descriptors, each tunnel two: accepting ends at the limit of
    tunnels, and at that of descriptors when clients wait."""
    with Proxy(world, nofile=700) as proxy:
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        socks = [session.connect() for _ in range(900)]
        for sock in socks:
            sock.close()
        end = time.monotonic() + 10
        while session.status(b"GET http://x HTTP/1.1\r\n\r\n") is None:
            assert time.monotonic() < end
        session.tunnel().close()


def test_each_refusal_is_told_at_once(proxy, ok):
    for _ in range(30):
        assert ok.status(b"CONNECT no.test:443 HTTP/1.1\r\n\r\n") == 403
        assert proxy.violation(timeout=1).count == 1
    proxy.no_violation()


def test_a_flood_of_refusals_does_not_flood_the_supervisor(proxy, ok):
    sock = ok.connect(timeout=30)
    n = 3000
    data = b"".join(b"GET http://h%d.test/ HTTP/1.1\r\nHost: a\r\n\r\n" % i
                    for i in range(n))
    threading.Thread(target=sock.sendall, args=(data,), daemon=True).start()
    for _ in range(n):
        assert read_reply(sock)[0] == 403
    total = count = 0
    while total < n:
        msg = proxy.violation(timeout=10)
        total += msg.count
        count += 1
    assert total == n and count < 400
    proxy.no_violation()


def rss_kib(proxy):
    with open("/proc/%d/smaps_rollup" % proxy.process.pid) as f:
        return int(re.search(r"Pss:\s+(\d+)", f.read()).group(1))


def test_an_idle_tunnel_costs_little_memory(world, proxy, many_files):
    with Origin(world, echo_tunnel, port=443) as origin:
        session = proxy.open(1, allow=["ok.test"],
                             names={"ok.test": [PUBLIC4]})
        session.tunnel().close()
        before = rss_kib(proxy)
        held = []
        for _ in range(400):
            sock = session.tunnel()
            sock.sendall(b"x")
            assert read_exactly(sock, 1) == b"x"
            held.append(sock)
        grown = rss_kib(proxy) - before
        with open("/proc/%d/maps" % proxy.process.pid) as f:
            if "libasan" not in f.read():
                assert grown / len(held) <= 2.0, grown
        assert origin.connections == 401


def test_a_thousand_connections_to_a_silent_host_block_nobody(
        world, proxy, tls, many_files):
    world.net.sh("ip route add blackhole 93.184.219.0/24")
    session = proxy.open(1, allow=["mute.test"],
                         names={"mute.test": ["93.184.219.1"],
                                "ok.test": [PUBLIC4]})
    other = proxy.open(2, allow=["ok.test"])
    held = []
    for _ in range(1000):
        sock = session.connect()
        sock.sendall(b"CONNECT mute.test:443 HTTP/1.1\r\n\r\n")
        held.append(sock)
    start = time.monotonic()
    other.tunnel().close()
    assert time.monotonic() - start < 1
    world.net.sh("ip route del blackhole 93.184.219.0/24")


# ---------------------------------------------------------------- sessions

def test_a_closed_session_ends_its_tunnels_and_no_other(proxy, tls):
    names = {"ok.test": [PUBLIC4]}
    one = proxy.open(1, allow=["ok.test"], names=names)
    two = proxy.open(2, allow=["ok.test"])
    dead, alive = one.tunnel(), two.tunnel()
    one.close()
    with pytest.raises(ConnectionError):
        if dead.recv(1) == b"":
            raise ConnectionError
    with pytest.raises(OSError):
        one.connect()
    alive.sendall(b"x")
    assert read_exactly(alive, 1) == b"x"


def test_closing_what_is_not_open_is_harmless(proxy, ok, tls):
    proxy.chan.send("egress_close", sandbox=77)
    ok.tunnel().close()


def test_no_descriptor_is_left_after_many_sessions(proxy, tls):
    def descriptors():
        return len(os.listdir("/proc/%d/fd" % proxy.process.pid))
    names = {"ok.test": [PUBLIC4]}
    before = None
    for number in range(1, 60):
        session = proxy.open(number, allow=["ok.test"], names=names)
        session.tunnel()
        if before is None:      # all that it holds at rest is open now
            session.close()
            time.sleep(0.3)
            before = descriptors()
            continue
        session.status(b"GET http://no.test/ HTTP/1.1\r\nHost: a\r\n"
                       b"Connection: close\r\n\r\n")
        session.close()
    end = time.monotonic() + 5
    while descriptors() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert descriptors() <= before


def test_it_ends_with_its_channel(world):
    proxy = Proxy(world)
    assert proxy.close() == 0


def test_it_is_confined(proxy):
    with open("/proc/%d/status" % proxy.process.pid) as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines()
                      if ":\t" in line)
    assert status["CapPrm"] == status["CapEff"] == status["CapBnd"] == "0" * 16
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert "0" not in status["Uid"].split() and not status["Groups"].strip()
    assert os.readlink("/proc/%d/root" % proxy.process.pid) == proxy.root


# ---------------------------------------------------------------- connector

def connector(world, session, *args, stdin=b"", socks=False):
    def enter():
        proxybox.setns(world.run.fd)
    port = (session.socks_sock if socks else
            session.http_sock).getsockname()[1]
    return subprocess.run(
        [proxybox.CONNECT, *(["-5"] if socks else []), "-x",
         "127.0.0.1:%d" % port, *args],
        input=stdin, capture_output=True, preexec_fn=enter, timeout=20)


@pytest.mark.parametrize("socks", [False, True])
def test_the_connector_copies_both_ways(world, ok, tls, socks):
    done = connector(world, ok, "ok.test", "443", stdin=b"d" * 100000,
                     socks=socks)
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout == b"d" * 100000 + b"<bye>"


def test_the_connector_prints_the_reason(world, ok):
    done = connector(world, ok, "example.com", "443")
    assert done.returncode == 1 and done.stdout == b""
    assert done.stderr == (b"stockade-connect: Blocked by sandbox: "
                           b"example.com is not on the allow list\n")
    done = connector(world, ok, "example.com", "443", socks=True)
    assert done.returncode == 1 and b"Blocked by sandbox" in done.stderr


@pytest.mark.parametrize("args", [
    ("a b", "1"), ("a\r\nX: y", "1"), ("ok.test", "0"), ("ok.test", "65536"),
    ("ok.test", "1x"), ("", "1"),
])
def test_the_connector_refuses_what_is_no_host_or_port(world, ok, args):
    assert connector(world, ok, *args).returncode == 1
