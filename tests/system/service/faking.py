# SPDX-License-Identifier: Apache-2.0
"""`python3 -m cejail.fake`: answers like a service, from a file, for the tests of programs that call one."""

import hashlib
import json
import os
import subprocess
import sys
import time

from api import check_with_refs
from harness import *  # noqa: F403
from service import Service

CALLS = [{"call": "search"}, {"call": "search", "outcome": "timeout"}, {"call": "read", "outcome": "failed"}]
ANSWERS = {
    "answers": [
        {"when": {"profile": "node"}, "error": {"code": "queue_full", "message": "all wait", "retry_after": "7s"}},
        {"when": {"code_contains": "slow"}, "delay": "60s"},
        {"when": {"code_contains": "oom"}, "result": {"status": "oom"}},
        {"when": {"code_contains": "broken"}, "result": {"status": "setup_error", "message": "no such thing"}},
        {
            "when": {"code_contains": "plot"},
            "events": [{"stdout": "one\n"}, {"after": "2s", "stdout": "two\n"}, {"stderr": {"base64": "/w=="}}, {"denied": "mount"}, *CALLS],
            "result": {"exit_code": 4, "artifacts": [{"path": "a.png", "content": {"base64": "iVBORw0KGgo="}}], "warnings": ["careful"]},
        },
    ]
}


CLIENT = os.path.join(os.path.dirname(os.path.dirname(CEJAIL)), "share/cejail/clients/python")
FAKE = ("/usr/bin/python3", "-m", "cejail.fake")


class Fake(Service):
    """Where Service starts `cejail serve`, this starts the service of the client library."""

    def start(self):
        words = [*FAKE, self.folder.file("answers.json", json.dumps(ANSWERS)), "--socket", self.socket]
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen(words, stderr=self.log, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": CLIENT})
        self.await_ready()


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
        equal(value["calls"], [{"name": "search", "count": 2, "failed": 1, "refused": 0}, {"name": "read", "count": 1, "failed": 1, "refused": 0}], "calls")
        check_with_refs(value, "result.json")
        contains(json.dumps(value["warnings"]), "careful", "warnings")
        contains(json.dumps(value["warnings"]), "cejail.fake", "warnings")
        equal(s.run("oom").result["status"], "oom", "status")
        equal(s.run("broken").result["status"], "setup_error", "status")
        equal(s.run("anything else").result["exit_code"], 0, "without an answer of its own")
        reply = s.run("1", profile="node").has(503, "queue_full")
        equal((reply.headers["Retry-After"], reply.json["error"]["message"]), ("7", "all wait"), "the refusal")


@test("the first answer whose conditions all hold is given")
def _():
    sys.path.insert(0, CLIENT)
    import cejail.fake as fake

    when = ({"profile": "node"}, {"code_contains": "two"}, {"code_sha256": hashlib.sha256(b"abc").hexdigest()})
    answers = fake.read_answers(json.dumps({"answers": [{"when": w, "result": {"exit_code": i + 1}} for i, w in enumerate(when)]}))
    for profile, code, expected in (("node", b"two", 1), ("node", None, 1), ("python", b"one two", 2), ("python", b"abc", 3), ("python", b"abd", 0), ("python", None, 0)):
        got = fake.find_answer(answers, profile, code).get("result", {}).get("exit_code", 0)
        equal(got, expected, f"{profile} {code}")
    event, result = fake.read_answers('{"answers": [{"events": [{"after": "1.5s", "stderr": {"base64": "AA=="}}], "result": {"status": "signaled", "signal": 9}}]}')[0].values()
    equal((event[0], result), ({"after": 1.5, "stderr": b"\0"}, {"status": "signaled", "signal": 9}), "what an answer has")


@test("events arrive with their pauses")
def _():
    with Fake() as s:
        connection, began = s.connect(), time.monotonic()
        connection.request("POST", "/v1/runs", json.dumps({"profile": "python", "code": "plot()"}), {"Accept": "application/x-ndjson"})
        events = [(time.monotonic(), json.loads(line)) for line in connection.getresponse()]
        connection.close()
    equal([e["type"] for _, e in events], ["start", "stdout", "stdout", "stderr", "denied", *["call", "answer"] * 3, "result"], "kinds")
    equal([(e["call"], e["name"], e["outcome"]) for _, e in events if e["type"] == "answer"], [(1, "search", "answered"), (2, "search", "timeout"), (3, "read", "failed")], "the calls")
    # the first one may have been read late, but nothing comes before its pause is over
    true(events[2][0] - began > 0.5, "there was no pause")


@test("a request that is not valid is refused, and a run can be listed and cancelled")
def _():
    with Fake() as s:
        for body in ("{", "[]", '{"profile": "python"}', '{"profile": "python", "code": "1", "resutl": 1}', '{"code": "1", "profile": "python", "code": "2"}'):
            s.post(body).has(400, "bad_request")
        s.call("GET", "/v1/runs/nowhere").has(404, "not_found")
        s.call("POST", "/v1/sessions", "{}").has(404, "not_found")
        first = s.background(s.run, "slow", id="mine")
        s.await_state("mine", "running")
        s.run("1", id="mine").has(409, "id_in_use")
        check_with_refs(s.get("/v1/runs").json, "runs.json")
        s.call("DELETE", "/v1/runs/mine").has(202)
        equal(first.finish(10).result["status"], "cancelled", "status")


@test("`run --remote` and the client can't tell it from a real one")
def _():
    with Fake() as s:
        done = run("--remote", s.socket, "-p", "python", "-c", "plot()").exits(4)
        equal((done.out, done.raw_err[:1]), ("one\ntwo\n", b"\xff"), "output")
        refused(run("--remote", s.socket, "-p", "node", "-c", "1"), "queue_full", "7 s")
        code = f"import cejail; print(cejail.Client({s.socket!r}).run('oom').status)"
        done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": CLIENT})
        equal((done.returncode, done.stdout), (0, "oom\n"), "the client")


@test("a file with a mistake is refused at the start, with its place")
def _():
    with Folder() as f:
        for text, word in (
            ('{"answers": [{"resutl": {}}]}', "answers[0]: unknown key 'resutl'"),
            ("", "answers.json: 1:1"),
            ('{"answers": [{"result": {"status": "fine"}}]}', "answers[0].result.status: there is no 'fine'"),
            ('{"answers": [{"result": {"status": "signaled"}}]}', "belong together"),
            ('{"answers": [{"result": {"message": "x"}}]}', "belong together"),
            ('{"answers": [{"result": {"status": "setup_error", "message": "x"}, "events": [{"stdout": "1"}]}]}', "could not be started"),
            ('{"answers": [{"events": [{"stdout": "1", "stderr": "2"}]}]}', "one of"),
            ('{"answers": [{"events": [{"after": "1s"}]}]}', "one of"),
            ('{"answers": [{"events": [{"stdout": "1", "outcome": "failed"}]}]}', "that of a"),
            ('{"answers": [{"events": [{"call": "a", "outcome": "lost"}]}]}', "there is no 'lost'"),
            ('{"answers": [{"error": {"code": "queue_full"}, "result": {}}]}', "neither"),
            ('{"answers": [{"error": {"code": "full"}}]}', "there is no 'full'"),
            ('{"answers": [{"when": {"code_sha256": "abc"}}]}', "64 digits"),
            ('{"answers": [{"delay": "soon"}]}', "a duration"),
            ('{"answers": [{"result": {"exit_code": 256}}]}', "from 0 to 255"),
            ('{"answers": [], "answers": []}', "stands twice"),
            ("{}", "'answers' is missing"),
        ):
            words = [*FAKE, f.file("answers.json", text), "--check"]
            done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": CLIENT})
            equal((done.returncode, word in done.stderr), (1, True), f"{text}: {done.stderr}")
        done = subprocess.run([*FAKE, f / "nowhere", "--check"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": CLIENT})
        equal((done.returncode, "nowhere" in done.stderr), (1, True), "no file")


@test("`cejail serve --fake` names it")
def _():
    refused(cejail("serve", "--fake", "answers.json"), "python3 -m cejail.fake FILE", f"PYTHONPATH={os.sep}")
