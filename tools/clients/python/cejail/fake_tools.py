# SPDX-License-Identifier: Apache-2.0
"""An MCP server on standard input and output that answers from a file, for the tests of programs that call tools.

    python3 -m cejail.fake_tools FILE
    python3 -m cejail.fake_tools FILE --check

It can stand in servers.json: {"mcpServers": {"files": {"command": "python3", "args": ["-m", "cejail.fake_tools", FILE]}}}

    {"tools": [{"name": "search", "description": "...", "inputSchema": {...}}, ...],
     "answers": {"search": [{"arguments": {"query": "a"}, "result": [1, 2]}, {"arguments": {"query": "b"}, "error": "no such thing"}],
                 "time": "12:00", "remove": {"error": "nothing can be removed"}}}

A tool has one answer for all arguments, or a list of answers, each for its arguments.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, Optional, TextIO, Union

from .fake import Mistake, _list, _object, _parse, _text

LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
SERVER = {"name": "cejail.fake_tools", "version": "1"}

# --- the file -----------------------------------------------------------------------------------


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mistake(f"{where}: an object is expected")
    return value


def _tool(value: Any, where: str) -> dict[str, Any]:
    _text(_mapping(value, where).get("name"), f"{where}.name")
    return {"inputSchema": {"type": "object"}, **value}


def _rows(answer: Any) -> list[dict[str, Any]]:
    """An answer for all arguments becomes one row without arguments."""
    is_row = [isinstance(row, dict) and "arguments" in row and row.keys() - {"arguments"} in ({"result"}, {"error"}) for row in (answer if isinstance(answer, list) else [])]
    if is_row and all(is_row):
        return list(answer)
    if isinstance(answer, dict) and set(answer) == {"error"}:
        return [answer]
    return [{"result": answer}]


class Fake:
    """What the file says.  Raises Mistake, with the place of the mistake."""

    def __init__(self, text: Union[str, bytes]) -> None:
        made = _object({"tools": _list(_tool), "answers": _mapping}, "tools")(_parse(text), "the file")
        self.tools: list[dict[str, Any]] = made["tools"]
        names = [tool["name"] for tool in self.tools]
        for name in names:
            if names.count(name) > 1:
                raise Mistake(f"tools: there are two tools '{name}'")
        for name, answer in made.get("answers", {}).items():
            if name not in names:
                raise Mistake(f"answers: there is no tool '{name}'")
            for i, row in enumerate(_rows(answer)):
                if "error" in row:
                    _text(row["error"], f"answers.{name}[{i}].error")
        self.answers = {name: _rows(answer) for name, answer in made.get("answers", {}).items()}

    def answer(self, name: str, arguments: Any) -> dict[str, Any]:
        """{"result": ANY} or {"error": "why"}"""
        for row in self.answers.get(name, []):
            if row.get("arguments", arguments) == arguments:
                return row
        return {"error": f"the fake server has no answer of '{name}' for the arguments {json.dumps(arguments)}; add it to \"answers\""}


# --- MCP ----------------------------------------------------------------------------------------


class Fault(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Server:
    """Answers the messages of one client."""

    def __init__(self, fake: Fake) -> None:
        self.fake = fake
        self.version: Optional[str] = None  # of `initialize`

    def take(self, line: str) -> Optional[str]:
        """The line of the answer; None: a notification or an answer has none."""
        id = None
        try:
            message = json.loads(line)
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise Fault(-32600, "a message is an object with \"jsonrpc\": \"2.0\"")
            if "id" not in message or "method" not in message:
                return None
            id = message["id"]
            params = message.get("params", {})
            if not isinstance(params, dict):
                raise Fault(-32602, "\"params\" must be an object")
            answer = {"result": self._answer(str(message["method"]), params)}
        except ValueError:
            answer = {"error": {"code": -32700, "message": "the line is not JSON"}}
        except Fault as fault:
            answer = {"error": fault.error}
        return json.dumps({"jsonrpc": "2.0", "id": id, **answer})

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        meta = params.get("_meta", {})
        version = meta.get(f"{META}protocolVersion") if isinstance(meta, dict) else None
        if version is None:
            return self._legacy(method, params)
        if version != MODERN:
            raise Fault(-32022, "the protocol version is not supported", {"supported": [MODERN], "requested": version})
        if not isinstance(meta.get(f"{META}clientCapabilities"), dict):
            raise Fault(-32602, f"\"{META}clientCapabilities\" is missing in \"_meta\"")
        found = {"server/discover": self._discover, "tools/list": self._list, "tools/call": self._call}.get(method)
        return {"resultType": "complete", "_meta": {f"{META}serverInfo": SERVER}, **self._found(found, method)(params, True)}

    def _legacy(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "ping":
            return {}
        if method != "initialize" and not self.version:
            raise Fault(-32602, f"the request has no \"{META}protocolVersion\" in \"_meta\", and there was no \"initialize\" before")
        found = {"initialize": self._initialize, "tools/list": self._list, "tools/call": self._call}.get(method)
        return self._found(found, method)(params, False)

    @staticmethod
    def _found(found: Optional[Callable[..., dict[str, Any]]], method: str) -> Callable[..., dict[str, Any]]:
        if not found:
            raise Fault(-32601, f"unknown method: {method:.64}")
        return found

    def _initialize(self, params: dict[str, Any], is_modern: bool) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        self.version = asked if asked in LEGACY else LEGACY[0]
        return {"protocolVersion": self.version, "capabilities": {"tools": {}}, "serverInfo": SERVER}

    def _discover(self, params: dict[str, Any], is_modern: bool) -> dict[str, Any]:
        return {"supportedVersions": [MODERN, *LEGACY], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}

    def _list(self, params: dict[str, Any], is_modern: bool) -> dict[str, Any]:
        return {"tools": self.fake.tools, **({"ttlMs": 0, "cacheScope": "private"} if is_modern else {})}

    def _call(self, params: dict[str, Any], is_modern: bool) -> dict[str, Any]:
        name, arguments = str(params.get("name")), params.get("arguments", {})
        if name not in [tool["name"] for tool in self.fake.tools]:
            raise Fault(-32602, f"unknown tool: {name:.64}")
        answer = self.fake.answer(name, arguments)
        if "error" in answer:
            return {"content": [{"type": "text", "text": answer["error"]}], "isError": True}
        value = answer["result"]
        if isinstance(value, str):
            return {"content": [{"type": "text", "text": value}]}
        # Before 2026-07-28 only an object may be structured content.
        structured = {"structuredContent": value} if is_modern or isinstance(value, dict) else {}
        return {"content": [{"type": "text", "text": json.dumps(value)}], **structured}


def serve(fake: Fake, lines: TextIO, out: TextIO) -> None:
    """Answer until the end of the lines."""
    server = Server(fake)
    for line in lines:
        answer = server.take(line)
        if answer is not None:
            print(answer, file=out, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m cejail.fake_tools", description="An MCP server that answers from a file.")
    parser.add_argument("file", help='{"tools": [...], "answers": {...}}')
    parser.add_argument("--check", action="store_true", help="report what is wrong with the file, and exit")
    options = parser.parse_args()
    try:
        with open(options.file, "rb") as file:
            fake = Fake(file.read())
    except (Mistake, OSError) as problem:
        print(f"cejail.fake_tools: {options.file}: {problem.strerror if isinstance(problem, OSError) else problem}", file=sys.stderr)
        return 1
    if not options.check:
        for stream in (sys.stdin, sys.stdout):
            stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[attr-defined]
        try:
            serve(fake, sys.stdin, sys.stdout)
        except (BrokenPipeError, KeyboardInterrupt):
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
