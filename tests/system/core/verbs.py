# SPDX-License-Identifier: Apache-2.0
"""Doctor and the small verbs."""

import json
import os
import re
import subprocess

from harness import *  # noqa: F403


@test("doctor prints a line for each feature that this host can enforce")
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


@test("doctor finds the rules and the links of a network where a jail has them")
def _():
    value = sh_result("true", "--network", "public", "--network-start", "early", "--uplink", "none")
    checks = {check["name"]: check for check in json.loads(cejail("doctor", "--json", limit=60).out)["checks"]}
    levels = {checks["nf_tables"]["level"], checks["veth"]["level"]}
    equal(levels == {"ok"}, value["layers"]["network_filter"] == "on", f"both are ok: {levels}")


@test("doctor leaves the host as it was")
def _():
    before = inventory()
    cejail("doctor", limit=60)
    equal(what_is_left(before), [], "new on the host")


@test("ps and gc succeed when there are no runs")
def _():
    cejail("ps").exits(0)
    cejail("gc").exits(0)


@test("verbs refuse unknown arguments and name them")
def _():
    refused(cejail("profile", "frobnicate"), "frobnicate")
    refused(cejail("ps", "--no-such"), "--no-such")
    refused(cejail("doctor", "extra"), "extra")
    refused(cejail("kill"), "cejail ps")
    refused(cejail("kill", "-9", "x"), "'-9'", "cejail kill --help")
    refused(cejail("profile", "show"), "cejail profile list")
    refused(sh("true", "--workdir", "out"), "'out'", "/box/out")
    refused(cejail("version", "extra"), "extra", "cejail version --help")
    refused(cejail("help", "no-such-verb"), "no-such-verb")


@test("every verb has a help of its own, on standard output, also behind other arguments and by 'help VERB'")
def _():
    verbs = [line.split()[0] for line in cejail("help").exits(0).out.splitlines() if line.startswith("  ")]
    true(len(verbs) >= 10, f"verbs {verbs}")
    seen = set()
    for verb in verbs:
        if verb == "serve" and not os.path.exists(f"{os.path.dirname(CEJAIL)}/../libexec/cejail/serve"):
            continue
        text = cejail(verb, "--help").exits(0).out
        contains(text, f"Usage: cejail {verb}", f"{verb} --help")
        equal(cejail("help", verb).exits(0).out, text, f"help {verb}")
        seen.add(text)
    true(len(seen) >= len(verbs) - 1, "two verbs have one help")
    equal(cejail("kill", "x", "-h").exits(0).out, cejail("kill", "--help").out, "kill x -h")
    equal(cejail("profile", "list", "--help").exits(0).out, cejail("profile", "--help").out, "profile list --help")


@test("ps --json is one JSON value with each run's id, profile, process and state")
def _():
    process = start("run", "-p", "base", "--network", "none", "--id", "test-ps-json", "-i", "--", "cat", stdin=subprocess.PIPE)
    try:
        def row():
            value = json.loads(cejail("ps", "--json").exits(0).out)
            equal(value["schema"], "cejail.ps/1", "schema")
            return next((run for run in value["runs"] if run["id"] == "test-ps-json"), None)

        seen = wait_until(lambda: (row() or {}).get("pid") and row(), "the run in the list")
        equal((seen["profile"], seen["pid"], seen["state"]), ("base", process.pid, "running"), "profile, pid, state")
        true(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", seen["started_at"]), seen["started_at"])
    finally:
        finish(process, 10)


@test("bash completes the options of serve, and the ids of kill")
def _():
    script = os.path.join(os.path.dirname(CEJAIL), "../share/bash-completion/completions/cejail")
    if not os.path.exists(script):
        raise Skip("the completions are not installed")
    ask = "PATH=$2:$PATH; . $1; COMP_WORDS=(cejail $3 ''); COMP_CWORD=2; [ -z \"$4\" ] || COMP_WORDS[2]=$4; _cejail; echo \"${COMPREPLY[@]}\""

    def complete(verb, begun=""):
        words = ["bash", "-c", ask, "bash", script, os.path.dirname(CEJAIL), verb, begun]
        return subprocess.run(words, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout.split()

    contains(complete("serve", "--"), "--config", "words after serve")
    contains(complete("ps", "--"), "--json", "words after ps")
    contains(complete("kill", "--"), "--help", "words after kill")
