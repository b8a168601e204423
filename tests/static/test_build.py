"""What the build, the packaging and the scripts promise; needs no service."""

import os
import re
import subprocess
import sys

import pytest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("STOCKADE_BUILD",
                                       os.path.join(SOURCE, "build")))
SCRIPTS = ("bootstrap", ".ci/run", "tests/fresh/run", "tests/fuzz/long",
           "contrib/dev/demonstration.sh", "contrib/completion/stockadectl")


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def bash_function(script, name):
    """The text of one function of a script, to be run apart from it."""
    found = re.search(r"^%s\(\)\n\{\n.*?^\}\n" % name, read(script),
                      re.MULTILINE | re.DOTALL)
    assert found, name
    return found.group(0)


def bash(text, *args):
    return subprocess.run(["bash", "-uc", text, "bash", *args], check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          encoding="utf-8").stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_parses(name):
    subprocess.run(["bash", "-n", os.path.join(SOURCE, name)], check=True)


PERMITTED = {
    "10.1.2.3": "10.1.2.3/32", "100.64.0.1": "100.64.0.1/32",
    "172.16.0.1": "172.16.0.1/32", "172.31.255.254": "172.31.255.254/32",
    "192.168.3.4": "192.168.3.4/32", "198.18.4.4": "198.18.4.4/32",
    "203.0.113.80": "203.0.113.80/32", "fc00::1": "fc00::1/128",
    "fd12:3456::7": "fd12:3456::7/128",
}
# Public ones need no sentence; the rest may never have one (SPEC G17).
NEVER = (
    "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "192.0.20.9",
    "2606:4700::1",
    "127.0.0.1", "127.1.2.3", "::1", "::", "0.0.0.0", "::ffff:10.0.0.1",
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16",
    "192.0.0.192", "fd00:ec2::254", "fe80::1", "febf::1", "ff02::1",
    "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a83f:8110",
)


@pytest.mark.parametrize("address", sorted(PERMITTED))
def test_a_registry_at_a_private_address_is_permitted(address):
    out = bash(bash_function("bootstrap", "private_range") +
               'private_range "$1"', address)
    assert out.strip() == PERMITTED[address]


@pytest.mark.parametrize("address", NEVER)
def test_loopback_metadata_and_public_addresses_get_no_sentence(address):
    out = bash(bash_function("bootstrap", "private_range") +
               'private_range "$1"', address)
    assert out == ""


def test_build_dependencies_are_read_from_the_control_file():
    text = "SRC=$1\n" + bash_function("bootstrap", "debian_dependencies")
    run = bash(text + "debian_dependencies run", SOURCE).splitlines()
    tests = bash(text + "debian_dependencies tests", SOURCE).splitlines()
    for name in ("bubblewrap", "git", "bison", "libevent-dev",
                 "libmsgpack-c-dev | libmsgpack-dev"):
        assert name in run
    assert "python3-pytest" in tests and "python3-pytest" not in run
    assert not [n for n in tests if re.search(r"[<>()$:]", n)]


def test_the_users_are_the_same_everywhere():
    names = set(re.findall(r"AC_DEFINE\(\[(?:CLIENT_GROUP|ADMIN_GROUP|"
                           r"CONTROL_USER|PROXY_USER|RESOLVE_USER|"
                           r"BROKER_USER)\], "
                           r'\["([a-z-]+)"\]', read("configure.ac")))
    sysusers = set(re.findall(r"^[ug] ([a-z-]+)",
                              read("contrib/systemd/stockade.sysusers"),
                              re.MULTILINE))
    assert names == sysusers and len(names) == 6
    assert all(name in read("bootstrap") for name in names)


def test_the_unit_bounds_what_the_specification_lists():
    sets = re.findall(r"^CapabilityBoundingSet=(.*)$",
                      read("contrib/systemd/stockade.service.in"),
                      re.MULTILINE)
    assert set(" ".join(sets).split()) == {"CAP_" + name for name in (
        "SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "CHOWN", "NET_ADMIN",
        "NET_BIND_SERVICE", "KILL", "SYS_PTRACE", "SYS_CHROOT",
        "DAC_READ_SEARCH")}


def test_every_sentence_of_the_example_is_accepted(tmp_path):
    stockaded = os.path.join(BUILD, "sbin", "stockaded")
    if not os.path.exists(stockaded):
        pytest.skip("stockaded is not built")
    if os.geteuid() != 0:
        pytest.skip("the configuration must belong to root")
    text = re.sub(r"^#([a-z])", r"\1", read("contrib/examples/stockade.conf"),
                  flags=re.MULTILINE)
    path = tmp_path / "stockade.conf"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    # Read by the unprivileged stockade-control, so its way must be open.
    for above in (tmp_path, *tmp_path.parents):
        if above.name.startswith(("pytest", "test_")):
            above.chmod(0o755)
    command = [stockaded, "-n", "-f", str(path), "--libexec",
               os.path.join(BUILD, "libexec")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", timeout=30)
    assert done.returncode == 0, done.stdout
    # The twin: a word that is no sentence is refused in the same place.
    path.write_text(text + "frobnicate on\n", encoding="utf-8")
    done = subprocess.run(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", timeout=30)
    assert done.returncode == 1, done.stdout


def runner():
    sys.path.insert(0, os.path.join(SOURCE, "tests"))
    import importlib.machinery
    import importlib.util
    loader = importlib.machinery.SourceFileLoader(
        "stockade_runner", os.path.join(SOURCE, "tests", "run"))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("text,counts", [
    ("1..2\nok 1 - a\nok 2 - b\n", (2, 0, 0)),
    ("1..2\nok 1 - a\nnot ok 2 - b\n", (1, 1, 0)),
    ("ok 1 - a\n1..1\n", (1, 0, 0)),
    ("1..2\nok 1 # SKIP no kernel\nnot ok 2 # skip x\n", (0, 0, 2)),
    ("1..0 # SKIP nothing here\n", (0, 0, 1)),
    ("1..3\nok 1 - a\n", (1, 2, 0)),
    ("ok 1 - a\n", (1, 1, 0)),
    ("", (0, 1, 0)),
])
def test_tap_is_counted(text, counts):
    assert runner().read_tap(text) == counts


@pytest.mark.parametrize("program,status,last", [
    ("echo 1..1; echo ok 1 - a", 0, "1 passed, 0 failed, 0 skipped"),
    ("echo 1..1; echo ok 1 - a; exit 3", 1, "1 passed, 1 failed, 0 skipped"),
    ("echo 1..1; kill -9 $$", 1, "0 passed, 1 failed, 0 skipped"),
    ("echo '1..0 # SKIP x'", 1, "0 passed, 0 failed, 1 skipped"),
    (None, 1, "0 passed, 0 failed, 0 skipped"),
])
def test_the_runner_fails_on_failures_and_on_nothing(tmp_path, program,
                                                     status, last):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "programs.list").write_text(
        "x\n" if program else "")
    if program:
        (tmp_path / "x").write_text("#!/bin/sh\n" + program + "\n")
        (tmp_path / "x").chmod(0o755)
    done = subprocess.run([sys.executable, os.path.join(SOURCE, "tests",
                                                        "run"),
                           "--build", str(tmp_path), "--only", "unit"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          encoding="utf-8")
    assert done.returncode == status
    assert done.stdout.splitlines()[-1] == last
