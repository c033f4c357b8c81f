#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
check-schemas - the JSON Schemas against what they describe.

    tests/documents/check-schemas.py [--cejail PROGRAM] [RESULT.json...]

Without arguments: the schemas are valid, the shipped profiles and the examples below and in
tests/service/requests.json that should pass do, and those that should not do not.  With --cejail, also what
`cejail profile show` prints, and that the reader agrees with the schema about every
example.  Files named are checked as results (one object per file, or one per line).
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import jsonschema

TOP = pathlib.Path(__file__).resolve().parents[2]
PROFILES = TOP / "profiles"

# Profiles that both the schema and the reader take ...
GOOD = [
    {},
    {"extends": "base", "memory": 67108864, "pids": "7", "cpus": 0.5},
    {"memory": "64M", "disk": "1GiB", "max_output": "100k", "cpus": "2", "nofile": 16},
    {"timeout": "500ms", "cpu_time": 1.5},
    {"command": ["sh", "-c", "true", "{file}", "{args}", ""], "shell": ["sh"]},
    {"command": ["{interpreter}", "sh", "{file}", "{args}"]},
    {"env": {"A": "", "_b2": "x=y\n"}, "extensions": [".tar.gz"], "file_name": "a-b.c"},
    {"network": "none"},
    {"warm": {"launcher": "python", "preload": ["json", "os.path"]}},
    {"warm": {"launcher": "none"}},
    {"warm": {"zygote": False}},
    {"network": {"mode": "public", "allow": ["example.org:443"]}},
    {"network": {"mode": "public", "deny": ["*.example.org", "10.0.0.0/8", "[2001:db8::1]:53"]}},
    {"network": {"mode": "none", "uplink": "slirp4netns"}},
    {"network": {"mode": "public", "start": "early"}},
    {"network": {"start": "first-use"}},
    {"network": {"uplink": "pasta", "allow": ["10.0.0.0/8", "[2001:db8::1]:53"], "allow_private": True}},
    {"connect": ["tcp:127.0.0.1:8080"]},
    {"upstream": ["model=https://api.example.com", "b-2=http://h:80,header=X-Key:@/k,path=/v1/,requests=5,bytes=1M"]},
    {"file": ["a:b"], "ro_bind": ["/usr"], "bind": ["/a:/b"], "connect": ["unix:/run/x"]},
    {"overlay": ["/a:/b"], "artifact_path": ["/b/c", "d"]},
    {"$schema": "/usr/local/share/cejail/profiles/schema/profile.json", "accept_weaker": ["limits", "network"]},
    {"workdir": "/a", "rootfs": "/a:/b", "writable": True, "noexec": False, "strict": True},
    {"interactive": True, "tty": True, "on_output_limit": "kill", "seccomp": "x.json"},
    {"cgroup_parent": "/sys/fs/cgroup/x", "description": "\u00e9"},
    {"audit": "required"},
    {"hostname": "build-1.example"},
    {"tmpfs": ["/data", "/a/b:16M"]},
]

# ... and profiles that both refuse.
BAD = [
    [],
    {"memroy": "64M"},
    {"warm": "python"},
    {"warm": {"launcher": "perl"}},
    {"warm": {"zygote": "no"}},
    {"warm": {"preload": ["-i"]}},
    {"warm": {"preload": [""]}},
    {"warm.launcher": "python"},
    {"network.mode": "none"},
    {"id": "x"},
    {"json": True},
    {"hostname": "a_b"},
    {"tmpfs": "/data"},
    {"tmpfs": ["data"]},
    {"tmpfs": [""]},
    {"hostname": "-a"},
    {"hostname": ""},
    {"hostname": "a..b"},
    {"hostname": "a" * 65},
    {"memory": True},
    {"memory": ""},
    {"memory": "1.5G"},
    {"memory": "64X"},
    {"memory": -1},
    {"pids": 0},
    {"pids": 1.5},
    {"cpus": 0},
    {"cpus": 2000},
    {"timeout": "10 s"},
    {"timeout": "1.2345678s"},
    {"timeout": 0},
    {"writable": "yes"},
    {"command": "sh"},
    {"command": ["sh", "x{file}"]},
    {"command": ["{args}{file}"]},
    {"command": ["x{interpreter}", "sh", "{file}"]},
    {"command": ["sh", "{interpreter}", "{file}"]},
    {"env": ["A=1"]},
    {"env": {"1A": ""}},
    {"env": {"A": 1}},
    {"extends": "./base.json"},
    {"extends": "Base"},
    {"extensions": ["py"]},
    {"extensions": ["./x"]},
    {"file_name": "../x"},
    {"file_name": "-x"},
    {"network": "bridge"},
    {"network": {"mode": "none", "ports": []}},
    {"network": {"uplink": "bridge"}},
    {"network": {"start": "late"}},
    {"network": {"start": True}},
    {"network": {"allow": "example.org"}},
    {"network": {"allow": [""]}},
    {"network": {"allow": ["https://example.org/"]}},
    {"network": {"allow": ["*.example.org"]}},
    {"network": {"allow": ["a b"]}},
    {"network": {"deny": "example.org"}},
    {"network": {"deny": ["https://example.org/"]}},
    {"network": {"allow_private": "yes"}},
    {"network": {"allow-private": True}},
    {"on_output_limit": "pause"},
    {"workdir": "box"},
    {"$schema": 1},
    {"accept_weaker": ["luck"]},
    {"connect": ["/run/x"]},
    {"upstream": ["https://h"]},
    {"upstream": ["model=h"]},
    {"file": [""]},
    {"description": ""},
    {"audit": True},
    {"audit": "off"},
]

failures = 0


def check(good, name, problem=""):
    """One line for each claim; the problem only where there is one."""
    global failures
    if not good:
        failures += 1
    print(f"{'pass' if good else 'FAIL'} schema: {name}{'' if good else ': ' + problem}")


def validator(name):
    schema = json.loads((PROFILES / "schema" / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def references(value):
    """Every "$ref" in a schema, however deep."""
    if isinstance(value, dict):
        yield from (text for key, text in value.items() if key == "$ref" and isinstance(text, str))
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from references(inner)


def check_all():
    """Each file is a schema, or the OpenAPI file, and what it refers to is there."""
    files = {path.stem: json.loads(path.read_text()) for path in sorted((PROFILES / "schema").glob("*.json"))}
    known = {f"{name}.json" for name in files} | {schema.get("$id") for schema in files.values()}
    for name, schema in files.items():
        if name != "openapi":
            validator(name)
            check(schema.get("$id") == f"{name}.json", f"'{name}' has its file's name as $id", f"it is {schema.get('$id')}")
        lost = [ref for ref in references(schema) if not ref.startswith("#") and ref.split("#")[0] not in known]
        check(not lost, f"what '{name}' refers to is there", ", ".join(lost))


LOAD_ALL = """
const Ajv = require("ajv/dist/2020").default, fs = require("fs");
const ajv = new Ajv({strict: false, logger: false});
require("ajv-formats")(ajv);
const names = fs.readdirSync(process.argv[1]).filter(name => name !== "openapi.json");
const schemas = names.map(name => JSON.parse(fs.readFileSync(`${process.argv[1]}/${name}`)));
ajv.addSchema(schemas);
for (const schema of schemas) ajv.getSchema(schema.$id)({});
console.log(schemas.length);
"""


def check_ajv():
    """ajv, which editors and services use, resolves references by $id."""
    packages = PROFILES.parent / "build/packages"
    if not (packages / "node_modules/ajv").exists() or shutil.which("node") is None:
        print("skip schema: ajv loads all schemas together (no ajv in build/packages: tests/packages)")
        return
    done = subprocess.run(["node", "-e", LOAD_ALL, PROFILES / "schema"], cwd=packages, capture_output=True, text=True, check=False)
    check(done.returncode == 0 and int(done.stdout) > 10, "ajv loads all schemas together", done.stderr[-400:])


def problem_of(schema, value):
    """The first error, with its place; None when there is none."""
    for error in schema.iter_errors(value):
        return f"{error.json_path}: {error.message[:200]}"
    return None


def check_valid(schema, value, name):
    problem = problem_of(schema, value)
    check(problem is None, name, problem or "")


def check_profiles(schema):
    for path in sorted(PROFILES.glob("*.json")):
        check_valid(schema, json.loads(path.read_text()), f"profile '{path.stem}' is valid")
    for value in GOOD:
        check_valid(schema, value, f"valid: {json.dumps(value)}")
    for value in BAD:
        check(problem_of(schema, value) is not None, f"not valid: {json.dumps(value)}", "taken")


def without_words(value):
    """What a schema takes: a request's description may have more to say."""
    if isinstance(value, dict):
        return {key: without_words(inner) for key, inner in value.items() if key != "description"}
    return [without_words(inner) for inner in value] if isinstance(value, list) else value


def check_requests(schema, profile):
    """Examples, which the reader's test takes and refuses, too; settings are as in a profile."""
    examples = json.loads((TOP / "tests/service/requests.json").read_text())
    for value in examples["good"]:
        check_valid(schema, value, f"a request: {json.dumps(value)}")
    for value in examples["bad"]:
        check(problem_of(schema, value) is not None, f"no request: {json.dumps(value)}", "taken")
    for part in ("properties", "$defs"):
        one, other = schema.schema[part], profile.schema[part]
        for name in one.keys() & other.keys() - {"command", "seccomp"}:
            check(without_words(one[name]) == without_words(other[name]), f"'{name}' is the same in request and profile", "it is not")


def show(cejail, name):
    return subprocess.run([cejail, "profile", "show", name], capture_output=True, text=True)


def check_reader(schema, cejail):
    """What the program prints and takes is what the schema says."""
    for path in sorted(PROFILES.glob("*.json")):
        shown = show(cejail, path.stem)
        check(shown.returncode == 0, f"'{path.stem}' can be shown", shown.stderr.strip())
        if shown.returncode == 0:
            check_valid(schema, json.loads(shown.stdout), f"'{path.stem}' as shown is valid")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "example.json"
        for value, taken in [(v, True) for v in GOOD] + [(v, False) for v in BAD]:
            path.write_text(json.dumps(value))
            shown = show(cejail, str(path))
            check((shown.returncode == 0) == taken,
                  f"the reader {'takes' if taken else 'refuses'} {json.dumps(value)}",
                  shown.stderr.strip())


def results_in(path):
    """One object, or one a line: the last event of an --events-fd stream is the result."""
    text = pathlib.Path(path).read_text()
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def main():
    parser = argparse.ArgumentParser(description="check the schemas, the profiles, results")
    parser.add_argument("--cejail", help="the program, to compare it with the schema")
    parser.add_argument("results", nargs="*", help="files with results")
    options = parser.parse_args()

    check_all()
    check_ajv()
    profile, result = validator("profile"), validator("result")
    check_profiles(profile)
    check_requests(validator("request"), profile)
    if options.cejail:
        check_reader(profile, options.cejail)
    for path in options.results:
        for value in results_in(path):
            check_valid(result, value, f"{path} is a valid result")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
