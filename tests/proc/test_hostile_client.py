"""A client that breaks the protocol loses its connection and nothing else: the
service goes on, another client's connection too, and the log says why."""

import os
import socket
import time

import msgpack
import pytest

import controlbox

pytestmark = pytest.mark.skipif(controlbox.can_run() is not None,
                                reason=str(controlbox.can_run()))


def pack(value):
    return msgpack.packb(value, use_bin_type=True)


@pytest.fixture(name="box", scope="module")
def _box():
    box = controlbox.Box("log level info\n")
    box.open()
    box.witness = box.client(uid=1)
    yield box
    assert box.alive()
    assert box.witness.call("ping")
    assert box.close() == 0


@pytest.fixture(autouse=True)
def _the_service_goes_on(box):
    yield
    assert box.alive(), box.log()
    assert box.witness.call("ping")["time"] > 0


def double_key():
    """{"a": 1, "a": 2}, which no encoder makes."""
    return b"\x94\x00\x07\xa4ping\x91\x82\xa1a\x01\xa1a\x02"


ENDS = [
    ("garbage", b"\xc1" * 64),
    ("http", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    ("no array", pack("ping")),
    ("empty array", pack([])),
    ("unknown type", pack([7, 1, "ping", [{}]])),
    ("type is a string", pack(["0", 1, "ping", [{}]])),
    ("negative id", pack([0, -1, "ping", [{}]])),
    ("long id", pack([0, 1 << 32, "ping", [{}]])),
    ("no params", pack([0, 1, "ping"])),
    ("params is a map", pack([0, 1, "ping", {}])),
    ("params is empty", pack([0, 1, "ping", []])),
    ("two maps", pack([0, 1, "ping", [{}, {}]])),
    ("method is a number", pack([0, 1, 2, [{}]])),
    ("method has a NUL", pack([0, 1, "pi\0ng", [{}]])),
    ("an answer that nobody asked for", pack([1, 1, None, {}])),
    ("a notification", pack([2, "ping", [{}]])),
    ("a key twice", double_key()),
    ("a number as a key", pack([0, 1, "ping", [{1: 2}]])),
    ("ext", pack([0, 1, "ping", [{"a": msgpack.ExtType(5, b"x")}]])),
    ("timestamp", b"\x94\x00\x01\xa4ping\x91\x81\xa1a\xd6\xff\0\0\0\0"),
    ("deep", b"\x91" * 17),
    ("very deep", b"\x91" * 60000),
    ("deep map", b"\x81\xa1a" * 20),
    ("2 GiB array", b"\xdd\x7f\xff\xff\xff"),
    ("4 GiB map", b"\xdf\xff\xff\xff\xff"),
    ("array of one too many", b"\xdd\x00\x01\x00\x00"),
    ("2 GiB string", b"\xdb\x7f\xff\xff\xff"),
    ("1 MiB string", b"\x94\x00\x01\xa4ping\x91\x81\xa1a\xdb\x00\x10\x00\x00"),
    ("trailing byte", pack([0, 1, "ping", [{}]]) + b"\xc1"),
]


@pytest.mark.parametrize("data", [row[1] for row in ENDS],
                         ids=[row[0] for row in ENDS])
def test_it_ends_the_connection(box, data):
    client = box.client(uid=2)
    client.send_raw(data)
    assert client.ended()
    box.channel.expect("client_gone", client=client.number)


def test_the_log_says_which_rule(box):
    client = box.client(uid=3)
    client.send_raw(double_key())
    assert client.ended()
    box.wait_log("a key stands twice in a map")


def test_before_hello_it_is_the_same(box):
    client = box.connect(uid=2)
    client.send_raw(b"\xdd\x7f\xff\xff\xff")
    assert client.ended()


def test_a_claimed_length_costs_no_memory(box):
    def resident():
        return int(box.status_field("VmRSS").split()[0])
    clients = [box.client(uid=20 + i % 8) for i in range(50)]
    before = resident()
    for client in clients:
        # a million bytes are announced, ten are sent
        client.send_raw(b"\x94\x00\x01\xa4ping\x91\x81\xa1a\xc6\x00\x0f\x00"
                        b"\x00" + b"x" * 10)
    assert box.witness.call("ping")
    assert resident() - before < 2048
    for client in clients:
        client.close()
        box.channel.expect("client_gone", client=client.number)


def test_bytes_may_come_one_by_one(box):
    client = box.client(uid=2)
    data = pack([0, 99, "ping", [{}]])
    for i in range(len(data)):
        client.send_raw(data[i:i + 1])
    assert client.answer(99)["time"]


def test_a_long_message_in_small_pieces_costs_little(box):
    """Each byte is looked at once, however it comes."""
    client = box.client(uid=2)
    data = pack([0, 99, "ping", [{"a": [1] * 65000}]])

    def cpu():
        with open("/proc/%d/stat" % box.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    before = cpu()
    for at in range(0, len(data), 16):
        client.send_raw(data[at:at + 16])
    with pytest.raises(controlbox.Error, match="badParams"):
        client.answer(99)
    assert cpu() - before < 2.0


def test_many_requests_in_one_piece_are_all_answered(box):
    client = box.client(uid=2)
    client.send_raw(b"".join(pack([0, 1000 + i, "ping", [{}]])
                             for i in range(5000)))
    for i in range(5000):
        assert client.answer(1000 + i)["time"]


def test_who_does_not_read_its_answers_is_not_read_either(box):
    client = box.client(uid=2)
    client.sock.setblocking(False)
    data = pack([0, 1, "probe", [{}]])
    sent = 0
    end = time.monotonic() + 3
    while time.monotonic() < end and sent < 64 << 20:
        try:
            sent += client.sock.send(data * 100)
        except BlockingIOError:
            if sent and not wait_writable(client.sock, 0.3):
                break
    assert sent < 32 << 20
    assert box.witness.call("ping")
    client.sock.setblocking(True)
    client.close()
    box.channel.expect("client_gone", client=client.number)


def wait_writable(sock, timeout):
    import select
    return bool(select.select([], [sock], [], timeout)[1])


def test_it_may_end_in_the_middle(box):
    for cut in range(1, 12):
        client = box.client(uid=2)
        client.send_raw(pack([0, 1, "ping", [{}]])[:cut])
        client.close()
        box.channel.expect("client_gone", client=client.number)


def test_floods_of_connections_that_say_nothing(box):
    socks = []
    for _ in range(40):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(box.path)
        socks.append(sock)
    asks = [box.channel.expect("client_ask") for _ in socks]
    for sock in socks:
        sock.close()
    for i, ask in enumerate(asks):
        for fd in ask.fds:
            os.close(fd)
        box.channel.send("client_answer", conn=ask.conn, client=90000 + i,
                         uid=4, is_operator=0)
    for i in range(len(asks)):
        box.channel.expect("client_gone", client=90000 + i)


def pipes(n):
    fds = []
    for _ in range(n):
        fds += os.pipe()
    return fds[:n], fds


def test_descriptors_that_nobody_asked_for_are_bounded(box):
    client = box.client(uid=2)
    give, made = pipes(8)
    try:
        for _ in range(3):
            client.send_raw(b"\x94", give)
            client.send_raw(pack([0, 1, "ping", [{}]])[1:])
    except BrokenPipeError:
        pass
    assert client.ended()
    for fd in made:
        os.close(fd)


def test_more_descriptors_than_fit_end_the_connection(box):
    client = box.client(uid=2)
    give, made = pipes(40)
    client.send_raw(pack([0, 1, "ping", [{}]]), give)
    assert client.ended()
    for fd in made:
        os.close(fd)


def test_more_pass_fds_than_descriptors_is_bad_params(box):
    client = box.client(uid=2)
    error = client.refused("sandbox.exec", sessionId="none", argv=["x"],
                           passFds=1)
    assert error.detail["field"] == "passFds"
    give, made = pipes(4)
    error = client.refused("sandbox.exec", give, sessionId="none",
                           argv=["x"], passFds=4)
    assert error.detail["field"] == "passFds"
    for fd in made:
        os.close(fd)


def test_descriptors_of_a_refused_call_are_closed(box):
    client = box.client(uid=2)
    read_end, write_end = os.pipe()
    error = client.refused("sandbox.exec", [write_end], sessionId="none",
                           passFds=1, nonsense=True)
    assert error.name == "badParams"
    os.close(write_end)
    # nobody holds it: end of file, not a wait
    assert os.read(read_end, 1) == b""
    os.close(read_end)


def test_descriptors_stay_with_their_request(box):
    """Glued messages: the second one's descriptor comes with the first's
    bytes, and is found by order."""
    client = box.client(uid=2)
    read_end, write_end = os.pipe()
    data = pack([0, 50, "ping", [{}]])
    client.send_raw(data + pack([0, 51, "ping", [{}]]), [])
    client.send_raw(pack([0, 52, "sandbox.exec", [
        {"sessionId": "none", "argv": ["x"], "passFds": 1}]]), [write_end])
    assert client.answer(50) and client.answer(51)
    with pytest.raises(controlbox.Error) as caught:
        client.answer(52)
    assert caught.value.detail.get("field") != "passFds"
    os.close(write_end)
    assert os.read(read_end, 1) == b""
    os.close(read_end)


def test_descriptors_run_out_and_come_back():
    """At EMFILE connections are accepted and closed, so that the loop does not
    spin, and accepted for good again later."""
    box = controlbox.Box("", nofile=24)
    box.open()
    socks = []
    try:
        while "no descriptor left" not in box.log():
            assert len(socks) < 100
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(box.path)
            sock.settimeout(0.2)
            socks.append(sock)
            try:
                ask = box.channel.expect("client_ask", timeout=0.2)
            except TimeoutError:
                assert sock.recv(1) == b""
                continue
            for fd in ask.fds:
                os.close(fd)
            box.channel.send("client_answer", conn=ask.conn,
                             client=len(socks), uid=len(socks))
        for sock in socks:
            sock.close()
        box.channel.expect("client_gone", client=1)
        box.last_client = 1000
        assert box.client(uid=2).call("ping")
    finally:
        box.close()


def test_log_lines_of_a_flood_are_counted(box):
    client = box.client(uid=2)
    before = box.log().count("CALL_REFUSED")
    for _ in range(300):
        client.send("no.such")
    for i in range(300):
        with pytest.raises(controlbox.Error):
            client.answer(client.next_id - 300 + i)
    assert box.log().count("CALL_REFUSED") - before < 30


def test_control_bytes_do_not_reach_the_log(box):
    client = box.client(uid=2)
    client.refused("ping", **{"\x1b[31mred\n": 1})
    assert "\x1b" not in box.log()


def test_every_method_survives_every_wrong_type(box):
    """Whatever is sent for whatever parameter, there is an answer."""
    import re
    with open(os.path.join(controlbox.messages.SOURCE, "protocol",
                           "methods.def"), encoding="ascii") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    values = [None, True, 0, -1, 1 << 63, 1.5, float("nan"), "", "x" * 300,
              "a\0b", b"", b"x", [], ["a", 1], {}, {"a": {"b": [1]}}]
    client = box.client(uid=2)
    asked = 0
    for name, body in re.findall(
            r'METHOD_BEGIN\(\w+, "([^"]+)".*?\n(.*?)METHOD_END', text, re.S):
        if name in ("hello", "sandbox.launch", "sandbox.explain"):
            continue    # the session code's own test
        params = re.findall(r'PARAM\("([^"]+)"', body)
        for param in params:
            for value in values:
                id = client.send(name, **{param: value})
                try:
                    client.answer(id)
                except controlbox.Error as error:
                    assert error.code in (2, 3, 5, 6, 8, 9), (name, param)
                asked += 1
    assert asked > 200


def launch(client, **spec):
    spec = dict({"bindMounts": [{"hostPath": "/srv/w"}],
                 "workspaceId": "w"}, **spec)
    return client.send("sandbox.launch", spec=spec)


def test_more_than_64_calls_in_flight_are_answered_limit(box):
    """Launches stay in flight as long as nobody answers their look-up."""
    client = box.client(uid=30)
    ids = [launch(client, sessionId="s%d" % i) for i in range(64)]
    for _ in ids:
        for fd in box.channel.expect("lookup_ask").fds:
            os.close(fd)
    with pytest.raises(controlbox.Error) as caught:
        client.call("ping")
    assert caught.value.name == "limit"
    client.close()
    box.channel.expect("client_gone", client=client.number)


def test_an_id_of_a_call_in_flight_ends_the_connection(box):
    client = box.client(uid=31)
    launch(client, sessionId="once")
    ask = box.channel.expect("lookup_ask")
    for fd in ask.fds:
        os.close(fd)
    client.send("ping", id=1000)
    assert client.answer(1000)
    client.send("ping", id=client.next_id - 1)
    assert client.ended()
    # the answer to a call whose client is gone goes nowhere
    box.channel.send("lookup_answer", request=ask.request, error=2,
                     reason="gone")
