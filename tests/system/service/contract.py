# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI file, and the schemas beside it, against what the service answers."""

import json
import os

from harness import *  # noqa: F403
from harness import SCHEMAS


def schema_of(name):
    with open(os.path.join(SCHEMAS, name), encoding="utf-8") as file:
        return json.load(file)


def check_with_refs(value, name_or_schema):
    """Against a schema that refers to others beside it."""
    try:
        import jsonschema
    except ImportError as missing:
        raise Skip("python3-jsonschema is not installed") from missing
    store = {f"file:///{name}": schema_of(name) for name in os.listdir(SCHEMAS)}
    schema = schema_of(name_or_schema) if isinstance(name_or_schema, str) else name_or_schema
    base = name_or_schema if isinstance(name_or_schema, str) else "openapi.json"
    resolver = jsonschema.RefResolver(f"file:///{base}", schema, store=store)
    problems = list(jsonschema.Draft202012Validator(schema, resolver=resolver).iter_errors(value))
    if problems:
        raise Failure(f"not as the schema says: {[(list(p.absolute_path), p.message[:300]) for p in problems[:3]]}")


class Contract:
    """The OpenAPI file; every (route, method, status, code) that was seen is crossed off."""

    def __init__(self, keeps=lambda path: True):
        self.api = schema_of("openapi.json")
        self.api["paths"] = {path: item for path, item in self.api["paths"].items() if keeps(path)}
        self.seen = set()

    def operation(self, method, path):
        parts = path.split("?")[0].split("/")
        for pattern, item in self.api["paths"].items():
            wanted = pattern.split("/")
            if len(wanted) == len(parts) and all(w == p or w.startswith("{") for w, p in zip(wanted, parts)):
                return pattern, item.get(method.lower())
        return None, None

    def check(self, method, path, reply):
        pattern, operation = self.operation(method, path)
        if operation is None:
            true(reply.status in (403, 404, 405), f"{method} {path} is in no document and answers {reply!r}")
            return reply
        answer = operation["responses"].get(str(reply.status))
        true(answer, f"{method} {path}: the status {reply.status} is in no document: {reply!r}")
        for name, header in answer.get("headers", {}).items():
            if "$ref" in header:
                header = self.api["components"]["headers"][header["$ref"].split("/")[-1]]
            value = reply.headers[name]
            true(value is not None or not header.get("required"), f"{method} {path} {reply.status} lacks {name}")
            if value is not None:
                check_with_refs(value, header["schema"])
        kind = (reply.headers["Content-Type"] or "").split(";")[0]
        content, lines = answer.get("content", {}).get(kind), answer.get("x-lines", {}).get(kind)
        true(content or lines or (reply.status == 204 and reply.body == b""), f"{method} {path} {reply.status}: the type {kind!r} is in no document")
        code = None
        for line in reply.lines if lines else []:
            check_with_refs(line, lines)
        if kind == "application/json":
            check_with_refs(reply.json, content["schema"])
            code = reply.json.get("error", {}).get("code") if reply.status >= 400 else None
        if "x-codes" in answer:
            true(code in answer["x-codes"], f"{method} {path} {reply.status}: the code {code} is in no document")
        self.seen.add((pattern, method, reply.status, code if "x-codes" in answer else None))
        return reply

    def missing(self):
        wanted = set()
        for pattern, item in self.api["paths"].items():
            for method, operation in item.items():
                for status, answer in operation["responses"].items():
                    for code in answer.get("x-codes", [None]):
                        wanted.add((pattern, method.upper(), int(status), code))
        return wanted - self.seen
