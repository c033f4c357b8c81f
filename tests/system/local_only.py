# SPDX-License-Identifier: Apache-2.0
"""What of these tests is only about a run that takes place here.

With CEJAIL_TEST_REMOTE every `run` is a service's.  A row: subject, a part of the sentence, and why
such a run can't be asked that; it is skipped with the reason, which is no failure.
"""

ROWS = (
    ("basics", "--dry-run prints", "the plan is the service's"),
    ("inputs", "copies a directory with all below it", "symbolic links can't be sent to a service, and are refused"),
    ("inputs", "--args-json lands as", "the value is sent, not its spelling"),
    ("output", "a hundred megabytes pass", "a service leaves events out for who is slow, and says so: streaming.py"),
    ("output", "a slow reader gets", "a service leaves events out for who is slow, and says so: streaming.py"),
    ("isolation", "host uid 0 is never mapped", "the program is a process below the service, not below the test"),
    ("isolation", "two jails of root have", "the program is a process below the service, not below the test"),
)


def reason(subject, sentence):
    """None: it can be asked of any run."""
    for wanted, part, why in ROWS:
        if wanted == subject and part in sentence:
            return why
    return None
