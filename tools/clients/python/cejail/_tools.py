# SPDX-License-Identifier: Apache-2.0
"""The tools of a run or an exec: functions of the caller that its program calls.  cejail-tools(7)

A tool's schema comes from the annotations and the doc string of its function.  While the run goes on, a thread reads the
calls from a socket of cejail's; at a service, the reader of the events finds them there.  The functions run in further
threads, and what they await in an event loop.
"""

from __future__ import annotations

import asyncio
import collections.abc
import concurrent.futures
import contextvars
import dataclasses
import functools
import inspect
import json
import queue
import re
import socket
import threading
import types
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, TypedDict, Union

ANSWER_MAX = 16 << 20  # bytes of an answer: cejail-tools(7)
_VALUES_MAX = 128000  # numbers, strings, lists, ... of an answer
_DEPTH_MAX = 31
_ERROR_MAX = 2000  # characters of an error
_THREADS_MAX = 64  # of one run, as many as calls without an answer: calls.outstanding in cejail-profile(5)
_ID = re.compile(rb'\{"id": ?([0-9]{1,16})[,}]')  # what cejail begins a line with
_EVENT_ID = re.compile(rb'\{"type": ?"call",[^{}]*?"call": ?([0-9]{1,16}),')  # and a service an event
_CANCEL_S = 5  # for the functions that were cancelled at the end of a run


class _WithHandler(TypedDict):
    handler: Callable[..., Any]


class Tool(_WithHandler, total=False):
    """A tool whose description is not that of its function.  The names are those of MCP; `name` is for a list of tools."""

    name: str
    title: str
    description: str
    inputSchema: Mapping[str, Any]
    outputSchema: Mapping[str, Any]
    annotations: Mapping[str, Any]


Tools = Union[Mapping[str, Union[Callable[..., Any], Tool]], Sequence[Union[Callable[..., Any], Tool]]]


class CallLimits(TypedDict, total=False):
    max: Union[int, str]
    outstanding: Union[int, str]  # without an answer
    rate: Union[int, str]  # in a second
    timeout: Union[float, str]  # of one call


# --- schemas --------------------------------------------------------------------------------

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", None: "null", type(None): "null"}
_UNIONS = (Union, getattr(types, "UnionType", Union))


def schema_of(kind: Any, within: tuple[Any, ...] = ()) -> dict[str, Any]:
    """The JSON schema of a type; {} for one that it does not know, and for one inside itself."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is None and (kind is None or isinstance(kind, type)) and kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin in _UNIONS:
        return {"anyOf": [schema_of(part, within) for part in parts]}
    if _marks(kind):
        return schema_of(parts[0], within)
    if hasattr(kind, "__metadata__"):  # Annotated[str, "what it means"]
        said = [part for part in kind.__metadata__ if isinstance(part, str)]
        return {**schema_of(parts[0], within), **({"description": said[0]} if said else {})}
    if (origin or kind) in (list, collections.abc.Sequence):
        return {"type": "array", **({"items": schema_of(parts[0], within)} if parts else {})}
    if (origin or kind) in (dict, collections.abc.Mapping):
        return {"type": "object", **({"additionalProperties": schema_of(parts[1], within)} if parts else {})}
    if _is_record(kind) and kind not in within:
        return _record_schema(kind, (*within, kind))
    return {}


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "__required_keys__"))


def _marks(kind: Any) -> str:
    """Required or NotRequired, of a TypedDict's member; "" without either."""
    name = str(getattr(typing.get_origin(kind), "_name", ""))
    return name if name in ("Required", "NotRequired") else ""


def _hints(target: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception:  # noqa: BLE001: names that exist only for a type checker, or no annotations at all
        return {}


def _record_schema(kind: Any, within: tuple[Any, ...]) -> dict[str, Any]:
    """Of a dataclass or a TypedDict."""
    hints = _hints(kind)
    if dataclasses.is_dataclass(kind):
        fields = [field for field in dataclasses.fields(kind) if field.init]
        none = dataclasses.MISSING
        needed = [field.name for field in fields if field.default is none and field.default_factory is none]
        names = [field.name for field in fields]
    else:
        names = list(hints)
        needed = [name for name in names if name in kind.__required_keys__ and _marks(hints[name]) != "NotRequired"]
    return _object_schema({name: schema_of(hints.get(name), within) if name in hints else {} for name in names}, needed)


def _object_schema(properties: dict[str, Any], needed: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}


def _default(parameter: inspect.Parameter) -> dict[str, Any]:
    try:
        return {} if parameter.default is parameter.empty else {"default": json.loads(_dump(parameter.default))}
    except (TypeError, ValueError):
        return {}


def _unbound(function: Callable[..., Any]) -> tuple[Callable[..., Any], frozenset[str]]:
    """The function inside functools.partial(), and the names of the arguments that partial() gives it."""
    place: list[Any] = []
    names: set[str] = set()
    while isinstance(function, functools.partial):
        place[:0] = function.args
        names.update(function.keywords)
        function = function.func
    try:
        parameters = inspect.signature(function).parameters.values() if place else ()
    except (TypeError, ValueError):  # a built-in function: Python itself refuses a second value
        parameters = ()
    by_place = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return function, frozenset(names.union(by_place[: len(place)]))


def _describe(name: str, function: Callable[..., Any], hints: Mapping[str, Any], bound: frozenset[str]) -> dict[str, Any]:
    """The schemas that its signature and annotations make, without the arguments that are bound."""
    properties, needed, is_open = {}, [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"the tool '{name}': the parameter '{parameter.name}' has no keyword; remove the '/' of the function")
        is_open = is_open or parameter.kind is parameter.VAR_KEYWORD
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or parameter.name in bound:
            continue
        properties[parameter.name] = {**(schema_of(hints[parameter.name]) if parameter.name in hints else {}), **_default(parameter)}
        if parameter.default is parameter.empty:
            needed.append(parameter.name)
    schema = {**_object_schema(properties, needed), **({} if is_open else {"additionalProperties": False})}
    result = schema_of(hints.get("return", Any))
    return {"inputSchema": schema, **({"outputSchema": result} if result else {})}


# --- values ---------------------------------------------------------------------------------


def _built(kind: Any, value: Any) -> Any:
    """A JSON value as its annotation says: objects become dataclasses, and all else stays as it is."""
    if _marks(kind) or hasattr(kind, "__metadata__"):
        return _built(typing.get_args(kind)[0], value)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(value, dict) and isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: _built(hints.get(name), item) for name, item in value.items()})
    if origin in _UNIONS and len(others := [part for part in parts if part is not type(None)]) == 1:
        return _built(others[0], value)
    if isinstance(value, list) and origin in (list, collections.abc.Sequence):
        return [_built(parts[0], item) for item in value]
    if isinstance(value, dict) and origin in (dict, collections.abc.Mapping):
        return {name: _built(parts[1], item) for name, item in value.items()}
    return value


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"it has a value of the type '{type(value).__name__}'")


def _dump(value: Any) -> bytes:
    """Half a surrogate pair, which cejail does not read, is an error, too."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain).encode()


def _failure(message: str) -> bytes:
    return _dump({"error": {"message": message.encode(errors="replace").decode()}})


def _count(value: Any, depth: int = 0) -> int:
    """The number of values in a result.  cejail reads no answer with too many, or with too many in each other."""
    if depth > _DEPTH_MAX:
        raise ValueError(f"it has more than {_DEPTH_MAX} lists or dicts in each other")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = _plain(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return 1 + sum(_count(part, depth + 1) for part in parts)


def _said(problem: BaseException) -> str:
    """In one line, and without the traceback: the program is not to see the caller's files."""
    try:
        text = f"{type(problem).__name__}: {problem}".encode(errors="replace").decode()
    except Exception:  # noqa: BLE001: of its __str__()
        text = type(problem).__name__
    return " ".join(text.split()).removesuffix(":")[:_ERROR_MAX]


# --- the tools of a run ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class CallCount:
    """How often a program called a tool.  Refused calls did not reach the caller, and are not in `count`."""

    name: Optional[str]  # as the program wrote it, also that of no tool; None: calls without a name, and further names
    count: int
    failed: int
    refused: int


class _Named(NamedTuple):
    description: dict[str, Any]
    function: Callable[..., Any]
    hints: dict[str, Any]
    bound: frozenset[str]  # arguments that functools.partial() gives, and no program


def _named(name: Optional[str], given: Any) -> _Named:
    more = dict(given) if isinstance(given, Mapping) else {}
    function = more.pop("handler", None) if isinstance(given, Mapping) else given
    if not callable(function):
        raise TypeError(f"the tool '{name or more.get('name')}' is {type(given).__name__}; give a function, or an object with \"handler\"")
    name = name or more.get("name") or getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise TypeError("a tool in a list has no name; give tools={\"NAME\": function}")
    target, bound = _unbound(function)
    hints = _hints(target if inspect.isroutine(target) else type(target).__call__)
    said = inspect.getdoc(target) if inspect.isroutine(target) else None
    described = {**({"description": said} if said else {}), **({} if "inputSchema" in more else _describe(name, function, hints, bound))}
    return _Named({"name": name, **described, **more}, function, {key: hints[key] for key in hints if key != "return"}, bound)


class Toolbox:
    """The functions by name, and the catalogue that cejail shows to the program.

    loop: where async functions run; None: in a loop of its own, for each run.
    """

    def __init__(self, tools: Tools, loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
        pairs = tools.items() if isinstance(tools, Mapping) else [(None, tool) for tool in tools]
        rows = [_named(name, tool) for name, tool in pairs]
        self.by_name = {row.description["name"]: row for row in rows}
        self.catalogue = [row.description for row in rows]
        self.loop = loop
        self.context = contextvars.copy_context()

    def start(self, sock: socket.socket) -> SocketAnswering:
        return SocketAnswering(self, sock)


class _Loop:
    """An event loop in a thread, for async functions of a caller without one."""

    def __init__(self, tasks: set[Any]) -> None:
        self.tasks, is_ready = tasks, threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._stay(is_ready)), daemon=True)
        self.thread.start()
        is_ready.wait()

    async def _stay(self, is_ready: threading.Event) -> None:
        self.loop, self.is_over = asyncio.get_running_loop(), asyncio.Event()
        is_ready.set()
        await self.is_over.wait()
        if self.tasks:  # they were cancelled
            await asyncio.wait(list(self.tasks), timeout=_CANCEL_S)

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.is_over.set)
        self.thread.join(_CANCEL_S)


class _Threads:
    """Threads for functions.  They do not keep the process alive: a function may never return."""

    def __init__(self) -> None:
        self.work: queue.SimpleQueue[Optional[Callable[[], None]]] = queue.SimpleQueue()
        self.lock, self.count, self.busy = threading.Lock(), 0, 0

    def start(self, work: Callable[[], None]) -> None:
        with self.lock:
            self.busy += 1
            is_needed = self.busy > self.count and self.count < _THREADS_MAX
            self.count += is_needed
        if is_needed:
            threading.Thread(target=self._serve, daemon=True).start()
        self.work.put(work)

    def _serve(self) -> None:
        while (work := self.work.get()) is not None:
            work()
            with self.lock:
                self.busy -= 1

    def end(self) -> None:
        with self.lock:
            count, self.count = self.count, _THREADS_MAX
        for _ in range(count):
            self.work.put(None)


class Answering:
    """Answers calls with the functions of a toolbox, until close()."""

    def __init__(self, box: Toolbox) -> None:
        self.box = box
        self.threads, self.lock = _Threads(), threading.Lock()
        self.own_loop: Optional[_Loop] = None
        self.tasks: set[Any] = set()
        self.awaited: dict[int, Optional[concurrent.futures.Future[Any]]] = {}  # by the call's id

    def _send(self, id: int, body: bytes) -> None:
        """The answer to a call: {"result": ...} or {"error": {"message": ...}}."""
        raise NotImplementedError

    def close(self) -> None:
        """After the end of the run: ends what its calls have begun."""
        self._end_all()
        if self.own_loop:
            self.own_loop.end()
        self.threads.end()

    def _end_all(self) -> None:
        for id in list(self.awaited):
            self._end(id)

    def _take(self, id: int, call: dict[str, Any]) -> None:
        name, arguments = call["name"], dict(call["arguments"])
        self.awaited[id] = None
        context = self.box.context.copy()
        self.threads.start(lambda: context.run(self._answer, id, name, arguments))

    def _refuse(self, id: int, problem: Exception) -> None:
        self._end(id)
        self._send(id, _failure(f"the call cannot be read: {_said(problem)}"))

    def _end(self, id: int) -> None:
        with self.lock:
            future = self.awaited.pop(id, None)
        if future:
            future.cancel()

    def _answer(self, id: int, name: str, arguments: dict[str, Any]) -> None:
        with self.lock:
            if id not in self.awaited:  # the call ended before a thread was free
                return
        try:
            answer: dict[str, Any] = {"result": self._call(id, name, arguments)}
        except BaseException as problem:  # noqa: BLE001: it belongs to the program
            answer = {"error": {"message": _said(problem)}}
        body = self._body(name, answer)
        with self.lock:
            self.awaited.pop(id, None)
        self._send(id, body)

    def _body(self, name: str, answer: dict[str, Any]) -> bytes:
        try:
            values = _count(answer.get("result"))
            body = _dump(answer)
            if len(body) <= ANSWER_MAX and values <= _VALUES_MAX:
                return body
            most = f"at most {ANSWER_MAX} bytes and {_VALUES_MAX} values are possible"
            said = f"the result of '{name}' has {len(body)} bytes of JSON with {values} values, and {most} (ask for less at once)"
        except (TypeError, ValueError, RecursionError) as problem:
            said = f"the result of '{name}' is not JSON: {problem} (the function must return None, a bool, number, str, list, dict or dataclass)"
        return _failure(said)

    def _call(self, id: int, name: str, arguments: dict[str, Any]) -> Any:
        tool = self.box.by_name[name]
        if taken := sorted(tool.bound.intersection(arguments)):
            raise TypeError(f"the caller sets the argument '{taken[0]}' of '{name}' (leave it out)")
        built = {key: _built(tool.hints.get(key), value) for key, value in arguments.items()}
        value = tool.function(**built)
        return self._wait(id, value) if inspect.isawaitable(value) else value

    def _wait(self, id: int, value: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            task = asyncio.current_task()
            self.tasks.add(task)
            try:
                return await value
            finally:
                self.tasks.discard(task)

        with self.lock:
            if id not in self.awaited:  # ended before it began
                getattr(value, "close", lambda: None)()
                raise concurrent.futures.CancelledError
            if not self.box.loop:
                self.own_loop = self.own_loop or _Loop(self.tasks)
            loop = self.box.loop or self.own_loop.loop  # type: ignore[union-attr]
            future = self.awaited[id] = asyncio.run_coroutine_threadsafe(wait(), loop)
        return future.result()


class SocketAnswering(Answering):
    """Of `cejail run`, whose calls come over a socket."""

    def __init__(self, box: Toolbox, sock: socket.socket) -> None:
        super().__init__(box)
        self.sock, self.writing = sock, threading.Lock()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def close(self) -> None:
        self._shut()
        self.reader.join()
        super().close()
        self.sock.close()

    def _shut(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _read(self) -> None:
        """Until the end, or a line that is no call: cejail was killed in it.  Then further calls fail at once."""
        try:
            with self.sock.makefile("rb") as lines:
                while (line := lines.readline()) and self._take_line(line):
                    pass
        except OSError:
            pass
        finally:
            self._shut()
            self._end_all()

    def _take_line(self, line: bytes) -> bool:
        """False: it is not known which call to answer."""
        try:
            call = json.loads(line)
            if "ended" in call:
                self._end(call["id"])
            else:
                self._take(call["id"], call)
        except Exception as problem:  # noqa: BLE001: such as an integer with more digits than Python reads
            found = _ID.match(line)
            if not found or not line.endswith(b"\n"):
                return False
            self._refuse(int(found[1]), problem)
        return True

    def _send(self, id: int, body: bytes) -> None:
        try:
            with self.writing:
                self.sock.sendall(b'{"id": %d, %b\n' % (id, body[1:]))
        except OSError:
            pass  # the run has ended


class EventAnswering(Answering):
    """Of a run or an exec at a service, whose calls come with its events.

    post: delivers an answer, given the ids of the run and of the call, the answer, and what is set when the run has ended.
    """

    def __init__(self, box: Toolbox, post: Callable[[str, int, bytes, threading.Event], None]) -> None:
        super().__init__(box)
        self.post, self.run_id, self.is_over = post, "", threading.Event()

    def close(self) -> None:
        self.is_over.set()
        super().close()

    def read(self, line: bytes) -> Any:
        """The event of a line; a call in it is answered."""
        try:
            event = json.loads(line)
        except ValueError as problem:
            found = _EVENT_ID.match(line)
            if not found:
                raise
            id = int(found[1])
            self.threads.start(functools.partial(self._refuse, id, problem))
            return {"type": "call", "call": id}
        if event["type"] == "start":
            self.run_id = event["id"]
        elif event["type"] == "call" and "arguments" in event:  # else nobody is asked, as by the fake service
            self._take(event["call"], event)
        elif event["type"] == "answer":
            self._end(event["call"])
        return event

    def _send(self, id: int, body: bytes) -> None:
        self.post(self.run_id, id, body, self.is_over)
