# SPDX-License-Identifier: Apache-2.0
"""A caller of the service whose program calls tools.  It holds no tests."""

import json

from harness import equal, true

NDJSON = {"Accept": "application/x-ndjson"}
TOOLS = [{"name": "search"}, {"name": "github.issues", "description": "Lists issues."}]

# On the bare descriptor: the module of the tools has tests of its own.
PROGRAM = """import json, os, socket, sys, time
end = socket.socket(fileno=int(os.environ["CEJAIL_CALLS_FD"]))
lines = end.makefile("rw")
def send(number, name, arguments={}):
    lines.write(json.dumps({"id": number, "name": name, "arguments": arguments}) + "\\n")
    lines.flush()
def read():
    return json.loads(lines.readline())
def call(name, **arguments):
    send("x", name, arguments)
    answer = read()
    return answer["result"] if "result" in answer else "error: " + answer["error"]["message"]
"""


def program(code, **more):
    return {"profile": "python", "code": PROGRAM + code, "network": "none", "tools": TOOLS, **more}


def calling(count, after="for i in range(%d): print(read())", **more):
    """So many calls at once, then what follows."""
    after = after % count if "%" in after else after
    return program(f"for i in range({count}): send(i, 'search', {{'n': i}})\n{after}", **more)


class Calls:
    """A run of the service, or with `path` an exec of a session, and its events."""

    def __init__(self, s, body, path="/v1/runs", headers=None):
        self.s, self.path = s, path
        self.connection = s.connect()
        self.connection.request("POST", path, json.dumps(body), {**NDJSON, **(headers or {})})
        self.response = self.connection.getresponse()
        equal(self.response.status, 200, "the status")
        self.events, self.seen = (json.loads(line) for line in self.response), []
        self.id = self.await_event("start")["id"]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """A reader that is gone: the run is cancelled."""
        self.response.close()
        self.connection.close()

    def await_event(self, kind, **members):
        for event in self.events:
            self.seen.append(event)
            if event["type"] == kind and all(event.get(k) == v for k, v in members.items()):
                return event
        raise AssertionError(f"no event {kind} {members}: {self.seen[-3:]}")

    def await_call(self, number):
        return self.await_event("call", call=number)

    def answer(self, number, body):
        return self.s.call("POST", f"{self.path}/{self.id}/calls/{number}", body)

    def serve(self, function):
        """Answers each call; the result at the end."""
        for event in self.events:
            self.seen.append(event)
            if event["type"] == "call":
                self.answer(event["call"], function(event)).has(204)
            elif event["type"] == "result":
                return event["result"]
            true(event["type"] != "error", f"it ended with {event}")
        raise AssertionError(f"no result: {self.seen[-3:]}")
