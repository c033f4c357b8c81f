# SPDX-License-Identifier: Apache-2.0
"""Many at once, and for long."""

import collections
import json
import os
import time

from harness import *  # noqa: F403
from harness import LONG
from pools import wait_full
from service import RECEIVE, Service, call


def memory_of(pid):
    """Kilobytes that are the process' own."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(("Private_Dirty", "Private_Clean")))


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@test("200 callers at once all get an answer, each its own", limit=180)
def _():
    with Service(config={"queue": 64, "queue_wait": f"{20 * SLOW:.0f}s", "pool": {"python": {"interpreters": 2}}}) as s:
        calls = [s.background(s.run, f"print({i})", id=f"r{i}") for i in range(200)]
        statuses = collections.Counter()
        for i, one in enumerate(calls):
            reply = one.finish(120)
            statuses[reply.status] += 1
            if reply.status == 200:
                equal((reply.result["id"], reply.result["stdout"]["text"]), (f"r{i}", f"{i}\n"), "the answer")
            else:
                true(reply.status in (429, 503), f"the answer is {reply!r}")
                reply.has(reply.status)
        equal(sum(statuses.values()), 200, "answers")
        true(statuses[200] >= 60, f"most were refused: {statuses}")
        equal(s.get("/livez").status, 200, "livez")
        tried(200)


@test("the service stays as large as it was", limit=7200 if LONG else 240)
def _():
    count = 10000 if LONG else share(200)
    with Service(config={"pool": {"base": {"jails": 2}}}) as s:
        connection = s.connect()

        def some(number):
            for i in range(number):
                body = {"profile": "base", "command": ["/bin/echo", "x" * 1000], "network": "none"}
                equal(call(connection, "POST", "/v1/runs", body).status, 200, "status")

        some(100 if not LONG else 1000)  # what is remembered of runs is full after a while
        wait_full(s)
        time.sleep(1)
        before, fds = memory_of(s.process.pid), descriptors_of(s.process.pid)
        some(count)
        time.sleep(1)
        after = memory_of(s.process.pid)
        connection.close()
        true(after - before < 1500, f"{count} runs took {after - before} KiB (from {before})")
        wait_until(lambda: descriptors_of(s.process.pid) <= fds + 2, f"no more than {fds + 2} descriptors")
        tried(count)


@test("callers that come and go with every kind of mistake leave nothing", limit=120)
def _():
    with Service(config={"receive_timeout": RECEIVE}) as s:
        before = None
        for round_number in range(6):
            for i in range(40):
                s.raw(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", reads=False)
                s.raw(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", reads=False)
                s.post("{")
                s.get("/nothing")
            wait_until(lambda: s.metric("cejail_connections") <= 1, "the end of unfinished requests", 30)
            if round_number == 1:
                before = (memory_of(s.process.pid), descriptors_of(s.process.pid))
        wait_until(lambda: descriptors_of(s.process.pid) <= before[1] + 2, f"no more than {before[1] + 2} descriptors")
        after = memory_of(s.process.pid)
        true(after - before[0] < 1000, f"memory: {before[0]} KiB then {after}")
        tried(960)
