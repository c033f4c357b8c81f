# SPDX-License-Identifier: Apache-2.0
"""The lines of a trace file, as OpenTelemetry's "OTLP JSON lines" has them.  It holds no tests."""

import contextlib
import json
import os
import re
import socket
import threading

from harness import CEJAIL, SLOW, Folder, Skip, equal, true

TRACE_ID, PARENT_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"
OK, ERROR = 1, 2


def value_of(value):
    ((kind, content),) = value.items()
    if kind == "arrayValue":
        return [value_of(one) for one in content["values"]]
    true(kind in ("stringValue", "intValue") and isinstance(content, str), f"the attribute {value}")
    return int(content) if kind == "intValue" else content


class Span:
    def __init__(self, raw):
        self.id, self.trace, self.parent = raw["spanId"], raw["traceId"], raw.get("parentSpanId")
        self.name, self.status = raw["name"], raw["status"]
        for text in (raw["startTimeUnixNano"], raw["endTimeUnixNano"]):
            true(isinstance(text, str) and re.fullmatch("[0-9]{19}", text), f"the time {text!r}")
        self.start, self.end = int(raw["startTimeUnixNano"]), int(raw["endTimeUnixNano"])
        self.attributes = {row["key"].removeprefix("cejail."): value_of(row["value"]) for row in raw["attributes"]}
        true(re.fullmatch("[0-9a-f]{16}", self.id) and re.fullmatch("[0-9a-f]{32}", self.trace), f"the ids of {raw}")
        true(self.start <= self.end, f"the times of {raw}")
        equal(raw["kind"], 1, "the kind")

    def has(self, code, /, **attributes):
        equal(self.status["code"], code, f"the status of {self.name}")
        for name, value in attributes.items():
            equal(self.attributes.get(name), value, f"{name} of {self.name}")
        return self


class Line:
    """One run, and its calls in the order of their ends."""

    def __init__(self, text):
        (resource,) = json.loads(text)["resourceSpans"]
        (scope,) = resource["scopeSpans"]
        equal(resource["resource"]["attributes"], [{"key": "service.name", "value": {"stringValue": "cejail"}}], "the resource")
        equal(scope["scope"]["name"], "cejail", "the scope")
        self.run, *self.calls = [Span(raw) for raw in scope["spans"]]
        for call in self.calls:
            equal((call.trace, call.parent), (self.run.trace, self.run.id), "the trace and the parent of a call")
            true(self.run.start <= call.start and call.end <= self.run.end, f"{call.name} is not within its run")
        ids = [span.id for span in (self.run, *self.calls)]
        equal(len(set(ids)), len(ids), "the number of ids")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def lines_of(path):
    return [Line(line) for line in text_of(path).splitlines()]


def line_of(path):
    """Of a file that has one."""
    (line,) = lines_of(path)
    return line


# --- calls -----------------------------------------------------------------------------


@contextlib.contextmanager
def answering(answers):
    """The options of a run whose calls get these answers in turn, and the descriptor that it needs."""
    ours, theirs = socket.socketpair()

    def serve():
        for line, answer in zip(ours.makefile("rb"), answers):
            ours.sendall(json.dumps({"id": json.loads(line)["id"], **answer}).encode() + b"\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with ours, theirs, Folder() as f:
        path = f.file("tools.json", json.dumps([{"name": "add"}, {"name": "github.search"}]))
        yield ("--tools", path, "--calls-fd", str(theirs.fileno())), theirs.fileno()
        ours.shutdown(socket.SHUT_RDWR)
        thread.join(10 * SLOW)
