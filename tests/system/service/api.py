# SPDX-License-Identifier: Apache-2.0
"""The routes: what each answers, and that the OpenAPI file tells all of it."""

import base64
import json
import os
import re
import resource
import shutil
import subprocess

import harness
from harness import *  # noqa: F403
from calls import Calls, calling
from contract import Contract, check_with_refs, schema_of
from service import OTHER_UID, RECEIVE, Service, TOKEN, as_uid, bearer, one_token_config, tcp_call


@test("a request is answered with the result of its run")
def _():
    with Service() as s:
        value = s.run("import sys; print(sys.argv[1:], sys.stdin.read()); sys.exit(3)", args=["a", "b c"], stdin="in").result
        equal((value["status"], value["exit_code"]), ("exited", 3), "the end")
        equal(value["stdout"]["text"], "['a', 'b c'] in\n", "stdout")
        value = s.sh("echo $A; pwd; exit 7", env={"A": "x"}, workdir="/tmp").result
        equal((value["exit_code"], value["stdout"]["text"]), (7, "x\n/tmp\n"), "of a command")


@test("curl on the socket gets a result, as the manual shows it")
def _():
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    with Service() as s:
        body = json.dumps({"profile": "python", "code": "print(6 * 7)", "network": "none"})
        words = ["curl", "-sS", "--unix-socket", s.socket, "-d", body, "http://localhost/v1/runs"]
        done = subprocess.run(words, capture_output=True, timeout=30 * SLOW)
        equal(parse_result(done.stdout.decode())["stdout"]["text"], "42\n", f"stdout ({done.stderr!r})")


@test("files go in, artefacts come back, both byte for byte")
def _():
    data = bytes(range(256))
    script = "mkdir -p out/d; cp bytes out/d/bytes; ./tool; cat args.json; echo text > out/t.txt"
    with Service() as s:
        value = s.sh(
            script,
            files=[
                {"path": "bytes", "base64": base64.b64encode(data).decode()},
                {"path": "/box/tool", "text": "#!/bin/sh\necho ran\n", "executable": True},
            ],
            args_json={"n": [1, 2]},
            artifacts=True,
        ).result
        contains(value["stdout"]["text"], "ran\n", "stdout")
        contains(value["stdout"]["text"], '"n"', "stdout")
        found = {entry["path"]: entry for entry in value["artifacts"]}
        equal(base64.b64decode(found["d/bytes"]["base64"]), data, "the artefact")
        equal(found["t.txt"]["text"], "text\n", "the artefact")
        equal(s.sh(script, files=[], artifacts=False).result["artifacts"], [], "without asking")


@test("settings of the request hold: time, memory, output")
def _():
    with Service() as s:
        equal(s.sh("sleep 6000", timeout="300ms").result["status"], "timeout", "status")
        value = s.sh("head -c 5000 /dev/zero | tr '\\0' x", max_output="1000").result
        equal((value["stdout"]["truncated"], value["stdout"]["bytes"]), (True, 5000), "stdout")
        value = s.run("x = 'x' * (200 << 20)", memory="64M").result
        true(value["status"] in ("oom", "exited") and value["exit_code"] != 0, f"memory: {value['status']}")


@test("a request may name the jail's host name and its writable directories, which count in the caller's disk")
def _():
    with Service(config={"callers": {f"uid:{os.geteuid()}": {"host_paths": False, "disk": "8M"}}}) as s:
        script = "uname -n; echo x > /data/file && ls /data"
        equal(s.sh(script, hostname="build-1", tmpfs=["/data:4M"]).result["stdout"]["text"], "build-1\nfile\n", "output")
        value = s.sh("head -c 20000000 /dev/zero > /data/large", tmpfs=["/data"], disk="8M").result
        equal((value["exit_code"], value["limits"]["disk"]["hit"]), (1, True), "exit code and disk.hit")
        contains(s.sh("true", tmpfs=["/data:16M"]).result["error"]["message"], "'16M'", "the message about a size above the disk")
        for row, word in (({"tmpfs": ["/data:much"]}, "'much'"), ({"tmpfs": ["data"]}, "'data'"), ({"tmpfs": ["/proc/x"]}, "'/proc/x'"), ({"hostname": "a b"}, "'a b'")):
            contains(s.sh("true", **row).has(400, "bad_request").json["error"]["message"], word, f"the message about {row}")


@test("a run that could not be started has a result all the same")
def _():
    with Service() as s:
        value = s.post({"profile": "base", "command": ["/no/such/command"], "network": "none"}).result
        equal(value["exit_code"], 127, "exit code")
        value = s.sh("true", workdir="/no/such/place").result
        equal(value["status"], "setup_error", "status")


def with_profile(folder, name, **more):
    folder.file(f"config/cejail/profiles/{name}.json", json.dumps({"extends": "base", "network": "none", **more}))


@test("a caller's own mistake is answered with its reason, which names the key and the value")
def _():
    base = {"profile": "base", "command": ["true"], "network": "none"}
    refused_rows = (
        ({"network": {"mode": "public", "allow": ["10.0.0.1"]}}, "network.allow: '10.0.0.1': the address is private"),
        ({"network": {"mode": "public", "allow": ["127.0.0.1:80"]}}, "network.allow: '127.0.0.1:80': the address is"),
        ({"network": {"mode": "public", "allow": ["no name"]}}, "network.allow: 'no name'"),
        ({"workdir": "rel"}, "workdir: 'rel' is not an absolute path"), ({"workdir": "/box/a", "files": [{"path": "a", "text": ""}]}, "workdir: '/box/a' is one of the files"),
        ({"files": [{"path": "a", "text": ""}, {"path": "a-b", "text": ""}, {"path": "a/b/c", "text": ""}]}, "files: '/box/a' is a file, and '/box/a/b/c' needs a directory"),
        ({"files": [{"path": "/proc/x", "text": ""}]}, "files.path: '/proc/x'"), ({"command": [""]}, "command: the first argument, the program, is empty"), ({"command": None, "code": "x"}, "code: profile 'base' has no interpreter"),
        ({"profile": "no-such"}, "profile: there is no 'no-such'"), ({"env": {"A=B": "x"}}, "env: 'A=B'"), ({"memory": "1K"}, "memory: '1K' is too little"), ({"workdri": "/"}, "unknown key 'workdri'"),
    )  # fmt: skip
    ended_rows = (
        ({"workdir": "/no/such"}, "'/no/such': No such file or directory"), ({"workdir": "/etc/passwd"}, "'/etc/passwd': Not a directory"), ({"workdir": "/usr/none"}, "'/usr/none': No such file or directory"),
        ({"files": [{"path": "/usr/x", "text": ""}]}, "files: '/usr/x' lies in the read-only root"), ({"disk": "64K", "files": [{"path": "a", "text": "x" * 200000}]}, "'/box/a': No space left on device"),
    )  # fmt: skip
    with Service(config={"callers": {f"uid:{os.geteuid()}": {"host_paths": False}}}) as s:

        def post(row):
            return s.post({key: value for key, value in {**base, **row}.items() if value is not None})

        for row, reason in refused_rows:
            error = post(row).has(400, "bad_request").json["error"]
            contains(error["message"], reason, f"the message about {row}")
            lacks(f"{error['message']} {error['hint']}", "--", f"the answer to {row}")
        for row, reason in ended_rows:
            value = post(row).result
            equal(value["status"], "setup_error", f"status of {row}")
            contains(value["error"]["message"], reason, f"the message about {row}")
        tried(len(refused_rows) + len(ended_rows))


@test("only the log names what on the host made a start fail: a missing path of a profile, its cgroup, a file in the way")
def _():
    secret = "only-the-operator-knows"
    with Folder() as f:
        place = f.folder(secret)
        with_profile(f, "missing", ro_bind=[f"/srv/{secret}:/box/data"])
        with_profile(f, "group", cgroup_parent=f"/{secret}")
        with_profile(f, "shown", ro_bind=[f"{place}:/box/data"])
        with_profile(f, "copied", file=[f"/srv/{secret}:/box/data"])
        bodies = ({"profile": "missing"}, {"profile": "group"}, {"profile": "copied"}, {"profile": "shown", "files": [{"path": "data/x", "text": ""}]})
        config = {"callers": {f"uid:{os.geteuid()}": {"host_paths": False}}}
        with Service(config=config, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            for body in bodies:
                reply = s.post({"command": ["true"], **body})
                value = reply.result
                equal(value["status"], "setup_error", f"status of {body}")
                lacks(reply.body.decode(), secret, f"the result of {body}")
                contains(value["error"]["message"], value["request_id"], "the message")
                lines = [line for line in s.said().splitlines() if value["request_id"] in line]
                true(any(secret in line for line in lines), f"the log of {body} has {lines}")
            guess = s.post({"profile": "copied", "command": ["true"], "workdir": f"/srv/{secret}"}).result
            contains(guess["error"]["message"], guess["request_id"], "what a path that was guessed is answered with")
            value = s.post({"profile": "shown", "command": ["true"], "files": [{"path": "/usr/x", "text": ""}]}).result
            contains(value["error"]["message"], "'/usr/x' lies in the read-only root", "what is the caller's own doing")
            lacks(s.said(), value["request_id"], "the log")


@test("a profile that changes while a request waits is not run with rights that were checked before")
def _():
    with Folder() as f:
        with_profile(f, "mine", memory="64M")
        body = {"profile": "mine", "command": ["true"]}
        with Service(config={"concurrency": 1, "audit": {"file": f / "log"}}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            first = s.background(s.sh, "sleep 6000", id="first")
            s.await_state("first", "running")
            second = s.background(s.post, {**body, "id": "second"})
            s.await_state("second", "queued")
            with_profile(f, "mine", memory="128M")
            s.call("DELETE", "/v1/runs/first").has(202)
            first.finish().has(200)
            value = second.finish().result
            equal((value["status"], value["error"]["stage"]), ("setup_error", "profile"), f"the end ({value['error']})")
            contains(value["error"]["hint"], "again", "the hint")
            equal(s.post(body).result["limits"]["memory"]["value"], 128 << 20, "memory, when it is sent again")


@test("where no process can be forked for a run the log says so, and what to do, under its request's id", who="user")
def _():
    with Service() as s:
        spawner = harness.children_of(s.process.pid)[0]
        resource.prlimit(spawner, resource.RLIMIT_NPROC, (1, 1))  # fork(2) gives EAGAIN
        for _ in range(5):  # the refusal comes before or after the job
            reply = s.sh("true").has(500, "internal")
            lines = [line for line in s.said().splitlines() if reply.headers["X-Request-Id"] in line]
            true(any("fork a worker" in line and "TasksMax=" in line for line in lines), f"the log says {lines}")


@test("GET /v1/runs lists the caller's runs: queued, running, finished")
def _():
    with Service(config={"concurrency": 1}) as s:
        first = s.background(s.sh, f"sleep {2 * min(SLOW, 10)}; exit 5", id="first")
        running = s.await_state("first", "running")
        second = s.background(s.sh, "true", id="second")
        s.await_state("second", "queued")
        check_schema(running, "run.json")
        equal((first.finish().result["exit_code"], second.finish().result["exit_code"]), (5, 0), "exit codes")
        ended = s.get("/v1/runs/first").has(200).json
        check_schema(ended, "run.json")
        equal((ended["state"], ended["status"], ended["exit_code"]), ("finished", "exited", 5), "ended")
        equal({run["id"] for run in s.runs("finished")} >= {"first", "second"}, True, "the last runs")


@test("GET /v1/profiles lists the shipped ones with their hashes")
def _():
    with Service(config={"pool": {"python": {"jails": 1}}}) as s:
        listed = s.get("/v1/profiles").has(200).json
        check_with_refs(listed, "profiles.json")
        found = {profile["name"]: profile for profile in listed["profiles"]}
        true({"base", "python", "shell"} <= set(found), f"profiles {list(found)}")
        equal((found["python"]["warm"], found["base"]["warm"]), (True, False), "warm")
        equal(found["python"]["network"], "public", "the network")
        equal(found["python"]["sha256"], s.run().result["profile"]["sha256"], "the hash")


@test("GET /openapi.json answers one document with all routes, which needs no other file")
def _():
    with Service() as s:
        document = s.get("/openapi.json").has(200).json
        equal(list(document["paths"]), list(schema_of("openapi.json")["paths"]), "the routes")
        true({"request", "result", "error"} <= set(document["components"]["schemas"]), "it has no schemas")
        lacks(json.dumps(document), ".json#", "the document")
        lacks(json.dumps(document), '.json"}', "the document")


@test("an id that is in use is refused, and free again afterwards")
def _():
    with Service() as s:
        first = s.background(s.sh, "sleep 6000", id="mine")
        s.await_state("mine", "running")
        s.sh("true", id="mine").has(409, "id_in_use")
        s.call("DELETE", "/v1/runs/mine").has(202)
        first.finish().has(200)
        for _ in range(2):  # after one that was cancelled, and after one that has ended by itself
            equal(s.sh("true", id="mine").result["id"], "mine", "id")


@test("well-formed request ids and traces are used, others are replaced")
def _():
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with Service() as s:
        reply = s.post({"profile": "base", "command": ["true"], "network": "none"}, X_Request_Id="my.id-1", traceparent=parent)
        value = reply.result
        equal((reply.headers["X-Request-Id"], value["request_id"]), ("my.id-1", "my.id-1"), "the request's id")
        equal(value["traceparent"][:35], parent[:35], "the trace")
        true(value["traceparent"][36:52] != parent[36:52], "the span is the caller's own")
        for bad in ("a b", "x" * 65, "\u00e9"):
            reply = s.get("/livez", {"X-Request-Id": bad.encode("latin-1")}).has(200)
            true(reply.headers["X-Request-Id"] not in (bad, ""), "a bad id was taken")


@test("a web page may not call: any Origin is refused, and no answer allows one")
def _():
    with Service() as s:
        for path in ("/v1/runs", "/livez", "/v1/profiles", "/nothing"):
            reply = s.get(path, {"Origin": "http://localhost"}).has(403, "forbidden_origin")
            lacks(str(reply.headers.items()), "Access-Control", "the headers")
        s.call("OPTIONS", "/v1/runs", None, {"Origin": "http://x", "Access-Control-Request-Method": "POST"}).has(403)


# What no caller can bring about at will; each has a unit test or a test of its own that breaks something.
NOT_AT_WILL = {"internal"}


def provoke_gate(c, s):
    """What any route answers before anything else."""
    for pattern, item in c.api["paths"].items():
        path = pattern.replace("{id}", "x").replace("{call}", "1")
        for method in item:
            c.check(method.upper(), path, s.call(method.upper(), path, headers={"Origin": "http://x"}))


def provoke_plain(c, s):
    def ask(method, path, body=None, **headers):
        return c.check(method, path, s.call(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()}))

    for path in ("/livez", "/readyz", "/metrics", "/openapi.json", "/v1/profiles", "/v1/runs"):
        ask("GET", path).has(200)
    ask("GET", "/v1/runs/nobodys").has(404, "not_found")
    ask("DELETE", "/v1/runs/nobodys").has(404, "not_found")
    ask("POST", "/v1/runs", {"profile": "base", "command": ["true"], "network": "none", "id": "one"}).has(200)
    ask("GET", "/v1/runs/one").has(200)
    ask("DELETE", "/v1/runs/one").has(200)
    ask("GET", "/v1/runs").has(200)
    ask("POST", "/v1/runs", {"profile": "base", "command": ["true"]}, Accept="application/x-ndjson").has(200)
    ask("POST", "/v1/runs", "{").has(400, "bad_request")
    ask("POST", "/v1/runs", {"profile": "base", "command": ["true"], "memory": "2T"}).has(403, "above_ceiling")
    ask("POST", "/v1/runs", {"profile": "shell", "code": "true"}).has(403, "forbidden_profile")
    ask("POST", "/v1/runs", {"profile": "base", "command": ["true"], "ro_bind": ["/etc"]}).has(403, "forbidden_host_path")
    ask("POST", "/v1/runs", "x" * 40000).has(413, "too_large")
    ask("POST", "/v1/runs", "<a/>", Content_Type="text/xml").has(415, "unsupported_media_type")


def provoke_mcp(c, s):
    def ask(body, **headers):
        headers = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return c.check("POST", "/mcp", s.call("POST", "/mcp", body, headers))

    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    ask(ping).has(200)
    equal(ask(ping, Accept="text/event-stream").headers["Content-Type"], "text/event-stream", "the type")
    equal(ask({"jsonrpc": "2.0", "method": "notifications/initialized"}).status, 202, "of a notification")
    equal(ask("{").status, 400, "of no message")
    modern = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    equal(ask({**ping, "params": {"_meta": modern}}, MCP_Protocol_Version="2026-07-28", Mcp_Method="ping").status, 404, "of no method")
    ask(ping, Accept="text/html").has(406, "not_acceptable")
    ask("x" * 40000).has(413, "too_large")
    ask(ping, Content_Type="text/xml").has(415, "unsupported_media_type")


def provoke_waiting(c, s):
    """One at a time, one of the caller's may wait, two of all."""

    def post(name, script="true"):
        body = {"profile": "base", "command": ["/bin/sh", "-c", script], "network": "none", "id": name}
        return c.check("POST", "/v1/runs", s.post(body))

    first = s.background(post, "first", "sleep 6000")
    s.await_state("first", "running")
    post("first").has(409, "id_in_use")
    second = s.background(post, "second")
    s.await_state("second", "queued")
    post("third").has(429, "too_many_waiting")
    second.finish().has(503, "queue_timeout")
    c.check("DELETE", "/v1/runs/first", s.call("DELETE", "/v1/runs/first")).has(202)
    equal(first.finish().result["status"], "cancelled", "the status")


def provoke_calls(c, s, too_large):
    with Calls(s, calling(1)) as calls:

        def ask(body, call=1, run=calls.id):
            path = f"/v1/runs/{run}/calls/{call}"
            return c.check("POST", path, s.call("POST", path, body))

        calls.await_call(1)
        ask("{").has(400, "bad_request")
        ask({"result": 1}, 2).has(404, "not_found")
        ask("x" * too_large).has(413, "too_large")
        ask({"result": 1}).has(204)
        ask({"result": 1}).has(409, "call_ended")


def provoke_unread(c, s):
    """The program reads no answer, and 16 MiB of them wait in the jail's supervisor."""
    with Calls(s, calling(4, "time.sleep(600)", calls={"timeout": f"{60 * SLOW:.0f}s"}, timeout=f"{90 * SLOW:.0f}s")) as calls:
        for i in range(1, 5):
            calls.await_call(i)
        path = f"/v1/runs/{calls.id}/calls/"
        replies = [c.check("POST", path + str(i), s.call("POST", path + str(i), {"result": "x" * (10 << 20)})) for i in range(1, 5)]
        next(reply for reply in replies if reply.status == 429).has(429, "too_many_waiting")


@test("each status of the OpenAPI file can be had, each answer is as it says, and there are no others", who="root", limit=120)
def _():
    c = Contract(lambda path: not path.startswith("/v1/sessions"))  # session_api.py has these
    body = {"profile": "base", "command": ["true"], "network": "none"}
    rights = {"host_paths": False, "profiles": ["base", "python"], "memory": "1G", "queued": 1}
    config = {"concurrency": 1, "queue": 2, "queue_wait": f"{min(2 * SLOW, 15):.0f}s", "body_max": "32K", "receive_timeout": RECEIVE, "callers": {"default": rights, "uid:0": rights}}
    with Folder() as f, Service(config={**config, **one_token_config(f)}) as s:
        port = int(json.load(open(s.folder / "serve.json"))["tcp"].split(":")[1])
        provoke_gate(c, s)
        provoke_plain(c, s)
        provoke_mcp(c, s)
        provoke_waiting(c, s)
        provoke_calls(c, s, 40000)
        for pattern, item in c.api["paths"].items():
            for method in item:
                path = pattern.replace("{id}", "x").replace("{call}", "1")
                reply = tcp_call(port, method.upper(), path)
                c.check(method.upper(), path, reply)
                true(reply.status == (200 if path == "/livez" else 401), f"{method} {path} without a token: {reply!r}")
        tcp_call(port, "GET", "/v1/runs", headers=bearer(TOKEN)).has(200)
        slow = s.raw(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{", ends=False)
        if b" 408 " in slow.split(b"\r\n")[0]:
            c.seen.add(("/v1/runs", "POST", 408, "receive_timeout"))
    with Service() as s:
        s.reload({"callers": {"uid:0": {"rate_per_minute": 1, "burst": 1}}})
        s.post(body)
        for pattern, item in c.api["paths"].items():
            for method in item:
                path = pattern.replace("{id}", "x").replace("{call}", "1")
                c.check(method.upper(), path, s.call(method.upper(), path)).has(200 if path == "/livez" else 429)
    with Service() as s:
        provoke_unread(c, s)
    with Service(config={"concurrency": 1, "queue": 1}) as s:
        first = s.background(s.sh, "sleep 6000", id="first")
        s.await_state("first", "running")
        second = s.background(s.sh, "true", id="second")
        s.await_state("second", "queued")
        c.check("POST", "/v1/runs", s.post(body)).has(503, "queue_full")
        s.signal(15)
        wait_until(lambda: s.get("/readyz").status == 503, "the drain")
        c.check("GET", "/readyz", s.get("/readyz")).has(503)
        c.check("POST", "/v1/runs", s.post(body)).has(503, "draining")
        s.signal(15)
        first.join(20 * SLOW)
        second.join(20 * SLOW)
    with Folder() as f:
        f.file("config/cejail/profiles/x.json", '{"extends": "base", "audit": "required"}')
        with FullDisk(f) as log, Service(config={"audit": {"file": log}}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            c.check("POST", "/v1/runs", s.post({**body, "profile": "x"})).has(503, "audit_unavailable")
    missing = {row for row in c.missing() if row[3] not in NOT_AT_WILL}
    equal(sorted(map(str, missing)), [], "documented and never seen")


@test("an unknown path is 404; an unsupported method is 405, and Allow lists the supported ones")
def _():
    with Service() as s:
        for path in ("/", "/v1", "/v1/run", "/v1/runs/", "/v1/runs/a/b", "/metrics/", "/LIVEZ", "/v1/../livez", "//livez"):
            s.get(path).has(404, "not_found")
        for method, path, allow in (
            ("PUT", "/v1/runs", "GET, POST"), ("DELETE", "/v1/runs", "GET, POST"), ("POST", "/v1/runs/x", "DELETE, GET"),
            ("POST", "/livez", "GET"), ("DELETE", "/metrics", "GET"), ("PATCH", "/v1/profiles", "GET"),
        ):  # fmt: skip
            reply = s.call(method, path).has(405, "method_not_allowed")
            equal(sorted(reply.headers["Allow"].split(", ")), sorted(allow.split(", ")), "Allow")


@test("another user's runs can't be seen nor cancelled, and look like none", who="root")
def _():
    with Service() as s:
        first = s.background(s.sh, "sleep 6000", id="roots")
        s.await_state("roots", "running")
        as_uid(OTHER_UID, s.get, "/v1/runs/roots").has(404, "not_found")
        as_uid(OTHER_UID, s.call, "DELETE", "/v1/runs/roots").has(404, "not_found")
        equal(as_uid(OTHER_UID, s.get, "/v1/runs").has(200).json["runs"], [], "the other's list")
        as_uid(OTHER_UID, lambda: s.sh("true", id="roots")).has(200)  # an id is its caller's own
        equal([run["id"] for run in s.runs("running")], ["roots"], "the first one goes on")
        s.call("DELETE", "/v1/runs/roots").has(202)
        equal(first.finish(20).result["status"], "cancelled", "the run")
