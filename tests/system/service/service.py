# SPDX-License-Identifier: Apache-2.0
"""A service of a test's own: `cejail serve` on a socket in a folder, a client, and what it left.

Nothing of the project but the program is used: the client is Python's http.client on a Unix socket.
"""

import contextlib
import glob
import http.client
import json
import os
import pickle
import random
import re
import signal
import socket
import subprocess
import threading
import time

import harness
from harness import Failure, Folder, SLOW, Skip, equal, true

OTHER_UID = 64001  # nobody has it; root's tests call as this one
TOKEN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"


# How long a service waits for a request in tests in which it has to give one up.
RECEIVE = f"{max(1, SLOW / 3):.0f}s"


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout * SLOW)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Reply:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body

    def __repr__(self):
        return f"{self.status} {self.body[:400]!r}"

    @property
    def json(self):
        try:
            return json.loads(self.body, object_pairs_hook=harness.unique_keys)
        except ValueError as problem:
            raise Failure(f"no JSON: {self!r}") from problem

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]

    def has(self, status, code=None):
        """The status, and of an error its code; errors are as their schema says."""
        if self.status != status:
            raise Failure(f"status {self.status}, expected {status}: {self!r}")
        true(self.headers["X-Request-Id"], f"no X-Request-Id: {self!r}")
        if status >= 400 and "status" not in self.json:  # /readyz has none
            harness.check_schema(self.json, "error.json")
            if code:
                equal(self.json["error"]["code"], code, "the error's code")
            equal(self.json["error"]["request_id"], self.headers["X-Request-Id"], "the request's id")
        if status in (429, 503) and "error" in self.json:
            true(re.fullmatch("[1-9][0-9]*", self.headers["Retry-After"] or ""), f"Retry-After: {self.headers.items()}")
        return self

    @property
    def result(self):
        """Of a run that was taken."""
        self.has(200)
        return harness.parse_result(self.body.decode())


def call(connection, method, path, body=None, headers=None):
    if isinstance(body, dict):
        body = json.dumps(body)
    try:
        connection.request(method, path, body, headers or {})
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before all of it was read: the answer is there
    response = connection.getresponse()
    return Reply(response, response.read())


class Service:
    """Runs while the block does; its end is looked at: nothing it started may be alive."""

    def __init__(self, *options, config=None, ready=True, env=None, **more):
        self.options, self.config, self.ready, self.env = options, config, ready, env or {}
        self.more = more

    def __enter__(self):
        self.folder = Folder().__enter__()
        os.chmod(self.folder.path, 0o755)
        self.socket = self.folder / "api.sock"
        self.log_path = self.folder / "log"
        self.write_config(self.config or {})
        self.start()
        return self

    def write_config(self, config):
        self.folder.file("serve.json", json.dumps({"probe_interval": "1h", "socket_mode": "0666", "pool": {}, **config}))

    def reload(self, config):
        before = self.said().count("configuration reloaded")
        self.write_config(config)
        self.signal(signal.SIGHUP)
        harness.wait_until(lambda: self.said().count("configuration reloaded") > before, "the reload")

    def start(self):
        words = ["serve", "--socket", self.socket, "--config", self.folder / "serve.json", *self.options]
        self.log = open(self.log_path, "ab")
        self.process = harness.start(*words, stderr=self.log, env=harness.environment(**self.env), **self.more)
        if self.ready:
            self.await_ready()

    def await_ready(self):
        harness.wait_until(self.is_ready, f"the service; it says {self.said()!r}", 20)

    def is_ready(self, status=200):
        if self.process.poll() is not None:
            raise Failure(f"the service ended with {self.process.returncode}: {self.said()!r}")
        try:
            return self.get("/readyz").status == status
        except (ConnectionError, FileNotFoundError, PermissionError):  # not there, or not open to us, yet
            return False

    def said(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def __exit__(self, kind, failure, *unused):
        if kind is Failure and "status 500" in str(failure):
            failure.args = (f"{failure}\nthe service's log: {self.said()[-2000:]}",)
        try:
            if self.process.poll() is None:
                self.process.terminate()
                try:
                    code = self.process.wait(20 * SLOW)
                except subprocess.TimeoutExpired as late:
                    self.process.kill()
                    self.process.wait()
                    raise Failure(f"SIGTERM did not end the service: {self.said()!r}") from late
                if kind is None:
                    equal(code, 0, f"the service's exit status ({self.said()!r})")
        finally:
            self.log.close()
            if self.process.stdout:
                self.process.stdout.close()
            self.folder.__exit__()

    # --- calling ------------------------------------------------------------

    def connect_as(self, uid):
        """A bare connection of another user's; for root.  What counts is who connects."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.seteuid(uid)
        try:
            sock.connect(self.socket)
        finally:
            os.seteuid(0)
        sock.settimeout(60 * SLOW)
        return sock

    def connect(self, timeout=60):
        return Connection(self.socket, timeout)

    def call(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            return call(connection, method, path, body, headers)
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.call("GET", path, None, headers)

    def post(self, body, **headers):
        return self.call("POST", "/v1/runs", body, {k.replace("_", "-"): v for k, v in headers.items()})

    def run(self, code="print(6 * 7)", profile="python", **more):
        return self.post({"profile": profile, "code": code, "network": "none", **more})

    def sh(self, script, **more):
        return self.post({"profile": "base", "command": ["/bin/sh", "-c", script], "network": "none", **more})

    def raw(self, data, reads=True, seconds=10, ends=True):
        """Any bytes on a connection of their own, and the end of them; all that comes back until it is closed."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(seconds * SLOW)
            sock.connect(self.socket)
            try:
                sock.sendall(data)
                if ends:
                    sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return read_all(sock) if reads else b""

    def background(self, function, *args, **more):
        return Background(function, *args, **more)

    def runs(self, state=None):
        runs = self.get("/v1/runs").has(200).json["runs"]
        return [run for run in runs if state in (None, run["state"])]

    def await_state(self, name, state):
        return harness.wait_until(
            lambda: [run for run in self.runs(state) if run["id"] == name], f"run {name} to be {state}"
        )[0]

    def await_sleep(self, besides=()):
        """Until the program of a run is at its sleep(1); it is handed over a while before it begins."""

        def sleeps():
            return any(" sleep " in (harness.describe_process(pid) or "") for pid in set(self.workers()) - set(besides))

        harness.wait_until(sleeps, "the program to sleep")

    def metric(self, name, **labels):
        """The sum of a family's rows that have these labels."""
        total = 0.0
        for line in self.get("/metrics").has(200).body.decode().splitlines():
            found = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? ([^ ]+)", line)
            if not found or found[1] != name:
                continue
            row = dict(re.findall(r'([a-z_]+)="([^"]*)"', found[2] or ""))
            if all(row.get(key) == value for key, value in labels.items()):
                total += float(found[3])
        return total

    def workers(self):
        """Processes below the service's own."""
        return processes_below(self.process.pid)

    def signal(self, number):
        self.process.send_signal(number)


def processes_below(pid):
    todo, found = [pid], []
    while todo:
        children = harness.children_of(todo.pop())
        found += children
        todo += children
    return found


def read_all(sock):
    data = b""
    try:
        while True:
            piece = sock.recv(65536)
            if not piece:
                return data
            data += piece
    except ConnectionResetError:
        return data
    except socket.timeout as late:
        raise Failure(f"the service neither answers nor closes; so far: {data[:300]!r}") from late


class Background(threading.Thread):
    """A call that goes on meanwhile."""

    def __init__(self, function, *args, **more):
        super().__init__(daemon=True)
        self.function, self.args, self.more = function, args, more
        self.value = self.problem = None
        self.start()

    def run(self):
        try:
            self.value = self.function(*self.args, **self.more)
        except Exception as problem:
            self.problem = problem

    def finish(self, seconds=60):
        self.join(seconds * SLOW)
        if self.is_alive():
            raise harness.waited(seconds, "no answer")
        if self.problem:
            raise self.problem
        return self.value


def as_uid(uid, function, *args):
    """What a function returns when another user calls it; for root."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(ours)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            value = function(*args)
            if isinstance(value, Reply):
                value = {"reply": (value.status, list(value.headers.items()), value.body)}
            with os.fdopen(theirs, "wb") as file:
                pickle.dump(value, file)
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    if not data:
        raise Failure(f"the call as uid {uid} failed")
    value = pickle.loads(data)
    if isinstance(value, dict) and "reply" in value:
        return Copied(*value["reply"])
    return value


class Copied(Reply):
    """A reply that crossed a process."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, Headers(headers), body


class Headers(dict):
    def __missing__(self, key):
        return None


def gone(pids):
    """Dead ones may be ours to collect: we are who orphans come to."""
    harness.descendants()
    return all((harness.describe_process(pid) or "(Z)").endswith("(Z)") for pid in pids)


def one_token_config(folder, **more):
    path = folder.file("token", TOKEN)
    os.chmod(path, 0o600)
    return {"tcp": f"127.0.0.1:{free_port()}", "token_file": path, **more}


def free_port():
    """None of those that the kernel gives to clients: places that run at once share the host's ports."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


def tcp_call(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30 * SLOW)
    try:
        return call(connection, method, path, body, headers)
    finally:
        connection.close()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}
