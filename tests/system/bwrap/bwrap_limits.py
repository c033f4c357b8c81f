# SPDX-License-Identifier: Apache-2.0
"""`cejail bwrap` with --cejail-* options: limits, their sources, and the result."""

import json
import os
import signal
import subprocess

from harness import EXPECTED, PYTHON, SLOW, WHO, Folder, cejail, contains, environment, equal, parse_result, test, tried, true, wait_until
from bwrap_lines import HOST, OURS, PROC

LINE = [*HOST, *PROC, "--unshare-user", "--unshare-pid"]
# Each forks on, deaf to signals and in a session of its own; argv[1] is what to find them by.
DEAF = r"""
import os, signal, subprocess, sys
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
        signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.execv("/bin/sleep", ["sleep", sys.argv[1]])
"""


class Ended:
    def __init__(self, process, result, status):
        self.code, (out, err) = process.returncode, process.communicate()
        self.out, self.err = out.decode(), err.decode()
        self.result = parse_result(result) if result else None
        self.documents = [json.loads(line) for line in status.splitlines()]


def begin(*options, command, line=LINE, before=(), env=None):
    """The process, and what it writes to its two descriptors."""
    result, status = os.pipe(), os.pipe()
    told = ["--cejail-result-fd", str(result[1]), "--json-status-fd", str(status[1])]
    process = subprocess.Popen([*before, OURS, *line, *told, *options, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, pass_fds=[result[1], status[1]], env=env or environment())  # fmt: skip
    os.close(result[1])
    os.close(status[1])
    return process, os.fdopen(result[0]), os.fdopen(status[0])


def end(begun):
    process, result, status = begun
    with result, status:
        texts = result.read(), status.read()
        process.wait(60 * SLOW)
        return Ended(process, *texts)


def limited(*options, script, **more):
    return end(begin(*options, command=["/bin/sh", "-c", script], **more))


def python(*options, code, args=(), **more):
    return end(begin(*options, command=[PYTHON, "-c", code, *args], **more))


def is_there(mark):
    return subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False).returncode == 0


def mark(number):
    return f"7{os.getpid()}{number}"


@test("each limit of cejail bwrap ends the program that reaches it, and no other", limit=120)
def _():
    cases = (
        ("memory", "64M", f"exec {PYTHON} -c 'x = bytearray(400 << 20)'", "oom", "memory", "out of memory"),
        ("timeout", "1s", "sleep 600", "timeout", "wall", "timeout"),
        ("cpu-time", "300ms", "while :; do :; done", "cpu_limit", "cpu_time", "CPU time limit"),
    )
    for option, value, script, status, limit, words in cases:
        for more in ((), ("--as-pid-1",), ("--die-with-parent", "--new-session")):
            done = limited(f"--cejail-{option}", value, *more, script=script)
            equal((done.code, done.result["status"], done.result["limits"][limit]["hit"]), (137, status, True), f"--cejail-{option} {more}: {done.err}")
            lines = [line for line in done.err.splitlines() if line.startswith(f"bwrap: {words}")]
            true(len(lines) == 1 and f"(raise --cejail-{option})" in lines[0], f"standard error {done.err!r}")
            last = done.documents[-1]
            equal((last["exit-code"], last["cejail-status"], last["cejail-limit"]), (137, status, limit), "the last document")
            tried()
        done = limited(f"--cejail-{option}", "1G" if option == "memory" else "60s", script="exit 3")
        equal((done.code, done.result["status"], done.result["exit_code"]), (3, "exited", 3), f"{option} that is not reached: {done.err}")
        true(done.result["limits"][limit]["value"] > 0 and not done.result["limits"][limit]["hit"], f"the limit {done.result['limits'][limit]}")
        equal(done.documents[-1]["cejail-limit"], None, "cejail-limit")


COUNT = """
import os, sys, time
n = 1
try:
    while n < 60:
        if os.fork() == 0:
            time.sleep(600)
        n += 1
except OSError:
    pass
time.sleep(0.5)
print(n, flush=True)
"""


@test("--cejail-cpu-time is also each process' own limit, as in a run, and a lower one of the caller's stays")
def _():
    for before, soft, hard in (((), "202", "202"), (("prlimit", "--cpu=150:150"), "150", "150")):
        done = limited("--cejail-cpu-time", "200500ms", script="grep 'cpu time' /proc/self/limits", before=before)
        equal((done.code, done.out.split()[3:5]), (0, [soft, hard]), f"{before}: {done.out} {done.err}")


@test("--cejail-pids limits the processes of cejail bwrap, by whatever the result says")
def _():
    done = python("--cejail-pids", "20", code=COUNT)
    pids = done.result["limits"]["pids"]
    equal(pids["value"], 20, "the limit")
    if pids["by"] == "supervisor":
        equal((done.code, done.out, pids["hit"], done.documents[-1]["cejail-limit"]), (137, "", True, "pids"), "the end by sampling")
        contains(done.err, "bwrap: processes: the limit was reached: 20 (raise --cejail-pids)", "standard error")
    else:
        equal((done.code, done.out), (0, "20\n"), f"processes, limited by {pids}")
    if EXPECTED == "cgroup":
        equal((pids["by"], pids["hit"], done.err), ("cgroup", True, "bwrap: processes: the limit was reached: 20 (raise --cejail-pids)\n"), "pids.max")
    if pids["by"] != "cgroup":
        true(any("processes are enforced by" in warning for warning in done.result["warnings"]), "no warning says what enforces it")
        contains(done.err, "bwrap: warning: limits: ", "standard error")
    done = limited("--cejail-pids", "20", script="sleep 0 & wait")
    equal((done.code, bool(done.result["limits"]["pids"]["hit"])), (0, False), f"a limit that is not reached: {done.err}")


@test("a fork bomb and a memory bomb in cejail bwrap end whole", limit=120)
def _():
    bomb = "import os, sys, time\nos.setsid()\nif os.fork() == 0: os.execv('/bin/sleep', ['sleep', sys.argv[1]])\n{}"
    for number, (options, code) in enumerate((
        (("--cejail-pids", "40", "--cejail-timeout", f"{4 + round(SLOW)}s"), "while 1:\n try: os.fork()\n except OSError: time.sleep(0.1)"),
        (("--cejail-memory", "64M", "--cejail-timeout", f"{16 + 4 * round(SLOW)}s"), "x = []\nwhile 1:\n if os.fork() == 0: x.append(bytearray(b'x' * (9 << 20)))\n else: os.wait()"),
    )):  # fmt: skip
        done = python(*options, code=bomb.format(code), args=[mark(number)])
        equal((done.code, is_there(mark(number))), (137, False), f"{options}: {done.err}")
        if EXPECTED == "cgroup":
            status, ended, limit = (("timeout", "wall", "pids"), ("oom", "memory", "memory"))[number]
            limit = done.result["limits"][limit]
            seen = done.result["status"], done.documents[-1]["cejail-limit"], limit["by"], limit["hit"], done.result["layers"]["cgroup"]
            equal(seen, (status, ended, "cgroup", True, "on"), f"{options}: {done.err}")
        tried()


@test("programs that ignore signals, fork twice and start sessions end with a limit of cejail bwrap, and with its program")
def _():
    for number, (options, tail, code) in enumerate((
        (("--cejail-timeout", "2s"), "signal.pause()", 137),
        (("--cejail-timeout", "2s", "--die-with-parent"), "signal.pause()", 137),
        (("--cejail-timeout", "2s"), "os.kill(os.getpid(), 19); signal.pause()", 137),
        (("--cejail-timeout", "60s"), "sys.exit(5)", 5),
        ((), "sys.exit(6)", 6),  # a result alone
    )):  # fmt: skip
        done = python(*options, code=DEAF + tail, args=[mark(10 + number)])
        equal((done.code, is_there(mark(10 + number))), (code, False), f"{options} {tail}: {done.err}")
        tried()


# --- where the limits come from ---


def with_file(text, *options, script="exit 0", mode=0o644, env=None, owner=0, line=LINE):
    """With a file of the administrator, in a mount namespace of its own, whose root the caller is."""
    put = f'mount -t tmpfs none /etc && mkdir /etc/cejail && printf %s "$0" > {"/etc/cejail/bwrap.json"} && chmod {mode:o} /etc/cejail/bwrap.json'
    own = f" && chown {owner} /etc/cejail/bwrap.json" if owner else ""
    names = ["unshare", "-m"] if WHO == "root" else ["unshare", "-r", "-m"]
    return limited(*options, script=script, env=env, line=line, before=[*names, "sh", "-c", put + own + ' && exec "$@"', text])


@test("of the administrator's file, the environment and the command line the tightest limit is in force, in any order")
def _():
    def wall(done):
        return done.result["limits"]["wall"]["value"]

    given = {"1m": 60000, "2m": 120000, "3m": 180000}
    for file, variable, first, second in (("1m", "2m", "3m", "2m"), ("2m", "1m", "3m", "3m"), ("3m", "2m", "1m", "2m"), ("3m", "2m", "2m", "1m"), ("2m", None, "3m", "3m")):
        env = environment(CEJAIL_BWRAP_OPTIONS=f" --cejail-timeout  {variable} ") if variable else environment()
        done = with_file(json.dumps({"timeout": file}), "--cejail-timeout", first, "--cejail-timeout", second, env=env, script='exit ${CEJAIL_BWRAP_OPTIONS:+9}')
        equal((done.code, wall(done)), (0, min(given[x] for x in (file, variable, first, second) if x)), f"{(file, variable, first, second)}: {done.err}")
        tried()
    done = with_file('{"timeout": "1s", "cpu_time": 5, "memory": 300000000, "pids": 30, "seccomp": "default", "network": "none"}',
                     "--cejail-timeout", "1h", "--cejail-memory", "1G", "--share-net", script="exec sleep 600")  # fmt: skip
    limits = {name: limit["value"] for name, limit in done.result["limits"].items() if limit["value"]}
    equal(limits, {"memory": 300000000, "pids": 30, "wall": 1000, "cpu_time": 5000}, "the limits")
    equal((done.code, done.result["network"]["mode"], done.result["layers"]["seccomp"]), (137, "none", "on"), "the layers")
    contains(done.err, "bwrap: timeout: ended after 1s (raise 'timeout' in /etc/cejail/bwrap.json)", "standard error")
    done = limited(script="sleep 600", env=environment(CEJAIL_BWRAP_OPTIONS="--cejail-timeout 1s"))
    contains(done.err, "(raise --cejail-timeout in CEJAIL_BWRAP_OPTIONS)", "standard error")


@test("a file of limits that can't be read, is not root's alone or has anything else in it refuses the run")
def _():
    for text, more, words in (
        ("{", {}, "bwrap.json:1:"), ("[]", {}, "the limits are an object"), ('{"timeout": "0"}', {}, "timeout"),
        ('{"memory": "1"}', {}, "memory"), ('{"result_fd": 3}', {}, "result_fd"), ('{"rootfs": "host"}', {}, "rootfs"),
        ('{"network": "all"}', {}, "is neither 'public' nor 'none'"), ('{"seccomp": "/x"}', {}, "--seccomp FD"), ('{"network": {"allow": ["*"]}}', {}, "network.allow"),
        ('{"network": {"mode": "public", "deny": ["a.b"]}}', {}, "network.deny"), ('{"network": {"allow_private": true}}', {}, "network.allow_private"), ('{"timeout": "1s", "timeout": "2s"}', {}, "timeout"),
        ('{"timeout": "1m"}', {"mode": 0o666}, "no one else can write"), ('{"timeout": "1m"}', {"mode": 0o664}, "no one else can write"),
        *([('{"timeout": "1m"}', {"owner": 7}, "must be a file of root")] if WHO == "root" else []),
    ):  # fmt: skip
        done = with_file(text, script="echo ran", **more)
        equal((done.code, done.out, done.result["status"]), (1, "", "setup_error"), f"{text} {more}: {done.err}")
        contains(done.err, words, f"the message for {text}")
        contains(done.err, done.result["error"]["message"], f"the message of the result for {text}")
        tried()


@test("a limit of the administrator's file refuses a command that could undo it", who="root")
def _():
    text, plain = '{"timeout": "1m"}', [*HOST, *PROC]
    for options, code in (((), 1), (("--unshare-user-try",), 0), (("--cap-drop", "ALL"), 0), (("--unshare-user",), 0), (("--cap-drop", "ALL", "--cap-add", "CAP_KILL"), 1)):
        done = with_file(text, *options, line=plain)
        equal(done.code, code, f"{options}: {done.err}")
        if code:
            contains(done.err, "add --unshare-user", "the message")
    done = limited("--cejail-timeout", "1m", script="true", line=plain)
    equal(done.code, 0, "an option instead of the file")
    contains(done.err, "can undo them", "the warning")
    true(any("can undo them" in warning for warning in done.result["warnings"]), "no warning in the result")


@test("cejail bwrap refuses by name what its --cejail options and their variable don't take")
def _():
    for options, variable, words in (
        (["--cejail-network", "allow:"], None, "--cejail-network"), (["--cejail-network", "allow:example.org,a..b"], None, "a..b"),
        (["--cejail-network", "x"], None, "neither 'public' nor 'none'"), (["--cejail-seccomp", "x.json"], None, "--seccomp FD"),
        (["--cejail-memory", "1"], None, "4M is the least"), (["--cejail-pids", "0"], None, "--cejail-pids"), (["--cejail-timeout", "-1"], None, "--cejail-timeout"),
        (["--cejail-cpu-time", "1x"], None, "--cejail-cpu-time"), (["--cejail-result-fd", "77"], None, "--cejail-result-fd 77"), (["--cejail-cpus", "1"], None, "Unknown option --cejail-cpus"),
        ([], "--bind / /", "'--bind' of CEJAIL_BWRAP_OPTIONS"), ([], "--cejail-timeout", "--cejail-timeout takes an argument"),
        ([], "--cejail-timeout 1s x", "'x' of CEJAIL_BWRAP_OPTIONS"), ([], "-- x", "CEJAIL_BWRAP_OPTIONS"), ([], "--cejail-nothing 1", "--cejail-nothing"),
    ):  # fmt: skip
        env = environment(**({"CEJAIL_BWRAP_OPTIONS": variable} if variable else {}))
        done = subprocess.run([OURS, *LINE, *options, "echo", "ran"], capture_output=True, text=True, env=env, check=False)
        equal((done.returncode, done.stdout), (1, ""), f"{options} {variable}")
        contains(done.stderr, words, f"the message for {options} {variable}")
        tried()


# --- what can't be undone ---


@test("--cejail-network none and --cejail-seccomp default hold, whatever other options say")
def _():
    code = ("import ctypes, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            "print(sorted(n for _, n in socket.if_nameindex()) if 0 else open('/proc/net/dev').read().count(':'), libc.unshare(0x10000000), open('/proc/self/status').read().count('Seccomp:\\t2'))")  # fmt: skip
    own = os.memfd_create("filter")
    os.write(own, b"\x06\0\0\0\0\0\xff\x7f")
    for options in (("--share-net",), ("--unshare-all", "--share-net"), ("--seccomp", str(own))):
        os.lseek(own, 0, os.SEEK_SET)
        done = subprocess.run([OURS, *LINE, "--cejail-network", "none", "--cejail-seccomp", "default", *options, PYTHON, "-c", code],
                              capture_output=True, text=True, pass_fds=[own], check=False)  # fmt: skip
        equal((done.stdout, done.stderr), ("1 -1 1\n", ""), f"{options}")
        tried()
    os.close(own)


ESCAPE = r"""
import ctypes, glob, os
libc = ctypes.CDLL(None, use_errno=True)
written = []
def attack():
    for line in open("/proc/self/mountinfo"):
        head, tail = line.split(" - ")
        if tail.split()[0] not in ("cgroup", "cgroup2"):
            continue
        place = head.split()[4]
        libc.mount(None, place.encode(), None, 32 | 4096, None)  # MS_REMOUNT | MS_BIND: writable again
        for path in glob.glob(place + "/**/cgroup.procs", recursive=True) + glob.glob(place + "/**/memory.max", recursive=True) + glob.glob(place + "/**/pids.max", recursive=True):
            if "cejail-" in path and path.endswith("procs"):
                continue  # where it is, or where another test is
            try:
                fd = os.open(path, os.O_WRONLY)
                if path.endswith("procs"):
                    os.write(fd, b"0")  # of a limit nothing is changed: that it opens is enough
                os.close(fd)
                written.append(path)
            except OSError:
                pass
attack()
if libc.unshare(0x10000000 | 0x02000000 | 0x00020000) == 0 or libc.unshare(0x02000000 | 0x00020000) == 0:
    os.makedirs("/tmp/cg", exist_ok=True)
    if libc.mount(b"none", b"/tmp/cg", b"cgroup2", 0, None) == 0:
        for path in ("/tmp/cg/memory.max", "/tmp/cg/pids.max"):
            if os.path.exists(path):  # of the cgroup below the one with the limits
                try:
                    with open(path, "w") as file:
                        file.write("max")
                except OSError:
                    pass
    attack()
print([path for path in written if os.path.dirname(path) != "/tmp/cg"])  # that one is its own
"""


@test("no program in cejail bwrap leaves the cgroup of its limits, by the files that its root shows or mounts of its own", limit=120)
def _():
    has_cgroup = False
    for bind in ("--ro-bind", "--bind", "--dev-bind"):
        for more in ((), ("--cap-add", "ALL"), ("--uid", "0", "--cap-add", "CAP_SYS_ADMIN"), ("--unshare-cgroup",)):
            line = [bind, "/", "/", *PROC, "--unshare-user", "--unshare-pid", "--tmpfs", "/tmp"]
            done = python("--cejail-memory", "256M", "--cejail-pids", "50", *more, code=ESCAPE, line=line)
            equal((done.code, done.out), (0, "[]\n"), f"{bind} {more}: {done.err}")
            limits = done.result["limits"]
            has_cgroup |= done.result["layers"]["cgroup"] == "on"
            true(limits["memory"]["value"] == 256 << 20, f"{limits}")
            tried()
    true(has_cgroup or EXPECTED != "cgroup", "no cgroup was made")


# --- the result, and what is left ---


@test("the result of cejail bwrap follows the schema however the program ends, and --json-status-fd has it, too")
def _():
    for script, code, status, signo in (("exit 7", 7, "exited", None), ("kill -9 $$", 137, "signaled", 9), ("kill -TERM $$", 143, "signaled", 15), ("true", 0, "exited", None)):
        for options in ((), ("--as-pid-1",), ("--cejail-timeout", "1m", "--cejail-seccomp", "default")):
            if "--as-pid-1" in options and "kill" in script:
                continue
            done = limited(*options, script=script)
            equal((done.code, done.result["status"], done.result["signal"], done.err), (code, status, signo, ""), f"{script} {options}")
            last = done.documents[-1]
            equal((last["exit-code"], last["cejail-status"], last["cejail-id"]), (code, status, done.result["id"]), "the last document")
            equal(len(done.documents), 2, "documents")
            tried()
    for line, mode in ((LINE, None), ([*LINE, "--unshare-net"], "none")):
        equal(limited(script="true", line=line).result["network"]["mode"], mode, "network.mode")
    done = end(begin(command=["/missing"]))
    equal((done.code, done.err, len(done.documents)), (1, "bwrap: execvp /missing: No such file or directory\n", 1), "a missing program")
    equal((done.result["status"], done.result["error"]["message"]), ("setup_error", "execvp /missing: No such file or directory"), "its result")
    for options in (("--info-fd", "99"), ("--ro-bind", "/missing", "/x"), ("--seccomp", "99"), ("--hostname", "x"), ("--never",), ("--cejail-pids", "0"),
                    ("--cejail-network", "allow:"), ("--ro-bind", "/usr/bin", "/etc/passwd"), ("--chdir", "/missing")):  # fmt: skip
        done = limited(*options, script="true")
        equal((done.code, done.result["status"], done.out), (1, "setup_error", ""), f"a sandbox that could not be made: {options}: {done.err}")
        lines = done.err.splitlines()
        true(len(lines) == 1 and lines[0].startswith(f"bwrap: {done.result['error']['message']}"), f"{options}: {lines} and {done.result['error']}")
        tried()


@test("a signal to cejail bwrap with limits ends its program, and the result says so")
def _():
    for number in (signal.SIGTERM, signal.SIGINT):
        begun = begin("--cejail-timeout", "1h", command=["/bin/sh", "-c", f"echo up; sleep {mark(30)}"])
        equal(begun[0].stdout.readline(), b"up\n", "the first line")
        begun[0].send_signal(number)
        done = end(begun)
        equal((done.code, done.result["status"], is_there(mark(30))), (-number, "cancelled", False), f"after signal {number}")
        equal(len(done.documents), 1, "documents")
        tried()


@test("cejail bwrap with limits that is killed at any moment leaves no process, and the rest goes with cejail gc", limit=120)
def _():
    for moment in (0, 0.002, 0.005, 0.01, 0.02, None):
        begun = begin("--cejail-timeout", "1h", "--cejail-memory", "1G", command=["/bin/sh", "-c", f"echo up; sleep {mark(40)}"])
        if moment is None:
            equal(begun[0].stdout.readline(), b"up\n", "the first line")
            listed = json.loads(cejail("ps", "--json").out)
            true("bwrap" in json.dumps(listed), f"cejail ps: {listed}")
        else:
            try:
                begun[0].wait(moment * SLOW)
            except subprocess.TimeoutExpired:
                pass
        begun[0].kill()
        done = end(begun)
        equal((done.code, done.result), (-9, None), "the end")
        wait_until(lambda: not is_there(mark(40)), "the program's end")
        cejail("gc")
        tried()


@test("an inner cejail bwrap starts in the limits of an outer one")
def _():
    inner = f"{OURS} --ro-bind / / --dev /dev --unshare-user --unshare-pid --bind /proc /proc --cejail-timeout 1m /bin/echo inner"
    done = limited("--cejail-timeout", "1m", script=inner)
    equal((done.code, done.out), (0, "inner\n"), done.err)


@test("the result of cejail bwrap is in a file that the caller opened, and never with the program")
def _():
    with Folder() as folder:
        path = folder.file("result", "")
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        subprocess.run([OURS, *LINE, "--cejail-result-fd", str(fd), "/bin/sh", "-c", f"echo forged >&{fd}"], capture_output=True, pass_fds=[fd], check=False)
        os.close(fd)
        with open(path, encoding="utf-8") as file:
            equal(parse_result(file.read())["status"], "exited", "the status")
