# SPDX-License-Identifier: Apache-2.0
"""--trace-file: each run and each of its calls is a span of OpenTelemetry."""

import os
import stat

from harness import *  # noqa: F403
from spans import ERROR, OK, PARENT_ID, TRACE_ID, TRACEPARENT, answering, line_of, lines_of, text_of

QUIET = ("-p", "base", "--network", "none")


@test("a run is a span below that of TRACEPARENT, with its times, status and usage")
def _():
    with Folder() as f:
        value = result(*QUIET, "--trace-file", f / "spans", "--", "/bin/sh", "-c", "echo out; echo error >&2", env=environment(TRACEPARENT=TRACEPARENT))
        span = line_of(f / "spans").run.has(OK, id=value["id"], profile="base", status="exited", exit_code=0, stdout_bytes=4, stderr_bytes=6, calls=0, limits_hit=[])
        equal((span.name, span.trace, span.parent), ("run base", TRACE_ID, PARENT_ID), "name, trace and parent")
        equal(value["traceparent"], f"00-{TRACE_ID}-{span.id}-01", "traceparent of the result")
        equal(span.attributes["wall_ms"], value["usage"]["wall_ms"], "the time of the program")
        true(span.end - span.start >= value["usage"]["wall_ms"] * 1000000, "the span is shorter than its program ran")


@test("without TRACEPARENT, or with a malformed one, each run begins a trace")
def _():
    with Folder() as f:
        for more in ({}, {"TRACEPARENT": TRACEPARENT + "0"}, {"TRACEPARENT": ""}):
            run(*QUIET, "--trace-file", f / "spans", "--", "/bin/true", env=environment(**more)).exits(0)
        spans = [line.run for line in lines_of(f / "spans")]
        equal([span.parent for span in spans], [None] * 3, "the parents")
        equal(len({span.trace for span in spans} - {TRACE_ID}), 3, "the number of traces")


@test("the span of a run that fails has an error, the status, and the limits that it reached")
def _():
    with Folder() as f:
        options = (*QUIET, "--trace-file", f / "spans")
        run(*options, "--", "/bin/sh", "-c", "exit 3").exits(3)
        run(*options, "-t", "100ms", "--", "/bin/sleep", "600").exits(124)
        run(*options, "--", "/bin/absent").exits(127)
        run(*options, "-f", f / "absent", "--", "/bin/true").exits(125)
        failed, late, absent, refused_run = [line.run for line in lines_of(f / "spans")]
        failed.has(ERROR, status="exited", exit_code=3, limits_hit=[], error_stage=None)
        late.has(ERROR, status="timeout", exit_code=None, limits_hit=["wall"])
        absent.has(ERROR, status="exited", exit_code=127, error_stage="exec")
        equal(refused_run.has(ERROR, status="setup_error").status["message"], "setup_error", "the message")
        true(refused_run.attributes["error_stage"], "the set-up failed in no stage")


@test("each call to a tool is a span below its run, with the tool, its times and how it ended")
def _():
    code = """
call() { echo "{\\"id\\":1,\\"name\\":\\"$1\\"}" >&4; read -r answer <&4; }
call add; call github.search; call absent
"""
    with Folder() as f, answering([{"result": 1}, {"error": {"message": "no"}}]) as (options, fd):
        value = result(*QUIET, *options, "--trace-file", f / "spans", "--", "/bin/sh", "-c", code, pass_fds=[fd])
        equal(value["exit_code"], 0, f"the exit code ({value['stderr']})")
        line = line_of(f / "spans")
        line.run.has(OK, calls=2, calls_refused=1, calls_left_out=None)
        good, bad = line.calls
        good.has(OK, tool="add", outcome="answered")
        bad.has(ERROR, tool="github.search", outcome="failed")
        equal([good.name, bad.name], ["call add", "call github.search"], "the names")
        true(good.start <= good.end <= bad.end, "the order of the calls")


@test("no line has code, arguments, input, output, answers, or an error's message")
def _():
    code = f"""
echo '{{"id":1,"name":"add","arguments":{{"x":"{SECRET}-1"}}}}' >&4; read -r answer <&4
echo '{{"id":1,"name":"{SECRET}-2"}}' >&4; read -r answer <&4
echo {SECRET}-3; cat
"""
    with Folder() as f, answering([{"result": f"{SECRET}-4"}]) as (options, fd):
        seen = run(*QUIET, *options, "--trace-file", f / "spans", "-i", "-e", f"X={SECRET}-5", "--file-text", f"a={SECRET}-6",
                   "--", "/bin/sh", "-c", code, f"{SECRET}-7", given=f"{SECRET}-8", pass_fds=[fd])  # fmt: skip
        contains(seen.exits(0).out, f"{SECRET}-8", "the output")
        run(*QUIET, "--trace-file", f / "spans", "-f", f"{f.path}/{SECRET}-9", "--", "/bin/true").exits(125)
        equal([line.run.status["code"] for line in lines_of(f / "spans")], [OK, ERROR], "the spans")
        lacks(text_of(f / "spans"), SECRET, "the file")


@test("runs that append to one file at a time write whole lines, and only its owner may read it")
def _():
    with Folder() as f:
        runs = [start("run", *QUIET, "--trace-file", f / "spans", "--", "/bin/true") for _ in range(share(8, 3))]
        for one in runs:
            finish(one).exits(0)
        equal(len({line.run.attributes["id"] for line in lines_of(f / "spans")}), len(runs), "the number of runs")
        equal(stat.S_IMODE(os.stat(f / "spans").st_mode), 0o600, "the mode")


@test("a file that cannot be opened is an error before anything runs")
def _():
    with Folder() as f:
        os.symlink("target", f / "link")
        os.mkfifo(f / "fifo")
        for path in (f / "link", f / "fifo", f.path, f / "absent/spans"):
            refused(run(*QUIET, "--trace-file", path, "--", "/bin/echo", "ran"), "--trace-file", path)
        true(not os.path.exists(f / "target"), "the link was followed")


@test("a full disk is a warning, and changes neither the result nor the exit status", who="root")
def _():
    with Folder() as f, FullDisk(f) as path:
        done = run(*QUIET, "--trace-file", path, "--", "/bin/sh", "-c", "echo ran; exit 3").exits(3).says("ran\n")
        contains(done.err, "warning: --trace-file: write", "standard error")


@test("--trace-file is refused with --remote, --dry-run and a session's exec, and no file is made")
def _():
    with Folder() as f:
        path = f / "spans"
        for words in (("run", "--remote=/absent.sock"), ("run", "--dry-run")):
            refused(cejail(*words, *QUIET, "--trace-file", path, "--", "/bin/true"), "--trace-file", "exclude each other")
        refused(cejail("session", "exec", "--trace-file", path, "none", "--", "true"), "--trace-file")
        true(not os.path.exists(path), "a file was made")
