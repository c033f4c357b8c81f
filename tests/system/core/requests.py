# SPDX-License-Identifier: Apache-2.0
"""--request-fd: the run comes as the JSON object of a service's request, below the ceilings of the command line."""

import base64
import json
import os

from harness import *  # noqa: F403


def ask(request, *options, **more):
    """The request on standard input."""
    text = request if isinstance(request, (str, bytes)) else json.dumps(request)
    return run("--request-fd", "0", *options, given=text, **more)


def ask_result(request, *options, **more):
    done = ask(request, "--json", *options, **more)
    return parse_result(done.out, done)


def shell(script, **more):
    return {"profile": "base", "command": ["/bin/sh", "-c", script], **more}


@test("a request has the code, arguments, input, files and variables of a run")
def _():
    code = (
        "import json, os, sys\n"
        "print(sys.argv[1:], sys.stdin.read(), json.load(open('/box/args.json')), os.environ['A'])\n"
        "print(open('data/b').read(), open('/tmp/raw', 'rb').read(), os.access('data/b', os.X_OK))\n"
    )
    value = ask_result({
        "profile": "python", "code": code, "args": ["-x", "y z"], "stdin": "typed", "args_json": {"n": 1.50},
        "env": {"A": "1=2"}, "id": f"asked-{os.getpid()}",
        "files": [
            {"path": "data/b", "text": "two", "executable": True},
            {"path": "/tmp/raw", "base64": base64.b64encode(b"\0\xff").decode()},
        ],
    })  # fmt: skip
    equal(value["id"], f"asked-{os.getpid()}", "id")
    wanted = "['-x', 'y z'] typed {'n': 1.5} 1=2\ntwo b'\\x00\\xff' True\n"
    equal((value["status"], value["stdout"]["text"]), ("exited", wanted), "output")


@test("a request comes from any descriptor that can be read, and its program's output passes through")
def _():
    ours, theirs = os.pipe()
    os.write(theirs, json.dumps(shell("cat; echo out; echo err >&2; exit 3", stdin="in ")).encode())
    os.close(theirs)
    done = run("--request-fd", str(ours), "--quiet", pass_fds=(ours,)).exits(3)
    os.close(ours)
    equal((done.out, done.err), ("in out\n", "err\n"), "output")


@test("a request without input leaves the descriptor's rest to nobody, and -i gives it the caller's")
def _():
    ask(shell("cat"), "--quiet").exits(0).says("")
    ours, theirs = os.pipe()
    os.write(theirs, json.dumps(shell("cat")).encode())
    os.close(theirs)
    run("--request-fd", str(ours), "-i", "--quiet", pass_fds=(ours,), given="typed").exits(0).says("typed")
    os.close(ours)


@test("no process of the jail has the descriptor of the request")
def _():
    ours, theirs = os.pipe()
    os.write(theirs, json.dumps(shell("ls /proc/self/fd /proc/1/fd 2>/dev/null | grep -c . ; ls -l /proc/self/fd | grep -c pipe")).encode())
    os.close(theirs)
    done = run("--request-fd", str(ours), "--quiet", pass_fds=(ours,))
    os.close(ours)
    equal(done.out.split()[1], "2", "pipes inside: standard output and standard error")


@test("the artifacts that a request asks for are in its result, or in the directory of --artifacts")
def _():
    request = shell("echo text >out/a; printf '\\377' >out/b", artifacts=True)
    files = {row["path"]: row for row in ask_result(request)["artifacts"]}
    equal((files["a"]["text"], files["b"]["base64"]), ("text\n", "/w=="), "contents")
    with Folder() as folder:
        value = ask_result(request, "--artifacts", folder / "here")
        true(all("text" not in row and "base64" not in row for row in value["artifacts"]), "contents in the result, too")
        with open(folder / "here/a", encoding="utf-8") as file:
            equal(file.read(), "text\n", "content")
    equal(ask_result(shell("echo text >out/a"))["artifacts"], [], "artifacts that nobody asked for")


@test("--profile is the profile of a request that names none, and no other profile can be asked for")
def _():
    command = {"command": ["/bin/echo", "hi"]}
    ask(command, "-p", "base").exits(0).says("hi\n")
    ask({"profile": "base", **command}, "-p", "base").exits(0)
    refused(ask(command), "request:1:1", "profile is missing")
    refused(ask({"profile": "python", **command}, "-p", "base"), "'python' is not that of --profile")
    refused(ask({"profile": "/etc/passwd", **command}), "not a profile's name")
    with Folder() as folder:
        path = folder.file("mine.json", '{"extends": "base", "pids": 7}')
        value = ask_result(command, "-p", path)
        equal(value["limits"]["pids"]["value"], 7, "the limit of the profile's file")


@test("the command line is the ceiling of a request's limits: it may ask for less")
def _():
    limits = ask_result(shell("true", memory="64M", timeout="5s", pids=9), "--memory", "1G", "--cpus", "2")["limits"]
    equal([limits[name]["value"] for name in ("memory", "cpus", "pids")], [64 << 20, 2, 9], "limits")
    for key, value, options in (
        ("memory", "2G", ("--memory", "1G")), ("memory", "600M", ()), ("timeout", "1h", ("-t", "10s")),
        ("cpus", "2", ()), ("pids", 65, ()), ("disk", "1G", ()), ("max_output", "2M", ()), ("nofile", 4096, ()),
        ("cpu_time", "9s", ("--cpu-time", "8s")),
    ):  # fmt: skip
        refused(ask(shell("true", **{key: value}), *options), f"{key}: ", "the profile's value", "command line")
        tried()


@test("a request can turn the network off, and gets no more of it than the command line gives")
def _():
    value = ask_result(shell("true", network="none"), "--network", "public")
    equal(value["network"]["mode"], "none", "mode")
    refused(ask(shell("true", network="public"), "--network", "none"), "network", "command line")
    refused(ask(shell("true", network={"allow": ["2.2.2.2"]}), "--network", "public", "--allow", "1.1.1.1"), "network")


@test("a request chooses no other uplink than the command line's, and opens no closed address by --allow-private")
def _():
    for uplink in ("auto", "host", "pasta", "slirp4netns"):
        asked = shell("true", network={"uplink": uplink})
        refused(ask(asked, "--network", "public", "--uplink", "none"), f"network.uplink: '{uplink}' is not the profile's, which is 'none'", "command line")
        tried()
    public = ("--network", "public", "--allow-private")
    refused(ask(shell("true", network={"allow": ["10.0.0.1"]}), *public), "network.allow: '10.0.0.1' is not in the profile's list")
    with Folder() as folder:
        path = folder.file("mine.json", '{"extends": "base", "network": {"mode": "public", "uplink": "none"}}')
        refused(ask({"command": ["true"], "network": {"uplink": "auto"}}, "-p", path), "network.uplink", "'none'")
    equal(ask_result(shell("true", network={"uplink": "none"}), "--network", "public")["status"], "exited", "status")


@test("a request does not turn on_output_limit: kill into truncate")
def _():
    kill = ("--on-output-limit", "kill", "--max-output", "1K")
    refused(ask(shell("true", on_output_limit="truncate"), *kill), "on_output_limit: 'truncate' is more than the profile's 'kill'", "command line")
    value = ask_result(shell("yes", on_output_limit="kill"), "--max-output", "1K")
    equal(value["status"], "output_limit", "the status of a request that asks for kill")


@test("a request can't name anything of the host, and the command line can")
def _():
    with Folder() as folder:
        path = folder.file("shown", "of the host")
        for key, value in (
            ("ro_bind", [path]), ("bind", [folder.path]), ("overlay", [folder.path]), ("file", [path]),
            ("connect", ["tcp:127.0.0.1:1"]), ("rootfs", folder.path), ("seccomp", path),
            ("cgroup_parent", "/"), ("network", {"allow_private": True}),
        ):  # fmt: skip
            refused(ask(shell("true", **{key: value})), "names something of the host", "command line")
            tried()
        request = shell("cat /mnt/shown shown; cat args.json; echo $A", env={"A": "2"})
        done = ask(request, "--ro-bind", f"{path}:/mnt/shown", "-f", path, "--args-json", "[1]", "-e", "A=1", "--quiet")
        equal(done.exits(0).out, "of the hostof the host[1]2\n", "output")


@test("a request can't ask for what is the caller's alone, and takes back no --strict and no --noexec")
def _():
    for key, value in (("tty", True), ("interactive", True), ("json", True), ("request_fd", 3), ("dry_run", True)):
        refused(ask(shell("true", **{key: value})), key)
        tried()
    refused(ask(shell("true", noexec=False), "--noexec"), "can't be taken back")
    refused(ask(shell("true", writable=True), "--noexec"), "writable", "noexec", "can't be taken back")


@test("what is not one valid request is refused with its place, and nothing runs")
def _():
    base = '{"profile": "base", "command": ["/bin/echo", "ran"]'
    for text, *words in (
        ("", "request"), ("[]", "a request is an object"), (base, "request:1:"), (base + "} x", "request:1:"),
        (base + ', "code": "1"}', "exclude each other"), (base + ', "nonsense": 1}', "unknown key 'nonsense'"),
        (base + ', "profile": "base"}', "duplicate"), ('{"profile": "base"}', "code or command is missing"),
        (base + ', "files": [{"path": "../../etc/x", "text": ""}]}', "files"),
        (base + ', "files": [{"path": "/proc/x", "text": ""}]}', "/proc"),
        ('{"a":' * 40 + "1" + "}" * 40, "request:1:"), (b"\xff\xfe", "request:1:"),
        ('{"profile": "base", "code": "1"}', "code: profile 'base' has no interpreter"),
    ):  # fmt: skip
        refused(ask(text), *words)
        tried()


@test("a request's failure has a result, too, under the id that it asked for")
def _():
    value = ask_result(shell("true", memory="9G", id="mine"))
    equal((value["status"], value["id"], value["error"]["stage"]), ("setup_error", "mine", "options"), "result")
    contains(value["error"]["message"], "memory", "message")


@test("a request excludes another program, a terminal and a service, and needs a descriptor to read")
def _():
    for options in (("-c", "1"), ("--", "true"), ("file.py",), ("--tty",), ("-i",), ("--remote", "/none.sock")):
        refused(ask(shell("true"), *options), "'--request-fd' and", "exclude each other")
        tried()
    refused(cejail("shell", "--request-fd", "0"), "'--request-fd' and 'cejail shell'")
    refused(run("--request-fd", "1"), "--request-fd 1", "for output")
    refused(run("--request-fd", "77"), "--request-fd 77", "Bad file descriptor")
    with Folder() as folder, open(folder / "out", "wb") as file:
        fd = str(file.fileno())
        refused(run("--request-fd", fd, pass_fds=(file.fileno(),)), "not open for reading")


@test("a request does not learn from an error which files the host has")
def _():
    with Folder() as folder:
        path = folder.file("secret.sh", "true", 0o755)
        value = ask_result({"profile": "base", "command": [path]})
        equal(value["exit_code"], 127, "exit status")
        lacks(json.dumps(value["error"]), "it is a file", "the error")


@test("--dry-run shows the plan of a request")
def _():
    plan = json.loads(ask(shell("true", pids=5), "--dry-run").exits(0).out)
    contains(json.dumps(plan), "/bin/sh", "the plan")
