# SPDX-License-Identifier: Apache-2.0
"""Events as they happen."""

import json
import re
import socket

from harness import *  # noqa: F403
from service import OTHER_UID, RECEIVE, Service, as_uid, read_all

NDJSON = {"Accept": "application/x-ndjson"}


def stream(s, body):
    """A run's events."""
    connection = s.connect()
    connection.request("POST", "/v1/runs", json.dumps(body), NDJSON)
    response = connection.getresponse()
    equal((response.status, response.headers["Content-Type"].split(";")[0]), (200, "application/x-ndjson"), "status and type")
    for line in response:
        yield json.loads(line)
    connection.close()


def body_of(script, **more):
    return {"profile": "base", "command": ["/bin/sh", "-c", script], "network": "none", **more}


@test("events arrive as they happen: start first, then output, the result last")
def _():
    with Service() as s:
        events = list(stream(s, body_of("echo a; sleep 0.5; echo b >&2; exit 3", id="mine")))
        kinds = [event["type"] for event in events]
        equal((kinds[0], kinds[-1], kinds.count("result")), ("start", "result", 1), f"the order {kinds}")
        equal(events[0]["id"], "mine", "the start's id")
        equal(events[-1]["result"]["exit_code"], 3, "exit code")
        check_schema(events[-1]["result"], "result.json")
        equal([e["text"] for e in events if e["type"] in ("stdout", "stderr")], ["a\n", "b\n"], "output")
        for event in stream(s, body_of("echo a; sleep 600", id="waits")):
            if event["type"] == "stdout":  # the program does not end by itself
                s.call("DELETE", "/v1/runs/waits").has(202)
        equal(event["result"]["status"], "cancelled", "the end of a program whose output came before")


@test("internal lines between server and worker never reach a caller")
def _():
    with Service(config={"pool": {"python": {"jails": 1, "interpreters": 1}}}) as s:
        for _ in range(3):
            kinds = {event["type"] for event in stream(s, {"profile": "python", "code": "print(1)", "network": "none"})}
            equal(kinds - {"start", "stdout", "stderr", "denied", "dropped", "result"}, set(), "kinds of events")


@test("a caller learns that the first socket of a program has built its network, in prepared jails and in new ones")
def _():
    with Service(config={"pool": {"python": {"jails": 1, "interpreters": 1}}}) as s:
        for _ in range(4):
            body = {"profile": "python", "code": "import socket, sys; socket.socket(); sys.stdout.write('1')"}
            events = [event for event in stream(s, body)]
            equal([event["type"] for event in events], ["start", "network", "stdout", "result"], "kinds of events")
            equal(events[1]["state"], events[-1]["result"]["network"]["state"], "the state of the network")


@test("a character is never split, and bytes that are not UTF-8 arrive as base64")
def _():
    code = "import os, time\nfor b in '\u20ac\u00e9'.encode(): os.write(1, bytes([b])); time.sleep(0.05)\nos.write(1, b'\\xff')"
    with Service() as s:
        events = [event for event in stream(s, {"profile": "python", "code": code, "network": "none"})]
    text = "".join(event.get("text", "") for event in events if event["type"] == "stdout")
    equal(text, "\u20ac\u00e9", "the text")
    equal([event["base64"] for event in events if "base64" in event], ["/w=="], "the rest")


@test("denied system calls are reported while the program runs")
def _():
    with Service() as s:
        events = [event for event in stream(s, body_of("unshare -U true; mount -t tmpfs x /mnt; sleep 0.2"))]
    if events[-1]["result"]["layers"].get("syscall_report") == "on":
        true(any(event["type"] == "denied" for event in events), f"events {[e['type'] for e in events]}")


MANY = 400 * 65536  # bytes


def flood(s, more):
    """A caller who asks for events of a program that says MANY, and hasn't read any yet."""
    connection = s.connect()
    connection.request("POST", "/v1/runs", json.dumps(body_of(f"head -c {MANY} /dev/zero | tr '\\0' x", **more)), NDJSON)
    return connection, connection.getresponse()


def text_bytes(events):
    return sum(len(event.get("text", "")) for event in events if event["type"] == "stdout")


@test("a caller that reads slowly gets every event, the program waits for it, and nobody else does", limit=120)
def _():
    with Service() as s:
        connection, response = flood(s, {"timeout": f"{50 * SLOW:.0f}s", "id": "mine"})
        equal(s.sh("echo other").result["stdout"]["text"], "other\n", "another caller's output")
        equal([run["id"] for run in s.runs("running")], ["mine"], "runs while nobody reads")
        events = [json.loads(line) for line in response]
        connection.close()
    equal({event["type"] for event in events}, {"start", "stdout", "result"}, "kinds of events")
    value = events[-1]["result"]
    equal((value["status"], value["stdout"]["bytes"], text_bytes(events)), ("exited", MANY, MANY), "status and bytes")


@test("a cancelled run does not wait for a caller that reads nothing, and the caller learns how many events were dropped")
def _():
    with Service() as s:
        connection, response = flood(s, {"timeout": f"{50 * SLOW:.0f}s", "id": "mine"})
        s.call("DELETE", "/v1/runs/mine").has(202)
        s.await_state("mine", "finished")
        events = [json.loads(line) for line in response]
        connection.close()
    equal(events[-1]["result"]["status"], "cancelled", "status")
    came, dropped = text_bytes(events), any(event["type"] == "dropped" for event in events)
    equal(came == events[-1]["result"]["stdout"]["bytes"], not dropped, f"all came ({came} bytes)")


def await_closed(s, why):
    """The only connection is the question itself."""
    wait_until(lambda: s.metric("cejail_connections") <= 1, why, 20)


@test("a reply that nobody reads is dropped after a time, and GET /v1/runs still has the end of the run")
def _():
    with Service(config={"receive_timeout": RECEIVE}) as s:
        for size, headers in ((1 << 20, {}), (300 << 10, NDJSON)):  # so few events don't hold up the program
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.settimeout(20 * SLOW)
                sock.connect(s.socket)
                body = json.dumps(body_of(f"head -c {size} /dev/zero | tr '\\0' x", id="mine", max_output="1M")).encode()
                fields = {"Host": "x", "Content-Length": len(body), **headers}
                sock.sendall(b"POST /v1/runs HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items()).encode() + b"\r\n" + body)
                s.await_state("mine", "finished")
                await_closed(s, "the end of a connection whose answer nobody reads")
                answer = read_all(sock)
            true(0 < len(answer) < size, f"{len(answer)} bytes of an answer that was given up")
            contains(s.said(), "does not read the reply", "the log")


@test("unread replies of one caller are limited; above that it is refused, and others are answered", who="root", limit=120)
def _():
    # a control character takes six bytes in an answer: 96 MiB, of 128 that may wait for one caller
    large = body_of(f"head -c {16 << 20} /dev/zero | tr '\\0' '\\1' > /box/out/x", artifacts=True, id="mine", profile="slow")
    request = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n"
    body = json.dumps(large).encode()
    with Folder() as f, slow_service(f) as s:
        with s.connect_as(OTHER_UID) as sock:
            sock.sendall(request % (len(body), b"") + body)
            wait_until(lambda: [run["state"] for run in as_uid(OTHER_UID, s.runs)] == ["finished"], "the first run's end")
            second = {**large, "id": "second"}
            as_uid(OTHER_UID, s.post, second).has(429, "too_many_waiting")
            equal(as_uid(OTHER_UID, s.get, "/v1/runs/second").has(200).json["status"], "exited", "how it ended")
            lines = as_uid(OTHER_UID, post_for_lines, s, second)
            equal((lines[0]["type"], lines[-1]["type"], lines[-1]["error"]["code"]), ("start", "error", "too_many_waiting"), "the events")
            as_uid(OTHER_UID + 1, s.post, {**large, "id": "theirs"}).has(200)
            head = sock.recv(65536)
            length = int(re.search(rb"Content-Length: ([0-9]+)", head)[1])
            rest = length - (len(head) - head.index(b"\r\n\r\n") - 4)
            while rest > 0:
                rest -= len(sock.recv(1 << 20))
            true(length > 96 << 20, f"the first answer has {length} bytes")
        as_uid(OTHER_UID, s.post, second).has(200)


def slow_service(f):
    """Its profile gives a run the time that so large an answer takes on a slow machine."""
    f.file("cejail/profiles/slow.json", json.dumps({"extends": "base", "timeout": scaled(30)}))
    callers = {f"uid:{uid}": {"profiles": ["slow"]} for uid in (OTHER_UID, OTHER_UID + 1)}
    return Service(config={"callers": callers}, env={"XDG_CONFIG_HOME": f.path})


def post_for_lines(s, body):
    return s.call("POST", "/v1/runs", body, NDJSON).lines
