# SPDX-License-Identifier: Apache-2.0
"""`cejail mcp`: each system call of the server, its spawner and its workers fails once.

The client opens the connection, lists the tools, runs a program, uses a session and its files, and ends its input.  Whatever fails,
each request has an answer: the one without the fault, or one that says what failed.  Or the server ends, with one
line and status 125.  Nothing is left.
"""

import errno
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time

import faults
import harness
import trial
from harness import Failure, test
from trial import Seen, Way

# How strong the jail is, and that its output is whole.
CODE = r"""
import re
print(*re.findall("^(?:CapEff|CapBnd|NoNewPrivs|Seccomp):.*", open("/proc/self/status").read(), re.M), "complete")
"""

FILES = (
    ("session_put_file", {"path": "d/file", "text": "text"}),
    ("session_list_files", {"path": "d"}),
    ("session_get_file", {"path": "d/file"}),
)


class Client:
    """Sends one request after the other, and keeps what is the same in every run of each answer."""

    def __init__(self, process):
        self.process, self.buffer, self.number, self.told = process, b"", 0, []
        self.end = time.monotonic() + trial.LIMIT * harness.SLOW

    def line(self):
        """None: the output has ended."""
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], max(0, self.end - time.monotonic()))[0]:
                raise TimeoutError
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return None
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\n", 1)
        return text

    def ask(self, method, **params):
        """The result; None: an error, or the server has ended."""
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return None
        text = self.line()
        if text is None:
            return None
        answer = json.loads(text)
        if answer.get("jsonrpc") != "2.0" or answer.get("id") != self.number or ("error" in answer) == ("result" in answer):
            self.told.append(f"{self.name_of(params, method)}: no answer to it: {text[:200]}")
            return None
        if "error" in answer:
            self.told.append(f"{self.name_of(params, method)}: error: {answer['error']['message']}")
            return None
        self.told += [f"{self.name_of(params, method)}: {words}" for words in facts_of(answer["result"])]
        return answer["result"]

    @staticmethod
    def name_of(params, method):
        return params.get("name", method)

    def call(self, tool, **arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments)
        return None if not result or result["isError"] else result["structuredContent"]

    def talk(self):
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.ask("initialize", **about)
        self.ask("tools/list")
        self.call("run_python", code=CODE)
        session = self.call("session_create", profile="python")
        if session:
            self.call("session_exec", session=session["session"], code=CODE)
            for tool, more in FILES:
                self.call(tool, session=session["session"], **more)
            self.call("session_end", session=session["session"])
        self.process.stdin.close()
        if self.line() is not None:
            self.told.append("a message that nobody asked for")


def facts_of(result):
    """Lines."""
    if "content" not in result:
        tools = [tool["name"] for tool in result.get("tools", [])]
        return [f"{' '.join(sorted(result))} {' '.join(tools)}"]
    text, facts = result["content"][0]["text"], result.get("structuredContent")
    if not facts:
        return [f"refused: {text}"]
    if "run_id" not in facts:
        return [f"{facts.get('state') or [[entry['path'] for entry in facts.get('entries', ())], facts.get('text')]}"]
    rows = [f"{facts['status']} {facts.get('exit_code', '')} {facts['stdout']!r} {facts['stderr']!r}"]
    if result["isError"]:
        rows.append(f"failed: {facts['message']}")
    return rows + [f"warning: {words}" for words in facts.get("warnings", [])]


class McpWay(Way):
    """One server; `out` is what the client was told."""

    command = (harness.CEJAIL, "mcp")
    roles = "supervisor|spawner|worker[0-9]*|exec[0-9]*" if harness.LONG else "supervisor|spawner"

    def __init__(self):
        # a jail of these options is not prepared: the processes are the same in every run
        super().__init__("an MCP server", "-p", "python", "--network", "none", "--hostname", "other", status=0)

    def run(self, folder, *orders):
        self.runs += 1
        report = os.path.join(folder, f"report-{self.runs}")
        before = set(harness.descendants()), things()
        seen = self.start([trial.INJECT, report, *orders, "--", *self.command, *self.args])
        seen.report = (trial.words_of(report) or "").splitlines()
        os.unlink(report)
        seen.left = what_is_left(*before)
        if seen.left:
            subprocess.run([harness.CEJAIL, "gc"], env=harness.environment(), capture_output=True, check=False)
            seen.stays = what_is_left(*before)
        return seen

    def start(self, command):
        env = harness.environment(MALLOC_PERTURB_="165")  # as for a run: trial.py
        began = time.monotonic()
        with tempfile.TemporaryFile() as err:
            with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, bufsize=0) as process:
                client = Client(process)
                try:
                    client.talk()
                    code = process.wait(max(1, client.end - time.monotonic()))
                except (TimeoutError, subprocess.TimeoutExpired):
                    process.kill()
                    code = f"it hangs after {client.told[-1:]}"
            err.seek(0)
            said = err.read().decode(errors="replace").splitlines()
        told = "\n".join(client.told)
        return Seen(code, told, said, told, [], [], time.monotonic() - began)


def things():
    """Records and cgroups, of other cejails of this user, too."""
    found = {f"cgroup {path}" for path in harness.our_cgroups()}
    for place in harness.runtime_dirs():
        found |= {f"record {path}" for path in harness.glob.glob(f"{place}/runs/*")}
    return found


def ours_of(found):
    living = set(harness.descendants())
    return {words for words in found if not harness.is_foreign(words, living)}


def what_is_left(processes, before):
    end, left = time.monotonic() + 2 * harness.SLOW, None
    while True:
        found = [f"process {words}" for pid, words in harness.descendants().items() if pid not in processes]
        now = ours_of(things() - before)
        # what is left is there all the time once our processes have ended: other cejails' things come and go
        left = now if found or left is None else left & now
        found += sorted(left)
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.01)


# --- the verdict ------------------------------------------------------------------------------

REFUSED = re.compile(r"[a-z/_.]+: (error|refused|failed|warning): .+")


def judge(seen, base, call, name):
    """None when the server answered or ended as promised, else what is wrong."""
    if not isinstance(seen.code, int):
        return f"{seen.code}"
    if seen.lines("left"):
        return f"roles outlived the server: {seen.lines('left')}"
    bad = [line for line in seen.lines("end") if line[2] == "killed" and line[3] not in ("9", str(int(signal.SIGTERM)))]
    if bad and not trial.is_abort_of_libc(seen, call):
        return f"died of a signal: {bad}"
    if seen.left and (seen.stays or not is_release(call, name)):
        return f"left behind: {seen.left}, after gc: {seen.stays}"
    if bad or trial.is_documented(seen, call, name):
        return None
    mine, theirs = seen.out.splitlines(), base.out.splitlines()
    new = [line for line in mine if line not in theirs]
    lost = [line for line in theirs if line not in mine]
    odd = [line for line in new if not REFUSED.match(line) and not is_failed_run(line, new)]
    if odd:
        return f"another answer: {odd[:3]}"
    if seen.code != 0:
        return judge_end(seen)
    if lost and not new:
        return f"no answer, and nothing is said: {lost[:3]}"
    if name == "EINTR" and call.name in trial.RETRIED and (lost or new):
        return f"a signal changed an answer: {new[:3]}"
    return None


def is_failed_run(line, new):
    """How a run ended that is told to have failed."""
    tool = line.split(":")[0]
    return any(other.startswith((f"{tool}: failed: ", f"{tool}: warning: ")) for other in new)


def judge_end(seen):
    """The server could not start, or go on: 125 and one line that says why."""
    lines = [line for line in seen.err if line.startswith("cejail: ") and not trial.is_note(line)]
    if seen.code != 125 or len(lines) != 1:
        return f"exit status {seen.code}: {seen.err}"
    return None


def is_release(call, name):
    """A server that can't wait for the end of its spawner kills it, and leaves the rest to gc."""
    is_wait = (call.role, call.name, name) == ("supervisor", "poll", "ENOMEM")
    return is_wait or call.name == "fcntl" or trial.releases_session(call)


def try_fault(way, folder, base, call, name):
    seen, call, problem = faults.tried_again(way, folder, base, call, name, judge)
    new = [line for line in seen.out.splitlines() if line not in base.out.splitlines()]
    kind = ("refused" if new or seen.code != 0 else "same") if seen.is_reached() else "missed"
    said = [line for line in seen.err if line.startswith("cejail: ")]
    return {"call": repr(call), "error": name, "problem": problem if seen.is_reached() else None, "kind": kind, "said": said + new[:4], "seconds": seen.seconds}


def try_all(way, f, last_words, step=8):
    """Init and what is below it are those of runs and sessions: faults.py and session_faults.py."""
    base, calls = faults.without_fault(way, f.path, last_words)
    chosen = list(faults.every_fault([call for call in calls if re.fullmatch(way.roles, call.role)]))
    if not harness.LONG:
        chosen = harness.thinned(faults.sample(chosen), lambda fault: fault[0].role, step)
    # one worker: what is left has no name of its own
    faults.tell(way, faults.in_workers(way, f.path, base, chosen, 1, try_fault))


@test("each call of an MCP server fails once: each request is answered or the server ends with a line, and nothing is left", limit=3600)
def mcp_faults():
    with harness.Folder() as f:
        os.chmod(f.path, 0o755)
        try_all(McpWay(), f, "session_end: ended")
