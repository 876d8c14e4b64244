#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""default_provider_test.py PATH-OF-DEFAULT_NIC PATH-OF-VIPINFO: programs with other values of names.default_provider at one
agent. Each opens NICs of its own default provider, also where another program has started the agent."""
import contextlib
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

DEFAULT_NIC = VIPINFO = ""
LIMIT = 30  # seconds
NAMES = ("nic0", "VINIC", "/dev/via_eth0", "machine-of-old")
# The agent's environment: its paramnet and its udp have a NIC, its acenic has none.
OF_THE_AGENT = {"VIADUCT_UDP_INTERFACES": "127.0.0.1", "VIADUCT_UDP_PORT": "4819",
                "VIADUCT_ACENIC_PORTS": "net_af_packet,iface=eth9"}
WHY = "the default provider, acenic, offers no NIC: there is no Ethernet interface eth9 in this network namespace"


class Case(unittest.TestCase):
    agents = 0

    def setUp(self):
        Case.agents += 1

    def environment(self, provider):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_") or k == "VIADUCT_TIME_FACTOR"}
        agent = os.environ.get("VIADUCT_AGENT", "@viaduct-default-provider-test") + "-%d" % Case.agents
        kept.update(OF_THE_AGENT, VIADUCT_AGENT=agent)
        if provider is not None:
            kept["VIADUCT_NAMES_DEFAULT_PROVIDER"] = provider
        return kept

    @contextlib.contextmanager
    def starter(self, provider):
        """A program that starts the agent and keeps it alive; the line that it prints."""
        with subprocess.Popen([DEFAULT_NIC, "nic0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=self.environment(provider)) as program:
            try:
                yield program.stdout.readline().strip()
            finally:
                program.stdin.close()
                eventually.finished(program, LIMIT)

    def opened(self, provider, name):
        return eventually.run([DEFAULT_NIC, name], LIMIT, stdin=subprocess.DEVNULL, env=self.environment(provider))

    def expect_nic(self, provider, nic):
        for name in NAMES:
            with self.subTest(provider=provider, name=name):
                self.assertEqual(nic + "\n", self.opened(provider, name).stdout)

    def expect_reason(self, provider, reason):
        for name in NAMES:
            with self.subTest(provider=provider, name=name):
                result = self.opened(provider, name)
                self.assertEqual(1, result.returncode, result.stdout)
                self.assertIn(reason, result.stdout)


class Programs(Case):
    def test_each_has_its_own_default_provider(self):
        with self.starter("paramnet") as nic:
            self.assertEqual("paramnet0", nic)
            self.expect_nic("udp", "udp0")
            self.expect_nic("paramnet", "paramnet0")
            self.expect_nic(None, "paramnet0")

    def test_the_starter_of_the_agent_decides_for_itself_alone(self):
        with self.starter("udp") as nic:
            self.assertEqual("udp0", nic)
            self.expect_nic(None, "paramnet0")
            self.expect_nic("udp", "udp0")

    def test_without_any_setting_open_shared_memory(self):
        with self.starter(None) as nic:
            self.assertEqual("paramnet0", nic)
            self.expect_nic(None, "paramnet0")

    def test_get_the_reason_and_no_nic_of_another_provider(self):
        with self.starter("paramnet"):
            self.expect_reason("acenic", WHY)
            self.expect_reason("acenik", "the default provider, acenik, is not installed")

    def test_open_another_provider_by_its_name_all_the_same(self):
        with self.starter("acenik") as why:
            self.assertIn("acenik", why)
            self.assertEqual("paramnet0\n", self.opened("acenik", "paramnet0").stdout)
            self.assertEqual("udp0\n", self.opened("acenik", "udp:127.0.0.1").stdout)


class Vipinfo(Case):
    def shown(self, provider, *arguments):
        return eventually.run([VIPINFO, *arguments], LIMIT, env=self.environment(provider))

    def test_marks_the_default_nic_of_its_own_settings(self):
        with self.starter("paramnet"):
            self.assertRegex(self.shown("udp", "nic0").stdout, r"\budp0\b")
            self.assertRegex(self.shown(None, "nic0").stdout, r"\bparamnet0\b")
            missing = self.shown("acenic", "nic0")
            self.assertEqual(1, missing.returncode)
            self.assertIn(WHY, missing.stderr)

    def test_says_that_names_without_a_provider_fail(self):
        with self.starter("paramnet"):
            result = self.shown("acenic", "--doctor")
            self.assertEqual(1, result.returncode)
            self.assertIn("it offers no NIC: VipOpenNic fails for names that say no provider", result.stdout)


if __name__ == "__main__":
    DEFAULT_NIC, VIPINFO = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
