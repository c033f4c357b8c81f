# SPDX-License-Identifier: Apache-2.0
"""The subject of sessions: create, a program, a cell of Python, the end; and an idle session's memory.

Everything goes through HTTP over the Unix socket, with one connection that stays open.
"""

import http.client
import json
import os
import shutil
import socket
import subprocess
import time

from . import commands, turns
from .bench import Table, ratio
from .service import NotMeasured, Service, memory, tree
from .turns import milliseconds, percentile

IDLE = 100  # sessions
PAUSE_S = 0.02
WARM_UP = 3


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Sessions(Service):
    """A service that may have many sessions."""

    most = IDLE + 8

    def write_files(self):
        super().write_files()
        limits = {"concurrent": 16, "queued": 64, "rate_per_minute": 0, "sessions": self.most}
        self.write("serve.json", {
            "pool": {"bench": self.pool}, "concurrency": 16, "sessions": self.most, "session_memory": "1024G",
            "callers": {"default": limits, f"uid:{os.getuid()}": limits},
        })

    def open(self):
        return Connection(self.socket)

    def ask(self, connection, method, path, body=None):
        connection.request(method, path, json.dumps(body) if body is not None else None)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            raise NotMeasured(f"{method} {path}: {answer.status} {text[:200].decode(errors='replace')}")
        return json.loads(text)

    def create(self, connection, **more):
        return "/v1/sessions/" + self.ask(connection, "POST", "/v1/sessions", {"profile": "bench", **more})["id"]


def timed(samples, name, act):
    began = time.monotonic()
    value = act()
    samples.setdefault(name, []).append((time.monotonic() - began) * 1e6)
    return value


def live(service, rounds, samples, label):
    """So many whole sessions."""
    connection = service.open()
    for number in range(-WARM_UP, rounds):
        into = samples if number >= 0 else {}
        time.sleep(PAUSE_S)
        path = timed(into, f"{label}: create", lambda: service.create(connection))
        timed(into, f"{label}: /bin/true",
              lambda p=path: service.ask(connection, "POST", p + "/execs", {"command": ["/bin/true"]}))
        timed(into, f"{label}: delete", lambda p=path: service.ask(connection, "DELETE", p))


def compute(service, rounds, samples, label):
    """Cells of one session: the first one waits for its interpreter."""
    connection = service.open()
    path = service.create(connection, context="repl")
    for number in range(-WARM_UP, rounds):
        into = samples if number >= 0 else {}
        time.sleep(PAUSE_S / 4)
        answer = timed(into, f"{label}: the cell 1 + 1",
                       lambda: service.ask(connection, "POST", path + "/execs", {"code": "1 + 1"}))
        if answer.get("cell", {}).get("value") != "2":
            raise NotMeasured(f"the cell's value is {answer.get('cell')}")
    service.ask(connection, "DELETE", path)


def first(service, rounds, samples, label):
    """So many sessions with one cell each."""
    connection = service.open()
    for number in range(-WARM_UP, rounds):
        into = samples if number >= 0 else {}
        service.await_pool()
        time.sleep(PAUSE_S)

        def begin():
            path = service.create(connection, context="repl")
            return path, service.ask(connection, "POST", path + "/execs", {"code": "1 + 1"})

        path, answer = timed(into, f"{label}: create and the first cell", begin)
        if answer.get("cell", {}).get("value") != "2":
            raise NotMeasured(f"the cell's value is {answer.get('cell')}")
        service.ask(connection, "DELETE", path)


def measure(bench, name, path, table, base_ms):
    samples = {}
    for tier in ("cold", "jail"):
        with Sessions(bench, path, "python", tier, 4, "1") as service:
            live(service, bench.count(0.5), samples, f"{name}, {tier}")
            if tier == "cold":
                compute(service, bench.count(2), samples, name)
    for tier in ("cold", "repl"):
        with Sessions(bench, path, "python", tier, 4, "1") as service:
            first(service, bench.count(0.5), samples, f"{name}, {tier}")
    for who, values in samples.items():
        middle = milliseconds(percentile(values, 50))
        table.add(who, bench.callers[0].name, whole_ms=middle, whole_p99_ms=milliseconds(percentile(values, 99)),
                  over_bare=ratio(middle, base_ms), over_crun=ratio(middle, table.crun_ms))


def idle(bench, name, path, table):
    """Anonymous memory of one more session that waits."""
    count = min(IDLE, bench.rounds + 1)
    with Sessions(bench, path, "python", "cold", 0, "1") as service:
        connection = service.open()
        service.ask(connection, "DELETE", service.create(connection))
        before = memory(tree(service.process.pid))
        made = [service.create(connection) for _ in range(count)]
        after = memory(tree(service.process.pid))
        for one in made:
            service.ask(connection, "DELETE", one)
    table.add(f"{name}, an idle session", bench.callers[0].name, memory_kib=round((after[0] - before[0]) / count),
              page_tables_kib=round((after[1] - before[1]) / count))


def crun_exec(bench, table):
    """`crun exec` in a container that runs: a row, and its median; None without crun."""
    who, crun = bench.ordinary, shutil.which("crun", path=turns.PATH)
    if not crun:
        table.skip("crun exec", "not installed")
        return None
    bundle = commands.make_bundle(bench.work, who, ["/bin/sleep", "1000"])
    words = [crun, "--cgroup-manager=disabled", "--root", f"{who.runtime}/crun"]
    run = {"env": who.env, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False,
           "preexec_fn": who.become}
    if subprocess.run([*words, "run", "-d", "--bundle", bundle, "bench-session"], **run).returncode != 0:
        table.skip("crun exec", "its container does not start here")
        return None
    try:
        rows = bench.race(table, who, [turns.Command("crun exec /bin/true", [*words, "exec", "bench-session", "/bin/true"])], 0.5)
        return rows["crun exec /bin/true"]["wall_ms"] if rows else None
    finally:
        subprocess.run([*words, "delete", "--force", "bench-session"], **run)


def session(bench):
    """Beside a bare interpreter and `crun exec`."""
    table = Table()
    bare = bench.race(table, bench.callers[0], [turns.Command("bare python3 -c 1", [commands.PYTHON, "-c", "1"])], 0.5)
    table.crun_ms = crun_exec(bench, table)
    base_ms = next((row["wall_ms"] for row in bare.values()), None)
    for name, path in bench.binaries:
        for what in (lambda: measure(bench, name, path, table, base_ms), lambda: idle(bench, name, path, table)):
            try:
                what()
            except NotMeasured as error:
                table.skip(f"{name}, sessions", str(error))
    return table
