# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: NOTIFY_SOCKET of the caller, and what a program inside can make of it."""

import contextlib
import os
import socket
import struct
import subprocess

from bundles import *  # noqa: F403
from harness import *  # noqa: F403

INSIDE = "/run/notify/notify.sock"
# say(text) sends a message as sd_notify(3) does.
SAY = """
import array, os, socket, sys, time
PLACE = os.environ.get("NOTIFY_SOCKET", "none")
def say(text, *descriptors):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        s.connect(PLACE)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        s.sendmsg([text.encode() if isinstance(text, str) else text], rights)
def out(*words):
    print(*words, flush=True)
"""


class Manager:
    """The socket of a service manager, and (sender's pid, text) of what arrives there."""

    def __init__(self, address):
        self.address, self.seen = address, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(address.replace("@", "\0", 1))
        self.env = environment(NOTIFY_SOCKET=address)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                data, control, flags, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(12) + socket.CMSG_SPACE(64))
                kinds = [kind for _, kind, _ in control]
                equal((kinds, flags & socket.MSG_CTRUNC), ([socket.SCM_CREDENTIALS], 0), "what comes with a message")
                self.seen.append((struct.unpack("3i", control[0][2])[0], data.decode()))
        return self.seen

    def texts(self):
        return [text for _, text in self.read()]


def notifying(script, **process):
    """A bundle with the host's Python, and the calls above."""
    b = Bundle(**process)
    b.process["args"] = ["/usr/bin/python3", "-c", SAY + script]
    b.config["mounts"] += [mount_of("bind", "/usr", "/usr", "rbind", "ro")]
    return b


def links(b):
    for name in ("lib", "lib64"):
        os.symlink(f"usr/{name}", f"{b.rootfs}/{name}")


def relays():
    return [pid for pid, words in descendants().items() if "cejail-oci-ntfy" in words or comm(pid) == "cejail-oci-ntfy"]


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


@test("run tells the service manager itself that the program is ready")
def _():
    with notifying("out(PLACE); say('STATUS=begins'); say('STATUS=x\\nREADY=1\\nMAINPID=1\\n'); sys.exit(5)") as b:
        links(b), b.save()
        for address in (b / "manager", f"@{b.path}/manager"):
            with Manager(address) as manager:
                words = [OCI, "--root", b.root, "run", "--bundle", b.path, "one"]
                given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
                process = subprocess.Popen(words, env=manager.env, **given)
                finish(process, args=words).exits(5).says(f"{INSIDE}\n")
                equal(manager.read(), [(process.pid, "READY=1")], "messages")
                nothing_is_left(b, "one")


@test("after create a process passes READY=1 on and ends with the container")
def _():
    with notifying("out('begins')\nwhile not os.path.exists('/go'): time.sleep(0.01)\nsay('READY=1'); say('WATCHDOG=1'); time.sleep(60)") as b:
        links(b)
        for address in (b / "manager", f"@{b.path}/manager"):
            with Manager(address) as manager:
                id = b.created(env=manager.env)
                (relay,) = relays()
                b.oci("start", id).exits(0)
                pid = b.state(id)["pid"]
                wait_until(lambda: "begins" in b.output(id), "the program")  # noqa: B023
                equal(manager.texts(), [], "messages before")
                b.file("rootfs/go", "")
                wait_until(manager.texts, "READY=1")
                equal(manager.read(), [(relay, f"READY=1\nMAINPID={pid}")], "messages")
                true(alive(relay), "the process has ended before the container")
                b.oci("kill", id, "KILL").exits(0)
                b.ended(id, 137)
                wait_until(lambda: not relays(), "the end of the process")
                b.delete(id).exits(0)
                nothing_is_left(b, id)
                os.unlink(b / "rootfs/go")
        with Manager(b / "other") as manager:
            id = b.created(env=manager.env)
            b.delete(id, "--force").exits(0)  # before start
            wait_until(lambda: not relays(), "the end of the process")
            nothing_is_left(b, id)
            b.process["args"] = ["/nosuch"]
            refused_oci(b.create(env=manager.env)[1])
            wait_until(lambda: not relays(), "the end of the process")
            equal(manager.texts(), [], "messages")


@test("run --detach leaves a process that passes READY=1 on")
def _():
    with notifying("say('READY=1'); time.sleep(60)") as b, Manager(b / "manager") as manager:
        links(b), b.save()
        with open(b / "log", "wb") as log:
            words = [OCI, "--root", b.root, "run", "--detach", "--bundle", b.path, "one"]
            given = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            finish(subprocess.Popen(words, env=manager.env, **given), args=words).exits(0)
        wait_until(manager.texts, "READY=1")
        equal(manager.texts(), [f"READY=1\nMAINPID={b.state('one')['pid']}"], "messages")
        b.delete("one", "--force").exits(0)
        wait_until(lambda: not relays(), "the end of the process")
        nothing_is_left(b, "one")


@test("without a service manager and with one of the engine the variable stays as config json has it")
def _():
    with notifying("out(PLACE, os.path.exists('/run/notify'))") as b, Manager(b / "manager") as manager:
        links(b)
        b.run().exits(0).says("none False\n")
        b.run(env=environment(NOTIFY_SOCKET="")).exits(0).says("none False\n")
        b.process["env"].append("NOTIFY_SOCKET=/engine")
        b.run(env=manager.env).exits(0).says("/engine False\n")
        b.process["env"].pop()
        for address, why in ((b / "nothing", "No such file"), ("relative", "neither a path"), ("/" + 200 * "x", "neither a path")):
            done = b.run(env=environment(NOTIFY_SOCKET=address)).exits(0).says("none False\n")
            contains(done.err, "the container has no NOTIFY_SOCKET", "the warning")
            contains(done.err, why, "the warning")
        manager.socket.close()  # nobody listens
        contains(b.run(env=manager.env).exits(0).says("none False\n").err, "Connection refused", "the warning")


@test("another user of the container can say that it is ready", who="root")
def _():
    with notifying("say('READY=1')") as b, Manager(b / "manager") as manager:
        links(b)
        b.process["user"] = {"uid": 1234, "gid": 1234}
        b.run(env=manager.env).exits(0)
        equal(manager.texts(), ["READY=1"], "messages")
        b.namespace("user"), b.linux["namespaces"].append({"type": "user"})
        for kind in ("uidMappings", "gidMappings"):
            b.linux[kind] = [{"containerID": 0, "hostID": 100000, "size": 65536}]
        for path in (b.path, b.rootfs):
            os.chmod(path, 0o755)
        b.file("rootfs/run/notify/notify.sock", "")  # the mount point: this root belongs to another id
        b.run(env=manager.env).exits(0)
        equal(manager.texts(), ["READY=1"] * 2, "messages")


HOSTILE = """
pipe = os.pipe()
for text in ("MAINPID=1", "MAINPID=1\\nSTATUS=x", "READY=1\\0", "READY=1\\0\\nREADY=1", "\\nREADY=1 \\n READY=1\\n", "ready=1",
             "READY=10", "READY=1=1", "XREADY=1", "", "\\n\\n\\n", "STOPPING=1", "RELOADING=1", "WATCHDOG=1", "WATCHDOG=trigger",
             "EXTEND_TIMEOUT_USEC=99999999", "FDSTOREREMOVE=1\\nFDNAME=x", "NOTIFYACCESS=all", b"\\xff" * 4000):
    say(text)
for size in (4097, 10000, 150000):
    say("READY=1\\n" + "x" * (size - 8))
    say("READY=1\\n" * (size // 8 + 1))
say("READY=1", pipe[1])
say("FDSTORE=1\\nREADY=1", *[pipe[1]] * 50)
for i in range(100):
    say(f"STATUS={i}\\n" + "x" * 3000)
    say("", pipe[1])
os.close(pipe[1])
out("end of file" if os.read(pipe[0], 1) == b"" else "?")  # no process holds a descriptor of ours
for attempt in (lambda: os.unlink(PLACE), lambda: os.rename(PLACE, "/tmp/x"), lambda: os.chmod(PLACE, 0)):
    try:
        attempt()
        out("done")
    except OSError as refused:
        out(type(refused).__name__)
while not os.path.exists("/go"):
    time.sleep(0.01)
for i in range(60):
    say("READY=1\\nMAINPID=1\\nERRNO=5")
out("over")
time.sleep(60)
"""


@test("no message of a hostile program but the first READY=1 leads to one for the service manager")
def _():
    with notifying(HOSTILE) as b, Manager(b / "manager") as manager:
        links(b)
        id = b.started(env=manager.env)
        (relay,) = relays()
        wait_until(lambda: b.output(id).count("\n") == 4, f"the attempts ({b.errors(id)})", 30)
        equal(b.output(id), "end of file\n" + "OSError\n" * 3, "output")
        equal(manager.texts(), [], "messages of a program that is not ready")
        if WHO == "root":
            equal(sorted(map(int, os.listdir(f"/proc/{relay}/fd"))), [0, 1, 2, 3, 4, 5], "descriptors of the process")
            with open(f"/proc/{relay}/status", encoding="utf-8") as file:
                status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
            equal({status[name] for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")}, {"0" * 16}, "capabilities")
            equal(status["NoNewPrivs"], "1", "no_new_privs")
        b.file("rootfs/go", "")
        wait_until(lambda: "over" in b.output(id), "the end of the attempts")
        equal(manager.texts(), [f"READY=1\nMAINPID={b.state(id)['pid']}"], "messages")
        b.delete(id, "--force").exits(0)
        wait_until(lambda: not relays(), "the end of the process")
        nothing_is_left(b, id)


@test("run reads a flood of messages and still ends with its program and by a signal")
def _():
    script = """
import signal
signal.signal(signal.SIGTERM, lambda *unused: sys.exit(4))
say("READY=1")
while not os.path.exists("/go"):
    say("STATUS=" + "x" * 4000)
sys.exit(3)
"""
    with notifying(script) as b, Manager(b / "manager") as manager:
        links(b), b.save()
        words = [OCI, "--root", b.root, "run", "--bundle", b.path, "one"]
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(words, env=manager.env, **given)
        wait_until(manager.texts, "READY=1")
        b.file("rootfs/go", "")
        finish(process, args=words).exits(3)
        os.unlink(b / "rootfs/go")
        process = subprocess.Popen(words, env=manager.env, **given)
        wait_until(lambda: len(manager.texts()) == 2, "READY=1")
        process.terminate()
        finish(process, args=words).exits(4)
        equal(manager.texts(), ["READY=1"] * 2, "messages")
        nothing_is_left(b, "one")
