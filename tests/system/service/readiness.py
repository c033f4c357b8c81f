# SPDX-License-Identifier: Apache-2.0
"""Health that tells the truth, and counters that count."""

import json
import re

from api import check_with_refs
from harness import *  # noqa: F403
from service import Service


@test("/readyz tells of a real run, the queue, the pool, the limits and the audit")
def _():
    with Folder() as f, Service(config={"pool": {"base": {"jails": 1}}, "audit": {"file": f / "log"}, "concurrency": 3, "queue": 7}) as s:
        health = s.get("/readyz").has(200).json
        check_with_refs(health, "health.json")
        equal((health["queue"]["max"], health["runs"]["max"], health["audit"]["on"]), (7, 3, True), "what was configured")
        equal(health["probe"]["status"], "exited", "the probe")
        equal(health["limits_by"]["memory"], facts()["limits"]["memory"]["by"], "who holds memory")
        equal([(row["profile"], row["wanted"]) for row in health["pool"]], [("base", 1)], "the pool")


@test("a limit that is enforced by something weaker than a cgroup makes the service degraded, with a reason")
def _():
    with Service() as s:
        health = s.get("/readyz").has(200).json
        weak = bool(facts()["warnings"])
        if weak:
            equal(health["status"], "degraded", f"status ({health['reasons']})")
            true(health["reasons"], "no reason is given")


@test("a profile that stops working makes the service unready, and ready again once it works")
def _():
    with Folder() as f:
        def write(**more):
            f.file("config/cejail/profiles/probe.json", json.dumps({"extends": "base", "network": "none", **more}))

        write()
        config = {"probe_profile": "probe", "probe_interval": "1s"}
        with Service(config=config, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            write(workdir="/no/such/place")
            wait_until(lambda: s.get("/readyz").status == 503, "unready", 15)
            health = s.get("/readyz").json
            equal(health["status"], "unready", "status")
            true(health["reasons"], "no reason is given")
            equal(s.get("/livez").has(200).json["status"], "alive", "livez")
            equal(s.metric("cejail_probe_success"), 0, "the gauge")
            write()
            wait_until(lambda: s.get("/readyz").status == 200, "ready again", 15)
            equal(s.metric("cejail_probe_success"), 1, "the gauge")


@test("a busy service stays ready: a probe that waited too long in the queue has not failed")
def _():
    with Service(config={"concurrency": 1, "queue_wait": "1s", "probe_interval": "1s"}) as s:
        long = s.background(s.sh, "sleep 6000", id="long")
        s.await_state("long", "running")

        def is_busy():
            health = s.get("/readyz").has(200).json
            return health["status"] == "degraded" and any("busy" in reason for reason in health["reasons"])

        wait_until(is_busy, "a probe to wait in vain", 15)
        equal(s.metric("cejail_probe_success"), 1, "the gauge")
        s.call("DELETE", "/v1/runs/long").has(202)
        long.finish().has(200)
        wait_until(lambda: not is_busy(), "a probe that works", 15)


@test("metrics are Prometheus text: each family once, with help and type, no name of a caller in it")
def _():
    with Service() as s:
        s.sh("exit 1", id="some-id").has(200)
        s.run("1", profile="no-such").has(400)
        text = s.get("/metrics").has(200).body.decode()
        types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
        equal(len(types), len(dict(types)), "families")
        names = {name for name, _ in types}
        for line in text.splitlines():
            if line.startswith("#") or not line:
                continue
            found = re.fullmatch(r'([a-z_:][a-z0-9_:]*)(\{([a-z_]+="[^"]*",?)*\})? (\S+)', line)
            true(found, f"no line of Prometheus': {line!r}")
            base = re.sub("_(bucket|sum|count)$", "", found[1])
            true(found[1] in names or base in names, f"{found[1]} has no type")
            float(found[4])
        for word in ("uid:", "some-id", "no-such", "token"):
            lacks(text, word, "the metrics")


@test("runs, refusals, answers and denials are counted")
def _():
    with Service() as s:
        def counts():
            return {
                "runs": s.metric("cejail_runs_total", profile="base", status="exited"),
                "timeouts": s.metric("cejail_runs_total", profile="base", status="timeout"),
                "bad": s.metric("cejail_http_responses_total", code="400") + s.metric("cejail_http_responses_total", status="400"),
                "duration": s.metric("cejail_run_duration_seconds_count"),
            }

        before = counts()
        s.sh("true").has(200)
        s.sh("sleep 6000", timeout="200ms").has(200)
        s.post("{").has(400)
        after = counts()
        change = {name: after[name] - before[name] for name in before}
        equal(change, {"runs": 1, "timeouts": 1, "bad": 1, "duration": 2}, "what was counted")
        equal(s.metric("cejail_runs_in_flight"), 0, "in flight")
        first = s.background(s.sh, "sleep 6000", id="a")
        s.await_state("a", "running")
        equal(s.metric("cejail_runs_in_flight"), 1, "in flight")
        s.call("DELETE", "/v1/runs/a").has(202)
        first.finish()


@test("denied packets and system calls of all runs are counted")
def _():
    with Service() as s:
        value = s.sh("unshare -U true; true").result
        if value["layers"].get("syscall_report") != "on":
            raise Skip("this host does not report system calls")
        true(s.metric("cejail_syscalls_denied_total") > 0, "nothing was counted")
