# SPDX-License-Identifier: Apache-2.0
"""`cejail bwrap`: what a tree that is bound there, and a program inside, must not reach."""

import json
import os
import pty
import select
import shutil
import signal
import stat
import subprocess

from harness import CEJAIL, PYTHON, SLOW, Folder, cejail, contains, environment, equal, test, tried, true, wait_until
from bwrap_lines import HOST, OURS, PROC, USR, call


def snapshot(path):
    """Every entry below, with what an operation could change of it."""
    rows = []
    for base, names, files in os.walk(path):
        for name in sorted(names + files + ["."]):
            s = os.lstat(os.path.join(base, name))
            rows.append((base, name, stat.filemode(s.st_mode), s.st_size))
    return sorted(rows)


def sh(*options, script, **more):
    return subprocess.run([OURS, *options, "/bin/sh", "-c", script], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=environment(), timeout=30 * SLOW, check=False, **more)  # fmt: skip


@test("no operation of cejail bwrap follows a link of a bound tree to the host", limit=120)
def _():
    operations = [
        ["--dir", "/out/new"], ["--dir", "/out"], ["--file", "FD:text", "/out/new"], ["--file", "FD:text", "/out/file"],
        ["--bind-data", "FD:text", "/out/new"], ["--ro-bind-data", "FD:text", "/out/file"], ["--symlink", "x", "/out/new"],
        ["--chmod", "0777", "/out"], ["--chmod", "0777", "/out/file"], ["--tmpfs", "/out/a/b"], ["--bind", "/etc", "/out/a"],
        ["--ro-bind", "/etc/passwd", "/out/new"], ["--dev", "/out/dev"], ["--proc", "/out/proc"], ["--remount-ro", "/out"],
        ["--mqueue", "/out/mqueue"], ["--overlay-src", "/etc", "--tmp-overlay", "/out/a"], ["--lock-file", "/out/file"], ["--chdir", "/out"],
    ]  # fmt: skip
    targets = ("{host}", "../../../../../../../..{host}", "/proc/self/root{host}", "/proc/1/root{host}", "/oldroot{host}", "../oldroot{host}")
    for operation in operations:
        for target in targets:
            with Folder() as folder:
                host = folder.folder("host")
                folder.file("host/file", "secret", 0o600)
                tree = folder.folder("tree")
                os.symlink(target.format(host=host), tree + "/out")
                before = snapshot(host)
                done = call(OURS, ["--unshare-pid", "--bind", tree, "/", *USR, "--proc", "/proc", *operation], ["/bin/cat", "/out/file"], folder)
                equal(snapshot(host), before, f"the host after {operation} through {target}")
                true(b"secret" not in done.stdout, f"{operation} through {target} shows the host's file")
            tried()


@test("cejail bwrap waits for no fifo of a bound tree, and writes to no device of it")
def _():
    with Folder() as folder:
        tree = folder.folder("tree")
        os.mkfifo(tree + "/fifo")
        done = call(OURS, ["--bind", tree, "/", *USR, "--file", "FD:text", "/fifo"], ["true"], folder)
        equal(done.returncode, 1, "the status")
        contains(done.stderr.decode(), "Can't create file /fifo", "the message")


@test("a program in cejail bwrap can't leave its root, see the host's processes or trace its init")
def _():
    code = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def can_read(path):
    try:
        return os.readlink(path) is not None
    except OSError:
        return False
print(os.path.exists("/oldroot"), os.path.exists("/newroot"), [l for l in open("/proc/self/mountinfo") if "oldroot" in l])
print(sorted(int(n) for n in os.listdir("/proc") if n.isdigit()))
print(libc.ptrace(16, 1, 0, 0), [n for n in ("fd/0", "root", "cwd", "exe") if can_read("/proc/1/" + n)])
print(libc.mount(b"x", b"/usr", b"tmpfs", 0, None), libc.umount2(b"/usr", 2), libc.setuid(12345))
"""
    done = call(OURS, [*USR, *PROC, "--unshare-user", "--uid", "7", "--unshare-pid"], [PYTHON, "-c", code], FOLDER)
    equal(done.stdout.decode(), "False False []\n[1, 2]\n-1 []\n-1 -1 -1\n", "what the program reached")


class Here:
    path = "/"


FOLDER = Here()


@test("a program in cejail bwrap --new-session can't push input into the caller's terminal")
def _():
    code = "import fcntl, termios\ntry:\n fcntl.ioctl(0, termios.TIOCSTI, b'x'); print('pushed')\nexcept OSError as e: print('refused', e.errno)"
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(OURS, [OURS, *HOST, "--unshare-user", "--new-session", PYTHON, "-c", code])
    out = b""
    try:
        while part := os.read(fd, 4096):
            out += part
    except OSError:
        pass  # the terminal's other end is closed
    os.waitpid(pid, 0)
    os.close(fd)
    equal(out.decode().strip(), "refused 1", "the program's words")


@test("cejail bwrap --die-with-parent ends the program with bwrap, and with bwrap's parent")
def _():
    for kills_parent in (False, True):
        mark = f"61{os.getpid()}{int(kills_parent)}"
        line = [OURS, *HOST, "--unshare-pid", "--die-with-parent", "/bin/sleep", mark]
        parent = subprocess.Popen([PYTHON, "-c", "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); p.wait()", *line], stdout=subprocess.PIPE, text=True)
        child = int(parent.stdout.readline())

        def is_there(wanted=mark):
            return subprocess.run(["pgrep", "-f", f"^/bin/sleep {wanted}"], capture_output=True, check=False).returncode == 0

        wait_until(is_there, "the program")
        os.kill(parent.pid if kills_parent else child, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
        wait_until(lambda: not is_there(), "the program's end")


@test("cejail bwrap returns the program's status, or 128 and its signal, and writes both documents")
def _():
    for script, status in (("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("true", 0)):
        for options in (HOST, [*HOST, "--unshare-pid"], [*HOST, "--unshare-pid", "--as-pid-1"]):
            if "--as-pid-1" in options and "kill" in script:
                continue  # the kernel discards a signal of pid 1 to itself
            reader, writer = os.pipe()
            done = sh(*options, "--json-status-fd", str(writer), "--info-fd", "2", script=script, pass_fds=[writer])
            os.close(writer)
            with os.fdopen(reader) as file:
                first, last = map(json.loads, file.read().splitlines())
            equal((done.returncode, last), (status, {"exit-code": status}), script)
            equal(json.loads(done.stderr), first, "the info")
            true(first["child-pid"] > 1 and first["mnt-namespace"] > 0, f"the document: {first}")
            tried()


@test("cejail bwrap writes no exit code when the program was not executed")
def _():
    for options in (HOST, [*HOST, "--unshare-pid"]):
        reader, writer = os.pipe()
        done = subprocess.run([OURS, *options, "--json-status-fd", str(writer), "/missing"], capture_output=True, pass_fds=[writer], check=False)
        os.close(writer)
        with os.fdopen(reader) as file:
            equal(len(file.read().splitlines()), 1, "documents")
        equal((done.returncode, done.stderr), (1, b"bwrap: execvp /missing: No such file or directory\n"), "the end")


@test("cejail bwrap binds what a descriptor has open, and no other file of its name")
def _():
    with Folder() as folder:
        one = folder.folder("one")
        folder.file("one/file", "right")
        fd = os.open(one, os.O_PATH | os.O_DIRECTORY)
        done = sh(*USR, "--ro-bind-fd", str(fd), "/x", script="cat /x/file; echo y > /x/file", pass_fds=[fd])
        equal((done.stdout, done.returncode), ("right", 2), "the bound directory")
        os.rename(one, folder / "two")
        shutil.copytree(folder / "two", one)
        done = sh(*USR, "--bind-fd", str(fd), "/x", script="cat /x/file", pass_fds=[fd])
        equal((done.stdout, done.stderr), ("right", ""), "the renamed directory")
        shutil.rmtree(folder / "two")
        done = sh(*USR, "--bind-fd", str(fd), "/x", script="cat /x/file", pass_fds=[fd])
        equal(done.returncode, 1, "the status for a removed directory")
        os.close(fd)


@test("cejail bwrap refuses each option that it does not carry out by name, with a reason")
def _():
    for option, count in (("--userns", 1), ("--userns2", 1), ("--pidns", 1), ("--exec-label", 1), ("--file-label", 1), ("--userns-block-fd", 1), ("--not-a-security-boundary", 0)):  # fmt: skip
        done = cejail("bwrap", *HOST, option, *["5"] * count, "true")
        equal(done.code, 1, f"the status of {option}")
        true(done.err.startswith(f"bwrap: {option} is refused: ") and ";" in done.err, f"the message: {done.err}")
        tried()


@test("cejail bwrap that has a set-user-ID bit does nothing", who="root")
def _():
    with Folder(place="/var/tmp") as folder:
        path = shutil.copy(OURS, folder / "bwrap")
        os.chmod(path, 0o4755)
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", path, *HOST, "true"], capture_output=True, text=True, check=False)
        equal((done.returncode, done.stderr), (1, "bwrap: setuid use is refused; remove the set-user-ID bit\n"), "the end")


@test("a program in cejail bwrap starts another sandbox with cejail bwrap and with cejail run")
def _():
    outer = [*HOST, "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--unshare-user", "--uid", "7", "--gid", "7"]
    bwrap = f"{OURS} --ro-bind / / --dev /dev --unshare-user --unshare-pid --bind /proc /proc"
    # a new procfs needs one with no part covered: mount_namespaces(7)
    for proc, inner in ((["--unshare-pid", "--proc", "/proc"], bwrap), (["--bind", "/proc", "/proc"], f"{CEJAIL} run --profile base --network none --")):
        done = sh(*outer, *proc, script=f"{inner} /bin/sh -c 'readlink /proc/self/ns/mnt'; readlink /proc/self/ns/mnt")
        seen = done.stdout.split()
        true(done.returncode == 0 and len(seen) == 2 and seen[0] != seen[1] and seen[0].startswith("mnt:["), f"{inner}: {done.stdout} {done.stderr}")
        tried()


@test("cejail bwrap keeps no descriptor of the caller open outside, and starts within its parent's signals")
def _():
    (reader, writer), (gate, opener) = os.pipe(), os.pipe()
    line = [OURS, *HOST, "--unshare-pid", "/bin/sh", "-c", f"exec {writer}>&-; read x <&{gate}; echo end"]
    process = subprocess.Popen(line, pass_fds=[writer, gate], stdout=subprocess.PIPE, env=environment())
    os.close(writer), os.close(gate)
    # the program waits at its gate: whoever else has the descriptor keeps it open
    is_closed = select.select([reader], [], [], 20 * SLOW)[0] and os.read(reader, 1) == b""
    os.close(opener)
    equal(process.communicate()[0], b"end\n", "the output")
    os.close(reader)
    true(is_closed, "a process outside keeps the descriptor open")
