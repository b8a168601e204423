"""Every broken packet at stockade-launcherd from a supervisor's seat, and a
stockade-init and a stockade-lookup that are hostile. A broken record of the
supervisor ends launcherd with all runs; a broken one of init ends that run and
no other; a broken one of lookup ends that look-up."""

import os
import shutil
import subprocess
import tempfile

import pytest

import launcherbox
import messages
from launcherbox import Launcherd

pytestmark = pytest.mark.skipif(launcherbox.can_run() is not None,
                                reason=str(launcherbox.can_run()))

ROWS = messages.hostile_packets("supervisor", "launcherd")


def send(chan, packet, nfds):
    fds = [messages.memfd(b"x") for _ in range(nfds)]
    try:
        messages.send_packet(chan.sock, packet, fds)
    except (BrokenPipeError, ConnectionResetError):
        pass
    for fd in fds:
        os.close(fd)


@pytest.mark.parametrize("label,packet,nfds", ROWS, ids=[r[0] for r in ROWS])
def test_broken_packet_of_the_supervisor_ends_it(label, packet, nfds):
    daemon = Launcherd()
    send(daemon.chan, packet, nfds)
    assert daemon.chan.ended()
    assert daemon.process.wait(5) == 1
    assert "peer broke the message rules" in daemon.log_text() or \
        "truncated" in daemon.log_text() or nfds > 4
    daemon.close()


def test_runs_end_with_it():
    daemon = Launcherd()
    run = daemon.launch()
    pids = run.pids()
    send(daemon.chan, b"\x90", 0)
    assert daemon.process.wait(5) == 1
    for pid in pids:        # killed; who inherited it may not have reaped it
        try:
            with open("/proc/%d/stat" % pid, encoding="ascii") as f:
                assert f.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except FileNotFoundError:
            pass
    assert daemon.cgroups() == []
    run.release()
    daemon.close()


WAITING = [m.name for m in messages.TABLE.values()
           if "supervisor" in m.senders and "launcherd" in m.receivers and
           m.name != "launcher_setup"]


@pytest.mark.parametrize("name", WAITING)
def test_message_before_set_up_ends_it(name):
    daemon = Launcherd(setup=False)
    daemon.chan.expect("ready")
    send(daemon.chan, messages.TABLE[name].pack(),
         messages.TABLE[name].min_fds)
    assert daemon.chan.ended()
    assert daemon.process.wait(5) == 1
    daemon.close()


def test_second_set_up_ends_it():
    daemon = Launcherd()
    daemon.setup()
    assert daemon.chan.ended()
    daemon.close()


@pytest.mark.parametrize("instance", ["../x", "a/b", "A", "a.b", " "])
def test_instance_name_is_no_path(instance):
    daemon = Launcherd(setup=False)
    daemon.chan.expect("ready")
    daemon.setup(instance=instance)
    assert daemon.chan.ended()
    daemon.close()


def test_wrong_count_of_passed_descriptors_ends_it():
    daemon = Launcherd()
    run = daemon.launch()
    fd = messages.memfd(launcherbox.exec_plan(["/bin/true"]))
    daemon.chan.send("exec_ask", [fd, fd], sandbox=run.sandbox, exec=9,
                     client=1, passed=2)
    assert daemon.chan.ended()
    os.close(fd)
    run.release()
    daemon.close()


def test_numbers_of_nobody_are_harmless():
    daemon = Launcherd()
    big = 2**64 - 1
    for name, values in (("destroy_ask", {}), ("freeze_ask", {}),
                         ("stat_ask", {}), ("exec_signal", {}),
                         ("exec_resize", {"rows": 1, "cols": 1}),
                         ("exec_eof", {})):
        fields = {f.name for f in messages.TABLE[name].fields}
        values.update({k: big for k in ("sandbox", "request", "exec")
                       if k in fields})
        daemon.chan.send(name, **values)
    assert daemon.lookup().error == 0
    assert daemon.close() == 0


def test_flood_of_launches_without_a_look_up():
    daemon = Launcherd()
    fd = messages.memfd(launcherbox.plan())
    for i in range(300):
        daemon.chan.send("launch_start", [fd], sandbox=i + 1, request=i + 1,
                         run_uid=5)
        assert daemon.chan.expect("launch_answer", sandbox=i + 1).code == 13
    os.close(fd)
    assert daemon.cgroups() == []
    assert daemon.close() == 0


def test_flood_of_look_ups_is_answered():
    daemon = Launcherd()
    for i in range(100):
        fd = messages.memfd(b"broken")
        daemon.chan.send("lookup_start", [fd], request=i + 1,
                         run_uid=launcherbox.NOBODY, from_client=1)
        os.close(fd)
    for i in range(100):
        assert daemon.chan.expect("lookup_answer", request=i + 1,
                                  timeout=20).error != 0
    assert daemon.close() == 0


# --------------------------------------------------- a hostile init or lookup

class FakeLibexec:
    """A directory of programs in which one is ours: a script that speaks on
    descriptor 3 with the packets that the test has written."""

    def __init__(self, name, body):
        self.path = tempfile.mkdtemp(prefix="stockade-fake-", dir="/srv")
        os.chmod(self.path, 0o755)
        for it in os.listdir(launcherbox.LIBEXEC):
            source = os.path.join(launcherbox.LIBEXEC, it)
            if it != name and os.path.isfile(source):
                shutil.copy2(source, self.path)
        fake = os.path.join(self.path, name)
        with open(fake, "w") as f:
            f.write("#!/usr/bin/python3 -S\nimport socket, array, os\n"
                    "s = socket.socket(fileno=3)\n"
                    "s.setblocking(True)\n" + body)
        os.chmod(fake, 0o755)

    def daemon(self):
        daemon = Launcherd(setup=False)
        daemon.chan.expect("ready")
        daemon.setup(libexec=self.path)
        return daemon

    def remove(self):
        shutil.rmtree(self.path)


def run_fake(name, body, use):
    fake = FakeLibexec(name, body)
    try:
        daemon = fake.daemon()
        use(daemon)
        assert daemon.lookup().error == 0 or name == "stockade-lookup"
        assert daemon.cgroups() == []
        assert daemon.close() == 0
    finally:
        fake.remove()


INIT_ROWS = messages.hostile_packets("init", "launcherd")
READY = messages.TABLE["init_ready"].pack(landlock_abi=6)


def speak(packets):
    """Receives init_setup, then sends (packet, descriptors) rows."""
    text = "s.recv(70000)\n"
    for packet, nfds in packets:
        anc = ("[(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', "
               "[0] * %d))]" % nfds if nfds else "[]")
        text += "s.sendmsg([%r], %s)\n" % (packet, anc)
    return text + "while s.recv(70000): pass\n"


@pytest.fixture(scope="module")
def attacked():
    """One daemon for all rows: the packet reaches the fake init as a generated
    file of the plan."""
    fake = FakeLibexec("stockade-init", """
s.recv(70000)
s.send(%r)
with open("/etc/attack", "rb") as f:
    nfds = f.read(1)[0]
    packet = f.read()
anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * nfds))]
s.sendmsg([packet], anc if nfds else [])
while s.recv(70000): pass
""" % READY)
    daemon = fake.daemon()
    yield daemon
    assert daemon.lookup().error == 0
    assert daemon.cgroups() == []
    assert daemon.close() == 0
    fake.remove()


@pytest.mark.parametrize("label,packet,nfds", INIT_ROWS,
                         ids=[r[0] for r in INIT_ROWS])
def test_broken_packet_of_init_ends_that_run_only(attacked, label, packet,
                                                  nfds):
    run = attacked.launch(files=[("/etc/attack", bytes([nfds]) + packet)])
    end = run.ended()
    assert launcherbox.CAUSES[end.cause] == "SERVICE"


def test_broken_packet_before_ready_fails_the_launch():
    def use(daemon):
        assert daemon.refused().step == "init"
    run_fake("stockade-init", speak([(b"\x90", 0)]), use)


def test_answer_for_an_unknown_command_ends_the_run():
    packet = messages.TABLE["init_exec_answer"].pack(exec=77)

    def use(daemon):
        assert daemon.launch().ended()
    run_fake("stockade-init", speak([(READY, 0), (packet, 0)]), use)


def test_exit_of_an_unknown_command_ends_the_run():
    packet = messages.TABLE["init_exit"].pack(exec=77)

    def use(daemon):
        assert daemon.launch().ended()
    run_fake("stockade-init", speak([(READY, 0), (packet, 0)]), use)


def test_second_ready_ends_the_run():
    def use(daemon):
        assert daemon.launch().ended()
    run_fake("stockade-init", speak([(READY, 0), (READY, 0)]), use)


def test_terminal_that_is_none_is_not_handed_over():
    """init may not make control read a descriptor of its choice."""
    body = ("s.recv(70000)\ns.send(%r)\nimport sys\ns.recv(70000)\n"
            "s.sendmsg([%r], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "
            "array.array('i', [0]))])\nwhile s.recv(70000): pass\n" % (
                READY, messages.TABLE["init_exec_answer"].pack(exec=500)))

    def use(daemon):
        run = daemon.launch()
        daemon.next = 499
        run.send_exec(["/bin/sh"], tty=1)
        assert run.ended()
        assert not [m for m in daemon.chan.backlog if m.name == "exec_answer"]
    run_fake("stockade-init", body, use)


def test_silent_init_is_given_up_after_ten_seconds():
    def use(daemon):
        answer = daemon.refused()
        assert answer.code == 17 and "10 s" in answer.reason
    run_fake("stockade-init", "import time\ntime.sleep(100)\n", use)


def test_init_that_fails_says_why():
    packet = messages.TABLE["init_failed"].pack(error=1, step="seccomp\x1b[2J")

    def use(daemon):
        answer = daemon.refused()
        assert answer.step == "init" and "seccomp" in answer.reason
        assert "\x1b" not in answer.reason
    run_fake("stockade-init", speak([(packet, 0)]), use)


def user(**kw):
    values = dict(uid=launcherbox.NOBODY, gid=launcherbox.NOBODY, user="x",
                  home="/x", shell="/x")
    values.update(kw)
    return messages.TABLE["lookup_user"].pack(**values)


LOOKUP_CASES = [
    ("another uid", "s.send(%r)" % user(uid=1)),
    ("uid 0", "s.send(%r)" % user(uid=0)),
    ("no gid", "s.send(%r)" % user(gid=2**32 - 1)),
    ("result before the user", "s.sendmsg([%r], [(socket.SOL_SOCKET, "
     "socket.SCM_RIGHTS, array.array('i', [0]))])" %
     messages.TABLE["lookup_result"].pack()),
    ("user twice", "s.send(%r); s.send(%r)" % (user(), user())),
    ("result that is no memfd", "s.send(%r); s.sendmsg([%r], "
     "[(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])" % (
         user(), messages.TABLE["lookup_result"].pack())),
    ("result without its memfd", "s.send(%r); s.send(%r)" % (
        user(), messages.TABLE["lookup_result"].pack())),
    ("garbage", "s.send(b'\\xff' * 100)"),
    ("nothing", "pass"),
    ("ten times the message", "\nfor i in range(10): s.send(%r)" % user()),
]


@pytest.mark.parametrize("label,body", LOOKUP_CASES,
                         ids=[c[0] for c in LOOKUP_CASES])
def test_hostile_look_up_gives_no_ids(label, body):
    wait = "\ntry:\n s.settimeout(3)\n while s.recv(70000): pass\nexcept " \
        "OSError: pass\n"

    def use(daemon):
        answer = daemon.lookup()
        assert answer.error != 0, label
        assert daemon.refused(request=answer.request).step == "user"
        children = subprocess.run(
            ["ps", "--ppid", str(daemon.process.pid), "-o", "stat="],
            stdout=subprocess.PIPE, check=False).stdout
        assert b"Z" not in children
    run_fake("stockade-lookup", body + (wait if label != "nothing" else "\n"),
             use)
