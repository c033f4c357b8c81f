# SPDX-License-Identifier: Apache-2.0
"""Too little of something in the caller: descriptors, memory, processes, file size; full, read-only and
broken places to write to.  Each run works, or is refused with one line and 125, and nothing is left."""

import contextlib
import errno
import json
import os
import resource
import signal
import subprocess

from internet import Internet
from scarce import *  # noqa: F403

KIB, MIB = 1 << 10, 1 << 20


@test("with any limit of open files a run works, or one line says what is missing", limit=180)
def _():
    ran = until_it_works(resource.RLIMIT_NOFILE, sample(range(3, 73), 2), "open files")
    true(False in ran, "nothing was scarce")


@test("a limit of open files that is too small is named with its remedy")
def _():
    for value in (8, 10, 14):
        done = run(*ECHO, **under((resource.RLIMIT_NOFILE, value, value)))
        refused_among_warnings(done, "Too many open files", "ulimit -n")


def refused_among_warnings(done, *words):
    equal(works_or_says_why(done, "the run"), False, "it ran")
    for word in words:
        contains(complaints(done)[0], word, "the message")


@test("with any limit of open files a jail with a network is built, or one line says what is missing", limit=180)
def _():
    words = ("-p", "base", "--network", "public", "--nofile", "16", "--", "/bin/echo", "fine")
    with Internet() as net:
        until_it_works(resource.RLIMIT_NOFILE, sample(range(6, 64), 5), "open files", words, net.enter)


@test("with any limit of memory a run works, or one line says so", limit=180)
def _():
    sizes = sorted({base << shift for base in (4, 5, 6, 7) for shift in range(15, 24)})
    until_it_works(resource.RLIMIT_AS, sample(sizes, 3), "address space")
    until_it_works(resource.RLIMIT_DATA, sample(range(128 * KIB, 2 * MIB, 32 * KIB), 4), "data")


@test("with any stack a run works, or one line says that it is too small", limit=120)
def _():
    sizes = [8 * KIB, 12 * KIB, 16 * KIB, 24 * KIB, 32 * KIB, 48 * KIB, 64 * KIB, 96 * KIB, *(KIB << n for n in range(7, 13))]
    until_it_works(resource.RLIMIT_STACK, sample(sizes), "stack")


@test("with any limit of processes a run works, or one line says so", limit=120)
def _():
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    until_it_works(resource.RLIMIT_NPROC, sample([0, 1, 2, 3, 4, 8, most]), "processes")


@test("limits of everything else that are zero don't break a run")
def _():
    for name in ("MEMLOCK", "MSGQUEUE", "SIGPENDING", "CORE", "NICE", "RTPRIO", "RTTIME", "RSS"):
        number = getattr(resource, f"RLIMIT_{name}")
        works_or_says_why(run(*ECHO, **under((number, 0, 0))), f"RLIMIT_{name} 0")


@test("with any limit of file size there is a result, or one line says what became too large")
def _():
    for size in sample([0, 1, 100, 500, 1000, 2000, 4000, 64 * KIB]):
        with Folder() as f:
            limit = under((resource.RLIMIT_FSIZE, size, size))
            done = run(f"--json={f / 'r'}", *ECHO, **limit)
            tried()
            if done.code == 0:
                with open(f / "r", encoding="utf-8") as file:
                    equal(parse_result(file.read())["status"], "exited", f"file size {size}: status")
                continue
            equal(done.code, 125, f"file size {size}: exit status ({done!r})")
            equal(os.listdir(f.path), [], f"file size {size}: files")
            contains("\n".join(complaints(done)), "File too large", f"file size {size}: stderr")


# --- places that are full, out of inodes, read-only --------------------------------------------


PLACES = ["/run", "/dev/shm"] + ([] if CEJAIL.startswith("/tmp/") else ["/tmp"])


def runtime_places(how, is_made, left):
    """All that could hold a runtime directory is a small tmpfs that is full."""
    script = f"exec 9>{left}; uid=$(id -u)\n"
    for place in PLACES:
        mode = 755 if place == "/run" else 1777
        script += f"mount -t tmpfs -o size=128k,nr_inodes=40,mode={mode} none {place} || exit 99\n"
    script += "mkdir -p /run/user/$uid && chmod 700 /run/user/$uid; export XDG_RUNTIME_DIR=/run/user/$uid\n"
    if is_made:
        script += f"{CEJAIL} run -q -p base --network none -- /bin/true >/dev/null 2>&1\n"
    script += "\n".join(fill(place, how) for place in PLACES)
    listing = f"find {' '.join(PLACES)} -path '*/runs/*' >&9"
    return own_mounts(f'{script}\n{{ "$@"; rc=$?; {listing}; exit $rc; }}')


@test("where the runtime directory can't be written to a run works, or one line says so", limit=120)
def _():
    for how in ("bytes", "inodes", "read-only"):
        for is_made in (False, True):
            with Folder() as f:
                done = prefixed(runtime_places(how, is_made, f / "left"), "run", *ECHO)
                works_or_says_why(done, f"{how}, {'made before' if is_made else 'fresh'}")
                with open(f / "left", encoding="utf-8") as file:
                    equal(file.read(), "", f"{how}: records left")


def small_place(f, how):
    """A directory of a test on a small tmpfs without room, seen by what own_mounts() starts."""
    place = f.folder("small")
    return own_mounts(f"mount -t tmpfs -o size=64k,nr_inodes=10,mode=755 none {place} || exit 99\n{fill(place, how)}"), place


@test("--json=FILE where there is no room is told, and nothing of it stays", limit=120)
def _():
    for how in ("bytes", "inodes", "read-only"):
        with Folder() as f:
            prefix, place = small_place(f, how)
            prefix[-2] = prefix[-2].replace('"$@"', f'sh -c \'"$@"; rc=$?; ls -A {place} >&2; exit $rc\' sh "$@"')
            done = prefixed(prefix, "run", f"--json={place}/r", *ECHO)
            tried()
            equal(done.code, 125, f"{how}: exit status ({done!r})")
            lines = [line for line in complaints(done) if not line.startswith("filler")]
            equal(len(lines), 1, f"{how}: lines ({done!r})")
            true(lines[0].startswith("cejail: ") and "'" in lines[0], f"{how}: {lines}")


@test("artefacts that find no room are told; the run's own end stays in the result", limit=120)
def _():
    for how in ("bytes", "inodes", "read-only"):
        with Folder() as f:
            prefix, place = small_place(f, how)
            done = prefixed(prefix, "run", "--json", "-o", place, "-p", "base", "--network", "none", "--",
                            "/bin/sh", "-c", "head -c 9000 /dev/zero > out/a; echo fine")  # fmt: skip
            tried()
            equal(done.code, 125, f"{how}: exit status ({done!r})")
            value = parse_result(done.out, done)
            if value["status"] == "setup_error":
                contains(value["error"]["message"], place, f"{how}: the error")
                continue
            equal((value["status"], value["exit_code"]), ("exited", 0), f"{how}: end")
            contains(" ".join(value["warnings"]), "artifacts", f"{how}: warnings")


@test("output into a file on a full file system is told, and the run is not a success")
def _():
    with Folder() as f:
        prefix, place = small_place(f, "bytes")
        prefix[-2] = prefix[-2].replace('"$@"', f'sh -c \'exec "$@" >{place}/filler2\' sh "$@"')
        done = prefixed(prefix, "run", *ECHO)
        tried()
        true(done.code != 0, f"exit status 0 ({done!r})")
        contains(done.err, "No space left on device", "stderr")


# --- standard streams --------------------------------------------------------------------------

# redirections, and whether the program can be seen to have run (else one line and 125)
STREAMS = (
    ("<&-", True), ("2>&-", True), ("2>/dev/full", True), ("</dev/full", True), ("<&- 2>&-", True),
    ("<&- >&- 2>&-", False), (">&- 2>&-", False), ("2>&- 3>&- 4>&-", True),
)  # fmt: skip


@test("standard streams that are closed or full don't mix anything up", limit=120)
def _():
    for redirection, is_run in STREAMS:
        script = f'exec "$@" {redirection}'
        done = prefixed(["/bin/sh", "-c", script, "sh"], "run", *ECHO)
        tried()
        wanted = (0, "fine\n") if is_run else (125, "")
        equal((done.code, done.out), wanted, f"{redirection}: exit status and stdout ({done!r})")


@test("a result that can't be written to standard output is told on standard error with 125")
def _():
    with open("/dev/full", "wb") as full:
        done = run("--json", *ECHO, stdout=full)
    equal(done.code, 125, "exit status")
    contains(done.err, "the result", "stderr")
    tried()
    reader, writer = os.pipe()
    os.close(reader)
    done = run("--json", *ECHO, stdout=writer)
    os.close(writer)
    tried()
    true(done.code != 0, "exit status 0 though nobody got the result")


@test("a result for a file is there though standard error is full, or nobody is left to read it")
def _():
    reader, broken = os.pipe()
    os.close(reader)
    with open("/dev/full", "wb") as full, Folder() as f:
        for name, stderr, statuses in (("full", full, ("exited",)), ("broken", broken, ("exited", "cancelled"))):
            run(f"--json={f / name}", *ECHO, stderr=stderr)
            tried()
            with open(f / name, encoding="utf-8") as file:
                true(json.load(file)["status"] in statuses, f"{name}: not one of {statuses}")
    os.close(broken)


@test("inputs and code from a place that ends, or has nothing, are told with one line")
def _():
    for source in ("/dev/full", "/proc/self/mem", "/dev/null/x", "/proc/self/fd/99"):
        with Folder() as f:
            refused_among_warnings(run("-p", "base", "--network", "none", "-f", f"{source}:/box/x", "--", "/bin/true"), "'/")
            equal(os.listdir(f.path), [], "files")
    read_end, write_end = os.pipe()
    os.close(write_end)
    done = run("-p", "shell", "--network", "none", "-", stdin=read_end)  # an empty program is a program
    os.close(read_end)
    tried()
    equal((done.code, done.out), (0, ""), "an empty program")


@test("a program that is larger than the caller's memory is refused, not half run")
def _():
    with Folder() as f:
        path = f.file("large.sh", "echo ran\n" + "#" * (3 * MIB))
        done = run("-p", "shell", "--network", "none", path, **under((resource.RLIMIT_DATA, MIB, MIB)))
        works_or_says_why(done, "a program of 3 MiB", "ran\n")
        done = subprocess.run([CEJAIL, "run", "-p", "shell", "--network", "none", path], env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=30 * SLOW, check=False)  # fmt: skip
        equal((done.returncode, done.stdout), (0, b"ran\n"), "with memory")


# --- a tight cgroup around the supervisor ---------------------------------------------------------


@contextlib.contextmanager
def tight(memory):
    """preexec_fn for a caller in a cgroup with so much memory."""
    path = f"/sys/fs/cgroup/pressure-{os.getpid()}"
    os.mkdir(path)
    try:
        for name, text in (("memory.max", str(memory)), ("memory.swap.max", "0")):
            with open(f"{path}/{name}", "w", encoding="ascii") as file:
                file.write(text)

        def join():
            with open(f"{path}/cgroup.procs", "w", encoding="ascii") as file:
                file.write("0")

        yield {"preexec_fn": join}
    finally:
        wait_until(lambda: not has_processes(path), "the end of every process", 5)
        for base, _, _ in os.walk(path, topdown=False):
            wait_until(lambda base=base: is_removed(base), f"the end of '{base}'", 5)


def is_removed(path):
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False  # its last process is gone a moment later
        raise
    return True


def has_processes(path):
    with open(f"{path}/cgroup.events", encoding="ascii") as file:
        return "populated 1" in file.read()


if MACHINE:

    @test("in a tight cgroup of its own a supervisor works, says why not, or is killed and leaves nothing", who="root", limit=120)
    def _():
        before, ran = inventory(), []
        for memory in sample((256 * KIB, 512 * KIB, MIB, 3 * MIB // 2, 2 * MIB, 3 * MIB, 4 * MIB, 8 * MIB, 64 * MIB)):
            with tight(memory) as inside:
                done = run(*ECHO, **inside)
            if done.code == -signal.SIGKILL:
                tried()
                wait_until(lambda: not descendants(), "the end of every process")
                cejail("gc").exits(0)
            else:
                ran.append(works_or_says_why(done, f"{memory >> 10} kB"))
            equal(what_is_left(before), [], f"{memory >> 10} kB: left behind")
        true(ran and ran[-1], "not even the last one was enough")
