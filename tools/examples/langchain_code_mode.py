#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Code mode for LangChain: one tool that runs Python code in a jail, which calls the other tools.

    from langchain_code_mode import code_mode

    agent = create_agent(model=..., tools=[code_mode([search, read])])

Run as a program, it shows what an agent would call: python3 tools/examples/langchain_code_mode.py
"""

import asyncio
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/python"))
import cejail  # noqa: E402

try:
    from langchain_core.tools import StructuredTool
except ImportError:  # without the framework: a class with the same members

    class StructuredTool:
        def __init__(self, coroutine, name, description):
            self.coroutine, self.name, self.description, self.args = coroutine, name, description, {}

        @classmethod
        def from_function(cls, coroutine, name=None, description=None):
            return cls(coroutine, name or coroutine.__name__, description or coroutine.__doc__)

        async def ainvoke(self, given):
            return await self.coroutine(**given)


def described(tool):
    async def handler(**given):
        return json.loads(json.dumps(await tool.ainvoke(given), default=str))

    return {"handler": handler, "description": tool.description, "inputSchema": {"type": "object", "properties": tool.args}}


def code_mode(tools, client=None, **limits):
    """The agent's loop does not see the calls: give no tool that it must ask a person about."""
    by_name = {tool.name: described(tool) for tool in tools}
    client = client or cejail.AsyncClient()

    async def run_code(code: str) -> str:
        result = await client.run(code, tools=by_name, **{"network": "none", "timeout": "30s", **limits})
        ended = "" if result.status == "exited" else f"\n[the program ended with the status '{result.status}']"
        return result.stdout + result.stderr + ended

    lines = [f"- {tool.name}({', '.join(tool.args)}): {tool.description}" for tool in tools]
    said = "Runs Python code. Print what you want to know. `import tools` has these functions, with keywords:\n"
    return StructuredTool.from_function(coroutine=run_code, name="run_code", description=said + "\n".join(lines))


async def square(number: int) -> int:
    """The square of a number."""
    return number * number


if __name__ == "__main__":
    tool = code_mode([StructuredTool.from_function(coroutine=square)])
    print(asyncio.run(tool.ainvoke({"code": "import tools\nprint(sum(tools.square(number=n) for n in range(10)))"})), end="")
