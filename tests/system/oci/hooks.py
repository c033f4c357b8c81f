# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: hooks of all six kinds, with their state, their order, their failures and their timeouts."""

import json
import os

from bundles import *  # noqa: F403
from harness import *  # noqa: F403
from inside import errno_rule

KINDS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
STATUS = dict(zip(KINDS, ("creating", "creating", "creating", "created", "running", "stopped")))


def hook(b, kind, extra="", **more):
    """A shell on the host that appends its standard input and what it sees to log/KIND.  startContainer runs
    inside the root, where the log is a bind mount."""
    inside = kind == "startContainer"
    log = "/log" if inside else b / "log"
    script = f"{{ cat; echo; }} >> {log}/{kind}; echo {kind} >> {log}/order; {extra}"
    return {"path": "/bin/sh", "args": ["sh", "-c", script], "env": ["PATH=/usr/bin:/bin", "A=b"], **more}


def with_hooks(b, *kinds, **more):
    if not os.path.isdir(b / "log"):
        b.folder("log")
        os.chmod(b / "log", 0o777)
        b.config["mounts"].append({"destination": "/log", "type": "bind", "source": b / "log", "options": ["rbind", "rw"]})
    b.config["hooks"] = {kind: [hook(b, kind, **more.get(kind, {}))] for kind in kinds}


def lines(b, name):
    try:
        with open(b / f"log/{name}", encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


@test("all six hooks run once in their order with the state on standard input")
def _():
    with Bundle("echo program >> /log/order") as b:
        with_hooks(b, *KINDS)
        b.config["annotations"] = {"k": "v"}
        id = b.created()
        pid = b.state(id)["pid"]
        equal(lines(b, "order"), list(KINDS[:3]), "after create")
        b.oci("start", id).exits(0)
        b.ended(id, 0)
        wait_until(lambda: len(lines(b, "order")) == 6, "poststart")
        equal(lines(b, "order")[3], "startContainer", "before the program")
        equal(sorted(lines(b, "order")[4:]), ["poststart", "program"], "after it")
        b.delete(id).exits(0)
        equal(lines(b, "order")[-1], "poststop", "at the end")
        for kind in KINDS:
            state = json.loads(lines(b, kind)[0])
            equal((state["id"], state["status"], state["bundle"]), (id, STATUS[kind], b.path), f"state of {kind}")
            equal(state["annotations"], {"k": "v"}, f"annotations of {kind}")
            wanted = {"createContainer": 1, "startContainer": 1, "poststop": 0}.get(kind, pid)
            equal(state["pid"], wanted, f"pid of {kind}")


@test("a hook that fails undoes the container and its output is in the message")
def _():
    for kind in KINDS[:3]:
        with Bundle() as b:
            with_hooks(b, kind, "poststop", **{kind: {"extra": "echo no such luck >&2; exit 3"}})
            id, done = b.create("--pid-file", b / "pid")
            refused_oci(done, kind, "exit status 3", "no such luck")
            nothing_is_left(b, id)
            true(not os.path.exists(b / "pid"), "the pid file is left")
            if kind != "createContainer" or True:
                equal(lines(b, "order"), [kind, "poststop"], f"hooks after {kind}")


@test("a startContainer hook that fails makes start fail and the program does not run")
def _():
    with Bundle("echo program >> /log/order") as b:
        with_hooks(b, "startContainer", "poststop", startContainer={"extra": "exit 3"})
        id = b.created()
        refused_oci(b.oci("start", id), "startContainer", "exit status 3")
        b.ended(id, 1)
        equal(lines(b, "order"), ["startContainer"], "order")
        b.delete(id).exits(0)
        equal(lines(b, "order"), ["startContainer", "poststop"], "order")


@test("a hook beyond its timeout is killed with what it started")
def _():
    with Bundle() as b:
        with_hooks(b, "createRuntime", createRuntime={"extra": "sleep 987 & sleep 987", "timeout": 1})
        id, done = b.create()
        refused_oci(done, "createRuntime", "1 s")
        nothing_is_left(b, id)
        wait_until(lambda: not any("sleep" in words and "(Z)" not in words for words in descendants().values()), "the end of its processes")


@test("a missing hook is named and hooks see neither our descriptors nor our environment")
def _():
    with Bundle() as b:
        with_hooks(b, "prestart", prestart={"extra": f"ls /proc/self/fd | wc -l > {b / 'fds'}; env > {b / 'env'}"})
        b.run(env=environment(SECRET_OF_CALLER="x")).exits(0)
        with open(b / "fds", encoding="ascii") as file:
            equal(file.read().strip(), "4", "descriptors of a hook (0, 1, 2 and ls's own)")
        with open(b / "env", encoding="utf-8") as file:
            seen = file.read()
        contains(seen, "A=b", "the environment")
        lacks(seen, "SECRET_OF_CALLER", "the environment")
        b.config["hooks"]["prestart"] = [{"path": "/no/hook"}]
        refused_oci(b.run(), "prestart", "/no/hook", "No such file")


@test("a failing poststart hook is a warning before version 1.3 and deletes the container from then on")
def _():
    for version, code in (("1.2.0", 0), ("1.3.0", 1)):
        with Bundle("sleep 6000") as b:
            with_hooks(b, "poststart", "poststop", poststart={"extra": "exit 3"})
            b.config["ociVersion"] = version
            id = b.created()
            done = b.oci("start", id).exits(code)
            contains(done.err, "poststart", "the message")
            if code:
                nothing_is_left(b, id)
                equal(lines(b, "order"), ["poststart", "poststop"], "hooks of a container that is deleted")
            else:
                equal(b.status(id), "running", "status")


@test("a hook that deletes its container and fails leaves nothing for start to delete")
def _():
    with Bundle("sleep 6000") as b:
        delete = f"{OCI} --root {b.path}/states delete --force $(ls {b.path}/states); exit 3"
        with_hooks(b, "poststart", "poststop", poststart={"extra": delete})
        b.config["ociVersion"] = "1.3.0"
        id = b.created()
        refused_oci(b.oci("start", id), "poststart")
        nothing_is_left(b, id)
        equal(lines(b, "order"), ["poststart", "poststop"], "each once")


def three(b, kind):
    """Hooks of a kind of which all but the last fail."""
    with_hooks(b, kind)
    last = b.config["hooks"][kind][0]
    b.config["hooks"][kind] = [{"path": "/no/hook"}, hook(b, kind, "exit 3"), last]


@test("poststop hooks all run whichever fails and each failure is a warning")
def _():
    with Bundle("sleep 6000") as b:
        three(b, "poststop")
        id = b.created()
        done = b.delete(id, "--force").exits(0)
        equal(lines(b, "order"), ["poststop", "poststop"], "after delete")
        equal([line.count("warning: hook poststop") for line in done.err.splitlines()], [1, 1], f"warnings in {done.err!r}")
        b.process["args"] = ["/no/program"]
        refused_oci(b.create()[1], "/no/program")
        equal(lines(b, "order"), ["poststop"] * 4, "after a create that fails")


@test("before version 1.3 poststart hooks all run whichever fails")
def _():
    with Bundle("sleep 6000") as b:
        three(b, "poststart")
        id = b.created()
        done = b.oci("start", id).exits(0)
        equal(lines(b, "order"), ["poststart", "poststart"], "hooks")
        equal(done.err.count("warning: hook poststart"), 2, f"warnings in {done.err!r}")
        equal(b.status(id), "running", "status")


def looks_inside(b, extra):
    with_hooks(b, "createContainer", createContainer={"extra": extra})
    b.config["mounts"].append({"destination": "/mnt", "type": "tmpfs", "source": "none"})


@test("a createContainer hook begins in the root file system with its mounts and by its path too")
def _():
    with Bundle("cat /etc/made /mnt/made") as b:
        looks_inside(b, f"pwd > {b.path}/cwd; echo by cwd > etc/made; echo by path > {b.rootfs}/mnt/made")
        b.run().exits(0).says("by cwd\nby path\n")
        with open(b / "cwd", encoding="utf-8") as file:
            equal(file.read(), b.rootfs + "\n", "the working directory")
        true(not os.path.exists(f"{b.rootfs}/mnt/made"), "the hook has written below the mount")


@test("a hook without env inherits and one with an empty env has none")
def _():
    with Bundle() as b:
        with_hooks(b, "createRuntime", "createContainer", "startContainer")
        b.process["env"] += ["LC_OF=process", "LD_PRELOAD=/image/evil.so"]
        for kind, (first, *_) in b.config["hooks"].items():
            log = "/log" if kind == "startContainer" else b / "log"
            first["args"][2] = f"echo ${{LC_OF:-none}} ${{LD_PRELOAD:-clean}} >> {log}/{kind}"
            del first["env"]
            b.config["hooks"][kind].append({**first, "env": []})
        b.run(env=environment(LC_OF="runtime")).exits(0)
        equal(lines(b, "createRuntime"), ["runtime clean", "none clean"], "of the runtime")
        # the image chooses process.env, and the hook is a program of the host: CVE-2025-23266
        equal(lines(b, "createContainer"), ["runtime clean", "none clean"], "of the runtime")
        equal(lines(b, "startContainer"), ["process /image/evil.so", "none clean"], "of the process")


@test("a createContainer hook executes nothing of the image by a relative search path")
def _():
    relative = {name: ".:bin::/usr/bin:" for name in ("PATH", "PYTHONPATH", "PERL5LIB")}
    with Bundle() as b:
        b.file("rootfs/helper", "#!/bin/sh\necho of the image\n", 0o755)
        b.file("rootfs/bin/helper", "#!/bin/sh\necho of the image\n", 0o755)
        for path, wanted in ((".:bin::/usr/bin:", "/usr/bin"), ("", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("/bin::/usr/bin", "/bin:/usr/bin")):
            with_hooks(b, "createContainer")
            (first,) = b.config["hooks"]["createContainer"]
            first["args"][2] = f"{{ helper || echo none; env | sort; }} > {b.path}/log/seen 2> {b.path}/log/errors"
            del first["env"]
            b.run(env=environment(**{**relative, "PATH": path}, LD_LIBRARY_PATH="lib:", TZ="UTC", HOME="here")).exits(0)
            seen = lines(b, "seen")
            equal(seen[0], "none", "the helper")
            equal([line for line in seen if line.startswith("PATH=")], [f"PATH={wanted}"], "PATH")
            true("TZ=UTC" in seen, f"TZ in {seen}")
            equal([line for line in seen if line.startswith(("LD_", "PYTHON", "PERL", "HOME="))], [], "relative paths")


@test("a startContainer hook runs under the filter of the container")
def _():
    for more in ({}, {"noNewPrivileges": False}):
        with Bundle(**more) as b:
            script = "mkdir /tmp/made 2>/dev/null && echo made > /log/mkdir || echo refused > /log/mkdir; grep Seccomp: /proc/self/status > /log/mode"
            with_hooks(b, "startContainer")
            b.config["hooks"]["startContainer"] = [{"path": "/bin/sh", "args": ["sh", "-c", script], "env": ["PATH=/bin"]}]
            b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [errno_rule("mkdir", 1)]}
            b.run().exits(0)
            equal((lines(b, "mkdir"), lines(b, "mode")), (["refused"], ["Seccomp:\t2"]), "under the filter")
            b.config["hooks"]["startContainer"][0]["path"] = "/no/hook"
            refused_oci(b.run(), "startContainer", "/no/hook", "No such file")


@test("a hook may call state and kill of its own container")
def _():
    with Bundle("sleep 6000") as b:
        with_hooks(b, "createRuntime", "poststart", createRuntime={"extra": f"{OCI} --root {b.path}/states state $(ls {b.path}/states) > {b.path}/seen"},
                   poststart={"extra": f"{OCI} --root {b.path}/states kill $(ls {b.path}/states) KILL"})  # fmt: skip
        id = b.started()
        with open(b / "seen", encoding="utf-8") as file:
            equal(json.load(file)["status"], "creating", "status as the hook sees it")
        b.ended(id, 137)
