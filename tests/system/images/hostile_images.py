# SPDX-License-Identifier: Apache-2.0
"""Archives that are made to do harm.  Each is refused, or does it in no place but its own layer."""

import contextlib
import gzip
import json
import os
import subprocess

from archives import *  # noqa: F403


def layer_of(s):
    (name,) = os.listdir(s.path + "/layers")
    return f"{s.path}/layers/{name}"


@test("paths with .. are refused, and a leading slash leads into the layer")
def _():
    with store() as s:
        for name in ("../x", "a/../../x", "/../x", "a/..", ".."):
            s.refuses(tar(entry(name, b"evil")), "'..'")
        target = s.f / "outside"
        s.add("x", tar(entry(target, b"inside"))).exits(0)
        true(not os.path.exists(target), "a file outside of the layer")
        with open(layer_of(s) + target, encoding="utf-8") as file:
            equal(file.read(), "inside", "the file in the layer")


@test("nothing is written through a symbolic link of the archive")
def _():
    with store() as s:
        canary = s.f.file("out/canary", "safe")
        out = s.f / "out"
        for members in (
            [entry("a", kind="link", target=out), entry("a/canary", b"evil")],
            [entry("a", kind="link", target=out), entry("a/.wh.canary")],
            [entry("a", kind="link", target=out), entry("a/.wh..wh..opq")],
            [entry("a", kind="link", target=out), folder("a/sub")],
            [entry("a", kind="link", target=out), entry("b", kind="hard", target="a/canary")],
            [entry("a", kind="link", target=".."), entry("a/x", b"evil")],
            [entry("a/b", kind="link", target="/"), entry("a/b" + canary, b"evil")],
            [entry("a", kind="link", target="/proc/self/cwd"), entry("a/x", b"evil")],
        ):
            s.refuses(tar(*members), "symbolic link")
        tried(8)
        # a file replaces a link of the same name, and is not written through it
        s.add("x", tar(entry("a", kind="link", target=canary), entry("a", b"evil"), entry("l", kind="link", target=canary))).exits(0)
        with open(canary, encoding="utf-8") as file:
            equal(file.read(), "safe", "the file outside")
        true(not os.path.islink(layer_of(s) + "/a"), "the link was not replaced")
        equal(os.listdir(out), ["canary"], "what is outside")


@test("a hard link leads to a file of its layer and nowhere else")
def _():
    with store() as s:
        canary = s.f.file("canary", "safe")
        for target in (canary, "/etc/passwd", "none", "d", "."):
            s.refuses(tar(folder("d"), entry("a", kind="hard", target=target)), "hard link")
        s.refuses(tar(entry("a", kind="hard", target="")), "type")
        s.refuses(tar(entry("a", kind="hard", target="../../../canary")), "'..'")
        s.refuses(tar(entry("a", b"x"), entry("a", kind="hard", target="a")), "itself")
        equal(os.stat(canary).st_nlink, 1, "links of the file outside")


@test("whiteouts hide names of their directory only")
def _():
    with store() as s:
        for name in (".wh.", ".wh..", ".wh...", "a/.wh..."):
            s.refuses(tar(entry(name)), "whiteout names no file")
        s.refuses(tar(entry(".wh..wh..opq")), "hides all")
        s.add("x", tar(entry(".wh..wh.aufs", b"x"), entry(".wh.d/f", b"1"), entry("w"), entry(".wh.w"))).exits(0)
        equal(sorted(os.listdir(layer_of(s))), [".wh.d", "w"], "the layer's files")


@test("the later of two entries counts, and no file replaces a directory with files")
def _():
    with store() as s:
        s.refuses(tar(folder("d"), entry("d/f", b"1"), entry("d", b"2")), "not empty")
        s.refuses(tar(entry("f", b"1"), entry("f/x", b"2")), "below a file")
        s.refuses(tar(entry(".", b"2")), "root of a layer")
        s.add("x", tar(entry("f", b"1"), entry("f", b"2"), folder("e"), entry("e", b"3"), entry("g", b"4"), folder("g"))).exits(0)
        with open(layer_of(s) + "/f", encoding="utf-8") as file:
            equal(file.read(), "2", "the file")
        true(os.path.isfile(layer_of(s) + "/e") and os.path.isdir(layer_of(s) + "/g"), "what replaced what")


@test("attributes of an archive are dropped: overlayfs and the host see none")
def _():
    with store() as s:
        headers = {
            "SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.user.overlay.redirect": "/etc",
            "SCHILY.xattr.security.capability": "\x01\x00\x00\x02", "LIBARCHIVE.xattr.user.x": "eA",
            "SCHILY.acl.access": "user::rwx,group::rwx,other::rwx",
        }  # fmt: skip
        info, data = entry("d", kind="dir", headers=headers)
        s.add("x", tar((info, data), entry("d/f", b"1", headers=headers))).exits(0)
        for path in (layer_of(s) + "/d", layer_of(s) + "/d/f"):
            equal(os.listxattr(path), [], f"attributes of {path}")


@test("sizes are limited: of files, of holes, and of what is decompressed")
def _():
    with store() as s:
        s.refuses(tar(entry("f", size=1 << 45)), "more than 16G", "--max-size")
        s.refuses(tar(entry("f", b"x" * (2 << 20))), "more than 1M", options=("--max-size", "1M"))
        s.refuses(gzip.compress(bytes(64 << 20)), "more than 8M", options=("--max-size", "8M"))
        bomb = gzip.compress(tar(entry("f", bytes(64 << 20))))
        true(len(bomb) < 1 << 20, "the archive is no bomb")
        s.refuses(bomb, "more than 8M", options=("--max-size", "8M"))
        with open(s.f / "sparse", "wb") as file:
            file.truncate(32 << 30)
        subprocess.run(["tar", "-C", s.f.path, "--sparse", "-cf", s.f / "sparse.tar", "sparse"], check=True)
        s.refuses(s.f / "sparse.tar", "more than 16G")
        s.refuses(Layout(s.f / "oci", [tar(entry("f", bytes(16 << 20)))]).write(), "more than 4M", options=("--max-size", "4M"))


@test("an archive is compressed once: filters in a row do much work and give nothing")
def _():
    with store() as s:
        empty = gzip.compress(b"", mtime=0)
        inner = gzip.compress(empty * ((64 << 20) // len(empty)))
        s.refuses(gzip.compress(inner * 100), "compressed once")
        s.refuses(gzip.compress(gzip.compress(tar(entry("f", b"1")))), "compressed once")


@test("a compressed file that has no content is read up to the limit")
def _():
    with store() as s:
        empty = gzip.compress(b"", mtime=0)
        s.refuses(empty * ((4 << 20) // len(empty)), "more than 1M", options=("--max-size", "1M"))


@test("a million files are the limit, whatever their names", limit=120)
def _():
    with store() as s:
        # the same header again and again: a note of a storage driver, which costs no file
        header = tar(entry(".wh..wh.x"))[:512]
        with gzip.open(s.f / "many.tgz", "wb", compresslevel=1) as file:
            for _ in range(1001):
                file.write(header * 1000)
            file.write(bytes(1024))
        refused(s.image("import", "bad", s.f / "many.tgz", limit=100), "more than 1000000 files")
        s.is_empty()


@test("long and deep paths are refused")
def _():
    with store() as s:
        s.refuses(tar(entry("a/" * 256 + "f")), "deeper than 256")
        s.refuses(tar(entry("a" * 256)), "longer than 255")
        s.refuses(tar(entry("a/" * 2048 + "f")), "longer than 4095")
        s.refuses(tar(entry("l", kind="link", target="x" * 4096)), "longer than 4095")
        s.add("x", tar(entry("a/" * 255 + "f", b"1"))).exits(0)
        s.image("rm", "x").exits(0)
        s.is_empty()


@test("blobs with a wrong hash or size are refused, each of them")
def _():
    with store() as s:
        one, other = tar(entry("f", b"1")), tar(entry("f", b"2"))

        def spoil(path, digest, data=None):
            name = f"{path}/blobs/sha256/{digest.removeprefix('sha256:')}"
            with open(name, "r+b") as file:
                text = file.read()
                file.seek(0)
                file.write(data if data is not None else text[:-1] + bytes([text[-1] ^ 1]))
                file.truncate()

        layout = Layout(s.f / "layer", [one])
        spoil(layout.path, layout.layers[0]["digest"])
        s.refuses(layout.write(), "layer")
        layout = Layout(s.f / "swapped", [one], compress=bytes, kind="tar")
        spoil(layout.path, layout.layers[0]["digest"], other)
        s.refuses(layout.write(), "SHA-256")
        layout = Layout(s.f / "size", [one])
        layout.layers[0]["size"] += 1
        s.refuses(layout.write(), "are promised")
        layout = Layout(s.f / "diff", [one])
        layout.config["rootfs"]["diff_ids"] = ["sha256:" + sha256(other)]
        s.refuses(layout.write(), "unpacked layer has the SHA-256")
        layout = Layout(s.f / "manifest", [one])
        manifest = layout.manifest()
        spoil(layout.path, manifest["digest"])
        s.refuses(layout.write(manifest), "SHA-256")
        layout = Layout(s.f / "config", [one])
        manifest = layout.manifest()
        spoil(layout.path, layout.blob(layout.config, "")["digest"])
        s.refuses(layout.write(manifest), "SHA-256")
        layout = Layout(s.f / "count", [one])
        layout.layers *= 2
        s.refuses(layout.write(), "2 layers, the configuration 1")
        layout = Layout(s.f / "path", [one])
        layout.layers[0]["digest"] = "sha256:../../../../../etc/passwd"
        s.refuses(layout.write(), "64 digits")
        good = docker_archive([one])
        s.refuses(good.replace(sha256(one).encode(), sha256(other).encode()), "SHA-256")


@test("an image gets a layer of another image only if its archive has the layer, too")
def _():
    with store() as s:
        secret, own = tar(entry("secret", b"1")), tar(entry("f", b"2"))
        s.add("victim", Layout(s.f / "victim", [secret]).write()).exits(0)
        before = s.records()

        def is_refused(layout, *words):
            refused(s.add("bad", layout.write()), *words)
            equal(s.records(), before, "the images")

        layout = Layout(s.f / "absent", [own, secret])
        os.unlink(f"{layout.path}/blobs/sha256/{layout.layers[1]['digest'].removeprefix('sha256:')}")
        is_refused(layout, "layer 2", "No such file")
        layout = Layout(s.f / "another", [own])
        layout.config["rootfs"]["diff_ids"] = ["sha256:" + sha256(secret)]
        is_refused(layout, "unpacked layer has the SHA-256")
        archive = docker_archive([own]).replace(sha256(own).encode(), sha256(secret).encode())
        refused(s.add("bad", archive), "SHA-256")
        equal(s.records(), before, "the images")
        s.add("same", Layout(s.f / "same", [secret]).write()).exits(0)


@test("documents are limited in size, depth and type")
def _():
    with store() as s:
        one = tar(entry("f", b"1"))
        for number, text in enumerate((
            "[" * 2000, '{"a":' * 500, "[]", "{}", '{"schemaVersion": 2, "manifests": []}', " " * (2 << 20), '{"schemaVersion": 2, "sch',
            '{"schemaVersion": 2, "schemaVersion": 2, "manifests": []}', '{"schemaVersion": 2, "manifests": [' + ",".join(["{}"] * 200000) + "]}",
        )):  # fmt: skip
            layout = Layout(s.f / f"{number}", [one])
            layout.write()
            s.f.file(f"{number}/index.json", text)
            s.refuses(layout.path)
            tried()
        layout = Layout(s.f / "type", [one])
        layout.layers[0]["mediaType"] += "+encrypted"
        s.refuses(layout.write(), "encrypted")
        layout = Layout(s.f / "artifact", [one])
        s.refuses(layout.write({**layout.manifest(), "mediaType": "application/vnd.in-toto+json"}), "in-toto")
        layout = Layout(s.f / "machine", [one], machine="s390x")
        s.refuses(layout.write(), "s390x")
        layout = Layout(s.f / "loop", [one])
        inner = layout.manifest()
        for _ in range(4):
            inner = layout.blob({"schemaVersion": 2, "manifests": [inner]}, f"{OCI}index.v1+json")
        s.refuses(layout.write(inner), "indexes")
        layout = Layout(s.f / "none", [])
        s.refuses(layout.write(), "no layers")
        layout = Layout(s.f / "many", [tar(entry("f", b"%d" % i)) for i in range(61)])
        s.refuses(layout.write(), "more than 60")


@test("a layout's links lead to no file outside of it")
def _():
    with store() as s:
        layout = Layout(s.f / "oci", [tar(entry("f", b"1"))])
        layout.write()
        digest = layout.layers[0]["digest"].removeprefix("sha256:")
        blob = f"{layout.path}/blobs/sha256/{digest}"
        os.rename(blob, s.f / "elsewhere")
        os.symlink(s.f / "elsewhere", blob)
        s.refuses(layout.path, digest)
        os.unlink(blob)
        os.mkfifo(blob)
        s.refuses(layout.path, "not a regular file")
        manifest = json.dumps([{"Config": "../../etc/passwd", "Layers": []}]).encode()
        s.refuses(tar(entry("manifest.json", manifest)), "'..'")
        text = b"{}"
        manifest = json.dumps([{"Config": sha256(text) + ".json", "Layers": []}]).encode()
        for target in ("../../../etc/passwd", "/etc/passwd", sha256(text) + ".json"):
            link = entry(sha256(text) + ".json", kind="link", target=target)
            s.refuses(tar(link, entry("manifest.json", manifest)))


@test("a damaged archive is refused: cut, empty, another format, noise")
def _():
    with store() as s:
        whole = tar(*busybox())
        for data in (
            b"", b"x", bytes(1023), whole[: len(whole) // 2], gzip.compress(whole)[:5000], gzip.compress(whole)[:-9] + b"123456789",
            b"\xfd7zXZ\x00" + bytes(600), b"PK\x03\x04" + bytes(600), os.urandom(20000), whole[:600] + os.urandom(3000),
        ):  # fmt: skip
            s.refuses(data)
            tried()


@test("a full store is an error, and nothing of the image stays", who="roots")
def _():
    with store() as s:
        os.makedirs(s.path)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M,mode=700", "none", s.path], capture_output=True).returncode != 0:
            raise Skip("root may not mount here")
        try:
            refused(s.add("bad", tar(entry("f", bytes(8 << 20)))), "No space left")
            s.is_empty()
        finally:
            subprocess.run(["umount", s.path], check=True)


def status_of_unpacker(source):
    """The status of an unpacker at work, from /proc; None: the import ended before we looked."""
    with store() as s:
        process = start("image", "import", "big", source, env=s.env)
        try:
            layer = s.path + "/tmp/import/layer/bin"
            wait_until(lambda: os.path.isdir(layer) or process.poll() is not None, "the unpacker")
            for child in children_of(process.pid):
                with contextlib.suppress(OSError), open(f"/proc/{child}/status", encoding="utf-8") as file:
                    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
                    return None if status["State"].startswith("Z") else status
            return None
        finally:
            process.kill()
            process.communicate()


@test("the unpacker has no socket, no other file to write and no capability")
def _():
    with Folder() as f:
        source = f.file("big.tar", tar(*busybox(), *[entry(f"f{i}", b"x" * 4096) for i in range(30000)]))
        status = wait_until(lambda: status_of_unpacker(source), "an unpacker at work", 60)
        equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"), "no_new_privs and seccomp")
        equal((int(status["CapEff"], 16), int(status["CapPrm"], 16)), (0, 0), "capabilities")
