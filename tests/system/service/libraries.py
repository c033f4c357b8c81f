# SPDX-License-Identifier: Apache-2.0
"""The client libraries of tools/clients, as they are installed: over `cejail run` and over a service."""

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time

from harness import *  # noqa: F403
from service import Service

CLIENTS = os.path.join(os.path.dirname(os.path.dirname(CEJAIL)), "share/cejail/clients")


def load():
    spec = importlib.util.spec_from_file_location("cejail_client", f"{CLIENTS}/python/cejail.py")
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
    code = "import sys, time\nprint('a', flush=True)\ntime.sleep(1)\nsys.stderr.write('b')"
    with Both() as both:
        for client in both:
            began = time.monotonic()
            seen = [(event.type, event.text, time.monotonic() - began) for event in client.stream(code, network="none") if event.type != "result"]
            equal([one[:2] for one in seen], [("start", ""), ("stdout", "a\n"), ("stderr", "b")], "the events")
            true(seen[2][2] - seen[1][2] > 0.7, f"the first event came with the second: {seen}")
            *_, last = client.stream("print(7)", network="none")
            equal((last.type, last.result.stdout), ("result", "7\n"), "the last event")


@test("closing the iterator of stream() cancels the run")
def _():
    with Both() as both:
        for client in both:
            events = client.stream("import time\nprint(1, flush=True)\ntime.sleep(60)", network="none", timeout="25s")
            while next(events).type != "stdout":
                pass
            began = time.monotonic()
            events.close()
            true(time.monotonic() - began < 10 * SLOW, "closing took long")
            wait_until(lambda: "sleep(60)" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout, "the end of the program")


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
            async for _ in client.stream("import time; time.sleep(60)", network="none", timeout="25s"):
                pass

        for work in (lambda: client.run("import time; time.sleep(60)", network="none", timeout="25s"), stream):
            began = time.monotonic()
            try:
                await asyncio.wait_for(work(), 1)
                raise Failure("it was not cancelled")
            except asyncio.TimeoutError:
                pass
            true(time.monotonic() - began < 10 * SLOW, "cancelling took long")

    with Both(lib.AsyncClient) as both:
        for client in both:
            asyncio.run(use(client))
            time.sleep(0.5 * SLOW)  # the threads of cancelled runs end with them


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
