# SPDX-License-Identifier: Apache-2.0
"""`cejail run --reduced`: what a jail without namespaces does, and how it ends."""

import ctypes
import errno
import json
import os
import signal
import subprocess

from harness import CEJAIL, SLOW, WHO, Folder, cejail, children_of, contains, environment, equal, finish, lacks, parse_result, result, run, start, test, tried, true, wait_until
from outer_filter import refuse

ALONE = ("--reduced", "--network", "none")
# x86-64.  What Docker's own filter refuses to a container without capabilities.
DOCKER = {
    "clone3": (435, errno.ENOSYS), "unshare": (272, errno.EPERM), "mount": (165, errno.EPERM), "umount2": (166, errno.EPERM),
    "pivot_root": (155, errno.EPERM), "setns": (308, errno.EPERM), "keyctl": (250, errno.EPERM), "add_key": (248, errno.EPERM),
    "open_tree": (428, errno.EPERM), "move_mount": (429, errno.EPERM), "fsopen": (430, errno.EPERM), "mount_setattr": (442, errno.EPERM),
    "bpf": (321, errno.EPERM), "perf_event_open": (298, errno.EPERM), "sethostname": (170, errno.EPERM),
}  # fmt: skip
# Each is deaf to signals and in a session of its own; argv[1] is what to find them by, and the main process ends.
DEAF = r"""
import os, signal, sys, time
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
        signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.execv("/bin/sleep", ["sleep", sys.argv[1]])
time.sleep(0.2)
print("started", flush=True)
if len(sys.argv) > 2:
    time.sleep(600)
"""


def python(code, *options, args=(), **more):
    return run("-p", "python", "--quiet", *ALONE, *options, "-c", code, "--", *args, **more)


def python_result(code, *options, **more):
    return result("-p", "python", *ALONE, *options, "-c", code, **more)


def mark(number):
    return f"6{os.getpid()}{number}"


def is_there(word):
    return subprocess.run(["pgrep", "-f", f"sleep {word}"], capture_output=True, check=False).returncode == 0


# What Docker leaves to root: chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service,
# net_raw, sys_chroot, mknod, audit_write, setfcap.
DOCKER_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}


def as_in_docker(kept=DOCKER_CAPABILITIES):
    """For preexec_fn: its filter and its capabilities."""
    enter = refuse(dict(DOCKER.values()))
    libc = ctypes.CDLL(None, use_errno=True)

    def drop():
        for number in set(range(41)) - kept:
            libc.prctl(24, number, 0, 0, 0)  # PR_CAPBSET_DROP; an ordinary user has none to lose
        enter()

    return drop


@test("--reduced runs a program in a private directory, with its inputs, arguments, environment and artifacts", who="accounts")
def _():
    with Folder() as f:
        f.file("in.txt", "input")
        code = (
            "import os, sys; print(sys.argv[1:], open('in.txt').read(), open(os.environ['HOME'] + '/in.txt').read());"
            "open('out/made', 'w').write('kept'); open(os.environ['TMPDIR'] + '/t', 'w').write('x');"
            "print(os.environ['A'], 'CEJAIL_TEST_SECRET' in os.environ, os.getuid() == 0, sorted(os.listdir('.')))"
        )
        done = python(code, "-f", f"{f.path}/in.txt", "-e", "A=b", "-o", f"{f.path}/got", args=["x", "/box/in.txt"]).exits(0)
        contains(done.out, "['x', '/")
        contains(done.out, "/box/in.txt'] input input\nb False False ['in.txt', 'main.py', 'out']\n")
        with open(f"{f.path}/got/made", encoding="ascii") as made:
            equal(made.read(), "kept")
        where = done.out.split("'")[3][: -len("/box/in.txt")]
        true(not os.path.exists(where), f"{where} is still there")
    run("-p", "shell", "--quiet", *ALONE, "-c", "cat <<E\n$(pwd)\nE\necho hi | cat").exits(0)


@test("--reduced: the result names each layer that is off, Landlock's ABI and what holds each limit", who="accounts")
def _():
    value = python_result("print(1)")
    off = {"user_ns", "pid_ns", "mount_ns", "network_ns", "ipc_ns", "uts_ns", "cgroup_ns", "root"}
    for name in off:
        equal(value["layers"][name], "off", name)
    for name in ("no_new_privs", "capabilities", "seccomp", "landlock"):
        equal(value["layers"][name], "on", name)
    equal(value["limits"]["disk"]["by"], "rlimit")
    equal(len([w for w in value["warnings"] if w.startswith("reduced: no namespaces: Landlock (ABI ")]), 1, "warnings")
    tried(len(off))


@test("--reduced: each limit ends the program that reaches it, or refuses what is above", who="accounts", limit=120)
def _():
    for options, code, status in (
        (("-m", "64M"), "x = bytearray(400 << 20)", "oom"),
        (("-t", "1s"), "import time; time.sleep(600)", "timeout"),
        (("--cpu-time", "300ms"), "while True: pass", "cpu_limit"),
        (("--max-output", "1K", "--on-output-limit", "kill"), "while True: print('x' * 100)", "output_limit"),
    ):
        equal(python_result(code, *options)["status"], status)
        tried()
    forks = "import os, time\nn = 0\ntry:\n while True:\n  if os.fork() == 0: time.sleep(60)\n  n += 1\nexcept OSError: print(n)\n"
    # The kernel counts all processes of a user.  In a user namespace of its own it counts the run's alone.
    alone = ["unshare", "--user", "--map-current-user"] if WHO == "user" else []
    words = [*alone, CEJAIL, "run", "-p", "python", "--quiet", *ALONE, "--pids-limit", "20", "-c", forks]
    count = int(finish(subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)).exits(0).out)
    true(10 <= count <= 20, f"{count} processes beside the first, of 20")
    grows = "try:\n open('big', 'wb').write(bytes(3 << 20))\nexcept OSError as e: print(e.errno)\n"
    equal(python(grows, "--disk", "1M").exits(0).out, f"{errno.EFBIG}\n")
    many = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    equal(python(many, "--nofile", "99").exits(0).out, "(99, 99)\n")
    equal(python("raise SystemExit(7)").code, 7)
    equal(python_result("import os; os.kill(os.getpid(), 9)")["status"], "signaled")


@test("--reduced: processes that ignore signals, fork twice and start sessions end with the program", who="accounts", limit=120)
def _():
    word = mark(1)
    python(DEAF, args=[word]).exits(0)
    true(not is_there(word), "a process outlived its program")
    python(DEAF, "-t", "3s", args=[word, "stay"]).exits(124)
    true(not is_there(word), "a process outlived the time limit")
    # SIGKILL to all that it may signal ends its own jail's alone
    equal(python("import os; os.kill(-1, 9)").code, 0)
    equal(python("import os, signal\nfor n in range(1, 65):\n try: os.kill(os.getppid(), n)\n except OSError as e: continue\n print('sent', n)\nprint('end')").out, "end\n")
    tried(4)


def supervised(word):
    process = start("run", "-p", "python", "--quiet", *ALONE, "-c", DEAF, "--", word, "stay")
    equal(process.stdout.readline(), b"started\n")
    return process, children_of(process.pid)


@test("--reduced: when the supervisor is killed, or init or the guard, no process and no directory is left", who="accounts", limit=180)
def _():
    for who in ("supervisor", "init", "guard", "stopped"):
        word = mark(who[0])
        process, (init,) = supervised(word)
        guard = next(pid for pid in children_of(init) if open(f"/proc/{pid}/comm", encoding="ascii").read() == "jail-guard\n")
        record = private_directories(process.pid)
        true(len(record) == 1 and os.path.isdir(record[0]), f"the record has {record}")
        if who == "stopped":
            os.kill(init, signal.SIGSTOP)
            process.terminate()
        else:
            os.kill({"supervisor": process.pid, "init": init, "guard": guard}[who], signal.SIGKILL)
        if who == "guard":
            process.terminate()
        finish(process, 60)
        wait_until(lambda word=word: not is_there(word), f"the end of the program of a killed {who}")
        cejail("gc").exits(0)
        true(not os.path.exists(record[0]), f"{record[0]} is left of a killed {who}")
        tried()


def private_directories(pid):
    """Those that the records of this supervisor name."""
    found = []
    for place in ("/run/cejail/runs", f"{os.environ.get('XDG_RUNTIME_DIR', '/nowhere')}/cejail/runs", f"/dev/shm/cejail-{os.getuid()}/runs"):
        for name in os.listdir(place) if os.access(place, os.R_OK) else ():
            try:
                with open(f"{place}/{name}", encoding="ascii") as file:
                    record = json.load(file)
            except (OSError, ValueError):
                continue  # another's, which has just begun or ended
            if record["supervisor_pid"] == pid:
                found.append(record["private_dir"])
    return found


@test("--reduced removes a directory that its program has made deep, and closed to everybody", who="accounts")
def _():
    code = (
        "import os\nprint(os.getcwd())\nfor n in range(3000):\n os.mkdir('d'); os.chdir('d')\n"
        "os.mkdir('closed', 0); open('f', 'w'); os.symlink('/home', 'link')\n"
    )
    done = python(code).exits(0)
    true(not os.path.exists(os.path.dirname(done.out.strip())), f"{done.out} is still there")


@test("--reduced refuses with one sentence what it can't keep, and names what works", who="accounts")
def _():
    with Folder() as f:
        cases = (
            (("--strict",), "exclude each other"), (("--tty",), "exclude each other"), (("--setup", "true"), "exclude each other"),
            (("--network", "public"), "--network none"), (("--bind", f"{f.path}:/x"), "--artifacts"), (("--ro-bind", f"{f.path}:/x"), "--file"),
            (("--overlay", f"{f.path}:/x"), "--file"), (("--tmpfs", "/x"), "/box"), (("--writable",), "/box"), (("--noexec",), "leave it out"),
            (("--rootfs", f.path), "--rootfs host"), (("--connect", "tcp:127.0.0.1:80"), "--tools"), (("--connect", "unix:/x"), "--tools"),
            (("--upstream", "a=https://example.org"), "--tools"), (("--seccomp", "x.json"), "--seccomp default"),
        )  # fmt: skip
        for options, words in cases:
            done = run("-p", "base", *ALONE, *options, "--", "true").exits(125)
            contains(done.err, "--reduced", " ".join(options))
            contains(done.err, words, " ".join(options))
            equal(done.err.count("\n"), 1, done.err)
            tried()
    # it is never chosen by itself
    lacks(run("-p", "base", "--network", "none", "--dry-run", "--", "true").exits(0).out, '"reduced":true')


@test("a profile can be reduced", who="accounts")
def _():
    with Folder() as f:
        path = f.file("p.json", '{"extends": "python", "network": {"mode": "none"}, "reduced": true}')
        done = run("-p", path, "--json", "-c", "print(1)").exits(0)
        equal(parse_result(done.out)["layers"]["pid_ns"], "off")
        true("reduced" in cejail("profile", "show", path).exits(0).out, "profile show lacks it")


@test("--reduced runs where a container's filter refuses namespaces, mounts, keys and clone3", who="accounts", limit=120)
def _():
    enter = as_in_docker()
    full = run("-p", "base", "--network", "none", "--", "true", preexec_fn=enter)
    full.exits(125)
    for options, code in ((("-o", "/dev/null/x"), 125), ((), 0)):
        run("-p", "base", "--quiet", *ALONE, *options, "--", "true", preexec_fn=enter).exits(code)
    done = run("-p", "python", "--json", *ALONE, "-c", "import os; print(os.listdir('.'))", preexec_fn=enter)
    equal(parse_result(done.out)["status"], "exited", done.err)
    word = mark("d")
    run("-p", "python", "--quiet", *ALONE, "-c", DEAF, "--", word, preexec_fn=enter).exits(0)
    true(not is_there(word), "a process outlived its program")
    doctor = cejail("doctor", "--json", preexec_fn=enter)
    check = next(c for c in json.loads(doctor.out)["checks"] if c["name"] == "a reduced jail")
    equal(check["level"], "ok", check)
    contains(check["text"], "--reduced")


@test("--reduced refuses a root that can't become another user, and says what to do", who="root")
def _():
    done = run("-p", "base", *ALONE, "--", "true", preexec_fn=as_in_docker(set())).exits(125)
    contains(done.err, "start cejail as an ordinary user")
    equal(done.err.count("\n"), 1, done.err)
