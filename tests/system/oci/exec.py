# SPDX-License-Identifier: Apache-2.0
"""cejail-oci exec: one more process in a running container, beside hostile ones."""

import contextlib
import errno
import json
import os
import subprocess
import time

from bundles import *  # noqa: F403
from harness import *  # noqa: F403
from inside import KILL_AND_CHOWN, SETS, Engine, caps_of, digest, errno_rule, read_pty

SPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


def spaces_of(pid):
    return {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in SPACES}


def sleeping(**more):
    return Bundle("echo ready; exec sleep 6000", **more)


def detached(b, id, process, *options):
    """The pid of a detached exec of `process`, which a process.json describes."""
    file = b.file("process.json", json.dumps(process))
    words = [OCI, "--root", b.root, "exec", "--process", file, "--detach", "--pid-file", b / "exec.pid", *options, id]
    with open(b / "exec.out", "wb") as out:
        finish(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment()), args=words).exits(0)
    with open(b / "exec.pid", encoding="ascii") as file:
        text = file.read()
    equal(text, str(int(text)), "the pid file")
    return int(text)


@test("exec returns the status of its program and forwards the streams")
def _():
    with sleeping() as b:
        id = b.started()
        b.oci("exec", id, "sh", "-c", "cat; echo error >&2; exit 7", given="input\n").exits(7).says("input\n")
        b.oci("exec", id, "sh", "-c", "kill -9 $$").exits(137)
        b.oci("exec", id, "echo", "-n", "--user").exits(0).says("--user")


@test("a detached process is in every namespace and the cgroup of its container")
def _():
    with sleeping() as b:
        id = b.started()
        init = b.state(id)["pid"]
        process = {**b.process, "args": ["/bin/sleep", "6000"]}
        pid = detached(b, id, process)
        equal(spaces_of(pid), spaces_of(init), "namespaces")
        for name in ("cgroup", "mountinfo"):
            with open(f"/proc/{pid}/{name}", encoding="utf-8") as ours, open(f"/proc/{init}/{name}", encoding="utf-8") as theirs:
                equal(ours.read(), theirs.read(), name)
        equal(os.readlink(f"/proc/{pid}/exe").rpartition("/")[2], "busybox", "the executable when exec returns")
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            equal(int(file.read().rpartition(")")[2].split()[1]), os.getpid(), "the parent: an orphan is the subreaper's")
        b.oci("kill", id, "KILL").exits(0)
        equal(wait_status(pid), 137, "the end of the pid namespace")
        b.ended(id)


@test("a process file says everything and flags beside it are refused")
def _():
    with sleeping() as b:
        id = b.started()
        process = {"args": ["sh", "-c", "pwd; echo $A; grep NoNew /proc/self/status"], "env": ["PATH=/bin", "A=b"], "cwd": "/tmp"}
        file = b.file("process.json", json.dumps(process))
        b.oci("exec", "--process", file, id).exits(0).says("/tmp\nb\nNoNewPrivs:\t0\n")
        b.oci("exec", f"--process={file}", id).exits(0)
        b.oci("exec", "-p", "/dev/stdin", id, given=json.dumps(process)).exits(0)
        through = ("bash", "-c", 'exec 3<"$0"; exec 9<&3 3<&-; "$@"', file)  # descriptor 9, as from <(...)
        b.oci("exec", "-p", "/dev/fd/9", id, through=through).exits(0).says("/tmp\nb\nNoNewPrivs:\t0\n")
        for flag in (("--cwd", "/"), ("--env", "A=c"), ("--user", "0"), ("--cap", "CAP_KILL"), ("--no-new-privs",)):
            refused_oci(b.oci("exec", "--process", file, *flag, id), "--process", flag[0])
        refused_oci(b.oci("exec", "--process", file, id, "true"), "a command")
        for text in ("", "{", '{"cwd": "/"}', '{"args": [], "cwd": "/"}', '{"args": ["true"], "cwd": "relative"}'):
            refused_oci(b.oci("exec", "--process", b.file("bad.json", text), id), "bad.json")
        refused_oci(b.oci("exec", "--process", b / "none", id), "none")
        refused_oci(b.oci("exec", id), "exec needs a command")


@test("flags change the process of the container")
def _():
    with sleeping() as b:
        b.process["env"] += ["A=one", "B=two"]
        id = b.started()
        done = b.oci("exec", "--env", "A=three", "-e", "C=", "--cwd", "/tmp", id, "sh", "-c", "env | sort; pwd").exits(0)
        lines = [line for line in done.out.splitlines() if line[:2] in ("A=", "B=", "C=") or line.startswith("/")]
        equal(lines, ["A=three", "B=two", "C=", "/tmp"], "environment and directory")
        refused_oci(b.oci("exec", "--env", "NOVALUE", id, "true"), "NAME=VALUE")
        refused_oci(b.oci("exec", "--cwd", "tmp", id, "true"), "absolute")
        refused_oci(b.oci("exec", "--cwd", "/none", id, "true"), "process.cwd")
        if not HAS_SELINUX:
            refused_oci(b.oci("exec", "--process-label", "x", id, "true"), "SELinux")
        if not os.path.exists("/sys/module/apparmor"):
            refused_oci(b.oci("exec", "--apparmor", "x", id, "true"), "AppArmor")


@test("exec runs on the cpus that it is given and the first process does not")
def _():
    cpus = sorted(os.sched_getaffinity(0))
    with Bundle("grep Cpus_allowed_list /proc/self/status; exec sleep 6000") as b:
        look = {"args": ["grep", "Cpus_allowed_list", "/proc/self/status"], "env": ["PATH=/bin"], "cwd": "/"}
        b.process["execCPUAffinity"] = {"final": str(cpus[0])}
        id = b.started()
        wait_until(lambda: "\n" in b.output(id), "output")
        every = b.output(id)
        rows = (({"final": f"{cpus[0]}"}, f"Cpus_allowed_list:\t{cpus[0]}\n"), ({"initial": f"{cpus[0]}", "final": f"{cpus[-1]}"}, f"Cpus_allowed_list:\t{cpus[-1]}\n"),
                ({"initial": f"{cpus[0]}"}, every), ({}, every))  # fmt: skip
        for affinity, says in rows:
            file = b.file("process.json", json.dumps({**look, "execCPUAffinity": affinity}))
            b.oci("exec", "--process", file, id).exits(0).says(says)
        b.oci("exec", id, *look["args"]).exits(0).says(rows[0][1])  # config.json's process
        file = b.file("process.json", json.dumps({**look, "execCPUAffinity": {"final": "8191"}}))
        refused_oci(b.oci("exec", "--process", file, id), "execCPUAffinity", "none of them is online")


@test("ids and groups of exec are the given ones", who="root")
def _():
    with sleeping() as b:
        b.process["user"] = {"uid": 5, "gid": 6, "additionalGids": [7]}
        id = b.started()
        script = ("sh", "-c", "id -u; id -g; id -G")
        b.oci("exec", id, *script).exits(0).says("5\n6\n6 7\n")
        b.oci("exec", "-u", "1", id, *script).exits(0).says("1\n6\n6 7\n")
        b.oci("exec", "--user", "1:2", "-g", "3", "--additional-gids", "4", id, *script).exits(0).says("1\n2\n2 3 4 7\n")
        b.oci("exec", "--user=0:0", id, *script).exits(0).says("0\n0\n0 7\n")


@test("a user that is not a number never becomes root")
def _():
    """CVE-2026-30892."""
    with sleeping() as b:
        id = b.started()
        wrong = ("", "-1", "+1", " 1", "1 ", "1:", ":1", "1:2:3", "0x1", "1.0", "root", "4294967295", "4294967296", "99999999999999999999", "1:-1", "--")
        for text in wrong:
            refused_oci(b.oci("exec", f"--user={text}", id, "id"), "--user")
        for text in ("", "-1", "x", "4294967295"):
            refused_oci(b.oci("exec", f"--additional-gids={text}", id, "id"), "--additional-gids")


@test("exec has the container's capabilities and an added one is never inheritable")
def _():
    """CVE-2022-29162."""
    caps = ["CAP_CHOWN"]
    with sleeping() as b:
        b.process["capabilities"] = {kind: caps for kind in ("bounding", "permitted", "effective")}
        b.process["noNewPrivileges"] = False
        id = b.started()
        equal(caps_of(b.oci("exec", id, "cat", "/proc/self/status").exits(0).out)["Eff"], 1, "capabilities")
        done = b.oci("exec", "--cap", "CAP_KILL", "--no-new-privs", id, "cat", "/proc/self/status").exits(0)
        wanted = {"Inh": 0, "Prm": KILL_AND_CHOWN, "Eff": KILL_AND_CHOWN, "Bnd": KILL_AND_CHOWN, "Amb": 0}
        equal(caps_of(done.out), wanted, "capabilities")
        contains(done.out, "NoNewPrivs:\t1\n", "status")
        process = {"args": ["cat", "/proc/self/status"], "env": ["PATH=/bin"], "cwd": "/"}
        done = b.oci("exec", "--process", b.file("process.json", json.dumps(process)), id).exits(0)
        equal(caps_of(done.out), dict.fromkeys(SETS, 0), "capabilities of a process without any")


@test("the container's filter limits and score apply to exec")
def _():
    with sleeping() as b:
        b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [errno_rule("mkdir", 17)]}
        b.process.update(rlimits=[{"type": "RLIMIT_NOFILE", "soft": 21, "hard": 31}], oomScoreAdj=400)
        id = b.started()
        script = "ulimit -n; cat /proc/self/oom_score_adj; grep Seccomp: /proc/self/status; mkdir /tmp/x"
        done = b.oci("exec", id, "sh", "-c", script).exits(1).says("21\n400\nSeccomp:\t2\n")
        contains(done.err, "File exists", "mkdir's error")


@test("exec has its streams and preserved descriptors and no others")
def _():
    with sleeping() as b:
        id = b.started()
        with open(os.devnull, "rb") as one, open(os.devnull, "rb") as two:
            fds = {one.fileno(), two.fileno()}
            words = (f"exec 3</dev/null 4</dev/null 5</dev/null 9</dev/null; exec {OCI} --root {b.root} exec %s {id} "
                     "sh -c 'ls /proc/self/fd'")  # fmt: skip
            for option, wanted in (("", "0\n1\n2\n3\n"), ("--preserve-fds 2", "0\n1\n2\n3\n4\n5\n")):
                shell = subprocess.Popen(["/bin/bash", "-c", words % option], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, env=environment(), pass_fds=fds)  # fmt: skip
                out = finish(shell).exits(0).out
                equal(out, wanted, "descriptors, the last one of ls itself")
        refused_oci(b.oci("exec", "--preserve-fds", "5", id, "true"), "--preserve-fds", "descriptor")


@test("exec gives the engine a terminal of the container")
def _():
    with sleeping() as b, Engine(b) as engine:
        id = b.started()
        process = {"args": ["sh", "-c", "tty; stty size; read x; echo got $x; exit 3"], "env": ["PATH=/bin"], "cwd": "/",
                   "terminal": True, "consoleSize": {"height": 20, "width": 70}}  # fmt: skip
        pid = detached(b, id, process, "--tty", "--console-socket", engine.path)
        master = engine.receive()
        equal(read_pty(master, b"20 70\r\n").split("\n")[:2], ["/dev/pts/0", "20 70"], "terminal")
        os.write(master, b"this\n")
        read_pty(master, b"got this\r\n")
        equal(wait_status(pid), 3, "status")
        os.close(master)
        refused_oci(b.oci("exec", "--tty", id, "tty"), "console socket")


@test("a program that can not be executed is an error with the texts that podman knows")
def _():
    with sleeping() as b:
        id = b.started()
        b.file("rootfs/bin/data", "text", 0o644)
        b.file("rootfs/bin/broken", "#!/no/such/interpreter\n", 0o755)
        rows = (("nope", "executable file not found in"), ("/nope", "no such file or directory"), ("data", "permission denied"),
                ("/tmp", "permission denied"), ("broken", "no such file or directory"))  # fmt: skip
        for name, text in rows:
            done = b.oci("exec", "--pid-file", b / "pid", id, name)
            refused_oci(done)
            contains(done.err.lower(), text, "the message")
            true(not os.path.exists(b / "pid"), "a pid file is left")


@test("exec in a container that does not run is refused")
def _():
    with Bundle("exit 0") as b:
        id = b.created()
        done = b.oci("exec", id, "echo", "early")
        if WHO == "user":
            refused_oci(done, "must start the container first")
        else:
            done.exits(0).says("early\n")  # the waiting init is the container
        b.oci("start", id).exits(0)
        b.ended(id, 0)
        refused_oci(b.oci("exec", id, "true"), "container not running")
        refused_oci(b.oci("exec", "unknown", "true"), "does not exist")


@test("a working directory outside the root is refused for exec too")
def _():
    """CVE-2024-21626."""
    with sleeping() as b:
        id = b.started()
        for number in range(0, 20):
            refused_oci(b.oci("exec", "--cwd", f"/proc/self/fd/{number}", id, "true"), "process.cwd")
        os.symlink("/proc/self/fd/7", f"{b.rootfs}/away")
        refused_oci(b.oci("exec", "--cwd", "/away", id, "true"), "process.cwd")


# --- beside a hostile process ---

# Runs inside, from the host's python: waits for a process of cejail-oci and tries all it can.
HOSTILE = """
import contextlib, ctypes, errno, os, sys, time
WALL = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)

class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

def attempt(name, function):
    try:
        print(name, "got", function(), flush=True)
    except OSError as error:
        print(name, "refused", error.errno, flush=True)

def call(*args):
    rc = libc.syscall(*(ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args))
    if rc < 0:
        raise OSError(ctypes.get_errno(), "")
    return rc

def ptrace(pid, request):
    if libc.ptrace(request, pid, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "attached"

def write_exe(pid):
    fd = os.open(f"/proc/{pid}/exe", os.O_WRONLY)
    return os.write(fd, b"x")

def attack(pid):
    attempt("exe", lambda: os.readlink(f"/proc/{pid}/exe"))
    attempt("read-exe", lambda: os.open(f"/proc/{pid}/exe", os.O_RDONLY))
    attempt("path-exe", lambda: os.open(f"/proc/{pid}/exe", os.O_PATH))
    attempt("write-exe", lambda: write_exe(pid))
    attempt("fds", lambda: os.listdir(f"/proc/{pid}/fd"))
    for number in range(12):
        attempt("fd", lambda: os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK))
    attempt("cwd", lambda: os.listdir(f"/proc/{pid}/cwd"))
    attempt("root", lambda: os.listdir(f"/proc/{pid}/root"))
    attempt("mem", lambda: os.open(f"/proc/{pid}/mem", os.O_RDWR))
    attempt("environ", lambda: open(f"/proc/{pid}/environ").read(1))
    attempt("maps", lambda: open(f"/proc/{pid}/maps").read(1))
    attempt("namespace", lambda: os.readlink(f"/proc/{pid}/ns/mnt"))
    attempt("pidfd-getfd", lambda: call(438, call(434, pid, 0), 0, 0))
    here = ctypes.create_string_buffer(1)
    local, remote = (Piece * 1)(Piece(ctypes.addressof(here), 1)), (Piece * 1)(Piece(0x1000, 1))
    attempt("vm-read", lambda: call(310, pid, local, 1, remote, 1, 0))
    if "ptrace" in sys.argv:
        attempt("seize", lambda: ptrace(pid, 0x4206))
        attempt("attach", lambda: ptrace(pid, 16))
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        print("cmdline", file.read().strip(b"\\0"), flush=True)

print("ready", flush=True)
done = set()
while True:
    # It may have seized a program, which was killed then: exec waits until its tracer knows.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG | WALL)
    for name in os.listdir("/proc"):
        if not name.isdigit() or name in done or name == str(os.getpid()):
            continue
        try:
            with open(f"/proc/{name}/comm") as file:
                if not file.read().startswith("cejail-oci"):
                    continue
            done.add(name)
            print("begin", name, flush=True)
            attack(int(name))
            print("over", name, flush=True)
        except (FileNotFoundError, ProcessLookupError):
            pass
    time.sleep(0.001)
"""


def hostile(caps):
    """A container with the host's python, and with these capabilities."""
    b = Bundle()
    # One that may trace would stop the process for good.
    b.process["args"] = [PYTHON, "-c", HOSTILE, "" if "CAP_SYS_PTRACE" in caps else "ptrace"]
    b.process["capabilities"] = {kind: caps for kind in ("bounding", "permitted", "effective")}
    b.config["mounts"] += [mount_of("bind", "/usr", "/usr", "rbind", "ro")]
    b.linux["maskedPaths"] = b.linux["readonlyPaths"] = []
    return b


def host_links(b):
    for name in ("lib", "lib64"):
        os.symlink(f"usr/{name}", f"{b.rootfs}/{name}")


def joining(exec_pid):
    """The process inside that this exec has just made, or None."""
    for pid in children_of(exec_pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                if file.read() == "cejail-oci-exec\n":
                    return pid
        except OSError:
            pass
    return None


def has_program(exec_pid):
    """The process inside has become the program: it was faster than its observer."""
    try:
        return any(not os.readlink(f"/proc/{pid}/exe").startswith("/memfd:") for pid in children_of(exec_pid))
    except OSError:
        return False


def state_of(pid):
    """"": it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def stopped_exec(b, id, *program):
    """An exec that is stopped while its process waits inside; it is woken at the end."""
    words = [OCI, "--root", b.root, "exec", id, *(program or ("/bin/true",))]
    for _ in range(100):
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        while process.poll() is None and not has_program(process.pid):
            inside = joining(process.pid)
            if inside:
                process.send_signal(signal.SIGSTOP)
                wait_until(lambda pid=process.pid: state_of(pid) in ("T", "Z"), "exec to stop")
                time.sleep(0.05)
                # Asleep: it waits for a step.  One that has got it would run.
                if joining(process.pid) == inside and state_of(inside) == "S":
                    return process
                break
        process.send_signal(signal.SIGCONT)
        wait_until(lambda made=process: made.poll() is not None or has_program(made.pid), "exec to go on")
        for pid in children_of(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        finish(process)
    raise Failure("exec was always faster than its observer")


def inner_pid(pid):
    """As the container sees it."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(line.split()[-1] for line in file if line.startswith("NSpid:"))


def attempts_on_exec(caps):
    """What a hostile process with these capabilities sees of a process that joins its container."""
    with hostile(caps) as b:
        host_links(b)
        id = b.started()
        wait_until(lambda: "ready" in b.output(id), f"the hostile process ({b.errors(id)})")
        process = stopped_exec(b, id)
        # It may have attacked others before, which were not stopped.
        name = inner_pid(joining(process.pid))
        wait_until(lambda: f"over {name}\n" in b.output(id), "its attempts")
        process.send_signal(signal.SIGCONT)
        done = finish(process)
        return done, b.output(id).partition(f"begin {name}\n")[2].partition(f"over {name}\n")[0].splitlines()


@test("a hostile process can not look into one that joins its container")
def _():
    """CVE-2016-9962 and CVE-2019-5736: root of the container, with what engines give it."""
    done, lines = attempts_on_exec(CAPABILITIES)
    done.exits(0)
    refusals = (f"refused {errno.EPERM}", f"refused {errno.EACCES}", f"fd refused {errno.ENOENT}")
    got = [line for line in lines if not line.endswith(refusals) and not line.startswith(("fds ", "cmdline "))]
    equal(got, [], "what it got")
    for kind in ("exe", "write-exe", "fd", "cwd", "root", "mem", "pidfd-getfd", "vm-read", "seize", "attach"):
        contains(" ".join(lines), f"{kind} refused", "its attempts")
    contains(lines, "cmdline b''", "the command line")


@test("even with every capability it finds a sealed copy and no descriptor of the host", who="root")
def _():
    """With CAP_SYS_PTRACE in the host's user namespace; such a container is not isolated."""
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        last = int(file.read())
    before = digest(OCI)
    names = "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER KILL SETGID SETUID SYS_PTRACE SYS_ADMIN SYS_RESOURCE SYS_CHROOT MKNOD"
    true(last >= 37, "capabilities of this kernel")
    done, lines = attempts_on_exec([f"CAP_{name}" for name in names.split()])
    found = dict(line.split(" ", 1) for line in lines)
    contains(found["exe"], "/memfd:", "the executable of the joining process")
    contains(found["write-exe"], "refused", "to write it")
    fds = [line for line in lines if line.startswith("fds ")][0]
    # streams, the link to exec, and the descriptor of the directory's reader
    equal(fds.count("'"), 2 * 4, f"descriptors: {fds}")
    equal(digest(OCI), before, "the program on the host")


# Looks at each process of cejail-oci from the first moment to the last.  What it gets counts if the
# process still executes the sealed copy: after execve(2) the program is like any other.
WATCHER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

def is_copy(pid):
    try:
        return "memfd:" in os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False

def maps(pid):
    with open(f"/proc/{pid}/maps") as file:
        return "memfd:" in file.read()

def memory(pid):
    os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
    return is_copy(pid)

def link(name):
    return lambda pid: os.readlink(f"/proc/{pid}/{name}") and is_copy(pid)

def opened(name):
    def look(pid):
        os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_NONBLOCK))
        return is_copy(pid)
    return look

def trace(pid):
    if libc.ptrace(SEIZE, pid, 0, 0) < 0:
        raise OSError
    libc.ptrace(INTERRUPT, pid, 0, 0)
    os.waitpid(pid, WALL)
    found = is_copy(pid)
    libc.ptrace(DETACH, pid, 0, 0)
    return found

attempts = {"exe": is_copy, "maps": maps, "mem": memory, "root": link("root"), "cwd": link("cwd"), "fd": link("fd/0"),
            "root/": opened("root"), "cwd/": opened("cwd"), "fd/": opened("fd"), "fd/3": opened("fd/3"), "trace": trace}

if sys.argv[1] != "0":
    os.setgroups([]), os.setresgid(*[int(sys.argv[1])] * 3), os.setresuid(*[int(sys.argv[1])] * 3)
print("ready", flush=True)
others, seen = {str(os.getpid())}, set()
while True:
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or pid in others:
            continue
        try:
            with open(f"/proc/{pid}/comm") as file:
                if not file.read().startswith("cejail-oci"):
                    others.add(pid)
                    continue
            if pid not in seen:
                seen.add(pid)
                print("seen", flush=True)
            for name, attempt in attempts.items():
                try:
                    if attempt(int(pid)):
                        print("GOT", name, flush=True)
                except OSError:
                    pass
        except OSError:
            others.add(pid)
"""


@test("no moment of a joining process is open to a process of the container")
def _():
    """Also between its change of user and execve(2), and to a process with the same ids and capabilities."""
    for uid in ("0", "1000") if WHO == "root" else ("0",):
        with hostile(CAPABILITIES) as b:
            b.process["args"] = [PYTHON, "-c", WATCHER, uid]
            if WHO == "root" and uid == "0":
                b.namespace("pid")  # then it sees every process of exec
            host_links(b)
            id = b.started()
            wait_until(lambda: "ready" in b.output(id), f"the watcher ({b.errors(id)})")  # noqa: B023
            b.process.update(args=["/bin/true"], user={"uid": int(uid), "gid": int(uid)})
            b.process["capabilities"] = {} if uid != "0" else b.process["capabilities"]
            file = b.file("process.json", json.dumps(b.process))
            for _ in range(200):
                b.oci("exec", "--process", file, id).exits(0)
                if b.output(id).count("seen") >= (40 if LONG else 5):
                    break
            lines = b.output(id).splitlines()
            true("seen" in lines, "the watcher was never fast enough")
            equal([line for line in lines if line not in ("ready", "seen")], [], f"what user {uid} got")


@test("a user namespace is not joined where a change of user makes processes dumpable", who="root")
def _():
    """With fs.suid_dumpable=1, here in a mount namespace of the test's own."""
    with sleeping() as b:
        b.linux["namespaces"].append({"type": "user"})
        ids = [{"containerID": 0, "hostID": 100000, "size": 1000}]
        b.linux["uidMappings"] = b.linux["gidMappings"] = ids
        subprocess.run(["chown", "-R", "100000:100000", b.rootfs], check=True)
        os.chmod(b.path, 0o755)
        id = b.started()
        value = b.file("one", "1\n")
        script = 'mount --bind "$0" /proc/sys/fs/suid_dumpable && exec "$@"'
        through = ("unshare", "-m", "sh", "-c", script, value)
        b.oci("exec", id, "true").exits(0)
        refused_oci(b.oci("exec", id, "true", through=through), "fs.suid_dumpable to 0 or 2")
        b.namespace("user", f"/proc/{b.state(id)['pid']}/ns/user")
        del b.linux["uidMappings"], b.linux["gidMappings"]
        refused_oci(b.run(id="once", through=through), "fs.suid_dumpable to 0 or 2")
        nothing_is_left(b, "once")


@test("a container that ends while exec joins is an error and leaves nothing")
def _():
    with hostile(CAPABILITIES) as b:
        host_links(b)
        id = b.started()
        wait_until(lambda: "ready" in b.output(id), "the container")
        process = stopped_exec(b, id, "/bin/sleep", "6000")
        b.oci("kill", id, "KILL").exits(0)
        process.send_signal(signal.SIGCONT)  # it reaps its process, for which the pid namespace waits
        b.ended(id, 137)
        true(finish(process).code != 0, "exec succeeded in a dead container")
        b.delete(id).exits(0)
        nothing_is_left(b, id)


@test("an exec that is killed leaves no process in the container")
def _():
    with hostile(CAPABILITIES) as b:
        host_links(b)
        id = b.started()
        wait_until(lambda: "ready" in b.output(id), "the container")
        process = stopped_exec(b, id, "/bin/sleep", "6000")
        inside = joining(process.pid)
        process.kill()
        finish(process)
        wait_status(inside)
        wait_until(lambda: not alive(inside) if os.path.exists(f"/proc/{inside}") else True, "the end of its process")


@test("a hundred execs at once all run and leave nothing")
def _():
    with sleeping() as b:
        id = b.started()
        words = [OCI, "--root", b.root, "exec", id, "sh", "-c", "echo $((6 * 7))"]
        crowd = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) for _ in range(100)]
        for process in crowd:
            finish(process, args=words).exits(0).says("42\n")
        # by one process: those of a pipeline begin in any order
        b.oci("exec", id, "sh", "-c", "set -- /proc/[0-9]*; echo $#").exits(0).says("2\n")


