# SPDX-License-Identifier: Apache-2.0
"""The tools of this program: functions that whoever runs it answers.

    import tools
    print(tools.describe())                          # every tool, one line each
    print(tools.describe("github.search_issues"))    # one of them: signature, description, schema

    from tools import github
    github.search_issues(query="x")                  # the result, or a ToolError
    await github.search_issues.aio(query="x")        # the same under asyncio
    tools.call("github.search_issues", query="x")    # by the name in tools.json

`python3 tools.py` prints a stub (.pyi) of them.  cejail-tools(7) describes the protocol.
"""

import json
import os
import sys
import threading

# As cejail reads them: runtime/jail/supervise/calls.h, runtime/base/json/json.h.
LINE_MAX = 1 << 20
DEPTH_MAX = 32
VALUES_MAX = 1 << 17
CHUNK = 1 << 18
TYPE_DEPTH_MAX = 8  # of a type in a signature; what is deeper is Any
KINDS_MAX = 8  # entries of a "type" that are read; JSON has fewer types
SUMMARY_MAX = 100  # characters of a tool's line in describe()
PART_MAX = 1 << 16  # characters of a description, a schema or a signature
STUB_MAX = 4 << 20  # characters of a stub, about

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools.json")
PID = os.getpid()

OWN = ("ToolError", "acall", "call", "describe", "main", "stub", "tools")


class ToolError(Exception):
    """A call that failed.  Its text says why; `tool` is the name of the tool, or None."""

    def __init__(self, message="", tool=None):
        super().__init__(message)
        self.tool = tool

    def __reduce__(self):
        return (ToolError, (str(self), self.tool))


# --- the connection: lines of JSON on one socket --------------------------------------------------


class Slot:
    """A call and its answer."""

    def __init__(self, name, id_, line):
        self.name, self.id, self.line = name, id_, line
        self.answer = None  # {"result": ...} or {"error": {...}}
        self.wake = threading.Lock()  # released when there is an answer, or nobody reads
        self.wake.acquire()
        self.on_answer = None

    def finish(self, answer):
        self.answer = answer
        self.rouse()
        if self.on_answer:
            self.on_answer()

    def rouse(self):
        try:
            self.wake.release()
        except RuntimeError:  # it is already
            pass


class Connection:
    """
    The socket, for every thread.  One of the threads that wait reads for all of them; when it has
    its answer, it rouses another.

    A KeyboardInterrupt may come between any two steps of Python.  So a received chunk gets into
    `chunks`, and a sent count into `sending`, within one step: list.extend(map(...)) is C, as is
    dict.setdefault().  A line that is half sent is completed before the next one.
    """

    def __init__(self, sock):
        import select

        self.sock = sock
        self.sock.setblocking(False)
        self.poll_for = {flags: self.poller(select, flags) for flags in (select.POLLIN, select.POLLOUT, 5)}
        self.waiting = {}  # id: Slot
        self.count = 0
        self.lock = threading.Lock()  # of the two above
        self.role = {}  # "reader": the Slot whose thread reads
        self.chunks, self.searched = [], 0
        self.sends = threading.Lock()
        self.sending = (memoryview(b""), [])
        self.end = None  # why there are no more answers
        self.queues = None  # of the threads for asyncio

    def poller(self, select, flags):
        poll = select.poll()
        poll.register(self.sock, flags)
        return poll.poll

    # A call.

    def begin(self, name, arguments):
        with self.lock:
            self.count += 1
            # Another program of this run may have had the socket before: no id is ever used again.
            id_ = f"{PID}-{os.urandom(4).hex()}-{self.count}"
        slot = Slot(name, id_, call_line(name, id_, arguments))
        if self.end:
            raise ToolError(self.end, name)
        self.waiting[id_] = slot
        return slot

    def call(self, name, arguments):
        slot = self.begin(name, arguments)
        try:
            self.send(slot)
            self.wait(slot)
        finally:
            self.forget(slot)
        return value_of(slot)

    def forget(self, slot):
        self.waiting.pop(slot.id, None)
        self.leave_role(slot)
        self.rouse_one()

    def rouse_one(self):
        for slot in tuple(self.waiting.values()):
            if slot.answer is None:
                slot.rouse()
                return

    def fail_all(self, message):
        for slot in tuple(self.waiting.values()):
            slot.finish({"error": {"message": message}})
        self.waiting.clear()

    def close(self, message):
        self.end = message
        self.fail_all(message)

    # Sending.

    def send(self, slot):
        with self.sends:
            if self.sending[1]:
                self.send_rest(slot)
            if slot.answer is None:
                self.sending = (memoryview(slot.line), [])
                self.send_rest(slot)

    def send_rest(self, slot):
        line, counts = self.sending
        while sum(counts) < len(line) and not self.end:
            try:
                counts.extend(map(self.sock.send, (line[sum(counts) :],)))
            except BlockingIOError:
                self.await_room(slot)
            except OSError as problem:
                self.close(f"cejail takes no more calls: {problem.strerror}")

    def await_room(self, slot):
        """cejail may send first what it has for us, so somebody must read."""
        try:
            if self.role.setdefault("reader", slot) is slot:
                self.poll_for[5]()
                self.receive()
            else:
                self.poll_for[4](100)  # who reads now may stop
        finally:
            self.leave_role(slot)

    # Receiving.

    def wait(self, slot):
        while slot.answer is None:
            try:
                if self.role.setdefault("reader", slot) is not slot:
                    slot.wake.acquire()
                    continue
                self.take_lines()
                if slot.answer is None:
                    self.poll_for[1]()
                    self.receive()
            finally:
                self.leave_role(slot)

    def leave_role(self, slot):
        if self.role.get("reader") is slot:
            del self.role["reader"]
            self.rouse_one()

    def receive(self):
        try:
            self.chunks.extend(map(self.sock.recv, (CHUNK,)))
        except BlockingIOError:
            return
        except OSError as problem:
            self.close(f"cejail answers no more calls: {problem.strerror}")
            return
        if not self.chunks[-1]:
            self.close("the run is ending: cejail answers no more calls")
        self.take_lines()

    def take_lines(self):
        while any(b"\n" in chunk for chunk in self.chunks[self.searched :]):
            self.searched = 0
            self.chunks[:] = [b"".join(self.chunks)]
            lines = self.chunks[0].split(b"\n")
            for line in lines[:-1]:
                self.take(line)  # twice after an interrupt: then nobody waits for it
            self.chunks[:] = lines[-1:]
        self.searched = len(self.chunks)

    def take(self, line):
        try:
            answer = parse(line)
            id_ = answer["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            answer, id_ = {}, None
        if id_ is None:
            self.fail_all(message_of(answer) or "cejail's answer can't be read")
        slot = self.waiting.pop(id_, None) if isinstance(id_, str) else None
        if slot:
            slot.finish(answer)

    # asyncio.

    async def acall(self, name, arguments):
        import asyncio

        loop = asyncio.get_running_loop()
        slot = self.begin(name, arguments)
        arrived = loop.create_future()

        def arrive():
            if not arrived.done():
                arrived.set_result(None)

        def on_answer():
            try:
                loop.call_soon_threadsafe(arrive)
            except RuntimeError:  # the loop is closed
                pass

        slot.on_answer = on_answer
        if slot.answer is not None:
            arrive()
        try:
            self.enqueue(slot)
            await arrived
        finally:
            slot.on_answer = None
            if slot.answer is None:  # cancelled
                slot.finish({"error": {"message": "the call was cancelled"}})
            self.forget(slot)
        return value_of(slot)

    def enqueue(self, slot):
        """A loop must not wait for a socket that others read, too: two threads do."""
        import queue

        with self.lock:
            if self.queues is None:
                self.queues = (queue.SimpleQueue(), queue.SimpleQueue())
                for work in (self.send_queued, self.wait_queued):
                    threading.Thread(target=work, name="tools", daemon=True).start()
        self.queues[0].put(slot)

    def send_queued(self):
        while True:
            slot = self.queues[0].get()
            self.send(slot)
            self.queues[1].put(slot)

    def wait_queued(self):
        while True:
            self.wait(self.queues[1].get())


def parse(line):
    text = line.decode()
    try:
        return json.loads(text)
    except ValueError:  # perhaps a number that int() refuses
        return json.loads(text, parse_int=whole)


def whole(digits):
    try:
        return int(digits)
    except ValueError:  # more than 4300 digits, or than PYTHONINTMAXSTRDIGITS
        return float(digits)


def message_of(answer):
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else None


def value_of(slot):
    if "result" in slot.answer:
        return slot.answer["result"]
    raise ToolError(message_of(slot.answer) or "the tool failed and did not say why", slot.name)


# --- arguments ------------------------------------------------------------------------------------


def check_value(name, value):
    """Refuses what cejail would not read, before it is sent; also ends what contains itself."""
    todo, count = [(value, 2)], 0
    while todo:
        value, depth = todo.pop()
        count += 1
        if isinstance(value, str) and "\0" in value:
            raise ToolError(f"{name}: an argument contains a NUL character, which cejail does not read", name)
        if not isinstance(value, (dict, list, tuple)):
            continue
        if depth > DEPTH_MAX:
            raise ToolError(f"{name}: the arguments nest deeper than {DEPTH_MAX} levels", name)
        if count + len(todo) + len(value) > VALUES_MAX - 8:
            raise ToolError(f"{name}: the arguments have more than {VALUES_MAX} values", name)
        if isinstance(value, dict):
            if len({isinstance(key, str) for key in value}) > 1:
                raise TypeError(f"{name}: an object has keys that are strings and keys that are not")
            todo.extend((key, 0) for key in value if isinstance(key, str) and "\0" in key)
            value = value.values()
        todo.extend((member, depth + 1) for member in value)


def call_line(name, id_, arguments):
    if not isinstance(name, str):
        raise TypeError(f"the name of a tool is a string, not {type(name).__name__}")
    check_value(name, {"name": name, **arguments})
    try:
        value = {"id": id_, "name": name, "arguments": arguments}
        line = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except TypeError as problem:
        raise TypeError(f"{name}: the arguments are no JSON: {problem}") from None
    except UnicodeEncodeError:
        raise ToolError(f"{name}: an argument is no valid Unicode: it has half of a surrogate pair", name) from None
    except ValueError as problem:
        raise ToolError(f"{name}: the arguments are no JSON: {problem}", name) from None
    if len(line) > LINE_MAX:
        raise ToolError(f"{name}: the call has {len(line)} bytes; cejail reads at most {LINE_MAX}", name)
    return line


# --- calls ----------------------------------------------------------------------------------------

connection = None
connecting = threading.Lock()


def connect(name):
    if os.getpid() != PID:
        raise ToolError(
            "this process is a fork: call tools in the process that imported the module, and pass on the results", name
        )
    if connection is None:
        problems = []
        thread = threading.Thread(target=open_connection, args=(name, problems), daemon=True)
        try:
            thread.start()
            thread.join()
        except RuntimeError:  # the run may have no further thread
            open_connection(name, problems)
        if problems:
            raise problems[0]
    return connection


def open_connection(name, problems):
    """In a thread of its own, so that an interrupt of the program (Ctrl+C, a cell's) leaves nothing half done."""
    global connection
    with connecting:
        try:
            connection = connection or Connection(open_socket(name))
        except BaseException as problem:
            problems.append(problem)


def open_socket(name):
    import socket

    number = os.environ.get("CEJAIL_CALLS_FD")
    if not number:
        raise ToolError(
            "this run has no tools: start it with `cejail run --tools tools.json --calls-fd N`, see cejail-tools(7)",
            name,
        )
    try:
        fd = int(number)
        os.set_inheritable(fd, False)  # two processes would read each other's answers
        return socket.socket(fileno=fd)
    except (ValueError, OSError):
        raise ToolError(
            f"descriptor {number} is not the socket of the tools: it belongs to the program that cejail started", name
        ) from None


def call(name, /, **arguments):
    """Call a tool by its name in tools.json: the result, or a ToolError."""
    return connect(name).call(name, arguments)


async def acall(name, /, **arguments):
    """call() for asyncio."""
    return await connect(name).acall(name, arguments)


# --- types: the schema of an argument, as far as Python can say it ----------------------------------

# A type is a tuple: ("Any",), ("str",), ("list", TYPE), ("dict",), ("literal", VALUES), ("union", TYPES),
# ("object", {NAME: TYPE}, REQUIRED).
ANY = ("Any",)
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def type_of(schema, depth=0):
    if not isinstance(schema, dict) or depth > TYPE_DEPTH_MAX or "$ref" in schema or "allOf" in schema:
        return ANY
    if "const" in schema or isinstance(schema.get("enum"), list):
        return literal_of([schema["const"]] if "const" in schema else schema["enum"])
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            return union_of([type_of(one, depth + 1) for one in schema[word]])
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = dict.fromkeys(one for one in kind[:KINDS_MAX] if isinstance(one, str))
        return union_of([type_of({**schema, "type": one}, depth + 1) for one in kinds])
    if kind == "array":
        return ("list", type_of(schema.get("items"), depth + 1))
    if kind == "object":
        members = properties_of(schema)
        return (
            ("object", {name: type_of(one, depth + 1) for name, one in members.items()}, required_of(schema))
            if members
            else ("dict",)
        )
    return (PLAIN[kind],) if isinstance(kind, str) and kind in PLAIN else ANY


def literal_of(values):
    good = all(value is None or isinstance(value, (str, int)) for value in values)
    return ("literal", values) if good and values else ANY


def union_of(types):
    return ANY if not types or ANY in types else types[0] if len(types) == 1 else ("union", types)


def properties_of(schema):
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def required_of(schema):
    found = schema.get("required") if isinstance(schema, dict) else None
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()


def typing_type(type_):
    """As typing has it: for __annotations__."""
    import typing

    kind = type_[0]
    if kind == "list":
        return typing.List[typing_type(type_[1])]
    if kind == "literal":
        return typing.Literal[tuple(type_[1])]
    if kind == "union":
        return typing.Union[tuple(map(typing_type, type_[1]))]
    plain = {"str": str, "int": int, "float": float, "bool": bool, "None": type(None)}
    return plain.get(kind) or (typing.Any if kind == "Any" else typing.Dict[str, typing.Any])


# --- the functions --------------------------------------------------------------------------------


class Function:
    """A tool."""

    def __init__(self, tool, path, module):
        self.__name__ = path.rpartition(".")[2]
        self.__qualname__ = path
        self.__module__ = module
        self.tool = tool["name"]
        self.description = tool.get("description") if isinstance(tool.get("description"), str) else ""
        self.__doc__ = self.description or None
        self.input = tool.get("inputSchema") if isinstance(tool.get("inputSchema"), dict) else {}
        self.output = tool.get("outputSchema")
        self.order = tuple(properties_of(self.input))

    def __call__(self, /, *positional, **named):
        return call(self.tool, **self.bind(positional, named))

    async def aio(self, /, *positional, **named):
        """The same for asyncio."""
        return await acall(self.tool, **self.bind(positional, named))

    def __get__(self, instance, owner=None):  # inspect takes it for a function then
        return self

    def __repr__(self):
        return f"<tool {self.tool}>"

    def __reduce__(self):
        return self.__qualname__

    def bind(self, positional, named):
        if len(positional) > len(self.order):
            raise TypeError(f"{self.tool}() takes {len(self.order)} arguments but {len(positional)} were given")
        arguments = dict(zip(self.order, positional))
        for name in arguments:
            if name in named:
                raise TypeError(f"{self.tool}() got two values for the argument {name!r}")
        arguments.update(named)
        required = required_of(self.input)
        missing = [name for name in self.order if name in required and name not in arguments]
        if missing:
            raise TypeError(f"{self.tool}() lacks the argument {missing[0]!r}; describe({self.tool!r}) shows them")
        return arguments

    def parameters(self):
        """[(name, type, is required, is passed by keyword only)]; others are passed by **."""
        import keyword

        required, found, had_optional, by_keyword = required_of(self.input), [], False, False
        for name, schema in properties_of(self.input).items():
            if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name.startswith("__"):
                by_keyword = True  # its place among the positional ones is taken
                continue
            by_keyword = by_keyword or (had_optional and name in required)
            had_optional = had_optional or name not in required
            found.append((name, type_of(schema), name in required, by_keyword))
        return found

    def takes_others(self):
        return self.input.get("additionalProperties") is not False or len(self.parameters()) < len(self.order)

    @property
    def __annotations__(self):
        found = {name: typing_type(type_) for name, type_, _, _ in self.parameters()}
        return {**found, "return": typing_type(type_of(self.output))}

    @property
    def __signature__(self):
        from inspect import Parameter, Signature

        types, listed = self.__annotations__, []
        for name, _, is_required, by_keyword in self.parameters():
            kind = Parameter.KEYWORD_ONLY if by_keyword else Parameter.POSITIONAL_OR_KEYWORD
            default = Parameter.empty if is_required else ...
            listed.append(Parameter(name, kind, default=default, annotation=types[name]))
        if self.takes_others():
            listed.append(Parameter(unused("arguments", types), Parameter.VAR_KEYWORD))
        return Signature(listed, return_annotation=types["return"])


class Namespace:
    """The tools of one server."""

    def __init__(self, name):
        self.__name__ = name

    def __repr__(self):
        return f"<tools of {self.__name__}: {', '.join(functions_in(self))}>"

    def __getattr__(self, name):
        raise AttributeError(f"{self.__name__} has no tool {name!r}{hint(name, functions_in(self))}")


def functions_in(namespace):
    return [name for name, value in vars(namespace).items() if isinstance(value, Function)]


def hint(name, names):
    import difflib

    close = difflib.get_close_matches(name, names, 1)
    return f"; is it {close[0]!r}?" if close else "; tools.describe() lists them"


def unused(name, names):
    while name in names:
        name += "_"
    return name


# --- the catalogue --------------------------------------------------------------------------------


class Catalogue:
    def __init__(self, tools, names, module):
        self.top = {}  # name in code: Function or Namespace
        self.functions = {}  # name in tools.json: Function
        for tool, path in zip(tools, names):
            server, dot, name = path.partition(".")
            self.functions[tool["name"]] = function = Function(tool, path, module)
            if dot:
                setattr(self.top.setdefault(server, Namespace(server)), name, function)
            else:
                self.top[path] = function

    def find(self, name):
        listed = list(self.functions.values())
        for function in (*(f for f in listed if f.tool == name), *(f for f in listed if f.__qualname__ == name)):
            return function
        raise ToolError(f"there is no tool {name!r}{hint(str(name), list(self.functions))}", name)


loaded = (None, None)  # what the file was, and the Catalogue


def catalogue():
    """The file's; read again when it is another one: that of a later cell."""
    global loaded
    try:
        status = os.stat(FILE)
        was = (status.st_mtime_ns, status.st_size, status.st_ino)
        if loaded[0] != was:
            with open(FILE, "rb") as file:
                found = parse(file.read())
            loaded = (was, Catalogue(found["tools"], found["names"], __name__))
    except FileNotFoundError:
        return Catalogue([], [], __name__)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ToolError(f"'{FILE}' can't be read: {type(problem).__name__}: {problem}") from None
    return loaded[1]


# --- text -----------------------------------------------------------------------------------------


def clean(text):
    """No control characters and nothing that changes the direction of text."""
    shown = (c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    return "".join(shown)


def cut(parts):
    """The text of the parts, which are made only until it is too long."""
    text = ""
    for part in parts:
        text += part
        if len(text) > PART_MAX:
            return f"{text[:PART_MAX]}\n(cut after {PART_MAX} characters)"
    return text


def summary(function):
    line = clean(function.description.strip().partition("\n")[0])
    return line if len(line) <= SUMMARY_MAX else line[: SUMMARY_MAX - 3] + "..."


def describe(name=None):
    """The tools, one line each; or the signature, the description and the schema of one."""
    if name is not None:
        return describe_one(catalogue().find(name))
    functions = list(catalogue().functions.values())
    lines = [f"{len(functions)} tools.  tools.describe(NAME) shows how to call one of them."]
    for server in dict.fromkeys(f.__qualname__.rpartition(".")[0] for f in functions):
        lines += ["", f"from tools import {server}" if server else "import tools"]
        for f in functions:
            if f.__qualname__.rpartition(".")[0] == server:
                lines.append(f"  {f.__qualname__ if server else 'tools.' + f.__name__}  {summary(f)}".rstrip())
    return "\n".join(lines) + "\n"


def describe_one(function):
    text = f"{function.__qualname__}{signature_text(function, Speller())}\n"
    if function.description:
        text += f"\n{clean(cut([function.description]))}\n"
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False)
    for title, schema in (("arguments", function.input), ("result", function.output)):
        if schema:
            text += f"\nSchema of its {title}:\n{clean(cut(encoder.iterencode(schema)))}\n"
    return text


class Speller:
    """Writes types as text.  A name that a tool has, too, is written otherwise."""

    MODULES = {
        "b": ("str", "int", "float", "bool", "list", "dict", "staticmethod"),
        "t": ("Any", "Literal", "Union"),
        "x": ("NotRequired", "TypedDict"),
    }

    def __init__(self, taken=(), defines=False):
        self.taken, self.defines, self.defined, self.size = taken, defines, [], 0

    def word(self, name):
        if name not in self.taken:
            return name
        module = [module for module, names in self.MODULES.items() if name in names]
        return f"__{module[0]}__.{name}" if module else name

    def imports(self):
        text = ""
        for module, full in (("t", "typing"), ("x", "typing_extensions")):
            names = [name for name in self.MODULES[module] if name not in self.taken]
            text += f"from {full} import {', '.join(names)}\n" if names else ""
        return text

    def spell(self, type_):
        kind = type_[0]
        if kind == "list":
            return f"{self.word('list')}[{self.spell(type_[1])}]"
        if kind == "literal":
            return f"{self.word('Literal')}[{', '.join(dict.fromkeys(map(ascii, type_[1])))}]"
        if kind == "union":
            return f"{self.word('Union')}[{', '.join(dict.fromkeys(map(self.spell, type_[1])))}]"
        if kind == "object" and self.defines:
            return self.define(type_)
        if kind in ("object", "dict"):
            return f"{self.word('dict')}[{self.word('str')}, {self.word('Any')}]"
        return self.word(kind)

    def define(self, type_):
        members = []
        for name, member in type_[1].items():
            text = self.spell(member)
            text = text if name in type_[2] else f"{self.word('NotRequired')}[{text}]"
            members.append(f"{ascii(name)}: {text}")
        if self.size + sum(map(len, members)) > STUB_MAX:
            return self.spell(("dict",))
        name = f"__Object{len(self.defined) + 1}__"
        self.defined.append(f'{name} = {self.word("TypedDict")}("{name}", {{{", ".join(members)}}})\n')
        self.size += len(self.defined[-1])
        return name


def signature_text(function, speller):
    listed, parameters = [], function.parameters()
    for name, type_, is_required, by_keyword in parameters:
        if by_keyword and "*" not in listed:
            listed.append("*")
        listed.append(f"{name}: {speller.spell(type_)}{'' if is_required else ' = ...'}")
    if function.takes_others():
        rest = unused("arguments", [one[0] for one in parameters])
        listed.append(f"**{rest}: {speller.word('Any')}")
    text = f"({', '.join(listed)}) -> {speller.spell(type_of(function.output))}"
    return text if len(text) <= PART_MAX else f"(**arguments: {speller.word('Any')}) -> {speller.word('Any')}"


STUB = '''\
# The tools of this program.  Each has .aio(...), too, for asyncio.
import builtins as __b__
import typing as __t__
import typing_extensions as __x__
{imports}
__P__ = __x__.ParamSpec("__P__")
__R__ = __t__.TypeVar("__R__", covariant=True)
class __Tool__(__t__.Generic[__P__, __R__]):
    def __call__(self, *args: __P__.args, **kwargs: __P__.kwargs) -> __R__: ...
    async def aio(self, *args: __P__.args, **kwargs: __P__.kwargs) -> __R__: ...
def __tool__(function: __t__.Callable[__P__, __R__]) -> __Tool__[__P__, __R__]: ...

class ToolError(__b__.Exception):
    tool: __t__.Optional[__b__.str]
def call(name: __b__.str, /, **arguments: __t__.Any) -> __t__.Any: ...
async def acall(name: __b__.str, /, **arguments: __t__.Any) -> __t__.Any: ...
def describe(name: __t__.Optional[__b__.str] = ...) -> __b__.str: ...
def stub() -> __b__.str: ...
def main() -> None: ...
'''


def stub():
    """A .pyi of every tool."""
    found = catalogue()
    taken = set(found.top)
    for value in found.top.values():
        taken.update(functions_in(value) if isinstance(value, Namespace) else ())
    speller, body = Speller(taken, True), []
    for name, value in found.top.items():
        body.append("")
        if isinstance(value, Function):
            body.append(function_text(value, speller, ""))
            continue
        body.append(f"class {name}:")
        for member in functions_in(value):
            function = vars(value)[member]
            body.append(f"    @{speller.word('staticmethod')}\n" + function_text(function, speller, "    "))
    return STUB.format(imports=speller.imports()) + "".join(["\n", *speller.defined]) + "\n".join(body) + "\n"


def function_text(function, speller, indent):
    if speller.size > STUB_MAX:
        any_ = speller.word("Any")
        return f"{indent}@__tool__\n{indent}def {function.__name__}(**arguments: {any_}) -> {any_}: ...  # cut: the stub is long"
    text = whole_text(function, speller, indent)
    speller.size += len(text)
    return text


def whole_text(function, speller, indent):
    head = f"{indent}@__tool__\n{indent}def {function.__name__}{signature_text(function, speller)}:"
    if not function.description:
        return f"{head} ..."
    text = clean(cut([function.description]).replace("\\", "\\\\").replace('"', '\\"')).strip()
    lines = "\n".join(f"{indent}    {line}".rstrip() for line in text.split("\n"))
    return f'{head}\n{indent}    """{lines.strip()}"""'


def main():
    sys.stdout.buffer.write(stub().encode("utf-8", "backslashreplace"))


class Module(type(sys)):
    """Names of tools come first: what this file uses itself (json, os) is not in their way."""

    def __getattribute__(self, name):
        if name in OWN:
            return self if name == "tools" else super().__getattribute__(name)
        if name.startswith("__") and name in globals():
            return super().__getattribute__(name)
        top = catalogue().top
        if name == "__all__":
            return [*OWN[:-1], *top]
        if name in top:
            return top[name]
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise AttributeError(f"there is no tool {name!r}{hint(name, list(top))}")

    def __dir__(self):
        return [*OWN, *catalogue().top]


if __name__ == "__main__":
    main()
else:
    sys.modules[__name__].__class__ = Module
