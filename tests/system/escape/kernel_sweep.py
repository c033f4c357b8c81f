# SPDX-License-Identifier: Apache-2.0
"""Kernel memory that no limit counts: every allowed call and option, repeated as often as possible (sweep_memory.c).
The host's growth of kernel memory is compared with the memory that the jail's cgroup counted.  Each row runs once; a row
above the threshold runs four times more, and the median decides.  Where no cgroup counts memory the test bounds the growth
alone, and the rows of CHARGED may exceed the threshold."""

import statistics
import subprocess

from exhaustion import outside
from harness import *  # noqa: F403

MIB = 1 << 20
THRESHOLD = 20  # MiB: 64 netlink sockets, which SECURITY.md names, hold up to 16
FIELDS = ("SUnreclaim", "PageTables", "VmallocUsed", "Percpu")  # VmallocUsed contains KernelStack
FILL_MS = 600 if EMULATED else 150  # of CPU time, in each of 8 processes
SHORT_MS = FILL_MS // 5  # what gives out or sets a number: most rows
SHORT = ("getsockopt", "ioctl", "fcntl", "prctl")
SWEEP = f"{PROBES}/sweep_memory"
JAIL = ("run", "-q", "-p", "base", "--network", "none", "-i", "-m", "128M", "--pids-limit", "300", "-t", str(int(60 * SLOW)))

# Linux 6.18 charges them to no cgroup, and no filter can bound them: SECURITY.md says so.
KNOWN = {"F_OFD_SETLK": "only the time limit bounds POSIX locks", "F_SETLK": "only the time limit bounds POSIX locks"}
# Rows that exceed the threshold, but that a cgroup charges.
CHARGED = {"sockets", "bind", "udp_queue", "mprotect", "munmap", "landlock", "page_tables"}
# Rows that a jail refuses or bounds, with a value that the call takes outside.
CONTROL = ("setsockopt:6:14", "netlink_queue", "mprotect")


def kernel_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        lines = [line.split() for line in file]
    return sum(int(line[1]) * 1024 for line in lines if line[0].rstrip(":") in FIELDS)


def settled():
    """Kernel memory after the kernel has freed the memory of the last run."""
    last, quiet = kernel_bytes(), 0
    for _ in range(100):
        time.sleep(0.03)
        now = kernel_bytes()
        quiet = quiet + 1 if abs(now - last) < MIB // 4 else 0
        last = now
        if quiet == 4:
            break
    return last


def held_by(process, before):
    """The growth in bytes while the process holds the row's objects, and how many calls succeeded.  A run that a limit
    ended has no number of calls."""
    line = process.stdout.readline().decode()
    grown = kernel_bytes() - before
    finish(process, 60)
    return grown, int(line.split()[1]) if line.startswith("ready ") else None


def time_of(row):
    return str(SHORT_MS if row.startswith(SHORT) else FILL_MS)


def in_jail(row):
    """The growth that no cgroup counted, and the number of calls."""
    before = settled()
    ours, theirs = os.pipe()
    words = ("--result-fd", str(theirs), "-f", f"{SWEEP}:/box/try", "--", "/box/try", row, time_of(row))
    process = start(*JAIL, *words, stdin=subprocess.PIPE, pass_fds=(theirs,))
    os.close(theirs)
    grown, calls = held_by(process, before)
    with open(ours, encoding="utf-8") as file:
        value = parse_result(file.read())
    if calls is None and value["status"] != "oom":
        raise Failure(f"{row}: the sweep ended without an answer: {value['status']}, {value['exit_code']}")
    counted = value["usage"]["memory_peak_bytes"] if value["limits"]["memory"]["by"] == "cgroup" else 0
    return grown - counted, calls


def outside_jail(row):
    before = settled()
    process = outside(SWEEP, row, time_of(row), stdin=subprocess.PIPE)
    return held_by(process, before)


def measured(measure, row):
    """MiB and calls.  Other programs change the host's memory, too: what is above the threshold, or has become less,
    is measured four times more, and the median decides."""
    found = [measure(row)]
    if not -4 * MIB < found[0][0] < THRESHOLD * MIB:
        found += [measure(row) for _ in range(4)]
    grown = statistics.median(bytes_ for bytes_, _ in found)
    return grown / MIB, found[0][1]


def rows_in_jail():
    """Every call, and every option, command and request that the kernel takes from a program in a jail."""
    words = (*JAIL, "-f", f"{SWEEP}:/box/try", "--", "/box/try", "list")
    return cejail(*words, limit=60, stdin=subprocess.DEVNULL).exits(0).out.split()


def sweep():
    control = {row: measured(outside_jail, row) for row in CONTROL}
    blind = {row: found for row, found in control.items() if found[0] < THRESHOLD}
    equal(blind, {}, "rows that the sweep does not see although nothing bounds them there (MiB, calls)")
    rows = rows_in_jail()
    true(len(rows) > 200 and "nothing" in rows, f"the jail takes only {rows}")
    allowed = set(KNOWN) if is_held_by_cgroup("memory") else {*KNOWN, *CHARGED}
    found = {row: measured(in_jail, row) for row in rows}
    tried(len(found))
    uncounted = {row: (round(mib), calls) for row, (mib, calls) in found.items() if mib > THRESHOLD and row not in allowed}
    equal(uncounted, {}, "rows that take kernel memory uncounted (MiB, calls)")


if LONG:  # several minutes, and over the whole machine's memory: make proof runs it
    test("no call or option that is allowed takes kernel memory that no limit counts but those that are known", who="root", limit=3600)(sweep)
