#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hosts that authenticate their frames: with the same key they work together, without it they do not meet, and the log says why. A key
that others may read, or that is none, is refused.

    auth.py --bin DIR --vipping PROGRAM [--over af_packet|udp|loopback]
"""
import argparse
import os
import sys

from hosts import Failure, end, kind_of, outcome

from eventually import communicated
from two_hosts import pair

KEYS = ("000102030405060708090a0b0c0d0e0f", "0f0e0d0c0b0a09080706050403020100")


def keyed(over, keys):
    """Two hosts, each with the key of that number, or none."""
    class Keyed(kind_of(over)):
        def environment(self, host):
            environment = super().environment(host)
            if keys[host] is not None:
                name = "VIADUCT_%s_AUTH_KEY_FILE" % self.provider.upper()
                environment[name] = self.file("key%d" % host, KEYS[keys[host]], 0o600)
            return environment

        def file(self, name, text, mode):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(text + "\n")
            os.chmod(path, mode)
            return path

    return Keyed(2)


def unknown_senders(hosts, program, what):
    """They do not meet: the client ends by itself, and the server's log says why."""
    hosts.settings["VIADUCT_LOG"] = "warn"
    processes = [hosts.start(1, program, "--server"), hosts.start(0, program, "hostb", "-c", 3, "-w", 1500)]
    try:
        out, err = communicated(processes[1], 60)
        if processes[1].returncode == 0:
            raise Failure("%s: they met\n%s%s" % (what, out, err))
        processes[0].kill()
        said = processes[0].communicate()[1]
        if what not in said:
            raise Failure("the server should say that its peer %s:\n%s" % (what, said))
    finally:
        end(processes)
    print("%-50s good" % what, flush=True)


def refused(hosts, program, path, what):
    hosts.settings["VIADUCT_LOG"] = "error"
    hosts.set("auth_key_file", path)
    process = hosts.start(0, program, "-c", "hostb")
    try:
        out, err = communicated(process, 30)
    finally:
        end([process])
    if process.returncode == 0 or what not in err or any(key in err for key in KEYS):
        raise Failure("%s: exit status %d\n%s%s" % (what, process.returncode, out, err))
    print("%-50s good" % what, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the via_* programs")
    parser.add_argument("--vipping", required=True)
    parser.add_argument("--over", default="af_packet", choices=("af_packet", "udp", "loopback"))
    options = parser.parse_args()
    program = os.path.join(os.path.abspath(options.bin), "via_pingpong")
    sizes = "".join(r" +%d +[0-9.]+ +[0-9.]+\n" % (1 << k) for k in range(2, 18))

    def test():
        with keyed(options.over, (0, 0)) as hosts:
            for level in "udr":
                pair(hosts, "the same key, " + level, [program, "-s"],
                     [program, "-c", "hostb", "-n", 20, "-m", 1 << 17, "-r", level], r"server: done\n",
                     r" +bytes +half trip \(us\) +MB/s\n" + sizes + r"data verified: OK\n")
        for keys, what in (((0, 1), "authenticates with another key"), ((None, 0), "does not authenticate"),
                           ((0, None), "no key is set here")):
            with keyed(options.over, keys) as hosts:
                unknown_senders(hosts, os.path.abspath(options.vipping), what)
        with keyed(options.over, (None, None)) as hosts:
            refused(hosts, program, hosts.file("open", KEYS[0], 0o644), "can be read or written by others")
            refused(hosts, program, hosts.file("short", KEYS[0][:30], 0o600), "has no key in it")
            refused(hosts, program, os.path.join(hosts.folder, "none"), "cannot be read")
            if hosts.provider == "acenic":
                hosts.set("mode", "shared")
                refused(hosts, program, hosts.file("good", KEYS[0], 0o600), "acenic.mode is shared")

    return outcome(test)


if __name__ == "__main__":
    sys.exit(main())
