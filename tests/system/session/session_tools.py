# SPDX-License-Identifier: Apache-2.0
"""Tools of the programs in a session, as callers have them: the client libraries, and `cejail session exec`."""

import asyncio
import json
import os
import shutil
import subprocess
import threading

from harness import *  # noqa: F403
from libraries import CLIENTS, lib
from service import Service
from session_cli import Client
from tool_calls import INSIDE, Caller, echo, silent, start_calling

CALLS = "import json, tools\ndef say(name, **given):\n    try: print(json.dumps(tools.call(name, **given)))\n    except tools.ToolError as e: print(json.dumps(f'ERROR {e}'))\n"


def said(result):
    equal((result.status, result.exit_code, result.stderr), ("exited", 0, ""), "how the program ended")
    return [json.loads(line) for line in result.stdout.splitlines()]


def counts(result):
    return [(row.name, row.count, row.failed, row.refused) for row in result.calls]


def start_session(client, **more):
    return client.session("python", **{"context": "repl", "network": "none", "timeout": scaled(60), **more})


@test("a cell, a command, a script and a stream call functions of the exec, or else of the session")
def _():
    async def later(text: str) -> str:
        await asyncio.sleep(0.01)
        return text

    def fails():
        raise LookupError("there is\nnothing")

    tools = {"add": lambda a, b: a + b, "later": later, "fails": fails}
    own = {"other": lambda: "own"}
    code = CALLS + "say('add', a=1, b=2); say('later', text='é'); say('fails'); say('add', a=1); say('other')"
    with Service() as s, start_session(lib.Client(s.socket), tools=tools) as one, start_session(lib.Client(s.socket), context="none") as plain:
        for work, more in ((one.exec, {"code": code}), (one.exec, {"command": ["python3", "-c", code]}), (plain.exec, {"code": code, "tools": tools})):
            result = work(**more)
            first, text, raised, missing, unknown = said(result)
            equal((first, text, raised), (3, "é", "ERROR LookupError: there is nothing"), "the answers")
            contains(missing, "ERROR TypeError: ", "the error of a missing argument")
            contains(unknown, "no tool 'other'", "the error of a tool that is not on the list")
            equal(counts(result), [("add", 2, 1, 0), ("later", 1, 0, 0), ("fails", 1, 1, 0), ("other", 0, 0, 1)], "the counts")
            check_schema(result.raw, "result.json")
            tried()
        equal(one.exec("from tools import add\nadd(a=20, b=1)").cell.value, "21", "the value of a cell that imports the function")
        found, unknown = said(one.exec(CALLS + "say('other'); say('add', a=1, b=1)", tools=own))
        equal(found, "own", "an exec's own tool")
        contains(unknown, "no tool 'add'", "the session's tool in an exec with its own")
        for none in ({}, []):
            contains(said(one.exec(CALLS + "say('add', a=1, b=1)", tools=none))[0], "no tool", "the session's tool in an exec without")
        events = list(one.stream(CALLS + "say('add', a=1, b=2); say('fails')"))
        equal([event.data["outcome"] for event in events if event.type == "answer"], ["answered", "failed"], "the events of a stream")
        again = lib.Client(s.socket).attach(one.id, own)
        equal(said(again.exec(CALLS + "say('other')")), ["own"], "a tool of attach()")


@test("a caller that reads events and answers no calls turns the tools of a session's request off")
def _():
    ask = {"command": ["/bin/sh", "-c", "echo ${CEJAIL_CALLS_FD-none}"]}
    with Service() as s:
        made = s.call("POST", "/v1/sessions", {"profile": "base", "network": "none", "tools": [{"name": "echo"}]}).has(201).json
        session = lib.Client(s.socket).attach(made["id"])
        for given in ({}, {"tools": {}}):
            *_, last = session.stream(**ask, **given)
            equal(last.result.stdout, "none\n", "a stream of the library for Python")
        equal(cejail("session", "exec", f"--remote={s.socket}", made["id"], "--", *ask["command"]).exits(0).out, "none\n", "cejail session exec")
        if shutil.which("node", path="/usr/bin:/bin"):
            code = f"import {{ Client }} from '{CLIENTS}/node/cejail.mjs'; const one = await new Client({{ socket: process.argv[1] }}).attach(process.argv[2]);"
            code += "for await (const { result } of one.stream({ command: JSON.parse(process.argv[3]) })) if (result) process.stdout.write(result.stdout);"
            words = ["node", "--input-type=module", "-e", code, s.socket, made["id"], json.dumps(ask["command"])]
            equal(subprocess.run(words, capture_output=True, text=True, check=False).stdout, "none\n", "a stream of the library for Node")


@test("tools that a session cannot have are refused before it is made, and start() refuses its own")
def _():
    session = lib.Session(lib._Service("/no/such.sock", None, None), "x", {"one": lambda: 1})
    for work in (lambda: lib.Client("/no/such.sock").session(tools={"a": 1}), lambda: session.exec("1", tools={"a": 1}), lambda: session.stream("1", tools={"a": 1})):
        try:
            work()
            raise Failure("there was no TypeError")
        except TypeError as problem:
            contains(str(problem), "the tool 'a' is int; give a function", "the message")
            tried()
    try:
        session.start("1", tools={"one": lambda: 1})
        raise Failure("there was no Error")
    except lib.Error as problem:
        equal(problem.code, "not_supported", "the error's code")
        contains(str(problem), "exec()", "the remedy")
    with Service() as s, start_session(lib.Client(s.socket), tools={"one": lambda: 1}) as one:
        equal(said(one.exec(CALLS + "say('one')")), [1], "a program of exec()")
        contains(said(one.start("say('one')").wait())[0], "no tool 'one'", "a program of start()")


@test("AsyncClient answers execs of two sessions at once in its own loop, and a cancelled task ends its call")
def _():
    async def main(path):
        seen, began, ended = [], asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def tools(name):
            async def who(n):
                await asyncio.sleep(0.01)
                seen.append((name, n, asyncio.get_running_loop() is loop))
                return f"{name}{n}"

            return {"who": who, "forever": forever}

        async def forever():
            began.set()
            try:
                await asyncio.sleep(600)
            finally:
                ended.set()

        client = lib.AsyncClient(path)
        async with start_session(client, context="none", tools=tools("a")) as one, start_session(client, context="none", tools=tools("b")) as other:
            code = CALLS + "import sys\nfor i in range(5): say('who', n=i)"
            results = await asyncio.gather(one.exec(code), other.exec(code), one.exec(code, tools=tools("c")))
            equal([said(result) for result in results], [[f"{name}{i}" for i in range(5)] for name in "abc"], "the answers")
            equal(sorted(seen), [(name, i, True) for name in "abc" for i in range(5)], "the calls of the functions")
            *_, last = [event async for event in other.stream(code)]
            equal(said(last.result)[0], "b0", "the answers of a stream")
            task = asyncio.create_task(one.exec(CALLS + "say('forever')"))
            await began.wait()
            task.cancel()
            equal(isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError), True, "the cancelled exec")
            await asyncio.wait_for(ended.wait(), 30 * SLOW)
            equal(said(await one.exec(CALLS + "say('who', n=7)")), ["a7"], "the next exec")

    with Service() as s:
        asyncio.run(main(s.socket))


# --- hostile programs -----------------------------------------------------------------------

# On the bare descriptor: one id twice while it is open, ids of other callers' calls, answers in place of calls, names with quotes.
HOSTILE = INSIDE + """
def say(value):
    print(json.dumps(value), flush=True)
def refuse(value):
    say(["refused", "error" in ask(value)])
name = %r
say(["own", call_back("who", n=name)])
refuse({"id": 1, "name": "who_of_" + ("b" if name == "a" else "a"), "arguments": {"n": name}})
refuse({"id": 1, "name": "who\\", \\"call\\": 1, \\"x\\": \\"", "arguments": {"n": name}})
send({"id": 5, "name": "slow", "arguments": {}})
refuse({"id": 5, "name": "who", "arguments": {"n": "twice"}})
say(["slow", "error" in read()])
say(["raises", call_back("raises")])
send(b'{"id": 1, "result": "forged"}\\n')
say(["answer", "error" in read()])
say(["own", call_back("who", n=name)])
"""
HOSTILE = HOSTILE.replace("def say", "def call_back(name, **given):\n    answer = ask({'id': 'x', 'name': name, 'arguments': given})\n    return answer.get('result', answer.get('error', {}).get('message'))\ndef say", 1)
LIMITS = {"timeout": "1s"}
ENDED = [["own", "{0}:{0}"], ["refused", True], ["refused", True], ["refused", True], ["slow", True], ["raises", "LookupError: no {0}"], ["answer", True], ["own", "{0}:{0}"]]


def check_hostile(name, lines):
    rows = [json.loads(line) for line in lines]
    equal(rows, [[kind, what.format(name) if isinstance(what, str) else what] for kind, what in ENDED], f"what the program of '{name}' got")


@test("hostile programs of two sessions at once reach their own functions only, past slow ones and ones that raise")
def _():
    seen, release = [], threading.Event()

    def tools(name):
        def who(n):
            seen.append((name, n))
            return f"{name}:{n}"

        def slow():
            release.wait(60 * SLOW)
            return "late"

        def raises():
            raise LookupError(f"no {name}")

        return {"who": who, "slow": slow, "raises": raises, f"who_of_{name}": who}

    def hold(session, name, results):
        results[name] = session.exec(command=["python3", "-c", HOSTILE % name], calls=LIMITS)

    with Service(config={"concurrency": 8}) as s:
        client = lib.Client(s.socket)
        with start_session(client, tools=tools("a")) as one, start_session(client, tools=tools("b")) as other:
            results = {}
            threads = [threading.Thread(target=hold, args=(session, name, results)) for session, name in ((one, "a"), (other, "b"))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60 * SLOW)
            release.set()
            for name in "ab":
                equal((results[name].exit_code, results[name].stderr), (0, ""), "how the program ended")
                check_hostile(name, results[name].stdout.splitlines())
            equal(sorted(seen), [("a", "a")] * 2 + [("b", "b")] * 2, "the calls of the functions")
            equal(said(one.exec(CALLS + "say('who', n=1)")), ["a:1"], "the next cell")


NODE = """
import { Client } from "%s";
const [socket, timeout, calls, hostile, limits] = process.argv.slice(2);
const client = new Client({ socket });
const said = (result) => { if (result.exitCode !== 0) throw new Error(result.stderr + result.status); return result.stdout.split("\\n").filter(Boolean); };
const seen = [], aborted = [];
const tools = (name) => {
  const who = ({ n }) => { seen.push([name, n]); return `${name}:${n}`; };
  const slow = (_, signal) => new Promise((_, reject) => signal.addEventListener("abort", () => { aborted.push(signal.reason.code); reject(signal.reason); }));
  const raises = () => { const problem = new Error(`no ${name}`); problem.name = "LookupError"; throw problem; };
  return { who, slow, raises, [`who_of_${name}`]: who };
};
const settings = { profile: "python", context: "repl", network: "none", timeout };
const one = await client.session({ ...settings, tools: tools("a") }), other = await client.session({ ...settings, tools: tools("b") });
const out = [];
out.push((await one.exec({ code: calls + "say('who', n=1)\\ntools.call('who', n=2)" })).cell.value);
out.push(said(await one.exec({ code: calls + "say('mine'); say('who', n=1)", tools: { mine: async () => [1] } })));
out.push(said(await one.exec({ code: calls + "say('who', n=1)", tools: {} })));
out.push(said(await (await client.attach(one.id, { tools: { mine: () => 2 } })).exec({ code: calls + "say('mine')" })));
const types = [];
for await (const event of one.stream({ code: calls + "say('who', n=3)" })) types.push(event.result ? said(event.result) : event.type);
out.push(types.filter((type) => type !== "stdout"));
out.push(await one.start({ code: "1", tools: tools("a") }).catch((e) => `${e.code}: ${e.message}`));
out.push(await client.session({ tools: { a: 1 } }).catch((e) => `${e.name}: ${e.message}`));
seen.length = 0;
const attack = (session, name) => session.exec({ command: ["python3", "-c", hostile.replace("NAME", name)], calls: JSON.parse(limits) });
out.push((await Promise.all([attack(one, "a"), attack(other, "b")])).map(said), seen.sort(), aborted);
await one.end();
await other.end();
console.log(JSON.stringify(out));
"""

if shutil.which("node"):

    @test("sessions of the library for Node call functions, and hostile programs of two at once their own only")
    def _():
        with Folder() as f, Service(config={"concurrency": 8}) as s:
            words = [shutil.which("node"), f.file("use.mjs", NODE % f"{CLIENTS}/node/cejail.mjs"), s.socket, scaled(60), CALLS, HOSTILE % "NAME", json.dumps(LIMITS)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=50 * SLOW, check=False, env=environment())
        equal((done.returncode, done.stderr), (0, ""), "the exit status")
        value, own, none, attached, types, started, made, (first, second), seen, aborted = json.loads(done.stdout)
        equal((value, own[0], attached), ("'a:2'", "[1]", ["2"]), "the answers")
        for text in (own[1], none[0]):
            contains(text, "no tool 'who'", "the session's tool in an exec with its own, or with none")
        equal(types, ["start", "call", "answer", ['"a:3"']], "the events of a stream")
        contains(started, "not_supported: ", "the error of start()")
        contains(made, "TypeError: the tool 'a' has no function", "the error of session()")
        check_hostile("a", first)
        check_hostile("b", second)
        equal((seen, aborted), ([["a", "a"]] * 2 + [["b", "b"]] * 2, ["timeout"] * 2), "the calls of the functions")


# --- cejail session exec ----------------------------------------------------------------------


def exec_calling(c, caller, *words, **more):
    done = start_calling(caller, *words, verb=c.words("exec"), **more)
    return c.result(done)


@test("exec --tools sends the calls of a cell, a script and a command to the caller, and its answers back")
def _():
    code = "import tools\nprint(tools.call('echo', a=[1]))"
    with Client("--context", "repl", profile="python") as c:
        for words in (("-c", code), ("--", "python3", "-c", code)):
            caller = Caller(echo)
            value = exec_calling(c, caller, c.id, *words)
            equal((value["stdout"]["text"], value["calls"][0]["count"]), ("{'a': [1]}\n", 1), "the result")
            equal([call["name"] for call in caller.calls], ["echo"], "the calls")
            tried()
        value = exec_calling(c, Caller(echo), "--calls-max", "1", c.id, "-c", code + "\ntry: tools.call('echo')\nexcept tools.ToolError as e: print(e)")
        contains(value["stdout"]["text"], "made its 1 calls", "the second call")
        value = exec_calling(c, Caller(silent), "--calls-timeout", "1s", c.id, "-c", "try: tools.call('echo')\nexcept tools.ToolError as e: print(e)")
        contains(value["stdout"]["text"], "1s", "the call that nobody answers")
        contains(c.exec(c.id, "-c", "try: tools.call('echo')\nexcept tools.ToolError as e: print(e)").exits(0).out, "no tool 'echo'", "a cell without tools")


@test("exec --tools -i forwards the input and the calls, and prints what the program writes")
def _():
    code = INSIDE + "for line in sys.stdin:\n    print(call(1, line=line.strip()) or read()['result'], flush=True)"
    with Client(profile="python") as c, Folder() as f:
        caller = Caller(echo)
        fd = caller.theirs.fileno()
        process = c.start("exec", "-i", "--tools", f.file("t", '[{"name": "echo"}]'), "--calls-fd", str(fd), c.id, "-c", code, stdin=subprocess.PIPE, pass_fds=[fd])
        caller.theirs.close()
        caller.thread.start()
        for word in ("one", "two"):
            process.stdin.write(word.encode() + b"\n")
            process.stdin.flush()
            equal(process.stdout.readline().decode(), f"{{'line': '{word}'}}\n", "the line")
        finish(process).exits(0).says("")


@test("hostile programs of two sessions at once reach their own caller of exec --tools only")
def _():
    def answer(name):
        def give(caller, call):
            if call.get("name") == "raises":
                caller.send({"id": call["id"], "error": {"message": f"LookupError: no {name}"}})
            elif "name" in call and call["name"] != "slow":
                caller.give(call, f"{name}:{call['arguments']['n']}")

        return give

    def attack(c, caller, id, name, results):
        tools = [{"name": tool} for tool in ("who", "slow", "raises", f"who_of_{name}")]
        results[name] = start_calling(caller, "--calls-timeout", "1s", "--id", f"exec-{name}", id, "--", "python3", "-c", HOSTILE % name, tools=tools, verb=c.words("exec"), limit=60)

    with Client(profile="python") as c:
        other = c.session("create", "-p", "python", "--network", "none").exits(0).out.strip()
        callers, results = {name: Caller(answer(name)) for name in "ab"}, {}
        threads = [threading.Thread(target=attack, args=(c, callers[name], id, name, results)) for name, id in (("a", c.id), ("b", other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60 * SLOW)
        for name in "ab":
            value = parse_result(results[name].exits(0).out)
            check_hostile(name, value["stdout"]["text"].splitlines())
            calls = [(call.get("name"), call.get("arguments", {}).get("n")) for call in callers[name].calls if "name" in call]
            equal(calls, [("who", name), ("slow", None), ("raises", None), ("who", name)], f"the calls of '{name}'")


@test("a caller of exec --tools that is gone fails the calls, and the session goes on")
def _():
    with Client("--context", "repl", profile="python") as c:
        caller = Caller(lambda caller, call: caller.close())
        value = exec_calling(c, caller, c.id, "-c", "import tools\ntry: tools.call('echo')\nexcept tools.ToolError as e: print(e)")
        contains(value["stdout"]["text"], "the caller answers no more calls", "the error")
        value = exec_calling(c, Caller(echo), c.id, "-c", "tools.call('echo', n=1)")
        equal(value["cell"]["value"], "{'n': 1}", "the next cell")


@test("where calls of exec could not reach the caller, its options are refused in one line")
def _():
    with Client(profile="python") as c, Folder() as f:
        caller = Caller(echo)
        with caller.sock, caller.theirs:
            fd = str(caller.theirs.fileno())
            tools = ("--tools", f.file("t", '[{"name": "echo"}]'))
            rows = (
                ("exec", (*tools, c.id, "-c", "1"), "--calls-fd N"), ("exec", ("--calls-fd", fd, c.id, "-c", "1"), "--tools FILE"),
                ("exec", ("--detach", *tools, "--calls-fd", fd, c.id, "-c", "1"), "exclude each other"), ("exec", ("--tools-from", "x", c.id, "-c", "1"), "give --tools FILE"),
                ("create", ("-p", "python", *tools), "session create --help"), ("wait", (*tools, c.id, "x"), "session exec"),
                ("exec", ("--tools", f / "none", "--calls-fd", fd, c.id, "-c", "1"), "No such file"), ("exec", (*tools, "--calls-fd", "99", c.id, "-c", "1"), "Bad file descriptor"),
            )  # fmt: skip
            for verb, words, part in rows:
                refused(c.session(verb, *words, pass_fds=[int(fd)]), part)
                tried()
        equal(os.listdir(f.path), ["t"], "the folder")
