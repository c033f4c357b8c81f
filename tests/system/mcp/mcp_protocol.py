# SPDX-License-Identifier: Apache-2.0
"""`cejail mcp` as a client sees it: messages, eras, errors, several calls at once, a slow client."""

import json
import os
import select
import socket
import subprocess
import time

from harness import *  # noqa: F403
from mcp_client import META, MODERN, TASKS, Server, facts_of

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SHELL = ("-p", "shell", "--network", "none")


@test("mcp: a client of each version lists the tools and runs code")
def _():
    for version in (*VERSIONS, MODERN):
        with Server(*SHELL, version=version) as s:
            tools = s.ask("tools/list")["result"]["tools"]
            equal([tool["name"] for tool in tools if "session" not in tool["name"]], ["run_shell"], "the tools")
            done = s.call("run_shell", code="echo $((6 * 7))")
            equal(json.loads(done["content"][0]["text"])["stdout"], "42\n", f"the output with version {version}")
            equal("structuredContent" in done, version >= "2025-06-18", f"a structured result with {version}")
            equal("outputSchema" in tools[0], version >= "2025-06-18", f"an output schema with {version}")
            equal(done.get("resultType"), "complete" if version == MODERN else None, "the type of the result")
            if version != MODERN:
                equal(s.opened["result"]["protocolVersion"], version, "the version")
                equal(s.opened["result"]["serverInfo"]["name"], "cejail", "the name")


@test("mcp: a modern client needs no initialize, and discovers versions and capabilities")
def _():
    with Server(*SHELL, version=MODERN) as s:
        found = s.ask("server/discover")["result"]
        contains(found["supportedVersions"], MODERN, "the versions")
        equal(found["capabilities"], {"tools": {}, **TASKS}, "the capabilities")
        equal(found["_meta"][META + "serverInfo"]["name"], "cejail", "the name")
        wrong = {META + "protocolVersion": "2099-01-01", META + "clientCapabilities": {}}
        s.send({"jsonrpc": "2.0", "id": "v", "method": "tools/list", "params": {"_meta": wrong}})
        error = s.answer("v")["error"]
        equal((error["code"], error["data"]["requested"]), (-32022, "2099-01-01"), "the error")
        contains(error["data"]["supported"], MODERN, "the supported versions")


@test("mcp: what is not a valid message gets the error of JSON-RPC, and the connection goes on")
def _():
    rows = [
        (b"no json\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"\n', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":' + b"[" * 5000 + b"\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[]\n", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":[],"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"prompts/list"}\n', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}\n', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}\n', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_shell","arguments":7}}\n', -32602),
    ]
    with Server(*SHELL) as s:
        for line, code in rows:
            s.write(line)
            equal(s.line()["error"]["code"], code, f"the error of {line[:60]!r}")
            tried()
        equal(s.ask("ping")["result"], {}, "the answer to ping")


def padded(message, size, first=()):
    """The message with `size` bytes more of parameters, which stand behind the members `first`."""
    params = {"params": {"x": "y" * size}}
    return json.dumps({name: message[name] for name in first} | params | message).encode() + b"\n"


@test("mcp: a message above the limit is refused with its id, and the next one is read")
def _():
    message, above = {"method": "ping", "jsonrpc": "2.0", "id": "big"}, 16 << 20
    with Server(*SHELL) as s:
        for size, first, shown in ((above + 1000, ["id"], "big"), (above + 1000, [], "big"), (above - 60, [], "big"), (3 * above, ["method"], "big")):
            s.write(padded(message, size, first))
            got = s.line(60)
            equal((got["error"]["code"], got.get("id")), (-32600, shown), f"the error of {size} bytes, {first}")
        s.write(padded({"method": "ping", "jsonrpc": "2.0"}, above))
        equal("id" in s.line(60), False, "an id of a message without one")
        equal(s.ask("ping")["result"], {}, "the answer to ping")


@test("mcp: JSON that is refused is answered with its id")
def _():
    deep = b"[" * 40 + b"]" * 40
    with Server(*SHELL) as s:
        for number, value in enumerate((rb'"a\u0000b"', rb'"\ud83d"', deep, b'{"a":1,"a":2}', b'"\xff"')):
            s.write(b'{"method":"tools/call","params":{"id":7,"text":"\\"id\\":8,","x":%s},"jsonrpc":"2.0","id":%d}\n' % (value, number))
            got = s.line()
            equal((got["error"]["code"], got.get("id")), (-32700, number), f"the error of {value[:20]!r}")
        equal(s.ask("ping")["result"], {}, "the answer to ping")


@test("mcp: a request before initialize, without a version, is refused")
def _():
    with Server(*SHELL, version=None) as s:
        equal(s.ask("tools/list")["error"]["code"], -32602, "the error")
        equal(s.ask("ping")["result"], {}, "the answer to ping")


@test("mcp: several calls run at the same time, and a short one does not wait for a long one")
def _():
    with Server(*SHELL) as s:
        long = s.call_later("run_shell", code="sleep 600")
        equal(facts_of(s.call("run_shell", code="echo short"))["stdout"], "short\n", "the short call")
        equal([message for message in s.messages if message.get("id") == long], [], "answers of the long one")
        s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": long}})


@test("mcp: two requests with one id: the second is refused, the first is answered")
def _():
    with Server(*SHELL) as s:
        codes = ("sleep 1; echo first", "echo second")
        calls = [{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "run_shell", "arguments": {"code": code}}} for code in codes]
        s.write(b"".join(json.dumps(call).encode() + b"\n" for call in calls))  # the server reads both at once
        equal(s.line()["error"]["code"], -32600, "the error")
        equal(facts_of(s.result(7))["stdout"], "first\n", "the answer")


@test("mcp: output arrives as progress that increases, and never after the answer")
def _():
    with Server(*SHELL) as s:
        for _attempt in range(5):
            s.messages.clear()
            s.result(s.call_later("run_shell", progress="t-1", code="for i in 1 2 3; do echo line $i; sleep 0.4; done"))
            notes = [note["params"] for note in s.notifications()]
            equal({note["progressToken"] for note in notes}, {"t-1"}, "the token")
            values = [note["progress"] for note in notes]
            equal(values, sorted(set(values)), "the progress")
            true(s.is_silent(0.5), "a message after the answer")
            if "line 2" in [note.get("message") for note in notes]:
                return
        raise Failure(f"no progress of its own for the second line: {notes}")  # as on a machine that is too busy once


@test("mcp: what a program writes at once and before it falls silent becomes progress")
def _():
    with Server(*SHELL) as s:
        s.result(s.call_later("run_shell", progress=1, code="echo first; echo last; sleep 2"))
        messages = [note["params"].get("message") for note in s.notifications()]
        true(messages and messages[-1] == "last", f"the last line is missing: {messages}")


@test("mcp: a silent program makes progress, too", limit=90)
def _():
    with Server(*SHELL) as s:
        s.result(s.call_later("run_shell", progress=7, code="sleep 6"))
        equal({note["params"]["progressToken"] for note in s.notifications()}, {7}, "the notifications")


@test("mcp: without a token there is no progress")
def _():
    with Server(*SHELL) as s:
        s.result(s.call_later("run_shell", code="for i in 1 2 3; do echo $i; sleep 0.3; done"))
        equal(s.notifications(), [], "the notifications")


@test("mcp: a client that does not read stops no other call, and loses no answer")
def _():
    with Server(*SHELL, "--max-output", "4M", "--text-max", "4M") as s:
        code = "head -c 3000000 /dev/zero | tr '\\0' x"
        numbers = [s.call_later("run_shell", code=code) for _ in range(4)]
        marks = [s.call_later("run_shell", code="echo done") for _ in range(3)]
        wait_until(lambda: not any("sh (" in (describe_process(pid) or "") for pid in s.below()), "all programs to end", 30)
        time.sleep(1)
        for number in numbers:
            equal(len(facts_of(s.result(number))["stdout"]), 3000000, "the output")
        for number in marks:
            equal(facts_of(s.result(number))["stdout"], "done\n", "the output")


@test("mcp: while answers of 8 MiB wait for the client, no call starts; read, all are answered", limit=120)
def _():
    cpu = min(os.sched_getaffinity(0))
    images = r"for i in 1 2; do (printf '\211PNG\r\n\032\n'; head -c 3000000 /dev/zero) >out/$i.png; done"
    with Folder() as folder, Server(*SHELL, "--bind", f"{folder.path}:/work", preexec_fn=lambda: os.sched_setaffinity(0, {cpu})) as s:
        os.chmod(folder.path, 0o777)
        numbers = [s.call_later("run_shell", code=f"echo x >/work/{n}; {images}") for n in range(24)]
        wait_until(lambda: len(os.listdir(folder.path)) >= 2, "two calls to run", 30)
        ran = 0
        while ran < len(os.listdir(folder.path)):
            ran = len(os.listdir(folder.path))
            time.sleep(2 * SLOW)
        # Two runs a processor at one time: the first two, and those that began before their answers were there.
        true(ran <= 6, f"{ran} calls ran")
        for number in numbers:
            equal([block["type"] for block in s.result(number)["content"]], ["text", "image", "image"], "the content")


def is_full(fd):
    """Sends requests; true when the server has read nothing for a while."""
    try:
        os.write(fd, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' * 16)
    except BlockingIOError:
        return not select.select([], [fd], [], 1)[1]
    return False


@test("mcp: the end of standard input ends a server whose answers nobody reads")
def _():
    ours, theirs = socket.socketpair()
    for stdin in (subprocess.PIPE, theirs):
        process = start("mcp", *SHELL, stdin=stdin)
        stream = process.stdin or ours.makefile("wb")
        process.stdin = None
        if stdin is theirs:
            theirs.close()
        os.set_blocking(stream.fileno(), False)
        wait_until(lambda: is_full(stream.fileno()), "the server to read no more", 60, 0)
        if stdin is theirs:
            ours.shutdown(socket.SHUT_WR)
        stream.close()
        equal(await_exit(process, 30), 0, "the exit status")
        process.stdout.close()
        process.stderr.close()


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:"))


@test("mcp: a client that sends and never reads is not read any more, and the server stays small")
def _():
    with Server(*SHELL) as s:
        before = memory_of(s.process.pid)
        os.set_blocking(s.process.stdin.fileno(), False)
        line = b'{"jsonrpc":"2.0","id":"%d","method":"tools/list"}\n'
        sent, end = 0, time.monotonic() + 1
        while time.monotonic() < end and sent < 100000:
            try:
                os.write(s.process.stdin.fileno(), line % sent)
                sent, end = sent + 1, time.monotonic() + 1
            except BlockingIOError:
                time.sleep(0.01)
        true(sent < 100000, "the server read everything")
        true("asan" in CEJAIL or memory_of(s.process.pid) - before < 40 << 20, f"the server grew to {memory_of(s.process.pid)} bytes")
        seen = [s.line()["id"] for _ in range(sent)]
        equal(seen, [str(number) for number in range(sent)], "the answers")
