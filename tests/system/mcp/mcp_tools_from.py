# SPDX-License-Identifier: Apache-2.0
"""`cejail run --tools-from` and `cejail shell --tools-from`; "jail": a server in a jail of its own."""

import json
import os
import pty
import signal
import socket
import sys

from harness import *  # noqa: F403
from mcp_upstream import FAKE, fake, is_gone, servers_file

PREFIX = os.path.dirname(os.path.dirname(CEJAIL))
CALL = "import json, tools\ndef call(*args, **more): print(json.dumps(tools.call(*args, **more)), flush=True)\n"
PIDS = CALL + "for server in 'one', 'two': call(server + '.pid')\n"
PYTHON = ("-p", "python", "--network", "none")


def jailed(**more):
    """The fake server in a jail that has nothing but its file."""
    options = {"profile": "python", "cache": "none", "network": "none", "ro-bind": [f"{FAKE}:/srv/fake.py"], **more}
    return {"command": "python3", "args": ["/srv/fake.py", "good"], "jail": options}


def alive(pids):
    return [describe_process(pid) for pid in pids if not is_gone(pid)]


@test("mcp_tools_from: a program of cejail run calls the tools of two servers, which end with it", limit=120)
def _():
    with Folder() as f:
        path = servers_file(f.path, one=fake("good", allow=["delete*"]), two=fake("modern"))
        code = PIDS + "call('one.echo', x=[1, 'a'])\ncall('two.echo', y=2)\ncall('one.delete_it')\ntry: call('two.fail')\nexcept tools.ToolError as e: print(e)"
        done = run("--json", *PYTHON, "--tools-from", path, "-c", code)
        value = parse_result(done.out, done)
        lines = value["stdout"]["text"].splitlines()
        equal(lines[2:], ['{"x": [1, "a"]}', '{"y": 2}', '"done: delete it"', "it did not work"], f"the output ({value})")
        equal(alive([int(json.loads(line)) for line in lines[:2]]), [], "servers that are left")
        counts = {call["name"]: (call["count"], call["failed"]) for call in value["calls"]}
        equal((counts["one.echo"], counts["two.fail"]), ((1, 0), (1, 1)), "the calls in the result")
        contains(done.err, "cejail: the server 'one': hello\n", "the messages")
        done = run("--quiet", *PYTHON, "--tools-from", path, "-c", code).exits(0)
        equal((done.out.splitlines()[2:], done.err), (lines[2:], ""), "with --quiet")


@test("mcp_tools_from: a request of --request-fd uses the tools of the command line, and has none of its own", limit=120)
def _():
    with Folder() as f:
        path = servers_file(f.path, one=fake("good"))
        request = {"profile": "python", "code": CALL + "call('one.echo', x=1)", "network": "none"}
        done = run("--json", "--request-fd", "0", "--tools-from", path, given=json.dumps(request))
        equal(parse_result(done.out, done)["stdout"]["text"], '{"x": 1}\n', "the output")
        done = run("--json", "--request-fd", "0", "--tools-from", path, given=json.dumps({**request, "tools": [{"name": "add"}]}))
        contains(parse_result(done.out, done)["error"]["message"], "the request's \"tools\" exclude each other", "the error")


@test("mcp_tools_from: cejail shell is an interpreter that calls tools, on a terminal and on a pipe", limit=120)
def _():
    lines = "import tools\ntools.call('one.echo', x=40 + 1)\nexit(7)\n"
    with Folder() as f:
        path = servers_file(f.path, one=fake("good"))
        done = cejail("shell", "-p", "python", "--network", "none", "--tools-from", path, given=lines)
        contains(done.out, "{'x': 41}", "the pipe")
        equal(done.code, 7, "the exit status")
        ours, theirs = pty.openpty()
        process = start("shell", "-p", "python", "--network", "none", "--tools-from", path, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = b""
        try:
            while b">>> " not in seen:
                seen += os.read(ours, 4096)
            os.write(ours, lines.encode())
            while True:
                seen += os.read(ours, 4096)
        except OSError:  # nobody has the terminal any more
            pass
        equal(await_exit(process), 7, f"the exit status ({seen!r})")
        os.close(ours)
        contains(seen, b"{'x': 41}", "the terminal")


@test("mcp_tools_from: the fake server of the Python library answers from a file", limit=120)
def _():
    library = f"{PREFIX}/share/cejail/clients/python"
    if not os.path.exists(f"{library}/cejail/fake_tools.py"):
        raise Skip("the client libraries are not installed")
    with Folder() as f:
        answers = f.file("answers.json", json.dumps({"tools": [{"name": "now", "annotations": {"readOnlyHint": True}}], "answers": {"now": "12:00"}}))
        server = {"command": sys.executable, "args": ["-m", "cejail.fake_tools", answers], "env": {"PYTHONPATH": library}}
        done = run(*PYTHON, "--tools-from", servers_file(f.path, time=server), "-c", CALL + "call('time.now')").exits(0)
        equal(done.out, '"12:00"\n', "the output")


@test("mcp_tools_from: a server that fails to start is named, and the program is not started", limit=120)
def _():
    with Folder() as f:
        out = f / "out"
        for server, *words in (
            (fake("start-dies"), "has ended with status 7; its last line is 'out of luck'"),
            ({"command": "no-such-program"}, "has ended with status 127", "cannot execute 'no-such-program': No such file"),
            (fake("start-silent", timeout="1s"), "did not answer "),
            (fake("good", allow=["ecco"]), "has no tool that the \"allow\" pattern 'ecco' matches"),
        ):  # fmt: skip
            path = servers_file(f.path, two=server)
            done = run("--json", *PYTHON, "-o", out, "--tools-from", path, "-c", "open('/box/out/x', 'w')")
            value = parse_result(done.out.splitlines()[-1], done)
            equal((done.code, value["error"]["stage"], os.path.exists(out)), (125, "tools", False), "the end")
            for word in ("--tools-from: the server 'two'", *words):
                contains(value["error"]["message"] + (value["error"]["hint"] or ""), word, "the error")
            true(value["error"]["hint"], "there is no remedy")
            tried()


@test("mcp_tools_from: each mistake is one line, with the place in the file")
def _():
    with Folder() as f:
        for text, word in (
            ("", ""), ("[]", "must be an object"), ('{"mcpServers": {"a": {"comand": "x"}}}', "unknown key 'mcpServers.a.comand'"),
            ('{"mcpServers": {"a": {"url": "https://example.com/"}}}', "cejail has no TLS"),
            ('{"mcpServers": {"a": {"command": "x", "jail": {"memry": 1}}}}', "unknown key 'mcpServers.a.jail.memry'"),
            ('{"mcpServers": {"a": {"command": "x", "jail": {}, "env": {"A B": "1"}}}}', "names of letters, digits and '_', and values of one line"),
            ('{"mcpServers": {"a": {"command": "x", "jail": {}, "env": {"A": "1\\n2"}}}}', "names of letters, digits and '_', and values of one line"),
            ('{"mcpServers": {"a": {"command": "x", "jail": {"memory": "much"}}}}', "mcpServers.a.jail.memory: 'much'"),
        ):  # fmt: skip
            path = f.file("servers.json", text)
            refused(run(*PYTHON, "--tools-from", path, "-c", "1"), f"--tools-from: {path}:1:", word)
            tried()
        for path in (f / "missing.json", f.path):
            refused(run(*PYTHON, "--tools-from", path, "-c", "1"), f"--tools-from: ", f"'{path}'")
        path = servers_file(f.path, one=fake("good"))
        for option, why in (
            (("--tools", path), "one list"), (("--remote=/no/such.sock",), "only a run here starts servers"), (("--dry-run",), "only servers that are started"),
        ):  # fmt: skip
            refused(run(*PYTHON, "--tools-from", path, *option, "-c", "1"), "--tools-from", option[0].split("=")[0], "exclude each other", why)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            number = theirs.fileno()
            done = run(*PYTHON, "--tools-from", path, "--calls-fd", str(number), "-c", "1", pass_fds=[number])
            refused(done, "'--tools-from' and '--calls-fd' exclude each other")
        refused(cejail("mcp", "wrap", "--tools-from", path, "--", "true"), "option '--tools-from' is not for 'cejail mcp wrap'")


@test("mcp_tools_from: a killed or cancelled cejail leaves no server behind, not even one that ignores signals", limit=180)
def _():
    with Folder() as f:
        path = servers_file(f.path, one=fake("stubborn"), two=fake("good"))
        for number in (signal.SIGKILL, signal.SIGTERM):
            process = start("run", *PYTHON, "--tools-from", path, "-c", PIDS + "import time\ntime.sleep(600)")
            pids = [int(json.loads(process.stdout.readline())) for _ in range(2)]
            pids += wait_until(lambda: children_of(pids[0]), "the second process of the server")
            process.send_signal(number)
            equal(await_exit(process), -number if number == signal.SIGKILL else 128 + number, "the exit status")
            wait_until(lambda: not alive(pids), "the end of the servers")
            process.stdout.close()
            process.stderr.close()
            cejail("gc").exits(0)
            tried()


@test("mcp_tools_from: a cejail that is killed while the servers start leaves none behind", limit=120)
def _():
    with Folder() as f:
        path = servers_file(f.path, one=fake("start-silent"))
        process = start("run", *PYTHON, "--tools-from", path, "-c", "1")
        line = process.stderr.readline()
        contains(line, b"the server 'one': hello", "the first message")
        pids = [pid for pid in descendants() if pid != process.pid]
        true(len(pids) >= 3, f"the broker, the keeper and the server are not there: {pids}")
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        wait_until(lambda: not set(pids) & set(descendants()), "the end of the servers")


@test("mcp_tools_from: a server with \"jail\" runs in a jail of its own, which has only what its entry names", limit=120)
def _():
    with Folder() as f:
        server = {**jailed(memory="100M"), "env": {"TOKEN": "t"}}
        path = servers_file(f.path, one=server)
        done = run(*PYTHON, "--tools-from", path, "-c", CALL + "call('one.env')\ncall('one.pid')\ncall('one.echo', x=1)")
        env, pid, echo = map(json.loads, done.exits(0).out.splitlines())
        equal((env["HOME"], env["TOKEN"], echo), ("/box", "t", {"x": 1}), "what the server says")
        lacks(env, "CEJAIL_TEST_SECRET", "its variables")
        true(int(pid) < 10, f"the server is process {pid}, so it is in no pid namespace of its own")
        equal(cejail("mcp", "--tools-from", path, "--check").exits(0).out.splitlines()[:2], ["one.echo", "one.env"], "the names")
        none = cejail("mcp", "--tools-from", servers_file(f.path, one={**server, "deny": ["*"]}), "--check").exits(0)
        equal(none.out, "", "the names where all are denied")
        contains(none.err, "warning: the server 'one' offers no tool: none of its ", "what is said of them")


@test("mcp_tools_from: variables of a server with \"jail\" are those of the server, not of what makes its jail", limit=120)
def _():
    with Folder() as f:
        f.file("config/cejail/profiles/mine.json", '{"extends": "python"}')
        variables = {"HOME": f / "home", "XDG_CONFIG_HOME": f / "config", "LINE": " a = 'b' # c "}
        path = servers_file(f.path, one={**jailed(), "env": variables})
        env = json.loads(run(*PYTHON, "--tools-from", path, "-c", CALL + "call('one.env')").exits(0).out)
        equal({name: env[name] for name in variables}, variables, "what the server has")
        path = servers_file(f.path, one={**jailed(profile="mine"), "env": variables})
        contains(run(*PYTHON, "--tools-from", path, "-c", "1").exits(125).err.splitlines()[-1], "'mine'", "the error")


@test("mcp_tools_from: an option of \"jail\" that cannot work is named by the jail", limit=120)
def _():
    with Folder() as f:
        for more, word in (
            ({"ro-bind": ["/no/such/place:/srv/x"]}, "/no/such/place"), ({"cache": "../x"}, "--cache: '../x' is not a name"),
            ({"rootfs": "no-such-image"}, "no-such-image"), ({"ro-bind": []}, "/srv/fake.py"),
        ):  # fmt: skip
            done = run(*PYTHON, "--tools-from", servers_file(f.path, one=jailed(**more)), "-c", "1").exits(125)
            contains(done.err.splitlines()[-1], "--tools-from: the server 'one' has ended with status ", "the error")
            contains(done.err.splitlines()[-1], word, "the error")
            tried()
