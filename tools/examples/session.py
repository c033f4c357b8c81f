#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A session in Python: files stay, a program in the background, a limit that ends one exec only.

    python3 tools/examples/session.py [SOCKET]

Without SOCKET: at the service of this user; cejail starts one if none listens.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/python"))
import cejail  # noqa: E402

client = cejail.Client(sys.argv[1] if len(sys.argv) > 1 else None)

with client.session(profile="python", network="none", lease="10m") as session:
    session.put("numbers.txt", "3\n1\n2\n")
    session.exec(command=["sort", "-n", "-o", "sorted.txt", "numbers.txt"])
    print("sorted", session.get("sorted.txt").decode().split())
    print("files", sorted(entry.path for entry in session.list() if entry.type == "file"))

    for event in session.stream("for i in range(3): print(i, flush=True)"):
        if event.type == "stdout":
            print("streamed", event.text.split())

    background = session.start("import sys; print(sys.stdin.read().upper())", open_stdin=True)
    print("too long:", session.exec("while True: pass", timeout="1s").status)
    background.write("still here", eof=True)
    print("background:", background.wait().stdout.strip())

print("ended:", client.attach(session.id).info()["reason"])
