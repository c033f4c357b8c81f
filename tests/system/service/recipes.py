# SPDX-License-Identifier: Apache-2.0
"""Every recipe of cejail-recipes(7) and cejail-network(7) is typed as it stands there, and prints what stands below it."""

import contextlib
import glob
import http.server
import os
import re
import socket
import subprocess
import threading

from archives import busybox, docker_archive, entry, tar
from harness import *  # noqa: F403
from internet import OTHER4, Internet
from service import Service

PREFIX = os.path.dirname(os.path.dirname(CEJAIL))
PAGES = [f"{PREFIX}/share/man/man7/cejail-{name}.7" for name in ("recipes", "network")]

FETCH = """import socket, sys
for name in sys.argv[1:] or ("pypi.org", "example.com"):
    try:
        socket.create_connection((name, 443), 10)
        print(f"{name}: open")
    except socket.gaierror:
        print(f"{name}: no such name")
"""
CONNECT = """import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
print("open")
"""


def recipes():
    """{title: [(command, expected output)]}"""
    sections = []
    for path in PAGES:
        with open(path) as page:
            sections += re.search(r"^\.Sh RECIPES\n(.*?)(^\.Sh |\Z)", page.read(), re.DOTALL | re.MULTILINE)[1].split(".Ss ")[1:]
    found = {}
    for section in sections:
        block = re.search(r"\.Bd -literal[^\n]*\n(.*?)\n\.Ed", section, re.DOTALL)[1]
        text = block.replace("\\e", "\\").replace("\\&", "")
        parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
        found[section.split("\n")[0]] = [re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.DOTALL).groups() for part in parts]
    return found


def fill(place):
    """The files that the recipes name."""
    place.file("data/rows.txt", "1\n2\n3\n")
    place.file("analyse.py", 'print("rows:", len(open("/data/rows.txt").readlines()))')
    place.file("table.csv", "pears,1\napples,3\nplums,2\n")
    place.file("hello", '#!/bin/sh\necho "hello, $1"\n', 0o755)
    place.file("project/Makefile", "test:\n\ttest ! -e made\n\ttouch made\n\techo tests passed\n")
    place.file("fetch.py", FETCH)
    place.file("connect.py", CONNECT)
    place.file("job.service", "[Service]\nType=oneshot\nUser=daemon\nDelegate=yes\n"
                              "ExecStart=/usr/local/bin/cejail run --network none /usr/local/bin/job.py\n")  # fmt: skip


def type_it(title, place, replaced=(), **options):
    """Types the commands of a recipe one after the other; `replaced`: what this machine has in place of the page's words."""
    for command, wanted in RECIPES[title]:
        for old, new in (("/usr/local", PREFIX), *replaced):
            true(old in command or old == "/usr/local", f"'{old}' is not in: {command}")
            command = command.replace(old, new)
        env = environment(PATH=f"{PREFIX}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", XDG_DATA_HOME=place / ".data")
        done = subprocess.run(["/bin/bash", "-e", "-c", command], cwd=place.path, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60 * SLOW, check=False, **options)  # fmt: skip
        equal(done.returncode, 0, f"{title}: the exit status of '{command}' ({done.stderr.strip()})")
        if wanted:
            equal(done.stdout.rstrip("\n"), wanted.rstrip("\n"), f"{title}: {command}")
    return done.stdout.strip()


@contextlib.contextmanager
def server(answer=None):
    """A port of this host's loopback that accepts connections; `answer`: of HTTP."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            self.send_response(answer)
            self.end_headers()

        def log_message(self, *unused):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield str(listener.server_port)
        listener.shutdown()


def with_key():
    """The recipe's service: it knows the key of the page's file."""
    title = "Use an API key that the program cannot read"

    class Keyed(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            is_right = self.headers.get("Authorization") == "Bearer the-key"
            self.send_response(200 if is_right else 401)
            self.end_headers()
            self.wfile.write(b"the key was right" if is_right else b"")

        def log_message(self, *unused):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keyed) as listener, Folder() as place:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        place.file("api.key", "the-key\n")
        type_it(title, place, [("8080", str(listener.server_port))])
        listener.shutdown()


def plain(title):
    def perform():
        with Folder() as place:
            fill(place)
            type_it(title, place)

    return perform


# --- the recipes that need something beside them ---


def on_loopback(title, port, answer=None):
    def perform():
        with Folder() as place, server(answer) as own:
            fill(place)
            type_it(title, place, [(port, own)])

    return perform


def in_network(title, *replaced):
    """Names and ports of the test's Internet take the place of the page's, in the program and in what it prints, too."""

    def perform():
        fetch, page = FETCH.replace("443", "80"), RECIPES[title]
        for old, new in replaced:
            fetch, page = fetch.replace(old, new), [(command, wanted.replace(old, new)) for command, wanted in page]
        RECIPES[title] = page
        with Folder() as place, Internet() as net:
            fill(place)
            place.file("fetch.py", fetch)
            type_it(title, place, replaced, **net.inside)

    return perform


def installed():
    """No index of packages is in the test's Internet: an exec that connects below the wildcard, and writes a module."""
    title = "Install with a network, then run without"
    connects = f"""-c 'import socket, sys
socket.create_connection(("a.wild.test", 80), 10)
try:
    sys.exit(socket.create_connection(("{OTHER4}", 80), 10) and 1)
except OSError:
    open("requests.py", "w")
'"""
    closed = f"""cejail session exec $s -c 'import socket
for address in ("a.wild.test", "{OTHER4}"):
    try:
        print(socket.create_connection((address, 80), 10))
    except OSError:
        print("closed")
'"""
    with Folder() as place, Internet() as net, Service(**net.inside) as service:
        commands, wanted = zip(*RECIPES[title])
        said = "".join(wanted).replace("*.pypi.org", "*.wild.test")
        RECIPES[title] = [("\n".join([*commands, closed]), f"{said.rstrip()}\nclosed\nclosed")]
        verbs = [(f"cejail session {verb}", f"cejail session {verb} --remote={service.socket}") for verb in ("create", "network", "exec")]
        type_it(title, place, [*verbs, ("*.pypi.org", "*.wild.test"), ("-- pip install -q requests", connects)], **net.inside)


def installed_at_once():
    title = "Install and run in one command"
    install = f"""import socket
socket.create_connection(("a.wild.test", 80), 10)
try:
    raise SystemExit(f"open: {{socket.create_connection(('{OTHER4}', 80), 10)}}")
except OSError:
    open("requests.py", "w")
"""
    with Folder() as place, Internet() as net:
        place.file("install.py", install)
        replaced = [("--setup 'pip install -q requests'", "-f install.py --setup 'python3 install.py'"), ("*.pypi.org", "*.wild.test")]
        type_it(title, place, replaced, **net.inside)


def virtual():
    with Folder() as place:
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", place / ".venv"], check=True)
        packages = glob.glob(place / ".venv/lib/python3*/site-packages")[0]
        place.file(os.path.relpath(f"{packages}/tools.py", place.path), "VERSION = 3\n")
        type_it("Use a virtual environment", place)


def kept():
    """There is no index of packages here: a directory of wheels takes its place."""
    title = "Keep packages that pip installs"
    if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        raise Skip("python3-pip is not installed")
    with Folder() as place:
        scope = {}
        exec(WHEEL, scope)  # noqa: S102
        scope["make_wheel"](place / "wheels")
        (install, _), (use, wanted) = RECIPES[title]
        own = install.replace("public", "none").replace("-o packages", "-f wheels -o packages").replace(
            "install requests", "install -q --no-index --find-links wheels tinypk")  # fmt: skip
        true("tinypk" in own and "wheels -o" in own, f"the command has other words than the test: {install}")
        RECIPES[title] = [(own, ""), (use.replace("requests", "tinypk"), wanted.replace("requests", "tinypk"))]
        type_it(title, place)


def node():
    if subprocess.run(["node", "--version"], capture_output=True, check=False, env=environment()).returncode != 0:
        raise Skip("no node")
    with Folder() as place:
        place.file("node_modules/greeting/index.js", 'module.exports = "hello from a module"\n')
        place.file("app.js", 'console.log(require("greeting"))\n')
        type_it("Use node_modules", place)


def killed():
    with Folder() as place:
        equal(type_it("Find out why a program was killed", place), f"oom {facts()['limits']['memory']['by']}", "what is printed")


def drawn():
    with Folder() as place:
        type_it("Draw how a run went", place)
        with open(place / "report.html") as page:
            contains(page.read(), '"type":"stdout"', "the page")


def strict():
    with Folder() as place:
        said = type_it("Refuse to run with weaker isolation", place)
        is_strict = all(limit["by"] == "cgroup" for name, limit in facts()["limits"].items() if name in ("memory", "cpus", "pids"))
        equal(said, "everything is enforced" if is_strict else "see 'cejail doctor'", "what is printed")


def traced():
    with Folder() as place:
        type_it("Trace system calls, or use a debugger", place)
        contains(open(place / "trace.txt").read(), "/etc/hostname", "the trace")


def distribution():
    with Folder() as place:
        root = tar(*busybox(), entry("greeting", b"good morning\n"))
        place.file("image.tar", docker_archive([root]))
        type_it("Run in another distribution", place)


def unit():
    plain("Run it from a systemd unit")()
    with Folder() as place:
        place.file("job.service", RECIPES["Run it from a systemd unit"][0][1].replace("/usr/local", PREFIX))
        done = subprocess.run(["systemd-analyze", "verify", place / "job.service"], capture_output=True, text=True, check=False)
        lacks(done.stderr, "job.service", "complaints of systemd")


def container():
    """Docker is not here: its options are those that doctor names.  oci/inside_containers.py runs Podman's."""
    with open(f"{PREFIX}/bin/cejail", "rb") as file:
        program = file.read()
    for (command, _), option in zip(RECIPES["Run in a container"], ("systempaths=unconfined", "unmask=ALL"), strict=True):
        engine = command.split()[0]
        for one in (option, "seccomp="):
            contains(command, one, "the command")
            true(f"{engine} run --security-opt {one}".encode() in program, f"doctor does not name {one} of {engine}")


RECIPES = recipes()
SPECIAL = {
    "Allow only PyPI": in_network("Allow only PyPI", ("pypi.org", "public.test"), ("files.pythonhosted.org", "other.test"),
                                  (":443", ":80")),
    "Allow every name below one": in_network("Allow every name below one", ("example.com", "wild.test"), ("www.", "a."),
                                             ("pypi.org", "public.test"), (":443", ":80")),
    "Deny one name below an allowed one": in_network("Deny one name below an allowed one", ("example.com", "wild.test"),
                                                     ("www.", "a."), ("secret.", "deep.a."), (":443", ":80")),
    "Install with a network, then run without": installed,
    "Install and run in one command": installed_at_once,
    "Reach a database of the local network": in_network("Reach a database of the local network", ("5432", "9000")),
    "Reach a service on this host": on_loopback("Reach a service on this host", "8080"),
    "Use an API key that the program cannot read": with_key,
    "Use an HTTP proxy as the only way out": on_loopback("Use an HTTP proxy as the only way out", "3128", 200),
    "Trace system calls, or use a debugger": traced,
    "Use a virtual environment": virtual,
    "Keep packages that pip installs": kept,
    "Use node_modules": node,
    "Find out why a program was killed": killed,
    "Draw how a run went": drawn,
    "Refuse to run with weaker isolation": strict,
    "Run in another distribution": distribution,
    "Run it from a systemd unit": unit,
    "Run in a container": container,
}

for name in RECIPES:
    test(f"recipe: {name[0].lower()}{name[1:]}")(SPECIAL.get(name) or plain(name))


@test("there are 27 recipes or more, and each special case is one of them")
def _():
    true(len(RECIPES) >= 27, f"only {len(RECIPES)} recipes")
    equal(set(SPECIAL) - set(RECIPES), set(), "special cases without a recipe")
