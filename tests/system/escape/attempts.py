# SPDX-License-Identifier: Apache-2.0
"""What a program inside may try (our list of threats, 2.1 to 2.3), each attempt as a sentence that the jail says no.

The attempts are C programs (attempt_*.c, attempt.h).  Each is made twice: in the jail, where it must be
HELD, and without one, in namespaces of its own where it can hurt nobody (outside.h), where it must have
ESCAPED, or the table says why it can't.
"""

import json
import os
import shutil
import subprocess

from attempt_rows import ROWS
from harness import *  # noqa: F403
from outside import NO_PLACE, has_place
from pointers import check_rows

ALLOW_ALL = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}

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
        "ns_owner": "no namespace file gives a descriptor of the user namespace that owns it (NS_GET_USERNS)",
        "ns_parent": "no namespace file gives a descriptor of its parent (NS_GET_PARENT)",
        "ns_next": "no mount namespace file gives a descriptor of the next one of the host (NS_MNT_GET_NEXT)",
        "pidfd_ns": "a pidfd of init gives no descriptor of its namespaces (PIDFD_GET_NET_NAMESPACE and the like)",
        "setns_pidfd": "init's network namespace can't be joined by a pidfd",
        "clone_mount": "there is no mount namespace inside, by clone",
        "open_tree_attr": "open_tree_attr is refused",
        "fsconfig": "fsconfig is refused",
        "fsmount": "fsmount is refused",
        "listmount": "mounts can't be listed with listmount",
        "statmount": "mounts can't be looked at with statmount",
        "mount_cgroup": "a cgroup2 can't be mounted",
        "mount_cgroup1": "no hierarchy of cgroup v1 can be mounted",
        "mount_sysfs": "a sysfs can't be mounted",
        "mount_mqueue": "an mqueue can't be mounted",
        "mount_overlay": "an overlay can't be mounted",
        "freeze": "no file system can be frozen",
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
        "write_init": "init's memory can't be written with process_vm_writev",
        "madvise_init": "init's memory can't be advised on",
        "unfiltered": "every process and thread in sight has the filter, no new privileges and no capability",
        "timens": "the clocks' offsets can't be written",
        "raised": "the program's file gave it no id and no capability",
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
        "clock_adjtime": "clock_adjtime is refused",
        "linux32": "a personality of 32 bits is refused",
        "io_uring_enter": "io_uring_enter is refused",
        "io_uring_register": "io_uring_register is refused",
        "io_setup": "io_setup is refused",
        "tee": "tee is refused",
        "kexec_file": "kexec_file_load is refused",
        "swapon": "swapon is refused",
        "modify_ldt": "modify_ldt is refused",
        "name_to_handle": "a file's handle can't be had",
        "mbind": "memory policies can't be set",
        "memfd_secret": "memfd_secret is refused",
        "syncfs": "the host can't be made to write all of a file system, by syncfs",
        "listener": "a filter with a listener of the program's own is refused",
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
        "protocol_high_bits": "high bits in a socket's protocol open nothing",
        "dccp": "no DCCP socket",
        "udplite": "no UDP-Lite socket",
        "raw6": "no raw IPv6 socket",
        "audit": "no NETLINK_AUDIT socket",
        "sock_diag": "no NETLINK_SOCK_DIAG socket",
        "generic": "no NETLINK_GENERIC socket",
        "connector": "no NETLINK_CONNECTOR socket",
        "rds": "no AF_RDS socket",
        "smc": "no AF_SMC socket",
        "pppox": "no AF_PPPOX socket",
        "qrtr": "no AF_QIPCRTR socket",
        "any_family": "of 256 socket families, only local, IPv4, IPv6 and netlink ones can be had",
        "any_netlink": "of 256 netlink protocols, only routes can be asked about",
        "any_inet": "of all types and protocols of IPv4 and IPv6, only TCP, UDP and echo reach the kernel",
        "bridge": "no ioctl makes the kernel load the module bridge",
        "vlan": "no ioctl makes the kernel load the module 8021q",
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
        "binfmt": "no binary format can be registered",
        "uevent_helper": "/sys/kernel/uevent_helper can't be written",
        "release_agent": "no release_agent of a cgroup v1 can be written",
        "key_users": "/proc/key-users says nothing",
        "slabinfo": "/proc/slabinfo says nothing",
        "vmallocinfo": "/proc/vmallocinfo says nothing",
        "iomem": "/proc/iomem says nothing",
        "ioports": "/proc/ioports says nothing",
        "diskstats": "/proc/diskstats says nothing",
        "partitions": "/proc/partitions says nothing",
        "config_gz": "/proc/config.gz says nothing",
        "sched_debug": "/proc/sched_debug says nothing",
        "pagemap": "init's page map can't be read",
        "kpagecount": "/proc/kpagecount says nothing",
        "any_proc": "no file of /proc can be opened for writing, but a process's own",
        "any_etc": "no directory of /etc takes a file",
        "hard_link": "a file of /usr can't be linked elsewhere",
        "trusted_xattr": "no trusted.overlay mark can be set on a file",
        "file_capability": "a file can't be given a capability",
        "reopen": "a descriptor for reading can't be opened again for writing",
        "chmod_usr": "a file of /usr can't be made setuid",
        "tioccons": "TIOCCONS is refused",
        "image_device": "there is no device at the root",
    },
    "attempt_handover": {
        "descriptors": "no descriptor but the standard streams is open",
        "streams": "no standard stream is a directory, or one of the kernel's own objects",
        "climb": "from the working directory, dot-dot ends at the jail's root",
        "climb_by_descriptor": "no descriptor leads to a directory",
        "terminal_behind": "no standard stream is a terminal",
    },
}

# What must be closed even with a filter that allows everything: the second lock.
WITHOUT_FILTER = {
    "attempt_mounts": (
        "mount", "bind", "remount", "umount_proc", "pivot_root", "move_mount", "mount_setattr", "open_by_handle",
        "unshare_user", "unshare_mount", "unshare_net", "clone_user", "clone_mount", "setns", "open_tree_attr", "fsmount",
        "ns_owner", "ns_parent", "ns_next", "pidfd_ns", "setns_pidfd",
        "mount_cgroup", "mount_cgroup1", "mount_sysfs", "mount_mqueue", "mount_overlay", "freeze",
    ),
    "attempt_processes": (
        "attach_init", "seize_init", "read_init", "init_mem", "init_environ", "init_root", "init_exe", "init_fds",
        "getfd_init", "setuid", "setgid", "setuid_other", "setgroups", "capset", "ambient", "securebits", "new_privs",
        "more_files", "core", "realtime", "nice", "oom_score", "uid_map", "chown", "write_init", "madvise_init", "timens",
    ),
    "attempt_kernel": (
        "bpf", "syslog", "module", "finit_module", "kexec", "reboot", "swapoff", "acct", "sethostname", "iopl",
        "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "swapon", "kexec_file", "i386", "x32",
    ),
    "attempt_sockets": ("packet", "key", "raw", "raw6"),
    "attempt_files": (
        "core_pattern", "userns_count", "sysrq", "kcore", "mknod_char", "mknod_block", "write_root", "write_usr",
        "write_etc", "write_dev", "replace_null", "cgroupfs", "any_proc", "any_etc", "hard_link", "trusted_xattr",
        "file_capability", "reopen", "chmod_usr",
    ),
}  # fmt: skip

# What is open on purpose elsewhere: attempt -> options, a name for them, what to attempt.
OTHERWISE = {"ping": (("--network", "none"), "no network", ("ping",))}

# --- without a jail -----------------------------------------------------------

USER = "only the host's root may"
BUILD = "this kernel or host has no such thing"
NOBODY = "no kernel allows it, to nobody"
RESOURCE = "a root without CAP_SYS_RESOURCE may not"
CHANGE = "it would change the host: tried only with the powers of a user namespace"
MODULE = "asking would load a module into the host's kernel"
EMPTY = "there is nothing to see on this host"

ABSENT_CALLS = ("ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "signal 11")
ABSENT_FILES = ("ENOENT", "ENXIO", "ENODEV")
REFUSED = ("EPERM", "EACCES", "EROFS", "EINVAL")  # EINVAL: an id that the namespace doesn't map

# Why an attempt is HELD outside, too: attempt -> (the reason, the answers it explains).  Beside these
# a kernel may lack any call, and a host any file that is asked for by name.
ONLY_ROOT = (
    "open_by_handle", "setuid_other", "setgroups", "realtime", "nice", "chown", "madvise_init",
    "bpf", "perf", "userfaultfd", "io_uring", "syslog", "fanotify", "module", "finit_module", "delete_module", "kexec",
    "kexec_file", "swapoff", "swapon", "acct", "quotactl", "iopl", "ioperm", "settimeofday", "adjtimex",
    "clock_adjtime", "vhangup", "lookup_dcookie", "core_pattern", "modprobe_path", "proc_hostname", "pid_max", "sysrq",
    "kcore", "kmsg", "timer_list", "dev_mem", "dev_kmsg", "dev_kvm", "dev_fuse", "dev_tun", "dev_vsock", "dev_disk",
    "mknod_char", "mknod_block", "binfmt", "uevent_helper", "release_agent", "slabinfo", "vmallocinfo", "sched_debug",
    "pagemap", "kpagecount", "trusted_xattr",
)  # fmt: skip
OUTSIDE = {
    "ns_next": ("only processes of the first pid namespace may", "EPERM EINVAL ENOTTY"),
    "ns_parent": (BUILD, "ENOTTY"),
    "pidfd_ns": (BUILD, "ENOTTY"),
    "unshare_high_bits": (NOBODY, "EINVAL"),
    "new_privs": (NOBODY, "EINVAL"),
    "uid_map": (NOBODY, "EPERM"),
    "more_files": (RESOURCE, "EPERM"),
    "oom_score": (RESOURCE, "EACCES"),
    "clock_settime": (CHANGE, "EPERM"),
    "tioccons": (CHANGE, "EPERM"),
    "mount_cgroup1": (CHANGE, "EPERM EBUSY EINVAL ENODEV"),
    "tioclinux": (BUILD, "ENOTTY"),
    "modules": (EMPTY, "ENODATA"),
    "keys": (EMPTY, "ENODATA"),
}
# A family or protocol that a module may hold: its alias in modules.alias, or the module's own name.
MODULES = {
    "alg": "net-pf-38", "vsock": "net-pf-40", "packet": "net-pf-17", "key": "net-pf-15", "rxrpc": "net-pf-33",
    "xdp": "net-pf-44", "tipc": "net-pf-30", "can": "net-pf-29", "bluetooth": "net-pf-31", "rds": "net-pf-21",
    "smc": "net-pf-43", "pppox": "net-pf-24", "qrtr": "net-pf-42", "netfilter": "net-pf-16-proto-12",
    "xfrm": "net-pf-16-proto-6", "audit": "net-pf-16-proto-9", "sock_diag": "net-pf-16-proto-4",
    "generic": "net-pf-16-proto-16", "connector": "net-pf-16-proto-11", "sctp": "net-pf-2-proto-132",
    "dccp": "net-pf-2-proto-33-type-6", "udplite": "net-pf-2-proto-136", "mptcp": "net-pf-2-proto-262",
    "bridge": "bridge", "vlan": "8021q", "mount_overlay": "fs-overlay", "binfmt": "fs-binfmt_misc", "mount_mqueue": "fs-mqueue",
}  # fmt: skip

outside_cache = {}


def text_of(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def is_loaded(module):
    return any(line.split()[0] == module for line in text_of("/proc/modules").splitlines())


def would_load(attempt):
    """The test machine's kernel may take in what it likes, a host's not."""
    aliases = text_of(f"/lib/modules/{os.uname().release}/modules.alias").splitlines()
    wanted = MODULES.get(attempt)
    holders = [line.split()[2] for line in aliases if wanted and line.split()[1:2] == [wanted]]
    if wanted and f"/{wanted}.ko" in text_of(f"/lib/modules/{os.uname().release}/modules.dep"):
        holders.append(wanted)
    return EXPECTED != "cgroup" and any(not is_loaded(holder) for holder in holders)


def asked_outside(name, where, attempts):
    done = subprocess.run(
        [f"{PROBES}/{name}", "--outside", where, *attempts],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=90 * SLOW, check=True,
    )  # fmt: skip
    return dict(line.split(" ", 1) for line in done.stdout.decode().splitlines())


def answers_outside(name):
    """attempt -> "ESCAPED", or what the strongest place said that could be had here."""
    if name not in outside_cache:
        names = [attempt for attempt in ATTEMPTS[name] if not would_load(attempt)]
        seen = asked_outside(name, "own", names)
        held = [attempt for attempt in names if seen.get(attempt) != "ESCAPED"]
        if WHO == "root" and held:
            bare = asked_outside(name, "bare", held)
            seen.update({attempt: answer for attempt, answer in bare.items() if not answer.startswith("UNTRIED (it would")})
        outside_cache[name] = seen
    return outside_cache[name]


def lacks_resource():
    status = dict(line.split(":\t", 1) for line in text_of("/proc/self/status").splitlines() if ":\t" in line)
    return WHO != "root" or not int(status["CapEff"], 16) >> 24 & 1


def reason_for(attempt, answer):
    """Why this answer outside proves nothing against the attempt; None if nothing explains it."""
    word = answer.removeprefix("HELD (").removesuffix(")")
    reason, explained = OUTSIDE.get(attempt, ("", ""))
    if word in explained.split() and (reason != RESOURCE or lacks_resource()):
        return reason
    if word in ABSENT_CALLS or (word in ABSENT_FILES and attempt in ATTEMPTS["attempt_files"]):
        return BUILD
    return USER if WHO != "root" and attempt in ONLY_ROOT and word in REFUSED else None


def check_outside(name, attempt):
    if would_load(attempt) or not has_place():
        return  # MODULE, NO_PLACE: said once, below
    answer = answers_outside(name).get(attempt, "nothing")
    true(answer == "ESCAPED" or reason_for(attempt, answer),
         f"without a jail {attempt} is {answer}, and no reason is known: a probe that can't fail proves nothing")  # fmt: skip


# --- in the jail ----------------------------------------------------------------

answers_cache = {}


def answers(name, options=(), key="default", names=()):
    """attempt -> "HELD (WHY)" or "ESCAPED", of one run of a probe."""
    if (name, key) not in answers_cache:
        done = probe(name, *names, options=("-t", scaled(50), "-e", f"CEJAIL_TEST_SLOW={SLOW}", *options), limit=60).exits(0)
        answers_cache[name, key] = dict(line.split(" ", 1) for line in done.out.splitlines())
    return answers_cache[name, key]


def is_held(answer):
    return answer is not None and answer.startswith("HELD (")


def register_attempts():
    for name, rows in ATTEMPTS.items():
        for attempt, sentence in rows.items():

            def check(name=name, attempt=attempt):
                answer = answers(name, *OTHERWISE.get(attempt, ())).get(attempt)
                true(is_held(answer), f"{attempt}: {answer}")
                check_outside(name, attempt)

            test(sentence, limit=120)(check)


register_attempts()


@test("the table of attempts and the probes name the same attempts")
def _():
    for name, rows in ATTEMPTS.items():
        equal(sorted(answers(name)), sorted(rows), name)


@test("every row of the threats' set-up, kernel and files has its proof, and every attempt its row")
def _():
    here = {row: proofs if isinstance(proofs, str) else tuple(p for p in proofs if not p.startswith("unit "))
            or "in C: tests/documents/test_claims.sh looks for it" for row, proofs in ROWS.items()}  # fmt: skip
    check_rows(here, [attempt for rows in ATTEMPTS.values() for attempt in rows])
    tried(len(ROWS))


@test("most attempts work without a jail: it is the jail that holds them")
def _():
    if not has_place():
        raise Skip(NO_PLACE)
    seen = {attempt: answer for name in ATTEMPTS for attempt, answer in answers_outside(name).items()}
    escaped = [attempt for attempt, answer in seen.items() if answer == "ESCAPED"]
    tried(len(seen))
    true(2 * len(escaped) > len(seen), f"of {len(seen)} only {escaped}")


@test("without the filter, what namespaces, mounts and capabilities close stays closed")
def _():
    with Folder() as f:
        policy = f.file("allow.json", json.dumps(ALLOW_ALL))
        for name, wanted in WITHOUT_FILTER.items():
            seen = answers(name, ("--seccomp", policy), "unfiltered", wanted)
            still_open = [attempt for attempt in wanted if not is_held(seen.get(attempt))]
            equal(still_open, [], f"open in {name}")


@test("the jail allows no user namespaces of its own")
def _():
    with Folder() as f:
        policy = f.file("allow.json", json.dumps(ALLOW_ALL))
        names = ("unshare_user", "clone_user")
        seen = answers("attempt_mounts", ("--seccomp", policy), "user namespaces", names)
        equal([seen[name] for name in names], ["HELD (ENOSPC)"] * 2, "without the filter")


# --- cejail's own program -------------------------------------------------------

OURSELVES = "#!/proc/self/exe\nprint('reached')\n"


@test("the first program can't be cejail's own, by /proc/self/exe, a script that names it or a link of an image's")
def _():
    with Folder() as f:
        script = f.file("script", OURSELVES, 0o755)
        control = subprocess.run([PYTHON, "-c", f"import os; os.execv('{script}', ['x'])"], capture_output=True, timeout=30 * SLOW)
        equal(control.stdout, b"reached\n", "what Python's own /proc/self/exe says without a jail")

        run("-p", "base", "--", "/proc/self/exe", "version").exits(126).says("")
        run("-p", "base", "-f", f"{script}:/box/s", "--", "/box/s", "version").exits(126).says("")
        chain = f.file("chain", "#!/box/s\n", 0o755)
        run("-p", "base", "-f", f"{script}:/box/s", "-f", f"{chain}:/box/c", "--", "/box/c", "version").exits(126).says("")
        os.makedirs(f / "root/bin")
        os.symlink("/proc/self/exe", f / "root/bin/sh")
        run("-p", "base", "--rootfs", f / "root", "--", "sh", "version").exits(126).says("")


def with_interpreter(program, name):
    """The same program, with another name in its PT_INTERP."""
    with open(program, "rb") as file:
        text = file.read()
    start = text.index(b"/lib64/ld-linux" if b"/lib64/ld-linux" in text else b"/lib/ld-linux")
    end = text.index(b"\0", start)
    return text[:start] + name.ljust(end - start, b"\0") + text[end:]


@test("an ELF file whose interpreter is /proc/self/exe is refused as the first program, also through a link or a script")
def _():
    with Folder() as f:
        program = f.file("program", with_interpreter("/bin/true", b"/proc/self/exe"), 0o755)
        control = subprocess.run([PYTHON, "-c", f"import os; os.execv('{program}', ['x'])"], check=False, timeout=30 * SLOW)
        true(control.returncode != 126, "the kernel executes it")

        def refused(*files):
            options = [word for file in files for word in ("-f", f"{file}:/box/{os.path.basename(file)}")]
            done = run("-p", "base", *options, "--", f"/box/{os.path.basename(files[0])}", "version").exits(126).says("")
            contains(done.err, "Permission denied", "stderr")
            tried()

        refused(program)
        os.makedirs(f / "root/bin")
        os.symlink("/proc/self/exe", f / "root/l")
        shutil.copy(f.file("direct", with_interpreter("/bin/true", b"/l"), 0o755), f / "root/bin/direct")
        run("-p", "base", "--rootfs", f / "root", "--", "/bin/direct", "version").exits(126).says("")
        refused(f.file("script", "#!/box/program\n", 0o755), program)


# --- what the caller and the image bring ------------------------------------------


@test("descriptors are sound, and no more than three, whichever of his own the caller had closed")
def _():
    words = f"{CEJAIL} run -q -p base -f {PROBES}/attempt_handover:/box/a -- /box/a descriptors streams terminal_behind"
    for closed in ("0<&-", "2>&-", "0<&- 2>&-", "0<&- 3<&- 4<&- 5<&-", "0</"):
        done = subprocess.run(
            ["/bin/sh", "-c", f"exec {words} {closed}"], env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=30 * SLOW,
        )  # fmt: skip
        seen = dict(line.split(" ", 1) for line in done.stdout.decode().splitlines())
        equal({name: is_held(answer) for name, answer in seen.items()},
              {"descriptors": True, "streams": True, "terminal_behind": True}, f"held with {closed} ({done.stderr!r})")  # fmt: skip
        tried()


@test("no --workdir leads out of the root, by a descriptor or by a link of /proc")
def _():
    places = [f"/proc/self/fd/{n}" for n in range(16)]
    places += ["/proc/self/cwd", "/proc/self/root", "/proc/1/cwd", "/proc/1/root", "/proc/1/fd/3", "/proc/self/exe"]
    for place in places:
        done = probe("attempt_handover", "climb", options=("-q", "--network", "none", "--workdir", place))
        true(done.code == 125 and done.out == "" or done.out.startswith("climb HELD"), f"{place}: {done!r}")
        tried()


# As root, in a mount namespace of its own: an image on a file system where its marks count.
MARKED = r"""
import os, shutil, struct, subprocess, sys
where, cejail, probe = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,suid,dev", "none", where], check=True)
libraries = [word for word in subprocess.check_output(["ldd", probe], text=True).split() if word.startswith("/")]
for library in libraries:
    os.makedirs(where + os.path.dirname(library), exist_ok=True)
    shutil.copy(library, where + library)
for name in ("setuid", "able"):
    shutil.copy(probe, f"{where}/{name}")
os.chmod(where + "/setuid", 0o6755)
os.setxattr(where + "/able", "security.capability", struct.pack("<5I", 0x02000001, 1, 0, 0, 0))  # cap_chown
os.mknod(where + "/zero", 0o20666, os.makedev(1, 5))
os.chmod(where + "/zero", 0o666)

def say(where, words, **more):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    print(where, done.stdout.strip() or done.stderr.strip())

for name in ("setuid", "able"):
    say("outside", [f"{where}/{name}", "raised"], user=65534, group=65534, extra_groups=[])
    say("inside", [cejail, "run", "-q", "-p", "base", "--rootfs", where, "--", "/" + name, "raised"])
reading = "import os; os.open('%s/zero', os.O_RDONLY); print('zero ESCAPED')"
say("outside", ["/usr/bin/python3", "-c", reading % where], user=65534, group=65534, extra_groups=[])
shutil.copy(sys.argv[3].replace("processes", "files"), where + "/files")
say("inside", [cejail, "run", "-q", "-p", "base", "--rootfs", where, "--", "/files", "image_device"])
"""


@test("files of an image that are setuid, have capabilities or are devices give nothing", who="root")
def _():
    with Folder() as f:
        done = subprocess.run(
            ["unshare", "-m", PYTHON, "-c", MARKED, f.path, CEJAIL, f"{PROBES}/attempt_processes"],
            env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * SLOW,
        )  # fmt: skip
        equal(done.stdout.splitlines(), [
            "outside raised ESCAPED", "inside raised HELD (EPERM)", "outside raised ESCAPED", "inside raised HELD (EPERM)",
            "outside zero ESCAPED", "inside image_device HELD (EACCES)"], f"what they gave ({done.stderr})")  # fmt: skip


# Puts a link in the place of a directory and back, as fast as it can, until its input ends.
SWAP = """
import ctypes, os, select, sys
libc, count = ctypes.CDLL(None), 0
os.write(1, b"!")
while not select.select([0], [], [], 0)[0]:
    libc.syscall(316, -100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)
    count += 1
print(count)
"""


@test("a link that is swapped for a directory of the image, again and again, while jails are made leads no mount astray")
def _():
    box = need_root_tree()
    with Folder() as f:
        victim, root = f.folder("victim"), f.folder("root")
        for name in ("bin", "tmp", "box", "dev", "proc", "etc"):
            os.mkdir(f"{root}/{name}")
        f.file("root/bin/busybox", open(box, "rb").read(), 0o755)
        names = ("tmp", "box", "dev", "proc", "etc")
        for name in names:
            os.symlink(victim, f / f"{name}-link")
        swappers = [
            subprocess.Popen([PYTHON, "-c", SWAP, f"{root}/{name}", f / f"{name}-link"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for name in names
        ]
        script = "for d in /tmp /box /etc /dev /proc; do echo x > $d/attempt; done 2>/dev/null; true"
        words = ("-q", "-p", "base", "--network", "none", "--rootfs", root, "--", "/bin/busybox", "sh", "-c", script)
        for swapper in swappers:
            equal(os.read(swapper.stdout.fileno(), 1), b"!", "the sign that it begins")
        codes = [run(*words).code for _ in range(100 if LONG else share(12, 4))]
        swaps = [int(swapper.communicate(b"x")[0]) for swapper in swappers]
        tried(len(codes))
        true(min(swaps) > len(codes), f"too few swaps to meet a jail's making: {swaps}")
        true(set(codes) <= {0, 125}, f"exit statuses {codes}")
        equal(os.listdir(victim), [], "what came to lie where the link leads")
        for name in names:
            place = f / f"{name}-link" if os.path.islink(f"{root}/{name}") else f"{root}/{name}"
            equal(os.listdir(place), [], f"what came to lie in the image's {name}")


MARKS = """
import os
os.mkdir('/etc/mark')
for name, value in (('redirect', b'/usr'), ('opaque', b'y'), ('metacopy', b''), ('origin', b'x')):
    for prefix in ('user', 'trusted'):
        for path in ('/etc/mark', '/etc/passwd', '/'):
            try: os.setxattr(path, f'{prefix}.overlay.{name}', value)
            except OSError: pass
print(os.listdir('/etc/mark'), len(os.listdir('/')) > 5, 'jail' in open('/etc/passwd').read())
"""


@test("marks of an overlay's that the program sets on a writable root mean nothing")
def _():
    python(MARKS, "--writable").exits(0).says("[] True True\n")
