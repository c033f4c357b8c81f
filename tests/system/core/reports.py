# SPDX-License-Identifier: Apache-2.0
"""`cejail report`: which files it takes, and that a record can't leave its place in the page."""

import json
import re

from harness import *  # noqa: F403


def records_of(page):
    """The data that the script of a page reads."""
    text = re.search(r'<script type="application/json" id="records">(.*?)</script>', page, re.DOTALL)
    return json.loads(text[1])


@test("a report has the result as it was, and no element that the program printed")
def _():
    attack = "</script><script>document.title=1</script><!--<img src=x onerror=alert(1)>"
    with Folder() as place:
        python(f"print({attack!r})", "--json=" + (place / "result.json")).exits(0)
        written = json.load(open(place / "result.json"))
        page = cejail("report", place / "result.json").exits(0).out
    contains(written["stdout"]["text"], attack, "output")
    equal(records_of(page), [written], "records")
    lacks(page, "<img", "page")
    equal(page.count("</script>"), 2, "ends of a script")


@test("a report takes results and events of several runs, from files and standard input")
def _():
    with Folder() as place:
        events = place.file("events")
        with open(events, "wb") as file:
            sh("echo one", "--events-fd", str(file.fileno()), pass_fds=[file.fileno()]).exits(0)
        pretty = place.file("pretty.json", json.dumps(sh_result("exit 3"), indent=2))
        page = place / "page.html"
        done = cejail("report", "-o", page, events, "--", pretty, "-", given=json.dumps(sh_result("exit 4")))
        equal((done.code, done.out, done.err), (0, "", ""), "output")
        records = records_of(open(page).read())
    results = [r.get("result", r) for r in records if "schema" in r or r["type"] == "result"]
    equal([r["exit_code"] for r in results], [0, 3, 4], "exit codes")
    times = [r["at_ms"] for r in records if r.get("type") in ("start", "stdout")]
    equal((len(times), sorted(times)), (2, times), "times of the events")


@test("a report refuses what is no result, and leaves the output file as it was")
def _():
    with Folder() as place:
        page = place.file("page.html", "before")
        line = '{"type":"start","at_ms":0}'
        for content, words in (("", "1:1"), ("{}", "no result"), ("[1]", "no result"), ('{"schema":"cejail.result/2"}', "no result"),
                               (line, "has the run ended?"), (line + "\n{]", "record 2"), ("{\0}", "NUL")):
            refused(cejail("report", "--output=" + page, place.file("bad", content)), words)
        refused(cejail("report", place / "none"), "none", "No such file")
        refused(cejail("report"), "--json=FILE")
        refused(cejail("report", "--json"), "'--json'", "cejail report --help")
        refused(cejail("report", "-o"), "--output", "FILE")
        equal(open(page).read(), "before", "page")
