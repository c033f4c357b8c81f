# SPDX-License-Identifier: Apache-2.0
"""SELinux: the labels of a container are those of its configuration, and the policy confines it (tests/machine/selinux)."""

import os
import subprocess

from bundles import *  # noqa: F403
from cri_client import Cri
from engines import Podman
from harness import *  # noqa: F403

PROCESS = "system_u:system_r:container_t:s0:c1,c2"
FILES = "system_u:object_r:container_file_t:s0:c1,c2"
SHARED = "system_u:object_r:container_file_t:s0"
OTHERS = "system_u:object_r:container_file_t:s0:c3,c4"
OWN_LABEL = "cat /proc/self/attr/current"


class Labelled(Bundle):
    def __enter__(self):
        super().__enter__()
        self.process["selinuxLabel"] = PROCESS
        self.linux["mountLabel"] = FILES
        label(FILES, self.rootfs)
        return self


def label(wanted, *paths):
    subprocess.run(["chcon", "-R", wanted, *paths], check=True)


def text_of(label):
    """What attr/current reads: a NUL is behind it."""
    return label + "\0"


@test("a container has the label of its configuration, and so have its new file systems", who="selinux root")
def _():
    with Labelled(f"{OWN_LABEL}; echo; cat /proc/mounts; ls /dev/mqueue && echo x > /dev/shm/x && echo wrote") as b:
        out = b.run().exits(0).out
        equal(out.splitlines()[0], text_of(PROCESS), "the process")
        for place in ("/dev", "/dev/shm", "/dev/pts", "/sys/firmware"):
            contains([line for line in out.splitlines() if f" {place} " in line][0], f'context="{FILES}"', f"the mount at {place}")
        contains(out, "wrote\n", "a file on a new file system")
        b.config["mounts"] = [mount for mount in b.config["mounts"] if not mount["destination"].startswith("/dev")]
        contains(b.run().out, f'tmpfs /dev tmpfs rw,context="{FILES}"', "the /dev that a configuration leaves out")


@test("the policy confines what has the label, and not what has none", who="selinux root")
def _():
    script = "cat /host/secret; echo more >> /other/file && echo wrote"
    with Labelled(script) as b:
        host, other = b.folder("host"), b.folder("other")
        b.file("host/secret", "secret\n")
        b.file("other/file", "")
        label(OTHERS, other)
        for source in (host, other):
            b.config["mounts"].append(mount_of("bind", f"/{os.path.basename(source)}", source, "rbind"))
        done = b.run()
        equal(done.out, "", "the output")
        for text in ("open '/host/secret'", "create /other/file"):
            contains(done.err, f"can't {text}: Permission denied", "a file that the policy closes")
        del b.process["selinuxLabel"], b.linux["mountLabel"]
        b.run().exits(0).says("secret\nwrote\n")


@test("exec has the label of the container or the one of its flag", who="selinux root")
def _():
    with Labelled("exec sleep 1000") as b:
        id = b.started()
        b.oci("exec", id, "sh", "-c", OWN_LABEL).exits(0).says(text_of(PROCESS))
        other = f"{PROCESS},c5"
        b.oci("exec", "--process-label", other, id, "sh", "-c", OWN_LABEL).exits(0).says(text_of(other))


@test("a label that the policy does not have is an error and no program starts", who="selinux root")
def _():
    wrong = PROCESS.replace("container_t", "nobody_has_this_t")
    with Labelled("echo started") as b:
        b.process["selinuxLabel"] = wrong
        done = b.run()
        true(done.code != 0 and "started" not in done.out, f"it ran: {done}")
        contains(done.err, f"process.selinuxLabel '{wrong}'", "the message")
        b.process["selinuxLabel"] = PROCESS
        b.linux["mountLabel"] = wrong
        done = b.run()
        true(done.code != 0 and "started" not in done.out, f"it ran: {done}")
        contains(done.err, "context", "the message")


@test("a container of podman has the label that podman gives it", who="selinux root", limit=240)
def _():
    with Podman() as p:
        label(SHARED, p.rootfs)
        shared = p.folder("shared")
        options = ("--security-opt", "label=level:s0:c1,c2", "-v", f"{shared}:/shared:Z")
        script = f"{OWN_LABEL}; echo; echo x > /shared/x && echo > /dev/shm/x && echo wrote"
        p.sh(script, *options).exits(0).says(f"{text_of(PROCESS)}\nwrote\n")
        p.sh("cat /shared/x", "--security-opt", "label=level:s0:c1,c3", "-v", f"{shared}:/shared").exits(1)


@test("a container of a pod has the label that containerd gives it", who="selinux root", limit=240)
def _():
    with Cri(has_labels=True) as c:
        label(SHARED, c / "root")  # its snapshots are copies
        pod = c.pod("one")
        first = c.container(pod, "first", "/bin/sleep", "1000")
        out, _, code = c.execute(first, "/bin/sh", "-c", OWN_LABEL)
        equal((code, out.split(":")[:3]), (0, PROCESS.split(":")[:3]), "the label")
