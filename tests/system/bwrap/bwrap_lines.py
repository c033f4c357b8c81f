# SPDX-License-Identifier: Apache-2.0
"""`cejail bwrap` beside bubblewrap's own program: the same command line, the same sandbox."""

import json
import os
import re
import shutil
import subprocess

from harness import CEJAIL, PYTHON, SLOW, Folder, Skip, environment, equal, test, tried, true

OURS = os.path.join(os.path.dirname(CEJAIL), "../libexec/cejail/bwrap")

# What a program sees of its sandbox, as JSON.
LOOK = r"""
import json, os, re, stat, socket, sys
def entry(path):
    s = os.lstat(path)
    link = os.readlink(path) if stat.S_ISLNK(s.st_mode) else None
    return [stat.filemode(s.st_mode), s.st_uid, s.st_gid, link]
tree = {}
def walk(path, depth):
    for name in sorted(os.listdir(path)):
        one = os.path.join(path, name)
        if re.match(r"/proc/(\d+|self|thread-self)$", one):
            continue
        try:
            tree[one] = entry(one)
            if depth and stat.S_ISDIR(os.lstat(one).st_mode) and one not in ("/usr", "/sys", "/proc"):
                walk(one, depth - 1)
        except OSError as e:
            tree[one] = e.errno
tree["/"] = entry("/")
walk("/", 2)
mounts = []
try:
    for line in open("/proc/self/mountinfo"):
        head, tail = line.split(" - ")
        fields = head.split()
        mounts.append([fields[3], fields[4], fields[5], [f.split(":")[0] for f in fields[6:]], tail.split()])
except OSError:
    pass
def is_covered(i):
    return any(mounts[i][1] == m[1] or mounts[i][1].startswith(m[1].rstrip("/") + "/") for m in mounts[i + 1:])
mounts = {m[1]: [re.sub("^/(bindfile|data)[^/]*", "/data", m[0]), *m[2:]] for i, m in enumerate(mounts) if not is_covered(i)}
def lines(path, wanted=None):
    try:
        return [l.split() for l in open(path) if not wanted or l.split(":")[0] in wanted]
    except OSError as e:
        return e.errno
fds = {}
for name in sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []:
    try:
        fds[name] = re.sub(r"\d+", "N", os.readlink("/proc/self/fd/" + name))
    except OSError:
        pass
env = {k: v for k, v in os.environ.items() if k not in ("_", "LC_CTYPE")}
json.dump({"tree": tree, "mounts": mounts, "env": env, "fds": fds, "cwd": os.getcwd(),
    "ids": [os.getuid(), os.getgid(), os.getgroups()], "pid": os.getpid() if os.getpid() < 3 else 0,
    "session": os.getsid(0) == os.getpid(), "host": socket.gethostname(), "argv0": sys.orig_argv[0],
    "links": sorted(n for _, n in socket.if_nameindex()),
    "maps": [lines("/proc/self/" + n) for n in ("uid_map", "gid_map", "setgroups")],
    "status": lines("/proc/self/status", ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp", "Umask"))},
    sys.stdout)
"""
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
    named = {os.path.normpath(part) for part in line if part.startswith("/")}
    above = {os.path.normpath("/" + part[: end.start()].lstrip("/")) for part in line for end in re.finditer("/+", part)}
    for answer in answers:
        for path, entry in answer["tree"].items():
            if isinstance(entry, list) and path not in named and path in above:
                entry[0] = entry[0][0]
    return answers


def compare(line):
    answers = []
    for program in (bubblewrap(), OURS):
        with Folder() as folder:
            done = call(program, line, [PYTHON, "-c", LOOK], filled(folder))
            true(done.returncode == 0, f"{program} {line}: {done.returncode} {done.stderr}")
            answers.append(json.loads(done.stdout.decode().replace(folder.path, "FOLDER").replace(os.path.basename(folder.path), "NAME")))
    return list(differences(*known(answers, line)))


@test("cejail bwrap makes the same sandbox as bubblewrap of 38 command lines", limit=240)
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
