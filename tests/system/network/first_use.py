# SPDX-License-Identifier: Apache-2.0
"""A public network is built when the program opens its first network socket: what is there before and
afterwards, which calls build it and which do not.  How it fails is in first_use_ends."""

import contextlib
import json
import os
import signal
import socket

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from states import *  # noqa: F403


# --- no use -------------------------------------------------------------------

# Everything here is done without an inet or netlink socket.
OTHER_SOCKETS = SEE + """
import fcntl, struct
a, b = socket.socketpair()
a.send(b"x")
b.recv(1)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
    s.bind("/tmp/s")
    request = bytearray(struct.pack("16s16x", b"eth0"))
    try:
        fcntl.ioctl(s, 0x8915, request)  # SIOCGIFADDR
        address = "an address"
    except OSError as problem:
        address = errno.errorcode[problem.errno]
server = socket.socket(socket.AF_UNIX)
server.bind("/tmp/t")
server.listen()
with socket.socket(socket.AF_UNIX) as client:
    client.connect("/tmp/t")
r, w = os.pipe()
os.write(w, b"x")
print(json.dumps([links(), address]))
"""


@test("a run that opens no network socket has no network, and says that it is unused")
def _():
    with Internet() as net:
        value = net.run("print('[1]')")
        equal(said(value), [1], "output")
        was_unused(value)
        value = net.run(OTHER_SOCKETS)
        equal(said(value)[0], BEFORE, "links")
        true(said(value)[1] in ("ENODEV", "ENOTTY", "EINVAL", "EPERM"), f"eth0's address: {said(value)[1]}")
        was_unused(value)
        value = result("-p", "base", "--network", "public", "--", "/bin/sh", "-c", "ls | wc -l; cat /proc/net/route", **net.inside)
        was_unused(value)


@each_uplink("before the first use through {} there is no helper, link, route or table, and afterwards there is")
def _(*uplink):
    code = SEE + """
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(attempt("tcp", line.strip(), 80) if line.strip() else links()), flush=True)
"""
    with Internet() as net, net.talk(code, *uplink) as jail:
        equal(json.loads(jail.ask()), BEFORE, "links before")
        equal(net.left(), [], "what the host has before")
        equal(len(descendants_of(jail.process.pid)), 2, "processes of the run, init and program")
        equal(json.loads(jail.ask(PUBLIC4)), "answered", "a public address")
        equal(json.loads(jail.ask()), AFTER, "links afterwards")
        if uplink[-1] == "host":
            true(net.left(), "the host has no link of the jail")
        else:
            true(len(descendants_of(jail.process.pid)) > 2, "no helper runs")
        was_ready(jail.result(), uplink[-1])


@test("a call to a socket of the host does not build the network")
def _():
    code = SEE + """
with socket.socket(socket.AF_UNIX) as s:
    s.connect("/run/tool.sock")
    said = s.recv(100).decode()
print(json.dumps([said, links()]))
"""
    with Internet() as net, Folder() as f, socket_server(f / "s") as path:
        value = net.run(code, "--connect", f"unix:{path}:/run/tool.sock")
        equal(said(value), ["hello", BEFORE], "greeting and links")
        was_unused(value)


@contextlib.contextmanager
def socket_server(path):
    """Greets each client, from a process of its own."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o666)
    server.listen()
    pid = os.fork()
    if pid == 0:
        signal.alarm(0)
        while True:
            client, _ = server.accept()
            client.send(b"hello")
            client.close()
    try:
        yield path
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        server.close()


@test("with the network none --connect tcp works, and the network has no state")
def _():
    code = TRY + "print(json.dumps(attempt('tcp', '127.0.0.1', 9000)))"
    with Internet() as net:
        value = result("-p", "python", "--network", "none", "--connect", "tcp:127.0.0.1:9000", "-c", code, **net.inside)
        equal(said(value), "answered", "the host's port")
        equal(value["network"], {"mode": "none", "state": None, "reason": None, "uplink": None, "denied": []}, "network")


# --- who asks -----------------------------------------------------------------

FAMILIES = {
    "AF_INET": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "AF_INET of UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "AF_INET6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
    "AF_NETLINK": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "if_nameindex(3)": "socket.if_nameindex()",
    "getaddrinfo(3)": "socket.getaddrinfo('four.test', 80)",
}


@each_uplink("through {} each family of network sockets builds the network, and the call waits until it is there")
def _(*uplink):
    with Internet() as net:
        for name, call in FAMILIES.items():
            if name == "getaddrinfo(3)" and uplink[-1] == "none":
                continue
            value = net.run(SEE + f"before = links()\nthing = {call}\nprint(json.dumps([before, links()]))", *uplink)
            equal(said(value), [BEFORE, AFTER], f"links before and after {name}")
            was_ready(value, uplink[-1])


@each_uplink("through {} a name lookup as the first use is answered by the first query, and its connection works")
def _(*uplink):
    with Internet() as net:
        value = net.run(SEE + "print(json.dumps([attempt('tcp', 'four.test', 80), links()]))", *uplink)
        equal(said(value), ["answered", AFTER], "attempt and links")
        queries = [query for query in net.world("queries") if query[0] == "four.test" and query[1] == 1]
        equal(len(queries), 1, f"queries for the address ({queries})")


@test("the list of addresses in a jail is that of the network")
def _():
    code = SEE + """
import ctypes
libc = ctypes.CDLL(None)
class Entry(ctypes.Structure):
    pass
Entry._fields_ = [("next", ctypes.POINTER(Entry)), ("name", ctypes.c_char_p)]
first = ctypes.POINTER(Entry)()
assert libc.getifaddrs(ctypes.byref(first)) == 0
names = set()
while first:
    names.add(first.contents.name.decode())
    first = first.contents.next
print(json.dumps(sorted(names)))
"""
    with Internet() as net:
        equal(said(net.run(code)), AFTER, "names that getifaddrs(3) gives")


@test("ping works as the first use", who="roots")
def _():
    code = SEE + f"""
import struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as s:
    s.settimeout({10 * SLOW})
    s.connect(("{PUBLIC4}", 0))
    s.send(struct.pack("!BBHHH", 8, 0, 0, 0, 1) + b"are you there?")
    print(json.dumps([b"there" in s.recv(100), links()]))
"""
    with Internet() as net:
        value = net.run(code, "--uplink", "host")
        equal(said(value), [True, AFTER], "answer and links")
        was_ready(value, "host")


THREADS = SEE + """
gate = threading.Barrier(8)
went = [None] * 8
def use(i):
    gate.wait()
    went[i] = attempt("tcp" if i % 2 else "udp", "20.30.40.50", 7 if i % 2 == 0 else 80)
threads = [threading.Thread(target=use, args=[i]) for i in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(json.dumps([went, links()]))
"""


@each_uplink("through {} eight threads that use the network first, all at once, all get it")
def _(*uplink):
    with Internet() as net:
        for _ in range(3):
            value = net.run(THREADS, *uplink)
            equal(said(value), [["answered"] * 8, AFTER], "attempts and links")
            was_ready(value, uplink[-1])


@each_uplink("through {} the first use of an orphan in a session of its own builds the network for all")
def _(*uplink):
    code = SEE + """
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(w, attempt("tcp", "20.30.40.50", 80).encode())
    os._exit(0)
os.close(w)
went = os.read(r, 100).decode()
print(json.dumps([went, links(), attempt("udp", "20.30.40.60", 7)]))
"""
    with Internet() as net:
        value = net.run(code, *uplink)
        equal(said(value), ["answered", AFTER, "answered"], "the orphan, the links, and the main process")
        was_ready(value, uplink[-1])


# A signal may still interrupt a call that cejail has not received yet; then the program calls again.
STORM = SEE + """
import signal
signals = [0]
def count(*unused):
    signals[0] += 1
signal.signal(signal.SIGALRM, count)
signal.siginterrupt(signal.SIGALRM, %s)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while signals[0] < 3:
    pass
while True:
    try:
        socket.socket().close()
        break
    except InterruptedError:
        pass
seen = links()
signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps([seen, attempt("tcp", "20.30.40.50", 80)]))
"""
for restarts, way in ((False, "with"), (True, "without")):

    @each_uplink(f"through {{}} a first use under a timer signal every millisecond works, {way} SA_RESTART")
    def _(*uplink, restarts=restarts):
        with Internet() as net:
            for _ in range(5):
                value = net.run(STORM % restarts, *uplink)
                equal(said(value), [AFTER, "answered"], "the links, and an attempt")
                was_ready(value, uplink[-1])


@each_uplink("through {} first connections lose no packet")
def _(*uplink):
    # struct tcp_info of linux/tcp.h: tcpi_total_retrans
    code = """
import socket, struct
with socket.create_connection(("20.30.40.50", 80), PATIENCE) as s:
    print(struct.unpack_from("I", s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)[0])
""".replace("PATIENCE", str(20 * SLOW))
    count = 200 if LONG else share(10)
    with Internet() as net:

        def sent_again():
            return json.loads(net.run(code, *uplink)["stdout"]["text"])

        # a busy machine may answer so late that TCP sends again; what loses packets loses those of each first connection
        lost = [number for number in range(count) if all(sent_again() for _ in range(5))]
        equal(lost, [], "connections for which packets were sent again, and for the next four, too")
    tried(count)


@each_uplink("through {} what the first use sends to closed addresses is refused at once and counted")
def _(*uplink):
    wanted = [["tcp", "169.254.169.254", 80], ["udp", "10.1.2.3", 7]]
    with Internet() as net:
        went, value = net.attempts(wanted, *uplink)
        true(all(word in REFUSED for word in went), f"attempts: {went}")
        counts = {row["address"]: row["count"] for row in value["network"]["denied"]}
        equal(counts, {"169.254.169.254": 1, "10.1.2.3": 1}, "denied")
        was_ready(value, uplink[-1])
        equal(net.seen(), {}, "packets")


@each_uplink("through {} an allow list holds from the first use")
def _(*uplink):
    code = TRY + """
print(json.dumps([attempt(*one) for one in (("tcp", "four.test", 80), ("tcp", "20.30.40.60", 80), ("tcp", "20.30.40.50", 8080))]))
"""
    with Internet() as net:
        value = net.run(code, "--allow", "four.test:80", *uplink)
        went = said(value)
        equal(went[0], "answered", "the allowed one")
        true(all(word in REFUSED for word in went[1:]), f"the others: {went[1:]}")
        equal({row["class"] for row in value["network"]["denied"]}, {"not_allowed"}, "classes")
        was_ready(value, uplink[-1])
        value = net.run("print('[1]')", "--allow", "four.test:80", *uplink)
        equal(said(value), [1], "output")
        was_unused(value)


@test("the events say when the network is ready, before what it denies, and nothing of an unused one")
def _():
    code = TRY + "attempt('tcp', '169.254.169.254', 80)"
    with Internet() as net:
        used, unused = events(net, code), events(net, "pass")
        network = [event for event in used if event["type"] == "network"]
        equal([(event["state"], event["reason"]) for event in network], [("ready", None)], "events of the network")
        kinds = [event["type"] for event in used]
        true(kinds.index("start") < kinds.index("network") < kinds.index("denied"), f"order: {kinds}")
        equal(network[0]["uplink"], used[-1]["result"]["network"]["uplink"], "uplink")
        lacks([event["type"] for event in unused], "network", "events")


# --- early --------------------------------------------------------------------


@each_uplink("through {} a network that starts early is there before the program, which need not use it")
def _(*uplink):
    with Internet() as net:
        value = net.run(SEE + "print(json.dumps(links()))", "--network-start", "early", *uplink)
        equal(said(value), AFTER, "links")
        was_ready(value, uplink[-1])
        went, value = net.attempts([["tcp", PUBLIC4, 80], ["tcp", "10.1.2.3", 80]], "--network-start", "early", *uplink)
        equal((went[0], went[1] in REFUSED), ("answered", True), "attempts")
        was_ready(value, uplink[-1])


@test("the events of a network that starts early say that it is ready")
def _():
    with Internet() as net:
        kinds = [event["type"] for event in events(net, "import sys; sys.stdout.write('1')", "--network-start", "early")]
        equal(kinds, ["start", "network", "stdout", "result"], "events")


@test("--strict builds the network before the program starts")
def _():
    for words, start in (((), "first-use"), (("--strict",), "early"), (("--network-start", "early"), "early")):
        done = python("1", "--network", "public", "--dry-run", *words).exits(0)
        equal(json.loads(done.out)["network"]["start"], start, f"start with {words}")
    with Internet() as net:
        done = python(SEE + "print(json.dumps(links()))", "--network", "public", "--strict", **net.inside)
        if done.code == 125:  # no cgroup v2 on this host: the test machine has one
            contains(done.err, "--strict: limits", "stderr")
            return
        equal(json.loads(done.out), AFTER, "links")


# --- filters of the caller ------------------------------------------------------

NO_RINGS = {"names": ["io_uring_setup"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}


def refuse(**condition):
    """A rule about socket(2)."""
    return {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13, **condition}


def refuse_but(family):
    return refuse(args=[{"index": 0, "value": family, "op": "SCMP_CMP_NE"}])


# Each file: what is allowed by default, its rules, and the links before and after the program's socket.
FILTERS = {
    "allows all but io_uring": ("ALLOW", [NO_RINGS], BEFORE, AFTER),
    "logs all but io_uring": ("LOG", [NO_RINGS], BEFORE, AFTER),
    "allows AF_INET alone": ("ALLOW", [NO_RINGS, refuse_but(2)], BEFORE, AFTER),
    "refuses every socket": ("ALLOW", [NO_RINGS, refuse()], BEFORE, BEFORE),
    "allows AF_UNIX alone": ("ALLOW", [NO_RINGS, refuse_but(1)], BEFORE, BEFORE),
    # a ring opens sockets that cejail is not notified of
    "allows io_uring": ("ALLOW", [], AFTER, AFTER),
}


@test("with a --seccomp file the first socket that it allows builds the network, and a refused one does not")
def _():
    code = SEE + """
before = links()
try:
    socket.socket(socket.AF_INET).close()
    went = "opened"
except OSError as problem:
    went = errno.errorcode[problem.errno]
print(json.dumps([before, went, links()]))
"""
    with Internet() as net, Folder() as f:
        for name, (default, rules, before, after) in FILTERS.items():
            policy = {"defaultAction": f"SCMP_ACT_{default}", "syscalls": rules}
            value = net.run(code, "--seccomp", f.file("policy.json", json.dumps(policy)))
            equal(said(value), [before, "opened" if after == AFTER else "EACCES", after], f"a file that {name}")
            equal(value["network"]["state"], "ready" if after == AFTER else "unused", f"state with a file that {name}")
            tried()
