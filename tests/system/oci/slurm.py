# SPDX-License-Identifier: Apache-2.0
"""Slurm with cejail-oci as the runtime of its jobs: a distributed engine for real, on the test machine of the long form."""

import glob
import json
import os
import pwd
import shutil
import subprocess

from bundles import APPLETS, OCI, base_config
from engines import has_cgroups
from harness import *  # noqa: F403

EXAMPLES = "/usr/local/share/cejail/examples"
JOBS, WORKER = 100, "cejail-test"


def command(*words, limit=60):
    return finish(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()), limit, args=words)


def configure():
    node = os.uname().nodename
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo", encoding="ascii") if line.startswith("MemTotal")) // 1024
    with open(f"{EXAMPLES}/slurm.conf", encoding="ascii") as file:
        text = file.read()
    # the name of this machine need not have an address
    text = text.replace("SlurmctldHost=NODE", "SlurmctldHost=NODE(127.0.0.1)").replace("NodeName=NODE", "NodeName=NODE NodeAddr=127.0.0.1")
    text = text.replace("NODE", node).replace("CPUs=2", f"CPUs={os.cpu_count()}").replace("RealMemory=900", f"RealMemory={memory - 50}")
    os.makedirs("/etc/slurm", exist_ok=True)
    with open("/etc/slurm/slurm.conf", "w", encoding="ascii") as file:
        file.write(text)
    for name, place in (("slurm-cgroup.conf", "cgroup.conf"), ("slurm-oci.conf", "oci.conf"), ("slurm-prolog.sh", "prolog.sh")):
        shutil.copy(f"{EXAMPLES}/{name}", f"/etc/slurm/{place}")
    os.chmod("/etc/slurm/prolog.sh", 0o755)
    slurm = pwd.getpwnam("slurm")
    for path in ("/var/lib/slurm", "/var/lib/slurm/slurmctld", "/var/log/slurm"):
        os.makedirs(path, exist_ok=True)
        os.chown(path, slurm.pw_uid, slurm.pw_gid)


class Slurm(Folder):
    def __enter__(self):
        if not shutil.which("slurmctld", path=environment()["PATH"]) or not has_cgroups():
            raise Skip("Slurm is not installed here: the test machine of the long form has it")
        super().__enter__()
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        # getaddrinfo(3) with AI_ADDRCONFIG, as Slurm calls it, wants an interface besides lo
        for words in ("link add slurm0 type dummy", "addr add 10.55.0.1/24 dev slurm0", "link set slurm0 up"):
            command("ip", *words.split())
        configure()
        for unit in ("munge", "slurmctld", "slurmd"):
            command("systemctl", "restart", unit, limit=120).exits(0)
        try:
            wait_until(lambda: "idle" in command("sinfo", "-h", "-o", "%T").out, "an idle node", 20, 1)
        except Failure as failure:
            raise Failure(f"{failure}\n{self.logs()}") from None

    def logs(self):
        """What the daemons said at last."""
        out = ""
        for name in ("slurmctld", "slurmd"):
            out += command("tail", "-n", "12", f"/var/log/slurm/{name}.log").out + command("journalctl", "-n", "6", "-u", name).out
        return out + command("sinfo", "-R").out

    def __exit__(self, *unused):
        for unit in ("slurmd", "slurmctld", "munge"):
            command("systemctl", "stop", unit, limit=120)
        for path in ("/run/slurm-oci", "/etc/slurm", "/var/lib/slurm", "/var/log/slurm"):
            shutil.rmtree(path, ignore_errors=True)
        command("ip", "link", "del", "slurm0")
        super().__exit__(*unused)

    def bundle(self):
        """For the worker's user, with a limit of processes; Slurm has the limit of memory."""
        worker = pwd.getpwnam(WORKER)
        config = base_config()
        config["linux"]["namespaces"].append({"type": "user"})
        config["linux"].update(
            uidMappings=[{"containerID": 0, "hostID": worker.pw_uid, "size": 1}],
            gidMappings=[{"containerID": 0, "hostID": worker.pw_gid, "size": 1}],
        )  # fmt: skip
        config["process"]["rlimits"] = [{"type": "RLIMIT_NPROC", "soft": 64, "hard": 64}]
        root = self.folder("bundle")
        for name in ("bin", "proc", "dev", "sys", "etc", "tmp", "root"):
            os.makedirs(f"{root}/rootfs/{name}")
        shutil.copy(need_root_tree(), f"{root}/rootfs/bin/busybox")
        for name in APPLETS:
            os.symlink("busybox", f"{root}/rootfs/bin/{name}")
        config["root"]["path"] = f"{root}/rootfs"
        with open(f"{root}/config.json", "w", encoding="utf-8") as file:
            json.dump(config, file)
        for path, folders, files in os.walk(root):
            for name in (".", *folders, *files):
                os.chown(os.path.join(path, name), worker.pw_uid, worker.pw_gid, follow_symlinks=False)
        os.chmod(self.path, 0o755)
        return root

    def submit(self, name, script, *options):
        words = ["runuser", "-u", WORKER, "--", "srun", "-J", name, f"--container={self.path}/bundle", "--chdir=/", *options, "/bin/sh", "-c", script]
        return subprocess.Popen(words, cwd="/", env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def states(self):
        """{name of a job: state}"""
        jobs = {}
        for line in command("scontrol", "-o", "show", "jobs").out.splitlines():
            fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
            jobs[fields["JobName"]] = fields["JobState"]
        return jobs


@test("a hundred untrusted jobs of Slurm end with their states and leave nothing", who="machine root", limit=1500)
def _():
    with Slurm() as s:
        s.bundle()
        usual = ("--mem=32", "--time=5")
        jobs = {f"job{i}": s.submit(f"job{i}", f"echo {i}; exit {i % 3}", *usual) for i in range(JOBS - 3)}
        jobs["memory"] = s.submit("memory", "tail /dev/zero", "--mem=24", "--time=5")
        jobs["forks"] = s.submit("forks", "f() { f | f & }; f; while :; do sleep 1; done", "--mem=64", "--time=1")
        jobs["endless"] = s.submit("endless", "trap '' TERM; while :; do sleep 1; done", *usual[:1], "--time=1")
        done = {name: finish(process, 1200) for name, process in jobs.items()}
        for i in range(JOBS - 3):
            equal((done[f"job{i}"].out, done[f"job{i}"].code), (f"{i}\n", i % 3), f"job {i} ({done[f'job{i}']!r}; {s.logs()})")
        wait_until(lambda: command("squeue", "-h").out == "", "an empty queue", 120, 1)
        states = s.states()
        wanted = {f"job{i}": "COMPLETED" if i % 3 == 0 else "FAILED" for i in range(JOBS - 3)}
        wanted.update(memory="OUT_OF_MEMORY", forks="TIMEOUT", endless="TIMEOUT")
        true(states == wanted, f"states of jobs: {set(states.items()) ^ set(wanted.items())}\n{s.logs()}")
        equal(glob.glob("/run/slurm-oci/*/*"), [], "states of containers that are left")
        worker = str(pwd.getpwnam(WORKER).pw_uid)
        wait_until(lambda: command("pgrep", "-u", worker, "-x", "sh|sleep|tail|cejail-oci").out == "", "the end of all processes", 60)
        equal(glob.glob("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_*"), [], "cgroups of jobs that are left")
        true(os.path.exists(OCI), "the runtime")
