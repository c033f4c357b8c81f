# SPDX-License-Identifier: Apache-2.0
"""What makes the kernel look for a module, as its own trace has it (event module:module_request), on the test
machine alone: without a jail the sweep loads modules."""

import contextlib
import ctypes
import os
import subprocess

from harness import *  # noqa: F403

SWEEP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sweep.py")
NAME = "sweep:"  # the sweep calls its process so, and what it tries


LIBC = ctypes.CDLL(None, use_errno=True)
FSOPEN, FSCONFIG, FSMOUNT = 430, 431, 432
CLOEXEC, CREATE = 1, 6


def call(number, *arguments):
    value = LIBC.syscall(number, *arguments)
    if value < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return value


def open_tracefs():
    """Not attached anywhere: the tests of other places run beside this one, and look for mounts that are left."""
    context = call(FSOPEN, b"tracefs", CLOEXEC)
    try:
        call(FSCONFIG, context, CREATE, None, None, 0)
        return call(FSMOUNT, context, CLOEXEC, 0)
    finally:
        os.close(context)


@contextlib.contextmanager
def trace():
    """A function that gives the modules that a sweep has asked for until now, each with what it tried."""
    tracefs = open_tracefs()
    instance = f"/proc/self/fd/{tracefs}/instances/cejail-test"
    try:
        os.mkdir(instance)
        put(f"{instance}/events/module/module_request/enable", "1")
        yield lambda: asked_for(f"{instance}/trace")
    finally:
        os.rmdir(instance)
        os.close(tracefs)


def put(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def asked_for(path):
    with open(path, encoding="ascii", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip().startswith(NAME)]
    return sorted({f"{line[len(NAME):line.index('-')]} {line.split('module_request:')[1].split()[0]}" for line in lines})


def sweep(how):
    """As one program's text."""
    with open(SWEEP, encoding="utf-8") as file:
        return f"import sys\nsys.argv = ['sweep', '{how}']\n{file.read()}"


@test("no call that is allowed makes the kernel look for a module", who="machine root", limit=240)
def _():
    with trace() as asked:
        for network in ("none", "public"):
            done = run("-q", "-p", "python", "-t", scaled(200), "--network", network, "-c", sweep("all"), limit=210)
            equal(done.exits(0).out, "swept\n", f"end ({done.err})")
            equal(asked(), [], f"modules that were looked for, with the network {network}")


@test("without a jail an ordinary user's calls make the kernel look for modules", who="machine root")
def _():
    with trace() as asked:
        subprocess.run(["/usr/bin/python3", "-I", "-c", sweep("little")], user=65534, group=65534, check=True,
                       stdout=subprocess.DEVNULL, cwd="/tmp")  # fmt: skip
        equal(asked(), [f"little {name}" for name in ("bridge", "net-pf-2-proto-17", "net-pf-2-proto-17-type-1")], "modules")
