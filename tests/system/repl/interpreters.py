# SPDX-License-Identifier: Apache-2.0
"""The interpreters of sessions alone, outside of any jail: what they answer on their channel."""

import os
import select
import shutil
import signal
import socket
import struct
import subprocess

from harness import *  # noqa: F403

LAUNCHERS = os.path.join(os.path.dirname(os.path.dirname(os.environ["CEJAIL"])), "share/cejail/profiles/launchers")
PYTHON = (["/usr/bin/python3", "-s", "-B", "-c", "exec(__import__('os').read(3, 65536))"], "python-repl.py")
NODE_LINE = "{ const b = Buffer.alloc(65536); require('vm').runInThisContext(b.toString('utf8', 0, require('fs').readSync(3, b))) }"
NODE = (["node", "-e", NODE_LINE], "node-repl.js")


class Cell:
    """What one cell answered."""

    def __init__(self):
        self.displays, self.value, self.exception, self.end, self.output = [], None, None, None, ""
        self.begun = None  # its number, as the interpreter says
        self.status = None  # of an interpreter that has ended


class Interpreter:
    def __init__(self, kind, *modules):
        argv, script = kind
        if not shutil.which(argv[0]):
            raise Skip(f"no {argv[0]}")
        with open(os.path.join(LAUNCHERS, script), "rb") as file:
            text = file.read()
        true(len(text) < 65536, f"{script} has {len(text)} bytes")
        self.near, far = socket.socketpair()
        self.near.settimeout(60 * SLOW)
        self.near.sendall(text)
        command = ["/bin/sh", "-c", f'exec 3<&{far.fileno()} "$@"', "sh", *argv, *modules]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[far.fileno()])
        far.close()
        self.number, self.bytes, self.said = 0, b"", b""
        self.ready = self.frame()

    def __enter__(self):
        equal(self.ready, (b"R", b""), "the first frame")
        return self

    def __exit__(self, *unused):
        self.near.close()
        self.process.kill()
        self.process.communicate()

    def frame(self):
        while len(self.bytes) < 5 or len(self.bytes) < 5 + struct.unpack("<I", self.bytes[1:5])[0]:
            try:
                while not select.select([self.near], [], [], 0.05)[0]:
                    self.drain()
                got = self.near.recv(65536)
            except ConnectionResetError:
                return None
            if not got:
                return None
            self.bytes += got
        size = struct.unpack("<I", self.bytes[1:5])[0]
        frame, self.bytes = (self.bytes[:1], self.bytes[5 : 5 + size]), self.bytes[5 + size :]
        return frame

    def send(self, kind, data):
        self.near.sendall(kind + struct.pack("<I", len(data)) + data)

    def drain(self):
        """What is in the pipes: at the end of a cell, all of it."""
        for pipe in (self.process.stdout, self.process.stderr):
            while select.select([pipe], [], [], 0)[0]:
                part = os.read(pipe.fileno(), 65536)
                if not part:
                    break
                self.said += part

    def cell(self, code, args=(), files=(), stdin=None, interrupted_by=None, interrupted_at_begin=False, interrupted_in_display=False, shown_at=None):
        self.number += 1
        for arg in args:
            self.send(b"a", arg.encode())
        for path, content in files:
            self.send(b"f", path.encode() + b"\0" + content)
        if stdin is not None:
            self.send(b"i", stdin)
        self.send(b"c", struct.pack("<I", self.number) + code.encode())
        if interrupted_by:
            wait_until(lambda: os.path.exists(interrupted_by), "the cell")
            self.process.send_signal(signal.SIGINT)
        cell = Cell()
        while cell.end is None:
            frame = self.frame()
            if frame is None:
                cell.status = await_exit(self.process, 60)
                break
            kind, data = frame
            if kind == b"B":
                equal((cell.begun, cell.value, cell.exception, cell.displays), (None, None, None, []), "what comes before the begin")
                cell.begun = struct.unpack("<I", data)[0]
                if interrupted_at_begin:
                    self.process.send_signal(signal.SIGINT)
                if interrupted_in_display:
                    self.interrupt_in_display(shown_at)
            elif kind == b"D":
                cell.displays.append(tuple(data.split(b"\0", 1)))
            elif kind == b"V":
                cell.value = data.decode()
            elif kind == b"X":
                cell.exception = [part.decode() for part in data.split(b"\0")]
            else:
                equal(kind, b"E", "the kind of a frame")
                cell.end = struct.unpack("<IBB", data)
                equal(cell.begun, self.number, "the begin of the cell")
                exit_code = cell.exception is not None if not cell.exception or cell.exception[0] not in ("SystemExit", "Exit") else int(cell.exception[1])
                equal(cell.end[:2], (self.number, exit_code), "the end of the cell")
        self.drain()
        cell.output, self.said = self.said.decode(errors="replace"), b""
        return cell

    def interrupt_in_display(self, shown_at):
        """
        The display is larger than the socket's buffer, so the rest of it is not written yet: or
        nothing, if the cell has shown it already.
        """
        is_shown = lambda: shown_at is not None and os.path.exists(shown_at)
        wait_until(lambda: self.bytes or select.select([self.near], [], [], 0)[0] or is_shown(), "the display")
        if not is_shown():
            self.bytes = self.bytes or self.near.recv(1)
            equal(self.bytes[:1], b"D", "the kind of a frame")
        self.process.send_signal(signal.SIGINT)
        wait_until(lambda: not self.is_pending(signal.SIGINT), "the interrupt to be taken")

    def is_pending(self, number):
        with open(f"/proc/{self.process.pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        return any(int(fields[field], 16) >> (number - 1) & 1 for field in ("SigPnd", "ShdPnd"))

    def value(self, code, **more):
        cell = self.cell(code, **more)
        equal(cell.exception, None, f"the exception of {code!r}")
        equal(cell.status, None, f"the exit status of the interpreter, which ended in {code!r} and wrote {cell.output[-300:]!r}")
        return cell.value


def both(act):
    """A test of each interpreter that is here."""
    for kind in (PYTHON, NODE):
        with Interpreter(kind) as i:
            act(i, kind is PYTHON)


@test("an interpreter keeps variables, and answers the value of the last expression")
def _():
    def act(i, is_python):
        equal(i.value("x = 40"), None if is_python else "40", "an assignment")
        equal(i.value("x + 2"), "42", "x + 2")
        equal(i.value("x = x + 1; x"), "41", "x")
        equal(i.value(""), None, "an empty cell")

    both(act)
    with Interpreter(PYTHON) as i:
        equal(i.value("x = 1\nx;"), None, "an expression with a semicolon")
        equal(i.value("!" + " " * 13 + ": éééééé"), None, "a command whose translation ends within a letter of it")
        equal((i.value("'a'"), i.value("_ + 'b'")), ("'a'", "'ab'"), "_")
    with Interpreter(NODE) as i:
        i.value("const a = 1; let b = 2; class C {}")
        equal(i.value("const a = 5; let b = 7; a + b"), "12", "declared again")


@test("an exception has its type, its message and a traceback without a frame of the interpreter's own")
def _():
    def act(i, is_python):
        code = "def f(n):\n    return 1 / n\nf(0)" if is_python else "function f() {\n  throw new TypeError('no') }\nf()"
        cell = i.cell(code)
        equal(cell.exception[:2], ["ZeroDivisionError", "division by zero"] if is_python else ["TypeError", "no"], "the exception")
        equal(cell.output.strip(), cell.exception[2].strip(), "standard error")
        frames = [line for line in cell.exception[2].splitlines() if "File " in line or " at " in line]
        equal(len(frames), 2, f"frames of {cell.exception[2]!r}")
        true(all("cell" in frame for frame in frames), f"frames: {frames}")
        cell = i.cell("1 +* 2")
        equal(cell.exception[0], "SyntaxError", "the exception")
        equal(i.value("3"), "3", "the next cell")

    both(act)
    with Interpreter(PYTHON) as i:
        cell = i.cell("try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('k') from e")
        true("direct cause" in cell.exception[2] and "<string>" not in cell.exception[2], cell.exception[2])
        cell = i.cell("def g(): return g()\ng()")
        equal(cell.exception[0], "RecursionError", "the exception")
        cell = i.cell("class A:\n    def __repr__(self): raise ValueError('no')\nA()")
        equal(cell.exception[:2], ["ValueError", "no"], "the exception of a repr")
        cell = i.cell("class E(Exception):\n    def __str__(self): 1 / 0\nraise E")
        equal(cell.exception[0], "E", "the exception")


@test("await stands at the top of a cell, and what one cell begins another can await")
def _():
    with Interpreter(PYTHON) as i:
        i.value("import asyncio\nt = asyncio.ensure_future(asyncio.sleep(0, 'done')) if False else None")
        equal(i.value("await asyncio.sleep(0)\n5"), "5", "a cell")
        i.value("async def f():\n    await asyncio.sleep(0)\n    return 6\nt = asyncio.get_running_loop().create_task(f()); await asyncio.sleep(0)")
        equal(i.value("await t"), "6", "another cell")
        cell = i.cell("async def g():\n    1 / 0\nawait g()")
        equal(cell.exception[2].count("File "), 2, f"frames of {cell.exception[2]!r}")
        equal(i.cell("asyncio.run(asyncio.sleep(0, 7))").value, "7", "asyncio.run")
    with Interpreter(NODE) as i:
        i.value("const p = new Promise(r => setTimeout(r, 1, 6)); undefined")
        equal(i.value("await p"), "6", "another cell")
        for code in ("import fs from 'fs'", "await import('fs')"):
            contains(i.cell(code).exception[1], "require()", f"the message of {code}")
        cell = i.cell("await Promise.reject(new Error('no'))")
        equal(cell.exception[:2], ["Error", "no"], "the exception")


@test("an interrupt ends the cell with an exception, and variables stay")
def _():
    def act(i, is_python):
        i.value("x = 1")
        with Folder() as f:
            if is_python:
                mark = "open(%r, 'w').close()\n"
                cells = [mark + code for code in ("while True: pass", "import time; time.sleep(600)", "import asyncio; await asyncio.sleep(600)")]
            else:
                # A timer writes the second mark: node can lose a signal that comes before the cell awaits.
                mark = "require('fs').writeFileSync(%r, '')"
                cells = [f"{mark}\nfor (;;);", f"await new Promise(() => setTimeout(() => {mark}, 10))"]
            for n, code in enumerate(cells):
                cell = i.cell(code % (f / str(n)), interrupted_by=f / str(n))
                equal(cell.exception[0], "KeyboardInterrupt" if is_python else "Interrupt", f"the exception of {code}")
                true("<string>" not in cell.output and "evalmachine" not in cell.output, f"standard error: {cell.output}")
        equal(i.value("x"), "1", "x")
        for _ in range(5):
            i.process.send_signal(signal.SIGINT)  # between two cells: ignored
        equal(i.value("x"), "1", "x")

    both(act)


@test("an interrupt ends a cell that has said that it begins")
def _():
    def act(i, is_python):
        for _ in range(20):
            cell = i.cell("while True: pass" if is_python else "for (;;);", interrupted_at_begin=True)
            equal(cell.exception[0], "KeyboardInterrupt" if is_python else "Interrupt", "the exception")
        equal(i.value("1"), "1", "the next cell")

    both(act)
    with Folder() as f, Interpreter(NODE) as i:
        code = "const go = () => fs.existsSync(%r) ? (process.emit('SIGINT'), fs.writeFileSync(%r, '')) : setTimeout(go, 1)"
        i.value("const fs = require('fs')\n" + code % (f / "go", f / "gone") + "\ngo()")
        equal(i.cell("for (;;);", interrupted_at_begin=True).exception[0], "Interrupt", "the exception")
        f.file("go", "")
        wait_until(lambda: os.path.exists(f / "gone"), "an interrupt between two cells")
        equal(i.cell("1").output, "", "the output of the next cell")


@test("an interrupt ends a repr that hangs")
def _():
    with Folder() as f, Interpreter(PYTHON) as i:
        cell = i.cell(f"class A:\n    def __repr__(self):\n        open({f / 'a'!r}, 'w')\n        while True: pass\nA()", interrupted_by=f / "a")
        equal(cell.exception[0], "KeyboardInterrupt", "the exception")
        equal(i.value("1"), "1", "the next cell")


@test("input() fails clearly, and reads what a cell has as its stdin")
def _():
    with Interpreter(PYTHON) as i:
        cell = i.cell("input('name? ')")
        equal(cell.exception[0], "EOFError", "the exception")
        true("not available in a session" in cell.exception[1], cell.exception[1])
        cell = i.cell("a, b = input('name? '), input(); (a, b)", stdin="Zoë\nx\n".encode())
        equal((cell.value, cell.output), ("('Zoë', 'x')", "name? "), "the cell with a stdin")
        equal(i.cell("input()").exception[0], "EOFError", "the cell behind it")
    with Interpreter(NODE) as i:
        equal(i.value("require('fs').readFileSync(0, 'utf8')", stdin=b"abc"), "'abc'", "the cell with a stdin")
        equal(i.value("require('fs').readFileSync(0, 'utf8')"), "''", "the cell behind it")


@test("a cell has its own arguments and files")
def _():
    with Folder() as f:

        def act(i, is_python):
            read = "import sys; (sys.argv[1:], open(sys.argv[1]).read())" if is_python else "[process.argv.slice(2), require('fs').readFileSync(process.argv[2], 'utf8')]"
            path = f / ("py/a" if is_python else "js/a")
            said = i.value(read, args=[path, "b c"], files=[(path, b"text")])
            equal(said.replace("\n ", ""), f"([{path!r}, 'b c'], 'text')" if is_python else f"[ [ {path!r}, 'b c' ], 'text' ]", "the cell")
            equal(i.value("sys.argv" if is_python else "process.argv.length"), "['']" if is_python else "2", "the next one")

        both(act)


@test("a pandas table is text and HTML, and a figure is an image")
def _():
    with Interpreter(PYTHON) as i:
        if i.cell("import pandas, matplotlib.pyplot as plt").exception:
            raise Skip("pandas or matplotlib is not installed")
        i.value("df = pandas.DataFrame({'a': [1, 2], 'b': [3, 4]})")
        i.value("df['c'] = df.a + df.b")
        cell = i.cell("df")
        equal([kind for kind, _ in cell.displays], [b"text/html"], "displays")
        true(b"<table" in cell.displays[0][1] and "a  b  c" in cell.value, f"{cell.displays} {cell.value}")
        cell = i.cell("plt.plot([1, 2]); plt.show()\nf, a = plt.subplots(); a.plot([3]);")
        equal([(kind, data[:4]) for kind, data in cell.displays], [(b"image/png", b"\x89PNG")] * 2, "figures")
        equal((cell.output, i.cell("1").displays), ("", []), "each is shown once, without a warning")
        equal([kind for kind, _ in i.cell("f").displays], [], "a closed figure that is a value")
        equal([kind for kind, _ in i.cell("display(f); display(df, 3)").displays], [b"image/png", b"text/html"], "display()")


@test("displays, values and exceptions are cut to their limits")
def _():
    with Interpreter(PYTHON) as i:
        true(len(i.value("'a' * 10 ** 7").encode()) <= 60 << 10, "a long text")
        true(len(i.value("list(range(10 ** 6))").encode()) <= 60 << 10, "a long list")
        true("990000 more" in i.cell("print(repr(str(list)))\ndisplay(list(range(10 ** 6)))").output, "display() of a long list")
        true(len(i.cell("raise ValueError('x' * 10 ** 7)").exception[1].encode()) <= 16 << 10, "a long message")
        i.value("class H:\n    def __init__(self, n): self.n = n\n    def _repr_html_(self): return 'x' * self.n")
        cell = i.cell("for _ in range(40): display(H(1))")
        equal((len(cell.displays), cell.end[2]), (32, 8), "displays and those left out")
        cell = i.cell("display(H(5 << 20)); display(H(4 << 20)); display(H(4 << 20)); display(H(1))")
        equal((len(cell.displays), cell.end[2]), (2, 2), "large displays and those left out")
        equal(i.value(r"class S:" "\n" r"    def __repr__(self): return '\ud800\0'" "\nS()"), "\\ud800\\x00", "no UTF-8")


OWN_HANDLER = "import signal\ndef raise_it(*unused): raise TimeoutError\nsignal.signal(signal.SIGINT, raise_it);"


@test("an interrupt while a large display is sent leaves whole frames, and the interpreter goes on")
def _():
    with Interpreter(PYTHON) as i:
        i.cell("class H:\n    def _repr_html_(self): return 'x' * (4 << 20)")
        for handler, exception in (("1", "KeyboardInterrupt"), (OWN_HANDLER, "TimeoutError")):
            i.cell(handler)
            cell = i.cell("display(H())", interrupted_in_display=True)
            equal((cell.status, [(kind, len(data)) for kind, data in cell.displays]), (None, [(b"text/html", 4 << 20)]), "the display")
            equal(cell.exception[0], exception, "the exception")
            equal(i.value("1 + 1"), "2", "the next cell")


@test("an interrupt of Node leaves whole displays, in each part of a cell")
def _():
    whole = [(b"text/html", 4 << 20)]
    with Folder() as f, Interpreter(NODE) as i:
        mark = f / "shown"
        i.cell("const fs = require('fs'); const h = { toMimeBundle: () => ({ 'text/html': 'x'.repeat(4 << 20) }) }")
        shown = f"display(h); fs.writeFileSync({mark!r}, '')"
        for code, exception in (
            (f"{shown}; for (;;);", "Interrupt"),
            (f"await null; {shown}; await new Promise(() => {{}})", "Interrupt"),
            (f"({{ [Symbol.for('nodejs.util.inspect.custom')]() {{ {shown}; for (;;); }} }})", "Interrupt"),
            ("h", None),
            ("display(h); await new Promise(() => {})", "Interrupt"),
        ):
            cell = i.cell(code, interrupted_in_display=True, shown_at=mark)
            equal((cell.status, [(kind, len(data)) for kind, data in cell.displays]), (None, whole), f"the display of {code}")
            equal(cell.exception and cell.exception[0], exception, f"the exception of {code}")
            equal(i.value("1 + 1"), "2", f"the cell behind {code}")
            if os.path.exists(mark):
                os.unlink(mark)


@test("what a cell of Node writes comes in its order, in any form, and what is no text is refused")
def _():
    with Interpreter(NODE) as i:
        equal(i.cell("const o = process.stdout; o.write('6162', 'hex'); o.write(Buffer.from('c')); console.log('d'); o.write('é\\n', 'latin1');").output, "abcd\n\ufffd\n", "the output")
        equal(i.value("await new Promise(r => o.write('x'.repeat(1 << 20), r))"), "null", "what the callback is told")
        for no in ("5", "null", "{}"):
            equal(i.cell(f"o.write({no})").exception[0], "TypeError", f"the exception of {no}")
        equal(i.cell("const from = require('stream').Readable.from(['a', 'b']); from.pipe(o); await require('stream/promises').finished(from)").output, "ab", "a pipe")


@test("a child that a cell forks is no interpreter, and output of a thread is not lost")
def _():
    with Interpreter(PYTHON) as i:
        cell = i.cell("import os\nif os.fork() == 0: print('child')\nelse: os.wait()\n1")
        equal((cell.value, cell.output), ("1", "child\n"), "the cell")
        i.value("import threading\ne = threading.Event()\nt = threading.Thread(target=lambda: (e.wait(), print('late')))\nt.start()")
        equal(i.cell("e.set(); t.join()").output, "late\n", "the output of the next cell")
    with Interpreter(NODE) as i:
        i.value("let go; new Promise(r => { go = r }).then(() => setTimeout(() => { throw new Error('late') }, 1)); 1")
        contains(i.cell("go(); await new Promise(r => process.once('uncaughtException', () => r()))").output, "Uncaught Error: late", "the output of the next cell")
        equal(i.value("2"), "2", "the cell behind it")


PYTHON_EXITS = {
    "import sys; sys.exit()": 0, "sys.exit(3)": 3, "exit(3)": 3, "quit()": 0, "raise SystemExit(256 + 7)": 7, "sys.exit('why')": 1,
    "import asyncio; await asyncio.sleep(0); exit(4)": 4,
}  # fmt: skip
NODE_EXITS = {
    "process.exit()": 0, "process.exitCode = 6; process.exit()": 6, "process.exit(3)": 3, "try { process.exit(4) } catch { process.exit(5) }": 4,
    "await null; process.exit(7)": 7, "setTimeout(() => process.exit(8), 1); await new Promise(() => {})": 8,
    "({ [Symbol.for('nodejs.util.inspect.custom')]() { process.exit(9) } })": 9,
}  # fmt: skip


@test("exit ends the cell with its status, and variables stay")
def _():
    def act(i, is_python):
        i.value("x = 1")
        for code, status in (PYTHON_EXITS if is_python else NODE_EXITS).items():
            cell = i.cell(code)
            equal((cell.status, cell.exception[:2]), (None, ["SystemExit" if is_python else "Exit", str(status)]), f"the end of {code}")
            equal(cell.output, "why\n" if "why" in code else "", f"the output of {code}")
            equal(i.value("x"), "1", f"x after {code}")
        i.cell("import os\npid = os.fork()\nif pid == 0: exit(5)" if is_python else "setTimeout(() => process.exit(3), 1)")
        if is_python:
            equal(i.value("os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), sys.stdin.read()"), "(5, '')", "the status of a child, and the input")
        equal(i.cell("x").output, "", "the output of the next cell")

    both(act)
    code = "const h = { toMimeBundle: () => ({ 'text/html': 'x'.repeat(4 << 20) }) }; display(h); process.exit(3)"
    for is_interrupted in (False, True):
        with Interpreter(NODE) as i:
            cell = i.cell(code, interrupted_in_display=is_interrupted)
            equal((cell.exception[:2], len(cell.displays)), (["Exit", "3"], 1), f"the end of the cell, interrupted: {is_interrupted}")


@test("an end of its process ends the interpreter with its status, and so does a cell that closes the channel")
def _():
    for kind, code in ((PYTHON, "import os; os._exit(3)"), (NODE, "process.reallyExit(3)")):
        with Interpreter(kind) as i:
            equal(i.cell(code).status, 3, f"the status of {code}")
    for kind, code in ((PYTHON, "import os; os.close(3)"), (NODE, "require('fs').closeSync(3)")):
        with Interpreter(kind) as i:
            equal(i.cell(code).status, 1, f"the status of {code}")
    with Interpreter(PYTHON) as i:
        i.near.shutdown(socket.SHUT_WR)
        equal(await_exit(i.process, 60), 1, "the status when the session has ended")


# What a cell is, its value, and its output.
COMMANDS = (
    ("!echo a; echo b >&2; exit 3", None, "a\nb\n"),
    ("_exit_code", "3", ""),
    ("print('a')\n!echo b\nprint('c')", None, "a\nb\nc\n"),
    ("for n in range(2):\n    if n:\n        !echo {n + 1} $n\n    !echo \"it's\" $HOME | sed s/.*/x/", None, "x\n2 1\nx\n"),
    ("w = !printf 'a\\nb'\nw", "['a', 'b']", ""),
    ("!!echo a b", "['a b']", ""),
    ("x = 7\ndef f(y):\n    !echo {x + y} ${y} {print} {no such} $no {{}}\nf(1)", None, "8 {print} {no such} {{}}\n"),
    ("!echo a \\\n  b\n5", "5", "a b\n"),
    ("t = (x\n  % 4)\nu = '''\n!echo no\n%no'''\nt, len(u)", "(3, 13)", ""),
    ("%%bash\nfor i in 1 2; do echo $i; done", None, "1\n2\n"),
    ("%matplotlib inline\n6", "6", ""),
    ("kill = !kill -9 $$\n_exit_code", "-9", ""),
)


@test("a line with ! is a command as in notebooks: its output comes in order, and its status is in _exit_code")
def _():
    with Interpreter(PYTHON) as i:
        for code, value, output in COMMANDS:
            cell = i.cell(code)
            equal((cell.exception, cell.value, cell.output), (None, value, output), f"the cell {code}")
        for code in ("%pip --version", "!{sys.executable} -m pip --version", "pip install --help"):
            i.cell("import sys")
            cell = i.cell(code)
            true("pip" in cell.output and cell.exception is None, f"{code}: {cell.output}")
        for code, words in (("%cd /tmp", "os.chdir()"), ("x = 1\n%timeit x", "timeit"), ("%%html\n<b>", "%%html is not available"), ("%unknown", "!COMMAND"), ("%%\n", "!COMMAND")):
            cell = i.cell(code)
            equal((cell.exception[0], cell.output.count("\n")), ("UsageError", 1), f"the end of {code}, which said {cell.output}")
            contains(cell.output, words, f"the hint of {code}")
        for code in ("!", "x = = 3", "x != 3 y", "%", "ls -l x"):
            equal(i.cell(code).exception[0], "SyntaxError", f"the exception of {code}")


@test("an interrupt ends a command with its processes, and leaves a traceback of the cell alone")
def _():
    with Folder() as f, Interpreter(PYTHON) as i:
        cell = i.cell(f"!(trap '' INT; sleep 600; true) & echo $! > {f / 'new'}; mv {f / 'new'} {f / 'pid'}; wait", interrupted_by=f / "pid")
        equal((cell.exception[0], cell.exception[2].count("File ")), ("KeyboardInterrupt", 1), f"the exception {cell.exception}")
        with open(f / "pid") as file:
            pid = int(file.read())
        wait_until(lambda: (describe_process(pid) or "(Z)").endswith("(Z)"), "the end of the command's child")


@test("an interrupt that comes while a command starts ends the command, too")
def _():
    with Folder() as f, Interpreter(PYTHON) as i:
        i.cell("import subprocess, time\nstart = subprocess.Popen.__init__\n"
               "def slowly(*args, **more): start(*args, **more); time.sleep(1)\nsubprocess.Popen.__init__ = slowly")  # fmt: skip
        cell = i.cell(f"!echo $$ > {f / 'new'}; mv {f / 'new'} {f / 'pid'}; exec sleep 600", interrupted_by=f / "pid")
        equal(cell.exception[0], "KeyboardInterrupt", f"the exception {cell.exception}")
        with open(f / "pid") as file:
            pid = int(file.read())
        wait_until(lambda: (describe_process(pid) or "(Z)").endswith("(Z)"), "the end of the command")


@test("a thousand cells in a row")
def _():
    def act(i, is_python):
        i.value("n = 0")
        for n in range(1000):
            equal(i.value("n += 1\nn"), str(n + 1), "n")

    both(act)
