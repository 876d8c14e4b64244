#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""inherited_test.py --build DIR: what a program that starts the agent in passing has, and the agent must not have for it: limits,
priority, processors, mask, folder, environment. Root's agent undoes them; another user's, which may not raise its limits again,
is replaced as soon as a program with better ones comes, and programs that were connected go on. So are a full agent, a full
viaduct-udpd, and a viaduct-acenicd that no program is attached to. Needs root, to be that user."""
import argparse
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import temporary  # noqa: E402
from eventually import communicated, holds  # noqa: E402

USER = 4343
FEW = {"files": (resource.RLIMIT_NOFILE, 40), "processor time": (resource.RLIMIT_CPU, 3000),
       "address space": (resource.RLIMIT_AS, 1 << 33), "data": (resource.RLIMIT_DATA, 1 << 32),
       "file size": (resource.RLIMIT_FSIZE, 1 << 33)}
# A program of a low priority may wait long for a processor.
PING = ["-q", "-c", "20", "-i", "0.02", "-w", "8000", "-W", "20000"]
LINES = {"files": "Max open files", "processor time": "Max cpu time", "address space": "Max address space",
         "data": "Max data size", "file size": "Max file size"}


def may_raise():
    """Root of a container may lack CAP_SYS_RESOURCE: then his agent is replaced like another user's."""
    with open("/proc/self/status") as f:
        effective = [int(line.split()[1], 16) for line in f if line.startswith("CapEff")][0]
    if not effective >> 24 & 1:
        print("no CAP_SYS_RESOURCE: that root raises his limits is not looked at")
        return False
    return True


def all_processors():
    """The processors that a process here may have, also when this one is pinned to some of them."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
    found = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine)
    return found


def few():
    files, most = FEW["files"]
    resource.setrlimit(files, (most, most))


def is_welcome(client, kind):
    """Says hello to the agent (viaduct/kagent.hpp) or to viaduct-udpd (providers/udp/daemon/protocol.hpp)."""
    if kind == "agent":
        client.send(struct.pack("=IHHII", 0x4B414456, 1, 1, 72, 1) + struct.pack("=HHI64s", 1, 1, 0, b"crowd"))
        return struct.unpack_from("=IHH", client.recv(1024))[2] == 100
    client.send(struct.pack("=IIQ4sHH", 0x55445044, 1, 7, socket.inet_aton("127.0.0.1"), socket.htons(9), 0))
    said = client.recv(1024)
    return len(said) >= 12 and struct.unpack_from("=i", said, 8)[0] == 0


def crowd(kind, name):
    """Connections of that user that are welcome, until one is refused."""
    clients = []
    os.seteuid(USER)
    try:
        while len(clients) < 100:
            client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            client.settimeout(20)
            client.connect("\0" + name)
            if not is_welcome(client, kind):
                break
            clients.append(client)
    finally:
        os.seteuid(0)
    return clients


def listens(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        return s.connect_ex("\0" + name) == 0


class Test:
    def __init__(self, build):
        # That user may not be able to read the build.
        self.folder = tempfile.mkdtemp(prefix="viaduct-inherited-", dir=temporary.for_programs())
        os.chmod(self.folder, 0o755)
        for part in ("bin", "sbin", "lib"):
            shutil.copytree(os.path.join(build, part), os.path.join(self.folder, part), symlinks=True,
                            ignore=shutil.ignore_patterns("*.a", "libcmpi*", "cmpi*", "mpi*"))
        self.failures = []
        self.place = ""

    def begin(self, what):
        self.place = f"@viaduct-inherited-{os.getpid()}-{what.replace(' ', '-')}"

    def start(self, user, words, before=lambda: None, **extra):
        lib = os.path.join(self.folder, "lib")
        e = {k: v for k, v in os.environ.items()
             if k == "VIADUCT_TIME_FACTOR" or not k.startswith(("VIADUCT_", "XDG_"))}
        e.update(HOME="/nonexistent", LD_LIBRARY_PATH=lib, VIADUCT_PROVIDER_PATH=os.path.join(lib, "viaduct"),
                 VIADUCT_VIPKAD=os.path.join(self.folder, "sbin", "vipkad"), VIADUCT_AGENT=self.place,
                 VIADUCT_AGENT_LINGER_MS="3000", **extra)

        def become():
            before()
            if user != 0:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)

        return subprocess.Popen([os.path.join(self.folder, "bin", "vipping")] + words, env=e, cwd="/tmp",
                                preexec_fn=become, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def daemon(self, name, mark):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[0] == name and mark.encode() in words:
                return pid
        return None

    def agent(self):
        return self.daemon(b"vipkad", self.place)

    def wait_for_agent(self, starter, other_than=None):
        """The agent that this program starts."""
        return self.wait_for(self.agent, starter, other_than)

    @staticmethod
    def wait_for(daemon, starter, other_than):
        def another():
            pid = daemon()
            return pid if pid != other_than else None
        return holds(another, [starter.pid, *([int(other_than)] if other_than else [])], 20) or None

    def answering(self, before):
        """A server of root's and the agent that it has started, which has answered it and so has done to itself what it
        does. A program of the lowest priority may take any time to start an agent; once it has, it gets what others
        have. An agent that is not ready when a server gives up may be for the next one."""
        said = ""
        for _ in range(5):
            p = self.start(0, ["--server"], before, LC_ALL="C", MALLOC_ARENA_MAX="1", VIADUCT_NICS="x=y")
            holds(lambda: self.agent() is not None or p.poll() is not None, [p.pid], 60)
            if p.poll() is None:
                os.sched_setaffinity(p.pid, os.sched_getaffinity(0))
                os.sched_setscheduler(p.pid, os.SCHED_OTHER, os.sched_param(0))
            for line in p.stdout:
                said += line
                if line.startswith("vipping: answering on"):
                    return p, self.agent(), said
            p.wait()
            if self.agent() is None:
                break
        return p, None, said

    def limit_of(self, pid, what):
        with open(f"/proc/{pid}/limits") as f:
            for line in f:
                if line.startswith(LINES[what]):
                    return line.split()[-2]  # the hard one, before the unit
        return None

    def check(self, what, good, said=""):
        print(f"{'ok    ' if good else 'FAILED'} {what}", flush=True)
        if not good:
            self.failures.append(what)
            print(said)

    def root_has_nothing_of_it(self):
        self.begin("root")

        def before():
            for kind, few in FEW.values():
                resource.setrlimit(kind, (few, few))
            os.nice(10)
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            os.umask(0o777)

        p, pid, said = self.answering(before)
        if pid is None:
            self.check("root: an agent is started", False, said)
            p.terminate()
            p.wait()
            return
        for what, (_, few) in FEW.items() if may_raise() else ():
            self.check(f"root: {what}", self.limit_of(pid, what) not in (None, str(few)), self.limit_of(pid, what))
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        self.check("root: nice", fields[16] == "0", fields[16])
        self.check("root: policy", fields[38] == "0", fields[38])
        self.check("root: processors", os.sched_getaffinity(int(pid)) == all_processors(),
                   f"{os.sched_getaffinity(int(pid))} of {all_processors()}")
        with open(f"/proc/{pid}/status") as f:
            umask = [line.split()[1] for line in f if line.startswith("Umask")]
        self.check("root: mask", umask == ["0022"], str(umask))
        self.check("root: folder", os.readlink(f"/proc/{pid}/cwd") == "/")
        with open(f"/proc/{pid}/environ", "rb") as f:
            names = {word.split(b"=")[0].decode() for word in f.read().split(b"\0")}
        self.check("root: environment", not names & {"LC_ALL", "MALLOC_ARENA_MAX", "VIADUCT_NICS", "LD_LIBRARY_PATH"},
                   str(names))
        client = self.start(0, PING)
        out = communicated(client, 60)[0]
        self.check("root: the program works", client.returncode == 0, out)
        p.terminate()
        communicated(p, 60)

    def replaced(self, what, before):
        self.begin(what)
        poor = self.start(USER, ["--server"], before)
        if not any("answering on" in line for line in poor.stdout):
            self.check(f"{what}: an agent is started", False, f"the server has ended with {poor.wait()}")
            return
        first = self.agent()
        rich = self.start(USER, PING)
        second = self.wait_for_agent(rich, first)
        self.check(f"{what}: the agent is replaced", second is not None)
        out = communicated(rich, 60)[0]
        self.check(f"{what}: the program with better limits works", rich.returncode == 0, out)
        self.check(f"{what}: the program with worse ones goes on", poor.poll() is None)
        # Programs whose limits are no better leave the agent alone.
        pid = self.agent()
        again = self.start(USER, PING, before)
        out = communicated(again, 60)[0]
        self.check(f"{what}: and stays", again.returncode == 0 and self.agent() == pid, out)
        poor.terminate()
        communicated(poor, 60)

    def full(self, what, kind, name, poor, rich, daemon, **settings):
        """A daemon of few descriptors that has refused a program is replaced by the first program of better limits. The program
        that has started the daemon loses it, too, and lets others start the next one."""
        starter = self.start(USER, poor, few, **settings)
        if not any("answering on" in line for line in starter.stdout):
            self.check(f"{what}: it is started", False, f"the server has ended with {starter.wait()}")
            return
        first = holds(lambda: listens(name) and daemon(), [starter.pid], 20)
        if not first:
            self.check(f"{what}: it is there", False)
            starter.terminate()
            starter.wait()
            return
        clients = crowd(kind, name)
        self.check(f"{what}: it refuses programs", 0 < len(clients) < 100, f"{len(clients)} are welcome")
        server = self.start(USER, rich, **settings)
        second = self.wait_for(daemon, server, first)
        self.check(f"{what}: it is replaced", second is not None)
        self.check(f"{what}: the program of better limits starts the next one",
                   second and self.limit_of(second, "files") != str(FEW["files"][1]))
        client = self.start(USER, PING + rich[1:], **settings)
        out = communicated(client, 60)[0]
        self.check(f"{what}: a program with better limits works", client.returncode == 0, out)
        again = self.start(USER, PING + poor[1:], **settings)
        out = communicated(again, 60)[0]
        self.check(f"{what}: the program with worse ones goes on", again.returncode == 0, out)
        for client in clients:
            client.close()
        for p in (starter, server):
            p.terminate()
            communicated(p, 60)

    def agent_is_full(self):
        self.begin("full agent")
        self.full("a full agent", "agent", self.place[1:], ["--server"], ["--server", "-D", "rich"], self.agent)

    def udpd_is_full(self):
        self.begin("full udpd")
        address = f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
        self.full("a full viaduct-udpd", "udpd", f"viaduct-udpd-{USER}-{address}:4792", ["--server", "-d", "udp0"],
                  ["--server", "-d", "udp0", "-D", "rich"], lambda: self.daemon(b"viaduct-udpd", address),
                  VIADUCT_UDP_INTERFACES=address, VIADUCT_UDPD=os.path.join(self.folder, "sbin", "viaduct-udpd"))

    def acenicd_has_a_program(self):
        """An engine process stays for the program that is attached to it, and is replaced after that."""
        daemon = os.path.join(self.folder, "sbin", "viaduct-acenicd")
        if not os.path.exists(daemon):
            print("no viaduct-acenicd in this build: it is not looked at")
            return
        self.begin("acenicd")
        name = f"viaduct-inherited-acenicd-{os.getpid()}"
        folder = os.path.join(self.folder, "memif")
        os.mkdir(folder)
        os.chown(folder, USER, USER)
        port = f"net_memif,socket={folder}/pair,role=server,mac=02:00:00:00:00:02"

        def become():
            few()
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)

        poor = subprocess.Popen(["viaduct-acenicd", "--port", port, "--socket", "@" + name, "--linger-ms", "-1"], executable=daemon,
                                env={"LD_LIBRARY_PATH": os.path.join(self.folder, "lib"), "HOME": "/nonexistent"},
                                preexec_fn=become)
        self.check("viaduct-acenicd: it listens", holds(lambda: listens(name), [poor.pid], 20))

        def works(what, before=lambda: None, words=()):
            server = self.start(USER, ["--server", "-d", "acenic0", *words], before, VIADUCT_ACENIC_PORTS=port,
                                VIADUCT_ACENIC_MODE="shared", VIADUCT_ACENIC_ENGINE="@" + name, VIADUCT_ACENICD=daemon)
            said = []
            for line in server.stdout:
                said.append(line)
                if "answering on" in line:
                    return server
            self.check(f"viaduct-acenicd: {what} works", False, "".join(said))
            return server

        guest = works("a program with few descriptors", few)
        rich = works("a program with better limits at a port in use", words=["-D", "rich"])
        self.check("viaduct-acenicd: it stays for the program that is attached", poor.poll() is None and guest.poll() is None)
        for server in (guest, rich):
            server.terminate()
            communicated(server, 60)
        rich = works("a program with better limits")
        self.check("viaduct-acenicd: it is replaced", holds(lambda: poor.poll() is not None, [poor.pid], 20))
        rich.terminate()
        communicated(rich, 60)
        poor.kill()
        poor.wait()

    def run(self):
        try:
            self.root_has_nothing_of_it()
            for what, (kind, few) in FEW.items():
                self.replaced(what, lambda kind=kind, few=few: resource.setrlimit(kind, (few, few)))
            self.replaced("nice", lambda: os.nice(5))
            self.agent_is_full()
            self.udpd_is_full()
            self.acenicd_has_a_program()
        finally:
            shutil.rmtree(self.folder)
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    words = parser.parse_args()
    if os.geteuid() != 0:
        print("SKIPPED: needs root, to be another user")
        return 77
    return Test(words.build).run()


if __name__ == "__main__":
    sys.exit(main())
