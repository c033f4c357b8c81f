# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: root file systems that attack it while it mounts.  Each test is a CVE of another runtime."""

import ctypes
import multiprocessing
import os
import stat
import subprocess

from bundles import *  # noqa: F403
from harness import *  # noqa: F403

EXCHANGE = 2  # RENAME_EXCHANGE: renameat2(2)
AT_FDCWD = -100


def link(b, name, target):
    """A link in the root, in the place of an empty directory if there is one."""
    path = f"{b.rootfs}/{name}"
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    os.symlink(target, path)


def without(b, *places):
    b.config["mounts"] = [one for one in b.config["mounts"] if not one["destination"].startswith(places)]


def contents(path):
    return sorted(os.path.join(place, name) for place, dirs, files in os.walk(path) for name in dirs + files)


def exchange(one, other):
    """Exchange two entries until killed."""
    rename = ctypes.CDLL(None).renameat2
    names = one.encode(), other.encode()
    while True:
        rename(AT_FDCWD, names[0], AT_FDCWD, names[1], EXCHANGE)


class Exchange:
    def __init__(self, one, other):
        self.process = multiprocessing.Process(target=exchange, args=(one, other), daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.join()


@test("proc and sys of an image that are links are refused")
def _():
    """CVE-2019-19921, CVE-2023-27561, CVE-2023-28642."""
    for name in ("proc", "sys"):
        with Bundle("true") as b:
            b.folder("rootfs/volume")
            for target in ("volume", "/volume", "../..", "/"):
                link(b, name, target)
                refused_oci(b.run(id="once"), f"mount '/{name}'", "symbolic links")
                nothing_is_left(b, "once")
                os.unlink(f"{b.rootfs}/{name}")
            equal(contents(f"{b.rootfs}/volume"), [], "what is in the volume")


@test("a volume at proc or sys is refused")
def _():
    for name, kind in (("proc", "a procfs"), ("sys", "a sysfs")):
        with Bundle("true") as b:
            source = b.folder("volume")
            without(b, f"/{name}")
            b.config["mounts"].append(mount_of("bind", f"/{name}", source, "rbind"))
            refused_oci(b.run(), f"at '/{name}' there may only be {kind}")


@test("nothing is mounted over files that a runtime writes")
def _():
    """CVE-2019-16884: a volume at /proc, or a link into it, decided which label a process got."""
    with Bundle("true") as b:
        source = b.folder("volume")
        link(b, "data", "/proc/sys/kernel")
        link(b, "more", "/proc/self/attr")
        link(b, "sysdata", "/sys/kernel")
        for place, text in (
            ("/proc/1/attr", "is in a procfs"),
            ("/proc/self/attr", "find '/proc/self/attr'"),
            ("/proc/sys/kernel", "is in a procfs"),
            ("/data", "is in a procfs"),
            ("/more", "is in a procfs"),
            ("/sysdata", "into a sysfs"),
        ):
            config = b.sibling()
            b.config["mounts"].append(mount_of("bind", place, source, "rbind"))
            refused_oci(b.run(), f"mount '{place}'", text)
            b.config = config


@test("dev of an image that is a link gets no node")
def _():
    """CVE-2026-41579, CVE-2026-47766, CVE-2026-88264, CVE-2026-88265."""
    with Bundle("true") as b:
        b.folder("rootfs/volume")
        link(b, "dev", "volume")
        refused_oci(b.run(), "mount '/dev'", "symbolic links")
        without(b, "/dev")
        refused_oci(b.run(), "mount '/dev'", "symbolic links")
        b.config["mounts"].append(mount_of("tmpfs", "/dev/shm", "shm"))
        refused_oci(b.run(), "mount '/dev'", "symbolic links")
        equal(contents(f"{b.rootfs}/volume"), [], "what is in the volume")


@test("nodes of an image are hidden and never given away")
def _():
    with Bundle("ls -ln /dev/null; cat /victim") as b:
        b.file("rootfs/victim", "untouched\n")
        os.symlink("/victim", f"{b.rootfs}/dev/null")
        os.symlink("/victim", f"{b.rootfs}/dev/ptmx")
        before = os.stat(f"{b.rootfs}/victim")
        b.linux["devices"] = [{"path": "/dev/null", "type": "c", "major": 1, "minor": 3, "fileMode": 0o666}]
        done = b.run().exits(0)
        contains(done.out, "crw-rw-rw-", "the node")
        contains(done.out, "untouched\n", "the file")
        equal(os.stat(f"{b.rootfs}/victim").st_uid, before.st_uid, "the owner")
        equal(os.readlink(f"{b.rootfs}/dev/null"), "/victim", "the image's link")


@test("a node whose directory is a link is refused")
def _():
    with Bundle("true") as b:
        b.folder("rootfs/volume")
        link(b, "devices", "volume")
        b.linux["devices"] = [{"path": "/devices/null", "type": "c", "major": 1, "minor": 3}]
        refused_oci(b.run(), "'/devices/null'", "symbolic link")
        equal(contents(f"{b.rootfs}/volume"), [], "what is in the volume")


@test("masks come from the hosts null device whatever the image has")
def _():
    """CVE-2025-31133."""
    for kind in ("link", "file", "fifo"):
        with Bundle("ls -l /etc/secret; cat /etc/secret; cat /target") as b:
            b.file("rootfs/etc/secret", "secret")
            b.file("rootfs/target", "target\n")
            without(b, "/dev")
            if kind == "link":
                os.symlink("/target", f"{b.rootfs}/dev/null")
            elif kind == "file":
                b.file("rootfs/dev/null", "not masked")
            else:
                os.mkfifo(f"{b.rootfs}/dev/null")
            b.linux["maskedPaths"] = ["/etc/secret"]
            done = b.run().exits(0)
            true(done.out.startswith("c") and "1,   3" in done.out, f"{kind}: {done.out}")
            true(done.out.endswith("\ntarget\n"), f"{kind}: {done.out}")


@test("a masked file can not change the hosts null device", who="root")
def _():
    before = os.stat("/dev/null")
    with Bundle("chmod 600 /etc/secret; chmod 0 /proc/kcore; echo x > /etc/secret && echo written") as b:
        b.file("rootfs/etc/secret", "secret")
        b.linux["maskedPaths"].append("/etc/secret")
        done = b.run().exits(0).says("written\n")
        contains(done.err, "Read-only file system", "stderr")
    after = os.stat("/dev/null")
    equal((after.st_mode, after.st_uid), (before.st_mode, before.st_uid), "the host's /dev/null")
    true(stat.S_ISCHR(after.st_mode), "the host's /dev/null is no device")


@test("mounts follow links inside the root only")
def _():
    with Bundle("cat /in/file; ls /") as b:
        source, secret = b.folder("source"), b.folder("secret")
        b.file("source/file", "content\n")
        link(b, "in", secret)
        link(b, "up", "../../../../../../..")
        b.config["mounts"].append(mount_of("bind", "/in", source, "rbind"))
        contains(b.run().exits(0).out, "content\n", "the bind")
        b.config["mounts"][-1]["destination"] = "/up/x/y"
        contains(b.run().exits(0).out, "\nx\n", "the root")
        b.config["mounts"][-1]["destination"] = "/up"
        refused_oci(b.run(), "'/up' leads to the root itself")
        equal(contents(secret), [], "what is in the directory outside")


@test("a link that is exchanged while mounts are made leads none outside", limit=180)
def _():
    """CVE-2021-30465, CVE-2018-15664: by a container that shares the root or a volume."""
    rounds = 25
    with Bundle("cat /proc/self/mountinfo") as b:
        source, secret = b.folder("source"), b.folder("secret")
        b.folder("rootfs/data")
        os.symlink(secret, f"{b.rootfs}/evil")
        b.config["mounts"] += [
            mount_of("bind", "/data/one", source, "rbind"),
            mount_of("tmpfs", "/data/two/three", "tmpfs"),
        ]
        ended = 0
        with Exchange(f"{b.rootfs}/data", f"{b.rootfs}/evil"):
            for _round in range(rounds):
                done = b.run()
                true(done.code in (0, 1), f"{done!r}")
                ended += done.code == 0
                tried()
        true(ended > 0, "no container ran")
        equal(contents(secret), [], "what is in the directory outside")
        nothing_is_left(b, "none")


@test("a proc that is exchanged while it is masked is masked all the same", limit=180)
def _():
    """CVE-2023-28642, CVE-2025-52881."""
    script = ("for d in /proc /evil; do [ -e $d/self/stat ] && "
              "{ echo found; cat $d/version; echo 1 > $d/sys/kernel/threads-max && echo WRITTEN; }; done 2>/dev/null; true")  # fmt: skip
    with Bundle(script) as b:
        b.folder("rootfs/evil")
        b.linux["maskedPaths"] = ["/proc/version"]
        found = 0
        with Exchange(f"{b.rootfs}/proc", f"{b.rootfs}/evil"):
            for _round in range(25):
                done = b.run()
                lacks(done.out, "Linux version", "a masked file")
                lacks(done.out, "WRITTEN", "a read-only file")
                found += "found" in done.out
                tried()
        true(found > 0, "no container had a procfs")


@test("directories that another container makes at the same time are used", limit=120)
def _():
    """CVE-2024-45310."""
    with Bundle("ls /a/b/c/d") as b:
        source = b.folder("source")
        b.file("source/file", "")
        b.config["mounts"].append(mount_of("bind", "/a/b/c/d", source, "rbind"))
        b.save()
        words = [OCI, "--root", b.root, "run", "--bundle", b.path]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        running = [subprocess.Popen([*words, f"same{i}"], env=environment(), **streams) for i in range(8)]
        for process in running:
            finish(process, 60, args=words).exits(0).says("file\n")


@test("the cgroups are read-only also below a bind of the hosts sys", who="root")
def _():
    """CVE-2023-25809."""
    with Bundle("cat /proc/self/mountinfo") as b:
        without(b, "/sys")
        b.config["mounts"].append(mount_of("bind", "/sys", "/sys", "rbind", "ro"))
        b.linux["maskedPaths"] = []
        lines = [line.split() for line in b.run().exits(0).out.splitlines()]
        below = {words[4]: words[5] for words in lines if words[4].startswith("/sys")}
        true(len(below) > 1, "nothing is mounted below /sys")
        for place, options in below.items():
            true(options.startswith("ro"), f"{place} is {options}")


@test("only a privileged container has the hosts cgroups writable")
def _():
    """CVE-2023-25809, without a cgroup namespace or with the host's by path."""
    with Bundle("cat /proc/self/mountinfo") as b:
        b.config["mounts"].append(mount_of("cgroup", "/sys/fs/cgroup", "cgroup", "rw"))
        contains(b.run().exits(0).out, " /sys/fs/cgroup rw", "with a cgroup namespace")
        for path in (None, f"/proc/{os.getpid()}/ns/cgroup"):
            b.namespace("cgroup", path)
            if WHO == "user":  # the container gets a cgroup namespace
                contains(b.run().exits(0).out, " / /sys/fs/cgroup rw", "with a user namespace")
                continue
            b.save()
            done = b.oci("--log", b / "log", "run", "--bundle", b.path, b.new_id()).exits(0)
            contains(done.out, " /sys/fs/cgroup ro", "without a cgroup namespace")
            with open(b / "log", encoding="utf-8") as file:
                contains(file.read(), "'/sys/fs/cgroup' is read-only in spite of 'rw'", "the warning")
        b.config["mounts"][-1]["options"] = ["ro"]
        contains(b.run().exits(0).out, " /sys/fs/cgroup ro", "read-only")
        b.config["mounts"][-1]["options"] = ["rw"]
        for kind in ("bounding", "effective", "permitted"):
            b.process["capabilities"][kind].append("CAP_SYS_ADMIN")
        contains(b.run().exits(0).out, " /sys/fs/cgroup rw", "of a privileged container")


@test("a copied directory of an image opens no device and no fifo")
def _():
    with Bundle("true") as b:
        b.folder("rootfs/etc/conf")
        os.mkfifo(f"{b.rootfs}/etc/conf/pipe")
        b.config["mounts"].append(mount_of("tmpfs", "/etc/conf", "tmpfs", "tmpcopyup"))
        refused_oci(b.run(), "mount '/etc/conf'", "'pipe' is a device, a fifo or a socket")
        os.unlink(f"{b.rootfs}/etc/conf/pipe")
        os.symlink("/etc/shadow", f"{b.rootfs}/etc/conf/link")
        with open(f"{b.rootfs}/etc/conf/huge", "wb") as file:
            file.truncate(1 << 40)
        b.config["mounts"][-1]["options"].append("size=64k")
        refused_oci(b.run(), "mount '/etc/conf'", "No space left on device")
