# SPDX-License-Identifier: Apache-2.0
"""--tools and --calls-fd: what a program writes on its descriptor, and what its caller reads and answers.

The same through a service: cejail-tools(7), "Over HTTP", has the differences.
"""

import json
import os
import re
import select
import shutil
import socket
import subprocess
import threading

from harness import *  # noqa: F403

PREFIX = os.path.dirname(os.path.dirname(CEJAIL))
ECHO = {"name": "echo", "description": "Returns its arguments"}
TOOLS = [ECHO, {"name": "github.search", "inputSchema": {"type": "object"}}]
LINE_MAX = 1 << 20
# What every program here begins with: its end of the protocol, without the modules.
INSIDE = """
import json, os, socket, sys, time
sock = socket.socket(fileno=int(os.environ["CEJAIL_CALLS_FD"]))
lines = sock.makefile("rb")
def send(value):
    sock.sendall(value if isinstance(value, bytes) else json.dumps(value).encode() + b"\\n")
def read():
    return json.loads(lines.readline() or b"null")
def call(id, name="echo", **arguments):
    send({"id": id, "name": name, "arguments": arguments})
def ask(value):
    send(value)
    return read()
def why(value):
    answer = ask(value)
    print(json.dumps(answer["id"]), answer["error"]["message"])
"""


class Caller:
    """The caller's end, in a thread: `answer` gets (caller, the call as an object) for each line."""

    def __init__(self, answer):
        self.answer, self.raw, self.calls, self.problem = answer, [], [], None
        self.sock, self.theirs = socket.socketpair()
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self):
        try:
            for line in self.sock.makefile("rb"):
                self.raw.append(line)
                self.calls.append(json.loads(line))
                self.answer(self, self.calls[-1])
        except OSError:
            pass  # the run has ended
        except Exception as problem:  # of this test, in another thread
            self.problem = problem

    def send(self, value):
        self.sock.sendall(value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n")

    def give(self, call, result):
        self.send({"id": call["id"], "result": result})

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)


def echo(caller, call):
    if "name" in call:
        caller.give(call, call["arguments"])


def silent(_caller, _call):
    pass


def start_calling(caller, *args, tools=TOOLS, verb=("run", "--network", "none"), limit=30, **more):
    """A run, or with `verb` an exec, whose calls `caller` answers."""
    with Folder() as place:
        path = place.file("tools.json", json.dumps(tools))
        fd = caller.theirs.fileno()
        process = start(*verb, "--json", "--tools", path, "--calls-fd", str(fd), *args, pass_fds=[fd, *more.pop("fds", ())], **more)
        caller.thread.start()
        done = finish(process, limit, args=args)
    caller.theirs.close()
    caller.thread.join(10 * SLOW)
    true(not caller.thread.is_alive(), "the caller's end was not closed with the run")
    if caller.problem:
        raise caller.problem
    return done


def calling(code, answer=echo, *options, **more):
    """(the result, the caller) of a program whose calls are answered."""
    caller = Caller(answer)
    done = start_calling(caller, "-p", "python", *options, "-c", INSIDE + code, **more)
    lacks(done.err, SECRET, "standard error")
    value = parse_result(done.out, done)
    return value, caller


def printed(value):
    if value["status"] != "exited" or value["exit_code"] != 0:
        raise Failure(f"the program failed: {value['status']} {value['stderr']}")
    return value["stdout"]["text"]


def counts(value):
    return {row["name"]: (row["count"], row["failed"], row["refused"]) for row in value["calls"]}


# --- answers --------------------------------------------------------------------------


@test("a program calls a tool by a line on its descriptor, and the result counts the call")
def _():
    value, caller = calling("print(ask({'id': 'a', 'name': 'echo', 'arguments': {'n': 1}}), ask({'id': 0, 'name': 'echo'}))")
    equal(printed(value), "{'id': 'a', 'result': {'n': 1}} {'id': 0, 'result': {}}\n", "answers")
    equal(caller.calls, [{"id": 1, "name": "echo", "arguments": {"n": 1}}, {"id": 2, "name": "echo", "arguments": {}}], "the caller's calls")
    equal(counts(value), {"echo": (2, 0, 0)}, "calls")


@test("arguments and results pass byte for byte")
def _():
    odd = '{"n": 1.50,  "big":123456789012345678901234567890,"e":1E2, "t":"\\u00e9\\ud83d\\ude00 é"}'
    value, caller = calling(f"send(b'{{\"id\":1,\"name\":\"echo\",\"arguments\":' + {odd!r}.encode() + b'}}\\n'); print(lines.readline())",
                            lambda caller, call: caller.send(f'{{ "result": {odd} , "id":{call["id"]}}}\n'.encode()))  # fmt: skip
    equal(printed(value), repr(f'{{"id":1,"result":{odd}}}\n'.encode()) + "\n", "the answer")
    contains(caller.raw[0], odd.encode(), "the caller's line")


@test("the caller answers several calls in any order")
def _():
    waiting = []

    def answer(caller, call):
        waiting.append(call)
        if len(waiting) == 10:
            for late in reversed(waiting):
                caller.give(late, late["arguments"]["n"] * 2)

    value, _ = calling("for n in range(10): call(f'c{n}', n=n)\nprint([(a['id'], a['result']) for a in (read() for _ in range(10))])", answer)
    equal(printed(value), f"{[(f'c{n}', n * 2) for n in reversed(range(10))]}\n", "answers")


@test("an error of the caller is the call's, and counts as failed")
def _():
    value, _ = calling("print(ask({'id': 1, 'name': 'github.search'}))",
                       lambda caller, call: caller.send({"id": call["id"], "error": {"message": "no such \"issue\"\n", "code": 7}}))  # fmt: skip
    equal(printed(value), "{'id': 1, 'error': {'message': 'no such \"issue\"\\n'}}\n", "the answer")
    equal(counts(value), {"github.search": (1, 1, 0)}, "calls")


@test("an answer of 15 MiB reaches a program that reads slowly")
def _():
    value, _ = calling("call(1)\ntime.sleep(0.5)\nprint(len(read()['result']))", lambda caller, call: caller.give(call, "x" * (15 << 20)), "-m", "1G", "-t", scaled(30))
    equal(printed(value), f"{15 << 20}\n", "the size of the answer")


@test("an answer to a call that has ended, or that never was, is ignored")
def _():
    def answer(caller, call):
        for number in (call["id"] + 1, 0, 2**63):
            caller.send({"id": number, "result": "forged"})
        caller.give(call, "first")
        caller.give(call, "second")

    value, _ = calling("print(ask({'id': 1, 'name': 'echo'}), ask({'id': 2, 'name': 'echo'}))", answer)
    equal(printed(value), "{'id': 1, 'result': 'first'} {'id': 2, 'result': 'first'}\n", "answers")


# --- what is refused --------------------------------------------------------------------


@test("a name that is not on the list never reaches the caller")
def _():
    names = ["nope", "ECHO", "echo ", "github", "", "x" * 500, "é" * 100, "a\x01\x1b[31m\"\\"]
    value, caller = calling(f"for n in {names!r}: why({{'id': n[:9], 'name': n}})")
    contains(printed(value), "this run has no tool 'nope'", "the errors")
    equal(caller.calls, [], "the caller's calls")
    equal(counts(value)["nope"], (0, 0, 1), "the row of a name")
    equal(sum(row["refused"] for row in value["calls"]), len(names), "refused calls")


@test("a name of which a limit cuts a character gets its error, too")
def _():
    value, _ = calling("why({'id': 1, 'name': 'x' * 127 + 'é'})\nwhy({'id': 2, 'name': 'x' * 126 + '€' * 300})\nprint(ask({'id': 3, 'name': 'echo'}))")
    contains(printed(value), "{'id': 3, 'result': {}}", "the answers")
    equal(sum(row["refused"] for row in value["calls"]), 2, "refused calls")


@test("of more than 16 unknown names the rest have one row")
def _():
    value, _ = calling("for n in range(30): ask({'id': n, 'name': f'n{n}'})")
    printed(value)
    equal(len(value["calls"]), 17, "rows")
    equal(counts(value)[None], (0, 0, 14), "the rest")


BAD_LINES = (
    (b"{broken\n", "call:1:"),
    (b"\n", ""),
    (b"[1]\n", "a call is one JSON object"),
    (b"7\n", "a call is one JSON object"),
    (b"{}\n", '"id" must be'),
    (b'{"id":null,"name":"echo"}\n', '"id" must be'),
    (b'{"id":-1,"name":"echo"}\n', '"id" must be'),
    (b'{"id":1.5,"name":"echo"}\n', '"id" must be'),
    (b'{"id":1e2,"name":"echo"}\n', '"id" must be'),
    (b'{"id":9007199254740992,"name":"echo"}\n', '"id" must be'),
    (b'{"id":12345678901234567890123,"name":"echo"}\n', '"id" must be'),
    (b'{"id":"' + b"x" * 65 + b'","name":"echo"}\n', '"id" must be'),
    (b'{"id":"\\u0000","name":"echo"}\n', ""),
    (b'{"id":true,"name":"echo"}\n', '"id" must be'),
    (b'{"id":1}\n', '"name" must be'),
    (b'{"id":1,"name":7}\n', '"name" must be'),
    (b'{"id":1,"name":"echo","arguments":[]}\n', '"arguments" must be'),
    (b'{"id":1,"name":"echo","arguments":null}\n', '"arguments" must be'),
    (b'{"id":1,"name":"echo","arguments":"{}"}\n', '"arguments" must be'),
    (b'{"id":1,"name":"echo","more":1}\n', "and no other"),
    (b'{"id":1,"name":"echo","name":"echo"}\n', "duplicate"),
    (b'{"id":1,"name":"echo"} {"id":2,"name":"echo"}\n', ""),
    (b'{"id":1,"name":"\xff"}\n', ""),
    (b'{"id":1,"name":"echo","arguments":' + b'{"a":' * 40 + b"1" + b"}" * 41 + b"\n", ""),
    (b'{"id":1,"name":"echo","arguments":{"a":[' + b"1," * 200000 + b"1]}}\n", ""),
)


@test("each malformed line gets one error, and the next call goes on")
def _():
    code = "for line in open('/box/bad', 'rb'): why(line)\nprint(ask({'id': 1, 'name': 'echo'}))"
    with Folder() as place:
        bad = place.file("bad", b"".join(line for line, _ in BAD_LINES))
        value, caller = calling(code, echo, "-f", f"{bad}:/box/bad")
    found = printed(value).splitlines()
    equal(len(found), len(BAD_LINES) + 1, "lines")
    for (line, words), message in zip(BAD_LINES, found):
        contains(message, words, f"the error of {line[:60]}")
        tried()
    equal((found[-1], len(caller.calls)), ("{'id': 1, 'result': {}}", 1), "the next call")
    equal(sum(row["refused"] for row in value["calls"]), len(BAD_LINES), "refused calls")


@test("every id that is allowed comes back as it was written")
def _():
    ids = [b"0", b"9007199254740991", b'""', b'"' + b"x" * 64 + b'"', b'"\\u00e9\\n"', b'"' + b"\\u0041" * 64 + b'"', '"é"'.encode()]
    value, _ = calling(f"for i in {ids!r}:\n    send(b'{{\"id\":' + i + b',\"name\":\"echo\"}}\\n')\n    print(lines.readline() == b'{{\"id\":' + i + b',\"result\":{{}}}}\\n')")
    equal(printed(value), "True\n" * len(ids), "the answers")


@test("two calls at a time can't have the same id, and one after the other can")
def _():
    def answer(caller, call):
        if call.get("name") == "echo":
            caller.give(call, 1)

    value, _ = calling("call(7, 'github.search'); call(7)\nprint(read()); call('7'); print(read()); call(8); print(read()); call(8); print(read())", answer)
    wanted = ["{'id': null, 'error': {'message': 'two calls have the id 7'}}".replace("null", "None"), "{'id': '7', 'result': 1}",
              "{'id': 8, 'result': 1}", "{'id': 8, 'result': 1}"]  # fmt: skip
    equal(printed(value).splitlines(), wanted, "answers")


@test("a line of 1 MiB with its newline is a call, and one byte more is refused")
def _():
    code = f"""
def line(size):
    head, tail = b'{{"id":1,"name":"echo","arguments":{{"a":"', b'"}}}}\\n'
    return head + b'x' * (size - len(head) - len(tail)) + tail
print(len(ask(line({LINE_MAX}))['result']['a']))
why(line({LINE_MAX} + 1))
why(b'y' * 5000000 + b'\\n')
print(ask({{'id': 2, 'name': 'echo'}}))
"""
    value, caller = calling(code)
    found = printed(value).splitlines()
    equal(found[1:], [f"null a call has more than {LINE_MAX} bytes"] * 2 + ["{'id': 2, 'result': {}}"], "answers")
    true(int(found[0]) > LINE_MAX - 100, f"the long argument has {found[0]} bytes")
    equal((len(caller.calls), counts(value)), (2, {"echo": (2, 0, 0), None: (0, 0, 2)}), "calls")


@test("a call of 131072 values is passed on, and one of more is refused")
def _():
    code = """
for count in (131067, 131068):
    answer = ask({'id': 1, 'name': 'echo', 'arguments': {'a': [0] * count}})
    print(len(answer['result']['a']) if 'result' in answer else answer['error']['message'])
"""
    value, _ = calling(code)
    found = printed(value).splitlines()
    equal(found[0], "131067", "the values of the answer")
    contains(found[1], "more than 131072 values", "the error")


# --- limits ---------------------------------------------------------------------------------


@test("the 51st call is refused")
def _():
    value, caller = calling("for n in range(52): print(ask({'id': n, 'name': 'echo'}).get('error'))")
    equal(printed(value).splitlines()[49:], ["None"] + ["{'message': 'the run has made its 50 calls'}"] * 2, "answers")
    equal((len(caller.calls), counts(value)), (50, {"echo": (50, 0, 2)}), "calls")


@test("--calls-max limits the calls, and refused ones do not count")
def _():
    value, _ = calling("for name in ('no', 'no', 'echo', 'echo', 'echo', 'no'): print('result' in ask({'id': 1, 'name': name}))", echo, "--calls-max", "2")
    equal(printed(value), "False\nFalse\nTrue\nTrue\nFalse\nFalse\n", "answers")


@test("the eleventh call without an answer waits for one of the ten")
def _():
    seen = []

    def answer(caller, call):
        seen.append(call)
        if len(seen) == 10:
            true(not select.select([caller.sock], [], [], 0.3)[0], "an eleventh call came while ten had no answer")
            seen.append("ten alone")
            caller.give(call, "ten")
        elif len(seen) > 11:
            for one in [one for one in seen if isinstance(one, dict)]:
                caller.give(one, "all")

    value, caller = calling("for n in range(11): call(n)\nprint([read()['id'] for _ in range(11)])", answer)
    contains(printed(value), "[9, 0, 1", "the answers")
    equal((len(caller.calls), seen[10]), (11, "ten alone"), "calls")


@test("--calls-rate lets further calls wait for the next second")
def _():
    value, _ = calling("t = time.monotonic()\nfor n in range(5): ask({'id': n, 'name': 'echo'})\nprint(time.monotonic() - t)", echo, "--calls-rate", "2")
    true(float(printed(value)) >= 1.9, f"five calls took {printed(value)} s at two a second")
    equal(counts(value), {"echo": (5, 0, 0)}, "calls")


@test("a call without an answer within --calls-timeout fails, and the caller is told")
def _():
    value, caller = calling("why({'id': 'x', 'name': 'echo'})", silent, "--calls-timeout", "200ms")
    equal(printed(value), '"x" the call was not answered within 200ms\n', "the error")
    equal(counts(value), {"echo": (1, 1, 0)}, "calls")
    equal((caller.calls[-1]["id"], caller.calls[-1]["ended"]), (1, "timeout"), "the caller's last line")


@test("lines that were written together are all read, and a call that waits gets the place of one that is late")
def _():
    value, _ = calling("send(b'x\\n' * 60)\nprint(len([read() for _ in range(60)]))")
    equal(printed(value), "60\n", "errors")
    value, _ = calling("for n in range(25): call(n)\nprint(sorted(read()['id'] for _ in range(25)) == list(range(25)))", silent, "--calls-timeout", "200ms")
    equal((printed(value), counts(value)), ("True\n", {"echo": (25, 25, 0)}), "errors")


@test("the run's time limit ends a call that nobody answers")
def _():
    value, caller = calling("why({'id': 'x', 'name': 'echo'})", silent, "-t", scaled(0.5))
    equal((value["status"], counts(value)), ("timeout", {"echo": (1, 1, 0)}), "the result")
    equal((caller.calls[-1]["id"], caller.calls[-1]["ended"]), (1, "cancelled"), "the caller's last line")


@test("a program that floods and reads nothing ends with its run, and nothing else is held up", limit=90)
def _():
    code = "sock.setblocking(False)\nend = time.monotonic() + 1\nwhile time.monotonic() < end:\n    try: sock.send(b'{\"id\":1}\\n' * 1000)\n    except BlockingIOError: time.sleep(0.01)\nprint('done')"
    value, caller = calling(code)
    equal((printed(value), caller.calls), ("done\n", []), "the run")


# --- ends ------------------------------------------------------------------------------------


@test("half a line at the program's end is no call")
def _():
    value, caller = calling("send(b'{\"id\":1,\"name\":\"echo\"}')")
    equal((printed(value), caller.calls, value["calls"]), ("", [], []), "the run")


@test("a caller that goes away fails the waiting call and the later ones, and the program goes on")
def _():
    value, _ = calling("why({'id': 1, 'name': 'echo'})\nwhy({'id': 2, 'name': 'echo'})\nprint('on')", lambda caller, call: caller.close())
    found = printed(value)
    contains(found, "1 the caller answers no more calls\n2 the caller answers no more calls\non\n", "the answers")
    equal(counts(value), {"echo": (2, 2, 0) if REMOTE else (1, 1, 1)}, "calls")


@test("a caller that reads no more fails the calls at once")
def _():
    def answer(caller, call):
        caller.give(call, 1)
        caller.sock.shutdown(socket.SHUT_RD)

    value, _ = calling("ask({'id': 1, 'name': 'echo'})\ntime.sleep(0.3)\nt = time.monotonic()\nwhy({'id': 2, 'name': 'echo'})\nwhy({'id': 3, 'name': 'echo'})\nprint(time.monotonic() - t < 20)", answer)
    equal(printed(value), "2 the caller answers no more calls\n3 the caller answers no more calls\nTrue\n", "the answers")


RUBBISH = (b"rubbish\n", b"[]\n", b'{"result":1}\n', b'{"id":"1","result":1}\n', b'{"id":1,"result":{"a":' + b"[" * 100 + b"]" * 100 + b"}}\n", b"\xff\n")


@test("a caller that writes rubbish fails the calls, and the program goes on")
def _():
    for line in RUBBISH:
        value, _ = calling("why({'id': 1, 'name': 'echo'})\nwhy({'id': 2, 'name': 'echo'})\nprint('on')", lambda caller, call, line=line: caller.send(line))
        found = printed(value).splitlines()
        contains(found[0], "1 the caller's answer can't be read", f"the error after {line[:20]}")
        contains(found[1], "2 the caller's answer can't be read", f"the error after {line[:20]}")
        equal(found[2], "on", "the program")
        tried()


@test("an answer without a result and without an error fails its call alone")
def _():
    def answer(caller, call):
        caller.send({"id": call["id"], **call["arguments"]})

    value, _ = calling("print('error' in ask({'id': 1, 'name': 'echo'}), 'error' in ask({'id': 2, 'name': 'echo', 'arguments': {'error': 'text'}}),\n"
                       "      ask({'id': 3, 'name': 'echo', 'arguments': {'result': None}}))", answer)  # fmt: skip
    equal(printed(value), "True True {'id': 3, 'result': None}\n", "the answers")


@test("an answer of more than 16 MiB fails the calls")
def _():
    def answer(caller, call):
        try:
            caller.send(b'{"id":1,"result":"' + b"x" * (17 << 20) + b'"}\n')
        except OSError:
            pass

    value, _ = calling("why({'id': 1, 'name': 'echo'})\nprint('on')", answer)
    equal(printed(value), "1 the caller's answer has more than 16 MiB\non\n", "the answers")


@test("a program that closes its descriptor cancels its calls and goes on, without the processor of the supervisor")
def _():
    code = "call(1); time.sleep(0.3)\nlines.close(); sock.close()\ntime.sleep(2)\nprint('on')"
    before = os.times()
    value, caller = calling(code, silent, "--calls-rate", "1")
    after = os.times()
    equal((printed(value), counts(value)), ("on\n", {"echo": (1, 1, 0)}), "the run")
    equal(caller.calls[-1]["ended"], "cancelled", "the caller's last line")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    true(spent < 1.0 * SLOW, f"the run took {spent} s of the processor while the program slept")


@test("a call that is answered after the program has closed its descriptor costs nothing more")
def _():
    def answer(caller, call):
        threading.Event().wait(0.5)
        caller.give(call, 1)

    before = os.times()
    value, _ = calling("call(1); time.sleep(0.2)\nlines.close(); sock.close()\ntime.sleep(3)\nprint('on')", answer, "--calls-rate", "1", "--calls-outstanding", "1")
    after = os.times()
    equal(printed(value), "on\n", "the run")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    true(spent < 1.0 * SLOW, f"the run took {spent} s of the processor while the program slept")


@test("a child of the program calls by the same descriptor")
def _():
    value, _ = calling("pid = os.fork()\nif pid == 0:\n    print(ask({'id': 'child', 'name': 'echo'}), flush=True)\n    os._exit(0)\nos.waitpid(pid, 0)\n"
                       "os.set_inheritable(4, True)\nimport subprocess\nsubprocess.run(['/bin/sh', '-c', 'echo \\'{\"id\":2,\"name\":\"echo\"}\\' >&4; read a <&4; echo \"$a\"'], close_fds=False)")  # fmt: skip
    equal(printed(value), "{'id': 'child', 'result': {}}\n" + '{"id":2,"result":{}}\n', "the answers")


@test("a call that is under way when the program ends is cancelled")
def _():
    value, caller = calling("call(1); time.sleep(0.3); call(2); time.sleep(0.3)", silent)
    equal((printed(value), counts(value)), ("", {"echo": (2, 2, 0)}), "the run")
    equal([(line["id"], line["ended"]) for line in caller.calls[2:]], [(1, "cancelled"), (2, "cancelled")], "the caller's last lines")


# --- what the program sees ------------------------------------------------------------------


@test("the program has one more descriptor, and its files are in /box")
def _():
    code = """
def is_open(fd):
    try: return bool(os.fstat(fd))
    except OSError: return False
print([fd for fd in range(99) if is_open(fd)], sorted(os.listdir('/box')))
print(open('/box/tools.json').read())
"""
    value, _ = calling(code)
    found = printed(value).splitlines()
    contains(found[0], "[0, 1, 2, 4] ", "descriptors")
    for name in ("tools.json", "tools.mjs", "tools.py"):
        contains(found[0], name, "the names in /box")
    equal(json.loads(found[1]), {"tools": TOOLS, "names": [tool["name"] for tool in TOOLS]}, "tools.json")


@test("a program without tools has no descriptor, no variable and no files of them")
def _():
    done = sh("ls /box /proc/self/fd; echo ${CEJAIL_CALLS_FD-unset}", "--network", "none").exits(0)
    lacks(done.out, "tools", "the names in /box")
    contains(done.out, "unset\n", "the variable")
    value = sh_result("true", "--network", "none")
    equal(value["calls"], [], "calls")


@test("--env does not change CEJAIL_CALLS_FD")
def _():
    value, _ = calling("print(os.environ['CEJAIL_CALLS_FD'], ask({'id': 1, 'name': 'echo'}))", echo, "-e", "CEJAIL_CALLS_FD=99")
    equal(printed(value), "4 {'id': 1, 'result': {}}\n", "the program")


@test("a shell calls a tool by its descriptor, in a jail of the smallest profile")
def _():
    caller = Caller(echo)
    done = start_calling(caller, "-p", "base", "--", "/bin/sh", "-c", "echo '{\"id\":1,\"name\":\"echo\"}' >&$CEJAIL_CALLS_FD; read -r a <&$CEJAIL_CALLS_FD; echo \"$a\"; ls /proc/self/fd")
    value = parse_result(done.out, done)
    contains(printed(value), '{"id":1,"result":{}}\n0\n1\n2\n', "the answer")


@test("a program on a terminal calls its tools")
def _():
    caller = Caller(echo)
    fd = caller.theirs.fileno()
    ours, theirs = os.openpty()
    with Folder() as place:
        words = ("--network", "none", "--tty", "-i", "--tools", place.file("tools.json", json.dumps(TOOLS)), "--calls-fd", str(fd))
        process = start("run", *words, "-p", "python", "-c", INSIDE + "print(ask({'id': 1, 'name': 'echo'}))",
                        pass_fds=[fd], stdin=theirs, stdout=theirs, stderr=theirs)  # fmt: skip
        caller.thread.start()
        os.close(theirs)
        await_exit(process)
        shown = os.read(ours, 4096)
    os.close(ours)
    caller.theirs.close()
    contains(shown, b"{'id': 1, 'result': {}}", "the terminal")


# --- the examples of cejail-tools(7) -----------------------------------------------------------


def example(begin):
    """The literal display of the page that begins so."""
    with open(f"{PREFIX}/share/man/man7/cejail-tools.7") as page:
        found = [block for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", page.read(), re.S | re.M) if block.removeprefix("\\&").startswith(begin)]
    equal(len(found), 1, f"examples that begin with {begin!r}")
    return found[0].removeprefix("\\&").replace("\\e", "\\")


def add(caller, call):
    if "name" in call:
        caller.give(call, call["arguments"]["a"] + call["arguments"]["b"])


def calling_add(path, name):
    caller = Caller(add)
    done = start_calling(caller, "-p", "base", "-f", f"{path}:/box/{name}", "--", f"/box/{name}", tools=[{"name": "add"}])
    return printed(parse_result(done.out, done))


@test("the C program of the manual calls a tool")
def _():
    if not shutil.which("cc"):
        raise Skip("cc is not installed")
    with Folder() as place:
        source = place.file("add.c", example("#include"))
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", place / "add", source], check=True)
        equal(calling_add(place / "add", "add"), '{"id":1,"result":3}\n', "its output")


@test("the shell script of the manual calls a tool")
def _():
    with Folder() as place:
        equal(calling_add(place.file("add.sh", example("#!/bin/sh"), 0o755), "add.sh"), '{"id":1,"result":3}\n', "its output")


@test("the Python program of the manual answers calls")
def _():
    with Folder() as place:
        place.file("code.py", INSIDE + "print(ask({'id': 1, 'name': 'add', 'arguments': {'a': 1, 'b': 2}}))")
        path = f"{os.path.dirname(CEJAIL)}:/usr/bin:/bin"
        done = subprocess.run([PYTHON, "-c", example("import json, socket")], cwd=place.path, env=environment(PATH=path),
                              capture_output=True, text=True, timeout=30 * SLOW, stdin=subprocess.DEVNULL)  # fmt: skip
        equal((done.returncode, done.stdout), (0, "{'id': 1, 'result': 3}\n"), f"its end ({done.stderr})")


# --- the command line -----------------------------------------------------------------------


def refused_tools(text, *words, options=(), fd=None):
    """What the user reads of a tools.json, or of a descriptor, that is none."""
    ours, theirs = socket.socketpair()
    with Folder() as place, ours, theirs:
        path = place.file("tools.json", text)
        number = theirs.fileno() if fd is None else fd
        pass_fds = [number] if number > 2 else []
        done = run("-p", "base", "--network", "none", "--tools", path, "--calls-fd", str(number), *options, "--", "/bin/true", pass_fds=pass_fds)
    refused(done, *words)
    return done.err


@test("each fault of a tools.json is one line with its place and the remedy")
def _():
    good = json.dumps(TOOLS)
    for text, words in (
        ("", ("tools.json",)), ("{", ("tools.json:1:",)), ("7", ("tools are an array",)), ('{"tools": {}}', ("tools are an array",)),
        ("{}", ("tools are an array",)), ("[7]", ('a tool is an object with a "name"',)), ("[{}]", ('a tool is an object with a "name"',)),
        ('[{"name": 7}]', ('a tool is an object with a "name"',)), ('[{"name": ""}]', ("is no name of a tool", "use at most 128")),
        ('[{"name": "-a"}]', ("'-a' is no name of a tool", "the first of them")), ('[{"name": "a b"}]', ("is no name of a tool",)),
        ('[{"name": "é"}]', ("is no name of a tool",)), ('[{"name": "%s"}]' % ("x" * 129), ("is no name of a tool",)),
        (good[:-1] + ',{"name": "echo"}]', ("there are two tools 'echo'",)),
        (json.dumps([{"name": f"t{n}"} for n in range(1025)]), ("more than 1024 tools",)),
        ('[{"name": "a", "description": "%s"}]' % ("x" * (1 << 20)), ("tools.json",)),
    ):  # fmt: skip
        refused_tools(text, "--tools", *words)
        tried()


@test("a tools.json that is missing, or is a directory, is refused by its name")
def _():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for path in ("/no/such/tools.json", "/"):
            done = run("-p", "base", "--network", "none", "--tools", path, "--calls-fd", str(theirs.fileno()), "--", "/bin/true", pass_fds=[theirs.fileno()])
            refused(done, "--tools", f"'{path}'")


@test("a program may have no tool at all, and 1024")
def _():
    for tools in ([], {"tools": []}, [{"name": f"s{n % 7}.t{n}"} for n in range(1024)]):
        value, _ = calling("print(len(json.load(open('/box/tools.json'))['tools']))", tools=tools)
        equal(printed(value), f"{len(tools.get('tools') if isinstance(tools, dict) else tools)}\n", "tools")


@test("--tools without --calls-fd is refused, and so is the reverse")
def _():
    with Folder() as place:
        path = place.file("tools.json", "[]")
        refused(run("-p", "base", "--tools", path, "--", "/bin/true"), "nobody would answer", "add --calls-fd")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        refused(run("-p", "base", "--calls-fd", str(theirs.fileno()), "--", "/bin/true", pass_fds=[theirs.fileno()]), "no tools to call", "add --tools FILE")


@test("a --calls-fd that is no connected stream socket is refused")
def _():
    reader, writer = os.pipe()
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener = socket.socket(socket.AF_UNIX)
    with Folder() as place:
        listener.bind(place / "socket")
        listener.listen()
        for fd in (reader, writer, one.fileno(), listener.fileno()):
            refused_tools("[]", f"--calls-fd {fd}", "socketpair", fd=fd)
        file = os.open(place.file("file"), os.O_RDWR)
        refused_tools("[]", f"--calls-fd {file}", "socketpair", fd=file)
        os.close(file)
    for one in (one, other, listener):
        one.close()
    os.close(reader)
    os.close(writer)
    done = run("-p", "base", "--calls-fd", "77", "--tools", "/dev/null", "--", "/bin/true")
    refused(done, "--calls-fd 77")
    refused(run("-p", "base", "--calls-fd", "2", "--", "/bin/true"), "--calls-fd")


@test("--calls-fd has a descriptor of its own")
def _():
    for option in ("--request-fd", "--result-fd", "--events-fd"):
        ours, theirs = socket.socketpair()
        number = str(theirs.fileno())
        with ours, theirs, Folder() as place:
            words = ("--tools", place.file("t.json", "[]"), "--calls-fd", number, option, number)
            refused(run("-p", "base", *words, "--", "/bin/true", pass_fds=[int(number)]), f"--calls-fd and {option} are the same descriptor {number}")
        tried()


@test("a user's own tools.py is refused beside --tools")
def _():
    with Folder() as place:
        own = place.file("tools.py", "print(1)")
        refused_tools("[]", "/box/tools.py", options=("-f", f"{own}:/box/tools.py"))
        refused_tools("[]", "/box/tools.json", options=("-f", f"{own}:/box/tools.json"))
        refused_tools("[]", "/box/tools.mjs", options=("--file-text", "/box/tools.mjs=1"))
        value, _ = calling("print(open('/box/main.py').read()[:7])", echo, "-f", f"{own}:/box/mine/tools.py")
        equal(printed(value), "\nimport\n", "the program")


@test("the limits of calls are above zero, and at most 64 calls are outstanding")
def _():
    for option in ("--calls-max", "--calls-outstanding", "--calls-rate"):
        refused_tools("[]", option, options=(option, "0"))
    refused_tools("[]", "--calls-outstanding", "64", options=("--calls-outstanding", "65"))
    value, _ = calling("for n in range(64): call(n)\nprint(read()['id'])", lambda caller, call: caller.give(call, 1) if call["id"] == 64 else None,
                       "--calls-outstanding", "64", "--calls-max", "64")  # fmt: skip
    equal(printed(value), "63\n", "the answer")


# --- requests and events --------------------------------------------------------------------


def request_calling(request, *options):
    caller = Caller(echo)
    fd = caller.theirs.fileno()
    process = start("run", "--json", "--request-fd", "0", "--calls-fd", str(fd), *options, pass_fds=[fd], stdin=-1)
    caller.thread.start()
    done = finish(process, given=json.dumps(request).encode())
    caller.theirs.close()
    return done, caller


@test('a request has "tools" of its own, and lowers the limits of calls')
def _():
    code = INSIDE + "for n in range(3): print(ask({'id': n, 'name': 'echo'}))"
    for tools in (TOOLS, {"tools": TOOLS}):
        done, caller = request_calling({"profile": "python", "code": code, "tools": tools, "network": "none", "calls": {"max": 2, "timeout": "5s"}})
        value = parse_result(done.out, done)
        equal(counts(value), {"echo": (2, 0, 1)}, f"calls ({value['stderr']})")
        equal(len(caller.calls), 2, "the caller's calls")


@test("a request can't raise the limits of calls, and its tools are validated")
def _():
    for key, more in (("max", 51), ("outstanding", 11), ("rate", 101), ("timeout", "61s")):
        done, _ = request_calling({"profile": "python", "code": "1", "tools": TOOLS, "calls": {key: more}})
        refused(done, f"calls.{key}") if not done.out else contains(str(parse_result(done.out)["error"]), f"calls.{key}", "the error")
    for tools in ([{}], 7, [{"name": "a"}, {"name": "a"}]):
        done, _ = request_calling({"profile": "python", "code": "1", "tools": tools})
        true(done.code == 125, f"the exit status is {done.code} with the tools {tools}")


@test("the events have each call, its answer and each refused call")
def _():
    with Folder() as place:
        with open(place / "events", "wb") as file:
            value, _ = calling("ask({'id': 1, 'name': 'echo'}); ask({'id': 2, 'name': 'no\\x1b'}); ask({'id': 3, 'name': 'github.search'})",
                               lambda caller, call: caller.send({"id": call["id"], "result" if call["name"] == "echo" else "error": {"message": "no"}}),
                               "--events-fd", str(file.fileno()), fds=[file.fileno()])  # fmt: skip
        events = [json.loads(line) for line in open(place / "events")]
    printed(value)
    for event in events:
        check_schema(event, "event.json") if "result" not in event else None
    seen = [{k: v for k, v in event.items() if k not in ("at_ms", "ms")} for event in events if event["type"] in ("call", "answer", "denied")]
    equal(seen, [
        {"type": "call", "call": 1, "name": "echo"}, {"type": "answer", "call": 1, "name": "echo", "outcome": "answered"},
        {"type": "denied", "call": "no\x1b", "reason": "this run has no tool 'no\x1b': tools.json lists them"},
        {"type": "call", "call": 2, "name": "github.search"}, {"type": "answer", "call": 2, "name": "github.search", "outcome": "failed"},
    ], "events")  # fmt: skip
    true(all(isinstance(event["ms"], int) for event in events if event["type"] == "answer"), "an answer has no duration")


@test("no part of an answer is in the result, in the events or on standard error")
def _():
    def answer(caller, call):
        caller.send({"id": call["id"], **({"result": SECRET} if call["arguments"] else {"error": {"message": SECRET}})})

    with Folder() as place:
        with open(place / "events", "wb") as file:
            code = "print(len(ask({'id': 1, 'name': 'echo', 'arguments': {'a': 1}})['result']), len(ask({'id': 2, 'name': 'echo'})['error']['message']))"
            value, _ = calling(code, answer, "--events-fd", str(file.fileno()), "-v", fds=[file.fileno()])
        events = open(place / "events").read()
    equal(printed(value), f"{len(SECRET)} {len(SECRET)}\n", "answers")
    for text in (json.dumps(value), events):
        lacks(text, SECRET, "what cejail reports")


@test("two runs have calls of their own")
def _():
    def name_of(name):
        return lambda caller, call: caller.give(call, name)

    results = {}

    def one(name):
        results[name] = calling("for n in range(20): print(ask({'id': 1, 'name': 'echo'})['result'])", name_of(name))[0]

    threads = [threading.Thread(target=one, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("a", "b"):
        equal(printed(results[name]), f"{name}\n" * 20, f"the answers of run {name}")
