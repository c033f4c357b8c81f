# SPDX-License-Identifier: Apache-2.0
"""The MCP server: a call of run_python beside `cejail run` and beside the service.

All of them are asked from here, in turns: each time is from the request to the whole answer.
"""

import json
import os
import socket
import subprocess
import time

from .bench import Table, ratio
from .service import NotMeasured, Service, last_line
from .turns import PATH, milliseconds, percentile

CODE = "print(1)"
PAUSE_S = 0.05  # between two requests: the pool fills again
WARM_UP = 3


class Server:
    """`with Server(...) as ask:` is a `cejail mcp`; ask() makes a call and reads its answer."""

    def __init__(self, service, options):
        self.words = [service.binary, "mcp", *options]
        self.env = {"PATH": PATH, "HOME": service.dir, "XDG_CONFIG_HOME": service.dir, "XDG_RUNTIME_DIR": service.runtime}
        self.number = 0

    def __enter__(self):
        self.process = subprocess.Popen(
            self.words, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def request(self, method, params):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())["result"]
        except (OSError, ValueError, KeyError) as error:
            self.process.kill()
            raise NotMeasured(last_line(self.process.stderr.read().decode(errors="replace"))) from error

    def ask(self):
        return not self.request("tools/call", {"name": "run_bench", "arguments": {"code": CODE}})["isError"]


def ask_service(service):
    body = json.dumps({"profile": "bench", "code": CODE}).encode()
    head = f"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    answer = b""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(service.socket)
        caller.sendall(head.encode() + body)
        while piece := caller.recv(65536):
            answer += piece
    return json.loads(answer.partition(b"\r\n\r\n")[2])["exit_code"] == 0


def ask_run(service):
    profile = f"{service.dir}/cejail/profiles/bench.json"
    done = subprocess.run([service.binary, "run", "--json", "-p", profile, "-c", CODE], env={"PATH": PATH, "XDG_RUNTIME_DIR": service.runtime},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return json.loads(done.stdout)["exit_code"] == 0


def in_turns(racers, rounds):
    """{name: microseconds of each}; each round begins with another one."""
    samples = {name: [] for name, _ in racers}
    for number in range(-WARM_UP, rounds):
        for i in range(len(racers)):
            name, ask = racers[(number + i) % len(racers)]
            began = time.monotonic()
            if not ask():
                raise NotMeasured(f"{name}: the program failed")
            if number >= 0:
                samples[name].append((time.monotonic() - began) * 1e6)
            time.sleep(PAUSE_S)
    return samples


def race(bench, name, path, table):
    with Service(bench, path, "python", "interpreter", 2, CODE) as service:
        remote = ["--remote", service.socket, "-p", "bench"]
        with Server(service, ["-p", "bench"]) as here, Server(service, ["-p", "bench", "--nofile", "512"]) as cold, Server(service, remote) as there:
            samples = in_turns([
                ("run", lambda: ask_run(service)),
                ("service", lambda: ask_service(service)),
                ("mcp", here.ask),
                ("mcp, nothing prepared", cold.ask),
                ("mcp --remote", there.ask),
            ], bench.count(0.5))
    middle = {who: milliseconds(percentile(values, 50)) for who, values in samples.items()}
    for who, values in samples.items():
        table.add(f"{name}, {who}", bench.callers[0].name, whole_ms=middle[who], whole_p99_ms=milliseconds(percentile(values, 99)),
                  over_service=ratio(middle[who], middle["service"]))


def call(bench):
    """One client, who leaves the server time to prepare the next jail."""
    table = Table()
    for name, path in bench.binaries:
        if not os.path.exists(os.path.join(os.path.dirname(path), "../libexec/cejail/mcp")):
            table.skip(name, "it has no MCP server")
            continue
        try:
            race(bench, name, path, table)
        except NotMeasured as error:
            table.skip(name, str(error))
    return table
