"""SPEC A and the options of stockaded: where the setting comes from, the
start-up line, what the probe tells, and what a start needs."""

import os
import re
import shutil
import signal
import subprocess

import pytest

import instance as instance_module
from instance import BUILD, STOCKADED, Instance

NEEDED = ("sys_admin", "setuid", "setgid", "setpcap", "chown", "net_admin",
          "net_bind_service", "kill", "sys_ptrace", "sys_chroot",
          "dac_read_search")
UNWRAPPED = ("; runs are bounded by a cleaned environment, command policy and "
             "guardrails only")
ON = "agent sandbox ON: bubblewrap \u2014 namespace isolation, no kernel boundary"
OFF = "agent sandbox DISABLED by --sandbox off" + UNWRAPPED


@pytest.fixture
def place():
    """A directory and a configuration that uses nothing outside of it."""
    if instance_module.missing():
        pytest.skip(instance_module.missing())
    import tempfile
    path = tempfile.mkdtemp(prefix="stockade-start-")
    os.chmod(path, 0o755)

    def conf(text=""):
        name = os.path.join(path, "stockade.conf")
        with open(name, "w", encoding="utf-8") as f:
            f.write('runtime-dir "%s/run"\nstate-dir "%s/state"\n'
                    'socket "%s/run/s"\n%s\n' % (path, path, path, text))
        os.chmod(name, 0o644)
        return name

    yield conf
    shutil.rmtree(path, ignore_errors=True)


def command(conf, *args):
    return [STOCKADED, "-f", conf, "--libexec",
            os.path.join(BUILD, "libexec"), *args]


def environment(value=None):
    env = {k: v for k, v in os.environ.items()
           if k not in ("NOTIFY_SOCKET", "JOURNAL_STREAM",
                        "CC_SERVER_SANDBOX")}
    if value is not None:
        env["CC_SERVER_SANDBOX"] = value
    return env


def start(conf, *args, env=None, before=()):
    """(status, lines): stopped when it listens, or ended by itself."""
    process = subprocess.Popen(
        [*before, *command(conf, "-d", *args)], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env=environment(env))
    lines = []
    for line in process.stderr:
        lines.append(line.decode(errors="replace").rstrip("\n"))
        if "STOCKADE_PROC=control STOCKADE_EVENT=STARTED" in lines[-1]:
            process.send_signal(signal.SIGTERM)
    process.stderr.close()
    return process.wait(20), lines


def start_lines(lines):
    return [row.split("control: ", 1)[1] for row in lines
            if row.startswith("control: ") and "sandbox" in row]


@pytest.mark.parametrize("option,env,conf,line", [
    (None, None, "", ON), (None, None, "sandbox off", OFF),
    (None, "on", "sandbox off", ON), (" OFF ", "on", "sandbox on", OFF),
    (None, " Require\t", "sandbox off", ON)])
def test_the_setting_comes_from_option_environment_configuration(
        place, option, env, conf, line):
    args = [] if option is None else ["--sandbox", option]
    status, lines = start(place(conf), *args, env=env)
    assert status == 0
    assert start_lines(lines) == [line]


@pytest.mark.parametrize("option,env,conf,status,source", [
    ("maybe", None, "", 2, "option --sandbox"),
    (None, "maybe", "", 2, "environment CC_SERVER_SANDBOX"),
    (None, "", "", 2, "environment CC_SERVER_SANDBOX"),
    (None, None, "sandbox maybe", 1, "stockade.conf:4:")])
def test_another_setting_stops_the_start_and_names_its_source(
        place, option, env, conf, status, source):
    args = [] if option is None else ["--sandbox", option]
    got, lines = start(place(conf), *args, env=env)
    assert got == status
    assert any(source in row for row in lines), lines
    assert start_lines(lines) == []


@pytest.mark.parametrize("missing", NEEDED)
def test_a_start_without_a_capability_names_it(place, missing):
    done = subprocess.run(
        ["setpriv", "--bounding-set", "-" + missing, "--inh-caps",
         "-" + missing, *command(place(), "-d")], stdin=subprocess.DEVNULL,
        capture_output=True, check=False, timeout=20, env=environment())
    assert done.returncode == 1
    rows = done.stderr.decode().splitlines()
    assert len(rows) == 1
    assert "CAP_" + missing.upper() in rows[0]


def test_cap_sys_resource_is_not_needed(place):
    status, lines = start(place(), before=[
        "setpriv", "--bounding-set", "-sys_resource", "--inh-caps",
        "-sys_resource"])
    assert status == 0 and start_lines(lines) == [ON]


def test_n_checks_and_nv_prints_what_reads_back(place):
    conf = place('deny host { "a.example" }\nlimit execs 7')
    assert subprocess.run(command(conf, "-n"), capture_output=True,
                          check=True).stdout == b"configuration OK\n"
    shown = subprocess.run(command(conf, "-nv"), capture_output=True,
                           check=True).stdout.decode()
    assert 'a.example' in shown and "limit execs 7" in shown
    with open(conf, "w", encoding="utf-8") as f:
        f.write(shown)
    assert subprocess.run(command(conf, "-nv"), capture_output=True,
                          check=True).stdout.decode() == shown


@pytest.mark.parametrize("text,want", [
    ("frob 1", "unknown word"), ("sandbox on\nsandbox on", "stands already"),
    ("backend default none\nsandbox require", "contradicts")])
def test_a_wrong_sentence_is_told_with_file_and_line(place, text, want):
    done = subprocess.run(command(place(text), "-n"), capture_output=True,
                          check=False)
    assert done.returncode == 1
    assert re.search(rb"^stockade\.conf:[45]: .*" + want.encode(),
                     done.stderr, re.MULTILINE)


@pytest.mark.parametrize("text", [
    "microvm accel kvm", "managed deny gitPush",
    "autonomy max actFreely", "template default strict",
    'github app 1 key "k"', 'token file "t" for "github.com"',
    'upstream proxy "http://p"', 'sni optional for { "a.b" }',
    'permit unix-socket { "/x" }', "permit loopback-port 1:2", "metrics on",
    "terminal default native", "limit egress-budget 1G", "audit keep 9 1G"])
def test_sentences_of_later_parts_are_errors(place, text):
    done = subprocess.run(command(place(text), "-n"), capture_output=True,
                          check=False)
    assert done.returncode == 1
    assert b": not in this version: " in done.stderr


def test_option_errors_are_2_and_the_version_is_told(place):
    assert subprocess.run([STOCKADED, "--frob"], capture_output=True,
                          check=False).returncode == 2
    assert subprocess.run(command(place(), "-n", "--sandbox", "x"),
                          capture_output=True, check=False).returncode == 2
    done = subprocess.run([STOCKADED, "--version"], capture_output=True,
                          check=False)
    assert done.returncode == 0 and done.stdout.startswith(b"stockaded ")


MECHANISMS = ["bubblewrap", "namespaces", "cgroup", "landlock", "seccomp",
              "guard.create", "guard.read", "guard.connect", "egress.refuse",
              "egress.transparent", "userns.refused", "procsys.readonly"]


def test_the_probe_is_told_as_it_was_found(service, client):
    probe = client.call("probe")
    assert sorted(probe) == ["mechanisms", "platform", "recommendation",
                             "results"]
    assert [row["name"] for row in probe["mechanisms"]] == MECHANISMS
    assert all(set(row) == {"name", "available", "detail"}
               for row in probe["mechanisms"])
    system = os.uname()
    assert probe["platform"] == {"system": system.sysname,
                                 "release": system.release,
                                 "machine": system.machine}
    rows = {row["backend"]: row for row in probe["results"]}
    assert sorted(rows) == ["microvm", "native", "none"]
    assert rows["native"]["note"] == ON.split("ON: ")[1]
    assert rows["native"]["dispatchable"] is True
    assert rows["none"]["note"] == "No isolation: agents run on the host"
    assert rows["none"]["available"] and not rows["microvm"]["available"]
    assert not any("installHint" in row for row in probe["results"])
    assert probe["recommendation"] == "native"
    status = client.call("status")
    assert status["line"] == ON and status["setting"] == "on"
    assert {"setting", "line", "backends", "guard", "version", "uptimeMs",
            "sessions"} == set(status)
    assert [row["label"] for row in status["backends"]] == [
        "Enclosed VM", "Native sandbox", "No isolation"]


def test_a_restarted_daemon_is_no_second_probe():
    if instance_module.missing():
        pytest.skip(instance_module.missing())
    with Instance() as own:
        with own.client() as c:
            before = c.call("probe")
        for name in ("stockade-launcherd", "stockade-control"):
            pid = own.children()[name]
            os.kill(pid, signal.SIGKILL)
            while own.children().get(name, pid) == pid:
                pass
            own.wait_ready()
        with own.client() as c:
            assert c.call("probe") == before
            c.launch("s", own.workdir())
            c.call("sandbox.destroy", sessionId="s")
        log = own.read_log()
        assert log.count("STOCKADE_PROC=stockade-launcherd "
                         "STOCKADE_EVENT=PROBE_ROW "
                         "STOCKADE_NAME=bubblewrap") == 1
        assert len(start_lines(log.splitlines())) == 1
