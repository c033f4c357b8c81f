# SPDX-License-Identifier: Apache-2.0
"""Rows of our list of threats and what proves each: attempts of a subject here, or "SUBJECT: SENTENCE", a test that
stands elsewhere.  A row without a proof says why no program inside can try it."""

import glob
import os

from harness import Failure, true

HERE = os.path.dirname(os.path.abspath(__file__))


def sources():
    """{SUBJECT: its text} of every suite."""
    found = {}
    for path in glob.glob(os.path.join(HERE, "..", "*", "*.py")):
        with open(path, encoding="utf-8") as file:
            found[os.path.basename(path)[:-3]] = file.read()
    return found


def check_rows(rows, attempts):
    """Every row has a proof, every proof is there, and no attempt is without a row."""
    texts, used = sources(), set()
    for row, proofs in rows.items():
        true(proofs, f"'{row}' has neither proof nor reason")
        for proof in proofs if isinstance(proofs, tuple) else ():
            subject, _, sentence = proof.partition(": ")
            if proof in attempts:
                used.add(proof)
            elif not sentence or f'"{sentence}"' not in texts.get(subject, ""):
                raise Failure(f"'{row}' points to '{proof}', which is not there")
    true(used == set(attempts), f"attempts that belong to no row: {sorted(set(attempts) - used)}")
