# SPDX-License-Identifier: Apache-2.0
"""Real programs that users bring: what works outside works in a jail without further options."""

import os

from harness import *  # noqa: F403

HELPER = "def twice(n):\n    return 2 * n\n"


@test("a Python program of two files runs, and imports a module it has written itself")
def _():
    main = "import helper\nopen('made.py', 'w').write('VALUE = 3')\nimport made\nprint(helper.twice(made.VALUE))\n"
    with Folder() as f:
        run("-p", "python", "-f", f.file("helper.py", HELPER), f.file("main.py", main)).exits(0).says("6\n")
        f.file("package/__init__.py", "from .part import WORD\n")
        f.file("package/part.py", "WORD = 'part'\n")
        python("import package; print(package.WORD)", "-f", f / "package").exits(0).says("part\n")


@test("-e PYTHONPATH and -e PYTHONHASHSEED have their meaning for a Python program")
def _():
    with Folder() as f:
        file = f.file("helper.py", HELPER) + ":/box/lib/helper.py"
        python("import helper; print(helper.twice(4))", "-f", file, "-e", "PYTHONPATH=/box/lib").exits(0).says("8\n")
    show = "import sys; print(sys.flags.hash_randomization, hash('cejail'))"
    first, second = (python(show, "-e", "PYTHONHASHSEED=0").exits(0).out for _ in range(2))
    equal((first[:2], first), ("0 ", second), "hashes with a fixed seed")


@test("what a user installed below HOME is no part of a Python program's path")
def _():
    code = "import site, sys; print(site.ENABLE_USER_SITE, sys.flags.dont_write_bytecode)"
    python(code).exits(0).says("False 1\n")
