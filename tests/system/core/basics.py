# SPDX-License-Identifier: Apache-2.0
"""What a user types, and the exit status that comes back (contract 1 and 2)."""

import json
import os
import shutil
import signal

from harness import *  # noqa: F403 - the vocabulary of every test


@test("a Python file runs with the profile of its extension")
def _():
    with Folder() as f:
        file = f.file("hello.py", "import sys; print('hello', sys.argv[1:])")
        run(file, "a", "b c").exits(0).says("hello ['a', 'b c']\n")


@test("a shell file runs with the profile of its extension")
def _():
    with Folder() as f:
        run(f.file("hello.sh", 'echo "hello $1 $#"'), "a b", "c").exits(0).says("hello a b 2\n")


@test("a JavaScript file runs with the profile of its extension")
def _():
    with Folder() as f:
        done = run(f.file("hello.js", "console.log('hello', process.argv.slice(2))"), "a")
    if os.path.exists("/usr/bin/node"):
        done.exits(0).says("hello [ 'a' ]\n")
    else:  # the profile shows this host's /usr: a missing interpreter is named
        contains(done.exits(127).err, "'node'", "stderr")


@test("a file whose extension no profile has is refused, and the message says how to choose")
def _():
    with Folder() as f:
        refused(run(f.file("code.xyz", "x")), "code.xyz", "--profile")


@test("a string runs with -c and gets its arguments")
def _():
    python("import sys; print(sys.argv[1:])", "-t", "20").exits(0).says("[]\n")
    run("-p", "python", "-c", "import sys; print(sys.argv[1:])", "x", "--y").exits(0).says("['x', '--y']\n")


@test("code on standard input runs with -")
def _():
    run("-p", "python", "-", given="print(6 * 7)").exits(0).says("42\n")


@test("the example of the README runs as another user, in a root without the host's directories")
def _():
    done = run("-p", "python", "-", given="import os;print(os.getuid(), os.listdir('/'))").exits(0)
    true(int(done.out.split()[0]) != 0, f"uid 0 inside: {done!r}")
    for absent in ("'home'", "'root'", "'boot'", "'srv'", "'sys'"):
        lacks(done.out, absent, "the root's list")


@test("a command of the jail's file system runs after --")
def _():
    run("-p", "base", "--", "/bin/echo", "-n", "--json", "x").exits(0).says("--json x")


@test("a command is found along the jail's PATH")
def _():
    run("-p", "base", "--", "echo", "found").exits(0).says("found\n")


@test("the program's own exit status comes back")
def _():
    for code in (0, 1, 3, 42, 124, 125, 126, 127, 255):
        sh(f"exit {code}").exits(code)


@test("a signal that ends the program comes back as 128 + N")
def _():
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE):
        probe("behave", "signal", str(int(number))).exits(128 + number)


@test("the wall clock ends the program with 124")
def _():
    done = sh("echo before; sleep 3000", "-t", f"{int(1000 * SLOW)}ms").exits(124)
    equal(done.out, "before\n", "stdout")


@test("after an error of cejail the exit status is 125 and the program has not run")
def _():
    refused(run("--no-such-option", "-p", "base", "--", "echo", "ran"), "--no-such-option")


@test("a missing command ends with 127, one that cannot be executed with 126")
def _():
    done = run("-p", "base", "--", "/no/such/command").exits(127)
    contains(done.err, "/no/such/command", "stderr")
    run("-p", "base", "--", "no-such-command").exits(127)
    done = run("-p", "base", "--", "/etc/passwd").exits(126)
    contains(done.err, "/etc/passwd", "stderr")
    run("-p", "base", "--", "/usr").exits(126)


@test("nothing of the caller's environment is inherited")
def _():
    done = sh("env").exits(0)
    lacks(done.out, "CEJAIL", "the environment")
    lacks(done.out, "canary", "the environment")
    lacks(done.out, "XDG_", "the environment")
    lacks(done.out, "LD_", "the environment")


@test("--env sets one variable, takes it from the caller, and the last one wins")
def _():
    sh("echo $A-$B", "-e", "A=1", "--env", "B=x y", "-e", "A=2").exits(0).says("2-x y\n")
    env = environment(FROM_CALLER="yes")
    run("-p", "base", "-e", "FROM_CALLER", "--", "/bin/sh", "-c", "echo $FROM_CALLER", env=env).says("yes\n")


@test("the program starts in /box, which holds an empty directory out, and may write")
def _():
    sh("pwd; ls -A; echo x > f && cat f").exits(0).says("/box\nout\nx\n")


@test("--workdir chooses where the program starts")
def _():
    sh("pwd", "-w", "/tmp").exits(0).says("/tmp\n")
    sh("pwd", "--workdir=/usr/bin").exits(0).says("/usr/bin\n")


@test("a --workdir that isn't in the jail is refused by name")
def _():
    refused(sh("true", "-w", "/no/such/place"), "/no/such/place")


@test("standard input is /dev/null, and the caller's with --interactive")
def _():
    sh("cat; echo end", given="words\n").exits(0).says("end\n")
    sh("cat; echo end", "-i", given="words\n").exits(0).says("words\nend\n")


@test("standard output and standard error stay apart, byte for byte")
def _():
    done = sh(r"printf 'a\0\377b'; printf 'c\1d' >&2", "--quiet").exits(0)
    equal((done.raw_out, done.raw_err), (b"a\0\xffb", b"c\1d"), "stdout and stderr")


@test("--dry-run prints the plan as JSON and runs nothing")
def _():
    with Folder() as f:
        done = sh("echo ran", "--dry-run", "-m", "64M", "-o", f.path).exits(0)
        plan = json.loads(done.out)
        true(isinstance(plan, dict) and plan, "the plan is an object")
        lacks(done.out, "ran\n", "stdout")
        contains(done.out, str(64 << 20), "the plan")


@test("--dry-run does not show the values that --env NAME copies from the caller")
def _():
    env = environment(API_KEY="hunter2", API="plain")
    done = sh("true", "--dry-run", "-e", "API_KEY", "-e", "OTHER=shown", env=env).exits(0)
    lacks(done.out, "hunter2", "the plan")
    values = json.loads(done.out)["program"]["env"]
    true("API_KEY=(copied)" in values and "OTHER=shown" in values, f"{values}")
    sh("echo $API_KEY", "-e", "API_KEY", env=env).exits(0).says("hunter2\n")


@test("--version, --help and 'version' answer on standard output")
def _():
    contains(cejail("version").exits(0).out, "cejail ", "version")
    contains(cejail("--version").exits(0).out, "cejail ", "version")
    for words in (("--help",), ("run", "--help")):
        contains(cejail(*words).exits(0).out, "cejail run", "help")


@test("an unknown verb is named in the error, and cejail without a verb prints the list of verbs")
def _():
    refused(cejail("rnu", "x"), "rnu")
    contains(cejail().exits(125).err, "run", "stderr")


@test("two runs at once don't see each other's /box, /tmp, /dev/shm or processes")
def _():
    script = "echo mine > /box/f; echo mine > /tmp/f; echo mine > /dev/shm/f; echo ready; sleep 1234"
    look = "ls /box /tmp /dev/shm | grep -c '^f$'; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 1234'; true"
    first = start("run", "-p", "base", "--", "/bin/sh", "-c", script)
    equal(first.stdout.readline(), b"ready\n", "the first run's word")
    second = sh(look).exits(0)
    equal(first.poll(), None, "the end of the first run")
    first.terminate()
    finish(first)
    equal(second.out.split(), ["0", "0"], "files and processes of the other")
    control = sh(script.replace("echo ready; sleep 1234", f"sleep 1234 & {look}")).exits(0)
    equal(control.out.split(), ["3", "1"], "a run's own files and processes")


@test("twenty concurrent runs each return their own output and exit status")
def _():
    runs = [start("run", "-p", "base", "--", "/bin/sh", "-c", f"echo {i}; exit {i}") for i in range(20)]
    for i, process in enumerate(runs):
        finish(process, 60, args=("run", i)).exits(i).says(f"{i}\n")


@test("the program is in a session and a process group of its own")
def _():
    pid, group, session = sh("cut -d' ' -f1,5,6 /proc/self/stat; echo $$ > /dev/null").exits(0).out.split()
    true(int(session) > 0 and int(group) > 0, "ids of another pid namespace")
    own = sh("read -r a b c d e f rest < /proc/$$/stat; echo $$ $e $f").exits(0).out.split()
    equal(own[0], own[1], "process group of the main process")
    equal(own[0], own[2], "session of the main process")


@test("the jail has no controlling terminal and no terminal at all")
def _():
    done = sh("tty; ls /dev/pts 2>/dev/null; [ -t 0 ] || [ -t 1 ] && echo terminal; exit 0").exits(0)
    lacks(done.out, "terminal\n", "stdout")
    lacks(done.out, "/dev/", "stdout")


@test("without a network a jail has a loopback interface of its own and no other")
def _():
    done = sh("tail -n +3 /proc/net/dev | cut -d: -f1", "--network", "none").exits(0)
    equal(done.out.split(), ["lo"], "interfaces")


@test("the jail can be a directory")
def _():
    box = need_root_tree()
    with Folder() as f:
        os.makedirs(f / "bin")
        shutil.copy(box, f / "bin/busybox")
        os.symlink("busybox", f / "bin/sh")
        f.file("etc/marker", "here\n")
        done = sh("/bin/busybox cat /etc/marker; echo no > /etc/marker", "--rootfs", f.path)
        equal(done.out, "here\n", "stdout")
        true(done.code != 0, "the root is writable")
        with open(f / "etc/marker", encoding="ascii") as file:
            equal(file.read(), "here\n", "the host's file")


@test("directories are layers, the first on top")
def _():
    box = need_root_tree()
    with Folder() as f:
        for layer in ("top", "low"):
            f.file(f"{layer}/etc/marker", layer)
            f.file(f"{layer}/etc/{layer}", "")
        os.makedirs(f / "low/bin")
        shutil.copy(box, f / "low/bin/busybox")
        os.symlink("busybox", f / "low/bin/sh")
        script = "/bin/busybox cat /etc/marker; /bin/busybox test -e /etc/low && echo +low"
        sh(script, "--rootfs", f"{f / 'top'}:{f / 'low'}").exits(0).says("top+low\n")


@test("--writable lets the program change its root, and discards the changes at the end")
def _():
    sh("echo x > /etc/new && rm /etc/passwd && mkdir /new && ls -d /etc/new /new", "--writable").exits(0)
    sh("ls -d /etc/new /new /etc/passwd 2>/dev/null; true", "--writable").exits(0).says("/etc/passwd\n")
    true(not os.path.exists("/new") and not os.path.exists("/etc/new"), "a file came out of the jail")


@test("without --writable the root can't be changed")
def _():
    for path in ("/new", "/etc/new", "/usr/new", "/usr/bin/new", "/dev/new", "/proc/new"):
        done = sh(f"echo x > {path}")
        true(done.code != 0, f"{path} could be written")


@test("two identical runs have the same status, limits, layers and denied calls")
def _():
    first, second = (sh_result("echo x") for _ in range(2))
    for value in (first, second):
        value["limits"]["cpus"].pop("hit")  # a start may be throttled once, or not
    for key in ("status", "exit_code", "limits", "layers", "denied_syscalls"):
        equal(first[key], second[key], key)


@test("a file without an extension runs when --profile is given")
def _():
    with Folder() as f:
        run("-p", "python", f.file("noextension", "print('ok')")).exits(0).says("ok\n")


@test("options end at the first operand")
def _():
    with Folder() as f:
        file = f.file("args.py", "import sys; print(sys.argv[1:])")
        run(file, "--json", "-t", "1", "--").exits(0).says("['--json', '-t', '1', '--']\n")


@test("the result of a run without --json is the program's output and nothing else")
def _():
    done = sh("echo only").exits(0)
    equal(done.out, "only\n", "stdout")
    result("-p", "base", "--", "true")
