# SPDX-License-Identifier: Apache-2.0
"""--artifacts inline: the files that a program leaves are in its result, with types by their content."""

import base64
import json
import os

from harness import *  # noqa: F403

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


def leave(files):
    return "import os\nfor name, content in " + repr(files) + ".items():\n    open('out/' + name, 'wb').write(content)\n"


def rows_of(files, *options):
    value = result("-p", "python", *options, "-c", leave(files))
    return {row["path"]: row for row in value["artifacts"]}, value


@test("--artifacts=inline has the files in the result, as text or base64, and writes none")
def _():
    rows, _ = rows_of({"a.txt": b"text\n", "b": b"\0\xff", "empty": b""}, "--artifacts=inline")
    true(not os.path.exists("inline"), "a directory was made")
    equal((rows["a.txt"]["text"], rows["empty"]["text"]), ("text\n", ""), "texts")
    equal(base64.b64decode(rows["b"]["base64"]), b"\0\xff", "bytes")
    equal(rows["b"]["bytes"], 2, "bytes")


@test("the type of a file is that of its content, and its name only chooses among what it may be")
def _():
    rows, _ = rows_of({
        "plot.png": PNG, "named.txt": PNG, "fake.png": b"<script>", "page": b"<!doctype html>", "pic": b"<svg/>",
        "d.csv": b"1,2", "d.json": b"[1]", "bad.json": b"[1", "x.zip": b"PK\3\4\0", "noise": b"\xff\xfe\0",
    }, "-o", "inline")  # fmt: skip
    wanted = {
        "plot.png": "image/png", "named.txt": "image/png", "fake.png": "text/plain", "page": "text/html",
        "pic": "image/svg+xml", "d.csv": "text/csv", "d.json": "application/json", "bad.json": "text/plain",
        "x.zip": "application/zip", "noise": "application/octet-stream",
    }  # fmt: skip
    equal({path: row["type"] for path, row in rows.items()}, wanted, "types")


@test("inline:SIZE limits all files together, and what is left out is named in a warning")
def _():
    files = {"a": b"x" * 600, "b": b"y" * 600}
    rows, value = rows_of(files, "--artifacts", "inline:1000")
    equal(len(rows), 1, "files")
    true(any("all files together may have 1000 bytes" in line for line in value["warnings"]), value["warnings"])
    rows, _ = rows_of(files, "--artifacts", "inline:2K")
    equal(sorted(rows), ["a", "b"], "files")
    for size in ("0", "17M", "x", ""):
        refused(python("1", f"--artifacts=inline:{size}"), "--artifacts")
        tried()


@test("links, FIFOs and other entries are not in the result, as they are not copied")
def _():
    code = "import os; os.chdir('out'); os.symlink('/etc/passwd', 'l'); os.mkfifo('f'); open('x', 'w'); os.link('x', 'y'); open('ok', 'w').write('1')"
    value = parse_result(python(code, "--json", "--artifacts=inline").out)
    equal([row["path"] for row in value["artifacts"]], ["ok"], "files")
    equal(len([line for line in value["warnings"] if "is not copied" in line]), 4, "warnings")


@test("--artifacts=inline needs a place for the result, and a later --artifacts replaces it")
def _():
    refused(python("1", "--artifacts=inline"), "--artifacts inline", "--json")
    with Folder() as folder:
        rows, _ = rows_of({"a": b"1"}, "-o", "inline", "-o", folder / "out")
        true("text" not in rows["a"] and os.path.exists(folder / "out/a"), rows)
        rows, _ = rows_of({"a": b"1"}, "-o", folder / "none", "-o", "inline")
        true(rows["a"]["text"] == "1" and not os.path.exists(folder / "none"), rows)
        folder.folder("inline")
        rows, _ = rows_of({"a": b"1"}, "-o", folder / "inline")
        true("text" not in rows["a"], "a path is a directory")


@test("--artifacts=inline is the ceiling of what a request asks for")
def _():
    if REMOTE:
        return  # a service takes the same request itself
    request = {"profile": "base", "command": ["/bin/sh", "-c", "echo 123456 >out/a; echo 1 >out/b"]}
    for asked, option, wanted in (
        ("inline:8", None, 1), ("inline:100", "inline:8", 1), ("inline:8", "inline:100", 1), (True, None, 2), (False, "inline", 2),
    ):  # fmt: skip
        options = [] if option is None else [f"--artifacts={option}"]
        done = run("--request-fd", "0", "--json", *options, given=json.dumps({**request, "artifacts": asked}))
        equal(len(parse_result(done.out)["artifacts"]), wanted, f"{asked} below {option}")
        tried()
