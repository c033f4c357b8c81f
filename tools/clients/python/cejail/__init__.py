# SPDX-License-Identifier: Apache-2.0
"""cejail - run untrusted programs in a jail, from Python.  Needs nothing but the standard library.

    import cejail

    result = cejail.run("print(6 * 7)")
    print(result.status, result.stdout)

A run goes over `cejail run`, or over the socket of a service (cejail-serve(8)):

    client = cejail.Client(socket="/run/cejail/api.sock")
    for event in client.stream("print('now')", timeout="5s"):
        ...

A program can call functions of its caller:

    cejail.run("from tools import search; print(search(query='a'))", tools={"search": search})

A session is a jail that stays, at a service, for several programs:

    with client.session(profile="python", context="repl") as session:
        session.put("numbers.txt", "1 2 3")
        session.exec("numbers = [int(n) for n in open('numbers.txt').read().split()]")
        print(session.exec("sum(numbers)").cell.value)

AsyncClient has the same methods for asyncio.  The keywords of run() and stream() are the keys of a
request: schema/request.json, cejail-profile(5).  The profile is the ceiling of the limits; the
options of Client(options=...) raise it, for runs over `cejail run`.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, TypedDict, TypeVar, Union, cast
from urllib.parse import quote, urlsplit

from ._tools import CallCount, CallLimits, EventAnswering, Tool, Toolbox, Tools

if TYPE_CHECKING:
    from typing_extensions import Unpack
elif sys.version_info >= (3, 11):
    from typing import Unpack
else:

    class Unpack:
        """For typing.get_type_hints(): the keywords are not checked."""

        def __class_getitem__(cls, kind):
            return kind


__all__ = [
    "AsyncClient", "AsyncExec", "AsyncSession", "CallCount", "CallLimits", "Cell", "Change", "Client", "Display", "Entry", "Error", "Event", "Exec",
    "ExecOptions", "File", "ProgramError", "Result", "RunOptions", "Session", "SessionOptions", "StartOptions", "Tool", "Tools", "arun",
    "asession", "astream", "run", "session", "stream",
]  # fmt: skip

PROFILE = "python"
HOME = "/box"
_WAIT_S = 30  # of one request for the end of an exec; the service waits at most 60 s
_RETRY_S = 0.05  # after which an answer that the service had no room for is sent again
_MISSING: Any = object()
_T = TypeVar("_T")


class File(NamedTuple):
    """A file for the jail, where its content alone is not enough."""

    content: Union[str, bytes]
    executable: bool = False


Files = Mapping[str, Union[str, bytes, File]]


# The keywords of a run, an exec and a session: schema/request.json, exec-request.json, session-request.json.
# None is as if the keyword were absent.


class _Program(TypedDict, total=False):
    args: Sequence[str]
    args_json: Any
    stdin: Union[str, bytes, None]
    files: Optional[Files]
    artifacts: Union[bool, str]


class _Common(TypedDict, total=False):
    file_name: Optional[str]
    timeout: Union[float, str, None]
    max_output: Union[int, str, None]
    on_output_limit: Optional[Literal["truncate", "kill"]]
    env: Optional[Mapping[str, str]]
    workdir: Optional[str]
    artifact_path: Optional[Sequence[str]]
    value_path: Optional[str]
    accept_weaker: Optional[Sequence[str]]
    tools: Optional[Tools]
    calls: Optional[CallLimits]


class _Jail(_Common, total=False):
    cpu_time: Union[float, str, None]
    memory: Union[int, str, None]
    cpus: Union[float, str, None]
    pids: Union[int, str, None]
    nofile: Union[int, str, None]
    disk: Union[int, str, None]
    file: Optional[Sequence[str]]
    ro_bind: Optional[Sequence[str]]
    bind: Optional[Sequence[str]]
    overlay: Optional[Sequence[str]]
    tmpfs: Optional[Sequence[str]]
    connect: Optional[Sequence[str]]
    upstream: Optional[Sequence[str]]
    network: Union[str, Mapping[str, Any], None]
    hostname: Optional[str]
    rootfs: Optional[str]
    writable: Optional[bool]
    noexec: Optional[bool]
    seccomp: Optional[str]
    strict: Optional[bool]
    cgroup_parent: Optional[str]


class RunOptions(_Jail, _Program, total=False):
    command: Optional[Sequence[str]]
    profile: Optional[str]
    id: Optional[str]


class ExecOptions(_Common, _Program, total=False):
    profile: Optional[str]
    id: Optional[str]
    interrupt: Optional[bool]


class StartOptions(ExecOptions, total=False):
    open_stdin: Optional[bool]


class SessionOptions(_Jail, total=False):
    lease: Union[str, float, None]
    idle: Union[str, float, None]
    renew_on_use: Optional[bool]
    context: Optional[Literal["none", "repl"]]


class Error(Exception):
    """cejail failed or refused the request: no program ran, or its result was lost.

    `code` is the service's code of the error ("queue_full") or the stage that failed ("options").
    `result` is the result with the status "setup_error", if there is one.
    """

    def __init__(self, message: str, code: Optional[str] = None, hint: Optional[str] = None,
                 result: Optional[Result] = None, retry_after: Optional[float] = None) -> None:  # fmt: skip
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message, self.code, self.hint, self.result, self.retry_after = message, code, hint, result, retry_after


def _bytes_of(part: Mapping[str, Any]) -> bytes:
    """Of {"text": ...} or {"base64": ...}."""
    if "base64" in part:
        return base64.b64decode(part["base64"], validate=True)
    return str(part.get("text", "")).encode()


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


class Display(NamedTuple):
    """A picture, a table or a value that a cell has shown."""

    type: str  # "image/png", "text/html", ...
    content: bytes


@dataclass(frozen=True)
class Cell:
    """What a cell of a session with context="repl" leaves besides its output.  All of it is untrusted."""

    raw: dict[str, Any]

    @property
    def value(self) -> Optional[str]:
        """The repr of the last expression; None without one."""
        return self.raw.get("value")

    @property
    def displays(self) -> list[Display]:
        return [Display(row["type"], _bytes_of(row)) for row in self.raw.get("displays", [])]

    @property
    def exception(self) -> Optional[dict[str, Any]]:
        """type, message and traceback."""
        return self.raw.get("exception")

    @property
    def lost(self) -> bool:
        """The interpreter ended in this cell: its variables are gone."""
        return self.raw.get("lost", False)

    @property
    def restarted(self) -> bool:
        """The interpreter is a new one: the variables of earlier cells are gone."""
        return self.raw.get("restarted", False)

    @property
    def claimed(self) -> bool:
        """Only the interpreter says that the cell has ended, and its exit code."""
        return self.raw.get("claimed", True)


class ProgramError(Exception):
    """The program did not exit with 0: raised by Result.check() alone.  `result` is its result."""

    def __init__(self, result: Result) -> None:
        why = {"exited": f"exited with {result.exit_code}", "signaled": f"was killed by signal {result.signal}"}
        lines = result.stderr.strip().splitlines()
        said = f": {lines[-1]}" if lines else ""
        super().__init__(f"the program {why.get(result.status, f'ended with the status {result.status}')}{said}")
        self.result = result


@dataclass(frozen=True, repr=False)
class Result:
    """How a run ended.  `raw` is the whole result: schema/result.json."""

    raw: dict[str, Any]

    def __repr__(self) -> str:
        return f"Result(status={self.status!r}, exit_code={self.exit_code}, stdout={_short(self.stdout)}, stderr={_short(self.stderr)})"

    def check(self) -> Result:
        """The result itself if the program exited with 0; else raises ProgramError."""
        if not self.ok:
            raise ProgramError(self)
        return self

    @property
    def id(self) -> str:
        return cast(str, self.raw["id"])

    @property
    def status(self) -> str:
        """exited, signaled, timeout, cpu_limit, oom, output_limit or cancelled."""
        return cast(str, self.raw["status"])

    @property
    def exit_code(self) -> Optional[int]:
        """None unless the status is "exited"."""
        return cast("int | None", self.raw["exit_code"])

    @property
    def signal(self) -> Optional[int]:
        return cast("int | None", self.raw["signal"])

    @property
    def ok(self) -> bool:
        """The program exited with 0."""
        return self.status == "exited" and self.exit_code == 0

    @property
    def stdout_bytes(self) -> bytes:
        return _bytes_of(self.raw["stdout"])

    @property
    def stderr_bytes(self) -> bytes:
        return _bytes_of(self.raw["stderr"])

    @property
    def stdout(self) -> str:
        """Bytes that are not UTF-8 are replaced."""
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode(errors="replace")

    @property
    def truncated(self) -> bool:
        return bool(self.raw["stdout"]["truncated"] or self.raw["stderr"]["truncated"])

    @property
    def value(self) -> Any:
        """The JSON that the program left in /box/out/result.json: untrusted; None without it."""
        return self.raw.get("value")

    @property
    def cell(self) -> Optional[Cell]:
        """Of a session with context="repl"."""
        return Cell(self.raw["cell"]) if "cell" in self.raw else None

    @property
    def artifacts(self) -> dict[str, bytes]:
        """The files of /box/out by their path, with artifacts=True.  A path never leads upwards, but
        check names before you write them."""
        return {row["path"]: _bytes_of(row) for row in self.raw["artifacts"] if "text" in row or "base64" in row}

    @property
    def calls(self) -> list[CallCount]:
        """How often the program called each tool that it called."""
        return [CallCount(row["name"], row["count"], row["failed"], row["refused"]) for row in self.raw.get("calls", [])]

    @property
    def limits_hit(self) -> list[str]:
        return [name for name, limit in self.raw["limits"].items() if limit["hit"]]

    @property
    def usage(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.raw["usage"])

    @property
    def warnings(self) -> list[str]:
        return cast("list[str]", self.raw["warnings"])


@dataclass(frozen=True, repr=False)
class Event:
    """One line of the events: EVENTS in cejail(1).  The last one has type "result" and the result."""

    type: str
    data: dict[str, Any]
    result: Optional[Result] = None

    def __repr__(self) -> str:
        shown = f", text={_short(self.text)}" if self.type in ("stdout", "stderr") else ""
        return f"Event(type={self.type!r}{shown})"

    @property
    def content(self) -> bytes:
        """Of "stdout" and "stderr"."""
        return _bytes_of(self.data)

    @property
    def text(self) -> str:
        """The same; a character may be cut at the end of a piece that is not UTF-8."""
        return self.content.decode(errors="replace")


# --- requests ---------------------------------------------------------------------------


def _blob(content: Union[str, bytes]) -> Any:
    if isinstance(content, str):
        return content
    return {"base64": base64.b64encode(content).decode()}


def _file(path: str, file: Union[str, bytes, File]) -> dict[str, Any]:
    file = file if isinstance(file, File) else File(file)
    content = _blob(file.content)
    row = {"path": path, **(content if isinstance(content, dict) else {"text": content})}
    return {**row, "executable": True} if file.executable else row


def request(code: Union[str, bytes, None] = None, *, command: Optional[Sequence[str]] = None, profile: Optional[str] = None,
            args: Sequence[str] = (), stdin: Union[str, bytes, None] = None, files: Optional[Files] = None,
            args_json: Any = _MISSING, artifacts: Union[bool, str] = False, **settings: Any) -> dict[str, Any]:  # fmt: skip
    """The JSON object of a run.  Settings that are None are left out."""
    made: dict[str, Any] = {"profile": profile or ("base" if command is not None else PROFILE)}
    made.update(_program(code, command, args, stdin, files, args_json, artifacts, settings))
    return made


def _program(code: Union[str, bytes, None] = None, command: Optional[Sequence[str]] = None, args: Sequence[str] = (),
             stdin: Union[str, bytes, None] = None, files: Optional[Files] = None, args_json: Any = _MISSING,
             artifacts: Union[bool, str] = False, settings: Mapping[str, Any] = {}) -> dict[str, Any]:  # fmt: skip # noqa: B006
    made: dict[str, Any] = {}
    if code is not None:
        made["code"] = _blob(code)
    if command is not None:
        made["command"] = list(command)
    if args:
        made["args"] = list(args)
    if stdin is not None:
        made["stdin"] = _blob(stdin)
    if files:
        made["files"] = [_file(path, file) for path, file in files.items()]
    if args_json is not _MISSING:
        made["args_json"] = args_json
    if artifacts:
        made["artifacts"] = artifacts
    made.update((key, value) for key, value in settings.items() if value is not None)
    return made


def _checked(raw: Any) -> Result:
    """A result; a run that could not be built is an Error."""
    if not isinstance(raw, dict) or raw.get("schema") != "cejail.result/1":
        raise Error("this is not a result of cejail")
    result = Result(raw)
    if result.status == "setup_error":
        why = raw["error"]
        raise Error(why["message"], why["stage"], why["hint"], result)
    return result


def _parse(line: bytes, parse: Callable[[bytes], Any] = json.loads) -> Any:
    try:
        return parse(line)
    except ValueError as problem:
        raise Error("cejail's answer is not JSON") from problem


# --- one run: over a process, or over a connection ---------------------------------------


class _Process:
    """One `cejail run`."""

    def __init__(self, words: list[str], body: bytes, wants_events: bool, tools: Optional[Toolbox]) -> None:
        self.reader, writer = os.pipe() if wants_events else (-1, -1)
        near, far = socket.socketpair() if tools else (None, None)
        given = {"--events-fd": writer} if wants_events else {}
        if far:
            given["--calls-fd"] = far.fileno()
        try:
            self.process = subprocess.Popen(
                [words[0], "run", "--request-fd", "0", "--json", "--quiet", *(f"{name}={fd}" for name, fd in given.items()), *words[1:]],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL if wants_events else subprocess.PIPE,
                stderr=subprocess.PIPE, pass_fds=tuple(given.values()),
            )  # fmt: skip
        except OSError as problem:
            if wants_events:
                os.close(self.reader)
            if near:
                near.close()
            raise Error(f"start '{words[0]}': {problem.strerror}") from problem
        finally:
            if wants_events:
                os.close(writer)
            if far:
                far.close()
        self.body = body
        self.answering = tools.start(near) if tools and near else None

    def _stop_answering(self) -> None:
        if self.answering:
            self.answering.close()

    def _no_answer(self, said: bytes) -> Error:
        return Error(said.decode(errors="replace").strip() or f"cejail ended with {self.process.returncode} and no result")

    def result(self) -> Result:
        try:
            out, err = self.process.communicate(self.body)
        except BaseException:  # KeyboardInterrupt: the run ends with its caller
            self.cancel()
            self.process.communicate()
            raise
        finally:
            self._stop_answering()
        if not out:
            raise self._no_answer(err)
        return _checked(_parse(out))

    def lines(self) -> Iterator[bytes]:
        """cejail reads the whole request before its first event."""
        has_line = False
        with self.process, os.fdopen(self.reader, "rb") as events:
            try:
                with self.process.stdin as pipe:  # type: ignore[union-attr]
                    pipe.write(self.body)
            except BrokenPipeError:
                pass  # it says why
            try:
                for line in events:
                    has_line = True
                    yield line
                said = self.process.stderr.read()  # type: ignore[union-attr]
                self.process.wait()
                if not has_line:
                    raise self._no_answer(said)
            finally:
                self.cancel()
                self._stop_answering()

    def parse(self, line: bytes) -> Any:
        return _parse(line)

    def cancel(self) -> None:
        """Ends the run with all its processes."""
        if self.process.poll() is None:
            self.process.terminate()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class _Service:
    """Where a service listens, and who calls it."""

    def __init__(self, socket: Optional[str], url: Optional[str], token: Optional[str]) -> None:
        self.socket, self.url, self.token = socket, url, token
        if url:
            to = urlsplit(url)
            if to.scheme != "http" or not to.hostname:
                raise ValueError(f"'{url}' is not http://HOST:PORT")
            self.host, self.port = to.hostname, to.port or 80

    def connect(self) -> http.client.HTTPConnection:
        return _UnixConnection(self.socket) if self.socket else http.client.HTTPConnection(self.host, self.port)

    def start(self, body: Any, wants_events: bool = False, path: str = "/v1/runs", tools: Optional[Toolbox] = None) -> _Call:
        """A run or an exec: `path` has all of its kind."""
        accept = "application/x-ndjson" if wants_events or tools else "application/json"
        asked = {**body, "tools": tools.catalogue} if tools else body
        call = _Call(self, "POST", path, json.dumps(asked).encode(), accept=accept)
        call.answering = EventAnswering(tools, functools.partial(self._answer, path)) if tools else None
        return call

    def _answer(self, path: str, run_id: str, id: int, body: bytes, is_over: threading.Event) -> None:
        """Sends the answer to a call, until the service has taken or refused it."""
        is_refusal = False
        while not is_over.is_set():
            try:
                _Call(self, "POST", f"{path}/{quote(run_id, safe='')}/calls/{id}", body).content()
                return
            except Error as problem:
                if problem.code in (None, "rate_limited", "too_many_waiting", "queue_full", "draining"):
                    is_over.wait(problem.retry_after or _RETRY_S)
                elif problem.code in ("not_found", "call_ended") or is_refusal:
                    return  # the call has ended
                else:
                    said = f"the service does not take the answer of {len(body)} bytes: {problem}"
                    body, is_refusal = json.dumps({"error": {"message": said}}).encode(), True

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the answer."""
        return _parse(_Call(self, method, path, None if body is None else json.dumps(body).encode()).content())


class _Call:
    """One request.  The service cancels a run whose connection is closed."""

    def __init__(self, service: _Service, method: str, path: str, body: Optional[bytes] = None,
                 type: str = "application/json", accept: str = "application/json") -> None:  # fmt: skip
        self.connection = service.connect()
        self.answering: Optional[EventAnswering] = None  # of a run with tools
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = type
        if service.token:
            headers["Authorization"] = f"Bearer {service.token}"
        try:
            self.connection.request(method, path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the service refuses early; its answer says why
        except OSError as problem:
            self.connection.close()
            raise Error(f"connect to the service: {problem.strerror or problem}") from problem

    def _response(self) -> http.client.HTTPResponse:
        response = self.connection.getresponse()
        if 200 <= response.status < 300:
            return response
        body = response.read()
        try:
            error = json.loads(body)["error"]
        except (ValueError, TypeError, KeyError) as problem:
            raise Error(f"the service answered with HTTP status {response.status}") from problem
        after = response.headers.get("Retry-After", "")
        raise Error(error["message"], error["code"], error["hint"], None, float(after) if after.isdigit() else None)

    def content(self) -> bytes:
        """The whole answer."""
        try:
            return self._response().read()
        except (OSError, http.client.HTTPException) as problem:
            raise Error("the connection to the service ended without a result") from problem
        finally:
            self.connection.close()

    def result(self) -> Result:
        if not self.answering:
            return _checked(_parse(self.content()))
        for event in _events(self):
            last = event
        return cast(Result, last.result)

    def lines(self) -> Iterator[bytes]:
        try:
            yield from self._response()
        except (OSError, http.client.HTTPException) as problem:
            raise Error("the connection to the service ended without a result") from problem
        finally:
            self.connection.close()
            if self.answering:
                self.answering.close()

    def parse(self, line: bytes) -> Any:
        return _parse(line, self.answering.read) if self.answering else _parse(line)

    def cancel(self) -> None:
        """A reader in another thread gets the end of the connection."""
        if self.connection.sock:
            try:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


_Run = Union[_Process, _Call]
_R = TypeVar("_R", _Run, _Call)


def _events(run: _Run) -> Iterator[Event]:
    lines = run.lines()
    is_whole = False
    try:
        for line in lines:
            data = run.parse(line)
            if data["type"] == "error":  # the service failed after it had begun to answer
                raise Error(data["error"]["message"], data["error"]["code"], data["error"]["hint"])
            if data["type"] != "result":
                yield Event(data["type"], data)
                continue
            is_whole = True
            yield Event("result", data, _checked(data["result"]))
    finally:
        lines.close()  # type: ignore[attr-defined]
    if not is_whole:
        raise Error("the events ended without a result")


# --- clients ------------------------------------------------------------------------------


def _toolbox(tools: Optional[Tools], is_async: bool = False) -> Optional[Toolbox]:
    return Toolbox(tools, asyncio.get_running_loop() if is_async else None) if tools else None


class _Base:
    def __init__(self, socket: Optional[str] = None, *, url: Optional[str] = None, token: Optional[str] = None,
                 program: str = "cejail", options: Sequence[str] = ()) -> None:  # fmt: skip
        """Without arguments: over `cejail run`.

        socket:   the Unix socket of a service
        url:      "http://127.0.0.1:PORT" of a service, with `token`
        program:  the path of cejail, for a run over `cejail run`
        options:  more options of `cejail run`: the ceilings of its requests, such as ["--memory", "2G"]
        """
        if socket and url:
            raise ValueError("a service has a socket or a url")
        if (socket or url) and options:
            raise ValueError("the options are those of `cejail run`; a service has its own configuration")
        self._words = [program, *options]
        self._service = _Service(socket, url, token) if socket or url else None

    def _start(self, request: Mapping[str, Any], wants_events: bool, tools: Optional[Toolbox] = None) -> _Run:
        if self._service:
            return self._service.start(request, wants_events, tools=tools)
        body = {**request, "tools": tools.catalogue} if tools else request
        return _Process(self._words, json.dumps(body).encode(), wants_events, tools)

    def _sessions(self) -> _Service:
        """Without a socket: the service of this user, which cejail starts if none listens."""
        if self._service:
            return self._service
        words = [self._words[0], "session", "socket"]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except OSError as problem:
            raise Error(f"start '{words[0]}': {problem.strerror}") from problem
        if done.returncode != 0:
            raise Error(done.stderr.strip() or "cejail found no service")
        return _Service(done.stdout.rstrip("\n"), None, None)


class Client(_Base):
    """Runs programs, one call at a time or from several threads."""

    def run(self, code: Union[str, bytes, None] = None, **more: Unpack[RunOptions]) -> Result:
        """Run a program to its end.  Keywords: those of request(), and a profile's settings.

        Raises Error if cejail failed or refused the request; how the program ended is in the result.
        """
        tools = _toolbox(more.pop("tools", None))
        return self._start(request(code, **more), False, tools).result()

    def stream(self, code: Union[str, bytes, None] = None, **more: Unpack[RunOptions]) -> Iterator[Event]:
        """Run a program and yield what happens; the last event has the result.  Closing the iterator
        cancels the run."""
        tools = _toolbox(more.pop("tools", None))
        return _events(self._start(request(code, **more), True, tools))

    def session(self, profile: Optional[str] = None, **settings: Unpack[SessionOptions]) -> Session:
        """Create a session.  Settings: lease, idle, context, and those of a jail; cejail-session(1).

        Each exec() and stream() of the session has its `tools`, unless it has its own.
        Without a socket or url, the session is at the service of this user; cejail starts one if none listens.
        """
        order, tools = _order(profile, settings)
        service = self._sessions()
        return Session(service, service.ask("POST", "/v1/sessions", order)["id"], tools)

    def attach(self, id: str, tools: Optional[Tools] = None) -> Session:
        """A session that exists, for example one of `cejail session create`."""
        session = Session(self._sessions(), id, tools)
        session.info()
        return session

    def sessions(self) -> list[dict[str, Any]]:
        """The caller's sessions, also those that ended a short time ago."""
        return cast("list[dict[str, Any]]", self._sessions().ask("GET", "/v1/sessions")["sessions"])


class AsyncClient(_Base):
    """The same for asyncio: each run has a thread.  Cancelling the task cancels the run."""

    async def run(self, code: Union[str, bytes, None] = None, **more: Unpack[RunOptions]) -> Result:
        tools = _toolbox(more.pop("tools", None), True)
        made = request(code, **more)
        return await _finish(lambda: self._start(made, False, tools))

    def stream(self, code: Union[str, bytes, None] = None, **more: Unpack[RunOptions]) -> AsyncIterator[Event]:
        tools = _toolbox(more.pop("tools", None), True)
        made = request(code, **more)
        return _astream(lambda: self._start(made, True, tools), _events)

    def session(self, profile: Optional[str] = None, **settings: Unpack[SessionOptions]) -> _Opening:
        """`await` it, or use it with `async with`, which also ends the session."""
        return _Opening(self, profile, settings)

    async def attach(self, id: str, tools: Optional[Tools] = None) -> AsyncSession:
        session = AsyncSession(await _in_thread(self._sessions), id, tools)
        await session.info()
        return session

    async def sessions(self) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", await _in_thread(lambda: self._sessions().ask("GET", "/v1/sessions")["sessions"]))


# --- sessions -----------------------------------------------------------------------------


class Entry(NamedTuple):
    """A file of a session.  A program of the session has chosen its path."""

    path: str
    type: str  # file, directory, symlink or other
    bytes: int
    mode: str = ""  # "0644"
    mtime: str = ""  # in UTC; the program can set it to any value


class Change(NamedTuple):
    """A change in a directory.  "rename" is moved away; with "overflow" changes are missing: list the directory."""

    event: Literal["create", "write", "chmod", "remove", "rename", "overflow"]
    path: str


def _changes(call: _Call) -> Iterator[Change]:
    lines = call.lines()
    try:
        for line in lines:
            row = _parse(line)
            yield Change(row["event"], row["path"])
    finally:
        lines.close()  # type: ignore[attr-defined]


_Rows = list[dict[str, Any]]  # in a class with a method `list`
_Entries = list[Entry]


def _entry(row: Mapping[str, Any]) -> Entry:
    return Entry(row["path"], row["type"], row["bytes"], row.get("mode", ""), row.get("mtime", ""))


def _order(profile: Optional[str], settings: Mapping[str, Any]) -> tuple[dict[str, Any], Optional[Tools]]:
    """The request, and the tools of the session's execs, which the service gets with each exec."""
    made = {key: value for key, value in settings.items() if value is not None}
    tools = made.pop("tools", None)
    _toolbox(tools)  # refuses them before there is a session
    return {"profile": profile or PROFILE, **made}, tools


def _exec(code: Union[str, bytes, None], command: Optional[Sequence[str]], more: Mapping[str, Any]) -> dict[str, Any]:
    taken = {key: more[key] for key in ("args", "stdin", "files", "args_json", "artifacts") if key in more}
    return _program(code, command, settings={key: more[key] for key in more if key not in taken}, **taken)


class _Session:
    """The requests of a session."""

    def __init__(self, service: _Service, id: str, tools: Optional[Tools] = None) -> None:
        self.id = id
        self._service, self._tools = service, tools
        self._path = f"/v1/sessions/{quote(id, safe='')}"

    def _file(self, path: str) -> str:
        whole = path if path.startswith("/") else f"{HOME}/{path}"
        return f"{self._path}/files{quote(whole)}"

    def _prepare(self, code: Union[str, bytes, None], command: Optional[Sequence[str]], more: Mapping[str, Any],
                 wants_events: bool = False, is_async: bool = False) -> Callable[[], _Call]:  # fmt: skip
        """What starts the exec, in any thread."""
        made = _exec(code, command, more)
        given = made.pop("tools", None)
        tools = _toolbox(self._tools if given is None else given, is_async)
        if wants_events and not tools:
            made["tools"] = False  # nobody here would answer calls of the session's tools
        return lambda: self._service.start(made, wants_events, f"{self._path}/execs", tools)

    def _detach(self, code: Union[str, bytes, None], command: Optional[Sequence[str]], more: Mapping[str, Any]) -> str:
        body = {**_exec(code, command, more), "detach": True}
        if body.pop("tools", None):
            raise Error("a program of start() has no tools: nobody reads its calls", "not_supported", "run it with exec() or stream()")
        return cast(str, self._service.ask("POST", f"{self._path}/execs", body)["id"])

    def _exec_path(self, id: str) -> str:
        return f"{self._path}/execs/{quote(id, safe='')}"

    def _info(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self._service.ask("GET", self._path))

    def _execs(self) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self._service.ask("GET", f"{self._path}/execs")["execs"])

    def _put(self, path: str, content: Union[str, bytes], executable: bool) -> None:
        body = content.encode() if isinstance(content, str) else content
        query = "?executable" if executable else ""
        _Call(self._service, "PUT", self._file(path) + query, body, "application/octet-stream").content()

    def _get(self, path: str) -> bytes:
        return _Call(self._service, "GET", self._file(path), accept="application/octet-stream").content()

    def _list(self, path: str) -> list[Entry]:
        answer = self._service.ask("GET", f"{self._file(path).rstrip('/')}/?list")
        if answer["truncated"]:
            raise Error(f"'{path}' has more entries than the service lists", "truncated")
        return [_entry(row) for row in answer["entries"]]

    def _stat(self, path: str) -> Entry:
        return _entry(self._service.ask("GET", f"{self._file(path)}?stat"))

    def _exists(self, path: str) -> bool:
        try:
            self._stat(path)
        except Error as problem:
            if problem.code == "not_found":
                return False
            raise
        return True

    def _mkdir(self, path: str) -> bool:
        return bool(self._service.ask("POST", self._file(path), {"mkdir": True})["created"])

    def _rename(self, path: str, to: str) -> None:
        whole = to if to.startswith("/") else f"{HOME}/{to}"
        self._service.ask("POST", self._file(path), {"rename": whole})

    def _watch(self, path: str) -> _Call:
        return _Call(self._service, "GET", f"{self._file(path)}?watch", accept="application/x-ndjson")

    def _remove(self, path: str) -> None:
        self._service.ask("DELETE", self._file(path))

    def _lease(self, duration: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self._service.ask("POST", f"{self._path}/lease", {"lease": duration}))

    def _network(self, mode: Optional[str], allow: Iterable[str], deny: Iterable[str], narrow: bool) -> dict[str, Any]:
        targets, denied = list(allow), list(deny)
        body: dict[str, Any] = {"mode": mode or ("public" if targets else "none")}
        if targets:
            body["allow"] = targets
        if denied:
            body["deny"] = denied
        return cast("dict[str, Any]", self._service.ask("PUT", f"{self._path}/network{'?narrow' if narrow else ''}", body))

    def _end(self) -> None:
        try:
            self._service.ask("DELETE", self._path)
        except Error as problem:
            if problem.code not in ("not_found", "session_ended"):
                raise


class Session(_Session):
    """A jail that stays.  Its files, background processes and (with context="repl") variables remain between execs.

    Paths are those of the jail; a relative one begins at /box.  Client.session() makes one.
    """

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def exec(self, code: Union[str, bytes, None] = None, *, command: Optional[Sequence[str]] = None,
             **more: Unpack[ExecOptions]) -> Result:  # fmt: skip
        """Run code or a command to its end.  Keywords: those of request(), timeout, env, interrupt, ...

        With context="repl", code is a cell: see Result.cell.
        """
        return self._prepare(code, command, more)().result()

    def stream(self, code: Union[str, bytes, None] = None, *, command: Optional[Sequence[str]] = None,
               **more: Unpack[ExecOptions]) -> Iterator[Event]:  # fmt: skip
        """As Client.stream()."""
        return _events(self._prepare(code, command, more, True)())

    def start(self, code: Union[str, bytes, None] = None, *, command: Optional[Sequence[str]] = None,
              **more: Unpack[StartOptions]) -> Exec:  # fmt: skip
        """Run it without waiting for its end, and without tools.  With open_stdin=True, Exec.write() feeds it."""
        return Exec(self, self._detach(code, command, more))

    def execs(self) -> _Rows:
        return self._execs()

    def put(self, path: str, content: Union[str, bytes], executable: bool = False) -> None:
        """Write a file; missing directories are created."""
        self._put(path, content, executable)

    def get(self, path: str) -> bytes:
        """The bytes of a regular file.  They are untrusted."""
        return self._get(path)

    def list(self, path: str = HOME) -> _Entries:
        """All entries below a directory."""
        return self._list(path)

    def stat(self, path: str) -> Entry:
        """A file or directory itself; of a symbolic link, the link.  Error.code is "not_found" if there is none."""
        return self._stat(path)

    def exists(self, path: str) -> bool:
        return self._exists(path)

    def mkdir(self, path: str) -> bool:
        """Make a directory, and those missing above it.  False: it was there."""
        return self._mkdir(path)

    def rename(self, path: str, to: str) -> None:
        """As rename(2): a file replaces a file."""
        self._rename(path, to)

    def watch(self, path: str = HOME) -> Iterator[Change]:
        """The changes in a directory, as they happen, until it is gone or the session ends."""
        return _changes(self._watch(path))

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with everything in it."""
        self._remove(path)

    def lease(self, duration: str) -> dict[str, Any]:
        """Let the session live this long from now: "10m"."""
        return self._lease(duration)

    def network(self, allow: Iterable[str] = (), *, deny: Iterable[str] = (), mode: Optional[str] = None, narrow: bool = False) -> dict[str, Any]:
        """Open only these destinations from now on; without any, nothing.  mode="public": what the profile opens.  deny:
        these stay closed.  narrow: a change that would open more is refused."""
        return self._network(mode, allow, deny, narrow)

    def info(self) -> dict[str, Any]:
        """The session as the service describes it: state, reason, lease_until, usage, ..."""
        return self._info()

    def end(self) -> None:
        """End the session with everything in it.  Does nothing if it has ended."""
        self._end()


class _Exec:
    """The requests of a detached exec."""

    def __init__(self, session: _Session, id: str) -> None:
        self.id, self._session = id, session
        self._service, self._path = session._service, session._exec_path(id)

    def _ask_end(self, wait_s: float) -> Optional[Result]:
        """None: it has not ended after this time."""
        answer = self._service.ask("GET", f"{self._path}?wait={max(1, int(wait_s * 1000))}ms")
        if answer["state"] != "finished":
            return None
        if "result" in answer:
            return _checked(answer["result"])
        error = answer.get("error") or {"message": "the service does not keep the result any more", "code": "result_dropped"}
        raise Error(error["message"], error["code"], error.get("hint"))

    def _signal(self, name: str) -> None:
        self._service.ask("POST", f"{self._path}/signal", {"signal": name})

    def _write(self, content: Union[str, bytes], eof: bool) -> None:
        body = {"text": content} if isinstance(content, str) else _blob(content)
        self._service.ask("POST", f"{self._path}/stdin", {**body, **({"eof": True} if eof else {})})

    def _cancel(self) -> None:
        self._service.ask("DELETE", self._path)


class Exec(_Exec):
    """A program that Session.start() has started."""

    def wait(self) -> Result:
        """Wait for its end."""
        while True:
            result = self._ask_end(_WAIT_S)
            if result:
                return result

    def poll(self) -> Optional[Result]:
        """The result; None: it has not ended."""
        return self._ask_end(0)

    def signal(self, name: str) -> None:
        """Send "INT", "TERM", ... to its main process."""
        self._signal(name)

    def write(self, content: Union[str, bytes], eof: bool = False) -> None:
        """Feed its standard input; with `eof`, this is the end.  Raises Error("too_many_waiting") if it does not read."""
        self._write(content, eof)

    def cancel(self) -> None:
        """End it with all its processes."""
        self._cancel()


class AsyncSession(_Session):
    """The same for asyncio.  Cancelling a task cancels its exec."""

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def exec(self, code: Union[str, bytes, None] = None, *, command: Optional[Sequence[str]] = None,
                   **more: Unpack[ExecOptions]) -> Result:  # fmt: skip
        return await _finish(self._prepare(code, command, more, is_async=True))

    def stream(self, code: Union[str, bytes, None] = None, *, command: Optional[Sequence[str]] = None,
               **more: Unpack[ExecOptions]) -> AsyncIterator[Event]:  # fmt: skip
        return _astream(self._prepare(code, command, more, True, is_async=True), _events)

    async def start(self, code: Union[str, bytes, None] = None, *, command: Optional[Sequence[str]] = None,
                    **more: Unpack[StartOptions]) -> AsyncExec:  # fmt: skip
        return AsyncExec(self, await _in_thread(lambda: self._detach(code, command, more)))

    async def execs(self) -> _Rows:
        return await _in_thread(self._execs)

    async def put(self, path: str, content: Union[str, bytes], executable: bool = False) -> None:
        await _in_thread(lambda: self._put(path, content, executable))

    async def get(self, path: str) -> bytes:
        return await _in_thread(lambda: self._get(path))

    async def list(self, path: str = HOME) -> _Entries:
        return await _in_thread(lambda: self._list(path))

    async def stat(self, path: str) -> Entry:
        return await _in_thread(lambda: self._stat(path))

    async def exists(self, path: str) -> bool:
        return await _in_thread(lambda: self._exists(path))

    async def mkdir(self, path: str) -> bool:
        return await _in_thread(lambda: self._mkdir(path))

    async def rename(self, path: str, to: str) -> None:
        await _in_thread(lambda: self._rename(path, to))

    def watch(self, path: str = HOME) -> AsyncIterator[Change]:
        """The changes in a directory, as they happen.  Leaving the loop ends the watch, not the session."""
        return _astream(lambda: self._watch(path), _changes)

    async def remove(self, path: str) -> None:
        await _in_thread(lambda: self._remove(path))

    async def lease(self, duration: str) -> dict[str, Any]:
        return await _in_thread(lambda: self._lease(duration))

    async def network(self, allow: Iterable[str] = (), *, deny: Iterable[str] = (), mode: Optional[str] = None, narrow: bool = False) -> dict[str, Any]:
        return await _in_thread(lambda: self._network(mode, allow, deny, narrow))

    async def info(self) -> dict[str, Any]:
        return await _in_thread(self._info)

    async def end(self) -> None:
        await _in_thread(self._end)


class AsyncExec(_Exec):
    async def wait(self) -> Result:
        while True:
            result = await _in_thread(lambda: self._ask_end(_WAIT_S))
            if result:
                return result

    async def poll(self) -> Optional[Result]:
        return await _in_thread(lambda: self._ask_end(0))

    async def signal(self, name: str) -> None:
        await _in_thread(lambda: self._signal(name))

    async def write(self, content: Union[str, bytes], eof: bool = False) -> None:
        await _in_thread(lambda: self._write(content, eof))

    async def cancel(self) -> None:
        await _in_thread(self._cancel)


class _Opening:
    """An AsyncSession that is to be created."""

    def __init__(self, client: AsyncClient, profile: Optional[str], settings: Mapping[str, Any]) -> None:
        self._client, (self._order, self._tools) = client, _order(profile, settings)
        self._session: Optional[AsyncSession] = None

    def _open(self) -> AsyncSession:
        service = self._client._sessions()
        return AsyncSession(service, service.ask("POST", "/v1/sessions", self._order)["id"], self._tools)

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return _in_thread(self._open).__await__()

    async def __aenter__(self) -> AsyncSession:
        self._session = await self
        return self._session

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.end()


# --- asyncio ------------------------------------------------------------------------------


async def _finish(start: Callable[[], _Run]) -> Result:
    """Its result; cancelling the task cancels the run."""
    run = await _in_thread(start)
    try:
        return await _in_thread(run.result)
    except asyncio.CancelledError:
        run.cancel()
        raise


async def _astream(start: Callable[[], _R], read: Callable[[_R], Iterator[_T]]) -> AsyncIterator[_T]:
    run = await _in_thread(start)
    events = read(run)
    step: Optional[asyncio.Future[Optional[_T]]] = None
    try:
        while True:
            step = _in_thread(lambda: next(events, None))
            event = await step
            if event is None:
                return
            yield event
    finally:
        run.cancel()
        if step is None or not step.cancelled():  # else its thread ends with the run
            events.close()  # type: ignore[attr-defined]


def _in_thread(work: Callable[[], _T]) -> asyncio.Future[_T]:
    """Not the loop's pool of threads: its size would limit how many runs go on."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            set_it(value)

    def body() -> None:
        try:
            value = work()
        except BaseException as problem:  # noqa: BLE001: it belongs to who awaits
            outcome: tuple[Callable[[Any], None], Any] = (future.set_exception, problem)
        else:
            outcome = (future.set_result, value)
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            pass  # the loop has ended, and nobody waits

    threading.Thread(target=body, daemon=True).start()
    return future


def run(code: Union[str, bytes, None] = None, **more: Unpack[RunOptions]) -> Result:
    """Client().run()"""
    return Client().run(code, **more)


def stream(code: Union[str, bytes, None] = None, **more: Unpack[RunOptions]) -> Iterator[Event]:
    """Client().stream()"""
    return Client().stream(code, **more)


async def arun(code: Union[str, bytes, None] = None, **more: Unpack[RunOptions]) -> Result:
    """AsyncClient().run()"""
    return await AsyncClient().run(code, **more)


def astream(code: Union[str, bytes, None] = None, **more: Unpack[RunOptions]) -> AsyncIterator[Event]:
    """AsyncClient().stream()"""
    return AsyncClient().stream(code, **more)


def session(profile: Optional[str] = None, **settings: Unpack[SessionOptions]) -> Session:
    """Client().session()"""
    return Client().session(profile, **settings)


def asession(profile: Optional[str] = None, **settings: Unpack[SessionOptions]) -> _Opening:
    """AsyncClient().session()"""
    return AsyncClient().session(profile, **settings)
