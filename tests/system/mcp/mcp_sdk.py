# SPDX-License-Identifier: Apache-2.0
"""The official clients drive `cejail mcp`: the TypeScript SDK in both versions, and the inspector.

tests/packages fetches them, where npm is installed and its registry answers."""

import json
import os
import shutil
import subprocess

from harness import *  # noqa: F403
from mcp_client import MODERN

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = os.environ.get("CEJAIL_MCP_CLIENTS", f"{PROBES}/../packages")
SHELL = ("-p", "shell", "--network", "none")


def find_node():
    program = shutil.which("node")
    if not program:
        raise Skip("node is not installed")
    if not os.path.exists(f"{CLIENTS}/fetched"):
        raise Skip("the MCP clients are not here: tests/packages fetches them")
    return program


def node(*words):
    done = finish(subprocess.Popen([find_node(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment(CEJAIL_MCP_CLIENTS=CLIENTS)), 60, None, words)
    return json.loads(done.exits(0).out)


def check(seen):
    equal(seen["server"]["name"], "cejail", "the name of the server")
    equal([name for name in seen["tools"] if not name.startswith("session_")], ["run_shell"], "the tools")
    result = seen["result"]
    equal((result["isError"], result["structuredContent"]["stdout"]), (False, "one\ntwo\n"), "the result")
    equal([block["type"] for block in result["content"]], ["text", "resource"], "the content")
    true(seen["progress"], "no progress")
    equal((seen["failed"]["isError"], seen["failed"]["structuredContent"]["exit_code"]), (True, 3), "the failed program")
    equal(seen["refused"]["isError"], True, "an argument that does not exist")
    contains(seen["unknown"]["text"], "unknown tool", "the error")
    contains(seen["cancelled"]["text"], "enough", "the cancelled call")
    equal(seen["several"], ["1\n", "2\n", "3\n"], "the calls at one time")


for sdk, mode in (("1", "legacy"), ("2", "legacy"), ("2", "auto"), ("2", MODERN)):

    @test(f"mcp: the official client, version {sdk}, mode {mode}, calls tools, cancels and closes", limit=120)
    def _(sdk=sdk, mode=mode):
        check(node(f"{HERE}/sdk/client.mjs", sdk, mode, CEJAIL, *SHELL))


for sdk in ("1", "2"):

    @test(f"mcp: the official client, version {sdk}, has run_node call the tools of an official server", limit=120)
    def _(sdk=sdk):
        server = {"command": find_node(), "args": [f"{CLIENTS}/node_modules/@modelcontextprotocol/server-everything/dist/index.js"], "allow": ["echo", "get-sum"]}
        with Folder() as f:
            path = f.file("servers.json", json.dumps({"mcpServers": {"everything": server}}))
            seen = node(f"{HERE}/sdk/tools.mjs", sdk, CEJAIL, "-p", "node", "--network", "none", "--tools-from", path)
        contains(seen["description"], "by server: everything: ", "the description")
        equal((seen["result"]["stdout"], seen["result"]["stderr"]), ("Echo: hello 3\n", ""), "what the program printed")


@test("mcp: the inspector's command line lists the tools and calls one", limit=120)
def _():
    inspector = (f"{CLIENTS}/node_modules/.bin/mcp-inspector-cli", "--cli", CEJAIL, "mcp", *SHELL, "--method")
    tool, *_others = node(*inspector, "tools/list")["tools"]
    equal(tool["name"], "run_shell", "the tool")
    done = node(*inspector, "tools/call", "--tool-name", "run_shell", "--tool-arg", "code=echo seen")
    equal(done["structuredContent"]["stdout"], "seen\n", "the output")
