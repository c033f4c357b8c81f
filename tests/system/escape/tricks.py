# SPDX-License-Identifier: Apache-2.0
"""Network tricks (our list of threats, 3 and 3.3): none leads a packet where it may not go.  The control runs the same
program in the tests' own Internet with every power over its network, and no jail."""

import hashlib
import os
import re
import signal
import socket
import subprocess
import time
import uuid

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from pointers import check_rows

TRICK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trick.py")
with open(TRICK, encoding="utf-8") as file:
    TRICKS = re.findall(r"^def try_(\w+)\(", file.read(), re.M)
# Only the world can tell whether these went out: to which addresses.
BY_SIGHT = {"multicast": {"224.0.0.251", "239.1.2.3"}, "membership": {"239.4.5.6", "224.0.0.22"},
            "routing_header": {"2600:1f00::50"}, "segment_routing": {"2600:1f00::50"}}  # fmt: skip
# Kernels may be built without them, and say this.
MAY_LACK = {"mptcp": "EPROTONOSUPPORT", "sctp": "EPROTONOSUPPORT", "dccp": "ESOCKTNOSUPPORT", "udplite": "EPROTONOSUPPORT",
            "routing_header": "EINVAL", "segment_routing": "EINVAL"}  # fmt: skip

ROWS = {
    "ranges, IPv4 and IPv6": (
        "network_closed: through {} TCP to each row of the range table is refused at once, and denied by its class",
        "network_closed: through {} UDP to each row of the range table is refused at once, and denied by its class",
        "network_closed: through {} the first and the last address of each row are closed, their open neighbours are not",
        "network_closed: through {} no address of the host's answers, whatever its port, nor one that comes while a jail runs",
        "unspecified4", "unspecified6", "flow_label",
    ),
    "default off": ("isolation: without a network no address can be reached, and the refusal is quick",),
    "spellings; IPv4-mapped": ("network_closed: unusual spellings and IPv4-mapped sockets meet the same rule",),
    "DNS rebinding, redirects": (
        "network_closed: a name that changes to a closed address between two queries is refused at the second",
        "network_closed: through {} a redirect to a closed address is refused", "reconnected",
    ),
    "DNS tunnelling": (
        "network_allow: an allowed name is in the jail's hosts file, and no DNS query leaves the jail",
        "network: only queries reach the host's name server",
    ),
    "fragments": (
        "network_closed: a fragmented datagram is filtered like any other", "corked_fragments",
        "segments4", "segments6",
    ),
    "pages without a copy": (
        "zero_copy", "send_file", "splice", "tricks: pages of /usr that a program sends without a copy stay as they were",
    ),
    "IPv6 extension headers": ("hop_by_hop", "destination_options", "routing_header", "segment_routing"),
    "source routing": ("source_route",),
    "raw, packet, XDP sockets, ARP/NDP/RA forgery": ("raw", "raw6", "packet", "attempts: no AF_XDP socket"),
    "source spoofing": ("network_closed: a forged source address leaves no jail", "transparent", "packet_info"),
    "ICMP": ("network: ping works without a privilege where the host routes it, and closed addresses are closed to it",),
    "MPTCP, TFO, SCTP, DCCP, UDP-Lite": ("mptcp", "fastopen", "sctp", "dccp", "udplite"),
    "multicast, broadcast": ("multicast", "membership"),
    "route changes, new interfaces": ("address", "route", "link", "mark", "bound_device", "unicast_device", "ttl"),
    "peer runs": ("network_closed: through {} two jails don't reach each other", "tricks: an abstract socket of one jail is none in another"),
    "inbound from host or world": (
        "network_closed: through {} nobody in the world or on the host reaches a port a jail listens on",
    ),
    "established flows after the run": ("tricks: through {} what a program leaves behind sends nothing any more",),
    "conntrack/NAT slipstream, ALGs": "the kernel gives no flow a helper that no rule names, and none of ours names one",
    "the policy survives the host's": ("network_ends: flushing the host's rule set during a run opens no address",),
}  # fmt: skip


def with_all_powers(net):
    """Runs in the child: root over the network that jails of these tests are on."""
    here = os.getcwd()
    for fd, kind in net.doors:
        check(libc.setns(fd, kind), "setns")
    os.chdir(here)


def outside(net, code, *args):
    """Python as the tests' host itself."""
    return subprocess.run([PYTHON, "-I", "-B", "-", *args], input=code, text=True, capture_output=True, check=False,
                          env=environment(), timeout=60 * SLOW, preexec_fn=lambda: with_all_powers(net))  # fmt: skip


def verdicts(text):
    found = dict(line.split(" ", 1) for line in text.splitlines())
    equal(sorted(found), sorted(TRICKS), "tricks that were tried")
    return found


def patience():
    return str(1.5 * min(SLOW, 5))


@each_uplink("through {} no trick leads anywhere")
def _(*uplink):
    with Internet() as net:
        options = ("-q", "-p", "python", "--network", "public", "-t", str(int(50 * SLOW)), *uplink, "-f", f"{TRICK}:/box/trick.py")
        done = run(*options, "--", "/usr/bin/python3", "-I", "-B", "/box/trick.py", patience(), limit=55, **net.inside)
        found = verdicts(done.exits(0).out)
        escaped = {name: word for name, word in found.items() if word.startswith("ESCAPED") and name not in BY_SIGHT}
        equal(escaped, {}, "tricks that worked")
        equal({key[1] for key in net.seen()} - {PUBLIC4}, set(), "addresses in the world that packets came for")
        equal(net.host("hits"), [], "host services reached")
        tried(len(found))


@test("without a jail every trick works in the tests' Internet")
def _():
    with Internet() as net, open(TRICK, encoding="utf-8") as file:
        done = outside(net, file.read(), patience())
        found = verdicts(done.stdout)
        silent = {name for name, word in found.items() if word.startswith("HELD")}
        lacking = {name for name in silent if found[name] == f"HELD ({MAY_LACK.get(name)})"}
        equal(silent - lacking, set(), f"tricks that don't work even here ({found})")
        for name, addresses in BY_SIGHT.items():
            if name in lacking:
                continue
            wait_until(lambda addresses=addresses: addresses & {key[1] for key in net.seen()}, f"packets of '{name}' to {addresses}", 5)
        tried(len(found) - len(lacking))


# Pages of a file of /usr on their way out, and a receiver in the same jail that gets them.
PAGES = """
import errno, mmap, os, socket, struct, threading
path = "/usr/bin/env"
with open(path, "rb") as file:
    text = file.read(40000)
SO_ZEROCOPY, MSG_ZEROCOPY, UDP_SEGMENT = 60, 0x4000000, 103
file = os.open(path, os.O_RDONLY)
mapped = memoryview(mmap.mmap(file, len(text), mmap.MAP_PRIVATE, mmap.PROT_READ))

def by_sendfile(s):
    return os.sendfile(s.fileno(), file, 0, len(text))
def by_splice(s):
    out, into = os.pipe()
    sent = 0
    while sent < len(text):
        size = os.splice(file, into, len(text) - sent, offset_src=sent)
        while size > 0:
            moved = os.splice(out, s.fileno(), size)
            size, sent = size - moved, sent + moved
    return sent
def is_refused(option):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.setsockopt(*option, 1)
        except OSError as error:
            return error.errno == errno.ENOPROTOOPT
    return False

def collect(s, seen):
    room = bytearray(70000)
    while size := s.recv_into(room):
        seen += room[:size]
        room[:size] = b"X" * size
def over_stream(send, s, other):
    seen = bytearray()
    receiver = threading.Thread(target=collect, args=(other, seen))
    receiver.start()
    sent = send(s)
    s.shutdown(socket.SHUT_WR)
    receiver.join()
    return sent, bytes(seen) == text[:sent] and sent > 0

def tcp_pair(family, address):
    with socket.create_server((address, 0), family=family) as server:
        s = socket.create_connection(server.getsockname()[:2])
        return s, server.accept()[0]
for send in (by_sendfile, by_splice):
    print(send.__name__, *over_stream(send, *tcp_pair(socket.AF_INET, "127.0.0.1")))
    print(send.__name__, *over_stream(send, *tcp_pair(socket.AF_INET6, "::1")))
    print(send.__name__, *over_stream(send, *socket.socketpair()))
print("SO_ZEROCOPY", is_refused((socket.SOL_SOCKET, SO_ZEROCOPY)))
for there in ("20.30.40.50", "2600:1f00::50"):
    for segment in (0, 1000):
        with socket.socket(socket.AF_INET6 if ":" in there else socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(9)
            s.connect((there, 7))
            size = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", segment))] if segment else []
            s.sendmsg([mapped[:20000]], size, MSG_ZEROCOPY)
            print("datagrams", segment, s.recv(70000) == text[:segment or 20000])
"""


@test("pages of /usr that a program sends without a copy stay as they were")
def _():
    with Internet() as net:
        before = sha256("/usr/bin/env")
        value = net.run(PAGES.replace("settimeout(9)", f"settimeout({9 * SLOW})"))
        lines = value["stdout"]["text"].splitlines()
        equal((value["stderr"]["text"], len(lines)), ("", 11), f"ways to send ({lines})")
        equal([line for line in lines if not line.endswith("True")], [], "ways that brought something else")
        equal(sha256("/usr/bin/env"), before, "the file's hash")


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


# A process that outlives the program and sends on, and a connection that travels in a ring of sockets.
STAY = """
import os, socket, sys, time
flow = socket.create_connection(("20.30.40.50", 80), float(sys.argv[2]))
a, b = socket.socketpair()
socket.send_fds(b, [b"x"], [a.fileno(), flow.fileno()])
b.close()
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("20.30.40.50", 7))
    s.setblocking(False)
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        try:
            s.send(b"still here")
            s.recv(100)
            os.write(told, b"x")  # the simulated internet has answered
        except OSError:
            pass
        time.sleep(0.01)
    os._exit(0)
os.read(ready, 1)
"""


@each_uplink("through {} what a program leaves behind sends nothing any more")
def _(*uplink):
    with Internet() as net:
        limit = ("-t", str(int(30 * SLOW)))
        run("-q", "-p", "python", "--network", "public", *limit, *uplink, "-c", STAY, str(60 * SLOW), str(20 * SLOW), **net.inside).exits(0)
        true(net.seen("udp"), "nothing came during the run")
        net.forget(ended=False)  # nobody closes the connection that travels
        time.sleep(0.2)
        equal(net.seen("udp"), {}, "datagrams after the run")


@test("without a jail it sends on")
def _():
    with Internet() as net:
        with subprocess.Popen([PYTHON, "-I", "-c", STAY, "1000", str(20 * SLOW)], env=environment(), preexec_fn=lambda: with_all_powers(net)) as process:
            await_exit(process, 30)
            net.forget(ended=False)
            wait_until(lambda: net.seen("udp"), "datagrams after the program's end")
            for pid in descendants_like("python3 -I -c"):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not descendants_like("python3 -I -c"), "its end")


def descendants_like(words):
    """Living ones, by what they were started with."""
    found = []
    for pid in descendants():
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                found += [pid] if words in file.read().replace("\0", " ") else []
        except OSError:
            pass
    return found


ABSTRACT = f"cejail-trick-{uuid.uuid4().hex}"  # places that run at once share abstract sockets, and have the same pids
REACH = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{ABSTRACT}'); print('reached')"


@test("an abstract socket of one jail is none in another")
def _():
    listen = f"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0{ABSTRACT}'); s.listen(); print('ready', flush=True); time.sleep(60)"
    options = ("-q", "--network", "none", "-p", "python", "-c")
    process = start("run", *options, listen)
    equal(process.stdout.readline(), b"ready\n", "the first jail")
    done = run(*options, REACH)
    lacks(done.out, "reached", "the second jail")
    process.terminate()
    finish(process)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + ABSTRACT)
        server.listen()
        done = subprocess.run([PYTHON, "-I", "-c", REACH], capture_output=True, text=True, check=False)
        equal(done.stdout, "reached\n", "the control")


@test("every row of the threats' network has its proof")
def _():
    check_rows(ROWS, set(TRICKS))
