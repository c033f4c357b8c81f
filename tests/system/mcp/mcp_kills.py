# SPDX-License-Identifier: Apache-2.0
"""SIGKILL to the roles of an MCP server with a busy call and a session: what is answered, and what is left."""

import contextlib
import json
import os
import random
import signal
import time

from harness import *  # noqa: F403
from mcp_client import MODERN, Server
from mcp_http import ask, message
from service import Background, Service

SEED = int(os.environ.get("CEJAIL_TEST_SEED", "1"))
LONG = os.environ.get("CEJAIL_TEST_LONG") == "1"
NAMES = {"spawner": "cejail-spawner", "worker": "cejail-worker", "keeper": "cejail-session", "init": "cejail-init"}


def named(pids, name):
    found = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                if file.read().strip() == name:
                    found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def kill(pids, role):
    """Returns those that end by it."""
    victims = named(pids, NAMES[role])
    true(victims, f"no {role} among {[describe_process(pid) for pid in pids]}")
    supervisors = named(pids, NAMES["worker"]) + named(pids, NAMES["keeper"]) if role == "init" else []
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return victims + supervisors


def runs_in(pids, *words):
    """Is one of these processes a program with these words?"""
    wanted = b"\0".join(word.encode() for word in words) + b"\0"
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read() == wanted:
                    return True
        except (FileNotFoundError, ProcessLookupError):
            pass
    return False


def sweep():
    """A killed run leaves its record and an empty cgroup, which gc removes once its last process has ended."""
    wait_until(lambda: not descendants(), "the end of all processes")
    cejail("gc").exits(0)


def open_session(server):
    """A session with a process in the background, and its id."""
    created = server.call("session_create", profile="shell", network="none")
    session = created["structuredContent"]["session"]
    equal(server.call("session_exec", session=session, code="sleep 71 > /dev/null & echo")["isError"], False, "the program")
    return session


@test("mcp kills: of a killed server no jail, no session and no process is left", limit=300)
def _():
    moments = random.Random(SEED)
    for turn in range(12 if LONG else 4):
        server = Server("-p", "shell")
        server.__enter__()
        try:
            if turn % 2:
                open_session(server)
            for number in range(3):
                server.call_later("run_shell", progress=number, code="echo x; sleep 72")
            time.sleep(moments.random())
            pids = server.below()
        finally:
            server.signal(signal.SIGKILL)
            server.process.wait()
            for stream in (server.process.stdin, server.process.stdout, server.process.stderr):
                stream.close()
        Server.await_end(pids)
    sweep()


for role, ends_call, ends_session in (("worker", True, False), ("keeper", False, True), ("init", True, True)):

    @test(f"mcp kills: when each {role} is killed, what ends says so, and the server goes on", limit=120)
    def _(role=role, ends_call=ends_call, ends_session=ends_session):
        with Server("-p", "shell") as server:
            session = open_session(server)
            call = server.call_later("run_shell", code="sleep 15; echo slept" if not ends_call else "sleep 73")
            wait_until(lambda: runs_in(server.below(), "sleep", "73" if ends_call else "15"), "the program")
            ending = kill(server.below(), role)
            equal(server.result(call)["isError"], ends_call, "the call")
            Server.await_end(ending)  # a jail that was prepared, too
            if ends_session:
                wait_until(lambda: server.call("session_exec", session=session, code="true")["isError"], "the end of the session")
            else:
                equal(server.call("session_exec", session=session, code="true")["isError"], False, "the session")
            equal(server.call("run_shell", code="echo on")["structuredContent"]["stdout"], "on\n", "the next call")
            equal(server.call("session_exec", session=open_session(server), code="echo on")["isError"], False, "the next session")
        sweep()


@test("mcp kills: without its spawner the server says what to do, and ends when its client does")
def _():
    with Server("-p", "shell") as server:
        server.call("run_shell", code="true")
        pids = server.below()
        kill(pids, "spawner")
        wait_until(lambda: "restart" in server.call("run_shell", code="true")["content"][0]["text"], "the refusal")
        equal(len(server.ask("tools/list")["result"]["tools"]) > 1, True, "the tools")
    Server.await_end(pids)
    sweep()


@test("mcp kills: a service answers the call of a killed worker, and one that is killed leaves nothing", limit=120)
def _():
    with Service(config={"mcp": {"profiles": ["shell"]}}, ready=True) as service:
        def run(code):
            body = message("tools/call", version=MODERN, name="run_shell", arguments={"code": code})
            return ask(service, body).has(200).json["result"]

        call = Background(run, "sleep 74")
        wait_until(lambda: runs_in(service.workers(), "sleep", "74"), "the program")
        kill(service.workers(), "worker")
        equal(call.finish()["isError"], True, "the call")
        equal(run("echo on")["structuredContent"]["stdout"], "on\n", "the next call")
        body = json.dumps(message("tools/call", version=MODERN, name="session_create", arguments={"profile": "shell"}))
        contains(service.call("POST", "/mcp", body, {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call",
                                                     "Mcp-Name": "session_create"}).body.decode(), "live", "the session")  # fmt: skip
        pids = service.workers()
        service.signal(signal.SIGKILL)
        service.process.wait()
        Server.await_end(pids)
    sweep()
