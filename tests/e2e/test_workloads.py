"""What people do in a work tree, in guarded runs and with no protection at
all: the same output, the same files, no violation, no lock left. Each program
that is not installed is a skip of its own."""

import hashlib
import json
import os
import pwd
import re
import shutil
import stat
import subprocess

import pytest

import instance
from conftest import own

PATH = "/usr/local/bin:/usr/bin:/bin"
LIMIT_S = 300
# Everything that would differ from one run to the next.
FIXED = """
set -e
export PATH=%s LC_ALL=C TZ=UTC GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE=2020-01-01T00:00:00Z
export GIT_COMMITTER_DATE=2020-01-01T00:00:00Z PYTHONDONTWRITEBYTECODE=1
umask 022
""" % PATH


def need(*programs):
    for name in programs:
        where = shutil.which(name, path=PATH)
        if where is None:
            pytest.skip("not installed: " + name)


def bare(workdir, line):
    """As the run's user, with nothing of ours: (status, output)."""
    user = pwd.getpwnam(instance.RUN_USER)
    home = workdir + "-home"
    os.mkdir(home)
    os.chown(home, user.pw_uid, user.pw_gid)
    done = subprocess.run(
        ["/bin/sh", "-c", line], user=user.pw_uid, group=user.pw_gid,
        extra_groups=[], cwd=workdir, env={"HOME": home},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout.replace(workdir.encode(), b"W")


def tree(workdir, ignore):
    """{name: type, mode, links and what is in it}."""
    found = {}
    for at, dirs, files in os.walk(workdir):
        for name in dirs + files:
            path = os.path.join(at, name)
            rel = os.path.relpath(path, workdir)
            if ignore and re.search(ignore, rel):
                continue
            st = os.lstat(path)
            body = ""
            if stat.S_ISLNK(st.st_mode):
                body = os.readlink(path)
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    body = hashlib.sha256(f.read().replace(
                        workdir.encode(), b"W")).hexdigest()
            found[rel] = (oct(st.st_mode), st.st_uid, st.st_gid,
                          0 if stat.S_ISDIR(st.st_mode) else st.st_nlink,
                          body)
    return found


@pytest.fixture
def same(service, session):
    """same(line, prepare, ignore): what both say, after it was compared."""
    def run(line, prepare=None, ignore=None, **spec):
        line = FIXED + line
        work = service.workdir()
        if prepare is not None:
            prepare(work)
            own(work)
        want = bare(work, line)
        s = session(prepare=prepare, **spec)
        status, out, err = s.sh("exec 2>&1\n" + line, timeout=LIMIT_S)
        assert err == b""
        got = (status, out.replace(s.workdir.encode(), b"W"))
        assert got == want
        assert status == 0, out
        ours, theirs = tree(s.workdir, ignore), tree(work, ignore)
        assert {k: (theirs.get(k), ours.get(k)) for k in set(ours) |
                set(theirs) if ours.get(k) != theirs.get(k)} == {}
        assert [n for n in tree(s.workdir, None) if n.endswith(".lock") and
                ".git/" in n] == []
        assert s.client.violations(s.name) == []
        return out.decode()
    return run


# ---------------------------------------------------------------- git

MANY = 20000
ON_MANY = """
cd repo
git add -A
git commit -qm many
git branch side
git checkout -q side
for f in d0[0-3]/*; do echo more >>$f; done
git commit -qam side
git checkout -q main
echo x >new; git add new; git commit -qm new
git merge -q -m merge side
git checkout -q -b topic HEAD~1
echo t >t; git add t; git commit -qm t
git rebase -q main
echo dirty >>t; echo stray >stray
git stash -qu; test ! -e stray; git stash pop -q; rm stray; git checkout -q t
git push -q origin main topic
git fetch -q origin
git rm -rq d09; git commit -qm less; git checkout -q main
git cherry-pick topic; git reset -q --hard HEAD~1; git clean -qfd
git gc -q; git fsck --no-progress --strict
git rev-parse main side topic; git -C ../up rev-parse main topic
git status --porcelain
cd ../linked
git status --porcelain
echo w >w; git add w; git commit -qm w; git rebase -q main
echo dirty >>w; git stash -q; git stash pop -q; git checkout -q w
git checkout -q -b other; git merge -q topic -m other
git push -q origin other
git rev-parse linked other; git -C ../up rev-parse other
git status --porcelain
"""


def repositories(work):
    """repo with many new files, up that it pushes to, linked beside it."""
    line = FIXED + """
cd "$1"
git init -q -b main repo; cd repo
echo one >one; git add one; git commit -qm one
git init -q --bare -b main ../up; git remote add origin ../up
git push -q origin main; git fetch -q
git worktree add -q -b linked ../linked
git config gc.auto 0
"""
    subprocess.run(["sh", "-c", line, "sh", work], check=True, env={
        "HOME": work})
    for i in range(MANY):
        name = "%s/repo/d%02d/f%d" % (work, i % 10, i)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="ascii") as f:
            f.write("file %d\n" % i)


# The index holds inode numbers and times, packs what the threads made of it.
GIT_DIFFERS = (r"\.git/(worktrees/linked/)?(index|ORIG_HEAD|FETCH_HEAD)$|"
               r"(\.git|up)/objects/(pack|info)|\.git/logs/")


def test_git_on_20000_files(same):
    out = same(ON_MANY, repositories, GIT_DIFFERS)
    assert "??" not in out


# ---------------------------------------------------------------- building

MAKEFILE = """
OBJ = $(patsubst %.c,%.o,$(wildcard *.c))
prog: $(OBJ)
\tcc -o $@ $^
%.o: %.c all.h
\tcc -O1 -MMD -c -o $@ $<
-include $(OBJ:.o=.d)
"""


def c_program(work):
    count = 40
    for i in range(count):
        with open("%s/m%d.c" % (work, i), "w", encoding="ascii") as f:
            f.write('#include <stdio.h>\n#include "all.h"\n'
                    "int m%d(int x) { return x + %d; }\n" % (i, i))
    with open(work + "/all.h", "w", encoding="ascii") as f:
        f.writelines("int m%d(int);\n" % i for i in range(count))
    with open(work + "/main.c", "w", encoding="ascii") as f:
        f.write('#include <stdio.h>\n#include "all.h"\n'
                "int main(void) { printf(\"%%d\\n\", %s); return 0; }\n" %
                " + ".join("m%d(1)" % i for i in range(count)))
    with open(work + "/Makefile", "w", encoding="ascii") as f:
        f.write(MAKEFILE)


def test_c_build(same):
    need("make", "cc")
    assert same("make -s -j2; ./prog; touch m3.c; make -s -j2; ./prog; "
                "ar rc lib.a *.o; ranlib lib.a; strip prog; ./prog",
                c_program, r"\.a$") == "820\n" * 3


VENV = """python3 -m venv %s v
v/bin/python -c 'import sys; print(sys.prefix)'
"""


def test_python_environment(same):
    """pip brings a list of public certificates whose name looks like a key's:
    this one file is exempt."""
    need("python3")
    if subprocess.run(["python3", "-c", "import ensurepip"], check=False,
                      capture_output=True, env={"PATH": PATH}).returncode != 0:
        pytest.skip("not installed: python3-venv")
    same(VENV % "" + "v/bin/python -m pip --version | cut -d' ' -f1",
         ignore=r"\.pyc$|__pycache__|dist-info/RECORD$")


def test_cargo(same):
    need("cargo")

    def crate(work):
        os.makedirs(work + "/src")
        with open(work + "/Cargo.toml", "w", encoding="ascii") as f:
            f.write('[package]\nname = "p"\nversion = "0.1.0"\n'
                    'edition = "2021"\n')
        with open(work + "/src/main.rs", "w", encoding="ascii") as f:
            f.write('mod other;\nfn main() { println!("{}", '
                    'other::f()); }\n')
        with open(work + "/src/other.rs", "w", encoding="ascii") as f:
            f.write("pub fn f() -> u32 { 42 }\n")

    assert same("cargo build -q --offline; ./target/debug/p; "
                "cargo run -q --offline --release", crate,
                "^target/") == "42\n42\n"


def test_go(same):
    need("go")

    def module(work):
        os.mkdir(work + "/part")
        with open(work + "/go.mod", "w", encoding="ascii") as f:
            f.write("module example.org/p\n\ngo 1.16\n")
        with open(work + "/main.go", "w", encoding="ascii") as f:
            f.write('package main\nimport ("fmt"; "example.org/p/part")\n'
                    "func main() { fmt.Println(part.F()) }\n")
        with open(work + "/part/part.go", "w", encoding="ascii") as f:
            f.write("package part\nfunc F() int { return 42 }\n")

    # The build cache lies in the work tree too: its files count.
    assert same("export GOFLAGS=-mod=mod GOCACHE=$PWD/cache GOPROXY=off; "
                "go vet ./...; go build -o prog .; ./prog", module,
                "^cache/|^prog$") == "42\n"


GO_WRITES = """
package main
import ("fmt"; "os"; "sync")
func main() {
	var all sync.WaitGroup
	wrong := make(chan error, 100000)
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for n := 0; n < 300; n++ {
				d := fmt.Sprintf("d%d-%d", i, n)
				for _, err := range []error{
					os.Mkdir(d, 0755),
					os.WriteFile(d + "/f", []byte("x"), 0644),
					os.Rename(d + "/f", d + "/g"),
					os.Remove(d + "/g"), os.Remove(d),
				} {
					if err != nil { wrong <- err }
				}
			}
		}(i)
	}
	all.Wait()
	close(wrong)
	for err := range wrong { fmt.Println(err) }
	fmt.Println("done")
}
"""


def test_go_program_that_is_preempted_by_signals(same):
    """Its runtime sends SIGURG to threads in system calls."""
    need("go")

    def source(work):
        with open(work + "/w.go", "w", encoding="ascii") as f:
            f.write(GO_WRITES)

    assert same("export GO111MODULE=off GOCACHE=$HOME/c; go build -o w w.go; "
                "./w", source, "^w$") == "done\n"


# ---------------------------------------------------------------- npm

PACKAGES = {"express": "4", "eslint": "8", "webpack": "5", "typescript": "4",
            "jest": "29", "react": "18", "react-dom": "18"}


@pytest.fixture(scope="module")
def npm_cache(tmp_path_factory):
    """A lock file and a cache that `npm install --offline` is content with,
    from the registry that npm is configured for."""
    need("npm")
    where = tmp_path_factory.mktemp("npm")
    with open(where / "package.json", "w", encoding="ascii") as f:
        json.dump({"name": "p", "version": "1.0.0", "private": True,
                   "dependencies": PACKAGES}, f)
    try:
        done = subprocess.run(
            ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
             "--omit-lockfile-registry-resolved=false", "--cache",
             str(where / "cache")], cwd=where, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
    except subprocess.TimeoutExpired:
        pytest.skip("no answer from npm's registry")
    if done.returncode != 0:
        pytest.skip("no npm registry: " + done.stdout.decode()[-200:])
    shutil.rmtree(where / "node_modules")
    shutil.rmtree(where / "cache" / "_logs", ignore_errors=True)
    return where


def test_npm_install(same, npm_cache):
    def prepare(work):
        shutil.copytree(npm_cache, work, dirs_exist_ok=True)

    out = same("export npm_config_update_notifier=false; "
               "npm install --offline --no-audit --no-fund --loglevel=error "
               "--cache $PWD/cache >/dev/null; npx --offline tsc --version; "
               "node -e 'console.log(require(\"express\")().listen !== "
               "undefined)'; find node_modules -type f | wc -l", prepare,
               r"^cache/|node_modules/\.package-lock\.json$")
    assert int(out.split()[-1]) > 3000


# ---------------------------------------------------------------- archives

def mixed(work):
    """Files of every kind that a user may make."""
    top = os.path.join(work, "src")
    os.mkdir(top)
    for i in range(500):
        d = os.path.join(top, "d%d" % (i % 25))
        os.makedirs(d, exist_ok=True)
        with open(os.path.join(d, "f%d" % i), "wb") as f:
            f.write(b"x" * (i * 7))
        os.chmod(os.path.join(d, "f%d" % i), 0o600 + i % 64)
    os.symlink("d1/f1", top + "/link")
    os.symlink("/nowhere", top + "/dangling")
    os.link(top + "/d2/f2", top + "/hard")
    os.mkfifo(top + "/pipe")
    os.mkdir(top + "/read-only")
    with open(top + "/read-only/f", "w", encoding="ascii") as f:
        f.write("kept")
    os.chmod(top + "/read-only", 0o555)
    os.mkdir(top + "/set-gid")
    os.chmod(top + "/set-gid", 0o2775)
    with open(top + "/sparse", "wb") as f:
        f.truncate(1 << 20)
        f.seek(1 << 19)
        f.write(b"middle")
    with open(os.path.join(os.fsencode(top), b"\xff\xfe \n"), "wb") as f:
        f.write(b"odd name")


CASES = {
    "tar": (["tar"], "tar cf a.tar --sort=name src; mkdir o; "
            "tar xpf a.tar -C o; tar xpf a.tar -C o --skip-old-files; "
            "diff -r --no-dereference -x pipe src o/src; tar df a.tar; "
            "tar cf - src | tar xf - -C o --one-top-level=p; rm a.tar"),
    "rsync": (["rsync"], "rsync -aH src/ o/; echo more >>src/d3/f3; "
              "rm src/d4/f4; mv src/d5 src/d6/; "
              "rsync -aH --delete src/ o/; rsync -aH --inplace src/ p/; "
              "rsync -aH --link-dest=$PWD/o src/ q/"),
    "cp": (["cp"], "cp -a src o; cp -al o p; cp -r --preserve=all src/d1 q; "
           "cp --reflink=auto src/hard r; cp --sparse=always src/sparse s; "
           "install -m 750 -D src/hard t/u/v; cp -u src/hard r; "
           "cp --backup=numbered src/sparse r"),
    "mv": (["mv"], "mv src/d1 src/d2/; mv -n src/hard src/d3/f3; "
           "mv -f src/sparse src/d3/f3; mv -b src/hard src/d3/f28; "
           "mv src/link src/link2; mv -T src/d4 src/d5/x; "
           "ln -s a src/n; ln -sfn b src/n; readlink src/n"),
    "find": (["find"], "find src -type f -name 'f1*' -print | sort; "
             "find src -name 'f2*' -delete; chmod u+w src/read-only; "
             "rm -rf src/d1 src/d2 src/read-only; rmdir src/set-gid; "
             "find src | sort | head -30"),
    "sed": (["sed"], "for i in 1 2 3; do echo line$i >f$i; done; "
            "sed -i s/line/word/ f1; sed -i.bak s/line/word/ f2; "
            "sed -i -s 's/$/!/' f1 f2; cat f1 f2 f3 *.bak; "
            "chmod 600 f3; sed -i s/l/L/ f3"),
    "perl": (["perl"], "echo one >f; perl -pi.orig -e 's/one/two/' f; "
             "perl -e 'open F,\">\",\"g\" or die; print F \"x\"; close F; "
             "rename \"g\",\"h\" or die; link \"h\",\"i\" or die; "
             "symlink \"h\",\"j\" or die; mkdir \"k\",0700 or die; "
             "unlink \"h\" or die; open F,\"+<\",\"i\" or die; "
             "truncate F,0; sysopen F,\"l\",0301 or die; print \"ok\\n\"'; "
             "cat f"),
    "patch": (["patch", "diff"], "seq 100 >f; seq 100 | sed 's/^5/x/' >g; "
              "diff -u --label f --label g f g >p || :; patch -s -b f p; cmp f g; "
              "patch -s -R f p; echo no >>p; "
              "printf -- '--- /dev/null\\n+++ b/n/m\\n@@ -0,0 +1 @@\\n+new"
              "\\n' | patch -s -p1; patch -s f <<'E' || echo rejected\n"
              "--- f\n+++ f\n@@ -1,2 +1,2 @@\n-zero\n+x\n two\nE"),
    "flock": (["flock"], "echo 0 >n; for i in 1 2 3 4; do (for j in 1 2 3 4 5 "
              "6 7 8 9 10; do flock l sh -c 'echo $(($(cat n) + 1)) >m; "
              "mv m n'; done) & done; wait; cat n"),
    "dd": (["dd"], "dd if=/dev/zero of=f bs=4096 count=8 oflag=direct "
           "status=none; dd if=f of=g bs=4096 iflag=direct oflag=direct,sync "
           "status=none; dd if=/dev/zero of=f bs=1 count=1 seek=99 "
           "conv=notrunc status=none; dd of=h if=/dev/null seek=1 bs=1M "
           "status=none; truncate -s 5 g; fallocate -l 8192 k; ls -s f g"),
    "pipes": (["mkfifo"], "mkfifo p; (cat p; echo end) & echo in >p; wait; "
              "exec 3<>p; echo both >&3; read x <&3; echo $x; "
              "cat <<E | tee a b | sort -o c\nz\ny\nE\ncat c; "
              "echo x >>a; : >b; set -C; echo no 2>/dev/null >a || echo kept"),
    "times": (["touch"], "touch -t 202001010000 f; touch -r f g; "
              "stat -c %Y f g; mktemp -d t.XXXXXX >/dev/null; "
              "mktemp u.XXXXXX >/dev/null; rm -r t.* u.*; "
              "seq 200 >s; split -b 10 s x; ls x* | wc -l; rm x*; "
              "csplit -s s 3; ls"),
    "zip": (["gzip", "xz"], "seq 9999 >f; gzip -nk f; gunzip -c f.gz | cmp - "
            "f; xz f; xz -d f.xz; gzip -nf f; ls"),
    "ed": (["ex"], "seq 5 >f; ex -sn -c '2d|wq' f; cat f"),
    "shells": (["bash"], "bash -c 'set -e; cat <(echo a) >f; echo b >>f; "
               "exec 5<>f; read -u 5 x; echo $x; pushd / >/dev/null; "
               "popd >/dev/null; (umask 077; echo >g); coproc cat; "
               "echo hi >&${COPROC[1]}; read -u ${COPROC[0]} y; echo $y'; "
               "stat -c %a g"),
}


@pytest.mark.parametrize("name", CASES)
def test_everyday_programs(same, name):
    programs, line = CASES[name]
    need(*programs)
    same(line, mixed if "src" in line else None)


# ---------------------------------------------------------------- databases

def test_sqlite_wal(same):
    need("sqlite3")
    assert same("""
sqlite3 db 'pragma journal_mode=wal; create table t(n);'
for i in 1 2 3 4; do
    (for j in 1 2 3 4 5 6 7 8 9 10; do
        sqlite3 -cmd '.timeout 20000' db "insert into t values($i * 100 + $j)"
    done) &
done
wait
sqlite3 db 'select count(*), sum(n) from t; pragma integrity_check;
pragma wal_checkpoint(truncate); vacuum;'
sqlite3 db 'pragma journal_mode=delete; begin immediate;
delete from t where n > 300; commit; select count(*) from t;'
ls
""", ignore="^db") == "wal\n40|10220\nok\n0|0|0\ndelete\n20\ndb\n"


# ---------------------------------------------------------------- node

DEV_SERVER = """
const fs = require('fs'), http = require('http');
const seen = new Set();
let version = 0;
fs.mkdirSync('src/deep', { recursive: true });
const changed = (where) => (kind, name) => {
    seen.add(where + '/' + name);
    version++;
};
fs.watch('src', changed('src'));
fs.watch('src/deep', changed('src/deep'));
const server = http.createServer((request, answer) => {
    fs.readFile('src' + request.url, (error, data) =>
        answer.end(error ? error.code : data));
});
const get = (path) => new Promise((done) => http.get(
    { port: server.address().port, host: '127.0.0.1', path },
    (r) => { let all = ''; r.on('data', (d) => all += d);
        r.on('end', () => done(all)); }));
const pause = () => new Promise((done) => setTimeout(done, 100));
server.listen(0, '127.0.0.1', async () => {
    fs.writeFileSync('src/a.js', 'one');
    await pause();
    console.log(await get('/a.js'));
    await fs.promises.writeFile('src/a.js.tmp', 'two');
    await fs.promises.rename('src/a.js.tmp', 'src/a.js');
    await pause();
    console.log(await get('/a.js'));
    await fs.promises.appendFile('src/deep/b.js', 'x');
    await fs.promises.cp('src/deep', 'src/copy', { recursive: true });
    await fs.promises.rm('src/copy', { recursive: true });
    const w = fs.createWriteStream('src/big');
    for (let i = 0; i < 100; i++) w.write('line ' + i + '\\n');
    await new Promise((done) => w.end(done));
    await pause();
    console.log(await get('/missing'), version > 0);
    console.log([...seen].sort().join(' '));
    process.exit(0);
});
"""


def test_node_server_sees_changes(same):
    need("node")

    def source(work):
        with open(work + "/server.js", "w", encoding="ascii") as f:
            f.write(DEV_SERVER)

    out = same("node server.js", source)
    assert out.splitlines()[:2] == ["one", "two"]
    assert "src/a.js" in out and "src/deep/b.js" in out


# ---------------------------------------------------------------- python

PYTHON_FILES = """
import asyncio, concurrent.futures, os, pathlib, shutil, socket, tempfile
import multiprocessing, shelve, dbm.dumb, zipfile, mmap, logging.handlers
p = pathlib.Path('.')
(p / 'a').write_text('x'); (p / 'a').replace('b'); (p / 'c').hardlink_to('b')
(p / 'd').symlink_to('b'); (p / 'e').touch(0o600); os.replace('e', 'f')
with tempfile.NamedTemporaryFile(dir='.') as t: t.write(b'x')
with tempfile.TemporaryDirectory(dir='.') as d: pathlib.Path(d, 'x').touch()
with tempfile.TemporaryFile(dir='.') as t: t.write(b'no name')
with zipfile.ZipFile('z', 'w') as z: z.writestr(
    zipfile.ZipInfo('n'), 'text')
zipfile.ZipFile('z').extractall('out')
with dbm.dumb.open('db', 'c') as db: db['k'] = 'v'
with open('m', 'w+b') as f:
    f.truncate(8192)
    with mmap.mmap(f.fileno(), 8192) as m: m[5000:5003] = b'abc'
h = logging.handlers.RotatingFileHandler('log', maxBytes=50, backupCount=2)
for i in range(20):
    h.emit(logging.makeLogRecord({'msg': 'line %d' % i}))
h.close()
def work(i):
    with open('w%d' % i, 'x') as f: f.write(str(i))
    return i
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(work, range(100))))
with multiprocessing.get_context('fork').Pool(4) as pool:
    print(sum(pool.map(work, range(100, 200))))
async def talk():
    async def answer(r, w):
        w.write(await r.readline()); w.close()
    server = await asyncio.start_unix_server(answer, 'sock')
    r, w = await asyncio.open_unix_connection('sock')
    w.write(b'hello\\n'); print(await r.readline()); server.close()
asyncio.run(talk())
os.unlink('sock')
fd = os.open('.', os.O_DIRECTORY)
os.mkdir('x', dir_fd=fd); os.rename('x', 'y', src_dir_fd=fd, dst_dir_fd=fd)
shutil.copytree('out', 'y/z', symlinks=True); shutil.move('y', 'moved')
shutil.make_archive('arc', 'tar', 'moved'); os.unlink('arc.tar')
print(sorted(os.listdir('.'))[:5], os.stat('c').st_nlink)
"""


def test_python_library(same):
    need("python3")
    out = same("cat >p.py <<'E'\n%s\nE\npython3 p.py" % PYTHON_FILES)
    assert "b'hello\\n'" in out
