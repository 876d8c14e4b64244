#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Transports from a folder: an MPI job over one that the library does not know, jobs beside files that are none, and ranks
of which only some have it.
Usage: transports_test.py CMPI_LIBRARY_FOLDER MESSAGES_PROGRAM CMPIINFO TRANSPORT (a file, dgram.so)"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402
import temporary  # noqa: E402

library, program, cmpiinfo, transport = sys.argv[1:]
HYDRA = "mpiexec.mpich"
faults = []
for name in [name for name in os.environ if name.startswith("CMPI_")]:
    del os.environ[name]
os.environ["LD_LIBRARY_PATH"] = library + ":" + os.environ.get("LD_LIBRARY_PATH", "")
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"


def run(command, **settings):
    done = eventually.run(command, 120, env={**os.environ, **settings})
    return done.returncode, done.stdout, done.stderr


def expect(name, condition, seen=""):
    print(("ok      " if condition else "FAILED  ") + name, flush=True)
    if not condition:
        print(seen)
        faults.append(name)


def make_version(path, folder):
    """A transport of another version of the device, or nothing where there is no compiler."""
    compiler = shutil.which("cc")
    if not compiler:
        return False
    source = os.path.join(folder, "other.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write('const struct { unsigned version; const char* name; void (*bind)(void); } mpip_module = {1, "other", 0};\n')
    return subprocess.run([compiler, "-shared", "-fPIC", "-o", path, source], check=False).returncode == 0


with tempfile.TemporaryDirectory(dir=temporary.for_programs()) as folder:
    good, mixed = os.path.join(folder, "good"), os.path.join(folder, "mixed")
    for place in (good, mixed):
        os.mkdir(place)
        shutil.copy(transport, os.path.join(place, "dgram.so"))
    with open(os.path.join(mixed, "paper.so"), "w", encoding="utf-8") as file:
        file.write("no object\n")
    shutil.copy(os.path.join(library, "libmpich.so.12"), os.path.join(mixed, "misplaced.so"))
    shutil.copy(transport, os.path.join(mixed, "tcp.so"))
    has_other = make_version(os.path.join(mixed, "other.so"), folder)

    code, out, errors = run([cmpiinfo, "--json"], CMPI_TRANSPORTS=good)
    known = {p["name"]: p for p in json.loads(out)["protocols"]} if code == 0 else {}
    expect("a transport of the folder is one more protocol",
           known.get("dgram", {}).get("ready") and {"self", "shm", "via", "tcp"} <= set(known) and errors == "", (code, out, errors))
    code, out, errors = run([cmpiinfo, "--json"])
    expect("without the folder it is none", code == 0 and "dgram" not in out, (code, out, errors))
    code, out, errors = run([cmpiinfo], CMPI_PROTOCOL="dgram")
    expect("and cannot be asked for: MPI_Init tells what can", code == 1 and "CMPI_PROTOCOL=dgram is not one of shm|tcp|via" in errors, (code, out, errors))
    code, out, errors = run([cmpiinfo], CMPI_TRANSPORTS=mixed)
    wanted = ["paper.so cannot be loaded", "misplaced.so is no transport", "tcp.so says its name is dgram"]
    wanted += ["other.so was built for version 1 of the device"] if has_other else []
    expect("files that are no transport are reported, and do no harm",
           code == 0 and "dgram" in out and all(text in errors for text in wanted) and errors.count("\n") == len(wanted), (code, out, errors))
    with open(os.path.join(folder, "viaduct.toml"), "w", encoding="utf-8") as file:
        file.write(f'[mpi]\ntransports = "{good}"\nprotocol = "paper"\n')
    code, out, errors = run([cmpiinfo], VIADUCT_CONFIG=os.path.join(folder, "viaduct.toml"))
    expect("the folder may stand in a file; a protocol there that is none is reported and ignored",
           code == 0 and "dgram" in out and '[mpi] protocol = "paper" is not one of dgram|shm|tcp|via, or empty; ignored' in errors, (code, out, errors))

    if shutil.which(HYDRA):
        _, seen, _ = run([HYDRA, "-n", "3", program], CMPI_PROTOCOL="shm")
        code, out, errors = run([HYDRA, "-n", "3", program], CMPI_PROTOCOL="dgram", CMPI_TRANSPORTS=good)
        expect("a job over it has the answers of a job over shm", code == 0 and out == seen and "No Errors" in out and errors == "", (code, out, errors))
        code, out, errors = run([HYDRA, "-n", "2", program], CMPI_PROTOCOL="dgram", CMPI_TRANSPORTS=mixed)
        expect("beside files that are none as well", code == 0 and "No Errors" in out, (code, out, errors))
        some = [HYDRA, "-n", "1", "-env", "CMPI_TRANSPORTS", good, program, ":", "-n", "2", program]
        code, out, errors = run(some)
        expect("where not all ranks have it they take what all have", code == 0 and out == seen and errors == "", (code, out, errors))
    else:
        print(f"SKIPPED: no {HYDRA} (package mpich) on this machine")

sys.exit(1 if faults else 0)
