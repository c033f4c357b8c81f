# SPDX-License-Identifier: Apache-2.0
"""The network of a session changes while it lives: PUT /v1/sessions/ID/network, cejail session network."""

import json
import os

from harness import *  # noqa: F403
from internet import *  # noqa: F403
from service import Service
from sessions import PYTHON, Session

OPEN = {"mode": "public"}
SHUT = {"mode": "none"}


def only(*targets):
    return {"mode": "public", "allow": list(targets)}


def tries(session, *wanted):
    """How each [protocol, address, port] went, from one exec."""
    code = TRY + f"print([attempt(*one).split(':')[0] for one in {list(wanted)!r}])"
    value = session.call("POST", "/execs", {"command": [PYTHON, "-c", code]}).result
    equal(value["status"], "exited", f"the exec: {value['error']} {value['stderr']['text'][-300:]}")
    return json.loads(value["stdout"]["text"].replace("'", '"'))


def change(session, body):
    answer = session.call("PUT", "/network", body).has(200).json
    equal(answer["network"], {"mode": body["mode"], "allow": body.get("allow", [])}, "the answer")
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
    s = socket.create_connection((name, 80), 10)
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
            wait_until(lambda: net.seen() and net.openings("20.30.40.51", 80) > 0, "both connections")
            change(session, only("a.wild.test"))
            session.call("POST", f"{path}/stdin", {"text": "\n", "eof": True}).has(200)
            went = session.call("GET", f"{path}?wait=30s").has(200).json["result"]["stdout"]["text"].split()
            equal((went[0], went[1] in ("ECONNRESET", "ECONNREFUSED", "EPIPE")), ("answered", True), f"{went}")


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


@test("cejail session network shows and changes what a session opens")
def _():
    with Internet() as net, Service(**net.inside) as s, public_session(s) as session:
        verb = ("session", "network", f"--remote={s.socket}", session.id)
        equal(cejail(*verb).exits(0).out, "public\n", "as created")
        equal(cejail(*verb, "--allow", "*.wild.test:443", "--allow", "public.test").exits(0).out, "*.wild.test:443\npublic.test\n", "a list")
        equal(cejail(*verb).exits(0).out, "*.wild.test:443\npublic.test\n", "shown")
        equal(cejail(*verb, "--none").exits(0).out, "none\n", "nothing")
        equal(json.loads(cejail(*verb, "--network", "public", "--json").exits(0).out)["network"], {"mode": "public", "allow": []}, "all")
        refused(cejail(*verb, "--none", "--allow", "public.test"), "--allow", "--none")
        refused(cejail(*verb, "--allow", "10.0.0.1"), "private")
