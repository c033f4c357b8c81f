# SPDX-License-Identifier: Apache-2.0
"""A run that nobody wants any more ends."""

import json
import socket

from harness import *  # noqa: F403
from service import Service, Connection, TOKEN, bearer, one_token_config


def ask(s, script, **headers):
    """A request whose answer nobody has read yet."""
    connection = s.connect()
    body = {"profile": "base", "command": ["/bin/sh", "-c", script], "network": "none", "id": "mine"}
    connection.request("POST", "/v1/runs", json.dumps(body), headers)
    return connection


@test("DELETE cancels a running run; its request gets a result with the output so far")
def _():
    with Service() as s:
        first = s.background(s.sh, "echo before; sleep 6000", id="mine")
        s.await_state("mine", "running")
        s.await_sleep()
        answer = s.call("DELETE", "/v1/runs/mine").has(202).json
        equal(answer["id"], "mine", "id")
        value = first.finish(20).result
        equal((value["status"], value["stdout"]["text"]), ("cancelled", "before\n"), "the result")
        equal(s.call("DELETE", "/v1/runs/mine").has(200).json["state"], "finished", "afterwards")


@test("DELETE cancels a queued run")
def _():
    with Service(config={"concurrency": 1}) as s:
        first = s.background(s.sh, "sleep 6000", id="first")
        s.await_state("first", "running")
        second = s.background(s.sh, "echo ran", id="second")
        s.await_state("second", "queued")
        s.call("DELETE", "/v1/runs/second").has(202)
        value = second.finish(10).result
        equal((value["status"], value["stdout"]["text"]), ("cancelled", ""), "the result")
        s.call("DELETE", "/v1/runs/first").has(202)
        first.finish()


@test("a caller that disconnects cancels its run, streaming or not")
def _():
    with Service() as s:
        for headers in ({}, {"Accept": "application/x-ndjson"}):
            connection = ask(s, "sleep 6000", **headers)
            s.await_state("mine", "running")
            connection.close()
            ended = wait_until(lambda: [run for run in s.runs("finished") if run["id"] == "mine"], "the run to end", 15)
            equal(ended[0]["status"], "cancelled", "status")


@test("a queued run whose caller disconnects never starts")
def _():
    with Service(config={"concurrency": 1}) as s:
        first = s.background(s.sh, "sleep 6000", id="first")
        s.await_state("first", "running")
        connection = ask(s, "sleep 6000")
        s.await_state("mine", "queued")
        connection.close()
        s.call("DELETE", "/v1/runs/first").has(202)
        first.finish().has(200)
        equal(s.sh("echo next").result["stdout"]["text"], "next\n", "the next one's output")
        equal([(run["state"], run["started_at"]) for run in s.runs() if run["id"] == "mine"], [("finished", None)], "the queued run")


@test("on TCP, a caller that disconnects cancels its run")
def _():
    with Folder() as f:
        config = one_token_config(f)
        port = int(config["tcp"].split(":")[1])
        with Service(config=config) as s:
            body = json.dumps({"profile": "base", "command": ["sleep", "6000"], "network": "none"}).encode()
            sock = socket.create_connection(("127.0.0.1", port))
            sock.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (TOKEN.encode(), len(body), body))
            wait_until(lambda: s.metric("cejail_runs_in_flight") == 1, "the run")
            sock.close()
            wait_until(lambda: s.metric("cejail_runs_in_flight") == 0, "its end", 15)


@test("everything inside a cancelled run is dead before the caller gets the result")
def _():
    with Service() as s:
        first = s.background(s.sh, "trap '' TERM INT HUP; sleep 61 & sleep 62 & wait; sleep 63", id="mine")
        s.await_state("mine", "running")
        s.await_sleep()
        s.call("DELETE", "/v1/runs/mine").has(202)
        equal(first.finish(20).result["status"], "cancelled", "status")
        wait_until(lambda: not [pid for pid in s.workers() if "sleep" in (describe_process(pid) or "")], "the processes to be gone", 5)
