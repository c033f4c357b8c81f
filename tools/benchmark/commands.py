# SPDX-License-Identifier: Apache-2.0
"""The command lines of cejail and of its peers for the same program.

Each is the nearest equivalent of `cejail run --network none`: every namespace, this host's /usr
read-only, /proc, /dev and /tmp.
"""

import json
import os
import shutil

from .turns import PATH, Command

PYTHON = "/usr/bin/python3"
LINKS = (("usr/bin", "/bin"), ("usr/lib", "/lib"), ("usr/lib64", "/lib64"))


def bwrap(_work, _who, argv):
    links = [word for target, name in LINKS for word in ("--symlink", target, name)]
    return ["bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", *links,
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", *argv]


# The options with which codex and srt start bwrap, as tests/system/bwrap/bwrap_lines.py has them; {0} is a workspace.
CALLERS = {
    "codex": "--new-session --die-with-parent --ro-bind / / --dev /dev --bind {0} {0} --ro-bind {0}/.git {0}/.git"
             " --unshare-user --unshare-pid --unshare-net --proc /proc",
    "srt": "--new-session --die-with-parent --unshare-net --ro-bind / / --bind {0} {0} --ro-bind /dev/null {0}/.git/config"
           " --tmpfs /mnt --dev /dev --unshare-pid --proc /proc --setenv SANDBOX_RUNTIME 1 --unsetenv USER",
}
LIMITS = "--cejail-memory 1G --cejail-pids 500 --cejail-timeout 60s --cejail-cpu-time 60s --cejail-result-fd 2"


def of_caller(program, caller, workspace, *more):
    return [program, *CALLERS[caller].format(workspace).split(), *more, "--", *BARE["true"]]


def sandbox(binary):
    """What `cejail bwrap` executes, and a link called bwrap leads to."""
    return os.path.join(os.path.dirname(os.path.realpath(binary)), "../libexec/cejail/bwrap")


def mount(path, kind, source, *options):
    return {"destination": path, "type": kind, "source": source, "options": ["nosuid", *options]}


def oci_config(uid, argv):
    ids = [{"containerID": 0, "hostID": uid, "size": 1}]
    kinds = ("user", "pid", "mount", "network", "ipc", "uts", "cgroup")
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": True},
        "process": {
            "args": argv, "cwd": "/", "env": ["PATH=/usr/bin:/bin"], "user": {"uid": 0, "gid": 0},
            "noNewPrivileges": True, "capabilities": {},
        },
        "mounts": [
            mount("/usr", "bind", "/usr", "rbind", "ro", "nodev"),
            mount("/proc", "proc", "proc"),
            mount("/dev", "tmpfs", "tmpfs"),
            mount("/tmp", "tmpfs", "tmpfs"),
        ],
        "linux": {"uidMappings": ids, "gidMappings": ids, "namespaces": [{"type": kind} for kind in kinds]},
    }


def make_bundle(work, who, argv):
    """A directory with a root of mount points and a config.json, as OCI runtimes want it."""
    bundle = f"{work}/bundle-{who.uid}-{os.path.basename(argv[0])}"
    if os.path.exists(bundle):
        return bundle
    for name in ("usr", "proc", "dev", "tmp"):
        os.makedirs(f"{bundle}/rootfs/{name}")
    for target, name in LINKS:
        os.symlink(target, f"{bundle}/rootfs{name}")
    with open(f"{bundle}/config.json", "w", encoding="utf-8") as file:
        json.dump(oci_config(who.uid, argv), file)
    return bundle


def crun(work, who, argv):
    return ["crun", "--cgroup-manager=disabled", "--root", f"{who.runtime}/crun",
            "run", "--bundle", make_bundle(work, who, argv), "bench-{n}"]


def runc(work, who, argv):
    return ["runc", "--rootless", "true", "--root", f"{who.runtime}/runc",
            "run", "--bundle", make_bundle(work, who, argv), "bench-{n}"]


def nsjail(_work, _who, argv):
    links = [word for target, name in LINKS for word in ("--symlink", f"{target}:{name}")]
    devices = [word for name in ("null", "zero", "urandom") for word in ("--bindmount", f"/dev/{name}")]
    return ["nsjail", "--mode", "o", "--really_quiet", "--bindmount_ro", "/usr", *links, *devices,
            "--tmpfsmount", "/tmp", "--", *argv]


def isolate(_work, _who, argv):
    box = ["isolate", "--silent", "--box-id={slot}"]
    words = [" ".join([*box, "--init"]), " ".join([*box, "--processes=64", "--run", "--", '"$@"']),
             " ".join([*box, "--cleanup"])]
    return ["sh", "-c", f"{words[0]} >/dev/null && {words[1]} && {words[2]}", "isolate", *argv]


def firejail(_work, _who, argv):
    return ["firejail", "--quiet", "--noprofile", "--net=none", "--private", "--private-dev",
            "--private-tmp", "--caps.drop=all", "--nonewprivs", "--", *argv]


# A peer, its command line, and what it does not do as it is started here.
PEERS = (
    ("bwrap", bwrap, "limits, a seccomp filter of its own, Landlock, a filtered network, a result"),
    ("crun", crun, "a filtered network, a result; here also no cgroup and no seccomp filter"),
    ("runc", runc, "a filtered network, a result; here also no seccomp filter"),
    ("nsjail", nsjail, "Landlock, a filtered network, a result; here also no cgroup and no seccomp filter"),
    ("isolate", isolate, "user namespaces, a seccomp filter, a network; it is a setuid program"),
    ("firejail", firejail, "a root of its own, limits, a result; it is a setuid program"),
)
LACKS = {name: lacks for name, _, lacks in PEERS}


def resolve(argv):
    """The same with the program's full path; None if it is not installed."""
    program = shutil.which(argv[0], path=PATH)
    return [program, *argv[1:]] if program else None


def peers(work, who, argv):
    """Commands of the peers that are installed, and why the others are not among them."""
    found, absent = [], {}
    for name, make, _ in PEERS:
        if shutil.which(name, path=PATH):
            found.append(Command(name, resolve(make(work, who, argv))))
        else:
            absent[name] = "not installed"
    return found, absent


def run(binary, *words, network="none"):
    """`cejail run` with these words."""
    return [binary, "run", "-q", "--network", network, *words]


def cold(binary, program):
    """Python code goes through the profile, as a user runs it: the code arrives as a file."""
    if program == "python":
        return run(binary, "-p", "python", "-c", "print(1)")
    return run(binary, "-p", "base", "--", "/bin/true")


BARE = {"true": ["/bin/true"], "python": [PYTHON, "-I", "-B", "-c", "print(1)"]}
