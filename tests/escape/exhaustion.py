# SPDX-License-Identifier: Apache-2.0
"""Resources (threats.md 2.4): whatever a program takes, by whatever road, it is no more than its limit, and
nobody else goes short."""

import subprocess

from harness import *  # noqa: F403
from pointers import check_rows

LIMIT, WANTED = 24, 48  # MiB

# Roads to memory that no process has mapped, or that a look at /proc misses: exhaust_memory.c.
# SEEN: also where no cgroup counts, by the supervisor or because the road is closed there.
SEEN = ("leaderless", "tables", "messages", "semaphores", "access_lists", "filters", "terminals")
UNSEEN = ("unmapped", "areas", "unix", "pipes", "udp", "netlink", "locks", "epolls")
ROADS = SEEN + UNSEEN

ROWS = {
    "fork bomb, threads, vfork race, zombies": (
        "limits: a fork bomb stays at its number", "limits: threads count as processes do",
        "limits: the fork bomb everybody knows ends with the clock, and the machine stays usable",
        "lifecycle: a flood of zombies is no obstacle",
        "lifecycle: orphans are collected: hundreds of them pass through a limit of twenty",
    ),
    "memory by any road": (
        "limits: a memory bomb is oom, and the result says who held it",
        "limits: memory counts over all processes together", "limits: memory counts shared memory, too",
        "limits: a memfd is counted by the cgroup, and refused where nobody would count it",
        "limits: memory counts files in the jail, too", *ROADS,
    ),
}  # fmt: skip


def road_words(road, wanted=WANTED):
    options = ("-q", "--network", "none", "-m", f"{LIMIT}M", "-t", "40", "--json")
    return ("run", "-p", "base", *options, "-f", f"{PROBES}/exhaust_memory:/box/try", "--", "/box/try", road, str(wanted))


def verdicts(starting, roads, read):
    """Three at a time: {road: what read() makes of its end}."""
    found = {}
    for i in range(0, len(roads), 3):
        running = {road: starting(road) for road in roads[i : i + 3]}
        found.update({road: read(finish(process, 60, args=(road,))) for road, process in running.items()})
    return found


def held(done):
    """HELD, or the end that a limit made; else what it said."""
    value = parse_result(done.out, done)
    text = value["stdout"]["text"]
    if value["status"] == "oom" or " HELD (" in text:
        return "HELD"
    return text.strip() or f"{value['status']} {value['exit_code']} {value['signal']}"


@test("no road leads past the memory limit, where a cgroup counts; where none does, what is not seen is known", limit=200)
def _():
    by_cgroup = is_held_by_cgroup("memory")
    found = verdicts(lambda road: start(*road_words(road)), ROADS, held)
    tried(len(found))
    expected = ROADS if by_cgroup else SEEN
    open_ones = {road: word for road, word in found.items() if road in expected and word != "HELD"}
    equal(open_ones, {}, "roads past the limit")
    strange = {road: word for road, word in found.items() if word != "HELD" and " ESCAPED (" not in word}
    equal(strange, {}, "ends that are neither")


def outside(*words):
    """In namespaces of its own, which end with it: what a program could have without a jail."""
    script = "ip link set lo up; mount -t tmpfs none /dev/shm; exec \"$@\""
    enter = ["unshare", "-Urmpf", "--kill-child", "--ipc", "--net", "/bin/sh", "-c", script, "sh"]
    return subprocess.Popen([*enter, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@test("without a jail every road leads past it", limit=200)
def _():
    program = f"{PROBES}/exhaust_memory"
    found = verdicts(lambda road: outside(program, road, str(WANTED)), ROADS, lambda done: done)
    tried(len(found))
    silent = {road: done for road, done in found.items() if f"{road} ESCAPED (" not in done.out}
    equal(silent, {}, "roads that were closed outside")


@test("every row of the threats' resources has its proof")
def _():
    check_rows(ROWS, set(ROADS))
