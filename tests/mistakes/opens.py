#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A NIC that cannot be opened: each row plants one cause, and the library names that one, and a cure, in VipxLastError, in what
VIADUCT_WHY=1 writes, in the log and in what vipinfo --doctor says.

    opens.py --program opens --vipinfo vipinfo --providers FOLDER [--only NAME,...]

It runs in a network namespace of its own."""
import argparse
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

LIMIT = 30
SKIPPED = 77
INSIDE = "VIADUCT_TEST_INSIDE"
# Words of causes that these rows do not plant.
OTHER_CAUSES = ("memfd", "random numbers", "ulimit -a", "errno ")


class Row:
    """`nic` is opened under `settings`; `said` must be in each text. `program`: options of opens; `under`: a command before it.
    `doctor`: False where the cause is only in the program's own process; `log`: False where no provider has a part in it.
    `allows`: of OTHER_CAUSES, what the row may name."""

    def __init__(self, name, nic, said, program=(), under=(), doctor=True, log=True, allows=(), **settings):
        self.name, self.nic, self.said, self.program, self.under = name, nic, said, list(program), list(under)
        self.doctor, self.log, self.allows, self.settings = doctor, log, allows, settings


class Failure(Exception):
    pass


class Surroundings:
    """Folder and environment of the rows, with an agent for each."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def environment(self, row, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VIADUCT_") or name == "VIADUCT_TIME_FACTOR"}
        agent = "@viaduct-test-%s-%s" % (os.path.basename(self.folder), row.name)
        return {**kept, "VIADUCT_AGENT": agent, **{key: value.replace("FOLDER", self.folder) for key, value in row.settings.items()}, **more}

    def run(self, row, command, **variables):
        return eventually.run(row.under + command, LIMIT, stdin=subprocess.DEVNULL, env=self.environment(row, **variables))

    def opens(self, row, **variables):
        return self.run(row, [self.options.program, *row.program, row.nic], **variables)

    @contextlib.contextmanager
    def held(self, row):
        """A process that has the NIC open."""
        with subprocess.Popen([self.options.program, "--hold", row.nic], env=self.environment(row), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            line = process.stdout.readline()
            if "VIP_SUCCESS" not in line:
                raise Failure("the other process does not open %s: %s" % (row.nic, line))
            yield
            process.stdin.close()

    def file(self, name, text, mode):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, mode)


def expect(row, where, text):
    missing = [words for words in row.said if words not in text]
    false = [words for words in OTHER_CAUSES if words in text and words not in row.allows]
    if missing or false:
        raise Failure("%s: %s lacks %s, or names %s:\n%s" % (row.name, where, missing, false, text))


def check(surroundings, row):
    result = surroundings.opens(row, VIADUCT_WHY="1")
    if result.returncode != 1:
        raise Failure("%s: exit status %s\n%s%s" % (row.name, result.returncode, result.stdout, result.stderr))
    expect(row, "VipxLastError", result.stdout.splitlines()[-1])
    if "; cure: " not in result.stdout:
        raise Failure("%s: no cure in\n%s" % (row.name, result.stdout))
    expect(row, "VIADUCT_WHY=1", result.stderr)
    expect(row, "the log", surroundings.opens(row, VIADUCT_LOG="error" if row.log else "warn").stderr)
    if row.doctor:
        told = surroundings.run(row, [surroundings.options.vipinfo, "--doctor", row.nic])
        if told.returncode != 1:
            raise Failure("%s: the doctor ends with status %d" % (row.name, told.returncode))
        told = [line for line in re.split(r"\n(?=\S)", told.stdout) if re.match(r"\S+ +message ", line)]
        expect(row, "vipinfo --doctor", "\n".join(told))


NO_PACKETS = ("no packet socket can be had: Operation not permitted", "give the process CAP_NET_RAW")
ACENIC = {"VIADUCT_ACENIC_PORTS": "net_af_packet,iface=v0"}
EXCLUSIVE = {**ACENIC, "VIADUCT_ACENIC_MODE": "exclusive"}
UDP = {"VIADUCT_UDP_INTERFACES": "127.0.0.1"}
WITHOUT_RAW = ("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw")
LOCKED = ("setpriv", "--bounding-set=-ipc_lock,-sys_resource", "--inh-caps=-ipc_lock,-sys_resource", "prlimit", "--memlock=65536")

NEEDS_DESCRIPTORS = "files"
ROWS = [
    Row("no_net_raw", "acenic0", NO_PACKETS, under=WITHOUT_RAW, **EXCLUSIVE),
    Row("no_net_raw_shared", "acenic0", NO_PACKETS, under=WITHOUT_RAW, VIADUCT_ACENIC_MODE="shared", VIADUCT_ACENIC_PORTS="net_af_packet,iface=v1"),
    Row("locked_memory", "acenic0", ("KiB of locked memory: Resource temporarily unavailable", "ulimit -l"), under=LOCKED, **EXCLUSIVE),
    Row("port_busy", "acenic0", ("net_af_packet,iface=v0 is in use by another process", 'share it (acenic.mode = "shared"'), **EXCLUSIVE),
    Row("key_missing", "acenic0", ("acenic.auth_key_file FOLDER/none cannot be read: No such file or directory", "32 hexadecimal digits"),
        VIADUCT_ACENIC_AUTH_KEY_FILE="FOLDER/none", **ACENIC),
    Row("udp_key_missing", "udp0", ("udp.auth_key_file FOLDER/none cannot be read: No such file or directory", "32 hexadecimal digits"),
        VIADUCT_UDP_AUTH_KEY_FILE="FOLDER/none", **UDP),
    Row("udp_key_open", "udp0", ("udp.auth_key_file FOLDER/open can be read or written by others", "chmod 600"),
        VIADUCT_UDP_AUTH_KEY_FILE="FOLDER/open", **UDP),
    Row("udp_key_empty", "udp0", ("udp.auth_key_file FOLDER/empty has no key in it", "32 hexadecimal digits"),
        VIADUCT_UDP_AUTH_KEY_FILE="FOLDER/empty", **UDP),
    Row("mode", "acenic0", ("acenic.auth_key_file is set, and acenic.mode is shared", "set acenic.mode to exclusive or auto"),
        VIADUCT_ACENIC_MODE="shared", VIADUCT_ACENIC_AUTH_KEY_FILE="FOLDER/open", **ACENIC),
    Row("interface", "acenic0", ("provider acenic offers no NIC acenic0", "there is no Ethernet interface eth9 in this network namespace"),
        log=False, VIADUCT_ACENIC_PORTS="net_af_packet,iface=eth9"),
    Row("udp_interface", "udp:eth9", ("provider udp offers no NIC udp:eth9: there is no interface eth9 with an IPv4 address",),
        log=False, VIADUCT_UDP_INTERFACES="eth9"),
    Row("memif_folder", "acenic0", ("the folder of the socket FOLDER/none/pair cannot be used: No such file or directory", "make the folder"),
        VIADUCT_ACENIC_PORTS="net_memif,socket=FOLDER/none/pair,role=server", VIADUCT_ACENIC_MODE="exclusive"),
    Row("no_dpdk", "acenic0", ("provider acenic of NIC 'acenic0'", "librte_e"), log=False,
        LD_LIBRARY_PATH="FOLDER/dpdk", **ACENIC),
    Row("verbs", "verbs0", ("provider verbs offers no NIC verbs0",), log=False),
    Row("udp_port", "udp0", ("UDP port 127.0.0.1:4792 cannot be had: Address already in use", "set udp.port to another port"), ["--wait"],
        doctor=False, **UDP),
    Row("setting", "paramnet0", ("provider paramnet offers no NIC paramnet0", "paramnet.switches = 99 is no number of switches"), log=False,
        VIADUCT_PARAMNET_SWITCHES="99"),
    Row("dpdk_memory", "acenic0", ("DPDK does not start: Cannot allocate memory", "ulimit -v"),
        ["--first", "paramnet0", "--memory", str(250 << 20)], doctor=False, **EXCLUSIVE),
    Row("files", "udp0", ("Too many open files", "ulimit -n"), ["--first", "paramnet0", "--files", "2"], doctor=False,
        allows=("memfd", "ulimit -a"), log=False, **UDP),
    Row("memory_files", "paramnet0", ("no shared memory (memfd) for the table of memory regions: File too large",),
        ["--first", "paramnet0", "--file-bytes", "0"], doctor=False, log=False, allows=("memfd", "ulimit -a")),
]


@contextlib.contextmanager
def planted(surroundings, row):
    """Makes the process or the socket that some rows need besides their settings."""
    row.said = [words.replace("FOLDER", surroundings.folder) for words in row.said]
    with contextlib.ExitStack() as stack:
        if row.name == "port_busy":
            stack.enter_context(surroundings.held(row))
        if row.name == "udp_port":
            taken = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            taken.bind(("127.0.0.1", 4792))
        yield


def huge_pages_are_not_needed(surroundings):
    """DPDK takes ordinary memory: where the machine has no huge page, the port opens."""
    row = Row("huge_pages", "acenic0", (), **EXCLUSIVE)
    with open("/proc/sys/vm/nr_hugepages", encoding="ascii") as file:
        pages = int(file.read())
    result = surroundings.opens(row)
    if result.returncode != 0:
        raise Failure("with %d huge pages: %s%s" % (pages, result.stdout, result.stderr))
    print("opens with %d huge pages" % pages, flush=True)


def make(surroundings):
    for words in (("link", "set", "lo", "up"), ("link", "add", "v0", "type", "veth", "peer", "name", "v1"),
                  ("link", "set", "v0", "up"), ("link", "set", "v1", "up")):
        subprocess.run(["ip", *words], check=True)
    surroundings.file("open", "0123456789abcdef0123456789abcdef\n", 0o644)
    surroundings.file("empty", "\n", 0o600)
    os.mkdir(os.path.join(surroundings.folder, "dpdk"))
    needed = subprocess.run(["ldd", os.path.join(surroundings.options.providers, "acenic.so")], capture_output=True, text=True,
                            check=False).stdout
    for name in re.findall(r"librte_e\S+(?= =>)", needed):
        surroundings.file(os.path.join("dpdk", name), "", 0o644)


def run_rows(options):
    failed = []
    with tempfile.TemporaryDirectory(prefix="opens-") as folder:
        os.chmod(folder, 0o755)
        surroundings = Surroundings(options, folder)
        make(surroundings)
        has_acenic = os.path.exists(os.path.join(options.providers, "acenic.so"))
        if options.sanitized:
            print("%-18s SKIPPED: a sanitizer opens a pipe to check the type of an object" % NEEDS_DESCRIPTORS, flush=True)
        rows = [row for row in ROWS if not (options.sanitized and row.name == NEEDS_DESCRIPTORS)]
        rows = [row for row in rows if (not options.only or row.name in options.only.split(",")) and (has_acenic or row.nic != "acenic0")]
        for row in rows:
            try:
                with planted(surroundings, row):
                    check(surroundings, row)
                print("%-18s named" % row.name, flush=True)
            except (Failure, eventually.Late) as why:
                print(why, flush=True)
                failed.append(row.name)
        if has_acenic and not options.only:
            huge_pages_are_not_needed(surroundings)
    print("%d causes, %d not named%s" % (len(rows), len(failed), ": " + ", ".join(failed) if failed else ""))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--vipinfo", required=True)
    parser.add_argument("--providers", required=True, help="folder of acenic.so")
    parser.add_argument("--only", help="names of rows")
    parser.add_argument("--sanitized", action="store_true", help="the program is built with a sanitizer")
    options = parser.parse_args()
    if os.environ.get(INSIDE):
        return run_rows(options)
    inside = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    if not all(map(shutil.which, ("ip", "setpriv", "prlimit"))) or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        print("SKIPPED: needs a network namespace, ip, setpriv and prlimit")
        return SKIPPED
    return subprocess.run([*inside, sys.executable, *sys.argv], env={**os.environ, INSIDE: "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
