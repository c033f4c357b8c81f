# SPDX-License-Identifier: Apache-2.0
"""--deny: a destination stays closed, whatever else is allowed."""

import json

from harness import *  # noqa: F403
from internet import *  # noqa: F403

WILD = ("--allow", "*.wild.test")
DEEP4 = NAMES["deep.a.wild.test"][0]


def deny(*targets):
    return [word for target in targets for word in ("--deny", target)]


def closed(net, wanted, went, reached):
    """The first `reached` attempts are answered, and the others are refused, or have no address."""
    pairs = list(zip(wanted, went))
    equal([word for word in went[:reached]], ["answered"] * reached, f"open: {pairs}")
    true(all(word in REFUSED or word.startswith("no address") for word in went[reached:]), f"closed: {pairs}")
    equal({key[1:3] for key in net.seen()} & {tuple(one[1:3]) for one in wanted[reached:]}, set(), "denied addresses reached")


@each_uplink("through {} a name denied below an allowed wildcard is refused and reported, and its addresses are closed")
def _(*uplink):
    wanted = [["tcp", "a.wild.test", 80], ["tcp", "deep.a.wild.test", 80], ["tcp", DEEP4, 80], ["tcp", "x.in.wild.test", 80],
              ["tcp", "many.wild.test", 80], ["tcp", "20.31.5.1", 80]]  # fmt: skip
    with Internet() as net:
        went, value = net.attempts(wanted, *WILD, *deny("deep.a.wild.test", "*.in.wild.test", "20.31.0.0/16"), *uplink)
        closed(net, wanted, went, 1)
        equal(set(names_of(value)), {"deep.a.wild.test", "x.in.wild.test"}, "denied names")
        classes = {row["address"]: row["class"] for row in value["network"]["denied"]}
        equal((classes.get(DEEP4), classes.get("20.31.5.1")), ("not_allowed",) * 2, f"{value['network']['denied']}")
        equal(asked(net) - {"a.wild.test", "many.wild.test", "deep.a.wild.test"}, set(), "names that left")


@each_uplink("through {} a public network without some names and addresses has all others")
def _(*uplink):
    wanted = [["tcp", "public.test", 80], ["udp", PUBLIC4, 7], ["tcp", "20.30.40.59", 80], ["tcp", PUBLIC4, 80],
              ["tcp", "other.test", 80], ["tcp", OTHER4, 80], ["udp", OTHER4, 7], ["tcp", "20.31.255.1", 80],
              ["tcp", "20.30.40.52", 8080], ["tcp", "10.1.2.3", 80]]  # fmt: skip
    wanted += [] if uplink[-1] in NO_IPV6 else [["tcp", OTHER6, 80], ["tcp", "2600:1f01::1", 80]]
    with Internet() as net:
        went, value = net.attempts(wanted, *deny("other.test", "20.31.0.0/16", "20.30.40.52:8080", "2600:1f01::/32"), *uplink)
        closed(net, wanted, went, 4)
        equal(set(names_of(value)), {"other.test"}, "denied names")


@test("deny wins over an allow list of the same addresses, networks, names and ports")
def _():
    for allowed, denied, reached, others in (
        (["20.30.40.0/24"], ["20.30.40.50:80"], [["tcp", PUBLIC4, 8080], ["tcp", "20.30.40.51", 80]], [["tcp", PUBLIC4, 80]]),
        ([f"{PUBLIC4}:80"], [PUBLIC4], [], [["tcp", PUBLIC4, 80], ["udp", PUBLIC4, 7]]),
        (["public.test", "four.test"], ["six.test"], [["tcp", "four.test", 80]], [["tcp", PUBLIC6, 80]]),
        (["public.test", OTHER4], ["public.test"], [["tcp", OTHER4, 80]], [["tcp", "public.test", 80], ["tcp", PUBLIC4, 80]]),
        (["a.wild.test", OTHER4], ["*.wild.test"], [["tcp", OTHER4, 80]], [["tcp", "a.wild.test", 80], ["tcp", PUBLIC4, 80]]),
        ([f"[{PUBLIC6}]:80", f"[{OTHER6}]:80"], ["2600:1f00::50/124"], [["tcp", OTHER6, 80]], [["tcp", PUBLIC6, 80]]),
        (["10.1.2.0/24", "--allow-private"], ["10.1.2.3"], [["tcp", "10.1.2.4", 80]], [["tcp", "10.1.2.3", 80]]),
    ):  # fmt: skip
        with Internet() as net:
            options = [word for one in allowed for word in ((one,) if one.startswith("-") else ("--allow", one))]
            went, _ = net.attempts(reached + others, *options, *deny(*denied))
            closed(net, reached + others, went, len(reached))


@each_uplink("through {} a name that is an alias of a denied one opens nothing, however long its chain")
def _(*uplink):
    for allowed, denied in ((["*.alias.test"], ["two.alias.test"]), (["*.alias.test"], ["*.wild.test", DEEP4]),
                            (["one.alias.test", "open.alias.test"], ["*.wild.test"]), ([], ["*.wild.test"])):  # fmt: skip
        wanted = [["tcp", "one.alias.test", 80]] + ([["tcp", "open.alias.test", 80]] if "*.wild.test" in denied else [])
        with Internet() as net:
            went, value = net.attempts(wanted, *[word for one in allowed for word in ("--allow", one)], *deny(*denied), *uplink)
            closed(net, wanted, went, 0)
            told = {"two.alias.test"} if denied[0] == "two.alias.test" else {"a.wild.test", "deep.a.wild.test"}
            equal(set(names_of(value)), told, f"denied names of {allowed} without {denied}")
    with Internet() as net:
        went, _ = net.attempts([["tcp", "one.alias.test", 80]], "--allow", "*.alias.test", "--deny", "deep.a.wild.test", *uplink)
        equal(went, ["answered"], "an alias of what is not denied")


@test("an address that an allowed name shares with a denied one is closed, and is in no answer")
def _():
    wanted = [["tcp", "deep.a.wild.test", 80], ["tcp", "a.wild.test", 80], ["tcp", PUBLIC4, 80]]
    with Internet() as net:
        went, _ = net.attempts(wanted, *WILD, *deny("public.test"))
        closed(net, wanted, went, 1)
        equal(went[1].split(":")[0], "no address", "a name whose addresses are all denied")


@test("no answer of the name server in a public network has a denied address")
def _():
    code = """
import socket
for name in ("many.wild.test", "public.test"):
    print(sorted({row[4][0] for row in socket.getaddrinfo(name, 80)}))
"""
    with Internet() as net:
        value = net.run(code, *deny("20.31.0.0/28", "20.31.16.0/20", PUBLIC6), "--uplink", "pasta")
        kept = sorted(one for one in NAMES["many.wild.test"] if one not in ("20.31.0.1", "20.31.16.1", "20.31.17.1", "20.31.18.1", "20.31.19.1"))
        equal(value["stdout"]["text"].splitlines(), [str(kept), str([PUBLIC4])], f"{value['stderr']['text'][-300:]}")


@test("a request adds to what its profile or the command line denies, and takes none of it away")
def _():
    wanted = [["tcp", "a.wild.test", 80], ["tcp", "public.test", 80], ["tcp", "other.test", 80], ["tcp", DEEP4, 80]]
    with Internet() as net, Folder() as f:
        f.file("config/cejail/profiles/shut.json", '{"extends": "python", "network": {"mode": "public", "deny": ["other.test"]}}')
        request = {"network": {"mode": "public", "allow": ["*.wild.test", "other.test"], "deny": [f"{DEEP4}"]},
                   "code": TRY + f"for one in {wanted!r}: print(attempt(*one).split(':')[0])"}  # fmt: skip
        done = run("-q", "--json", "--request-fd", "0", "-p", "shut", given=json.dumps(request), env=environment(XDG_CONFIG_HOME=str(f / "config")), **net.inside)
        went = json.loads(done.out)["stdout"]["text"].split("\n")
        equal(went[:3], ["answered", "no address", "no address"], f"{went} {done.err}")
        true(went[3] in REFUSED, f"{went}")


@test("an invalid --deny is refused by name before anything runs")
def _():
    for target, word in (("", "deny"), ("public.test:80", "public.test"), ("*.public.test:80", "*.public.test"), ("*.com", "*.example.com"),
                         ("10.0.0.1/8", "10.0.0.1/8"), ("0x7f.1", "0x7f.1"), ("http://public.test/", "http"), ("20.30.40.50:0", "0")):  # fmt: skip
        refused(python("print('ran')", "--network", "public", "--deny", target), word)
    with Internet() as net:
        refused(python("print('ran')", "--network", "public", *deny(*["20.30.40.50"] * 65), **net.inside), "64")
