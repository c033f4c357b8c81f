#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
check-config - profiles/schema/serve.json against the examples of configs.json.

test_service_config.c reads the same examples with the reader: so the two agree.
"""

import json
import pathlib
import sys

import jsonschema

TOP = pathlib.Path(__file__).resolve().parents[2]


def main():
    schema = json.loads((TOP / "profiles/schema/serve.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    examples = json.loads((TOP / "tests/serve/configs.json").read_text())
    failures = 0
    for kind in ("good", "bad"):
        wrong = [value for value in examples[kind] if validator.is_valid(value) != (kind == "good")]
        failures += len(wrong)
        verdict = "FAIL" if wrong else "pass"
        print(f"{verdict} schema: serve.json {'takes' if kind == 'good' else 'refuses'} every {kind} example")
        for value in wrong:
            print(f"     {json.dumps(value)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
