"""A host whose guard is missing (SPEC D2, A18, Z6): what carries name rules is
refused before anything of it exists, and everything else goes on."""

import os
import signal
import tempfile
import time

import pytest

import conftest
import instance

PATTERN = "**/.env"
REFUSED = ('sandbox refused: file-name rule "%s" cannot be enforced at '
           "creation on this host; new files could not be protected" % PATTERN)
CLAUSE = ("; file-name rules cannot be enforced here, runs that need them are "
          "refused")


@pytest.fixture(scope="module")
def lacking():
    """The same programs without stockade-broker."""
    conftest.need_service()
    libexec = os.path.join(instance.BUILD, "libexec")
    with tempfile.TemporaryDirectory(prefix="stockade-libexec-") as links:
        os.chmod(links, 0o755)
        for name in os.listdir(libexec):
            if name != "stockade-broker":
                os.symlink(os.path.join(libexec, name),
                           os.path.join(links, name))
        with instance.Instance("limit idle none\nguard broker",
                               libexec=links) as running:
            yield running


def test_it_is_said_at_start_and_by_the_probe(lacking):
    with lacking.client() as client:
        result = client.call("probe")
        native = [r for r in result["results"]
                  if r["backend"] == "native"][0]
        assert native["available"] and not native["dispatchable"]
        assert client.call("status")["line"].endswith(CLAUSE)
    out = lacking.ctl("probe").stdout.decode()
    assert "broker: the program stockade-broker is not there" in out


def test_what_carries_name_rules_is_refused(lacking):
    work = lacking.workdir()
    with lacking.client() as client:
        with pytest.raises(instance.RpcError) as refused:
            client.launch("s", work)
        assert refused.value.name == "guardUnavailable"
        assert REFUSED in str(refused.value)
        assert client.call("sandbox.list")["handles"] == []
        assert os.listdir(work) == []
        # What can write nothing of the host needs no such rule.
        client.launch("reads", work, bindMounts=[
            {"hostPath": work, "readOnly": True}])
        assert client.run("reads", ["/bin/ls", work])[0] == 0
    done = lacking.ctl("run", "-C", work, "--", "true")
    assert done.returncode == 125 and REFUSED in done.stderr.decode(), done.stderr


def probed(service):
    """Row guard.create as the tool prints it, and `dispatchable`."""
    with service.client() as client:
        native = [r for r in client.call("probe")["results"]
                  if r["backend"] == "native"][0]
    row = [line.split(None, 2) for line in
           service.ctl("probe").stdout.decode().splitlines()
           if line.startswith("guard.create")]
    assert len(row) == 1
    return row[0][1:], native["dispatchable"]


def restart_launcherd(service):
    old = service.children()["stockade-launcherd"]
    os.kill(old, signal.SIGKILL)
    end = time.monotonic() + 10
    while service.children().get("stockade-launcherd", old) == old:
        assert time.monotonic() < end, service.read_log()
        time.sleep(0.05)


def launch_again(client, name, work):
    """While launcherd comes back, launches are answered `restarting`."""
    end = time.monotonic() + 10
    while True:
        try:
            return client.launch(name, work)
        except instance.RpcError as e:
            if e.name == "guardUnavailable" or time.monotonic() > end:
                raise
            time.sleep(0.05)


def test_both_mechanisms_are_told_and_a_restart_changes_neither():
    conftest.need_service()
    with instance.Instance("limit idle none") as running:
        before = (yes, text), dispatchable = probed(running)
        assert yes == "yes" and dispatchable
        force, rest = text.split("; ", 1)
        other = {"broker": "bpf-lsm", "bpf-lsm": "broker"}[force]
        assert rest.startswith(other + ": ") and len(rest) > len(other) + 2
        with running.client() as client:
            assert not client.call("status")["line"].endswith(CLAUSE)
        restart_launcherd(running)
        work = running.workdir()
        with running.client() as client:
            launch_again(client, "s", work)
            assert client.run("s", ["/bin/sh", "-c", "echo x >.env"])[0] != 0
        assert os.listdir(work) == []
        assert probed(running) == before


def test_what_was_missing_at_start_stays_missing(lacking):
    """The stored result alone decides (A1), also for a launcherd that was
    started again."""
    restart_launcherd(lacking)
    with lacking.client() as client:
        with pytest.raises(instance.RpcError) as refused:
            launch_again(client, "again", lacking.workdir())
    assert refused.value.name == "guardUnavailable"


def test_a_mechanism_that_is_named_is_not_replaced():
    conftest.need_service()
    with instance.Instance("limit idle none\nguard bpf-lsm") as running:
        (yes, text), dispatchable = probed(running)
        if dispatchable:
            pytest.skip("bpf-lsm works here")
        assert yes == "no" and text.startswith("bpf-lsm: ")
        assert text.endswith("; broker: not chosen")
        with running.client() as client:
            assert client.call("status")["line"].endswith(CLAUSE)
            with pytest.raises(instance.RpcError) as refused:
                client.launch("s", running.workdir())
            assert refused.value.name == "guardUnavailable"
