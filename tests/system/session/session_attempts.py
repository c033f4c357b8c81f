# SPDX-License-Identifier: Apache-2.0
"""The attempts of escape/attempts.py, made by a program of a session, while another program runs."""

import glob
import os

from harness import *  # noqa: F403
from sessions import Session
from service import Service

FEWEST = 15  # attempts of one probe


def put_program(session, path):
    with open(path, "rb") as file:
        session.put(f"/box/{os.path.basename(path)}", file.read(), "?executable").has(200)


@test("no attempt at escape succeeds in a session, with another program beside it", limit=240)
def _():
    with Service() as s, Session(s) as session:
        session.start("while :; do sleep 0.1; done")
        for path in sorted(glob.glob(f"{PROBES}/attempt_*")):
            name = os.path.basename(path)
            put_program(session, path)
            value = session.sh(f"exec /box/{name}", timeout=scaled(100), max_output="1M")
            equal((value["status"], value["exit_code"]), ("exited", 0), name)
            answers = dict(line.split(" ", 1) for line in value["stdout"]["text"].splitlines())
            escaped = {attempt: said for attempt, said in answers.items() if not said.startswith("HELD (")}
            equal(escaped, {}, f"what {name} says")
            tried(len(answers))
