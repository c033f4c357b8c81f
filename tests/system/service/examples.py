# SPDX-License-Identifier: Apache-2.0
"""The examples of tools/examples, as they are installed: each runs as its first comment says, and prints what it should."""

import json
import os
import re
import shutil
import subprocess

from harness import *  # noqa: F403
from service import Service

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(CEJAIL)), "share/cejail/examples")


def example(name, *args, with_=PYTHON, given="", code=0, **options):
    """What an example prints; cejail is found in PATH."""
    paths = f"{os.path.dirname(CEJAIL)}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    words = [*([with_] if isinstance(with_, str) else with_), f"{EXAMPLES}/{name}", *args]
    done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=120 * SLOW, check=False,
                          env=environment(PATH=paths), **options)  # fmt: skip
    equal(done.returncode, code, f"the exit status of {name} ({done.stdout!r}, {done.stderr!r})")
    return done.stdout


def project(folder):
    """A small source tree: its tests write into it."""
    if not shutil.which("make"):
        raise Skip("no make")
    folder.file("Makefile", "all: hello\nhello:\n\techo hello > hello\ntest:\n\ttouch made-by-test\n\techo tested\n")


@test("each example of tools/examples has a test")
def _():
    tested = {
        "one-liners.sh", "run.py", "tool_handler.py", "service.py", "service.js", "client.py", "client.mjs", "jail.mk", "ci-job.yml",
    }  # fmt: skip
    equal(set(os.listdir(EXAMPLES)), tested, "the examples")


@test("the example of one-liners runs, and prints what its comments say")
def _():
    said = example("one-liners.sh", with_="/bin/sh")
    equal(said.splitlines(), [
        "42", "total 49", "7", "12", "30", "7", "12", "30", "0", "converted", "numbers.txt", "total.py",
        "exit status 124", "status timeout",
    ], "the lines")  # fmt: skip


@test("the example of a program that runs code tells how each run ended")
def _():
    equal(example("run.py").splitlines(), [
        "a good program: it printed '144'",
        "a faulty one: it failed: ZeroDivisionError: division by zero",
        "an endless one: it took too long and had printed 'working'",
        "a greedy one: it wanted too much memory",
        "a curious one: it failed: FileNotFoundError: [Errno 2] No such file or directory: '/home'",
    ], "the lines")  # fmt: skip


def message(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


@test("the example of a tool for language models lists its tool, runs code and says why code failed")
def _():
    given = message(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})
    given += '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n' + message(2, "tools/list")
    codes = ("print(6 * 7)", "1 / 0", "import os; os.kill(os.getpid(), 9)")
    given += "".join(message(3 + i, "tools/call", name="run_python", arguments={"code": code}) for i, code in enumerate(codes))
    given += message(6, "tools/call", name="no_tool", arguments={}) + message(7, "no/method")
    replies = {reply["id"]: reply for reply in map(json.loads, example("tool_handler.py", given=given).splitlines())}
    equal(sorted(replies), [1, 2, 3, 4, 5, 6, 7], "the ids that are answered")
    equal([tool["name"] for tool in replies[2]["result"]["tools"]], ["run_python"], "the tools")
    equal(replies[3]["result"], {"content": [{"type": "text", "text": "42\n"}], "isError": False}, "the good code's answer")
    for number, text in ((4, "ZeroDivisionError"), (5, "The program ended by signaled.")):
        contains(replies[number]["result"]["content"][0]["text"], text, "the answer")
        equal(replies[number]["result"]["isError"], True, "isError")
    for number in (6, 7):
        equal(replies[number]["error"]["code"], -32602, "the error")


@test("the example of a client of the service in Python gets results, a file and streamed output")
def _():
    with Service() as s:
        said = example("service.py", s.socket)
    equal(said.splitlines(), [
        "exited 42", "sorted.txt 8 bytes", "streamed 0", "streamed 1", "streamed 2", "ended: exited",
    ], "the lines")  # fmt: skip


def check_client(lines, streamed):
    equal(lines[0].replace(" ", "").replace("'", '"'), 'value{"mean":2.0}' if "2.0" in lines[0] else 'value{"mean":2}', "the value")
    contains(lines[1], "1.0", "the file")
    equal([line.split()[0] for line in lines[2:-3]], ["streamed"] * len(lines[2:-3]), "the streamed lines")
    equal("".join(c for line in lines[2:-3] for c in line if c.isdigit()), streamed, "the output")
    equal(lines[-3], "ended: exited", "the end")
    contains(lines[-2], "refused: memory: 64T is above", "the refusal")
    equal("".join(c for c in lines[-1] if c.isdigit()), "0149", "the runs at once")


@test("the example of the client library in Python runs over a command and over a service")
def _():
    check_client(example("client.py").splitlines(), "012")
    with Service(config={"callers": {f"uid:{os.geteuid()}": {}}}) as s:
        check_client(example("client.py", s.socket).splitlines(), "012")


# Node is no package of tools/setup: a host without it has nothing to test.
if shutil.which("node"):

    @test("the example of a client of the service in Node gets results and the code of an error")
    def _():
        with Service() as s:
            lines = example("service.js", s.socket, with_=shutil.which("node")).splitlines()
        equal(lines[:2], ["exited 42", "timeout"], "the results")
        contains(lines[2], "no-such-profile", "the error")

    @test("the example of the client library in Node runs over a command and over a service")
    def _():
        check_client(example("client.mjs", with_=shutil.which("node")).splitlines(), "012")
        with Service(config={"callers": {f"uid:{os.geteuid()}": {}}}) as s:
            check_client(example("client.mjs", s.socket, with_=shutil.which("node")).splitlines(), "012")


@test("the example of a Makefile builds in a jail, keeps the named files and changes nothing else")
def _():
    with Folder() as f:
        project(f)
        make = ("make", "-s", "-f")
        example("jail.mk", "jail-all", "KEEP=hello", with_=make, cwd=f.path)
        with open(f / "jail-out/src/hello", encoding="utf-8") as file:
            equal(file.read(), "hello\n", "the kept file")
        contains(example("jail.mk", "jail-test", with_=make, cwd=f.path), "tested", "the output of the jail")
        equal(sorted(os.listdir(f.path)), ["Makefile", "jail-out"], "the directory")


@test("the example of a CI job is YAML, and its last step tests in a jail")
def _():
    with open(f"{EXAMPLES}/ci-job.yml", encoding="utf-8") as file:
        text = file.read()
    command = re.search(r"- name: Test in a jail\n +run: (.*)\n", text)[1]
    try:
        import yaml  # the test machine does not have it
        steps = yaml.safe_load(text)["jobs"]["test"]["steps"]
        equal(steps[-1], {"name": "Test in a jail", "run": command}, "the last step")
    except ImportError:
        pass
    with Folder() as f:
        project(f)
        paths = f"{os.path.dirname(CEJAIL)}:/usr/bin:/bin"
        for target, status in (("test", 0), ("missing", 2)):
            words = ["/bin/sh", "-ec", command.replace("make test", f"make {target}")]
            done = subprocess.run(words, cwd=f.path, env=environment(PATH=paths), capture_output=True, text=True, check=False)
            equal(done.returncode, status, f"the exit status of 'make {target}' ({done.stdout!r}, {done.stderr!r})")
        equal(os.listdir(f.path), ["Makefile"], "the directory")
