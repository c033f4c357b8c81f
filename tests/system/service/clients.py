# SPDX-License-Identifier: Apache-2.0
"""Clients of other people, as they come: Node's http and fetch, Python's http.client.  What refuses them they must read."""

import collections
import http.client
import json
import resource
import shutil
import socket
import subprocess

from harness import *  # noqa: F403
from service import OTHER_UID, Service, TOKEN, as_uid, one_token_config, read_all

TRIES = 20
SIZE = 3 << 20  # far more than a socket holds

NODE = """
const http = require("http"), [where, tries, size] = [JSON.parse(process.argv[1]), +process.argv[2], +process.argv[3]];
const body = "x".repeat(size);
const ask = () => new Promise((done) => {
  const request = http.request({...where, method: "POST", path: "/v1/runs"}, (response) => {
    let text = "";
    response.on("data", (part) => text += part);
    response.on("end", () => done(response.statusCode + " " + JSON.parse(text).error.code));
    response.on("error", (problem) => done("answer: " + problem.code));
  });
  request.on("error", (problem) => done("request: " + problem.code));
  request.end(body);
});
const fetched = async () => {
  try {
    const response = await fetch(`http://127.0.0.1:${where.port}/v1/runs`, {method: "POST", body});
    return response.status + " " + (await response.json()).error.code;
  } catch (problem) {
    return "fetch: " + (problem.cause ? problem.cause.code : problem);
  }
};
(async () => {
  const seen = {http: [], fetch: []};
  for (let i = 0; i < tries; i++) {
    seen.http.push(await ask());
    if (where.port) seen.fetch.push(await fetched());
  }
  console.log(JSON.stringify(seen));
})();
"""


def node(where):
    if not shutil.which("node"):
        raise Skip("no node")
    done = subprocess.run(["node", "-e", NODE, json.dumps(where), str(TRIES), str(SIZE)], capture_output=True, timeout=60 * SLOW, check=False)
    equal((done.returncode, done.stderr), (0, b""), "node's end")
    return {name: dict(collections.Counter(answers)) for name, answers in json.loads(done.stdout).items() if answers}


class OnSocket(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30 * SLOW)
        self.sock.connect(self.host)


def python(connect):
    """Nothing is forgiven: what request() raises is a loss."""
    seen = collections.Counter()
    for _ in range(TRIES):
        connection = connect()
        connection.request("POST", "/v1/runs", b"x" * SIZE)
        response = connection.getresponse()
        seen[f"{response.status} {json.load(response)['error']['code']}"] += 1
        connection.close()
    return dict(seen)


@test("a caller that is refused while it still sends gets the error: Python, over TCP and a Unix socket")
def _():
    with Folder() as f:
        config = one_token_config(f, body_max="1M")
        port = int(config["tcp"].split(":")[1])
        with Service(config=config) as s:
            equal(python(lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=30 * SLOW)), {"401 unauthorized": TRIES}, "over TCP")
            equal(python(lambda: OnSocket(s.socket)), {"413 too_large": TRIES}, "on the socket")
            tried(2 * TRIES)


@test("a caller that is refused while it still sends gets the error: Node's http and fetch")
def _():
    with Folder() as f:
        config = one_token_config(f, body_max="1M")
        with Service(config=config) as s:
            wanted = {"401 unauthorized": TRIES}
            equal(node({"host": "127.0.0.1", "port": int(config["tcp"].split(":")[1])}), {"http": wanted, "fetch": wanted}, "over TCP")
            equal(node({"socketPath": s.socket}), {"http": {"413 too_large": TRIES}}, "on the socket")
            tried(3 * TRIES)


def answer_of(sock):
    try:
        data = read_all(sock)
        return data.split(b" ", 2)[1].decode() if data else "nothing"
    except OSError as problem:
        return f"recv: {problem}"


@test("500 connections of one caller are all answered, those past its share with 429", who="root", limit=120)
def _():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    request = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 20000\r\n\r\n" + b" " * 20000
    # a busy machine may take longer than the default for all of them
    with Service(config={"callers": {"default": {"rate_per_minute": 0}}, "receive_timeout": "10m"}) as s:
        socks = [s.connect_as(OTHER_UID) for _ in range(500)]
        wait_until(lambda: s.metric("cejail_connections") > 500, "all of them to be taken", 20)
        for sock in socks:
            sock.sendall(request)
        equal(dict(collections.Counter(answer_of(sock) for sock in socks)), {"400": 256, "429": 244}, "answers")
        for sock in socks:
            sock.close()
        wait_until(lambda: as_uid(OTHER_UID, s.get, "/livez").status == 200, "room again", 20)
        tried(500)


@test("500 connections over TCP that show no token in time are all answered, the oldest with 429", limit=120)
def _():
    request = b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
    with Folder() as f:
        config = one_token_config(f, callers={"token:default": {"rate_per_minute": 0}}, receive_timeout="10m")
        with Service(config=config) as s:
            socks = [socket.create_connection(("127.0.0.1", int(config["tcp"].split(":")[1])), timeout=60 * SLOW) for _ in range(500)]
            wait_until(lambda: s.metric("cejail_connections") > 500, "all of them to be taken", 20)
            for sock in socks:
                sock.sendall(request)
            answers = [answer_of(sock) for sock in socks]
            equal(dict(collections.Counter(answers)), {"200": 64, "429": 436}, "answers")
            for sock in socks:
                sock.close()
            tried(500)


@test("a refused caller that keeps sending is disconnected after a size")
def _():
    with Service() as s:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60 * SLOW)
            sock.connect(s.socket)
            sock.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
            contains(read_all(sock), b"413", "the answer")
            sent, block = 0, b"x" * (1 << 20)
            try:
                while sent < 200 << 20:
                    sent += sock.send(block)
            except OSError:
                pass
            true(60 << 20 < sent < 70 << 20, f"{sent} bytes were taken")
        equal(s.get("/livez").status, 200, "another caller's status")

