# SPDX-License-Identifier: Apache-2.0
"""`cejail bwrap`: each system call of the monitor, of init and of what becomes the command fails once, and the
monitor is killed at each of them.

The command runs in the sandbox that was asked for, or nothing runs: then there is one line, status 1, and, with
--cejail-result-fd, a result that says the same.  Nothing is left: no process, cgroup, record or file.
"""

import errno
import json
import os
import re
import signal
import subprocess

import faults
import harness
import internet
import kills
import trial
from bwrap_lines import OURS, PROC, USR
from harness import Failure, equal, test, tried, true
from mcp_faults import ours_of, things, what_is_left
from trial import Seen, Way

ALLOW_ALL = "FD:\x06\0\0\0\0\0\xff\x7f"
FILES = ("result", "status", "info")  # a descriptor for each: @RESULT, ...
POSTURE = (f"{harness.PROBES}/posture", "/opt/posture")
TOLD = ("--json-status-fd", "@STATUS", "--info-fd", "@INFO")
RICH = (
    *USR, *PROC, *TOLD, "--ro-bind", *POSTURE, "--unshare-all", "--unshare-user", "--unshare-cgroup", "--die-with-parent", "--new-session", "--uid", "7", "--gid", "8", "--hostname", "inside",
    "--perms", "0711", "--size", "65536", "--tmpfs", "/tmp", "--dir", "/made", "--perms", "0600", "--file", "FD:text", "/etc/file", "--ro-bind-data", "FD:data", "/etc/data",
    "--symlink", "usr", "/link", "--bind", "@FOLDER/written", "/mnt/written", "--ro-bind-try", "/never-there", "/x", "--overlay-src", "@FOLDER/under", "--tmp-overlay", "/mnt/over",
    "--chmod", "0700", "/made", "--remount-ro", "/mnt/written", "--mqueue", "/dev/mqueue", "--lock-file", "/usr/bin/env", "--sync-fd", "FD:", "--block-fd", "FD:x",
    "--disable-userns", "--assert-userns-disabled", "--cap-drop", "ALL", "--setenv", "A", "b", "--seccomp", ALLOW_ALL, "--args", "FD:--dir\0/of/args\0", "--chdir", "/usr",
)  # fmt: skip
AS_PID_1 = (*USR, *PROC, "--ro-bind", *POSTURE, "--unshare-user", "--unshare-pid", "--as-pid-1", "--cap-add", "CAP_KILL", "--tmpfs", "/tmp")
LIMITED = (
    *USR, *PROC, *TOLD, "--ro-bind", *POSTURE, "--unshare-user", "--unshare-net", "--tmpfs", "/tmp", "--cejail-result-fd", "@RESULT",
    "--cejail-timeout", harness.scaled(600), "--cejail-memory", "1G", "--cejail-pids", "500", "--cejail-cpu-time", "600s", "--cejail-seccomp", "default",
)  # fmt: skip
# Without a uplink: whether the command's packets leave is for the network's own sweeps.
NETWORKED = (
    *USR, *PROC, *TOLD, "--ro-bind", *POSTURE, "--unshare-user", "--tmpfs", "/tmp", "--cejail-result-fd", "@RESULT", "--cejail-network", "allow:20.30.40.50",
)  # fmt: skip
NOWHERE = {"forwarding": False, "without": ("pasta", "pasta.avx2", "slirp4netns")}


class BwrapSeen(Seen):
    def errors(self):
        return [line for line in self.err if line.startswith("bwrap: ") and not line.startswith("bwrap: warning: ")]

    def warnings(self):
        told = {line.removeprefix("bwrap: warning: ") for line in self.err if line.startswith("bwrap: warning: ")}
        return told | set(json.loads(self.result)["warnings"] if self.result else ())

    def program_lines(self):
        return [line for line in self.err if not line.startswith("bwrap: ")]


class BwrapWay(Way):
    """One sandbox.  What it leaves has no name of its own, so one of them is there at a time."""

    def __init__(self, name, *args, **more):
        super().__init__(name, *args, **{"program": ("/opt/posture",), "prepare": a_folder, **more})

    def run(self, folder, *orders):
        self.runs += 1
        base = os.path.join(folder, f"bwrap-{self.runs}")
        os.mkdir(base)
        before, report = (set(harness.descendants()), things()), f"{base}/report"
        opened, words = {}, []
        for word in (*self.args, *self.program):
            if word.startswith("FD:"):
                fd = os.memfd_create("data")
                os.write(fd, word[3:].encode("latin-1"))
                os.lseek(fd, 0, os.SEEK_SET)
                opened[len(words)], word = fd, str(fd)
            elif word.startswith("@") and word[1:].lower() in FILES:
                name = word[1:].lower()
                opened[name] = os.open(f"{base}/{name}", os.O_WRONLY | os.O_CREAT, 0o600)
                word = str(opened[name])
            words.append(word.replace("@FOLDER", folder))
        try:
            seen = self.start([trial.INJECT, report, *orders, "--", OURS, *words], pass_fds=list(opened.values()))
        finally:
            for fd in opened.values():
                os.close(fd)
        texts = {name: trial.words_of(f"{base}/{name}") for name in FILES}
        made = [f"file {name}" for name in sorted(set(os.listdir(base)) - {"report", *FILES})]
        made += [f"file {name}" for name in os.listdir(f"{folder}/written")]
        seen.__class__, seen.result = BwrapSeen, texts["result"] or None
        seen.documents = documents_of(texts)
        seen.out = re.sub(r"\b(master|shared|propagate_from):\d+", r"\1:N", re.sub("^/proc/keys: .*\n", "", seen.out, flags=re.M))
        seen.report = (trial.words_of(report) or "").splitlines()
        subprocess.run(["rm", "-rf", base], check=True)
        seen.left = made + (left_at_once(*before) if orders[0] == "kill" else what_is_left(*before))
        if seen.left:
            subprocess.run([harness.CEJAIL, "gc"], env=harness.environment(), capture_output=True, check=False)
            seen.stays = what_is_left(*before)
        return seen


def left_at_once(processes, before):
    """What is there when our processes have ended: a record and a cgroup stay until `cejail gc`."""
    harness.wait_until(lambda: not set(harness.descendants()) - processes, "the end of what was killed")
    return sorted(ours_of(things() - before))


def documents_of(texts):
    """The members that are the same in every run."""
    rows, decoder = [], json.JSONDecoder()
    for name in ("status", "info"):
        text = (texts[name] or "").strip()
        while text:
            value, end = decoder.raw_decode(text)
            text = text[end:].strip()
            rows.append((name, {key: words for key, words in value.items() if key in ("exit-code", "cejail-status", "cejail-limit") or not isinstance(words, (int, str))}, sorted(value)))
    return rows


def a_folder(f, stack):
    f.file("under/file", "under\n")
    f.folder("written")


# --- the verdict ------------------------------------------------------------------------------

# A protecting call that may fail without a word: why nothing is weaker then.
HARMLESS = {
    **dict.fromkeys(trial.HARMLESS),
    "payload2? E.* prctl 15": None,
    "gateway EOPNOTSUPP landlock_create_ruleset [0-9]+": None,  # its filter lets it open no file either: gateway_confine.c
}
# What a fault may change: as in bubblewrap, a document leaves out what it can't have; and what can't be written needs no cover.
UNSURE = {
    "supervisor E.* newfstatat /proc/[0-9]+/ns/[a-z]+": "documents",
    "init E(ACCES|NOENT) faccessat2? (sys|sysrq-trigger|irq|bus)": "out",
    # A root that has no such file, and in which none can be made, stays as it is.
    "init E(NOENT|ROFS) (openat2?|mkdirat) (/?etc|(/etc/)?(resolv.conf|hosts))": "out",
}
RELEASES = ("unlinkat", "rmdir", "flock", "newfstatat", "fstat", "openat", "getdents64", "read", "close")
DELIVERIES = ("info_fd", "json_status_fd", "json-status-fd", "the result")


def judge(seen, base, call, name):
    """None when the sandbox is the same, or there is none and that is said; else what is wrong."""
    if not isinstance(seen.code, int):
        return f"{seen.code}"
    if seen.lines("left"):
        return f"outlived the monitor: {seen.lines('left')}"
    bad = [line for line in seen.lines("end") if line[2] == "killed" and (line[3] != "9" or line[1] == "supervisor")]
    if bad and not trial.is_abort_of_libc(seen, call):
        return f"died of a signal: {bad}"
    if seen.left and (seen.stays or call.name not in RELEASES):
        return f"left behind: {seen.left}, after gc: {seen.stays} (exit status {seen.code})"
    if bad:
        return None
    if seen.is_reached() and seen.code == 1:
        return judge_refusal(seen, base, call, name)
    return judge_same(seen, base, call, name)


def judge_same(seen, base, call, name):
    if call.role == "supervisor" and call.name == "mprotect" and seen.code == 127:
        return None if trial.is_documented(seen, call, name) else f"exit status 127: {seen.err}"
    if seen.code != base.code:
        return f"exit status {seen.code}: {seen.err}"
    words = f"{call.role} {name} {call.name} {call.argument}"
    is_about_stderr = call.name == "write" and call.argument.startswith("bwrap:")
    if (seen.errors(), seen.program_lines()) != (base.errors(), base.program_lines()) and not is_about_stderr:
        return f"stderr differs: {seen.err}"
    for what in ("out", "documents"):
        mine, theirs = getattr(seen, what), getattr(base, what)
        if mine != theirs and not any(re.fullmatch(pattern, words) and what == part for pattern, part in UNSURE.items()):
            return f"{what} differs: {trial.difference(mine, theirs)}"
    if not seen.is_reached() or seen.warnings() - base.warnings():
        return None if bool(seen.result) == bool(base.result) else "no result"
    differs = trial.difference(trial.facts_of(seen.result), trial.facts_of(base.result))
    if differs and differs != trial.WITHOUT_CGROUP:
        return f"the result differs: {differs}"
    if call.name in trial.PROTECTIVE and name != "EINTR" and not any(re.fullmatch(pattern, words) for pattern in HARMLESS):
        return "it protects, failed, and nobody was told"
    return None


# Where the error says what its failure means there.
MEANINGS = {
    "init E.* (openat2|open_tree) .*": "Can't find source path|Can't bind mount|Can't mkdir",
    ".* E.* (clone3|clone) .*": "Creating new namespace failed|No permissions to create a new namespace",
    "init E.* write .*": "start the first process of the sandbox",  # the byte that says it is born
    "supervisor E.* poll .*": "start the first process of the sandbox",
    "gateway E.* dup[23]? .*": "the gateway ended before",  # of the link by which it would say so
    "loader E.* sendto .*": "the loader of rules ended before",  # likewise
}


def judge_refusal(seen, base, call, name):
    """Status 1: one line with the cause, the same in the result, and a command that has not run to its end unseen."""
    errors = seen.errors()
    if call.name in trial.RETRIED and name == "EINTR":
        return f"a signal ended the sandbox: {seen.err}"
    if len(errors) != 1 and not (call.name == "write" and call.argument.startswith("bwrap:")):
        return f"{len(errors)} errors: {seen.err}"
    line = errors[0] if errors else ""
    words = f"{call.role} {name} {call.name} {call.argument}"
    is_meant = name == "ENOENT" or any(re.fullmatch(pattern, words) and re.search(text, line) for pattern, text in MEANINGS.items())
    if os.strerror(getattr(errno, name)) not in line and not is_meant:
        return f"not the cause: {line}"
    is_delivery = any(word in line for word in DELIVERIES)
    if "complete" in seen.out and not is_delivery and not (call.role == "supervisor" and call.phase == "after"):
        return f"the command ran, and the line says: {line}"
    if base.result is None or (is_delivery and not seen.result):
        return None
    if not seen.result:
        return f"no result, but: {line}"
    value = json.loads(seen.result)
    if is_delivery and value["status"] == "exited":
        return None
    if value["status"] != "setup_error" or not value["error"] or value["error"]["message"] not in line:
        return f"the result tells another end: {value['status']} {value['error']}"
    return None


def try_fault(way, folder, base, call, name):
    seen, call, problem = faults.tried_again(way, folder, base, call, name, judge)
    kind = ("refused" if seen.code != base.code else "same") if seen.is_reached() else "missed"
    return {"call": repr(call), "error": name, "problem": problem, "kind": kind, "said": seen.err[:4], "seconds": seen.seconds}


def try_all(way):
    with harness.Folder() as f:
        os.chmod(f.path, 0o755)
        way.prepare(f, None)
        base = way.run(f.path, "list")
        if base.code != way.status or base.left or ("complete" not in base.out):
            raise Failure(f"{way.name}: without a fault: {base!r}, left {base.left}, out {base.out[-400:]}")
        calls = [trial.Call(line) for line in base.report if line.startswith("call ")]
        true({"supervisor", "init"} <= {call.role for call in calls}, f"calls of {({call.role for call in calls})} only")
        chosen = list(faults.every_fault(calls))
        if not harness.LONG:
            chosen = faults.sample(chosen)
        faults.tell(way, faults.in_workers(way, f.path, base, chosen, 1, try_fault))


@test("each call of cejail bwrap with many options fails once: the same sandbox or none, and nothing is left", limit=900)
def rich():
    try_all(BwrapWay("bwrap, many options", *RICH))


@test("each call of cejail bwrap whose command is pid 1 fails once: the same sandbox or none, and nothing is left", limit=900)
def as_pid_1():
    try_all(BwrapWay("bwrap, pid 1", *AS_PID_1))


@test("each call of cejail bwrap with limits fails once: the same sandbox and limits or none, one result, and nothing is left", limit=900)
def limited():
    try_all(BwrapWay("bwrap, limits", *LIMITED))


# --- the monitor is killed --------------------------------------------------------------------


def kill_at_each(way, victim, wanted):
    """The monitor's death ends all, and `cejail gc` finds the rest; init's death is the end of a run."""
    with harness.Folder() as f:
        os.chmod(f.path, 0o755)
        way.prepare(f, None)
        base = way.run(f.path, "list")
        equal((base.code, base.left), (way.status, []), f"{way.name}: without a kill: {base!r}")
        last = {call.role: int(call.number) for call in (trial.Call(line) for line in base.report if line.startswith("call "))}
        for role, number in kills.sample(last, ("supervisor", "init", "payload"), wanted):
            seen = way.run(f.path, "kill", role, str(number), victim)
            if not seen.lines("done") or seen.lines("miss"):
                continue
            tried()
            about = f"{way.name}: {victim} killed at call {number} of {role}: {seen!r}"
            late = [line for line in seen.lines("end") if int(line[4]) > 3000 * harness.SLOW]
            equal((seen.lines("left"), late, seen.stays), ([], [], []), about)
            true(all(words.startswith(("record ", "cgroup ")) for words in seen.left), f"{about}: left {seen.left}")
            if victim == "supervisor":
                equal(seen.code, 128 + signal.SIGKILL, about)
                continue
            equal(seen.left, [], about)
            true(seen.code in (1, way.status, 128 + signal.SIGKILL), about)
            if base.result:
                true(seen.result is not None, f"{about}: no result")
                status = json.loads(seen.result)["status"]
                equal(status, {1: "setup_error", way.status: "exited"}.get(seen.code, "signaled"), f"{about}: {seen.result}")


for words, options in (("that dies with its parent", (*RICH,)), ("with limits", LIMITED)):

    @test(f"a cejail bwrap {words} that is killed at any system call leaves nothing that cejail gc doesn't remove", limit=600)
    def _(words=words, options=options):
        kill_at_each(BwrapWay(words, *options), "supervisor", 60)


@test("when init of a cejail bwrap with limits is killed at any system call, there is one result and nothing is left", limit=600)
def _():
    kill_at_each(BwrapWay("with limits", *LIMITED), "init", 40)


@test("each call of cejail bwrap with a network fails once: the same sandbox and network or none, one result, and nothing is left", limit=900)
def networked():
    with internet.Internet(**NOWHERE) as net:
        try_all(BwrapWay("bwrap, a network", *NETWORKED, net=net))


@test("a cejail bwrap with a network that is killed at any system call leaves nothing that cejail gc doesn't remove", limit=600)
def _():
    with internet.Internet(**NOWHERE) as net:
        kill_at_each(BwrapWay("with a network", *NETWORKED, net=net), "supervisor", 40)
