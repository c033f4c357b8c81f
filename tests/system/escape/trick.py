# SPDX-License-Identifier: Apache-2.0
"""Runs in a jail, and without one: tricks that a filter of addresses may overlook.  One line each,
"NAME HELD (why)" or "NAME ESCAPED (what)"."""

import errno
import os
import socket
import struct
import sys
import time

CLOSED4, CLOSED6, PUBLIC4, PUBLIC6 = "169.254.169.254", "fd00:ec2::254", "20.30.40.50", "2600:1f00::50"
PATIENCE = float(sys.argv[1])
SO_MARK, IP_TRANSPARENT, IP_OPTIONS, IP_PKTINFO, IP_UNICAST_IF = 36, 19, 4, 8, 50
IPV6_HOPOPTS, IPV6_RTHDR, IPV6_DSTOPTS, MSG_FASTOPEN = 54, 57, 59, 0x20000000
SO_ZEROCOPY, MSG_ZEROCOPY, UDP_SEGMENT, IPV6_MTU = 60, 0x4000000, 103, 24
DCCP, SCTP, UDPLITE, MPTCP = 33, 132, 136, 262
RTM_NEWADDR, RTM_DELADDR, RTM_NEWROUTE, RTM_NEWLINK = 20, 21, 24, 16
ASK = b"GET / HTTP/1.0\r\n\r\n"


class Escaped(Exception):
    """It worked; the text says what."""


def ask(s, address=None):
    """An answer from a peer that should not be reachable."""
    s.settimeout(PATIENCE)
    if address:
        s.connect(address)
    s.send(ASK)
    answer = s.recv(100)
    if answer:
        raise Escaped(f"{len(answer)} bytes came back")


def stream(family=socket.AF_INET):
    return socket.socket(family, socket.SOCK_STREAM)


def datagrams(family=socket.AF_INET):
    return socket.socket(family, socket.SOCK_DGRAM)


# --- closed addresses, by other calls and options ---


def try_fastopen():
    with stream() as s:
        limit = struct.pack("ll", int(PATIENCE) + 1, 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        s.sendto(ASK, MSG_FASTOPEN, (CLOSED4, 80))
        if s.recv(100):
            raise Escaped("an answer came")


def try_unspecified4():
    with stream() as s:
        ask(s, ("0.0.0.0", 80))


def try_unspecified6():
    with stream(socket.AF_INET6) as s:
        ask(s, ("::", 80))


def try_bound_device():
    with datagrams() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
        ask(s, (CLOSED4, 7))


def try_unicast_device():
    with datagrams() as s:
        s.setsockopt(socket.IPPROTO_IP, IP_UNICAST_IF, struct.pack("!I", socket.if_nametoindex("eth0")))
        ask(s, (CLOSED4, 7))


def try_packet_info():
    with datagrams() as s:
        s.settimeout(PATIENCE)
        info = struct.pack("=i4s4s", socket.if_nametoindex("eth0"), bytes(4), bytes(4))
        s.sendmsg([ASK], [(socket.IPPROTO_IP, IP_PKTINFO, info)], 0, (CLOSED4, 7))
        if s.recv(100):
            raise Escaped("an answer came")


def try_flow_label():
    with datagrams(socket.AF_INET6) as s:
        ask(s, (CLOSED6, 7, 0, 0))
    with datagrams(socket.AF_INET6) as s:
        ask(s, (CLOSED6, 7, 0x12345, 0))


def try_ttl():
    """A packet that must not come far: does it leave at all?"""
    with datagrams() as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 2)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0xE0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 6)
        ask(s, (CLOSED4, 7))


def try_reconnected():
    """First where one may, then where one may not."""
    with datagrams() as s:
        s.settimeout(PATIENCE)
        s.connect((PUBLIC4, 7))
        s.send(ASK)
        s.recv(100)
        s.connect((CLOSED4, 7))
        s.send(ASK)
        if s.recv(100):
            raise Escaped("an answer came")


# --- closed addresses, by packets that the kernel puts together in another way ---


def expect_answer(s, size):
    s.settimeout(PATIENCE)
    if s.recv(size):
        raise Escaped("an answer came")


def try_zero_copy():
    with datagrams() as s:
        s.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
        s.connect((CLOSED4, 7))
        s.send(ASK * 50, MSG_ZEROCOPY)
        expect_answer(s, 2000)


def segmented(family, address):
    """One buffer, which the kernel cuts into datagrams behind the rules or before them."""
    with datagrams(family) as s:
        s.connect((address, 7))
        s.sendmsg([ASK * 50], [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", 100))])
        expect_answer(s, 2000)


def try_segments4():
    segmented(socket.AF_INET, CLOSED4)


def try_segments6():
    segmented(socket.AF_INET6, CLOSED6)


def try_corked_fragments():
    """The first piece is small, and each packet is cut at 1280 bytes."""
    with datagrams(socket.AF_INET6) as s:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU, 1280)
        s.connect((CLOSED6, 7))
        for size in (1, 7, 1231, 2000):
            s.send(bytes(size), socket.MSG_MORE)
        s.send(bytes(9))
        expect_answer(s, 8000)


def try_send_file():
    with datagrams() as s, open("/usr/bin/env", "rb") as file:
        s.connect((CLOSED4, 7))
        os.sendfile(s.fileno(), file.fileno(), 0, 500)
        expect_answer(s, 2000)


def try_splice():
    with datagrams(socket.AF_INET6) as s, open("/usr/bin/env", "rb") as file:
        s.connect((CLOSED6, 7))
        out, into = os.pipe()
        os.splice(file.fileno(), into, 500)
        os.splice(out, s.fileno(), 500)
        expect_answer(s, 2000)


# --- powers over packets and the network ---


def try_raw():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as s:
        s.sendto(struct.pack("!HHHH", 9999, 7, 8, 0), (CLOSED4, 0))
        raise Escaped("a packet of one's own making left")


def try_raw6():
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_UDP):
        raise Escaped("a raw socket")


def try_packet():
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0):
        raise Escaped("a packet socket")


def set_option(family, level, option, value):
    with datagrams(family) as s:
        s.setsockopt(level, option, value)
    raise Escaped("the option was set")


def try_source_route():
    route = b"\x83\x07\x04" + socket.inet_aton("10.1.2.3") + b"\0"
    set_option(socket.AF_INET, socket.IPPROTO_IP, IP_OPTIONS, route)


def try_transparent():
    set_option(socket.AF_INET, socket.IPPROTO_IP, IP_TRANSPARENT, 1)


def try_mark():
    set_option(socket.AF_INET, socket.SOL_SOCKET, SO_MARK, 1)


def try_hop_by_hop():
    set_option(socket.AF_INET6, socket.IPPROTO_IPV6, IPV6_HOPOPTS, b"\x11\0\1\4\0\0\0\0")


def try_destination_options():
    set_option(socket.AF_INET6, socket.IPPROTO_IPV6, IPV6_DSTOPTS, b"\x11\0\1\4\0\0\0\0")


def try_routing_header():
    """To an open address first, and from there to a closed one."""
    header = b"\x11\2\2\1\0\0\0\0" + socket.inet_pton(socket.AF_INET6, PUBLIC6)
    with datagrams(socket.AF_INET6) as s:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, header)
        s.sendto(ASK, (CLOSED6, 7))
    raise Escaped("a packet with the header was sent")


def try_segment_routing():
    """The same with the header of RFC 8754."""
    hops = socket.inet_pton(socket.AF_INET6, CLOSED6) + socket.inet_pton(socket.AF_INET6, PUBLIC6)
    with datagrams(socket.AF_INET6) as s:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, b"\x11\4\4\1\1\0\0\0" + hops)
        s.sendto(ASK, (CLOSED6, 7))
    raise Escaped("a packet with the header was sent")


def netlink(kind, body, flags=0x605):
    """One request and the kernel's answer. Flags: request, ack, create, exclusive."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        code = struct.unpack_from("=i", s.recv(1000), 16)[0]
        if code:
            raise OSError(-code, os.strerror(-code))


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value


def try_address():
    body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 254, 1) + attribute(2, socket.inet_aton("127.9.9.9"))
    netlink(RTM_NEWADDR, body)
    netlink(RTM_DELADDR, body, 5)
    raise Escaped("an address of one's own choice")


def try_route():
    head = struct.pack("=BBBBBBBBI", socket.AF_INET, 32, 0, 0, 254, 4, 0, 1, 0)
    body = head + attribute(1, socket.inet_aton("169.254.169.254")) + attribute(4, struct.pack("=I", 1))
    netlink(RTM_NEWROUTE, body)
    netlink(RTM_NEWROUTE + 1, body, 5)
    raise Escaped("a route of one's own choice")


def try_link():
    """The loopback interface is asked to be what it is: up."""
    netlink(RTM_NEWLINK, struct.pack("=BxHiII", 0, 0, 1, 1, 1), 5)
    raise Escaped("a link was set")


# --- protocols that rules may not know ---


def other_protocol(kind, protocol):
    with socket.socket(socket.AF_INET, kind, protocol) as s:
        try:
            ask(s, (CLOSED4, 80))
        except OSError as problem:
            raise Escaped(f"a socket, then {problem}") from None


def try_mptcp():
    other_protocol(socket.SOCK_STREAM, MPTCP)


def try_sctp():
    other_protocol(socket.SOCK_STREAM, SCTP)


def try_dccp():
    other_protocol(6, DCCP)


def try_udplite():
    other_protocol(socket.SOCK_DGRAM, UDPLITE)


# --- what only the world can tell: it sees the packet, or it does not ---


def try_multicast():
    with datagrams() as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 32)
        for group in ("224.0.0.251", "239.1.2.3"):
            s.sendto(b"x", (group, 5353))
    raise Escaped("sent")


def try_membership():
    with datagrams() as s:
        where = socket.inet_aton("239.4.5.6") + bytes(4) + struct.pack("=i", socket.if_nametoindex("eth0"))
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, where)
        time.sleep(1.3)  # RFC 3376, 8.11: the kernel reports to the network within a second
    raise Escaped("joined")


def verdict(name, function):
    try:
        function()
        print(f"{name} HELD (nothing came back)", flush=True)
    except Escaped as what:
        print(f"{name} ESCAPED ({what})", flush=True)
    except TimeoutError:
        print(f"{name} HELD (silence)", flush=True)
    except OSError as problem:
        print(f"{name} HELD ({errno.errorcode.get(problem.errno, problem)})", flush=True)


for key, value in list(globals().items()):
    if key.startswith("try_"):
        verdict(key[4:], value)
