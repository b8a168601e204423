"""The examples of stockade-guard(7) as they are typed, and its lists against
the tables."""

import os
import re
import shlex
import subprocess

import pytest

import instance
from conftest import CONF, need_service
from conftest import own as give

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PAGE = os.path.join(SOURCE, "launcherd", "stockade-guard.7")


def page():
    with open(PAGE, encoding="ascii") as f:
        return f.read()


def examples():
    """(prompt, command, the lines it prints) of the section."""
    section = re.search(r"^\.Sh EXAMPLES\n(.*?)^\.Sh ", page(),
                        re.M | re.S).group(1)
    rows = []
    for line in section.splitlines():
        line = re.sub(r"^\.Dl ", "", line)
        if re.match(r"[$#] ", line):
            rows.append((line[0], line[2:], []))
        elif rows and line and line[0] != ".":
            rows[-1][2].append(line)
        elif line.startswith(".Ed"):
            rows.append(("", "", []))
    return [row for row in rows if row[0]]


@pytest.fixture
def service():
    need_service()
    with instance.Instance(CONF) as running:
        yield running


def test_examples(service):
    work = service.workdir("w")
    os.makedirs(work + "/tests/a")
    with open(work + "/Makefile", "w", encoding="ascii") as f:
        f.write("check:\n\techo x >tests/a/x.pem\n")
    give(work)
    rows = examples()
    assert len(rows) == 5
    for prompt, command, expected in rows:
        if command.startswith("echo "):
            assert prompt == "#"
            subprocess.run(["/bin/sh", "-c", command.replace(
                "/etc/stockade/stockade.conf", service.conf)], check=True)
            continue
        argv = shlex.split(command)
        assert argv.pop(0) == "stockadectl"
        done = service.ctl(*argv, cwd=work)
        assert done.returncode == (1 if argv[0] == "why" else 0), done.stderr
        out = done.stdout.decode().replace(work, "/home/u/w").splitlines()
        if argv[0] != "run":
            assert out == expected
    assert os.path.exists(work + "/tests/a/x.pem")
    assert os.path.exists(work + "/scratch/.git/config")


def test_the_page_names_every_rule_and_none_else(service):
    with service.client() as c:
        work = service.workdir()
        c.launch("x", work)
        names = c.call("sandbox.explain", sessionId="x")["plan"]["names"]
    text = re.search(r"^\.Ss Rules\n(.*?)^\.It Configuration", page(),
                     re.M | re.S).group(1)
    said = {w.rstrip(",") for line in text.splitlines()
            if line.startswith(".Pa ") for w in line[4:].split() if w not in (",", ".")}
    rules = set()
    for rule in names["rules"]:
        pattern = re.sub(r"^\*\*/", "", rule["pattern"])
        pattern = re.sub(r"/\*\*$", "", pattern)
        if pattern.startswith(".git/"):
            pattern = pattern[5:]
            pattern = re.sub(r"^(modules/\*\*|worktrees/\*)/", "", pattern)
        rules.add(pattern)
    rules |= {re.sub(r"^(\(\?i\))?\*\*/", "", e["pattern"])
              for e in names["exemptions"]}
    assert said - rules == {".git", "modules", "worktrees/*"}
    assert rules - said == set()
