#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py BUILD [--rounds N] [--sizes 8,4096] [--out peers.html]: the limits of this machine, this library and its peers (Open MPI,
MPICH, UCX, libfabric), one after the other and again, between two processors; one table of medians and one picture. The distance of
the processors is probed before and after each, and samples of different distances are never mixed."""
import argparse
import datetime
import html
import json
import math
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 60
TRIES = 3
OURS = {"send/receive, by queue": "VIPL send/receive", "send/receive, by CQ": "VIPL by CQ", "RDMA write": "VIPL RDMA write",
        "RDMA write, mapped": "VIPL RDMA write, mapped", "send/receive": "VIPL send/receive",
        "limit: put into the other's cache": "limit: put", "limit: shared ring, two copies": "limit: ring"}
KINDS = {"lat": "half a round trip, ns", "bw": "one way, GB/s", "coll2": "2 ranks, ns", "coll4": "4 ranks on both, ns"}
COLOURS = ["#555555", "#2f9e44", "#e8590c", "#5c7cfa", "#862e9c", "#7b8794", "#aab4bf", "#0b62c4", "#0f8a6d",
           "#d1480f", "#7a6a00", "#8a5bd1", "#b3238a", "#00798c", "#c17c00", "#444444"]


def output_of(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def both_ends(server, client, cpus, **more):
    """Starts the server, then the client until it is let in; the client's output."""
    behind = subprocess.Popen(["taskset", "-c", str(cpus[1]), *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    try:
        for attempt in range(20):
            time.sleep(0.05 * (attempt + 1))  # sleeps: the server comes up; no sign is common to all servers
            try:
                return output_of(["taskset", "-c", str(cpus[0]), *client], **more)
            except RuntimeError:
                if attempt == 19 or behind.poll() is not None:
                    raise
    finally:
        behind.terminate()
        behind.wait()


def iterations(size):
    return max(200, min(20000, 40_000_000 // (size + 2000)))


class Contender:
    """Gives {(kind, size): value}: "lat" in ns, half a round trip; "bw" in GB/s."""

    def __init__(self, name, take):
        self.name, self.take = name, take


def ours(build, cpus, sizes, folder):
    listed = ",".join(map(str, sizes))
    seen = json.loads(output_of([os.path.join(build, "bin/vipperf"), "--self", "--cpu", f"{cpus[0]},{cpus[1]}", "--json",
                                 "--rounds", "1", "-b", listed, "--report", os.path.join(folder, "ours.html")]))
    taken = []
    for series in seen["series"]:
        name = OURS.get(series["name"])
        if name is None:
            continue
        kind = "lat" if series["unit"] == "ns" else "bw"
        for point in series["points"]:
            taken.append((series["distance"], name, kind, point["bytes"], point["median"]))
    return taken


def mpi(program, launchers, sizes, environment):
    """Two ranks with every size, then four on the same two processors with collective operations only."""
    values = {}
    for launcher, arguments in zip(launchers, (sizes, ())):
        for line in output_of([*launcher, program, *map(str, arguments)], env=environment).splitlines():
            kind, size, ns = line.split()
            values[kind, int(size)] = int(size) / float(ns) if kind == "bw" else float(ns)
    return values


def ucx_rows(batch, folder, cpus, transports):
    path = os.path.join(folder, "ucx.batch")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(batch) + "\n")
    command = ["ucx_perftest", "-v", "-f", "-b", path, "-p", str(free_port())]
    environment = {**os.environ, "UCX_TLS": transports}
    rows = [line.split(",") for line in both_ends(command, [*command, "127.0.0.1"], cpus, env=environment).splitlines()[1:]]
    return [row for row in rows if len(row) >= 9]


def ucx_tag(sizes, folder, cpus):
    batch = [f"{kind}:{s} -t tag_{kind} -s {s} -n {iterations(s) * (4 if kind == 'bw' else 1)} -w 200" for s in sizes for kind in ("lat", "bw")]
    values = {}
    for row in ucx_rows(batch, folder, cpus, "posix,cma,self"):
        kind, size = row[0].split(":")
        values[kind, int(size)] = float(row[2]) * 1000 if kind == "lat" else float(row[8]) * int(size) / 1e9
    return values


def uct_am(sizes, folder, cpus):
    batch = [f"lat:{s} -t am_lat -d memory -x posix -D {'short' if s <= 64 else 'bcopy'} -s {s} -n {iterations(s)} -w 200"
             for s in sizes if s <= 8000]
    return {("lat", int(row[0].split(":")[1])): float(row[2]) * 1000 for row in ucx_rows(batch, folder, cpus, "posix,self")}


def libfabric(sizes, cpus):
    values = {}
    for size in sizes:
        command = ["fi_pingpong", "-p", "shm", "-e", "rdm", "-I", str(iterations(size) // 4), "-S", str(size)]
        port = str(free_port())
        lines = both_ends([*command, "-B", port], [*command, "-P", port, "127.0.0.1"], cpus).splitlines()
        values["lat", size] = float(lines[-1].split()[6]) * 1000
    return values


def mpi_contenders(build, folder, cpus, sizes):
    """Each MPI with its options, and this library below the program that MPICH compiled."""
    found, missing = [], []
    base = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    both = f"{cpus[0]},{cpus[1]}"
    over_ucx = ("--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "-x", "UCX_TLS=posix,cma,self")
    ours = {"LD_LIBRARY_PATH": os.path.abspath(os.path.join(build, "lib/cmpi/lib"))}
    sets = {"openmpi": (("Open MPI", (), {}), ("Open MPI, no CMA", ("--mca", "btl_vader_single_copy_mechanism", "none"), {}),
                        ("Open MPI over UCX", over_ucx, {})),
            "mpich": (("MPICH", (), {}), *((f"Viaduct MPI over {p}", (), {**ours, "CMPI_PROTOCOL": p}) for p in ("via", "shm")))}
    for flavour, members in sets.items():
        compiler, launch = f"mpicc.{flavour}", f"mpirun.{flavour}"
        if not shutil.which(compiler) or not shutil.which(launch):
            missing.append(flavour)
            continue
        program = os.path.join(folder, f"peer_{flavour}")
        output_of([compiler, "-O2", "-w", "-o", program, os.path.join(HERE, "mpi_peer.c")])
        bind, crowd = ((["--bind-to", "core", "--cpu-set", both], ["--oversubscribe", "--bind-to", "none"]) if flavour == "openmpi" else
                       (["-bind-to", f"user:{both}"], []))
        for name, options, environment in members:
            launchers = [[launch, "-np", "2", *bind, *options], ["taskset", "-c", both, launch, "-np", "4", *crowd, *options]]
            found.append(Contender(name, lambda p=program, l=launchers, e=environment: mpi(p, l, sizes, {**base, **e})))
    return found, missing


def peers(build, folder, cpus, sizes):
    """Those that are installed, and why the others are left out."""
    found, missing = mpi_contenders(build, folder, cpus, sizes)
    crowd = ["taskset", "-c", f"{cpus[0]},{cpus[1]}", os.path.join(build, "tests/bench/peers/viaduct_crowd_limit"), "4"]
    found.append(Contender("limit: flags", lambda: {("coll4", 0): float(output_of(crowd).split()[2])}))
    if shutil.which("ucx_perftest"):
        found.append(Contender("UCX tag", lambda: ucx_tag(sizes, folder, cpus)))
        found.append(Contender("UCT am, posix", lambda: uct_am(sizes, folder, cpus)))
    else:
        missing.append("UCX")
    if shutil.which("fi_pingpong"):
        found.append(Contender("libfabric shm", lambda: libfabric(sizes, cpus)))
    else:
        missing.append("libfabric")
    return found, missing


def column_text(kind, size):
    return {0: "barrier", 8: "allreduce 8 B"}[size] if kind.startswith("coll") else size_text(size)


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 else f"{size} B"


def table(samples, distance, kind, sizes):
    """Lines of one table; each figure with its multiple of the limit, or where there is none of ours."""
    names = []
    for where, name, what, _ in samples:
        if where == distance and what == kind and name not in names:
            names.append(name)
    names.sort(key=lambda n: (not n.startswith("limit: put"), not n.startswith("limit"), not n.startswith("VIPL"), not n.startswith("Viaduct")))
    limit = {"lat": "limit: put", "bw": "limit: ring"}.get(kind, "Viaduct MPI over via")
    lines = [f"{'':<26}" + "".join(f"{column_text(kind, s):>20}" for s in sizes)]
    for name in names:
        line = f"{name:<26}"
        for size in sizes:
            mine, best = samples.get((distance, name, kind, size)), samples.get((distance, limit, kind, size))
            if not mine:
                line += f"{'':>20}"
                continue
            value = statistics.median(mine)
            ratio = f"{value / statistics.median(best):.2f}x" if best and name != limit else ""
            line += f"{value:>11.{0 if value >= 1000 else 1 if value >= 10 else 2}f}{ratio:>9}"
        lines.append(line)
    return lines, names


def chart(samples, distance, kind, sizes, names):
    width, height, left, top, plot = 900, 420, 70, 16, 590
    points = {n: [(s, statistics.median(samples[distance, n, kind, s])) for s in sizes if samples.get((distance, n, kind, s))] for n in names}
    values = [v for line in points.values() for _, v in line]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.01))
    span = max(math.log2(sizes[-1] / sizes[0]), 1)

    def x(size):
        return left + math.log2(size / sizes[0]) / span * plot

    def y(value):
        return top + (1 - (math.log10(value) - low) / max(high - low, 1)) * (height - top - 40)

    out = [f'<svg viewBox="0 0 {width} {height}" font-family="system-ui,sans-serif" font-size="12">']
    for power in range(low, high + 1):
        out.append(f'<line x1="{left}" x2="{left + plot}" y1="{y(10 ** power):.1f}" y2="{y(10 ** power):.1f}" stroke="#8884"/>'
                   f'<text x="{left - 6}" y="{y(10 ** power) + 4:.1f}" text-anchor="end" fill="currentColor">{10.0 ** power:g}</text>')
    for size in sizes:
        out.append(f'<text x="{x(size):.1f}" y="{height - 16}" text-anchor="middle" fill="currentColor">{size_text(size)}</text>')
    last = 0
    for colour, name in sorted(zip(COLOURS, names), key=lambda pair: y(points[pair[1]][-1][1])):
        line = points[name]
        dash = ' stroke-dasharray="5 4"' if name.startswith("limit") else ""
        wide = 2.6 if name.startswith(("VIPL", "Viaduct")) else 1.6
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{wide}"{dash} points="'
                   + " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in line) + '"/>')
        last = max(last + 15, y(line[-1][1]) + 4)
        out.append(f'<text x="{left + plot + 14}" y="{last:.1f}" fill="{colour}">{html.escape(name)}</text>')
    return "\n".join(out) + "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="8,64,256,1024,4096,16384,65536,262144,1048576,4194304")
    parser.add_argument("--out", default="peers.html")
    options = parser.parse_args()
    sizes = sorted(int(s) for s in options.sizes.split(","))
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("only one processor is allowed here: there is no distance between two to measure")
    os.environ.setdefault("VIADUCT_AGENT", f"@viaduct-peers-{os.getpid()}")
    distance = lambda: output_of([os.path.join(options.build, "tests/bench/peers/viaduct_distance")]).split()[0]
    samples, failed = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        contenders, missing = peers(options.build, folder, cpus, sizes)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            for where, name, kind, size, value in ours(options.build, cpus, sizes, folder):
                samples.setdefault((where, name, kind, size), []).append(value)
            for contender in contenders:
                try:
                    for attempt in range(TRIES):
                        before = distance()
                        values = contender.take()
                        if distance() == before:
                            break
                    else:
                        raise RuntimeError(f"the distance of the processors changed meanwhile, {TRIES} times")
                    for (kind, size), value in values.items():
                        samples.setdefault((before, contender.name, kind, size), []).append(value)
                except (RuntimeError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
                    failed[contender.name] = str(error)
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    heading = f"{model}, Linux {platform.release()}, processors {cpus[0]} and {cpus[1]}, {options.rounds} rounds, {date}"
    page = [f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Peers</title><style>:root{{color-scheme:light dark}}"
            f"body{{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}}pre{{font-size:12px;overflow-x:auto}}"
            f"</style><h1>The default NIC among its peers</h1><p>{html.escape(heading)}</p>"]
    print(heading)
    for where in ("near", "far", "remote"):
        for kind, title in KINDS.items():
            if not any(k[0] == where and k[2] == kind for k in samples):
                continue
            if kind.startswith("coll"):
                lines, _ = table(samples, where, kind, (0, 8))
                print(f"\n{where} processors, {title}\n" + "\n".join(lines))
                page.append(f"<h2>{where} processors: {title}</h2><pre>" + html.escape("\n".join(lines)) + "</pre>")
                continue
            lines, names = table(samples, where, kind, sizes)
            print(f"\n{where} processors, {title}\n" + "\n".join(lines))
            page.append(f"<h2>{where} processors: {title}</h2>{chart(samples, where, kind, sizes, names)}<pre>"
                        + html.escape("\n".join(lines)) + "</pre>")
    for name in missing:
        print(f"left out: {name} is not installed")
    for name, why in failed.items():
        print(f"failed: {name}: {why}")
    with open(options.out, "w", encoding="utf-8") as file:
        file.write("\n".join(page) + "</html>\n")
    print(f"\npicture: {options.out}")


if __name__ == "__main__":
    main()
