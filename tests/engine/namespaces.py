# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts on one machine: network namespaces joined by a veth pair, each with its own agent."""
import os
import re
import subprocess


def command(*words):
    subprocess.run(words, check=True, capture_output=True)


class Hosts:
    """Made by `with`, in a folder for their files; subprocess.CalledProcessError where that is not permitted."""

    def __init__(self, folder):
        self.folder = folder
        self.first, self.inits = [], []  # processes that hold process numbers of their own: ours, and theirs inside
        self.names = ["viaduct-mpi-%d-%d" % (os.getpid(), side) for side in (0, 1)]

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for first in self.first:
            first.kill()
            first.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def make(self):
        for name in self.names:
            command("ip", "netns", "add", name)
        command("ip", "link", "add", "v0", "netns", self.names[0], "type", "veth", "peer", "name", "v0", "netns", self.names[1])
        with open(os.path.join(self.folder, "hosts"), "w", encoding="ascii") as hosts, \
                open(os.path.join(self.folder, "udp-hosts"), "w", encoding="ascii") as udp_hosts:
            for side, name in enumerate(self.names):
                command("ip", "-n", name, "address", "add", "10.87.3.%d/24" % (side + 1), "dev", "v0")
                command("ip", "-n", name, "link", "set", "v0", "mtu", "9000", "up")
                command("ip", "-n", name, "link", "set", "lo", "up")
                shown = subprocess.run(["ip", "-n", name, "link", "show", "v0"], capture_output=True, text=True, check=True).stdout
                hosts.write("%s host%d\n" % (re.search(r"link/ether (\S+)", shown).group(1), side))
                udp_hosts.write("0a:57:03:%02x:12:b8 host%d\n" % (side + 1, side))  # the same address, port 4792

    def keep_apart(self):
        """Gives each host process numbers of its own, as machines have them, so that the two share no memory; and a /run,
        where DPDK goes by these numbers."""
        # sleeps: a process that holds the namespaces
        stay = "mount -t tmpfs run /run && echo here && exec sleep infinity"
        for name in self.names:
            first = subprocess.Popen(["ip", "netns", "exec", name, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                                      "sh", "-c", stay], stdout=subprocess.PIPE, text=True)
            self.first.append(first)
            if first.stdout.readline() != "here\n":
                raise subprocess.CalledProcessError(first.wait(), first.args, stderr=b"unshare failed")
            with open("/proc/%d/task/%d/children" % (first.pid, first.pid), encoding="ascii") as children:
                self.inits.append(int(children.read()))

    def inside(self):
        """What a shell of rank PMI_RANK puts in front of its program: odd ranks are on the second host."""
        if not self.inits:
            return "ip netns exec %s$((PMI_RANK %% 2))" % self.names[0][:-1]
        return "nsenter --target $((PMI_RANK %% 2 ? %d : %d)) --pid --mount --net" % (self.inits[1], self.inits[0])

    def settings(self, nic):
        """The environment that makes via use that provider between the two."""
        if nic == "udp":
            return {"VIADUCT_UDP_INTERFACES": "auto", "VIADUCT_NAMES_DEFAULT_PROVIDER": "udp",
                    "VIADUCT_HOSTS": os.path.join(self.folder, "udp-hosts")}
        return {"VIADUCT_ACENIC_PORTS": "net_af_packet,iface=v0", "VIADUCT_ACENIC_MODE": "exclusive",
                "VIADUCT_NAMES_DEFAULT_PROVIDER": "acenic", "VIADUCT_HOSTS": os.path.join(self.folder, "hosts")}
