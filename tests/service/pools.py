# SPDX-License-Identifier: Apache-2.0
"""Jails that were prepared ahead."""

import contextlib
import json
import os
import time

from harness import *  # noqa: F403
from service import Service, gone

WARM = {"pool": {"python": {"jails": 1, "interpreters": 1}, "base": {"jails": 1}}}


def wait_full(s):
    def is_full():
        rows = s.get("/readyz").json["pool"]
        return rows and all(row["ready"] >= row["wanted"] for row in rows)

    wait_until(is_full, "the pool to be full", 20)


def tier_of(s, name):
    return s.get(f"/v1/runs/{name}").has(200).json["tier"]


@test("a request that only brings a program gets what was prepared furthest")
def _():
    with Service(config=WARM) as s:
        wait_full(s)
        plain = {"profile": "python", "code": "print(6 * 7)"}
        value = s.post({**plain, "id": "a"}).result
        equal((value["stdout"]["text"], tier_of(s, "a")), ("42\n", "interpreter"), "output and tier")
        wait_full(s)
        s.post({**plain, "id": "b", "env": {"A": "1"}}).has(200)
        equal(tier_of(s, "b"), "jail", "tier with another environment")
        wait_full(s)
        s.post({**plain, "id": "c", "memory": "100M"}).has(200)
        equal(tier_of(s, "c"), "cold", "tier with another shape")


@test("a caller's ceiling below what the profile gives holds with a pool, too: memory, cpus, pids and disk by a jail of its own")
def _():
    tiers = {"memory": ("256M", "cold"), "cpus": (0.5, "cold"), "pids": (20, "cold"), "disk": ("1M", "cold"), "timeout": ("9s", "interpreter"), "max_output": ("1K", "interpreter")}
    shown = {"memory": 256 << 20, "cpus": 0.5, "pids": 20, "disk": 1 << 20, "timeout": 9000, "max_output": 1024}
    called = {"timeout": "wall", "max_output": "output"}
    for key, (most, tier) in tiers.items():
        with Service(config={**WARM, "callers": {f"uid:{os.geteuid()}": {key: most}}}) as s:
            wait_full(s)
            value = s.post({"profile": "python", "code": "print(1)", "id": "a"}).result
            equal((value["status"], value["stdout"]["text"], tier_of(s, "a")), ("exited", "1\n", tier), f"a ceiling of {key} ({value['error']})")
            equal(value["limits"][called.get(key, key)]["value"], shown[key], f"the limit of {key}")


@test("time, output, arguments, files and input of a request hold in prepared jails, too")
def _():
    with Service(config=WARM) as s:
        wait_full(s)
        value = s.post({"profile": "python", "code": "import time; time.sleep(60)", "timeout": "300ms", "id": "a"}).result
        equal((value["status"], tier_of(s, "a")), ("timeout", "interpreter"), "status and tier")
        wait_full(s)
        code = "import sys, json; print(sys.argv[1:], sys.stdin.read(), open('/box/f').read(), json.load(open('/box/args.json')), __name__)"
        value = s.post({"profile": "python", "code": code, "args": ["a", "-b"], "stdin": "in", "files": [{"path": "f", "text": "file"}], "args_json": {"x": 1}, "id": "b"}).result
        equal(value["stdout"]["text"], "['a', '-b'] in file {'x': 1} __main__\n", f"stdout (tier {tier_of(s, 'b')}; {value['stderr']})")
        wait_full(s)
        value = s.post({"profile": "python", "code": "print('x' * 5000)", "max_output": "1K", "id": "c"}).result
        equal((value["stdout"]["truncated"], value["stdout"]["bytes"]), (True, 5001), "output")


@test("a prepared jail does what a cold one does: exit codes, errors, denials, no more rights")
def _():
    code = "import os, sys\nprint(os.getuid(), sorted(os.listdir('/')), sorted(os.environ))\nprint(open('/proc/self/status').read().split('CapEff:')[1][:20])\nsys.exit(5)"
    with Service(config=WARM) as s:
        wait_full(s)
        warm = s.post({"profile": "python", "code": code, "id": "w"}).result
        cold = s.post({"profile": "python", "code": code, "memory": "300M", "id": "c"}).result
        equal((tier_of(s, "w"), tier_of(s, "c")), ("interpreter", "cold"), "tiers")
        equal((warm["stdout"]["text"], warm["exit_code"]), (cold["stdout"]["text"], cold["exit_code"]), "what they say")
        equal(warm["layers"], cold["layers"], "layers")
        wait_full(s)
        failed = s.post({"profile": "python", "code": "def f(:\n"}).result
        equal((failed["exit_code"], "SyntaxError" in failed["stderr"]["text"]), (1, True), "a program that is none")


@test("no jail serves twice: what one run leaves, the next does not find")
def _():
    with Service(config=WARM) as s:
        for i in range(8):
            code = f"import os, sys, builtins\nprint(os.path.exists('/box/mark'), os.path.exists('/tmp/mark'), hasattr(builtins, 'mark'), len(os.listdir('/box')))\nopen('/box/mark', 'w'); open('/tmp/mark', 'w'); builtins.mark = {i}"
            value = s.post({"profile": "python", "code": code}).result
            equal(value["stdout"]["text"].split()[:3], ["False"] * 3, f"run {i}")


@test("a profile that changes is used by the next request, and its prepared jails are replaced")
def _():
    with Folder() as f:
        def write(value):
            f.file("config/cejail/profiles/mine.json", json.dumps({"extends": "base", "network": "none", "env": {"A": value}}))

        write("old")
        body = {"profile": "mine", "command": ["/bin/sh", "-c", "echo $A"]}
        with Service(config={"pool": {"mine": {"jails": 2}}}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            wait_full(s)
            equal(s.post(body).result["stdout"]["text"], "old\n", "before")
            wait_full(s)
            write("newer")
            for _ in range(4):
                equal(s.post(body).result["stdout"]["text"], "newer\n", "after")


@test("a prepared jail that is too old is not used")
def _():
    with Service(config={**WARM, "pool_age": "1s"}) as s:
        wait_full(s)
        before = set(s.workers())
        wait_until(lambda: not before & set(s.workers()) - {s.workers()[0] if s.workers() else 0}, "all of them to be replaced", 20)
        equal(s.run().result["stdout"]["text"], "42\n", "stdout")


@test("prepared jails that die are noticed and replaced; no request is lost with them")
def _():
    with Service(config={"pool": {"python": {"jails": 2}}}) as s:
        wait_full(s)
        killed = [pid for pid in s.workers() if "cejail-worker" in (describe_process(pid) or "")]
        true(len(killed) >= 2, f"workers {killed}")
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):  # the probe's
                os.kill(pid, 9)
        wait_until(lambda: gone(killed), "them to be dead")
        for _ in range(3):
            equal(s.run().result["stdout"]["text"], "42\n", "stdout")
        wait_full(s)


@test("hits and misses of the pool are counted")
def _():
    with Service(config=WARM) as s:
        wait_full(s)
        before = s.metric("cejail_pool_requests_total", profile="python")
        s.post({"profile": "python", "code": "1"}).has(200)
        equal(s.metric("cejail_pool_requests_total", profile="python") - before, 1, "counted")
