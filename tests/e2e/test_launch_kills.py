"""A part of the service is killed while a launch is under way: the client gets
an answer or a closed connection, nothing is left, and the next launch works
(SPEC A22, A23, C23, K22).

Ten moments for each part in the first 30 ms after the request, most of them
early, since a launch takes about ten; five instances with two of them each,
because the delay before a restart doubles."""

import os
import random
import re
import signal
import time

import pytest

import conftest
import instance

PARTS = ("stockade-control", "stockade-launcherd", "stockade-proxyd",
         "stockade-resolver", "stockade-lookup", "stockade-broker",
         "bwrap", "init")
INSTANCES = 5
MOMENTS = 10
MOMENTS_MS = 30
ANSWER_S = 15       # LAUNCH_MS and a restart
NEXT_S = 5
LEFT_S = 3
# What may be said of a launch that failed by a death.
NAMES = {"restarting", "hostError", "unavailable", "lookupFailed",
         "guardUnavailable"}


@pytest.fixture(params=range(INSTANCES))
def own(request):
    conftest.need_service()
    with instance.Instance("limit idle none") as running:
        running.number = request.param
        yield running
        assert running.stop() == 0


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid),
                  encoding="ascii") as f:
            return [int(child) for child in f.read().split()]
    except OSError:
        return []


def below(pid):
    found = []
    for child in children(pid):
        found += [child, *below(child)]
    return found


def victims(daemons, name):
    """Those of a run are waited for; they last milliseconds."""
    if name in daemons:
        return [daemons[name]]
    launcherd = daemons["stockade-launcherd"]
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        found = [p for p in below(launcherd)
                 if instance.comm(p) in (name, "stockade-" + name)]
        if found:
            return found
    return []


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def answer(client, ident):
    """'warm', the name of the error, or 'closed'."""
    try:
        return client.finish(ident, ANSWER_S)["handle"]["state"]
    except instance.RpcError as error:
        assert error.message and "\n" not in error.message
        return error.name
    except (instance.Closed, OSError) as error:
        assert not isinstance(error, TimeoutError), "no answer"
        return "closed"


def connect(service):
    end = time.monotonic() + NEXT_S
    while True:
        try:
            return service.client()
        except (OSError, instance.Closed):
            assert time.monotonic() < end, service.read_log()
            time.sleep(0.01)


def next_launch(service, workdir):
    """Within NEXT_S seconds one works."""
    end = time.monotonic() + NEXT_S
    while True:
        try:
            with connect(service) as client:
                client.call("sandbox.launch", replace=True,
                            spec=client.spec("next", workdir))
                assert client.run("next", ["echo", "on"])[:2] == (0, b"on\n")
                client.call("sandbox.destroy", sessionId="next")
            return
        except (instance.RpcError, instance.Closed, OSError) as error:
            assert time.monotonic() < end, (error, service.read_log())
            time.sleep(0.02)


def destroy_all(service):
    with connect(service) as client:
        for handle in client.call("sandbox.list")["handles"]:
            try:
                client.call("sandbox.destroy",
                            sessionId=handle["sessionId"])
            except instance.RpcError as error:
                assert error.name == "notFound"


def cgroups(service):
    return [path for path, _, _ in os.walk("/sys/fs/cgroup")
            if service.cgroup in path.split("/")[:-1]]


def name_of_cgroup(service, client, workdir):
    """The directory of this instance's runs, from a live one."""
    client.launch("first", workdir)
    (init,) = [p for p in below(service.children()["stockade-launcherd"])
               if instance.comm(p) == "init"]
    with open("/proc/%d/cgroup" % init, encoding="ascii") as f:
        name = re.search(r"stockade-[0-9a-f][^/]+", f.read()).group(0)
    service.cgroup = name
    assert cgroups(service)                 # the twin of the checks below
    client.call("sandbox.destroy", sessionId="first")


def left(service):
    """Processes that are no daemon's, and cgroups of runs."""
    daemons = set(service.children().values())
    return [instance.comm(p) for p in instance.all_pids_below(
        service.process.pid) if p not in daemons] + cgroups(service)


def nothing_is_left(service):
    end = time.monotonic() + LEFT_S
    while True:
        rest = left(service)
        if not rest:
            return
        assert time.monotonic() < end, (rest, service.read_log())
        time.sleep(0.02)


def one(service, name, delay_ms, workdir):
    client = connect(service)
    before = {name: pid for name, pid in service.children().items()
              if name in instance.DAEMONS}
    ident = client.start("sandbox.launch",
                         spec=client.spec("s", workdir, goneMs=0))
    time.sleep(delay_ms / 1000)             # the moment is what is tested
    kill(victims(before, name))
    told = answer(client, ident)
    assert told in NAMES | {"warm", "closed"}, told
    if told == "closed":
        assert name == "stockade-control"
    client.close()
    next_launch(service, workdir)
    destroy_all(service)
    nothing_is_left(service)
    after = service.children()
    dead = {n for n, p in before.items() if after.get(n) != p}
    assert dead <= {name}, service.read_log()   # no other one died of it
    return told


def test_a_launch_survives_the_death_of_a_part_or_fails_cleanly(own):
    dice = random.Random(own.number)
    workdir = own.workdir()
    with own.client() as client:
        name_of_cgroup(own, client, workdir)
    for moment in range(own.number, MOMENTS, INSTANCES):
        for name in PARTS:
            part = (moment + dice.random()) / MOMENTS
            delay_ms = MOMENTS_MS * part * part
            told = one(own, name, delay_ms, workdir)
            print("%-18s after %4.1f ms: %s" % (name, delay_ms, told))
