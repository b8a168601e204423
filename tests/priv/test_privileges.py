"""What each live daemon holds, against a written list: ids, groups,
capability sets, no_new_privs, seccomp, namespaces, descriptors."""

import grp
import os
import pwd
import re
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import instance  # noqa: E402

CAPS = ("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID "
        "SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN "
        "NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT "
        "SYS_PTRACE SYS_PACCT SYS_ADMIN").split()
LAUNCHERD = ("SYS_ADMIN SETUID SETGID SETPCAP CHOWN NET_ADMIN "
             "NET_BIND_SERVICE KILL SYS_PTRACE SYS_CHROOT "
             "DAC_READ_SEARCH").split()
SUPERVISOR = LAUNCHERD      # SETUID SETGID SETPCAP KILL are in it

# Capability sets are at most these; unprivileged ones have none at all.
ROOTS = {"stockaded": SUPERVISOR, "stockade-launcherd": LAUNCHERD}
USERS = {"stockade-control": "stockade-control",
         "stockade-proxyd": "stockade-proxy",
         "stockade-resolver": "stockade-resolve"}
# What an open descriptor of an unprivileged daemon may be.
DESCRIPTORS = {
    "stockade-control": r"socket:|anon_inode:|pipe:|/dev/null|/memfd:|"
                        r"/tmp/stockade-test-[^/]*$|.*/log$",
    "stockade-proxyd": r"socket:|anon_inode:|pipe:|/dev/null|/memfd:|.*/log$",
    "stockade-resolver": r"socket:|anon_inode:|pipe:|/dev/null|.*/log$",
    "stockade-broker": r"socket:|anon_inode:\[?(eventpoll|seccomp notify|pidfd|"
                       r"signalfd|timerfd)\]?$|/dev/null|/memfd:|/proc$|/proc/[0-9]+/fd$|/$",
}


@pytest.fixture(scope="module")
def service():
    why = instance.missing()
    if why:
        pytest.skip(why)
    with instance.Instance() as running:
        with running.client() as client:
            client.launch("held", running.workdir(), detach=True)
        yield running


def status(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return dict(re.findall(r"^(\w+):[ \t]*(.*)$", f.read(), re.M))


def mask(names):
    return sum(1 << CAPS.index(name) for name in names)


def daemons(service):
    return {"stockaded": service.process.pid, **service.children()}


@pytest.mark.parametrize("name", sorted(ROOTS))
def test_root_processes_are_bounded(service, name):
    text = status(daemons(service)[name])
    for field in ("CapPrm", "CapEff", "CapBnd"):
        assert int(text[field], 16) & ~mask(ROOTS[name]) == 0, field
    assert int(text["CapInh"], 16) == 0 and int(text["CapAmb"], 16) == 0
    assert text["NoNewPrivs"] == "1"
    assert text["Seccomp"] == "2"


@pytest.mark.parametrize("name", sorted(USERS))
def test_unprivileged_processes_hold_nothing(service, name):
    user = pwd.getpwnam(USERS[name])
    text = status(daemons(service)[name])
    assert text["Uid"].split() == [str(user.pw_uid)] * 4
    assert text["Gid"].split() == [str(user.pw_gid)] * 4
    assert set(text["Groups"].split()) <= {str(user.pw_gid)}
    for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(text[field], 16) == 0, field
    assert text["NoNewPrivs"] == "1"
    assert text["Seccomp"] == "2"


def test_no_two_daemons_share_a_uid():
    uids = [pwd.getpwnam(user).pw_uid for user in USERS.values()]
    assert len(set(uids)) == len(uids)
    gids = [pwd.getpwnam(user).pw_gid for user in USERS.values()]
    assert grp.getgrnam("stockade").gr_gid not in gids


@pytest.mark.parametrize("name", ["stockaded", *ROOTS, *USERS])
def test_nobody_may_read_a_daemon(service, name):
    pid = daemons(service)[name]
    # Non-dumpable: what /proc shows belongs to root whatever the uid is.
    assert os.stat("/proc/%d/environ" % pid).st_uid == 0
    with open("/proc/%d/limits" % pid, encoding="ascii") as f:
        row = re.search(r"Max core file size\s+(\S+)", f.read())
    assert row.group(1) == "0"


@pytest.mark.parametrize("name", sorted(USERS))
def test_descriptors_are_the_listed_ones(service, name):
    pid = daemons(service)[name]
    for fd in os.listdir("/proc/%d/fd" % pid):
        target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        assert re.match(DESCRIPTORS[name], target), (fd, target)


def test_the_proxy_sees_no_files(service):
    pid = daemons(service)["stockade-proxyd"]
    root = os.readlink("/proc/%d/root" % pid)
    assert root != "/" and os.listdir("/proc/%d/root/" % pid) == []


def test_a_sandbox_shares_no_namespace_with_the_host(service):
    launcherd = service.children()["stockade-launcherd"]
    below = instance.all_pids_below(launcherd)
    found = False
    for pid in below:
        with open("/proc/%d/comm" % pid, encoding="ascii") as f:
            if f.read().strip() not in ("init", "stockade-init"):
                continue
        found = True
        for kind in ("mnt", "pid", "net", "ipc", "uts", "cgroup"):
            assert os.readlink("/proc/%d/ns/%s" % (pid, kind)) != \
                os.readlink("/proc/self/ns/%s" % kind), kind
    assert found


def test_the_daemons_stay_in_the_hosts_network(service):
    for name, pid in daemons(service).items():
        assert os.readlink("/proc/%d/ns/net" % pid) == \
            os.readlink("/proc/self/ns/net"), name


# ---------------------------------------------------------------- broker

def run_processes(service):
    """(stockade-init, stockade-broker) of the run."""
    found = {}
    below = instance.all_pids_below(service.children()["stockade-launcherd"])
    for pid in below:
        found[instance.comm(pid)] = pid
    if "stockade-broker" not in found:
        pytest.skip("another mechanism than broker is in force")
    return found.get("init") or found["stockade-init"], found["stockade-broker"]


def read(pid, name):
    with open("/proc/%d/%s" % (pid, name), encoding="ascii") as f:
        return f.read()


def test_a_broker_has_the_runs_rights_and_a_look_into_it(service):
    """Ids of its own that no run can signal; only where files are concerned
    those of the run, and of all capabilities the one to look into it."""
    init, broker = run_processes(service)
    own, text, of_run = pwd.getpwnam("stockade-broker"), status(broker), \
        status(init)
    assert text["Uid"].split() == [str(own.pw_uid)] * 3 + [
        of_run["Uid"].split()[0]]
    assert text["Gid"].split() == [str(own.pw_gid)] * 3 + [
        of_run["Gid"].split()[0]]
    assert sorted(text["Groups"].split()) == sorted(of_run["Groups"].split())
    for field in ("CapPrm", "CapEff", "CapBnd"):
        assert int(text[field], 16) == mask(["SYS_PTRACE"]), field
    assert int(text["CapInh"], 16) == 0 and int(text["CapAmb"], 16) == 0
    assert text["NoNewPrivs"] == "1"
    assert text["Seccomp"] == "2"


def test_a_broker_lives_where_its_run_does(service):
    init, broker = run_processes(service)
    for kind in ("mnt", "pid", "net", "user"):
        assert os.readlink("/proc/%d/ns/%s" % (broker, kind)) == \
            os.readlink("/proc/%d/ns/%s" % (init, kind)), kind
    # Killed and counted with it; what is frozen before it is below.
    for its, of_run in zip(read(broker, "cgroup").splitlines(),
                           read(init, "cgroup").splitlines()):
        assert of_run == its or of_run.startswith(its + "/")
        assert "run-" in its or its == of_run
    assert os.stat("/proc/%d/environ" % broker).st_uid == 0
    assert re.search(r"Max core file size\s+(\S+)",
                     read(broker, "limits")).group(1) == "0"


def test_a_broker_holds_what_is_listed(service):
    broker = run_processes(service)[1]
    notify = 0
    for fd in os.listdir("/proc/%d/fd" % broker):
        target = os.readlink("/proc/%d/fd/%s" % (broker, fd))
        assert re.match(DESCRIPTORS["stockade-broker"], target), (fd, target)
        notify += "seccomp notify" in target
    assert notify == 1
    # Nobody else has the listener: with a second copy calls would wait for
    # ever once the broker is dead.
    others = [service.process.pid] + instance.all_pids_below(
        service.process.pid)
    for pid in others:
        if pid == broker or not os.path.exists("/proc/%d/fd" % pid):
            continue
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
            except OSError:
                continue
            assert "seccomp notify" not in target, (pid, fd)
