#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipcap shows each frame of a capture with all its fields as tshark does with the dissector; its list and its chart have every frame;
files that are none, cut short or full of nonsense end it well; a live capture in files that turn round has what vipping sends.

    vipcap_test.py VIPCAP WIRE_CAPTURE LUA VIPPING
"""
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", folder) for folder in ("acenic", "wire", "")]
import packets  # noqa: E402
from eventually import communicated, eventually, text_of  # noqa: E402
from eventually import run as run_within  # noqa: E402
from hosts import Failure, Skipped, UdpNamespaces, as_user, end, outcome  # noqa: E402

# What both name alike, of all kinds.
FIELDS = ["version", "kind", "flags", "destination", "source", "sequence", "acknowledge", "credit", "pass", "length", "check", "nonce",
          "version_seen", "quote", "first_sequence", "max_frame", "arrived", "level", "rdma", "attended", "window", "max_transfer", "qos", "local.host", "local.discriminator",
          "remote.host", "remote.discriminator", "link_pass", "cookie", "status", "reason", "finding", "finding.operation", "finding.of_target",
          "finding.handle", "finding.address", "finding.length", "selective", "message", "offset", "total", "immediate",
          "address", "handle", "operand", "compare", "atomic", "width", "value"]


def run(*command, status=0):
    done = run_within([str(word) for word in command], 60)
    if done.returncode != status:
        raise Failure("%s: exit status %d, not %d\n%s%s" % (command, done.returncode, status, done.stdout[-500:], done.stderr[-500:]))
    return done.stdout


def plain(text):
    """A value, whichever way it is written."""
    text = text.replace(":", "")
    return int(text, 16) if text.startswith("0x") else text


def shown_by_vipcap(vipcap, capture):
    frames = []
    for line in run(vipcap, "-r", capture, "-v").splitlines():
        if line.startswith("    "):
            name, value = line.split()
            frames[-1][1][name] = plain(value)
        else:
            frames.append((line, {}))
    return frames


def shown_by_tshark(lua, capture):
    for _, protocol, info, frames in packets.shown(lua, capture):
        if len(info) != len(frames):
            raise Failure("a packet of %s has %d frames, and tshark says %r" % (protocol, len(frames), info))
        for line, fields in zip(info, frames):
            yield line, {name: plain(fields[name]) for name in FIELDS if name in fields}


def without_damage(line):
    return line.replace(" DAMAGED", ""), " DAMAGED" in line


def compare(vipcap, lua, capture, what):
    ours = shown_by_vipcap(vipcap, capture)
    if not shutil.which("tshark"):
        print("not compared with tshark: it is not installed", flush=True)
        return ours
    theirs = list(shown_by_tshark(lua, capture))
    if len(ours) != len(theirs):
        raise Failure("%s: %d frames, tshark has %d" % (what, len(ours), len(theirs)))
    for number, ((line, fields), (info, wanted)) in enumerate(zip(ours, theirs), 1):
        (said, damaged), (wanted_words, wanted_damage) = without_damage(line), without_damage(info)
        if wanted_words not in said or damaged != wanted_damage:
            raise Failure("%s, frame %d is shown as %r, by tshark as %r" % (what, number, line, info))
        if fields != wanted:
            differ = {name: (fields.get(name), wanted.get(name)) for name in {*fields, *wanted} if fields.get(name) != wanted.get(name)}
            raise Failure("%s, frame %d, %s: vipcap and tshark differ in %s" % (what, number, line, differ))
    print("%s: %d frames, every field as tshark shows it" % (what, len(ours)), flush=True)
    return ours


def list_and_chart(vipcap, capture, frames, folder):
    rows = run(vipcap, "-r", capture, "-l").splitlines()
    if not rows:
        raise Failure("no connection in the list")
    listed = sum(int(row.split()[3]) for row in rows)
    if not 0.9 * len(frames) <= listed <= len(frames):
        raise Failure("%d of %d frames are in the list\n%s" % (listed, len(frames), "\n".join(rows)))
    for row in rows:
        number, count = row.split()[0], int(row.split()[3])
        page = os.path.join(folder, "chart-%s.html" % number)
        run(vipcap, "-r", capture, "--chart", page, "-n", number)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        if text.count("marker-end") != count or not text.endswith("</html>\n"):
            raise Failure("connection %s has %d frames, its chart %d arrows" % (number, count, text.count("marker-end")))
    run(vipcap, "-r", capture, "--chart", os.path.join(folder, "x.html"), "-n", len(rows) + 1, status=1)
    print("%d connections, each with its chart" % len(rows), flush=True)


def nonsense(vipcap, capture, folder):
    with open(capture, "rb") as file:
        good = file.read()
    chance = random.Random(20261126)
    bad = os.path.join(folder, "bad.pcap")
    for number in range(60):
        data = bytearray(good[:chance.randrange(len(good))] if number % 2 else good[:20000])
        for _ in range(40):
            if len(data) > 30:
                data[chance.randrange(24, len(data))] = chance.randrange(256)
        with open(bad, "wb") as file:
            file.write(data)
        for more in ((), ("-v",), ("-l",)):
            done = run_within([vipcap, "-r", bad, *more], 60, text=False)
            if done.returncode not in (0, 1):
                raise Failure("nonsense %d: exit status %d\n%s" % (number, done.returncode, done.stderr[-300:]))
    with open(bad, "wb") as file:
        file.write(b"GET / HTTP/1.1\r\n\r\n and nothing more")
    run(vipcap, "-r", bad, status=1)
    run(vipcap, "-r", os.path.join(folder, "none"), status=1)
    print("nonsense ends well", flush=True)


def installed(vipcap, lua, capture, folder):
    """The dissector in a user's home: Wireshark finds it by itself, and does not mind a second one."""
    home = os.path.join(folder, "home")
    os.mkdir(home)
    environment = {**os.environ, "HOME": home}
    for _ in range(2):
        told = run_within([vipcap, "--install-dissector"], 60, env=environment, check=True).stdout
        path = told.split(": ")[0]
        with open(path, "rb") as own, open(lua, "rb") as wanted:
            if own.read() != wanted.read() or os.listdir(os.path.dirname(path)) != ["viaduct.lua"]:
                raise Failure("%s is not the dissector alone" % path)
    blocked = os.path.join(folder, "blocked")
    os.mkdir(blocked)
    with open(os.path.join(blocked, ".local"), "w", encoding="ascii"):
        pass
    if subprocess.run([vipcap, "--install-dissector"], env={**environment, "HOME": blocked}, capture_output=True, check=False).returncode != 1:
        raise Failure("a dissector that cannot be written is no failure")
    if not shutil.which("tshark"):
        return
    os.chmod(folder, 0o755)
    for more in ([], ["-X", "lua_script:" + lua]):
        command = ["tshark", "-n", *more, "-r", capture, "-T", "fields", "-e", "_ws.col.Protocol"]
        # It reads no scripts of root's.
        command = as_user(65534, command) if os.geteuid() == 0 else command
        done = run_within(command, 60, env=environment, check=True)
        if set(done.stdout.split()) != {"VIADUCT"} or "lua" in done.stderr.lower():
            raise Failure("tshark does not find %s, or does not like it: %s %s" % (path, set(done.stdout.split()), done.stderr))
    print("Wireshark finds the dissector by itself", flush=True)


def live(vipcap, lua, vipping, folder):
    kept, shown = os.path.join(folder, "live"), os.path.join(folder, "shown")
    with UdpNamespaces(2) as hosts, open(shown, "w", encoding="ascii") as stdout:
        catcher = hosts.start(1, vipcap, "-i", "v0", "-w", kept, "-C", "1", "-W", "2", stdout=stdout)
        server = hosts.start(1, vipping, "--server")
        try:
            for line in catcher.stderr:
                if "listening" in line:
                    break
            client = hosts.start(0, vipping, "-d", "udp0", "-c", "30", "-i", "0.01", "-b", "60000", "-w", "10000", "hostb")
            out, err = communicated(client, 60)
            if client.returncode != 0:
                raise Failure("vipping: %s%s" % (out, err))
            eventually("vipcap shows a disconnect", lambda: " disconnect " in text_of(shown), [catcher.pid], 60)
            catcher.terminate()
            communicated(catcher, 60)
        finally:
            end([server, catcher])
    with open(shown, encoding="ascii") as file:
        out = file.read()
    for wanted in (r" request [0-9a-f]{8} > 00000000 ", r" accept ", r" send .* total 60000.*\[last", r" disconnect "):
        if not re.search(wanted, out):
            raise Failure("no frame %r was seen\n%s" % (wanted, out[-1500:]))
    files = sorted(name for name in os.listdir(folder) if name.startswith("live"))
    if files != ["live.0", "live.1"]:
        raise Failure("the files are %s" % files)
    for name in files:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            if struct.unpack("<I", file.read(4))[0] != 0xA1B23C4D or os.path.getsize(path) > 1 << 20:
                raise Failure("%s is no pcap file of at most 1 MiB" % name)
        if not compare(vipcap, lua, path, name):
            raise Failure("%s has no frame" % name)
        if not any(len(packet) > 16500 for packet in packets.packets_of(path)):
            raise Failure("no packet of %s has several frames" % name)
    both = [os.path.join(folder, name) for name in files]
    lines = run(vipcap, "-r", *both).splitlines()
    times = [float(line.split()[0]) for line in lines]
    if len(lines) != sum(len(run(vipcap, "-r", path).splitlines()) for path in both) or times != sorted(times):
        raise Failure("both files at once do not have the frames of each, by time")
    if run(vipcap, "-r", *both, "-l") != run(vipcap, "-r", *both[::-1], "-l"):
        raise Failure("what is in two files depends on their order")
    print("live, in two files that turn round", flush=True)


def main():
    vipcap, wire_capture, lua, vipping = (os.path.abspath(word) for word in sys.argv[1:])

    def run_all():
        with tempfile.TemporaryDirectory() as folder:
            capture = os.path.join(folder, "frames.pcap")
            run(wire_capture, capture, os.path.join(folder, "frames.txt"))
            frames = compare(vipcap, lua, capture, "one a packet")
            made = os.path.join(folder, "made.pcap")
            packets.write(made, [packet for packet, _ in packets.made_of(capture)])
            compare(vipcap, lua, made, "several a packet, and other programs' packets")
            list_and_chart(vipcap, capture, frames, folder)
            nonsense(vipcap, capture, folder)
            installed(vipcap, lua, capture, folder)
            try:
                live(vipcap, lua, vipping, folder)
            except Skipped as why:
                print("no live capture: %s" % why)

    return outcome(run_all)


if __name__ == "__main__":
    sys.exit(main())
