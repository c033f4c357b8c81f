# SPDX-License-Identifier: Apache-2.0
"""containerd and its ctr with cejail-oci as their runtime, in a mount namespace of their own."""

from engines import *  # noqa: F403
from engines import Containerd
from harness import *  # noqa: F403


@test("ctr runs a program with its streams status terminal and mounts", who="root", limit=180)
def _():
    with Containerd() as c:
        c.task("echo", "hello").exits(0).says("hello\n")
        c.task("sh", "-c", "exit 5").exits(5)
        # ctr 1.6 loses an end of input that comes before its task exists
        feed = '(echo in; until grep -q in "$0"; do sleep 0.1; done) | "$@" > "$0" && cat "$0"'
        c.call("sh", "-c", feed, c.file("out"), "ctr", "run", "--rm",
               "--runc-binary", OCI, "--rootfs", c.rootfs, c.new_id(), "cat").exits(0).says("in\n")  # fmt: skip
        c.task("sh", "-c", "pwd; echo $A", options=("--env", "A=b", "--cwd", "/tmp")).exits(0).says("/tmp\nb\n")
        done = c.task("sh", "-c", "touch /x", options=("--read-only",)).exits(1)
        contains(done.err, "Read-only", "the message")
        c.file("data", "bound\n")
        mount = f"type=bind,src={c.path}/data,dst=/mnt/data,options=rbind:ro"
        c.task("cat", "/mnt/data", options=("--mount", mount)).exits(0).says("bound\n")
        contains(c.task("nosuch").exits(1).err, "executable file not found", "the message")
        contains(c.task("grep", "Seccomp:", "/proc/self/status", options=("--seccomp",)).exits(0).out, "2", "mode")
        words = ("run", "--rm", "-t", "--runc-binary", OCI, "--rootfs", c.rootfs, c.new_id(), "sh", "-c", "test -t 0 && tty")
        contains(c.in_terminal(*words).out, "/dev/pts/0", "the terminal")


@test("ctr executes in pauses resumes kills and deletes a task", who="root", limit=180)
def _():
    with Containerd() as c:
        name = c.new_id()
        c.ctr("run", "-d", "--runc-binary", OCI, "--rootfs", c.rootfs, name, "sleep", "1000").exits(0)
        contains(c.ctr("task", "ls").exits(0).out, "RUNNING", "ls")
        # ctr 1.6 cancels its copy of the output when the process ends: so it ends when that has come
        inside = 'echo inside; until [ -e /tmp/seen ]; do sleep 0.1; done'
        watch = '"$@" > "$0" & until grep -q inside "$0"; do sleep 0.1; done; touch "$SEEN"; wait $! && cat "$0"'
        c.call("env", f"SEEN={c.rootfs}/tmp/seen", "sh", "-c", watch, c.file("out"),
               "ctr", "task", "exec", "--exec-id", "e1", name, "sh", "-c", inside).exits(0).says("inside\n")  # fmt: skip
        c.ctr("task", "exec", "--exec-id", "e2", name, "sh", "-c", "exit 4").exits(4)
        contains(c.ctr("task", "exec", "--exec-id", "e3", name, "nosuch").exits(1).err, "executable file not found", "the message")
        # for the same reason; a terminal is not watched
        in_terminal = c.in_terminal("task", "exec", "-t", "--exec-id", "e4", name, "sh", "-c", "tty; sleep 3")
        contains(in_terminal.out, "/dev/pts/", "the terminal")
        contains(c.ctr("task", "ps", name).exits(0).out, "PID", "ps")
        c.ctr("task", "pause", name).exits(0)
        contains(c.ctr("task", "ls").exits(0).out, "PAUSED", "ls")
        c.ctr("task", "resume", name).exits(0)
        contains(c.ctr("task", "metrics", name).exits(0).out, "METRIC", "metrics")
        c.ctr("task", "kill", "-s", "9", name).exits(0)
        wait_until(lambda: "STOPPED" in c.ctr("task", "ls").out, "the end")
        c.ctr("task", "delete", name)  # its status is the task's
        lacks(c.ctr("task", "ls").exits(0).out, name, "ls")
        c.ctr("container", "rm", name).exits(0)


@test("twenty containers of containerd run at once", who="root", limit=240)
def _():
    with Containerd() as c:
        names = [c.new_id() for _ in range(20)]
        script = 'for id in "$@"; do ctr run --rm --runc-binary "$OCI" --rootfs "$ROOT" "$id" sh -c "echo $id" & done; wait'
        words = ("env", f"OCI={OCI}", f"ROOT={c.rootfs}", "sh", "-c", script, "sh", *names)
        done = c.call(*words, limit=120).exits(0)
        equal(sorted(done.out.split()), sorted(names), "the output")
        equal(c.ctr("container", "ls", "-q").out, "", "containers that are left")
