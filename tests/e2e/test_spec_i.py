"""SPEC I3: every row of a spec that cannot be honoured is refused with the
field's name, and nothing is started."""

import pytest

from instance import RpcError

LONG = "a" * 129
BAD = {
    "sessionId": ["", "a b", LONG, 1, None], "workspaceId": ["", "a b", 1],
    "agentId": ["a b", 1], "spaceId": ["a b"], "conversationId": ["a b"],
    "runId": [LONG], "adapter": [1], "actingUser": ["x" * 300, 1],
    "bindMounts": [{}, "x", [{}], [{"hostPath": "rel"}],
                   [{"hostPath": "/a/../b"}], [{"hostPath": "/a\0b"}],
                   [{"hostPath": "/" + "a" * 4096}],
                   [{"hostPath": "/a", "guestPath": "/b"}],
                   [{"hostPath": "/a", "readOnly": "yes"}],
                   [{"hostPath": "/a", "more": 1}], [{"hostPath": "/a"}] * 65],
    "networkEnabled": ["yes", 1], "guestWorkdir": ["rel", "/usr", 1, "/a/.."],
    "egressAllowlist": ["a.b", ["*"], ["*.com"], ["a.*"], ["a*.b.c"],
                        ["*.*.a.b"], ["a b"], ["a.b.c"] * 257, [1]],
    "mode": ["x", "Chat", "", 1], "protectedPaths": ["x", ["rel"], [1]],
    "runnerStateDirs": [["rel"], ["/a"] * 17], "execGrantRoots": [["rel"]],
    "user": [5, "", "root", "0", "no-such-user"], "backend": ["frob", 7, ""],
    "storedBackend": [7], "repo": ["x", {"owner": "a"}], "linkedRepos": ["x"],
    "env": [["A"], {"A": 1}, {"A=B": ""}, {"": ""}, {"A": "x" * 32769},
            {"A": "a\0b"}, {"A%d" % i: "" for i in range(257)}],
    "passEnv": ["A", {"A": 1}], "denyRead": ["x", ["rel"]],
    "denyWrite": ["x", ["rel"], ["/a"] * 257],
    "allowUserNamespaces": ["x"], "newRepositories": ["x", True],
    "nameExemptions": ["x", ["*.key"], ["/**/x"], ["/a//b"], ["/a"] * 257],
    "limits": [[], {"more": 1}, {"memoryBytes": -1}, {"memoryBytes": "1G"},
               {"pids": 0}, {"cpus": 0}, {"cpus": "x"}, {"wallMs": 0},
               {"tmpBytes": 1}],
    "idleMs": [-1, "x"], "detach": ["x"], "goneMs": [10001, -1, "x"],
    "acceptUnconfined": ["x"], "credentials": ["x"], "frob": [1]}
LATER = {"unixSockets": [["/x"]], "loopbackPorts": [[8080]],
         "limits": [{"egressBytes": 1}]}
PLACES = ["/", "/etc", "/proc", "/sys", "/dev", "/run", "/boot", "/root",
          "/tmp", "/var/tmp", "/usr", "/etc/ssl", "/no/such/place"]


def refused(service, client, field, value):
    spec = client.spec("bad", service.workdir())
    spec[field] = value
    with pytest.raises(RpcError) as caught:
        client.call("sandbox.launch", spec=spec)
    assert client.call("sandbox.list")["handles"] == []
    return caught.value


@pytest.mark.parametrize("field", sorted(BAD))
def test_a_field_that_is_wrong_is_named(service, client, field):
    for value in BAD[field]:
        error = refused(service, client, field, value)
        assert (error.name, error.detail) == (
            "badParams", {"field": "spec." + field}), (value, error)
        assert "\n" not in error.message


@pytest.mark.parametrize("field", sorted(LATER))
def test_a_field_of_a_later_part_is_unsupported(service, client, field):
    for value in LATER[field]:
        error = refused(service, client, field, value)
        assert (error.name, error.detail) == (
            "unsupported", {"field": "spec." + field})


@pytest.mark.parametrize("field", ["sessionId", "workspaceId", "bindMounts"])
def test_a_field_that_is_missing_is_named(service, client, field):
    spec = client.spec("bad", service.workdir())
    del spec[field]
    with pytest.raises(RpcError) as caught:
        client.call("sandbox.launch", spec=spec)
    assert caught.value.detail == {"field": "spec." + field}


@pytest.mark.parametrize("path", PLACES)
def test_a_place_that_cannot_be_given_is_refused(service, client, path):
    error = refused(service, client, "bindMounts",
                    [{"hostPath": path},
                     {"hostPath": service.workdir()}])
    assert error.name in ("badPath", "badParams")


def test_the_services_own_directories_are_refused(service, client):
    for path in (service.state, service.runtime):
        assert refused(service, client, "bindMounts",
                       [{"hostPath": path}]).name in ("badPath", "badParams")


def test_paths_given_twice_must_agree(service, client):
    workdir = service.workdir()
    spec = client.spec("twice", workdir)
    spec["bindMounts"] = [{"hostPath": workdir},
                          {"hostPath": workdir, "readOnly": True}]
    with pytest.raises(RpcError) as caught:
        client.call("sandbox.launch", spec=spec)
    assert caught.value.detail == {"field": "spec.bindMounts"}


def test_another_plan_needs_replace(session, client, service):
    s = session()
    spec = client.spec(s.name, s.workdir, networkEnabled=False)
    with pytest.raises(RpcError) as caught:
        client.call("sandbox.launch", spec=spec)
    assert caught.value.name == "exists"
    handle = client.call("sandbox.launch", spec=spec, replace=True)["handle"]
    assert handle["details"]["pid"] != s.handle["details"]["pid"]
    assert len(client.call("sandbox.list")["handles"]) == 1


def test_explain_starts_nothing_and_tells_the_plan(service, client):
    workdir = service.workdir()
    spec = client.spec("planned", workdir, env={"A_TOKEN": "secret-value"})
    plan = client.call("sandbox.explain", spec=spec)["plan"]
    assert client.call("sandbox.list")["handles"] == []
    assert "secret-value" not in repr(plan) and "A_TOKEN" in repr(plan)
    handle = client.call("sandbox.launch", spec=spec)["handle"]
    assert handle["details"]["planDigest"] == plan["digest"]
    assert client.call("sandbox.explain",
                       sessionId="planned")["plan"] == plan
    client.call("sandbox.destroy", sessionId="planned")
