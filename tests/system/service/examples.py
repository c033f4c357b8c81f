# SPDX-License-Identifier: Apache-2.0
"""The examples of tools/examples, as they are installed: each runs as its first comment says, and prints what it should."""

import abc
import asyncio
import collections
import datetime
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import types

from harness import *  # noqa: F403
from service import Service

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(CEJAIL)), "share/doc/cejail/examples")


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
        "session.py", "session.mjs", "deepagents_backend.py", "inspect_sandbox.py",
        "code_mode.py", "code_mode.mjs", "langchain_code_mode.py", "agents_code_mode.py",
        # of engines: tests/system/oci
        "containerd.toml", "container-seccomp.json", "kubernetes.yml", "nomad.hcl", "slurm.conf", "slurm-cgroup.conf", "slurm-oci.conf", "slurm-prolog.sh", "slurm-epilog.sh",
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


def check_session(lines):
    equal([re.sub(r"[\[\],']", "", line) for line in lines if not line.startswith("streamed")], [
        "sorted 1 2 3", "files /box/numbers.txt /box/sorted.txt", "too long: timeout", "background: STILL HERE", "ended: closed",
    ], "the lines")  # fmt: skip
    equal("".join(c for line in lines if line.startswith("streamed") for c in line if c.isdigit()), "012", "the streamed output")


@test("the example of a session in Python keeps files, a program in the background and itself after a limit")
def _():
    with Service() as s:
        check_session(example("session.py", s.socket).splitlines())


def load(name):
    """An example as a module, as its users import it."""
    spec = importlib.util.spec_from_file_location(name, f"{EXAMPLES}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Framework:
    """Stands for a framework that is not installed: modules with the names that an adapter imports."""

    def __init__(self, **modules):
        self.modules = {name.replace("__", "."): types.SimpleNamespace(**members) for name, members in modules.items()}

    def __enter__(self):
        self.before = dict(sys.modules)
        sys.modules.update(self.modules)

    def __exit__(self, *unused):
        for name in set(sys.modules) - set(self.before):
            del sys.modules[name]


@test("the adapter for deep agents has the four members of their sandboxes")
def _():
    with Service() as s:
        said = example("deepagents_backend.py", s.socket).splitlines()
        equal(said[0], "uploaded [None, 'invalid_path']", "the upload")
        contains(said[1], "output='2\\n', exit_code=3, truncated=False", "the command")
        contains(said[2], "content=b'one\\ntwo\\n', error=None", "the download")
        contains(said[2], "content=None, error='file_not_found'", "the failed download")
        equal(said[3], "too long 124", "the timeout")

        class Base(abc.ABC):
            """What the framework's base class wants, and what it does with it."""

            @property
            @abc.abstractmethod
            def id(self): ...

            @abc.abstractmethod
            def execute(self, command, *, timeout=None): ...

            @abc.abstractmethod
            def upload_files(self, files): ...

            @abc.abstractmethod
            def download_files(self, paths): ...

            def ls(self, path):
                return self.execute(f"ls {path}").output.split()

        answers = {name: collections.namedtuple(name, fields) for name, fields in (
            ("ExecuteResponse", "output exit_code truncated"), ("FileUploadResponse", "path error"), ("FileDownloadResponse", "path content error"))}  # fmt: skip
        with Framework(deepagents={}, deepagents__backends={}, deepagents__backends__protocol=answers, deepagents__backends__sandbox={"BaseSandbox": Base}):
            module = load("deepagents_backend")
            with module.CejailBackend(module.cejail.Client(s.socket), network="none", memory="200M") as backend:
                true(isinstance(backend, Base), "it is not one of the framework's sandboxes")
                equal(backend.upload_files([("/box/a", b"\xff"), ("/box/sub/b", b"x"), ("relative", b"y")]), [("/box/a", None), ("/box/sub/b", None), ("relative", None)], "the uploads")
                equal(sorted(backend.ls("/box")), ["a", "out", "relative", "sub"], "what the framework makes of it")
                equal(backend.download_files(["/box/a", "/box/sub", "/etc/passwd"]), [("/box/a", b"\xff", None), ("/box/sub", None, "is_directory"), ("/etc/passwd", None, "invalid_path")], "the downloads")
                equal(backend.execute("echo out; echo err >&2; exit 2"), ("out\nerr\n", 2, False), "a command")
                ended = backend.execute("kill -9 $$")
                equal(ended.exit_code, 137, "a killed command")
                contains(ended.output, "signaled", "what the model reads")
                equal(backend.id, backend.session.id, "id")
            equal(backend.session.info()["state"], "ended", "the session after the block")


@test("the adapter for Inspect runs commands, copies files, and raises what the framework expects")
def _():
    with Service() as s:
        said = example("inspect_sandbox.py", s.socket).splitlines()
        contains(said[0], "ExecResult(success=True, returncode=0, stdout='two\\none\\n', stderr='')", "the command")
        equal(said[1], r"read 'one\ntwo\n' b'one\ntwo\n'", "the file")
        equal(said[2:], ["failed FileNotFoundError", "failed TimeoutError"], "the errors")

        class Base(abc.ABC):
            @classmethod
            @abc.abstractmethod
            async def sample_cleanup(cls, task_name, config, environments, interrupted): ...

            @abc.abstractmethod
            async def exec(self, cmd, input=None, cwd=None, env=None, user=None, timeout=None): ...

            @abc.abstractmethod
            async def write_file(self, file, contents): ...

            @abc.abstractmethod
            async def read_file(self, file, text=True): ...

        class Limit(Exception):
            def __init__(self, limit_str, truncated_output):
                self.limit_str, self.truncated_output = limit_str, truncated_output

        registered = {}
        members = {
            "ExecResult": collections.namedtuple("ExecResult", "success returncode stdout stderr"), "OutputLimitExceededError": Limit,
            "SandboxEnvironment": Base, "sandboxenv": lambda name: lambda cls: registered.setdefault(name, cls),
        }  # fmt: skip

        async def use(sandbox):
            for what, problem in (
                (sandbox.read_file("none"), FileNotFoundError), (sandbox.read_file("out"), IsADirectoryError), (sandbox.write_file("out", "x"), IsADirectoryError),
                (sandbox.exec(["sleep", "6000"], timeout=1), TimeoutError), (sandbox.exec(["true"], user="root"), PermissionError),
                (sandbox.exec(["printf", "\\377"]), UnicodeDecodeError), (sandbox.exec(["/etc/hosts"]), PermissionError), (sandbox.exec(["head", "-c", "2000000", "/dev/zero"]), Limit),
            ):  # fmt: skip
                try:
                    await what
                    raise Failure(f"there was no {problem}")
                except problem:
                    tried()
            await sandbox.write_file("deep/er/a", b"\xff")
            equal(await sandbox.read_file("deep/er/a", text=False), b"\xff", "a file")
            equal(await sandbox.exec(["sh", "-c", "cat; pwd; echo $A >&2; exit 3"], input="in\n", cwd="deep", env={"A": "B"}), (False, 3, "in\n/box/deep\n", "B\n"), "a command")
            equal((await sandbox.exec(["sh", "-c", "kill -9 $$"])).returncode, 137, "a killed command")

        async def sample(cls, path):
            made = await cls.sample_init("task", path, {})
            try:
                await use(made["default"])
            finally:
                await cls.sample_cleanup("task", path, made, False)
            return await made["default"].session.info()

        with Framework(inspect_ai={}, inspect_ai__util=members), Folder() as f:
            cls = load("inspect_sandbox").CejailSandbox
            equal(registered, {"cejail": cls}, "what is registered")
            path = f.file("session.json", json.dumps({"socket": s.socket, "network": "none", "profile": "python"}))
            equal(asyncio.run(sample(cls, path))["reason"], "closed", "the session after the sample")


@test("the example of code mode in Python lets a program call the functions that it names")
def _():
    equal(example("code_mode.py").splitlines(), ["1 it hangs", "3 it crashes", "not closed: PermissionError: a person must close issue 1"], "the lines")


class Invoked:
    """A tool of LangChain, as far as code mode uses one."""

    name, description, args = "search", "Searches.", {"query": {"type": "string"}}

    async def ainvoke(self, given):
        return [given["query"], {"when": datetime.date(2026, 1, 2)}]


@test("the example for LangChain makes one tool of many, whose description names them")
def _():
    equal(example("langchain_code_mode.py"), "285\n", "what it prints")
    made = {}

    class StructuredTool:
        @classmethod
        def from_function(cls, coroutine, name, description):
            made.update(coroutine=coroutine, name=name, description=description)
            return made

    with Framework(langchain_core={}, langchain_core__tools={"StructuredTool": StructuredTool}):
        module = load("langchain_code_mode")
    module.code_mode([Invoked()], module.cejail.AsyncClient(program=CEJAIL), timeout="20s")
    equal(made["name"], "run_code", "the name")
    contains(made["description"], "- search(query): Searches.", "the description")
    equal(asyncio.run(made["coroutine"](code="import tools\nprint(tools.search(query='a'))")), "['a', {'when': '2026-01-02'}]\n", "what the model reads")
    contains(asyncio.run(made["coroutine"](code="import os\nos.abort()")), "[the program ended with the status 'signaled']", "the end of a program")


@test("the example for the OpenAI Agents SDK makes one tool of many, and takes none that needs an approval")
def _():
    equal(example("agents_code_mode.py"), "285\n", "what it prints")
    fields = "name description params_json_schema on_invoke_tool needs_approval tool_input_guardrails"
    FunctionTool = collections.namedtuple("FunctionTool", fields, defaults=(False, None))
    seen = []

    async def search(context, given):
        seen.append((context, json.loads(given)))
        return "found"

    with Framework(agents={"FunctionTool": FunctionTool}):
        module = load("agents_code_mode")
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    client = module.cejail.AsyncClient(program=CEJAIL)
    made = module.code_mode([FunctionTool("search", "Searches.", schema, search)], client)
    equal((made.name, list(made.params_json_schema["properties"])), ("run_code", ["code"]), "the tool")
    contains(made.description, "- search(query): Searches.", "the description")
    given = json.dumps({"code": "import tools\nprint(tools.search(query='a'))"})
    equal((asyncio.run(made.on_invoke_tool("context", given)), seen), ("found\n", [("context", {"query": "a"})]), "the call")
    for more in ({"needs_approval": True}, {"tool_input_guardrails": ["one"]}):
        try:
            module.code_mode([FunctionTool("remove", "Removes.", schema, search, **more)], client)
            raise Failure("the tool was taken")
        except ValueError as problem:
            contains(str(problem), "'remove'", "the error")


# Node is no package of tools/setup: a host without it has nothing to test.
if shutil.which("node"):

    @test("the example of code mode in Node lets a program call the functions on its list, and refuses the others")
    def _():
        lines = example("code_mode.mjs", with_=shutil.which("node")).splitlines()
        equal(lines[:2], ["one two", "failed: Error: there is no file 'c.txt'"], "the lines")
        contains(lines[2], "no tool 'mcp__files__remove'", "the refused call")

    @test("the example of a session in Node keeps files, a program in the background and itself after a limit")
    def _():
        with Service() as s:
            check_session(example("session.mjs", s.socket, with_=shutil.which("node")).splitlines())

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
