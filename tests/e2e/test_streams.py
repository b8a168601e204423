"""Event streams of a real run: a slow reader makes the run wait, an observer
does not, and both know exactly what they have missed (K7, K15, X9)."""

import os
import threading
import time

import pytest

BYTES = 40 << 20
LINE = ["sh", "-c", "head -c %d /dev/zero | tr '\\0' a" % BYTES]


@pytest.fixture(name="stream")
def _stream(service):
    """A session of its own, with the client that launched it."""
    with service.client() as client:
        name = "stream-%d" % time.monotonic_ns()
        client.launch(name, service.workdir())
        client.session = name
        yield client
        client.call("sandbox.destroy", sessionId=name)


def take(client, last=None, until="exit"):
    """Bytes and overruns up to an event; every seq follows the one before."""
    got, overruns = 0, []
    while True:
        event = client.event(lambda e: True)
        first = event["first"] if event["type"] == "overrun" else event["seq"]
        assert last is None or first == last + 1, event
        last = event["seq"]
        if event["type"] == "overrun":
            overruns.append((event["first"], event["last"]))
        elif event["type"] == "stdout":
            got += len(event["data"])
            assert set(event["data"]) == {ord("a")}
        elif event["type"] == until:
            return got, overruns, last


def test_a_slow_reader_makes_the_run_wait_and_loses_nothing(stream):
    stream.call("events.subscribe", sessionId=stream.session)
    stream.call("sandbox.exec", sessionId=stream.session, argv=LINE)
    time.sleep(1)    # what is tested is that nobody reads for a while
    got, overruns, _ = take(stream)
    assert got == BYTES
    assert overruns == []


def test_who_only_watches_stops_nobody_and_gets_one_overrun(stream, service):
    with service.client() as observer:
        observer.call("events.subscribe", sessionId=stream.session)
        stream.call("events.subscribe", sessionId=stream.session)
        stream.call("sandbox.exec", sessionId=stream.session, argv=LINE)
        got, overruns, last = take(stream)
        assert (got, overruns) == (BYTES, [])
        seen, overruns, end = take(observer)
        assert end == last
        assert len(overruns) == 1
        assert seen < BYTES
        with pytest.raises(Exception, match="gone"):
            observer.call("events.subscribe", sessionId=stream.session,
                          since=overruns[0][0])
        answer = observer.call("events.subscribe", sessionId=stream.session,
                               since=overruns[0][1] + 1)
        assert answer["next"] == overruns[0][1] + 1


def test_since_replays_what_was_sent_before(stream, service):
    stream.call("events.subscribe", sessionId=stream.session)
    stream.call("sandbox.exec", sessionId=stream.session,
                argv=["echo", "once"])
    stream.event("exit")
    with service.client() as later:
        answer = later.call("events.subscribe", sessionId=stream.session,
                            since=1)
        assert answer["next"] == 1
        events = []
        while not events or events[-1]["type"] != "exit":
            events.append(later.event(lambda e: True))
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    types = [e["type"] for e in events]
    assert types[0] == "starting" and types.count("ready") == 1
    assert types.index("ready") < types.index("stdout")


def test_a_filtered_reader_is_not_waited_for(stream):
    """Who asked for `exit` alone takes no output; there is nothing to wait
    for."""
    stream.call("events.subscribe", sessionId=stream.session, types=["exit"])
    stream.call("sandbox.exec", sessionId=stream.session, argv=LINE)
    assert stream.event("exit")["exitCode"] == 0


def test_output_of_two_sessions_is_not_mixed(service):
    with service.client() as client:
        names = ["mix-%d-%d" % (os.getpid(), i) for i in range(2)]
        for name in names:
            client.launch(name, service.workdir())
        client.call("events.subscribe")
        for name in names:
            client.call("sandbox.exec", sessionId=name,
                        argv=["sh", "-c", "yes %s | head -c 300000" % name])
        ended, text = set(), {name: b"" for name in names}
        while len(ended) < 2:
            event = client.event(lambda e: e["sessionId"] in names)
            if event["type"] == "stdout":
                text[event["sessionId"]] += event["data"]
            elif event["type"] == "exit":
                ended.add(event["sessionId"])
        for name in names:
            assert len(text[name]) == 300000
            assert set(text[name].split()) <= {
                name.encode(), text[name].split()[-1]}
            client.call("sandbox.destroy", sessionId=name)


def test_two_readers_in_turn_get_the_same(stream, service):
    results = []
    with service.client() as other:
        other.call("events.subscribe", sessionId=stream.session)
        stream.call("events.subscribe", sessionId=stream.session)
        thread = threading.Thread(
            target=lambda: results.append(take(other)))
        thread.start()
        stream.call("sandbox.exec", sessionId=stream.session,
                    argv=["sh", "-c", "head -c 200000 /dev/zero | "
                          "tr '\\0' a"])
        mine = take(stream)
        thread.join(20)
    assert results and results[0][0] == mine[0] == 200000
    assert results[0][2] == mine[2]
