# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: create, start, state, kill, delete, run and list, as engines call them."""

import json
import os
import signal
import subprocess
import time

from bundles import *  # noqa: F403
from harness import *  # noqa: F403


@test("a created container waits and start lets it run")
def _():
    with Bundle("echo hello; exit 7") as b:
        id = b.created("--pid-file", b / "pid")
        state = b.state(id)
        equal(state["status"], "created", "status")
        with open(b / "pid", encoding="ascii") as file:
            equal(file.read(), str(state["pid"]), "the pid file")
        time.sleep(0.1)
        equal(b.output(id), "", "output before start")
        b.oci("start", id).exits(0).says("")
        b.ended(id, 7)
        equal(b.output(id), "hello\n", "output")
        equal(b.state(id)["pid"], 0, "pid of a stopped container")
        b.delete(id).exits(0)
        nothing_is_left(b, id)


@test("the program is process 1 and no process of ours stays")
def _():
    with Bundle("echo $$; cat /proc/1/comm; sleep 6000") as b:
        id = b.started()
        pid = b.state(id)["pid"]
        wait_until(lambda: b.output(id).count("\n") == 2, "output")
        equal(b.output(id), "1\nsh\n", "output")
        ours = [words for words in descendants().values() if "cejail" in words]
        equal(ours, [], "processes of cejail-oci")
        equal(os.readlink(f"/proc/{pid}/exe").rpartition("/")[2], "busybox", "the executable")
        b.delete(id, "--force").exits(0)
        nothing_is_left(b, id)


@test("the state has what the specification asks for")
def _():
    with Bundle("sleep 6000") as b:
        b.config["annotations"] = {"a.b/c": "d e"}
        id = b.created()
        state = b.state(id)
        equal(sorted(state), ["annotations", "bundle", "created", "id", "ociVersion", "pid", "rootfs", "status"], "keys")
        equal(state["annotations"], {"a.b/c": "d e"}, "annotations")
        equal((state["bundle"], state["rootfs"], state["id"]), (b.path, f"{b.path}/rootfs", id), "places")
        true(state["created"].endswith("Z") and state["created"][4] == "-", f"created is {state['created']}")
        b.oci("start", id).exits(0)
        equal(b.status(id), "running", "status")
        b.oci("kill", id, "KILL").exits(0)
        b.ended(id, 137)


@test("kill takes names and numbers and works before start")
def _():
    with Bundle("sleep 6000") as b:
        for name, status in (("9", 137), ("SIGKILL", 137), ("kill", 137), ("TERM", 143), ("15", 143)):
            id = b.created()
            b.oci("kill", id, name).exits(0)
            b.ended(id, status)
            b.delete(id).exits(0)
        id = b.created()
        refused_oci(b.oci("kill", id, "SIGNONE"), "SIGNONE")
        b.oci("kill", id, "0").exits(0)
        equal(b.status(id), "created", "status: signal 0 only asks whether the process is there")


@test("kill of an ended container says that it is not running")
def _():
    with Bundle() as b:
        id = b.started()
        b.ended(id, 0)
        for signal_ in ("9", "0"):
            refused_oci(b.oci("kill", id, signal_), "container not running")
        refused_oci(b.oci("start", id), "stopped")


@test("an unknown container does not exist and delete force accepts that")
def _():
    with Bundle() as b:
        for verb in ("state", "start", "kill", "delete"):
            refused_oci(b.oci(verb, "nobody"), "does not exist")
        b.oci("delete", "--force", "nobody").exits(0)
        b.oci("delete", "nobody", "-f").exits(0)


@test("delete refuses a running container and force kills it")
def _():
    with Bundle("sleep 6000") as b:
        id = b.started()
        pid = b.state(id)["pid"]
        refused_oci(b.delete(id), "not stopped")
        true(alive(pid), "delete without --force killed it")
        b.delete(id, "--force").exits(0)
        true(not alive(pid), "the process lives")
        id = b.created()
        b.delete(id).exits(0)
        nothing_is_left(b, id)


@test("an id is used once and has no strange bytes")
def _():
    with Bundle() as b:
        id = b.created()
        refused_oci(b.create(id=id)[1], "exists already")
        equal(b.status(id), "created", "the first container")
        for bad in ("", ".", "..", ".x", "a/b", "a b", "\u00e9", "x" * 256):
            refused_oci(b.oci("create", "--bundle", b.path, bad), "container id")
        for good in ("A_b+c.d-1", "x" * 255):
            b.run(id=good).exits(0)


@test("run returns the status and leaves nothing")
def _():
    with Bundle("echo out; echo err >&2; exit 3") as b:
        done = b.run().exits(3)
        equal((done.out, done.err), ("out\n", "err\n"), "streams")
        equal(os.listdir(b.root), [], "states")
        b.process["args"] = ["/bin/sh", "-c", "kill -KILL $$; exit 4"]
        b.run().exits(4)  # process 1 does not get its own signal


@test("run forwards signals to the program")
def _():
    with Bundle("trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.1; done") as b:
        b.save()
        process = subprocess.Popen([OCI, "--root", b.root, "run", "--bundle", b.path, "fw"], env=environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        equal(process.stdout.readline(), b"ready\n", "first line")
        process.terminate()
        finish(process).exits(5).says("got\n")


@test("run detached returns while the program runs")
def _():
    with Bundle("sleep 6000") as b:
        b.save()
        with open(b / "log", "wb") as log:
            words = [OCI, "--root", b.root, "run", "-d", "--pid-file", b / "pid", "-b", b.path, "det"]
            finish(subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)).exits(0)
        equal(b.status("det"), "running", "status")
        b.delete("det", "--force").exits(0)


@test("list shows each container as table ids and json")
def _():
    with Bundle("sleep 6000") as b:
        equal(json.loads(b.oci("list", "--format", "json").exits(0).out), [], "without containers")
        first, second = b.created(), b.started()
        rows = json.loads(b.oci("list", "-f", "json").exits(0).out)
        equal([(row["id"], row["status"]) for row in rows], sorted([(first, "created"), (second, "running")]), "rows, by id")
        true(all("owner" in row for row in rows), "no owner")
        equal(b.oci("list", "-q").exits(0).out.split(), sorted([first, second]), "ids")
        table = b.oci("list").exits(0).out.splitlines()
        equal(len(table), 3, "lines of the table")
        contains(table[0], "STATUS", "the heading")


@test("the log is json or text and the error is on standard error too")
def _():
    with Bundle() as b:
        for _ in range(2):
            done = b.oci("--log", b / "log", "--log-format", "json", "state", "nobody").exits(1)
            contains(done.err, "does not exist", "standard error")
        with open(b / "log", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        equal([sorted(row) for row in rows], [["level", "msg", "time"]] * 2, "keys")
        equal(rows[0]["level"], "error", "level")
        contains(rows[0]["msg"], "does not exist", "msg")
        b.oci(f"--log={b / 'text'}", "--log-format=text", "state", "nobody").exits(1)
        with open(b / "text", encoding="utf-8") as file:
            contains(file.read(), "does not exist", "the text log")


@test("a warning of run in the foreground is on standard error too")
def _():
    with Bundle() as b:
        b.process["capabilities"]["bounding"] = ["CAP_MADE_UP"]
        contains(b.run().exits(0).err, "warning: ", "of run")
        id = b.created()
        equal(b.errors(id), "", "of create, whose streams are the container's")


@test("debug writes lines to standard error or to the log")
def _():
    with Bundle() as b:
        b.save()
        contains(b.oci("--debug", "run", "--bundle", b.path, "one").exits(0).err, "debug: create: bundle", "standard error")
        done = b.oci("--debug", "--log", b / "log", "--log-format=json", "run", "--bundle", b.path, "two").exits(0)
        equal(done.err, "", "standard error")
        with open(b / "log", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        contains([row["msg"] for row in rows if row["level"] == "debug"], "create: bundle", "the log")
        done = b.oci("--debug", "state", "nobody").exits(1)
        contains(done.err, "debug: ", "of a verb")


@test("the configuration may be a descriptor and it does not stay open")
def _():
    with Bundle("echo read; ls /proc/self/fd | wc -l") as b:
        b.save()
        os.rename(b / "config.json", b / "other")
        through = ("bash", "-c", '"$@" < /dev/null 9< "$0"', b / "other")
        b.oci("run", "--bundle", b.path, "--config", "/dev/fd/9", "one", through=through).exits(0).says("read\n4\n")


# Passes descriptor 3 on as systemd does: LISTEN_PID is the program's own.
ACTIVATE = 'exec 3< "$0"; LISTEN_FDS=1 LISTEN_PID=${PID:-$$} LISTEN_FDNAMES=web exec "$@"'


@test("sockets of systemd are passed on with their count names and the pid of the program")
def _():
    script = 'test -z "$LISTEN_FDS" || cat <&3; echo ${LISTEN_FDS:-none} ${LISTEN_PID:-none} ${LISTEN_FDNAMES:-none}; ls /proc/self/fd | wc -l'
    with Bundle(script) as b:
        b.process["env"].append("LISTEN_PID=77")
        given = b.file("given", "socket\n")
        through = ("bash", "-c", ACTIVATE, given)
        b.run(through=through).exits(0).says("socket\n1 1 web\n5\n")
        b.run(through=through, env=environment(PID="1")).exits(0).says("socket\n1 1 web\n5\n")  # as podman writes it
        # those of another process stay closed
        b.run(through=through, env=environment(PID="12345")).exits(0).says("none 77 none\n4\n")
        # behind them are those of --preserve-fds
        b.process["args"][2] = "cat <&3; cat <&4"
        through = ("bash", "-c", "exec 4< /proc/self/status; " + ACTIVATE, given)
        contains(b.run("--preserve-fds", "1", through=through).exits(0).out, "socket\nName:", "both")
        refused_oci(b.run("--preserve-fds", "2", through=through), "descriptor 5 is not open")


@test("a bad executable fails at create with the texts that podman knows")
def _():
    with Bundle() as b:
        cases = ((["/bin/nothing"], "no such file or directory"), (["nothing"], "executable file not found in"),
                 (["/etc"], "permission denied"))  # fmt: skip
        for args, text in cases:
            b.process["args"] = args
            id, done = b.create()
            refused_oci(done)
            contains(done.err.lower(), text, "the message")
            nothing_is_left(b, id)
        b.file("rootfs/plain", "x", 0o644)
        b.process["args"] = ["/plain"]
        message = b.create()[1].exits(1).err
        contains(message.lower(), "permission denied", "the message")
        contains(message, "not executable: chmod +x", "the message")


@test("standard streams are the containers and leaked descriptors are closed")
def _():
    with Bundle("ls /proc/self/fd | wc -l; sleep 6000") as b:
        reader, writer = os.pipe()
        os.set_inheritable(writer, True)
        id = b.created(pass_fds=(writer,))
        os.close(writer)
        os.set_blocking(reader, False)
        equal(os.read(reader, 1), b"", "the leaked pipe, whose other end is open")  # end of file
        os.close(reader)
        b.oci("start", id).exits(0)
        wait_until(lambda: b.output(id), "output")
        equal(b.output(id), "4\n", "descriptors (0, 1, 2 and the directory)")


@test("preserved descriptors arrive and a missing one is an error")
def _():
    with Bundle("echo three >&3; echo four >&4; ls /proc/self/fd | wc -l") as b:
        b.save()
        with open(b / "a", "wb") as first, open(b / "b", "wb") as second:
            words = ["/bin/sh", "-c", 'exec "$@" 3>a 4>b 5>c', "sh", OCI, "--root", b.root, "run", "--preserve-fds", "2", "-b", b.path, "p"]
            done = finish(subprocess.Popen(words, cwd=b.path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        done.exits(0).says("6\n")
        for name, text in (("a", "three\n"), ("b", "four\n"), ("c", "")):
            with open(b / name, encoding="ascii") as file:
                equal(file.read(), text, f"file {name}")
        refused_oci(b.run("--preserve-fds=20"), "preserve")


@test("the limits of another user are lowered without CAP_SYS_RESOURCE and raised by nobody", who="root")
def _():
    with Bundle("ulimit -n; ulimit -Hn") as b:
        b.process["user"] = {"uid": 5, "gid": 6}
        b.process["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": 100, "hard": 200}]
        less = ("setpriv", "--bounding-set=-sys_resource")
        b.run(through=less).exits(0).says("100\n200\n")
        b.process["rlimits"][0]["hard"] = 2**31
        refused_oci(b.run(through=less), "process.rlimits: set RLIMIT_NOFILE to ", "CAP_SYS_RESOURCE")


@test("relative paths are the callers not the bundles")
def _():
    with Bundle("sleep 6000") as b:
        b.folder("elsewhere")
        id = b.created("--pid-file", "x.pid", cwd=b / "elsewhere")
        true(os.path.exists(b / "elsewhere/x.pid"), "the pid file is elsewhere")
        b.delete(id, "--force").exits(0)


@test("an engines empty environment is enough")
def _():
    with Bundle("sleep 6000") as b:
        id = b.started(env={"XDG_RUNTIME_DIR": ""})
        b.oci("delete", "--force", id, env={"XDG_RUNTIME_DIR": ""}).exits(0)


@test("a container of one users map belongs to the caller", who="user")
def _():
    with Bundle("id -u; cat /proc/self/setgroups; echo x > /tmp/file") as b:
        b.run().exits(0).says("0\ndeny\n")
        equal(os.stat(f"{b.rootfs}/tmp/file").st_uid, os.geteuid(), "owner")
        del b.linux["uidMappings"], b.linux["gidMappings"]
        b.linux["namespaces"] = [one for one in b.linux["namespaces"] if one["type"] != "user"]
        refused_oci(b.run(), "user namespace")


@test("options have both forms and unknown ones are refused")
def _():
    with Bundle() as b:
        id = b.created(f"--pid-file={b / 'one'}")
        b.oci("start", "--", id).exits(0)
        refused_oci(b.oci("create", "--bundel", "x", "y"), "--bundle")
        refused_oci(b.oci("creat"), "create")
        refused_oci(b.oci("state"), "id")
        refused_oci(b.oci("state", id, "more"), "more")
        contains(b.oci("--version").exits(0).out, "cejail-oci version", "--version")
        contains(b.oci("create", "--help").exits(0).out, "--pid-file", "--help")
