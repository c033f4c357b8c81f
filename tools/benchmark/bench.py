# SPDX-License-Identifier: Apache-2.0
"""What all subjects share: the callers, the binaries, the compiled tools, and tables of results."""

import os
import pwd
import re
import subprocess

from . import commands, turns
from .turns import milliseconds
from .world import World

HERE = os.path.dirname(os.path.abspath(__file__))

# A column's key, heading and unit; pages print columns in this order.
COLUMNS = {
    "wall_ms": ("wall", "ms"),
    "wall_p99_ms": ("p99", "ms"),
    "cpu_ms": ("CPU", "ms"),
    "first_ms": ("first byte", "ms"),
    "first_p99_ms": ("p99", "ms"),
    "whole_ms": ("answer", "ms"),
    "whole_p99_ms": ("p99", "ms"),
    "total_s": ("all ended", "s"),
    "rate": ("a second", "rate"),
    "mb_s": ("MB/s", "rate"),
    "build_us": ("until start", "us"),
    "program_us": ("until result", "us"),
    "end_us": ("until end", "us"),
    "more_us": ("adds", "us"),
    "call_us": ("a call", "us"),
    "call_p95_us": ("p95", "us"),
    "memory_kib": ("memory", "KiB"),
    "page_tables_kib": ("page tables", "KiB"),
    "over_bare": ("over bare", "ratio"),
    "p99_over_bare": ("p99 over bare", "ratio"),
    "over_bwrap": ("over bwrap", "ratio"),
    "over_crun": ("over crun", "ratio"),
    "over_none": ("over none", "ratio"),
    "over_root": ("over root", "ratio"),
    "over_service": ("over service", "ratio"),
    "over_first": ("over first", "ratio"),
    "bytes": ("bytes", "count"),
    "words": ("words", "count"),
    "descriptors": ("descriptors", "count"),
    "refused": ("refused", "count"),
    "lost": ("lost", "count"),
}


class Table:
    """The measurements of one subject, and what could not be measured."""

    def __init__(self):
        self.rows, self.absent = [], []

    def add(self, name, who="", **values):
        self.rows.append({"name": name, "who": who, **values})
        return self.rows[-1]

    def skip(self, name, reason, who=""):
        reason = re.sub(r"/\S*/cejail-bench-\w+/(service-\w+/)?", "", reason)
        self.absent.append({"name": name, "who": who, "reason": reason})

    def skip_all(self, reasons, who=""):
        for name, reason in reasons.items():
            self.skip(name, reason, who)

    def columns(self):
        """Those with a value; counts of what went wrong only if there is one that is not 0."""
        return [key for key, (_, unit) in COLUMNS.items()
                if any(row.get(key) or (unit != "count" and row.get(key) is not None) for row in self.rows)]


def ratio(value, base):
    """Four significant digits; None without a base."""
    return float(f"{value / base:.4g}") if base else None


class Bench:
    """One run of tools/bench.  `binaries` are pairs of a name and a path; ours is the first."""

    def __init__(self, work, binaries, rounds, largest):
        self.work, self.binaries, self.rounds, self.largest = work, binaries, rounds, largest
        self.is_root = os.getuid() == 0
        self.ordinary = turns.Who("user", self.ordinary_uid(), work)
        self.root = turns.Who("root", 0, work) if self.is_root else None
        self.callers = [who for who in (self.root, self.ordinary) if who]
        self.world, self.no_world = None, "only root can make the world that the jails reach"

    def make_world(self):
        if self.is_root:
            try:
                self.world = World(self.tool("tcp"))
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                self.no_world = f"the world that the jails reach cannot be made: {error}"

    def ordinary_uid(self):
        """We, unless we are root."""
        if not self.is_root:
            return os.getuid()
        uids = [entry.pw_uid for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 60000]
        return min(uids, default=1000)

    def tool(self, name):
        """The path of the program compiled from NAME.c."""
        path = f"{self.work}/{name}"
        if not os.path.exists(path):
            subprocess.run(
                [os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra",
                 "-o", path, f"{HERE}/{name}.c"], check=True)
        return path

    def count(self, part):
        """A share of the rounds, at least two."""
        return max(2, round(self.rounds * part))

    def turns(self, table, who, argvs, part=1.0, kind="turns"):
        """Runs {NAME: argv} in turns, or "apart": each after a pause.  Adds a row for each; {NAME: row}."""
        known = [turns.Command(name, commands.resolve(argv)) for name, argv in argvs.items()]
        return self.race(table, who, known, part, kind)

    def race(self, table, who, racers, part, kind="turns"):
        done = turns.race(who, kind, racers, self.count(part))
        table.skip_all(done["reasons"], who.name)
        rows = {}
        for name, samples in done["samples"].items():
            walls = [wall for wall, _ in samples]
            rows[name] = table.add(
                name, who.name,
                wall_ms=milliseconds(turns.percentile(walls, 50)),
                wall_p99_ms=milliseconds(turns.percentile(walls, 99)),
                cpu_ms=milliseconds(turns.percentile([cpu for _, cpu in samples], 50)))
        return rows

    def pairs(self, table, who, racers, part=1.0):
        """Two of each at a time; rates."""
        done = turns.race(who, "pairs", racers, max(1, self.count(part) // turns.SLICE))
        table.skip_all(done["reasons"], who.name)
        return {
            name: table.add(name, who.name, rate=round(turns.percentile(rates, 50), 1))
            for name, rates in done["samples"].items()
        }


def compare(rows, key, base, column):
    """Adds to each row how much its `key` is of the row `base`."""
    if base in rows:
        for row in rows.values():
            row[column] = ratio(row[key], rows[base][key])
