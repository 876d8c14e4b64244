# SPDX-License-Identifier: BSD-2-Clause
"""Users of one machine and a service that they share, for scripts in this folder: processes of other users, the agent as systemd
starts it, what a process holds, and how long a victim's calls take."""
import array
import contextlib
import ctypes
import errno
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402
import temporary  # noqa: E402

VICTIM, ATTACKER, SERVICE, ACCOMPLICE = 4241, 4242, 4243, 4244  # user ids; they need no name
SKIPPED = 77
LATEST = 5.0  # seconds, for anything that a victim waits for


class Failure(Exception):
    pass


def skip(why):
    print("SKIPPED: " + why)
    sys.exit(SKIPPED)


def become(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def raise_files(most=1 << 20):
    """So many descriptors as this machine lets us have; how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, most), max(hard, most)))
        return max(hard, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def everybodys_copy(build, more=()):
    """What users run, where all of them may read it: a build may lie in the folder of one user."""
    folder = tempfile.mkdtemp(prefix="viaduct-users-", dir=temporary.for_programs())
    os.chmod(folder, 0o755)
    for name in ("sbin/vipkad", "lib/libvipl.so.1", "lib/viaduct/paramnet.so", *more):
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(build, name), target)
    return folder


class Agent:
    """vipkad as a service of the system: root listens, a user without rights serves."""

    def __init__(self, folder, files=65536):
        self.path = os.path.join(folder, "agent.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self.path)
        os.chmod(self.path, 0o666)
        listener.listen(4096)
        self.log = open(os.path.join(folder, "agent.log"), "w+", encoding="utf-8")
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(self.log.fileno(), 2)
            hard = min(files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            passed = listener.detach()
            os.dup2(passed, 3)
            os.set_inheritable(3, True)
            become(SERVICE)
            os.execve(os.path.join(folder, "sbin/vipkad"), ["vipkad", "--linger-ms", "-1", "--log-level", "error"],
                      {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "PATH": "/usr/bin:/bin",
                       "VIADUCT_PROVIDER_PATH": os.path.join(folder, "lib/viaduct")})
        listener.close()

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def alive(self):
        return os.waitpid(self.pid, os.WNOHANG) == (0, 0)


def held_by(pid):
    """Memory in KiB, threads and descriptors of a process."""
    status = {}
    with open("/proc/%d/status" % pid, encoding="utf-8") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            status[key] = value.split()
    return int(status["VmRSS"][0]), int(status["Threads"][0]), len(os.listdir("/proc/%d/fd" % pid))


@contextlib.contextmanager
def attacker(work, *arguments, user=ATTACKER):
    """A process of another user that does `work(ready, ...)` until it is killed; `ready()` says that it has begun."""
    said, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(said)
            raise_files()
            become(user)
            work(lambda: os.write(says, b"!"), *arguments)
        except BaseException as failure:  # it ends here, whatever it was
            os.write(2, ("attacker: %r\n" % failure).encode())
        finally:
            os._exit(0)
    os.close(says)
    try:
        if not eventually.holds(lambda: select.select([said], [], [], 0)[0], [pid], 30) or os.read(said, 1) != b"!":
            raise Failure("the attacker does not begin")
        yield pid
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            raise Failure("the attacker has ended before its time: nothing was measured")
    finally:
        os.close(said)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def slowest_of_twenty(times):
    """The 95th of a hundred."""
    return sorted(times)[max(0, -(-len(times) * 95 // 100) - 1)]


def lingering_socket():
    """A TCP socket whose closing waits for ten minutes, and its other end, which takes nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        near = socket.socket()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        near.connect(listener.getsockname())
        far, _ = listener.accept()
    near.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while near.send(bytes(4096)):
            pass
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
    return near, far


MOUNT_FORCED, MOUNT_AWAY, NAMESPACE_OF_MOUNTS, PRIVATE = 1, 2, 0x20000, 0x44000  # MNT_FORCE, MNT_DETACH, CLONE_NEWNS, MS_REC | MS_PRIVATE
GET_ATTRIBUTES, OPEN, RELEASE, FLUSH, INIT, INTERRUPT, FORGET, FORGETS = 3, 14, 18, 25, 26, 36, 2, 42  # linux/fuse.h


@contextlib.contextmanager
def file_that_hangs():
    """The path of a file of the attacker's in a FUSE file system, which is served here. A process of root that closes it waits until
    this ends; None where there is no FUSE."""
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.NamedTemporaryFile(prefix="hangs-") as place, contextlib.ExitStack() as opened:
        device = -1
        with contextlib.suppress(OSError):
            device = os.open("/dev/fuse", os.O_RDWR)
            opened.callback(os.close, device)
        options = "fd=%d,rootmode=100000,user_id=%d,group_id=%d" % (device, ATTACKER, ATTACKER)
        os.chmod(place.name, 0o644)
        if (device < 0 or libc.unshare(NAMESPACE_OF_MOUNTS) != 0 or libc.mount(b"", b"/", None, PRIVATE, None) != 0 or
                libc.mount(b"hangs", place.name.encode(), b"fuse", 0, options.encode()) != 0):
            yield None
            return

        def serve():
            with contextlib.suppress(OSError):  # it is mounted no more
                while True:
                    request = os.read(device, 1 << 18)
                    kind, unique, _, user = struct.unpack_from("=4xIQQI", request)
                    answer, error = b"", 0
                    if kind in (FORGET, FORGETS, INTERRUPT) or (kind == FLUSH and user == 0):
                        continue
                    if kind == INIT:
                        answer = struct.pack("=IIIIHHIIHH32x", 7, 31, 0, 0, 16, 12, 4096, 1, 0, 0)
                    elif kind == OPEN:
                        answer = bytes(16)
                    elif kind == GET_ATTRIBUTES:
                        answer = struct.pack("=QII6Q10I", 3600, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o100644, 1, ATTACKER,
                                             ATTACKER, 0, 4096, 0)
                    elif kind not in (FLUSH, RELEASE):
                        error = -errno.ENOSYS
                    os.write(device, struct.pack("=IiQ", 16 + len(answer), error, unique) + answer)
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        try:
            yield place.name
        finally:
            libc.umount2(place.name.encode(), MOUNT_FORCED | MOUNT_AWAY)
            server.join(10)


def hand_over_what_hangs(ready, name, path, hello):
    """Many at a time. So many of his files may be in sockets and unread (RLIMIT_NOFILE)."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    with open(path, "rb") as file:
        for n in range(1 << 30):
            with contextlib.suppress(OSError), connect(name, 30) as client:
                hand_over(client, hello if n % 2 else b"?", 253 * [file])
            if n == 100:
                ready()
            if n >= 100:
                time.sleep(0.002)  # sleeps: the pace of the attack


# ---- the agent's protocol (include/viaduct/kagent.hpp)

HELLO, STATUS, WELCOME = 1, 17, 100


def message(kind, payload=b"", ticket=1):
    return struct.pack("=IHHII", 0x4B414456, 1, kind, len(payload), ticket) + payload


HELLO_MESSAGE = message(HELLO, struct.pack("=HHI64s", 1, 1, 0, b"attacker"))


def connect(path, timeout=10.0):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(timeout)
    client.connect(path)
    return client


def be_silent(ready, name, *_):
    """140 that say nothing; each that is closed comes again."""
    clients = [connect(name, 30) for _ in range(140)]
    for client in clients:
        client.setblocking(False)
    ready()
    while True:
        for i, client in enumerate(clients):
            try:
                client.recv(1)
            except BlockingIOError:
                continue
            except OSError:
                pass
            client.close()
            clients[i] = connect(name, 30)
            clients[i].setblocking(False)
        time.sleep(0.005)  # sleeps: the pace of the attack


def joined(path):
    """A session that is welcome."""
    client = connect(path)
    client.send(HELLO_MESSAGE)
    answer = client.recv(16384)
    if len(answer) < 16 or struct.unpack_from("=IHH", answer)[2] != WELCOME:
        raise Failure("no welcome")
    return client


def hand_over(client, data, files):
    rights = array.array("i", [f.fileno() for f in files])
    client.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def welcomes(welcome, seconds):
    """How long each call of `welcome` takes in a process of the victim's: it gives that in seconds."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reads)
            become(VICTIM)
            end = time.monotonic() + seconds
            with os.fdopen(writes, "w") as out:
                while time.monotonic() < end:
                    try:
                        out.write("%f\n" % welcome())
                    except (Failure, OSError) as failure:
                        out.write("%s\n" % failure)
                        break
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as said:
        lines = said.read().splitlines()
    os.waitpid(pid, 0)
    try:
        return [float(line) for line in lines]
    except ValueError:
        raise Failure(lines[-1]) from None


def run_as(user, words, environment, timeout):
    return eventually.run(words, timeout, env=environment, preexec_fn=lambda: become(user))
