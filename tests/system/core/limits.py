# SPDX-License-Identifier: Apache-2.0
"""Limits: each holds here, by what the result says it holds; on the test machine that is cgroup v2."""

import os
import shutil
import subprocess

from harness import *  # noqa: F403


@test("every limit of the result names what enforces it")
def _():
    limits = facts()["limits"]
    for name in ("memory", "cpus", "pids", "wall", "disk", "nofile", "output"):
        true(name in limits, f"no limit '{name}' in {sorted(limits)}")
        true(limits[name]["by"] in ("cgroup", "rlimit", "supervisor", "tmpfs", "none"), f"{name}: {limits[name]}")
        if name != "cpus":  # a slow machine needs more than a processor's share even for this
            # setrlimit(2) counts no refusals
            equal(limits[name]["hit"], None if limits[name]["by"] == "rlimit" else False, f"{name} hit")


@test("cgroup v2 enforces memory, CPU and pids where the test host must have it")
def _():
    if EXPECTED != "cgroup":
        return
    for name in ("memory", "cpus", "pids"):
        equal(facts()["limits"][name]["by"], "cgroup", f"limits.{name}.by")
    equal(facts()["layers"]["cgroup"], "on", "layers.cgroup")


@test("limits and layers that this host lacks are warnings in the result, and one line on standard error that names 'cejail doctor'")
def _():
    weak = [n for n, limit in facts()["limits"].items() if n in ("memory", "cpus", "pids") and limit["by"] != "cgroup"]
    weak += [n for n, state in facts()["layers"].items() if state == "absent"]
    equal(bool(facts()["warnings"]), bool(weak), f"warnings {facts()['warnings']} for {weak}")
    done = sh("true", "--network", "none").exits(0)
    equal(len(done.err.splitlines()), 1 if weak else 0, f"lines on stderr {done.err!r}")
    equal("'cejail doctor'" in done.err, bool(weak), f"the remedy in {done.err!r}")
    said = sh("true", "--network", "none", "-v").exits(0).err
    for sentence in facts()["warnings"]:
        contains(said, sentence, "stderr with -v")


@test("a weakness that --accept-weaker or a profile accepts is in the result and not on standard error; --strict still refuses it")
def _():
    names = sorted({warning.split(":")[0] for warning in facts()["warnings"]})
    given = [word for name in names for word in ("--accept-weaker", name)]
    done = run("--json", "-p", "base", "--network", "none", *given, "--", "true")
    equal(done.err, "", "standard error")
    equal(len(parse_result(done.out)["warnings"]), len(facts()["warnings"]), "warnings in the result")
    if names:
        refused(sh("true", "--network", "none", "--strict", *given), "--strict")
    with Folder() as f:
        os.makedirs(f / "cejail/profiles")
        f.file("cejail/profiles/base.json", json.dumps({"extends": "base", "accept_weaker": names}))
        done = python("print(1)", "--network", "none", env=environment(XDG_CONFIG_HOME=f.path)).says("1\n")
        equal(done.err, "", "standard error with a base profile of the user")
    refused(sh("true", "--accept-weaker", "luck"), "--accept-weaker", "'luck'", "limits, landlock")


@test("--strict refuses a run if cgroup v2 does not enforce a limit, and names the limit")
def _():
    done = sh("echo ran", "--strict")
    if facts()["warnings"]:
        refused(done, "strict")
    else:
        done.exits(0).says("ran\n")


@test("a memory bomb has the status oom, and the result says what enforces the limit", limit=90)
def _():
    value = probe_result("load", "memory", "400", options=("-m", "64M", "-t", scaled(30)), limit=60)
    by = "cgroup" if is_held_by_cgroup("memory") else "supervisor"
    equal((value["status"], value["limits"]["memory"]["by"]), ("oom", by), "status and by")
    equal(value["limits"]["memory"]["hit"], True, "hit")
    if by == "cgroup":
        between(value["usage"]["memory_peak_bytes"], 60 << 20, 65 << 20, "peak")


FORKS = """
import os, time
memory = bytearray(os.urandom(1 << 20) * {mib})
for i in range({children}):
    idle, child = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(idle)
        {do}
        os.write(child, b"x")
        time.sleep(1000)
    os.read(idle, 1)
    while " S " not in open(f"/proc/{{pid}}/stat").read():  # it sleeps before the next one is made
        time.sleep(0.01)
time.sleep(0.5)
print("fine")
"""


@test("memory that idle processes share by fork counts once, also where no cgroup counts", limit=90)
def _():
    value = result("-p", "python", "-m", "256M", "-t", scaled(60), "-c", FORKS.format(mib=60, children=10, do="pass"))
    equal((value["status"], value["stdout"].get("text")), ("exited", "fine\n"), f"how it ended: {value['usage']}")
    true(value["usage"]["memory_peak_bytes"] > 60 << 20, f"the peak {value['usage']}")


@test("memory that processes have written since they were forked counts for each", limit=90)
def _():
    code = FORKS.format(mib=60, children=10, do="memory[::4096] = bytes(len(memory) // 4096)")
    equal(result("-p", "python", "-m", "256M", "-t", scaled(60), "-c", code)["status"], "oom", "status")


@test("an oom ends with 137")
def _():
    probe("load", "memory", "400", options=("-m", "64M", "-t", scaled(30)), limit=60).exits(137)


@test("interpreters that need more than --memory are oom, not an error of their own", limit=90)
def _():
    python_code = "held = [bytearray(1 << 20) for _ in range(400)]; import time; time.sleep(30)"
    equal(result("-p", "python", "-m", "64M", "-t", scaled(30), "-c", python_code)["status"], "oom", "Python's status")
    if shutil.which("node", path="/usr/bin:/bin"):
        node_code = "const held = []; for (;;) held.push(Buffer.alloc(1 << 20, 1));"
        equal(result("-p", "node", "-m", "128M", "-t", scaled(30), "-c", node_code)["status"], "oom", "node's status")


@test("address space that is reserved and not used does not count as memory")
def _():
    probe("load", "reserve", "15000000", options=("-m", "64M",)).exits(0).says("reserved 15000000 MiB\n")


@test("where only samples count, hit is null for a process that grew above the limit by the files that it maps")
def _():
    code = "import mmap; f = open('big', 'rb'); print(sum(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[::4096]))"
    with Folder("/var/tmp") as f:  # on a disk: pages of a tmpfs are shared memory
        options = ("-p", "python", "-m", "48M", "--ro-bind", f.file("big", bytes(64 << 20)) + ":/box/big")
        value = result(*options, "-c", code)
    equal((value["status"], value["stdout"]["text"]), ("exited", "0\n"), "status and stdout")
    equal(value["limits"]["memory"]["hit"], False if is_held_by_cgroup("memory") else None, "hit")


@test("a child of vfork that has not called execve yet counts its parent's memory once")
def _():
    value = probe_result("load", "vfork", "40", "300", options=("-m", "64M", "-t", scaled(30)))
    equal((value["status"], value["exit_code"]), ("exited", 0), "status")


@test("--memory limits all processes together", limit=90)
def _():
    value = probe_result("load", "family", "240", "4", options=("-m", "96M", "-t", scaled(30)), limit=60)
    equal(value["status"], "oom", "status")
    equal(value["limits"]["memory"]["hit"], True, "hit")


@test("memory counts shared memory, too", limit=90)
def _():
    value = probe_result("load", "shm", "300", options=("-m", "64M", "--disk", "1G", "-t", scaled(30)), limit=60)
    equal(value["status"], "oom", "status")


@test("a memfd is counted by the cgroup, and denied without a cgroup", limit=90)
def _():
    value = probe_result("load", "memfd", "300", options=("-m", "64M", "--disk", "1G", "-t", scaled(30)), limit=60)
    if value["limits"]["memory"]["by"] == "cgroup":
        equal(value["status"], "oom", "status")
    else:
        contains(value["stdout"]["text"], "refused: ", "stdout")


@test("memory counts files in the jail, too", limit=90)
def _():
    value = probe_result("load", "disk", "/tmp/f", "300", options=("-m", "64M", "--disk", "1G", "-t", scaled(30)), limit=60)
    equal(value["status"], "oom", "status")


@test("a program within its limits runs")
def _():
    probe("load", "memory", "40", options=("-m", "64M",)).exits(0).says("held 40 MiB\n")


@test("a fork bomb is limited to --pids-limit processes")
def _():
    value = probe_result("load", "processes", "500", options=("--pids-limit", "20"))
    words = value["stdout"]["text"].split()
    between(int(words[1]), 10, 20, "processes started")
    equal(words[2], "EAGAIN", "what fork said")
    by, hit = ("cgroup", True) if is_held_by_cgroup("pids") else ("rlimit", None)
    equal(value["limits"]["pids"], {**value["limits"]["pids"], "by": by, "hit": hit, "value": 20}, "pids")


@test("threads count as processes do")
def _():
    words = probe("load", "threads", "500", options=("--pids-limit", "20")).exits(0).out.split()
    between(int(words[1]), 10, 20, "threads started")


@test("a fork bomb of the shell ends at the timeout, and the host stays usable", limit=90)
def _():
    # one fork(2) of the first process's own: a second one could find no room
    done = sh("bomb() { bomb | bomb & }; bomb & exec sleep 6000", "-t", "2", "--pids-limit", "30", limit=60)
    equal(done.code, 124, "exit status")


@test("two busy loops share the CPU they are given", limit=120)
def _():
    if not is_held_by_cgroup("cpus"):
        return
    value = probe_result("load", "busy", "2", str(int(2000 * min(SLOW, 3))), options=("--cpus", "0.5", "-t", scaled(60)), limit=60)
    usage = value["usage"]
    share = (usage["cpu_user_ms"] + usage["cpu_system_ms"]) / usage["wall_ms"]
    true(share < 0.9, f"the loops used {share} CPUs")  # beside other programs they may get less
    cpus = value["limits"]["cpus"]
    equal(cpus["by"], "cgroup", "by")
    true(cpus["hit"] or share < 0.45, f"not held back with {share} CPUs")


@test("a --cpus that does not bind never holds the same two loops back", limit=120)
def _():
    if not is_held_by_cgroup("cpus"):
        return
    # how much they get is up to the programs beside them
    value = probe_result("load", "busy", "2", "2000", options=("--cpus", "64", "-t", scaled(60)), limit=60)
    equal(value["limits"]["cpus"]["hit"], False, "hit")


@test("--cpu-time ends a busy program long before the wall clock")
def _():
    value = probe_result("load", "busy", "1", "60000", options=("--cpu-time", "500ms", "-t", scaled(55)), limit=59)
    equal(value["status"], "cpu_limit", "status")
    equal(value["limits"]["cpu_time"]["hit"], True, "hit")


@test("--cpu-time counts all processes together, and ends with 124")
def _():
    probe("load", "busy", "4", "60000", options=("--cpu-time", "1", "-t", scaled(55)), limit=59).exits(124)


@test("--cpu-time counts children that their parent disowns, too", limit=90)
def _():
    code = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    reader, writer = os.pipe()
    if os.fork() == 0:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)  # its end closes the pipe: one child at a time, however slow the machine is
    os.close(reader)
"""
    value = result("-p", "python", "--cpu-time", "2s", "-t", scaled(80), "-c", code, limit=90)
    equal(value["status"], "cpu_limit", "status")


@test("--cpu-time counts children of a few milliseconds that their parent disowns", limit=120)
def _():
    for ms, how in (("12", "ignore"), ("2", "nocldwait")):
        count = str(12000 // int(ms))  # twelve seconds of CPU time
        options = ("--cpu-time", "2s", "-t", scaled(110))
        value = probe_result("load", "disown", ms, count, how, options=options, limit=120)
        equal(value["status"], "cpu_limit", f"status with children of {ms} ms, {how}")


@test("children that are waited for cost their own CPU time and no more", limit=120)
def _():
    count = 50 if SLOW >= 10 else 200  # an emulated processor starts four programs a second
    script = f"i=0; while [ $i -lt {count} ]; do /bin/true; (:); i=$((i + 1)); done; times"
    value = sh_result(script, "--cpu-time", "1h", "-t", scaled(110), limit=120)
    equal(value["status"], "exited", "status")
    minutes_seconds = [part.rstrip("s").split("m") for part in value["stdout"]["text"].split()]
    used_ms = sum(int(m) * 60000 + float(s) * 1000 for m, s in minutes_seconds)
    # what the shell does not see: the jail's own start
    start_ms = cpu_ms(sh_result("true"))
    between(cpu_ms(value), used_ms * 0.9 - 100, used_ms * 1.1 + 2 * start_ms + 100, "CPU time as the shell sees it, and as it is told")


def cpu_ms(value):
    return value["usage"]["cpu_user_ms"] + value["usage"]["cpu_system_ms"]


@test("sleeping costs no CPU time")
def _():
    # an emulated processor needs a second to start, and more while its host is busy
    limit = 2 if EXPECTED != "cgroup" else 10
    sh(f"sleep {limit + 1}; echo awake", "--cpu-time", str(limit)).exits(0).says("awake\n")


@test("--timeout ends the program, and the result says so")
def _():
    value = sh_result("sleep 6000", "-t", "400ms")
    equal((value["status"], value["limits"]["wall"]["hit"]), ("timeout", True), "status and hit")
    equal(value["limits"]["wall"]["by"], "supervisor", "by")
    true(value["usage"]["wall_ms"] >= 390, f"wall_ms {value['usage']['wall_ms']}")


@test("a program that ignores every signal is killed at its timeout")
def _():
    done = probe("behave", "deaf", options=("-t", f"{int(1000 * SLOW)}ms"))
    done.exits(124).says("deaf\n")


@test("--disk limits all writable places together")
def _():
    script = "for d in /box /tmp /dev/shm; do head -c 6000000 /dev/zero > $d/f 2>/dev/null; done; cat /box/f /tmp/f /dev/shm/f | wc -c"
    done = sh(script, "--disk", "8M")
    between(int(done.out), 4 << 20, 8 << 20, "bytes written in all")


@test("a full disk is ENOSPC for the program and does not end the run")
def _():
    words = probe("load", "disk", "/box/f", "100", options=("--disk", "8M",)).exits(0).out.split()
    between(int(words[1]), 4, 8, "MiB written")
    true(words[2] in ("ENOSPC", "EFBIG"), f"errno {words[2]}")


@test("files without contents are limited, too")
def _():
    words = probe("load", "inodes", "/tmp", "1000000", options=("--disk", "1M", "-t", scaled(30))).exits(0).out.split()
    equal(words[2], "ENOSPC", "errno")
    between(int(words[1]), 1, 200000, "files made")


@test("nothing outside the scratch can be filled")
def _():
    done = sh("for d in / /dev /etc /usr /proc /var /run; do (echo x > $d/fill) 2>/dev/null && echo $d; done; true")
    equal(done.exits(0).out, "", "places that took a file")


@test("--nofile limits open files")
def _():
    words = probe("load", "files", "1000", options=("--nofile", "64",)).exits(0).out.split()
    between(int(words[1]), 50, 64, "files opened")
    equal(words[2], "EMFILE", "errno")


@test("the result has the usage: wall and CPU time, memory and processes")
def _():
    value = probe_result("load", "family", "30", "3", options=("-m", "256M",))
    usage = value["usage"]
    true(usage["wall_ms"] > 0, f"usage {usage}")
    true(usage["cpu_user_ms"] + usage["cpu_system_ms"] > 0, f"usage {usage}")
    if is_held_by_cgroup("memory"):
        between(usage["memory_peak_bytes"], 30 << 20, 100 << 20, "memory_peak_bytes")


@test("the result of a run that reached a limit has the usage, too")
def _():
    for options, status in ((("-t", f"{int(700 * SLOW)}ms"), "timeout"), (("--cpu-time", "700ms", "-t", scaled(55)), "cpu_limit")):
        value = probe_result("load", "busy", "1", str(int(60000 * SLOW)), options=options, limit=59)
        equal(value["status"], status, "status")
        usage = value["usage"]
        true(usage["cpu_user_ms"] + usage["cpu_system_ms"] > 0, f"no CPU time with {options}")
        true(usage["memory_peak_bytes"] > 0, f"no memory_peak_bytes with {options}")


@test("a run of a few milliseconds has a memory peak, too")
def _():
    true(sh_result("true")["usage"]["memory_peak_bytes"] > 0, "no memory_peak_bytes")


@test("the jail's limit can't be raised or seen from inside: there is no cgroup file system")
def _():
    done = sh("ls /sys/fs/cgroup 2>&1; grep -c cgroup /proc/mounts; cat /proc/self/cgroup")
    lacks(done.out, "memory.max", "stdout")
    for line in done.out.splitlines():
        if line.startswith("0::"):
            equal(line, "0::/", "the cgroup as the jail sees it")


@test("an ordinary user's limits hold without any environment to find the user's systemd by", who="user")
def _():
    if EXPECTED != "cgroup":
        return
    bare = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
    value = parse_result(run("--json", "-p", "base", "--", "true", env=bare).exits(0).out)
    equal(value["limits"]["memory"]["by"], "cgroup", "limits.memory.by")


@test("an unusable --cgroup-parent is refused by name")
def _():
    refused(sh("true", "--cgroup-parent", "/no/such/cgroup"), "/no/such/cgroup")
    refused(sh("true", "--cgroup-parent", "/tmp"), "/tmp")


@test("--cgroup-parent is where the jail's cgroup is made, and it is empty again afterwards", who="root")
def _():
    if EXPECTED != "cgroup":
        return
    parent = "/sys/fs/cgroup/test-parent"
    os.mkdir(parent)
    try:
        with open(f"{parent}/cgroup.subtree_control", "w", encoding="ascii") as file:
            file.write("+memory +cpu +pids")
        process = start("run", "--id", "below", "--cgroup-parent", parent, "-p", "base", "--", "/bin/sleep", "6000")
        wait_until(lambda: os.path.exists(f"{parent}/cejail-below/cgroup.procs"), "the jail's cgroup")
        process.terminate()
        finish(process)
    finally:
        os.rmdir(parent)  # only an empty one can be removed


@test("processes that a cgroup above refuses are not blamed on --pids-limit", who="root", limit=90)
def _():
    if EXPECTED != "cgroup":
        return
    done = subprocess.run(
        ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "-p", "Delegate=yes", "-p", "TasksMax=20",
         CEJAIL, "run", "--json", "-p", "base", "--network", "none", "--pids-limit", "64", "-t", scaled(30),
         "-f", f"{PROBES}/load:/box/load", "--", "/box/load", "processes", "500"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * SLOW, check=False,
    )  # fmt: skip
    value = parse_result(done.stdout.decode())
    contains(value["stdout"]["text"], "EAGAIN", "stdout")
    true(value["limits"]["pids"]["hit"] is not True, f"pids {value['limits']['pids']}")
    contains(" ".join(value["warnings"]), "by a cgroup above this jail", "warnings")


@test("a jail can't have more than the service it runs in", who="root", limit=90)
def _():
    if EXPECTED != "cgroup":
        return
    done = subprocess.run(
        ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "-p", "Delegate=yes", "-p", "MemoryMax=100M",
         "-p", "MemorySwapMax=0", CEJAIL, "run", "--json", "-p", "base", "-m", "1G", "-t", scaled(30),
         "-f", f"{PROBES}/load:/box/load", "--", "/box/load", "memory", "300"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * SLOW, check=False,
    )  # fmt: skip
    value = parse_result(done.stdout.decode())
    lacks(value["stdout"]["text"], "held 300", "stdout")
    equal((value["status"], value["limits"]["memory"]["hit"]), ("oom", False), f"status, and whether at its own limit ({value.get('error')})")
    contains(" ".join(value["warnings"]), "memory ran out above this jail", "warnings")
