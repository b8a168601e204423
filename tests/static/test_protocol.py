"""protocol/methods.def against the specification's list (X11, X12), and the
manual's tables against the .def files."""

import os
import re
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

# X11: parameters (? optional), results, errors beyond those that every method
# may answer.
SPECIFIED = {
    "hello": ("protocol client", "server version protocol uid role limits",
              "27"),
    "ping": ("", "time", ""),
    "probe": ("", "platform recommendation results mechanisms", ""),
    "status": ("", "setting line backends guard version uptimeMs sessions",
               ""),
    "sandbox.launch": ("spec replace?", "handle", "7 10 11 12 13 14 18 24 25"),
    "sandbox.exec": ("sessionId argv? shell? env? cwd? timeoutMs? silenceMs? "
                     "tty? rows? cols? stdin? passFds?",
                     "execId pid stripped", "6 14 15 16 17 25"),
    "sandbox.stdin": ("sessionId execId data? eof?", "accepted", "6 9"),
    "sandbox.signal": ("sessionId execId signal", "", "6"),
    "sandbox.resize": ("sessionId execId rows cols", "", "6"),
    "sandbox.suspend": ("sessionId depth?", "state details", "6 10 25"),
    "sandbox.resume": ("sessionId depth?", "state details", "6 10 25"),
    "sandbox.destroy": ("sessionId", "state", "6"),
    "sandbox.list": ("workspaceId? state?", "handles", ""),
    "sandbox.get": ("sessionId adopt?", "handle execs digest alive", "6"),
    "sandbox.explain": ("spec? sessionId? path? host? command? ref? "
                        "platform?",
                        "plan decision rule why remedy profile",
                        "6 13 14 24"),
    "events.subscribe": ("sessionId? types? since?", "subscription next",
                         "6 23"),
    "events.unsubscribe": ("subscription", "", "6"),
    "admin.status": ("uid? sessionId? since? limit?", "rows", ""),
    "admin.sessions": ("uid? sessionId? since? limit?", "rows", ""),
    "admin.violations": ("uid? sessionId? since? limit?", "rows", ""),
    "admin.reload": ("", "changed warnings", ""),
}
LATER = """egress.update egress.explain policy.check policy.resolve
    command.evaluate command.classify rules.list rules.set rules.delete
    rules.import rules.export mode.surface adapter.matrix approvals.attach
    approvals.list approvals.answer credentials.list credentials.revoke
    push.list push.get terminal.open terminal.input terminal.resize
    terminal.close worktree.provision worktree.list worktree.destroy
    worktree.rescue file.read file.write file.edit file.applyPatch file.search
    file.find file.searchFiles admin.audit admin.doctor""".split()
# What a method that exists does not do yet.
PARTLY = {"sandbox.explain": ("host command ref platform", "profile")}
EVENTS = """stdout stderr exit starting ready killed violation state notice
    terminal.output overrun""".split()
EVENTS_LATER = "push egress terminal.title terminal.exit".split()


def read(name):
    with open(os.path.join(SOURCE, "protocol", name), encoding="ascii") as f:
        return f.read()


def code_of(name):
    return re.search(r"X\(%s, (\d+)," % name, read("cause.h")).group(1)


def methods():
    text = re.sub(r"/\*.*?\*/", "", read("methods.def"), flags=re.S)
    for name, errors, body in re.findall(
            r'METHOD_BEGIN\(\w+, "([^"]+)", \w+, (.*?), "[^"]*"\)\n(.*?)'
            r"METHOD_END", text, re.S):
        params = {n + ("?" if need == "OPTIONAL" else "")
                  for n, need in re.findall(
                      r'PARAM\("(\w+)", \w+, (\w+),', body)}
        results = set(re.findall(r'RESULT\("(\w+)"', body))
        codes = {code_of(e) for e in re.findall(r"E\((\w+)\)", errors)}
        yield name, params, results, codes


def test_methods_are_as_specified():
    seen = set()
    for name, params, results, codes in methods():
        assert name in SPECIFIED, name
        want, answer, errors = (set(s.split()) for s in SPECIFIED[name])
        later, later_results = PARTLY.get(name, ("", ""))
        assert params == want - {p + "?" for p in later.split()}, name
        assert results == answer - set(later_results.split()), name
        assert codes == errors, name
        seen.add(name)
    assert seen == set(SPECIFIED)
    print("not in this version:", " ".join(LATER))


def test_events_are_as_specified():
    names = re.findall(r'^EVENT_BEGIN\(\w+, "([^"]+)"', read("methods.def"),
                       re.M)
    assert set(names) == set(EVENTS) and len(names) == len(EVENTS)
    print("not in this version:", " ".join(EVENTS_LATER))


def test_the_manual_has_the_tables():
    made = subprocess.run([os.path.join(SOURCE, "protocol", "manual.sh")],
                          capture_output=True, check=True, text=True).stdout
    assert made == read("protocol.7"), "run protocol/manual.sh"
    for name in SPECIFIED:
        assert ".It Ic %s\n" % name in made
    for name in re.findall(r"^MSG_BEGIN\((\w+),", read("messages.def"), re.M):
        assert ".It Ic %s Pq " % name in made


def test_codes_of_messages_are_never_reused():
    codes = re.findall(r"^MSG_BEGIN\(\w+, (\w+),", read("messages.def"), re.M)
    assert len(codes) == len(set(codes)) > 40
