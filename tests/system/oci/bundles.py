# SPDX-License-Identifier: Apache-2.0
"""Bundles for cejail-oci, made from a busybox: no registry, no engine.

A Bundle is a directory with a root file system and a config.json, and another one for the states.  The config is
a value in `config`; a test changes it before create().  Leaving it deletes its containers.
"""

import copy
import json
import os
import shutil
import signal
import subprocess

from harness import CEJAIL, WHO, Folder, contains, descendants, environment, equal, finish, need_root_tree, true, wait_until

OCI = os.path.join(os.path.dirname(CEJAIL), "cejail-oci")
APPLETS = ("sh true false sleep ls cat echo id ps mount umount kill env stat readlink head tail tr sort wc "
           "mkdir touch rm hostname ulimit dd test expr date tty stty grep sed awk cut nc find printf chmod mknod cp mv").split()  # fmt: skip
NEW = ("pid", "ipc", "uts", "mount", "network", "cgroup")
CAPABILITIES = ["CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_SETGID", "CAP_SETUID", "CAP_CHOWN", "CAP_DAC_OVERRIDE"]


def mount_of(kind, place, source, *options):
    return {"destination": place, "type": kind, "source": source, "options": list(options)}


def base_config():
    """What podman writes, in short: new namespaces, the usual mounts and masks."""
    user = WHO == "user"
    config = {
        "ociVersion": "1.2.0",
        "root": {"path": "rootfs"},
        "hostname": "box",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/bin/true"],
            "env": ["PATH=/bin", "TERM=xterm"],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": {kind: list(CAPABILITIES) for kind in ("bounding", "effective", "permitted")},
        },
        "mounts": [
            mount_of("proc", "/proc", "proc", "nosuid", "noexec", "nodev"),
            mount_of("tmpfs", "/dev", "tmpfs", "nosuid", "mode=755", "size=65536k"),
            mount_of("devpts", "/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
            mount_of("tmpfs", "/dev/shm", "shm", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),
            mount_of("mqueue", "/dev/mqueue", "mqueue", "nosuid", "noexec", "nodev"),
            mount_of("sysfs", "/sys", "sysfs", "nosuid", "noexec", "nodev", "ro"),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in NEW],
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/sys/firmware"],
            "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger"],
        },
    }
    if user:
        config["linux"]["namespaces"].append({"type": "user"})
        config["linux"]["uidMappings"] = [{"containerID": 0, "hostID": os.geteuid(), "size": 1}]
        config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": os.getegid(), "size": 1}]
    return config


def oci(*args, root=None, limit=30, given=None, env=None, through=(), **options):
    """One command of cejail-oci to its end, `through` another program; not for what leaves a container with its streams."""
    words = [*through, OCI, *(("--root", root) if root else ()), *args]
    if given is not None:
        options["stdin"] = subprocess.PIPE
        given = given.encode() if isinstance(given, str) else given
    options.setdefault("stdin", subprocess.DEVNULL)
    process = subprocess.Popen(words, env=env or environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    return finish(process, limit, given, words)


class Bundle(Folder):
    """A bundle and its states.  `with Bundle("echo hi") as b: b.run().says("hi\\n")`"""

    count = 0

    def __init__(self, script=None, **process):
        super().__init__()
        self.config = base_config()
        self.process = self.config["process"]
        if script is not None:
            self.process["args"] = ["/bin/sh", "-c", script]
        self.process.update(process)
        self.linux = self.config["linux"]

    def __enter__(self):
        super().__enter__()
        self.rootfs = self.folder("rootfs")
        for name in ("bin", "proc", "dev", "sys", "etc", "tmp", "root"):
            os.mkdir(f"{self.rootfs}/{name}")
        shutil.copy(need_root_tree(), f"{self.rootfs}/bin/busybox")
        for name in APPLETS:
            os.symlink("busybox", f"{self.rootfs}/bin/{name}")
        self.root = self / "states"
        self.ids = []
        return self

    def __exit__(self, *unused):
        # the last first: a pod's first container ends when the others' processes are reaped
        for name in (*reversed(self.ids), *(os.listdir(self.root) if os.path.isdir(self.root) else ())):
            self.oci("delete", "--force", name)
            descendants()
        super().__exit__(*unused)

    # --- the configuration ---

    def namespace(self, kind, path=None):
        """Join `path`; without one leave the namespace out."""
        spaces = [one for one in self.linux["namespaces"] if one["type"] != kind]
        self.linux["namespaces"] = spaces + ([{"type": kind, "path": path}] if path else [])

    def save(self):
        self.file("config.json", json.dumps(self.config))

    def sibling(self):
        """Another configuration of the same root: `with_config(b.sibling(), ...)`."""
        return copy.deepcopy(self.config)

    # --- commands ---

    def oci(self, *args, **options):
        return oci(*args, root=self.root, **options)

    def new_id(self):
        Bundle.count += 1
        return f"t{os.getpid()}-{Bundle.count}"

    def create(self, *options, id=None, streams=None, env=None, **more):
        """Create; its streams are files, because the container keeps them.  Returns (id, Done)."""
        self.save()
        id = id or self.new_id()
        self.ids.append(id)
        words = [OCI, "--root", self.root, "create", "--bundle", self.path, *options, id]
        out, err = (open(self / f"{id}.{kind}", "wb+") for kind in ("out", "err"))
        with out, err:
            given = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, **(streams or {})}
            process = subprocess.Popen(words, env=env or environment(), **given, **more)
            done = finish(process, args=words)
        done.out, done.err = self.output(id), self.errors(id)
        return id, done

    def created(self, *options, **more):
        """The id of a container that waits for start."""
        id, done = self.create(*options, **more)
        done.exits(0)
        return id

    def started(self, *options, **more):
        id = self.created(*options, **more)
        self.oci("start", id).exits(0)
        return id

    def run(self, *options, id=None, **more):
        """`run` to its end."""
        self.save()
        id = id or self.new_id()
        return self.oci("run", "--bundle", self.path, *options, id, **more)

    def state(self, id):
        return json.loads(self.oci("state", id).exits(0).out)

    def status(self, id):
        return self.state(id)["status"]

    def output(self, id):
        with open(self / f"{id}.out", encoding="utf-8", errors="replace") as file:
            return file.read()

    def errors(self, id):
        with open(self / f"{id}.err", encoding="utf-8", errors="replace") as file:
            return file.read()

    def ended(self, id, status=None, limit=10):
        """Wait for the container's end; we are the subreaper, so its status is ours to see."""
        pid = self.state(id)["pid"]
        if pid:
            code = wait_status(pid, limit)
            if status is not None:
                equal(code, status, f"status of {id} ({self.errors(id)})")
        wait_until(lambda: self.status(id) == "stopped", "the state 'stopped'", limit)

    def delete(self, id, *options):
        return self.oci("delete", *options, id)


def wait_status(pid, limit=10):
    """The status of a child or an orphan that came to us, as a shell has it."""

    def look():
        try:
            seen, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return (None,)
        return (os.waitstatus_to_exitcode(status),) if seen == pid else None

    code = wait_until(look, f"the end of process {pid}", limit)[0]
    return 128 - code if code is not None and code < 0 else code


def refused_oci(done, *words):
    """Exit status 1, of exec 255, and one line on standard error."""
    done.exits(255 if "exec" in done.args else 1)
    lines = done.err.splitlines()
    equal(len(lines), 1, f"lines of {done.err!r}")
    for word in words:
        contains(lines[0], word, "the message")
    return done


def nothing_is_left(bundle, id):
    """No state, no process of ours but the test's, no mount."""
    true(not os.path.exists(os.path.join(bundle.root, id)), f"the state of {id} is left")
    with open("/proc/self/mounts", encoding="utf-8") as file:
        true(bundle.path not in file.read(), "a mount of the bundle is left")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # it ended before, or while we looked
        return False


SIGKILL = signal.SIGKILL
