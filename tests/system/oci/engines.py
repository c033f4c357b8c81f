# SPDX-License-Identifier: Apache-2.0
"""podman and containerd with cejail-oci as their runtime, in folders of their own: no registry, no configuration of the host."""

import glob
import os
import pwd
import shutil
import subprocess

from bundles import OCI, Bundle
from harness import SLOW, WHO, Skip, environment, finish, is_held_by_cgroup, wait_until

CONF = """
[containers]
cgroups = "{cgroups}"
pids_limit = 0
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
runtime = "{runtime}"
runtime_supports_json = ["cejail-oci", "crun", "runc"]
runtime_supports_nocgroup = ["cejail-oci", "crun"]
[engine.runtimes]
cejail-oci = ["{oci}"]
"""


def need(program):
    path = shutil.which(program, path=environment()["PATH"])
    if not path:
        raise Skip(f"{program} is not installed")
    return path


def has_cgroups():
    """The test machine's root: cgroup v2 with its controllers, which podman's cgroups need."""
    return WHO == "root" and all(is_held_by_cgroup(limit) for limit in ("memory", "pids"))


class Engine(Bundle):
    """A root file system for an engine, and a command line of its own.

    root's engines run in a mount namespace whose /run nobody else sees: their mounts would be in the inventory of tests
    that run at the same time.
    """

    enter = ()

    def separate(self, command, output=subprocess.DEVNULL):
        """Keep a mount namespace by a process that executes `command`; every call enters it."""
        # systemd's sockets stay: podman's manager "systemd" and our helper ask it
        script = (
            'mount --rbind /run "$1" && mount -t tmpfs -o mode=755 none /run && for d in dbus systemd; do mkdir /run/$d; '
            'test ! -d "$1/$d" || mount --rbind "$1/$d" /run/$d; done; umount -l "$1" && touch /run/ready && shift && exec "$@"'
        )
        self.keeper = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", self.folder("run-of-host"), *command],
            env=self.env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        self.inside = f"/proc/{self.keeper.pid}/root"
        wait_until(lambda: os.path.exists(f"{self.inside}/run/ready"), "the mount namespace")
        self.enter = ("nsenter", "-m", "-t", str(self.keeper.pid))

    def end_separation(self):
        self.keeper.terminate()
        self.keeper.wait(20 * SLOW)

    def call(self, *words, given=None, limit=60, **options):
        words = (*self.enter, *words)
        if given is not None:
            options["stdin"] = subprocess.PIPE
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        return finish(process, limit, given and given.encode(), words)


def need_subordinate_ids():
    need("newuidmap")
    name = pwd.getpwuid(os.geteuid()).pw_name
    for kind in ("subuid", "subgid"):
        try:
            with open(f"/etc/{kind}", encoding="utf-8") as file:
                if any(line.split(":")[0] == name for line in file):
                    continue
        except OSError:
            pass
        raise Skip(f"{name} has no range in /etc/{kind}")


class Podman(Engine):
    """`with Podman() as p: p.run("echo", "hi").says("hi\\n")`"""

    def __init__(self, runtime="cejail-oci"):
        super().__init__()
        self.runtime = runtime

    def __enter__(self):
        need("podman")
        need("conmon")
        if WHO == "user":
            need_subordinate_ids()
        super().__enter__()
        os.mkdir(f"{self.rootfs}/run")
        self.cgroups = "enabled" if has_cgroups() else "disabled"
        conf = self.file("containers.conf", CONF.format(cgroups=self.cgroups, oci=OCI, runtime=self.runtime))
        places = f'runroot = "{self.path}/runroot"\ngraphroot = "{self.path}/store"\n'
        storage = self.file("storage.conf", f'[storage]\ndriver = "vfs"\n{places}')
        self.env = environment(HOME=self.folder("home"), CONTAINERS_CONF=conf, CONTAINERS_STORAGE_CONF=storage)
        self.env["XDG_RUNTIME_DIR"] = self.folder("runtime")
        os.chmod(self / "runtime", 0o700)
        self.globals = ["podman", "--root", self / "store", "--runroot", self / "runroot", "--tmpdir", self / "tmp"]
        # Not with --runtime-flag root=...: podman's cleanup process calls the runtime without it.
        self.root = self / "runtime/cejail-oci"
        if WHO == "root":
            self.separate(["sleep", "infinity"])
            self.root = f"{self.inside}/run/cejail-oci"
        return self

    def __exit__(self, *unused):
        self.podman("pod", "rm", "--all", "--force", "--time", "0")
        self.podman("rm", "--all", "--force", "--time", "0")
        if WHO == "user":  # files of subordinate ids, and the process that keeps podman's namespaces
            self.podman("unshare", "rm", "-rf", self / "store")
            self.podman("system", "migrate")
        if WHO == "root":
            self.end_separation()
        self.root = self / "states"
        super().__exit__(*unused)

    def states(self):
        """Ids of containers that have one."""
        return [os.path.basename(path) for path in glob.glob(f"{self.root}/*")]

    def podman(self, *args, **options):
        return self.call(*self.globals, *args, **options)

    def options(self, *options):
        return (*options, "--rootfs", self.rootfs)

    def run(self, *args, options=(), **more):
        return self.podman("run", "--rm", *self.options(*options), *args, **more)

    def sh(self, script, *options, **more):
        return self.run("sh", "-c", script, options=options, **more)

    def in_terminal(self, *args):
        """A podman command with a terminal as its streams; what it printed."""
        words = " ".join([*map(str, self.globals), *(f"'{arg}'" for arg in args)])
        return self.call("script", "-qec", words, "/dev/null")

    def import_image(self, name):
        # its files are root's in every user namespace, as those of other images
        self.call("tar", "-C", self.rootfs, "--owner", "0", "--group", "0", "-cf", self / "root.tar", ".").exits(0)
        self.podman("import", self / "root.tar", name).exits(0)

    def value(self, name, template):
        return self.podman("inspect", "--format", template, name).exits(0).out.strip()


class Containerd(Engine):
    """A containerd; its namespace ends with it."""

    def begin(self):
        """Writes config.toml; what stands before containerd's command."""
        self.file(
            "config.toml",
            f'version = 2\nroot = "{self.path}/root"\nstate = "/run/containerd"\n'
            'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n',
        )
        return []

    def __enter__(self):
        for program in ("containerd", "ctr", "containerd-shim-runc-v2"):
            need(program)
        super().__enter__()
        self.env = environment()
        before = self.begin()
        with open(self / "log", "wb") as log:
            self.separate([*before, "containerd", "--config", self / "config.toml"], log)
        wait_until(lambda: self.ctr("version").code == 0, "containerd", 20)
        return self

    def __exit__(self, *unused):
        for name in self.ctr("container", "ls", "-q").out.split():
            self.ctr("task", "kill", "-s", "9", name)
            self.ctr("task", "rm", "-f", name)
            self.ctr("container", "rm", name)
        self.end_separation()
        super().__exit__(*unused)

    def ctr(self, *args, **options):
        return self.call("ctr", *args, **options)

    def task(self, *args, options=(), **more):
        return self.ctr("run", "--rm", "--runc-binary", OCI, *options, "--rootfs", self.rootfs, self.new_id(), *args, **more)

    def in_terminal(self, *args):
        words = " ".join(f"'{arg}'" for arg in ("ctr", *args))
        return self.call("script", "-qec", words, "/dev/null")
