"""SPEC D15, L1..L10 for files: how a refusal is told, by the event, the log and
the closing lines of `run`."""

import json
import os
import re
import time

from conftest import own as give

PYTHON = "/usr/bin/python3"
FLOOD = """
import os
for i in range(20000):
    try: os.close(os.open('%d.key' % i, os.O_CREAT | 1))
    except OSError: pass
for i in range(3000):
    try: os.close(os.open('same.pem', os.O_CREAT | 1))
    except OSError: pass
"""


def log_rows(service, session):
    return [line for line in service.read_log().splitlines()
            if "EVENT=VIOLATION" in line and "SESSION=%s " % session in line]


def test_event_and_log_have_everything(service, client, session):
    s = session()
    assert s.sh("echo x >.env.local")[0] != 0
    begin = time.monotonic()
    client.call("events.subscribe", sessionId=s.name, since=1,
                types=["violation"])
    event = client.event(lambda e: e["type"] == "violation")
    assert time.monotonic() - begin < 1
    target = s.workdir + "/.env.local"
    assert event["action"] == "file-write-create"
    assert event["target"] == target and event["rule"] == "**/.env.*"
    assert event["remedy"] == "--name-exempt '/.env.local'"
    assert event["count"] == 1 and event["pid"] > 1
    assert event["exe"].rsplit("/", 1)[1] in ("dash", "sh", "bash")
    assert event["summary"] == "[sandbox] denied file-write-create on " + target
    line, = log_rows(service, s.name)
    for part in ("ACTION=file-write-create", "TARGET=" + target,
                 "RULE=**/.env.*", "EXE=" + event["exe"],
                 "PID=%d" % event["pid"], "COUNT=1"):
        assert part in line, line
    assert "REMEDY=\"--name-exempt '/.env.local'\"" in line


def test_equal_ones_are_merged_and_two_sessions_kept_apart(client, session):
    a, b = session(), session()
    assert a.sh("for i in 1 2 3 4 5; do echo x >.env; done")[0] != 0
    assert b.sh("echo x >b.key")[0] != 0
    time.sleep(0.2)
    rows = client.violations(a.name)
    assert [(r["target"], r["count"]) for r in rows] == [
        (a.workdir + "/.env", 5)]
    rows = client.violations(b.name)
    assert [(r["target"], r["count"]) for r in rows] == [
        (b.workdir + "/b.key", 1)]


def test_a_flood_is_counted_to_the_last_one(service):
    work = service.workdir()
    begin = time.monotonic()
    done = service.ctl("run", "-C", work, "--", PYTHON, "-c", FLOOD)
    assert done.returncode == 0 and time.monotonic() - begin < 60
    lines = [line for line in done.stderr.decode().splitlines()
             if line.startswith("stockade: denied ")]
    told = sum(int((re.search(r"\((\d+) times\)$", line) or [0, 1])[1])
               for line in lines[:-1])
    assert told + int(re.fullmatch(r"stockade: denied (\d+) more",
                                   lines[-1])[1]) == 23000
    assert len(lines) == 257
    assert re.fullmatch(
        r"stockade: denied file-write-create %s/0\.key \(\*\*/\*\.key\); "
        r"allow with --name-exempt '/0\.key'" % re.escape(work), lines[0])


def test_what_was_not_told_one_by_one_says_so(service, client, session):
    s = session()
    s.run(PYTHON, "-c", FLOOD)
    end = time.monotonic() + 8
    while True:
        rows = client.call("admin.violations", sessionId=s.name,
                           limit=10000)["rows"]
        if sum(r["count"] for r in rows) == 23000:
            break
        assert time.monotonic() < end, sum(r["count"] for r in rows)
        time.sleep(0.1)
    dropped = [r for r in rows if r["target"] == ""]
    assert dropped and all(r["reason"] == "dropped" for r in dropped)
    out = service.ctl("violations", "--limit", "10000", s.name).stdout
    assert b"denied file-write-create on files, too many to tell one by one " \
        in out
    assert s.sh("echo ok >plain")[0] == 0


def test_names_of_a_run_are_cleaned(service):
    work = service.workdir()
    done = service.ctl("run", "-C", work, "--", PYTHON, "-c",
                       "import os\ntry: os.mkdir(b'a\\x1b[2J\\n.key')\n"
                       "except OSError: pass")
    assert b"\x1b" not in done.stderr
    assert b"a\\x1b[2J\\x0a.key" in done.stderr
    done = service.ctl("run", "--json", "-C", work, "--", PYTHON, "-c",
                       "import os\ntry: os.mkdir(b'a\\xff.key')\n"
                       "except OSError: pass")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(r["type"] == "violation" and "\\xff" in r["target"]
               for r in rows)


def test_the_twin_without_the_guard(outside, service):
    work = service.workdir()
    give(work)
    done = outside("cd %s && exec %s -c \"$CODE\" && ls | wc -l" % (
        work, PYTHON), env={"CODE": FLOOD})
    assert done.returncode == 0
    assert len(os.listdir(work)) == 20001
