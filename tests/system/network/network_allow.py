# SPDX-License-Identifier: Apache-2.0
"""--allow: instead of the Internet only what is named, and no name leaves the jail.  --connect tcp: one
port of the host's, and nothing else of it."""

from harness import *  # noqa: F403
from internet import *  # noqa: F403

UNLISTED = [["tcp", OTHER4, 80], ["tcp", OTHER6, 80], ["udp", OTHER4, 7], ["tcp", "10.1.2.3", 80],
            ["tcp", "169.254.169.254", 80], ["tcp", HOST4, 80]]  # fmt: skip


def allow(*targets):
    return [word for target in targets for word in ("--allow", target)]


def only(net, targets, reached, others, *options):
    """With --allow TARGETS the first attempts are answered; the second, and UNLISTED, are refused."""
    wanted = reached + others + UNLISTED
    went, value = net.attempts(wanted, *allow(*targets), *options)
    equal(went[: len(reached)], ["answered"] * len(reached), f"--allow {targets}: {reached}")
    bad = [(one, word) for one, word in zip(wanted, went) if word not in REFUSED][len(reached) :]
    equal(bad, [], f"--allow {targets}: not refused")
    allowed = {RESOLVERS[net.resolver], *NAMES["public.test"], *(one[1] for one in reached)}
    equal({key[1] for key in net.seen()} - allowed, set(), f"--allow {targets}: addresses reached")
    return value


@each_uplink("through {} an allowed name is reached at all its addresses, and nothing else is")
def _(*uplink):
    reached = [["tcp", "public.test", 80], ["tcp", PUBLIC4, 8080], ["udp", PUBLIC4, 7]]
    reached += [] if uplink[-1] in NO_IPV6 else [["tcp", PUBLIC6, 80]]
    with Internet() as net:
        value = only(net, ["public.test"], reached, [], *uplink)
        classes = {row["address"]: row["class"] for row in value["network"]["denied"]}
        equal(classes.get(OTHER4), "not_allowed", f"class of {OTHER4} in {value['network']['denied']}")
        equal(classes.get("169.254.169.254"), "metadata", "class of the metadata service")
        equal(classes.get(HOST4), "host", "class of the host")


@test("a name with a port opens that port alone")
def _():
    with Internet() as net:
        only(net, ["public.test:8080"], [["tcp", "public.test", 8080]], [["tcp", PUBLIC4, 80], ["udp", PUBLIC4, 7]])


@test("addresses, networks and IPv6 in brackets can be allowed, with and without a port")
def _():
    for targets, reached, others in (
        ([PUBLIC4], [["tcp", PUBLIC4, 80], ["udp", PUBLIC4, 7]], [["tcp", "20.30.40.51", 80], ["tcp", PUBLIC6, 80]]),
        ([f"{PUBLIC4}:80"], [["tcp", PUBLIC4, 80]], [["tcp", PUBLIC4, 8080]]),
        (["20.30.40.48/30:80"], [["tcp", PUBLIC4, 80], ["tcp", "20.30.40.51", 80]],
         [["tcp", "20.30.40.52", 80], ["tcp", "20.30.40.47", 80], ["tcp", PUBLIC4, 22]]),
        ([PUBLIC6], [["tcp", PUBLIC6, 8080]], [["tcp", PUBLIC4, 80], ["tcp", "2600:1f00::51", 80]]),
        ([f"[{PUBLIC6}]:80"], [["tcp", PUBLIC6, 80]], [["tcp", PUBLIC6, 8080]]),
        (["[2600:1f00::/122]:80", f"{PUBLIC4}:22"], [["tcp", "2600:1f00::3f", 80], ["tcp", PUBLIC4, 22]],
         [["tcp", "2600:1f00::40", 80], ["tcp", PUBLIC4, 80]]),
    ):  # fmt: skip
        with Internet() as net:
            only(net, targets, reached, others)


@test("an allowed name is in the jail's hosts file, and no DNS query leaves the jail")
def _():
    code = """
print("ready", flush=True)
sys.stdin.readline()
print(attempt("tcp", "public.test", 80), flush=True)
for name in ("other.test", "secret-data.other.test"):
    print(attempt("tcp", name, 80).split(":")[0], flush=True)
query = b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret\\4test\\0\\0\\1\\0\\1"
for server in ("198.18.0.3", "20.53.53.53", "8.8.8.8", "10.0.2.3", "fdce:6a11::3"):
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        try:
            s.connect((server, 53))
            s.send(query)
            print("got", s.recv(100), flush=True)
        except OSError:
            print("no", attempt("tcp", server, 53) in %r, flush=True)
print(open("/etc/hosts").read().replace("\\n", "|"), flush=True)
""" % (REFUSED,)
    with Internet() as net, net.talk(code, *allow("public.test")) as jail:
        net.forget()
        equal(jail.ask(), "answered", "the allowed name")
        equal([jail.receive() for _ in range(2)], ["no address"] * 2, "other names")
        equal([jail.receive() for _ in range(5)], ["no True"] * 5, "questions to name servers")
        hosts = [line.split() for line in jail.receive().split("|")]
        true([PUBLIC4, "public.test"] in hosts and [PUBLIC6, "public.test"] in hosts, f"/etc/hosts: {hosts}")
        equal(net.world("queries") + net.host("queries"), [], "questions that left")
        equal([key for key in net.seen() if key[2] == 53], [], "packets to port 53")
        jail.result()


@test("the C library in the jail resolves an allowed name to all its addresses")
def _():
    code = """
import socket
for name in ("public.test", "big.test"):
    print(len({row[4][0] for row in socket.getaddrinfo(name, 80)}))
"""
    with Internet() as net:
        value = net.run(code, *allow("public.test", "big.test"))
        equal(value["stdout"]["text"].split(), ["2", str(len(NAMES["big.test"]))], "numbers of addresses")


@test("a name that points into a closed range is refused with the class in the message, and nothing runs")
def _():
    with Internet() as net:
        for name, word in (("private.test", "private"), ("metadata.test", "metadata"), ("mixed.test", "private"),
                           ("loopback.test", "loopback")):  # fmt: skip
            done = python("print('ran')", "--network", "public", *allow(name), **net.inside)
            refused(done, name, word)


@test("a closed address or network is refused without --allow-private")
def _():
    with Internet() as net:
        for target, word in (("10.1.2.3", "private"), ("169.254.169.254:80", "metadata"), ("10.0.0.0/8", "private"),
                             ("20.0.0.0/4", ""), ("fd00::/8", ""), ("0.0.0.0/0", ""), ("[::1]:80", "loopback")):  # fmt: skip
            refused(python("print('ran')", "--network", "public", *allow(target), **net.inside), target.split("/")[0], word)
        equal(net.seen(), {}, "packets")


@each_uplink("through {} --allow-private opens exactly what is named, with a warning")
def _(*uplink):
    wanted = [["tcp", "10.1.2.3", 80], ["tcp", "10.1.2.3", 8080], ["tcp", "10.1.2.4", 80], ["tcp", "169.254.169.254", 80],
              ["tcp", "10.99.0.5", 80], ["tcp", HOST4, 80], ["tcp", PUBLIC4, 80]]  # fmt: skip
    with Internet() as net:
        went, value = net.attempts(wanted, *uplink, *allow("10.1.2.3:80"), "--allow-private")
        equal(went[0], "answered", "the private target")
        true(all(word in REFUSED for word in went[1:]), f"others: {list(zip(wanted, went))}")
        contains(" ".join(value["warnings"]), "10.1.2.3", "warnings")
        equal({key[1] for key in net.seen()}, {"10.1.2.3"}, "addresses reached")


@test("not even --allow-private opens the host's own addresses")
def _():
    with Internet() as net:
        wanted = [["tcp", "10.99.0.5", 80], ["tcp", HOST4, 80], ["udp", HOST4, 7], ["tcp", "10.99.0.6", 80]]
        went, _ = net.attempts(wanted, *allow("10.99.0.0/24", HOST4), "--allow-private")
        true(all(word in REFUSED for word in went[:3]), f"host addresses: {went}")
        equal(net.host("hits"), [], "host services reached")


@test("loopback can't be allowed, and the message shows --connect")
def _():
    with Internet() as net:
        for target in ("127.0.0.1:9000", "loopback.test", "[::1]:9000"):
            done = python("print('ran')", "--network", "public", *allow(target), "--allow-private", **net.inside)
            refused(done, "--connect")


@test("an invalid --allow is refused by name before anything runs")
def _():
    for target, word in (
        ("", "allow"), (":80", "allow"), ("public.test:0", "0"), ("public.test:65536", "65536"), ("public.test:http", "http"),
        ("public.test:", "public.test"), ("10.0.0.1/8", "10.0.0.1/8"), ("0x7f.1", "0x7f.1"), ("2130706433", "2130706433"),
        ("010.0.0.1", "010.0.0.1"), ("a..b", "a..b"), ("a b", "a b"), (f"[{PUBLIC6}", PUBLIC6), ("x" * 64 + ".test", "x"),
        ("1.2.3.4/33", "33"), ("http://public.test/", "http"),
    ):  # fmt: skip
        refused(python("print('ran')", "--network", "public", *allow(target)), word)


@test("a name that can't be resolved is refused, and the message names it")
def _():
    with Internet() as net:
        for name in ("no-such-name.test", "nowhere.test"):
            refused(python("print('ran')", "--network", "public", *allow(name), **net.inside), name)


@test("an unknown mode or uplink is refused, and the message lists the known ones")
def _():
    refused(python("1", "--network", "private"), "private", "public", "none")
    refused(python("1", "--network", "public", "--uplink", "wifi"), "wifi", "pasta", "slirp4netns")


# --- --connect tcp ------------------------------------------------------------

CONNECT = TRY + """
for port in (9000, 9001, 22, 80):
    print(attempt("tcp", "127.0.0.1", port), attempt("udp", "127.0.0.1", port))
with socket.create_connection(("127.0.0.1", 9000), 5) as s, s.makefile("rb") as stream:
    print(stream.readline().decode().strip())
    s.sendall(b"x" * 1000000)
    s.shutdown(socket.SHUT_WR)
    print(len(stream.read()))
"""
for mode in ("none", "public"):

    @test(f"with the network {mode} --connect tcp brings one port of the host's into the jail, and no other")
    def _(mode=mode):
        with Internet() as net:
            done = python(CONNECT, "--network", mode, "--connect", "tcp:127.0.0.1:9000", **net.inside).exits(0)
            lines = done.out.splitlines()
            equal(lines[0], "answered ECONNREFUSED", "the connected port")
            equal(lines[1:4], ["ECONNREFUSED ECONNREFUSED"] * 3, "its neighbours")
            equal(lines[4:], ["host port 9000", "1000000"], "what the host's service said")
            equal({hit[2] for hit in net.host("hits")}, {9000}, "host ports that were reached")
            equal(net.seen(), {}, "packets")


@test("--connect tcp to a port without a listener is a reset, and the run goes on")
def _():
    code = TRY + "print(attempt('tcp', '127.0.0.1', 9999)); print('on')"
    with Internet() as net:
        done = python(code, "--network", "none", "--connect", "tcp:127.0.0.1:9999", **net.inside).exits(0)
        lines = done.out.splitlines()
        true(lines[0] in ("ECONNRESET", "ECONNREFUSED", "EPIPE") and lines[1] == "on", f"{done!r}")


@test("--connect tcp carries a hundred connections one after another and fifty at once")
def _():
    code = """
import socket
def one():
    s = socket.create_connection(("127.0.0.1", 9000), 10)
    return s, s.makefile("rb")
for _ in range(100):
    s, stream = one()
    assert stream.readline() == b"host port 9000\\n"
    stream.close(); s.close()
many = [one() for _ in range(50)]
print({stream.readline() for _, stream in many})
"""
    with Internet() as net:
        done = python(code, "--network", "none", "--connect", "tcp:127.0.0.1:9000", **net.inside).exits(0)
        equal(done.out, "{b'host port 9000\\n'}\n", "greetings")


@test("--connect tcp names the host's 127.0.0.1 and a port, or is refused")
def _():
    for target in ("tcp:10.0.0.1:80", "tcp:127.0.0.1:0", "tcp:127.0.0.1:65536", "tcp:127.0.0.1", "tcp:localhost:80", "tcp:"):
        refused(python("1", "--connect", target), "connect")
