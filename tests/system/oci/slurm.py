# SPDX-License-Identifier: Apache-2.0
"""Slurm with cejail-oci as the runtime of its jobs: a distributed engine for real, on the test machine of the long form."""

import collections
import glob
import json
import os
import pwd
import shutil
import subprocess

from bundles import APPLETS, base_config
from engines import has_cgroups
from harness import *  # noqa: F403

EXAMPLES = "/usr/local/share/doc/cejail/examples"
WORKER = "cejail-test"
JOBS = 100
SCRIPT = "#!/bin/sh\necho $SLURM_ARRAY_TASK_ID\nexit $((SLURM_ARRAY_TASK_ID % 3))\n"


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
    for name, place in (("slurm-cgroup.conf", "cgroup.conf"), ("slurm-oci.conf", "oci.conf"), ("slurm-prolog.sh", "prolog.sh"), ("slurm-epilog.sh", "epilog.sh")):
        shutil.copy(f"{EXAMPLES}/{name}", f"/etc/slurm/{place}")
        os.chmod(f"/etc/slurm/{place}", 0o755 if place.endswith(".sh") else 0o644)
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
        for unit in ("slurmd", "*slurmstepd.scope", "slurmctld", "munge"):
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

    def submit(self, program, name, *words):
        """A job of the worker, in the container."""
        words = ["runuser", "-u", WORKER, "--", program, "-J", name, f"--container={self.path}/bundle", "--chdir=/", *words]
        return subprocess.Popen(words, cwd="/", env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def srun(self, name, script, *options):
        return self.submit("srun", name, *options, "/bin/sh", "-c", script)

    def sbatch(self, name, count, script, *options):
        """An array of jobs; the output of the first is in the file outputs/0."""
        worker = pwd.getpwnam(WORKER)
        os.chown(self.folder("outputs"), worker.pw_uid, worker.pw_gid)
        place = (f"--array=0-{count - 1}", f"--output={self.path}/outputs/%a")
        finish(self.submit("sbatch", name, *place, *options, self.file("script", script)), 60).exits(0)

    def outputs(self, count):
        """(number, what it said) of each job of the array."""
        for i in range(count):
            with open(f"{self.path}/outputs/{i}", encoding="utf-8") as file:
                yield i, file.read()

    def ended(self):
        """How many jobs have ended with (name, state, status)."""
        jobs = collections.Counter()
        with open("/var/log/slurm/jobs", encoding="utf-8") as file:
            for line in file:
                fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
                jobs[fields["Name"], fields["JobState"], fields["ExitCode"] if fields["JobState"] == "FAILED" else ""] += 1
        return jobs


@test("untrusted jobs of Slurm end with their states and leave nothing", who="machine root", limit=1500)
def _():
    with Slurm() as s:
        s.bundle()
        many = JOBS - 3
        s.sbatch("many", many, SCRIPT, "--mem=32", "--time=60")
        done = {
            "memory": s.srun("memory", "tail /dev/zero", "--mem=24", "--time=60"),
            "forks": s.srun("forks", "f() { sleep 1000 & f | f; }; f & exec tail -f /dev/null", "--mem=64", "--time=1"),
            "endless": s.srun("endless", "trap '' TERM; while :; do sleep 1; done", "--mem=32", "--time=1"),
        }
        done = {name: finish(process, 1200) for name, process in done.items()}
        wait_until(lambda: command("squeue", "-h").out == "", "an empty queue", 600, 1)
        wanted = collections.Counter(("many", "FAILED", f"{i % 3}:0") if i % 3 else ("many", "COMPLETED", "") for i in range(many))
        wanted.update([("memory", "OUT_OF_MEMORY", ""), ("forks", "TIMEOUT", ""), ("endless", "TIMEOUT", "")])
        odd = {i: text for i, text in s.outputs(many) if text != f"{i}\n"}
        equal(s.ended(), wanted, f"ends of jobs (outputs: {odd}, {done!r}\n{s.logs()})")
        equal(odd, {}, "outputs that are not the job's number")
        contains(done["forks"].err, "can't fork", "the output of the job that forks")
        worker = str(pwd.getpwnam(WORKER).pw_uid)
        wait_until(lambda: command("pgrep", "-u", worker, "-x", "sh|sleep|tail|cejail-oci").out == "", "the end of all processes", 60)
        for what in ("/run/slurm-oci/*", "/var/lib/slurm/slurmd/oci-job*", "/sys/fs/cgroup/system.slice/*slurmstepd.scope/job_*"):
            wait_until(lambda: not glob.glob(what), f"the removal of {what}", 20)
        tried(JOBS)
