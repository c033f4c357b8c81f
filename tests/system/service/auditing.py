# SPDX-License-Identifier: Apache-2.0
"""What is put on record."""

import hashlib
import json
import os

from harness import *  # noqa: F403
from service import Service

SECRETS = ("secret-code", "secret-out", "secret-env", "secret-arg", "secret-in")


def records(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def of(lines, name):
    return [line for line in lines if line.get("id", line.get("run_id")) == name]


@test("each run has a line before it starts and one when it has ended, with hashes and no contents")
def _():
    code = "# secret-code\nprint('secret' + '-out')"
    with Folder() as f, Service(config={"audit": {"file": f / "audit.log", "sync": True}}) as s:
        body = {"profile": "python", "code": code, "args": ["secret-arg"], "stdin": "secret-in", "env": {"X": "secret-env"}, "network": "none", "id": "mine"}
        s.post(body, X_Request_Id="r-7").has(200)
        lines = of(records(f / "audit.log"), "mine")
        equal(len(lines), 2, f"lines: {lines}")
        for line in lines:
            if os.path.exists(os.path.join(os.environ.get("CEJAIL_SCHEMAS", "profiles/schema"), "audit.json")):
                check_schema(line, "audit.json")
        text = json.dumps(lines)
        for word in (hashlib.sha256(code.encode()).hexdigest(), "r-7", f"uid:{os.geteuid()}", "exited", "python"):
            contains(text, word, "the record")
        with open(f / "audit.log", encoding="utf-8") as file:
            whole = file.read() + s.said()
        for word in SECRETS:
            lacks(whole, word, "record and log")


@test("the audit line has the hash of the whole request, so it covers files and commands")
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        seen = []
        for name, text in (("one", "echo a"), ("two", "echo b")):
            body = {"profile": "base", "command": ["/bin/sh", "/box/x"], "files": [{"path": "/box/x", "text": text}], "network": "none", "id": name}
            sent = json.dumps(body, indent=1)
            s.post(sent).has(200)
            for line in of(records(f / "log"), name):
                equal((line["code_sha256"], line["request_sha256"]), (None, hashlib.sha256(sent.encode()).hexdigest()), f"hashes in {line}")
                seen.append(line["event"])
        equal(seen, 2 * ["start", "end"], "lines")


@test("where a profile requires the audit, no run starts without its audit line", who="root")
def _():
    with Folder() as f:
        f.file("config/cejail/profiles/strictly.json", '{"extends": "base", "audit": "required", "network": "none"}')
        body = {"profile": "strictly", "command": ["/bin/echo", "ran"]}
        with FullDisk(f) as log, Service(config={"audit": {"file": log}}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            s.post(body).has(503, "audit_unavailable")
            equal(s.sh("echo ran").result["stdout"]["text"], "ran\n", "a profile that does not require it")
            true(s.metric("cejail_audit_failures_total") > 0, "failures are not counted")
            health = s.get("/readyz").json
            true(health["status"] != "ready" and any("audit" in reason for reason in health["reasons"]), f"readyz: {health}")
        with Service(env={"XDG_CONFIG_HOME": f / "config"}) as s:
            s.post(body).has(503, "audit_unavailable")
        with Service(config={"audit": {"file": f / "log"}}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            equal(s.post(body).result["stdout"]["text"], "ran\n", "with a record")
            equal(len([line for line in records(f / "log") if "strictly" in json.dumps(line)]), 2, "lines")


@test("after refused and cancelled runs, each start in the audit has an end")
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        s.post("{").has(400)
        first = s.background(s.sh, "sleep 6000", id="first")
        s.await_state("first", "running")
        s.call("DELETE", "/v1/runs/first")
        first.finish()
        lines = of(records(f / "log"), "first")
        equal(len(lines), 2, f"lines {lines}")
        contains(json.dumps(lines[1]), "cancelled", "the end")


@test("SIGHUP opens the file anew, as log rotation wants it")
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        s.sh("true", id="one").has(200)
        os.rename(f / "log", f / "log.1")
        s.signal(1)
        wait_until(lambda: os.path.exists(f / "log"), "the new file")
        s.sh("true", id="two").has(200)
        equal((len(of(records(f / "log.1"), "one")), len(of(records(f / "log"), "two"))), (2, 2), "lines before and after")
        s.folder.file("serve.json", "{")  # a configuration that can't be read is no reason to keep the old file
        os.rename(f / "log", f / "log.2")
        s.signal(1)
        wait_until(lambda: os.path.exists(f / "log"), "the next file")
        s.sh("true", id="three").has(200)
        equal((len(of(records(f / "log.2"), "three")), len(of(records(f / "log"), "three"))), (0, 2), "lines after a bad configuration")


@test("many at once write whole lines")
def _():
    with Folder() as f, Service(config={"audit": {"file": f / "log"}}) as s:
        calls = [s.background(s.sh, "true", id=f"r{i}") for i in range(20)]
        for one in calls:
            one.finish().has(200)
        lines = records(f / "log")
        for i in range(20):
            equal(len(of(lines, f"r{i}")), 2, f"lines of r{i}")
