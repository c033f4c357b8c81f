# SPDX-License-Identifier: Apache-2.0
"""The session tools of both MCP servers: over HTTP, on stdio with --remote, and on stdio alone."""

import base64
import contextlib
import json
import os
import re
import subprocess

import harness
from harness import *  # noqa: F403
from mcp_client import MODERN, Server, check_schema
from mcp_http import SESSION_TOOLS, ask, message
from service import OTHER_UID, Service, as_uid
from sessions import Session

PROFILES = ["python", "shell"]


class OverHttp:
    def __init__(self, service):
        self.service = service

    def call(self, tool, **arguments):
        return self.answer("tools/call", name=tool, arguments=arguments)

    def answer(self, method, **params):
        return ask(self.service, message(method, version=MODERN, **params)).has(200).json["result"]


class OnStdio:
    def __init__(self, server):
        self.server = server

    def call(self, tool, **arguments):
        return self.server.call(tool, **arguments)

    def answer(self, method, **params):
        return self.server.ask(method, **params)["result"]


@contextlib.contextmanager
def client_of(kind, profiles=PROFILES, callers=None):
    """A client with the tools of these profiles, and the service behind it, if there is one."""
    options = [word for profile in profiles for word in ("-p", profile)]
    if kind == "stdio":
        with Server(*options) as server:
            yield OnStdio(server)
        return
    with Service(config={"mcp": {"profiles": profiles}, "callers": callers or {}}) as service:
        if kind == "http":
            yield OverHttp(service)
        else:
            with Server(*options, f"--remote={service.socket}") as server:
                yield OnStdio(server)


KINDS = ("http", "remote", "stdio")


def facts_of(result):
    true(not result["isError"], f"refused: {result['content'][0]['text']}")
    return result["structuredContent"]


def refused(result, *words):
    equal(result["isError"], True, "isError")
    for word in words:
        contains(result["content"][0]["text"], word, "the reason")


def create(client, profile="shell", **more):
    return facts_of(client.call("session_create", profile=profile, network="none", **more))["session"]


def needs_python(*modules):
    done = subprocess.run(["/usr/bin/python3", "-c", f"import {', '.join(modules)}"], capture_output=True, check=False)
    if done.returncode != 0:
        raise Skip(f"python3 has no {' or '.join(modules)}")


# The limits of a server, and each argument of its tools: one step above, and the same.  None: it lowers no limit.
SMALL = {"memory": "128M", "timeout": "2s"}
STEPS = {"memory": (str((128 << 20) + 1), "128M"), "timeout_seconds": (2.001, 2), "network": ("public", "none")}
STEPS.update(dict.fromkeys(("code", "command", "args", "argv", "stdin", "files", "session", "profile", "context", "lease_seconds", "offset", "length")))


@contextlib.contextmanager
def small_client_of(kind):
    """The one tool's limits are SMALL: by the command line, or at /mcp by the profile.  The caller has no ceilings."""
    options = [f"--{name}={value}" for name, value in SMALL.items()]
    with Folder() as folder:
        folder.file("config/cejail/profiles/small.json", json.dumps({"extends": "shell", **SMALL}))
        if kind == "stdio":
            with Server("-p", "shell", *options) as server:
                yield OnStdio(server), "shell"
            return
        with Service(config={"mcp": {"profiles": ["small"]}}, env={"XDG_CONFIG_HOME": folder / "config"}) as service:
            if kind == "http":
                yield OverHttp(service), "small"
            else:
                with Server("-p", "shell", *options, f"--remote={service.socket}") as server:
                    yield OnStdio(server), "shell"


for kind in KINDS:

    @test(f"mcp sessions ({kind}): no argument of a tool goes one step above the limits of the server", limit=120)
    def _(kind=kind):
        with small_client_of(kind) as (client, profile):
            tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in client.answer("tools/list")["tools"]}
            session = create(client, profile)
            needed = {f"run_{profile}": {"code": "true"}, "session_create": {"profile": profile}, "session_exec": {"session": session, "code": "true"}}
            for tool, more in needed.items():
                for name, schema in tools[tool].items():
                    if not STEPS[name]:
                        continue
                    above, same = STEPS[name]
                    refused(client.call(tool, **{name: above}, **more), name)
                    facts_of(client.call(tool, **{name: same}, **more))
                    tried()
                    if name == "timeout_seconds":
                        equal(schema["maximum"], 2, f"the maximum of {tool}")
            for tool in (f"run_{profile}", "session_create"):
                contains(tools[tool]["memory"]["description"], "128M", f"the memory of {tool}")
            late = client.call("session_exec", session=session, code="sleep 6000")
            equal(late["structuredContent"]["status"], "timeout", "the status of an exec that asks for no time")


for kind in KINDS:

    @test(f"mcp sessions ({kind}): files and processes stay from call to call, and nothing stays after the end", limit=120)
    def _(kind=kind):
        with client_of(kind) as client:
            tools = {tool["name"]: tool for tool in client.answer("tools/list")["tools"]}
            equal([name for name in tools if name in SESSION_TOOLS], SESSION_TOOLS, "the tools")

            def call(tool, **arguments):
                facts = facts_of(client.call(tool, **arguments))
                check_schema(facts, tools[tool]["outputSchema"], f"the result of {tool}")
                return facts

            session = call("session_create", profile="shell", network="none")["session"]
            equal(call("session_exec", session=session, code="echo one > a; sleep 6000 & echo $!")["status"], "exited", "the status")
            equal(call("run_shell", session=session, code="cat a; kill -0 %1 2>/dev/null; pgrep -c sleep || true")["stdout"][:4], "one\n", "the file")
            equal(call("session_exec", session=session, command=["cat", "/box/a"])["stdout"], "one\n", "the output of a command")
            put = call("session_put_file", session=session, path="d/x y", base64=base64.b64encode(b"\0\xff").decode())
            equal((put["path"], put["bytes"]), ("/box/d/x y", 2), "the written file")
            listed = {entry["path"]: entry for entry in call("session_list_files", session=session)["entries"]}
            equal(listed["/box/d/x y"]["bytes"], 2, "the listed file")
            read = client.call("session_get_file", session=session, path="/box/d/x y")
            equal(base64.b64decode(read["content"][1]["resource"]["blob"]), b"\0\xff", "the file")
            equal(call("session_get_file", session=session, path="a")["text"], "one\n", "the text")
            equal(call("session_end", session=session)["state"], "ended", "the state")
            refused(client.call("session_exec", session=session, code="true"), "closed")

    @test(f"mcp sessions ({kind}): a file of any size leaves in parts, whose answers say where the next one begins", limit=120)
    def _(kind=kind):
        with client_of(kind) as client:
            session = create(client, "shell")
            made = "yes '\u00e9' | head -c 700000 >out/text; head -c 300000 /dev/zero >zeros; printf '\\211PNG\\r\\n\\032\\n' | cat - zeros >image"
            done = facts_of(client.call("session_exec", session=session, code=made))
            contains(" ".join(done["warnings"]), "read it in parts with session_get_file", "the warning")
            for path, whole, more in (("out/text", "\u00e9\n".encode() * 240000, {}), ("zeros", bytes(300000), {}), ("zeros", bytes(300000), {"length": 290000})):
                got, offset, parts = b"", 0, 0
                while offset is not None:
                    result = client.call("session_get_file", session=session, path=path, offset=offset, **more)
                    facts = facts_of(result)
                    part = facts["text"].encode() if "text" in facts else base64.b64decode(result["content"][1]["resource"]["blob"])
                    equal((facts["offset"], len(part) <= max(262144, more.get("length", 0))), (len(got), True), f"the part at {offset}")
                    got, parts, offset = got + part, parts + 1, facts.get("next_offset")
                    if offset is not None:
                        contains(facts["message"], f"pass {offset} as 'offset'", "the message")
                    equal(facts["bytes"], min(700000, len(whole)), "the size of the whole file")
                equal((got, parts), (whole[:700000], 3 if path == "out/text" else 2), f"the parts of {path}")
            image = client.call("session_get_file", session=session, path="image")
            equal([(block["type"], "next_offset" in facts_of(image)) for block in image["content"][1:]], [("image", False)], "an image")
            behind = facts_of(client.call("session_get_file", session=session, path="zeros", offset=300000))
            equal((behind["text"], "next_offset" in behind), ("", False), "the part behind the end")
            for wrong in ({"offset": -1}, {"length": 0}, {"length": 4 * 2**20 + 1}, {"offset": "1"}, {"offset": 1.5}):
                refused(client.call("session_get_file", session=session, path="a", **wrong), next(iter(wrong)))
            client.call("session_end", session=session)

    @test(f"mcp sessions ({kind}): an interpreter keeps its variables over a timeout and an exception", limit=120)
    def _(kind=kind):
        with client_of(kind) as client:
            session = create(client, "python", context="repl")
            for _ in range(5):
                equal(facts_of(client.call("run_python", session=session, code="x = 41\nx + 1"))["last_value"], "42", "the value")
                late = client.call("run_python", session=session, code="while True: pass", timeout_seconds=2)
                equal((late["isError"], late["structuredContent"]["status"]), (True, "timeout"), "the endless loop")
                # it has two seconds to end, in which a busy machine may not run it: another turn decides
                if facts_of(client.call("run_python", session=session, code="'x' in globals()"))["last_value"] == "True":
                    break
            failed = client.call("run_python", session=session, code="1 / 0")
            contains(failed["structuredContent"]["stderr"], "ZeroDivisionError", "stderr")
            contains(failed["structuredContent"]["message"], "exception", "the message")
            equal(facts_of(client.call("run_python", session=session, code="x"))["last_value"], "41", "the variable")
            left = client.call("run_python", session=session, code="import sys; sys.exit(3)")
            equal((left["structuredContent"]["exit_code"], facts_of(client.call("run_python", session=session, code="x"))["last_value"]), (3, "41"), "exit, and the variable")
            contains(left["structuredContent"]["message"], "exit with status 3; variables remain", "the message")
            for code, words in (("import os; os._exit(0)", "with status 0"), ("import os; os.kill(os.getpid(), 9)", "Signal 9")):
                ended = client.call("run_python", session=session, code=code)["structuredContent"]["message"]
                contains(ended, words, "the message")
                contains(ended, "all variables are gone, and the next call gets a new interpreter", "the message")
                contains(facts_of(client.call("run_python", session=session, code="y = 1"))["message"], "a new one", "the next message")

    @test(f"mcp sessions ({kind}): an answer has only files that are new or changed, and 64K of a stream", limit=120)
    def _(kind=kind):
        loud = "import sys; print('a' * 50000 + 'é' * 50000 + 'b' * 50000); print('c' * 65537, file=sys.stderr)"

        def check_loud(facts):
            for name, size, ends in (("stdout", 200001, "ab"), ("stderr", 65538, "cc")):
                first, count, last = re.fullmatch(r"(\w+)\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n(\w+\n)", facts[name]).groups()
                equal(len(first.encode()) + int(count) + len(last.encode()), size, f"the bytes of {name}")
                true(64000 <= len(first.encode()) + len(last.encode()) <= 65536, f"{len(first)} and {len(last)} characters of {name}")
                equal(first[0] + last[-2], ends, f"the ends of {name}")
            equal(facts["truncated"], True, "truncated")

        with client_of(kind) as client:
            session = create(client, "python", context="repl")

            def files_after(code):
                return [file["path"] for file in facts_of(client.call("session_exec", session=session, code=code))["files"]]

            equal(files_after("for n in 'ab': open(f'/box/out/{n}', 'w').write(n * 1000)"), ["a", "b"], "new files")
            wait_until(lambda: files_after("1") == [], "an answer without files")  # a clock of the kernel has steps of milliseconds
            equal(files_after("open('/box/out/b', 'a').write('c')"), ["b"], "a changed file")
            facts = facts_of(client.call("session_exec", session=session, code=loud))
            check_loud(facts)
            contains(facts["message"], "write it to a file", "the message")
            facts = facts_of(client.call("run_python", code=loud))
            check_loud(facts)
            contains(facts["message"], "print only what matters", "the message")
            tool, *_more = client.answer("tools/list")["tools"]
            contains(tool["description"], "at most 64K, their beginning and end", "the description")

    @test(f"mcp sessions ({kind}): a matplotlib figure comes back as an image, and a table stays over three cells", limit=120)
    def _(kind=kind):
        needs_python("matplotlib", "pandas")
        with client_of(kind, ["python-data"]) as client:
            session = create(client, "python-data", context="repl")

            def run(code):
                result = client.call("run_python-data", session=session, code=code)
                return facts_of(result), result["content"][1:]

            run("import pandas\ntable = pandas.DataFrame({'n': [1, 2]})")
            run("table['m'] = table.n * 10")
            facts, content = run("table")
            contains(facts["last_value"], "20", "the table")
            equal(content[0]["resource"]["mimeType"], "text/html", "the type of the table")
            _, (image, *_more) = run("import matplotlib.pyplot as plot\nfigure, axes = plot.subplots()\naxes.plot([1, 3, 2])\nfigure")
            equal((image["type"], image["mimeType"]), ("image", "image/png"), "the figure")
            true(base64.b64decode(image["data"]).startswith(b"\x89PNG\r\n"), "no PNG")

    @test(f"mcp sessions ({kind}): a model closes and narrows the network of its session, and can't open it again", limit=120)
    def _(kind=kind):
        with client_of(kind) as client:
            def narrow(said, **arguments):
                facts = facts_of(client.call("session_network", session=session, **arguments))
                contains(facts["message"], said, f"the message of {arguments}")
                contains(facts["message"], "No call can open it again", f"the message of {arguments}")
                return {key: facts.get(key) for key in ("session", "mode", "allow", "deny")}

            def message(code="true"):
                return client.call("session_exec", session=session, code=code)["structuredContent"]["message"]

            session = facts_of(client.call("session_create", profile="shell"))["session"]
            now = {"session": session, "mode": "public", "allow": [], "deny": ["a.test"]}
            equal(narrow("reaches the public Internet, but not a.test.", deny=["a.test"]), now, "one denied")
            now["allow"] = ["*.b.test:443", "c.test"]
            equal(narrow("reaches only *.b.test:443, c.test, but not a.test.", allow=now["allow"]), now, "a list")
            contains(message(), "Since the last call the network has changed. The session's network reaches only *.b.test:443", "a result")
            lacks(message(), "network", "the result after that")
            for arguments, words in (
                ({"allow": ["d.test"]}, ("'d.test' is not one of the destinations that are open", "'*.b.test:443', 'c.test'")),
                ({"allow": ["https://c.test/"]}, ("'https://c.test/' is a URL", "example.com:443")),
                ({"deny": ["*.com"]}, ("*.com", "*.example.com")),
                ({"allow": "c.test"}, ("'allow' must be an array",)),
                ({"deny": [1]}, ("'each item of deny' must be a string",)),
                ({"network": "public"}, ("can only be \"none\"", "user")),
                ({"network": "none", "allow": ["c.test"]}, ("either 'network', or 'allow'",)),
                ({}, ("give either 'network', or 'allow'",)),
                ({"mode": "public"}, ("unknown argument 'mode'",)),
            ):  # fmt: skip
                refused(client.call("session_network", session=session, **arguments), *words)
            now["allow"] = ["c.test"]
            equal(narrow("reaches only c.test", allow=["c.test"]), now, "a part of the list")
            now.update(mode="none", allow=[], deny=None)
            equal(narrow("network is closed: nothing leaves it.", network="none"), now, "nothing")
            for arguments in ({"allow": ["c.test"]}, {"deny": ["c.test"]}):
                refused(client.call("session_network", session=session, **arguments), "closed, and this call can't open it again", "ask the user")
            contains(message("echo 'Network is unreachable'; exit 1"), "do not retry what needs one", "a failure without a network")
            refused(client.call("run_shell", session=session, code="true", network="none"), "changes by session_network")
            refused(client.call("session_network", session=create(client), network="none"), "created without a network", "nothing to close")

    @test(f"mcp sessions ({kind}): what cannot be is refused, and the reason says what to change", limit=120)
    def _(kind=kind):
        with client_of(kind) as client:
            session = create(client)
            for tool, arguments, *words in (
                ("session_create", {}, "profile", "missing"),
                ("session_create", {"profile": "base"}, "profile"),
                ("session_create", {"profile": "shell", "code": "true"}, "unknown argument 'code'"),
                ("session_create", {"profile": "shell", "lease_seconds": 10 ** 9}, "lease"),
                ("session_exec", {"code": "true"}, "session"),
                ("session_exec", {"session": session}, "either"),
                ("session_exec", {"session": session, "code": "true", "memory": "1M"}, "unknown argument 'memory'"),
                ("run_shell", {"session": session, "code": "true", "memory": "8M"}, "cannot change in a session"),
                ("run_python", {"session": session, "code": "1"}, "shell"),
                ("session_exec", {"session": "../runs", "code": "true"}, "session_create"),
                ("session_exec", {"session": "none", "code": "true"}, "no session with this id"),
                ("session_get_file", {"session": session, "path": "/etc/passwd"}, ""),
                ("session_get_file", {"session": session, "path": "../x"}, ""),
                ("session_get_file", {"session": session, "path": "x?list#"}, ""),
                ("session_put_file", {"session": session, "path": "x"}, "text"),
                ("session_put_file", {"session": session, "path": "x", "base64": "!"}, "base64"),
                ("session_put_file", {"session": session, "path": "x" * 2000, "text": ""}, "longer"),
                ("session_end", {"session": session, "path": "x"}, "unknown argument"),
            ):  # fmt: skip
                refused(client.call(tool, **arguments), *words)
            equal(facts_of(client.call("session_exec", session=session, code="echo still"))["stdout"], "still\n", "the session")


@test("mcp sessions: the maximum of a stream in an answer can be changed, and is checked")
def _():
    code = "head -c 300000 /dev/zero | tr '\\0' x"
    with Server("-p", "shell", "--text-max", "1M") as server:
        equal(len(facts_of(OnStdio(server).call("run_shell", code=code))["stdout"]), 300000, "the output")
    with Service(config={"mcp": {"profiles": PROFILES, "text_max": "2K"}}) as service:
        client = OverHttp(service)
        for tool, more in (("run_shell", {}), ("session_exec", {"session": create(client)})):
            contains(facts_of(client.call(tool, code=code, **more))["stdout"], f"[... {300000 - 2048} bytes left out ...]", "the output")
    for wrong in ("1", "17M", "x"):
        contains(cejail("mcp", "--text-max", wrong).exits(125).err, "--text-max: ", "the message")


@test("mcp sessions: without a network, the description and the answers of a tool say that a second try is in vain")
def _():
    code = "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)"
    for option, words in (("--network=none", "There is no network;"), ("--uplink=none", "There is no network here")):
        with Server("-p", "python", option) as server:
            client = OnStdio(server)
            tools = client.answer("tools/list")["tools"]
            contains(tools[0]["description"], words, f"the description with {option}")
            equal("session_network" in [tool["name"] for tool in tools], option == "--uplink=none", f"the tool that closes it, with {option}")
            session = facts_of(client.call("session_create", profile="python"))["session"]
            for more in ({}, {"session": session}):
                said = client.call("run_python", code=code, **more)["structuredContent"]
                contains(said["message"], "there is no network here: do not retry", f"the message with {option}, {said}")
                said = client.call("run_python", code="1 / 0", **more)["structuredContent"]
                true("retry" not in said["message"] or "session" in more, f"the message of another failure: {said['message']}")


for kind in KINDS:

    @test(f"mcp sessions ({kind}): no refusal has words of the HTTP interface, and each says what to do", limit=120)
    def _(kind=kind):
        with client_of(kind) as client:
            session = create(client)
            for tool, arguments, words in (
                ("session_exec", {"session": "none", "code": "true"}, "create one with session_create"),
                ("session_get_file", {"session": session, "path": "/etc/passwd"}, "below /box or /tmp"),
                ("session_get_file", {"session": session, "path": "none"}, "session_list_files"),
                ("session_put_file", {"session": session, "path": "/usr/x", "text": ""}, "below /box or /tmp"),
                ("session_get_file", {"session": session, "path": "out"}, "session_list_files"),
                ("session_create", {"profile": "shell", "context": "repl"}, "has no 'repl' (leave out 'context'"),
                ("session_create", {"profile": "shell", "lease_seconds": 10 ** 9}, "lease: "),
                ("session_create", {"profile": "none"}, "profile"),
                ("run_shell", {"code": "true", "memory": "900G"}, "memory"),
            ):
                text = client.call(tool, **arguments)["content"][0]["text"]
                contains(text, words, f"the refusal of {tool} {arguments}")
                true(not re.search(r"/v1/|HTTP|request:\d|GET |PUT |POST |\.\.\./", text), f"words of HTTP: {text}")


@test("mcp sessions: another caller's session looks like none", who="root")
def _():
    with client_of("http") as client:
        session = create(client)
        for tool, more in (("session_exec", {"code": "true"}), ("session_list_files", {}), ("session_end", {})):
            body = message("tools/call", version=MODERN, name=tool, arguments={"session": session, **more})
            other = as_uid(OTHER_UID, lambda body=body: ask(client.service, body))
            refused(other.json["result"], "no session with this id")
        equal(facts_of(client.call("session_exec", session=session, code="echo on"))["stdout"], "on\n", "the session")


@test("mcp sessions: the number of sessions of a caller is limited")
def _():
    with client_of("http", callers={f"uid:{os.geteuid()}": {"sessions": 1}}) as client:
        session = create(client)
        refused(client.call("session_create", profile="shell"), "sessions")
        facts_of(client.call("session_end", session=session))
        create(client)


@test("mcp sessions: after the first cell of a session, the next session has an interpreter that waits")
def _():
    with Server("-p", "python") as server:
        client = OnStdio(server)

        def jails(state):
            rows = json.loads(cejail("ps", "--json").exits(0).out)["runs"]
            return {row["id"] for row in rows if row["state"] == state and row["pid"] in server.below()}

        def takes_prepared(context="repl"):
            ready = jails("ready")
            session = facts_of(client.call("session_create", profile="python", context=context))["session"]
            facts = facts_of(client.call("session_exec", session=session, code="print(sorted(n for n in globals() if n < 'Z'))\nA = 1"))
            equal((facts["status"], facts["stdout"]), ("exited", "[]\n"), "the first cell")
            taken = ready & jails("running")
            facts_of(client.call("session_end", session=session))
            return taken

        takes_prepared("none")
        equal(jails("ready"), set(), "what waits after a session without an interpreter")
        wait_until(takes_prepared, "a session that was prepared", 60)
        wait_until(lambda: jails("ready"), "the next one")
        pids = server.below()
    Server.await_end(pids)


@test("mcp sessions: the end of standard input ends the sessions of a server without a service")
def _():
    with Server("-p", "shell") as server:
        client = OnStdio(server)
        session = create(client)
        facts_of(client.call("session_exec", session=session, code="sleep 77 > /dev/null & echo"))
        pids = server.below()
        true(pids, "no processes")
    Server.await_end(pids)


@test("mcp sessions: each call that uses a session renews its lease")
def _():
    with Service(config={"mcp": {"profiles": PROFILES}}) as service:
        client = OverHttp(service)
        created = facts_of(client.call("session_create", profile="shell", network="none", lease_seconds=60))
        contains(created["message"], f"ends at {created['lease_until']}, unless a call uses it", "the message")
        until = created["lease_until"]

        def lease():
            return service.call("GET", f"/v1/sessions/{created['session']}").json["lease_until"]

        def lease_after(tool, arguments):
            """It has milliseconds: two calls may be in the same one."""
            facts_of(client.call(tool, session=created["session"], **arguments))
            return lease()

        for tool, arguments in (("session_exec", {"code": "true"}), ("session_put_file", {"path": "a", "text": "b"}), ("session_list_files", {})):
            wait_until(lambda: lease_after(tool, arguments) > until, f"a lease that {tool} renews")  # noqa: B023
            until = lease()


def at_doors_of_destinations(f, s, key, text):
    """What an option, a profile, a run and a change of a session of the service, and a tool say of a wrong one."""
    network = {"mode": "public", key: [text]}
    f.file("wrong.json", json.dumps({"extends": "shell", "network": network}))
    with Session(s, network="public") as session:
        arguments = {"session": session.id, key: [text]}
        return (
            harness.refused(cejail("run", "--network", "public", f"--{key}={text}", "-p", "shell", "-c", "true")).err,
            harness.refused(cejail("run", "-p", f / "wrong.json", "-c", "true")).err,
            s.post({"profile": "shell", "network": network, "code": "true"}).has(400).json["error"]["message"],
            session.call("PUT", "/network", network).has(400).json["error"]["message"],
            ask(s, message("tools/call", version=MODERN, name="session_network", arguments=arguments)).json["result"]["content"][0]["text"],
        )


def at_doors_of_upstreams(f, s, key, text):
    """What an option, a profile, a run and a new session of the service, and an MCP server with the option say of a wrong one."""
    f.file("wrong.json", json.dumps({"extends": "shell", key: [text]}))
    request = {"profile": "shell", key: [text]}
    server = cejail("mcp", "-p", "shell", f"--{key}={text}", given="")
    if server.code != 0:
        harness.refused(server)
    else:  # a file is opened for each call
        with Server("-p", "shell", f"--{key}={text}") as client:
            server.err = json.loads(client.call("run_shell", code="true")["content"][0]["text"])["message"].rstrip(".")
    return (
        harness.refused(cejail("run", f"--{key}={text}", "-p", "shell", "-c", "true")).err,
        harness.refused(cejail("run", "-p", f / "wrong.json", "-c", "true")).err,
        s.post({**request, "code": "true"}).json["error"]["message"],
        s.call("POST", "/v1/sessions", request).has(400).json["error"]["message"],
        server.err,
    )


WRONG_DESTINATIONS = (
    ("https://a.test/x", "example.com:443"), ("a.test/path", "example.com:443"), ("a.test:80-90", "example.com:443"), ("a.test:", "example.com:443"),
    ("a.test,b.test", "by itself"), ("a.test.", "leave out the dot"), ("a..test", "Punycode"), ("b\u00fc.test", "Punycode"), ("a b.test", "Punycode"),
    ("*.test", "*.example.test"), ("a.*.test", "*.example.com"), ("*", "*.example.com"), ("10.1.1.1/8", "10.0.0.0/8"), ("0x7f.1", "192.0.2.1"),
    ("010.0.0.1", "192.0.2.1"), ("[2001:db8::1", "[2001:db8::1]:443"), ("2001:db8::x", "[2001:db8::1]:443"), ("", "HOST, ADDRESS or CIDR"),
)  # fmt: skip
# What is wrong in it, and the form that works or what to mend.
WRONG_UPSTREAMS = (
    ("", "", "NAME=URL"), ("model", "model", "NAME=URL"), ("Model=https://h", "Model", "small letters"), ("m=ftp://h", "ftp://h", "https://"),
    ("m=https://h/v1", "https://h/v1", "'https://h,path=/v1'"), ("m=https://u:w@h", "https://u:w@h", "https://HOST:PORT"), ("m=https://", "https://", "https://HOST"),
    ("m=https://h,header=Authorization", "header=Authorization", "header=NAME:[PREFIX]@FILE"), ("m=https://h,header=A:@/no/such/file", "header=A:@", "'/no/such/file': No such file"),
    ("m=https://h,header=Host:@/f", "Host", "such as Authorization"), ("m=https://h,header=A:@/etc", "header=A:@", "'/etc' is a directory"),
    ("m=https://h,header=A:@LOCKED", "header=A:@", "locked': Permission denied"),
    ("m=https://h,path=v1", "path=v1", "path=/v1/"), ("m=https://h,path=/a/../b", "path=/a/../b", "path=/v1/"), ("m=https://h,color=red", "color=", "header=, path="),
    ("m=https://h,requests=0", "0", "at least 1"), ("m=https://h,bytes=1Q", "1Q", "64M"), ("m=https://h,", "", "NAME=URL"),
)  # fmt: skip
# A key, what is wrong with it, and what stands at the doors.
WRONG = (
    *((key, text, text, form, at_doors_of_destinations) for key in ("allow", "deny") for text, form in WRONG_DESTINATIONS),
    *(("upstream", *row, at_doors_of_upstreams) for row in WRONG_UPSTREAMS if WHO != "root" or "LOCKED" not in row[0]),
)


@test("mcp sessions: each door refuses a wrong destination or upstream with the same sentence, which has its text and a form that works", limit=180)
def _():
    cases = thinned(WRONG, lambda row: row[0])
    with Folder() as f, Service(config={"mcp": {"profiles": ["shell"]}}) as s:
        f.file("locked", mode=0)
        for key, text, word, form, at_doors in cases:
            said = at_doors(f, s, key, text.replace("LOCKED", f / "locked"))
            sentences = {re.sub(r"^.*?(?='" + re.escape(word) + "')", "", one.replace('\\"', '"')).split("\n")[0] for one in said}
            equal(len(sentences), 1, f"{key} {text!r}: {said}")
            contains(min(sentences), form, f"{key} {text!r}")
            true(min(sentences).startswith(f"'{word}'"), f"{key} {text!r} is not said: {said}")
    tried(len(cases))
