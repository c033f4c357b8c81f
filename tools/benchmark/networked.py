# SPDX-License-Identifier: Apache-2.0
"""Subjects of the network: runs that could use it, runs that do, and its throughput."""

import json
import subprocess

from . import commands, turns
from .bench import Table, compare
from .turns import percentile
from .world import ADDRESS, PORT, SEND_PORT

SEND_MS = 500
PROXIED = "proxied.world.test"


def uplinks(bench, who):
    return ["host"] if who is bench.root else ["pasta", "slirp4netns"]


def public(bench, binary, uplink, *argv, profile="base", options=()):
    return commands.run(
        binary, "--uplink", uplink, *options, "-p", profile, "--ro-bind", f"{bench.tool('tcp')}:/tcp", "--", *argv,
        network="public")


def early_profile(bench):
    """The network before the program starts, also where the default is its first use."""
    path = f"{bench.work}/early.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"extends": "base", "network": {"mode": "public", "start": "early"}}, file)
    return path


CONNECT = ("/tcp", "connect", ADDRESS, str(PORT))


def network_runs(bench, who):
    """{NAME: argv} of each cejail without a network, and with each uplink: unused, and used once."""
    argvs = {}
    for name, path in bench.binaries:
        argvs[f"{name}, none"] = commands.run(
            path, "-p", "base", "--ro-bind", f"{bench.tool('tcp')}:/tcp", "--", "/bin/true")
        for uplink in uplinks(bench, who):
            argvs[f"{name}, {uplink}, unused"] = public(bench, path, uplink, "/bin/true")
            argvs[f"{name}, {uplink}, early"] = public(
                bench, path, uplink, "/bin/true", profile=early_profile(bench))
            argvs[f"{name}, {uplink}, used"] = public(bench, path, uplink, *CONNECT)
    return argvs


def compare_to_none(bench, rows, key):
    for name, _ in bench.binaries:
        ours = {row_name: row for row_name, row in rows.items() if row_name.startswith(f"{name},")}
        compare(ours, key, f"{name}, none", "over_none")


def network(bench):
    """Public network: never used, and used for one TCP connection."""
    table = Table()
    if not bench.world:
        table.skip("network", bench.no_world)
        return table
    for who in bench.callers:
        # right after another one, a run with uplink host does more: it starts the holder of shared rules
        kind = "apart" if "host" in uplinks(bench, who) else "turns"
        rows = bench.turns(table, who, network_runs(bench, who), 0.25, kind)
        compare_to_none(bench, rows, "wall_ms")
    return table


def network_two_workers(bench):
    """Two at a time with uplink host."""
    table = Table()
    if not bench.world:
        table.skip("network", bench.no_world)
        return table
    known = [turns.Command(name, argv) for name, argv in network_runs(bench, bench.root).items()]
    rows = bench.pairs(table, bench.root, known, 0.5)
    compare_to_none(bench, rows, "rate")
    return table


# --- throughput -----------------------------------------------------------------------------------


def send_rate(who, argv):
    """Megabytes a second."""
    done = subprocess.run(
        argv, env=who.env, capture_output=True, text=True, check=True, timeout=turns.PATIENCE_S,
        user=who.uid, group=who.uid, extra_groups=[])
    return float(done.stdout)


def throughput(bench):
    """TCP from a jail into the world, over TCP from the host: all rules and links of ours between, and the proxy."""
    table = Table()
    if not bench.world:
        table.skip("throughput", bench.no_world)
        return table
    words = ("send", ADDRESS, str(SEND_PORT), str(SEND_MS))
    by_name = ("/tcp", "send", PROXIED, "80", str(SEND_MS))
    for who in bench.callers:
        argvs = {"bare": [bench.tool("tcp"), *words]}
        for name, path in bench.binaries:
            for uplink in uplinks(bench, who):
                argvs[f"{name}, {uplink}"] = public(bench, path, uplink, "/tcp", *words)
                argvs[f"{name}, {uplink}, names checked"] = public(
                    bench, path, uplink, *by_name, options=("--allow", "*.world.test", "--allow-by", "name"))
        add_rates(table, who, argvs, bench.count(0.1))
    return table


def add_rates(table, who, argvs, rounds):
    rates = {name: [] for name in argvs}
    for name, argv in list(argvs.items()) * rounds:
        if name in rates:
            try:
                rates[name].append(send_rate(who, argv))
            except (subprocess.SubprocessError, OSError, ValueError) as error:
                table.skip(name, (getattr(error, "stderr", None) or str(error)).strip(), who.name)
                del rates[name]
    rows = {name: table.add(name, who.name, mb_s=percentile(values, 50)) for name, values in rates.items()}
    compare(rows, "mb_s", "bare", "over_bare")
