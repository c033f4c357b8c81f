# SPDX-License-Identifier: Apache-2.0
"""One run of cejail in which one system call fails: how it is made, and whether it ended as promised.

inject (tests/system/faults/inject.c) lets the call fail; posture (posture.c) is the program in the jail, and says
how strong the jail is, so that "the same output" means "not weaker".
"""

import errno
import fcntl
import glob
import json
import os
import re
import subprocess
import termios
import time

import harness

INJECT = f"{harness.PROBES}/inject"
OUR_STATUS = 7  # posture's
IS_SLOW = harness.SLOW > 5  # a run that is traced may take longer than a step of it may
LIMIT = 30  # seconds; a run takes less than 0.1

# --- which errors ---------------------------------------------------------------------

# Of the errors in a call's manual page those that come from outside: resources, rights, devices, signals.
NEW_DESCRIPTOR = ("EMFILE", "ENFILE", "ENOMEM")
OPENING = ("EMFILE", "ENOMEM", "EACCES", "ENOENT")
ERRORS = {
    "accept4": ("EMFILE", "ENOMEM", "ECONNABORTED", "EINTR"),
    "access": ("EACCES", "ENOENT"),
    "bind": ("EADDRINUSE", "ENOMEM"),
    "bpf": ("EPERM", "ENOMEM", "EINVAL"),
    "brk": ("ENOMEM",),
    "capget": ("EPERM",),
    "capset": ("EPERM",),
    "chdir": ("EACCES", "ENOENT", "ENOMEM"),
    "chmod": ("EPERM", "EROFS"),
    "clone": ("EAGAIN", "ENOMEM", "ENOSPC"),
    "clone3": ("EAGAIN", "ENOMEM", "ENOSPC", "EPERM"),
    "close": ("EIO", "EINTR", "ENOSPC"),
    "close_range": ("EMFILE", "ENOMEM"),
    "connect": ("EACCES", "ENETUNREACH"),
    "dup": ("EMFILE",),
    "dup2": ("EMFILE", "EBUSY", "EINTR"),
    "dup3": ("EMFILE", "EBUSY"),
    "epoll_create1": ("EMFILE", "ENOMEM"),
    "epoll_ctl": ("ENOMEM", "ENOSPC"),
    "epoll_wait": ("EINTR",),
    "execve": ("ENOENT", "EACCES", "ENOMEM", "E2BIG"),
    "execveat": ("ENOENT", "EACCES", "ENOMEM"),
    "faccessat": ("EACCES", "ENOMEM"),
    "faccessat2": ("EACCES", "ENOMEM"),
    "fchdir": ("EACCES",),
    "fchmod": ("EPERM", "EROFS", "EIO"),
    "fchmodat": ("EPERM", "EROFS"),
    "fchown": ("EPERM", "EIO"),
    "fchownat": ("EPERM", "EROFS"),
    "fcntl": ("EMFILE", "EPERM", "EBUSY"),
    "flock": ("EINTR", "ENOLCK"),
    "fsconfig": ("EPERM", "ENOMEM", "EBUSY"),
    "fsmount": ("EMFILE", "EPERM", "ENOMEM"),
    "fsopen": ("EMFILE", "EPERM", "ENODEV"),
    "fstat": ("ENOMEM", "EOVERFLOW"),
    "fstatfs": ("EINTR", "EIO", "ENOMEM"),
    "fsync": ("EIO", "ENOSPC"),
    "ftruncate": ("EINTR", "EIO", "EPERM"),
    "futex": ("EINTR", "EAGAIN"),
    "getcwd": ("ENOENT", "ENOMEM"),
    "getdents64": ("EINVAL", "ENOTDIR"),  # ENOENT is an end to readdir(3)
    "getrandom": ("ENOSYS",),
    "getsockname": ("ENOBUFS",),
    "getpeername": ("ENOTCONN", "ENOBUFS"),
    "getsockopt": ("ENOPROTOOPT",),
    "fgetxattr": ("ENODATA", "ENOTSUP"),
    "getxattr": ("ENODATA", "ENOTSUP"),
    "inotify_add_watch": ("ENOSPC", "ENOMEM", "EACCES"),
    "inotify_init1": ("EMFILE", "ENFILE", "ENOMEM"),
    "io_uring_register": ("ENOMEM", "EPERM"),
    "io_uring_setup": ("ENOMEM", "EPERM", "ENOSYS"),
    "ioctl": ("EPERM", "ENOTTY", "ENODEV", "EBUSY"),
    "kill": ("EPERM", "ESRCH"),
    "keyctl": ("EPERM", "EDQUOT", "ENOMEM"),
    "landlock_add_rule": ("EINVAL", "EBADFD"),
    "landlock_create_ruleset": ("EOPNOTSUPP", "ENOMEM"),
    "landlock_restrict_self": ("EPERM", "E2BIG"),
    "link": ("EPERM", "ENOSPC", "EEXIST"),
    "linkat": ("EPERM", "ENOSPC", "EEXIST"),
    "listen": ("EADDRINUSE",),
    "lseek": ("ESPIPE",),
    "madvise": ("EAGAIN",),
    "memfd_create": NEW_DESCRIPTOR,
    "mkdir": ("EACCES", "ENOSPC", "EROFS"),
    "mkdirat": ("EACCES", "ENOSPC", "EDQUOT"),
    "mknodat": ("EPERM", "ENOSPC"),
    "mmap": ("ENOMEM", "EAGAIN"),
    "mount": ("EPERM", "ENOMEM", "EBUSY"),
    "mount_setattr": ("EPERM", "EBUSY"),
    "move_mount": ("EPERM", "EBUSY"),
    "mprotect": ("ENOMEM", "EACCES"),
    "mremap": ("ENOMEM", "EAGAIN"),
    "munmap": ("ENOMEM",),
    "nanosleep": ("EINTR",),
    "clock_nanosleep": ("EINTR",),
    "newfstatat": ("EACCES", "ENOMEM", "ENOENT"),
    "open": OPENING,
    "open_tree": ("EMFILE", "ENOMEM", "EPERM"),
    "openat": OPENING,
    "openat2": (*OPENING, "EAGAIN"),
    "pidfd_open": ("EMFILE", "ENOMEM", "ESRCH"),
    "pidfd_send_signal": ("EPERM", "ESRCH"),
    "pipe2": ("EMFILE", "ENFILE"),
    "pivot_root": ("EPERM", "EBUSY"),
    "poll": ("EINTR", "ENOMEM"),
    "ppoll": ("EINTR", "ENOMEM"),
    "prctl": ("EPERM", "EINVAL"),
    "pread64": ("EINTR", "EIO"),
    "prlimit64": ("EPERM",),
    "process_madvise": ("EBADF", "EINVAL"),
    "pwrite64": ("ENOSPC", "EIO"),
    "pwritev": ("ENOSPC", "EIO"),
    "read": ("EINTR", "EIO", "EAGAIN"),
    "readlink": ("EACCES", "ENOENT", "ENOMEM"),
    "readlinkat": ("EACCES", "ENOENT", "ENOMEM"),
    "recvfrom": ("EINTR", "ENOMEM"),
    "recvmsg": ("EINTR", "ENOMEM", "ENOBUFS"),
    "rename": ("EACCES", "ENOSPC", "EBUSY"),
    "renameat": ("EACCES", "ENOSPC", "EBUSY"),
    "renameat2": ("EACCES", "ENOSPC", "EBUSY"),
    "rmdir": ("EBUSY", "EPERM"),
    "rt_sigtimedwait": ("EINTR", "EAGAIN"),
    "seccomp": ("EACCES", "EBUSY", "ENOMEM", "EINVAL"),
    "sendfile": ("EINTR", "EIO", "ENOSPC", "EINVAL"),
    "sendmsg": ("EINTR", "ENOBUFS", "EPERM", "ETOOMANYREFS"),
    "sendto": ("ENOBUFS", "EPERM"),  # to netlink: it does not wait, so no signal comes in between
    "setgid": ("EPERM",),
    "setgroups": ("EPERM", "ENOMEM"),
    "sethostname": ("EPERM",),
    "setns": ("EPERM", "ENOMEM"),
    "setpgid": ("EPERM",),
    "setresgid": ("EPERM", "EAGAIN"),
    "setresuid": ("EPERM", "EAGAIN"),
    "setrlimit": ("EPERM",),
    "setsid": ("EPERM",),
    "setsockopt": ("ENOMEM", "ENOPROTOOPT", "EPERM"),
    "setuid": ("EPERM", "EAGAIN"),
    "shutdown": ("ENOTCONN",),
    "signalfd4": NEW_DESCRIPTOR,
    "socket": ("EMFILE", "ENOBUFS", "EACCES", "EAFNOSUPPORT"),
    "socketpair": ("EMFILE", "ENOMEM"),
    "splice": ("ENOMEM", "EAGAIN"),
    "stat": ("EACCES", "ENOENT"),
    "lstat": ("EACCES", "ENOENT"),
    "statfs": ("EINTR", "EIO", "EACCES"),
    "statmount": ("EPERM", "ENOENT", "ENOMEM", "ENOSYS"),
    "statx": ("EACCES", "ENOMEM"),
    "symlink": ("EACCES", "ENOSPC"),
    "symlinkat": ("EPERM", "ENOSPC"),
    "syncfs": ("EIO", "ENOSPC", "EDQUOT"),
    "timer_create": ("EAGAIN", "ENOMEM"),
    "timer_settime": ("EINVAL",),
    "timerfd_create": ("EMFILE", "ENOMEM"),
    "timerfd_settime": ("EINVAL",),
    "umount2": ("EBUSY", "EPERM"),
    "uname": (),
    "unlink": ("EBUSY", "EPERM"),
    "unlinkat": ("EBUSY", "EPERM"),
    "unshare": ("EPERM", "ENOMEM", "ENOSPC"),
    "utimensat": ("EPERM", "EROFS"),
    "vfork": ("EAGAIN", "ENOMEM"),
    "wait4": ("EINTR",),
    "waitid": ("EINTR",),
    "write": ("EINTR", "EIO", "ENOSPC", "EPERM"),
    "writev": ("EINTR", "EIO"),
}
# They can't fail with the arguments they have (rt_sigaction: but for signals that can't be changed), or what ends the process can't be prevented.
NEVER_FAIL = {
    "alarm", "arch_prctl", "exit", "exit_group", "getegid", "geteuid", "getgid", "getpgid", "getpgrp", "getpid",
    "getppid", "getresgid", "getresuid", "getrusage", "getsid", "gettid", "getuid", "rseq", "rt_sigreturn",
    "sched_getaffinity", "set_robust_list", "set_tid_address", "sysinfo", "time", "umask", "uname",
    "clock_gettime", "getrlimit", "personality", "sched_yield", "rt_sigaction", "rt_sigprocmask",
    "restart_syscall",  # the kernel's own: it resumes a call that a signal interrupted
}  # fmt: skip


def errors_of(call):
    """Those that this call can have: one of a descriptor looks for no path, and that there is none is an answer."""
    names = ERRORS[call.name]
    if call.name == "newfstatat" and call.argument == "''":
        return [name for name in names if name not in ("EACCES", "ENOENT")]
    if call.name == "openat2" and call.role == "supervisor":
        return [name for name in names if name != "ENOENT"]
    return names


# A signal that comes in between (SIGCONT at least can't be blocked) changes nothing about a run.
RETRIED = {
    "read", "write", "recvmsg", "sendmsg", "recvfrom", "poll", "sendfile", "epoll_wait", "wait4", "waitid",
    "nanosleep", "clock_nanosleep", "flock", "rt_sigtimedwait", "accept4",
}  # fmt: skip


class Call:
    """A line of inject's list: one call of one role."""

    def __init__(self, line):
        _, self.role, self.number, self.mark, self.phase, self.returned, *rest = line.split(" ")
        self.name, _, nth = self.mark.partition("#")
        sample, _, self.nth = nth.rpartition(".")
        self.sample = int(sample or 0)  # of the jail's processes; 0: in none
        self.argument = rest[0] if rest else ""

    def place(self):
        """What makes it different from others of its name, but for counters and numbers."""
        return self.role, self.name, self.phase, re.sub(r"[0-9]+", "N", self.argument)

    def reached(self, done):
        """What the fault has met, where the order is not the same in every run; `done` is inject's line."""
        return Call(" ".join([*done[:5], "?", *done[5:]])) if done else self

    def __repr__(self):
        return f"{self.role} {self.mark} ({self.argument}, {self.phase} the program)"


# --- a run ----------------------------------------------------------------------------


class Seen:
    """All that one run left to look at."""

    def __init__(self, code, out, err, result, artifacts, report, seconds):
        self.code, self.out, self.err, self.result = code, out, err, result
        self.artifacts, self.report, self.seconds = artifacts, report, seconds
        self.left, self.stays = [], []  # what stayed behind; and what of it the next `cejail gc` leaves

    def lines(self, word):
        return [line.split(" ") for line in self.report if line.startswith(word + " ")]

    def is_late(self):
        """Traced on a busy machine a role may need longer for a step than the other one waits."""
        told = self.out if self.out == self.result else ""  # what a server was told; else it is a program's
        return os.strerror(errno.ETIMEDOUT) in f"{self.err} {told}"

    def is_reached(self):
        return bool(self.lines("done"))

    def warnings(self):
        """Of standard error and of the result: the former has one line for all that the host lacks."""
        told = {line for line in self.err if line.startswith("cejail: warning: ")}
        try:
            return told | set(json.loads(self.result or "")["warnings"])
        except (ValueError, KeyError):
            return told

    def errors(self):
        return [line for line in self.err if line.startswith("cejail: ") and not is_note(line)]

    def program_lines(self):
        return [line for line in self.err if not line.startswith("cejail: ")]

    def __repr__(self):
        return f"exit status {self.code}, {self.err}, {self.report[-4:]}"


def is_note(line):
    """What is said beside an error."""
    return re.match(r"cejail: (warning: |denied system calls: |network: denied |ended by |cancelled|timeout: )", line)


def words_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


class Way:
    """A way to call cejail.  It has a folder, and may have descriptors and listeners of its own."""

    def __init__(self, name, *args, given="", program=None, net=None, prepare=None, status=OUR_STATUS, tty=False):
        self.name, self.args, self.given, self.net = name, args, given, net
        self.program = program or ("-f", f"{harness.PROBES}/posture:/box/posture", "--", "/box/posture")
        self.prepare, self.status, self.has_terminal = prepare, status, tty
        self.runs = 0

    def run(self, folder, *orders):
        """orders: inject's; every run has an id of its own, by which what it left is found."""
        self.runs += 1
        run_id = f"fault-{os.getpid()}-{self.runs}"
        base = os.path.join(folder, run_id)
        os.mkdir(base)
        report, result, artifacts = (os.path.join(base, name) for name in ("report", "result", "out"))
        args = [word.replace("@ARTIFACTS", artifacts).replace("@FOLDER", folder) for word in self.args]
        before = set(harness.descendants())
        command = [INJECT, report, *orders, "--", harness.CEJAIL, "run", "--id", run_id, f"--json={result}"]
        seen = self.start([*command, *args, *self.program])
        seen.report = (words_of(report) or "").splitlines()
        seen.result = words_of(result)
        kept = glob.glob(f"{artifacts}/*")
        seen.artifacts = sorted((os.path.basename(path), words_of(path)) for path in kept)
        files = sorted(set(os.listdir(base)) - {"report", "result", "out"})
        subprocess.run(["rm", "-rf", base], check=True)
        seen.left = [f"file {name}" for name in files] + what_is_left(run_id, before)
        if seen.left:
            subprocess.run([harness.CEJAIL, "gc"], env=harness.environment(), capture_output=True, check=False)
            seen.stays = of_run(run_id, before)
        return seen

    def start(self, command, **more):
        streams = Terminal() if self.has_terminal else Pipes(self.given)
        before = streams.state()
        options = self.net.inside if self.net else {}
        began = time.monotonic()
        # malloc(3) fills what is freed, and what is new: an error path that uses it ends by a signal
        env = harness.environment(MALLOC_PERTURB_="165")
        process = subprocess.Popen(command, env=env, **streams.far, **options, **more)
        try:
            code = process.wait(LIMIT * harness.SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = "it hangs"
        seconds = time.monotonic() - began
        after = streams.state()
        out, err = streams.close()
        if before != after and not self.is_about_terminal(command):
            code = f"our streams are {after}, they were {before}"
        return Seen(code, out, err.splitlines(), None, [], [], seconds)

    def is_about_terminal(self, command):
        """Whether the fault was in what puts a terminal back."""
        return self.has_terminal and command[2] == "fail" and command[4].startswith("ioctl#")


def read_all(fd):
    with os.fdopen(fd, "rb") as file:
        return file.read().decode(errors="replace")


class Pipes:
    """The caller's streams, of which we keep both ends: their flags are the caller's, and stay as they were."""

    def __init__(self, given):
        self.ends = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
        os.write(self.ends[0][1], given.encode())
        os.close(self.ends[0][1])
        self.of_cejail = (self.ends[0][0], self.ends[1][1], self.ends[2][1])
        self.far = dict(zip(("stdin", "stdout", "stderr"), self.of_cejail))

    def state(self):
        return [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in self.of_cejail]

    def close(self):
        """What came to standard output and standard error; less than a pipe holds."""
        for fd in self.of_cejail:
            os.close(fd)
        return [read_all(near) for near, _ in self.ends[1:]]


class Terminal:
    """A terminal for standard input and output: its modes are the caller's, too."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        self.near, self.err = os.pipe2(os.O_CLOEXEC)
        self.far = {"stdin": self.slave, "stdout": self.slave, "stderr": self.err}

    def state(self):
        return [termios.tcgetattr(self.slave), fcntl.fcntl(self.slave, fcntl.F_GETFL), fcntl.fcntl(self.err, fcntl.F_GETFL)]

    def close(self):
        os.close(self.err)
        os.set_blocking(self.master, False)
        try:
            out = os.read(self.master, 65536).decode(errors="replace")
        except OSError:
            out = ""
        os.close(self.slave)
        os.close(self.master)
        return out, read_all(self.near)


# --- what stays behind --------------------------------------------------------------------


def of_run(run_id, before):
    """Records, cgroups and private directories of this run, and processes of ours that were not there before."""
    found = [f"process {words}" for pid, words in harness.descendants().items() if pid not in before]
    found += [f"cgroup {path}" for path in harness.our_cgroups() if os.path.basename(path) == f"cejail-{run_id}"]
    for place in harness.runtime_dirs():
        found += [f"record {path}" for path in glob.glob(f"{place}/runs/{run_id}*")]
    return found + [f"directory {path}" for path in harness.private_dirs(run_id)]


def what_is_left(run_id, before):
    """After a moment for what the kernel does later."""
    end = time.monotonic() + 2 * harness.SLOW
    while True:
        found = of_run(run_id, before)
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.01)


# --- the verdict ----------------------------------------------------------------------------

# A protecting call that may fail without an error or a warning: why nothing is weaker then.
HARMLESS = {
    # libcap counts the capabilities of this kernel when it is loaded; init asks the kernel itself
    "supervisor E.* prctl 23",
    "supervisor E.* prlimit64 0",  # asks how large the stack may be
    # libcap looks for ambient capabilities; the empty sets of capset(2) leave none: capabilities(7)
    "init E.* prctl 47",
    "init EINVAL prctl 23",  # a capability that the kernel says it does not have is in no set
    "[a-z0-9-]+ E.* close_range [0-9]+-[0-9]+",  # descriptors of ours: then each is closed by itself
    "(init|gateway|loader|guard) E.* prctl 15",  # the name that ps(1) shows
    "(gateway|loader) E.* landlock_create_ruleset 0",  # its filter lets it open no file either: gateway_confine.c
    "init EINVAL seccomp 1",  # an older kernel's answer to a flag it does not know: loaded without it
    "supervisor E.* sendto getlink",  # asks again and again whether a helper is ready
    "supervisor E.* sendto get-table",  # a table of the host that can't be identified is not shared: it loads its own
    "supervisor E.* sendto delete-table",  # closing its socket, which follows, removes it, too
    "supervisor EPERM sendto [0-9]+",  # somebody else's table has that name: loaded again under the next number
    "intermediate EPERM setgroups 0",  # a caller without the right keeps its groups, as in whatever else it runs
    "keeper EPERM mount (/tmp/proc|[?])",  # a container forbids a new one: pasta sees the host's, as when it is run there
}
# The score only says which process of the host's goes first when memory is short: intake.c calls it best effort.
UNSURE_LINES = {
    # "?": inject can't read the text where its caller is an ordinary user and init is no longer dumpable
    "init E.* (openat|write|close|pread64) (/proc/self/oom_score_adj|500|[?])": "/proc/self/oom_score_adj: ",
    "init E.* pread64 [0-9]+": "/proc/self/oom_score_adj: ",  # read before it is raised
    "init E.* prctl 15": "/proc/1/comm: ",
    "supervisor E.* ioctl [012]": ("",),  # a stream that says it is no terminal is used as none
    "supervisor EIO read [0-9]+": "on a terminal",  # the master's end of file: its last user has hung up, pty(7)
    # whether the host has a way into IPv6, and lets us use it: without one the jail has none
    "supervisor E.* (socket|connect) [0-9]+": "connect 2600:",
    "gateway (EACCES|EPERM|ENOENT) openat /proc/sys/net/ipv6/conf/all/forwarding": ("connect 2600:", "connect fd00:"),
    "gateway EPERM write 1": ("connect 2600:", "connect fd00:"),
    # A public file of the host that not everybody may read is not shown: cejail-profile(5).  An overlay shows
    # the numbers of its descriptors, which depend on how many were opened before.
    "init EACCES openat2 (etc|var)/.*": ("mount: /etc/", "mount: /var/", "mount: / "),
    "init EACCES openat etc": ("mount: /etc/", "mount: /var/", "mount: / "),
}


def without_harmless(call, name, what):
    """Without the lines that this fault may change."""
    words = f"{call.role} {name} {call.name} {call.argument}" if call else ""
    hidden = []
    for pattern, texts in UNSURE_LINES.items():
        hidden += ([texts] if isinstance(texts, str) else texts) if re.fullmatch(pattern, words) else []
    if name == "ENOENT":
        return what[-16:] if isinstance(what, str) else []  # what isn't there need not be shown, hidden or copied
    return [row for row in what.splitlines() if not row.startswith(tuple(hidden))] if isinstance(what, str) else what


PROTECTIVE = {
    "capset", "clone3", "close_range", "fsconfig", "fsmount", "keyctl", "landlock_add_rule",
    "landlock_create_ruleset", "landlock_restrict_self", "mount", "mount_setattr", "move_mount", "pivot_root",
    "prctl", "prlimit64", "seccomp", "setgroups", "setresgid", "setresuid", "setsid", "umount2", "unshare",
    "sethostname", "setns", "sendmsg", "sendto",
}  # fmt: skip


def may_die_of(role, signal):
    """SIGKILL ends a jail, and SIGUSR1 a reduced one's init that does not handle it yet."""
    return role != "supervisor" and signal == "9" or role == "init" and signal == "10"


def judge(seen, base, call, name):
    """None when the run ended as promised, else what is wrong with it."""
    if not isinstance(seen.code, int):
        return f"{seen.code}"
    left = [line for line in seen.lines("left") if line[1] != "holder"]  # it stays while runs of the other worker use its table
    if left:
        return f"roles outlived the supervisor: {left}"
    bad = [line for line in seen.lines("end") if line[2] == "killed" and not may_die_of(line[1], line[3])]
    is_by_libc = is_abort_of_libc(seen, call)
    if bad and not is_by_libc:
        return f"died of a signal: {bad}"
    if seen.left and (seen.stays or not (is_by_libc or is_release(seen, call))):  # after an abort, gc removes it
        return f"left behind: {seen.left}, after gc: {seen.stays} (exit status {seen.code})"
    if is_by_libc:
        return None
    if not seen.is_reached():
        return judge_same(seen, base, None, name)
    if seen.code == 125:
        return judge_refusal(seen, base, call, name)
    return judge_same(seen, base, call, name)


def is_abort_of_libc(seen, call):
    """The heap of a static program begins at any address.  If malloc(3) can't align it at the first call, before
    main(), it ends the program when the heap must grow."""
    is_call = call and call.role == "supervisor" and call.name == "brk"
    return is_call and seen.code == 134 and any("malloc assertion failure in sysmalloc" in line for line in seen.err)


def is_release(seen, call):
    """A record, a cgroup or a private directory that can't be removed, or that can't be seen to be ours still, is left to the next
    run, or to gc: prepare.c says so.  A run may end before its program starts: on a busy machine, or if it can't start."""
    is_record = call.name == "flock" or (call.name == "unlinkat" and call.argument.startswith("runs/"))
    is_end = call.phase == "after" or seen.code in (124, 127) or is_record
    return is_end and call.name in ("unlinkat", "renameat", "rmdir", "flock", "newfstatat", "fstat")


def releases_session(call):
    """The same of a session, whose end has no phase."""
    return call.name in ("unlinkat", "rmdir", "flock", "newfstatat", "fstat", "openat", "getdents64", "read", "pidfd_send_signal")


def judge_same(seen, base, call, name):
    """The run went on: then it is the run it would have been."""
    if is_documented(seen, call, name):
        return None
    if seen.code != base.code:
        return f"exit status {seen.code}: {seen.err}"
    undelivered = [line for line in seen.errors() if is_delivery_error(line)]
    if len(undelivered) == 1 and seen.errors() == base.errors() + undelivered:
        return None if seen.out == base.out else f"out differs: {difference(seen.out, base.out)}"
    is_about_stderr = call and call.name == "write" and call.argument.startswith("cejail:")
    if seen.errors() != base.errors() and not is_about_stderr:
        return f"exit status {seen.code} with an error: {seen.errors()}"
    if seen.program_lines() != base.program_lines():
        return f"stderr differs: {seen.err}"
    if seen.warnings() - base.warnings():
        return judge_warned(seen, base)
    for what in ("out", "artifacts"):
        mine, theirs = without_harmless(call, name, getattr(seen, what)), without_harmless(call, name, getattr(base, what))
        if mine != theirs:
            return f"{what} differs: {difference(mine, theirs)}"
    differs = difference(facts_of(seen.result), facts_of(base.result))
    if differs and differs != WITHOUT_CGROUP:
        return f"the result differs: {differs}"
    if call and call.name in PROTECTIVE and name != "EINTR" and not is_harmless(call, name):
        return "it protects, failed, and nobody was told"
    return None


def judge_warned(seen, base):
    """What a warning is about may be missing: the jail's strength, or a file that could not be copied out."""
    new = "\n".join(seen.warnings() - base.warnings())
    if not seen.out.endswith("".join(base.out.splitlines(keepends=True)[-1:])):  # before it: how its connections ended
        return f"warned, but output is lost: {seen.out[-100:]}"
    if not seen.result:
        return "warned, but there is no result"
    if seen.artifacts != base.artifacts and not re.search("artifacts|/box/out|is not copied|kept", new):
        return f"warned, but files are missing: {new}"
    return None


def is_documented(seen, call, name):
    """Ends that the manual page names."""
    if not call:
        return False
    # libc relocates a static program before its main(), and ends it when it can't protect its tables
    if call.role == "supervisor" and call.name == "mprotect" and not seen.result:
        return seen.code == 127 and any("cannot apply additional memory protection" in line for line in seen.err)
    is_about_file = call.role in ("payload", "payload2") and call.name in ("execve", "openat", "newfstatat", "read", "pread64", "fstat")
    if is_about_file or (name == "ENOENT" and call.role == "init"):
        return seen.code in (126, 127) and len(seen.errors()) == 1  # what it needs isn't there
    if call.role == "supervisor" and call.name == "write" and seen.code == 141:
        return has_warning(seen, f"can't be written: {os.strerror(getattr(errno, name))}")
    if call.role == "supervisor" and call.name in ("read", "write", "recvfrom", "sendto"):
        return has_warning(seen, f" can't be (read|written): {os.strerror(getattr(errno, name))}")
    return False


def has_warning(seen, pattern):
    return any(re.search(pattern, line) for line in seen.warnings())


def is_delivery_error(line):
    """The program ended as it did; its status stays, and the line says that the result is not where it should be."""
    return "--json" in line or "artifacts" in line


def is_harmless(call, name):
    return any(re.fullmatch(pattern, f"{call.role} {name} {call.name} {call.argument}") for pattern in HARMLESS)


def difference(mine, theirs):
    mine, theirs = rows_of(mine), rows_of(theirs)
    return [f"+{row}" for row in mine if row not in theirs][:4] + [f"-{row}" for row in theirs if row not in mine][:4]


# Where no controller is to be had a cgroup only helps to kill; a result without it says so.
WITHOUT_CGROUP = ["+cgroup: absent", "-cgroup: on"]


def rows_of(what):
    return what if isinstance(what, list) else str(what).splitlines()


def facts_of(result):
    """What a result says that is the same in every run."""
    if result is None:
        return "no result"
    try:
        value = json.loads(result)
    except ValueError:
        return f"no JSON: {result[:200]}"
    by = {name: (limit["by"], limit["value"]) for name, limit in value["limits"].items()}
    rest = {key: value[key] for key in ("status", "exit_code", "signal", "error", "layers", "warnings")}
    refused = sorted(one["name"] for one in value["denied_syscalls"])
    rest.update(value["layers"], limits=by, refused=refused, uplink=value["network"]["uplink"], files=value["artifacts"])
    return [f"{key}: {words}" for key, words in rest.items() if key != "layers"]


def judge_refusal(seen, base, call, name):
    """Exit status 125: one line that says which step failed, on what, and why."""
    if call.name in RETRIED and name == "EINTR":
        return f"a signal ended the run: {seen.err}"
    errors = seen.errors()
    if len(errors) != 1:
        return f"{len(errors)} errors: {seen.err}"
    if "'" not in errors[0] and not names_step(errors[0]):
        return f"neither a step nor an object is named: {errors[0]}"
    if os.strerror(getattr(errno, name)) not in errors[0] and not is_told(call, name, errors[0]):
        return f"not the cause: {errors[0]}"
    if any(line not in base.program_lines() for line in seen.program_lines()):
        return f"stderr differs: {seen.err}"
    return judge_refused_result(seen.result, errors[0])


# Where the error itself says less than what it means there: what is said in its place.
MEANINGS = {
    ".* E?AGAIN .*": "Connection timed out",  # a socket's time limit
    "init E.* clone3 .*": "does not refuse clone3",  # the filter's own test
    "init E.* newfstatat ''": "is not the device",
    "supervisor EACCES openat /.*": "there is no place for a runtime directory|trust '/dev/shm/",
    "init E.* socket -1": "does not refuse socket",
    "init EOPNOTSUPP landlock_create_ruleset .*": "Landlock has ABI 0",
    "supervisor EPERM capget .*": "root needs CAP_",
    "init E.* prctl 2[347]": "verify that no capability is left",
    "supervisor E.* fcntl [012]": "is closed",  # the one error of F_GETFD
    "supervisor E.* readlink /proc/self/exe": "there is no profile",  # no /proc: the compiled-in place
    ".* ENOENT .*": "",  # what isn't there leads somewhere else
}


def is_told(call, name, line):
    words = f"{call.role} {name} {call.name} {call.argument}"
    if IS_SLOW and os.strerror(errno.ETIMEDOUT) in line:
        return True  # traced and emulated, init may need longer for a step than any machine
    return any(re.fullmatch(pattern, words) and re.search(text, line) for pattern, text in MEANINGS.items())


STEPS = ("signals", "cgroup", "seccomp", "init", "runtime directory", "ids", "id map", "record", "network", "jail",
         "uplink", "assess", "sweep", "names", "program", "supervisor", "exec", "artifacts",
         "private directory", "--json")  # fmt: skip


def names_step(line):
    return "standard " in line or re.match(r"cejail: --[a-z]+-fd \d+: ", line) or line.startswith(tuple(f"cejail: {step}: " for step in STEPS))


def judge_refused_result(result, line):
    if result is None:
        return None if re.search("--json|result|-fd [0-9]", line) else "no result"
    try:
        value = json.loads(result)
    except ValueError:
        return f"the result is no JSON: {result[:200]}"
    told = value["error"]
    if value["status"] != "setup_error" or not told:
        return None if "result" in line or "artifacts" in line else f"the result claims {value['status']}"
    if told["message"] not in line or not told["stage"]:
        return f"the result tells another error: {told}"
    return None
