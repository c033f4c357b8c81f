#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the service over its Unix socket, with Python's library alone:

    cejail serve &
    python3 tools/examples/service.py [SOCKET]

Without SOCKET it calls your own service, else the system's.
"""

import http.client
import json
import os
import socket
import sys
import time


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def post(path, request, accept="application/json"):
    """The response to a run.  When the service is busy, it says how long to wait."""
    while True:
        connection = Connection(path)
        connection.request("POST", "/v1/runs", json.dumps(request), {"Accept": accept})
        response = connection.getresponse()
        if response.status not in (429, 503):
            break
        time.sleep(int(response.headers["Retry-After"]))
    if response.status != 200:
        error = json.load(response)["error"]
        raise RuntimeError(f"{error['code']}: {error['message']}")
    return response


def run(path, **request):
    """One run; the answer is its result."""
    return json.load(post(path, request))


def stream(path, **request):
    """One run; its events as they happen.  The last one has the result."""
    for line in post(path, request, "application/x-ndjson"):
        yield json.loads(line)


def default_socket():
    own = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}", "cejail/api.sock")
    return own if os.path.exists(own) else "/run/cejail/api.sock"


path = sys.argv[1] if len(sys.argv) > 1 else default_socket()

result = run(path, profile="python", network="none", timeout="5s", code="print(6 * 7)")
print(result["status"], result["stdout"]["text"].strip())

result = run(
    path, profile="base", network="none", artifacts=True,
    command=["sh", "-c", "sort -n numbers.txt > out/sorted.txt"],
    files=[{"path": "numbers.txt", "text": "30\n7\n12\n"}],
)  # fmt: skip
for artifact in result["artifacts"]:
    print(artifact["path"], artifact["bytes"], "bytes")

CODE = "import time\nfor i in range(3):\n    print(i)\n    time.sleep(0.1)"
for event in stream(path, profile="python", network="none", code=CODE):
    if event["type"] == "stdout":
        print("streamed", event["text"].strip())
    elif event["type"] == "result":
        print("ended:", event["result"]["status"])
