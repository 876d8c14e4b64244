#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the legacy-style programs as separate processes, many times, and checks all they say and leave behind.

    run.py --bin DIR [--client-bin DIR] --program NAME|all [--repeat N] [--pin CORE] [--timeout S] [--size N] [--light]
           [--far HOST=NIC@OTHER] [--when-stuck COMMAND]

Each run must end before its deadline, every process with exit status 0, an empty stderr and exactly the stdout the
program prints. After the last run no process, no file and no agent may be left.
"""
import argparse
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from eventually import Machine, RunningTime, holds

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
CLONE_NEWUTS = 0x04000000
MARK = "VIADUCT_LEGACY_RUN"
AGENT_LEAVES_WITHIN = 15.0  # seconds
CONN_LOST = "asynchronous error: connection lost"  # viautil.h
CONN_LOST_DELAY = "VIADUCT_VIPL_CONN_LOST_DELAY_MS"
USUAL_DELAY = str(250 * int(os.environ.get("VIADUCT_TIME_FACTOR", "1")))
MORE_DELAY = 10  # times the usual one
OURS = re.compile(r"via|vip|paramnet", re.IGNORECASE)
# In /tmp tests that run at the same time have files, too, of other names than the library's.
OF_THE_LIBRARY = re.compile(r"viaduct-(names-)?[0-9].*|.*(vipkad|paramnet).*")


class Failure(Exception):
    pass


class Process:
    """One started program, its output in files (a full pipe must never stop it)."""

    def __init__(self, session, folder, name, args, environment=None, calls_this_host=None):
        self.command = [os.path.join(folder, "via_" + name)] + [str(a) for a in args]
        self.out_path = session.new_file("out")
        self.err_path = session.new_file("err")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                          cwd=session.folder, env=environment or session.environment,
                                          start_new_session=True,
                                          preexec_fn=lambda: session.before_exec(calls_this_host))

    def stdout(self):
        return read_text(self.out_path)

    def stderr(self):
        return read_text(self.err_path)

    def is_good(self):
        return self.popen.returncode == 0 and not self.stderr()

    def describe(self):
        code = self.popen.returncode
        text = "  %s: %s\n" % (" ".join(self.command), "still running" if code is None else "exit status %d" % code)
        for name, content in (("stdout", self.stdout()), ("stderr", self.stderr())):
            for line in content.splitlines()[-25:]:
                text += "    %s: %s\n" % (name, line)
        return text


class Session:
    """What is common to all runs: folders, environment, core, the processes of the current run."""

    def __init__(self, options):
        self.bin = os.path.abspath(options.bin)
        self.client_bin = os.path.abspath(options.client_bin or options.bin)
        self.pin = options.pin
        self.light = options.light or options.pin is not None
        self.timeout = options.timeout
        self.when_stuck = options.when_stuck
        self.size = options.size
        self.folder = tempfile.mkdtemp(prefix="legacy-run-")
        self.private = {}
        self.environment = dict(os.environ)
        for variable in ("XDG_RUNTIME_DIR", "TMPDIR"):
            path = os.path.join(self.folder, variable)
            os.mkdir(path, 0o700)
            self.private[variable] = self.environment[variable] = path
        # Memory and threads that are not freed or joined at the end are a habit of these programs, not a finding.
        for variable, setting in (("ASAN_OPTIONS", "detect_leaks=0"), ("TSAN_OPTIONS", "report_thread_leaks=0")):
            self.environment[variable] = ":".join(filter(None, [os.environ.get(variable), setting]))
        self.mark = "%s=%d-%d" % (MARK, os.getpid(), time.time_ns())
        self.environment.update([self.mark.split("=")])
        self.agent = self.environment.setdefault("VIADUCT_AGENT", "@viaduct-legacy-%d" % os.getpid())
        # Without, the agent stays for a minute to tell vipstat why calls of a program have failed.
        self.environment["VIADUCT_AGENT_ENDED_MS"] = "0"
        self.host = socket.gethostname().split(".")[0]
        self.far_environment = None
        self.hosts = []
        if options.far:
            self.host, nic, other = re.fullmatch(r"(.*)=(.*)@(.*)", options.far).groups()
            self.hosts = [self.host, other]
            self.far_environment = dict(self.environment)
            self.far_environment["VIADUCT_NICS"] = ",".join("%s=%s" % (name, nic) for name in DEVICES)
        self.started = time.time()
        self.before = {place: names_in(place) for place in ("/tmp", "/dev/shm")}
        self.files = 0
        self.processes = []
        self.apart = 0.0  # seconds of running time between the first end and the last
        self.strays = set()

    def usual_delay(self):
        return os.environ.get(CONN_LOST_DELAY, USUAL_DELAY)

    def delay_conn_lost(self, times):
        """So many times as late as usually are processes told that a peer has ended."""
        usual = self.usual_delay()
        for environment in filter(None, (self.environment, self.far_environment)):
            environment.pop(CONN_LOST_DELAY, None)
            if times != 1 and usual.isdigit():
                environment[CONN_LOST_DELAY] = str(int(int(usual) * times))
            elif CONN_LOST_DELAY in os.environ:
                environment[CONN_LOST_DELAY] = usual

    def new_file(self, kind):
        self.files += 1
        return os.path.join(self.folder, "%s.%d" % (kind, self.files))

    def before_exec(self, calls_this_host):
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if calls_this_host:
            if LIBC.unshare(CLONE_NEWUTS) != 0:
                raise OSError("no host name of its own")
            socket.sethostname(calls_this_host)
        if self.pin is not None:
            os.sched_setaffinity(0, {self.pin})

    def start(self, name, *args):
        process = Process(self, self.bin, name, args)
        self.processes.append(process)
        return process

    def start_far(self, name, *args):
        """A client: on the NIC of --far, where it has to look for its server at another address."""
        process = Process(self, self.client_bin, name, args, self.far_environment)
        self.processes.append(process)
        return process

    def start_rank(self, rank, name, *args, calls_this_host=None):
        """Every other one is what a client would be."""
        folder, environment = (self.client_bin, self.far_environment) if rank % 2 else (self.bin, None)
        process = Process(self, folder, name, args, environment, calls_this_host)
        self.processes.append(process)
        return process

    def finish(self):
        """Waits for all processes of the run; each must have ended well and in silence."""
        pids = [process.popen.pid for process in self.processes]
        time_used, since_end, since_failure = RunningTime(pids), None, None
        self.apart = 0.0
        while True:
            codes = [process.popen.poll() for process in self.processes]
            if None not in codes:
                break
            if time_used.is_over(self.timeout):
                if not any(codes):
                    raise Failure("deadline of %g s passed\n%s" % (self.timeout, self.stacks()))
                break
            if any(code is not None for code in codes):
                since_end = since_end or RunningTime(pids)
                self.apart = since_end.running()
            if any(codes):
                # The others may wait for it for ever, or have something to say about its end.
                since_failure = since_failure or RunningTime(pids)
                if since_failure.is_over(2):
                    break
            Machine.pause(0.02 if since_end else 0.002)
        for process in self.processes:
            if process.popen.returncode is not None and process.popen.returncode != 0:
                raise Failure("a process ended with status %d" % process.popen.returncode)
            if process.stderr():
                raise Failure("a process wrote to stderr")

    def stacks(self):
        text = ""
        debugger = shutil.which("gdb")
        for process in self.processes[:8]:
            if process.popen.poll() is None and debugger:
                text += subprocess.run([debugger, "-p", str(process.popen.pid), "-batch", "-ex",
                                        "thread apply all bt 12"], capture_output=True, text=True,
                                       timeout=60, check=False).stdout[-4000:]
        if self.when_stuck:
            text += subprocess.run(self.when_stuck, shell=True, capture_output=True, text=True, timeout=60,
                                   check=False).stdout
        return text

    def clear(self):
        for process in self.processes:
            if process.popen.poll() is None:
                process.popen.kill()
                process.popen.wait()
            os.unlink(process.out_path)
            os.unlink(process.err_path)
        self.processes = []

    def leftovers(self):
        """What is still there; waits as long as an agent may take to leave."""
        found = []

        def nothing_is_left():
            found[:] = self.left_processes() + self.left_agent() + self.left_files()
            return not found
        nothing_is_left()  # finds the strays
        holds(nothing_is_left, [os.getpid(), *self.strays], AGENT_LEAVES_WITHIN)
        return found

    def left_processes(self):
        found = []
        self.strays = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    marked = self.mark.encode() in f.read().split(b"\0")
                if marked and int(pid) != os.getpid():
                    with open("/proc/%s/cmdline" % pid, "rb") as f:
                        found.append("process %s: %s" % (pid, f.read().replace(b"\0", b" ").decode()))
                    self.strays.add(int(pid))
            except OSError:
                continue  # ended meanwhile, or another user's
        return found

    def end_strays(self):
        for pid in self.strays:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def left_agent(self):
        with open("/proc/net/unix", encoding="utf-8") as f:
            names = {line.split()[-1] for line in f if len(line.split()) > 7}
        return ["agent: its socket %s is still bound" % self.agent] if self.agent in names else []

    def left_files(self):
        found = []
        for path in self.private.values():
            found += ["file: " + os.path.join(path, name) for name in names_in(path)]
        for place, before in self.before.items():
            for name in names_in(place) - before:
                path = os.path.join(place, name)
                try:
                    made_now = os.lstat(path).st_ctime >= self.started - 1
                except OSError:
                    continue
                # Other programs of this machine have folders in /tmp; ours would be a file, socket or pipe.
                if place == "/dev/shm":
                    ours = OURS.search(name)
                else:
                    ours = OF_THE_LIBRARY.fullmatch(name) and not os.path.isdir(path)
                if made_now and ours:
                    found.append("file: " + path)
        return found


def names_in(place):
    try:
        return set(os.listdir(place))
    except OSError:
        return set()


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def expect(process, pattern):
    """The whole of stdout, not more and not less."""
    match = re.fullmatch(pattern, process.stdout())
    if not match:
        raise Failure("%s printed something else than expected (%.300s)" % (process.command[0], pattern))
    return match


def expect_text(text, pattern, what):
    if not re.fullmatch(pattern, text):
        raise Failure("%s holds something else than expected (%s): %s" % (what, pattern, text[-400:]))


# ---- one function per program: start its processes for run number i, wait, check what they print ----

DEVICES = ["/dev/via_eth0", "/dev/via_lo", "/dev/clanvi0", "nic0", "VINIC0"]


def pingpong(s, i):
    largest = 1 << 17 if s.light else 1 << 20
    args = ["-d", DEVICES[i % len(DEVICES)]]
    server = s.start("pingpong", "-s", *args)
    piece = [0, 0, 32768, 65472, 1000][i % 5]
    host = "localhost" if i % 2 and not s.far_environment else s.host
    client = s.start_far("pingpong", "-c", host, "-n", 2 if s.light else 200,
                         "-m", largest, "-r", "udr"[i % 3], "-t", piece, *args)
    s.finish()
    lines = "".join(r" +%d +[0-9.]+ +[0-9.]+\n" % (1 << k) for k in range(2, largest.bit_length()))
    expect(client, r" +bytes +half trip \(us\) +MB/s\n" + lines + r"data verified: OK\n")
    expect(server, r"server: done\n")


def many2one(s, i):
    clients = 2 + i % 5
    messages = 60 if s.light else 200
    largest = 1 + i * 800 % 16384
    early = [s.start_far("many2one", "-c", s.host, "-i", k, "-m", messages, "-b", largest) for k in range(i % 2)]
    server = s.start("many2one", "-s", "-n", clients, "-w", i % 2)
    late = [s.start_far("many2one", "-c", s.host, "-i", k, "-m", messages, "-b", largest)
            for k in range(len(early), clients)]
    s.finish()
    for k, process in enumerate(early + late):
        expect(process, r"client %d: %d messages answered\n" % (k, messages))
    expect(server, r"%d clients, %d messages, [0-9]+ bytes, all in order\n" % (clients, clients * messages))


def alltoall(s, i):
    size = s.size or 2 + i % 5
    rounds = 12 if size < 32 else 3
    ranks = [s.start_rank(r, "alltoall", "-r", r, "-n", size, "-k", rounds, "-l", "dru"[i % 3], "-j", i, *s.hosts)
             for r in range(size)]
    s.finish()
    for r, process in enumerate(ranks):
        expect(process, r"rank %d of %d: %d messages, [0-9]+ bytes, all sums right\n" % (r, size, rounds * (size - 1)))


def rdmamove(s, i):
    mode = 1 + i % 3
    size = [8 * 1024 * 1024 + 4321, 1, 65467, 4 * 65467 + 1, 999983][i % 5]
    source = s.new_file("input")
    target = s.new_file("output")
    with open(source, "wb") as f:
        f.write(os.urandom(size))
    server = s.start("rdmamove", "-s", "-o", target)
    what = ["-f", source] if i % 4 else ["-z", size]
    client = s.start_far("rdmamove", "-c", s.host, "-M", mode, "-r", "dr"[i // 3 % 2], *what)
    s.finish()
    back = r"read back %d bytes: same\n" % size if mode == 3 else ""
    total = expect(client, back + r"moved %d bytes, sum ([0-9a-f]{8})\n" % size).group(1)
    expect(server, r"received %d bytes, sum %s\n" % (size, total))
    with open(source, "rb") as a, open(target, "rb") as b:
        if i % 4 and a.read() != b.read():
            raise Failure("the moved file differs")
    os.unlink(source)
    os.unlink(target)


def threads(s, i):
    messages = [60, 1][i % 2] if s.light else [200, 1, 37, 500][i % 4]
    args = ["-m", messages, "-r", "drd"[i % 3]]
    server = s.start("threads", "-s", *args)
    client = s.start_far("threads", "-c", s.host, *args)
    s.finish()
    expect(client, r"client: %d answers from handlers, %d from queue handlers, %d messages each way\n"
           % (messages, messages, messages))
    expect(server, r"server: all answered, the client has left\n")


def ring(s, i):
    size = s.size or 2 + i % 4
    # Each looks for its neighbours on "this host". Between two NICs that has to be the other one, of an even number.
    neighbours = s.hosts[::-1] or [None, None]
    size -= size % 2 if s.hosts else 0
    laps = 20 if s.light else 50
    logs = [s.new_file("log") for _ in range(size)]
    ranks = [s.start_rank(r, "ring", "-r", r, "-n", size, "-k", laps, "-l", logs[r], "-j", i, "-x", "xud"[i % 3],
                          calls_this_host=neighbours[r % 2]) for r in range(size)]
    s.finish()
    for r, process in enumerate(ranks):
        expect(process, r"rank %d of %d starts\n" % (r, size))
        expect_text(read_text(logs[r]), r"rank %d of %d: %d laps, token and sums right\n" % (r, size, laps), "the log")
        os.unlink(logs[r])


def watch(s, i):
    messages = [10, 1][i % 2] if s.light else [20, 1, 40][i % 3]
    args = ["-m", messages, "-r", "dru"[i % 3]]
    server = s.start("watch", "-s", *args)
    client = s.start_far("watch", "-c", s.host, *args)
    s.finish()
    expect(client, r"client: %d answers, every status seen in memory\n" % messages)
    expect(server, r"server: %d requests answered by process of its own\n" % messages)


def pages(s, i):
    rounds = 5 if s.light else [1, 10, 30][i % 3]
    args = ["-m", rounds, "-r", "d"]  # the level at which every NIC has RDMA read
    server = s.start("pages", "-s", *args)
    client = s.start_far("pages", "-c", s.host, *args)
    s.finish()
    expect(client, r"client: %d pages fetched, %d twins, %d pieces written home\n" %
           (16 * rounds, 10 * rounds, 10 * rounds))
    expect(server, r"server: 16 pages as they should be after %d rounds\n" % rounds)


def notify(s, i):
    clients, messages = 1 + i % 6, 10 if s.light else 20
    ways = ["decb"[(i + k) % 4] for k in range(clients)]
    args = ["-m", messages, "-r", "dr"[i % 2]]
    server = s.start("notify", "-s", "-n", clients, *args)
    all_clients = [s.start_far("notify", "-c", s.host, "-w", way, *args) for way in ways]
    s.finish()
    for process in all_clients:
        expect(process, r"client: asked %d times\n" % messages)
    line = r"server: (\d+) answered, %d clients left, %d times told\n" % (clients, clients)
    answered = int(expect(server, line).group(1))
    # A client that does not wait for the last answer may have left before its request came.
    if not clients * messages - ways.count("b") <= answered <= clients * messages:
        raise Failure("the server answered %d requests of %d" % (answered, clients * messages))


def sessions(s, i):
    clients, each, killed = 1 + i % 3, 40 if s.light else 80, 6 * (i % 2)
    args = ["-d", DEVICES[i % len(DEVICES)], "-r", "dru"[i % 3]]
    server = s.start("sessions", "-s", "-n", clients * each + killed, "-v", 1 + i % 4, *args)
    clients_of_all = [(s.start_far("sessions", "-c", s.host, "-n", each, "-w", "d", "-i", k, *args), each)
                 for k in range(clients)]
    if killed:
        clients_of_all.append((s.start_far("sessions", "-c", s.host, "-n", killed, "-w", "k", "-i", clients, *args), killed))
    s.finish()
    for process, number in clients_of_all:
        expect(process, r"client: %d sessions\n" % number)
    line = r"server: %d sessions, (\d+) requests\n" % (clients * each + killed)
    answered = int(expect(server, line).group(1))
    # A killed client has sent one to five requests; the last may be lost with it.
    if not 5 * clients * each <= answered <= 5 * (clients * each + killed):
        raise Failure("the server answered %d requests" % answered)


NIC_TEXT = (r": [^\n]+, hardware \d+, provider \d+\n  address              ([0-9a-f]{2}:){5}[0-9a-f]{2}\n"
            r"  thread safe          1\n  discriminator        \d+ bytes\n"
            r"  registered memory    \d+ bytes, \d+ regions, \d+ bytes each\n"
            r"  VIs                  \d{4,}, \d{4,} descriptors each, \d+ segments\n"
            r"  completion queues    \d{3,}, \d{4,} entries each\n"
            r"  transfer             \d{5,} bytes, native MTU \d{4,}\n"
            r"  protection tags      \d{4,}\n  reliability levels   7, with RDMA read [26]\n")


def enum(s, i):
    names = ["/dev/via_eth0", "/dev/via_lo", "/etc/via_lo", "/dev/clanvi0"]
    if i % 2:
        s.environment["VINIC0"] = "/dev/via_eth0"
    process = s.start("enum", *(names + ["/dev/via_eth93"]))
    s.environment.pop("VINIC0", None)
    s.finish()
    expect(process, "(VINIC[0-9]+" + NIC_TEXT + r")+[1-9][0-9]* NICs of the family VINIC\n"
           "(nic[0-9]+" + NIC_TEXT + r")+[1-9][0-9]* NICs of the family nic\n"
           r"(\\\\\.\\VI[1-9][0-9]*" + NIC_TEXT + r")+[1-9][0-9]* NICs of the family \\\\\.\\VI\n" +
           "".join(re.escape(name) + NIC_TEXT for name in names) +
           r"/dev/via_eth93: no such NIC\n[1-9][0-9]* opened and closed\n")


def names(s, i):
    process = s.start("names", ["/dev/via_eth0", "/dev/via_lo"][i % 2])
    s.finish()
    expect(process, "via_names: 100 messages\n")


def traps(s, i):
    device = ["/dev/via_eth0", "/dev/via_lo"][i % 2]
    processes = [s.start("traps", "-s", device), s.start("traps", "-c", device)]
    s.finish()
    for process in processes:
        expect(process, "via_traps: 24 messages each way\n")


PROGRAMS = [pingpong, many2one, alltoall, rdmamove, threads, ring, enum, watch, notify, pages, sessions, names, traps]
ALONE = [enum, names, traps]  # connect to no process elsewhere


def ended_too_far_apart(session):
    """Whether the run failed only since processes whose peers had ended in peace were told of that, as programs whose
    processes do not end together are; and a machine with less other work would have ended them together."""
    if not session.usual_delay().isdigit() or session.apart * 1000 >= int(session.usual_delay()):
        return False
    ended = [p for p in session.processes if p.popen.returncode is not None]
    told = [p for p in ended if CONN_LOST in p.stderr()]
    return told and all(p in told or p.is_good() for p in ended) and any(p.is_good() for p in ended)


def run_once(program, session, i):
    """One run. Where the load of the machine lets the processes end far apart, one more with a longer delay."""
    try:
        program(session, i)
        return
    except Failure:
        if not ended_too_far_apart(session):
            raise
    print("%s, run %d: once more, with %d times the usual delay" % (program.__name__, i + 1, MORE_DELAY), flush=True)
    session.clear()
    session.delay_conn_lost(MORE_DELAY)
    try:
        program(session, i)
    finally:
        session.delay_conn_lost(1)


def repeat(session, program, times):
    """All runs of one program; prints its line and returns whether all was well."""
    begin = time.monotonic()
    slowest = good = bad = 0
    for i in range(times):
        start = time.monotonic()
        try:
            run_once(program, session, i)
            good += 1
        except Failure as failure:
            bad += 1
            print("%s, run %d: %s" % (program.__name__, i + 1, failure))
            worst_first = sorted(session.processes, key=Process.is_good)
            print("".join(process.describe() for process in worst_first[:10]), flush=True)
        session.clear()
        slowest = max(slowest, time.monotonic() - start)
        if bad == 3:
            break
    left = session.leftovers()
    for item in left:
        print("%s left behind: %s" % (program.__name__, item))
    session.end_strays()
    well = good == times and not left
    where = "" if session.pin is None else ", all on core %d" % session.pin
    print("%-10s %d of %d runs good%s, %.1f s, slowest %.2f s%s"
          % (program.__name__, good, times, where, time.monotonic() - begin, slowest,
             "" if well else "  FAILED"), flush=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the via_* programs")
    parser.add_argument("--client-bin", metavar="DIR", help="folder of those that clients, and every other one of equals, "
                        "are started from")
    parser.add_argument("--program", required=True, choices=[p.__name__ for p in PROGRAMS] + ["all"])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--pin", type=int, help="put all processes on this core")
    parser.add_argument("--timeout", type=float, default=60, help="deadline of one run, in seconds")
    parser.add_argument("--size", type=int, help="number of processes of alltoall and ring")
    parser.add_argument("--light", action="store_true", help="fewer messages, as with --pin: for slow machines")
    parser.add_argument("--far", metavar="HOST=NIC@OTHER", help="clients open NIC and look for their server at HOST; of "
                        "equals (alltoall, ring: root only) every other one opens NIC, where the rest finds it at OTHER")
    parser.add_argument("--when-stuck", metavar="COMMAND", help="what else to show when a deadline has passed")
    options = parser.parse_args()
    programs = [p for p in PROGRAMS if not options.far or p not in ALONE]
    theirs = "%s, which are not ours, call what this program owns by its names"
    left_out = {
        "verbs": ((watch, "a verbs NIC completes the descriptors of a program that does not call it late"),
                  (names, theirs % "libibverbs and libnl"), (traps, theirs % "libibverbs and libnl")),
        "acenic": ((traps, theirs % "the libraries of DPDK"),),
    }
    for program, why in left_out.get(os.environ.get("VIADUCT_NAMES_DEFAULT_PROVIDER"), ()):
        if program in programs:
            programs.remove(program)
            print("%-10s SKIPPED: %s" % (program.__name__, why))
    session = Session(options)
    try:
        results = [repeat(session, p, options.repeat) for p in programs if options.program in (p.__name__, "all")]
    finally:
        session.clear()
        shutil.rmtree(session.folder, ignore_errors=True)
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
