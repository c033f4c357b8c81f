# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: what the container's process is when it begins, and what a hostile image can't make of it."""

import array
import errno
import fcntl
import json
import os
import socket
import struct
import threading

from bundles import *  # noqa: F403
from harness import *  # noqa: F403
from inside import KILL_AND_CHOWN, SETS, Engine, caps_of, digest, errno_rule, read_pty

# --- ids, capabilities, limits ---


@test("the process has its user groups umask and working directory", who="root")
def _():
    with Bundle("id -u; id -g; id -G; umask; pwd; echo $MARK") as b:
        b.process.update(user={"uid": 7, "gid": 8, "additionalGids": [9, 10], "umask": 0o077}, cwd="/tmp")
        b.process["env"].append("MARK=here")
        b.run().exits(0).says("7\n8\n8 9 10\n0077\n/tmp\nhere\n")
        b.process["user"] = {"uid": 0, "gid": 0}
        b.run().exits(0).says("0\n0\n0\n0022\n/tmp\nhere\n")


@test("capabilities are those of the configuration and no others")
def _():
    caps = ["CAP_KILL", "CAP_CHOWN"]
    with Bundle("cat /proc/self/status") as b:
        b.process["capabilities"] = {}
        equal(caps_of(b.run().exits(0).out), dict.fromkeys(SETS, 0), "capabilities of an empty object")
        del b.process["capabilities"]
        equal(caps_of(b.run().exits(0).out), dict.fromkeys(SETS, 0), "capabilities without the object")
        b.process["capabilities"] = {kind: caps for kind in ("bounding", "effective", "permitted")}
        wanted = {"Inh": 0, "Prm": KILL_AND_CHOWN, "Eff": KILL_AND_CHOWN, "Bnd": KILL_AND_CHOWN, "Amb": 0}
        equal(caps_of(b.run().exits(0).out), wanted, "capabilities (CVE-2022-29162)")


@test("a user keeps capabilities over execve only as ambient ones", who="root")
def _():
    caps = ["CAP_KILL", "CAP_CHOWN"]
    with Bundle("cat /proc/self/status") as b:
        b.process["user"] = {"uid": 1, "gid": 1}
        b.process["capabilities"] = {kind: caps for kind in ("bounding", "effective", "permitted", "inheritable")}
        wanted = {"Inh": KILL_AND_CHOWN, "Prm": 0, "Eff": 0, "Bnd": KILL_AND_CHOWN, "Amb": 0}
        equal(caps_of(b.run().exits(0).out), wanted, "capabilities")
        b.process["capabilities"]["ambient"] = caps
        equal(caps_of(b.run().exits(0).out), dict.fromkeys(SETS, KILL_AND_CHOWN), "capabilities")


@test("a capability that can not be granted is a warning in the log")
def _():
    with Bundle("cat /proc/self/status") as b:
        b.process["capabilities"] = {kind: ["CAP_MADE_UP", "CAP_KILL"] for kind in ("bounding", "permitted", "effective")}
        b.save()
        id = b.new_id()
        oci("--root", b.root, "--log", b / "log", "run", "--bundle", b.path, id).exits(0)
        with open(b / "log", encoding="utf-8") as file:
            log = file.read()
        equal(log.count("'CAP_MADE_UP' is not known"), 3, f"warnings in {log!r}")


@test("no_new_privs is set only when asked for")
def _():
    with Bundle("grep NoNewPrivs /proc/self/status") as b:
        b.run().exits(0).says("NoNewPrivs:\t1\n")
        b.process["noNewPrivileges"] = False
        b.run().exits(0).says("NoNewPrivs:\t0\n")


@test("limits score scheduler and priority are set for the process")
def _():
    script = "ulimit -n; ulimit -Hn; ulimit -Hc; cat /proc/self/oom_score_adj; sed -n 's/^policy *: *//p' /proc/self/sched; uname -m"
    with Bundle(script) as b:
        os.symlink("busybox", f"{b.rootfs}/bin/uname")
        b.process.update(
            rlimits=[{"type": "RLIMIT_NOFILE", "soft": 20, "hard": 30}, {"type": "RLIMIT_CORE", "soft": 0, "hard": 1 << 20}],
            oomScoreAdj=500,
            # an ordinary user may not lower the nice value that the tests run with
            scheduler={"policy": "SCHED_BATCH", "nice": os.getpriority(os.PRIO_PROCESS, 0)},
            ioPriority={"class": "IOPRIO_CLASS_IDLE", "priority": 0},
        )
        b.linux["personality"] = {"domain": "LINUX32"}
        lines = b.run().exits(0).out.split()
        equal(lines[:4], ["20", "30", "2048", "500"], "limits and score")
        equal(lines[-1], "i686", "the machine's name")
        if len(lines) > 5:  # a kernel with CONFIG_SCHED_DEBUG
            equal(lines[4], "3", "SCHED_BATCH")


@test("what can not be set is an error that names it and leaves nothing")
def _():
    rows = (
        ({"rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1, "hard": 1 << 63}]}, "process.rlimits"),
        ({"rlimits": [{"type": "RLIMIT_NOFILE", "soft": 0, "hard": 0}]}, "RLIMIT_NOFILE 0 is too low"),
        ({"rlimits": [{"type": "RLIMIT_NOFILE", "soft": 3, "hard": 3}]}, "RLIMIT_NOFILE 3 is too low"),
        ({"user": {"uid": 1234567, "gid": 0}}, "user 1234567" if WHO == "user" else None),
        ({"apparmorProfile": "some-profile"}, "apparmorProfile"),
        ({"selinuxLabel": "system_u:system_r:some_t:s0"}, "selinuxLabel"),
        ({"cwd": "relative"}, "cwd"),
        ({"args": []}, "args"),
    )
    for change, word in rows:
        if not word or ("apparmorProfile" in change and os.path.exists("/sys/module/apparmor")) or ("selinuxLabel" in change and HAS_SELINUX):
            continue
        with Bundle("true") as b:
            b.process.update(change)
            id, done = b.create()
            refused_oci(done, word)
            nothing_is_left(b, id)


# --- the working directory and the program, in a hostile image ---


@test("a working directory outside the root is refused")
def _():
    """CVE-2024-21626: by a descriptor of ours, also over a link of the image."""
    with Bundle("echo entered; pwd") as b:
        for number in range(0, 40):
            b.process["cwd"] = f"/proc/self/fd/{number}"
            refused_oci(b.run(), "process.cwd")
        os.symlink("/proc/self/fd/7/../../../..", f"{b.rootfs}/away")
        for place in ("/away", "/proc/self/fd/7/../..", "/proc/thread-self/fd/8"):
            b.process["cwd"] = place
            refused_oci(b.run(), "process.cwd")
        os.symlink("../../../../etc", f"{b.rootfs}/tmp/up")
        b.process["cwd"] = "/tmp/up"
        b.run().exits(0).says("entered\n/etc\n")
        equal(os.listdir(f"{b.rootfs}/etc"), [], "etc of the image")


@test("a missing working directory is made inside the root by create and not by exec")
def _():
    with Bundle("pwd; exec sleep 6000") as b:
        os.symlink("/tmp", f"{b.rootfs}/link")
        b.process["cwd"] = "/link/../link/new//deep/"
        id = b.started()
        wait_until(lambda: b.output(id) == "/tmp/new/deep\n", "output")
        equal(os.stat(f"{b.rootfs}/tmp/new/deep").st_mode & 0o777, 0o755, "mode")
        refused_oci(b.oci("exec", "--cwd", "/tmp/other", id, "true"), "process.cwd", "No such file")
        true(not os.path.exists(f"{b.rootfs}/tmp/other"), "exec made a directory")
        for bad in ("/bin/busybox/x", "/proc/self/fd/0/x", "/proc/self/cwd/../x/y", "/" + "n" * 300):
            b.process["cwd"] = bad
            refused_oci(b.run(), "process.cwd")
        b.config["root"]["readonly"] = True
        b.process["cwd"] = "/tmp/in/readonly"
        b.process["args"] = ["/bin/sh", "-c", "pwd; touch here"]
        contains(b.run().exits(1).says("/tmp/in/readonly\n").err, "Read-only", "writing")
        b.config["mounts"].append(mount_of("bind", "/root", b.folder("source"), "rbind", "ro"))
        b.process["cwd"] = "/root/new"
        refused_oci(b.run(), "process.cwd: make '/root/new'", "Read-only")


PASSWD = "root:x:0:0::/root:/bin/sh\nbroken\nme:x:7:7::/home/me:/bin/sh\nme:x:7:7::/second:/bin/sh\nlast:x:8:8:::"


@test("without HOME the program has the home directory of etc passwd in create and exec")
def _():
    with Bundle('echo "$HOME"; exec sleep 6000') as b:
        b.file("rootfs/etc/passwd", PASSWD)
        id = b.started()
        wait_until(lambda: b.output(id) == "/root\n", f"output ({b.output(id)})")
        b.oci("exec", id, "sh", "-c", 'echo "$HOME"').exits(0).says("/root\n")
        b.oci("exec", "--env", "HOME=/mine", id, "sh", "-c", 'echo "$HOME"').exits(0).says("/mine\n")
        b.oci("exec", "--env", "HOME=", id, "sh", "-c", 'echo "$HOME"').exits(0).says("/root\n")
        for user, home in (("7", "/home/me"), ("8", "/"), ("9", "/")) if WHO == "root" else ():
            b.oci("exec", "--user", user, id, "sh", "-c", 'echo "$HOME"').exits(0).says(home + "\n")
        b.process["env"].append("HOME=/given")
        b.process["args"] = ["/bin/env"]
        equal([line for line in b.run().exits(0).out.splitlines() if line.startswith("HOME=")], ["HOME=/given"], "HOME")


@test("an etc passwd that is no readable file leads to the home directory root and to nothing outside")
def _():
    with Bundle('echo "$HOME"') as b:
        place = f"{b.rootfs}/etc/passwd"
        outside = b.file("outside", "root:x:0:0::/outside:\n")
        b.run().exits(0).says("/\n")
        os.mkfifo(place)
        b.run().exits(0).says("/\n")
        for target in (outside, f"../../{outside}", "/proc/self/fd/0", "/proc/self/environ", "/dev/zero", "/none", "passwd"):
            os.remove(place)
            os.symlink(target, place)
            b.run().exits(0).says("/\n")
        os.remove(place)
        b.file("rootfs/etc/passwd", "x" * (1 << 20) + "\n" + PASSWD)
        b.run().exits(0).says("/\n")


@test("an image can not have cejail-oci executed in the place of its program")
def _():
    """CVE-2019-5736: by a link, and by a "#!" line."""
    before = digest(OCI)
    with Bundle() as b:
        os.symlink("/proc/self/exe", f"{b.rootfs}/bin/link")
        b.process["args"] = ["/bin/link"]
        refused_oci(b.run(), "cejail-oci itself", "permission denied")
        b.file("rootfs/bin/script", "#!/proc/self/exe\n", 0o755)
        b.process["args"] = ["/bin/script"]
        done = b.run()  # the sealed copy runs as the container's program, which may only complain
        true(done.code != 0 and "script" in done.err, f"{done!r}")
    equal(digest(OCI), before, "the program on the host")


@test("the copy that runs in a container can not be written")
def _():
    """The same program as the interpreter of a container that has every capability of the host's root."""
    with Bundle("exec /bin/script") as b:
        b.file("rootfs/bin/script", "#!/proc/1/exe\n", 0o755)
        b.process["args"] = ["/bin/sh", "-c", "for i in 1 2 3; do dd if=/bin/sh of=/proc/1/exe bs=1 count=1; done; true"]
        b.run().exits(0)
        id = b.created()
        pid = b.state(id)["pid"]
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            equal(file.read(), "cejail-oci-init\n", "the process that waits")
        if os.geteuid() == 0:
            true(os.readlink(f"/proc/{pid}/exe").startswith("/memfd:"), "init runs from a file of the host")
            try:
                os.close(os.open(f"/proc/{pid}/exe", os.O_WRONLY))
            except OSError as error:
                true(error.errno in (errno.EPERM, errno.ETXTBSY), f"{error}")
            else:
                raise Failure("the copy was opened to be written")
        b.delete(id, "--force").exits(0)


@test("init is not dumpable until the program runs")
def _():
    with Bundle("sleep 6000") as b:
        id = b.created()
        pid = b.state(id)["pid"]
        if WHO == "user":
            try:
                os.readlink(f"/proc/{pid}/exe")
                raise Failure("a process of the same user looks at the waiting init")
            except PermissionError:
                pass
        else:
            equal(os.stat(f"/proc/{pid}/environ").st_uid, 0, "owner of init's files")
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            equal(file.read().strip(b"\0"), b"", "arguments of init")
        b.oci("start", id).exits(0)
        equal(os.readlink(f"/proc/{pid}/exe").rpartition("/")[2], "busybox", "the program")


@test("the memory policy is that of the process and of exec")
def _():
    if not os.path.exists("/proc/self/numa_maps"):
        raise Skip("this kernel is built without CONFIG_NUMA")
    with Bundle("head -n 1 /proc/self/numa_maps | cut -d ' ' -f 2; sleep 6000") as b:
        b.linux["memoryPolicy"] = {"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_STATIC_NODES"]}
        id = b.started()
        wait_until(lambda: "\n" in b.output(id), "output")
        equal(b.output(id), "bind=static:0\n", "the policy")
        contains(b.oci("exec", id, "head", "-n", "1", "/proc/self/numa_maps").exits(0).out, " bind=static:0 ", "the policy of exec")
        b.process["args"][2] = b.process["args"][2].partition(";")[0]
        b.linux["memoryPolicy"] = {"mode": "MPOL_DEFAULT"}
        b.run().exits(0).says("default\n")
        b.linux["memoryPolicy"] = {"mode": "MPOL_BIND", "nodes": "1000"}
        refused_oci(b.run(), "linux.memoryPolicy", "set_mempolicy(2)")


@test("a class of service needs a mounted resctrl file system")
def _():
    with open("/proc/self/mounts", encoding="utf-8") as file:
        if any(line.split()[2] == "resctrl" for line in file):
            raise Skip("resctrl is mounted: the unit test of rdt has the rest")
    with Bundle() as b:
        b.linux["intelRdt"] = {"schemata": ["MB:0=50"]}
        refused_oci(b.run(id="one"), "linux.intelRdt", "mount -t resctrl resctrl /sys/fs/resctrl")
        nothing_is_left(b, "one")


# --- seccomp ---


@test("the seccomp filter applies with and without no_new_privs")
def _():
    with Bundle("uname; mkdir /tmp/x; grep -E 'Seccomp:|NoNew' /proc/self/status") as b:
        os.symlink("busybox", f"{b.rootfs}/bin/uname")
        b.linux["seccomp"] = {
            "defaultAction": "SCMP_ACT_ALLOW",
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
            "syscalls": [errno_rule("uname", 55), errno_rule("mkdir", 17), {"names": ["no_such_call"], "action": "SCMP_ACT_KILL"}],
        }
        for nnp in (True, False):
            b.process["noNewPrivileges"] = nnp
            done = b.run().exits(0).says(f"\nNoNewPrivs:\t{int(nnp)}\nSeccomp:\t2\n")  # uname prints "Linux"
            contains(done.err, "File exists", "mkdir's error")


@test("a filter that waits for its agents and has none is loaded without the flag")
def _():
    with Bundle("mkdir /tmp/x; grep Seccomp: /proc/self/status") as b:
        flags = ["SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", "SECCOMP_FILTER_FLAG_TSYNC"]
        b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "flags": flags, "syscalls": [errno_rule("mkdir", 17)]}
        contains(b.run().exits(0).says("Seccomp:\t2\n").err, "File exists", "mkdir's error")


@test("two conditions of a seccomp rule on one argument are alternatives")
def _():
    with Bundle("for signal in 10 12 15; do kill -$signal 99999 2>&1; done; true") as b:
        args = [{"index": 1, "value": number, "op": "SCMP_CMP_EQ"} for number in (10, 15)]
        b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{**errno_rule("kill", 17), "args": args}]}
        lines = b.run().exits(0).out.splitlines()
        equal([line.rpartition(": ")[2] for line in lines], ["File exists", "No such process", "File exists"], "what the filter says")


@test("a filter without no_new_privs leaves no capability behind")
def _():
    with Bundle("cat /proc/self/status") as b:
        b.process.update(noNewPrivileges=False, capabilities={})
        b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [errno_rule("uname", 1)]}
        equal(caps_of(b.run().exits(0).out), dict.fromkeys(SETS, 0), "capabilities")
        b.process["user"] = {"uid": 0, "gid": 0}
        equal(caps_of(b.run().exits(0).out), dict.fromkeys(SETS, 0), "capabilities")


@test("a filter that kills ends the program by its signal")
def _():
    with Bundle("uname; echo survived") as b:
        os.symlink("busybox", f"{b.rootfs}/bin/uname")
        b.process["args"] = ["/bin/uname"]
        for action in ("SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL", "SCMP_ACT_TRAP"):
            b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["uname"], "action": action}]}
            equal(b.run().code, 128 + signal.SIGSYS, action)


@test("a strict filter allows no more than the program needs")
def _():
    """Nothing of ours calls anything but execve(2) once the filter is loaded."""
    with Bundle() as b:
        needed = "execve brk mprotect arch_prctl set_tid_address set_robust_list rseq prlimit64 readlink readlinkat getrandom"
        b.process["args"] = ["/bin/true"]
        b.linux["seccomp"] = {
            "defaultAction": "SCMP_ACT_KILL_PROCESS",
            "syscalls": [{"names": [*needed.split(), "prctl", "getuid", "exit_group"], "action": "SCMP_ACT_ALLOW"}],
        }
        b.run().exits(0)
        b.process["noNewPrivileges"] = False
        b.run().exits(0)


NOTIF_RECV, NOTIF_SEND = 0xC0502100, 0xC0182101


def answer_calls(listener, seen):
    """Every notified call gets ENOANO (55), until the container ends."""
    call = bytearray(80)
    while True:
        call[:] = bytes(80)
        try:
            fcntl.ioctl(listener, NOTIF_RECV, call)
            id, _, _, number = struct.unpack_from("=QIIi", call)
            seen.append(number)
            fcntl.ioctl(listener, NOTIF_SEND, struct.pack("=QqiI", id, 0, -55, 0))
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT):
                continue
            return


@test("a seccomp agent receives the listener with the containers state")
def _():
    with Bundle("uname") as b, Engine(b) as engine:
        os.symlink("busybox", f"{b.rootfs}/bin/uname")
        b.config["annotations"] = {"some": "note"}
        b.linux["seccomp"] = {
            "defaultAction": "SCMP_ACT_ALLOW",
            "listenerPath": engine.path,
            "listenerMetadata": "meta",
            "syscalls": [{"names": ["uname"], "action": "SCMP_ACT_NOTIFY"}],
        }
        id = b.created()
        pid = b.state(id)["pid"]
        b.oci("start", id).exits(0)
        peer, _ = engine.listener.accept()
        data, control, _, _ = peer.recvmsg(1 << 16, socket.CMSG_SPACE(4))
        state, seen = json.loads(data), []
        listener = array.array("i", control[0][2])[0]
        thread = threading.Thread(target=answer_calls, args=(listener, seen), daemon=True)
        thread.start()
        b.ended(id, 0)
        equal(b.output(id), "\n", "output of uname")
        equal(set(seen), {63}, "notified calls")  # uname
        equal((state["fds"], state["metadata"], state["pid"]), (["seccompFd"], "meta", pid), "the message")
        of_container = state["state"]
        equal((of_container["id"], of_container["bundle"], of_container["pid"]), (id, b.path, pid), "its state")
        equal(of_container["annotations"], {"some": "note"}, "annotations")
        os.close(listener)
        peer.close()


@test("a filter that can not be honoured is refused")
def _():
    allow_one = {"names": ["ioctl"], "action": "SCMP_ACT_KILL", "args": [{"index": 1, "value": 5, "op": "SCMP_CMP_EQ"}]}
    rows = (
        ({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [allow_one, {"names": ["ioctl"], "action": "SCMP_ACT_ALLOW"}]}, "'ioctl'"),
        ({"defaultAction": "SCMP_ACT_ALLOW", "defaultErrnoRet": 38}, "defaultErrnoRet"),
        ({"defaultAction": "SCMP_ACT_SOMETHING"}, "SCMP_ACT_SOMETHING"),
        ({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["uname"], "action": "SCMP_ACT_NOTIFY"}]}, "listenerPath"),
        (
            {
                "defaultAction": "SCMP_ACT_ALLOW",
                "listenerPath": "/no/such/agent",
                "syscalls": [{"names": ["uname"], "action": "SCMP_ACT_NOTIFY"}],
            },
            "/no/such/agent",
        ),
    )
    for seccomp, word in rows:
        with Bundle("true") as b:
            b.linux["seccomp"] = seccomp
            id, done = b.create()
            refused_oci(done, word)
            nothing_is_left(b, id)


# --- the terminal ---


@test("the engine receives the terminal and the program has it")
def _():
    script = "tty; stty size; echo console >/dev/console; read line; echo got $line; ls -l /proc/self/fd/0 | grep -c /dev/pts/0"
    with Bundle(script) as b, Engine(b) as engine:
        b.process.update(terminal=True, consoleSize={"height": 31, "width": 97})
        id = b.created("--console-socket", engine.path)
        master = engine.receive()
        b.oci("start", id).exits(0)
        text = read_pty(master, b"console\r\n")
        equal(text.split("\n")[:3], ["/dev/pts/0", "31 97", "console"], "what the program wrote")
        os.write(master, b"hello\n")
        contains(read_pty(master, b"got hello\r\n1\r\n"), "got hello\n1\n", "the answer")
        b.ended(id, 0)
        equal(b.output(id) + b.errors(id), "", "what came on the streams of create")
        os.close(master)


@test("a container with a read-only dev has its terminal at dev console")
def _():
    with Bundle("tty; echo written >/dev/console; touch /dev/new") as b, Engine(b) as engine:
        b.process["terminal"] = True
        next(one for one in b.config["mounts"] if one["destination"] == "/dev")["options"].append("ro")
        id = b.created("--console-socket", engine.path)
        master = engine.receive()
        b.oci("start", id).exits(0)
        text = read_pty(master, b"system\r\n")
        contains(text, "/dev/pts/0\nwritten\n", "the terminal")
        contains(text, "/dev/new: Read-only file system", "writing")
        b.ended(id, 1)
        os.close(master)


@test("keys of the terminal signal the program because it controls it")
def _():
    with Bundle("trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.05; done") as b, Engine(b) as engine:
        b.process["terminal"] = True
        id = b.created("--console-socket", engine.path)
        master = engine.receive()
        b.oci("start", id).exits(0)
        read_pty(master, b"ready")
        os.write(master, b"\x03")
        b.ended(id, 3)
        os.close(master)


@test("a terminal needs a devpts and a socket and there is none without asking")
def _():
    with Bundle("true") as b, Engine(b) as engine:
        b.process["terminal"] = True
        id, done = b.create()
        refused_oci(done, "--console-socket")
        nothing_is_left(b, id)
        id, done = b.create("--console-socket", "/no/such/socket")
        refused_oci(done, "/no/such/socket")
        nothing_is_left(b, id)
        mounts = b.config["mounts"]
        b.config["mounts"] = [one for one in mounts if one["type"] != "devpts"]
        id, done = b.create("--console-socket", engine.path)
        refused_oci(done, "/dev/pts", "devpts")
        nothing_is_left(b, id)
        b.config["mounts"] = mounts
        b.process.update(terminal=False, args=["/bin/sh", "-c", "test -t 0 || test -e /dev/console || echo none"])
        b.run("--console-socket", engine.path).exits(0).says("none\n")


@test("links of an image do not lead the console elsewhere")
def _():
    """CVE-2025-52565: /dev/console and /dev/pts as links."""
    with Bundle("echo written >/dev/console; true") as b, Engine(b) as engine:
        b.process["terminal"] = True
        target = b.file("target", "untouched\n")
        mounts = b.config["mounts"]
        b.config["mounts"] = [one for one in mounts if one["destination"] in ("/proc", "/dev/pts")]
        os.symlink(target, f"{b.rootfs}/dev/console")
        id = b.created("--console-socket", engine.path)  # on a tmpfs of our own over the image's /dev
        master = engine.receive()
        b.oci("start", id).exits(0)
        read_pty(master, b"written\r\n")
        b.ended(id, 0)
        os.close(master)

        other = b.folder("other")
        os.mkdir(f"{other}/pts")
        os.symlink(target, f"{other}/console")
        b.config["mounts"].insert(0, mount_of("bind", "/dev", other, "rbind"))
        id, done = b.create("--console-socket", engine.path)
        refused_oci(done, "/dev/console", "symbolic link")
        nothing_is_left(b, id)
        os.rmdir(f"{other}/pts")
        os.symlink("/dev/pts", f"{other}/pts")
        id, done = b.create("--console-socket", engine.path)
        refused_oci(done, "/dev/pts")
        with open(target, encoding="utf-8") as file:
            equal(file.read(), "untouched\n", "the link's target")


@test("the program can not push input into the callers terminal")
def _():
    """Without a terminal it is in a session of its own."""
    with Bundle("cat /proc/self/stat") as b:
        fields = b.run().exits(0).out.split()
        equal(fields[5], "1", "session")
        equal(fields[6], "0", "controlling terminal")


@test("a keyring of the caller is not the containers")
def _():
    join = """
import ctypes, sys
keyctl = lambda *args: ctypes.CDLL(None).syscall(250, *args)
keyctl(1, b"mine")
id = keyctl(0, -3, 0)
keyctl(5, id, 0x3f000000)  # only who possesses it sees it
print(id, flush=True)
"""
    with Bundle("cat /proc/keys") as b:
        b.linux["maskedPaths"] = []
        b.save()
        run = f"import os; os.execv({OCI!r},[{OCI!r},'--root',{str(b.root)!r},'run','--bundle',{b.path!r},*EXTRA,{{id!r}}])"
        for extra, is_shared in (([], False), (["--no-new-keyring"], True)):
            code = join + run.replace("EXTRA", repr(extra)).format(id=b.new_id())
            done = finish(subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()))
            if "No such file" in done.err:
                raise Skip("this kernel has no /proc/keys")
            done.exits(0)
            serial = f"{int(done.out.split()[0]):08x}"
            equal(serial in done.out.partition("\n")[2], is_shared, f"the caller's keyring {serial} in {done.out!r}")
