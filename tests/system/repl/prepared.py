# SPDX-License-Identifier: Apache-2.0
"""Sessions with the context "repl" that the service's pool has prepared: their interpreter waits."""

import contextlib
import json
import os
import signal

from cells import Repl
from harness import *  # noqa: F403
from service import Service, gone, processes_below

ONE = {"pool": {"python": {"repls": 1}}}


def is_full(s):
    return all(row["ready"] >= row["wanted"] for row in s.get("/readyz").json["pool"])


def wait_full(s):
    wait_until(lambda: is_full(s), "the pool to be full", 60)


def waiting(s, name="cejail-worker"):
    return {pid for pid in s.workers() if name in (describe_process(pid) or "")}


def is_python(pid):
    return "python" in (describe_process(pid) or "")


def prepared(s):
    """The workers with an interpreter.  The worker of the service's probe has none, and may live longer than its run."""
    return {pid for pid in waiting(s) if any(map(is_python, processes_below(pid)))}


@test("a session takes a prepared one, with its interpreter, and another one takes its place")
def _():
    with Service(config=ONE) as s:
        wait_full(s)
        equal(s.metric("cejail_pool_ready", tier="repl"), 1, "those that are ready")
        before, interpreters = prepared(s), waiting(s, "python")
        equal(len(before), 1, "prepared sessions")
        with Repl(s) as r:
            equal(waiting(s, "cejail-session") & before, before, "the keeper of the session")
            one = r.cell("x = 20\nimport secrets, random\nprint(hash('a'), random.random(), secrets.token_hex(8))")
            equal((one["cell"]["number"], one["cell"]["restarted"]), (1, False), "its first cell")
            equal(r.value("x + 1"), "21", "x")
            true(interpreters <= waiting(s, "python"), "the interpreter that waited is the session's")
            wait_full(s)
            with Repl(s) as other:
                equal(other.value("'x' in globals()"), "False", "x in another session")
                two = other.cell("import secrets, random\nprint(hash('a'), random.random(), secrets.token_hex(8))")
                for a, b in zip(one["stdout"]["text"].split(), two["stdout"]["text"].split()):
                    true(a != b, f"{a} in both sessions")
        wait_full(s)


@test("a request that changes the jail or its environment has a session of its own")
def _():
    with Service(config=ONE) as s:
        wait_full(s)
        before = prepared(s)
        equal(len(before), 1, "prepared sessions")
        with Repl(s, memory="300M") as r, Repl(s, env={"A": "mine"}) as other:
            equal(r.value("1 + 1"), "2", "the value")
            equal(other.value("import os\nos.environ['A']"), "'mine'", "the variable")
            true(before <= prepared(s), "the prepared one waits")


@test("prepared sessions whose processes die are replaced, and no session fails because of it")
def _():
    with Service(config=ONE) as s:
        for name in ("cejail-worker", "python", *(("cejail-init", "cejail-reaper") if LONG else ())):
            wait_full(s)
            killed = waiting(s, name)
            true(killed, f"a process called {name}")
            for pid in killed:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            wait_until(lambda pids=killed: gone(pids), "them to be dead")
            with Repl(s) as r:
                first = r.cell("1 + 1")["cell"]
                equal((first["value"], first["restarted"]), ("2", False), f"the first cell without {name}")
        wait_full(s)


@test("prepared sessions are replaced with their profile, shown by ps as ready, and end with the configuration")
def _():
    def states():
        rows = json.loads(cejail("ps", "--json").exits(0).out)["runs"]
        return sorted(row["state"] for row in rows if row["pid"] in s.workers())

    with Folder() as f:
        def write(value):
            f.file("config/cejail/profiles/mine.json", json.dumps({"extends": "python", "env": {"A": value}}))

        write("old")
        with Service(config={"pool": {"mine": {"repls": 1}}}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            wait_full(s)
            wait_until(lambda: states() == ["ready"], "the one that is ready")
            write("newer")
            with Repl(s, "mine") as r:
                equal(r.value("import os\nos.environ['A']"), "'newer'", "the variable")
                wait_until(lambda: "running" in states(), "the session in ps")
            s.reload({"pool": {}})
            wait_until(lambda: not waiting(s) and not states(), "none to wait")
