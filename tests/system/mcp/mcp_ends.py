# SPDX-License-Identifier: Apache-2.0
"""How calls and the server of `cejail mcp` end: cancelled, end of input, signals, a tiny environment."""

import json
import os
import signal
import socket
import subprocess
import time

from harness import *  # noqa: F403
from mcp_client import Server, facts_of

SHELL = ("-p", "shell", "--network", "none")


@test("mcp: a cancelled call is killed and has no answer; others go on")
def _():
    with Server(*SHELL) as s:
        kept = s.call_later("run_shell", code="sleep 2; echo kept")
        number = s.call_later("run_shell", progress=1, code="exec sleep 61")
        wait_until(lambda: any("sleep" in (describe_process(pid) or "") for pid in s.below()), "the program")
        s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number, "reason": "test"}})
        equal(facts_of(s.result(kept))["stdout"], "kept\n", "the other call")
        true(s.is_silent(1), "a message after the cancellation")
        wait_until(lambda: not any("sleep" in (describe_process(pid) or "") for pid in s.below()), "the end of the program")
        s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "none"}})
        equal(facts_of(s.call("run_shell", code="echo on"))["stdout"], "on\n", "the next call")


@test("mcp: the end of standard input ends the server and all jails")
def _():
    with Server(*SHELL) as s:
        for _ in range(3):
            s.call_later("run_shell", code="sleep 62")
        s.await_sleep()
        pids = s.below()
        s.process.stdin.close()
        await_exit(s.process, 30)
        s.await_end(pids)


@test("mcp: SIGTERM, SIGINT and SIGHUP end the server and its jails, with status 0")
def _():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with Server(*SHELL) as s:
            s.call_later("run_shell", code="sleep 63")
            s.await_sleep()
            s.signal(number)
            equal(await_exit(s.process, 30), 0, "the exit status")


@test("mcp: a server that cannot write its answers ends with one line and status 125")
def _():
    with open("/dev/full", "wb") as full:
        server = start("mcp", *SHELL, stdin=subprocess.PIPE, stdout=full)
        given = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
        _, err = server.communicate(given, timeout=30 * SLOW)
    equal(server.returncode, 125, "the exit status")
    equal(err.decode(), "cejail: write to standard output: No space left on device\n", "the line")


@test("mcp: a killed server leaves no jail running")
def _():
    with Server(*SHELL) as s:
        s.call_later("run_shell", code="sleep 64")
        s.await_sleep()
        pids = s.below()
        s.signal(signal.SIGKILL)
        s.process.wait()
        s.await_end(pids)
        s.process.returncode = 0  # looked at


@test("mcp: a reader of the output that goes away ends the server")
def _():
    with Server(*SHELL) as s:
        s.call_later("run_shell", code="sleep 65")
        s.await_sleep()
        s.process.stdout.close()
        equal(await_exit(s.process, 30), 0, "the exit status")


@test("mcp: the environment of the official client is enough")
def _():
    kept = {name: os.environ[name] for name in ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER") if name in os.environ}
    for env in (kept, {}):
        with Server(*SHELL, env=env) as s:
            equal(facts_of(s.call("run_shell", code="echo ok"))["stdout"], "ok\n", "the output")


@test("mcp: sockets serve as standard streams, as Node.js uses them")
def _():
    ours, theirs = socket.socketpair()
    process = start("mcp", *SHELL, stdin=theirs, stdout=theirs)
    theirs.close()
    with ours, ours.makefile("rwb") as stream:
        stream.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        stream.flush()
        equal(stream.readline(), b'{"jsonrpc":"2.0","id":1,"result":{}}\n', "the answer")
        ours.shutdown(socket.SHUT_WR)
        equal(await_exit(process, 30), 0, "the exit status")
    process.stderr.close()


@test("mcp: a file as standard input is refused in one line")
def _():
    with Folder() as folder:
        with open(folder.file("in", b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'), "rb") as file:
            refused(finish(start("mcp", *SHELL, stdin=file)), "is a file")


@test("mcp: after the first call a jail waits for the next one, and is not used twice")
def _():
    with Server("-p", "python", "--env", "A=b", "--network", "none") as s:
        facts_of(s.call("run_python", code="open('/box/x', 'w').write('1')"))
        for _ in range(4):
            facts = facts_of(s.call("run_python", code="import os; print(os.path.exists('/box/x'), os.environ['A']); open('/box/x', 'w')"))
            equal(facts["stdout"], "False b\n", facts["stderr"])
    with Server("-p", "python") as s:
        facts_of(s.call("run_python", code="1"))
        wait_until(lambda: "ready" in cejail("ps").out, "a prepared jail")
        equal(facts_of(s.call("run_python", code="print(2)"))["stdout"], "2\n", "the output")


@test("mcp: the first call of a profile leaves the jail that waits for another one")
def _():
    with Server("-p", "python", "-p", "shell") as s:

        def ready():
            rows = json.loads(cejail("ps", "--json").exits(0).out)["runs"]
            return {row["id"] for row in rows if row["state"] == "ready" and row["pid"] in s.below()}

        facts_of(s.call("run_python", code="1"))
        wait_until(ready, "a prepared jail")
        before = ready()
        facts_of(s.call("run_shell", code="true"))
        wait_until(lambda: len(ready()) == 2, "a prepared jail of the other profile")
        true(before < ready(), "the first jail is still there")


@test("mcp: an idle server sleeps, also with a prepared jail")
def _():
    def wakes(pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return [line for line in file if line.startswith("voluntary_ctxt_switches")]

    def sleeps(pid):
        before = wakes(pid)
        time.sleep(3)
        return wakes(pid) == before

    with Server("-p", "shell") as s:  # an option would change the jail, and none would be prepared
        s.call("run_shell", code="true")
        wait_until(lambda: len(s.below()) > 2, "a prepared jail")
        wait_until(lambda: sleeps(s.process.pid), "three seconds in which the server does nothing", 60)
        equal(facts_of(s.call("run_shell", code="echo on"))["stdout"], "on\n", "the next call")
