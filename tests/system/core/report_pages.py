# SPDX-License-Identifier: Apache-2.0
"""What a browser makes of the page of `cejail report`."""

import json
import os
import re
import subprocess

from harness import *  # noqa: F403


def draw(place, *files):
    """The document after its script ran: Chromium, without a network."""
    cejail("report", "-o", place / "page.html", *files).exits(0)
    alone = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    done = subprocess.run(
        [*alone, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
         "--user-data-dir=" + (place / "browser"), "--dump-dom", "file://" + (place / "page.html")],
        capture_output=True, text=True, timeout=60 * SLOW, check=True, env={**os.environ, "HOME": place.path})
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    equal(complaints, [], "what the browser complains about")
    body = re.sub(r"<script.*?</script>", "", done.stdout.split("<body>")[1], flags=re.DOTALL)
    return body, re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))


@test("a page shows the timeline, the limits, the denials and the output of a run", limit=120)
def _():
    code = """import ctypes, os, sys
print("<b>bold</b><img src=x>", flush=True)
os.close(2)
ctypes.CDLL(None).mount(b"a", b"/", b"tmpfs", 0, 0)
while True: pass"""
    with Folder() as place:
        with open(place / "events", "wb") as file:
            python(code, "--timeout", "2s", "--events-fd", str(file.fileno()), pass_fds=[file.fileno()])
        body, text = draw(place, place / "events")
    for words in ("time limit", "0 ms start", "denied system call mount", "limit met: wall", "s of 2.00 s (met)", "of 64",
                  "system call mount 1", "&lt;b&gt;bold&lt;/b&gt;", "no new privs", "profile python"):
        contains(text, words, "page")
    lacks(body, "<img", "page")
    true(body.count("<circle") >= 4, "the timeline has fewer than four marks")


@test("a page of several runs begins with a table that links to them", limit=120)
def _():
    with Folder() as place:
        names = [place.file(f"{code}.json", json.dumps(sh_result(f"exit {code}"))) for code in (0, 3)]
        body, text = draw(place, *names)
    contains(text, "cejail report: 2 runs", "page")
    contains(text, "exited with 3", "page")
    links = re.findall(r'<a href="#(run-\d)">', body)
    equal(links, ["run-0", "run-1"], "links")
    for link in links:
        contains(body, f'<section id="{link}">', "page")
