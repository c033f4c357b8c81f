# SPDX-License-Identifier: Apache-2.0
"""The trace file of a service and of `cejail mcp`: a span for each run, exec and call."""

import json
import os
import signal

from calls import Calls, program
from harness import *  # noqa: F403
from service import Service
from spans import ERROR, OK, PARENT_ID, TRACE_ID, TRACEPARENT, line_of, lines_of, text_of

TRUE = {"profile": "base", "command": ["/bin/true"], "network": "none"}


def traced(folder, **more):
    return Service(config={"trace_file": folder / "spans", **more})


@test("a run of a service is a span below that of its request, and its calls are spans below it")
def _():
    def answer(event):
        return {"error": {"message": f"{SECRET}-1"}} if event["name"] == "search" else {"result": f"{SECRET}-2"}

    code = f"call('github.issues', x='{SECRET}-3'); call('search'); call('{SECRET}-4'); print('{SECRET}-5'); sys.exit(3)"
    with Folder() as f, traced(f) as s, Calls(s, program(code, id="mine"), headers={"traceparent": TRACEPARENT}) as calls:
        value = calls.serve(answer)
        line = line_of(f / "spans")
        line.run.has(ERROR, id="mine", profile="python", status="exited", exit_code=3, calls=2, calls_refused=1, session=None, limits_hit=[])
        equal((line.run.name, line.run.trace, line.run.parent), ("run python", TRACE_ID, PARENT_ID), "name, trace and parent")
        equal(value["traceparent"], f"00-{TRACE_ID}-{line.run.id}-01", "traceparent of the result")
        good, bad = line.calls
        good.has(OK, tool="github.issues", outcome="answered")
        bad.has(ERROR, tool="search", outcome="failed")
        lacks(text_of(f / "spans"), SECRET, "the file")


@test("an exec of a session is a span with its session, and a limit that it reached is named")
def _():
    with Folder() as f, traced(f) as s:
        session = s.call("POST", "/v1/sessions", {"profile": "base", "network": "none"}, {"traceparent": TRACEPARENT}).has(201).json["id"]
        path = f"/v1/sessions/{session}/execs"
        s.call("POST", path, {"command": ["/bin/true"]}, {"traceparent": TRACEPARENT}).has(200)
        s.call("POST", path, {"command": ["/bin/sleep", "600"], "timeout": "100ms"}).has(200)
        good, late = [line.run for line in lines_of(f / "spans")]
        good.has(OK, session=session, status="exited", exit_code=0)
        equal((good.name, good.trace, good.parent), ("exec base", TRACE_ID, PARENT_ID), "name, trace and parent")
        late.has(ERROR, session=session, status="timeout", limits_hit=["wall"])
        equal(late.parent, None, "the parent of a request without one")


@test("run --remote and session exec send TRACEPARENT, and the service's spans are below it")
def _():
    with Folder() as f, traced(f) as s:
        env, remote = environment(TRACEPARENT=TRACEPARENT), f"--remote={s.socket}"
        cejail("run", remote, "-p", "base", "--network", "none", "--", "/bin/true", env=env).exits(0)
        session = cejail("session", "create", remote, "-p", "base", "--network", "none").exits(0).out.strip()
        cejail("session", "exec", remote, session, "--", "/bin/true", env=env).exits(0)
        for line, name in zip(lines_of(f / "spans"), ("run base", "exec base"), strict=True):
            equal((line.run.has(OK).name, line.run.trace, line.run.parent), (name, TRACE_ID, PARENT_ID), "name, trace and parent")


@test("refused requests and probes have no spans, and a cancelled run has one")
def _():
    with Folder() as f, traced(f) as s:
        s.post("{").has(400)
        first = s.background(s.sh, "sleep 600", id="first")
        s.await_state("first", "running")
        s.call("DELETE", "/v1/runs/first")
        first.finish()
        line_of(f / "spans").run.has(ERROR, id="first", status="cancelled")


@test("SIGHUP opens the trace file anew, also with a configuration that can't be read")
def _():
    with Folder() as f, traced(f) as s:
        s.post({**TRUE, "id": "one"}).has(200)
        for i, text in enumerate((None, "{")):
            if text:
                s.folder.file("serve.json", text)
            os.rename(f / "spans", f / f"spans.{i}")
            s.signal(signal.SIGHUP)
            wait_until(lambda: os.path.exists(f / "spans"), "the new file")
            s.post({**TRUE, "id": f"after-{i}"}).has(200)
        for name, wanted in (("spans.0", "one"), ("spans.1", "after-0"), ("spans", "after-1")):
            equal(line_of(f / name).run.attributes["id"], wanted, f"the run in {name}")


@test("a service does not start without its trace file, and a full disk changes no result", who="root")
def _():
    with Folder() as f, FullDisk(f) as path:
        config = f.file("serve.json", json.dumps({"trace_file": f.path}))
        refused(cejail("serve", "--config", config, "--socket", f / "socket"), "trace file", f.path)
        with Service(config={"trace_file": path}) as s:
            equal(s.sh("echo ran").result["stdout"]["text"], "ran\n", "the output")
            contains(s.said(), "write the spans of a run", "the log")
