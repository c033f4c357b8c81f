# SPDX-License-Identifier: Apache-2.0
"""--allow-by name: several names share an address, and only the connections that state an allowed one reach it."""

from harness import *  # noqa: F403
from internet import *  # noqa: F403

WILD = ("--allow", "*.wild.test")

# public.test has the addresses of a.wild.test.
SHARED = """
import socket, ssl, sys
T = %s  # seconds
def connect(address, port):
    return socket.create_connection((address, port), T)
def heard(s):
    try:
        return (s.recv(1000) or b"end").decode().split("\\r\\n")[-1].strip()
    except OSError as problem:
        return type(problem).__name__
def tls(address, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with connect(address, 443) as s, context.wrap_socket(s, server_hostname=name) as t:
            t.sendall(b"hello")
            return heard(t)
    except OSError as problem:
        return type(problem).__name__
def raw(address, port, *parts):
    with connect(address, port) as s:
        try:
            for one in parts:
                s.sendall(one)
        except OSError:
            pass
        return heard(s)
def http(address, *hosts, port=80):
    return raw(address, port, *[b"GET / HTTP/1.1\\r\\nHost: " + one + b"\\r\\n\\r\\n" for one in hosts])
def find(name, kind=socket.AF_INET):
    return socket.getaddrinfo(name, 443, kind)[0][4][0]
""" % int(3 * SLOW)


def run(net, code, *options):
    value = net.run(SHARED + code, *options)
    equal((value["status"], value["exit_code"]), ("exited", 0), f"end ({value['stderr']['text'][-900:]})")
    return value["stdout"]["text"].splitlines(), value


def names_of(value):
    return {row["name"]: row["count"] for row in value["network"]["denied"] if "name" in row}


def nameless(value):
    rows = [row for row in value["network"]["denied"] if row["class"] == "name" and "name" not in row]
    return {(row["protocol"], row["address"], row["port"]): row["count"] for row in rows}


@each_uplink("through {} only connections that state an allowed name reach an address that it shares")
def _(*uplink):
    code = """
for kind in KINDS:
    there = find("a.wild.test", kind)
    print(tls(there, "a.wild.test"), "|", tls(there, "B.Wild.Test"), "|", http(there, b"a.wild.test"), "|", http(there, b"A.WILD.test.:80"))
    print(tls(there, "public.test"), tls(there, None), tls(there, "wild.test"), http(there, b"public.test"))
    print(raw(there, 443, b"SSH-2.0-x\\r\\n"), raw(there, 80, b"GET / HTTP/1.1\\r\\nHost: a.wild.test\\r\\nHost: public.test\\r\\n\\r\\n"))
"""
    four = uplink[-1] in NO_IPV6
    with Internet() as net:
        kinds = "[socket.AF_INET]" if four else "[socket.AF_INET, socket.AF_INET6]"
        lines, value = run(net, code.replace("KINDS", kinds), *WILD, *uplink)
        for i, there in enumerate([PUBLIC4] if four else [PUBLIC4, PUBLIC6]):
            good = [word.strip() for word in lines[3 * i].split("|")]
            equal(good[:2], [f"tls a.wild.test at {there}", f"tls B.Wild.Test at {there}"], "allowed in TLS")
            true(all(word.startswith(f"the Internet at {there};") for word in good[2:]), f"allowed in HTTP: {good}")
            equal(lines[3 * i + 1].split(), ["ConnectionResetError"] * 4, "other names, and none")
            equal(lines[3 * i + 2].split(), ["ConnectionResetError"] * 2, "neither TLS nor HTTP, and two hosts")
        times = 1 if four else 2
        equal(names_of(value), {"public.test": 2 * times, "wild.test": times}, "denied names")
        addresses = [PUBLIC4] if four else [PUBLIC4, PUBLIC6]
        equal(nameless(value), {("tcp", one, port): 2 if port == 443 else 1 for one in addresses for port in (443, 80)}, "denied without")
        net.seen()
        equal([net.openings(one, 443) for one in addresses], [2] * times, "connections to the servers")


@test("what follows in a connection is checked too, a name may come in pieces, and both sides may end first")
def _():
    code = """
there = find("a.wild.test")
GET = b"GET /%s HTTP/1.1\\r\\nHost: a.wild.test\\r\\n\\r\\n"
print(http(there, b"a.wild.test", b"public.test"))
print(raw(there, 80, *[GET[i:i + 1].replace(b"%", b"") for i in range(len(GET)) if GET[i:i + 2] != b"%s"]))
with connect(there, 80) as s:
    s.sendall(GET.replace(b"%s", b"big?3000000").replace(b"1.1", b"1.0"))
    HALF_CLOSE
    size = 0
    while piece := s.recv(65536):
        size += len(piece)
    print(3000000 < size < 3000100)
with connect(there, 80) as s:
    s.sendall(b"POST / HTTP/1.1\\r\\nHost: a.wild.test\\r\\nContent-Length: 3000000\\r\\n\\r\\n" + bytes(3000000))
    print(heard(s))
with connect(there, 80) as s:
    s.settimeout(60)
    print(heard(s), "after silence")
with connect(there, 443) as s:
    s.settimeout(60)
    s.sendall(b"\\x16\\x03")
    print(heard(s), "after two bytes")
"""
    with Internet() as net:
        # pasta stalls behind a half-close, of a direct connection, too
        half = "s.shutdown(socket.SHUT_WR)" if "host" in UPLINKS else "pass"
        lines, value = run(net, code.replace("HALF_CLOSE", half), *WILD)
        equal(lines[0], "ConnectionResetError", f"a second request for another host ({lines})")
        contains(lines[1], "the Internet at", "in pieces")
        equal(lines[2], "True", "a long answer after the end of the request")
        contains(lines[3], "3000000 bytes from", "a long request")
        equal(lines[4:], ["ConnectionResetError after silence", "ConnectionResetError after two bytes"], "no name in time")
        equal((names_of(value), nameless(value)), ({"public.test": 1}, {("tcp", PUBLIC4, 443): 1}), "denied")


@test("names are not checked of a destination listed by address, on other ports, or with --allow-by address")
def _():
    code = """
there = find("a.wild.test")
print(raw(there, 80, b"GET / HTTP/1.0\\r\\n\\r\\n")[:12], raw(there, 8080, b"GET / HTTP/1.0\\r\\n\\r\\n")[:12], tls(there, "public.test"), sep="|")
"""
    with Internet() as net:
        for options, expected in (
            ((*WILD, "--allow", f"{PUBLIC4}:443"), ["ConnectionRe", "the Internet", f"tls public.test at {PUBLIC4}"]),
            ((*WILD, "--allow-by", "address"), ["the Internet", "the Internet", f"tls public.test at {PUBLIC4}"]),
            (("--allow", "a.wild.test"), ["the Internet", "the Internet", f"tls public.test at {PUBLIC4}"]),
            (("--allow", "a.wild.test", "--allow-by", "name"), ["ConnectionRe", "the Internet", "ConnectionResetError"]),
        ):  # fmt: skip
            lines, _ = run(net, code, *options)
            equal(lines[0].split("|"), expected, f"with {options}")


@test("a name is allowed on the ports that the list has for it, whatever other names open at its address")
def _():
    code = """
there, same = find("a.wild.test"), find("public.test")
print(there == same, tls(there, "a.wild.test").split()[0], tls(there, "public.test"), http(there, b"public.test").split()[0], http(there, b"a.wild.test"))
"""
    with Internet() as net:
        lines, value = run(net, code, "--allow", "a.wild.test:443", "--allow", "public.test:80", "--allow-by", "name")
        equal(lines[0], "True tls ConnectionResetError the ConnectionResetError", "each name on each port")
        equal(names_of(value), {"a.wild.test": 1, "public.test": 1}, "denied")


@test("UDP to a checked port is refused, because QUIC would state its name there")
def _():
    wanted = [["udp", "a.wild.test", 80], ["udp", "a.wild.test", 443], ["udp", "a.wild.test", 7]]
    with Internet() as net:
        went, value = net.attempts(wanted, *WILD)
        true(all(word in REFUSED for word in went[:2]) and went[2] == "answered", f"UDP: {went}")
        equal({row["port"] for row in value["network"]["denied"] if row["class"] == "not_allowed"}, {80, 443}, "denied")
