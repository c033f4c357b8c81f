# SPDX-License-Identifier: Apache-2.0
"""The trace file of `cejail mcp`: a span for each run of its tools."""

import os

from harness import *  # noqa: F403
from mcp_client import MODERN, Server
from spans import ERROR, OK, PARENT_ID, TRACE_ID, TRACEPARENT, lines_of, text_of


@test("cejail mcp --trace-file writes the runs of its tools, below the span that the client names")
def _():
    with Folder() as f:
        options = ("-p", "shell", "--network", "none", "--trace-file", f / "spans")
        with Server(*options, version=MODERN) as s:
            s.result(s.call_later("run_shell", meta={"traceparent": TRACEPARENT}, code=f"echo {SECRET}"))
            session = s.call("session_create", profile="shell")["structuredContent"]["session"]
            s.call("run_shell", session=session, code="exit 3")
        first, second = [line.run for line in lines_of(f / "spans")]
        equal((first.has(OK).name, first.trace, first.parent), ("run shell", TRACE_ID, PARENT_ID), "the first run")
        equal((second.has(ERROR, session=session, exit_code=3).name, second.parent), ("exec shell", None), "the second")
        lacks(text_of(f / "spans"), SECRET, "the file")
        refused(cejail("mcp", "--trace-file", f.path), "trace file", f.path)
        refused(cejail("mcp", "--remote=/absent.sock", "--trace-file", f / "none"), "--trace-file", "trace_file")
        true(not os.path.exists(f / "none"), "a file was made")
