# SPDX-License-Identifier: Apache-2.0
"""A simulated Internet in network namespaces: no packet of it leaves the machine.

	world   one link to a namespace that has every address of both families: an HTTP server, echo
	        servers, a name server, and a sniffer that counts each packet on the link
	host    where cejail's supervisor runs: addresses of every kind, default routes into the world,
	        services of its own that no jail may reach, its own /etc/resolv.conf

As root, and as root of a container, the supervisor has every capability over `host`.  An ordinary
user's `host` belongs to a user namespace that the test makes.  The supervisor runs as the same user in
a user namespace below that, without any capability over `host`, as on a shared machine.
"""

import contextlib
import ctypes
import ipaddress
import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import uuid

import harness
import services

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, PR_SET_PDEATHSIG = 0x1000, 0x4000, 0x40000, 1

# The link between the two, and what else the host has.
HOST4, ROUTER4 = "192.168.77.2", "192.168.77.1"
HOST6, ROUTER6 = "2a00:77::2", "2a00:77::1"
HOST_ALSO = ("10.99.0.5", "11.5.5.5", "fd99::5", "2a09::5")
LATER4, LATER6 = "12.6.6.6", "2a0a::6"  # added while a jail runs
HOST_ADDRESSES = (HOST4, HOST6, *HOST_ALSO)

PUBLIC4, PUBLIC6 = "20.30.40.50", "2600:1f00::50"
OTHER4, OTHER6 = "20.30.40.60", "2600:1f00::60"
TRIAL4, TRIAL6 = "20.30.40.70", "2600:1f00::70"  # of the tests themselves, before they begin
NAMES = {
    "public.test": [PUBLIC4, PUBLIC6],
    "four.test": [PUBLIC4],
    "six.test": [PUBLIC6],
    "other.test": [OTHER4, OTHER6],
    "private.test": ["10.1.2.3"],
    "metadata.test": ["169.254.169.254", "fd00:ec2::254"],
    "mixed.test": [PUBLIC4, "10.1.2.3"],
    "loopback.test": ["127.0.0.1"],
    "nowhere.test": [],
    "rebind.test": [[PUBLIC4], ["169.254.169.254"]],
    "big.test": [f"20.31.{n}.1" for n in range(100)],
    # below a name that a test allows with a wildcard
    "wild.test": [OTHER4],
    "a.wild.test": [PUBLIC4, PUBLIC6],
    "deep.a.wild.test": ["20.30.40.51"],
    "many.wild.test": [f"20.31.{n}.1" for n in range(20)],
    "big.wild.test": [f"20.31.{n}.1" for n in range(100)],
    "private.wild.test": ["10.1.2.3"],
    "mixed.wild.test": ["10.1.2.3", "20.30.40.52", "169.254.169.254", "127.0.0.1", HOST4, "fd00:ec2::254"],
    "rebind.wild.test": [["20.30.40.53"], ["169.254.169.254"]],
    "host.wild.test": [HOST4, HOST6],
    "one.alias.test": ["=two.alias.test"],
    "two.alias.test": ["=a.wild.test"],
    "open.alias.test": ["=deep.a.wild.test"],
    **{f"n{i}.full.test": [f"20.32.{i}.{n}" for n in range(24)] for i in range(4096 // 24 + 2)},
}

# Where /etc/resolv.conf points to: a server in the world at a public or a closed address, or one of
# the host's own on loopback, as systemd-resolved has it.
RESOLVERS = {"public": "20.53.53.53", "closed": "10.20.0.53", "loopback": "127.0.0.53"}

# A directory with another pasta in it, which cejail finds before the host's.  The tests of the network passed with
# 0.0~git20230309.7c7625d (Debian 12), 0.0~git20250503.587980c (13), 0.0~git20261002.cba3570 (unstable).
HELPERS = os.environ.get("CEJAIL_TEST_HELPERS")

# slirp4netns calls its IPv6 experimental: cejail asks it for none. An ordinary user has no "host".
NO_IPV6 = ("slirp4netns",)
UPLINKS = ("pasta", "slirp4netns") if harness.WHO == "user" else ("host", "pasta", "slirp4netns")

# In the jail: tries every [protocol, address, port] of its arguments, prints how each went.
TRY = """
import errno, json, socket, sys
def attempt(protocol, address, port):
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    try:
        found = socket.getaddrinfo(address, port, type=kind)
    except socket.gaierror as problem:
        return f"no address: {problem}"
    for info in found:
        word = attempt_one(info[0], kind, info[4], address)
        if word == "answered":
            break
    return word
def attempt_one(family, kind, address, host):
    with socket.socket(family, kind) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.settimeout(TIMEOUT)
        try:
            s.connect(address)
            s.send(b"GET / HTTP/1.0\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
            s.recv(1000)
            return "answered"
        except TimeoutError:
            return "timeout"
        except OSError as problem:
            return errno.errorcode.get(problem.errno, str(problem))
""".replace("TIMEOUT", str(3 * harness.SLOW))  # a SYN that was lost is sent again after 1 s and 3 s
TRY_ALL = TRY + 'print(json.dumps([attempt(*one) for one in json.load(open("/box/args.json"))]))\n'

REFUSED = ("ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EACCES", "EPERM", "EINVAL", "EADDRNOTAVAIL")

libc = ctypes.CDLL(None, use_errno=True)


def check(code, what):
    if code != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind=None, flags=0, data=None):
    words = [None if one is None else one.encode() for one in (source, target, kind, data)]
    check(libc.mount(words[0], words[1], words[2], flags, words[3]), f"mount '{target}'")


def ranges():
    """The table of closed ranges as the program was built with: (network, class)."""
    tools = [f"{harness.PROBES}/print-ranges", f"{harness.PROBES}/../../../bin/print-ranges"]
    tool = next((path for path in tools if os.path.exists(path)), None)
    if not tool:
        raise harness.Skip(f"no '{tools[0]}' (make probes)")
    done = subprocess.run([tool], capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines() if line]
    return [(ipaddress.ip_network(row[0]), row[1]) for row in rows]


def class_of(address, table):
    """The longest prefix decides; None: open."""
    address = ipaddress.ip_address(address)
    fitting = [row for row in table if row[0].version == address.version and address in row[0]]
    return max(fitting, key=lambda row: row[0].prefixlen)[1] if fitting else None


class Talk:
    """A jailed Python program that alternately prints a line and reads one."""

    def __init__(self, process, path):
        self.process, self.path = process, path

    def receive(self, seconds=20):
        line = b""
        end = time.monotonic() + seconds * harness.SLOW
        while not line.endswith(b"\n"):
            rest = end - time.monotonic()
            if rest <= 0 or not select.select([self.process.stdout], [], [], rest)[0]:
                raise harness.Failure(f"the jailed program printed {line!r} and then nothing")
            byte = os.read(self.process.stdout.fileno(), 1)
            if not byte:
                raise harness.Failure(f"the run ended early: {self.process.stderr.read()[-600:]!r}")
            line += byte
        return line.decode().strip()

    def send(self, line=""):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, line=""):
        self.send(line)
        return self.receive()

    def close(self):
        """Closes its input and waits for its end."""
        if self.process.stdin:
            self.process.stdin.close()
            self.process.stdin = None
        if not self.process.stdout.closed:
            return harness.finish(self.process, args=("the dialogue",))
        return None

    def result(self):
        """How it ended."""
        done = self.close()
        with open(self.path, encoding="utf-8") as file:
            return harness.parse_result(file.read(), done)


class Internet:
    """with Internet() as net: harness.run(..., **net.inside)

    resolver   a key of RESOLVERS
    forwarding IP forwarding of the host is on
    without    programs the host lacks
    helpers    {name: script} that cejail finds before the host's own
    search     the domain that the host's own resolver appends to names
    mtu        of the link between host and world
    ways       families the host has a way into the world for
    """

    def __init__(self, resolver="public", forwarding=True, without=(), mtu=1500, ways=(4, 6), helpers=None, search=None):
        self.resolver, self.forwarding, self.without, self.mtu, self.ways = resolver, forwarding, without, mtu, ways
        self.helpers, self.search = helpers or {}, search
        self.is_nested = harness.WHO == "user"
        self.stations, self.doors = {}, []
        self.inside = {"preexec_fn": self.enter}

    def __enter__(self):
        for program in ("ip",):
            if not shutil.which(program, path=harness.environment()["PATH"]):
                raise harness.Skip(f"no '{program}' (package iproute2)")
        try:
            self.build()
        except BaseException:
            self.destroy()
            raise
        return self

    def build(self):
        self.begin("host", services.Host(NAMES), self.prepare_host)
        pid = self.stations["host"][0]
        kinds = (("user", CLONE_NEWUSER),) if self.is_nested else ()
        for name, kind in (*kinds, ("net", CLONE_NEWNET), ("mnt", CLONE_NEWNS)):
            self.doors.append((os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind))
        self.begin("world", services.World(NAMES), self.prepare_world)
        self.connect()
        self.host("open")
        self.world("open")
        self.host("dns", address="127.0.0.53")
        for address in [{4: TRIAL4, 6: TRIAL6}[way] for way in self.ways]:
            harness.wait_until(lambda: self.reaches("tcp", address), f"a way from the host to {address}")
        self.before = None
        harness.wait_until(self.is_settled, "the link-local address of eth0, which comes by itself")
        self.forget()

    def is_settled(self):
        """Sets `before`.  A list of routes can lack some that it had, while the kernel still adds others."""
        earlier, self.before = self.before, self.host("state")
        eth0 = [line for line in self.before if "dev eth0" in line]
        return self.before == earlier and any("local fe80::" in line for line in eth0) and "linkdown" not in str(eth0)

    def reaches(self, protocol, address):
        """Can the host itself, outside any jail, reach the address?"""
        return self.host("attempt", protocol=protocol, address=address, port=80, timeout=max(1, harness.SLOW / 3)) == "answered"

    def connect(self):
        for station in (self.host, self.world):
            station("sysctl", settings={"net/ipv6/conf/default/accept_dad": 0, "net/ipv6/conf/all/accept_dad": 0})
        self.host("ip", lines=[
            "link set lo up",
            f"link add eth0 mtu {self.mtu} type veth peer name wire mtu {self.mtu} netns {self.stations['world'][0]}",
            f"addr add {HOST4}/24 dev eth0", f"addr add {HOST6}/64 dev eth0 nodad", "link set eth0 up",
            "link add lan0 type veth peer name lan1",
            "addr add 10.99.0.5/16 dev lan0", "addr add fd99::5/64 dev lan0 nodad",
            "addr add 11.5.5.5/32 dev lan0", "addr add 2a09::5/128 dev lan0 nodad", "link set lan0 up",
        ])  # fmt: skip
        self.world("sysctl", settings={"net/ipv4/conf/all/rp_filter": 0, "net/ipv4/conf/wire/rp_filter": 0})
        self.world("ip", lines=[
            "link set lo up", f"addr add {ROUTER4}/24 dev wire", f"addr add {ROUTER6}/64 dev wire nodad",
            "link set wire up",
            "route add local 0.0.0.0/0 dev lo table main", "route add local ::/0 dev lo table main",
            # every jail's packets would come back, if the host let them through
            f"route add 198.18.0.0/15 via {HOST4}",
        ])  # fmt: skip
        # asking for a link makes the kernel notice at once, instead of a second later, that it is up
        self.world("ip", lines=["link show wire"])
        routes = {4: f"route add 0.0.0.0/0 via {ROUTER4}", 6: f"route add ::/0 via {ROUTER6}"}
        self.host("ip", lines=["link show eth0", *(routes[way] for way in self.ways)])
        on = int(self.forwarding)
        self.host("sysctl", settings={"net/ipv4/ip_forward": on, "net/ipv6/conf/all/forwarding": on})

    # --- the processes ---

    def begin(self, name, station, prepare):
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            signal.alarm(0)
            services.become(station, theirs, prepare)
        theirs.close()
        self.stations[name] = (pid, ours, ours.makefile("r", encoding="utf-8"))
        self.answer(name)

    def answer(self, name):
        line = self.stations[name][2].readline()
        answer = json.loads(line) if line else {"problem": "it ended"}
        if "problem" in answer:
            raise harness.Failure(f"the tests' Internet, {name}: {answer['problem']}")
        return answer["value"]

    def call(self, name, command, arguments):
        self.stations[name][1].sendall(json.dumps([command, arguments]).encode() + b"\n")
        return self.answer(name)

    def host(self, command, **arguments):
        return self.call("host", command, arguments)

    def world(self, command, **arguments):
        return self.call("world", command, arguments)

    def prepare_host(self):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        uid, gid = os.geteuid(), os.getegid()
        check(libc.unshare(CLONE_NEWNET | CLONE_NEWNS | (CLONE_NEWUSER if self.is_nested else 0)), "unshare")
        if self.is_nested:
            map_ids((0, uid), (0, gid))
        mount(None, "/", flags=MS_REC | MS_PRIVATE)
        search = f"search {self.search}\n" if self.search else ""
        self.replace("/etc/resolv.conf", f"{search}nameserver {RESOLVERS[self.resolver]}\noptions timeout:2\n")
        if HELPERS:
            mount(HELPERS, "/usr/local/bin", flags=MS_BIND)
        if self.helpers:
            self.put_helpers("/usr/local/bin")
        for program in self.without:
            for place in ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"):
                if os.path.exists(f"{place}/{program}"):
                    mount("/dev/null", f"{place}/{program}", flags=MS_BIND)
        if os.geteuid() == 0 and harness.WHO == "root":
            open_tun()

    def put_helpers(self, place):
        """The same directory, with the scripts in it."""
        before = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        mount("none", place, "tmpfs", data="mode=755")
        for name in os.listdir(before):
            services.write(f"{place}/{name}", "")
            mount(f"/proc/self/fd/{before}/{name}", f"{place}/{name}", flags=MS_BIND)
        os.close(before)
        for name, script in self.helpers.items():
            services.write(f"{place}/{name}", script)
            os.chmod(f"{place}/{name}", 0o755)

    @staticmethod
    def replace(path, text):
        """Another content for a file of the host, seen in this mount namespace alone."""
        path = os.path.realpath(path)
        if not os.path.exists(path):
            raise OSError(f"'{path}' isn't there to be mounted over")
        with tempfile.NamedTemporaryFile("w", prefix="internet-", dir="/dev/shm", delete=False) as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        mount(file.name, path, flags=MS_BIND)
        os.unlink(file.name)

    def prepare_world(self):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if self.is_nested:
            check(libc.setns(self.doors[0][0], CLONE_NEWUSER), "setns")
        check(libc.unshare(CLONE_NEWNET), "unshare")

    def enter(self):
        """Runs in the child that will become cejail."""
        here = os.getcwd()
        uid, gid = os.geteuid(), os.getegid()
        for fd, kind in self.doors:
            check(libc.setns(fd, kind), "setns")
        os.chdir(here)
        if self.is_nested:
            check(libc.unshare(CLONE_NEWUSER), "unshare")
            map_ids((uid, 0), (gid, 0))

    # --- what was seen ---

    def seen(self, protocol=None):
        """Every packet that came into the world until now: {(protocol, address, port): count}."""
        for _ in range(int(20 * harness.SLOW)):
            mark = uuid.uuid4().hex
            self.host("mark", address=ROUTER4, mark=mark)
            if self.world("has_mark", mark=mark):
                break
        else:
            raise harness.Failure("the tests' Internet: the sniffer is deaf")
        seen = self.world("packets")
        harness.equal(seen["lost"], 0, "packets the sniffer lost")
        packets = [row for row in seen["packets"] if row[1] not in (TRIAL4, TRIAL6)]
        return {tuple(row[:3]): row[3] for row in packets if protocol in (None, row[0])}

    def openings(self, address, port):
        """How often a TCP connection to there was asked for; seen() first, so that none is on its way."""
        return self.world("openings", address=address, port=port)

    def open_connections(self):
        """TCP that may still send a packet: it neither listens (0A) nor is in TIME_WAIT (06)."""
        paths = ("/proc/net/tcp", "/proc/net/tcp6")
        tables = [station("read", path=path) for station in (self.host, self.world) for path in paths]
        rows = [line.split() for table in tables for line in table.splitlines()[1:]]
        return [row for row in rows if row[3] not in ("0A", "06")]

    def forget(self, ended=True):
        """What came until now counts no more; nor does the end of a connection that has begun, unless the test leaves
        one open: ended=False."""
        if ended:
            harness.wait_until(lambda: not self.open_connections(), "the end of all connections")
        self.seen()
        self.world("forget")
        self.host("forget")

    def addresses_of_jails(self):
        """Those the host has routes to, out of 198.18.0.0/15 and fdce:6a12::/32."""
        words = [line.split() for line in self.host("state")]
        found = {row[1] for row in words if len(row) > 1 and row[1].startswith(("198.19.", "fdce:6a12:"))}
        return sorted(word.split("/")[0] for word in found)

    # --- runs in it ---

    def run(self, code, *options, **more):
        """The result of a Python program in the public network."""
        return harness.result("-p", "python", "--network", "public", "-t", str(int(30 * harness.SLOW)), *options, "-c", code,
                              **self.inside, **more)  # fmt: skip

    def attempts(self, wanted, *options, **more):
        """Each [protocol, address, port] tried from a jail: how it went, and the result."""
        value = self.run(TRY_ALL, "--args-json", json.dumps(wanted), *options, **more)
        harness.equal(value["status"], "exited", f"status ({value['error']}, {value['stderr']['text'][-600:]})")
        return json.loads(value["stdout"]["text"]), value

    @contextlib.contextmanager
    def talk(self, code, *options, **more):
        """`code` knows attempt(); it says "ready" first.  It lives as long as the test may."""
        with harness.Folder() as f:
            limit = ("-t", str(int(60 * harness.SLOW)))
            words = ("run", "-i", "-p", "python", "--network", "public", *limit, f"--json={f / 'r'}", *options)
            process = harness.start(*words, "-c", TRY + code, stdin=subprocess.PIPE, bufsize=0, **self.inside, **more)
            jail = Talk(process, f / "r")
            try:
                harness.equal(jail.receive(), "ready", "the program's first word")
                yield jail
            finally:
                process.terminate()  # a killed one would leave its record
                jail.close()

    # --- the end ---

    def __exit__(self, kind, *unused):
        try:
            if kind is None:
                harness.wait_until(lambda: not self.left(), "the host to be as it was", 8)
        except harness.Failure as failure:
            raise harness.Failure(f"{failure}; left in the host: {self.left()[:10]}") from None
        finally:
            self.destroy()

    def left(self):
        """Without what a test itself changes at lan0, which no jail has to do with."""
        return [line for line in self.host("state") if line not in self.before and "lan0" not in line]

    def destroy(self):
        for pid, channel, stream in self.stations.values():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            stream.close()
            channel.close()
            os.waitpid(pid, 0)
        for fd, _ in self.doors:
            os.close(fd)
        self.stations, self.doors = {}, []


def map_ids(user, group):
    """One id each: (inside, outside)."""
    services.write("/proc/self/setgroups", "deny")
    services.write("/proc/self/uid_map", f"{user[0]} {user[1]} 1")
    services.write("/proc/self/gid_map", f"{group[0]} {group[1]} 1")


def open_tun():
    """A tun device that every user may open, as udev makes it; the machine's own stays as it is."""
    if not os.path.exists("/dev/net/tun") or os.stat("/dev/net/tun").st_mode & 0o666 == 0o666:
        return
    mount("none", "/dev/net", "tmpfs", data="mode=755")
    os.mknod("/dev/net/tun", 0o666 | stat.S_IFCHR, os.makedev(10, 200))
    os.chmod("/dev/net/tun", 0o666)


def need(uplink):
    """Skips where this host can't have the uplink."""
    if uplink == "host":
        return
    if not shutil.which(uplink, path=harness.environment()["PATH"]):
        raise harness.Skip(f"no '{uplink}' (package {'passt' if uplink == 'pasta' else uplink})")
    if not os.path.exists("/dev/net/tun"):
        raise harness.Skip("no '/dev/net/tun' (modprobe tun)")
    if harness.WHO != "root" and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise harness.Skip("'/dev/net/tun' is not open to this user (chmod 666 /dev/net/tun)")


def each_uplink(sentence, limit=60, but=()):
    """A test of its own for every uplink but those; "{}" in the sentence is its name."""

    def register(function):
        for uplink in [one for one in UPLINKS if one not in but]:

            def perform(uplink=uplink):
                need(uplink)
                function("--uplink", uplink)

            harness.test(sentence.format(uplink), limit=limit)(perform)
        return function

    return register


def is_way_out(value, uplink):
    """The result's own word on it."""
    harness.equal((value["network"]["mode"], value["network"]["uplink"]), ("public", uplink), "network")
    harness.equal(value["layers"]["network_filter"], "on", "layers.network_filter")


def names_of(value):
    """The names that were denied: how often."""
    return {row["name"]: row["count"] for row in value["network"]["denied"] if row["class"] == "name"}


def asked(net):
    """The names that left the host."""
    return {query[0] for query in net.world("queries")}
