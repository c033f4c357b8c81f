# SPDX-License-Identifier: Apache-2.0
"""The result: one JSON object per run, whatever happens (contract 3)."""

import json
import os
import re

from harness import *  # noqa: F403


@test("a result has every member of the contract and follows the schema")
def _():
    value = facts()
    for name in (
        "schema", "id", "profile", "code_sha256", "status", "exit_code", "signal", "error", "stdout", "stderr", "usage",
        "limits", "layers", "network", "denied_syscalls", "artifacts", "warnings", "started_at",
    ):  # fmt: skip
        true(name in value, f"'{name}' is missing")
    equal(value["schema"], "cejail.result/1", "schema")
    true(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value["started_at"]), value["started_at"])
    true(re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", value["id"]), value["id"])


@test("status is exited, signaled or timeout, by how the run ended")
def _():
    value = sh_result("exit 9")
    equal((value["status"], value["exit_code"], value["signal"], value["error"]), ("exited", 9, None, None), "exit")
    value = probe_result("behave", "signal", "9")
    equal((value["status"], value["exit_code"], str(value["signal"]) in ("9", "KILL", "SIGKILL")), ("signaled", None, True), "kill")


@test("a program that exits with the code of a limit still has the status exited")
def _():
    for code in (124, 125, 137):
        value = sh_result(f"exit {code}")
        equal((value["status"], value["exit_code"]), ("exited", code), "status")


@test("--result-fd writes the result to a descriptor of the caller")
def _():
    ours, theirs = os.pipe()
    done = sh("echo through", "--result-fd", str(theirs), pass_fds=(theirs,)).exits(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        value = parse_result(file.read())
    equal((done.out, value["stdout"]["text"]), ("through\n", "through\n"), "output")


@test("events are JSON lines in the order they happen: start first, result last")
def _():
    ours, theirs = os.pipe()
    sh("echo out; echo err >&2; unshare -U true 2>/dev/null; true", "--events-fd", str(theirs), pass_fds=(theirs,)).exits(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        events = [json.loads(line) for line in file]
    kinds = [event.get("type", event.get("event")) for event in events]
    equal((kinds[0], kinds[-1]), ("start", "result"), "first and last")
    for kind in ("stdout", "stderr", "denied"):
        true(kind in kinds, f"no '{kind}' among {kinds}")


@test("denied system calls are named and counted")
def _():
    value = probe_result("attempt_mounts", "mount", "unshare_user")
    denied = {entry["name"]: entry["count"] for entry in value["denied_syscalls"]}
    if facts()["layers"].get("syscall_report") == "on":
        equal(denied.get("mount"), 1, f"mounts in {denied}")
        true(any(name.startswith("unshare") for name in denied), f"unshare in {denied}")
    else:
        true(any("report" in words or "notif" in words for words in value["warnings"]), f"warnings {value['warnings']}")


@test("a denied socket family is named with the family")
def _():
    if facts()["layers"].get("syscall_report") != "on":
        return
    names = [entry["name"] for entry in probe_result("attempt_sockets", "alg", "vsock")["denied_syscalls"]]
    true(any("socket" in name and "AF_ALG" in name for name in names), f"names {names}")


@test("many denied calls are counted in a bounded list, and the run still ends normally")
def _():
    count = 20000 if SLOW < 5 else 500
    code = f"import ctypes\nlibc = ctypes.CDLL(None)\nfor i in range({count}): libc.mount(b'x', b'/x', b'x', 0, 0)\nprint('done')"
    value = result("-p", "python", "-t", str(int(55 * SLOW)), "-c", code, limit=58)
    equal(value["stdout"]["text"], "done\n", "stdout")
    equal(value["denied_syscalls"], [{"name": "mount", "count": count}], "denied")


@test("every layer is on, absent or off, and the layers of isolation are on")
def _():
    layers = facts()["layers"]
    equal(set(layers.values()) - {"on", "absent", "off"}, set(), "states")
    for name in ("user_ns", "pid_ns", "mount_ns", "network_ns", "ipc_ns", "uts_ns", "root", "no_new_privs", "capabilities", "seccomp"):
        equal(layers.get(name), "on", f"layers.{name}")


@test("--id names the run")
def _():
    equal(sh_result("true", "--id", "my-run-1")["id"], "my-run-1", "id")


@test("generated ids are unique and increase")
def _():
    first, second = sh_result("true")["id"], sh_result("true")["id"]
    true(first < second, f"{first} then {second}")


@test("with --json the exit status is the same as without it")
def _():
    run("--json", "-p", "base", "--", "/bin/sh", "-c", "exit 5").exits(5)
    run("--json", "-p", "base", "-t", "300ms", "--", "/bin/sleep", "6000").exits(124)
    run("--json", "-p", "base", "--", "/no/such").exits(127)


@test("the result of a missing command names the command")
def _():
    value = parse_result(run("--json", "-p", "base", "--", "/no/such").out)
    contains(json.dumps(value), "/no/such", "the result")


@test("without a network the result has the mode none and no uplink")
def _():
    network = sh_result("true", "--network", "none")["network"]
    equal(network, {"mode": "none", "state": None, "reason": None, "uplink": None, "denied": []}, "network")


@test("the descriptor of --result-fd is not open in the jail")
def _():
    ours, theirs = os.pipe()
    done = sh(f"ls /proc/self/fd; echo x >&{theirs}", "--result-fd", str(theirs), pass_fds=(theirs,))
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        parse_result(file.read())
    true(done.code != 0, "the result's descriptor was open inside")
