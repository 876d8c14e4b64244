#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cmpiinfo as people and programs meet it: alone, in a job, with mistakes.  Usage: cmpiinfo_test.py CMPIINFO"""

import json
import os
import shutil
import subprocess
import sys

tool = sys.argv[1]
faults = []


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def expect(name, condition, seen=""):
    print(("ok      " if condition else "FAILED  ") + name, flush=True)
    if not condition:
        print(seen)
        faults.append(name)


code, out, errors = run(tool, "--json")
view = json.loads(out)
expect("alone: one process that reaches itself", code == 0 and view["processes"] == 1 and view["ways"] == [["self"]], view)
ready = [p["name"] for p in view["protocols"] if p["ready"]]
expect("self, via, shm and tcp are ready, whoever is not says why",
       {"self", "via", "shm", "tcp"} <= set(ready) and all(p.get("reason") for p in view["protocols"] if not p["ready"]), view["protocols"])
parameters = {p["name"]: p for p in view["parameters"]}
expect("every parameter has help, value and origin",
       {"CMPI_PROTOCOL", "CMPI_TCP_INTERFACES", "CMPI_TCP_BUFFER", "CMPI_ON_DEMAND"} <= set(parameters) and all(p["help"] and p["origin"] == "default" for p in view["parameters"]), parameters)

code, out, errors = run(tool, CMPI_CLOSE_TIMEOUT="7")
expect("a parameter from the environment is shown as such", code == 0 and "CMPI_CLOSE_TIMEOUT = 7  [environment]" in out, out)
expect("text names the launcher protocol", "wired up by alone" in out, out)
code, out, errors = run(tool, "--nonsense")
expect("a wrong option is a wrong use", code == 2, (code, errors))
code, out, errors = run(tool, CMPI_PROTOCOL="paper")
expect("a protocol nobody knows is a problem, by name", code == 1 and "CMPI_PROTOCOL=paper" in errors, (code, errors))

if shutil.which("mpiexec.mpich"):
    # By choice it is the most exclusive that reaches: shm on one host.
    for forced, chosen in (("via", "via"), ("shm", "shm"), ("tcp", "tcp"), ("", "shm")):
        code, out, errors = run("mpiexec.mpich", "-n", "3", tool, "--json", CMPI_PROTOCOL=forced)
        view = json.loads(out)
        wanted = [["self" if a == b else chosen for a in range(3)] for b in range(3)]
        expect(f"in a job, CMPI_PROTOCOL={forced}: who reaches whom by what, once",
               code == 0 and view["processes"] == 3 and view["launcher"] == "pmi1" and view["ways"] == wanted, (view, errors))
    code, out, errors = run("mpiexec.mpich", "-n", "2", tool, CMPI_PROTOCOL="tcp", CMPI_TCP_INTERFACES="nosuch0")
    expect("an interface that is not there leaves tcp out, and the reason is told", code != 0 and "nosuch0" in out + errors,
           (out, errors))
else:
    print("SKIPPED: no mpiexec.mpich (package mpich) on this machine")

sys.exit(1 if faults else 0)
