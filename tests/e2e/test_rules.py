"""SPEC D13: name rules of live runs are replaced with the configuration, as a
whole, or not at all."""

import os
import signal
import time

import pytest

import instance
from conftest import CONF, need_service
from instance import RpcError


@pytest.fixture
def own():
    """A service whose configuration the test changes."""
    need_service()
    with instance.Instance(CONF) as running:
        yield running


def configure(service, *lines):
    with open(service.conf, encoding="utf-8") as f:
        text = f.read().split("# rules\n")[0]
    with open(service.conf, "w", encoding="utf-8") as f:
        f.write(text + "# rules\n" + "\n".join(lines) + "\n")


def tries(c, session, name):
    status, _, _ = c.run(session, ["/bin/sh", "-c", "echo x >" + name])
    return status == 0


def guard_of(c, session):
    details = c.call("sandbox.get", sessionId=session)["handle"]["details"]
    return details["guard"], details["planDigest"]


def notices(c, session, code, n=1):
    c.call("events.subscribe", sessionId=session, since=1, types=["notice"])
    return [c.event(lambda e: e["type"] == "notice" and e["code"] == code and
                    e["sessionId"] == session) for _ in range(n)]


def test_new_rules_hold_in_live_runs(own):
    with own.client() as c:
        work = own.workdir()
        c.launch("live", work)
        before, digest = guard_of(c, "live")
        assert before["generation"] == 1
        assert tries(c, "live", "a.secret") and not tries(c, "live", "x.key")
        configure(own, 'deny name { "*.secret" "(?i)**/out/**" }')
        answer = c.call("admin.reload")
        assert answer["warnings"] == []
        assert not tries(c, "live", "b.secret")
        assert not tries(c, "live", "a.secret")     # exists: content is held
        assert not tries(c, "live", "x.key")
        after, changed = guard_of(c, "live")
        assert after["generation"] == 2 and changed != digest
        row = [v for v in c.violations("live")
               if v["target"].endswith("b.secret")][0]
        assert row["rule"] == "*.secret"
        # The same spec is the same plan: it finds the session.
        assert c.launch("live", work)["details"]["planDigest"] == changed
        configure(own)
        c.call("admin.reload")
        assert tries(c, "live", "b.secret") and not tries(c, "live", "x.key")
        assert guard_of(c, "live") == ({"generation": 3}, digest)
        # Nothing changes: nothing is replaced.
        configure(own, "limit execs 3")
        c.call("admin.reload")
        assert guard_of(c, "live")[0]["generation"] == 3
        first, second = notices(c, "live", "rulesReplaced", 2)
        assert "generation 2" in first["detail"]
        assert "generation 3" in second["detail"]
    assert own.read_log().count("EVENT=RULES_REPLACED") == 2


def test_what_matches_a_new_rule_already_is_said_to_be_partial(own):
    with own.client() as c:
        c.launch("live", own.workdir())
        names = "confinement", "names", "reason"

        def reason():
            value = c.call("sandbox.get", sessionId="live")["handle"]
            value = value["details"]
            for key in names:
                value = value[key]
            return value

        assert "after the launch" not in reason()
        configure(own, 'deny name { "*.secret" }')
        c.call("admin.reload")
        assert "after the launch" in reason()


def test_exemptions_go_and_come_back(own):
    with own.client() as c:
        c.launch("live", own.workdir(), nameExemptions=["/t/*.pem"])
        c.run("live", ["/bin/mkdir", "t"])
        assert tries(c, "live", "t/a.pem")
        configure(own, "permit name-exemptions off")
        c.call("admin.reload")
        assert not tries(c, "live", "t/b.pem")
        assert tries(c, "live", ".env.example")
        configure(own)
        c.call("admin.reload")
        assert tries(c, "live", "t/b.pem")


def test_rules_that_cannot_be_made_change_nothing(own):
    # More than one automaton and the list beside it hold.
    many = " ".join('"n%d*a*b%d*c"' % (i, i) for i in range(3000))
    with own.client() as c:
        c.launch("small", own.workdir())
        configure(own, 'deny name { "*.secret" %s }' % many)
        with pytest.raises(RpcError) as error:
            c.call("admin.reload")
        assert "session small keeps its name rules" in str(error.value)
        assert guard_of(c, "small")[0]["generation"] == 1
        assert tries(c, "small", "a.secret")
        c.launch("other", own.workdir())
        assert tries(c, "other", "a.secret")


def test_a_suspended_run_has_them_before_it_goes_on(own):
    with own.client() as c:
        work = own.workdir()
        c.launch("live", work)
        c.call("sandbox.exec", sessionId="live", argv=[
            "/bin/sh", "-c", "while sleep 0.05; do test ! -e go || "
            "echo x >a.secret; done"])
        c.call("sandbox.suspend", sessionId="live")
        with open(work + "/go", "w", encoding="ascii"):
            pass
        for n in range(6):
            configure(own, 'deny name { "*.secret" "n%d" }' % n)
            warnings = c.call("admin.reload")["warnings"]
            assert len(warnings) == 1 and "suspended" in warnings[0]
        c.call("sandbox.resume", sessionId="live")
        time.sleep(0.3)
        assert not tries(c, "live", "n5")
        assert tries(c, "live", "n4")
        assert not os.path.exists(work + "/a.secret")


def test_a_restarted_control_knows_the_rules_and_brings_new_ones(own):
    with own.client() as c:
        c.launch("live", own.workdir(), detach=True)
        configure(own, 'deny name { "*.one" }')
        c.call("admin.reload")
        kept = guard_of(c, "live")
        os.kill(own.children()["stockade-control"], signal.SIGKILL)
    own.wait_ready()
    with own.client() as c:
        assert guard_of(c, "live") == kept
        assert not tries(c, "live", "a.one")
        configure(own, 'deny name { "*.two" }')
        os.kill(own.children()["stockade-control"], signal.SIGKILL)
    own.wait_ready()
    with own.client() as c:
        end = time.monotonic() + 5
        while guard_of(c, "live")[0]["generation"] != 3:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert tries(c, "live", "a.one") and not tries(c, "live", "a.two")
