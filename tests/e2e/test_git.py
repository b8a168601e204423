"""SPEC D17, D18: git in a guarded run, command by command; repositories that
the run makes, and what is reported of them."""

import os
import subprocess
import time

import pytest

from conftest import own

RENAME, CREATE = "file-write-rename", "file-write-create"
NEW = "--new-repositories, or a repository in /tmp"
OUTSIDE = "git -c NAME=VALUE, or set it outside the run"


def repository(path):
    git = ["git", "-C", path, "-c", "user.name=a", "-c", "user.email=a@b",
           "-c", "safe.directory=*"]
    subprocess.run(git + ["init", "-q", "-b", "main"], check=True)
    with open(os.path.join(path, "f"), "w", encoding="ascii") as f:
        f.write("one\n")
    subprocess.run(git + ["add", "f"], check=True)
    subprocess.run(git + ["commit", "-q", "-m", "one"], check=True)


SETUP = ("git config --global user.name a && git config --global user.email "
         "a@b && git config --global init.defaultBranch main && "
         "git config --global protocol.file.allow always && ")


def locks(path):
    return [os.path.join(base, n) for base, _, names in os.walk(path)
            for n in names if n.endswith(".lock")]


def rows(s, n):
    end = time.monotonic() + 3
    while True:
        found = s.client.violations(s.name)
        if len(found) >= n or time.monotonic() > end:
            return found
        time.sleep(0.02)


def notices(client, session):
    """`newRepository` of a session, to be called after its end began."""
    found = []

    def last(e):
        if e["sessionId"] == session and e["type"] == "notice" and (
                e["code"] == "newRepository"):
            found.append(e["detail"])
        return e["sessionId"] == session and e.get("state") == "destroyed"

    client.event(last)
    return found


# command, status, what git says, the violation: action, path, remedy
REFUSED = {
    "init": ("git init -q new", 128, b"could not write config file",
             RENAME, "new/.git/config", NEW),
    "clone": ("git init -q /tmp/c && git -C /tmp/c commit -q --allow-empty "
              "-m x && git clone -q /tmp/c new", 128,
              b"could not write config file", RENAME, "new/.git/config", NEW),
    "config": ("git config --local a.b c", 4, b"could not write config file",
               RENAME, ".git/config", OUTSIDE),
    "remote": ("git remote add o /tmp/x", 128, b"could not write config file",
               RENAME, ".git/config", OUTSIDE),
    "worktree": ("git worktree add -q wt", 128, b"wt/.git", CREATE, "wt/.git",
                 "a change outside the run"),
    "submodule": ("git init -q /tmp/m && git -C /tmp/m commit -q "
                  "--allow-empty -m x && git submodule add -q /tmp/m sub",
                  128, b"sub/.git", CREATE, "sub/.git",
                  "a change outside the run"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_git_with_one_violation(session, outside, service, case):
    line, status, text, action, path, remedy = REFUSED[case]
    other = service.workdir()
    repository(other)
    own(other)
    done = outside("export HOME=$(mktemp -d) && " + SETUP + "cd %s && %s" % (
        other, line.replace("/tmp/", "$HOME/")))
    assert done.returncode == 0, done.stderr
    s = session(prepare=repository)
    got, _, err = s.sh(SETUP + line)
    assert got == status and text in err, err
    row, = rows(s, 1)
    assert (row["action"], row["target"], row["count"]) == (
        action, os.path.join(s.workdir, path), 1)
    assert row["remedy"] == remedy
    assert locks(s.workdir) == []
    assert s.ok("git fsck --no-progress; git status --porcelain -uno") == ""


def test_git_works(session):
    s = session(prepare=repository)
    out = s.ok(SETUP + """
        set -e
        echo two >b; git add b; git commit -qm two
        git checkout -qb side; echo c >c; git add c; git commit -qm c
        git checkout -q main; echo d >d; git add d; git commit -qm d
        git merge -q -m merge side
        git checkout -qb topic HEAD~1; echo e >e; git add e; git commit -qm e
        git rebase -q main
        echo dirty >>b; git stash -q; git stash pop -q; git checkout -q b
        git init -q --bare /tmp/r; git push -q /tmp/r main
        git fetch -q /tmp/r main; git gc -q; git tag v1
        git fsck --no-progress --no-dangling; git status --porcelain""")
    assert out == ""
    assert s.client.violations(s.name) == []
    assert locks(s.workdir) == []


def test_init_and_clone_are_free_in_private_places(session):
    s = session(prepare=repository)
    s.ok(SETUP + "cd /tmp && git init -q a && git -C a config x.y z && "
         "git -C a remote add o . && cd ~ && git init -q b && "
         "git -C b commit -q --allow-empty -m x && git clone -q b c && "
         "git -C b worktree add -q ../wt && "
         "git -C c submodule add -q ~/b sub && test -e c/.git/config")
    assert s.client.violations(s.name) == []


def test_push_u_pushes_and_says_what_was_not_saved(session):
    s = session(prepare=repository)
    status, _, err = s.sh("git init -q --bare /tmp/r && "
                          "git push -u /tmp/r main && git push -q /tmp/r && "
                          "git -C /tmp/r rev-parse -q --verify main")
    assert status == 0
    assert b"could not write config file .git/config" in err
    row = rows(s, 1)[0]
    assert row["target"].endswith("/.git/config")
    assert locks(s.workdir) == []


# A file called .git leads git to any other directory.
FILES = {
    "create": "echo x >s/.git",
    "upper": "echo x >s/.GIT",
    "rename": "echo x >p && mv p s/.git",
    "link": "echo x >p && ln p s/.git",
    "fifo": "mkfifo s/.git",
    "symlink": "ln -s /tmp s/.git",
    "existing": "echo x >old/.git",
    "truncate": "truncate -s 0 old/.git",
    "exchange": "echo x >p && /usr/bin/python3 -c 'import ctypes, os; "
                "exit(ctypes.CDLL(None).renameat2(-100, b\"p\", -100, "
                "b\"old/.git\", 2) and 1)'",
}


@pytest.mark.parametrize("case", FILES)
def test_a_git_file_is_not_made_or_changed(session, service, outside, case):
    def prepare(path):
        os.makedirs(path + "/s")
        os.makedirs(path + "/old")

    def late(path):
        with open(path + "/old/.git", "w", encoding="ascii") as f:
            f.write("gitdir: /nowhere\n")
        own(path)

    other = service.workdir()
    prepare(other)
    late(other)
    assert outside("cd %s && %s" % (other, FILES[case])).returncode == 0
    s = session(prepare=prepare)
    late(s.workdir)     # after the launch: no mask is on it
    assert s.sh(FILES[case])[0] != 0
    with open(s.workdir + "/old/.git", encoding="ascii") as f:
        assert f.read() == "gitdir: /nowhere\n"
    assert os.listdir(s.workdir + "/s") == []
    assert rows(s, 1)[0]["target"].lower().endswith("/.git")


HOOKS = """
git init -q new && cd new && git config core.fsmonitor true &&
git config alias.x '!id' && git config user.name b && mkdir .git/hooks &&
printf '#!/bin/sh\\n' >.git/hooks/pre-commit && chmod +x .git/hooks/* &&
echo x >.git/hooks/note && git commit -q --allow-empty -m x && cd .. &&
mv new deep && mkdir d && mv deep d/moved && git init -q plain &&
git init -q gone && rm -rf gone && git -C d/moved config core.editor vi &&
mkdir -p plain/.git/modules/a/b && echo x >plain/.git/modules/a/b/HEAD &&
printf '[filter "x"]\\n\\tclean = rm\\n' >plain/.git/modules/a/b/config
"""


def test_new_repositories_are_configured_and_reported(client, session):
    s = session(prepare=repository, newRepositories="allow")
    client.call("events.subscribe", sessionId=s.name)
    s.ok(SETUP + HOOKS)
    # Those that were there are protected all the same, and .git stays.
    assert s.sh("git config a.b c")[0] != 0
    assert s.sh("mv d/moved/.git x")[0] != 0
    assert s.sh("echo x >d/moved/.env")[0] != 0
    call = client.start("sandbox.destroy", sessionId=s.name)
    told = notices(client, s.name)
    client.finish(call)
    w = s.workdir
    assert told == [
        w + "/d/moved/.git: git can run programs by its core.fsmonitor, "
        "core.editor, alias.x, hooks/pre-commit",
        w + "/plain/.git: git can run programs by its "
        "modules/a/modules/b/filter.clean",
        w + "/gone/.git: it is not there any more"]


def test_nothing_is_reported_where_nothing_is_permitted(client, session):
    s = session(prepare=repository)
    client.call("events.subscribe", sessionId=s.name)
    assert s.sh("git init -q new")[0] != 0
    call = client.start("sandbox.destroy", sessionId=s.name)
    assert notices(client, s.name) == []
    client.finish(call)


def test_more_repositories_than_are_remembered_are_protected(session):
    s = session(newRepositories="allow")
    s.ok("for i in $(seq 64); do git init -q r$i || exit; done")
    assert s.sh("git init -q r65")[0] != 0
    s.ok("git -C r64 config a.b c")


def test_run_prints_the_line(service):
    work = service.workdir()
    done = service.ctl("run", "-C", work, "--new-repositories", "--", "/bin/sh",
                       "-c", "git init -q x && git -C x config alias.a b")
    assert done.returncode == 0, done.stderr
    assert (b"stockade: notice: newRepository: %s/x/.git: git can run programs "
            b"by its alias.a\n" % work.encode()) in done.stderr
