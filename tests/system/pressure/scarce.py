# SPDX-License-Identifier: Apache-2.0
"""What the pressure tests share: callers with odd limits, hosts with full file systems, and what is right
there: the run as always, or one line and 125."""

import resource
import subprocess

from harness import *  # noqa: F403

# Only the test machine must hold limits by cgroup v2; it is emulated, so it gets a sample of the sample.
MACHINE = EMULATED
ECHO = ("-p", "base", "--network", "none", "--nofile", "16", "--", "/bin/echo", "fine")


def sample(values, step=1):
    """All of them in the long form; else each step-th, the last always."""
    values = list(values)
    step *= 3 if MACHINE else THIN
    return values if LONG else values[:-1:step] + values[-1:]


def complaints(done):
    """Lines of cejail that are no warning."""
    return [line for line in done.err.splitlines() if not line.startswith("cejail: warning: ")]


def works_or_says_why(done, what, out="fine\n"):
    """True: it ran as it should; False: cejail refused, with one line and 125."""
    tried()
    if done.code == 0:
        equal(done.out, out, f"{what}: stdout ({done!r})")
        return True
    lines = complaints(done)
    if done.code != 125 or len(lines) != 1 or not lines[0].startswith("cejail: "):
        raise Failure(f"{what}: neither a run nor one line and 125: {done!r}")
    equal(done.out, "", f"{what}: stdout of a refusal")
    return False


def under(*limits, first=None):
    """Keywords for start(): a caller with these rlimits, (what, soft, hard) each."""

    def apply():
        if first:
            first()
        for what, soft, hard in limits:
            resource.setrlimit(what, (soft, hard))

    return {"preexec_fn": apply}


def until_it_works(what, values, name, words=ECHO, first=None):
    """Each value of one rlimit, from the scarcest on, is a run or one line and 125; the last is a run.
    Where not even main() is reached, the loader or execve(2) has spoken, not cejail."""
    ran = []
    for value in values:
        options = under((what, value, value), first=first)
        if cejail("version", **options).code == 0:
            ran.append(works_or_says_why(run(*words, **options), f"{name} {value}"))
    true(ran and ran[-1], f"{name} {values[-1]}: even this is not enough")
    return ran


def prefixed(prefix, *args, limit=30, env=None, **options):
    """cejail as another program starts it: prefix is that program's words."""
    words = [*prefix, CEJAIL, *args]
    process = subprocess.Popen(words, env=env or environment(), stdin=subprocess.DEVNULL,
                               stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **options)  # fmt: skip
    return finish(process, limit, args=words)


def own_mounts(script, *arguments):
    """The words that start a program after `script` in a mount namespace of its own: mount(8) works in it."""
    unshare = ["unshare", "--map-current-user", "--keep-caps", "-m"] if WHO == "user" else ["unshare", "-m"]
    drop = "exec setpriv --ambient-caps=-all --inh-caps=-all -- " if WHO == "user" else "exec "
    return [*unshare, "/bin/sh", "-c", f'{script}\nshift {len(arguments)}; {drop}"$@"', "sh", *arguments]


def fill(place, how):
    """Shell words that leave no room in a small tmpfs."""
    return {
        "bytes": f"dd if=/dev/zero of={place}/filler bs=4096 2>/dev/null",
        "inodes": f"i=0; while touch {place}/filler$i 2>/dev/null; do i=$((i+1)); done",
        "read-only": f"mount -o remount,bind,ro {place}",
    }[how]


def read_result(path):
    with open(path, encoding="utf-8") as file:
        return parse_result(file.read())


def running(f, name, script, *options):
    """A run whose script has said its first word, and the path of its result."""
    path = f / name
    process = start("run", "-p", "base", "--network", "none", f"--json={path}", *options, "--", "/bin/sh", "-c", f"echo ready; {script}")
    wait_until(lambda: b"ready" in process.stdout.read1(100), "the program's first word", 20)
    return process, path
