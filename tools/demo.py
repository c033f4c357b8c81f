# SPDX-License-Identifier: Apache-2.0
"""What a jail is, seen from inside: `make demo`, or `cejail run tools/demo.py`.

Every line is something a curious program would try.  It is harmless outside of a jail,
too: it only looks, and what it tries to change it has no right to, or takes back.
"""

import ctypes
import os
import resource
import socket

libc = ctypes.CDLL(None, use_errno=True)


def title(text):
    print(f"\n{text}")


def say(what, answer):
    print(f"  {what:<38} {answer}")


def attempt(what, action):
    """Say what came of it: the answer, or the system's refusal."""
    try:
        say(what, action())
    except OSError as error:
        say(what, f"refused: {error.strerror or error}")


def call(name, *arguments):
    """A C function; -1 becomes the OSError it stands for."""
    ctypes.set_errno(0)
    if getattr(libc, name)(*arguments) == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return "it went through"


def processes():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def read(path):
    with open(path, "rb") as file:
        return f"{len(file.read(4096))} bytes of it could be read"


def write(path):
    with open(path, "xb"):
        os.unlink(path)
    return "it could be written"


def connect(host, port):
    with socket.create_connection((host, port), timeout=1):
        return "it answered"


def route(host):
    """Whether a packet to that address may leave.  This one goes one hop, to the gateway of a jail, and ends there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
        there.connect((host, 9))
        there.send(b"")
        return "there is one"


def in_child(action):
    """What changes the process that does it is done by another one."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            action()
        except OSError as error:
            code = error.errno
        os.write(write_end, bytes([code]))
        os._exit(0)
    os.waitpid(pid, 0)
    code = os.read(read_end, 1)[0]
    if code:
        raise OSError(code, os.strerror(code))
    return "it went through"


def capabilities():
    with open("/proc/self/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return "none" if int(lines["CapEff"], 16) == int(lines["CapBnd"], 16) == 0 else lines["CapEff"]


def shorten(words):
    return " ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")


def size(count):
    return "no limit" if count < 0 else str(count)


def children(wanted):
    """How many processes at a time: each waits until all are there, then ends."""
    read_end, write_end = os.pipe()
    pids, problem = [], "all of them"
    for _ in range(wanted):
        try:
            pid = os.fork()
        except OSError as error:
            problem = f"then: {error.strerror}"
            break
        if pid == 0:
            os.close(write_end)
            os.read(read_end, 1)  # until the parent closes its end
            os._exit(0)
        pids.append(pid)
    os.close(write_end)
    for pid in pids:
        os.waitpid(pid, 0)
    return f"{len(pids)}, {problem}"


title("Who am I?")
say("user and group", f"{os.getuid()}, {os.getgid()}")
say("groups besides", [group for group in os.getgroups() if group != os.getgid()] or "none")
say("capabilities", capabilities())
say("host name", socket.gethostname())
say("environment", shorten(sorted(os.environ)))

title("What is there?")
say("/", " ".join(sorted(os.listdir("/"))))
say("here, in " + os.getcwd(), shorten(sorted(os.listdir("."))))
say("processes I can see", len(processes()))
attempt("network interfaces", lambda: " ".join(name for _, name in socket.if_nameindex()))

title("What may I read and write?")
attempt("read /etc/shadow", lambda: read("/etc/shadow"))
attempt("list /home", lambda: " ".join(os.listdir("/home")))
attempt("list /root", lambda: " ".join(os.listdir("/root")))
attempt("write to /usr", lambda: write("/usr/cejail-demo"))
attempt("write to /tmp", lambda: write("/tmp/cejail-demo"))

title("Whom can I reach?")
attempt("connect to 127.0.0.1:22", lambda: connect("127.0.0.1", 22))
attempt("the cloud's metadata", lambda: connect("169.254.169.254", 80))
attempt("the local network", lambda: connect("192.168.0.1", 80))
attempt("a route to the Internet", lambda: route("8.8.8.8"))

title("What may I ask the kernel?")
attempt("mount a file system", lambda: call("mount", b"demo", b"/nowhere", b"tmpfs", 0, None))
attempt("make a user namespace", lambda: in_child(lambda: call("unshare", 0x10000000)))
attempt("open a kernel crypto socket", lambda: socket.socket(38, socket.SOCK_SEQPACKET).close() or "it is open")
attempt("load a kernel module", lambda: call("syscall", 313, -1, b"", 0))  # no file: it can't succeed

title("How much may I use?")
say("open files", size(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
say("a core dump's bytes", size(resource.getrlimit(resource.RLIMIT_CORE)[0]))
attempt("100 processes at a time", lambda: children(100))

print("\nThis was process", os.getpid(), "of its own pid namespace.")
