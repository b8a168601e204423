"""SPEC L: the record of a refusal, its merging, its lines, and what only the
run's standard error tells of."""

import json
import subprocess

FIELDS = {"action", "target", "raw", "pid", "exe", "rule", "reason", "port",
          "count", "remedy"}


def refuse(s, host="denied.example.net", times=1):
    for _ in range(times):
        s.run("curl", "-s", "-o", "/dev/null", "http://%s/" % host)


def test_a_refused_connection_is_one_record(session, client):
    s = session()
    sub = client.call("events.subscribe", sessionId=s.name)
    client.call("sandbox.exec", sessionId=s.name, argv=[
        "curl", "-s", "http://denied.example.net/x?token=secret"])
    event = client.event("violation")
    client.call("events.unsubscribe", subscription=sub["subscription"])
    assert event["sessionId"] == s.name
    assert set(event) - FIELDS == {"seq", "time", "sessionId", "type",
                                   "summary"}
    assert (event["action"], event["target"], event["port"], event["reason"],
            event["rule"], event["remedy"], event["count"]) == (
                "network-outbound", "denied.example.net", 80,
                "host_not_allowed", "not on the allow list",
                "--allow denied.example.net", 1)
    assert event["summary"] == \
        "[sandbox] denied network-outbound on denied.example.net"
    assert "secret" not in repr(event)
    assert "secret" not in s.service.read_log()


def test_equal_ones_are_merged_and_sessions_are_apart(session, client):
    one, other = session(), session()
    refuse(one, times=4)
    rows = client.violations(one.name)
    assert len(rows) == 1 and rows[0]["count"] in (1, 2, 3, 4)
    assert set(rows[0]) - FIELDS == {"time", "sessionId", "uid"}
    assert client.violations(other.name) == []
    one.destroy()


def test_the_tools_line_names_rule_and_remedy(session, service):
    s = session()
    refuse(s)
    row = service.ctl("violations", s.name).stdout.decode().strip()
    assert row.endswith(
        s.name + " [sandbox] denied network-outbound on denied.example.net "
        "(not on the allow list; allow with: --allow denied.example.net)")
    rows = json.loads(service.ctl("violations", "--json", s.name).stdout)
    assert rows[0]["target"] == "denied.example.net"


def test_standard_error_tells_of_what_nothing_else_reports(session, client):
    s = session()
    s.sh("/usr/bin/su; cat /proc/1/environ; echo all is well >&2")
    rows = client.violations(s.name)
    assert [(row["action"], row["target"], row["reason"]) for row in rows] == [
        ("process-exec", "/usr/bin/su", "stderr"),
        ("file-read*", "/proc/1/environ", "stderr")]
    assert "Permission denied" in rows[0]["raw"]


def test_protected_files_are_told_with_a_way_out(session, client):
    s = session(prepare=lambda path: subprocess.run(
        ["git", "init", "-q", path], check=True))
    s.sh("git config user.name x; touch .git/hooks/x;"
         "echo '/tmp/x: Device or resource busy' >&2;"
         "echo '/usr/x: Read-only file system' >&2")
    rows = client.violations(s.name)
    assert [(row["action"], row["rule"]) for row in rows] == [
        ("file-write-rename", "**/.git/config"),
        ("file-write-create", "**/.git/hooks/**")], rows
    assert rows[0]["target"].endswith("/.git/config")
    assert rows[0]["remedy"] == (
        "git -c NAME=VALUE, or set it outside the run")
    assert rows[1]["target"].endswith("/.git/hooks/x")


def test_output_that_does_not_pass_the_service_makes_no_record(session,
                                                               service,
                                                               client):
    s = session()
    done = service.ctl("exec", s.name, "--", "cat", "/proc/1/environ")
    assert b"Permission denied" in done.stderr
    assert client.violations(s.name) == []


def test_text_of_a_run_is_cleaned_and_redacted(session, client, service):
    s = session()
    s.sh("printf 'cat: /a\\033[2J%s: Permission denied\\n' "
         "ghp_abcdefghijklmnopqrstuvwxyz0123456789 >&2")
    row = client.violations(s.name)[0]
    assert row["target"] == "/a\\x1b[2J[redacted]", row
    assert "\x1b" not in row["raw"] and "ghp_" not in row["raw"]
    shown = service.ctl("violations", s.name).stdout
    assert b"\x1b" not in shown


def test_one_command_cannot_flood_the_records(session, client):
    s = session()
    s.sh("i=0; while [ $i -lt 2000 ]; do echo \"/f$i: Permission denied\"; "
         "i=$((i+1)); done >&2")
    assert len(client.violations(s.name)) == 100
    assert len(client.call("admin.violations", sessionId=s.name,
                           limit=1000)["rows"]) == 256
