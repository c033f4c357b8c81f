# SPDX-License-Identifier: Apache-2.0
"""cejail - run untrusted programs in a jail, from Python.  Needs nothing but the standard library.

    import cejail

    result = cejail.run("print(6 * 7)")
    print(result.status, result.stdout)

A run goes over `cejail run`, or over the socket of a service (cejail-serve(8)):

    client = cejail.Client(socket="/run/cejail/api.sock")
    for event in client.stream("print('now')", timeout="5s"):
        ...

AsyncClient has the same methods for asyncio.  The keywords of run() and stream() are the keys of a
request: schema/request.json, cejail-profile(5).  The profile is the ceiling of the limits; the
options of Client(options=...) raise it, for runs over `cejail run`.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, Union
from urllib.parse import urlsplit

__all__ = ["AsyncClient", "Client", "Error", "Event", "File", "Result", "arun", "astream", "run", "stream"]

PROFILE = "python"
_MISSING: Any = object()
_T = TypeVar("_T")


class File(NamedTuple):
    """A file for the jail, where its content alone is not enough."""

    content: Union[str, bytes]
    executable: bool = False


Files = Mapping[str, Union[str, bytes, File]]


class Error(Exception):
    """cejail failed or refused the request: no program ran, or its result was lost.

    `code` is the service's code of the error ("queue_full") or the stage that failed ("options").
    `result` is the result with the status "setup_error", if there is one.
    """

    def __init__(self, message: str, code: str | None = None, hint: str | None = None,
                 result: Result | None = None, retry_after: float | None = None) -> None:  # fmt: skip
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message, self.code, self.hint, self.result, self.retry_after = message, code, hint, result, retry_after


def _bytes_of(part: Mapping[str, Any]) -> bytes:
    """Of {"text": ...} or {"base64": ...}."""
    if "base64" in part:
        return base64.b64decode(part["base64"], validate=True)
    return str(part.get("text", "")).encode()


@dataclass(frozen=True)
class Result:
    """How a run ended.  `raw` is the whole result: schema/result.json."""

    raw: dict[str, Any]

    @property
    def id(self) -> str:
        return self.raw["id"]

    @property
    def status(self) -> str:
        """exited, signaled, timeout, cpu_limit, oom, output_limit or cancelled."""
        return self.raw["status"]

    @property
    def exit_code(self) -> int | None:
        """None unless the status is "exited"."""
        return self.raw["exit_code"]

    @property
    def signal(self) -> int | None:
        return self.raw["signal"]

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
        return self.raw["stdout"]["truncated"] or self.raw["stderr"]["truncated"]

    @property
    def value(self) -> Any:
        """The JSON that the program left in /box/out/result.json: untrusted; None without it."""
        return self.raw.get("value")

    @property
    def artifacts(self) -> dict[str, bytes]:
        """The files of /box/out by their path, with artifacts=True.  A path never leads upwards, but
        check names before you write them."""
        return {row["path"]: _bytes_of(row) for row in self.raw["artifacts"] if "text" in row or "base64" in row}

    @property
    def limits_hit(self) -> list[str]:
        return [name for name, limit in self.raw["limits"].items() if limit["hit"]]

    @property
    def usage(self) -> dict[str, Any]:
        return self.raw["usage"]

    @property
    def warnings(self) -> list[str]:
        return self.raw["warnings"]


@dataclass(frozen=True)
class Event:
    """One line of the events: EVENTS in cejail(1).  The last one has type "result" and the result."""

    type: str
    data: dict[str, Any]
    result: Result | None = None

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


def request(code: Union[str, bytes, None] = None, *, command: Sequence[str] | None = None, profile: str | None = None,
            args: Sequence[str] = (), stdin: Union[str, bytes, None] = None, files: Files | None = None,
            args_json: Any = _MISSING, artifacts: Union[bool, str] = False, **settings: Any) -> dict[str, Any]:  # fmt: skip
    """The JSON object of a run.  Settings that are None are left out."""
    made: dict[str, Any] = {"profile": profile or ("base" if command is not None else PROFILE)}
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


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError as problem:
        raise Error("cejail's answer is not JSON") from problem


# --- one run: over a process, or over a connection ---------------------------------------


class _Process:
    """One `cejail run`."""

    def __init__(self, words: list[str], body: bytes, wants_events: bool) -> None:
        self.reader, writer = os.pipe() if wants_events else (-1, -1)
        events = ["--events-fd", str(writer)] if wants_events else []
        try:
            self.process = subprocess.Popen(
                [words[0], "run", "--request-fd", "0", "--json", "--quiet", *events, *words[1:]],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL if wants_events else subprocess.PIPE,
                stderr=subprocess.PIPE, pass_fds=(writer,) if wants_events else (),
            )  # fmt: skip
        except OSError as problem:
            if wants_events:
                os.close(self.reader)
            raise Error(f"start '{words[0]}': {problem.strerror}") from problem
        finally:
            if wants_events:
                os.close(writer)
        self.body = body

    def _no_answer(self, said: bytes) -> Error:
        return Error(said.decode(errors="replace").strip() or f"cejail ended with {self.process.returncode} and no result")

    def result(self) -> Result:
        try:
            out, err = self.process.communicate(self.body)
        except BaseException:  # KeyboardInterrupt: the run ends with its caller
            self.cancel()
            self.process.communicate()
            raise
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


class _Call:
    """One POST /v1/runs.  The service cancels a run whose connection is closed."""

    def __init__(self, connection: http.client.HTTPConnection, token: str | None, body: bytes, wants_events: bool) -> None:
        self.connection = connection
        self.is_cancelled = False
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson" if wants_events else "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            connection.request("POST", "/v1/runs", body, headers)
        except OSError as problem:
            connection.close()
            raise Error(f"connect to the service: {problem.strerror or problem}") from problem

    def _response(self) -> http.client.HTTPResponse:
        response = self.connection.getresponse()
        if response.status == 200:
            return response
        body = response.read()
        try:
            error = json.loads(body)["error"]
        except (ValueError, TypeError, KeyError) as problem:
            raise Error(f"the service answered with HTTP status {response.status}") from problem
        after = response.headers.get("Retry-After", "")
        raise Error(error["message"], error["code"], error["hint"], None, float(after) if after.isdigit() else None)

    def result(self) -> Result:
        try:
            return _checked(_parse(self._response().read()))
        except (OSError, http.client.HTTPException) as problem:
            raise Error("the connection to the service ended without a result") from problem
        finally:
            self.connection.close()

    def lines(self) -> Iterator[bytes]:
        try:
            yield from self._response()
        except (OSError, http.client.HTTPException) as problem:
            raise Error("the connection to the service ended without a result") from problem
        finally:
            self.connection.close()

    def cancel(self) -> None:
        """A reader in another thread gets the end of the connection."""
        if self.connection.sock:
            try:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


_Run = Union[_Process, _Call]


def _events(run: _Run) -> Iterator[Event]:
    lines = run.lines()
    is_whole = False
    try:
        for line in lines:
            data = _parse(line)
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


class _Base:
    def __init__(self, socket: str | None = None, *, url: str | None = None, token: str | None = None,
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
        self._socket, self._url, self._token, self._words = socket, url, token, [program, *options]

    def _start(self, request: Mapping[str, Any], wants_events: bool) -> _Run:
        body = json.dumps(request).encode()
        if self._socket:
            return _Call(_UnixConnection(self._socket), self._token, body, wants_events)
        if self._url:
            to = urlsplit(self._url)
            if to.scheme != "http" or not to.hostname:
                raise ValueError(f"'{self._url}' is not http://HOST:PORT")
            return _Call(http.client.HTTPConnection(to.hostname, to.port or 80), self._token, body, wants_events)
        return _Process(self._words, body, wants_events)


class Client(_Base):
    """Runs programs, one call at a time or from several threads."""

    def run(self, code: Union[str, bytes, None] = None, **more: Any) -> Result:
        """Run a program to its end.  Keywords: those of request(), and a profile's settings.

        Raises Error if cejail failed or refused the request; how the program ended is in the result.
        """
        return self._start(request(code, **more), False).result()

    def stream(self, code: Union[str, bytes, None] = None, **more: Any) -> Iterator[Event]:
        """Run a program and yield what happens; the last event has the result.  Closing the iterator
        cancels the run."""
        return _events(self._start(request(code, **more), True))


class AsyncClient(_Base):
    """The same for asyncio: each run has a thread.  Cancelling the task cancels the run."""

    async def run(self, code: Union[str, bytes, None] = None, **more: Any) -> Result:
        made = request(code, **more)
        run = await _in_thread(lambda: self._start(made, False))
        try:
            return await _in_thread(run.result)
        except asyncio.CancelledError:
            run.cancel()
            raise

    async def stream(self, code: Union[str, bytes, None] = None, **more: Any) -> AsyncIterator[Event]:
        made = request(code, **more)
        run = await _in_thread(lambda: self._start(made, True))
        events = _events(run)
        step: asyncio.Future[Event | None] | None = None
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


def run(code: Union[str, bytes, None] = None, **more: Any) -> Result:
    """Client().run()"""
    return Client().run(code, **more)


def stream(code: Union[str, bytes, None] = None, **more: Any) -> Iterator[Event]:
    """Client().stream()"""
    return Client().stream(code, **more)


async def arun(code: Union[str, bytes, None] = None, **more: Any) -> Result:
    """AsyncClient().run()"""
    return await AsyncClient().run(code, **more)


def astream(code: Union[str, bytes, None] = None, **more: Any) -> AsyncIterator[Event]:
    """AsyncClient().stream()"""
    return AsyncClient().stream(code, **more)
