# SPDX-License-Identifier: Apache-2.0
"""libexec/cejail/upstream, started as cejail starts it: what reaches the upstream, and what comes back."""

import contextlib
import hashlib
import http.client
import json
import os
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import traceback
import urllib.request

import services
from harness import *  # noqa: F403
from internet import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER, MS_PRIVATE, MS_REC, check, libc, map_ids, mount

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(CEJAIL)), "../libexec/cejail/upstream")
SECRET_VALUE = "s3cr3t-value-of-the-upstream"
OTHER_VALUE = "another-value-of-the-upstream"
COUNTERS = struct.Struct("11Q")
MIB = 1 << 20
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def openssl(*args):
    done = subprocess.run(("openssl", *args), capture_output=True, check=False)
    true(done.returncode == 0, f"openssl {args[0]}: {done.stderr.decode()}")


def authority(f, name):
    """A certificate authority, and a certificate of it for localhost."""
    ca, key, asked, leaf = (f / f"{name}-{part}.pem" for part in ("ca", "key", "request", "leaf"))
    extension = f.file(f"{name}-extension", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *kind, "-keyout", f / f"{name}-cakey.pem", "-out", ca, "-days", "2", "-subj", "/CN=test authority",
            "-addext", "basicConstraints=critical,CA:TRUE")  # fmt: skip
    openssl("req", *kind, "-keyout", key, "-out", asked, "-subj", "/CN=localhost")
    openssl("x509", "-req", "-in", asked, "-CA", ca, "-CAkey", f / f"{name}-cakey.pem", "-CAcreateserial", "-out", leaf,
            "-days", "2", "-extfile", extension)  # fmt: skip
    return ca, leaf, key


class Upstream:
    """A TLS server: keeps the head and the body's digest of each request, and answers by path."""

    def __init__(self, leaf, key, http2=False):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(leaf, key)
        self.context.set_alpn_protocols(["h2"] if http2 else ["http/1.1"])
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        self.heads, self.bodies = [], []
        self.go = threading.Semaphore(0)
        self.is_over = threading.Event()
        serve = self.serve_http2 if http2 else self.serve
        threading.Thread(target=self.accept, args=(serve,), daemon=True).start()

    def accept(self, serve):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.guard, args=(serve, plain), daemon=True).start()

    def guard(self, serve, plain):
        try:
            with self.context.wrap_socket(plain, server_side=True) as sock:
                serve(sock)
        except (OSError, ValueError):
            pass

    def close(self):
        self.is_over.set()
        self.listener.close()

    @staticmethod
    def read_body(file, head):
        digest, size = hashlib.sha256(), 0
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            while (length := int(file.readline(), 16)) > 0:
                data = file.read(length)
                file.readline()
                digest.update(data)
                size += len(data)
            file.readline()
        elif b"content-length:" in lower:
            left = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
            while left > 0 and (data := file.read(min(left, 65536))):
                digest.update(data)
                size, left = size + len(data), left - len(data)
        return size, digest.hexdigest()

    def serve(self, sock):
        with sock.makefile("rb") as file:
            while line := file.readline():
                head = line
                while (line := file.readline()) not in (b"\r\n", b""):
                    head += line
                self.heads.append(head)
                path = head.split()[1].decode().split("?")[0].rsplit("/", 1)[-1]
                if path != "early":
                    self.bodies.append(self.read_body(file, head))
                if getattr(self, "do_" + path, self.do_echo)(sock, head):
                    return

    @staticmethod
    def answer(sock, body, status="200 OK", more=""):
        sock.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body)

    @staticmethod
    def chunk(sock, data):
        sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def do_echo(self, sock, head):
        self.answer(sock, b"" if head.startswith(b"HEAD") else head, more="X-Echo: yes\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n")

    def do_headers(self, sock, _):
        self.answer(sock, b"ok", more=f"X-Whole: Bearer {SECRET_VALUE}\r\nX-Part: a {SECRET_VALUE} b\r\nConnection: X-Hop\r\n"
                    "X-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nSet-Cookie: t=" + SECRET_VALUE + "\r\n")  # fmt: skip

    def do_split(self, sock, _):
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for size in (1, 2, 3, 7, len(SECRET_VALUE) - 1):
            text = f"<Bearer {SECRET_VALUE}|{SECRET_VALUE}|{SECRET_VALUE[:-1]}>".encode()
            for at in range(0, len(text), size):
                self.chunk(sock, text[at : at + size])
        self.chunk(sock, f"Bearer {SECRET_VALUE[:-1]}".encode())
        sock.sendall(b"0\r\n\r\n")

    def do_redirect(self, sock, _):
        self.answer(sock, b"gone", "302 Found", "Location: https://elsewhere.test/v2/\r\n")

    def do_events(self, sock, _):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(5):
            self.go.acquire()
            self.chunk(sock, b"data: %d\n\n" % i)
        sock.sendall(b"0\r\n\r\n")

    def do_big(self, sock, head):
        count = int(head.split()[1].split(b"?")[1])
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (count * MIB))
        for i in range(count):
            sock.sendall(bytes([i % 251]) * MIB)

    def do_gzip(self, sock, _):
        self.answer(sock, b"\x1f\x8b", more="Content-Encoding: gzip\r\n")

    def do_interim(self, sock, _):
        sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        self.answer(sock, b"final")

    def do_silent(self, *_):
        self.is_over.wait(60 * SLOW)
        return True

    def do_cut(self, sock, _):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789")
        return True

    def do_endless(self, sock, _):
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\nto the end")
        return True

    def do_early(self, sock, _):
        self.answer(sock, b"too large", "413 Content Too Large", "Connection: close\r\n")
        self.is_over.wait(1)
        return True

    def do_missing(self, sock, _):
        self.answer(sock, b"none", "404 Not Found")

    def do_folded(self, sock, _):
        sock.sendall(b"HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 0\r\n\r\n")

    def serve_http2(self, sock):
        """Answers each request with a fixed head and the size of its body: RFC 9113."""

        def frame(kind, flags, stream, data=b""):
            sock.sendall(struct.pack(">I", len(data))[1:] + struct.pack(">BBI", kind, flags, stream) + data)

        with sock.makefile("rb") as file:
            equal(file.read(len(HTTP2)), HTTP2, "preface")
            frame(4, 0, 0)
            sizes = {}
            while head := file.read(9):
                size, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
                data = file.read(size)
                if kind == 4 and not flags & 1:
                    frame(4, 1, 0)
                if kind in (0, 1):
                    sizes[stream] = sizes.get(stream, 0) + (len(data) if kind == 0 else 0)
                    if kind == 0 and data:
                        for which in (0, stream):
                            frame(8, 0, which, struct.pack(">I", len(data)))
                    if flags & 1:
                        self.heads.append(b"HTTP/2")
                        frame(1, 4, stream, b"\x88\x00\x05x-two" + bytes([len(SECRET_VALUE)]) + SECRET_VALUE.encode())
                        frame(0, 1, stream, b"%d %s" % (sizes[stream], SECRET_VALUE.encode()))


class Program:
    """The program under test and its client."""

    def __init__(self, f, *upstreams, env=None, parent=False, **settings):
        self.f = f
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=128) for _ in upstreams]
        self.ports = [listener.getsockname()[1] for listener in self.listeners]
        config = json.dumps({"upstreams": upstreams, **settings}).encode()
        self.counters = os.memfd_create("counters", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.counters, 16 * COUNTERS.size)
        given = os.memfd_create("config", os.MFD_CLOEXEC)
        os.write(given, config)
        fds = [given, self.counters, *(listener.fileno() for listener in self.listeners)]
        extra = os.open("/etc/passwd", os.O_RDONLY)

        def place():
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
            os.dup2(extra, 60)  # one that is none of the contract

        command = (PYTHON, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], close_fds=False)", PROGRAM) if parent else (PROGRAM,)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        close_fds=False, preexec_fn=place,
                                        env={"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1",
                                             "SSLKEYLOGFILE": f / "keys", **(env or {})})  # fmt: skip
        os.close(given)
        os.close(extra)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for listener in self.listeners:
            listener.close()
        os.close(self.counters)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def connect(self, which=0):
        sock = socket.create_connection(("127.0.0.1", self.ports[which]), timeout=30 * SLOW)
        sock.settimeout(30 * SLOW)
        return sock

    def raw(self, data, which=0):
        """What comes back for these bytes, until the connection ends."""
        with self.connect(which) as sock:
            got = b""
            try:
                sock.sendall(data)
                while more := sock.recv(65536):
                    got += more
            except ConnectionResetError:
                pass
            return got

    def ask(self, path, method="GET", body=None, which=0, **headers):
        """(status, headers, body)"""
        client = http.client.HTTPConnection("127.0.0.1", self.ports[which], timeout=30 * SLOW)
        try:
            client.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            client.close()

    def count(self, which=0):
        names = ("requests", "failed", "refused", "sent", "received")
        values = COUNTERS.unpack(os.pread(self.counters, COUNTERS.size, which * COUNTERS.size))
        return {**dict(zip(names, values)), "status": list(values[5:])}

    def counts(self, **wanted):
        def same():
            seen = self.count()
            return all(seen[name] == value for name, value in wanted.items())

        wait_until(same, f"counters {wanted}; they are {self.count()}")

    def status(self, name):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith(name + ":"))


class World:
    """An upstream, and the program in front of it."""

    def __init__(self, *, http2=False, trusted=True, tls=True, port=None, more=(), settings=None, **upstream):
        self.arguments = http2, trusted, tls, port, more, settings or {}, upstream

    def __enter__(self):
        http2, trusted, tls, port, more, settings, upstream = self.arguments
        self.folder = Folder("/var/tmp")
        f = self.f = self.folder.__enter__()
        ca, leaf, key = authority(f, "own")
        self.server = Upstream(leaf, key, http2)
        self.secret = f.file("secrets/token", SECRET_VALUE + "\n", 0o600)
        ca = ca if trusted else authority(f, "other")[0]
        url = f"{'https' if tls else 'http'}://localhost:{port or self.server.port}"
        config = {"name": "model", "url": url, "path": "/v1/",
                  "headers": [{"name": "Authorization", "prefix": "Bearer ", "file": self.secret}], **upstream}  # fmt: skip
        self.program = Program(f, config, *more, env={"SSL_CERT_FILE": ca}, **settings)
        return self.server, self.program

    def __exit__(self, *unused):
        self.program.__exit__()
        self.server.close()
        self.folder.__exit__()


def sent_header(head, name):
    return [line.split(b": ", 1)[1].decode() for line in head.split(b"\r\n") if line.lower().startswith(name.lower().encode() + b": ")]


def sentence(answer, status, *parts):
    """An answer of the program's own: one sentence of plain text."""
    equal(answer[0], status, f"status ({answer[2][:300]!r})")
    text = answer[2].decode()
    true(text.startswith("cejail: upstream 'model': ") and text.endswith(".\n") and text.count("\n") == 1, f"sentence: {text!r}")
    for part in parts:
        contains(text, part, "sentence")


# --- the header --------------------------------------------------------------


@test("the upstream program adds the header, replaces the program's own, and the program never sees its value")
def _():
    with World() as (server, program):
        status, headers, body = program.ask("/v1/echo?q=1", X_Mine="yes", authorization="Bearer mine", Cookie="k=v", Connection="X-Gone", X_Gone="1", TE="trailers")
        equal(status, 200, "status")
        head = server.heads[0]
        equal(sent_header(head, "Authorization"), [f"Bearer {SECRET_VALUE}"], "header at the upstream")
        equal(head.split(b"\r\n")[0], b"GET /v1/echo?q=1 HTTP/1.1", "request line")
        equal(sent_header(head, "Host"), [f"localhost:{server.port}"], "Host")
        equal(sent_header(head, "Accept-Encoding"), ["identity"], "codings")
        equal((sent_header(head, "X-Mine"), sent_header(head, "Cookie")), (["yes"], ["k=v"]), "the program's headers")
        for gone in ("X-Gone", "TE", "Connection", "User-Agent", "Accept"):
            equal(sent_header(head, gone), [], gone)
        equal(headers.get_all("Set-Cookie"), ["a=b", "c=d"], "cookies")
        lacks(body.decode(), SECRET_VALUE, "reflected head")
        contains(body.decode(), "Authorization: " + "*" * len(f"Bearer {SECRET_VALUE}"), "masked head")
        true(not os.path.exists(program.f / "keys"), "the keys of TLS were written")


@test("a value that the upstream reflects is masked in headers and across the borders of chunks")
def _():
    with World() as (_, program):
        _, headers, _ = program.ask("/v1/headers")
        stars = "*" * len(SECRET_VALUE)
        equal(headers["X-Whole"], "*" * len(f"Bearer {SECRET_VALUE}"), "whole value")
        equal((headers["X-Part"], headers["Set-Cookie"]), (f"a {stars} b", f"t={stars}"), "value without its prefix")
        equal([headers[name] for name in ("X-Hop", "Keep-Alive", "Proxy-Authenticate")], [None] * 3, "hop-by-hop headers")
        _, _, body = program.ask("/v1/split")
        wanted = f"<{'*' * 7}{stars}|{stars}|{SECRET_VALUE[:-1]}>" * 5 + f"Bearer {SECRET_VALUE[:-1]}"
        equal(body.decode(), wanted, "body")
        sentence(program.ask("/v1/gzip"), 502, "compressed")


@test("the value is read again after a rename, a swapped link and a change in place, and a bad one fails the request")
def _():
    with World() as (server, program):
        folder = os.path.dirname(program.f / "secrets/token")
        secret = os.path.join(folder, "token")

        def sent():
            program.ask("/v1/echo")
            return sent_header(server.heads[-1], "Authorization")

        equal(sent(), [f"Bearer {SECRET_VALUE}"], "first value")
        program.f.file("secrets/new", OTHER_VALUE)
        os.rename(os.path.join(folder, "new"), secret)
        equal(sent(), [f"Bearer {OTHER_VALUE}"], "after a rename")
        with open(secret, "w", encoding="ascii") as file:
            file.write("changed-in-place\r\n")
        equal(sent(), ["Bearer changed-in-place"], "after a change")
        for i in range(2):
            program.f.file(f"secrets/{i}/token", f"value-behind-a-link-{i}")
            os.symlink(f"{i}/token", os.path.join(folder, "link"))
            os.rename(os.path.join(folder, "link"), secret)
            equal(sent(), [f"Bearer value-behind-a-link-{i}"], "after a swap")
        count = len(server.heads)
        for bad in (b"", b"\n", b"two\nlines", b"nul\0", b"bell\x07", b"del\x7f", b"a" * 9000, None, "folder", "fifo"):
            if os.path.isdir(secret):
                os.rmdir(secret)
            elif os.path.lexists(secret):
                os.unlink(secret)
            if bad == "folder":
                os.mkdir(secret)
            elif bad == "fifo":
                os.mkfifo(secret)
            elif bad is not None:
                program.f.file("secrets/token", bad)
            sentence(program.ask("/v1/echo"), 502, "'Authorization'")
        equal(len(server.heads), count, "requests without a header")
        os.unlink(secret)
        program.f.file("secrets/token", SECRET_VALUE)
        equal(sent(), [f"Bearer {SECRET_VALUE}"], "a good value again")


# --- what may be asked -------------------------------------------------------

PATHS = """/ /v1 /v1x /v1x/ /V1/echo /v2/echo //v1/echo /./v1/echo /x/../v1/echo /v1/../admin /v1/.. /v1/../ /v1/./echo /v1/a/../../x
/v1/%2e%2e/admin /v1/%2E%2E/admin /v1/.%2e/admin /v1/%2e./x /v1/%2e /v1/..%2fadmin /v1/%2e%2e%2fadmin /v1/..%5cadmin /v1/..\\admin
/v1\\echo /v1%2fecho /%76%31/echo /v1/%252e%252e/admin /v1/%252e%252e%252fadmin /v1/%25252e%25252e/x /v1/..;/admin /v1/..;a=b/admin
/v1/.;/x /v1/%2e%2e%3b/x /v1/a%2f..%2f..%2fx /v1/x/..?q /v1/%5c..%5cx""".split()  # fmt: skip
BAD_PATHS = (b"/v1/%", b"/v1/%2", b"/v1/%zz", b"/v1/%00", b"/v1/%0d%0a", b"/v1/a#b", b"/v1/\xff", b"/v1/\x01", b"/v1/a b", b"/v1/\"<>", b"v1/echo",
             b"*", b"http://model.upstream.internal/v1/echo", b"https://localhost/v1/echo", b"?q", b"")  # fmt: skip
GOOD_PATHS = """/v1/ /v1/a.b /v1/...  /v1/a..b /v1/%41 /v1/org%2fname /v1/a%20b /v1/x?../..&a=%2e%2e/ /v1/a:b@c!$&'()*+,;= /v1//x /v1/?a?b
/v1/x?[1]={2}|3^""".split()  # fmt: skip


@test("paths that leave the prefix are refused in every spelling, and the others reach the upstream byte for byte")
def _():
    with World() as (server, program):
        for path in PATHS:
            text = program.raw(f"GET {path} HTTP/1.1\r\nHost: model.upstream.internal\r\n\r\n".encode())
            true(text.startswith(b"HTTP/1.1 403 "), f"{path}: {text[:300]!r}")
            tried()
        for path in BAD_PATHS:
            text = program.raw(b"GET " + path + b" HTTP/1.1\r\nHost: model.upstream.internal\r\n\r\n")
            true(text.startswith(b"HTTP/1.1 400 "), f"{path}: {text[:300]!r}")
            tried()
        equal(server.heads, [], "requests at the upstream")
        equal(program.count()["refused"], len(PATHS) + len(BAD_PATHS), "refused")
        for path in GOOD_PATHS:
            text = program.raw(f"GET {path} HTTP/1.1\r\nHost: model.upstream.internal\r\nConnection: close\r\n\r\n".encode())
            true(text.startswith(b"HTTP/1.1 200 "), f"{path}: {text[:300]!r}")
            equal(server.heads[-1].split(b"\r\n")[0], f"GET {path} HTTP/1.1".encode(), "request line")
            tried()


@test("a prefix without a slash at its end matches whole segments only")
def _():
    with World(path="/v1") as (server, program):
        for path, status in (("/v1", 200), ("/v1/x", 200), ("/v1?x", 200), ("/v1x", 403), ("/v", 403), ("/", 403)):
            equal(program.ask(path)[0], status, path)
        equal(len(server.heads), 3, "requests at the upstream")


HOST = b"Host: model.upstream.internal\r\n"
POST = b"POST /v1/echo HTTP/1.1\r\n" + HOST
SMUGGLED = (
    POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    POST + b"Content-Length: 5, 5\r\n\r\nhello",
    POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: identity\r\n\r\n",
    POST + b"Transfer-Encoding: chunked, identity\r\n\r\n",
    POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    POST + b"Content-Length: -1\r\n\r\n",
    POST + b"Content-Length: +5\r\n\r\nhello",
    POST + b"Content-Length: 0x5\r\n\r\nhello",
    POST + b"Content-Length: 99999999999999999999\r\n\r\n",
    POST + b"Content-Length: 9999999999999999999\r\n\r\n",
    POST + b"Content-Length : 5\r\n\r\nhello",
    POST + b" Content-Length: 5\r\n\r\nhello",
    POST + b"X-A: a\r\n b\r\n\r\n",
    POST + b"X-A: a\r\n\tb\r\n\r\n",
    POST + b"X-A: a\nX-B: b\r\n\r\n",
    POST + b"X-A: a\rX-B: b\r\n\r\n",
    POST + b"X-A: a\0b\r\n\r\n",
    POST + b"X-\xffA: a\r\n\r\n",
    POST + b"X-A\r\n\r\n",
    POST + b": a\r\n\r\n",
    POST + HOST + b"\r\n",
    POST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    POST + b"Expect: 200-ok\r\n\r\n",
    b"POST /v1/echo HTTP/1.1\r\n\r\n",
    b"POST /v1/echo HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/echo HTTP/1.1\nHost: model.upstream.internal\n\n",
    b"POST  /v1/echo HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /v1/echo  HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /v1/echo HTTP/1.1 \r\n" + HOST + b"\r\n",
    b"POST /v1/echo HTTP/1.2\r\n" + HOST + b"\r\n",
    b"POST /v1/echo HTTP/2.0\r\n" + HOST + b"\r\n",
    b"POST /v1/echo\r\n" + HOST + b"\r\n",
    b"\r\nGET /v1/echo HTTP/1.1\r\n" + HOST + b"\r\n",
    b"P(ST /v1/echo HTTP/1.1\r\n" + HOST + b"\r\n",
    b"CONNECT localhost:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"TRACE /v1/echo HTTP/1.1\r\n" + HOST + b"\r\n",
    HTTP2,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"GET /v1/" + b"a" * 17000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    POST + b"".join(b"X-%d: a\r\n" % i for i in range(200)) + b"\r\n",
)  # fmt: skip
BAD_CHUNKS = (b"5\nhello\n0\n\n", b"5;a=b\r\nhello\r\n0\r\n\r\n", b"0\r\nX-Trailer: a\r\n\r\n", b"5\r\nhello0\r\n\r\n", b"-5\r\nhello\r\n0\r\n\r\n",
              b"0x5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n", b" 5\r\nhello\r\n0\r\n\r\n", b"\r\n", b"5 \r\nhello\r\n0\r\n\r\n")  # fmt: skip
BAD_HOSTS = ("other.upstream.internal", "localhost", "upstream.internal", "model.upstream.internal.evil", "model.upstream.internal:x", "128.0.0.1",
             "127.1", "model.upstream.internal@evil", "model.upstream.internal:", "", "[::1]", "model.upstream.internal:1:2")  # fmt: skip


@test("requests that two servers could read differently are refused, and none of their bytes is a second request")
def _():
    with World() as (server, program):
        for data in SMUGGLED:
            text = program.raw(data)
            true(text.startswith(b"HTTP/1.1 4") and text.count(b"HTTP/1.1 4") == 1, f"{data[:200]!r}: {text[:300]!r}")
            tried()
        for host in BAD_HOSTS:
            text = program.raw(f"GET /v1/echo HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            true(text.startswith(b"HTTP/1.1 400 "), f"{host}: {text[:300]!r}")
            tried()
        equal(server.heads, [], "requests at the upstream")
        for body in BAD_CHUNKS:
            text = program.raw(POST + b"Transfer-Encoding: chunked\r\n\r\n" + body)
            true(text.startswith(b"HTTP/1.1 400 ") and text.count(b"HTTP/1.1 4") == 1, f"{body!r}: {text[:300]!r}")
            tried()
        wait_until(lambda: len(server.heads) >= 0, "the upstream")
        equal(server.bodies, [], "whole bodies at the upstream")
        for host in ("MODEL.upstream.internal:80", "127.0.0.1", "127.3.2.1:8080"):
            equal(program.ask("/v1/echo", Host=host)[0], 200, host)


@test("several requests on one connection are answered in order, and HTTP/1.0 and HEAD have their own endings")
def _():
    with World() as (server, program):
        one = b"GET /v1/a HTTP/1.1\r\n" + HOST + b"\r\n"
        two = b"POST /v1/b HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc"
        three = b"POST /v1/c HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        equal(program.raw(one + two + three).count(b"HTTP/1.1 200 "), 3, "answers")
        equal([head.split()[1] for head in server.heads], [b"/v1/a", b"/v1/b", b"/v1/c"], "order")
        equal([size for size, _ in server.bodies], [0, 3, 5], "bodies")
        text = program.raw(b"GET /v1/endless HTTP/1.0\r\n" + HOST + b"\r\n")
        true(b"chunked" not in text and text.endswith(b"\r\n\r\nto the end"), f"HTTP/1.0: {text!r}")
        status, headers, body = program.ask("/v1/endless")
        equal((status, headers["Transfer-Encoding"], body), (200, "chunked", b"to the end"), "HTTP/1.1")
        equal(program.ask("/v1/echo", "HEAD")[::2], (200, b""), "HEAD")
        equal(program.ask("/v1/interim")[2], b"final", "behind an interim answer")
        for method in ("GET", "DELETE", "PATCH", "PUT", "OPTIONS", "REPORT"):
            equal(program.ask("/v1/echo", method, b"body")[0], 200, method)
            equal((server.heads[-1].split()[0].decode(), server.bodies[-1][0]), (method, 4), "request")
        equal(program.ask("/v1/echo", "POST")[0], 200, "an empty POST")
        equal(sent_header(server.heads[-1], "Content-Length"), ["0"], "its length")


# --- answers and bodies ------------------------------------------------------


@test("a redirect and an error of the upstream are handed back, and each answer is counted by its status")
def _():
    with World() as (server, program):
        status, headers, body = program.ask("/v1/redirect")
        equal((status, headers["Location"], body), (302, "https://elsewhere.test/v2/", b"gone"), "redirect")
        equal(program.ask("/v1/missing")[0], 404, "status")
        equal(program.ask("/v1/echo", "POST", b"12345")[0], 200, "status")
        equal(len(server.heads), 3, "requests at the upstream")
        program.counts(requests=3, failed=0, refused=0, sent=5, status=[0, 0, 1, 1, 1, 0])
        sentence(program.ask("/v1/folded"), 502, "head of its answer")
        sentence(program.ask("/v2"), 403, "'/v1/'")
        program.counts(requests=3, failed=1, refused=1)


@test("server-sent events arrive one by one, while the upstream waits")
def _():
    with World() as (server, program), program.connect() as sock:
        sock.sendall(b"GET /v1/events HTTP/1.1\r\n" + HOST + b"\r\n")
        got = b""
        for i in range(5):
            server.go.release()
            while b"data: %d\n\n" % i not in got:
                more = sock.recv(65536)
                true(more, f"ended after {got!r}")
                got += more
            lacks(got.decode(), f"data: {i + 1}", "events")
        while not got.endswith(b"0\r\n\r\n"):
            got += sock.recv(65536)


def memory_kib(program):
    return int(program.status("VmHWM").split()[0])


@test("100 MB pass in both directions in memory that does not grow with them, and a client that reads nothing stops the upstream", limit=180)
def _():
    with World() as (server, program):
        program.ask("/v1/echo")
        before = memory_kib(program)
        digest = hashlib.sha256()
        with program.connect() as sock:
            sock.sendall(b"POST /v1/echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
            equal(sock.recv(1000), b"HTTP/1.1 100 Continue\r\n\r\n", "interim answer")
            for i in range(100):
                data = bytes([i]) * MIB
                digest.update(data)
                sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))
            sock.sendall(b"0\r\n\r\n")
            contains(sock.recv(65536).decode(), "HTTP/1.1 200 ", "answer")
        equal(server.bodies[-1], (100 * MIB, digest.hexdigest()), "body at the upstream")
        answer = urllib.request.urlopen(f"http://127.0.0.1:{program.ports[0]}/v1/big?100", timeout=60 * SLOW)
        size = 0
        while data := answer.read(MIB):
            true(data == bytes([size // MIB % 251]) * len(data), f"wrong bytes at {size}")
            size += len(data)
        equal(size, 100 * MIB, "body")
        program.counts(sent=100 * MIB)
        received = program.count()["received"]
        with program.connect() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(b"GET /v1/big?100 HTTP/1.1\r\n" + HOST + b"\r\n")
            sock.recv(1)
            last = None
            while last != (last := program.count()["received"]):
                time.sleep(0.5)
            true(last - received < 64 * MIB, f"{last - received} bytes were read for a client that reads none")
        between(memory_kib(program) - before, 0, 24 * 1024, "more memory in KiB")


@test("a body that ends early is seen as broken, and one that the upstream refuses early gets its answer")
def _():
    with World() as (_, program):
        text = program.raw(b"GET /v1/cut HTTP/1.1\r\n" + HOST + b"\r\n")
        true(text == b"" or b"Content-Length: 100\r\n" in text, f"answer: {text!r}")
        program.counts(failed=1, requests=0)
        text = program.raw(POST.replace(b"echo", b"early") + b"Content-Length: 30000000\r\n\r\n" + b"a" * 3000000)
        true(b"HTTP/1.1 413 " in text or text == b"", f"answer: {text[:300]!r}")
        with program.connect() as sock:  # a client that leaves in the middle
            sock.sendall(POST + b"Content-Length: 100\r\n\r\nhalf")
        wait_until(lambda: program.count()["failed"] >= 2, "the broken request")
        equal(program.ask("/v1/echo")[0], 200, "the next request")


@test("a client or an upstream that stalls is given up, and so is a head that does not arrive", limit=120)
def _():
    ms = int(1000 * SLOW)
    with World(settings={"head_ms": ms, "stall_ms": 2 * ms}) as (_, program):
        sentence(program.ask("/v1/silent"), 504, "sent nothing")
        text = program.raw(b"GET /v1/echo HTTP/1.1\r\nHost: mod")
        true(text.startswith(b"HTTP/1.1 408 "), f"half a head: {text!r}")
        equal(program.raw(b""), b"", "no head")
        text = program.raw(POST + b"Content-Length: 10\r\n\r\nhalf")
        true(text.startswith(b"HTTP/1.1 408 "), f"half a body: {text!r}")
        with program.connect() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(b"GET /v1/big?100 HTTP/1.1\r\n" + HOST + b"\r\n")
            wait_until(lambda: program.count()["failed"] == 3, "the client that reads nothing", 30)
        equal(program.ask("/v1/echo")[0], 200, "the next request")


@test("an upstream of HTTP/2 gets bodies and its answers are masked")
def _():
    with World(http2=True) as (server, program):
        for size in (0, 5, 300000):
            status, headers, body = program.ask("/v1/x", "POST", b"a" * size)
            stars = "*" * len(SECRET_VALUE)
            equal((status, headers["x-two"], body.decode()), (200, stars, f"{size} {stars}"), "answer")
        equal(server.heads, [b"HTTP/2"] * 3, "requests at the upstream")


# --- failures and limits -----------------------------------------------------


@test("an upstream that is down, has a wrong certificate or speaks no TLS gives 502 and one sentence")
def _():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with World(port=port) as (_, program):
        sentence(program.ask("/v1/echo"), 502, "gives no answer")
        program.counts(failed=1, requests=0)
    with World(trusted=False) as (server, program):
        sentence(program.ask("/v1/echo"), 502, "SSL_CERT_FILE")
        equal(server.heads, [], "requests at an upstream with another certificate")
    with World(tls=False) as (server, program):
        sentence(program.ask("/v1/echo"), 502)
        equal(server.heads, [], "requests")


@test("an upstream has as many requests and bytes as its limits, and then 429")
def _():
    with World(requests_max=3) as (server, program):
        equal([program.ask("/v1/echo")[0] for _ in range(3)], [200] * 3, "answers")
        sentence(program.ask("/v1/echo"), 429, "all of its 3 requests")
        sentence(program.ask("/v2"), 403)
        program.counts(requests=3, refused=2)
        equal(len(server.heads), 3, "requests at the upstream")
    with World(bytes_max=3 * MIB) as (_, program):
        equal(len(program.ask("/v1/big?2")[2]), 2 * MIB, "body")
        true(len(program.raw(b"GET /v1/big?2 HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")) < 2 * MIB, "more bytes than the limit")
        true(program.count()["received"] <= 3 * MIB, f"counters: {program.count()}")
        answer = program.ask("/v1/echo", "POST", b"a" * MIB)
        sentence(answer, 429, "bytes")


@test("64 clients are served at a time, the others wait, and one that is idle makes room")
def _():
    with World() as (server, program):
        idle = [program.connect() for _ in range(70)]
        for sock in idle[-3:]:
            sock.sendall(b"GET /v1/echo HTTP/1.1\r\n" + HOST + b"\r\n")
            contains(sock.recv(65536).decode(), "HTTP/1.1 200 ", "answer")
        for sock in idle:
            sock.close()
        busy = [program.connect() for _ in range(64)]
        for sock in busy:
            sock.sendall(b"GET /v1/silent HTTP/1.1\r\n" + HOST + b"\r\n")
        wait_until(lambda: len([head for head in server.heads if b"silent" in head]) == 64, "64 requests", 30)
        with program.connect() as late:
            late.sendall(b"GET /v1/echo HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            late.settimeout(0.5)
            try:
                raise Failure(f"the 65th client got {late.recv(100)!r}")
            except TimeoutError:
                pass
            for sock in busy:
                sock.close()
            late.settimeout(30 * SLOW)
            contains(late.recv(65536).decode(), "HTTP/1.1 200 ", "answer")


@test("each upstream has its own name, prefix, limits and counters")
def _():
    with World() as (server, program):
        pass
    with Folder("/var/tmp") as f:
        ca, leaf, key = authority(f, "own")
        server = Upstream(leaf, key)
        url = f"https://localhost:{server.port}"
        token = f.file("token", OTHER_VALUE)
        both = ({"name": "one", "url": url}, {"name": "two", "url": url, "path": "/v1/", "headers": [{"name": "X-Api-Key", "file": token}]})
        with Program(f, *both, env={"SSL_CERT_FILE": ca}) as program:
            equal(program.ask("/any")[0], 200, "the first")
            equal(sent_header(server.heads[-1], "X-Api-Key"), [], "header of another upstream")
            equal(program.ask("/any", which=1)[0], 403, "the second")
            equal(program.ask("/v1/x", which=1, Host="one.upstream.internal")[0], 400, "the name of another")
            equal(program.ask("/v1/x", which=1, Host="two.upstream.internal", X_Api_Key="mine")[0], 200, "the second")
            equal(sent_header(server.heads[-1], "X-Api-Key"), [OTHER_VALUE], "header")
            equal([program.count(i)["requests"] for i in range(2)], [1, 1], "requests")
        server.close()


# --- the process -------------------------------------------------------------


@test("the upstream program has no capability, privilege, core file or descriptor of others, and a filter of its calls")
def _():
    with World() as (_, program):
        program.ask("/v1/echo")
        wanted = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapInh": "0" * 16}
        equal({name: program.status(name) for name in wanted}, wanted, "status")
        pid = program.process.pid
        equal(resource.prlimit(pid, resource.RLIMIT_CORE), (0, 0), "core files") if os.geteuid() == 0 else None
        if os.geteuid() != 0:
            try:
                os.listdir(f"/proc/{pid}/fd")
                raise Failure("its descriptors can be listed: it is dumpable")
            except PermissionError:
                return
        links = {}
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed since
                links[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        true(all(links[fd] == "/dev/null" for fd in (0, 1)), f"standard streams: {links}")
        others = {fd: to for fd, to in links.items() if fd > 2 and not to.startswith(("socket:", "anon_inode:[event", "anon_inode:[signalfd"))}
        equal(others, {}, "descriptors")
        with open(f"/proc/{pid}/environ", "rb") as file:
            lacks(file.read().decode(), "SSL_CERT_FILE", "environment")


def with_own_names(body):
    """body(file) in namespaces of their own, where 127.0.0.1 answers for names and `file` can be replaced as /etc/resolv.conf."""
    pid = os.fork()
    if pid == 0:
        try:
            ids = (0, os.geteuid()), (0, os.getegid())
            check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET), "unshare")
            map_ids(*ids)
            true(subprocess.run(["ip", "link", "set", "lo", "up"], check=False).returncode == 0, "ip link set lo up")
            mount(None, "/", flags=MS_REC | MS_PRIVATE)
            mount("none", "/mnt", "tmpfs")
            os.mkdir("/mnt/upper")
            os.mkdir("/mnt/work")
            mount("none", "/etc", "overlay", data="lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work,userxattr")
            zone = services.Zone({"up.test": ["127.0.0.1"]})
            threading.Thread(target=zone.serve_udp, args=(services.listener(socket.SOCK_DGRAM, "127.0.0.1", 53),), daemon=True).start()
            body()
            os._exit(0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        os._exit(1)
    equal(os.waitpid(pid, 0)[1], 0, "its exit status")


@test("a name is looked up by the resolv.conf of the moment, also where another file has its place, and by no process that reads requests")
def _():
    def answer(server):
        while True:
            client = server.accept()[0]
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nup")
            client.close()

    def replace(text):
        services.write("/etc/resolv.next", text)
        os.rename("/etc/resolv.next", "/etc/resolv.conf")

    def body():
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        replace("nameserver 127.0.0.9\n")  # nobody is there
        with Folder("/var/tmp") as f, Program(f, {"name": "model", "url": f"http://up.test:{server.getsockname()[1]}"}) as program:
            sentence(program.ask("/"), 502, "resolve")
            replace("nameserver 127.0.0.1\n")
            wait_until(lambda: program.ask("/")[0] == 200, "the name server of the new file")
            names = children_of(program.process.pid)
            equal((len(names), len(os.listdir(f"/proc/{program.process.pid}/task"))), (1, 1), "the process for names, and threads")
            os.kill(names[0], signal.SIGKILL)
            equal(program.ask("/")[0], 200, "the addresses that it has")

    with_own_names(body)


@test("the upstream program exits with 0 at SIGTERM, and dies with its parent")
def _():
    with World() as (_, program):
        program.ask("/v1/echo")
        program.process.send_signal(signal.SIGTERM)
        equal(await_exit(program.process), 0, "exit status")
        equal(program.process.stderr.read(), b"", "standard error")
    with Folder("/var/tmp") as f:
        with Program(f, {"name": "model", "url": "http://localhost:1"}, parent=True) as program:
            equal(program.ask("/")[0], 502, "answer")
            child = children_of(program.process.pid)[0]
            program.process.kill()
            wait_until(lambda: not os.path.exists(f"/proc/{child}/exe") or not describe_process(child), "its end")


@test("a configuration that is not right ends the upstream program with one sentence")
def _():
    right = {"name": "model", "url": "https://localhost"}
    header = {"name": "A", "file": "/etc/hostname"}
    for change in ({"name": "a b"}, {"name": None}, {"url": None}, {"url": "ftp://localhost"}, {"url": "https://u:p@localhost"}, {"url": "https://localhost/x"},
                   {"url": "https://localhost?x"}, {"url": "https://localhost#x"}, {"url": "https://localhost:0"}, {"url": "https://localhost:99999"},
                   {"url": "https://"}, {"url": "localhost"}, {"path": "v1"}, {"headers": [header] * 9}, {"headers": [{**header, "file": "x"}]},
                   {"headers": [{**header, "name": "A b"}]}, {"headers": [{**header, "name": ""}]}, {"headers": [{**header, "name": "A:"}]},
                   {"headers": [{**header, "prefix": "a\r\nB: "}]}, *({"headers": [{**header, "name": name}]} for name in
                   ("Host", "content-length", "Transfer-Encoding", "Connection", "TE", "Proxy-Authorization"))):  # fmt: skip
        with Folder("/var/tmp") as f, Program(f, {**right, **change}) as program:
            equal(await_exit(program.process), 1, f"exit status with {change}")
            text = program.process.stderr.read().decode()
            true(text.startswith("cejail: upstream: ") and text.count("\n") == 1, f"standard error: {text!r}")
        tried()


if __name__ == "__main__":
    sys.exit("tests/system/run upstream_program")
