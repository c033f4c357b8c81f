# SPDX-License-Identifier: Apache-2.0
"""`cejail session`: the command line over the sessions of a service."""

import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from harness import *  # noqa: F403
from service import Service


class Client:
    """A service, one session in it, and the command line."""

    def __init__(self, *options, profile="base", config=None):
        self.options, self.profile = options, profile
        self.service = Service(config=config)

    def __enter__(self):
        self.service.__enter__()
        self.remote = f"--remote={self.service.socket}"
        try:
            self.id = self.session("create", "-p", self.profile, "--network", "none", *self.options).exits(0).out.strip()
        except BaseException:
            self.service.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *why):
        self.service.__exit__(*why)

    def words(self, verb, *words):
        return ("session", verb, self.remote, *words)

    def session(self, verb, *words, **more):
        return cejail(*self.words(verb, *words), **more)

    def exec(self, *words, **more):
        """With its own options before the session."""
        return self.session("exec", *words, **more)

    def sh(self, script, *options, **more):
        return self.session("exec", *options, self.id, "--", "/bin/sh", "-c", script, **more)

    def start(self, verb, *words, **more):
        return start(*self.words(verb, *words), **more)

    def result(self, done):
        value = parse_result(done.out, done)
        equal(value.get("session"), self.id, "session")
        return value

    def info(self):
        return self.service.get(f"/v1/sessions/{self.id}").has(200).json


def line(process):
    """The next line of its output."""
    return process.stdout.readline().decode()


@test("files and background processes of one exec are there for the next")
def _():
    with Client() as c:
        c.sh("echo one > a; (until [ -e go ]; do sleep 0.05; done; echo two > b) </dev/null >/dev/null 2>&1 &").exits(0)
        c.sh("cat a; touch go").exits(0).says("one\n")
        c.sh("until [ -s b ]; do sleep 0.05; done; cat b").exits(0).says("two\n")


@test("code runs with the command of the session's profile: a file, a string, standard input, with arguments")
def _():
    with Client(profile="python") as c, Folder() as f:
        code = "import sys; print(sys.argv[1:], open('n').read())"
        c.session("put", c.id, f.file("n", "7")).exits(0)
        c.exec(c.id, f.file("a.py", code), "x", "-y").exits(0).says("['x', '-y'] 7\n")
        c.exec(c.id, "-c", code, "--", "-z").exits(0)
        c.exec("-c", code, c.id, "z").exits(0).says("['z'] 7\n")
        c.exec(c.id, "-", "s", given=code).exits(0).says("['s'] 7\n")
        c.exec(c.id, "-e", "A=b", "-f", f.file("m", "8"), "--args-json", "[1]", "-c",
               "import os; print(os.environ['A'], open('m').read(), open('args.json').read())").exits(0).says("b 8 [1]\n")  # fmt: skip


@test("the exit status of exec is that of run")
def _():
    with Client() as c:
        for script, code in (("exit 42", 42), ("kill -9 $$", 137), ("true", 0)):
            c.sh(script).exits(code)
            tried()
        c.sh("sleep 6000", "-t", "500ms").exits(124)
        c.exec(c.id, "--", "/no/such").exits(127)
        c.exec(c.id, "--", "/etc/hosts").exits(126)
        refused(c.exec("no-such-session", "--", "true"), "not_found")


@test("exec --json prints one result, which names the session")
def _():
    with Client() as c, Folder() as f:
        value = c.result(c.sh("echo out; echo err >&2; echo x > out/f; exit 3", "--json", "-o", f.path).exits(3))
        equal((value["status"], value["exit_code"], value["stdout"]["text"], value["stderr"]["text"]), ("exited", 3, "out\n", "err\n"), "the result")
        with open(f / "f", encoding="ascii") as file:
            equal(file.read(), "x\n", "the artefact")
        value = json.loads(c.exec("--json", "no-such-session", "--", "true").exits(125).out)
        equal((value["status"], value["error"]["stage"]), ("setup_error", "service"), "the result of a refusal")


@test("exec prints output when the program writes it")
def _():
    with Client() as c:
        process = c.start("exec", c.id, "--", "/bin/sh", "-c", "echo a; until [ -e go ]; do sleep 0.05; done; echo b")
        equal(line(process), "a\n", "the first line")
        c.session("put", c.id, "-", "go", given="").exits(0)
        finish(process).exits(0).says("b\n")


@test("exec -i forwards input while the program runs, and its end")
def _():
    with Client() as c:
        process = c.start("exec", "-i", c.id, "--", "/bin/sh", "-c", "while read x; do echo got $x; done; echo end", stdin=subprocess.PIPE)
        for word in ("one", "two"):
            process.stdin.write(word.encode() + b"\n")
            process.stdin.flush()
            equal(line(process), f"got {word}\n", "the answer")
        finish(process).exits(0).says("end\n")
        c.sh("cat", given="unread").exits(0).says("")
        for path, said in ((__file__, str(os.path.getsize(__file__))), ("/dev/null", "0")):
            with open(path, "rb") as file:
                finish(c.start("exec", "-i", c.id, "--", "wc", "-c", stdin=file)).exits(0).says(said + "\n")


@test("exec -i forwards more input than the service buffers, to a program that reads late or not at all")
def _():
    data = os.urandom(3 << 20)
    with Client() as c:
        done = c.sh("sleep 1; sha256sum", "-i", given=data).exits(0)
        equal(done.out.split()[0], hashlib.sha256(data).hexdigest(), "the sum")
        c.sh("head -c 3 | wc -c", "-i", given=data).exits(0).says("3\n")
        c.sh("exit 4", "-i", given=data).exits(4)


def ready(c, script):
    """An exec that has said so, and that no signal of ours comes too early for."""
    process = c.start("exec", c.id, "--", "/bin/sh", "-c", script)
    equal(line(process), "ready\n", "the first line")
    return process


@test("SIGINT goes to the program, and a second one cancels the exec; the session continues")
def _():
    with Client() as c:
        process = ready(c, 'trap "echo caught; exit 5" INT; echo ready; while :; do sleep 0.1; done')
        process.send_signal(signal.SIGINT)
        finish(process).exits(5).says("caught\n")
        process = ready(c, 'trap "echo caught" INT; echo ready; while :; do sleep 0.1; done')
        process.send_signal(signal.SIGINT)
        equal(line(process), "caught\n", "the second line")
        process.send_signal(signal.SIGINT)
        done = finish(process).exits(128 + signal.SIGINT)
        contains(done.err, "SIGINT", "stderr")
        equal(c.info()["state"], "live", "the session")
        c.sh("echo on").exits(0).says("on\n")


@test("SIGTERM cancels an exec and nothing else of the session")
def _():
    with Client() as c:
        other = ready(c, "echo ready; until [ -e go ]; do sleep 0.05; done; echo whole")
        process = ready(c, 'trap "" INT TERM; echo ready; while :; do sleep 0.1; done')
        process.send_signal(signal.SIGTERM)
        finish(process).exits(128 + signal.SIGTERM)
        c.sh("touch go").exits(0)
        finish(other).exits(0).says("whole\n")


@test("closing the reader of the output cancels the exec")
def _():
    with Client() as c:
        process = ready(c, "echo ready; while :; do echo more; sleep 0.1; done")
        process.stdout.close()
        process.stdout = None
        finish(process)
        wait_until(lambda: c.info()["execs"] == 0, "the end of the exec", 30)


@test("--interrupt gives the program two seconds after SIGINT at the timeout")
def _():
    with Client() as c:
        for _ in range(5):
            done = c.sh('trap "echo caught; exit 0" INT; while :; do sleep 0.1; done', "-t", scaled(1), "--interrupt", "--json").exits(124)
            value = c.result(done)
            equal(value["status"], "timeout", "the result")
            if value["stdout"]["text"]:  # a busy machine may not run it for two seconds
                break
        equal(value["stdout"]["text"], "caught\n", "what the program wrote")
        value = c.result(c.sh('trap "" INT; while :; do sleep 0.1; done', "-t", "1s", "--interrupt", "--json").exits(124))
        equal(value["status"], "timeout", "the status of a program that ignores it")
        c.sh("echo on").exits(0).says("on\n")


@test("a detached exec is listed, waited for, cancelled and signalled")
def _():
    with Client() as c, Folder() as f:
        script = "echo begun; until [ -e go ]; do sleep 0.05; done; echo err >&2; echo x > out/f; exit 3"
        name = c.sh(script, "--detach").exits(0).out.strip()
        listed = [row.split()[:2] for row in c.session("list", c.id).exits(0).out.splitlines()]
        equal(listed[0], ["ID", "STATE"], "the head of the list")
        true([name, "running"] in listed or [name, "queued"] in listed, f"it is not listed: {listed}")
        waiting = c.start("wait", c.id, name)
        c.sh("touch go").exits(0)
        done = finish(waiting).exits(3).says("begun\n")
        contains(done.err, "err", "stderr")
        value = c.result(c.session("wait", "--json", c.id, name).exits(3))
        equal((value["id"], value["stdout"]["text"]), (name, "begun\n"), "the result again")
        answer = json.loads(c.sh("sleep 6000", "-d", "--json", "--id", "mine").exits(0).out)
        equal(answer["id"], "mine", "the id")
        c.session("kill", c.id, "mine").exits(0)
        contains(c.session("wait", c.id, "mine").exits(128 + signal.SIGTERM).err, "another request to the service cancelled it", "stderr")
        other = c.sh("echo ready; sleep 6000", "-d").exits(0).out.strip()
        wait_until(lambda: c.session("kill", "-s", "SIGTERM", c.id, other).code == 0, "the exec to run", 20)
        c.session("wait", c.id, other).exits(128 + signal.SIGTERM)
        refused(c.session("wait", c.id, "no-such"), "not_found")
        refused(c.session("kill", "-s", "NONE", c.id, other), "NONE")
        c.sh("true", "--id", "streamed").exits(0)
        refused(c.session("wait", c.id, "streamed"), "not detached")


@test("put and get copy bytes, modes and directories, through files and standard streams")
def _():
    data = bytes(range(256)) * 4000
    with Client() as c, Folder() as f:
        source = f.file("tree/data", data)
        f.file("tree/sub/run", "#!/bin/sh\necho ran\n", 0o755)
        c.session("put", c.id, source).exits(0)
        c.session("put", c.id, source, "deep/er/").exits(0)
        c.session("put", c.id, f / "tree", "/tmp/t").exits(0)
        c.session("put", c.id, "-", "/box/typed é%?", given="typed").exits(0)
        c.sh("cat 'typed é%?'; cmp data deep/er/data && cmp data /tmp/t/data && /tmp/t/sub/run; test -x data || echo plain").exits(0).says("typedran\nplain\n")
        equal(c.session("get", c.id, "data", "-").exits(0).raw_out, data, "through standard output")
        c.session("get", c.id, "/tmp/t/data", f / "new").exits(0)
        c.session("get", c.id, "/box/deep/er/data", f.folder("into")).exits(0)
        c.session("get", c.id, "deep/er/data", cwd=f.folder("here")).exits(0)
        for name in ("new", "into/data", "here/data"):
            with open(f / name, "rb") as file:
                true(file.read() == data, f"{name} is not the same")
        c.session("put", c.id, f.file("small", "x"), "data").exits(0)
        c.sh("cat data").exits(0).says("x")


@test("get and put of what can't be copied are refused, and leave no file")
def _():
    with Client() as c, Folder() as f:
        c.sh("mkdir d; ln -s /etc/passwd link; mkfifo fifo; ln -s d l; echo x > d/x").exits(0)
        for name in ("none", "d", "link", "fifo", "l/x", "/etc/passwd", "../etc/passwd", "/box/../etc/passwd", "//box/d/x", "/proc/self/environ"):
            refused(c.session("get", c.id, name, f / "got"), "read '")
            tried()
        for name in ("d", "l/y", "link/x", "/etc/x", "/box/../x"):
            refused(c.session("put", c.id, "-", name, given="x"), "write '")
            tried()
        for name in ("fifo", "link"):  # they are replaced, and neither opened nor followed
            c.session("put", c.id, "-", name, given="x").exits(0)
            c.sh(f"test -f {name} && test ! -L {name} && cat {name}").exits(0).says("x")
        refused(c.session("put", c.id, "-"), "standard input has no name")
        refused(c.session("put", c.id, f / "none"), "none")
        os.symlink("/etc/passwd", f / "bad")
        refused(c.session("put", c.id, f / "bad"), "symbolic link")
        equal(os.listdir(f.path), ["bad"], "what is left here")


@test("ls shows every entry below a directory, and names cannot forge lines")
def _():
    with Client() as c:
        c.sh("mkdir -p d/e; echo hello > d/f; ln -s x d/l; mkfifo d/p; printf x > \"d/$(printf 'a\\nb\\033[1m')\"").exits(0)
        lines = sorted(c.session("ls", c.id, "d").exits(0).out.splitlines(), key=lambda text: text.split()[3])
        true(all(text.split()[2].endswith("Z") for text in lines), f"the times: {lines}")
        equal([[*text.split(None, 3)[:2], text.split(None, 3)[3]] for text in lines], [
            ["-", "1", "/box/d/a\\x0ab\\x1b[1m"], ["d", "0", "/box/d/e"], ["-", "6", "/box/d/f"],
            ["l", lines[3].split()[1], "/box/d/l"], ["?", "0", "/box/d/p"],
        ], "the list")  # fmt: skip
        answer = json.loads(c.session("ls", "--json", c.id, "d").exits(0).out)
        equal(answer["truncated"], False, "truncated")
        contains([entry["path"] for entry in answer["entries"]], "/box/d/a\\x0ab\\x1b[1m", "the paths")
        c.session("rm", c.id, "d/f", "/box/d/e").exits(0)
        equal(len(c.session("ls", c.id, "d/").exits(0).out.splitlines()), 3, "entries afterwards")
        c.session("rm", c.id, "d").exits(0)
        refused(c.session("ls", c.id, "d"), "list '/box/d'")
        refused(c.session("rm", c.id, "d"), "remove '/box/d'")


@test("files are looked at, made, renamed and watched")
def _():
    with Client() as c:
        c.session("mkdir", c.id, "d/e", "/tmp/x").exits(0)
        c.session("mkdir", c.id, "d/e").exits(0)
        c.session("put", c.id, "-", "d/a", given="hello").exits(0)
        c.session("mv", c.id, "d/a", "/box/d/e/b").exits(0)
        equal(c.session("stat", c.id, "d/e/b").exits(0).out.split()[:2], ["-", "5"], "the file")
        equal(json.loads(c.session("stat", "--json", c.id, "d").exits(0).out)["type"], "directory", "the directory")
        refused(c.session("stat", c.id, "d/a"), "look at '/box/d/a'")
        refused(c.session("mv", c.id, "d/a", "d/b"), "rename '/box/d/a'")
        refused(c.session("mkdir", c.id, "d/e/b"), "make '/box/d/e/b'")
        refused(c.session("watch", c.id, "none"), "watch '/box/none'")
        process = c.start("watch", c.id, "d/e")
        wait_until(lambda: c.sh("touch d/e/n; rm d/e/n").exits(0) and select.select([process.stdout], [], [], 0)[0], "a change")
        c.session("rm", c.id, "d").exits(0)
        lines = [json.loads(line) for line in finish(process).exits(0).out.splitlines()]
        contains([(line["event"], line["path"]) for line in lines], ("remove", "/box/d/e/n"), "the changes")


@test("a session ends with its lease, which can be renewed, and every later verb says so")
def _():
    with Client("--lease", "6s") as c:
        true(c.session("lease", c.id, "1h").exits(0).out.strip().endswith("Z"), "no time is printed")
        c.sh("sleep 7").exits(0)
        process = ready(c, "echo ready; sleep 6000")
        c.session("lease", c.id, "100ms").exits(0)
        contains(finish(process).exits(128 + signal.SIGTERM).err, "cancelled: the session's lease is over", "stderr")
        wait_until(lambda: c.info()["state"] == "ended", "the end", 30)
        for verb in (("exec", c.id, "--", "true"), ("ls", c.id), ("lease", c.id, "1m"), ("put", c.id, "/etc/hostname")):
            contains(c.session(*verb).exits(125).err, "session_ended", verb[0])
            tried()
        row = [text.split() for text in c.session("list").exits(0).out.splitlines() if text.startswith(c.id)][0]
        equal(row[1:5], ["base", "none", "ended", "lease"], "the session in the list")


@test("end closes sessions, what runs in them ends, and a session that is not there is an error")
def _():
    with Client() as c:
        other = c.session("create", "-p", "base").exits(0).out.strip()
        process = ready(c, "echo ready; sleep 6000")
        contains(c.session("end", c.id, "no-such", other).exits(125).err, "no-such", "the message")
        contains(finish(process).exits(128 + signal.SIGTERM).err, "cancelled: the session was closed", "stderr")
        ended = [json.loads(line) for line in c.session("end", "--json", c.id, other).exits(0).out.splitlines()]
        equal([(one["id"], one["state"]) for one in ended], [(c.id, "ended"), (other, "ended")], "end --json")
        for name in (c.id, other):
            equal(c.service.get(f"/v1/sessions/{name}").has(200).json["reason"], "closed", "the reason")
        equal(json.loads(c.session("list", "--json").exits(0).out)["sessions"][0]["state"], "ended", "the state")


@test("an unknown option names the help of its verb, and more memory than sessions may have its maximum")
def _():
    for verb, words in (("create", ()), ("exec", ("ID",)), ("wait", ("ID", "EXEC")), ("put", ("ID", "SRC")), ("end", ("ID",))):
        equal(
            cejail("session", verb, *words, "--xyzzyplugh").exits(125).err,
            f"cejail: unknown option '--xyzzyplugh' (see 'cejail session {verb} --help')\n", verb,
        )  # fmt: skip
    with Client(config={"session_memory": "1G"}) as c:
        said = c.session("create", "-p", "base", "-m", "2G").exits(125).err
        contains(said, "memory: 2G is more than 1G", "the message")
        contains(said, "session_memory", "the remedy")


@test("two sessions see nothing of each other")
def _():
    with Client() as c:
        other = c.session("create", "-p", "base").exits(0).out.strip()
        c.sh("echo secret > /tmp/mine; (sleep 1000 </dev/null >/dev/null 2>&1 &)").exits(0)
        done = c.exec(other, "--", "/bin/sh", "-c", "ls /tmp /box; cat /proc/[0-9]*/cmdline | tr '\\0' ' '").exits(0)
        lacks(done.out, "mine", "the other session")
        lacks(done.out, "sleep 1000", "the other session")


@test("create takes the options of a jail, as the defaults of its execs")
def _():
    with Client("-m", "100M", "-e", "A=jail", "-t", scaled(2), "-w", "/tmp") as c:
        c.sh("echo $A; pwd").exits(0).says("jail\n/tmp\n")
        c.sh("echo $A", "-e", "A=exec").exits(0).says("exec\n")
        c.sh("sleep 3000").exits(124)
        value = c.result(c.sh("true", "--json").exits(0))
        equal(value["limits"]["memory"]["value"], 100 << 20, "the memory limit")
        refused(c.session("create", "-p", "base", "--lease", "99999h"), "lease")
        refused(c.session("create", "-p", "no-such"), "no-such")
        refused(c.session("create", "-p", "base", "--context", "other"), "context")
        refused(c.session("create", "-p", "base", "-f", "/etc/hosts"), "-f")
        refused(c.session("create"), "profile")
        refused(c.exec("-m", "64M", c.id, "--", "true"), "session create")


@test("with --context repl, variables survive, also a timeout and an interrupt")
def _():
    with Client("--context", "repl", profile="python") as c:
        for _ in range(5):
            c.exec(c.id, "-c", "x = 40").exits(0)
            c.exec(c.id, "-c", "while True: pass", "-t", "2s", "--interrupt").exits(124)
            done = c.exec(c.id, "--json", "-c", "print('out'); x + 2")
            if done.code == 0:  # a busy machine may not run the interpreter for two seconds: then it is another one
                break
        value = c.result(done.exits(0))
        equal((value["stdout"]["text"], value["cell"]["value"]), ("out\n", "42"), "the cell")
        equal(c.exec(c.id, "-c", "print('out'); x + 2").exits(0).out, "out\n42\n", "what the cell shows")
        done = c.exec(c.id, "-c", "1 / 0").exits(1)
        equal(done.out, "", "what it shows without a value")
        contains(done.err, "ZeroDivisionError", "stderr")


def owner_of(path):
    """The process that listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(path)
        return int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"  # nobody waits for it
    except (FileNotFoundError, ProcessLookupError):  # it ended before, or while we looked
        return True


class OwnService:
    """The service that `cejail session` starts for this user; it ends in the block, and leaves a log."""

    def __enter__(self):
        self.folder = Folder().__enter__()
        self.env = environment(XDG_RUNTIME_DIR=self.folder.path)
        self.path = self.pid = None
        return self

    def session(self, *words):
        return cejail("session", *words, env=self.env)

    def create(self):
        return self.session("create", "-p", "base", "--network", "none").exits(0).out.strip()

    def look(self):
        """It listens: which process?"""
        self.path = self.session("socket").exits(0).out.strip()
        self.pid = owner_of(self.path)
        return self.pid

    def said(self):
        with open(os.path.join(os.path.dirname(self.path), "serve.log"), encoding="utf-8") as file:
            return file.read()

    def await_end(self):
        wait_until(lambda: has_ended(self.pid), f"the end of the service; it says {self.said()!r}", 60)
        equal(os.path.exists(self.path), False, "the socket is there")

    def __exit__(self, kind, *unused):
        try:
            if self.pid and not has_ended(self.pid):
                os.kill(self.pid, signal.SIGTERM)
                self.await_end()
            if self.path:
                os.unlink(os.path.join(os.path.dirname(self.path), "serve.log"))
        finally:
            self.folder.__exit__()


@test("create starts a service if none listens, and that one ends after its last session", limit=120)
def _():
    with OwnService() as own:
        refused(own.session("list"), "no service listens")
        refused(own.session("create", "-p", "base", "--remote=/no/such"), "no service listens")
        name = own.create()
        pid = own.look()
        own.session("exec", name, "--", "echo", "hi").exits(0).says("hi\n")
        second = own.create()
        equal(own.look(), pid, "the process that listens")
        if LONG:
            time.sleep(12)  # longer than the service waits without a session
            own.session("exec", name, "--", "echo", "still").exits(0).says("still\n")
        own.session("end", name, second).exits(0)
        own.await_end()
        contains(own.said(), "no session and no run, ending", "the log")


@test("several that create a session at once start one service")
def _():
    with OwnService() as own:
        started = [start("session", "create", "-p", "base", "--network", "none", env=own.env) for _ in range(4)]
        names = [finish(process, 60).exits(0).out.strip() for process in started]
        own.look()
        equal(sorted(row["id"] for row in json.loads(own.session("list", "--json").exits(0).out)["sessions"]), sorted(names), "the sessions")
        own.session("end", *names).exits(0)


@test("create waits for a service that is about to end, and starts another")
def _():
    with OwnService() as own:
        name = own.create()
        pid = own.look()
        process = start("session", "exec", name, "--", "/bin/sh", "-c", "echo ready; until [ -e go ]; do sleep 0.05; done", env=own.env)
        equal(line(process), "ready\n", "the first line")
        os.kill(pid, signal.SIGTERM)  # it drains: the exec may end
        wait_until(lambda: "draining" in own.said(), "the drain", 30)
        waiting = start("session", "create", "-p", "base", "--network", "none", env=own.env)
        own.session("put", name, "/etc/hostname", "go")
        finish(process)
        second = finish(waiting, 60).exits(0).out.strip()
        true(own.look() != pid, "the same process listens")
        own.session("exec", second, "--", "true").exits(0)


@test("if no service can be started, the message has its reason", who="user")
def _():
    with OwnService() as own:
        config = own.folder.file("home/.config/cejail/serve.json", '{"nonsense": 1}')
        own.env["HOME"] = own.folder / "home"
        own.env["XDG_CONFIG_HOME"] = os.path.dirname(os.path.dirname(config))
        refused(own.session("create", "-p", "base"), "none can be started", "nonsense")
        for place in (own.folder / "cejail", *runtime_dirs(), "/run/cejail"):
            log = os.path.join(place, "serve.log")
            if os.path.exists(log):
                os.unlink(log)


PLANT = """mount -t tmpfs -o mode=755 none /run && mount -t tmpfs -o mode=1777 none /dev/shm || exit
mkdir -p /run/user/65534 && chown 65534 /run/user/65534 && chmod 700 /run/user/65534
for uid; do mkdir -m 700 /dev/shm/cejail-$uid && chown 65533 /dev/shm/cejail-$uid || exit; done
echo ready; read line"""


class Planted:
    """Mounts of its own, where /run is new, and another user has taken these users' names in /dev/shm."""

    def __init__(self, *uids):
        self.uids = uids

    def __enter__(self):
        words = ["unshare", "-m", "/bin/sh", "-c", PLANT, "sh", *map(str, self.uids)]
        self.holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(self.holder.stdout.readline(), b"ready\n", "the first line of the mounts")
        self.root = f"/proc/{self.holder.pid}/root"
        return self

    def __call__(self, uid, *words, before=()):
        env = environment(HOME="/nonexistent")
        env.pop("XDG_RUNTIME_DIR", None)
        enter = ["nsenter", "-m", "-t", str(self.holder.pid), "-S", str(uid), "-G", str(uid), *before, CEJAIL]
        process = subprocess.Popen([*enter, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return finish(process, 60, None, words)

    def end_service(self, uid):
        pid = owner_of(self.root + self(uid, "session", "socket").exits(0).out.strip())
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: has_ended(pid), "the end of the service", 60)

    def __exit__(self, *unused):
        self.holder.communicate()


@test("a directory that another user made in /dev/shm blocks no session and no `run --remote`", who="root", limit=180)
def _():
    with Planted(0, 65534) as place:
        for uid in (0, 65534):
            refused(place(uid, "run", "--remote", "--", "true"), "no service listens")
            name = place(uid, "session", "create", "-p", "base", "--network", "none").exits(0).out.strip()
            try:
                place(uid, "session", "exec", name, "--", "echo", "hi").exits(0).says("hi\n")
                place(uid, "run", "--remote", "-p", "base", "--network", "none", "--", "echo", "there").exits(0).says("there\n")
                place(uid, "session", "end", name).exits(0)
            finally:
                place.end_service(uid)


@test("if no other place is left, the error and doctor name the directory in /dev/shm, its owner and the remedy", who="root")
def _():
    with Planted(65534) as place:
        os.rmdir(place.root + "/run/user/65534")
        words = ("/dev/shm/cejail-65534'", "uid 65533", "XDG_RUNTIME_DIR")
        refused(place(65534, "session", "create", "-p", "base"), "none can be started", *words)
        refused(place(65534, "ps"), *words)
        refused(place(65534, "run", "--remote", "--", "true"), "no service listens", "/dev/shm/cejail-65534", "uid 65533")
        doctor = place(65534, "doctor").out
        for word in words:
            contains(doctor, word, "doctor")
        place(65534, "run", "-p", "base", "--network", "none", "--", "echo", "hi").exits(0).says("hi\n")


@test("the root of a user's own user namespace does not take the host root's name in /dev/shm", who="root")
def _():
    with Planted() as place:
        done = place(65532, "run", "-p", "base", "--network", "none", "--", "echo", "hi", before=("unshare", "-r"))
        if done.code == 125 and "user namespace" in done.err:
            raise Skip(done.err.strip())
        done.exits(0).says("hi\n")
        equal(os.listdir(place.root + "/dev/shm"), ["cejail-65532"], "what is in /dev/shm")


class Liar:
    """Something that listens and is no service: it answers the same to every request."""

    def __init__(self, folder, answer):
        self.path, self.answer = folder / "liar.sock", answer
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(self.path)
        self.sock.listen(5)

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return f"--remote={self.path}"

    def serve(self):
        while True:
            try:
                connection, _ = self.sock.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                try:
                    connection.sendall(self.answer)
                except OSError:
                    pass

    def __exit__(self, *unused):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        os.unlink(self.path)


@test("an answer that is no session, no list or no exec is an error, and what is printed of it is escaped")
def _():
    verbs = (
        ("create", "-p", "base"), ("list",), ("list", "s"), ("ls", "s"), ("exec", "-d", "s", "--", "true"), ("wait", "s", "e"),
    )  # fmt: skip
    answers = (b"", b"nonsense", b"HTTP/1.1 200 OK\r\n\r\n[]", b"HTTP/1.1 200 OK\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
               b"HTTP/1.1 200 OK\r\n\r\n{\"id\": 7, \"sessions\": 1, \"execs\": {}, \"entries\": \"x\", \"state\": \"finished\"}")  # fmt: skip
    with Folder() as f:
        for answer in answers:
            for verb in verbs:
                if verb[0] == "exec" and answer.endswith(b"}") and b"Length" not in answer:
                    continue  # the id is ours
                with Liar(f, answer) as remote:
                    cejail("session", verb[0], remote, *verb[1:]).exits(125)
                    tried()
        with Liar(f, b'HTTP/1.1 201 OK\r\n\r\n{"id": "a\\u001b[1m\\nb"}') as remote:
            cejail("session", "create", remote, "-p", "base").exits(0).says("a\\x1b[1m\\x0ab\n")
        with Liar(f, b'HTTP/1.1 200 OK\r\n\r\n{"sessions": [{"id": "\\u001b]0;x\\u0007", "state": null}, 7]}') as remote:
            lacks(cejail("session", "list", remote).exits(0).out, "\x1b", "the list")
