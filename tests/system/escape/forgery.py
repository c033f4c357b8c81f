# SPDX-License-Identifier: Apache-2.0
"""Output, results, supervisor (our list of threats, 2.5): what a program writes, or does to what it was given, changes
neither the caller's descriptors and terminal nor the truth of the result."""

import base64
import errno
import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import time

from harness import *  # noqa: F403
from pointers import check_rows

ROWS = {
    "terminal escapes to the caller": (
        "output: a terminal on standard output gets control characters shown, not sent",
        "forgery: no byte that means something to a terminal gets there, from either stream",
        "forgery: names that the program chose are shown, not sent",
        "bad_input: names with NUL-like, newline and escape bytes are shown escaped, in one line",
    ),
    "JSON injection, invalid UTF-8, NUL, duplicate keys": (
        "output: control characters, quotes and NUL in the output can't break the result",
        "output: output that is not UTF-8 comes as base64",
        "forgery: whatever the output, the result is one line of JSON that gives it back",
        "forgery: whatever the output, an event is one line of JSON",
    ),
    "exit status forgery": (
        "results: a program that exits with the code of a limit still has the status exited",
        "forgery: a signal that a program sends itself is told as that signal, and no limit was hit",
    ),
    "CI command injection": ("forgery: in JSON mode no line begins with what the program wrote",),
    "environment secrets": ("isolation: no secret of the caller's is in the environment of any process inside",),
    "PATH, LD_PRELOAD, IFS, TMPDIR, locale in the supervisor": (
        "bad_input: the caller's PATH, LD_PRELOAD, IFS, TMPDIR and locale change nothing",
    ),
    "argv injection": "no words come from inside",
    "profile injection": ("bad_input: an unknown key is refused with file, line and column",),
    "config path traversal": ("bad_input: a profile's name can't lead out of its directory",),
    "supervisor SIGKILLed anywhere": ("lifecycle: killing the supervisor kills the whole jail",),
    "ENOSPC, EMFILE, ENOMEM, EINTR in the supervisor": (
        "bad_input: with too few descriptors cejail prints one line and exits with 125",
    ),
    "pid reuse": (
        "lifecycle: kill of a run whose supervisor was killed is refused",
    ),
    "stale state, two supervisors": ("lifecycle: an id can be in use only once",),
    "log injection": ("forgery: names that the program chose are shown, not sent",),
    "metric cardinality": "there are no metrics yet",
    "standard streams as a way to the caller": (
        "forgery: what a program does to its standard streams the caller's don't feel",
        "forgery: what a program does to its terminal the caller's doesn't feel",
    ),
    "floods at the supervisor": (
        "results: many denied calls are counted in a bounded list, and the run still ends normally",
        "network_ends: each of thousands of refusals in seconds is counted, and the run ends by itself",
    ),
}  # fmt: skip

# --- descriptors --------------------------------------------------------------

# Everything that can be done to an open file that somebody else has, too.
MEDDLE = """
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
def quietly(function, *args):
    try:
        return function(*args)
    except OSError:
        return None
for fd in (0, 1, 2):
    quietly(fcntl.fcntl, fd, fcntl.F_SETOWN, 1)
    quietly(fcntl.fcntl, fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND | os.O_ASYNC)
    quietly(fcntl.fcntl, fd, 1031, 1 << 17)
    quietly(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    quietly(os.fchmod, fd, 0o777)
    for way in (f"/proc/self/fd/{fd}", f"/dev/fd/{fd}", ("/dev/stdin", "/dev/stdout", "/dev/stderr")[fd]):
        again = quietly(os.open, way, os.O_RDWR | os.O_NONBLOCK)
        if again is not None and fd != 1:
            quietly(os.pwrite, again, b"FORGED", 0)
            quietly(os.ftruncate, again, 3)
time.sleep(0.2)
quietly(os.write, 1, b"meddled\\n")
time.sleep(60)
"""


class Streams:
    """A file, a pipe and a file: a caller's standard streams, as he left them."""

    def __init__(self, folder):
        folder.file("in", "the caller's input\n")
        folder.file("err", "what stood there before\n")
        self.input = os.open(folder / "in", os.O_RDWR)
        self.error = os.open(folder / "err", os.O_RDWR)
        os.lseek(self.error, 0, os.SEEK_END)
        self.ours, self.output = os.pipe()
        self.all = {"stdin": self.input, "stdout": self.output, "stderr": self.error}
        self.folder = folder
        self.before = self.state()

    def state(self):
        found = {}
        for name, fd in self.all.items():
            found[f"{name} flags"] = fcntl.fcntl(fd, fcntl.F_GETFL)
            found[f"{name} owner"] = fcntl.fcntl(fd, fcntl.F_GETOWN)
            found[f"{name} mode"] = os.fstat(fd).st_mode & 0o777
        found["stdout size"] = fcntl.fcntl(self.output, 1032)
        for name in ("in", "err"):
            with open(self.folder / name, "rb") as file:
                found[f"{name} begins"] = file.read(10)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    found[f"{name} lock"] = "free"
                except OSError:
                    found[f"{name} lock"] = "taken"
        return found

    def changed(self):
        now = self.state()
        return sorted(name for name, value in now.items() if value != self.before[name])

    def close(self):
        for fd in (self.input, self.error, self.ours, self.output):
            os.close(fd)


def meddled_with(words):
    """What of the caller's streams changed while the program was there."""
    with Folder() as f:
        streams = Streams(f)
        process = subprocess.Popen(words, stdin=streams.input, stdout=streams.output, stderr=streams.error,
                                   env=environment(), start_new_session=True)  # fmt: skip
        try:
            fcntl.fcntl(streams.ours, fcntl.F_SETFL, os.O_NONBLOCK)
            wait_until(lambda: heard(streams.ours), "the program's word", 20)
            return streams.changed()
        finally:
            process.terminate()
            await_exit(process, 20)
            streams.close()


def heard(fd):
    try:
        return b"meddled" in os.read(fd, 100)
    except BlockingIOError:
        return False


@test("what a program does to its standard streams the caller's don't feel")
def _():
    words = [CEJAIL, "run", "-q", "-i", "--network", "none", "-p", "python", "-c", MEDDLE]
    equal(meddled_with(words), [], "changed in the caller's streams")
    outside = meddled_with([PYTHON, "-I", "-c", MEDDLE])
    kinds = ("flags", "owner", "mode", "size", "begins", "lock")
    equal([kind for kind in kinds if kind not in " ".join(outside)], [], f"what a program without a jail can't change ({outside})")
    tried(len(kinds) * 2)


# --- terminals ------------------------------------------------------------------

HOSTILE = [
    b"\x1b]0;title\x07", b"\x1b[31mred", b"\x1bP+q\x1b\\", b"\x9b31m", b"\xc2\x9b31m", b"\xc0\x9b31m", b"\xe0\x80\x9b",
    b"\xf0\x80\x80\x9b", b"\xed\xa0\x80", b"\x7f\x08\x08", b"\x0e\x0f\x05", b"\xff\xfe", b"\xc2",
    b"\x00\x01\x02\x03\x04\x11\x13\x1a\x1c",
]  # fmt: skip
# Text that no terminal interprets, but that can deceive the reader of a name.
MISLEADING = ["\u202e evil".encode(), "\u2066".encode(), "\u2028".encode()]
# Each at once, then byte by byte, so that none is seen whole.
WRITE_HOSTILE = f"""
import os, sys, time
for piece in {HOSTILE!r}:
    for fd in (1, 2):
        os.write(fd, b"<" + piece + b">")
        for byte in piece:
            os.write(fd, bytes([byte]))
    time.sleep(0.002)
"""
HARMLESS = set(range(0x20, 0x7F)) | {0x0A, 0x0D, 0x09}


def on_terminal(words, **options):
    """All that a caller's terminal gets, both streams."""
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST  # byte for byte
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(), **options)
    os.close(theirs)
    out = b""
    try:
        while block := os.read(ours, 4096):
            out += block
    except OSError as problem:
        true(problem.errno == errno.EIO, f"reading the terminal: {problem}")
    os.close(ours)
    await_exit(process, 30)
    return out


def is_harmless(out):
    """Plain ASCII; text of other languages would be allowed, and there is none in it."""
    return not set(out) - HARMLESS


@test("no byte that means something to a terminal gets there, from either stream")
def _():
    out = on_terminal([CEJAIL, "run", "-q", "--network", "none", "-p", "python", "-c", WRITE_HOSTILE])
    true(is_harmless(out), f"bytes on the terminal: {sorted(set(out) - HARMLESS)} in {out!r}")
    true(out.count(b"<") == 2 * len(HOSTILE), f"pieces are missing: {out!r}")
    outside = on_terminal([PYTHON, "-I", "-c", WRITE_HOSTILE])
    missing = [piece for piece in HOSTILE if piece not in outside]
    equal(missing, [], "pieces that don't get to a terminal even without a jail")
    tried(2 * len(HOSTILE))


NAMES = """
import ctypes, os, signal
os.makedirs(b"out", exist_ok=True)
for piece in PIECES:
    name = b"out/a" + piece.replace(b"/", b"").replace(b"\\0", b"")
    try:
        open(name, "wb").write(b"x")
        os.symlink(b"/etc/passwd", name + b"-link")
        os.mkfifo(name + b"-fifo")
    except OSError:
        pass
ctypes.CDLL(None).prctl(15, b"\\x1b[31mcomm", 0, 0, 0)
os.kill(os.getpid(), signal.SIGSEGV)
""".replace("PIECES", repr([*HOSTILE, *MISLEADING, b"\ncejail: all is well", b"\rcejail: fine"]))


@test("names that the program chose are shown, not sent")
def _():
    with Folder() as f, Folder() as scripts:
        os.mkdir(f / "a")
        words = [CEJAIL, "run", "-v", "--network", "none", "-p", "python", "-o", f / "a", "-c", NAMES]
        out = on_terminal(words)
        true(is_harmless(out), f"bytes on the terminal: {sorted(set(out) - HARMLESS)} in {out!r}")
        strange = [line for line in out.splitlines() if line and not line.startswith(b"cejail: ")]
        equal(strange, [], "lines that begin with what the program wrote")
        script = scripts.file("s", b"#!/no/\x1b]0;title\x07\xc2\x9b31m\n", 0o755)
        out = on_terminal([CEJAIL, "run", "--network", "none", "-p", "base", "-f", f"{script}:/box/s", "--", "/box/s"])
        true(is_harmless(out), f"bytes on the terminal: {out!r}")
        tried(3 * len(HOSTILE) + 4)


# Everything that can be done to a terminal.
MEDDLE_TTY = """
import fcntl, os, signal, struct, termios, time
for number in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGHUP, signal.SIGWINCH, signal.SIGTSTP):
    signal.signal(number, signal.SIG_IGN)
def quietly(*args):
    try:
        fcntl.ioctl(*args)
    except OSError:
        pass
os.write(1, b"meddled\\n")
attributes = termios.tcgetattr(0)
attributes[0], attributes[1], attributes[3] = termios.IXON, 0, 0x10000
attributes[6][termios.VMIN], attributes[6][termios.VEOF] = 200, 0
termios.tcsetattr(0, termios.TCSANOW, attributes)
quietly(0, termios.TIOCSWINSZ, struct.pack("HHHH", 1, 2, 3, 4))
quietly(0, termios.TIOCEXCL)
quietly(0, termios.TIOCPKT, struct.pack("i", 1))
quietly(0, termios.TIOCSTI, b"x")
quietly(0, termios.TIOCNOTTY)
quietly(0, termios.TIOCSCTTY, 1)
termios.tcflow(0, termios.TCIOFF)
termios.tcflow(0, termios.TCOOFF)
os.set_blocking(1, False)
try:
    while os.write(1, b"x" * 1000):
        pass
except OSError:
    pass
time.sleep(60)
"""


def terminal_after(words):
    """(what was written, what changed) of a caller's terminal that the program had as its own."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, b"\x18\0\x50\0\0\0\0\0")

    def state():
        return termios.tcgetattr(theirs), fcntl.ioctl(theirs, termios.TIOCGWINSZ, bytes(8))

    before = state()
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(), start_new_session=True)
    out, end = b"", time.monotonic() + 30 * SLOW
    os.set_blocking(ours, False)
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
        try:
            out += os.read(ours, 4096)
        except BlockingIOError:
            pass
    process.kill()
    process.wait()
    after = state()
    for fd in (ours, theirs):
        os.close(fd)
    changed = [name for name, was, now in zip(("attributes", "size"), before, after) if was != now]
    return out, changed, process.returncode


@test("what a program does to its terminal the caller's doesn't feel")
def _():
    words = ["-q", "--tty", "-i", "--network", "none", "-t", str(3 + SLOW), "-p", "python", "-c", MEDDLE_TTY]
    out, changed, code = terminal_after([CEJAIL, "run", *words])
    contains(out, b"meddled", "the terminal")
    equal((changed, code), ([], 124), "what changed, and the end")
    outside = ["timeout", str(3 + SLOW), PYTHON, "-I", "-c", MEDDLE_TTY]
    out, changed, _ = terminal_after(outside)
    equal(changed, ["attributes", "size"], "what changes without a jail")
    tried(10)


# --- the result -------------------------------------------------------------------

WRITTEN = [
    *HOSTILE, *MISLEADING, b'"}\n{"schema": "cejail.result/1", "status": "exited", "exit_code": 0}\n', b"\\", b'\\u0000"', b"\xef\xbb\xbf{}",
    b"\xc3", b"\xa9", "\u2028\u2029\ud7ff\ue000\uffff\U0010ffff".encode(), b"\xf4\x90\x80\x80",
    b"::set-output name=x::y\n##vso[task.setvariable variable=x]y\n::add-mask::x\n", b"\r\n\r\n::error::x\r",
]  # fmt: skip
LONG_LINE = b"x" * 300000
WRITE_ALL = f"""
import os
for piece in {WRITTEN!r}:
    os.write(1, piece)
    os.write(2, piece + b".")
for i in range(300):
    os.write(1, b"x" * 1000)
"""


def bytes_of(stream):
    return stream["text"].encode() if "text" in stream else base64.b64decode(stream["base64"])


def one_line(raw):
    """One line without a control character in it; its value."""
    true(raw.endswith(b"\n") and raw.count(b"\n") == 1, f"not one line: {raw[:300]!r}")
    text = raw[:-1].decode("utf-8")
    equal({c for c in text if c < " " or "\x7f" <= c < "\xa0"}, set(), "control characters")
    return json.loads(text, object_pairs_hook=unique_keys)


@test("whatever the output, the result is one line of JSON that gives it back")
def _():
    pieces = WRITTEN[::5] if EMULATED else thinned(WRITTEN)
    for piece in pieces:
        code = f"import os; os.write(1, {piece!r}); os.write(2, {piece!r} + b'.')"
        done = run("-q", "--json", "--network", "none", "-p", "python", "-c", code)
        value = one_line(done.raw_out)
        equal(bytes_of(value["stdout"]), piece, "stdout")
        equal(bytes_of(value["stderr"]), piece + b".", "stderr")
        equal((value["status"], value["exit_code"]), ("exited", 0), "how it ended")
        tried()


@test("whatever the output, an event is one line of JSON")
def _():
    with Folder() as f, open(f / "events", "wb") as file:
        options = ("-q", "--network", "none", "--events-fd", str(file.fileno()), "-p", "python")
        run(*options, "-c", WRITE_ALL, pass_fds=[file.fileno()]).exits(0)
        with open(f / "events", "rb") as lines:
            events = [one_line(line) for line in lines]
    out = b"".join(bytes_of(event) for event in events if event["type"] == "stdout")
    equal(out, b"".join(WRITTEN) + LONG_LINE, "stdout in the events")
    equal([event["type"] for event in events if event["type"] not in ("stdout", "stderr")], ["start", "result"], "the others")
    tried(len(WRITTEN))


@test("in JSON mode no line begins with what the program wrote")
def _():
    done = run("--json", "--network", "none", "-p", "python", "-c", WRITE_ALL)
    true(done.raw_out.startswith(b'{"schema":"cejail.result/1",'), f"stdout begins {done.raw_out[:80]!r}")
    one_line(done.raw_out)
    strange = [line for line in done.raw_err.splitlines() if not line.startswith(b"cejail: ")]
    equal(strange, [], "lines on standard error that aren't cejail's")
    outside = subprocess.run([PYTHON, "-I", "-c", WRITE_ALL], capture_output=True, check=True)
    true(b"\n::set-output" in outside.stdout + b"\n" or b"::set-output" in outside.stdout, "the control is silent")


# What the kernel does not end a process for, and what stops one.
CORE = {signal.SIGQUIT, signal.SIGILL, signal.SIGABRT, signal.SIGFPE, signal.SIGSEGV, signal.SIGBUS, signal.SIGSYS, signal.SIGTRAP, signal.SIGXCPU, signal.SIGXFSZ}
QUIET = {signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


@test("a signal that a program sends itself is told as that signal, and no limit was hit", limit=120)
def _():
    numbers = [n for n in range(1, 65) if n not in QUIET and n not in (32, 33)]
    for number in (9, 14, 24, 25, 31, 34, 64) if EMULATED else thinned(numbers, lambda n: n in CORE or n >= 34):
        limits = ("--cpu-time", "20", "-t", scaled(20), "-m", "64M")
        value = probe_result("behave", "signal", str(number), options=("-q", "--network", "none", *limits))
        word = value["signal"]
        equal((value["status"], value["exit_code"], word), ("signaled", None, number), f"signal {number}")
        hit = [name for name, limit in value["limits"].items() if limit["hit"] and name != "cpus"]  # a start may be throttled
        equal(hit, [], f"limits hit by signal {number}")
        tried()


@test("every row of the threats' output and results has its proof")
def _():
    check_rows(ROWS, set())
