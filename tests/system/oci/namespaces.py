# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: namespaces, new, left out and joined by path, as pods use them."""

import os

from bundles import *  # noqa: F403
from harness import *  # noqa: F403

SHARED = ("pid", "ipc", "uts", "network")
FILE = {"network": "net", "mount": "mnt"}


def inode(pid, kind):
    return os.stat(f"/proc/{pid}/ns/{FILE.get(kind, kind)}").st_ino


@test("two containers share pid ipc uts and network as a pod does")
def _():
    with Bundle("sleep 6000; exit") as b:
        first = b.started()
        pid = b.state(first)["pid"]
        for kind in SHARED + (("user",) if WHO == "user" else ()):
            b.namespace(kind, f"/proc/{pid}/ns/{FILE.get(kind, kind)}")
        if WHO == "user":
            del b.linux["uidMappings"], b.linux["gidMappings"]
        del b.config["hostname"]  # its uts namespace is the first one's
        b.process["args"] = ["/bin/sh", "-c", "hostname; cat /proc/1/comm; ls /proc/1/fd | wc -l; echo $$; sleep 6000"]
        second = b.started()
        other = b.state(second)["pid"]
        for kind in SHARED:
            equal(inode(other, kind), inode(pid, kind), kind)
        for kind in ("mount", "cgroup"):
            true(inode(other, kind) != inode(pid, kind), f"the {kind} namespace is shared, too")
        wait_until(lambda: b.output(second).count("\n") >= 3, "output")
        equal(b.output(second).split()[:2], ["box", "sh"], "what the second sees of the first")
        b.oci("kill", first, "KILL").exits(0)
        # the first one ends when every process of its pid namespace is reaped: pid_namespaces(7)
        for id in (second, first):
            wait_until(lambda: descendants() is not None and b.status(id) == "stopped", "the end of the pod's pid namespace")


@test("without a namespace in the list the container stays in the callers")
def _():
    with Bundle("sleep 6000") as b:
        b.namespace("ipc")
        b.config["mounts"] = [one for one in b.config["mounts"] if one["type"] != "mqueue"]
        id = b.started()
        pid = b.state(id)["pid"]
        equal(inode(pid, "ipc"), inode("self", "ipc"), "ipc")
        true(inode(pid, "uts") != inode("self", "uts"), "uts is the caller's")


@test("every namespace of the list is new")
def _():
    with Bundle("sleep 6000") as b:
        id = b.started()
        pid = b.state(id)["pid"]
        for kind in NEW + (("user",) if WHO == "user" else ()):
            true(inode(pid, kind) != inode("self", kind), f"{kind} is the caller's")
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
            outside = file.read()
        b.process["args"] = ["/bin/cat", "/proc/self/cgroup"]
        seen = b.run().exits(0).out
        if [line for line in outside.splitlines() if line.startswith("0::/")]:
            contains(seen, "0::/\n", "the cgroup as the container sees it")


@test("a wrong path of a namespace is an error that names it and leaves nothing")
def _():
    with Bundle() as b:
        for path, text in (("/proc/self/ns/nothing", "No such file"), (b.rootfs, "join the network namespace"),
                           ("/proc/self/ns/uts", "join the network namespace")):  # fmt: skip
            b.namespace("network", path)
            id, done = b.create()
            refused_oci(done, path, text)
            nothing_is_left(b, id)


@test("a container without a mount namespace or with one by path is refused")
def _():
    with Bundle() as b:
        b.namespace("mount")
        refused_oci(b.run(), "mount namespace")
        b.namespace("mount", "/proc/self/ns/mnt")
        refused_oci(b.run(), "mount namespace")


def own_by(id, place):
    os.chown(place, id, id)
    for base, names, files in os.walk(place):
        for name in [*names, *files]:
            os.chown(os.path.join(base, name), id, id, follow_symlinks=False)


@test("a bundle that only a mapped id may enter is entered each time", who="root")
def _():
    with Bundle("id -u; cat /data/file") as b:
        b.linux["namespaces"].append({"type": "user"})
        for kind in ("uidMappings", "gidMappings"):
            b.linux[kind] = [{"containerID": 0, "hostID": 200000, "size": 65536}]
        b.folder("data")
        b.file("data/file", "of the bundle\n")
        # relative to the bundle, as the root file system is
        b.config["mounts"].append(mount_of("bind", "/data", "data", "rbind", "ro"))
        own_by(200000, b.path)
        os.chmod(b.path, 0o700)
        for _ in range(ROUNDS):
            b.run().exits(0).says("0\nof the bundle\n")
        tried(ROUNDS)


@test("a map of many ids gives the container users of its own", who="root")
def _():
    with Bundle("id -u; cat /proc/self/uid_map | tr -s ' '; touch /tmp/file; chown 5:6 /tmp/file; stat -c %u:%g /tmp/file; sleep 6000") as b:
        b.linux["namespaces"].append({"type": "user"})
        for kind in ("uidMappings", "gidMappings"):
            b.linux[kind] = [{"containerID": 0, "hostID": 200000, "size": 65536}]
        own_by(200000, b.rootfs)
        id = b.started()
        wait_until(lambda: b.output(id).count("\n") == 3, f"output ({b.errors(id)})")
        equal(b.output(id), "0\n 0 200000 65536\n5:6\n", "output")
        equal(os.stat(f"{b.rootfs}/tmp/file").st_uid, 200005, "the owner on the host")
        pid = b.state(id)["pid"]
        equal(os.stat(f"/proc/{pid}").st_uid, 200000, "the owner of process 1")


@test("a user namespace needs maps and an ordinary user may map only itself")
def _():
    with Bundle() as b:
        if WHO != "user":
            b.linux["namespaces"].append({"type": "user"})
            refused_oci(b.run(), "Mappings")
            return
        b.linux["uidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 10}]
        refused_oci(b.run(), "uid_map", "its own")


@test("the loopback interface of a new network namespace is up and that of a joined one is left alone")
def _():
    with Bundle("cat /sys/class/net/lo/flags; nc 127.0.0.1 80") as b:
        done = b.run().exits(1).says("0x9\n")
        contains(done.err, "Connection refused", "a connection over lo")  # else "Network is unreachable"
        if WHO != "root":
            return
        b.process["args"] = ["/bin/cat", "/sys/class/net/lo/flags"]
        b.namespace("network", "/proc/self/ns/net")
        b.save()
        b.oci("run", "--bundle", b.path, b.new_id(), through=("unshare", "-n")).exits(0).says("0x8\n")


@test("a time namespace has its offsets", who="root")
def _():
    if not os.path.exists("/proc/self/ns/time"):
        raise Skip("this kernel has no time namespaces")
    with Bundle("cat /proc/uptime | cut -d. -f1") as b:
        b.linux["namespaces"].append({"type": "time"})
        b.linux["timeOffsets"] = {"boottime": {"secs": 1000000}, "monotonic": {"secs": 1000000}}
        seen = int(b.run().exits(0).out)
        with open("/proc/uptime", encoding="ascii") as file:
            between(seen - float(file.read().split()[0]), 999000, 1001000, "offset")


@test("the kernels names of host and domain are the containers")
def _():
    with Bundle("hostname; cat /proc/sys/kernel/domainname") as b:
        b.config["hostname"] = "one"
        b.config["domainname"] = "two.example"
        b.run().exits(0).says("one\ntwo.example\n")


# --- beside a hostile process of the same user namespace ---

# Runs inside, from the host's python, with CAP_SYS_PTRACE: looks for the init of another container and reads the host's
# files through it.  Arguments: the procfs, the file, "stop" in a pid namespace that has only the two containers.
HOSTILE = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)
place, secret, way = sys.argv[1:]

def attempt(pid):
    for _ in range(100):
        try:
            with open(f"{place}/{pid}/root{secret}") as file:
                print("got", file.read(), flush=True)
        except OSError:
            pass
        if libc.ptrace(0x4206, pid, 0, 0) == 0:  # PTRACE_SEIZE
            print("seized", pid, flush=True)
            os._exit(1)  # else the traced process would stay stopped
        if not os.path.exists(f"{place}/{pid}"):
            break
    print("tried", pid, flush=True)

def next_of_two(last):
    while True:
        for pid in range(last + 1, last + 4):
            try:
                os.kill(pid, signal.SIGSTOP)
                return pid
            except OSError:
                pass

def is_ours(pid):
    try:
        with open(f"{place}/{pid}/comm") as file:
            return file.read().startswith("cejail-oci")
    except OSError:
        return False

print("ready", flush=True)
last = 1
while way == "stop":
    last = next_of_two(last)
    attempt(last)
    os.kill(last, signal.SIGCONT)
known = set(os.listdir(place))
while True:
    new = [name for name in os.listdir(place) if name.isdigit() and name not in known]
    for name in new:
        if is_ours(name):
            attempt(int(name))
    known.update(new)
"""


def with_hostile(kinds, place, way):
    """Containers that join `kinds` of a hostile one, which sees their processes below `place`."""
    with Bundle() as b:
        b.file("secret", "of the host")
        for name in ("lib", "lib64"):
            os.symlink(f"usr/{name}", f"{b.rootfs}/{name}")
        b.linux["maskedPaths"] = b.linux["readonlyPaths"] = []
        if "pid" not in kinds:
            b.namespace("pid")
            b.config["mounts"] = [one for one in b.config["mounts"] if one["type"] != "proc"]
            b.config["mounts"].append(mount_of("bind", place, "/proc", "rbind"))
        b.config["mounts"].append(mount_of("bind", "/usr", "/usr", "rbind", "ro"))
        caps = {kind: ["CAP_KILL", "CAP_SYS_PTRACE", "CAP_DAC_OVERRIDE"] for kind in ("bounding", "permitted", "effective")}
        b.process.update(args=["/usr/bin/python3", "-c", HOSTILE, place, f"{b.path}/secret", way], capabilities=caps)
        hostile = b.started()
        wait_until(lambda: "ready" in b.output(hostile), f"the hostile process ({b.errors(hostile)})")
        pid = b.state(hostile)["pid"]
        b.config["mounts"] = base_config()["mounts"]
        b.linux["namespaces"] = base_config()["linux"]["namespaces"]
        for kind in kinds:
            b.namespace(kind, f"/proc/{pid}/ns/{kind}")
        del b.linux["uidMappings"], b.linux["gidMappings"]
        b.process.update(args=["/bin/true"])
        for number in range(ROUNDS):
            id = b.created()
            wait_until(lambda number=number: b.output(hostile).count("tried") > number, "the hostile process")
            b.delete(id, "--force").exits(0)
        wins = [line for line in b.output(hostile).splitlines() if line.startswith(("got", "seized"))]
        equal(wins, [], "what it got of the host")
        tried(ROUNDS)


ROUNDS = 10


@test("a process of a joined user namespace never reads the host through a new init", who="user")
def _():
    with_hostile(("user", "pid"), "/proc", "stop")


@test("a process of a joined user namespace and the hosts pid namespace does not either", who="user")
def _():
    with_hostile(("user",), "/hostproc", "look")


# A network namespace of the test's own, with two devices that belong together.
DEVICES = """
ip link add v0 address 02:00:00:00:00:07 type veth peer name v1 && ip link set v0 mtu 1400 up && ip link set v1 up &&
ip addr add 10.9.8.7/24 broadcast 10.9.8.255 dev v0 && ip addr add fd00:9::7/64 dev v0 nodad && exec "$@"
"""


@test("network devices are moved with their addresses names and mtu and are up", who="root")
def _():
    script = (
        "cd /sys/class/net; echo $(ls); cd box0 || cd box1; cat mtu address; echo $(($(cat flags) & 1)); cut -d ' ' -f 1,3,4,6 /proc/net/if_inet6 | grep ^fd00; "
        "grep -c -E '10.9.8.7|10.9.8.255' /proc/net/fib_trie"
    )
    through = ("unshare", "-n", "sh", "-c", DEVICES, "sh")
    with Bundle(script) as b:
        for name, real in (("box0", "box0"), ("box%d", "box0")):
            b.linux["netDevices"] = {"v0": {"name": name}}
            done = b.run(through=through).exits(0)
            equal(done.out.splitlines()[:4], [f"{real} lo", "1400", "02:00:00:00:00:07", "1"], "the device")
            contains(done.out, "fd000009000000000000000000000007 40 00 ", "its IPv6 address")
            true(int(done.out.splitlines()[-1]) >= 4, f"IPv4 address and broadcast in {done.out!r}")
        b.linux["netDevices"] = {"v0": {}, "v1": {"name": ""}}
        b.process["args"] = ["/bin/ls", "/sys/class/net"]
        b.run(through=through).exits(0).says("lo\nv0\nv1\n")
        for name, word in (("lo", "has a device 'lo'"), ("none", "No such device")):
            b.linux["netDevices"] = {name: {}}
            refused_oci(b.run(id=name, through=through), "linux.netDevices", word)
            nothing_is_left(b, name)


@test("a create that fails returns network devices to their namespace and name", who="root")
def _():
    for name in ("box0", "box%d"):
        for hostile in ("", "there"):
            with Bundle() as b:
                b.linux["netDevices"] = {"v0": {"name": name}, "none": {}} if hostile else {"v0": {"name": name}}
                if not hostile:
                    b.config["hooks"] = {"createRuntime": [{"path": "/bin/false"}]}
                b.save()
                command = f"{OCI} --root {b.root} run --bundle {b.path} {b.new_id()}; ip -o addr show dev v0; cat /proc/net/dev"
                done = subprocess.run(["unshare", "-n", "sh", "-c", DEVICES, "sh", "sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
                contains(done.stderr, "No such device" if hostile else "createRuntime", "the failure")
                contains(done.stdout, "10.9.8.7/24", "its address")
                lacks(done.stdout, "box", "its name")


@test("a network device that can not be moved is an error for root and for users")
def _():
    with Bundle() as b:
        b.linux["netDevices"] = {"none": {}}
        refused_oci(b.run(), "linux.netDevices")
        b.namespace("network")
        refused_oci(b.run(), "netDevices needs a network namespace")
