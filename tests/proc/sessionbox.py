"""A stockade-control with sessions: the test plays the supervisor behind it,
looks paths up itself (as root, in a home that it made) and stands for runs.

    host = Host()
    client = host.box.client(uid=1000)
    run = host.launch(client, host.spec("s"))     # a ready sandbox
    command = run.exec(client, argv=["true"])
    command.exit(0)
"""

import os
import shutil
import stat
import tempfile

import msgpack

import controlbox
import messages

UID, GID = 1000, 1000
RUN_CAUSES = [value for _, value in messages.closed_set("RUN_CAUSES")]
RUN_NOTICES = [value for _, value in messages.closed_set("RUN_NOTICES")]
IO_STDIN, IO_STDOUT, IO_STDERR, IO_TTY = 1, 2, 4, 8
PLAN = ("version", "session", "home", "cwd", "hostname", "userns", "limits",
        "mounts", "masks", "files")


def cause(name):
    return RUN_CAUSES.index(name)


def text(value):
    assert value[-1:] == b"\0"
    return value[:-1].decode()


def read_memfd(fd):
    data = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    return msgpack.unpackb(data, raw=False, strict_map_key=False)


class Plan:
    def __init__(self, fd):
        for name, value in zip(PLAN, read_memfd(fd)):
            setattr(self, name, value)
        self.home, self.cwd = text(self.home), text(self.cwd)
        self.mounts = [(text(s), text(t), kind, ro)
                       for s, t, kind, ro, _, _ in self.mounts]
        self.masks = {text(path): (how, kind, system)
                      for path, how, kind, system in self.masks}
        self.files = {text(path): body.decode() for path, body in self.files}

    def targets(self):
        return {t: ro for _, t, _, ro in self.mounts}


class Command:
    """A command that runs, as launcherd would have started it."""

    def __init__(self, run, client, ident, ask):
        self.run, self.client, self.number = run, client, ask.exec
        self.ask = ask
        version, self.cwd, argv, env = read_memfd(ask.fds[0])
        assert version == 1
        self.cwd = text(self.cwd)
        self.argv = [text(a) for a in argv]
        self.env = dict(text(e).split("=", 1) for e in env)
        self.passed = ask.fds[1:]
        self.ident, self.id = ident, None
        self.stdin = self.stdout = self.stderr = self.master = -1

    def start(self, pid=7):
        """Answers, with the pipes that launcherd would have made."""
        io, fds = 0, []

        def pipe(bit, ours_reads):
            nonlocal io
            r, w = os.pipe()
            io |= bit
            fds.append(w if ours_reads else r)
            return r if ours_reads else w

        if self.ask.tty:
            self.master, slave = os.openpty()
            io, fds = IO_TTY, [self.master]
            self.master = slave
        else:
            if self.ask.passed < 1 and self.ask.stdin_open:
                self.stdin = pipe(IO_STDIN, True)
            if self.ask.passed < 2:
                self.stdout = pipe(IO_STDOUT, False)
            if self.ask.passed < 3:
                self.stderr = pipe(IO_STDERR, False)
        self.run.host.channel.send(
            "exec_answer", fds, sandbox=self.run.sandbox, exec=self.number,
            pid=pid, io=io)
        for fd in fds:
            os.close(fd)
        self.answer = self.client.answer(self.ident)
        self.id = self.answer["execId"]
        return self

    def fail(self, error, step):
        self.run.host.channel.send(
            "exec_answer", sandbox=self.run.sandbox, exec=self.number,
            error=error, step=step)

    def close(self):
        for name in ("stdin", "stdout", "stderr", "master"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)

    def told(self, status=0, signal=0):
        """Only the message; the pipes stay."""
        self.run.host.channel.send(
            "exec_exit", sandbox=self.run.sandbox, exec=self.number,
            status=status, signal=signal)

    def exit(self, status=0, signal=0):
        self.close()
        self.told(status, signal)


class Run:
    def __init__(self, host, sandbox, plan, egress, request, digest):
        self.host, self.sandbox, self.plan = host, sandbox, plan
        self.egress, self.request, self.digest = egress, request, digest
        self.handle = None

    def ask_exec(self, client, fds=(), **params):
        ident = client.send("sandbox.exec", fds, sessionId=self.name, **params)
        ask = self.host.channel.expect("exec_ask", sandbox=self.sandbox)
        return Command(self, client, ident, ask)

    def exec(self, client, fds=(), **params):
        return self.ask_exec(client, fds, **params).start()

    def end(self, name="exit", **values):
        self.host.channel.send("run_ended", sandbox=self.sandbox,
                               cause=cause(name), **values)


class Host:
    """home: the run user's; work: a directory in it. conf: lines, or a
    function of the home that gives them."""

    def __init__(self, conf="", **more):
        self.home = os.path.realpath(tempfile.mkdtemp(
            prefix="stockade-sessionbox-"))
        os.chmod(self.home, 0o755)
        self.base = os.path.realpath(tempfile.mkdtemp(
            prefix="stockade-sessionbox-"))     # of the service
        for name in ("run", "state", "shared"):
            os.mkdir(os.path.join(self.base, name))
        self.work = self.dir("work")
        self.errors = {}        # path: errno, for look-ups that fail
        self.found = []         # what the scan finds: (what, path, kind, item,
                                # source)
        self.next_sandbox = 1
        self.fds = []
        if callable(conf):
            conf = conf(self.home)
        self.box = controlbox.Box(
            conf='runtime-dir "%s"\nstate-dir "%s"\n%s' % (
                os.path.join(self.base, "run"),
                os.path.join(self.base, "state"), conf), **more)
        self.channel = self.box.channel

    def open(self, **more):
        self.box.open(**more)
        return self

    def dir(self, name):
        path = os.path.join(self.home, name)
        os.makedirs(path, exist_ok=True)
        return path

    def file(self, name, content="x"):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content)
        return path

    def spec(self, session="s", **more):
        spec = {"sessionId": session, "workspaceId": "w",
                "bindMounts": [{"hostPath": self.work}]}
        spec.update(more)
        return {k: v for k, v in spec.items() if v is not None}

    # ------------------------------------------------ look-ups

    def result(self, path):
        literal = path
        if path.startswith("~/"):
            literal = os.path.normpath(os.path.join(self.home, path[2:]))
        if literal in self.errors:
            return [messages.cstr(literal), b"\0", self.errors[literal],
                    0, 0, 0, 0, 0, False, False]
        try:
            st = os.stat(literal)
        except OSError as error:
            return [messages.cstr(literal), b"\0", error.errno, 0, 0, 0, 0,
                    0, False, False]
        kind = 1 if stat.S_ISDIR(st.st_mode) else \
            2 if stat.S_ISREG(st.st_mode) else \
            3 if stat.S_ISSOCK(st.st_mode) else 4
        return [messages.cstr(literal),
                messages.cstr(os.path.realpath(literal)), 0, kind, st.st_dev,
                st.st_ino, st.st_mode, st.st_uid, True, True]

    def look_up(self, uid=UID, **values):
        """Answers the next question; returns the message and the paths."""
        ask = self.channel.expect("lookup_ask")
        version, items, self.scan = read_memfd(ask.fds[0])
        assert version == 3
        paths = [text(item) for item, _ in items]
        fd = messages.memfd(messages.lookup_results(
            [self.result(path) for path in paths], self.found))
        answer = dict(request=ask.request, run_uid=ask.run_uid, run_gid=GID,
                      user="tester", home=self.home, shell="/bin/bash")
        answer.update(values)
        self.channel.send("lookup_answer", [fd], **answer)
        os.close(fd)
        return ask, paths

    def fail_look_up(self, error, reason="it failed"):
        ask = self.channel.expect("lookup_ask")
        os.close(ask.fds[0])
        self.channel.send("lookup_answer", request=ask.request, error=error,
                          reason=reason)

    # ------------------------------------------------ launches

    def planned(self, client, spec, **more):
        """Up to launch_ask: (id of the call, run that is not ready)."""
        ident = client.send("sandbox.launch", spec=spec, **more)
        self.look_up()
        return ident, self.asked(spec["sessionId"])

    def asked(self, name):
        ask = self.channel.expect("launch_ask")
        kept = tuple(os.dup(fd) for fd in ask.fds)
        plan, egress = Plan(ask.fds[0]), read_memfd(ask.fds[1])
        run = Run(self, self.next_sandbox, plan, egress, ask.request,
                  ask.plan_digest)
        run.fds = kept
        self.fds += run.fds
        run.name = name
        run.client, run.run_uid = ask.client, ask.run_uid
        self.next_sandbox += 1
        return run

    def ready(self, run, **values):
        self.channel.send("launch_answer", request=run.request,
                          sandbox=run.sandbox, pid=4000 + run.sandbox,
                          landlock_abi=6, **values)

    def launch(self, client, spec, **more):
        ident, run = self.planned(client, spec, **more)
        self.ready(run)
        run.handle = client.answer(ident)["handle"]
        return run

    def refused(self, client, spec, look_up=True, **more):
        """The error of a launch that is refused before anything starts."""
        ident = client.send("sandbox.launch", spec=spec, **more)
        if look_up:
            self.look_up()
        try:
            result = client.answer(ident)
        except controlbox.Error as error:
            assert "launch_ask" not in [m.name for m in self.channel.backlog]
            return error
        raise AssertionError("launched: %r" % result)

    def close(self):
        status = self.box.close()
        for fd in self.fds:
            os.close(fd)
        shutil.rmtree(self.home)
        shutil.rmtree(self.base)
        return status
