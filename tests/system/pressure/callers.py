# SPDX-License-Identifier: Apache-2.0
"""Callers in odd states: signals ignored, blocked or pending, timers running, no environment, a directory
that is gone; and callers that are in a sandbox already."""

import ctypes
import os
import resource
import shutil
import signal
import time

from outer_filter import refuse
from scarce import *  # noqa: F403

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECUREBITS = 1, 4, 8, 28
PR_SET_TIMERSLACK, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 29, 36, 38


def prctl(option, *values):
    words = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    if libc.prctl(option, *words) < 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


# --- what execve(2) keeps -------------------------------------------------------------------------


def ignore(*numbers):
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def block(*numbers):
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


def everything():
    return set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}


def block_and_raise(*numbers):
    block(*numbers)
    for number in numbers:
        os.kill(os.getpid(), number)


def go_where_nothing_is():
    path = f"/tmp/cejail-system-{os.getppid()}-{os.getpid()}"
    os.mkdir(path)
    os.chdir(path)
    os.rmdir(path)


def open_many(count):
    for _ in range(count):
        os.set_inheritable(os.open("/dev/null", os.O_RDWR), True)


def write_own(name, text):
    with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
        file.write(text)


STATES = {
    "SIGCHLD ignored": lambda: ignore(signal.SIGCHLD),
    "SIGPIPE at its default": lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),
    "every signal ignored": lambda: ignore(*(everything() - {32, 33})),
    "SIGPIPE blocked": lambda: block(signal.SIGPIPE),
    "SIGCHLD blocked": lambda: block(signal.SIGCHLD),
    "every signal blocked": lambda: block(*everything()),
    "SIGALRM pending": lambda: block_and_raise(signal.SIGALRM),
    "many signals pending": lambda: block_and_raise(signal.SIGALRM, signal.SIGUSR1, signal.SIGPIPE, signal.SIGCHLD),
    "a profiling timer": lambda: (ignore(signal.SIGPROF), signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)),
    "an ignored alarm every millisecond": lambda: (ignore(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)),
    "a blocked alarm every millisecond": lambda: (block(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)),
    "umask 0777": lambda: os.umask(0o777),
    "umask 0": lambda: os.umask(0),
    "a directory that is gone": go_where_nothing_is,
    "nice 19": lambda: os.nice(19),
    "idle scheduling": lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)),
    "one processor": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
    "core limit 0": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])),
    "a session of its own": os.setsid,
    "a group of its own": lambda: os.setpgid(0, 0),
    "personality: no address randomization": lambda: libc.personality(0x0040000),
    "personality: read implies exec": lambda: libc.personality(0x0400000),
    "no new privileges": lambda: prctl(PR_SET_NO_NEW_PRIVS, 1),
    "the first to be killed": lambda: write_own("oom_score_adj", "1000"),
    "a slack of a second": lambda: prctl(PR_SET_TIMERSLACK, 1000000000),
    "a subreaper": lambda: prctl(PR_SET_CHILD_SUBREAPER, 1),
    "to die with its parent": lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
    "500 descriptors": lambda: open_many(500),
}  # fmt: skip


@test("a run is as always, whatever the caller's state", limit=180)
def _():
    for name, enter in STATES.items():
        for _ in range(5):  # on a busy machine one with a low priority may wait long for a processor
            done = run("-p", "base", "--network", "none", "-t", "5m", "--", "/bin/sh", "-c",
                       'kill -0 $$; umask; cd /tmp && echo fine > x && cat x', limit=60, preexec_fn=enter, close_fds=False)  # fmt: skip
            if not was_late(done):
                break
        tried()
        equal((done.code, done.out), (0, "0022\nfine\n"), f"{name}: exit status and stdout ({done!r})")


@test("securebits that take root's rights away end in one line, or a run", who="root")
def _():
    for bits in (1, 4, 0x15, 0x2F, 0xFF):
        done = run(*ECHO, preexec_fn=lambda bits=bits: prctl(PR_SET_SECUREBITS, bits))
        works_or_says_why(done, f"securebits {bits:#x}")


@test("with every capability dropped root's run is one line, or a run", who="roots")
def _():
    for words in (["--bounding-set=-all"], ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"], ["--bounding-set=-setuid,-setgid"]):
        if shutil.which("setpriv"):
            works_or_says_why(prefixed(["setpriv", *words, "--"], "run", *ECHO), " ".join(words))


@test("an empty environment and one of 100,000 variables change nothing")
def _():
    for name, env in (("empty", {"X": ""}), ("large", {f"V{i}": "x" for i in range(20000 if MACHINE else 100000)})):
        done = run("-p", "base", "--network", "none", "--", "/bin/sh", "-c", "env | grep -c ^V; echo fine", env=env)
        tried()
        equal((done.code, done.out), (0, "0\nfine\n"), f"{name}: exit status and stdout ({done!r})")


@test("a caller that gives no name, an empty one or a strange one gets an answer")
def _():
    for argv0 in ("", "-cejail", "/", "x" * 5000, "\033]0;x\007"):
        process = subprocess.Popen([argv0, "run", *ECHO], executable=CEJAIL, env=environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        done = finish(process)
        tried()
        equal((done.code, done.out), (0, "fine\n"), f"argv[0] {argv0[:20]!r} ({done!r})")
    # no argument at all: an empty argv, which Linux makes one empty word since 5.18
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open("/dev/null", os.O_RDWR), 2)
        libc.execve(CEJAIL.encode(), (ctypes.c_char_p * 1)(None), (ctypes.c_char_p * 1)(None))
        os._exit(99)
    tried()
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 125, "an empty argv")


@test("signals that come once and would end any program cancel the run, with its result")
def _():
    for number in (signal.SIGALRM, signal.SIGQUIT, signal.SIGXCPU):
        with Folder() as f:
            process = start("run", "-p", "base", "--network", "none", f"--json={f / 'r'}", "--", "/bin/sh", "-c",
                            "echo ready; sleep 6000", preexec_fn=lambda: signal.signal(signal.SIGQUIT, signal.SIG_DFL))  # fmt: skip
            wait_until(lambda process=process: b"ready" in process.stdout.read1(100), "the first word", 20)
            process.send_signal(number)
            done = finish(process)
            tried()
            with open(f / "r", encoding="utf-8") as file:
                equal(parse_result(file.read())["status"], "cancelled", f"{number!r}: status ({done!r})")


@test("signals that the caller ignores or blocks cancel nothing; kill still ends the run")
def _():
    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGTERM)
    for name, enter in (("ignored", lambda: ignore(*numbers)), ("blocked", lambda: block(*numbers))):
        process = start("run", "-p", "base", "--network", "none", "--id", f"test-{name}", "--", "/bin/sh", "-c",
                        "echo ready; sleep 6000", preexec_fn=enter)  # fmt: skip
        wait_until(lambda process=process: b"ready" in process.stdout.read1(100), "the first word", 20)
        for number in numbers[:-1]:
            process.send_signal(number)
            tried()
        time.sleep(0.2)  # nothing can be waited for: nothing is to happen
        equal(process.poll(), None, f"{name}: the run")
        cejail("kill", f"test-{name}").exits(0)
        finish(process)


@test("an alarm set before execve cancels the run when it goes off, at any moment")
def _():
    for i in sample(range(12), 2):
        delay = 0.002 * (i + 1) * SLOW

        def enter(delay=delay):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, delay)

        done = run("--json", "-p", "base", "--network", "none", "--", "/bin/sleep", "6000", preexec_fn=enter)
        tried()
        if done.code == -signal.SIGALRM:
            equal(done.out, "", "half a result")  # it was not in the engine yet
        else:
            equal(parse_result(done.out, done)["status"], "cancelled", "status")


@test("a caller without CPU time left ends as any program, and nothing stays")
def _():
    def busy():
        end = time.process_time() + 0.99
        while time.process_time() < end:
            pass
        resource.setrlimit(resource.RLIMIT_CPU, (1, resource.getrlimit(resource.RLIMIT_CPU)[1]))

    done = run("--json", "-p", "base", "--network", "none", "-t", scaled(60), "--", "/bin/sh", "-c", "while :; do :; done", preexec_fn=busy, limit=60)
    tried()
    true(done.code != 0, f"exit status ({done!r})")
    if done.code != -signal.SIGXCPU:
        true(parse_result(done.out, done)["status"] in ("cancelled", "signaled"), f"status ({done!r})")


# --- a filter of the caller's that refuses a call ----------------------------------------------------

# x86_64's and arm64's numbers of what cejail uses and an outer sandbox may refuse
NUMBERS = {
    "x86_64": {
        "clone3": 435, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155,
        "fsopen": 430, "fsconfig": 431, "fsmount": 432, "move_mount": 429, "open_tree": 428,
        "mount_setattr": 442, "openat2": 437, "seccomp": 317, "prctl": 157, "landlock_create_ruleset": 444,
        "landlock_restrict_self": 446, "keyctl": 250, "pidfd_open": 434, "pidfd_send_signal": 424, "memfd_create": 319,
        "epoll_create1": 291, "timerfd_create": 283, "signalfd4": 289, "socketpair": 53, "socket": 41,
        "sendmsg": 46, "close_range": 436, "setresuid": 117, "setresgid": 119, "setgroups": 116,
        "sethostname": 170, "capset": 126, "prlimit64": 302, "vfork": 58, "pipe2": 293, "getrandom": 318,
        "flock": 73, "mkdirat": 258, "waitid": 247, "setsid": 112, "fchmodat": 268, "statx": 332, "eventfd2": 290,
    },
}  # fmt: skip
EPERM, ENOSYS, EINVAL = 1, 38, 22


@test("in a sandbox that refuses any one system call a run works, or one line names what failed", limit=240)
def _():
    numbers = NUMBERS.get(os.uname().machine)
    if not numbers:
        raise Skip("the table of system calls is for x86_64")
    for name, number in sample(numbers.items()):
        for errno in (EPERM, ENOSYS) if LONG or not MACHINE else (EPERM,):
            done = run(*ECHO, preexec_fn=refuse({number: errno}))
            works_or_says_why(done, f"{name} answers {os.strerror(errno)}")


@test("in a sandbox that refuses namespaces the message says that")
def _():
    numbers = NUMBERS.get(os.uname().machine)
    if not numbers:
        raise Skip("the table of system calls is for x86_64")
    done = run(*ECHO, preexec_fn=refuse({numbers["clone3"]: EPERM}))
    equal(works_or_says_why(done, "without clone3"), False, "it ran")
    contains(complaints(done)[0], "namespaces", "the message")


# --- other sandboxes around us ----------------------------------------------------------------------

BWRAP = {
    "all of the host": ["--dev-bind", "/", "/"],
    "namespaces of its own": ["--dev-bind", "/", "/", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--proc", "/proc"],
    "read-only, with a /dev of its own": ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--unshare-user", "--unshare-pid"],
    "no user namespaces inside": ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-user", "--disable-userns"],
    "no /proc": ["--ro-bind", "/usr", "/usr", "--ro-bind", os.path.dirname(CEJAIL) + "/..", "/opt", "--symlink", "usr/lib", "/lib",
                 "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--dev", "/dev"],
}  # fmt: skip


if not MACHINE:  # which has no bubblewrap

    @test("inside bubblewrap a run works, or one line says why not", limit=120)
    def _():
        if not shutil.which("bwrap"):
            raise Skip("no 'bwrap' (package bubblewrap)")
        for name, words in BWRAP.items():
            done = prefixed(["bwrap", "--die-with-parent", *words], "run", *ECHO)
            if "bwrap: " in done.err:
                continue  # bubblewrap itself can't do this here
            works_or_says_why(done, f"bwrap, {name}")


@test("a run inside a run is refused with one line")
def _():
    prefix = os.path.realpath(os.path.dirname(CEJAIL) + "/..")
    done = run("-p", "base", "--network", "none", "--ro-bind", f"{prefix}:/box/cejail", "--",
               "/bin/sh", "-c", '/box/cejail/bin/cejail "$@"', "sh", "run", *ECHO)  # fmt: skip
    tried()
    equal((done.code, done.out), (125, ""), f"exit status and stdout ({done!r})")
    inner = [line for line in done.err.splitlines() if line.startswith("cejail: ") and "warning" not in line and "refused" not in line]
    equal(len(inner), 1, f"lines of the inner one ({done.err!r})")
