# SPDX-License-Identifier: Apache-2.0
"""A service that runs nothing and answers from a file, for the tests of programs that call cejail.

    python3 -m cejail.fake answers.json --socket /tmp/fake.sock
    python3 -m cejail.fake answers.json --tcp 127.0.0.1:8080
    python3 -m cejail.fake answers.json --check

The file is described in cejail-serve(8), TESTING CLIENTS, and in schema/fake.json.  Each request for
a run is answered with the first entry whose conditions all match.  If none does, the run has no
output and the exit code 0.  There are no sessions, no callers and no limits: a request is refused
only if it is not valid, or if the file says so.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.server
import json
import mimetypes
import os
import re
import secrets
import signal
import socketserver
import sys
import threading
import time
from typing import Any, Callable, Union

WARNING = "no jail was built: the answer is from a file (cejail.fake)"

# The codes of errors, with their HTTP statuses.
STATUSES = {
    "bad_request": 400, "unauthorized": 401, "forbidden_origin": 403, "forbidden_profile": 403, "above_ceiling": 403,
    "forbidden_file": 403, "forbidden_host_path": 403, "not_found": 404, "method_not_allowed": 405, "not_acceptable": 406,
    "receive_timeout": 408, "id_in_use": 409, "call_ended": 409, "session_ended": 409, "not_running": 409, "not_regular": 409, "exists": 409,
    "too_large": 413, "no_space": 413, "unsupported_media_type": 415, "rate_limited": 429, "too_many_sessions": 429,
    "too_many_waiting": 429, "queue_full": 503, "sessions_full": 503, "draining": 503, "queue_timeout": 503,
    "audit_unavailable": 503, "internal": 500,
}  # fmt: skip

RUN_STATUSES = ("exited", "signaled", "timeout", "cpu_limit", "oom", "output_limit", "cancelled", "setup_error")
OUTCOMES = ("answered", "failed", "timeout", "cancelled")
LIMITS = {
    "memory": "bytes", "cpus": "cpus", "pids": "processes", "wall": "ms", "cpu_time": "ms", "disk": "bytes",
    "nofile": "files", "output": "bytes",
}  # fmt: skip
LAYERS = (
    "user_ns", "pid_ns", "mount_ns", "network_ns", "ipc_ns", "uts_ns", "cgroup_ns", "cgroup", "root", "no_new_privs",
    "capabilities", "seccomp", "syscall_report", "landlock", "network_filter",
)  # fmt: skip
REQUEST_KEYS = frozenset(
    "profile id code command args args_json tools calls stdin files artifacts file_name timeout cpu_time memory cpus pids nofile disk max_output "
    "on_output_limit env workdir file ro_bind bind overlay tmpfs connect upstream artifact_path value_path network hostname rootfs writable "
    "noexec seccomp accept_weaker strict cgroup_parent".split()
)
BODY_MAX = 64 << 20
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, None: 1}

# --- the file -----------------------------------------------------------------------------------


class Mistake(ValueError):
    """A mistake in the file or in a request, with its place."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of the members of an object; the service refuses a key that stands twice, too."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Mistake(f"the key '{key}' stands twice")
        found[key] = value
    return found


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise Mistake(f"{where}: a string that is not empty is expected")
    return value


def _hash(value: Any, where: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", _text(value, where)):
        raise Mistake(f"{where}: '{value:.80}' is not 64 digits, 0-9 and a-f")
    return str(value)


def _bytes(value: Any, where: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except ValueError as problem:
            raise Mistake(f"{where}.base64: {problem}") from None
    raise Mistake(f"{where}: a string or {{\"base64\": ...}} is expected")


def _seconds(value: Any, where: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return float(value)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]{1,6})?|\.[0-9]{1,6})(ms|s|m|h)?", value) if isinstance(value, str) else None
    if not match:
        raise Mistake(f"{where}: a duration such as \"500ms\" or 2 is expected")
    return float(match[1]) * _UNITS[match[2]]


def _between(low: int, high: int) -> Callable[[Any, str], int]:
    def read(value: Any, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise Mistake(f"{where}: a whole number from {low} to {high} is expected")
        return value

    return read


def _one_of(names: Any) -> Callable[[Any, str], str]:
    def read(value: Any, where: str) -> str:
        if value not in names:
            raise Mistake(f"{where}: there is no '{value}'")
        return str(value)

    return read


def _list(read: Callable[[Any, str], Any]) -> Callable[[Any, str], list[Any]]:
    def read_all(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise Mistake(f"{where}: a list is expected")
        return [read(item, f"{where}[{i}]") for i, item in enumerate(value)]

    return read_all


def _object(keys: dict[str, Callable[[Any, str], Any]], *required: str) -> Callable[[Any, str], dict[str, Any]]:
    def read(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Mistake(f"{where}: an object is expected")
        for key in value:
            if key not in keys:
                raise Mistake(f"{where}: unknown key '{key}'; there are {', '.join(keys)}")
        for key in required:
            if key not in value:
                raise Mistake(f"{where}: '{key}' is missing")
        return {key: keys[key](item, f"{where}.{key}") for key, item in value.items()}

    return read


def _event(value: Any, where: str) -> dict[str, Any]:
    keys = {"stdout": _bytes, "stderr": _bytes, "denied": _text, "call": _text, "outcome": _one_of(OUTCOMES), "after": _seconds}
    event = _object(keys)(value, where)
    if len(event.keys() & {"stdout", "stderr", "denied", "call"}) != 1:
        raise Mistake(f"{where}: an event is one of \"stdout\", \"stderr\", \"denied\" and \"call\"")
    if "outcome" in event and "call" not in event:
        raise Mistake(f"{where}: \"outcome\" is that of a \"call\"")
    return event


_RESULT = _object({
    "status": _one_of(RUN_STATUSES), "exit_code": _between(0, 255), "signal": _between(1, 64), "message": _text,
    "value": lambda value, where: value, "warnings": _list(_text),
    "artifacts": _list(_object({"path": _text, "content": _bytes}, "path", "content")),
})  # fmt: skip
_ANSWER = _object({
    "when": _object({"profile": _text, "code_sha256": _hash, "code_contains": _text}),
    "events": _list(_event), "delay": _seconds, "result": _RESULT,
    "error": _object({"code": _one_of(STATUSES), "message": _text, "hint": _text, "retry_after": _seconds}, "code"),
})  # fmt: skip


def _consistent_answer(value: Any, where: str) -> dict[str, Any]:
    answer = _ANSWER(value, where)
    result = answer.get("result", {})
    status = result.get("status", "exited")
    if "error" in answer and ("result" in answer or "events" in answer):
        raise Mistake(f"{where}: an answer with an error has neither result nor events")
    if ("message" in result) != (status == "setup_error"):
        raise Mistake(f"{where}: \"message\" and the status 'setup_error' belong together")
    if ("signal" in result) != (status == "signaled"):
        raise Mistake(f"{where}: \"signal\" and the status 'signaled' belong together")
    if status == "setup_error" and answer.get("events"):
        raise Mistake(f"{where}: nothing happens in a run that could not be started")
    return answer


def _parse(text: Union[str, bytes]) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as problem:
        raise Mistake(f"{problem.lineno}:{problem.colno}: {problem.msg}") from None
    except (UnicodeDecodeError, RecursionError) as problem:
        raise Mistake(str(problem)) from None


def read_answers(text: Union[str, bytes]) -> list[dict[str, Any]]:
    """The entries of a file.  Raises Mistake, with the place of the mistake."""
    return list(_object({"answers": _list(_consistent_answer)}, "answers")(_parse(text), "the file")["answers"])


def find_answer(answers: list[dict[str, Any]], profile: str, code: bytes | None) -> dict[str, Any]:
    for answer in answers:
        when = answer.get("when", {})
        if (
            when.get("profile", profile) == profile
            and ("code_sha256" not in when or (code is not None and hashlib.sha256(code).hexdigest() == when["code_sha256"]))
            and ("code_contains" not in when or (code is not None and when["code_contains"].encode() in code))
        ):
            return answer
    return {}


# --- runs ---------------------------------------------------------------------------------------


def _now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def _shown(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _stream(data: bytes) -> dict[str, Any]:
    return {**_shown(data), "bytes": len(data), "kept": len(data), "truncated": False}


def _artifact(item: dict[str, Any]) -> dict[str, Any]:
    data, shown = item["content"], _shown(item["content"])
    kind = mimetypes.guess_type(item["path"])[0] or ("text/plain" if "text" in shown else "application/octet-stream")
    return {"path": item["path"], "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "type": kind, **shown}


class Refusal(Exception):
    def __init__(self, code: str, message: str = "", hint: str | None = None, retry_after: float = 1):
        super().__init__(message)
        self.code, self.message, self.hint, self.retry_after = code, message or code.replace("_", " "), hint, retry_after


def _check_request(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as problem:
        raise Refusal("bad_request", f"request: {problem}") from None
    if not isinstance(request, dict):
        raise Refusal("bad_request", "request: an object is expected")
    for key in request:
        if key not in REQUEST_KEYS:
            raise Refusal("bad_request", f"request: unknown key '{key}'")
    if not re.fullmatch("[a-z0-9][a-z0-9_-]{0,31}", str(request.get("profile", ""))):
        raise Refusal("bad_request", "request: 'profile' is missing or not valid")
    if not re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_-]{0,31}", str(request.get("id", "run"))):
        raise Refusal("bad_request", "request: 'id' is not valid")
    if ("code" in request) == ("command" in request):
        raise Refusal("bad_request", "request: one of 'code' and 'command' is needed")
    return request


class Run:
    """One run: what GET /v1/runs/ID shows, its events, and its result."""

    def __init__(self, request: dict[str, Any], answer: dict[str, Any], code: bytes | None, request_id: str):
        self.request, self.answer, self.code = request, answer, code
        self.cancelled = threading.Event()
        self.began = time.monotonic()
        self.output = {"stdout": b"", "stderr": b""}
        self.denied: dict[str, int] = {}
        self.calls: list[tuple[str, str]] = []  # name and outcome
        self.shown: dict[str, Any] = {
            "id": str(request.get("id") or secrets.token_hex(13)), "profile": request["profile"], "state": "running", "tier": "cold",
            "request_id": request_id, "created_at": _now(), "started_at": _now(), "ended_at": None, "status": None,
            "exit_code": None, "usage": None,
        }  # fmt: skip

    def _at_ms(self) -> int:
        return int((time.monotonic() - self.began) * 1000)

    def events(self) -> Any:
        """Yields the events, each after its pause.  The last one has the result."""
        planned, status = self.answer.get("result", {}), self.answer.get("result", {}).get("status", "exited")
        if status != "setup_error":
            yield {"type": "start", "at_ms": self._at_ms(), "id": self.shown["id"], "time": _now(), "timeout_ms": None}
        for event in self.answer.get("events", ()):
            if self.cancelled.wait(event.get("after", 0)):
                break
            yield from self._happen(event)
        if self.cancelled.wait(self.answer.get("delay", 0)):
            status, planned = "cancelled", {"warnings": planned.get("warnings", [])}
        yield {"type": "result", "result": self._end(status, planned)}

    def _happen(self, event: dict[str, Any]) -> Any:
        if "call" in event:
            self.calls.append((event["call"], event.get("outcome", "answered")))
            call = {"at_ms": self._at_ms(), "call": len(self.calls), "name": event["call"]}
            yield {"type": "call", **call}
            yield {"type": "answer", **call, "ms": 0, "outcome": self.calls[-1][1]}
        elif "denied" in event:
            self.denied[event["denied"]] = self.denied.get(event["denied"], 0) + 1
            yield {"type": "denied", "at_ms": self._at_ms(), "syscall": event["denied"]}
        else:
            kind = "stdout" if "stdout" in event else "stderr"
            self.output[kind] += event[kind]
            yield {"type": kind, "at_ms": self._at_ms(), **_shown(event[kind])}

    def _count(self, name: str) -> dict[str, Any]:
        outcomes = [outcome for called, outcome in self.calls if called == name]
        return {"name": name, "count": len(outcomes), "failed": len(outcomes) - outcomes.count("answered"), "refused": 0}

    def _end(self, status: str, planned: dict[str, Any]) -> dict[str, Any]:
        network = self.request.get("network", "public")
        mode = network.get("mode", "public") if isinstance(network, dict) else network
        exit_code = planned.get("exit_code", 0) if status == "exited" else None
        usage = {"wall_ms": self._at_ms(), "cpu_user_ms": 0, "cpu_system_ms": 0, "memory_peak_bytes": None, "pids_peak": None}
        self.shown.update(state="finished", ended_at=_now(), status=status, exit_code=exit_code, usage=usage)
        return {
            "schema": "cejail.result/1",
            "id": self.shown["id"],
            "profile": {"name": self.request["profile"], "sha256": None},
            "code_sha256": None if self.code is None else hashlib.sha256(self.code).hexdigest(),
            "status": status,
            "exit_code": exit_code,
            "signal": planned.get("signal"),
            "error": {"stage": None, "message": planned["message"], "hint": None} if status == "setup_error" else None,
            "stdout": _stream(self.output["stdout"]),
            "stderr": _stream(self.output["stderr"]),
            "usage": usage,
            "limits": {name: {"value": None, "unit": unit, "by": "none", "hit": None} for name, unit in LIMITS.items()},
            "layers": dict.fromkeys(LAYERS, "absent"),
            "network": {"mode": mode, "state": "unused" if mode == "public" else None, "reason": None, "uplink": None, "denied": []},
            "denied_syscalls": [{"name": name, "count": count} for name, count in self.denied.items()],
            "calls": [self._count(name) for name in dict.fromkeys(name for name, _ in self.calls)],
            "value": planned.get("value"),
            "artifacts": [_artifact(item) for item in planned.get("artifacts", ())] if self.request.get("artifacts") else [],
            "warnings": [WARNING, *planned.get("warnings", ())],
            "started_at": self.shown["started_at"],
            "request_id": self.shown["request_id"],
        }


# --- HTTP ---------------------------------------------------------------------------------------


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def address_string(self) -> str:
        return "client"

    def log_message(self, *_: Any) -> None:
        pass

    def _send(self, status: int, value: Any, **headers: str) -> None:
        body = json.dumps(value).encode() + b"\n"
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "X-Request-Id": self.request_id, **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, refusal: Refusal) -> None:
        status = STATUSES[refusal.code]
        headers = {"Retry_After": str(max(1, int(-(-refusal.retry_after // 1))))} if status in (429, 503) else {}
        error = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint, "request_id": self.request_id}
        self._send(status, {"error": error}, **headers)

    def _body(self) -> bytes:
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise Refusal("bad_request", "a Content-Length is needed")
        size = int(self.headers.get("Content-Length") or 0)
        if size > BODY_MAX:
            self.close_connection = True
            raise Refusal("too_large", f"the body has more than {BODY_MAX} bytes")
        return self.rfile.read(size)

    def _start(self, body: bytes) -> Run:
        request = _check_request(body)
        try:
            code = _bytes(request["code"], "request.code") if "code" in request else None
        except Mistake as mistake:
            raise Refusal("bad_request", str(mistake)) from None
        answer = find_answer(self.server.answers, request["profile"], code)
        if "error" in answer:
            raise Refusal(**answer["error"])
        run = Run(request, answer, code, self.request_id)
        self.server.add(run)
        return run

    def _post_run(self, body: bytes) -> None:
        run = self._start(body)
        if "application/x-ndjson" not in self.headers.get("Accept", ""):
            *_, last = run.events()
            return self._send(200, last["result"])
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("X-Request-Id", self.request_id)
        self.send_header("Connection", "close")
        self.end_headers()
        for event in run.events():
            self.wfile.write(json.dumps(event).encode() + b"\n")
            self.wfile.flush()
        return None

    def _route(self) -> None:
        body, path = self._body(), self.path.split("?")[0]
        run = self.server.runs.get(path[len("/v1/runs/") :]) if path.startswith("/v1/runs/") else None
        if (self.command, path) == ("POST", "/v1/runs"):
            self._post_run(body)
        elif path in ("/healthz", "/readyz"):
            self._send(200, {"status": "ready", "reasons": [WARNING]})
        elif path == "/v1/runs":
            self._send(200, {"runs": [run.shown for run in self.server.runs.values()]})
        elif run is None:
            raise Refusal("not_found", f"there is nothing at '{path}'", "the fake service has runs, and no sessions")
        elif self.command == "DELETE":
            run.cancelled.set()
            self._send(202, run.shown)
        else:
            self._send(200, run.shown)

    def _serve(self) -> None:
        self.request_id = secrets.token_hex(8)
        try:
            self._route()
        except Refusal as refusal:
            self._refuse(refusal)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_DELETE = do_PUT = _serve


class _Server(socketserver.ThreadingMixIn):
    daemon_threads = True
    request_queue_size = 128

    def begin(self, answers: list[dict[str, Any]]) -> None:
        self.answers, self.lock = answers, threading.Lock()
        self.runs: dict[str, Run] = {}

    def add(self, run: Run) -> None:
        with self.lock:
            before = self.runs.get(run.shown["id"])
            if before and before.shown["state"] != "finished":
                raise Refusal("id_in_use", f"an unfinished run has the id '{run.shown['id']}'")
            while len(self.runs) >= 1000:
                del self.runs[next(iter(self.runs))]
            self.runs[run.shown["id"]] = run


class UnixServer(_Server, socketserver.UnixStreamServer):
    """FakeServer on a Unix socket, whose file it removes at the end."""

    def server_close(self) -> None:
        super().server_close()
        os.unlink(self.server_address)  # type: ignore[arg-type]


class TcpServer(_Server, socketserver.TCPServer):
    allow_reuse_address = True


def serve(answers: Union[str, bytes, list[dict[str, Any]]], socket: str | None = None, tcp: tuple[str, int] | None = None) -> Any:
    """A server, listening: call its serve_forever(), for instance in a thread, and its shutdown() and server_close().

    `answers` are the text of a file, or what read_answers() returns.
    """
    server = UnixServer(socket, _Handler) if socket else TcpServer(tcp or ("127.0.0.1", 0), _Handler)
    server.begin(answers if isinstance(answers, list) else read_answers(answers))
    return server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m cejail.fake", description="Answers like cejail serve, from a file.")
    parser.add_argument("file", help="the answers: cejail-serve(8), TESTING CLIENTS")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--socket", metavar="PATH", help="listen on this Unix socket")
    place.add_argument("--tcp", metavar="ADDRESS:PORT", help="listen on this address, without a token")
    place.add_argument("--check", action="store_true", help="report what is wrong with the file, and exit")
    options = parser.parse_args()
    try:
        with open(options.file, "rb") as file:
            answers = read_answers(file.read())
        if options.check:
            return 0
        address, _, port = (options.tcp or "").rpartition(":")
        server = serve(answers, options.socket, (address, int(port)) if options.tcp else None)
    except Mistake as mistake:
        print(f"cejail.fake: {options.file}: {mistake}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as problem:
        print(f"cejail.fake: {problem}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
