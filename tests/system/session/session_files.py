# SPDX-License-Identifier: Apache-2.0
"""The files of a session, as its own user has them: what programs inside do against the service, and what it offers."""

import json
import os
import signal
import socket

from harness import *  # noqa: F403
from sessions import Session
from service import OTHER_UID, Service


# --- attackers ----------------------------------------------------------------------

FILL = 'for i in $(seq 40); do sleep 600 & done 2>/dev/null; wait'
SWAP = """import os, shutil
os.makedirs("/box/other"); os.chdir("/box")
def act(call, *words):
    try: call(*words)
    except OSError: pass
while True:
    act(os.mkdir, "a"); act(os.rename, "a", "away"); act(os.symlink, "other", "a"); act(os.unlink, "a"); act(os.rename, "away", "a")
    act(shutil.rmtree, "away")
"""


@test("a file is written and read in a session that has no process left")
def _():
    with Service() as s, Session(s, pids=16) as session:
        full = session.start(FILL)
        session.finished(full)  # the shell gives up at the first process that it may not start
        true(session.post("sleep 0 | sleep 0").result["exit_code"] != 0, "a further process could be started")
        for i in range(3):
            session.put(f"/box/d{i}/new", b"x").has(200)
            equal(session.get(f"/box/d{i}/new").has(200).body, b"x", "the file")


@test("a directory that a program swaps for a link never makes a file operation fail as if cejail had failed")
def _():
    with Service() as s, Session(s, profile="python") as session:
        session.call("POST", "/execs", {"code": SWAP, "detach": True, "timeout": "10m"}).has(202)
        seen = {}
        for i in range(400):
            for reply in (session.put("/box/a/f", b"x"), session.get("/box/a/f")):
                seen.setdefault(reply.status, repr(reply))
            reply = session.put(f"/box/a/b{i}/c/f", b"x")
            seen.setdefault(reply.status, repr(reply))
        true(set(seen) <= {200, 404}, f"the answers: {seen}")
        session.says("ls /box/other", "")


@test("a link in the middle of a path is not found, whatever it points to and whatever the operation")
def _():
    with Service() as s, Session(s) as session:
        session.says("cd /box; mkdir d; echo x > d/x; ln -s d l; ln -s /etc e; ln -s none n; echo x > file", "")
        for path in ("l/x", "l/new", "e/passwd", "n/x", "n/deep/x", "file/x"):
            for method in ("GET", "PUT", "DELETE"):
                session.call(method, f"/files/box/{path}", b"y" if method == "PUT" else None).has(404, "not_found")
        session.get("/box/l/?list").has(404, "not_found")
        session.says("cat /box/d/x; ls /box/d", "x\nx\n")


@test("the service has no more rights to files than the session's user, as root and as another")
def _():
    with Service() as s, Session(s) as session:
        session.says("cd /box; echo secret > shut; chmod 0 shut; echo old > fixed; chmod 400 fixed; mkdir closed; echo x > closed/x; chmod 0 closed;"
                     "mkdir full; echo x > full/x; chmod 555 full", "")  # fmt: skip
        for path in ("shut", "closed/x", "closed?list"):
            session.get(f"/box/{path}").has(403, "forbidden_file")
        session.get("/box/fixed").has(200)
        for path in ("shut", "fixed", "closed/x", "closed/new", "full/new"):
            session.put(f"/box/{path}", b"new").has(403, "forbidden_file")
        session.call("DELETE", "/files/box/full/x").has(403, "forbidden_file")
        session.says("cat /box/fixed", "old\n")


@test("a session has of another owner's file what its mode gives to others, and does not remove it from a sticky directory", who="root")
def _():
    with Folder() as f:
        os.chmod(f.path, 0o755)
        for name, mode in (("open", 0o777), ("sticky", 0o1777)):
            os.mkdir(f / name)
            os.chmod(f / name, mode)
        for name, mode in (("open/shut", 0o600), ("open/shown", 0o644), ("open/shared", 0o666), ("sticky/shared", 0o666)):
            os.chmod(f.file(name, name), mode)
            os.chown(f / name, OTHER_UID, OTHER_UID)
        with Service() as s, Session(s, bind=[f"{f / 'open'}:/open", f"{f / 'sticky'}:/sticky"]) as session:
            equal(session.get("/open/shut?stat").has(200).json["mode"], "0600", "what anybody may see")
            session.get("/open/shut").has(403, "forbidden_file")
            equal(session.get("/open/shown").has(200).body, b"open/shown", "a file that others may read")
            for path in ("/open/shut", "/open/shown"):
                session.put(path, b"new").has(403, "forbidden_file")
            for path in ("/open/shared", "/sticky/shared"):
                equal(session.get(path).has(200).body.decode(), path[1:], path)
            session.call("DELETE", "/files/sticky/shared").has(403, "forbidden_file")
            change(session, "/sticky/shared", 403, rename="/sticky/other")
            session.says("cat /open/shut 2>/dev/null || echo no; cat /open/shown; rm -f /sticky/shared 2>/dev/null || echo no", "no\nopen/shownno\n")
            session.put("/open/shared", b"new").has(200)
            session.call("DELETE", "/files/open/shared").has(200)
        for name in ("open/shut", "open/shown", "sticky/shared"):
            with open(f / name, encoding="ascii") as file:
                equal((file.read(), os.fstat(file.fileno()).st_uid), (name, OTHER_UID), name)


# --- what it offers --------------------------------------------------------------------


def change(session, path, status=200, **order):
    return session.call("POST", f"/files{path}", order).has(status)


@test("a file or directory is looked at, made, renamed and found to exist")
def _():
    with Service() as s, Session(s) as session:
        session.put("/box/a.txt", b"hello").has(200)
        entry = session.get("/box/a.txt?stat").has(200).json
        equal((entry["path"], entry["type"], entry["bytes"], entry["mode"]), ("/box/a.txt", "file", 5, "0644"), "the file")
        equal(session.get("/box?stat").has(200).json["type"], "directory", "the top")
        session.get("/box/none?stat").has(404, "not_found")
        for offset, length, part in ((0, 2, "aGU="), (2, 9, "bGxv"), (5, 9, ""), ((1 << 63) - 1, 9, "")):
            equal(session.get(f"/box/a.txt?offset={offset}&length={length}").has(200).json, {"bytes": 5, "offset": offset, "base64": part}, "a part")
        session.get("/box?offset=0").has(409, "not_regular")
        session.get("/box/a.txt?offset=0&stat").has(400, "bad_request")
        equal(change(session, "/box/d/e/f", mkdir=True).json, {"path": "/box/d/e/f", "created": True}, "the directory")
        equal(change(session, "/box/d/e/f", mkdir=True).json, {"path": "/box/d/e/f", "created": False}, "that is there")
        equal(change(session, "/box", mkdir=True).json["created"], False, "the top")
        change(session, "/box/a.txt", 409, mkdir=True)
        change(session, "/box/a.txt/b", 404, mkdir=True)
        change(session, "/box/a.txt", rename="/box/d/b.txt")
        session.says("cat /box/d/b.txt; ls /box", "hellod\nout\n")
        change(session, "/box/d/b.txt", 404, rename="/box/none/b.txt")
        change(session, "/box/none", 404, rename="/box/x")
        change(session, "/box/out", 409, rename="/box/d")
        change(session, "/box/d", 400, rename="/box/d/e/x")
        change(session, "/box/d", 400, rename="/etc/x")
        change(session, "/box/d", 400, rename="x")
        change(session, "/box", 403, rename="/box/x")
        change(session, "/box/d", 400, mkdir=True, rename="/box/x")
        change(session, "/box/d", 400, mkdir=False)
        one = session.get("/box/d?list&depth=1").has(200).json["entries"]
        equal([e["path"] for e in one], ["/box/d/b.txt", "/box/d/e"], "one level")
        equal(len(session.get("/box/d?list").has(200).json["entries"]), 3, "all levels")


@test("files below binds, overlays and tmpfs are those that a program has: no more can be read or written, and no mount is removed")
def _():
    with Folder() as f:
        os.chmod(f.path, 0o755)
        for name in ("shown", "layer", "open"):
            os.mkdir(f / name)
            f.file(f"{name}/x", name)
        f.file("shown/shut", "SECRET")
        os.chmod(f / "shown/shut", 0)
        os.chmod(f / "open", 0o777)
        os.symlink("/etc", f / "open/etc")
        mounts = {"ro_bind": [f"{f / 'shown'}:/box/shown", f"{f / 'shown/x'}:/data.txt"], "bind": [f"{f / 'open'}:/open"],
                  "overlay": [f"{f / 'layer'}:/layer"], "tmpfs": ["/mem"]}  # fmt: skip
        with Service() as s, Session(s, **mounts) as session:
            for path, text in (("/box/shown/x", "shown"), ("/data.txt", "shown"), ("/open/x", "open"), ("/layer/x", "layer")):
                equal(session.get(path).has(200).body.decode(), text, path)
            session.get("/box/shown/shut").has(403, "forbidden_file")
            for path in ("/open/etc/passwd", "/box/shown/../../etc/passwd"):
                true(session.get(path).status in (400, 404), path)
            for path in ("/etc/passwd", "/usr/bin/env", "/proc/self/environ", "/shown/x", "/opening/x"):
                session.get(path).has(400, "bad_request")
            for path in ("/box/shown/x", "/box/shown/new", "/data.txt"):
                session.put(path, b"y").has(403, "forbidden_file")
            for path in ("/box/shown/x", "/box/shown", "/layer", "/open", "/mem", "/data.txt"):
                session.call("DELETE", f"/files{path}").has(403, "forbidden_file")
            change(session, "/box/shown", 403, rename="/box/away")
            change(session, "/box/out", 403, rename="/box/shown")
            for top in ("/layer", "/mem"):
                session.put(f"{top}/d/new", b"new").has(200)
                session.says(f"cat {top}/d/new", "new")
                change(session, f"{top}/d/new", rename=f"{top}/d/old")
                change(session, f"{top}/d/old", 400, rename="/box/old")
                equal([e["path"] for e in session.get(f"{top}/d?list").json["entries"]], [f"{top}/d/old"], top)
                session.call("DELETE", f"/files{top}/d").has(200)
            paths = [e["path"] for e in session.get("/box?list").has(200).json["entries"]]
            true("/box/shown/x" in paths, f"a list enters mounts: {paths}")
            session.call("DELETE", "/files/layer/x").has(200)
            session.says("cat /box/shown/x /data.txt; ls /layer", "shownshown")
        equal(sorted(os.listdir(f / "layer")), ["x"], "the lower layer")


@test("a directory with a mount of the caller deep below it is neither removed nor renamed, and nothing in it is")
def _():
    with Folder() as f:
        f.file("x", "kept")
        with Service() as s, Session(s, ro_bind=[f"{f.path}:/box/a/b/c/data"]) as session:
            session.put("/box/a/b/new", b"new").has(200)
            for path in ("/box/a", "/box/a/b", "/box/a/b/c"):
                session.call("DELETE", f"/files{path}").has(403, "forbidden_file")
                change(session, path, 403, rename="/box/z")
            session.says("cd /box; cat a/b/c/data/x; ls -A . a a/b a/b/c", "kept.:\na\nout\n\na:\nb\n\na/b:\nc\nnew\n\na/b/c:\ndata\n")


@test("a file of 64 MB goes in and out, and neither the service nor a worker holds it")
def _():
    data = os.urandom(1 << 20) * 64
    with Service() as s, Session(s, memory="256M", disk="128M") as session:
        session.put("/box/warm", b"x").has(200)
        session.get("/box/warm").has(200)
        before = memory_of(s.process.pid)
        session.put("/box/large", data).has(200)
        true(session.get("/box/large").has(200).body == data, "other bytes came back")
        grown = memory_of(s.process.pid) - before
        true(grown < 16 << 20, f"the service grew by {grown} bytes")
        equal(session.get("/box/large?stat").has(200).json["bytes"], len(data), "its size")
        session.put("/box/large", data + b"x").has(413, "too_large")
        equal(session.get("/box/large?stat").has(200).json["bytes"], len(data), "what a refused one leaves")
        equal([e["path"] for e in session.get("/box?list&depth=1").json["entries"]], ["/box/large", "/box/out", "/box/warm"], "the files")


@test("HEAD gives the number of bytes of a file, and no bytes")
def _():
    with Service() as s, Session(s) as session:
        for size in (0, 5, 100000):
            session.put("/box/file", bytes(size)).has(200)
            reply = session.call("HEAD", "/files/box/file").has(200)
            equal((reply.headers["Content-Length"], reply.body), (str(size), b""), f"HEAD of {size} bytes")
        session.says("printf more >> /box/file; mkdir /box/d; ln -s file /box/link", "")
        equal(session.call("HEAD", "/files/box/file").has(200).headers["Content-Length"], "100004", "of a file that has grown")
        for path, status in (("none", 404), ("d", 409), ("link", 409)):
            equal(session.call("HEAD", f"/files/box/{path}").status, status, path)


@test("HEAD of a large file is no file operation any more when it is answered")
def _():
    with Service() as s, Session(s, memory="256M", disk="128M") as session:
        session.put("/box/large", bytes(64 << 20)).has(200)
        for i in range(40):  # a caller may have 16 at once
            equal(session.call("HEAD", "/files/box/large").has(200).headers["Content-Length"], str(64 << 20), f"HEAD {i}")


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


@test("a put whose caller goes away or sends too little leaves the old file, and no other")
def _():
    with Service() as s, Session(s) as session:
        session.put("/box/a", b"old").has(200)
        for head in ("Content-Length: 100000", "Transfer-Encoding: chunked"):
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(str(s.socket))
                c.sendall(f"PUT {session.path}/files/box/a HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode() + b"5\r\nnew 1\r\n")
                wait_until(lambda: any("cejail-put" in e["path"] for e in session.get("/box?list").json["entries"]), "the write to begin")
            wait_until(lambda: not any("cejail-put" in e["path"] for e in session.get("/box?list").json["entries"]), "the rest to go")
            equal(session.get("/box/a").has(200).body, b"old", "the file")


@test("a watch reports each change in a directory, until it is gone")
def _():
    with Service() as s, Session(s) as session:
        change(session, "/box/d", mkdir=True)
        equal(session.call("HEAD", "/files/box/d?watch").status, 400, "of HEAD, whose answer has no body")
        session.get("/box/none?watch").has(404, "not_found")
        session.put("/box/file", b"").has(200)
        session.get("/box/file?watch").has(404, "not_found")
        with socket.socket(socket.AF_UNIX) as c:
            c.settimeout(30 * SLOW)
            c.connect(str(s.socket))
            c.sendall(f"GET {session.path}/files/box/d?watch HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            got = c.recv(65536)
            session.says("cd /box/d; echo x > a; chmod 600 a; mv a b; rm b; printf x > \"$(printf 'n\\nl')\"; cd /; rm -r /box/d", "")
            while not got.endswith(b"0\r\n\r\n"):
                piece = c.recv(65536)
                true(piece, f"the stream ends early: {got}")
                got += piece
        lines = [json.loads(line) for line in got.split(b"\r\n\r\n", 1)[1].split(b"\r\n") if line.startswith(b"{")]
        seen = [(line["event"], line["path"]) for line in lines]
        wanted = [("create", "/box/d/a"), ("write", "/box/d/a"), ("chmod", "/box/d/a"), ("rename", "/box/d/a"), ("create", "/box/d/b"), ("remove", "/box/d/b")]
        equal([row for row in seen if row[1] in ("/box/d/a", "/box/d/b")], wanted, "the changes")
        true(("create", "/box/d/n\\x0al") in seen, f"a name with a control character: {seen}")


@test("a watch whose process is killed or runs out of time is broken off, and one of a session that ends is not")
def _():
    with Service() as s, Session(s) as session:
        for signo in (signal.SIGKILL, signal.SIGALRM, None):
            before = descendants()
            with socket.socket(socket.AF_UNIX) as c:
                c.settimeout(30 * SLOW)
                c.connect(str(s.socket))
                c.sendall(f"GET {session.path}/files/box?watch HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                got = c.recv(65536)
                if signo:
                    watchers = descendants().keys() - before.keys()
                    true(watchers, "the process of the watch is not seen")
                    for pid in watchers:
                        os.kill(pid, signo)
                else:
                    session.call("DELETE", "").has(200)
                while piece := c.recv(65536):
                    got += piece
            equal(got.endswith(b"0\r\n\r\n"), signo is None, f"the stream has its last chunk: {got}")
            equal(session.show()["state"], "live" if signo else "ended", "the session")
