# SPDX-License-Identifier: Apache-2.0
# The Python of a session with "context": "repl": python3 ... -c LINE [MODULE...]
# LINE reads this text from descriptor 3 and executes it: plan_launcher.c.
# Descriptor 3 then carries frames in both directions: one byte for the kind, four for the size
# (little endian), the data.  To us come the parts of a cell, its code last; we answer with what the
# cell shows, its value or its exception, and its end: repl_channel.h lists the kinds.
# The code of a cell runs in this process, so whatever we send is data and no evidence.
import sys

main_dict = {"__name__": "__main__", "__doc__": None, "__builtins__": __builtins__}

import ast
import builtins
import gc
import io
import linecache
import os
import re
import signal
import tokenize
import traceback
import types
import warnings
from importlib import invalidate_caches
from itertools import islice
from json import dumps

CHANNEL = 3
VALUE_MAX = 60 << 10  # bytes; all limits are below those of repl_channel.h
ITEMS_MAX = 10000  # of a list, in its repr
MESSAGE_MAX = 16 << 10
TRACEBACK_MAX = 60 << 10
DISPLAYS_MAX = 32
DISPLAY_MAX = 4 << 20
DISPLAYS_BYTES_MAX = 8 << 20
FRAME_ROOM = 4096  # for the head of a frame and the type of a display
SOURCES_MAX = 4 << 20  # of old cells, for tracebacks
NOT_SHOWN = "Figure.* is non-interactive, and thus cannot be shown|FigureCanvasAgg is non-interactive.*"
IS_MODULE_COROUTINE = 0x80  # CO_COROUTINE: inspect

own_globals = globals()


# --- the channel -----------------------------------------------------------------------------


class ChannelEnd(BaseException):
    pass


def read_exactly(size):
    parts = []
    while size > 0:
        part = os.read(CHANNEL, min(size, 1 << 20))
        if not part:
            raise ChannelEnd
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_frame():
    head = read_exactly(5)
    return head[:1], read_exactly(int.from_bytes(head[1:], "little"))


def open_output():
    """
    It has room for any frame.  So write() copies the frame or raises, and an interrupt of flush()
    leaves exactly what is not sent.  os.write() would not say how much that is.
    """
    return io.BufferedWriter(io.FileIO(CHANNEL, "w", closefd=False), DISPLAY_MAX + FRAME_ROOM)


def send(kind, data=b""):
    if is_child:
        return
    try:
        output.flush()  # what an interrupt has left
        output.write(kind + len(data).to_bytes(4, "little") + data)
        output.flush()
    except OSError as error:
        if error.errno is None:  # a signal handler of the program has raised it
            raise
        raise ChannelEnd from None  # the cell has closed it, or the session has ended


def to_bytes(text, limit):
    """UTF-8 without NUL, at most `limit` bytes; lone surrogates are escaped."""
    data = text[:limit].encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00")
    if len(text) <= limit and len(data) <= limit:
        return data
    cut = data[: limit - 3].decode("utf-8", "ignore")
    return cut.encode() + "…".encode()


# --- what a cell shows -----------------------------------------------------------------------


class Displays:
    """Of one cell."""

    def __init__(self):
        self.count = self.size = self.dropped = 0

    def add(self, mime, data):
        if isinstance(data, str):
            data = data.encode("utf-8", "backslashreplace")
        size = len(data)
        if self.count >= DISPLAYS_MAX or size > DISPLAY_MAX or self.size + size > DISPLAYS_BYTES_MAX:
            self.dropped += 1
            return
        self.count += 1
        self.size += size
        send(b"D", mime.encode() + b"\0" + bytes(data))


# The methods that IPython has made customary.
METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
}
BUNDLE_TYPES = set(METHODS.values())


def call_method(value, name):
    """What value.name() returns; None where there is no such method, or it fails."""
    if isinstance(value, type):
        return None
    try:
        method = getattr(value, name, None)
        made = method() if callable(method) else None
        return made[0] if isinstance(made, tuple) and made else made
    except Exception:
        return None


def rich_forms(value):
    """Pairs of a media type and its data."""
    bundle = call_method(value, "_repr_mimebundle_")
    if isinstance(bundle, dict):
        yield from ((m, d) for m, d in bundle.items() if m in BUNDLE_TYPES)
    for name, mime in METHODS.items():
        if not (isinstance(bundle, dict) and mime in bundle):
            yield mime, call_method(value, name)


def show_rich(value):
    """False: the value has only its repr."""
    is_shown = False
    for mime, data in rich_forms(value):
        if mime == "application/json" and data is not None and not isinstance(data, (str, bytes)):
            data = dumps(data)
        if isinstance(data, (str, bytes, bytearray)):
            displays.add(mime, data)
            is_shown = True
    return is_shown


def is_figure(value):
    figure = sys.modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, figure.Figure)


def show_figure(figure):
    image = io.BytesIO()
    figure.savefig(image, format="png", bbox_inches="tight")
    displays.add("image/png", image.getvalue())


def show_open_figures():
    """They are closed then, so that each is shown once."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not hasattr(pyplot, "get_fignums"):
        return
    try:
        for number in pyplot.get_fignums():
            show_figure(pyplot.figure(number))
    finally:
        pyplot.close("all")


def display(*values):
    """Shows the values: rich forms as displays of the cell, others on standard output."""
    for value in values:
        if is_figure(value):
            show_figure(value)
        elif not show_rich(value):
            print(shorten(value))


def shorten(value):
    """repr(value); of a long list only its beginning, which would otherwise take very long."""
    kind = type(value)
    if kind in (list, tuple) and len(value) > ITEMS_MAX:
        return repr(value[:ITEMS_MAX])[:-1] + f", … {len(value) - ITEMS_MAX} more" + repr(kind())[-1]
    if kind is dict and len(value) > ITEMS_MAX:
        return repr(dict(islice(value.items(), ITEMS_MAX)))[:-1] + f", … {len(value) - ITEMS_MAX} more}}"
    if kind in (set, frozenset) and len(value) > ITEMS_MAX:
        return repr(kind(islice(value, ITEMS_MAX))) + f" … {len(value) - ITEMS_MAX} more"
    if kind in (str, bytes, bytearray) and len(value) > VALUE_MAX:
        return repr(value[:VALUE_MAX]) + "…"
    return repr(value)


def send_value(value):
    main_dict["_"] = value
    text = shorten(value)
    if not is_figure(value):
        show_rich(value)
    send(b"V", to_bytes(text, VALUE_MAX))


# --- commands, as notebooks have them --------------------------------------------------------

TARGET = r"""(?:(?!\s)(?:[\w.,\[\] ]|'[^'\n]*'|"[^"\n]*")+= *)?"""
COMMAND_LINE = re.compile(rf"(\s*{TARGET})(!!?|%|(?=pip3? install ))([^=].*)", re.DOTALL)
DEPTHS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
IN_COMMAND = re.compile(r"\$?\{([^{}]+)\}|\$([^\W\d]\w*)")
STOP_S = 0.25  # after an interrupt; the interpreter itself has two seconds

# What to write in the place of other magics.
INSTEAD = {
    "cd": "os.chdir()",
    "conda": "%pip install",
    "env": "os.environ",
    "run": "exec(open(FILE).read())",
    "time": "time.perf_counter()",
    "timeit": "timeit.timeit()",
    "writefile": "open(FILE, 'w').write(TEXT)",
}


class UsageError(Exception):
    """Is shown as one line."""


def translate_cell(code):
    head, _, script = code.lstrip().partition("\n")
    if not head.startswith("%%"):
        return code
    return f"__script__({head[2:].strip()!r}, {script!r})"


def translate_line(lines, at):
    """False: it is no command.  A backslash continues one; the number of lines stays."""
    end = at + 1
    while end < len(lines) and lines[end - 1].rstrip("\r").endswith("\\"):
        end += 1
    found = COMMAND_LINE.match("\n".join(lines[at:end])) if at < len(lines) else None
    if not found:
        return False
    before, mark, command = found.groups()
    call = "__magic__" if mark in ("", "%") else "__lines__" if mark == "!!" or before.strip() else "__shell__"
    lines[at:end] = [f"{before}{call}({command.strip()!r})"] + [""] * (end - at - 1)
    return True


def translate_lines(lines):
    """
    Translates the commands among the lines that begin a statement: no Python can begin so.  The
    tokenizer asks for a line when it is through with the one before, so its last token says
    whether the next line begins a statement.
    """
    at = depth = 0
    begins = True

    def read_line():
        nonlocal at, begins
        if begins:
            translate_line(lines, at)
        at, begins = at + 1, False
        return lines[at - 1] + "\n" if at <= len(lines) else ""

    try:
        for token in tokenize.generate_tokens(read_line):
            depth += DEPTHS.get(token.string, 0) if token.type == tokenize.OP else 0
            begins = depth == 0 and token.type in (tokenize.NEWLINE, tokenize.NL)
    except Exception:
        pass  # the compiler says what is wrong


def expand(command, frame):
    """{expression} and $name of the program; all else is the shell's."""

    def value_of(found):
        expression, name = found.groups()
        try:
            if name or not found[0].startswith("$"):
                value = eval(expression or name, frame.f_globals, frame.f_locals)
                return found[0] if callable(value) else str(value)
        except Exception:
            pass
        return found[0]

    return IN_COMMAND.sub(value_of, command)


def stop_group(process):
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(STOP_S)
        except Exception:
            pass  # it has ended, or needs longer


def run_command(argv, **streams):
    """What it wrote to a pipe.  An interrupt ends all its processes: one that comes before they are known waits."""
    import subprocess
    import threading

    flush_streams()
    is_main = threading.current_thread() is threading.main_thread()
    waiting = []
    handler = signal.signal(signal.SIGINT, lambda *_: waiting.append(True)) if is_main else None
    try:
        with subprocess.Popen(argv, start_new_session=True, **streams) as process:
            try:
                if is_main:
                    signal.signal(signal.SIGINT, handler)
                if waiting:
                    raise KeyboardInterrupt
                text = process.communicate()[0]
            except KeyboardInterrupt:
                stop_group(process)
                raise KeyboardInterrupt from None  # without the frames of subprocess
    finally:
        if is_main:
            signal.signal(signal.SIGINT, handler)
    main_dict["_exit_code"] = process.returncode
    invalidate_caches()  # it may have installed a module
    return text


def run_shell(command):
    run_command(["/bin/sh", "-c", expand(command, sys._getframe(1))])


def run_for_lines(command):
    argv = ["/bin/sh", "-c", expand(command, sys._getframe(1))]
    return run_command(argv, stdout=-1, stderr=-2, text=True, errors="replace").splitlines()  # PIPE, STDOUT


def run_script(head, script):
    if head not in ("bash", "sh"):
        raise_usage("%%", head)
    run_command([head, "-c", script])


def run_magic(line):
    name, _, rest = line.partition(" ")
    if name in ("pip", "pip3"):
        run_command(["/bin/sh", "-c", f'"$0" -m pip {expand(rest, sys._getframe(1))}', sys.executable])
    elif name != "matplotlib":  # figures are shown without it
        raise_usage("%", line)


def raise_usage(mark, line):
    name = line.split(" ")[0]
    instead = INSTEAD.get(name, "Python, or !COMMAND")
    raise UsageError(f"{mark}{name} is not available here; write {instead} instead")


# --- a cell ----------------------------------------------------------------------------------


class Sources:
    """The lines of cells, where tracebacks find them; the oldest are forgotten."""

    def __init__(self):
        self.sizes = {}
        self.total = 0

    def add(self, name, code):
        lines = code.splitlines(True)
        linecache.cache[name] = (len(code), None, lines, name)
        self.sizes[name] = len(code)
        self.total += len(code)
        while self.total > SOURCES_MAX and len(self.sizes) > 1:
            oldest = next(iter(self.sizes))
            linecache.cache.pop(oldest, None)
            self.total -= self.sizes.pop(oldest)


FUTURE_FLAGS = 0
for feature in __import__("__future__").all_feature_names:
    FUTURE_FLAGS |= getattr(__import__("__future__"), feature).compiler_flag
kept_flags = 0  # of `from __future__ import` in earlier cells


def compile_part(tree, name, mode):
    global kept_flags
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | kept_flags
    code = compile(tree, name, mode, flags=flags, dont_inherit=True)
    kept_flags |= code.co_flags & FUTURE_FLAGS
    return code


def ends_with_semicolon(code, last):
    """As in notebooks, `f();` shows no value."""
    lines = code.splitlines()[last.end_lineno - 1 :]
    rest = lines[0].encode()[last.end_col_offset :].decode() if lines else ""
    return rest.lstrip(" \t)").startswith(";")


def parse_cell(code, name):
    """The text that Python compiles, and its tree.  Only a text that Python refuses has commands."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | kept_flags
    text = translate_cell(code)
    try:
        return text, compile(text, name, "exec", flags=flags, dont_inherit=True)
    except SyntaxError:
        lines = text.split("\n")
        translate_lines(lines)
        text = "\n".join(lines)
    return text, compile(text, name, "exec", flags=flags, dont_inherit=True)


def compile_cell(code, name):
    """Its statements, and the expression that ends it; either may be None."""
    text, tree = parse_cell(code, name)
    last = tree.body[-1] if tree.body else None
    expression = None
    if isinstance(last, ast.Expr) and not ends_with_semicolon(text, last):
        tree.body.pop()
        expression = ast.Expression(last.value)
    body = compile_part(tree, name, "exec") if tree.body else None
    return body, compile_part(expression, name, "eval") if expression else None


loop = None


def run_async(coroutine):
    """In one loop for all cells, so that what a cell begins can be awaited in another."""
    global loop
    import asyncio

    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except asyncio.CancelledError:
                pass
        raise KeyboardInterrupt from None  # without the frames of the loop


def awaits(code):
    return code is not None and code.co_flags & IS_MODULE_COROUTINE


async def evaluate_async(parts):
    made = None
    for part in parts:
        made = eval(part, main_dict)
        if awaits(part):
            made = await made
    return made


def evaluate(body, expression):
    """The value of the expression, or None."""
    parts = [part for part in (body, expression) if part]
    if awaits(body) or awaits(expression):
        made = run_async(evaluate_async(parts))
        return made if expression else None
    if body:
        eval(body, main_dict)
    return eval(expression, main_dict) if expression else None


def execute(code, name):
    value = evaluate(*compile_cell(code, name))
    if value is not None:
        send_value(value)
    show_open_figures()


def without_own_frames(trace):
    """Ours, and asyncio's, are above the cell's; of an interrupt, a command and input() the last ones are, too."""
    first = trace
    while first and not first.tb_frame.f_code.co_filename.startswith("<cell "):
        first = first.tb_next
    while trace and trace.tb_frame.f_globals is own_globals:
        trace = trace.tb_next
    at = last = trace = first or trace
    while at:
        if at.tb_frame.f_globals is not own_globals:
            last = at
        at = at.tb_next
    if last:
        last.tb_next = None
    return trace


def trim(error):
    """Our frames are above those of the cell, and in a chain of exceptions perhaps in each."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = without_own_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def text_of(error):
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"


def send_exception(error):
    trim(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    try:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:
        trace = None
    if trace is None or isinstance(error, UsageError):
        trace = f"{type(error).__name__}: {text_of(error)}\n"
    try:
        if sys.excepthook is sys.__excepthook__:
            sys.stderr.write(trace)
        else:
            sys.excepthook(type(error), error, error.__traceback__)
    except Exception:
        pass  # the program has closed or replaced it
    parts = (type(error).__name__, text_of(error), trace)
    limits = (256, MESSAGE_MAX, TRACEBACK_MAX)
    send(b"X", b"\0".join(to_bytes(part, limit) for part, limit in zip(parts, limits)))


def refuse_input(prompt="", /):
    raise EOFError("input() is not available in a session: pass the values in the code, or as the cell's stdin")


def set_input(data):
    if data is None:
        builtins.input = refuse_input
        if sys.__stdin__.closed:  # exit() does that
            sys.__stdin__ = open(0, closefd=False)
        sys.stdin = sys.__stdin__
        return
    builtins.input = real_input
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="surrogateescape")


def write_file(data, mode):
    path, content = data.split(b"\0", 1)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)


def flush_streams():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed, or no stream at all


def on_interrupt(number, frame):
    if is_running:
        raise KeyboardInterrupt


def run_guarded(act):
    """None, or the exception that ended it.  Only here an interrupt is an exception."""
    global is_running
    try:
        is_running = True
        act()
        is_running = False
    except BaseException as error:
        is_running = False
        return error
    return None


def exit_status(error):
    """Of SystemExit.  As at the end of a process, a text is written."""
    code = error.code
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    run_guarded(lambda: print(code, file=sys.stderr))
    return 1


def end_by(error):
    """
    Sends it, and returns the exit status of the cell.  SystemExit ends the cell and not the
    interpreter, so that variables stay.
    """
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        status = exit_status(error)
        text = to_bytes(str(status), MESSAGE_MAX)
        run_guarded(lambda: send(b"X", b"SystemExit\0" + text + b"\0"))
        return status
    if run_guarded(lambda: send_exception(error)) is not None:
        run_guarded(lambda: send(b"X", type(error).__name__.encode() + b"\0\0"))
    return 1


def run_cell(number, parts, code):
    global displays
    displays = Displays()
    name = f"<cell {number}>"
    set_input(parts.get("stdin"))
    sys.argv[:] = ["", *parts["args"]]
    text = code.decode("utf-8", "surrogateescape")
    sources.add(name, text)

    def act():
        send(b"B", number.to_bytes(4, "little"))  # an interrupt that comes from now on has an effect
        for data, mode in parts["files"]:
            write_file(data, mode)
        execute(text, name)

    status = end_by(run_guarded(act))
    flush_streams()
    if is_child:  # the cell has forked it, and it is no interpreter of the session
        os._exit(status)
    send(b"E", number.to_bytes(4, "little") + bytes([status, min(displays.dropped, 255)]))


def take_cell():
    """The parts of the next cell; the frame with its code is the last one."""
    parts = {"args": [], "files": []}
    while True:
        kind, data = read_frame()
        if kind == b"a":
            parts["args"].append(os.fsdecode(data))
        elif kind in (b"f", b"F"):
            parts["files"].append((data, 0o644 if kind == b"f" else 0o755))
        elif kind == b"i":
            parts["stdin"] = data
        elif kind == b"c":
            return int.from_bytes(data[:4], "little"), parts, data[4:]


def on_fork():
    """The channel is the interpreter's, not its children's."""
    global is_child
    is_child = True
    output.raw.close()  # what the parent has not sent is not the child's
    try:
        os.close(CHANNEL)
    except OSError:
        pass


# --- the start -------------------------------------------------------------------------------


def preload(names):
    place = sys.path[0] == "" and sys.path.pop(0) == ""  # the working directory is the program's
    for name in names:
        try:
            __import__(name)
        except ImportError:  # this host's Python is a smaller one
            pass
    if place:
        sys.path.insert(0, "")


def make_main():
    global main_dict
    main = types.ModuleType("__main__")
    main.__dict__.update(main_dict)
    sys.modules["__main__"] = main
    main_dict = main.__dict__


def prepare():
    os.set_inheritable(CHANNEL, False)
    os.environ.setdefault("MPLBACKEND", "agg")
    preload(sys.argv[1:])
    warnings.filterwarnings("ignore", message=NOT_SHOWN)
    sys.stdout.reconfigure(line_buffering=True)
    getattr(linecache, "_interactive_cache", {}).clear()
    sys.orig_argv[sys.orig_argv.index("-c") :] = []
    builtins.display = display
    builtins.__shell__, builtins.__lines__ = run_shell, run_for_lines
    builtins.__script__, builtins.__magic__ = run_script, run_magic
    os.register_at_fork(after_in_child=on_fork)
    signal.signal(signal.SIGINT, on_interrupt)
    make_main()
    gc.collect()
    gc.freeze()


is_child = is_running = False
output = open_output()
real_input = builtins.input
sources = Sources()
displays = Displays()
prepare()
send(b"R")
try:
    while True:
        run_cell(*take_cell())
except ChannelEnd:
    flush_streams()
    os._exit(1)
