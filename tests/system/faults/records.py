# SPDX-License-Identifier: Apache-2.0
"""Records of runs, and those who sweep them: rubbish in their place, records that name what isn't theirs, many
sweeps at once.  Records of dead runs are removed, other files stay, and living runs are never touched."""

import contextlib
import fcntl
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import threading

from harness import *  # noqa: F403

NONE = ("--network", "none")
PRECIOUS = "precious"


class Place:
    """Where our records are: root's is one for all, others have one of this test's own."""

    def __init__(self, folder):
        self.folder = folder
        root = WHO == "root"
        self.env = environment() if root else environment(XDG_RUNTIME_DIR=folder.path)
        self.runs = "/run/cejail/runs" if root else f"{folder.path}/cejail/runs"
        self("gc").exits(0)  # makes the directory

    def __call__(self, *words, **more):
        return cejail(*words, env=self.env, **more)

    def path(self, run_id):
        return f"{self.runs}/{run_id}.json"

    def sleeper(self, run_id):
        words = ("run", "--id", run_id, "-t", "5m", "-p", "base", *NONE, "--", "/bin/sh", "-c", "echo ready; read line; echo end")
        process = start(*words[:3], "-i", *words[3:], env=self.env, stdin=subprocess.PIPE)
        wait_until(lambda: b"ready" in process.stdout.read1(100), "the program's first word", 20)
        return process

    def is_well(self, process):
        """It was not touched: it still reads a line, and ends by itself."""
        done = finish(process, given=b"\n")
        equal((done.code, done.out), (0, "end\n"), f"a living run ({done.err})")

    def record(self, run_id):
        with open(self.path(run_id), encoding="utf-8") as file:
            return json.load(file)

    def forge(self, run_id, **changes):
        """As a run would have written it, but for these."""
        value = {"id": run_id, "profile": "base", "cgroup": "", "cgroup_inode": 0, "supervisor_pid": 0,
                 "supervisor_start": 0, "init_pid": 0, "started_ms": 1767323045678}  # fmt: skip
        with open(self.path(run_id), "w", encoding="utf-8") as file:
            json.dump(value | changes, file)


def start_of(pid):
    """In clock ticks since boot: proc_pid_stat(5)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[19])


@contextlib.contextmanager
def bystander():
    process = subprocess.Popen(["/bin/sleep", "300"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def gone(*paths):
    for path in paths:
        with contextlib.suppress(OSError):
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


# --- rubbish ---------------------------------------------------------------------------

TEXTS = {
    "empty": b"",
    "cut": b'{"id":"cut","profile":"ba',
    "binary": bytes(range(256)) * 4,
    "list": b"[]",
    "deep": b"[" * 4000,
    "other": b'{"id":"somebody","profile":"p","cgroup":"","cgroup_inode":0,"supervisor_pid":2,'
             b'"supervisor_start":1,"init_pid":3,"started_ms":4}',
    "numbers": b'{"id":"numbers","profile":"p","cgroup":"","cgroup_inode":-1,"supervisor_pid":1e9,'
               b'"supervisor_start":99999999999999999999,"init_pid":3,"started_ms":4}',
    "long": b" " * 100000,
}  # fmt: skip


@test("rubbish in place of records is swept or left alone, never followed, and no run minds it")
def _():
    with Folder() as f:
        place = Place(f)
        precious = f.file("precious.json", PRECIOUS)
        alive = place.sleeper("test-record-alive")
        swept = [place.path(f"test-rubbish-{name}") for name in TEXTS]
        for path, text in zip(swept, TEXTS.values()):
            with open(path, "wb") as file:
                file.write(text)
        with open(place.path("test-rubbish-huge"), "wb") as file:
            file.truncate(1 << 40)
        os.mkfifo(place.path("test-rubbish-fifo"))
        swept += [place.path("test-rubbish-huge"), place.path("test-rubbish-fifo")]
        stays = [place.path(f"test-rubbish-{name}") for name in ("link", "alive", "folder", "socket")]
        stays.append(f"{place.runs}/test-rubbish.txt")
        try:
            os.symlink(precious, stays[0])
            os.symlink(place.path("test-record-alive"), stays[1])
            os.mkdir(stays[2])
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(stays[3])
            f_text = open(stays[4], "w", encoding="ascii")
            f_text.close()

            lacks(place("ps").exits(0).out, "rubbish", "ps")
            place("run", "-p", "base", *NONE, "--", "/bin/true").exits(0)
            place("gc").exits(0)
            wait_until(lambda: not any(map(os.path.lexists, swept)), "the end of what could be a record", 2)
            equal([path for path in stays if not os.path.lexists(path)], [], "gone")
            with open(precious, encoding="ascii") as file:
                equal(file.read(), PRECIOUS, "the file a link leads to")
            place.is_well(alive)
            tried(len(swept) + len(stays))
        finally:
            gone(*stays, *swept)


@test("a record that belongs to another user, or that can't be read, does no harm", who="root")
def _():
    with Folder() as f:
        place = Place(f)
        ids = ("test-foreign-owner", "test-foreign-mode")
        for run_id in ids:
            place.forge(run_id, supervisor_pid=1, supervisor_start=1)
        os.chown(place.path(ids[0]), 65534, 65534)
        os.chmod(place.path(ids[1]), 0)
        for run_id in ids:
            true(place("kill", run_id).code != 0, "kill of a dead run said it worked")
        place("gc").exits(0)
        wait_until(lambda: not any(os.path.exists(place.path(one)) for one in ids), "the end of dead records", 2)


# --- what isn't theirs -------------------------------------------------------------------


@test("a record that names another's cgroup or folder takes neither with it")
def _():
    with Folder() as f:
        place = Place(f)
        alive = place.sleeper("test-record-alive")
        leaf = place.record("test-record-alive")["cgroup"]
        forged = [leaf] if leaf else []
        for root in cgroup_roots():
            forged += [root, f"{root}/cejail-test-forged-up/../cejail-test-forged-up"]
        folder = f.folder("cejail-test-forged")
        forged += [folder, "/", f.path, "cejail-test-forged", "/proc/self/cwd/cejail-test-forged"]
        for path, inode in itertools.product(forged, (0, 1, os.stat(folder).st_ino)):
            place.forge("test-forged", cgroup=path, cgroup_inode=inode)
            place("gc").exits(0)
            wait_until(lambda: not os.path.exists(place.path("test-forged")), "the end of a dead record", 2)
            tried()
        true(os.path.isdir(folder), "a folder that is no cgroup was removed")
        place.is_well(alive)


@test("kill signals no process but the one that wrote the record: the pid, its start and the lock must all fit")
def _():
    with Folder() as f, bystander() as other:
        place, run_id = Place(f), "test-reused-pid"
        right, wrong = start_of(other.pid), start_of(other.pid) - 1
        for start_time, is_locked in ((right, False), (wrong, False), (wrong, True), (0, True)):
            place.forge(run_id, supervisor_pid=other.pid, supervisor_start=start_time)
            with open(place.path(run_id), "rb") as file:
                if is_locked:
                    fcntl.flock(file, fcntl.LOCK_EX)
                refused(place("kill", run_id), run_id)
            equal(other.poll(), None, "a process that has nothing to do with it")
            tried()
        with open(place.path(run_id), "w", encoding="ascii"):
            pass
        place.forge(run_id, supervisor_pid=other.pid, supervisor_start=right)
        with open(place.path(run_id), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            place("kill", run_id).exits(0)  # so it was these that stopped it above
        equal(await_exit(other, 10), -signal.SIGTERM, "the end of the process")
        place("gc").exits(0)
        wait_until(lambda: not os.path.exists(place.path(run_id)), "the end of a dead record", 2)


@test("another user's gc sees none of our runs, and we none of his", who="root")
def _():
    with Folder() as f:
        place = Place(f)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        his = "/dev/shm/cejail-65534"
        was_there = os.path.exists(his)
        alive, dead = place.sleeper("test-record-alive"), place.sleeper("test-record-dead")
        dead.kill()
        finish(dead)
        try:
            done = cejail("gc", env=environment(), **nobody)
            done.exits(0)
            lacks(cejail("ps", env=environment(), **nobody).exits(0).out, "test-record", "his ps")
            refused(cejail("kill", "test-record-alive", env=environment(), **nobody), "test-record-alive")
            words = ("run", "-i", "--id", "test-record-his", "-t", "5m", "-p", "base", *NONE, "--", "/bin/sh", "-c", "echo ready; read line; echo end")
            process = start(*words, stdin=subprocess.PIPE, **nobody)
            wait_until(lambda: b"ready" in process.stdout.read1(100), "the program's first word", 20)
            lacks(place("ps").exits(0).out, "test-record-his", "our ps")
            refused(place("kill", "test-record-his"), "test-record-his")
            place("gc").exits(0)
            place.is_well(process)
            place.is_well(alive)
            wait_until(lambda: not os.path.exists(place.path("test-record-dead")), "the end of a dead record", 2)
        finally:
            if not was_there:
                shutil.rmtree(his, ignore_errors=True)


# --- many at once ---------------------------------------------------------------------------


@test("many gcs at once sweep what is dead once, and no living run")
def _():
    with Folder() as f:
        place = Place(f)
        alive = [place.sleeper(f"test-many-alive-{i}") for i in range(3)]
        dead = [place.sleeper(f"test-many-dead-{i}") for i in range(6)]
        for process in dead:
            process.kill()
            finish(process)
        wait_until(lambda: len(descendants()) <= 3 * len(alive), "the end of the killed runs' processes")
        sweeps = [start("gc", env=place.env) for _ in range(8)]
        removed = 0
        for sweep_process in sweeps:
            removed += int(re.fullmatch(r"removed (\d+)\n", finish(sweep_process).exits(0).out)[1])
            tried()
        left = [i for i in range(6) if os.path.exists(place.path(f"test-many-dead-{i}"))]
        equal(left, [], "dead records")
        true(removed <= 6 or WHO == "root", f"{removed} were removed, of 6")
        for process in alive:
            place.is_well(process)


@contextlib.contextmanager
def crowd(place, name, count):
    """The records of so many jails, whose supervisors seem to live: their locks are ours."""
    ids = [f"test-{name}-{number}" for number in range(count)]
    with contextlib.ExitStack() as locks:
        for run_id in ids:
            place.forge(run_id)
            file = locks.enter_context(open(place.path(run_id), "rb"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
        left = [run_id for run_id in ids if not os.path.exists(place.path(run_id))]
        for run_id in set(ids) - set(left):
            os.remove(place.path(run_id))
        equal(left, [], "records of living jails that were removed")


@test("beside hundreds of jails, one of the next few runs cleans up after a killed supervisor", limit=120)
def _():
    with Folder() as f:
        place = Place(f)
        with crowd(place, "before", 150):
            dead = place.sleeper("test-crowd-dead")
            with crowd(place, "after", 150):
                dead.kill()
                finish(dead)
                for _ in range(6):  # five times 64 records are all of them
                    place("run", "-p", "base", *NONE, "--", "/bin/true").exits(0)
                    tried()
            true(not os.path.exists(place.path("test-crowd-dead")), "its record is left")


@contextlib.contextmanager
def sweeping(place):
    """gc, again and again, until the end; yields a list of what went wrong and a counter."""
    over, problems, count = threading.Event(), [], itertools.count()

    def sweep_on():
        while not over.is_set():
            done = place("gc")
            next(count)
            if done.code != 0:
                problems.append(repr(done))

    threads = [threading.Thread(target=sweep_on) for _ in range(2)]
    for one in threads:
        one.start()
    try:
        yield problems
    finally:
        over.set()
        for one in threads:
            one.join()
    true(next(count) > 4, "there was next to no gc beside the runs")


@test("a gc beside it never takes a starting run's record or cgroup away: two hundred runs all succeed", limit=300)
def _():
    with Folder() as f:
        place = Place(f)
        with sweeping(place) as problems:
            for number in range(1000 if LONG else 40 if EMULATED else share(200)):
                name = ("--id", "test-again") if number % 2 else ()
                done = place("run", *name, "-p", "base", *NONE, "--", "/bin/sh", "-c", f"echo {number}")
                equal((done.code, done.out), (0, f"{number}\n"), f"run {number} ({done.err})")
                tried()
        equal(problems, [], "gc")


@test("an empty cgroup that no record names goes with gc, and one in use stays")
def _():
    with Folder() as f:
        place = Place(f)
        dead, alive = place.sleeper("test-nameless-dead"), place.sleeper("test-nameless-alive")
        leaves = [place.record(run)["cgroup"] for run in ("test-nameless-dead", "test-nameless-alive")]
        for run_id in ("test-nameless-dead", "test-nameless-alive"):
            os.remove(place.path(run_id))  # as when /run/user/UID goes away
        dead.kill()
        finish(dead)
        place("gc").exits(0)
        if all(leaves):
            wait_until(lambda: place("gc").exits(0) and not os.path.exists(leaves[0]), "the end of the cgroup", 3)
            true(os.path.exists(leaves[1]), "gc removed the cgroup of a living run")
        place.is_well(alive)


@test("the id of a killed run is free for the next, which takes its record and its cgroup over")
def _():
    with Folder() as f:
        place = Place(f)
        for _ in range(5):
            process = place.sleeper("test-same-name")
            process.kill()
            finish(process)
            wait_until(lambda: not descendants(), "the end of its processes", 2)
            done = place("run", "--id", "test-same-name", "-p", "base", *NONE, "--", "/bin/true")
            done.exits(0)
            true(not os.path.exists(place.path("test-same-name")), "its record is left")
            tried()
