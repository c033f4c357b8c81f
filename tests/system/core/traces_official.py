# SPDX-License-Identifier: Apache-2.0
"""Trace files as OpenTelemetry's own definitions read them.  tests/packages fetches these."""

import os
import shutil
import subprocess

from harness import *  # noqa: F403
from spans import TRACEPARENT, answering

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.environ.get("CEJAIL_MCP_CLIENTS", f"{PROBES}/../packages")


@test("each line of a trace file is a message of OpenTelemetry's protobuf definitions, with nothing beside it", limit=120)
def _():
    node = shutil.which("node")
    if not node:
        raise Skip("node is not installed")
    if not os.path.exists(f"{PACKAGES}/fetched"):
        raise Skip("the definitions are not here: tests/packages fetches them")
    with Folder() as f:
        options = ("-p", "base", "--network", "none", "--trace-file", f / "spans")
        run(*options, "--", "/bin/true").exits(0)
        run(*options, "-t", "100ms", "--", "/bin/sleep", "600", env=environment(TRACEPARENT=TRACEPARENT)).exits(124)
        with answering([{"result": 3}]) as (more, fd):
            script = "echo '{\"id\":1,\"name\":\"add\"}' >&4; read -r answer <&4"
            run(*options, *more, "--", "/bin/sh", "-c", script, pass_fds=[fd]).exits(0)
        done = finish(subprocess.Popen([node, f"{HERE}/otlp.cjs", os.path.realpath(PACKAGES), f / "spans"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()), 60, None, ["node"])  # fmt: skip
        done.exits(0).says("run base\nrun base\nrun base,call add\n")
