# SPDX-License-Identifier: Apache-2.0
"""Every system call of supervisor, init and the uplink's processes fails once, with the errors its manual
page lists, in every way cejail is called.  The short form tries each kind of call once."""

import contextlib
import errno
import json
import os
import shutil
import socket

import threading
import traceback

import harness
import internet
import trial
from harness import Failure, test, tried
from trial import Call, Way

WORKERS = 2


def calls_of(way, folder):
    """The run as it is without faults, and its calls."""
    for _ in range(5):
        base = way.run(folder, "list")
        if not base.is_late():
            break
    if base.is_late() and trial.IS_SLOW:
        raise harness.Skip("a run that is traced takes longer than a step may here")
    if base.code != way.status or base.left or not base.result:
        raise Failure(f"{way.name}: without a fault: {base!r}, left {base.left}, result {base.result}")
    return base, [Call(line) for line in base.report if line.startswith("call ")]


def every_fault(calls):
    for call in calls:
        if call.name in trial.NEVER_FAIL:
            continue
        if call.name not in trial.ERRORS:
            raise Failure(f"which errors has {call.name}? trial.py does not know")
        for name in trial.errors_of(call):
            if call.returned != str(-getattr(errno, name)):
                yield call, name


seen_places = set()


def sample(faults):
    """Each place once, with one of its errors, another one at each place."""
    chosen, turn = [], {}
    for call, name in faults:
        if call.place() in seen_places:
            continue
        names = trial.errors_of(call)
        wanted = names[turn.get(call.name, 0) % len(names)]
        if name == wanted:
            seen_places.add(call.place())
            turn[call.name] = turn.get(call.name, 0) + 1
            chosen.append((call, name))
    step = 15 if harness.EMULATED else harness.STEP
    return harness.thinned(chosen, lambda fault: fault[0].role, step)


def without_fault(way, folder, last_words):
    """A run that tells what happens in it, twice the same.  `last_words`: what it must tell."""
    for _ in range(5):
        base, again = way.run(folder, "list"), way.run(folder, "list")
        if not base.is_late() and not again.is_late():
            break
    if base.code != 0 or base.left or last_words not in base.out:
        raise Failure(f"without a fault: {base!r}, left {base.left}, told {base.out[-1000:]}")
    harness.equal(again.out, base.out, "what the same run tells again")
    return base, [Call(line) for line in base.report if line.startswith("call ")]


def tried_again(way, folder, base, call, name, judge):
    """Again when it isn't reached: what happens side by side doesn't always make the same calls.  And when a run that is
    not as it should be was late.  Returns what was seen, the call that the fault has met, and what is wrong."""
    for _ in range(3):
        seen = way.run(folder, "fail", call.role, call.mark, str(getattr(errno, name)))
        met = call.reached(next(iter(seen.lines("done")), None))
        problem = judge(seen, base, met, name)
        if seen.is_reached() and not (problem and seen.is_late()):
            break
    return seen, met, problem


def try_fault(way, folder, base, call, name):
    seen, call, problem = tried_again(way, folder, base, call, name, trial.judge)
    kind = "same" if seen.code == base.code else "refused"
    row = {
        "call": repr(call), "error": name, "problem": problem, "kind": kind if seen.is_reached() else "missed",
        "said": [line for line in seen.err if line.startswith("cejail")], "seconds": seen.seconds,
    }  # fmt: skip
    return row


def work(way, folder, base, faults, out, attempt):
    """A worker process: its share, a line of JSON each."""
    harness.become_subreaper()
    for call, name in faults:
        row = attempt(way, folder, base, call, name)
        out.write(json.dumps(row) + "\n")
        out.flush()


def in_workers(way, folder, base, faults, count, attempt=try_fault):
    """Rows of all workers' faults; one that dies is a failure."""
    pipes, rows = [], []
    for number in range(count):
        near, far = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(near)
                with os.fdopen(far, "w") as out:
                    work(way, folder, base, faults[number::count], out, attempt)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(far)
        pipes.append((pid, near))
    readers = [threading.Thread(target=read_rows, args=(near, rows)) for _, near in pipes]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    for pid, _ in pipes:
        if os.waitpid(pid, 0)[1] != 0:
            raise Failure("a worker ended early: see standard error")
    return rows


def read_rows(near, rows):
    with os.fdopen(near) as file:
        for line in file:
            rows.append(json.loads(line))


def try_all(way, limit=None):
    with harness.Folder() as f, contextlib.ExitStack() as stack:
        os.chmod(f.path, 0o755)
        if way.prepare:
            way.prepare(f, stack)
        base, calls = calls_of(way, f.path)
        faults = list(every_fault(calls))
        if not harness.LONG:
            faults = sample(faults)
        rows = in_workers(way, f.path, base, faults, WORKERS)
    tell(way, rows)


def tell(way, rows, missed_share=5):
    """All rows where CEJAIL_FAULTS_LOG says; what went wrong in the failure.  Of so many, one may be missed."""
    log = os.environ.get("CEJAIL_FAULTS_LOG")
    if log:
        with open(log, "a", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps({"way": way.name, **row}) + "\n")
    tried(len([row for row in rows if row["kind"] != "missed"]))
    wrong = [f"{row['call']}: {row['error']}: {row['problem']}" for row in rows if row["problem"]]
    if wrong:
        raise Failure(f"{len(wrong)} of {len(rows)}:\n" + "\n".join(sorted(wrong)[:40]))
    # What a clock decides (the samples of what no cgroup counts) is made more or less often.
    missed = [row["call"] for row in rows if row["kind"] == "missed"]
    is_enough = len(missed) <= max(5, len(rows) // missed_share) and (len(missed) < len(rows) or not rows)
    harness.true(is_enough, f"of {len(rows)} faults these were not reached: {missed}")


def an_end(f, stack):
    """A listening socket of the host's to connect to, and files to show."""
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(f / "socket")
    listener.listen()
    os.chmod(f / "socket", 0o666)
    f.file("shown/file", "shown\n")
    f.file("under/file", "under\n")
    f.file("copied/one", "1\n")
    f.file("copied/two", "2\n")
    os.mkdir(f / "written", 0o777)
    os.chmod(f / "written", 0o777)


PLAIN = Way("no network", "-p", "base", "--network", "none")
OVERLAY = ("--overlay", "@FOLDER/under:/mnt/under", "--artifact-path", "/mnt/under/file")
RICH = (
    "many options", "-p", "base", "--network", "none", "-i", "--artifacts", "@ARTIFACTS", "-f", "@FOLDER/copied",
    "--ro-bind", "@FOLDER/shown:/mnt/shown", "--bind", "@FOLDER/written:/mnt/written", "--writable",
    "--connect", "unix:@FOLDER/socket:/run/socket", "--connect", "tcp:127.0.0.1:9", "-t", harness.scaled(20), "--cpu-time", "10",
    "-m", "64M", "--nofile", "100", "--args-json", '{"a": 1}', "-e", "A=B",
)  # fmt: skip
CODE = Way("code", "-p", "python", "--network", "none", program=("-c", "print('complete'); raise SystemExit(7)"))

# The server is down: how the request ends is not what is compared.
ASKS = "import urllib.request as u\ntry: u.urlopen('http://m.upstream.internal/', timeout=20)\nexcept OSError: pass\n"
UPSTREAM = Way(
    "an upstream", "-p", "python", "--network", "none", "--upstream", "m=http://127.0.0.1:9,header=X-Key:@/etc/hostname",
    program=("-c", ASKS + "print('complete'); raise SystemExit(7)"),
)  # fmt: skip

# Open ones, closed ones, the host's own: how each connection ends is part of the program's output.
ADDRESSES = (internet.PUBLIC4, internet.PUBLIC6, "10.1.2.3", "169.254.169.254", "fd00:ec2::254", internet.HOST4)
# How long posture waits for an answer.
PATIENT = ("-e", f"CEJAIL_TEST_SLOW={harness.SLOW}")
POSTURE = ("-f", f"{harness.PROBES}/posture:/box/posture", "--", "/box/posture", *ADDRESSES)


@test("each call of a run without a network fails once, and nothing is lost or left", limit=900)
def plain():
    try_all(PLAIN)


@test("each call of a run with many options fails once, and nothing is lost or left", limit=900)
def rich():
    with harness.Folder() as f:
        overlay = () if harness.no_overlay(f.path) else OVERLAY
    try_all(Way(*RICH, *overlay, given="one line\n", prepare=an_end))


def a_tree(f, stack):
    """A root of two layers, with a busybox in the lower one."""
    f.file("lower/bin/busybox", b"", 0o755)
    shutil.copy(harness.need_root_tree(), f / "lower/bin/busybox")
    f.file("upper/etc/name", "upper\n")


@test("each call of a run that uses a server by --upstream fails once, and nothing is lost or left", limit=900)
def upstream():
    try_all(UPSTREAM)


SHOW = """
PATH=/bin; busybox grep -E '^(Uid|Cap|NoNewPrivs|Seccomp)' /proc/self/status
busybox sed -E 's/^([^ ]+ ){3}//; s/([ug]id|lowerdir|upperdir|workdir)=[^,]*//g' /proc/self/mountinfo
busybox cat /etc/name; busybox touch /kept; busybox ls / /dev; echo told >&2; echo complete; exit 7
"""
LAYERS = Way(
    "layers", "-p", "base", "--network", "none", "--rootfs", "@FOLDER/upper:@FOLDER/lower", "--writable",
    program=("--", "/bin/busybox", "sh", "-c", SHOW), prepare=a_tree,
)  # fmt: skip
TERMINAL = Way(
    "a terminal", "-p", "base", "--network", "none", "--tty", "-i", tty=True,
    program=("--", "/bin/sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo on a terminal; exit 7"),
)  # fmt: skip
POLICY = Way(
    "a policy", "-p", "base", "--network", "none", "--seccomp",
    os.path.join(os.path.dirname(harness.CEJAIL), "../share/cejail/profiles/seccomp/default.json"),
)  # fmt: skip
# Without the limit of processes: it is above what the user has at that moment.
REDUCED_SHOW = """
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status; ulimit -a | grep -v process; cat /etc/shadow /proc/1/environ; ls -a
echo x > /tmp/x; mkdir -p out; echo whole > out/one; echo told >&2; echo complete; exit 7
"""
# Other ends than the program's own: a limit, a signal, and a command that isn't there.
LATE = Way("too long", "-p", "base", "--network", "none", "-t", "0.1", program=("--", "/bin/sleep", "6000"), status=124)
KILLED = Way("killed", "-p", "base", "--network", "none", program=("--", "/bin/sh", "-c", "kill -9 $$"), status=137)
ABSENT = Way("absent", "-p", "base", "--network", "none", program=("--", "/absent"), status=127)


@test("each call of a run in layers of directories fails once, and nothing is lost or left", limit=900)
def layers():
    try_all(LAYERS)


@test("each call of a run with a terminal fails once, and nothing is lost or left", limit=900)
def terminal():
    try_all(TERMINAL)


@test("a terminal that the program has closed keeps nobody busy")
def closed_terminal():
    script = "exec </dev/null >/dev/null 2>&1; sleep 0.5; exit 7"
    way = Way("closed", *TERMINAL.args, tty=True, program=("--", "/bin/sh", "-c", script))
    with harness.Folder() as f:
        _, calls = calls_of(way, f.path)
    harness.between(len(calls), 100, 5000, "system calls of all roles")


@test("each call of a run with a policy of its own fails once, and nothing is lost or left", limit=900)
def policy():
    try_all(POLICY)


@test("each call of a run that ends otherwise fails once, and nothing is lost or left", limit=900)
def ends():
    for way in (LATE, KILLED, ABSENT):
        try_all(way)


class ToolsWay(Way):
    """The program calls a tool, which a thread of ours answers."""

    def start(self, command, **more):
        near, far = socket.socketpair()
        caller = threading.Thread(target=answer_calls, args=(near,))
        caller.start()
        try:
            fd = str(far.fileno())
            return super().start([fd if word == "@CALLS" else word for word in command], pass_fds=[far.fileno()], **more)
        finally:
            far.close()
            caller.join()


def answer_calls(near):
    with near, near.makefile("rwb") as lines:
        for line in lines:
            call = json.loads(line)
            if "name" in call:
                lines.write(b'{"id":%d,"result":"ANSWER"}\n' % call["id"])
                lines.flush()


CALLING = """echo '{"id":1,"name":"say","arguments":{"a":[1]}}' >&4; echo '{"id":2,"name":"none"}' >&4
read -r one <&4; read -r two <&4; case $one$two in *ANSWER*) exit 7;; esac"""
TOOLS = ToolsWay(
    "tools", "-p", "base", "--network", "none", "--tools", "@FOLDER/tools.json", "--calls-fd", "@CALLS",
    prepare=lambda f, stack: f.file("tools.json", '[{"name":"say"}]'), program=("--", "/bin/bash", "-c", CALLING),
)  # fmt: skip


@test("each call of a run that calls a tool fails once, and nothing is lost or left", limit=900)
def tools():
    try_all(TOOLS)


SETUP = Way(
    "a setup command", "-p", "base", "--network", "none", "--setup", "echo made > made",
    program=("--", "/bin/sh", "-c", "cat made; echo complete; exit 7"),
)  # fmt: skip


@test("each call of a run with a setup command fails once, and nothing is lost or left", limit=900)
def setup():
    try_all(SETUP)


REDUCED = Way(
    "a reduced jail", "-p", "base", "--reduced", "--network", "none", "--artifacts", "@ARTIFACTS", "-t", harness.scaled(20),
    program=("--", "/bin/sh", "-c", REDUCED_SHOW),
)  # fmt: skip


@test("each call of a reduced run fails once, and nothing is lost or left", limit=900)
def reduced():
    harness.need_reduced()
    try_all(REDUCED)


@test("each call of a run of code fails once, and nothing is lost or left", limit=900)
def code():
    try_all(CODE)


def in_network(*args):
    """The public network, in the tests' own Internet."""
    with internet.Internet() as net:
        try_all(Way(" ".join(args), "-p", "base", "--network", "public", *args, *PATIENT, program=POSTURE, net=net))


@test("each call of a run in a network that leads nowhere fails once, and nothing is lost or left", limit=900)
def closed():
    in_network("--uplink", "none")


@internet.each_uplink("each call of a run with uplink {} fails once, and nothing is lost or left", limit=900)
def uplinks(*args):
    in_network(*args)
