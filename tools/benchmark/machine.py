# SPDX-License-Identifier: Apache-2.0
"""The machine on which something was measured, and the versions of what was measured."""

import os
import pathlib
import platform
import shutil
import subprocess
import time

VERSION_COMMANDS = {
    "bwrap": ["bwrap", "--version"],
    "crun": ["crun", "--version"],
    "runc": ["runc", "--version"],
    "nsjail": ["nsjail", "--version"],
    "isolate": ["isolate", "--version"],
    "firejail": ["firejail", "--version"],
    "pasta": ["pasta", "--version"],
    "slirp4netns": ["slirp4netns", "--version"],
    "python3": ["/usr/bin/python3", "--version"],
}


def first_line(command):
    """What a command prints first, or None."""
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines and done.returncode == 0 else None


def field(path, name, separator):
    """The value after `name` in a file of "name separator value" lines, or None."""
    try:
        for line in pathlib.Path(path).read_text().splitlines():
            key, _, value = line.partition(separator)
            if key.strip() == name:
                return value.strip().strip('"')
    except OSError:
        pass
    return None


def virtualization():
    """"kvm", "kvm docker", ... or "none"; of processors alone only whether there is a hypervisor."""
    kinds = [first_line(["systemd-detect-virt", option]) for option in ("--vm", "--container")]
    kinds = [kind for kind in kinds if kind and kind != "none"]
    if not kinds and "hypervisor" in (field("/proc/cpuinfo", "flags", ":") or "").split():
        kinds = ["yes"]
    return " ".join(kinds) or "none"


def cgroup_version():
    return 2 if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else 1


def busy_s():
    """CPU time that the whole machine has spent so far, except what the host took from it."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def describe(binaries):
    """A JSON object; `binaries` are pairs of a name and a path of cejail."""
    versions = {name: first_line(command) for name, command in VERSION_COMMANDS.items()}
    for name, path in binaries:
        versions[name] = first_line([path, "version"])
    commit = first_line(["git", "-c", "safe.directory=*", "describe", "--always", "--dirty"])
    return {
        "cpu": field("/proc/cpuinfo", "model name", ":") or platform.machine(),
        "cpus": os.cpu_count(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "kernel": platform.release(),
        "system": field("/etc/os-release", "PRETTY_NAME", "=") or "Linux",
        "virtual": virtualization(),
        "cgroup": cgroup_version(),
        "load": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit,
        "versions": versions,
    }


def sentence(machine):
    """One line for people."""
    kind = "hardware" if machine["virtual"] == "none" else f"virtual: {machine['virtual']}"
    return (
        f"{machine['cpu']}, {machine['cpus']} CPUs ({kind}), Linux {machine['kernel']}, "
        f"{machine['system']}, cgroup v{machine['cgroup']}, {machine['date'][:10]}"
    )
