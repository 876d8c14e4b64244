#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""schema_test.py SCHEMAS BINDIR WIRE_CAPTURE: what the tools print with --json fits the schema that it names, and the schemas are
strict: with a field less, or one more, it fits no longer."""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import run  # noqa: E402

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the Python module jsonschema (package python3-jsonschema) is not there")
    sys.exit(77)

SCHEMAS, BINDIR, WIRE_CAPTURE = sys.argv[1:4]
SECONDS = 60
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")},
               "VIADUCT_AGENT": os.environ.get("VIADUCT_AGENT", f"@viaduct-schema-test-{os.getpid()}")}
# It needs a launcher: a test of its own.
NOT_RUN_HERE = {"cmpiinfo-job"}


def command(tool, *arguments):
    return [os.path.join(BINDIR, tool), *arguments]


class Server:
    """A tool that runs until the block ends; entered when it has said its first lines."""

    def __init__(self, *arguments, lines=1):
        self.process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.lines = lines

    def __enter__(self):
        for _ in range(self.lines):
            self.process.stdout.readline()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def output(tool, *arguments):
    done = run(command(tool, *arguments), SECONDS, env=ENVIRONMENT)
    return json.loads(done.stdout)


def outputs():
    """Schema that is expected, and an output."""
    with Server("vipping", "-s"), Server("vipping", "-i", "30", "localhost", lines=2) as client:
        yield "vipstat", output("vipstat", "--json")
        yield "vipstat", output("vipstat", "--json", "-p", str(client.process.pid))
        yield "vipinfo", output("vipinfo", "--json")
        yield "vipinfo", output("vipinfo", "--json", "-v", "-p", "-s", "-l")
        yield "vipinfo-nic", output("vipinfo", "--json", "paramnet0")
        yield "vipinfo-nic", output("vipinfo", "--json", "nosuch")
        yield "vipinfo-doctor", output("vipinfo", "--doctor", "--json")
        yield "vipping", output("vipping", "-c", "2", "-i", "0.01", "--json", "localhost")
        yield "vipping-doctor", output("vipping", "--doctor", "--json", "localhost")
        yield "vipping-doctor", output("vipinfo", "--doctor", "--json", "localhost")
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "frames.pcap")
        run([WIRE_CAPTURE, capture, os.path.join(folder, "list")], SECONDS, check=True)
        whole = output("vipcap", "--json", "-r", capture)
        assert len(whole["frames"]) > 100 and whole["connections"], "the capture is empty"
        yield "vipcap", whole
        assert output("vipcap", "--json", "-l", "-r", capture) == {**whole, "frames": []}
    with Server("vipperf", "-s"):
        for test in ("send_lat", "send_bw"):
            yield "vipperf", output("vipperf", "-t", test, "-b", "8", "-n", "100", "--json", "localhost")
        with tempfile.TemporaryDirectory() as folder:
            yield "vipperf-report", output("vipperf", "--report", os.path.join(folder, "page.html"), "-b", "8", "-n", "10",
                                           "--rounds", "1", "--json", "localhost")
    if os.path.exists(os.path.join(BINDIR, "cmpiinfo")):
        yield "cmpiinfo", output("cmpiinfo", "--json")


def main():
    schemas = {}
    for path in glob.glob(os.path.join(SCHEMAS, "*.schema.json")):
        with open(path, encoding="utf-8") as file:
            schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(schema)
        name = os.path.basename(path).removesuffix(".schema.json")
        assert schema["$id"] == schema["properties"]["schema"]["const"] == f"viaduct/{name}/1", path
        schemas[name] = jsonschema.Draft202012Validator(schema)
    wrong, seen = 0, set(NOT_RUN_HERE)
    for name, what in outputs():
        seen.add(name)
        faults = [f"{error.json_path}: {error.message}" for error in schemas[name].iter_errors(what)]
        if "schema" in what and not faults:
            faults = [f"without {key} it fits" for key in schemas[name].schema["required"]
                      if schemas[name].is_valid({k: v for k, v in what.items() if k != key})]
            faults += ["with one more it fits"] * schemas[name].is_valid({**what, "more": 1})
        print("ok     " if not faults else "FAILED ", name, *faults[:5], sep="\n    " if faults else " ")
        wrong += bool(faults)
    if not os.path.exists(os.path.join(BINDIR, "cmpiinfo")):
        seen.add("cmpiinfo")
    if seen != set(schemas):
        print("FAILED  schemas without an output, or outputs without a schema:", seen ^ set(schemas))
        wrong += 1
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
