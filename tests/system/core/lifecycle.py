# SPDX-License-Identifier: Apache-2.0
"""How runs end: by themselves, by force, by a caller or a supervisor who goes away.  That nothing is
left is looked at after every test (harness.what_is_left)."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import time

from harness import *  # noqa: F403


def started(*args, **options):
    """A run that has said "ready"."""
    process = start("run", *args, **options)
    wait_until(lambda: b"ready" in process.stdout.read1(100), "the program's first word", 20)
    return process


def sleeper(*options, **more):
    return started("-p", "base", *options, "--", "/bin/sh", "-c", "echo ready; sleep 300 & sleep 300", **more)


@test("INT, TERM and HUP cancel the run, and everything inside is gone")
def _():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = sleeper()
        process.send_signal(number)
        done = finish(process, 10)
        true(done.code != 0, f"{number!r}: exit status 0")
        equal(what_is_left_of_processes(), [], "processes left")


def what_is_left_of_processes():
    end = time.monotonic() + 10 * SLOW
    while (left := descendants()) and time.monotonic() < end:
        time.sleep(0.02)
    return list(left.values())


@test("a cancelled run has one result, with the output written before")
def _():
    with Folder() as f:
        process = sleeper(f"--json={f / 'r'}")
        process.send_signal(signal.SIGTERM)
        finish(process, 10)
        with open(f / "r", encoding="utf-8") as file:
            value = parse_result(file.read())
        equal((value["status"], value["stdout"]["text"]), ("cancelled", "ready\n"), "result")


@test("a caller in a cgroup that was emptied by a kill runs jails", who="root")
def _():
    # Linux since 6.14 kills what clone3(2) makes in another cgroup from there.
    if not cgroup_roots():
        raise Skip("no cgroup v2 hierarchy is mounted here")
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = next(line[3:].strip() for line in file if line.startswith("0::"))
    place = f"{cgroup_roots()[0]}{own.rstrip('/')}/killed-{os.getpid()}"
    os.mkdir(place)
    try:
        with open(f"{place}/cgroup.kill", "w", encoding="utf-8") as file:
            file.write("1")
        for options in ((), ("--network", "public")):
            enter = f'echo 0 > {place}/cgroup.procs && exec "$@"'
            command = ["/bin/sh", "-c", enter, "sh", CEJAIL, "run", "-p", "base", *options, "--", "/bin/echo", "in"]
            done = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * SLOW)
            equal((done.returncode, done.stdout), (0, b"in\n"), f"{options}: {done.stderr}")
    finally:
        wait_until(lambda: open(f"{place}/cgroup.events", encoding="utf-8").read().startswith("populated 0"), "an empty cgroup")
        os.rmdir(place)


@test("many signals at once cancel once")
def _():
    process = sleeper()
    for _ in range(20):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
    finish(process, 10)


@test("killing the supervisor kills the whole jail")
def _():
    process = sleeper()
    process.kill()
    process.wait()
    equal(what_is_left_of_processes(), [], "processes left")
    sweep()


@test("the next run cleans up after a killed supervisor")
def _():
    before = inventory()
    process = sleeper()
    process.kill()
    process.wait()
    equal(what_is_left_of_processes(), [], "processes left")
    sh("true").exits(0)
    equal(what_is_left(before), [], "left after the next run")


@test("a supervisor killed at any moment of its start leaves no process, and after gc nothing at all")
def _():
    before = inventory()
    for step in range(12):
        process = start("run", "-p", "base", "--", "/bin/sleep", "300")
        time.sleep(step * 0.004 * SLOW)
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
    equal(what_is_left_of_processes(), [], "processes left")
    cejail("gc").exits(0)
    equal(what_is_left(before), [], "left after gc")


@test("a supervisor that is told to end at any moment of its start leaves nothing at all")
def _():
    for step in range(12):
        process = start("run", "-p", "base", "--", "/bin/sleep", "300")
        time.sleep(step * 0.004 * SLOW)
        process.terminate()
        done = finish(process, 10)
        true(done.code != 0, f"after {step * 4} ms: exit status 0")


@test("a daemon that keeps all pipes open does not delay the end")
def _():
    probe("behave", "daemon").exits(0).says("parent done\n")


SEND_OUTPUT_AWAY = """
import array, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect('/box/api')
s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1, 2]))])
s.recv(1)
print('parent done')
"""


@test("a program that passes its output descriptor to a server outside does not delay the end")
def _():
    for terminal in ((), ("--tty",)):
        with Folder() as f, socket.socket(socket.AF_UNIX) as server:
            server.bind(f / "s")
            os.chmod(f / "s", 0o777)
            server.listen()
            process = start("run", "-p", "python", "--network", "none", *terminal,
                            "--connect", f"unix:{f / 's'}:/box/api", "-c", SEND_OUTPUT_AWAY)  # fmt: skip
            connection, _ = server.accept()
            _, kept, _, _ = socket.recv_fds(connection, 1, 2)
            connection.send(b"y")
            done = finish(process, 20).exits(0)
            equal((len(kept), done.out.replace("\r", "")), (2, "parent done\n"), "descriptors kept outside, and stdout")
            for fd in kept:
                os.close(fd)
            connection.close()


@test("processes that restart each other for ever end with the run")
def _():
    probe("behave", "respawn").exits(0).says("parent done\n")


@test("a program that stops itself is ended by the clock")
def _():
    probe("behave", "stop", options=("-t", "1")).exits(124)
    probe("behave", "stop-all", options=("-t", "1")).exits(124)


@test("a program that leaves many zombies still ends normally")
def _():
    probe("behave", "zombies", "50").exits(0).says("parent done\n")


@test("orphans are collected: hundreds of them pass through a limit of twenty")
def _():
    probe("behave", "orphans", "300", options=("--pids-limit", "20", "-t", scaled(60))).exits(0).says("parent done\n")


@test("a program that closes its pipes and goes on is waited for")
def _():
    probe("behave", "close").exits(7)  # its status, a second after it has closed them


@test("a program that fills both pipes at once isn't stuck")
def _():
    process = start("run", "-p", "base", "-f", f"{PROBES}/behave:/box/behave", "--", "/box/behave", "fill", "3000000")
    done = finish(process, 30)
    equal((done.code, len(done.out)), (0, 3000000), "exit status and bytes")


@test("a first process that calls PTRACE_TRACEME does not block the run")
def _():
    done = probe("behave", "traceme")
    equal(done.code, 128 + signal.SIGTERM, "exit status")


@test("a supervisor that is stopped and continued goes on")
def _():
    process = start("run", "-p", "base", "--", "/bin/sh", "-c", "echo ready; sleep 1; echo end")
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    process.send_signal(signal.SIGCONT)
    finish(process).exits(0).says("ready\nend\n")


@test("a user's bus that never answers doesn't keep a run from ending, nor does its helper stay", who="user")
def _():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        with Folder() as f, socket.socket(socket.AF_UNIX) as bus:
            bus.bind(f / "bus")
            bus.listen()
            process = start("run", "-p", "base", "--network", "none", "--", "/bin/sleep", "300",
                            env=environment(DBUS_SESSION_BUS_ADDRESS=f"unix:path={f / 'bus'}", XDG_RUNTIME_DIR=f.path))  # fmt: skip
            wait_until(lambda: len(descendants()) > 1, "a helper or the jail")
            process.send_signal(number)
            done = finish(process, 5)
            true(done.code != 0, f"{number!r}: exit status 0")
            equal(what_is_left_of_processes(), [], f"{number!r}: processes left")
    sweep()


@test("a caller that goes away cancels the run")
def _():
    middle = subprocess.Popen(
        ["/bin/sh", "-c", f"{CEJAIL} run -p base -- /bin/sh -c 'echo ready; sleep 300' & wait"],
        env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: b"ready" in middle.stdout.read1(100), "the program's first word")
    os.killpg(middle.pid, signal.SIGHUP)
    await_exit(middle, 10)
    middle.stdout.close()
    equal(what_is_left_of_processes(), [], "processes left")


@test("ps lists a run while it lives, and not after")
def _():
    process = sleeper("--id", "test-ps-run")
    contains(cejail("ps").exits(0).out, "test-ps-run", "ps")
    process.terminate()
    finish(process, 10)
    lacks(cejail("ps").exits(0).out, "test-ps-run", "ps")


@test("kill ends a run by its id")
def _():
    with Folder() as f:
        process = sleeper("--id", "test-kill-run", f"--json={f / 'r'}")
        cejail("kill", "test-kill-run").exits(0)
        finish(process, 10)
        with open(f / "r", encoding="utf-8") as file:
            equal(json.load(file)["status"], "cancelled", "status")


@test("kill with an unknown id is refused by name")
def _():
    refused(cejail("kill", "no-such-run"), "no-such-run", code=125)


@test("an id can be in use only once")
def _():
    process = sleeper("--id", "test-same-id")
    refused(sh("true", "--id", "test-same-id"), "the id 'test-same-id' is in use", "cejail kill test-same-id")
    process.terminate()
    finish(process, 10)


@test("gc removes what a killed supervisor left, and keeps the records of current runs")
def _():
    before = inventory()
    dead, alive = sleeper("--id", "test-gc-dead"), sleeper("--id", "test-gc-alive")
    dead.kill()
    dead.wait()
    # its init holds the record until it is gone, too
    wait_until(lambda: cejail("gc").exits(0) and "test-gc-dead" not in cejail("ps").exits(0).out, "the sweep")
    contains(cejail("ps").exits(0).out, "test-gc-alive", "ps")
    equal(alive.poll(), None, "the living run")
    alive.terminate()
    finish(alive, 10)
    equal(what_is_left(before), [], "left behind")


@test("kill of a run whose supervisor was killed is refused")
def _():
    process = sleeper("--id", "test-gone")
    process.kill()
    process.wait()
    true(cejail("kill", "test-gone").code != 0, "kill of a dead run said it worked")
    sweep()


@test("the supervisor's memory doesn't grow with the output")
def _():
    # no limit may end the run before its supervisor is looked at: a dead one has no memory
    script = "head -c 30000000 /dev/zero; echo ready >&2; sleep 1000"
    process = start("run", "-p", "base", "-t", scaled(60), "--", "/bin/sh", "-c", script)
    count = len(process.stdout.read(30000000))
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        words = dict(line.split(":", 1) for line in file)
    process.terminate()
    done = finish(process)
    equal(count, 30000000, f"bytes of a run that goes on ({done!r})")
    peak = int(words["VmHWM"].split()[0])
    true("asan" in CEJAIL or peak < 16 * 1024, f"peak {peak} kB")


@contextlib.contextmanager
def locked_record(name, pid):
    """A record like that of a run whose supervisor is this process."""
    place = next(place for place in runtime_dirs() if os.path.isdir(f"{place}/runs"))
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        start_ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    path = f"{place}/runs/{name}.json"
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # or a sweep removes it
        json.dump({"id": name, "profile": "base", "cgroup": "", "cgroup_inode": 0, "supervisor_pid": pid,
                   "supervisor_start": start_ticks, "init_pid": 0, "started_ms": 0}, file)  # fmt: skip
        file.flush()
        try:
            yield path
        finally:
            os.unlink(path)


@contextlib.contextmanager
def cgroup_of(name, pid):
    """A cgroup below our own with this process in it; None where we may not make one."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = next((line[3:].strip() for line in file if line.startswith("0::")), "")
    path = f"{(cgroup_roots() or [''])[0]}{own.rstrip('/')}/{name}"
    try:
        os.mkdir(path)
    except OSError:
        yield None
        return
    try:
        with contextlib.suppress(OSError), open(f"{path}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(pid))
        yield path
    finally:
        with contextlib.suppress(OSError), open(f"{path}/../cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(pid))
        os.rmdir(path)


@test("the tests find what a run leaves: a process, a record, a cgroup, a file; they ignore what another cejail holds")
def _():
    cejail("gc").exits(0)  # makes the records' directory
    before, me = inventory(), os.getpid()
    planted = subprocess.Popen(["/bin/sleep", "300"])
    file = f"/tmp/cejail-system-{me}-planted"
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: (planted.kill(), planted.wait()))
        open(file, "w", encoding="ascii").close()
        stack.callback(os.unlink, file)
        record = stack.enter_context(locked_record(f"planted-{me}", planted.pid))
        others = stack.enter_context(locked_record(f"others-{me}", me))  # we are not below ourselves
        cgroup = stack.enter_context(cgroup_of(f"cejail-planted-{me}", planted.pid))
        left = what_is_left(before, 0.2)
        for path in filter(None, (record, cgroup, file)):
            true(any(f" {path} (" in words for words in left), f"{path} is not found: {left}")
        true(any(words.startswith(f"process {planted.pid} ") for words in left), f"the process is not found: {left}")
        true(not any(others in words for words in left), f"found, though a living process holds it: {left}")
    equal(what_is_left(before), [], "left at the end")


@test("--tty gives the program a terminal of its own")
def _():
    done = run("-p", "base", "--tty", "--", "/bin/sh", "-c", "tty; [ -t 0 ] && [ -t 1 ] && echo terminal")
    contains(done.out, "/dev/pts/", "stdout")
    contains(done.out, "terminal", "stdout")


@test("on the jail's own terminal TIOCSTI and TIOCLINUX are refused, too")
def _():
    done = probe("attempt_files", "tiocsti", "tiocsti_high_bits", "tioclinux", options=("--tty",))
    for name in ("tiocsti", "tiocsti_high_bits", "tioclinux"):
        contains(done.out, f"{name} HELD", "stdout")


@test("shell runs the profile's interactive command")
def _():
    done = cejail("shell", "-p", "shell", given="echo in the $((1+1))nd\nexit 5\n")
    contains(done.out, "in the 2nd", "stdout")
    equal(done.code, 5, "exit status")
