#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The client library in Python: values, files, streamed output and several runs at once.

    python3 tools/examples/client.py [SOCKET]

Over `cejail run`, or with SOCKET over a service.  In a program of your own: pip install tools/clients/python
"""

import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/python"))
import cejail  # noqa: E402

MEAN = """
import json, sys
numbers = [float(line) for line in open("numbers.txt")]
json.dump({"mean": sum(numbers) / len(numbers)}, open("/box/out/result.json", "w"))
open("/box/out/sorted.txt", "w").write("\\n".join(str(n) for n in sorted(numbers)))
"""


def main():
    socket = sys.argv[1] if len(sys.argv) > 1 else None
    client = cejail.Client(socket)

    result = client.run(MEAN, files={"numbers.txt": "3\n1\n2\n"}, artifacts=True, network="none", timeout="10s")
    print("value", result.value)
    print("file", result.artifacts["sorted.txt"].decode().split())

    for event in client.stream("for i in range(3): print(i, flush=True)", network="none"):
        if event.type == "stdout":
            print("streamed", event.text.split())
        elif event.result:
            print("ended:", event.result.status)

    try:
        client.run("print('never')", memory="64T")
    except cejail.Error as problem:
        print("refused:", problem.message)

    asyncio.run(at_once(cejail.AsyncClient(socket)))


async def at_once(client):
    results = await asyncio.gather(*(client.run(f"print({i} ** 2)", network="none") for i in range(4)))
    print("at once", [int(result.stdout) for result in results])


main()
