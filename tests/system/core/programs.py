# SPDX-License-Identifier: Apache-2.0
"""Real programs that users bring: what works outside works in a jail without further options."""

import glob
import os
import shutil
import subprocess

from harness import *  # noqa: F403

HELPER = "def twice(n):\n    return 2 * n\n"


@test("a Python program of two files runs, and imports a module it has written itself")
def _():
    main = "import helper\nopen('made.py', 'w').write('VALUE = 3')\nimport made\nprint(helper.twice(made.VALUE))\n"
    with Folder() as f:
        run("-p", "python", "-f", f.file("helper.py", HELPER), f.file("main.py", main)).exits(0).says("6\n")
        f.file("package/__init__.py", "from .part import WORD\n")
        f.file("package/part.py", "WORD = 'part'\n")
        python("import package; print(package.WORD)", "-f", f / "package").exits(0).says("part\n")


@test("-e PYTHONPATH and -e PYTHONHASHSEED have their meaning for a Python program")
def _():
    with Folder() as f:
        file = f.file("helper.py", HELPER) + ":/box/lib/helper.py"
        python("import helper; print(helper.twice(4))", "-f", file, "-e", "PYTHONPATH=/box/lib").exits(0).says("8\n")
    show = "import sys; print(sys.flags.hash_randomization, hash('cejail'))"
    first, second = (python(show, "-e", "PYTHONHASHSEED=0").exits(0).out for _ in range(2))
    equal((first[:2], first), ("0 ", second), "hashes with a fixed seed")


PIP = """
import importlib, os, subprocess, sys
from harness_wheel import make_wheel
make_wheel("/tmp/index/tinypk")
server = subprocess.Popen([sys.executable, "-m", "http.server", "-b", "127.0.0.1", "-d", "/tmp/index", "8000"], stdout=-3, stderr=-3)
from urllib.request import urlopen
while True:
    try:
        urlopen("http://127.0.0.1:8000/").read()
        break
    except OSError:
        pass
def pip(*words):
    return subprocess.run(["python", "-m", "pip", *words], capture_output=True, text=True)
done = pip("install", "--index-url", "http://127.0.0.1:8000/", "tinypk")
assert done.returncode == 0, done
import tinypk
print(tinypk.VALUE, os.path.dirname(tinypk.__file__) == f"/box/.local/lib/python3.{sys.version_info[1]}/site-packages")
print(subprocess.run(["tinypk"], capture_output=True, text=True).stdout.strip())
print(pip("uninstall", "-y", "tinypk").returncode, os.path.exists(tinypk.__file__))
server.kill()
"""


@test("what a program installs with pip it can import, in the same process and in others; its commands are there, and it goes again")
def _():
    need_pip()
    with Folder() as f:
        run("-p", "python", "--network", "none", "-t", scaled(60), "-f", f.file("harness_wheel.py", WHEEL), f.file("main.py", PIP)).exits(0).says("7 True\ntool\n0 False\n")


@test("without a network pip and npm fail at once, and say that there is none")
def _():
    need_pip()
    done = run("-p", "python", "--network", "none", "-t", scaled(60), "--", "python", "-m", "pip", "install", "tinypk")
    done.exits(1)
    contains(done.out + done.err, "There is no network in this jail", "pip")
    lacks(done.out + done.err, "Retrying", "pip")
    need("npm", "npm", "--version")
    done = run("-p", "node", "--network", "none", "-t", scaled(60), "--", "npm", "install", "tinypk")
    done.exits(1)
    contains(done.err, "there-is-no-network-in-this-jail", "npm")


def make_venv(f, name="venv"):
    """A virtual environment of this host's Python with the module `inside`; its directory of packages."""
    done = subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", f / name], capture_output=True, check=False)
    if done.returncode != 0:
        raise Skip("python3 has no venv")
    packages = glob.glob(f"{f / name}/lib/python3.*/site-packages")[0]
    f.file(f"{packages}/inside.py", "VALUE = 7\n")
    return packages


USES_VENV = "import inside, os, sys; print(inside.VALUE, sys.prefix, os.access(sys.prefix, os.W_OK))"


@test("a virtual environment is used read-only, if it is named or active; none prevents it")
def _():
    with Folder() as f:
        make_venv(f)
        said = f"7 {f / 'venv'} False\n"
        file = f.file("main.py", USES_VENV)
        run("--venv", f / "venv", file).exits(0).says(said)
        run("-p", "python", "--venv", f / "venv", "--", "python", "-c", USES_VENV).exits(0).says(said)
        active = environment(VIRTUAL_ENV=str(f / "venv"))
        done = run(file, env=active).exits(0).says(said)
        contains(done.err, f"uses the virtual environment '{f / 'venv'}'", "the note")
        lacks(run("-p", "python", "-c", "", env=environment(VIRTUAL_ENV=str(f / "gone"))).exits(0).err, "virtual", "a stale one")
        run("--venv", "none", file, env=active).exits(1).says("")
        for words, said in (
            (("--venv", f / "gone"), "No such file"),
            (("--venv", f.folder("other")), "is no virtual environment"),
            (("--venv", f / "venv", "--rootfs", f.folder("root")), "needs the files of this host"),
            (("--venv", f / "venv", "--remote"), "exclude each other"),
        ):
            contains(run(*words, file).exits(125).err, said, f"{words}")
        contains(run("--remote=/no/such.sock", file, env=active).exits(125).err, "does not use the virtual environment", "a service")
        contains(run("--venv", f / "venv", file, env=environment(HOME=f"{f / 'venv'}/lib")).exits(125).err, "holds your home directory", "HOME")


@test("what stands above a file makes nothing visible: a note names the environment, and one of another user is refused")
def _():
    with Folder() as f:
        f.file("pyvenv.cfg")
        os.makedirs(f / "bin")
        os.symlink("/usr/bin/python3", f / "bin/python3")
        f.file("secret", "x")
        file = f.file("sub/main.py", f"import os; print(os.path.exists({f.path!r}))")
        done = run(file).exits(0).says("False\n")
        contains(done.err, f"add --venv {f.path}", "the note")
        if os.geteuid() == 0:
            os.chown(f / "pyvenv.cfg", 4242, 4242)
            contains(run("--venv", f.path, file).exits(125).err, "belongs to another user", "the environment of another user")


@test("a program can't leave an artifact that makes a directory a virtual environment")
def _():
    with Folder() as f:
        done = sh("touch out/pyvenv.cfg out/kept", "-o", f / "to").exits(0)
        equal(os.listdir(f / "to"), ["kept"], "what was copied")
        contains(done.err, "pyvenv.cfg", "the warning")


@test("a virtual environment that links to /bin/python3 works")
def _():
    with Folder() as f:
        make_venv(f)
        os.unlink(f / "venv/bin/python3")
        os.symlink("/bin/python3", f / "venv/bin/python3")
        run("-p", "python", "--venv", f / "venv", "-c", "import inside; print(inside.VALUE)").exits(0).says("7\n")


@test("of the interpreter that a virtual environment links to, a jail shows the program and its modules, and nothing that is none", limit=120)
def _():
    with Folder() as f:
        make_venv(f)
        link, real = f"{f / 'venv'}/bin/python3", os.path.realpath("/usr/bin/python3")
        name = os.path.basename(real)
        os.unlink(link)
        for target in (f.file("secret", "x"), f.file(f"private/bin/{name}", "x")):
            os.chmod(target, 0o755)
            os.symlink(target, link)
            contains(run("--venv", f / "venv", "-p", "python", "-c", "").exits(125).err, "no installation of Python", target)
            os.unlink(link)
        shutil.copytree(f"/usr/lib/{name}", f / f"python/lib/{name}", ignore=shutil.ignore_patterns("__pycache__", "test", "idlelib", "config-*", "dist-packages"), symlinks=False, ignore_dangling_symlinks=True)
        f.file("python/bin/own-tool", "")
        f.file("python/notes", "")
        shutil.copy(real, f / f"python/bin/{name}")
        os.symlink(name, f / "python/bin/python3")
        os.symlink(f / "python/bin/python3", link)
        f.file("venv/pyvenv.cfg", f"home = {f / 'python/bin'}\n")
        os.symlink(f / "secret", f / "venv/leak")
        show = f"import inside, os, sys; print(inside.VALUE, sys.base_prefix, sorted(os.listdir({str(f.path)!r})), sorted(os.listdir(sys.base_prefix)), os.listdir(sys.base_prefix + '/bin'), os.path.exists(sys.prefix + '/leak'))"
        run("-p", "python", "--venv", f / "venv", "-c", show).exits(0).says(f"7 {f / 'python'} ['python', 'venv'] ['bin', 'lib'] ['python3'] False\n")


@test("--project shows the node_modules of a directory, read-only, and follows no link; without it a note names it")
def _():
    need("nodejs", "node", "--version")
    code = "console.log(require('dep')); try { require('fs').writeFileSync('/box/node_modules/x', '') } catch (e) { console.log(e.code) }"
    with Folder() as f:
        f.file("node_modules/dep/index.js", "module.exports = 7;\n")
        run("--project", f.path, f.file("main.js", code)).exits(0).says("7\nEROFS\n")
        contains(run(f / "main.js").exits(1).err, f"add --project {f.path}", "the note")
        os.symlink(f / "node_modules", f / f"{f.folder('hostile')}/node_modules")
        contains(run("--project", f / "hostile", f / "main.js").exits(125).err, "is not a directory", "a link")
        contains(run("--project", f.folder("empty"), f / "main.js").exits(125).err, "No such file", "no modules")


@test("npm installs a package that the program can then require, and a command")
def _():
    need("npm", "npm", "--version")
    with Folder() as f:
        f.file("tinypk/package.json", '{"name": "tinypk", "version": "1.0.0", "main": "m.js", "bin": {"tinypk": "m.js"}}')
        f.file("tinypk/m.js", "#!/usr/bin/env node\nif (require.main === module) console.log('tool'); module.exports = 7;\n")
        code = """const run = (c) => require("child_process").execSync(c, { stdio: ["ignore", "pipe", "inherit"] }).toString();
run("npm pack --silent ./tinypk && npm install --silent ./tinypk-1.0.0.tgz && npm install --silent --global ./tinypk-1.0.0.tgz");
console.log(require("tinypk"), run("tinypk").trim());"""
        run("-p", "node", "--network", "none", "-t", scaled(90), "-f", f / "tinypk", "-c", code, limit=100).exits(0).says("7 tool\n")


@test("a Python program has the packages of the jail's home, none of the caller's, and another HOME has none made")
def _():
    code = "import os, site, sys; print(site.ENABLE_USER_SITE, sys.flags.dont_write_bytecode, site.USER_BASE, os.listdir(site.USER_SITE) if os.path.isdir(site.USER_SITE) else None)"
    python(code).exits(0).says("True 1 /box/.local ['cejail.pth']\n")
    python(code, "-e", "HOME=/tmp/home").exits(0).says("True 1 /tmp/home/.local None\n")
    sh("ls -A /box").exits(0).says("out\n")


def need_pip():
    if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        raise Skip("python3-pip is not installed")


def need(package, *command):
    """The command works outside, or the package that brings it is missing."""
    if not shutil.which(command[0]) or subprocess.run(command, capture_output=True, check=False, env=environment()).returncode != 0:
        raise Skip(f"{package} is not installed")


BASHISM = 'words=(a "b c")\necho "${#words[@]} ${0} $#"\n'


@test("a script's #! line names what runs it: a path, a path with an argument, a name after env")
def _():
    with Folder() as f:
        for line in ("#!/bin/bash", "#! /bin/bash -e", "#!/usr/bin/env bash", "#!/usr/bin/env -S bash -e"):
            run(f.file("s.sh", f"{line}\n{BASHISM}"), "one", "2 3").exits(0).says("2 /box/main.sh 2\n")
        done = run(f.file("s.sh", "#!/bin/bash -e\nfalse\necho on"))
        done.exits(1).says("")
        run(f.file("s.sh", "#!/usr/bin/python3\nprint(6 * 7)")).exits(0).says("42\n")
    run("-p", "shell", "-c", "#!/bin/bash\n" + BASHISM).exits(0).says("2 /box/main.sh 0\n")
    run("-p", "shell", "-", given="#!/bin/bash\n" + BASHISM).exits(0).says("2 /box/main.sh 0\n")


@test("a script without a #! line runs with sh, one whose interpreter the jail lacks with a warning")
def _():
    shown = "echo ${BASH_VERSION:-no bash} $1"
    with Folder() as f:
        run(f.file("s.sh", shown), "x").exits(0).says("no bash x\n")
        for line, name in (("#!/no/such/shell", "/no/such/shell"), ("#!/usr/bin/env no-such-shell", "no-such-shell"), ("#!/bin/bash\r", "/bin/bash\\x0d"), ("#!/etc", "/etc")):
            value = result(f.file("s.sh", f"{line}\n{shown}\n"), "x")
            equal((value["exit_code"], value["stdout"]["text"]), (0, "no bash x\n"), f"{line!r} ({value['stderr']})")
            contains(" ".join(value["warnings"]), f"'{name}'", "warnings")


@test("a #! line can't run cejail's own program in the jail")
def _():
    done = run("-p", "shell", "-c", "#!/proc/self/exe\necho sh runs it")
    done.exits(0).says("sh runs it\n")
    contains(done.err, "'/proc/self/exe'", "stderr")


PLOT = """
import logging
logging.disable(logging.WARNING)  # a font cache that takes more than five seconds is one
import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot
pyplot.plot([1, 4, 2])
pyplot.title("three points")
pyplot.savefig("/box/out/plot.png")
"""


@test("matplotlib draws a plot with text, and it comes out as an artefact", limit=150)
def _():
    need_python_module("matplotlib")
    with Folder() as f:
        value = result("-p", "python", "-t", scaled(120), "-o", f.folder("out"), "-c", PLOT, limit=140)
        equal((value["exit_code"], value["stderr"]["text"]), (0, ""), "exit code and stderr")
        listed = [(item["path"], item["type"]) for item in value["artifacts"]]
        equal(listed, [("plot.png", "image/png")], "artefacts")
        true(os.path.getsize(f / "out/plot.png") > 5000, "the plot is empty")


HELLO = """
import java.security.MessageDigest;
public class Hello {
    public static void main(String[] words) throws Exception {
        System.out.println("hello " + words[0] + " " + MessageDigest.getInstance("SHA-256").digest(new byte[0]).length);
    }
}
"""


@test("javac compiles a class, and java runs it with its security providers", limit=150)
def _():
    need("default-jdk-headless", "javac", "-J-XX:-UsePerfData", "-version")
    with Folder() as f:
        options = ("-t", scaled(120), "-f", f.file("Hello.java", HELLO))
        sh("javac Hello.java && java Hello jail", *options, limit=140).exits(0).says("hello jail 32\n")


FILLS_HEAP = """
public class Heap {
    public static void main(String[] words) {
        Runtime r = Runtime.getRuntime();
        System.out.println((r.maxMemory() >> 20 < 200) + " " + r.availableProcessors() + " " + words[0]);
        for (java.util.List<byte[]> all = new java.util.ArrayList<>();;) all.add(new byte[1 << 20]);
    }
}
"""


@test("a .jar runs with a heap and processors of the jail's limits, and ends with an exception, not at the limit", limit=150)
def _():
    need("default-jdk-headless", "javac", "-J-XX:-UsePerfData", "-version")
    with Folder() as f:
        made = ("-t", scaled(120), "-f", f.file("Heap.java", FILLS_HEAP), "-o", f.folder("out"))
        sh("javac Heap.java && jar cfe out/heap.jar Heap Heap.class", *made, limit=140).exits(0)
        options = ("-m", "256M", "-t", scaled(60))
        value = result(*options, f / "out/heap.jar", "a b", limit=120)
        equal((value["profile"]["name"], value["status"], value["exit_code"], value["stdout"]["text"]), ("java", "exited", 1, "true 1 a b\n"), f"the end ({value['stderr']})")
        true(value["stderr"]["text"].startswith("Exception in thread \"main\" java.lang.OutOfMemoryError"), f"{value['stderr']}")
        value = result(*options, "-p", "java", "-f", f / "out/heap.jar", "--", "java", "-jar", "/box/heap.jar", "c", limit=120)
        equal((value["status"], value["stdout"]["text"]), ("exited", "true 1 c\n"), f"a command ({value['stderr']})")


@test("Node has a heap of the jail's limit: a program that needs more is told so by Node, not killed", limit=150)
def _():
    need("nodejs", "node", "--version")
    code = "let a = []; for (;;) a.push(new Array(1000).fill(1.5).map((x) => x + Math.random()))"
    value = result("-p", "node", "-m", "192M", "-t", scaled(60), "-c", code, limit=120)
    equal((value["status"], value["signal"]), ("signaled", 6), f"the end ({value['stderr']})")
    contains(value["stderr"]["text"], "JavaScript heap out of memory", "stderr")
    run("-p", "node", "-e", "NODE_OPTIONS=--no-warnings", "-c", "console.log(process.env.NODE_OPTIONS)").exits(0).says("--no-warnings\n")


@test("an executable file without an extension of a profile runs as itself: machine code, and a script by its #! line")
def _():
    with Folder() as f:
        shutil.copy("/bin/echo", f / "prog")
        run(f / "prog", "a", "b c").exits(0).says("a b c\n")
        for name in ("tool", "tool.rb"):
            done = run(f.file(name, "#!/usr/bin/env python3\nimport sys; print(sys.argv)"), "x")
            done.exits(125).says("")
            contains(done.err, "or make the file executable", name)
            os.chmod(f / name, 0o755)
            run(f / name, "x").exits(0).says("['/box/main', 'x']\n")
        os.chmod(f.file("text", "echo no"), 0o755)
        done = run(f / "text").exits(125 if REMOTE else 126)  # a service refuses it before the start
        contains(done.err, "has no interpreter" if REMOTE else "nor a script with a #! line", "stderr")
        run("-p", "base", "-c", "#!/bin/sh\necho sh $1", "y").exits(0).says("sh y\n")


@test("no file of Java's remote administration is shown, where its passwords lie")
def _():
    need("default-jdk-headless", "javac", "-J-XX:-UsePerfData", "-version")
    sh("ls -d /etc/java-*/security > /dev/null && ! ls -d /etc/java-*/management 2> /dev/null").exits(0).says("")


@test("Python finds the types of files by mime.types")
def _():
    if not os.path.exists("/etc/mime.types"):
        raise Skip("media-types is not installed")
    code = "import mimetypes; print(mimetypes.guess_type('x.odt')[0])"
    python(code).exits(0).says("application/vnd.oasis.opendocument.text\n")


HEAP = """
#include <stdlib.h>
int main(int argc, char **argv)
{
	char *words = malloc(8);
	words[argc > 1 ? 8 : 7] = 1;
	int sum = words[7];
	free(words);
	return sum & 2;
}
"""


@test("a C program with AddressSanitizer runs, and its heap overflow is reported")
def _():
    compiler = shutil.which("gcc", path="/usr/bin:/bin")
    if not compiler:
        raise Skip("no gcc (package gcc)")
    with Folder() as f:
        source, program = f.file("heap.c", HEAP), f / "heap"
        built = subprocess.run([compiler, "-g", "-fsanitize=address", "-o", program, source],
                               capture_output=True, text=True, check=False)  # fmt: skip
        if built.returncode != 0:
            raise Skip(f"gcc can't build with AddressSanitizer: {built.stderr[-200:]}")
        os.chmod(program, 0o755)
        words = ("-q", "-p", "base", "-f", program, "--", "/box/heap")
        clean = run(*words).exits(0)
        equal((clean.out, clean.err), ("", ""), "stdout and stderr")
        contains(run(*words, "overflow").exits(1).err, "heap-buffer-overflow", "stderr")
