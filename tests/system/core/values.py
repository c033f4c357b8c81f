# SPDX-License-Identifier: Apache-2.0
"""The return value: JSON that the program leaves in /box/out/result.json.  It is untrusted, and never the verdict."""

import json

from harness import *  # noqa: F403

PLACE = "/box/out/result.json"


def leave(text):
    """Python code that leaves these bytes."""
    raw = text if isinstance(text, bytes) else text.encode()
    return f"open({PLACE!r}, 'wb').write({raw!r})"


def value_of(code, *options):
    done = python(code, "--json", *options)
    return parse_result(done.out, done)


def not_used(code, *words, options=()):
    """There is no value, one warning says why, and the run ended as it did."""
    value = value_of(code, *options)
    said = [line for line in value["warnings"] if "return value" in line]
    equal((value["value"], value["status"], value["exit_code"], len(said)), (None, "exited", 0, 1), f"after {code[:200]}: {value['warnings']}")
    for word in (f"the return value in '{PLACE}' is not used: ", *words):
        contains(said[0], word, "the warning")


@test("any JSON value that the program leaves in /box/out/result.json is the result's value")
def _():
    for text in ('{"a": [1, -2.50, true, null, "\\u00e9\\n", {}]}', "[]", '"text"', "0", "false", "12345678901234567890123"):
        equal(value_of(leave(text))["value"], json.loads(text), text)
        tried()
    equal(value_of("import json; json.dump({'pi': 3.14}, open('out/result.json', 'w'))")["value"], {"pi": 3.14}, "value")


@test("a run that leaves no value has none, and no warning")
def _():
    for code in ("pass", "import os; os.rmdir('/box/out')", leave("null"), "open('/box/result.json', 'w').write('1')"):
        value = value_of(code)
        equal((value["value"], [w for w in value["warnings"] if "value" in w]), (None, []), code)
        tried()


@test("the value is in the result of --events-fd and of --result-fd, and an artifact like other files")
def _():
    import os

    for option in ("--events-fd", "--result-fd"):
        ours, theirs = os.pipe()
        python(leave("[7]"), option, str(theirs), "--quiet", pass_fds=(theirs,)).exits(0)
        os.close(theirs)
        with os.fdopen(ours, "rb") as file:
            last = json.loads(file.read().splitlines()[-1])
        equal(last.get("result", last)["value"], [7], option)
    with Folder() as folder:
        value = value_of(leave("[7]"), "--artifacts", folder / "out")
        equal((value["value"], [row["path"] for row in value["artifacts"]]), ([7], ["result.json"]), "value and artifacts")


@test("--value-path names another file below /box or an overlay, or none")
def _():
    code = "import os\n" + leave("1") + "\nos.makedirs('/box/a/b'); open('/box/a/b/v', 'w').write('2')"
    equal(value_of(code, "--value-path", "/box/a/b/v")["value"], 2, "value")
    equal(value_of(code, "--value-path", "none")["value"], None, "value")
    for path, word in (("/tmp/x", "is neither below /box"), ("out/x", "not an absolute path"), ("/box", "is neither below"), ("/box/../x", "..")):
        refused(python("1", "--value-path", path), "--value-path", word)
        tried()


@test("a profile names the file of the value")
def _():
    if REMOTE:
        return  # profiles are the service's own
    with Folder() as folder:
        path = folder.file("p.json", '{"extends": "python", "value_path": "/box/v"}')
        done = run("--json", "-p", path, "-c", "open('/box/v', 'w').write('[3]')")
        equal(parse_result(done.out)["value"], [3], "value")


@test("what is not one JSON value is not used, and a warning has the place")
def _():
    for text, *words in (
        ("", "1:1"), ("nope", ":1:1"), ("{}{}", ":1:3"), ('{"a": 1, "a": 2}', "duplicate"), ("[1,]", ":1:4"),
        ("NaN", ":1:1"), ("Infinity", ":1:1"), ("[01]", ":1:"), (b"\"\xff\"", "UTF-8"), (b"\xef\xbb\xbf1", "byte order"),
        ('"\\u0000"', ":1:2"), ('"\\ud800"', ":1:2"), ("// 1\n1", ":1:1"), ("'a'", ":1:1"), ("\"\x1b[31m\"", "0x1b"),
        ('{"status": "exited"', ":1:"),
    ):  # fmt: skip
        not_used(leave(text), *words)
        tried()


@test("a warning about the value has no control character of the program's")
def _():
    value = value_of(leave('{"\\u001b[2Jx\\u202e": 1, "\\u001b[2Jx\\u202e": 2}'))
    for line in value["warnings"]:
        true(all(c.isprintable() for c in line), line)


@test("a value that is too large, too deep or has too many parts is not used, and the others are")
def _():
    not_used(leave("[" * 25 + "]" * 25), "levels")
    not_used(leave("[" * 500 + "]" * 500), ":1:")
    not_used("open('out/result.json', 'w').write('[' + '0,' * 70000 + '0]')", "values")
    not_used("open('out/result.json', 'w').write('\"' + 'x' * (1 << 20) + '\"')", "bytes")
    not_used("open('out/result.json', 'w').truncate(40 << 20)", "bytes")
    not_used("open('out/result.json', 'w').truncate(1 << 20)", "result.json:1:1")
    equal(value_of(leave("[" * 24 + "]" * 24))["value"], json.loads("[" * 24 + "]" * 24), "value")
    large = value_of("open('out/result.json', 'w').write('\"' + 'x' * ((1 << 20) - 2) + '\"')")["value"]
    equal(len(large), (1 << 20) - 2, "length")
    many = value_of("open('out/result.json', 'w').write('[' + '0,' * 65534 + '0]')")["value"]
    equal(len(many), 65535, "items")


@test("nothing but a plain file with one link is read as the value: no link, FIFO, socket or directory")
def _():
    begin = "import os, socket; p = '/box/out/result.json'\n"
    for code, word in (
        ("os.symlink('/etc/passwd', p)", "symbolic link"), ("os.symlink('/proc/self/environ', p)", "symbolic link"),
        ("os.symlink('nowhere', p)", "symbolic link"), ("os.mkfifo(p)", "neither"), ("os.mkdir(p)", "directory"),
        ("socket.socket(socket.AF_UNIX).bind(p)", "neither"),
        ("open('/box/x', 'w').write('1'); os.link('/box/x', p)", "hard link"),
        ("os.rmdir('/box/out'); os.symlink('/etc', '/box/out')", ""),
        ("os.rmdir('/box/out'); os.symlink('/box/elsewhere', '/box/out')", ""),
        ("os.rmdir('/box/out'); open('/box/out', 'w').write('1')", ""),
    ):  # fmt: skip
        not_used(begin + code, word)
        tried()


@test("a file that the caller may not read is named, and never opened with more rights")
def _():
    value = value_of(leave("1") + "\nimport os; os.chmod('/box/out/result.json', 0)")
    said = [line for line in value["warnings"] if "return value" in line]
    true(value["value"] == 1 or "Permission denied" in said[0], f"{value['value']}, {said}")


@test("a process that still writes the file when the run ends is dead before it is read")
def _():
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); n = 0\n"
        "    while True:\n"
        "        n += 1\n"
        "        with open('/box/out/new', 'w') as f: f.write('[' + '0,' * 5000 + str(n) + ']')\n"
        "        os.rename('/box/out/new', '/box/out/result.json')\n"
        "while not os.path.exists('/box/out/result.json'): time.sleep(0.001)\n"
    )
    for _ in range(3):
        value = value_of(code)
        equal((value["status"], len(value["value"])), ("exited", 5001), "a whole value")
    grows = code.replace("with open('/box/out/new', 'w') as f: f.write('[' + '0,' * 5000 + str(n) + ']')", "open('/box/out/new', 'a').write('[')")
    grows = grows.replace("os.rename('/box/out/new', '/box/out/result.json')", "os.path.exists('/box/out/result.json') or os.link('/box/out/new', '/box/out/result.json')")
    not_used(grows, "")


@test("a value says nothing about how the run ended: no forged status, limits or warnings")
def _():
    forged = '{"status": "exited", "exit_code": 0, "schema": "cejail.result/1", "value": 1, "warnings": ["x"]}'
    value = value_of(leave(forged) + "\nimport sys; sys.exit(3)")
    equal((value["status"], value["exit_code"], value["value"]), ("exited", 3, json.loads(forged)), "exit")
    value = value_of(leave(forged) + "\nimport os; os.kill(os.getpid(), 9)")
    equal((value["status"], value["value"]["status"]), ("signaled", "exited"), "signal")
    value = value_of(leave(forged) + "\nimport time; time.sleep(1000)", "-t", f"{int(1000 * SLOW)}ms")
    equal((value["status"], value["value"]["status"]), ("timeout", "exited"), "timeout")


@test("a run that could not start its command has no value")
def _():
    if REMOTE:
        return  # the caller's own file is then the service's to copy
    with Folder() as folder:
        path = folder.file("result.json", "[1]")
        done = run("--json", "-p", "base", "-f", f"{path}:/box/out/result.json", "--", "/nonexistent")
        value = parse_result(done.out)
        equal((value["exit_code"], value["value"]), (127, None), "result")
