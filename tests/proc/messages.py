"""Internal messages for process tests: protocol/messages.def read by Python,
packets made and taken apart by an encoder of another author (python3-msgpack).

    chan = Channel(sock, me="supervisor", peer="proxyd")
    chan.send("egress_open", fds=[a, b, c], sandbox=1)
    msg = chan.expect("violation", timeout=5)      # msg.sandbox, msg.fds
    for label, packet, fds in hostile_packets("proxyd", "supervisor"): ...

Packets are SOCK_SEQPACKET datagrams: an array of the code and the fields.
"""

import array
import os
import re
import socket
import time
import types

import msgpack

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PROCS = ("supervisor", "control", "launcherd", "proxyd", "resolver", "lookup",
         "init", "broker")
PACKET_MAX = 65536


def _read(name):
    with open(os.path.join(SOURCE, "protocol", name), encoding="ascii") as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)


def closed_set(macro):
    """The names of a closed set of cause.h, in order: closed_set("VIOLATIONS")
    gives [("FILE_READ", "file-read*"), ...]."""
    body = re.search(r"#define %s\(X\)(.*?)\nenum " % macro,
                     _read("cause.h").replace("\\\n", " "), re.S)
    return re.findall(r"X\((\w+),(?: *\d+,)? *\"([^\"]*)\"\)", body.group(1))


def _numbers():
    numbers = {"UINT64_MAX": 2**64 - 1, "UINT32_MAX": 2**32 - 1}
    for macro, name in (("RUN_CAUSES", "RUN_CAUSE_COUNT"),
                        ("RUN_NOTICES", "RUN_NOTICE_COUNT"),
                        ("VIOLATIONS", "VIOLATION_COUNT"),
                        ("RESOLVE_STATUSES", "RESOLVE_STATUS_COUNT"),
                        ("PROBE_ROWS", "PROBE_ROW_COUNT")):
        numbers[name] = len(closed_set(macro))
    return numbers


class Field:
    def __init__(self, kind, name, low, high):
        self.kind, self.name, self.low, self.high = kind, name, low, high

    def least(self):
        return {"U64": self.low, "STR": "x" * self.low,
                "BIN": b"\x01" * self.low}[self.kind]


class Message:
    def __init__(self, name, code, senders, receivers, low, high, fields):
        self.name, self.code = name, code
        self.senders, self.receivers = senders, receivers
        self.min_fds, self.max_fds, self.fields = low, high, fields

    def pack(self, **values):
        """Fields that are not given take their least value."""
        unknown = set(values) - {f.name for f in self.fields}
        if unknown:
            raise TypeError("%s has no field %s" % (self.name, unknown))
        row = [self.code]
        for field in self.fields:
            row.append(values.get(field.name, field.least()))
        return msgpack.packb(row, use_bin_type=True)


def load():
    numbers = _numbers()

    def number(text):
        return eval(text, {"__builtins__": {}}, numbers)  # our own table

    table = {}
    pattern = (r"MSG_BEGIN\((\w+),\s*(\w+),([^,]*),([^,]*),\s*(\d+),\s*(\d+)"
               r"\)(.*?)MSG_END\(\1\)")
    for name, code, senders, receivers, low, high, body in re.findall(
            pattern, _read("messages.def"), re.S):
        fields = [Field(kind, field, number(least), number(most))
                  for kind, field, least, most in re.findall(
                      r"FIELD_(\w+)\((\w+),\s*([^,]+),\s*([^)]+)\)", body)]
        who = [[p.lower() for p in re.findall(r"PROC_(\w+)", side)]
               for side in (senders, receivers)]
        table[name] = Message(name, int(code, 16), who[0], who[1], int(low),
                              int(high), fields)
    return table


TABLE = load()
BY_CODE = {m.code: m for m in TABLE.values()}


class Ended(Exception):
    """The far end closed the channel."""


def pair():
    """(ours, theirs): theirs is inheritable, for descriptor 3 of a child."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ours, theirs


def send_packet(sock, data, fds=()):
    anc = []
    if fds:
        anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                array.array("i", list(fds)))]
    sock.sendmsg([data], anc)


class Channel:
    """One end of an internal channel. Keeps messages that nobody waited for
    in `backlog`; `expect` looks there first."""

    def __init__(self, sock, me, peer):
        self.sock, self.me, self.peer = sock, me, peer
        self.backlog = []

    def send(self, name, fds=(), **values):
        send_packet(self.sock, TABLE[name].pack(**values), fds)

    def receive(self, timeout=10.0):
        self.sock.settimeout(timeout)
        try:
            data, anc, flags, _ = self.sock.recvmsg(
                PACKET_MAX, socket.CMSG_SPACE(4 * 253))
        except ConnectionResetError:
            # Told once, when the far end closed without having read all.
            # What it had sent can still be read, as chan_recv_fd() does.
            data, anc, flags, _ = self.sock.recvmsg(
                PACKET_MAX, socket.CMSG_SPACE(4 * 253))
        fds = array.array("i")
        for level, kind, body in anc:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(body[:len(body) - len(body) % fds.itemsize])
        if not data:
            raise Ended()
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        row = msgpack.unpackb(data, raw=False,
                              unicode_errors="surrogateescape")
        message = BY_CODE[row[0]]
        assert self.peer in message.senders, message.name
        assert self.me in message.receivers, message.name
        assert message.min_fds <= len(fds) <= message.max_fds, message.name
        assert len(row) == len(message.fields) + 1, message.name
        result = types.SimpleNamespace(name=message.name, fds=list(fds))
        for field, value in zip(message.fields, row[1:]):
            size = value if field.kind == "U64" else len(
                value.encode(errors="surrogateescape")
                if field.kind == "STR" else value)
            assert field.low <= size <= field.high, (message.name, field.name)
            setattr(result, field.name, value)
        return result

    def expect(self, *names, timeout=10.0, **values):
        """The next message with one of these names whose fields equal
        `values`; others are kept in order."""
        def fits(msg):
            return msg.name in names and all(
                getattr(msg, k) == v for k, v in values.items())
        for i, msg in enumerate(self.backlog):
            if fits(msg):
                return self.backlog.pop(i)
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("no %s; backlog: %s" % (
                    "/".join(names), [m.name for m in self.backlog]))
            try:
                msg = self.receive(left)
            except socket.timeout:
                continue
            if fits(msg):
                return msg
            self.backlog.append(msg)

    def ended(self, timeout=5.0):
        """True when the far end closes within the time."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                msg = self.receive(max(0.01, end - time.monotonic()))
                for fd in msg.fds:
                    os.close(fd)
            except (Ended, ConnectionError):
                return True
            except socket.timeout:
                return False
        return False

    def close(self):
        for msg in self.backlog:
            for fd in msg.fds:
                os.close(fd)
        self.sock.close()


def memfd(data, sealed=True):
    """A memfd as common/memfd.h makes it."""
    import fcntl
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    if sealed:
        fcntl.fcntl(fd, 1033, 1 | 2 | 4 | 8)  # F_ADD_SEALS: all four
    return fd


def cstr(text):
    """A path or word as protocol/wire.h writes it: bin with its NUL."""
    return (text if isinstance(text, bytes) else text.encode()) + b"\0"


def lookup_question(paths, uses=None, rules=(), entries=0, time_ms=5000,
                    table=b"", seen=b""):
    """protocol/lookup.h; rules: (glob, root)."""
    items = [[cstr(p), use] for p, use in
             zip(paths, uses or [0] * len(paths))]
    scan = [entries, time_ms, [[cstr(glob), 1 << root, 3, False]
                               for glob, root in rules], [], table, seen]
    return msgpack.packb([3, items, scan], use_bin_type=True)


def lookup_results(rows, found=(), stopped=0):
    """found: (what, path, kind, item, source)."""
    return msgpack.packb(
        [3, list(rows), [[what, cstr(path), kind, item, cstr(source)]
                         for what, path, kind, item, source in found],
         stopped, 0, 0, b""], use_bin_type=True)


def hostile_packets(sender, receiver):
    """Every way of breaking the rules that the table gives, as rows
    (label, bytes, number of descriptors): each type that this sender may not
    send to this receiver, and each permitted type cut, extended, with a field
    too many, out of range, of another type, with wrong descriptors."""
    rows = [
        ("zero garbage", b"\x00" * 64, 0),
        ("unknown code", msgpack.packb([0xffff]), 0),
        ("no array", msgpack.packb(1), 0),
        ("empty array", msgpack.packb([]), 0),
        ("map", msgpack.packb({"a": 1}), 0),
        ("huge array header", b"\xdd\x07\xff\xff\xff", 0),
        ("deep nesting", b"\x91" * 60000, 0),
    ]
    for m in TABLE.values():
        packet = m.pack()
        if sender not in m.senders or receiver not in m.receivers:
            rows.append(("wrong route " + m.name, packet, m.min_fds))
            continue
        values = msgpack.unpackb(packet, raw=False)
        rows.append(("cut " + m.name, packet[:-1], m.min_fds))
        rows.append(("trailing byte " + m.name, packet + b"\0", m.min_fds))
        rows.append(("extra field " + m.name,
                     msgpack.packb(values + [0]), m.min_fds))
        rows.append(("extra descriptor " + m.name, packet, m.max_fds + 1))
        if m.min_fds:
            rows.append(("missing descriptor " + m.name, packet,
                         m.min_fds - 1))
        for i, field in enumerate(m.fields, 1):
            wrong = list(values)
            wrong[i] = -1 if field.kind == "U64" else 5
            rows.append(("wrong type %s.%s" % (m.name, field.name),
                         msgpack.packb(wrong), m.min_fds))
            if field.kind == "U64" and field.high < 2**64 - 1:
                wrong[i] = field.high + 1
            elif field.kind == "STR":
                wrong[i] = "x" * (field.high + 1)
            elif field.kind == "BIN":
                wrong[i] = b"x" * (field.high + 1)
            else:
                continue
            rows.append(("out of range %s.%s" % (m.name, field.name),
                         msgpack.packb(wrong), m.min_fds))
    return rows
