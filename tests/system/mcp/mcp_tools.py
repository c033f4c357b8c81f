# SPDX-License-Identifier: Apache-2.0
"""The tools of `cejail mcp`: schemas, arguments, files, limits, what a call cannot do."""

import base64
import json
import os
import urllib.parse

from harness import *  # noqa: F403
from mcp_client import MODERN, Server, check_schema, facts_of

PYTHON_TOOL = ("-p", "python", "--network", "none")
SHELL = ("-p", "shell", "--network", "none")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def has_null(value):
    if isinstance(value, dict):
        return any(map(has_null, value.values()))
    return any(map(has_null, value)) if isinstance(value, list) else value is None


@test("mcp: without --profile there is a tool for each of python, node and shell that is installed")
def _():
    wanted = [f"run_{name}" for name, program in (("python", "python3"), ("node", "node"), ("shell", "sh"))
              if any(os.access(f"{place}/{program}", os.X_OK) for place in ("/usr/local/bin", "/usr/bin", "/bin"))]
    with Server() as s:
        equal([tool["name"] for tool in s.ask("tools/list")["result"]["tools"] if not tool["name"].startswith("session_")], wanted, "the tools")
    with Server(*SHELL, "--tool-prefix", "my-") as s:
        names = [tool["name"] for tool in s.ask("tools/list")["result"]["tools"]]
        equal((names[0], {name[:3] for name in names}), ("my-run_shell", {"my-"}), "with a prefix")


@test("mcp: every result is as the output schema of its tool says, and has no null")
def _():
    rows = [("print(1)", {}), ("import sys; sys.exit(3)", {}), ("import os; os.abort()", {}),
            ("open('/box/out/a', 'w').write('x')", {}), ("import time; time.sleep(9)", {"timeout_seconds": 0.5}),
            ("print('x' * 3000000)", {}), ("import os; os.write(1, b'\\xff\\0')", {})]
    for version in ("2025-11-25", MODERN):
        with Server(*PYTHON_TOOL, version=version) as s:
            tool, *_others = s.ask("tools/list")["result"]["tools"]
            for code, more in rows:
                result = s.python(code, **more)
                facts = facts_of(result)
                check_schema(facts, tool["outputSchema"], f"the result of {code!r}")
                check_schema({"code": code, **more}, tool["inputSchema"], "the arguments")
                true(not has_null(facts), f"a null in {facts}")
                equal(result["isError"], facts.get("exit_code") != 0, f"isError of {code!r}")
                true(facts["message"].endswith("."), f"the message {facts['message']!r}")
                tried()


@test("mcp: schemas have one type for each property, and annotations are true to the command line")
def _():
    def walk(schema):
        true(not isinstance(schema.get("type"), list), f"a list of types: {schema}")
        for child in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
            walk(child)

    rows = [(("--network", "none"), (True, False, False)), ((), (False, False, True)),
            (("--network", "none", "--bind", "/var/tmp:/box/d"), (False, True, False)),
            (("--network", "none", "--connect", "tcp:127.0.0.1:9"), (False, True, True))]
    for options, (read_only, destructive, open_world) in rows:
        with Server("-p", "shell", *options) as s:
            tool, *_others = s.ask("tools/list")["result"]["tools"]
            walk(tool["inputSchema"])
            walk(tool["outputSchema"])
            hints = tool["annotations"]
            equal((hints["readOnlyHint"], hints["destructiveHint"], hints["openWorldHint"]),
                  (read_only, destructive, open_world), f"the annotations with {options}")
            equal(hints["idempotentHint"], False, "idempotentHint")
            equal("There is no network;" in tool["description"], "none" in options, "the description")


@test("mcp: code, args, argv, stdin and files reach the program")
def _():
    code = """import base64, json, sys
print(json.load(open('/box/args.json')), sys.argv[1:], sys.stdin.read(), open('/box/a.txt').read(), open('/box/b/c.bin', 'rb').read())"""
    with Server(*PYTHON_TOOL) as s:
        facts = facts_of(s.python(code, args={"n": [1, None, "\u20ac"]}, argv=["one", "two words"], stdin="in\n", files=[
            {"path": "a.txt", "text": "text"}, {"path": "/box/b/c.bin", "base64": base64.b64encode(b"\0\xff").decode()}]))
        equal(facts["stdout"], "{'n': [1, None, '\u20ac']} ['one', 'two words'] in\n text b'\\x00\\xff'\n", facts["stderr"])


@test("mcp: a value that the program returns is part of the answer, and of the schema")
def _():
    code = "import json; json.dump({'n': [1, 2.5, 'x']}, open('/box/out/result.json', 'w'))"
    with Server(*PYTHON_TOOL) as s:
        tool, *_others = s.ask("tools/list")["result"]["tools"]
        contains(tool["description"], "/box/out/result.json", "the description")
        facts = facts_of(s.python(code))
        equal(facts["value"], {"n": [1, 2.5, "x"]}, "the value")
        check_schema(facts, tool["outputSchema"], "the result")
        facts = facts_of(s.python("open('/box/out/result.json', 'w').write('{')"))
        true("value" not in facts and facts["warnings"], f"a value that is no JSON: {facts}")
    with Server(*PYTHON_TOOL, "--value-path", "none") as s:
        tool, *_others = s.ask("tools/list")["result"]["tools"]
        lacks(tool["description"], "return a value", "the description")


@test("mcp: images are images, small files resources, large ones links that lead to the file")
def _():
    code = f"""import os
open('/box/out/a.png', 'wb').write({PNG!r})
open('/box/out/false.png', 'wb').write(bytes(range(128, 192)))
open('/box/out/n \u20ac.txt', 'w').write('note')
open('/box/out/big', 'w').write('x' * 300000)"""
    with Folder() as folder, Server(*PYTHON_TOOL, "--files", folder / "out") as s:
        result = s.python(code)
        facts, blocks = facts_of(result), {}
        for block in result["content"][1:]:
            uri = block.get("uri") or block.get("resource", {}).get("uri", "")
            blocks[urllib.parse.unquote(uri).rpartition("/")[2]] = block
        equal((blocks[""]["type"], blocks[""]["mimeType"]), ("image", "image/png"), "the image")
        equal(base64.b64decode(blocks[""]["data"]), PNG, "the bytes of the image")
        equal(blocks["false.png"]["type"], "resource", "what is no image")
        equal(blocks["n \u20ac.txt"]["resource"]["text"], "note", "the text")
        equal((blocks["big"]["type"], blocks["big"]["size"]), ("resource_link", 300000), "the link")
        path = urllib.parse.unquote(blocks["big"]["uri"].removeprefix("file://"))
        with open(path, encoding="ascii") as file:
            equal(len(file.read()), 300000, "the size of the linked file")
        true(path.startswith(f"{folder.path}/out/{facts['run_id']}/"), f"the place {path}")
        equal(sorted(file["path"] for file in facts["files"]), ["a.png", "big", "false.png", "n \u20ac.txt"], "the files")


@test("mcp: a matplotlib figure of python-data comes back as an image")
def _():
    need_python_module("matplotlib")
    code = """import matplotlib.pyplot as plt
plt.plot([1, 4, 2])
plt.savefig('/box/out/figure.png')"""
    with Server("-p", "python-data", "--network", "none") as s:
        result = s.call("run_python-data", code=code)
        equal([block["type"] for block in result["content"]], ["text", "image"], facts_of(result))
        equal(base64.b64decode(result["content"][1]["data"])[:4], b"\x89PNG", "the image")


@test("mcp: without --files a large file is a warning that says what to do")
def _():
    with Server(*PYTHON_TOOL) as s:
        result = s.python("open('/box/out/big', 'w').write('x' * 300000)")
        equal([block["type"] for block in result["content"]], ["text"], "the blocks")
        contains(" ".join(facts_of(result)["warnings"]), "--files", "the warnings")


@test("mcp: wrong arguments are an error of the tool that says what to change")
def _():
    rows = [({}, "'code' is missing"), ({"code": 1}, "must be a string"), ({"code": "x", "session": "s"}, "no session with this id"),
            ({"code": "x", "cmd": "y"}, "unknown argument"), ({"code": "x", "timeout_seconds": 3600}, "limit of this tool"),
            ({"code": "x", "memory": "64G"}, "limit of this tool"), ({"code": "x", "network": "public"}, '"none"'),
            ({"code": "x", "files": [{"path": "/proc/x", "text": ""}]}, "/proc"),
            ({"code": "x", "files": [{"path": "a", "base64": "*"}]}, "base64")]
    with Server(*SHELL) as s:
        for arguments, part in rows:
            result = s.call("run_shell", **arguments)
            equal(result["isError"], True, f"isError of {arguments}")
            contains(result["content"][0]["text"], part, "the text")
            tried()


@test("mcp: a call cannot name paths, connections, variables or profiles of the host")
def _():
    with Server(*SHELL) as s:
        for name in ("profile", "ro_bind", "bind", "overlay", "connect", "rootfs", "seccomp", "cgroup_parent", "env", "file",
                     "command", "id", "artifacts", "args_json", "tty", "strict", "allow", "disk", "workdir"):
            result = s.call("run_shell", **{"code": "echo ran", name: ["/etc"]})
            equal(result["isError"], True, f"isError with {name}")
            lacks(result["content"][0]["text"], "ran\n", "the text")
            tried()
        lacks(facts_of(s.call("run_shell", code="env"))["stdout"], SECRET, "the environment")


@test("mcp: the command line gives paths and variables to every call, and a call only lowers limits")
def _():
    with Folder() as folder:
        folder.file("data/x", "from the host")
        with Server(*SHELL, "--ro-bind", f"{folder.path}/data:/data", "--env", "WORD=yes", "--timeout", "20s") as s:
            facts = facts_of(s.call("run_shell", code="cat /data/x; echo $WORD"))
            equal(facts["stdout"], "from the hostyes\n", facts["stderr"])
            facts = facts_of(s.call("run_shell", code="sleep 30", timeout_seconds=0.5))
            equal(facts["status"], "timeout", "the status")
            contains(facts["message"], "timeout_seconds (at most 20s)", "the message")
            equal(s.call("run_shell", code="true", timeout_seconds=21)["isError"], True, "above the limit")


@test("mcp: a program that is out of memory, killed or not found is told apart")
def _():
    with Server(*PYTHON_TOOL) as s:
        facts = facts_of(s.python("b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nimport time; time.sleep(5)", memory="64M"))
        true(facts["status"] in ("oom", "exited"), f"the status {facts}")  # exited: MemoryError, where rlimits enforce it
        facts = facts_of(s.python("import os; os.kill(os.getpid(), 11)"))
        equal((facts["status"], facts["signal"]), ("signaled", 11), "the end")


@test("mcp: denied system calls are listed, and the message names the list")
def _():
    if facts()["layers"]["syscall_report"] != "on":
        raise Skip("this host does not report system calls")
    with Server(*SHELL) as s:
        told = facts_of(s.call("run_shell", code="unshare -U true; exit 1"))
        true(any(row.startswith("system call: ") for row in told["denied"]), f"the denials {told['denied']}")
        contains(told["message"], "'denied'", "the message")


@test("mcp: --remote runs at a service, with the same answers")
def _():
    import sys

    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "service"))
    from service import Service

    with Folder() as folder, Service(config={"audit": {"file": folder / "audit"}}) as service, Server("--remote", service.socket, "-p", "shell") as s:
        tool, *_others = s.ask("tools/list")["result"]["tools"]
        true(tool["annotations"]["openWorldHint"], "the service's profile has a network")
        facts = facts_of(s.call("run_shell", code="echo here; echo x > /box/out/f; exit 4", network="none"))
        equal((facts["exit_code"], facts["stdout"], facts["files"][0]["path"]), (4, "here\n", "f"), "the answer")
        number = s.call_later("run_shell", progress=1, code="for i in 1 2 3; do echo $i; sleep 0.3; done", network="none")
        equal(facts_of(s.result(number))["stdout"], "1\n2\n3\n", "the output")
        true(s.notifications(), "no progress")
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        s.result(s.call_later("run_shell", meta={"traceparent": trace}, code="true", network="none"))
        with open(folder / "audit", encoding="utf-8") as file:
            contains(file.read(), trace[3:35], "the audit")
        number = s.call_later("run_shell", code="sleep 6000", network="none")
        service.await_sleep()
        s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        wait_until(lambda: not service.runs("running"), "the service to cancel the run")
        true(s.is_silent(0.5), "an answer to a cancelled call")
        result = s.call("run_shell", code="true", memory="100G")
        equal(result["isError"], True, "above the limit")


@test("mcp: options that describe no jail, and profiles that do not exist, are refused in one line")
def _():
    refused(cejail("mcp", "--json"), "'--json' is not for 'cejail mcp'")
    refused(cejail("mcp", "-c", "print(1)"), "not for 'cejail mcp'")
    refused(cejail("mcp", "file.py"), "takes no program")
    refused(cejail("mcp", "--tool-prefix", "a b"), "--tool-prefix")
    refused(cejail("mcp", "-p", "./x.json"), "is not a name")
    refused(cejail("mcp", "-p", "none-such"), "none-such")
    refused(cejail("mcp", "--files"), "--files")
    refused(cejail("mcp", "--memroy", "1G"), "--memory")
    refused(cejail("mcp", "--remote", "/none.sock"), "/none.sock")


@test("mcp: --help and -h list the options in 80 columns, and none that describes no jail")
def _():
    for option in ("--help", "-h"):
        out = cejail("mcp", option).exits(0).out
        equal([line for line in out.splitlines() if len(line) > 80], [], "long lines")
        contains(out, "--tool-prefix", "the help")
        contains(out, "--memory", "the help")
        lacks(out, "--json", "the help")


@test("mcp: --print-config prints the configuration of each known host")
def _():
    for host, key in (("claude", "mcpServers"), ("claude-code", "mcpServers"), ("vscode", "servers"), ("cursor", "mcpServers"),
                      ("windsurf", "mcpServers"), ("gemini", "mcpServers"), ("zed", "context_servers")):
        done = cejail("mcp", "-p", "shell", "--print-config", host, "--memory", "64M").exits(0)
        server = json.loads(done.out)[key]["cejail"]
        equal(server["args"], ["mcp", "-p", "shell", "--memory", "64M"], "the arguments")
        equal(os.path.realpath(server["command"]), os.path.realpath(CEJAIL), "the command")
        tried()
    refused(cejail("mcp", "--print-config", "emacs"), "vscode")
    url = "http://127.0.0.1:8080/mcp"
    for host, key in (("claude-code", "url"), ("vscode", "url"), ("cursor", "url"), ("windsurf", "serverUrl"), ("gemini", "httpUrl"), ("zed", "url")):
        servers, = json.loads(cejail("mcp", "--print-config", host, "--url", url).exits(0).out).values()
        equal(servers["cejail"][key], url, "the URL")
        true(servers["cejail"]["headers"]["Authorization"].startswith("Bearer "), "no token")
    refused(cejail("mcp", "--print-config", "claude", "--url", url), "--remote")
    refused(cejail("mcp", "--print-config", "zed", "--url", "ftp://x"), "http://")
    refused(cejail("mcp", "--url", url), "--print-config")
