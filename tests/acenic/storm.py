#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Messages, RDMA writes and RDMA reads under fault injection, every byte compared with what was sent, and the counters of the
engines, which must show that faults were injected and repaired.

    storm.py --build BUILD [--over af_packet,memif,vhost,udp,loopback] [--mode exclusive|shared] [--messages N] [--faults PLAN]
             [--seed N] [--mtu N] [--user UID]

acenic, shared: an engine process on each host, which is where frames go wrong; the programs' ends of the protocol deal with it.
"""
import argparse
import contextlib
import os
import re
import signal
import sys
import time

from hosts import SKIPPED, Failure, Skipped, end, kind_of, without_privileges

from eventually import communicated

WEATHER = "drop=0.05,duplicate=0.05,corrupt=0.02,reorder=0.1"
# Test, message size, share of the messages. At Unreliable messages may be lost, so vipperf has no stream of them.
WORK = (("send_bw", 64, 0.5), ("send_bw", 30000, 0.2), ("write_bw", 4000, 0.15), ("read_bw", 20000, 0.1), ("send_lat", 1000, 0.05))


def storm(hosts, program, test, size, count, level):
    began = time.monotonic()
    nic = hosts.provider + "0"
    processes = [hosts.start(1, program, "-s", "-1", "-d", nic),
                 hosts.start(0, program, "-d", nic, "-t", test, "-b", size, "-n", count, "-r", level, "--check", "-w", 10000,
                             "hostb")]
    limit = 90 + count / (20 if test == "send_lat" else 500)  # each lost answer costs a timeout
    try:
        says = [communicated(process, limit) for process in reversed(processes)]
    except Exception as error:  # the time is over
        raise Failure("%s: %s" % (test, error)) from None
    finally:
        end(processes)
    for process, (out, err) in zip(reversed(processes), says):
        if process.returncode != 0:
            raise Failure("%s, %d bytes, %s: exit status %d\n%s%s" % (test, size, level, process.returncode, out[-2000:], err[-3000:]))
    counters = {}
    for name in ("retransmitted", "duplicates", "bad check", "early"):
        found = [int(n) for _, err in says for n in re.findall(name + r" (\d+)", err)]
        if not found:
            raise Failure("no counters in the log\n" + says[0][1][-2000:])
        counters[name] = sum(found)
    print("%-9s %6d x %5d bytes, %-9s good, %.1f s: %s" % (test, count, size, level, time.monotonic() - began, ", ".join(
        "%s %d" % (name, n) for name, n in counters.items())), flush=True)
    return counters


@contextlib.contextmanager
def weather(hosts, options):
    """Where frames leave: in the programs, or in two engine processes, which end well."""
    faults = "seed=%d,%s" % (options.seed, options.faults)
    if hosts.provider == "acenic":
        hosts.set("mode", options.mode)
    if hosts.provider != "acenic" or options.mode == "exclusive":
        hosts.set("faults", faults)
        yield
        return
    daemon = os.path.join(os.path.abspath(options.build), "sbin", "viaduct-acenicd")
    engines = [hosts.start(host, daemon, "--port", hosts.ports(host), "--faults", faults, "--foreground", "--linger-ms", -1)
               for host in (0, 1)]
    try:
        for engine in engines:  # else a program starts one in which the weather is good
            if not any(" serves " in line for line in engine.stderr):
                raise Failure("an engine process has ended: %s" % engine.wait())
        yield
        for engine in engines:
            engine.send_signal(signal.SIGTERM)
            _, err = communicated(engine, 10)
            if engine.returncode != 0:
                raise Failure("an engine process: exit status %d\n%s" % (engine.returncode, err[-3000:]))
    finally:
        end(engines)


def run_all(hosts, options):
    program = os.path.join(os.path.abspath(options.build), "bin", "vipperf")
    total = {}
    for level in ("delivery", "reception"):
        for test, size, share in WORK:
            for name, n in storm(hosts, program, test, size, max(200, int(options.messages * share / 2)), level).items():
                total[name] = total.get(name, 0) + n
    calm = [name for name, n in total.items() if n == 0]
    if options.faults == WEATHER and calm:
        raise Failure("the weather was not bad: nothing of " + ", ".join(calm))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build tree")
    parser.add_argument("--over", default="af_packet,memif")
    parser.add_argument("--mode", default="exclusive", choices=("exclusive", "shared"))
    parser.add_argument("--messages", type=int, default=20000)
    parser.add_argument("--faults", default=WEATHER)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--user", type=int, help="udp: all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    skipped = []
    for over in options.over.split(","):
        print("over %s, %s, seed %d, %s" % (over, options.mode, options.seed, options.faults))
        try:
            with kind_of(over)(mtu=options.mtu) as hosts, weather(hosts, options):
                hosts.settings["VIADUCT_LOG"] = "info"
                run_all(hosts, options)
        except Skipped as why:
            print("SKIPPED: %s" % why)
            skipped.append(over)
        except Failure as failure:
            print(failure)
            return 1
    return SKIPPED if len(skipped) == len(options.over.split(",")) else 0


if __name__ == "__main__":
    sys.exit(main())
