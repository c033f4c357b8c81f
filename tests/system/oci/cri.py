# SPDX-License-Identifier: Apache-2.0
"""containerd's CRI, which a kubelet calls, with cejail-oci as the runtime of its pods."""

import json
import os

from cri_client import Cri
from harness import *  # noqa: F403


@test("a pod has two containers with logs and exec which stop and are removed", who="root", limit=240)
def _():
    with Cri() as c:
        pod = c.pod("one")
        first = c.container(pod, "first", "/bin/sh", "-c", "echo out; echo err >&2; hostname; exec sleep 1000")
        second = c.container(pod, "second", "/bin/sh", "-c", "echo two > /dev/shm/x; exit 7")
        equal(c.ended(second), (7, "Error"), "the second container's end")
        wait_until(lambda: len(c.log("first")) == 3, "the log")
        equal(sorted(c.log("first")), [("stderr", "err"), ("stdout", "one"), ("stdout", "out")], "the log")
        equal(c.status(first)[0], 1, "the state of the first")
        out, err, code = c.execute(first, "/bin/sh", "-c", "cat /dev/shm/x; echo bad >&2; exit 3")
        equal((out, err, code), ("two\n", "bad\n", 3), "exec, and the memory that the pod shares")
        equal(c.execute(first, "/bin/sh", "-c", "ls /proc | grep -c ^1$")[0], "1\n", "its own processes")
        c.cri("StopContainer", {1: first, 2: 1})
        equal(c.ended(first)[0], 137, "a container that ignores SIGTERM, as process 1 does")
        for container in (first, second):
            c.cri("RemoveContainer", {1: container})
        c.cri("StopPodSandbox", {1: pod})
        c.cri("RemovePodSandbox", {1: pod})
        equal(os.listdir(f"{c.inside}/run/containerd/runc/k8s.io"), [], "states that are left")


@test("a memory bomb in a pod is reported as out of memory", who="machine root", limit=240)
def _():
    with Cri() as c:
        pod = c.pod("bomb")
        bomb = c.container(pod, "bomb", "/bin/tail", "/dev/zero", memory=24 << 20)
        equal(c.ended(bomb), (137, "OOMKilled"), "the end")


@test("annotations of a pod restrict the network of its containers and name their results", who="root", limit=240)
def _():
    wanted = {"io.cejail.network": "public", "io.cejail.result": "./"}
    script = "for a in 10.9.9.9 169.254.169.254 8.8.8.8; do nc -w 3 $a 99 2>&1 </dev/null | head -1; done"
    with Cri() as c:
        results = f"{c.inside}/var/lib/cejail-oci/results"
        c.call("mount", "-t", "tmpfs", "none", "/var/lib").exits(0)  # in containerd's mount namespace
        c.call("mkdir", "-p", "/var/lib/cejail-oci/results").exits(0)
        pod = c.pod("closed", wanted)
        request = c.container_request(pod, "raw", "/bin/true", drop=())
        (raw,) = c.cri("CreateContainer", request)[1]
        contains(c.refused("StartContainer", {1: raw}), "CAP_NET_RAW", "the error of a container that may send raw packets")
        (id,) = c.cri("CreateContainer", c.container_request(pod, "app", "/bin/sh", "-c", script))[1]
        c.cri("StartContainer", {1: id})
        c.ended(id.decode())
        wait_until(lambda: os.path.exists(f"{results}/{id.decode()}.json"), "the result")
        with open(f"{results}/{id.decode()}.json", encoding="utf-8") as file:
            result = json.load(file)
        seen = {one["address"] for one in result["network"]["denied"]}
        true({"10.9.9.9", "169.254.169.254"} <= seen and "8.8.8.8" not in seen, f"denials: {result['network']}")


@test("containerd accepts its example configuration", who="root")
def _():
    path = os.path.join(os.path.dirname(CEJAIL), "../share/doc/cejail/examples/containerd.toml")
    with Cri() as c:
        done = c.call("containerd", "--config", path, "config", "dump").exits(0)
        for line in ('pod_annotations = ["io.cejail.*"]', 'BinaryName = "/usr/local/bin/cejail-oci"', "SystemdCgroup = true"):
            contains(done.out, line, "the configuration that containerd reads")
