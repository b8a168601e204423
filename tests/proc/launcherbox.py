"""A real stockade-launcherd with the test as its supervisor.

    l = Launcherd()                       # started and set up
    run = l.launch(mounts=[(path, False)])
    status, out, err = run.command(["sh", "-c", "exit 7"])
    run.destroy()
    l.close()                             # end of file, then nothing is left

Ids: the tests' user is uid NOBODY of the host's user database.
"""

import os
import pwd
import select
import shutil
import struct
import subprocess
import tempfile
import time

import msgpack

import messages

BUILD = os.environ.get("STOCKADE_BUILD", "build")
LIBEXEC = os.path.abspath(os.path.join(BUILD, "libexec"))
PROGRAM = os.path.join(LIBEXEC, "stockade-launcherd")
NOBODY = pwd.getpwnam("nobody").pw_uid
HOME = "/home/u"
CAUSES = [name for name, _ in messages.closed_set("RUN_CAUSES")]
ROWS = [text for _, text in messages.closed_set("PROBE_ROWS")]
DIR, FILE = 0, 1
EMPTY_DIR, NO_FILE, READ_ONLY, PINNED = 0, 1, 2, 3
PASSWD = b"u:x:%d:%d::%s:/bin/sh\n" % (NOBODY, NOBODY, HOME.encode())
ENV = ("PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + HOME)


def can_run():
    """Why not, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists(PROGRAM):
        return "no " + PROGRAM
    if shutil.which("bwrap") is None:
        return "no bubblewrap"
    return None


def plan(mounts=(), masks=(), files=(), home=HOME, cwd=None, hostname="box",
         userns=False, memory=0, pids=0, cpus=0, named=0, raw=None,
         roots=()):
    """protocol/plan.h. mounts: (path, read_only) or (source, target, kind,
    read_only, dev, ino); masks: (path, how, kind, system), and True
    when it was found; roots: (path, empty)."""
    c = messages.cstr
    rows = []
    for m in mounts:
        if len(m) == 2:
            kind = DIR if os.path.isdir(m[0]) else FILE
            m = (m[0], m[0], kind, m[1], 0, 0)
        rows.append([c(m[0]), c(m[1]), m[2], m[3], m[4], m[5]])
    files = list(files) or [("/etc/passwd", PASSWD)]
    return msgpack.packb([
        2 if roots else 1, b"", c(home), c(cwd or home), c(hostname), userns,
        [memory, pids, cpus, 8 << 20, 8 << 20, 8 << 20, named], rows,
        [[c(p), *rest] for p, *rest in masks],
        [[c(p), data] for p, data in files]] + (
            [[[c(p), empty] for p, empty in roots]] if roots else []),
        use_bin_type=True)


def exec_plan(argv, cwd="/", env=ENV):
    c = messages.cstr
    return msgpack.packb([1, c(cwd), [c(a) for a in argv],
                          [c(e) for e in env]], use_bin_type=True)


def read_file(path):
    with open(path, encoding="ascii", errors="replace") as f:
        return f.read()


def own_cgroup_dirs():
    """Directories of this process's own cgroups, by type."""
    own = {}
    for line in read_file("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            own[name] = path
    result = []
    for line in read_file("/proc/self/mountinfo").splitlines():
        left, right = line.split(" - ")
        kind, _, options = right.split(" ", 2)
        root, point = left.split(" ")[3:5]
        if kind == "cgroup2" and "" in own:
            path = own[""]
        elif kind == "cgroup":
            names = [o for o in options.split(",") if o in own and o]
            if not names:
                continue
            path = own[names[0]]
        else:
            continue
        if root != "/" and path.startswith(root):
            path = path[len(root):]
        result.append(point + (path if path != "/" else ""))
    return result


def unified_top():
    """The mount point of the cgroup2 tree."""
    for line in read_file("/proc/self/mountinfo").splitlines():
        left, right = line.split(" - ")
        if right.startswith("cgroup2 "):
            return left.split(" ")[4]
    return "/nonexistent"


AUTO, BROKER, BPF_LSM = range(3)  # enum guard_mechanism


class Launcherd:
    def __init__(self, probe=0, guard=None, allow_userns=0, setup=True, instance=None,
                 preexec=None, program=PROGRAM, libexec=None):
        self.libexec = libexec or LIBEXEC
        self.instance = instance or "t%d-%d" % (os.getpid(),
                                                time.monotonic_ns() % 10**9)
        self.runtime = tempfile.mkdtemp(prefix="stockade-launcherbox-")
        os.chmod(self.runtime, 0o755)
        self.next = 1
        self.probe, self.allow_userns = probe, allow_userns
        # The choice for a probe; else what has passed one.
        self.guard = (AUTO if probe else BROKER) if guard is None else guard
        self.start(setup, preexec, program)

    def start(self, setup=True, preexec=None, program=PROGRAM):
        ours, theirs = messages.pair()

        def child():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)
            if preexec:
                preexec()

        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program] if isinstance(program, str) else program,
            preexec_fn=child, close_fds=False,
            stdin=subprocess.DEVNULL, stderr=self.log)
        theirs.close()
        self.chan = messages.Channel(ours, me="supervisor", peer="launcherd")
        if setup:
            self.chan.expect("ready")
            self.setup()

    def setup(self, instance=None, libexec=None):
        fd = os.open(self.runtime, os.O_RDONLY | os.O_DIRECTORY)
        self.chan.send("launcher_setup", [fd],
                       instance=instance or self.instance,
                       libexec_dir=libexec or self.libexec, probe=self.probe, guard=self.guard,
                       allow_userns=self.allow_userns)
        os.close(fd)

    def number(self):
        self.next += 1
        return self.next

    def lookup(self, uid=NOBODY, paths=("/",), from_client=1, groups=(),
               client_gid=0, admin_gid=0):
        request = self.number()
        question = messages.memfd(messages.lookup_question(paths))
        self.chan.send("lookup_start", [question], request=request,
                       run_uid=uid, from_client=from_client,
                       groups=struct.pack("=%dI" % len(groups), *groups),
                       client_gid=client_gid, admin_gid=admin_gid)
        os.close(question)
        return self.chan.expect("lookup_answer", request=request, timeout=15)

    def send_launch(self, uid=NOBODY, groups=(), raw=None, sealed=True,
                    request=None, table=None, **plan_kw):
        if request is None:
            answer = self.lookup(uid, groups=groups)
            assert answer.error == 0, vars(answer)
            for fd in answer.fds:
                os.close(fd)
            request = answer.request
        sandbox = self.number()
        fd = messages.memfd(plan(**plan_kw) if raw is None else raw, sealed)
        fds = [fd] if table is None else [fd, messages.memfd(table, sealed)]
        self.chan.send("launch_start", fds, sandbox=sandbox,
                       request=request, run_uid=uid)
        for fd in fds:
            os.close(fd)
        return sandbox

    def launch(self, **kw):
        sandbox = self.send_launch(**kw)
        made = self.chan.expect("launch_made", sandbox=sandbox)
        answer = self.chan.expect("launch_answer", sandbox=sandbox,
                                  timeout=15)
        assert answer.code == 0, vars(answer)
        return Run(self, sandbox, made, answer)

    def refused(self, **kw):
        """A launch that must fail: the answer. Nothing of it may be left."""
        sandbox = self.send_launch(**kw)
        answer = self.chan.expect("launch_answer", sandbox=sandbox,
                                  timeout=15)
        assert answer.code != 0
        for msg in [m for m in self.chan.backlog if m.name == "launch_made"]:
            self.chan.backlog.remove(msg)
            for fd in msg.fds:
                os.close(fd)
        assert self.cgroups() == []
        return answer

    def cgroups(self):
        """The runs' directories of this instance, in every tree."""
        found = []
        for path in own_cgroup_dirs():
            top = os.path.join(path, "stockade-" + self.instance)
            try:
                found += [os.path.join(top, n) for n in os.listdir(top)
                          if n.startswith("run-")]
            except FileNotFoundError:
                pass
        return found

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def close(self, timeout=10):
        self.chan.close()
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        self.log.close()
        shutil.rmtree(self.runtime, ignore_errors=True)
        return status


class Run:
    def __init__(self, owner, sandbox, made, answer):
        self.l, self.sandbox, self.answer = owner, sandbox, answer
        self.cgroup, self.http, self.socks = made.fds

    def pids(self):
        """All, those that serve the others first."""
        return self.pids_in("") + self.pids_in("processes/")

    def pids_in(self, where):
        try:
            fd = os.open(where + "cgroup.procs", os.O_RDONLY,
                         dir_fd=self.cgroup)
        except FileNotFoundError:       # nothing serves them
            return []
        try:
            return [int(p) for p in os.read(fd, 1 << 16).split()]
        finally:
            os.close(fd)

    def send_exec(self, argv, passed=(), tty=0, stdin_open=0, rows=0, cols=0,
                  raw=None, times=(), **plan_kw):
        number = self.l.number()
        fd = messages.memfd(exec_plan(argv, **plan_kw) if raw is None else raw)
        self.l.chan.send("exec_ask", [fd] + list(passed),
                         sandbox=self.sandbox, exec=number, client=1,
                         passed=len(passed), tty=tty, stdin_open=stdin_open,
                         rows=rows, cols=cols, **dict(times))
        os.close(fd)
        return number

    def start(self, argv, **kw):
        """(number, answer); answer.fds lowest EXEC_IO bit first."""
        number = self.send_exec(argv, **kw)
        return number, self.l.chan.expect("exec_answer", exec=number)

    def wait(self, number, timeout=20):
        end = self.l.chan.expect("exec_exit", exec=number, timeout=timeout)
        return -end.signal if end.signal else end.status

    def command(self, argv, timeout=20, **kw):
        """Runs to the end: (status or -signal, stdout, stderr)."""
        number, answer = self.start(argv, **kw)
        assert answer.error == 0, vars(answer)
        text = {fd: b"" for fd in answer.fds}
        out, err = answer.fds
        left = list(answer.fds)
        while left:
            ready, _, _ = select.select(left, [], [], timeout)
            assert ready, "no output, no end"
            for fd in ready:
                got = os.read(fd, 65536)
                text[fd] += got
                if not got:
                    left.remove(fd)
                    os.close(fd)
        return self.wait(number), text[out], text[err]

    def sh(self, line, **kw):
        return self.command(["/bin/sh", "-c", line], **kw)

    def send_destroy(self, cause="MANUAL", grace_ms=0):
        self.l.chan.send("destroy_ask", sandbox=self.sandbox,
                         cause=CAUSES.index(cause), grace_ms=grace_ms)

    def ended(self, timeout=10):
        end = self.l.chan.expect("run_ended", sandbox=self.sandbox,
                                 timeout=timeout)
        self.release()
        return end

    def destroy(self, **kw):
        self.send_destroy(**kw)
        return self.ended()

    def freeze(self, frozen):
        request = self.l.number()
        self.l.chan.send("freeze_ask", request=request, sandbox=self.sandbox,
                         frozen=int(frozen))
        return self.l.chan.expect("freeze_answer", request=request)

    def release(self):
        for fd in (self.cgroup, self.http, self.socks):
            os.close(fd)


def work_tree(uid=NOBODY):
    """A directory of the run's user outside /tmp's private copy."""
    path = tempfile.mkdtemp(prefix="stockade-work-", dir="/srv")
    os.chmod(path, 0o755)
    os.chown(path, uid, uid)
    return path
