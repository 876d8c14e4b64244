# SPDX-License-Identifier: BSD-2-Clause
"""Surroundings of a process, made by a chain of programs in front of it: namespaces by unshare(1), mounts by mount(8) in
a namespace of their own, all else by environment_within (programs/within.c)."""
import contextlib
import ctypes
import os
import subprocess

from eventually import holds

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEPT = {"CHECKOUT": CHECKOUT}  # for HIDE

# hide FOLDER OPTIONS [ro]: an empty file system in place of the folder. Where the checkout or the folder of the row lies there, it stays at
# its path.
HIDE = '''hide() {
    k=$ROW/hidden
    mkdir -p "$k"
    mount -t tmpfs -o "$2" none "$k"
    for kept in "$CHECKOUT" "$ROW"; do
        case "$kept" in "$1"/*) mkdir -p "$k${kept#"$1"}"; mount --bind "$kept" "$k${kept#"$1"}";; esac
    done
    if [ "$3" ]; then mount -o "remount,bind,$3" "$k"; fi
    mount -n --move "$k" "$1"  # -n: the table of mount lies in /run
}; '''

# Words that are scripts, run in a mount namespace in front of the program. ROW is the folder of the row.
MOUNTS = {
    # The row's folder stays writable where it lies below /tmp, with the build.
    "tmp-readonly": 'mount --bind "$ROW" "$ROW"; mount --rbind /tmp /tmp; mount -o remount,bind,ro /tmp',
    "shm-readonly": HIDE + "hide /dev/shm rw ro",
    "shm-tiny": HIDE + "hide /dev/shm size=4k",
    "shm-noexec": HIDE + "hide /dev/shm noexec,nosuid,nodev",
    "no-shm": 'k=$ROW/dev; mkdir -p "$k"; mount -t tmpfs none "$k"; for n in null zero full random urandom; do : >"$k/$n"; '
              'mount --bind /dev/$n "$k/$n"; done; mount --move "$k" /dev',
    "no-proc": "mount -t tmpfs -o ro none /proc",
    "no-sys": "mount -t tmpfs -o ro none /sys",
    "no-run": HIDE + "hide /run rw ro",
    "no-etc": HIDE + "hide /etc rw ro",
    "root-readonly": 'mount --bind "$ROW" "$ROW"; mount -o remount,bind,ro /',
    "proc-hidden": "mount -t proc -o hidepid=2 none /proc",
}
NAMESPACES = {
    "ns-pid": ["--pid", "--fork", "--kill-child", "--mount-proc"],
    "ns-pid-old-proc": ["--pid", "--fork", "--kill-child"],
    "ns-mount": ["--mount"],
    "ns-ipc": ["--ipc"],
    "ns-uts": ["--uts"],
    "ns-cgroup": ["--cgroup"],
    "ns-net": ["--net"],
    "ns-user": ["--user", "--map-root-user"],
    "ns-user-unmapped": ["--user"],
    "ns-time-later": ["--time", "--fork", "--kill-child", "--monotonic", "1000000", "--boottime", "1000000"],
    "ns-time-earlier": ["--time", "--fork", "--kill-child", "--monotonic", "-100", "--boottime", "-100"],
}


def prefix(words, within, cgroup=None):
    """The command to put in front of a program."""
    chain, own = [], []
    for word in words:
        if word in NAMESPACES:
            chain += ["unshare", *NAMESPACES[word]]
        elif word in MOUNTS:
            chain += ["unshare", "--mount", "sh", "-c", f'set -e; {MOUNTS[word]}; exec "$@"', "sh"]
        elif word == "cgroup":
            own.append(f"cgroup={cgroup}")
        elif word == "setarch-R":
            chain += ["setarch", "-R"]
        else:
            own.append(word)
    return chain + ([within, *own, "--"] if own else [])


_libc = ctypes.CDLL(None, use_errno=True)
PR_SET_CHILD_SUBREAPER, CLONE_NEWNET = 36, 0x40000000


def become_subreaper():
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def own_network():
    if _libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET)")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def own_cgroup(controller):
    """(folder of this process's cgroup, version) where `controller` is; None when there is none."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in lines:
        if controller in controllers.split(","):
            folder = f"/sys/fs/cgroup/{controllers}{path}"
            return (folder if os.path.isdir(folder) else f"/sys/fs/cgroup/{controller}{path}"), 1
    for number, controllers, path in lines:
        if number == "0" and not controllers:
            return f"/sys/fs/cgroup{path}", 2
    return None


FILES = {("memory", 1): "memory.limit_in_bytes", ("memory", 2): "memory.max", ("pids", 1): "pids.max", ("pids", 2): "pids.max",
         ("cpu", 1): "cpu.cfs_quota_us", ("cpu", 2): "cpu.max"}


class Cgroup:
    """A cgroup below our own with one limit; `why` tells when it cannot be had."""

    def __init__(self, controller, limit, name):
        self.folder, self.why = None, ""
        found = own_cgroup(controller)
        if found is None:
            self.why = f"no cgroups with {controller} here"
            return
        base, version = found
        folder = os.path.join(base, name)
        if version == 2 and controller == "cpu":
            limit = f"{limit} 100000"
        try:
            os.mkdir(folder)
            self.folder = folder
            with open(os.path.join(folder, FILES[controller, version]), "w", encoding="ascii") as file:
                file.write(str(limit))
        except OSError as error:
            self.why = f"cgroups of version {version} give no {controller} here: {error}"
            self.remove()

    def remove(self):
        if self.folder:
            def is_removed():
                with contextlib.suppress(OSError):
                    os.rmdir(self.folder)
                    return True
            holds(is_removed, limit=1)
            self.folder = None
