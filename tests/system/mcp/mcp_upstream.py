# SPDX-License-Identifier: Apache-2.0
"""The broker of `--tools-from`: cejail as the client of MCP servers, of good ones and of bad ones."""

import json
import os
import re
import shutil
import signal
import socket
import sys
import tempfile

from harness import *  # noqa: F403
from mcp_client import META, MODERN, Server, facts_of

HERE = os.path.dirname(os.path.abspath(__file__))
FAKE = f"{HERE}/fake_server.py"
PROGRAM = os.path.join(os.path.dirname(os.path.dirname(CEJAIL)), "libexec/cejail/mcp")


def fake(kind, **more):
    """The entry of a server in servers.json."""
    return {"command": sys.executable, "args": [FAKE, kind], **more}


def failure_of(text):
    """What a broker writes in place of its list: a struct cj_error, here without the code and the stage."""
    return "" if text.startswith(b"{") else text[28:].decode(errors="replace").replace("\0", "") or "the broker died"


class Broker:
    """`mcp broker` with these servers, while the block runs."""

    def __init__(self, env=None, **servers):
        self.servers, self.number, self.kept = servers, 0, {}
        self.env = env or environment()

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump({"mcpServers": self.servers}, self.file)
        self.file.flush()
        self.log = tempfile.TemporaryFile()
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [PROGRAM, "broker", "--tools-from", self.file.name, "--calls-fd", str(theirs.fileno())],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, pass_fds=[theirs.fileno()], env=self.env)  # fmt: skip
        theirs.close()
        ours.settimeout(60 * SLOW)
        self.socket, self.answers = ours, ours.makefile("rb")
        text = self.process.stdout.read()
        self.process.stdout.close()
        self.failure = failure_of(text)
        self.tools = None if self.failure else {tool["name"]: tool for tool in json.loads(text)["tools"]}
        return self

    def __exit__(self, kind, *unused):
        self.answers.close()
        self.socket.close()
        self.code = await_exit(self.process)
        self.log.seek(0)
        self.error = self.log.read().decode(errors="replace")
        self.log.close()
        self.file.close()
        if kind is None and self.tools is not None:
            equal(self.code, 0, f"the exit status ({self.error!r})")

    def send(self, message):
        self.socket.sendall((message if isinstance(message, str) else json.dumps(message)).encode() + b"\n")

    def begin(self, name, **arguments):
        self.number += 1
        self.send({"id": self.number, "name": name, "arguments": arguments})
        return self.number

    def answer(self, number):
        while number not in self.kept:
            line = self.answers.readline()
            true(line, "the broker closed the socket")
            answer = json.loads(line)
            self.kept[answer["id"]] = answer
        return self.kept.pop(number)

    def call(self, name, **arguments):
        answer = self.answer(self.begin(name, **arguments))
        return answer["result"] if "result" in answer else Failed(answer["error"]["message"])


class Failed(str):
    """The message of an error."""


def is_gone(pid):
    return not os.path.exists(f"/proc/{pid}")


@test("mcp_upstream: servers of both eras list and answer; names, values and arguments are those of the contract")
def _():
    with Broker(**{"a.b": fake("good", allow=["delete*"]), "new": fake("modern", deny=["env"])}) as b:
        equal(sorted(b.tools)[:3], ["a_b.bad", "a_b.delete_it", "a_b.echo"], "the names")
        true("new.env" not in b.tools and "new.delete_it" not in b.tools, "a tool is offered that is denied, or not allowed")
        equal(b.tools["a_b.echo"], {"name": "a_b.echo", "description": "Returns its arguments.", "inputSchema": {"type": "object"},
                                    "annotations": {"readOnlyHint": True}}, "the tool")  # fmt: skip
        for server in ("a_b", "new"):
            equal(b.call(f"{server}.echo", x=[1, {"y": "\u20ac"}]), {"x": [1, {"y": "\u20ac"}]}, "the value")
            equal(b.call(f"{server}.fail"), Failed("it did not work"), "the error")
            true(isinstance(b.call(f"{server}.fail"), Failed), "isError became a value")
        equal(b.call("a_b.delete_it"), "done: delete it", "the text")
        for name in ("new.delete_it", "new.env", "echo", ""):
            contains(b.call(name), "there is no such tool", "the error")
        equal(b.call("a_b.seen"), {"methods": ["notifications/initialized"]}, "what the server was told")
    contains(b.error, "cejail: the server 'a.b': hello\n", "the log")


@test("mcp_upstream: several calls are answered in any order; an ended call is cancelled")
def _():
    with Broker(one=fake("good"), two=fake("good")) as b:
        slow = b.begin("one.sleep", seconds=1)
        quick = b.begin("two.echo", x=1)
        equal(b.answer(quick)["result"], {"x": 1}, "the quick one")
        true(slow not in b.kept, "the slow one came first")
        equal(b.answer(slow)["result"], "awake", "the slow one")
        ended = b.begin("two.sleep", seconds=0.5)
        b.call("one.echo")  # so it has been sent
        b.send({"id": ended, "ended": "timeout"})
        contains(b.call("two.seen")["methods"], "notifications/cancelled", "what the server was told")
        true(ended not in b.kept, "an answer to a call that had ended")


@test("mcp_upstream: a server has a small environment and its own variables, and nothing else")
def _():
    with Broker(environment(XDG_SESSION_ID="7"), one=fake("good", env={"TOKEN": "t", "LANG": "C"}, cwd="/")) as b:
        env = b.call("one.env")
    allowed = {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "TOKEN"}
    equal(set(env) - allowed, set(), "further variables")
    equal((env["TOKEN"], env["LANG"], env["PATH"]), ("t", "C", environment()["PATH"]), "the variables")


BAD = {
    "garbage": "sent a line that is no message of MCP",
    "half": "has ended with status 3",
    "deep": "sent a line that is no message of MCP",
    "huge": "sent a line of more than 16777216 bytes",
    "wrongid": "which was never sent",
    "flood": "messages that nobody asked for",
    "dies": "has ended with status 7; cejail's messages have what it wrote",
    "killed": "has ended with status 137",
    "closes": "closed its standard input or output",
}

for bad in BAD:

    @test(f"mcp_upstream: a server that goes wrong ({bad}) fails its calls with one sentence, is started again, and harms no other")
    def _(bad=bad):
        with Broker(bad=fake(bad), good=fake("good")) as b:
            first = b.call("bad.pid")
            said = b.call("bad.bad")
            contains(said, f"the server 'bad' {BAD[bad]}" if not BAD[bad].startswith(("which", "messages")) else BAD[bad], "the error")
            contains(said, "; call again, and cejail starts it anew", "the error")
            lacks(said, "out of luck", "what the program reads")
            true(isinstance(said, Failed) and "\n" not in said, f"no sentence: {said!r}")
            equal(b.call("good.echo", x=1), {"x": 1}, "the other server")
            second = b.call("bad.pid")
            true(second.isdigit() and second != first, f"it was not started again: {first} {second}")
            wait_until(lambda: is_gone(first), "the end of the first process")


@test("mcp_upstream: a silent server is given up after its timeout, and other calls go on")
def _():
    with Broker(one=fake("silent", timeout="4s")) as b:
        said = b.call("one.bad")
        contains(said, "the server 'one' did not answer within ", "the error")
        contains(said, "raise its \"timeout\"", "the remedy")
        contains(b.call("one.seen")["methods"], "notifications/cancelled", "what the server was told")


@test("mcp_upstream: a server that fails twice has to wait before it is started again")
def _():
    with Broker(one=fake("dies")) as b:
        b.call("one.bad")
        contains(b.call("one.bad"), "cejail starts it anew in ", "the second error")
        contains(b.call("one.bad"), "cejail starts it anew in ", "the third error")


def start_fails(*words, **servers):
    with Broker(**servers) as b:
        equal(b.tools, None, "the list")
    equal(b.code, 125, "the exit status")
    for word in words:
        contains(b.failure, word, "the error")


@test("mcp_upstream: a server that cannot start, a wrong pattern and a contradiction are named at the start")
def _():
    start_fails("the server 'one' has ended with status 127", "cannot execute 'no-such-program': No such file", one={"command": "no-such-program"})
    start_fails("the server 'one' has ended with status 127", "cannot enter '/nowhere'", one=fake("good", cwd="/nowhere"))
    start_fails("the server 'one' has ended with status 7", one=fake("start-dies"))
    start_fails("the server 'one' did not answer tools/list within", one=fake("start-silent", timeout="4s"), two=fake("good"))
    start_fails("the server 'one' has no tool that the \"allow\" pattern 'ecco' matches", "one of its 8 tools is", one=fake("good", allow=["ecco"]))
    start_fails("the tool 'echo' of the server 'one' is allowed by 'e*' and denied by '*o'", one=fake("good", allow=["e*"], deny=["*o"]))
    start_fails("cejail has no TLS", "mcp-remote", one={"url": "https://example.com/mcp"})
    start_fails("unknown key 'mcpServers.one.alow'", one=fake("good", alow=[]))


@test("mcp_upstream: a server for whose tools the list has no room is left out with a warning")
def _():
    for kind, what in ("large", "bytes"), ("many", "values"):
        with Broker(one=fake(kind), two=fake(kind), three=fake("good")) as b:
            equal({name.split(".")[0] for name in b.tools}, {"one", "three"}, "the servers")
            equal(b.call("one.echo", x=1), {"x": 1}, "the value")
            contains(b.call("two.echo"), "there is no such tool", "the error")
        contains(b.error, f"warning: the list of tools has no room for the {what} of the server 'two'; its tools are left out", "the warning")


@test("mcp_upstream: all servers together have 1024 tools at most, and one server 500")
def _():
    with Broker(one=fake("tools-500"), two=fake("tools-500"), three=fake("tools-25"), four=fake("tools-24")) as b:
        equal(len(b.tools), 1024, "the number of tools")
        equal({name.split(".")[0] for name in b.tools}, {"one", "two", "four"}, "the servers")
        equal(b.call("four.t23"), "done: t23", "the text")
        contains(b.call("three.t0"), "there is no such tool", "the error")
    contains(b.error, "warning: the list of tools has no room for the tools of the server 'three'; its tools are left out", "the warning")
    start_fails("the server 'one' has more than 500 tools", one=fake("tools-501"))


@test("mcp_upstream: of what a server wrote before it ended, 64 KiB are read at once")
def _():
    def is_stopped():
        children = [describe_process(pid) or "" for pid in children_of(checked.pid)]
        return "(T)" in (describe_process(checked.pid) or "") and children and all("(Z)" in child for child in children)

    with tempfile.TemporaryDirectory() as folder:
        checked = start("mcp", "--tools-from", servers_file(folder, one=fake("start-loud")), "--check")
        try:
            wait_until(is_stopped, "the end of the server", 30)
        finally:
            checked.send_signal(signal.SIGCONT)
            done = finish(checked).exits(125)
    [last] = re.findall("the server 'one' has ended with status 7; its last line is 'line ([0-9]+)'", done.err)
    between(int(last), 100, 2000, "the last line of 9000 that was read")


@test("mcp_upstream: a --calls-fd that cannot be watched is refused in one line, with the remedy")
def _():
    with tempfile.TemporaryFile() as file, tempfile.TemporaryDirectory() as folder:
        fd = file.fileno()
        words = [PROGRAM, "broker", "--tools-from", servers_file(folder, one=fake("good")), "--calls-fd", str(fd)]
        done = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[fd], env=environment())
        failure = failure_of(finish(done).exits(125).raw_out)
        for word in (f"--calls-fd {fd}: ", "pass one end of socketpair"):
            contains(failure, word, "the error")


def stubborn_pids(b):
    server = int(b.call("one.pid"))
    return [server, *wait_until(lambda: children_of(server), "the second process")]


@test("mcp_upstream: nothing of a server stays, not even what ignores SIGTERM in a session of its own")
def _():
    with Broker(one=fake("stubborn")) as b:
        pids = stubborn_pids(b)
    equal([pid for pid in pids if not is_gone(pid)], [], "processes that are left")


@test("mcp_upstream: nothing of a server stays when the broker is killed or told to end")
def _():
    for number in (signal.SIGKILL, signal.SIGTERM):
        with Broker(one=fake("stubborn"), two=fake("good")) as b:
            pids = [*stubborn_pids(b), int(b.call("two.pid"))]
            b.process.send_signal(number)
            wait_until(lambda pids=pids: all(map(is_gone, pids)), "the end of the servers")
            b.tools = None


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return int(re.search("^VmHWM:\\s+([0-9]+) kB$", file.read(), re.M)[1]) >> 10


@test("mcp_upstream: a server may not read: its calls wait, and the broker's memory does not grow")
def _():
    with Broker(one=fake("unread", timeout=scaled(1.5)), two=fake("good")) as b:
        stuck = [b.begin("one.bad")] + [b.begin("one.pid", x="y" * 1000000) for _ in range(60)]
        equal(b.call("two.echo", x=1), {"x": 1}, "the other server")
        # the arguments of 60 calls, and 8 MiB of them in the queue to the server
        true(peak_mib(b.process.pid) < 82, f"the broker had {peak_mib(b.process.pid)} MiB")
        contains(b.answer(stuck[0])["error"]["message"], "the server 'one' has not read what it was sent for ", "the error")
        for number in stuck[1:]:  # those that came after its end are for its next process
            b.answer(number)


@test("mcp_upstream: a server that writes much before it reads on gets all its calls")
def _():
    with Broker(one=fake("late", timeout=scaled(2))) as b:
        begun = [b.begin("one.bad")] + [b.begin("one.echo", x="y" * 1000000) for _ in range(14)]
        for number in begun[1:]:
            true("result" in b.answer(number), "a call failed")
        b.send({"id": begun[0], "ended": "cancelled"})


@test("mcp_upstream: a line of the socket that is no call ends the broker")
def _():
    for line in ("", "x", "[]", '{"name":"one.echo"}'):
        with Broker(one=fake("good")) as b:
            b.send(line)
            equal(b.answers.read(), b"", "an answer")


class Web:
    """The fake server over HTTP, while the block runs; `entry` is for servers.json."""

    def __init__(self, kind):
        self.process = subprocess.Popen([sys.executable, FAKE, kind], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def entry(self, **more):
        return {"url": f"http://localhost:{self.port}/mcp", "headers": {"X-Key": "secret"}, **more}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@test("mcp_upstream: servers of both eras answer over HTTP, as JSON and as events")
def _():
    with Web("http") as old, Web("http-modern") as new, Broker(old=old.entry(allow=["delete*"]), new=new.entry(allow=["delete*"])) as b:
        for server in ("old", "new"):
            equal(b.tools[f"{server}.echo"]["description"], "Returns its arguments.", "the description")
            equal(b.call(f"{server}.echo", x=["\u20ac", 1]), {"x": ["\u20ac", 1]}, "the value")
            equal(b.call(f"{server}.fail"), "it did not work", "the error")
            equal(b.call(f"{server}.delete_it"), "done: delete it", "a name with a blank")
        equal(b.call("old.seen")["methods"], ["notifications/initialized"], "what the server was told")
        number = b.begin("old.sleep", seconds=1)
        equal(b.call("old.echo", x=1), {"x": 1}, "a second call")
        equal(b.answer(number)["result"], "awake", "the first call")


@test("mcp_upstream: a session given with a stream of events is kept, and the reply to a notification is not read")
def _():
    with Web("http-events") as web, Broker(one=web.entry()) as b:
        equal(b.call("one.echo", x=1), {"x": 1}, "the value")
        wait_until(lambda: "closed" in b.call("one.seen")["methods"], "the end of the reply")


@test("mcp_upstream: a session that the server has forgotten is opened again, and one that ends is deleted")
def _():
    with Web("http") as web:
        with Broker(old=web.entry()) as b:
            request = f"DELETE /mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: s-1\r\nConnection: close\r\n\r\n"
            with socket.create_connection(("127.0.0.1", web.port)) as s:
                s.sendall(request.encode())
                contains(s.recv(1000), b"204", "the answer")
            contains(b.call("old.echo"), "has ended the session; call again", "the error")
            equal(b.call("old.echo", x=1), {"x": 1}, "the next call")


@test("mcp_upstream: an error of HTTP, a server that is gone and a wrong header are one sentence")
def _():
    with Web("http") as web:
        start_fails("HTTP status 400", one=web.entry(headers={}))
        with Broker(one=web.entry()) as b:
            web.process.kill()
            web.process.wait()
            contains(b.call("one.echo"), "the server 'one' cannot be reached: Connection refused; call again", "the error")


def official(name, *args, **more):
    """A server of the npm packages that tests/packages fetches."""
    clients = os.environ.get("CEJAIL_MCP_CLIENTS", f"{PROBES}/../packages")
    node = shutil.which("node")
    if not node:
        raise Skip("node is not installed")
    if not os.path.exists(f"{clients}/fetched"):
        raise Skip("the MCP servers are not here: tests/packages fetches them")
    return {"command": node, "args": [f"{clients}/node_modules/@modelcontextprotocol/server-{name}/dist/index.js", *args], **more}


@test("mcp_upstream: the official servers everything, filesystem and memory are called side by side", limit=120)
def _():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/note.txt", "w", encoding="utf-8") as file:
            file.write("remember the milk")
        servers = {
            "everything": official("everything", allow=["echo", "get-sum"]),
            "files": official("filesystem", folder, deny=["write_file"]),
            "memory": official("memory", env={"MEMORY_FILE_PATH": f"{folder}/memory.json"}, allow=["create_entities"]),
        }
        with Broker(**servers) as b:
            true("files.write_file" not in b.tools and "memory.delete_entities" not in b.tools, "a tool is offered that is denied, or not allowed")
            contains(b.call("everything.echo", message="hi"), "hi", "the echo")
            contains(b.call("everything.get-sum", a=2, b=3), "5", "the sum")
            numbers = [b.begin("files.read_text_file", path=f"{folder}/note.txt") for _ in range(10)]
            for number in numbers:
                equal(b.answer(number)["result"]["content"], "remember the milk", "the file")
            contains(b.call("files.read_text_file", path="/etc/passwd"), "Access denied", "the error")
            b.call("memory.create_entities", entities=[{"name": "milk", "entityType": "food", "observations": ["white"]}])
            equal(b.call("memory.read_graph")["entities"][0]["name"], "milk", "the graph")


# --- cejail mcp --tools-from ---------------------------------------------------

CALLER = """
import json, os, socket
s = socket.socket(fileno=int(os.environ["CEJAIL_CALLS_FD"]))
answers = s.makefile("rb")
def call(name, **arguments):
    s.sendall(json.dumps({"id": 1, "name": name, "arguments": arguments}).encode() + b"\\n")
    answer = json.loads(answers.readline())
    return answer.get("result", answer.get("error"))
"""


def servers_file(folder, **servers):
    path = f"{folder}/servers.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"mcpServers": servers}, file)
    return path


@test("mcp_upstream: a program of run_python loops over the calls of two servers in one call of the model", limit=120)
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = servers_file(folder, one=fake("good", allow=["delete*"]), two=fake("modern"))
        with Server("-p", "python", "--network", "none", "--tools-from", path) as s:
            [tool] = [tool for tool in s.ask("tools/list")["result"]["tools"] if tool["name"] == "run_python"]
            contains(tool["description"], " by server: one: echo, env, fail, sleep, bad, pid, seen, delete_it; two: echo, ", "the description")
            lacks(tool["description"], "Returns its arguments", "the description")
            code = CALLER + "print(sum(call('one.echo', i=i)['i'] + call('two.echo', i=i)['i'] for i in range(15)))\nprint(call('two.fail'))"
            for _ in range(2):  # cold, and prepared
                equal(facts_of(s.call("run_python", code=code))["stdout"], "210\n{'message': 'it did not work'}\n", "the output")
            code = CALLER + "print(call('two.delete_it'))\nprint(call('one.delete_it'))"
            out = facts_of(s.call("run_python", code=code))["stdout"].splitlines()
            true("error" in out[0] or "message" in out[0], f"a tool was called that is not offered: {out[0]}")
            equal(out[1], "done: delete it", "the text")
            number = s.call_later("run_python", code=CALLER + "call('one.sleep', seconds=600)")
            s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            equal(facts_of(s.call("run_python", code="print(1)"))["stdout"], "1\n", "the next call")
            pids = s.below()
        equal([pid for pid in pids if describe_process(pid)], [], "processes that are left")


@test("mcp_upstream: a refused tool, a dead server, a slow one and a run that ends during a call are one sentence each, which says what to do", limit=120)
def _():
    with tempfile.TemporaryDirectory() as folder:
        slow = fake("good", timeout=scaled(0.8))
        path = servers_file(folder, one=fake("dies", env={"STARTS": f"{folder}/starts"}), two=slow, three=fake("good"))
        with Server("-p", "python", "--network", "none", "--tools-from", path) as s:
            for code, said, remedy in (
                ("tools.call('one.delete_it')", "this run has no tool 'one.delete_it'", ": tools.json lists them"),
                ("tools.call('one.bad')", "the server 'one' has ended with status 7; ", "; call again, and cejail starts it anew"),
                ("tools.call('two.sleep', seconds=600)", "the server 'two' did not answer within ", "; ask it for less, or raise its \"timeout\" in the list of servers"),
            ):  # fmt: skip
                facts = facts_of(s.call("run_python", code="import tools\n" + code))
                last = facts["stderr"].splitlines()[-1]
                true(last.startswith(f"tools.ToolError: {said}") and last.endswith(remedy), f"the program says {last!r}")
                equal(facts["message"], "The program exited with status 1; stderr says why.", "the message")
                tried()
            facts = facts_of(s.call("run_python", code="import tools\ntools.call('three.sleep', seconds=600)", timeout_seconds=2))
            equal(facts["status"], "timeout", "the status")
            contains(facts["message"], "timeout_seconds", "the message")


@test("mcp_upstream: --check lists the tools, and fails with the server that does; a server that fails is only left out else", limit=120)
def _():
    with tempfile.TemporaryDirectory() as folder:
        good = servers_file(folder, one=fake("good"))
        done = cejail("mcp", "--tools-from", good, "--check").exits(0)
        equal(done.out, "".join(f"one.{name}\n" for name in ("echo", "env", "fail", "sleep", "bad", "pid", "seen")), "the names")
        mixed = servers_file(folder, one=fake("good"), two=fake("start-dies"))
        done = cejail("mcp", "--tools-from", mixed, "--check").exits(125)
        contains(done.out, "one.echo\n", "the names")
        contains(done.err, "cejail: the server 'two' has ended with status 7", "the error")
        with Server("-p", "python", "--tools-from", mixed) as s:
            contains(json.dumps(s.ask("tools/list")), " by server: one: echo", "the description")
        contains(s.error, "warning: the server 'two' has ended with status 7; its last line is 'out of luck'; its tools are left out", "the warning")
        refused(cejail("mcp", "--check"), "--check: it needs --tools-from FILE")


@test("mcp_upstream: a client that leaves while the servers start ends them")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = servers_file(folder, one=fake("start-silent"))
        with Server("-p", "python", "--tools-from", path) as s:
            s.request("tools/list")
            wait_until(lambda: any("python" in (describe_process(pid) or "") for pid in s.below()), "the server")
            pids = s.below()
        equal([pid for pid in pids if describe_process(pid)], [], "processes that are left")


@test("mcp_upstream: servers start side by side at the first tools/list or call, each once, and again after they died", limit=180)
def _():
    with tempfile.TemporaryDirectory() as folder:
        count = f"{folder}/starts"
        path = servers_file(folder, one=fake("meets", env={"STARTS": count}), two=fake("meets", env={"STARTS": count}))
        starts = lambda: os.path.getsize(count) if os.path.exists(count) else 0  # noqa: E731
        for version in ("2025-11-25", MODERN):
            with Server("-p", "python", "--network", "none", "--tools-from", path, version=version) as s:
                for method in ("ping", "no/such/method", "server/discover")[: 2 if version != MODERN else 3]:
                    s.ask(method)
                equal(starts(), 0, "the starts before the first use")
                begun = [s.request("tools/list"), s.call_later("run_python", code=CALLER + "print(call('one.echo', x=1), call('two.echo', x=2))")]
                equal(facts_of(s.result(begun[1]))["stdout"], "{'x': 1} {'x': 2}\n", "the output")
                contains(json.dumps(s.answer(begun[0])), " by server: one: echo", "the description")
                s.ask("tools/list")
                equal(starts(), 2, "the starts")
            os.unlink(count)
        path = servers_file(folder, one=fake("dies", env={"STARTS": count}))
        with Server("-p", "python", "--network", "none", "--tools-from", path) as s:
            code = CALLER + "print(call('one.bad')['message'])\nprint(call('one.echo', x=1))"
            said, answer = facts_of(s.call("run_python", code=code))["stdout"].splitlines()  # no tools/list before
            contains(said, "the server 'one' has ended with status 7", "the error")
            equal((answer, starts()), ("{'x': 1}", 2), "the answer after it, and the starts")
        os.unlink(count)
        with Server("-p", "python", "--tools-from", path):
            pass
        equal(starts(), 0, "the starts for a client that leaves")


@test("mcp_upstream: a wrong pattern is named at the start if no server is needed for that, else in the log and to the model", limit=120)
def _():
    with tempfile.TemporaryDirectory() as folder:
        for allow, deny in (["echo"], ["e*"]), (["d?lete"], ["delete"]), (["e*"], ["e*"]):
            path = servers_file(folder, one=fake("good", allow=allow, deny=deny))
            for option in ((), ("--check",)):
                said = f"the server 'one' allows '{allow[0]}' and denies '{deny[0]}': change one of the two patterns"
                refused(cejail("mcp", "-p", "python", "--tools-from", path, *option), f"{path}:1:", said)
        path = servers_file(folder, one=fake("good"), two=fake("good", allow=["ecco"]), three=fake("good", allow=["e*"], deny=["*o"]))
        with Server("-p", "python", "--network", "none", "--tools-from", path) as s:
            [tool] = [tool for tool in s.ask("tools/list")["result"]["tools"] if tool["name"] == "run_python"]
            contains(tool["description"], f"The tools of 'two', 'three' are missing: ", "the description")
            contains(tool["description"], f"'cejail mcp --tools-from {path} --check'", "the remedy")
            equal(facts_of(s.call("run_python", code=CALLER + "print(call('one.echo', x=1))"))["stdout"], "{'x': 1}\n", "the other server")
        contains(s.error, "warning: the server 'two' has no tool that the \"allow\" pattern 'ecco' matches; its tools are left out", "the log")
        contains(s.error, "warning: the tool 'echo' of the server 'three' is allowed by 'e*' and denied by '*o'; its tools are left out", "the log")
        path = servers_file(folder, two=fake("start-dies"))
        with Server("-p", "python", "--tools-from", path) as s:
            text = json.dumps(s.ask("tools/list"))
            contains(text, "The tools of 'two' are missing: ", "the description without any tool")
            lacks(text, "out of luck", "what the model reads")


@test("mcp_upstream: messages that come while servers start are answered after it, in the order of a client that waits for none", limit=120)
def _():
    with tempfile.TemporaryDirectory() as folder:
        with Server("-p", "python", "--tools-from", servers_file(folder, one=fake("good")), version=MODERN) as s:
            head = {"jsonrpc": "2.0", "params": {"_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}}}
            lines = [json.dumps({**head, "id": i, "method": method}) for i, method in enumerate(("server/discover", "tools/list", "server/discover", "tools/list"))]
            text = "\n".join(lines).encode() + b"\n"
            s.write(text + lines[0][:40].encode())  # the half of a line waits, too
            equal([s.line()["id"] for _ in range(4)], [0, 1, 2, 3], "the answers")
            s.write(lines[0][40:].encode() + b"\n")
            equal(s.line()["id"], 0, "the last answer")
