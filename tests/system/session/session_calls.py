# SPDX-License-Identifier: Apache-2.0
"""Execs and cells of sessions that call tools of the service's caller.

Limits, ceilings and hostile programs are in service/calling.py: a run and an exec have the same code.
"""

import json
import os
import shutil
import signal
import socket

from calling import mirror, said, wait_full
from calls import NDJSON, PROGRAM, TOOLS, Calls, program
from harness import *  # noqa: F403
from service import OTHER_UID, Service, as_uid

WAITS = "import tools\ntools.call('search', n=1)"  # a cell


class Session:
    """One session of a service, with an interpreter unless another context is asked for."""

    def __init__(self, service, **more):
        body = {"profile": "python", "context": "repl", "timeout": scaled(60), **more}
        self.service, self.id = service, service.call("POST", "/v1/sessions", body).has(201).json["id"]
        self.path = f"/v1/sessions/{self.id}/execs"

    def begin(self, body):
        return Calls(self.service, {"tools": TOOLS, **body}, self.path)

    def cell(self, code, **more):
        return self.begin({"code": code, **more})

    def exec(self, code, **more):
        return self.begin({"command": ["python3", "-c", PROGRAM + code], **more})

    def await_end(self, name):
        path = f"{self.path}/{name}?wait=10s"
        return wait_until(lambda: [x for x in [self.service.get(path).has(200).json] if x["state"] == "finished"], f"exec {name} to end")[0]

    def answer(self, name, call, body):
        return self.service.call("POST", f"{self.path}/{name}/calls/{call}", body)


def serve(calls, function=mirror):
    with calls:
        return calls.serve(function)


def exec_workers(s):
    return {pid for pid in s.workers() if "cejail-exec" in (describe_process(pid) or "")}


def recorded(path, name):
    """How each call of an exec has ended."""
    with open(path, encoding="ascii") as file:
        lines = [line for line in map(json.loads, file) if line["event"] == "call" and line["id"] == name]
    for line in lines:
        check_schema(line, "audit.json")
    return [(line["session"], line["call"], line["name"], line["ended"]) for line in lines]


@test("a cell, an exec beside it and a script call tools, and the answers reach them")
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        one, plain = Session(s), Session(s, context="none")
        result = serve(one.cell("import tools\nprint(tools.call('search', q='a'))\ntools.call('github.issues')", id="cell"))
        equal((said(result), result["cell"]["value"]), ("{'name': 'search', 'q': 'a'}\n", "{'name': 'github.issues'}"), "the cell")
        equal([(row["name"], row["count"]) for row in result["calls"]], [("search", 1), ("github.issues", 1)], "its calls")
        with one.cell(WAITS) as cell:
            cell.await_call(1)
            equal(said(serve(one.exec("print(call('search', q='b'))"))), "{'name': 'search', 'q': 'b'}\n", "an exec while a cell waits")
            cell.answer(1, {"result": 7}).has(204)
            equal(cell.serve(mirror)["cell"]["value"], "7", "the cell that waited")
        equal(said(serve(plain.begin({"code": PROGRAM + "print(call('search', q='c'))"}))), "{'name': 'search', 'q': 'c'}\n", "a script")
        equal(recorded(f / "log", "cell"), [(one.id, 1, "search", "answered"), (one.id, 2, "github.issues", "answered")], "the record")
        equal(s.metric("cejail_calls_total", outcome="answered"), 5, "the metric")


@test("a cell of Node.js calls a tool on descriptor 4, and a cell without tools has none")
def _():
    code = """const fs = require("fs"), place = Buffer.alloc(200);
fs.writeSync(4, '{"id":1,"name":"search","arguments":{"n":1}}\\n');
place.toString("utf8", 0, fs.readSync(4, place)).trim()"""
    if not shutil.which("node"):
        raise Skip("no node")
    with Service() as s:
        one = Session(s, profile="node")
        equal(serve(one.cell(code))["cell"]["value"], """'{"id":1,"result":{"name": "search", "n": 1}}'""", "the value")
        without = s.call("POST", one.path, {"code": code}).result
        contains(without["cell"]["value"], "this run has no tool", "the cell without tools")


@test("two sessions, and two execs of one, never see each other's calls, tools and answers")
def _():
    code = "print(call('search', who=%r))\nprint(call('other', who=%r))"
    with Service(config={"concurrency": 8}) as s:
        one, other = Session(s), Session(s)
        rows = [(one, "a", TOOLS), (one, "b", [{"name": "other"}]), (other, "c", TOOLS), (other, "d", [{"name": "other"}])]
        execs = [session.exec(code % (name, name), id=name, tools=tools) for session, name, tools in rows]
        for calls, (session, name, tools) in zip(execs, rows):
            event = calls.await_call(1)
            equal((event["name"], event["arguments"]), (tools[0]["name"], {"who": name}), f"the call of {name}")
            wrong = other if session is one else one
            wrong.answer(name, 1, {"result": "forged"}).has(404, "not_found")
            calls.answer(2, {"result": "forged"}).has(404, "not_found")
        for calls, (session, name, tools) in zip(execs, rows):
            calls.answer(1, {"result": f"for {name}"}).has(204)
            text = said(serve(calls)).splitlines()
            has, lacked = text if tools is TOOLS else reversed(text)
            equal(has, f"for {name}", f"the answer to {name}")
            contains(lacked, "error: this run has no tool", f"the other tool of {name}")
            equal(len([e for e in calls.seen if e["type"] == "call"]), 1, f"the calls of {name}")


@test("an answer goes to one open call of the exec, once, and also afterwards the status says what was wrong")
def _():
    with Service() as s:
        one = Session(s)
        for calls in (one.exec("print(call('search'))", id="x"), one.cell(WAITS, id="y")):
            with calls:
                calls.await_call(1)
                calls.answer(1, "{").has(400, "bad_request")
                head = f"POST {one.path}/{calls.id}/calls/1 HTTP/1.1\r\nHost: x\r\nContent-Length: {(16 << 20) + 1}\r\n\r\n"
                contains(s.raw(head.encode()), b"413", "the reply to more than 16 MiB")
                for unknown in ("2", "0", "-1", "x", str(2**64)):
                    calls.answer(unknown, {"result": 1}).has(404, "not_found")
                one.answer("none", 1, {"result": 1}).has(404, "not_found")
                calls.answer(1, {"result": 1}).has(204)
                calls.answer(1, {"result": 2}).has(409, "call_ended")
                said(calls.serve(mirror))
            one.await_end(calls.id)
            calls.answer(1, {"result": 1}).has(409, "call_ended")
            for unknown in (2, 0):
                calls.answer(unknown, {"result": 1}).has(404, "not_found")
        equal(said(serve(one.exec("print('none')", id="z"))), "none\n", "an exec without calls")
        one.answer("z", 1, {"result": 1}).has(404, "not_found")


@test("another caller's exec has no calls", who="root")
def _():
    with Service() as s:
        one = Session(s)
        with one.exec("print(call('search'))", id="mine") as calls:
            calls.await_call(1)
            as_uid(OTHER_UID, s.call, "POST", f"{one.path}/mine/calls/1", {"result": "forged"}).has(404, "not_found")
            calls.answer(1, {"result": "mine"}).has(204)
            equal(said(calls.serve(mirror)), "mine\n", "the output")


@test("a cell after one with tools has none, and a later one has its own")
def _():
    ask = "import tools\nfor name in ('search', 'third'):\n    try: print(tools.call(name))\n    except tools.ToolError as e: print('error:', e)"
    with Service() as s:
        one = Session(s)
        equal(said(serve(one.cell(WAITS))), "", "the first cell")
        without = s.call("POST", one.path, {"code": ask}, NDJSON).has(200).lines
        equal([line["type"] for line in without if line["type"] in ("call", "answer")], [], "calls")
        equal(said(without[-1]["result"]).count("error: this run has no tool"), 2, "the cell without tools")
        bare = s.call("POST", one.path, {"command": ["/bin/sh", "-c", "echo $CEJAIL_CALLS_FD"]}).result
        equal(bare["stdout"]["text"], "\n", "the variable of an exec without tools")
        text = said(serve(one.cell(ask, tools=[{"name": "third"}]))).splitlines()
        contains(text[0], "error: this run has no tool 'search'", "a tool of the first cell")
        equal(text[1], "{'name': 'third'}", "its own tool")


@test("the tools of a session are those of each exec and cell that asks for events and names none")
def _():
    bare, ask = {"command": ["/bin/sh", "-c", "echo $CEJAIL_CALLS_FD"]}, "import tools\ntry: print(tools.call('search'))\nexcept tools.ToolError as e: print('error:', e)"
    with Folder() as f, Service(config={"audit": {"file": f / "log"}, "pool": {"python": {"repls": 1}}, "mcp": {"profiles": ["python"]}}) as s:
        wait_full(s)
        one = Session(s, tools={"tools": TOOLS}, calls={"max": 1})

        def begin(body):
            return Calls(s, body, one.path)

        equal(serve(begin({"code": WAITS, "id": "cell"}))["cell"]["value"], "{'name': 'search', 'n': 1}", "a cell")
        code = PROGRAM + "print(call('github.issues'))\nprint(call('search'))"
        text = said(serve(begin({"command": ["python3", "-c", code], "id": "exec"}))).splitlines()
        equal((text[0], text[1]), ("{'name': 'github.issues'}", "error: the run has made its 1 calls"), "an exec with the session's limit")
        equal(recorded(f / "log", "cell"), [(one.id, 1, "search", "answered")], "the record")
        contains(said(serve(begin({"code": ask, "tools": [{"name": "third"}]}))), "error: this run has no tool 'search'", "a cell with its own tools")
        with begin({"code": ask, "tools": []}) as none:
            contains(said(none.serve(mirror)), "error: this run has no tool 'search'", "a cell with an empty list")
            equal([e for e in none.seen if e["type"] == "call"], [], "its calls")
        equal(said(serve(begin({**bare, "tools": False}))), "\n", "an exec that refuses them")
        equal(said(s.call("POST", one.path, bare).result), "\n", "an exec without events")
        contains(said(s.call("POST", one.path, {"code": ask}).result), "error: this run has no tool 'search'", "a cell without events")
        equal(said(s.call("POST", one.path, {**bare, "tools": []}).result), "4\n", "an empty list needs no events")
        s.call("POST", one.path, {**bare, "detach": True, "id": "later"}, NDJSON).has(202)
        equal(said(one.await_end("later")["result"]), "\n", "a detached exec")
        asked = {"name": "session_exec", "arguments": {"session": one.id, **bare}, "_meta": {"progressToken": "p"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
        answer = s.call("POST", "/mcp", body, {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}).has(200).json["result"]
        equal(json.loads(answer["content"][0]["text"])["stdout"], "\n", "an exec of an MCP tool")
        equal(serve(begin({"code": WAITS}))["cell"]["value"], "{'name': 'search', 'n': 1}", "a cell behind them")
        equal(serve(Calls(s, {"code": WAITS}, Session(s, tools=[]).path))["status"], "exited", "a session with an empty list")


@test("a session that is deleted during calls cancels them, and nothing of it is left")
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        one = Session(s)
        with one.cell(WAITS, id="cell") as cell, one.exec("call('search')", id="exec") as other:
            for calls in (cell, other):
                calls.await_call(1)
            equal(s.call("DELETE", f"/v1/sessions/{one.id}").has(200).json["reason"], "closed", "the reason")
            for calls in (cell, other):
                last = list(calls.events)[-1]
                true(last["type"] == "error" or last["result"]["status"] == "cancelled", f"the end of {calls.id}: {last}")
                calls.answer(1, {"result": 1}).has(409, "call_ended")
                equal(recorded(f / "log", calls.id), [(one.id, 1, "search", "cancelled")], f"the record of {calls.id}")


@test("a reader of events that is gone cancels the cell with its call, and the next cell's calls are its own")
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        one = Session(s)
        cell = one.cell(WAITS, id="gone")
        cell.await_call(1)
        cell.close()
        equal(one.await_end("gone")["status"], "cancelled", "the status")
        equal(recorded(f / "log", "gone"), [(one.id, 1, "search", "cancelled")], "the record")
        cell.answer(1, {"result": "late"}).has(409, "call_ended")
        equal(serve(one.cell(WAITS), lambda event: {"result": "mine"})["cell"]["value"], "'mine'", "the next cell")


@test("calls that a cell left unread are refused, and a half written one ends its interpreter: the next cell's are its own")
def _():
    leave = "import os\nfor n in range(20): os.write(4, b'{\"id\":\"old%d\",\"name\":\"search\",\"arguments\":{\"old\":%d}}\\n' % (n, n))"
    call, seen = "import tools\ntools.call('search', new=1)", []

    def note(event):
        seen.append(event["arguments"])
        return {"result": 1}

    with Service() as s:
        one = Session(s)
        for _ in range(3):
            with one.cell(leave) as cell:
                left = list(cell.events)[-1]["result"]
            count = left["calls"][0]
            true(count["count"] <= 10 and count["failed"] == count["count"] == 20 - count["refused"], f"calls of the cell that leaves some: {count}")
            after = serve(one.cell(call), note)
            equal((after["cell"]["value"], after["cell"]["restarted"]), ("1", False), "the next cell")
        with one.cell("import os\nos.write(4, b'{')") as cell:
            left = list(cell.events)[-1]["result"]
        equal((left["status"], left["cell"]["value"]), ("exited", "1"), "a cell with half a call")
        contains("\n".join(left["warnings"]), "the interpreter ends, because the cell left a call or an answer half written", "its warnings")
        after = serve(one.cell(call), note)
        equal((after["cell"]["value"], after["cell"]["restarted"]), ("1", True), "the cell behind it")
        equal(seen, [{"new": 1}] * 4, "calls that were answered")


@test("kill -9 of a worker during a call: the caller learns it, and the session goes on", limit=90)
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        one = Session(s)
        for begin, code in ((one.cell, WAITS), (one.exec, "call('search')")):
            before = exec_workers(s)  # that of the last exec may not have exited yet
            with begin(code, id="killed") as calls:
                calls.await_call(1)
                os.kill((exec_workers(s) - before).pop(), signal.SIGKILL)
                equal(calls.await_event("error")["error"]["code"], "internal", "the error")
                calls.answer(1, {"result": 1}).has(409, "call_ended")
            equal(serve(one.cell(WAITS), lambda event: {"result": "next"})["cell"]["value"], "'next'", "the next cell")
        equal(recorded(f / "log", "killed"), [(one.id, 1, "search", "cancelled")] * 2, "the record")


def fill_share(s, size):
    """Bodies that do not end; what is left of the caller's quarter of the memory is less than a large call."""
    socks = []
    for _ in range(2):
        socks.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        socks[-1].settimeout(60 * SLOW)
        socks[-1].connect(s.socket)
        socks[-1].sendall(f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode())
        socks[-1].sendall(b" " * (size - 1))
    return socks


@test("a call that the service has no room for fails at once: of a run, an exec and a cell", who="root", limit=120)
def _():
    large = "try: print(%s('search', x='y' * 900000))\nexcept Exception as e: print(e)\nprint(%s('github.issues'))"
    cell = "import tools\n" + large % ("tools.call", "tools.call")
    config = {"body_max": "64M", "receive_timeout": f"{100 * SLOW:.0f}s", "callers": {f"uid:{OTHER_UID}": {"timeout": scaled(60)}}}
    with Folder() as f, Service(config={**config, "audit": {"file": f / "log"}}) as s:

        def ask():
            one = Session(s)
            full = fill_share(s, 67_000_000)
            texts = [
                said(serve(Calls(s, program(large % ("call", "call"), id="run", timeout=scaled(60))))),
                said(serve(one.exec(large % ("call", "call"), id="exec"))),
                said(serve(one.cell(cell, id="cell"))),
            ]
            for sock in full:
                sock.close()
            return texts

        for text in as_uid(OTHER_UID, ask):
            first, second = text.splitlines()
            contains(first, "the service has no room for this call", "the large call")
            equal(second, "{'name': 'github.issues'}", "a small call behind it")
        equal(s.said().count("call 1 fails: there is no room for its event"), 3, "lines of the log")
        equal(s.metric("cejail_calls_total", outcome="failed"), 3, "the metric")
        with open(f / "log", encoding="ascii") as file:
            calls = [line for line in map(json.loads, file) if line["event"] == "call"]
        equal([(line["id"], line["call"], line["ended"]) for line in calls], [(name, n, end) for name in ("run", "exec", "cell") for n, end in ((1, "failed"), (2, "answered"))], "the record")


@test("a session that the pool prepared serves cells with tools")
def _():
    with Service(config={"pool": {"python": {"repls": 1}}}) as s:
        wait_full(s)
        one = Session(s)
        equal(serve(one.cell(WAITS))["cell"]["value"], "{'name': 'search', 'n': 1}", "the value")
        equal(s.metric("cejail_calls_total", outcome="answered"), 1, "the metric")


@test("tools are refused where their calls cannot reach the caller, and limits of calls above the profile's")
def _():
    with Folder() as f:
        f.file("cejail/profiles/few.json", json.dumps({"extends": "python", "timeout": scaled(60), "calls": {"max": 2}}))
        mine = f"uid:{os.geteuid()}"
        with Service(config={"callers": {mine: {"profiles": ["few"]}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            new = {"profile": "few", "context": "repl"}
            for tools, why in (([{"name": "?"}], "'?'"), ([{}], "name"), ({"tools": 1}, "array"), (TOOLS + TOOLS[:1], "search")):
                contains(s.call("POST", "/v1/sessions", {**new, "tools": tools}).has(400, "bad_request").json["error"]["message"], why, "the message")
            s.call("POST", "/v1/sessions", {**new, "tools": TOOLS, "calls": {"max": 3}}).has(403, "above_ceiling")
            one = Session(s, profile="few")
            for more, headers, hint in (({}, None, "Accept: application/x-ndjson"), ({"detach": True}, NDJSON, "detach")):
                for what in ({"code": "1"}, {"command": ["true"]}):
                    error = s.call("POST", one.path, {**what, "tools": TOOLS, **more}, headers).has(400, "bad_request").json["error"]
                    contains(error["message"], "tools", "the message")
                    contains(error["hint"], hint, "the hint")
            s.call("POST", one.path, {"code": "1", "tools": TOOLS, "calls": {"max": 3}}, NDJSON).has(403, "above_ceiling")
            code = "import tools\nfor i in range(3):\n    try: print(tools.call('search', n=i))\n    except tools.ToolError as e: print(e)"
            for limits, made in (({}, 2), ({"calls": {"max": 1}}, 1)):
                text = said(serve(one.cell(code, **limits)))
                equal(text.count(f"the run has made its {made} calls"), 3 - made, f"refused with {limits}: {text}")
