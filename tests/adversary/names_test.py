#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""names_test.py --build DIR: another user has taken every name under which the agent would be met, in each way there is. The
victim opens a NIC within seconds all the same, every process of the victim meets the same agent, and vipinfo --doctor names the user that
stands in the way. Needs root, to be two users."""
import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import temporary  # noqa: E402
from eventually import communicated, eventually, holds  # noqa: E402
from report import rows  # noqa: E402

ATTACKER, VICTIM = 4242, 4343
# Opening takes a fraction of a second; the wait for an agent that does not answer takes ten.
ENOUGH_S = 6
PLACE = f"@viaduct-kad-{VICTIM}"
RUNTIME = f"/tmp/viaduct-{VICTIM}"


def hold(names):
    held = []
    for name, kind, how in names:
        at = name.replace("@", "\0", 1)
        s = socket.socket(socket.AF_UNIX, kind)
        s.bind(at)
        held.append(s)
        if how == "connected":
            if kind == socket.SOCK_DGRAM:
                s.connect(at)
            else:
                elsewhere = socket.socket(socket.AF_UNIX, kind)
                held.append(elsewhere)
                elsewhere.bind(at + "-elsewhere")
                elsewhere.listen(1)
                s.connect(at + "-elsewhere")
        if how == "listens":
            s.listen(1000)
        if how == "full":
            s.listen(0)
            while True:
                c = socket.socket(socket.AF_UNIX, kind)
                c.setblocking(False)
                held.append(c)
                try:
                    c.connect(at)
                except BlockingIOError:
                    break
    return held


class Squatter:
    """A process of the attacker that holds (name, type, how). How: listens, full (its queue is), bound,
    connected (to a socket of the attacker's)."""

    def __init__(self, names):
        out, report = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setgroups([])
                os.setresgid(ATTACKER, ATTACKER, ATTACKER)
                os.setresuid(ATTACKER, ATTACKER, ATTACKER)
                held = hold(names)
                os.write(report, b"held")
                signal.pause()
                held.clear()
            finally:
                os._exit(1)
        os.close(report)
        if os.read(out, 4) != b"held":
            raise SystemExit("the attacker cannot take the names")
        os.close(out)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def names(how):
    right = "connected" if how == "connected" else "bound"
    starting = [(PLACE + ".starting" + str(i or ""), socket.SOCK_DGRAM, right) for i in range(16)]
    return [(PLACE, socket.SOCK_SEQPACKET, how)] + starting


class Test:
    def __init__(self, build):
        # The victim may not be able to read the build.
        self.folder = tempfile.mkdtemp(prefix="viaduct-names-", dir=temporary.for_programs())
        os.chmod(self.folder, 0o755)
        for part in ("bin", "sbin", "lib"):
            shutil.copytree(os.path.join(build, part), os.path.join(self.folder, part), symlinks=True,
                            ignore=shutil.ignore_patterns("*.a", "libcmpi*", "cmpi*", "mpi*"))
        self.failures = []

    def environment(self, more=()):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "XDG_"))}
        lib = os.path.join(self.folder, "lib")
        return dict(keep, HOME="/nonexistent", LD_LIBRARY_PATH=lib, VIADUCT_PROVIDER_PATH=os.path.join(lib, "viaduct"),
                    VIADUCT_VIPKAD=os.path.join(self.folder, "sbin", "vipkad"), VIADUCT_AGENT_LINGER_MS="1500", VIADUCT_AGENT_ENDED_MS="0",
                    **dict(more))

    def tool(self, *words, more=()):
        return subprocess.Popen([os.path.join(self.folder, "bin", words[0])] + list(words[1:]), env=self.environment(more),
                                user=VICTIM, group=VICTIM, extra_groups=[], cwd="/", stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def check(self, what, good, said):
        print(f"{'ok    ' if good else 'FAILED'} {what}")
        if not good:
            self.failures.append(what)
            print(said)

    def agents(self):
        """The agents of this test's copy of the program: other tests have agents of the same user."""
        program = os.path.join(os.path.realpath(self.folder), "sbin", "vipkad")
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/exe") == program:
                    found.append(int(pid))
            except OSError:
                continue  # ended, or a zombie
        return found

    def until_the_agent_has_left(self):
        """The next row starts one of its own."""
        eventually("the agent has left", lambda: not self.agents(), self.agents())

    def ping(self, what):
        p = self.tool("vipping", "-c", "1", "-w", "8000")
        out = communicated(p, 60)[0]
        self.check(what, p.returncode == 0, out)

    def round(self, how):
        attacker = Squatter(names(how))
        try:
            server = self.tool("vipping", "--server")
            clients = [self.tool("vipping", "-c", "1", "-w", "8000") for _ in range(4)]
            in_time = holds(lambda: all(c.poll() is not None for c in clients), [os.getpid(), *self.agents()], ENOUGH_S)
            said = [communicated(c, 60)[0] for c in clients]
            server.terminate()
            said.append(communicated(server, 60)[0])
            # They were started apart and all meet the one server: they have the same agent.
            self.check(f"{how}: five programs meet", all(c.returncode == 0 for c in clients), "\n".join(said))
            self.check(f"{how}: within {ENOUGH_S} s", in_time, "")
            doctor = self.tool("vipinfo", "--doctor")
            out = communicated(doctor, 60)[0]
            self.check(f"{how}: the doctor names the user", f"user {ATTACKER}" in out, out)
        finally:
            attacker.end()
        self.until_the_agent_has_left()

    def folder_taken(self):
        """The name of the folder is the attacker's, too: a link to somewhere else, or a folder of his."""
        shutil.rmtree(RUNTIME, ignore_errors=True)
        os.mkdir(RUNTIME, 0o777)
        os.chown(RUNTIME, ATTACKER, ATTACKER)
        try:
            self.round("listens")
            self.check("nothing is put into a folder of the attacker", os.listdir(RUNTIME) == [], str(os.listdir(RUNTIME)))
        finally:
            shutil.rmtree(RUNTIME)

    def folder_given_back(self):
        """The attacker takes his folder away while the agent serves in another one."""
        attacker = Squatter(names("listens"))
        shutil.rmtree(RUNTIME, ignore_errors=True)
        os.mkdir(RUNTIME, 0o777)
        os.chown(RUNTIME, ATTACKER, ATTACKER)
        try:
            server = self.tool("vipping", "--server")
            self.ping("the attacker has the folder")
            os.rmdir(RUNTIME)
            self.ping("the attacker has given it back: the same agent")
            server.kill()
            server.wait()
        finally:
            shutil.rmtree(RUNTIME, ignore_errors=True)
            attacker.end()
        self.until_the_agent_has_left()

    def environments(self):
        """A server that a session manager has told of a folder, and a client that it has not."""
        attacker = Squatter(names("listens"))
        told = os.path.join(self.folder, "runtime")
        os.mkdir(told, 0o700)
        os.chown(told, VICTIM, VICTIM)
        try:
            server = self.tool("vipping", "--server", more={"XDG_RUNTIME_DIR": told})
            self.ping("ends with different environments meet")
            server.kill()
            server.wait()
        finally:
            attacker.end()
        self.until_the_agent_has_left()

    def stale(self):
        """What a killed agent has left does not keep the next one from serving."""
        attacker = Squatter(names("listens"))
        try:
            server = self.tool("vipping", "--server")
            self.ping("the first agent")
            server.kill()
            server.wait()
            for pid in self.agents():
                os.kill(pid, signal.SIGKILL)
            server = self.tool("vipping", "--server")
            self.ping("a killed agent's file is replaced")
            server.kill()
            server.wait()
        finally:
            attacker.end()
        self.until_the_agent_has_left()

    def run(self):
        ways = {how: lambda how=how: self.round(how) for how in ("listens", "bound", "full", "connected")}
        ways.update({part.__name__: part for part in (self.stale, self.folder_taken, self.folder_given_back, self.environments)})
        failed = []
        try:
            for name in rows.chosen(ways):
                before = len(self.failures)
                ways[name]()
                if len(self.failures) > before:
                    failed.append(name)
        finally:
            shutil.rmtree(self.folder)
            shutil.rmtree(RUNTIME, ignore_errors=True)
            for entry in os.listdir("/tmp"):
                path = os.path.join("/tmp", entry)
                if entry.startswith(f"viaduct-{VICTIM}-") and os.lstat(path).st_uid == VICTIM:
                    shutil.rmtree(path)
        rows.report(failed)
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    words = parser.parse_args()
    if os.geteuid() != 0:
        print("SKIPPED: needs root, to be two users")
        return 77
    if os.path.exists(f"/run/user/{VICTIM}") or os.path.lexists(RUNTIME):
        print(f"SKIPPED: there is a user {VICTIM} on this machine already")
        return 77
    return Test(words.build).run()


if __name__ == "__main__":
    sys.exit(main())
