# SPDX-License-Identifier: Apache-2.0
"""--overlay: a directory of the host, copy on write."""

import hashlib
import json
import os
import socket

from harness import *  # noqa: F403


def state(top):
    """All that a stat or a reader can see of a tree, but for access times."""
    seen = []
    for folder, folders, files in os.walk(top):
        for name in [".", *folders, *files]:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            content = b"" if not os.path.isfile(path) else open(path, "rb").read()
            link = os.readlink(path) if os.path.islink(path) else ""
            names = [(key, os.getxattr(path, key)) for key in os.listxattr(path, follow_symlinks=False)] if not link else []
            row = (info.st_ino, info.st_mode, info.st_uid, info.st_gid, info.st_nlink, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
            seen.append((path, row, hashlib.sha256(content).hexdigest(), link, sorted(names)))
    return sorted(seen)


def need_overlay(f):
    reason = no_overlay(f.path)
    if reason:
        raise Skip(f"no ID-mapped mounts of {f.path} here: {reason}")


def tree(f):
    """A small source tree."""
    need_overlay(f)
    f.file("src/main.c", "int main;\n", 0o644)
    f.file("src/sub/run.sh", "#!/bin/sh\necho ran\n", 0o755)
    f.file("src/private", "for the owner\n", 0o600)
    os.symlink("main.c", f / "src/link")
    os.utime(f / "src/main.c", ns=(10**18, 10**18 + 123456789))
    os.utime(f / "src", ns=(10**18, 10**18 + 987654321))
    return f / "src"


@test("--overlay shows a directory with its modes and times, at the place named or at its own")
def _():
    with Folder() as f:
        src = tree(f)
        script = "stat -c '%n %a %Y' . main.c sub/run.sh private; sub/run.sh; cat link private"
        wanted = ". 755 1000000000\nmain.c 644 1000000000\n"
        done = sh(script, "--overlay", f"{src}:/src", "-w", "/src").exits(0)
        contains(done.out, wanted, "stdout")
        contains(done.out, "ran\nint main;\nfor the owner\n", "stdout")
        contains(sh(script, "--overlay", src, "-w", src).exits(0).out, wanted, "stdout")
        contains(sh(script, "--overlay", f"{src}:/box/in/src", "-w", "/box/in/src").exits(0).out, wanted, "stdout")


CHANGES = """set -e
echo more >> main.c; chmod 600 sub/run.sh; touch -d @5 private; rm link; ln -s private link
ln main.c hard; echo x >> hard; mkdir -p a/b; echo made > a/b/c; rm sub/run.sh; mv a/b sub/b
truncate -s 3 private; cat main.c private sub/b/c; ls . sub; rm -rf a sub/b
"""
# tmpfs has had attributes of users since then, by which overlayfs notes what a directory no longer shows
HAS_OPAQUE = tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 6)


@test("changes in an overlay are visible in the jail and never reach the host")
def _():
    with Folder() as f:
        src = tree(f)
        before = state(src)
        done = sh(CHANGES, "--overlay", f"{src}:/src", "-w", "/src").exits(0)
        equal(done.out, "int main;\nmore\nx\nformade\n.:\na\nhard\nlink\nmain.c\nprivate\nsub\n\nsub:\nb\n", "stdout")
        equal(state(src), before, "the host's tree")
        sh("ls", "--overlay", f"{src}:/src", "-w", "/src").exits(0).says("link\nmain.c\nprivate\nsub\n")


@test("a directory of an overlay can be removed and made again, before Linux 6.6 that is an input/output error")
def _():
    with Folder() as f:
        src = tree(f)
        before = state(src)
        done = sh("mv sub moved && rm -rf moved/run.sh && mkdir sub && echo new > sub/new && ls . sub", "--overlay", f"{src}:/src", "-w", "/src")
        if HAS_OPAQUE:
            done.exits(0).says(".:\nlink\nmain.c\nmoved\nprivate\nsub\n\nsub:\nnew\n")
        else:
            contains(done.err, "Input/output error", "stderr")
        equal(state(src), before, "the host's tree")


@test("an overlay works with --writable, with --rootfs, and beside another one")
def _():
    with Folder() as f:
        src = tree(f)
        before = state(src)
        script = "echo a > /src/new && echo b >> /two/main.c && cat /src/new /two/main.c"
        both = ("--overlay", f"{src}:/src", "--overlay", f"{src}:/two")
        sh(script, *both).exits(0).says("a\nint main;\nb\n")
        sh(script, *both, "--writable").exits(0).says("a\nint main;\nb\n")
        for folder in ("usr", "etc"):
            f.folder(f"root/{folder}")
        for folder in ("bin", "lib", "lib64"):
            os.symlink(f"usr/{folder}", f / f"root/{folder}")
        root = ("--rootfs", f / "root", "--ro-bind", "/usr")
        sh(script, *both, *root).exits(0).says("a\nint main;\nb\n")
        sh(script, *both, *root, "--writable").exits(0).says("a\nint main;\nb\n")
        equal(state(src), before, "the host's tree")


@test("the changes in an overlay count in --disk: a copy of a large file, too")
def _():
    with Folder() as f:
        need_overlay(f)
        f.file("src/small", "x")
        with open(f / "src/large", "wb") as large:
            large.write(b"y" * (8 << 20))
        before = state(f / "src")
        place = ("--overlay", f"{f / 'src'}:/src", "-w", "/src", "--disk", "4M")
        done = sh("wc -c < large; echo z >> large || echo no room; head -c 8000000 /dev/zero > new || echo none", *place)
        contains(done.out, f"{8 << 20}\nno room\nnone\n", "stdout")
        equal(result("--overlay", f"{f / 'src'}:/src", "--disk", "4M", "-p", "base", "--", "sh", "-c", "head -c 8000000 /dev/zero > /src/new")["limits"]["disk"]["by"], "tmpfs", "by")
        equal(state(f / "src"), before, "the host's tree")


@test("an overlay is nosuid and nodev, and noexec with --noexec")
def _():
    with Folder() as f:
        src = tree(f)
        script = "grep ' /src ' /proc/self/mountinfo; /src/sub/run.sh"
        done = sh(script, "--overlay", f"{src}:/src").exits(0)
        for flag in ("nosuid", "nodev"):
            contains(done.out, flag, "mount flags")
        contains(done.out, "ran\n", "stdout")
        done = sh(script, "--overlay", f"{src}:/src", "--noexec")
        contains(done.out, "noexec", "mount flags")
        lacks(done.out, "ran\n", "stdout")


@test("a file of --file may go into an overlay")
def _():
    with Folder() as f:
        src = tree(f)
        done = sh("cat sub/extra", "--overlay", f"{src}:/src", "-w", "/src", "-f", f.file("e", "added") + ":/src/sub/extra")
        done.exits(0).says("added")
        true(not os.path.exists(f / "src/sub/extra"), "the host has the file")


@test("an overlay of a file, a link or a missing directory is refused with the remedy")
def _():
    with Folder() as f:
        need_overlay(f)
        refused(sh("true", "--overlay", f.file("plain")), "plain", "not a directory", "--file")
        refused(sh("true", "--overlay", "/no/such/directory"), "/no/such/directory")
        refused(sh("true", "-q", "--overlay", "/:/all"), "--overlay '/'", "mounted below")
        os.makedirs(f / "src")
        refused(sh("true", "--overlay", f"{f / 'src'}:/box"), "/box")
        many = [part for i in range(17) for part in ("--overlay", f"{f / 'src'}:/o{i}")]
        refused(sh("true", *many), "--overlay", "16")
        sh("touch /o15/x", *many[:-2]).exits(0)


@test("an overlay over another user's directory is refused with the remedy", who="user")
def _():
    refused(sh("true", "--overlay", "/usr/share:/doc"), "/usr/share", "owner", "--file")


@test("root's overlay belongs to the jail's user, whatever the owner of the directory; other owners' files stay theirs", who="root")
def _():
    with Folder() as f:
        src = tree(f)
        for path in (src, f / "src/main.c"):
            os.chown(path, 4321, 4322)
        before = state(src)
        done = sh("stat -c %u . main.c private; echo x >> main.c && echo y > new && cat private 2>&1; echo z >> private", "--overlay", f"{src}:/src", "-w", "/src")
        equal(done.out, "1000\n1000\n65534\ncat: private: Permission denied\n", "stdout")
        equal(state(src), before, "the host's tree")


@test("root's overlay of a file system without ID-mapped mounts is refused with the remedy", who="root")
def _():
    refused(sh("true", "--overlay", "/proc/sys/vm:/x"), "--overlay '/proc/sys/vm'", "ID-mapped", "--file")


# Each writes to a file of the lower layer in another way; it prints what worked inside.
ROADS = """
import ctypes, errno, fcntl, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    if getattr(libc, name)(*args) < 0: raise OSError(ctypes.get_errno(), name)
def map_shared():
    with open("f0", "r+b") as f, mmap.mmap(f.fileno(), 0) as m: m[0:3] = b"new"; m.flush()
def map_of_an_old_descriptor():
    old = os.open("f1", os.O_RDONLY); libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, old, ctypes.c_long(0))
    new = os.open(f"/proc/self/fd/{old}", os.O_RDWR); os.pwrite(new, b"new", 0)
    call("mprotect", ctypes.c_void_p(at), ctypes.c_size_t(4096), 3); ctypes.memmove(at, b"new", 3)
def linked_and_written():
    os.link("f2", "linked"); open("linked", "ab").write(b"new")
def linked_from_elsewhere():
    os.link("f3", "/box/linked")
def nameless_and_linked():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(fd, b"new")
    call("linkat", -100, f"/proc/self/fd/{fd}".encode(), -100, b"nameless", 0x400); os.replace("nameless", "f4")
def exchanged():
    call("renameat2", -100, b"f5", -100, b"f6", 2)
def whited_out():
    call("renameat2", -100, b"f7", -100, b"f8", 4)
def attributes():
    os.setxattr("f9", "user.new", b"x"); os.setxattr("dir", "user.new", b"x")
def attributes_of_overlayfs():
    os.setxattr("dir", "user.overlay.redirect", b"/"); os.setxattr("dir", "user.overlay.opaque", b"y")
def times_modes_owners():
    os.utime("f10", (1, 1)); os.chmod("f10", 0o7777); os.chown("f10", os.getuid(), os.getgid()); os.chmod("dir", 0o711)
def allocated():
    with open("f11", "r+b") as f: call("fallocate", f.fileno(), 3, ctypes.c_long(0), ctypes.c_long(4))
def cloned():
    with open("f12", "rb") as a, open("f13", "wb") as b: fcntl.ioctl(b.fileno(), 0x40049409, a.fileno())
def copied_in_the_kernel():
    with open("f0", "rb") as a, open("f14", "r+b") as b: os.copy_file_range(a.fileno(), b.fileno(), 3)
def spliced():
    r, w = os.pipe(); os.write(w, b"new")
    with open("f15", "r+b") as f: os.splice(r, f.fileno(), 3)
def flags_of_the_file_system():
    with open("f16", "rb") as f: fcntl.ioctl(f.fileno(), 0x40086602, struct.pack("L", 0x10 | 0x20))
def removed():
    os.unlink("f17"); os.rmdir("dir/sub"); os.rmdir("dir"); os.symlink("x", "dir")
def device():
    os.mknod("null", 0o020666, os.makedev(1, 3))
def by_handle():
    fd = os.open(".", os.O_RDONLY); handle = ctypes.create_string_buffer(struct.pack("Ii", 8, 1) + bytes(128)); call("open_by_handle_at", fd, handle, 2)
def truncated():
    os.truncate("f18", 0); os.truncate("f18", 1 << 16)
def locked():
    with open("f19", "rb") as f: fcntl.flock(f, fcntl.LOCK_EX); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
for name, road in list(globals().items()):
    if callable(road) and getattr(road, "__module__", None) == "__main__" and name != "call":
        try: road()
        except (OSError, AttributeError) as error: print("refused", name, error)
        else: print("done", name)
"""


@test("no way to write to a file of an overlay reaches the host's")
def _():
    with Folder() as f:
        src = tree(f)
        for i in range(20):
            f.file(f"src/f{i}", b"old" * 2000)
        os.makedirs(f / "src/dir/sub")
        before = state(src)
        done = run("-p", "python", "--network", "none", "--overlay", f"{src}:/src", "-w", "/src", "-", given=ROADS).exits(0)
        seen = dict(reversed(line.split()[:2]) for line in done.out.splitlines())
        tried(len(seen))
        equal(state(src), before, f"the host's tree after {seen}")
        # they are real attempts: these succeed inside
        for name in ("map_shared", "linked_and_written", "times_modes_owners", "spliced", "truncated"):
            equal(seen.get(name), "done", f"{name} ({done.out})")
        for name in ("map_of_an_old_descriptor", "linked_from_elsewhere", "device", "by_handle"):
            equal(seen.get(name), "refused", f"{name} ({done.out})")


@test("a listening socket and a fifo of the host below an overlay lead to nobody outside")
def _():
    with Folder() as f, socket.socket(socket.AF_UNIX) as server:
        src = tree(f)
        server.bind(f"{src}/socket")
        os.chmod(f"{src}/socket", 0o777)
        server.listen()
        os.mkfifo(f"{src}/fifo")
        reader = os.open(f"{src}/fifo", os.O_RDONLY | os.O_NONBLOCK)
        code = """
import os, socket
def tell(what):
    try: what()
    except OSError as error: print(error.strerror)
    else: print('reached')
tell(lambda: socket.socket(socket.AF_UNIX).connect('/src/socket'))
tell(lambda: os.open('/src/fifo', os.O_WRONLY | os.O_NONBLOCK))
"""
        done = python(code, "--overlay", f"{src}:/src").exits(0)
        os.close(reader)
        equal(done.out, "Connection refused\nNo such device or address\n", "stdout")


@test("many processes that copy files up at once end at --disk, and the run goes on")
def _():
    with Folder() as f:
        src = tree(f)
        for i in range(64):
            f.file(f"src/big{i}", b"x" * 200000)
        before = state(src)
        script = "for i in $(seq 0 63); do (echo y >> big$i) 2>/dev/null & done; wait; rm -f big*; echo z > after; cat after"
        done = sh(script, "--overlay", f"{src}:/src", "-w", "/src", "--disk", "4M", "--pids-limit", "128").exits(0)
        equal(done.out, "z\n", "stdout")
        equal(state(src), before, "the host's tree")


@test("overlayfs attributes in the host's directory are ignored")
def _():
    with Folder() as f:
        src = tree(f)
        f.file("src/redirected/inner", "inner\n")
        f.file("src/copied", "copied\n")
        try:
            for name, value in (("redirect", b"/sub"), ("opaque", b"y"), ("whiteout", b""), ("origin", b"\0" * 30)):
                os.setxattr(f / "src/redirected", f"user.overlay.{name}", value)
                os.setxattr(f / "src/main.c", f"user.overlay.{name}", b"/private")
            os.setxattr(f / "src/copied", "user.overlay.metacopy", b"")
            os.setxattr(f / "src/copied", "user.overlay.redirect", b"/private")
        except OSError as error:
            raise Skip(f"no user attributes here: {error}") from None
        before = state(src)
        script = "ls redirected; cat main.c; echo x >> redirected/inner; echo x >> main.c; mv redirected r2 && cat r2/inner main.c"
        done = sh(script + "; cat copied", "--overlay", f"{src}:/src", "-w", "/src")
        # the kernel refuses to open a file that claims to have its data elsewhere, or shows its own
        true(done.out in [f"inner\nint main;\ninner\nx\nint main;\nx\n{end}" for end in ("", "copied\n")], f"stdout is {done.out!r}")
        equal(state(src), before, "the host's tree")


@test("--dry-run lists an overlay, and a profile can have one")
def _():
    with Folder() as f:
        src = tree(f)
        done = sh("true", "--overlay", f"{src}:/src", "--dry-run").exits(0)
        equal(json.loads(done.out)["root"]["binds"], [{"kind": "overlay", "source": src, "target": "/src"}], "binds")
        profile = f.file("p.json", json.dumps({"extends": "base", "overlay": [f"{src}:/src"]}))
        run("-p", profile, "--", "sh", "-c", "echo x > /src/y && cat /src/main.c").exits(0).says("int main;\n")


@test("--artifact-path copies a file of an overlay and of /box out, under its whole path")
def _():
    with Folder() as f:
        src, out = tree(f), f.folder("out")
        script = "echo built > /src/sub/prog; mkdir -p /box/b/c; echo log > /box/b/c/log; echo plain > /box/out/plain"
        paths = ("--artifact-path", "/src/sub/prog", "--artifact-path", "b", "--artifact-path", "/src/main.c")
        value = result("--overlay", f"{src}:/src", "-o", out, *paths, "-p", "base", "--", "sh", "-c", script)
        equal([item["path"] for item in value["artifacts"]], ["box/b/c/log", "plain", "src/main.c", "src/sub/prog"], "artifacts")
        for path, text in (("src/sub/prog", "built\n"), ("box/b/c/log", "log\n"), ("src/main.c", "int main;\n")):
            with open(f"{out}/{path}", encoding="ascii") as file:
                equal(file.read(), text, path)
        true(not os.path.exists(f"{src}/sub/prog"), "the host's tree has the file")


@test("a path of --artifact-path is copied as carefully as /box/out, under a name of its own")
def _():
    with Folder() as f:
        src, out = tree(f), f.folder("out")
        script = """cd /src; ln -s /etc/passwd l; ln -s / d; ln main.c hard; mkfifo fifo; chmod 0 private
            mkdir -p /box/out/src; echo forged > /box/out/src/main.c; echo forged > /box/out/src/none"""
        names = ("l", "d/etc/passwd", "hard", "fifo", "none", "link")
        paths = [part for name in names for part in ("--artifact-path", f"/src/{name}")]
        value = result("--overlay", f"{src}:/src", "-o", out, *paths, "-p", "base", "--", "sh", "-c", script)
        equal((value["artifacts"], os.listdir(out)), ([], []), "artifacts")
        for name in names:
            contains(" ".join(value["warnings"]), f"'/src/{name}' is not copied: ", "warnings")
        contains(" ".join(value["warnings"]), "'src' in /box/out is not copied: its name is the first part", "warnings")
        refused(sh("true", "-o", out, "--artifact-path", "/etc/passwd"), "/etc/passwd", "--overlay")
