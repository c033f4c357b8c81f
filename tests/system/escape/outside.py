# SPDX-License-Identifier: Apache-2.0
"""Is there a place without a jail where attempts can be made and do no harm?"""

import functools
import subprocess

from harness import WHO

NO_PLACE = "this host lets its users make no namespaces of their own, but by programs it has listed"


@functools.cache
def has_place():
    """As unshare(1) sees it, which is none of ours."""
    words = ["unshare", "-Urmpf", "--mount-proc", "true"]
    return WHO == "root" or subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
