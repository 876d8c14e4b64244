# SPDX-License-Identifier: BSD-2-Clause
"""The way a test waits: eventually() for a condition, finished() and run() for the end of a process.

Their limits are seconds of running time: wall time less the time in which the waited-for processes and their children
stood in a run queue (second field of /proc/PID/task/TID/schedstat, summed over the threads). Where the kernel has no such
figures, the time in which any task of the machine stood in one is subtracted (/proc/pressure/cpu, `some`). HARD_END times
the limit by the wall clock ends each wait. tests/eventually.hpp and tests/eventually.h are the same in C++ and C."""
import contextlib
import glob
import os
import subprocess
import threading
import time

LIMIT = 10.0  # seconds
HARD_END = 20  # times the limit
PAUSE = 0.01  # seconds between two looks at a condition
READ_EVERY = 0.25  # seconds between two looks at the figures, so that few threads come and go unread


class Late(AssertionError):
    """A wait that passed its limit. `out` and `errors` are what a process had written until then."""
    out = errors = ""


def text_of(path):
    """The text of a file below /proc, empty where it cannot be read: its process may have ended."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def numbers():
    """Those of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent_of(pid):
    """None where the process has ended."""
    # The name of a program stands in brackets and may contain any character.
    after_name = text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(after_name[1]) if len(after_name) > 1 else None


def condition_of(pid):
    """"41 vipkad S ep_poll": name, state (proc(5)) and place in the kernel; "41 ended"."""
    name, _, after_name = text_of(f"/proc/{pid}/stat").partition("(")[2].rpartition(")")
    if not after_name:
        return f"{pid} ended"
    return " ".join((str(pid), name, after_name.split()[0], text_of(f"/proc/{pid}/wchan"))).strip()


def families(pids, parents=None):
    """These processes and all below them. `parents` are the parents of all processes, where the caller has them."""
    if parents is None:
        parents = {pid: parent_of(pid) for pid in numbers()}
    children = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, left = set(), list(pids)
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += children.get(pid, [])
    return found


class Parents:
    """The parents of all processes for waits, of which a script may have many at once on a machine with a thousand processes: one look for
    all waits of READ_EVERY, which reads the parents of new processes only."""

    def __init__(self, numbers_now=numbers, parent=parent_of, clock=time.monotonic):
        self._numbers, self._parent, self._clock = numbers_now, parent, clock
        self._lock = threading.Lock()
        self._known, self._looked_at = {}, None

    def now(self):
        with self._lock:
            if self._looked_at is None or self._clock() >= self._looked_at + READ_EVERY:
                self._looked_at = self._clock()
                before = self._known
                # A new dictionary: another thread may read the one before.
                self._known = {pid: before[pid] if pid in before else self._parent(pid) for pid in self._numbers()}
            return self._known


PARENTS = Parents()


def queued(pids):
    """Seconds in which the threads of these processes, and of the processes below them, stood in a run queue; None where
    the kernel counts none: without CONFIG_SCHED_INFO all three numbers of a thread are 0."""
    files = [file for pid in families(pids, PARENTS.now()) for file in glob.glob(f"/proc/{pid}/task/*/schedstat")]
    found = [[int(number) for number in text_of(file).split()] for file in files]
    found = [numbers for numbers in found if len(numbers) == 3 and numbers[2] > 0]
    return sum(numbers[1] for numbers in found) * 1e-9 if found else None


def stalled():
    """Seconds in which any task of the machine waited for a processor; None on a kernel without pressure figures."""
    for line in text_of("/proc/pressure/cpu").splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) * 1e-6
    return None


class Machine:
    """What a wait reads, and how it pauses; a test of the waits has its own."""
    wall = staticmethod(time.monotonic)
    pause = staticmethod(time.sleep)
    queued = staticmethod(queued)
    stalled = staticmethod(stalled)


class RunningTime:
    """Seconds since its construction by the wall clock and by the running time of `pids`, this process when there are
    none. A wait in a run queue appears in the figures at its end."""

    def __init__(self, pids=(), machine=Machine):
        self._pids = tuple(pids) or (os.getpid(),)
        self._machine = machine
        self._waited = 0.0
        self._figures, self._read_at = self._read(), 0.0
        self._begun = machine.wall()  # on a loaded machine the look at the figures takes seconds

    def _read(self):
        """(source, seconds)"""
        for source, read in (("queue", lambda: self._machine.queued(self._pids)), ("pressure", self._machine.stalled)):
            seconds = read()
            if seconds is not None:
                return source, seconds
        return "none", 0.0

    def wall(self):
        return self._machine.wall() - self._begun

    def running(self):
        self._read_at = wall = self.wall()
        before, self._figures = self._figures, self._read()
        if before[0] == self._figures[0]:
            # The sum falls when a thread ends.
            self._waited += max(0.0, self._figures[1] - before[1])
        return max(0.0, wall - self._waited)

    def is_over(self, limit):
        """Whether `limit` seconds of running time have passed, or HARD_END times as many by the wall clock."""
        wall = self.wall()
        if wall >= self._read_at + READ_EVERY:
            self.running()
        return wall >= limit and (wall >= HARD_END * limit or self.running() >= limit)

    def late(self, what):
        processes = ", ".join(map(str, self._pids))
        return Late(f"not within the limit: {what}; waited {self.wall():.1f} s, of which processes {processes} were able to run "
                    f"{self.running():.1f} s; now: {', '.join(map(condition_of, self._pids))}")


def eventually(what, condition, pids=(), limit=LIMIT, machine=Machine):
    """Waits until condition() is true and returns its value. Late says `what`. `pids` are the processes that make the
    condition true, this process when there are none."""
    time_used = RunningTime(pids, machine)
    while True:
        over = time_used.is_over(limit)
        value = condition()
        if value:
            return value
        if over:
            raise time_used.late(what)
        machine.pause(PAUSE)


def holds(condition, pids=(), limit=LIMIT, machine=Machine):
    """Whether condition() becomes true within the limit, for a test that reports the failure in its own way."""
    try:
        return eventually("a condition", condition, pids, limit, machine)
    except Late:
        return False


def _in_slices(process, limit, wait, also, machine):
    time_used = RunningTime((process.pid, *also), machine)
    while True:
        over = time_used.is_over(limit)
        try:
            return wait(10 * PAUSE)
        except subprocess.TimeoutExpired as expired:
            if over:
                late = time_used.late(f"the end of {process.args}")
                late.out, late.errors = [text if isinstance(text, str) else (text or b"").decode(errors="replace")
                                         for text in (expired.stdout, expired.stderr)]
                raise late from None


def finished(process, limit=LIMIT, also=(), machine=Machine):
    """The end code of a process of subprocess.Popen. `also` are other processes that make it end. Who gave it a pipe for its
    output calls communicated()."""
    return _in_slices(process, limit, lambda seconds: process.wait(timeout=seconds), also, machine)


def _feed(process, given):
    """Writes the input of a process in a thread: Popen.communicate() forgets input that it has not written in time."""
    stdin, process.stdin = process.stdin, None

    def feed():
        with contextlib.suppress(OSError), stdin:
            stdin.write(given)
    threading.Thread(target=feed, daemon=True).start()


def communicated(process, limit=LIMIT, given=None, also=(), machine=Machine):
    """(output, errors) of a process, up to its end. `given` is its input, `also` are other processes that make it end."""
    if given is not None:
        _feed(process, given)
    return _in_slices(process, limit, lambda seconds: process.communicate(timeout=seconds), also, machine)


def run(command, limit=LIMIT, given=None, check=False, **options):
    """subprocess.run with text and captured output. A process that passes its limit is killed, and Late raised."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    if given is not None:
        options["stdin"] = subprocess.PIPE
    with subprocess.Popen(command, **options) as process:
        try:
            out, errors = communicated(process, limit, given)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, errors)
    if check:
        done.check_returncode()
    return done


class Sleeps:
    """A condition: the main thread of the process has slept since the last look at it."""

    def __init__(self, pid):
        self._pid = pid
        self._switches = None

    def __call__(self):
        status = dict(line.partition(":")[::2] for line in text_of(f"/proc/{self._pid}/status").splitlines())
        before, self._switches = self._switches, status.get("voluntary_ctxt_switches", "").strip()
        return status.get("State", "").strip().startswith("S") and before == self._switches
