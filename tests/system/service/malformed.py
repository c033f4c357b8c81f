# SPDX-License-Identifier: Apache-2.0
"""What is no HTTP or no JSON is refused, in time, and harms nobody else."""

import json
import re
import resource
import socket
import time

from harness import *  # noqa: F403
from service import OTHER_UID, RECEIVE, Service, TOKEN, as_uid, bearer, call, one_token_config, read_all, tcp_call

LARGE = {"profile": "base", "command": ["true"], "network": "none"}  # with a stdin
GOOD = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else None


def still_serves(s):
    equal(s.get("/livez").has(200).json, {"status": "alive"}, "another caller's answer")


@test("bytes that are not HTTP are answered with an error or a closed connection")
def _():
    rows = (
        b"\0" * 100 + b"\r\n\r\n", b"\xff\xfe\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b"GET\r\n\r\n", b"GET /livez\r\n\r\n",
        b"GET /livez HTTP/9.9\r\nHost: x\r\n\r\n", b"GET /livez HTTP/1.1\r\n: no name\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    )  # fmt: skip
    with Service(config={"receive_timeout": RECEIVE}) as s:
        for row in rows:
            answer = s.raw(row)
            status = status_of(answer)
            true(status is None or 400 <= status <= 599, f"{row!r} is answered with {answer[:200]!r}")
            still_serves(s)


def head(*lines, method=b"POST", path=b"/v1/runs"):
    return b"\r\n".join((method + b" " + path + b" HTTP/1.1", b"Host: x", *lines)) + b"\r\n\r\n"


# Each of them is one request that is wrong in one way; what follows it must not be taken for another.
MALFORMED = (
    head(b"Authorization: Bearer abc\0x"), head(b"X: a\x01b"), head(b"X: a\x7fb"), head(b"X: a\rb"), head(b"X: a\nb"), head(b"X\0: a"),
    head(b"Content-Length : 2") + b"{}", head(b" X: a"), head(b"X: a", b" folded"), head(b"X: a", b"\tfolded"), head(b"no colon"), head(b": no name"), head(b"X(y): a"),
    head(b"Content-Length: -1"), head(b"Content-Length: +2") + b"{}", head(b"Content-Length: 2x") + b"{}", head(b"Content-Length: 0x2") + b"{}", head(b"Content-Length:") + b"{}",
    head(b"Content-Length: 1 2") + b"{}", head(b"Content-Length: 2, 2") + b"{}", head(b"Content-Length: 99999999999999999999"), head(b"Content-Length: 2", b"Content-Length: 2") + b"{}",
    head(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"{}", head(b"Transfer-Encoding: identity"), head(b"Transfer-Encoding: gzip, chunked"), head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    head(b"Host: y"), head(b"Authorization: a", b"Authorization: b"), head(method=b"P(ST"), head(method=b"X" * 40), head(path=b""), head(path=b"/a b"), head(path=b"/a\x80"), head(path=b"/%00"), head(path=b"/%zz"), head(path=b"/%4"),
    b"GET /livez HTTP/1.1\r\n\r\n", b"GET /livez HTTP/9.9\r\nHost: x\r\n\r\n", b"GET /livez http/1.1\r\nHost: x\r\n\r\n", b"GET /livez\r\n\r\n", b"GET  /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /livez HTTP/1.1\nHost: x\n\n", b"\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\0", b"SSH-2.0-x\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 101 + b"\r\n",
    head(b"Transfer-Encoding: chunked") + b"zz\r\n", head(b"Transfer-Encoding: chunked") + b"2\n{}\r\n", head(b"Transfer-Encoding: chunked") + b"2\r\n{}}\r\n", head(b"Transfer-Encoding: chunked") + b"2\r\n{}\r\n\r\n",
    head(b"Transfer-Encoding: chunked") + b"fffffffffffffffff\r\n", head(b"Transfer-Encoding: chunked") + b"2;" + b"x" * 5000,
)  # fmt: skip


def one_error(answer, code=("bad_request", "too_large")):
    """Exactly one answer, of JSON, that says that it is the last."""
    answer_head, _, body = answer.partition(b"\r\n\r\n")
    equal(len(re.findall(rb"HTTP/1\.1 [0-9]{3} ", answer)), 1, f"answers in {answer!r}")
    contains(answer_head, b"Connection: close", "the answer's head")
    contains(answer_head, b"Content-Type: application/json", "the answer's head")
    error = json.loads(body)["error"]
    true(error["code"] in code and error["message"], f"the error is {error}")
    return error


@test("every malformed request gets one JSON error, and its connection ends")
def _():
    with Service() as s:
        for row in MALFORMED:
            try:
                one_error(s.raw(row + GOOD, ends=False))
            except (Failure, ValueError) as problem:
                raise Failure(f"{row!r}: {problem}") from problem
        for cut in (b"GET", GOOD[:-1], head(b"Content-Length: 10") + b"{", head(b"Transfer-Encoding: chunked") + b"5\r\n{"):
            one_error(s.raw(cut))
        contains(one_error(s.raw(head(b"Content-Length: 2x")))["message"], "Content-Length", "the message")
        contains(one_error(s.raw(head(b"Authorization: Bearer abc\0x")))["message"], "0x00", "the message")
        equal(s.get("/v1/runs").json, {"runs": []}, "runs")
        still_serves(s)
        tried(len(MALFORMED))


@test("a token is read whole or not at all")
def _():
    with Folder() as f:
        config = one_token_config(f)
        with Service(config=config) as s:
            def ask(value):
                with socket.create_connection(("127.0.0.1", int(config["tcp"].split(":")[1])), timeout=20 * SLOW) as sock:
                    sock.sendall(b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: " + value + b"\r\n\r\n")
                    return status_of(read_all(sock))

            token = b"Bearer " + TOKEN.encode()
            equal([ask(token), ask(token + b" \t"), ask(token + b"\0x"), ask(token + b"x"), ask(token[:-1])], [200, 200, 400, 401, 401], "statuses")


@test("odd but right requests are served: chunks with extensions and trailers, 100-continue, HTTP/1.0, HEAD, encoded paths")
def _():
    body = json.dumps({"profile": "base", "command": ["true"], "network": "none"}).encode()
    with Service() as s:
        chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (1, body[i : i + 1]) for i in range(len(body))) + b"000\r\nX: trailer\r\n\r\n"
        answer = s.raw(head(b"Transfer-Encoding: Chunked") + chunks + GOOD)
        true(answer.startswith(b"HTTP/1.1 200") and answer.endswith(b'{"status":"alive"}\n'), f"the answers are {answer!r}")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(30 * SLOW)
            sock.connect(s.socket)
            sock.sendall(head(b"Expect: 100-continue", b"Connection: close", b"Content-Length: %d" % len(body)))
            equal(sock.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n", "what is said before the body")
            sock.sendall(body)
            equal(status_of(read_all(sock)), 200, "the status")
        refused = s.raw(head(b"Expect: 100-continue", b"Content-Length: 999999999"), ends=False)
        equal((status_of(refused), refused.count(b"HTTP/1.")), (413, 1), "who asks before it sends too much")
        old = s.raw(b"GET /livez HTTP/1.0\r\n\r\n" + GOOD, ends=False)
        true(old.startswith(b"HTTP/1.1 200") and old.count(b"HTTP/1.1") == 1, f"the answer to HTTP/1.0 is {old!r}")
        old = s.raw(b"GET /livez HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n" * 2)
        equal(old.count(b"Connection: keep-alive"), 2, f"kept in {old!r}")
        lines = s.raw(b"POST /v1/runs HTTP/1.0\r\nAccept: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body), ends=False)
        lacks(lines, b"Transfer-Encoding", "a stream to HTTP/1.0")
        equal(json.loads(lines.splitlines()[-1])["type"], "result", "its last line")
        bare = s.raw(b"HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        true(bare.endswith(b"\r\n\r\n") and b"Content-Length: 19\r\n" in bare, f"HEAD is answered with {bare!r}")
        equal(status_of(s.raw(b"GET /%6civez?a=b HTTP/1.1\r\nHost: x\r\n\r\n")), 200, "an encoded path")
        for size in range(1, len(GOOD)):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(s.socket)
                sock.settimeout(30 * SLOW)
                sock.sendall(GOOD[:size])
                sock.sendall(GOOD[size:])
                sock.shutdown(socket.SHUT_WR)
                equal(status_of(read_all(sock)), 200, f"in two pieces, the first of {size} bytes")


@test("without a token no request body is received: a path open to all refuses one by its head")
def _():
    start = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
    with Folder() as f:
        config = one_token_config(f, receive_timeout=f"{60 * SLOW:.0f}s")
        with Service(config=config) as s:
            for header in (b"Content-Length: 1", b"Content-Length: 1000000", b"Transfer-Encoding: chunked"):
                with socket.create_connection(("127.0.0.1", int(config["tcp"].split(":")[1])), timeout=20 * SLOW) as sock:
                    sock.sendall(start + header + b"\r\n\r\n")  # and no byte of the body
                    contains(one_error(read_all(sock))["message"], "no request body", header.decode())
            equal(status_of(s.raw(start + b"Content-Length: 0\r\n\r\n")), 200, "the status with an empty body")


@test("a head that is too long is refused")
def _():
    with Service() as s:
        for row in (b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 50000 + b"\r\n", b"GET /livez HTTP/1.1\r\nX: " + b"y" * (1 << 20) + b"\r\n\r\n"):
            answer = s.raw(row)
            true(status_of(answer) in (None, 400, 404, 413, 414, 431, 500), f"the answer is {answer[:200]!r}")
            still_serves(s)


@test("a body that is no JSON, or not a request, is refused with its place")
def _():
    good = {"profile": "base", "command": ["true"]}
    rows = (
        "", "{", "[]", "nul", "{} {}", '{"profile": "base"}', '{"profile": "base", "profile": "base", "command": ["true"]}', '{"profile": "no-such", "command": ["true"]}',
        '{"profile": "../base", "command": ["true"]}', '{"profile": "base", "command": []}', '{"profile": "base", "command": ["a\\u0000b"]}', '{"profile": "base", "command": ["\\ud800"]}',
        "[" * 100000, json.dumps({**good, "memory": "lots"}), json.dumps({**good, "unknown": 1}), json.dumps({**good, "tty": True}),
        json.dumps({**good, "files": [{"path": "../x", "text": ""}]}), json.dumps({**good, "files": [{"path": "a", "base64": "!"}]}), json.dumps({**good, "id": "a/b"}),
        json.dumps({**good, "extends": "python"}), json.dumps({**good, "env": {"A=B": "x"}}), json.dumps({**good, "stdin": 7}), json.dumps({**good, "code": "x"}),
        b"\xff{}", json.dumps(good).encode("utf-16"),
    )  # fmt: skip
    with Service() as s:
        for row in rows:
            reply = s.call("POST", "/v1/runs", row)
            reply.has(400, "bad_request")
            lacks(reply.body.decode(), "/usr", "the message")
        equal(s.metric("cejail_runs_total", profile="base") <= 1, True, "only the probe has run")
        s.post(good).has(200)


@test("bodies over each cap are refused: the whole, the code, a file, standard input")
def _():
    config = {"body_max": "64K", "code_max": "2K", "file_max": "3K", "stdin_max": "4K"}
    with Service(config=config) as s:
        s.run("#" * 2049).has(413, "too_large")
        equal(s.run("#" * 2048).result["exit_code"], 0, "code at its cap")
        s.run("1", files=[{"path": "a", "text": "x" * 3073}]).has(413, "too_large")
        s.run("1", stdin="x" * 4097).has(413, "too_large")
        s.run("1", args=["x" * 70000]).has(413, "too_large")
        head = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n"
        equal(status_of(s.raw(head)), 413, "a length that is announced")
        chunks = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        equal(status_of(s.raw(chunks + chunks.split(b"\r\n\r\n")[1] * 3)), 413, "chunks that go on")
        still_serves(s)


def send_most(sock, seconds):
    """Nearly all of a large request; the status of what it is answered with, None if the rest is waited for."""
    head = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 33554432\r\n\r\n"
    try:
        sock.sendall(head + b" " * (31 << 20))
        sock.settimeout(seconds)
        return status_of(sock.recv(4096))
    except TimeoutError:
        return None
    except OSError:
        return status_of(sock.recv(4096))


@test("the memory of unfinished requests of one caller is limited; others have room, and it is freed afterwards", who="root", limit=90)
def _():
    with Service(config={"body_max": "32M", "stdin_max": "32M", "receive_timeout": f"{60 * SLOW:.0f}s"}) as s:
        callers = [s.connect_as(OTHER_UID) for _ in range(6)]
        answers = [send_most(sock, 0.2 * SLOW) for sock in callers]
        # 128 MiB have room; each takes 31 to 32, as it happens to come in
        true(answers[:3] == [None] * 3 and set(answers[3:]) <= {None, 429} and answers.count(429) >= 2, f"the answers are {answers}")
        large = {**LARGE, "stdin": "x" * (20 << 20)}
        as_uid(OTHER_UID + 1, s.post, large).has(200)
        s.post(large).has(200)
        for sock in callers:
            sock.close()
        wait_until(lambda: as_uid(OTHER_UID, s.post, large).status == 200, "room for a large one again", 20)


@test("a request as large as the largest cap is received", limit=90)
def _():
    with Service(config={"body_max": "256M", "stdin_max": "200M", "receive_timeout": f"{60 * SLOW:.0f}s"}) as s:
        s.post({**LARGE, "stdin": "x" * (150 << 20)}).has(200)


@test("a request that does not arrive in time is refused, and does not delay others")
def _():
    starts = (b"GET /li", b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")

    def slow_callers(s, *starts):
        for data in starts:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(20 * SLOW)
            sock.connect(s.socket)
            sock.sendall(data)
            yield sock

    with Service(config={"receive_timeout": "1h"}) as s:
        slow = list(slow_callers(s, b"", *starts))
        still_serves(s)
        true(s.metric("cejail_connections") > len(slow), "another caller waited for the slow ones")
        for sock in slow:
            sock.close()
    with Service(config={"receive_timeout": RECEIVE}) as s:
        for sock in list(slow_callers(s, *starts)):
            answer = read_all(sock)
            true(status_of(answer) in (None, 408), f"the answer is {answer[:200]!r}")
            sock.close()


@test("sending a byte now and then does not extend the time for a request")
def _():
    with Service(config={"receive_timeout": RECEIVE}) as s:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.connect(s.socket)
            sock.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")

            def is_closed():
                try:
                    sock.sendall(b" ")
                except OSError:
                    return True
                return False

            wait_until(is_closed, "the end of the connection", pause=0.1)


@test("an idle connection is closed after a time, and many of them leave room for others")
def _():
    with Service(config={"receive_timeout": RECEIVE}) as s:
        idle = []
        for _ in range(300):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(s.socket)
            idle.append(sock)
        still_serves(s)
        for sock in idle:
            sock.close()


@test("connections that a caller doesn't use leave room for others, and for root", who="root", limit=90)
def _():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with Folder() as f:
        config = one_token_config(f, receive_timeout=f"{60 * SLOW:.0f}s")
        port = int(config["tcp"].split(":")[1])
        with Service(config=config) as s:
            unauthenticated = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
            tcp_call(port, "GET", "/v1/runs", headers=bearer(TOKEN)).has(200)
            idle = [s.connect_as(OTHER_UID) for _ in range(300)]
            as_uid(OTHER_UID, s.get, "/livez").has(429, "too_many_waiting")
            as_uid(OTHER_UID + 1, s.get, "/livez").has(200)
            for uid in range(1, 5):
                idle += [s.connect_as(OTHER_UID + uid) for _ in range(300)]
            as_uid(OTHER_UID + 5, s.get, "/livez").has(503, "queue_full")
            still_serves(s)
            for sock in unauthenticated + idle:
                sock.close()
            wait_until(lambda: as_uid(OTHER_UID, s.get, "/livez").status == 200, "room again", 20)


@test("a caller that shuts down its sending side still gets its reply")
def _():
    body = json.dumps({"profile": "base", "command": ["/bin/sh", "-c", "sleep 0.5; echo x"], "network": "none"}).encode()
    with Service() as s:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(20 * SLOW)
            sock.connect(s.socket)
            sock.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            sock.shutdown(socket.SHUT_WR)
            answer = read_all(sock)
        equal(status_of(answer), 200, "the status")
        equal(parse_result(answer.split(b"\r\n\r\n", 1)[1].decode())["stdout"]["text"], "x\n", "stdout")


@test("a connection serves one request after the other, and several that were sent at once")
def _():
    with Service() as s:
        connection = s.connect()
        for i in range(5):
            body = {"profile": "base", "command": ["/bin/echo", str(i)], "network": "none"}
            equal(call(connection, "POST", "/v1/runs", body).result["stdout"]["text"], f"{i}\n", "stdout")
        connection.close()
        answers = s.raw(GOOD * 3 + GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        equal(answers.count(b'{"status":"alive"}'), 4, f"answers in {answers!r}")


@test("smuggling does not work: what follows a refused request is not taken for another")
def _():
    inner = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n"
    with Service() as s:
        for head in (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n", b"Transfer-Encoding: identity, chunked\r\n\r\n"):
            answer = s.raw(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\n" + head + b"0\r\n\r\n" + inner)
            lacks(answer, b"smuggled", "the answer")
            still_serves(s)
        length = b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(inner)
        answer = s.raw(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\n" + length + inner)
        equal(status_of(answer), 400, "the status")
        lacks(answer, b"smuggled", "the answer")
