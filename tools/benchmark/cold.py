# SPDX-License-Identifier: Apache-2.0
"""Subjects of the command line: what `cejail run` costs."""

import os
import subprocess
import time

from . import commands, turns
from .bench import Table, compare, ratio
from .service import memory, tree


def racers(bench, table, who, program):
    """Commands that run `program`: bare, every peer that is installed, and every cejail."""
    argv = commands.BARE[program]
    found, absent = commands.peers(bench.work, who, argv)
    table.skip_all(absent, who.name)
    ours = [turns.Command(name, commands.cold(path, program)) for name, path in bench.binaries]
    return [turns.Command("bare", argv), *found, *ours]


def start(bench, program, part):
    """One run at a time, beside the peers."""
    table, by_root = Table(), {}
    for who in bench.callers:
        rows = bench.race(table, who, racers(bench, table, who, program), part)
        compare(rows, "wall_ms", "bare", "over_bare")
        compare(rows, "wall_ms", "bwrap", "over_bwrap")
        for name, row in rows.items():
            if who is bench.root:
                by_root[name] = row
            elif name in by_root:
                row["over_root"] = ratio(row["wall_ms"], by_root[name]["wall_ms"])
    return table


def start_true(bench):
    return start(bench, "true", 1)


def start_python(bench):
    return start(bench, "python", 0.5)


def bwrap(bench):
    """The lines of programs that start bwrap: the distribution's, ours, and ours with limits and a result."""
    table, workspace = Table(), f"{bench.work}/workspace"
    os.makedirs(f"{workspace}/.git", exist_ok=True)
    with open(f"{workspace}/.git/config", "w", encoding="ascii"):
        pass
    for who in bench.callers:
        for caller in commands.CALLERS:
            racers = {"bwrap": commands.of_caller("bwrap", caller, workspace)}
            for name, path in bench.binaries:
                ours = commands.sandbox(path)
                racers[name] = commands.of_caller(ours, caller, workspace)
                racers[f"{name}, limits"] = commands.of_caller(ours, caller, workspace, *commands.LIMITS.split())
            found = {f"{caller}, {name}": argv for name, argv in racers.items() if commands.resolve(argv)}
            if len(found) < len(racers):
                table.skip(f"{caller}, bwrap", "not installed", who.name)
            compare(bench.turns(table, who, found), "wall_ms", f"{caller}, bwrap", "over_bwrap")
    return table


def two_workers(bench):
    """Two at a time: what the kernel still does after an answer counts here, too."""
    table = Table()
    for who in bench.callers:
        rows = bench.pairs(table, who, racers(bench, table, who, "true"))
        compare(rows, "rate", "bare", "over_bare")
        compare(rows, "rate", "bwrap", "over_bwrap")
    return table


def stages(bench):
    """Where the time of one run goes, seen from outside by the events of start and result."""
    table = Table()
    known = []
    for name, path in bench.binaries:
        for program in ("true", "python"):
            argv = commands.cold(path, program)
            known.append(turns.Command(f"{name}, {program}", [*argv[:2], "--events-fd", "3", *argv[2:]]))
    for who in bench.callers:
        done = turns.race(who, "stages", known, bench.count(0.5))
        table.skip_all(done["reasons"], who.name)
        for name, samples in done["samples"].items():
            build, program, end = (turns.percentile(times, 50) for times in zip(*samples))
            table.add(name, who.name, build_us=build, program_us=program, end_us=end)
    return table


def option_words(work):
    """Options that change what cejail builds, and what they are called."""
    os.makedirs(f"{work}/tree", exist_ok=True)
    with open(f"{work}/tree/file", "w", encoding="ascii") as file:
        file.write("x" * 1000)
    return {
        "--json=FILE": ["--json=/dev/null"],
        "--file": ["--file", f"{work}/tree/file"],
        "--args-json": ["--args-json", "{}"],
        "--ro-bind": ["--ro-bind", f"{work}/tree:/data"],
        "--overlay": ["--overlay", f"{work}/tree:/data"],
        "--tmpfs": ["--tmpfs", "/data"],
        "--writable": ["--writable"],
        "--noexec": ["--noexec"],
    }


def options(bench):
    """What an option adds to a run of /bin/true without a network."""
    table = Table()
    for name, path in bench.binaries:
        argvs = {name: commands.cold(path, "true")}
        for option, words in option_words(bench.work).items():
            argvs[f"{name} {option}"] = commands.run(path, *words, "-p", "base", "--", "/bin/true")
        rows = bench.turns(table, bench.callers[0], argvs, 0.5)
        for row in rows.values():
            if name in rows:
                row["more_us"] = round((row["wall_ms"] - rows[name]["wall_ms"]) * 1000)
    return table


# --- memory beside a program ----------------------------------------------------------------------


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def memory_beside(argv):
    """(memory, page tables) of what runs beside /bin/sleep, or None if it does not start."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and process.poll() is None:
            pids = tree(process.pid)
            if comm(pids[-1]) == "sleep" and len(pids) > 1:
                time.sleep(0.05)
                return memory([pid for pid in pids if comm(pid) != "sleep"])
            time.sleep(0.02)
        return None
    finally:
        process.terminate()
        process.wait()


def beside_programs(bench, table):
    sleep = ["/bin/sleep", "60"]
    argvs = {"bwrap": commands.resolve(commands.bwrap(bench.work, bench.root, sleep))}
    for name, path in bench.binaries:
        argvs[name] = commands.run(path, "-p", "base", "--", *sleep)
    for name, argv in argvs.items():
        found = memory_beside(argv) if argv else None
        if found:
            table.add(f"{name} beside a program", "root", memory_kib=found[0], page_tables_kib=found[1])
        else:
            table.skip(name, "it does not start" if argv else "not installed", "root")
