# SPDX-License-Identifier: Apache-2.0
"""Canaries: things of a caller's that no program in a jail may read, change or reach, and how to see from
outside that none did.

Started as a program it is the control: canary.py HUNTER plants them and hunts them without a jail, in namespaces
of its own (see canaries.py), and prints what the hunter said and which canaries were touched.
"""

import ctypes
import fcntl
import os
import secrets
import socket
import struct
import subprocess
import sys
import tempfile

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.syscall.restype = ctypes.c_long
libc.shmdt.argtypes = [ctypes.c_void_p]
SYS_ADD_KEY, SYS_KEYCTL = 248, 250
KEYCTL_JOIN, KEYCTL_LINK, KEYCTL_UNLINK, KEYCTL_READ, KEYCTL_TIMEOUT = 1, 8, 9, 11, 15
SESSION, USER = -3, -4
IPC_CREAT, IPC_NOWAIT, IPC_RMID = 0o1000, 0o4000, 0


class QueueSize(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("flags", "maxmsg", "msgsize", "curmsgs")] + [("pad", ctypes.c_long * 4)]


class Message(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_long), ("text", ctypes.c_char * 128)]


def must(rc, what):
    if rc == -1 or rc is None:
        raise OSError(ctypes.get_errno(), what)
    return rc


def word(kind):
    """What is to be found: no other file or process has it."""
    return f"canary-word-{kind}-{secrets.token_hex(6)}"


class Canaries:
    """with Canaries(hunter) as flock: ... flock.touched()"""

    def __init__(self, hunter):
        self.hunter, self.name = hunter, f"cn{os.getpid()}{secrets.token_hex(3)}"
        self.words, self.goals, self.checks, self.undo = {}, [], {}, []
        self.descriptors, self.environment = [], {}

    def __enter__(self):
        try:
            for plant in (self.files, self.inherited, self.sockets, self.process, self.system_v, self.posix, self.keys):
                plant()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        for undo in reversed(self.undo):
            undo()
        self.undo = []

    def touched(self):
        """Which of them are not as they were planted."""
        return [kind for kind, is_whole in self.checks.items() if not is_whole()]

    def new_word(self, kind):
        self.words[kind] = word(kind)
        return self.words[kind]

    # --- files --------------------------------------------------------------

    def write(self, kind, folder):
        path, text = os.path.join(folder, f"{self.name}-{kind}"), self.new_word(kind)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        self.undo.append(lambda: os.path.exists(path) and os.unlink(path))
        before = os.stat(path)
        self.checks[kind] = lambda: os.path.exists(path) and (
            os.stat(path).st_mtime_ns, os.stat(path).st_size) == (before.st_mtime_ns, before.st_size)  # fmt: skip
        return path

    def files(self):
        self.folder = tempfile.TemporaryDirectory(prefix=f"cejail-system-{os.getpid()}-")
        self.undo.append(self.folder.cleanup)
        cwd = os.path.join(self.folder.name, "cwd")
        os.mkdir(cwd)
        self.cwd = cwd
        places = {"tmp": "/tmp", "vartmp": "/var/tmp", "devshm": "/dev/shm", "home": os.path.expanduser("~"), "cwd": cwd}
        for kind, place in places.items():
            if os.access(place, os.W_OK):
                self.goals += [f"file={self.write(kind, place)}"]
        path = self.write("lock", self.folder.name)
        held = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.undo.append(lambda: os.close(held))
        fcntl.flock(held, fcntl.LOCK_EX)
        self.goals += [f"lock={path}", f"file={path}", f"walk={self.folder.name}"]

    # --- what a child gets without asking -----------------------------------------

    def hand_down(self, number, fd):
        os.dup2(fd, number)
        os.set_inheritable(number, True)
        self.descriptors.append(number)
        self.undo.append(lambda: os.close(number))

    def inherited(self):
        folder = os.path.join(self.folder.name, "handed")
        os.mkdir(folder)
        self.write("indirectory", folder)
        file = os.open(self.write("descriptor", self.folder.name), os.O_RDWR)
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        listener = socket.create_server(("127.0.0.1", 0))
        reader, writer = os.pipe()
        os.write(writer, self.new_word("pipe").encode())
        for number, fd in ((77, file), (78, directory), (79, listener.fileno()), (80, reader)):
            self.hand_down(number, fd)
        for fd in (file, directory, reader):
            os.close(fd)
        self.undo.append(listener.close)
        self.undo.append(lambda: os.close(writer))
        self.environment = {"CANARY": self.new_word("environment")}

    # --- who waits for a caller ------------------------------------------------------

    def listen(self, kind, family, address, what=None):
        server = socket.socket(family)
        self.undo.append(server.close)
        server.bind(address)
        server.listen()
        server.setblocking(False)
        self.checks[kind] = lambda: not is_called(server.accept)
        name = what or str(server.getsockname()[1])
        self.goals.append(f"{kind}={name}")

    def sockets(self):
        path = os.path.join(self.folder.name, "socket")
        self.listen("unix", socket.AF_UNIX, path, path)
        self.listen("abstract", socket.AF_UNIX, f"\0{self.name}", self.name)
        self.listen("tcp", socket.AF_INET, ("127.0.0.1", 0))
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.undo.append(datagrams.close)
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        self.goals.append(f"udp={datagrams.getsockname()[1]}")
        self.checks["udp"] = lambda: not is_called(lambda: datagrams.recv(16))

    # --- a process -------------------------------------------------------------------

    def process(self):
        sitter = subprocess.Popen(
            [self.hunter, "sit", self.new_word("memory")[::-1], self.new_word("argument")],
            env={"WORD": self.new_word("processenvironment")}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        self.undo.append(lambda: (sitter.kill(), sitter.wait(), sitter.stdin.close(), sitter.stdout.close()))
        must(None if sitter.stdout.readline() != b"here\n" else 0, "start a process")
        self.goals.append(f"pid={sitter.pid}")
        calm = subprocess.Popen([self.hunter, "sit", "x", "y"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.undo.append(lambda: (calm.kill(), calm.wait(), calm.stdin.close()))
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        self.checks["priority"] = lambda: os.getpriority(os.PRIO_PROCESS, calm.pid) == nice
        self.checks["pid"] = lambda: is_answered(sitter)

    # --- shared memory and queues ------------------------------------------------------

    def system_v(self):
        key = secrets.randbelow(1 << 30) + 1
        segment = must(libc.shmget(key, 4096, IPC_CREAT | 0o600), "shmget")
        self.undo.append(lambda: libc.shmctl(segment, IPC_RMID, None))
        at = must(libc.shmat(segment, None, 0), "shmat")
        self.undo.append(lambda: libc.shmdt(at))
        text = self.new_word("shm").encode()
        ctypes.memmove(at, text, len(text))
        self.checks["shm"] = lambda: ctypes.string_at(at + 4095, 1) == b"\0"

        queue = must(libc.msgget(key, IPC_CREAT | 0o600), "msgget")
        self.undo.append(lambda: libc.msgctl(queue, IPC_RMID, None))
        message = Message(1, self.new_word("msg").encode())
        must(libc.msgsnd(queue, ctypes.byref(message), 100, IPC_NOWAIT), "msgsnd")
        got = Message()
        self.checks["msg"] = lambda: libc.msgrcv(queue, ctypes.byref(got), 100, 0, IPC_NOWAIT) == 100
        self.goals += [f"shm={key}", f"msg={key}"]

    def posix(self):
        name, size = f"/{self.name}s".encode(), 4096
        fd = must(libc.shm_open(name, os.O_CREAT | os.O_RDWR, 0o600), "shm_open")
        self.undo.append(lambda: (libc.shm_unlink(name), os.close(fd)))
        os.ftruncate(fd, size)
        os.pwrite(fd, self.new_word("posix").encode(), 0)
        self.checks["posix"] = lambda: os.pread(fd, 1, 4095) == b"\0"

        queue = libc.mq_open(f"/{self.name}".encode(), os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o600,
                             ctypes.byref(QueueSize(0, 1, 128, 0)))  # fmt: skip
        must(queue, "mq_open")
        self.undo.append(lambda: (libc.mq_unlink(f"/{self.name}".encode()), libc.mq_close(queue)))
        text = self.new_word("mq").encode()
        must(libc.mq_send(queue, text, len(text), 0), "mq_send")
        room = ctypes.create_string_buffer(128)
        self.checks["mq"] = lambda: libc.mq_receive(queue, room, 128, None) == len(text)
        self.goals += [f"posix=/{self.name}s", f"mq=/{self.name}"]

    # --- keys ----------------------------------------------------------------------------

    def keys(self):
        """In a session keyring of ours, that children inherit, and in the user's; gone after five minutes."""
        if libc.syscall(SYS_KEYCTL, KEYCTL_JOIN, None) == -1:
            return  # the kernel has no keys, or a container's filter forbids them: no process here has any
        must(libc.syscall(SYS_KEYCTL, KEYCTL_LINK, USER, SESSION), "link the user's keyring, as a login does")
        for kind, ring in (("session", SESSION), ("user", USER)):
            name, text = f"{self.name}{kind}".encode(), self.new_word(f"key{kind}").encode()
            key = must(libc.syscall(SYS_ADD_KEY, b"user", name, text, len(text), ring), "add_key")
            must(libc.syscall(SYS_KEYCTL, KEYCTL_TIMEOUT, key, 300), "set a key's timeout")
            self.undo.append(lambda key=key, ring=ring: libc.syscall(SYS_KEYCTL, KEYCTL_UNLINK, key, ring))
            room = ctypes.create_string_buffer(128)
            self.checks[f"key{kind}"] = lambda key=key, room=room, text=text: (
                libc.syscall(SYS_KEYCTL, KEYCTL_READ, key, room, 128) == len(text) and room.value == text)  # fmt: skip
            self.goals.append(f"key={name.decode()}")


def is_answered(process):
    try:
        process.stdin.write(b"?")
        return process.stdout.readline() == b"here\n"
    except BrokenPipeError:
        return False


def is_called(receive):
    try:
        receive()
        return True
    except BlockingIOError:
        return False


def raise_loopback():
    SIOCSIFFLAGS, IFF_UP = 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def main(hunter):
    raise_loopback()
    with Canaries(hunter) as flock:
        done = subprocess.run(
            [hunter, *flock.goals], cwd=flock.cwd, env=dict(os.environ, **flock.environment),
            close_fds=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=100 * float(os.environ.get("CEJAIL_TEST_SLOW", "1")), check=True,
        )  # fmt: skip
        sys.stdout.write(done.stdout.decode(errors="replace"))
        found = [kind for kind, text in flock.words.items() if text in done.stdout.decode(errors="replace")]
        print("PLANTED", *flock.words)
        print("FOUND", *found)
        print("WHOLE", *flock.checks)
        print("TOUCHED", *flock.touched())


if __name__ == "__main__":
    main(sys.argv[1])
