# SPDX-License-Identifier: Apache-2.0
"""`cejail bwrap --cejail-network`: the network of a run, which no command of the sandbox can change."""

import json
import os
import shutil
import signal
import subprocess

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from bwrap_lines import HOST, OURS, PROC, USR

# The tests' Internet has put a file without a name on /etc/resolv.conf, which nothing can cover.
LINE = [*HOST, *PROC, "--unshare-user", "--tmpfs", "/etc", "--ro-bind", "/etc/nsswitch.conf", "/etc/nsswitch.conf",
        "--ro-bind", "/etc/hosts", "/etc/hosts", "--ro-bind", "/etc/hosts", "/etc/resolv.conf"]  # fmt: skip
ROOT = [*LINE, "--uid", "0", "--gid", "0", "--cap-add", "ALL"]
TRY_ARGV = TRY + "print(json.dumps([attempt(*one) for one in json.loads(sys.argv[1])]))\n"
# What a run refuses, too: metadata services, private addresses, the host's own.
CLOSED = [["tcp", "169.254.169.254", 80], ["tcp", "10.99.0.5", 80], ["tcp", "10.1.2.3", 80], ["tcp", HOST4, 80], ["udp", "192.168.77.1", 53],
          ["tcp", "11.5.5.5", 80], ["tcp", "fd00:ec2::254", 80], ["tcp", "100.64.0.1", 80], ["udp", "255.255.255.255", 7]]  # fmt: skip


class Done:
    def __init__(self, done, result, status):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.result = parse_result(result) if result else None
        self.documents = [json.loads(line) for line in status.splitlines()]


def ran(net, *options, command, line=LINE, env=(), program=(OURS,)):
    with Folder() as folder:
        with open(folder / "result", "wb") as result, open(folder / "status", "wb") as status:
            told = ["--cejail-result-fd", str(result.fileno()), "--json-status-fd", str(status.fileno())]
            done = subprocess.run([*program, *line, *told, *options, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
                                  pass_fds=[result.fileno(), status.fileno()], env={**environment(), **dict(env)}, timeout=60 * SLOW, **net.inside)  # fmt: skip
        with open(folder / "result", encoding="utf-8") as result, open(folder / "status", encoding="utf-8") as status:
            return Done(done, result.read(), status.read())


def attempts(net, wanted, *options, before="", **more):
    """Each [protocol, address, port] tried in the sandbox."""
    done = ran(net, *options, command=[PYTHON, "-c", before + TRY_ARGV, json.dumps(wanted)], **more)
    equal(done.code, 0, f"{options}: {done.err}")
    return json.loads(done.out.splitlines()[-1]), done


def settings():
    """Each uplink that this host may take by itself: what is missing then."""
    if WHO != "user":
        yield "host", {}
    yield "pasta", {"forwarding": False}
    yield "slirp4netns", {"forwarding": False, "without": ("pasta", "pasta.avx2")}


for uplink, more in settings():

    @test(f"cejail bwrap --cejail-network public reaches the Internet through {uplink}, and no closed address")
    def _(uplink=uplink, more=more):
        need(uplink)
        with Internet(**more) as net:
            for options in ((), ("--share-net",), ("--unshare-all", "--die-with-parent"), ("--uid", "0", "--cap-add", "ALL")):
                net.forget()
                wanted = [["tcp", PUBLIC4, 80], ["udp", PUBLIC4, 7], ["tcp", "public.test", 80]]
                wanted += [] if uplink in NO_IPV6 else [["tcp", PUBLIC6, 80]]
                went, done = attempts(net, wanted + CLOSED, *options, "--cejail-network", "public")
                equal(went[: len(wanted)], ["answered"] * len(wanted), f"{options}: {went} {done.err}")
                true(all(word in REFUSED for word in went[len(wanted) :]), f"{options}: {went}")
                is_way_out(done.result, uplink)
                equal({key[1] for key in net.seen()} - {RESOLVERS["public"], PUBLIC4, PUBLIC6}, set(), f"{options}: addresses reached")
                equal(net.host("hits"), [], "services of the host that were reached")
                denied = {(row["address"], row["port"]) for row in done.result["network"]["denied"]}
                true({("169.254.169.254", 80), ("10.1.2.3", 80)} <= denied, f"denied: {denied}")
                last = done.documents[-1]
                equal((last["cejail-network"], last["cejail-denied"]), ("ready", sum(row["count"] for row in done.result["network"]["denied"])), "the last document")
                tried()


@test("cejail bwrap --cejail-network allow opens the destinations of its list alone, by /etc/hosts or the name server of a run")
def _():
    with Internet(forwarding=WHO != "user") as net:
        for targets, opened, closed in (
            ("public.test:80", [["tcp", "public.test", 80], ["tcp", PUBLIC4, 80]], [["tcp", PUBLIC4, 8080], ["tcp", OTHER4, 80]]),
            (f"{OTHER4},four.test", [["tcp", OTHER4, 80], ["tcp", "four.test", 8080]], [["tcp", "20.30.40.51", 80], ["udp", "20.53.53.53", 53]]),
            ("*.wild.test:80", [["tcp", "a.wild.test", 80]], [["tcp", OTHER4, 80], ["tcp", "20.30.40.52", 80]]),
        ):
            net.forget()
            went, done = attempts(net, opened + closed + CLOSED, "--cejail-network", f"allow:{targets}")
            equal(went[: len(opened)], ["answered"] * len(opened), f"{targets}: {went} {done.err}")
            true(all(word in REFUSED for word in went[len(opened) :]), f"{targets}: {went}")
            reached = {key[1] for key in net.seen()} - {RESOLVERS["public"], PUBLIC4, PUBLIC6, OTHER4, OTHER6}
            equal(reached, set(), f"{targets}: addresses reached")
            tried()


@test("of the sources of --cejail-network the tightest is in force, and two lists of which none has the other are refused by name")
def _():
    allow = "allow:four.test,other.test"
    with Internet(forwarding=WHO != "user") as net:
        for values, more, opened in (
            (("public",), "none", []),
            ((allow,), "none", []),
            (("none",), "public", []),
            (("public",), allow, [PUBLIC4, OTHER4]),
            (("allow:four.test", allow), "public", [PUBLIC4]),
            ((allow,), "allow:four.test", [PUBLIC4]),
        ):
            options = [word for value in values for word in ("--cejail-network", value)]
            went, done = attempts(net, [["tcp", PUBLIC4, 80], ["tcp", OTHER4, 80]], *options, env={"CEJAIL_BWRAP_OPTIONS": f"--cejail-network {more}"})
            equal([word == "answered" for word in went], [PUBLIC4 in opened, OTHER4 in opened], f"{values}, {more}: {went} {done.err}")
            equal(done.result["network"]["mode"], "public" if opened else "none", f"{values}, {more}")
            tried()
        done = ran(net, "--cejail-network", "allow:four.test", command=["true"], env={"CEJAIL_BWRAP_OPTIONS": "--cejail-network allow:six.test"})
        equal((done.code, done.result["status"]), (1, "setup_error"), f"two lists: {done.err}")
        contains(done.err, "two allow lists, and 'six.test' is in one of them alone (let one list have all of the other", "the message")
        for value, words in (("allow:", "''"), ("allow:four.test,", "''"), ("allow:10.1.2.3", "10.1.2.3"), ("closed", "is neither 'public' nor 'none'")):
            done = ran(net, "--cejail-network", value, command=["true"])
            equal(done.code, 1, f"{value}: {done.err}")
            contains(done.err, words, value)
            tried()


# With every capability that the sandbox gives: what would open the network, each with its outcome.
ATTACK = r"""
import ctypes, os, socket, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def note(name, function):
    try:
        found = function()
        print("attack", name, "done" if found in (None, 0) else found, flush=True)
    except (OSError, subprocess.SubprocessError) as problem:
        print("attack", name, "refused", flush=True)
def command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def enter(path, kind=0):
    fd = os.open(path, os.O_RDONLY)
    if libc.setns(fd, kind) != 0:
        raise OSError(ctypes.get_errno(), path)
def owner():
    fd = os.open("/proc/self/ns/net", os.O_RDONLY)
    user = libc.ioctl(fd, 0xB701)
    if user < 0 or libc.setns(user, 0) != 0:
        raise OSError(ctypes.get_errno(), "owner")
def netlink(kind, flags, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.bind((0, 0))
        s.send(struct.pack("=IHHII", 16 + len(body), kind, flags | 5, 1, 0) + body)
        code = struct.unpack_from("=i", s.recv(4096), 16)[0]
        if code:
            raise OSError(-code, "netlink")
def link(name):
    return socket.if_nametoindex(name)
def address(): # 10.9.9.9/8 on eth0
    netlink(20, 0x600, struct.pack("=BBBBI", 2, 8, 0, 0, link("eth0")) + struct.pack("=HH4s", 8, 2, bytes([10, 9, 9, 9])))
def route(): # 169.254.169.254/32 by eth0
    netlink(24, 0x600, struct.pack("=BBBBBBBBI", 2, 32, 0, 0, 254, 4, 253, 1, 0) + struct.pack("=HH4sHHI", 8, 1, bytes([169, 254, 169, 254]), 8, 4, link("eth0")))
def deletion():
    netlink(17, 0, struct.pack("=BBHiII", 0, 0, 0, link("eth0"), 0, 0))
def addition():
    info = struct.pack("=HH5sxxx", 9, 1, b"veth\0")
    netlink(16, 0x600, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0) + struct.pack("=HH4s", 8, 3, b"dm0\0") + struct.pack("=HH", 4 + len(info), 18) + info)
def flush(): # NFT_MSG_DELTABLE of all, in a batch
    def message(kind, body, seq): return struct.pack("=IHHII", 16 + len(body), kind, 5 if kind > 100 else 1, seq, 0) + body
    batch = message(16, b"\0\0\0\x0a", 1) + message(0xA02, b"\0\0\0\0", 2) + message(17, b"\0\0\0\x0a", 3)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as s:
        s.bind((0, 0))
        s.send(batch)
        code = struct.unpack_from("=i", s.recv(4096), 16)[0]
        if code:
            raise OSError(-code, "nft")
def down():
    import fcntl
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack("=16sH14x", b"eth0", 0))
def raw(family, kind, protocol):
    socket.socket(family, kind, protocol).close()
def transparent():
    with socket.socket() as s:
        s.setsockopt(0, 19, 1)
def marked():
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 1)
def nested():
    if os.fork() == 0: # below a user namespace of its own, too
        libc.unshare(0x10000000)
        for one in (address, route, flush, deletion): note("nested " + one.__name__, one)
        os._exit(0)
    os.wait()
link("eth0") # it is there
for one in (flush, address, route, addition, down, transparent, marked, owner, deletion): note(one.__name__, one)
note("raw", lambda: raw(socket.AF_INET, socket.SOCK_RAW, 1))
note("packet", lambda: raw(17, socket.SOCK_RAW, 0x0300))
for pid in ("1", str(os.getppid())):
    note("user of " + pid, lambda: enter(f"/proc/{pid}/ns/user"))
here = os.readlink("/proc/self/ns/net")
for pid in [one for one in os.listdir("/proc") if one.isdigit()]: # it may be the host's
    try:
        if os.readlink(f"/proc/{pid}/ns/net") == here:
            continue
        note("net of " + pid, lambda: enter(f"/proc/{pid}/ns/net"))
        note("memory of " + pid, lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)))
    except OSError: # it can't be seen, or has ended
        pass
nested()
"""


@test("a command with every capability in cejail bwrap can't change the rules, links and routes of its network, or go around them")
def _():
    with Internet(forwarding=WHO != "user") as net:
        for line, options in (
            (ROOT, ("--cejail-network", "public")),
            (ROOT, ("--cejail-network", "public", "--unshare-all", "--share-net")),
            ([*HOST, "--dev", "/dev", "--unshare-user", "--uid", "0", "--cap-add", "ALL"], ("--cejail-network", f"allow:{PUBLIC4}")),
            ([*LINE, "--cap-add", "CAP_NET_ADMIN", "--cap-add", "CAP_NET_RAW"], ("--cejail-network", "public")),
            ([*ROOT, "--disable-userns"], ("--cejail-network", "public")),
        ):
            net.forget()
            went, done = attempts(net, [["tcp", PUBLIC4, 80], *CLOSED], *options, before=ATTACK, line=line)
            said = [row for row in done.out.splitlines() if row.startswith("attack ")]
            true(len(said) > 10, f"{line}: {done.out} {done.err}")
            equal([row for row in said if not row.endswith(" refused")], [], f"{line}: attacks that succeeded")
            equal(went[0], "answered", f"{line}: {went}")
            true(all(word in REFUSED for word in went[1:]), f"{line}: {went}")
            equal({key[1] for key in net.seen()} - {PUBLIC4}, set(), f"{line}: addresses reached")
            equal(net.host("hits"), [], "services of the host that were reached")
            tried()
        # The same attacks succeed in a network that the sandbox itself owns.
        done = subprocess.run([OURS, *ROOT, "--unshare-net", PYTHON, "-c", ATTACK.replace("eth0", "lo")], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False, env=environment(), timeout=60 * SLOW)  # fmt: skip
        for name in ("flush", "address", "addition", "down", "transparent", "marked", "raw", "packet"):
            contains(done.stdout, f"attack {name} done", f"the attack without rules: {done.stdout} {done.stderr}")


@test("cejail bwrap covers the resolv.conf and the hosts of the root with those of its network, and makes none on the host")
def _():
    show = ["/bin/sh", "-c", "cat /etc/resolv.conf; echo; cat /etc/hosts"]
    with Internet(forwarding=WHO != "user") as net, Folder() as folder:
        folder.folder("etc")
        for line, options, words, missing in (
            (LINE, ("public",), ("nameserver 198.18.",), ()),
            (LINE, ("allow:four.test",), (f"{PUBLIC4}\tfour.test",), ("nameserver",)),
            ([*USR, *PROC, "--unshare-user"], ("allow:four.test",), (f"{PUBLIC4}\tfour.test",), ("nameserver",)),
            ([*USR, *PROC, "--unshare-user", "--symlink", "../run/resolv.conf", "/etc/resolv.conf"], ("public",), ("nameserver 198.18.",), ()),
            ([*USR, *PROC, "--unshare-user", "--bind", folder / "etc", "/etc"], ("public",), (), ("nameserver",)),
        ):
            done = ran(net, "--cejail-network", *options, command=show, line=line)
            for word in words:
                contains(done.out, word, f"{line}: {done.err}")
            for word in missing:
                true(word not in done.out, f"{line} has {word}: {done.out}")
            tried()
        equal(os.listdir(folder / "etc"), [], "files that were made on the host")


@test("cejail bwrap refuses --as-pid-1 beside a public network")
def _():
    with Internet(forwarding=WHO != "user") as net:
        done = ran(net, "--cejail-network", "public", "--unshare-pid", "--as-pid-1", command=["true"])
        equal(done.code, 1, f"--as-pid-1: {done.err}")
        contains(done.err, "--as-pid-1 and --cejail-network public or allow: exclude each other (leave --as-pid-1 out)", "the message")


# A file of the administrator, in a mount namespace of its own.
WITH_FILE = """
resolver=$(cat /etc/resolv.conf) switch=$(cat /etc/nsswitch.conf)
mount -t tmpfs none /etc && mkdir /etc/cejail && echo "$resolver" >/etc/resolv.conf && echo "$switch" >/etc/nsswitch.conf && : >/etc/hosts
echo "$1" >/etc/cejail/bwrap.json && shift && exec "$@"
"""


@test("the administrator's file opens a network of cejail bwrap no further than the command line, nor the other way round", who="root")
def _():
    opened = {"none": (), "four": (PUBLIC4,), "both": (PUBLIC4, OTHER4)}
    four, both = ["four.test"], ["four.test", "other.test"]
    with Internet() as net:
        for file, options, seen in (
            ({"network": {"mode": "public", "allow": four}}, ("--share-net",), "four"),
            ({"network": {"allow": both}}, ("--cejail-network", "allow:four.test"), "four"),
            ({"network": {"allow": both}}, ("--cejail-network", "public"), "both"),
            ({"network": {"allow": four}}, ("--cejail-network", "none"), "none"),
            ({"network": {"mode": "none", "allow": four}}, ("--cejail-network", "public"), "none"),
            ({"network": "public"}, ("--unshare-all", "--share-net"), "both"),
            ({"network": "public"}, ("--unshare-net",), "none"),
            ({"network": {"allow": four}}, ("--unshare-all",), "none"),
            ({"network": "public"}, ("--unshare-net", "--cejail-network", "public"), "both"),
        ):
            before = ["unshare", "-m", "/bin/sh", "-c", WITH_FILE, "sh", json.dumps(file)]
            went, done = attempts(net, [["tcp", PUBLIC4, 80], ["tcp", OTHER4, 80], *CLOSED], *options, program=[*before, OURS])
            equal(tuple(address for address, word in zip((PUBLIC4, OTHER4), went) if word == "answered"), opened[seen], f"{file} {options}: {went} {done.err}")
            true(all(word in REFUSED for word in went[2:]), f"{file} {options}: {went}")
            tried()
        done = ran(net, command=["true"], line=[*HOST, *PROC], program=[*before, OURS])
        equal(done.code, 1, f"without a user namespace: {done.err}")
        contains(done.err, "add --unshare-user", "the message")


@test("cejail bwrap --cejail-network public needs a user namespace, and says so", who="root")
def _():
    with Internet() as net:
        done = ran(net, "--cejail-network", "public", command=["true"], line=[*HOST, *PROC])
        equal((done.code, done.result["status"]), (1, "setup_error"), f"without: {done.err}")
        contains(done.err, "need a user namespace, so that the command can't change the rules (add --unshare-user", "the message")


@test("a closed address in the list is refused with its class, and no option is named that cejail bwrap does not have")
def _():
    for word, why in (("10.1.2.3", "the address is private"), ("127.0.0.1", "the address is loopback"), ("localhost", "which is loopback")):
        done = cejail("bwrap", *LINE, "--cejail-network", f"allow:{word}", "true")
        equal(done.code, 1, f"{word}: {done.err}")
        contains(done.err, f"'{word}': ", "the message")
        contains(done.err, why, "the message")
        contains(done.err, "this command opens no such address", "the message")
        true("--allow-private" not in done.err and "--connect" not in done.err, f"options: {done.err}")


@test("without a way out cejail bwrap --cejail-network public says so, and the command has its loopback alone")
def _():
    without = ("pasta", "pasta.avx2", "slirp4netns")
    with Internet(forwarding=False, without=without) as net:
        went, done = attempts(net, [["tcp", PUBLIC4, 80], *CLOSED], "--cejail-network", "public")
        true(all(word in REFUSED for word in went), f"attempts: {went}")
        contains(done.err, "bwrap: warning: network: nothing leads out of the jail: ", "standard error")
        equal((done.result["network"]["state"], done.documents[-1]["cejail-network"]), ("failed", "failed"), "the state")
        equal(net.seen(), {}, "packets")


@test("a killed cejail bwrap leaves no process, link or rule of its network")
def _():
    with Internet(forwarding=WHO != "user") as net:
        for victim in (signal.SIGKILL, signal.SIGTERM):
            before = set(descendants())
            process = subprocess.Popen([OURS, *LINE, "--cejail-network", "public", "/bin/sh", "-c", "echo up; exec sleep 600"], stdout=subprocess.PIPE,
                                       stdin=subprocess.DEVNULL, env=environment(), **net.inside)  # fmt: skip
            equal(process.stdout.readline(), b"up\n", "the command")
            process.send_signal(victim)
            process.wait(30 * SLOW)
            process.stdout.close()
            wait_until(lambda: not set(descendants()) - before, "the end of all processes")
            cejail("gc")
            tried()
