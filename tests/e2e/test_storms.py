"""A few of the storms of storms.py, and runs beside each other."""

import concurrent.futures
import os
import signal
import subprocess

import pytest

import conftest
import instance
import storms

TWENTY = 20
# Tries names of every run; prints those that were made.
TRY = """
import os, sys
who, all = map(int, sys.argv[1:])
for turn in range(5):
    for i in range(all):
        name = "by%d-%d.r%d" % (who, turn, i)
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except PermissionError:
            continue
        print(i)
"""


@pytest.fixture
def need_tools():
    conftest.need_service()
    if not os.access(storms.ATTACK, os.X_OK):
        pytest.skip("not built: " + storms.ATTACK)


@pytest.mark.parametrize("name", storms.PARTS)
@pytest.mark.parametrize("how", [storms.kill, storms.start])
def test_killed(need_tools, how, name):
    with instance.Instance("limit idle none") as service:
        for _ in range(2):
            how(service, name)


def test_race(need_tools, service):
    counts, told = storms.race(service, 20000)
    assert int(counts["ok"]) > 0 and int(counts["eperm"]) > 0 and told > 0
    assert storms.race_bare(20000)


def test_twenty_runs_meet_their_own_rules(service, session):
    """In one directory at once, and a host process that meets none."""
    first = session()
    work = first.workdir
    spec = {"bindMounts": [{"hostPath": work}], "guestWorkdir": work}
    runs = [session(denyWrite=["%s/**/*.r%d" % (work, i)], **spec)
            for i in range(TWENTY)]

    def argv(i):
        return ["/usr/bin/python3", "-c", TRY, str(i), str(TWENTY)]

    host = subprocess.Popen(argv(TWENTY), cwd=work, stdout=subprocess.PIPE)

    def one(i):
        with service.client() as c:
            return c.run(runs[i].name, argv(i))

    with concurrent.futures.ThreadPoolExecutor(TWENTY) as pool:
        got = list(pool.map(one, range(TWENTY)))
    for i, (status, out, err) in enumerate(got):
        assert status == 0, err
        assert sorted(map(int, out.split())) == sorted(
            n for n in range(TWENTY) if n != i for _ in range(5))
    assert sorted(map(int, host.communicate()[0].split())) == sorted(
        n for n in range(TWENTY) for _ in range(5))
    names = os.listdir(work)
    assert len(names) == 5 * (TWENTY * (TWENTY - 1) + TWENTY)
    assert not [n for n in names if any(
        n.startswith("by%d-" % i) and n.endswith(".r%d" % i)
        for i in range(TWENTY))]


def broker_of(service, launch):
    """A session, and the broker that came with it."""
    def brokers():
        return {p for p in instance.all_pids_below(service.children()[
            "stockade-launcherd"]) if instance.comm(p) == "stockade-broker"}
    before = brokers()
    made = launch()
    broker, = brokers() - before
    return made, broker


@pytest.mark.parametrize("killed", [False, True])
def test_the_end_of_one_run_disarms_no_other(service, session, killed):
    work = service.workdir()
    spec = {"bindMounts": [{"hostPath": work}], "guestWorkdir": work}
    kept = session(denyWrite=[work + "/**/*.kept"], **spec)
    gone, broker = broker_of(service, lambda: session(
        denyWrite=[work + "/**/*.gone"], **spec))
    for s, mine, free in ((kept, "kept", "gone"), (gone, "gone", "kept")):
        assert s.sh("echo >x.%s" % mine)[0] != 0
        s.ok("echo >x.%s; rm x.%s" % (free, free))
    if killed:
        os.kill(broker, signal.SIGKILL)
    else:
        gone.destroy()
    assert kept.sh("echo >x.kept")[0] != 0
    kept.ok("echo >x.gone; rm x.gone")
    assert os.listdir(work) == []
