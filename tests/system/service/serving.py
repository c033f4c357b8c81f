# SPDX-License-Identifier: Apache-2.0
"""The service's own life: start, reload, drain, end; and that a crash leaves nothing."""

import json
import os
import signal
import socket
import subprocess
import time

from harness import *  # noqa: F403
from harness import CEJAIL
from service import Service, gone


class Manager:
    """What systemd is to a service: the socket of sd_notify(3)."""

    def __init__(self, folder):
        self.path = folder / "notify"
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        os.chmod(self.path, 0o777)
        self.sock.settimeout(20 * SLOW)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def await_word(self, word):
        end = time.monotonic() + 20 * SLOW
        seen = []
        while time.monotonic() < end:
            message = self.sock.recv(4096).decode()
            seen.append(message)
            if word in message:
                return message
        raise Failure(f"'{word}' did not come; {seen}")

    def heard(self):
        """All that has come meanwhile."""
        said = []
        self.sock.setblocking(False)
        try:
            while True:
                said.append(self.sock.recv(4096).decode())
        except BlockingIOError:
            self.sock.settimeout(20 * SLOW)
        return "\n".join(said)


@test("systemd gets READY=1 only after a successful probe, and notices of reload and end")
def _():
    with Folder() as f, Manager(f) as manager:
        with Service(env={"NOTIFY_SOCKET": manager.path}, ready=False) as s:
            manager.await_word("READY=1")
            equal(s.get("/readyz").has(200).json["probe"]["status"], "exited", "the probe")
            s.signal(signal.SIGHUP)
            contains(manager.await_word("RELOADING=1"), "MONOTONIC_USEC=", "the reload")
            manager.await_word("READY=1")
            s.signal(signal.SIGTERM)
            manager.await_word("STOPPING=1")


@test("systemd is notified how long a drain may take, and of no reload after that", limit=90)
def _():
    with Folder() as f, Manager(f) as manager:
        config = {"drain": "100s", "pool": {"base": {"jails": 1}}, "audit": {"file": f / "log"}}
        with Service(config=config, env={"NOTIFY_SOCKET": manager.path}) as s:
            manager.await_word("READY=1")
            first = s.background(s.sh, "sleep 6000", id="first")
            s.await_state("first", "running")
            s.signal(signal.SIGTERM)
            told = dict(line.split("=", 1) for line in manager.await_word("STOPPING=1").splitlines())
            true(int(told["EXTEND_TIMEOUT_USEC"]) > 100 * 1000000, f"it says {told}")
            os.rename(f / "log", f / "log.1")
            s.signal(signal.SIGHUP)
            wait_until(lambda: "the configuration is not reloaded" in s.said(), "the signal to be heard")
            lacks(s.said(), "configuration reloaded", "the log")
            s.call("DELETE", "/v1/runs/first").has(202)
            first.finish(20).has(200)
            with open(f / "log", encoding="ascii") as file:
                contains(file.read(), '"cancelled"', "the new file of the record")
            equal(await_exit(s.process, 20), 0, "exit status")
            for word in ("READY=1", "RELOADING=1"):
                lacks(manager.heard(), word, "what systemd was told")


@test("the event loop sends WATCHDOG=1")
def _():
    with Folder() as f, Manager(f) as manager:
        env = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000"}
        with Service(env=env, ready=False):
            for _ in range(3):
                manager.await_word("WATCHDOG=1")


@test("a service whose probe fails does not say that it is ready")
def _():
    with Folder() as f, Manager(f) as manager:
        f.file("config/cejail/profiles/broken.json", '{"extends": "base", "workdir": "/no/such/place"}')
        env = {"NOTIFY_SOCKET": manager.path, "XDG_CONFIG_HOME": f / "config"}
        with Service(config={"probe_profile": "broken"}, env=env, ready=False) as s:
            wait_until(lambda: s.is_ready(503) and s.get("/readyz").json["probe"]["status"], "the probe")
            s.signal(signal.SIGHUP)  # nor when it reads its configuration again
            wait_until(lambda: "configuration reloaded" in s.said(), "the reload")
            s.get("/livez").has(200)  # a turn of the loop later
            lacks(manager.heard(), "READY=1", "what systemd was told")
            f.file("config/cejail/profiles/broken.json", '{"extends": "base"}')
            s.signal(signal.SIGHUP)
            manager.await_word("READY=1")


@test("SIGTERM: running runs may end, new ones are refused, those past the drain time are cancelled and answered", limit=90)
def _():
    with Service(config={"drain": f"{3 * SLOW:.0f}s"}) as s:
        short = s.background(s.sh, f"sleep {min(SLOW, 10)}; echo done", id="short")
        long = s.background(s.sh, "echo begun; sleep 600", id="long", timeout="600s")
        s.await_state("short", "running")
        s.await_state("long", "running")
        s.signal(signal.SIGTERM)
        wait_until(lambda: s.get("/readyz").status == 503, "the drain")
        s.sh("true").has(503, "draining")
        equal(short.finish().result["stdout"]["text"], "done\n", "the short one's output")
        value = long.finish(20).result
        equal((value["status"], value["stdout"]["text"]), ("cancelled", "begun\n"), "the long one")
        equal(await_exit(s.process, 20), 0, "exit status")
        true(not os.path.exists(s.socket), "the socket's name is still there")


@test("a second SIGTERM ends it now, and every caller is answered")
def _():
    with Service(config={"drain": "1h"}) as s:
        first = s.background(s.sh, "sleep 3000", id="first", timeout="2000s")
        s.await_state("first", "running")
        s.signal(signal.SIGTERM)
        wait_until(lambda: s.get("/readyz").status == 503, "the drain")
        s.signal(signal.SIGTERM)
        await_exit(s.process, 20)
        equal(first.finish(10).result["status"], "cancelled", "the result's status")


@test("SIGHUP reloads the configuration; a bad one is refused and the old one stays")
def _():
    me = f"uid:{os.geteuid()}"
    with Service(config={"callers": {me: {"profiles": ["base"]}}}) as s:
        s.run("1").has(403, "forbidden_profile")
        s.write_config({"callers": {me: {"profiles": ["base", "python"]}}})
        s.signal(signal.SIGHUP)
        wait_until(lambda: s.run("1").status == 200, "the new configuration")
        for bad in ("{", '{"queue": -1}', '{"unknown": 1}', '{"callers": {"uid:0": {"memory": "lots"}}}'):
            s.folder.file("serve.json", bad)
            before = len(s.said())
            s.signal(signal.SIGHUP)
            wait_until(lambda: "serve.json" in s.said()[before:], f"a line about {bad!r}")
            s.run("1").has(200)


@test("running runs survive a reload")
def _():
    with Service() as s:
        first = s.background(s.sh, f"sleep {min(SLOW, 10)}; echo done", id="first")
        s.await_state("first", "running")
        s.signal(signal.SIGHUP)
        equal(first.finish().result["stdout"]["text"], "done\n", "stdout")


def crash(s, victim):
    """Kills one process of the service in the middle of a run; what was alive then."""
    first = s.background(s.sh, "sleep 61 & sleep 62", id="first")
    s.await_state("first", "running")
    s.await_sleep()
    alive = s.workers()
    names = {pid: describe_process(pid) or "" for pid in alive}
    chosen = s.process.pid if victim == "server" else next(pid for pid in alive if victim in names[pid])
    os.kill(chosen, signal.SIGKILL)
    return first, alive


@test("kill -9 of the server ends the spawner, the workers and everything in their jails", limit=90)
def _():
    with Service(config={"pool": {"base": {"jails": 2}}}) as s:
        _, alive = crash(s, "server")
        s.process.wait()
        wait_until(lambda: gone(alive), "everything to be gone", 25)
        s.start()  # sweeps, and takes the socket over
        equal(s.sh("echo again").result["stdout"]["text"], "again\n", "stdout")


@test("kill -9 of the spawner leaves nothing running, and every caller gets an answer", limit=90)
def _():
    with Service() as s:
        first, alive = crash(s, "cejail-spawner")
        wait_until(lambda: gone(set(alive)), "its workers to be gone", 25)
        reply = first.finish(30)
        true(reply.status in (200, 500), f"the answer is {reply!r}")
        await_exit(s.process, 20)  # it ends, too: who started it starts it anew
        s.start()
        equal(s.sh("echo again").result["stdout"]["text"], "again\n", "stdout")


@test("kill -9 of a worker ends its jail, its caller is told, the others go on", limit=90)
def _():
    with Service(config={"pool": {"python": {"jails": 0, "interpreters": 0}}}) as s:  # no workers but the runs'
        other = s.background(s.sh, f"sleep {3 * min(SLOW, 7)}; echo other", id="other")
        s.await_state("other", "running")
        s.await_sleep()
        before = set(s.workers())
        first = s.background(s.sh, "sleep 61 & sleep 62", id="first")
        s.await_sleep(besides=before)
        new = set(s.workers()) - before
        worker = next(pid for pid in new if "cejail-worker" in (describe_process(pid) or ""))
        os.kill(worker, signal.SIGKILL)
        reply = first.finish(20)
        reply.has(500, "internal")
        lacks(reply.body.decode(), "/", "the message")
        wait_until(lambda: gone(new), "its jail to be gone", 15)
        equal(other.finish().result["stdout"]["text"], "other\n", "the other one")
        s.sh("true").has(200)  # each run sweeps up what killed ones left


@test("bad options and a bad configuration are one line, and nothing is started")
def _():
    with Folder() as f:
        socket_path = f / "s"
        for config, word in (("{", "serve.json:1"), ('{"queeu": 1}', "queeu"), ('{"concurrency": 0}', "concurrency"), ('{"pool": {"../x": {}}}', "pool")):
            path = f.file("serve.json", config)
            refused(cejail("serve", "--socket", socket_path, "--config", path), word)
        refused(cejail("serve", "--config", f / "nowhere"), "nowhere")
        refused(cejail("serve", "--no-such"), "--no-such")
        refused(cejail("serve", "--socket", f / "no/such/dir/s", "--config", f.file("c.json", "{}")), "no/such/dir")
        os.chmod(f.file("serve.json", "{}"), 0o666)
        refused(cejail("serve", "--socket", socket_path, "--config", f / "serve.json"), "serve.json")
        done = cejail("serve", "--check", "--config", f.file("good.json", "{}")).exits(0)
        true(done.out, "--check says nothing")


@test("serve --check names profiles that are not there, pools that a ceiling switches off, and a right that a row takes away")
def _():
    me = f"uid:{os.geteuid()}"
    config = {
        "pool": {"base": {"jails": 1}, "python": {"jails": 1}, "gone": {"jails": 1}},
        "probe_profile": "lost",
        "callers": {"default": {"profiles": ["base", "missing"]}, me: {"profiles": ["base", "python"], "memory": "32M", "network": "none"}, "uid:4242": {"profiles": ["python"], "timeout": "1s", "host_paths": True}},
    }
    with Folder() as f:
        path = f.file("serve.json", json.dumps(config))
        done = cejail("serve", "--check", "--config", path, limit=15)
        equal(done.code, 0, f"the exit status ({done.err})")
        wanted = {
            "warning: pool: there is no profile 'gone'", "warning: probe_profile: there is no profile 'lost'", "warning: callers: 'default': profiles: there is no profile 'missing'",
            f"warning: callers: '{me}' has a row without host_paths, so it may not name paths of the host; without a row it may",
            *(f"warning: pool: '{profile}' is not used for runs of caller '{me}': its ceilings (memory, network) are below what the profile gives, so each run needs a jail of its own" for profile in ("base", "python")),
            "the configuration is good",
        }  # fmt: skip
        equal(set(done.out.splitlines()), wanted, "what it says")
        good = f.file("good.json", json.dumps({"pool": {"base": {"jails": 1}}, "callers": {me: {"host_paths": True}}}))
        equal(cejail("serve", "--check", "--config", good, limit=15).out, "the configuration is good\n", "what it says of a good one")


@test("two services can't have one socket; a file that is no socket is left alone")
def _():
    with Service() as s:
        done = cejail("serve", "--socket", s.socket, "--config", s.folder / "serve.json", limit=15)
        refused(done, "api.sock")
        equal(s.get("/livez").status, 200, "the first one")
        path = s.folder.file("plain", "x")
        refused(cejail("serve", "--socket", path, "--config", s.folder / "serve.json", limit=15), "plain")
        with open(path, encoding="ascii") as file:
            equal(file.read(), "x", "the file")


@test("sockets that were opened beforehand are used")
def _():
    with Folder() as f:
        path = f / "handed.sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(64)
        fd = listener.fileno()
        script = f'exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve --config "$1"'
        config = f.file("c.json", '{"probe_interval": "1h"}')
        process = subprocess.Popen(["/bin/bash", "-c", script, CEJAIL, config], env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(fd,))
        try:
            s = Service()
            s.socket = path
            s.process = process
            wait_until(lambda: s.get("/readyz").status == 200, "the service", 20)
            equal(s.sh("echo x").result["stdout"]["text"], "x\n", "stdout")
        finally:
            process.terminate()
            equal(await_exit(process, 20), 0, "exit status")
            process.stderr.close()
            listener.close()
