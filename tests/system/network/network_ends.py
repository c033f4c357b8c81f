# SPDX-License-Identifier: Apache-2.0
"""Bad days of the network: no helper, a helper that dies, forwarding off, floods, many at once, a killed
supervisor.  A jail stays closed in all of them, and after each test the host is as it was."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from states import *  # noqa: F403

# What a jail does when told: a line of attempts in, how they went out.
OBEDIENT = """
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps([attempt(*one) for one in json.loads(line)]), flush=True)
"""


@test("without a network helper a jail stays closed, and a warning says what to install", who="user")
def _():
    with Internet(without=("pasta", "slirp4netns")) as net:
        fails_closed(net, (), "pasta", "slirp4netns")


for helper in ("pasta", "slirp4netns"):

    @test(f"a missing {helper} that was requested by name is a warning, and no other uplink is used")
    def _(helper=helper):
        with Internet(without=(helper,)) as net:
            fails_closed(net, ("--uplink", helper), helper)
            was_unused(net.run("pass", "--uplink", helper))  # what is not used does not fail


@test("without pasta slirp4netns is used", who="user")
def _():
    need("slirp4netns")
    with Internet(without=("pasta",)) as net:
        went, value = net.attempts([["tcp", PUBLIC4, 80], *CLOSED])
        equal((went[0], value["network"]["uplink"]), ("answered", "slirp4netns"), "way out")
        stays_closed(net, went[1:])


@test("the host uplink of an ordinary user is refused with the reason", who="user")
def _():
    with Internet() as net:
        fails_closed(net, ("--uplink", "host"), "CAP_NET_ADMIN")


@test("with IP forwarding off the message names the sysctl, and it is not changed", who="roots")
def _():
    with Internet(forwarding=False) as net:
        fails_closed(net, ("--uplink", "host"), "net.ipv4.ip_forward")
        equal(net.host("read", path="/proc/sys/net/ipv4/ip_forward"), "0\n", "ip_forward")
        need("pasta")
        went, value = net.attempts([["tcp", PUBLIC4, 80], *CLOSED])
        true(value["network"]["uplink"] in ("pasta", "slirp4netns"), f"uplink {value['network']['uplink']}")
        equal(went[0], "answered", "way out")
        stays_closed(net, went[1:])


def helper_below(pid, name):
    """pasta's program is passt's; both have variants for processors: "passt.avx2"."""
    todo = children_of(pid)
    while todo:
        one = todo.pop()
        words = describe_process(one)
        if words and words.split()[1].startswith({"pasta": ("pasta", "passt")}.get(name, name)):
            return one
        todo += children_of(one)
    return None


for helper in ("pasta", "slirp4netns"):

    @test(f"when {helper} dies during a run, the run goes on without a network and says so")
    def _(helper=helper):
        need(helper)
        with Internet() as net:
            reader, writer = os.pipe()  # not before: the tests' Internet would keep the end for writing
            options = ("--uplink", helper, "--events-fd", str(writer))
            with open(reader, encoding="utf-8") as lines, net.talk(OBEDIENT, *options, pass_fds=[writer]) as jail:
                os.close(writer)
                equal(json.loads(jail.ask(json.dumps([["tcp", PUBLIC4, 80]]))), ["answered"], "before")
                victim = wait_until(lambda: helper_below(jail.process.pid, helper), f"a process {helper} below the run")
                os.kill(victim, signal.SIGKILL)
                wait_until(lambda: "(Z)" in (describe_process(victim) or "(Z)"), "its end")
                net.forget()
                went = json.loads(jail.ask(json.dumps([*CLOSED, *OPEN])))
                stays_closed(net, went[: len(CLOSED)])
                # the tap device outlives its helper, and alone would drop packets without a word
                equal([word for word in went[len(CLOSED) :] if word not in REFUSED], [], "attempts not refused")
                equal(net.seen(), {}, "packets")
                value = jail.result()
                equal((value["status"], value["exit_code"]), ("exited", 0), "end")
                contains(" ".join(value["warnings"]), helper, "warnings")
                has_failed(value, helper)
                rows = [json.loads(line) for line in lines]
            equal([row["state"] for row in rows if row["type"] == "network"], ["ready", "failed"], "events")


@test("when a host gets too many addresses to close, the jail's network is closed, and the run goes on")
def _():
    with Internet() as net, net.talk(OBEDIENT) as jail:
        equal(json.loads(jail.ask(json.dumps([["tcp", PUBLIC4, 80]]))), ["answered"], "before")
        net.host("ip", lines=[f"addr add 10.98.{i}.1/24 dev lan0" for i in range(1, 100)])
        last = [["tcp", "10.98.99.1", 80], ["tcp", PUBLIC4, 80]]
        wait_until(lambda: "answered" not in json.loads(jail.ask(json.dumps(last))), "the network to be closed")
        value = jail.result()
        equal((value["status"], value["exit_code"]), ("exited", 0), "end")
        contains(" ".join(value["warnings"]), "nothing new leads out of the jail's network any more", "warnings")


# When told, it sends, and waits for no answer.
SENDER = f"ADDRESS = {PUBLIC4!r}" + """
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(5):
        try:
            socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", (ADDRESS, 80))
        except OSError:
            pass
    print("sent", flush=True)
"""


@each_uplink("through {} a jail whose rules nobody can change any more has no way out from the next change on")
def _(*uplink):
    with Internet() as net:
        for turn in range(2):  # from the third on, runs of root share a table of the host
            equal(net.attempts([["tcp", PUBLIC4, 80]], *uplink)[0], ["answered"], "a run before")
        reader, writer = os.pipe()
        options = (*uplink, "--events-fd", str(writer))
        with open(reader, encoding="utf-8") as lines, net.talk(SENDER, *options, pass_fds=[writer]) as jail:
            os.close(writer)
            jail.ask("")
            wait_until(net.seen, "packets while all is well")
            victim = wait_until(lambda: helper_below(jail.process.pid, "cejail-loader"), "the process that loads rules")
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda: "(Z)" in (describe_process(victim) or "(Z)"), "its end")
            net.host("ip", lines=["addr add 10.98.1.1/24 dev lan0"])
            next(line for line in lines if json.loads(line).get("state") == "failed")
            net.forget(ended=False)
            for _ in range(3):
                equal(jail.ask(""), "sent", "the program's answer")
            equal(net.seen(), {}, "packets")
            value = jail.result()
            equal((value["status"], value["exit_code"], value["network"]["state"]), ("exited", 0, "failed"), "end")
            contains(" ".join(value["warnings"]), "nothing leads out of the jail's network any more", "warnings")


@test("each of thousands of refusals in seconds is counted, and the run ends by itself")
def _():
    code = """
import socket
def many(n, kind, address, port):
    for _ in range(n):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as s:
            try:
                s.connect((address, port))
                s.send(b"x")
            except OSError:
                pass
many(3000, socket.SOCK_DGRAM, "10.1.2.3", 7)
many(1000, socket.SOCK_STREAM, "169.254.169.254", 80)
many(1000, socket.SOCK_DGRAM, "fd00:ec2::254", 7)
many(500, socket.SOCK_STREAM, "2001:db8::1", 443)
"""
    with Internet() as net:
        value = net.run(code)
        equal((value["status"], value["exit_code"]), ("exited", 0), f"end ({value['stderr']['text'][-500:]})")
        counts = {}
        for row in value["network"]["denied"]:
            counts[row["class"]] = counts.get(row["class"], 0) + row["count"]
        equal(counts, {"private": 3000, "metadata": 2000, "documentation": 500}, "denied")
        equal(net.seen(), {}, "packets")


@test("a port scan fills only the table of denials, and the sum of every class is exact")
def _():
    code = """
import socket
for port in range(1, 2001):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect((f"10.1.{port // 256}.{port % 256}", port))
            s.send(b"x")
        except OSError:
            pass
"""
    with Internet() as net:
        value = net.run(code)
        rows = value["network"]["denied"]
        equal(sum(row["count"] for row in rows), 2000, "denied, all rows together")
        true(len(rows) <= 300, f"{len(rows)} rows")


# The test machine's emulated processors give several pastas at once no answer within any test's patience.

@each_uplink("through {} many jails at once each have their own way out", limit=240, but=("pasta",) if EMULATED else ())
def _(*uplink):
    # the kernel gives an ordinary user 200 keys, and each jail has one
    many = 200 if WHO == "root" else 100
    count = many if LONG and uplink[-1] == "host" else 6 if EMULATED else share(20, 6)
    # cejail gives a helper fifteen seconds to start: on a busy machine many at a time take longer
    group = count if uplink[-1] == "host" else 4 if SLOW <= 5 else 1
    wanted = json.dumps([["tcp", "four.test", 80], ["tcp", "169.254.169.254", 80], ["udp", OTHER4, 7]])
    went = ["answered", "ECONNREFUSED", "answered"]
    with Internet() as net, contextlib.ExitStack() as stack:
        jails = [stack.enter_context(net.talk(OBEDIENT, *uplink)) for _ in range(count)]
        groups = [jails[first : first + group] for first in range(0, count, group)]
        for some in [*groups, jails]:
            for jail in some:
                jail.send(wanted)
            equal([json.loads(jail.receive()) for jail in some], [went] * len(some), "attempts")
        for value in [jail.result() for jail in jails]:
            equal((value["status"], value["exit_code"]), ("exited", 0), "end")
            was_ready(value, uplink[-1])
        equal({key[1] for key in net.seen()} - {RESOLVERS["public"]}, {PUBLIC4, OTHER4}, "addresses reached")


FLOOD = """
import threading, time, urllib.request
def load():
    while True:
        urllib.request.urlopen("http://four.test/big?3000000", timeout=PATIENCE).read()
threading.Thread(target=load, daemon=True).start()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("20.30.40.60", 7))
print("ready", flush=True)
while True:
    try:
        s.send(b"x" * 1000)
    except OSError:
        pass
    time.sleep(0.001)
""".replace("PATIENCE", str(30 * SLOW))


def is_busy(net):
    wait_until(lambda: {PUBLIC4, OTHER4} <= {hit[1] for hit in net.world("hits")}, "traffic")


@each_uplink("through {} a run that is cancelled under traffic leaves nothing")
def _(*uplink):
    with Internet() as net, net.talk(FLOOD, *uplink) as jail:
        is_busy(net)
        jail.process.send_signal(signal.SIGTERM)
        equal(jail.result()["status"], "cancelled", "status")


@each_uplink("through {} a supervisor that is killed under traffic leaves no helper, link, route or table")
def _(*uplink):
    with Internet() as net:
        with net.talk(FLOOD, *uplink) as jail:
            is_busy(net)
            jail.process.kill()
            jail.process.wait()
            nothing_is_left(net)
    all_have_ended()


@each_uplink("through {} a supervisor killed at any moment of its start leaves nothing in the host")
def _(*uplink):
    with Internet() as net:
        for step in thinned(range(10)):
            program = ("python3", "-ISc", "import _socket, time; _socket.socket(); time.sleep(300)")  # which builds it
            words = ("run", "-p", "base", "--network", "public", *uplink, "--", *program)
            process = start(*words, **net.inside)
            time.sleep(step * 0.006 * SLOW)  # not to wait for something: to hit it in between
            kill(process)
        nothing_is_left(net)
    all_have_ended()


def holders(net):
    """Processes that hold a shared table of this test's host."""
    here = os.stat(f"/proc/{net.stations['host'][0]}/ns/net").st_ino
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/comm", encoding="utf-8") as file:
                if file.read() == "table-helper\n" and os.stat(f"/proc/{name}/ns/net").st_ino == here:
                    found.append(int(name))
    return found


def links(net):
    return sorted({word for line in net.left() for word in re.findall(r"\bcj(?:s\d+-)?\d+\b", line)})


SHARED = ("--uplink", "host")


@test("runs at the same time share a table on the host, and keep it when its holder is killed", who="roots")
def _():
    with Internet() as net, contextlib.ExitStack() as stack:
        jails = [stack.enter_context(net.talk(OBEDIENT, *SHARED))]
        public = json.dumps([["tcp", PUBLIC4, 80]])
        equal(json.loads(jails[0].ask(public)), ["answered"], "before")
        equal(holders(net), [], "a single run leaves no process")
        for options in ((), (), ("--allow", f"{PUBLIC4}:80")):
            jails.append(stack.enter_context(net.talk(OBEDIENT, *SHARED, *options)))
            equal(json.loads(jails[-1].ask(public)), ["answered"], "before")
        names = links(net)
        equal(len(names), 4, f"links {names}")
        equal(len([name for name in names if name.startswith("cjs")]), 3, f"of shared tables: {names}")
        for pid in holders(net):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not holders(net), "the holder's end")
        net.forget()
        for jail in jails:
            went = json.loads(jail.ask(json.dumps([*CLOSED, ["tcp", PUBLIC4, 80]])))
            stays_closed(net, went[:-1])
            equal(went[-1], "answered", "without the holder")
        equal({key[1] for key in net.seen()}, {PUBLIC4}, "addresses reached")


@test("killed runs that share a table leave no link, route, table or process", who="roots")
def _():
    with Internet() as net:
        with contextlib.ExitStack() as stack:
            jails = [stack.enter_context(net.talk(OBEDIENT, *SHARED)) for _ in range(3)]
            for jail in jails:
                equal(json.loads(jail.ask(json.dumps([["tcp", PUBLIC4, 80]]))), ["answered"], "before")
            equal(len([name for name in links(net) if name.startswith("cjs")]), 2, "links of shared tables")
            for jail in jails:
                jail.process.kill()
                jail.process.wait()
            wait_until(lambda: not net.left() and not holders(net), "the host to be as it was", 8)
    all_have_ended()


FALSE_HOLDER = """
import os, socket, sys
os.setuid(65534)
listeners = []
for what in ("table46", "table4"):
    listeners.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    listeners[-1].bind(chr(0) + f"cejail-{sys.argv[1]}-{what}-0")
    listeners[-1].listen(9)
print("ready", flush=True)
sys.stdin.read()
for listener in listeners:
    listener.setblocking(False)
    try:
        print("from a run:", listener.accept()[0].recv(100))
    except BlockingIOError:
        pass
"""


@test("a process of another user at the address of the table's holder gets and gives nothing", who="root")
def _():
    version = cejail("version").out.split()[1]
    with Internet() as net:
        false = subprocess.Popen([sys.executable, "-c", FALSE_HOLDER, version], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, **net.inside)  # fmt: skip
        try:
            equal(false.stdout.readline(), "ready\n", "the false holder")
            with contextlib.ExitStack() as stack:
                jails = [stack.enter_context(net.talk(OBEDIENT, *SHARED)) for _ in range(2)]
                for jail in jails:
                    went = json.loads(jail.ask(json.dumps([*CLOSED, ["tcp", PUBLIC4, 80]])))
                    stays_closed(net, went[:-1])
                    equal(went[-1], "answered", "the way out")
                equal([name for name in links(net) if name.startswith("cjs")], [], "links of shared tables")
            said, _ = false.communicate(timeout=20 * SLOW)
            true("from a run: b''" in said, f"no run looked there: {said!r}")
            equal(set(said.splitlines()), {"from a run: b''"}, "what the runs sent")
        finally:
            false.kill()
            false.wait()


@test("a run that opens a closed range has a table of its own, which opens it to no other run", who="roots")
def _():
    private = [["tcp", "10.1.2.3", 80]]
    with Internet() as net, contextlib.ExitStack() as stack:
        plain = [stack.enter_context(net.talk(OBEDIENT, *SHARED)) for _ in range(2)]
        open_one = stack.enter_context(net.talk(OBEDIENT, *SHARED, "--allow-private", "--allow", "10.1.2.3:80"))
        equal(json.loads(open_one.ask(json.dumps(private))), ["answered"], "the opened address")
        net.forget()
        for jail in plain:
            stays_closed(net, json.loads(jail.ask(json.dumps([*private, *CLOSED]))))
        equal(net.seen(), {}, "packets")
        equal(len([name for name in links(net) if name.startswith("cjs")]), 1, "shared links")


@test("flushing the host's rule set during a run opens no address", who="roots")
def _():
    if not shutil.which("nft"):
        raise Skip("no 'nft' (package nftables)")
    with Internet() as net, net.talk(OBEDIENT, "--uplink", "host") as jail:
        subprocess.run(["nft", "flush", "ruleset"], check=False, capture_output=True, **net.inside)
        net.forget()
        stays_closed(net, json.loads(jail.ask(json.dumps(CLOSED))))
        equal(net.seen(), {}, "packets")
