# SPDX-License-Identifier: Apache-2.0
"""Subjects of the service: one request, as many as it can answer, many at once, memory.

Everything goes through HTTP over the Unix socket.
"""

import time

from . import commands, turns
from .bench import Table, ratio
from .cold import beside_programs
from .machine import busy_s
from .service import TIERS, NotMeasured, Service, memory, tree

BURST = 1000  # requests at once
POOL_MAX = 8  # prepared jails
FEW, MORE = 2, 8  # the memory of a prepared jail is the difference between FEW and FEW + MORE
IDLE_S = 0.5  # how long to look at what else the machine does
IDLE_MAX = 0.1  # busy processors, above which the CPU time of a run cannot be told apart

# A program: its profile, its code, and the tiers that are worth measuring.
PROGRAMS = {
    "print": ("python", "print(1)", tuple(tier for tier in TIERS if tier != "repl")),
    "pandas": ("python-data", "import pandas; print(1)", ("interpreter", "zygote")),
}
ROUNDS_MIN = {"print": 1, "pandas": 10}  # below, its interpreters take most of the time


def pool(bench):
    return min(POOL_MAX, bench.rounds + 1)


def for_each(bench, table, measure, programs=tuple(PROGRAMS), without=()):
    """Calls measure(row's name, program, start); `start(jails)` is a Service.  What fails is a reason."""
    for program in programs:
        if bench.rounds < ROUNDS_MIN[program]:
            table.skip(program, f"it needs --rounds {ROUNDS_MIN[program]}")
            continue
        profile, code, tiers = PROGRAMS[program]
        for name, path in bench.binaries:
            for tier in (tier for tier in tiers if tier not in without):
                def start(jails, words=(path, profile, tier), code=code):
                    return Service(bench, *words, jails, code)
                label = f"{name}, {tier}, {program}"
                try:
                    measure(label, program, start)
                except NotMeasured as error:
                    table.skip(label, str(error))


def bare_python(bench, table, program, measure):
    """A row of a bare interpreter; None if it cannot run the program."""
    if bench.rounds < ROUNDS_MIN[program]:
        return None
    racers = [turns.Command(f"bare, {program}", [commands.PYTHON, "-c", PROGRAMS[program][1]])]
    return next(iter(measure(table, bench.callers[0], racers, 0.2).values()), None)


def request(bench):
    """One caller, who leaves the pool time to fill again."""
    table = Table()
    bare = {program: bare_python(bench, table, program, bench.race) for program in PROGRAMS}

    def measure(name, program, start):
        with start(pool(bench)) as service:
            service.call(3)
            answers = service.call(bench.count(1), 1, 30, seconds=5)
        row = table.add(name, bench.callers[0].name, **answers.latencies())
        if bare[program]:
            row["over_bare"] = ratio(row["first_ms"], bare[program]["wall_ms"])
            row["p99_over_bare"] = ratio(row["first_p99_ms"], bare[program]["wall_ms"])

    for_each(bench, table, measure)
    return table


def call_and_refill(service, callers, seconds):
    """(answers, CPU time of the whole machine for each), until the pool is full again."""
    began, before = time.monotonic(), busy_s()
    time.sleep(IDLE_S)
    idle = (busy_s() - before) / (time.monotonic() - began)
    began, before = time.monotonic(), busy_s()
    answers = service.call(1_000_000, callers, seconds=seconds)
    service.await_pool()
    spent = busy_s() - before - idle * (time.monotonic() - began)
    return answers, round(spent * 1000 / len(answers.first_us), 2) if idle <= IDLE_MAX else None


def refill(bench):
    """Callers that ask again as soon as they are answered: preparing the next jails counts."""
    table = Table()
    bare = {program: bare_python(bench, table, program, bench.pairs) for program in PROGRAMS}
    seconds = max(1, round(bench.rounds / 25))

    def measure(name, program, start):
        with start(pool(bench)) as service:
            found = [(callers, *call_and_refill(service, callers, seconds)) for callers in (2, 8)]
        for callers, answers, cpu_ms in found:
            row = table.add(
                f"{name}, {callers} callers", bench.callers[0].name, rate=round(answers.rate, 1),
                cpu_ms=cpu_ms, **answers.latencies())
            if bare[program]:
                row["over_bare"] = ratio(row["rate"], bare[program]["rate"])

    for_each(bench, table, measure)
    return table


def burst(bench):
    """Many requests at once."""
    table = Table()
    count = min(BURST, bench.count(10))

    def measure(name, _program, start):
        with start(pool(bench)) as service:
            answers = service.call(count, count)
        table.add(f"{name}, {count} requests", bench.callers[0].name, total_s=round(answers.total_us / 1e6, 3),
                  rate=round(answers.rate, 1), **answers.latencies())

    for_each(bench, table, measure, ["print"], without=("jail",))
    return table


def all_memory(bench):
    """Anonymous memory: beside a sleeping program, without its own; of one more jail that waits."""
    table = Table()
    if not bench.is_root:
        table.skip("memory", "only root may look into a jail")
        return table
    beside_programs(bench, table)

    def measure(name, _program, start):
        found, more = [], min(MORE, bench.rounds + 1)
        for jails in (FEW, FEW + more):
            with start(jails) as service:
                found.append(memory(tree(service.process.pid)))
        each = [round((with_more - few) / more) for few, with_more in zip(*found)]
        table.add(name, "root", memory_kib=each[0], page_tables_kib=each[1])

    for_each(bench, table, measure, without=("cold",))
    return table
