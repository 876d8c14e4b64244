#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The recipes of packages know every file that is installed, each in one package, and no file that is not; and they agree on the
version.

    recipes.py --build BUILD --source SOURCE --cmake CMAKE --libdir LIBDIR
"""
import argparse
import fnmatch
import os
import re
import subprocess
import sys
import tempfile

TRIPLET = "some-linux-gnu"
# Where the parts of the system lie in the spec file.
MACROS = {"_bindir": "usr/bin", "_sbindir": "usr/sbin", "_libdir": "usr/lib/" + TRIPLET, "_prefix": "usr", "_datadir": "usr/share",
          "_mandir": "usr/share/man", "_includedir": "usr/include", "_docdir": "usr/share/doc", "name": "viaduct"}
# Built only where DPDK's, rdma-core's headers or go-md2man are.
OPTIONAL = re.compile(r"acenic|verbs|/man/")


def installed(options, folder):
    """Files of an installation into /usr, with a triplet in the folder of libraries as Debian has it."""
    subprocess.run([options.cmake, "--install", options.build, "--prefix", "/usr"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "DESTDIR": folder})
    names = set()
    for place, _, files in os.walk(folder):
        for name in files:
            path = os.path.relpath(os.path.join(place, name), folder)
            own = "usr/" + options.libdir + "/"
            if path.startswith(own) and not path.startswith(("usr/lib/systemd/", "usr/lib/sysusers.d/")):
                path = "usr/lib/" + TRIPLET + "/" + path[len(own):]
            names.add(path)
    return names


def of_debian(source):
    """(package, pattern) of debian/*.install, and what is said not to be installed."""
    entries = []
    folder = os.path.join(source, "debian")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".install") or name == "not-installed":
            with open(os.path.join(folder, name), encoding="utf-8") as lines:
                entries += [(name, line.strip()) for line in lines if line.strip() and not line.startswith("#")]
    # The rules move it to where Debian's environment modules look.
    return [(name, line.replace("usr/share/modules/modulefiles/", "usr/share/modulefiles/")) for name, line in entries]


def of_rpm(source):
    entries, package = [], None
    with open(os.path.join(source, "packaging/rpm/viaduct.spec"), encoding="utf-8") as lines:
        for line in lines:
            line = line.strip()
            if line.startswith("%files"):
                package = line
            elif line.startswith("%changelog"):
                package = None
            elif package and line and not line.startswith(("%license", "%doc ", "%dir")):
                exclude = line.startswith("%exclude ")
                path = re.sub(r"%\{(\w+)\}", lambda found: MACROS[found.group(1)], line.replace("%exclude ", ""))
                entries.append(("%exclude" if exclude else package, path))
    return entries


def holds(pattern, path):
    """As dh_install and rpm read it: a file, or a folder with all below."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(fnmatch.fnmatch(a, b) for a, b in zip(parts, wanted))


def faults(what, entries, paths):
    for path in sorted(paths):
        homes = sorted({package for package, pattern in entries if holds(pattern, path)})
        if "%exclude" in homes:
            homes = ["%exclude"]
        if not homes:
            yield f"{what}: {path} is in no package"
        elif len(homes) > 1:
            yield f"{what}: {path} is in {' and '.join(homes)}"
    for package, pattern in entries:
        if not OPTIONAL.search(pattern) and not any(holds(pattern, path) for path in paths):
            yield f"{what}: {package}: nothing is installed as {pattern}"


def versions(source):
    """By file."""
    for path, pattern in (("CMakeLists.txt", r"project\(viaduct VERSION (\S+)"), ("debian/changelog", r"viaduct \(([\d.]+)"),
                          ("packaging/rpm/viaduct.spec", r"Version:\s+(\S+)"), ("packaging/spack/package.py", r'version\("([\d.]+)"')):
        with open(os.path.join(source, path), encoding="utf-8") as file:
            yield path, re.search(pattern, file.read()).group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--build", "--source", "--cmake", "--libdir"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = installed(options, folder)
    found = [*faults("debian", of_debian(options.source), paths), *faults("rpm", of_rpm(options.source), paths)]
    said = dict(versions(options.source))
    if len(set(said.values())) != 1:
        found.append("versions differ: " + ", ".join(f"{path} {version}" for path, version in said.items()))
    with open(os.path.join(options.source, "packaging/spack/package.py"), encoding="utf-8") as file:
        compile(file.read(), file.name, "exec")
    print(*found, sep="\n", end="\n" if found else "")
    print("%d files, %d faults" % (len(paths), len(found)))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
