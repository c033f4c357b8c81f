# SPDX-License-Identifier: Apache-2.0
"""What the jail is to the program in it: ids, namespaces, mounts, devices, what comes from the caller.
What must not work is in ../escape."""

import json
import os
import socket
import subprocess
import uuid

from harness import *  # noqa: F403


@test("a seccomp file in OCI format is used as the filter")
def _():
    policy = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["uname"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}],
    }
    with Folder() as f:
        file = f.file("policy.json", json.dumps(policy))
        contains(sh("uname 2>&1; true", "--seccomp", file).exits(0).out, "not implemented", "uname's answer")
        lacks(sh("uname").exits(0).out, "not implemented", "uname's answer")


@test("a writable bind or an --artifacts that leads to cejail's records is refused; a read-only bind is not")
def _():
    with Folder() as f:
        env = environment(XDG_RUNTIME_DIR=f.path)
        own = "/run/cejail" if WHO == "root" else f"{f.path}/cejail"
        above = os.path.dirname(own)
        f.folder("beside")
        os.symlink(above, f / "link")
        sh("true", env=env).exits(0)  # makes the directory
        for source in (own, f"{own}/runs", f"{own}/../{os.path.basename(own)}", above, f"{above}/.", "/"):
            done = sh("true", "--bind", f"{source}:/x", env=env).exits(125)
            for words in ("--bind '", f"'{own}', where cejail keeps records", "--ro-bind"):
                contains(done.err, words, f"--bind {source}")
        sh("true", "--bind", f"{f / 'link'}:/x", env=env).exits(125)
        for place in (own, f"{own}/runs", above):
            done = sh("true", "--artifacts", place, env=env).exits(125)
            contains(done.err, f"'{own}', where cejail keeps records", f"--artifacts {place}")
        profile = f.file("p.json", json.dumps({"extends": "base", "bind": [f"{own}:/x"]}))
        contains(run("-p", profile, "--", "/bin/true", env=env).exits(125).err, "where cejail keeps", "the profile")
        for options in (("--ro-bind", f"{above}:/x"), ("--ro-bind", f"{own}:/x"), ("--bind", f"{f / 'beside'}:/x")):
            sh("true", *options, env=env).exits(0)


@test("a writable bind is refused if a mount below it leads to cejail's records")
def _():
    with Folder() as f:
        env = environment(XDG_RUNTIME_DIR=f.path)
        f.folder("view/run")
        above = "/run" if WHO == "root" else f.path
        script = 'mount --rbind "$1" "$2/run" && shift 2 && exec "$@"'
        command = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", script, "sh", above, f / "view", CEJAIL, "run", "-p", "base"]
        for option, code in (("--bind", 125), ("--ro-bind", 0)):
            done = subprocess.run([*command, option, f"{f / 'view'}:/x", "--", "/bin/true"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * SLOW)
            equal(done.returncode, code, f"exit status with {option}: {done.stderr}")
            equal("a mount below it that leads to" in done.stderr, code != 0, f"what {option} says: {done.stderr}")


# --- what the kernel says about the process ---------------------------------


def status_of_self():
    done = sh("cat /proc/self/status").exits(0)
    return dict(line.split(":\t", 1) for line in done.out.splitlines() if ":\t" in line)


@test("no capability is in any set")
def _():
    seen = status_of_self()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        equal(int(seen[name], 16), 0, name)


@test("no new privileges, and a filter is loaded")
def _():
    seen = status_of_self()
    equal(seen["NoNewPrivs"], "1", "NoNewPrivs")
    equal(seen["Seccomp"], "2", "Seccomp")


@test("the program is not root, and in no group but its own")
def _():
    seen = status_of_self()
    for name in ("Uid", "Gid"):
        true("0" not in seen[name].split(), f"{name} {seen[name]}")
    groups = set(seen["Groups"].split())
    true(groups <= {seen["Gid"].split()[0], "65534"}, f"groups {groups}")


def payload_of(process):
    """The pid of the jailed `sleep`, or None while there is none."""
    todo = [process.pid]
    while todo:
        pid = todo.pop()
        todo += children_of(pid)
        if (describe_process(pid) or "").split()[1:2] == ["sleep"]:
            return pid
    return None


def maps_seen_from_outside(count=1):
    """The rows of the id maps of so many jails at once, in the host's ids: inside is one more map."""
    processes = [start("run", "-p", "base", "--", "/bin/sleep", "300") for _ in range(count)]
    programs = [wait_until(lambda process=process: payload_of(process), "the program to run") for process in processes]
    seen = []
    for process, program in zip(processes, programs):
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{program}/{name}", encoding="ascii") as file:
                seen += [list(map(int, line.split())) for line in file]
        process.terminate()
        finish(process)
    return seen


@test("host uid 0 is never mapped", who="root")
def _():
    rows = maps_seen_from_outside()
    equal(len(rows), 2, "rows of uid_map and gid_map")
    for inside, outside, count in rows:
        true(outside > 0, f"a map has {outside}")
        equal(count, 1, "ids in a map")
        true(inside > 0, "root inside")


@test("two jails of root have different host ids", who="root")
def _():
    rows = maps_seen_from_outside(2)
    true(rows[0][1] != rows[2][1], f"both have the same host id {rows[0][1]}")
    true(rows[0][1] > 1000, f"{rows[0][1]} is no id of a jail's own")


@test("core files are off by a limit of exactly 1, and its pipe helper with it")
def _():
    done = sh("grep 'core file' /proc/self/limits").exits(0)
    equal(done.out.split()[4:6], ["1", "1"], "soft and hard limit")


@test("every namespace is the jail's own")
def _():
    names = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
    inside = sh("for n in " + " ".join(names) + "; do readlink /proc/self/ns/$n; done").exits(0).out.split()
    outside = [os.readlink(f"/proc/self/ns/{name}") for name in names]
    shared = set(inside) & set(outside)
    equal(shared, set(), "shared namespaces")
    equal(len(set(inside)), len(names), "namespaces of its own")


@test("only the jail's own processes are in /proc")
def _():
    done = sh("ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm").exits(0)
    count = int(done.out.split()[0])
    between(count, 2, 6, "processes in /proc")


@test("signals to pid 1 don't end the jail")
def _():
    probe("behave", "kill-init").exits(0).says("init lives\n")


@test("a program that kills every process it can reach kills only processes of its jail")
def _():
    probe("behave", "kill-all").exits(0).says("still here\n")


# --- what comes from the caller ---------------------------------------------


@test("no descriptor of the caller is open in the jail, even if the caller left many open")
def _():
    with Folder() as f:
        secret = os.open(f.file("secret", SECRET), os.O_RDONLY)
        held = [secret]
        try:
            for number in (7, 8, 50, 200, 900):
                os.dup2(secret, number)
                os.set_inheritable(number, True)
                held.append(number)
            script = "ls /proc/self/fd | tr '\\n' ' '; for n in 3 4 5 6 7 8 50 200 900; do cat <&$n; done 2>/dev/null"
            process = start("run", "-p", "base", "--", "/bin/sh", "-c", script, close_fds=False)
            done = finish(process)
        finally:
            for number in held:
                os.close(number)
        lacks(done.out + done.err, SECRET, "output")
        true(set(done.out.split()) <= {"0", "1", "2", "3"}, f"descriptors {done.out!r}")


@test("descriptors 0 to 2 are open in the jail even if the caller closed its own")
def _():
    script = f"exec {CEJAIL} run -p base -- /bin/sh -c 'ls -l /proc/self/fd >/box/l; cat /box/l >&2' 0<&- 1>&- 2>/dev/null"
    subprocess.run(["/bin/sh", "-c", script], env=environment(), timeout=30 * SLOW, check=False)
    done = sh("for n in 0 1 2; do [ -e /proc/self/fd/$n ] || echo closed; done").exits(0)
    equal(done.out, "", "stdout")


@test("no secret of the caller's is in the environment of any process inside")
def _():
    done = sh("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'").exits(0)
    lacks(done.out, SECRET, "environments inside")


@test("no host path of the caller's is in the command line of any process inside")
def _():
    with Folder() as f:
        done = run("-p", "python", f.file("code.py", "print(open('/proc/1/cmdline').read())")).exits(0)
        lacks(done.out, f.path, "init's command line")


@test("the caller's files, the caller's home and the host's secrets are not there")
def _():
    with Folder() as f:
        f.file("secret", SECRET)
        done = sh(f"ls {f.path} /root /home /var /run /boot /mnt /media /srv 2>/dev/null; cat {f.path}/secret")
        true(done.code != 0, "the caller's file could be read")
        lacks(done.out, "secret", "stdout")


@test("the host's root is unmounted: no mount of the jail leads to it")
def _():
    done = sh("cat /proc/self/mountinfo").exits(0)
    for line in done.out.splitlines():
        root, target = line.split()[3], line.split()[4]
        true(not (root == "/" and target not in ("/", "/proc", "/dev", "/dev/pts", "/dev/shm", "/box", "/tmp", "/dev/mqueue")
                  and " tmpfs " not in line and " proc " not in line and " devpts " not in line),
             f"a whole file system is mounted: {line}")  # fmt: skip


@test("every mount is nosuid; those with device nodes are read-only, all others nodev")
def _():
    for line in sh("cat /proc/self/mountinfo").exits(0).out.splitlines():
        target, flags = line.split()[4], line.split()[5].split(",")
        contains(flags, "nosuid", f"flags of {target}")
        if "nodev" not in flags:
            true(target.startswith(("/dev/", "/proc/")), f"{target} is not nodev: {flags}")
            true("ro" in flags or target == "/dev/pts", f"{target} is writable and not nodev: {flags}")


@test("nothing can be written on any read-only mount, and only the scratch is writable")
def _():
    code = """
import os
for line in open('/proc/self/mountinfo'):
    target, flags = line.split()[4], line.split()[5].split(',')
    if not os.path.isdir(target): continue
    try:
        name = target + '/attempt'
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY)); os.unlink(name)
        print('writable', target)
    except OSError:
        pass
    for change in (lambda: os.utime(target), lambda: os.chmod(target, 0o777)):
        try:
            change()
            if 'ro' in flags: print('changed', target)
        except OSError:
            pass
"""
    done = python(code).exits(0)
    lines = done.out.splitlines()
    changed = [line for line in lines if line.startswith("changed")]
    equal(changed, [], "changed mounts")
    writable = {line.split()[1] for line in lines if line.startswith("writable")}
    true(writable <= {"/box", "/tmp", "/dev/shm"}, f"writable: {writable}")


@test("a setuid file made in the jail gives no privileges")
def _():
    done = sh("cp /usr/bin/id /box/id && chmod 6755 /box/id && /box/id -u; id -u").exits(0)
    first, second = done.out.split()
    equal(first, second, "uid")
    true(second != "0", "uid 0")


@test("a setuid program of the host gives no privileges in the jail")
def _():
    done = sh("su root -c id 2>&1; mount 2>&1 | head -0; id -u")
    lacks(done.out, "uid=0", "stdout")


@test("an abstract socket of the host's network can't be reached")
def _():
    with socket.socket(socket.AF_UNIX) as server:
        name = f"cejail-test-abstract-{uuid.uuid4().hex}"  # places that run at once share them, and have the same pids
        server.bind("\0" + name)
        server.listen()
        code = f"import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0{name}'); print('reached')"
        true(python(code).code != 0, "the abstract socket answered")


@test("a TCP server on the host's loopback can't be reached")
def _():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 3); print('reached')"
        true(python(code).code != 0, "the host's loopback answered")


@test("without a network no address can be reached, and the refusal is quick")
def _():
    code = """
import socket
for a in ('169.254.169.254', '10.0.0.1', '192.168.1.1', '1.1.1.1'):
    try: socket.create_connection((a, 80), 5); print('reached', a)
    except OSError as e: print(e.errno)
"""
    done = python(code, "--network", "none").exits(0) # with a network: network_closed.py
    lacks(done.out, "reached", "stdout")


@test("socketpair, Unix sockets, and loopback TCP work inside")
def _():
    code = """
import socket
a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('fine')
u = socket.socket(socket.AF_UNIX); u.bind('/tmp/u'); u.listen()
"""
    python(code).exits(0).says("fine\n")


@test("ordinary programs may use threads, processes, semaphores and shared memory")
def _():
    code = """
import concurrent.futures, multiprocessing, os, subprocess, tempfile, threading, mmap, time, signal
if __name__ == '__main__':
    with concurrent.futures.ThreadPoolExecutor(4) as e: assert sum(e.map(int, range(10))) == 45
    p = multiprocessing.get_context('fork').Pool(2); assert p.map(abs, [-1, 2]) == [1, 2]; p.close(); p.join()
    assert subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout == b'x\\n'
    with tempfile.TemporaryFile() as t: t.write(b'x'); t.flush(); mmap.mmap(t.fileno(), 1)
    os.mkfifo('/tmp/fifo'); os.symlink('/tmp/fifo', '/tmp/link'); os.link('/tmp/fifo', '/tmp/hard')
    os.getrandom(8); time.sleep(0.001); os.kill(os.getpid(), 0); os.sched_getaffinity(0)
    print('fine')
"""
    done = python(code, "-t", str(int(30 * SLOW)), limit=60)
    done.exits(0).says("fine\n")


@test("a fifo and ordinary files can be made, a device can't")
def _():
    done = sh("mkfifo p && touch f && mkdir d && ln -s f l && ln f h && echo made; mknod n c 1 3 2>/dev/null && echo device")
    equal(done.out, "made\n", "stdout")


@test("/dev has what programs expect, and nothing else")
def _():
    done = sh("ls /dev | tr '\\n' ' '; head -c 4 /dev/zero | wc -c; head -c 8 /dev/urandom | wc -c; echo x > /dev/null")
    names = set(done.exits(0).out.split())
    for name in ("null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr"):
        true(name in names, f"/dev/{name} is missing: {sorted(names)}")
    names -= {"null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr", "tty", "pts", "ptmx", "4", "8"}
    equal(names, set(), "more in /dev")


@test("another user's files of the host can't be changed through the view of /usr", who="root")
def _():
    done = sh("for f in /usr/bin/env /usr/lib/os-release /usr/bin/su; do [ -w $f ] && echo $f; done; true")
    equal(done.exits(0).out, "", "writable files")


@test("the jail's /etc is generated: no shadow, no host name, no keys")
def _():
    done = sh("cat /etc/passwd; ls /etc; cat /etc/hostname 2>/dev/null; hostname 2>/dev/null || cat /proc/sys/kernel/hostname")
    lacks(done.out, "shadow", "/etc")
    lacks(done.out, "ssh", "/etc")
    lacks(done.out.splitlines(), os.uname().nodename, "host names")


@test("shared memory and semaphores of the host are not the jail's")
def _():
    done = sh("cat /proc/sysvipc/shm | tail -n +2; ls -A /dev/shm").exits(0)
    equal(done.out, "", "what is shared")
