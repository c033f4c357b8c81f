# SPDX-License-Identifier: Apache-2.0
"""`cejail serve --fake`: answers from a file, for the tests of programs that call the service."""

import contextlib
import json
import os
import subprocess
import time

from api import check_with_refs
from harness import *  # noqa: F403
from service import Service

ANSWERS = {
    "answers": [
        {"when": {"profile": "node"}, "error": {"code": "queue_full", "message": "all wait", "retry_after": "7s"}},
        {"when": {"code_contains": "slow"}, "delay": "60s"},
        {"when": {"code_contains": "oom"}, "result": {"status": "oom"}},
        {"when": {"code_contains": "broken"}, "result": {"status": "setup_error", "message": "no such thing"}},
        {
            "when": {"code_contains": "plot"},
            "events": [{"stdout": "one\n"}, {"after": "2s", "stdout": "two\n"}, {"stderr": {"base64": "/w=="}}, {"denied": "mount"}],
            "result": {"exit_code": 4, "artifacts": [{"path": "a.png", "content": {"base64": "iVBORw0KGgo="}}], "warnings": ["careful"]},
        },
    ]
}


class Fake(Service):
    def __init__(self, answers=ANSWERS, **more):
        super().__init__(**more)
        self.answers = answers

    def start(self):
        self.options = ("--fake", self.folder.file("answers.json", json.dumps(self.answers)))
        super().start()


@test("the example here is as the schema of such files says")
def _():
    check_with_refs(ANSWERS, "fake.json")


@test("answers come from the file, as results of the same schema")
def _():
    with Fake() as s:
        value = s.run("plot()", artifacts=True, id="mine").result
        equal((value["exit_code"], value["stdout"]["text"], value["stderr"]["base64"]), (4, "one\ntwo\n", "/w=="), "the result")
        equal((value["id"], value["profile"]["name"]), ("mine", "python"), "id and profile")
        equal([(a["path"], a["type"], a["base64"]) for a in value["artifacts"]], [("a.png", "image/png", "iVBORw0KGgo=")], "artefacts")
        equal(value["denied_syscalls"], [{"name": "mount", "count": 1}], "denied")
        contains(json.dumps(value["warnings"]), "careful", "warnings")
        contains(json.dumps(value["warnings"]), "--fake", "warnings")
        equal(s.run("oom").result["status"], "oom", "status")
        equal(s.run("broken").result["status"], "setup_error", "status")
        equal(s.run("anything else").result["exit_code"], 0, "without an answer of its own")
        reply = s.run("1", profile="node").has(503, "queue_full")
        equal((reply.headers["Retry-After"], reply.json["error"]["message"]), ("7", "all wait"), "the refusal")


@test("events arrive with their pauses")
def _():
    with Fake() as s:
        connection, began = s.connect(), time.monotonic()
        connection.request("POST", "/v1/runs", json.dumps({"profile": "python", "code": "plot()"}), {"Accept": "application/x-ndjson"})
        events = [(time.monotonic(), json.loads(line)) for line in connection.getresponse()]
        connection.close()
    equal([e["type"] for _, e in events], ["start", "stdout", "stdout", "stderr", "denied", "result"], "kinds")
    # the first one may have been read late, but nothing comes before its pause is over
    true(events[2][0] - began > 0.5, "there was no pause")


@test("all else is the service's own: bad requests, rights, cancelling")
def _():
    with Fake(config={"callers": {"default": {"profiles": ["python"]}, f"uid:{os.geteuid()}": {"profiles": ["python"]}}}) as s:
        s.post("{").has(400)
        s.run("1", profile="base").has(403, "forbidden_profile")
        s.run("1", memory="lots").has(400)
        first = s.background(s.run, "slow", id="mine")
        s.await_state("mine", "running")
        s.call("DELETE", "/v1/runs/mine").has(202)
        equal(first.finish(10).result["status"], "cancelled", "status")


@test("no jail is built: it works where none can be")
def _():
    with Fake() as s:
        first = s.background(s.run, "slow", id="mine")
        s.await_state("mine", "running")
        namespaces = set()
        for pid in s.workers():
            with contextlib.suppress(OSError):  # the probe's has just ended
                namespaces.add(os.readlink(f"/proc/{pid}/ns/user"))
        equal(namespaces, {os.readlink("/proc/self/ns/user")}, "user namespaces of workers")
        s.call("DELETE", "/v1/runs/mine")
        first.finish()


@test("`run --remote` can't tell it from a real one")
def _():
    with Fake() as s:
        done = run("--remote", s.socket, "-p", "python", "-c", "plot()").exits(4)
        equal((done.out, done.raw_err[:1]), ("one\ntwo\n", b"\xff"), "output")
        refused(run("--remote", s.socket, "-p", "node", "-c", "1"), "queue_full", "7 s")


@test("a file with a mistake is refused at the start, with its place")
def _():
    with Folder() as f:
        for text, word in (('{"answers": [{"resutl": {}}]}', "1:15"), ("", "answers.json"), ('{"answers": [{"result": {"status": "fine"}}]}', "fine")):
            refused(cejail("serve", "--socket", f / "s", "--config", f.file("c.json", "{}"), "--fake", f.file("answers.json", text)), word)
        refused(cejail("serve", "--socket", f / "s", "--config", f / "c.json", "--fake", f / "nowhere"), "nowhere")


@test("the program of the real service contains no fake answers, and the other one gives nothing else")
def _():
    programs = os.path.join(os.path.dirname(CEJAIL), "..", "libexec", "cejail")
    marked = {}
    for name in ("serve", "serve-fake"):
        with open(os.path.join(programs, name), "rb") as f:
            marked[name] = b"the answer is from a file (--fake)" in f.read()
    equal(marked, {"serve": False, "serve-fake": True}, "programs with the warning of a fake answer")
    with Folder() as f:
        options = ("--socket", f / "s", "--config", f.file("c.json", "{}"))
        done = subprocess.run([os.path.join(programs, "serve-fake"), *options], capture_output=True, text=True, timeout=30 * SLOW)
        equal(done.returncode, 125, "exit status")
        contains(done.stderr, "--fake FILE is missing", "the error")
