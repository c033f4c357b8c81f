# SPDX-License-Identifier: Apache-2.0
"""The keeper of a session and its processes: each system call fails once, and each role is killed at each call.

tests/system/pressure/keeper.c is the keeper, with a server that puts a file, runs it twice, reads another file and
closes the session; or that uses each operation on files.  Whatever fails, the server is told, the programs are as isolated as without the fault, and
nothing is left.
"""

import collections
import errno
import os
import re
import signal
import subprocess

import faults
import harness
import trial
from harness import Failure, test, tried
from trial import Way

KEEPER = f"{harness.PROBES}/keeper"
PROFILE = os.path.join(os.path.dirname(harness.CEJAIL), "../share/cejail/profiles/base.json")
SCRIPT = "/mnt/posture; code=$?; echo kept > /box/kept; exit $code"


class SessionWay(Way):
    """One session; its output is what its server was told.  Without a command it uses files."""

    def __init__(self, name="a session", command=("/bin/sh", "-c", SCRIPT)):
        super().__init__(name, status=0)
        self.command = command

    def run(self, folder, *orders):
        self.runs += 1
        run_id = f"fault-{os.getpid()}-s{self.runs}"
        report = os.path.join(folder, run_id)
        before = set(harness.descendants())
        command = [trial.INJECT, report, *orders, "--", KEEPER, run_id, PROFILE, f"{harness.PROBES}/posture"]
        seen = self.start([*command, *self.command])
        seen.report = (trial.words_of(report) or "").splitlines()
        # the number of a process depends on how many there were before
        out = re.sub(r"^parent [0-9]+,", "parent N,", seen.out, flags=re.M)
        out = re.sub(r'"mtime":"[^"]+"', '"mtime":"T"', out)
        seen.out = seen.result = re.sub(r'(?<="entries":)\[|(?<=}),(?={)|\](?=,"truncated")', "\n", out)  # an entry is a line
        os.unlink(report)
        is_killed = orders[0] == "kill" and orders[-1] == "supervisor"  # its record and its cgroup stay: do not wait
        seen.left = [] if is_killed else trial.what_is_left(run_id, before)
        if seen.left or is_killed:
            subprocess.run([harness.CEJAIL, "gc"], env=harness.environment(), capture_output=True, check=False)
            seen.stays = trial.what_is_left(run_id, before)
        return seen


FILES = SessionWay("files of a session", ())

# What the server is told of a failure, in the words of keeper.c.
TOLD = re.compile(
    r"lives: not isolated|exec: setup_error|exec: [a-z ]+: .+|exec: (signaled|cancelled|oom)|file: [a-z_]+: .+|"
    r",\"truncated\":true.*|unready: .+|worker: .+|ended: [a-z]+: [a-z ]*: .+|ended: without a line|warning: .+"
)
# A call that protects, whose failure changes nothing.
HARMLESS = {
    "worker[0-9]* E.* prctl 15",  # the name that ps(1) shows
    "supervisor E.* prctl 15",
    "supervisor E.* clone3 .*",  # of a worker that writes files, into the cgroup: it is forked and moved there
    "reaper[0-9]* E.* prctl 15",
    "(reaper|payload)[0-9]* E.* landlock_create_ruleset 0",  # asks for the version, for flags of the audit log
}


def lost_lines(seen, base):
    """Lines of the session without a fault that are missing, and new ones that tell nothing."""
    mine, theirs = seen.out.splitlines(), base.out.splitlines()
    new = [line for line in mine if line and line not in theirs]
    return [line for line in theirs if mine.count(line) < theirs.count(line)], new


def reapers(seen):
    return sum(line[1].startswith("reaper") for line in seen.lines("end"))


def has_no_exec(role, seen, base):
    """A reaper that fails before an exec takes it: it ends, and the exec, if one comes, has another."""
    is_taken = any(line[1] == role and line[3].startswith("vfork#") for line in base.lines("call"))
    return role.startswith("reaper") and (not is_taken or reapers(seen) > reapers(base))


def judge(seen, base, call, name):
    """None when the session ended as promised, else what is wrong."""
    if not isinstance(seen.code, int):
        return f"{seen.code}"
    if seen.lines("left"):
        return f"roles outlived the keeper: {seen.lines('left')}"
    bad = [line for line in seen.lines("end") if line[2] == "killed" and line[3] not in ("9", str(int(signal.SIGTERM)))]
    if bad:
        return f"died of a signal: {bad}"
    if seen.left and (seen.stays or not trial.releases_session(call)):
        return f"left behind: {seen.left}, after gc: {seen.stays}"
    if seen.code != 0:
        return f"the keeper's exit status is {seen.code}: {seen.err}"
    lost, new = lost_lines(seen, base)
    # without Landlock, which the session and each exec say, programs reach each other's processes
    is_told = any(line.startswith(("lives: not isolated", "warning: ")) for line in new)
    weaker = [line for line in new if not TOLD.match(line) and not is_explained(call, name, line)]
    if weaker and not (is_told and all(line.startswith("kill 1: ") for line in weaker)):
        return f"not as strong, or not told: {weaker[:4]}"
    # a listing leaves out an entry that is gone when it comes to it
    is_gone = name == "ENOENT" and all(line.startswith('{"path":') for line in lost)
    if lost and not new and not is_gone:
        return f"lost, and nothing is said: {lost[:4]}"
    words = f"{call.role} {name} {call.name} {call.argument}"
    if lost or new or name == "EINTR" or call.name not in trial.PROTECTIVE or not seen.is_reached():
        return None
    if has_no_exec(call.role, seen, base):
        return None
    if call.name in ("sendmsg", "sendto", "close_range") or any(re.fullmatch(p, words) for p in HARMLESS) or trial.is_harmless(call, name):
        return None
    return "it protects, failed, and nobody was told"


# Lines that a fault explains: (role, call and error, line).
EXPLAINED = (
    ("payload", ".*", "exec: exited 12[67]$"),  # what the program needs isn't there
    ("supervisor", "ioctl .*", "[a-z 0-9]+: ENOSYS$"),  # a refused call that can't be answered is still refused
    ("worker", "read .*", "exec: exited 141$"),  # its output can't be read: a warning says so
    # its lines can't be written: the service sees that they are not whole
    ("worker", "writev? .*|poll ENOMEM", "bad line: |{"),
    ("init", "seccomp EBUSY", "[a-z 0-9]+: ENOSYS$"),  # refused, but not named: a warning says so
    ("init", "(pread64|write) .*", "/proc/self/oom_score_adj: 0$"),  # best effort: trial.py
    ("init", "recvmsg .*", "/proc/1/environ: E[A-Z]+$"),  # it ends while the program looks at it
)


def is_explained(call, name, line):
    return any(
        re.fullmatch(role + "[0-9]*", call.role) and re.fullmatch(fault, f"{call.name} {name}") and re.match(text, line)
        for role, fault, text in EXPLAINED
    )


# Where no cgroup counts memory, the keeper samples the jail's processes: for its first status, when an exec begins,
# and in between as a clock has it.  So which sample finds how many processes is not the same in every run.  Whether a
# worker takes samples, too, only a clock decides.
SAMPLES = {"supervisor": 3}


def in_any_samples(calls):
    """Each call of a sample in the first samples that have it, whichever they are; other calls as they are."""
    count = collections.Counter()
    for call in calls:
        if not call.sample:
            yield call
            continue
        place = call.role, call.name, call.nth
        count[place] += 1
        if count[place] <= SAMPLES.get(call.role, 1):
            call.mark = f"{call.name}#{count[place]}.{call.nth}"
            yield call


def calls_of(way, folder):
    """The session as it is without faults, and the calls of its own: those until it lives are also a run's."""
    base, calls = faults.without_fault(way, folder, "ended: closed")
    first = next(i for i, call in enumerate(calls) if call.role == "worker")
    return base, list(in_any_samples(calls[max(0, first - 60) :]))


def try_fault(way, folder, base, call, name):
    seen, call, problem = faults.tried_again(way, folder, base, call, name, judge)
    lost, new = lost_lines(seen, base)
    kind = ("refused" if lost or new else "same") if seen.is_reached() else "missed"
    return {"call": repr(call), "error": name, "problem": problem, "kind": kind, "said": new[:4], "seconds": seen.seconds}


def try_all(way, roles=".*"):
    with harness.Folder() as f:
        os.chmod(f.path, 0o755)
        base, calls = calls_of(way, f.path)
        calls = [call for call in calls if re.fullmatch(roles, call.role)]
        chosen = list(faults.every_fault(calls))
        if not harness.LONG:
            chosen = faults.sample(chosen)
        rows = faults.in_workers(way, f.path, base, chosen, faults.WORKERS, try_fault)
    faults.tell(way, rows, missed_share=10)


@test("each call of a session's keeper, workers and reapers fails once: its server is told, and nothing is left", limit=900)
def session_faults():
    try_all(SessionWay())


@test("each call of the workers that use a session's files fails once: its server is told, and nothing is left", limit=900)
def file_faults():
    try_all(FILES, "worker[0-9]*")


def try_kill(way, folder, place, victim, number):
    role, mark = place
    seen = way.run(folder, "kill", role, mark, victim)
    if not seen.is_reached() or seen.lines("miss"):
        return None
    tried()
    if not isinstance(seen.code, int):
        return f"{seen.code}"
    if seen.lines("left"):
        return f"outlived the keeper: {seen.lines('left')}"
    living = [line for line in seen.left if line.startswith("process")]
    if living or seen.stays:
        return f"left behind: {living}, after gc: {seen.stays}"
    if victim != "supervisor" and seen.left:
        return f"left behind, though the keeper lives: {seen.left}"
    if victim == "supervisor":
        return None if seen.code == 128 + signal.SIGKILL else f"exit status {seen.code}"
    last = seen.out.splitlines()[-1:] or [""]
    if seen.code != 0 or not last[0].startswith("ended: "):
        return f"exit status {seen.code}, the last line is {last}"
    if victim.startswith(("worker", "reaper", "payload")) and not re.match("ended: (closed|stuck)", last[0]):
        return f"an exec's end became the session's: {last}"
    return None


def kill_at_each(way, victims, wanted):
    problems = []
    with harness.Folder() as f:
        os.chmod(f.path, 0o755)
        _, calls = calls_of(way, f.path)
        for victim in victims:
            places = [(call.role, call.mark) for call in calls if victim == "supervisor" or call.role == victim or wanted > 100]
            few = harness.share(wanted, 5)
            if not harness.LONG and len(places) > few:
                places = [places[i * len(places) // few] for i in range(few)]
            for number, place in enumerate(places):
                problem = try_kill(way, f.path, place, victim, number)
                if problem:
                    problems.append(f"{victim} killed at {place[1]} of {place[0]}: {problem}")
    if problems:
        raise Failure(f"{len(problems)}:\n" + "\n".join(problems[:30]))


@test("a keeper killed at any call of any of its processes leaves nothing that gc doesn't sweep", limit=600)
def keeper_kills():
    kill_at_each(SessionWay(), ("supervisor",), 80)


@test("a worker or a reaper of a session that is killed at any call leaves nothing, and the keeper lives", limit=600)
def worker_kills():
    kill_at_each(SessionWay(), ("worker", "worker2", "worker3", "worker4", "reaper3", "reaper4", "reaper5"), 14)


@test("a worker that uses a session's files is killed at any call and leaves nothing, and the keeper lives", limit=600)
def file_worker_kills():
    kill_at_each(FILES, ("worker", *[f"worker{number}" for number in range(2, 12)]), 6)
