# SPDX-License-Identifier: Apache-2.0
"""Sessions: a jail that stays and runs more than one program."""

import base64
import json
import os
import signal

import harness
from harness import *  # noqa: F403
from internet import *  # noqa: F403
from service import OTHER_UID, Service, as_uid

NDJSON = {"Accept": "application/x-ndjson"}
FOREVER = "sleep 1000"


class Session:
    """One session of a service; ended with the block, and then nothing of it is left."""

    def __init__(self, service, **more):
        self.service = service
        answer = service.call("POST", "/v1/sessions", {"profile": "base", "network": "none", **more}).has(201).json
        self.id, self.first = answer["id"], answer
        self.path = f"/v1/sessions/{self.id}"

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        if self.show()["state"] != "ended":
            ended = self.call("DELETE", "").has(200).json
            equal((ended["state"], ended["reason"]), ("ended", "closed"), "the end")

    def call(self, method, path, body=None, headers=None):
        return self.service.call(method, self.path + path, body, headers)

    def show(self):
        return self.call("GET", "").has(200).json

    def post(self, script, headers=None, **more):
        return self.call("POST", "/execs", {"command": ["/bin/sh", "-c", script], **more}, headers)

    def sh(self, script, **more):
        """The result of an exec."""
        value = self.post(script, **more).result
        equal(value["session"], self.id, "the session in the result")
        return value

    def says(self, script, text, **more):
        value = self.sh(script, **more)
        equal((value["status"], value["stdout"]["text"]), ("exited", text), f"{script}: {value['stderr']}")
        return value

    def start(self, script, **more):
        """An exec that goes on: its id."""
        answer = self.post(script, detach=True, **more).has(202).json
        return answer["id"]

    def exec(self, name, wait=None):
        return self.call("GET", f"/execs/{name}" + (f"?wait={wait}" if wait else "")).has(200).json

    def finished(self, name):
        value = harness.wait_until(
            lambda: (lambda x: x if x["state"] == "finished" else None)(self.exec(name, "30s")), f"exec {name} to finish", 30
        )
        return value["result"]

    def await_file(self, name):
        wait_until(lambda: self.call("GET", f"/files{name}").status == 200, f"the program to write {name}", 30)

    def await_end(self, reason):
        value = wait_until(lambda: (lambda v: v if v["state"] == "ended" else None)(self.show()), "the session's end", 30)
        equal(value["reason"], reason, "why it ended")
        return value

    def put(self, path, content, query=""):
        return self.call("PUT", f"/files{path}{query}", content, {"Content-Type": "application/octet-stream"})

    def get(self, path):
        return self.call("GET", f"/files{path}")


def keepers(s):
    return [pid for pid in s.workers() if "cejail-session" in (describe_process(pid) or "")]


# --- execs ----------------------------------------------------------------------------


@test("execs of a session share its files, and each has its own result")
def _():
    with Service() as s, Session(s) as session:
        equal((session.first["state"], session.first["execs"]), ("live", 0), "a new session")
        session.says("echo kept > /box/a; echo first", "first\n")
        session.says("cat /box/a", "kept\n")
        value = session.sh("echo no >&2; exit 3")
        equal((value["exit_code"], value["stdout"]["text"], value["stderr"]["text"]), (3, "", "no\n"), "its own end")


@test("a prepared jail of the pool becomes a session, and one with other settings is made for it")
def _():
    with Service(config={"pool": {"base": {"jails": 1}}}) as s:
        for more in ({}, {"memory": "64M"}):
            body = {"profile": "base", **more}
            session = s.call("POST", "/v1/sessions", body).has(201).json
            answer = s.call("POST", f"/v1/sessions/{session['id']}/execs", {"command": ["/bin/echo", "x"]}).result
            equal(answer["stdout"]["text"], "x\n", "its output")
            if more:
                equal(answer["limits"]["memory"]["value"], 64 << 20, "its memory limit")


@test("execs run at the same time, and each has its own output and its own end")
def _():
    with Service(config={"concurrency": 8}) as s, Session(s) as session:
        # each of them waits until all have begun
        script = "echo {n}; touch /tmp/begun.{n}; while [ $(ls /tmp | grep -c begun) -lt 6 ]; do sleep 0.05; done; exit {n}"
        running = [s.background(session.sh, script.format(n=n)) for n in range(6)]
        for n, one in enumerate(running):
            value = one.finish()
            equal((value["exit_code"], value["stdout"]["text"]), (n, f"{n}\n"), f"exec {n}")


@test("programs that run at the same time have different files for their code")
def _():
    with Service(config={"concurrency": 4}) as s, Session(s, profile="python") as session:
        code = (
            "import os, time\nopen(f'/tmp/begun.{N}', 'w').close()\n"
            "while sum(name.startswith('begun') for name in os.listdir('/tmp')) < 3: time.sleep(0.05)\n"
            "print(N, open(__file__).read().split()[2])\n"
        )
        body = [{"code": f"N = {n}\n" + code} for n in range(3)]
        running = [s.background(session.call, "POST", "/execs", b) for b in body]
        for n, one in enumerate(running):
            equal(one.finish().result["stdout"]["text"], f"{n} {n}\n", f"exec {n}")


@test("an exec has no descriptor but its own streams, and sees none of another exec")
def _():
    with Service(config={"concurrency": 4}) as s, Session(s) as session:
        first = session.start(f"echo $$ > /box/pid; exec {FOREVER}", id="first")
        session.await_file("/box/pid")
        # 3 is the directory that ls reads
        session.says("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ")
        if session.first["isolated"]:
            # the kernel lets the same user list the numbers, but neither read the links nor open what they name
            for what in ("readlink /proc/{}/fd/0 /proc/{}/fd/1", "cat /proc/{}/environ", "cat /proc/{}/maps", "echo x > /proc/{}/fd/1"):
                session.says(f"({what}) 2>/dev/null; true".replace("{}", "$(cat /box/pid)"), "")
            session.says("kill -9 $(cat /box/pid) 2>/dev/null || echo refused", "refused\n")
        session.call("DELETE", f"/execs/{first}").has(202)
        equal(session.finished(first)["status"], "cancelled", "the first one's status")


@test("a time limit ends one exec with all its processes, and the others stay")
def _():
    with Service(config={"concurrency": 4}) as s, Session(s) as session:
        stays = session.start("until [ -e /box/go ]; do sleep 0.05; done; echo stayed")
        value = session.sh(f"{FOREVER} & setsid sh -c '{FOREVER}' & {FOREVER}", timeout="1s")
        equal(value["status"], "timeout", "status")
        session.says("grep -l 'sleep.10[0]0' /proc/[0-9]*/cmdline 2>/dev/null; true", "")
        session.says("touch /box/go", "")
        equal(session.finished(stays)["stdout"]["text"], "stayed\n", "the other one")


@test("an exec with interrupt receives SIGINT at its time limit and may clean up")
def _():
    with Service() as s, Session(s) as session:
        for _ in range(5):
            value = session.sh("trap 'echo cleaned; exit 0' INT; while :; do sleep 0.1; done", timeout=scaled(1), interrupt=True)
            equal(value["status"], "timeout", "the result")
            if value["stdout"]["text"]:  # a busy machine may not run it for the two seconds it has
                break
        equal(value["stdout"]["text"], "cleaned\n", "what the program wrote")


@test("a process that an exec leaves in the background stays until the session ends")
def _():
    with Service() as s, Session(s) as session:
        session.says("(while :; do date > /box/alive; sleep 0.1; done) >/dev/null 2>&1 & echo left", "left\n")
        session.await_file("/box/alive")
        session.says("rm /box/alive", "")
        session.await_file("/box/alive")


@test("deleting a finished exec kills what it left in the background, and nothing else")
def _():
    leave = "sleep 1000 >/dev/null 2>&1 & echo $! > /box/"
    look = "for p in one other; do [ -d /proc/$(cat /box/$p) ] && echo $p; done; :"
    with Service() as s, Session(s) as session:
        one = session.sh(leave + "one")["id"]
        session.sh(leave + "other")
        session.says(look, "one\nother\n")
        session.call("DELETE", f"/execs/{one}").has(200)
        wait_until(lambda: session.sh(look)["stdout"]["text"] == "other\n", "the one process to end", 30)


@test("a caller that disconnects cancels its exec and nothing else")
def _():
    with Service(config={"concurrency": 4}) as s, Session(s) as session:
        stays = session.start("until [ -e /box/go ]; do sleep 0.05; done; echo stayed")
        connection = s.connect()
        body = {"command": ["/bin/sh", "-c", f"touch /box/begun; {FOREVER}"], "id": "mine"}
        connection.request("POST", session.path + "/execs", json.dumps(body))
        session.await_file("/box/begun")
        connection.close()
        wait_until(lambda: session.exec("mine")["state"] == "finished", "the exec to end", 30)
        equal(session.exec("mine")["status"], "cancelled", "status")
        session.says("touch /box/go", "")
        equal(session.finished(stays)["stdout"]["text"], "stayed\n", "the other one")


@test("events of an exec arrive as those of a run")
def _():
    with Service() as s, Session(s) as session:
        lines = session.post("echo a; echo b >&2", NDJSON, id="mine").has(200).lines
        kinds = [line["type"] for line in lines]
        equal((kinds[0], kinds[-1], sorted(kinds[1:-1])), ("start", "result", ["stderr", "stdout"]), f"the order {kinds}")
        equal((lines[0]["id"], lines[-1]["result"]["session"]), ("mine", session.id), "ids")


@test("a detached exec is polled, and its result is there afterwards")
def _():
    with Service() as s, Session(s) as session:
        name = session.start("until [ -e /box/go ]; do sleep 0.05; done; echo done; exit 5")
        wait_until(lambda: session.exec(name)["state"] == "running", "the exec to run")
        session.says("touch /box/go", "")
        value = session.finished(name)
        equal((value["exit_code"], value["stdout"]["text"]), (5, "done\n"), "the result")
        equal([x["id"] for x in session.call("GET", "/execs").has(200).json["execs"] if x["state"] == "running"], [], "running")


@test("a signal reaches the main process of an exec, even if it is sent at once")
def _():
    with Service() as s, Session(s) as session:
        name = session.start(FOREVER)
        wait_until(lambda: session.exec(name)["state"] == "running", "the exec to run")
        session.call("POST", f"/execs/{name}/signal", {"signal": "USR1"}).has(202)
        value = session.finished(name)
        equal((value["status"], value["signal"]), ("signaled", signal.SIGUSR1), "the end")


@test("standard input stays open for more, until its end")
def _():
    with Service() as s, Session(s) as session:
        name = session.start("cat; echo end", open_stdin=True)
        wait_until(lambda: session.exec(name)["state"] == "running", "the exec to run")
        session.call("POST", f"/execs/{name}/stdin", {"text": "one "}).has(200)
        session.call("POST", f"/execs/{name}/stdin", {"base64": base64.b64encode(b"two ").decode(), "eof": True}).has(200)
        equal(session.finished(name)["stdout"]["text"], "one two end\n", "output")


@test("a setting that changes the jail is refused in an exec, which names it")
def _():
    with Service() as s, Session(s) as session:
        error = session.post("true", memory="64M").has(400, "bad_request").json["error"]
        contains(error["message"], "memory", "the message")
        session.says("echo $A", "b\n", env={"A": "b"})
        session.says("pwd", "/tmp\n", workdir="/tmp")


@test("the return value of an earlier exec is not the value of a later one")
def _():
    with Service() as s, Session(s, profile="python") as session:
        for code, wanted in (("open('/box/value.json', 'w').write('[1]')", [1]), ("pass", None)):
            value = session.call("POST", "/execs", {"code": code, "value_path": "/box/value.json"}).result
            equal(value.get("value"), wanted, "the value")


# --- files ----------------------------------------------------------------------------


@test("files of any bytes are written, read, listed and removed while a program runs")
def _():
    content = bytes(range(256)) * 1000
    with Service(config={"concurrency": 4}) as s, Session(s) as session:
        session.start(FOREVER)
        equal(session.put("/box/new/dir/a.bin", content).has(200).json, {"path": "/box/new/dir/a.bin", "bytes": len(content)}, "put")
        true(session.get("/box/new/dir/a.bin").has(200).body == content, "other bytes came back")
        session.says("wc -c < /box/new/dir/a.bin; id -u | sed s/.*/same/; stat -c %u /box/new/dir/a.bin | grep -qx $(id -u) && echo mine",
                     f"{len(content)}\nsame\nmine\n")  # fmt: skip
        session.put("/box/new/dir/a.bin", b"").has(200)
        true(session.get("/box/new/dir/a.bin").has(200).body == b"", "a file that was replaced")
        session.put("/box/run", b"#!/bin/sh\necho ran\n", "?executable").has(200)
        session.says("/box/run", "ran\n")
        listed = session.get("/box/new/?list").has(200).json
        equal([(e["path"], e["type"]) for e in listed["entries"]], [("/box/new/dir", "directory"), ("/box/new/dir/a.bin", "file")], "entries")
        session.call("DELETE", "/files/box/new").has(200)
        session.get("/box/new/dir/a.bin").has(404)
        session.says("ls /box/new 2>/dev/null || echo gone", "gone\n")


@test("no file outside of the session's own is read or written, and nothing makes the service wait")
def _():
    with Service() as s, Session(s) as session:
        session.says("mkfifo /box/fifo; ln -s /etc/passwd /box/link; ln -s /etc /box/dir; ln -s / /box/root; echo x", "x\n")
        for path in ("/box/fifo", "/box/link", "/box/dir/passwd", "/box/root/etc/passwd", "/etc/passwd", "/box/..%2f..%2fetc/passwd"):
            answer = session.get(path)
            true(answer.status in (400, 403, 404, 409), f"GET {path}: {answer!r}")
        for path in ("/etc/x", "/box/dir/x", "/box/root/etc/x"):
            answer = session.put(path, b"x")
            true(answer.status in (400, 403, 404, 409), f"PUT {path}: {answer!r}")
        session.says("ls /etc/x 2>/dev/null || echo no", "no\n")


# --- the end ----------------------------------------------------------------------------


SHORT = int(max(6, min(SLOW, 20)))  # seconds, in which a session is used once; less than an exec may take


@test("a session ends when its lease is over, and says so")
def _():
    with Service() as s, Session(s, lease="1s") as session:
        ended = session.await_end("lease")
        true(ended["message"], f"no message: {ended}")
        session.post("true").has(409, "session_ended")


@test("a renewed lease lets a session live on")
def _():
    with Service() as s, Session(s, lease=f"{SHORT}s") as session:
        session.call("POST", "/lease", {"lease": "10m"}).has(200)
        session.says(f"sleep {SHORT + 1}; echo lives", "lives\n")


@test("a session ends when it is idle, but not while an exec runs")
def _():
    with Service() as s, Session(s, idle=f"{SHORT}s") as session:
        session.says(f"sleep {SHORT + 1}; echo lives", "lives\n")
        session.await_end("idle")


@test("deleting a session cancels its execs, and nothing of it is left when the answer comes")
def _():
    with Service(config={"concurrency": 4}) as s, Session(s) as session:
        running = [s.background(session.sh, f"trap '' INT TERM; touch /box/{n}; {FOREVER} & {FOREVER}") for n in range(2)]
        for n in range(2):
            session.await_file(f"/box/{n}")
        session.call("DELETE", "").has(200)
        living = [words for words in map(describe_process, s.workers()) if words]
        # proc_pid_stat(5): a dead process can be seen for a moment, as X or Z.
        true(not any(re.search(r"sleep \([^XZ]\)", words) for words in living), f"a program is left: {living}")
        wait_until(lambda: not keepers(s), "the keeper to exit")
        for one in running:
            equal(one.finish()["status"], "cancelled", "status")


@test("a session whose init is killed ends with its execs, and says why")
def _():
    with Service(config={"concurrency": 4}) as s, Session(s) as session:
        running = s.background(session.post, f"touch /box/a; {FOREVER}")
        session.await_file("/box/a")
        keeper = keepers(s)[0]
        # init is the keeper's child that is not an exec worker
        inits = [pid for pid in harness.children_of(keeper) if "cejail-exec" not in (describe_process(pid) or "")]
        for pid in inits:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        session.await_end("killed")
        true(running.finish().status in (200, 409, 500, 502, 503), "the exec's answer")


@test("a keeper that is killed takes everything with it, and the service says so")
def _():
    with Service(config={"concurrency": 4}) as s:
        session = Session(s)
        running = s.background(session.post, f"touch /box/a; {FOREVER} & setsid {FOREVER}")
        session.await_file("/box/a")
        os.kill(keepers(s)[0], signal.SIGKILL)
        ended = session.await_end("failed")
        true(ended["message"], f"no message: {ended}")
        answer = running.finish()  # its worker may see that the program was killed, before it is killed itself
        true(answer.status >= 400 or answer.result["status"] == "signaled", f"an exec without its keeper: {answer!r}")
        wait_until(lambda: not any("sleep" in (describe_process(pid) or "") for pid in s.workers()), "its programs to end")
        s.sh("true").has(200)  # a new jail removes the record and the cgroup of one whose supervisor was killed


@test("an exec worker that is killed loses its exec and nothing else")
def _():
    with Service(config={"concurrency": 4}) as s, Session(s) as session:
        running = s.background(session.post, f"touch /box/a; {FOREVER} & {FOREVER}")
        session.await_file("/box/a")
        workers = [pid for pid in s.workers() if "cejail-exec" in (describe_process(pid) or "")]
        equal(len(workers), 1, "exec workers")
        os.kill(workers[0], signal.SIGKILL)
        running.finish().has(500)
        wait_until(
            lambda: "sleep" not in session.sh("cat /proc/[0-9]*/comm 2>/dev/null; true")["stdout"]["text"], "its programs to end"
        )
        session.says("echo lives", "lives\n")


@test("a drain ends the execs and then the sessions")
def _():
    with Service(config={"concurrency": 4, "drain": "1s"}) as s:
        session = Session(s)
        running = s.background(session.post, f"touch /box/a; {FOREVER}")
        session.await_file("/box/a")
        s.signal(signal.SIGTERM)
        equal(await_exit(s.process, 60), 0, "exit status")
        running.finish()


@test("a program that fills memory ends its exec, or the session says that it was oom")
def _():
    with Service() as s, Session(s, profile="python", memory="64M") as session:
        code = "b = []\nwhile True: b.append(bytearray(1 << 20))"
        answer = session.call("POST", "/execs", {"code": code})
        if answer.status == 200:
            value = answer.result
            true(value["status"] == "oom" or "MemoryError" in value["stderr"]["text"], f"{value['status']}: {value['stderr']}")
        else:
            session.await_end("oom")


# --- whose --------------------------------------------------------------------------------


@test("another caller neither sees nor ends a session", who="root")
def _():
    with Service() as s, Session(s) as session:
        for method, path, body in (
            ("GET", "", None), ("DELETE", "", None), ("POST", "/execs", {"command": ["true"]}),
            ("POST", "/lease", {"lease": "1m"}), ("GET", "/files/box/a", None), ("GET", "/execs", None),
        ):  # fmt: skip
            reply = as_uid(OTHER_UID, s.call, method, session.path + path, body)
            reply.has(404)
        equal(as_uid(OTHER_UID, s.get, "/v1/sessions").has(200).json["sessions"], [], "sessions of another caller")


@test("fifty sessions live at once, each with its own files", limit=240)
def _():
    many = 50
    rights = {"sessions": many, "rate_per_minute": 0}
    config = {"concurrency": 8, "sessions": many, "callers": {"default": rights, f"uid:{os.geteuid()}": rights}}
    with Service(config=config) as s:
        creating = [s.background(Session, s, memory="16M", pids=16) for _ in range(many)]
        sessions = [one.finish(200) for one in creating]
        equal(len({one.id for one in sessions}), many, "ids")
        for n, session in enumerate(sessions):
            session.says(f"echo {n} > /box/a", "")
        for n, session in enumerate(sessions):
            session.says("cat /box/a", f"{n}\n")
        equal(len(keepers(s)), many, "keepers")
        ending = [s.background(session.call, "DELETE", "") for session in sessions]
        for one in ending:
            equal(one.finish(200).has(200).json["reason"], "closed", "the reason")
        wait_until(lambda: not keepers(s), "the keepers to exit")


# --- denied packets -------------------------------------------------------------------


def python_exec(session, code, headers=None, **more):
    return session.call("POST", "/execs", {"command": [PYTHON, "-c", code], **more}, headers)


def denied_by(value):
    """{destination: (count, shared)}; None is the destination of packets that were only counted."""
    rows = value["network"]["denied"]
    found = {(row["address"], row["port"], row.get("shared", False)): row["count"] for row in rows}
    equal(len(found), len(rows), "different entries")
    return found


def send(*addresses):
    return TRY + "".join(f"attempt('udp', '{one}', 7)\n" for one in addresses)


@test("the result of an exec lists the packets that it was denied, and no other exec's; its events have them, too")
def _():
    with Internet() as net, Service(**net.inside) as s, Session(s, profile="python", network="public") as session:
        check = lambda value, wanted: equal(denied_by(value), wanted, "what was denied")  # noqa: E731
        check(python_exec(session, "print(1)").result, {})
        check(python_exec(session, send("10.0.0.1", "169.254.169.254", "10.0.0.1")).result, {("10.0.0.1", 7, False): 2, ("169.254.169.254", 7, False): 1})
        check(python_exec(session, "print(2)").result, {})
        for _ in range(10):  # the last packet is sent at the very end
            check(python_exec(session, send("10.0.0.2")).result, {("10.0.0.2", 7, False): 1})
        answer = python_exec(session, send("10.0.0.3"), NDJSON)
        events = [event for event in answer.lines if event["type"] == "denied"]
        equal([event["network"]["address"] for event in events], ["10.0.0.3"], "events")
        equal(events[0]["network"], answer.lines[-1]["result"]["network"]["denied"][0], "the event's entry")
        equal({key for key in net.seen() if key[1].startswith(("10.", "169.254.", "192.168."))}, set(), "packets that left")


@test("each exec of a session with a wildcard has the names that were refused while it ran")
def _():
    network = {"mode": "public", "allow": ["*.wild.test"]}
    with Internet() as net, Service(**net.inside) as s, Session(s, profile="python", network=network) as session:
        for allowed, name in (("a.wild.test", "one.evil.test"), ("deep.a.wild.test", "two.evil.test")):
            code = TRY + f"print(attempt('tcp', '{allowed}', 80)); attempt('tcp', '{name}', 80)"
            value = python_exec(session, code).result
            equal(value["stdout"]["text"], "answered\n", "the allowed name")
            rows = {(row["class"], row.get("name"), row["protocol"]) for row in value["network"]["denied"]}
            equal(rows, {("name", name, None)}, "denied")


@test("a packet that was denied while several execs lived is in the result of each, as shared")
def _():
    with Internet() as net, Service(**net.inside) as s, Session(s, profile="python", network="public") as session:
        code = send("10.0.0.1") + "import os, time\nopen('/box/first', 'w').close()\nwhile not os.path.exists('/box/go'): time.sleep(0.02)\n" + send("10.0.0.2")
        name = session.call("POST", "/execs", {"command": [PYTHON, "-c", code], "detach": True}).has(202).json["id"]
        session.await_file("/box/first")
        second = python_exec(session, send("10.0.0.3", "10.0.0.3")).result
        equal(denied_by(second), {("10.0.0.3", 7, True): 2}, "denied to the second exec")
        session.put("/box/go", b"")
        first = session.finished(name)
        denied = denied_by(first)
        late = denied.pop(("10.0.0.2", 7, False), 0) + denied.pop(("10.0.0.2", 7, True), 0)  # was the end of the second seen before?
        equal((denied, late), ({("10.0.0.1", 7, False): 1, ("10.0.0.3", 7, True): 2}, 1), "denied to the first exec")
        wait_until(lambda: session.show()["usage"]["denied_packets"] == 4, "the count of the session")


@test("a denied packet of a process that an exec left behind is in the results of the execs that run, as shared")
def _():
    later = "import os, time\nif os.fork() == 0:\n    while not os.path.exists('/box/go'): time.sleep(0.02)\n"
    later += "".join(f"    {line}\n" for line in send("10.0.0.1").splitlines()) + "    open('/box/done', 'w').close()\n    time.sleep(1000)\n"
    waits = "import os, time\nopen('/box/go', 'w').close()\nwhile not os.path.exists('/box/done'): time.sleep(0.02)\n"
    with Internet() as net, Service(**net.inside) as s, Session(s, profile="python", network="public") as session:
        first = python_exec(session, later).result
        equal((first["status"], denied_by(first)), ("exited", {}), "the exec that left a process behind")
        equal(denied_by(python_exec(session, waits).result), {("10.0.0.1", 7, True): 1}, "denied while the second ran")


@test("an exec that floods has a short list with an exact sum, and the next one still lists its own")
def _():
    flood = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(5000):
    try: s.sendto(b"x", (f"10.1.{i % 100}.{i // 100}", 7))
    except OSError: pass
"""
    with Internet() as net, Service(**net.inside) as s, Session(s, profile="python", network="public") as session:
        for _ in range(2):
            denied = python_exec(session, flood).result["network"]["denied"]
            equal(sum(row["count"] for row in denied), 5000, "the sum of the counts")
            true(len(denied) <= 257, f"{len(denied)} entries")
            equal(denied_by(python_exec(session, send("192.168.7.7")).result), {("192.168.7.7", 7, False): 1}, "denied afterwards")
        equal({key for key in net.seen() if key[1].startswith(("10.", "169.254.", "192.168."))}, set(), "packets that left")


@test("a cell's result lists the packets that its code was denied")
def _():
    with Internet() as net, Service(**net.inside) as s, Session(s, profile="python", network="public", context="repl") as session:
        for address in ("10.0.0.1", "10.0.0.2"):
            value = session.call("POST", "/execs", {"code": send(address)}).result
            equal((value["status"], denied_by(value)), ("exited", {(address, 7, False): 1}), "the cell")


@test("an exec whose session's network failed says why")
def _():
    profile = {"extends": "python", "network": {"mode": "public", "uplink": "pasta"}}
    with Folder() as f, Internet(helpers={"pasta": "#!/bin/sh\nexit 1\n"}) as net:
        f.file("cejail/profiles/broken.json", json.dumps(profile))
        with Service(env={"XDG_CONFIG_HOME": f.path}, **net.inside) as s, Session(s, profile="broken", network="public") as session:
            network = python_exec(session, send("10.0.0.1")).result["network"]
            equal(network["state"], "failed", "the state of the network")
            contains(network["reason"], "pasta", "the reason")
