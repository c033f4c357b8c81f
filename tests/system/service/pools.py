# SPDX-License-Identifier: Apache-2.0
"""Jails that were prepared ahead."""

import contextlib
import json
import os
import shutil
import time

from harness import *  # noqa: F403
from internet import TRY, Internet
from service import OTHER_UID, Service, as_uid, gone

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


@test("a waiting interpreter imports the program's own modules as a cold one does: beside it, written by it, or named as one of Python's")
def _():
    helper = {"path": "helper.py", "text": "import json\nWORD = 'helper'"}
    code = "import os, sys, helper, random\nopen('made.py', 'w').write('VALUE = 3')\nimport made\nprint(sys.path[0], os.getcwd(), helper.WORD, made.VALUE, hasattr(random, 'mine'))"
    with Service(config=WARM) as s:
        for name, files in (("a", [helper]), ("b", [helper, {"path": "random.py", "text": "mine = 1"}]), ("c", [helper, {"path": "random/__init__.py", "text": "mine = 1"}])):
            wait_full(s)
            request = {"profile": "python", "code": code, "files": files}
            warm, cold = s.post({**request, "id": name}).result, s.post({**request, "memory": "300M"}).result
            equal((tier_of(s, name), warm["stdout"]["text"]), ("interpreter", cold["stdout"]["text"]), f"tier and output ({warm['stderr']})")
            equal(cold["stdout"]["text"], f"/box /box helper 3 {name != 'a'}\n", f"output of a cold run ({cold['stderr']})")


@test("a request's PYTHON variables have their meaning with a pool, too: they take an interpreter that starts with them")
def _():
    request = {"profile": "python", "code": "import sys, helper; print(sys.flags.hash_randomization, helper.WORD)", "env": {"PYTHONHASHSEED": "0", "PYTHONPATH": "/box/lib"}}
    with Service(config=WARM) as s:
        wait_full(s)
        value = s.post({**request, "files": [{"path": "lib/helper.py", "text": "WORD = 'helper'"}], "id": "a"}).result
        equal((value["stdout"]["text"], tier_of(s, "a")), ("0 helper\n", "jail"), f"output and tier ({value['stderr']})")


@test("a profile's PYTHONPATH into the jail's own directory is looked at when the program comes")
def _():
    with Folder() as f:
        f.file("cejail/profiles/lib.json", '{"extends": "python", "env": {"PYTHONPATH": "/box/lib"}}')
        with Service(config={"pool": {"lib": {"interpreters": 1}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            wait_full(s)
            value = s.post({"profile": "lib", "code": "import helper; print(helper.WORD)", "files": [{"path": "lib/helper.py", "text": "WORD = 'helper'"}], "id": "a"}).result
            equal((value["stdout"]["text"], tier_of(s, "a")), ("helper\n", "interpreter"), f"output and tier ({value['stderr']})")


@test("a prepared jail does what a cold one does: exit codes, errors, denials, no more rights")
def _():
    code = "import os, sys\nprint(os.getuid(), sorted(os.listdir('/')), os.listdir('/box/out'), sorted(os.environ))\nprint(open('/proc/self/status').read().split('CapEff:')[1][:20])\nsys.exit(5)"
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


@test("a list of processes shows a prepared interpreter by a short command, without the launcher's script")
def _():
    profiles = ["python"] + ["node"] * bool(shutil.which("node"))
    with Service(config={"pool": {profile: {"interpreters": 1} for profile in profiles}}) as s:
        wait_full(s)
        found = set()
        for pid in s.workers():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().split(b"\0")
                true(max(map(len, command)) < 200, f"process {pid} is shown as {command}")
                found |= {profile for profile in profiles if profile.encode() in command[0]}
        equal(found, set(profiles), "interpreters that were seen")


def oom_scores(pids):
    """Of the processes among these that still are there."""
    found = set()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/oom_score_adj", encoding="ascii") as file:
            found.add(int(file.read()))
    return found


@test("prepared jails keep the service's OOM score, and a program gets a higher one when it starts")
def _():
    with Service(config=WARM) as s:
        wait_full(s)
        with open(f"/proc/{s.process.pid}/oom_score_adj", encoding="ascii") as file:
            own = int(file.read())
        wait_until(lambda: oom_scores(s.workers()) == {own}, "no score but the service's: the probe's run has ended")
        code = "print(open('/proc/self/oom_score_adj').read(), open('/proc/1/oom_score_adj').read())"
        for body in ({}, {"memory": "300M"}):
            value = s.post({"profile": "python", "code": code, **body}).result
            equal(value["stdout"]["text"].split()[0], str(max(own, 500)), f"the program's score ({body}, {value['stderr']})")


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


@test("nothing of a reduced profile is prepared ahead: the service says so, and its runs are reduced")
def _():
    with Folder() as f:
        f.file("config/cejail/profiles/small.json", '{"extends": "python", "reduced": true, "network": "none"}')
        with Service(config={"pool": {"small": {"jails": 1, "interpreters": 1}}}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            for name in ("a", "b"):
                value = s.post({"profile": "small", "code": "print(6 * 7)", "id": name}).result
                equal((value["stdout"]["text"], value["layers"]["user_ns"], tier_of(s, name)), ("42\n", "off", "cold"), "a run")
            for tier in ("jail", "interpreter"):
                wait_until(lambda: f"no {tier} of profile 'small' can be prepared ahead" in s.get("/readyz").json["reasons"], "the reason", 20)


@test("a prepared jail that is too old is not used")
def _():
    with Service(config={**WARM, "pool_age": "1s"}) as s:
        wait_full(s)

        def workers():
            return {pid for pid in s.workers() if "cejail-worker" in (describe_process(pid) or "")}

        before = workers()
        wait_until(lambda: not before & workers(), "all of them to be replaced", 20)
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


@test("a prepared jail has no network until its program opens a socket, and the metrics and the audit say which did")
def _():
    see = "print([line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line])\n"
    use = TRY + see + "print(attempt('tcp', 'four.test', 80), attempt('tcp', '10.1.2.3', 80))\n" + see
    with Internet() as net, Folder() as f:
        with Service(config={**WARM, "audit": {"file": f / "audit"}}, **net.inside) as s:
            wait_full(s)
            equal(net.left(), [], "what the host has of waiting jails")
            request = {"profile": "python", "id": "unused", "code": see}
            value = s.post(request).result
            equal((value["stdout"]["text"], tier_of(s, "unused")), ("['lo']\n", "interpreter"), "links and tier")
            equal((value["network"]["state"], value["network"]["uplink"]), ("unused", None), "state and uplink")
            for name, more in (("a", {}), ("b", {"env": {"A": "1"}}), ("c", {"memory": "100M"})):
                wait_full(s)
                value = s.post({"profile": "python", "id": name, "code": use, **more}).result
                equal(value["stdout"]["text"], "['lo']\nanswered ECONNREFUSED\n['lo', 'eth0']\n", f"output, tier {tier_of(s, name)} ({value['stderr']['text'][-400:]})")
                equal(value["network"]["state"], "ready", "state")
                equal([row["count"] for row in value["network"]["denied"]], [1], "denied")
            equal({tier_of(s, name) for name in "abc"}, {"interpreter", "jail", "cold"}, "tiers")
            wait_full(s)
            value = s.post({"profile": "python", "id": "early", "code": see, "network": {"start": "early"}}).result
            equal((value["stdout"]["text"], tier_of(s, "early")), ("['lo', 'eth0']\n", "cold"), "links and tier of an early start")
            rows = [row.split() for row in s.get("/metrics").body.decode().splitlines() if row.startswith("cejail_run_networks_total{")]
            equal([int(count) for _, count in rows], [2, 4, 0], "runs by network: unused (one is the service's probe), ready, failed")
        with open(f / "audit", encoding="utf-8") as lines:
            ends = {row["id"]: row["network_state"] for row in map(json.loads, lines) if row["event"] == "end"}
        equal({name: ends[name] for name in ("unused", "a", "early")}, {"unused": "unused", "a": "ready", "early": "ready"}, "audit")


@test("hits and misses of the pool are counted")
def _():
    with Service(config=WARM) as s:
        wait_full(s)
        before = s.metric("cejail_pool_requests_total", profile="python")
        s.post({"profile": "python", "code": "1"}).has(200)
        equal(s.metric("cejail_pool_requests_total", profile="python") - before, 1, "counted")


@test("/metrics and /readyz say how often the pool was bypassed, and why", who="root")
def _():
    config = {**WARM, "callers": {f"uid:{OTHER_UID}": {"memory": "32M"}}}
    with Service(config=config) as s:
        wait_full(s)
        plain = {"profile": "base", "command": ["true"]}

        def seen():
            rows = {row["reason"]: row["runs"] for row in s.get("/readyz").json["pool_bypassed"] if row["profile"] == "base"}
            equal(rows, {reason: int(value) for reason in ("request", "ceiling", "empty") if (value := s.metric("cejail_pool_bypassed_total", profile="base", reason=reason))}, "the two of them")
            return rows

        s.post(plain).has(200)
        equal(seen(), {}, "bypassed by a run of the pool's")
        wait_full(s)
        s.post({**plain, "memory": "100M"}).has(200)
        equal(seen(), {"request": 1}, "bypassed when a request asks for another jail")
        if os.geteuid() == 0:
            as_uid(OTHER_UID, s.post, plain).has(200)
            equal(seen(), {"request": 1, "ceiling": 1}, "bypassed when a ceiling needs another jail")
        s.post({"profile": "shell", "command": ["true"], "memory": "100M"}).has(200)
        equal({row["profile"] for row in s.get("/readyz").json["pool_bypassed"]}, {"base"}, "profiles: not the one without a pool")


@test("ps shows a prepared jail as ready, and as running once it has a program")
def _():
    def states():
        rows = json.loads(cejail("ps", "--json").exits(0).out)["runs"]
        return sorted(row["state"] for row in rows if row["pid"] in s.workers())

    with Service(config={"pool": {"python": {"interpreters": 1}}}) as s:
        wait_full(s)
        wait_until(lambda: set(states()) == {"ready"}, "the trial run of the start to end")
        going = s.background(s.run, "import time; time.sleep(60)", id="a")
        s.await_state("a", "running")
        wait_until(lambda: "running" in states(), "the run in ps")
        wait_full(s)
        wait_until(lambda: states().count("running") == 1 and "ready" in states(), "the run, and the jail that takes its place")
        s.call("DELETE", "/v1/runs/a")
        going.finish()
