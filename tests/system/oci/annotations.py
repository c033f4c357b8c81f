# SPDX-License-Identifier: Apache-2.0
"""cejail-oci: the annotations io.cejail.network, io.cejail.result and io.cejail.profile."""

import ctypes
import json
import os
import stat
import subprocess

import internet
from bundles import *  # noqa: F403
from harness import *  # noqa: F403

SCHEMA = "cejail.oci-result/1"


def annotate(b, **values):
    """annotate(b, network="public"): "__" stands for a dot, "_" for a dash."""
    names = {name: "io.cejail." + name.replace("__", ".").replace("_", "-") for name in values}
    b.config["annotations"] = {names[name]: value for name, value in values.items()}


def run(b, *options):
    """`run` with the bundle as the directory of results."""
    b.save()
    return b.oci("--result-dir", b.path, "run", "--bundle", b.path, *options, b.new_id())


def read(b, name="result.json"):
    with open(b / name, encoding="utf-8") as file:
        return json.load(file)


def result_of(b, script, **more):
    annotate(b, result=b / "result.json", **more)
    b.process["args"] = ["/bin/sh", "-c", script]
    done = run(b)
    return done, read(b)


def ours():
    return [words for words in descendants().values() if "cejail" in words]


# --- the result ---------------------------------------------------------------------------------


@test("a result has the exit status and is null where nothing is known")
def _():
    with Bundle() as b:
        done, result = result_of(b, "exit 3")
        done.exits(3)
        equal((result["schema"], result["status"], result["exit_code"], result["signal"]), (SCHEMA, "exited", 3, None), "the end")
        equal(result["network"], None, "the network")
        true(result["created"] < result["ended"], f"times: {result}")
        equal(stat.S_IMODE(os.stat(b / "result.json").st_mode) & 0o133, 0, "the mode")
        done, result = result_of(b, "exit 0")  # replaces its own kind
        equal(result["exit_code"], 0, "the second exit code")
        equal([name for name in os.listdir(b.path) if name.startswith(".")], [], "files that are left")
        wait_until(lambda: not ours(), "the end of the result process")


@test("a killed program's result has the signal")
def _():
    with Bundle("sleep 6000") as b:
        annotate(b, result=b / "result.json")
        b.save()
        with open(b / "log", "wb") as log:
            words = [OCI, "--root", b.root, "--result-dir", b.path, "run", "--detach", "--bundle", b.path, "killed"]
            finish(subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)).exits(0)
        true(not os.path.exists(b / "result.json"), "the result is there before the end")
        wait_until(lambda: len(ours()) == 1, "the result process to be the only one")
        b.delete("killed", "--force").exits(0)  # it returns when the result is written
        result = read(b)
        equal(result["id"], "killed", "the id")
        if result["status"]:  # an older kernel tells it only to who is quick
            equal((result["status"], result["signal"], result["exit_code"]), ("signaled", 9, None), "the end")
        wait_until(lambda: not ours(), "the end of the result process")


@test("a slash at the end of the result makes the id the name")
def _():
    with Bundle("true") as b:
        b.folder("results")
        annotate(b, result=b / "results/")
        run(b).exits(0)
        (name,) = os.listdir(b / "results")
        equal(name, read(b, f"results/{name}")["id"] + ".json", "the name")


@test("a container of which create fails has no result")
def _():
    with Bundle("true") as b:
        annotate(b, result=b / "result.json")
        b.process["args"] = ["/nosuch"]
        run(b).exits(1)
        true(not os.path.exists(b / "result.json"), "there is a result")
        wait_until(lambda: ours() == [], "the end of the result process")


@test("a program out of memory has the result oom", who="machine root")
def _():
    with Bundle() as b:
        b.linux["resources"] = {"memory": {"limit": 16 << 20, "swap": 16 << 20}, "pids": {"limit": 20}}
        _, result = result_of(b, "exec tail /dev/zero")
        equal((result["status"], result["signal"]), ("oom", 9), "the end")
        memory = result["limits"]["memory"]
        equal((memory["value"], memory["hit"]), (16 << 20, True), "the limit")
        true(memory["kills"] >= 1, f"kills: {memory}")
        _, result = result_of(b, "for i in $(seq 40); do sleep 1 & done; wait")
        equal((result["limits"]["pids"]["value"], result["limits"]["pids"]["hit"]), (20, True), "the limit of processes")
        equal(result["limits"]["memory"]["hit"], False, "the limit of memory")


@test("root writes results only below the directory of results", who="root")
def _():
    with Bundle("true") as b:
        b.folder("results")
        outside = b.folder("outside")
        os.symlink(outside, b / "results/link")
        places = (
            (b / "outside/x.json", "not below"), (b / "resultsx", "not below"), ("../outside/x.json", "open the directory"),
            (b / "results/../outside/x.json", "open the directory"), (b / "results/link/x.json", "open the directory"),
            (b / "results/link/", "open the directory"), ("..", "names no file"), (b / "results/nosuch/x.json", "open the directory"),
        )  # fmt: skip
        for place, text in tried(len(places)) or places:
            annotate(b, result=place)
            b.save()
            refused_oci(b.oci("--result-dir", b / "results", "run", "--bundle", b.path, b.new_id()), "io.cejail.result", text)
        equal(os.listdir(outside), [], "files outside")
        os.symlink(b / "outside/y", b / "results/named")
        annotate(b, result="named")
        b.save()
        refused_oci(b.oci("--result-dir", b / "results", "run", "--bundle", b.path, b.new_id()), "is not a result")
        os.chmod(b / "results", 0o777)
        annotate(b, result="x.json")
        b.save()
        refused_oci(b.oci("--result-dir", b / "results", "run", "--bundle", b.path, b.new_id()), "another user may write")
        annotate(b, result=b / "x.json")
        refused_oci(b.run(), "io.cejail.result")  # without the option: /var/lib/cejail-oci/results


@test("no other file is replaced by a result")
def _():
    with Bundle("true") as b:
        for content in ("", "precious", '{"schema":"cejail.result/1"}'):
            b.file("result.json", content)
            annotate(b, result=b / "result.json")
            refused_oci(run(b), "is not a result")
            with open(b / "result.json", encoding="utf-8") as file:
                equal(file.read(), content, "the file")


# --- names ----------------------------------------------------------------------------------------


@test("annotations that can not be honoured are errors and others are ignored")
def _():
    with Bundle("true") as b:
        wrong = (
            ({"netwrok": "public"}, "did you mean 'io.cejail.network'"), ({"network": "private"}, "neither public nor allow:"),
            ({"network": "allow:"}, "io.cejail.network"), ({"network": "allow:a..b"}, "io.cejail.network"),
            ({"network__name_servers": "10.0.0.1"}, "'io.cejail.network' is missing"),
            ({"network": "public", "network__name_servers": "dns.example"}, "not an address"),
            ({"network": "public", "network__name_servers": "169.254.169.254"}, "neither a public nor a private"),
            ({"network": "allow:10.0.0.1:80"}, "allow-private"), ({"result": ""}, "it is empty"),
            ({"profile": "../x"}, "no name of a profile"),
        )  # fmt: skip
        for values, text in tried(len(wrong)) or wrong:
            annotate(b, **values)
            refused_oci(run(b), text)
        b.config["annotations"] = {"io.cejailx": "x", "com.example": "y"}
        run(b).exits(0)


# --- the network ----------------------------------------------------------------------------------

DENIED = ("10.1.2.3", "169.254.169.254", "192.168.1.1", "100.64.0.1", "198.18.0.3")
OPEN = "8.8.8.8"


def joined(b, net):
    """The container joins the network of the tests' Internet."""
    b.namespace("network", f"/proc/{net.stations['host'][0]}/ns/net")


def forget(net):
    """The rules stay with the network: take them away, or the Internet's own check finds them."""
    pid = net.stations["host"][0]
    subprocess.run(["nsenter", "-t", str(pid), "-n", "nft", "flush", "ruleset"], check=True, env=environment())


def attempt(address, port=80):
    return f"nc -w 5 {address} {port} </dev/null >/dev/null 2>&1 && echo {address} open || echo {address} closed"


@test("in a network of the engine closed ranges are refused and reported and the rest is open", who="root")
def _():
    with internet.Internet() as net, Bundle() as b:
        joined(b, net)
        plain = ";".join(attempt(address) for address in (*DENIED, OPEN))
        b.process["args"] = ["/bin/sh", "-c", plain]
        contains(run(b).exits(0).out, "10.1.2.3 open\n169.254.169.254 open", "without the annotation")
        done, result = result_of(b, plain, network="public")
        equal(done.out.split("\n")[:-1], [*(f"{address} closed" for address in DENIED), f"{OPEN} open"], "with it")
        seen = {(one["address"], one["port"], one["protocol"]): one for one in result["network"]["denied"]}
        for address in DENIED:
            true((address, 80, "tcp") in seen, f"{address} is not reported: {result['network']}")
        equal(seen["169.254.169.254", 80, "tcp"]["class"], "metadata", "its class")
        forget(net)


@test("an allow list and name servers are all that is open", who="root")
def _():
    with internet.Internet() as net, Bundle() as b:
        joined(b, net)
        script = ";".join(attempt(*one) for one in ((OPEN,), ("8.8.4.4",), ("10.1.2.3", 53), ("10.1.2.3",), ("10.9.9.9",)))
        wanted = {"network": f"allow:{OPEN}:80,10.9.9.9", "network__name_servers": "10.1.2.3", "network__allow_private": "true"}
        done, result = result_of(b, script, **wanted)
        equal(
            done.out.split("\n")[:-1],
            [f"{OPEN} open", "8.8.4.4 closed", "10.1.2.3 open", "10.1.2.3 closed", "10.9.9.9 open"], "what is open",
        )  # fmt: skip
        classes = {one["class"] for one in result["network"]["denied"]}
        equal(classes, {"not_allowed", "private"}, "classes")
        forget(net)


@test("two containers of one network have the rules of both", who="root")
def _():
    with internet.Internet() as net, Bundle() as b:
        joined(b, net)
        b.process["args"] = ["/bin/sh", "-c", attempt(OPEN)]
        annotate(b, network="public")
        run(b).exits(0).says(f"{OPEN} open\n")
        run(b).exits(0).says(f"{OPEN} open\n")
        annotate(b, network="allow:8.8.4.4")
        run(b).exits(0).says(f"{OPEN} closed\n")
        annotate(b, network="public")
        run(b).exits(0).says(f"{OPEN} closed\n")
        forget(net)


@test("a container with a right over its network gets no rules and no start", who="anybody")
def _():
    with Bundle("true") as b:
        annotate(b, network="public")
        run(b).exits(0)
        caps = "NET_ADMIN NET_RAW SYS_ADMIN SYS_PTRACE SYS_MODULE BPF PERFMON"
        for cap in (f"CAP_{name}" for name in caps.split()):
            for kind in ("bounding", "inheritable"):
                changed = b.process["capabilities"]
                b.process["capabilities"] = {**changed, kind: [*changed.get(kind, ()), cap]}
                refused_oci(run(b), "io.cejail.network", cap, "drop the capability")
                b.process["capabilities"] = changed
        b.namespace("network", "/proc/self/ns/net")
        refused_oci(run(b), "host's own network namespace")
        b.namespace("network")
        refused_oci(run(b), "host's network")


@test("exec gives no right over the rules")
def _():
    with Bundle("sleep 6000") as b:
        annotate(b, network="public")
        id = b.started()
        refused_oci(b.oci("exec", "--cap", "CAP_NET_ADMIN", id, "true"), "CAP_NET_ADMIN")
        b.oci("exec", id, "true").exits(0)


@test("the rules of a new network stand when a hook connects it, and the result has what they denied", who="accounts")
def _():
    with Bundle(attempt("10.5.5.5")) as b:
        script = "ip link add d0 type veth peer name d1; ip link set d1 up; ip addr add 10.5.5.1/24 dev d0; ip link set d0 up"
        path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
        hook = {"path": "/bin/sh", "args": ["sh", "-c", script], "env": [path]}
        b.config["hooks"] = {"createContainer": [hook]}  # in the container's network, with the rights of its creator
        annotate(b, network="public", result=b / "result.json")
        run(b).exits(0).says("10.5.5.5 closed\n")
        (denied,) = [one for one in read(b)["network"]["denied"] if one["protocol"] == "tcp"]
        equal((denied["address"], denied["port"], denied["class"]), ("10.5.5.5", 80, "private"), "the denial")


# --- the profile ----------------------------------------------------------------------------------


@test("a profile adds its filter and no_new_privs to the engine's filter")
def _():
    with Bundle("grep -E '^(Seccomp|Seccomp_filters|NoNewPrivs):' /proc/self/status; unshare -U true || echo refused; chmod 600 /tmp") as b:
        b.process["noNewPrivileges"] = False
        if WHO != "root":  # without no_new_privs a filter needs a right in the namespace, which these have
            b.process["noNewPrivileges"] = True
        b.process["args"] = ["/bin/busybox", "sh", "-c", b.process["args"][2].replace("unshare", "/bin/busybox unshare")]
        b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
            {"names": ["chmod", "fchmodat", "fchmodat2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]}  # fmt: skip
        annotate(b, profile="base")
        done = run(b).exits(1)
        contains(done.out, "NoNewPrivs:\t1\n", "no_new_privs")
        contains(done.out, "Seccomp:\t2\n", "the filter")
        contains(done.out, "refused\n", "unshare(2), which the profile refuses")
        contains(done.err, "/tmp: Operation not permitted", "chmod(2), which the engine refuses")
        if "Seccomp_filters" in done.out:
            contains(done.out, "Seccomp_filters:\t2\n", "the number of filters")


@test("a profile applies to exec")
def _():
    with Bundle("sleep 6000") as b:
        annotate(b, profile="base")
        id = b.started()
        done = b.oci("exec", id, "/bin/busybox", "unshare", "-U", "true")
        true(done.code != 0 and "not permitted" in done.err, f"unshare(2) is allowed: {done!r}")
        contains(b.oci("exec", id, "grep", "NoNewPrivs", "/proc/self/status").exits(0).out, "1", "no_new_privs")


@test("with a profile no program from outside of the tree runs and no device is made")
def _():
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 2:  # landlock_create_ruleset(2), for the version
        raise Skip("this kernel has no Landlock")
    with Bundle() as b:
        b.process["args"] = ["/bin/sh", "-c", "mknod /tmp/n c 1 3 || echo refused; cp /bin/busybox /busybox; mv /busybox /tmp/; /tmp/busybox echo runs"]
        b.process["capabilities"]["effective"] += ["CAP_MKNOD"]
        b.process["capabilities"]["permitted"] += ["CAP_MKNOD"]
        b.process["capabilities"]["bounding"] += ["CAP_MKNOD"]
        annotate(b, profile="base")
        contains(run(b).exits(0).out, "refused\nruns\n", "what the program did")


@test("a profile leaves inet sockets to the network that the engine made")
def _():
    with Bundle() as b:
        b.process["args"] = ["/bin/busybox", "nc", "-w", "1", "127.0.0.1", "9"]
        annotate(b, profile="base")
        done = run(b)
        true("onnection refused" in done.err or "unreachable" in done.err, f"socket(2) and connect(2): {done!r}")


@test("a profile that can not be applied is an error")
def _():
    with Bundle("true") as b:
        annotate(b, profile="nosuch")
        refused_oci(run(b), "io.cejail.profile", "nosuch")
        annotate(b, profile="base")
        b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["seccomp"], "action": "SCMP_ACT_ERRNO"}]}
        refused_oci(run(b), "must allow seccomp(2)")
        b.linux["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": b / "agent",
                              "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}]}  # fmt: skip
        refused_oci(run(b), "exclude each other")


@test("the annotations of the example for Kubernetes are accepted")
def _():
    path = os.path.join(os.path.dirname(CEJAIL), "../share/doc/cejail/examples/kubernetes.yml")
    with open(path, encoding="utf-8") as file:
        pairs = [line.strip().split(": ", 1) for line in file if line.strip().startswith("io.cejail.")]
    equal(len(pairs), 4, "annotations of the example")
    with Bundle("true") as b:
        b.config["annotations"] = dict(pairs)
        run(b).exits(0)
        (result,) = [name for name in os.listdir(b.path) if name.startswith("t") and name.endswith(".json")]
        equal(read(b, result)["status"], "exited", "the end")
