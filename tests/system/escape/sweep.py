# SPDX-License-Identifier: Apache-2.0
"""Runs in a jail, and without one: every call that could make the kernel look for a module, with many values.
sweep.py all|little; what it gets does not matter, the kernel's trace does (modules.py), with the process's name."""

import contextlib
import fcntl
import os
import socket
import struct
import sys

SIOCGIFBR, SIOCGIFVLAN = 0x8940, 0x8982
TCP_MD5SIG, TCP_CONGESTION, TCP_ULP, TCP_AO_ADD_KEY = 14, 13, 31, 38


def quietly(function, *args):
    with contextlib.suppress(OSError, OverflowError, ValueError):
        return function(*args)
    return None


def say(what):
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(f"sweep:{what}")


def close(s):
    if s:
        s.close()


def try_sockets():
    for family in range(50):
        say(f"family{family}")
        for kind in (1, 2, 3, 5, 6, 10):
            for protocol in (0, 1, 2, 4, 6, 17, 33, 41, 58, 115, 132, 136, 255, 256, 262):
                close(quietly(socket.socket, family, kind, protocol))
    for protocol in range(40):
        say(f"netlink{protocol}")
        close(quietly(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, protocol))


def some_sockets():
    for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            yield quietly(socket.socket, family, kind)
    if netlink := quietly(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 0):  # a jail has a few
        yield netlink


def try_requests():
    """Of sockets, links and wireless devices; and of a terminal: N_* are line disciplines."""
    sockets = list(some_sockets())
    for request in (*range(0x8900, 0x8A00), *range(0x8B00, 0x8C00)):
        say(hex(request))
        for s in sockets:
            quietly(fcntl.ioctl, s, request, b"netx9".ljust(256, b"\0"))
    say("terminal")
    far, near = os.openpty()
    for discipline in range(40):
        quietly(fcntl.ioctl, near, 0x5423, struct.pack("i", discipline))
    os.close(far)
    os.close(near)


def key_with_algorithm(address):
    """struct tcp_ao_add, as far as the algorithm's name."""
    return address.ljust(128, b"\0") + b"cmac(aes)".ljust(64, b"\0") + bytes(200)


def try_options():
    address = struct.pack("=HHI", socket.AF_INET, 0, 0x01020304)
    for s in some_sockets():
        for level in (0, 1, 6, 17, 41, 255, 270, 284):
            say(f"option{level}")
            for option in range(130):
                for value in (struct.pack("i", 1), b"bbr".ljust(64, b"\0")):
                    quietly(s.setsockopt, level, option, value)
                quietly(s.getsockopt, level, option, 64)
        say("tcp")
        quietly(s.setsockopt, 6, TCP_AO_ADD_KEY, key_with_algorithm(address))
        quietly(s.setsockopt, 6, TCP_MD5SIG, address.ljust(128, b"\0") + struct.pack("=BBHI", 0, 0, 4, 0) + bytes(80))
        for name in (b"tls", b"smc", b"espintcp", b"mptcp"):
            quietly(s.setsockopt, 6, TCP_ULP, name)
        for name in (b"bbr", b"vegas", b"dctcp"):
            quietly(s.setsockopt, 6, TCP_CONGESTION, name)
        close(s)


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value.ljust(-len(value) % 4 + len(value), b"\0")


def try_netlink():
    """Links, queues, filters and routes of kinds that modules bring."""
    for kind in range(16, 124):
        say(f"message{kind}")
        for name in (b"dummy\0", b"gre\0", b"wireguard\0"):
            linkinfo = attribute(18, attribute(1, name)) + attribute(1, name)
            for flags in (0x605, 0x301):
                with contextlib.suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
                    body = struct.pack("=BxHiII", 0, 0, 0, 0, 0) + linkinfo
                    s.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
                    s.setblocking(False)
                    s.recv(100000)


def try_files():
    """File systems by their names, devices by their numbers, and file attributes with ciphers."""
    say("files")
    quietly(os.mknod, "device", 0o600 | 0o020000, os.makedev(10, 200))
    with open("file", "wb") as file:
        for request in (0x400C6613, 0xC0506617, 0xC080661A, 0x40806685):
            quietly(fcntl.ioctl, file, request, bytes([1]) * 256)


def try_little():
    say("little")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        quietly(fcntl.ioctl, s, SIOCGIFBR, b"")
    close(quietly(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 17))


if sys.argv[1] == "little":
    try_little()
else:
    for one in (try_sockets, try_requests, try_options, try_netlink, try_files):
        one()
print("swept")
