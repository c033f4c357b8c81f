# SPDX-License-Identifier: Apache-2.0
"""cejail-oci run, whose system calls fail one by one, or in which create or init is killed at one of them.

A fault ends in one line that names it, and in nothing left; or in the same container, which then is as strong as
without the fault.  After a kill `delete --force` removes what is left.  inject (tests/system/faults/inject.c) makes
both; "supervisor" is its name for the process of cejail-oci.
"""

import errno
import os
import re
import subprocess
import time

import trial
from bundles import *  # noqa: F403
from harness import *  # noqa: F403

INJECT = f"{PROBES}/inject"
STATUS = 7
# What makes a container strong, and the same in each run.
POSTURE = f"""
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp:)' /proc/self/status
cut -d' ' -f4- /proc/self/mountinfo
cat /proc/self/limits /proc/self/uid_map /proc/self/setgroups /proc/self/oom_score_adj /proc/self/cgroup
hostname; umask; ls -l /dev /proc/sys/kernel/core_pattern; cat /proc/sys/net/ipv4/ip_unprivileged_port_start
ls -l /proc/self/fd | grep -c .; ls -ld /sys/firmware /proc/kcore; pwd; env
exit {STATUS}
"""
FILTER = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [{"names": ["ptrace", "mount"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}],
}
# Of devices and inodes: what depends on how many there were before.
CHANGING = re.compile(r"\b[0-9]+:[0-9]+\b|inode=[0-9]+|[A-Z][a-z]{2} +[0-9]+ [0-9:]{5}|t[0-9]+-[0-9]+")


def prepare(b):
    b.process["args"] = ["/bin/sh", "-c", POSTURE]
    b.process["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": 100, "hard": 200}]
    b.process["oomScoreAdj"] = 500 if WHO != "root" else 100
    b.process["user"]["umask"] = 0o027
    b.linux["seccomp"] = FILTER
    b.linux["sysctl"] = {"net.ipv4.ip_unprivileged_port_start": "80"}
    b.config["root"]["readonly"] = True
    b.save()


class Trial:
    failed = (1,)

    def __init__(self, b, *orders):
        self.id = b.new_id()
        report = b / f"{self.id}.report"
        words = [*self.through(b), INJECT, report, *orders, "--", OCI, "--root", b.root, *self.command(b)]
        self.before = set(descendants())
        process = subprocess.Popen(words, env=environment(MALLOC_PERTURB_="165"), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.done = finish(process, 30, args=orders)
        with open(report, encoding="utf-8") as file:
            self.report = file.read().splitlines()
        os.unlink(report)
        self.posture = CHANGING.sub("N", self.done.out)
        self.is_reached = any(line.startswith("done ") for line in self.report)
        self.place = os.path.join(b.root, self.id)

    def command(self, b):
        return ["run", "--bundle", b.path, self.id]

    def through(self, b):
        """Programs that execute it."""
        return []

    def problem(self):
        """What only this kind of run promises, and is not so."""
        return None

    def left(self):
        found = [words for pid, words in descendants().items() if pid not in self.before and "(Z)" not in words]
        found += [path for path in our_cgroups() if path.endswith(self.id)]
        return found + ([self.place] if os.path.exists(self.place) else [])

    def left_after(self, seconds=2):
        end = time.monotonic() + seconds * SLOW
        while self.left() and time.monotonic() < end:
            time.sleep(0.01)
        return self.left()


def calls_of(b, kind=Trial):
    base = kind(b, "list")
    equal(base.done.code, STATUS, f"exit status of an undisturbed run ({base.done.err})")
    equal(base.left_after(), [], "left by it")
    return base, [trial.Call(line) for line in base.report if line.startswith("call ")]


def one_of_each(calls, step):
    """Each kind of call at each kind of place, and of those every step-th of each role."""
    kinds = {}
    for call in calls:
        kinds.setdefault(call.place(), call)
    return thinned(kinds.values(), lambda call: call.role, 1 if LONG else step * STEP)


def faults_of(calls, step):
    turn = {}
    for call in one_of_each(calls, step) if not LONG else calls:
        if call.name in trial.NEVER_FAIL:
            continue
        names = trial.ERRORS[call.name]
        for name in names if LONG else names[turn.get(call.name, 0) % len(names) :][:1]:
            if call.returned != str(-getattr(errno, name)):
                yield call, name
        turn[call.name] = turn.get(call.name, 0) + 1


def is_as_strong(call, name):
    """Without the right to make a device node, the host's own node is bound there.  What does not exist is not
    masked: config-linux.md of the specification."""
    return (call.role, call.name, name) in (("init", "mknodat", "EPERM"), ("init", "openat2", "ENOENT"))


def is_before_main(call, seen):
    """The C library ends a static program that it can't relocate or give a heap."""
    return call.role == "supervisor" and call.name in ("brk", "mprotect") and seen.done.code in (127, -6, -11, 134, 139)


def difference(seen, base):
    return set(seen.posture.splitlines()) ^ set(base.posture.splitlines())


def is_right(b, base, call, name):
    seen = type(base)(b, "fail", call.role, call.mark, str(getattr(errno, name)))
    if not seen.is_reached:
        return
    tried()
    what = f"{call!r} fails with {name}"
    left = seen.left_after()
    if left:
        b.oci("delete", "--force", seen.id)
        if call.role == "supervisor" and name == "ENOENT" and "cgroup" in call.argument:
            subprocess.run(["rmdir", *[path for path in seen.left() if path.startswith("/sys")]], check=False)  # "it is gone"
        equal(seen.left_after(), [], f"left after delete --force where {what}; before: {left}, {seen.done!r}")
    if is_before_main(call, seen):
        return
    if seen.done.code == STATUS:
        true(seen.posture == base.posture or is_as_strong(call, name), f"the container where {what}: {difference(seen, base)}")
    else:
        true(seen.done.code in seen.failed, f"exit status {seen.done.code} where {what} ({seen.done.err})")
        lines = [line for line in seen.done.err.splitlines() if line.startswith("cejail-oci: ") and "warning" not in line]
        equal(len(lines), 1, f"errors of {seen.done.err!r} where {what}")
    true(not left or seen.done.err, f"left without a word where {what}: {left}")
    true(not seen.problem(), f"{seen.problem()} where {what} ({seen.done.err})")


def fail_each(b, kind, step):
    base, calls = calls_of(b, kind)
    problems = []
    for call, name in faults_of(calls, step):
        try:
            is_right(b, base, call, name)
        except Failure as failure:
            problems.append(str(failure))
    true(not problems, "\n".join(problems))


@test("each system call of run fails once and the container is whole or refused and nothing is left", limit=900)
def _():
    with Bundle() as b:
        prepare(b)
        fail_each(b, Trial, 30 if EMULATED else 4)


def is_swept(b, call, victim, kind=Trial):
    seen = kind(b, "kill", call.role, str(call.number), victim)
    if not seen.is_reached or any(line.startswith("miss") for line in seen.report):
        return
    tried()
    what = f"{victim} is killed at {call!r}"
    b.oci("delete", "--force", seen.id).exits(0)
    equal(seen.left_after(), [], f"left after delete --force where {what}")
    with open("/proc/self/mounts", encoding="utf-8") as file:
        lacks(file.read(), b.path, f"the mounts where {what}")


def kill_at_each(victim, step):
    with Bundle() as b:
        prepare(b)
        _, calls = calls_of(b)
        for call in one_of_each(calls, step):
            is_swept(b, call, victim)


@test("when create is killed at any system call of either process delete force leaves nothing", limit=900)
def _():
    kill_at_each("supervisor", 60 if EMULATED else 8)


@test("when init is killed at any system call of either process nothing is left", limit=900)
def _():
    kill_at_each("init", 60 if EMULATED else 12)


# --- annotations ---


class AnnotatedTrial(Trial):
    """A run with rules, a profile, and a process that writes the result."""

    def command(self, b):
        return ["--result-dir", b.path, *super().command(b)]


def prepare_annotated(b):
    values = {"network": "public", "network.name-servers": "10.96.0.10", "profile": "base", "result": b / "result.json"}
    b.config["annotations"] = {f"io.cejail.{name}": value for name, value in values.items()}
    prepare(b)


@test("each system call of a run with annotations fails once and the container is whole or refused and nothing is left", limit=900)
def _():
    with Bundle() as b:
        prepare_annotated(b)
        fail_each(b, AnnotatedTrial, 60 if EMULATED else 6)


@test("when a process of a run with annotations is killed at any system call delete force leaves nothing", limit=900)
def _():
    with Bundle() as b:
        prepare_annotated(b)
        _, calls = calls_of(b, AnnotatedTrial)
        for victim in ("supervisor", "intermediate"):  # this keeps the result
            for call in one_of_each(calls, 80 if EMULATED else 16):
                is_swept(b, call, victim, AnnotatedTrial)


# --- devices, hooks, descriptors and a long overlay ---


class EquippedTrial(Trial):
    """A run with two descriptors of socket activation, in a network namespace with the device v0."""

    SCRIPT = """
    ip link add v0 address 02:00:00:00:00:07 type veth peer name v1 && ip link set v0 up && ip link set v1 up &&
    ip addr add 10.9.8.7/24 dev v0 && exec 3< /dev/null 4< "$0" || exit 99
    LISTEN_FDS=2 LISTEN_PID=1 "$@"; code=$?; echo "v0: $(ip -o addr show dev v0 2>&1 | grep -o "inet 10.9.8.7\|does not exist")"; exit $code
    """

    def through(self, b):
        return ["unshare", "-n", "bash", "-c", self.SCRIPT, f"{b.path}/given"]

    def problem(self):
        """A container whose program does not start gives its device back with its address."""
        is_fine = "PATH=/bin" in self.done.out or "v0: inet 10.9.8.7\n" in self.done.out
        return None if is_fine else f"the device is gone: {self.done.out[-200:]!r}"


def prepare_equipped(b):
    deep = "/".join(["d" * 60] * 4)
    for number in range(3):
        b.file(f"{number}{deep}/file", f"{number}\n")
    layers = ":".join(f"{b.path}/{number}{deep}" for number in range(3))
    b.config["mounts"].append(mount_of("overlay", "/x", "overlay", "lowerdir=" + layers))
    b.config["hooks"] = {kind: [{"path": "/bin/true"}] for kind in ("prestart", "createRuntime", "poststop")}
    b.config["hooks"]["createContainer"] = [{"path": "/bin/true", "env": ["A=b"]}]
    b.linux["netDevices"] = {"v0": {"name": "box%d"}}
    b.file("given", "given\n")
    prepare(b)
    b.process["args"][2] = "cat <&4; cat /x/file; cat /sys/class/net/box0/address; ls /sys/class/net\n" + POSTURE
    b.save()


@test("each system call of a run with network devices hooks and passed descriptors fails once and nothing is lost", who="root", limit=900)
def _():
    with Bundle() as b:
        prepare_equipped(b)
        fail_each(b, EquippedTrial, 60 if EMULATED else 6)


@test("a network device comes back with its address whichever message about it is lost", who="root")
def _():
    with Bundle() as b:
        prepare_equipped(b)
        base, calls = calls_of(b, EquippedTrial)
        for call in calls:
            if call.role == "supervisor" and call.name in ("sendto", "recvmsg"):
                is_right(b, base, call, "ENOBUFS")


@test("when a process of a run with network devices hooks and passed descriptors is killed at any system call nothing is left", who="root", limit=900)
def _():
    with Bundle() as b:
        prepare_equipped(b)
        _, calls = calls_of(b, EquippedTrial)
        for victim in ("supervisor", "init"):
            for call in one_of_each(calls, 80 if EMULATED else 16):
                is_swept(b, call, victim, EquippedTrial)


# --- exec ---

# inject's names for the process that joins the container and for the one that it forks there.
EXEC_ROLES = ("supervisor", "intermediate", "keeper")


class ExecTrial(Trial):
    """An exec in the container that is running."""

    failed = (255, 1)  # 1 before it knows that it is an exec

    def command(self, b):
        return ["exec", b.ids[-1], "/bin/sh", "-c", POSTURE]


def calls_of_exec(b):
    base, calls = calls_of(b, ExecTrial)
    for role in EXEC_ROLES:
        true(any(call.role == role for call in calls), f"no call of {role}")
    return base, calls


def sleeping(b):
    prepare(b)
    b.process["args"] = ["/bin/sleep", "1000"]
    return b.started()


@test("each system call of exec fails once and the process is whole or refused and nothing is left", limit=900)
def _():
    with Bundle() as b:
        id = sleeping(b)
        base, calls = calls_of_exec(b)
        problems = []
        for call, name in faults_of(calls, 30 if EMULATED else 3):
            try:
                is_right(b, base, call, name)
                equal(b.status(id), "running", f"the container where {call!r} fails with {name}")
            except Failure as failure:
                problems.append(str(failure))
        true(not problems, "\n".join(problems))


@test("when a process of exec is killed at any system call nothing is left in the container", limit=900)
def _():
    with Bundle() as b:
        id = sleeping(b)
        _, calls = calls_of_exec(b)
        for victim in EXEC_ROLES:
            for call in one_of_each(calls, 60 if EMULATED else 12):
                seen = ExecTrial(b, "kill", call.role, str(call.number), victim)
                if seen.is_reached and not any(line.startswith("miss") for line in seen.report):
                    tried()
                    equal(seen.left_after(), [], f"left where {victim} is killed at {call!r}")
        equal(b.status(id), "running", "the container")


# --- start and delete, which find a container ------------------------------------------------------


def command_under(b, orders, *words):
    """cejail-oci WORDS under inject: its calls, or what it did."""
    report = b / "command.report"
    argv = [INJECT, report, *orders, "--", OCI, "--root", b.root, *words]
    process = subprocess.Popen(argv, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done = finish(process, 30, args=argv)
    with open(report, encoding="utf-8") as file:
        lines = file.read().splitlines()
    os.unlink(report)
    return done, lines


def kill_at_each_call_of(verb, *options, then):
    with Bundle("sleep 6000") as b:
        done, lines = command_under(b, ("list",), verb, *options, b.created())
        done.exits(0)
        calls = [trial.Call(line) for line in lines if line.startswith("call supervisor ")]
        for call in one_of_each(calls, 40 if EMULATED else 4):
            id = b.created()
            before = set(descendants())
            _, lines = command_under(b, ("kill", "supervisor", str(call.number), "supervisor"), verb, *options, id)
            if not any(line.startswith("done ") for line in lines):
                continue
            tried()
            what = f"{verb} is killed at {call!r}"
            then(b, id, what)
            b.delete(id, "--force").exits(0)
            equal([path for path in our_cgroups() if path.endswith(id)], [], f"cgroups where {what}")
            true(not os.path.exists(f"{b.root}/{id}"), f"the state is left where {what}")
            wait_until(lambda: not set(descendants()) - before, f"the end of its processes where {what}")


@test("when start is killed at any system call the container is created or runs and can be started or deleted", limit=300)
def _():
    def then(b, id, what):
        status = wait_until(lambda: b.status(id), "a state")
        true(status in ("created", "running"), f"status is {status} where {what}")
        if status == "created":
            done = b.oci("start", id)
            # init has received the step, and was not executed when the state was read
            true(done.code == 0 or b.status(id) == "running", f"a second start fails where {what}: {done!r}")

    kill_at_each_call_of("start", then=then)


@test("when delete is killed at any system call a second delete removes the rest", limit=300)
def _():
    kill_at_each_call_of("delete", "--force", then=lambda b, id, what: None)
