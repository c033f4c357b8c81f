# SPDX-License-Identifier: Apache-2.0
"""Many runs: one after another, at once, in one process that lives long, under room for a few namespaces only.
Every one has exactly one result, and what the caller and the host hold stays flat."""

import collections
import concurrent.futures
import json
import os
import random
import resource
import signal
import time

from internet import Internet
from scarce import *  # noqa: F403

# The ways a run ends: options, script, (status, exit status).
WAYS = (
    ((), "true", ("exited", 0)),
    ((), "echo out; echo err >&2; exit 3", ("exited", 3)),
    ((), "kill -9 $$", ("signaled", 137)),
    (("-t", "100ms"), "sleep 6000", ("timeout", 124)),
    (("--max-output", "1K", "--on-output-limit", "kill"), "yes", ("output_limit", 137)),
    ((), "sleep 6000 & sleep 6000 & echo x", ("exited", 0)),
    (("-w", "/no/such/directory"), "true", ("setup_error", 125)),
)  # fmt: skip


def holdings():
    """What this process has: descriptors, children, mounts, memory in kB."""
    with open("/proc/self/status", encoding="ascii") as file:
        words = dict(line.split(":", 1) for line in file)
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = sum("/run/user/" not in line for line in file)  # they come and go with logins
    return {"descriptors": len(os.listdir("/proc/self/fd")), "children": len(children_of(os.getpid())), "mounts": mounts,
            "threads": int(words["Threads"])}  # fmt: skip


def holds_no_more(before):
    """What ended last may have to be collected, which descendants() does.  A thread of an earlier test may end, too."""
    try:
        wait_until(lambda: not descendants() and all(now <= before[name] for name, now in holdings().items()), "the caller to hold what it held")
    except Failure:
        equal(holdings(), before, "what the caller holds")


def one(i, **options):
    more, script, wanted = WAYS[i % len(WAYS)]
    done = run("--json", "-p", "base", "--network", "none", *more, "--", "/bin/sh", "-c", script, limit=120, **options)
    value = parse_result(done.out, done)
    true((value["status"], done.code) == wanted or value["status"] == wanted[0] == "output_limit",
         f"run {i}: {value['status']} {done.code}, expected {wanted} ({done!r})")  # fmt: skip
    return value["id"]


@test("one run after another: each has its one result, and nothing grows", limit=900)
def _():
    one(0)
    count, before = 1000 if LONG and not MACHINE else 10 if MACHINE else share(100), holdings()
    ids = {one(i) for i in range(count)}
    tried(count)
    equal(len(ids), count, "different ids")
    holds_no_more(before)


@test("many runs at once: each has its one result, and nothing is left", limit=900)
def _():
    count = 200 if LONG and not MACHINE else 6 if MACHINE else share(50)
    before = holdings()
    words = [("run", "--json", "-p", "base", "--network", "none", "-t", scaled(600), *WAYS[i % 3][0], "--", "/bin/sh", "-c", WAYS[i % 3][1])
             for i in range(count)]  # fmt: skip
    running = [start(*one) for one in words]
    ended = [finish(process, 300, args=one) for process, one in zip(running, words)]
    tried(count)
    bad = []
    for i, done in enumerate(ended):
        value = parse_result(done.out, done)
        if (value["status"], done.code) != WAYS[i % 3][2]:
            bad.append((value["status"], done.code, value["error"]))
    equal(bad[:3], [], f"{len(bad)} of {count} runs that did not end as they should")
    del running, ended
    holds_no_more(before)


@test("waves of runs that are cancelled, killed and left alone in any order leave nothing", limit=900)
def _():
    dice = random.Random(4)
    before = inventory()
    for _ in range(20 if LONG else 3):
        running = [start("run", "--json", "-p", "base", "--network", "none", "-t", scaled(20), "--", "/bin/sh", "-c", "echo x; sleep 0.3")
                   for _ in range(4 if MACHINE else share(20))]  # fmt: skip
        fates = [dice.choice((signal.SIGTERM, signal.SIGINT, signal.SIGKILL, None)) for _ in running]
        for process, fate in zip(running, fates):
            time.sleep(dice.random() * 0.03 * SLOW)  # not to wait for something: to hit it in between
            if fate:
                process.send_signal(fate)
        for process, fate in zip(running, fates):
            done = finish(process, 60)
            tried()
            if fate != signal.SIGKILL and done.code >= 0:
                true(parse_result(done.out, done)["status"] in ("exited", "cancelled"), f"{fate}: {done!r}")
    wait_until(lambda: not descendants(), "the end of every process", 5)
    cejail("gc").exits(0)
    equal(what_is_left(before), [], "left after gc")


KINDS = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")


@test("in a user namespace with room for a few namespaces there is no end of runs: each gives all of them back", limit=900)
def _():
    """The kernel counts what has been made and not yet freed, wherever it is held."""
    count, room = (1000 if LONG and not MACHINE else 24 if MACHINE else share(80, 60)), 40 if not MACHINE else 20
    script = f"""
mount -t tmpfs none /dev/shm || exit 97
for kind in {' '.join(KINDS)}; do echo {room} > /proc/sys/user/max_${{kind}}_namespaces || exit 98; done
i=0
while [ $i -lt {count} ]; do
	# the kernel gives some back a moment later; what leaks never comes back
	"$@" run -q -p base --network none -- /bin/true || {{ sleep {2 * SLOW}; "$@" run -q -p base --network none -- /bin/true; }} || exit 99
	i=$((i+1))
done
echo fine"""
    # -r: the sysctls of a user namespace are its root's; the host's uid 0 is never mapped into a jail
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"] if WHO == "root" else []
    ids = ["--map-user=1000", "--map-group=1000", "--keep-caps"] if WHO == "container" else ["-r"]
    done = subprocess.run([*nobody, "unshare", "-Um", *ids, "/bin/sh", "-c", script, "sh", CEJAIL], env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=600 * SLOW, check=False)  # fmt: skip
    tried(count)
    equal((done.returncode, done.stdout), (0, b"fine\n"), f"exit status and stdout ({done.stderr[-600:]!r})")


@test("a user's keys are given back: runs go on past the quota of keys", limit=300)
def _():
    """root_maxkeys is large; an ordinary user's 200 would be used up by 200 runs that leak one."""
    def mine():
        with open("/proc/key-users", encoding="ascii") as file:
            rows = {int(line.split(":")[0]): int(line.split()[3].split("/")[0]) for line in file}
        return rows.get(os.geteuid(), 0)

    sh("true", "--network", "none").exits(0)
    before = mine()
    count = 250 if LONG and not MACHINE else 10
    for _ in range(count):
        sh("true", "--network", "none").exits(0)
        tried()
    # other places' runs of this user have keys, too, at this moment
    wait_until(lambda: mine() <= before + count // 2, f"the number of keys to sink to {before}, and it is {mine()}", 10)


# --- with a network -----------------------------------------------------------------------------------------


@test("runs with a network, one after another, leave no link, route or table in the host", limit=900)
def _():
    count = 200 if LONG and not MACHINE else 3 if MACHINE else share(20)
    with Internet() as net:
        before = net.left()
        for _ in range(count):
            run("-q", "-p", "base", "--network", "public", "--", "/bin/true", limit=60, **net.inside).exits(0)
            tried()
        wait_until(lambda: net.left() == before, "the host to be as it was", 8)


# --- one process that lives long ----------------------------------------------------------------------------


def caller(runs, every, together=1):
    """tests/system/pressure/caller.c: what it holds, line by line."""
    words = [f"{PROBES}/caller", str(runs), str(every), str(together)]
    process = subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done = finish(process, 600, args=words)
    lines = [json.loads(line) for line in done.out.splitlines()]
    equal((done.code, done.err), (0, ""), "exit status and stderr")
    tried(lines[-1]["runs"])
    return lines


def is_flat(lines):
    """Descriptors, children, threads and signals as at the start; memory as after the first rounds, when
    every table has its size."""
    for name in ("fds", "pidfds", "epolls", "threads", "children", "blocked"):
        equal({line[name] for line in lines}, {lines[0][name]}, f"{name} ({lines[-1]})")
    settled = lines[len(lines) // 3]
    true(lines[-1]["rss_kb"] - settled["rss_kb"] <= 256, f"memory grew: {[line['rss_kb'] for line in lines]} kB")
    true(lines[-1]["mappings"] - settled["mappings"] <= 2, f"mappings grew: {[line['mappings'] for line in lines]}")


@test("a process that uses the engine again and again stays as it is: descriptors, children, memory", limit=900)
def _():
    runs = 1000 if LONG and not MACHINE else 24 if MACHINE else share(160)
    is_flat(caller(runs, runs // 8))


@test("a process with many jails at once gives all of them back", limit=900)
def _():
    together = 50 if LONG and not MACHINE else 4 if MACHINE else share(16)
    is_flat(caller(6 * together, together, together))
