# SPDX-License-Identifier: Apache-2.0
"""cejail inside the containers of podman, by crun and runc: the recipes of cejail-recipes(7), and what doctor says without them."""

import json
import os

from cri_client import Cri
from engines import Podman, need
from harness import *  # noqa: F403

PREFIX = os.path.dirname(os.path.dirname(CEJAIL))
SECCOMP = f"{PREFIX}/share/doc/cejail/examples/container-seccomp.json"
# The recipe.  A container whose processes need no network of their own gets tun for the uplink of its jails all the same.
RECIPE = ("--security-opt", "unmask=ALL", "--security-opt", f"seccomp={SECCOMP}", "--device", "/dev/net/tun")
REFUSED = "import socket; print(socket.socket().connect_ex(('10.9.9.9', 99)))"
# Everybody may submit, in turn: a program that ends well, one that takes all memory, one that never ends, one that forks.
JUDGE = r"""
import collections, json, subprocess, sys
PROGRAMS = [
    ("exited", "60", "echo $((6 * 7))"),
    ("oom", "60", "x=xxxxxxxx; while :; do x=$x$x; done"),
    ("cpu_limit", "1", "while :; do :; done"),
    ("exited", "60", "i=0; while [ $i -lt 40 ]; do sleep 20 & i=$((i + 1)); done 2>/dev/null; true"),
]
seen = collections.Counter()
for number in range(int(sys.argv[1])):
    wanted, cpu, script = PROGRAMS[number % len(PROGRAMS)]
    words = ["/usr/local/bin/cejail", "run", "--json", "-p", "shell", "--network", "none", "--memory", "24M", "--pids-limit", "8",
             "--cpu-time", cpu, "--timeout", sys.argv[2], "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    result = json.loads(done.stdout)
    ok = result["status"] == wanted and not result["warnings"] and {result["limits"][name]["by"] for name in ("memory", "pids")} == {"cgroup"}
    seen["as wanted" if ok else f"{wanted}: {done.stdout}{done.stderr}"] += 1
print(json.dumps(seen))
"""


class Outer(Podman):
    """A container with the host's /usr, in which cejail is installed."""

    def __enter__(self):
        need(self.runtime)
        super().__enter__()
        os.mkdir(f"{self.rootfs}/usr")
        for name in ("lib", "lib64", "sbin"):
            os.symlink(f"usr/{name}", f"{self.rootfs}/{name}")
        return self

    def execute(self, *words, options=RECIPE, **more):
        return self.run(*words, options=("-v", "/usr:/usr:ro", *options), **more)

    def doctor(self, *options):
        done = self.execute(CEJAIL, "doctor", "--json", options=options)
        return {check["name"]: check for check in json.loads(done.out)["checks"]}


def engines():
    """runc refuses to run without cgroups, which podman has only where it may make some."""
    return ("crun", "runc") if WHO == "root" else ("crun",)


@test("in a container of podman with its defaults, a run is refused, and doctor prints the option that is missing", who="machine accounts", limit=240)
def _():
    for engine in engines():
        with Outer(engine) as p:
            done = p.execute(CEJAIL, "run", "-p", "shell", "-c", "true", options=())
            equal(done.code, 125, "the exit status")
            contains(done.err, "'cejail doctor'", "the message")
            checks = p.doctor()
            equal(checks["/proc"]["level"], "missing", "the check of /proc")
            contains(checks["/proc"]["remedy"], "podman run --security-opt unmask=ALL", "the remedy")


@test("in a container by the recipe a jail has all its layers and limits, and a network by a helper", who="machine root", limit=240)
def _():
    for engine in engines():
        with Outer(engine) as p:
            done = p.execute(CEJAIL, "run", "--json", "-p", "python", "--network", "none", "-c", "import os; print(os.getpid(), os.uname().nodename)")
            value = parse_result(done.out, done)
            equal((value["status"], value["stdout"]["text"], value["warnings"]), ("exited", "3 cejail\n", []), f"a run below {engine}")
            equal({name for name, state in value["layers"].items() if state != "on"}, {"network_filter"}, f"layers that are off below {engine}")
            equal({value["limits"][name]["by"] for name in ("memory", "pids", "cpus")}, {"cgroup"}, "the limits")
            done = p.execute(CEJAIL, "run", "--json", "-p", "python", "--network", "public", "-c", REFUSED)
            value = parse_result(done.out, done)
            equal((value["network"]["state"], value["layers"]["network_filter"]), ("ready", "on"), f"the network below {engine}: {value}")
            equal([one["address"] for one in value["network"]["denied"]], ["10.9.9.9"], "denials")
            levels = {check["level"] for name, check in p.doctor(*RECIPE).items() if name not in ("node",)}
            true(levels <= {"ok", "note"}, f"doctor below {engine}: {p.doctor(*RECIPE)}")


@test("a judge in a container holds every submission by cgroup v2: good ones, memory bombs, endless ones, fork bombs", who="machine root", limit=1200)
def _():
    count = share(50, 8)
    with Outer("crun") as p:
        done = p.execute("/usr/bin/python3", "-c", JUDGE, str(count), str(20 * SLOW), limit=1000).exits(0)
        equal(json.loads(done.out), {"as wanted": count}, "what became of them")
    tried(count)


@test("in a rootless container by the recipe a jail has all its layers, and a warning names the limits that no cgroup holds", who="machine user", limit=240)
def _():
    with Outer("crun") as p:
        done = p.execute(CEJAIL, "run", "--json", "-p", "shell", "--network", "none", "-c", "id -u; hostname")
        value = parse_result(done.out, done)
        equal((value["status"], value["stdout"]["text"]), ("exited", "1000\ncejail\n"), "a run")
        equal({name for name, state in value["layers"].items() if state != "on"} - {"cgroup"}, {"network_filter"}, "layers that are off")
        equal([warning.partition(":")[0] for warning in value["warnings"]], ["limits"], "the warnings")


@test("in a pod of containerd by the recipe, without capabilities, a jail has all its layers and a network, and doctor tells root what it needs", who="root", limit=240)
def _():
    with Cri(need("runc"), usr=True) as c:
        pod = c.pod("judge")

        def execute(name, uid, *words):
            more = {"seccomp": SECCOMP, "mounts": ["/usr", PREFIX], "devices": ["/dev/net/tun"], "uid": uid}
            container = c.container(pod, name, "/bin/sleep", "1000", **more)
            out, err, code = c.execute(container, CEJAIL, *words)
            return json.loads(out), err, code

        value, err, _code = execute("judge", 1000, "run", "--json", "-p", "shell", "--network", "none", "-c", "echo $((6 * 7))")
        equal((value["status"], value["stdout"]["text"]), ("exited", "42\n"), f"a run: {err}")
        equal({name for name, state in value["layers"].items() if state != "on"} - {"cgroup"}, {"network_filter"}, "layers that are off")
        equal([warning.partition(":")[0] for warning in value["warnings"]], ["limits"], "the warnings")
        value, err, _code = execute("network", 1000, "run", "--json", "-p", "python", "--network", "public", "-c", REFUSED)
        equal((value["network"]["state"], value["layers"]["network_filter"]), ("ready", "on"), f"the network: {value} {err}")
        equal([one["address"] for one in value["network"]["denied"]], ["10.9.9.9"], "denials")
        value, _err, code = execute("root", None, "doctor", "--json")
        check = {one["name"]: one for one in value["checks"]}["user namespaces"]
        equal((code, check["level"]), (125, "missing"), "for root")
        contains(check["text"], "SETUID", "the check")
        contains(check["remedy"], "as an ordinary user", "the remedy")
