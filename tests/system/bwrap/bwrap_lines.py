# SPDX-License-Identifier: Apache-2.0
"""`cejail bwrap` beside bubblewrap's own program: the same command line, the same sandbox."""

import json
import os
import re
import shutil
import subprocess

from harness import CEJAIL, PROBES, SLOW, Folder, Skip, environment, equal, test, tried, true

OURS = os.path.join(os.path.dirname(CEJAIL), "../libexec/cejail/bwrap")

LOOK = f"{PROBES}/look"  # prints what it sees of its sandbox


def look(program, options, folder, end=0, **more):
    """Starts LOOK by the command line, and returns what it saw, with what was done; {}: it was not started."""
    # In a root of its own it lies in a place that no option of a line names.
    words = " ".join(options) + " "
    is_host, is_covered = "--ro-bind / / " in words, "--tmpfs / " in words or "--bind {0} / " in words
    own = [] if is_host else ["--ro-bind", LOOK, "/look"]
    whole = [*options, *own] if is_covered else [*own, *options]
    done = call(program, whole, [LOOK if is_host else "/look", str(end)], folder, **more)
    if not done.stdout:
        return done, {}
    text = done.stdout.decode().replace(folder.path, "FOLDER").replace(os.path.basename(folder.path), "NAME")
    return done, settled(json.loads(text))


def settled(seen):
    """Without what differs from call to call."""
    mounts = [line.split(" - ") for line in seen["mounts"]] if isinstance(seen["mounts"], list) else []
    mounts = [[head.split(), tail.split()] for head, tail in mounts]
    places = [head[4] for head, _ in mounts]

    def is_covered(i):
        return any(places[i] == place or places[i].startswith(place.rstrip("/") + "/") for place in places[i + 1 :])

    seen["mounts"] = {
        head[4]: [re.sub("^/(bindfile|data)[^/]*", "/data", head[3]), head[5], [field.split(":")[0] for field in head[6:]], tail]
        for i, (head, tail) in enumerate(mounts) if not is_covered(i)
    }  # fmt: skip
    seen["env"] = {key: value for key, value in seen["env"].items() if key != "_"}
    seen["fds"] = {fd: re.sub(r"\d+", "N", name) for fd, name in seen["fds"].items()}
    seen["links"].sort()
    return seen


HOST = "--ro-bind / /".split()
USR = "--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64".split()
PROC = "--proc /proc --dev /dev".split()
CODEX = [*"--new-session --die-with-parent --ro-bind / / --dev /dev --bind {0} {0} --ro-bind {0}/.git {0}/.git".split(),
         *"--unshare-user --unshare-pid --unshare-net --proc /proc".split()]  # fmt: skip
RUNTIME = [*"--new-session --die-with-parent --unshare-net --ro-bind / / --bind {0} {0} --ro-bind /dev/null {0}/.git/config".split(),
           *"--tmpfs /mnt --dev /dev --unshare-pid --proc /proc --setenv SANDBOX_RUNTIME 1 --unsetenv USER".split()]  # fmt: skip
FLATPAK = [*USR, *PROC, *"--unshare-all --tmpfs /tmp --dir /var/tmp --symlink ../run /var/run --perms 0700 --dir /run/user/1".split(),
           *"--dir /app --bind {0} /home/me --chdir /home/me --setenv XDG_RUNTIME_DIR /run/user/1 --die-with-parent".split()]  # fmt: skip


def lines():
    """Command lines; {0} is a directory of the caller's."""
    yield from (HOST, CODEX, RUNTIME, FLATPAK)
    yield [*USR, *PROC]
    yield [*USR, *PROC, "--unshare-pid"]
    yield [*USR, *PROC, "--unshare-all", "--share-net"]
    yield [*USR, *PROC, "--unshare-user-try", "--unshare-ipc", "--unshare-cgroup-try", "--as-pid-1", "--unshare-pid"]
    yield [*USR, *PROC, "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-uts", "--hostname", "inside"]
    yield [*USR, "--proc", "/proc", "--unshare-user", "--uid", "7", "--gid", "8", "--unshare-pid"]
    yield [*USR, *PROC, "--unshare-user", "--disable-userns", "--assert-userns-disabled"]
    yield [*USR, *PROC, "--unshare-user", "--cap-add", "CAP_NET_RAW", "--cap-add", "CAP_KILL", "--cap-drop", "CAP_KILL"]
    yield [*USR, *PROC, "--unshare-user", "--uid", "0", "--cap-add", "ALL", "--cap-drop", "cap_sys_admin"]
    yield [*USR, *PROC, "--unshare-user", "--cap-drop", "ALL"]
    yield [*USR, *PROC, "--clearenv", "--setenv", "A", "b c", "--setenv", "PATH", "/usr/bin"]
    yield [*USR, *PROC, "--unsetenv", "PATH", "--unsetenv", "HOME", "--chdir", "/usr/lib"]
    yield [*USR, *PROC, "--unsetenv", "HOME"]
    yield [*USR, *PROC, "--dir", "/home/x", "--setenv", "HOME", "/home/x"]
    yield [*USR, *PROC, "--perms", "0711", "--tmpfs", "/t", "--size", "65536", "--perms", "1777", "--tmpfs", "/t/u"]
    yield [*USR, *PROC, "--perms", "0700", "--dir", "/a/b/c", "--dir", "/a/b/d", "--chmod", "0050", "/a/b/d"]
    yield [*USR, *PROC, "--bind", "{0}", "/data", "--remount-ro", "/data", "--tmpfs", "/s", "--remount-ro", "/s"]
    yield [*USR, *PROC, "--bind", "{0}/file", "/etc/file", "--dev-bind", "/dev/null", "/devices/null", "--bind", "/dev/zero", "/zero"]
    yield [*USR, *PROC, "--dev-bind", "/dev", "/dev2", "--ro-bind", "{0}", "/x", "--bind", "{0}/sub", "/x/sub"]
    yield [*USR, *PROC, "--bind-try", "/missing", "/x", "--ro-bind-try", "/missing", "/x", "--dev-bind-try", "/missing", "/x"]
    yield [*USR, *PROC, "--bind", "{0}/link", "/through", "--ro-bind", "/etc/passwd", "/etc/passwd"]
    yield [*USR, *PROC, "--unshare-ipc", "--mqueue", "/dev/mqueue"]
    yield [*USR, *PROC, "--tmpfs", "/", *USR, "--proc", "/proc", "--dir", "/second"]
    yield [*USR, *PROC, "--remount-ro", "/"]
    yield ["--bind", "{0}", "/", *USR, "--proc", "/proc"]
    yield [*HOST, "--tmpfs", "/tmp", "--bind", "{0}", "{0}", "--chdir", "{0}"]
    yield [*HOST, "--unshare-pid", "--tmpfs", "/mnt", "--ro-bind", "/etc", "/mnt/etc"]
    yield [*USR, *PROC, "--file", "FD:text", "/etc/motd", "--perms", "0444", "--file", "FD:b", "/c"]
    yield [*USR, *PROC, "--bind-data", "FD:text", "/etc/x", "--perms", "0640", "--ro-bind-data", "FD:y", "/d/e/f"]
    yield [*USR, *PROC, "--args", "FD:--dir\0/from/args\0--setenv\0B\0c\0"]
    yield [*USR, *PROC, "--perms", "0711", "--args", "FD:--tmpfs\0/t\0"]
    yield [*USR, *PROC, "--sync-fd", "FD:", "--new-session"]
    yield [*USR, *PROC, "--block-fd", "FD:x", "--lock-file", "/usr/bin/env", "--unshare-pid"]
    yield [*USR, *PROC, "--seccomp", "FD:\x06\0\0\0\0\0\xff\x7f"]
    yield [*USR, *PROC, "--add-seccomp-fd", "FD:\x06\0\0\0\0\0\xff\x7f", "--add-seccomp-fd", "FD:\x06\0\0\0\0\0\xff\x7f"]


# Command lines that fail, and bubblewrap's status and message.
WRONG = [
    ["--bind", "/missing", "/x"], ["--foo"], ["--uid", "3"], ["--unshare-user", "--uid", "x"], ["--hostname", "x"],
    [*HOST, "--dir", "/never-there"], [*HOST, "--chmod", "0777", "/never-there"], [*HOST, "--chdir", "/never-there"],
    ["--perms", "0700", "--bind", "/", "/"], ["--size", "1", "--dir", "/"], ["--perms", "999", "--dir", "/"],
    ["--seccomp", "x"], [*HOST, "--file", "FD:x", "/never-there"], ["--perms", "0700", "--perms", "0700", "--dir", "/"],
    [*HOST, "--chmod", "9", "/"], [*HOST, "never-there-either"], ["--cap-add", "CAP_NEVER"],
    [*HOST, "--seccomp", "FD:123"], ["--size", "x", "--tmpfs", "/"], [*HOST, "--as-pid-1"],
    [*HOST, "--as-pid-1", "--unshare-pid", "--lock-file", "/etc/passwd"],
    [*HOST, "--size", "5", "--unshare-user", "--tmpfs", "/tmp"], [*HOST, "--perms", "0700", "--new-session", "--tmpfs", "/tmp"],
    [*HOST, "--perms", "0700", "--args", "FD:--new-session\0--tmpfs\0/tmp\0"],
]  # fmt: skip
# The same without a command.
CUT = [["--args"], ["--symlink", "/"], [*HOST, "--setenv", "A"], ["--bind", "/"], ["--dev"], ["--uid"], ["--seccomp"]]


def bubblewrap():
    path = shutil.which("bwrap")
    if not path:
        raise Skip("bubblewrap is not installed")
    return path


def call(program, options, command, folder, **more):
    """One of the two programs, with what FD: stands for behind descriptors of the same numbers, and those of `held`."""
    held, args = [*more.pop("held", ())], []
    for option in options:
        if option.startswith("FD:"):
            fd = os.memfd_create("data")
            os.write(fd, option[3:].encode("latin-1"))
            os.lseek(fd, 0, os.SEEK_SET)
            number = 60 + len(held)
            held.append(os.dup2(fd, number))
            os.close(fd)
            option = str(number)
        args.append(option.replace("{0}", folder.path))
    kept = os.open("/dev/null", os.O_RDONLY)
    held.append(os.dup2(kept, 50))
    os.close(kept)
    try:
        return subprocess.run([program, *args, *command], capture_output=True, pass_fds=held, cwd=folder.path,
                              env=environment(), stdin=subprocess.DEVNULL, timeout=30 * SLOW, check=False, **more)  # fmt: skip
    finally:
        for fd in held:
            os.close(fd)


def filled(folder):
    folder.file("file", "text")
    folder.file("sub/file", "text")
    folder.file(".git/config", "text")
    os.symlink("sub", folder / "link")
    return folder


def differences(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            yield from differences(a.get(key), b.get(key), f"{path}/{key}")
    elif a != b:
        yield f"{path}: {a!r} and {b!r}"


BUSY = ("/tmp/", "/var/", "/run/", "/dev/pts/", "/dev/shm/")  # what other programs of the host change meanwhile


def known(answers, line):
    """Bubblewrap 0.8 makes some directories above a DEST 0700, its manual says 0755: their mode is left out."""
    if " ".join(HOST) in " ".join(line):
        for answer in answers:
            answer["tree"] = {path: entry for path, entry in answer["tree"].items() if not path.startswith(BUSY)}
    above = {os.path.normpath("/" + part[: end.start()].lstrip("/")) for part in line for end in re.finditer("/+", part)}
    for answer in answers:
        for path in above:
            answer["tree"].pop(f"{path}/", None)  # that the command can't list it: with --perms and a DEST that ends with "/"
        for path, entry in answer["tree"].items():
            if isinstance(entry, list) and path in above:
                entry[0] = entry[0][0]
    return answers


def compare(line):
    answers = []
    for program in (bubblewrap(), OURS):
        with Folder() as folder:
            done, seen = look(program, line, filled(folder))
            true(done.returncode == 0 and seen, f"{program} {line}: {done.returncode} {done.stderr}")
            answers.append(seen)
    return list(differences(*known(answers, line)))


@test("cejail bwrap makes the same sandbox as bubblewrap of 39 command lines", limit=240)
def _():
    for line in lines():
        found = compare(line) and compare(line)  # the host may have changed between the two
        true(not found, f"bwrap and cejail differ in {line}: " + "\n".join(found[:20]))
        tried()


@test("cejail bwrap refuses with bubblewrap's status and message")
def _():
    theirs = bubblewrap()
    for line, command in [(line, ["true"]) for line in WRONG] + [(line, []) for line in CUT]:
        with Folder() as folder:
            a, b = (call(program, line, command, folder) for program in (theirs, OURS))
            equal((b.returncode, b.stderr.decode().strip()), (a.returncode, a.stderr.decode().strip()), str(line))
        tried()
