"""sandbox.explain and `stockadectl why path` (SPEC W6, Y10): what they say is
what happens in the run."""

import json
import os
import subprocess

import pytest

import instance
from conftest import own as give
from instance import RUN_USER, RpcError

HOME = os.path.expanduser("~" + RUN_USER)


def prepare(path):
    for name in ("ro", "keys", "plain/deep", "secret", "sub"):
        os.makedirs(os.path.join(path, name))
    for name in ("plain/file", "old.key", "secret/s", "link-target",
                 "closed"):
        with open(os.path.join(path, name), "w", encoding="ascii") as f:
            f.write("text")
    os.symlink("old.key", os.path.join(path, "alias"))
    os.chmod(os.path.join(path, "closed"), 0o400)
    subprocess.run(["git", "init", "-q", os.path.join(path, "sub")],
                   check=True)
    subprocess.run(["git", "init", "-q", path], check=True)


@pytest.fixture
def live(service, session):
    work = service.workdir()
    prepare(work)
    give(work)
    s = session(bindMounts=[{"hostPath": work},
                            {"hostPath": work + "/ro", "readOnly": True}],
                guestWorkdir=work, denyRead=[work + "/secret"],
                denyWrite=[work + "/**/*.lock"], nameExemptions=["/keys/*"])
    s.work = work
    return s


def explain(c, path, **where):
    return c.call("sandbox.explain", path=path, **where)


def by_operation(answer):
    return {w["operation"]: w for w in answer["why"]}


# path below the work tree: decision, what reading and writing do, the rule
CASES = {
    "plain/file": ("allowed", True, True, ""),
    "new": ("allowed", None, True, ""),
    ".env": ("readOnly", None, False, "**/.env (App.7)"),
    "plain/deep/X.PEM": ("readOnly", None, False, "**/*.pem (App.7)"),
    "old.key": ("readOnly", True, False, "**/*.key (App.7)"),
    "alias": ("readOnly", True, False, "**/*.key (App.7)"),
    "keys/a.key": ("allowed", None, True, ""),
    "keys/.bashrc": ("readOnly", None, False, "**/.bashrc (App.6)"),
    "ro/x": ("readOnly", None, False, "read-only mount"),
    "secret/s": ("denied", False, False, "denied for reading"),
    "a.lock": ("readOnly", None, False, "/**/*.lock (spec denyWrite)"),
    "sub/.git/hooks/x": ("readOnly", None, False,
                         "**/.git/hooks/** (App.6)"),
    ".git/config": ("readOnly", True, False, "**/.git/config (App.6)"),
    "closed": ("readOnly", True, False, "file permissions"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_is_what_happens(live, name):
    decision, reads, writes, rule = CASES[name]
    path = os.path.join(live.work, name)
    answer = explain(live.client, path, sessionId=live.name)
    ops = by_operation(answer)
    assert answer["decision"] == decision, answer
    assert answer["rule"].endswith(rule) and bool(rule) == bool(
        answer["rule"])
    assert (ops["write"]["decision"] == "allowed") == writes
    if reads is not None:
        assert (ops["read"]["decision"] == "allowed") == reads
        assert (live.run("/bin/cat", path)[0] == 0) == reads
    assert (live.sh("echo x >>%s" % path)[0] == 0) == writes
    # Relative to the working directory is the same.
    assert explain(live.client, name, sessionId=live.name)["decision"] == \
        decision


def test_the_remedy_is_what_lifts_the_rule(service, client):
    work = service.workdir()
    spec = client.spec("remedy", work)
    answer = explain(client, work + "/d/a b.key", spec=spec)
    assert answer["remedy"] == "--name-exempt '/d/a b.key'"
    spec["nameExemptions"] = ["/d/a b.key"]
    answer = explain(client, work + "/d/a b.key", spec=spec)
    assert (answer["decision"], answer["rule"]) == ("allowed", "")
    assert "is lifted by /d/a b.key" in by_operation(answer)["write"]["reason"]
    answer = explain(client, work + "/.env.example", spec=spec)
    assert "is lifted by (?i)**/.env.example (App.7)" in by_operation(
        answer)["write"]["reason"]
    assert "/remedy" not in str(client.call("sandbox.list"))


def test_the_rest_of_the_view(service, live):
    c, where = live.client, {"sessionId": live.name}
    for path, decision, rule in (
            ("/usr/bin/env", "readOnly", "system view"),
            ("/usr/bin/mount", "denied", "denied program (App.9)"),
            ("/etc/passwd", "readOnly", "generated file"),
            ("/tmp/x", "allowed", ""), ("~/x", "allowed", ""),
            ("/dev/null", "allowed", ""),
            ("/srv/elsewhere", "denied", "not mounted"),
            (os.path.dirname(live.work), "allowed", ""),
            ("/srv", "denied", "not mounted"),
            (service.conf, "denied", "not mounted")):
        answer = explain(c, path, **where)
        assert (answer["decision"], answer["rule"]) == (decision, rule), path
    answer = explain(c, "/srv/x", **where)
    assert answer["remedy"] == "--mount '/srv/x:ro'"
    assert by_operation(answer)["write"]["remedy"] == "--mount '/srv/x'"
    # In a repository that was there nothing is lifted; in a new one it is.
    for path, remedy in (
            (".git/config", "git -c NAME=VALUE, or set it outside the run"),
            ("sub/.git/hooks/new", "a change outside the run"),
            ("later/.git/config", "--new-repositories, or a repository in "
             "/tmp")):
        assert explain(c, path, **where)["remedy"] == remedy, path
    answer = explain(c, ".git", **where)
    assert answer["decision"] == "partly"
    assert by_operation(answer)["rename"]["decision"] == "denied"
    assert live.sh("mv .git other")[0] != 0


def test_what_is_never_read_is_not_proposed_as_a_mount(client, service):
    answer = explain(client, "~/.ssh/id_ed25519",
                     spec=client.spec("ssh", service.workdir()))
    write = by_operation(answer)["write"]
    assert answer["decision"] in ("allowed", "denied")
    assert "--mount" not in answer["remedy"] + write.get("remedy", "")
    where = os.path.join(HOME, ".ssh")
    made = not os.path.exists(where)
    if made:
        os.makedirs(where)
    with open(where + "/key.test", "w", encoding="ascii"):
        pass
    try:
        give(where)
        answer = explain(client, where + "/key.test",
                         spec=client.spec("ssh", service.workdir()))
        assert (answer["decision"], answer["rule"]) == ("denied",
                                                        "~/.ssh (App.6)")
        assert "--mount" not in answer["remedy"]
    finally:
        os.unlink(where + "/key.test")
        if made:
            os.rmdir(where)


def test_the_table_is_told_without_a_path(live):
    plan = live.client.call("sandbox.explain",
                            sessionId=live.name)["plan"]["names"]
    assert plan["places"] == [live.work] and plan["generation"] == 1
    assert {"pattern": "**/*.key", "origin": "App.7", "ignoreCase": True,
            "remedy": "--name-exempt GLOB"} in plan["rules"]
    assert {"pattern": "/keys/*", "origin": "spec nameExemptions",
            "inForce": True} in plan["exemptions"]
    assert plan["more"] == 0


def test_wrong_questions(client, live):
    for path in ("a/../b", "/../x"):
        with pytest.raises(RpcError) as error:
            explain(client, path, sessionId=live.name)
        assert error.value.name == "badPath"
    with pytest.raises(RpcError) as error:
        explain(client, "/x", sessionId="none")
    assert error.value.name == "notFound"


# ---------------------------------------------------------------- the tool

def test_why_path(service, live):
    work = service.workdir()
    done = service.ctl("why", "path", ".env", "-C", work)
    assert done.returncode == 1 and done.stderr == b""
    out = done.stdout.decode().splitlines()
    assert out[0] == work + "/.env: readOnly"
    assert out[1].startswith("read: allowed: in the writable mount")
    assert out[2].startswith("write: denied by **/.env (App.7): ")
    assert out[2].endswith("; allow with --name-exempt '/.env'")
    done = service.ctl("why", "-C", work, "--name-exempt", "/.env", "path",
                       ".env")
    assert done.returncode == 0
    done = service.ctl("why", "path", "old.key", "--session", live.name)
    assert done.returncode == 1
    assert b"write: denied by **/*.key (App.7)" in done.stdout
    done = service.ctl("--json", "why", "path", "new", "--session", live.name)
    assert done.returncode == 0
    assert json.loads(done.stdout)["decision"] == "allowed"
    os.mkdir(work + "/x")
    done = service.ctl("why", "path", work + "/x/../.env", "-C", work)
    assert done.stdout.decode().startswith(work + "/.env: readOnly\n")


def test_why_of_what_is_not_there_yet(service):
    for kind in ("host", "command", "ref", "env"):
        done = service.ctl("why", kind, "x")
        assert done.returncode == 2
        assert done.stderr == b"stockade: why %s: not in this version\n" % (
            kind.encode())
    assert service.ctl("why").returncode == 2
    assert service.ctl("why", "path").returncode == 2
    assert service.ctl("why", "path", "a", "b").returncode == 2
    assert service.ctl("why", "path", "/x", "--session",
                       "none").returncode == 125


def test_reload_tells_what_changed(service):
    with open(service.conf, encoding="utf-8") as f:
        before = f.read()
    try:
        with open(service.conf, "a", encoding="utf-8") as f:
            f.write('deny name { "*.why" }\nlimit tunnels 77\n')
        done = service.ctl("reload")
        assert done.returncode == 0
        assert b'+ deny name { "*.why" }' in done.stdout
        assert done.stderr == (b"stockade: limit tunnels takes effect with a "
                               b"restart\n")
    finally:
        with open(service.conf, "w", encoding="utf-8") as f:
            f.write(before)
        service.ctl("reload")
