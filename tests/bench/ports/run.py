#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py BUILD [--over af_packet|memif|vhost|udp] [--rounds N] [--mtu N]: VI over acenic beside bare DPDK frames on the same ports, and beside the
kernel's UDP and TCP on the same interfaces; VI over udp beside sockets, and beside libfabric and UCX where they are installed
(fi_pingpong, ucx_perftest), each stream with the processor time of both ends. All in turns, round after round; medians, as a Markdown table.
The distance of the two processors is probed before and after each round, and rounds in which it changed do not count. Each end has a
processor of its own, and polls without giving way to other work of the machine."""
import argparse
import datetime
import glob
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "acenic"))
from hosts import SKIPPED, Failure, Memif, end, kind_of, outcome  # noqa: E402

SECONDS = 30
SMALL = 64
LARGE = 65536  # a message of several frames
PINGS = 5000
STREAM = 512 << 20  # bytes of a stream
SIZES = (65536, 1 << 20, 4 << 20)
IPS = ("192.0.2.1", "192.0.2.2")


def processor_time():
    """Seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size_text(size):
    return "%d MiB" % (size >> 20) if size >= 1 << 20 else "%d KiB" % (size >> 10)


class Bench:
    def __init__(self, hosts, build, mtu):
        self.hosts, self.mtu = hosts, mtu
        self.program = lambda name: os.path.join(build, name)
        self.over_frames = hosts.kind
        if self.over_frames == "af_packet":
            for host, ip in enumerate(IPS):
                subprocess.run(hosts.on(host) + ["ip", "address", "add", ip + "/24", "dev", "v0"], check=True)

    def both(self, server, client, settle=0.3, **variables):
        """Starts the server on host 1, then the client on host 0; what the client says."""
        behind = self.hosts.start(1, "taskset", "-c", "1", *server, stdout=subprocess.DEVNULL, env={**self.hosts.environment(1), **variables})
        time.sleep(settle)  # sleeps: the server comes up
        leader = self.hosts.start(0, "taskset", "-c", "0", *client, env={**self.hosts.environment(0), **variables})
        try:
            out, err = leader.communicate(timeout=SECONDS)
            if leader.returncode != 0:
                behind.kill()
                raise Failure("%s: %s %s" % (os.path.basename(str(client[0])), err.strip(), behind.communicate()[1].strip()))
            return out
        except subprocess.TimeoutExpired:
            raise Failure("%s has not ended after %d s" % (client[:3], SECONDS)) from None
        finally:
            end([leader, behind])
            for left in glob.glob("/run/dpdk/frames-*"):  # DPDK's folder of a process
                shutil.rmtree(left, ignore_errors=True)

    def ip(self, host):
        return self.hosts.ip(host, 0) if self.over_frames == "udp" else IPS[host]

    def device(self, host):
        socket = os.path.join(self.hosts.folder, "bare")
        if self.over_frames == "memif":
            return "net_memif0,socket=%s,socket-abstract=no,id=0,role=%s,bsize=9216,rsize=10" % (socket, ("client", "server")[host])
        if self.over_frames == "vhost":
            return "net_vhost0,queues=1,iface=" + socket if host == 1 else (
                "net_virtio_user0,queues=1,queue_size=1024,mrg_rxbuf=1,in_order=1,path=" + socket)
        return "net_af_packet0,iface=v0,qpairs=1," + ("blocksz=65536,framesz=16384,framecnt=512" if self.mtu > 1900 else
                                                      "blocksz=4096,framesz=2048,framecnt=512")

    def address(self, host):
        return self.hosts.address(host, 0) if self.over_frames == "af_packet" else Memif.ADDRESSES[host]

    def limit(self, wire, test, size, count=None):
        """One number: ns, or 10^6 bytes a second."""
        count = count or (PINGS if test == "ping" else 40000)
        common = [self.program("tests/bench/ports/viaduct_port_limits"), wire, test, "--bytes", size, "--count", count]
        ends = [[], []]
        for host in (0, 1):
            if wire == "frames":
                ends[host] = ["--device", self.device(host), "--own", self.address(host), "--other", self.address(1 - host)]
                if host == 1 and os.path.exists(os.path.join(self.hosts.folder, "bare")):
                    os.unlink(os.path.join(self.hosts.folder, "bare"))
            else:
                ends[host] = ["--ip", self.ip(1 - host)]
        return float(self.both(common + ends[1], common + ends[0] + ["--lead"], 0.5 if wire == "frames" else 0.1))

    def vi(self, test, size, count=6000):
        program = self.program("bin/vipperf")
        nic = self.hosts.provider + "0"
        out = self.both([program, "-s", "-1", "-d", nic],
                        [program, "-d", nic, "-t", test, "-b", size, "-n", PINGS if test == "send_lat" else count, "-j",
                         "-w", 5000, "hostb"], VIADUCT_VIPL_GIVE_WAY="off")
        row = json.loads(out)["tests"][0]["rows"][0]
        return row["t_typical_us"] * 1000 if "t_typical_us" in row else row["bw_average_mb_s"]

    def libfabric(self, provider, size):
        """Half a round trip in ns."""
        command = ["fi_pingpong", "-p", provider, "-e", "dgram" if provider == "udp" else "msg", "-S", size, "-I", 5000]
        out = self.both(command, command + [self.ip(1)])
        return float(out.split()[-2]) * 1000  # bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec

    def ucx(self, test, size, count=PINGS):
        """ns, or 10^6 bytes a second."""
        command = ["ucx_perftest", "-t", test, "-s", size, "-n", count, "-w", 200 if test == "tag_lat" else 5, "-f"]
        out = self.both(command, command + [self.ip(1)], UCX_TLS="tcp", UCX_NET_DEVICES="v0")
        words = out.splitlines()[-1].split()  # iterations, percentile, average, overall us; average, overall MB/s; average, overall messages/s
        return float(words[3]) * 1000 if test == "tag_lat" else float(words[5]) * 1.048576

    def udp_rows(self):
        rows = [("UDP sockets, %d B" % SMALL, "ns", None, lambda: self.limit("udp", "ping", SMALL)),
                ("VI send/receive over udp, %d B" % SMALL, "ns", 0, lambda: self.vi("send_lat", SMALL)),
                ("TCP sockets, %d B" % SMALL, "ns", 0, lambda: self.limit("tcp", "ping", SMALL))]
        if shutil.which("fi_pingpong"):
            rows += [("libfabric %s, %d B" % (name, SMALL), "ns", 0, lambda name=name: self.libfabric(name, SMALL))
                     for name in ("udp", "tcp")]
        if shutil.which("ucx_perftest"):
            rows.append(("UCX tcp, %d B" % SMALL, "ns", 0, lambda: self.ucx("tag_lat", SMALL)))
        for size in SIZES:
            first, count, named = len(rows), STREAM // size, size_text(size)
            rows += [("TCP sockets, %s" % named, "MB/s", None, lambda s=size, n=count: self.limit("tcp", "stream", s, n)),
                     ("VI send/receive over udp, %s" % named, "MB/s", first, lambda s=size, n=count: self.vi("send_bw", s, n)),
                     ("VI RDMA write over udp, %s" % named, "MB/s", first, lambda s=size, n=count: self.vi("write_bw", s, n))]
            if shutil.which("ucx_perftest"):
                rows.append(("UCX tcp, %s" % named, "MB/s", first, lambda s=size, n=count: self.ucx("tag_bw", s, n)))
        datagram = self.mtu - 28
        rows.append(("UDP sockets, a datagram of %d B each" % datagram, "MB/s", len(rows) - 1,
                     lambda: self.limit("udp", "stream", datagram, STREAM // datagram)))
        return rows

    def rows(self):
        """name, unit, which row it is compared with, how it is taken."""
        if self.over_frames == "udp":
            return self.udp_rows()
        payload = self.mtu
        rows = [("bare frames, %d B" % SMALL, "ns", None, lambda: self.limit("frames", "ping", SMALL)),
                ("VI send/receive, %d B" % SMALL, "ns", 0, lambda: self.vi("send_lat", SMALL))]
        if self.over_frames == "af_packet":
            rows += [("UDP, %d B" % SMALL, "ns", 0, lambda: self.limit("udp", "ping", SMALL)),
                     ("TCP, %d B" % SMALL, "ns", 0, lambda: self.limit("tcp", "ping", SMALL))]
        first = len(rows)
        rows += [("bare frames of MTU %d, payload copied" % self.mtu, "MB/s", None,
                  lambda: self.limit("frames", "stream", payload)),
                 ("VI send/receive, 64 KiB", "MB/s", first, lambda: self.vi("send_bw", LARGE)),
                 ("VI RDMA write, 64 KiB", "MB/s", first, lambda: self.vi("write_bw", LARGE))]
        if self.over_frames == "af_packet":
            rows += [("UDP, a datagram a frame", "MB/s", first, lambda: self.limit("udp", "stream", payload - 28)),
                     ("TCP, segments up to 64 KiB", "MB/s", first, lambda: self.limit("tcp", "stream", payload - 52))]
        return rows

    def distance(self):
        return subprocess.run([self.program("tests/bench/peers/viaduct_distance")], capture_output=True, text=True,
                              check=True).stdout.split()[0]


def taken_once(name, take):
    """The value and the processor time; None for both when it gave none, which is told."""
    before = processor_time()
    try:
        return take(), processor_time() - before
    except Failure as why:
        print("no figure of %s in this round: %s" % (name, why), file=sys.stderr)
        return None, None


def median(rounds, row, part):
    values = [values[row][part] for values in rounds if values[row][part] is not None]
    return statistics.median(values) if values else None


def measure(bench, rounds):
    rows = bench.rows()
    taken, dropped = {}, 0
    while sum(map(len, taken.values())) < rounds and dropped < 2 * rounds:
        before = bench.distance()
        values = [taken_once(name, take) for name, _, _, take in rows]
        if bench.distance() != before:
            dropped += 1
            continue
        taken.setdefault(before, []).append(values)
    return rows, taken, dropped


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")
    return "%s, %d processors, Linux %s" % (model, os.cpu_count(), platform.release())


def table(over, mtu, rows, taken, dropped):
    print("%s, MTU %d; %s; %s" % ("udp" if over == "udp" else "acenic over " + over, mtu, machine(), datetime.date.today().isoformat()))
    if dropped:
        print("%d rounds did not count: the distance of the processors changed" % dropped)
    for distance, rounds in sorted(taken.items()):
        streams = over == "udp"  # each of STREAM bytes
        print("\nMedians of %d rounds, %s processors\n\n| what | value | lowest to highest | to %s |%s\n| --- | ---: | ---: | ---: |%s" % (
            len(rounds), distance, "sockets" if streams else "bare frames", " processor time |" if streams else "", " ---: |" if streams else ""))
        for i, (name, unit, base, _) in enumerate(rows):
            value, against = median(rounds, i, 0), None if base is None else median(rounds, base, 0)
            if value is None:
                print("| %s | no figure | | |%s" % (name, " |" if streams else ""))
                continue
            every = [values[i][0] / 1000 for values in rounds if values[i][0] is not None]
            time = "" if not streams else " |" if unit == "ns" else " %.2f s/GB |" % (median(rounds, i, 1) / STREAM * 1e9)
            print("| %s | %.2f %s | %.2f to %.2f | %s |%s" % (name, value / 1000, "µs" if unit == "ns" else "GB/s", min(every), max(every),
                                                             "%.2f" % (value / against) if against else "", time))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--over", choices=("af_packet", "memif", "vhost", "udp"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mtu", type=int, help="unless given 9000, and 1500 as well over udp")
    options = parser.parse_args()
    if os.cpu_count() < 2:
        print("SKIPPED: two ends need two processors")
        return SKIPPED

    def work():
        for over in [options.over] if options.over else ["af_packet", "memif", "vhost"]:
            for mtu in [options.mtu] if options.mtu else [9000, 1500] if over == "udp" else [9000]:
                with kind_of(over)(mtu=mtu) as hosts:
                    bench = Bench(hosts, os.path.abspath(options.build), mtu)
                    table(over, mtu, *measure(bench, options.rounds))
                    print(flush=True)

    return outcome(work)


if __name__ == "__main__":
    sys.exit(main())
