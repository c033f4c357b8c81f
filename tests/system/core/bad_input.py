# SPDX-License-Identifier: Apache-2.0
"""Bad input and bad days: one clear line that names the thing, exit 125, nothing left, nothing run."""

import json
import os
import resource
import shutil
import subprocess

from harness import *  # noqa: F403


@test("an unknown option is named")
def _():
    refused(sh("true", "--memroy", "64M"), "--memroy", "--memory")
    refused(sh("true", "-Z"), "-Z")


@test("an option without its value and a flag with one are named in the error")
def _():
    refused(run("--memory"), "memory")
    refused(sh("true", "--quiet=maybe"), "--quiet", "maybe")


@test("a memory of 0, negative, absurd, fractional or misspelt is refused")
def _():
    for text in ("0", "-1", "-64M", "99999999999999999999", "16E", "64X", "", " 64M", "64M ", "0x40M", "1e9", "64MM", "nan"):
        refused(sh("true", f"--memory={text}"), "--memory")


@test("other numbers that are negative, too large, misspelt or 0 are refused")
def _():
    for option in ("--timeout", "--cpu-time", "--cpus", "--pids-limit", "--nofile", "--disk", "--max-output"):
        for text in ("-1", "99999999999999999999999", "x", ""):
            refused(sh("true", f"{option}={text}"), option)
    for option in ("--timeout", "--cpus", "--pids-limit"):
        refused(sh("true", f"{option}=0"), option)


@test("a missing profile is named in the error")
def _():
    refused(run("-p", "no-such", "-c", "x"), "no-such")


@test("a profile's name can't lead out of its directory")
def _():
    refused(run("-p", "..", "-c", "x"), "..")
    refused(run("-p", "Python", "-c", "x"), "Python")
    refused(run("-p", "/etc/../etc/passwd", "-c", "x"), "passwd")


def refused_profile(content, *words):
    with Folder() as f:
        file = f.file("p.json", content)
        refused(run("-p", file, "-c", "x"), "p.json", *words)
        refused(cejail("profile", "check", file), "p.json", *words)


@test("an unknown key is refused with file, line and column")
def _():
    refused_profile('{\n  "extends": "base",\n  "memroy": "64M"\n}\n', "p.json:3:", "memroy")


@test("a duplicate key is refused with its place")
def _():
    refused_profile('{ "memory": "64M",\n  "memory": "32M" }', "p.json:2:", "memory")


@test("malformed JSON and trailing data are refused with their place")
def _():
    refused_profile('{\n  "memory": "64M",\n}', "p.json:3:")
    refused_profile('{ "memory": "64M" } x', "p.json:1:")
    refused_profile("")
    refused_profile("[1]")
    refused_profile('{ "memory": }', "p.json:1:")


@test("deep, huge and non-UTF-8 JSON is refused")
def _():
    refused_profile('{"env": ' + "[" * 100000 + "]" * 100000 + "}")
    refused_profile('{"description": "' + "x" * 2_000_000 + '"}')
    refused_profile(b'{"description": "\xff\xfe"}')
    refused_profile(b'{"description": "\xc0\xaf"}')
    refused_profile('{"description": "a\\u0000b"}')
    refused_profile('{"description": "\\ud800"}')


@test("a value of the wrong kind or out of range is refused by its key")
def _():
    refused_profile('{"memory": true}', "memory")
    refused_profile('{"memory": "lots"}', "memory")
    refused_profile('{"pids": -1}', "pids")
    refused_profile('{"pids": 1.5}', "pids")
    refused_profile('{"timeout": 1e400}', "timeout")
    refused_profile('{"network": {"mode": "all"}}', "network")
    refused_profile('{"command": "python3"}', "command")


@test("a profile that extends itself, directly or through another one, is refused")
def _():
    with Folder() as f:
        place = f / "config/cejail/profiles"
        os.makedirs(place)
        f.file("config/cejail/profiles/selfish.json", '{"extends": "selfish"}')
        f.file("config/cejail/profiles/one.json", '{"extends": "two"}')
        f.file("config/cejail/profiles/two.json", '{"extends": "one"}')
        env = environment(XDG_CONFIG_HOME=f / "config")
        refused(run("-p", "selfish", "-c", "x", env=env), "selfish")
        refused(run("-p", "one", "-c", "x", env=env), "one")


@test("a profile that others may write is refused")
def _():
    with Folder() as f:
        refused(run("-p", f.file("p.json", '{"extends": "base"}', 0o666), "--", "true"), "p.json")


@test("a missing interpreter is named")
def _():
    with Folder() as f:
        profile = f.file("p.json", '{"extends": "base", "command": ["no-such-interpreter", "{file}"]}')
        done = run("-p", profile, "-c", "x").exits(127)
        contains(done.err, "no-such-interpreter", "stderr")


@test("a code file that isn't there, is a directory, a device or a fifo is refused, and nothing blocks")
def _():
    with Folder() as f:
        os.mkfifo(f / "fifo.py")
        f.folder("dir.py")
        os.symlink("/dev/zero", f / "zero.py")
        refused(run(f / "absent.py"), "absent.py")
        refused(run(f / "dir.py"), "dir.py")
        refused(run(f / "fifo.py"), "fifo.py")
        refused(run("-p", "python", "/dev/zero"), "/dev/zero")
        refused(run(f / "zero.py"), "zero.py")


@test("an unreadable code file is refused by name", who="user")
def _():
    with Folder() as f:
        refused(run(f.file("locked.py", "x", 0o000)), "locked.py")


@test("a hundred megabytes of code are refused, from a file and from standard input")
def _():
    with Folder() as f:
        with open(f / "big.py", "wb") as file:
            file.truncate(100 << 20)
        refused(run(f / "big.py"), "big.py")
        with open("/dev/zero", "rb") as zero:
            refused(run("-p", "python", "-", stdin=zero), "standard input")


@test("--file sources that are missing, special or too many are refused by name")
def _():
    with Folder() as f:
        os.mkfifo(f / "fifo")
        refused(sh("true", "-f", f / "absent"), "absent")
        refused(sh("true", "-f", f / "fifo"), "fifo")
        refused(sh("true", "-f", "/dev/null"), "/dev/null")


@test("an input larger than --disk is refused, and the message says what to raise")
def _():
    with Folder() as f:
        with open(f / "big", "wb") as file:
            file.truncate(20 << 20)
        refused(sh("true", "--disk", "4M", "-f", f / "big"), "big", "--disk")


@test("targets in /proc, /dev and /sys, relative ones that climb, and / are refused")
def _():
    with Folder() as f:
        file = f.file("x", "x")
        for target in ("/proc/x", "/dev/null", "/sys/x", "../x", "/box/../../etc/passwd", "/"):
            refused(sh("true", "-f", f"{file}:{target}"), target)
            refused(sh("true", "--ro-bind", f"{file}:{target}"), target)


@test("a bind source that isn't there is refused by name")
def _():
    refused(sh("true", "--ro-bind", "/no/such/source"), "/no/such/source")


@test("a --rootfs that isn't there, or is no directory, is refused by name")
def _():
    with Folder() as f:
        refused(sh("true", "--rootfs", "/no/such/root"), "/no/such/root")
        refused(sh("true", "--rootfs", f.file("plain")), "plain")


@test("a root in which /proc, /dev, /box and /tmp are links gets no mount outside of it")
def _():
    box = need_root_tree()
    with Folder() as f:
        victim = f.folder("victim")
        os.makedirs(f / "root/bin")
        shutil.copy(box, f / "root/bin/busybox")
        for name in ("proc", "dev", "box", "tmp", "etc"):
            os.symlink(victim, f / f"root/{name}")
        sh("true", "--rootfs", f / "root")
        equal(os.listdir(victim), [], "what came to lie in the link's target")
        done = run("-p", "base", "--rootfs", f / "root", "--", "/bin/busybox", "grep", " /proc proc ", "/proc/mounts")
        equal(len(done.exits(0).out.splitlines()), 1, "proc file systems at /proc")


@test("names with NUL-like, newline and escape bytes are shown escaped, in one line")
def _():
    done = refused(run("-p", "python", "/no\n/such\x1b[31m.py"))
    true("\x1b" not in done.err, "an escape reached the terminal")
    refused(sh("true", "-e", "A\nB=1"), "-e", "'A")
    refused(run("-p", "python", b"/no/\xff\xfe.py"))


@test("an --env with an invalid name is refused")
def _():
    refused(sh("true", "-e", "=x"), "-e")
    refused(sh("true", "--env", "A B=x"), "--env", "A B")
    refused(sh("true", "-e", "NOT_SET_ANYWHERE"), "NOT_SET_ANYWHERE")


@test("options that exclude each other are refused")
def _():
    contains(run("-p", "python", "-c", "x", "--json", "--tty").exits(125).err, "tty", "stderr")
    refused(run("-p", "python", "-c", "x", "--allow", "example.org", "--network", "none"), "allow")


@test("an invalid --id is refused")
def _():
    for text in ("", "../x", "a/b", "x" * 100, "a b"):
        refused(sh("true", f"--id={text}"), "--id")


@test("a descriptor that isn't open is refused by its number")
def _():
    refused(sh("true", "--result-fd", "777"), "777")
    refused(sh("true", "--events-fd", "778"), "778")
    refused(sh("true", "--result-fd", "-1"), "result-fd")


@test("a result that cannot be written is an error, even if the program ran")
def _():
    done = sh("true", "--json=/no/such/folder/result.json")
    true(done.code == 125, f"{done!r}")
    contains(done.err, "/no/such/folder/result.json", "stderr")
    with open("/dev/full", "wb") as full:
        done = run("--json", "-p", "base", "--", "true", stdout=full)
        true(done.code != 0, "exit status 0 though the result was lost")


@test("a full disk for --artifacts is one line that names the file", who="root")
def _():
    with Folder() as f:
        small = f.folder("small")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
        try:
            done = sh("mkdir out; head -c 5000000 /dev/zero > out/large; echo x > out/fine", "-o", small)
            contains(done.err, "large", "stderr")
            lacks(os.listdir(small), "large", "files copied out")
        finally:
            subprocess.run(["umount", small], check=True)


@test("with too few descriptors cejail prints one line and exits with 125")
def _():
    for count in (4, 6, 8, 10, 12, 16, 20):

        def lower(count=count):
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))

        done = sh("true", preexec_fn=lower)
        if done.code != 0:
            refused(done)


@test("without room for processes cejail prints one line and exits with 125", who="user")
def _():
    done = sh("true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
    if done.code != 0:
        equal(done.code, 125, "exit status")
        true(done.err.splitlines()[-1].startswith("cejail: "), f"stderr {done.err!r}")


@test("without enough memory cejail fails without a crash")
def _():
    if "asan" in CEJAIL:
        return
    # with less, the kernel can't map a static program, or libc ends it by a signal before its main()
    for mib in (3, 4, 8, 16, 32):
        done = sh("true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20)))
        true(done.code in (0, 125, 126, 127, -11, -6) or done.code > 128, f"{mib} MiB: {done!r}")
        true(done.code not in (-11, -6, 139, 134), f"{mib} MiB: cejail crashed: {done!r}")


@test("an invalid policy file is refused with its name")
def _():
    with Folder() as f:
        refused(sh("true", "--seccomp", "/no/such/policy"), "/no/such/policy")
        refused(sh("true", "--seccomp", f.file("p.json", "{")), "p.json")
        refused(sh("true", "--seccomp", f.file("q.json", '{"defaultAction": "SCMP_ACT_FROWN"}')), "SCMP_ACT_FROWN")
        refused(sh("true", "--seccomp", f.file("r.json", '{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}')), "r.json")


@test("unknown system calls of a policy are reported, not ignored")
def _():
    with open(f"{os.path.dirname(CEJAIL)}/../share/cejail/profiles/seccomp/default.json", encoding="ascii") as file:
        policy = json.load(file)
    policy["syscalls"].append({"names": ["no_such_call"], "action": "SCMP_ACT_ALLOW"})
    with Folder() as f:
        value = sh_result("true", "--seccomp", f.file("p.json", json.dumps(policy)))
        contains(" ".join(value["warnings"]), "no_such_call", "warnings")


@test("a policy that allows by default and denies an unknown system call is refused")
def _():
    policy = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["no_such_call"], "action": "SCMP_ACT_ERRNO"}]}
    with Folder() as f:
        refused(sh("true", "--seccomp", f.file("p.json", json.dumps(policy))), "no_such_call", "p.json")


@test("--rootfs with the name of an image that does not exist says how to see the images")
def _():
    refused(sh("true", "--rootfs", "debian"), "--rootfs", "no installed image 'debian'", "cejail image list", "./debian")


@test("set-up errors are one result, too: with stage, message and hint")
def _():
    done = run("--json", "-p", "base", "--ro-bind", "/no/such/source", "--", "true").exits(125)
    value = parse_result(done.out)
    equal((value["status"], value["exit_code"]), ("setup_error", None), "status and exit code")
    contains(value["error"]["message"], "/no/such/source", "message")


@test("arguments by the thousand, and one very long, get through or are refused in one line")
def _():
    run("-p", "base", "--", "/bin/echo", *["x"] * 5000).exits(0)
    run("-p", "base", "--", "/bin/echo", "x" * 100000).exits(0)


@test("the caller's PATH, LD_PRELOAD, IFS, TMPDIR and locale change nothing")
def _():
    env = environment(PATH="/nowhere", LD_PRELOAD="", IFS="x", TMPDIR="/nowhere", LC_ALL="xx_YY", HOME="/nowhere")
    run("-p", "base", "--", "/bin/echo", "fine", env=env).exits(0).says("fine\n")


@test("a caller in a directory that is gone can still run")
def _():
    with Folder() as f:
        gone = f.folder("gone")
        script = f"cd {gone} && rmdir {gone} && exec {CEJAIL} run -p base -- /bin/echo fine"
        done = subprocess.run(["/bin/sh", "-c", script], env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=30 * SLOW, check=False)  # fmt: skip
        equal((done.returncode, done.stdout), (0, b"fine\n"), "exit status and stdout")
