# SPDX-License-Identifier: Apache-2.0
"""Who may do what, and how much of it."""

import json
import os
import time

from harness import *  # noqa: F403
from service import OTHER_UID, Service, TOKEN, as_uid, bearer, free_port, one_token_config, tcp_call

BODY = {"profile": "base", "command": ["true"], "network": "none"}


def callers(**rows):
    return {"callers": {"default": rows, f"uid:{os.geteuid()}": rows}}


def refused_to_start(words, config, **more):
    with Folder() as f:
        path = f.file("serve.json", json.dumps(config))
        done = cejail("serve", "--socket", f / "s", "--config", path, limit=15, **more)
        refused(done, *words)


@test("only the profiles of a caller's row can be named, and only they are listed")
def _():
    with Service(config=callers(profiles=["base"])) as s:
        s.post(BODY).has(200)
        s.run("1").has(403, "forbidden_profile")
        s.run("1", profile="no-such").has(403, "forbidden_profile")
        equal([profile["name"] for profile in s.get("/v1/profiles").json["profiles"]], ["base"], "the list")


@test("asking for more than a ceiling is refused; the value of a profile is clamped to it")
def _():
    with Service(config=callers(memory="64M", timeout="2s", pids=20, cpus=0.5, disk="1M", max_output="1K")) as s:
        for key, value in (("memory", "65M"), ("timeout", "3s"), ("pids", 21), ("cpus", 2), ("disk", "2M"), ("max_output", "2K")):
            reply = s.post({**BODY, key: value})
            true(reply.status == 403, f"{key} {value} is not refused: {reply!r}")
            reply.has(403, "above_ceiling")
            contains(reply.json["error"]["message"], key.split("_")[-1], "the message")
        limits = s.post(BODY).result["limits"]
        seen = {name: limits[name]["value"] for name in ("memory", "wall", "pids", "cpus", "disk", "output")}
        equal(seen, {"memory": 64 << 20, "wall": 2000, "pids": 20, "cpus": 0.5, "disk": 1 << 20, "output": 1024}, "limits")
        equal(s.post({**BODY, "memory": "32M"}).result["limits"]["memory"]["value"], 32 << 20, "memory below the ceiling")


@test("a caller without the right to a network gets none from a profile, and is refused when it asks for one")
def _():
    with Folder() as f:
        f.file("config/cejail/profiles/listed.json", json.dumps({"extends": "base", "network": {"mode": "public", "allow": ["1.1.1.1:80"]}}))
        with Service(config={**callers(network="none"), "pool": {"base": {"jails": 1}}}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            for asked in ("public", {"mode": "public"}, {"mode": "public", "allow": ["1.1.1.1"]}):
                reply = s.post({**BODY, "network": asked}).has(403, "above_ceiling")
                contains(reply.json["error"]["hint"], "none", "the hint")
            for body in (BODY, {"profile": "base", "command": ["true"]}, {"profile": "listed", "command": ["true"]}):
                value = s.post(body).result
                equal((value["status"], value["network"]["mode"]), ("exited", "none"), f"the end of {body}")
            value = s.post({"profile": "base", "command": ["ls", "/sys/class/net"]}).result
            lacks(value["stdout"]["text"], "eth0", "the devices inside")


# What a profile sets, and the member of a request one step above it; True: an exec may have the key, too.
STEPS = (
    ({"memory": "64M"}, {"memory": (64 << 20) + 1}, False), ({"cpus": 0.5}, {"cpus": 0.501}, False),
    ({"pids": 20}, {"pids": 21}, False), ({"timeout": "2s"}, {"timeout": "2001ms"}, True),
    ({"disk": "1M"}, {"disk": (1 << 20) + 1}, False), ({"max_output": "1K"}, {"max_output": 1025}, True),
    ({"nofile": 64}, {"nofile": 65}, False), ({"cpu_time": "1s"}, {"cpu_time": "1001ms"}, False),
    ({"on_output_limit": "kill"}, {"on_output_limit": "truncate"}, True),
    ({"network": {"mode": "public", "uplink": "none"}}, {"network": {"uplink": "auto"}}, False),
    ({"network": {"mode": "public", "allow_private": True}}, {"network": {"allow": ["10.0.0.1"]}}, False),
    ({"network": "none"}, {"network": "public"}, False), ({"noexec": True}, {"noexec": False}, False),
    ({"noexec": True}, {"writable": True}, False),
)  # fmt: skip


@test("one step above the value of a profile is refused for a run, a session and an exec", limit=120)
def _():
    with Folder() as f:
        for number, (profile, _more, _is_execs) in enumerate(STEPS):
            f.file(f"config/cejail/profiles/step{number}.json", json.dumps({"extends": "base", **profile}))
        with Service(config={**callers(host_paths=False, sessions=40), "sessions": 40}, env={"XDG_CONFIG_HOME": f / "config"}) as s:
            for number, (profile, more, is_execs) in enumerate(STEPS):
                body = {"profile": f"step{number}"}
                for path, program in (("/v1/runs", {"command": ["true"]}), ("/v1/sessions", {})):
                    reply = s.call("POST", path, {**body, **program, **more})
                    true(reply.status == 403, f"{path}: {profile} and {more}: {reply!r}")
                    reply.has(403, "above_ceiling")
                    tried()
                if is_execs:
                    made = s.call("POST", "/v1/sessions", {**body, "network": "none"}).has(201).json
                    execs = f"/v1/sessions/{made['id']}/execs"
                    s.call("POST", execs, {"command": ["true"], **more}).has(403, "above_ceiling")
                    s.call("POST", execs, {"command": ["true"], **profile}).has(200)
                    s.call("DELETE", f"/v1/sessions/{made['id']}").has(200)
                    tried()


@test("settings that name something of the host need the right to")
def _():
    rows = ({"ro_bind": ["/etc:/x"]}, {"bind": ["/tmp:/x"]}, {"overlay": ["/srv:/x"]}, {"connect": ["tcp:127.0.0.1:1"]}, {"connect": ["unix:/run/x"]}, {"upstream": ["m=https://h"]}, {"rootfs": "/"}, {"seccomp": "/etc/passwd"}, {"cgroup_parent": "/"}, {"file": ["/etc/shadow"]}, {"network": {"mode": "public", "allow": ["10.0.0.1"], "allow_private": True}})
    with Service(config=callers(host_paths=False)) as s:
        for row in rows:
            s.post({**BODY, **row}).has(403, "forbidden_host_path")
    with Service(config=callers(host_paths=True)) as s:
        equal(s.sh("ls /x/passwd", ro_bind=["/etc:/x"]).result["exit_code"], 0, "with the right")


@test("another user may name nothing of the host unless a row says so", who="root")
def _():
    with Service() as s:
        as_uid(OTHER_UID, s.post, {**BODY, "ro_bind": ["/etc:/x"]}).has(403, "forbidden_host_path")
        as_uid(OTHER_UID, s.post, BODY).has(200)
        s.post({**BODY, "ro_bind": ["/etc:/x"]}).has(200)
    with Service(config={"callers": {f"uid:{OTHER_UID}": {"profiles": ["python"]}}}) as s:
        as_uid(OTHER_UID, s.post, BODY).has(403, "forbidden_profile")
        s.post(BODY).has(200)


@test("only users that the mode of the socket allows can connect", who="root")
def _():
    with Service(config={"socket_mode": "0600"}) as s:
        equal(os.stat(s.socket).st_mode & 0o777, 0o600, "mode")
        try:
            as_uid(OTHER_UID, s.post, BODY)
        except Failure:
            return
        raise Failure("another user could connect")


@test("a caller above its rate gets 429 with Retry-After, and may send again after that time")
def _():
    with Service() as s:
        s.reload(callers(rate_per_minute=max(1, int(30 / SLOW)), burst=3))  # or asking whether it is ready takes of it
        for _ in range(10):  # a slow one may earn the right to another
            reply = s.post(BODY)
            if reply.status != 200:
                break
        reply.has(429, "rate_limited")
        time.sleep(int(reply.headers["Retry-After"]) + 0.2)
        s.post(BODY).has(200)


@test("every kind of request counts for a caller's rate, except /livez", who="root")
def _():
    asked = [("GET", "/v1/profiles"), ("GET", "/metrics"), ("GET", "/readyz"), ("GET", "/v1/runs"), ("GET", "/v1/runs/x"), ("DELETE", "/v1/runs/x"), ("GET", "/nothing"), ("PUT", "/livez")]
    with Service(config={"callers": {"default": {"rate_per_minute": 1, "burst": len(asked)}}}) as s:
        for method, path in asked:
            true(as_uid(OTHER_UID, s.call, method, path).status != 429, f"{method} {path} has no place in the burst")
        for method, path in asked:
            as_uid(OTHER_UID, s.call, method, path).has(429, "rate_limited")
        for _ in range(2 * len(asked)):
            as_uid(OTHER_UID, s.get, "/livez").has(200)


@test("many requests of one caller do not delay those of another", who="root", limit=90)
def _():
    with Service(config={"concurrency": 2, "queue": 100, "queue_wait": f"{60 * SLOW:.0f}s", "callers": {"default": {"queued": 60, "concurrent": 2}, "uid:0": {"queued": 60, "concurrent": 2}}}) as s:
        crowd = [s.background(s.sh, f"sleep {0.3 * min(SLOW, 10)}") for _ in range(30)]
        wait_until(lambda: len(s.runs("queued")) >= 20, "the crowd to wait")
        began = time.monotonic()
        as_uid(OTHER_UID, s.post, BODY).has(200)
        waited = time.monotonic() - began
        still = len(s.runs("queued"))
        true(still > 5, f"the other waited {waited:.1f} s, until the crowd was nearly done ({still} wait)")
        for one in crowd:
            one.finish().has(200)


@test("a caller without a limit of its own may use half of the concurrency, and others the rest", who="root")
def _():
    with Service(config={"concurrency": 4, "callers": {"uid:0": {}}}) as s:
        crowd = [s.background(s.sh, "sleep 6000", id=f"run-{i}") for i in range(4)]
        wait_until(lambda: len(s.runs()) == 4 and len(s.runs("running")) == 2, "its runs to go on")
        as_uid(OTHER_UID, s.post, BODY).has(200)
        equal((len(s.runs("running")), len(s.runs("queued"))), (2, 2), "running and waiting")
        for i in (3, 2, 1, 0):
            s.call("DELETE", f"/v1/runs/run-{i}").has(202)
        for one in crowd:
            one.finish().has(200)


@test("over TCP the exact token is required")
def _():
    with Folder() as f:
        config = one_token_config(f)
        port = int(config["tcp"].split(":")[1])
        with Service(config=config) as s:
            equal(tcp_call(port, "GET", "/livez").has(200).json, {"status": "alive"}, "livez")
            for headers in ({}, bearer(""), bearer(TOKEN[:-1]), bearer(TOKEN + "x"), bearer(TOKEN.lower()), {"Authorization": TOKEN}, {"Authorization": f"Basic {TOKEN}"}):
                reply = tcp_call(port, "GET", "/v1/runs", headers=headers).has(401, "unauthorized")
                contains(reply.headers["WWW-Authenticate"] or "", "Bearer", "WWW-Authenticate")
                tcp_call(port, "POST", "/v1/runs", BODY, headers).has(401, "unauthorized")
            tcp_call(port, "POST", "/v1/runs", BODY, bearer(TOKEN)).has(200)
            equal(s.get("/v1/runs").json["runs"], [], "the runs of the Unix socket's caller")
            lacks(s.said(), TOKEN, "the log")


@test("over TCP only loopback names are accepted as Host")
def _():
    with Folder() as f:
        config = one_token_config(f)
        port = int(config["tcp"].split(":")[1])
        with Service(config=config):
            for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example", ""):
                tcp_call(port, "GET", "/v1/runs", headers={**bearer(TOKEN), "Host": host}).has(403, "forbidden_origin")
            for host in ("localhost", f"localhost:{port}", "127.0.0.1"):
                tcp_call(port, "GET", "/v1/runs", headers={**bearer(TOKEN), "Host": host}).has(200)


@test("over TCP a form of a web page is no request")
def _():
    with Folder() as f:
        config = one_token_config(f)
        port = int(config["tcp"].split(":")[1])
        with Service(config=config):
            for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
                tcp_call(port, "POST", "/v1/runs", BODY, {**bearer(TOKEN), "Content-Type": kind}).has(415, "unsupported_media_type")


@test("a weak, missing or readable token keeps the service from starting")
def _():
    port = free_port()
    with Folder() as f:
        for name, text, mode, word in (("short", "x" * 31, 0o600, "32"), ("same", "x" * 64, 0o600, "token"), ("open", TOKEN, 0o644, "other users"), ("group", TOKEN, 0o640, "other users"), ("empty", "", 0o600, "32")):
            path = f.file(name, text)
            os.chmod(path, mode)
            refused_to_start((word,), {"tcp": f"127.0.0.1:{port}", "token_file": path})
        refused_to_start(("nowhere",), {"tcp": f"127.0.0.1:{port}", "token_file": f / "nowhere"})
        refused_to_start(("token",), {"tcp": f"127.0.0.1:{port}"})


@test("no other address than the loopback's can be listened on")
def _():
    for address in ("0.0.0.0:1234", "192.0.2.1:1234", "[::]:1234", "localhost:1234", "127.0.0.1", "127.0.0.1:0x50"):
        refused_to_start(("tcp",), {"tcp": address})
