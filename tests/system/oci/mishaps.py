# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: many containers and commands at once, lost and wrong states, reused process ids, a full disk."""

import itertools
import json
import os
import signal
import subprocess

from bundles import *  # noqa: F403
from harness import *  # noqa: F403

MANY = 20 if EMULATED and not LONG else share(100, 20)


def at_once(b, *commands):
    """Start all, then wait for all: a Done each."""
    running = []
    for words in commands:
        words = [OCI, "--root", b.root, *words]
        process = subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        running.append((words, process))
    return [finish(process, 60, args=words) for words, process in running]


@test("a hundred containers at once run and leave nothing", limit=120)
def _():
    with Bundle("read go < /tmp/go; exit 5") as b:  # waits without a process of its own
        b.save()
        ids = [f"m{number}" for number in range(MANY)]
        os.mkfifo(f"{b.rootfs}/tmp/go")
        with open(b / "log", "wb") as log, open(f"{b.rootfs}/tmp/go", "rb+", buffering=0) as go:
            running = [subprocess.Popen([OCI, "--root", b.root, "run", "-b", b.path, id], env=environment(),
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log) for id in ids]  # fmt: skip
            wait_until(lambda: b.oci("list", "--format=json").out.count('"running"') == MANY, f"{MANY} running containers", 60)
            go.write(b"\n" * MANY)
            for process in running:
                finish(process, 60).exits(5)
        equal(os.listdir(b.root), [], "states")
        tried(MANY)


@test("of many creates with one id one wins and of many starts one starts")
def _():
    with Bundle("echo x >> /tmp/count; sleep 6000") as b:
        b.save()
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        makers = [subprocess.Popen([OCI, "--root", b.root, "create", "-b", b.path, "one"], env=environment(), **quiet) for _ in range(8)]
        codes = sorted(await_exit(process, 60) for process in makers)
        equal(codes, [0] + [1] * 7, "exit statuses of create")
        dones = at_once(b, *[("start", "one")] * 8)
        equal(sorted(done.code for done in dones), [0] + [1] * 7, "exit statuses of start")
        wait_until(lambda: os.path.exists(f"{b.rootfs}/tmp/count"), "the program")
        with open(f"{b.rootfs}/tmp/count", encoding="ascii") as file:
            equal(file.read(), "x\n", "how often it ran")
        b.delete("one", "--force").exits(0)


@test("two deletes at once remove a container once and both end well with force")
def _():
    for _ in range(5):
        with Bundle("sleep 6000") as b:
            id = b.started()
            for done in at_once(b, *[("delete", "--force", id)] * 4):
                done.exits(0)
            nothing_is_left(b, id)
            id = b.created()
            dones = at_once(b, *[("delete", id)] * 4)
            equal(sorted(done.code for done in dones), [0, 1, 1, 1], "exit statuses without force")
            for done in dones:
                true(done.code == 0 or "does not exist" in done.err, f"a late delete says {done.err!r}")
            nothing_is_left(b, id)
            tried(2)


@test("a process that got the containers pid is neither shown nor killed")
def _():
    with Bundle() as b:
        id = b.started()
        b.ended(id, 0)
        other = subprocess.Popen(["sleep", "6000"])
        try:
            path = f"{b.root}/{id}/record.json"
            with open(path, encoding="utf-8") as file:
                record = json.load(file)
            record["pid"] = other.pid
            with open(path, "w", encoding="utf-8") as file:
                json.dump(record, file)
            equal((b.state(id)["status"], b.state(id)["pid"]), ("stopped", 0), "state")
            refused_oci(b.oci("kill", id, "KILL"), "container not running")
            b.delete(id, "--force").exits(0)
            equal(other.poll(), None, "the other process")
        finally:
            other.kill()
            other.wait()


@test("delete force removes a state that is empty or cut or not JSON")
def _():
    with Bundle() as b:
        for content in (None, b"", b"{", b'{"id": "x"}', b"\x00\xff", b"[]", b"{}" * 70000):
            id = b.new_id()
            os.makedirs(f"{b.root}/{id}", 0o700)
            if content is not None:
                with open(f"{b.root}/{id}/record.json", "wb") as file:
                    file.write(content)
            refused_oci(b.oci("state", id), id)
            refused_oci(b.delete(id), id, "delete --force")
            equal(b.oci("list", "-q").exits(0).out.split(), [id], "ids")
            equal(len(b.oci("list").exits(0).out.splitlines()), 1, "lines of the table")
            b.delete(id, "--force").exits(0)
            nothing_is_left(b, id)
            tried()


@test("a configuration that is lost after create does not keep delete from its work")
def _():
    with Bundle("sleep 6000") as b:
        id = b.started()
        os.unlink(f"{b.root}/{id}/config.json")
        equal(b.status(id), "running", "status")
        b.delete(id, "--force").exits(0)
        nothing_is_left(b, id)
        true(not any("sleep" in words and "(Z)" not in words for words in descendants().values()), "the program runs")


@test("the bundle may change after create without effect on the container")
def _():
    with Bundle("echo first") as b:
        id = b.created()
        b.process["args"] = ["/bin/echo", "second"]
        b.config["hooks"] = {"poststop": [{"path": "/bin/false"}]}
        b.save()
        b.oci("start", id).exits(0)
        b.ended(id, 0)
        equal(b.output(id), "first\n", "output")
        equal(b.delete(id).exits(0).err, "", "a hook that came later")


@test("a full disk for the states refuses create and leaves nothing", who="roots")
def _():
    with Bundle() as b:
        b.save()
        b.folder("states")
        wins = 0
        for options in [f"size=64k,nr_inodes={count}" for count in range(1, 12)] + ["size=4k", "size=8k", "size=12k"]:
            script = (f"mount -t tmpfs -o mode=700,{options} none {b.path}/states && {OCI} --root {b.path}/states run -b {b.path} full; "
                      f"code=$?; test -z \"$(ls {b.path}/states)\" || code=99; exit $code")  # fmt: skip
            words = ["unshare", "-m", "/bin/sh", "-c", script]
            done = finish(subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE), args=words)
            if done.code != 0:
                refused_oci(done, "No space left on device")
            wins += done.code == 0
            tried()
        between(wins, 1, 13, "sizes that are enough")
        equal([path for path in our_cgroups() if path.endswith("oci.full")], [], "cgroups")


@test("a state directory that every user may write to is refused")
def _():
    with Bundle() as b:
        b.folder("states")
        os.chmod(b.root, 0o1777)
        refused_oci(b.run(), "every user may write")


@test("a state directory of another user is refused", who="root")
def _():
    with Bundle() as b:
        b.folder("states")
        os.chown(b.root, 12345, 12345)
        refused_oci(b.run(), "belongs to user 12345")


@test("a container that its parent did not reap counts as stopped")
def _():
    with Bundle() as b:
        id = b.created()
        pid = b.state(id)["pid"]
        b.oci("start", id).exits(0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        equal(b.status(id), "stopped", "status of a zombie")
        refused_oci(b.oci("kill", id, "9"), "container not running")
        b.delete(id).exits(0)
        os.waitpid(pid, 0)


@test("a stopped first thread does not make a running container stopped")
def _():
    with Bundle("kill -STOP $$; sleep 6000") as b:
        id = b.started()
        pid = b.state(id)["pid"]
        os.kill(pid, signal.SIGSTOP)
        equal(b.status(id), "running", "status")
        b.delete(id, "--force").exits(0)


# --- an init that a process of a joined pid namespace has stopped ---

STOPPER = """
import os, signal
print("ready", flush=True)
while True:
    try:
        os.kill(2, signal.SIGSTOP)
        break
    except OSError:
        pass
signal.pause()
"""
# A hook of create: init waits for its end, so create does not end before the stopper has had its turn.
UNTIL_STOPPED = """
import json, os, signal, sys, time
os.kill(int(sys.argv[1]), signal.SIGCONT)
pid = json.load(sys.stdin)["pid"]
while open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] not in "TZX":  # it may be killed, too
    time.sleep(0.01)
"""


def beside_stopper(b, is_late=False):
    """A container that stops the next init of its namespaces, which b.config then joins: as soon as that exists, or
    `is_late`, when it waits for a hook."""
    for name in ("lib", "lib64"):
        os.symlink(f"usr/{name}", f"{b.rootfs}/{name}")
    b.config["mounts"].append(mount_of("bind", "/usr", "/usr", "rbind", "ro"))
    b.process["args"] = ["/usr/bin/python3", "-c", STOPPER]
    stopper = b.started()
    wait_until(lambda: "ready" in b.output(stopper), f"the stopping process ({b.errors(stopper)})")
    pid = b.state(stopper)["pid"]
    if is_late:
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: is_stopped(pid), "the stop of the stopping process")
    for kind in ("pid",) + (("user",) if WHO == "user" else ()):
        b.namespace(kind, f"/proc/{pid}/ns/{kind}")
    if WHO == "user":
        del b.linux["uidMappings"], b.linux["gidMappings"]
    b.process["args"] = ["/bin/true"]
    hook = {"path": "/usr/bin/python3", "args": ["python3", "-c", UNTIL_STOPPED, str(pid)]}
    b.config["hooks"] = {"createRuntime": [hook]}
    b.save()


def is_stopped(pid):
    """Also of an intermediate process, which may end meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def creating(b, id):
    """A create whose init is stopped.  Returns (create, init)."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen([OCI, "--root", b.root, "create", "-b", b.path, id], env=environment(), **quiet)

    def init():
        true(process.poll() is None, f"create has ended with status {process.returncode}")
        return next((pid for pid in children_of(process.pid) if is_stopped(pid)), None)

    return process, wait_until(init, "a stopped init")


@test("delete force ends a container whose init is stopped whether create lives or is killed", limit=120)
def _():
    cases = itertools.product((False, True), repeat=2) if LONG else ((False, True), (True, False))
    for is_killed, is_late in cases:
        with Bundle() as b:
            beside_stopper(b, is_late)
            process, init = creating(b, "one")
            wait_until(lambda: b.state("one")["pid"] == init, "the record")
            if is_killed:
                process.kill()
                await_exit(process, 10)
            b.delete("one", "--force").exits(0)
            finish(process)
            nothing_is_left(b, "one")
            true(not alive(init), "init lives")
            descendants()  # reaps it, or its pid namespace would not end
            tried()


if LONG:  # half a minute

    @test("start and create give up an init that is stopped after 30 seconds", limit=240)
    def _():
        with Bundle() as b:
            id = b.created()
            pid = b.state(id)["pid"]
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: is_stopped(pid), "the stop of init")
            process = subprocess.Popen([OCI, "--root", b.root, "start", id], env=environment(), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
            beside_stopper(b)
            create, init = creating(b, "one")
            refused_oci(finish(process, 60), "init", "timed out")
            b.delete(id, "--force").exits(0)
            refused_oci(finish(create, 60), "init", "timed out")
            nothing_is_left(b, "one")
            true(not alive(init), "init lives")
