# SPDX-License-Identifier: Apache-2.0
"""`cejail bwrap` beside bubblewrap's own program: command lines that a generator makes of the options of both.

One line is one number: CEJAIL_TEST_BWRAP=FROM-TO tries those alone.
"""

import os
import random
import re

from harness import LONG, STEP, Failure, Folder, test, tried, true
from bwrap_attacks import snapshot
from bwrap_lines import HOST, OURS, PROC, USR, bubblewrap, differences, filled, known, look

FROM, TO = map(int, os.environ.get("CEJAIL_TEST_BWRAP", f"0-{20000 if LONG else max(1, 300 // STEP)}").split("-"))
ALLOW = "FD:\x06\0\0\0\0\0\xff\x7f"
# Descriptors for both documents, which bubblewrap does not write to one, and of a directory.
STATUS, INFO, BOUND = 57, 58, 59

NUMBER = re.compile(r'("(?:child-pid|\w+-namespace)":) \d+')
PROCESS = re.compile(r"/proc2?/(\d+|self|thread-self)(/|$)")

# Places in the root.  None is a node of /dev, and no link leads there: an option could change the host's.
PLACES = ("/a", "/a/b", "/a/b/c", "/d", "/t", "/t/u", "/etc/motd", "/data", "/data/sub", "/data/file", "/data/link", "/data/link/new", "/data/sub/x/y",
          "/l", "/l/below", "/usr", "/usr/never-there", "relative", "relative/two", "/dev/x", "/dev/shm/x", "/var/run/x", "/a/../z", "/a//b/", "/x/./y",
          "/home/me")  # fmt: skip
FOLDERS = ("{0}", "{0}/sub", "{0}/link", "/usr/bin", "/etc")
FILES = ("{0}/file", "{0}/link/file", "/etc/passwd")
MISSING = ("/never-there", "{0}/never-there", "{0}/file/below")
CAPABILITIES = ("CAP_NET_RAW", "CAP_KILL", "cap_sys_admin", "CAP_CHOWN", "ALL", "CAP_SETUID", "CAP_DAC_OVERRIDE")


class Line:
    """The command line of one number."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.options = []
        pick = self.random.random()
        if pick < 0.1:
            self.options += HOST
        else:
            self.options += USR
        if pick < 0.85:
            self.options += PROC
        rows = list(ROWS)
        for _ in range(self.random.choice((1, 2, 3, 4, 5, 6, 8, 12))):
            words = self.random.choice(rows)(self)
            if self.random.random() < 0.05:
                words = ["--args", "FD:" + "".join(word + "\0" for word in words)] if not any("FD:" in w for w in words) else words
            self.options += words
        self.ending = self.random.choice((0, 0, 0, 1, 7, 255, "KILL", "TERM"))

    def words(self):
        return [word for option in self.options for word in option.removeprefix("FD:").split("\0")]

    def one(self, *choices):
        return self.random.choice(choices)

    def place(self):
        return self.one(*PLACES)

    def source(self):
        return self.one(*(FOLDERS * 3 + FILES * 2 + MISSING))

    def mode(self):
        return self.one("0755", "0700", "0711", "1777", "0644", "0000", "755", "0070", "7")

    def perms(self):
        return ["--perms", self.mode()] if self.random.random() < 0.4 else []

    def bind(self):
        kind = self.one("bind", "ro-bind", "dev-bind")
        source = self.source()
        if source.startswith("/"):
            kind = "ro-bind"  # a later option must not change the host
        return [f"--{kind}{self.one('', '', '-try')}", source, self.place()]

    def number(self):
        return self.one("0", "1", "7", "1000", "65534", "4294967294")


ROWS = (
    *[Line.bind] * 6,
    lambda g: ["--bind", g.one("{0}", "{0}/sub"), g.place()],
    *[lambda g: [*g.perms(), *g.one([], [], ["--size", "65536"], ["--size", "1"]), "--tmpfs", g.place()]] * 2,
    *[lambda g: [*g.perms(), "--dir", g.place()]] * 3,
    *[lambda g: [*g.perms(), "--file", "FD:some text", g.place()]] * 2,
    lambda g: [*g.perms(), g.one("--bind-data", "--ro-bind-data"), "FD:" + g.one("", "text", "x" * 70000), g.place()],
    *[lambda g: ["--symlink", g.one("a", "sub", "../run", "b", "data", "..", "never-there"), g.one(g.place(), "/l")]] * 2,
    lambda g: ["--symlink", "/never-there/a", "/absolute"],
    *[lambda g: ["--chmod", g.mode(), g.place()]] * 2,
    *[lambda g: ["--remount-ro", g.one(g.place(), "/")]] * 2,
    lambda g: ["--dev", g.one("/dev", "/dev2", "/a/dev")],
    lambda g: ["--proc", g.one("/proc", "/proc2", "/a/proc")],
    lambda g: ["--mqueue", g.one("/dev/mqueue", "/a")],
    *[lambda g: [g.one("--unshare-user", "--unshare-user-try")]] * 2,
    *[lambda g: ["--unshare-pid"]] * 2,
    lambda g: [g.one("--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup", "--unshare-cgroup-try")],
    lambda g: ["--unshare-all", *g.one([], ["--share-net"])],
    lambda g: ["--unshare-user", "--disable-userns", *g.one([], ["--assert-userns-disabled"])],
    lambda g: [*g.one([], ["--unshare-user"], ["--unshare-user"]), g.one("--uid", "--gid"), g.number()],
    lambda g: ["--unshare-user", "--uid", g.number(), "--gid", g.number()],
    lambda g: [*g.one([], ["--unshare-uts"], ["--unshare-uts"]), "--hostname", g.one("inside", "a.b", "x" * 65)],
    lambda g: ["--chdir", g.one("/usr", "/", "/a", "/data", "{0}", "/never-there", "usr")],
    *[lambda g: ["--setenv", g.one("A", "HOME", "PATH", "PWD", "TERM", "XDG_RUNTIME_DIR"), g.one("b c", "/usr", "", "/a=b")]] * 2,
    lambda g: ["--unsetenv", g.one("A", "HOME", "PATH", "PWD", "NEVER")],
    lambda g: ["--clearenv"],
    lambda g: ["--lock-file", g.one("/usr/bin/env", "/usr/bin/cat")],
    lambda g: ["--sync-fd", "FD:"],
    lambda g: ["--block-fd", g.one("FD:x", "FD:")],
    lambda g: [g.one("--seccomp", "--add-seccomp-fd"), g.one(ALLOW, ALLOW, ALLOW, "FD:123", "FD:")],
    lambda g: ["--add-seccomp-fd", ALLOW, "--add-seccomp-fd", ALLOW],
    lambda g: g.one(["--json-status-fd", str(STATUS)], ["--info-fd", str(INFO)]),
    lambda g: ["--new-session"],
    lambda g: ["--die-with-parent"],
    lambda g: [*g.one([], ["--unshare-pid"], ["--unshare-pid"]), "--as-pid-1"],
    *[lambda g: [g.one("--cap-add", "--cap-drop"), g.one(*CAPABILITIES)]] * 2,
    lambda g: ["--unshare-user", "--cap-add", g.one(*CAPABILITIES), "--cap-drop", g.one(*CAPABILITIES)],
    lambda g: g.one(["--ro-bind-fd", str(BOUND), g.place()], ["--bind-fd", str(BOUND), g.place()]),
    lambda g: g.one(["--perms", "0700"], ["--size", "5"], ["--perms", "8"], ["--uid", "-1"], ["--size", "0"], ["--never"], ["--bind", "/usr"],
                    ["--cap-add", "CAP_NEVER"], ["--sync-fd", "x"]) if g.random.random() < 0.15 else ["--dir", "/d"],  # fmt: skip
)


def left_row(base, name, mode, *rest):
    """Of what was made as the place of a mount the manual has the mode of ours."""
    is_made = (os.path.basename(base) if name == "." else name) not in ("FOLDER", ".git", "config", "file", "link", "sub")
    return base, name, mode[0] if is_made else mode, *rest


def answer(program, line):
    """What the line makes with one program, and what it leaves in the caller's directory."""
    with Folder() as folder:
        filled(folder)
        opened = [os.memfd_create("status"), os.memfd_create("info"), os.open(folder / "sub", os.O_PATH | os.O_DIRECTORY)]
        held = [os.dup2(fd, number) for fd, number in zip(opened, (STATUS, INFO, BOUND))]
        done, seen = look(program, line.options, folder, line.ending, held=held)
        wrote = b"".join(os.pread(fd, 4096, 0) for fd in opened[:2]).decode()
        for fd in opened:
            os.close(fd)
        is_refused = not seen
        seen["tree"] = {path: entry for path, entry in seen.get("tree", {}).items() if not PROCESS.search(path)}
        seen["fds"] = {fd: re.sub("cejail-system-[^/]*", "NAME", name) for fd, name in seen.get("fds", {}).items()}
        left = [left_row(base.replace(folder.path, "FOLDER"), *rest) for base, *rest in snapshot(folder.path)]
        return {**seen, "status": done.returncode, "is refused": is_refused, "left": left, "document": NUMBER.sub(r"\1 N", wrote), "message": done.stderr.decode().replace(folder.path, "FOLDER")}


def leaves_root(words):
    """Bubblewrap leaves the root by the link to "..", while it builds it: where an option has it as its DEST, or goes through it."""
    for i in range(len(words) - 2):
        if words[i : i + 3] == ["--symlink", "..", "/l"]:
            return any(words[k] == "/l/below" or (words[k] == "/l" and words[k - 2] != "--symlink") for k in range(i + 3, len(words)))
    return False


def links_of(words):
    """Where the line makes links, and what they lead to."""
    return [(os.path.normpath("/" + words[i + 2].lstrip("/")), words[i + 1]) for i in range(len(words) - 2) if words[i] == "--symlink"]


def is_through(links, message):
    """Whether the place that a message names is one of these links, or lies behind it."""
    places = [os.path.normpath("/" + word.removeprefix("/newroot").lstrip("/")) for word in re.findall(r"(/[^\s:']*)", message)]
    return any(place == link or place.startswith(link + "/") for place in places for link, _ in links)


def has_twice(words):
    links = links_of(words)
    return len(set(links)) < len(links)


def is_deliberate(line, theirs, ours, their_message, our_message):
    """A difference that cejail-bwrap(1) lists, or one that bubblewrap 0.9 and later have, too."""
    words = " ".join(line.words()) + " "
    if leaves_root(line.words()):
        return True
    if ours["is refused"] and not theirs["is refused"] and "must be followed by" in our_message:
        return line.options[-2] in ("--perms", "--size")  # without an option that it applies to
    if theirs["is refused"] and not ours["is refused"]:
        if "Can't mount mqueue" in their_message:
            return words.count("--mqueue ") > 1  # a file system twice at a place
        if "(deleted)" in their_message:
            return True  # of --bind-data, which they unlink before they look for it
        if "Can't set hostname" in their_message:
            return line.options.count("--hostname") > 1  # only the last one has an effect, as bubblewrap itself warns
        if "Can't stat fd" in their_message:
            return words.count(f"-fd {BOUND} ") > 1  # they close it after its first use
        if "No such file or directory" in their_message:
            return is_through(links_of(line.words()), their_message)  # its target is missing: ours makes the target, inside
        if "Can't make symlink at" in their_message and "File exists" in their_message:
            # an equal link may exist since 0.9; a DEST that ends with "/" they make as a directory first
            return has_twice(line.words()) or "/: File exists" in their_message
        return False
    if ours["is refused"] and "Can't mkdir" in our_message and "File exists" in our_message:
        return is_through(links_of(line.words()), our_message) and "--dir " in words  # there is a link to nothing, and no directory
    return ours["is refused"] and "/a/../z: Invalid cross-device link" in our_message


def judged(number):
    """The differences of one line that are ours, and whether its command ran."""
    line = Line(number)
    for attempt in range(2):  # the host may have changed between the two
        theirs, ours = known([answer(bubblewrap(), line), answer(OURS, line)], line.words())
        messages = theirs.pop("message"), ours.pop("message")
        if is_deliberate(line, theirs, ours, *messages):
            return [], True, line, messages
        if theirs["is refused"] and ours["is refused"]:  # one may notice it before the other one
            theirs, ours = ({"status": one["status"]} for one in (theirs, ours))
        elif theirs["is refused"] != ours["is refused"]:
            theirs, ours = ({"refused": one["is refused"]} for one in (theirs, ours))
        found = list(differences(theirs, ours))
        if not found:
            break
    return found, not ours.get("is refused", True), line, messages


@test("cejail bwrap makes the same sandbox as bubblewrap of generated command lines", limit=300 + TO - FROM)
def _():
    wrong, ran = [], 0
    for number in range(FROM, TO):
        found, has_run, line, messages = judged(number)
        ran += has_run
        if found:
            wrong.append(f"line {number}: {line.options}, {line.ending}: {messages}\n" + "\n".join(found[:8]))
        tried()
    if wrong:
        raise Failure(f"{len(wrong)} of {TO - FROM} lines differ:\n" + "\n\n".join(wrong[:40]))
    true(ran * 3 > TO - FROM or TO - FROM < 9, f"only {ran} of {TO - FROM} lines ran their command")
