# SPDX-License-Identifier: Apache-2.0
"""Doctor and the small verbs."""

import json

from harness import *  # noqa: F403


@test("doctor says what this host can enforce, a line each, and agrees with a run")
def _():
    done = cejail("doctor", limit=60)
    true(done.code in (0, 1), f"{done!r}")
    for word in ("user", "cgroup", "seccomp"):
        contains(done.out.lower(), word, "doctor")


@test("doctor --json is one JSON value that names memory, cpu and pids")
def _():
    done = cejail("doctor", "--json", limit=60)
    checks = {check["name"]: check for check in json.loads(done.out)["checks"]}
    for name, limit in (("memory limit", "memory"), ("CPU limit", "cpus"), ("process limit", "pids")):
        equal(checks[name]["level"] == "ok", facts()["limits"][limit]["by"] == "cgroup", f"{name} is ok")
        true(checks[name]["level"] == "ok" or checks[name]["remedy"], f"{name} has no remedy")


@test("doctor leaves the host as it was")
def _():
    before = inventory()
    cejail("doctor", limit=60)
    equal(what_is_left(before), [], "new on the host")


@test("ps and gc with nothing to do say nothing wrong")
def _():
    cejail("ps").exits(0)
    cejail("gc").exits(0)


@test("verbs refuse what they don't know")
def _():
    refused(cejail("profile", "frobnicate"), "frobnicate")
    refused(cejail("ps", "--no-such"), "--no-such")
    refused(cejail("doctor", "extra"), "extra")
    refused(cejail("kill"))
