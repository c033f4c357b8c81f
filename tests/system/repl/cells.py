# SPDX-License-Identifier: Apache-2.0
"""Sessions with the context "repl": variables stay from cell to cell, whatever a cell does."""

import base64
import json
import os
import shutil
import signal
import subprocess
import threading

from harness import *  # noqa: F403
from service import Service, call

LIMITED = {"timeout": scaled(60)}


class Repl:
    """One session of a service."""

    def __init__(self, service, profile="python", **more):
        if profile == "node" and not shutil.which("node"):
            raise Skip("no node")
        self.service = service
        made = service.call("POST", "/v1/sessions", {"profile": profile, "context": "repl", **more})
        made.has(201)
        self.id = made.json["id"]
        equal(made.json["context"], "repl", "the context")

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        self.service.call("DELETE", f"/v1/sessions/{self.id}")

    def exec(self, code, **more):
        return self.service.call("POST", f"/v1/sessions/{self.id}/execs", {"code": code, **more})

    def cell(self, code, status="exited", exit_code=0, **more):
        value = self.exec(code, **LIMITED | more).result
        seen = (value["status"], value["exit_code"])
        equal(seen, (status, exit_code), f"the end of {code!r}, which said {value['stderr']} {value.get('cell')} {value['warnings']}")
        equal(value["session"], self.id, "the session")
        return value

    def value(self, code, **more):
        return self.cell(code, **more)["cell"]["value"]

    def interrupted(self, before, code, **more):
        """A cell that a limit interrupts, and that ends by it.  The interpreter has two seconds for that, in which a busy
        machine may not run it: then it is lost, and the cell `before` and this one decide again."""
        for _ in range(5):
            self.cell(before)
            late = self.cell(code, exit_code=None, **more)
            if not late["cell"]["lost"]:
                return late
        raise Failure(f"each of five times, the interpreter of {code!r} was lost: {late}")

    def show(self):
        return self.service.get(f"/v1/sessions/{self.id}").json


def text_of(stream):
    return stream["text"]


@test("variables survive from cell to cell, and each cell has its value, its output and no other one's")
def _():
    with Service() as s:
        for profile, code in (("python", "x = 40\nprint('a')"), ("node", "const x = 40; console.log('a')")):
            with Repl(s, profile) as r:
                first = r.cell(code)
                equal((text_of(first["stdout"]), first["cell"]["number"]), ("a\n", 1), "the first cell")
                second = r.cell("x + 2")
                equal((text_of(second["stdout"]), second["cell"]["value"], second["cell"]["number"]), ("", "42", 2), "the second cell")
                equal((second["cell"]["exception"], second["cell"]["restarted"], second["cell"]["lost"]), (None, False, False), "the second cell")
                true(second["usage"]["wall_ms"] >= 0 and second["code_sha256"], f"{second}")
                gone = r.cell("1/0" if profile == "python" else "null.x", exit_code=1)
                equal(gone["cell"]["exception"]["type"], "ZeroDivisionError" if profile == "python" else "TypeError", "the exception")
                equal(text_of(gone["stderr"]).strip(), gone["cell"]["exception"]["traceback"].strip(), "standard error")
                equal(r.value("x"), "40", "x")


@test("a pandas table lives over three cells, and a figure comes as an image")
def _():
    with Service() as s, Repl(s, "python-data") as r:
        if r.exec("import pandas, matplotlib", **LIMITED).result["exit_code"] != 0:
            raise Skip("pandas or matplotlib is not installed")
        r.cell("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3]})")
        r.cell("df['b'] = df.a ** 2")
        shown = r.cell("df")["cell"]
        equal([d["type"] for d in shown["displays"]], ["text/html"], "displays")
        true("<table" in shown["displays"][0]["text"] and "9" in shown["value"], f"{shown}")
        shown = r.cell("import matplotlib.pyplot as plt\nplt.plot(df.a, df.b)\nplt.show()")
        equal([d["type"] for d in shown["cell"]["displays"]], ["image/png"], "displays")
        true(base64.b64decode(shown["cell"]["displays"][0]["base64"]).startswith(b"\x89PNG"), "an image")
        equal(text_of(shown["stderr"]), "", "standard error")


@test("a time limit interrupts the cell, and variables survive")
def _():
    with Service() as s:
        for profile, loop in (("python", "while True: pass"), ("node", "for (;;);")):
            with Repl(s, profile) as r:
                late = r.interrupted("x = 1", loop, status="timeout", timeout="2s")
                equal(late["limits"]["wall"]["hit"], True, "the late cell")
                equal(r.value("x"), "1", "x")


@test("a cell that prints without end leaves the output of the next one, whatever limit ends it")
def _():
    timer = "t = setInterval(() => console.log('x'.repeat(1e5)), 1); await new Promise(() => {})"
    loops = {"python": ("while True: print('x')",), "node": ("for (;;) console.log('x')", "for (;;) console.error('x')", timer)}
    after = {"python": "import sys; print('a'); print('b', file=sys.stderr)", "node": "clearInterval(t); console.log('a'); console.error('b')"}
    with Service() as s:
        for profile in loops:
            with Repl(s, profile) as r:
                for code in loops[profile]:
                    for status, limits in (("timeout", {"timeout": "1s"}), ("output_limit", {"max_output": "64K", "on_output_limit": "kill"})):
                        r.interrupted("t = None" if profile == "python" else "var t", code, status=status, **limits)
                        behind = r.cell(after[profile])
                        said = text_of(behind["stdout"])[-2:], text_of(behind["stderr"])[-2:]
                        equal(said, ("a\n", "b\n"), f"the output behind {code}, {status}")


@test("a cell that ignores the interrupt is killed, and the next one has a new interpreter")
def _():
    with Service() as s, Repl(s) as r:
        r.cell("x = 1\nimport subprocess\np = subprocess.Popen(['sleep', '1000'])")
        code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
        late = r.cell(code, status="timeout", exit_code=None, timeout="2s")
        equal(late["cell"]["lost"], True, "lost")
        true(any("its variables are gone" in w for w in late["warnings"]), f"warnings: {late['warnings']}")
        after = r.cell("'x' in globals()")
        equal((after["cell"]["value"], after["cell"]["restarted"]), ("False", True), "the next cell")
        true(any("is a new one" in w for w in after["warnings"]), f"warnings: {after['warnings']}")
        equal(r.cell("1")["cell"]["restarted"], False, "the cell behind it")
        left = "import os\n[c for n in os.listdir('/proc') if n.isdigit() for c in [open(f'/proc/{n}/cmdline').read()] if 'sleep' in c]"
        equal(r.value(left), "[]", "processes of the old interpreter")


@test("a signal interrupts a cell, and so does closing the connection")
def _():
    with Service() as s, Repl(s) as r:
        r.cell("x = 1")
        done = []
        mark = "import time\nopen('/box/%s', 'w').close()\ntime.sleep(600)"
        thread = threading.Thread(target=lambda: done.append(r.exec(mark % "a", id="slow", **LIMITED)))
        thread.start()
        wait_until(lambda: s.get(f"/v1/sessions/{r.id}/files/box/a").status == 200, "the cell")
        s.call("POST", f"/v1/sessions/{r.id}/execs/slow/signal", {"signal": "INT"}).has(202)
        thread.join()
        value = done[0].result
        equal((value["status"], value["exit_code"], value["cell"]["exception"]["type"]), ("exited", 1, "KeyboardInterrupt"), "the cell")
        equal(r.value("x"), "1", "x")

        c = s.connect()
        c.request("POST", f"/v1/sessions/{r.id}/execs", json.dumps({"code": mark % "b"}))
        wait_until(lambda: s.get(f"/v1/sessions/{r.id}/files/box/b").status == 200, "the cell")
        c.close()
        equal(r.value("x"), "1", "x")


@test("a cell that ends or kills its interpreter has its status, and the next one says that variables are gone")
def _():
    with Service() as s, Repl(s) as r:
        for code, status, exit_code in (("import os; os._exit(0)", "exited", 0), ("import os; os._exit(4)", "exited", 4), ("import os; os.kill(os.getpid(), 9)", "signaled", None)):
            r.cell("x = 1")
            lost = r.cell(code, status=status, exit_code=exit_code)
            equal((lost["cell"]["lost"], lost["cell"]["claimed"]), (True, False), f"lost by {code}")
            after = r.cell("'x' in globals()")
            equal((after["cell"]["value"], after["cell"]["restarted"]), ("False", True), f"the cell behind {code}")
        r.cell("import threading, os, time\ne = threading.Event()\nthreading.Thread(target=lambda: (e.wait(), time.sleep(0.1), os._exit(5))).start()")
        r.cell("e.set()")
        wait_until(lambda: r.exec("'e' in globals()").result["cell"]["value"] == "False", "a new interpreter after one that ended between two cells")


@test("exit in a cell has its status in the result, and variables stay")
def _():
    exits = {"python": ("exit(3)", "quit(3)", "import sys; sys.exit(3)"), "node": ("process.exit(3)", "await null; process.exit(3)")}
    with Service() as s:
        for profile, codes in exits.items():
            with Repl(s, profile) as r:
                r.cell("x = 40")
                for code in codes:
                    left = r.cell(code, exit_code=3)["cell"]
                    equal((left["lost"], left["exception"]["message"]), (False, "3"), f"the cell {code}")
                    after = r.cell("x")["cell"]
                    equal((after["value"], after["restarted"]), ("40", False), f"the cell behind {code}")


@test("a command in a cell runs in its limits, and its output is that of the cell")
def _():
    with Service() as s, Repl(s) as r:
        said = r.cell("print('a')\n!echo b; echo c >&2; exit 4\nprint(_exit_code)")
        equal((text_of(said["stdout"]), text_of(said["stderr"])), ("a\nb\n4\n", "c\n"), "the output")
        late = r.interrupted("x = 1", "!sleep 600", status="timeout", timeout="1s")
        equal(late["cell"]["exception"]["type"], "KeyboardInterrupt", "the exception")
        equal(r.value("x"), "1", "x")
        cut = r.cell("!yes | head -c 1000000", max_output="64K")
        equal((cut["stdout"]["truncated"], cut["stdout"]["bytes"]), (True, 1000000), "the output of a loud command")


ODD_PLACES = """
text = f'''{1}
!echo no
% no'''
total = sum([7
  % 4, 5 \\
  % 3])
names = {"a = !b": "it's"}
names["a = !b"] = "%d = %s" % (1, 2)
for i in range(2):
    if i:
        names["c"] = !echo it is {i}; \\
            echo two
        # a comment
        !echo more

!echo done
print(text, total, names)
"""


@test("a line that begins a statement is a command, and none in a string, in brackets or behind a backslash")
def _():
    with Service() as s, Repl(s) as r:
        wrong = r.cell("x = (\n!echo no", exit_code=1)["cell"]["exception"]["type"]
        equal(wrong, "SyntaxError", "a bracket that is open")
        said = r.cell(ODD_PLACES)
        names = "{'a = !b': '1 = 2', 'c': ['it is 1', 'two']}"
        equal(text_of(said["stdout"]), f"more\ndone\n1\n!echo no\n% no 5 {names}\n", "the cell")


COUNT = """
import builtins
plain, sizes = builtins.compile, []
def counted(source, *args, **options):
    sizes.append(len(source) if isinstance(source, str) else 0)
    return plain(source, *args, **options)
builtins.compile = counted
"""


@test("Python compiles a cell twice however many command lines it has")
def _():
    code = "if False:\n" + "".join(f"    !echo {i}\n    x = {i}\n" for i in range(1000)) + "!echo last"
    with Service() as s, Repl(s) as r:
        r.cell(COUNT)
        equal(text_of(r.cell(code)["stdout"]), "last\n", "the cell")
        equal(r.value(f"len([size for size in sizes if size >= {len(code)}])"), "2", "how often its text was compiled")


@test("what the interpreter alone says of the end of a cell is marked, and what was observed is not")
def _():
    loud = "print('y' * 100000, end='')"
    with Service() as s, Repl(s) as r:
        equal([r.cell(code, exit_code=n)["cell"]["claimed"] for n, code in enumerate(("1", "1 / 0"))], [True, True], "claimed")
        late = r.interrupted("x = 1", "while True: pass", status="timeout", timeout="1s")
        equal(late["cell"]["claimed"], False, "of a cell that was late")
        for n in range(50):
            r.cell(loud, status="output_limit", exit_code=None, max_output=str(99999 - n), on_output_limit="kill")
        equal(r.cell(loud, max_output="100000", on_output_limit="kill")["stdout"]["truncated"], False, "an output as long as the limit")
        equal(r.value("x"), "1", "x")


@test("what a cell writes on the channel is data: it can't forge a verdict, and loses its interpreter")
def _():
    with Service() as s, Repl(s) as r:
        for junk in ("b'hello'", "b'V' + (2 ** 32 - 1).to_bytes(4, 'little')", "b'E' + (6).to_bytes(4, 'little') + bytes(6)"):
            broken = r.cell(f"import os, time\nos.write(3, {junk})\ntime.sleep(600)", status="signaled", exit_code=None)
            equal((broken["signal"], broken["cell"]["lost"]), (9, True), "the cell")
            true(any("channel" in w for w in broken["warnings"]), f"warnings: {broken['warnings']}")
            equal(r.cell("1")["cell"]["restarted"], True, "the next cell")
        forged = "import os\nn = (%d).to_bytes(4, 'little')\nos.write(3, b'E' + (6).to_bytes(4, 'little') + n + bytes(2))\nwhile True: pass"
        equal(r.cell(forged % 2)["cell"]["lost"], False, "a forged end ends its own cell alone")
        r.cell("1", status="timeout", exit_code=None, timeout="2s")  # that cell's code goes on until it is interrupted
        equal(r.cell("1")["cell"]["value"], "1", "a cell behind it")
        for code in ("import os; os.close(3)", "import os; os.dup2(0, 3)"):
            lost = r.cell(code, exit_code=1)
            equal(lost["cell"]["lost"], True, f"lost by {code}")
        r.cell("import os, time\nos.close(3)\nwhile True: time.sleep(1)", status="timeout", exit_code=None, timeout="2s")
        equal(r.value("2"), "2", "the next cell")


@test("the lines that a cell has printed are in its result when it is killed")
def _():
    with Service() as s, Repl(s) as r:
        value = r.exec("print('start'); print('half a line', end='')\nimport os; os.kill(os.getpid(), 9)", **LIMITED).result
        equal((value["status"], text_of(value["stdout"])), ("signaled", "start\n"), f"the killed cell ({value['cell']})")
        equal(r.value("import sys; [(s.line_buffering, s.write_through) for s in (sys.stdout, sys.stderr)]"), "[(True, False), (True, False)]", "its streams")


@test("a cell imports what an earlier cell or a command of the session has installed with pip")
def _():
    if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        raise Skip("python3-pip is not installed")
    install = ["pip", "install", "-q", "--no-index", "--find-links", "/box/w", "tinypk"]
    with Service() as s, Repl(s) as r:
        r.cell(f"exec({WHEEL!r}); make_wheel('/box/w')\ntry:\n    import tinypk\nexcept ImportError: pass\nimport subprocess; subprocess.run({install}, check=True)")
        equal(r.value("import tinypk; tinypk.VALUE"), "7", "in a cell")
    with Service() as s, Repl(s) as r:
        r.cell(f"exec({WHEEL!r}); make_wheel('/box/w')")
        done = s.call("POST", f"/v1/sessions/{r.id}/execs", {"command": install, **LIMITED}).result
        equal(done["exit_code"], 0, f"pip ({done['stderr']})")
        equal(r.value("import tinypk; tinypk.VALUE"), "7", "in a cell")


@test("a cell that uses too much memory, or prints too much, ends with that status")
def _():
    with Service() as s, Repl(s, memory="256M") as r:
        full = r.cell("a = b'x' * (1 << 20)\nwhile True: a += a", status="oom", exit_code=None)
        equal(full["cell"]["lost"], True, "lost")
        loud = r.interrupted("x = 1", "while True: print('y' * 1000)", status="output_limit", max_output="64K", on_output_limit="kill")
        equal(loud["stdout"]["truncated"], True, "the loud cell")
        equal(r.value("x"), "1", "x")
        cut = r.cell("print('y' * 1000000)", max_output="64K")
        equal((cut["stdout"]["truncated"], cut["stdout"]["bytes"]), (True, 1000001), "the cut output")


@test("cells of one session run one after the other, in the order in which they came")
def _():
    with Service() as s, Repl(s) as r:
        r.cell("l = []")
        for n in range(8):
            r.exec(f"import time\nl.append({n})\ntime.sleep(0.05)\nl.append({n})", id=f"c{n}", detach=True).has(202)
        for n in range(8):
            wait_until(lambda: s.get(f"/v1/sessions/{r.id}/execs/c{n}?wait=5s").json["state"] == "finished", f"cell {n}", 30)
        equal(r.value("l"), str([n // 2 for n in range(16)]), "the order")


@test("a signal to a cell that is queued interrupts it when it begins, and no other one")
def _():
    with Service() as s, Repl(s) as r:
        execs = f"/v1/sessions/{r.id}/execs"
        r.exec("import os, time\nwhile not os.path.exists('/box/go'): time.sleep(0.01)\n'first'", id="first", detach=True).has(202)
        r.exec("time.sleep(600)", id="next", detach=True, **LIMITED).has(202)
        r.exec("'last'", id="last", detach=True).has(202)
        equal(s.call("POST", f"{execs}/next/signal", {"signal": "INT"}).has(202).json["state"], "queued", "the state")
        true(s.call("PUT", f"/v1/sessions/{r.id}/files/box/go", "x").status < 300, "a file for the cell")
        cells = []
        for name in ("first", "next", "last"):
            wait_until(lambda: s.get(f"{execs}/{name}?wait=5s").json["state"] == "finished", f"the end of {name}", 30)
            cells.append(s.get(f"{execs}/{name}").json["result"]["cell"])
        equal([c["value"] for c in cells], ["'first'", None, "'last'"], "the values")
        equal(cells[1]["exception"]["type"], "KeyboardInterrupt", "the exception")


@test("two sessions see nothing of each other")
def _():
    with Service() as s, Repl(s) as one, Repl(s) as other:
        one.cell("x = 1\nopen('/box/a', 'w').write('secret')")
        other.cell("x", exit_code=1)
        equal(other.value("import os; (os.path.exists('/box/a'), [n for n in os.listdir('/proc') if n.isdigit() and 'x = 1' in open(f'/proc/{n}/cmdline').read()])"), "(False, [])", "the other session")
        equal(one.value("x"), "1", "x")


@test("what a cell prints is streamed while it runs, and its result has the cell")
def _():
    with Service() as s, Repl(s) as r:
        connection = s.connect()
        code = "import os, time\nprint('first')\nwhile not os.path.exists('/box/go'): time.sleep(0.01)\n7"
        connection.request("POST", f"/v1/sessions/{r.id}/execs", json.dumps({"code": code, **LIMITED}), {"Accept": "application/x-ndjson"})
        response = connection.getresponse()
        lines = []
        said = ""
        while not said.endswith("\n"):  # print() writes the end of a line by a call of its own
            lines.append(json.loads(response.readline()))
            said += lines[-1]["text"] if lines[-1]["type"] == "stdout" else ""
        equal(said, "first\n", "the first line, while the cell runs")
        true(s.call("PUT", f"/v1/sessions/{r.id}/files/box/go", "x").status < 300, "a file for the cell")
        while lines[-1]["type"] != "result":
            lines.append(json.loads(response.readline()))
        equal(lines[-1]["result"]["cell"]["value"], "7", "the value")
        connection.close()


@test("a cell that uses up cpu_time is ended with that status")
def _():
    with Service() as s, Repl(s, cpu_time="1s") as r:
        r.cell("while True: pass", status="cpu_limit", exit_code=None)
        equal(r.value("1"), "1", "the next cell")


@test("output of a thread between two cells comes with the next cell")
def _():
    with Service() as s, Repl(s) as r:
        r.cell("import threading, time\ne = threading.Event()\nt = threading.Thread(target=lambda: (e.wait(), print('late')))\nt.start()")
        late = r.cell("e.set(); t.join()")
        equal(text_of(late["stdout"]), "late\n", "standard output")


@test("a cell has arguments, files and a standard input of its own, and refuses what a running interpreter can't take")
def _():
    with Service() as s, Repl(s) as r:
        given = r.cell("import sys\n(sys.argv[1:], input(), open('/box/in/a').read(), open('/box/args.json').read())", args=["p"], stdin="q\n", files=[{"path": "/box/in/a", "text": "text"}], args_json={"k": 1})
        equal(given["cell"]["value"], "(['p'], 'q', 'text', '{\"k\":1}')", "the cell")
        tool = [{"path": "/box/tool", "text": "#!/bin/sh\necho run\n", "executable": True}]
        said = r.cell("import subprocess; subprocess.run(['/box/tool'], capture_output=True, text=True, check=True).stdout", files=tool)
        equal(said["cell"]["value"], r"'run\n'", "an executable file")
        cell = r.cell("input()", exit_code=1)["cell"]
        equal(cell["exception"]["type"], "EOFError", "input()")
        for wrong in ({"env": {"A": "b"}}, {"workdir": "/tmp"}):
            reply = r.exec("1", **wrong)
            true(reply.status == 400 or reply.json["status"] == "setup_error", f"{wrong}: {reply!r}")
        equal(r.value("2"), "2", "the next cell")


@test("a command in a session with an interpreter is a process of its own")
def _():
    with Service() as s, Repl(s) as r:
        r.cell("open('/box/a', 'w').write('text'); x = 1")
        value = s.call("POST", f"/v1/sessions/{r.id}/execs", {"command": ["cat", "/box/a"]}).result
        equal((value["status"], text_of(value["stdout"]), "cell" in value), ("exited", "text", False), "the command")
        equal(r.value("x"), "1", "x")


@test("a profile without an interpreter is refused, with a remedy")
def _():
    with Service() as s:
        reply = s.call("POST", "/v1/sessions", {"profile": "shell", "context": "repl"})
        reply.has(400)
        contains(reply.json["error"]["message"], "has no 'repl'", "the message")


@test("a thousand cells in a row")
def _():
    with Service() as s, Repl(s) as r:
        r.cell("n = 0")
        connection = s.connect()
        for n in range(1000):
            value = call(connection, "POST", f"/v1/sessions/{r.id}/execs", {"code": "n += 1\nn"}).result
            equal(value["cell"]["value"], str(n + 1), "n")
        connection.close()


@test("a cell whose worker is killed has an error, and the next one has a new interpreter")
def _():
    with Service() as s, Repl(s) as r:
        r.cell("x = 1")
        slow = s.background(r.exec, "open('/box/a', 'w').close()\nwhile True: pass", **LIMITED)
        wait_until(lambda: s.get(f"/v1/sessions/{r.id}/files/box/a").status == 200, "the cell")
        workers = [pid for pid in s.workers() if "cejail-exec" in (describe_process(pid) or "")]
        equal(len(workers), 1, "workers of cells")
        os.kill(workers[0], signal.SIGKILL)
        true(slow.finish().status >= 500, "the answer")
        equal(r.cell("'x' in globals()")["cell"]["restarted"], True, "the next cell")


@test("an interpreter that can't start is the result of the next cell, and the session stays")
def _():
    with Folder() as f:
        f.file("cejail/profiles/broken.json", json.dumps({"extends": "python", "command": ["python3", "-s", "--no-such-option", "{file}", "{args}"]}))
        with Service(env={"XDG_CONFIG_HOME": f.path}) as s, Repl(s, "broken") as r:
            for _ in range(2):
                reply = r.exec("1", **LIMITED)
                value = reply.result
                equal((value["status"], value.get("cell")), ("setup_error", None), "the cell")
                true("interpreter" in value["error"]["message"] or "log" in value["error"]["message"], f"{value['error']}")
            wait_until(lambda: "it said: " in s.said(), f"the reason in the log: {s.said()}")
            value = s.call("POST", f"/v1/sessions/{r.id}/execs", {"command": ["echo", "text"]}).result
            equal(text_of(value["stdout"]), "text\n", "a command")


@test("the end of the session and of its lease ends a cell that runs and those that wait")
def _():
    loop = "open('/box/a', 'w').close()\nwhile True: pass"

    def ended_by(act, service, r):
        first = service.background(r.exec, loop, **LIMITED)
        wait_until(lambda: service.get(f"/v1/sessions/{r.id}/files/box/a").status == 200, "the cell")
        second = service.background(r.exec, "1", **LIMITED)
        wait_until(lambda: r.show()["execs"] >= 1, "the second cell")
        act()
        equal(first.finish().result["status"], "cancelled", "the cell that ran")
        reply = second.finish()
        true(reply.status >= 400 or reply.result["status"] == "cancelled", f"the cell that waited: {reply!r}")

    with Service() as s:
        with Repl(s) as r:
            ended_by(lambda: s.call("DELETE", f"/v1/sessions/{r.id}"), s, r)
            equal(r.show()["state"], "ended", "the state")
        with Repl(s) as r:
            ended_by(lambda: s.call("POST", f"/v1/sessions/{r.id}/lease", {"lease": "1s"}), s, r)
