# SPDX-License-Identifier: Apache-2.0
"""First uses of a network that go wrong: an uplink that fails, and runs that end while it is being built."""

import json
import os
import signal
import time

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from states import *  # noqa: F403

# Helpers that an Internet(helpers=...) gives: they take long, or they fail.
STUCK = "#!/bin/sh\nexec sleep 1000\n"
BROKEN = "#!/bin/sh\necho 'the tests broke it' >&2\nexit 3\n"


def slow(helper):
    """Not so slow that cejail gives it up, which it does after fifteen seconds."""
    return f"#!/bin/sh\nsleep 1\nexec /usr/bin/{helper} \"$@\"\n"


def stuck_below(pid):
    """A helper that does what STUCK says."""
    return any(" sleep " in (describe_process(one) or "") for one in descendants_of(pid))


# --- failures -------------------------------------------------------------------

for helper in ("pasta", "slirp4netns"):

    @test(f"when {helper} fails at the first use, the state is failed with its words, and connections are refused at once")
    def _(helper=helper):
        need(helper)
        with Internet(helpers={helper: BROKEN}) as net:
            fails_closed(net, ("--uplink", helper), helper, "the tests broke it")


@test("a requested uplink none is no failure: the state is ready, and connections are refused at once")
def _():
    with Internet() as net:
        code = SEE + "print(json.dumps([[attempt(*one) for one in json.load(open('/box/args.json'))], links()]))"
        value = net.run(code, "--uplink", "none", "--args-json", json.dumps([*OPEN, *CLOSED]))
        went, links = said(value)
        true(all(word in REFUSED for word in went), f"attempts: {went}")
        equal(links, AFTER, "links")
        was_ready(value, "none")


@test("the events say that the network failed, and why")
def _():
    need("pasta")
    with Internet(helpers={"pasta": BROKEN}) as net:
        rows = events(net, "import socket; socket.socket()", "--uplink", "pasta")
        failed = [row for row in rows if row["type"] == "network"]
        equal([row["state"] for row in failed], ["failed"], "states")
        contains(failed[0]["reason"], "the tests broke it", "reason")


# --- while it is being built ------------------------------------------------------

USE = TRY + """
import os, time
print("ready", flush=True)
print(attempt("tcp", "20.30.40.50", 80), flush=True)
"""


@test("a slow helper delays only the call that waits for the network")
def _():
    need("pasta")
    code = SEE + """
done = threading.Event()
went = []
def use():
    went.append(attempt("tcp", "20.30.40.50", 80))
    done.set()
threading.Thread(target=use).start()
turns = 0
while not done.wait(0.05):
    turns += 1
    print(".", end="", flush=True)
print(json.dumps([turns > 1, went, links()]))
"""
    with Internet(helpers={"pasta": slow("pasta")}) as net:
        value = net.run(code, "--uplink", "pasta")
        equal(json.loads(value["stdout"]["text"].lstrip(".")), [True, ["answered"], AFTER], "other thread, attempt, links")
        was_ready(value, "pasta")


@test("a process that waits for the network can be killed, and the next one gets it")
def _():
    need("pasta")
    code = SEE + """
import signal
pid = os.fork()
if pid == 0:
    socket.socket()
    os._exit(0)
while "S" not in open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]:
    pass
time.sleep(0.1)
os.kill(pid, signal.SIGKILL)
print(json.dumps([os.WTERMSIG(os.waitpid(pid, 0)[1]), links(), attempt("tcp", "20.30.40.50", 80)]))
"""
    with Internet(helpers={"pasta": slow("pasta")}) as net:
        went = said(net.run(code, "--uplink", "pasta"))
        equal((went[0], went[2]), (9, "answered"), "the child's signal, and the parent's attempt")


@test("a time limit that ends while a helper starts ends the run, and the helper")
def _():
    need("pasta")
    with Internet(helpers={"pasta": STUCK}) as net:
        # soon after the helper's start, and before the fifteen seconds are over that cejail waits for it
        program = ("-t", "4s", "--", "python3", "-ISc", "import _socket; _socket.socket()")
        value = result("-p", "base", "--network", "public", "--uplink", "pasta", *program, **net.inside)
        equal(value["status"], "timeout", "status")
        has_failed(value, "the run ended before")
        nothing_is_left(net)


@test("a helper that never becomes ready is given up: the call goes on, and the state is failed", limit=120)
def _():
    need("pasta")
    with Internet(helpers={"pasta": STUCK}) as net:
        value = net.run("import socket; socket.socket(); print('[1]')", "--uplink", "pasta")
        equal(said(value), [1], "output")
        has_failed(value, "pasta")


for name, number in (("SIGTERM", signal.SIGTERM), ("SIGINT", signal.SIGINT)):

    @test(f"{name} while a helper starts cancels the run and leaves nothing")
    def _(number=number):
        need("pasta")
        with Internet(helpers={"pasta": STUCK}) as net:
            with net.talk(USE, "--uplink", "pasta") as jail:
                wait_until(lambda: len(descendants_of(jail.process.pid)) > 2, "the helper")
                jail.process.send_signal(number)
                equal(jail.result()["status"], "cancelled", "status")
            nothing_is_left(net)


@each_uplink("through {} a run whose main process ends while another one opens the first socket ends at once, and leaves nothing")
def _(*uplink):
    code = """
import os, socket, sys, time
if os.fork() == 0:
    socket.socket()
    time.sleep(100)
time.sleep(float(sys.argv[1]))
os._exit(7)
"""
    states = set()
    with Internet() as net:
        for step in (steps := thinned(range(12))):
            words = ("-p", "python", "--network", "public", *uplink, "-c", code, str(step * 0.002 * SLOW))
            value = result(*words, **net.inside)
            equal((value["status"], value["exit_code"]), ("exited", 7), "end")
            states.add(value["network"]["state"])
            true(value["network"]["state"] != "failed" or value["network"]["reason"], "a failure without a reason")
        nothing_is_left(net)
    tried(len(steps))


@test("a main process that ends while a helper starts ends the run, and the helper")
def _():
    need("pasta")
    code = """
import os, socket, time
print("ready", flush=True)
if os.fork() == 0:
    socket.socket()
    time.sleep(100)
input()
os._exit(7)
"""
    with Internet(helpers={"pasta": STUCK}) as net:
        with net.talk(code, "--uplink", "pasta") as jail:
            wait_until(lambda: stuck_below(jail.process.pid), "the helper")
            jail.send()
            value = jail.result()
        equal((value["status"], value["exit_code"]), ("exited", 7), "end")
        has_failed(value, "the run ended before")
        nothing_is_left(net)


@each_uplink("through {} a supervisor killed at any moment of the first use leaves nothing in the host", limit=120)
def _(*uplink):
    steps = thinned(range(60 if LONG else 12))
    with Internet() as net:
        for step in steps:
            words = ("run", "-p", "python", "--network", "public", *uplink, "-c", USE)
            process = start(*words, **net.inside)
            equal(process.stdout.readline(), b"ready\n", "the program's first word")
            time.sleep(step * 0.001 * SLOW)  # not to wait for something: to hit it in between
            kill(process)
        nothing_is_left(net)
    all_have_ended()
    tried(len(steps))


@test("a supervisor killed while a helper starts leaves neither the helper nor a link")
def _():
    need("pasta")
    with Internet(helpers={"pasta": STUCK}) as net:
        process = start("run", "-p", "python", "--network", "public", "--uplink", "pasta", "-c", USE, **net.inside)
        wait_until(lambda: len(descendants_of(process.pid)) > 2, "the helper")
        kill(process)
        nothing_is_left(net)
    all_have_ended()
