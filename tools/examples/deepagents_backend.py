#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A session of cejail as the sandbox of a LangChain deep agent.

    from deepagents import create_deep_agent
    from deepagents_backend import CejailBackend

    with CejailBackend(network="none") as backend:
        agent = create_deep_agent(model=..., backend=backend)

The keywords are those of cejail.Client.session(), and `client`.  The agent's files are below /box.  Run as a program,
it shows its four members: python3 tools/examples/deepagents_backend.py [SOCKET]
"""

import os
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/python"))
import cejail  # noqa: E402

try:
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox
except ImportError:  # without the framework: classes with the same members
    BaseSandbox = object

    @dataclass
    class ExecuteResponse:
        output: str
        exit_code: "int | None" = None
        truncated: bool = False

    @dataclass
    class FileUploadResponse:
        path: str
        error: "str | None" = None

    @dataclass
    class FileDownloadResponse:
        path: str
        content: "bytes | None" = None
        error: "str | None" = None


# The framework's words for the errors of a file.
FILE_ERRORS = {"not_found": "file_not_found", "forbidden_file": "permission_denied", "not_regular": "is_directory", "bad_request": "invalid_path"}


def exit_code(result):
    """As a shell has it.  None: cancelled."""
    if result.status == "exited":
        return result.exit_code
    if result.status in ("timeout", "cpu_limit"):
        return 124
    return {"signaled": 128 + (result.signal or 0), "oom": 137, "output_limit": 137}.get(result.status)


class CejailBackend(BaseSandbox):
    def __init__(self, client=None, profile="python", **settings):
        self.session = (client or cejail.Client()).session(profile, **settings)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.end()

    @property
    def id(self):
        return self.session.id

    def execute(self, command, *, timeout=None):
        """A line of the shell.  A command that a limit ends leaves the session and its files as they are."""
        limit = {"timeout": f"{timeout}s"} if timeout else {}
        result = self.session.exec(command=["/bin/sh", "-c", command], **limit)
        output = result.stdout + result.stderr
        if result.status != "exited":
            output += f"\n[cejail: the command ended with the status '{result.status}']"
        return ExecuteResponse(output=output, exit_code=exit_code(result), truncated=result.truncated)

    def upload_files(self, files):
        return [FileUploadResponse(path=path, error=self._try(self.session.put, path, content)[1]) for path, content in files]

    def download_files(self, paths):
        answers = [(path, *self._try(self.session.get, path)) for path in paths]
        return [FileDownloadResponse(path=path, content=content, error=error) for path, content, error in answers]

    @staticmethod
    def _try(work, *arguments):
        """One file may fail, and the others not: (what it returns, the error)."""
        try:
            return work(*arguments), None
        except cejail.Error as problem:
            return None, FILE_ERRORS.get(problem.code, problem.message)


def main():
    with CejailBackend(cejail.Client(sys.argv[1] if len(sys.argv) > 1 else None), network="none") as backend:
        print("uploaded", [answer.error for answer in backend.upload_files([("/box/a.txt", b"one\ntwo\n"), ("/etc/a", b"")])])
        print("executed", backend.execute("wc -l < a.txt; exit 3"))
        print("downloaded", backend.download_files(["/box/a.txt", "/box/none"]))
        print("too long", backend.execute("echo before; sleep 60", timeout=1).exit_code)


if __name__ == "__main__":
    main()
