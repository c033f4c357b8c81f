# SPDX-License-Identifier: Apache-2.0
"""Images of podman.  A subject of its own, because the test machine has no podman."""

import os
import subprocess

from archives import *  # noqa: F403


@test("what podman save writes is imported and runs", who="root", limit=120)
def _():
    with store() as s:
        podman = [need("podman"), "--root", s.f / "root", "--runroot", s.f / "run", "--storage-driver", "vfs"]
        s.f.file("root.tar", tar(*busybox()))
        env = {**s.env, "PATH": os.environ["PATH"], "HOME": s.f.path}
        change = ["--change", "ENV FRUIT=plum", "--change", 'CMD ["/bin/sh","-c","echo $FRUIT"]']
        done = subprocess.run([*podman, "import", *change, s.f / "root.tar", "localhost/t:1"], env=env, capture_output=True)
        if done.returncode != 0:
            raise Skip(f"podman can't import here: {done.stderr.decode()[-200:]}")
        for form in ("docker-archive", "oci-archive", "oci-dir"):
            path = s.f / form
            subprocess.run([*podman, "save", "-q", "--format", form, "-o", path, "localhost/t:1"], env=env, check=True,
                           capture_output=True)  # fmt: skip
            s.add(form, path).exits(0)
            s.run(form).exits(0).says("plum\n")
