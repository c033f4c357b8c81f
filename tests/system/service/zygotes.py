# SPDX-License-Identifier: Apache-2.0
"""Zygotes: prepared jails whose interpreter is a fork of one that was started once."""

import base64
import ctypes
import glob
import json
import os
import signal
import subprocess
import sys

from harness import *  # noqa: F403
from pools import tier_of, wait_full
from service import Service, gone

ONE = {"pool": {"python": {"interpreters": 1}}}
EIGHT = {"pool": {"python": {"interpreters": 8}}}
CHILDREN, FALLBACKS, STARTED = "cejail_zygote_children_total", "cejail_zygote_fallbacks_total", "cejail_zygotes_started_total"


def keepers(s):
    return [pid for pid in s.workers() if "cejail-zygote" in (describe_process(pid) or "")]


def zygote_of(s):
    """The child of a keeper; jails' interpreters are children of their init."""
    found = [pid for keeper in keepers(s) for pid in children_of(keeper)]
    equal(len(found), 1, "zygotes")
    return found[0]


def in_zygote_jails(s, count, code, profile="python"):
    """What programs say, each in a jail of the zygote's."""
    said = []
    for i in range(count):
        wait_until(lambda: s.metric("cejail_pool_ready", tier="interpreter") >= 1, "an interpreter")
        value = s.post({"profile": profile, "code": code, "id": f"r{i}"}).result
        equal((value["status"], value["exit_code"], tier_of(s, f"r{i}")), ("exited", 0, "interpreter"), f"run {i} ({value['stderr']})")
        said.append(value["stdout"]["text"])
    equal(s.metric(FALLBACKS), 0, f"jails that started an interpreter of their own ({s.said()})")
    return said


RANDOM = """
import hashlib, json, multiprocessing, os, random, secrets, ssl, sys, tempfile, uuid
values = {
    "random": random.getrandbits(64), "own": random.Random().getrandbits(64), "system": random.SystemRandom().getrandbits(64),
    "secrets": secrets.token_hex(8), "urandom": os.urandom(8).hex(), "ssl": ssl.RAND_bytes(8).hex(),
    "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()), "tempfile": tempfile.mktemp(),
    "salt": hashlib.scrypt(b"x", salt=os.urandom(16), n=2, r=1, p=1).hex()[:16],
    "authkey": bytes(multiprocessing.current_process().authkey).hex(),
}
try:
    import numpy
    values["numpy"] = int(numpy.random.randint(1 << 62))
    values["generator"] = int(numpy.random.default_rng().integers(1 << 62))
except ImportError:
    pass
print(json.dumps(values))
"""
PRELOAD = ["random", "secrets", "ssl", "tempfile", "uuid", "hashlib", "numpy", "numpy.random", "multiprocessing.process"]


@test("a hundred jails of one zygote have a hundred different values of every random source")
def _():
    with Folder() as f:
        f.file("cejail/profiles/dice.json", json.dumps({"extends": "python", "memory": "1G", "env": {"OPENBLAS_NUM_THREADS": "1"}, "warm": {"preload": PRELOAD}}))
        with Service(config={"pool": {"dice": {"interpreters": 8}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            rows = [json.loads(text) for text in in_zygote_jails(s, 100, RANDOM, profile="dice")]
            equal(s.metric(STARTED), 1, "zygotes")
            for key in rows[0]:
                equal(len({row[key] for row in rows}), 100, f"different values of {key}")


@test("a program in a jail of a zygote has no descriptor and no file but those of a cold one")
def _():
    code = """
import os
print(sorted((int(n), os.readlink(f"/proc/self/fd/{n}").split(":")[0]) for n in os.listdir("/proc/self/fd")))
print([os.listdir(d) for d in ("/tmp", "/box/out", "/dev/shm")], os.getcwd(), sorted(os.environ.items()))
for path in ("/proc/self/exe", "/proc/self/map_files"):
    try:
        os.chmod(path, 0o4755)
        print("changed", path)
    except OSError as problem:
        print(type(problem).__name__, problem.errno)
print(open("/proc/self/environ").read())
"""
    with Service(config=ONE) as s:
        wait_full(s)
        warm = s.post({"profile": "python", "code": code, "id": "w"}).result
        cold = s.post({"profile": "python", "code": code, "memory": "300M", "id": "c"}).result
        equal((tier_of(s, "w"), tier_of(s, "c"), s.metric(CHILDREN) >= 1), ("interpreter", "cold", True), "tiers, and a zygote")
        equal(warm["stdout"]["text"].split("\n")[:4], cold["stdout"]["text"].split("\n")[:4], f"what they see ({warm['stderr']})")
        true("LD_PRELOAD" not in warm["stdout"]["text"] and "changed" not in warm["stdout"]["text"], warm["stdout"]["text"])


@test("the lines that a program in a jail of a zygote has printed before its time limit are in the result")
def _():
    with Service(config=ONE) as s:
        wait_full(s)
        value = s.post({"profile": "python", "code": "print('start'); print('half', end=''); import time; time.sleep(100)", "timeout": "1s", "id": "w"}).result
        equal((value["status"], value["stdout"]["text"], tier_of(s, "w")), ("timeout", "start\n", "interpreter"), f"the end ({value['stderr']})")


def page_faults(pid):
    """Those that needed no disk, and the ticks of a processor in the program itself."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        values = file.read().rpartition(")")[2].split()
    return int(values[7]), int(values[11])


@test("a jail of a zygote has the pages of a whole program before its own comes")
def _():
    with Service(config=ONE) as s:
        wait_full(s)
        zygote = zygote_of(s)
        waiting = [pid for pid in s.workers() if " python" in (describe_process(pid) or "") and pid != zygote]
        equal(len(waiting), 1, "interpreters that wait")
        before, _ = page_faults(waiting[0])
        run = s.background(s.post, {"profile": "python", "code": "print(1)\nwhile True:\n    pass", "id": "w"})
        wait_until(lambda: page_faults(waiting[0])[1] > 10, "the loop")
        now, _ = page_faults(waiting[0])
        s.call("DELETE", "/v1/runs/w").has(202)
        equal(run.finish().result["stdout"]["text"], "1\n", "output")
        true(now - before <= 10, f"{now - before} page faults from the words to the loop")


@test("each jail of a zygote begins anew: no module, file or variable of another one's program")
def _():
    code = "import os, json, builtins\nprint(hasattr(builtins, 'mark'), hasattr(json, 'mark'), os.environ.get('MARK'), os.listdir('/tmp'))\nbuiltins.mark = json.mark = 1; os.environ['MARK'] = '1'; open('/tmp/mark', 'w')"
    with Service(config=EIGHT) as s:
        equal(set(in_zygote_jails(s, 20, code)), {"False False None []\n"}, "what 20 programs found")


@test("the modules of a zygote are loaded once, and leave nothing on the host")
def _():
    with Folder() as f:
        f.file("cejail/profiles/mine.json", json.dumps({"extends": "python", "env": {"MPLCONFIGDIR": "/tmp/cejail-no-such-place"}, "warm": {"preload": ["json", "no_such_module", "matplotlib"]}}))
        with Service(config={"pool": {"mine": {"interpreters": 2}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            wait_full(s)
            value = s.post({"profile": "mine", "code": "import os, sys; print('json' in sys.modules, os.environ['MPLCONFIGDIR'], os.environ['HOME'])"}).result
            equal(value["stdout"]["text"], "True /tmp/cejail-no-such-place /box\n", f"output ({value['stderr']})")
            equal((s.metric(STARTED), s.metric(FALLBACKS)), (1, 0), f"zygotes, fallbacks ({s.said()})")
            equal((os.path.exists("/tmp/cejail-no-such-place"), glob.glob("/tmp/*zygote*")), (False, []), "what is left")


LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def with_modules_of_its_own(directory):
    """In the service's process, before it is executed: a mount namespace with one module there."""
    for rc in (LIBC.unshare(CLONE_NEWNS), LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None),
               LIBC.mount(b"none", os.fsencode(directory), b"tmpfs", 0, b"mode=0755")):  # fmt: skip
        if rc < 0:
            raise OSError(ctypes.get_errno(), "a directory of modules")
    with open(f"{directory}/upgraded.py", "w", encoding="ascii") as file:
        file.write("version = 1\n")


@test("when a file that a zygote has loaded is replaced, another zygote takes over", who="roots")
def _():
    path = subprocess.run(["/usr/bin/python3", "-s", "-c", "import sys; print(sys.path[-1])"], capture_output=True, text=True, check=True).stdout.strip()
    with Folder() as f:
        f.file("cejail/profiles/mine.json", json.dumps({"extends": "python", "warm": {"preload": ["upgraded"]}}))
        code = "import upgraded; print(upgraded.version)"
        with Service(config={"pool": {"mine": {"interpreters": 1}}}, env={"XDG_CONFIG_HOME": f.path}, preexec_fn=lambda: with_modules_of_its_own(path)) as s:
            wait_full(s)
            equal(in_zygote_jails(s, 3, code, profile="mine"), ["1\n"] * 3, "the first version")
            inside = f"/proc/{s.process.pid}/root{path}"
            with open(f"{inside}/new", "w", encoding="ascii") as file:
                file.write("version = 2\n")
            os.rename(f"{inside}/new", f"{inside}/upgraded.py")
            wait_until(lambda: s.metric(STARTED) == 2, f"another zygote; the service says {s.said()}", 30)
            in_zygote_jails(s, 1, code, profile="mine")  # it may have waited since before
            equal(in_zygote_jails(s, 3, code, profile="mine"), ["2\n"] * 3, "the second version")
            equal(s.metric(STARTED), 2, "zygotes")


@test("every attempt at escape is held in a jail of a zygote, with the answer of a cold one", limit=300)
def _():
    with Folder() as f:
        f.file("cejail/profiles/mine.json", json.dumps({"extends": "python", "network": "none"}))
        with Service(config={"pool": {"mine": {"interpreters": 1}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            names = [os.path.basename(path) for path in sorted(glob.glob(f"{PROBES}/attempt_*"))]
            true(len(names) >= 6, f"probes {names}")
            for name in names:
                with open(f"{PROBES}/{name}", "rb") as file:
                    files = [{"path": name, "base64": base64.b64encode(file.read()).decode(), "executable": True}]
                request = {"profile": "mine", "code": f"import os; os.execv('/box/{name}', ['/box/{name}'])", "files": files, "timeout": "60s"}
                wait_full(s)
                warm, cold = s.post({**request, "id": name}).result, s.post({**request, "memory": "300M"}).result
                answers = [dict(line.split(" ", 1) for line in one["stdout"]["text"].splitlines()) for one in (warm, cold)]
                equal((tier_of(s, name), warm["exit_code"], len(answers[0]) >= 5), ("interpreter", 0, True), f"{name} ({warm['stdout']}, {warm['stderr']})")
                equal([attempt for attempt, answer in answers[0].items() if not answer.startswith("HELD (")], [], f"what escaped in {name}")
                equal(answers[0], answers[1], f"the answers of {name}")
            true(s.metric(CHILDREN) >= len(names) and s.metric(FALLBACKS) == 0, "all of them were forks of the zygote")


def descriptors(pid, wanted, what, first=0):
    """What it does for the jail that is ready by now may take another moment."""

    def look():
        try:
            return sorted(os.readlink(f"/proc/{pid}/fd/{n}").split(":")[0] for n in os.listdir(f"/proc/{pid}/fd") if int(n) >= first)
        except FileNotFoundError:
            return None  # closed while we looked

    try:
        wait_until(lambda: look() == wanted, what)
    except Failure:
        equal(look(), wanted, what)


@test("a zygote and its keeper have no descriptor but their own", who="root")
def _():
    with Service(config=ONE) as s:
        wait_full(s)
        in_zygote_jails(s, 3, "print(1)")
        wait_full(s)
        descriptors(zygote_of(s), ["pipe"] * 3 + ["socket"], "the zygote's: its streams, and where jails are asked for")
        descriptors(keepers(s)[0], ["anon_inode", "anon_inode", "pipe", "socket", "socket"], "the keeper's: the zygote's end, files and output, two to the server", first=3)


# --- its life ---------------------------------------------------------------------


@test("a zygote is replaced after its number of jails, and jails it has prepared are still used")
def _():
    with Service(config={**EIGHT, "zygote_children": 10}) as s:
        wait_full(s)
        first = zygote_of(s)
        in_zygote_jails(s, 25, "print(1)")
        wait_until(lambda: gone([first]), "the first zygote to end")
        true(s.metric(STARTED) >= 2, f"{s.metric(STARTED)} zygotes")


@test("a zygote is replaced when it is old, and when its profile changes")
def _():
    with Folder() as f:
        def write(value):
            f.file("cejail/profiles/mine.json", json.dumps({"extends": "python", "env": {"A": value}}))

        write("old")
        service = {"config": {"pool": {"mine": {"interpreters": 2}}}, "env": {"XDG_CONFIG_HOME": f.path}}
        with Service(**service | {"config": service["config"] | {"zygote_age": f"{1 + int(SLOW)}s"}}) as s:
            wait_full(s)
            first = zygote_of(s)
            wait_until(lambda: gone([first]) and s.metric("cejail_zygotes") == 1, "an old one to be replaced")
        with Service(**service) as s:
            wait_full(s)
            write("newer")
            for _ in range(4):
                equal(s.post({"profile": "mine", "code": "import os; print(os.environ['A'])"}).result["stdout"]["text"], "newer\n", "after the change")
            wait_full(s)
            equal(s.post({"profile": "mine", "code": "import os; print(os.environ['A'])", "id": "last"}).result["stdout"]["text"], "newer\n", "with a new zygote")
            equal(tier_of(s, "last"), "interpreter", "its tier")


@test("a zygote that is killed is replaced, no request fails meanwhile, and one warning says so")
def _():
    with Service(config=EIGHT) as s:
        wait_full(s)
        for i in range(30):
            if i == 5:
                os.kill(zygote_of(s), signal.SIGKILL)
            equal(s.post({"profile": "python", "code": "print(6 * 7)"}).result["stdout"]["text"], "42\n", f"run {i}")
        wait_until(lambda: s.metric("cejail_zygotes") == 1 and s.metric(STARTED) >= 2, "another zygote", 20)
        equal(s.said().count("signal 9 killed the zygote"), 1, f"warnings in {s.said()}")
        wait_full(s)
        equal(s.post({"profile": "python", "code": "print(6 * 7)"}).result["stdout"]["text"], "42\n", "a run afterwards")


@test("no zygote outlives its service, however that ends: SIGTERM, SIGKILL, the spawner's or the keeper's death")
def _():
    def end_service(s):
        s.signal(signal.SIGTERM)
        await_exit(s.process, 20)

    def kill_service(s):
        s.process.kill()
        s.process.wait()

    def kill_spawner(s):
        os.kill(children_of(s.process.pid)[0], signal.SIGKILL)
        await_exit(s.process, 20)

    def kill_keeper(s):
        os.kill(keepers(s)[0], signal.SIGKILL)

    for end in (end_service, kill_service, kill_spawner, kill_keeper):
        with Service(config=ONE) as s:
            wait_full(s)
            pid = zygote_of(s)
            end(s)
            wait_until(lambda: gone([pid]), f"the zygote to end after {end.__name__}", 20)


# --- profiles without -----------------------------------------------------------------


def assert_falls_back(profile, said):
    with Folder() as f:
        f.file("cejail/profiles/mine.json", json.dumps({"extends": "python", **profile}))
        with Service(config={"pool": {"mine": {"interpreters": 2}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            wait_full(s)
            for i in range(3):
                value = s.post({"profile": "mine", "code": "print(6 * 7)", "id": f"r{i}"}).result
                equal((value["stdout"]["text"], tier_of(s, f"r{i}")), ("42\n", "interpreter"), f"output and tier ({value['stderr']})")
                wait_full(s)
            equal((s.metric("cejail_zygotes"), s.metric(CHILDREN)), (0, 0), "zygotes, their jails")
            if said is None:
                equal((s.metric(FALLBACKS), "zygote" in s.said()), (0, False), f"fallbacks, a warning ({s.said()})")
                return
            true(s.metric(FALLBACKS, reason="unsuitable") >= 2, "fallbacks that are counted")
            equal(s.said().count("without a zygote"), 1, f"warnings in {s.said()}")
            contains(s.said(), said, "the warning")
            contains(s.said(), "cejail-serve(8)", "the warning")
            checked = cejail("serve", "--check", "--config", s.folder / "serve.json", env=environment(XDG_CONFIG_HOME=f.path), limit=15).exits(0).out
            true("warning: pool: " in checked and said in checked, f"what --check says: {checked!r}")


@test("a profile can turn its zygote off, without a warning")
def _():
    assert_falls_back({"warm": {"zygote": False}}, None)


@test("a bind over the interpreter's directories, a changed search path, a writable root: interpreters start one by one, and one warning names the remedy")
def _():
    with Folder() as f:
        assert_falls_back({"ro_bind": [f"{f.folder('empty')}:/opt/empty"]}, "a bind changes the directories")
    assert_falls_back({"env": {"PYTHONPATH": "/box/lib"}}, "PYTHONPATH")
    assert_falls_back({"writable": True}, "writable")
    assert_falls_back({"nofile": 16}, "open files")


@test("a program in a jail of a zygote imports what it installs with pip, and has the search path of a cold one")
def _():
    install = "import os, site, subprocess, sys; from harness_wheel import make_wheel; make_wheel('/tmp/w')\n"
    install += "subprocess.run(['pip', 'install', '-q', '--no-index', '--find-links', '/tmp/w', 'tinypk'], check=True)\n"
    install += "import tinypk; print(tinypk.VALUE, sys.path, sys.flags, site.USER_BASE, site.USER_SITE, 'PYTHONUSERBASE' in os.environ)"
    if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        raise Skip("python3-pip is not installed")
    files = [{"path": "harness_wheel.py", "text": WHEEL}]
    with Service(config=ONE) as s:
        wait_full(s)
        warm = s.post({"profile": "python", "code": install, "files": files, "id": "w", "timeout": scaled(60)}).result
        cold = s.post({"profile": "python", "code": install, "files": files, "id": "c", "timeout": scaled(60), "memory": "300M"}).result
        equal((tier_of(s, "w"), tier_of(s, "c"), s.metric(CHILDREN) >= 1), ("interpreter", "cold", True), "tiers, and a zygote")
        equal(warm["stdout"]["text"], cold["stdout"]["text"], f"what they say ({warm['stderr']}, {cold['stderr']})")
        true(cold["stdout"]["text"].startswith("7 ['/box'"), f"the cold one: {cold}")


@test("a zygote never loads a module from the home directory that a profile names")
def _():
    with Folder() as f:
        packages = f"{f.path}/.local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        os.makedirs(packages)
        f.file(f"{packages}/own.pth", f"import os; os.mkdir({f.path + '/loaded'!r})\n")
        f.file("cejail/profiles/home.json", json.dumps({"extends": "python", "env": {"HOME": f.path}}))
        with Service(config={"pool": {"home": {"interpreters": 1}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            equal(in_zygote_jails(s, 1, "import site; print(site.USER_BASE)", profile="home"), [f"{f.path}/.local\n"], "the home inside")
        assert_falls_back({"command": ["python3", "-s", "-X", "pycache_prefix=/tmp/x", "{file}"]}, "pycache_prefix")
        true(not os.path.exists(f"{f.path}/loaded"), "no code of the directory ran")


@test("numexpr, which pandas loads, does not keep python-data from a zygote")
def _():
    need_python_module("numexpr")
    with Folder() as f:
        f.file("cejail/profiles/numbers.json", json.dumps({"extends": "python-data", "warm": {"preload": ["numexpr"]}}))
        with Service(config={"pool": {"numbers": {"interpreters": 1}}}, env={"XDG_CONFIG_HOME": f.path}) as s:
            code = "import os, sys; loaded = 'numexpr' in sys.modules; print(loaded, len(os.listdir('/proc/self/task')))"
            equal(in_zygote_jails(s, 2, code, profile="numbers"), ["True 1\n"] * 2, "loaded, and threads")
            equal(s.metric(STARTED), 1, "zygotes")


@test("without numpy, pandas and matplotlib python-data is python; with them they are there at once")
def _():
    code = "import sys; print([name for name in ('numpy', 'pandas', 'matplotlib.pyplot') if name in sys.modules]); import os; print(len(os.listdir('/proc/self/task')))"
    cold = "import importlib.util as u; print([name for name, top in (('numpy', 'numpy'), ('pandas', 'pandas'), ('matplotlib.pyplot', 'matplotlib')) if u.find_spec(top)]); print(1)"
    with Service(config={"pool": {"python-data": {"interpreters": 1}}}) as s:
        wait_until(lambda: all(row["ready"] >= row["wanted"] for row in s.get("/readyz").json["pool"]), "the pool to be full", 60)
        warm = s.post({"profile": "python-data", "code": code, "id": "a"}).result
        equal((warm["stdout"]["text"], tier_of(s, "a")), (result("-p", "python-data", "-c", cold)["stdout"]["text"], "interpreter"), f"modules and tier ({warm['stderr']})")
        equal((s.metric(STARTED), s.metric(FALLBACKS)), (1, 0), f"zygotes, fallbacks ({s.said()})")
