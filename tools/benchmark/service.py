# SPDX-License-Identifier: Apache-2.0
"""A service of our own on a socket of its own, and requests to it."""

import json
import os
import socket
import subprocess
import tempfile
import time

from .turns import PATH, milliseconds, percentile

START_S = 30  # for a pool with large preloads
QUEUE = 1024

# What waits for the request: nothing, a jail, a jail with an interpreter that has started, one with a
# fork of an interpreter, or a session with an interpreter.  A tier's keys in the pool ("N": so many jails), and in the profile.
TIERS = {
    "cold": ({"jails": 0, "interpreters": 0}, None),
    "jail": ({"jails": "N", "interpreters": 0}, None),
    "interpreter": ({"jails": 0, "interpreters": "N"}, {"zygote": False}),
    "zygote": ({"jails": 0, "interpreters": "N"}, {"zygote": True}),
    "repl": ({"repls": "N"}, None),
}


class NotMeasured(Exception):
    """Why the service could not be measured."""


def last_line(text):
    return (text.strip().splitlines() or ["no message"])[-1].strip()


class Service:
    """`with Service(...) as service:` runs one until the end of the block."""

    def __init__(self, bench, binary, profile, tier, jails, code):
        keys, self.warm = TIERS[tier]
        self.bench, self.binary, self.profile, self.tier, self.code = bench, binary, profile, tier, code
        self.pool = {key: jails if value == "N" else value for key, value in keys.items()}

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="service-", dir=self.bench.work)
        self.socket, self.runtime = f"{self.dir}/api.sock", f"{self.dir}/runtime"
        os.mkdir(self.runtime, 0o700)
        self.write_files()
        with open(f"{self.dir}/log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--config", f"{self.dir}/serve.json", "--socket", self.socket],
                env={"PATH": PATH, "XDG_RUNTIME_DIR": self.runtime, "XDG_CONFIG_HOME": self.dir, "HOME": self.dir},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        try:
            self.await_pool()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def write(self, name, value):
        path = f"{self.dir}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)

    def write_files(self):
        limits = {"concurrent": 16, "queued": QUEUE, "rate_per_minute": 0}
        self.write_profile()
        self.write("body", {"profile": "bench", "code": self.code})
        self.write("serve.json", {
            "pool": {"bench": self.pool}, "concurrency": 16, "queue": QUEUE, "queue_wait": "2m",
            "callers": {"default": limits, f"uid:{os.getuid()}": limits},
        })

    def write_profile(self):
        """A cejail that has no zygotes starts interpreters one by one in any case."""
        profile = {"extends": self.profile, "network": {"mode": "none"}}
        for warm in (self.warm, None):
            self.write("cejail/profiles/bench.json", {**profile, "warm": warm} if warm else profile)
            done = subprocess.run(
                [self.binary, "run", "--dry-run", "-p", f"{self.dir}/cejail/profiles/bench.json", "-c", "1"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
            if self.tier == "zygote" or not warm:
                break
        raise NotMeasured(last_line(done.stderr))

    def ready(self):
        """How many prepared jails wait; -1 while the service does not answer."""
        try:
            with socket.socket(socket.AF_UNIX) as caller:
                caller.settimeout(5)
                caller.connect(self.socket)
                caller.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = b""
                while piece := caller.recv(65536):
                    answer += piece
            health = json.loads(answer.partition(b"\r\n\r\n")[2])
            return sum(entry["ready"] for entry in health["pool"])
        except (OSError, ValueError, KeyError):
            return -1

    def await_pool(self):
        wanted = sum(self.pool.values())
        deadline = time.monotonic() + START_S + wanted
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise NotMeasured(self.last_words())
            if self.ready() >= wanted:
                break
            time.sleep(0.02)
        else:
            raise NotMeasured(f"the pool is not full after {START_S} s: {self.last_words()}")
        if self.tier == "zygote" and "without a zygote" in self.log():
            raise NotMeasured(self.last_words())

    def log(self):
        with open(f"{self.dir}/log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def last_words(self):
        return last_line(self.log())

    def call(self, requests, callers=1, pause_ms=0, seconds=60):
        """So many requests, or as many as are answered in that time."""
        done = subprocess.run(
            [self.bench.tool("http"), self.socket, f"{self.dir}/body",
             str(requests), str(seconds), str(callers), str(pause_ms)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotMeasured(last_line(done.stderr))
        lines = [line.split() for line in done.stdout.splitlines()]
        _, total_us, refused, lost = lines.pop()
        if not lines:
            raise NotMeasured(f"no run succeeded: {refused} refused, {lost} lost; {self.last_words()}")
        return Answers([(int(a), int(b)) for a, b in lines], int(total_us), int(refused), int(lost))


class Answers:
    def __init__(self, runs, total_us, refused, lost):
        self.first_us = [first for first, _ in runs]
        self.whole_us = [whole for _, whole in runs]
        self.total_us, self.refused, self.lost = total_us, refused, lost
        self.rate = len(runs) * 1e6 / total_us

    def latencies(self):
        """The columns of a row."""
        return {
            "first_ms": milliseconds(percentile(self.first_us, 50)),
            "first_p99_ms": milliseconds(percentile(self.first_us, 99)),
            "whole_ms": milliseconds(percentile(self.whole_us, 50)),
            "whole_p99_ms": milliseconds(percentile(self.whole_us, 99)),
            "refused": self.refused,
            "lost": self.lost,
        }


# --- memory ---------------------------------------------------------------------------------------


def tree(pid):
    """A process and all below it."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += tree(int(child))
    except OSError:
        pass  # it has ended
    return found


def kib(pid, path, name):
    try:
        with open(f"/proc/{pid}/{path}", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(name + ":"))
    except OSError:
        return 0


def memory(pids):
    """(anonymous memory, page tables) in KiB; a page that several processes share counts once."""
    return (sum(kib(pid, "smaps_rollup", "Pss_Anon") for pid in pids),
            sum(kib(pid, "status", "VmPTE") for pid in pids))
