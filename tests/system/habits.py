# SPDX-License-Identifier: Apache-2.0
"""Options of docker, podman, bwrap, firejail and systemd-run: each gets one line that says what to write here."""

from harness import *  # noqa: F403

# An option as it is typed, and a word of the answer.
ANSWERS = (
    ("--volume /a:/b", "--bind"), ("--mount type=bind,src=/a,dst=/b", "--bind"), ("--rm", "not needed"),
    ("--name=x", "--id"), ("-u 1000", "not needed"), ("--user=me", "not needed"), ("--read-only", "not needed"),
    ("--stdin", "--interactive"), ("-d", "not available"), ("--cap-add=ALL", "not available"),
    ("--ulimit nofile=10", "--nofile"), ("--entrypoint sh", "'--'"), ("--setenv A=1", "--env"), ("-E A=1", "--env"),
    ("--chdir /x", "--workdir"), ("--net=none", "--network"), ("--mem 1G", "--memory"), ("--pids 5", "--pids-limit"),
    ("--time 5s", "--timeout"), ("--privileged", "not available"), ("-P", "--interactive"),
    ("--cap-drop=ALL", "not needed"), ("--security-opt x", "not needed"), ("--gpus all", "not available"),
    ("--cpuset-cpus 0", "taskset"), ("--memory-swap 1G", "not needed"), ("--shm-size 1G", "--disk"),
    ("--init", "not needed"), ("--restart always", "not available"), ("--publish 80:80", "not available"),
    ("--device /dev/kvm", "not available"), ("--unshare-all", "not needed"), ("--die-with-parent", "not needed"),
    ("--dev /dev", "not needed"), ("--proc /proc", "not needed"), ("--bind-try /a /b", "--bind"),
    ("--new-session", "not needed"), ("--private", "not needed"), ("--whitelist=/x", "not needed"),
    ("--property=MemoryMax=1G", "--memory"), ("--share-net", "--network public"), ("--unshare-net", "--network none"),
)  # fmt: skip


@test("an option of another program is answered with what to write here")
def _():
    for words, answer in ANSWERS:
        option = words.split()[0].partition("=")[0]
        refused(run(*words.split(), "x.py"), f"unknown option '{option}': ", answer)
    tried(len(ANSWERS))


@test("-it, -v SRC:DST, -p PORT:PORT and --network host are recognised as another program's")
def _():
    for words, answer in (
        ("-it ubuntu bash", "--tty -i"), ("-ti ubuntu bash", "--tty -i"), ("-it -p python x.py", "--tty -i"),
        ("-t -i x.py", "--tty -i"), ("-v /a:/b ubuntu", "--bind /a:/b"), ("-v/a:/b x.py", "--bind /a:/b"),
        ("-p python -v /a:/b x.py", "--bind /a:/b"), ("-p 8080:80 x.py", "profile"), ("-p MemoryMax=1G x.py", "--memory"),
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
            ("ubuntu bash", "'cejail run -- bash'"), ("python:3.12 python", "no images"), ("ubuntu", "'cejail shell'"),
            ("ls", "'cejail run -- ls'"), ("python3 x.py", "'cejail run x.py'"), ("-p python ls", "'cejail run -- ls'"),
            ("no-such-command", "'--'"),
        ):  # fmt: skip
            refused(run(*words.split(), cwd=f.path), answer)


@test("a file after -- that is here and not in the jail is answered with how to run it")
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
    for start, whole in (("--memor", "--memory"), ("--netw", "--network"), ("--art", "--artifacts"), ("--strict-", "--strict")):
        refused(run(f"{start}=1", "x.py"), f"unknown option '{start}'", f"'{whole}'")


@test("a value that swallowed the file is what the message is about")
def _():
    with Folder() as f:
        f.file("x.py", "print('fine')")
        refused(run("-m", "x.py", cwd=f.path), "-m: ", "'x.py' is not a size")
        refused(run("-p", "python", "--cpus", "x.py", cwd=f.path), "--cpus: ", "'x.py'")
        refused(run("-f", "x.py", cwd=f.path), "'x.py' is the value of '-f'")
        refused(run("-t", "--tty", "x.py", cwd=f.path), "-t: '--tty'")
        done = run("--json", "out.json", "x.py", cwd=f.path).exits(125)
        contains(done.err, "--json=out.json", "stderr")
