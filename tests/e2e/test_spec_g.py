"""SPEC G2, G10..G15, G18, G26, App.2 and App.3 in a real sandbox: what each
request is answered, word by word."""

import json

import pytest

import conftest
from instance import Instance

PROBE = r"""
import json, socket, sys
def ask(port, data):
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(10)
    s.sendall(data)
    out = b""
    try:
        while chunk := s.recv(4096):
            out += chunk
    except OSError:
        pass
    return out.decode("latin-1")
print(json.dumps([ask(port, data.encode("latin-1"))
                  for port, data in json.loads(sys.argv[1])]))
"""


def ask(s, port, requests):
    status, out, err = s.run("/usr/bin/python3", "-c", PROBE,
                             json.dumps([[port, data] for data in requests]))
    assert status == 0, err
    return json.loads(out)


LONG = ".".join(["a" * 60] * 3) + ".example.org"
REFUSED = [
    # target, code, words
    ("other.example.org:443", "host_not_allowed",
     "other.example.org is not on the allow list"),
    ("a.sentry.io:443", "host_denied", "a.sentry.io is on the deny list"),
    ("169.254.169.254:80", "host_denied",
     "169.254.169.254 is on the deny list"),
    ("metadata.google.internal:80", "host_denied",
     "metadata.google.internal is on the deny list"),
    ("[fd00:ec2::254]:80", "host_denied",
     "[fd00:ec2::254] is on the deny list"),
    ("8.8.8.8:443", "ip_literal", "address 8.8.8.8 is not on the allow list"),
    ("allowed.example.net:25", "port_not_allowed",
     "port 25 of allowed.example.net is not allowed"),
    ("private.example.net:80", "private_address",
     "private.example.net resolves to a private address"),
    ("local.example.net:80", "private_address",
     "local.example.net resolves to a private address"),
    ("a..b:443", "bad_name", "the host name is not valid"),
    ("0x7f.1:80", "bad_name", "the host name is not valid")]
MALFORMED = ["CONNECT u@allowed.example.net:443", "CONNECT allowed.example.net",
             "CONNECT allowed.example.net:443/x",
             "CONNECT allowed.example.net:0", "CONNECT allowed.example.net:+80",
             "CONNECT allowed.example.net:65536",
             "GET https://allowed.example.net/", "GET /"]


def test_a_refusal_has_its_words_code_and_record(session, client):
    s = session()
    answers = ask(s, 3128, ["CONNECT %s HTTP/1.1\r\n\r\n" % row[0]
                            for row in REFUSED])
    for (target, code, words), answer in zip(REFUSED, answers):
        head, _, body = answer.partition("\r\n\r\n")
        rows = head.split("\r\n")
        assert rows[0] == "HTTP/1.1 403 Blocked by sandbox: " + words
        assert "X-Deny-Reason: " + code in rows
        assert ('Proxy-Status: stockade; error=http_request_denied; '
                'details="%s"' % code) in rows
        assert body.startswith("Blocked by sandbox: " + words + "\nRule: ")
        # Nothing opens a loopback address.
        assert ("To allow it: " in body) == (
            code not in ("host_denied", "bad_name") and
            not target.startswith("local."))
    seen = {(row["target"], row["port"]): row
            for row in client.violations(s.name)}
    for target, code, _ in REFUSED:
        host, _, port = target.rpartition(":")
        row = seen[(host, int(port))]
        assert (row["action"], row["reason"]) == ("network-outbound", code)
        assert row["rule"]


def test_a_long_host_is_cut_and_the_phrase_is_short(session):
    answer = ask(session(), 3128, ["CONNECT %s:443 HTTP/1.1\r\n\r\n" % LONG])
    phrase = answer[0].split("\r\n")[0].split(" ", 2)[2]
    assert len(phrase) <= 100 and "..." in phrase
    assert phrase.endswith("example.org is not on the allow list")


def test_a_malformed_target_is_400(session):
    for answer in ask(session(), 3128, [row + " HTTP/1.1\r\nHost: h\r\n\r\n"
                                        for row in MALFORMED]):
        assert answer.startswith("HTTP/1.1 400 "), answer


def test_network_off_has_its_words_on_both_ways(session):
    s = session(networkEnabled=False)
    answers = ask(s, 3128, [
        "CONNECT allowed.example.net:443 HTTP/1.1\r\n\r\n",
        "GET http://allowed.example.net/ HTTP/1.1\r\nHost: h\r\n"
        "Connection: close\r\n\r\n"])
    for answer in answers:
        assert answer.startswith("HTTP/1.1 403 Blocked by sandbox: the "
                                 "network is off for this run\r\n")
    assert ask(s, 1080, [socks(1, 3, name("allowed.example.net"), 80)]) == [
        reply(2)]


def name(text):
    return chr(len(text)) + text


def socks(command, kind, address, port):
    return "\5\1\0\5" + chr(command) + "\0" + chr(kind) + address + \
        chr(port >> 8) + chr(port & 255)


def reply(code):
    return "\5\0\5" + chr(code) + "\0\1\0\0\0\0\0\0"


@pytest.mark.parametrize("data,want", [
    ("\5\1\2", "\5\xff"), ("\4\1\0\x50\1\1\1\1\0", ""),
    (socks(2, 3, name("allowed.example.net"), 80), reply(7)),
    (socks(3, 3, name("allowed.example.net"), 80), reply(7)),
    (socks(1, 9, "x", 80), reply(8)),
    (socks(1, 3, name("other.example.org"), 80), reply(2)),
    (socks(1, 1, "\x08\x08\x08\x08", 443), reply(2)),
    (socks(1, 4, "\0" * 15 + "\1", 443), reply(2)),
    (socks(1, 3, name("private.example.net"), 80), reply(2)),
    (socks(1, 3, name(""), 80), reply(2)),
    (socks(1, 3, name("a\0.allowed.example.net"), 80), reply(2)),
    (socks(1, 3, name("allowed.example.net"), 443), reply(5))])
def test_socks_replies_are_those_of_the_table(session, data, want):
    assert ask(session(), 1080, [data]) == [want]


def test_failures_to_resolve_or_connect_are_502(session):
    """There is no name server in the service's network."""
    s = session()
    for answer in ask(s, 3128, [
            "CONNECT allowed.example.net:443 HTTP/1.1\r\n\r\n",
            "CONNECT no-such-name.npmjs.org:443 HTTP/1.1\r\n\r\n"]):
        assert answer.startswith("HTTP/1.1 502 "), answer
    assert ask(s, 1080, [socks(1, 3, name("no-such-name.npmjs.org"), 443)]) \
        == [reply(4)]


IDLE = """
import select, socket, sys, time
def tunnel():
    s = socket.create_connection(("127.0.0.1", 3128), 10)
    s.sendall(b"CONNECT allowed.example.net:80 HTTP/1.1\\r\\n\\r\\n")
    assert s.recv(4096).startswith(b"HTTP/1.1 200 "), "refused"
    return s
begin, idle, busy = time.monotonic(), tunnel(), tunnel()
while not select.select([idle], [], [], 0.3)[0]:
    assert time.monotonic() - begin < 20, "it stays"
    busy.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    assert busy.recv(4096), "a busy one was closed"
print(idle.recv(1), time.monotonic() - begin > 1.5)
"""


def test_a_tunnel_ends_after_the_time_that_is_configured():
    conftest.need_service()
    with Instance(conftest.CONF + "limit tunnel-idle 2s\n",
                  hosts=conftest.HOSTS) as own, own.client() as c:
        own.origin(["/usr/bin/python3", "-c", conftest.ORIGIN], "ready")
        assert c.hello["limits"]["tunnelIdleMs"] == 2000
        c.launch("s", own.workdir())
        assert c.run("s", ["python3", "-c", IDLE]) == (0, b"b'' True\n", b"")


def test_a_tunnel_is_answered_without_length(session):
    answer, = ask(session(), 3128, [
        "CONNECT allowed.example.net:80 HTTP/1.1\r\n\r\n"
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"])
    head, _, rest = answer.partition("\r\n\r\n")
    assert head == "HTTP/1.1 200 Connection Established"
    assert "hello from outside" in rest
