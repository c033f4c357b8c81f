# SPDX-License-Identifier: Apache-2.0
"""POST /mcp against the official conformance suite and the official clients over HTTP.

tests/packages fetches both.  The suite cannot send a token, so a proxy of the test adds it."""

import glob
import json
import os
import re
import socket
import subprocess
import threading

from harness import *  # noqa: F403
from mcp_client import MODERN
from mcp_sdk import CLIENTS, HERE, check, find_node, node
from service import TOKEN, Service, bearer, one_token_config

# All of the suite comes from one caller.
CONFIG = {"mcp": {"profiles": ["shell"]}, "callers": {"token:default": {"rate_per_minute": 0, "network": "none"}}}


class Proxy:
    """Listens on a port while the block runs; adds the token to each request.  One request a connection."""

    def __init__(self, port):
        self.target, self.listener = ("127.0.0.1", port), socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *unused):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = client.recv(65536)
            if not piece:
                client.close()
                return
            head += piece
        head, body = head.split(b"\r\n\r\n", 1)
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        lines += [b"Connection: close"] + [f"{name}: {value}".encode() for name, value in bearer(TOKEN).items()]
        with client, socket.create_connection(self.target) as server:
            server.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
            threading.Thread(target=pump, args=(client, server), daemon=True).start()
            pump(server, client)


def pump(source, target):
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def port_of(config):
    return int(config["tcp"].split(":")[1])


def check_fixtures(results):
    """What fails and is not in the baseline, because the suite does not score it, lacks a tool of the suite's own server."""
    with open(f"{HERE}/sdk/conformance.yml", encoding="ascii") as file:
        expected = {line.strip().removeprefix("- ") for line in file}
    for path in glob.glob(f"{results}/**/checks.json", recursive=True):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*", "", os.path.basename(os.path.dirname(path)))
        with open(path, encoding="utf-8") as file:
            for row in json.load(file):
                if row["status"] == "FAILURE" and f"{scenario}:{row['id']}" not in expected:
                    true(re.search("unknown tool|Not testable|fixture|failing_job", row.get("errorMessage", "")), f"{scenario}: {row}")
                    tried()


for revision in ("2025-11-25", MODERN):

    @test(f"mcp http: the conformance suite finds no failed requirement of {revision} that applies", limit=180)
    def _(revision=revision):
        program = find_node()
        with Folder() as folder:
            config = one_token_config(folder)
            with Service(config={**config, **CONFIG}), Proxy(port_of(config)) as proxy:
                done = finish(subprocess.Popen(
                    [program, "--import", f"{HERE}/sdk/old_node.mjs", f"{CLIENTS}/node_modules/.bin/conformance", "server",
                     "--url", f"http://127.0.0.1:{proxy.port}/mcp", "--requirements", revision,
                     "--expected-failures", f"{HERE}/sdk/conformance.yml", "--output-dir", folder / "results"],
                    cwd=folder.path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()), 150, None)
            check_fixtures(folder / "results")
        if done.code != 0:
            raise Failure(done.out[done.out.find("=== SUMMARY"):][-3000:] or done.err)
        contains(done.out, "tools-list: ", "the summary")


for sdk, mode in (("1", "legacy"), ("2", "legacy"), ("2", "auto"), ("2", MODERN)):

    @test(f"mcp http: the official client, version {sdk}, mode {mode}, calls tools, cancels and closes", limit=120)
    def _(sdk=sdk, mode=mode):
        find_node()
        with Folder() as folder:
            config = one_token_config(folder)
            with Service(config={**config, **CONFIG}) as service:
                check(node(f"{HERE}/sdk/client.mjs", sdk, mode, f"http://127.0.0.1:{port_of(config)}/mcp", TOKEN))
                wait_until(lambda: not service.workers() or not any(" sleep " in (describe_process(pid) or "") for pid in service.workers()), "the cancelled run to end")
