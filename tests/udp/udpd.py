# SPDX-License-Identifier: BSD-2-Clause
"""viaduct-udpd of a host of a test, started by hand."""
import contextlib
import os
import socket
import subprocess

from eventually import eventually


def socket_name(hosts, host):
    """The abstract socket of this user's daemon."""
    return "\0viaduct-udpd-%d-%s:4792" % (os.geteuid(), hosts.ip(host, 0))


@contextlib.contextmanager
def listening(hosts, build, host, **settings):
    """The process of a daemon that listens. It ends with the block."""
    process = subprocess.Popen([os.path.join(build, "sbin/viaduct-udpd"), "--address", hosts.ip(host, 0), "--linger-ms", "-1"],
                               env={**hosts.environment(host), **settings})

    def listens():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            return client.connect_ex(socket_name(hosts, host)) == 0

    try:
        eventually("viaduct-udpd listens", listens, [process.pid])
        yield process
    finally:
        process.kill()
        process.wait()
