#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A tool for language models that runs Python code in a jail: a sketch of an MCP server on standard input and output.

    echo '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}' | python3 tools/examples/tool_handler.py

It needs cejail in PATH.  Each line is a JSON-RPC message.  What the model gets back is what helps it to correct its
code: the output, and in one sentence why the program ended.
"""

import json
import subprocess
import sys

TOOL = {
    "name": "run_python",
    "description": "Run Python 3 code without a network, for at most 10 seconds and 256 MiB. Returns what it prints.",
    "inputSchema": {
        "type": "object",
        "properties": {"code": {"type": "string"}},
        "required": ["code"],
    },
}
LIMITS = ["--timeout", "10s", "--memory", "256M", "--max-output", "16K"]
REASONS = {
    "timeout": "The program was stopped: it took more than 10 seconds.",
    "oom": "The program was stopped: it used more than 256 MiB of memory.",
}


def run_python(code):
    """What the model reads, and whether the program failed."""
    command = ["cejail", "run", "--json", "--quiet", "--no-report", "--network", "none", *LIMITS, "-p", "python", "-"]
    done = subprocess.run(command, input=code, stdout=subprocess.PIPE, text=True, check=False)
    result = json.loads(done.stdout)
    if result["status"] == "setup_error":
        print(f"cejail: {result['error']['message']}", file=sys.stderr)  # for the operator, not for the model
        return "The sandbox is not available.", True
    text = result["stdout"].get("text", "") + result["stderr"].get("text", "")
    if result["status"] == "exited":
        return text or "(no output)", result["exit_code"] != 0
    return text + REASONS.get(result["status"], f"The program ended by {result['status']}."), True


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "cejail-example", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call" and params.get("name") == TOOL["name"]:
        text, is_error = run_python(**params["arguments"])
        return {"content": [{"type": "text", "text": text}], "isError": is_error}
    raise ValueError(f"no method or tool '{params.get('name', method)}'")


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue  # a notification wants no answer
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        reply["result"] = answer(message["method"], message.get("params", {}))
    except (ValueError, TypeError) as problem:
        reply["error"] = {"code": -32602, "message": str(problem)}
    print(json.dumps(reply), flush=True)
