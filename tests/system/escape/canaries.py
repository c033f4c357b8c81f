# SPDX-License-Identifier: Apache-2.0
"""Canaries of the caller's, and a program in each shipped profile that hunts for them: not one is read, changed,
reached or noticed.  Without a jail the same program finds every one (canary.py, hunter.c)."""

import json
import os
import subprocess

from canary import Canaries
from harness import *  # noqa: F403
from outside import NO_PLACE, has_place

HUNTER = f"{PROBES}/hunter"
# Namespaces of the control's own, as root in them: what it reads, kills and changes there is its own.
OF_ITS_OWN = (
    "unshare", "-Urmpinuf", "--mount-proc", "--kill-child", "/bin/sh", "-c",
    """for d in /tmp /var/tmp /dev/shm; do mount -t tmpfs none $d || exit; done
    export HOME=/tmp/home && mkdir $HOME && cat <&3 >/tmp/canary.py && cat <&4 >/tmp/hunter && chmod 755 /tmp/hunter || exit
    exec 3<&- 4<&- "$1" -B /tmp/canary.py /tmp/hunter""", "sh", PYTHON,
)  # fmt: skip
ALLOW_ALL = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}
PROFILES = ("base", "python", "python-data", "node", "shell", "ci")


def lists_of(out):
    rows = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0].isupper()]
    return {row[0]: row[1:] for row in rows if row[0] in ("PLANTED", "FOUND", "WHOLE", "TOUCHED")}


@test("without a jail the hunter finds every canary, and each one tells that it was touched")
def _():
    if not has_place():
        raise Skip(NO_PLACE)
    # by descriptor: /tmp is another there, and the tests may lie in this one
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "canary.py")
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec 3<"$1" 4<"$2"; shift 2; exec "$@"', "sh", source, HUNTER, *OF_ITS_OWN],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=100 * SLOW,
    )  # fmt: skip
    equal(done.returncode, 0, f"the control's status ({done.stderr.decode()[-800:]})")
    seen = lists_of(done.stdout.decode(errors="replace"))
    equal(sorted(set(seen["PLANTED"]) - set(seen["FOUND"])), [], "words not found")
    equal(sorted(set(seen["WHOLE"]) - set(seen["TOUCHED"])), [], "canaries not touched")
    tried(len(seen["PLANTED"]) + len(seen["WHOLE"]))


def hunt_in(profile, flock, *options):
    """Everything in sight, and by name and number all that was planted."""
    words = ["walk=/", "pids=all", *flock.goals]
    done = run(
        "-q", "--json", "-p", profile, "-t", scaled(50), "-e", f"CEJAIL_TEST_SLOW={SLOW}", *options, "-f", f"{HUNTER}:/box/hunter", "--", "/box/hunter", *words,
        cwd=flock.cwd, env=environment(**flock.environment), close_fds=False, limit=60,
    )  # fmt: skip
    text = parse_result(done.out, done)["stdout"]["text"]
    true(text.endswith("done\n"), f"the hunter didn't come to its end: {text[-300:]!r}")
    equal([line for line in text.splitlines() if line.startswith(("READ", "REACHED"))], [], f"found in {profile}")
    for kind, secret in flock.words.items():
        lacks(done.out + done.err, secret, f"{profile}: output, with the canary '{kind}'")
    equal(flock.touched(), [], f"touched from {profile}")
    tried(len(flock.words) + len(flock.checks))


def register_hunts():
    for profile in PROFILES:

        def check(profile=profile):
            with Canaries(HUNTER) as flock:
                hunt_in(profile, flock)

        test(f"in the profile {profile} a program finds, changes and reaches no canary of its caller's", limit=120)(check)


register_hunts()


@test("even with a filter that allows every call, none is found, changed or reached")
def _():
    with Folder() as f, Canaries(HUNTER) as flock:
        policy = f.file("allow.json", json.dumps(ALLOW_ALL))
        hunt_in("base", flock, "--seccomp", policy)
