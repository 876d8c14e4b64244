# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the tools share: running one, a server beside it, and what its user is told."""
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

WELL, PROBLEM, USAGE, NO_NIC = 0, 1, 2, 3
NOWHERE = "/nonexistent/path.sock"
TOOL = ""
SECONDS = 60


def environment(**variables):
    kept = {k: v for k, v in os.environ.items()
            if k in ("VIADUCT_AGENT", "VIADUCT_TIME_FACTOR") or not k.startswith("VIADUCT_")}
    kept.update(variables)
    return kept


def run(*arguments, **variables):
    return eventually.run([TOOL, *arguments], SECONDS, env=environment(**variables))


class Server:
    """A server of the tool; entered when it has said that it is there."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.lines = []

    def __enter__(self):
        self.process = subprocess.Popen([TOOL, "-s", *self.arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, env=environment())
        self.lines.append(self.process.stdout.readline())
        return self

    def read_until(self, text, times=1):
        while "".join(self.lines).count(text) < times:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError("the server has said only: " + "".join(self.lines))
            self.lines.append(line)

    def wait(self):
        rest, _ = eventually.communicated(self.process, SECONDS)
        self.lines += rest.splitlines(True)
        return self.process.returncode

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Case(unittest.TestCase):
    def expect(self, result, code, stdout="", stderr=""):
        self.assertEqual(code, result.returncode, result.stdout + result.stderr)
        self.assertRegex(result.stdout, stdout or r"\A\Z")
        self.assertRegex(result.stderr, stderr or r"\A\Z")

    def parsed(self, *arguments, code=WELL, **variables):
        result = run(*arguments, "--json", **variables)
        self.assertEqual(code, result.returncode, result.stdout + result.stderr)
        return json.loads(result.stdout)


def main():
    global TOOL
    TOOL = os.path.abspath(sys.argv.pop(1))
    os.environ.setdefault("VIADUCT_AGENT", "@viaduct-tool-test-%d" % os.getpid())
    unittest.main(module="__main__", verbosity=2)
