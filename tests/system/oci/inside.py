# SPDX-License-Identifier: Apache-2.0
"""What tests of the process in a container share: its capabilities, its terminal, its filter."""

import array
import errno
import hashlib
import os
import socket

from harness import SLOW, equal, wait_until

SETS = ("Inh", "Prm", "Eff", "Bnd", "Amb")
KILL_AND_CHOWN = 0x21


def caps_of(text):
    """The five sets of a /proc/PID/status, by the kernel's short names."""
    return {name: int(line.split()[1], 16) for line in text.splitlines() for name in SETS if line.startswith(f"Cap{name}:")}


class Engine:
    """What conmon and containerd's shim are for a terminal: a socket that takes one message."""

    def __init__(self, folder):
        self.path = os.path.join(folder.path, "console")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.listener.settimeout(10 * SLOW)

    def receive(self):
        """The master; checks that it came in one message of one byte with one descriptor."""
        peer, _ = self.listener.accept()
        with peer:
            data, control, _, _ = peer.recvmsg(100, socket.CMSG_SPACE(16 * 4))
            rest = peer.recv(100)
        fds = array.array("i")
        for _, kind, values in control:
            equal(kind, socket.SCM_RIGHTS, "kind of control message")
            fds.frombytes(values)
        equal((len(data), len(fds), rest), (1, 1, b""), "bytes, descriptors and what follows")
        return fds[0]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.listener.close()


def read_pty(fd, until, limit=10):
    seen = b""
    os.set_blocking(fd, False)

    def look():
        nonlocal seen
        try:
            seen += os.read(fd, 4096)
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return True
        return until in seen

    wait_until(look, f"{until!r} on the terminal", limit)
    return seen.decode(errors="replace").replace("\r\n", "\n")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def errno_rule(name, number, **more):
    return {"names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": number, **more}
