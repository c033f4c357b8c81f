# SPDX-License-Identifier: Apache-2.0
"""SIGKILL to each role of a run: at each of its system calls, in the middle of its work, and by way of its
process group, its terminal and its parent.

The supervisor's death: within seconds no process, link, table or mount is left; the record, and the empty
cgroup it names, go with `cejail gc` or the next run, and then there is nothing at all.  Any other's death: one
result, a documented end, and nothing left.  inject (tests/system/faults/inject.c) kills at a call.
"""

import contextlib
import glob
import os
import pty
import random
import signal
import socket
import subprocess
import threading
import time
import types

from faults import answer_calls
from harness import *  # noqa: F403
from internet import *  # noqa: F403

INJECT = f"{PROBES}/inject"
EXIT_CODE = 7
PROGRAM = f"echo hello; mkdir -p out; echo whole > out/artifact; exit {EXIT_CODE}"
# The network is built when the first socket is opened.
USE_NETWORK = "python3 -ISc 'import _socket; _socket.socket()'; "
NAMELESS = "/dev/shm"  # has files without a name (O_TMPFILE), which a kill can't leave
SEED = int(os.environ.get("CEJAIL_TEST_SEED", "1"))  # of the random moments


# --- one run ---------------------------------------------------------------------------


class Run:
    """cejail, started with an id of its own and the folder of its result and artefacts."""

    count = 0

    def __init__(self, base, net):
        Run.count += 1
        self.program = USE_NETWORK + PROGRAM if net else PROGRAM
        self.id = f"kill-{os.getpid()}-{Run.count}"
        self.folder = os.path.join(base, self.id)
        os.mkdir(self.folder)
        self.net = net
        self.done, self.report = None, []
        self.before = set(descendants())  # the Internet's stations

    def words(self, *options, program=None):
        files = (f"--json={self.folder}/result", "-o", f"{self.folder}/out")
        return ("run", "--id", self.id, *files, "-p", "base", *options, "--", "/bin/sh", "-c", program or self.program)

    def inject(self, *orders, options, **more):
        """To its end, with one kill."""
        words = (INJECT, f"{self.folder}/report", *orders, "--", CEJAIL, *self.words(*options))
        inside = self.net.inside if self.net else {}
        process = subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **inside, **more)  # fmt: skip
        self.done = finish(process, 20, args=orders)
        if self.done.code == 99:
            raise Failure(f"inject: {self.done.err}")
        with open(f"{self.folder}/report", encoding="utf-8") as file:
            self.report = [line.split() for line in file]

    def lines(self, word):
        return [line for line in self.report if line[0] == word]

    def result(self):
        with open(f"{self.folder}/result", encoding="utf-8") as file:
            return parse_result(file.read(), self.done)

    # --- what it leaves ---

    def alive(self):
        return [words for pid, words in descendants().items() if pid not in self.before and "(Z)" not in words]

    def left_in_host(self):
        return self.net.left() if self.net else []

    def records(self):
        return [path for place in runtime_dirs() for path in glob.glob(f"{place}/runs/{self.id}.json")]

    def is_gone(self, artifacts=True, goes_on=False):
        """Within three seconds, all but its record and its cgroup; in the caller's folder only whole files.  A run that
        goes on takes its time."""
        for role, how, number, ms in [line[1:] for line in self.lines("end")]:
            true(goes_on or int(ms) <= 3000 * SLOW, f"{role} ({how} {number}) outlived the kill by {ms} ms")
        # what the network had in the host is given back by a kernel worker, last of all on a busy machine
        for what, seconds in ((self.alive, 3), (self.left_in_host, 4)):
            end = time.monotonic() + seconds * SLOW
            while what():
                if time.monotonic() > end:
                    raise waited(seconds, f"left: {what()[:5]}")
                time.sleep(0.002)
        kept = sorted(os.listdir(self.folder))
        true(set(kept) <= {"report", "result", "out"}, f"left in the caller's folder: {kept}")
        for name in os.listdir(f"{self.folder}/out") if artifacts and "out" in kept else ():
            with open(f"{self.folder}/out/{name}", encoding="utf-8") as file:
                equal((name, file.read()), ("artifact", "whole\n"), "an artefact in the caller's folder")

    def is_swept(self, by_next_run=False):
        """At once; but somebody else's sweep may have it in hand, and be one that is killed."""
        end = time.monotonic() + SLOW
        while True:
            if by_next_run:
                sh("true", "--network", "none").exits(0)
            else:
                cejail("gc").exits(0)
            if not (self.records() or private_dirs(self.id)) or time.monotonic() > end:
                break
            time.sleep(0.05)
        equal(self.records() + private_dirs(self.id), [], "records and directories left")

    def is_one_result(self, goes_on=False):
        """It ended in one of the documented ways, its result says the same, and its supervisor left nothing."""
        value, code = self.result(), self.done.code
        codes = {"exited": EXIT_CODE, "signaled": 128 + signal.SIGKILL, "setup_error": 125}
        equal(code, codes.get(value["status"]), f"exit status with '{value['status']}' ({self.done.err})")
        errors = [line for line in self.done.err.splitlines() if not line.startswith(("cejail: warning: ", "cejail: ended by "))]
        if code == 125:
            equal(len(errors), 1, f"error lines of {self.done.err!r}")
            contains(errors[0], value["error"]["message"], "the error line")
        else:
            equal(errors, [], "error lines")
            equal(value["signal"], signal.SIGKILL if code == 137 else None, "signal")
        true(not goes_on or code == EXIT_CODE, f"a helper's death ended the run: {self.done!r}")
        if code == EXIT_CODE:
            equal(self.done.out, "hello\n", "output")
            equal([one["path"] for one in value["artifacts"]], ["artifact"], "artefacts")
        equal(self.records() + private_dirs(self.id), [], "records and directories left")


class CallingRun(Run):
    """Its program calls a tool, which a thread of ours answers: until its socket ends."""

    def __init__(self, base, net):
        super().__init__(base, net)
        self.program = f"""echo '{{"id":1,"name":"say"}}' >&4; read -r answer <&4; {PROGRAM}"""

    def inject(self, *orders, options):
        near, far = socket.socketpair()
        caller = threading.Thread(target=answer_calls, args=(near,))
        caller.start()
        number = far.fileno()
        with open(f"{self.folder}.tools", "w", encoding="utf-8") as file:
            file.write('[{"name":"say"}]')
        try:
            super().inject(*orders, options=(*options, "--tools", file.name, "--calls-fd", str(number)), pass_fds=[number])
        finally:
            far.close()
            caller.join(10 * SLOW)
        true(not caller.is_alive(), "the caller's socket does not end")


def no_leaves():
    """Cgroups of these runs: none, as soon as a user's manager has seen that its scopes are empty."""
    mine = f"/cejail-kill-{os.getpid()}-"
    wait_until(lambda: not any(mine in path for path in our_cgroups()), f"the end of the cgroups '*{mine}*'", 2)


# --- at each call ------------------------------------------------------------------------


def calls_of(base, net, options, kind=Run):
    """How many system calls each role makes: {role: number}."""
    for _ in range(5):
        run = kind(base, net)
        run.inject("list", options=options)
        if not was_late(run.done):
            break
    equal(run.done.code, EXIT_CODE, f"exit status of an undisturbed run ({run.done.err})")
    last = {}
    for line in run.lines("call"):
        last[line[1]] = int(line[2])
    return last


def sample(last, roles, wanted):
    """(role, number) of every call; in the short form `wanted` of them, evenly spread, and fewer where it is slow or not root."""
    wanted = max(5, wanted // (4 if EMULATED else STEP))
    places = [(role, number) for role in roles for number in range(1, last.get(role, 0) + 1)]
    if LONG or len(places) <= wanted:
        return places
    kept = [places[i * len(places) // wanted] for i in range(wanted)]
    left_out = set(last) & set(roles) - {role for role, _ in kept}
    return kept + [(role, (last[role] + 1) // 2) for role in roles if role in left_out]


def kill_at(base, net, options, place, victim, count, kind=Run):
    role, number = place
    for _ in range(3):
        run = kind(base, net)
        run.inject("kill", role, str(number), victim, options=options)
        if not was_late(run.done):
            break
    if not run.lines("done") or run.lines("miss"):
        return  # the run was shorter this time, or the victim wasn't born
    tried()
    goes_on = victim in ("gateway", "loader", "intermediate", "keeper", "helper", "scope-helper")
    run.is_gone(goes_on=goes_on)
    if victim == "supervisor":
        equal(run.done.code, 128 + signal.SIGKILL, "the supervisor's exit status")
        run.is_swept(by_next_run=count % 8 == 0)
    else:
        run.is_one_result(goes_on)


def kill_at_each(victim, roles, options, wanted, net=None, kind=Run):
    with Folder(NAMELESS) as f:
        last = calls_of(f.path, net, options, kind)
        true("supervisor" in last and "init" in last, f"calls were seen of {last} only")
        places = sample(last, roles, wanted)
        true(places, f"no call of {roles} was seen")
        for count, place in enumerate(places):
            try:
                kill_at(f.path, net, options, place, victim, count, kind)
            except Failure as failure:
                raise Failure(f"{victim} killed at call {place[1]} of {place[0]}: {failure}") from None
    no_leaves()


NONE = ("--network", "none")


@test("a supervisor killed at any system call of any role leaves nothing that gc or the next run doesn't sweep", limit=600)
def _():
    kill_at_each("supervisor", ("scope-helper", "supervisor", "init", "payload"), NONE, 80)


@test("when init is killed at any system call the run ends with one result and leaves nothing", limit=600)
def _():
    kill_at_each("init", ("supervisor", "init", "payload"), NONE, 50)


@test("when the payload is killed before it is executed the run ends with one result and leaves nothing")
def _():
    kill_at_each("payload", ("payload",), NONE, 10)


for victim in ("supervisor", "init"):

    @test(f"when the {victim} of a run that calls a tool is killed at any system call, the caller's socket ends, and nothing is left", limit=600)
    def _(victim=victim):
        kill_at_each(victim, ("supervisor", "init"), NONE, 40, kind=CallingRun)


    @test(f"when the {victim} of a run with a setup command is killed at any system call, nothing is left", limit=600)
    def _(victim=victim):
        kill_at_each(victim, ("supervisor", "init", "payload", "payload2"), (*NONE, "--setup", "echo made > made"), 40)


    @test(f"when the {victim} of a reduced run is killed at any system call, nothing is left", limit=600)
    def _(victim=victim):
        need_reduced()
        kill_at_each(victim, ("supervisor", "init", "payload"), (*NONE, "--reduced"), 40)


if EXPECTED == "cgroup":  # where a user manager that gives cgroups is sure to be there

    @test("when the program that asks the user manager for a cgroup is killed the run goes on, and leaves nothing", who="user")
    def _():
        kill_at_each("scope-helper", ("scope-helper",), NONE, 20)


# Where processors are emulated each of these takes a minute, and the host's own kind is enough.
TOO_SLOW = ("pasta", "slirp4netns") if EMULATED else ()
ROLES_WITH_UPLINK = ("supervisor", "init", "gateway", "loader", "intermediate", "keeper", "helper")


@each_uplink("through {} a supervisor killed at any system call of any role leaves nothing in the host", limit=900, but=TOO_SLOW)
def _(*uplink):
    with Internet() as net:
        kill_at_each("supervisor", ROLES_WITH_UPLINK, ("--network", "public", *uplink), 20, net)


@each_uplink("through {}, when init is killed at any system call, the run ends with one result", limit=900, but=TOO_SLOW)
def _(*uplink):
    with Internet() as net:
        kill_at_each("init", ROLES_WITH_UPLINK, ("--network", "public", *uplink), 12, net)


@each_uplink("through {}, when the gateway is killed, the run goes on without a network", limit=900, but=TOO_SLOW)
def _(*uplink):
    with Internet() as net:
        kill_at_each("gateway", ("gateway",), ("--network", "public", *uplink), 12, net)


@each_uplink("through {}, when the process that loads rules is killed, the run goes on, with its rules or without a network", limit=900, but=TOO_SLOW)
def _(*uplink):
    with Internet() as net:
        kill_at_each("loader", ("loader",), ("--network", "public", *uplink), 12, net)


for victim, roles in (("intermediate", ("intermediate",)), ("keeper", ("supervisor", "keeper")), ("helper", ("helper",))):

    @each_uplink(f"through {{}}, when its {victim} is killed while it starts, the run goes on, and leaves nothing",
                 limit=900, but=("host", *TOO_SLOW))  # fmt: skip
    def _(*uplink, victim=victim, roles=roles):
        with Internet() as net:
            kill_at_each(victim, roles, ("--network", "public", *uplink), 12, net)


# What a run has of each kind while it lives, and a few more for those the kernel is still freeing.  A detached
# mount counts as a mount namespace.
NAMESPACES_AT_ONCE = {"net": 3, "mnt": 60, "user": 5, "pid": 3, "ipc": 3, "uts": 3, "cgroup": 3}


def live_in_a_counting_namespace(channel):
    """A user namespace in which few namespaces may be made; for as long as the test lives."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    uid, gid = os.geteuid(), os.getegid()
    check(libc.unshare(CLONE_NEWUSER), "unshare")
    map_ids((uid, uid), (gid, gid))
    for kind, count in NAMESPACES_AT_ONCE.items():
        services.write(f"/proc/sys/user/max_{kind}_namespaces", str(count))
    os.write(channel, b"!")
    signal.pause()


@test("killed supervisors leave no namespace: where few may be made at once, any number of runs can be killed", who="user")
def _():
    ready, channel = os.pipe()
    holder = os.fork()
    if holder == 0:
        try:
            live_in_a_counting_namespace(channel)
        finally:
            os._exit(1)
    os.close(channel)
    try:
        equal(os.read(ready, 1), b"!", "the word of the namespace's holder")
        with Folder(NAMELESS) as f, open(f"/proc/{holder}/ns/user", "rb") as door:
            enter = {"preexec_fn": lambda: check(libc.setns(door.fileno(), CLONE_NEWUSER), "setns")}

            def can_run():
                return sh("true", *NONE, **enter).code == 0

            true(can_run(), "no run is possible in a user namespace that counts")
            world = types.SimpleNamespace(inside=enter, left=lambda: [])
            last = calls_of(f.path, world, NONE)
            for count, place in enumerate(sample(last, ("supervisor", "init"), 20)):
                kill_at(f.path, world, NONE, place, "supervisor", count * 8 + 1)
                wait_until(can_run, f"room for namespaces after {count + 1} kills", 3)
    finally:
        os.close(ready)
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    no_leaves()


# --- in the middle of its work --------------------------------------------------------------

# Processes, output, connections and artefacts all at once, for ever.
BUSY = """
import os, socket, threading, time
os.makedirs("/box/out", exist_ok=True)
server = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        server.accept()[0].close()
def connect(address):
    while True:
        try:
            socket.create_connection(address, 1).close()
        except OSError:
            time.sleep(0.001)
threading.Thread(target=serve, daemon=True).start()
threading.Thread(target=connect, args=(server.getsockname(),), daemon=True).start()
if ADDRESS:
    threading.Thread(target=connect, args=((ADDRESS, 80),), daemon=True).start()
print("ready", flush=True)
for i in range(10**9):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    os.write(1, b"o" * 4096)
    os.write(2, b"e" * 4096)
    with open(f"/box/out/{i % 50}", "w") as file:
        file.write("x" * 1000)
"""


class Busy(Run):
    """A run in the middle of everything."""

    def __init__(self, base, net, *options):
        super().__init__(base, net)
        code = f"ADDRESS = {PUBLIC4 if net else ''!r}\n" + BUSY
        files = (f"--json={self.folder}/result", "-o", f"{self.folder}/out")
        words = ("run", "--id", self.id, *files, "-p", "python", "-t", scaled(60), *options, "-c", code)
        with open(f"{self.folder}/stdout", "wb") as out, open(f"{self.folder}/stderr", "wb") as err:
            self.process = start(*words, stdout=out, stderr=err, start_new_session=True, **(net.inside if net else {}))
        wait_until(lambda: os.path.getsize(f"{self.folder}/stdout") > 0, "the program's first word", 20)

    def child(self, name):
        return wait_until(lambda: first_named(children_of(self.process.pid), name), f"a process {name}")

    def victim(self, role):
        init = self.child("cejail-init")
        if role in ("gateway", "loader"):
            return self.child(f"cejail-{role}")
        others = [pid for pid in children_of(self.process.pid) if pid != init]
        keepers = [pid for pid in others if not first_named([pid], "cejail-gateway") and not first_named([pid], "cejail-loader")]
        if role == "supervisor":
            return self.process.pid
        if role == "init":
            return init
        if role == "payload":
            return min(children_of(init))
        return keepers[0] if role == "keeper" else children_of(keepers[0])[0]

    def finish(self, limit=10):
        try:
            code = self.process.wait(limit * SLOW)
        except subprocess.TimeoutExpired as late:
            raise waited(limit, "still running") from late
        words = []
        for stream in ("stdout", "stderr"):
            with open(f"{self.folder}/{stream}", "rb") as file:
                words.append(file.read())
            os.unlink(f"{self.folder}/{stream}")
        self.done = Done(128 - code if code < 0 else code, *words, 0, ["the busy run"])

    def has_whole_artifacts(self):
        for name in os.listdir(f"{self.folder}/out") if os.path.isdir(f"{self.folder}/out") else ():
            true(name.isdigit(), f"an artefact is called {name}")


def first_named(pids, name):
    return next((pid for pid in pids if f" {name} " in (describe_process(pid) or "")), None)


def has_ended(pid):
    return (describe_process(pid) or "(Z)").endswith("(Z)")


def kill_busy(run, role):
    keeper = run.victim("keeper") if role in ("keeper", "helper") else None
    victim = run.victim(role)
    os.kill(victim, signal.SIGKILL)
    tried()
    goes_on = keeper or role in ("gateway", "loader")
    if goes_on:  # the run goes on, closed: it still writes
        wait_until(lambda: has_ended(keeper or victim), "the keeper's end, by which the supervisor knows of the helper's")
        size = os.path.getsize(f"{run.folder}/stdout")
        wait_until(lambda: os.path.getsize(f"{run.folder}/stdout") > size + 100000, "more of its output")
        run.process.terminate()
    run.finish()
    run.has_whole_artifacts()
    if role == "supervisor":
        equal(run.done.code, 128 + signal.SIGKILL, "exit status")
        run.is_gone(artifacts=False)
        run.is_swept()
        return
    run.is_gone(artifacts=False)
    wanted = {"init": ("signaled", 137), "payload": ("signaled", 137)}.get(role, ("cancelled", 128 + signal.SIGTERM))
    value = run.result()
    equal((value["status"], run.done.code), wanted, "status and exit status")
    if goes_on:
        told = value["network"]["uplink"] if keeper else "nothing leads out" if role == "gateway" else "the count of denied packets"
        contains(" ".join(value["warnings"]), told, "the warnings")
    equal(run.records(), [], "records left")


def kill_at_random(net, roles, count, *options):
    dice = random.Random(SEED)
    with Folder(NAMELESS) as f:
        few = len(roles) if EMULATED else share(count, len(roles))
        for number in range(count * 10 if LONG else few):
            role, pause = roles[number % len(roles)], dice.random() * 0.05 * SLOW
            try:
                run = Busy(f.path, net, *options)
                time.sleep(pause)  # not to wait for something: to hit it anywhere
                kill_busy(run, role)
            except Failure as failure:
                where = f"{role} after {pause * 1000:.1f} ms, case {number} of CEJAIL_TEST_SEED={SEED}"
                raise Failure(f"{where}: {failure}") from None
    no_leaves()


@test("a busy run in which a role is killed at a random moment ends as documented and leaves nothing", limit=600)
def _():
    kill_at_random(None, ("supervisor", "init", "payload"), 12, *NONE)


@each_uplink("through {} a busy run in which a role is killed at a random moment leaves nothing in the host", limit=600, but=TOO_SLOW)
def _(*uplink):
    roles = ("supervisor", "init", "payload", "gateway", "loader") + (() if uplink[1] == "host" else ("keeper", "helper"))
    with Internet() as net:
        kill_at_random(net, roles, len(roles), "--network", "public", *uplink)


# --- by way of others --------------------------------------------------------------------------


@test("SIGKILL to the whole process group of the caller, as runners of jobs send it, leaves nothing")
def _():
    with Folder(NAMELESS) as f:
        run = Run(f.path, None)
        script = '"$@" | cat'
        words = ("/bin/sh", "-c", script, "sh", CEJAIL, *run.words(*NONE, program="echo ready; sleep 300 & sleep 300"))
        caller = subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        wait_until(lambda: b"ready" in caller.stdout.read1(100), "the program's first word", 20)
        os.killpg(caller.pid, signal.SIGKILL)
        caller.wait()
        caller.stdout.close()
        run.is_gone()
        run.is_swept()
    no_leaves()


@test("a caller who is killed doesn't end the run, as long as somebody reads its output")
def _():
    with Folder(NAMELESS) as f:
        run = Run(f.path, None)
        begin, end = os.pipe()
        words = run.words("-i", *NONE, program="echo ready; read line; echo $line")
        script = 'exec 3<&0; "$@" <&3 & wait'  # a shell gives a job in the background no standard input
        caller = subprocess.Popen(("/bin/sh", "-c", script, "sh", CEJAIL, *words), env=environment(), stdin=begin,
                                  stdout=subprocess.PIPE, start_new_session=True)  # fmt: skip
        os.close(begin)
        wait_until(lambda: b"ready" in caller.stdout.read1(100), "the program's first word", 20)
        caller.kill()
        caller.wait()
        os.write(end, b"and then\n")
        os.close(end)
        equal(caller.stdout.read(), b"and then\n", "the rest of the output")
        caller.stdout.close()
        run.is_gone()
        equal(run.records(), [], "records left")
    no_leaves()


@test("a caller who is killed, and with him the reader of the output, takes the run with him")
def _():
    with Folder(NAMELESS) as f:
        run = Run(f.path, None)
        words = ("/bin/sh", "-c", '"$@" & wait', "sh", CEJAIL, *run.words(*NONE, program="echo ready; sleep 300"))
        caller = subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        wait_until(lambda: b"ready" in caller.stdout.read1(100), "the program's first word", 20)
        caller.kill()
        caller.wait()
        caller.stdout.close()
        run.is_gone()
        equal(run.records(), [], "records left")
    no_leaves()


def on_terminal(*words):
    """cejail with a terminal of its own to control it: (pid, our end)."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(CEJAIL, [CEJAIL, *words], environment())
    wait_until(lambda: b"ready" in os.read(fd, 100), "the program's first word", 20)
    return pid, fd


@test("closing the terminal ends the run, and leaves nothing")
def _():
    with Folder(NAMELESS) as f:
        for options in ((), ("-i",), ("--tty", "-i")):
            run = Run(f.path, None)
            pid, fd = on_terminal(*run.words(*options, *NONE, program="echo ready; sleep 300"))
            os.close(fd)
            wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, f"the end of a run with {options}")
            tried()
            run.is_gone()
            equal(run.records(), [], "records left")
            equal(run.result()["status"], "cancelled", "status")
    no_leaves()
