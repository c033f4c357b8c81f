# SPDX-License-Identifier: Apache-2.0
"""POST /mcp of `cejail serve`: both eras of the protocol over HTTP, with nothing but Python's library."""

import json
import os
import signal

import harness
from harness import *  # noqa: F403
from mcp_client import META, MODERN, check_schema, facts_of
from service import TOKEN, Background, Service, one_token_config, tcp_call

LEGACY = "2025-11-25"
BOTH = "application/json, text/event-stream"
SHELL = {"mcp": {"profiles": ["shell"]}}
SESSION_TOOLS = ["session_create", "session_exec", "session_put_file", "session_get_file", "session_list_files", "session_network", "session_end"]


def message(method, number=1, version=None, progress=None, **params):
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}} if version == MODERN else {}
    if progress is not None:
        meta["progressToken"] = progress
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def headers_for(body, version, **more):
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    if version:
        headers["MCP-Protocol-Version"] = version
    if version == MODERN:
        headers["Mcp-Method"] = body["method"]
        if "name" in body.get("params", {}):
            headers["Mcp-Name"] = body["params"]["name"]
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    return {name: value for name, value in headers.items() if value is not None}


def ask(service, body, version=MODERN, **more):
    return service.call("POST", "/mcp", json.dumps(body), headers_for(body, version, **more))


def result_of(reply):
    reply.has(200)
    answer = reply.json
    true("result" in answer, f"no result: {answer}")
    return answer["result"]


def run(service, code, version=MODERN, tool="run_shell", number=1, progress=None, headers=None, **arguments):
    body = message("tools/call", number, version, progress, name=tool, arguments={"code": code, "network": "none", **arguments})
    return ask(service, body, version, **(headers or {}))


def events_of(data):
    """The messages of a stream of events; comments are left out."""
    events = []
    for block in data.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            equal(lines[0], "event: message", "the event's type")
            equal(len(lines), 2, "the lines of an event")
            events.append(json.loads(lines[1].removeprefix("data: ")))
    return events


@test("mcp http: a modern client needs no handshake")
def _():
    with Service(config=SHELL) as service:
        found = result_of(ask(service, message("server/discover", version=MODERN)))
        contains(found["supportedVersions"], MODERN, "the versions")
        tool, *others = result_of(ask(service, message("tools/list", version=MODERN)))["tools"]
        equal([tool["name"], *(other["name"] for other in others)], ["run_shell", *SESSION_TOOLS], "the tools")
        result = result_of(run(service, "echo $((6 * 7))"))
        equal((result["isError"], result["resultType"]), (False, "complete"), "the result")
        check_schema(facts_of(result), tool["outputSchema"], "the result")
        equal(facts_of(result)["stdout"], "42\n", "the output")


@test("mcp http: a legacy client gets a session id, which it needs only to cancel")
def _():
    with Service(config=SHELL) as service:
        opened = ask(service, message("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo={"name": "t", "version": "1"}), None)
        equal(result_of(opened)["protocolVersion"], LEGACY, "the version")
        session = opened.headers["Mcp-Session-Id"]
        true(session and session.isascii() and session.isprintable(), f"session id {session!r}")
        done = service.call("POST", "/mcp", '{"jsonrpc":"2.0","method":"notifications/initialized"}',
                            headers_for({}, LEGACY, Mcp_Session_Id=session))
        equal((done.status, done.body), (202, b""), "the reply to a notification")
        result = result_of(run(service, "echo one", LEGACY, headers={"Mcp_Session_Id": session}))
        equal(result["structuredContent"]["stdout"], "one\n", "the output")
        true("resultType" not in result, f"a modern result: {result}")
        old = result_of(run(service, "echo two", None))
        true("structuredContent" not in old, "a client without a version gets 2025-03-26")


@test("mcp http: GET and DELETE are answered with 405, a web page with 403, a wrong type with 415 and 406")
def _():
    with Service(config=SHELL) as service:
        for method in ("GET", "DELETE", "PUT"):
            reply = service.call(method, "/mcp", None, {"Accept": "text/event-stream"})
            reply.has(405, "method_not_allowed")
            equal(reply.headers["Allow"], "POST", "Allow")
        ping = message("tools/list", version=MODERN)
        ask(service, ping, Origin="http://localhost").has(403, "forbidden_origin")
        ask(service, ping, Content_Type="text/plain").has(415, "unsupported_media_type")
        ask(service, ping, Content_Type=None).has(415, "unsupported_media_type")
        ask(service, ping, Accept="text/html").has(406, "not_acceptable")
        for accept in (None, "*/*", "application/*", "application/json", BOTH):
            ask(service, ping, Accept=accept).has(200)
        only = ask(service, ping, Accept="text/event-stream").has(200)
        equal(only.headers["Content-Type"], "text/event-stream", "the type")
        equal(events_of(only.body)[0]["result"]["tools"][0]["name"], "run_shell", "the tool")


@test("mcp http: headers that do not say what the body says are refused")
def _():
    with Service(config=SHELL) as service:
        def code(reply, status=400):
            reply_json = reply.json
            equal((reply.status, reply_json["jsonrpc"]), (status, "2.0"), f"the status of {reply!r}")
            return reply_json["error"]["code"]

        body = message("tools/call", version=MODERN, name="run_shell", arguments={"code": "true"})
        for wrong in ({"Mcp_Method": "tools/list"}, {"Mcp_Method": None}, {"Mcp_Name": "other"}, {"Mcp_Name": None},
                      {"MCP_Protocol_Version": LEGACY}, {"MCP_Protocol_Version": None}, {"Mcp_Name": "=?base64?!?="}):
            equal(code(ask(service, body, **wrong)), -32020, f"the code for {wrong}")
        equal(result_of(ask(service, body, Mcp_Name="=?base64?cnVuX3NoZWxs?="))["isError"], False, "an encoded name")
        equal(code(ask(service, message("tools/list"), "1999-01-01")), -32022, "an unknown version")
        equal(code(ask(service, message("tools/list"), MODERN)), -32602, "a version only in the header")
        equal(code(ask(service, message("no/method", version=MODERN)), 404), -32601, "an unknown method")
        equal(ask(service, message("no/method"), LEGACY).has(200).json["error"]["code"], -32601, "the same of a legacy client")
        for text, number in (("{", -32700), ("[]", -32600), ("[" + json.dumps(body) + "]", -32600), ('{"jsonrpc":"2.0"}', -32600), ("", -32700)):
            reply = service.call("POST", "/mcp", text, headers_for(body, MODERN))
            equal(code(reply), number, f"the code for {text[:20]!r}")


@test("mcp http: JSON that is refused is answered with its id, a message above the limit with 413")
def _():
    with Service(config=SHELL) as service:
        def post(params):
            head = headers_for({"method": "tools/list"}, MODERN)
            return service.call("POST", "/mcp", '{"method":"tools/list","params":{"id":3,"x":' + params + '},"jsonrpc":"2.0","id":"mine"}', head)

        for params in (r'"\u0000"', r'"\udc00"', "[" * 40 + "]" * 40, '{"a":1,"a":1}'):
            reply = post(params)
            equal((reply.status, reply.json["error"]["code"], reply.json.get("id")), (400, -32700, "mine"), f"the reply to {params[:9]}")
        post('"' + "y" * (200 << 20) + '"').has(413, "too_large")


@test("mcp http: progress makes the answer a stream, and its last event is the result")
def _():
    with Service(config=SHELL) as service:
        reply = run(service, "echo one; sleep 0.4; echo two; sleep 0.4", progress="p").has(200)
        equal(reply.headers["Content-Type"], "text/event-stream", "the type")
        equal(reply.headers["X-Accel-Buffering"], "no", "X-Accel-Buffering")
        *progress, last = events_of(reply.body)
        true(progress, "no progress")
        equal({event["method"] for event in progress}, {"notifications/progress"}, "the events")
        equal({event["params"]["progressToken"] for event in progress}, {"p"}, "the token")
        steps = [event["params"]["progress"] for event in progress]
        equal(steps, sorted(set(steps)), "increasing progress")
        equal(last["result"]["structuredContent"]["stdout"], "one\ntwo\n", "the output")
        plain = run(service, "echo one; sleep 0.3; echo two", progress="p", headers={"Accept": "application/json"})
        equal(result_of(plain)["structuredContent"]["stdout"], "one\ntwo\n", "the output of a client without streams")


@test("mcp http: a client that disconnects cancels its call")
def _():
    with Service(config=SHELL) as service:
        for progress in (None, 7):
            connection = service.connect()
            body = message("tools/call", 1, MODERN, progress, name="run_shell", arguments={"code": "echo x; sleep 66", "network": "none"})
            connection.request("POST", "/mcp", json.dumps(body), headers_for(body, MODERN))
            service.await_sleep()
            connection.close()
            harness.wait_until(lambda: not service.runs("running"), "the run to end")
        equal({one["status"] for one in service.runs("finished") if one["tier"]}, {"cancelled"}, "the ends")


@test("mcp http: notifications/cancelled ends the call of its session only, without an answer")
def _():
    with Service(config=SHELL) as service:
        calls = [Background(run, service, "sleep 66", LEGACY, number=5, headers={"Mcp_Session_Id": label}) for label in ("first", "second")]
        harness.wait_until(lambda: len(service.runs("running")) == 2, "two runs")

        def cancel(label, number=5):
            body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            equal(service.call("POST", "/mcp", json.dumps(body), headers_for(body, LEGACY, Mcp_Session_Id=label)).status, 202, "the status")

        cancel("first", 6)
        cancel("third")
        cancel(None)
        equal(len(service.runs("running")), 2, "runs after other cancellations")
        cancel("first")
        reply = calls[0].finish()
        equal((reply.status, events_of(reply.body)), (200, []), "the reply to the cancelled call")
        harness.wait_until(lambda: len(service.runs("running")) == 1, "the first run to end")
        cancel("second")
        calls[1].finish()


@test("mcp http: a call is a run of its caller: rights, ceilings, the queue, the list of runs, the metrics")
def _():
    rights = {"profiles": ["shell"], "timeout": "5s", "memory": "64M", "network": "none"}
    with Service(config={**SHELL, "callers": {f"uid:{os.geteuid()}": rights}}) as service:
        tool, *_others = result_of(ask(service, message("tools/list", version=MODERN)))["tools"]
        equal(tool["inputSchema"]["properties"]["timeout_seconds"]["maximum"], 5, "the ceiling in the schema")
        contains(tool["description"], "no network", "the description")
        above = result_of(run(service, "true", timeout_seconds=6))
        equal(above["isError"], True, "a timeout above the ceiling")
        contains(above["content"][0]["text"], "5", "the reason")
        facts = facts_of(result_of(run(service, "echo seen")))
        row, = [one for one in service.runs("finished") if one["id"] == facts["run_id"]]
        equal((row["profile"], row["status"]), ("shell", "exited"), "the run in the list")
        true(service.metric("cejail_runs_total", profile="shell") >= 1, "no run is counted")


@test("mcp http: a caller has tools only of profiles that it may use")
def _():
    with Service(config={"mcp": {"profiles": ["shell", "python"]}, "callers": {f"uid:{os.geteuid()}": {"profiles": ["python"], "sessions": 0}}}) as service:
        tools = result_of(ask(service, message("tools/list", version=MODERN)))["tools"]
        equal([tool["name"] for tool in tools], ["run_python"], "the tools")
        refused = run(service, "true").has(200).json
        equal(refused["error"]["code"], -32602, "a call of another's tool")


@test("mcp http: on TCP a token is needed, and a loopback name as Host")
def _():
    with Folder() as folder:
        config = one_token_config(folder)
        port = int(config["tcp"].split(":")[1])
        with Service(config={**config, **SHELL}):
            def post(**more):
                body = message("tools/list", version=MODERN)
                return tcp_call(port, "POST", "/mcp", json.dumps(body), headers_for(body, MODERN, **more))

            post().has(401, "unauthorized")
            post(Authorization="Bearer " + "x" * 40).has(401, "unauthorized")
            post(Authorization=f"Bearer {TOKEN}", Host="evil.example.com").has(403, "forbidden_origin")
            for origin in ("http://localhost", f"https://localhost:{port}", "null", f"http://localhost:{port}.example.com"):
                post(Authorization=f"Bearer {TOKEN}", Host=f"localhost:{port}", Origin=origin).has(403, "forbidden_origin")
            post(Authorization=f"Bearer {TOKEN}", Host=f"localhost:{port}", Origin=f"http://localhost:{port}").has(200)
            post(Host=f"localhost:{port}", Origin=f"http://localhost:{port}").has(401, "unauthorized")
            equal(result_of(post(Authorization=f"Bearer {TOKEN}"))["tools"][0]["name"], "run_shell", "the tool")


@test("mcp http: the service shuts down while calls run, and a new call says so")
def _():
    with Service(config={**SHELL, "drain": "60s"}) as service:
        slow = Background(run, service, f"sleep {2 * min(harness.SLOW, 5)}; echo done")  # an answer after 15 s is a stream
        service.await_sleep()
        service.signal(signal.SIGTERM)
        equal(facts_of(result_of(slow.finish()))["stdout"], "done\n", "the running call")


@test("mcp http: a second message waits for nothing, and several calls run at one time")
def _():
    with Service(config=SHELL) as service:
        calls = [Background(run, service, f"sleep 0.3; echo {n}", number=1) for n in range(4)]
        equal([facts_of(result_of(one.finish()))["stdout"] for one in calls], [f"{n}\n" for n in range(4)], "the outputs")


@test("mcp http: a file comes back as a resource, an image as an image")
def _():
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
    with Service(config=SHELL) as service:
        result = result_of(run(service, f"echo {png} | base64 -d > out/a.png; echo text > out/b.txt"))
        kinds = [block["type"] for block in result["content"]]
        equal(kinds, ["text", "image", "resource"], "the content")
        equal(result["content"][1], {"type": "image", "data": png, "mimeType": "image/png"}, "the image")
