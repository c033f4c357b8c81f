# SPDX-License-Identifier: Apache-2.0
"""The states of a public network, for the tests about its first use and about its failures."""

import json
import os

from harness import *  # noqa: F403
from internet import *  # noqa: F403

# In the jail: what a program sees without opening a socket, and the ends of its first use.
SEE = TRY + """
import os, threading, time
def links():
    return sorted(line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line)
"""
BEFORE, AFTER = ["lo"], ["eth0", "lo"]


def said(value):
    """What the program printed, as JSON."""
    equal((value["status"], value["exit_code"]), ("exited", 0), f"end ({value['error']}, {value['stderr']['text'][-800:]})")
    return json.loads(value["stdout"]["text"])


def was_unused(value):
    seen = {key: value["network"][key] for key in ("mode", "state", "reason", "uplink", "denied")}
    equal(seen, {"mode": "public", "state": "unused", "reason": None, "uplink": None, "denied": []}, "network")
    equal(value["layers"]["network_filter"], "off", "layers.network_filter")
    equal(value["warnings"], facts()["warnings"], "warnings")


def was_ready(value, uplink=None):
    equal((value["network"]["state"], value["network"]["reason"]), ("ready", None), "state and reason")
    equal(value["layers"]["network_filter"], "on", "layers.network_filter")
    if uplink:
        equal(value["network"]["uplink"], uplink, "uplink")


def has_failed(value, *words):
    equal(value["network"]["state"], "failed", f"state ({value['network']})")
    for word in words:
        contains(value["network"]["reason"], word, "reason")


CLOSED = [["tcp", "169.254.169.254", 80], ["udp", "10.1.2.3", 7], ["tcp", "fd00:ec2::254", 80], ["tcp", HOST4, 80]]
OPEN = [["tcp", PUBLIC4, 80], ["udp", PUBLIC4, 7], ["tcp", PUBLIC6, 80], ["udp", PUBLIC6, 7]]


def stays_closed(net, went):
    true(all(word in REFUSED for word in went), f"closed ones: {went}")
    lacks([key[1] for key in net.seen()], "169.254.169.254", "addresses reached")
    equal(net.host("hits"), [], "host services reached")


def fails_closed(net, options, *words):
    """The first use fails, at once, for the reason, which a warning has, too; the program goes on."""
    value = net.run(TRY_ALL, *options, "--args-json", json.dumps([*OPEN, *CLOSED]))
    stays_closed(net, said(value))
    has_failed(value, *words)
    true(value["network"]["uplink"] in ("none", None), f"uplink {value['network']['uplink']}")
    for word in words:
        contains(" ".join(value["warnings"]), word, "warnings")
    equal(net.seen(), {}, "packets")


def events(net, code, *options):
    reader, writer = os.pipe()
    words = ("-p", "python", "--network", "public", "-t", str(int(30 * SLOW)), "--events-fd", str(writer), *options, "-c", code)
    run(*words, pass_fds=[writer], **net.inside).exits(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def nothing_is_left(net):
    """Of the network; after each test the harness looks for processes, too."""
    wait_until(lambda: not net.left(), "the host to be as it was", 8)


def kill(process):
    """SIGKILL to a supervisor, which then removes nothing of its run."""
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()


def all_have_ended():
    """Of killed supervisors: waits for the processes below them, and removes their records."""
    wait_until(lambda: not descendants(), "the end of every process")
    cejail("gc").exits(0)


def descendants_of(pid):
    found = children_of(pid)
    return found + [below for one in found for below in descendants_of(one)]
