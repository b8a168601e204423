"""SPEC X3..X9 and X14 on the real socket, with bytes of our own making."""

import os
import resource
import select
import socket

import msgpack
import pytest

from instance import RpcError

HELLO = [0, 1, "hello", [{"protocol": 1, "client": "raw"}]]


class Raw:
    def __init__(self, service, hello=True):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(service.socket)
        self.sock.settimeout(10)
        self.unpacker = msgpack.Unpacker(raw=False)
        if hello:
            self.send(HELLO)
            assert self.read()[2] is None

    def send(self, *messages):
        self.sock.sendall(b"".join(
            m if isinstance(m, bytes) else msgpack.packb(m) for m in messages))

    def read(self):
        """The next message, or None at the end of the connection."""
        while True:
            for message in self.unpacker:
                return message
            data = self.sock.recv(65536)
            if not data:
                return None
            self.unpacker.feed(data)


@pytest.fixture
def raw(service):
    made = []

    def make(**more):
        made.append(Raw(service, **more))
        return made[-1]

    yield make
    for one in made:
        one.sock.close()


def test_what_comes_before_hello_is_bad_state_and_the_end(raw):
    r = raw(hello=False)
    r.send([0, 7, "ping", [{}]])
    answer = r.read()
    assert answer[:2] == [1, 7] and answer[2]["name"] == "badState"
    assert r.read() is None


def test_another_protocol_is_a_mismatch(raw):
    r = raw(hello=False)
    r.send([0, 1, "hello", [{"protocol": 2, "client": "raw"}]])
    assert r.read()[2]["name"] == "versionMismatch"


CALL = b"\x94\x00\x02\xa4ping\x91"


@pytest.mark.parametrize("data", [
    b"\xc1", msgpack.packb([0, 2, "ping"]), msgpack.packb(5),
    msgpack.packb([0, 2, "ping", []]), msgpack.packb([0, 2, "ping", [{}, {}]]),
    msgpack.packb([0, 2, "ping", [[]]]), msgpack.packb([0, 2, "ping", {}]),
    msgpack.packb([0, -1, "ping", [{}]]), msgpack.packb([0, "x", "ping", [{}]]),
    msgpack.packb([0, 2, 3, [{}]]), msgpack.packb([1, 2, None, {}]),
    msgpack.packb([2, "ping", [{}]]), msgpack.packb([3, 2, "ping", [{}]]),
    CALL + b"\x82\xa1a\x01\xa1a\x01",           # a key twice
    CALL + b"\x81\x01\x01",                     # a key that is no string
    CALL + b"\xd4\x01\x00",                     # an extension type
    CALL + b"\x81\xa1a\xc6\x7f\xff\xff\xff",    # a length above the limit
    CALL + b"\x81\xa1a\xdd\x00\x02\x00\x00",    # items above the limit
    CALL + b"\x81\xa1a" + b"\x91" * 20 + b"\xc0"])
def test_what_is_no_message_ends_the_connection_and_no_other(raw, client, data):
    r = raw()
    r.send(data)
    assert r.read() is None
    assert client.call("ping")["time"] > 0


def test_errors_have_four_fields_and_one_line(client):
    for method, params, name, field in [
            ("no.such", {}, "unknownMethod", None),
            ("ping", {"x": 1}, "badParams", "x"),
            ("sandbox.get", {}, "badParams", "sessionId"),
            ("sandbox.get", {"sessionId": 5}, "badParams", "sessionId"),
            ("sandbox.get", {"sessionId": "no"}, "notFound", None),
            ("sandbox.list", {"state": "frob"}, "badParams", "state"),
            ("sandbox.explain", {}, "badParams", "spec"),
            ("events.subscribe", {"since": 1}, "badParams", "since"),
            ("events.subscribe", {"types": ["frob"]}, "badParams", "types"),
            ("events.unsubscribe", {"subscription": 99}, "notFound", None),
            ("admin.violations", {"limit": 0}, "badParams", "limit"),
            ("hello", {"protocol": 1, "client": ""}, "badState", None)]:
        with pytest.raises(RpcError) as caught:
            client.call(method, **params)
        error = caught.value
        assert error.name == name, (method, error)
        assert error.detail.get("field") == field
        assert "\n" not in error.message


@pytest.mark.parametrize("params,field", [
    ({}, "argv"), ({"argv": []}, "argv"), ({"argv": "x"}, "argv"),
    ({"argv": [""]}, "argv"), ({"argv": ["a\0"]}, "argv"),
    ({"argv": ["x"] * 4097}, "argv"), ({"shell": ""}, "shell"),
    ({"argv": ["true"], "cwd": "rel"}, "cwd"),
    ({"argv": ["true"], "timeoutMs": -1}, "timeoutMs"),
    ({"argv": ["true"], "tty": 1}, "tty"),
    ({"argv": ["true"], "tty": True, "rows": 0}, "rows"),
    ({"argv": ["true"], "tty": True, "cols": 1001}, "cols"),
    ({"argv": ["true"], "passFds": 4}, "passFds"),
    ({"argv": ["true"], "passFds": 1}, "passFds"),
    ({"argv": ["true"], "stdin": 5}, "stdin"),
    ({"argv": ["true"], "stdin": "text"}, "stdin"),
    ({"argv": ["true"], "stdin": False}, "stdin"),
    ({"argv": ["true"], "env": {"A": 1}}, "env"),
    ({"argv": ["true"], "more": 1}, "more")])
def test_a_wrong_field_of_exec_is_named_and_starts_nothing(session, client,
                                                           params, field):
    s = session()
    with pytest.raises(RpcError) as caught:
        client.call("sandbox.exec", sessionId=s.name, **params)
    assert (caught.value.name, caught.value.detail["field"]) == (
        "badParams", field)
    assert client.call("sandbox.get", sessionId=s.name)["execs"] == []


def test_an_id_in_flight_ends_the_connection_and_too_many_are_limit(raw,
                                                                    session):
    s = session()
    hold = [0, 5, "sandbox.exec", [{"sessionId": s.name, "argv": ["true"]}]]
    r = raw()
    r.send(hold, hold)
    while r.read() is not None:
        pass
    r = raw()
    r.send(*[[0, 100 + i, "sandbox.exec",
              [{"sessionId": s.name, "argv": ["true"]}]] for i in range(80)])
    names = []
    while len(names) < 80:
        message = r.read()
        if message[0] == 1:
            names.append(message[2] and message[2]["name"])
    assert set(names) <= {None, "limit"} and "limit" in names


def test_since_replays_without_gap_or_answers_gone(session, service):
    s = session()
    s.ok("echo one; echo two >&2")
    with service.client() as c:
        after = c.call("events.subscribe", sessionId=s.name, since=1)
        assert after["next"] == 1
        seen = [c.event(lambda e: True) for _ in range(8)]
        assert [e["seq"] for e in seen] == list(range(1, 9))
        assert [e["type"] for e in seen[:5]] == [
            "starting", "state", "ready", "state", "state"]
        assert sorted(e["type"] for e in seen[5:]) == ["exit", "stderr",
                                                       "stdout"]
        assert all(e["sessionId"] == s.name and e["time"] > 0 for e in seen)
        with pytest.raises(RpcError) as caught:
            c.call("events.subscribe", sessionId=s.name, since=10**6)
        assert caught.value.name == "gone"


def test_descriptors_are_taken_in_order_and_the_master_is_answered(
        session, service, tmp_path):
    s = session()
    names = [tmp_path / name for name in ("in", "out", "err")]
    names[0].write_bytes(b"from the file")
    fds = [os.open(names[0], os.O_RDONLY)] + [
        os.open(name, os.O_WRONLY | os.O_CREAT) for name in names[1:]]
    with service.client() as c:
        c.call("events.subscribe", sessionId=s.name)
        c.call("sandbox.exec", fds=fds, sessionId=s.name, passFds=3,
               argv=["/bin/sh", "-c", "cat; echo e >&2; ls /proc/self/fd"])
        assert c.event("exit")["exitCode"] == 0
        assert names[1].read_bytes() == b"from the file0\n1\n2\n3\n"
        assert names[2].read_bytes() == b"e\n"
        c.call("sandbox.exec", sessionId=s.name, tty=True, rows=30, cols=90,
               passFds=1, fds=fds[2:], argv=["/bin/sh", "-c", "stty size"])
        assert len(c.fds) == 1
        select.select([c.fds[0]], [], [], 10)
        assert os.read(c.fds[0], 100) == b"30 90\r\n"
        assert c.event("exit")["exitCode"] == 0
    for fd in fds:
        os.close(fd)


def test_hello_tells_the_limits_of_a_client(client):
    limits = client.hello["limits"]
    assert client.hello["server"] == "stockade"
    assert (client.hello["uid"], client.hello["role"]) == (0, "operator")
    for name, value in {
            "messageBytes": 1 << 20, "messageDepth": 16, "messageItems": 65536,
            "stringBytes": 256 << 10, "pathBytes": 4095, "labelBytes": 128,
            "connectionsPerUid": 32, "connections": 256, "calls": 64,
            "sessionsPerUid": 128, "sessions": 1024, "execsPerSession": 32,
            "bindMounts": 64, "protectedPaths": 1024, "runnerStateDirs": 16,
            "execGrantRoots": 64, "egressAllowlist": 256, "envNames": 256,
            "envValueBytes": 32 << 10, "envBytes": 256 << 10,
            "argvWords": 4096, "argvBytes": 1 << 20, "pids": 4096,
            "tmpBytes": 1 << 30, "homeBytes": 512 << 20, "shmBytes": 256 << 20,
            "outputBufferBytes": 256 << 10, "eventChunkBytes": 64 << 10,
            "eventQueueBytes": 4 << 20, "replayEvents": 4096,
            "stdinQueueBytes": 256 << 10, "violations": 1000,
            "tunnelsPerSession": 1024, "tunnelIdleMs": 3600000}.items():
        assert limits[name] == value, name
    assert limits["memoryBytes"] >= 512 << 20
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert limits["tunnels"] == min(16384, (files - 512) // 2)
