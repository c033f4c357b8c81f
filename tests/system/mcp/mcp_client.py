# SPDX-License-Identifier: Apache-2.0
"""A client of `cejail mcp` with nothing but Python's library: both eras of the protocol."""

import json
import os
import select
import signal
import subprocess
import time

import harness
from harness import Failure, SLOW, equal, true

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
TASKS = {"extensions": {META + "tasks": {}}}  # what a client declares that takes tasks


class Server:
    """Runs while the block does.  `version`: a legacy one to open with, MODERN, or None for neither."""

    def __init__(self, *options, version="2025-11-25", env=None, capabilities=None, **more):
        self.options, self.version, self.env, self.more = options, version, env, more
        self.capabilities = capabilities or {}
        self.number, self.messages, self.buffer = 0, [], b""

    def __enter__(self):
        env = harness.environment() if self.env is None else self.env
        self.process = harness.start("mcp", *self.options, stdin=subprocess.PIPE, env=env, **self.more)
        if self.version and self.version != MODERN:
            self.opened = self.ask("initialize", protocolVersion=self.version, capabilities={}, clientInfo={"name": "test", "version": "1"})
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, kind, *unused):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            code = self.process.wait(30 * SLOW)
        except subprocess.TimeoutExpired as late:
            self.process.kill()
            self.process.wait()
            raise harness.waited(30, "the end of standard input did not end the server") from late
        finally:
            self.error = self.process.stderr.read().decode(errors="replace") if self.process.stderr else ""
            for stream in (self.process.stdout, self.process.stderr):
                if stream:
                    stream.close()
        if kind is None:
            equal(code, 0, f"the exit status ({self.error!r})")

    # --- lines ------------------------------------------------------------------

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps(message).encode() + b"\n")

    def line(self, seconds=30):
        """The next message, whatever it is."""
        end = time.monotonic() + seconds * SLOW
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise harness.waited(seconds, f"no message; so far {self.buffer[:200]!r}")
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                end = harness.await_exit(self.process)
                said = self.process.stderr.read() if self.process.stderr else b""
                raise Failure(f"the server closed its output; it ended with {end} and said {said!r}")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\n", 1)
        message = json.loads(text, object_pairs_hook=harness.unique_keys)
        equal(message["jsonrpc"], "2.0", "the version of JSON-RPC")
        return message

    def is_silent(self, seconds):
        return not self.buffer and not select.select([self.process.stdout], [], [], seconds)[0]

    # --- requests ----------------------------------------------------------------

    def request(self, method, progress=None, meta=None, **params):
        """Sends it; returns its id."""
        self.number += 1
        meta = dict(meta or {})
        if self.version == MODERN:
            meta.update({META + "protocolVersion": MODERN, META + "clientCapabilities": self.capabilities})
        if progress is not None:
            meta["progressToken"] = progress
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, number, seconds=60):
        """The answer to a request; what else arrives is kept."""
        for i, message in enumerate(self.messages):
            if message.get("id") == number:
                return self.messages.pop(i)
        while True:
            message = self.line(seconds)
            if message.get("id") == number:
                return message
            self.messages.append(message)

    def ask(self, method, **params):
        return self.answer(self.request(method, **params))

    def call_later(self, tool, progress=None, meta=None, **arguments):
        return self.request("tools/call", progress, meta, name=tool, arguments=arguments)

    def call(self, tool, **arguments):
        """The result of a tool."""
        return self.result(self.call_later(tool, **arguments))

    def result(self, number):
        message = self.answer(number)
        if "error" in message:
            raise Failure(f"an error: {message['error']}")
        return message["result"]

    def python(self, code, **arguments):
        return self.call("run_python", code=code, **arguments)

    def notifications(self):
        return [message for message in self.messages if "id" not in message]

    # --- processes ----------------------------------------------------------------

    def below(self):
        """The processes below the server."""
        todo, found = [self.process.pid], []
        while todo:
            children = harness.children_of(todo.pop())
            found += children
            todo += children
        return found

    def await_sleep(self):
        def sleeps():
            return any(" sleep " in (harness.describe_process(pid) or "") for pid in self.below())

        harness.wait_until(sleeps, "the program to sleep")

    @staticmethod
    def await_end(pids, seconds=30):
        def runs(pid):
            return os.path.exists(f"/proc/{pid}") and " (Z)" not in (harness.describe_process(pid) or "(Z)")

        harness.wait_until(lambda: not any(map(runs, pids)), "the end of all processes", seconds)

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)


def facts_of(result):
    """The structured result, which is also the text of the first block."""
    facts = result["structuredContent"]
    equal(result["content"][0]["type"], "text", "the type of the first block")
    equal(json.loads(result["content"][0]["text"]), facts, "the text")
    return facts


def check_schema(value, schema, what):
    try:
        import jsonschema
    except ImportError:
        return
    validator = jsonschema.Draft202012Validator(schema)
    problems = [f"{'/'.join(map(str, p.absolute_path))}: {p.message}" for p in validator.iter_errors(value)]
    true(not problems, f"{what} is not as its schema says: {problems[:5]}")
