# SPDX-License-Identifier: Apache-2.0
"""What a jail in the public network can't: any closed range, the host, other jails; not by redirects,
names, spellings or sources.  Zero packets come into the world, and no service of the host's hears."""

import collections
import contextlib
import ipaddress
import json

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from upstreams import with_key

LOCAL = [ipaddress.ip_network(text) for text in ("127.0.0.0/8", "0.0.0.0/32", "::/128", "::1/128")]


def is_local(address):
    """Ends in the jail itself: nothing to deny."""
    return any(address.version == net.version and address in net for net in LOCAL)


def is_longest(net, address, table):
    return not any(row.subnet_of(net) and row != net and address in row for row, _ in table if row.version == net.version)


def sample(net, table):
    """An address of the row that belongs to no longer one, and leaves the jail if there is such a one."""
    offsets = [n for n in (0x0105, 0x010203, 1, 0, net.num_addresses - 1) if n < net.num_addresses]
    own = [net[n] for n in offsets if is_longest(net, net[n], table)]
    true(own, f"every address of {net} belongs to a longer row")
    return min(own, key=is_local)


def spelled(address, on="eth0"):
    """Link-local addresses need to say on which link."""
    link = address.version == 6 and (address.is_link_local or (address.is_multicast and address.packed[1] & 15 == 2))
    return f"{address}%{on}" if link else str(address)


def nothing_came(net, but=()):
    """Not even cejail's own, except to these ports."""
    equal({key: count for key, count in net.seen().items() if key[2] not in but}, {}, "packets that came into the world")
    equal(net.world("hits") + net.host("hits"), [], "services that were reached")


def all_refused(wanted, went):
    bad = [(one, word) for one, word in zip(wanted, went) if word not in REFUSED]
    equal(bad, [], "attempts that were not refused at once")


def on_the_wire(address):
    """What a socket makes of an IPv4-mapped address."""
    return address.version == 6 and address.ipv4_mapped or address


def expected_denials(addresses, protocol, port, table):
    """{(class, protocol, address, port): count}: what a program can bring as far as a rule."""
    sent = [on_the_wire(address) for address in addresses]
    told = [one for one in sent if not is_local(one)]
    if protocol == "tcp":  # the kernel connects to no group
        told = [one for one in told if not one.is_multicast and str(one) != "255.255.255.255"]
    return collections.Counter((class_of(one, table), protocol, str(one), port) for one in told)


@test("without a jail the tests' Internet answers at closed addresses, so the rules stop a jail")
def _():
    with Internet() as net:
        for address in ("169.254.169.254", "10.1.2.3", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "2002:a00:1::1"):
            for protocol in ("tcp", "udp"):
                wait_until(lambda: net.reaches(protocol, address), f"an answer from {protocol} {address}")


def each_row(uplink, protocol, port):
    """Fewer rows than a result has room for denials."""
    table = ranges()
    addresses = [sample(row[0], table) for row in thinned(table, lambda row: (row[0].version, row[1]))]
    wanted = [[protocol, spelled(address), port] for address in addresses]
    with Internet() as net:
        went, value = net.attempts(wanted, *uplink)
        is_way_out(value, uplink[-1])
        all_refused(wanted, went)
        nothing_came(net)
        denied = {(r["class"], r["protocol"], r["address"], r["port"]): r["count"] for r in value["network"]["denied"]}
        wanted = expected_denials(addresses, protocol, port, table)
        wrong = sorted(map(str, set(wanted.items()) ^ set(denied.items())))
        equal(wrong, [], "denied or expected, and not both")
    tried(len(addresses))


@each_uplink("through {} TCP to each row of the range table is refused at once, and denied by its class")
def _(*uplink):
    each_row(uplink, "tcp", 80)


@each_uplink("through {} UDP to each row of the range table is refused at once, and denied by its class")
def _(*uplink):
    each_row(uplink, "udp", 7)


def closed_attempts(link="eth0"):
    """TCP and UDP to an address of each row."""
    table = ranges()
    addresses = [spelled(sample(row[0], table), link) for row in thinned(table, lambda row: (row[0].version, row[1]))]
    return [[protocol, address, port] for address in addresses for protocol, port in (("tcp", 80), ("udp", 7))]


@contextlib.contextmanager
def no_upstream():
    yield ()


@contextlib.contextmanager
def an_upstream():
    with with_key() as (_, _, text):
        yield (text,)


# The network of a profile or a request, what it reaches, and the upstreams for as long as the test runs.
# A list that changes is in session_network, and session/network_places.py tries these modes elsewhere.
MODES = {
    "no network": ({"mode": "none"}, None, no_upstream),
    "a public network": ({"mode": "public"}, ["tcp", PUBLIC4, 80], no_upstream),
    "a list of addresses": ({"mode": "public", "allow": [f"{PUBLIC4}:80"]}, ["tcp", PUBLIC4, 80], no_upstream),
    "a list of names": ({"mode": "public", "allow": ["*.wild.test"]}, ["tcp", "a.wild.test", 8080], no_upstream),
    "names that are looked up at the start": ({"mode": "public", "allow": ["public.test"]}, ["tcp", "public.test", 80], no_upstream),
    "all but what is denied": ({"mode": "public", "deny": ["*.wild.test", OTHER4]}, ["tcp", PUBLIC4, 80], no_upstream),
    "an upstream": ({"mode": "public"}, ["tcp", PUBLIC4, 80], an_upstream),
}


def as_options(network, upstreams):
    """The same on the command line."""
    lists = {"allow": network.get("allow", ()), "deny": network.get("deny", ()), "upstream": upstreams}
    return ("--network", network["mode"], *(word for key, values in lists.items() for one in values for word in (f"--{key}", one)))


def keeps_closed(net, mode, tries, but=lambda address: False):
    """tries(mode, wanted, network, upstreams): how each attempt went from a jail in this mode.  Each row is closed."""
    network, reached, upstream = MODES[mode]
    closed = [one for one in closed_attempts("eth0" if reached else "lo") if not but(ipaddress.ip_address(one[1].split("%")[0]))]
    opened = [reached] if reached else []
    net.forget()
    with upstream() as upstreams:
        went = tries(mode, closed + opened, network, upstreams)
    all_refused(closed, went)
    equal(went[len(closed) :], ["answered"] * len(opened), f"with {mode}: {opened}")
    expected = [("tcp", address, port) for _, name, port in opened for address in NAMES.get(name, [name])]
    came = [key for key in net.seen() if key[2] != 53 and key not in expected]
    equal((came, net.host("hits")), ([], []), f"with {mode}: packets that came into the world, and services of the host")
    tried(len(closed))


for mode in MODES:

    @test(f"with {mode} each row of the range table is refused at once, and no packet comes through", limit=120)
    def _(mode=mode):
        with Internet() as net:
            keeps_closed(net, mode, lambda _, wanted, *options: net.attempts(wanted, *as_options(*options))[0])


@each_uplink("through {} the first and the last address of each row are closed, their open neighbours are not")
def _(*uplink):
    table = ranges()
    edges = sorted({net[i] for net, _ in table for i in (0, -1)}, key=lambda a: (a.version, int(a)))
    open_ones = [
        one for net, _ in table for n in (int(net[0]) - 1, int(net[-1]) + 1)
        if 0 < n < (1 << 32 if net.version == 4 else 1 << 128)
        for one in [ipaddress.ip_address(n) if net.version == 4 else ipaddress.IPv6Address(n)]
        if class_of(one, table) is None
    ]  # fmt: skip
    open_ones = [one for one in open_ones if one.version == 4 or uplink[-1] not in NO_IPV6]
    edges.remove(ipaddress.ip_address("127.255.255.255"))  # a broadcast to the jail itself: nobody answers
    wanted = [[protocol, spelled(one), port] for one in edges for protocol, port in (("tcp", 80), ("udp", 7))]
    with Internet() as net:
        went, _ = net.attempts(wanted, *uplink)
        all_refused(wanted, went)
        nothing_came(net)
        wanted = [["tcp", str(one), 80] for one in sorted(set(open_ones), key=str)]
        went, _ = net.attempts(wanted, *uplink)
        equal([(one, word) for one, word in zip(wanted, went) if word != "answered"], [], "open ones that didn't answer")


@test("a denial is one line on standard error for a human, with its class and how often")
def _():
    code = TRY + "print(attempt('tcp', '169.254.169.254', 80), attempt('tcp', '169.254.169.254', 80))"
    with Internet() as net:
        done = python(code, "--network", "public", **net.inside).exits(0)
        lines = [line for line in done.err.splitlines() if "denied" in line]
        equal(lines, ["cejail: network: denied tcp 169.254.169.254:80 (metadata), 2 times"], f"stderr ({done.err!r})")
        nothing_came(net)


@test("each refusal is an event at once")
def _():
    code = TRY + "attempt('udp', 'fd00:ec2::254', 53)"
    with Internet() as net, Folder() as f, open(f / "events", "wb") as file:
        options = ("--events-fd", str(file.fileno()))
        run("-p", "python", "--network", "public", *options, "-c", code, pass_fds=[file.fileno()], **net.inside).exits(0)
        with open(f / "events", encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines]
        contains([event.get("type", event.get("event")) for event in events], "denied", "events")
        contains(json.dumps(events), "fd00:ec2::254", "events")
        nothing_came(net)


@each_uplink("through {} a redirect to a closed address is refused")
def _(*uplink):
    code = """
import json, urllib.request
for target in json.load(open("/box/args.json")):
    try:
        print(urllib.request.urlopen(f"http://four.test/to?{target}", timeout=PATIENCE).read())
    except OSError as problem:
        print("refused" if "refused" in str(problem) or "unreachable" in str(problem) else problem)
"""
    targets = ["http://169.254.169.254/latest", "http://10.1.2.3/", f"http://{HOST4}/", "http://127.0.0.1/",
               "http://[fd00:ec2::254]/", "http://private.test/", "http://metadata.test/"]  # fmt: skip
    with Internet() as net:
        value = net.run(code.replace("PATIENCE", str(20 * SLOW)), *uplink, "--args-json", json.dumps(targets))
        equal(value["stdout"]["text"].split("\n")[:-1], ["refused"] * len(targets), "redirects")
        reached = {key[1] for key in net.seen("tcp")} | {hit[1] for hit in net.host("hits")}
        equal(reached, {PUBLIC4}, "addresses reached")


@test("a name that changes to a closed address between two queries is refused at the second")
def _():
    with Internet() as net:
        went, value = net.attempts([["tcp", "rebind.test", 80]] * 4)
        equal(sorted(set(went)), ["ECONNREFUSED", "answered"], f"attempts {went}")
        equal({key[1] for key in net.seen("tcp")}, {PUBLIC4}, "addresses reached")
        equal({row["address"] for row in value["network"]["denied"]}, {"169.254.169.254"}, "denied")


@test("unusual spellings and IPv4-mapped sockets meet the same rule")
def _():
    spellings = ["0x7f000001", "2130706433", "0177.1", "127.1", "0", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
                 "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "10.258", "::ffff:10.1.2.3",
                 "::ffff:a9fe:a9fe", "::ffff:c0a8:4d02", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"]  # fmt: skip
    wanted = [[protocol, one, port] for one in spellings for protocol, port in (("tcp", 80), ("udp", 7))]
    with Internet() as net:
        went, _ = net.attempts(wanted)
        all_refused(wanted, went)
        nothing_came(net)


@each_uplink("through {} no address of the host's answers, whatever its port, nor one that comes while a jail runs")
def _(*uplink):
    code = """
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps([attempt(*one) for one in json.loads(line)]), flush=True)
"""
    wanted = [[p, a, port] for a in HOST_ADDRESSES for p, port in (("tcp", 80), ("tcp", 22), ("udp", 7), ("tcp", 53))]
    later = [[protocol, a, port] for a in (LATER4, LATER6) for protocol, port in (("tcp", 80), ("udp", 7))]
    with Internet() as net, net.talk(code, *uplink) as jail:
        all_refused(wanted, json.loads(jail.ask(json.dumps(wanted))))
        net.host("ip", lines=[f"addr add {LATER4}/32 dev lan0", f"addr add {LATER6}/128 dev lan0 nodad"])
        # the supervisor hears of it from the kernel: SECURITY.md names the moment until then
        wait_until(lambda: all(word in REFUSED for word in json.loads(jail.ask(json.dumps(later)))), "the new addresses to be closed")
        net.forget()
        all_refused(later, json.loads(jail.ask(json.dumps(later))))
        nothing_came(net)
        value = jail.result()
        told = {row["address"] for row in value["network"]["denied"] if row["class"] == "host"}
        equal(set(HOST_ADDRESSES) - told, set(), f"host addresses not told of ({value['network']['denied']})")
        net.host("ip", lines=[f"addr del {LATER4}/32 dev lan0", f"addr del {LATER6}/128 dev lan0"])


@each_uplink("through {} the gateway, its networks and the helpers' well-known addresses lead to nobody")
def _(*uplink):
    # pasta and slirp4netns know addresses of their network that stand for the host
    tricks = ["198.18.0.2", "198.18.0.3", "198.19.0.1", "198.18.1.1", "198.18.1.2", "198.18.1.100", "fdce:6a11:1::2", "10.0.2.2", "10.0.2.3", "10.0.2.100", "169.254.1.1",
              ROUTER4, HOST4, "fdce:6a11::3", "fdce:6a12::1", "fd00::2", "fd00::3", "192.168.77.255", "255.255.255.255"]  # fmt: skip
    wanted = [[p, a, port] for a in tricks for p, port in (("tcp", 80), ("tcp", 9000), ("udp", 7), ("tcp", 22))]
    with Internet() as net:
        went, _ = net.attempts(wanted, *uplink)
        all_refused(wanted, went)
        nothing_came(net)


@test("a forged source address leaves no jail")
def _():
    code = """
import errno, socket
for family, option, source, there in (
    (socket.AF_INET, (socket.IPPROTO_IP, 15), "20.1.1.1", "20.30.40.50"),
    (socket.AF_INET, (socket.IPPROTO_IP, 15), "127.0.0.5", "20.30.40.50"),
    (socket.AF_INET6, (socket.IPPROTO_IPV6, 78), "2600::99", "2600:1f00::50"),
):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(0.2)
        try:
            s.setsockopt(*option, 1)
            s.bind((source, 0))
            s.connect((there, 7))
            s.send(b"forged")
            print(s.recv(100))
        except OSError as problem:
            print("no", problem)
"""
    with Internet() as net:
        value = net.run(code)
        words = value["stdout"]["text"].splitlines()
        true(len(words) == 3 and all(word.startswith("no ") for word in words), f"{words} {value['stderr']['text']}")
        nothing_came(net)


@test("a fragmented datagram is filtered like any other")
def _():
    code = """
import socket
for address in ("10.1.2.3", "169.254.169.254", "fd00:ec2::254", "192.168.77.2"):
    for size in (1473, 8000, 60000):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.sendto(bytes(size), (address, 7))
            except OSError:
                pass
"""
    with Internet() as net:
        value = net.run(code)
        equal((value["exit_code"], value["stderr"]["text"]), (0, ""), "end")
        told = {row["address"] for row in value["network"]["denied"]}
        equal(told, {"10.1.2.3", "169.254.169.254", "fd00:ec2::254", HOST4}, "denied")
        nothing_came(net)


@test("the number of connections of a jail is limited, and excess ones are refused and counted")
def _():
    code = """
print("ready", flush=True)
for port in range(20000, 20800):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("20.30.40.50", port))
            s.send(b"x")
        except OSError:
            pass
print("sent", flush=True)
sys.stdin.readline()
"""
    with Internet() as net, net.talk(code) as jail:
        equal(jail.receive(60), "sent", "the program's word")
        wait_until(lambda: len(net.seen("udp")) >= 100, "flows in the world", 30)  # a helper may lag behind
        value = jail.result()
        came = len(net.seen("udp"))
        between(came, 100, 512, "flows that came into the world")  # helpers have limits of their own
        equal({row["class"] for row in value["network"]["denied"]}, {"limit"}, "classes of what was denied")
        between(sum(row["count"] for row in value["network"]["denied"]), 800 - 512, 800 - came, "refusals")


LISTEN = """
import errno
servers = []
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind((address, 8000))
        if kind == socket.SOCK_STREAM:
            s.listen()
        s.setblocking(False)
        servers.append(s)
print("ready", flush=True)
sys.stdin.readline()
for s in servers:
    try:
        print("reached", s.accept() if s.type == socket.SOCK_STREAM else s.recvfrom(10))
    except BlockingIOError:
        print("silence")
"""


def stays_silent(jail):
    jail.send()
    equal([jail.receive() for _ in range(4)], ["silence"] * 4, "the listening jail")


@each_uplink("through {} nobody in the world or on the host reaches a port a jail listens on")
def _(*uplink):
    with Internet() as net, net.talk(LISTEN, *uplink) as jail:
        # what the kernel calls EHOSTUNREACH here or a timeout there: it must only not be an answer
        theirs = ["198.18.0.2", "198.18.0.3", *net.addresses_of_jails()]
        for station, addresses in ((net.world, [HOST4, HOST6, *theirs]), (net.host, [*theirs, "127.0.0.1", "::1"])):
            for address in addresses:
                for protocol in ("tcp", "udp"):
                    word = station("attempt", protocol=protocol, address=address, port=8000, timeout=0.1)
                    true(word != "answered", f"{protocol} {address} answered")
        stays_silent(jail)


@each_uplink("through {} two jails don't reach each other")
def _(*uplink):
    with Internet() as net, net.talk(LISTEN, *uplink) as jail:
        addresses = ["198.18.0.2", "198.18.0.3", HOST4, HOST6, "fdce:6a11::2", *net.addresses_of_jails()]
        wanted = [[protocol, address, 8000] for address in addresses for protocol in ("tcp", "udp")]
        went, _ = net.attempts(wanted, *uplink)
        all_refused(wanted, went)
        stays_silent(jail)
        equal(net.seen(), {}, "packets")
