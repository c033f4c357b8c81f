# SPDX-License-Identifier: Apache-2.0
"""The network of a session changes while it lives: PUT /v1/sessions/ID/network, cejail session network."""

import json
import os

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from network_closed import all_refused, closed_attempts, nothing_came
from libraries import lib
from service import Service
from sessions import PYTHON, Session
from upstreams import ask, use, with_key

OPEN = {"mode": "public"}
SHUT = {"mode": "none"}


def only(*targets, deny=()):
    return {"mode": "public", "allow": list(targets), **({"deny": list(deny)} if deny else {})}


def tries(session, *wanted):
    """How each [protocol, address, port] went, from one exec."""
    code = TRY + f"print([attempt(*one).split(':')[0] for one in {list(wanted)!r}])"
    value = session.call("POST", "/execs", {"command": [PYTHON, "-c", code]}).result
    equal(value["status"], "exited", f"the exec: {value['error']} {value['stderr']['text'][-300:]}")
    return json.loads(value["stdout"]["text"].replace("'", '"'))


def change(session, body):
    answer = session.call("PUT", "/network", body).has(200).json
    equal(answer["network"], {"allow": [], **body}, "the answer")
    equal(session.show()["network"], answer["network"], "the session")


def public_session(service, **more):
    return Session(service, profile="python", network=more.pop("network", "public"), **more)


LISTED, UNLISTED = ["tcp", "public.test", 80], ["tcp", OTHER4, 80]


@test("open for the installation, closed for the run: each change holds for the next packet, and can be taken back")
def _():
    with Internet() as net, Service(**net.inside) as s, public_session(s) as session:
        equal(tries(session, LISTED, UNLISTED), ["answered"] * 2, "as it was created")
        change(session, only("public.test:80"))
        went = tries(session, LISTED, UNLISTED, ["tcp", "other.test", 80])
        equal((went[0], went[1] in REFUSED, went[2]), ("answered", True, "no address"), f"with a list: {went}")
        change(session, SHUT)
        net.forget()
        went = tries(session, LISTED, ["tcp", PUBLIC4, 80], UNLISTED)
        equal((went[0], all(word in REFUSED for word in went[1:])), ("no address", True), f"with nothing: {went}")
        equal((net.seen(), net.world("queries")), ({}, []), "what left")
        change(session, OPEN)
        equal(tries(session, LISTED, UNLISTED), ["answered"] * 2, "all that is public again")
        change(session, only("*.wild.test"))
        went = tries(session, ["tcp", "a.wild.test", 80], LISTED, ["tcp", "10.1.2.3", 80])
        equal((went[0], went[1], went[2] in REFUSED), ("answered", "no address", True), f"with a wildcard: {went}")


@test("a change before the network is used is what it begins with")
def _():
    with Internet() as net, Service(**net.inside) as s, public_session(s) as session:
        change(session, only("public.test:80"))
        went = tries(session, LISTED, UNLISTED)
        equal((went[0], went[1] in REFUSED), ("answered", True), f"{went}")


@test("a change resets the connections that it closes, and lets those of names that stay go on")
def _():
    code = TRY + r"""
def begin(name):
    s = socket.create_connection((name, 8080), 10)
    s.settimeout(10)
    s.sendall(b"GET / HTTP/1.0\r\n")
    return s
def end(s):
    try:
        s.sendall(b"\r\n")
        return "answered" if s.recv(100) else "closed"
    except OSError as problem:
        return errno.errorcode.get(problem.errno, str(problem))
kept, closed = begin("a.wild.test"), begin("deep.a.wild.test")
sys.stdin.readline()
print(end(kept), end(closed), flush=True)
"""
    with Internet() as net, Service(**net.inside) as s:
        with public_session(s, network=only("*.wild.test", "deep.a.wild.test")) as session:
            begun = session.call("POST", "/execs", {"command": [PYTHON, "-c", code], "open_stdin": True, "detach": True}).has(202).json
            path = f"/execs/{begun['id']}"
            wait_until(lambda: net.seen() and net.openings("20.30.40.51", 8080) > 0, "both connections")
            change(session, only("a.wild.test"))
            session.call("POST", f"{path}/stdin", {"text": "\n", "eof": True}).has(200)
            went = session.call("GET", f"{path}?wait=30s").has(200).json["result"]["stdout"]["text"].split()
            equal((went[0], went[1] in ("ECONNRESET", "ECONNREFUSED", "EPIPE")), ("answered", True), f"{went}")


@test("a change denies a name and addresses below what is open, resets their connections, and can be taken back")
def _():
    code = TRY + r"""
s = socket.create_connection(("deep.a.wild.test", 80), 10)
s.settimeout(10)
s.sendall(b"GET / HTTP/1.0\r\n")
print("begun", flush=True)
sys.stdin.readline()
try:
    s.sendall(b"\r\n")
    print("answered" if s.recv(100) else "closed")
except OSError as problem:
    print(errno.errorcode.get(problem.errno, str(problem)))
"""
    deep, shared = ["tcp", "deep.a.wild.test", 80], ["tcp", "a.wild.test", 80]
    with Internet() as net, Service(**net.inside) as s, public_session(s, network={"allow_by": "address", **only("*.wild.test")}) as session:
        begun = session.call("POST", "/execs", {"command": [PYTHON, "-c", code], "open_stdin": True, "detach": True}).has(202).json
        wait_until(lambda: net.seen() and net.openings("20.30.40.51", 80) > 0, "the connection")
        change(session, only("*.wild.test", deny=["deep.a.wild.test"]))
        session.call("POST", f"/execs/{begun['id']}/stdin", {"text": "\n", "eof": True}).has(200)
        went = session.call("GET", f"/execs/{begun['id']}?wait=30s").has(200).json["result"]["stdout"]["text"].split()
        true(went[0] == "begun" and went[1] in ("ECONNRESET", "ECONNREFUSED", "EPIPE"), f"the old connection: {went}")
        went = tries(session, deep, ["tcp", "20.30.40.51", 80], shared)
        equal((went[0], went[1] in REFUSED, went[2]), ("no address", True, "answered"), f"one name denied: {went}")
        change(session, {**OPEN, "deny": ["*.wild.test", OTHER4]})
        went = tries(session, deep, UNLISTED, LISTED, ["tcp", "other.test", 80])
        equal((went[0], went[1] in REFUSED, went[2]), ("no address", True, "answered"), f"all but some: {went}")
        session.call("PUT", "/network", only("*.wild.test", deny=["a.test:80"])).has(400)
        session.call("PUT", "/network", {**OPEN, "deny": ["20.0.0.1/8"]}).has(400)
        contains(json.dumps(session.call("PUT", "/network", {**OPEN, "deny": ["a.test"] * 65}).has(400).json), "64")
        equal(session.show()["network"], {"mode": "public", "allow": [], "deny": ["*.wild.test", OTHER4]}, "the rules")
        change(session, only("*.wild.test"))
        equal(tries(session, deep, shared), ["answered"] * 2, "nothing denied")


@test("a change that denies an alias closes the addresses that were opened through it")
def _():
    opened = ["tcp", "20.30.40.51", 80]
    with Internet() as net, Service(**net.inside) as s, public_session(s, network={"allow_by": "address", **only("*.alias.test")}) as session:
        equal(tries(session, ["tcp", "open.alias.test", 80], opened), ["answered"] * 2, "through an alias")
        change(session, only("*.alias.test", deny=["*.other.test"]))
        equal(tries(session, opened), ["answered"], "of another name")
        change(session, only("*.alias.test", deny=["*.wild.test"]))
        went = tries(session, opened, ["tcp", "open.alias.test", 80])
        true(went[0] in REFUSED and went[1] == "no address", f"the alias denied: {went}")


@test("through each change each row of the range table is refused to a program that goes on, and no packet comes through", limit=180)
def _():
    wanted = closed_attempts()
    code = TRY + f"""
for _ in range(6):
    print([attempt(*one).split(':')[0] for one in {wanted!r}], flush=True)
    sys.stdin.readline()
"""
    with Internet() as net, Service(**net.inside) as s, public_session(s) as session:
        name = session.call("POST", "/execs", {"command": [PYTHON, "-c", code], "open_stdin": True, "detach": True, "timeout": "150s"}).has(202).json["id"]
        for body in (only("public.test:80"), SHUT, only("*.wild.test", deny=["a.wild.test"]), OPEN, {**OPEN, "deny": ["*.wild.test"]}, SHUT):
            change(session, body)
            session.call("POST", f"/execs/{name}/stdin", {"text": "\n"}).has(200)
        lines = session.finished(name)["stdout"]["text"].splitlines()
        equal(len(lines), 6, "rounds")
        for line in lines:
            all_refused(wanted, json.loads(line.replace("'", '"')))
        nothing_came(net, but=(53,))
    tried(6 * len(wanted))


@test("what a session's profile denies stays denied by every change, and by its first rules")
def _():
    with Internet() as net, Folder() as f:
        f.file("config/cejail/profiles/shut.json", '{"extends": "python", "network": {"mode": "public", "deny": ["other.test"]}}')
        with Service(env={"XDG_CONFIG_HOME": f / "config"}, **net.inside) as s, Session(s, profile="shut", network={"deny": ["20.30.40.51"]}) as session:
            equal(session.show()["network"], {"mode": "public", "allow": [], "deny": ["other.test", "20.30.40.51"]}, "as created")
            went = tries(session, LISTED, UNLISTED, ["tcp", "20.30.40.51", 80])
            true(went[0] == "answered" and went[1] in REFUSED and went[2] in REFUSED, f"as created: {went}")
            for body in (OPEN, only("other.test", OTHER4, "public.test", "20.30.40.51")):
                answer = session.call("PUT", "/network", body).has(200).json
                equal(answer["network"], {"allow": [], **body, "deny": ["other.test"]}, "the answer")
                went = tries(session, LISTED, UNLISTED, ["tcp", "other.test", 80], ["tcp", "20.30.40.51", 80])
                true(went[1] in REFUSED and went[2] in (*REFUSED, "no address"), f"denied by the profile: {went}")
                equal([went[0], went[3]], ["answered"] * 2, f"open: {went}")


@test("a change resets the connections whose names the new list lacks, though it opens their address")
def _():
    code = r"""
import socket, ssl, sys
def begin(name, port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("a.wild.test", port), 10), server_hostname=name)
def end(s):
    try:
        s.sendall(b"hello")
        return s.recv(100).decode().split()[0]
    except OSError as problem:
        return type(problem).__name__
kept, closed = begin("a.wild.test", 443), begin("b.wild.test", 443)
print("begun", flush=True)
ready = socket.create_connection(("a.wild.test", 8080), 10)
sys.stdin.readline()
print(end(kept), end(closed))
for name in ("a.wild.test", "b.wild.test"):
    try:
        print(end(begin(name, 443)))
    except OSError as problem:
        print(type(problem).__name__)
"""
    with Internet() as net, Service(**net.inside) as s:
        network = {"allow_by": "name", **only("*.wild.test")}
        with public_session(s, network=network) as session:
            begun = session.call("POST", "/execs", {"command": [PYTHON, "-c", code], "open_stdin": True, "detach": True}).has(202).json
            path = f"/execs/{begun['id']}"
            wait_until(lambda: net.seen() and net.openings(PUBLIC4, 8080) > 0, "a third connection, after both handshakes")
            change(session, only("a.wild.test"))
            session.call("POST", f"{path}/stdin", {"text": "\n", "eof": True}).has(200)
            result = session.call("GET", f"{path}?wait=30s").has(200).json["result"]
            went = result["stdout"]["text"].split()
            equal((went[1], went[3], "tls" in (went[2], went[4])), ("tls", "tls", False), f"{went} {result['stderr']}")
            equal([row["name"] for row in result["network"]["denied"]], ["b.wild.test"], "denied")


@test("a program with all descriptors on their way that its user may have keeps no rule from being changed")
def _():
    code = f"ADDRESS = {PUBLIC4!r}\n" + r"""
import array, os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held, sent = [], 0
fds = array.array("i", [os.open("/dev/null", os.O_RDONLY)] * 250).tobytes()
while sent < 100_000:  # unix(7) ETOOMANYREFS; root has no such limit, but others, and the test is the same
    pair = socket.socketpair()
    pair[0].setblocking(False)
    held.append(pair)
    try:
        pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    except OSError as problem:
        break
    sent += 250
ready = socket.create_connection((ADDRESS, 8080), 10)  # its address is open: names need a descriptor
sys.stdin.readline()
print(sent >= 250)
"""
    with Internet() as net, Service(**net.inside) as s:
        with public_session(s, network=only("public.test", "*.wild.test")) as session:
            equal(tries(session, LISTED), ["answered"], "as it was created")
            begun = session.call("POST", "/execs", {"command": [PYTHON, "-c", code], "open_stdin": True, "detach": True}).has(202).json
            wait_until(lambda: net.openings(PUBLIC4, 8080) > 0, "the program's connection")
            change(session, only("*.wild.test"))
            session.call("POST", f"/execs/{begun['id']}/stdin", {"text": "\n", "eof": True}).has(200)
            result = session.call("GET", f"/execs/{begun['id']}?wait=30s").has(200).json["result"]
            equal(result["stdout"]["text"], "True\n", f"{result['stderr']}")
            equal((tries(session, LISTED)[0], session.show()["network"]["allow"]), ("no address", ["*.wild.test"]), "then")


@test("a change that is not valid, or that its caller may not ask for, leaves the rules as they were")
def _():
    with Internet() as net, Service(**net.inside) as s, public_session(s, network=only("public.test:80")) as session:
        for body, word in (
            ({"mode": "wide"}, "wide"), (only("10.0.0.1"), "private"), (only("*.test:0"), "0"), (only("*.com"), "*.example.com"),
            (only("https://public.test/"), "https"), ({"mode": "public", "allow_private": True}, "allow_private"),
            ({"mode": "public", "uplink": "host"}, "uplink"), ("[]", "object"), (only(*["a.test"] * 65), "64"),
        ):  # fmt: skip
            contains(json.dumps(session.call("PUT", "/network", body).has(400).json), word, f"{body}")
        equal(session.show()["network"], {"mode": "public", "allow": ["public.test:80"]}, "the rules")
        went = tries(session, LISTED, UNLISTED)
        equal((went[0], went[1] in REFUSED), ("answered", True), f"{went}")
    with Folder() as f:
        f.file("config/cejail/profiles/listed.json", '{"extends": "base", "network": {"mode": "public", "allow": ["*.wild.test:443"]}}')
        with Service(env={"XDG_CONFIG_HOME": f / "config"}, config={"callers": {"default": {"network": "profile"}, f"uid:{os.getuid()}": {"network": "profile"}}}) as s:
            with Session(s, profile="listed", network="public") as session:
                change(session, only("*.wild.test:443"))
                session.call("PUT", "/network", only("public.test")).has(403, "above_ceiling")
                change(session, SHUT)
    with Service() as s, Session(s, network="none") as session:
        contains(json.dumps(session.call("PUT", "/network", OPEN).has(400).json), "without a network", "a session without one")
    with Service() as s:
        s.call("PUT", "/v1/sessions/nobody/network", OPEN).has(404)


@test("with ?narrow a change closes more of what is open, and each that would open more leaves the rules and says what is open")
def _():
    with Internet() as net, Service(**net.inside) as s, public_session(s) as session:
        def narrow(body, **now):
            equal(session.call("PUT", "/network?narrow", body).has(200).json["network"], {"allow": [], "mode": "public", **now}, "the answer")

        def stays(body, *words):
            before = session.show()["network"]
            error = session.call("PUT", "/network?narrow", body).has(400, "bad_request").json["error"]
            for word in words:
                contains(error["message"] + " " + error["hint"], word, f"{body}")
            equal(session.show()["network"], before, "the rules")

        narrow({**OPEN, "deny": [OTHER4]}, deny=[OTHER4])
        went = tries(session, LISTED, UNLISTED)
        equal((went[0], went[1] in REFUSED), ("answered", True), f"all but one: {went}")
        narrow(only("public.test:80", "a.wild.test"), allow=["public.test:80", "a.wild.test"], deny=[OTHER4])
        stays(only("other.test"), "'other.test' is not one of", "'public.test:80', 'a.wild.test'")
        stays(only("*.wild.test"), "'*.wild.test' is not one of")
        narrow(only("public.test:80"), allow=["public.test:80"], deny=[OTHER4])
        stays(only("a.wild.test"), "'a.wild.test' is not one of")
        narrow(OPEN, allow=["public.test:80"], deny=[OTHER4])
        went = tries(session, LISTED, ["tcp", "a.wild.test", 80], UNLISTED)
        equal((went[0], went[1], went[2] in REFUSED), ("answered", "no address", True), f"one: {went}")
        narrow(SHUT, mode="none")
        narrow(SHUT, mode="none")
        for body in (OPEN, only("public.test:80"), {**OPEN, "deny": [OTHER4]}):
            stays(body, "closed", "can't open it again")
        session.call("PUT", "/network?narrow=1", SHUT).has(400)
        session.call("PUT", "/network?wait=1s", SHUT).has(400)
        equal(tries(session, LISTED)[0], "no address", "nothing")


@test("a change is an event of the programs that run, and the next result has it and the rules in force")
def _():
    def rules(value):
        return value["network"].get("rules")

    with Internet() as net, Service(**net.inside) as s, public_session(s) as session:
        equal(rules(session.post("true").result), None, "of a session that was not changed")
        sleeper = lib.Client(s.socket).attach(session.id).stream(command=["/bin/sh", "-c", "until [ -e /box/go ]; do sleep 0.05; done"])
        first = next(sleeper)  # from then on it is told
        while_it_runs = only("public.test:80", deny=["other.test"])
        change(session, while_it_runs)
        session.says("true", "")  # its result is the first with the change
        session.says("touch /box/go", "")
        lines = [first.data, *(event.data for event in sleeper)]
        events = [line for line in lines if line["type"] == "network"]
        equal([event["rules"] for event in events], [{"changed": True, **while_it_runs}], "the event")
        true(0 <= events[0]["at_ms"] <= lines[-1]["result"]["usage"]["wall_ms"] + 1000 * SLOW, f"when: {events}")
        equal(rules(lines[-1]["result"]), {"changed": False, **while_it_runs}, "of the exec that ran meanwhile")
        change(session, SHUT)
        equal(rules(session.post("true").result), {"changed": True, "allow": [], **SHUT}, "of the next exec")
        equal(rules(session.post("true").result), {"changed": False, "allow": [], **SHUT}, "of the one after that")
        session.call("PUT", "/network", only("10.0.0.1")).has(400)
        equal(rules(session.post("true").result)["changed"], False, "after a change that failed")
        change(session, OPEN)
        equal(rules(session.post("true").result), {"changed": True, "allow": [], **OPEN}, "open again")
        many = [f"{'x' * 60}.{'y' * 60}.{'z' * 60}.n{i}.example:443" for i in range(64)]
        change(session, only(*many, deny=[name[:-4] for name in many]))
        equal(rules(session.post("true").result), {"changed": True, **only(*many, deny=[name[:-4] for name in many])}, "as many as there may be")


@test("cejail session network shows and changes what a session opens")
def _():
    with Internet() as net, Service(**net.inside) as s, public_session(s) as session:
        verb = ("session", "network", f"--remote={s.socket}", session.id)
        equal(cejail(*verb).exits(0).out, "public\n", "as created")
        equal(cejail(*verb, "--allow", "*.wild.test:443", "--allow", "public.test").exits(0).out, "*.wild.test:443\npublic.test\n", "a list")
        equal(cejail(*verb).exits(0).out, "*.wild.test:443\npublic.test\n", "shown")
        equal(cejail(*verb, "--none").exits(0).out, "none\n", "nothing")
        denied = cejail(*verb, "--network", "public", "--deny", "other.test", "--deny", OTHER4).exits(0).out
        equal(denied, f"public\n!other.test\n!{OTHER4}\n", "all but some")
        equal(cejail(*verb, "--allow", "*.wild.test", "--deny", "a.wild.test").exits(0).out, "*.wild.test\n!a.wild.test\n", "a list")
        refused(cejail(*verb, "--deny", "a.wild.test"), "--deny", "--network public")
        refused(cejail(*verb, "--none", "--deny", "a.wild.test"), "--deny", "--none")
        equal(json.loads(cejail(*verb, "--network", "public", "--json").exits(0).out)["network"], {"mode": "public", "allow": []}, "all")
        refused(cejail(*verb, "--none", "--allow", "public.test"), "--allow", "--none")
        refused(cejail(*verb, "--allow", "10.0.0.1"), "private")


@test("in a session each exec counts its own requests, and a caller without host_paths may name no server", limit=180)
def _():
    def counted(count):
        return "import urllib.request as u\nfor i in range(%d): print(u.urlopen('http://model.upstream.internal/').read().decode())\n" % count

    with with_key() as (_, _, text), Service() as s:
        with Session(s, profile="python", network="none", upstream=[text]) as session:
            for count in (1, 2):
                value = session.call("POST", "/execs", {"command": [PYTHON, "-c", counted(count)]}).result
                equal(value["stdout"]["text"], "right \n" * count, f"answers ({value['stderr']['text']})")
                equal(use(value)["requests"], count, "requests of this exec")
        value = s.post({"profile": "python", "network": {"mode": "none"}, "upstream": [text], "code": counted(1)}).result
        equal((value["stdout"]["text"], use(value)["requests"]), ("right \n", 1), "a run of the service")
    with with_key() as (_, _, text), Service(config={"callers": {f"uid:{os.geteuid()}": {"host_paths": False}}}) as s:
        for path, more in (("runs", {"code": "1"}), ("sessions", {})):
            error = s.call("POST", f"/v1/{path}", {"profile": "python", "upstream": [text], **more}).has(403).json["error"]
            contains(error["message"], "upstream", f"{path}: the message")
