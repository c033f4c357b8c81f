# SPDX-License-Identifier: Apache-2.0
"""Programs of the service that call tools of its caller."""

import hashlib
import json
import os
import signal
import time

from calls import NDJSON, Calls, calling, program
from harness import *  # noqa: F403
from service import OTHER_UID, Service, as_uid


def said(result):
    equal(result["status"], "exited", f"the status ({result['error']}, {result['stderr']})")
    return result["stdout"]["text"]


def wait_full(s):
    wait_until(lambda: all(row["ready"] >= row["wanted"] for row in s.get("/readyz").json["pool"]), "the pool to be full", 20)


def mirror(event):
    return {"result": {"name": event["name"], **event["arguments"]}}


@test("calls arrive as events with their arguments, and answers by POST reach the program")
def _():
    code = "print(call('search', q='a b', n=[1, {'x': None}]))\nprint(call('github.issues'))\nprint(call('search', bad=True))"

    def answer(event):
        return {"error": {"message": "no such index"}} if "bad" in event["arguments"] else mirror(event)

    with Service() as s, Calls(s, program(code)) as calls:
        result = calls.serve(answer)
        equal(said(result), "{'name': 'search', 'q': 'a b', 'n': [1, {'x': None}]}\n{'name': 'github.issues'}\nerror: no such index\n", "the output")
        equal(result["calls"], [{"name": "search", "count": 2, "failed": 1, "refused": 0}, {"name": "github.issues", "count": 1, "failed": 0, "refused": 0}], "calls")
        equal([e["outcome"] for e in calls.seen if e["type"] == "answer"], ["answered", "answered", "failed"], "the answers' events")
        for outcome, count in (("answered", 2), ("failed", 1), ("timeout", 0)):
            equal(s.metric("cejail_calls_total", outcome=outcome), count, f"the metric of {outcome}")


@test("ten calls at once are answered in any order, on several lines, each by its own number")
def _():
    with Service() as s, Calls(s, calling(10, "print(sorted((a['id'], a['result']['n']) for a in [read() for i in range(%d)]))")) as calls:
        events = [calls.await_call(i + 1) for i in range(10)]
        for event in reversed(events):
            calls.answer(event["call"], json.dumps({"result": event["arguments"]}, indent=2).replace("\n", "\r\n")).has(204)
        equal(said(calls.serve(mirror)), f"{[(i, i) for i in range(10)]}\n", "the output")


@test("a waiting interpreter and a fork of a zygote serve runs with tools as a cold one does")
def _():
    code = "print([call('search', n=i)['n'] for i in range(20)])"
    with Folder() as f:
        f.file("cejail/profiles/alone.json", '{"extends": "python", "warm": {"launcher": "python", "zygote": false}}')
        for profile in ("python", "alone"):
            with Service(config={"pool": {profile: {"interpreters": 2}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
                for name in ("a", "b"):
                    wait_full(s)
                    with Calls(s, {k: v for k, v in program(code, id=name, profile=profile).items() if k != "network"}) as calls:
                        equal(said(calls.serve(mirror)), f"{list(range(20))}\n", f"the output of {profile}")
                    equal(s.get(f"/v1/runs/{name}").has(200).json["tier"], "interpreter", "the tier")
                equal(s.metric("cejail_zygote_children_total") > 0, profile == "python", "whether there was a zygote")
                wait_full(s)  # and a program that has no tools finds no descriptor
                value = s.post({"profile": profile, "code": "import os; print(os.environ.get('CEJAIL_CALLS_FD'))"}).result
                equal(value["stdout"]["text"], "None\n", "the variable without tools")


@test("tools without events are refused with a sentence that says what to ask for")
def _():
    with Service() as s:
        error = s.post(program("")).has(400, "bad_request").json["error"]
        contains(error["message"], "tools", "the message")
        contains(error["hint"], "Accept: application/x-ndjson", "the hint")
        s.post({**program(""), "tools": {"x": 1}}, Accept="application/x-ndjson").has(400, "bad_request")


@test("an answer goes to one open call of the caller's own run, once")
def _():
    with Service() as s, Calls(s, calling(2)) as calls:
        for number in (1, 2):
            calls.await_call(number)
        calls.answer(1, {"result": 1}).has(204)
        calls.answer(1, {"result": 2}).has(409, "call_ended")
        for unknown in ("3", "0", "-1", "x", "1x", str(2**64)):
            calls.answer(unknown, {"result": 1}).has(404, "not_found")
        s.call("POST", "/v1/runs/nobodys/calls/1", {"result": 1}).has(404, "not_found")
        calls.answer(2, {"result": None}).has(204)
        equal(said(calls.serve(mirror)), "{'id': 0, 'result': 1}\n{'id': 1, 'result': None}\n", "the output")
        for number in (1, 2):
            calls.answer(number, {"result": 1}).has(409, "call_ended")
        calls.answer(3, {"result": 1}).has(404, "not_found")


@test("another caller's run has no calls", who="root")
def _():
    with Service() as s, Calls(s, calling(1, id="mine")) as calls:
        calls.await_call(1)
        as_uid(OTHER_UID, s.call, "POST", "/v1/runs/mine/calls/1", {"result": "forged"}).has(404, "not_found")
        equal(said(calls.serve(mirror) if calls.answer(1, {"result": "mine"}).has(204) else None), "{'id': 0, 'result': 'mine'}\n", "the output")


@test("a body that is no answer is named, and the call stays open")
def _():
    bodies = {
        "{": "request:", "[]": "request", "{}": "either result or error", '{"result": 1, "error": {"message": "x"}}': "either result or error",
        '{"error": "x"}': "error", '{"error": {}}': "message", '{"error": {"message": 1}}': "message", '{"result": 1, "id": 7}': "id",
        '{"result": 1}\n{"id":2,"result":"second line"}': "request", '{"result": "' + "\n" + '"}': "request", "": "request",
        '{"result": ' + "[" * 40 + "]" * 40 + "}": "deep",
    }  # fmt: skip
    with Service() as s, Calls(s, calling(1)) as calls:
        calls.await_call(1)
        for body, word in bodies.items():
            contains(calls.answer(1, body).has(400, "bad_request").json["error"]["message"], word, f"the message about {body[:60]!r}")
        half = f"POST /v1/runs/{calls.id}/calls/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n" + '{"result": 1'
        contains(s.raw(half.encode()), b"400", "the answer to half a body")
        calls.answer(1, {"result": "whole"}).has(204)
        equal(said(calls.serve(mirror)), "{'id': 0, 'result': 'whole'}\n", "the output")


@test("an answer of 16 MiB arrives, one of a byte more is refused and the call stays open", limit=120)
def _():
    most = 16 << 20
    with Service(config={"body_max": "64M"}) as s, Calls(s, program("print(len(call('search')))", memory="1G", timeout=f"{50 * SLOW:.0f}s")) as calls:
        calls.await_call(1)
        around = len(json.dumps({"result": ""}))
        body = json.dumps({"result": "x" * (most - around)})
        calls.answer(1, body + " ").has(413, "too_large")
        head = f"POST /v1/runs/{calls.id}/calls/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{most + 1:x}\r\n"
        contains(s.raw(f"{head}{body} \r\n0\r\n\r\n".encode()), b"413", "the answer in chunks")
        calls.answer(1, body).has(204)
        equal(said(calls.serve(mirror)), f"{most - around}\n", "the output")


@test("limits of calls: a profile's, a request's within it, and no request above it")
def _():
    with Folder() as f:
        f.file("cejail/profiles/few.json", '{"extends": "python", "calls": {"max": 3, "timeout": "200ms"}}')
        mine = f"uid:{os.geteuid()}"
        with Service(config={"callers": {mine: {"profiles": ["few"]}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            code = "print([call('search', n=i) for i in range(5)])"
            with Calls(s, program(code, profile="few")) as calls:
                text = said(calls.serve(mirror))
            contains(text, "'n': 2", "the third")
            equal(text.count("error: the run has made its 3 calls"), 2, f"refused calls in {text}")
            with Calls(s, program(code, profile="few", calls={"max": 1})) as calls:
                equal(said(calls.serve(mirror)).count("error: the run has made its 1 calls"), 4, "with less")
            reply = s.call("POST", "/v1/runs", json.dumps(program(code, profile="few", calls={"max": 4})), NDJSON)
            reply.has(403, "above_ceiling")
            with Calls(s, program("print(call('search'))", profile="few")) as calls:
                calls.await_event("answer", outcome="timeout")
                calls.answer(1, {"result": "late"}).has(409, "call_ended")
                contains(said(calls.serve(mirror)), "error: the call was not answered within 200ms", "the output")


@test("the audit record has a line for each call, with a hash of its arguments and never the arguments")
def _():
    code = "call('search', q='SECRET')\ncall('other', q='SECRET')\nlines.write('SECRET\\n'); lines.flush(); read()"
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        with Calls(s, program(code, id="mine")) as calls:
            calls.serve(mirror)
        with open(f / "log", encoding="ascii") as file:
            text = file.read()
        lacks(text, "SECRET", "the record")
        lines = [line for line in map(json.loads, text.splitlines()) if line["id"] == "mine"]
        equal([line["event"] for line in lines], ["start", "call", "call", "call", "end"], "events")
        for line in lines:
            check_schema(line, "audit.json")
        first, second, third = lines[1:4]
        arguments = b'{"q": "SECRET"}'
        equal((first["call"], first["name"], first["ended"]), (1, "search", "answered"), "the first")
        equal((first["arguments_bytes"], first["arguments_sha256"]), (len(arguments), hashlib.sha256(arguments).hexdigest()), "its arguments")
        equal((second["call"], second["name"], second["ended"], second["arguments_sha256"]), (None, "other", "refused", None), "the second")
        equal((third["name"], third["ended"]), (None, "refused"), "the third")


@test("the audit record has the arguments of calls when the service is told to keep them, up to a size")
def _():
    code = "call('search', q='short', d={'n': [1, None]})\ncall('search', q='x' * 60)\ncall('other', q='short')"
    with Folder() as f, Service(config={"audit": {"file": f / "log", "arguments": 64}}) as s:
        with Calls(s, program(code, id="mine")) as calls:
            calls.serve(mirror)
        with open(f / "log", encoding="ascii") as file:
            lines = [line for line in map(json.loads, file) if line["event"] == "call"]
        for line in lines:
            check_schema(line, "audit.json")
        equal([line.get("arguments") for line in lines], [{"q": "short", "d": {"n": [1, None]}}, None, None], "arguments")
        equal(lines[1]["arguments_bytes"] > 64, True, "the second has more")


@test("refused calls fill neither the record nor the memory: the first hundred have a line")
def _():
    code = "for i in range(300): call('other')\nprint('end')"
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        with Calls(s, program(code, calls={"rate": 1000}, timeout=f"{30 * SLOW:.0f}s")) as calls:
            result = calls.serve(mirror)
        equal((said(result), result["calls"]), ("end\n", [{"name": "other", "count": 0, "failed": 0, "refused": 300}]), "the result")
        with open(f / "log", encoding="ascii") as file:
            equal(file.read().count('"refused"'), 100, "lines")
        equal(s.metric("cejail_calls_total", outcome="refused"), 300, "the metric")


@test("a reader of events that is gone cancels the run, and its calls are cancelled in the record")
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        calls = Calls(s, calling(3, id="mine"))
        calls.await_call(3)
        calls.close()
        s.await_state("mine", "finished")
        equal(s.get("/v1/runs/mine").json["status"], "cancelled", "the status")
        with open(f / "log", encoding="ascii") as file:
            ends = [line["ended"] for line in map(json.loads, file) if line["event"] == "call"]
        equal(ends, ["cancelled"] * 3, "the calls")
        s.call("POST", "/v1/runs/mine/calls/1", {"result": 1}).has(409, "call_ended")


@test("a program that floods calls waits for a slow reader of events, and the service does not grow", limit=120)
def _():
    code = "big = {'x': 'y' * 900000}\nfor i in range(60):\n    send(i, 'search', big)\nprint([read()['id'] for i in range(60)] == list(range(60)))"
    with Service() as s:
        before = s.metric("process_resident_memory_bytes")
        body = program(code, calls={"max": 1000, "timeout": f"{30 * SLOW:.0f}s"}, timeout=f"{50 * SLOW:.0f}s")
        with Calls(s, body) as calls:
            time.sleep(2)  # and reads nothing
            grown = s.metric("process_resident_memory_bytes") - before
            true(grown < 24 << 20, f"the service has grown by {grown} bytes")
            s.run("print(1)").has(200)
            result = calls.serve(lambda event: {"result": 1})
        equal(said(result), "True\n", "the output")
        equal(result["calls"][0]["count"], 60, "calls")


@test("a program that reads no answers: more than 16 MiB of them are refused, and the run ends as ever", limit=120)
def _():
    with Service(config={"body_max": "64M"}) as s, Calls(s, calling(6, "time.sleep(600)", timeout=f"{20 * SLOW:.0f}s")) as calls:
        calls.await_call(6)
        replies = [calls.answer(i + 1, {"result": "x" * (10 << 20)}).status for i in range(6)]
        equal(set(replies), {204, 429}, "the answers' statuses")
        true(replies[0] == 204 and replies.count(204) <= 3, f"too many were taken: {replies}")  # two are in the jail's supervisor
        s.call("DELETE", f"/v1/runs/{calls.id}").has(202)
        equal(calls.await_event("result")["result"]["status"], "cancelled", "the status")


@test("kill -9 of the worker in the middle of a call: the caller learns it, and the call is over", limit=90)
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        with Calls(s, calling(1, id="mine")) as calls:
            calls.await_call(1)
            names = {pid: describe_process(pid) or "" for pid in s.workers()}
            os.kill(next(pid for pid, name in names.items() if "cejail-worker" in name), signal.SIGKILL)
            equal(calls.await_event("error")["error"]["code"], "internal", "the error")
            calls.answer(1, {"result": 1}).has(409, "call_ended")
        with open(f / "log", encoding="ascii") as file:
            equal([line["ended"] for line in map(json.loads, file) if line["event"] == "call"], ["cancelled"], "the record")
        with Calls(s, calling(1)) as calls:
            equal(said(calls.serve(mirror)), "{'id': 0, 'result': {'name': 'search', 'n': 0}}\n", "the next run")
