"""SPEC J1..J3, J5, J6 and the list App.6, entry by entry: what lies at these
paths when a run starts."""

import os
import pwd
import subprocess

import pytest

from conftest import own
from instance import RUN_USER, Instance, missing

READ_HOME = """.ssh/ .aws/ .gnupg/ .config/gh/ Library/Keychains/ .kube/
.docker/ .netrc .git-credentials .pypirc .cargo/credentials
.cargo/credentials.toml .config/gcloud/ .npmrc .azure/ .config/op/ .config/hub/
.password-store/ .local/share/keyrings/ .mozilla/ .config/google-chrome/
.config/chromium/ .terraform.d/ .vault-token .m2/settings.xml .gem/credentials
.config/rclone/ .bash_history .zsh_history .python_history .node_repl_history
.psql_history""".split()
WRITE_HOME = """Library/LaunchAgents/ Library/Preferences/
.claude/settings.json .claude/settings.local.json .claude.json .claude/hooks/
.bashrc .bash_profile .zshrc .zprofile .profile .gitconfig .bash_login
.bash_logout .zshenv .zlogin .zlogout .inputrc .config/fish/ .config/autostart/
.config/systemd/user/ .config/git/ .config/environment.d/
.local/share/applications/ .codex/ .gemini/ .cursor/ .pam_environment
.crontab""".split()
WRITE_ROOT = """.gitconfig .gitmodules .bashrc .bash_profile .zshrc .zprofile
.profile .ripgreprc .mcp.json .npmrc .netrc .git-credentials .envrc .vscode/
.idea/ .claude/commands/ .claude/agents/ .claude/hooks/ .ssh/ .aws/ .kube/
.docker/ .husky/_/ .claude/settings.json .claude/settings.local.json""".split()
GIT = """hooks/ config config.worktree commondir info/attributes
objects/info/alternates""".split()
SECRET = "what nobody may read"


def fill(root, entries):
    """Each entry with SECRET in it; a directory ends with a slash."""
    for entry in entries:
        path = os.path.join(root, entry + ("in" if entry[-1] == "/" else ""))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as f:
                f.write(SECRET)


def tree(root):
    found = {}
    for base, dirs, files in os.walk(root):
        for name in dirs:
            found[os.path.join(base, name)] = None
        for name in files:
            with open(os.path.join(base, name), encoding="ascii") as f:
                found[os.path.join(base, name)] = f.read()
    return found


ATTACK = """
for p in "$@"; do
    f=$p; case $p in */) f=${p}in; echo x > ${p}new && echo "made in $p";
        mv ${p%/} ${p%/}.away && echo "moved $p";; esac
    for line in 'echo x >> $f' 'rm -f $f' 'mv $f ${f}2' 'ln $f ${f}3' \\
        'chmod 777 $f' 'truncate -s 0 $f' 'ln -sf /dev/null $f' \\
        'touch -d 2001-01-01 $f'; do
        (eval "$line") && echo "done: $line $f"
    done
done 2>/dev/null
true
"""


def test_write_denied_entries_of_a_root_are_read_only(session):
    s = session(prepare=lambda workdir: fill(
        workdir, WRITE_ROOT + [".git/" + entry for entry in GIT]))
    entries = WRITE_ROOT + [".git/" + entry for entry in GIT]
    before = tree(s.workdir)
    status, out, _ = s.run("/bin/sh", "-c", ATTACK, "sh", *entries)
    assert status == 0 and out == b""
    assert tree(s.workdir) == before
    for entry in entries:
        path = entry + ("in" if entry[-1] == "/" else "")
        assert s.ok("cat " + path) == SECRET, entry
    # the same without the name is writable
    s.ok("mkdir -p other && echo x > other/f && echo y > .bashrc2")


def test_a_bare_repository_keeps_hooks_and_config(session):
    s = session(prepare=lambda workdir: fill(
        workdir, ["HEAD", "refs/heads/main", "objects/x", "hooks/", "config"]))
    out = s.run("/bin/sh", "-c", ATTACK, "sh", "hooks/", "config")[1]
    assert out == b"", out


GIT_WORK = """
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@b
echo 1 > f; git add f; git commit -qm 1
git checkout -qb side; echo 2 > g; git add g; git commit -qm 2
git checkout -q -; echo 3 > h; git add h; git commit -qm 3
git merge -q -m merge side; git checkout -q side; echo 4 > i; git add i
git commit -qm 4; git rebase -q master; echo 5 >> f; git stash -q
git stash pop -q; git checkout -q f; git tag t; git gc -q; git worktree list
git mv i j; git commit -qm 5; git branch -d master; git reset -q --hard t
git fsck --strict
git clone -q . /tmp/clone; git pull -q /tmp/clone side; git status --porcelain
"""
MOVE = "mv .git g2 && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit"


def test_a_git_directory_is_not_replaced_and_git_works(session):
    def prepare(workdir):
        subprocess.run(["git", "init", "-q", "-b", "master", workdir],
                       check=True)
    s = session(prepare=prepare)
    status, out, err = s.sh(GIT_WORK)
    assert status == 0, (out, err)
    assert b"[side]" in out, out
    status, out, err = s.sh(MOVE)
    assert status != 0 and b"not permitted" in err, err
    # another work tree is another repository (D17)
    assert s.sh("git worktree add -q inner")[0] != 0
    assert s.sh("rm -rf .git")[0] != 0
    assert not os.path.exists(os.path.join(s.workdir, "g2"))
    assert not os.path.exists(os.path.join(
        s.workdir, ".git/hooks/pre-commit"))
    # The twin: a place of its own, where no rule holds.
    s.ok("mkdir -p /tmp/other/.git && cd /tmp/other && " + MOVE)


class Home(Instance):
    """The run's user has a home of this test's own, which may be mounted."""

    def own_network(self):
        argv = super().own_network()
        self.home = os.path.join(self.dir, "home")
        os.mkdir(self.home)
        fill(self.home, READ_HOME + WRITE_HOME)
        own(self.home)
        script = argv.index("-c") + 1
        argv[script] = "mount --bind %s %s && %s" % (
            self.home, pwd.getpwnam(RUN_USER).pw_dir, argv[script])
        return argv


@pytest.fixture(scope="module")
def home():
    if missing():
        pytest.skip(missing())
    place = pwd.getpwnam(RUN_USER).pw_dir
    with Home('limit idle none\npermit home-mount { "%s" }\n' % place,
              hosts={}) as service:
        service.place = place
        yield service


def test_secrets_of_a_mounted_home_are_not_there(home):
    with home.client() as c:
        c.launch("read", home.place)
        before = tree(home.home)
        for entry in READ_HOME:
            path = os.path.join(home.place, entry)
            if entry[-1] == "/":
                line = "ls -A %s; echo x > %sin; mkdir %sd" % (path, path,
                                                               path)
            else:
                line = "cat %s; echo x > %s; rm %s" % (path, path, path)
            status, out, _ = c.run("read", ["/bin/sh", "-c", line])
            assert status != 0 and out == b"", (entry, out)
        assert tree(home.home) == before
        c.call("sandbox.destroy", sessionId="read")


def test_what_starts_programs_in_a_mounted_home_is_read_only(home):
    with home.client() as c:
        c.launch("write", home.place)
        before = tree(home.home)
        out = c.run("write", ["/bin/sh", "-c", ATTACK, "sh", *[
            os.path.join(home.place, entry) for entry in WRITE_HOME]])[1]
        assert out == b"", out
        assert tree(home.home) == before
        assert c.run("write", ["/bin/sh", "-c", "cat %s/.bashrc" %
                               home.place])[1] == SECRET.encode()
        c.call("sandbox.destroy", sessionId="write")


@pytest.mark.parametrize("mode", ["chat", "review"])
@pytest.mark.parametrize("adapter,name,kept", [
    ("codex", ".codex", ["config.toml"]),
    ("gemini-cli", ".gemini", ["settings.json"]),
    ("acp", ".cursor", ["mcp.json"]),
    ("claude-code", ".claude", ["settings.json", "settings.local.json",
                                "hooks/", "commands/", "agents/"])])
def test_a_state_directory_is_writable_but_for_its_configuration(
        home, adapter, name, kept, mode):
    """I9: in every mode."""
    fill(os.path.join(home.home, name), kept)
    own(home.home)
    place = os.path.join(home.place, name)
    label = "state-%s-%s" % (adapter, mode)
    with home.client() as c:
        c.launch(label, home.workdir(), adapter=adapter, mode=mode,
                 runnerStateDirs=[place])
        out = c.run(label, ["/bin/sh", "-c", ATTACK, "sh", *[
            os.path.join(place, entry) for entry in kept]])[1]
        assert out == b"", out
        assert c.run(label, ["/bin/sh", "-c", "echo x > %s/session && "
                             "rm %s/session" % (place, place)])[0] == 0
        c.call("sandbox.destroy", sessionId=label)


def test_a_rule_holds_by_every_spelling(service, client):
    """J3: the literal and the resolved one; also by a second mount."""
    workdir = service.workdir()
    fill(workdir, ["real/secret", "real/kept"])
    os.symlink("real", os.path.join(workdir, "link"))
    own(workdir)
    link = os.path.join(workdir, "link")
    client.launch("spell", workdir, denyRead=[link + "/secret"],
                  denyWrite=[link + "/kept"])
    try:
        for base in (link, workdir + "/real", workdir + "//real/../link"):
            status, out, _ = client.run("spell", [
                "/bin/sh", "-c", "cat %s/secret; echo x > %s/kept" % (
                    base, base)])
            assert status != 0 and out == b"", base
            assert client.run("spell", ["cat", base + "/kept"])[1] == \
                SECRET.encode()
    finally:
        client.call("sandbox.destroy", sessionId="spell")
    assert tree(workdir)[workdir + "/real/kept"] == SECRET
