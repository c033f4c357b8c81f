# SPDX-License-Identifier: Apache-2.0
"""Calls that take longer than a client waits become tasks (SEP-2663): on stdio, and over HTTP."""

import contextlib
import json
import signal
import time

import harness
from harness import *  # noqa: F403
from mcp_client import META, MODERN, TASKS, Server, facts_of
from mcp_http import headers_for
from service import OTHER_UID, Background, Service, as_uid

WAITING = "until [ -e go ]; do sleep 0.2; done; echo done"


@contextlib.contextmanager
def http_service():
    """A service, and a function that posts a request of a caller of it."""
    with Folder() as folder:
        folder.file("config/cejail/profiles/slow.json", json.dumps({"extends": "shell", "timeout": "10m", "network": "none"}))
        with Service(config={"mcp": {"profiles": ["slow"]}}, env={"XDG_CONFIG_HOME": folder / "config"}) as service:

            def post(method, capabilities=TASKS, **params):
                meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities}
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
                named = {"Mcp_Name": params["taskId"]} if "taskId" in params else {}
                return service.call("POST", "/mcp", json.dumps(body), headers_for(body, MODERN, **named))

            yield service, post


def answer_of(background):
    reply = background.finish()
    if reply.headers["Content-Type"] == "application/json":
        return reply.json
    return json.loads(reply.body.decode().rsplit("data: ", 1)[1])


def begin_task(post, code):
    """A task by its id."""
    task = answer_of(Background(post, "tools/call", name="run_slow", arguments={"code": code}))["result"]
    equal((task["resultType"], task["status"]), ("task", "working"), "the answer")
    return task["taskId"]


@contextlib.contextmanager
def asks_of(kind):
    """A function that sends a request and returns its answer, result or error."""
    if kind == "stdio":
        with Server("-p", "shell", "--network", "none", "--timeout", "10m", version=MODERN) as server:

            def later(method, capabilities=TASKS, **params):
                server.capabilities = capabilities
                return server.request(method, **params)

            yield later, server.answer
        return
    with http_service() as (_service, post):
        yield lambda *args, **params: Background(post, *args, **params), answer_of


for kind in ("stdio", "http"):

    @test(f"mcp tasks ({kind}): a call that takes long becomes a task, whose result comes later, or which is cancelled", limit=180)
    def _(kind=kind):
        with asks_of(kind) as (later, answer):

            def ask(method, **params):
                return answer(later(method, **params))

            def call_later(tool, capabilities=TASKS, **arguments):
                return later("tools/call", capabilities, name=tool, arguments=arguments)

            def call(tool, **arguments):
                return answer(call_later(tool, **arguments))["result"]

            equal(ask("server/discover")["result"]["capabilities"]["extensions"], TASKS["extensions"], "the extensions")
            profile = "shell" if kind == "stdio" else "slow"
            quick = call(f"run_{profile}", code="echo quick")
            equal((quick["resultType"], facts_of(quick)["stdout"]), ("complete", "quick\n"), "a call that is quick")
            session = facts_of(call("session_create", profile=profile))["session"]
            plain = call_later("session_exec", {}, session=session, code=WAITING)
            first, second = [call_later("session_exec", session=session, code=code) for code in (WAITING, "sleep 500")]
            made = [answer(one)["result"] for one in (first, second)]
            for task in made:
                equal((task["resultType"], task["status"]), ("task", "working"), "the answer")
                true(task["ttlMs"] > 0 and task["pollIntervalMs"] > 0 and task["createdAt"].endswith("Z"), f"the task {task}")
            ids = [task["taskId"] for task in made]
            seen = ask("tasks/get", taskId=ids[0])["result"]
            equal((seen["resultType"], seen["status"], "result" in seen), ("complete", "working", False), "a task that works")

            equal(ask("tasks/get", taskId=ids[0], capabilities={})["error"]["code"], -32021, "a client without the extension")
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                equal(ask(method, taskId="unknown")["error"]["code"], -32602, f"{method} of an unknown task")
            equal(ask("tasks/list")["error"]["code"], -32601, "a method that there is not")
            equal(ask("tasks/update", taskId=ids[0], inputResponses={})["result"]["resultType"], "complete", "an update")

            equal(ask("tasks/cancel", taskId=ids[1])["result"]["resultType"], "complete", "a cancellation")
            equal(ask("tasks/get", taskId=ids[1])["result"]["status"], "cancelled", "the cancelled task")

            facts_of(call("session_put_file", session=session, path="go", text=""))
            harness.wait_until(lambda: ask("tasks/get", taskId=ids[0])["result"]["status"] != "working", "the end of the task", 60, 0.2)
            for _again in range(2):
                done = ask("tasks/get", taskId=ids[0])["result"]
                equal((done["status"], facts_of(done["result"])["stdout"]), ("completed", "done\n"), "the result")
            equal(done["result"]["structuredContent"]["run_id"], ids[0], "the id of the run")
            equal(facts_of(answer(plain)["result"])["stdout"], "done\n", "a call of a client that takes no tasks")
            equal(ask("tasks/cancel", taskId=ids[0])["result"]["resultType"], "complete", "a late cancellation")
            equal(ask("tasks/get", taskId=ids[0])["result"]["status"], "completed", "the task after it")


@test("mcp tasks: Mcp-Name must name the task")
def _():
    with Service(config={"mcp": {"profiles": ["shell"]}}) as service:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get",
                "params": {"taskId": "t", "_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": TASKS}}}
        for name, code in (("t", -32602), ("other", -32020), (None, -32020)):
            reply = service.call("POST", "/mcp", json.dumps(body), headers_for(body, MODERN, Mcp_Name=name))
            equal(reply.json["error"]["code"], code, f"the error with Mcp-Name {name}")


@test("mcp tasks: a task belongs to its caller", who="root", limit=90)
def _():
    with http_service() as (_service, post):
        task = begin_task(post, "sleep 500")
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            refused = as_uid(OTHER_UID, lambda method=method: post(method, taskId=task))
            equal(refused.json["error"]["code"], -32602, f"{method} of another caller")
        equal(post("tasks/get", taskId=task).json["result"]["status"], "working", "the task after it")
        post("tasks/cancel", taskId=task).has(200)
        equal(post("tasks/get", taskId=task).json["result"]["status"], "cancelled", "the task, cancelled by its caller")


@test("mcp tasks: a service that ends waits until the client has fetched the result of a task", limit=120)
def _():
    with http_service() as (service, post):
        task = begin_task(post, "sleep 23; echo done")
        service.signal(signal.SIGTERM)
        while (seen := post("tasks/get", taskId=task).json["result"])["status"] == "working":
            time.sleep(1)
        equal((seen["status"], facts_of(seen["result"])["stdout"]), ("completed", "done\n"), "the result")
        equal(service.process.wait(20 * SLOW), 0, "the end of the service")
