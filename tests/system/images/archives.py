# SPDX-License-Identifier: Apache-2.0
"""Images for the tests, made here: tar archives, OCI layouts, archives of docker save."""

import contextlib
import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile

from harness import *  # noqa: F403

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OCI = "application/vnd.oci.image."
KINDS = {
    "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "char": tarfile.CHRTYPE, "block": tarfile.BLKTYPE,
    "fifo": tarfile.FIFOTYPE, "dir": tarfile.DIRTYPE,
}  # fmt: skip


def entry(name, data=b"", kind="file", mode=0o644, target="", size=None, device=(0, 0), headers=None):
    """A member of an archive: what tar() takes."""
    info = tarfile.TarInfo(name)
    info.mode, info.mtime, info.type = mode, 1_000_000_000, KINDS.get(kind, tarfile.REGTYPE)
    info.linkname, (info.devmajor, info.devminor) = target, device
    info.size = len(data) if size is None else size
    info.pax_headers = headers or {}
    return info, data


def folder(name, mode=0o755):
    return entry(name, kind="dir", mode=mode)


def tar(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in members:
            # a size that is a lie has no data behind its header
            archive.addfile(info, io.BytesIO(data) if info.isreg() and info.size == len(data) else None)
    return out.getvalue()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def busybox():
    """A root that runs a shell."""
    with open(need_root_tree(), "rb") as file:
        program = file.read()
    names = [entry(f"bin/{name}", kind="link", target="busybox") for name in ("sh", "cat", "ls", "id", "pwd", "stat", "touch")]
    passwd = b"root:x:0:0:root:/root:/bin/sh\napp:x:1234:5::/app:/bin/sh\n"
    return [folder("bin"), entry("bin/busybox", program, mode=0o755), *names, folder("etc"), entry("etc/passwd", passwd)]


class Layout:
    """An OCI layout in a directory; each part can be made wrong before write()."""

    def __init__(self, path, layers, config=None, compress=gzip.compress, kind="tar+gzip", machine=MACHINE):
        self.path = path
        os.makedirs(f"{path}/blobs/sha256")
        self.config = {
            "architecture": machine, "os": "linux", "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(layer) for layer in layers]},
        }  # fmt: skip
        self.layers = [self.blob(compress(layer), f"{OCI}layer.v1.{kind}") for layer in layers]
        self.index = {"schemaVersion": 2}

    def blob(self, data, kind, **more):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        with open(f"{self.path}/blobs/sha256/{sha256(data)}", "wb") as file:
            file.write(data)
        return {"mediaType": kind, "digest": "sha256:" + sha256(data), "size": len(data), **more}

    def manifest(self, **more):
        config = self.blob(self.config, f"{OCI}config.v1+json")
        body = {"schemaVersion": 2, "config": config, "layers": self.layers}
        return self.blob(body, f"{OCI}manifest.v1+json", **more)

    def write(self, *manifests):
        self.index["manifests"] = list(manifests) or [self.manifest()]
        for name, value in (("index.json", self.index), ("oci-layout", {"imageLayoutVersion": "1.0.0"})):
            with open(f"{self.path}/{name}", "w", encoding="utf-8") as file:
                json.dump(value, file)
        return self.path


def docker_archive(layers, config=None, tags=("test:1",), name="{}.json"):
    """What docker save wrote for years: a configuration named by its hash, layers in directories, and a link for a
    layer that the image has twice."""
    body = {
        "architecture": MACHINE, "os": "linux", "config": config or {},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(layer) for layer in layers]},
    }  # fmt: skip
    text = json.dumps(body).encode()
    config_name = name.format(sha256(text))
    members, names, seen = [entry(config_name, text)], [], {}
    for number, layer in enumerate(layers):
        path = sha256(f"{number}".encode()) + "/layer.tar"
        names.append(path)
        if layer in seen:
            members.append(entry(path, kind="link", target=f"../{seen[layer]}"))
        else:
            members.append(entry(path, layer))
        seen.setdefault(layer, path)
    manifest = [{"Config": config_name, "RepoTags": list(tags), "Layers": names}]
    return tar(*members, entry("manifest.json", json.dumps(manifest).encode()))


class Store:
    """A store of its own, in a directory that goes with the test."""

    def __init__(self, f):
        self.f, self.env = f, environment(XDG_DATA_HOME=f / "data")
        self.path = f / "data/cejail/images"

    def image(self, *args, **options):
        return cejail("image", *args, env=self.env, **options)

    def add(self, name, source, *options):
        """Bytes become a file first."""
        if isinstance(source, bytes):
            source = self.f.file(f"{name}.source", source)
        return self.image("import", *options, name, source)

    def refuses(self, source, *words, options=()):
        """One line says why, and nothing of it stays."""
        refused(self.add("bad", source, *options), *words)
        self.is_empty()

    def is_empty(self):
        for name in ("images", "layers", "tmp"):
            place = f"{self.path}/{name}"
            equal(os.listdir(place) if os.path.isdir(place) else [], [], f"what is left in {name}")

    def records(self):
        return json.loads(self.image("list", "--json").exits(0).out)["images"]

    def run(self, name, *args, **options):
        return run("--network", "none", "--rootfs", name, *args, env=self.env, **options)

    def sh(self, name, script, *options):
        return self.run(name, *options, "--", "/bin/sh", "-c", script)


@contextlib.contextmanager
def store():
    with Folder() as f:
        yield Store(f)


def need(program):
    found = shutil.which(program)
    if not found:
        raise Skip(f"{program} is not installed")
    return found


def python_root():
    """The host's python3 with its libraries and the modules that it loads at its start."""
    out = subprocess.run(["ldd", os.path.realpath(PYTHON)], capture_output=True, text=True, check=True).stdout
    libraries = [word for line in out.splitlines() for word in line.split() if word.startswith("/")]
    code = "import sys, json; print('\\n'.join(m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)))"
    done = subprocess.run([PYTHON, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    members = {"usr/bin/python3": os.path.realpath(PYTHON)}
    for path in [*libraries, *done.stdout.split()]:
        members[path.lstrip("/")] = os.path.realpath(path)
    result = []
    for name, path in sorted(members.items()):
        with open(path, "rb") as file:
            result.append(entry(name, file.read(), mode=0o755))
    return result
