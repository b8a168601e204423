"""stockadectl as a person uses it: exit statuses, output, terminals, signals,
toolchains, adapters, and what is left when it is killed."""

import fcntl
import grp
import json
import os
import pty
import pwd
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest

import instance as instance_module

USER = instance_module.RUN_USER


class Tool:
    def __init__(self, service):
        self.service = service
        self.workdir = service.workdir()

    def argv(self, *args):
        return [instance_module.CTL, "--socket", self.service.socket, *args]

    def options(self, *more):
        return ["run", "--user", USER, "-C", self.workdir, *more]

    def run(self, *command, options=(), **more):
        return self.service.ctl(*self.options(*options), "--", *command,
                                **more)

    def start(self, *command, options=(), **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.argv(*self.options(*options), "--",
                                          *command),
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def ps(self):
        return json.loads(self.service.ctl("ps", "--json").stdout)

    def only_session(self):
        rows = self.ps()
        assert len(rows) == 1, rows
        return rows[0]["sessionId"]

    def wait_empty(self, timeout=2.0):
        end = time.monotonic() + timeout
        while self.ps():
            assert time.monotonic() < end, "a session is left"


@pytest.fixture
def tool(service):
    it = Tool(service)
    yield it
    for row in it.ps():
        service.ctl("kill", row["sessionId"])


# ---------------------------------------------------------------- statuses

@pytest.mark.parametrize("command,status", [
    (["true"], 0), (["sh", "-c", "exit 7"], 7),
    (["sh", "-c", "kill -TERM $$"], 143), (["/no/such"], 127),
    (["no-such-program"], 127), (["/usr"], 126)])
def test_status_is_the_commands_own(tool, command, status):
    assert tool.run(*command).returncode == status


def test_time_out_is_124(tool):
    done = tool.run("sleep", "60", options=["--timeout", "1s"])
    assert done.returncode == 124
    assert b"stockade: command exceeded 1s" in done.stderr


def test_memory_is_a_limit_and_its_end_is_told(tool):
    done = tool.run("python3", "-c", "x = bytearray(300 << 20)",
                    options=["--memory", "64M"])
    assert done.returncode == 137
    assert b"oom" in done.stderr


@pytest.mark.parametrize("options", [
    ["--memory", "12Q"], ["--memory", "-1"], ["--timeout", "soon"],
    ["--cpus", "many"], ["--unknown"], ["--repo", "a/b"],
    ["--adapter", "nobody"], ["--env", "SURELY_NOT_SET_HERE"]])
def test_usage_errors_start_nothing(tool, options):
    done = tool.run("true", options=options)
    assert done.returncode == 2
    assert done.stderr.startswith(b"stockade: ") and done.stdout == b""


@pytest.mark.parametrize("args,status", [
    ([], 2), (["frob"], 2), (["shell"], 2), (["ps", "x"], 2), (["kill"], 2),
    (["kill", "no-such"], 125), (["inspect", "no-such"], 125),
    (["--help"], 0), (["--version"], 0), (["run"], 2), (["exec", "x"], 2)])
def test_statuses_of_other_commands(tool, args, status):
    assert tool.service.ctl(*args).returncode == status


def test_without_a_service_it_is_125():
    done = subprocess.run([instance_module.CTL, "--socket", "/nonexistent/s",
                           "ps"], capture_output=True, check=False)
    assert done.returncode == 125
    assert b"no service at /nonexistent/s" in done.stderr


@pytest.mark.parametrize("where", ["/", "/home", "/root", "home"])
def test_a_home_or_the_root_is_refused_with_a_hint(tool, where):
    if where == "home":
        where = pwd.getpwnam(USER).pw_dir
    if not os.path.isdir(where):
        pytest.skip("no " + where)
    done = tool.service.ctl("run", "--user", USER, "-C", where, "--", "true")
    assert done.returncode == 125
    assert b"-C DIR" in done.stderr


def test_other_backends_are_never_fallen_to(tool):
    for backend in ("microvm", "none"):
        done = tool.run("true", options=["--backend", backend])
        assert done.returncode == 125
        assert done.stderr.startswith(b"stockade: ")


# ---------------------------------------------------------------- input, output

def test_descriptors_are_the_callers(tool):
    done = tool.run("sh", "-c", "cat; echo e >&2", stdin=None,
                    input=b"line\n")
    assert done.stdout == b"line\n"
    assert b"e\n" in done.stderr


def test_large_output_is_whole(tool):
    done = tool.run("sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x")
    assert done.stdout == b"x" * 20000000


def test_an_ordinary_run_says_nothing_of_its_own(tool):
    assert tool.run("true").stderr == b""
    assert tool.run("true", options=["--quiet"]).stderr == b""


def test_refusals_are_one_line_each(tool):
    done = tool.run("sh", "-c", "for i in 1 2 3; do curl -s -o /dev/null "
                    "http://denied.example.net/; done")
    lines = [row for row in done.stderr.decode().splitlines()
             if "denied network-outbound" in row]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith(
        "stockade: denied network-outbound denied.example.net (not on the "
        "allow list); allow with --allow denied.example.net")


def test_allow_does_what_the_line_says(tool):
    done = tool.run("curl", "-sS", "http://denied.example.net/",
                    options=["--allow", "denied.example.net"])
    assert done.stdout == b"hello from outside"
    assert b"denied" not in done.stderr


def test_no_network_reaches_nothing(tool):
    done = tool.run("curl", "-sS", "-f", "http://allowed.example.net/",
                    options=["--no-network"])
    assert done.returncode != 0
    assert b"the network is off" in done.stderr


def test_read_only_modes(tool):
    assert tool.run("touch", "x", options=["--mode", "review"]
                    ).returncode != 0
    assert tool.run("touch", "y").returncode == 0
    assert os.listdir(tool.workdir) == ["y"]


def test_mounts_are_at_their_own_path(tool):
    other = tool.service.workdir()
    with open(other + "/f", "w", encoding="ascii") as f:
        f.write("inside\n")
    assert tool.run("cat", other + "/f").returncode == 1
    done = tool.run("sh", "-c", "cat %s/f; touch %s/x" % (other, other),
                    options=["--mount", other + ":ro"])
    assert done.stdout == b"inside\n" and done.returncode == 1
    assert tool.run("touch", other + "/x", options=["--mount", other]
                    ).returncode == 0


def test_environment_passes_by_name_only(tool):
    env = dict(os.environ, MY_TOKEN="t0", LANG="C.UTF-8", LD_PRELOAD="",
               TZ="UTC", OTHER="x")
    line = "echo $MY_TOKEN,$TZ,$OTHER,$A"
    assert tool.run("sh", "-c", line, env=env).stdout == b",UTC,,\n"
    done = tool.run("sh", "-c", line, env=env, options=[
        "--env", "MY_TOKEN", "--env", "A=1", "--env", "A=2"])
    assert done.stdout == b"t0,UTC,,2\n"


def test_no_secret_is_in_any_command_line(tool):
    p = tool.start("sh", "-c", "echo up; sleep 60", options=["--env", "S"],
                   env=dict(os.environ, S="very-secret-value"))
    assert p.stdout.readline() == b"up\n"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                assert b"very-secret-value" not in f.read()
        except OSError:
            pass
    p.kill()
    p.communicate()


# ---------------------------------------------------------------- JSON

def test_json_of_run_is_its_events(tool):
    done = tool.run("sh", "-c", "echo out; echo err >&2; exit 3",
                    options=["--json"])
    assert done.returncode == 3
    rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
    types = [r["type"] for r in rows]
    assert types[0] == "starting" and "ready" in types
    assert [r["data"] for r in rows if r["type"] == "stdout"] == ["out\n"]
    assert [r["data"] for r in rows if r["type"] == "stderr"] == ["err\n"]
    assert [r["exitCode"] for r in rows if r["type"] == "exit"] == [3]
    assert [r["seq"] for r in rows] == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("command", ["ps", "probe", "status", "violations"])
def test_json_of_other_commands_is_one_value(tool, command):
    for args in (["--json", command], [command, "--json"]):
        done = tool.service.ctl(*args)
        assert done.returncode == 0
        json.loads(done.stdout)


def test_control_bytes_are_escaped(tool):
    p = tool.start("sh", "-c", "curl -s -o /dev/null 'http://denied"
                   ".example.net/'; echo up; read x", stdin=subprocess.PIPE)
    p.stdout.readline()
    for command in (["events", "--since", "1"], ["inspect"], ["violations"]):
        e = subprocess.Popen(tool.argv(*command, tool.only_session()),
                             stdout=subprocess.PIPE)
        if command[0] == "events":
            time.sleep(0.2)
            e.kill()
        text = e.communicate()[0]
        assert not any(b < 0x20 and b != 0x0a for b in text)
    p.communicate(b"\n")


# ---------------------------------------------------------------- sessions

def test_ps_inspect_exec_pause_resume_kill(tool):
    p = tool.start("sh", "-c", "echo up; sleep 60")
    assert p.stdout.readline() == b"up\n"
    name = tool.only_session()
    row = tool.service.ctl("ps").stdout.decode().splitlines()
    assert row[0].split() == ["ID", "SESSION", "BACKEND", "STATE", "MODE",
                              "USER", "AGE", "EXECS", "MEMORY", "DENIED"]
    number = row[1].split()[0]
    assert row[1].split()[1:6] == [name, "native", "active", "chat", USER]
    shown = json.loads(tool.service.ctl("inspect", "--json", number).stdout)
    assert shown["alive"] and shown["handle"]["sessionId"] == name
    assert shown["handle"]["details"]["confinement"]["names"]["reason"]
    assert shown["limits"]["pids"] == 4096
    assert "github.com" in [r["pattern"] for r in shown["network"]["allow"]]
    text = tool.service.ctl("inspect", name[:9]).stdout.decode()
    assert tool.workdir in text
    for row in ("value: partial", "pids: 4096", "\n  github.com\n"):
        assert row in text, text
    done = tool.service.ctl("exec", name, "--", "sh", "-c",
                            "pwd; id -u; exit 4")
    assert done.returncode == 4
    assert done.stdout.decode().split() == [
        tool.workdir, str(pwd.getpwnam(USER).pw_uid)]
    assert tool.service.ctl("exec", "--env", "V=1", name, "--", "sh", "-c",
                            "echo $V").stdout == b"1\n"
    assert tool.service.ctl("pause", number).returncode == 0
    assert tool.ps()[0]["state"] == "suspended"
    assert tool.service.ctl("exec", name, "true").returncode == 125
    assert tool.service.ctl("resume", name).returncode == 0
    assert tool.service.ctl("kill", "-s", "SIGTERM", name).returncode == 0
    p.communicate()
    assert p.returncode == 143


def test_kill_of_a_session_ends_its_run(tool):
    p = tool.start("sh", "-c", "echo up; sleep 60")
    p.stdout.readline()
    assert tool.service.ctl("kill", tool.only_session()).returncode == 0
    out, err = p.communicate(timeout=10)
    assert p.returncode == 143 and b"stockadectl kill" in err


def test_events_end_with_the_session(tool):
    p = tool.start("sh", "-c", "echo up; read x", stdin=subprocess.PIPE)
    p.stdout.readline()
    e = subprocess.Popen(tool.argv("events", "--json", "--since", "1",
                                   tool.only_session()),
                         stdout=subprocess.PIPE)
    first = json.loads(e.stdout.readline())
    assert first["seq"] == 1 and first["type"] == "starting"
    p.communicate(b"\n")
    rows = [json.loads(r) for r in e.communicate(timeout=10)[0].splitlines()]
    assert rows[-1]["state"] == "destroyed" and e.returncode == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV,
                                 signal.SIGABRT])
def test_killed_in_any_way_its_run_ends(tool, how):
    p = tool.start("sh", "-c", "trap '' TERM HUP INT; echo up; sleep 60")
    p.stdout.readline()
    p.send_signal(how)
    p.communicate()
    tool.wait_empty(2.0)


@pytest.mark.parametrize("how,status", [
    (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129),
    (signal.SIGQUIT, 131)])
def test_signals_are_passed_on(tool, how, status):
    p = tool.start("sh", "-c", "echo up; exec sleep 60")
    p.stdout.readline()
    p.send_signal(how)
    p.communicate(timeout=10)
    assert p.returncode == status
    tool.wait_empty()


def test_a_signal_that_is_caught_leaves_the_status_to_the_command(tool):
    p = tool.start("sh", "-c", "trap 'exit 9' INT; echo up; "
                   "while :; do sleep 0.05; done")
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=10)
    assert p.returncode == 9


def test_stop_and_continue_reach_the_run(tool):
    p = tool.start("sh", "-c", "echo up; while :; do echo .; sleep 0.05; done")
    p.stdout.readline()
    p.send_signal(signal.SIGTSTP)
    pid, status = os.waitpid(p.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    time.sleep(0.2)     # what was on its way
    fd = p.stdout.fileno()
    while select.select([fd], [], [], 0)[0]:
        os.read(fd, 65536)
    assert not select.select([fd], [], [], 0.3)[0]
    p.send_signal(signal.SIGCONT)
    assert select.select([fd], [], [], 5)[0]
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=10)
    assert p.returncode == 143


# ---------------------------------------------------------------- terminal

class Terminal:
    def __init__(self, tool, *command, rows=30, cols=100, **more):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, cols, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        more.setdefault("stdout", self.slave)
        more.setdefault("stderr", self.slave)
        self.process = subprocess.Popen(
            tool.argv(*tool.options("--quiet"), "--", *command),
            stdin=self.slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **more)
        self.seen = b""

    def expect(self, what, timeout=15):
        end = time.monotonic() + timeout
        while what not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536)
        found, self.seen = self.seen.split(what, 1)
        return found

    def type(self, data):
        os.write(self.master, data)

    def end(self):
        status = self.process.wait(15)
        # As it was, on every way out.
        assert termios.tcgetattr(self.slave)[:4] == self.before[:4]
        os.close(self.master)
        os.close(self.slave)
        return status


def test_terminal_is_the_commands_own(tool):
    t = Terminal(tool, "sh", "-c", "tty; stty size; echo tty >/dev/tty; "
                 "exit 5")
    assert t.expect(b"\r\n").startswith(b"/dev/pts/")
    t.expect(b"30 100\r\n")
    t.expect(b"tty\r\n")
    assert t.end() == 5


def test_job_control_and_resize(tool):
    with open(tool.workdir + "/job", "w", encoding="ascii") as f:
        # No child of its own: one that is stopped between vfork and exec
        # keeps its parent from stopping.
        f.write("import os, signal, time\n"
                "def say(text):\n    os.write(1, text + b'\\n')\n"
                "signal.signal(signal.SIGCONT, lambda *a: say(b'goes on'))\n"
                "signal.signal(signal.SIGINT, lambda *a: (say(b'over'), "
                "os._exit(0)))\n"
                "say(b'going')\ntime.sleep(60)\n")
    t = Terminal(tool, "bash", "--norc", "-i")
    t.expect(b"$ ")
    t.type(b"python3 job\n")
    t.expect(b"going")
    t.type(b"\x1a")
    t.expect(b"Stopped")
    t.type(b"fg\n")
    t.expect(b"goes on")
    t.type(b"\x03")
    t.expect(b"over")
    fcntl.ioctl(t.master, termios.TIOCSWINSZ,
                struct.pack("HHHH", 44, 120, 0, 0))
    t.type(b"until [ \"$(stty size)\" = '44 120' ]; do :; done; "
           b"echo res''ized\n")
    t.expect(b"resized")
    t.type(b"exit 9\n")
    assert t.end() == 9


def test_interrupt_typed_at_the_terminal(tool):
    t = Terminal(tool, "sh", "-c", "echo up; exec sleep 60")
    t.expect(b"up")
    t.type(b"\x03")
    assert t.end() == 130


def test_terminal_is_restored_when_terminated(tool):
    t = Terminal(tool, "sh", "-c", "echo up; exec sleep 60")
    t.expect(b"up")
    t.process.send_signal(signal.SIGTERM)
    assert t.end() == 143


def test_a_program_that_is_not_found_on_a_terminal(tool):
    t = Terminal(tool, "no-such-program")
    assert t.end() == 127


def test_output_apart_from_the_terminal(tool, tmp_path):
    out = open(tmp_path / "out", "wb")
    t = Terminal(tool, "sh", "-c", "test -t 1 && exit 3; cat", stdout=out)
    t.type(b"typed\n\x04")
    assert t.end() == 0
    assert (tmp_path / "out").read_bytes() == b"typed\n"


def test_terminal_of_the_caller_is_not_inside(tool):
    # Input from a file, output to the terminal: a pipe stands between.
    master, slave = pty.openpty()
    done = subprocess.run(tool.argv(*tool.options("--quiet"), "--", "sh", "-c",
                                    "readlink /proc/self/fd/1"),
                          stdin=subprocess.DEVNULL, stdout=slave, check=False)
    assert done.returncode == 0
    assert os.read(master, 200).startswith(b"pipe:")
    os.close(master)
    os.close(slave)


# ---------------------------------------------------------------- a client

def as_client(tool, *args, cwd=None, groups=("stockade",), **env):
    """The tool as a person calls it: not root, a member of the client group."""
    user = pwd.getpwnam(USER)
    return subprocess.run(
        tool.argv(*args), user=user.pw_uid, group=user.pw_gid,
        extra_groups=[grp.getgrnam(g).gr_gid for g in groups],
        cwd=cwd or tool.workdir, stdin=subprocess.DEVNULL,
        capture_output=True, check=False, timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": user.pw_dir, **env})


def test_a_client_runs_in_its_directory_as_itself(tool):
    done = as_client(tool, "run", "--", "sh", "-c", "pwd; id -u; id -G; exit 6")
    user = pwd.getpwnam(USER)
    assert done.returncode == 6, done.stderr
    # The groups of the service are not the run's (C25).
    assert done.stdout.decode().split() == [
        tool.workdir, str(user.pw_uid), str(user.pw_gid)]


@pytest.mark.parametrize("user", ["root", "nobody", "0"])
def test_a_client_names_no_other_user(tool, user):
    done = as_client(tool, "run", "--user", user, "--", "true")
    assert done.returncode == 125 and done.stdout == b""


def test_who_is_not_in_the_group_is_told_so(tool):
    done = as_client(tool, "ps", groups=())
    assert done.returncode == 125
    assert b"client group" in done.stderr


def test_a_client_sees_only_its_own_sessions(tool):
    p = tool.start("sh", "-c", "echo up; read x", stdin=subprocess.PIPE)
    p.stdout.readline()
    name = tool.only_session()     # of root, though it runs as this user
    assert json.loads(as_client(tool, "ps", "--json").stdout) == []
    for command in ("inspect", "kill", "pause", "violations"):
        assert as_client(tool, command, name).returncode == 125
    p.communicate(b"\n")


def test_both_spellings_of_the_directory_work(tool):
    link = tool.workdir + "-link"
    os.symlink(tool.workdir, link)
    done = as_client(tool, "run", "--", "sh", "-c", "pwd; touch " + link +
                     "/x " + tool.workdir + "/y", cwd=link, PWD=link)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().strip() == link
    assert sorted(os.listdir(tool.workdir)) == ["x", "y"]


# ---------------------------------------------------------------- toolchains

@pytest.fixture
def person(service):
    """A user whose home holds a tool: the run's user, with a home of files."""
    user = pwd.getpwnam(USER)
    made = []

    def make(path, text):
        path = os.path.join(user.pw_dir, path)
        base = path
        while not os.path.exists(os.path.dirname(base)):
            base = os.path.dirname(base)
        made.append(base)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(path, 0o755)
        for top, dirs, files in os.walk(base):
            for name in ["", *dirs, *files]:
                os.chown(os.path.join(top, name), user.pw_uid, user.pw_gid)
        if os.path.isfile(base):
            os.chown(base, user.pw_uid, user.pw_gid)
        return path

    yield make
    for base in made:
        if os.path.isdir(base):
            shutil.rmtree(base, ignore_errors=True)
        elif os.path.exists(base):
            os.unlink(base)


def test_toolchains_on_path_below_the_home_work_read_only(tool, person):
    program = person("tools-of-test/bin/mytool",
                     "#!/bin/sh\n. \"${0%/bin/*}/lib/x\"\n")
    person("tools-of-test/lib/x", "echo from the toolchain\n")
    env = dict(os.environ, PATH=os.path.dirname(program) + ":/usr/bin:/bin")
    done = tool.run("mytool", env=env)
    assert done.stdout == b"from the toolchain\n", done.stderr
    assert tool.run("sh", "-c", "echo x >" + program, env=env
                    ).returncode != 0
    assert tool.run("mytool", env=env, options=["--no-toolchains"]
                    ).returncode == 127


def test_adapter_brings_its_state_directory(tool, person):
    state = os.path.dirname(person(".claude/state-of-test", "kept\n"))
    line = "cat $CLAUDE_CONFIG_DIR/state-of-test && " \
           "echo new >$CLAUDE_CONFIG_DIR/written-of-test"
    assert tool.run("sh", "-c", line).returncode != 0
    done = tool.run("sh", "-c", line, options=["--adapter", "claude-code"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"kept\n"
    path = state + "/written-of-test"
    with open(path, encoding="ascii") as f:
        assert f.read() == "new\n"
    os.unlink(path)


# ---------------------------------------------------------------- remedies

@pytest.mark.parametrize("options,status,words", [
    (["--allow", "http://x/"], 2,
     "--allow http://x/: a host name, optionally with :PORT, not a URL"),
    (["--allow", "x.example/path"], 2, "not a URL"),
    (["--allow", "x.example:y"], 125, "--allow: x.example:y: the port"),
    (["--mount", "/root"], 125,
     "--mount /root cannot be given as a whole; name a directory below it"),
    (["--mount", "/srv:rw"], 2, "--mount /srv:rw: only :ro"),
    (["--mount", "/srv:row"], 2, "only :ro"),
    (["--mount", "/srv:/elsewhere:ro"], 2, "only :ro"),
    (["--memory", "1K"], 125, "--memory: is out of range; 1M is the least"),
    (["--pids", "1"], 125, "--pids: is out of range; 2 to 4194304"),
    (["--mode", "frob"], 125, "--mode: "),
    (["--no-network", "--allow", "x.example"], 2,
     "--no-network and --allow exclude each other"),
    (["--backend", "frob"], 125, 'unknown backend "frob": use microvm, native '
     "or none; only native is in this version")])
def test_a_refusal_names_the_option_and_what_helps(tool, options, status,
                                                   words):
    done = tool.run("true", options=options)
    assert done.returncode == status
    assert words in done.stderr.decode()


def test_limits_that_end_a_run_name_their_option(tool):
    done = tool.run("python3", "-c", "x = bytearray(300 << 20)",
                    options=["--memory", "64M"])
    assert b"(limit 64M; give more with --memory)" in done.stderr
    done = tool.run("sleep", "60", options=["--timeout", "1s"])
    assert b"command exceeded 1s; more with --timeout" in done.stderr
    done = tool.run("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1 & done;"
                    " wait", options=["--pids", "5"])
    assert b"pidLimit" in done.stderr and b"with --pids" in done.stderr


def test_a_state_directory_that_is_absent_is_told(tool):
    done = tool.run("true", options=["--adapter", "gemini-cli"])
    assert (b"/.gemini does not exist, so nothing is kept there; make it first"
            in done.stderr)


def test_a_program_that_lies_outside_is_named(tool, tmp_path):
    program = tmp_path / "only-outside"
    program.write_text("#!/bin/sh\necho seen\n")
    program.chmod(0o755)
    words = ("not found in the sandbox; it lies outside at %s, --mount %s:ro "
             "shows it" % (program, tmp_path)).encode()
    done = tool.run(str(program))
    assert done.returncode == 127 and words in done.stderr
    path = "%s:%s" % (os.environ["PATH"], tmp_path)
    done = tool.run("only-outside", env=dict(os.environ, PATH=path),
                    options=["--no-toolchains"])
    assert done.returncode == 127 and words in done.stderr
    done = tool.run("/usr/bin/no-such")
    assert b"lies outside" not in done.stderr


@pytest.mark.parametrize("command", [
    "run", "exec", "ps", "inspect", "events", "violations", "kill", "pause",
    "resume", "probe", "status"])
def test_every_command_has_help_of_its_own(tool, command):
    for word in ("--help", "-h"):
        done = tool.service.ctl(command, word)
        assert done.returncode == 0 and done.stderr == b""
        assert done.stdout.startswith(
            b"usage: stockadectl %s" % command.encode())
        assert b"  --json" in done.stdout


def test_words_for_a_session_that_waits_or_was_ended(tool):
    run = tool.start("sh", "-c", "echo up; exec sleep 60")
    assert run.stdout.readline() == b"up\n"
    name = tool.only_session()
    ctl = tool.service.ctl
    done = ctl("events", "--types", "frob", name)
    assert b"stdout, stderr, exit" in done.stderr
    assert ctl("pause", name).returncode == 0
    done = ctl("exec", name, "--", "true")
    assert b"; stockadectl resume %s\n" % name.encode() in done.stderr
    assert ctl("resume", name).returncode == 0
    assert ctl("kill", name).returncode == 0
    assert (b"the run was ended by stockadectl kill or another client"
            in run.communicate(timeout=20)[1])
