# SPDX-License-Identifier: Apache-2.0
"""The modes and the attempts of network_closed, from every other place that a program can have a network in."""

import contextlib
import json
import os
import subprocess

from bundles import Bundle, mount_of
from harness import *  # noqa: F403
from internet import *  # noqa: F403
from network_closed import MODES, as_options, is_local, keeps_closed
from pools import tier_of, wait_full
from service import Service
from sessions import Session


def words_of(value):
    equal((value["status"], value["exit_code"]), ("exited", 0), f"the end ({value['error']}, {value['stderr']['text'][-600:]})")
    return json.loads(value["stdout"]["text"])


@contextlib.contextmanager
def runs_through(uplink, net):
    need(uplink)

    def tries(mode, wanted, network, upstreams):
        went, value = net.attempts(wanted, "--uplink", uplink, *as_options(network, upstreams))
        if network["mode"] == "public":
            is_way_out(value, uplink)
        return went

    yield tries


@contextlib.contextmanager
def prepared_jails(net):
    """A profile for each mode, of which the pool has an interpreter that waits."""
    with Folder() as f, Service(env={"XDG_CONFIG_HOME": f.path}, **net.inside) as s:

        def tries(mode, wanted, network, upstreams):
            f.file("cejail/profiles/placed.json", json.dumps({"extends": "python", "network": network, "upstream": list(upstreams)}))
            s.reload({"pool": {"placed": {"interpreters": 1}}})
            wait_full(s)
            name = f"in-mode-{list(MODES).index(mode)}"
            went = words_of(s.post({"profile": "placed", "code": TRY_ALL, "args_json": wanted, "id": name}).result)
            equal(tier_of(s, name), "interpreter", f"tier with {mode}")
            s.reload({"pool": {}})
            return went

        yield tries


@contextlib.contextmanager
def execs_of_sessions(net):
    with Service(**net.inside) as s:

        def tries(mode, wanted, network, upstreams):
            with Session(s, profile="python", network=network, upstream=list(upstreams)) as session:
                return words_of(session.call("POST", "/execs", {"code": TRY_ALL, "args_json": wanted}).result)

        yield tries


# What the annotation can say; names would be looked up in the machine's own network.
IN_CONTAINER = ("a public network", "a list of addresses")


@contextlib.contextmanager
def containers(net):
    """They join the network namespace of the tests' Internet; the annotation filters what leaves it."""
    def tries(mode, wanted, network, upstreams):
        with Bundle() as b:
            b.namespace("network", f"/proc/{net.stations['host'][0]}/ns/net")
            allowed = ",".join(network.get("allow", ()))
            b.config["annotations"] = {"io.cejail.network": f"allow:{allowed}" if allowed else "public"}
            b.file("args.json", json.dumps(wanted))
            b.process["args"] = [PYTHON, "-c", TRY_ALL]
            places = {"/usr": "/usr", "/etc": "/etc", "/box": b.path}
            b.config["mounts"] += [mount_of("bind", place, source, "rbind", "ro") for place, source in places.items()]
            for name in ("lib", "lib64"):
                os.symlink(f"usr/{name}", f"{b.rootfs}/{name}")
            b.save()
            try:
                return json.loads(b.run().exits(0).out)
            finally:  # the rules stay with the network, and the next container would have both
                words = ["nsenter", "-t", str(net.stations["host"][0]), "-n", "nft", "flush", "ruleset"]
                subprocess.run(words, check=True, env=environment())

    yield tries


# How a place is called in a test's name, what makes it, the modes that it can have, and attempts that mean nothing there.
PLACES = (
    *((f"a run through {uplink}", lambda net, uplink=uplink: runs_through(uplink, net), MODES, lambda address: False) for uplink in UPLINKS),
    ("a prepared jail of the service", prepared_jails, MODES, lambda address: False),
    ("an exec of a session", execs_of_sessions, MODES, lambda address: False),
    # a container's loopback is its pod's, which the annotation leaves open
    ("a container", containers, IN_CONTAINER, is_local),
)

for at, (place, make, modes, means_nothing) in enumerate(PLACES):
    # each place begins with another mode, so that all of them have a turn in the short form
    chosen = thinned([*modes][at % len(modes) :] + [*modes][: at % len(modes)])

    @test(f"in {place} each row of the range table is refused at once in every mode, and no packet comes through", limit=60 + 60 * len(chosen), who="root" if make is containers else "anybody")
    def _(make=make, chosen=chosen, means_nothing=means_nothing):
        with Internet() as net, make(net) as tries:
            for mode in chosen:
                keeps_closed(net, mode, tries, means_nothing)
