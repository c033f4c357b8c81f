# SPDX-License-Identifier: Apache-2.0
"""What must not work.  Each escape idea is a sentence that the jail says no.

The attempts themselves are C programs (../escape/attempt_*.c); here stands what each means, and
that the probes can tell an open door from a closed one.
"""

import json
import os
import socket
import subprocess

from harness import *  # noqa: F403

ALLOW_ALL = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": []}

# probe -> attempt -> the sentence
ATTEMPTS = {
    "attempt_mounts": {
        "mount": "a tmpfs can't be mounted",
        "mount_proc": "a proc can't be mounted",
        "bind": "a directory can't be bound elsewhere",
        "remount": "the root can't be remounted writable",
        "umount": "/box can't be unmounted",
        "umount_proc": "the cover of /proc/sys can't be taken off",
        "pivot_root": "the root can't be pivoted",
        "chroot": "chroot is refused",
        "open_tree": "a mount can't be cloned with open_tree",
        "move_mount": "a mount can't be moved with move_mount",
        "fsopen": "fsopen is refused",
        "fspick": "fspick is refused",
        "mount_setattr": "mount_setattr is refused",
        "open_by_handle": "a file can't be opened by its handle",
        "unshare_user": "there is no user namespace inside, by unshare",
        "unshare_mount": "there is no mount namespace inside",
        "unshare_net": "there is no network namespace inside",
        "unshare_high_bits": "high bits in unshare's flags open nothing",
        "clone_user": "there is no user namespace inside, by clone",
        "clone3": "clone3 is refused",
        "setns": "init's namespaces can't be joined",
        "setns_own": "setns is refused",
    },
    "attempt_processes": {
        "traceme": "a program can't ask to be traced",
        "attach_init": "init can't be attached to",
        "seize_init": "init can't be seized",
        "read_init": "init's memory can't be read with process_vm_readv",
        "init_mem": "/proc/1/mem can't be opened",
        "init_environ": "/proc/1/environ can't be read",
        "init_root": "/proc/1/root leads nowhere",
        "init_cwd": "/proc/1/cwd leads nowhere",
        "init_exe": "/proc/1/exe can't be opened: nothing of cejail's can be overwritten or run",
        "init_fds": "init's descriptors can't be looked at or opened",
        "init_maps": "init's address space can't be read",
        "getfd_init": "init's descriptors can't be taken with pidfd_getfd",
        "prlimit_init": "init's limits can't be changed",
        "kcmp": "kcmp is refused",
        "move_pages": "init's pages can't be moved",
        "setuid": "nobody becomes root with setuid",
        "setgid": "nobody becomes group root with setgid",
        "setuid_other": "nobody becomes another user",
        "setgroups": "no group can be added",
        "capset": "no capability can be had by capset",
        "ambient": "no ambient capability can be raised",
        "securebits": "securebits are locked",
        "new_privs": "no_new_privs can't be taken back",
        "more_files": "the limit on open files can't be raised",
        "core": "the limit on core files can't be raised",
        "realtime": "no realtime scheduling",
        "nice": "no priority above the caller's",
        "oom_score": "no process can hide from the OOM killer",
        "uid_map": "the id map can't be written again",
        "chown": "a file can't be given away",
    },
    "attempt_kernel": {
        "keyctl": "keyctl is refused",
        "join_keyring": "no keyring can be joined",
        "add_key": "no key can be added",
        "request_key": "no key can be asked for",
        "bpf": "bpf is refused",
        "perf": "perf_event_open is refused",
        "userfaultfd": "userfaultfd is refused",
        "io_uring": "io_uring is refused",
        "syslog": "the kernel's log can't be asked for",
        "vmsplice": "vmsplice is refused",
        "fanotify": "fanotify is refused",
        "module": "init_module is refused",
        "finit_module": "finit_module is refused",
        "delete_module": "delete_module is refused",
        "kexec": "kexec is refused",
        "reboot": "reboot is refused",
        "swapoff": "swapoff is refused",
        "acct": "acct is refused",
        "quotactl": "quotactl is refused",
        "sethostname": "the host name can't be set",
        "setdomainname": "the domain name can't be set",
        "iopl": "iopl is refused",
        "ioperm": "ioperm is refused",
        "settimeofday": "settimeofday is refused",
        "clock_settime": "clock_settime is refused",
        "adjtimex": "adjtimex is refused",
        "personality": "READ_IMPLIES_EXEC is refused",
        "no_aslr": "address randomisation can't be turned off",
        "vhangup": "vhangup is refused",
        "lookup_dcookie": "lookup_dcookie is refused",
        "i386": "int 0x80 doesn't reach the kernel",
        "x32": "the x32 entry doesn't reach the kernel",
    },
    "attempt_sockets": {
        "alg": "no AF_ALG socket",
        "vsock": "no AF_VSOCK socket",
        "packet": "no AF_PACKET socket",
        "key": "no AF_KEY socket",
        "rxrpc": "no AF_RXRPC socket",
        "xdp": "no AF_XDP socket",
        "tipc": "no AF_TIPC socket",
        "can": "no AF_CAN socket",
        "bluetooth": "no AF_BLUETOOTH socket",
        "netfilter": "no NETLINK_NETFILTER socket",
        "xfrm": "no NETLINK_XFRM socket",
        "uevent": "no NETLINK_KOBJECT_UEVENT socket",
        "raw": "no raw socket",
        "ping": "no ICMP socket where there is no network",
        "sctp": "no SCTP socket",
        "mptcp": "no MPTCP socket",
        "family_high_bits": "high bits in a socket's family open nothing",
    },
    "attempt_files": {
        "core_pattern": "/proc/sys/kernel/core_pattern can't be written",
        "modprobe_path": "/proc/sys/kernel/modprobe can't be written",
        "proc_hostname": "/proc/sys/kernel/hostname can't be written",
        "userns_count": "/proc/sys/user/max_user_namespaces can't be written",
        "pid_max": "/proc/sys/kernel/pid_max can't be written",
        "ip_forward": "/proc/sys/net/ipv4/ip_forward can't be written",
        "sysrq": "/proc/sysrq-trigger can't be written",
        "kcore": "/proc/kcore says nothing",
        "kmsg": "/proc/kmsg says nothing",
        "kallsyms": "/proc/kallsyms says nothing",
        "keys": "/proc/keys says nothing",
        "timer_list": "/proc/timer_list says nothing",
        "modules": "/proc/modules says nothing",
        "cmdline": "the host's kernel command line is not shown",
        "sysfs": "there is no /sys",
        "cgroupfs": "there is no cgroup file system",
        "dev_mem": "there is no /dev/mem",
        "dev_kmsg": "there is no /dev/kmsg",
        "dev_kvm": "there is no /dev/kvm",
        "dev_fuse": "there is no /dev/fuse",
        "dev_tun": "there is no /dev/net/tun",
        "dev_vsock": "there is no /dev/vsock",
        "dev_disk": "there is no disk in /dev",
        "mknod_char": "no character device can be made",
        "mknod_block": "no block device can be made",
        "write_root": "the root can't be written",
        "write_usr": "/usr can't be written",
        "write_etc": "/etc/passwd can't be written",
        "write_dev": "/dev can't be written",
        "replace_null": "/dev/null can't be replaced",
        "shadow": "/etc/shadow can't be read",
        "home": "/root and /home are not there",
        "var": "/var/lib and /run/systemd are not there",
        "tiocsti": "TIOCSTI is refused on what is no terminal",
        "tiocsti_high_bits": "high bits in an ioctl's number open nothing",
        "tioclinux": "TIOCLINUX is refused",
        "controlling_tty": "there is no controlling terminal",
    },
}

# What must be closed even with a filter that allows everything: the second lock.
WITHOUT_FILTER = {
    "attempt_mounts": (
        "mount", "bind", "remount", "umount_proc", "pivot_root", "move_mount", "mount_setattr", "open_by_handle",
        "unshare_user", "unshare_mount", "unshare_net", "clone_user", "setns",
    ),
    "attempt_processes": (
        "attach_init", "seize_init", "read_init", "init_mem", "init_environ", "init_root", "init_exe", "init_fds",
        "getfd_init", "setuid", "setgid", "setuid_other", "setgroups", "capset", "ambient", "securebits", "new_privs",
        "more_files", "core", "realtime", "nice", "oom_score", "uid_map", "chown",
    ),
    "attempt_kernel": (
        "bpf", "syslog", "module", "finit_module", "kexec", "reboot", "swapoff", "acct", "sethostname", "iopl",
        "settimeofday", "clock_settime", "adjtimex", "i386", "x32",
    ),
    "attempt_sockets": ("packet", "key", "raw"),
    "attempt_files": (
        "core_pattern", "userns_count", "sysrq", "kcore", "mknod_char", "mknod_block", "write_root", "write_usr",
        "write_etc", "write_dev", "replace_null", "cgroupfs",
    ),
}  # fmt: skip

# What is open on purpose elsewhere: attempt -> options, a name for them, what to attempt.
OTHERWISE = {"ping": (("--network", "none"), "no network", ("ping",))}

answers_cache = {}


def answers(name, options=(), key="default", names=()):
    """attempt -> "held ..." or "OPEN", of one run of a probe."""
    if (name, key) not in answers_cache:
        done = probe(name, *names, options=options, limit=60).exits(0)
        answers_cache[name, key] = dict(line.split(" ", 1) for line in done.out.splitlines())
    return answers_cache[name, key]


def is_held(answer):
    return answer is not None and answer.startswith("held ")


def register_attempts():
    for name, rows in ATTEMPTS.items():
        for attempt, sentence in rows.items():

            def check(name=name, attempt=attempt):
                answer = answers(name, *OTHERWISE.get(attempt, ())).get(attempt)
                true(is_held(answer), f"{attempt}: {answer}")

            test(sentence, limit=90)(check)


register_attempts()


@test("the table of attempts and the probes name the same attempts")
def _():
    for name, rows in ATTEMPTS.items():
        equal(sorted(answers(name)), sorted(rows), name)


@test("the probes can tell an open door: outside, some of the same attempts work")
def _():
    out = ""
    for name in ATTEMPTS:
        done = subprocess.run(
            [f"{PROBES}/{name}", "traceme", "uevent", "keyctl", "vmsplice", "sysfs", "no_aslr", "netfilter"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * SLOW, check=True,
        )  # fmt: skip
        out += done.stdout.decode()
    for attempt in ("uevent", "vmsplice", "sysfs", "no_aslr"):
        contains(out, f"{attempt} OPEN\n", "what the probes say outside")


@test("without the filter, what namespaces, mounts and capabilities close stays closed")
def _():
    with Folder() as f:
        policy = f.file("allow.json", json.dumps(ALLOW_ALL))
        for name, wanted in WITHOUT_FILTER.items():
            seen = answers(name, ("--seccomp", policy), "unfiltered", wanted)
            still_open = [attempt for attempt in wanted if not is_held(seen.get(attempt))]
            equal(still_open, [], f"open in {name}")


@test("a file in OCI form is a filter: what it refuses is refused")
def _():
    policy = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": [{"names": ["uname"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}],
    }
    with Folder() as f:
        file = f.file("policy.json", json.dumps(policy))
        contains(sh("uname 2>&1; true", "--seccomp", file).exits(0).out, "not implemented", "uname's answer")
        lacks(sh("uname").exits(0).out, "not implemented", "uname's answer")


# --- what the kernel says about the process ---------------------------------


def status_of_self():
    done = sh("cat /proc/self/status").exits(0)
    return dict(line.split(":\t", 1) for line in done.out.splitlines() if ":\t" in line)


@test("no capability is in any set")
def _():
    seen = status_of_self()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        equal(int(seen[name], 16), 0, name)


@test("no new privileges, and a filter is loaded")
def _():
    seen = status_of_self()
    equal(seen["NoNewPrivs"], "1", "NoNewPrivs")
    equal(seen["Seccomp"], "2", "Seccomp")


@test("the program is not root, and in no group but its own")
def _():
    seen = status_of_self()
    for name in ("Uid", "Gid"):
        true("0" not in seen[name].split(), f"{name} {seen[name]}")
    groups = set(seen["Groups"].split())
    true(groups <= {seen["Gid"].split()[0], "65534"}, f"groups {groups}")


def payload_of(process):
    """The pid of the jailed `sleep`, or None while there is none."""
    todo = [process.pid]
    while todo:
        pid = todo.pop()
        todo += children_of(pid)
        if (describe_process(pid) or "").split()[1:2] == ["sleep"]:
            return pid
    return None


def maps_seen_from_outside(count=1):
    """The rows of the id maps of so many jails at once, in the host's ids: inside is one more map."""
    processes = [start("run", "-p", "base", "--", "/bin/sleep", "300") for _ in range(count)]
    wait_until(lambda: all(map(payload_of, processes)), "the programs to run")
    seen = []
    for process in processes:
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{payload_of(process)}/{name}", encoding="ascii") as file:
                seen += [list(map(int, line.split())) for line in file]
        process.terminate()
        finish(process)
    return seen


@test("host uid 0 is never mapped", who="root")
def _():
    rows = maps_seen_from_outside()
    equal(len(rows), 2, "rows of uid_map and gid_map")
    for inside, outside, count in rows:
        true(outside > 0, f"a map has {outside}")
        equal(count, 1, "ids in a map")
        true(inside > 0, "root inside")


@test("two jails of root have different host ids", who="root")
def _():
    rows = maps_seen_from_outside(2)
    true(rows[0][1] != rows[2][1], f"both have the same host id {rows[0][1]}")
    true(rows[0][1] > 1000, f"{rows[0][1]} is no id of a jail's own")


@test("core files are off by a limit of exactly 1, and its pipe helper with it")
def _():
    done = sh("grep 'core file' /proc/self/limits").exits(0)
    equal(done.out.split()[4:6], ["1", "1"], "soft and hard limit")


@test("the jail allows no user namespaces of its own")
def _():
    with Folder() as f:
        policy = f.file("allow.json", json.dumps(ALLOW_ALL))
        names = ("unshare_user", "clone_user")
        seen = answers("attempt_mounts", ("--seccomp", policy), "user namespaces", names)
        equal([seen[name] for name in names], ["held ENOSPC"] * 2, "without the filter")


@test("every namespace is the jail's own")
def _():
    names = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
    inside = sh("for n in " + " ".join(names) + "; do readlink /proc/self/ns/$n; done").exits(0).out.split()
    outside = [os.readlink(f"/proc/self/ns/{name}") for name in names]
    shared = set(inside) & set(outside)
    equal(shared, set(), "shared namespaces")
    equal(len(set(inside)), len(names), "namespaces of its own")


@test("only the jail's own processes are in /proc")
def _():
    done = sh("ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm").exits(0)
    count = int(done.out.split()[0])
    between(count, 2, 6, "processes in /proc")


@test("signals to pid 1 don't end the jail")
def _():
    probe("behave", "kill-init").exits(0).says("init lives\n")


@test("a program that kills everything it can reach kills only itself's kin")
def _():
    probe("behave", "kill-all").exits(0).says("still here\n")


# --- what comes from the caller ---------------------------------------------


@test("no descriptor of the caller's gets in, though he left a secret open on many")
def _():
    with Folder() as f:
        secret = os.open(f.file("secret", SECRET), os.O_RDONLY)
        held = [secret]
        try:
            for number in (7, 8, 50, 200, 900):
                os.dup2(secret, number)
                os.set_inheritable(number, True)
                held.append(number)
            script = "ls /proc/self/fd | tr '\\n' ' '; for n in 3 4 5 6 7 8 50 200 900; do cat <&$n; done 2>/dev/null"
            process = start("run", "-p", "base", "--", "/bin/sh", "-c", script, close_fds=False)
            done = finish(process)
        finally:
            for number in held:
                os.close(number)
        lacks(done.out + done.err, SECRET, "output")
        true(set(done.out.split()) <= {"0", "1", "2", "3"}, f"descriptors {done.out!r}")


@test("descriptors 0 to 2 are sound even when the caller closed his")
def _():
    script = f"exec {CEJAIL} run -p base -- /bin/sh -c 'ls -l /proc/self/fd >/box/l; cat /box/l >&2' 0<&- 1>&- 2>/dev/null"
    subprocess.run(["/bin/sh", "-c", script], env=environment(), timeout=30 * SLOW, check=False)
    done = sh("for n in 0 1 2; do [ -e /proc/self/fd/$n ] || echo closed; done").exits(0)
    equal(done.out, "", "stdout")


@test("no secret of the caller's is in the environment of any process inside")
def _():
    done = sh("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'").exits(0)
    lacks(done.out, SECRET, "environments inside")


@test("no host path of the caller's is in the command line of any process inside")
def _():
    with Folder() as f:
        done = run("-p", "python", f.file("code.py", "print(open('/proc/1/cmdline').read())")).exits(0)
        lacks(done.out, f.path, "init's command line")


@test("the caller's files, the caller's home and the host's secrets are not there")
def _():
    with Folder() as f:
        f.file("secret", SECRET)
        done = sh(f"ls {f.path} /root /home /var /run /boot /mnt /media /srv 2>/dev/null; cat {f.path}/secret")
        true(done.code != 0, "the caller's file could be read")
        lacks(done.out, "secret", "stdout")


@test("the host's root is gone, not hidden: no mount leads to it")
def _():
    done = sh("cat /proc/self/mountinfo").exits(0)
    for line in done.out.splitlines():
        root, target = line.split()[3], line.split()[4]
        true(not (root == "/" and target not in ("/", "/proc", "/dev", "/dev/pts", "/dev/shm", "/box", "/tmp", "/dev/mqueue")
                  and " tmpfs " not in line and " proc " not in line and " devpts " not in line),
             f"a whole file system is mounted: {line}")  # fmt: skip


@test("every mount is nosuid; those with device nodes are read-only, all others nodev")
def _():
    for line in sh("cat /proc/self/mountinfo").exits(0).out.splitlines():
        target, flags = line.split()[4], line.split()[5].split(",")
        contains(flags, "nosuid", f"flags of {target}")
        if "nodev" not in flags:
            true(target.startswith(("/dev/", "/proc/")), f"{target} is not nodev: {flags}")
            true("ro" in flags or target == "/dev/pts", f"{target} is writable and not nodev: {flags}")


@test("nothing can be written on any read-only mount, and only the scratch is writable")
def _():
    code = """
import os
for line in open('/proc/self/mountinfo'):
    target, flags = line.split()[4], line.split()[5].split(',')
    if not os.path.isdir(target): continue
    try:
        name = target + '/attempt'
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY)); os.unlink(name)
        print('writable', target)
    except OSError:
        pass
    for change in (lambda: os.utime(target), lambda: os.chmod(target, 0o777)):
        try:
            change()
            if 'ro' in flags: print('changed', target)
        except OSError:
            pass
"""
    done = python(code).exits(0)
    lines = done.out.splitlines()
    changed = [line for line in lines if line.startswith("changed")]
    equal(changed, [], "changed mounts")
    writable = {line.split()[1] for line in lines if line.startswith("writable")}
    true(writable <= {"/box", "/tmp", "/dev/shm"}, f"writable: {writable}")


@test("a setuid file made inside gives nothing")
def _():
    done = sh("cp /usr/bin/id /box/id && chmod 6755 /box/id && /box/id -u; id -u").exits(0)
    first, second = done.out.split()
    equal(first, second, "uid")
    true(second != "0", "uid 0")


@test("a setuid program of the host gives nothing inside")
def _():
    done = sh("su root -c id 2>&1; mount 2>&1 | head -0; id -u")
    lacks(done.out, "uid=0", "stdout")


@test("an abstract socket of the host's network can't be reached")
def _():
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0cejail-test-abstract")
        server.listen()
        code = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0cejail-test-abstract'); print('reached')"
        true(python(code).code != 0, "the abstract socket answered")


@test("a TCP server on the host's loopback can't be reached")
def _():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 3); print('reached')"
        true(python(code).code != 0, "the host's loopback answered")


@test("without a network no address can be reached, and the refusal is quick")
def _():
    code = """
import socket
for a in ('169.254.169.254', '10.0.0.1', '192.168.1.1', '1.1.1.1'):
    try: socket.create_connection((a, 80), 5); print('reached', a)
    except OSError as e: print(e.errno)
"""
    done = python(code, "--network", "none").exits(0) # with a network: network_closed.py
    lacks(done.out, "reached", "stdout")


@test("socketpair, Unix sockets, and loopback TCP work inside")
def _():
    code = """
import socket
a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('fine')
u = socket.socket(socket.AF_UNIX); u.bind('/tmp/u'); u.listen()
"""
    python(code).exits(0).says("fine\n")


@test("what ordinary programs need is not refused: threads, processes, semaphores, shared memory")
def _():
    code = """
import concurrent.futures, multiprocessing, os, subprocess, tempfile, threading, mmap, time, signal
if __name__ == '__main__':
    with concurrent.futures.ThreadPoolExecutor(4) as e: assert sum(e.map(int, range(10))) == 45
    p = multiprocessing.get_context('fork').Pool(2); assert p.map(abs, [-1, 2]) == [1, 2]; p.close(); p.join()
    assert subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout == b'x\\n'
    with tempfile.TemporaryFile() as t: t.write(b'x'); t.flush(); mmap.mmap(t.fileno(), 1)
    os.mkfifo('/tmp/fifo'); os.symlink('/tmp/fifo', '/tmp/link'); os.link('/tmp/fifo', '/tmp/hard')
    os.getrandom(8); time.sleep(0.001); os.kill(os.getpid(), 0); os.sched_getaffinity(0)
    print('fine')
"""
    done = python(code, limit=60)
    done.exits(0).says("fine\n")


@test("a fifo and ordinary files can be made, a device can't")
def _():
    done = sh("mkfifo p && touch f && mkdir d && ln -s f l && ln f h && echo made; mknod n c 1 3 2>/dev/null && echo device")
    equal(done.out, "made\n", "stdout")


@test("/dev has what programs expect, and nothing else")
def _():
    done = sh("ls /dev | tr '\\n' ' '; head -c 4 /dev/zero | wc -c; head -c 8 /dev/urandom | wc -c; echo x > /dev/null")
    names = set(done.exits(0).out.split())
    for name in ("null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr"):
        true(name in names, f"/dev/{name} is missing: {sorted(names)}")
    names -= {"null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr", "tty", "pts", "ptmx", "4", "8"}
    equal(names, set(), "more in /dev")


@test("another user's files of the host can't be changed through the view of /usr", who="root")
def _():
    done = sh("for f in /usr/bin/env /usr/lib/os-release /usr/bin/su; do [ -w $f ] && echo $f; done; true")
    equal(done.exits(0).out, "", "writable files")


@test("the jail's /etc is made up: no shadow, no host name, no keys")
def _():
    done = sh("cat /etc/passwd; ls /etc; cat /etc/hostname 2>/dev/null; hostname 2>/dev/null || cat /proc/sys/kernel/hostname")
    lacks(done.out, "shadow", "/etc")
    lacks(done.out, "ssh", "/etc")
    lacks(done.out.splitlines(), os.uname().nodename, "host names")


@test("shared memory and semaphores of the host are not the jail's")
def _():
    done = sh("cat /proc/sysvipc/shm | tail -n +2; ls -A /dev/shm").exits(0)
    equal(done.out, "", "what is shared")
