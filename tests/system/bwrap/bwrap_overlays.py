# SPDX-License-Identifier: Apache-2.0
"""Overlays of `cejail bwrap`, as bubblewrap 0.11 documents them: Debian 12's bubblewrap has none to compare with."""

import os
import re
import subprocess

from harness import SLOW, Folder, contains, environment, equal, test, tried, true
from bwrap_attacks import snapshot
from bwrap_lines import OURS, PROC, USR

HOSTILE = ("a:b", "c,upperdir=x", "d\\", "e\\:f", "g h", "new\nline", "::", "12", "-", "%2f", '"q"', "\u00e9\\,lowerdir=/etc")


class Layers(Folder):
    """A folder that can be the upper layer, with two sources: file `both` is in both of them."""

    def __init__(self):
        kind = subprocess.run(["stat", "-f", "-c", "%T", "/tmp"], capture_output=True, text=True, check=True).stdout
        super().__init__("/dev/shm" if kind.startswith("overlay") else None)

    def __enter__(self):
        super().__enter__()
        self.file("one/both", "one"), self.file("one/first", "1"), self.file("one/dir/a", "a")
        self.file("two/both", "two"), self.file("two/second", "2"), self.file("two/dir/b", "b")
        self.folder("rw"), self.folder("work")
        return self

    def sources(self):
        return ["--overlay-src", self / "one", "--overlay-src", self / "two"]

    def kinds(self):
        return ["--tmp-overlay"], ["--overlay", self / "rw", self / "work"], ["--ro-overlay"]


def sh(*options, script="true", more=()):
    return subprocess.run([OURS, *USR, *PROC, *options, "/bin/sh", "-c", script, *more], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env=environment(), timeout=30 * SLOW, check=False)  # fmt: skip


def says(done, out, what):
    equal((done.stdout, done.stderr, done.returncode), (out, "", 0), what)


def fails(done, *parts):
    equal((done.stdout, done.returncode), ("", 1), "the output and status")
    for part in parts:
        contains(done.stderr, part, "the message")


@test("cejail bwrap overlays show the last source on top, and RWSRC above all")
def _():
    look = "cat /m/both /m/first /m/second; ls /m /m/dir | tr '\\n' ' '"
    with Layers() as f:
        for kind in f.kinds():
            says(sh(*f.sources(), *kind, "/m", script=look), "two12/m: both dir first second  /m/dir: a b ", f"layers of {kind[0]}")
            turned = ["--overlay-src", f / "two", "--overlay-src", f / "one"]
            says(sh(*turned, *kind, "/m", script="cat /m/both"), "one", f"the other order of {kind[0]}")
            tried()
        f.file("rw/both", "rw")
        says(sh(*f.sources(), "--overlay", f / "rw", f / "work", "/m", script=look), "rw12/m: both dir first second  /m/dir: a b ", "RWSRC")
        says(sh("--overlay-src", f / "one", "--tmp-overlay", "m/deep", script="cat /m/deep/both"), "one", "one source")

KERNEL = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])


@test("cejail bwrap --overlay writes to RWSRC and nowhere else, and --tmp-overlay nowhere on the host")
def _():
    change = "echo new > /m/new; echo more >> /m/both; rm /m/first; rm -r /m/dir{0}; mkdir /m/dir{0}; mv /m/second /m/third; ls /m /m/dir | tr '\\n' ' '; cat /m/both".format(" 2>/dev/null" if KERNEL < (6, 6) else "")  # cejail-bwrap(1), --tmp-overlay
    shown = "/m: both dir new third  /m/dir: twomore\n"
    with Layers() as f:
        before = snapshot(f / "one"), snapshot(f / "two")
        for _ in range(2):  # the second starts as the first did
            says(sh(*f.sources(), "--tmp-overlay", "/m", script=change), shown, "the changes")
        two = [*f.sources(), "--tmp-overlay", "/m", *f.sources(), "--tmp-overlay", "/n"]
        says(sh(*two, script=change + "; cat /n/both; ls /n | tr '\\n' ' '; ls /"), shown + "twoboth dir first second bin\ndev\nlib\nlib64\nm\nn\nproc\nusr\n", "a second overlay")
        equal(os.listdir(f / "rw"), [], "RWSRC")
        says(sh(*f.sources(), "--overlay", f / "rw", f / "work", "/m", script=change), shown, "the changes")
        says(sh(*f.sources(), "--overlay", f / "rw", f / "work", "/m", script="ls /m; cat /m/new"), "both\ndir\nnew\nthird\nnew\n", "the next sandbox")
        equal((open(f / "rw/new").read(), open(f / "rw/both").read()), ("new\n", "twomore\n"), "RWSRC")
        equal((snapshot(f / "one"), snapshot(f / "two")), before, "the sources")


@test("cejail bwrap --ro-overlay refuses every write")
def _():
    with Layers() as f:
        before = snapshot(f.path)
        for write in ("echo x > /m/both", "echo x > /m/new", "mkdir /m/d", "rm /m/first", "chmod 0700 /m/both", "ln -s x /m/link", "mv /m/first /m/x", "touch /m/dir/a"):
            done = sh(*f.sources(), "--ro-overlay", "/m", script=write)
            true(done.returncode != 0, f"{write} succeeded")
            contains(done.stderr, "Read-only file system", write)
            tried()
        equal(snapshot(f.path), before, "the host")


@test("cejail bwrap overlays take each name of a source as it is", limit=120)
def _():
    with Layers() as f:
        for number, name in enumerate(HOSTILE):
            base = f.folder(f"{number}")
            for part in ("src", "rw", "work"):
                f.folder(f"{number}/{part}{name}")
            f.file(f"{number}/src{name}/file", name)
            src = ["--overlay-src", f / "two", "--overlay-src", f"{base}/src{name}"]
            for kind in (["--tmp-overlay"], ["--overlay", f"{base}/rw{name}", f"{base}/work{name}"], ["--ro-overlay"]):
                write = "" if kind[0] == "--ro-overlay" else '; echo x > "$1"/new'
                done = sh(*src, *kind, "/m" + name, script='cat "$1"/file "$1"/both' + write, more=["sh", "/m" + name])
                says(done, name + "two", f"{kind} {name!r}")
                tried()
            equal(os.listdir(f"{base}/rw{name}"), ["new"], f"RWSRC {name!r}")


@test("cejail bwrap overlays refuse sources that are missing, no directory or too many, and a wrong WORKDIR")
def _():
    with Layers() as f:
        for kind in f.kinds():
            fails(sh(*f.sources(), "--overlay-src", f / "none", *kind, "/m"), f"bwrap: Can't find source path {f / 'none'}: No such file or directory")
            fails(sh(*f.sources(), "--overlay-src", f / "one/both", *kind, "/m"), "Can't make overlay mount on /newroot/m", "Not a directory")
            tried()
        fails(sh(*f.sources(), "--overlay", f / "none", f / "work", "/m"), "Can't find source path", "none: No such")
        fails(sh(*f.sources(), "--overlay", f / "rw", f / "none", "/m"), "Can't find source path", "none: No such")
        fails(sh(*f.sources(), "--overlay", f / "rw", "/proc", "/m"), "Can't make overlay mount on /newroot/m")
        fails(sh(*f.sources(), "--overlay", f / "rw", f / "rw", "/m"), "Can't make overlay mount on /newroot/m")
        many = [word for n in range(61) for word in ("--overlay-src", f.folder(f"many/{n:02}"))]
        f.file("many/00/bottom", "b")
        says(sh(*many[:120], "--tmp-overlay", "/m", script="cat /m/bottom"), "b", "60 sources")
        fails(sh(*many, "--tmp-overlay", "/m"), "61 --overlay-src are more than 60")


@test("cejail bwrap requires the sources of an overlay immediately before it")
def _():
    late = "--overlay-src must be followed by another --overlay-src or one of --overlay, --tmp-overlay, or --ro-overlay"
    with Layers() as f:
        one, rest = f.sources()[:2], f.sources()[2:]
        for between in (["--dir", "/x"], ["--setenv", "A", "b"], ["--unshare-pid"], ["--perms", "0700"], ["--tmpfs", "/m"]):
            fails(sh(*one, *between, *rest, "--tmp-overlay", "/m"), late)
        fails(sh(*one), late)
        fails(sh("--tmp-overlay", "/m"), "--tmp-overlay requires at least one --overlay-src")
        fails(sh("--overlay", f / "rw", f / "work", "/m"), "--overlay requires at least one --overlay-src")
        fails(sh(*one, "--ro-overlay", "/m"), "--ro-overlay requires at least two --overlay-src")
        fails(sh(*one, "--tmp-overlay", "/m", "--tmp-overlay", "/n"), "--tmp-overlay requires at least one --overlay-src")
        fails(sh("--perms", "0700", *f.sources(), "--tmp-overlay", "/m"), "--perms must be followed by")


@test("a link leads no cejail bwrap overlay out of the root, and as a source it stands for its directory on the host")
def _():
    with Layers() as f:
        os.symlink("one", f / "link")
        f.file("secret/file", "secret")
        for target in (f / "secret", "../" * 12 + f.path[1:] + "/secret", "/oldroot" + f / "secret", "/proc/self/root" + f / "secret"):
            os.symlink(target, f / "two/out")
            for kind in f.kinds():
                says(sh("--overlay-src", f / "link", "--overlay-src", f / "two", *kind, "/m", script="cat /m/first; cat /m/out/file 2>/dev/null || echo no"), "1no\n", f"{kind[0]} {target}")
                before = snapshot(f / "secret")
                sh("--bind", f / "two", "/t", *f.sources(), *kind, "/t/out/new", script="echo x > /t/out/new/file")
                equal(snapshot(f / "secret"), before, f"the host after {kind[0]} at a link to {target}")
                tried()
            os.remove(f / "two/out")


@test("attributes of a source make no cejail bwrap overlay show another directory")
def _():
    with Layers() as f:
        f.file("hidden/file", "hidden"), f.file("one/deep/file", "deep")
        for name, value in (("user.overlay.redirect", b"/deep"), ("user.overlay.redirect", b"../hidden"), ("user.overlay.metacopy", b"")):
            try:
                os.setxattr(f / "two/dir", name, value)
            except OSError:
                continue  # this file system has none: nothing to obey
            for kind in f.kinds():
                done = sh(*f.sources(), *kind, "/m", script="ls /m/dir")
                true("file" not in done.stdout, f"{name} of a source has an effect with {kind[0]}: {done.stdout}")
                tried()


@test("a cejail bwrap overlay takes its place among the other options, without set-user-ID bits and devices")
def _():
    with Layers() as f:
        before = snapshot(f / "one"), snapshot(f / "two")
        for kind in f.kinds()[:2]:
            options = ["--ro-bind", f / "one", "/m", *f.sources(), *kind, "/m", "--dir", "/m/made", "--ro-bind", f / "one", "/m/dir", "--symlink", "x", "/m/l"]
            done = sh(*options, "--unshare-pid", script="ls /m /m/dir | tr '\\n' ' '; grep ' /m ' /proc/self/mountinfo | tail -n 1 | cut -d' ' -f6; ls /proc/$$/fd | tr '\\n' ' '")
            says(done, "/m: both dir first l made second  /m/dir: both dir first rw,nosuid,nodev,relatime\n0 1 2 ", kind[0])
        says(sh(*f.sources(), "--tmp-overlay", "/", *USR, script="cat /both"), "two", "an overlay as the root")
        says(sh(*f.sources(), "--ro-overlay", "/m", "--tmpfs", "/m/dir", "--unshare-user", "--uid", "0", script="echo x > /m/dir/x; cat /m/dir/x"), "x\n", "a tmpfs on an overlay")
        equal((snapshot(f / "one"), snapshot(f / "two")), before, "the sources")
