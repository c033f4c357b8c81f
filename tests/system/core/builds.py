# SPDX-License-Identifier: Apache-2.0
"""Source trees of others, built and tested in a jail: the results are those outside.

tests/sources fetches them.  The short form looks at the trees; the long form builds both whole in each
place.  A build outside is compared only where it is an ordinary user's, too: some of their tests depend
on not being root.
"""

import glob
import os
import re
import subprocess
import tarfile

from harness import *  # noqa: F403

SOURCES = os.environ.get("CEJAIL_SOURCES", f"{PROBES}/../sources")
# configure of some programs refuses root, and the root of a container is one outside a jail
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp", "FORCE_UNSAFE_CONFIGURE": "1"}
BUILD = "./configure -q && make -j2 && make -j2 -k check"
# The rules by which make rebuilds a tree's own build system call these.
REMADE = re.compile(r"\b(aclocal|automake|autoconf|autoheader|missing)\b.*(-1\.|--run|am--refresh)|is missing on your system")


def unpack(f, name):
    """A fresh tree of it in a folder; its path."""
    found = glob.glob(f"{SOURCES}/{name}_*.orig.tar.*z")
    if not found:
        raise Skip(f"the sources of {name} are not here: tests/sources fetches them")
    with tarfile.open(found[0]) as archive:
        archive.extractall(f.path)
    return glob.glob(f"{f.path}/{name}-*")[0]


def results(text):
    """What each test came to, and the sums: {"PASS testsuite/x.sh": 1, "TOTAL": 5, ...}"""
    rows = re.findall(r"^(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR): (\S+)", text, re.M)
    sums = re.findall(r"^# (TOTAL|PASS|SKIP|XFAIL|FAIL|XPASS|ERROR): +(\d+)", text, re.M)
    return sorted(rows), sums


def build_outside(tree):
    return subprocess.Popen(
        ["sh", "-c", BUILD], cwd=tree, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def build_inside(*options):
    named = [part for name, value in ENVIRONMENT.items() if name != "PATH" for part in ("-e", f"{name}={value}")]
    done = run("-p", "ci", "--network", "none", "--max-output", "16M", *named, *options, "--", "sh", "-c", f"exec 2>&1; {BUILD}", limit=300)
    true(not REMADE.search(done.out), f"make rebuilt the build system: {REMADE.search(done.out)!r}")
    return done


def build_both(name):
    with Folder() as outer, Folder() as inner:
        tree = unpack(inner, name)
        outside = build_outside(unpack(outer, name)) if WHO == "user" else None
        inside = build_inside("--overlay", f"{tree}:/src", "-w", "/src")
        text = outside.communicate()[0].decode(errors="replace") if outside else None
        if outside and (outside.returncode, results(text)) != (inside.code, results(inside.out)):
            raise Failure(f"outside: {outside.returncode} {results(text)}\n{text[-2000:]}\ninside: {inside.code} {results(inside.out)}\n{inside.out[-2000:]}")
        rows, sums = results(inside.out)
        true(sums and rows and inside.code == 0 and not [row for row in rows if row[0] == "FAIL"], f"{inside.code} {sums}: {inside.out[-3000:]}")
        true(not os.path.exists(f"{tree}/Makefile"), "the host's tree was built in")


if LONG:  # minutes each

    @test("GNU hello: configure, make and make check of an --overlay come to what they come to outside", limit=600)
    def _():
        build_both("hello")

    @test("GNU sed: configure, make and make check of an --overlay succeed as they do outside", limit=900)
    def _():
        build_both("sed")


@test("a tree of --file keeps the modes and times of its source, so make rebuilds nothing of its build system")
def _():
    show = "find . -printf '%P %m %T@ %l\\n' | sort"
    for name in ("hello", "sed"):
        with Folder() as f:
            tree = unpack(f, name)
            wanted = subprocess.run(["sh", "-c", show], cwd=tree, capture_output=True, check=True).stdout
            equal(run("-p", "ci", "--network", "none", "-f", f"{tree}:/box/src", "-w", "/box/src", "--", "sh", "-c", show).exits(0).raw_out, wanted, "the tree inside")


if LONG:

    @test("GNU hello of a --file tree builds and passes its tests, and make rebuilds nothing of its build system", limit=600)
    def _():
        with Folder() as f:
            build_inside("-f", f"{unpack(f, 'hello')}:/box/src", "-w", "/box/src").exits(0)
