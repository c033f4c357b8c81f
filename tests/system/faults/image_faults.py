# SPDX-License-Identifier: Apache-2.0
"""`cejail image import`: each system call of the importer and of its unpacker fails once.

The import succeeds with the same image, or it fails with one line and there is no image.  Then another import
succeeds, and the store has its layers and nothing else: whatever a failed import left is removed.
"""

import errno
import io
import json
import os
import subprocess
import tarfile

import faults
import harness
import trial
from harness import test
from trial import Seen, Way


def a_root(path):
    """A root file system with a directory, a file, a link and a whiteout."""
    with tarfile.open(path, "w") as archive:
        for name, kind in (("dir", tarfile.DIRTYPE), ("dir/file", tarfile.REGTYPE), ("link", tarfile.SYMTYPE), ("dir/.wh.gone", tarfile.REGTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.linkname = kind, 0o755, "dir/file" if name == "link" else ""
            info.size = 4 if name == "dir/file" else 0
            archive.addfile(info, io.BytesIO(b"text"))


class ImportWay(Way):
    """One import; its output is what the store has after it, and after another import of another name."""

    def __init__(self):
        super().__init__("an import", status=0, prepare=lambda f, stack: a_root(f / "root.tar"))

    def run(self, folder, *orders):
        self.runs += 1
        place = os.path.join(folder, f"import-{os.getpid()}-{self.runs}")
        os.mkdir(place)
        report, env = f"{place}/report", harness.environment(XDG_DATA_HOME=f"{place}/data", MALLOC_PERTURB_="165")
        before = set(harness.descendants())

        def add(name, *through):
            words = [*through, harness.CEJAIL, "image", "import", name, f"{folder}/root.tar"]
            return harness.finish(subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE), trial.LIMIT)

        try:
            done = add("first", trial.INJECT, report, *orders, "--")
            told = [f"first: {done.out.strip()}", *self.store(f"{place}/data/cejail/images")]
            again = add("second")
            told += [f"second: {again.code} {again.err}", *self.store(f"{place}/data/cejail/images")]
            code, err = done.code, done.err.splitlines()
        except harness.Failure as late:
            told, code, err = [], str(late), []
        seen = Seen(code, "\n".join(told), err, None, [], [], 0)
        seen.report = (trial.words_of(report) or "").splitlines()
        seen.left = [words for pid, words in harness.descendants().items() if pid not in before]
        subprocess.run(["rm", "-rf", place], check=True)
        return seen

    @staticmethod
    def store(path):
        rows = []
        for name in ("images", "layers", "tmp"):
            found = sorted(os.listdir(f"{path}/{name}")) if os.path.isdir(f"{path}/{name}") else []
            rows.append(f"{name}: {found}")
        for name in sorted(os.listdir(f"{path}/images")) if os.path.isdir(f"{path}/images") else ():
            with open(f"{path}/images/{name}", encoding="utf-8") as file:
                record = json.load(file)
            rows.append(f"{name}: {record['layers']} {record['entries']}")
        return rows


def judge(seen, base, call, name):
    """None when the import ended as promised, else what is wrong."""
    if not isinstance(seen.code, int):
        return f"{seen.code}"
    if seen.lines("left") or seen.left:
        return f"outlived the import: {seen.lines('left')} {seen.left}"
    bad = [line for line in seen.lines("end") if line[2] == "killed"]
    is_by_libc = trial.is_abort_of_libc(seen, call) or call.name == "futex"  # which is a wake-up that can't fail so
    if bad and not is_by_libc and not seen.errors():
        return f"died of a signal: {bad}"
    mine, theirs = seen.out.splitlines(), base.out.splitlines()
    if seen.code == 0:
        return None if mine == theirs or seen.warnings() else f"another store: {trial.difference(seen.out, base.out)}"
    if bad or call.name in ("brk", "mprotect"):  # before main: the C library has its own message
        return None
    if name == "EINTR" and call.name in trial.RETRIED and "standard output" not in seen.errors()[0]:  # stdio's
        return f"a signal ended the import: {seen.err}"
    if seen.code != 125 or len(seen.errors()) != 1:
        return f"exit status {seen.code}: {seen.err}"
    if "images: []" not in mine[1:4] and "standard output" not in seen.errors()[0]:  # written after the import
        return f"a failed import left an image: {mine}"
    wanted = [row for row in theirs[-5:] if not row.startswith(("first.json", "images: "))]
    lost = [row for row in wanted if row not in mine[5:]]
    return f"the next import has another store: {lost}, it has {mine[4:]}" if lost else None


def try_fault(way, folder, base, call, name):
    seen, call, problem = faults.tried_again(way, folder, base, call, name, judge)
    kind = ("refused" if seen.code != 0 else "same") if seen.is_reached() else "missed"
    return {"call": repr(call), "error": name, "problem": problem, "kind": kind, "said": seen.err[:4], "seconds": 0}


@test("each call of an import of an image and of its unpacker fails once: the image is whole or absent, and the next import clears up", limit=900)
def import_faults():
    way = ImportWay()
    with harness.Folder() as f:
        way.prepare(f, None)
        base, calls = faults.without_fault(way, f.path, "second: 0")
        chosen = list(faults.every_fault(calls))
        if not harness.LONG:
            chosen = faults.sample(chosen)
        rows = faults.in_workers(way, f.path, base, chosen, faults.WORKERS, try_fault)
    faults.tell(way, rows)
