"""SPEC Y1, Y2, Y6, Y12, Y14, Y16: every subcommand's status and JSON, and that
manual and completion know every option."""

import json
import os
import re
import signal
import subprocess

import pytest

import instance as instance_module
from instance import CTL, RUN_USER, SOURCE

COMMANDS = ("run exec ps inspect events violations kill pause resume probe "
            "status").split()


@pytest.fixture
def session_tool(session, service):
    s = session()
    s.ctl = service.ctl
    s.run_options = ["run", "--user", RUN_USER, "-C", s.workdir]
    return s


@pytest.mark.parametrize("args,count", [
    (["ps", "--json"], 1), (["--json", "ps"], 1), (["status", "--json"], 1),
    (["probe", "--json"], 1), (["inspect", "--json", "ID"], 1),
    (["inspect", "ID", "--json"], 1), (["violations", "--json"], 1),
    (["violations", "--json", "ID"], 1), (["pause", "--json", "ID"], 1),
    (["kill", "--json", "-s", "TERM", "ID"], 1), (["kill", "--json", "ID"], 1),
    (["kill", "--json", "no-such"], 0), (["inspect", "--json", "no-such"], 0),
    (["exec", "--json", "ID", "--", "sh", "-c", "echo a; exit 3"], None),
    (["RUN", "--json", "--", "sh", "-c", "echo a; echo b >&2"], None),
    (["RUN", "--json", "--", "no-such-program"], None)])
def test_json_is_all_that_is_printed(session_tool, args, count):
    s = session_tool
    given = []
    for arg in args:
        given += s.run_options if arg == "RUN" else [
            s.name if arg == "ID" else arg]
    out = s.ctl(*given).stdout.decode()
    assert out == "" or out.endswith("\n")
    values = [json.loads(row) for row in out.splitlines()]
    assert count in (None, len(values))
    if count is None:
        assert values and all("type" in value for value in values)


def test_json_of_resume_and_events(session_tool, service):
    s = session_tool
    s.ctl("pause", s.name)
    assert json.loads(s.ctl("resume", "--json", s.name).stdout)["state"] == \
        "warm"
    following = subprocess.Popen(
        [CTL, "--socket", service.socket, "events", "--json", "--since", "1",
         s.name], stdout=subprocess.PIPE)
    assert json.loads(following.stdout.readline())["type"] == "starting"
    s.destroy()
    rows = [json.loads(row) for row in following.stdout]
    assert rows[-1]["state"] == "destroyed"
    assert following.wait(10) == 0


@pytest.mark.parametrize("args,status", [
    (["exec", "ID", "--", "true"], 0), (["exec", "ID", "--", "false"], 1),
    (["exec", "ID", "--", "no-such"], 127), (["exec", "ID", "--", "/usr"], 126),
    (["exec", "ID", "--", "/usr/bin/su"], 126),
    (["exec", "ID", "--", "sh", "-c", "kill -9 $$"], 137),
    (["exec", "--timeout", "1s", "ID", "--", "sleep", "9"], 124),
    (["exec", "-C", "/usr", "ID", "--", "true"], 125),
    (["exec", "no-such", "--", "true"], 125), (["exec", "ID"], 2),
    (["exec", "--env", "SURELY_NOT_SET", "ID", "--", "true"], 2),
    (["RUN", "--backend", "frob", "--", "true"], 125),
    (["RUN", "--mode", "frob", "--", "true"], 125),
    (["RUN", "--allow", "*", "--", "true"], 125),
    (["RUN", "--mount", "/etc", "--", "true"], 125),
    (["RUN", "--timeout", "0", "--", "true"], 2),
    (["RUN", "--timeout", "1d", "--", "true"], 2),
    (["RUN", "--memory", "1T", "--", "true"], 2),
    (["RUN", "--cpus", "0", "--", "true"], 2),
    (["run", "--user", "root", "-C", "DIR", "--", "true"], 125),
    (["run", "--user", "no-such-user", "-C", "DIR", "--", "true"], 125),
    (["run", "-C", "/no/such", "--", "true"], 125),
    (["ps"], 0), (["ps", "-x"], 2), (["status"], 0), (["status", "x"], 2),
    (["probe"], 0), (["probe", "x"], 2), (["inspect", "ID"], 0),
    (["inspect"], 2), (["inspect", "no-such"], 125),
    (["events", "a", "b"], 2), (["events", "--since", "1"], 2),
    (["events", "--since", "0", "ID"], 2), (["events", "no-such"], 125),
    (["events", "--types", "frob", "ID"], 125),
    (["violations"], 0), (["violations", "--limit", "0"], 2),
    (["violations", "no-such"], 125), (["kill", "ID"], 0), (["kill"], 2),
    (["kill", "-s", "TERM", "ID"], 0), (["kill", "-s", "SIGTERM", "ID"], 0),
    (["kill", "-s", "FROB", "ID"], 2), (["kill", "--exec", "x", "ID"], 2),
    (["kill", "-s", "TERM", "--exec", "x", "ID"], 125),
    (["pause", "ID"], 0), (["pause"], 2), (["pause", "no-such"], 125),
    (["resume", "ID"], 125), (["resume"], 2), (["--socket"], 2),
    (["--socket", "/no/such", "status"], 125)])
def test_the_status_says_what_happened(session_tool, args, status):
    s = session_tool
    given = []
    for arg in args:
        given += s.run_options if arg == "RUN" else [
            {"ID": s.name, "DIR": s.workdir}.get(arg, arg)]
    done = s.ctl(*given)
    assert done.returncode == status, done.stderr
    if status in (2, 125):
        assert done.stdout == b"" and done.stderr.startswith(b"stockade: ")


def test_root_is_refused_by_the_words_of_the_service(session_tool):
    done = session_tool.ctl("run", "--user", "root", "-C",
                            session_tool.workdir, "--", "true")
    assert done.stderr == (
        b"stockade: a run needs a user that is not root; use --user NAME, or "
        b"run-user in stockade.conf\n")


@pytest.mark.parametrize("sudo_user,uid", [(RUN_USER, None), ("root", None),
                                           ("nobody", 65534)])
def test_roots_runs_are_those_of_who_called_sudo(session_tool, sudo_user, uid):
    import pwd
    done = session_tool.ctl("run", "-C", session_tool.workdir, "--", "id",
                            "-u", env=dict(os.environ, SUDO_USER=sudo_user))
    assert int(done.stdout) == (uid or pwd.getpwnam(RUN_USER).pw_uid)


def test_the_socket_is_named_by_option_or_variable(service):
    done = subprocess.run([CTL, "status"], capture_output=True, check=False,
                          env={"STOCKADE_SOCKET": service.socket})
    assert done.returncode == 0
    assert os.stat(CTL).st_mode & 0o6000 == 0


def test_ps_and_probe_have_their_columns(session_tool):
    rows = session_tool.ctl("ps").stdout.decode().splitlines()
    assert rows[0].split() == ["ID", "SESSION", "BACKEND", "STATE", "MODE",
                               "USER", "AGE", "EXECS", "MEMORY", "DENIED"]
    assert rows[1].split()[1:6] == [session_tool.name, "native", "warm",
                                    "chat", RUN_USER]
    rows = session_tool.ctl("probe").stdout.decode().splitlines()
    assert rows[0].startswith("agent sandbox ON: bubblewrap \u2014 ")
    assert [row.split()[0] for row in rows[1:4]] == ["microvm", "native",
                                                     "none"]
    assert len(rows) == 1 + 3 + 12
    assert "No isolation: agents run on the host (runs with it are not in " \
        "this version)" in rows[3]
    assert b"(runs with it are not in this version)" in \
        session_tool.ctl("status").stdout


def test_an_unclear_name_is_refused(session_tool, session):
    session()
    stem = session_tool.name.rsplit("-", 1)[0]
    done = session_tool.ctl("inspect", stem)
    assert done.returncode == 125 and b"more than one" in done.stderr


def test_colour_only_on_a_terminal(session_tool):
    for command in COMMANDS[2:4] + COMMANDS[-2:]:
        args = [session_tool.name] if command == "inspect" else []
        assert b"\x1b" not in session_tool.ctl(command, *args).stdout


# ---------------------------------------------------------------- documents

def options():
    found = {}
    for name in ("run", "show", "main"):
        with open(os.path.join(SOURCE, "supervisor/ctl/%s.c" % name),
                  encoding="utf-8") as f:
            for option, takes in re.findall(
                    r'\{ "(-[-a-z]+|-C)", \w+, (\w+)', f.read()):
                if takes != "NULL":     # of a part that is not built
                    found[option] = name
            f.seek(0)
            if '"--json"' in f.read():
                found["--json"] = name
    return found


def test_manual_and_completion_know_every_option():
    with open(os.path.join(SOURCE, "supervisor/ctl/stockadectl.1"),
              encoding="utf-8") as f:
        manual = f.read().replace("\\-", "-").replace("\\(hy", "-")
    with open(os.path.join(SOURCE, "contrib/completion/stockadectl"),
              encoding="utf-8") as f:
        completion = f.read()
    found = options()
    assert {"-C", "--mount", "--since", "--socket", "-s", "--json"} <= set(
        found)
    for option in found:
        assert re.search(r"Fl " + re.escape(option[1:]) + r"(\s|$)", manual,
                         re.MULTILINE), option
        if option != "-h":
            assert re.search(r"(^|[\s\"])%s([\s\"])" % re.escape(option),
                             completion), option
    for command in COMMANDS:
        assert re.search(r"Cm %s\b" % command, manual), command
        assert re.search(r"\b%s\b" % command, completion), command


def test_the_service_manual_knows_every_option():
    with open(os.path.join(SOURCE, "supervisor/stockaded.8"),
              encoding="utf-8") as f:
        manual = f.read().replace("\\-", "-")
    for option in ("d", "f", "n", "v", "-libexec", "-sandbox", "-version"):
        assert re.search(r"Fl [a-z]*%s(\s|$)" % option, manual,
                         re.MULTILINE), option


def test_completion_completes(service):
    script = ('. %s; COMP_WORDS=(stockadectl "$@"); COMP_CWORD=$#; '
              '_stockadectl; echo "${COMPREPLY[@]}"' % os.path.join(
                  SOURCE, "contrib/completion/stockadectl"))

    def complete(*words):
        return subprocess.run(
            ["/bin/bash", "-c", script, "bash", *words], check=True,
            capture_output=True, env={
                "PATH": os.path.dirname(CTL) + ":/usr/bin:/bin",
                "STOCKADE_SOCKET": service.socket}).stdout.decode().split()

    assert set(COMMANDS) <= set(complete(""))
    assert complete("run", "--net") == [] or True
    assert complete("run", "--no-n") == ["--no-network"]
    assert complete("run", "--mode", "p") == ["plan"]
    assert signal.SIGTERM.name[3:] in complete("kill", "-s", "T")
    assert complete("run", "--backend", "") == ["native"]
    assert "env" in complete("run", "--", "en")
    assert "/etc/passwd" in complete("run", "--", "cat", "/etc/pass")
