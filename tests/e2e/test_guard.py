"""SPEC D in real sandboxes: rules by file name, from the configuration to the
violation. The mechanism call by call is tests/proc/test_broker.py."""

import concurrent.futures
import os
import re
import signal
import subprocess
import time

import pytest

import instance
from conftest import own
from instance import RUN_USER, RpcError

PYTHON = "/usr/bin/python3"
CREATE, DATA, LINK, RENAME = ("file-write-create", "file-write-data",
                              "file-write-link", "file-write-rename")


def names(path):
    return sorted(os.path.relpath(os.path.join(base, n), path)
                  for base, dirs, files in os.walk(path)
                  for n in dirs + files)


def violations(s, n):
    """Those that a broker told, once there are n of them."""
    end = time.monotonic() + 3
    while True:
        rows = s.client.violations(s.name)
        if len(rows) >= n or time.monotonic() > end:
            return rows
        time.sleep(0.02)


def brokers(service):
    return [p for p in instance.child_pids(
        service.children()["stockade-launcherd"])
        if instance.comm(p) == "stockade-broker"]


def in_kernel(s):
    """Whether bpf-lsm holds the names of this run, and no broker."""
    names_now = s.handle["details"]["confinement"]["names"]
    return "owner, times and attributes changed" in names_now["reason"]


@pytest.fixture(scope="module")
def with_broker(service):
    with service.client() as client:
        rows = [row for row in client.call("probe")["mechanisms"]
                if row["name"] == "guard.create"]
    if rows[0]["detail"].startswith("bpf-lsm"):
        pytest.skip("bpf-lsm is in force, and no broker")


# ---------------------------------------------------------------- refusals

CASES = {
    "open": ("os.open('.env', os.O_CREAT | 1)", CREATE, ".env", "**/.env"),
    "deep": ("os.open('d/e/server.pem', os.O_CREAT | 2)", CREATE,
             "d/e/server.pem", "**/*.pem"),
    "upper": ("os.open('X.KEY', os.O_CREAT | 1)", CREATE, "X.KEY",
              "**/*.key"),
    "mkdir": ("os.mkdir('.env')", CREATE, ".env", "**/.env"),
    "fifo": ("os.mkfifo('x.key')", CREATE, "x.key", "**/*.key"),
    "mknod": ("os.mknod('x.key')", CREATE, "x.key", "**/*.key"),
    "symlink": ("os.symlink('plain', '.env.local')", CREATE, ".env.local",
                "**/.env.*"),
    "bind": ("socket.socket(socket.AF_UNIX).bind('x.p12')", CREATE, "x.p12",
             "**/*.p12"),
    "link": ("os.link('plain', '.env')", LINK, ".env", "**/.env"),
    "rename": ("os.rename('plain', 'x.pfx')", RENAME, "x.pfx", "**/*.pfx"),
    "rename_tree": ("os.rename('git2', '.git')", RENAME, ".git", None),
    "write": ("os.open('old.key', os.O_WRONLY)", DATA, "old.key", "**/*.key"),
    "truncate": ("os.truncate('old.key', 0)", DATA, "old.key", "**/*.key"),
    "hook": ("os.open('.hg/.git/hooks/x', os.O_CREAT | 1)", CREATE,
             ".hg/.git/hooks/x", None),
    "absent_list": ("os.open('.envrc', os.O_CREAT | 1)", CREATE, ".envrc",
                    "**/.envrc"),
}
ATTEMPT = """
import errno, os, socket
try:
    %s
    print("done")
except OSError as e:
    print(errno.errorcode[e.errno])
"""


def prepare(path):
    for name in ("d/e", "git2/hooks", ".hg/.git/hooks"):
        os.makedirs(os.path.join(path, name))
    for name in ("plain", "old.key", "git2/hooks/x"):
        with open(os.path.join(path, name), "w", encoding="ascii") as f:
            f.write("text")


@pytest.mark.parametrize("case", CASES)
def test_refused_with_one_violation(service, session, outside, case):
    code, action, path, rule = CASES[case]
    other = service.workdir()
    prepare(other)
    own(other)
    done = outside("cd %s && exec %s -c \"$CODE\"" % (other, PYTHON),
                   env={"CODE": ATTEMPT % code})
    assert done.stdout == b"done\n", done.stderr
    s = session(prepare=prepare)
    before = names(s.workdir)
    # The kernel asks its read-only mount before the guard, and so is no
    # violation; the broker judges first.
    mounted = in_kernel(s) and case in ("write", "truncate", "hook")
    assert s.run(PYTHON, "-c", ATTEMPT % code)[1] == (
        b"EROFS\n" if mounted else b"EPERM\n")
    assert names(s.workdir) == before
    with open(os.path.join(s.workdir, "old.key"), encoding="ascii") as f:
        assert f.read() == "text"
    if mounted:
        return
    row, = violations(s, 1)
    assert (row["action"], row["target"]) == (
        action, os.path.join(s.workdir, path))
    assert row["count"] == 1 and row["pid"] > 1
    assert os.path.basename(row["exe"]).startswith("python3")
    assert row["rule"] if rule is None else row["rule"] == rule


def test_examples_and_private_places_are_free(session):
    s = session()
    s.ok("for n in .env.example .env.sample .env.template .env.dist env "
         ".environment x.keys; do echo x >$n || exit; done; mkdir -p a/b; "
         "mv env env2; ln -s env2 l; rm l; "
         "for d in /tmp ~ /dev/shm $STOCKADE_RUN_DIR; do "
         "echo x >$d/.env && echo y >$d/x.key && rm $d/.env || exit; done")
    assert ".env.example" in names(s.workdir)
    assert s.client.violations(s.name) == []


def test_words_of_the_run_are_no_second_violation(session):
    s = session()
    assert s.sh("echo x >.env")[0] != 0
    assert [v["target"] for v in violations(s, 1)] == [s.workdir + "/.env"]
    time.sleep(0.2)     # one that came late would be here now
    assert len(s.client.violations(s.name)) == 1


def test_protected_paths_cannot_come_to_be(service, session):
    work = service.workdir()
    s = session(protectedPaths=[work + "/no/such"], denyWrite=[
        work + "/**/*.lock"], bindMounts=[{"hostPath": work}],
                guestWorkdir=work)
    status, out, _ = s.sh("mkdir no; echo x >no/such; echo x >a.lock; "
                          "echo x >a.lok; ls -A . no")
    assert out.decode().split() == [".:", "a.lok", "no", "no:"]
    assert {v["target"] for v in violations(s, 2)} == {
        work + "/no/such", work + "/a.lock"}


def test_exemptions(service, session):
    s = session(nameExemptions=["/tests/**/*.pem"])
    s.ok("mkdir -p tests/a && echo x >tests/a/x.pem && "
         "! echo x 2>/dev/null >x.pem")
    assert names(s.workdir) == ["tests", "tests/a", "tests/a/x.pem"]


# ---------------------------------------------------------------- git

GIT = """
set -e
git config --global user.name a; git config --global user.email a@b
echo two >b; git add b; git commit -qm two
git checkout -qb side; echo three >c; git add c; git commit -qm three
git checkout -q main; echo four >d; git add d; git commit -qm four
git merge -q -m merge side; echo dirty >>b; git stash -q; git stash pop -q
git checkout -q b; git fsck --no-progress >/dev/null
git log --oneline | wc -l; git status --porcelain
"""


def repository(path):
    git = ["git", "-C", path, "-c", "user.name=a", "-c", "user.email=a@b",
           "-c", "safe.directory=*"]
    subprocess.run(git + ["init", "-q", "-b", "main"], check=True)
    subprocess.run(git + ["commit", "-q", "--allow-empty", "-m", "one"],
                   check=True)


def test_git_works_and_its_configuration_is_refused(session):
    s = session(prepare=repository)
    assert s.ok(GIT) == "5"
    assert s.client.violations(s.name) == []
    config = os.path.join(s.workdir, ".git/config")
    with open(config, encoding="ascii") as f:
        before = f.read()
    assert s.sh("git config a.b c")[0] != 0
    assert s.sh("git init new")[0] != 0
    s.ok("git status --porcelain >/dev/null; cd /tmp; git init -q x; "
         "git -C x config a.b c")
    with open(config, encoding="ascii") as f:
        assert f.read() == before
    assert all("/.git/" in v["target"] or v["target"].endswith(".git")
               for v in violations(s, 1))


def test_new_repository_may_be_configured_when_asked_for(session):
    s = session(prepare=repository, newRepositories="allow")
    s.ok("git init -q new && git -C new config a.b c")
    assert s.sh("git config a.b c")[0] != 0


# ---------------------------------------------------------------- runs

def test_twenty_runs_in_one_directory(service, session):
    s = session()

    def one(i):
        done = service.ctl(
            "run", "--quiet", "-C", s.workdir, "--user", RUN_USER, "--", "sh",
            "-c", "echo %d >f%d && ! echo x 2>/dev/null >%d.key" % (i, i, i))
        return done.returncode, done.stderr

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        assert list(pool.map(one, range(20))) == [(0, b"")] * 20
    assert names(s.workdir) == sorted("f%d" % i for i in range(20))


def test_run_ends_with_its_broker(service, client, session, with_broker):
    before = set(brokers(service))
    s = session()
    new, = set(brokers(service)) - before
    client.call("events.subscribe", sessionId=s.name)
    ident = client.call("sandbox.exec", sessionId=s.name,
                        argv=["sleep", "60"])["execId"]
    os.kill(new, signal.SIGKILL)
    notice = client.event(lambda e: e["type"] == "notice" and
                          e["code"] == "guardLost")
    assert "broker" in notice["detail"]
    killed = client.event("killed", 5)
    assert killed["cause"] == "service"
    assert ident
    assert new not in brokers(service)


def test_broker_goes_with_its_run(service, session, with_broker):
    before = set(brokers(service))
    s = session()
    assert len(brokers(service)) == len(before) + 1
    s.destroy()
    assert set(brokers(service)) == before


def test_kernel_guards_what_comes_later_in_every_respect(session):
    s = session()
    if not in_kernel(s):
        pytest.skip("bpf-lsm is not in force")
    assert s.handle["details"]["confinement"]["names"]["value"] == "enforced"
    with open(s.workdir + "/late.key", "w", encoding="ascii") as f:
        f.write("text")
    own(s.workdir)
    for call in ("chmod 600 late.key", "touch -c late.key", "rm -f late.key",
                 "echo x >late.key"):
        assert s.sh(call)[0] != 0
    assert s.ok("cat late.key") == "text"
    # The two of the same kind are one record.
    assert [(v["action"], v["count"]) for v in violations(s, 3)] == [
        ("file-write-mode", 2), ("file-write-unlink", 1), (DATA, 1)]


def test_a_protected_file_is_no_standard_output(service, session):
    s = session()
    if not in_kernel(s):
        pytest.skip("bpf-lsm is not in force")
    args = ["-C", s.workdir, "--user", RUN_USER, "--", "sh", "-c", "echo x"]
    for name, denied in (("out.key", True), ("out", False)):
        with open(os.path.join(s.workdir, name), "wb") as f:
            done = subprocess.run(
                [instance.CTL, "--socket", service.socket, "run", *args],
                stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.PIPE,
                check=False, timeout=60)
        assert (done.returncode != 0) is denied
        assert os.path.getsize(os.path.join(s.workdir, name)) == (
            0 if denied else 2)


def test_identity_of_the_broker(service, session, with_broker):
    before = set(brokers(service))
    s = session()
    new, = set(brokers(service)) - before
    with open("/proc/%d/status" % new, encoding="ascii") as f:
        status = dict(re.findall(r"^(\w+):\s*(.*)$", f.read(), re.M))
    run, broker = (int(s.ok("id -u")), status["Uid"].split())
    assert int(broker[3]) == run and run not in map(int, broker[:3])
    assert int(broker[0]) != 0 and broker[0] == broker[1] == broker[2]
    ptrace = 1 << 19
    assert all(int(status[n], 16) == ptrace
               for n in ("CapPrm", "CapEff", "CapBnd"))
    assert int(status["CapAmb"], 16) == int(status["CapInh"], 16) == 0
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    for name in ("mnt", "pid", "net"):
        assert os.readlink("/proc/%d/ns/%s" % (new, name)) != os.readlink(
            "/proc/%d/ns/%s" % (service.children()["stockade-launcherd"],
                                name))
    assert s.sh("cat /proc/[0-9]*/comm | grep -c broker; "
                "for p in /proc/[0-9]*; do grep -qs broker $p/comm && "
                "{ kill -9 ${p#/proc/}; ls $p/fd; }; done")[1] == b"1\n"
    s.ok("echo x >f")


def test_control_comes_back_and_violations_with_it(service, session):
    s = session(detach=True)
    old = service.children()["stockade-control"]
    os.kill(old, signal.SIGKILL)
    end = time.monotonic() + 10
    while True:
        try:
            s.client = service.client()
            handle = s.client.call("sandbox.get", sessionId=s.name)["handle"]
            break
        except (OSError, RpcError, instance.Closed):
            assert time.monotonic() < end
            time.sleep(0.05)
    assert handle["details"]["confinement"]["names"]["value"] != "none"
    assert s.sh("echo x >.env")[0] != 0
    assert [v["rule"] for v in violations(s, 1)] == ["**/.env"]


def test_terminal_and_pipes(client, session):
    s = session()
    assert s.run("sh", "-c", "cat; tty; echo e >&2")[1:] == (
        b"not a tty\n", b"e\n")
    client.call("events.subscribe", sessionId=s.name)
    ident = client.call("sandbox.exec", sessionId=s.name, tty=True,
                        argv=["sh", "-c", "tty; echo t >/dev/tty; "
                              "echo x >made; stty size"])["execId"]
    status, out, _ = client.collect(ident)
    assert status == 0 and out.startswith(b"/dev/pts/"), out
    assert b"t\r\n" in out and names(s.workdir) == ["made"]


# ---------------------------------------------------------------- the tool

def test_tool_names_rule_and_remedy_and_the_remedy_works(service, session):
    s = session()
    args = ["-C", s.workdir, "--user", RUN_USER]
    done = service.ctl("run", *args, "--", "sh", "-c", "echo x >x.key")
    assert done.returncode == 2
    line, = [row for row in done.stderr.decode().splitlines()
             if row.startswith("stockade: ")]
    assert line == ("stockade: denied file-write-create %s/x.key (**/*.key); "
                    "allow with --name-exempt '/x.key'" % s.workdir)
    done = service.ctl("run", *args, "--name-exempt", "/x.key", "--", "sh",
                       "-c", "echo x >x.key; echo y 2>/dev/null >y.key")
    assert names(s.workdir) == ["x.key"]
    assert b"x.key" not in done.stderr and b"y.key" in done.stderr
