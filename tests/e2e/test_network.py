"""The only way out is the proxy: section G. The canary is a server outside,
which counts what reaches it; both sides are asserted."""

import json
import subprocess

import pytest


@pytest.fixture
def count(service):
    """How many requests have reached the outside."""
    def read():
        return int(subprocess.run(
            ["nsenter", "-t", str(service.process.pid), "-n", "curl", "-sS",
             "--noproxy", "*", "http://10.99.0.1/count"],
            check=True, capture_output=True, env={"PATH": "/usr/bin:/bin"})
            .stdout)
    return read


def test_an_allowed_host_is_reached(session, count):
    s = session()
    before = count()
    assert s.ok("curl -sS http://allowed.example.net/") == \
        "hello from outside"
    assert s.ok("curl -sS --socks5-hostname 127.0.0.1:1080 "
                "http://allowed.example.net/") == "hello from outside"
    assert s.ok("curl -sS -p -x http://127.0.0.1:3128 "
                "http://allowed.example.net/") == "hello from outside"
    assert count() == before + 3


def test_another_host_is_refused_with_the_reason(session, count):
    s = session()
    before = count()
    out = s.ok("curl -sS -i http://denied.example.net/")
    assert out.startswith("HTTP/1.1 403 Blocked by sandbox: "
                          "denied.example.net is not on the allow list")
    assert "X-Deny-Reason: host_not_allowed" in out
    assert 'Proxy-Status: stockade; error=http_request_denied; ' \
        'details="host_not_allowed"' in out
    status, _, err = s.sh("curl -sS -p http://denied.example.net/")
    assert status != 0 and b"403" in err
    status, _, err = s.sh("curl -sS --socks5-hostname 127.0.0.1:1080 "
                          "http://denied.example.net/")
    assert status != 0 and b"(2)" in err
    assert count() == before
    records = s.client.violations(s.name)
    assert {(v["action"], v["target"]) for v in records} == \
        {("network-outbound", "denied.example.net")}
    assert sum(v["count"] for v in records) == 3
    assert records[0]["port"] == 80


def test_the_refusal_is_the_rule_and_not_the_network(session, count):
    # Twin: the same host, allowed by the spec, is reached.
    s = session(egressAllowlist=["denied.example.net"])
    before = count()
    assert s.ok("curl -sS http://denied.example.net/") == \
        "hello from outside"
    assert count() == before + 1


def test_a_private_address_is_refused_after_resolution(session, count):
    s = session()
    before = count()
    for name in ("private.example.net", "local.example.net",
                 "metadata.example.net"):
        out = s.ok("curl -sS -i http://%s/" % name)
        assert "%s resolves to a private address" % name in out, name
    assert count() == before


@pytest.mark.parametrize("target", [
    "10.99.0.1", "127.0.0.1", "2130706433", "0x7f.1", "[::1]",
    "[::ffff:10.99.0.1]", "169.254.169.254", "localhost"])
def test_a_literal_address_is_refused(session, count, target):
    s = session()
    before = count()
    status, out, err = s.sh("curl -sS -i --noproxy '' -x "
                            "http://127.0.0.1:3128 'http://%s/'" % target)
    assert b" 403 " in out or b" 400 " in out or status != 0, (out, err)
    assert b"hello" not in out
    status, out, err = s.sh("curl -sS --noproxy '' --socks5-hostname "
                            "127.0.0.1:1080 'http://%s/'" % target)
    assert status != 0 and b"hello" not in out
    assert count() == before


def test_a_port_that_is_not_listed_is_refused(session):
    s = session()
    out = s.ok("curl -sS -i http://allowed.example.net:8080/")
    assert "port 8080 of allowed.example.net is not allowed" in out


def test_there_is_no_way_beside_the_proxy(session, count, service):
    s = session()
    before = count()
    control = subprocess.run(
        ["nsenter", "-t", str(service.process.pid), "-n", "curl", "-sS",
         "--noproxy", "*", "http://10.99.0.1/"], check=True,
        capture_output=True, env={"PATH": "/usr/bin:/bin"})
    assert control.stdout == b"hello from outside"
    assert count() == before + 1
    for line in ("curl -sS --noproxy '*' http://10.99.0.1/",
                 "curl -sS --noproxy '*' http://allowed.example.net/",
                 "curl -sS -6 --noproxy '*' 'http://[2001:db8::1]/'"):
        assert s.sh(line + " -m 5")[0] != 0, line
    probe = ("import socket,sys\n"
             "for f,t,a in ((2,2,('10.99.0.1',53)),(2,1,('10.99.0.1',80)),"
             "(10,2,('2001:db8::1',53)),(2,1,('192.0.2.1',443))):\n"
             "  s=socket.socket(f,t);s.settimeout(3)\n"
             "  try: s.connect(a);s.send(b'x');print('sent',a)\n"
             "  except OSError as e: print('refused')\n")
    out = s.run("/usr/bin/python3", "-c", probe)[1]
    assert out.split() == [b"refused"] * 4
    assert count() == before + 1


def test_names_are_not_resolved_inside(session):
    s = session()
    status, _, _ = s.sh("getent hosts allowed.example.net")
    assert status != 0


def test_network_off_refuses_everything(session, count):
    s = session(networkEnabled=False)
    before = count()
    out = s.ok("curl -sS -i http://allowed.example.net/")
    assert "the network is off for this run" in out
    assert count() == before


def test_a_denied_name_wins_over_every_allow(session):
    s = session(egressAllowlist=["sentry.io", "*.sentry.io",
                                 "metadata.google.internal"])
    for name in ("sentry.io", "a.b.sentry.io", "metadata.google.internal"):
        out = s.ok("curl -sS -i http://%s/" % name)
        assert name + " is on the deny list" in out


def test_a_bad_pattern_is_refused_at_launch(session):
    import instance
    for pattern in ("*", "*.com", "a*.example.com", "*.*.example.com",
                    "a.b.*"):
        with pytest.raises(instance.RpcError) as error:
            session(egressAllowlist=[pattern])
        assert error.value.name == "badParams"
        assert error.value.detail.get("field", "").startswith(
            "spec.egressAllowlist") or \
            error.value.detail.get("field", "").startswith("egressAllowlist")


def test_sessions_do_not_share_lists_or_records(session):
    a = session(egressAllowlist=["denied.example.net"])
    b = session()
    assert a.ok("curl -sS http://denied.example.net/") == \
        "hello from outside"
    assert "403" in b.ok("curl -sS -i http://denied.example.net/")
    assert a.client.violations(a.name) == []
    assert len(b.client.violations(b.name)) == 1


def test_servers_inside_stay_inside(session):
    a, b = session(), session()
    a.ok("cd /tmp && echo own > index.html && (/usr/bin/python3 -m "
         "http.server 8000 >/dev/null 2>&1 &) ; for i in 1 2 3 4 5 6 7 8 9 "
         "10; do curl -sS http://127.0.0.1:8000/ && exit 0; sleep 0.3; done")
    assert b.sh("curl -sS -m 3 http://127.0.0.1:8000/")[0] != 0
    assert subprocess.run(["curl", "-sS", "-m", "3", "--noproxy", "*",
                           "http://127.0.0.1:8000/"], check=False,
                          capture_output=True).returncode != 0


def test_the_proxy_survives_a_kill_and_serves_again(session, service, count):
    s = session()
    assert s.ok("curl -sS http://allowed.example.net/") == \
        "hello from outside"
    subprocess.run(["kill", "-9", str(service.children()["stockade-proxyd"])],
                   check=True)
    assert s.ok("for i in $(seq 40); do curl -sS -m 5 "
                "http://allowed.example.net/ && exit 0; sleep 0.1; done; "
                "exit 1") == "hello from outside"


def test_violations_are_one_line_each_in_the_tool(service):
    workdir = service.workdir()
    done = service.ctl("run", "--user", __import__("instance").RUN_USER, "-C",
                       workdir, "--", "sh", "-c",
                       "curl -sS http://denied.example.net/ >/dev/null; "
                       "curl -sS http://denied.example.net/ >/dev/null; "
                       "exit 7")
    assert done.returncode == 7
    lines = [row for row in done.stderr.decode().splitlines()
             if "denied network-outbound" in row]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("stockade: denied network-outbound "
                               "denied.example.net")
    assert "--allow denied.example.net" in lines[0]
    listed = service.ctl("ps", "--json")
    assert json.loads(listed.stdout) in ([], {"handles": []})
