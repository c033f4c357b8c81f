#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A back end for code mode: a model's program calls functions of this process, from a jail without network.

    python3 tools/examples/code_mode.py

The model writes one program in place of many tool calls, and reads only what the program prints.  See cejail-tools(7).
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/python"))
import cejail  # noqa: E402


class CodeMode:
    def __init__(self, tools, client=None, **limits):
        """tools: the functions that programs may call, by name.  Nothing else of this process can be reached."""
        self.tools, self.client = tools, client or cejail.Client()
        self.limits = {"network": "none", "timeout": "30s", **limits}

    def execute(self, code):
        """What the model reads."""
        result = self.client.run(code, tools=self.tools, **self.limits)
        for call in result.calls:
            print(f"audit: {result.id}: {call.name}: {call.count} calls, {call.failed} failed, {call.refused} refused", file=sys.stderr)
        return result.stdout + result.stderr + ("" if result.status == "exited" else f"[the program's status: {result.status}]\n")


ISSUES = {1: ("it hangs", "bug"), 2: ("more colours", "wish"), 3: ("it crashes", "bug")}
PROGRAM = """
from tools import ToolError, issues
for number in issues.search(label="bug"):
    print(number, issues.read(number=number)["title"])
try:
    issues.close(number=1)
except ToolError as problem:
    print("not closed:", problem)
"""


def search(label: str) -> "list[int]":
    """The numbers of the issues with a label."""
    return [number for number, (_, found) in ISSUES.items() if found == label]


async def read(number: int) -> "dict[str, str]":
    """An issue: title and label."""
    return dict(zip(("title", "label"), ISSUES[number]))


def close(number: int) -> None:
    """Closes an issue."""
    raise PermissionError(f"a person must close issue {number}")


if __name__ == "__main__":
    print(CodeMode({"issues.search": search, "issues.read": read, "issues.close": close}).execute(PROGRAM), end="")
