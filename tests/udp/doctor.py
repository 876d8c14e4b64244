#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipping --doctor between two hosts, with one fault at a time: it names that one, with a cure, and no other problem that is none.
vipinfo --doctor of another host does the same.

    doctor.py --vipping PROGRAM --vipinfo PROGRAM [--user UID] [--only NAME,...] [--all]
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "acenic"))
from hosts import Failure, UdpNamespaces, end, outcome, run, udp_address, without_privileges  # noqa: E402

from eventually import Late, communicated  # noqa: E402

LIMIT = 60
AT_ONCE = 4  # examinations, each between hosts of its own: most of their time they wait for packets that do not come
ANSWERS_WITHIN = 3  # seconds, under a flood
FAKE = r"""
import json, socket, sys, threading, time
RAW = {"nonsense": b"\x00\xff{]\n", "endless": b"{" * 300000,
       "numbers": b'{"mtu": -5, "udp_port": 1e99, "nics": [3, {"ip": 7}], "host": []}\n'}
def requests(version):
    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port.bind(("", 4792))
    while True:
        asked, where = port.recvfrom(2000)
        port.sendto(bytes([0, 1, version, asked[0], 0, 0, 0, 0]) + asked[:64], where)
if len(sys.argv) > 3:
    threading.Thread(target=requests, args=[int(sys.argv[3])], daemon=True).start()
listener = socket.create_server(("", 4792))
print("answering", flush=True)
while True:
    connection, _ = listener.accept()
    for line in connection.makefile():
        asked = json.loads(line)
        if sys.argv[1] in RAW:
            connection.sendall(RAW[sys.argv[1]])
            break
        said = json.loads(sys.argv[1]) if asked.get("do") == "report" else {"error": "no"}
        said.setdefault("clock_us", int(time.time() * 1e6) + int(sys.argv[2]))
        connection.sendall((json.dumps(said) + "\n").encode())
"""

# A client that fills a socket of the end that answers for as long as it lives, and asks what has come.
FLOOD = r"""
import json, os, signal, socket, struct, sys, time
talk = socket.create_connection(("127.0.0.1", 4792), 10)
answers = talk.makefile()
def ask(**question):
    talk.sendall((json.dumps(question) + "\n").encode())
    return json.loads(answers.readline())
port = ask(do="open")["ports"][0]
head = struct.pack("<QIIII", 0x564950444F435431, 1, 0, 16384, 0)
datagram = head + bytes((at * 11 + 5) & 255 for at in range(len(head), 16384))
senders, parent = [], os.getpid()
for _ in range(3):
    senders.append(os.fork())
    if senders[-1] == 0:
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        out.setsockopt(socket.IPPROTO_UDP, 103, len(datagram))  # UDP_SEGMENT: they come faster than they are read
        while os.getppid() == parent:
            out.sendto(datagram * 3, ("127.0.0.1", port))
        os._exit(0)
try:
    time.sleep(0.3)  # sleeps: the socket fills
    print("asks", flush=True)
    talk.settimeout(60)
    print(json.dumps(ask(do="count", socket=0, series=1, count=10, bytes=16384, wait_ms=100)))
except OSError as error:
    print("no answer:", error)
finally:
    for sender in senders:
        os.kill(sender, signal.SIGKILL)
"""


class Joined(UdpNamespaces):
    """Two hosts with a cable between them that has faults."""

    def __init__(self, rules=(), mtu=(1500, 1500)):
        super().__init__(2, 1, mtu[0])
        self.mtus = mtu
        self.rules = rules
        self.cable = None
        self.settings_of = [{}, {}]
        self.address_there = self.ip(1, 0)

    def make_links(self):
        middle = self.names[0][:-1] + "m"
        for name in [*self.names, middle]:
            run("ip", "netns", "add", name)
            self.made.append(name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "netns", "exec", name, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true")
        for host, name in enumerate(self.names):
            run("ip", "link", "add", "v0", "netns", name, "type", "veth", "peer", "name", "e%d" % host, "netns", middle)
            run("ip", "-n", middle, "link", "set", "e%d" % host, "mtu", str(self.mtus[host]), "up")
            run("ip", "-n", name, "link", "set", "v0", "mtu", str(self.mtus[host]), "up")
            run("ip", "-n", name, "address", "add", self.ip(host, 0) + "/24", "dev", "v0")
            subprocess.run(["ip", "netns", "exec", name, sys.executable, "-c",
                            "import sys; sys.path.insert(0, %r); from wire import without_offloads; without_offloads('v0')" % HERE],
                           check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.cable = subprocess.Popen(["ip", "netns", "exec", middle, sys.executable, os.path.join(HERE, "wire.py"), "e0", "e1", *self.rules],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.cable.stdout.readline() != "joined\n":
            raise Failure("the cable is not there")

    def remove(self):
        if self.cable:
            self.cable.stdin.close()
            self.cable.wait()
            self.cable.stdout.close()
        super().remove()

    def address(self, host, port):
        return udp_address(self.address_there if host == 1 else self.ip(host, port))

    def environment(self, host):
        return {**super().environment(host), **self.settings_of[host]}


def key_file(hosts, host, digits, mode):
    path = os.path.join(hosts.folder, "key-%d" % host)
    with open(path, "w", encoding="ascii") as file:
        file.write(digits + "\n")
    os.chmod(path, mode)
    return path


def wait_for(process, text):
    for line in process.stdout:
        if text in line:
            return
    raise Failure("the other end does not answer: %s" % process.stderr.read())


class Case:
    """name: of the finding. rules: of the cable. prepare(hosts): what else is wrong; it may return processes. also: findings that follow."""

    def __init__(self, name, rules=(), prepare=None, mtu=(1500, 1500), also=(), server=True, healthy=False, host="hostb", title=None, fake=None):
        self.name, self.rules, self.prepare, self.mtu, self.also = name, rules, prepare, mtu, also
        self.server, self.healthy, self.host, self.title, self.fake = server, healthy, host, title or name or "nothing", fake


def setting(host, **values):
    def prepare(hosts):
        hosts.settings_of[host].update({"VIADUCT_" + key: value for key, value in values.items()})
    return prepare


def keys(own, theirs, mode=0o600):
    def prepare(hosts):
        for host, digits in enumerate((own, theirs)):
            if digits:
                hosts.settings_of[host]["VIADUCT_UDP_AUTH_KEY_FILE"] = key_file(hosts, host, digits, mode if host == 1 else 0o600)
    return prepare


def take_port(hosts):
    program = "import signal, socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('10.77.0.2', 4792))\nprint('taken', flush=True)\nsignal.pause()"
    process = hosts.start(1, sys.executable, "-c", program)
    wait_for(process, "taken")
    return [process]


def other_address(address):
    def prepare(hosts):
        hosts.address_there = address
        hosts.write_names((hosts.address(host, 0), "host" + "ab"[host]) for host in range(2))
    return prepare


def take_route_away(hosts):
    other_address("10.99.0.1")(hosts)


def loopback_down(hosts):
    run("ip", "-n", hosts.names[1], "link", "set", "lo", "down")


def known_as_localhost(hosts):
    hosts.write_names([(hosts.address(1, 0), "localhost")])


# What an end says of itself that has a NIC of udp.
WELL = {"version": "0.1.0", "sees_you_at": "10.77.0.1", "is_at": "10.77.0.2", "udp_port": 4792, "default_provider": "udp", "mtu": 1500,
        "nics": [{"name": "udp0", "provider": "udp", "ip": "10.77.0.2", "mtu": 1500, "up": True}]}

FAULTS = [
    Case(None, healthy=True),
    Case("name-unknown", host="hostc", server=False),
    Case("name-is-here", prepare=other_address("10.77.0.1"), server=False),
    Case("no-route", prepare=take_route_away, server=False, also=("name-unknown",)),
    Case("no-machine", prepare=other_address("10.77.0.9"), server=False),
    Case("no-other-end", server=False),
    Case("silence", rules=["silent"]),
    Case("requests-filtered", rules=["drop-port-there=4792"]),
    Case("blocked-there", rules=["drop-udp-there"]),
    Case("blocked-here", rules=["drop-udp-here"]),
    Case("loss-there", rules=["lose-there=5"]),
    Case("loss-here", rules=["lose-here=5"]),
    Case("mtu-there", rules=["mtu-there=1400"]),
    Case("mtu-here", rules=["mtu-here=1300"]),
    Case("mtu-differs", mtu=(1400, 1500), healthy=True),
    Case("address-twice", rules=["twin"], also=("silence",)),
    Case("translated", rules=["translate"], also=("blocked-here", "no-nic-there", "messages", "address-twice")),
    Case("ports-differ", prepare=setting(1, UDP_PORT="4793"), also=("messages",)),
    Case("no-nic-there", prepare=setting(1, UDP_INTERFACES=""), also=("fault",), title="no NIC is configured there"),
    Case("no-nic-there", prepare=loopback_down, also=("fault", "nic-rejected"), title="the loopback interface is down there"),
    Case("providers-differ", prepare=setting(1, NAMES_DEFAULT_PROVIDER="paramnet"), healthy=True),
    Case("key-missing", prepare=keys("0123456789abcdef" * 2, None), also=("messages",)),
    Case("keys-differ", prepare=keys("0123456789abcdef" * 2, "fedcba9876543210" * 2)),
    Case("fault", prepare=keys("0123456789abcdef" * 2, "0123456789abcdef" * 2, 0o644), also=("messages", "requests-unserved", "keys-differ"),
         title="a key file that others can read"),
    Case("fault", prepare=setting(1, UDP_PROT="1"), title="a setting that does not exist"),
    Case("names-differ", host="localhost", prepare=known_as_localhost, healthy=True),
    Case("unreachable", rules=["refuse"], server=False),
    Case("no-nic-here", host="10.77.0.2", prepare=setting(0, UDP_INTERFACES="")),
    Case("nic-rejected", prepare=setting(1, UDP_INTERFACES="v0;v7"), healthy=True),
    Case("agent", prepare=setting(1, AGENT="/nonexistent/agent"), also=("fault", "no-nic-there")),
    Case("requests-filtered-here", rules=["drop-port-here=4792"]),
    Case("requests-unserved", fake=(WELL, 0), server=False, also=("conversation-ended",)),
    Case("version-differs", fake=(WELL, 0, 9), server=False, also=("conversation-ended",)),
    Case("providers-differ", fake=({**WELL, "far_provider": "acenic"}, 0, 2), server=False, also=("conversation-ended",), title="far providers differ"),
    Case("damage-there", rules=["damage-there=10"], also=("loss-there", "messages")),
    Case("damage-here", rules=["damage-here=10"], also=("loss-here", "messages")),
    Case("duplicates-there", rules=["twice-there=10"], healthy=True),
    Case("duplicates-here", rules=["twice-here=10"], healthy=True),
    Case("request-port-taken", prepare=take_port, also=("fault", "messages")),
    Case("clock", fake=({"version": "0.1.0"}, 3600_000_000), server=False, also=("release-differs", "no-nic-there", "conversation-ended", "ports-differ",
                                                                                 "translated", "providers-differ")),
    Case("release-differs", fake=({"version": "9.9.9"}, 0), server=False, also=("no-nic-there", "conversation-ended", "ports-differ", "translated",
                                                                               "providers-differ")),
]
FAULTS += [Case("conversation-ended", fake=(said, 0), server=False, also=("no-nic-there", "ports-differ", "translated", "address-twice"),
                title="another program answers: " + said) for said in ("nonsense", "endless", "numbers")]
# With --all alone: they wait for a network that says nothing, or show the other direction of what another one shows.
MORE = {"silence", "no-machine", "mtu-here", "loss-here", "keys-differ", "blocked-here", "name-is-here", "release-differs", "mtu-differs",
        "providers-differ", "damage-here", "duplicates-there", "duplicates-here", "names-differ", "no-nic-here", "nic-rejected", "requests-unserved",
        "agent", "damage-there", "unreachable"}

# Looked for by both tools in any case.
BY_BOTH = {None, "name-unknown", "ports-differ"}
# They take longest, and so begin first.
LONG = {"ports-differ", "key-missing", "request-port-taken"}


def examine(case, vipping, tool):
    with Joined(case.rules, case.mtu) as hosts:
        others = case.prepare(hosts) or [] if case.prepare else []
        try:
            if case.server:
                others.append(hosts.start(1, vipping, "--server", "--doctor"))
                wait_for(others[-1], "answering vipping --doctor")
            if case.fake:
                others.append(hosts.start(1, sys.executable, "-c", FAKE, case.fake[0] if isinstance(case.fake[0], str) else json.dumps(case.fake[0]), *map(str, case.fake[1:])))
                wait_for(others[-1], "answering")
            for process in others:
                threading.Thread(target=process.stdout.read, daemon=True).start()
            client = hosts.start(0, tool, "--doctor", "--json", case.host)
            try:
                out, err = communicated(client, LIMIT, also=[one.pid for one in others])
            except Late:
                raise Failure("%s: the examination does not end" % case.title) from None
            finally:
                end([client])
        finally:
            end(others)
    try:
        told = json.loads(out)
    except ValueError:
        raise Failure("%s: no JSON\n%s%s" % (case.title, out, err)) from None
    if told["tool"] != os.path.basename(tool):
        raise Failure("%s: %s says that it is %s" % (case.title, tool, told["tool"]))
    judge(case, told, client.returncode)


def judge(case, told, status):
    named = {finding["name"]: finding for finding in told["findings"] if finding["name"]}
    shown = json.dumps(told["findings"], indent=1)
    if case.name and case.name not in named:
        raise Failure("%s: not named\n%s" % (case.title, shown))
    if case.name and not (named[case.name]["finding"] and named[case.name]["cure"]):
        raise Failure("%s: no cause or no cure\n%s" % (case.title, shown))
    unwanted = {name for name, finding in named.items() if finding["verdict"] == "problem"} - {case.name, *case.also}
    if unwanted:
        raise Failure("%s: these are no faults: %s\n%s" % (case.title, ", ".join(sorted(unwanted)), shown))
    if told["healthy"] != (status == 0) or (case.healthy and not told["healthy"]):
        raise Failure("%s: healthy is %s, the exit status %d\n%s" % (case.title, told["healthy"], status, shown))


def named(case, vipping, tool):
    began = time.monotonic()
    examine(case, vipping, tool)
    print("%-44s named by %s, %.1f s" % (case.title, os.path.basename(tool), time.monotonic() - began), flush=True)


def flooded(vipping):
    """What never stops coming keeps no end from answering, and from ending."""
    with Joined() as hosts:
        server = hosts.start(1, vipping, "--server", "--doctor")
        try:
            wait_for(server, "answering vipping --doctor")
            threading.Thread(target=server.stdout.read, daemon=True).start()
            client = hosts.start(1, sys.executable, "-c", FLOOD)
            client.stdout.readline()
            out, err = communicated(client, ANSWERS_WITHIN, also=[server.pid])
        except Late as late:
            end([client])
            raise Failure("under a flood: %s" % late) from None
        finally:
            end([server])
    if '"count": 1,' not in out or '"damaged": 0' not in out:
        raise Failure("under a flood: %s%s" % (out, err))


def names_of(text):
    return set(text.split(",")) if text else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vipping", required=True)
    parser.add_argument("--vipinfo", required=True)
    parser.add_argument("--user", type=int, help="all of it in a user namespace of that user")
    parser.add_argument("--only", help="these faults, by name")
    parser.add_argument("--all", action="store_true", help="all faults, and not only those that take little time")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    only = names_of(options.only)
    vipping, vipinfo = os.path.abspath(options.vipping), os.path.abspath(options.vipinfo)

    def run_all():
        wanted = [case for case in FAULTS
                  if (case.name in only if only is not None else options.all or case.name not in MORE)]
        pairs = [(case, tool) for case in wanted for tool in ((vipping, vipinfo) if case.name in BY_BOTH else (vipping,))]
        pairs.sort(key=lambda pair: pair[0].name not in LONG)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            jobs = [pool.submit(named, case, vipping, tool) for case, tool in pairs]
            try:
                for job in concurrent.futures.as_completed(jobs):
                    job.result()
            finally:
                for job in jobs:
                    job.cancel()  # those that have not begun
        if only is None:
            flooded(vipping)
            print("under a flood it answers", flush=True)

    return outcome(run_all)


if __name__ == "__main__":
    sys.exit(main())
