# SPDX-License-Identifier: Apache-2.0
"""--setup: a command runs in the jail before the program, with a network and a time of its own."""

import hashlib
import signal

from harness import *  # noqa: F403
from internet import *  # noqa: F403


def is_refused(value, message, status=None):
    """The program has not run, and the result says why."""
    equal((value["status"], value["error"]["stage"], value["stdout"]["text"]), ("setup_error", "setup", ""), "the end")
    true(message in value["error"]["message"], f"the error: {value['error']}")
    if status:
        equal(value["setup"]["status"], status, "the command's end")


@test("the command runs first, its files stay, and the result has both")
def _():
    value = sh_result("cat made; echo program", "--setup", "echo one; echo two >&2; echo file > made")
    equal((value["status"], value["exit_code"], value["stdout"]["text"]), ("exited", 0, "file\nprogram\n"), "the program")
    setup = value["setup"]
    equal((setup["status"], setup["exit_code"], setup["stdout"]["text"], setup["stderr"]["text"]), ("exited", 0, "one\n", "two\n"), "the command")
    true("setup" not in sh_result("true"), "a run without a command has no such member")


@test("what the command prints goes to standard error")
def _():
    done = sh("echo program", "-q", "--setup", "echo one; echo two >&2")
    done.exits(0)
    equal((done.out, done.err), ("program\n", "one\ntwo\n"), "the streams")


@test("no process of the command is left when the program starts")
def _():
    left = "sleep 600 & setsid sleep 600 & (trap '' TERM HUP INT; while :; do sleep 1; done) & echo $$"
    value = sh_result("echo /proc/[0-9]*; kill -9 -1; echo $?", "--setup", left)
    equal(value["stdout"]["text"].split("\n")[0].split()[:1], ["/proc/1"], "processes")
    equal(len(value["stdout"]["text"].split("\n")[0].split()), 2, f"processes: {value['stdout']['text']}")


@test("a command that fails, is killed, takes too long or too much keeps the program from running")
def _():
    for command, message, status, options in (
        ("exit 3", "--setup 'exit 3': the command ended with exit status 3", "exited", ()),
        ("kill -9 $$", "ended with status 'signaled'", "signaled", ()),
        ("sleep 600", "did not end within", "timeout", ("--setup-timeout", "0.5")),
        ("while :; do :; done", "ended with status 'cpu_limit'", "cpu_limit", ("--cpu-time", "1s")),
        ("yes", "ended with status 'output_limit'", "output_limit", ("--on-output-limit", "kill")),
        ("head -c 300M /dev/zero | tail -c 299M", "ended with status 'oom'", "oom", ("-m", "64M")),
    ):
        value = sh_result("echo program", *options, "--setup", command)
        is_refused(value, message, status)
    done = sh("echo program", "--setup", "echo why; exit 3").exits(125)
    true("why\n" in done.err and "--setup 'echo why; exit 3': the command ended with exit status 3" in done.err, done.err)


@test("a signal to cejail while the command runs cancels the run")
def _():
    with Folder() as f:
        process = start("run", "-p", "base", f"--json={f / 'r'}", "--setup", "echo ready; sleep 600", "--", "/bin/echo", "program")
        wait_until(lambda: b"ready" in process.stderr.read1(100), "the command's first word", 20)
        process.send_signal(signal.SIGTERM)
        done = finish(process, 10)
        equal((done.code, done.out), (143, ""), "the end")
        with open(f / "r", encoding="utf-8") as file:
            value = parse_result(file.read())
        equal((value["status"], value["setup"]["status"]), ("cancelled", "cancelled"), "the result")


@test("the code is what the caller gave, whatever the command wrote in its place")
def _():
    code = "print(open('/box/data').read().strip())"
    with Folder() as f:
        f.file("data", "first\n")
        for trick in ("echo 'print(1)' > main.py", "ln -s /etc/passwd main.py", "mkdir empty; ln -s /box/none main.py"):
            value = result("-p", "python", "-f", f / "data", "--setup", f"echo changed >> data; {trick}", "-c", code)
            equal((value["exit_code"], value["stdout"]["text"]), (0, "first\nchanged\n"), f"{trick}: {value['stderr']['text'][-300:]}")
            equal(value["code_sha256"], hashlib.sha256(code.encode()).hexdigest(), "the hash")


@test("the program's limits begin anew: CPU time and wall time of the command are not its own")
def _():
    burn = "import time; end = time.process_time() + 0.7\nwhile time.process_time() < end: pass"
    value = result("-p", "python", "--cpu-time", "1s", "-t", scaled(20), "--setup", f"python3 -c '{burn}'", "-c", burn)
    equal((value["status"], value["setup"]["status"]), ("exited", "exited"), "both ends")
    used = value["usage"]["cpu_user_ms"] + value["usage"]["cpu_system_ms"]
    true(600 <= used < 1000, f"the program's CPU time: {used} ms")


@test("the command has the program's environment, directory, system call filter and no more rights")
def _():
    show = "pwd; echo $A; id -u; grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status"
    value = sh_result(show, "-e", "A=B", "-w", "/tmp", "--setup", show)
    equal(value["setup"]["stdout"]["text"], value["stdout"]["text"], "what both see")
    true("NoNewPrivs:\t1" in value["stdout"]["text"], value["stdout"]["text"])


@test("--setup is refused where it can't work, and says what does")
def _():
    for words, message in (
        (("--setup-allow", "a.test"), "--setup-allow 'a.test': there is no command that it is for (add --setup"),
        (("--setup", "true", "--tty"), "'--setup' and '--tty' exclude each other"),
        (("--setup", "true", "--setup-allow", "a..b"), "--setup-allow"),
        (("--setup", "true", "--network", "none", "--allow", "a.test"), "add --network public"),
        (("--setup", "true", "--setup-timeout", "x"), "--setup-timeout"),
    ):
        true(message in sh("true", *words).exits(125).err, f"{words}: the message")


# --- the network ------------------------------------------------------------------------------

PORT = 80
TRIES = f"""python3 -c '
import socket
for host in "public.test", "{OTHER4}", "10.1.2.3":
    try:
        socket.create_connection((host, {PORT}), 5).close()
        print(host, "open")
    except OSError as why:
        print(host, "closed")'"""
OPEN = f"public.test open\n{OTHER4} closed\n10.1.2.3 closed\n"
SHUT = f"public.test closed\n{OTHER4} closed\n10.1.2.3 closed\n"
OTHER = f"public.test closed\n{OTHER4} open\n10.1.2.3 closed\n"


def both(net, *options):
    value = sh_result(TRIES, "-t", scaled(30), *options, "--setup", TRIES, **net.inside)
    equal((value["status"], value["error"]), ("exited", None), "the end")
    return value["setup"]["stdout"]["text"], value["stdout"]["text"], value


@each_uplink("through {} the command has a network of its own, and the program none")
def _(*uplink):
    with Internet() as net:
        went = both(net, *uplink, "--network", "none", "--setup-allow", "public.test")
        equal(went[:2], (OPEN, SHUT), "what both reach")
        equal(went[2]["network"]["mode"], "public", "the network")


@each_uplink("through {} each of the two reaches what its own list opens, and nothing of the other's")
def _(*uplink):
    with Internet() as net:
        options = ("--network", "public", "--allow", OTHER4, "--setup-allow", "*.wild.test", "--setup-allow", "public.test")
        equal(both(net, *uplink, *options)[:2], (OPEN, OTHER), "what both reach")


@test("without --setup-allow the command has the program's network, and none where that has none")
def _():
    with Internet() as net:
        equal(both(net, "--network", "public", "--allow", "public.test")[:2], (OPEN, OPEN), "a list")
        equal(both(net, "--network", "none")[:2], (SHUT, SHUT), "no network")


@test("a connection that the command leaves open ends with it, and its address is closed for the program")
def _():
    code = """
import os, socket, time
s = socket.create_connection(("public.test", 80))
if os.fork() == 0:
    os.setsid()
    while True:
        time.sleep(1)
"""
    with Internet() as net:
        options = ("--network", "none", "--setup-allow", "public.test", "--setup", f"python3 -c '{code}'")
        value = sh_result(TRIES, "-t", scaled(30), *options, **net.inside)
        equal(value["stdout"]["text"], SHUT, "what the program reaches")
        wait_until(lambda: not net.open_connections(), "the end of the connection")
