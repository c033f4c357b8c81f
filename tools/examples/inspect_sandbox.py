#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions of cejail as sandboxes of Inspect, the evaluation framework: one for each sample.

    import inspect_sandbox                      # registers "cejail"
    Task(dataset, solver=..., sandbox="cejail")
    Task(dataset, solver=..., sandbox=("cejail", "session.json"))

The file has the keywords of cejail.AsyncClient.session(): {"profile": "python-data", "memory": "2G", "network": "none"},
and "socket" or "url" and "token" of a service.  Run as a program, it shows its members:
python3 tools/examples/inspect_sandbox.py [SOCKET]
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/python"))
import cejail  # noqa: E402

try:
    from inspect_ai.util import ExecResult, OutputLimitExceededError, SandboxEnvironment, sandboxenv
except ImportError:  # without the framework: classes with the same members
    SandboxEnvironment = object

    def sandboxenv(name):
        return lambda cls: cls

    @dataclass
    class ExecResult:
        success: bool
        returncode: int
        stdout: str
        stderr: str

    class OutputLimitExceededError(Exception):
        def __init__(self, limit_str, truncated_output=None):
            super().__init__(f"the limit of {limit_str} was exceeded")
            self.limit_str, self.truncated_output = limit_str, truncated_output


HOME = "/box"
LEASE = "1h"  # each exec renews it


def file_error(problem, file):
    kinds = {"not_found": FileNotFoundError, "forbidden_file": PermissionError, "not_regular": IsADirectoryError}
    if problem.code == "too_large":
        return OutputLimitExceededError("the service's file_max", None)
    return kinds[problem.code](f"{file}: {problem.message}") if problem.code in kinds else problem


@sandboxenv(name="cejail")
class CejailSandbox(SandboxEnvironment):
    def __init__(self, session):
        self.session = session

    @classmethod
    def config_files(cls):
        return ["session.json"]

    @classmethod
    async def sample_init(cls, task_name, config, metadata):
        settings = {}
        if isinstance(config, str):
            with open(config, encoding="utf-8") as file:
                settings = json.load(file)
        where = {key: settings.pop(key) for key in ("socket", "url", "token") if key in settings}
        return {"default": cls(await cejail.AsyncClient(**where).session(**{"lease": LEASE, **settings}))}

    @classmethod
    async def sample_cleanup(cls, task_name, config, environments, interrupted):
        for environment in environments.values():
            await environment.session.end()

    async def exec(self, cmd, input=None, cwd=None, env=None, user=None, timeout=None, **_):
        if user is not None:
            raise PermissionError("a jail of cejail has one user")
        await self.session.lease(LEASE)
        limit = {"timeout": f"{timeout}s"} if timeout else {}
        result = await self.session.exec(command=list(cmd), stdin=input, env=dict(env) if env else None,
                                         workdir=os.path.join(HOME, cwd) if cwd else None, max_output="1M", **limit)  # fmt: skip
        if result.status == "timeout":
            raise TimeoutError(f"the command did not end within {timeout} s")
        if result.truncated:
            raise OutputLimitExceededError("1 MiB", result.stdout + result.stderr)
        if result.exit_code == 126 and result.raw["error"]:
            raise PermissionError(result.raw["error"]["message"])
        code = result.exit_code if result.status == "exited" else 128 + (result.signal or 9)
        return ExecResult(code == 0, code, result.stdout_bytes.decode(), result.stderr_bytes.decode())

    async def write_file(self, file, contents):
        try:
            await self.session.put(file, contents)
        except cejail.Error as problem:
            raise file_error(problem, file) from problem

    async def read_file(self, file, text=True):
        try:
            contents = await self.session.get(file)
        except cejail.Error as problem:
            raise file_error(problem, file) from problem
        return contents.decode() if text else contents


async def main():
    client = cejail.AsyncClient(sys.argv[1] if len(sys.argv) > 1 else None)
    async with client.session(network="none") as session:
        sandbox = CejailSandbox(session)
        await sandbox.write_file("data/a.txt", "one\ntwo\n")
        print("executed", await sandbox.exec(["sort", "-r", "a.txt"], cwd="data"))
        print("read", repr(await sandbox.read_file("data/a.txt")), await sandbox.read_file("data/a.txt", text=False))
        for what in (sandbox.read_file("none"), sandbox.exec(["sleep", "60"], timeout=1)):
            try:
                await what
            except (FileNotFoundError, TimeoutError) as problem:
                print("failed", type(problem).__name__)


if __name__ == "__main__":
    asyncio.run(main())
