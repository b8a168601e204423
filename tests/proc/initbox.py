"""A stockade-init as launcherd starts it: by bubblewrap, as root with four
capabilities, pid 1 of its own namespaces, the channel on descriptor 3.

    box = Box()                      # started, nothing sent
    box.setup()                      # init_setup sent, init_ready received
    status, out, err = box.run(["sh", "-c", "exit 7"])
"""

import os
import select
import shutil
import subprocess
import tempfile

import msgpack

import messages

BUILD = os.environ.get("STOCKADE_BUILD", "build")
INIT = os.path.join(BUILD, "libexec", "stockade-init")
UID, GID = 4242, 4243
HOME = "/home/u"
PATH = "/usr/local/bin:/usr/bin:/bin"


def can_run():
    """Why not, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists(INIT):
        return "no " + INIT
    if shutil.which("bwrap") is None:
        return "no bubblewrap"
    return None


def plan(mounts=(), home=HOME, userns=False):
    """protocol/plan.h; mounts are (target, kind, read_only)."""
    c = messages.cstr
    rows = [[c(t), c(t), kind, ro, 0, 0] for t, kind, ro in mounts]
    return msgpack.packb([1, b"", c(home), c(home), c("box"), userns,
                          [0, 0, 0, 0, 0, 0, 0], rows, [], []],
                         use_bin_type=True)


def exec_plan(argv, cwd="/", env=("PATH=" + PATH,)):
    c = messages.cstr
    return msgpack.packb([1, c(cwd), [c(a) for a in argv],
                          [c(e) for e in env]], use_bin_type=True)


class Box:
    def __init__(self, uid=UID, gid=GID, mounts=(), program=(INIT,),
                 cap_add=("SETUID", "SETGID", "SETPCAP", "CHOWN")):
        """mounts: (host path, guest path, read_only), directories."""
        self.uid, self.gid = uid, gid
        self.mounts = list(mounts)
        self.next_exec = 1
        ours, theirs = messages.pair()
        args = ["--unshare-pid", "--unshare-ipc", "--unshare-uts",
                "--unshare-cgroup-try", "--unshare-net", "--as-pid-1",
                "--die-with-parent", "--new-session", "--clearenv",
                "--setenv", "PATH", PATH, "--cap-drop", "ALL"]
        for cap in cap_add:
            args += ["--cap-add", "CAP_" + cap]
        for path in ("/run", "/home"):
            args += ["--perms", "0755", "--dir", path]
        args += ["--ro-bind", "/usr", "/usr"]
        for name in ("bin", "lib", "lib64", "sbin"):
            args += ["--symlink", "usr/" + name, "/" + name]
        args += ["--perms", "0755", "--dir", "/etc",
                 "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys",
                 "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm",
                 "--perms", "1777", "--tmpfs", "/tmp",
                 "--perms", "0755", "--tmpfs", "/run",
                 "--perms", "0755", "--dir", "/run/stockade",
                 "--perms", "0700", "--dir", "/run/stockade/run",
                 "--perms", "0700", "--tmpfs", HOME]
        for host, guest, read_only in self.mounts:
            parent = os.path.dirname(guest)
            made = []
            while parent.startswith(HOME + "/"):
                made.append(parent)
                parent = os.path.dirname(parent)
            for path in reversed(made):
                args += ["--perms", "0755", "--dir", path]
            args += ["--ro-bind" if read_only else "--bind", host, guest]
        args += ["--ro-bind", INIT, "/run/stockade/init",
                 "--remount-ro", "/"]
        guest_program = ["/run/stockade/init"] + list(program[1:])
        if program[0] != INIT:
            guest_program = list(program)

        def channel():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)

        self.process = subprocess.Popen(
            ["bwrap"] + args + ["--"] + guest_program,
            stdin=subprocess.DEVNULL, preexec_fn=channel, close_fds=False)
        theirs.close()
        self.chan = messages.Channel(ours, me="launcherd", peer="init")

    def send_setup(self, raw_plan=None, home=HOME, groups=b"", userns=0,
                   sealed=True):
        if raw_plan is None:
            raw_plan = plan([(g, 0, ro) for _, g, ro in self.mounts])
        fd = messages.memfd(raw_plan, sealed)
        self.chan.send("init_setup", [fd], uid=self.uid, gid=self.gid,
                       groups=groups, home=home, userns=userns)
        os.close(fd)

    def setup(self, **kw):
        self.send_setup(**kw)
        msg = self.chan.expect("init_ready", "init_failed")
        assert msg.name == "init_ready", vars(msg)
        return msg

    def start(self, argv, stdio=None, tty=False, rows=0, cols=0, **plan_kw):
        """Sends init_exec; returns (number, answer)."""
        number = self.next_exec
        self.next_exec += 1
        fd = messages.memfd(exec_plan(argv, **plan_kw))
        self.chan.send("init_exec", [fd] + list(stdio or []), exec=number,
                       tty=int(tty), rows=rows, cols=cols)
        os.close(fd)
        return number, self.chan.expect("init_exec_answer", exec=number)

    def run(self, argv, data=b"", timeout=20, **plan_kw):
        """Runs to the end: (status or -signal, stdout, stderr)."""
        in_r, in_w = os.pipe()
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        number, answer = self.start(argv, [in_r, out_w, err_w], **plan_kw)
        for fd in (in_r, out_w, err_w):
            os.close(fd)
        os.write(in_w, data)
        os.close(in_w)
        text = {out_r: b"", err_r: b""}
        left = [out_r, err_r]
        while left:
            ready, _, _ = select.select(left, [], [], timeout)
            assert ready, "no output, no end"
            for fd in ready:
                got = os.read(fd, 65536)
                text[fd] += got
                if not got:
                    left.remove(fd)
                    os.close(fd)
        if answer.error:
            return answer.error, answer.step.encode(), b""
        end = self.chan.expect("init_exit", exec=number, timeout=timeout)
        return (-end.signal if end.signal else end.status, text[out_r],
                text[err_r])

    def close(self):
        self.chan.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def temporary_tree(uid=UID, gid=GID):
    """A work tree on the host that belongs to the run's user."""
    path = tempfile.mkdtemp(prefix="stockade-initbox-")
    os.chmod(path, 0o755)
    os.chown(path, uid, gid)
    return path


