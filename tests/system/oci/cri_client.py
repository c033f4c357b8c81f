# SPDX-License-Identifier: Apache-2.0
"""A client of the Kubernetes CRI, in place of a kubelet: containerd with its CRI plugin, a network plugin, and a local image.

gRPC by hand: one HTTP/2 connection for each call, headers without compression, and only what an answer's message needs.
Fields have their numbers: {1: "name", 2: [..], 3: {1: 5}}.  The numbers are those of k8s.io/cri-api, runtime/v1/api.proto.
"""

import hashlib
import io
import json
import os
import socket
import struct
import tarfile

from bundles import OCI
from engines import Containerd, has_cgroups, need
from harness import SLOW, Failure, Skip, wait_until

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
WIDE = (1 << 30) - 1

# --- protobuf ---------------------------------------------------------------------------------------------------


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes((number,))


def encode(message):
    out = b""
    for field, value in message.items():
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, int):
                out += varint(field << 3) + varint(one)
                continue
            data = encode(one) if isinstance(one, dict) else one.encode() if isinstance(one, str) else one
            out += varint(field << 3 | 2) + varint(len(data)) + data
    return out


def pairs(values):
    """A map of texts."""
    return [{1: key, 2: value} for key, value in values.items()]


def decode(data):
    """{field: [values]}: numbers and bytes."""
    out, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            value = number()
        elif key & 7 == 2:
            size = number()
            value = data[at : at + size]
            at += size
        else:
            raise Failure(f"field type {key & 7}")
        out.setdefault(key >> 3, []).append(value)
    return out


# --- HTTP/2 -----------------------------------------------------------------------------------------------------


def literal(name, value):
    """A header without compression: RFC 7541 6.2.2."""
    out = b"\0"
    for text in (name.encode(), value.encode()):
        assert len(text) < 127
        out += bytes((len(text),)) + text
    return out


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def receive(sock, size):
    out = b""
    while len(out) < size:
        more = sock.recv(size - len(out))
        if not more:
            raise Failure("containerd has closed the connection")
        out += more
    return out


def call(path, method, message, limit=60):
    """The bytes of the answer.  None: an error, of which containerd's log has the text."""
    headers = b"".join(literal(*one) for one in (
        (":method", "POST"), (":scheme", "http"), (":path", method), (":authority", "localhost"),
        ("content-type", "application/grpc"), ("te", "trailers")))  # fmt: skip
    body = encode(message)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(limit * SLOW)
        sock.connect(path)
        sock.sendall(
            PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, WIDE)) + frame(WINDOW, 0, 0, struct.pack(">I", WIDE - 65535))
            + frame(HEADERS, END_HEADERS, 1, headers) + frame(DATA, END_STREAM, 1, struct.pack(">BI", 0, len(body)) + body)
        )  # fmt: skip
        answer, ended = b"", False
        while not ended:
            head = receive(sock, 9)
            size, (kind, flags, stream) = int.from_bytes(head[:3], "big"), struct.unpack(">BBI", head[3:])
            payload = receive(sock, size)
            if kind == SETTINGS and not flags & ACK:
                sock.sendall(frame(SETTINGS, ACK, 0, b""))
            elif kind == PING and not flags & ACK:
                sock.sendall(frame(PING, ACK, 0, payload))
            elif kind == GOAWAY:
                raise Failure(f"containerd ends the connection: {payload!r}")
            elif kind == DATA and stream == 1:
                answer += payload
            ended = stream == 1 and kind in (DATA, HEADERS) and bool(flags & END_STREAM)
    return answer[5:] if answer else None


# --- an image ---------------------------------------------------------------------------------------------------

IMAGE = "localhost/box:1"


def write_image(path, rootfs):
    """An OCI archive of one layer.  Its command sleeps, so it is a sandbox's image, too."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(rootfs, arcname=".")
    blobs = {}

    def blob(data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data), **more}

    base = "application/vnd.oci.image"
    tar = blob(layer.getvalue(), f"{base}.layer.v1.tar")
    config = {
        "architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [tar["digest"]]},
        "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "100000"]},
    }  # fmt: skip
    config = blob(json.dumps(config).encode(), f"{base}.config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": f"{base}.manifest.v1+json", "config": config, "layers": [tar]}
    names = {"io.containerd.image.name": IMAGE, "org.opencontainers.image.ref.name": "1"}
    manifest = blob(json.dumps(manifest).encode(), f"{base}.manifest.v1+json", annotations=names)
    blobs["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    with tarfile.open(path, mode="w") as out:
        for name, data in blobs.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))


# --- containerd -------------------------------------------------------------------------------------------------

CONFIG = """version = 2
root = "{path}/root"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  disable_cgroup = {no_cgroup}
  disable_apparmor = true
  enable_selinux = {has_labels}
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "cejail"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.cejail]
      runtime_type = "io.containerd.runc.v2"
      pod_annotations = ["io.cejail.*"]
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.cejail.options]
        BinaryName = "{oci}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{path}/cni"
"""
NETWORK = {
    "cniVersion": "0.4.0", "name": "pods",
    "plugins": [{"type": "ptp", "ipMasq": False, "ipam": {
        "type": "host-local", "subnet": "10.77.0.0/24", "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni-data"}}],
}  # fmt: skip


class Cri(Containerd):
    """`with Cri() as c: pod = c.pod("one")`: a containerd in network and mount namespaces of its own."""

    def __init__(self, runtime=OCI, has_labels=False, usr=False):
        """usr: the image has an empty /usr, and the links into it of a root whose /usr is the host's."""
        super().__init__()
        self.has_labels = has_labels
        self.usr = usr
        self.runtime = runtime

    def begin(self):
        if not os.path.exists("/usr/lib/cni/ptp"):
            raise Skip("containernetworking-plugins is not installed")
        need("ip")
        no_cgroup = "false" if has_cgroups() else "true"
        self.file("config.toml", CONFIG.format(path=self.path, image=IMAGE, no_cgroup=no_cgroup, has_labels=str(self.has_labels).lower(), oci=self.runtime))
        os.mkdir(self / "cni")
        self.file("cni/10-pods.conflist", json.dumps(NETWORK))
        return ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]

    def __enter__(self):
        super().__enter__()
        self.socket = f"{self.inside}/run/containerd/containerd.sock"
        self.pods = []
        if self.usr:
            os.mkdir(f"{self.rootfs}/usr")
            for name in ("lib", "lib64"):
                os.symlink(f"usr/{name}", f"{self.rootfs}/{name}")
        write_image(self / "image.tar", self.rootfs)
        self.ctr("-n", "k8s.io", "image", "import", "--snapshotter", "native", self / "image.tar").exits(0)
        wait_until(lambda: self.call_maybe("Version", {}) is not None, "the CRI plugin", 20)
        wait_until(lambda: self.call_maybe("ImageStatus", {1: {1: IMAGE}}, "ImageService") not in (None, b""), "the image", 20)
        return self

    def __exit__(self, *unused):
        for pod in self.pods:
            self.call_maybe("StopPodSandbox", {1: pod})
            self.call_maybe("RemovePodSandbox", {1: pod})
        super().__exit__(*unused)

    # --- calls ---

    def call_maybe(self, method, message, service="RuntimeService"):
        return call(self.socket, f"/runtime.v1.{service}/{method}", message)

    def cri(self, method, message):
        answer = self.call_maybe(method, message)
        if answer is None:
            raise Failure(f"{method}: {self.last_error()}")
        return decode(answer)

    def last_error(self):
        with open(self / "log", encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if "level=error" in line]
        return lines[-1].strip() if lines else "no error is logged"

    def refused(self, method, message):
        """The error of a call that must fail, as containerd logs it."""
        if self.call_maybe(method, message) is not None:
            raise Failure(f"{method} succeeds")
        return self.last_error()

    def pod_config(self, name, annotations=None):
        return {
            1: {1: name, 2: f"uid-{name}", 3: "default", 4: 0}, 2: name, 3: self / "logs", 7: pairs(annotations or {}),
            8: {2: {1: {1: 0, 2: 1, 3: 0}}},  # the pod's network and IPC; each container its own processes
        }  # fmt: skip

    def pod(self, name, annotations=None):
        self.config_of = getattr(self, "config_of", {})
        config = self.pod_config(name, annotations)
        os.makedirs(self / "logs", exist_ok=True)
        (id,) = self.cri("RunPodSandbox", {1: config})[1]
        self.pods.append(id.decode())
        self.config_of[id.decode()] = config
        return id.decode()

    def container_request(self, pod, name, *command, memory=0, drop=("ALL",), uid=None, seccomp=None, mounts=(), devices=()):
        security = {1: {2: list(drop)}, 3: {1: 0, 2: 1, 3: 0}, 11: 1}
        if uid:
            security[5] = {1: uid}
        if seccomp:
            security[15] = {1: 2, 2: f"localhost/{seccomp}"}
        linux = {1: {4: memory} if memory else {}, 2: security}
        config = {1: {1: name}, 2: {1: IMAGE}, 3: list(command), 11: f"{name}.log", 15: linux}
        config[7] = [{1: place, 2: place, 3: 1} for place in mounts]
        config[8] = [{1: device, 2: device, 3: "rwm"} for device in devices]
        return {1: pod, 2: config, 3: self.config_of[pod]}

    def container(self, pod, name, *command, **more):
        (id,) = self.cri("CreateContainer", self.container_request(pod, name, *command, **more))[1]
        self.cri("StartContainer", {1: id})
        return id.decode()

    def execute(self, container, *command):
        """(stdout, stderr, exit status)"""
        answer = self.cri("ExecSync", {1: container, 2: list(command), 3: 20})
        return (*(answer.get(field, [b""])[0].decode() for field in (1, 2)), answer.get(3, [0])[0])

    def status(self, container):
        """(state, exit status, reason): state 1 is running, 2 has ended."""
        status = decode(self.cri("ContainerStatus", {1: container})[1][0])
        return status.get(3, [0])[0], status.get(7, [0])[0], status.get(10, [b""])[0].decode()

    def ended(self, container):
        wait_until(lambda: self.status(container)[0] == 2, "the end of the container", 30)
        return self.status(container)[1:]

    def log(self, name):
        """The streams of a container, as a kubelet reads them: TIME STREAM F TEXT."""
        with open(self / f"logs/{name}.log", encoding="utf-8") as file:
            return [tuple(line.rstrip("\n").split(" ", 3)[1::2]) for line in file]
