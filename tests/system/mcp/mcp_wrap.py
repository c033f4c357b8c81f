# SPDX-License-Identifier: Apache-2.0
"""`cejail mcp wrap`: the MCP server of somebody else in a jail: its streams, its end, its cache, user errors."""

import json
import os
import pty
import random
import shutil
import signal
import stat
import subprocess
import tarfile
import time

from harness import *  # noqa: F403
from internet import Internet, PUBLIC4
from mcp_client import Server
from mcp_sdk import CLIENTS, HERE, node

GRACE = 10  # seconds after the end of the input: WRAP_GRACE_MS
NO_CACHE = ("--cache", "none")
OFFLINE = ("--network", "none")
PLAIN = (*NO_CACHE, *OFFLINE)

# A server of MCP with one tool, which evaluates Python.
FAKE = """
import json, os, socket, sys
def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "fake", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "eval", "inputSchema": {"type": "object"}}]}
    return {"content": [{"type": "text", "text": str(eval(params["arguments"]["code"]))}]}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message["params"])}), flush=True)
"""
FAKE_COMMAND = ("--", "python3", "-c", FAKE)


def fake(*options, **more):
    return Server("wrap", *options, *FAKE_COMMAND, **more)


def ask(server, code):
    return server.call("eval", code=code)["content"][0]["text"]


def wrap(*args, **options):
    return cejail("mcp", "wrap", *args, **options)


def wrap_sh(script, *options, **more):
    return wrap(*options, "--", "sh", "-c", script, **more)


def begin(script, *options, **more):
    return start("mcp", "wrap", *options, "--", "sh", "-c", script, stdin=subprocess.PIPE, **more)


def close(process):
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream and not stream.closed:
            stream.close()


def below(process):
    return [pid for pid in descendants() if "sleep" in (describe_process(pid) or "")]


# --- streams --------------------------------------------------------------------------


@test("mcp wrap: a client speaks with the server in the jail, which ends with its input")
def _():
    with fake(*PLAIN) as s:
        equal(s.opened["result"]["serverInfo"]["name"], "fake", "the server")
        equal([tool["name"] for tool in s.ask("tools/list")["result"]["tools"]], ["eval"], "the tools")
        equal(ask(s, "os.environ['HOME'], os.getcwd(), os.listdir('/box')"), "('/box', '/box', ['.local', 'out'])", "HOME")
        equal(ask(s, "'CEJAIL_TEST_SECRET' in os.environ"), "False", "the caller's variables")
        equal(ask(s, "1 + 1"), "2", "a later call")
    equal(s.error, "", "stderr")


@test("mcp wrap: 10 MiB with every byte go in and out unchanged, and 1 MiB on stdout and on stderr")
def _():
    data = random.Random(1).randbytes(10 << 20) + bytes(range(256)) + b"\0\0\r\n\x1b[31m no newline at the end"
    done = wrap(*PLAIN, "--", "cat", given=data, limit=60).exits(0)
    equal((done.raw_out == data, done.err), (True, ""), "what came back")
    data = data[-(1 << 20):]  # a server is killed 10 s after the end of its input: less to write for it then
    done = wrap_sh("cat > /tmp/f; cat /tmp/f; cat /tmp/f >&2", *PLAIN, given=data, limit=60).exits(0)
    equal((done.raw_out == data, done.raw_err == data), (True, True), "what came back on both")


@test("mcp wrap: each byte is passed on at once")
def _():
    process = begin("cat; echo end", *PLAIN)
    for byte in (b"x", b"\0", b"{"):
        process.stdin.write(byte)
        process.stdin.flush()
        equal(process.stdout.read(1), byte, "the byte")
    done = finish(process)
    equal((done.code, done.out, done.err), (0, "end\n", ""), "the end")


@test("mcp wrap: a terminal receives what the server writes, control characters too")
def _():
    ours, theirs = pty.openpty()
    process = start("mcp", "wrap", *PLAIN, "--", "printf", "\\033[31mred\\007", stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while not seen.endswith(b"\a"):
            seen += os.read(ours, 100)
    except OSError:
        pass
    equal(await_exit(process), 0, "the exit status")
    os.close(ours)
    equal(seen, b"\x1b[31mred\a", "what the terminal received")


@test("mcp wrap: the exit status is the server's, and nothing is added to its streams")
def _():
    equal(repr(wrap_sh("echo out; echo err >&2; exit 7", *PLAIN)), "code 7, stdout 'out\\n', stderr 'err\\n'", "an exit")
    equal(repr(wrap_sh("kill -SEGV $$", *PLAIN)), "code 139, stdout '', stderr ''", "a signal")
    equal(repr(wrap_sh("unshare -U true 2>/dev/null; mount -t tmpfs x /mnt 2>/dev/null; exit 0", *PLAIN)),
          "code 0, stdout '', stderr ''", "denied calls")
    contains(wrap_sh("kill -SEGV $$", "-v", *PLAIN).exits(139).err, "ended by signal 11", "with --verbose")
    done = wrap_sh("sleep 6000", "--timeout", "1", *PLAIN).exits(124)
    equal((done.out, done.err), ("", ""), "the streams after a time limit that was given")


@test("mcp wrap: with --json=FILE the result is in the file")
def _():
    with Folder() as f:
        equal(repr(wrap_sh("echo out; exit 3", *PLAIN, f"--json={f / 'result'}")), "code 3, stdout 'out\\n', stderr ''", "the run")
        with open(f / "result", encoding="utf-8") as file:
            value = parse_result(file.read())
        equal((value["status"], value["exit_code"], value["stdout"]["text"]), ("exited", 3, "out\n"), "the result")


@test("mcp wrap: the command chooses the profile, and --profile overrides it")
def _():
    wanted = {"npx": "node", "node": "node", "uvx": "python", "/usr/bin/python3": "python", "python3.11": "python", "deno": "deno", "my-server": "shell"}
    for command, profile in wanted.items():
        equal(json.loads(wrap("--dry-run", *PLAIN, "--", command).exits(0).out)["profile"]["name"], profile, command)
    equal(json.loads(wrap("--dry-run", "-p", "base", *PLAIN, "--", "npx").exits(0).out)["profile"]["name"], "base", "the profile")


# --- the end --------------------------------------------------------------------------


@test("mcp wrap: there is no time limit, not that of the profile either")
def _():
    with Folder() as f:
        place = f.file("short.json", '{"extends": "base", "timeout": "1s"}')
        with fake("-p", place, *PLAIN) as s:
            time.sleep(1.5)
            equal(ask(s, "2"), "2", "a call after the profile's limit")


@test("mcp wrap: a server that goes on after its input is killed after ten seconds")
def _():
    began = time.monotonic()
    done = wrap_sh("trap '' TERM HUP; cat >/dev/null; while :; do sleep 71; done", *PLAIN, given=b"request\n")
    equal(repr(done), "code 137, stdout '', stderr ''", "the end")
    true(time.monotonic() - began >= GRACE, "it was killed too early")


@test("mcp wrap: a server that reads nothing ends with its client, too")
def _():
    process = begin("exec sleep 72", *PLAIN)
    os.set_blocking(process.stdin.fileno(), False)
    wait_until(lambda: below(process), "the server")
    try:
        while True:
            os.write(process.stdin.fileno(), bytes(1 << 16))
            time.sleep(0.02)
    except BlockingIOError:
        pass
    done = finish(process)
    equal((done.code, below(process)), (137, []), "the end")


@test("mcp wrap: SIGTERM, SIGINT and SIGHUP end the server, without a word")
def _():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process = begin("echo up; exec sleep 73", *PLAIN)
        equal(process.stdout.readline(), b"up\n", "the first line")
        process.send_signal(number)
        equal(await_exit(process), 128 + number, "the exit status")
        equal(process.stderr.read(), b"", "stderr")
        close(process)
        equal(below(process), [], "what is left")


@test("mcp wrap: a killed cejail leaves no server running")
def _():
    process = begin("echo up; exec sleep 74", *PLAIN)
    equal(process.stdout.readline(), b"up\n", "the first line")
    wait_until(lambda: below(process), "the server")  # the shell becomes it
    process.kill()
    process.wait()
    close(process)
    wait_until(lambda: not below(process), "the end of the server")
    cejail("gc").exits(0)


@test("mcp wrap: a client that closes the output ends the server")
def _():
    process = begin("while echo line; do sleep 0.05; done; exec sleep 75", *PLAIN)
    process.stdout.readline()
    process.stdout.close()
    equal(await_exit(process), 141, "the exit status")
    equal(process.stderr.read(), b"", "stderr")
    close(process)


# --- the cache ------------------------------------------------------------------------


def cached(f, script, *options, name="test", **more):
    """In a cache of the test's; skips where root's jail can have none."""
    reason = no_overlay(f.path)
    if reason:
        raise Skip(reason)
    return wrap_sh(script, "--cache", name, *OFFLINE, *options, env=environment(XDG_CACHE_HOME=f / "cache"), **more)


@test("mcp wrap: what a server keeps is there at its next start, and HOME is empty each time")
def _():
    with Folder() as f:
        script = "ls -A $HOME /cache; echo $XDG_CACHE_HOME $npm_config_cache $UV_CACHE_DIR; echo kept > /cache/file; echo gone > ~/file; ln -s file /cache/link; cat /cache/link"
        places = "/cache /cache/npm /cache/uv\nkept\n"  # the variables, and the file through its link
        equal(cached(f, script).exits(0).out, "/box:\nout\n\n/cache:\n" + places, "the first start")
        again = cached(f, "ls -A $HOME /cache; cat /cache/link").exits(0)
        equal((again.out, again.err), ("/box:\nout\n\n/cache:\nfile\nlink\nkept\n", ""), "the second start")
        equal(cached(f, "ls -A /cache", name="another").exits(0).out, "", "a server with another name")
        mine = f / "cache/cejail/mcp/test"
        equal(sorted(os.listdir(mine)), ["file", "link"], "the directory on the host")
        for path in (f / "cache", f / "cache/cejail", f / "cache/cejail/mcp", mine):
            equal(stat.S_IMODE(os.stat(path).st_mode), 0o700, f"the mode of {path}")


@test("mcp wrap: each command has a cache of its own, and --cache none keeps nothing")
def _():
    with Folder() as f:
        reason = no_overlay(f.path)
        if reason:
            raise Skip(reason)
        env = environment(HOME=f.path)
        for command in (("true",), ("true", "x"), ("true",), ("/usr/bin/true",), ("sh", "-c", "exit 0")):
            wrap(*OFFLINE, "--", *command, env=env).exits(0)
        made = sorted(os.listdir(f / ".cache/cejail/mcp"))
        equal([name.rsplit("-", 1)[0] for name in made], ["sh", "true", "true", "true"], "the caches")
        wrap("--dry-run", *OFFLINE, "--rootfs", "/usr", "--", "true", env=env)
        more = set(os.listdir(f / ".cache/cejail/mcp")) - set(made)
        equal([name.rsplit("-", 1)[0] for name in more], ["true"], "the cache of the same command in another root file system")
        shutil.rmtree(f / ".cache")
        done = wrap_sh("echo [$XDG_CACHE_HOME]; ls /cache", *PLAIN, env=env)
        equal((done.code, done.out, os.listdir(f.path)), (2, "[]\n", []), "without a cache")


@test("mcp wrap: links that a server leaves in its cache lead to nothing of the host, and redirect no mount")
def _():
    with Folder() as f:
        secret = f.file("secret", "canary")
        cached(f, f"ln -s {secret} /cache/file; ln -s {f.path} /cache/dir; ln -s /box /cache/box; ln -s / /cache/root").exits(0)
        done = cached(f, f"cat /cache/file /cache/dir/secret /cache/root{secret}")
        equal((done.code, done.out), (1, ""), "the host's file")
        lacks(done.err, "canary", "stderr")
        done = cached(f, "true", "--ro-bind", f"{f.path}:/cache/box/in")
        refused(done, "/cache/box/in")


@test("mcp wrap: a cache that is a link, or another user's, is refused; its mode is set again")
def _():
    with Folder() as f:
        outside = f.folder("outside")
        cached(f, "chmod 0777 /cache; chmod 0000 /cache").exits(0)
        cached(f, "touch /cache/x; chmod 0777 /cache").exits(0)
        cached(f, "true").exits(0)
        mine = f / "cache/cejail/mcp/test"
        equal(stat.S_IMODE(os.stat(mine).st_mode), 0o700, "the mode")
        shutil.rmtree(mine)
        os.symlink(outside, mine)
        refused(cached(f, "touch /cache/new"), "--cache: open the directory", mine, "XDG_CACHE_HOME", "--cache none")
        shutil.rmtree(f / "cache/cejail")
        os.symlink(outside, f / "cache/cejail")
        refused(cached(f, "touch /cache/new"), "--cache: open the directory", f / "cache/cejail")
        equal(os.listdir(outside), [], "what the link leads to")


@test("mcp wrap: npx starts a server from its cache, where programs are links", limit=120)
def _():
    if not os.path.exists("/usr/bin/npx"):
        raise Skip("/usr/bin/npx is not installed")
    with Folder() as f:
        if no_overlay(f.path):
            raise Skip(no_overlay(f.path))
        f.file("package/package.json", json.dumps({"name": "fake-server", "version": "1.0.0", "bin": {"fake-server": "main.js"}}))
        f.file("package/main.js", "#!/usr/bin/env node\nprocess.stdin.pipe(process.stdout);\n", 0o755)
        with tarfile.open(f / "package.tgz", "w:gz") as packed:
            packed.add(f / "package", "package")
        for _ in range(2):
            process = start("mcp", "wrap", "--cache", "npx", *OFFLINE, "--ro-bind", f"{f / 'package.tgz'}:/srv/package.tgz", "--",
                            "npx", "-y", "--offline", "file:/srv/package.tgz", stdin=subprocess.PIPE, bufsize=0,
                            env=environment(XDG_CACHE_HOME=f / "cache"))
            process.stdin.write(b"\0hello")
            equal(process.stdout.read(1), b"\0", "the first byte of the answer")
            done = finish(process, 60)
            equal((done.code, done.raw_out), (0, b"hello"), f"the rest of the answer ({done!r})")
        true(os.path.isdir(f / "cache/cejail/mcp/npx/npm/_npx"), "npx has kept nothing")


# --- user errors ------------------------------------------------------------------------


@test("mcp wrap: each mistake is one line with the remedy, and nothing on stdout")
def _():
    refused(wrap(), "COMMAND is missing", "cejail mcp wrap -- npx")
    refused(wrap("--memory", "64M", "--"), "COMMAND is missing")
    refused(wrap("--json", *PLAIN, "--", "true"), "standard output is the server's", "--json=FILE")
    refused(wrap("-f", "-:x", *PLAIN, "--", "true"), "standard input is the server's")
    for option in (("--tty",), ("-c", "1"), ("--remote",), ("--artifacts", "/x"), ("--on-output-limit", "kill"), ("--calls-max", "1")):
        refused(wrap(*option, *PLAIN, "--", "true"), f"option '{option[0]}' is not for 'cejail mcp wrap'", "--help")
    refused(wrap("--cach", "x", "--", "true"), "unknown option '--cach'")
    for name in ("../x", "a/b", "", "A", "-x", ".", "x" * 33):
        refused(wrap(f"--cache={name}", "--", "true"), "is not a name", "'none'")
    refused(wrap("-p", "nothing", *PLAIN, "--", "true"), "nothing")
    contains(wrap("--help").exits(0).out, "--cache NAME|none", "the help")
    contains(cejail("mcp", "--help").exits(0).out, "cejail mcp wrap", "the help of mcp")


@test("mcp wrap: a command that the jail lacks is explained: where the host has it, and which option shows it")
def _():
    with Folder() as f:
        refused(wrap(*PLAIN, "--", "no-such-server"), "execute 'no-such-server'", "install it", "--rootfs NAME", code=127)
        f.file("bin/my-server", "#!/bin/sh\necho shown\n", 0o755)
        env = environment(PATH=f"{f / 'bin'}:/usr/bin")
        done = refused(wrap(*PLAIN, "--", "my-server", env=env), "execute 'my-server'", f"--ro-bind {f / 'bin'} -e PATH={f / 'bin'}:", code=127)
        options = done.err.split(": add ")[1].rstrip(")\n").split()
        equal(wrap(*options, *PLAIN, "--", "my-server").exits(0).out, "shown\n", "with what the hint says")
        refused(wrap(*PLAIN, "--", f / "bin/my-server"), f"--ro-bind {f / 'bin'}", code=127)


@test("mcp wrap: without a place for the cache, the message says what to set")
def _():
    remedy = ("set XDG_CACHE_HOME", "--cache none")
    env = environment()
    env.pop("HOME", None)
    refused(wrap("--", "true", env=env), "neither XDG_CACHE_HOME nor HOME", *remedy)
    refused(wrap("--", "true", env={**env, "XDG_CACHE_HOME": "relative"}), "neither XDG_CACHE_HOME nor HOME", *remedy)
    wrap(*PLAIN, "--", "true", env=env).exits(0)
    with Folder() as f:
        refused(wrap("--", "true", env={**env, "XDG_CACHE_HOME": f / "a/b"}), f"--cache: create '{f / 'a/b'}'", *remedy)
        refused(wrap("--", "true", env={**env, "XDG_CACHE_HOME": "/proc"}), "--cache: create '/proc/cejail'", *remedy)
        refused(wrap("--", "true", env={**env, "XDG_CACHE_HOME": f.file("file")}), "--cache: ", "Not a directory", *remedy)


# --- the network ------------------------------------------------------------------------

CONNECT = "[socket.socket().connect_ex((a, 80)) if not s.settimeout(3) else 0 for s in [socket.socket()] for a in {}]"


@test("mcp wrap: a server reaches the public network, but no metadata service and no private address")
def _():
    with Internet() as net:
        with fake(*NO_CACHE, **net.inside) as s:
            seen = ask(s, CONNECT.format(repr([PUBLIC4, "169.254.169.254", "10.1.2.3", "192.168.77.2"])))
        codes = json.loads(seen)
        equal(codes[0], 0, "a public address")
        true(all(codes[1:]), f"a closed address answered: {codes}")
        equal(s.error, "", "stderr")
        with fake(*NO_CACHE, "--allow", "20.30.40.60", **net.inside) as s:
            true(json.loads(ask(s, CONNECT.format(repr([PUBLIC4]))))[0], "an address that is not allowed answered")


# --- the servers of others ----------------------------------------------------------------


@test("mcp wrap: the official example servers are called by the official client, in both versions", limit=180)
def _():
    packages = f"{CLIENTS}/node_modules"
    if not os.path.exists("/usr/bin/node"):
        raise Skip("/usr/bin/node is not installed")
    with Folder() as f:
        f.file("data/hello.txt", "hello from the host")
        options = json.dumps([*PLAIN, "--ro-bind", f"{os.path.realpath(packages)}:/srv/node_modules", "--ro-bind", f"{f / 'data'}:/data"])
        for sdk in ("1", "2"):
            seen = node(f"{HERE}/sdk/wrap.mjs", sdk, CEJAIL, options)
            equal(seen["echo"], "Echo: hello", "server-everything")
            equal(seen["read"], "hello from the host", "server-filesystem")
            contains(seen["outside"], "denied", "server-filesystem outside of its directory")
            true(seen["write"], "server-filesystem has written to a read-only directory")
