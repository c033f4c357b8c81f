# SPDX-License-Identifier: Apache-2.0
"""Profiles: the shipped ones, overriding them, extending them (contract 4)."""

import json
import os
import resource

from harness import *  # noqa: F403


@test("list names the shipped profiles with a line about each")
def _():
    out = cejail("profile", "list").exits(0).out
    for name in ("base", "python", "python-data", "node", "deno", "shell", "ci"):
        true(any(line.startswith(name) for line in out.splitlines()), f"{name} is missing in {out!r}")


@test("show prints the effective settings as a profile, parents included")
def _():
    value = json.loads(cejail("profile", "show", "python").exits(0).out)
    contains(value["extensions"], ".py", "extensions")
    true("memory" in value and "pids" in value, f"settings {sorted(value)}")


@test("what show prints is a profile that gives the same")
def _():
    shown = cejail("profile", "show", "python").exits(0).out
    with Folder() as f:
        file = f.file("copy.json", shown)
        cejail("profile", "check", file).exits(0)
        equal(json.loads(cejail("profile", "show", file).exits(0).out), json.loads(shown), "shown again")


@test("every shipped profile checks and is as the schema says")
def _():
    for name in ("base", "python", "python-data", "node", "deno", "shell", "ci"):
        check_schema(json.loads(cejail("profile", "show", name).exits(0).out), "profile.json")


@test("show of a missing profile is refused by name")
def _():
    refused(cejail("profile", "show", "no-such"), "no-such")
    refused(cejail("profile", "check", "/no/such/file"), "/no/such/file")


@test("a profile in the user's own directory overrides the shipped one of its name")
def _():
    with Folder() as f:
        f.file("cejail/profiles/python.json", '{"extends": "base", "command": ["/bin/echo", "mine", "{file}"], "extensions": [".py"], "file_name": "f"}')
        env = environment(XDG_CONFIG_HOME=f.path)
        run("-p", "python", "-c", "x", env=env).exits(0).says("mine /box/f\n")
        contains(cejail("profile", "list", env=env).exits(0).out, "python", "list")


@test("a profile that extends another one changes only its own keys")
def _():
    with Folder() as f:
        file = f.file("p.json", '{"extends": "python", "pids": 33, "env": {"EXTRA": "yes"}}')
        base, own = (json.loads(cejail("profile", "show", name).exits(0).out) for name in ("python", file))
        equal(own["pids"], 33, "pids")
        equal(own["command"], base["command"], "command")
        equal(own["env"]["EXTRA"], "yes", "env")
        equal({k: own["env"][k] for k in base["env"]}, base["env"], "the parent's env")


@test("an option overrides the profile, and the profile overrides its parent")
def _():
    with Folder() as f:
        file = f.file("p.json", '{"extends": "base", "pids": 33, "command": ["sh", "{file}"]}')
        equal(result("-p", file, "-c", "true")["limits"]["pids"]["value"], 33, "pids")
        equal(result("-p", file, "--pids-limit", "44", "-c", "true")["limits"]["pids"]["value"], 44, "pids")


@test("{args} is replaced by the arguments, each as one argument")
def _():
    with Folder() as f:
        file = f.file("p.json", '{"extends": "base", "command": ["/bin/sh", "-c", "echo $# $3", "x", "{file}", "{args}", "end"]}')
        run("-p", file, "-c", "code", "a b", "$(id)").exits(0).says("4 $(id)\n")


@test("the jail's environment is exactly the env of the profile")
def _():
    names = {line.split("=")[0] for line in python("import os\nfor k in os.environ: print(k)").exits(0).out.split()}
    known = {"PATH", "HOME", "LANG", "TERM", "LC_CTYPE", "TMPDIR", "SHELL", "USER", "LOGNAME", "LSAN_OPTIONS"}
    known |= {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PIP_BREAK_SYSTEM_PACKAGES", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_CACHE_DIR", "PIP_USER"}
    true(names <= known, f"variables {sorted(names)}")


@test("python-data runs a program with or without numpy on the host, and numpy starts no thread")
def _():
    code = """
try:
    import numpy
    total = numpy.ones((64, 64)).dot(numpy.ones((64, 64))).sum()
except ImportError:
    total = 64.0 ** 3
import os
print(total, len(os.listdir("/proc/self/task")), os.environ["MPLCONFIGDIR"])"""
    run("-p", "python-data", "-c", code).exits(0).says("262144.0 1 /tmp/matplotlib\n")


@test("the ci profile has a private, writable copy of a tree and a compiler's needs")
def _():
    with Folder() as f:
        f.file("tree/build.sh", "echo built > result && cat result")
        done = run("-p", "ci", "-f", f"{f / 'tree'}:/box/src", "-w", "/box/src", "--", "/bin/sh", "build.sh")
        done.exits(0).says("built\n")
        equal(os.listdir(f / "tree"), ["build.sh"], "the host's tree")


@test("a build of the ci profile may open thousands of files: the Go tools and linkers do")
def _():
    code = "import os, resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)); files = [os.open('/dev/null', 0) for _ in range(16000)]; print(len(files))"
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 16384:
        refused(run("-p", "ci", "--", PYTHON, "-c", code), "nofile 16384", "hard limit")
        return
    run("-p", "ci", "--", PYTHON, "-c", code).exits(0).says("(16384, 16384)\n16000\n")


@test("the seccomp file of a profile is found in the profile's directory")
def _():
    policy = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["uname"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}
    with Folder() as f:
        file = f.file("policy.json", json.dumps(policy))
        profile = f.file("p.json", json.dumps({"extends": "base", "seccomp": file}))
        contains(run("-p", profile, "--", "/bin/sh", "-c", "uname 2>&1; true").exits(0).out, "not implemented", "uname's answer")
