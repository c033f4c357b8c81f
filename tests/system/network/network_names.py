# SPDX-License-Identifier: Apache-2.0
"""--allow '*.NAME': the jail has a name server for the names of the list alone, and its answers open addresses."""

import json

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from states import events

WILD = ("--allow", "*.wild.test")


@each_uplink("through {} names below an allowed wildcard are reached, and no other name or address is")
def _(*uplink):
    others = [["tcp", "wild.test", 80], ["tcp", "other.test", 80], ["tcp", "xwild.test", 80], ["tcp", "public.test", 80],
              ["tcp", OTHER4, 80], ["tcp", OTHER6, 80], ["tcp", "20.30.40.52", 80], ["tcp", "10.1.2.3", 80],
              ["tcp", "169.254.169.254", 80], ["tcp", HOST4, 80]]  # fmt: skip
    wanted = [["tcp", "a.wild.test", 80], ["tcp", "deep.a.wild.test", 8080], ["udp", PUBLIC4, 7], *others]
    with Internet() as net:
        went, value = net.attempts(wanted, *WILD, *uplink)
        equal(went[:3], ["answered"] * 3, f"allowed names: {went}")
        equal([word.split(":")[0] for word in went[3:7]], ["no address"] * 4, "other names")
        true(all(word in REFUSED for word in went[7:]), f"other addresses: {list(zip(wanted, went))[7:]}")
        equal(set(names_of(value)), {"wild.test", "other.test", "xwild.test", "public.test"}, "denied names")
        equal(asked(net), {"a.wild.test", "deep.a.wild.test"}, "names that left")
        reached = {RESOLVERS[net.resolver], *NAMES["a.wild.test"], *NAMES["deep.a.wild.test"]}
        equal({key[1] for key in net.seen()} - reached, set(), "addresses reached")


@test("an address is closed until the program has asked for its name, and then only the listed port is open")
def _():
    code = """
print("ready", flush=True)
for one in (("tcp", "%s", 80), ("tcp", "a.wild.test", 80), ("tcp", "%s", 80), ("tcp", "%s", 8080), ("udp", "%s", 7)):
    sys.stdin.readline()
    print(attempt(*one), flush=True)
""" % ((PUBLIC4,) * 4)
    with Internet() as net, net.talk(code, "--allow", "*.wild.test:80", "--allow-by", "address") as jail:
        went = [jail.ask() for _ in range(5)]
        equal([went[1], went[2]], ["answered"] * 2, f"the name, and then its address: {went}")
        true(all(went[i] in REFUSED for i in (0, 3, 4)), f"before, another port, another protocol: {went}")
        jail.result()


@test("IPv6 alone leads to a name that has both, and an answer has at most the addresses that are open")
def _():
    code = """
import socket
for kind, name in ((socket.AF_INET6, "a.wild.test"), (socket.AF_INET, "many.wild.test")):
    print(sorted({row[4][0] for row in socket.getaddrinfo(name, 80, kind)}))
with socket.create_connection(("%s", 80), 5) as s:
    print("connected")
""" % PUBLIC6
    with Internet() as net:
        value = net.run(code, *WILD, "--uplink", "pasta")
        equal(value["stdout"]["text"].splitlines(),
              [str([PUBLIC6]), str(sorted(NAMES["many.wild.test"])), "connected"], f"{value['stderr']['text'][-300:]}")  # fmt: skip


@test("a name below the wildcard that points into a closed range, or to the host, opens nothing there")
def _():
    wanted = [["tcp", "private.wild.test", 80], ["tcp", "10.1.2.3", 80], ["tcp", "host.wild.test", 80],
              ["tcp", "mixed.wild.test", 80], ["tcp", "169.254.169.254", 80], ["tcp", "20.30.40.52", 80],
              ["tcp", "rebind.wild.test", 80], ["tcp", "rebind.wild.test", 80], ["tcp", HOST4, 80]]  # fmt: skip
    with Internet() as net:
        went, value = net.attempts(wanted, *WILD, "--allow-by", "address")
        equal(went[0].split(":")[0], "no address", "a private name")
        equal([went[3], went[5]], ["answered"] * 2, f"the open address of a name with others: {went}")
        equal(went[7].split(":")[0], "no address", f"a name that changed to the metadata service: {went}")
        true(all(went[i] in REFUSED or went[i].startswith("no address") for i in (1, 2, 4, 8)), f"closed: {went}")
        equal({key[1] for key in net.seen()} - {RESOLVERS[net.resolver], "20.30.40.52", "20.30.40.53"}, set(), "reached")
        equal(net.host("hits"), [], "host services reached")


@test("beside a wildcard --allow-private opens what is listed by address, and names may point there")
def _():
    wanted = [["tcp", "private.wild.test", 80], ["tcp", "mixed.wild.test", 80], ["tcp", "169.254.169.254", 80],
              ["tcp", "10.1.2.4", 80]]  # fmt: skip
    with Internet() as net:
        went, _ = net.attempts(wanted, *WILD, "--allow", "10.1.2.3:80", "--allow-private")
        equal(went[:2], ["answered"] * 2, f"listed by address: {went}")
        true(all(word in REFUSED for word in went[2:]), f"others: {went}")


@test("a name listed in full beside a wildcard is looked up by the program, and counts each refused name")
def _():
    code = TRY + r"""
print(open("/etc/resolv.conf").read().split()[1], "public.test" in open("/etc/hosts").read())
print(attempt("tcp", "PUBLIC.Test", 80), attempt("tcp", "four.test", 80).split(":")[0])
def query(name, kind, tcp=False):
    labels = b"".join(bytes([len(one)]) + one for one in name.split(b".") if one) + b"\0"
    text = b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + labels + kind.to_bytes(2, "big") + b"\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect((open("/etc/resolv.conf").read().split()[1], 53))
        s.send(len(text).to_bytes(2, "big") + text if tcp else text)
        answer = s.recv(2000)
    return "closed" if not answer else (answer[3] & 15, int.from_bytes(answer[6:8], "big"))
A, TXT, NS = 1, 16, 2
print(query(b"a.wild.test", TXT), query(b"a.wild.test", A), query(b"secret.evil.test", TXT), query(b"", NS))
print(query(b"no\0zero.wild.test", A), query(b"nothing.wild.test", A), query(b"big.wild.test", A))
try:
    print(query(b"a.wild.test", A, tcp=True))
except ConnectionError:
    print("closed")
print(query(b"l" * 60 + b"." + b"m" * 60 + b".evil.test", A))
"""
    with Internet() as net:
        value = net.run(code, *WILD, "--allow", "public.test:80")
        lines = value["stdout"]["text"].splitlines()
        equal(lines[0].split()[1:], ["False"], f"/etc/hosts: {lines} {value['stderr']['text'][-500:]}")
        equal(lines[1], "answered no address", "a listed name, and one that is not")
        equal(lines[2], "(0, 0) (0, 1) (5, 0) (5, 0)", "types and names")
        equal(lines[3], "(5, 0) (3, 0) (2, 0)", "a zero byte, no such name, an answer too long for UDP")
        equal(lines[4:], ["closed", "(5, 0)"], "TCP, and a long name")
        denied = names_of(value)
        equal({"four.test", "secret.evil.test", "."} - set(denied), set(), f"denied names: {denied}")
        long = [name for name in denied if name.startswith("...")]
        equal([(len(one), one.endswith("m.evil.test")) for one in long], [(63, True)], f"a long name: {denied}")
        equal(asked(net) - {"public.test", "a.wild.test", "nothing.wild.test", "big.wild.test"}, set(), "names that left")


@test("a name with a search domain appended is filtered like any other, and the jail has none of the host's")
def _():
    code = TRY + 'print([line.split()[0] for line in open("/etc/resolv.conf")], *[attempt("tcp", name, 80).split(":")[0].replace(" ", "-") for name in json.load(open("/box/args.json"))])'
    with Internet(search="wild.test") as net:
        value = net.run(code, *WILD, "--args-json", json.dumps(["a", "deep.a", "a.wild.test"]))
        equal(value["stdout"]["text"], "['nameserver'] no-address no-address answered\n", f"without one: {value['stderr']['text'][-300:]}")
        equal((set(names_of(value)), asked(net)), ({"a", "deep.a"}, {"a.wild.test"}), "names that were denied, and that left")
        net.forget()
        value = net.run(code, *WILD, "--allow-by", "address", "-e", "LOCALDOMAIN=wild.test", "--args-json", json.dumps(["a", "deep.a", "other.test"]))
        equal(value["stdout"]["text"].split("] ")[1], "answered answered no-address\n", f"one that is allowed: {value['stderr']['text'][-300:]}")
        equal(asked(net) - {"a.wild.test", "deep.a.wild.test", "other.test.wild.test"}, set(), "names that left")
        contains(names_of(value), "other.test", "denied names")
        net.forget()
        value = net.run(code, *WILD, "-e", "LOCALDOMAIN=evil.test", "--args-json", json.dumps(["a", "secret"]))
        equal(value["stdout"]["text"].split("] ")[1], "no-address no-address\n", f"one that is not: {value['stderr']['text'][-300:]}")
        equal(({"a.evil.test", "secret.evil.test"} - set(names_of(value)), asked(net)), (set(), set()), "names that were not denied, and that left")


@test("a question in letters of both cases has an answer in the same ones, and opens the address of its name")
def _():
    code = TRY + r"""
question = b"\x01A\x04wILd\x04tEsT\x00\x00\x01\x00\x01"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(TIMEOUT)
    s.connect((open("/etc/resolv.conf").read().split()[1], 53))
    s.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + question)
    answer = s.recv(1000)
print(answer[3] & 15, answer[12:12 + len(question)] == question, attempt("tcp", "PUBLIC", 8080))
print(*[attempt("tcp", name, 80).split(":")[0] for name in ("DEEP.a.Wild.Test", "Wild.TEST")])
""".replace("TIMEOUT", str(9 * SLOW)).replace("PUBLIC", PUBLIC4)
    with Internet() as net:
        value = net.run(code, "--allow", "*.WILD.test", "--deny", "deep.A.wild.TEST", "--allow-by", "address")
        equal(value["stdout"]["text"], "0 True answered\nno address no address\n", f"{value['stderr']['text'][-300:]}")
        equal(set(names_of(value)), {"deep.a.wild.test", "wild.test"}, "denied names")


@test("the address that is one too many for a jail stays closed with a warning, and those that are open stay open", limit=120)
def _():
    code = TRY + r"""
import time
server = open("/etc/resolv.conf").read().split()[1], 53
def query(name):
    labels = b"".join(bytes([len(one)]) + one.encode() for one in name.split(".")) + b"\0"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(9)
        s.connect(server)
        s.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\1\0\1")
        answer = s.recv(2000)
    return answer[3] & 15, answer[7]
def answered(name):
    while (got := query(name)) == (2, 0):  # so many addresses a second are opened
        time.sleep(0.1)
    return got
print({answered(f"n{i}.full.test") for i in range(4096 // 24)})
last = 4096 // 24
begin = time.monotonic()
seen = set()
while time.monotonic() - begin < 2:
    seen.add(query(f"n{last}.full.test"))
    time.sleep(0.2)
print(seen, answered("n0.full.test"))
print(attempt("tcp", "20.32.0.0", 80), attempt("tcp", f"20.32.{last - 1}.23", 80), attempt("tcp", f"20.32.{last}.23", 80))
"""
    with Internet() as net:
        value = net.run(code, "--allow", "*.full.test", "--allow-by", "address")
        lines = value["stdout"]["text"].splitlines()
        equal(lines, ["{(0, 24)}", "{(2, 0)} (0, 24)", "answered answered ECONNREFUSED"], f"{value['stderr']['text'][-300:]}")
        warning = "the addresses of 'n170.full.test' stay closed: a jail has at most 4096 open ones"
        equal([one for one in value["warnings"] if "stay closed" in one], [warning], "warnings")


@test("a refused name is told as an event, and in one line")
def _():
    code = TRY + "attempt('tcp', 'evil.test', 80)"
    with Internet() as net:
        told = [event["network"] for event in events(net, code, *WILD) if event["type"] == "denied"]
        equal({(row["class"], row["name"], row["address"]) for row in told}, {("name", "evil.test", None)}, f"events: {told}")
        done = python(code, "--network", "public", *WILD, **net.inside)
        contains(done.err, "network: denied the name evil.test (not allowed)", "standard error")


@test("names are looked up at the start or by the program, as --network-names says, and what has no answer before the start is refused")
def _():
    code = TRY + 'print(attempt("tcp", "public.test", 80), "public.test" in open("/etc/hosts").read(), attempt("tcp", "four.test", 80).split(":")[0])'
    with Internet() as net:
        for how, in_hosts in (("auto", True), ("start", True), ("live", False)):
            value = net.run(code, "--allow", "public.test:80", "--network-names", how)
            equal(value["stdout"]["text"].strip(), f"answered {in_hosts} no address", f"{how}: {value['stderr']['text'][-300:]}")
            equal(list(names_of(value)), [] if in_hosts else ["four.test"], f"{how}: denied names")
    for options, words in ((("--allow", "*.wild.test"), ("*.wild.test", "--network-names auto")),
                           (("--allow", "public.test", "--deny", "*.wild.test"), ("*.wild.test", "--network-names auto")),
                           (("--allow", "public.test", "--allow-by", "name"), ("--allow-by name", "--allow-by address"))):  # fmt: skip
        for word in words:
            refused(python("print('ran')", "--network", "public", "--network-names", "start", *options), word)
    refused(python("print('ran')", "--network", "public", "--network-names", "later"), "'later'")


@test("a wildcard that is no whole first label, or all of a public suffix, is refused with the form that works")
def _():
    for target, word in (("*", "*"), ("*.com", "*.example.com"), ("a*.wild.test", "*.example.com"), ("*wild.test", "*.example.com"),
                         ("a.*.test", "*.example.com"), ("*.*.test", "*.example.com"), ("*.", "*"), ("*.wild.test.", "*.wild.test."),
                         ("*.1.2.3.4", "1.2.3.4"), ("*.b\u00fccher.test", "Punycode")):  # fmt: skip
        refused(python("print('ran')", "--network", "public", "--allow", target), word)
