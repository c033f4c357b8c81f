# SPDX-License-Identifier: Apache-2.0
"""`mcp broker`, the client of other MCP servers: each of its system calls fails once, and it is killed at any of them.

It has a server over standard streams and one over HTTP, and two calls for each.  Whatever fails, each call has an
answer, or the broker ends with one error and status 125.  Nothing is left.
"""

import json
import os
import socket
import subprocess
import tempfile
import time

import faults
import harness
import trial
from harness import test
from mcp_faults import McpWay, judge, try_all
from mcp_upstream import PROGRAM, Web, failure_of, fake, servers_file
from trial import Seen, Way


class BrokerWay(McpWay):
    """Calls of a program's tools, as the supervisor sends them."""

    command = (PROGRAM, "broker")
    roles = "supervisor|keeper[0-9]*|payload[0-9]*"

    def __init__(self, folder, web):
        path = servers_file(folder, one=fake("good"), two=web.entry())
        Way.__init__(self, "a client of MCP servers", "--tools-from", path, "--calls-fd", "@CALLS", status=0)

    def start(self, command):
        env, began, told = harness.environment(MALLOC_PERTURB_="165"), time.monotonic(), []
        near, far = socket.socketpair()
        command = [str(far.fileno()) if word == "@CALLS" else word for word in command]
        with near, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as out:
            process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=[far.fileno()])
            far.close()
            near.settimeout(trial.LIMIT * harness.SLOW)
            try:
                await_list(process, out)
                with near.makefile("rb") as lines:
                    for number, name in enumerate(("one.echo", "two.echo", "one.echo", "two.echo")):
                        told += call_broker(near, lines, number, name)
                code = process.wait(trial.LIMIT * harness.SLOW) if near.shutdown(socket.SHUT_RDWR) is None else None
            except (TimeoutError, subprocess.TimeoutExpired):
                process.kill()
                process.wait()
                code = f"it hangs after {told[-1:]}"
            err.seek(0)
            out.seek(0)
            said = [line for line in err.read().decode(errors="replace").splitlines() if "': hello" not in line]
            failure = failure_of(out.read()) if code == 125 else ""
        said += [f"cejail: {failure}"] if failure not in ("", "the broker died") else []
        return Seen(code, "\n".join(told), said, "\n".join(told), [], [], time.monotonic() - began)


def await_list(process, out):
    """The list is one line; an error has none, and the process ends."""
    end = time.monotonic() + trial.LIMIT * harness.SLOW
    while process.poll() is None and not os.pread(out.fileno(), 1 << 20, 0).endswith(b"}\n"):
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)


def call_broker(near, lines, number, name):
    """The lines that say what came back; none when the broker has ended."""
    try:
        near.sendall(json.dumps({"id": number, "name": name, "arguments": {"n": number}}).encode() + b"\n")
        text = lines.readline()
    except (BrokenPipeError, ConnectionResetError):
        return []
    if not text:
        return []
    answer = json.loads(text)
    harness.equal(answer["id"], number, "the id of the answer")
    if "result" in answer:
        return [f"{name}: {answer['result']}"]
    return [f"{name}: error: {answer['error']['message']}"]


def try_kill(way, folder, base, call, role):
    seen = way.run(folder, "kill", call.role, call.mark, role)
    if role == "supervisor":
        problem = seen.code if isinstance(seen.code, str) else f"left behind: {seen.left}" if seen.left else None
    else:
        problem = judge(seen, base, call, "ESRCH")
    kind = "killed" if seen.is_reached() and not seen.lines("miss") else "missed"
    return {"call": repr(call), "error": f"kill {role}", "problem": problem, "kind": kind, "said": seen.err, "seconds": seen.seconds}


LAST_WORDS = "two.echo: {'n': 3}"


@test("each call of a client of MCP servers fails once: each call of a tool has an answer, and nothing is left", limit=3600)
def broker_faults():
    with harness.Folder() as f, Web("http") as web:
        try_all(BrokerWay(f.path, web), f, LAST_WORDS, 2)


@test("a client of MCP servers, or the keeper of one, is killed at any call: the calls of tools fail, and nothing is left", limit=3600)
def broker_kills():
    with harness.Folder() as f, Web("http") as web:
        way = BrokerWay(f.path, web)
        base, calls = faults.without_fault(way, f.path, LAST_WORDS)
        chosen = [(call, role) for call in calls for role in ("supervisor", "keeper") if role == call.role or call.role == "supervisor"]
        if not harness.LONG:
            chosen = chosen[:: max(1, len(chosen) // 24)]
        faults.tell(way, faults.in_workers(way, f.path, base, chosen, 1, try_kill), missed_share=2)
