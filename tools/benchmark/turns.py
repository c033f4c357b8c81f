# SPDX-License-Identifier: Apache-2.0
"""Runs commands in turns and measures each run.

Each round runs every command and starts with another one than the round before, so noise, caches and
a busy neighbour affect all alike.  The measuring process is a child with the identity of the caller
that is measured; it reaps what a command leaves behind (bwrap does not wait for its pid 1).
"""

import ctypes
import fcntl
import json
import os
import resource  # os.wait4() loads it, and the ordinary user may not be able to read it
import signal
import subprocess
import time
import traceback

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
WARM_UP = 3  # rounds that do not count: page cache, ids, directories
SLICE, SLICE_S = 20, 0.5  # runs of one command in a row with two workers, and their time
WORKERS = 2
PATIENCE_S = 60  # for one run, or one slice
SLOW_MS, STRIDE = 20, 4  # a command this slow takes part in every fourth round only
NOWHERE = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]


class Who:
    """A caller: root, or the ordinary user."""

    def __init__(self, name, uid, work):
        self.name, self.uid = name, uid
        self.runtime = f"{work}/runtime-{uid}"
        os.makedirs(self.runtime, mode=0o700, exist_ok=True)
        if os.getuid() == 0:
            os.chown(self.runtime, uid, uid)
        self.env = {"PATH": PATH, "XDG_RUNTIME_DIR": self.runtime, "HOME": self.runtime}

    def become(self):
        if os.getuid() != self.uid:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)


class Failure(Exception):
    pass


def percentile(values, part):
    """The nearest rank; `values` is not empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * part // 100)]


def milliseconds(us):
    return round(us / 1000, 3)


# --- in the measuring process -------------------------------------------------------------------


def on_alarm(_signal, _frame):
    raise Failure(f"no end within {PATIENCE_S} s")


class Command:
    """A name and its argv.  "{n}" in a word becomes a number that no other run has, "{slot}" the
    worker's number."""

    def __init__(self, name, argv):
        self.name, self.argv = name, argv
        self.varies = any("{n}" in word or "{slot}" in word for word in argv)
        self.number = 0
        self.stride = 1  # takes part in each round whose number this divides

    def words(self, slot=0):
        if not self.varies:
            return self.argv
        self.number += 1
        return [w.replace("{n}", str(self.number)).replace("{slot}", str(slot)) for w in self.argv]

    def start(self, env, slot=0, actions=()):
        words = self.words(slot)
        return os.posix_spawn(words[0], words, env, file_actions=NOWHERE + list(actions))

    def trial(self, env):
        """None if the command works here, else the reason."""
        done = subprocess.run(
            self.words(), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False, close_fds=False)  # as start() does
        if done.returncode == 0:
            return None
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        lines = [line for line in lines if "nothing leads out" in line] or lines[-1:]
        return lines[0] if lines else f"exit status {done.returncode}"


def cpu_us(usage):
    assert isinstance(usage, resource.struct_rusage)
    return round((usage.ru_utime + usage.ru_stime) * 1e6)


def end(pid):
    """Waits; returns the CPU time of the command and of all it waited for."""
    try:
        _, status, usage = os.wait4(pid, 0)
    except Failure:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    if status != 0:
        raise Failure(f"a run ended with wait status {status}")
    return cpu_us(usage)


GRACE_S = 0.05  # the kernel is still removing the table of a holder that has ended
APART_S = 0.1  # by then it has removed that of the run before


def reap_rest():
    """CPU time of what a command left to us, which is over when this returns."""
    spent, count = 0, 0
    while True:
        try:
            spent += cpu_us(os.wait4(-1, 0)[2])
            count += 1
        except ChildProcessError:
            time.sleep(GRACE_S if count else 0)
            return spent


def run_once(command, env):
    """(wall, CPU) in microseconds."""
    began = time.monotonic_ns()
    spent = end(command.start(env))
    took = time.monotonic_ns() - began
    return took // 1000, spent + reap_rest()


def run_apart(command, env):
    """The same, after a pause."""
    time.sleep(APART_S)
    return run_once(command, env)


def run_slice(command, env):
    """Runs a second, with two workers."""
    running, free = {}, list(range(WORKERS))
    started = ended = 0
    began = time.monotonic_ns()
    while ended == 0 or running:
        while free and started < SLICE and (started < WORKERS or time.monotonic_ns() - began < SLICE_S * 1e9):
            slot = free.pop()
            running[command.start(env, slot)] = slot
            started += 1
        pid, status = os.wait()
        if pid in running:  # else the command left it to us
            free.append(running.pop(pid))
            ended += 1
            if status != 0:
                raise Failure(f"a run ended with wait status {status}")
    took = time.monotonic_ns() - began
    reap_rest()
    return ended * 1e9 / took


def pipe_above(number):
    """Ends that a child's descriptor `number` does not collide with."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end_fd, fcntl.F_DUPFD_CLOEXEC, number + 1) for end_fd in ends]
    for end_fd in ends:
        os.close(end_fd)
    return moved


def run_stages(command, env):
    """Microseconds until the program starts, until the result is out, and until the end."""
    read_fd, write_fd = pipe_above(3)
    seen = []
    began = time.monotonic_ns()
    pid = command.start(env, actions=[(os.POSIX_SPAWN_DUP2, write_fd, 3)])
    os.close(write_fd)
    while data := os.read(read_fd, 65536):
        now = time.monotonic_ns()
        seen += [now] * data.count(b'{"type":')
    os.close(read_fd)
    end(pid)
    ended = time.monotonic_ns()
    if len(seen) < 2:
        raise Failure("no events of start and result")
    return (seen[0] - began) // 1000, (seen[-1] - seen[0]) // 1000, (ended - seen[-1]) // 1000


ONCE = {"turns": run_once, "apart": run_apart, "pairs": run_slice, "stages": run_stages}


class Race:
    """The commands that still take part, their samples, and why others do not."""

    def __init__(self, commands, env, once):
        self.commands, self.env, self.once = list(commands), env, once
        self.samples = {c.name: [] for c in commands}
        self.reasons = {}

    def try_to(self, command, call):
        """What `call` returns.  If it fails, the command leaves the race."""
        signal.alarm(PATIENCE_S)
        try:
            return call()
        except (Failure, OSError, subprocess.SubprocessError) as error:
            self.drop(command, str(error))
            return None
        finally:
            signal.alarm(0)

    def drop(self, command, reason):
        self.commands.remove(command)
        self.reasons[command.name] = reason
        del self.samples[command.name]

    def round(self, number):
        first = number % max(1, len(self.commands))
        for command in self.commands[first:] + self.commands[:first]:
            if number % command.stride == 0:
                sample = self.try_to(command, lambda c=command: self.once(c, self.env))
                if sample is not None:
                    self.samples[command.name].append(sample)

    def warm_up(self):
        """Also finds the slow ones."""
        for command in list(self.commands) if self.once is not run_stages else []:
            reason = self.try_to(command, lambda c=command: c.trial(self.env))
            if reason:
                self.drop(command, reason)
        for command in list(self.commands):
            walls = []
            for _ in range(1 if self.once is run_slice else WARM_UP):
                sample = self.try_to(command, lambda c=command: self.once(c, self.env))
                if sample is None:
                    break
                if self.once is not run_slice:
                    walls.append(sum(sample) if self.once is run_stages else sample[0])
            if sum(walls) > WARM_UP * SLOW_MS * 1000:
                command.stride = STRIDE

    def run(self, rounds):
        self.warm_up()
        for number in range(rounds):
            self.round(number)
        return {"samples": self.samples, "reasons": self.reasons}


def race_as(who, kind, commands, rounds):
    signal.signal(signal.SIGALRM, on_alarm)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    who.become()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.chdir("/")
    return Race(commands, who.env, ONCE[kind]).run(rounds)


# --- in the driver ------------------------------------------------------------------------------


def race(who, kind, commands, rounds):
    """{"samples": {NAME: [...]}, "reasons": {NAME: TEXT}} of the commands, run by `who`.

    A sample of "turns" and "apart" is (wall us, CPU us), of "pairs" a rate, of "stages" three times in us.
    """
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_fd)
        status = 1
        try:
            with os.fdopen(write_fd, "w") as out:
                json.dump(race_as(who, kind, commands, rounds), out)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write_fd)
    with os.fdopen(read_fd) as answer:
        text = answer.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RuntimeError(f"the measuring process ended with wait status {status}")
    return json.loads(text)
