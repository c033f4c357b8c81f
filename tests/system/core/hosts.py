# SPDX-License-Identifier: Apache-2.0
"""Hosts that refuse something: containers with the default filter of their engine, sandboxes, a chroot, a terminal."""

import fcntl
import pty
import shutil
import struct
import subprocess
import termios

from harness import *  # noqa: F403
from outer_filter import refuse

CALLS = {"clone3": 435, "mount_setattr": 442, "sethostname": 170}  # x86-64


def checks_of(done):
    return {check["name"]: check for check in json.loads(done.out)["checks"]}


def outside(*words):
    """Cejail's doctor, started by these words; skipped where they themselves can't work."""
    if shutil.which(words[0]) is None:
        raise Skip(f"no '{words[0]}'")
    if subprocess.run([*words, "true"], capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode != 0:
        raise Skip(f"'{words[0]}' can't do this here")
    done = subprocess.run([*words, CEJAIL, "doctor", "--json"], capture_output=True, check=False, stdin=subprocess.DEVNULL, env=environment())
    return json.loads(done.stdout)


@test("where an outer filter hides a call, the error says so and names 'cejail doctor', which has the remedy")
def _():
    for name in ("clone3", "mount_setattr"):
        hidden = refuse({CALLS[name]: errno.ENOSYS})
        refused(sh("true", preexec_fn=hidden), "Function not implemented", "an outer seccomp filter", "'cejail doctor'")
        done = cejail("doctor", "--json", preexec_fn=hidden, limit=60).exits(125)
        contains(checks_of(done)["kernel"]["text"], f"{name}(2) is blocked by an outer seccomp filter", "the check of the kernel")
        contains(checks_of(done)["kernel"]["remedy"], "seccomp", "its remedy")


@test("a host name that can't be set is a warning, --strict refuses it, and doctor has the remedy")
def _():
    hidden = refuse({CALLS["sethostname"]: errno.EPERM})
    done = run("-p", "base", "--network", "none", "--json", "--", "uname", "-n", preexec_fn=hidden)
    value = parse_result(done.out, done)
    equal((value["status"], value["exit_code"]), ("exited", 0), "status and exit code")
    warning = next((w for w in value["warnings"] if w.startswith("hostname: ")), "")
    contains(warning, "set 'cejail': Operation not permitted", "the warning")
    contains(done.err, "hostname", "standard error")
    refused(sh("true", "--strict", "--network", "none", preexec_fn=hidden), "--strict")
    checks = checks_of(cejail("doctor", "--json", preexec_fn=hidden, limit=60).exits(1))
    equal(checks["host name"]["level"], "weaker", "the level of the host name")
    contains(checks["host name"]["remedy"], "seccomp", "its remedy")
    equal(checks_of(cejail("doctor", "--json", limit=60))["host name"]["level"], "ok", "without the filter")


@test("in a chroot, doctor names the chroot to root, whose root directory may be a mount point or lack /proc", who="root")
def _():
    with Folder() as f:
        for mount, has_proc in (("--rbind", True), ("--bind", False)):
            script = f'mount {mount} / {f.path} && exec chroot {f.path} "$@"'
            value = outside("unshare", "-m", "sh", "-c", script, "sh")
            checks = {check["name"]: check for check in value["checks"]}
            contains(checks["user namespaces"]["text"], "this is a chroot", f"{mount}: the text")
            contains(checks["user namespaces"]["remedy"], "outside of the chroot", f"{mount}: the remedy")
            if not has_proc:
                equal(checks["/proc"]["text"], "is not mounted", "the text of /proc")
                contains(checks["/proc"]["remedy"], "mount -t proc", "the remedy of /proc")


if shutil.which("bwrap"):  # not on the test machine

    @test("below bwrap --disable-userns doctor names the sandbox, and no sysctl, which can't help there")
    def _():
        value = outside("bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/")
        check = next(check for check in value["checks"] if check["name"] == "user namespaces")
        contains(check["text"], "a sandbox around cejail allows no more user namespaces", "the text")
        lacks(check["remedy"], "sysctl", "the remedy")


def on_terminal(columns, **more):
    """What doctor prints on a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        process = start("doctor", stdout=slave, env=environment(**more))
        os.close(slave)
        text = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # EIO: no process has the other end
                break
            if not chunk:
                break
            text += chunk
        finish(process, 60)
        return text.decode()
    finally:
        os.close(master)


@test("doctor prints levels in colours on a terminal alone, without NO_COLOR, and wraps texts to its width")
def _():
    seen = on_terminal(72, TERM="xterm")
    contains(seen, "\033[32mok     \033[0m  ", "on a terminal")
    for more in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}, {}):
        lacks(on_terminal(72, **more), "\033", f"with {more}")
    plain = re.sub("\033\\[[0-9;]*m", "", seen)
    long = [line for line in plain.splitlines()[:-1] if len(line) > 72 and "-> " not in line and " " in line[29:].strip()]
    equal(long, [], "lines that could be broken")
    piped = cejail("doctor", limit=60, env=environment(TERM="xterm")).out
    lacks(piped, "\033", "in a pipe")
    remedies = [line.strip() for line in piped.splitlines() if line.lstrip().startswith("-> ") and "-> as for '" not in line]
    equal(len(set(remedies)), len(remedies), "each remedy once")
