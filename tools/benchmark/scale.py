# SPDX-License-Identifier: Apache-2.0
"""The subject of growth: what one more run costs beside 1, 10, 100, ... of something.

--largest is the largest number; what would take hours is measured up to a smaller one.
"""

import contextlib
import fcntl
import os
import resource
import shutil
import tarfile

from . import commands
from .bench import Table, compare, ratio
from .service import NotMeasured, Service, memory, tree
from .sessions import Sessions, live
from .turns import milliseconds, percentile

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)
PART = 0.2  # of the rounds
POOL_MAX = 64  # prepared jails of a profile: cejail-serve(8)


def sizes(bench, most):
    return [size for size in SIZES if size <= min(most, bench.largest)]


def over_first(rows, key):
    """Adds to each row how much it is of the smallest number's."""
    compare(rows, key, next(iter(rows), ""), "over_first")


# --- runs of the command line -------------------------------------------------------------------


@contextlib.contextmanager
def records(who, count):
    """The records of so many jails whose supervisors seem to live: we hold their locks."""
    place = f"{who.runtime}/cejail/runs"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    paths = [f"{place}/bench-{number}.json" for number in range(count)]
    with contextlib.ExitStack() as locks:
        locks.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for path in paths:
            file = locks.enter_context(open(path, "w", encoding="ascii"))
            locks.callback(os.unlink, path)
            os.chown(path, who.uid, -1)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def beside_records(bench, table, name, path):
    rows, argv = {}, commands.cold(path, "true")
    bench.turns(Table(), bench.ordinary, {name: argv}, 0)  # makes the directory
    for count in sizes(bench, 10_000):
        try:
            with records(bench.ordinary, count):
                rows.update(bench.turns(table, bench.ordinary, {f"{name}, a run beside {count} records": argv}, PART))
        except OSError as error:
            table.skip(f"{name}, a run beside {count} records", str(error))
    over_first(rows, "cpu_ms")


def with_overlay(bench, table, name, path):
    rows = {}
    for count in sizes(bench, 100_000):
        place = f"{bench.work}/overlay"
        os.makedirs(place)
        for number in range(count):
            os.makedirs(f"{place}/{number // 1000}", exist_ok=True)
            with open(f"{place}/{number // 1000}/{number}", "w", encoding="ascii") as file:
                file.write("x")
        words = ("--overlay", f"{place}:/data", "-p", "base", "--", "/bin/true")
        argvs = {f"{name}, --overlay of {count} files": commands.run(path, *words)}
        rows.update(bench.turns(table, bench.callers[0], argvs, PART))
        shutil.rmtree(place)
    over_first(rows, "cpu_ms")


def image_import(bench, table, name, path):
    """Import and removal."""
    rows, who = {}, bench.ordinary
    words = ["/bin/sh", "-c", '"$0" image import bench "$1" && "$0" image rm bench', path]
    for count in sizes(bench, 100_000):
        archive = f"{bench.work}/image.tar"
        with tarfile.open(archive, "w") as tar:
            for number in range(count):
                tar.addfile(tarfile.TarInfo(f"usr/{number // 1000}/{number}"))
        rows.update(bench.turns(table, who, {f"{name}, import of an image of {count} files": [*words, archive]}, PART))
        os.unlink(archive)
    over_first(rows, "cpu_ms")


# --- the service ----------------------------------------------------------------------------------


def prepared(bench, table, name, path):
    rows = {}
    for count in (size for size in (1, 10, POOL_MAX) if size <= bench.largest):
        label = f"{name}, a request with {count} prepared jails"
        try:
            with Service(bench, path, "python", "jail", count, "print(1)") as service:
                answers = service.call(bench.count(PART), pause_ms=100)
                rows[label] = table.add(label, bench.callers[0].name, **answers.latencies())
        except NotMeasured as error:
            table.skip(label, str(error))
    over_first(rows, "whole_ms")


def in_a_row(bench, table, name, path):
    """One service from the first to the last run.  Its processes' memory is that of the jails that wait, too."""
    rows, done = {}, 0
    with Service(bench, path, "python", "jail", 4, "print(1)") as service:
        service.call(4)
        for count in sizes(bench, 10_000):
            answers = service.call(count - done, seconds=3600)
            service.await_pool()
            done, label = count, f"{name}, one service after {count} runs"
            rows[label] = table.add(
                label, bench.callers[0].name, **answers.latencies(), memory_kib=memory(tree(service.process.pid))[0],
                descriptors=len(os.listdir(f"/proc/{service.process.pid}/fd")))
    over_first(rows, "memory_kib")


class ManySessions(Sessions):
    most = 1024  # as many as a service may have


def beside_sessions(bench, table, name, path):
    base = None
    with ManySessions(bench, path, "python", "cold", 0, "1") as service:
        connection, made, samples = service.open(), 0, {}
        for count in sizes(bench, 1_000):
            while made < count:
                service.create(connection)
                made += 1
            live(service, bench.count(PART), samples, f"{name}, beside {count} sessions")
        for label, values in samples.items():
            if not label.endswith("create"):
                continue
            middle = milliseconds(percentile(values, 50))
            base = base or middle
            table.add(label, bench.callers[0].name, whole_ms=middle,
                      whole_p99_ms=milliseconds(percentile(values, 99)), over_first=ratio(middle, base))


def scale(bench):
    table = Table()
    for name, path in bench.binaries:
        for measure in (prepared, beside_records, in_a_row, beside_sessions, image_import, with_overlay):
            try:
                measure(bench, table, name, path)
            except NotMeasured as error:
                table.skip(f"{name}, {measure.__name__.replace('_', ' ')}", str(error))
    return table
