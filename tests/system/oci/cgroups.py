# SPDX-License-Identifier: Apache-2.0
"""cejail-oci and cgroups: pause, resume, ps, kill --all, update, events, limits, device rules, systemd's scopes.

Limits need a hierarchy with controllers, which the test machine has.  Elsewhere it is tested that they are refused.
"""

import errno
import functools
import glob
import json
import os
import socket
import subprocess
import time

from bundles import *  # noqa: F403
from harness import *  # noqa: F403
from outer_filter import refuse

MIB = 1 << 20


def mount_point():
    """Where cgroup v2 is mounted; as cejail-oci looks for it."""
    roots = cgroup_roots()
    usual = [root for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if root in roots]
    if not roots:
        raise Skip("no cgroup v2 hierarchy is mounted here")
    return (usual or roots)[0]


def cgroup_of(pid):
    """The directory of the cgroup of a process."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        own = [line[3:].rstrip("\n") for line in file if line.startswith("0::")]
    return mount_point() + own[0] if own else ""


def place_of(b, id):
    """The container's own cgroup."""
    path = cgroup_of(b.state(id)["pid"])
    true(path != cgroup_of(os.getpid()), f"{id} is in our cgroup ({b.errors(id)})")
    return path


def read(path, name):
    with open(f"{path}/{name}", encoding="utf-8") as file:
        return file.read().rstrip("\n")


def value_of(path, name, key):
    """The number behind a key of a flat-keyed file."""
    return dict((words[0], int(words[1])) for words in map(str.split, read(path, name).split("\n")))[key]


@functools.cache
def offers():
    """What a container gets here: "cgroup", "controllers"."""
    if EXPECTED == "cgroup":
        return ("cgroup", "controllers")
    with Bundle("sleep 6000") as b:
        id = b.created()
        path = cgroup_of(b.state(id)["pid"])
        if path == cgroup_of(os.getpid()):
            return ()
        has_memory = "memory" in read(path, "cgroup.controllers").split()
        return ("cgroup", "controllers") if has_memory else ("cgroup",)


def test_with(what, sentence, **options):
    """A test about places where containers get this."""

    def register(function):
        return test(sentence, **options)(lambda: function() if what in offers() else None)

    return register


def limited(script, **resources):
    b = Bundle(script)
    b.linux["resources"] = resources
    return b


# --- everywhere ------------------------------------------------------------------------------


@test_with("cgroup", "pause stops every process and resume lets them go on")
def _():
    with Bundle("while true; do echo tick; sleep 0.02; done") as b:
        id = b.started()
        place_of(b, id)
        wait_until(lambda: b.output(id).count("\n") > 2, "output")
        b.oci("pause", id).exits(0).says("")
        equal(b.status(id), "paused", "status")
        before = b.output(id)
        time.sleep(0.3)
        equal(b.output(id), before, "output while paused")
        b.oci("pause", id).exits(0)
        b.oci("resume", id).exits(0).says("")
        equal(b.status(id), "running", "status")
        wait_until(lambda: len(b.output(id)) > len(before), "output after resume")
        b.oci("pause", id).exits(0)
        b.oci("kill", id, "KILL").exits(0)
        b.ended(id, 137)


@test_with("cgroup", "ps lists every process of the container as json and as a table")
def _():
    with Bundle("sleep 6000 & sleep 6000 & sleep 6000") as b:
        id = b.started()
        path = place_of(b, id)
        pids = wait_until(lambda: (p := json.loads(b.oci("ps", "--format", "json", id).exits(0).out)) and len(p) == 3 and p, "3 processes")
        true(b.state(id)["pid"] in pids, f"no first process in {pids}")
        equal(sorted(pids), sorted(map(int, read(path, "cgroup.procs").split())), "pids")
        equal(b.oci("ps", id).exits(0).out.split(), ["PID", *map(str, pids)], "the table")
        refused_oci(b.oci("ps", id, "aux"), "ps(1)")


@test_with("cgroup", "kill --all ends processes that outlive the first one", who="root")
def _():
    with Bundle("sleep 6000 & exit 0") as b:
        b.namespace("pid")
        id = b.created()
        path = place_of(b, id)
        b.oci("start", id).exits(0)
        b.ended(id, 0)
        equal(value_of(path, "cgroup.events", "populated"), 1, "populated")
        b.oci("kill", "--all", id, "9").exits(0)
        wait_until(lambda: value_of(path, "cgroup.events", "populated") == 0, "the end of all")
        b.delete(id).exits(0)
        true(not os.path.exists(path), f"'{path}' is left")


@test_with("cgroup", "exec joins an existing cgroup below the containers and no other")
def _():
    with Bundle("sleep 6000") as b:
        id = b.started()
        path = place_of(b, id)
        os.makedirs(f"{path}/one/two")
        pids = []
        for name in ("one", "/one/two", "/"):
            words = ("exec", "--detach", "--pid-file", b / "exec.pid", "--cgroup", name, id, "sleep", "6000")
            with open(b / "log", "wb") as log:
                finish(subprocess.Popen([OCI, "--root", b.root, *words], env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)).exits(0)
            pids.append(int(read(b.path, "exec.pid")))
            equal(cgroup_of(pids[-1]), f"{path}/{name}".replace("//", "/").rstrip("/"), f"cgroup of exec in {name}")
        for name in ("none", "..", "one/../..", "one/two/../../../.."):
            refused_oci(b.oci("exec", "--cgroup", name, id, "true"), "--cgroup", f"'{name}'")
        b.oci("kill", id, "KILL").exits(0)
        equal([wait_status(pid) for pid in pids], [137] * 3, "orphans, for which the pid namespace waits")
        b.ended(id)


@test_with("controllers", "a limit of no processes is one from version 1.3 on")
def _():
    for version, limit in (("1.2.0", "max"), ("1.3.0", "1")):
        with limited("exec sleep 6000", pids={"limit": 0}) as b:
            b.config["ociVersion"] = version
            id = b.started()
            path = place_of(b, id)
            equal(read(path, "pids.max"), limit, f"the limit at {version}")
            b.oci("update", "--pids-limit", "5", id).exits(0)
            b.oci("update", "--resources", "-", id, given='{"pids": {"limit": 0}}').exits(0)
            equal(read(path, "pids.max"), limit, f"the limit of update at {version}")
            b.oci("update", "--pids-limit", "0", id).exits(0)
            equal(read(path, "pids.max"), "1", "the limit of the option")
            b.oci("update", "--pids-limit", "-1", id).exits(0)
            equal(read(path, "pids.max"), "max", "no limit")


@test_with("cgroup", "delete removes cgroups that were made below the container's")
def _():
    with Bundle("sleep 6000") as b:
        id = b.started()
        path = place_of(b, id)
        os.makedirs(f"{path}/a/b/c")
        os.makedirs(f"{path}/d")
        moved = subprocess.Popen(["/bin/sleep", "6000"])
        if WHO == "root":  # an ordinary user may move none from its session to its manager's units
            with open(f"{path}/a/b/c/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(moved.pid))
            true(moved.pid in json.loads(b.oci("ps", "--format=json", id).exits(0).out), "ps lacks a nested process")
        else:
            moved.kill()
        b.delete(id, "--force").exits(0)
        equal(moved.wait(), -9, "status of the nested process")
        true(not os.path.exists(path), f"'{path}' is left")
        b.delete(id, "--force").exits(0)


@test_with("cgroup", "a failed create that can not remove the cgroup keeps the state for delete")
def _():
    with Bundle() as b:
        found = b / "found"
        script = f"sed -n 's/^0:://p' /proc/$(sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/')/cgroup > {found}; exit 3"
        b.config["hooks"] = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", script], "env": ["PATH=/usr/bin:/bin"]}]}
        id, done = b.create(preexec_fn=refuse({263: errno.EPERM}, third=0x200))  # unlinkat, AT_REMOVEDIR
        refused_oci(done, "createRuntime", "exit status 3")
        with open(found, encoding="ascii") as file:
            path = mount_point() + file.read().strip()
        true(os.path.isdir(path), f"'{path}' is there")
        b.delete(id).exits(0)
        true(not os.path.exists(path), f"'{path}' is left")
        nothing_is_left(b, id)


@test_with("cgroup", "cgroups nested deep are listed, signalled and removed")
def _():
    with Bundle("sleep 6000") as b:
        id = b.started()
        path = place_of(b, id)
        deep = path
        for _ in range(200):
            deep += "/n"
            os.mkdir(deep)
        tried(200)
        if WHO == "root":
            moved = subprocess.Popen(["/bin/sleep", "6000"])
            with open(f"{deep}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(moved.pid))
            true(moved.pid in json.loads(b.oci("ps", "--format=json", id).exits(0).out), "ps lacks a nested process")
            b.oci("kill", "--all", id, "TERM").exits(0)
            equal(moved.wait(), -15, "status of the nested process")
        b.oci("ps", id).exits(0)
        b.delete(id, "--force").exits(0)
        true(not os.path.exists(path), f"'{path}' is left")


@test("a path that leads out of the hierarchy is refused")
def _():
    with Bundle("sleep 6000") as b:
        for path in ("../x", "/a/../../x", "/", "."):
            b.linux["cgroupsPath"] = path
            _, done = b.create()
            refused_oci(done, "cgroupsPath")
            tried()


@test_with("cgroup", "a cgroup that contains processes is refused")
def _():
    with Bundle("sleep 6000") as b:
        first = b.created()
        path = place_of(b, first)
        b.linux["cgroupsPath"] = path[len(mount_point()) :]
        id, done = b.create()
        refused_oci(done, "contains processes", path)
        nothing_is_left(b, id)
        equal(b.status(first), "created", "the first container")


@test("cgroupsPath is below the root of the hierarchy", who="root")
def _():
    with Bundle("sleep 6000") as b:
        path = f"{mount_point()}/cejail-oci-{os.getpid()}"
        b.linux["cgroupsPath"] = path[len(mount_point()) :] + "/a/b"
        id = b.created()
        equal(cgroup_of(b.state(id)["pid"]), f"{path}/a/b", "cgroup")
        b.delete(id, "--force").exits(0)
        true(os.path.isdir(f"{path}/a") and not os.path.exists(f"{path}/a/b"), "only the container's cgroup is removed")
        os.rmdir(f"{path}/a")
        os.rmdir(path)


@test("a cgroup whose last processes were killed takes a new container", who="root")
def _():
    # Linux since 6.14 kills what clone3(2) makes there.
    for joins in (False, True):
        with Bundle("sleep 6000") as b:
            path = f"{mount_point()}/cejail-oci-{os.getpid()}"
            os.mkdir(path)
            with open(f"{path}/cgroup.kill", "w", encoding="utf-8") as file:
                file.write("1")
            b.linux["cgroupsPath"] = path[len(mount_point()) :]
            if joins:
                b.namespace("ipc", f"/proc/{os.getpid()}/ns/ipc")
            id = b.created()
            equal(cgroup_of(b.state(id)["pid"]), path, "cgroup")
            b.oci("start", id).exits(0)
            b.delete(id, "--force").exits(0)
            nothing_is_left(b, id)
            if os.path.exists(path):
                os.rmdir(path)


@test("a create that fails leaves no cgroup", who="root")
def _():
    with Bundle() as b:
        path = f"{mount_point()}/cejail-oci-{os.getpid()}"
        b.linux["cgroupsPath"] = path[len(mount_point()) :] + "/a/b"
        b.process["args"] = ["/no/such/program"]
        id, done = b.create()
        refused_oci(done, "/no/such/program")
        nothing_is_left(b, id)
        true(not os.path.exists(f"{path}/a/b"), "a cgroup is left")
        os.rmdir(f"{path}/a")
        os.rmdir(path)
        b.linux["resources"] = {"unified": {"cgroup.max.depth": "no number"}}
        refused_oci(b.create()[1], "linux.resources.unified", "cgroup.max.depth")
        true(not os.path.exists(path), "a cgroup is left")


@test("unified files are written line by line", who="root")
def _():
    with limited("sleep 6000", unified={"cgroup.max.depth": "3", "cgroup.max.descendants": "7"}) as b:
        path = place_of(b, b.created())
        equal((read(path, "cgroup.max.depth"), read(path, "cgroup.max.descendants")), ("3", "7"), "limits")


@test("a limit that cannot be enforced is an error with the remedy except without cgroups")
def _():
    if "controllers" in offers():
        return
    for name, resources in (
        ("memory.limit", {"memory": {"limit": 64 * MIB}}),
        ("pids.limit", {"pids": {"limit": 32}}),
        ("cpu.quota", {"cpu": {"quota": 50000}}),
        ("cpu.shares", {"cpu": {"shares": 512}}),
        ("unified", {"unified": {"memory.high": "1000000"}}),
    ):
        with limited("sleep 6000", **resources) as b:
            id, done = b.create()
            refused_oci(done, f"linux.resources.{name}", "--cgroup-manager disabled")
            nothing_is_left(b, id)
            b.config["process"]["args"] = ["/bin/true"]
            b.save()
            b.oci("--cgroup-manager", "disabled", "run", "--bundle", b.path, b.new_id()).exits(0)
        tried()
    with limited("sleep 6000", memory={"limit": -1}, pids={"limit": 0}, cpu={"shares": 0, "quota": -1}) as b:
        b.created()


@test("what cgroup v2 does not have is refused by name")
def _():
    for name, resources in (
        ("swappiness", {"memory": {"swappiness": 60}}),
        ("disableOOMKiller", {"memory": {"disableOOMKiller": True}}),
        ("memory.swap", {"memory": {"limit": 2 * MIB, "swap": MIB}}),
        ("realtimeRuntime", {"cpu": {"realtimeRuntime": 5}}),
        ("unified", {"unified": {"../memory.max": "5"}}),
        ("unified", {"unified": {"cgroup.procs": "0"}}),
    ):
        with limited("sleep 6000", **resources) as b:
            refused_oci(b.create()[1], name)
        tried()


@test("a container without a cgroup has a line in the log")
def _():
    with Bundle() as b:
        b.save()
        b.oci("--log", b / "log", "run", "--bundle", b.path, b.new_id()).exits(0)
        text = ""
        if os.path.exists(b / "log"):
            with open(b / "log", encoding="utf-8") as file:
                text = file.read()
        equal("no cgroup: " in text, not offers(), f"the line in {text!r}")


@test("verbs that need a running container say so")
def _():
    with Bundle() as b:
        for verb in ("pause", "resume", "ps", "events"):
            refused_oci(b.oci(verb, "nobody"), "does not exist")
            tried()
        id = b.started()
        b.ended(id, 0)
        for verb in (("pause",), ("resume",), ("ps",), ("events",), ("update", "--memory", "64M")):
            refused_oci(b.oci(*verb, id), "container not running")
            tried()


@test_with("cgroup", "update takes limits once and in one way")
def _():
    with Bundle("sleep 6000") as b:
        id = b.started()
        place_of(b, id)
        refused_oci(b.oci("update", id), "no limit is given")
        refused_oci(b.oci("update", "--memory", "64M", "--resources", "-", id, given="{}"), "not both")
        refused_oci(b.oci("update", "--resources", "-", id, given="{"), "standard input:1")
        refused_oci(b.oci("update", "--resources", b / "none", id), "none")
        refused_oci(b.oci("update", "--memory", "lots", id), "--memory 'lots'")
        refused_oci(b.oci("update", "--cpu-rt-period", "5", id), "--cpu-rt-period")


@test("without a cgroup pause ps and update are refused")
def _():
    with Bundle("sleep 6000") as b:
        b.save()
        id = b.new_id()
        words = [OCI, "--root", b.root, "--cgroup-manager=disabled", "create", "--bundle", b.path, id]
        with open(os.devnull, "r+b") as null:
            equal(subprocess.run(words, env=environment(), stdin=null, stdout=null, stderr=null, check=False).returncode, 0, "create")
        equal(cgroup_of(b.state(id)["pid"]), cgroup_of(os.getpid()), "cgroup")
        for verb in (("pause",), ("ps",), ("update", "--pids-limit", "5"), ("events", "--stats")):
            refused_oci(b.oci(*verb, id), "no cgroup")
            tried()
        b.delete(id, "--force").exits(0)


@test_with("cgroup", "events prints counters as json until the container ends")
def _():
    with Bundle("while true; do :; done") as b:
        id = b.started()
        place_of(b, id)
        first = json.loads(b.oci("events", "--stats", id).exits(0).out)
        equal((first["type"], first["id"]), ("stats", id), "type and id")
        words = [OCI, "--root", b.root, "events", "--interval", "100ms", id]
        process = subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            lines = [json.loads(process.stdout.readline()) for _ in range(3)]
            b.oci("kill", id, "KILL").exits(0)
            b.ended(id, 137)
            finish(process, args=words).exits(0)
        finally:
            process.kill()
        totals = [line["data"]["cpu"]["usage"]["total"] for line in (first, *lines)]
        true(totals == sorted(totals) and totals[0] < totals[-1], f"CPU time {totals}")


# --- devices -----------------------------------------------------------------------------------


def opens(b, kind, major, minor):
    """Can the container open the device for reading?"""
    b.process["capabilities"] = {kind: ["CAP_MKNOD"] for kind in ("bounding", "effective", "permitted")}
    b.process["args"] = ["/bin/sh", "-c", f"mknod /dev/it {kind} {major} {minor} && : < /dev/it && echo opened"]
    done = b.run()
    return done.out == "opened\n", done


@test("device rules decide what a container opens and the last one counts", who="root")
def _():
    deny = {"allow": False, "access": "rwm"}
    rule = {"allow": True, "type": "c", "major": 10, "minor": 200, "access": "r"}
    for rules, expected in (
        ([deny], False),
        ([deny, rule], True),
        ([rule, deny], False),
        ([deny, {**rule, "access": "w"}], False),
        ([deny, {**rule, "minor": -1}], True),
        ([deny, {**rule, "type": "b"}], False),
        ([deny, {"allow": True, "access": "rwm"}], True),
        (None, False),
    ):
        with Bundle() as b:
            if rules is not None:
                b.linux["resources"] = {"devices": rules}
            seen, done = opens(b, "c", 10, 200)
            equal(seen, expected, f"opened with {rules} ({done!r})")
            if not expected:
                contains(done.err, "not permitted", "stderr")
            tried()
    with limited(None, devices=[deny]) as b:
        equal(opens(b, "c", 1, 3)[0], True, "/dev/null opened")


@test("update replaces device rules of a running container", who="root")
def _():
    with limited("mknod /dev/it c 10 200; while true; do if (: < /dev/it) 2>/dev/null; then echo opened; else echo denied; fi; sleep 0.02; done", devices=[]) as b:
        b.process["capabilities"] = {kind: ["CAP_MKNOD"] for kind in ("bounding", "effective", "permitted")}
        id = b.started()
        wait_until(lambda: b.output(id).endswith("denied\n"), "denied")
        allow = {"devices": [{"allow": True, "type": "c", "major": 10, "minor": 200, "access": "r"}]}
        b.oci("update", "--resources", "-", id, given=json.dumps(allow)).exits(0)
        wait_until(lambda: b.output(id).endswith("opened\n"), "opened")
        b.oci("update", "--resources", "-", id, given='{"devices":[{"allow":false,"access":"rwm"}]}').exits(0)
        wait_until(lambda: b.output(id).endswith("denied\n"), "denied again")


# --- with controllers ----------------------------------------------------------------------------


@test_with("controllers", "limits are those of config.json")
def _():
    resources = {
        "memory": {"limit": 64 * MIB, "swap": 96 * MIB, "reservation": 16 * MIB},
        "cpu": {"shares": 512, "quota": 50000, "period": 100000},
        "pids": {"limit": 20},
    }
    with limited("sleep 6000", **resources) as b:
        path = place_of(b, b.created())
        for name, wanted in (
            ("memory.max", str(64 * MIB)),
            ("memory.low", str(16 * MIB)),
            ("cpu.weight", "20"),
            ("cpu.max", "50000 100000"),
            ("pids.max", "20"),
        ):
            equal(read(path, name), wanted, name)
        if os.path.exists(f"{path}/memory.swap.max"):
            equal(read(path, "memory.swap.max"), str(32 * MIB), "memory.swap.max")


@test("limits of io and huge pages are those of config json and an rdma device that is missing is refused", who="machine root")
def _():
    with open(min(glob.glob("/sys/block/*/dev")), encoding="ascii") as file:
        device = file.read().strip()
    disk = dict(zip(("major", "minor"), map(int, device.split(":"))))
    resources = {
        "blockIO": {
            "weight": 500,
            "throttleReadBpsDevice": [{**disk, "rate": 1 << 20}],
            "throttleWriteBpsDevice": [{**disk, "rate": 2 << 20}],
            "throttleReadIOPSDevice": [{**disk, "rate": 300}],
            "throttleWriteIOPSDevice": [{**disk, "rate": 400}],
        },
        "hugepageLimits": [{"pageSize": "2MB", "limit": 4 * MIB}],
    }
    with limited("sleep 6000", **resources) as b:
        # from the root, because systemd delegates no huge pages
        top = f"cejail-oci-{os.getpid()}"
        b.linux["cgroupsPath"] = f"/{top}/limits"
        id = b.created()
        path = place_of(b, id)
        for name, wanted in (
            ("io.weight", "default 4950"),
            ("io.max", f"{device} rbps={1 << 20} wbps={2 << 20} riops=300 wiops=400"),
            ("hugetlb.2MB.max", str(4 * MIB)),
            ("hugetlb.2MB.rsvd.max", str(4 * MIB)),
        ):
            equal(read(path, name), wanted, name)
        b.oci("update", "--resources=-", id, given=json.dumps({"blockIO": {"throttleReadBpsDevice": [{**disk, "rate": 0}]}})).exits(0)
        equal(read(path, "io.max"), f"{device} rbps=max wbps={2 << 20} riops=300 wiops=400", "io.max after the update")
        b.delete(id, "--force").exits(0)
        b.linux["resources"] = {"rdma": {"nosuch0": {"hcaHandles": 3}}}
        refused_oci(b.create()[1], "linux.resources.rdma", "nosuch0")
        os.rmdir(f"{mount_point()}/{top}")


@test_with("controllers", "a memory bomb ends as oom, and the counters say so", limit=120)
def _():
    with limited("tail /dev/zero; echo status $?; exec sleep 6000", memory={"limit": 32 * MIB, "swap": 32 * MIB}) as b:
        id = b.created()
        path = place_of(b, id)
        b.oci("start", id).exits(0)
        wait_until(lambda: b.output(id) == "status 137\n", "the end of the bomb", 60)
        true(value_of(path, "memory.events", "oom_kill") > 0, read(path, "memory.events"))
        if os.path.exists(f"{path}/memory.peak"):
            between(int(read(path, "memory.peak")), 30 * MIB, 33 * MIB, "peak")
    with limited("exec tail /dev/zero", memory={"limit": 32 * MIB, "swap": 32 * MIB}) as b:
        id = b.started()
        b.ended(id, 137, limit=60)


@test_with("controllers", "events has a line for a process that the kernel killed for lack of memory", limit=120)
def _():
    with limited("sleep 1; tail /dev/zero; sleep 6000", memory={"limit": 32 * MIB, "swap": 32 * MIB}) as b:
        id = b.created()
        place_of(b, id)
        words = [OCI, "--root", b.root, "events", "--interval", "200ms", id]
        process = subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            process.stdout.readline()
            b.oci("start", id).exits(0)
            end = time.monotonic() + 30 * SLOW
            while json.loads(process.stdout.readline()) != {"type": "oom", "id": id}:
                true(time.monotonic() < end, "no line of type oom")
        finally:
            process.kill()
            process.wait()
        equal(b.status(id), "running", "status of the container")


@test_with("controllers", "a fork bomb stays below the pids limit", limit=120)
def _():
    # The shell ends whose fork fails, so it is not the one that keeps the container.
    with limited("(for i in $(seq 1 50); do sleep 6000 & done); exec sleep 6000", pids={"limit": 12}) as b:
        id = b.created()
        path = place_of(b, id)
        b.oci("start", id).exits(0)
        wait_until(lambda: value_of(path, "pids.events", "max") > 0, "a refused fork")
        between(int(read(path, "pids.current")), 1, 12, "processes")


@test_with("controllers", "update changes the limits of a running container")
def _():
    with limited("sleep 6000", memory={"limit": 64 * MIB, "swap": 64 * MIB}, cpu={"quota": 50000}) as b:
        id = b.started()
        path = place_of(b, id)
        b.oci("update", "--memory", "96M", "--memory-swap", "128M", "--pids-limit", "33", "--cpu-share", "1024", id).exits(0)
        equal((read(path, "memory.max"), read(path, "pids.max"), read(path, "cpu.weight")), (str(96 * MIB), "33", "39"), "by option")
        if os.path.exists(f"{path}/memory.swap.max"):
            equal(read(path, "memory.swap.max"), str(32 * MIB), "memory.swap.max")
        b.oci("update", "--cpu-period", "20000", id).exits(0)
        equal(read(path, "cpu.max"), "50000 20000", "cpu.max keeps its quota")
        b.oci("update", "--cpu-quota=-1", id).exits(0)
        equal(read(path, "cpu.max"), "max 20000", "cpu.max")
        b.oci("update", "--resources=-", id, given='{"memory":{"limit":50331648}}').exits(0)
        equal(read(path, "memory.max"), str(48 * MIB), "from standard input")
        b.oci("update", "--resources", b.file("r.json", '{"pids":{"limit":-1},"unified":{"memory.high":"1048576"}}'), id).exits(0)
        equal((read(path, "pids.max"), read(path, "memory.high")), ("max", str(MIB)), "from a file")
        check = '{"memory":{"limit":4096,"checkBeforeUpdate":true}}'
        refused_oci(b.oci("update", "-r", "-", id, given=check), "memory.limit", "checkBeforeUpdate")
        refused_oci(b.oci("update", "--cpuset-cpus", "4000", id), "linux.resources.cpu.cpus")
        equal(b.status(id), "running", "status")


@test_with("controllers", "stats have memory pids and throttled time")
def _():
    with limited("while true; do :; done", memory={"limit": 64 * MIB}, cpu={"quota": 10000}, pids={"limit": 9}) as b:
        id = b.started()
        place_of(b, id)

        def stats():
            return json.loads(b.oci("events", "--stats", id).exits(0).out)["data"]

        wait_until(lambda: stats()["cpu"]["throttling"]["throttledTime"] > 0, "throttled time")
        data = stats()
        equal(data["memory"]["usage"]["limit"], 64 * MIB, "memory limit")
        between(data["memory"]["usage"]["usage"], 1, 64 * MIB, "memory")
        true(data["memory"]["raw"]["anon"] > 0, "raw.anon is 0")
        equal(data["pids"], {"current": 1, "limit": 9}, "pids")


# --- systemd -----------------------------------------------------------------------------------


def systemctl(*args):
    manager = () if WHO == "root" else ("--user",)
    return subprocess.run(["systemctl", *manager, *args], capture_output=True, text=True, check=False, env=environment())


@test("without systemd a scope is refused and other paths are not taken for one")
def _():
    with Bundle() as b:
        b.save()
        b.linux["cgroupsPath"] = "machine.slice:test:x"
        refused_oci(b.create()[1], "--systemd-cgroup")
        b.linux["cgroupsPath"] = "/a/b"
        b.save()
        refused_oci(b.oci("--systemd-cgroup", "run", "--bundle", b.path, b.new_id()), "slice:prefix:name")
        if WHO == "root" and not os.path.exists("/run/systemd/system"):
            b.linux["cgroupsPath"] = "machine.slice:test:x"
            b.save()
            refused_oci(b.oci("--systemd-cgroup", "run", "--bundle", b.path, b.new_id()), "systemd", "--cgroup-manager cgroupfs")


@test("a user manager that has ended is missed only where a limit is asked for", who="user")
def _():
    with Bundle("echo hi") as b, socket.socket(socket.AF_UNIX) as listener:
        os.mkdir(b.folder("run") + "/systemd")
        listener.bind(b / "run/systemd/private")  # nobody listens
        env = environment(XDG_RUNTIME_DIR=b / "run")
        env.pop("DBUS_SESSION_BUS_ADDRESS", None)
        for wanted, said in ((None, "hi\n"), ({"pids": {"limit": 20}}, "")):
            b.linux["resources"] = wanted or {}
            b.save()
            done = b.oci("run", "--bundle", b.path, b.new_id(), env=env)
            if offers():  # this user has a cgroup without a manager
                done.exits(0).says("hi\n")
                continue
            equal((done.code == 0, done.out), (wanted is None, said), f"run ({done.err!r})")
            if wanted:
                contains(done.err, "systemd/private", "the reason")


def create_with_systemd(b, id):
    """The container keeps the streams, so they are a file."""
    words = [OCI, "--root", b.root, "--systemd-cgroup", "create", "--bundle", b.path, id]
    with open(b / "out", "wb+") as out:
        done = subprocess.run(words, env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)
        out.seek(0)
        equal(done.returncode, 0, f"create ({out.read()})")


@test("a container is in a scope of its slice and the scope ends with it", who="machine anybody", limit=120)
def _():
    if WHO == "container":
        raise Skip("the root of a user namespace has no manager here")
    resources = {"pids": {"limit": 20}, "memory": {"limit": 64 * MIB}}
    with limited("sleep 6000 & sleep 6000", **resources) as b:
        id = b.new_id()
        unit = f"cejailtest-{id}.scope"
        b.linux["cgroupsPath"] = f"cejail-test.slice:cejailtest:{id}"
        b.save()
        create_with_systemd(b, id)
        path = cgroup_of(b.state(id)["pid"])
        true(path.endswith(f"/cejail.slice/cejail-test.slice/{unit}/container"), path)
        equal((read(path, "pids.max"), read(path, "memory.max")), ("20", str(64 * MIB)), "limits")
        contains(systemctl("show", "-p", "Delegate,Slice", unit).stdout, "Delegate=yes", "the unit")
        b.oci("start", id).exits(0)
        wait_until(lambda: len(json.loads(b.oci("ps", "--format=json", id).exits(0).out)) == 2, "2 processes")
        b.oci("exec", id, "/bin/cat", "/proc/self/cgroup").exits(0).says("0::/\n")
        b.oci("pause", id).exits(0)
        b.oci("resume", id).exits(0)
        systemctl("daemon-reload")
        b.oci("update", "--pids-limit", "21", id).exits(0)
        equal(read(path, "pids.max"), "21", "pids.max after a reload and an update")
        b.delete(id, "--force").exits(0)
        true(not os.path.exists(os.path.dirname(path)), f"'{path}' is left")
        equal(systemctl("is-active", unit).stdout, "inactive\n", "the unit")
        create_with_systemd(b, id)
        b.delete(id, "--force").exits(0)
        for slice in ("cejail-test.slice", "cejail.slice"):
            systemctl("stop", slice)
