#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""moody_test.py --build DIR [MOOD...]: every call of the library that speaks to the agent, and every tool that does, against an
agent in each of its moods (moody_agent.py). A call with a timeout ends by it, one without within ten seconds, an endless wait as
soon as what it waits for cannot come any more; a tool says what is the matter and ends with a status other than 0."""
import argparse
import concurrent.futures
import os
import resource
import select
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402
from eventually import Late, communicated  # noqa: E402
from moody_agent import MOODS, MoodyAgent, name_of  # noqa: E402

# What other calls at the same time add to a call. A call that hangs does so for longer.
SLACK_S = 5
# Programs that wait at the same time. Each needs a processor for some hundredths of a second, and then waits for up to ten.
PROGRAMS = 48
# Calls with a timeout of a second, and a second more to give up what they have begun.
TIMED = {"VipConnectWait", "VipConnectRequest", "VipConnectRequest-two-threads", "VipConnectPeerRequest", "VipConnectPeerWait"}
AT_ONCE = {"VipConnectWait-poll", "VipConnectPeerDone", "VipConnectReject", "VipCloseNic"}
# An agent that only does not answer may still do so. One whose answers are cut has none to give before a request comes.
NO_ANSWER = {"silent-with-us", "stopped-with-us", "wrong-type", "silent-after-hello"}
MAY_WAIT = {"VipConnectWait-infinite": NO_ANSWER | {"late", "truncated"}, "VipConnectWait-infinite-asked": NO_ANSWER}


def limit_s(call):
    if call in AT_ONCE:
        return 2.5
    return 3 if call in TIMED else 10.5


class Test:
    def __init__(self, build):
        self.build = build
        self.program = os.path.join(build, "tests", "fault", "fault_one_call")
        self.real = f"@viaduct-moody-real-{os.getpid()}"
        self.failures = []
        self.slots = threading.Semaphore(PROGRAMS)
        self.slowest = {}

    def environment(self, address):
        e = dict(os.environ, VIADUCT_AGENT=address, VIADUCT_VIPKAD="/nonexistent/vipkad", VIADUCT_LOG="warn",
                 VIADUCT_NAMES_RESOLVER="false", VIADUCT_PROVIDER_PATH=os.path.join(self.build, "lib", "viaduct"))
        e["LD_LIBRARY_PATH"] = os.path.join(self.build, "lib")
        return e

    def fail(self, text):
        self.failures.append(text)
        print("FAILED", text, flush=True)

    def wait_for(self, address):
        def listens():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                return s.connect_ex(name_of(address)) == 0
        eventually.eventually("the agent listens", listens, limit=20)

    # One call of one process, whose agent turns when it is ready.
    def one_call(self, mood, call):
        address = f"@viaduct-moody-{os.getpid()}-{mood}-{call}"
        agent = MoodyAgent(address, self.real)
        limit = limit_s(call) + SLACK_S
        with self.slots:
            p = subprocess.Popen([self.program, call, str(int(limit * 1000))], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(address), text=True)
            try:
                if p.stdout.readline() != "ready\n":
                    self.fail(f"{mood}: {call}: not prepared: {communicated(p, 20)[1]}")
                    return
                agent.turn(mood)
                out, err = communicated(p, limit + 20, "go\n")
            except Late:
                p.kill()
                self.fail(f"{mood}: {call}: does not even end by its own alarm")
                return
        if p.returncode == 3 and mood in MAY_WAIT.get(call, ()):
            return
        if p.returncode != 0:
            self.fail(f"{mood}: {call}: status {p.returncode}: {err.strip()[-300:]}")
            return
        _, result, ms = out.split()
        self.slowest[mood] = max(self.slowest.get(mood, (0, "")), (float(ms), call))
        if call == "fresh" and mood.startswith("full"):
            if result != "3" or "no descriptors left" not in err:
                self.fail(f"{mood}: {call}: answers {result}, and says: {err.strip()}")
        if call in ("fresh", "VipOpenNic") and result == "0" and mood != "late" and not mood.endswith("with-us"):
            if call == "fresh":
                self.fail(f"{mood}: {call}: opens a NIC at an agent in that mood")

    def one_tool(self, mood, words):
        address = f"@viaduct-moody-{os.getpid()}-{mood}-{words[0]}-{len(words)}"
        agent = MoodyAgent(address, self.real)
        agent.turn(mood)
        with self.slots:
            e = self.environment(address)
            del e["VIADUCT_LOG"]
            try:
                p = eventually.run([os.path.join(self.build, "bin", words[0])] + words[1:], 60 if mood == "late" else 20 + SLACK_S, env=e,
                                   stdin=subprocess.DEVNULL)
            except Late as late:
                self.fail(f"{mood}: {' '.join(words)}: {late}")
                return
        said = p.stdout + p.stderr
        if mood == "late":
            return
        if p.returncode == 0 or "limit was reached" in said or not p.stderr.strip() + p.stdout.strip():
            self.fail(f"{mood}: {' '.join(words)}: status {p.returncode}: {said.strip()[-300:]}")
        elif "agent" not in said:
            self.fail(f"{mood}: {' '.join(words)} does not say what is the matter: {said.strip()[-300:]}")
        elif p.returncode < 0:
            self.fail(f"{mood}: {' '.join(words)} died by signal {-p.returncode}")

    def crowd(self, processes=70):
        """More programs than the agent has descriptors for: each opens its NIC, or is told why not, at once."""
        place = f"@viaduct-moody-{os.getpid()}-crowd"
        few = (200, 200)
        agent = subprocess.Popen([os.path.join(self.build, "sbin", "vipkad"), "--socket", place, "--linger-ms", "-1",
                                  "--log-level", "off"], env=self.environment(place),
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few))
        self.wait_for(place)
        clients = [subprocess.Popen([self.program, "VipCloseNic", "60000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env=self.environment(place), text=True)
                   for _ in range(processes)]
        outputs = select.poll()
        for c in clients:
            outputs.register(c.stdout, select.POLLIN)
        if not eventually.holds(lambda: len(outputs.poll(0)) == processes, [agent.pid, clients[-1].pid], 10 + SLACK_S):
            self.fail("crowd: not every program has its answer in time")
        opened = [c for c in clients if c.stdout.readline() == "ready\n"]
        refused = [c for c in clients if c not in opened]
        said = [communicated(c, 20)[1] for c in refused]
        for c in opened:
            communicated(c, 20, "go\n")
        agent.terminate()
        agent.wait()
        if not opened or not refused:
            self.fail(f"crowd: {len(opened)} opened a NIC, {len(refused)} did not: no test of a full agent")
        for text in said:
            if "VipOpenNic: 3" not in text or not ("no descriptors" in text or "too many" in text or "limit" in text):
                self.fail(f"crowd: turned away without a reason: {text.strip()}")
        print(f"crowd: {len(opened)} opened a NIC, {len(refused)} were told why not")

    def waiting(self):
        """An agent that takes two seconds for each answer does not keep a program with a longer timeout from connecting. Opening a NIC takes
        most of its nine seconds there, so nothing else runs meanwhile."""
        address = f"@viaduct-moody-{os.getpid()}-waiting"
        words = [os.path.join(self.build, "bin", "vipping"), "-D", f"waiting-{os.getpid()}"]
        server = subprocess.Popen(words + ["-s", "-1"], env=self.environment(self.real), stdout=subprocess.DEVNULL)
        agent = MoodyAgent(address, self.real)
        agent.turn("late")
        try:
            p = eventually.run(words + ["-c", "1", "-w", "60000"], 120, env=self.environment(address))
            if p.returncode != 0:
                self.fail(f"late: a request of 60 s ends with status {p.returncode}: {p.stderr.strip()[-300:]}")
        except Late:
            self.fail("late: a request of 60 s does not end")
        finally:
            server.kill()
            server.wait()

    def run(self, moods):
        calls = subprocess.run([self.program, "--list"], capture_output=True, text=True, check=True,
                               env=self.environment("@none")).stdout.split()
        tools = [["vipinfo"], ["vipinfo", "/dev/via_lo"], ["vipping", "-c", "1"], ["vipperf", "-t", "send_lat", "-n", "5"]]
        agent = subprocess.Popen([os.path.join(self.build, "sbin", "vipkad"), "--socket", self.real, "--linger-ms", "-1"],
                                 env=self.environment(self.real))
        self.wait_for(self.real)
        try:
            with concurrent.futures.ThreadPoolExecutor(96) as pool:
                jobs = [pool.submit(self.one_call, mood, call) for call in calls for mood in moods]
                jobs += [pool.submit(self.one_tool, mood, words) for words in tools for mood in moods
                         if not mood.endswith("with-us")]
                for job in jobs:
                    job.result()
            self.waiting()
            self.crowd()
        finally:
            agent.terminate()
            agent.wait()
        for mood in moods:
            print(f"{mood}: slowest {self.slowest.get(mood)}")
        print(f"{len(self.failures)} of {len(jobs) + 2} failed")
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("moods", nargs="*")
    words = parser.parse_args()
    return Test(words.build).run(words.moods or list(MOODS))


if __name__ == "__main__":
    sys.exit(main())
