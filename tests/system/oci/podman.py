# SPDX-License-Identifier: Apache-2.0
"""podman with cejail-oci as its runtime: as root, and as an ordinary user with subordinate ids."""

import ctypes.util
import glob
import json
import os
import shutil

from engines import *  # noqa: F403
from engines import Podman
from harness import *  # noqa: F403

SELVES = "/proc/self/status"


@test("podman runs a program with its streams and its exit status", who="accounts", limit=120)
def _():
    with Podman() as p:
        p.run("echo", "hello").exits(0).says("hello\n")
        p.run("cat", options=("-i",), given="in\n").exits(0).says("in\n")
        done = p.sh("echo out; echo err >&2; exit 7").exits(7)
        equal((done.out, done.err), ("out\n", "err\n"), "the streams")
        p.run("sh", "-c", "kill -9 1; kill -TERM $$; echo alive").exits(0)


@test("podman exits with 127 for a missing program and with 126 for one that can not be executed", who="accounts", limit=120)
def _():
    with Podman() as p:
        with open(f"{p.rootfs}/plain", "w", encoding="ascii") as file:
            file.write("text")
        for program, code in (("nosuch", 127), ("/nosuch", 127), ("/etc", 126), ("/plain", 126)):
            done = p.run(program).exits(code)
            contains(done.err, program, "the message")
        equal(p.states(), [], "states that are left")


@test("podman sets user groups capabilities umask directory and environment", who="accounts", limit=120)
def _():
    with Podman() as p:
        p.sh("id -u; id -g", "--user", "5:6").exits(0).says("5\n6\n")
        contains(p.sh("id -G", "--user", "5:6", "--group-add", "33").exits(0).out, "33", "groups")
        only = p.run("grep", "-E", "Cap(Prm|Eff|Bnd)", SELVES, options=("--cap-drop", "all", "--cap-add", "kill")).exits(0)
        equal([line.split()[1] for line in only.out.splitlines()], ["0000000000000020"] * 3, "capabilities")
        none = p.run("grep", "CapEff", SELVES, options=("--user", "5")).exits(0)
        equal(none.out.split()[1], "0" * 16, "capabilities of an ordinary user")
        p.sh("umask; pwd; echo $A", "--umask", "077", "-w", "/tmp", "-e", "A=b c").exits(0).says("0077\n/tmp\nb c\n")
        p.sh("ulimit -n", "--ulimit", "nofile=100:200", "--ulimit", "nproc=512", "--user", "5").exits(0).says("100\n")
        p.sh("cat /proc/self/oom_score_adj", "--oom-score-adj", "500").exits(0).says("500\n")
        contains(p.run("grep", "NoNewPrivs", SELVES, options=("--security-opt", "no-new-privileges")).out, "1", "flag")


@test("podmans default seccomp profile is in force", who="accounts", limit=60)
def _():
    with Podman() as p:
        contains(p.run("grep", "Seccomp:", SELVES).exits(0).out, "2", "mode")
        contains(p.run("grep", "Seccomp:", SELVES, options=("--security-opt", "seccomp=unconfined")).exits(0).out, "0", "mode")
        # the profile has no mount(2) without CAP_SYS_ADMIN
        contains(p.sh("mount -t tmpfs none /tmp 2>&1; echo $?").exits(0).out, "denied", "mount")


@test("podmans mounts volumes and masks are the containers", who="accounts", limit=120)
def _():
    with Podman() as p:
        p.file("data", "volume\n")
        p.run("cat", "/mnt/data", options=("-v", f"{p.path}/data:/mnt/data:ro")).exits(0).says("volume\n")
        done = p.sh("echo x > /mnt/data", "-v", f"{p.path}/data:/mnt/data:ro")
        true(done.code != 0 and "Read-only" in done.err, f"the volume is writable: {done!r}")
        done = p.sh("touch /x", "--read-only")
        true(done.code != 0 and "Read-only" in done.err, f"the root is writable: {done!r}")
        contains(p.sh("grep ' /t ' /proc/mounts", "--tmpfs", "/t:size=1m").exits(0).out, "size=1024k", "the tmpfs")
        p.sh("test ! -s /proc/keys && ! (echo 1 > /proc/sysrq-trigger) 2>/dev/null && ls /sys/firmware").exits(0).says("")
        p.sh("readlink /proc/1/ns/net | cut -d: -f1; hostname", "--hostname", "box").exits(0).says("net\nbox\n")
        p.sh("test -c /dev/null && test -c /dev/zero && test ! -e /dev/kmsg && test ! -e /dev/mem").exits(0)


@test("podman -t gives the container a terminal of its own", who="accounts", limit=60)
def _():
    with Podman() as p:
        done = p.in_terminal("run", "--rm", "-t", *p.options(), "sh", "-c", "tty; test -t 0 && test -c /dev/console && echo yes")
        contains(done.out, "/dev/pts/0", "the terminal")
        contains(done.out, "yes", "the output")


@test("a detached container is listed executed in stopped started and removed", who="accounts", limit=180)
def _():
    with Podman() as p:
        script = "trap 'echo usr1' USR1; trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done"
        p.podman("run", "-d", "--name", "one", *p.options(), "sh", "-c", script).exits(0)
        wait_until(lambda: "ready" in p.podman("logs", "one").out, "the program")
        equal(p.podman("ps", "--format", "{{.Names}}").exits(0).out, "one\n", "ps")
        equal(p.value("one", "{{.State.Status}} {{.OCIRuntime}}"), "running cejail-oci", "inspect")
        p.podman("exec", "one", "echo", "inside").exits(0).says("inside\n")
        p.podman("exec", "-i", "one", "cat", given="in").exits(0).says("in")
        p.podman("exec", "--user", "7:8", "-w", "/tmp", "-e", "A=b", "one", "sh", "-c", "id -u; pwd; echo $A").says("7\n/tmp\nb\n")
        p.podman("exec", "one", "sh", "-c", "exit 9").exits(9)
        p.podman("exec", "one", "nosuch").exits(127)
        p.podman("exec", "one", "/etc").exits(126)
        contains(p.in_terminal("exec", "-t", "one", "sh", "-c", "test -t 0 && tty").out, "/dev/pts/", "the terminal of exec")
        p.podman("exec", "-d", "one", "sh", "-c", "echo x > /tmp/made").exits(0)
        wait_until(lambda: os.path.exists(f"{p.rootfs}/tmp/made"), "the detached process")
        p.podman("kill", "--signal", "USR1", "one").exits(0)
        wait_until(lambda: "usr1" in p.podman("logs", "one").out, "the signal")
        p.podman("stop", "--time", "100", "one").exits(0)
        equal(p.value("one", "{{.State.Status}} {{.State.ExitCode}}"), "exited 3", "inspect")
        p.podman("start", "one").exits(0)
        p.podman("kill", "one").exits(0)
        p.podman("wait", "one").exits(0).says("137\n")
        p.podman("rm", "one").exits(0)
        equal(p.states(), [], "states that are left")


@test("a container of podman is paused measured and limited in its cgroup", who="machine root", limit=180)
def _():
    with Podman() as p:
        p.podman("run", "-d", "--name", "one", "--memory", "64m", "--pids-limit", "20", *p.options(), "sleep", "1000").exits(0)
        contains(p.podman("top", "one").exits(0).out, "sleep", "top")
        p.podman("pause", "one").exits(0)
        equal(p.value("one", "{{.State.Status}}"), "paused", "inspect")
        p.podman("unpause", "one").exits(0)
        contains(p.podman("stats", "--no-stream", "one").exits(0).out, "67.11MB", "stats")
        p.podman("update", "--memory", "32m", "one").exits(0)
        # podman's stats go on with the old limit, which is in its own configuration
        with open(f"/proc/{p.value('one', '{{.State.Pid}}')}/cgroup", encoding="ascii") as file:
            cgroup = file.read().rpartition("::")[2].strip()
        with open(f"/sys/fs/cgroup{cgroup}/memory.max", encoding="ascii") as file:
            equal(file.read().strip(), str(32 << 20), "memory.max")
        p.podman("rm", "-f", "-t", "0", "one").exits(0)
        done = p.sh("dd if=/dev/zero of=/dev/null bs=128M count=1", "--memory", "16m", "--memory-swap", "16m")
        equal(done.code, 137, "status of a program above its limit")


@test("podman builds an image with cejail-oci", who="root", limit=180)
def _():
    with Podman() as p:
        p.import_image("localhost/box")
        p.file("Containerfile", "FROM localhost/box\nRUN echo built > /made && grep Seccomp: /proc/self/status\n")
        build = p.podman("build", "--runtime", OCI, "--network", "none", "-t", "localhost/built", p.path).exits(0)
        contains(build.out, "Seccomp:\t2", "the output of the step")
        p.podman("run", "--rm", "localhost/built", "cat", "/made").exits(0).says("built\n")


@test("the containers of a pod share its namespaces", who="machine root", limit=180)
def _():
    with Podman() as p:
        p.import_image("localhost/box")
        create = ("--infra-image", "localhost/box", "--infra-command", "sleep 1000", "--network", "none", "--share", "net,ipc,uts,pid")
        p.podman("pod", "create", "--name", "pod", *create).exits(0)
        p.podman("run", "-d", "--pod", "pod", "--name", "one", "localhost/box", "sh", "-c", "echo 1 > /dev/shm/x; sleep 500").exits(0)
        two = p.podman("run", "--rm", "--pod", "pod", "localhost/box", "sh", "-c", "hostname; ls /dev/shm; ps").exits(0)
        contains(two.out, "pod\nx\n", "what the containers share")
        contains(two.out, "sleep 500", "the processes")
        p.podman("pod", "pause", "pod").exits(0)
        p.podman("pod", "unpause", "pod").exits(0)
        p.podman("pod", "stop", "-t", "0", "pod").exits(0)
        p.podman("pod", "rm", "pod").exits(0)
        equal(p.states(), [], "states that are left")


# Options, the map of user ids inside, and the user; a rootless podman counts from its own namespace.
WHOLE = "0:100000:65536"
USER_NAMESPACES = {
    "root": (
        (("--uidmap", WHOLE, "--gidmap", WHOLE), "0 100000 65536", 0),
        (("--uidmap", WHOLE), "0 100000 65536", 0),
        (("--gidmap", WHOLE), "0 100000 65536", 0),
        (("--uidmap", WHOLE, "--user", "5:6"), "0 100000 65536", 5),
        (("--uidmap", "0:100000:1", "--uidmap", "1:200000:1000"), "0 100000 1 1 200000 1000", 0),
    ),
    "user": (
        (("--userns", "keep-id"), "0 1 {uid} {uid} 0 1", "{uid}"),
        (("--userns", "keep-id", "--user", "0"), "0 1 {uid} {uid} 0 1", 0),
        (("--userns", "keep-id:uid=5,gid=6"), "0 1 5 5 0 1", 5),
        (("--userns", "nomap"), "0 1 65536", 0),
        (("--uidmap", "0:1:1000"), "0 1 1000", 0),
        (("--uidmap", "0:0:1", "--uidmap", "1:1:1000"), "0 0 1 1 1 1000", 0),
    ),
}


@test("each form of podmans user namespaces maps the containers ids", limit=180, who="accounts")
def _():
    with Podman() as p:
        p.import_image("localhost/box")
        for options, wanted, user in USER_NAMESPACES[WHO]:
            lines = p.podman("run", "--rm", *options, "localhost/box", "sh", "-c", "id -u; cat /proc/self/uid_map").exits(0).out.split()
            equal(lines[0], str(user).format(uid=os.geteuid()), f"the user with {options}")
            equal(" ".join(lines[1:])[: len(mapped := wanted.format(uid=os.geteuid()))], mapped, f"the map with {options}")
        tried(len(USER_NAMESPACES[WHO]))


@test("a volume of podman with an id map shows its owners in a user namespace", limit=60, who="root")
def _():
    with Podman() as p:
        p.import_image("localhost/box")
        os.chown(p.folder("volume"), 0, 7)
        options = ("--uidmap", WHOLE, "-v", f"{p.path}/volume:/mnt:idmap")
        p.podman("run", "--rm", *options, "localhost/box", "sh", "-c", "touch /mnt/new && stat -c %u:%g /mnt /mnt/new").exits(0).says("0:7\n0:0\n")
        equal(os.stat(p / "volume/new").st_uid, 0, "the owner on the host")


@test("an image mount of podman shows the files of the image", limit=60, who="accounts")
def _():
    with Podman() as p:
        p.import_image("localhost/box")
        for options, verdict in (("", "ro"), (",rw=true", "rw")):
            mount = ("--mount", f"type=image,src=localhost/box,dst=/mnt{options}")
            script = "test -x /mnt/bin/busybox && if touch /mnt/new; then echo rw; else echo ro; fi"
            p.podman("run", "--rm", *mount, "localhost/box", "sh", "-c", script).exits(0).says(f"{verdict}\n")


@test("podman passes descriptors on", limit=60, who="accounts")
def _():
    with Podman() as p:
        with open(p.file("given", "from a descriptor\n"), "rb") as file:
            words = [*map(str, p.globals), "run", "--rm", "--preserve-fds", "1", *p.options(), "sh", "-c", "cat <&3"]
            done = p.call("sh", "-c", 'exec 3<&0 0</dev/null; exec "$@"', "sh", *words, stdin=file)
        done.exits(0).says("from a descriptor\n")


@test("podman with the cgroup manager systemd has its containers in limited scopes", who="machine root", limit=180)
def _():
    with Podman() as p:
        p.globals += ["--cgroup-manager", "systemd"]
        p.podman("run", "-d", "--name", "one", "--memory", "64m", "--pids-limit", "20", *p.options(), "sleep", "1000").exits(0)
        with open(f"/proc/{p.value('one', '{{.State.Pid}}')}/cgroup", encoding="ascii") as file:
            cgroup = file.read().rpartition("::")[2].strip()
        contains(cgroup, "/machine.slice/libpod-", "the scope")
        for name, value in (("memory.max", str(64 << 20)), ("pids.max", "20")):
            with open(f"/sys/fs/cgroup{cgroup}/{name}", encoding="ascii") as file:
                equal(file.read().strip(), value, name)
        p.podman("exec", "one", "true").exits(0)
        p.podman("pause", "one").exits(0)
        p.podman("unpause", "one").exits(0)
        p.podman("rm", "-f", "-t", "0", "one").exits(0)
        wait_until(lambda: not os.path.exists(f"/sys/fs/cgroup{cgroup}"), "the end of the scope")
        equal(p.states(), [], "states that are left")


@test("podman passes annotations and a result names the end of its container", who="accounts", limit=120)
def _():
    with Podman() as p:
        wanted = [("io.cejail.result", p / "result.json")]
        words = [word for name, value in wanted for word in ("--annotation", f"{name}={value}")]
        flags = ("--runtime-flag", f"result-dir={p.path}") if WHO == "root" else ()
        p.podman(*flags, "run", "--rm", *words, *p.options(), "sh", "-c", "exit 5").exits(5)
        wait_until(lambda: os.path.exists(p / "result.json"), "the result")
        with open(p / "result.json", encoding="utf-8") as file:
            result = json.load(file)
        true((result["status"], result["exit_code"]) in (("exited", 5), (None, None)), f"the end: {result}")


# What nvidia-ctk's hook update-ldcache does: it finds the root file system by the state, and sees its mounts there.
LDCACHE = """#!/usr/bin/python3
import json, os, subprocess, sys
state = json.load(sys.stdin)
with open(os.path.join(state["bundle"], "config.json")) as file:
    root = os.path.join(state["bundle"], json.load(file)["root"]["path"])
os.makedirs(root + "/etc", exist_ok=True)
subprocess.run(["/sbin/ldconfig", "-r", root, *sys.argv[1:]], check=True)
"""


@test("a CDI device of podman has its node its mounts its environment and its hook", limit=60, who="root")
def _():
    with Podman() as p:
        library = ctypes.util.find_library("m")
        source = next(path for path in glob.glob("/lib/*/" + library) if os.path.exists(path))
        shutil.copy(source, p.folder("lib"))
        hook = p.file("update-ldcache", LDCACHE, 0o755)
        # without major and minor: they are those of the host's node
        spec = {
            "cdiVersion": "0.5.0",
            "kind": "example.com/thing",
            "devices": [{"name": "one", "containerEdits": {"deviceNodes": [{"path": "/dev/thing", "hostPath": "/dev/zero"}]}}],
            "containerEdits": {
                "env": ["THING=one"],
                "mounts": [{"hostPath": p / "lib", "containerPath": "/opt/lib", "options": ["ro", "nosuid", "nodev", "bind"]}],
                "hooks": [{"hookName": "createContainer", "path": hook, "args": ["update-ldcache", "/opt/lib"]}],
            },
        }
        os.mkdir(f"{p.inside}/run/cdi")
        with open(f"{p.inside}/run/cdi/thing.json", "w", encoding="utf-8") as file:
            json.dump(spec, file)
        script = f"echo $THING; stat -c '%F %t:%T' /dev/thing; head -c 2 /dev/thing | wc -c; grep -c /opt/lib/{library} /etc/ld.so.cache"
        done = p.sh(script, "--device", "example.com/thing=one").exits(0)
        equal(done.out.splitlines(), ["one", "character special file 1:5", "2", "1"], "the device")
        equal(os.listdir(f"{p.rootfs}/opt/lib") if os.path.isdir(f"{p.rootfs}/opt/lib") else [], [], "what is left below the mount")
