#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipstat_test.py PATH-OF-VIPSTAT PATH-OF-VIPPING PATH-OF-VIPPERF: looks at tools that run, in every state they can be in."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import tool
from tool import PROBLEM, USAGE, WELL, Case, run

VIPPING = os.path.abspath(sys.argv.pop(2))
VIPPERF = os.path.abspath(sys.argv.pop(2))
KEYS = {"posted", "completed", "outstanding", "unfetched", "oldest", "waiting_s", "completions_per_s", "asleep"}


class Program:
    """A tool that runs while it is looked at."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=tool.environment())
        self.pid = self.process.pid

    def line(self):
        return self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Looking(Case):
    def look(self, *pids):
        seen = self.parsed("-p", ",".join(map(str, pids)))["processes"]
        self.assertEqual(list(pids), [p["pid"] for p in seen])
        for process in seen:
            for vi in process["vis"]:
                for queue in (vi["send"], vi["recv"]):
                    self.assertEqual(KEYS, set(queue))
                    self.assertEqual(queue["outstanding"] != 0, queue["oldest"] is not None)
        return seen

    def until(self, pid, wanted):
        """Looks until `wanted` holds, for a few seconds."""
        end = time.monotonic() + 20
        while True:
            # At first it may have no NIC open yet.
            seen = self.look(pid)[0] if run("-p", str(pid)).returncode == WELL else None
            if seen and wanted(seen):
                return seen
            self.assertLess(time.monotonic(), end, seen)
            time.sleep(0.02)


class States(Looking):
    def test_a_reader_of_the_counters_cannot_shorten_them(self):
        # A process whose counters are unmapped would be ended by SIGBUS when it counts.
        with Program(VIPPING, "-s", "-d", "nic0") as server:
            server.line()
            folder = "/proc/%d/fd" % server.pid
            (counters,) = [path for path in (os.path.join(folder, fd) for fd in os.listdir(folder))
                           if "memfd:viaduct-stats" in os.readlink(path)]
            with open(counters, "r+b", buffering=0) as file:
                with self.assertRaises(PermissionError):
                    os.truncate(file.fileno(), 0)
            self.until(server.pid, lambda seen: seen["counters"]["nics_opened"] == 1)
            self.assertIsNone(server.process.poll())

    def test_of_a_connection_that_waits(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            with Program(VIPPING, "-i", "30", "localhost") as client:
                client.line(), client.line()
                mine, theirs = self.look(client.pid, server.pid)
                self.assertEqual("vipping", mine["program"])
                self.assertEqual(1, mine["counters"]["nics_opened"])
                self.assertEqual(1, mine["counters"]["connected"])
                self.assertEqual(1, mine["counters"]["agent_attached"])
                (vi,), (other,) = mine["vis"], theirs["vis"]
                self.assertEqual(("connected", "connected"), (vi["state"], other["state"]))
                self.assertEqual("paramnet0", vi["nic"])
                self.assertEqual("delivery", vi["reliability"])
                self.assertEqual((vi["local"], vi["peer"]), (other["peer"], other["local"]))
                self.assertRegex(vi["peer"], r"^([0-9a-f]{2}:){5}[0-9a-f]{2}/vipping$")
                # Each has answered once and posted every receive again.
                self.assertEqual((33, 1, 32, 1), tuple(vi["recv"][k] for k in ("posted", "completed", "outstanding", "oldest")))
                self.assertEqual(1, vi["send"]["posted"])
                self.assertIsNone(vi["last_error"])

    def test_age_of_the_oldest_descriptor_grows_while_a_thread_waits_for_it(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            with Program(VIPPING, "-i", "0.01", "-W", "60000", "localhost") as client:
                for _ in range(3):
                    client.line()
                server.process.send_signal(signal.SIGSTOP)  # the next message gets no answer
                seen = self.until(client.pid, lambda p: p["vis"][0]["recv"]["asleep"] and
                                  (p["vis"][0]["recv"]["waiting_s"] or 0) > 0)
                first = seen["vis"][0]["recv"]
                later = self.until(client.pid, lambda p: (p["vis"][0]["recv"]["waiting_s"] or 0) > first["waiting_s"])
                self.assertEqual(first["oldest"], later["vis"][0]["recv"]["oldest"])
                self.assertGreater(later["vis"][0]["counters"]["sleeps"], 0)

    def test_of_an_end_whose_peer_was_killed(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            client = Program(VIPPING, "-i", "0.01", "-W", "60000", "localhost")
            with client:
                client.line(), client.line()
            # The server takes a lost client away by itself; what it counts stays.
            seen = self.until(server.pid, lambda p: p["counters"]["connections_lost"] == 1)
            self.until(server.pid, lambda p: not p["vis"])
            self.assertEqual(1, seen["counters"]["connected"])
            broken = [f for f in seen["failures"] if "VIP_ERROR_CONN_LOST" in f["text"]]
            self.assertEqual(1, len(broken), seen["failures"])
            self.assertIn("the process of the peer has ended", broken[0]["text"])
            self.assertIn("/vipping", broken[0]["text"])
            self.assertIn("the process of the peer has ended", run("-p", str(server.pid)).stdout)

    def test_of_a_peer_that_breaks_without_a_cleanup(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            with Program(VIPPING, "-i", "30", "localhost") as client:
                client.line(), client.line()
                server.process.kill()
                server.process.wait()
                seen = self.until(client.pid, lambda p: p["vis"][0]["state"] == "error")
                (vi,) = seen["vis"]
                self.assertEqual("CONN_LOST", vi["last_error"])
                self.assertGreaterEqual(vi["last_error_s"], 0)
                self.assertEqual(32, vi["counters"]["flushed"])
                self.assertEqual((0, 32), (vi["recv"]["outstanding"], vi["recv"]["unfetched"]))
                self.assertEqual(1, vi["counters"]["async_errors"])

    def test_counts_what_runs(self):
        with Program(VIPPERF, "-s") as server:
            server.line()
            with Program(VIPPERF, "-t", "send_bw", "-b", "8", "-n", "10000000", "localhost") as client:
                server.line()
                self.until(client.pid, lambda p: any(v["send"]["posted"] > 10000 for v in p["vis"]))
                result = run("--top", "--json", "-i", "0.05", "-n", "4", "-p", f"{client.pid},{server.pid}")
                self.assertEqual(WELL, result.returncode, result.stderr)
                pictures = [json.loads(p) for p in re.split(r"(?<=^\})\n(?=\{)", result.stdout, flags=re.M)]
                self.assertEqual(4, len(pictures))
                ends = [max((v for v in p["processes"][1]["vis"]), key=lambda v: v["recv"]["posted"]) for p in pictures]
                completed = [e["recv"]["completed"] for e in ends]
                self.assertEqual(sorted(set(completed)), completed, "grows from look to look")
                self.assertIsNone(ends[0]["recv"]["completions_per_s"])
                self.assertGreater(ends[-1]["recv"]["completions_per_s"], 0)

    def test_many_vis(self):
        with Program(VIPPERF, "-s") as server:
            server.line()
            with Program(VIPPERF, "-t", "send_lat", "-q", "100", "-n", "10000000", "localhost") as client:
                self.until(client.pid, lambda p: len([v for v in p["vis"] if v["state"] == "connected"]) == 101)


class Output(Looking):
    def test_text(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            with Program(VIPPING, "-i", "30", "localhost") as client:
                client.line(), client.line()
                self.expect(run("-p", str(client.pid)), WELL,
                            rf"\A{client.pid} vipping  libvipl \d+\.\d+\.\d+, [\d.]+m?s old, 1 VI\n"
                            r"  nics_opened 1, connected 1,[^\n]*agent_attached 1\n"
                            r"  VI +STATE +FOR +SENDS +/s OLDEST +RECVS +/s OLDEST +CREDITS LAST ERROR +PEER\n"
                            r"  [0-9a-f]+ +connected +[\d.]+m?s +[\d+]+ +- \S+.* 32 .*/vipping\n(.*\n)*\Z")
                self.expect(run("-c", "-p", str(client.pid)), WELL, r"cq_overruns 0(.*\n)*.*retries 0, drops 0\n")
                all_shown = run()
                self.expect(all_shown, WELL, rf"(?m)^{client.pid} vipping ")
                self.expect(all_shown, WELL, rf"(?m)^{server.pid} vipping ")

    def test_top_without_a_terminal_is_plain_and_ends_with_the_process(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            watcher = subprocess.Popen([tool.TOOL, "--top", "-i", "0.02", "-p", str(server.pid)], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(3):
                self.assertIn(f"{server.pid} vipping", watcher.stdout.readline())
                while watcher.stdout.readline() != "\n":
                    pass
            server.process.kill()
            server.process.wait()
            output, errors = watcher.communicate(timeout=tool.SECONDS)
            self.assertEqual((WELL, ""), (watcher.returncode, errors))
            self.assertNotIn("\033", output)

    def test_nothing_is_disturbed(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            client = subprocess.Popen([VIPPING, "-f", "-c", "20000", "--json"], text=True, stdout=subprocess.PIPE,
                                      env=tool.environment())
            for _ in range(50):
                run("-p", str(server.pid))
            output, _ = client.communicate(timeout=tool.SECONDS)
            self.assertEqual((20000, 0), tuple(json.loads(output)[k] for k in ("answered", "damaged")))


class Mistakes(Case):
    def test_a_process_that_cannot_be_seen(self):
        with subprocess.Popen(["sleep", "60"]) as sleeper:
            self.expect(run("-p", str(sleeper.pid)), PROBLEM, "", r"\Avipstat: process \d+: has no NIC open")
            sleeper.kill()
        self.expect(run("-p", str(sleeper.pid)), PROBLEM, "", r"\Avipstat: process \d+: no such process")

    def test_wrong_use(self):
        for options in (("--nonsense",), ("-p", "abc"), ("-p", "-1"), ("-i", "0"), ("-n", "0")):
            self.expect(run(*options), USAGE, "", r"\S")

    def test_help_and_version(self):
        self.expect(run("--help"), WELL, "--top")
        self.expect(run("--version"), WELL, r"\Avipstat \(Viaduct\) \d+\.\d+")


if __name__ == "__main__":
    tool.main()
