# SPDX-License-Identifier: BSD-2-Clause
"""viaduct-udpd of a host of a test, started by hand."""
import contextlib
import os
import subprocess

from eventually import eventually
from unix_sockets import listens


def socket_name(hosts, host, port=0):
    """The abstract socket of this user's daemon."""
    return "\0viaduct-udpd-%d-%s:4792" % (os.geteuid(), hosts.ip(host, port))


@contextlib.contextmanager
def listening(hosts, build, host, port=0, on=(), **settings):
    """The process of a daemon that listens, of a port of the host. `on` runs it there. It ends with the block."""
    process = subprocess.Popen([*on, os.path.join(build, "sbin/viaduct-udpd"), "--address", hosts.ip(host, port), "--linger-ms", "-1"],
                               env={**hosts.environment(host), **settings})
    shown = "@" + socket_name(hosts, host, port)[1:]
    try:
        eventually("viaduct-udpd listens", lambda: listens(shown, process.pid), [process.pid])
        yield process
    finally:
        process.kill()
        process.wait()
