#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Requests with forged source addresses, 500 a second: two of them cost a server an accept each. From then on the server's NIC asks each
requester for a proof, and honest clients connect about as fast as without an attack. Answers to forged addresses stay few.

    forged_requests_test.py --build DIR
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from network_test import ALL, HEADER, VERSION, WIRES, crc32c, end, eventually, network, outcome, said  # noqa: E402
from network_test import Failure, communicated, holds, rows  # noqa: E402

REQUEST, PROVE = 1, 9
NONCE, ATTENDED, LOCAL_HOST, PASS = 0, 19, 40, 184  # in the fields of a request
PER_SECOND = 500
CALM_PINGS, PINGS = 3, 5
FIRST_WITHIN, SLOWER = 30.0, 2.0  # seconds: the first client of an attack; half of the later ones beyond twice the calm time
TWO_ACCEPTS = 6.0  # seconds: until then the first two forged requests may keep the server
SECONDS = 60.0  # the attack ends with the test
MOST_ANSWERED = 3  # times the bytes of the requests


def forged(request, origin, dice):
    """That request as another host would send it, without an end of its process being reported."""
    head, body = bytearray(request[:HEADER]), bytearray(request[HEADER:])
    body[NONCE:NONCE + 8] = dice.randbytes(8)
    body[PASS:PASS + 8] = dice.randbytes(8)
    body[ATTENDED] = 0
    body[LOCAL_HOST:LOCAL_HOST + 6] = origin[-6:]
    struct.pack_into(">II", head, 8, dice.getrandbits(31) | 0x10000, 0)
    struct.pack_into(">I", head, 36, 0)
    struct.pack_into(">I", head, 36, crc32c(bytes(head + body)))
    return bytes(head + body)


def flood(text):
    """Until it is killed, or SECONDS long. A line for each second: bytes sent, bytes that have come for forged addresses, cookies."""
    what = json.loads(text)
    wire = WIRES[what["over"]][0]("v0", ALL)
    target, request = bytes.fromhex(what["target"]), bytes.fromhex(what["request"])
    dice = random.Random(43)
    until, sent, heard, cookies, origins = time.monotonic() + SECONDS, 0, 0, 0, set()
    while time.monotonic() < until:
        for _ in range(PER_SECOND):
            origin = b"\x02" + dice.randbytes(5)
            if what["over"] == "udp":
                origin += bytes([10, 77, 0, dice.randrange(100, 250)]) + struct.pack(">H", dice.randrange(20000, 60000))
            origins.add(origin[:6])
            data = forged(request, origin, dice)
            wire.send(target, origin, data)
            sent += len(data)
            time.sleep(1.0 / PER_SECOND)  # sleeps: the pace of the attack
        for to, _, data in wire.heard():
            if to[:6] in origins:
                heard += len(data)
                cookies += data[1] == PROVE
        print(json.dumps({"sent": sent, "heard": heard, "cookies": cookies}), flush=True)
    return 0


def listen(text):
    """The first request that host 0 sends to host 1."""
    what = json.loads(text)
    wire, found = WIRES[what["over"]][0]("p0-0", ALL), []

    def is_seen():
        for target, origin, data in wire.heard():
            if origin.hex().startswith(what["peer"]) and data[0] == VERSION and data[1] == REQUEST:
                length = HEADER + struct.unpack(">H", data[32:34])[0]
                found.append({"target": target.hex(), "request": data[:length].hex()})
        return bool(found)
    holds(is_seen, limit=30.0)
    print(json.dumps(found[0] if found else {}))
    return 0


def script(hosts, space, option, what):
    return subprocess.Popen(["ip", "netns", "exec", space, sys.executable, os.path.abspath(__file__), option,
                             json.dumps(dict(what, over=hosts.provider))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ping(hosts, program):
    """Seconds that a client takes to connect and to get one answer; None: it has none."""
    began = time.monotonic()
    client = hosts.start(0, program, "hostb", "-c", "1")
    try:
        communicated(client, 60)
    finally:
        end([client])
    return time.monotonic() - began if client.returncode == 0 else None


def check_answers(hosts, attack):
    """Over udp no answer leaves the server's host: its kernel finds no Ethernet address for a forged address."""
    out, err = attack.communicate()
    lines = out.splitlines()
    if not lines:
        raise Failure("the attack failed: %s" % err)
    shown = json.loads(lines[-1])
    if shown["heard"] > MOST_ANSWERED * shown["sent"]:
        raise Failure("the answers have more than %d times the bytes of the requests: %s" % (MOST_ANSWERED, shown))
    if hosts.provider == "acenic" and shown["cookies"] == 0:
        raise Failure("no forged address was asked for a proof: %s" % shown)
    return shown


def judge(hosts, program, name):
    server = hosts.start(1, program, "--server", "-q")
    attack = None
    try:
        sniffer = script(hosts, hosts.switch, "--listen", {"peer": hosts.end(0)})
        eventually("the switch sees a request", lambda: ping(hosts, program) is not None and sniffer.poll() is not None)
        seen = said(sniffer)
        if not seen:
            raise Failure("the switch sees no request")
        calm_times = [ping(hosts, program) for _ in range(CALM_PINGS)]
        if None in calm_times:
            raise Failure("a client does not connect without an attack")
        calm = max(calm_times)
        attack = script(hosts, hosts.names[2], "--flood", seen)
        began = time.monotonic()
        while ping(hosts, program) is None or time.monotonic() - began < TWO_ACCEPTS:
            if time.monotonic() - began > FIRST_WITHIN:
                raise Failure("no client connects in %.0f s" % FIRST_WITHIN)
        times = [ping(hosts, program) for _ in range(PINGS)]
        if None in times or sorted(times)[PINGS // 2] > 2 * calm + SLOWER:
            raise Failure("clients took %s s to connect, %.1f s without an attack" % (times, calm))
        attack.kill()
        shown = check_answers(hosts, attack)
        print("%-20s clients connect in %.1f s at most, calm %.1f s; %s" % (name, max(times), calm, shown), flush=True)
    finally:
        end([server] + ([attack] if attack else []))


def all_rows(build):
    kinds = [("udp", "udp", None)]
    if os.path.exists(os.path.join(build, "lib", "viaduct", "acenic.so")):
        kinds += [("acenic, exclusive", "af_packet", "exclusive"), ("acenic, shared", "af_packet", "shared")]
    return kinds


def test(over, mode, name, program):
    with network(over) as hosts:
        if mode:
            hosts.settings["VIADUCT_ACENIC_MODE"] = mode
        judge(hosts, program, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build")
    parser.add_argument("--flood", help=argparse.SUPPRESS)
    parser.add_argument("--listen", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.flood:
        return flood(options.flood)
    if options.listen:
        return listen(options.listen)
    build = os.path.abspath(options.build)
    chosen = rows.chosen(name for name, _, _ in all_rows(build))
    failed = []
    for name, over, mode in all_rows(build):
        if name not in chosen:
            continue
        code = outcome(lambda over=over, mode=mode, name=name: test(over, mode, name, os.path.join(build, "bin", "vipping")))
        if code == 77:
            return code
        if code != 0:
            failed.append(name)
    rows.report(failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
