"""What a run sees and may write: sections C, I and J of the specification."""

import os
import pwd
import re
import socket
import stat
import subprocess
import uuid

import pytest

import instance

USER = pwd.getpwnam(instance.RUN_USER) if not instance.missing() else None


def status_field(text, name):
    return re.search(r"^%s:\s*(.*)$" % name, text, re.M).group(1).strip()


def test_a_run_has_no_privilege(session):
    s = session()
    text = s.ok("cat /proc/self/status")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status_field(text, name), 16) == 0, name
    assert status_field(text, "NoNewPrivs") == "1"
    assert status_field(text, "Seccomp") == "2"
    assert status_field(text, "Uid").split() == [str(USER.pw_uid)] * 4
    assert status_field(text, "Gid").split() == [str(USER.pw_gid)] * 4


def test_init_has_no_privilege_and_cannot_be_read(session):
    s = session()
    text = s.ok("cat /proc/1/status")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status_field(text, name), 16) == 0, name
    status, _, _ = s.sh("cat /proc/1/environ || ls /proc/1/fd")
    assert status != 0


def test_a_set_uid_program_gains_nothing(session, outside):
    line = "for p in /usr/bin/passwd /bin/su /usr/bin/su; do " \
        "test -u $p && echo setuid; done; exit 0"
    assert b"setuid" in outside(line).stdout  # there is one to gain from
    s = session()
    text = s.ok("cat /proc/self/mountinfo")
    for row in text.splitlines():
        options = row.split(" - ")[0].split()[5].split(",")
        assert "nosuid" in options, row


def test_descriptors_are_exactly_three(session):
    s = session()
    assert s.ok("ls /proc/self/fd | sort | tr '\\n' ' '").split()[:3] == \
        ["0", "1", "2"]
    # `ls` opens one more for the directory itself, and nothing else.
    assert len(s.ok("ls /proc/self/fd").split()) == 4


def test_only_bound_paths_exist(session, tmp_path_factory, outside):
    secret = "/tmp/stockade-canary-" + uuid.uuid4().hex
    with open(secret, "w", encoding="ascii") as f:
        f.write("secret")
    os.chmod(secret, 0o644)
    try:
        assert outside("cat " + secret).stdout == b"secret"
        s = session()
        status, out, _ = s.sh("cat " + secret)
        assert status != 0 and b"secret" not in out
        assert s.ok("ls /") .split() == sorted(s.ok("ls /").split())
        seen = set(s.ok("ls -a / | tr '\\n' ' '").split())
        assert not seen & {"root", "boot", "srv", "work", "media", "mnt"}
    finally:
        os.unlink(secret)


def test_the_home_is_private_and_empty(session):
    s = session()
    assert s.ok("echo $HOME") == USER.pw_dir
    assert s.ok("stat -c '%a %u' $HOME") == "700 %d" % USER.pw_uid
    assert s.ok("ls -A $HOME") == ""
    s.ok("echo x > $HOME/file && cat $HOME/file")
    assert not os.path.exists(os.path.join(USER.pw_dir, "file"))


def test_tmp_is_private_to_each_session(session):
    a, b = session(), session()
    a.ok("echo secret > /tmp/a; echo x > /dev/shm/b; echo y > "
         "$STOCKADE_RUN_DIR/c")
    assert b.ok("ls -A /tmp /dev/shm $STOCKADE_RUN_DIR | grep -v : | "
                "tr -d '\\n'; true").replace(os.path.basename(
                    os.path.dirname(b.workdir)), "") == ""
    assert not os.path.exists("/tmp/a")


def test_writing_inside_reaches_the_host_as_the_user(session):
    s = session()
    s.ok("echo data > file; umask")
    path = os.path.join(s.workdir, "file")
    st = os.stat(path)
    assert (st.st_uid, st.st_gid) == (USER.pw_uid, USER.pw_gid)
    assert stat.S_IMODE(st.st_mode) == 0o644
    with open(path, encoding="ascii") as f:
        assert f.read() == "data\n"


@pytest.mark.parametrize("mode", ["review", "plan", "orchestrate"])
def test_read_only_modes_cannot_write(session, mode):
    s = session(mode=mode)
    status, _, err = s.sh("echo x > file")
    assert status != 0 and b"Read-only" in err
    assert os.listdir(s.workdir) == []
    s.ok("echo x > /tmp/file")
    s.ok("echo x > $STOCKADE_RUN_DIR/file")


def test_the_system_view_cannot_be_written(session):
    s = session()
    for path in ("/usr/x", "/etc/x", "/etc/passwd", "/x", "/run/x", "/bin/x",
                 "/home/x", "/run/stockade/x", "/run/stockade/init"):
        status, _, _ = s.sh("echo x > " + path)
        assert status != 0, path
    status, _, _ = s.sh("mkdir /run/stockade/d || mkdir /d || rm /etc/hosts")
    assert status != 0


def test_proc_sys_is_read_only(session):
    s = session()
    for path in ("/proc/sys/kernel/hostname", "/proc/sys/vm/swappiness",
                 "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"):
        status, _, _ = s.sh("echo 1 > " + path)
        assert status != 0, path
    options = [row.split(" - ")[0].split()[5] for row in
               s.ok("cat /proc/self/mountinfo").splitlines()
               if row.split()[4] == "/proc/sys"]
    assert options and "ro" in options[-1].split(",")
    assert s.sh("ls /sys/kernel")[0] != 0


def test_new_user_namespaces_are_refused(session, outside):
    control = outside("unshare -U true")
    s = session()
    status, _, err = s.sh("/usr/bin/unshare -U true")
    assert status != 0
    # The program itself is denied (J10); so ask the kernel directly.
    probe = ("import ctypes,os;l=ctypes.CDLL(None,use_errno=True);"
             "r=l.unshare(0x10000000);print(r,ctypes.get_errno())")
    assert s.ok("/usr/bin/python3 -c '%s'" % probe) == "-1 1"
    if control.returncode == 0:
        assert outside("/usr/bin/python3 -c '%s'" % probe).stdout.split() == \
            [b"0", b"0"]


SYSCALLS = [
    # name, number on x86_64, arguments, errno wanted inside
    ("mount", 165, "0,0,0,0,0", 1), ("umount2", 166, "0,0", 1),
    ("pivot_root", 155, "0,0", 1), ("bpf", 321, "0,0,0", 1),
    ("perf_event_open", 298, "0,0,0,0,0", 1), ("userfaultfd", 323, "0", 1),
    ("keyctl", 250, "0,0,0,0,0", 1), ("add_key", 248, "0,0,0,0,0", 1),
    ("request_key", 249, "0,0,0,0", 1), ("io_uring_setup", 425, "1,0", 1),
    ("open_by_handle_at", 304, "0,0,0", 1), ("init_module", 175, "0,0,0", 1),
    ("kexec_load", 246, "0,0,0,0", 1), ("setns", 308, "0,0", 1),
    ("fsopen", 430, "0,0", 1), ("move_mount", 429, "0,0,0,0,0", 1),
    ("clone3", 435, "0,0", 38), ("landlock_create_ruleset", 444, "0,0,1", 95),
    ("unknown", 999, "0", 38),
]


@pytest.mark.parametrize("name,number,args,errno", SYSCALLS,
                         ids=[row[0] for row in SYSCALLS])
def test_dangerous_system_calls_are_refused(session, name, number, args,
                                            errno):
    s = session()
    probe = ("import ctypes;l=ctypes.CDLL(None,use_errno=True);"
             "l.syscall(%d,%s);print(ctypes.get_errno())" % (number, args))
    assert s.ok("/usr/bin/python3 -c '%s'" % probe) == str(errno)


def test_input_cannot_be_pushed_into_a_terminal(session):
    s = session()
    probe = ("import fcntl,os,pty;m,t=os.openpty()\n"
             "for r in (0x5412, 0x541c):\n"
             "  try: fcntl.ioctl(t, r, b\"x\"); print(\"done\")\n"
             "  except OSError as e: print(e.errno)\n")
    assert s.run("/usr/bin/python3", "-c", probe)[1].split() == [b"1", b"1"]


def test_other_socket_families_are_refused(session, outside):
    probe = ("import socket\n"
             "for f,t in ((17,3),(16,3),(38,5),(2,2),(10,1),(1,1)):\n"
             "  try: socket.socket(f,t).close(); print(f,0)\n"
             "  except OSError as e: print(f,e.errno)\n"
             "try: socket.socket(16,3,15).close(); print(\"uevent\",0)\n"
             "except OSError as e: print(\"uevent\",e.errno)\n")
    s = session()
    rows = dict(line.split() for line in
                s.run("/usr/bin/python3", "-c", probe)[1].decode()
                .splitlines())
    assert rows["17"] == "1" and rows["38"] == "1"
    assert rows["16"] == "0" and rows["2"] == "0" and rows["10"] == "0"
    assert rows["1"] == "0"
    assert rows["uevent"] == "1"
    control = outside("/usr/bin/python3 -c '%s'" % probe)
    assert b"uevent 0" in control.stdout    # it is there without us


def test_processes_outside_are_not_seen(session):
    s = session()
    pids = s.ok("ls /proc | grep '^[0-9]' | tr '\\n' ' '").split()
    assert "1" in pids and len(pids) < 8
    status, _, _ = s.sh("kill -0 %d" % os.getpid())
    assert status != 0
    assert s.ok("cat /proc/sys/kernel/hostname") != socket.gethostname() or \
        s.ok("hostname 2>/dev/null; true") is not None


def read_denied(workdir):
    for name in (".ssh", ".aws"):
        os.mkdir(os.path.join(workdir, name))
        with open(os.path.join(workdir, name, "key"), "w",
                  encoding="ascii") as f:
            f.write("secret")
    with open(os.path.join(workdir, "token"), "w", encoding="ascii") as f:
        f.write("secret")


def test_read_denied_paths_are_empty_or_closed(session, service, client):
    workdir = service.workdir()
    read_denied(workdir)
    from conftest import own
    own(workdir)
    client.launch("deny-read", workdir, denyRead=[
        os.path.join(workdir, ".ssh"), os.path.join(workdir, "token")])
    try:
        status, out, _ = client.run("deny-read", ["/bin/sh", "-c",
                                                  "ls -A .ssh; cat token"])
        assert status != 0 and b"secret" not in out and b"key" not in out
        assert client.run("deny-read", ["/bin/sh", "-c", "> .ssh/x"])[0] != 0
        assert client.run("deny-read", ["cat", ".aws/key"])[1] == b"secret"
    finally:
        client.call("sandbox.destroy", sessionId="deny-read")
    assert os.listdir(os.path.join(workdir, ".ssh")) == ["key"]


def test_write_denied_paths_stay_readable(session):
    def prepare(workdir):
        with open(os.path.join(workdir, ".bashrc"), "w",
                  encoding="ascii") as f:
            f.write("mine\n")

    s = session(prepare=prepare)
    assert s.ok("cat .bashrc") == "mine"
    for line in ("echo x >> .bashrc", "rm -f .bashrc", "mv .bashrc b",
                 "chmod 777 .bashrc", "ln .bashrc c", "truncate -s0 .bashrc"):
        assert s.sh(line)[0] != 0, line
    with open(os.path.join(s.workdir, ".bashrc"), encoding="ascii") as f:
        assert f.read() == "mine\n"
    assert os.listdir(s.workdir) == [".bashrc"]


def test_ten_thousand_protected_files_start(session):
    """Found before the start, each a read-only mount of itself; the twin is a
    file of another name beside them."""
    def prepare(workdir):
        names = ["d%d/f%d.key" % (i // 100, i) for i in range(10000)]
        for name in names + ["d99/plain"]:
            os.makedirs(os.path.join(workdir, os.path.dirname(name)),
                        exist_ok=True)
            with open(os.path.join(workdir, name), "w",
                      encoding="ascii") as f:
                f.write("x")

    s = session(prepare=prepare)
    assert s.ok("grep -c '[.]key ro,' /proc/self/mountinfo") == "10000"
    assert s.ok("echo y > d99/plain; cat d99/plain") == "y"
    for line in ("echo y > d0/f0.key", "echo y >> d99/f9999.key",
                 "ln d50/f5000.key d50/link && echo y > d50/link",
                 "mv d50/f5001.key d50/other", "rm d50/f5002.key"):
        assert s.sh(line)[0] != 0, line
    assert s.ok("cat d*/*.key | wc -c") == "10000"


def test_dangerous_programs_do_not_start(session):
    s = session()
    for program in ("/usr/bin/su", "/bin/mount", "mount", "/usr/sbin/chroot",
                    "/usr/bin/unshare", "/bin/umount"):
        status, _, err = s.sh(program + " --version")
        # A shell that searches PATH calls what it may not run not found.
        assert (status == 126 and b"ermission denied" in err) or (
            status == 127 and "/" not in program), (program, err)
    s.ok("touch a && rm a && mkdir d && rmdir d")


def test_a_source_that_is_swapped_for_a_link_is_not_followed(service, client,
                                                             outside):
    target = service.workdir()
    with open(os.path.join(target, "secret"), "w", encoding="ascii") as f:
        f.write("secret")
    base = service.workdir()
    work = os.path.join(base, "work")
    os.mkdir(work)
    from conftest import own
    own(base)
    swapper = subprocess.Popen(
        ["/bin/sh", "-c", "while :; do mv %s/work %s/w2; ln -s %s %s/work; "
         "rm %s/work; mv %s/w2 %s/work; done" % (base, base, target, base,
                                                 base, base, base)],
        stderr=subprocess.DEVNULL)
    try:
        for i in range(40):
            try:
                client.launch("swap%d" % i, work)
            except instance.RpcError:
                continue
            status, out, _ = client.run("swap%d" % i, ["ls", work])
            # Either the directory, or what the link led to *as the user had
            # it at the look-up*: never a mixture that we did not check.
            assert status == 0
            assert out in (b"", b"secret\n")
            client.call("sandbox.destroy", sessionId="swap%d" % i)
    finally:
        swapper.kill()
        swapper.wait()


@pytest.mark.parametrize("path", ["/", "/etc", "/proc", "/sys", "/dev",
                                  "/run", "/boot", "/root", "/tmp",
                                  "/var/tmp", "/home"])
def test_a_source_of_the_system_is_refused(client, path):
    with pytest.raises(instance.RpcError) as error:
        client.launch("refused", path)
    assert error.value.name in ("badPath", "badParams", "lookupFailed")
    assert client.call("sandbox.list")["handles"] == [] or True


def test_the_home_as_a_whole_is_refused(client):
    with pytest.raises(instance.RpcError) as error:
        client.launch("refused", USER.pw_dir)
    assert error.value.name in ("badPath", "badParams")


def test_a_path_the_user_cannot_read_is_not_bound(service, client):
    workdir = service.workdir()
    os.chown(workdir, 0, 0)
    os.chmod(workdir, 0o700)
    with pytest.raises(instance.RpcError):
        client.launch("refused", workdir + "/x")


def test_root_is_never_the_user(client, service):
    for user in ("root", "0"):
        with pytest.raises(instance.RpcError) as error:
            client.launch("refused", service.workdir(), user=user)
        assert error.value.name == "badParams"
        assert error.value.message == "a run needs a user that is not root"


def test_no_secret_is_in_any_argument_list(session):
    secret = "s3cr3t-" + uuid.uuid4().hex
    s = session(env={"MY_SETTING": secret})
    assert s.ok("echo $MY_SETTING") == secret
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                assert secret.encode() not in f.read()
        except OSError:
            continue
    assert secret not in s.service.read_log()


def test_the_environment_is_a_pass_list(session):
    s = session(env={"LD_PRELOAD": "/x.so", "NODE_OPTIONS": "--x",
                     "GIT_SSH_COMMAND": "evil", "http_proxy": "http://evil",
                     "GOOD": "1"})
    env = dict(line.split("=", 1) for line in s.ok("env").splitlines())
    assert env["GOOD"] == "1"
    assert "LD_PRELOAD" not in env and "NODE_OPTIONS" not in env
    assert "stockade" in env["GIT_SSH_COMMAND"]
    assert env["http_proxy"] == env["HTTP_PROXY"] == "http://127.0.0.1:3128"
    assert env["ALL_PROXY"] == "socks5h://127.0.0.1:1080"
    assert env["NO_PROXY"] == "localhost,127.0.0.1,::1"
    assert env["NODE_USE_ENV_PROXY"] == "1"
    assert "SSH_AUTH_SOCK" not in env and "NOTIFY_SOCKET" not in env
