# SPDX-License-Identifier: Apache-2.0
"""`cejail image`, and runs in an image."""

import contextlib
import fcntl
import gzip
import json
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import termios

from archives import *  # noqa: F403

CONFIG = {
    "Env": ["PATH=/bin", "FRUIT=apple"], "Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo $FRUIT; pwd; id -u"],
    "WorkingDir": "/work", "User": "app",
}  # fmt: skip


def base():
    return tar(*busybox(), folder("work"), entry("work/old", b"old\n"), entry("both/below", b"1"))


def change():
    return tar(entry("work/.wh.old"), entry("both/.wh..wh..opq"), entry("both/above", b"2"), entry("work/new", b"new\n"))


@test("an image of each form is imported, and its command runs with its environment and directory")
def _():
    with store() as s:
        layers = [base(), change()]
        layout = Layout(s.f / "oci", layers, CONFIG).write()
        archive = subprocess.run(["tar", "-C", layout, "-c", "."], capture_output=True, check=True).stdout
        sources = {
            "oci": layout, "oci.tar": archive, "oci.tgz": gzip.compress(archive),
            "docker": docker_archive(layers, CONFIG), "docker.named": docker_archive(layers, CONFIG, name="sha256:{}"), "docker.tgz": gzip.compress(docker_archive(layers, CONFIG)),
        }  # fmt: skip
        for name, source in sources.items():
            s.add(name, source).exits(0)
            s.run(name).exits(0).says("apple\n/work\n1000\n")
        equal([image["name"] for image in s.records()], sorted(sources), "the names")
        equal(len(os.listdir(s.path + "/layers")), 2, "layers of all images together")
        equal(os.listdir(s.path + "/tmp"), [], "what is left in tmp")


@test("zstd layers and archives are read where libarchive can")
def _():
    with store() as s:
        zstd = need("zstd")

        def compress(data):
            return subprocess.run([zstd, "-q"], input=data, capture_output=True, check=True).stdout

        s.add("oci", Layout(s.f / "oci", [base()], CONFIG, compress, "tar+zstd").write()).exits(0)
        s.run("oci").exits(0).says("apple\n/work\n1000\n")
        s.add("root", compress(base())).exits(0)
        s.sh("root", "cat /work/old").exits(0).says("old\n")


@test("a layer changes the one below: whiteouts, opaque directories, new files")
def _():
    with store() as s:
        s.add("x", Layout(s.f / "oci", [base(), change()]).write()).exits(0)
        s.sh("x", "ls /work /both; cat /work/new").exits(0).says("/both:\nabove\n\n/work:\nnew\nnew\n")


@test("a layer that appears twice in an archive of docker save is read once")
def _():
    with store() as s:
        s.add("x", docker_archive([base(), change(), change()])).exits(0)
        equal(len(s.records()[0]["layers"]), 2, "layers")
        s.sh("x", "cat /work/new").exits(0).says("new\n")


@test("a tar and a directory of a root file system are images without settings")
def _():
    with store() as s:
        s.f.file("root.tar", base())
        tree = s.f.folder("tree")
        subprocess.run(["tar", "-C", tree, "-xf", s.f / "root.tar", "--no-same-owner"], check=True)
        s.add("tar", s.f / "root.tar").exits(0)
        s.add("dir", tree).exits(0)
        for name in ("tar", "dir"):
            s.sh(name, "cat /work/old; pwd").exits(0).says("old\n/box\n")
            refused(s.run(name), "has no command of its own", f"cejail run --rootfs {name} -- COMMAND")


def on_terminal(s, columns, *words):
    """What `cejail image WORDS` writes to a terminal as standard error."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = start("image", *words, env=s.env, stderr=theirs)
    os.close(theirs)
    told = b""
    with contextlib.suppress(OSError):  # EIO: the last user of the terminal has gone
        while piece := os.read(ours, 4096):
            told += piece
    os.close(ours)
    return finish(process), told.decode()


def screen(told):
    """What is to be read at the end: a carriage return goes to the first column."""
    lines = []
    for line in told.split("\n"):
        cells = ""
        for piece in line.split("\r"):
            cells = piece + cells[len(piece) :]
        lines.append(cells.rstrip())
    return "\n".join(lines)


@test("an import on a terminal shows how far it is in one line, and erases it")
def _():
    with store() as s:
        layout = Layout(s.f / "oci", [base(), change()], CONFIG).write()
        done, told = on_terminal(s, 80, "import", "x", layout)
        done.exits(0)
        true(re.search(r"\rlayer 1 of 2: read [0-9.]+[KM]? of [0-9.]+[KM], 0 files", told), f"no progress in {told!r}")
        true("\n" not in told, f"more than a line: {told!r}")
        equal(screen(told), "", "the terminal")
        done, told = on_terminal(s, 80, "import", "root", s.f.file("root.tar", base()))
        done.exits(0)
        true(re.search(r"\rread [0-9.]+K of [0-9.]+[KM]", told), f"no progress in {told!r}")
        equal(screen(told), "", "the terminal")


@test("an import that fails on a terminal erases its progress before it says why")
def _():
    with store() as s:
        done, told = on_terminal(s, 0, "import", "x", s.f.file("cut.tar", base()[:70000]))
        done.exits(125)
        true("\rread " in told, f"no progress in {told!r}")
        true(screen(told).startswith("cejail: import '"), f"the terminal: {screen(told)!r}")


@test("an import shows no progress on a terminal that is too narrow, and none without a terminal")
def _():
    with store() as s:
        source = s.f.file("root.tar", base())
        done, told = on_terminal(s, 60, "import", "narrow", source)
        done.exits(0)
        equal(told, "", "what the narrow terminal has")
        equal(s.add("piped", source).exits(0).err, "", "standard error")


@test("modes, times and hard links are kept; owners, setuid bits and devices are not")
def _():
    with store() as s:
        members = [
            *busybox(), entry("d/run", b"#!/bin/sh\n", mode=0o4755), entry("d/secret", b"s\n", mode=0o600),
            entry("d/one", b"x"), entry("d/two", kind="hard", target="d/one"), entry("d/null", kind="char", device=(1, 3)),
            entry("d/disk", kind="block", device=(8, 0)), entry("d/pipe", kind="fifo"), entry("d/whiteout", kind="char"),
            folder("d/group", mode=0o2770), folder("d/closed", mode=0), folder("d/sticky", mode=0o1777),
        ]  # fmt: skip
        done = s.add("x", tar(*members)).exits(0)
        contains(done.err, "4 device nodes", "stderr")
        seen = s.sh("x", "cd /d; stat -c '%n %a %h %Y' run secret one; ls; cat secret").exits(0).out
        wanted = "run 755 1 1000000000\nsecret 644 1 1000000000\none 644 2 1000000000\n"
        equal(seen, wanted + "closed\ngroup\none\nrun\nsecret\nsticky\ntwo\ns\n", "the files")
        for top, names, files in os.walk(s.path + "/layers"):
            for info in [os.lstat(os.path.join(top, name)) for name in names + files]:
                true(not info.st_mode & 0o7000, f"a file in {top} has the mode {oct(info.st_mode)}")
                equal(info.st_uid, os.geteuid(), "the owner")
                true(stat.S_IFMT(info.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK), "a special file")


@test("environment: the image's is above the profile base, other profiles and --env are above the image's")
def _():
    with store() as s:
        s.add("x", Layout(s.f / "oci", [base()], CONFIG).write()).exits(0)
        s.sh("x", "echo $FRUIT $PATH $HOME").exits(0).says("apple /bin /box\n")
        s.sh("x", "echo $FRUIT $PATH", "-e", "FRUIT=fig").exits(0).says("fig /bin\n")
        profile = s.f.file("p.json", json.dumps({"extends": "base", "env": {"FRUIT": "pear"}}))
        s.sh("x", "echo $FRUIT $PATH", "-p", profile).exits(0).says("pear /bin\n")


@test("the working directory is the image's unless a profile or --workdir names one; / is none")
def _():
    with store() as s:
        s.add("x", Layout(s.f / "oci", [base()], CONFIG).write()).exits(0)
        s.add("top", Layout(s.f / "top", [base()], {"WorkingDir": "/"}).write()).exits(0)
        s.sh("x", "pwd").exits(0).says("/work\n")
        s.sh("x", "pwd", "-w", "/tmp").exits(0).says("/tmp\n")
        s.sh("x", "pwd", "-w", "/box").exits(0).says("/box\n")
        s.sh("top", "pwd").exits(0).says("/box\n")


@test("USER is looked up in the image and decides nothing: the program is the jail's one user")
def _():
    with store() as s:
        for name, user, uid in (("a", "app", 1234), ("b", "root:root", 0), ("c", "77:88", 77), ("d", "", 0)):
            s.add(name, Layout(s.f / name, [base()], {"User": user}).write()).exits(0)
            equal([r["uid"] for r in s.records() if r["name"] == name], [uid], "the record's uid")
            s.sh(name, "id -u").exits(0).says("1000\n")
        plan = json.loads(s.run("a", "--dry-run", "--", "true").exits(0).out)
        equal((plan["root"]["image"]["user"], plan["root"]["image"]["uid"]), ("app", 1234), "the plan's user")
        equal((plan["root"]["uid"], len(plan["root"]["layers"])), (1000, 1), "the jail's user, and the layers")
        hidden = tar(entry("etc/.wh.passwd"))
        refused(s.add("e", Layout(s.f / "e", [base(), hidden], {"User": "app"}).write()), "'app'", "/etc/passwd")
        refused(s.add("f", Layout(s.f / "f", [base()], {"User": "nobody"}).write()), "'nobody'", "/etc/passwd")


@test("images share layers, and rm removes those that no other image has")
def _():
    with store() as s:
        contains(s.add("one", Layout(s.f / "one", [base()]).write()).exits(0).out, "1 layer, 1 new", "stdout")
        contains(s.add("two", Layout(s.f / "two", [base(), change()]).write()).exits(0).out, "2 layers, 1 new", "stdout")
        s.image("rm", "one").exits(0).says("")
        s.sh("two", "cat /work/new").exits(0).says("new\n")
        equal(len(os.listdir(s.path + "/layers")), 2, "layers")
        s.image("rm", "two").exits(0)
        s.is_empty()
        refused(s.image("rm", "two"), "no installed image 'two'")


@test("a name without a slash is an image and never a directory; host stays the host")
def _():
    with store() as s:
        s.add("tree", base()).exits(0)
        tree = s.f.folder("tree")
        s.run("tree", "--", "/bin/sh", "-c", "cat /work/old", cwd=s.f.path).exits(0).says("old\n")
        equal(run("--network", "none", "--rootfs", tree, "--", "/bin/sh", env=s.env).code, 127, "exit status in the directory")
        refused(s.add("host", base()), "'host' can't be the name of an image")
        for name in ("../x", "a/b", "", "A", "a" * 65):
            refused(s.add(name, s.f.file("x.tar", base())), "can't be the name of an image")


@test("an existing name, a missing source and wrong arguments are refused")
def _():
    with store() as s:
        s.add("x", base()).exits(0)
        refused(s.add("x", base()), "there is an image 'x' already", "cejail image rm x")
        refused(s.add("y", "/no/such/file"), "'/no/such/file'")
        os.mkfifo(s.f / "fifo")
        refused(s.add("y", s.f / "fifo"), "neither a file nor a directory")
        refused(s.image("import", "y"), "needs a NAME and a SOURCE")
        refused(s.image("import", "--frob", "y", "z"), "--frob")
        refused(s.image("import", "--max-size", "7", "y", "z"), "--max-size")
        refused(s.image("frob"), "unknown action 'frob'")
        refused(s.image("list", "--all"), "'--all'")
        contains(s.image("--help").exits(0).out, "Usage: cejail image", "stdout")
        contains(cejail("help", "image", env=s.env).exits(0).out, "--max-size", "stdout")


@test("the store is its owner's alone: one that others may write is not used")
def _():
    with store() as s:
        s.add("x", base()).exits(0)
        equal(stat.S_IMODE(os.stat(s.path).st_mode), 0o700, "the store's mode")
        os.chmod(s.path, 0o777)
        refused(s.run("x", "--", "/bin/true"), "not only this user's to change")
        refused(s.add("y", base()), "not only this user's to change")


@test("a manifest is chosen by architecture and by name")
def _():
    with store() as s:
        layout = Layout(s.f / "oci", [base()], CONFIG)
        fits = layout.manifest(platform={"architecture": MACHINE, "os": "linux"})
        other = {**fits, "platform": {"architecture": "s390x", "os": "linux"}}
        none = {**fits, "platform": {"architecture": "unknown", "os": "unknown"}}
        nested = layout.blob({"schemaVersion": 2, "manifests": [other, none, fits]}, f"{OCI}index.v1+json")
        layout.write(nested)
        s.add("nested", layout.path).exits(0)
        name = "org.opencontainers.image.ref.name"
        layout.write({**fits, "annotations": {name: "one"}}, {**fits, "annotations": {name: "two"}})
        refused(s.add("x", layout.path), "2 images", "--ref")
        s.add("x", layout.path, "--ref", "two").exits(0)
        refused(s.add("y", layout.path, "--ref", "three"), "'three'")
        layout.write(other)
        refused(s.add("y", layout.path), f"no image for {MACHINE}")
        refused(s.add("y", docker_archive([base()]), "--ref", "b:1"), "'b:1'")
        s.add("y", docker_archive([base()], tags=("a:1", "b:1")), "--ref", "b:1").exits(0)


@test("an image that holds Python runs the profile python", limit=120)
def _():
    with store() as s:
        s.add("py", tar(*python_root())).exits(0)
        done = s.run("py", "-p", "python", "-c", "import json; print(json.dumps([1]))")
        done.exits(0).says("[1]\n")


# --- several at once, and the end of one ----------------------------------------------------------


@test("imports and removals at once wait for one another, and the store stays whole")
def _():
    with store() as s:
        sources = [s.f.file(f"{i}.tar", tar(*busybox(), entry("n", b"%d\n" % i))) for i in range(4)]
        s.add("old", sources[0]).exits(0)
        running = [start("image", "import", f"i{i}", path, env=s.env) for i, path in enumerate(sources)]
        running.append(start("image", "rm", "old", env=s.env))
        for process in running:
            finish(process, args=process.args).exits(0)
        equal([r["name"] for r in s.records()], ["i0", "i1", "i2", "i3"], "the images")
        for i in range(4):
            s.sh(f"i{i}", "cat /n").exits(0).says(f"{i}\n")
        equal((len(os.listdir(s.path + "/layers")), os.listdir(s.path + "/tmp")), (4, []), "layers and tmp")


@contextlib.contextmanager
def reader(s, name):
    """A jail of the image, before it reads a file: end(p) lets it."""
    script = "echo ready; read line; cat /work/old; ls /work"
    options = ("--network", "none", "--rootfs", name, "-i", "--timeout", "10m")
    process = start("run", *options, "--", "/bin/sh", "-c", script, env=s.env, stdin=subprocess.PIPE)
    try:
        true(process.stdout.readline() == b"ready\n", "the jail did not start")
        yield process
    finally:
        process.kill()
        process.communicate()


@test("a running jail keeps its files when its image is removed")
def _():
    with store() as s:
        s.add("old", Layout(s.f / "one", [base()]).write()).exits(0)
        s.add("new", Layout(s.f / "two", [base(), change()]).write()).exits(0)
        with reader(s, "old") as process:
            s.image("rm", "old").exits(0)
            done = s.image("rm", "new").exits(0)
            contains(done.err, "running jails use 1 layer", "stderr")
            equal((s.records(), len(os.listdir(s.path + "/layers"))), ([], 1), "images and layers")
            refused(s.run("old", "--", "/bin/true"), "no installed image 'old'")
            s.add("third", tar(*busybox())).exits(0)  # it clears the store, but not this layer
            equal(len(os.listdir(s.path + "/layers")), 2, "layers")
            finish(process, given=b"go\n").exits(0).says("old\nold\n")
        s.image("rm", "third").exits(0).says("")
        s.is_empty()


if LONG:

    @test("a killed removal leaves the image or none, and a running jail its files")
    def _():
        with store() as s:
            old = s.f.file("old.tar", base())
            s.add("old", old).exits(0)
            files = [entry(f"f{i}") for i in range(300)]
            layout = Layout(s.f / "oci", [base(), tar(*files)]).write()
            with reader(s, "old") as process:
                for pause in (0, 0.002, 0.004, 0.008, 0.016, 0.03):
                    s.image("rm", "big")  # which may be left
                    s.add("big", layout).exits(0)
                    removal = start("image", "rm", "big", "old", env=s.env)
                    time.sleep(pause)
                    removal.send_signal(signal.SIGKILL)
                    removal.communicate()
                    for name in ("big", "old"):
                        done = s.run(name, "--", "/bin/cat", "/work/old")
                        true(done.code == 0 and done.out == "old\n" or "no installed image" in done.err, f"{name}: {done!r}")
                finish(process, given=b"go\n").exits(0).says("old\nold\n")
            for name in ("big", "old"):
                s.image("rm", name)
            s.add("last", old).exits(0)
            s.image("rm", "last").exits(0)
            s.is_empty()


@test("a killed import leaves no image, and the next one removes its files")
def _():
    with store() as s:
        big = s.f.file("big.tar", tar(*busybox(), *[entry(f"f{i}", b"x" * 4096) for i in range(20000)]))
        for pause in (0, 0.01, 0.05, 0.1):
            process = start("image", "import", "big", big, env=s.env)
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if process.returncode == 0:  # it was done before
                s.image("rm", "big").exits(0)
            equal(s.records(), [], "images")
        process = start("image", "import", "big", big, env=s.env)
        wait_until(lambda: os.path.isdir(s.path + "/tmp/import/layer/bin"), "the unpacker")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        s.add("small", base()).exits(0)
        equal((len(os.listdir(s.path + "/layers")), os.listdir(s.path + "/tmp")), (1, []), "layers and tmp")
        s.image("rm", "small").exits(0)
        s.is_empty()
