"""Fixtures of the end-to-end tests: real sandboxes under a real, private
instance. Where none can be started the tests are skipped with the reason."""

import os
import pwd
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import instance as instance_module  # noqa: E402

HOSTS = {"allowed.example.net": "10.99.0.1", "denied.example.net": "10.99.0.1",
         "private.example.net": "10.99.0.2", "local.example.net": "127.0.0.1",
         "metadata.example.net": "169.254.169.254"}
CONF = """
allow host { "allowed.example.net" "private.example.net" "local.example.net"
    "metadata.example.net" }
permit private { "10.99.0.1/32" } for { "allowed.example.net"
    "denied.example.net" }
limit idle none
"""

# Counts the requests it gets and tells them at /count; the canary of the tests.
ORIGIN = """
import http.server, sys
count = 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global count
        if self.path == "/count":
            body = b"%d" % count
        else:
            count += 1
            body = b"hello from outside"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        global count
        count += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
class Server(http.server.ThreadingHTTPServer):
    address_family = __import__("socket").AF_INET
server = Server(("0.0.0.0", 80), Handler)
print("ready", flush=True)
server.serve_forever()
"""


def need_service():
    why = instance_module.missing()
    if why:
        pytest.skip(why)


@pytest.fixture(scope="module")
def service():
    need_service()
    with instance_module.Instance(CONF, hosts=HOSTS) as running:
        running.origin(["/usr/bin/python3", "-c", ORIGIN], "ready")
        yield running


@pytest.fixture
def client(service):
    with service.client() as c:
        yield c


class Session:
    """A live sandbox with a work tree, for one test."""

    def __init__(self, service, client, name, **spec):
        self.service, self.client, self.name = service, client, name
        self.workdir = service.workdir()
        self.prepare(spec.pop("prepare", None))
        self.handle = client.launch(name, self.workdir, **spec)

    def prepare(self, how):
        if how is not None:
            how(self.workdir)
            own(self.workdir)

    def run(self, *argv, **more):
        return self.client.run(self.name, list(argv), **more)

    def sh(self, line, **more):
        return self.run("/bin/sh", "-c", line, **more)

    def ok(self, line, **more):
        status, out, err = self.sh(line, **more)
        assert status == 0, (line, status, out, err)
        return out.decode().strip()

    def destroy(self):
        self.client.call("sandbox.destroy", sessionId=self.name)


def own(path):
    user = pwd.getpwnam(instance_module.RUN_USER)
    for base, dirs, files in os.walk(path):
        for name in ["", *dirs, *files]:
            os.chown(os.path.join(base, name), user.pw_uid, user.pw_gid,
                     follow_symlinks=False)


@pytest.fixture
def session(service, client, request):
    """session(**spec) launches; everything is destroyed at the end."""
    made = []

    def make(**spec):
        name = "%s-%d" % (request.node.name.split("[")[0][:80], len(made))
        made.append(Session(service, client, name, **spec))
        return made[-1]

    yield make
    for one in made:
        try:
            one.destroy()
        except instance_module.RpcError:
            pass


@pytest.fixture
def outside():
    """outside(line): the same line as the run's user, but without stockade:
    the control that shows what the protection prevents."""
    user = pwd.getpwnam(instance_module.RUN_USER)

    def run(line, **more):
        return subprocess.run(
            ["setpriv", "--reuid", str(user.pw_uid), "--regid",
             str(user.pw_gid), "--clear-groups", "/bin/sh", "-c", line],
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=60, **more)

    return run
