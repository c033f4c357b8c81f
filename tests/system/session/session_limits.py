# SPDX-License-Identifier: Apache-2.0
"""The limits of a session: which exec meets them, and when the session ends."""

from harness import *  # noqa: F403
from service import Service

# Shared anonymous memory: no setrlimit(2) counts it.  Then it says so, and waits.
TAKE = (
    "import mmap, sys, time\n"
    "m = mmap.mmap(-1, int(sys.argv[1]) << 20)\n"
    "for _ in range(int(sys.argv[1])): m.write(bytes(range(256)) * 4096)\n"
    "open('/box/' + sys.argv[2], 'w').close()\n"
    "time.sleep(1000)\n"
)
BURN = "import time\nwhile time.process_time() < 1.5: pass\n"
# Forks until that is refused; its children wait.
FORK = (
    "import os, time\n"
    "n = 0\n"
    "try:\n"
    "  while n < 500:\n"
    "    if os.fork() == 0: time.sleep(1000)\n"
    "    n += 1\n"
    "except OSError as e: print('refused', e.errno == 11)\n"
)


class Session:
    def __init__(self, service, **settings):
        self.service = service
        body = {"profile": "base", "network": "none", "lease": "30m", **settings}
        self.path = "/v1/sessions/" + service.call("POST", "/v1/sessions", body).has(201).json["id"]

    def show(self):
        return self.service.get(self.path).has(200).json

    def exec(self, *command, **more):
        return self.service.call("POST", self.path + "/execs", {"command": list(command), **more})

    def result(self, *command, **more):
        return self.exec(*command, **more).has(200).json

    def take(self, mib, name, **more):
        return self.exec("python3", "-c", TAKE, str(mib), name, timeout="10m", **more)

    def start_taking(self, mib, name):
        self.take(mib, name, id=name, detach=True).has(202)
        wait_until(lambda: self.result("test", "-e", "/box/" + name)["exit_code"] == 0, f"{name} to have its memory", 60)

    def finished(self, name):
        def look():
            shown = self.service.get(f"{self.path}/execs/{name}?wait=10s").has(200).json
            return shown.get("result") if shown["state"] == "finished" else None

        return wait_until(look, f"exec {name} to finish", 60)

    def end(self):
        self.service.call("DELETE", self.path).has(200)


@test("an exec that alone needs too much memory is oom, with evidence, and the session lives", limit=180)
def _():
    with Service() as s:
        session = Session(s, memory="80M")
        session.start_taking(10, "daemon")
        value = session.take(200, "bomb").has(200).json
        equal((value["status"], value["limits"]["memory"]["hit"]), ("oom", True), "the bomb's end")
        equal(value["limits"]["memory"]["by"], "cgroup" if is_held_by_cgroup("memory") else "supervisor", "by")
        equal(session.show()["state"], "live", "the session")
        equal(session.result("echo", "on")["stdout"]["text"], "on\n", "the next exec")
        s.call("POST", session.path + "/execs/daemon/signal", {"signal": "KILL"})
        equal(session.finished("daemon")["status"], "signaled", "the daemon's end, which is its own")
        session.end()


@test("execs that together need too much memory end the session, with the reason oom", limit=180)
def _():
    with Service(config={"concurrency": 4}) as s:
        session = Session(s, memory="100M")
        for name in ("a", "b"):
            session.start_taking(36, name)
        session.take(36, "c", id="c", detach=True).has(202)
        shown = wait_until(lambda: (lambda v: v if v["state"] == "ended" else None)(session.show()), "the session's end", 60)
        equal(shown["reason"], "oom", "why it ended")


@test("what a daemon of one exec uses is not billed to the next exec", limit=180)
def _():
    with Service() as s:
        session = Session(s, memory="200M")
        session.start_taking(60, "daemon")
        value = session.result("python3", "-c", "print(1)")
        true(value["usage"]["memory_peak_bytes"] < 40 << 20, f"its memory: {value['usage']}")
        burning = session.exec("python3", "-c", BURN).has(200).json
        idle = session.result("sleep", "0.3")
        busy_ms, idle_ms = (v["usage"]["cpu_user_ms"] + v["usage"]["cpu_system_ms"] for v in (burning, idle))
        true(busy_ms >= 1000, f"the CPU time of the busy one: {burning['usage']}")
        true(idle_ms < busy_ms, f"the CPU time of the idle one: {idle['usage']}")
        session.end()


@test("processes of all execs count together, and an exec that is refused one goes on", limit=180)
def _():
    with Service() as s:
        session = Session(s, pids=30)
        value = session.result("python3", "-c", FORK, timeout=scaled(20))
        equal(value["stdout"]["text"], "refused True\n", "what it saw")
        if is_held_by_cgroup("pids"):
            equal(value["limits"]["pids"]["hit"], True, "hit")
        session.end()


@test("a session that ended has no cgroup, and neither has its init", limit=180)
def _():
    with Service() as s:
        before = set(our_cgroups())
        session = Session(s)
        equal(session.result("true")["exit_code"], 0, "an exec")
        session.end()
        wait_until(lambda: not [path for path in our_cgroups() if path not in before and has_children(path)], "the cgroups to go", 30)
