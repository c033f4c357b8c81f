#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
check-schemas - what of the service is data, against its schemas.

profiles/schema/serve.json against the examples of configs.json, which test_service_config.c reads
with the reader: so the two agree.  profiles/schema/audit.json against lines as test_audit.c checks
them, and files named as arguments.  tools/prometheus/cejail.rules.yml, its shape.
"""

import json
import pathlib
import subprocess
import sys

import jsonschema
import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]

START = {
    "schema": "cejail.audit/1", "event": "start", "time": "2026-01-02T03:04:05.678Z",
    "id": "01J9ZK5W8Q3T7V2X4Y6A8C0E1G", "caller": "uid:1000", "profile": "python",
    "profile_sha256": "a" * 64, "code_sha256": None, "code_bytes": 0, "request_sha256": "b" * 64, "tier": "cold",
    "request_id": "r-1", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}
USAGE = {"wall_ms": 1, "cpu_user_ms": 1, "cpu_system_ms": 0, "memory_peak_bytes": None, "pids_peak": 1}
END = START | {
    "event": "end", "status": "exited", "exit_code": 0, "signal": None, "error_stage": None,
    "usage": USAGE, "setup_us": 1, "stdout_bytes": 0, "stderr_bytes": 0, "artifacts": 0,
    "network_state": "unused", "denied_packets": 0, "denied_syscalls": 0,
}
NO_SESSION = {"code_sha256", "code_bytes", "tier"}
SESSION_START = {k: v for k, v in START.items() if k not in NO_SESSION} | {"event": "session_start", "context": "repl"}
SESSION_END = SESSION_START | {"event": "session_end", "reason": "oom", "execs": 3, "duration_ms": 9, "cpu_ms": 2}
CALL = {k: v for k, v in START.items() if k not in NO_SESSION} | {
    "event": "call", "session": None, "call": 7, "name": "search", "ended": "answered", "ms": 3, "arguments_bytes": 2, "arguments_sha256": "c" * 64,
}
LINES = [CALL, CALL | {"arguments": {"q": 1}}, CALL | {"call": None, "name": None, "ended": "refused", "ms": None, "arguments_bytes": None, "arguments_sha256": None}, START, END, START | {"session": "s1", "tier": "session"}, START | {"session": None}, SESSION_START, SESSION_END]
NO_LINES = [
    CALL | {"ended": "lost"}, CALL | {"arguments": "{}"}, START | {"arguments": {}}, CALL | {"tier": "cold"}, START | {"call": 7}, {k: v for k, v in CALL.items() if k != "name"},
    START | {"event": "stop"}, START | {"code": "print(1)"}, START | {"status": "exited"},
    END | {"network_state": "off"}, START | {"traceparent": ""}, END | {"usage": {}}, END | {"exit_code": -1},
    {k: v for k, v in END.items() if k != "status"}, {k: v for k, v in START.items() if k != "id"},
    {k: v for k, v in START.items() if k != "request_sha256"}, {k: v for k, v in START.items() if k != "tier"},
    SESSION_START | {"tier": "cold"}, SESSION_START | {"reason": "oom"}, SESSION_END | {"status": "exited"},
    SESSION_END | {"reason": "bored"}, {k: v for k, v in SESSION_END.items() if k != "execs"}, START | {"context": "none"},
]

failures = 0


def check(sentence, wrong):
    """One line for each claim, and below it what broke it."""
    global failures
    failures += 1 if wrong else 0
    print(f"{'FAIL' if wrong else 'pass'} schema: {sentence}")
    for value in wrong:
        print(f"     {value if isinstance(value, str) else json.dumps(value)}")


def validator(name):
    schema = json.loads((TOP / "profiles/schema" / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check_examples(name, good, bad):
    schema = validator(name)
    check(f"{name}.json takes every good example", [v for v in good if not schema.is_valid(v)])
    check(f"{name}.json refuses every bad example", [v for v in bad if schema.is_valid(v)])


def check_file(path):
    schema = validator("audit")
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line]
    check(f"{path} is an audit record", [v for v in lines if not schema.is_valid(v)])


def problems_of(rule):
    """What of an alert rule Prometheus, or who reads it, would miss."""
    wanted = {"alert", "expr", "labels", "annotations"}
    if not wanted <= set(rule) <= wanted | {"for"}:
        return ["its keys"]
    problems = [] if rule["labels"].get("severity") in ("critical", "warning", "info") else ["severity"]
    problems += [k for k in ("summary", "description") if not rule["annotations"].get(k)]
    return problems + [p for p in ("()", "{}", "[]") if rule["expr"].count(p[0]) != rule["expr"].count(p[1])]


def check_rules():
    rules = yaml.safe_load((TOP / "tools/prometheus/cejail.rules.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    wrong = [f"{r.get('alert')}: {', '.join(problems_of(r))}" for r in alerts if problems_of(r)]
    check("every alert rule is whole", wrong if alerts else ["there are none"])


def refs_of(value):
    if isinstance(value, dict):
        yield from (inner for key, inner in value.items() if key == "$ref")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from refs_of(inner)


def leads_nowhere(ref, home, files):
    """As a reader that has nothing but the files beside each other follows it."""
    name, _, pointer = ref.partition("#")
    value = files.get(name or home)
    for word in pointer.split("/")[1:]:
        word = word.replace("~1", "/").replace("~0", "~")
        value = value.get(word) if isinstance(value, dict) else None
    if name and files[home].get("$id", home) != home:
        return f"{home}: '{ref}' is relative to an $id that is not the file's name"
    return None if value is not None else f"{home}: '{ref}'"


def check_refs():
    files = {path.name: json.loads(path.read_text()) for path in (TOP / "profiles/schema").glob("*.json")}
    wrong = [leads_nowhere(ref, name, files) for name, file in files.items() for ref in refs_of(file)]
    check("every $ref of the OpenAPI file and the schemas leads to a file beside it, and into it", [w for w in wrong if w] if wrong else ["there are none"])


# The answers of a file have the type that the parameters ask for; those of MCP are in its specification.
MANY_TYPES = {("get", "/v1/sessions/{id}/files/{path}"), ("post", "/mcp")}
NO_MEMBERS = {"$defs", "$id", "$schema", "allOf"}


def bodies_of(operation, document):
    """Each status ("request": none) with the types of its body."""
    body = operation.get("requestBody", {})
    shared = document["components"]["requestBodies"].get(body.get("$ref", "").rpartition("/")[2])
    yield "request", (shared or body).get("content", {})
    yield from ((status, answer.get("content", {})) for status, answer in operation["responses"].items())


def example_problem(document, content):
    """As a linter applies it: the schema of the example resolves within the document."""
    schema = {**content["schema"], "components": document["components"]}
    return next((error.message[:200] for error in jsonschema.Draft202012Validator(schema).iter_errors(content["example"])), None)


def check_document():
    """What generators of clients and `redocly lint` need of the document that the service answers."""
    done = subprocess.run(["tools/bundle-openapi", "profiles/schema/openapi.json"], cwd=TOP, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    components = document["components"]["schemas"]
    lost = [leads_nowhere(ref, "bundle", {"bundle": document}) if ref.startswith("#/") else ref for ref in refs_of(document)]
    check("the OpenAPI document refers only to itself", [ref for ref in lost if ref] if lost else ["to nothing"])
    check("no component has a member that generators do not know", [name for name, schema in components.items() if NO_MEMBERS & set(schema)])
    rows = [
        (method, path, status, content)
        for path, item in document["paths"].items() for method, operation in item.items() for status, content in bodies_of(operation, document)
    ]  # fmt: skip
    check("the answer of an operation has one type", [row[:3] for row in rows if len(row[3]) > 1 and row[:2] not in MANY_TYPES])
    examples = [(row[:3], content) for row in rows for content in row[3].values() if "example" in content]
    wrong = [f"{place}: {example_problem(document, content)}" for place, content in examples if example_problem(document, content)]
    check("every example of the OpenAPI document is as its schema says", wrong if len(examples) > 10 else ["there are none"])


def main():
    examples = json.loads((TOP / "tests/service/configs.json").read_text())
    check_examples("serve", examples["good"], examples["bad"])
    check_examples("audit", LINES, NO_LINES)
    check_rules()
    check_refs()
    check_document()
    for path in sys.argv[1:]:
        check_file(path)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
