#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cmpiinfo as people and programs meet it: alone, in a job, with mistakes.  Usage: cmpiinfo_test.py CMPIINFO"""

import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

tool = sys.argv[1]
faults = []
surroundings = {name: value for name, value in os.environ.items() if not name.startswith("CMPI_")}


def run(*command, **environment):
    done = eventually.run(command, 60, env={**surroundings, **environment})
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
expect("self, via, shm and tcp are ready, one that is not says why",
       {"self", "via", "shm", "tcp"} <= set(ready) and all(p.get("reason") for p in view["protocols"] if not p["ready"]), view["protocols"])
parameters = {p["name"]: p for p in view["parameters"]}
expect("every parameter has help, value and origin",
       {"CMPI_PROTOCOL", "CMPI_TCP_INTERFACES", "CMPI_TCP_BUFFER", "CMPI_ON_DEMAND"} <= set(parameters) and all(p["help"] and p["origin"] == "default" for p in view["parameters"]), parameters)

code, out, errors = run(tool, CMPI_CLOSE_TIMEOUT="7")
expect("a parameter from the environment is shown as such", code == 0 and "CMPI_CLOSE_TIMEOUT = 7  [environment CMPI_CLOSE_TIMEOUT]" in out, out)
expect("ranges are shown", "until the other ranks have closed; 0: as long as they live (0 to 86400)" in out, out)
expect("text names the launcher protocol", "wired up by alone" in out, out)
code, out, errors = run(tool, "--nonsense")
expect("a wrong option is a wrong use", code == 2, (code, errors))
code, out, errors = run(tool, CMPI_PROTOCOL="paper")
expect("an unknown protocol is a problem, by name", code == 1 and "CMPI_PROTOCOL=paper" in errors, (code, errors))

# Every variable with a value of another kind, one below its range and one above it.
wanted = {"rendezvous": "one of auto|rput|rget|both|r3", "protocol": "one of shm|tcp|via, or empty", "wait_learning": "one of on|off", "node_collectives": "one of on|off",
          "window_access": "one of direct|nic|messages", "progress": "one of calls|thread"}
checked = 0
for p in view["parameters"]:
    name, values = p["name"], ()
    if p["low"] or p["high"]:
        values, allowed = ("abc", p["low"] - 1, p["high"] + 1), f"from {p['low']} to {p['high']}"
    elif allowed := wanted.get(name.removeprefix("CMPI_").lower()):
        values = ("paper",)
    for value in values:
        checked += 1
        code, out, errors = run(tool, **{name: str(value)})
        if code != 1 or out or errors.count("\n") != 1 or f"{name}={value} is not " not in errors or allowed not in errors:
            expect(f"{name}={value} is refused with what is allowed, in one line", False, (code, out, errors))
expect(f"values that are not allowed are refused ({checked})", checked >= 50)
for value, number in (("0x100", "256"), ("0400", "256"), ("4K", "4096")):
    code, out, errors = run(tool, CMPI_EAGER_LIMIT=value)
    expect(f"CMPI_EAGER_LIMIT={value} is {number}", code == 0 and f"CMPI_EAGER_LIMIT = {number}  [environment" in out, (out, errors))
code, out, errors = run(tool, CMPI_EAGER_LIMT="1")
expect("an unknown variable is told once, with the nearest one, and stops no process",
       code == 0 and errors.count("CMPI_EAGER_LIMT") == 1 and "did you mean CMPI_EAGER_LIMIT?" in errors, (code, errors))

with tempfile.TemporaryDirectory() as folder:
    settings = os.path.join(folder, "settings.toml")
    with open(settings, "w", encoding="utf-8") as file:
        file.write('[mpi]\nclose_timeout = 9\nshm_ring = "8K"\non_demand = -1\nneverland = 1\n')
    code, out, errors = run(tool, "--json", VIADUCT_CONFIG=settings, CMPI_SHM_RING="16384", VIADUCT_LOG="warn")
    shown = {p["name"]: (p["value"], p["origin"]) for p in json.loads(out)["parameters"]}
    expect("a file's settings are shown with file and line, and the environment comes before them",
           shown["CMPI_CLOSE_TIMEOUT"] == ("9", settings + ":2") and shown["CMPI_SHM_RING"] == ("16384", "environment CMPI_SHM_RING"), shown)
    expect("a wrong value in a file is told, once, and the default is used", code == 0 and shown["CMPI_ON_DEMAND"] == ("32", "default")
           and errors.count(settings + ":4") == 1 and "from 0 to 1048576" in errors, (code, shown, errors))
    expect("an unknown setting is told once", errors.count("neverland") == 1, errors)

if shutil.which("mpiexec.mpich"):
    # By choice it is the most exclusive that reaches: shm on one host.
    for forced, chosen in (("via", "via"), ("shm", "shm"), ("tcp", "tcp"), ("", "shm")):
        code, out, errors = run("mpiexec.mpich", "-n", "3", tool, "--json", CMPI_PROTOCOL=forced)
        view = json.loads(out)
        wanted = [["self" if a == b else chosen for a in range(3)] for b in range(3)]
        expect(f"in a job, CMPI_PROTOCOL={forced}: which process is reached by what, once",
               code == 0 and view["processes"] == 3 and view["launcher"] == "pmi1" and view["ways"] == wanted, (view, errors))
    code, out, errors = run("mpiexec.mpich", "-n", "3", tool, CMPI_QZX="1")
    expect("in a job on one host an unknown variable is told once", code == 0 and errors.count("CMPI_QZX") == 1, (code, errors))
    code, out, errors = run("mpiexec.mpich", "-n", "2", tool, CMPI_PROTOCOL="tcp", CMPI_TCP_INTERFACES="nosuch0")
    expect("an interface that is not there leaves tcp out, and the reason is told", code != 0 and "nosuch0" in out + errors,
           (out, errors))
else:
    print("SKIPPED: no mpiexec.mpich (package mpich) on this machine")

sys.exit(1 if faults else 0)
