# SPDX-License-Identifier: Apache-2.0
"""The official clients drive `cejail mcp`: the TypeScript SDK in both versions, and the inspector.

tests/packages fetches them, where npm is installed and its registry answers."""

import json
import os
import shutil
import subprocess

from harness import *  # noqa: F403
from mcp_client import MODERN
from mcp_upstream import official, servers_file

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


def node(*words, **env):
    done = finish(subprocess.Popen([find_node(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment(CEJAIL_MCP_CLIENTS=CLIENTS, **env)), 60, None, words)
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


PYTHON_LOOP = """
from tools import everything, files, memory
words = []
for i in range(10):
    words.append(everything.echo(message=str(i)).split()[-1])
    files.write_file(path=f"FOLDER/py{i}", content=str(i))
    memory.create_entities(entities=[{"name": f"py{i}", "entityType": "number", "observations": [str(i)]}])
print(*words, len(memory.read_graph()["entities"]))
"""
NODE_LOOP = """
import("./tools.mjs").then(async ({ everything, files, memory }) => {
    const words = [];
    for (let i = 0; i < 10; i++) {
        words.push((await everything.echo({ message: String(i) })).split(" ").at(-1));
        await files.write_file({ path: `FOLDER/js${i}`, content: String(i) });
        await memory.create_entities({ entities: [{ name: `js${i}`, entityType: "number", observations: [String(i)] }] });
    }
    console.log(...words, (await memory.read_graph()).entities.length);
});
"""

for sdk in ("1", "2"):

    @test(f"mcp: the official client, version {sdk}, has Python and Node.js loop over 31 calls of three official servers, one call of the model each", limit=180)
    def _(sdk=sdk):
        with Folder() as f:
            servers = {
                "everything": official("everything", allow=["echo"]),
                "files": official("filesystem", f.path, allow=["write_file"]),
                "memory": official("memory", env={"MEMORY_FILE_PATH": f / "memory.json"}, allow=["create_entities"]),
            }
            codes = [[tool, code.replace("FOLDER", f.path)] for tool, code in (("run_python", PYTHON_LOOP), ("run_node", NODE_LOOP))]
            options = ("-p", "python", "-p", "node", "--network", "none", "--tools-from", servers_file(f.path, **servers))
            seen = node(f"{HERE}/sdk/tools.mjs", sdk, CEJAIL, *options, CODES=json.dumps(codes))
            equal([(result["stdout"], result["stderr"]) for result in seen["results"]],
                  [(f"0 1 2 3 4 5 6 7 8 9 {count}\n", "") for count in (10, 20)], "what the programs printed")  # fmt: skip
            equal(len([name for name in os.listdir(f.path) if name.startswith(("py", "js"))]), 20, "the files that they wrote")
        [description] = [tool["description"] for tool in seen["tools"] if tool["name"] == "run_python"]
        contains(description, "by server: everything: ", "the description")
        lacks(description, "knowledge graph", "the description")


@test("mcp: the inspector's command line lists the tools and calls one", limit=120)
def _():
    inspector = (f"{CLIENTS}/node_modules/.bin/mcp-inspector-cli", "--cli", CEJAIL, "mcp", *SHELL, "--method")
    tool, *_others = node(*inspector, "tools/list")["tools"]
    equal(tool["name"], "run_shell", "the tool")
    done = node(*inspector, "tools/call", "--tool-name", "run_shell", "--tool-arg", "code=echo seen")
    equal(done["structuredContent"]["stdout"], "seen\n", "the output")
