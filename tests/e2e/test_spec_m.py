"""SPEC M and the lists App.8, entry by entry in a real sandbox."""

BASE = """LANG LANGUAGE LC_ALL LC_TIME TZ TERM COLORTERM NO_COLOR FORCE_COLOR
COLUMNS LINES CI GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME
GIT_COMMITTER_EMAIL CLAUDE_CONFIG_DIR""".split()
STRIP = """LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES BASH_FUNC_x%%
MALLOC_CHECK_ GIT_CONFIG GIT_CONFIG_COUNT GIT_TRACE GIT_TRACE_CURL
STOCKADE_RUN_DIR STOCKADE_X npm_config_registry NPM_CONFIG_REGISTRY BASH_ENV ENV
PERL5OPT PERL_MM_OPT PERL5LIB PERLLIB PERL5DB PYTHONPATH PYTHONSTARTUP
PYTHONHOME PYTHONINSPECT NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_PATH RUBYOPT
RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS LUA_INIT PROMPT_COMMAND
PS4 SHELLOPTS BASHOPTS ZDOTDIR IFS CDPATH GCONV_PATH GLIBC_TUNABLES LOCPATH
NLSPATH HOSTALIASES RESOLV_HOST_CONF GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND
GIT_ASKPASS SSH_ASKPASS GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_DIR
GIT_EXTERNAL_DIFF GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER EDITOR VISUAL PAGER
LESSOPEN LESSCLOSE MAKEFLAGS RUSTC_WRAPPER CC_WRAPPER SSH_AUTH_SOCK
GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY
XAUTHORITY DOCKER_HOST CONTAINER_HOST HTTP_PROXY https_proxy ALL_PROXY no_proxy
FTP_PROXY Ld_Preload node_options""".split()
SECRET = """A_TOKEN A_SECRET A_KEY A_KEYS A_PASSWORD_1 DBPASSWD MY_CREDENTIALS
AWS_REGION AZURE_X GOOGLE_X ANTHROPIC_API_KEY""".split()
OURS = {
    "HTTP_PROXY": "http://127.0.0.1:3128", "http_proxy": "http://127.0.0.1:3128",
    "HTTPS_PROXY": "http://127.0.0.1:3128",
    "https_proxy": "http://127.0.0.1:3128",
    "ALL_PROXY": "socks5h://127.0.0.1:1080",
    "all_proxy": "socks5h://127.0.0.1:1080",
    "NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1",
    "NODE_USE_ENV_PROXY": "1", "TMPDIR": "/tmp",
    "STOCKADE_RUN_DIR": "/run/stockade/run"}
CA = """SSL_CERT_FILE NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
GIT_SSL_CAINFO""".split()
EVIL = "evil-value"


def environment(s, **more):
    status, out, err = s.run("/usr/bin/env", "-0", **more)
    assert status == 0, err
    return dict(row.split("=", 1) for row in out.decode().split("\0") if row)


def test_a_run_starts_from_the_base_list(session):
    got = environment(session())
    allowed = set(BASE) | set(OURS) | set(CA) | {
        "HOME", "PATH", "USER", "LOGNAME", "SHELL", "GIT_SSH_COMMAND",
        "STOCKADE_SESSION"}
    assert set(got) <= allowed, set(got) - allowed
    for name, value in OURS.items():
        assert got[name] == value, name
    assert got["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert "/run/stockade/connect" in got["GIT_SSH_COMMAND"]
    for name in CA:
        assert got.get(name, got.get("SSL_CERT_FILE")) == got.get(
            "SSL_CERT_FILE")


def test_base_names_pass_by_name(session):
    got = environment(session(passEnv={name: "v-" + name for name in BASE}))
    for name in BASE:
        assert got[name] == "v-" + name


def test_strip_names_never_pass_and_are_reported(session, client):
    env = {name: EVIL for name in STRIP}
    s = session(env=env, passEnv=dict(list(env.items())[:20]))
    assert sorted(s.handle["details"]["stripped"]) == sorted(STRIP)
    for got in (environment(s), environment(s, env=env)):
        assert EVIL not in got.values(), [
            name for name, value in got.items() if value == EVIL]
        for name, value in OURS.items():
            assert got[name] == value
    answer = client.call("sandbox.exec", sessionId=s.name, argv=["true"],
                         env=env)
    assert sorted(answer["stripped"]) == sorted(STRIP)
    sub = client.call("events.subscribe", sessionId=s.name, since=1)
    notice = client.event(lambda e: e.get("code") == "envStripped")
    assert notice["type"] == "notice" and EVIL not in repr(notice)
    client.call("events.unsubscribe", subscription=sub["subscription"])


def test_secret_names_pass_when_named_and_stand_in_the_plan(session, client):
    s = session(env={name: "s3cr3t" for name in SECRET})
    got = environment(s)
    plan = repr(client.call("sandbox.explain", sessionId=s.name))
    for name in SECRET:
        assert got[name] == "s3cr3t" and name in plan
    assert "s3cr3t" not in plan
    assert "s3cr3t" not in repr(client.call("sandbox.get", sessionId=s.name))
    assert "s3cr3t" not in s.service.read_log()


def test_later_groups_win_and_ours_cannot_be_overridden(session):
    s = session(passEnv={"TERM": "pass", "LANG": "pass"},
                env={"TERM": "spec", "X": "spec", "HOME": "/evil",
                     "TMPDIR": "/evil"})
    got = environment(s, env={"X": "exec", "TMPDIR": "/evil"})
    assert (got["LANG"], got["TERM"], got["X"]) == ("pass", "spec", "exec")
    assert got["TMPDIR"] == "/tmp"
    assert got["HOME"] == s.handle["details"]["home"]


def test_path_keeps_what_is_in_the_view(session, service):
    work = service.workdir()
    given = ":".join(["", ".", "rel", "/no/such", "/usr/games", work,
                      work + "/..", "/opt", "/root/bin"])
    s = session(bindMounts=[{"hostPath": work}], guestWorkdir=work,
                env={"PATH": given})
    assert environment(s)["PATH"] == \
        "/usr/local/bin:/usr/bin:/bin:/usr/games:" + work


def test_login_shells_keep_path(session, service):
    s = session(env={"PATH": "/usr/games"})
    assert s.run("/bin/bash", "-lc", "echo $PATH")[1].strip() == \
        b"/usr/local/bin:/usr/bin:/bin:/usr/games"
