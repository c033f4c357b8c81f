# SPDX-License-Identifier: Apache-2.0
"""The time of day jumps: what counts seconds goes on counting them.  All on the machine have this clock, and keys
of theirs expire by it, so nothing else may run meanwhile."""

import contextlib
import time

from scarce import *  # noqa: F403


@contextlib.contextmanager
def clock_restored():
    offset = time.time() - time.monotonic()
    try:
        yield
    finally:
        time.clock_settime(time.CLOCK_REALTIME, time.monotonic() + offset)


if MACHINE:

    @test("the time of day may jump either way: the time limit counts seconds that pass", who="root", limit=120)
    def _():
        with clock_restored(), Folder() as f:
            for jump in (-86400, 86400, -3600 * 24 * 400, 5):
                process, path = running(f, str(jump), "sleep 1000", "-t", "4")
                time.clock_settime(time.CLOCK_REALTIME, time.time() + jump)
                done = finish(process, 20)
                value = read_result(path)
                tried()
                equal((done.code, value["status"]), (124, "timeout"), f"{jump}: end")
                true(value["usage"]["wall_ms"] >= 3900, f"{jump}: wall_ms {value['usage']['wall_ms']}")

    @test("what a killed run leaves is swept though its files are from the future", who="root", limit=120)
    def _():
        before = inventory()
        with clock_restored(), Folder() as f:
            time.clock_settime(time.CLOCK_REALTIME, time.time() + 86400)
            process, _ = running(f, "r", "sleep 1000")
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
            time.clock_settime(time.CLOCK_REALTIME, time.time() - 2 * 86400)
            wait_until(lambda: not descendants(), "the end of every process")
            cejail("gc").exits(0)
            equal(what_is_left(before | {w for w in inventory() if w.startswith("file")}), [], "left behind")
