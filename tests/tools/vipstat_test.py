#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipstat_test.py PATH-OF-VIPSTAT PATH-OF-VIPPING PATH-OF-VIPPERF: looks at tools that run, in every state they can be in."""
import http.client
import json
import mmap
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import tool
import temporary
from eventually import communicated, eventually, finished
from tool import PROBLEM, USAGE, WELL, Case, run

VIPPING = os.path.abspath(sys.argv.pop(2))
VIPPERF = os.path.abspath(sys.argv.pop(2))
DASHBOARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../utils/vipstat/grafana/viaduct.json")
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
        """Looks until `wanted` holds."""
        def look():
            # At first it may have no NIC open yet.
            seen = self.look(pid)[0] if run("-p", str(pid)).returncode == WELL else None
            return seen if seen and wanted(seen) else None
        return eventually("the wanted picture of the process", look, [pid, os.getpid()], 20)


def counters_of(pid):
    folder = "/proc/%d/fd" % pid
    (path,) = [path for path in (os.path.join(folder, fd) for fd in os.listdir(folder)) if "memfd:viaduct-stats" in os.readlink(path)]
    return path


class States(Looking):
    def test_a_reader_of_the_counters_cannot_shorten_them(self):
        # A process whose counters are unmapped would be ended by SIGBUS when it counts.
        with Program(VIPPING, "-s", "-d", "nic0") as server:
            server.line()
            with open(counters_of(server.pid), "r+b", buffering=0) as file:
                with self.assertRaises(PermissionError):
                    os.truncate(file.fileno(), 0)
            self.until(server.pid, lambda seen: seen["counters"]["nics_opened"] == 1)
            self.assertIsNone(server.process.poll())

    def test_a_reader_of_the_counters_cannot_write_into_them(self):
        # The VIs lie behind the counters, with pointers of the library.
        with Program(VIPPING, "-s", "-d", "nic0") as server:
            server.line()
            self.until(server.pid, lambda seen: seen["counters"]["nics_opened"] == 1)
            with open(counters_of(server.pid), "r+b", buffering=0) as file:
                with self.assertRaises(PermissionError):
                    mmap.mmap(file.fileno(), 0)
                with self.assertRaises(PermissionError):
                    os.pwrite(file.fileno(), bytes(8), 0)
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ).close()

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
                # It is the last that is written, and a look may have read the rest before.
                self.until(client.pid, lambda p: p["vis"][0]["last_error"] is not None)
                (vi,) = self.look(client.pid)[0]["vis"]
                self.assertEqual(("error", "CONN_LOST"), (vi["state"], vi["last_error"]))
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


class Ended(Looking):
    def test_its_failures_are_told_after_its_end(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            with Program(VIPPING, "-i", "0.01", "-W", "60000", "localhost") as client:
                client.line(), client.line()
            running = self.until(server.pid, lambda p: p["counters"]["connections_lost"] == 1)
            self.assertIsNone(running["ended_s"])
        self.until(server.pid, lambda p: p["ended_s"] is not None)
        time.sleep(1.5)  # sleeps: the agent's last program has ended for longer than agent.linger_ms
        (ended,) = self.look(server.pid)
        self.assertGreater(ended["ended_s"], 1.4)
        self.assertLess(ended["running_s"], running["running_s"] + 60)
        # It may have waited for another client, without success, between that look and its end.
        lost = [f["text"] for f in running["failures"] if "CONN_LOST" in f["text"]]
        self.assertEqual(1, len(lost), running["failures"])
        self.assertEqual(("vipping", []), (ended["program"], ended["vis"]))
        self.assertEqual(lost, [f["text"] for f in ended["failures"] if "CONN_LOST" in f["text"]])
        self.assertEqual(running["counters"].keys(), ended["counters"].keys())
        for name, count in running["counters"].items():
            self.assertGreaterEqual(ended["counters"][name], count, name)
        self.expect(run("-p", str(server.pid)), WELL,
                    rf"\A{server.pid} vipping  libvipl \S+, ended [\d.]+s ago, was [\d.]+m?s old\n(.*\n)*.*CONN_LOST")
        self.assertIn(server.pid, [p["pid"] for p in self.parsed()["processes"]])
        # --top has nothing to wait for; Prometheus is told of what runs.
        self.assertEqual(1, run("--top", "-p", str(server.pid)).stdout.count(f"{server.pid} vipping"))
        self.assertNotIn(f'"{server.pid}"', run("--prometheus").stdout)
        self.expect(run("-p", str(client.pid)), PROBLEM, "", r"\Avipstat: process \d+: no such process")

    def test_nothing_is_kept_where_the_settings_say_so(self):
        place = "@viaduct-tool-test-ended-%d" % os.getpid()
        settings = {"VIADUCT_AGENT": place, "VIADUCT_AGENT_ENDED_MS": "0"}
        server = subprocess.Popen([VIPPING, "-s"], stdout=subprocess.PIPE, text=True, env=tool.environment(**settings))
        server.stdout.readline()
        with subprocess.Popen([VIPPING, "-i", "30", "localhost"], stdout=subprocess.PIPE, text=True,
                              env=tool.environment(**settings)) as client:
            client.stdout.readline(), client.stdout.readline()
            client.kill()
        self.until(server.pid, lambda p: p["counters"]["connections_lost"] == 1)
        server.kill()
        server.wait()
        server.stdout.close()
        self.expect(run("-p", str(server.pid), **settings), PROBLEM, "", "no such process")


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
            output, errors = communicated(watcher, tool.SECONDS)
            self.assertEqual((WELL, ""), (watcher.returncode, errors))
            self.assertNotIn("\033", output)

    def test_nothing_is_disturbed(self):
        with Program(VIPPING, "-s") as server:
            server.line()
            # It waits longer for an answer that is lost than this test does for its next messages.
            with Program(VIPPING, "-f", "-W", "60000", "--json") as client:
                def sends(more_than):
                    seen = self.until(client.pid, lambda p: p["vis"] and p["vis"][0]["send"]["posted"] > more_than)
                    return seen["vis"][0]["send"]["posted"]

                sends(0)
                for _ in range(50):
                    self.assertEqual(WELL, run("-p", str(server.pid)).returncode)
                sends(sends(0) + 1)
                client.process.send_signal(signal.SIGINT)
                output, _ = communicated(client.process, tool.SECONDS)
            seen = json.loads(output)
            self.assertEqual((0, ""), (seen["damaged"], seen["error"]))
            self.assertGreater(seen["answered"], 0)
            self.assertIn(seen["lost"], (0, 1))  # the one that is under way when it is told to end


LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"')
SAMPLE = re.compile(rf"(viaduct_[a-z_]+)(?:\{{({LABEL.pattern}(?:,{LABEL.pattern})*)\}})? (-?[0-9.]+)")


def samples(text):
    """What the format of Prometheus says: {(metric, labels): value}; each metric has its head, once, in front of it."""
    out, heads = {}, []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            heads.append(line.split(" ", 3)[2])
            assert heads.count(heads[-1]) == 1 and line.split(" ", 3)[3], line
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == heads[-1] and kind == ("counter" if name.endswith("_total") else "gauge"), line
        else:
            name, labels, *_, value = SAMPLE.fullmatch(line).groups()
            assert name == heads[-1], line
            key = (name, frozenset(LABEL.findall(labels or "")))
            assert key not in out, line
            out[key] = float(value)
    return out


def value_of(seen, metric, **labels):
    wanted = set(labels.items())
    (value,) = [v for (name, has), v in seen.items() if name == metric and wanted <= has]
    return value


class Exporter(Looking):
    """--prometheus, and the end point with the same, JSON and a page."""

    def setUp(self):
        self.server = Program(VIPPING, "-s")
        self.addCleanup(self.server.__exit__)
        self.server.line()
        self.client = Program(VIPPING, "-i", "30", "localhost")
        self.addCleanup(self.client.__exit__)
        self.client.line(), self.client.line()

    def listen(self, *options):
        one = Program(tool.TOOL, *options)
        self.addCleanup(one.__exit__)
        return one, one.line().strip()

    def ask(self, port, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=tool.SECONDS)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, body

    def test_says_what_json_says(self):
        result = run("--prometheus", "-p", f"{self.client.pid},{self.server.pid}")
        self.assertEqual((WELL, ""), (result.returncode, result.stderr))
        seen = samples(result.stdout)
        self.assertEqual(2, value_of(seen, "viaduct_processes"))
        (process,) = self.look(self.client.pid)
        (vi,) = process["vis"]
        which = {"pid": str(self.client.pid), "program": "vipping"}
        for name, value in process["counters"].items():
            if name != "rounds":
                self.assertEqual(value, value_of(seen, f"viaduct_process_{name}_total", **which), name)
        of_vi = {**which, "vi": f"{vi['handle']:x}", "nic": vi["nic"]}
        self.assertEqual(33, value_of(seen, "viaduct_vi_posted_total", queue="receive", **of_vi))
        self.assertEqual(32, value_of(seen, "viaduct_vi_outstanding", queue="receive", **of_vi))
        self.assertEqual(0, value_of(seen, "viaduct_vi_outstanding", queue="send", **of_vi))
        self.assertEqual(vi["credits"], value_of(seen, "viaduct_vi_credits", **of_vi))
        self.assertEqual(vi["counters"]["flushed"], value_of(seen, "viaduct_vi_flushed_total", **of_vi))
        self.assertEqual(1, value_of(seen, "viaduct_vi_info", state="connected", peer=vi["peer"], **of_vi))

    def test_the_dashboard_asks_for_metrics_that_there_are(self):
        known = {name for name, _ in samples(run("--prometheus").stdout)} | {"viaduct_vi_waiting_seconds"}
        with open(DASHBOARD, encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        asked = {name for panel in panels for target in panel["targets"]
                 for name in re.findall(r"viaduct_[a-z_]+", target["expr"])}
        self.assertGreater(len(asked), 8)
        self.assertLessEqual(asked, known)

    def test_end_point_on_loopback(self):
        one, where = self.listen("--listen", "127.0.0.1:0", "-p", str(self.client.pid))
        port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)", where).group(1))
        status, headers, body = self.ask(port, "/metrics")
        self.assertEqual((200, "text/plain; version=0.0.4"), (status, headers["Content-Type"]))
        self.assertEqual(1, value_of(samples(body), "viaduct_processes"))
        status, headers, body = self.ask(port, "/json?x")
        self.assertEqual((200, "application/json"), (status, headers["Content-Type"]))
        self.assertEqual([self.client.pid], [p["pid"] for p in json.loads(body)["processes"]])
        status, headers, body = self.ask(port, "/")
        self.assertEqual((200, "text/html; charset=utf-8"), (status, headers["Content-Type"]))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotRegex(body, r"(src|href)=|@import|https?://(?!www\.w3\.org/2000/svg)")
        self.assertEqual(404, self.ask(port, "/etc/passwd")[0])
        self.assertEqual(405, self.ask(port, "/metrics", "POST")[0])
        # A name that another host's page has made to lead here.
        self.assertEqual(403, self.ask(port, "/json", Host="pages.example")[0])
        self.assertEqual(403, self.ask(port, "/json", Host="127.0.0.1.pages.example:80")[0])
        self.assertEqual(200, self.ask(port, "/json", Host=f"localhost:{port}")[0])
        # What sends too much or nothing holds nothing up for long.
        here = ("127.0.0.1", port)
        with socket.create_connection(here) as silent, socket.create_connection(here) as long:
            long.sendall(b"GET /" + b"x" * 8000)
            long.sendall(b"x" * 8000)
            self.assertEqual(200, self.ask(port, "/json")[0])
            self.assertIn(b" 400 ", silent.recv(100))
        one.process.send_signal(signal.SIGTERM)
        self.assertEqual(WELL, finished(one.process, tool.SECONDS))

    def test_end_point_on_a_socket_of_this_user(self):
        with tempfile.TemporaryDirectory(dir=temporary.for_sockets()) as folder:
            path = os.path.join(folder, "stat")
            one, where = self.listen("--listen", f"unix:{path}")
            self.assertEqual(f"unix:{path}", where)
            self.assertEqual(0o600, os.stat(path).st_mode & 0o777)
            with socket.socket(socket.AF_UNIX) as asker:
                asker.connect(path)
                asker.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                answer = b"".join(iter(lambda: asker.recv(65536), b"")).decode()
            self.assertIn("viaduct_processes", answer)
            self.expect(run("--listen", f"unix:{path}"), PROBLEM, "", "something listens there")
            one.process.send_signal(signal.SIGKILL)  # leaves its socket behind
            one.process.wait()
            one, where = self.listen("--listen", f"unix:{path}")
            self.assertEqual(f"unix:{path}", where)
            one.process.send_signal(signal.SIGTERM)
            self.assertEqual(WELL, finished(one.process, tool.SECONDS))
            self.assertFalse(os.path.exists(path))
            with open(path, "w", encoding="utf-8"):
                self.expect(run("--listen", f"unix:{path}"), PROBLEM, "", "there is a file of this name")

    def test_others_cannot_ask(self):
        for address, why in (("0.0.0.0:0", "no address of loopback"), ("192.0.2.1:80", "no address of loopback"),
                             ("example.org:80", "no address of loopback"), ("[::]:0", "no address of loopback"),
                             ("127.0.0.1", "is wanted"), ("127.0.0.1:x", "is wanted"), ("127.0.0.1:70000", "is wanted"),
                             ("unix:", "1 to 107"), ("unix:/nonexistent/path", "No such file")):
            self.expect(run("--listen", address), PROBLEM, "", re.escape("cannot listen on " + address) + ".*" + why)


class Mistakes(Case):
    def test_a_process_that_cannot_be_seen(self):
        with subprocess.Popen(["sleep", "60"]) as sleeper:
            self.expect(run("-p", str(sleeper.pid)), PROBLEM, "", r"\Avipstat: process \d+: has no NIC open")
            sleeper.kill()
        self.expect(run("-p", str(sleeper.pid)), PROBLEM, "", r"\Avipstat: process \d+: no such process")

    def test_wrong_use(self):
        for options in (("--nonsense",), ("-p", "abc"), ("-p", "-1"), ("-i", "0"), ("-n", "0"), ("--prometheus", "--top"),
                        ("--prometheus", "--json")):
            self.expect(run(*options), USAGE, "", r"\S")

    def test_help_and_version(self):
        self.expect(run("--help"), WELL, "--top")
        self.expect(run("--version"), WELL, r"\Avipstat \(Viaduct\) \d+\.\d+")


if __name__ == "__main__":
    tool.main()
