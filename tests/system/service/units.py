# SPDX-License-Identifier: Apache-2.0
"""The service under a real systemd: activation, delegation, drain, watchdog, crash; as a system service
and as a user's.  Only on the test machine, where there is a systemd to ask."""

import functools
import json
import os
import signal
import subprocess
import time

import harness
from harness import *  # noqa: F403

SYSTEM_SOCKET = "/run/cejail/api.sock"
DROP_IN = "/run/systemd/system/cejail.service.d"
CONFIG = "/etc/cejail/serve.json"


# --- systemd ---------------------------------------------------------------------------------------


def wait_until(condition, what, seconds):
    """Each look starts a program, and systemd answers it with all that it knows of the unit: few looks."""
    return harness.wait_until(condition, what, seconds, pause=1)


def systemctl(*words, user=False, check=True):
    done = subprocess.run(["systemctl", *(["--user"] if user else []), *words], capture_output=True,
                          text=True, timeout=120 * SLOW, check=False)  # fmt: skip
    if check and done.returncode != 0:
        raise Failure(f"systemctl {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def state(user=False):
    return systemctl("is-active", "cejail.service", user=user, check=False)


def main_pid():
    return int(systemctl("show", "-P", "MainPID", "cejail.service"))


def service_cgroup():
    return "/sys/fs/cgroup" + systemctl("show", "-P", "ControlGroup", "cejail.service")


def processes_in(cgroup):
    found = []
    for base, _, _ in os.walk(cgroup):
        try:
            with open(os.path.join(base, "cgroup.procs"), encoding="ascii") as file:
                found += file.read().split()
        except OSError:
            pass
    return found


@functools.cache
def set_up():
    """The service's user and directories, as the packages' triggers do it."""
    subprocess.run(["systemd-sysusers"], check=True, capture_output=True)
    subprocess.run(["systemd-tmpfiles", "--create", "cejail.conf"], check=True, capture_output=True)


def set_drop_in(text):
    """systemd reads the units only when one has changed: in an emulated machine that takes seconds."""
    if text is None:
        os.unlink(DROP_IN + "/test.conf")
        os.rmdir(DROP_IN)
    else:
        os.makedirs(DROP_IN, exist_ok=True)
        with open(DROP_IN + "/test.conf", "w", encoding="utf-8") as file:
            file.write("[Service]\n" + text)
    systemctl("daemon-reload")


class Service:
    """The units as make install puts them, started by their socket, gone afterwards."""

    def __init__(self, config=None, drop_in=None):
        self.config, self.drop_in = config, drop_in

    def __enter__(self):
        set_up()
        write_config(self.config)
        if self.drop_in:
            set_drop_in(self.drop_in)
        systemctl("reset-failed", "cejail.service", check=False)
        systemctl("start", "cejail.socket")
        return self

    def __exit__(self, *unused):
        systemctl("stop", "cejail.socket", "cejail.service", check=False)
        write_config(None)
        if self.drop_in:
            set_drop_in(None)


def write_config(config):
    if config is None:
        if os.path.exists(CONFIG):
            os.unlink(CONFIG)
        return
    os.makedirs(os.path.dirname(CONFIG), exist_ok=True)
    with open(CONFIG, "w", encoding="utf-8") as file:
        file.write(config if isinstance(config, str) else json.dumps(config))


# --- calling ---------------------------------------------------------------------------------------


def curl(*words, path="/v1/runs", socket=SYSTEM_SOCKET, limit=60):
    """The reply's status and text, as a newcomer calls it."""
    command = ["curl", "-s", "-S", "--unix-socket", socket, "-w", "\n%{http_code}", *words, "http://localhost" + path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit * SLOW, check=False)
    text, _, code = done.stdout.rpartition("\n")
    if done.returncode != 0:
        raise Failure(f"curl: {done.stderr.strip()}; the journal: {journal()}")
    return int(code), text


def journal():
    """What systemd and the service said last."""
    done = subprocess.run(["journalctl", "-u", "cejail.service", "-o", "cat", "-n", "40"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    return done.stdout


def post(request, **more):
    code, text = curl("-d", json.dumps(request), **more)
    if code != 200:
        raise Failure(f"status {code}: {text[:500]}; the journal: {journal()}")
    return parse_result(text)


def post_later(request, socket=SYSTEM_SOCKET):
    return subprocess.Popen(["curl", "-s", "-S", "--unix-socket", socket, "-d", json.dumps(request),
                             "http://localhost/v1/runs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip


def answer_of(process, limit=60):
    out, err = process.communicate(timeout=limit * SLOW)
    return parse_result(out) if out.startswith("{") else out + err


def py(code, **more):
    return {"profile": "python", "code": code, "network": "none", **more}


def wait_for_run(count=1):
    def running():
        _, text = curl(path="/v1/runs")
        return sum(run["state"] == "running" for run in json.loads(text)["runs"]) >= count

    wait_until(running, "the run to go on", 30)


# --- a system service ------------------------------------------------------------------------------


@test("systemctl start cejail.socket, then curl: the first caller starts the service and gets a result", who="machine root", limit=120)
def _():
    with Service():
        true(state() != "active", f"the service is {state()} before anybody called")
        value = post({"profile": "python", "code": "print(1)"})
        equal((value["status"], value["stdout"]["text"]), ("exited", "1\n"), "status and output")
        wait_until(lambda: state() == "active", "systemd to receive that it is ready", 20)
        equal(curl(path="/readyz")[0], 200, "readyz")
        true(curl(path="/metrics")[1].startswith("# HELP"), "no metrics")


@test("as a user without privileges, with every limit held by cgroup v2 below the service's own cgroup", who="machine root", limit=120)
def _():
    with Service():
        value = post(py("print(open('/proc/self/cgroup').read())"))
        for limit in ("memory", "cpus", "pids"):
            equal(value["limits"][limit]["by"], "cgroup", f"{limit} ({value['warnings']}) is held by")
        equal(value["warnings"], [], "warnings")
        with open(f"/proc/{main_pid()}/status", encoding="ascii") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        true(status["Uid"].split()[0] != "0", "the service runs as root")
        equal(status["CapEff"].strip("0"), "", "its capabilities")
        equal(status["NoNewPrivs"], "1", "no_new_privs")
        equal(int(systemctl("show", "-P", "NRestarts", "cejail.service")), 0, "restarts")


@test("a run that exceeds its memory limit ends as oom, and the service goes on", who="machine root", limit=180)
def _():
    with Service():
        value = post(py("b = bytearray(400 << 20)", memory="64M"))
        equal(value["status"], "oom", "status")
        equal(post(py("print(2)"))["stdout"]["text"], "2\n", "the next run")
        equal(int(systemctl("show", "-P", "NRestarts", "cejail.service")), 0, "restarts")


@test("systemctl stop waits for what runs, longer than TimeoutStopSec=, and its caller gets the result", who="machine root", limit=180)
def _():
    with Service(config={"drain": f"{60 * SLOW:.0f}s"}, drop_in=f"TimeoutStopSec={SLOW:.0f}\n"):
        post(py("pass"))
        caller = post_later(py(f"import time; time.sleep({2.5 * SLOW}); print('done')", timeout=f"{60 * SLOW:.0f}s"))
        wait_for_run()
        cgroup = service_cgroup()
        systemctl("stop", "cejail.service")
        value = answer_of(caller)
        true(isinstance(value, dict) and value["status"] == "exited", f"the answer is {value!r}")
        equal(processes_in(cgroup), [], "processes")


@test("a run that exceeds the drain time is cancelled, and its caller gets the result", who="machine root", limit=180)
def _():
    with Service(config={"drain": "1s"}):
        post(py("pass"))
        caller = post_later(py("import time; time.sleep(1000)", timeout="2000s"))
        wait_for_run()
        systemctl("stop", "cejail.service")
        value = answer_of(caller)
        true(isinstance(value, dict) and value["status"] == "cancelled", f"the answer is {value!r}")


@test("a service that hangs is killed by the watchdog with all it ran, and comes again", who="machine root", limit=240)
def _():
    with Service(drop_in=f"WatchdogSec={int(3 + SLOW)}\n"):
        post(py("pass"))
        caller = post_later(py("import time; time.sleep(1000)", timeout="2000s"))
        wait_for_run()
        first = main_pid()
        os.kill(first, signal.SIGSTOP)
        wait_until(lambda: main_pid() not in (0, first), "systemd to start it anew", 60)
        caller.communicate(timeout=30 * SLOW)
        equal(post(py("print(3)"))["stdout"]["text"], "3\n", "the next run")
        only_ours(service_cgroup())


@test("a crash of the service ends its jails; started again, it sweeps what they left", who="machine root", limit=240)
def _():
    with Service():
        post(py("pass"))
        callers = [post_later(py("import time; time.sleep(1000)", timeout="2000s")) for _ in range(3)]
        wait_for_run(3)
        first = main_pid()
        os.kill(first, signal.SIGKILL)
        for caller in callers:
            caller.communicate(timeout=30 * SLOW)
        wait_until(lambda: main_pid() not in (0, first), "systemd to start it anew", 60)
        equal(post(py("print(4)"))["stdout"]["text"], "4\n", "the next run")
        only_ours(service_cgroup())


def sleepers(cgroup):
    found = []
    for pid in processes_in(cgroup):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"sleep(1000)" in file.read() or os.path.exists(f"/proc/{pid}/root/box/main.py"):
                    found.append(pid)
        except OSError:
            pass
    return found


def only_ours(cgroup):
    """No program of a caller is left in the service's cgroup."""
    wait_until(lambda: not sleepers(cgroup), "the jails of before to be gone", 10)
    _, text = curl(path="/v1/runs")
    equal([run for run in json.loads(text)["runs"] if run["state"] != "finished"], [], "runs that go on")


@test("systemctl reload takes a new configuration, and keeps the old one when the new one is bad", who="machine root", limit=180)
def _():
    with Service(config={"callers": {"default": {"memory": "64M", "host_paths": False}, "uid:0": {"memory": "64M"}}}):
        equal(curl("-d", json.dumps(py("pass", memory="128M")))[0], 403, "above the ceiling")
        wait_until(lambda: state() == "active", "systemd to receive that it is ready", 20)
        write_config('{"callers": {"uid:0": {"memory": "nonsense"}}}')
        before = main_pid()
        done = subprocess.run(["systemctl", "reload", "cejail.service"], capture_output=True, text=True, check=False)
        true(done.returncode != 0 and "failed" in done.stderr, f"the reload of a bad file ends with {done}")
        wait_until(lambda: "nonsense" in journal(), "the journal to have the reason", 20)
        equal((curl("-d", json.dumps(py("pass", memory="128M")))[0], main_pid()), (403, before), "with a bad file")
        wait_until(lambda: state() == "active", "systemd to receive that it goes on", 20)
        write_config({"callers": {"uid:0": {"memory": "256M"}}})
        systemctl("reload", "cejail.service")
        wait_until(lambda: curl("-d", json.dumps(py("pass", memory="128M")))[0] == 200, "the new ceiling", 20)


@test("a configuration that can't work keeps the service from starting, and says where it is wrong", who="machine root", limit=120)
def _():
    with Service(config='{"concurency": 2}', drop_in="Restart=no\n"):
        done = subprocess.run(["systemctl", "start", "cejail.service"], capture_output=True, text=True, check=False)
        true(done.returncode != 0, "systemctl start says that it works")
        true(state() != "active", "the service runs")
        words = ("serve.json:1:", "concurency")
        wait_until(lambda: all(word in journal() for word in words), f"{words} in the journal", 20)


@test("a restart with a bad configuration keeps the socket, and the caller that waits is served once it is mended", who="machine root", limit=240)
def _():
    with Service():
        post(py("pass"))
        write_config('{"concurency": 2}')
        done = subprocess.run(["systemctl", "restart", "cejail.service"], capture_output=True, text=True, check=False)
        true(done.returncode != 0, "systemctl restart says that it works")
        caller = post_later(py("print(7)"))

        def tries():
            return int(systemctl("show", "-P", "NRestarts", "cejail.service"))

        wait_until(lambda: tries() >= 7, "more tries than systemd's usual limit", 60)
        equal(systemctl("is-active", "cejail.socket", check=False), "active", "the socket")
        write_config({})
        value = answer_of(caller)
        true(isinstance(value, dict) and value["stdout"]["text"] == "7\n", f"the answer is {value!r}")


@test("the audit is in the journal, with fields of its own", who="machine root", limit=120)
def _():
    with Service(config={"audit": {"journal": True}}):
        value = post(py("print('not for the log')"))
        def entries():
            found = subprocess.run(["journalctl", f"CEJAIL_RUN_ID={value['id']}", "-o", "json"],
                                   capture_output=True, text=True, check=False).stdout.splitlines()  # fmt: skip
            return [json.loads(line) for line in found] if len(found) >= 2 else None

        seen = wait_until(entries, "two entries", 20)
        equal(seen[-1]["CEJAIL_STATUS"], "exited", "the last one's status")
        equal(seen[0]["CEJAIL_PROFILE"], "python", "its profile")
        lacks(json.dumps(seen), "not for the log", "the journal")


# --- a user's service ------------------------------------------------------------------------------


@test("as a user's service: activation, delegated limits, and nothing left when it stops", who="machine user", limit=180)
def _():
    socket = f"{os.environ.get('XDG_RUNTIME_DIR', f'/run/user/{os.geteuid()}')}/cejail/api.sock"
    systemctl("daemon-reload", user=True)
    systemctl("start", "cejail.socket", user=True)
    try:
        value = post(py("print(5)"), socket=socket)
        equal((value["status"], value["stdout"]["text"]), ("exited", "5\n"), "status and output")
        for limit in ("memory", "cpus", "pids"):
            equal(value["limits"][limit]["by"], "cgroup", f"{limit} ({value['warnings']}) is held by")
        wait_until(lambda: state(user=True) == "active", "systemd to receive that it is ready", 20)
        own = systemctl("show", "-P", "ControlGroup", "cejail.service", user=True)
        true(os.path.isdir(f"/sys/fs/cgroup{own}/cejail-supervisor"), f"jails are not below '{own}': {os.listdir('/sys/fs/cgroup' + own)}")
        equal(run("--remote", socket, "-p", "python", "-c", "print(6)").out, "6\n", "output by --remote")
    finally:
        systemctl("stop", "cejail.socket", "cejail.service", user=True, check=False)
    wait_until(lambda: not os.path.exists(socket), f"the end of '{socket}'", 10)
