#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The budget: how many system calls and page faults of cejail a plain run costs, against budget.txt.

inject (tests/system/faults/inject.c) counts the calls of all processes of a run until the program is executed, and
those of the supervisor and init until their end.  The calls of the program do not count.  No time is measured.

What else would change the counts is the same everywhere: each run has a file tree of its own with the host's /usr and
a small /etc, an environment of its own, no terminal, and the records and caches of an earlier run.  A count is the
least one of several runs, because a sample of the jail's processes, or two events at once, cost calls by chance.
The kernel stays the host's.  On another release than that of the table only the sums are compared.

A program of its own, it writes the counts that failed tests tell into the table: make budget-update.
"""

import collections
import os
import re
import subprocess
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "budget.txt")
SUMS = ("calls", "mounts", "faults")
UNCOUNTED = {"poll"}  # how many events the supervisor finds at once is chance, and so is how often its timer wakes it
RUNS = 5  # of which the least count is taken
TURNS = 3  # while a count is above the table
FALL = 0.01  # calls fewer than this share of the table's make the table obsolete
OTHER_KERNEL = 0.05  # more calls than the table's on another release of the kernel
FAULTS = 0.15  # where the linker places data, and what the page cache has, move some faults
FAULTS_FALL = 0.25

# The columns: who runs it, where its limits are enforced, and what is run.
PLAIN = ("-p", "shell", "--", "/bin/true")
COLUMNS = {
    "none": ("root", "", ("--network", "none", *PLAIN)),
    "public": ("root", "", ("--network", "public", *PLAIN)),
    "python": ("root", "", ("--network", "none", "-p", "python", "-c", "pass")),
    "user": ("user", "", ("--network", "none", *PLAIN)),
    "cgroup2": ("root", "cgroup2", ("--network", "none", *PLAIN)),
    "strict": ("root", "cgroup2", ("--network", "none", "--strict", *PLAIN)),
}

# $1: the installed tree; $2: the probes; $3: "cgroup2", or "" for none; $4: who; $5: how many runs.
WORLD = r"""
set -eu
umask 022
mount -t tmpfs -o mode=755 none /mnt
cd /mnt
mkdir dev etc opt proc run sys tmp usr var old opt/cejail opt/probes
chmod 1777 tmp
for way in /bin /sbin /lib /lib64; do ln -s "usr$way" ".$way"; done
for way in dev proc sys usr; do mount --rbind "/$way" "$way"; done
mount --bind "$1" opt/cejail
mount --bind "$2" opt/probes
mount -t tmpfs -o mode=1777 none dev/shm
[ "$3" = cgroup2 ] || mount -t tmpfs none sys/fs/cgroup
mkdir -p etc/alternatives etc/dpkg/origins etc/fonts etc/java-17-openjdk/security etc/ssl/certs etc/texmf etc/xml
ln -s /usr/bin/mawk etc/alternatives/awk
ln -s /usr/share/zoneinfo/UTC etc/localtime
printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n' > etc/passwd
printf 'root:x:0:\nuser:x:1000:\n' > etc/group
printf '127.0.0.1 localhost\n' > etc/hosts
printf 'nameserver 192.0.2.1\n' > etc/resolv.conf
for name in debian_version mime.types os-release protocols services ssl/openssl.cnf timezone; do
	printf '# %s\n' "$name" > "etc/$name"
done
head -c 8192 /dev/zero > etc/ld.so.cache # more than one page
pivot_root . old
umount -l old
cd /
ulimit -c 0
ulimit -n 1024
ulimit -s 8192
as=''
[ "$4" != user ] || as='setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all'
count=$5
shift 5
run() {
	env -i PATH=/usr/bin:/bin HOME=/tmp LANG=C.UTF-8 $as "$@" </dev/null
}
run /opt/cejail/bin/cejail run -q "$@"
for turn in $(seq "$count"); do
	run /opt/probes/inject /tmp/report list -- /opt/cejail/bin/cejail run -q "$@"
	cat /tmp/report
	rm -f /tmp/report
done
"""


# --- the table ------------------------------------------------------------------


def kernel():
    return ".".join(os.uname().release.split(".")[:2])


def read_table():
    """(the comments, {column: {name: count}}, {column: the kernel it was counted on})."""
    with open(TABLE, encoding="ascii") as file:
        lines = file.read().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    columns, kernels = rows[0][1:], rows[1][1:]
    table = {column: {} for column in columns}
    for name, *counts in rows[2:]:
        for column, number in zip(columns, counts):
            if number != ".":
                table[column][name] = int(number)
    return comments, table, dict(zip(columns, kernels))


def write_table(comments, table, kernels):
    names = sorted({name for counts in table.values() for name in counts if name not in SUMS})
    rows = [["name", *COLUMNS], ["kernel", *(kernels.get(column, ".") for column in COLUMNS)]]
    rows += [[name, *(str(table.get(column, {}).get(name, ".")) for column in COLUMNS)] for name in (*SUMS, *names)]
    lines = [f"{row[0]:24}" + "".join(f"{word:>9}" for word in row[1:]) for row in rows]
    with open(TABLE, "w", encoding="ascii") as file:
        file.write("\n".join([*comments, *lines]) + "\n")


def update(log):
    """Takes over the lines that begin with "counted"."""
    comments, table, kernels = read_table()
    found = re.findall(r"^ *counted (\S+) (\S+) (.*)$", log, re.MULTILINE)
    for column, release, words in found:
        pairs = (word.split("=") for word in words.split())
        table[column], kernels[column] = {name: int(count) for name, count in pairs}, release
    write_table(comments, table, kernels)
    print(f"{TABLE}: {', '.join(column for column, *_ in found) or 'nothing'} counted anew")


# --- counting -------------------------------------------------------------------


def counts_of(report):
    """Of one run.  Calls of a sample of the jail's processes have a point in their number, and the first sample of a
    run that lasts takes memory of its own, once."""
    names = re.findall(r"^call \S+ \d+ ([a-z0-9_]+)#\d+ ", report, re.MULTILINE)
    counts = collections.Counter(name for name in names if name not in UNCOUNTED)
    if re.search(r"^call \S+ \d+ [a-z0-9_]+#\d+\.", report, re.MULTILINE):
        counts.subtract(("mmap", "munmap"))
    faults = re.findall(r"^faults \S+ (\d+)$", report, re.MULTILINE)
    return {**counts, "faults": sum(map(int, faults))}


def count(column, harness):
    """The least count of each name."""
    who, cgroup, args = COLUMNS[column]
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(harness.CEJAIL)))
    command = ["unshare", "-m", "/bin/sh", "-c", WORLD, "world", prefix, harness.PROBES, cgroup, who, str(RUNS), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 * harness.SLOW)
    if done.returncode != 0:
        raise harness.Failure(f"the runs of '{column}' ended with status {done.returncode}: {done.stderr[-2000:]}")
    seen = [counts_of(report) for report in re.split(r"(?<=\n)(?=call supervisor 1 )", done.stdout) if report]
    harness.equal(len(seen), RUNS, "the number of reports")
    harness.tried(RUNS)
    return least(*seen)


def least(*seen):
    names = {name for counts in seen for name in counts if all(name in others for others in seen)}
    least_of = {name: min(counts[name] for counts in seen) for name in names}
    calls = [number for name, number in least_of.items() if name not in SUMS]
    return {**least_of, "calls": sum(calls), "mounts": least_of.get("mount", 0) + least_of.get("move_mount", 0)}


# --- the verdict -----------------------------------------------------------------


def changes(seen, wanted, is_worse):
    """As "prctl 94 -> 112", the largest first."""
    both = {name: (wanted.get(name, 0), seen.get(name, 0)) for name in {*seen, *wanted}}
    changed = [(new - old, f"{name} {old} -> {new}") for name, (old, new) in both.items() if is_worse(old, new)]
    return [text for _, text in sorted(changed, key=lambda one: (-abs(one[0]), one[1]))]


def risen(seen, wanted, is_same_kernel):
    over = changes(seen, wanted, lambda old, new: new > old)
    is_too_many = seen["faults"] > wanted["faults"] * (1 + FAULTS)
    texts = [text for text in over if text.startswith("faults ") and is_too_many]
    over = [text for text in over if not text.startswith("faults ")]
    more = seen["calls"] > wanted["calls"] * (1 + OTHER_KERNEL) or seen["mounts"] > wanted["mounts"]
    return texts + (over if is_same_kernel or more else [])


def is_obsolete(seen, wanted):
    """The table allows much more than is needed."""
    few_calls = seen["calls"] < wanted["calls"] * (1 - FALL)
    return few_calls or seen["mounts"] < wanted["mounts"] or seen["faults"] < wanted["faults"] * (1 - FAULTS_FALL)


def compare(column, harness):
    _, table, kernels = read_table()
    wanted, is_same = table.get(column, {}), kernels.get(column) == kernel()
    seen = count(column, harness)
    told = f"counted {column} {kernel()} " + " ".join(f"{name}={number}" for name, number in sorted(seen.items()))
    harness.true(wanted, f"budget.txt has no column '{column}': make budget-update\n{told}")
    for _ in range(TURNS - 1):
        if risen(seen, wanted, is_same):
            seen = least(seen, count(column, harness))
    told = f"counted {column} {kernel()} " + " ".join(f"{name}={number}" for name, number in sorted(seen.items()))
    over = risen(seen, wanted, is_same)
    harness.true(not over, f"more than budget.txt allows: {', '.join(over)}\n{told}")
    if is_same and is_obsolete(seen, wanted):
        fewer = changes(seen, wanted, lambda old, new: new < old)
        raise harness.Failure(f"fewer than in budget.txt: lower it by make budget-update: {', '.join(fewer)}\n{told}")


def register():
    """Where the counts of a column are the same every time: cgroup v2 is the test machine's, of one of its places."""
    import harness

    def holding(column):
        return lambda: compare(column, harness)

    has_cgroup2 = os.environ.get("CEJAIL_TEST_PLACE") == "test machine, root service"
    for column, (_, cgroup, _) in COLUMNS.items():
        if has_cgroup2 if cgroup else not harness.EMULATED:
            sentence = f"a run '{column}' makes no more system calls and page faults than its budget"
            harness.test(sentence, who="root", limit=120)(holding(column))


if __name__ == "__main__":
    update(sys.stdin.read())
else:
    register()
