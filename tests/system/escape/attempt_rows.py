# SPDX-License-Identifier: Apache-2.0
"""Each row of our list of threats, 2.1 to 2.3 and what proves it: attempts (attempts.py), or "SUBJECT: SENTENCE", a test that
stands elsewhere ("unit TEST: NAME": in C).  A text says why there is no test."""

SET_UP = {
    "fd leak into the run": (
        "descriptors", "streams", "climb_by_descriptor", "init_fds",
        "attempts: descriptors are sound, and no more than three, whichever of his own the caller had closed",
        "isolation: no descriptor of the caller is open in the jail, even if the caller left many open",
        "results: the descriptor of --result-fd is not open in the jail",
    ),
    "working directory outside root": (
        "climb", "init_cwd", "init_root",
        "attempts: no --workdir leads out of the root, by a descriptor or by a link of /proc",
        "isolation: the host's root is unmounted: no mount of the jail leads to it", "unit test_rootfs: the_old_root_is_detached",
    ),
    "/proc/self/exe overwrite": (
        "init_exe",
        "attempts: the first program can't be cejail's own, by /proc/self/exe, a script that names it or a link of an image's",
        "attempts: an ELF file whose interpreter is /proc/self/exe is refused as the first program, also through a link or a script",
    ),
    "attach to the set-up process": (
        "attach_init", "seize_init", "read_init", "write_init", "init_mem", "init_environ", "init_maps", "getfd_init",
        "prlimit_init", "kcmp", "move_pages", "madvise_init", "pagemap",
        "isolation: signals to pid 1 don't end the jail",
        "isolation: no secret of the caller's is in the environment of any process inside",
        "isolation: no host path of the caller's is in the command line of any process inside",
    ),
    "mount and symlink races": (
        "attempts: a link that is swapped for a directory of the image, again and again, while jails are made leads no mount astray",
        "bad_input: a root in which /proc, /dev, /box and /tmp are links gets no mount outside of it",
        "inputs: a bind source that is a symbolic link elsewhere is refused, and the real path is named",
        "unit test_layers: links_and_files_of_an_image_redirect_no_mount",
        "unit test_layers: a_fake_dev_null_of_an_image_is_not_used_as_a_mask",
        "unit test_mounts: a_fake_dev_null_or_proc_is_refused",
        "unit test_mounts: no_link_is_followed_to_a_mount_point",
    ),
    "partial set-up goes on": (
        "unit test_jail: every_failing_stage_names_itself_and_leaves_nothing",
        "unit test_faults: every_failing_call_fails_a_host_root_and_leaves_nothing",
    ),
    "no_new_privs, caps": (
        "capset", "ambient", "securebits", "new_privs", "setuid", "setgid", "setuid_other", "raised",
        "more_files", "core", "realtime", "nice", "oom_score", "uid_map", "chown",
        "isolation: no capability is in any set", "isolation: host uid 0 is never mapped",
        "isolation: two jails of root have different host ids",
    ),
    "supplementary groups kept": (
        "setgroups", "isolation: the program is not root, and in no group but its own",
    ),
    "seccomp missing on one thread or late": (
        "unfiltered", "isolation: no new privileges, and a filter is loaded",
        "unit test_filter: a_filter_that_does_not_hold_is_an_error",
    ),
}  # fmt: skip

KERNEL = {
    "/proc/sys, sysrq, core_pattern, modprobe, uevent_helper, binfmt_misc": (
        "core_pattern", "modprobe_path", "proc_hostname", "userns_count", "ip_forward", "sysrq", "binfmt", "uevent_helper",
        "any_proc", "sysfs", "mount_sysfs", "mount_proc", "umount_proc",
    ),
    "pid_max": ("pid_max",),
    "cgroup v1 release_agent, namespace": (
        "cgroupfs", "release_agent", "mount_cgroup", "mount_cgroup1",
        "isolation: every namespace is the jail's own",
        "limits: the jail's limit can't be raised or seen from inside: there is no cgroup file system",
    ),
    "user namespaces inside": (
        "unshare_user", "unshare_mount", "unshare_net", "unshare_high_bits", "clone_user", "clone_mount", "clone3", "setns",
        "setns_own", "ns_owner", "ns_parent", "ns_next", "pidfd_ns", "setns_pidfd",
        "attempts: the jail allows no user namespaces of its own",
    ),
    "mount API": (
        "mount", "bind", "remount", "umount", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen",
        "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount", "freeze",
    ),
    "keyrings": (
        "keyctl", "join_keyring", "add_key", "request_key",
        "canaries: without a jail the hunter finds every canary, and each one tells that it was touched",
    ),
    "TIOCSTI, TIOCLINUX": (
        "tiocsti", "tiocsti_high_bits", "tioclinux", "tioccons", "vhangup", "controlling_tty", "terminal_behind",
        "lifecycle: on the jail's own terminal TIOCSTI and TIOCLINUX are refused, too",
        "basics: the jail has no controlling terminal and no terminal at all",
    ),
    "ptrace, process_vm, pidfd_getfd, /proc/PID/mem": (
        "attach_init", "read_init", "getfd_init", "init_mem",
        "isolation: only the jail's own processes are in /proc",
        "isolation: a program that kills every process it can reach kills only processes of its jail",
    ),
    "PTRACE_TRACEME against the supervisor": (
        "traceme", "lifecycle: a first process that calls PTRACE_TRACEME does not block the run",
    ),
    "io_uring": ("io_uring", "io_uring_enter", "io_uring_register", "io_setup"),
    "bpf, perf_event_open, userfaultfd": (
        "bpf", "perf", "userfaultfd", "listener", "fanotify", "memfd_secret", "syncfs", "mbind", "lookup_dcookie", "modify_ldt",
        "iopl", "ioperm", "module", "finit_module", "delete_module", "kexec", "kexec_file", "reboot", "swapon", "swapoff",
        "acct", "quotactl", "sethostname", "setdomainname",
        "unit test_filter_default: every_call_of_the_headers_is_decided_in_the_shipped_file",
    ),
    "AF_VSOCK": ("vsock", "dev_vsock"),
    "AF_ALG, RXRPC, KEY, XFRM, PACKET, XDP, TIPC, SCTP, DCCP, ...": (
        "alg", "rxrpc", "key", "packet", "xdp", "tipc", "sctp", "dccp", "can", "bluetooth", "rds", "smc", "pppox", "qrtr",
        "mptcp", "udplite", "raw", "raw6", "ping", "any_family", "family_high_bits", "any_inet", "bridge", "vlan",
        "vmsplice", "tee",
        "results: a denied socket family is named with the family",
    ),
    "AF_NETLINK": (
        "netfilter", "xfrm", "uevent", "audit", "sock_diag", "generic", "connector", "any_netlink", "protocol_high_bits",
    ),
    "abstract unix sockets": ("isolation: an abstract socket of the host's network can't be reached",),
    "path sockets": (
        "inputs: --connect unix: lets exactly one socket of the host in",
        "canaries: without a jail the hunter finds every canary, and each one tells that it was touched",
    ),
    "SysV IPC, POSIX mq, /dev/shm": (
        "mount_mqueue", "isolation: shared memory and semaphores of the host are not the jail's",
        "canaries: without a jail the hunter finds every canary, and each one tells that it was touched",
    ),
    "time": ("settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "timens"),
    "kallsyms, kcore, kmsg, dmesg, timer_list, slabinfo, vmallocinfo, iomem": (
        "kallsyms", "kcore", "kmsg", "dev_kmsg", "syslog", "timer_list", "slabinfo", "vmallocinfo", "iomem", "ioports",
        "modules", "keys", "key_users", "cmdline", "config_gz", "diskstats", "partitions", "sched_debug", "kpagecount",
        "unit test_rootfs: proc_shows_the_jails_processes_and_masks_the_machine",
    ),
    "hidepid, other uids' processes": (
        "isolation: only the jail's own processes are in /proc",
        "basics: two runs at once don't see each other's /box, /tmp, /dev/shm or processes",
    ),
    "core dumps": ("core", "isolation: core files are off by a limit of exactly 1, and its pipe helper with it"),
    "32-bit and x32 entry": ("i386", "x32", "unit test_filter: foreign_entries_kill"),
    "personality": ("personality", "no_aslr", "linux32"),
    "side channels": "accepted: SECURITY.md, what is not promised; the files that tell most are masked",
}  # fmt: skip

FILES = {
    "setuid, setgid, file caps in rootfs": (
        "file_capability", "chmod_usr",
        "attempts: files of an image that are setuid, have capabilities or are devices give nothing",
        "isolation: every mount is nosuid; those with device nodes are read-only, all others nodev",
        "isolation: a setuid file made in the jail gives no privileges", "isolation: a setuid program of the host gives no privileges in the jail",
    ),
    "devices in rootfs, mknod": (
        "image_device", "mknod_char", "mknod_block", "write_dev", "replace_null", "dev_mem", "dev_kvm", "dev_fuse", "dev_tun",
        "dev_disk", "attempts: files of an image that are setuid, have capabilities or are devices give nothing",
        "isolation: /dev has what programs expect, and nothing else",
    ),
    "xattrs": (
        "trusted_xattr", "attempts: marks of an overlay's that the program sets on a writable root mean nothing",
    ),
    "hard links": ("hard_link",),
    "overlayfs CVEs": ("mount_overlay", "unshare_user"),
    "memfd exec": "accepted: SECURITY.md says that --noexec is best-effort: an interpreter needs no execution either",
    "tmpfs bytes and inodes": (
        "limits: --disk limits all writable places together", "limits: files without contents are limited, too",
        "limits: nothing outside the scratch can be filled",
        "unit test_rootfs: box_tmp_and_shm_share_one_limit_of_inodes",
    ),
    "canary reads": (
        "shadow", "home", "var", "write_root", "write_usr", "write_etc", "any_etc", "reopen", "open_by_handle",
        "name_to_handle",
        "canaries: without a jail the hunter finds every canary, and each one tells that it was touched",
        "isolation: the caller's files, the caller's home and the host's secrets are not there",
        "inputs: a bound directory is nosuid, nodev and does not follow links out of it",
    ),
    "host paths in mountinfo": "accepted: SECURITY.md names /proc/self/mountinfo among the facts about the machine",
    "code file TOCTOU": (
        "inputs: the code's hash is over exactly the bytes that ran",
        "inputs: changing the code file during the run does not change the code that runs",
        "bad_input: a code file that isn't there, is a directory, a device or a fifo is refused, and nothing blocks",
    ),
    "artefact copy-out": (
        "inputs: an artefact that is a symbolic link is not followed, and named in a warning",
        "inputs: hard links, fifos and sockets are not artefacts, and don't block",
        "inputs: odd names don't leave the folder or break the line",
        "inputs: an existing link in the caller's folder is replaced, not followed",
        "unit test_artifacts: a_huge_sparse_file_is_skipped_and_the_rest_is_copied",
        "unit test_artifacts: only_regular_files_with_one_link_are_copied",
        "unit test_artifacts: a_link_in_place_of_box_out_is_not_followed",
    ),
    "deep trees, huge names": ("unit test_artifacts: a_tree_of_3000_levels_is_copied_to_the_maximum_depth", "unit test_inputs: a_deep_tree_is_refused"),
}  # fmt: skip

ROWS = {**SET_UP, **KERNEL, **FILES}
