"""The mechanism bpf-lsm without daemons, in a kernel that has it
(tests/vm/jobs/bpf): the broker's cases, and what the broker cannot do. Every
refusal has its control without a label."""

import os
import sys

import pytest

import bpfbox
from bpfbox import Box
import brokerbox
from brokerbox import Tree
from test_broker import CASES, HELPERS, prepare, program

WHY = bpfbox.can_run()
pytestmark = pytest.mark.skipif(WHY is not None, reason=str(WHY))


@pytest.fixture
def tree():
    with Tree() as it:
        yield it


@pytest.fixture(scope="module", autouse=True)
def pins():
    yield
    assert bpfbox.unload().returncode == 0
    assert not os.path.exists(bpfbox.PINS)


@pytest.mark.parametrize("code, action, path, files, rule", CASES)
def test_refused_with_one_violation(tree, code, action, path, files, rule):
    code = HELPERS % code
    with Tree() as other:
        prepare(other, files)
        assert brokerbox.Box(other, mode="none").run(
            program(other, code))[1].split()[0] == "ok"
    prepare(tree, files)
    box = Box(tree)
    status, said = box.run(program(tree, code))
    assert (status, said.split()) == (0, ["EPERM", "same"])
    assert len(box.denials) == 1, [vars(d) for d in box.denials]
    denial = box.denials[0]
    assert denial.name == action
    assert denial.path == tree.root + "/" + path
    assert denial.count == 1 and denial.pid > 1
    assert os.path.basename(denial.exe) == os.path.basename(
        os.path.realpath("/bin/sh" if "sh" in code and "'sh'" in code
                         else sys.executable))
    assert denial.rule if rule is None else denial.rule == rule
