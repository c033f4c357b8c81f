#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Code mode for the OpenAI Agents SDK: one function tool that runs Python code in a jail, which calls the others.

    from agents_code_mode import code_mode

    agent = Agent(name="...", tools=[code_mode([search, read])])

Run as a program, it shows what an agent would call: python3 tools/examples/agents_code_mode.py
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/python"))
import cejail  # noqa: E402

try:
    from agents import FunctionTool
except ImportError:  # without the framework: a class with the same members

    @dataclass
    class FunctionTool:
        name: str
        description: str
        params_json_schema: dict
        on_invoke_tool: Any
        needs_approval: Any = False
        tool_input_guardrails: Any = None


SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"], "additionalProperties": False}


def described(tool, context):
    async def handler(**given):
        return json.loads(json.dumps(await tool.on_invoke_tool(context, json.dumps(given)), default=str))

    return {"handler": handler, "description": tool.description, "inputSchema": tool.params_json_schema}


def code_mode(tools, client=None, **limits):
    """A tool that a person must approve, or with guardrails, is refused: the framework does not see the calls."""
    for tool in tools:
        if tool.needs_approval or tool.tool_input_guardrails:
            raise ValueError(f"the tool '{tool.name}' needs an approval or has guardrails; give it to the agent itself")
    client = client or cejail.AsyncClient()

    async def run_code(context, given):
        by_name = {tool.name: described(tool, context) for tool in tools}
        result = await client.run(json.loads(given)["code"], tools=by_name, **{"network": "none", "timeout": "30s", **limits})
        ended = "" if result.status == "exited" else f"\n[the program ended with the status '{result.status}']"
        return result.stdout + result.stderr + ended

    lines = [f"- {tool.name}({', '.join(tool.params_json_schema.get('properties', {}))}): {tool.description}" for tool in tools]
    said = "Runs Python code. Print what you want to know. `import tools` has these functions, with keywords:\n"
    return FunctionTool("run_code", said + "\n".join(lines), SCHEMA, run_code)


async def square(context, given):
    return json.loads(given)["number"] ** 2


if __name__ == "__main__":
    numbers = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"], "additionalProperties": False}
    tool = code_mode([FunctionTool("square", "The square of a number.", numbers, square)])
    given = json.dumps({"code": "import tools\nprint(sum(tools.square(number=n) for n in range(10)))"})
    print(asyncio.run(tool.on_invoke_tool(None, given)), end="")
