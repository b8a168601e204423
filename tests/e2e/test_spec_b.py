"""SPEC B and A14 on a live service: what becomes of a backend's name under
each setting, and that nothing is started when it is refused."""

import pytest

import instance as instance_module
from instance import Instance, RpcError


@pytest.fixture(scope="module")
def services():
    if instance_module.missing():
        pytest.skip(instance_module.missing())
    running = {}

    def get(conf):
        if conf not in running:
            running[conf] = Instance("limit idle none\n" + conf)
            running[conf].__enter__()
        return running[conf]

    yield get
    for one in running.values():
        one.__exit__()


ON, OFF, REQUIRE = "sandbox on", "sandbox off", "sandbox require"
MICROVM = "backend default microvm"
UNKNOWN = 'unknown backend "%s": use microvm, native or none'
NATIVE = None


@pytest.mark.parametrize("conf,spec,error,text", [
    # B4, B3: an explicit name never becomes none; a stored one may
    (ON, {"backend": "frob"}, "badParams", UNKNOWN % "frob"),
    (ON, {"backend": "Native"}, "badParams", UNKNOWN % "Native"),
    (ON, {"backend": "docker"}, NATIVE, ""),
    (ON, {"storedBackend": "docker"}, NATIVE, ""),
    (ON, {"storedBackend": "native"}, NATIVE, ""),
    (ON, {"storedBackend": "frob"}, "unsupported", "backend none"),
    (ON, {"storedBackend": None}, "unsupported", "backend none"),
    # B5
    (ON, {"backend": "microvm"}, "unsupported", "microvm serves terminals"),
    # B6, B7, B14
    (OFF, {}, "unsupported", "the sandbox is off"),
    (OFF, {"backend": "native"}, "unavailable", "the sandbox is off"),
    (OFF, {"networkEnabled": False}, "unavailable", "acceptUnconfined"),
    (OFF, {"egressAllowlist": ["a.example"]}, "unavailable",
     "acceptUnconfined"),
    # A14
    (REQUIRE, {}, NATIVE, ""),
    (REQUIRE, {"backend": "none"}, "unconfined", "require"),
    (REQUIRE, {"storedBackend": "none"}, "unconfined", "require"),
    # B9
    (MICROVM, {}, NATIVE, ""),
    (MICROVM, {"backend": "microvm"}, "unsupported", "microvm")])
def test_a_backend_is_given_or_refused(services, conf, spec, error, text):
    service = services(conf)
    with service.client() as c:
        if error is None:
            handle = c.launch("s", service.workdir(), **spec)
            assert handle["backend"] == "native"
            assert c.call("sandbox.list")["handles"][0]["backend"] == "native"
            c.call("sandbox.destroy", sessionId="s")
            return
        with pytest.raises(RpcError) as caught:
            c.launch("s", service.workdir(), **spec)
        assert caught.value.name == error
        assert text in caught.value.message
        if error == "badParams":
            assert caught.value.message == text
            assert caught.value.detail == {"field": "spec.backend"}
        assert c.call("sandbox.list")["handles"] == []


def test_a_default_that_steps_down_is_logged(services):
    service = services(MICROVM)
    with service.client() as c:
        c.launch("s", service.workdir())
        c.call("sandbox.destroy", sessionId="s")
    rows = [row for row in service.read_log().splitlines()
            if "steps down" in row]
    assert rows and rows[0].startswith("control: microvm unavailable (")
    assert rows[0].endswith("): default steps down to native")


def test_run_never_falls_and_says_what_could_be_asked_for(services):
    service = services(OFF)
    done = service.ctl("run", "--user", instance_module.RUN_USER, "-C",
                       service.workdir(), "--", "true")
    assert done.returncode == 125 and done.stdout == b""
    assert b"the sandbox is off" in done.stderr
    assert b"--backend none" in done.stderr
