# SPDX-License-Identifier: Apache-2.0
"""The tools of the client libraries: functions of the caller that a program calls, and the fake tool server.

The programs speak the protocol of the calls themselves.  Most of them run without a jail: STAND_IN is a `cejail` that
gives its own end of the calls to the program, so that a test can send every line and knows when.
"""

import asyncio
import contextvars
import dataclasses
import functools
import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import typing

from harness import *  # noqa: F403
from libraries import CLIENTS, lib
from service import Service

# It starts the program with the caller's socket as the program's, and without --calls-fd no program.
STAND_IN = """#!/usr/bin/python3
import argparse, json, os, subprocess, sys
parser = argparse.ArgumentParser()
parser.add_argument("verb")
for name in ("--request-fd", "--events-fd", "--calls-fd"):
    parser.add_argument(name, type=int)
for name in ("--json", "--quiet"):
    parser.add_argument(name, action="store_true")
options = parser.parse_args()
asked = json.load(sys.stdin)
env = {**os.environ, "CEJAIL_CALLS_FD": str(options.calls_fd), "CATALOGUE": json.dumps(asked.get("tools"))}
done = subprocess.run([sys.executable, "-c", asked["code"]], env=env, pass_fds=[options.calls_fd], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
stream = lambda text: {"text": text, "truncated": False}
counts = [{"name": "one", "count": 3, "failed": 1, "refused": 2}]
result = {"schema": "cejail.result/1", "id": "x", "status": "exited", "exit_code": done.returncode, "signal": None, "stdout": stream(done.stdout),
          "stderr": stream(done.stderr), "limits": {}, "artifacts": [], "warnings": [], "usage": {}, "calls": counts}
if options.events_fd:
    os.write(options.events_fd, json.dumps({"type": "result", "result": result}).encode() + b"\\n")
else:
    print(json.dumps(result))
"""

# What the programs begin with: call() waits for its answer.
BEGIN = """
import json, os, sys, time
catalogue = json.loads(os.environ.get("CATALOGUE", "null"))
fd = int(os.environ["CEJAIL_CALLS_FD"])
lines = os.fdopen(os.dup(fd), "rb")
def send(text):
    text = text.encode() + b"\\n"
    while text:
        text = text[os.write(fd, text):]
def begin(number, _name, **arguments):
    send(json.dumps({"id": number, "name": _name, "arguments": arguments}))
def read():
    line = json.loads(lines.readline())
    return line["result"] if "result" in line else "ERROR " + line["error"]["message"]
def call(_name, **arguments):
    begin(1, _name, **arguments)
    return read()
def say(value):
    print(json.dumps(value), flush=True)
"""


class StandIn(Folder):
    """A folder with the stand-in for cejail; `client` runs programs with it."""

    def client(self, kind=lib.Client):
        return kind(program=self.file("cejail", STAND_IN, 0o755))


def said(result):
    equal((result.exit_code, result.stderr), (0, ""), "how the program ended")
    return [json.loads(line) for line in result.stdout.splitlines()]


@dataclasses.dataclass
class Point:
    x: int
    names: typing.List[str] = dataclasses.field(default_factory=list)


class Row(typing.TypedDict, total=False):
    key: typing.Required[str] if hasattr(typing, "Required") else str
    value: typing.Optional[Point]


def documented(text: str, count: int = 3, at: typing.Optional[Point] = None, *, kind: typing.Literal["a", "b"] = "a") -> typing.List[str]:
    """Finds text.

    A second paragraph.
    """
    return [text, str(count), str(at), kind]


class Finder:
    def find(self, row: Row, *rest, **more: int) -> typing.Dict[str, float]:
        return {"found": 1.5}

    def __call__(self, a: typing.Annotated[int, "a number"]):
        return a + 1


POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}}, "required": ["x"]}


@test("the schema of a tool comes from the annotations and the doc string of its function")
def _():
    box = sys.modules[lib.Toolbox.__module__]
    for kind, schema in (
        (str, {"type": "string"}), (int, {"type": "integer"}), (float, {"type": "number"}), (bool, {"type": "boolean"}), (None, {"type": "null"}),
        (typing.Any, {}), (object, {}), (set, {}), (threading.Thread, {}), (typing.TypeVar("T"), {}),
        (list, {"type": "array"}), (typing.List[int], {"type": "array", "items": {"type": "integer"}}), (typing.Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict, {"type": "object"}), (typing.Dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (typing.Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}), (typing.Union[str, Point], {"anyOf": [{"type": "string"}, POINT]}),
        (typing.Literal["a", 1], {"enum": ["a", 1]}), (typing.Annotated[str, 7, "what"], {"type": "string", "description": "what"}), (Point, POINT),
        (Row, {"type": "object", "properties": {"key": {"type": "string"}, "value": {"anyOf": [POINT, {"type": "null"}]}}, "required": ["key"]}),
    ):  # fmt: skip
        equal(box.schema_of(kind), schema, f"the schema of {kind}")
        tried()
    if sys.version_info >= (3, 10):
        equal(box.schema_of(int | None), {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "the schema of a union with |")
    first, found, called, part = lib.Toolbox({"documented": documented, "find": Finder().find, "called": Finder(), "part": functools.partial(documented, "x")}).catalogue
    equal(first, {
        "name": "documented", "description": "Finds text.\n\nA second paragraph.", "outputSchema": {"type": "array", "items": {"type": "string"}},
        "inputSchema": {
            "type": "object", "required": ["text"], "additionalProperties": False,
            "properties": {
                "text": {"type": "string"}, "count": {"type": "integer", "default": 3},
                "at": {"anyOf": [POINT, {"type": "null"}], "default": None}, "kind": {"enum": ["a", "b"], "default": "a"},
            },
        },
    }, "the tool object")  # fmt: skip
    equal((list(found["inputSchema"]["properties"]), "additionalProperties" in found["inputSchema"], "description" in found), (["row"], False, False), "of a method with **more")
    equal(called["inputSchema"]["properties"], {"a": {"type": "integer", "description": "a number"}}, "of an object")
    equal((part["description"][:11], "text" in part["inputSchema"]["properties"]), ("Finds text.", False), "of a partial function")


@test("arguments that functools.partial() gives are not in the schema, and a program cannot give them")
def _():
    def ask(table, query: str, *, key="none", **more):
        return [table, query, key]

    secret = functools.partial(functools.partial(ask, "users", key="s3cret"))
    wrapped = functools.update_wrapper(functools.partial(secret), ask)
    wrapped_twice = functools.partial(wrapped, query="q")
    box = lib.Toolbox({"secret": secret, "wrapped": wrapped, "twice": wrapped_twice, "described": {"handler": secret, "inputSchema": {}}})
    lacks(json.dumps(box.catalogue), "s3cret", "the catalogue")
    for tool, names in zip(box.catalogue, (["query"], ["query"], [])):
        equal(list(tool["inputSchema"]["properties"]), names, f"the arguments of {tool['name']}")
    with StandIn() as f:
        code = BEGIN + "for name in ('secret', 'wrapped', 'described'):\n  for given in ({}, {'key': 1}, {'table': 1}): say(call(name, query='q', **given))\nsay(call('twice', query='x'))"
        tools = {"secret": secret, "wrapped": wrapped, "twice": wrapped_twice, "described": {"handler": secret, "inputSchema": {}}}
        answers = said(f.client().run(code, tools=tools))
    for good, key, table in (answers[:3], answers[3:6], answers[6:9]):
        equal(good, ["users", "q", "s3cret"], "the answer")
        contains(key, "ERROR TypeError: the caller sets the argument 'key' of ", "an argument by name")
        contains(table, "ERROR TypeError: the caller sets the argument 'table' of ", "an argument by place")
    contains(answers[9], "the caller sets the argument 'query' of 'twice' (leave it out)", "an argument of the outer partial()")


@dataclasses.dataclass
class Node:
    next: typing.Optional["Node"] = None


@test("a type that contains itself, and a name that only a type checker knows, get an open schema")
def _():
    box = sys.modules[lib.Toolbox.__module__]
    equal(box.schema_of(Node), {"type": "object", "properties": {"next": {"anyOf": [{}, {"type": "null"}]}}}, "the schema")

    def unknown(a: "NoSuchName", b=1):  # noqa: F821
        return a

    equal(lib.Toolbox([unknown]).catalogue[0]["inputSchema"]["properties"], {"a": {}, "b": {"default": 1}}, "the properties")


@test("tools are given by name or in a list, as functions or as tool objects with a handler")
def _():
    def one():
        return 1

    schema = {"type": "object", "properties": {"a-b": {"type": "integer"}}}
    tool = {"handler": lambda **given: given, "description": "Gives back.", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
    for tools in ({"one": one, "srv.back": tool}, [one, {**tool, "name": "srv.back"}]):
        with StandIn() as f:
            result = f.client().run(BEGIN + "say(catalogue); say(call('one')); say(call('srv.back', **{'a-b': 7}))", tools=tools)
        catalogue, *answers = said(result)
        equal([row["name"] for row in catalogue], ["one", "srv.back"], "the names")
        equal({key: catalogue[1][key] for key in sorted(catalogue[1])}, {
            "annotations": {"readOnlyHint": True}, "description": "Gives back.", "inputSchema": schema, "name": "srv.back"}, "the tool object")  # fmt: skip
        equal(answers, [1, {"a-b": 7}], "the answers")
        equal(result.calls, [lib.CallCount("one", 3, 1, 2)], "the counts of the result")


@test("a tool that cannot be called is refused before the run, with the remedy")
def _():
    def positional(a, /):
        return a

    client = lib.Client(program="/no/such")
    for tools, word in (
        ({"a": 1}, "the tool 'a' is int; give a function"), ({"a": {"description": "x"}}, 'an object with "handler"'), ([lambda: 1], "NAME"),
        ([Finder()], "NAME"), ([{"handler": 1, "name": "b"}], "the tool 'b'"), ([positional], "remove the '/'"),
    ):  # fmt: skip
        for work in (client.run, lambda code, tools: list(client.stream(code, tools=tools))):
            try:
                work("1", tools=tools)
                raise Failure(f"{tools} were not refused")
            except (TypeError, ValueError) as problem:
                contains(str(problem), word, "the message")
                tried()


@test("a JSON object becomes the dataclass of the parameter, and a dataclass of the result an object")
def _():
    def move(at: Point, all: typing.List[Point], by: typing.Optional[Point] = None, named: typing.Dict[str, Point] = {}, either: typing.Union[str, Point] = ""):  # noqa: B006
        true(isinstance(at, Point) and all == [Point(2)] and by == Point(3) and named == {"n": Point(4)} and either == {"x": 5}, f"{at} {all} {by} {named} {either}")
        return {"at": Point(at.x + 1, ["é"])}

    with StandIn() as f:
        code = BEGIN + "say(call('move', at={'x': 1}, all=[{'x': 2}], by={'x': 3}, named={'n': {'x': 4}}, either={'x': 5}))\nsay(call('move', at={'y': 1}, all=[]))"
        good, bad = said(f.client().run(code, tools=[move]))
    equal(good, {"at": {"x": 2, "names": ["é"]}}, "the answer")
    contains(bad, "ERROR TypeError: ", "the error")


@test("what a function raises is the call's error in one line, without a traceback")
def _():
    class Odd(Exception):
        pass

    def fails(how):
        raise {"lines": ValueError("no\n  such\tthing"), "empty": Odd(), "exit": SystemExit("7"), "half": ValueError("\ud800"), "long": ValueError("x" * 9999)}[how]

    with StandIn() as f:
        code = BEGIN + "for how in ('lines', 'empty', 'exit', 'half', 'long', 'none'): say(call('fails', how=how))\nsay(call('fails'))\nsay(call('other'))"
        answers = said(f.client().run(code, tools=[fails]))
    equal(answers[:4], ["ERROR ValueError: no such thing", "ERROR Odd", "ERROR SystemExit: 7", "ERROR ValueError: ?"], "the errors")
    equal((answers[4][:20], len(answers[4]) < 2100), ("ERROR ValueError: xx", True), "a long error")
    equal(answers[5], "ERROR KeyError: 'none'", "the error")
    contains(answers[6], "ERROR TypeError: ", "a missing argument")
    contains(answers[6], "'how'", "a missing argument")
    contains(answers[7], "other", "a name that is not on the list")


@test("a result that is no JSON is the call's error, with what a function must return")
def _():
    loop = []
    loop.append(loop)
    deep = [1]
    for _ in range(31):
        deep = [deep]
    values = {"deep": deep, "set": {1}, "nan": [float("nan")], "half": "\ud800", "bytes": b"x", "key": {(1, 2): 3}, "loop": loop, "object": object()}

    def give(what):
        return values[what]

    with StandIn() as f:
        answers = said(f.client().run(BEGIN + f"for what in {list(values)}: say(call('give', what=what))", tools=[give]))
    for answer in answers:
        contains(answer, "ERROR the result of 'give' is not JSON: ", "the error")
        contains(answer, "(the function must return None, ", "the remedy")
        tried()
    contains(answers[0], "more than 31 lists or dicts", "the error")
    contains(answers[1], "'set'", "the error")
    with StandIn() as f:
        answers = said(f.client().run(BEGIN + "for size in (1, 17 << 20): say(call('text', size=size)[:99])\nsay(call('many')); say(call('deep'))", tools={"text": lambda size: "x" * size, "many": lambda: [1] * 128000, "deep": lambda: deep[0]}))
    equal(answers[0], "x", "a small result")
    contains(answers[1], "ERROR the result of 'text' has 178258", "a result past the limit")
    contains(answers[2], "128001 values, and at most 16777216 bytes and 128000 values are possible", "a result past the limit")
    equal(answers[3], deep[0], "a deep result")


@test("functions run at once: each of several waits for the others")
def _():
    barrier, entered = threading.Barrier(8, timeout=30 * SLOW), []

    def meet(n):
        barrier.wait()
        return n

    async def meet_later(n):
        entered.append(n)
        while len(entered) < 8:
            await asyncio.sleep(0.01)
        return n

    for function in (meet, meet_later):
        with StandIn() as f:
            code = BEGIN + "for i in range(8): begin(i, 'meet', n=i)\nsay(sorted(read() for i in range(8)))"
            equal(said(f.client().run(code, tools={"meet": function})), [list(range(8))], "the answers")


@test("a call that has ended cancels its async function, and so does the end of the run")
def _():
    steps = []

    async def wait(n):
        steps.append(f"begin {n}")
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0.01)
            steps.append(f"end {n}")

    threads = threading.active_count()
    with StandIn() as f:
        code = BEGIN + """
def steps():
    begin(3, "steps")
    return read()
begin(1, "wait", n=1)
begin(2, "wait", n=2)
while len(steps()) < 2: time.sleep(0.01)
send('{"id": 1, "ended": "timeout"}')
send('{"id": 99, "ended": "timeout"}')
say(read())
while "end 1" not in steps(): time.sleep(0.01)
say(steps())
"""
        answers = said(f.client().run(code, tools={"wait": wait, "steps": lambda: list(steps)}))
    contains(answers[0], "ERROR CancelledError", "the answer that cejail ignores")
    equal(sorted(answers[1]), ["begin 1", "begin 2", "end 1"], "while the run went on")
    equal(sorted(steps), ["begin 1", "begin 2", "end 1", "end 2"], "after the run")
    wait_until(lambda: threading.active_count() <= threads, "the end of the threads")


@test("a function does not run if its call ended before a thread was free")
def _():
    release, marks = threading.Event(), []
    near, far = socket.socketpair()
    with far:
        answering = lib.Toolbox({"wait": release.wait, "mark": lambda: marks.append(1)}).start(near)
        names = ["wait"] * 64 + ["mark"] * 2
        far.sendall(b"".join(json.dumps({"id": i, "name": name, "arguments": {}}).encode() + b"\n" for i, name in enumerate(names)))
        wait_until(lambda: 65 in answering.awaited, "the calls")
        far.sendall(b'{"id": 64, "ended": "timeout"}\n')
        wait_until(lambda: 64 not in answering.awaited, "the end of one call")
        release.set()
        wait_until(lambda: not answering.awaited, "the end of the other calls")
        answering.close()
    equal(marks, [1], "the calls of the function")


@test("a call that Python cannot read gets an error, and a line that is no call ends the connection")
def _():
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    def mute():
        raise Mute

    with StandIn() as f:
        code = BEGIN + """
send('{"id": 1, "name": "one", "arguments": {"a": ' + '9' * 5000 + '}}'); say(read())
send('{"id": 2, "name": "one"}'); say(read())
say(call('mute')); say(call('one'))
"""
        answers = said(f.client().run(code, tools={"one": lambda: 1, "mute": mute}))
        contains(answers[0], "ERROR the call cannot be read: ValueError: ", "the error")
        contains(answers[1], "ERROR the call cannot be read: KeyError: ", "the error")
        equal(answers[2:], ["ERROR Mute", 1], "the later answers")
        for line in ("[]", "{", '{"name": "one"}'):
            equal(said(f.client().run(BEGIN + f"send({line!r}); say(lines.readline().decode())", tools={"one": lambda: 1})), [""], f"the answer to {line}")
            tried()


@test("a function that does not return delays neither the run nor the process")
def _():
    with StandIn() as f:
        program = f.file("cejail", STAND_IN, 0o755)
        script = f.file("hangs.py", f"import cejail, time\nresult = cejail.Client(program={program!r}).run({BEGIN + 'begin(1, chr(97))'!r}, tools={{'a': lambda: time.sleep(600)}})\nprint(result.status)")
        done = subprocess.run([PYTHON, script], capture_output=True, text=True, timeout=30 * SLOW, check=False, env=environment(PYTHONPATH=f"{CLIENTS}/python", PYTHONDONTWRITEBYTECODE="1"))
    equal((done.returncode, done.stdout, done.stderr), (0, "exited\n", ""), "the caller")


@test("AsyncClient runs async functions in its own loop, others in threads, and all with its context variables")
def _():
    name = contextvars.ContextVar("name")

    async def use(client):
        name.set("mine")
        loop, own = asyncio.get_running_loop(), threading.current_thread()
        seen = {}

        async def later():
            seen["later"] = (asyncio.get_running_loop() is loop, name.get())
            return "later"

        def now():
            seen["now"] = (threading.current_thread() is own, name.get())
            return "now"

        code = BEGIN + "say([call('later'), call('now'), call('either')])"
        tools = {"later": later, "now": now, "either": lambda: later()}
        equal(said(await client.run(code, tools=tools)), [["later", "now", "later"]], "the answers")
        equal(seen, {"later": (True, "mine"), "now": (False, "mine")}, "where they ran")
        *_, last = [event async for event in client.stream(code, tools=tools)]
        equal(said(last.result), [["later", "now", "later"]], "the answers while events are read")
        task = asyncio.create_task(client.run(BEGIN + "call('forever')", tools={"forever": forever}))
        await started.wait()
        task.cancel()
        equal(isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError), True, "the cancelled run")
        await asyncio.wait_for(ended.wait(), 30 * SLOW)

    async def forever():
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    async def main(client):
        nonlocal started, ended
        started, ended = asyncio.Event(), asyncio.Event()
        await use(client)

    started = ended = None
    with StandIn() as f:
        asyncio.run(main(f.client(lib.AsyncClient)))


@test("a stream answers calls while its events are read, and lines that make no sense do no harm")
def _():
    kept, failed = threading.excepthook, []
    threading.excepthook = failed.append
    with StandIn() as f:
        *_, last = f.client().stream(BEGIN + "say(call('one'))", tools={"one": lambda: [1]})
        equal(said(last.result), [[1]], "the answer")
        for line in ("{", "[]", '{"id": 1}', '{"id": 1, "name": "one", "arguments": 7}', '{"id": 1, "ended": "timeout"}', "half"):
            result = f.client().run(BEGIN + f"os.write(fd, {line.encode()!r} + {b'' if line == 'half' else bytes([10])!r})", tools={"one": lambda: 1})
            equal(result.ok, True, f"the run after {line}")
            tried()
    threading.excepthook = kept
    equal(failed, [], "what threads raised")


@test("a run without tools has no socket for calls")
def _():
    with Folder() as f:
        program = f.file("cejail", "#!/bin/sh\necho \"$*\" >&2\n", 0o755)
        for tools in (None, {}, []):
            try:
                lib.Client(program=program).run("1", tools=tools)
            except lib.Error as problem:
                lacks(str(problem), "--calls-fd", "the arguments")
                tried()


# --- with cejail itself ---------------------------------------------------------------------

REAL = BEGIN + """
say([call("add", a=1, b=2), call("later", text="\\u00e9"), call("fails"), call("none"), call("add", a=1)])
begin(1, "forever")
say(read())
for i in range(4): last = call("add", a=i, b=i)
say(last)
begin(2, "forever")
"""
LIMITS = {"max": 8, "timeout": "1s"}
COUNTS = [("add", 5, 1, 1), ("later", 1, 0, 0), ("fails", 1, 1, 0), ("forever", 1, 1, 1), ("none", 0, 0, 1)]


@test("a program in a jail calls functions, within the limits of its calls, and the result counts the calls")
def _():
    with Service() as s:
        for way in ({"program": CEJAIL, "options": ["--network", "none"]}, {"socket": s.socket}):
            call_functions(lib.Client(**way), lib.AsyncClient(**way))
            tried()


def call_functions(client, async_client):
    cancelled = []

    async def later(text):
        await asyncio.sleep(0.01)
        return text

    def fails():
        raise LookupError("there is nothing")

    async def forever():
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    tools = {"add": lambda a, b: a + b, "later": later, "fails": fails, "forever": forever}
    result = client.run(REAL, tools=tools, calls=LIMITS, network="none")
    first, second, third = said(result)
    equal(first[:3], [3, "é", "ERROR LookupError: there is nothing"], "the answers")
    contains(first[3], "no tool 'none'", "the error of an unknown tool")
    contains(first[4], "ERROR TypeError: ", "the error of a missing argument")
    contains(second, "1s", "the error at the time limit")
    contains(third, "ERROR ", "the error past calls.max")
    equal([(row.name, row.count, row.failed, row.refused) for row in result.calls], COUNTS, "the counts")
    equal(cancelled, [True], "the cancelled function")
    check_schema(result.raw, "result.json")
    events = list(client.stream(BEGIN + "call('add', a=1, b=2); call('fails')", tools=tools, network="none"))
    equal([event.data["outcome"] for event in events if event.type == "answer"], ["answered", "failed"], "the events")
    equal([row.name for row in events[-1].result.calls], ["add", "fails"], "the counts of a stream")

    async def use():
        return await asyncio.gather(*(async_client.run(BEGIN + f"say(call('later', text={text!r}))", tools=tools, network="none") for text in "abc"))

    equal([said(one) for one in asyncio.run(use())], [["a"], ["b"], ["c"]], "runs at once")


@test("an answer that a service does not take is the call's error, and one that it has no room for is sent again")
def _():
    seen = []

    def big(size):
        seen.append(size)
        return "x" * size

    with Service(config={"body_max": "1M"}) as s:
        answers = said(lib.Client(s.socket).run(BEGIN + "for size in (1, 2 << 20): say(call('big', size=size))", tools=[big], network="none", timeout=60 * SLOW))
    equal(answers[0], "x", "the answer that has room")
    contains(answers[1], "ERROR the service does not take the answer of 2097", "the other answer")
    seen.clear()
    with Service() as s:  # the program may leave 16 MiB unread
        code = BEGIN + "for i in range(4): begin(i, 'big', size=9 << 20)\ntime.sleep(1)\nsay([len(read()) for i in range(4)])"
        equal(said(lib.Client(s.socket).run(code, tools=[big], network="none", timeout=60 * SLOW)), [[9 << 20] * 4], "the answers to a program that reads late")
    equal(len(seen), 4, "the calls of the function")


@test("a service's call that Python cannot read gets an error, and the end of a run cancels its async function")
def _():
    ended, began = [], threading.Event()

    async def forever():
        began.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.append(True)

    threads = threading.active_count()
    with Service() as s:
        code = BEGIN + """
send('{"id": 1, "name": "one", "arguments": {"a": ' + '9' * 5000 + '}}'); say(read())
say(call('one')); begin(7, 'forever'); say(call('wait'))
"""
        tools = {"one": lambda: 1, "forever": forever, "wait": began.wait}
        result = lib.Client(s.socket).run(code, tools=tools, network="none", timeout=60 * SLOW)
        bad, good, waited = said(result)
        contains(bad, "ERROR the call cannot be read: ValueError: ", "the error")
        equal((good, waited), (1, True), "the later answers")
        wait_until(lambda: ended == [True], "the end of the function")
        stream = lib.Client(s.socket).stream(BEGIN + "call('forever')", tools={"forever": forever}, network="none")
        while next(stream).type != "call":
            pass
        stream.close()
        wait_until(lambda: threading.active_count() <= threads, "the end of the threads")


@test("the calls in the events of the fake service are nobody's to answer")
def _():
    fake, seen = fake_module("fake"), []
    answers = {"answers": [{"when": {}, "events": [{"call": "one"}, {"call": "one", "outcome": "timeout"}]}]}
    with Folder() as f:
        server = fake.serve(json.dumps(answers), f / "api.sock")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        result = lib.Client(f / "api.sock").run("1", tools={"one": lambda: seen.append(1)})
        server.shutdown()
        server.server_close()
        thread.join()
    equal((result.calls, seen), ([lib.CallCount("one", 2, 1, 0)], []), "the calls of the result, and of the function")


NODE_REAL = """
import { Client } from "%s";
const [way, code] = process.argv.slice(2);
const cancelled = [];
const forever = (_, signal) => new Promise((_, reject) => signal.addEventListener("abort", () => { cancelled.push(signal.reason.code); reject(signal.reason); }));
const add = ({ a, b }) => { if (b === undefined) throw new TypeError("b is missing"); return a + b; };
const tools = { add, later: async ({ text }) => text, fails() { throw new RangeError("there is nothing"); }, forever };
const client = new Client(JSON.parse(way));
const result = await client.run({ code, tools, calls: %s, network: "none" });
const types = [];
for await (const event of client.stream({ code: "from tools import add; print(add(a=1, b=2))", tools, network: "none" })) types.push(event.result ? event.result.stdout : event.type);
console.log(JSON.stringify([result.stdout, result.calls, cancelled, types]));
"""

# --- the fake tool server ------------------------------------------------------------------

FAKE = {
    "tools": [{"name": "search", "description": "Searches.", "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}}, {"name": "time"}, {"name": "list"}, {"name": "remove"}, {"name": "silent"}],
    "answers": {
        "search": [{"arguments": {"q": "é"}, "result": {"found": 1}}, {"arguments": {"q": "none"}, "error": "no such thing"}],
        "time": "12:00", "list": [{"result": 1}], "remove": {"error": "nothing can be removed"},
    },
}  # fmt: skip
META = "io.modelcontextprotocol/"
MODERN = {"_meta": {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}}


def fake_tools(folder, *words, given=""):
    return subprocess.run([PYTHON, "-m", "cejail.fake_tools", *words], input=given, capture_output=True, text=True, timeout=30 * SLOW, check=False,
                          cwd=folder.path, env=environment(PYTHONPATH=f"{CLIENTS}/python", PYTHONDONTWRITEBYTECODE="1", LC_ALL="C"))  # fmt: skip


def fake_module(name="fake_tools"):
    sys.path.insert(0, f"{CLIENTS}/python")
    return importlib.import_module(f"cejail.{name}")


def ask_fake(folder, *messages):
    """The answers by their id; a message is (method, params)."""
    lines = [json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}, ensure_ascii=False) for i, (method, params) in enumerate(messages)]
    done = fake_tools(folder, folder.file("fake.json", json.dumps(FAKE)), given="".join(line + "\n" for line in lines))
    equal((done.returncode, done.stderr), (0, ""), "how the server ended")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    equal([answer["id"] for answer in answers], list(range(len(messages))), "the ids")
    return [answer.get("result", answer.get("error")) for answer in answers]


@test("the fake tool server lists its tools and answers calls as its file says, in both eras of MCP")
def _():
    calls = [{"name": "search", "arguments": {"q": "é"}}, {"name": "search", "arguments": {"q": "none"}}, {"name": "search", "arguments": {}}, {"name": "time"}, {"name": "list"}, {"name": "remove"}, {"name": "silent"}]
    opened = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with Folder() as f:
        first, listed, *legacy = ask_fake(f, ("initialize", opened), ("tools/list", {}), *(("tools/call", call) for call in calls))
        equal((first["protocolVersion"], first["capabilities"]), ("2025-06-18", {"tools": {}}), "initialize")
        equal(listed["tools"][:2], [FAKE["tools"][0], {"name": "time", "inputSchema": {"type": "object"}}], "the tools")
        first, listed, *modern = ask_fake(f, ("server/discover", MODERN), ("tools/list", MODERN), *(("tools/call", {**call, **MODERN}) for call in calls))
        equal((first["resultType"], first["supportedVersions"][0]), ("complete", "2026-07-28"), "server/discover")
        equal((len(listed["tools"]), listed["ttlMs"], listed["cacheScope"]), (5, 0, "private"), "the tools")
    for answers, is_modern in ((legacy, False), (modern, True)):
        found, none, missing, time, rows, remove, silent = answers
        equal((found["structuredContent"], json.loads(found["content"][0]["text"])), ({"found": 1}, {"found": 1}), "an answer for these arguments")
        equal((time["content"], "structuredContent" in time), ([{"type": "text", "text": "12:00"}], False), "a text")
        equal((json.loads(rows["content"][0]["text"]), rows.get("structuredContent")), ([{"result": 1}], [{"result": 1}] if is_modern else None), "a list")
        for answer, text in ((none, "no such thing"), (remove, "nothing can be removed"), (missing, "no answer of 'search' for the arguments {}"), (silent, "no answer of 'silent'")):
            equal(answer["isError"], True, "isError")
            contains(answer["content"][0]["text"], text, "the error")
        equal([answer.get("resultType") for answer in answers], ["complete" if is_modern else None] * 7, "resultType")


@test("the fake tool server refuses what a server of its era refuses, and ignores notifications")
def _():
    server = fake_module()
    fake = server.Fake(json.dumps(FAKE))
    with Folder() as f:
        for method, params, code in (
            ("tools/list", {}, -32602), ("no/method", MODERN, -32601), ("initialize", MODERN, -32601), ("tools/list", [], -32602), ("tools/call", {"name": "none", **MODERN}, -32602),
            ("tools/list", {"_meta": {META + "protocolVersion": "2030-01-01"}}, -32022), ("tools/list", {"_meta": {META + "protocolVersion": "2026-07-28"}}, -32602),
        ):  # fmt: skip
            answer = server.Server(fake).take(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            equal(json.loads(answer)["error"]["code"], code, f"the error of {method} {params}")
            tried()
        done = fake_tools(f, f.file("fake.json", json.dumps(FAKE)), given='{\n[]\n{"jsonrpc": "2.0", "method": "notifications/initialized"}\n{"jsonrpc": "2.0", "id": 1, "result": {}}\n{"jsonrpc": "2.0", "id": "p", "method": "ping"}\n')
    equal([(row["id"], row.get("error", {}).get("code")) for row in map(json.loads, done.stdout.splitlines())], [(None, -32700), (None, -32600), ("p", None)], "the answers")


@test("a file of the fake tool server with a mistake is refused at the start, with its place")
def _():
    with Folder() as f:
        for text, word in (
            ("{", "1:2"), ("[]", "an object is expected"), ("{}", "'tools' is missing"), ('{"tools": [], "tools": []}', "stands twice"), ('{"tools": [], "tolls": []}', "unknown key 'tolls'"),
            ('{"tools": [{}]}', "tools[0].name"), ('{"tools": [{"name": "a"}, {"name": "a"}]}', "two tools 'a'"), ('{"tools": [], "answers": {"a": 1}}', "there is no tool 'a'"),
            ('{"tools": [{"name": "a"}], "answers": {"a": {"error": 1}}}', "answers.a[0].error"),
        ):  # fmt: skip
            try:
                fake_module().Fake(text)
                raise Failure(f"{text} was not refused")
            except fake_module().Mistake as mistake:
                contains(str(mistake), word, text)
                tried()
        done = fake_tools(f, f.file("fake.json", "{}"), "--check")
        equal((done.returncode, done.stdout, done.stderr), (1, "", f"cejail.fake_tools: {f / 'fake.json'}: the file: 'tools' is missing\n"), "a bad file")
        equal(fake_tools(f, f.file("fake.json", json.dumps(FAKE)), "--check").returncode, 0, "a good file")
        done = fake_tools(f, f / "nowhere")
        equal((done.returncode, "nowhere: No such file" in done.stderr), (1, True), "no file")


# --- Node -------------------------------------------------------------------------------

NODE = """
import { Client, CejailError } from "%s";
const [program, begin] = process.argv.slice(2);
const client = new Client({ program });
const said = (result) => { if (result.exitCode !== 0) throw new Error(result.stderr); return result.stdout.split("\\n").filter(Boolean).map((line) => JSON.parse(line)); };
const schema = { type: "object", properties: { a: { type: "integer" } } };
function named() { return "named"; }
const tools = { plain: (given) => given, "srv.later": { description: "Later.", inputSchema: schema, handler: async ({ a }) => [a] }, nothing() {} };
let result = await client.run({ code: begin + "say(catalogue); say(call('plain', x=[1, 'é'])); say(call('srv.later', a=7)); say(call('nothing'))", tools });
const out = [said(result), result.calls];
out.push(said(await client.run({ code: begin + "say(call('named')); say(call('other'))", tools: [named, { name: "other", handler: () => 2 }] })));

class Odd extends Error { constructor() { super("no\\n such"); this.name = "Odd"; } }
const throwing = { odd() { throw new Odd(); }, async text() { throw "only text"; }, async broken() { throw new Error("\\ud800".repeat(3000)); }, bare() { throw Object.create(null); } };
const values = { map: new Map(), set: [new Set()], big: 1n, nan: NaN, half: "\\ud800", call: () => 1 };
const bad = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, () => value]));
const loop = {};
loop.loop = loop;
let deep = 1;
for (let i = 0; i < 32; i++) deep = [deep];
const all = { ...throwing, ...bad, loop: () => loop, deep: () => deep, many: () => Array(128000).fill(1), large: () => "x".repeat(17 << 20) };
out.push(said(await client.run({ code: begin + `for name in ${JSON.stringify(Object.keys(all))}: say(call(name)[:300])`, tools: all })));

let waiting = 0, release;
const together = new Promise((resolve) => { release = resolve; });
const meet = async ({ n }) => { if (++waiting === 8) release(); await together; return n; };
out.push(said(await client.run({ code: begin + "for i in range(8): begin(i, 'meet', n=i)\\nsay(sorted(read() for i in range(8)))", tools: { meet } })));

const steps = [];
const wait = ({ n }, signal) => new Promise((resolve) => signal.addEventListener("abort", () => { steps.push([n, signal.reason instanceof CejailError, signal.reason.code]); resolve(); }));
const seen = () => steps.length;
result = await client.run({ code: begin + `
begin(1, 'wait', n=1)
begin(2, 'wait', n=2)
send('{"id": 1, "ended": "timeout"}'); send('{"id": 99, "ended": "timeout"}')
while call('seen') == 0: time.sleep(0.01)
say("seen")`, tools: { wait, seen } });
out.push(said(result));
while (steps.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
out.push(steps);

const types = [];
for await (const event of client.stream({ code: begin + "say(call('plain', x=1))", tools })) { types.push(event.type); result = event.result; }
out.push([types, said(result)]);
for (const line of ["{", "[]", '{"id": 1}', '{"id": 1, "ended": "timeout"}']) await client.run({ code: begin + `send('${line}')`, tools });

const errors = [];
for (const wrong of [{ a: 1 }, { a: { description: "x" } }, [() => 1]]) errors.push(await client.run({ code: "1", tools: wrong }).catch((e) => `${e.name}: ${e.message}`));
out.push(errors);
console.log(JSON.stringify(out));
"""

# Node is no package of tools/setup: a host without it has nothing to test.
if shutil.which("node"):

    @test("the library for Node answers calls with functions, several at once, and aborts those whose call has ended")
    def _():
        with StandIn() as f:
            script = f.file("use.mjs", NODE % f"{CLIENTS}/node/cejail.mjs")
            words = [shutil.which("node"), script, f.file("cejail", STAND_IN, 0o755), BEGIN]
            done = subprocess.run(words, capture_output=True, text=True, timeout=50 * SLOW, check=False, env=environment())
        equal((done.returncode, done.stderr), (0, ""), "the exit status")
        first, counts, listed, bad, met, ended, steps, streamed, errors = json.loads(done.stdout)
        equal(first, [
            [{"name": "plain"}, {"description": "Later.", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}, "name": "srv.later"}, {"name": "nothing"}],
            {"x": [1, "é"]}, [7], None,
        ], "the catalogue and the answers")  # fmt: skip
        equal(counts, [{"name": "one", "count": 3, "failed": 1, "refused": 2}], "the counts of the result")
        equal(listed, ["named", 2], "tools in a list")
        equal(bad[:2], ["ERROR Odd: no such", "ERROR only text"], "what functions throw")
        contains(bad[2], "ERROR Error: \ufffd\ufffd", "half of a surrogate pair")
        equal(bad[3], "ERROR the function threw an object without a text", "an object that has no text")
        for answer, word in zip(bad[4:], ("a Map", "a Set", "a bigint", "NaN", "surrogate", "a function", "circular", "more than 31 arrays")):
            contains(answer, "is not JSON: ", "the error")
            contains(answer, word, "the error")
            contains(answer, "(the function must return null, ", "the remedy")
            tried()
        contains(bad[-2], "128001 values, and at most 16777216 bytes and 128000 values are possible", "a result past the limit")
        contains(bad[-1], "at most 16777216 bytes", "a result past the limit")
        equal((met, ended), ([list(range(8))], ["seen"]), "calls at once, and after one that has ended")
        equal(steps, [[1, True, "timeout"], [2, True, "cancelled"]], "the aborted functions")
        equal(streamed, [["result"], [{"x": 1}]], "a stream")
        for text, word in zip(errors, ("TypeError: the tool 'a' has no function", "\"handler\"", "NAME")):
            contains(text, word, "the error")

    @test("a program in a jail calls functions of Node, within the limits of its calls, and the result counts the calls")
    def _():
        with Folder() as f, Service() as service:
            script = f.file("use.mjs", NODE_REAL % (f"{CLIENTS}/node/cejail.mjs", json.dumps(LIMITS)))
            for way in ({"program": CEJAIL, "options": ["--network", "none"]}, {"socket": service.socket}):
                call_node_functions(script, way)
                tried()

    def call_node_functions(script, way):
        done = subprocess.run([shutil.which("node"), script, json.dumps(way), REAL], capture_output=True, text=True, timeout=50 * SLOW, check=False, env=environment())
        equal((done.returncode, done.stderr), (0, ""), "the exit status")
        stdout, counts, cancelled, types = json.loads(done.stdout)
        first, second, third = [json.loads(line) for line in stdout.splitlines()]
        equal((first[:3], first[4]), ([3, "é", "ERROR RangeError: there is nothing"], "ERROR TypeError: b is missing"), "the answers")
        contains(second, "1s", "the error at the time limit")
        contains(third, "ERROR ", "the error past calls.max")
        equal([tuple(row.values()) for row in counts], COUNTS, "the counts")
        equal(cancelled, ["timeout"], "the aborted function")
        equal([kind for kind in types if kind != "stdout"], ["start", "call", "answer", "3\n"], "the events of a stream")
