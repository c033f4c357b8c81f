# SPDX-License-Identifier: Apache-2.0
"""What goes in and what comes out: files, arguments as data, binds, a socket, artefacts."""

import hashlib
import json
import os
import shutil
import socket
import threading

from harness import *  # noqa: F403


@test("--file copies a file to /box under its own name")
def _():
    with Folder() as f:
        sh("cat data.txt", "-f", f.file("data.txt", "contents")).exits(0).says("contents")


@test("--file copies to the place named, and makes its parents")
def _():
    with Folder() as f:
        sh("cat /box/a/b/c.txt", "--file", f.file("d", "x") + ":/box/a/b/c.txt").exits(0).says("x")
        sh("cat /tmp/c", "--file", f.file("d", "x") + ":/tmp/c").exits(0).says("x")


@test("--file copies a directory with all below it, and keeps the execute permission")
def _():
    with Folder() as f:
        f.file("tree/sub/run.sh", "#!/bin/sh\necho ran", 0o755)
        f.file("tree/plain", "p", 0o644)
        os.symlink("plain", f / "tree/link")
        done = sh("./tree/sub/run.sh; cat tree/link; [ -x tree/plain ] || echo ' not executable'", "-f", f / "tree")
        done.exits(0).says("ran\np not executable\n")


@test("--file keeps modes and times of modification, of files, directories and links")
def _():
    with Folder() as f:
        f.file("tree/sub/a", "a", 0o640)
        f.file("tree/b", "b", 0o755)
        os.symlink("b", f / "tree/link")
        for i, name in enumerate(("tree/sub/a", "tree/b", "tree/link", "tree/sub", "tree")):
            os.utime(f / name, ns=(0, 10**18 + i * 10**9 + 123456789), follow_symlinks=False)
        os.chmod(f / "tree/sub", 0o555)
        done = sh("cd tree && stat -c '%n %a %.Y' . sub sub/a b link", "-f", f / "tree").exits(0)
        os.chmod(f / "tree/sub", 0o755)
        wanted = (". 755 4", "sub 555 3", "sub/a 640 0", "b 755 1", "link 777 2")
        equal(done.out, "".join(f"{row[:-1]}100000000{row[-1]}.123456789\n" for row in wanted), "stdout")


@test("what is copied in may be changed inside, and the host's file stays as it was")
def _():
    with Folder() as f:
        file = f.file("data", "before")
        sh("echo after > data && cat data", "-f", file).exits(0).says("after\n")
        with open(file, encoding="ascii") as copy:
            equal(copy.read(), "before", "the host's file")


@test("--file refuses a link by name, and says where it leads")
def _():
    with Folder() as f:
        real = f.file("real", "x")
        os.symlink("real", f / "link")
        refused(sh("true", "-f", f / "link"), "link", os.path.realpath(real))
        os.symlink("gone", f / "dangling")
        refused(sh("true", "-f", f / "dangling"), "dangling", "No such file")


@test("a link in a copied directory resolves inside the jail, not on the host")
def _():
    with Folder() as f:
        f.file("secret", SECRET)
        os.makedirs(f / "tree")
        os.symlink(f / "secret", f / "tree/link")
        done = sh("cat tree/link", "-f", f / "tree")
        lacks(done.out, SECRET, "stdout")
        true(done.code != 0, "the link led to the host")


@test("--args-json becomes /box/args.json, byte for byte, and is not interpreted")
def _():
    text = '{"a": "\'; echo $(id) `id`", "n": 1.50, "u": "\\u00e9"}'
    sh("cat /box/args.json", "--args-json", text).exits(0).says(text)
    with Folder() as f:
        sh("cat args.json", "--args-json", "@" + f.file("a", text)).exits(0).says(text)


@test("an --args-json that is not JSON is refused")
def _():
    refused(sh("true", "--args-json", '{"a":'), "args-json")
    refused(sh("true", "--args-json", "@/no/such/file"), "/no/such/file")


@test("--ro-bind shows a directory that can't be written")
def _():
    with Folder() as f:
        f.file("file", "seen")
        done = sh(f"cat {f.path}/file; echo x > {f.path}/file || echo refused", "--ro-bind", f.path)
        equal(done.out, "seenrefused\n", "stdout")
        sh("cat /mnt/in/file", "--ro-bind", f"{f.path}:/mnt/in").exits(0).says("seen")


@test("--bind shows a directory that can be written by its owner", who="user")
def _():
    with Folder() as f:
        sh("echo new > /work/out", "--bind", f"{f.path}:/work").exits(0)
        with open(f / "out", encoding="ascii") as file:
            equal(file.read(), "new\n", "the host's file")


@test("a directory below /dev is bound as any other: written by its owner, and its programs run")
def _():
    with Folder("/dev/shm") as f:
        f.file("run", "#!/bin/sh\necho ran", mode=0o755)
        sh("/work/run", "--ro-bind", f"{f.path}:/work").exits(0).says("ran\n")
        if WHO == "user":
            sh("echo new > /work/out && cat /work/out", "--bind", f"{f.path}:/work").exits(0).says("new\n")


@test("a bound directory is nosuid, nodev and does not follow links out of it")
def _():
    with Folder() as f:
        f.file("bound/real", "real")
        os.symlink("/etc/passwd", f / "bound/link")
        done = sh("grep ' /in ' /proc/self/mountinfo; cat /in/link 2>&1", "--ro-bind", f"{f / 'bound'}:/in")
        for flag in ("nosuid", "nodev"):
            contains(done.out, flag, "flags of the bind")


@test("a bind source that is a symbolic link elsewhere is refused, and the real path is named")
def _():
    with Folder() as f:
        f.folder("real")
        os.symlink(f / "real", f / "link")
        refused(sh("true", "--ro-bind", f"{f / 'link'}:/in"), "link", "real")


@test("a place below a link that every jail has is the place that the link leads to")
def _():
    with Folder("/var/tmp") as f, socket.socket(socket.AF_UNIX) as server:
        f.file("file", "seen")
        server.bind(f / "s")
        os.chmod(f / "s", 0o777)
        server.listen()
        same = f.path.replace("/var/tmp", "/tmp")
        sh(f"cat {f.path}/file {same}/file", "--ro-bind", f.path).exits(0).says("seenseen")
        sh("cat /var/run/in/file /run/in/file", "--ro-bind", f"{f.path}:/var/run/in").exits(0).says("seenseen")
        sh("cat /tmp/copy", "-f", f.file("file", "copied") + ":/var/tmp/copy").exits(0).says("copied")
        sh("[ -S /run/api ] && [ -S /var/run/api ]", "--connect", f"unix:{f / 's'}:/var/run/api").exits(0)
        refused(sh("true", "--ro-bind", f"{f.path}:/var/tmp"), "/tmp", "the jail's own")
        refused(sh("true", "--ro-bind", f"{f.path}:/etc/mtab"), "/etc/mtab")


@test("a link of an image is never the way to a place: neither its own nor one with the name of a link of ours")
def _():
    box = need_root_tree()
    with Folder() as f:
        tree = f.folder("tree")
        os.makedirs(f"{tree}/bin")
        os.makedirs(f"{tree}/var")
        shutil.copy(box, f"{tree}/bin/busybox")
        for name in ("sh", "cat", "ls"):
            os.symlink("busybox", f"{tree}/bin/{name}")
        os.symlink("/bin", f"{tree}/var/run")
        os.symlink("/bin", f"{tree}/var/tmp")
        os.symlink("/bin", f"{tree}/var/other")
        f.file("in/file", "seen")
        options = ("--rootfs", tree, "--ro-bind")
        sh("cat /var/run/in/file /run/in/file; ls /bin/in 2>/dev/null", *options, f"{f / 'in'}:/var/run/in").says("seenseen")
        sh("cat /var/tmp/in/file /tmp/in/file; ls /bin/in 2>/dev/null", *options, f"{f / 'in'}:/var/tmp/in").says("seenseen")
        refused(sh("true", *options, f"{f / 'in'}:/var/other/in"), "/var/other/in", "link")


@test("--connect unix: lets exactly one socket of the host in")
def _():
    with Folder() as f, socket.socket(socket.AF_UNIX) as server:
        os.chmod(f.path, 0o755)
        server.bind(f / "s")
        os.chmod(f / "s", 0o777)
        server.listen()

        def answer():
            connection, _ = server.accept()
            connection.sendall(connection.recv(100).upper())
            connection.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        code = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('/box/api'); s.send(b'call'); print(s.recv(9))"
        python(code, "--connect", f"unix:{f / 's'}:/box/api").exits(0).says("b'CALL'\n")
        sh(f"ls {f.path} 2>/dev/null", "--connect", f"unix:{f / 's'}:/tmp/api")


@test("--connect works with /tmp as the place, above the scratch's own mount")
def _():
    with Folder() as f, socket.socket(socket.AF_UNIX) as server:
        server.bind(f / "s")
        os.chmod(f / "s", 0o777)
        server.listen()
        sh("[ -S /tmp/api ] && echo socket", "--connect", f"unix:{f / 's'}:/tmp/api").exits(0).says("socket\n")


@test("--connect to what is no socket is refused by name")
def _():
    with Folder() as f:
        refused(sh("true", "--connect", f"unix:{f.file('plain')}"), "plain")
        refused(sh("true", "--connect", "unix:/no/such/socket"), "/no/such/socket")


@test("artefacts are copied out of /box/out, with their sums in the result")
def _():
    with Folder() as f:
        out = f.folder("out")
        value = sh_result("mkdir -p out/sub; echo a > out/a.txt; printf b > out/sub/b.png", "-o", out)
        listed = {item["path"]: item for item in value["artifacts"]}
        equal(sorted(listed), ["a.txt", "sub/b.png"], "artefacts")
        with open(f / "out/sub/b.png", "rb") as file:
            equal(file.read(), b"b", "the copy")
        equal(listed["sub/b.png"]["sha256"], hashlib.sha256(b"b").hexdigest(), "sha256")
        equal(listed["sub/b.png"]["type"], "text/plain", "type")
        equal(listed["a.txt"]["bytes"], 2, "bytes")
        equal(os.stat(f / "out/a.txt").st_uid, os.geteuid(), "owner of the copy")


@test("an artefact that is a symbolic link is not followed, and named in a warning")
def _():
    with Folder() as f:
        out = f.folder("out")
        value = sh_result(
            "mkdir -p out; ln -s /etc/passwd out/l; ln -s / out/d; ln -s ../../../../etc/shadow out/up; echo x > out/ok", "-o", out
        )
        equal([item["path"] for item in value["artifacts"]], ["ok"], "artefacts")
        equal(sorted(os.listdir(out)), ["ok"], "files copied out")
        contains(" ".join(value["warnings"]), "'l'", "warnings")


@test("hard links, fifos and sockets are not artefacts, and don't block")
def _():
    with Folder() as f:
        out = f.folder("out")
        script = "mkdir -p out; mkfifo out/fifo; echo x > out/a; ln out/a out/b; echo y > out/ok"
        value = sh_result(script, "-o", out)
        equal(sorted(os.listdir(out)), ["ok"], "files copied out")
        equal(value["status"], "exited", "status")


@test("odd names don't leave the folder or break the line")
def _():
    with Folder() as f:
        out = f.folder("out")
        script = "mkdir -p out/..x; echo x > 'out/-rf'; echo x > \"out/$(printf 'a\\nb')\"; echo x > 'out/..x/f'; echo x > out/$(printf '\\377')"
        done = sh(script, "-o", out).exits(0)
        for line in done.err.splitlines():
            true(line.startswith("cejail: "), f"a line of stderr: {line!r}")
        for name in os.listdir(out):
            true(not name.startswith("-") and "\n" not in name, f"copied out: {name!r}")


@test("an existing link in the caller's folder is replaced, not followed")
def _():
    with Folder() as f:
        out, victim = f.folder("out"), f.file("victim", "safe")
        os.symlink(victim, f / "out/a")
        sh("mkdir -p out; echo evil > out/a", "-o", out).exits(0)
        with open(victim, encoding="ascii") as file:
            equal(file.read(), "safe", "what the link pointed to")


@test("artefacts are delivered after a time-out, too")
def _():
    with Folder() as f:
        out = f.folder("out")
        sh("mkdir -p out; echo x > out/early; sleep 6000", "-t", f"{int(1000 * SLOW)}ms", "-o", out).exits(124)
        equal(os.listdir(out), ["early"], "files copied out")


@test("/box/out is there with and without --artifacts, empty, and the program's own")
def _():
    code = "import os\nprint(os.listdir('out'), os.stat('out').st_uid == os.getuid(), oct(os.stat('out').st_mode))\nos.makedirs('out', exist_ok=True)\nopen('out/x', 'w')"
    with Folder() as f:
        for options in ((), ("-o", f.folder("out")), ("--writable",)):
            python(code, *options).exits(0).says("[] True 0o40755\n")
        equal(os.listdir(f / "out"), ["x"], "files copied out")
        f.file("in/given", "x")
        sh("cat out/given", "-f", f"{f / 'in'}:/box/out").exits(0).says("x")
        sh("cat out/given", "--ro-bind", f"{f / 'in'}:/box/out").exits(0).says("x")
        refused(sh("true", "-f", f"{f / 'in/given'}:/box/out"), "/box/out", "directory")


@test("artefacts whose names other programs execute are not copied out, and each is named")
def _():
    with Folder() as f:
        out = f.folder("out")
        script = "mkdir -p out/.git/hooks out/sub/.vscode; for n in .git/hooks/pre-commit .envrc sub/.vscode/tasks.json sub/fine"
        value = sh_result(script + " .gitignore; do echo x > out/$n; done", "-o", out)
        equal([item["path"] for item in value["artifacts"]], [".gitignore", "sub/fine"], "artefacts")
        equal(sorted(os.listdir(out)), [".gitignore", "sub"], "in the folder")
        equal(os.listdir(os.path.join(out, "sub")), ["fine"], "in sub")
        warnings = " ".join(value["warnings"])
        for name in (".git", ".envrc", "sub/.vscode"):
            contains(warnings, f"'{name}", "warnings")
        contains(warnings, "execute or obey", "warnings")


@test("a program that writes names below --bind that the caller's tools execute causes a warning")
def _():
    with Folder() as f:
        project = f.folder("project")
        os.makedirs(f"{project}/.git/hooks")
        f.file("project/.mcp.json", "{}")
        f.file("project/.bashrc", "x")
        for folder in (project, f"{project}/.git", f"{project}/.git/hooks"):
            os.chmod(folder, 0o777)
        script = "cd /work; echo x > .git/hooks/pre-commit; mkdir .claude; echo x > .claude/settings.json; echo x > .envrc"
        value = sh_result(script + "; echo x > .git/index; ln -s /etc .husky; cat .mcp.json", "--bind", f"{project}:/work")
        told = [text for text in value["warnings"] if text.startswith("created or changed during the run")]
        equal(len(told), 1, "warnings of that kind")
        for name in (".git/hooks/pre-commit", ".claude", ".envrc", ".husky"):
            contains(told[0], f"'{project}/{name}'", "the warning")
        for name in (".mcp.json", ".bashrc", ".git/index", "settings.json"):
            lacks(told[0], name, "the warning")


@test("a program that only reads below --bind, or writes other names, causes no warning")
def _():
    with Folder() as f:
        project = f.folder("project")
        f.file("project/.envrc", "x")
        os.chmod(project, 0o777)
        for script in ("cat /work/.envrc", "echo x > /work/main.c"):
            value = sh_result(script, "--bind", f"{project}:/work")
            lacks(" ".join(value["warnings"]), "created or changed", "warnings")


@test("without --artifacts nothing is copied out")
def _():
    value = sh_result("mkdir -p out; echo x > out/a")
    equal(value["artifacts"], [], "artefacts")


@test("an --artifacts folder that isn't there is refused before anything runs")
def _():
    refused(sh("echo ran", "-o", "/no/such/folder"), "/no/such/folder")


@test("the code's hash is over exactly the bytes that ran")
def _():
    code = "print('x')\r\n"
    with Folder() as f:
        value = result("-p", "python", f.file("c.py", code))
        equal(value["code_sha256"], hashlib.sha256(code.encode()).hexdigest(), "code_sha256")
    value = result("-p", "python", "-", given=code)
    equal(value["code_sha256"], hashlib.sha256(code.encode()).hexdigest(), "code_sha256")


@test("a program that is named through a link runs; what is hashed is what it leads to, and -v says which")
def _():
    code = "print('linked', __file__)"
    with Folder() as f:
        real = f.file("deep/real.py", code)
        os.symlink("deep/real.py", f / "middle.py")
        os.symlink(f / "middle.py", f / "link.py")
        value = result(f / "link.py")
        equal(value["stdout"]["text"], "linked /box/main.py\n", "stdout")
        equal(value["code_sha256"], hashlib.sha256(code.encode()).hexdigest(), "code_sha256")
        contains(run("-v", f / "link.py").exits(0).err, f"'{os.path.realpath(real)}'", "stderr with -v")
        os.symlink("/proc/self/exe", f / "magic.py")
        refused(run(f / "magic.py"), "magic.py", "link")
        os.symlink("gone", f / "dangling.py")
        refused(run(f / "dangling.py"), "dangling.py", "gone")


@test("changing the code file during the run does not change the code that runs")
def _():
    with Folder() as f:
        file = f.file("c.py", "import time; print('first'); time.sleep(1); print(open(__file__).read()[:6])")
        process = start("run", "-p", "python", file)
        wait_until(lambda: process.stdout.read1(6), "the first word")
        with open(file, "w", encoding="ascii") as text:
            text.write("print('second')")
        lacks(finish(process).exits(0).out, "second", "stdout")


@test("a file name with spaces, quotes and non-ASCII letters works")
def _():
    with Folder() as f:
        run(f.file("ein 'Ding' ü.py", "print('ok')")).exits(0).says("ok\n")
        sh("cat \"/box/a b\"", "-f", f.file("x", "y") + ":/box/a b").exits(0).says("y")


@test("the profile's name and hash are in the result")
def _():
    first, second = result("-p", "base", "--", "true"), result("-p", "python", "-c", "")
    true(first["profile"]["sha256"] != second["profile"]["sha256"], "both profiles have the same hash")
    equal(json.dumps([first["profile"]["name"], second["profile"]["name"]]), '["base", "python"]', "names")


@test("--file-text creates a file with a text, and only the first '=' divides it")
def _():
    done = sh("cat d/a.txt; cat /tmp/b; wc -c <empty", "--file-text", "d/a.txt=x=y\n", "--file-text", "/tmp/b=$HOME `id`\n", "--file-text", "empty=")
    equal(done.exits(0).out, "x=y\n$HOME `id`\n0\n", "contents")
    for text, word in (("nothing", "DST=TEXT"), ("=x", "DST=TEXT"), ("../x=1", ".."), ("/proc/x=1", "/proc"), ("/etc/x=1", "read-only root")):
        refused(sh("true", "--file-text", text), word)
        tried()


@test("--file -:DST copies standard input to its end, whatever its bytes are")
def _():
    content = bytes(range(256)) * 4096
    done = sh("sha256sum in | cut -c 1-64; stat -c %a in; cat", "--file", "-:in", given=content)
    equal(done.exits(0).out, f"{hashlib.sha256(content).hexdigest()}\n644\n", "content")
    sh("wc -c </tmp/in", "--file", "-:/tmp/in", given="").exits(0).says("0\n")
    refused(sh("true", "--file", "-", given=""), "--file", "has no name")
    refused(sh("true", "--file", "-:in", "-i", given=""), "'--file -' and '--interactive'")
    refused(run("-p", "python", "--file", "-:in", "-", given=""), "'--file -' and '-'")
    with Folder() as folder:
        folder.file("-", "dash")
        sh("cat ./-", "--file", folder / "-").exits(0).says("dash")


@test("standard input that does not fit --disk is an error, and nothing is left")
def _():
    if REMOTE:
        return  # the service's own caps come first: service/malformed.py
    done = sh("true", "--disk", "1M", "--file", "-:in", given=b"x" * (2 << 20))
    refused(done, "standard input", "1M")
