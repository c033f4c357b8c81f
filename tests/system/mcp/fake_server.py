#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An MCP server for the tests of `cejail mcp --tools-from`: fake_server.py KIND

`good` and `modern` keep the protocol of their era; `http` and `http-modern` do over HTTP, on a port that they print.
`http-events` is `http`, but answers initialize by a stream of events, and a notification by a stream without an end.
`large` and `many` describe a tool in more bytes, or with more values, than two such servers may have together.
`tools-N` has N tools, t0, t1, ...
Each start is a byte in the file STARTS; `meets` answers nothing before there are two.
The other kinds break it at the first call, or, when their name begins with `start-`, before they have listed a tool."""

import fcntl
import http.server
import itertools
import json
import os
import signal
import subprocess
import sys
import time

META = "io.modelcontextprotocol/"
KIND = sys.argv[1]
TOOLS = [
    {"name": "echo", "description": "Returns its arguments.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "env", "annotations": {"readOnlyHint": True}},
    {"name": "fail", "annotations": {"readOnlyHint": True}},
    {"name": "sleep", "annotations": {"readOnlyHint": True}},
    {"name": "bad", "annotations": {"readOnlyHint": True}},
    {"name": "pid", "annotations": {"readOnlyHint": True}},
    {"name": "seen", "annotations": {"readOnlyHint": True}},
    {"name": "delete it"},
]
if KIND == "large":
    TOOLS[0]["description"] = "x" * 600000
if KIND == "many":
    TOOLS[0]["inputSchema"] = {"enum": list(range(60000))}
if KIND.startswith("tools-"):
    TOOLS = [{"name": f"t{i}", "annotations": {"readOnlyHint": True}} for i in range(int(KIND[len("tools-"):]))]
seen = []  # methods of notifications


def put(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def flood():
    while True:
        put({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 100}})


def stubborn():
    """Ends for no signal but SIGKILL, and neither does a process in a session of its own."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(600)"
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def loud():
    """Stops cejail, which is its keeper's parent, and ends with 9000 lines in the pipe of its log."""
    with open(f"/proc/{os.getppid()}/stat", encoding="ascii", errors="replace") as file:
        parent = int(file.read().rsplit(")", 1)[1].split()[1])
    fcntl.fcntl(2, 1031, 1 << 20)  # F_SETPIPE_SZ
    os.kill(parent, signal.SIGSTOP)
    os.write(2, b"".join(b"line %04d%s\n" % (i, b" " * 90) for i in range(9000)))
    os._exit(7)


BAD = {
    "garbage": lambda number: (print("no JSON at all", flush=True)),
    "half": lambda number: (sys.stdout.write('{"jsonrpc":"2.0","id":'), sys.stdout.flush(), os._exit(3)),
    "deep": lambda number: print('{"jsonrpc":"2.0","id":%d,"result":%s}' % (number, "[" * 5000 + "]" * 5000), flush=True),
    "huge": lambda number: print('{"jsonrpc":"2.0","id":%d,"result":"%s"}' % (number, "x" * (17 << 20)), flush=True),
    "wrongid": lambda number: put({"jsonrpc": "2.0", "id": number + 1000, "result": {}}),
    "flood": lambda number: flood(),
    "dies": lambda number: (print("out of luck", file=sys.stderr, flush=True), os._exit(7)),
    "loud": lambda number: loud(),
    "killed": lambda number: os.kill(os.getpid(), signal.SIGKILL),
    "closes": lambda number: (os.close(1), time.sleep(600)),
    "silent": lambda number: None,
    "late": lambda number: (time.sleep(1), [put({"jsonrpc": "2.0", "method": "note", "params": {"x": "x" * 1000000}}) for _ in range(4)]),
    "unread": lambda number: time.sleep(600),
}


def call(number, name, arguments):
    if name == "echo":
        return {"content": [], "structuredContent": arguments}
    if name == "env":
        return {"content": [], "structuredContent": dict(os.environ)}
    if name == "fail":
        return {**text("it did not work"), "isError": True}
    if name == "sleep":
        time.sleep(arguments["seconds"])
        return text("awake")
    if name == "pid":
        return text(str(os.getpid()))
    if name == "seen":
        return {"content": [], "structuredContent": {"methods": seen}}
    if name == "bad":
        return BAD[KIND](number)
    return text("done: " + name)


def answer(message):
    """The result, or the error, of a request; None: there is none."""
    method, params, number = message["method"], message.get("params", {}), message["id"]
    is_modern = KIND.endswith("modern")
    if is_modern and params.get("_meta", {}).get(META + "protocolVersion") != "2026-07-28":
        return {"error": {"code": -32022, "message": "unsupported version", "data": {"supported": ["2026-07-28"]}}}
    if method == "initialize" and not is_modern:
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "fake", "version": "1"}}
    elif method == "server/discover" and is_modern:
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
    elif method == "tools/list":
        half = len(TOOLS) // 2
        result = {"tools": TOOLS[half:]} if params.get("cursor") == "second" else {"tools": TOOLS[:half], "nextCursor": "second"}
    elif method == "tools/call":
        result = call(number, params["name"], params.get("arguments", {}))
    else:
        return {"error": {"code": -32601, "message": "unknown method"}}
    if result is None:
        return None
    return {"result": {"resultType": "complete", **result} if is_modern else result}


def count_start():
    with open(os.environ["STARTS"], "ab", buffering=0) as file:
        file.write(b"x")
    while KIND == "meets" and os.path.getsize(file.name) < 2:
        time.sleep(0.01)


def serve_lines():
    print("hello", file=sys.stderr, flush=True)
    if "STARTS" in os.environ:
        count_start()
    if KIND == "stubborn":
        stubborn()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            seen.append(message["method"])
            continue
        if "method" not in message:
            continue
        if KIND == "good" and message["method"] == "tools/list":
            put({"jsonrpc": "2.0", "id": "ours", "method": "ping"})
        if KIND.startswith("start-") and message["method"] == "tools/list":
            BAD[KIND[len("start-"):]](message["id"])
            continue
        said = answer(message)
        if said is not None:
            put({"jsonrpc": "2.0", "id": message["id"], **said})
    if KIND == "stubborn":
        time.sleep(600)


# --- HTTP --------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    """Sessions in the old era; tools/call is answered by a stream of events, all else by JSON."""

    protocol_version = "HTTP/1.1"
    sessions, numbers = set(), itertools.count(1)

    def log_message(self, *unused):
        pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, why):
        self.reply(400, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": why}}).encode())

    def stream(self, **headers):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def chunk(self, text):
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())

    def flow(self):
        """Events until the client closes the connection."""
        self.stream()
        try:
            while True:
                self.chunk(": more\n\n")
                time.sleep(0.05)
        except OSError:
            seen.append("closed")

    def do_DELETE(self):
        Handler.sessions.discard(self.headers["Mcp-Session-Id"])
        self.reply(204)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, is_modern = message.get("method"), KIND.endswith("modern")
        if self.headers["X-Key"] != "secret":
            return self.refuse("no key")
        if "text/event-stream" not in self.headers["Accept"]:
            return self.refuse("Accept")
        if is_modern and method != "initialize" and self.headers["Mcp-Method"] != method:
            return self.refuse("Mcp-Method")
        if is_modern and method == "tools/call" and self.headers["Mcp-Name"] != message["params"]["name"]:
            return self.refuse("Mcp-Name")
        more = {}
        if not is_modern and method == "initialize":
            more["Mcp_Session_Id"] = f"s-{next(Handler.numbers)}"
            Handler.sessions.add(more["Mcp_Session_Id"])
        elif not is_modern and self.headers["Mcp-Session-Id"] not in Handler.sessions:
            return self.reply(404)
        elif not is_modern and self.headers["MCP-Protocol-Version"] != "2025-11-25":
            return self.refuse("MCP-Protocol-Version")
        if "id" not in message:
            seen.append(method)
            return self.flow() if KIND == "http-events" else self.reply(202)
        if method == "tools/call" and message["params"]["name"] == "forget":
            Handler.sessions.clear()
        said = answer(message)
        if said is None:
            time.sleep(600)
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **said})
        if KIND == "http-events" and method == "initialize":
            self.stream(**more)
            self.chunk(f"data: {body}\n\n")
            time.sleep(0.5)
            return self.chunk("")
        if method != "tools/call":
            return self.reply(400 if "error" in said else 200, body.encode(), **more)
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        events = f": hello\r\n\r\nevent: message\r\nid: 1\r\ndata: {note}\r\n\r\ndata: {body[:10]}\r\ndata: {body[10:]}\r\n\r\n"
        if body[9] != " ":  # a line end must not stand inside a word
            events = f": hello\n\ndata: {note}\n\nevent: message\ndata: {body}\n\n"
        return self.reply(200, events.encode(), "text/event-stream; charset=utf-8")


def serve_http():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *unused: None  # a client that closes early
    print(server.server_address[1], flush=True)
    server.serve_forever()


if KIND.startswith("http"):
    serve_http()
else:
    serve_lines()
