# SPDX-License-Identifier: Apache-2.0
"""The subject of `cejail-oci`: a container's life beside other OCI runtimes."""

import json
import os
import shutil

from . import commands, turns
from .bench import Table, compare

PEERS = ("crun", "runc")
NO_CGROUP = {"cejail-oci": ("--cgroup-manager=disabled",), "crun": ("--cgroup-manager=disabled",)}


def make_bundle(work, who):
    """As an ordinary user in a user namespace with one id; as root without one."""
    bundle = f"{work}/container-{who.uid}"
    if os.path.exists(bundle):
        return bundle
    shutil.copytree(commands.make_bundle(work, who, ["/bin/true"]), bundle, symlinks=True)
    config = commands.oci_config(who.uid, ["/bin/true"])
    config["mounts"] += [
        commands.mount("/dev/pts", "devpts", "devpts", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
        commands.mount("/dev/shm", "tmpfs", "shm", "noexec", "nodev", "mode=1777"),
        commands.mount("/dev/mqueue", "mqueue", "mqueue", "noexec", "nodev"),
    ]
    linux = config["linux"]
    linux["maskedPaths"] = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi"]
    linux["readonlyPaths"] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/bus", "/proc/fs", "/proc/irq"]
    if who.uid == 0:
        linux["namespaces"] = [one for one in linux["namespaces"] if one["type"] != "user"]
        del linux["uidMappings"], linux["gidMappings"]
    for name in ("usr", "proc", "dev", "tmp"):
        os.chmod(f"{bundle}/rootfs/{name}", 0o755)
    with open(f"{bundle}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    return bundle


def runtimes(bench):
    """(name, path) of ours, which lie beside each cejail, and of the peers."""
    for name, path in bench.binaries:
        yield name.replace("cejail", "cejail-oci", 1), os.path.join(os.path.dirname(path), "cejail-oci")
    for name in PEERS:
        yield name, shutil.which(name, path=turns.PATH)


def lifecycle(bench):
    """create, start, wait and delete; with a cgroup where the runtime can have one here, and without."""
    table = Table()
    for who in bench.callers:
        bundle, racers = make_bundle(bench.work, who), []
        for name, path in runtimes(bench):
            if not path or not os.access(path, os.X_OK):
                table.skip(name, "not installed", who.name)
                continue
            for label, options in ((name, ()), (f"{name}, no cgroup", NO_CGROUP.get(name))):
                if options is not None:
                    racers.append(turns.Command(label, [
                        bench.tool("lifecycle"), bundle, f"{who.runtime}/container.pid", "bench-{n}",
                        path, "--root", f"{who.runtime}/{name}", *options]))  # fmt: skip
        rows = bench.race(table, who, racers, 0.5)
        compare(rows, "wall_ms", "crun" if "crun" in rows else "crun, no cgroup", "over_crun")
    return table
