"""A guarded run with the test as its launcherd: the real stockade-broker, the
real Landlock layer and listener filter, and a program of ours under them
(tests/guard/harness.c).

    with Tree() as tree:                      # root/, out/ of the run's user
        box = Box(tree, rules=["-w", "**/.env"])
        status, text = box.run([sys.executable, "-c", "..."])
        box.denials                           # broker_denial messages
    Box(tree, mode="none")                    # the control: no protection
"""

import os
import shutil
import socket
import subprocess
import tempfile
import threading

import messages

BUILD = os.environ.get("STOCKADE_BUILD", "build")
BROKER = os.path.join(BUILD, "libexec", "stockade-broker")
TOOLS = os.path.join(BUILD, "tests", "guard")
# On an emulated machine (tests/vm) deadlines are this much later, and what is
# only repeated to be sure is repeated that much less.
SLOW = int(os.environ.get("STOCKADE_SLOW", "1"))
UID, GID = 4242, 4243
BROKER_UID, BROKER_GID = 4252, 4253
ACTIONS = [name for _, name in messages.closed_set("VIOLATIONS")]
NAMES = ["-i", "**/.env", "-i", "**/.env.*", "-i", "**/*.key", "-i",
         "**/*.pem", "-g", ".git/hooks/**", "-g", ".git/config",
         "-x", ".env.example"]


def can_run():
    """Why not, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for path in (BROKER, os.path.join(TOOLS, "harness")):
        if not os.path.exists(path):
            return "no " + path
    return None


class Tree:
    """root/, which is guarded, and out/, where the run may write."""

    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="stockade-broker-")
        os.chmod(self.base, 0o755)
        self.root, self.out = (os.path.join(self.base, n)
                               for n in ("root", "out"))
        for path in (self.root, self.out):
            os.mkdir(path, 0o755)
            os.chown(path, UID, GID)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.base)

    def make(self, name, text=None, mode=0o644):
        """A file of the run's user below base, or with a final / a
        directory."""
        path = os.path.join(self.base, name)
        made = []
        parent = os.path.dirname(path.rstrip("/"))
        while not os.path.exists(parent):
            made.append(parent)
            parent = os.path.dirname(parent)
        for parent in reversed(made):
            os.mkdir(parent, 0o755)
            os.chown(parent, UID, GID)
        if name.endswith("/"):
            if not os.path.isdir(path):
                os.mkdir(path)
                os.chown(path, UID, GID)
            return path.rstrip("/")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text or "text")
        os.chmod(path, mode)
        os.chown(path, UID, GID)
        return path

    def names(self, where="root"):
        """Every name below, relative, links not followed."""
        found = []
        top = os.path.join(self.base, where)
        for at, dirs, files in os.walk(top):
            found += [os.path.relpath(os.path.join(at, n), top)
                      for n in dirs + files]
        return sorted(found)


def table(roots, empty=(), rules=NAMES):
    args = []
    for path in roots:
        args += ["-r", path]
    for path in empty:
        args += ["-e", path]
    return subprocess.run([os.path.join(TOOLS, "table")] + args + list(rules),
                          check=True, stdout=subprocess.PIPE).stdout


class Box:
    def __init__(self, tree, rules=NAMES, mode="full", roots=None, empty=(),
                 writable=None, binds=None, read_only=(), uid=UID, gid=GID,
                 groups=b"", broker=True):
        self.tree, self.mode, self.broker_wanted = tree, mode, broker
        self.roots = [tree.root] if roots is None else list(roots)
        self.empty = list(empty)
        self.writable = ([tree.root, tree.out] if writable is None
                         else list(writable))
        self.binds = ([tree.root, tree.out] if binds is None
                      else list(binds))
        self.read_only = list(read_only)
        self.rules, self.uid, self.gid = rules, uid, gid
        self.groups = groups
        self.denials = []
        self.process = self.chan = self.control = None

    def start(self, argv, **kw):
        control, theirs = messages.pair()
        ours, channel = messages.pair()
        # All of it on one processor, the broker included.
        args = ["taskset", "-c", "0"] if kw.pop("pin", False) else []
        args += [os.path.join(TOOLS, "harness"), "-c", str(theirs.fileno()),
                 "-k", str(channel.fileno()), "-B", BROKER,
                "-u", str(self.uid), "-g", str(self.gid),
                "-U", str(BROKER_UID), "-G", str(BROKER_GID),
                "-m", self.mode]
        for option, paths in (("-b", self.binds), ("-o", self.read_only),
                              ("-r", self.roots + self.empty),
                              ("-w", self.writable)):
            for path in paths:
                args += [option, path]
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                           ASAN_OPTIONS="detect_leaks=0",
                           **kw.pop("env", {}))
        self.process = subprocess.Popen(
            args + list(argv), pass_fds=(theirs.fileno(), channel.fileno()),
            env=environment, start_new_session=True, **kw)
        theirs.close()
        channel.close()
        self.control = control
        self.chan = messages.Channel(ours, me="launcherd", peer="broker")
        if self.mode not in ("none", "landlock"):
            self._arm()
        return self.process

    def _arm(self):
        """launcherd's part of a start."""
        data, anc, _, _ = self.control.recvmsg(16, socket.CMSG_SPACE(4))
        assert data == b"L", "no listener"
        listener = int.from_bytes(anc[0][2][:4], "little")
        fd = messages.memfd(table(self.roots, self.empty, self.rules))
        self.chan.send("broker_setup", [fd], uid=self.uid, gid=self.gid,
                       groups=self.groups)
        try:
            self.chan.send("broker_listen", [listener])
        except BrokenPipeError:
            pass  # it has failed already; its reason waits to be read
        os.close(fd)
        os.close(listener)
        msg = self.chan.expect("broker_ready", "broker_failed")
        assert msg.name == "broker_ready", vars(msg)
        self.control.send(b"G")

    def finish(self, timeout=60):
        """(status, standard output as text)."""
        drain = threading.Thread(target=self._drain)
        drain.start()
        try:
            text = self.process.communicate(timeout=timeout * SLOW)[0]
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            drain.join(10)
            self.close()
        return self.process.returncode, (text or b"").decode(
            errors="surrogateescape")

    def _drain(self):
        if self.mode in ("none", "landlock"):
            return
        try:
            while True:
                self.denials.append(self.chan.receive(60))
        except (messages.Ended, ConnectionError, socket.timeout, OSError):
            pass

    def run(self, argv, timeout=60, **kw):
        self.denials = []
        self.start(argv, stdout=subprocess.PIPE, **kw)
        return self.finish(timeout)

    def close(self):
        self.chan.close()
        self.control.close()

    def broker_pid(self):
        """The broker of this box, as the host counts."""
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open("/proc/%s/stat" % name, encoding="ascii",
                          errors="replace") as f:
                    comm, rest = f.read().rsplit(")", 1)
                parent = rest.split()[1]
                with open("/proc/%s/stat" % parent, encoding="ascii",
                          errors="replace") as f:
                    above = f.read().rsplit(")", 1)[1].split()[1]
            except OSError:
                continue
            if (comm.endswith("(stockade-broker") and
                    int(above) == self.process.pid):
                return int(name)
        return None
