# SPDX-License-Identifier: Apache-2.0
"""The modules that a program imports to call its tools: profiles/tools.

Most programs run without a jail.  The test is their supervisor: it sends every line, and knows when.
"""

import ast
import functools
import json
import os
import shutil
import socket
import subprocess
import threading

from harness import *  # noqa: F403

TOOLS = [
    {
        "name": "search",
        "description": "Find it.\nIn all of it.",
        "inputSchema": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}, "a-b": {"type": "integer"}},
            "required": ["query"],
        },
    },
    {"name": "github.search_issues", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}},
]
NODE_BEGIN = 'const { call, describe, stub, tools, ToolError } = await import("./tools.mjs");\n'
HOSTILE = '"""\nimport os; os.system("x")\n\'\'\' */ } export const evil = 1; /* \\ \\N{DIGIT ONE} \x07 \u202e \u2028 {x} \\'


def echo(caller, call):
    caller.send({"id": call["id"], "result": call["arguments"]})


class Caller:
    """The other end of the calls: answers each by `answer(caller, call)`."""

    def __init__(self, answer=echo):
        self.near, self.far = socket.socketpair()
        self.answer, self.calls, self.bytes = answer, [], 0
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        with self.near.makefile("rb") as lines:
            for line in lines:
                self.bytes += len(line)
                self.calls.append(json.loads(line))
                self.answer(self, self.calls[-1])

    def send(self, value):
        try:
            self.near.sendall(json.dumps(value).encode() + b"\n")
        except OSError:  # the program has ended
            pass


@functools.cache
def module(name):
    """The text of a module as a program without tools has it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write("[]")
        file.flush()
        near, far = socket.socketpair()
        with near, far:
            return run("-p", "base", "--network", "none", "--tools", file.name, "--calls-fd", str(far.fileno()), "--", "/bin/cat", f"/box/{name}", pass_fds=[far.fileno()]).exits(0).out


def place(tools, names=None):
    """A directory like /box.  Without names, those of the tools are their names in code."""
    folder = tempfile.mkdtemp(prefix="cejail-tools-", dir="/var/tmp")
    for name in ("tools.py", "tools.mjs"):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(module(name))
    with open(f"{folder}/tools.json", "w") as file:
        file.write(tools if isinstance(tools, str) else json.dumps({"tools": tools, "names": names or [tool["name"] for tool in tools]}))
    return folder


def programmed(argv, tools, answer=echo, has_calls=True, names=None):
    """Runs a program beside the modules: what it said, and its Caller."""
    folder, caller = place(tools, names), Caller(answer)
    env = environment(PYTHONDONTWRITEBYTECODE="1")
    if has_calls:
        env["CEJAIL_CALLS_FD"] = str(caller.far.fileno())
    try:
        process = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[caller.far.fileno()]
        )  # fmt: skip
        caller.far.close()
        caller.thread.start()
        done = finish(process, 30, args=argv[:1])
        caller.thread.join(10 * SLOW)
        return done, caller
    finally:
        caller.near.close()
        shutil.rmtree(folder)


def py(code, tools=TOOLS, answer=echo, **more):
    done, caller = programmed([PYTHON, "-c", code], tools, answer, **more)
    return done.exits(0), caller


def node(code, tools=TOOLS, answer=echo, **more):
    program = shutil.which("node")
    if not program:
        raise Skip("this host has no Node")
    done, caller = programmed([program, "--input-type=module", "-e", NODE_BEGIN + code], tools, answer, **more)
    return done.exits(0), caller


def reported(pair):
    return json.loads(pair[0].out)


# --- names ------------------------------------------------------------------


def awkward():
    names = ["a", "a.b", "a-b.x", "a_b.x", "a/b.x", "a_b_2", "a_b.x-y", "a_b.x_y", "1a", "_", "__", "__all__", "__proto__", "x..y", "x.", "x.1", "x.class"]
    names += ["x.call", "x.then", "x.__init__", "x.__name__", "x.constructor", "call", "acall", "describe", "main", "stub", "tools", "ToolError", "call_"]
    names += ["then", "globalThis", "eval", "undefined", "print", "match", "type", "a.a", "b", "b_2", "b.c", "json", "os", "Module", "catalogue"]
    names += ["JSON", "Promise", "Map", "Set", "Object", "Array", "Error", "Buffer", "process", "URL", "Proxy", "Reflect", "String", "Number"]
    names += ["Any", "Literal", "Union", "TypedDict", "str", "dict", "int", "list", "staticmethod", "z.str", "z.Any", "z.staticmethod"]
    return [*names, *(name for name in ("NaN", "Infinity", "Symbol", "Function", "console", "fs", "connect") if name not in names)]


def awkward_tools():
    schema = {"type": "object", "properties": {"s": {"type": ["string", "null"]}, "class": {"type": "array", "items": {"type": "object", "properties": {"é": {"enum": ["x", 1]}}}}}}
    return [{"name": name, "inputSchema": schema} for name in awkward()]


def in_jail(tools):
    """The text of tools.mjs, what it exports, and the names in code: as cejail gives them."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(tools, file)
        file.flush()
        near, far = socket.socketpair()
        with near, far:
            read = '["tools.mjs", "tools.json"].map((name) => require("fs").readFileSync(`/box/${name}`, "utf8"))'
            code = f'import("/box/tools.mjs").then((m) => console.log(JSON.stringify([...{read}, Object.keys(m)])))'
            done = run("-p", "node", "--tools", file.name, "--calls-fd", str(far.fileno()), "-c", code, pass_fds=[far.fileno()]).exits(0)
    module, catalogue, keys = json.loads(done.out)
    return module, keys, json.loads(catalogue)["names"]


@test("both modules of the tools have the names that cejail gives, also for a list of awkward ones")
def _():
    tools = awkward_tools()
    module, keys, wanted = in_jail(tools)
    exported = [line.split()[2] for line in module.splitlines() if line.startswith("export const ") and "= tools." in line]
    equal(exported, list(dict.fromkeys(name.split(".")[0] for name in wanted)), "the exports of cejail")
    ours = "import tools, json; print(json.dumps([[n for n in tools.__all__ if n not in ('ToolError','acall','call','describe','main','stub')], tools.describe()]))"
    names, described = reported(py(ours, tools, names=wanted))
    equal(names, exported, "Python's names")
    found, seen = reported(node("console.log(JSON.stringify([Object.keys(tools), describe()]))", tools, names=wanted))
    equal(found, exported, "JavaScript's names")
    equal(sorted(keys), sorted([*exported, "call", "describe", "stub", "tools", "ToolError"]), "the exports of tools.mjs")
    for text in (described, seen):
        paths = [line.split()[0].removeprefix("tools.") for line in text.splitlines() if line.startswith("  ")]
        equal(sorted(paths), sorted(wanted), "the names in namespaces")
    equal(len(set(wanted)), len(tools), "the number of names")
    tried(len(tools))


@test("a tool with an awkward name is called by it in Python and in JavaScript")
def _():
    tools = awkward_tools()
    names = in_jail(tools)[2]
    code = "import tools\nfor name, value in [(n, getattr(tools, n)) for n in dir(tools) if n not in ('ToolError','acall','call','describe','main','stub','tools')]:\n  [f('x') for f in ([value] if callable(value) else [v for k, v in vars(value).items() if callable(v)])]"
    js = "for (const v of Object.values(tools)) for (const f of typeof v === 'function' ? [v] : Object.values(v)) await f({ s: 'x' });"
    for _, caller in (py(code, tools, names=names), node(js, tools, names=names)):
        equal(sorted(call["name"] for call in caller.calls), sorted(awkward()), "the names of the calls")


# --- text -------------------------------------------------------------------


@test("a description or a name in a schema does not become code in a stub")
def _():
    schema = {"type": "object", "properties": {HOSTILE: {"enum": [HOSTILE]}, "x": {"type": "object", "properties": {HOSTILE: {"const": HOSTILE}}}}, "required": [HOSTILE, 1]}
    tools = [{"name": name, "description": HOSTILE, "inputSchema": schema, "outputSchema": schema} for name in ("one", "a.two")]
    done, _ = programmed([PYTHON, "tools.py"], tools)
    tree = ast.parse(done.exits(0).out)
    lines = {ast.unparse(one) for one in ast.walk(tree) if isinstance(one, (ast.Import, ast.ImportFrom))}
    equal(len(lines), 5, f"the number of imports in {lines}")
    lacks(done.out, "\u202e", "the stub")
    types = reported(node("console.log(JSON.stringify([stub()]))", tools))[0]
    lacks(types.replace("*\\/ } export const evil", ""), "\nexport const evil", "the types")
    equal(types.count("*/"), types.count("/**") + types.count('*/ }'), "the ends of comments")


@test("the stubs are valid for mypy and tsc", limit=180)
def _():
    if not shutil.which("mypy") or not shutil.which("tsc"):
        raise Skip("this host has no mypy or no tsc")
    schema = {"type": "object", "properties": {HOSTILE: {"enum": [HOSTILE]}, "self": {"type": "boolean"}, "d": {"anyOf": [{"type": "number"}, {"type": "object", "properties": {"z z": {}}}]}}}
    tools = [*awkward_tools(), *TOOLS, {"name": "hostile", "description": HOSTILE, "inputSchema": schema, "outputSchema": schema}]
    folder = place(tools, in_jail(tools)[2])
    try:
        for argv, name in (([PYTHON, "tools.py"], "tools.pyi"), (["node", "tools.mjs"], "types.d.mts")):
            with open(f"{folder}/{name}", "w") as file:
                subprocess.run(argv, cwd=folder, stdout=file, check=True)
        with open(f"{folder}/use.py", "w") as file:
            file.write("import tools\nasync def f() -> None:\n    x: int = await tools.github.search_issues.aio(query='x')\n    tools.search(5)\n")
        done = finish(start_other("mypy", "--strict", "use.py", cwd=folder), 120)
        contains(done.out, 'use.py:4: error: Argument 1', "mypy's output")
        contains(done.out, "Found 1 error in 1 file", "mypy's output")
        finish(start_other("mypy", "tools.pyi", cwd=folder), 120).exits(0)
        finish(start_other("tsc", "--noEmit", "--strict", "--target", "es2022", "types.d.mts", cwd=folder), 120).exits(0)
    finally:
        shutil.rmtree(folder)


def start_other(*argv, **options):
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@test("a schema that is deep, grows or refers to itself ends as Any, and calls go on")
def _():
    deep = '{"type":"array","items":' * 10000 + "{}" + "}" * 10000
    listed = {"type": "string"}
    for _ in range(200):
        listed = {"type": ["array", "array", "object"] * 20, "items": listed, "anyOf": [listed]} if _ < 2 else {"type": ["array", "null"] * 50, "items": listed}
    refers = {"type": "object", "properties": {"a": {"$ref": "#"}, "b": listed}}
    code = "import tools\nprint(len(tools.stub()) < 9000, 'a: Any' in tools.stub(), 'b' in tools.describe('t'), tools.call('t', a=1))"
    text, _ = py(code, [{"name": "t", "inputSchema": refers}])
    equal(text.out, "True True True {'a': 1}\n", "Python's answer")
    code = "import tools\nprint(tools.call('t', a=1))\ntry: tools.stub(); tools.describe('t')\nexcept tools.ToolError as e: print('refused')"
    text, _ = py(code, f'{{"names":["t"],"tools":[{{"name":"t","inputSchema":{deep}}}]}}')
    contains(text.out, "{'a': 1}", "Python's answer to a deep one")
    for tools in ([{"name": "t", "inputSchema": refers}], f'{{"names":["t"],"tools":[{{"name":"t","inputSchema":{deep}}}]}}'):
        text, _ = node("console.log(stub().length < 9000, describe('t').length > 0, (await call('t', { a: 1 })).a)", tools)
        equal(text.out, "true true 1\n", "JavaScript's answer")


@test("describe() takes the name of a tool for the exact one before the name in code of another")
def _():
    tools = [{"name": "a-b", "description": "first"}, {"name": "a_b", "description": "second"}, {"name": "x.y-z", "description": "third"}]
    names, own = '["a_b", "a_b_2", "a-b", "x.y_z"]', ["a_b", "a_b_2", "x.y_z"]
    words = ["second", "second", "first", "third"]
    equal(reported(py(f"import tools, json\nprint(json.dumps([tools.describe(n).split()[-1] for n in {names}]))", tools, names=own)), words, "Python's texts")
    equal(reported(node(f"console.log(JSON.stringify({names}.map((n) => describe(n).trim().split(/\\s/).at(-1))))", tools, names=own)), words, "JavaScript's texts")


@test("an integer of 5000 digits in one schema does not hide the tools")
def _():
    text = '{"names":["one","big"],"tools":[{"name":"one"},{"name":"big","inputSchema":{"properties":{"a":{"type":"integer","maximum":%s}}}}]}' % ("9" * 5000)
    done, _ = py("import tools\nprint(tools.one(x=1), 'a: int' in tools.describe('big'), 'a: int' in tools.stub())", text)
    equal(done.out, "{'x': 1} True True\n", "what Python saw")
    equal(node("console.log((await tools.one({ x: 1 })).x, describe('big').includes('a?: number'))", text)[0].out, "1 true\n", "what JavaScript saw")


@test("describe() and stub() end soon and cut what is long, and the stub stays valid")
def _():
    props = {f"p{i}": {} for i in range(2000)}
    many = {"type": "object", "properties": {"a": {**props, "type": ["string", "null", *(f"t{i}" for i in range(60000))]}}}
    tools = [
        {"name": "kinds", "inputSchema": many, "description": "x" * 200000},
        {"name": "enum", "inputSchema": {"type": "object", "properties": {"a": {"enum": list(range(100000))}}}},
        *({"name": f"s.t{i}", "description": "y" * 60000} for i in range(90)),
        {"name": "last", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}, "description": "last"},
    ]
    code = """
import tools, ast, json
found, stub = [tools.describe(n) for n in ("kinds", "enum", "s.t0", "last")], tools.stub()
ast.parse(stub)
print(json.dumps([[len(text) < 300000, "(cut after 65536 characters)" in text] for text in found] + [len(stub) < 5 << 20, "def last(**arguments: Any) -> Any: ...  # cut" in stub, "def t1(" in stub]))
"""
    wanted = [[True, True], [True, True], [True, False], [True, False], True, True, True]
    equal(reported(py(code, tools)), wanted, "Python's texts")
    code = """
const found = ["kinds", "enum", "s.t0", "last"].map((n) => describe(n)), text = stub();
console.log(JSON.stringify([...found.map((one) => [one.length < 300000, one.includes("(cut after 65536 characters)")]),
    text.length < 5 << 20, text.includes("export function last(args?: { [name: string]: unknown }): Promise<any>; // cut"), text.includes("\tfunction t1(")]));
"""
    equal(reported(node(code, tools)), wanted, "JavaScript's texts")


@test("a tool's function in Python has its signature, its types, its text and its schema")
def _():
    code = "import tools, inspect, typing\nf = tools.search\nprint(inspect.signature(f), f.__name__, f.__doc__.split()[0], f.__annotations__['limit'], inspect.isroutine(f))\nprint(tools.describe('search')); print(tools.describe())"
    done, _ = py(code)
    contains(done.out, "(query: str, limit: int = Ellipsis, **arguments) -> Any search Find <class 'int'> True", "the signature")
    contains(done.out, '"a-b"', "the schema")
    contains(done.out, "  tools.search  Find it.\n", "the list")
    lacks(done.out.split("2 tools.")[1], "In all of it", "the list")


# --- calls ------------------------------------------------------------------


@test("a call passes arguments by place and by name, and its error is a ToolError")
def _():
    def answer(caller, call):
        if call["arguments"].get("query") == "bad":
            caller.send({"id": call["id"], "error": {"message": "no such issue"}})
        else:
            echo(caller, call)

    code = """
import tools, json, pickle
from tools import github, search
out = [search("x", 3), search(query="x", **{"a-b": 1}), github.search_issues("y"), tools.call("search", name="n")]
try: search("bad")
except tools.ToolError as e: out += [str(e), e.tool, pickle.loads(pickle.dumps(e)).tool]
for bad in (lambda: search("a", query="b"), lambda: search(1, 2, 3, 4), lambda: search(), lambda: search({1})):
    try: bad()
    except TypeError as e: out.append("search" in str(e))
print(json.dumps(out))
"""
    wanted = [{"query": "x", "limit": 3}, {"query": "x", "a-b": 1}, {"query": "y"}, {"name": "n"}, "no such issue", "search", "search", True, True, True, True]
    equal(reported(py(code, answer=answer)), wanted, "what Python saw")
    code = """
const out = [await tools.search({ query: "x", "a-b": 1 }), await tools.github.search_issues({}), await tools.search()];
for (const args of [{ query: "bad" }, { query: 1n }, [1]]) await tools.search(args).catch((e) => out.push(e.message.slice(0, 14), e.tool ?? e.constructor.name));
console.log(JSON.stringify(out));
"""
    wanted = [{"query": "x", "a-b": 1}, {}, {}, "no such issue", "search", "search: the ar", "TypeError", "search: the ar", "TypeError"]
    equal(reported(node(code, answer=answer)), wanted, "what JavaScript saw")


@test("a call that cejail would not read is refused before it is sent")
def _():
    code = """
import tools
deep = []
for _ in range(40): deep = [deep]
loop = []; loop.append(loop)
ok = 1
for _ in range(29): ok = [ok]
for bad in (deep, loop, float("nan"), "x" * (1 << 20), "\\0", "\\ud800", {"\\0": 1}, [0] * 140000):
    try: tools.call("search", x=bad); print("sent")
    except tools.ToolError as e: assert e.tool == "search" and "search" in str(e), e
tools.call("search", x=ok, y="\\\\u0000", z="x" * (1 << 19))
"""
    done, caller = py(code)
    equal((done.out, len(caller.calls)), ("", 1), "the calls of Python")
    code = """
let deep = [], loop = {}, ok = 1;
for (let i = 0; i < 40; i++) deep = [deep];
let deeper = []; for (let i = 0; i < 100000; i++) deeper = [deeper];
for (let i = 0; i < 29; i++) ok = [ok];
for (const x of [deep, deeper, NaN, "x".repeat(1 << 20), "\\0", "\\ud800", { "\\0": 1 }, Array(140000).fill(0)])
    await call("search", { x }).then(() => console.log("sent"), (e) => { if (!(e instanceof ToolError) || e.tool !== "search") throw e; });
loop.x = loop;
await call("search", loop).catch((e) => { if (!(e instanceof TypeError)) throw e; });
await call("search", { x: ok, y: "\\\\u0000", z: "x".repeat(1 << 19) });
"""
    done, caller = node(code)
    equal((done.out, len(caller.calls)), ("", 1), "the calls of JavaScript")


@test("calls of several threads, and under asyncio, get their own answers in any order")
def _():
    def answer(caller, call):
        held.append(call)
        if len(held) == 5:
            for one in reversed(held):
                echo(caller, one)
            held.clear()

    code = """
import threading, asyncio, tools
def work(i):
    for j in range(20): assert tools.search(f"{i} {j}") == {"query": f"{i} {j}"}; done.append(1)
done = []
threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
[t.start() for t in threads]; [t.join() for t in threads]
async def main():
    got = await asyncio.gather(*(tools.search.aio(str(i)) for i in range(100)), *(tools.acall("search", n=i) for i in range(100)))
    assert [g.get("query", g.get("n")) for g in got] == [*map(str, range(100)), *range(100)]
    late = asyncio.ensure_future(tools.search.aio("late")); await asyncio.sleep(0.1); late.cancel()
    try: await late
    except asyncio.CancelledError: print(len(done), "cancelled")
asyncio.run(main())
"""
    held = []
    equal(py(code, answer=answer)[0].out, "100 cancelled\n", "what Python saw")
    held = []
    code = "const got = await Promise.all(Array.from({ length: 1000 }, (_, i) => tools.search({ i }))); console.log(got.every((g, i) => g.i === i));"
    equal(node(code, answer=answer)[0].out, "true\n", "what JavaScript saw")


@test("an interrupted call's late answer goes to no other call")
def _():
    def answer(caller, call):
        held.append(call)
        if call["arguments"]["query"] != "first":
            for one in held:
                echo(caller, one)
            held.clear()

    held = []
    code = """
import tools, signal, threading, os
for i in range(5):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try: tools.search("first")
    except KeyboardInterrupt: print("interrupted")
    assert tools.search("second") == {"query": "second"}
"""
    equal(py(code, answer=answer)[0].out, "interrupted\n" * 5, "what Python saw")
    # while the connection is opened, too
    code = """
import tools, os, signal, time
inside = tools.call.__globals__
def slowly(sock, real=inside["Connection"]):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
    return real(sock)
inside["Connection"] = slowly
try: tools.search("first")
except KeyboardInterrupt: print("interrupted")
assert tools.search("second") == {"query": "second"}
"""
    equal(py(code)[0].out, "interrupted\n", "what Python saw of an interrupted beginning")


@test("a broken or ended connection fails every call that waits")
def _():
    def answer(caller, call):
        if call["arguments"].get("end"):
            caller.near.shutdown(socket.SHUT_RDWR)
        elif call["arguments"].get("null"):
            caller.send({"id": None, "error": {"message": "that was no call"}})
        elif not call["arguments"].get("hold"):
            echo(caller, call)

    code = """
import tools, threading, time
def hold():
    try: tools.call("search", hold=1)
    except tools.ToolError as e: print(e)
for last in ("null", "end"):
    thread = threading.Thread(target=hold); thread.start(); time.sleep(0.2)
    try: tools.call("search", **{last: 1})
    except tools.ToolError as e: print(e)
    thread.join()
    try: print(tools.call("search", x=1))
    except tools.ToolError as e: print(e)
"""
    lines = py(code, answer=answer)[0].out.splitlines()
    equal(lines[:3], ["that was no call", "that was no call", "{'x': 1}"], "what Python saw")
    true(all("the run is ending" in line or "takes no more" in line for line in lines[3:]) and len(lines) == 6, f"at the end: {lines}")
    code = """
for (const last of ["null", "end"]) {
    for (const { reason } of await Promise.allSettled([call("search", { hold: 1 }), call("search", { [last]: 1 })])) console.log(reason.message);
    await call("search", { x: 1 }).then(() => console.log("ok"), (e) => console.log(e.message));
}
"""
    lines = node(code, answer=answer)[0].out.splitlines()
    equal(lines[:3], ["that was no call", "that was no call", "ok"], "what JavaScript saw")
    true(all("no more calls" in line for line in lines[3:]) and len(lines) == 6, f"at the end: {lines}")


@test("big answers, answers in pieces and a full socket are no trouble")
def _():
    def answer(caller, call):
        line = json.dumps({"id": call["id"], "result": "é" * (1 << 20) + "x" * (9 << 20)}).encode() + b"\n"
        for at in range(0, 3000, 100):
            caller.near.sendall(line[at : at + 100])
        caller.near.sendall(line[3000:])

    code = "import tools, threading\ndef work():\n  assert len(tools.search('y' * 1000000)) == 10 << 20\nt = [threading.Thread(target=work) for _ in range(2)]\n[x.start() for x in t]; [x.join() for x in t]; work(); print(5)"
    equal(py(code, answer=answer)[0].out, "5\n", "what Python saw")
    code = "const got = await Promise.all([1, 2].map(() => tools.search({ query: 'y'.repeat(1000000) }))); console.log(got.every((g) => g.length === 10 << 20));"
    equal(node(code, answer=answer)[0].out, "true\n", "what JavaScript saw")


@test("a program without tools can import the modules, and a call says how to give it some")
def _():
    done, _ = py("import tools\ntry: tools.call('search')\nexcept tools.ToolError as e: print(e)", has_calls=False)
    contains(done.out, "cejail run --tools", "Python's error")
    done, _ = node("await call('search').catch((e) => console.log(e.message));", has_calls=False)
    contains(done.out, "cejail run --tools", "JavaScript's error")
    done, _ = py("import os; os.environ['CEJAIL_CALLS_FD'] = '0'\nimport tools\ntry: tools.call('search')\nexcept tools.ToolError as e: print(e)")
    contains(done.out, "descriptor 0 is not the socket", "Python's error")


@test("a fork, and a worker of Node, may not call")
def _():
    code = "import tools, os\ntools.search('x')\nif os.fork() == 0:\n  try: tools.search('y')\n  except tools.ToolError as e: print('fork' in str(e), flush=True)\n  os._exit(0)\nos.wait(); print(tools.search('z'))"
    done, caller = py(code)
    equal((done.out, len(caller.calls)), ("True\n{'query': 'z'}\n", 2), "what was seen")
    code = "import { Worker } from 'node:worker_threads'; new Worker('import(\"./tools.mjs\").then(({ call }) => call(\"search\")).catch((e) => console.log(e.message))', { eval: true });"
    contains(node(code)[0].out, "this thread is a worker", "the worker's error")


@test("tools.json is read again when it has changed")
def _():
    code = "import tools, json\nprint(hasattr(tools, 'newer'))\njson.dump({'tools': [{'name': 'newer'}], 'names': ['newer']}, open('tools.json', 'w'))\nprint(tools.newer(x=1), hasattr(tools, 'search'))"
    equal(py(code)[0].out, "False\n{'x': 1} False\n", "what Python saw")
    code = "import fs from 'node:fs'; console.log('newer' in tools); fs.writeFileSync('tools.json', '{\"tools\":[{\"name\":\"newer\"}],\"names\":[\"newer\"]}'); console.log((await tools.newer({ x: 1 })).x, 'search' in tools);"
    equal(node(code)[0].out, "false\n1 false\n", "what JavaScript saw")


@test("the socket keeps Node alive only while a call waits, and process.exit() ends at once")
def _():
    equal(node("console.log((await tools.search({ x: 1 })).x);")[0].out, "1\n", "the output")
    done, caller = node("tools.search({ x: 1 }); await new Promise((r) => setTimeout(r, 50)); process.exit(0);", answer=lambda *_: None)
    equal(len(caller.calls), 1, "the number of calls")
    slow = lambda caller, call: (time.sleep(0.3), echo(caller, call))  # noqa: E731
    equal(node("tools.search({ x: 1 }).then((r) => console.log(r.x));", answer=slow)[0].out, "1\n", "the output")


# --- in a jail --------------------------------------------------------------


def jailed(profile, code):
    folder, caller = place(TOOLS), Caller()
    try:
        caller.thread.start()
        with caller.far as far:
            return run("-p", profile, "--tools", f"{folder}/tools.json", "--calls-fd", str(far.fileno()), "-c", code, pass_fds=[far.fileno()]).exits(0)
    finally:
        caller.thread.join(10 * SLOW)
        caller.near.close()
        shutil.rmtree(folder)


@test("programs in a jail call their tools with the modules")
def _():
    code = "import asyncio, tools\nfrom tools import github, search\nprint(search('x'), asyncio.run(github.search_issues.aio('y')))\ntry: tools.call('other')\nexcept tools.ToolError as e: print(e)"
    done = jailed("python", code)
    contains(done.out, "{'query': 'x'} {'query': 'y'}\nthis run has no tool 'other'", "Python's output")
    code = "import('/box/tools.mjs').then(async ({ github, search }) => console.log((await search({ x: 1 })).x, (await github.search_issues({ y: 2 })).y, (await Promise.all(Array.from({ length: 30 }, () => search()))).length))"
    equal(jailed("node", code).out, "1 2 30\n", "JavaScript's output")
