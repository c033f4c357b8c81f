# SPDX-License-Identifier: Apache-2.0
"""`run --remote`: what goes wrong between here and a service, and services that mean harm.

That it is like a run here, tests/system shows with CEJAIL_TEST_REMOTE.
"""

import base64
import contextlib
import hashlib
import json
import os
import pty
import re
import signal
import socket
import threading
import time

from harness import *  # noqa: F403
from service import Service, gone

RESULT = {"schema": "cejail.result/1", "status": "exited", "exit_code": 0, "error": None, "artifacts": [], "warnings": []}


class Other:
    """Something that listens and is no service: it reads a request and says what it was told to."""

    def __init__(self, folder, *answers):
        self.path, self.answers, self.requests = folder / "other.sock", list(answers), []
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(self.path)
        self.sock.listen(5)

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def serve(self):
        for answer in self.answers:
            try:
                connection, _ = self.sock.accept()
            except OSError:
                return
            data = b""
            while b"\r\n\r\n" not in data or len(data.split(b"\r\n\r\n", 1)[1]) < int(data.split(b"Content-Length: ")[1].split(b"\r\n")[0]):
                data += connection.recv(65536)
            self.requests.append(data)
            try:
                connection.sendall(answer)
            except OSError:
                pass
            connection.close()

    def __exit__(self, *unused):
        self.sock.close()


def reply(body, status=200, kind="application/json"):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (status, kind.encode(), len(body), body)


def artifact(path, data=b"x", **more):
    return {"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "type": "text/plain", "base64": base64.b64encode(data).decode(), **more}


def ask(other, *options):
    return run("--remote", other.path, *options, "-p", "base", "--", "true")


@test("without a service on the socket, one line says so and how to start one")
def _():
    with Folder() as f:
        refused(run(f"--remote={f / 'nowhere'}", "--", "true"), "nowhere", "cejail serve")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(f / "dead")
        sock.close()
        refused(run(f"--remote={f / 'dead'}", "--", "true"), "dead", "cejail serve")
        refused(run(f"--remote={f.file('plain')}", "--", "true"), "plain")
        refused(run("--remote=" + "/x" * 100, "--", "true"), "longer")


@test("--remote without a socket finds the caller's own service, with XDG_RUNTIME_DIR and without", who="user")
def _():
    with Folder() as f:
        config = f.file("serve.json", json.dumps({"probe_interval": "1h"}))
        with_session, without = environment(XDG_RUNTIME_DIR=f.folder("runtime")), environment()
        os.chmod(with_session["XDG_RUNTIME_DIR"], 0o700)
        without.pop("XDG_RUNTIME_DIR", None)
        nowhere = cejail("run", "--remote", "-p", "base", "--", "true", env=with_session)
        refused(nowhere, "no service listens", with_session["XDG_RUNTIME_DIR"] + "/cejail", "cejail serve")
        for env in (with_session, without):
            with open(f / "log", "w+b") as log:
                service = start("serve", "--config", config, env=env, stderr=log)
                try:
                    listening = wait_until(lambda: re.search(r"listening on (/\S+/api\.sock)", open(f / "log", encoding="utf-8").read()), "the socket's path on standard error", 20)
                    true(os.path.exists(listening[1]), f"the path {listening[1]}")
                    equal(cejail("run", "--remote", "-q", "-p", "python", "-c", "print(6)", env=env).out, "6\n", "output without a socket's name")
                    equal(cejail("run", "--remote", f.file("x.py", "print(7)"), env=env).out, "7\n", "output of a file that follows")
                    equal(cejail("run", "--remote", listening[1], "-p", "python", "-c", "print(8)", env=env).out, "8\n", "output with it")
                finally:
                    service.terminate()
                    service.wait()
                    service.stdout.close()


@test("an answer that is not from a service is one error line, and exit status 125")
def _():
    rows = (
        b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", reply(b""), reply(b"{}"), reply(b"nonsense"),
        reply([RESULT]), reply({**RESULT, "schema": "x/1"}), reply({**RESULT, "status": "fine"}), reply(b"<html>", 404, "text/html"), reply(b"", 500),
        reply(b'{"type":"start"}\n', kind="application/x-ndjson"), reply(b'{"type":"result","result":{}}\n'), reply(b'{"type":7}\n'), reply(b"[" * 100000),
        reply(json.dumps({"type": "result", "result": RESULT}).encode() + b"\n" + json.dumps({"type": "result", "result": RESULT}).encode() + b"\n"),
    )  # fmt: skip
    for row in rows:
        with Folder() as f, Other(f, row) as other:
            refused(ask(other))
            tried()


@test("a call that the program cannot have made is one error line, and no line for the caller")
def _():
    good = {"type": "call", "call": 1, "name": "a", "arguments": {}}
    whole = json.dumps({"type": "result", "result": RESULT}).encode()
    rows = (
        {**good, "name": "b"}, {**good, "name": 'a","arguments":{}}\n{"id":2,"name":"a'}, {**good, "call": 0}, {**good, "call": -1}, {**good, "call": "1"}, {**good, "arguments": []}, {**good, "arguments": "{}"},
        {"type": "call", "call": 1, "arguments": {}}, {"call": 1, **good, "type": "call"}, {**good, "arguments": {"a": "x" * (1 << 20)}},
    )  # fmt: skip
    lines = [json.dumps(row, separators=(",", ":")).encode() for row in rows]
    lines += [lines[0][:-9], b'{"type":"call","call":1,"name":"a","arguments":{}}\n' * 2, b'{"type":"call","call":1,"name":"a","arguments":{},"more":1}', b'{"type":"call","arguments":}']
    for line in lines:
        ours, theirs = socket.socketpair()
        with Folder() as f, ours, theirs, Other(f, reply(line + b"\n" + whole, kind="application/x-ndjson")) as other:
            words = ("--tools", f.file("tools.json", '[{"name": "a"}]'), "--calls-fd", str(theirs.fileno()))
            refused(run("--remote", other.path, *words, "-p", "base", "--", "true", pass_fds=[theirs.fileno()]))
            theirs.close()
            seen = ours.makefile("rb").read()
            equal(seen, b"" if b"\n" not in line else seen, f"what the caller got after {line[:80]}")
            contains(str(other.requests[0]), 'tools":{"tools":[{"name":"a"}]', "the request")
            tried()


@test("an error shows its code, its hint and when to retry")
def _():
    error = {"error": {"code": "above_ceiling", "message": "memory: too much", "hint": "ask for less", "request_id": "r"}}
    with Folder() as f, Other(f, reply(error, 403)) as other:
        refused(ask(other), "memory: too much", "above_ceiling", "ask for less")
    with Folder() as f, Other(f, reply(error, 403)) as other:
        value = parse_result(run("--json", "--remote", other.path, "--", "true").exits(125).out)
        equal((value["status"], value["error"]["stage"]), ("setup_error", "service"), "the result")


@test("what a service sends as artefacts stays in the directory")
def _():
    bad = ["../out", "/etc/x", "a/../../x", "", ".", "..", "a//b", "a/", "-rf", "a\nb", "x/" * 20 + "y", "n" * 300]
    for name in bad:
        with Folder() as f, Other(f, reply({**RESULT, "artifacts": [artifact(name), artifact("good")]})) as other:
            target = f / "deep/er/target"
            os.makedirs(target)
            done = ask(other, "-o", target).exits(125)
            contains(done.err, "not stored", "stderr")
            found = [os.path.join(base, x) for base, _, names in os.walk(f.path) for x in names]
            equal([path for path in found if not path.endswith("other.sock")], [target + "/good"], f"files with {name!r}")
            tried()


@test("links in the directory are not followed, and what has a name's place is replaced")
def _():
    with Folder() as f, Other(f, reply({**RESULT, "artifacts": [artifact("link/x"), artifact("file", b"new")]})) as other:
        f.folder("elsewhere")
        f.folder("target")
        os.symlink(f / "elsewhere", f / "target/link")
        os.symlink(f.file("victim", "old"), f / "target/file")
        contains(ask(other, "-o", f / "target").exits(125).err, "link/x", "stderr")
        equal(os.listdir(f / "elsewhere"), [], "behind the link")
        with open(f / "victim", encoding="ascii") as file:
            equal(file.read(), "old", "the link's target")
        with open(f / "target/file", encoding="ascii") as file:
            equal(file.read(), "new", "the artefact")


@test("an artefact that is not what its hash says is not stored")
def _():
    with Folder() as f, Other(f, reply({**RESULT, "artifacts": [artifact("a", sha256="0" * 64)]})) as other:
        contains(ask(other, "-o", f / "target").exits(125).err, "SHA-256", "stderr")
        equal(os.listdir(f / "target"), [], "files")


@test("a request has what was asked for, and the caller's own environment only by name")
def _():
    with Folder() as f, Other(f, reply(RESULT)) as other:
        path = f.file("tool", "#!/bin/sh\n", 0o755)
        words = ("-f", path, "-e", "FROM_CALLER", "-e", "A=b", "-t", "3s", "-m", "64M", "--ro-bind", "rel:/x", "--overlay", "rel:/y", "--artifact-path", "/y/z", "--network", "none")
        env = environment(FROM_CALLER="yes")
        run("--remote", other.path, *words, "-p", "base", "--", "true", "x", env=env, cwd=f.path).exits(0)
        head, body = other.requests[0].split(b"\r\n\r\n", 1)
        body = json.loads(body)
        del body["id"]
        wanted = {
            "profile": "base", "command": ["true", "x"], "timeout": "3s", "memory": "64M", "env": {"FROM_CALLER": "yes", "A": "b"}, "ro_bind": [f"{f.path}/rel:/x"],
            "overlay": [f"{f.path}/rel:/y"], "artifact_path": ["/y/z"],
            "network": {"mode": "none"}, "files": [{"path": "/box/tool", "text": "#!/bin/sh\n", "executable": True}],
        }  # fmt: skip
        equal(body, wanted, "the request")
        lacks(other.requests[0].decode(), SECRET, "the request")


@test("--overlay and --artifact-path of a remote run: changes stay in the jail, what was named comes back")
def _():
    with Service() as s, Folder() as f:
        f.file("src/old", "old")
        out = f.folder("out")
        words = ("--overlay", "src:/src", "-w", "/src", "-o", out, "--artifact-path", "/src/new", "--artifact-path", "/src/old", "--network", "none")
        run("--remote", s.socket, *words, "-p", "base", "--", "sh", "-c", "echo more >> old; echo new > new", cwd=f.path).exits(0)
        for path, text in (("out/src/new", "new\n"), ("out/src/old", "oldmore\n"), ("src/old", "old")):
            with open(f / path, encoding="ascii") as file:
                equal(file.read(), text, path)
        equal(os.listdir(f / "src"), ["old"], "the host's tree")


@test("a result has the files of a request's artifact_path, and one in the wrong place is named")
def _():
    with Service() as s:
        answer = s.post({"profile": "base", "command": ["sh", "-c", "echo x > made"], "network": "none", "artifacts": True, "artifact_path": ["made"]}).has(200)
        equal([item["path"] for item in answer.result["artifacts"]], ["box/made"], "artifacts")
        answer = s.post({"profile": "base", "command": ["true"], "artifacts": True, "artifact_path": ["/etc/x"]}).has(200)
        equal(answer.result["status"], "setup_error", "status")
        contains(answer.result["error"]["message"], "'/etc/x' is neither below /box", "error")


@test("what can't be sent is refused here: links in directories, words that are no UTF-8, profiles that are files")
def _():
    with Service() as s, Folder() as f:
        f.file("tree/a", "x")
        os.symlink("a", f / "tree/link")
        refused(run("--remote", s.socket, "-f", f / "tree", "--", "true"), "tree/link", "symbolic link")
        refused(run("--remote", s.socket, "--", "echo", b"\xff"), "UTF-8")
        refused(run("--remote", s.socket, "-p", f.file("p.json", "{}"), "--", "true"), "p.json")
        for option in ("--tty", "--dry-run"):
            refused(run("--remote", s.socket, option, "--", "true"), "--remote", option)
        refused(cejail("shell", "--remote", s.socket), "--remote", "shell")
        os.unlink(f / "tree/link")
        os.mkdir(f / "tree/empty")
        done = run("--remote", s.socket, "-f", f / "tree", "--network", "none", "--", "ls", "/box/tree").exits(0)
        equal(done.out, "a\n", "stdout")
        contains(done.err, "/box/tree/empty", "stderr")


@test("a file keeps the extension that says which language it is")
def _():
    with Folder() as f, Other(f, reply(RESULT), reply(RESULT)) as other:
        run("--remote", other.path, f.file("a.mjs", "1")).exits(0)
        run("--remote", other.path, f.file("a.py", "1")).exits(0)
        first, second = (json.loads(data.split(b"\r\n\r\n", 1)[1]) for data in other.requests)
        equal((first["profile"], first.get("file_name")), ("node", "main.mjs"), "the first request")
        equal((second["profile"], second.get("file_name")), ("python", None), "the second request")


@test("a signal cancels the remote run, and its result arrives")
def _():
    with Service() as s:
        words = ("run", "--remote", s.socket, "--id", "mine", "--network", "none", "--json", "--", "/bin/sh", "-c", "echo before; sleep 6000")
        process = start(*words)
        s.await_state("mine", "running")
        s.await_sleep()
        process.send_signal(signal.SIGINT)
        done = finish(process, 20).exits(130)
        value = parse_result(done.out)
        equal((value["status"], value["stdout"]["text"]), ("cancelled", "before\n"), "the result")
        contains(done.err, "SIGINT", "stderr")


@test("a service that says nothing is not waited for long after a signal")
def _():
    with Folder() as f, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(f / "silent")
        silent.listen(5)
        process = start("run", f"--remote={f / 'silent'}", "--json", "--", "true")
        connection, _ = silent.accept()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        done = finish(process, 15).exits(128 + signal.SIGTERM)
        connection.close()
        equal(parse_result(done.out)["status"], "cancelled", "status")


@test("a service that dies during a run is an error, and the exit status is 125", limit=90)
def _():
    with Service() as s:
        process = start("run", "--remote", s.socket, "--id", "mine", "--network", "none", "--", "/bin/sh", "-c", "echo before; sleep 6000")
        equal(process.stdout.readline(), b"before\n", "the program's word")
        alive = s.workers()
        s.process.kill()
        s.process.wait()
        done = finish(process, 20).exits(125)
        equal(done.out, "", "stdout afterwards")
        contains(done.err, "cejail: ", "stderr")
        wait_until(lambda: gone(alive), "its jails to be gone", 25)
        s.start()


@test("control characters are shown on a terminal, and passed on elsewhere")
def _():
    with Service() as s:
        words = ("run", "--remote", s.socket, "--network", "none", "--", "printf", "a\\033b")
        equal(cejail(*words).raw_out, b"a\x1bb", "through a pipe")
        ours, theirs = pty.openpty()
        process = start(*words, stdout=theirs)
        os.close(theirs)
        seen = os.read(ours, 100)
        finish(process)
        os.close(ours)
        equal(seen, b"a\\x1bb", "on a terminal")


KINDS = ("terminal", "pipe", "socket")


@test("a reader that never reads doesn't hold up the end, at the time limit or after a signal", limit=120)
def _():
    with Service() as s, Folder() as f, contextlib.ExitStack() as kept:
        started = []
        for kind in KINDS:
            for end in ("limit", "signal"):
                away, ours = unread(kind)
                kept.callback(os.close, ours)
                name = f"{kind}-{end}"
                words = ("--remote", s.socket, "--id", name, "-t", str(3 * SLOW if end == "limit" else 1000), f"--json={f / name}")
                started.append((name, start("run", *words, "-p", "base", "--network", "none", "--max-output", "8K", "--", "yes", stdout=away)))
                os.close(away)
        late = [run for run in started if run[0].endswith("limit")]
        for _, process in late:
            await_exit(process, 30)
        others = [run for run in started if run not in late]
        for _, process in others:  # by now there is more output than nobody has read
            process.send_signal(signal.SIGINT)
        for name, process in late + others:
            tried()
            done = finish(process, 20)
            with open(f / name, encoding="utf-8") as file:
                value = parse_result(file.read())
            wanted = ("cancelled", 130) if name.endswith("signal") else ("timeout", 124)
            equal((value["status"], done.code), wanted, f"{name}: end")
            contains(done.err, "standard output was not read to its end", f"{name}: stderr")
            true(value["stdout"]["truncated"], f"{name}: {value['stdout']['bytes']} bytes")


@test("what a reader that comes late finds is whole, when it comes before the time limit")
def _():
    with Service() as s:
        started = []
        for kind in ("pipe", "socket"):
            away, ours = unread(kind)
            words = ("--remote", s.socket, "-t", str(30 * SLOW), "-p", "base", "--network", "none")
            started.append((kind, ours, start("run", *words, "--", "head", "-c", "3000000", "/dev/zero", stdout=away)))
            os.close(away)
        time.sleep(7)  # longer than a reader is waited for when it is late
        for kind, ours, process in started:
            with os.fdopen(ours, "rb") as file:
                equal(len(file.read()), 3000000, f"bytes from a {kind}")
            finish(process).exits(0)
            tried()
