#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs code from a program by `cejail run --json`, and acts on the status:

    python3 tools/examples/run.py

It needs cejail in PATH.
"""

import json
import subprocess


def run_python(code, **data):
    """Run Python code without a network.  The code finds `data` in args.json; the result is a dict."""
    command = [
        "cejail", "run", "--json", "--quiet", "--no-report", "--network", "none", "--profile", "python",
        "--timeout", "10s", "--memory", "128M", "--max-output", "64K", "--args-json", json.dumps(data), "-",
    ]  # fmt: skip
    done = subprocess.run(command, input=code, stdout=subprocess.PIPE, text=True, check=False)
    result = json.loads(done.stdout)
    if result["status"] == "setup_error":  # cejail failed, not the program
        raise RuntimeError(f"{result['error']['stage']}: {result['error']['message']}")
    return result


def describe(result):
    """How the run ended, in a sentence.  Never decide by the exit status: a program chooses its own."""
    text = result["stdout"].get("text", "(not text)").strip()
    if result["status"] == "exited" and result["exit_code"] == 0:
        return f"it printed {text!r}"
    if result["status"] == "exited":
        return f"it failed: {result['stderr'].get('text', '').strip().splitlines()[-1]}"
    if result["status"] == "timeout":
        return f"it took too long and had printed {text!r}"
    if result["status"] == "oom":
        return "it wanted too much memory"
    return f"it ended by {result['status']}"


PROGRAMS = {
    "a good program": "import json; print(json.load(open('args.json'))['n'] ** 2)",
    "a faulty one": "1 / 0",
    "an endless one": "print('working', flush=True)\nwhile True: pass",
    "a greedy one": "import time; x = bytearray(1 << 30); time.sleep(1)",
    "a curious one": "import os; print(sorted(os.listdir('/home')))",
}

for name, code in PROGRAMS.items():
    print(f"{name}: {describe(run_python(code, n=12))}")
