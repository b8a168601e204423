"""SPEC C and the lists App.5 and App.9, entry by entry in a real sandbox."""

import glob
import grp
import os
import re
import pwd
import subprocess

import pytest

import instance as instance_module
from conftest import own
from instance import Instance

ETC = """alternatives ca-certificates ca-certificates.conf crypto-policies
debian_version default/locale fonts gai.conf host.conf java* ld.so.cache
ld.so.conf ld.so.conf.d locale.alias localtime login.defs lsb-release magic
manpath.config mime.types os-release perl php pki profile.d bash.bashrc inputrc
protocols python3* services shells ssl/certs ssl/openssl.cnf terminfo timezone
vim xdg""".split()
MADE = """passwd group hosts hostname nsswitch.conf profile resolv.conf
gitconfig machine-id""".split()
DEV = """null zero full random urandom tty ptmx pts shm fd stdin stdout
stderr""".split()
DENIED = """mkfs.* fdisk sfdisk parted cryptsetup wipefs mount umount losetup
chroot unshare nsenter sudo su doas pkexec insmod modprobe rmmod kexec
newuidmap newgidmap""".split()
PLACES = ["/sbin", "/usr/sbin", "/usr/bin", "/bin", "/usr/local/sbin",
          "/usr/local/bin"]
USER = instance_module.RUN_USER


def readable_by_all(path):
    return os.path.exists(path) and os.stat(path).st_mode & 0o004


def test_etc_is_the_list_and_what_is_made(session):
    s = session()
    there = set(s.ok("cd /etc && ls -A; for d in default ssl; do ls -A $d "
                     "2>/dev/null | sed s,^,$d/,; done")
                .split())
    want = set()
    for entry in ETC:
        want |= {path[len("/etc/"):] for path in glob.glob("/etc/" + entry)}
    parents = {"default", "ssl"}
    assert there - parents == want | set(MADE)
    unread = [entry for entry in sorted(want)
              if readable_by_all("/etc/" + entry) and
              s.sh("test -r /etc/" + entry)[0] != 0]
    assert unread == []
    for entry in sorted(want | set(MADE)):
        assert s.sh("echo x >> /etc/%s; rm -rf /etc/%s; test -e /etc/%s" % (
            entry, entry, entry))[0] == 0, entry
    for secret in ("shadow", "sudoers", "ssh", "stockade", "machine-id"):
        assert secret in MADE or s.sh("ls /etc/" + secret)[0] != 0
    own = s.ok("cat /etc/machine-id")
    assert re.fullmatch("[0-9a-f]{32}", own)
    if os.path.exists("/etc/machine-id"):
        with open("/etc/machine-id", encoding="ascii") as f:
            assert f.read().strip() != own


def test_dev_is_the_list(session):
    s = session()
    assert set(s.ok("ls -A /dev").split()) - {"core"} == set(DEV)
    assert s.sh("cat /dev/core")[0] != 0
    s.ok("echo x > /dev/null; head -c 1 /dev/zero /dev/urandom > /dev/null")


def test_other_places_of_the_host_are_absent(session):
    s = session()
    assert set(s.ok("ls -A /").split()) <= {
        "bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc",
        "run", "sbin", "tmp", "usr", "var"}
    assert s.sh("ls /root /sys /boot /mnt /srv /opt")[0] != 0
    assert s.ok("ls -A /dev/shm; ls -A /tmp | wc -l").split()[-1] == "1"
    for path in ("/proc/irq", "/proc/bus", "/proc/sys"):
        assert s.sh("test -e %s && find %s -writable -type f | grep -q ." % (
            path, path))[0] != 0, path


def test_every_denied_binary_is_refused_by_path_link_and_target(session):
    s = session()
    found = sorted({path for name in DENIED for place in PLACES
                    for path in glob.glob(os.path.join(place, name))})
    assert "/usr/bin/su" in found and "/bin/mount" in found
    for path in found:
        real = os.path.realpath(path)
        for spelling in {path, real}:
            assert s.run(spelling)[0] == 126, spelling
    s.ok("ln -s /usr/bin/su here")
    assert s.run("./here")[0] == 126
    s.ok("touch a b && rm a && unlink b && mkdir d && rmdir d && "
         "dd if=/dev/zero of=f bs=1 count=1 2>&1")


@pytest.mark.parametrize("mode", ["chat", "review", "plan", "orchestrate"])
def test_the_run_directory_is_writable_in_every_mode(session, mode):
    s = session(mode=mode)
    assert s.ok("echo $STOCKADE_RUN_DIR") == "/run/stockade/run"
    s.ok("touch $STOCKADE_RUN_DIR/x")
    assert os.listdir(s.workdir) == []


def test_the_umask_is_022(session):
    s = session()
    assert s.ok("umask; touch a; stat -c %a a").split() == ["0022", "644"]


def test_no_placeholder_is_made(session):
    def prepare(workdir):
        subprocess.run(["git", "init", "-q", workdir], check=True)

    s = session(prepare=prepare)
    before = sorted(os.path.join(base, name) for base, dirs, files in
                    os.walk(s.workdir) for name in dirs + files)
    stamp = os.stat(s.workdir).st_mtime_ns
    s.ok("true; cat .git/config > /dev/null; ls -la > /dev/null")
    assert s.ok("git status --porcelain --ignored") == ""
    s.destroy()
    after = sorted(os.path.join(base, name) for base, dirs, files in
                   os.walk(s.workdir) for name in dirs + files)
    assert [path for path in after if path not in before] in (
        [], [os.path.join(s.workdir, ".git", "index")])
    assert os.stat(s.workdir).st_mtime_ns == stamp


def test_git_works_inside(session):
    s = session(env={"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
                     "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"})
    assert s.ok("git init -q /tmp/r && cd /tmp/r && echo x > f && git add f && "
                "git commit -qm first && git log --oneline | wc -l; "
                "git config push.default").split() == ["1", "current"]


def test_a_permitted_user_namespace_still_cannot_mount():
    if instance_module.missing():
        pytest.skip(instance_module.missing())
    probe = ("import ctypes;l=ctypes.CDLL(None,use_errno=True);"
             "print(l.unshare(0x10020000),l.mount(b'x',b'/tmp',b'tmpfs',0,0),"
             "ctypes.get_errno())")
    with Instance("limit idle none\npermit user-namespaces on\n") as service:
        with service.client() as c:
            c.launch("user", service.workdir(), allowUserNamespaces=True)
            c.launch("not", service.workdir())
            got = c.run("user", ["/usr/bin/python3", "-c", probe])[1].split()
            assert got == [b"0", b"-1", b"1"]
            got = c.run("not", ["/usr/bin/python3", "-c", probe])[1].split()
            assert got[0] == b"-1"


def test_groups_are_the_clients_less_those_of_the_service(service):
    user = pwd.getpwnam(USER)
    names = ("stockade", "stockade-admin", "games", "video")
    groups = [grp.getgrnam(name).gr_gid for name in names]
    done = subprocess.run(
        [instance_module.CTL, "--socket", service.socket, "run", "-C",
         service.workdir(), "--", "id", "-G"], user=user.pw_uid,
        group=user.pw_gid, extra_groups=groups, stdin=subprocess.DEVNULL,
        capture_output=True, check=False, timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": user.pw_dir})
    assert done.returncode == 0, done.stderr
    assert sorted(map(int, done.stdout.split())) == sorted(
        [user.pw_gid, *groups[2:]])


def test_as_many_rules_as_a_spec_may_have_start(service, client):
    workdir = service.workdir()
    paths = [os.path.join(workdir, "f%d" % i) for i in range(1536)]
    for path in paths:
        with open(path, "w", encoding="ascii") as f:
            f.write("x")
    own(workdir)
    client.launch("many", workdir, protectedPaths=paths[:1024],
                  denyRead=paths[1024:1280], denyWrite=paths[1280:])
    try:
        status, out, _ = client.run("many", [
            "/bin/sh", "-c", "for f in f0 f1023 f1280 f1535; do echo y > $f; "
            "done; cat f0 f1535; cat f1024 f1279"])
        assert status != 0 and out == b"xx"
    finally:
        client.call("sandbox.destroy", sessionId="many")
    with open(paths[1023], encoding="ascii") as f:
        assert f.read() == "x"


def test_absent_paths_and_patterns_at_their_limits_hold(service, client):
    workdir = service.workdir()
    spec = {
        "protectedPaths": [os.path.join(workdir, "p%d/q/absent%d" %
                                        (i % 50, i)) for i in range(1024)],
        "denyWrite": [os.path.join(workdir, "**/d%d/*x%d*/**/f" % (i, i))
                      for i in range(256)],
        "nameExemptions": ["/tests/f%d/**/*.pem" % i for i in range(256)]}
    code = "\n".join([
        "import os", "def tried(fn, *a):",
        "    try: fn(*a)", "    except OSError as e: return e.errno",
        "    return 0",
        "os.makedirs('p49/r'); os.makedirs('tests/f255/a')",
        "os.makedirs('d200/yx200')",
        "print(tried(os.mkdir, 'p49/q'), tried(os.mkdir, 'p49/q/absent999'),",
        "    tried(os.rename, 'p49/q', 'p49/s'), tried(os.mkdir, 'p49/s'),",
        "    tried(os.mkdir, 'd200/yx200/f'), tried(os.mkdir, 'd200/f'),",
        "    tried(os.mkdir, 'tests/f255/a/x.pem'),",
        "    tried(os.mkdir, 'tests/x.pem'))"])
    client.launch("most", workdir, **spec)
    try:
        status, out, err = client.run("most", ["/usr/bin/python3", "-c", code])
        assert (status, out.split()) == (0, b"0 1 1 0 1 0 0 1".split()), err
        rules = [row["rule"] for row in client.violations("most")]
        assert spec["denyWrite"][200] in rules, rules
        assert spec["protectedPaths"][999] in rules, rules
    finally:
        client.call("sandbox.destroy", sessionId="most")
