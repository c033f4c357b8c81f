# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: the file tree of a container - mounts and their options, devices, masks, sysctls."""

import ctypes
import os
import stat

from bundles import *  # noqa: F403
from harness import *  # noqa: F403


def bind(source, place, *options):
    return mount_of("bind", place, source, "rbind", *options)


def options_of(text):
    """{mount point: options} of a mountinfo; the topmost of several counts."""
    found = {}
    for words in map(str.split, text.splitlines()):
        if "-" not in words:
            continue
        found[words[4]] = words[5].split(",") + words[6 : words.index("-")]
    return found


@test("mounts have the options of config json")
def _():
    with Bundle("cat /proc/self/mountinfo; cat /data/file; cat /etc/one; touch /ro/x") as b:
        source = b.folder("source")
        b.file("source/file", "content\n")
        times = ("noatime",) if WHO == "root" else ()
        b.config["mounts"] += [
            bind(source, "/data", "nosuid", "nodev"),
            bind(f"{source}/file", "/etc/one", "ro", "noexec", "nosymfollow"),
            # the time options of an inherited mount are locked in a user namespace: mount_namespaces(7)
            bind(source, "/ro", "rro", *times),
            mount_of("tmpfs", "/scratch", "tmpfs", "size=64k", "mode=700", "noexec", "nodiratime"),
            mount_of("cgroup", "/sys/fs/cgroup", "cgroup", "nosuid"),
        ]
        done = b.run().exits(1)
        contains(done.out, "content\ncontent\n", "output")
        contains(done.err, "Read-only file system", "stderr")
        seen = options_of(done.out)
        for place, wanted in (
            ("/data", {"rw", "nosuid", "nodev"}),
            ("/etc/one", {"ro", "noexec", "nosymfollow"}),
            ("/ro", {"ro", *times}),
            ("/scratch", {"rw", "noexec", "nodiratime"}),
            ("/sys/fs/cgroup", {"ro", "nosuid"}),
            ("/proc/sys", {"ro"}),
        ):
            true(wanted <= set(seen[place]), f"{place} has {seen[place]}, not {wanted}")
        for place, kinds in seen.items():
            true(not any(one.startswith(("shared:", "master:")) for one in kinds), f"{place} is no private mount: {kinds}")
        nothing_is_left(b, b.ids[-1] if b.ids else "none")


@test("devices links and modes are those of the specification")
def _():
    with Bundle("ls -ln /dev; echo x > /dev/null; head -c 3 /dev/zero | wc -c; ls -ld /dev/pts /dev/shm") as b:
        if WHO == "root":
            b.linux["devices"] = [{"path": "/dev/sub/full", "type": "c", "major": 1, "minor": 7, "fileMode": 0o600}]
        out = b.run().exits(0).out
        for name, number in (("null", "1,   3"), ("zero", "1,   5"), ("full", "1,   7"), ("random", "1,   8"), ("urandom", "1,   9"), ("tty", "5,   0")):  # fmt: skip
            true(any(line.startswith("c") and number in line and line.endswith(f" {name}") for line in out.splitlines()), f"{name}: {out}")
        for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("ptmx", "pts/ptmx")):
            contains(out, f"{name} -> {target}\n", "links")
        contains(out, "\n3\n", "bytes of /dev/zero")


@test("without a mount at /dev nothing is made in the image")
def _():
    with Bundle("ls /dev") as b:
        b.config["mounts"] = [one for one in b.config["mounts"] if not one["destination"].startswith("/dev")]
        contains(b.run().exits(0).out, "null\n", "devices")
        equal(os.listdir(f"{b.rootfs}/dev"), [], "entries of the image's /dev")


@test("masked paths are empty and a read-only root is read-only")
def _():
    script = "cat /etc/secret; ls /root; touch /new; touch /root/new; echo 1 > /proc/sys/kernel/threads-max; touch /tmp/x && echo tmp"
    with Bundle(script) as b:
        b.file("rootfs/etc/secret", "secret")
        b.file("rootfs/root/file", "")
        b.config["root"]["readonly"] = True
        b.config["mounts"].append(mount_of("tmpfs", "/tmp", "tmpfs"))
        b.linux["maskedPaths"] += ["/etc/secret", "/root", "/none", "/proc/none"]
        done = b.run().exits(0).says("tmp\n")
        equal(done.err.count("Read-only file system"), 3, f"refusals in {done.err!r}")


@test("tmpcopyup begins with the files of the image")
def _():
    with Bundle("cat /etc/conf/file; ls -ld /etc/conf; echo new > /etc/conf/file; readlink /etc/conf/link") as b:
        b.folder("rootfs/etc/conf")
        b.file("rootfs/etc/conf/file", "image\n")
        os.symlink("file", f"{b.rootfs}/etc/conf/link")
        os.chmod(f"{b.rootfs}/etc/conf", 0o750)
        b.config["mounts"].append(mount_of("tmpfs", "/etc/conf", "tmpfs", "tmpcopyup", "size=1m"))
        done = b.run().exits(0)
        contains(done.out, "image\ndrwxr-x---", "output")
        contains(done.out, "\nfile\n", "the link")
        with open(f"{b.rootfs}/etc/conf/file", encoding="ascii") as file:
            equal(file.read(), "image\n", "the image's file")


@test("a tmpfs has the mode that its options say and else that of the directory below it")
def _():
    with Bundle("stat -c '%a %u:%g %n' /one /two /three /new /made; cat /three/file; touch /two/x /ro/x") as b:
        for name, mode in (("one", 0o2750), ("two", 0o700), ("three", 0o711), ("ro", 0o700)):
            os.chmod(b.folder(f"rootfs/{name}"), mode)
        b.file("rootfs/three/file", "of the image\n")
        ids = (5, 6) if WHO == "root" else (0, 0)
        os.chown(f"{b.rootfs}/three", *(ids if WHO == "root" else (-1, -1)))
        b.config["mounts"] += [
            mount_of("tmpfs", "/one", "tmpfs"),
            mount_of("tmpfs", "/two", "tmpfs", "mode=1770", "tmpcopyup"),
            mount_of("tmpfs", "/three", "tmpfs", "tmpcopyup", "gid=0", "size=1m"),
            mount_of("tmpfs", "/ro", "tmpfs", "ro"),
            mount_of("tmpfs", "/new", "tmpfs"),
            mount_of("tmpfs", "/made", "tmpfs", "tmpcopyup"),
        ]
        done = b.run().exits(1)
        wanted = f"2750 0:0 /one\n1770 0:0 /two\n711 {ids[0]}:0 /three\n1777 0:0 /new\n1777 0:0 /made\nof the image\n"
        equal(done.out, wanted, "modes and owners")
        contains(done.err, "/ro/x: Read-only file system", "writing")
        equal(done.err.count("Read-only"), 1, "refusals")


@test("a read-only dev has its devices and the mounts below it")
def _():
    with Bundle("ls -l /dev/null; echo x > /dev/null; cat /dev/shm/given/file; touch /dev/shm/x; touch /dev/new; rm /dev/fd") as b:
        b.file("source/file", "below\n")
        b.config["mounts"][1]["options"].append("ro")
        b.config["mounts"].append(bind(b / "source", "/dev/shm/given", "ro"))
        done = b.run().exits(1)
        contains(done.out, "crw-rw-rw-", "the device")
        contains(done.out, "below\n", "the mount below")
        for line in ("touch: /dev/new: Read-only", "rm: can't remove '/dev/fd': Read-only"):
            contains(done.err, line, "writing")
        equal(done.err.count("Read-only"), 2, f"refusals in {done.err!r}")


@test("options of a file system in a bind are warnings")
def _():
    with Bundle("cat /x/file; touch /x/new") as b:
        b.file("source/file", "content\n")
        b.config["mounts"].append(bind(b / "source", "/x", "size=1m", "ro"))
        b.save()
        done = b.oci("--log", b / "log", "run", "--bundle", b.path, b.new_id())
        contains(done.exits(1).says("content\n").err, "Read-only", "writing")
        with open(b / "log", encoding="utf-8") as file:
            contains(file.read(), "mount '/x': option 'size' is no option of a bind mount", "the log")


@test("the paths of an overlay may be longer than 255 bytes")
def _():
    with Bundle("cat /x/one /x/two /x/three; echo new > /x/one && cat /x/one") as b:
        deep = "/".join(["d" * 60] * 4) + "/with:colon"
        for number, name in enumerate(("one", "two", "three")):
            b.file(f"{number}{deep}/{name}", f"{name}\n")
        b.file(f"1{deep}/one", "hidden\n")
        layers = [f"{b.path}/{number}{deep}".replace(":", "\\:") for number in range(3)]
        b.config["mounts"].append(mount_of("overlay", "/x", "overlay", "lowerdir=" + ":".join(layers)))
        done = b.run().exits(1)
        equal(done.out, "one\ntwo\nthree\n", "the files")
        contains(done.err, "Read-only", "writing")
        upper, work = b.folder(f"upper{deep}"), b.folder(f"work{deep}")
        b.config["mounts"][-1]["options"] += [f"upperdir={upper}", f"workdir={work}"]
        contains(b.run().exits(0).out, "new\n", "output")
        with open(f"{upper}/one", encoding="ascii") as file:
            equal(file.read(), "new\n", "the file of the upper layer")


@test("relative layers of each overlay begin in the same directory")
def _():
    with Bundle("cat /x/one /y/one /z/one") as b:
        deep = "/".join(["d" * 60] * 5)
        for number in range(2):
            b.file(f"{number}{deep}/one", "deep\n")
        b.file("short/one", "short\n"), b.folder("empty")
        for place, layers in (("/x", [f"{n}{deep}" for n in range(2)]), ("/y", [f"{n}{deep}" for n in range(2)]), ("/z", ["short", "empty"])):
            b.config["mounts"].append(mount_of("overlay", place, "overlay", "lowerdir=" + ":".join(layers)))
        b.run().exits(0).says("deep\ndeep\nshort\n")


@test("links of an image lead mounts inside it and missing targets are made")
def _():
    with Bundle("cat /run/secrets/token; cat /etc/resolv.conf; readlink /etc/resolv.conf") as b:
        source = b.folder("source")
        b.file("source/token", "token\n")
        b.folder("rootfs/var"), b.folder("rootfs/run")
        os.symlink("/run", f"{b.rootfs}/var/run")
        os.symlink("../run/resolve/stub.conf", f"{b.rootfs}/etc/resolv.conf")
        b.config["mounts"] += [bind(source, "/var/run/secrets"), bind(f"{source}/token", "/etc/resolv.conf")]
        b.run().exits(0).says("token\ntoken\n../run/resolve/stub.conf\n")


@test("sysctls are written in the containers namespaces and the hosts are refused")
def _():
    with Bundle("cat /proc/sys/kernel/msgmax /proc/sys/net/ipv4/ip_forward") as b:
        if WHO != "user":  # older kernels let the host's root alone write those of an ipc namespace
            b.linux["sysctl"] = {"kernel.msgmax": "9001", "net.ipv4.ip_forward": "1"}
            b.run().exits(0).says("9001\n1\n")
        else:
            b.linux["sysctl"] = {"net.ipv4.ip_forward": "1"}
            contains(b.run().exits(0).out, "\n1\n", "output")
        for name in ("kernel.core_pattern", "net/../kernel/core_pattern", "vm.swappiness"):
            b.linux["sysctl"] = {name: "x"}
            refused_oci(b.run(), f"sysctl '{name}' belongs to no namespace")
        b.config.update(hostname="one", domainname="two")
        for name, field in (("kernel.hostname", "hostname"), ("kernel/domainname", "domainname")):
            b.linux["sysctl"] = {name: "three"}
            refused_oci(b.run(), f"sysctl '{name}' is 'three', but {field} is")
            b.linux["sysctl"] = {name: b.config[field]}
            if WHO == "root":  # of the host: no other may write it
                b.run().exits(0)
        b.linux["sysctl"] = {"net.ipv4.ip_forward": "1"}
        b.namespace("network")
        if WHO != "user":
            refused_oci(b.run(), "sysctl 'net.ipv4.ip_forward' needs a network namespace")
        if WHO == "root":
            b.namespace("network", "/proc/self/ns/net")
            refused_oci(b.run(), "sysctl 'net.ipv4.ip_forward': the container is in the host's net namespace")


@test("mounts that can not be made are errors that name them")
def _():
    with Bundle("true") as b:
        for mount, words in (
            (bind("/nowhere/at/all", "/data"), ("mount '/data'", "/nowhere/at/all", "No such file")),
            (mount_of("tmpfs", "/x", "tmpfs", "ro", "rw"), ("mount '/x'", "option 'rw' contradicts")),
            (mount_of("tmpfs", "/x", "tmpfs", "nonsense=1"), ("mount '/x'", "nonsense")),
            (bind(b.path, "/x", "ro", "nosuidd"), ("mount '/x'", "unknown option 'nosuidd'", "did you mean 'nosuid'?")),
            (bind(b.path, "/x", "no-such-option"), ("mount '/x'", "unknown option 'no-such-option'")),
            (mount_of("nofs", "/x", "x"), ("mount '/x'", "'nofs'")),
            (mount_of("tmpfs", "/x", "tmpfs", "size=" + "1" * 300), ("mount '/x'", "option 'size' is longer than 255 bytes")),
            (mount_of("overlay", "/x", "overlay", "lowerdir=/nowhere/" + "x" * 250), ("mount '/x'", "option 'lowerdir'", "No such file")),
            (bind(b.path, "/", "ro"), ("nothing can be mounted on the root itself",)),
        ):
            config = b.sibling()
            b.config["mounts"] = b.config["mounts"] + [mount]
            refused_oci(b.run(id="once"), *words)
            nothing_is_left(b, "once")
            b.config = config


@test("a bind with an id map shows other owners", who="root")
def _():
    with Bundle("ls -ln /data; touch /data/new") as b:
        source = b.folder("source")
        b.file("source/file", "")
        mount = bind("source", "/data", "idmap")  # of the bundle
        mount["uidMappings"] = [{"containerID": 0, "hostID": 5000, "size": 1}]
        mount["gidMappings"] = [{"containerID": 0, "hostID": 6000, "size": 1}]
        b.config["mounts"].append(mount)
        done = b.run()
        contains(done.out, " 5000     6000 ", "owners")
        b.config["mounts"][-1] = bind(source, "/data", "idmap")
        refused_oci(b.run(), "mount '/data'", "needs uidMappings and gidMappings")


@test("a shared bind shares its mounts with the host and no other does", who="root")
def _():
    libc = ctypes.CDLL(None, use_errno=True)
    shared, bind_flag, detach = 1 << 20, 1 << 12, 2
    with Bundle("mount -t tmpfs none /data/below && touch /data/below/inside && sleep 6000") as b:
        source = b.folder("source")
        b.folder("source/below")
        for set_name in ("bounding", "effective", "permitted"):
            b.process["capabilities"][set_name].append("CAP_SYS_ADMIN")
        true(libc.mount(source.encode(), source.encode(), None, bind_flag, None) == 0, "the bind of the test failed")
        try:
            true(libc.mount(None, source.encode(), None, shared, None) == 0, "a shared mount is refused")
            for option, is_seen in (("rprivate", False), ("rslave", False), ("rshared", True)):
                b.config["mounts"] = b.config["mounts"][:6] + [bind(source, "/data", option)]
                b.linux["rootfsPropagation"] = option
                before = options_of(open("/proc/self/mountinfo", encoding="utf-8").read())
                id = b.started()
                root = f"/proc/{b.state(id)['pid']}/root"
                wait_until(lambda: os.path.exists(f"{root}/data/below/inside"), "the mount inside")  # noqa: B023
                equal(os.path.exists(f"{source}/below/inside"), is_seen, f"{option}: the mount is seen on the host")
                b.delete(id, "--force").exits(0)
                libc.umount2(f"{source}/below".encode(), detach)
                after = options_of(open("/proc/self/mountinfo", encoding="utf-8").read())
                equal(after, before, f"{option}: mounts of the host")
        finally:
            libc.umount2(source.encode(), detach)


@test("file modes of nodes that already exist stay", who="root")
def _():
    with Bundle("ls -ln /dev/null") as b:
        dev = b.folder("hostdev")
        os.mknod(f"{dev}/null", stat.S_IFCHR | 0o640, os.makedev(1, 3))
        os.chown(f"{dev}/null", 7, 8)
        b.config["mounts"] = [one for one in b.config["mounts"] if not one["destination"].startswith("/dev")]
        b.config["mounts"].append(bind(dev, "/dev"))
        b.linux["devices"] = [{"path": "/dev/null", "type": "c", "major": 1, "minor": 3, "uid": 0, "gid": 0}]
        out = b.run().exits(0).out
        contains(out, "crw-r-----    1 7        8 ", "the node")
        equal(os.listdir(dev), ["null"], "entries of the host's directory")
        b.linux["devices"][0]["minor"] = 5
        refused_oci(b.run(), "'/dev/null' exists and is not the device 1:5")


@test("in a chroot that is no mount point create fails with the remedy also with no-pivot", who="root")
def _():
    with Bundle("echo inside") as b:
        # in a mount namespace of its own: all of the host's root below another directory
        copy = ('for d in /*; do if [ -L "$d" ]; then cp -P "$d" "$0$d"; elif [ -d "$d" ]; then '
                'mkdir -p "$0$d" && mount --rbind "$d" "$0$d"; fi; done; exec chroot "$0" "$@"')  # fmt: skip
        b.save()
        through = ("unshare", "-m", "sh", "-c", copy, b.folder("plain"))
        done = b.oci("run", "--bundle", b.path, "--no-pivot", "once", through=through)
        refused_oci(done, "'/' must be a mount point")
        nothing_is_left(b, "once")
        through = ("unshare", "-m", "sh", "-c", f'mount --bind "$0" "$0" && {copy}', b.folder("mounted"))
        b.oci("run", "--bundle", b.path, "--no-pivot", b.new_id(), through=through).exits(0).says("inside\n")
