# SPDX-License-Identifier: Apache-2.0
"""Resources (our list of threats, 2.4): whatever a program takes, by whatever road, it is no more than its limit, and
no other program runs short."""

import subprocess

from harness import *  # noqa: F403
from pointers import check_rows

LIMIT, WANTED = 16, 24  # MiB

# Roads to memory that no process has mapped, or that a look at /proc misses: exhaust_memory.c.
# SEEN: also where no cgroup counts, by the supervisor or because the road is closed there or everywhere.
# COUNTED: by a cgroup.  UNCOUNTED: by none; Linux 6.18 does not charge them to a cgroup, SECURITY.md says so.
SEEN = ("leaderless", "waiting", "tables", "messages", "semaphores", "access_lists", "filters", "terminals", "netlink",
        "keys", "loads")
COUNTED = ("unmapped", "areas", "unix", "pipes", "udp", "epolls")
UNCOUNTED = ("locks",)
ROADS = SEEN + COUNTED + UNCOUNTED

# Things the kernel counts, and how many of them a jail may have: exhaust_counts.c.  What is not about
# processes it counts for the jail's caller, too, in user namespaces above.
COUNTS = {
    "vforks": 20, "zombies": 20, "inotify_instances": 16, "inotify_watches": 8192, "queued_signals": 1024,
    "timers": 1024, "message_queues": 128 << 10, "pseudo_terminals": 16, "travelling_descriptors": 500,
}  # fmt: skip
# Those of all of a user's processes count together: more of them would refuse the other tests theirs.
FEW_FILES = {"travelling_descriptors": ("--nofile", "256")}

ROWS = {
    "fork bomb, threads, vfork race, zombies": (
        "limits: a fork bomb is limited to --pids-limit processes", "limits: threads count as processes do",
        "limits: a fork bomb of the shell ends at the timeout, and the host stays usable",
        "lifecycle: a program that leaves many zombies still ends normally",
        "lifecycle: orphans are collected: hundreds of them pass through a limit of twenty", "vforks", "zombies",
    ),
    "memory by any road": (
        "limits: a memory bomb has the status oom, and the result says what enforces the limit",
        "limits: --memory limits all processes together", "limits: memory counts shared memory, too",
        "limits: a memfd is counted by the cgroup, and denied without a cgroup",
        "limits: memory counts files in the jail, too", *ROADS,
    ),
    "per-uid limits in general": (
        "inotify_instances", "inotify_watches", "queued_signals", "timers", "message_queues", "pseudo_terminals",
        "travelling_descriptors", "exhaustion: a jail leaves its caller his inotify instances",
        "exhaustion: a program and its children load 32 seccomp filters, and the next one is EPERM",
        "exhaustion: a program may open and close netlink sockets as often as it likes, and have 64 at a time",
        "attempts: no key can be added", "attempts: the jail allows no user namespaces of its own",
    ),
    "pipes": "every jail of root has an id of its own; a user's share what he may have: SECURITY.md says so",
    "descriptors, epoll, inotify watches, timers": ("limits: --nofile limits open files",),
    "CPU, realtime": (
        "limits: two busy loops share the CPU they are given", "attempts: no realtime scheduling",
        "attempts: no priority above the caller's",
        "limits: --cpu-time counts all processes together, and ends with 124",
    ),
    "system calls that the supervisor answers": (
        "exhaustion: a flood of denied system calls is answered at a bounded rate, and the timeout ends it",
        "exhaustion: a flood of denied system calls holds up no output, no allowed call, no signal and no end",
    ),
    "disk": (
        "limits: --disk limits all writable places together", "limits: nothing outside the scratch can be filled",
        "exhaustion: no place that can be written takes files without end",
    ),
    "I/O": "no file of a jail is on a disk, unless the caller binds one",
    "huge stdout/stderr": (
        "output: a hundred megabytes of output to the result are counted, and only --max-output is kept",
        "lifecycle: a program that fills both pipes at once isn't stuck",
        "exhaustion: output byte by byte, from one stream and the other, is counted to the last",
        "lifecycle: the supervisor's memory doesn't grow with the output",
    ),
    "stdin abuse": (
        "exhaustion: input that nobody reads doesn't hold up the end",
        "exhaustion: a program that takes its input as fast as it comes doesn't hold off the clock",
    ),
    "closed stdio, grandchild holding the pipe": (
        "lifecycle: a daemon that keeps all pipes open does not delay the end",
        "lifecycle: a program that closes its pipes and goes on is waited for",
        "exhaustion: pipes that travel in a ring of sockets don't hold up the end",
    ),
    "ignored signals, stopped, respawning, setsid daemons": (
        "limits: a program that ignores every signal is killed at its timeout",
        "lifecycle: a program that stops itself is ended by the clock",
        "lifecycle: processes that restart each other for ever end with the run",
    ),
    "timers, alarms": ("limits: --timeout ends the program, and the result says so",),
    "conntrack table, ephemeral ports": (
        "network_closed: the number of connections of a jail is limited, and excess ones are refused and counted",
    ),
    "OOM of the supervisor": ("attempts: no process can hide from the OOM killer",),
}  # fmt: skip


def road_words(road, wanted=WANTED):
    options = ("-q", "--network", "none", "-m", f"{LIMIT}M", "-t", str(int(20 * SLOW)), "--json")
    return ("run", "-p", "base", *options, "-f", f"{PROBES}/exhaust_memory:/box/try", "--", "/box/try", road, str(wanted))


def verdicts(starting, roads, read):
    """Five at a time: {road: what read() makes of its end}."""
    found = {}
    for i in range(0, len(roads), 5):
        running = {road: starting(road) for road in roads[i : i + 5]}
        found.update({road: read(finish(process, 60, args=(road,))) for road, process in running.items()})
    return found


def held(done):
    """HELD, or a limit ended it; else its own verdict and what counted."""
    value = parse_result(done.out, done)
    text = value["stdout"]["text"]
    if value["status"] == "oom" or " HELD (" in text:
        return "HELD"
    said = text.strip() or f"{value['status']} {value['exit_code']} {value['signal']}"
    return f"{said}; {value['limits']['memory']}; {value['warnings']}"


@test("no road leads past the memory limit but those that are known", limit=200)
def _():
    by_cgroup = is_held_by_cgroup("memory")
    found = verdicts(lambda road: start(*road_words(road)), ROADS, held)
    tried(len(found))
    expected = SEEN + COUNTED if by_cgroup else SEEN
    open_ones = {road: word for road, word in found.items() if road in expected and word != "HELD"}
    equal(open_ones, {}, "roads past the limit")
    strange = {road: word for road, word in found.items() if word != "HELD" and " ESCAPED (" not in word}
    equal(strange, {}, "ends that are neither")


def outside(*words, stdin=subprocess.DEVNULL):
    """In namespaces of its own, which end with it: what a program could have without a jail."""
    script = "ulimit -n $(ulimit -Hn); ip link set lo up; mount -t tmpfs none /dev/shm; exec \"$@\""
    enter = ["unshare", "-Urmpf", "--kill-child", "--ipc", "--net", "/bin/sh", "-c", script, "sh"]
    return subprocess.Popen([*enter, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@test("without a jail every road leads past it", limit=200)
def _():
    program = f"{PROBES}/exhaust_memory"
    found = verdicts(lambda road: outside(program, road, str(WANTED)), ROADS, lambda done: done)
    tried(len(found))
    silent = {road: done for road, done in found.items() if f"{road} ESCAPED (" not in done.out}
    equal(silent, {}, "roads that were closed outside")


def said(done):
    return done.out.strip() or repr(done)


@test("a program may open and close netlink sockets as often as it likes, and have 64 at a time")
def _():
    code = """
import errno, socket
def open_one(): return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
for i in range(500): open_one().close()
kept = []
try:
    while len(kept) < 1000: kept.append(open_one())
except OSError as error:
    print(len(kept) <= 64, len(kept) > 3, error.errno == errno.EMFILE)
kept.clear()
open_one()
"""
    value = result("-q", "--network", "none", "-p", "python", "-c", code)
    equal((value["stdout"]["text"], value["exit_code"]), ("True True True\n", 0), f"what it had ({value['stderr']['text']})")
    equal(value["denied_syscalls"], [{"name": "socket(AF_NETLINK)", "count": 1}], "refusals")


@test("a program and its children load 32 seccomp filters, and the next one is EPERM")
def _():
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure): _fields_ = [("size", ctypes.c_ushort), ("code", ctypes.c_char_p)]
allow = Program(1, bytes([6, 0, 0, 0, 0, 0, 255, 127]))
def load():
    child = os.fork()
    if child == 0: os._exit(0 if libc.prctl(22, 2, ctypes.byref(allow)) == 0 else ctypes.get_errno())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print([load() for i in range(34)])
"""
    value = result("-q", "--network", "none", "-p", "python", "-c", code)
    equal(value["stdout"]["text"], f"{[0] * 32 + [1] * 2}\n", f"errnos ({value['stderr']['text']})")
    equal(value["denied_syscalls"], [{"name": "prctl(PR_SET_SECCOMP)", "count": 2}], "refusals")


# Threads that repeat a refused call for ever, as fast as the supervisor answers.
FLOOD = """
import ctypes, os, socket, sys, threading, time
libc = ctypes.CDLL(None)
def refused():
    while True: libc.mount(b"x", b"/x", b"x", 0, 0)
for _ in range(50): threading.Thread(target=refused, daemon=True).start()
def honest():
    for _ in range(20): socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
"""
FLOODING = ("-q", "--network", "none", "--pids-limit", "200", "-p", "python", "-c")


def refusals(value):
    return {entry["name"]: entry["count"] for entry in value["denied_syscalls"]}


@test("a flood of denied system calls is answered at a bounded rate, and the timeout ends it")
def _():
    value = result("-t", f"{int(500 + 1000 * SLOW)}ms", *FLOODING, FLOOD + "refused()")
    equal((value["status"], list(refusals(value))), ("timeout", ["mount"]), "end")
    seconds = value["usage"]["wall_ms"] / 1000
    counted = refusals(value)["mount"]
    true(0 < counted <= 2 * 8192 + 8000 * (seconds + 1), f"{counted} answers in {seconds:.1f} s")
    equal([text for text in value["warnings"] if "not counted" in text], [], "warnings")


@test("a flood of denied system calls holds up no output, no allowed call, no signal and no end")
def _():
    value = result("-t", scaled(50), *FLOODING, FLOOD + "honest(); print('done', flush=True); os._exit(7)")
    equal((value["stdout"]["text"], value["exit_code"]), ("done\n", 7), "end")

    process = start("run", "-t", scaled(50), *FLOODING, FLOOD + "time.sleep(0.5); print('ready', flush=True); refused()")
    equal(process.stdout.readline(), b"ready\n", "the program's word")
    process.terminate()
    equal(finish(process).code, 143, "status")


@test("of what the kernel counts no jail gets more than its share", limit=120)
def _():
    for name, most in COUNTS.items():
        options = ("-q", "--network", "none", "--pids-limit", "20", *FEW_FILES.get(name, ()))
        done = probe("exhaust_counts", name, str(most), options=options)
        true(f"{name} HELD (" in done.out, said(done))
        tried()


@test("without a jail one more is to be had of each", limit=120)
def _():
    for name, most in COUNTS.items():
        done = finish(outside(f"{PROBES}/exhaust_counts", name, str(most)), 60, args=(name,))
        if "HELD" in done.out and "not permitted" not in done.out and most > 1000:
            raise Skip(f"this host itself has no more: {done.out.strip()}")
        true(f"{name} ESCAPED (" in done.out, said(done))
        tried()


def inotify_instances_to_be_had(most):
    """By us, now.  All that there are would leave none to the tests beside this one."""
    code = f"import ctypes; c = ctypes.CDLL(None); n = 0\nwhile n < {most} and c.inotify_init1(0) >= 0: n += 1\nprint(n)"
    return int(subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, check=True).stdout)


@test("a jail leaves its caller his inotify instances")
def _():
    code = "import ctypes, time; c = ctypes.CDLL(None)\nwhile c.inotify_init1(0) >= 0: pass\nprint('ready', flush=True)\ntime.sleep(60)"
    with open("/proc/sys/fs/inotify/max_user_instances") as limit:
        most = min(int(limit.read()), 1000) // 2 + 1
    before = inotify_instances_to_be_had(most)
    process = start("run", "-q", "--network", "none", "-p", "python", "-c", code)
    equal(process.stdout.readline(), b"ready\n", "the program's word")
    # another one that tries this may have half of them for a moment
    wait_until(lambda: inotify_instances_to_be_had(most) + 16 >= before, f"{before - 16} instances beside the jail")
    process.terminate()
    finish(process)
    true(most // 2 < before, f"instances to be had: {before}")


@test("no place that can be written takes files without end")
def _():
    script = "for d in /box /tmp /dev/shm; do /box/load inodes $d 100000; done"
    options = ("-q", "--disk", "1M", "-f", f"{PROBES}/load:/box/load")
    lines = sh(script, *options).exits(0).out.splitlines()
    equal([line.split()[2] for line in lines], ["ENOSPC"] * 3, f"ends ({lines})")


@test("output byte by byte, from one stream and the other, is counted to the last")
def _():
    code = "import os\nfor i in range(20000): os.write(1 + i % 2, b'x')"
    value = result("-q", "-p", "python", "-c", code)
    equal([value[stream]["bytes"] for stream in ("stdout", "stderr")], [10000, 10000], "bytes")


@test("input that nobody reads doesn't hold up the end")
def _():
    with open("/dev/zero", "rb") as endless:
        run("-q", "-i", "-p", "base", "--", "/bin/sh", "-c", "sleep 0.3; exit 3", stdin=endless).exits(3)


@test("a program that takes its input as fast as it comes doesn't hold off the clock")
def _():
    code = """
import fcntl, os
null = os.open("/dev/null", os.O_WRONLY)
fcntl.fcntl(0, fcntl.F_SETPIPE_SZ, 1 << 20)
os.fork()
while True:
    os.splice(0, null, 1 << 20)
"""
    with open("/dev/zero", "rb") as endless:
        run("-q", "-i", "-t", "500ms", "-p", "python", "-c", code, stdin=endless).exits(124)


@test("pipes that travel in a ring of sockets don't hold up the end")
def _():
    code = """
import os, socket, sys, time
if os.fork():
    time.sleep(0.2)
    os._exit(4)
a, b = socket.socketpair()
socket.send_fds(b, [b"x"], [0, 1, 2, a.fileno()])
b.close()
time.sleep(1000)
"""
    run("-q", "--network", "none", "-p", "python", "-c", code).exits(4)


@test("every row of the threats' resources has its proof")
def _():
    check_rows(ROWS, {*ROADS, *COUNTS})
