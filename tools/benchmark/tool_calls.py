# SPDX-License-Identifier: Apache-2.0
"""The calls of a program to tools of its caller: what one costs, and what a model reads of the tools."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

from . import turns
from .agents import Server
from .bench import Table, compare, ratio
from .commands import run
from .service import NotMeasured, last_line
from .turns import PATH, milliseconds, percentile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
CALLS = 1000  # of one run
WARM_UP = 1


def microseconds(ns):
    return round(ns / 1000, 1)


def call_columns(took_ns):
    return {"call_us": microseconds(percentile(took_ns, 50)), "call_p95_us": microseconds(percentile(took_ns, 95))}


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.chmod(path, 0o644)
    return path


# --- one call -------------------------------------------------------------------------------------


def numbers(words, env):
    """(the numbers that the command prints, its microseconds)"""
    began = time.monotonic()
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=turns.PATIENCE_S, check=False)
    if done.returncode != 0:
        raise NotMeasured(last_line(done.stderr))
    return list(map(int, done.stdout.split())), (time.monotonic() - began) * 1e6


def calling(bench, path, list_file):
    """A run of the program that makes the calls, below the one that answers them."""
    tool = bench.tool("tool_calls")
    limits = ["--calls-max", str(CALLS), "--calls-rate", "1000000"]
    return [tool, "answer", *run(path, "--tools", list_file, "--calls-fd", "{fd}", *limits, "-p", "base", "-f", f"{tool}:/box/calls"),
            "--", "/box/calls", "call", str(CALLS)]


def time_calls(bench, table, list_file):
    """Beside a ping on a socket pair between two processes."""
    racers = {"ping on a socket pair": [bench.tool("tool_calls"), "ping", str(CALLS)]}
    racers.update({f"{name}, a call": calling(bench, path, list_file) for name, path in bench.binaries})
    took, walls = {name: [] for name in racers}, {name: [] for name in racers}
    for number in range(-WARM_UP, bench.count(0.2)):
        names = list(racers)
        for i in range(len(names)):
            name = names[(number + i) % len(names)]
            if name not in racers:
                continue
            try:
                call_ns, wall_us = numbers(racers[name], bench.callers[0].env)
            except (NotMeasured, OSError, ValueError, subprocess.SubprocessError) as error:
                table.skip(name, str(error))
                del racers[name]
                continue
            if number >= 0:
                took[name] += call_ns
                walls[name].append(wall_us)
    rows = {name: table.add(name, **call_columns(took[name])) for name in racers}
    compare(rows, "call_us", "ping on a socket pair", "over_first")
    for name in list(racers)[1:]:
        wall_us = percentile(walls[name], 50)
        table.add(name.replace("a call", f"a run with {CALLS} calls"), wall_ms=milliseconds(wall_us), rate=round(CALLS * 1e6 / wall_us, 1))


def time_unused(bench, table, list_file):
    """A run with tools that calls none, beside one without.  Nobody reads the other end of the socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.set_inheritable(True)
        given = ["--tools", list_file, "--calls-fd", str(theirs.fileno())]
        for name, path in bench.binaries:
            argvs = {f"{name}, {what}": run(path, *words, "-p", "base", "--", "/bin/true")
                     for what, words in (("a run without tools", []), ("a run with tools, uncalled", given))}
            for who in bench.callers:
                compare(bench.turns(table, who, argvs), "wall_ms", f"{name}, a run without tools", "over_first")


# --- by way of MCP --------------------------------------------------------------------------------


def packages():
    """The npm packages of the official client and servers."""
    place = os.environ.get("CEJAIL_MCP_CLIENTS", f"{TOP}/build/packages")
    if not shutil.which("node", path=PATH):
        raise NotMeasured("Node.js is not installed")
    if not os.path.exists(f"{place}/fetched"):
        raise NotMeasured("the official client and servers are not here: 'tests/packages build/packages' fetches them")
    return os.path.realpath(place)


def official(place, name, *args):
    """An entry of servers.json."""
    program = f"{place}/node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    return {"command": shutil.which("node", path=PATH), "args": [program, *args], "allow": ["*"]}


def time_mcp(bench, table):
    """A tool that the official client calls itself, beside the same tool called by a program of run_node."""
    try:
        place = packages()
    except NotMeasured as error:
        table.skip("the official client of MCP", str(error))
        return
    servers = write_json(f"{bench.work}/one-server.json", {"mcpServers": {"everything": official(place, "everything")}})
    for name, path in bench.binaries:
        words = [shutil.which("node", path=PATH), f"{HERE}/tool_calls.mjs", place, servers, str(bench.count(0.1)),
                 path, "mcp", "-p", "node", "--network", "none", "--tools-from", servers]
        done = subprocess.run(words, env=bench.callers[0].env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            table.skip(f"{name} mcp --tools-from", last_line(done.stderr))
            continue
        seen = json.loads(done.stdout)
        rows = {key: table.add(row, **call_columns(seen[key])) for key, row in (
            ("direct", "official client of MCP"), ("inside", f"{name}, mcp --tools-from"))}
        compare(rows, "call_us", "direct", "over_first")


def tools(bench):
    table = Table()
    list_file = write_json(f"{bench.work}/tools.json", [{"name": "add"}])
    time_calls(bench, table, list_file)
    time_unused(bench, table, list_file)
    time_mcp(bench, table)
    return table


# --- what the model reads ---------------------------------------------------------------------------

SERVERS, OBJECTS, VERBS = 3, ("issue", "branch", "comment", "release", "label"), ("search", "get", "create", "update")


def made_tool(server, verb, thing):
    """As long as the tools of the servers that people use are."""
    properties = {
        "project": {"type": "string", "description": f"The project that has the {thing}, as OWNER/NAME"},
        "query": {"type": "string", "description": f"Words that the {thing} contains, or its number"},
        "limit": {"type": "integer", "description": "How many entries the answer has at most", "minimum": 1, "maximum": 100},
    }
    return {
        "name": f"{verb}_{thing}",
        "description": f"{verb.capitalize()} a {thing} of a project at {server}. Returns its title, text, author, state and times.",
        "inputSchema": {"type": "object", "properties": properties, "required": ["project", "query"]},
    }


def made_servers(work):
    """Three servers with 60 tools."""
    entries = {}
    for server in ("github", "gitlab", "forgejo")[:SERVERS]:
        path = write_json(f"{work}/{server}.json", {"tools": [made_tool(server, verb, thing) for thing in OBJECTS for verb in VERBS]})
        entries[server] = {"command": sys.executable, "args": ["-m", "cejail.fake_tools", path], "allow": ["*"],
                           "env": {"PYTHONPATH": f"{TOP}/tools/clients/python", "PYTHONDONTWRITEBYTECODE": "1"}}
    return entries


def official_servers(work):
    place = packages()
    return {"everything": official(place, "everything"), "filesystem": official(place, "filesystem", work), "memory": official(place, "memory")}


class Listed(Server):
    """A `cejail mcp`; read() is what a model reads of its tools."""

    def __init__(self, bench, path, *options):
        self.words = [path, "mcp", "-p", "python", "--network", "none", *options]
        self.env = bench.callers[0].env
        self.number = 0

    def read(self):
        return text_for_model(self.request("tools/list", {})["tools"])


def text_for_model(listed):
    """The parts of tools that hosts pass on."""
    kept = [{key: tool[key] for key in ("name", "description", "inputSchema") if key in tool} for tool in listed]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def sizes(text):
    return {"bytes": len(text.encode()), "words": len(re.findall(r"\w+", text))}


def catalogue(path, servers):
    """Every tool of the servers, with its schema."""
    program = os.path.join(os.path.dirname(path), "../libexec/cejail/mcp")
    done = subprocess.run([program, "broker", "--tools-from", servers], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise NotMeasured(last_line(done.stderr))
    return json.loads(done.stdout)["tools"]


def list_of(bench, table, path, label, entries):
    """The names in the description of run_python, beside all schemas."""
    servers = write_json(f"{bench.work}/servers.json", {"mcpServers": entries})
    listed = catalogue(path, servers)
    with Listed(bench, path) as without, Listed(bench, path, "--tools-from", servers) as with_tools:
        before, after = sizes(without.read()), sizes(with_tools.read())
    every = sizes(text_for_model(listed))
    more = {key: after[key] - before[key] for key in after}
    label = f"{label}: {len(listed)} tools of {len(entries)} servers"
    table.add(f"{label}, all schemas", **every, over_first=1.0)
    table.add(f"{label}, --tools-from", **more, over_first=ratio(more["bytes"], every["bytes"]))


def tool_list(bench):
    """Bytes and words; a tokenizer differs with each model."""
    table = Table()
    for label, make in (("made up", made_servers), ("official", official_servers)):
        try:
            list_of(bench, table, bench.binaries[0][1], label, make(bench.work))
        except (NotMeasured, subprocess.SubprocessError, OSError) as error:
            table.skip(label, str(error))
    return table
