#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""handshake_test.py --build DIR [CASE...]: the agent dies, or is late, at each message of a handshake. Both ends become connected
or neither does; VIP_TIMEOUT comes when the time is over and not before; where both ends go on asking, the next agent connects them."""
import argparse
import concurrent.futures
import itertools
import os
import socket
import subprocess
import sys

from moody_agent import name_of
from step_agent import StepAgent

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import Late, communicated, eventually  # noqa: E402

CLIENT_SERVER = ("wait", "request", "wait=incoming", "accept", "request=joined", "confirm", "accept=joined", "confirm=done")
PEERS = ("peer1", "peer2", "peer1=joined", "peer2=joined", "peer1=done", "peer2=done")
SUCCESS, RESOURCE, TIMEOUT, REJECT, NO_MATCH = 0, 3, 4, 5, 14
TIMEOUT_MS = 20000     # of requests where the agent dies
GRACE_MS = 2000        # for which an agent holds a request: the server has that long to wait again
LATE_TIMEOUT_MS = 600  # where it is late
LATER_MS = 1400        # so much later than that
EARLY_MS = 2           # by which clocks may differ


class Case:
    number = itertools.count()

    def __init__(self, roles, step, what, together, backwards=False):
        self.tag = str(next(Case.number))
        self.roles, self.step, self.what, self.together, self.backwards = roles, step, what, together, backwards
        self.timeout = LATE_TIMEOUT_MS if what == "late" else TIMEOUT_MS
        self.tries = 4 if what == "late" else 1  # on a slow machine the time may be over before the step
        self.name = ":".join((roles[0], what, step, "together" if together else "apart") + (("backwards",) if backwards else ()))

    # What is wrong with how the attempts ended; ends: by role (result, milliseconds, fate).
    def judge(self, ends):
        results = {role: end[0] for role, end in ends.items()}
        fates = sorted(end[2] for end in ends.values())
        if all(r == SUCCESS for r in results.values()):
            return "" if fates == ["works", "works"] else "connected, but not with each other"
        if self.what != "late" and self.roles[0] != "accept":
            return "both ends go on asking and are not connected"
        for role, (result, ms, fate) in ends.items():
            if result == SUCCESS:
                if fate != "lost" or self.what != "late":
                    return f"{role} is connected alone"
                continue
            if fate != "idle":
                return f"{role} has failed and its VI is not Idle"
            if role in ("accept", "serve"):
                if result not in (TIMEOUT, RESOURCE):
                    return f"{role} answers {result}"
            elif result == TIMEOUT and ms < self.timeout - EARLY_MS:
                return f"{role} answers VIP_TIMEOUT after {ms} ms of {self.timeout}"
            elif result not in (TIMEOUT, REJECT, NO_MATCH, RESOURCE):
                return f"{role} answers {result}"
        return ""


def all_cases():
    for first, step, what, together in itertools.product(("serve", "accept"), CLIENT_SERVER, ("before", "after", "late"), (False, True)):
        yield Case((first, "request"), step, what, together)
    for step, what, together, backwards in itertools.product(PEERS, ("before", "after", "late"), (False, True), (False, True)):
        yield Case(("peer1", "peer2"), step, what, together, backwards)


class Test:
    def __init__(self, build):
        self.build = build
        self.program = os.path.join(build, "tests", "fault", "fault_one_end")
        self.real = [f"@viaduct-steps-real-{os.getpid()}-{n}" for n in (1, 2)]
        self.failures = []

    def environment(self, address):
        return dict(os.environ, VIADUCT_AGENT=address, VIADUCT_VIPKAD="/nonexistent/vipkad", VIADUCT_AGENT_GRACE_MS=str(GRACE_MS),
                    VIADUCT_PROVIDER_PATH=os.path.join(self.build, "lib", "viaduct"), VIADUCT_NAMES_RESOLVER="false",
                    LD_LIBRARY_PATH=os.path.join(self.build, "lib"))

    def start(self, case, roles, address):
        p = subprocess.Popen([self.program, case.tag, str(case.timeout), *roles], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=self.environment(address), text=True)
        if p.stdout.readline() != "ready\n":
            raise RuntimeError("an end cannot be prepared")
        return p

    def play(self, case):
        address = f"@viaduct-steps-{os.getpid()}-{case.name}-{case.timeout}"
        late_s = (case.timeout + LATER_MS) / 1000
        agent = StepAgent(address, self.real, case.step, case.what, late_s, case.backwards)
        programs = []
        try:
            groups = [case.roles] if case.together else [(role,) for role in case.roles]
            for roles in groups:
                programs.append(self.start(case, roles, address))
            for i, p in enumerate(programs * 2 if case.together else programs):
                p.stdin.write("go\n")
                p.stdin.flush()
                if i == 0 and not agent.saw("peer1" if case.roles[0] == "peer1" else "wait", 30):
                    raise RuntimeError("the first end does not ask")
            said = "".join(communicated(p, 110)[0] for p in programs)
        finally:
            for p in programs:
                p.kill()
                p.wait()
            agent.stop()
        ends = {w[0]: (int(w[1]), float(w[2]), w[3]) for w in (line.split() for line in said.splitlines())}
        wrong = case.judge(ends) if len(ends) == 2 else "an end has not ended"
        if not wrong and not agent.struck:
            if case.tries > 1:
                case.tries -= 1
                case.timeout *= 3
                return self.play(case)
            wrong = "the step was not met"
        return f"{wrong}: {ends}" if wrong else ""

    def run(self, wanted):
        agents = [subprocess.Popen([os.path.join(self.build, "sbin", "vipkad"), "--socket", a, "--linger-ms", "-1", "--log-level", "off"],
                                   env=self.environment(a), stdout=subprocess.PIPE) for a in self.real]
        cases = [c for c in all_cases() if not wanted or c.name in wanted]
        try:
            self.wait_for_agents()
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                for case, wrong in zip(cases, pool.map(self.guarded, cases)):
                    if wrong:
                        self.failures.append(case.name)
                        print(f"FAILED {case.name}: {wrong}", flush=True)
        finally:
            for a in agents:
                a.terminate()
                a.wait()
        print(f"{len(self.failures)} of {len(cases)} failed")
        return 1 if self.failures or not cases else 0

    def guarded(self, case):
        try:
            return self.play(case)
        except (OSError, RuntimeError, Late) as error:
            return repr(error)

    def wait_for_agents(self):
        for address in self.real:
            def listens(address=address):
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                    return s.connect_ex(name_of(address)) == 0
            eventually("the agent listens", listens, limit=20)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("cases", nargs="*")
    words = parser.parse_args()
    return Test(words.build).run(words.cases)


if __name__ == "__main__":
    sys.exit(main())
