# SPDX-License-Identifier: Apache-2.0
"""What a jail in the public network can do: reach the Internet, by name and by address, through every
uplink.  What it can't is in network_closed; after each test the host is as it was (internet.py)."""

import json

from harness import *  # noqa: F403
from internet import *  # noqa: F403

FETCH = """
import json, urllib.request
for url in json.load(open("/box/args.json")):
    print(urllib.request.urlopen(url, timeout=PATIENCE).read().decode(), end="")
""".replace("PATIENCE", str(20 * SLOW))


def fetch(net, uplink, *urls, options=()):
    """What urllib gets in a jail, and the result."""
    value = net.run(FETCH, *uplink, *options, "--args-json", json.dumps(list(urls)))
    equal(value["exit_code"], 0, f"exit code ({value['error']}, {value['warnings']}, {value['stderr']['text'][-800:]})")
    return value["stdout"]["text"], value


@each_uplink("through {} a program reaches a public server by name and by address, and the result says how")
def _(*uplink):
    with Internet() as net:
        said, value = fetch(net, uplink, "http://public.test/", f"http://{PUBLIC4}/", "http://four.test:8080/")
        equal([line.split(";")[0] for line in said.splitlines()][1:], [f"the Internet at {PUBLIC4}"] * 2, "answers")
        is_way_out(value, uplink[-1])
        equal((value["network"]["denied"], value["warnings"]), ([], facts()["warnings"]), "denied and warnings")


@each_uplink("through {} IPv6 works as IPv4 does", but=NO_IPV6)
def _(*uplink):
    with Internet() as net:
        said, _ = fetch(net, uplink, "http://six.test/", f"http://[{PUBLIC6}]:8080/")
        equal([line.split(";")[0] for line in said.splitlines()], [f"the Internet at {PUBLIC6}"] * 2, "answers")


@each_uplink("through {} UDP goes out and its answers come back")
def _(*uplink):
    with Internet() as net:
        wanted = [["udp", PUBLIC4, 7], ["udp", OTHER4, 80]]
        wanted += [] if uplink[-1] in NO_IPV6 else [["udp", PUBLIC6, 7]]
        went, _ = net.attempts(wanted, *uplink)
        equal(went, ["answered"] * len(wanted), "attempts")


@each_uplink("through {} the first connection after the start loses no packet")
def _(*uplink):
    with Internet() as net:
        for _ in range(5):
            net.forget()
            net.attempts([["tcp", PUBLIC4, 80]], *uplink)
            seen = net.seen("tcp")
            equal([key for key in seen if key[1] != PUBLIC4], [], "others reached")
            # a lost SYN would be there once again, a second later; so is one that a busy machine answers late
            if net.openings(PUBLIC4, 80) == 1:
                return
        raise Failure(f"SYN packets of one connection, each of five times: {seen}")


@each_uplink("through {} no run of many in a row loses its first packet")
def _(*uplink):
    # nobody sends a lost datagram again, as TCP would
    kinds = [["udp", PUBLIC4, 7]] + ([] if uplink[-1] in NO_IPV6 else [["udp", PUBLIC6, 7]])
    with Internet() as net:
        for number in range(200 if LONG else share(8, 4)):
            went, _ = net.attempts([kinds[number % len(kinds)]], *uplink)
            equal(went, ["answered"], f"run {number}")


@each_uplink("through {} a datagram of any size goes out and comes back")
def _(*uplink):
    code = """
import os, socket
def echo(address, size):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(%s)
        s.connect((address, 7))
        data = os.urandom(size)
        s.send(data)
        return s.recv(65536) == data
print([(a, n) for a in %s for n in (1, 1472, 1473, 9000, 30000, 65000) if not echo(a, n)])
"""
    addresses = [PUBLIC4] if uplink[-1] in NO_IPV6 else [PUBLIC4, PUBLIC6]
    with Internet() as net:
        value = net.run(code % (3 * SLOW, addresses), *uplink)
        equal(value["stdout"]["text"], "[]\n", f"changed on the way ({value['stderr']['text'][-600:]})")


@each_uplink("through {} megabytes go in and out where the path's packets are smaller than the jail's")
def _(*uplink):
    code = """
import hashlib, urllib.request
down = urllib.request.urlopen("http://four.test/big?3000000", timeout=PATIENCE).read()
up = urllib.request.urlopen("http://four.test/", data=bytes(3000000), timeout=PATIENCE).read().decode()
print(len(down), up.split("; ")[1].split()[0])
""".replace("PATIENCE", str(30 * SLOW))
    with Internet(mtu=1280) as net:
        value = net.run(code, *uplink)
        equal(value["stdout"]["text"], "3000000 3000000\n", f"bytes ({value['stderr']['text'][-600:]})")


PING = """
import errno, json, socket, struct
def ping(address):
    six = ":" in address
    protocol = socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP
    with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM, protocol) as s:
        s.settimeout(%s)
        try:
            s.connect((address, 0))
            s.send(struct.pack("!BBHHH", 128 if six else 8, 0, 0, 0, 1) + b"are you there?")
            return "answered" if b"there" in s.recv(100) else "something else"
        except TimeoutError:
            return "timeout"
        except OSError as problem:
            return errno.errorcode[problem.errno]
print(json.dumps([ping(one) for one in json.load(open("/box/args.json"))]))
""" % (2 * SLOW)


# An ordinary user's uplinks pass echoes on only where the host's ping_group_range lets them.
@test("ping works without a privilege where the host routes it, and closed addresses are closed to it", who="roots")
def _():
    wanted = [PUBLIC4, PUBLIC6, "169.254.169.254", "10.1.2.3", HOST4, "fd00:ec2::254", ROUTER4]
    with Internet() as net:
        value = net.run(PING, "--uplink", "host", "--args-json", json.dumps(wanted))
        went = json.loads(value["stdout"]["text"] or value["stderr"]["text"][-300:])
        equal(went[:2], ["answered"] * 2, "public ones")
        true(all(word in REFUSED for word in went[2:]), f"closed ones: {list(zip(wanted, went))[2:]}")
        equal({key[1] for key in net.seen()}, {PUBLIC4, PUBLIC6}, "addresses reached")
        told = {row["address"]: row["protocol"] for row in value["network"]["denied"]}
        equal(told, {one: "icmpv6" if ":" in one else "icmp" for one in wanted[2:]}, "denied")


for where in RESOLVERS:

    @test(f"DNS works by default when the host's name server is at a {where} address")
    def _(where=where):
        with Internet(resolver=where) as net:
            said, _ = fetch(net, (), "http://four.test/")
            contains(said, PUBLIC4, "the answer")
            server = net.host if where == "loopback" else net.world
            contains([query[0] for query in server("queries")], "four.test", "the queries")


@test("an answer too big for one datagram comes over TCP")
def _():
    code = """
import socket
print(len({row[4][0] for row in socket.getaddrinfo("big.test", 80, socket.AF_INET, socket.SOCK_STREAM)}))
"""
    with Internet() as net:
        value = net.run(code)
        equal(value["stdout"]["text"], f"{len(NAMES['big.test'])}\n", f"addresses ({value['stderr']['text'][-400:]})")
        true(["big.test", 1, "tcp"] in net.world("queries"), "no query came over TCP")


@test("a missing name, and one without addresses, is answered at once")
def _():
    code = """
import socket
for name in ("no-such-name.test", "nowhere.test"):
    try:
        print(socket.getaddrinfo(name, 80))
    except socket.gaierror as problem:
        print(problem.errno in (socket.EAI_NONAME, socket.EAI_NODATA))
"""
    with Internet() as net:
        equal(net.run(code)["stdout"]["text"], "True\nTrue\n", "answers")


@test("the jail's name server answers only on port 53")
def _():
    with Internet() as net:
        code = TRY + """
import re
server = re.search(r"nameserver (\\S+)", open("/etc/resolv.conf").read()).group(1)
query = b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4four\\4test\\0\\0\\1\\0\\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(PATIENCE)
    s.connect((server, 53))
    s.send(query)
    print(len(s.recv(1000)) > len(query), *[attempt(*one) for one in
        (("tcp", server, 80), ("udp", server, 54), ("tcp", server, 22), ("udp", server, 7))])
""".replace("PATIENCE", str(20 * SLOW))
        value = net.run(code)
        words = value["stdout"]["text"].split()
        equal(words[0], "True", "an answer from port 53")
        true(len(words) == 5 and all(word in REFUSED for word in words[1:]), f"other ports: {words[1:]}")
        equal({row["class"] for row in value["network"]["denied"]}, {"host"}, "classes of what was denied")


@test("only queries reach the host's name server")
def _():
    code = """
import re, socket
server = re.search(r"nameserver (\\S+)", open("/etc/resolv.conf").read()).group(1)
question = b"\\0\\0\\0\\0\\0\\0\\4four\\4test\\0\\0\\1\\0\\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.connect((server, 53))
    for flags, counts in ((b"\\x28\\0", b"\\0\\1"), (b"\\x20\\0", b"\\0\\1"), (b"\\x80\\0", b"\\0\\1"), (b"\\1\\0", b"\\0\\2")):
        try:
            s.send(b"\\x11\\x22" + flags + counts + question)
        except OSError:
            pass
    s.send(b"")
    s.send(b"\\x11")
import socket
print(len(socket.getaddrinfo("six.test", 80)) > 0)
"""
    with Internet() as net:
        value = net.run(code)
        equal(value["stdout"]["text"], "True\n", f"a good query afterwards ({value['stderr']['text'][-600:]})")
        lacks([query[0] for query in net.world("queries")], "four.test", "queries")


@test("the host's name server gets only the question and an empty OPT record, and a signed query is refused")
def _():
    code = """
import re, socket
server = re.search(r"nameserver (\\S+)", open("/etc/resolv.conf").read()).group(1), 53
question = b"\\4four\\4test\\0\\0\\1\\0\\1"
head, one = b"\\x11\\x22\\1\\x30", b"\\0\\1\\0\\0\\0\\0\\0\\1"
edns = head + one + question + b"\\0\\0\\x29\\x10\\0\\0\\0\\x80\\0\\0\\x0c\\0\\x0a\\0\\x08COOKIE!!"
tsig = head + one + question + b"\\0\\0\\xfa\\0\\xff\\0\\0\\0\\0\\0\\0"
with socket.create_connection(server, PATIENCE) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    udp.settimeout(PATIENCE)
    udp.connect(server)
    for query in (edns, tsig):
        udp.send(query)
        answer = udp.recv(600)
        print(answer[3] & 15, answer[7])
    tcp.send(len(edns).to_bytes(2, "big") + edns)
    stream = tcp.makefile("rb")
    answer = stream.read(int.from_bytes(stream.read(2), "big"))
    print(answer[3] & 15, answer[7])
""".replace("PATIENCE", str(9 * SLOW))
    plain = "0001000000000001" + "04666f7572047465737400" + "00010001"
    with Internet() as net:
        value = net.run(code)
        equal(value["stdout"]["text"], "0 1\n5 0\n0 1\n", f"codes and answers ({value['stderr']['text'][-600:]})")
        got = net.world("messages")
        equal([one[4:] for one in got], ["0100" + plain + "00002904d0" + "00" * 6] * 2, "what the name server got behind its id")
        equal(got[1][:4], "1122", "the id of a query over TCP")


@test("the shipped profiles give the public network, and --network none removes it")
def _():
    with Internet() as net:
        for profile, words in (("python", ("-c", "pass")), ("base", ("--", "/bin/true"))):
            equal(result("-p", profile, *words, **net.inside)["network"]["mode"], "public", profile)
        value = result("-p", "python", "--network", "none", "-c", TRY + "print(attempt('tcp', '20.30.40.50', 80))", **net.inside)
        equal(value["network"], {"mode": "none", "state": None, "reason": None, "uplink": None, "denied": []}, "network")
        contains(value["stdout"]["text"], "ENETUNREACH", "stdout")
        equal(net.seen(), {}, "packets")


@test("the host's name server in a closed range, or on its loopback, answers only through the jail's own")
def _():
    code = TRY + """
print(*[attempt(protocol, json.load(open("/box/args.json")), 53) for protocol in ("tcp", "udp")])
print(len(socket.getaddrinfo("four.test", 80)) > 0)
"""
    for where in ("closed", "loopback"):
        with Internet(resolver=where) as net:
            value = net.run(code, "--args-json", json.dumps(RESOLVERS[where]))
            words = value["stdout"]["text"].split()
            true(len(words) == 3 and words[0] in REFUSED and words[1] in REFUSED, f"directly, {where}: {words}")
            equal(words[2], "True", f"by name, {where}")


@test("a program that floods its name server or takes all its connections affects only itself")
def _():
    code = """
import re, socket
server = re.search(r"nameserver (\\S+)", open("/etc/resolv.conf").read()).group(1), 53
held = []
for _ in range(100):
    s = socket.socket()
    s.settimeout(0.05)
    held.append(s)
    try:
        s.connect(server)
        s.send(b"\\0\\x20half a question")
    except OSError:
        pass
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.setblocking(False)
    s.connect(server)
    for n in range(5000):
        try:
            s.send(n.to_bytes(2, "big") + b"\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4four\\4test\\0\\0\\1\\0\\1")
        except OSError:
            pass
print("on")
"""
    with Internet() as net:
        value = net.run(code)
        equal((value["status"], value["stdout"]["text"]), ("exited", "on\n"), f"end ({value['stderr']['text'][-500:]})")
        fetch(net, (), "http://four.test/")


@each_uplink("through {} an answer arrives that its server takes three seconds for", but=("host", "slirp4netns"))
def _(*uplink):
    # the gateway's kernel sends multicast listener reports in the first two seconds of a link
    code = f"""
import threading, urllib.request
def ask(address):
    print(urllib.request.urlopen(f"http://{{address}}/slow?3", timeout={20 * SLOW}).status)
for address in ("{PUBLIC4}", "[{PUBLIC6}]"):
    threading.Thread(target=ask, args=[address]).start()
"""
    with Internet() as net:
        value = net.run(code, *uplink)
        equal(value["stdout"]["text"].split(), ["200", "200"], f"the answers ({value['stderr']['text'][-500:]})")


@each_uplink("through {} a host without IPv6 gives its jails IPv4, and names with both families work at once")
def _(*uplink):
    with Internet(ways=(4,)) as net:
        said, value = fetch(net, uplink, "http://public.test/", "http://four.test/")
        equal([line.split(";")[0] for line in said.splitlines()], [f"the Internet at {PUBLIC4}"] * 2, "answers")
        equal(value["network"]["uplink"], uplink[-1], "uplink")
        no_way(net, NO_WAY, *uplink)


@each_uplink("through {} a host that is offline runs its jails all the same, closed")
def _(*uplink):
    with Internet(ways=()) as net:
        value = no_way(net, [["tcp", PUBLIC4, 80], ["tcp", "10.1.2.3", 80], ["tcp", HOST4, 80]], *uplink)
        equal(value["layers"]["network_filter"], "on", "layers.network_filter")


def no_way(net, wanted, *options):
    """Told at once, not left to wait."""
    went, value = net.attempts(wanted, *options)
    equal([(one, word) for one, word in zip(wanted, went) if word not in REFUSED], [], "attempts not refused at once")
    return value


NO_WAY = [[protocol, address, port] for address in (PUBLIC6, OTHER6) for protocol, port in (("tcp", 80), ("udp", 7))]


@test("through slirp4netns, which has no IPv6, an IPv6 connection is refused at once")
def _():
    need("slirp4netns")
    with Internet() as net:
        no_way(net, NO_WAY, "--uplink", "slirp4netns")


@test("without an uplink connections of both families are refused at once")
def _():
    with Internet() as net:
        value = no_way(net, [["tcp", PUBLIC4, 80], ["udp", PUBLIC4, 7], *NO_WAY], "--uplink", "none")
        true(value["network"]["uplink"] in ("none", None), f"uplink {value['network']['uplink']}")
        equal(value["layers"]["network_filter"], "on", "layers.network_filter")
        equal(net.seen(), {}, "packets")
