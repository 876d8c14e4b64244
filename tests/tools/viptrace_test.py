#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""viptrace_test.py VIPTRACE VIPPING EXAMPLES TARGET: what is recorded of programs, of running ones too, and what reports say of
it: the time line fits the Chrome trace-event format, each arrow joins a post and the fetching of its message, and files that are
damaged end it well."""
import collections
import json
import os
import random
import re
import resource
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time

import tool
from eventually import RunningTime, Sleeps, communicated, eventually, finished
from eventually import run as run_within
from tool import PROBLEM, USAGE, WELL, Case, run

VIPPING = os.path.abspath(sys.argv.pop(2))
EXAMPLES = os.path.abspath(sys.argv.pop(2))
TARGET = os.path.abspath(sys.argv.pop(2))
WORDS = {"X": {"name", "cat", "ts", "dur", "pid", "tid", "args"}, "M": {"name", "pid", "args"},
         "s": {"name", "cat", "id", "ts", "pid", "tid"}, "f": {"name", "cat", "id", "bp", "ts", "pid", "tid"}}


class Recorded(Case):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = os.path.join(place.name, "record")
        self.trace, self.page = (os.path.join(place.name, name) for name in ("trace.json", "page.html"))

    def record(self, *command, options=(), **variables):
        return run("record", "-o", self.folder, *options, "--", *command, **variables)

    def report(self):
        """What is printed, and the checked events of the time line."""
        result = run("report", self.folder, "--trace", self.trace, "--html", self.page)
        self.assertEqual((WELL, ""), (result.returncode, result.stderr))
        with open(self.trace, encoding="utf-8") as file:
            trace = json.load(file)
        self.assertEqual(("ns", "viaduct/viptrace/1"), (trace["displayTimeUnit"], trace["otherData"]["schema"]))
        events = trace["traceEvents"]
        for event in events:
            self.assertEqual(WORDS[event["ph"]], set(event) - {"ph"}, event)
            self.assertTrue(event["ph"] == "M" or event["ts"] >= 0, event)
        self.check_nesting([e for e in events if e["ph"] == "X"])
        self.check_arrows(events)
        return result.stdout, events

    def check_nesting(self, slices):
        """Slices of a thread lie beside each other or one in the other. Times have three decimals."""
        threads = collections.defaultdict(list)
        for event in slices:
            self.assertGreaterEqual(event["dur"], 0)
            threads[event["pid"], event["tid"]].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
        for spans in threads.values():
            open_spans = []
            for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
                while open_spans and open_spans[-1] <= begin + 1:
                    open_spans.pop()
                self.assertTrue(not open_spans or end <= open_spans[-1] + 2, (begin, end, open_spans))
                open_spans.append(end)

    def check_arrows(self, events):
        starts = {e["id"]: e for e in events if e["ph"] == "s"}
        ends = {e["id"]: e for e in events if e["ph"] == "f"}
        self.assertEqual(set(starts), set(ends))
        slices = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                slices[event["pid"], event["tid"]].append(event)

        def names_at(arrow):
            return {e["name"]: e["args"] for e in slices[arrow["pid"], arrow["tid"]]
                    if e["ts"] - 0.002 <= arrow["ts"] <= e["ts"] + e["dur"] + 0.002}

        for number, start in starts.items():
            end = ends[number]
            self.assertGreater(end["ts"] + 0.001, start["ts"])
            posts, fetched = names_at(start), names_at(end)
            self.assertIn("VipPostSend", posts)
            there = fetched.get("VipRecvDone") or fetched.get("VipRecvWait")
            self.assertIsNotNone(there, fetched)
            self.assertEqual(posts["VipPostSend"]["bytes"], there["bytes"])

    def names(self, events):
        return collections.Counter(e["name"] for e in events if e["ph"] == "X")


class Programs(Recorded):
    def test_client_and_server_have_an_arrow_for_each_message(self):
        self.expect(self.record(os.path.join(EXAMPLES, "example_client_server")), WELL, "the answer has")
        said, events = self.report()
        self.assertEqual(2, len([e for e in events if e["name"] == "process_name"]))
        self.assertEqual(2, len([e for e in events if e["ph"] == "s"]))
        names = self.names(events)
        for name, count in (("VipOpenNic", 2), ("VipConnectAccept", 1), ("VipPostSend", 2), ("VipDisconnect", 2),
                            ("VipDestroyVi", 2)):
            self.assertEqual(count, names[name], names)
        self.assertRegex(said, r"2 ends of connections, 2 with the other end in the record; 0 errors")
        self.assertRegex(said, r"(?m)^ +9 to 16 +1 .*\n +17 to 32 +1 ")
        self.assertRegex(said, r"VipRecvWait by (\d+) example_client_server thread 1, at .*, for (?!\1)\d+ example_client_server")

    def test_peers_find_each_other(self):
        self.expect(self.record(os.path.join(EXAMPLES, "example_peers")), WELL, r"\S")
        said, events = self.report()
        self.assertRegex(said, r"(\d+) ends of connections, \1 with the other end")
        self.assertGreater(len([e for e in events if e["ph"] == "s"]), 1)

    def test_many_vis_of_one_address_are_told_apart(self):
        self.expect(self.record(os.path.join(EXAMPLES, "example_cq_server")), WELL, "clients: 8 answers")
        said, events = self.report()
        self.assertRegex(said, r"16 ends of connections, 16 with the other end")
        self.assertEqual(16, len([e for e in events if e["ph"] == "s"]))

    def test_page_needs_nothing_from_elsewhere(self):
        self.record(os.path.join(EXAMPLES, "example_client_server"))
        self.report()
        with open(self.page, encoding="utf-8") as file:
            page = file.read()
        self.assertNotRegex(page, r"<script|(src|href)=|@import|url\(|https?:")
        for part in ("Processes", "by size", "Who waits for whom", "Longest waits", "VipRecvWait", "<svg", "<rect"):
            self.assertIn(part, page)
        self.assertEqual(page.count("<table"), page.count("</table>"))

    def test_a_wait_that_a_kill_has_ended_is_there(self):
        place = {"VIADUCT_AGENT": os.environ["VIADUCT_AGENT"] + "-killed"}
        recorder = subprocess.Popen([tool.TOOL, "record", "-o", self.folder, "--", "sh", "-c", f"echo $$; exec {shlex.quote(VIPPING)} -s"],
                                    stdout=subprocess.PIPE, text=True, env=tool.environment(**place))
        pid = int(recorder.stdout.readline())
        recorder.stdout.readline()
        eventually("the server waits for a client", Sleeps(pid), [pid])
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(128 + signal.SIGKILL, finished(recorder, tool.SECONDS))
        recorder.stdout.close()
        _, events = self.report()
        self.assertTrue(any(e.get("args", {}).get("ended") is False for e in events))

    def test_a_ring_that_has_turned_keeps_the_newest_and_draws_no_arrow(self):
        self.expect(self.record(os.path.join(EXAMPLES, "example_cq_server"), options=("-n", "16")), WELL, "8 answers")
        said, events = self.report()
        self.assertRegex(said, r"16 events, \d+ older ones lost")
        self.assertEqual([], [e for e in events if e["ph"] == "s"])
        self.assertGreater(self.names(events)["VipDisconnect"], 0)

    def test_exit_statuses_pass_and_other_programs_leave_nothing(self):
        for command, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["/nonexistent"], 127), ([self.folder], 126)):
            result = self.record(*command)
            self.assertEqual(status, result.returncode, result.stderr)
        self.assertEqual([], os.listdir(self.folder))
        self.expect(run("report", self.folder), PROBLEM, "", "calls no VIPL")


class Target:
    """A process that does what it is told, with an open NIC."""

    def __init__(self, case, **variables):
        self.process = subprocess.Popen([TARGET], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=tool.environment(**variables))
        self.pid = self.process.pid
        case.addCleanup(self.end)
        case.assertEqual(b"r", self.process.stdout.read(1))

    def order(self, letter):
        """Its answer: the same letter, or nothing when it has ended."""
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        return self.process.stdout.read(1)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Attach:
    """viptrace attach, there when it records."""

    def __init__(self, case, *pids, options=(), **variables):
        self.process = subprocess.Popen([tool.TOOL, "attach", "-o", case.folder, *options, *map(str, pids)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=tool.environment(**variables))
        case.addCleanup(self.kill)
        case.assertRegex(self.process.stdout.readline(), r"recording \d+ process")

    def wait(self):
        """Exit status, what is said at the end, and what was wrong."""
        said, wrong = communicated(self.process, tool.SECONDS)
        return self.process.returncode, said, wrong

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self.process.stdout.close()
        self.process.stderr.close()


class Running(Recorded):
    """Processes that run already."""

    def calls(self):
        return self.names(self.report()[1])["VipDeregisterMem"]

    def vipping(self, *options):
        process = subprocess.Popen([VIPPING, *options], stdout=subprocess.PIPE, text=True, env=tool.environment())
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        return process

    def attach(self, *arguments, **variables):
        return run("attach", "-o", self.folder, *map(str, arguments), **variables)

    def test_calls_between_begin_and_end_are_recorded_and_no_others(self):
        target = Target(self)
        self.assertEqual(b"c", target.order(b"c"))
        attach = Attach(self, target.pid)
        for _ in range(3):
            self.assertEqual(b"c", target.order(b"c"))
        status, said, wrong = attach.stop()
        self.assertEqual((WELL, ""), (status, wrong))
        self.assertRegex(said, rf"\A6 events of process {target.pid} in .*/{target.pid}\.0\.viptrace\n\Z")
        self.assertEqual(b"c", target.order(b"c"))
        self.assertEqual(3, self.calls())

    def test_again_and_again_with_rings_of_two_sizes(self):
        target = Target(self)
        for turn in range(1, 6):
            attach = Attach(self, target.pid, options=("-n", str(16 << turn % 2)))
            for _ in range(turn):
                self.assertEqual(b"c", target.order(b"c"))
            self.assertEqual(WELL, attach.stop()[0])
        self.assertEqual([f"{target.pid}.{n}.viptrace" for n in range(5)], sorted(os.listdir(self.folder)))
        self.assertEqual(1 + 2 + 3 + 4 + 5, self.calls())

    def test_it_stops_after_the_time_that_was_given(self):
        self.expect(self.attach("-s", 0.2, Target(self).pid), WELL, r"recording 1 process,[\s\S]*\n0 events of")

    def test_both_ends_of_a_connection_that_was_there(self):
        server = self.vipping("-s")
        server.stdout.readline()
        client = self.vipping("-i", "0.02", "-c", "100000", "localhost")
        while "time=" not in client.stdout.readline():
            self.assertIsNone(client.poll())
        attach = Attach(self, server.pid, client.pid)
        for _ in range(30):
            self.assertIn("time=", client.stdout.readline())
        self.assertEqual((WELL, ""), attach.stop()[::2])
        for _ in range(5):
            self.assertIn("time=", client.stdout.readline())  # both go on
        said, events = self.report()
        self.assertRegex(said, r"2 ends of connections, 2 with the other end in the record; 0 errors")
        names = self.names(events)
        self.assertEqual(2, names["connection from before"])
        self.assertGreater(names["VipPostSend"], 50)
        self.assertGreater(names["VipRecvDone"] + names["VipRecvWait"], 50)
        self.assertEqual([], [e for e in events if e["ph"] == "s"])  # which message was the first is not known

    def test_no_call_of_a_thread_that_has_its_queues_for_itself_is_left_out(self):
        """The owner of a lock pays nothing for it, but for a while after another thread has had it."""
        server = self.vipping("-s")
        server.stdout.readline()
        client = self.vipping("-f", "-p", "-c", "100000000", "localhost")
        self.assertIn("VIPPING", client.stdout.readline())
        time.sleep(0.5)  # sleeps: for some time after another thread had it, the owner of a lock pays
        seconds, lost = 1, 0
        time_used = RunningTime([client.pid, server.pid])
        while lost <= 20000:
            self.assertFalse(time_used.is_over(20), f"{lost} events lost")
            self.folder += "-longer"
            attach = Attach(self, client.pid, options=("-n", "1024"))
            time.sleep(seconds)  # sleeps: calls are recorded meanwhile
            self.assertEqual((WELL, ""), attach.stop()[::2])
            said, events = self.report()
            turned = re.search(r"1024 events, (\d+) older ones lost", said)
            lost = int(turned.group(1)) if turned else 0
            seconds *= 2
        names = self.names(events)
        self.assertGreater(names["VipPostSend"], 156)
        for name in ("VipPostRecv", "VipRecvDone"):  # each ping has one, but one that was given up
            self.assertAlmostEqual(names["VipPostSend"], names[name], delta=8)

    def test_a_connection_that_is_made_meanwhile_has_arrows(self):
        server = self.vipping("-s")
        server.stdout.readline()
        attach = Attach(self, server.pid)
        self.expect(self.record(VIPPING, "-c", "5", "-i", "0.01", "localhost"), WELL, "time=")
        self.assertEqual((WELL, ""), attach.stop()[::2])
        said, events = self.report()
        self.assertRegex(said, r"(\d+) ends of connections, \1 with the other end in the record")
        self.assertGreater(len([e for e in events if e["ph"] == "s"]), 9)

    def test_a_process_that_ends_or_becomes_another_program_ends_it(self):
        for way in ("killed", "exec", "in good order"):
            target = Target(self)
            attach = Attach(self, target.pid)
            self.assertEqual(b"c", target.order(b"c"))
            if way == "killed":
                target.process.kill()
            elif way == "exec":
                target.process.stdin.write(b"x")
                target.process.stdin.flush()
            else:
                target.process.stdin.close()
            status, said, wrong = attach.wait()
            self.assertEqual((WELL, ""), (status, wrong), way)
            self.assertRegex(said, rf"[24] events of process {target.pid} in", way)
        self.assertEqual(3, self.calls())

    def test_of_several_the_others_go_on(self):
        first, second = Target(self), Target(self)
        attach = Attach(self, first.pid, second.pid)
        first.process.kill()
        first.process.wait()
        self.assertEqual(b"c", second.order(b"c"))
        self.assertEqual((WELL, ""), attach.stop()[::2])
        self.assertEqual(1, self.calls())

    def test_a_process_that_is_stopped(self):
        target = Target(self)
        attach = Attach(self, target.pid)
        self.assertEqual(b"c", target.order(b"c"))
        target.process.send_signal(signal.SIGSTOP)
        self.assertEqual((WELL, ""), attach.stop()[::2])
        self.expect(self.attach(target.pid), PROBLEM, "", "it does not begin: it is stopped")
        target.process.send_signal(signal.SIGCONT)
        self.assertEqual(b"c", target.order(b"c"))
        self.assertEqual(1, self.calls())
        Attach(self, target.pid).stop()

    def test_two_do_not_record_the_same_process(self):
        target = Target(self)
        attach = Attach(self, target.pid)
        self.expect(self.attach(target.pid), PROBLEM, "", f"process {target.pid}: the process is recorded already")
        self.assertEqual(b"c", target.order(b"c"))
        self.assertEqual(WELL, attach.stop()[0])
        self.assertEqual(1, self.calls())

    def test_what_record_has_started_is_recorded_already(self):
        target = Target(self, VIPTRACE_FOLDER=os.path.dirname(self.folder))
        self.expect(self.attach(target.pid), PROBLEM, "", "it is recorded already")
        self.assertEqual(b"c", target.order(b"c"))

    def test_a_tool_that_is_killed_leaves_the_process_free(self):
        target = Target(self)
        Attach(self, target.pid).kill()
        self.assertEqual(b"c", target.order(b"c"))
        attach = Attach(self, target.pid)
        self.assertEqual(b"c", target.order(b"c"))
        self.assertEqual(WELL, attach.stop()[0])
        self.assertEqual(1, self.calls())

    def test_a_forked_child_has_no_part_in_it(self):
        target = Target(self)
        attach = Attach(self, target.pid)
        self.assertEqual(b"f", target.order(b"f"))
        self.assertEqual(b"F", target.order(b"F"))
        self.assertEqual(b"c", target.order(b"c"))
        self.assertEqual(WELL, attach.stop()[0])
        self.assertEqual(1, self.calls())

    def test_nonsense_that_a_process_writes_over_its_record(self):
        target = Target(self)
        attach = Attach(self, target.pid)
        self.assertEqual(b"s", target.order(b"s"))
        self.assertIn(attach.stop()[0], (WELL, PROBLEM))
        result = run("report", self.folder, "--trace", self.trace, "--html", self.page)
        self.assertIn(result.returncode, (WELL, PROBLEM), result.stderr)

    def test_the_agent_ends(self):
        agent = {"VIADUCT_AGENT": os.environ["VIADUCT_AGENT"] + "-ends"}
        target = Target(self, **agent)
        attach = Attach(self, target.pid, **agent)
        self.assertEqual(b"c", target.order(b"c"))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file, open(f"/proc/{pid}/comm", encoding="utf-8") as name:
                    if name.read() == "vipkad\n" and f"VIADUCT_AGENT={agent['VIADUCT_AGENT']}".encode() in file.read().split(b"\0"):
                        os.kill(int(pid), signal.SIGKILL)
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                pass
        self.assertEqual((WELL, ""), attach.wait()[::2])
        self.assertEqual(b"c", target.order(b"c"))
        self.assertEqual(1, self.calls())

    def test_who_cannot_be_recorded_is_told(self):
        self.expect(self.attach(os.getpid()), PROBLEM, "", f"process {os.getpid()}: it has no NIC open")
        self.expect(self.attach(1 << 30), PROBLEM, "", "there is no such process")
        target = Target(self)
        self.expect(self.attach(target.pid, VIADUCT_AGENT=os.environ["VIADUCT_AGENT"] + "-other"), PROBLEM, "", "its agent does not answer")


class Damage(Recorded):
    def test_files_that_are_none_are_told_and_the_others_shown(self):
        self.record(os.path.join(EXAMPLES, "example_client_server"))
        good = sorted(os.listdir(self.folder))
        with open(os.path.join(self.folder, good[0]), "rb") as file:
            whole = file.read()
        dice = random.Random(1)
        for name, content in (("short", whole[:100]), ("empty", b""), ("cut", whole[:4300]), ("noise", dice.randbytes(9000))):
            with open(os.path.join(self.folder, name + ".viptrace"), "wb") as file:
                file.write(content)
        result = run("report", self.folder)
        self.assertEqual(PROBLEM, result.returncode)
        self.assertEqual(4, len(result.stderr.splitlines()), result.stderr)
        self.assertIn("2 ends of connections, 2 with", result.stdout)

    def test_nonsense_behind_a_good_header_ends_it_well(self):
        self.record(os.path.join(EXAMPLES, "example_client_server"))
        dice = random.Random(2)
        path = os.path.join(self.folder, sorted(os.listdir(self.folder))[0])
        with open(path, "rb") as file:
            whole = bytearray(file.read())
        for _ in range(20):
            for _ in range(200):
                at = dice.choice((dice.randrange(16, 256), dice.randrange(4096, 8192)))
                whole[at] = dice.randrange(256)
            with open(path, "wb") as file:
                file.write(whole)
            result = run("report", self.folder, "--trace", self.trace, "--html", self.page)
            self.assertIn(result.returncode, (WELL, PROBLEM), result.stderr)
            if os.path.exists(self.trace):
                with open(self.trace, encoding="utf-8") as file:
                    json.load(file)


    HEADER = struct.Struct("<QII32s64sQQqQqqII")  # utils/viptrace/events.hpp, as far as `reserved`
    WRITTEN_AT, EVENTS_AT = 192, 4096
    EVENT = struct.Struct("<QBBBBIQQ")

    def make_file(self, capacity, written, events=(), begin_ns=1, later_ns=2, length=None, name="made"):
        """A file with holes; `events` are pairs of a place and ticks."""
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, name + ".viptrace"), "wb") as file:
            file.write(self.HEADER.pack(0x0145434152545056, 1, 4711, b"made", b"host", capacity, 1, begin_ns, 1000, later_ns, 0, 0, 0))
            file.seek(self.WRITTEN_AT)
            file.write(struct.pack("<Q", written))
            file.truncate(self.EVENTS_AT + capacity * self.EVENT.size if length is None else length)
            for place, ticks in events:
                file.seek(self.EVENTS_AT + place * self.EVENT.size)
                file.write(self.EVENT.pack(ticks, 2, 0, 0, 0, 1, 0, 0))

    def test_all_of_a_long_file_is_read_by_pieces(self):
        capacity = 1 << 15
        places = [0, 4095, 4096, 4097, 12287, 12288, capacity - 1]
        self.make_file(capacity, capacity + 3, [(place, 10 + n) for n, place in enumerate(places)])
        said, events = self.report()
        self.assertRegex(said, rf"{len(places)} events, 3 older ones lost")
        self.assertEqual(len(places), self.names(events)["VipCloseNic"])

    def test_a_short_file_that_claims_much_takes_no_memory(self):
        self.make_file(1, 1, [(0, 5)], name="good")
        self.make_file(1 << 28, 1 << 28, length=8192)
        result = run_within([tool.TOOL, "report", self.folder], tool.SECONDS, env=tool.environment(),
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
        self.assertEqual(PROBLEM, result.returncode, result.stderr)
        self.assertIn("it is too short", result.stderr)

    def test_times_that_no_clock_has_are_damage(self):
        latest = 1 << 62
        self.make_file(1, 1, [(0, 5)], name="good")
        for begin, later, good in ((0, latest, True), (latest, 0, True), (-1, 2, False), (1, -(1 << 63), False),
                                   (latest + 1, 2, False), (1, (1 << 63) - 1, False)):
            self.make_file(1, 1, [(0, 5)], begin, later)
            result = run("report", self.folder)
            self.assertEqual(WELL if good else PROBLEM, result.returncode, (begin, later, result.stderr))
            if not good:
                self.assertIn("it is damaged", result.stderr)


class Mistakes(Case):
    def test_wrong_use(self):
        for options in ((), ("record",), ("record", "-n", "0", "--", "true"), ("report", "--nonsense"), ("nonsense",),
                        ("attach",), ("attach", "0"), ("attach", "me"), ("attach", "-s", "0", "1")):
            self.expect(run(*options), USAGE, "", r"\S")
        self.expect(run("report", "/nonexistent/folder"), PROBLEM, "", "No such file")
        self.expect(run("record", "-o", "/nonexistent/folder", "--", "true"), PROBLEM, "", "No such file")
        self.expect(run("attach", "-o", "/nonexistent/folder", "1"), PROBLEM, "", "No such file")

    def test_help_and_version(self):
        self.expect(run("--help"), WELL, r"record[\s\S]*attach[\s\S]*report")
        self.expect(run("--version"), WELL, r"\Aviptrace \(Viaduct\) \d+\.\d+")


if __name__ == "__main__":
    tool.main()
