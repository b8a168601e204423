"""Programs of a terminal, started by `stockadectl run` on a real one in a
guarded work tree, and without stockade: the same files, no refusal. A program
that is not installed is a skip."""

import fcntl
import os
import pwd
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest

import instance
from conftest import own

PATH = "/usr/local/bin:/usr/bin:/bin"
WAIT_S = 20


class Terminal:
    """A program on a terminal of 24 lines, and the person before it."""

    def __init__(self, argv, **more):
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, 80, 0, 0))
        self.seen = b""
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(
                0, termios.TIOCSCTTY, 0), **more)
        os.close(slave)

    def read(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""      # EIO: nobody has it open any more
        self.seen += data
        return bool(data)

    def expect(self, pattern):
        """What matches, once it is on the screen; what came before is
        forgotten."""
        end = time.monotonic() + WAIT_S
        while True:
            match = re.search(pattern, self.seen, re.S)
            if match:
                self.seen = self.seen[match.end():]
                return match
            left = end - time.monotonic()
            assert left > 0 and (self.read(left) or re.search(
                pattern, self.seen, re.S)), (pattern, self.seen[-2000:])

    def type(self, text):
        os.write(self.master, text)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        """Exit status, and what was written since the last expect()."""
        limit = time.monotonic() + WAIT_S
        while self.read(0.1) or self.process.poll() is None:
            assert time.monotonic() < limit, self.seen[-2000:]
        return self.process.wait(), self.seen

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)


def until(path, text=None):
    """A file is there, and has this in it."""
    end = time.monotonic() + WAIT_S
    while True:
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                got = f.read()
            if text is None or text in got:
                return
        except OSError:
            pass
        assert time.monotonic() < end, path
        time.sleep(0.02)    # the program writes it when it wants to


# ---------------------------------------------------------------- programs

def vim(t, work):
    t.expect(rb"\[New\]|f.*0L|~")
    t.type(b"ihello from vim\rsecond line\x1b")
    t.type(b":w\r")
    t.expect(rb"written")
    assert os.path.exists(work + "/.f.swp")
    t.type(b":set backup writebackup\rggoinserted\x1b:w\r")
    t.expect(rb"written")
    t.type(b":w other\r")
    t.expect(rb"written")
    t.type(b":r !tty\r")
    t.expect(rb"/dev/pts/")
    t.type(b"u:wq\r")


def less(t, work):
    t.expect(rb"line 20")
    t.type(b"/line 500\r")
    t.expect(rb"line 5.*00")
    t.type(b"G")
    t.expect(rb"line 2000")
    t.type(b"g|$cat >part\r")
    until(work + "/part", "line 2000")
    t.type(b"\rq")


def tmux(t, work):
    t.expect(rb"\$ ")
    t.type(b"echo inside >made; tmux -S sock display -p '#{session_name}'\r")
    t.expect(rb"\nnamed|named\r")
    until(work + "/made")
    t.type(b"\x02%")
    t.expect(rb"\$ ")
    t.type(b"echo right >made2; exit\r")
    until(work + "/made2")
    t.type(b"exit\r")
    t.expect(rb"\[exited\]")


def node(t, work):
    t.expect(rb"> ")
    t.type(b"require('fs').writeFileSync('made', String(1 + 1))\r")
    until(work + "/made", "2")
    t.type(b"process.stdout.isTTY && 'on a ' + 'terminal'\r")
    t.expect(rb"'on a terminal'")
    t.type(b".save saved\r")
    until(work + "/saved", "writeFileSync")
    t.type(b".exit\r")


def python3(t, work):
    t.expect(rb">>> ")
    t.type(b"import os, sys, pty; open('made', 'w').write('x')\r")
    t.expect(rb">>> ")
    t.type(b"sys.stdin.isatty(), os.ctermid(), 'ready'[::-1]\r")
    t.expect(rb"True, '/dev/tty', 'ydaer'")
    t.type(b"import time; time.sleep(100)\r")
    time.sleep(0.3)     # until it sleeps, which nothing tells
    t.type(b"\x03")
    t.expect(rb"KeyboardInterrupt")
    t.type(b"open('/dev/tty', 'w').write('to the ' + 'tty\\n')\r")
    t.expect(rb"to the tty.*>>> ")
    t.type(b"\x04")


def make(t, work):
    t.expect(rb"\x1b\[.*warning.*built")
    t.expect(rb"name\? ")
    t.type(b"somebody\r")
    t.expect(rb"hello somebody, on a terminal")


def script(t, work):
    t.expect(rb"\$ ")
    t.type(b"tty; echo made >made\r")
    t.expect(rb"/dev/pts/\d+")
    t.type(b"exit\r")
    t.end()
    until(work + "/typescript", "/dev/pts/")
    os.unlink(work + "/typescript")


def bash(t, work):
    t.expect(rb"\$ ")
    t.type(b"sleep 100\r")
    time.sleep(0.3)     # as above
    t.type(b"\x1a")
    t.expect(rb"Stopped")
    t.type(b"jobs >jobs; kill %1; cat >typed\r")
    until(work + "/jobs", "sleep 100")
    t.type(b"one line\r\x04")
    until(work + "/typed", "one line")
    t.resize(30, 90)
    t.type(b"stty size >size; exec 3<>/dev/tty; echo over >&3\r")
    until(work + "/size", "30 90")
    t.type(b"exit 7\r")


def git(t, work):
    t.expect(rb"Please enter the commit")
    t.type(b"iby the editor\x1b:wq\r")
    t.expect(rb"by the editor")


def sqlite(t, work):
    t.expect(rb"sqlite> ")
    t.type(b"create table t(n); insert into t values(41);\r")
    t.expect(rb"sqlite> ")
    t.type(b"select n + 1 from t;\r")
    t.expect(rb"42")
    t.type(b".dump\r.output dump\r.dump\r.output\r.quit\r")


# A session of its own gets the first terminal that it opens, by itself.
CONTROLLING = """
import fcntl, os, pty, termios
pid, fd = pty.fork()
if pid == 0:
    t = os.open('/dev/tty', os.O_RDWR)
    os.write(t, b'own terminal\\n'); os._exit(os.isatty(t) - 1)
print(os.read(fd, 100), os.waitpid(pid, 0)[1])
m, s = os.openpty()
name = os.ttyname(s)
if os.fork() == 0:
    os.setsid()
    os.open(name, os.O_RDWR | os.O_NOCTTY)
    try: os.open('/dev/tty', os.O_RDWR); r = 'has one'
    except OSError: r = 'none yet'
    os.open(name, os.O_RDWR)
    fd = os.open('/dev/tty', os.O_RDWR)
    with open('made', 'w') as f: f.write('%s, then %d' % (r, os.isatty(fd)))
    os._exit(0)
os.wait()
print('fin' + 'ished')
"""


def controlling(t, work):
    t.expect(rb"own terminal.*0\r\n")
    t.expect(rb"finished")
    until(work + "/made", "none yet, then 1")


def lines(work):
    with open(work + "/lines", "w", encoding="ascii") as f:
        f.writelines("line %d\n" % i for i in range(1, 2001))


def program(work):
    with open(work + "/p.c", "w", encoding="ascii") as f:
        f.write('#include <stdio.h>\n#include <unistd.h>\n'
                'int main(void) { int unused; char s[80]; printf("name? ");\n'
                'fflush(stdout); if (fgets(s, 80, stdin) == NULL) return 1;\n'
                'for (char *p = s; *p; p++) if (*p == 10) *p = 0;\n'
                'printf("hello %s, %s\\n", s, isatty(1) ? "on a terminal" : '
                '"");\nreturn 0; }\n')
    with open(work + "/Makefile", "w", encoding="ascii") as f:
        f.write("all: p\n\t@echo built\n\t@./p\n"
                "p: p.c\n\t@cc -Wall -o p p.c\n")


def staged(work):
    git_here = "git -c safe.directory='*' "
    subprocess.run("%s init -q . && echo x >f && %s add f" % (
        git_here, git_here), shell=True, cwd=work, check=True)


def controller(work):
    with open(work + "/c.py", "w", encoding="ascii") as f:
        f.write(CONTROLLING)


VIM = "vim -Nu NONE -i NONE"
# command, person, prepare, exit status; files that differ by themselves
CASES = {
    "vim": (VIM + " f", vim, None, 0),
    "less": ("less lines", less, lines, 0),
    "tmux": ("env PS1='$ ' SHELL=/bin/sh tmux -S sock -f /dev/null new "
             "-s named", tmux, None, 0),
    "node": ("node", node, None, 0),
    "python3": ("python3 -q", python3, None, 0),
    "make": ("make", make, program, 0),
    "script": ("env PS1='$ ' SHELL=/bin/sh script -q", script, None, 0),
    "bash": ("env PS1='$ ' bash --norc --noprofile -i", bash, None, 7),
    "git": ("git -c user.name=a -c user.email=a@b -c core.editor='%s' "
            "commit" % VIM, git, staged, 0),
    "sqlite3": ("sqlite3 db", sqlite, None, 0),
    "controlling": ("python3 c.py", controlling, controller, 0),
}
DIFFERS = re.compile(r"^(p|db|sock)$|^\.git/")


def files(work):
    found = {}
    for at, _, names in os.walk(work):
        for name in names:
            path = os.path.join(at, name)
            rel = os.path.relpath(path, work)
            if DIFFERS.match(rel):
                found[rel] = None
                continue
            with open(path, "rb") as f:
                found[rel] = f.read()
    return {k: v for k, v in found.items() if not k.startswith(".git/") or
            k.endswith(".lock")}


def on_terminal(argv, person, work, **more):
    t = Terminal(argv, **more)
    try:
        person(t, work)
        return t.end()
    finally:
        t.close()


@pytest.mark.parametrize("name", CASES)
def test_on_a_terminal(service, name):
    command, person, prepare, want = CASES[name]
    for word in (name, command.split()[0],
                 "vim" if VIM in command else name):
        if word not in ("controlling", "env") and shutil.which(
                word, path=PATH) is None:
            pytest.skip("not installed: " + word)
    user = pwd.getpwnam(instance.RUN_USER)
    found = []
    for guarded in (False, True):
        work = service.workdir()
        if prepare is not None:
            prepare(work)
            own(work)
        line = "export TERM=xterm LC_ALL=C.UTF-8; cd %s; exec %s" % (
            work, command)
        if guarded:
            argv = [instance.CTL, "--socket", service.socket, "run", "-C",
                    work, "--user", instance.RUN_USER, "--", "sh", "-c", line]
            more = {}
        else:
            home = work + "-home"
            os.mkdir(home)
            os.chown(home, user.pw_uid, user.pw_gid)
            argv = ["setpriv", "--reuid", str(user.pw_uid), "--regid",
                    str(user.pw_gid), "--clear-groups", "sh", "-c", line]
            more = {"env": {"PATH": PATH, "HOME": home}}
        status, said = on_terminal(argv, person, work, **more)
        assert status == want, said
        assert b"stockade: denied" not in said
        found.append(files(work))
    assert found[1] == found[0]
