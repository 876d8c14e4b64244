# SPDX-License-Identifier: BSD-2-Clause
"""Hosts to run programs on, for tests and benchmarks of acenic and udp: network namespaces joined by veth pairs (two directly, more through
a bridge), or two processes joined by memif. Nothing of them stays."""
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import checkout_access  # noqa: E402
import temporary  # noqa: E402
from eventually import Late, communicated  # noqa: E402

SKIPPED = 77
# Small enough for memif's socket, which has the folder's name in its own.
FOLDER = "acenic-"
NUMBERS = itertools.count()  # of namespaces that a process makes


class Failure(Exception):
    pass


class Skipped(Exception):
    """It cannot run here, and why."""


def outcome(work):
    """What a script exits with that does `work`; the reason of anything but success is printed."""
    try:
        work()
    except Skipped as why:
        print("SKIPPED: %s" % why)
        return SKIPPED
    except Failure as failure:
        print(failure)
        return 1
    return 0


def as_user(user, words):
    """The command under which these words run as that user, without any privilege. Root lets other users enter the checkout, whatever folder
    it stands in."""
    try:
        checkout_access.give()
    except OSError as why:
        raise Skipped("another user cannot enter %s: %s" % (checkout_access.closed_folder(), why)) from why
    return ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
            "--no-new-privs", *words]


def without_privileges(user):
    """Runs the script once more, as that user in a user namespace of its own, whose root may make network namespaces; its exit code.
    In the host's own namespaces it has no privilege: sockets get the buffers that the system grants to everyone."""
    inside = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--"]
    try:
        command = as_user(user, inside) if os.geteuid() == 0 else inside
    except Skipped as why:
        print("SKIPPED: %s" % why)
        return SKIPPED
    for python in (sys.executable, "/usr/bin/python3"):  # the first may be where only root may go
        tried = subprocess.run(command + [python, "-c", ""], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            break
    else:
        print("SKIPPED: no Python in a user namespace of a user without privileges: %s" % tried.stderr.strip())
        return SKIPPED
    words = sys.argv[1:]
    at = words.index("--user")
    script = [python, "-B", os.path.abspath(sys.argv[0]), *words[:at], *words[at + 2:]]
    # `ip netns` keeps its names in /run; the home is another user's.
    return subprocess.run(command + ["sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh", *script], check=False,
                          env={**os.environ, "HOME": "/nonexistent"}).returncode


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


class Hosts:
    """What all kinds have: a folder, a file of host names, processes with an agent for each host."""
    provider = "acenic"

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix=FOLDER, dir=temporary.for_sockets())
        self.hosts = os.path.join(self.folder, "hosts")
        self.settings = {}

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self, host):
        environment = {name: value for name, value in os.environ.items()
                       if name == "VIADUCT_TIME_FACTOR" or not name.startswith("VIADUCT_")}
        environment.update({
            "VIADUCT_AGENT": "@viaduct-test-%s-%d" % (os.path.basename(self.folder), host),
            "VIADUCT_NAMES_DEFAULT_PROVIDER": self.provider,
            "VIADUCT_HOSTS": self.hosts,
        })
        environment.update(self.nics(host))
        environment.update(self.settings)
        return environment

    def nics(self, host):
        """The settings that give a host its NICs."""
        return {"VIADUCT_ACENIC_PORTS": self.ports(host), "VIADUCT_ACENIC_MODE": "exclusive"}

    def set(self, key, value):
        """A setting of the provider, at all hosts."""
        self.settings["VIADUCT_%s_%s" % (self.provider.upper(), key.upper())] = value

    def start(self, host, *command, **more):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                   "cwd": self.folder, "env": self.environment(host)}
        options.update(more)
        return subprocess.Popen(self.on(host) + [str(word) for word in command], **options)

    def write_names(self, addresses):
        with open(self.hosts, "w", encoding="ascii") as file:
            for address, name in addresses:
                file.write("%s %s\n" % (address, name))


class Namespaces(Hosts):
    """`count` hosts hosta, hostb, ... with `ports` interfaces each, v0, v1, ...; ports of one host are joined too."""
    kind = "af_packet"

    def __init__(self, count=2, ports=1, mtu=9000):
        super().__init__()
        prefix = "viaduct-%d-%d-" % (os.getpid(), next(NUMBERS))
        self.names = [prefix + chr(ord("a") + i) for i in range(count)]
        self.switch = None if count * ports == 2 and ports == 1 else prefix + "switch"
        self.port_count = ports
        self.mtu = mtu
        self.made = []

    def make(self):
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise Skipped("network namespaces need root and the package iproute2")
        try:
            self.make_links()
        except subprocess.CalledProcessError as failed:
            raise Skipped("no network namespaces with veth pairs here: %s" % failed.stderr.decode().strip()) from None
        self.write_names((self.address(host, 0), "host" + name[-1]) for host, name in enumerate(self.names))

    def make_links(self):
        for name in self.names + ([self.switch] if self.switch else []):
            run("ip", "netns", "add", name)
            self.made.append(name)
            run("ip", "netns", "exec", name, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true")
        if self.switch is None:
            a, b = self.names
            run("ip", "link", "add", "v0", "netns", a, "type", "veth", "peer", "name", "v0", "netns", b)
        else:
            run("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", self.switch, "link", "set", "bridge", "mtu", str(self.mtu), "up")
        for host, name in enumerate(self.names):
            run("ip", "-n", name, "link", "set", "lo", "up")
            for port in range(self.port_count):
                if self.switch is not None:
                    plug = "p%d-%d" % (host, port)
                    run("ip", "link", "add", "v%d" % port, "netns", name, "type", "veth", "peer", "name", plug, "netns", self.switch)
                    run("ip", "-n", self.switch, "link", "set", plug, "mtu", str(self.mtu), "master", "bridge", "up")
                run("ip", "-n", name, "link", "set", "v%d" % port, "mtu", str(self.mtu), "up")

    def remove(self):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)
        super().remove()

    def ethernet(self, host, port):
        shown = subprocess.run(["ip", "-n", self.names[host], "link", "show", "v%d" % port], capture_output=True, text=True,
                               check=True).stdout
        return re.search(r"link/ether (\S+)", shown).group(1)

    def address(self, host, port):
        return self.ethernet(host, port)

    def ports(self, _):
        return ";".join("net_af_packet,iface=v%d" % port for port in range(self.port_count))

    def on(self, host):
        return ["ip", "netns", "exec", self.names[host]]


class Memif(Hosts):
    """Two processes joined by a socket. Host 0 is its client, host 1 its server; `both` gives every process both ends."""
    kind = "memif"
    ADDRESSES = ("02:00:00:00:0a:01", "02:00:00:00:0a:02")

    def __init__(self, both=False, mtu=9000):
        super().__init__()
        self.both = both
        self.mtu = mtu

    def make(self):
        self.write_names(zip(self.ADDRESSES, ("hosta", "hostb")))

    def port(self, end):
        return "net_memif,socket=%s,role=%s,mac=%s,mtu=%d" % (
            os.path.join(self.folder, "pair"), ("client", "server")[end], self.ADDRESSES[end], self.mtu)

    def ports(self, host):
        return self.port(1) + ";" + self.port(0) if self.both else self.port(host)

    def on(self, _):
        return []


class Vhost(Memif):
    """Two processes joined by virtio: host 1 has the end that makes the socket and copies, host 0 the end that calls there."""
    kind = "vhost"

    def port(self, end):
        return "%s=%s,mac=%s,mtu=%d" % (("net_virtio_user,path", "net_vhost,iface")[end], os.path.join(self.folder, "pair"),
                                        self.ADDRESSES[end], self.mtu)


def udp_address(ip, port=4792):
    """An address of udp as a hosts file has it."""
    return ":".join("%02x" % int(byte) for byte in ip.split(".")) + ":%02x:%02x" % divmod(port, 256)


class UdpNamespaces(Namespaces):
    """The same hosts with IPv4 addresses, for udp."""
    kind = "udp"
    provider = "udp"

    def make_links(self):
        super().make_links()
        for host, name in enumerate(self.names):
            for port in range(self.port_count):
                run("ip", "-n", name, "address", "add", self.ip(host, port) + "/24", "dev", "v%d" % port)

    @staticmethod
    def ip(host, port):
        return "10.77.%d.%d" % (port, host + 1)

    def address(self, host, port):
        return udp_address(self.ip(host, port))

    def nics(self, _):
        return {"VIADUCT_UDP_INTERFACES": ";".join("v%d" % port for port in range(self.port_count))}


class Loopback(Hosts):
    """Hosts that are addresses of the loopback interface, for udp; with an agent each. `user`: that of their processes."""
    kind = "loopback"
    provider = "udp"

    def __init__(self, count=2, ports=1, mtu=None, user=None):
        super().__init__()
        self.count = count
        self.port_count = ports
        self.user = user
        self.network = "127.%d.%d" % (os.getpid() // 256 % 200 + 10, os.getpid() % 256)

    def make(self):
        if self.user is not None and os.geteuid() != 0:
            self.user = None  # without privileges anyway
        if self.user is not None and not shutil.which("setpriv"):
            raise Skipped("running as another user needs setpriv (package util-linux)")
        if self.user is not None:
            os.chmod(self.folder, 0o777)
        self.write_names((self.address(host, 0), "host" + chr(ord("a") + host)) for host in range(self.count))
        os.chmod(self.hosts, 0o644)

    def ip(self, host, port):
        return "%s.%d" % (self.network, 10 * host + port + 1)

    def address(self, host, port):
        return udp_address(self.ip(host, port))

    def nics(self, host):
        return {"VIADUCT_UDP_INTERFACES": ";".join(self.ip(host, port) for port in range(self.port_count))}

    def on(self, _):
        if self.user is None:
            return []
        return as_user(self.user, [])


OVER = {"af_packet": Namespaces, "memif": Memif, "vhost": Vhost, "udp": UdpNamespaces, "loopback": Loopback}


def kind_of(name):
    """The hosts that --over NAME means."""
    return OVER[name]


def finish(process, what, pattern, limit=60):
    """Waits for its good end; its output. It must have said what the pattern says, and nothing on stderr. The limit is one of its
    running time."""
    try:
        out, err = communicated(process, limit)
    except Late as late:
        process.kill()
        out, err = process.communicate()
        raise Failure("%s: %s\n%s%s" % (what, late, out, err)) from None
    if process.returncode != 0 or err or not re.fullmatch(pattern, out):
        shown = out if len(out) < 8000 else out[:4000] + "\n[...]\n" + out[-4000:]
        raise Failure("%s: exit status %d\n%s%s" % (what, process.returncode, shown, err[-2000:]))
    return out


def end(processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()
