# SPDX-License-Identifier: Apache-2.0
"""Readers that never read, roles that stand still, much output, many zombies: each run ends,
in time, with one result that is right."""

import contextlib
import fcntl
import os
import shutil
import signal
import termios
import time

from internet import Internet, need
from network_ends import helper_below
from scarce import *  # noqa: F403


def status_of(pid):
    """What the kernel says of a process that was not waited for; of a dead one it leaves rows out."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.split(":", 1) for line in file)


def peaks_of(pid):
    """The most memory it had, in kB; nothing once it has ended, which it may do at any time."""
    return [int(words.split()[0]) for name, words in status_of(pid).items() if name == "VmHWM"]


# --- a reader that never reads ---------------------------------------------------------------------


KINDS = ("terminal", "pipe", "socket", "packet socket")
STREAMS = {"stdout": "yes", "stderr": "yes >&2", "both": "yes & yes >&2"}


@test("a reader that never reads doesn't hold up the end: the time limit ends the run, and the result is right", limit=120)
def _():
    """All of them at once: each takes its time limit and the 5 s for which a reader is waited for."""
    with Folder() as f, contextlib.ExitStack() as kept:
        runs = []
        for kind in KINDS:
            for stream, script in STREAMS.items():
                away, ours = unread(kind)
                kept.callback(os.close, ours)
                path = f / f"{kind}-{stream}"
                where = {name: away for name in ("stdout", "stderr") if stream in (name, "both")}
                runs.append((f"{kind}, {stream}", path, start(
                    "run", "-p", "base", "--network", "none", "-t", str(3 * SLOW), f"--json={path}", "--max-output", "8K", "--",
                    "/bin/sh", "-c", script, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **where})))  # fmt: skip
                os.close(away)
        for name, path, process in runs:
            tried()
            # What standard error gets last waits for its reader, as in any program; the result is there before.
            wait_until(lambda path=path: os.path.exists(path), f"the result ({name})", 20)
            value = read_result(path)
            equal((value["status"], value["exit_code"]), ("timeout", None), f"{name}: end")
            for stream in ("stdout", "stderr"):
                if name.endswith((stream, "both")):
                    true(value[stream]["bytes"] > 8192 and value[stream]["truncated"], f"{name}: {value[stream]['bytes']} bytes")
            contains(" ".join(value["warnings"]), "was not read to its end", f"{name}: warnings")
            if "stderr" not in name and "both" not in name:
                equal(finish(process, 20).code, 124, f"{name}: exit status")
            else:
                process.terminate()
                finish(process, 20)


@test("a terminal that was opened by another user, as sudo and su leave it, doesn't either", who="root")
def _():
    away, ours = unread("terminal")
    os.fchmod(away, 0o600)

    def become_nobody():
        os.setsid()
        fcntl.ioctl(away, termios.TIOCSCTTY, 0)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    done = run("-q", "-p", "base", "--network", "none", "-t", "1", "--", "/bin/sh", "-c", "exec yes", stdout=away,
               preexec_fn=become_nobody, cwd="/")  # fmt: skip
    os.close(away)
    os.close(ours)
    shutil.rmtree("/dev/shm/cejail-65534", ignore_errors=True)  # nobody's runtime directory
    equal(done.code, 124, f"exit status ({done!r})")


@test("what a reader that comes late finds is whole, when it comes before the time limit")
def _():
    for kind in ("pipe", "socket"):
        away, ours = unread(kind)
        process = start("run", "-q", "-p", "base", "--network", "none", "-t", scaled(30), "--",
                        "/bin/sh", "-c", "head -c 300000 /dev/zero; echo end >&2", stdout=away)  # fmt: skip
        os.close(away)
        wait_until(lambda process=process: os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None, "it")
        time.sleep(0.3)
        count = 0
        while block := os.read(ours, 1 << 16):
            count += len(block)
        os.close(ours)
        tried()
        equal((finish(process).code, count), (0, 300000), f"{kind}: exit status and bytes")


@test("output that came to its end with nobody to read it is counted exactly")
def _():
    with Folder() as f:
        away, ours = unread("pipe")
        size = 100000
        process = start("run", "-p", "base", "--network", "none", "-t", str(3 * SLOW), f"--json={f / 'r'}", "--max-output", "1M", "--",
                        "/bin/sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x", stdout=away)  # fmt: skip
        os.close(away)
        done = finish(process, 20)
        os.close(ours)
        value = read_result(f / "r")
        equal((value["status"], value["stdout"]["bytes"], value["stdout"]["kept"]), ("exited", size, size), f"result ({done!r})")


@test("a result that nobody reads blocks only its own process, and TERM ends that")
def _():
    away, ours = unread("pipe")
    process = start("run", "--json", "--max-output", "1M", "-p", "base", "--network", "none", "--",
                    "/bin/sh", "-c", "head -c 400000 /dev/zero", stdout=away)  # fmt: skip
    os.close(away)
    wait_until(lambda: not children_of(process.pid) and in_write(process.pid), "the result on its way", 20)
    process.terminate()
    equal(finish(process, 10).code, -signal.SIGTERM, "how it ended")
    os.close(ours)


def in_write(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        state = file.read().rsplit(") ", 1)[1][0]
    with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
        return state == "S" and "pipe" in file.read()


# --- roles that stand still ---------------------------------------------------------------------------

STEP_TIMEOUT = 10  # seconds: runtime/jail/protocol.h


def freeze_early(f, i, whom):
    """A run whose supervisor or init is stopped as early as we can hit it, i steps later each time."""
    path = f / f"{whom}-{i}"
    process = start("run", "-p", "base", "--network", "none", "-t", scaled(60), f"--json={path}", "--", "/bin/echo", "fine")
    end = time.monotonic() + 5 * SLOW
    while time.monotonic() < end and process.poll() is None and not children_of(process.pid):
        pass
    for _ in range(i * 300):
        pass  # not to wait for something: to hit it in between
    victims = [process.pid] if whom == "supervisor" else children_of(process.pid)
    for victim in victims[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGSTOP)
    return process, path, victims


@test("a role that stands still during set-up, longer than a step may take, fails the run in words", limit=180)
def _():
    with Folder() as f:
        frozen = {"supervisor": [], "init": []}
        for whom, list_ in frozen.items():
            list_.extend(freeze_early(f, i, whom) for i in range(40 if LONG else 6))
        time.sleep(STEP_TIMEOUT + 1)  # the kernel's clock for a step, which SLOW does not slow down
        for whom, list_ in frozen.items():
            for process, path, victims in list_:
                for victim in victims:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGCONT)
                done = finish(process, 30)
                value = read_result(path)
                tried()
                wanted = {"exited": 0, "setup_error": 125}
                true(value["status"] in wanted, f"{whom}: status {value['status']}")
                equal(done.code, wanted[value["status"]], f"{whom}: exit status ({done!r})")
                if value["status"] == "setup_error":
                    true("reach" in value["error"]["message"] or "ended before" in value["error"]["message"], f"{value['error']}")


def stop(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def resume(*pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@test("init that stands still is ended by the time limit, whatever the program does")
def _():
    pause = min(2 * SLOW, 8)
    with Folder() as f:
        runs = []
        for script in ("sleep 6000", "exit 3", "exec yes"):
            runs.append((script, *running(f, script.split()[-1], f"sleep {pause}; {script}", "-t", str(2 * pause))))
            stop(*children_of(runs[-1][1].pid))
        for script, process, path in runs:
            done = finish(process, 20)
            tried()
            equal((done.code, read_result(path)["status"]), (124, "timeout"), f"{script}: end ({done!r})")


@test("a supervisor that stood still past the time limit says timeout as soon as it goes on")
def _():
    with Folder() as f:
        process, path = running(f, "r", "sleep 6000", "-t", "2")
        stop(process.pid)
        time.sleep(3)  # for nothing that happens, but past the limit
        resume(process.pid)
        done = finish(process, 10)
        equal((done.code, read_result(path)["status"]), (124, "timeout"), f"end ({done!r})")


@test("a supervisor that stood still while its program ended tells that end")
def _():
    with Folder() as f:
        process, path = running(f, "r", "sleep 0.1; echo last; exit 3", "-t", scaled(30))
        inside = [pid for init in children_of(process.pid) for pid in children_of(init)]
        true(inside, "the program runs")
        stop(process.pid)
        wait_until(lambda: all(describe_process(pid) is None for pid in inside), "the end of the program")
        resume(process.pid)
        finish(process, 10)
        value = read_result(path)
        equal((value["status"], value["exit_code"], value["stdout"]["text"]), ("exited", 3, "ready\nlast\n"), "end")


@test("a program that is stopped from outside goes on when it is continued")
def _():
    with Folder() as f:
        process, path = running(f, "r", "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; done; exit 4", "-t", scaled(30))
        inside = [pid for init in children_of(process.pid) for pid in children_of(init)]
        for _ in range(20):
            with contextlib.suppress(ProcessLookupError):
                stop(*inside)
            resume(*inside)
            tried()
        finish(process, 20)
        equal(read_result(path)["exit_code"], 4, "exit code")


def parent_of(pid):
    return int(status_of(pid)["PPid"])


for helper in ("pasta", "slirp4netns"):

    @test(f"{helper} that stands still holds up neither the program nor the end")
    def _(helper=helper):
        need(helper)
        for victim_of in (lambda pid: pid, parent_of):  # itself, and its keeper, which watches it
            with Internet() as net, net.talk("import time; print('ready', flush=True); time.sleep(100)", "--uplink", helper, "--network-start", "early", "-t", str(2 * SLOW)) as jail:
                child = wait_until(lambda: helper_below(jail.process.pid, helper), f"a process {helper} below the run")
                stop(victim_of(child))
                equal(jail.result()["status"], "timeout", "status")
                tried()


@test("a signal that comes when the run is over doesn't take its result away")
def _():
    """Copying the artefacts out is the longest time between the end of a program and its result."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        with Folder() as f:
            size = (4 if MACHINE else 48) << 20
            process = start("run", "-p", "base", "--network", "none", f"--json={f / 'r'}", "-o", f / "out", "--", "/bin/sh", "-c",
                            f"cd out; for i in 1 2 3 4 5 6 7 8; do head -c {size // 8} /dev/zero > $i; done")  # fmt: skip
            wait_until(lambda f=f: os.path.isdir(f / "out") and os.listdir(f / "out"), "the first artefact", 20)
            process.send_signal(number)
            done = finish(process)
            tried()
            value = read_result(f / "r")
            equal((value["status"], done.code, len(value["artifacts"])), ("exited", 0, 8), f"{number!r}: end ({done!r})")


# --- much of it ---------------------------------------------------------------------------------------------


@test("much output passes through, is counted exactly and costs the supervisor no memory", limit=300)
def _():
    size = (10 << 30 if LONG and not MACHINE else 20 << 20 if MACHINE else share(400 << 20)) // 4096 * 4096
    with Folder() as f:
        process = start("run", "-p", "base", "--network", "none", "-t", scaled(300), f"--json={f / 'r'}", "--",
                        "/bin/sh", "-c", f"head -c {size} /dev/zero", stderr=subprocess.DEVNULL)  # fmt: skip
        count, peaks = 0, []
        while block := os.read(process.stdout.fileno(), 1 << 20):
            count += len(block)
            if count < size and len(peaks) * size <= count * 4:  # then comes the result, which takes memory of its own
                peaks += peaks_of(process.pid)
        finish(process)
        value = read_result(f / "r")
        equal((count, value["stdout"]["bytes"], value["status"]), (size, size, "exited"), "bytes read, bytes told, status")
        true("asan" in CEJAIL or peaks[-1] - peaks[1] < 1024, f"peaks of its memory in kB: {peaks}")


@test("to a result and to events the same: counted exactly, and no memory", limit=120)
def _():
    size = 4 << 20 if MACHINE else share(100 << 20)
    reader, writer = os.pipe()
    process = start("run", "--json", "--events-fd", str(writer), "-p", "base", "--network", "none", "-t", scaled(100),
                    "--max-output", "8K", "--", "/bin/sh", "-c", f"head -c {size} /dev/zero", pass_fds=(writer,), stderr=subprocess.DEVNULL)  # fmt: skip
    os.close(writer)
    events, told, peaks = b"", 0, []
    while block := os.read(reader, 1 << 20):
        peaks += peaks_of(process.pid)
        lines = (events + block).split(b"\n")
        events = lines.pop()
        told += len(lines)
    os.close(reader)
    value = parse_result(finish(process).out)
    equal(value["stdout"]["bytes"], size, "bytes told")
    true(told > 2, f"{told} events")
    true("asan" in CEJAIL or max(peaks) < 32 * 1024, f"peak {max(peaks)} kB")


@test("thousands of zombies are no obstacle, and go with the run", limit=300)
def _():
    count = 10000 if LONG and not MACHINE else 300 if MACHINE else share(2000)
    value = probe_result("behave", "zombies", str(count), options=(
        "--network", "none", "--pids-limit", str(count + 10), "-m", "4G", "-t", scaled(200), "--cpus", "2"), limit=200)  # fmt: skip
    tried(count)
    equal((value["status"], value["exit_code"], value["stdout"]["text"]), ("exited", 0, "parent done\n"), "end")
