# SPDX-License-Identifier: Apache-2.0
"""What runs in the tests' own Internet (internet.py): name servers, HTTP, canaries, and a sniffer
that counts every packet.  Each station is a process in a network namespace of its own that obeys one
command at a time, a line of JSON each way."""

import collections
import itertools
import json
import mmap
import os
import select
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

A, CNAME, AAAA = 1, 5, 28
TCP_PORTS = (7, 22, 80, 8080, 9000, 9001)
UDP_PORTS = (7, 80, 9000)
MARK_PORT = 9  # a datagram to it is a mark in the sniffer's record, not traffic
IP_FREEBIND, IPV6_FREEBIND, IPV6_RECVPKTINFO = 15, 78, 49
SOL_PACKET, PACKET_STATISTICS, PACKET_OUTGOING, ETH_P_ALL = 263, 6, 4, 3
PACKET_IGNORE_OUTGOING, PACKET_VERSION, PACKET_RX_RING, TPACKET_V2, TP_STATUS_USER = 23, 10, 5, 1, 1
PAGE, SLOT, SLOTS = mmap.PAGESIZE, 512, 1 << 14  # of the sniffer's ring


def plain(address):
    return address.removeprefix("::ffff:") if "." in address else address


def in_background(function, *args):
    threading.Thread(target=function, args=args, daemon=True).start()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def listener(kind, address, port):
    """Both families when `address` is "::"."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family, kind)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        # an answer comes from the address the question went to, which nobody has configured
        server.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        server.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
    server.bind((address, port))
    if kind == socket.SOCK_STREAM:
        server.listen(512)
    return server


# --- names --------------------------------------------------------------------


class Zone:
    """Names and their addresses, or "=NAME" for an alias; a name whose addresses are a list of lists answers in turns."""

    def __init__(self, names):
        self.names, self.turns, self.queries, self.messages = names, collections.Counter(), [], []

    def addresses(self, name, kind):
        found = self.names.get(name, [])
        if found and isinstance(found[0], list):
            found = found[self.turns[name, kind] % len(found)]
            self.turns[name, kind] += 1
        return [one for one in found if (AAAA if ":" in one else A) == kind]

    def answer(self, query, transport):
        """RFC 1035, section 4: one question, its addresses with a time to live of nothing."""
        self.messages.append(query.hex())
        number, flags = struct.unpack_from("!HH", query)
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
            at += 1 + query[at]
        name, question = ".".join(labels).lower(), query[12 : at + 5]
        kind = struct.unpack_from("!H", query, at + 1)[0]
        self.queries.append([name, kind, transport])
        known = name in self.names
        records, owner = [], b"\xc0\x0c"
        while (first := next(iter(self.names.get(name, ())), "")) and first[0] == "=":
            name = first[1:]
            target = b"".join(bytes([len(one)]) + one.encode() for one in name.split(".")) + b"\0"
            records.append(owner + struct.pack("!HHIH", CNAME, 1, 0, len(target)) + target)
            owner = target
        records += [self.record(owner, one, kind) for one in self.addresses(name, kind)]
        flags = 0x8180 | (flags & 0x0100) | (0 if known else 3)
        body = question + b"".join(records)
        if transport == "udp" and len(body) > 500:
            flags, records, body = flags | 0x0200, [], question
        return struct.pack("!HHHHHH", number, flags, 1, len(records), 0, 0) + body

    @staticmethod
    def record(owner, address, kind):
        data = socket.inet_pton(socket.AF_INET6 if kind == AAAA else socket.AF_INET, address)
        return owner + struct.pack("!HHIH", kind, 1, 0, len(data)) + data

    def serve_udp(self, server):
        while True:
            query, control, _, peer = server.recvmsg(4096, 256)
            with_source = [(level, kind, data[:16] + bytes(4)) for level, kind, data in control]
            try:
                server.sendmsg([self.answer(query, "udp")], with_source, 0, peer)
            except (IndexError, struct.error):
                self.queries.append([query.hex(), 0, "udp"])  # no query: a test will wonder

    def serve_tcp(self, client):
        with client, client.makefile("rb") as stream:
            while size := stream.read(2):
                reply = self.answer(stream.read(struct.unpack("!H", size)[0]), "tcp")
                client.sendall(struct.pack("!H", len(reply)) + reply)


# --- HTTP ---------------------------------------------------------------------


def serve_http(client, here, peer):
    """/ says who speaks with whom, /to?URL redirects, /big?N is N bytes, /slow?N waits N seconds; a body is counted."""
    with client, client.makefile("rb") as stream:
        words = stream.readline().split()
        length = 0
        while (line := stream.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if len(words) < 2:
            return
        got = 0
        while got < length and (piece := stream.read(min(65536, length - got))):
            got += len(piece)
        path, _, query = words[1].decode().partition("?")
        if path == "/to":
            client.sendall(f"HTTP/1.0 302 Found\r\nLocation: {query}\r\n\r\n".encode())
            return
        if path == "/slow":
            time.sleep(float(query))
        body = bytes(int(query)) if path == "/big" else f"the Internet at {here}; {got} bytes from {peer}\n".encode()
        client.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


# --- TLS ----------------------------------------------------------------------

# Self-signed, for *.wild.test, until 2126.
CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvYjmXKqh83vZRjiL
RWjAIrXkh/KRFnXgqcOqszVbc+yhRANCAASnhmaXa6nlIvqdL+01kXSFVtWuZQJr
4vzZEps0djojGuvzt/aIzw4htutsoxh2Z4aI4nY07ApyKP5SrRnVW0FM
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBojCCAUigAwIBAgIUKLFWayyhPZZOlr4xu/ByFRPAcj0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJd2lsZC50ZXN0MCAXDTI2MTEyOTExMjYwMloYDzIxMjYxMTA1
MTEyNjAyWjAUMRIwEAYDVQQDDAl3aWxkLnRlc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASnhmaXa6nlIvqdL+01kXSFVtWuZQJr4vzZEps0djojGuvzt/aIzw4h
tutsoxh2Z4aI4nY07ApyKP5SrRnVW0FMo3YwdDAdBgNVHQ4EFgQUZt+cAF6zVtno
1oPwAZuJAzOEsq4wHwYDVR0jBBgwFoAUZt+cAF6zVtno1oPwAZuJAzOEsq4wDwYD
VR0TAQH/BAUwAwEB/zAhBgNVHREEGjAYggsqLndpbGQudGVzdIIJd2lsZC50ZXN0
MAoGCCqGSM49BAMCA0gAMEUCIBlt1cewxfZ2M4PGeN85WTkGhJ2hsaD5lKwVZ1s8
6esSAiEAjaoPJHSyKiGl6e45cBPPs3ESZ3U+7LBEn6mg94HzmEM=
-----END CERTIFICATE-----
"""


def tls_context():
    """Remembers the name that the client has sent, for serve_tls()."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", dir="/dev/shm") as file:
        file.write(CERTIFICATE)
        file.flush()
        context.load_cert_chain(file.name)
    context.sni_callback = lambda client, name, _: setattr(client, "name", name)
    return context


def serve_tls(context, client, here):
    with context.wrap_socket(client, server_side=True) as tls:
        tls.recv(65536)
        tls.sendall(f"tls {tls.name} at {here}\n".encode())


# --- stations -----------------------------------------------------------------


class Station:
    """Commands are the methods whose names start with do_."""

    def __init__(self, names):
        self.zone = Zone(names)
        self.hits = collections.Counter()

    # What both stations can do.

    def do_ip(self, lines):
        done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, capture_output=True, check=False)
        if done.returncode:
            raise OSError(f"ip: {done.stderr.strip()} ({lines})")

    def do_sysctl(self, settings):
        for name, value in settings.items():
            write("/proc/sys/" + name, str(value))

    def do_read(self, path):
        with open(path, encoding="ascii") as file:
            return file.read()

    def do_hits(self):
        """[protocol, address, port, from] of every connection and datagram a service got."""
        return list(self.hits)

    def do_queries(self):
        return self.zone.queries

    def do_messages(self):
        """Every query as it came, in hexadecimal."""
        return self.zone.messages

    def do_forget(self):
        self.hits.clear()
        self.zone.queries.clear()
        self.zone.messages.clear()

    def do_attempt(self, protocol, address, port, timeout=1):
        """Sends to an address; "answered", or how it failed."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
        with socket.socket(family, kind) as s:
            s.settimeout(timeout)
            try:
                s.connect((address, port))
                s.send(b"GET / HTTP/1.0\r\n\r\n")
                s.recv(100)
                return "answered"
            except OSError as problem:
                return str(problem)

    def do_dns(self, address):
        udp = listener(socket.SOCK_DGRAM, address, 53)
        in_background(self.zone.serve_udp, udp)
        in_background(self.accept, listener(socket.SOCK_STREAM, address, 53), lambda c, *_: self.zone.serve_tcp(c))

    def accept(self, server, serve):
        while True:
            client, peer = server.accept()
            here = client.getsockname()
            self.hits["tcp", plain(here[0]), here[1], plain(peer[0])] += 1
            in_background(self.quietly, serve, client, plain(here[0]), plain(peer[0]))

    @staticmethod
    def quietly(serve, *args):
        try:
            serve(*args)
        except OSError:
            pass  # the other side went away: its business

    def echo_udp(self, server, port):
        while True:
            data, control, _, peer = server.recvmsg(65536, 256)
            there = "?"
            with_source = []
            for level, kind, info in control:
                there = plain(socket.inet_ntop(socket.AF_INET6, info[:16]))
                with_source = [(level, kind, info[:16] + bytes(4))]
            self.hits["udp", there, port, plain(peer[0])] += 1
            try:
                server.sendmsg([data], with_source, 0, peer)
            except OSError:
                pass  # no way back is no reason to stop

    def listen(self, serve):
        for port in TCP_PORTS:
            in_background(self.accept, listener(socket.SOCK_STREAM, "::", port), serve)
        for port in UDP_PORTS:
            in_background(self.echo_udp, listener(socket.SOCK_DGRAM, "::", port), port)


class World(Station):
    """Answers at every address there is, and sees each packet that comes over its link."""

    def do_open(self):
        self.packets, self.opened, self.marks = collections.Counter(), collections.Counter(), set()
        self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        # on a busy machine the sniffer may be late: room for bursts, which no limit of a user's (net.core.rmem_max)
        # makes smaller, and none for what the world sends
        self.tap.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        self.tap.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack("IIII", PAGE, SLOTS * SLOT // PAGE, SLOT, SLOTS))
        self.ring = mmap.mmap(self.tap.fileno(), SLOTS * SLOT)
        try:
            self.tap.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        except OSError:
            pass  # before Linux 4.20
        self.tap.bind(("wire", ETH_P_ALL))
        in_background(self.sniff)
        self.listen(serve_http)
        context = tls_context()
        in_background(self.accept, listener(socket.SOCK_STREAM, "::", 443), lambda c, here, _: serve_tls(context, c, here))
        self.do_dns("::")

    def sniff(self):
        """Each slot of the ring has a struct tpacket2_hdr, a struct sockaddr_ll, and the beginning of a packet."""
        for at in itertools.cycle(range(0, SLOTS * SLOT, SLOT)):
            while not struct.unpack_from("I", self.ring, at)[0] & TP_STATUS_USER:
                select.select([self.tap], [], [])
            size, begin = struct.unpack_from("IH", self.ring, at + 8)
            direction, frame = self.ring[at + 32 + 10], self.ring[at + begin : at + begin + size]
            struct.pack_into("I", self.ring, at, 0)  # the kernel's again
            if direction != PACKET_OUTGOING:
                # room for what a fragment or a stray packet lacks
                self.note(frame[14:] + bytes(60), struct.unpack_from("!H", frame, 12)[0])

    def note(self, packet, ethertype):
        is_later_fragment = False
        if ethertype == 0x0800:
            head = (packet[0] & 15) * 4
            protocol, there = packet[9], socket.inet_ntop(socket.AF_INET, packet[16:20])
            is_later_fragment = struct.unpack_from("!H", packet, 6)[0] & 0x1FFF
        elif ethertype == 0x86DD:
            head, protocol = 40, packet[6]
            there = socket.inet_ntop(socket.AF_INET6, packet[24:40])
            if protocol == 0 or (protocol == 58 and 130 <= packet[40] <= 143 and packet[40] not in range(138, 143)):
                return  # neighbours, routers and multicast listeners: the link's own
        else:
            return
        port = struct.unpack_from("!H", packet, head + 2)[0] if protocol in (6, 17) and not is_later_fragment else 0
        if protocol == 17 and port == MARK_PORT:
            self.marks.add(packet[head + 8 :].rstrip(b"\0").decode("ascii", "replace"))
        else:
            self.packets[{6: "tcp", 17: "udp"}.get(protocol, str(protocol)), there, port] += 1
            if protocol == 6 and not is_later_fragment and packet[head + 13] & 2:  # SYN: RFC 9293 3.1
                self.opened[there, port] += 1

    def do_has_mark(self, mark):
        end = time.monotonic() + 0.5
        while mark not in self.marks and time.monotonic() < end:
            time.sleep(0.002)
        return mark in self.marks

    def do_packets(self):
        lost = struct.unpack("II", self.tap.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        return {"lost": lost, "packets": [[*key, count] for key, count in list(self.packets.items())]}

    def do_openings(self, address, port):
        return self.opened[address, port]

    def do_forget(self):
        super().do_forget()
        self.packets.clear()
        self.opened.clear()


class Host(Station):
    """Where cejail's supervisor runs; its services are canaries that greet and echo."""

    def do_open(self):
        self.listen(self.greet)

    @staticmethod
    def greet(client, *unused):
        with client:
            client.sendall(f"host port {client.getsockname()[1]}\n".encode())
            while piece := client.recv(65536):
                client.sendall(piece)

    def do_mark(self, address, mark):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(mark.encode(), (address, MARK_PORT))

    def do_state(self):
        """Links, routes, rules and nft tables, as a list of lines."""
        lines = []
        for words in (
            ["ip", "-o", "link"], ["ip", "-4", "route", "show", "table", "all"],
            ["ip", "-6", "route", "show", "table", "all"], ["ip", "rule"], ["nft", "list", "ruleset"],
        ):  # fmt: skip
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            lines += [f"{words[0]}: {line.strip()}" for line in done.stdout.splitlines()]
        return lines


def obey(station, channel):
    """Until the other side closes."""
    for line in channel.makefile("r", encoding="utf-8"):
        name, arguments = json.loads(line)
        try:
            answer = {"value": getattr(station, "do_" + name)(**arguments)}
        except Exception as problem:  # told to the test, which fails by it
            answer = {"problem": f"{name}: {type(problem).__name__}: {problem}"}
        channel.sendall(json.dumps(answer).encode() + b"\n")


def become(station, channel, prepare):
    """The life of a station's process: never returns."""
    try:
        prepare()
        channel.sendall(b'{"value": "ready"}\n')
        obey(station, channel)
    except BaseException as problem:
        try:
            channel.sendall(json.dumps({"problem": f"{type(problem).__name__}: {problem}"}).encode() + b"\n")
        except OSError:
            pass
    sys.stderr.flush()
    os._exit(0)
