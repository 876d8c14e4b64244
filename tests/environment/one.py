# SPDX-License-Identifier: BSD-2-Clause
"""Runs one row, in a process of its own that ends all it has started: run(row, tools) gives ("GOOD" | "BAD" | "SKIPPED",
why). Every process has a status page with the name of the call it is in, for the watchdog."""
import contextlib
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess

import agents
import surroundings
from eventually import PAUSE, Machine, RunningTime, families, holds

PAGE = struct.Struct("128sqii256s")  # programs/status.h
USER = 4242


class Page:
    def __init__(self, path):
        with open(path, "wb") as file:
            file.write(b"\0" * 4096)
        os.chmod(path, 0o666)
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 4096)

    def _fields(self):
        call, since, pid, finished, result = PAGE.unpack_from(self._map)
        return call.split(b"\0")[0].decode(errors="replace"), since, pid, finished, \
            result.split(b"\0")[0].decode(errors="replace")

    @property
    def result(self):
        _, _, _, finished, result = self._fields()
        return result if finished else ""

    @property
    def pid(self):
        return self._fields()[2]

    def where(self):
        call, _, pid, finished, _ = self._fields()
        if finished:
            return "its end, after the result"
        return call or ("between two calls" if pid else "its start")


class Process:
    """One program with its page. Its output is read whenever it is looked at, so what it wrote before its end is there then."""

    def __init__(self, name, command, environment, folder, detaches=False, ranks=0):
        self.name, self.detaches = name, detaches
        path = os.path.join(folder, name)
        self.pages = [Page(f"{path}.{i}") for i in range(ranks)] or [Page(path)]
        self.output = bytearray()
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        self.process = subprocess.Popen(command, env=dict(environment, ENVIRONMENT_STATUS=path, ROW=folder),
                                        stdin=subprocess.DEVNULL, stdout=writing, stderr=writing)
        os.close(writing)

    def _read(self):
        try:
            while piece := os.read(self._reading, 65536):
                self.output += piece
        except BlockingIOError:
            pass

    @property
    def text(self):
        self._read()
        return bytes(self.output).decode(errors="replace")

    def ended(self):
        self._read()
        if self.process.poll() is None:
            return False
        return not self.detaches or bool(self.result())

    def result(self):
        """"works", an error, or how it ended."""
        said = [page.result for page in self.pages]
        for text in said:
            if text and text != "works":
                return text
        code = self.process.returncode
        if all(said):
            if code not in (0, None) and code > 0 and not self.detaches:
                return f"status {code} after all went well"
            return "works"
        if self.detaches or code is None:
            return ""
        return f"signal {-code}" if code < 0 else f"signal {code - 128}" if code > 128 else f"status {code}"

    def where(self):
        return ", ".join(page.where() for page in self.pages)


def kill_all(pids):
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def none_is_left():
    """Kills the processes below this one and collects those that have ended."""
    kill_all(families([os.getpid()]) - {os.getpid()})
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def end_everything():
    holds(none_is_left)


def kill(process):
    """Kills a program and the programs in front of it. (The first process of a PID namespace cannot kill itself.)"""
    kill_all(families([process.pid]))


def commands(row, tools, cgroup):
    """[(name, command, ranks)] of what is started, in this order."""
    def before(words):
        return surroundings.prefix((*row.both, *words), tools.within, cgroup)

    server, client = before(row.server), before(row.client)
    what, _, rest = row.action.partition(":")
    if what == "mpi":
        launch = [tools.mpiexec, "-n", "1", *server, tools.job, ":", "-n", "1", *client, tools.job]
        return [("job", launch, 2)]
    if what == "tool":
        name, *words = rest.split(" ")
        return [("client", [*client, getattr(tools, name), *words], 0)]
    if what in ("open", "crowd"):
        return [("client", [*client, tools.actions, "connect", "x", row.action, row.client_moment], 0)]
    return [("server", [*server, tools.actions, "serve", "meet", row.action, row.server_moment], 0),
            ("client", [*client, tools.actions, "connect", "meet", row.action, row.client_moment], 0)]


TIMEOUT_MS = 8000  # timeout of a call of the ends


def environment_of(row, tools, folder):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "CMPI_", "ENVIRONMENT_"))}
    kept.update(surroundings.KEPT, VIADUCT_AGENT=tools.agent_name(row), VIADUCT_LOG="warn", VIADUCT_AGENT_LINGER_MS="500",
                ENVIRONMENT_TIMEOUT_MS=str(TIMEOUT_MS), ENVIRONMENT_AGENT=os.path.join(folder, "agent.pid"))
    if row.action.startswith("mpi:"):
        kept["CMPI_PROTOCOL"] = row.action.partition(":")[2]
    for name, value in row.variables.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = value
    return kept


def missing(row, tools):
    """Why this row cannot run here, or ""."""
    words = (*row.both, *row.server, *row.client, *(row.agent if isinstance(row.agent, tuple) else ()))
    if os.geteuid() != 0:
        return "only root can make these surroundings"
    if row.action.startswith("mpi:") and not tools.mpiexec:
        return "no mpiexec.hydra (package mpich)"
    for library in row.variables.get("LD_PRELOAD", "").split(":"):
        if library and not os.path.exists(library):
            return f"no {library}"
    if any(word.startswith("user=") for word in words) or "setuid" in (row.server_moment, row.client_moment):
        look = subprocess.run([tools.within, f"user={USER}", "--", "test", "-x", tools.actions], check=False,
                              stderr=subprocess.DEVNULL)
        if look.returncode != 0:
            return f"another user cannot reach {tools.actions}"
    if "no-shm" in words and surroundings.CHECKOUT.startswith("/dev/"):
        return "the checkout lies in /dev, which this row hides"
    for word in words:
        if word in surroundings.NAMESPACES or word in surroundings.MOUNTS:
            test = subprocess.run([*surroundings.prefix((word,), tools.within), "true"], check=False, capture_output=True,
                                  env=dict(os.environ, **surroundings.KEPT, ROW=tools.folder(row)))
            if test.returncode != 0:
                return f"cannot make {word}: {test.stderr.decode(errors='replace').strip()}"
    return ""


def run(row, tools):
    folder = tools.folder(row)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    surroundings.become_subreaper()
    os.setsid()
    cgroup = None
    try:
        why = missing(row, tools)
        if why:
            return "SKIPPED", why
        if row.own_network:
            surroundings.own_network()
        if row.cgroup:
            cgroup = surroundings.Cgroup(*row.cgroup, f"viaduct-environment-{os.getpid()}")
            if cgroup.why:
                return "SKIPPED", cgroup.why
        return started(row, tools, folder, cgroup.folder if cgroup else None)
    finally:
        end_everything()
        if cgroup:
            cgroup.remove()


def started(row, tools, folder, cgroup):
    environment = environment_of(row, tools, folder)
    if row.agent is not None:
        with open(os.path.join(folder, "agent.log"), "wb") as log:
            words = row.agent if isinstance(row.agent, tuple) else ()
            agent = agents.Agent(row, environment["VIADUCT_AGENT"], tools.vipkad,
                                 surroundings.prefix(words, tools.within, cgroup), dict(environment, ROW=folder), log,
                                 os.path.join(folder, "agent.pid"))
        if not agent.ready(5) and row.outcome.works:
            return "BAD", "the agent that the row needs did not start"
    processes = []
    for name, command, ranks in commands(row, tools, cgroup):
        detaches = bool({"orphan", "doublefork", "daemon"} & {*row.both, *(row.server if name == "server" else row.client)}) or \
            "daemon" == (row.server_moment if name == "server" else row.client_moment)
        processes.append(Process(name, command, environment, folder, detaches, ranks))
    # All processes of the row are below this one.
    time_used = RunningTime()
    while not all(process.ended() for process in processes):
        if row.action == "killed" and not row.server_moment and processes[0].result() == "works":
            kill(processes[0].process)
        if time_used.is_over(row.seconds):
            return "BAD", "; ".join(f"{p.name} hung in {p.where()}" for p in processes if not p.ended()) + \
                f" ({time_used.running():.0f} s)"
        Machine.pause(PAUSE)
    return judge(row, processes)


def judge(row, processes):
    if row.action.startswith("tool:"):
        return judge_tool(row, processes[0])
    outcome = row.outcome
    results = [process.result() for process in processes]
    ended_as_allowed = [any(code in result for code in outcome.codes) or (outcome.killed and result.startswith(("signal", "status")))
                        for result in results]
    for process, result in zip(processes, results):
        if result == "works":
            if not outcome.works and process.name in inside(row):
                return "BAD", f"{process.name} works, where it was to be refused"
            continue
        if process.name == "server" and row.action == "killed":
            continue  # its end is what the row is about
        if result.startswith("skipped"):
            return "SKIPPED", result
        if result.startswith("wrong"):
            return "BAD", f"{process.name}: {result}"
        # An end that has lost its peer to the environment ends with an error of its own.
        left_alone = any(ended for other, ended in zip(processes, ended_as_allowed) if other is not process)
        if (process.name not in inside(row) or left_alone) and outcome.peer_fails and ": VIP_" in result:
            continue
        if outcome.killed and result.startswith(("signal", "status", "out of memory")):
            continue
        if process.name == "job" and outcome.codes and result.startswith("status") and re.search(outcome.reason, process.text):
            continue
        code = re.search(r": (VIP_\w+)", result)
        if not code or code.group(1) not in outcome.codes:
            return "BAD", f"{process.name}: {result}; it said: {tail(process.text, result)}"
        said = process.text.replace(result, "", 1)
        if not re.search(outcome.reason, said):
            return "BAD", f"{process.name}: {result}, and no reason in its log ({tail(said, '')})"
    return "GOOD", ""


def judge_tool(row, process):
    code = process.process.returncode
    if code != row.status:
        return "BAD", f"{row.action} ended with {code} instead of {row.status}: {tail(process.text, '')}"
    if not re.search(row.says or r"(?m)^ok", process.text):
        return "BAD", f"{row.action} does not say {row.says!r}: {tail(process.text, '')}"
    return "GOOD", ""


def inside(row):
    """The names of those that the row's environment is about."""
    names = set()
    if row.both or row.agent is not None or row.variables:
        names |= {"server", "client", "job"}
    if row.server or row.server_moment:
        names |= {"server", "job"}
    if row.client or row.client_moment:
        names |= {"client", "job"}
    return names or {"server", "client", "job"}


def tail(text, without):
    lines = [line for line in text.splitlines() if line.strip() and line != without]
    return " | ".join(line[-200:] for line in lines[-3:]) or "nothing"
