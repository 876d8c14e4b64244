#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipperf_test.py PATH-OF-VIPPERF: every test by every kind of completion, with every byte checked; never how fast."""
import os
import re
import subprocess
import tempfile
import unittest
import xml.dom.minidom

import tool
from eventually import communicated
from tool import NO_NIC, NOWHERE, PROBLEM, USAGE, WELL, Case, Server, run

ALL = "send_lat,send_bw,write_lat,write_bw,read_lat,read_bw"
COMPLETIONS = "queue,cq,wait,cq_wait"
PROCESSORS = sorted(os.sched_getaffinity(0))
# Both ends in one command; where there is one processor only, on this one.
SELF = ("--self",) if len(PROCESSORS) > 1 else ("--self", "--cpu", f"{PROCESSORS[0]},{PROCESSORS[0]}")


class Rows(Case):
    """Results that hang together."""

    def look_at(self, seen, tests, sizes, iterations):
        self.assertEqual(tests, [(t["test"], t["completion"]) for t in seen["tests"]])
        for test in seen["tests"]:
            self.assertEqual(sizes, [row["bytes"] for row in test["rows"]], test["test"])
            for row in test["rows"]:
                if iterations:
                    self.assertEqual(iterations, row["iterations"])
                if test["test"].endswith("_lat"):
                    order = [row[k] for k in ("t_min_us", "p50_us", "p90_us", "p99_us", "p99.9_us", "t_max_us")]
                    self.assertEqual(sorted(order), order)
                    self.assertEqual(row["p50_us"], row["t_typical_us"])
                    self.assertTrue(row["t_min_us"] <= row["t_avg_us"] <= row["t_max_us"])
                    self.assertGreater(row["t_min_us"], 0)
                    self.assertGreaterEqual(row["t_stdev_us"], 0)
                else:
                    self.assertGreaterEqual(row["bw_peak_mb_s"], row["bw_average_mb_s"])
                    self.assertAlmostEqual(1, row["msg_rate_mpps"] * row["bytes"] / row["bw_average_mb_s"], 6)

    def all_of(self, tests, completions):
        return [(t, c) for t in tests.split(",") for c in completions.split(",")]


class Self(Rows):
    def test_every_test_by_every_completion_with_every_byte_checked(self):
        for completion in COMPLETIONS.split(","):
            seen = self.parsed(*SELF, "--check", "-t", ALL, "-c", completion, "-b", "1,7,48,49,4K,100K,1M",
                               "-n", "20")
            self.look_at(seen, self.all_of(ALL, completion), [1, 7, 48, 49, 4096, 102400, 1 << 20], 20)
            self.assertTrue(seen["checked"])

    def test_many_vis(self):
        seen = self.parsed(*SELF, "--check", "-q", "40", "-t", ALL, "-c", "queue,cq", "-b", "8,4K", "-n", "200")
        self.look_at(seen, self.all_of(ALL, "queue,cq"), [8, 4096], 200)
        self.assertEqual(40, seen["vis"])

    def test_both_ways(self):
        for vis in ("1", "3"):
            seen = self.parsed(*SELF, "--check", "-B", "-q", vis, "-t", "send_bw,write_bw,read_bw", "-c", COMPLETIONS,
                               "-b", "8,64K", "-n", "300")
            self.look_at(seen, self.all_of("send_bw,write_bw,read_bw", COMPLETIONS), [8, 65536], 300)
            self.assertTrue(all(t["both_ways"] for t in seen["tests"]))

    def test_memory_of_the_library(self):
        seen = self.parsed(*SELF, "--check", "-m", "-t", ALL, "-c", "queue,wait", "-b", "1,48,4K,1M", "-n", "30")
        self.look_at(seen, self.all_of(ALL, "queue,wait"), [1, 48, 4096, 1 << 20], 30)
        self.assertTrue(seen["mapped"])

    def test_every_reliability_level(self):
        for level in ("unreliable", "delivery", "reception"):
            seen = self.parsed(*SELF, "--check", "-r", level, "-t", "send_lat,send_bw,write_bw", "-b", "8,100K", "-n", "50")
            self.look_at(seen, self.all_of("send_lat,send_bw,write_bw", "queue"), [8, 102400], 50)
            self.assertEqual(level, seen["reliability"])

    def test_finds_the_number_of_iterations_itself(self):
        seen = self.parsed(*SELF, "-t", "send_lat,send_bw", "-b", "8")
        self.look_at(seen, self.all_of("send_lat,send_bw", "queue"), [8], 0)
        for test in seen["tests"]:  # how many fit is another matter (unit.VipperfFitting)
            self.assertGreaterEqual(test["rows"][0]["iterations"], 16)

    def test_columns(self):
        self.expect(run(*SELF, "-b", "8,16", "-n", "10"), WELL,
                    r"Send latency, polling the queue *\n(.*\n)* #bytes  #iterations +t_min\[usec\][^\n]*99.9% percentile\[usec\]\n"
                    r" 8 +10( +[\d.]+){7}\n 16 +10( +[\d.]+){7}\n\Z")
        self.expect(run(*SELF, "-t", "send_bw", "-b", "4M", "-n", "10"), WELL,
                    r" #bytes +#iterations +BW peak\[MB/sec\] +BW average\[MB/sec\] +MsgRate\[Mpps\]\n 4194304 +10( +[\d.]+){3}\n\Z")

    def test_all_is_all_six(self):
        self.assertEqual(sorted(ALL.split(",")),
                         sorted(t["test"] for t in self.parsed(*SELF, "-t", "all", "-n", "5")["tests"]))

    def test_both_ends_on_one_processor(self):
        first = str(PROCESSORS[0])
        seen = self.parsed("--self", "--cpu", first + "," + first, "-t", ALL, "-c", "queue,wait", "-b", "8", "-n", "50")
        self.look_at(seen, self.all_of(ALL, "queue,wait"), [8], 50)


class TwoCommands(Rows):
    def test_server_and_client(self):
        with Server() as server:
            for _ in range(2):  # it goes on after the first client
                seen = self.parsed("-t", ALL, "-c", "queue,cq_wait", "-b", "1:64", "-n", "20", "--check", "localhost")
                self.look_at(seen, self.all_of(ALL, "queue,cq_wait"), [1, 2, 4, 8, 16, 32, 64], 20)
            server.read_until("has left\n", 2)
            self.assertEqual(WELL, server.interrupt())

    def test_server_for_one_client(self):
        with Server("-1", "-D", "mine") as server:
            self.expect(run("-D", "mine", "-n", "5"), WELL, "#bytes")
            self.assertEqual(WELL, server.wait())

    def test_server_survives_a_client_that_dies(self):
        with Server() as server:
            client = subprocess.Popen([tool.TOOL, "-t", "send_bw", "-b", "1:4M"], stdout=subprocess.PIPE, text=True,
                                      env=tool.environment())
            while not client.stdout.readline().startswith(" 8 "):
                pass
            client.kill()
            client.wait()
            client.stdout.close()
            self.expect(run("-n", "5", "-w", "10000"), WELL, "#bytes")
            self.assertEqual(WELL, server.interrupt())

    def test_client_notices_a_server_that_dies(self):
        with Server() as server:
            client = subprocess.Popen([tool.TOOL, "-t", "send_lat,send_bw,write_lat", "-b", "1:4M"], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, env=tool.environment())
            client.stdout.readline()
            server.process.kill()
            _, errors = communicated(client, tool.SECONDS)
            self.assertEqual(PROBLEM, client.returncode)
            self.assertRegex(errors, r"\Avipperf: .*(left|no connection|answer)")


@unittest.skipIf(len(PROCESSORS) == 1, "needs two processors")
class Report(Rows):
    def make(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            seen = self.parsed("--report", path, "-b", "8,4K", "--rounds", "1", "-n", "20", *options)
            with open(path, encoding="utf-8") as file:
                return seen, file.read()

    def look_at_page(self, page):
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        for outside in ("http:", "https:", "src=", "href=", "@import", "url("):
            self.assertNotIn(outside, page)
        drawings = re.findall(r"<svg.*?</svg>", page, re.S)
        self.assertGreaterEqual(len(drawings), 2)
        for drawing in drawings:
            root = xml.dom.minidom.parseString(drawing).documentElement
            self.assertTrue(root.getElementsByTagName("polyline"))
            for line in root.getElementsByTagName("polyline"):
                self.assertNotRegex(line.getAttribute("points"), "nan|inf")

    def test_of_both_ends_has_limits_beside_ours(self):
        seen, page = self.make("--self")
        self.look_at_page(page)
        for name in ("send/receive, by queue", "send/receive, by CQ", "RDMA write", "limit: put", "limit: memcpy"):
            self.assertIn(name, page)
        self.assertTrue(any(s["limit"] for s in seen["series"]))
        for series in seen["series"]:
            self.assertIn(series["distance"], ("near", "far", "remote"))
            for point in series["points"]:
                self.assertTrue(min(point["samples"]) <= point["median"] <= max(point["samples"]))
                self.assertGreater(point["median"], 0)
        # Every series has a sample of every size, at whatever distance.
        for name in {s["name"] for s in seen["series"]}:
            sizes = {p["bytes"] for s in seen["series"] if s["name"] == name for p in s["points"]}
            self.assertEqual({8, 4096}, sizes, name)

    def test_of_a_client_has_no_limits(self):
        with Server():
            seen, page = self.make()
        self.look_at_page(page)
        self.assertFalse(any(s["limit"] for s in seen["series"]))

    def test_that_cannot_be_written(self):
        self.expect(run("--self", "--report", "/nonexistent/folder/x.html", "-b", "8", "--rounds", "1", "-n", "5"), PROBLEM, "",
                    "vipperf: cannot write /nonexistent/folder/x.html")


class OneProcessor(Case):
    def test_two_are_needed_or_asked_for(self):
        os.sched_setaffinity(0, PROCESSORS[:1])
        self.addCleanup(os.sched_setaffinity, 0, PROCESSORS)
        self.expect(run("--self"), PROBLEM, "", r"\Avipperf: only one processor is allowed here; --self needs two, or --cpu A,A\n\Z")
        self.expect(run("--self", "--report", "x.html"), PROBLEM, "",
                    r"\Avipperf: only one processor is allowed here; --report with --self needs two\n\Z")
        self.expect(run("--tune", VIADUCT_TUNING="off"), PROBLEM, "",
                    r"\Avipperf: only one processor is allowed here; --tune needs two\n\Z")


@unittest.skipIf(len(PROCESSORS) == 1, "needs two processors")
class Tune(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "made", "tuning.toml")

    def measure(self, *options):
        return run("--tune", "--rounds", "1", *options, VIADUCT_TUNING=self.path)

    def test_keeps_nothing_when_it_fails(self):
        self.expect(self.measure("-d", "VINIC7"), NO_NIC, "round 1", "vipperf: cannot open the NIC")
        self.assertFalse(os.path.exists(self.path))

    def test_nowhere_to_keep_it(self):
        self.expect(run("--tune", VIADUCT_TUNING="off"), PROBLEM, "", "vipperf: nowhere to keep it")


class Mistakes(Case):
    def test_no_server(self):
        self.expect(run("-w", "0", "localhost"), PROBLEM, "", r"\Avipperf: no connection through paramnet0 to [0-9a-f:]+/vipperf: VIP_NO_MATCH")

    def test_unknown_host(self):
        self.expect(run("no-such-host.invalid"), PROBLEM, "", r'\Avipperf: no address of "no-such-host.invalid"')

    def test_unknown_nic(self):
        for role in ((), ("-s",), SELF):
            self.expect(run("-d", "VINIC7", *role), NO_NIC, "", r'\Avipperf: cannot open the NIC "VINIC7": [^\n]*\n\Z')

    def test_no_agent(self):
        self.expect(run(*SELF, VIADUCT_AGENT=NOWHERE), NO_NIC, "", r"\Avipperf: cannot open the NIC [^\n]*\n\Z")

    def test_wrong_use(self):
        for options in (("--nonsense",), ("-t", "quick"), ("-b", "0"), ("-b", "5M"), ("-b", "8:4"), ("-b", "8x"), ("-b", "8,,9"),
                        ("-c", "magic"), ("-q", "0"), ("-q", "1025"), ("-n", "1"), ("-r", "perhaps"), ("-s", "somewhere"),
                        ("--self", "somewhere"), ("--self", "--cpu", "0"), ("--cpu", "0,1"), ("-s", "--report", "x.html"),
                        ("--tune", "--self"), ("--tune", "-s"), ("--tune", "somewhere"), ("--tune", "--cpu", "0,0"),
                        ("--self", "--cpu", "0,0", "--report", "x.html"), ("--if-needed",)):
            self.expect(run(*options), USAGE, "", r"\S")

    def test_help_and_version(self):
        self.expect(run("--help"), WELL, "--completion")
        self.expect(run("--version"), WELL, r"\Avipperf \(Viaduct\) \d+\.\d+")


if __name__ == "__main__":
    tool.main()
