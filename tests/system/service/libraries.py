# SPDX-License-Identifier: Apache-2.0
"""The client libraries of tools/clients, as they are installed: over `cejail run` and over a service."""

import ast
import asyncio
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import typing

from harness import *  # noqa: F403
from service import TOKEN, Service, one_token_config

CLIENTS = os.path.join(os.path.dirname(os.path.dirname(CEJAIL)), "share/cejail/clients")


def load():
    folder = f"{CLIENTS}/python/cejail"
    spec = importlib.util.spec_from_file_location("cejail_client", f"{folder}/__init__.py", submodule_search_locations=[folder])
    module = importlib.util.module_from_spec(spec)
    sys.modules["cejail_client"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


lib = load()


class Both:
    """Each test is about both ways: `for client in both:`; then the service has ended."""

    def __init__(self, kind=lib.Client):
        self.kind = kind

    def __enter__(self):
        self.service = Service(config={"callers": {f"uid:{os.geteuid()}": {}}}).__enter__()
        return [self.kind(program=CEJAIL, options=["--network", "none"]), self.kind(self.service.socket)]

    def __exit__(self, *why):
        self.service.__exit__(*why)


def failure(work, *arguments, **more):
    try:
        made = work(*arguments, **more)
        if not isinstance(made, lib.Result):
            list(made)
    except lib.Error as problem:
        return problem
    raise Failure("there was no Error")


@test("run() gives output, value, files and how the program ended")
def _():
    code = (
        "import json, os, sys\n"
        "print(sys.argv[1:], json.load(open('args.json')), open('a').read(), os.access('d/b', os.X_OK), os.environ['A'])\n"
        "sys.stderr.write(sys.stdin.read()); json.dump({'v': [1, None]}, open('out/result.json', 'w')); open('out/raw', 'wb').write(b'\\0\\xff')\n"
        "sys.exit(3)"
    )
    with Both() as both:
        for client in both:
            result = client.run(code, args=["x y"], args_json=None, stdin="typed", env={"A": "é"}, artifacts=True,
                                files={"a": "text", "d/b": lib.File(b"\xff\0", True)}, network="none", id=None)  # fmt: skip
            equal(result.stdout, "['x y'] None text True é\n", "stdout")
            equal((result.status, result.exit_code, result.signal, result.ok), ("exited", 3, None, False), "the end")
            equal((result.stderr, result.value), ("typed", {"v": [1, None]}), "stderr and value")
            equal(result.artifacts["raw"], b"\0\xff", "a file")
            equal((result.limits_hit, result.truncated), ([], False), "limits")
            check_schema(result.raw, "result.json")
            result = client.run("while True: pass", timeout="1s", network="none")
            equal((result.status, result.limits_hit), ("timeout", ["wall"]), "a limit")
            result = client.run(command=["/bin/sh", "-c", "printf '\\377'; kill -9 $$"], network="none")
            equal((result.stdout_bytes, result.signal), (b"\xff", 9), "a command")


@test("an Error says why cejail refused, with its code, and that no program ran")
def _():
    with Both() as both:
        for client in both:
            for more, word in (({"memory": "9T"}, "memory"), ({"nonsense": 1}, "nonsense"), ({"profile": "no-such"}, "no-such"), ({"ro_bind": ["/etc"]}, "host")):
                for work in (client.run, client.stream):
                    problem = failure(work, "print(1)", **more)
                    contains(str(problem), word, "the message")
                    true(problem.code, "there is no code")
                    tried()
    contains(str(failure(lib.Client(program="/no/such").run, "1")), "/no/such", "the message")
    contains(str(failure(lib.Client("/no/such.sock").run, "1")), "connect to the service", "the message")
    contains(str(failure(lib.Client(program="/bin/true").run, "1")), "no result", "the message")
    contains(str(failure(lib.Client(program="/bin/true").stream, "1")), "no result", "the message")


@test("options are the ceilings of a client over `cejail run`")
def _():
    client = lib.Client(program=CEJAIL, options=["--memory", "1G", "--network", "none"])
    equal(client.run("1", memory="800M").raw["limits"]["memory"]["value"], 800 << 20, "the limit")
    contains(str(failure(client.run, "1", network="public")), "network", "the message")


@test("stream() yields the output as it comes, and the result last")
def _():
    code = "import os, sys, time\nos.write(1, b'a\\n')\ntime.sleep(0.5)\nsys.stderr.write('b')"
    with Both() as both:
        for client in both:
            seen = [(event.type, event.text) for event in client.stream(code, network="none") if event.type != "result"]
            equal(seen, [("start", ""), ("stdout", "a\n"), ("stderr", "b")], "the events")
            endless = client.stream("import time\nprint('a', flush=True)\ntime.sleep(10000)", network="none", timeout="25s")
            equal([next(endless).type for _ in range(2)], ["start", "stdout"], "the events of a program that does not end")
            endless.close()
            *_, last = client.stream("print(7)", network="none")
            equal((last.type, last.result.stdout), ("result", "7\n"), "the last event")


def interpreters():
    return [words for words in descendants().values() if "python3" in words]


def was_cancelled(ways):
    """The service's run: its time limit did not end it."""
    ended = wait_until(lambda: not ways.service.runs("running") and ways.service.runs("finished"), "the end of the runs")
    equal({run["status"] for run in ended} - {"exited"}, {"cancelled"}, "how runs ended")


@test("closing the iterator of stream() cancels the run")
def _():
    with (ways := Both()) as both:
        for client in both:
            events = client.stream("import time\nprint(1, flush=True)\ntime.sleep(10000)", network="none", timeout="25s")
            while next(events).type != "stdout":
                pass
            true(interpreters(), "the program is not seen")
            events.close()
            wait_until(lambda: not interpreters(), "the end of the program")
        was_cancelled(ways)


@test("a request and a result of several megabytes pass, and a line of an event is never cut")
def _():
    with Both() as both:
        for client in both:
            text = "é\n" * 400000
            result = client.run("import sys; sys.stdout.write(open('big').read())", files={"big": text}, max_output="1M", network="none")
            equal((result.raw["stdout"]["bytes"], result.truncated), (len(text.encode()), True), "the output")
            got = b"".join(event.content for event in client.stream("print('x' * 900000)", network="none") if event.type == "stdout")
            equal(len(got), 900001, "the streamed output")


@test("several threads run programs with one client at once")
def _():
    with Both() as both:
        for client in both:
            found = {}
            threads = [threading.Thread(target=lambda i=i: found.update({i: client.run(f"print({i})", network="none").stdout})) for i in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            equal(found, {i: f"{i}\n" for i in range(6)}, "the outputs")


@test("AsyncClient runs many at once, and cancelling a task cancels its run")
def _():
    async def use(client):
        results = await asyncio.gather(*(client.run(f"print({i})", network="none") for i in range(5)))
        equal([result.stdout for result in results], [f"{i}\n" for i in range(5)], "the outputs")
        kinds = [event.type async for event in client.stream("print(1)", network="none")]
        equal((kinds[0], kinds[-1]), ("start", "result"), "the events")
        try:
            await client.run("1", nonsense=1)
            raise Failure("there was no Error")
        except lib.Error as problem:
            contains(str(problem), "nonsense", "the message")

        async def stream():
            async for _ in client.stream("import time; time.sleep(10000)", network="none", timeout="25s"):
                pass

        for work in (lambda: client.run("import time; time.sleep(10000)", network="none", timeout="25s"), stream):
            try:
                await asyncio.wait_for(work(), 1)
                raise Failure("it was not cancelled")
            except asyncio.TimeoutError:
                pass

    threads = threading.active_count()
    with (ways := Both(lib.AsyncClient)) as both:
        for client in both:
            asyncio.run(use(client))
            wait_until(lambda: threading.active_count() <= threads, "the end of the threads of cancelled runs")
        was_cancelled(ways)


# --- sessions ---------------------------------------------------------------------------


class Sessions:
    """A service, and a client of it that may have sessions."""

    def __init__(self, kind=lib.Client, config=None):
        self.kind, self.service = kind, Service(config=config)

    def __enter__(self):
        self.service.__enter__()
        return self.kind(self.service.socket)

    def __exit__(self, *why):
        self.service.__exit__(*why)


@test("a session keeps files between execs, and an exec has a result as a run has")
def _():
    with Sessions() as client, client.session(profile="python", network="none", memory="200M") as session:
        session.put("d é/n.bin", b"\0\xff")
        session.put("run", "#!/bin/sh\necho ran $A\n", executable=True)
        result = session.exec("import sys; print(sys.argv[1:], open('d é/n.bin', 'rb').read()); open('made', 'w').write('x'); sys.exit(3)", args=["a b"])
        equal((result.stdout, result.status, result.exit_code), ("['a b'] b'\\x00\\xff'\n", "exited", 3), "the result")
        check_schema(result.raw, "result.json")
        equal(result.raw["session"], session.id, "session")
        equal(session.exec(command=["./run"], env={"A": "B"}).stdout, "ran B\n", "a command")
        equal(session.exec("import sys; print(sys.stdin.read())", stdin=b"in").stdout, "in\n", "stdin")
        equal(session.exec("import json; print(json.load(open('args.json')))", args_json=[1]).stdout, "[1]\n", "args.json")
        equal(session.exec("open('out/a', 'w').write('art')", artifacts=True).artifacts, {"a": b"art"}, "artifacts")
        equal(session.exec("while True: pass", timeout="1s").status, "timeout", "a limit")
        equal(session.get("made"), b"x", "a file")
        found = {entry.path: (entry.type, entry.bytes) for entry in session.list()}
        equal((found["/box/made"], found["/box/d é"][0]), (("file", 1), "directory"), "the list")
        equal([entry.path for entry in session.list("/box/d é/")], ["/box/d é/n.bin"], "the list of a directory")
        equal((session.mkdir("new/er"), session.mkdir("new/er"), session.exists("new/er"), session.exists("none")), (True, False, True, False), "a directory")
        session.rename("made", "/box/new/name")
        equal((session.stat("new/name").bytes, session.stat("new/name").mode, session.exists("made")), (1, "0644", False), "a file that was renamed")
        changes = session.watch("new/er")
        has_seen = threading.Event()
        writer = threading.Thread(target=lambda: [session.put("new/er/x", b"") for _ in iter(lambda: has_seen.wait(0.05), True)])
        writer.start()
        first = next(changes)
        has_seen.set()
        writer.join()
        true(first.path.startswith("/box/new/er/"), f"the first change: {first}")
        session.remove("new")
        contains([change.event for change in changes], "remove", "the changes until the directory is gone")
        session.remove("d é")
        lacks([entry.path for entry in session.list()], "/box/d é", "the list")
        equal(result.raw["limits"]["memory"]["value"], 200 << 20, "the limit of the jail")


@test("a session streams output, and closing the iterator cancels that exec only")
def _():
    with Sessions() as client, client.session(network="none") as session:
        events = list(session.stream("import os; os.write(1, b'a\\n')"))
        equal([event.type for event in events], ["start", "stdout", "result"], "the events")
        equal((events[1].text, events[-1].result.exit_code), ("a\n", 0), "what they have")
        events = session.stream("import time\nprint(1, flush=True)\ntime.sleep(60)")
        while next(events).type != "stdout":
            pass
        events.close()
        wait_until(lambda: session.info()["execs"] == 0, "the end of the exec", 30)
        equal(session.exec("print(2)").stdout, "2\n", "another exec")


@test("start() gives an exec that can be polled, fed, signalled, cancelled and waited for")
def _():
    with Sessions() as client, client.session(network="none") as session:
        cat = session.start("import sys; print(sys.stdin.read().upper())", open_stdin=True)
        equal(cat.poll(), None, "the result of one that runs")
        wait_until(lambda: {row["id"]: row["state"] for row in session.execs()}[cat.id] == "running", "the exec to run", 30)
        cat.write("one ")
        cat.write(b"two\xff", eof=True)
        equal(cat.wait().stdout, "ONE TWO\udcff\n".encode(errors="surrogateescape").decode(errors="replace"), "the output")
        equal(cat.poll().ok, True, "the result of one that ended")
        sleeping = session.start("import signal, time\nopen('ready', 'w')\ntime.sleep(60)")
        wait_until(lambda: "/box/ready" in [entry.path for entry in session.list()], "the program to begin", 30)
        sleeping.signal("TERM")
        equal((sleeping.wait().status, sleeping.wait().signal), ("signaled", 15), "after a signal")
        other = session.start(command=["sleep", "6000"], id="other")
        equal(other.id, "other", "the id")
        other.cancel()
        equal(other.wait().status, "cancelled", "after cancel()")
        equal(failure(other.write, "late").code, "not_running", "the error's code")


@test("cells keep variables, and have a value, displays and an exception")
def _():
    with Sessions() as client, client.session(context="repl", network="none") as session:
        equal(session.exec("x = 20").cell.value, None, "no value")
        result = session.exec("print('out'); x + 1")
        equal((result.stdout, result.cell.value, result.cell.exception), ("out\n", "21", None), "a cell")
        shows = "class Shown:\n    def _repr_html_(self): return '<b>x</b>'\nShown()"
        equal(session.exec(shows).cell.displays, [lib.Display("text/html", b"<b>x</b>")], "the displays")
        result = session.exec("1 / 0")
        equal((result.exit_code, result.cell.exception["type"]), (1, "ZeroDivisionError"), "an exception")
        contains(result.stderr, "ZeroDivisionError", "stderr")
        cell = session.exec("x").cell
        equal((cell.value, cell.lost, cell.restarted), ("20", False, False), "the variable afterwards")
        equal(session.exec("import os; os._exit(1)").cell.lost, True, "lost, of a cell that ends the interpreter")
        equal(session.exec("2").cell.restarted, True, "restarted, of the next one")


@test("an Error of a session has the service's code, and end() can be called twice")
def _():
    with Sessions() as client:
        session = client.session(network="none", lease="10m")
        equal(session.info()["state"], "live", "the state")
        true(session.lease("20m")["lease_ms"] == 20 * 60000, "the lease")
        for work, arguments, more, code in (
            (session.get, ("none",), {}, "not_found"), (session.get, ("/etc/passwd",), {}, None), (session.exec, ("1",), {"memory": "1G"}, "bad_request"),
            (client.session, ("no-such",), {}, "bad_request"), (client.attach, ("no-such",), {}, "not_found"), (client.session, (), {"lease": "999h"}, "above_ceiling"),
        ):  # fmt: skip
            problem = failure(work, *arguments, **more)
            true(problem.code == code or code is None and problem.code, f"{arguments} {more}: {problem.code}: {problem}")
            tried()
        equal(client.attach(session.id).exec("print(1)").stdout, "1\n", "an attached session")
        equal([row["id"] for row in client.sessions()], [session.id], "the sessions")
        session.end()
        session.end()
        problem = failure(session.exec, "1")
        equal((problem.code, session.info()["reason"]), ("session_ended", "closed"), "after the end")


@test("AsyncClient has sessions, many execs at once, and cancelling a task cancels its exec only")
def _():
    async def use(client):
        async with client.session(network="none") as session:
            results = await asyncio.gather(*(session.exec(f"print({i})") for i in range(5)))
            equal([result.stdout for result in results], [f"{i}\n" for i in range(5)], "the outputs")
            equal([event.type async for event in session.stream("import os; os.write(1, b'a')")], ["start", "stdout", "result"], "the events")
            await session.put("a", b"1")
            equal((await session.get("a"), [entry.path for entry in await session.list("/box") if entry.path == "/box/a"]), (b"1", ["/box/a"]), "a file")
            await session.mkdir("d")
            await session.rename("a", "d/a")
            equal((await session.exists("a"), (await session.stat("d/a")).bytes), (False, 1), "a file that was renamed")
            changes, has_seen = session.watch("d"), asyncio.Event()

            async def touch():
                while not has_seen.is_set():
                    await session.put("d/new", b"")
                    await asyncio.sleep(0.05)

            touching = asyncio.create_task(touch())
            first = await changes.__anext__()
            has_seen.set()
            await touching
            true(first.path.startswith("/box/d/"), f"the first change: {first}")
            await session.remove("d")
            contains([change.event async for change in changes], "remove", "the changes until the directory is gone")
            try:
                await session.watch("d").__anext__()
                raise Failure("there was no Error")
            except lib.Error as problem:
                equal(problem.code, "not_found", "the error's code")
            waiting = asyncio.create_task(session.watch("/box").__anext__())
            await asyncio.sleep(0.2)
            waiting.cancel()
            equal(isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError), True, "a cancelled watch")
            started = await session.start("import sys; print(sys.stdin.read())", open_stdin=True)
            equal(await started.poll(), None, "a running exec")
            wanted = {started.id}
            while wanted - {row["id"] for row in await session.execs() if row["state"] == "running"}:
                await asyncio.sleep(0.05)
            await started.write("in", eof=True)
            equal((await started.wait()).stdout, "in\n", "a fed exec")
            other = await session.start(command=["sleep", "6000"])
            await other.cancel()
            equal((await other.wait()).status, "cancelled", "a cancelled exec")
            try:
                await asyncio.wait_for(session.exec("import time; time.sleep(60)"), 1)
                raise Failure("it was not cancelled")
            except asyncio.TimeoutError:
                pass
            while (await session.info())["execs"] > 0:
                await asyncio.sleep(0.05)
            equal((await session.exec("print(2)")).stdout, "2\n", "another exec")
            await session.lease("1m")
            attached = await client.attach(session.id)
            equal(attached.id, session.id, "an attached session")
        equal((await session.info())["reason"], "closed", "after the block")
        opened = await client.session(network="none")
        await opened.end()
        equal(len(await client.sessions()), 2, "the sessions")

    threads = threading.active_count()
    with Sessions(lib.AsyncClient) as client:
        asyncio.run(use(client))
        wait_until(lambda: threading.active_count() <= threads, "the end of the threads")


@test("a client with a url and a token has runs and sessions; a wrong token is refused")
def _():
    with Folder() as f:
        config = one_token_config(f)
        url = f"http://{config['tcp']}"
        with Service(config=config):
            client = lib.Client(url=url, token=TOKEN)
            equal(client.run("print(1)", network="none").stdout, "1\n", "a run")
            with client.session(network="none") as session:
                session.put("a", "x")
                equal((session.exec("print(open('a').read())").stdout, session.get("a")), ("x\n", b"x"), "a session")
                equal([event.type for event in session.stream("1")], ["start", "result"], "the events")
            for token in (None, "wrong" + TOKEN[5:]):
                other = lib.Client(url=url, token=token)
                for work, arguments in ((other.run, ("1",)), (other.stream, ("1",)), (other.session, ()), (other.attach, (session.id,))):
                    equal(failure(work, *arguments).code, "unauthorized", "the error's code")
                    tried()
    for more, word in (({"url": "https://x"}, "http://"), ({"url": "x"}, "http://"), ({"url": url, "socket": "x"}, "socket or a url"), ({"url": url, "options": ["-m", "1G"]}, "options")):
        try:
            lib.Client(**more)
            raise Failure("there was no ValueError")
        except ValueError as problem:
            contains(str(problem), word, "the message")
    contains(str(failure(lib.Client(url="http://127.0.0.1:1").session)), "connect to the service", "the message")


@test("a client without a socket has its sessions where `cejail session socket` says")
def _():
    with Service() as s:
        program = s.folder.file("program", f"#!/bin/sh\n[ \"$*\" = 'session socket' ] && echo {s.socket}\n", 0o755)
        with lib.Client(program=program).session(network="none") as session:
            equal(session.exec("print(1)").stdout, "1\n", "the output")
        program = s.folder.file("failing", "#!/bin/sh\necho no service >&2; exit 125\n", 0o755)
        contains(str(failure(lib.Client(program=program).session)), "no service", "the message")
        contains(str(failure(lib.Client(program="/no/such").session)), "/no/such", "the message")


@test("the library has no dependency but the standard library, and its metadata names this version")
def _():
    with open(f"{CLIENTS}/python/pyproject.toml", encoding="utf-8") as file:
        project = file.read()
    version = cejail("version").out.split()[1]
    contains(project, f'version = "{version}"', "pyproject.toml")
    contains(project, "dependencies = []", "pyproject.toml")
    with open(f"{CLIENTS}/node/package.json", encoding="utf-8") as file:
        package = json.load(file)
    equal((package["version"], package.get("dependencies")), (version, None), "package.json")


NODE = """
import { Client, CejailError } from "%s";
const [program, socket] = process.argv.slice(2);
const said = [];
for (const client of [new Client({ program, options: ["--network", "none"] }), new Client({ socket })]) {
  const code = "import json,sys; sys.stdout.write(open('a').read() + sys.stdin.read()); json.dump([1], open('out/result.json', 'w')); open('out/b', 'wb').write(b'\\\\xff'); sys.exit(2)";
  const r = await client.run({ code, files: { a: "é", "d/x": { content: new Uint8Array([0]), executable: true } }, stdin: new Uint8Array([65]), artifacts: true, network: "none" });
  said.push([r.status, r.exitCode, r.ok, r.stdout, r.value, [...r.artifacts.get("b")], r.limitsHit]);
  const types = [];
  let text = "";
  for await (const event of client.stream({ code: "print('x' * 300000)", network: "none" })) {
    if (types.at(-1) !== event.type) types.push(event.type);
    if (event.type === "stdout") text += event.content.toString();
  }
  said.push([types, text.length]);
  for (const bad of [{ code: "1", nonsense: 1 }, { code: "1", memory: "9T" }, { command: ["true"], profile: "no-such" }]) {
    const problem = await client.run(bad).catch((e) => e);
    said.push([problem instanceof CejailError, typeof problem.code, /nonsense|memory|no-such/.test(problem.message)]);
  }
  let count = 0;
  for await (const event of client.stream({ code: "import time\\nprint(1, flush=True)\\ntime.sleep(60)", network: "none" })) if (event.type === "stdout") { count++; break; }
  const began = Date.now();
  const aborted = await client.run({ code: "import time; time.sleep(60)", network: "none", signal: AbortSignal.timeout(1000) }).catch((e) => e.name);
  said.push([count, aborted, Date.now() - began < 20000]);
  const all = await Promise.all([0, 1, 2].map((i) => client.run({ code: `print(${i})`, network: "none" })));
  said.push(all.map((one) => one.stdout));
}
const none = await new Client({ program: "/no/such" }).run({ code: "1" }).catch((e) => e.message);
const silent = await new Client({ socket: "/no/such.sock" }).run({ code: "1" }).catch((e) => e.message);
said.push([none.includes("/no/such"), silent.includes("connect to the service")]);
console.log(JSON.stringify(said));
"""

USE_TYPES = """
from typing import Literal

import cejail

result: cejail.Result = cejail.run("1", memory="64M", network="none").check()


def search(query: str) -> list[str]:
    return [query]


async def later() -> None: ...


tool: cejail.Tool = {"handler": search, "inputSchema": {"type": "object"}}
counts: list[cejail.CallCount] = cejail.run("1", tools={"search": search, "later": later, "tool": tool}).calls
cejail.run("1", tools=[search, later], calls={"max": 7, "timeout": "5s"})
with cejail.session(context="repl", lease="1m") as session:
    session.exec("x = 1", interrupt=True)
    for change in session.watch():
        event: Literal["create", "write", "chmod", "remove", "rename", "overflow"] = change.event


async def watch(session: cejail.AsyncSession) -> list[str]:
    return [change.path async for change in session.watch("d")]
"""

USE_NODE_TYPES = """
import { Client } from "cejail";
const client = new Client();
for await (const event of client.stream({ code: "1", memory: "64M", network: "none" })) {
  if (event.type === "result") { const status: string = event.result.status; console.log(status); }
  else { const none: undefined = event.result; console.log(none); }
}
const tools = { search: ({ query }: { query: string }) => [query], later: { description: "x", handler: async (args: unknown, signal: AbortSignal) => signal.aborted } };
const count: number = (await client.run({ code: "1", tools })).calls[0].refused + (await client.run({ code: "1", tools: [tools.search] })).calls.length;
console.log(count);
const session = await client.session({ context: "repl", lease: "1m" });
await session.exec({ code: "x = 1", interrupt: true });
for await (const { event, path } of session.watch("d", { signal: new AbortController().signal })) console.log(event === "create", path.length);
"""


def schema(name):
    with open(f"{os.path.dirname(CLIENTS)}/profiles/schema/{name}.json", encoding="utf-8") as file:
        return set(json.load(file)["properties"])


@test("the keywords of the libraries are the keys of the schemas")
def _():
    rows = (("request", lib.RunOptions, set()), ("exec-request", lib.StartOptions, {"command"}), ("session-request", lib.SessionOptions, {"profile"}))
    for name, kind, own in rows:  # those that are parameters of the methods
        equal(set(kind.__annotations__), schema(name) - {"code", "detach"} - own, f"keywords of {kind.__name__}")
    with open(f"{CLIENTS}/node/cejail.d.mts", encoding="utf-8") as file:
        parts = dict(re.findall(r"interface (\w+)[^{]*{(.*?)\n?}\n", file.read(), re.S))
    keys = {name: set(re.findall(r"^  (\w+)\?:", part, re.M)) for name, part in parts.items()}
    equal((keys["Program"] | keys["Jail"]) - {"signal"}, schema("request"), "keys of Run")
    equal((keys["Program"] | keys["ExecOptions"] | {"open_stdin"}) - {"signal"}, schema("exec-request") - {"detach"}, "keys of ExecOptions")
    equal(keys["Jail"] | keys["SessionSettings"], schema("session-request"), "keys of SessionSettings")


@test("the type hints of the functions can be read at run time, also by a Python without typing.Unpack")
def _():
    kept = sys.version_info
    for version in (kept, (3, 10)):
        sys.version_info = version
        try:
            module = load()
        finally:
            sys.version_info = kept
        for function in (module.run, module.astream, module.Client.session, module.Session.exec, module.AsyncSession.start):
            true("return" in typing.get_type_hints(function), f"the hints of {function.__qualname__}")


@test("no annotation of the library for Python has the operator |, which Python 3.9 can't evaluate between types")
def _():
    nodes = []
    for name in ("__init__", "_tools"):
        with open(f"{CLIENTS}/python/cejail/{name}.py", encoding="utf-8") as file:
            nodes += ast.walk(ast.parse(file.read()))
    hints = [getattr(node, name, None) for node in nodes for name in ("annotation", "returns")]
    wrong = [ast.unparse(hint) for hint in hints if hint and any(isinstance(part, ast.BitOr) for part in ast.walk(hint))]
    equal((wrong, len([hint for hint in hints if hint]) > 100), ([], True), "annotations with |, and whether there are any")


@test("check() raises unless the program exited with 0, and a result is shown in one line")
def _():
    client = lib.Client(program=CEJAIL, options=["--network", "none"])
    good = client.run("print('é' * 1000)")
    true(good.check() is good, "check() of a program that exited with 0")
    true(len(repr(good)) < 200 and "status='exited', exit_code=0" in repr(good), repr(good))
    for code, said in (("import none", "exited with 1: ModuleNotFoundError"), ("import os; os.kill(os.getpid(), 6)", "killed by signal 6")):
        try:
            client.run(code).check()
        except lib.ProgramError as problem:
            contains(str(problem), said, "the message")
            continue
        raise Failure("check() raised nothing")


def checks(words, name, good, bad):
    """The type checker accepts the one text and refuses each of the others."""
    with Folder() as f:
        shutil.copytree(f"{CLIENTS}/node", f / "node_modules/cejail")
        for text, is_good in ((good, True), *((good + line, False) for line in bad)):
            file = f.file(name, text)
            env = environment(MYPYPATH=f"{CLIENTS}/python", MYPY_CACHE_DIR=f / "cache")
            done = subprocess.run([*words, file], capture_output=True, text=True, timeout=100 * SLOW, check=False, env=env, cwd=f / "")
            equal(done.returncode == 0, is_good, f"{text[-80:]}: {done.stdout}{done.stderr}")


# A host without a type checker has nothing to test; tools/setup installs them for make check-all.
if shutil.which("mypy"):
    MYPY = ["mypy", "--strict", "--enable-incomplete-feature=Unpack"]

    @test("mypy --strict accepts the library, and knows its keywords", limit=120)
    def _():
        with Folder() as f:
            done = subprocess.run([*MYPY, f"{CLIENTS}/python/cejail"], capture_output=True, text=True, timeout=100 * SLOW, check=False, env=environment(MYPY_CACHE_DIR=f / "cache"))
            equal((done.returncode, done.stderr), (0, ""), done.stdout)
        true(os.path.exists(f"{CLIENTS}/python/cejail/py.typed"), "the marker of a typed package")
        checks(MYPY, "use.py", USE_TYPES, ('cejail.run("1", memry="64M")', 'cejail.session(context="ipython")', 'cejail.run("1", env={"A": 1})', 'cejail.run("1", tools=[{"name": "a"}])', 'cejail.Change("made", "/box")'))


if shutil.which("tsc"):

    @test("tsc accepts the declarations for Node, and knows their keys", limit=120)
    def _():
        tsc = ["tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022,dom"]
        checks(tsc, "use.mts", USE_NODE_TYPES, ('await client.run({ code: "1", memry: "64M" });', 'await client.run({ code: "1", tools: { a: { name: "a" } } });', 'await client.session({ context: "ipython" });', 'for await (const { event } of session.watch()) console.log(event === "made");'))


# Node is no package of tools/setup: a host without it has nothing to test.
if shutil.which("node"):

    @test("the library for Node has the same surface, over a command and over a service", limit=120)
    def _():
        with Folder() as folder, Service(config={"callers": {f"uid:{os.geteuid()}": {}}}) as s:
            script = folder.file("use.mjs", NODE % f"{CLIENTS}/node/cejail.mjs")
            done = subprocess.run([shutil.which("node"), script, CEJAIL, s.socket], capture_output=True, text=True, timeout=100 * SLOW, check=False, env=environment())
            equal((done.returncode, done.stderr), (0, ""), "the exit status")
            *said, last = json.loads(done.stdout)
            equal(last, [True, True], "clients of nothing")
            for part in (said[: len(said) // 2], said[len(said) // 2 :]):
                equal(part[0], ["exited", 2, False, "éA", [1], [255], []], "run()")
                equal(part[1], [["start", "stdout", "result"], 300001], "stream()")
                equal(part[2:5], [[True, "string", True]] * 3, "errors")
                equal(part[5], [1, "TimeoutError", True], "cancelling")
                equal(part[6], ["0\n", "1\n", "2\n"], "runs at once")


def readme(language):
    """The programs of the clients' README, as their callers have them."""
    with open(f"{CLIENTS}/README.md", encoding="utf-8") as file:
        return re.findall(rf"```{language}\n(.*?)```", file.read(), re.S)


def run_readme(words, folder, service, name, edit, **more):
    """With cejail in PATH, whose sessions are at the test's service."""
    program = folder.file(f"bin-{name}/cejail", f"#!/bin/sh\ncase $1 in session) echo {service.socket} ;; *) exec {CEJAIL} \"$@\" ;; esac\n", 0o755)
    said = []
    for i, text in enumerate(readme(name)):
        script = folder.file(f"{name}/{i}.{'py' if name == 'python' else 'mjs'}", edit(text))
        done = subprocess.run([*words, script], capture_output=True, text=True, timeout=60 * SLOW, check=False,
                              env=environment(PATH=f"{os.path.dirname(program)}:/usr/bin:/bin", **more))  # fmt: skip
        equal((done.returncode, done.stderr), (0, ""), f"the exit status of program {i}")
        said.append(done.stdout.splitlines())
    return said


README_SAYS = [["exited 0 text", "now"], ["['milk', 'mail'] ['tea'] [('search', 2, 0)]"], ["6", "timeout", "1"], ["42"]]


def has_watched(said):
    true(re.fullmatch("(create|write) /box/now", " ".join(said)), f"the watch: {said}")


@test("the Python programs of the clients' README run, and print what they should")
def _():
    with Folder() as f, Service() as s:
        said = run_readme([PYTHON], f, s, "python", str, PYTHONPATH=f"{CLIENTS}/python", PYTHONDONTWRITEBYTECODE="1")
    has_watched(said.pop())
    equal(said.pop(), README_SAYS[3], "the session with tools")
    equal(said.pop()[:3], README_SAYS[2], "the session")
    equal(said, README_SAYS[:2], "the runs")


if shutil.which("node"):

    @test("the Node programs of the clients' README run, and print what they should")
    def _():
        with Folder() as f, Service() as s:
            said = run_readme([shutil.which("node")], f, s, "js", lambda text: text.replace('from "cejail"', f'from "{CLIENTS}/node/cejail.mjs"'))
        has_watched(said.pop())
        equal(said.pop(1), ["['milk', 'mail'] [ 'search 1 0' ]"], "the tools")
        equal(said, [README_SAYS[0], *README_SAYS[2:]], "what they print")


NODE_SESSIONS = """
import { Client, CejailError } from "%s";
const [socket, url, token, program] = process.argv.slice(2);
const said = [];
for (const client of [new Client({ socket }), new Client({ url, token }), new Client({ program })]) {
  const session = await client.session({ profile: "python", network: "none", lease: "10m" });
  await session.put("d é/n", new Uint8Array([0, 255]));
  await session.put("run", "#!/bin/sh\\necho ran $A\\n", { executable: true });
  const r = await session.exec({ code: "import sys; print(open('d é/n', 'rb').read()); sys.exit(3)" });
  const c = await session.exec({ command: ["./run"], env: { A: "B" } });
  said.push([r.stdout, r.exitCode, r.raw.session === session.id, c.stdout, [...await session.get("d é/n")]]);
  const types = [];
  for await (const event of session.stream({ code: "import os; os.write(1, b'a')" })) types.push(event.type);
  for await (const event of session.stream({ code: "import time; print(1, flush=True); time.sleep(60)" })) if (event.type === "stdout") break;
  while ((await session.info()).execs > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  said.push([types, (await session.list("/box/d é")).map((entry) => [entry.path, entry.type, entry.bytes])]);
  const cat = await session.start({ code: "import sys; print(sys.stdin.read())", open_stdin: true });
  const early = await cat.poll();
  while ((await session.execs()).find((row) => row.id === cat.id).state !== "running") await new Promise((resolve) => setTimeout(resolve, 50));
  await cat.write("in");
  await cat.write(new Uint8Array([65]), { eof: true });
  const sleeping = await session.start({ command: ["sleep", "6000"] });
  await sleeping.cancel();
  const told = await session.start({ code: "open('ready', 'w'); import time; time.sleep(60)" });
  while (!(await session.list()).some((entry) => entry.path === "/box/ready")) await new Promise((resolve) => setTimeout(resolve, 50));
  await told.signal("TERM");
  said.push([early, (await cat.wait()).stdout, (await sleeping.wait()).status, (await told.wait()).signal]);
  const aborted = await session.exec({ code: "import time; time.sleep(60)", signal: AbortSignal.timeout(1000) }).catch((e) => e.name);
  if (!await session.mkdir("new/er") || await session.mkdir("new")) throw new Error("mkdir");
  await session.rename("run", "new/er/run");
  if (await session.exists("run") || (await session.stat("new/er/run")).mode !== "0755") throw new Error("rename");
  await session.mkdir("w");
  const seen = [];
  const touching = (async () => { while (seen.length === 0) await session.put("w/new", ""); })();
  for await (const { event, path } of session.watch("w")) {
    seen.push(event);
    if (!path.startsWith("/box/w")) throw new Error(path);
    if (seen.length > 1) continue;
    await touching;
    await session.remove("w");
  }
  if (!seen.includes("remove")) throw new Error(`watch: ${seen}`);
  const stopped = await session.watch("/box", { signal: AbortSignal.timeout(300) }).next().catch((e) => e.name);
  if (stopped !== "TimeoutError") throw new Error(`watch: ${stopped}`);
  if (await session.watch("w").next().catch((e) => e.code) !== "not_found") throw new Error("watch of nothing");
  await session.remove("d é");
  const codes = [];
  for (const work of [() => session.get("d é/n"), () => session.exec({ code: "1", memory: "1G" }), () => client.session({ profile: "no-such" }), () => client.attach("none")])
    codes.push(await work().catch((e) => e instanceof CejailError && e.code));
  const lease = await session.lease("20m");
  await session.end();
  await session.end();
  const late = await session.exec({ code: "1" }).catch((e) => e.code);
  said.push([aborted, codes, lease.lease_ms, late, (await session.info()).reason, (await client.sessions()).some((one) => one.id === session.id)]);
  const repl = await client.session({ profile: "python", context: "repl", network: "none" });
  await repl.exec({ code: "x = 1" });
  const cell = (await repl.exec({ code: "x + 1" })).cell;
  said.push([cell.value, cell.displays, cell.exception, (await repl.exec({ code: "1 / 0" })).cell.exception.type]);
  await repl.end();
}
const wrong = await new Client({ url, token: "wrong" }).session().catch((e) => e.code);
const none = await new Client({ program: "/no/such" }).session().catch((e) => e.message.includes("/no/such"));
said.push([wrong, none]);
console.log(JSON.stringify(said));
"""

if shutil.which("node"):

    @test("the library for Node has sessions: over a socket, over a url with a token, and where cejail says", limit=120)
    def _():
        with Folder() as folder:
            config = one_token_config(folder)
            with Service(config={**config, "callers": {**config.get("callers", {}), f"uid:{os.geteuid()}": {}}}) as s:
                script = folder.file("use.mjs", NODE_SESSIONS % f"{CLIENTS}/node/cejail.mjs")
                program = folder.file("program", f"#!/bin/sh\n[ \"$*\" = 'session socket' ] && echo {s.socket}\n", 0o755)
                words = [shutil.which("node"), script, s.socket, f"http://{config['tcp']}", TOKEN, program]
                done = subprocess.run(words, capture_output=True, text=True, timeout=100 * SLOW, check=False, env=environment())
        equal((done.returncode, done.stderr), (0, ""), "the exit status")
        *said, last = json.loads(done.stdout)
        equal(last, ["unauthorized", True], "clients of nothing")
        for part in (said[:5], said[5:10], said[10:]):
            equal(part, [
                ["b'\\x00\\xff'\n", 3, True, "ran B\n", [0, 255]],
                [["start", "stdout", "result"], [["/box/d é/n", "file", 2]]],
                [None, "inA\n", "cancelled", 15],
                ["TimeoutError", ["not_found", "bad_request", "bad_request", "not_found"], 1200000, "session_ended", "closed", True],
                ["2", [], None, "ZeroDivisionError"],
            ], "what it said")  # fmt: skip
