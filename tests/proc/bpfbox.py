"""A run under the mechanism bpf-lsm with the test as its launcherd: the real
programs in the kernel, and the same trees and cases as for the broker
(tests/guard/bpfbox.c). The programs stay in place between two runs; unload()
takes them out.

The run is root of its own namespaces that became the run's user, so that the
label alone stands between it and the names.
"""

import os
import subprocess
import tempfile

import brokerbox
from brokerbox import GID, NAMES, TOOLS, UID, table

BPFBOX = os.path.join(TOOLS, "bpfbox")
PINS = "/sys/fs/bpf/stockade-test"


class Denial:
    def __init__(self, fields):
        self.name, self.path, self.rule, self.remedy = fields[:4]
        self.pid, self.exe, self.count = (int(fields[4]), fields[5],
                                          int(fields[6]))


def bpfbox(*args, **kw):
    return subprocess.run([BPFBOX, "-d", PINS] + list(args),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=120, **kw)


def can_run():
    """Why not, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists(BPFBOX):
        return "built without bpf-lsm"
    done = bpfbox("-l")
    if done.returncode != 0:
        return "no BPF LSM: " + done.stderr.decode().strip()
    return None


def unload():
    return bpfbox("-x")


class Box:
    """As brokerbox.Box."""

    def __init__(self, tree, rules=NAMES, roots=None, empty=(), other=None,
                 uid=UID, gid=GID):
        self.tree, self.rules, self.empty = tree, rules, list(empty)
        self.roots = [tree.root] if roots is None else list(roots)
        self.other, self.uid, self.gid = other, uid, gid
        self.denials, self.lost = [], 0

    def arguments(self, scratch, argv, nest=True):
        def write(name, rules):
            path = os.path.join(scratch, name)
            with open(path, "wb") as f:
                f.write(table(self.roots, self.empty, rules))
            return path
        args = [BPFBOX, "-d", PINS, "-t", write("table", self.rules),
                "-e", os.path.join(scratch, "events")]
        if self.other is not None:
            args += ["-r", write("other", self.other)]
        if nest:
            args += [os.path.join(TOOLS, "harness"), "-m", "none",
                     "-u", str(self.uid), "-g", str(self.gid),
                     "-b", self.tree.root, "-b", self.tree.out]
        return args + list(argv)

    def run(self, argv, timeout=120, nest=True, **kw):
        """(status, standard output as text)."""
        with tempfile.TemporaryDirectory() as scratch:
            environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                               ASAN_OPTIONS="detect_leaks=0",
                               **kw.pop("env", {}))
            done = subprocess.run(
                self.arguments(scratch, argv, nest), check=False,
                stdout=subprocess.PIPE, timeout=timeout, env=environment,
                **kw)
            self.read(os.path.join(scratch, "events"))
        return done.returncode, done.stdout.decode(errors="surrogateescape")

    def read(self, path):
        with open(path, "rb") as f:
            fields = [x.decode(errors="surrogateescape")
                      for x in f.read().split(b"\0")[:-1]]
        rows = [fields[i:i + 7] for i in range(0, len(fields), 7)]
        self.lost = sum(int(r[1]) for r in rows if r[0] == "lost")
        self.denials = [Denial(r) for r in rows if r[0] != "lost"]


assert brokerbox
