# SPDX-License-Identifier: Apache-2.0
"""A server that jails can reach, in network namespaces that end with us; only root can make it.

	jails ---- host (our network namespace, forwards) ---- world (a namespace with one server)
"""

import os
import subprocess

ADDRESS, PORT = "20.30.40.50", 7001
SEND_PORT = PORT + 1

HOST = """
link set lo up
link add wire type veth peer name wire netns {pid}
addr add 192.168.77.2/24 dev wire
link set wire up
route add default via 192.168.77.1
"""
WORLD = """
link set lo up
addr add 192.168.77.1/24 dev wire
addr add {address} dev lo
link set wire up
"""


def batch(text, *prefix):
    subprocess.run([*prefix, "ip", "-batch", "-"], input=text, text=True, check=True, stdout=subprocess.DEVNULL)


def forward():
    """In our own network namespace."""
    for path in ("/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"):
        if os.path.exists(path):
            with open(path, "w", encoding="ascii") as file:
                file.write("1")


def open_tun():
    """For the ordinary user's helpers, as udev makes it; in our own mount namespace."""
    if os.path.exists("/dev/net/tun"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "bench", "/dev/net"], check=True)
        os.mknod("/dev/net/tun", 0o020666, os.makedev(10, 200))
        os.chmod("/dev/net/tun", 0o666)


def use_name_server(folder):
    """The world's, for all that starts in our own mount namespace."""
    path = f"{folder}/resolv.conf"
    with open(path, "w", encoding="ascii") as file:
        file.write(f"nameserver {ADDRESS}\n")
    os.chmod(path, 0o644)
    subprocess.run(["mount", "--bind", path, os.path.realpath("/etc/resolv.conf")], check=True)


class World:
    def __init__(self, tool):
        self.server = subprocess.Popen(
            ["unshare", "--net", tool, "world", ADDRESS, str(PORT)], stdout=subprocess.PIPE, text=True)
        if self.server.stdout.readline() != "ready\n":
            raise RuntimeError("the server of the world does not start")
        batch(HOST.format(pid=self.server.pid))
        batch(WORLD.format(address=ADDRESS), "nsenter", f"--net=/proc/{self.server.pid}/ns/net")
        forward()
        open_tun()
        use_name_server(os.path.dirname(tool))

    def close(self):
        self.server.kill()
        self.server.wait()
