# SPDX-License-Identifier: Apache-2.0
"""`cejail mcp --tools-from`: execs and cells of sessions call the tools of MCP servers as runs do."""

import contextlib
import json
import os
import sys
import tempfile

from harness import *  # noqa: F403
from mcp_client import Server, facts_of
from mcp_upstream import BAD, fake, servers_file
from service import Service

KINDS = ("stdio", "remote")


@contextlib.contextmanager
def client_of(kind, *options, config=None, **servers):
    """A client whose programs have the tools of these servers, and with "remote" the service behind it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        words = ["-p", "python", "--tools-from", servers_file(folder, **servers), *options]
        if kind == "remote":
            words.append(f"--remote={stack.enter_context(Service(config=config)).socket}")
        yield stack.enter_context(Server(*words))


def create(client, context="repl", profile="python"):
    return facts_of(client.call("session_create", profile=profile, context=context, network="none"))["session"]


def said(client, session, code, **more):
    """What code of a session prints."""
    facts = facts_of(client.call("session_exec", session=session, code=code, **more))
    equal((facts["status"], facts["exit_code"], facts["session"]), ("exited", 0, session), f"the end ({facts})")
    return facts["stdout"].splitlines()


TRY = "def attempt(name, **more):\n    try: return tools.call(name, **more)\n    except tools.ToolError as e: return f'error: {e}'\n"

for kind in KINDS:

    @test(f"mcp session tools ({kind}): cells, scripts, commands and runs that name a session call the tools of two servers", limit=120)
    def _(kind=kind):
        with client_of(kind, one=fake("good", allow=["delete*"]), two=fake("modern")) as client:
            first = "import tools\nfrom tools import one\ntotal = one.echo(x=1)['x'] + tools.call('two.echo', x=2)['x']"
            cells, plain = create(client), create(client, "none")
            equal(said(client, cells, first), [], "the first cell")
            code = TRY + "print(total, one.delete_it(), attempt('two.fail'))\nprint(attempt('two.delete_it'))"
            out = said(client, cells, code)
            equal(out[0], "3 done: delete it it did not work".replace("it it did", "it error: it did"), "the second cell")
            contains(out[1], "this run has no tool 'two.delete_it'", "a tool that is not offered")
            equal(said(client, plain, first + "\nprint(total)"), ["3"], "a script")
            done = client.call("session_exec", session=cells, command=["python3", "-c", first + "\nprint(total)"])
            equal(facts_of(done)["stdout"], "3\n", "a command")
            for session in cells, plain:
                equal(facts_of(client.python(first + "\nprint(total)", session=session))["stdout"], "3\n", "a run in a session")
            equal(facts_of(client.python(first + "\nprint(total)"))["stdout"], "3\n", "a run")
            text = {tool["name"]: tool["description"] for tool in client.ask("tools/list")["result"]["tools"]}
            contains(text["session_exec"], "may call the tools that the description of 'run_python' names", "the description")
            lacks(text["session_exec"] + text["session_create"], "one: echo", "the description")
            pids = client.below()
        client.await_end(pids)  # the host reaps the processes of a session when its jail has ended

    @test(f"mcp session tools ({kind}): the limits of calls are those of a run", limit=120)
    def _(kind=kind):
        code = "import tools\n" + TRY + "for i in range(3): print(attempt('one.echo', i=i))"
        with client_of(kind, "--calls-max", "2", one=fake("good")) as client:
            outs = [facts_of(client.python(code))["stdout"].splitlines()]
            for session in create(client), create(client, "none"):
                outs += [said(client, session, code), said(client, session, code)]
            for out in outs:
                equal(out[:2], ["{'i': 0}", "{'i': 1}"], "the first calls")
                contains(out[2], "error: the run has made its 2 calls", "the third call")

    @test(f"mcp session tools ({kind}): a server that dies or is slow fails a call with one sentence, and the session goes on", limit=180)
    def _(kind=kind):
        with client_of(kind, dies=fake("dies"), slow=fake("silent", timeout="4s"), good=fake("good")) as client:
            cells = create(client)
            pid = said(client, cells, "import tools\n" + TRY + "print(attempt('dies.pid'))")
            out = said(client, cells, "print(attempt('dies.bad'))\nprint(attempt('slow.bad'))\nprint(attempt('good.echo', x=1))")
            contains(out[0], f"error: the server 'dies' {BAD['dies']}; call again, and cejail starts it anew", "the server that dies")
            contains(out[1], "error: the server 'slow' did not answer within ", "the slow server")
            equal(out[2], "{'x': 1}", "another server")
            again, methods = said(client, cells, "print(attempt('dies.pid'))\nprint(attempt('slow.seen')['methods'])")
            true(again.isdigit() and [again] != pid, f"the server was not started again: {pid} {again}")
            contains(methods, "notifications/cancelled", "what the slow server was told")

    @test(f"mcp session tools ({kind}): a cancelled call and a time limit end the calls of a cell, and the next cell has its own", limit=180)
    def _(kind=kind):
        with client_of(kind, one=fake("silent"), two=fake("good")) as client:
            cells = create(client)
            said(client, cells, "import tools\nopen('/box/begun', 'w').close()")
            code = "import os, threading\nthreading.Timer(0.1, os.unlink, ['/box/begun']).start()\ntools.call('one.bad')"
            number = client.call_later("session_exec", session=cells, code=code)
            wait_until(lambda: client.call("session_get_file", session=cells, path="begun")["isError"], "the call of the cell")
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            code = "import time, tools\nwhile 'notifications/cancelled' not in tools.call('one.seen')['methods']: time.sleep(0.1)\nprint('told')"
            equal(said(client, cells, code), ["told"], "what the server was told")
            facts = facts_of(client.call("session_exec", session=cells, code="tools.call('one.bad')", timeout_seconds=2))
            true(facts["status"] == "timeout" or "KeyboardInterrupt" in facts["stderr"], f"the end: {facts}")
            equal(said(client, cells, "import tools\nprint(tools.call('two.echo', x=1))"), ["{'x': 1}"], "the next cell")

    @test(f"mcp session tools ({kind}): two sessions and a run that call at the same time get their own answers", limit=120)
    def _(kind=kind):
        code = "import tools\nfor i in range(5): print(tools.call('one.echo', who=%r, i=i))"
        with client_of(kind, one=fake("good")) as client:
            sessions = [create(client), create(client), create(client, "none")]
            numbers = [client.call_later("session_exec", session=session, code=code % session) for session in sessions]
            numbers.append(client.call_later("run_python", code=code % "run"))
            for number, who in zip(numbers, [*sessions, "run"]):
                facts = facts_of(client.result(number))
                equal(facts["stdout"].splitlines(), [str({"who": who, "i": i}) for i in range(5)], f"the output of {who} ({facts})")

    @test(f"mcp session tools ({kind}): the fake server of the Python library answers a cell", limit=120)
    def _(kind=kind):
        library = f"{os.path.dirname(os.path.dirname(CEJAIL))}/share/cejail/clients/python"
        if not os.path.exists(f"{library}/cejail/fake_tools.py"):
            raise Skip("the client libraries are not installed")
        with Folder() as f:
            answers = f.file("answers.json", json.dumps({"tools": [{"name": "now", "annotations": {"readOnlyHint": True}}], "answers": {"now": "12:00"}}))
            server = {"command": sys.executable, "args": ["-m", "cejail.fake_tools", answers], "env": {"PYTHONPATH": library}}
            with client_of(kind, time=server) as client:
                equal(said(client, create(client), "import tools\nprint(tools.call('time.now'))"), ["12:00"], "the output")


@contextlib.contextmanager
def service_and_client(config=None, **servers):
    with tempfile.TemporaryDirectory() as folder, Service(config=config) as service:
        with Server("-p", "python", "--tools-from", servers_file(folder, **servers), f"--remote={service.socket}") as client:
            yield service, client


@test("mcp session tools: the audit log of the service has each call, and an answer that the service refuses is an error of the call", limit=120)
def _():
    code = "import tools\n" + TRY + "print(attempt('one.echo', x='y' * 300000))\nprint(attempt('one.echo', x=1))\nprint(attempt('one.fail'))"
    with Folder() as f, service_and_client({"audit": {"file": f / "log"}, "body_max": "256K"}, one=fake("good")) as (service, client):
        cells = create(client)
        number = client.call_later("session_exec", progress="p", session=cells, code=code + "\nimport time\ntime.sleep(0.3)\nprint('end')")
        out = facts_of(client.result(number))["stdout"].splitlines()
        contains(out[0], "error: the service does not take the answer of 3000", "the large answer")
        contains(out[0], "HTTP status 413", "the large answer")
        equal(out[1:], ["{'x': 1}", "error: it did not work", "end"], "the other calls")
        equal({note["params"]["progressToken"] for note in client.notifications()}, {"p"}, "the progress")
        with open(f / "log", encoding="ascii") as file:
            calls = [line for line in map(json.loads, file) if line["event"] == "call"]
        for line in calls:
            check_schema(line, "audit.json")
        rows = [(line["session"], line["call"], line["name"], line["ended"]) for line in calls]
        equal(rows, [(cells, 1, "one.echo", "failed"), (cells, 2, "one.echo", "answered"), (cells, 3, "one.fail", "failed")], "the audit log")


@test("mcp session tools: a service that is killed during a call of a program ends that call, and the next one says what to do", limit=120)
def _():
    with service_and_client(one=fake("silent")) as (service, client):
        # again and again, because what it prints in the first tenth of a second is no progress
        says = "def say():\n    while True:\n        print('begun', flush=True)\n        time.sleep(0.2)\n"
        code = f"import threading, time, tools\n{says}threading.Thread(target=say, daemon=True).start()\ntools.call('one.bad')"
        number = client.call_later("run_python", progress="p", code=code)
        while "begun" not in json.dumps(client.line()):
            pass
        servers = client.below()
        service.process.kill()
        service.process.wait()
        answer = client.result(number)
        equal(answer["isError"], True, "isError")
        contains(answer["content"][0]["text"], "the run has no result: ", "the reason")
        contains(client.python("1")["content"][0]["text"], "ask the user to start 'cejail serve'", "the next call")
        equal(client.below(), servers, "the servers")
