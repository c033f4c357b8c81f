# SPDX-License-Identifier: Apache-2.0
"""The most typed options of docker and podman: each gets one line that says what to write here."""

import os
import shutil
import socket

from harness import *  # noqa: F403

# An option as it is typed, and a word of the answer.
ANSWERS = (
    ("--volume /a:/b", "--bind"), ("--mount type=bind,src=/a,dst=/b", "--bind"), ("--rm", "not needed"),
    ("--name=x", "--id"), ("-u 1000", "not needed"), ("--user=me", "not needed"), ("--read-only", "not needed"),
    ("-d", "not available"), ("--privileged", "not available"), ("--cap-add=ALL", "not available"),
    ("--cap-drop=ALL", "not needed"), ("--gpus all", "not available"), ("--publish 80:80", "not available"),
    ("--entrypoint sh", "'--'"),
)  # fmt: skip


@test("serve answers an option for a port with what it has instead")
def _():
    refused(cejail("serve", "--port", "8080"), "unknown option '--port': ", "--tcp 127.0.0.1:PORT")


@test("an option of another program is answered with what to write here")
def _():
    for words, answer in ANSWERS:
        option = words.split()[0].partition("=")[0]
        refused(run(*words.split(), "x.py"), f"unknown option '{option}': ", answer)
    tried(len(ANSWERS))


@test("-it, -v SRC:DST, -p PORT:PORT and --network host are recognised as options of other programs")
def _():
    for words, answer in (
        ("-it ubuntu bash", "--tty -i"), ("-ti ubuntu bash", "--tty -i"), ("-it -p python x.py", "--tty -i"),
        ("-t -i x.py", "--tty -i"), ("-v /a:/b ubuntu", "--bind /a:/b"),
        ("-p python -v /a:/b x.py", "--bind /a:/b"), ("-p 8080:80 x.py", "profile"),
        ("--network host x.py", "--network public"), ("--network=bridge x.py", "--network public"),
        ("--ro-bind /etc /etc ls", "--ro-bind /etc:/etc"), ("--bind /etc/passwd /etc/passwd cat", "--bind /etc/passwd:/etc/passwd"),
    ):  # fmt: skip
        refused(run(*words.split()), answer)


@test("-it with a duration is -i and a time limit")
def _():
    run("-it", "30s", "-p", "base", "--", "cat", given="x").exits(0).says("x")


@test("an image, a command and an interpreter in FILE's place are answered with what to write")
def _():
    with Folder() as f:
        f.file("x.py", "print('fine')")
        for words, answer in (
            ("ubuntu bash", "'cejail run -- bash'"), ("python:3.12 python", "an image is named with --rootfs"), ("ubuntu", "'cejail shell'"),
            ("ls", "'cejail run -- ls'"), ("python3 x.py", "'cejail run x.py'"), ("-p python ls", "'cejail run -- ls'"),
            ("no-such-command", "'--'"),
        ):  # fmt: skip
            refused(run(*words.split(), cwd=f.path), answer)


@test("a file after -- that is on the host and not in the jail is answered with how to run it")
def _():
    with Folder() as f:
        f.file("x.py", "print('fine')")
        done = run("--", "x.py", cwd=f.path).exits(127)
        contains(done.err.splitlines()[-1], "'cejail run x.py'", "the last line")
        lacks(run("--", "y.py", cwd=f.path).exits(127).err, "cejail run y.py", "stderr")


@test("a file or an option in the verb's place is answered with the verb")
def _():
    with Folder() as f:
        f.file("x.py", "print('fine')")
        refused(cejail("x.py", cwd=f.path), "'cejail run x.py'")
        refused(cejail("-p", "python", "x.py", cwd=f.path), "cejail run -p")
    refused(cejail("exec", "x"), "cejail shell")
    refused(cejail("stop", "x"), "cejail kill")


@test("the beginning of an option suggests it and does not act")
def _():
    for start, whole in (("--memor", "--memory"), ("--netw", "--network"), ("--strict-", "--strict"), ("--worki", "--workdir")):
        refused(run(f"{start}=1", "x.py"), f"unknown option '{start}'", f"'{whole}'")


@test("an option that took FILE as its value is named in the error")
def _():
    with Folder() as f:
        f.file("x.py", "print('fine')")
        refused(run("-m", "x.py", cwd=f.path), "-m: ", "'x.py' is not a size")
        refused(run("-p", "python", "--cpus", "x.py", cwd=f.path), "--cpus: ", "'x.py'")
        refused(run("-f", "x.py", cwd=f.path), "'x.py' is the value of '-f'")
        refused(run("-t", "--tty", "x.py", cwd=f.path), "-t: '--tty'")
        done = run("--json", "out.json", "x.py", cwd=f.path).exits(125)
        contains(done.err, "--json=out.json", "stderr")


def last_lines(done):
    """What cejail said, but for its warnings."""
    return [line for line in done.err.splitlines() if not line.startswith("cejail: warning: ")]


@test("an option of cejail after FILE goes to the program, and one note says so")
def _():
    with Folder() as f:
        file = f.file("n.py", "import sys\nprint(sys.argv[1:])")
        done = run("--network", "none", file, "--network", "none", "--memory=1G").exits(0).says("['--network', 'none', '--memory=1G']\n")
        equal(len(last_lines(done)), 1, f"notes in {done.err!r}")
        contains(last_lines(done)[0], "'--network' follows FILE", "the note")
        for words in (("-q", file, "--network", "none"), (file, "--", "--network"), (file, "-v", "-m", "http", "--other")):
            equal(last_lines(run("--network", "none", *words).exits(0)), [], f"notes for {words}")
        equal(last_lines(sh("true", "--network", "none").exits(0)), [], "notes for a command")


def input_note(*options, **how):
    done = sh("true", "--network", "none", *options, **how).exits(0)
    return [line for line in last_lines(done) if "standard input" in line]


@test("data on standard input that cejail does not read causes one note, and stays unread")
def _():
    reader, writer = os.pipe()
    os.write(writer, b"request")
    equal(len(input_note(stdin=reader)), 1, "notes about a pipe with data")
    equal(os.read(reader, 100), b"request", "the pipe")
    equal(input_note(stdin=reader), [], "notes about an empty pipe")
    os.write(writer, b"request")
    equal(input_note("-q", stdin=reader), [], "notes with -q")
    os.read(reader, 100)
    equal(input_note("-i", given="request"), [], "notes with -i")
    os.close(reader), os.close(writer)
    with Folder() as f:
        with open(f.file("input", "lines\n"), "rb") as file:
            equal(len(input_note(stdin=file)), 1, "notes about a file")
            equal(file.read(), b"lines\n", "the file")
            equal(input_note(stdin=file), [], "notes about a file at its end")
    ours, theirs = socket.socketpair()
    ours.send(b"request")
    equal(input_note(stdin=theirs), [], "notes about a socket")
    equal(theirs.recv(100), b"request", "the socket")
    ours.close(), theirs.close()
    equal(input_note(), [], "notes about /dev/null")


@test("--env-file has the format of docker, and --env overrides it at any position")
def _():
    with Folder() as f:
        file = f.file("vars", "# comment\nA=1\nB=\"two words\"\n\n  C=x=y\r\nGIVEN\n")
        more = f.file("more", "A=2\nD=4")
        script = 'echo "$A|$B|$C|$GIVEN|$D"'
        env = environment(GIVEN="from the caller")
        sh(script, "--env-file", file, env=env).exits(0).says('1|"two words"|x=y|from the caller|\n')
        sh(script, "-e", "A=0", "--env-file", file, f"--env-file={more}", env=env).exits(0).says('0|"two words"|x=y|from the caller|4\n')
        sh(script, "--env-file", file, "--env-file", more, env=env).exits(0).says('2|"two words"|x=y|from the caller|4\n')
        with open(more, encoding="ascii") as end:
            number = end.fileno()
            sh(script, "--env-file", f"fd:{number}", pass_fds=[number]).exits(0).says("2||||4\n")
        refused(sh("true", "--env-file", f"fd:{number}"), f"fd:{number}", "Bad file descriptor")
        refused(sh("true", "--env-file", "fd:1x"), "'fd:1x' is not fd: and a number")


@test("a mistake in an --env-file is named with file and line")
def _():
    with Folder() as f:
        refused(sh("true", "--env-file", f.file("a", "A=1\nNOT_SET_ANYWHERE\n")), f / "a", "line 2", "NOT_SET_ANYWHERE")
        refused(sh("true", "--env-file", f.file("b", "A=1\n\nA B=2\n")), f / "b", "line 3", "'A B'")
        refused(sh("true", "--env-file", f.file("c", b"A=\0\n")), f / "c", "line 1", "NUL")
        refused(sh("true", "--env-file", f / "absent"), "--env-file", "absent")
        refused(sh("true", "--env-file", f.path), "--env-file", f.path)
        refused(sh("true", "--env-file", f.file("large", b"#" * (1 << 21))), "--env-file", "large")
        refused(sh("true", "--env-file="), "--env-file")


@test("--hostname sets the name in the kernel and in the jail's files, and invalid names are refused")
def _():
    done = sh("uname -n; cat /etc/hostname; grep -c 'build-1.example$' /etc/hosts", "--hostname", "build-1.example").exits(0)
    done.says("build-1.example\nbuild-1.example\n1\n")
    sh("uname -n").exits(0).says("cejail\n")
    for name in ("", "a b", "a_b", "-a", "a-", "a..b", ".a", "x" * 65, "a\nb 1.2.3.4", "a\tb", "é"):
        refused(sh("true", f"--hostname={name}"), "--hostname")


def listen_at(path):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    os.chmod(path, 0o666)
    server.listen()
    return server


@test("a bind or a socket that hands out the host, a home or keys causes a warning, and --strict refuses control sockets")
def _():
    with Folder() as f:
        docker, agent = listen_at(f / "docker.sock"), listen_at(f / "keys")
        home = f.folder("home")
        env = environment(HOME=home, SSH_AUTH_SOCK=f / "keys")
        for options, words in (
            (("--ro-bind", "/:/x"), "all of this host's files"),
            (("--bind", f"{home}:/x"), "a home directory"),
            (("--connect", f"unix:{f / 'docker.sock'}:/x.sock"), "control of docker"),
            (("--connect", f"unix:{f / 'keys'}:/x.sock"), "the keys of an ssh-agent"),
        ):
            value = sh_result("true", *options, env=env)
            said = [text for text in value["warnings"] if "hands the program" in text]
            equal(len(said), 1, f"warnings for {options}: {value['warnings']}")
            contains(said[0], words, "the warning")
            contains(sh("true", *options, env=env).exits(0).err, f"cejail: warning: {said[0]}\n", "stderr")
        done = sh("true", "--strict", "--connect", f"unix:{f / 'docker.sock'}", env=env)
        refused(done, "--strict", "control of docker")
        value = sh_result("true", "--ro-bind", f"{f.folder('mine')}:/x", env=env)
        true(not any("hands the program" in text for text in value["warnings"]), f"warnings {value['warnings']}")
        docker.close(), agent.close()


@test("--tmpfs is an empty directory that the program can write, where the root is read-only, and counts in --disk")
def _():
    script = "echo x > /data/cache/file && cat /data/cache/file && ls /data && ! touch /data/other 2>/dev/null && stat -c %a /data/cache"
    sh(script, "--tmpfs", "/data/cache").exits(0).says("x\ncache\n1777\n")
    sh("echo x > /usr/local/file && ls /usr/local", "--tmpfs=/usr/local:1M").exits(0).says("file\n")
    value = sh_result("head -c 20000000 /dev/zero > /data/large", "--tmpfs", "/data", "--disk", "4M")
    equal((value["exit_code"], value["limits"]["disk"]["hit"]), (1, True), f"exit code and disk.hit ({value['stderr']})")
    contains(value["stderr"]["text"], "No space left", "stderr")
    sh("! touch /elsewhere && ! mkdir /x", "--tmpfs", "/data").exits(0)


@test("--tmpfs is nosuid and nodev, noexec with --noexec, and takes copies")
def _():
    mounts = "grep ' /data ' /proc/self/mounts"
    for options, wanted in (((), False), (("--noexec",), True)):
        words = sh(mounts, "--tmpfs", "/data", *options).exits(0).out.split()[3].split(",")
        equal(("nosuid" in words, "nodev" in words, "noexec" in words), (True, True, wanted), f"attributes {words}")
    with Folder() as f:
        sh("cat /data/x/y", "--tmpfs", "/data", "-f", f"{f.file('y', 'text')}:/data/x/y").exits(0).says("text")
        inner = f.folder("inner")
        f.file("inner/z", "host")
        sh("cat /data/in/z", "--tmpfs", "/data", "--ro-bind", f"{inner}:/data/in").exits(0).says("host")


@test("an invalid --tmpfs is refused by name")
def _():
    for text, word in (("/data:1G", "--disk"), ("/data:much", "'much'"), ("data", "'data'"), ("/tmp", "'/tmp'"), ("/box", "'/box'"),
                       ("/proc/x", "/proc"), ("/dev/x", "/dev"), ("/", "'/'"), ("/a/../b", "'..'"), ("/a:1M:2", "':'")):  # fmt: skip
        refused(sh("true", "--tmpfs", text), "--tmpfs", word)
    refused(sh("true", *["--tmpfs=/a"] * 17), "--tmpfs", "16")
    refused(sh("true", "--tmpfs", "/a", "--tmpfs", "/a"), "/a")
    box = need_root_tree()
    with Folder() as f:
        victim = f.folder("victim")
        os.makedirs(f / "root/bin")
        shutil.copy(box, f / "root/bin/busybox")
        os.symlink(victim, f / "root/data")
        refused(run("-p", "base", "--rootfs", f / "root", "--tmpfs", "/data/x", "--", "/bin/busybox", "true"), "/data/x", "link")
        done = run("-p", "base", "--rootfs", f / "root", "--tmpfs", "/srv/x", "--", "/bin/busybox", "touch", "/srv/x/y")
        done.exits(0)
        equal((os.listdir(victim), os.path.exists(f / "root/srv")), ([], False), "the root on the host")
