# SPDX-License-Identifier: Apache-2.0
"""What a system test is made of: the program run as a user runs it, what is expected of
it, and the proof that nothing of it stays behind.

A test is a function under @test("a sentence that is true").  It ends quietly, or raises
Failure (what was seen and what was expected) or Skip (why this host can't say).
The program under test is $CEJAIL and nothing else of the project is used.
"""

import ctypes
import errno
import glob
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

CEJAIL = os.environ.get("CEJAIL", "cejail")
PROBES = os.environ.get("CEJAIL_PROBES", "build/release/tests/system/probes")
SCHEMAS = os.environ.get("CEJAIL_SCHEMAS", "profiles/schema")
PYTHON = "/usr/bin/python3"
# Every limit on waiting is multiplied by this: by 3 on a quick machine, whose tests run beside each other, and by more
# on a slower one (tests/speed).  Such a limit only ends what hangs; no test asserts a time.
SLOW = float(os.environ.get("CEJAIL_TEST_SLOW", "1"))
# What was measured to find that factor, in one sentence; "": nothing was measured.
SPEED = os.environ.get("CEJAIL_TEST_SPEED", "")
# "cgroup": this place must hold memory, cpu and pids by cgroup v2; "any": whatever the host has.
EXPECTED = os.environ.get("CEJAIL_TEST_EXPECT", "any")
# The test machine, whose processors are emulated: it takes a sample of the sample.
EMULATED = EXPECTED == "cgroup"
SECRET = "canary-5f1d7c"
# The long form tries every case where the short one takes a sample.
LONG = os.environ.get("CEJAIL_TEST_LONG") == "1"
# Who runs the tests: the machine's "root", an ordinary "user", or a "container" root with one id.
WHO = os.environ.get("CEJAIL_TEST_WHO", "root" if os.geteuid() == 0 else "user")
# Is there a kernel with SELinux and its policy, as in the machine of tests/machine/selinux?
HAS_SELINUX = os.path.exists("/sys/fs/selinux/enforce")
# Sweeps of a slow machine's short form try so many times fewer cases.
THIN = 1 if LONG else int(os.environ.get("CEJAIL_TEST_THIN", "1"))
# In the short form root tries the whole sample of a sweep, and others, whose runs make nearly the same calls,
# every fourth of it.
STEP = THIN if LONG or WHO == "root" else 4 * THIN
# 1: the mounts of this place are its own, and so are /tmp, /var/tmp, /dev/shm and /run (tests/system/alone).
ALONE = os.environ.get("CEJAIL_TEST_ALONE") == "1"

# A service's socket: every `run` goes there.
REMOTE = os.environ.get("CEJAIL_TEST_REMOTE")

tests = []
tried_cases = 0


class Failure(Exception):
    """What was seen is not what is promised."""


class Skip(Exception):
    """This host can't answer the question; the text says why."""


def test(sentence, who="anybody", limit=60):
    """Register a test. who: "root" or "user" when the sentence is only about them, "accounts" for both, "roots" for
    root and the root of a container; "machine root" only on the test machine, whose systemd may be asked, "selinux
    root" only on one with SELinux."""

    def register(function):
        tests.append((sentence, who, limit, function))
        return function

    return register


def tried(count=1):
    """For tests about many cases: so many more were tried."""
    global tried_cases
    tried_cases += count


def share(count, least=1):
    """How many of so many like cases are tried here."""
    return max(min(least, count), count // THIN)


def thinned(cases, kind=lambda case: None, step=THIN):
    """Every THINth case of each kind, and at least one of each, in their order."""
    seen, kept = {}, []
    for case in cases:
        count = seen[kind(case)] = seen.get(kind(case), -1) + 1
        if count % step == 0:
            kept.append(case)
    return kept


def scaled(seconds):
    """A time limit of cejail's that must not end the program: what it does here takes longer where all is slow."""
    return f"{int(seconds * SLOW * 1000)}ms"


def waited(seconds, what):
    """The failure of a limit on waiting."""
    return Failure(f"{what} ({seconds * SLOW:.0f} s)" + (f" [{SPEED}]" if SPEED else ""))


# --- expectations -----------------------------------------------------------


def equal(seen, wanted, what="value"):
    if seen != wanted:
        raise Failure(f"{what} is {seen!r}, expected {wanted!r}")


def contains(text, part, what="text"):
    if part not in text:
        raise Failure(f"{what} lacks {part!r}: {text!r}")


def lacks(text, part, what="text"):
    if part in text:
        raise Failure(f"{what} has {part!r}: {text[:2000]!r}")


def true(condition, otherwise):
    if not condition:
        raise Failure(otherwise)


def between(seen, low, high, what):
    if not low <= seen <= high:
        raise Failure(f"{what} is {seen}, expected {low} to {high}")


# --- running ----------------------------------------------------------------


class Done:
    """How one run ended, as its caller sees it."""

    def __init__(self, code, out, err, seconds, args):
        self.code, self.raw_out, self.raw_err = code, out, err
        self.out, self.err = out.decode(errors="replace"), err.decode(errors="replace")
        self.seconds, self.args = seconds, args

    def __repr__(self):
        return f"code {self.code}, stdout {self.out[:600]!r}, stderr {self.err[:600]!r}"

    def exits(self, code):
        if self.code != code:
            raise Failure(f"{' '.join(self.args)}: exit status {self.code}, expected {code} ({self!r})")
        return self

    def says(self, text):
        if self.out != text:
            raise Failure(f"{' '.join(self.args)}: stdout {self.out[:600]!r}, expected {text!r} ({self!r})")
        return self


def environment(**more):
    """A caller's environment with a secret in it that no jail may see."""
    kept = ("HOME", "USER", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "ASAN_OPTIONS", "CEJAIL_TEST_SLOW")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG="C.UTF-8")
    env.update(CEJAIL_TEST_SECRET=SECRET, LD_LIBRARY_PATH="")
    env.update(more)
    return env


def start(*args, env=None, **options):
    """Start cejail and go on; for tests that do something meanwhile."""
    if REMOTE and args and args[0] == "run":
        args = ("run", "--remote", REMOTE, *args[1:])
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([CEJAIL, *args], env=env or environment(), **options)


def finish(process, limit=30, given=None, args=()):
    began = time.monotonic()
    try:
        out, err = process.communicate(given, timeout=limit * SLOW)
    except subprocess.TimeoutExpired as late:
        process.kill()
        process.communicate()
        raise waited(limit, f"{' '.join(map(str, args))}: still running at the limit of its time") from late
    return Done(process.returncode, out or b"", err or b"", time.monotonic() - began, list(map(str, args)))


def cejail(*args, given=None, limit=30, env=None, **options):
    """Run cejail to its end."""
    if given is not None:
        options["stdin"] = subprocess.PIPE
        given = given.encode() if isinstance(given, str) else given
    began = time.monotonic()
    done = finish(start(*args, env=env, **options), limit, given, ("cejail", *args))
    done.seconds = time.monotonic() - began
    return done


def run(*args, **options):
    return cejail("run", *args, **options)


def sh(script, *options, **more):
    """A shell script in the smallest profile."""
    return run("-p", "base", *options, "--", "/bin/sh", "-c", script, **more)


def python(code, *options, **more):
    return run("-p", "python", *options, "-c", code, **more)


def probe(name, *args, options=(), **more):
    """One of tests/system/probes in the jail, copied in as a file."""
    return run("-p", "base", "-f", f"{PROBES}/{name}:/box/{name}", *options, "--", f"/box/{name}", *args, **more)


def result(*args, **options):
    """Run with --json; the result as a value, checked against the schema."""
    done = run("--json", *args, **options)
    return parse_result(done.out, done)


def sh_result(script, *options, **more):
    return result("-p", "base", *options, "--", "/bin/sh", "-c", script, **more)


def probe_result(name, *args, options=(), **more):
    return result(
        "-p", "base", "-f", f"{PROBES}/{name}:/box/{name}", *options, "--", f"/box/{name}", *args, **more
    )


def unique_keys(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise Failure(f"duplicate keys in {names}")
    return dict(pairs)


def parse_result(text, done=None):
    try:
        value = json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as problem:
        raise Failure(f"the result is not one JSON value: {problem} ({done!r})") from problem
    check_schema(value, "result.json")
    return value


def check_schema(value, name):
    """Against profiles/schema; where python3-jsonschema is missing only the shape's root."""
    path = os.path.join(SCHEMAS, name)
    try:
        import jsonschema
    except ImportError:
        equal(value.get("schema"), "cejail.result/1", "schema")
        return
    with open(path, encoding="utf-8") as file:
        validator = jsonschema.Draft202012Validator(json.load(file))
    problems = [f"{'/'.join(map(str, p.absolute_path))}: {p.message}" for p in validator.iter_errors(value)]
    if problems:
        raise Failure(f"not as {name} says: {problems[:5]}")


def was_late(done):
    """A step of the set-up took longer than cejail waits for it: the machine was too busy, which says nothing else."""
    return done.code == 125 and os.strerror(errno.ETIMEDOUT) in str(done.err)


def refused(done, *words, code=125):
    """Exactly one line on standard error, that names the thing; the documented code."""
    done.exits(code)
    lines = done.err.splitlines()
    if len(lines) != 1 or not lines[0].startswith("cejail: "):
        raise Failure(f"{' '.join(done.args)}: expected one line 'cejail: ...', got {lines!r}")
    for word in words:
        contains(lines[0], word, "the message")
    equal(done.out, "", "stdout")
    return done


# --- facts about this place -------------------------------------------------

facts_cache = {}


def facts():
    """The result of a plain run: what holds each limit here, and which layers are on.  Without a network,
    whose way out is another matter."""
    if not facts_cache:
        facts_cache.update(sh_result("true", "--network", "none"))
    return facts_cache


def is_held_by_cgroup(limit):
    if EXPECTED == "cgroup":
        return True
    return facts()["limits"][limit]["by"] == "cgroup"


def no_overlay(path):
    """Why this directory can't be overlaid; None: it can.  Root's overlays need ID-mapped mounts: the kernel's, and the file system's."""
    if WHO != "root":
        return None
    done = run("-p", "base", "--network", "none", "--overlay", f"{path}:/mnt/src", "--", "/bin/true")
    return done.err.strip() if done.code == 125 and "ID-mapped" in done.err else None


def need_python_module(name):
    """The host's Python has it, or the test is skipped."""
    if subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True, check=False).returncode != 0:
        raise Skip(f"python3-{name} is not installed")


# A module that writes a package for pip, without pip.
WHEEL = '''
import os, zipfile
def make_wheel(folder):
    os.makedirs(folder)
    with zipfile.ZipFile(f"{folder}/tinypk-1.0-py3-none-any.whl", "w") as z:
        z.writestr("tinypk.py", "VALUE = 7\\ndef main(): print('tool')\\n")
        info = "tinypk-1.0.dist-info"
        z.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: tinypk\\nVersion: 1.0\\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        z.writestr(f"{info}/entry_points.txt", "[console_scripts]\\ntinypk = tinypk:main\\n")
        z.writestr(f"{info}/RECORD", "")
'''


def need_root_tree():
    """A root directory that holds a static busybox, for --rootfs DIR."""
    box = shutil.which("busybox") or os.environ.get("CEJAIL_BUSYBOX", "")
    if not box or not os.path.exists(box):
        raise Skip("no static busybox (package busybox-static)")
    return box


class Folder:
    """A private directory for one test, gone when it ends."""

    def __init__(self, place=None):
        self.place = place

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix=f"cejail-system-{os.getpid()}-", dir=self.place)
        os.chmod(self.path, 0o755)
        return self

    def __exit__(self, *unused):
        for base, names, _ in os.walk(self.path):
            for name in names:
                path = os.path.join(base, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name, content=b"", mode=0o644):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(path, mode)
        return path

    def folder(self, name):
        path = os.path.join(self.path, name)
        os.makedirs(path)
        return path

    def __truediv__(self, name):
        return os.path.join(self.path, name)


class FullDisk:
    """A file on a disk that has no room for another line; for root."""

    def __init__(self, folder):
        self.place = folder.folder("disk")

    def __enter__(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "full", self.place], check=True)
        with open(f"{self.place}/filler", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 512):
                    pass
            except OSError:
                pass
        path = f"{self.place}/lines"
        with open(path, "wb"):
            pass
        return path

    def __exit__(self, *unused):
        subprocess.run(["umount", "-l", self.place], check=True)


def wait_until(condition, what, seconds=10, pause=0.01):
    end, is_over = time.monotonic() + seconds * SLOW, False
    while not is_over:
        is_over = time.monotonic() > end  # before a last look: we may have been kept from looking
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise waited(seconds, f"waited in vain for {what}")


def await_exit(process, seconds=30):
    """The exit status of a process that is about to end."""
    try:
        return process.wait(seconds * SLOW)
    except subprocess.TimeoutExpired as late:
        raise waited(seconds, f"{' '.join(map(str, process.args))}: has not ended") from late


# --- who takes the output ---------------------------------------------------


def unread(kind):
    """(the end to give away, the end to keep and never read)"""
    if kind == "terminal":
        ours, theirs = pty.openpty()
        return theirs, ours
    if kind == "pipe":
        reader, writer = os.pipe()
        return writer, reader
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM if kind == "socket" else socket.SOCK_SEQPACKET)
    return a.detach(), b.detach()


# --- nothing stays behind ---------------------------------------------------


def become_subreaper():
    """Orphans of a run come to us, so that we can see them."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_when_told():
    """On SIGTERM the runner says so and ends: whoever limits its time signals all processes, and a test whose processes
    are gone would only fail.  The first process of a pid namespace is not ended by the signal itself."""
    runner = os.getpid()

    def end(*unused):
        if os.getpid() == runner:
            print(f"FAIL {os.environ.get('CEJAIL_TEST_PLACE', 'here')}: the runner was told to end (SIGTERM)", flush=True)
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


def children_of(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except OSError:
            pass
    return found


def describe_process(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            name, rest = re.match(r"\d+ \((.*)\) (.)", file.read(), re.S).groups()
        return f"{pid} {name} ({rest})"
    except OSError:
        return None


def wait_of(pid):
    """What it was started as, and the kernel function that it waits in."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/wchan", encoding="ascii") as wait:
            return f"{line.read(300)!r} {wait.read()}"
    except OSError as error:
        return str(error)


def descendants():
    """Living processes below us; dead ones are collected on the way."""
    found, todo = {}, children_of(os.getpid())
    while todo:
        pid = todo.pop()
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                continue
        except OSError:
            pass
        words = describe_process(pid)
        if words:
            found[pid] = words
            todo += children_of(pid)
    return found


def cgroup_roots():
    with open("/proc/self/mounts", encoding="utf-8") as file:
        return [line.split()[1] for line in file if line.split()[2] == "cgroup2"]


def is_our_cgroup(path):
    """A jail's leaf, made by our user; it may go away while we look.

    cejail-supervisor is where the processes of a delegated cgroup move to; we are in it, too.
    Unit tests that run at the same time have theirs: tests/jail/whole_jail.h.
    """
    name = os.path.basename(path)
    if not name.startswith("cejail-") or name == "cejail-supervisor" or "/cejail-unit-test" in path:
        return False
    if re.fullmatch(r"cejail-test-[0-9]+-[0-9]+", name):
        return False
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False


def has_children(cgroup):
    """One that has none has two links: its many files need not be read."""
    try:
        return os.stat(cgroup).st_nlink > 2
    except OSError:
        return False


def our_cgroups():
    found = []
    for root in cgroup_roots():
        for base, names, _ in os.walk(root):
            names[:] = [name for name in names if not name.startswith("cejail-check-")]  # of tests/system/alone
            found += [path for path in (f"{base}/{name}" for name in names) if is_our_cgroup(path)]
            names[:] = [name for name in names if has_children(f"{base}/{name}")]
    return found


def processes_in(cgroup):
    """Of it and of the cgroups below; 0 is a process of another pid namespace."""
    found = []
    for base, _, _ in os.walk(cgroup):
        try:
            with open(f"{base}/cgroup.procs", encoding="ascii") as file:
                found += [int(line) for line in file]
        except OSError:
            pass
    return found


def outside_uid():
    """Our user id in the user namespace above: the root of one uses that user's directories."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        for first, outside, count in (map(int, line.split()) for line in file):
            if first <= os.geteuid() < first + count:
                return outside + os.geteuid() - first
    return os.geteuid()


def runtime_dirs():
    uid = outside_uid()
    places = [f"/run/user/{uid}/cejail", f"/dev/shm/cejail-{uid}"]
    if os.environ.get("XDG_RUNTIME_DIR"):
        places.insert(0, os.environ["XDG_RUNTIME_DIR"] + "/cejail")
    return places + (["/run/cejail"] if os.geteuid() == 0 else [])


def need_reduced():
    """Landlock as it is since Linux 6.12."""
    done = cejail("run", "-p", "base", "--reduced", "--network", "none", "--", "true")
    if done.code == 125:
        raise Skip(f"no reduced jail here: {done.err.strip()}")


def private_dirs(run_id):
    """What a reduced run has in place of a root."""
    return glob.glob(f"{os.environ.get('TMPDIR', '/tmp')}/cejail-{run_id}-*")


def supervisor_of(record):
    """The process that a record names; None: it is gone, or the record is not whole."""
    try:
        with open(record, encoding="utf-8") as file:
            value = json.load(file)
        with open(f"/proc/{value['supervisor_pid']}/stat", encoding="utf-8", errors="replace") as file:
            began = int(file.read().rsplit(")", 1)[1].split()[19])
        return value["supervisor_pid"] if began == value["supervisor_start"] else None  # else the pid is used again
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_ours(path):
    """Not where records live, anybody's, and not a folder that another run of these tests is using."""
    other_tests = re.search(r"/cejail-(test|check|system)", path) and f"-{os.getpid()}-" not in path
    records = path in runtime_dirs() or re.fullmatch(r"/dev/shm/cejail-[0-9]+", path)
    systemds = re.search(r"^/run/cejail-serve$|/systemd-private-", path)  # of a service that another place tests
    return not records and not other_tests and not systemds


def is_a_tests_file(path):
    """In a place that others use, too: ours have our process id in their names."""
    return is_ours(path) and (ALONE or f"-{os.getpid()}-" in path)


def identity(path):
    """The path of an object that may be made anew under the same name, and its number."""
    try:
        return f"{path} ({os.lstat(path).st_ino})"
    except OSError:
        return path


def inventory():
    """What a run could leave, as a set of words; of other runs of the host, too."""
    found = set()
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split(" - ")[0].split(" ", 2)[2].strip() for line in file]
    found |= {f"mount {words}" for words in mounts if ALONE or ("cejail" in words and is_ours(words))}
    found |= {f"cgroup {identity(path)}" for path in our_cgroups()}
    for place in runtime_dirs():
        found |= {f"record {identity(path)}" for path in glob.glob(place + "/runs/*")}
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        paths = glob.glob(f"{place}/*cejail*") + (glob.glob(f"{place}/.cejail-*") if ALONE else [])
        found |= {f"file {identity(path)}" for path in paths if is_a_tests_file(path)}
    return found


def is_foreign(words, ours):
    """A living process that is not below us holds it: it belongs to another cejail of this user.  `ours`: descendants."""
    kind, path = re.sub(r" \([0-9]+\)$", "", words).split(" ", 1)
    if kind == "cgroup":
        pids = processes_in(path)
        return bool(pids) and not ours.intersection(pids)
    if kind == "record":
        pid = supervisor_of(path)
        return pid is not None and pid not in ours
    return False


def what_is_left(before, seconds=3):
    """Differences to `before`, after giving the kernel a moment to finish what it does later.

    First our processes end.  What is left then is what is there, the same, until the end of another wait: others of our
    user run jails meanwhile, and theirs come and go.
    """
    end = time.monotonic() + seconds * SLOW
    while descendants() and time.monotonic() < end:
        time.sleep(0.02)
    left, end = inventory() - before, time.monotonic() + seconds * SLOW
    while True:
        is_over = time.monotonic() > end
        living = descendants()
        left = {words for words in left & inventory() if not is_foreign(words, set(living))}
        if not left or is_over:
            return sorted(left) + [f"process {words}" for words in living.values()]
        time.sleep(0.02)


def sweep():
    """After a test that left something: end it, so that the next test starts clean."""
    for pid in descendants():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    end = time.monotonic() + 10 * SLOW
    while descendants() and time.monotonic() < end:  # a dying init holds its record
        time.sleep(0.01)
    subprocess.run([CEJAIL, "gc"], env=environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=30 * SLOW)
