# SPDX-License-Identifier: Apache-2.0
"""What a program in `cejail run --reduced` tries against its caller, here and behind a container's filter."""

import json
import os
import socket
import subprocess
import uuid

from harness import PYTHON, Folder, environment, equal, run, test, tried, true
from reduced_jails import ALONE, as_in_docker

# Prints what succeeded.  argv: a file of the caller, its directory, a pid of the caller, a path socket (with ".d" one for datagrams), an abstract one.
ATTEMPTS = r"""
import ctypes, fcntl, json, os, resource, signal, socket, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
file, folder, pid, path_socket, abstract = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
init = os.getppid()
done = []

def call(number, *args):
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), "refused")

def attempt(name, function):
    try:
        if function() is not False:
            done.append(name)
    except (OSError, subprocess.SubprocessError, ValueError):
        pass

def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.connect(address)

def run_setuid():
    out = subprocess.run(["/usr/bin/id", "-u"], capture_output=True, check=True).stdout
    return out.strip() == b"0"

def own_signal(victim):
    # F_SETSIG 0 and FASYNC: the kernel sends nothing, but says nothing either; the test looks at the victim
    a, b = socket.socketpair()
    fcntl.fcntl(a, fcntl.F_SETOWN, victim)
    fcntl.fcntl(a, 10, signal.SIGTERM)
    fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    b.send(b"x")
    return False

def far_path():
    # a path whose address has 32 low bits of zero
    address = 0x7E0000000000
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    if libc.mmap(address, 4096, 3, 0x32, -1, 0) != address:
        raise OSError("no memory there")
    ctypes.memmove(address, file.encode() + b"\0", len(file) + 1)
    call(280, -100, ctypes.c_void_p(address), None, 0)

attempt("read a file of the caller", lambda: open(file).read())
attempt("write a file of the caller", lambda: open(file, "a"))
attempt("list a directory of the caller", lambda: os.listdir(folder))
attempt("create beside it", lambda: open(folder + "/new", "w"))
attempt("remove it", lambda: os.unlink(file))
attempt("truncate it", lambda: os.truncate(file, 0))
attempt("rename it", lambda: os.rename(file, file + "x"))
attempt("link it in", lambda: os.link(file, "linked"))
attempt("follow a link to it", lambda: (os.symlink(file, "link"), open("link").read()))
attempt("move a file out", lambda: (open("own", "w"), os.rename("own", folder + "/own")))
attempt("change its mode", lambda: os.chmod(file, 0o777))
attempt("change its mode by fchmodat2", lambda: call(452, -100, file.encode(), 0o777, 0))
attempt("change its owner", lambda: os.chown(file, -1, os.getgid()))
attempt("change its times", lambda: os.utime(file))
attempt("change its times by a path at 4 GiB", lambda: far_path())
attempt("change its attributes", lambda: os.setxattr(file, "user.x", b"1"))
attempt("watch a directory", lambda: call(294, 0))
for place in ("/root", "/home", "/run", "/var", "/tmp", "/sys", "/proc", "/boot", "/dev/shm", "/opt", "/srv", "/etc", ".."):
    attempt("list " + place, lambda: os.listdir(place))
for place in ("/etc/shadow", "/etc/passwd", "/etc/hostname", "/proc/1/cmdline", "/proc/self/status", "/proc/net/tcp", "/proc/mounts"):
    attempt("read " + place, lambda: open(place).read())
for place in ("/tmp/x", "/var/tmp/x", "/dev/shm/x", "/usr/x", "../x", "/proc/self/comm", "/proc/sysrq-trigger"):
    attempt("write " + place, lambda: open(place, "w"))
for victim in (pid, init, 1):
    for name in ("environ", "mem", "maps", "cmdline", "stat", "status"):
        attempt(f"read {name} of a process", lambda: open(f"/proc/{victim}/{name}", "rb").read(1))
    for name in ("root", "cwd", "exe"):
        attempt(f"read the link {name} of a process", lambda: os.readlink(f"/proc/{victim}/{name}"))
    attempt("list the descriptors of a process", lambda: os.listdir(f"/proc/{victim}/fd"))
    for number in (0, signal.SIGSTOP, signal.SIGCONT):
        attempt("signal a process", lambda: os.kill(victim, number))
    attempt("signal it by pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(victim), 0))
    attempt("take its descriptor", lambda: call(438, os.pidfd_open(victim), 0, 0))
    attempt("trace it", lambda: call(101, 16, victim, 0, 0))
    attempt("seize it", lambda: call(101, 0x4206, victim, 0, 0))
    attempt("read its memory", lambda: call(310, victim, 0, 0, 0, 0, 0))
    attempt("change its limits", lambda: resource.prlimit(victim, resource.RLIMIT_CORE, (0, 0)))
    attempt("change its processors", lambda: os.sched_setaffinity(victim, {0}))
    attempt("change its priority", lambda: os.setpriority(os.PRIO_PROCESS, victim, 19))
    attempt("change its class", lambda: os.sched_setscheduler(victim, os.SCHED_IDLE, os.sched_param(0)))
    attempt("make it get SIGIO", lambda: own_signal(victim))
attempt("change the user's priority", lambda: os.setpriority(os.PRIO_USER, 0, 19))

attempt("connect to a path socket", lambda: connect(socket.AF_UNIX, path_socket))
attempt("connect to an abstract socket", lambda: connect(socket.AF_UNIX, "\0" + abstract))
attempt("send to a path socket", lambda: connect(socket.AF_UNIX, path_socket + ".d", socket.SOCK_DGRAM))
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK, 38):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        attempt(f"a socket of family {family}", lambda: socket.socket(family, kind))
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK):
    for target in (path_socket, path_socket + ".d", "\0" + abstract, "\0" + abstract + ".d"):
        attempt("connect a socketpair elsewhere", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].connect(target))
        attempt("send from a socketpair elsewhere", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"x", target))
attempt("io_uring", lambda: call(425, 4, ctypes.create_string_buffer(256)))
attempt("a user namespace", lambda: call(272, 0x10000000))
attempt("a user namespace by clone", lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0))
attempt("mount", lambda: call(165, b"x", b".", b"tmpfs", 0, 0))
attempt("open_tree", lambda: call(428, -100, b"/", 1))
attempt("chroot", lambda: os.chroot("."))
attempt("a device", lambda: os.mknod("device", 0o20666, os.makedev(1, 3)))
attempt("a program with a set-user-ID bit", run_setuid)
attempt("become root", lambda: os.setuid(0))
attempt("a key", lambda: call(248, b"user", b"cejail", b"x", 1, -4))
attempt("read a keyring", lambda: call(250, 0, -4, 0))
attempt("TIOCSTI", lambda: fcntl.ioctl(0, 0x5412, b"x"))
for number in (29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220):
    attempt(f"System V call {number}", lambda: call(number, 0, 4096, 0o1600, 0, 0))
attempt("a POSIX queue", lambda: call(240, b"cejail", os.O_CREAT | os.O_RDWR, 0o600, 0))
attempt("remove a POSIX queue", lambda: call(241, b"cejail"))
attempt("bpf", lambda: call(321, 0, ctypes.create_string_buffer(128), 128))
attempt("a performance event", lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0))
attempt("userfaultfd", lambda: call(323, 1))
attempt("a file handle", lambda: call(303, -100, file.encode(), ctypes.create_string_buffer(b"\x80" + bytes(200)), ctypes.create_string_buffer(8), 0))
print(json.dumps(done))
"""
# What the manual says that a program can do: a process' links and files are hidden, but not that it is there.
KNOWN = []


def attack(**more):
    """What succeeded, and what the caller's file, socket and process are like afterwards."""
    victim = subprocess.Popen(["sleep", "600"], env=environment(TOKEN="secret"))
    unix, datagrams = socket.AF_UNIX, socket.SOCK_DGRAM
    with Folder() as f, socket.socket(unix) as by_path, socket.socket(unix) as abstract, socket.socket(unix, datagrams) as one, socket.socket(unix, datagrams) as two:
        file = f.file("secret", "secret")
        os.chmod(f.path, 0o777)
        os.chmod(file, 0o666)
        name = f"cejail-test-{uuid.uuid4().hex}"  # places that run at once share abstract names, and have the same pids
        by_path.bind(f"{f.path}/socket")
        os.chmod(f"{f.path}/socket", 0o777)
        abstract.bind("\0" + name)
        one.bind(f"{f.path}/socket.d")
        os.chmod(f"{f.path}/socket.d", 0o777)
        two.bind("\0" + name + ".d")
        for s in (by_path, abstract):
            s.listen(8)
        before = os.stat(file)
        try:
            done = run("-p", "python", "--quiet", *ALONE, "-c", ATTEMPTS, "--", file, f.path, str(victim.pid), f"{f.path}/socket", name, limit=60, **more)
            done.exits(0)
            after = os.stat(file)
            for field in ("st_mode", "st_uid", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino"):
                equal(getattr(after, field), getattr(before, field), field)
            equal(victim.poll(), None, "the caller's other process")
            equal(os.getpriority(os.PRIO_PROCESS, victim.pid), os.getpriority(os.PRIO_PROCESS, 0), "its priority")
            equal(sorted(os.listdir(f.path)), ["secret", "socket", "socket.d"], "the directory")
        finally:
            victim.kill()
            victim.wait()
    return json.loads(done.out)


@test("a program in --reduced opens no file, socket or process of its caller, and changes none", who="accounts", limit=120)
def _():
    equal(attack(), KNOWN, "what succeeded")
    tried(ATTEMPTS.count("attempt("))


@test("behind a container's filter --reduced holds the same", who="accounts", limit=120)
def _():
    equal(attack(preexec_fn=as_in_docker()), KNOWN, "what succeeded")


@test("the attempts against --reduced succeed without a jail, so that they can fail", who="accounts", limit=120)
def _():
    with Folder() as f, socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        file = f.file("secret", "secret")
        by_path.bind(f"{f.path}/socket")
        by_path.listen(8)
        one.bind(f"{f.path}/socket.d")
        victim = subprocess.Popen(["sleep", "600"])
        try:
            # without what would change the machine
            text = "\n".join(line for line in ATTEMPTS.splitlines() if not any(w in line for w in ("PRIO_USER", "remove it", "rename it", "sysrq", "mount", "chroot")))
            text = text.replace("for victim in (pid, init, 1)", "for victim in (pid,)").replace('"/usr/x", "../x", ', "").replace('"/tmp/x", "/var/tmp/x", "/dev/shm/x", ', "")
            out = subprocess.run([PYTHON, "-c", text, file, f.path, str(victim.pid), f"{f.path}/socket", "none"], cwd=f.path, capture_output=True, check=False)
        finally:
            victim.kill()
            victim.wait()
    seen = json.loads(out.stdout)
    for name in ("read a file of the caller", "change its mode", "change its times", "list /proc", "read environ of a process", "signal a process",
                 "change its limits", "connect to a path socket", "send from a socketpair elsewhere", "connect a socketpair elsewhere", "a socket of family 2", "watch a directory", "change its times by a path at 4 GiB"):  # fmt: skip
        true(name in seen, f"without a jail '{name}' fails, too: {out.stderr.decode()[-300:]}")
        tried()
