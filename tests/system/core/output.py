# SPDX-License-Identifier: Apache-2.0
"""The program's output: kept, counted, cut, passed on; and readers that go away."""

import base64
import os
import subprocess

from harness import *  # noqa: F403


@test("beyond --max-output the head and the tail are kept, all bytes are counted, and the result says truncated")
def _():
    value = sh_result("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done", "--max-output", "4K")
    out = value["stdout"]
    true(out["truncated"], "truncated is false")
    equal(out["bytes"], sum(len(f"line {i}\n") for i in range(5000)), "bytes")
    between(out["kept"], 3000, 4096, "kept")
    true(out["text"].startswith("line 0\nline 1\n"), "the head is missing")
    true(out["text"].endswith("line 4999\n"), "the tail is missing")
    equal(value["status"], "exited", "status")


@test("the lines that a Python program has printed before a limit or a signal kills it are in the result; the beginning of a line is with -e PYTHONUNBUFFERED=1")
def _():
    ends = [
        ("timeout", "import time; time.sleep(3600)", ("-t", scaled(1))),
        ("oom", "x = [bytearray(1 << 20) for _ in range(1000)]", ("-m", "64M")),
        ("signaled", "import os; os.kill(os.getpid(), 9)", ("-e", "PYTHONUNBUFFERED=1")),
    ]
    for status, end, options in ends:
        value = result("-p", "python", "-t", scaled(60), *options, "-c", f"print('start'); print('half a line', end=''); {end}")
        said = "start\nhalf a line" if "-e" in options else "start\n"
        equal((value["status"], value["stdout"]["text"]), (status, said), f"the end of {end!r} ({value['stderr']})")


WRITES = """
import os, sys
kept, (end, out) = os.dup(1), os.pipe2(os.O_DIRECT | os.O_NONBLOCK)  # a read gets what one write has put there
os.dup2(out, 1)
print("a", 1, 2.5)
print("b", end="")
print("c")
os.dup2(kept, 1)
seen = []
try:
    while part := os.read(end, 4096):
        seen.append(part.decode())
except BlockingIOError:
    print(seen)
"""
EACH_LINE, EACH_STRING = "['a 1 2.5\\n', 'bc\\n']\n", "['a', ' ', '1', ' ', '2.5', '\\n', 'b', 'c', '\\n']\n"


@test("Python writes each line by one call; each string by one where the caller asks for it, or Python ignores the user's packages")
def _():
    with Folder() as f:
        file = f.file("writes.py", WRITES)
        run("-p", "python", file).exits(0).says(EACH_LINE)
        run("-p", "python", "-e", "PYTHONUNBUFFERED=1", file).exits(0).says(EACH_STRING)
        for options, said in (("-B", EACH_LINE), ("-u", EACH_STRING), ("-s", EACH_STRING), ("-S", EACH_STRING)):
            child = f"import subprocess, sys; subprocess.run([sys.executable, {options!r}, '/box/writes.py'])"
            python(child, "-f", file).exits(0).says(said)


@test("lines that the threads of a Python program print do not mix")
def _():
    code = """
import threading
def work(name):
    for i in range(5000):
        print(name, i, "end")
for name in ("one", "two", "three"):
    threading.Thread(target=work, args=[name]).start()"""
    whole = {f"{name} {i} end" for name in ("one", "two", "three") for i in range(5000)}
    lines = python(code).exits(0).out.splitlines()
    equal(([line for line in lines if line not in whole][:9], len(lines)), ([], len(whole)), "mixed lines, and all")


@test("output within --max-output is complete")
def _():
    out = sh_result("head -c 4096 /dev/zero | tr '\\0' x", "--max-output", "4K")["stdout"]
    equal((out["text"], out["bytes"], out["kept"], out["truncated"]), ("x" * 4096, 4096, 4096, False), "stdout")


@test("--max-output applies to stdout and stderr separately")
def _():
    value = sh_result("head -c 9000 /dev/zero | tr '\\0' x; echo small >&2", "--max-output", "1K")
    equal(value["stdout"]["truncated"], True, "stdout truncated")
    equal((value["stderr"]["text"], value["stderr"]["truncated"]), ("small\n", False), "stderr")


@test("output that is not UTF-8 comes as base64")
def _():
    value = sh_result(r"printf '\377\376\0x'; printf 'fine\303\251' >&2")
    true("text" not in value["stdout"], "text beside base64")
    equal(base64.b64decode(value["stdout"]["base64"]), b"\xff\xfe\0x", "stdout")
    equal(value["stderr"]["text"], "fineé", "stderr")


@test("control characters, quotes and NUL in the output can't break the result")
def _():
    value = sh_result(r"""printf '"}\n{"status":"forged"}\\\033[31m\177'; printf 'a\0b' >&2""")
    equal(value["stdout"]["text"], '"}\n{"status":"forged"}\\\x1b[31m\x7f', "stdout")
    equal(base64.b64decode(value["stderr"]["base64"]), b"a\0b", "stderr")
    equal(value["status"], "exited", "status")


@test("a hundred megabytes of output pass through complete")
def _():
    size = 100 << 20 if SLOW == 1 else 10 << 20
    process = start("run", "-p", "base", "--", "/bin/sh", "-c", f"head -c {size} /dev/zero", stderr=subprocess.DEVNULL)
    count = 0
    while block := process.stdout.read(1 << 20):
        count += len(block)
    equal((await_exit(process, 60), count), (0, size), "exit status and bytes")


@test("a hundred megabytes of output to the result are counted, and only --max-output is kept")
def _():
    size = 100 << 20 if SLOW == 1 else 10 << 20
    value = probe_result("behave", "fill", str(size), options=("--max-output", "64K"), limit=60)
    for stream in ("stdout", "stderr"):
        equal(value[stream]["bytes"], size, f"{stream} bytes")
        between(value[stream]["kept"], 60000, 65536, f"{stream} kept")


@test("on_output_limit kill ends the run with its own status")
def _():
    value = sh_result("yes", "--on-output-limit", "kill", "--max-output", "10K")
    equal(value["status"], "output_limit", "status")
    equal(value["limits"]["output"]["hit"], True, "hit")


@test("closing the reader of the output cancels the run cleanly")
def _():
    with Folder() as f:
        process = start("run", "-p", "base", "--", "/bin/sh", "-c", "echo first; yes", stderr=open(f / "err", "wb"))
        equal(process.stdout.read(6), b"first\n", "the first line")
        process.stdout.close()
        code = await_exit(process, 20)
        true(code != 0, "exit status 0 though the output was lost")


@test("a closed standard output is refused with a remedy")
def _():
    script = f"exec {CEJAIL} run -p base -- /bin/echo ran >&-"
    done = subprocess.run(["/bin/sh", "-c", script], env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=30 * SLOW, check=False)  # fmt: skip
    refused(Done(done.returncode, done.stdout, done.stderr, 0, [script]), "standard output", "/dev/null")


@test("a full device as standard output is reported once")
def _():
    with open("/dev/full", "wb") as full:
        done = sh("echo lost", stdout=full)
        contains(done.err, "standard output can't be written: No space left on device", "stderr")
    true(done.code != 0, "exit status 0 though the output was lost")
    errors = [line for line in done.err.splitlines() if "warning" not in line]
    true(len(errors) == 1 and errors[0].startswith("cejail: "), f"stderr {done.err!r}")


@test("with --json standard output has only the result, and no messages of cejail")
def _():
    done = run("--json", "-v", "-p", "base", "--", "/bin/sh", "-c", "echo x").exits(0)
    parse_result(done.out, done)


@test("--json=FILE writes the result there while the output passes through")
def _():
    with Folder() as f:
        sh("echo through; exit 4", f"--json={f / 'result.json'}").exits(4).says("through\n")
        with open(f / "result.json", encoding="utf-8") as file:
            value = parse_result(file.read())
        equal((value["exit_code"], value["stdout"]["text"]), (4, "through\n"), "result")


@test("output written before a timeout is in the result")
def _():
    value = sh_result("echo last words; sleep 6000", "-t", f"{int(1000 * SLOW)}ms")
    equal((value["status"], value["stdout"]["text"]), ("timeout", "last words\n"), "status and stdout")


@test("a slow reader receives all output")
def _():
    import time

    process = start("run", "-p", "base", "--", "/bin/sh", "-c", "head -c 3000000 /dev/zero; echo end >&2",
                    stderr=subprocess.DEVNULL)  # fmt: skip
    time.sleep(0.5)
    equal(len(process.stdout.read()), 3000000, "bytes")
    equal(await_exit(process, 20), 0, "exit status")


@test("--quiet leaves only errors and reached limits on standard error, and --no-report hides the limits too")
def _():
    equal(sh("true", "-q").exits(0).err, "", "stderr")
    done = sh("sleep 6000", "-q", "-t", "300ms").exits(124)
    equal(done.err, "cejail: timeout: ended after 300ms (--timeout)\n", "stderr")
    equal(sh("sleep 6000", "-q", "--no-report", "-t", "300ms").exits(124).err, "", "stderr without a report")
    equal(sh("kill -9 $$", "-q").exits(137).err, "", "stderr of a signal")
    refused(sh("true", "-q", "--no-report", "--ro-bind", "/no/such"), "/no/such")


@test("a terminal on standard output gets control characters shown, not sent")
def _():
    import pty

    ours, theirs = pty.openpty()
    process = start("run", "-q", "-p", "base", "--", "/bin/sh", "-c", r"printf 'a\033]0;title\007b\n'", stdout=theirs)
    os.close(theirs)
    out = b""
    try:
        while block := os.read(ours, 4096):
            out += block
    except OSError:
        pass  # the other end of a terminal is gone: EIO is its end of file
    finish(process)
    os.close(ours)
    true(b"\x1b" not in out and b"\x07" not in out, f"escapes reached the terminal: {out!r}")
    true(out.startswith(b"a") and b"b" in out, f"the text is lost: {out!r}")
