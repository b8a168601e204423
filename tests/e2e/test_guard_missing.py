"""A host whose guard is missing (SPEC D2, A18, Z6): what carries name rules is
refused before anything of it exists, and everything else goes on."""

import os
import tempfile

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
