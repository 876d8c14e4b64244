#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/tutorial.md as a newcomer uses it: its sources are compiled against the installed tree, what it says to run is run, and
what it says that comes out comes out. Where two network namespaces can be made, the program also runs between two "hosts".
usage: tutorial.py SOURCE_FOLDER BUILD_FOLDER"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402
import temporary  # noqa: E402

BLOCK = re.compile(r"(?:<!-- (?P<mark>[a-z, ]+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


def blocks(page):
    with open(page, encoding="utf-8") as file:
        return [match.groupdict() for match in BLOCK.finditer(file.read())]


def fail(text):
    print(f"docs.tutorial: {text}", file=sys.stderr)
    sys.exit(1)


def run(command, folder, environment, seconds=120):
    done = eventually.run(["bash", "-eu", "-c", command], seconds, cwd=folder, env=environment, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        fail(f"status {done.returncode} of\n{command}\n{done.stdout}")
    return done.stdout


def main():
    source, build = (os.path.abspath(path) for path in sys.argv[1:3])
    found = blocks(os.path.join(source, "docs", "tutorial.md"))
    with tempfile.TemporaryDirectory(dir=temporary.for_programs()) as folder:
        prefix = os.path.join(folder, "prefix")
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], stdout=subprocess.DEVNULL, check=True)
        libdir = os.path.dirname(os.path.dirname(subprocess.run(
            ["find", prefix, "-name", "vipl.pc"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()))
        environment = dict(os.environ, LD_LIBRARY_PATH=libdir, PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"),
                           PATH=os.path.join(prefix, "bin") + ":" + os.environ["PATH"])
        sources = 0
        printed = None
        checked = 0
        for block in found:
            if block["kind"] == "c":
                name = re.match(r"/\* (\S+\.c) \*/", block["text"])
                if name is None:
                    fail("a block of C does not begin with the name of its file")
                with open(os.path.join(folder, name.group(1)), "w", encoding="utf-8") as file:
                    file.write(block["text"])
                # The newcomer's compiler warns of nothing.
                run(f"cc -Wall -Wextra -Werror -c {name.group(1)} -o /dev/null $(pkg-config --cflags vipl)", folder, environment)
                sources += 1
            elif block["mark"] == "run":
                printed = run(block["text"], folder, environment)
            elif block["mark"] is not None and block["mark"].startswith("output"):
                if printed is None or sorted(printed.splitlines()) != sorted(block["text"].splitlines()):
                    fail(f"the page says\n{block['text']}\nand what came is\n{printed}")
                checked += 1
        if sources == 0 or checked == 0:
            fail("the page has no source, or nothing that it says comes out")
        two_hosts(folder, environment)


def two_hosts(folder, environment):
    """As the page's last section says, with network namespaces as hosts."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        print("docs.tutorial: the part with two hosts is SKIPPED: it needs root and ip")
        return
    names = [f"tut{os.getpid()}{side}" for side in "ab"]
    try:
        for name in names:
            if subprocess.run(["ip", "netns", "add", name], check=False).returncode != 0:
                print("docs.tutorial: the part with two hosts is SKIPPED: no network namespaces here")
                return
        subprocess.run(["ip", "link", "add", "eth1", "netns", names[0], "type", "veth", "peer", "name", "eth1", "netns",
                        names[1]], check=True)
        with open(os.path.join(folder, "vip_hosts"), "w", encoding="utf-8") as hosts:
            for name in names:
                subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], stderr=subprocess.DEVNULL, check=True)
                subprocess.run(["ip", "-n", name, "link", "set", "eth1", "up"], stderr=subprocess.DEVNULL,
                               check=True)
                link = subprocess.run(["ip", "-n", name, "link", "show", "eth1"], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True, check=True).stdout
                address = re.search(r"link/ether (\S+)", link).group(1)
                hosts.write(f"{address} {name}\n")
        host = dict(environment, VIADUCT_ACENIC_PORTS="net_af_packet,iface=eth1", GREET_DEVICE="acenic0",
                    VIADUCT_HOSTS=os.path.join(folder, "vip_hosts"))
        host.pop("VIADUCT_AGENT", None)  # each host has an agent of its own
        said = run(f"ip netns exec {names[1]} ./greet wait & ip netns exec {names[0]} ./greet call {names[1]}; wait",
                   folder, host)
        if "wait: written by RDMA" not in said:
            fail(f"between two hosts came\n{said}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    main()
