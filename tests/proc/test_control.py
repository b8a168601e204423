"""stockade-control: start, identification, hello, probe, status, reload. The
session methods have tests of their own."""

import os
import re
import subprocess

import pytest

import controlbox
import messages

pytestmark = pytest.mark.skipif(controlbox.can_run() is not None,
                                reason=str(controlbox.can_run()))


@pytest.fixture(name="box")
def _box():
    box = controlbox.Box()
    box.open()
    yield box
    assert box.close() == 0, "it ends with 0 when the channel ends"


@pytest.fixture(name="make")
def _make():
    boxes = []

    def make(*args, **kwargs):
        boxes.append(controlbox.Box(*args, **kwargs))
        return boxes[-1]
    yield make
    for box in boxes:
        box.close()


def test_the_supervisor_is_told_the_service_before_ready(make):
    box = make("sandbox require\nclient-group \"people\"\nlog level debug\n")
    assert box.service.sandbox == 2
    assert box.service.client_group == "people"
    assert box.service.log_level == 7
    assert box.service.tunnels_session == 1024
    assert box.service.tunnel_idle_s == 3600
    assert box.service.sessions_all == 1024


def test_without_a_file_all_is_default(box):
    assert box.service.sandbox == 1
    assert box.service.client_group == "stockade"
    assert box.service.admin_group == "stockade-admin"


def test_the_option_comes_before_the_configuration(make):
    box = make("sandbox require\n", args=["-s", " OFF ", "-S", "option"])
    assert box.service.sandbox == 0


@pytest.mark.parametrize("args, conf, status", [
    (["-s", "maybe", "-S", "option"], "", 2),
    (["-s", "", "-S", "environment"], "", 2),
    ([], "sandbox maybe\n", 1),
    ([], "no such sentence\n", 1),
])
def test_a_bad_setting_stops_the_start(make, args, conf, status):
    box = make(conf, args=args, ready=False)
    assert box.channel.ended()
    assert box.process.wait(5) == status


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_configuration_that_others_may_write_is_refused(make, mode):
    box = make("sandbox on\n", ready=False, mode=mode)
    assert box.channel.ended()
    assert box.process.wait(5) == 1
    assert "must not be writable" in box.log()


def test_a_configuration_of_another_owner_is_refused(make):
    box = make("sandbox on\n")
    box.open()
    os.chown(os.path.join(box.conf_dir, "stockade.conf"), 65534, 65534)
    box.channel.send("reload_ask")
    assert box.channel.expect("reload_done").ok == 0


def test_a_configuration_is_never_a_link(make):
    box = make("sandbox on\n")
    box.open()
    path = os.path.join(box.conf_dir, "stockade.conf")
    os.rename(path, path + ".old")
    os.symlink("stockade.conf.old", path)
    box.channel.send("reload_ask")
    assert box.channel.expect("reload_done").ok == 0


def test_it_has_given_everything_up(box):
    uid = box.status_field("Uid").split()
    assert len(set(uid)) == 1 and uid[0] != "0"
    assert len(set(box.status_field("Gid").split())) == 1
    assert box.status_field("Groups") == ""
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(box.status_field(name), 16) == 0, name
    assert box.status_field("NoNewPrivs") == "1"
    assert box.status_field("Seccomp") == "2"
    assert os.readlink("/proc/%d/root" % box.process.pid).endswith(
        " (deleted)")


def test_it_was_not_started_by_hand():
    done = subprocess.run([controlbox.CONTROL, "-f", "x"],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=10)
    assert done.returncode == 125
    assert b"not by hand" in done.stderr


@pytest.mark.parametrize("args", [
    [], ["-f", "a/b"], ["-f", "x", "y"], ["-f", "x", "-s", "on"],
    ["-f", "x", "-s", "on", "-S", "moon"], ["-f", "x", "-v"], ["-q"]])
def test_bad_options_are_usage(args):
    done = subprocess.run([controlbox.CONTROL] + args, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=10)
    assert done.returncode == 2
    assert b"usage:" in done.stderr


def check(directory, *args):
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)

    def wire():
        os.dup2(os.dup2(fd, 61), 4, inheritable=True)
    try:
        return subprocess.run([controlbox.CONTROL, *args], preexec_fn=wire,
                              close_fds=False, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=10, text=True)
    finally:
        os.close(fd)


def test_n_checks_and_nv_prints(tmp_path):
    os.chmod(tmp_path, 0o755)
    conf = tmp_path / "my.conf"
    conf.write_text("sandbox require\nallow host { \"example.com\" }\n")
    conf.chmod(0o644)
    done = check(tmp_path, "-n", "-f", "my.conf")
    assert (done.returncode, done.stdout) == (0, "configuration OK\n")
    done = check(tmp_path, "-nv", "-f", "my.conf")
    assert done.returncode == 0 and "example.com" in done.stdout
    (tmp_path / "again.conf").write_text(done.stdout)
    (tmp_path / "again.conf").chmod(0o644)
    assert check(tmp_path, "-nv", "-f",
                 "again.conf").stdout == done.stdout
    conf.write_text("sandbox require\nno such sentence\n")
    done = check(tmp_path, "-n", "-f", "my.conf")
    assert done.returncode == 1
    assert re.search(r"^my\.conf:2: ", done.stderr, re.M)


def test_a_missing_configuration_is_an_error_without_m(tmp_path):
    os.chmod(tmp_path, 0o755)
    done = check(tmp_path, "-n", "-f", "my.conf")
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    done = check(tmp_path, "-n", "-f", "my.conf", "-m")
    assert (done.returncode, done.stdout) == (0, "configuration OK\n")


def test_hello_tells_who_one_is_and_the_limits(box):
    client = box.client(uid=1234)
    assert client.hello["server"] == "stockade"
    assert client.hello["protocol"] == 1
    assert client.hello["uid"] == 1234
    assert client.hello["role"] == "client"
    limits = client.hello["limits"]
    assert limits["calls"] == 64
    assert limits["messageBytes"] == 1 << 20
    assert limits["connectionsPerUid"] == 32
    assert limits["memoryBytes"] >= 512 << 20
    assert box.client(uid=0, operator=True).hello["role"] == "operator"


def test_whoever_the_supervisor_refuses_is_closed(box):
    assert box.connect(accept=False).ended()


def test_the_supervisor_hears_of_the_end(box):
    client = box.client()
    client.close()
    assert box.channel.expect("client_gone").client == client.number


def test_another_version_is_a_mismatch(box):
    client = box.connect()
    error = client.refused("hello", protocol=2, client="test")
    assert (error.code, error.name) == (27, "versionMismatch")
    assert client.ended()


def test_the_first_call_is_hello(box):
    client = box.connect()
    assert client.refused("ping").name == "badState"
    assert client.ended()


def test_a_second_hello_is_bad_state(box):
    client = box.client()
    assert client.refused("hello", protocol=1, client="x").name == "badState"
    assert client.call("ping")["time"] > 1600000000000


def test_connections_of_one_user_are_limited(make):
    box = make("limit connections-uid 2\nlimit connections 4\n")
    box.open()
    kept = [box.client(uid=1) for _ in range(2)]
    refused = box.connect(uid=1)
    assert refused.ended()
    other = box.client(uid=2)
    assert other.call("ping")
    kept.pop().close()
    box.channel.expect("client_gone", client=2)
    box.channel.expect("client_gone", client=3)
    assert box.client(uid=1).call("ping")


def test_a_hello_that_is_there_already_is_answered_limit(make):
    box = make("limit connections-uid 1\n")
    box.open()
    box.client(uid=1)
    sock = controlbox.socket.socket(controlbox.socket.AF_UNIX,
                                    controlbox.socket.SOCK_STREAM)
    sock.connect(box.path)
    client = controlbox.Client(sock, 1, 9)
    box.clients.append(client)
    asked = box.channel.expect("client_ask")
    for fd in asked.fds:
        os.close(fd)
    id = client.send("hello", protocol=1, client="t")
    box.channel.send("client_answer", conn=asked.conn, client=9, uid=1,
                     is_operator=0)
    with pytest.raises(controlbox.Error, match="limit"):
        client.answer(id)
    assert client.ended()


def test_the_probe_is_told_as_it_came(box):
    probe = box.client().call("probe")
    assert probe["recommendation"] == "native"
    assert [r["backend"] for r in probe["results"]] == [
        "microvm", "native", "none"]
    native, none = probe["results"][1:]
    assert native["available"] and not native["requiresInstall"]
    assert native["note"] == ("bubblewrap \u2014 namespace isolation, "
                              "no kernel boundary")
    assert none["note"] == "No isolation: agents run on the host"
    assert [m["name"] for m in probe["mechanisms"]] == controlbox.ROWS
    assert probe["platform"]["system"] == "Linux"
    box.wait_log("agent sandbox ON: bubblewrap")
    assert box.log().count("agent sandbox") == 1


@pytest.mark.parametrize("probe, line", [
    ({"tools": 0}, "no OS-native agent sandbox on this host: Missing: "
     "bubblewrap. Install: sudo apt-get install bubblewrap; runs are bounded"),
    ({"false": ["landlock"]}, "no OS-native agent sandbox on this host: "
     "landlock"),
    ({"error": "no cgroup tree"}, "no OS-native agent sandbox on this host: "
     "Probe failed: no cgroup tree"),
])
def test_without_a_backend_the_line_says_so(make, probe, line):
    box = make("")
    box.open(**probe)
    status = box.client().call("status")
    assert status["line"].startswith(line)
    assert status["line"].endswith("guardrails only")
    assert [b["available"] for b in status["backends"]] == [
        False, False, True]
    box.wait_log(line)


def test_off_is_said_as_off(make):
    box = make("", args=["-s", "off", "-S", "option"])
    box.open()
    status = box.client().call("status")
    assert status["setting"] == "off"
    assert status["line"].startswith(
        "agent sandbox DISABLED by --sandbox off; runs are bounded")


def test_a_restart_prints_no_second_line(make):
    box = make("")
    box.open(generation=2)
    assert box.client().call("status")["line"].startswith("agent sandbox ON")
    assert "agent sandbox ON" not in box.log()


def test_control_open_without_a_probe_is_no_success(make):
    box = make("")
    box.channel.send("control_open", [box.listener.fileno()], generation=1)
    probe = box.client().call("probe")
    assert probe["recommendation"] == "none"
    assert probe["results"][1]["note"].startswith("Probe failed: ")


def test_unknown_methods_and_bad_parameters_are_told(box):
    client = box.client()
    assert client.refused("no.such").code == 1
    error = client.refused("ping", more=1)
    assert (error.code, error.detail["field"]) == (2, "more")
    error = client.refused("events.unsubscribe")
    assert (error.code, error.detail["field"]) == (2, "subscription")
    error = client.refused("events.subscribe", types=["nothing"])
    assert (error.code, error.detail["field"]) == (2, "types")
    error = client.refused("events.subscribe", since=1)
    assert (error.code, error.detail["field"]) == (2, "since")
    assert client.refused("events.subscribe", sessionId="none").code == 6
    assert client.refused("events.unsubscribe", subscription=9).code == 6
    error = client.refused("sandbox.exec", sessionId="a b", argv=["x"])
    assert (error.code, error.detail["field"]) == (2, "sessionId")


def test_subscriptions_come_and_go(box):
    client = box.client()
    number = client.call("events.subscribe")["subscription"]
    client.call("events.unsubscribe", subscription=number)
    assert client.refused("events.unsubscribe",
                          subscription=number).name == "notFound"


def test_reload_is_for_operators(box):
    assert box.client().refused("admin.reload").name == "forbidden"


def test_reload_tells_what_changed(box):
    operator = box.client(uid=0, operator=True)
    box.write_conf("allow host { \"example.com\" }\n"
                   "client-group \"others\"\n")
    answer = operator.call("admin.reload")
    assert any(c.startswith("+ ") and "example.com" in c
               for c in answer["changed"]), answer
    assert "client-group" in answer["warnings"]
    assert operator.call("admin.reload") == {"changed": [], "warnings": []}


def test_a_bad_reload_changes_nothing(box):
    operator = box.client(uid=0, operator=True)
    box.write_conf("limit connections-uid 1\nno such sentence\n")
    error = operator.refused("admin.reload")
    assert error.name == "badParams"
    assert error.detail["file"] == "stockade.conf"
    assert error.detail["line"] == 2
    assert box.client(uid=5).call("ping") and box.client(uid=5).call("ping")
    box.channel.send("reload_ask")
    assert box.channel.expect("reload_done").ok == 0
    box.write_conf("limit connections-uid 1\n")
    box.channel.send("reload_ask")
    assert box.channel.expect("reload_done").ok == 1
    assert box.connect(uid=5).ended()


def test_admin_status_shows_ones_own(box):
    client, operator = box.client(uid=7), box.client(uid=0, operator=True)
    assert [r["uid"] for r in client.call("admin.status")["rows"]] == [7]
    rows = operator.call("admin.status")["rows"]
    assert {r["uid"]: r["connections"] for r in rows} == {7: 1, 0: 1}
    assert operator.call("admin.status", uid=7)["rows"][0]["uid"] == 7
    assert client.call("admin.status", uid=0)["rows"] == []
    assert client.call("admin.sessions")["rows"] == []
    assert client.call("admin.violations")["rows"] == []


def test_the_channel_end_is_the_end(make):
    box = make("")
    box.open()
    client = box.client()
    box.channel.close()
    assert box.process.wait(5) == 0
    assert client.ended()


def test_it_dies_with_its_parent():
    """PR_SET_PDEATHSIG, which a change of uid clears."""
    code = ("import sys; sys.path.insert(0, %r)\n"
            "import controlbox, os\n"
            "box = controlbox.Box('')\n"
            "print(box.process.pid, flush=True)\n"
            "os.read(0, 1)\n" % os.path.dirname(__file__))
    parent = subprocess.Popen(["/usr/bin/python3", "-c", code],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    pidfd = os.pidfd_open(pid)
    parent.kill()
    parent.wait()
    import select
    assert select.select([pidfd], [], [], 5)[0]
    os.close(pidfd)
    parent.stdin.close()
    parent.stdout.close()


