# SPDX-License-Identifier: Apache-2.0
"""--upstream: a program uses a web service, and never has its key.  upstream_program.py tries the helper alone."""

import contextlib
import http.server
import json
import os
import signal
import ssl
import subprocess
import threading

from harness import *  # noqa: F403

KEY = "sk-0123456789abcdef"
GET = "import urllib.request as u\nprint(u.urlopen('http://model.upstream.internal{path}', timeout={limit}).read().decode())\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text, **headers):
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def take(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size).decode()
        self.server.seen.append((self.command, self.path, dict(self.headers.items()), body))
        is_right = self.headers.get("Authorization") == f"Bearer {self.server.key}"
        if self.path.startswith("/moved"):
            self.answer(302, "", Location="http://other.example/")
        elif self.path.startswith("/echo"):
            self.answer(200, json.dumps(dict(self.headers.items())))
        elif self.path.startswith("/events"):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for number in range(3):
                self.wfile.write(f"data: {number}\n\n".encode())
                self.wfile.flush()
                self.server.step.acquire(timeout=60 * SLOW)
            self.close_connection = True
        else:
            self.answer(200 if is_right else 401, f"right {body}" if is_right else "wrong")

    do_GET = do_POST = take

    def log_message(self, *unused):
        pass


@contextlib.contextmanager
def server(context=None):
    """A web service on this host's loopback that knows the key."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        listener.seen, listener.key, listener.step = [], KEY, threading.Semaphore(0)
        if context:
            listener.socket = context.wrap_socket(listener.socket, server_side=True)
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield listener
        listener.shutdown()


@contextlib.contextmanager
def with_key(context=None):
    """The service, the file of the key, and the text of --upstream."""
    with Folder() as place, server(context) as own:
        path = place.file("api.key", KEY + "\n")
        scheme = "https" if context else "http"
        yield own, place, f"model={scheme}://127.0.0.1:{own.server_port},header=Authorization:Bearer @{path}"


def helpers_of(process):
    def name_of(pid):
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()

    return [pid for pid in children_of(process.pid) if name_of(pid) == "upstream"]


def has_ended(pid):
    """Its parent may not have reaped it."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def ask(path="/v1/x"):
    return GET.format(path=path, limit=60 * SLOW)


def use(value):
    return value["upstreams"][0]


@test("a program uses a service whose key it never has, without another network", limit=90)
def _():
    looks = ask() + (
        "import glob, os, socket\n"
        "for name in ['/etc/hosts', *glob.glob('/proc/[0-9]*/environ'), *glob.glob('/proc/[0-9]*/cmdline'), *glob.glob('/proc/self/mountinfo')]:\n"
        "    try: text = open(name, errors='replace').read()\n    except PermissionError: continue\n"
        f"    assert {KEY[3:]!r} not in text, name\n"
        f"assert {KEY[3:]!r} not in str(os.environ)\n"
        "try:\n    socket.create_connection(('127.0.0.1', PORT), 5); print('open')\nexcept OSError: print('closed')\n"
    )  # fmt: skip
    with with_key() as (own, _, text):
        value = result("-p", "python", "--network", "none", "--upstream", text, "-c", looks.replace("PORT", str(own.server_port)), limit=60)
        equal((value["status"], value["stdout"]["text"], value["stderr"]["text"]), ("exited", "right \nclosed\n", ""), "how it ended")
        equal(own.seen[0][2].get("Authorization"), f"Bearer {KEY}", "the header that the service saw")
        equal(own.seen[0][2].get("Host"), f"127.0.0.1:{own.server_port}", "the Host that the service saw")
    seen = use(value)
    equal((seen["name"], seen["requests"], seen["failed"], seen["refused"], seen["status"]), ("model", 1, 0, 0, [0, 0, 1, 0, 0, 0]), "the use")
    equal((seen["sent_bytes"], seen["received_bytes"]), (0, len("right ")), "the bytes")
    lacks(json.dumps(value), KEY, "the result")


@test("a header that the program sends is replaced, and a value that comes back is masked", limit=90)
def _():
    code = (
        "import json, urllib.request as u\n"
        "r = u.Request('http://model.upstream.internal/echo', headers={'Authorization': 'Bearer mine', 'X-Mine': 'kept'})\n"
        "got = json.loads(u.urlopen(r).read())\nprint(got['Authorization'], got['X-Mine'])\n"
    )
    with with_key() as (own, _, text):
        done = run("-p", "python", "-q", "--network", "none", "--upstream", text, "-c", code, limit=60).exits(0)
        equal(own.seen[0][2]["Authorization"], f"Bearer {KEY}", "the header that the service saw")
    lacks(done.out, KEY, "what the program saw")
    contains(done.out, "***", "what the program saw")
    contains(done.out, "kept", "what the program saw")


@test("paths outside of the prefix are refused, and redirects are handed to the program", limit=90)
def _():
    code = """import http.client
for path in ("/v1/x", "/v2/x", "/v1", "/v1x", "/v1/../v2/x", "/v1/%2e%2e/v2/x", "/v1%2f..%2fv2", "/v1/..%2fv2", "//v1/x", "/moved"):
    c = http.client.HTTPConnection("model.upstream.internal", timeout=60)
    c.request("GET", path)
    print(path, c.getresponse().status)
    c.close()
"""
    with with_key() as (own, _, text):
        value = result("-p", "python", "--network", "none", "--upstream", text + ",path=/v1/", "-c", code, limit=60)
        equal({one[1] for one in own.seen}, {"/v1/x"}, "the paths that the service saw")
        lines = dict(line.rsplit(" ", 1) for line in value["stdout"]["text"].splitlines())
        equal(lines.pop("/v1/x"), "200", "the path below the prefix")
        equal({status for status in lines.values()} - {"400", "403"}, set(), f"the answers {lines}")
        equal(use(value)["refused"], len(lines), "refused")
        moved = run("-p", "python", "-q", "--network", "none", "--upstream", text, "-c", code.replace('"/v1/x"', '"/moved/x"'), limit=60)
        contains(moved.out, "/moved/x 302", "a redirect")


@test("the key's file is read again when it changes, and without it requests fail", limit=120)
def _():
    code = "for i in range(3):\n    input()\n    try:\n        exec(%r)\n    except u.HTTPError as e: print(e.code, e.read().decode().strip(), flush=True)\n    import sys; sys.stdout.flush()\n" % ask()
    with with_key() as (own, place, text):
        process = start("run", "-p", "python", "-q", "-i", "--network", "none", "--upstream", text, "-c", "import urllib.request as u, urllib.error\nu.HTTPError = urllib.error.HTTPError\n" + code, stdin=subprocess.PIPE)

        def turn():
            process.stdin.write(b"\n")
            process.stdin.flush()
            return process.stdout.readline().decode().strip()

        try:
            equal(turn(), "right", "the first key")
            own.key = "sk-another-key-42"
            place.file("new.key", own.key)
            os.rename(place / "new.key", place / "api.key")
            equal(turn(), "right", "the second key")
            os.unlink(place / "api.key")
            said = turn()
            contains(said, "502", "without the file")
            equal(len(own.seen), 2, "requests that the service saw")
        finally:
            finish(process, given=b"")


@test("events arrive one by one", limit=90)
def _():
    code = """import urllib.request as u
stream = u.urlopen("http://model.upstream.internal/events", timeout=%s)
while line := stream.readline():
    if line.strip(): print(line.decode().strip(), flush=True)
""" % (60 * SLOW)
    with with_key() as (own, _, text):
        process = start("run", "-p", "python", "-q", "--network", "none", "-t", scaled(60), "--upstream", text, "-c", code)
        for number in range(3):
            equal(process.stdout.readline().decode().strip(), f"data: {number}", "the event")
            own.step.release()
        finish(process).exits(0)


@test("TLS with the caller's certificates is spoken outside, and a wrong certificate is refused", limit=120)
def _():
    with Folder() as place:
        done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test",
                               "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", place / "key.pem", "-out", place / "ca.pem"], capture_output=True, check=False)  # fmt: skip
        equal(done.returncode, 0, f"openssl: {done.stderr}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place / "ca.pem", place / "key.pem")
        with with_key(context) as (own, _, text):
            options = ("-p", "python", "--json", "--network", "none", "--upstream", text, "-c", ask())
            value = parse_result(run(*options, env=environment(SSL_CERT_FILE=place / "ca.pem"), limit=60).out)
            equal(value["stdout"]["text"], "right \n", "with the authority")
            value = parse_result(run(*options, limit=60).out)
            contains(value["stderr"]["text"], "502", "without the authority")
            equal((use(value)["requests"], use(value)["failed"], len(own.seen)), (0, 1, 1), "requests")


@test("Node.js uses a service by fetch", limit=90)
def _():
    if not os.path.exists("/usr/bin/node"):
        raise Skip("Node.js is not installed")
    code = "const r = await fetch('http://model.upstream.internal/v1', {method: 'POST', body: 'text'}); console.log(r.status, await r.text());"
    with with_key() as (_, place, text):
        done = run("-q", "--network", "none", "--upstream", text, place.file("code.mjs", code), limit=60)
        done.exits(0).says("200 right text\n")


@test("each of 16 services has a name of its own, beside a public network too", limit=120)
def _():
    code = "import urllib.request as u\nfor i in range(16): print(u.urlopen(f'http://s{i}.upstream.internal/').read().decode())\n"
    with with_key() as (own, place, text):
        options = [word for i in range(16) for word in ("--upstream", text.replace("model=", f"s{i}="))]
        for network in (["none"], ["public", "--uplink", "none", "--network-start", "early"]):
            value = result("-p", "python", "--network", *network, *options, "-c", code, limit=90)
            equal(value["stdout"]["text"], "right \n" * 16, f"answers with {network} ({value['stderr']['text']})")
            equal([one["requests"] for one in value["upstreams"]], [1] * 16, "requests")


@test("a run whose helper is killed goes on, warns, and reaches the server no more", limit=120)
def _():
    code = ask() + "input()\ntry:\n    u.urlopen('http://model.upstream.internal/')\nexcept Exception as e: print(e)\n"
    with with_key() as (_, _, text):
        process = start("run", "-p", "python", "-i", "--network", "none", "--upstream", text, "-c", code, stdin=subprocess.PIPE)
        equal(process.stdout.readline().decode().strip(), "right", "the first answer")
        helpers = helpers_of(process)
        equal(len(helpers), 1, "helpers")
        os.kill(helpers[0], signal.SIGKILL)
        process.stdin.write(b"\n")
        process.stdin.flush()
        done = finish(process).exits(0)
        true("refused" in done.out or "reset" in done.out, f"the second request: {done.out}")
        contains(done.err, "the helper of --upstream has ended", "the warning")


@test("no helper starts for a program that sends no request, and none is left after a killed supervisor", limit=90)
def _():
    with with_key() as (_, _, text):
        process = start("run", "-p", "python", "-i", "--network", "none", "--upstream", text, "-c", "print(1, flush=True)\ninput()\n" + ask() + "input()\n", stdin=subprocess.PIPE)
        equal(process.stdout.readline(), b"1\n", "the program")
        equal(helpers_of(process), [], "helpers before")
        process.stdin.write(b"\n")
        process.stdin.flush()
        contains(process.stdout.readline().decode(), "right", "the answer")
        (helper,) = helpers_of(process)
        process.kill()
        finish(process)
        wait_until(lambda: has_ended(helper), "the helper has ended", seconds=30 * SLOW)
        cejail("gc").exits(0)


@test("two servers of --upstream with one name are refused, and nothing runs")
def _():
    refused(run("-p", "python", "-q", "--upstream", "m=https://h", "--upstream", "m=https://g", "-c", "1"), "two have the name 'm'")
