#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipinfo_test.py PATH-OF-VIPINFO: what it prints, what it exits with, and what its doctor finds on a sick machine."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402
import temporary  # noqa: E402

VIPINFO = ""
LIMIT = 30  # seconds
ADDRESS = r"([0-9a-f]{2}:){5}[0-9a-f]{2}"
# Interfaces of this machine with an address are NICs, too: they stand behind those of paramnet.
OF_THE_MACHINE = r"(udp\d+ +udp +[^\n]*\n)*"
WELL, PROBLEM, USAGE, NO_AGENT = 0, 1, 2, 3
NOWHERE = "/nonexistent/path.sock"

# One for each member of VIP_NIC_ATTRIBUTES.
ATTRIBUTES = {
    "name": str, "address": str, "hardware_version": int, "provider_version": int, "max_discriminator": int,
    "max_register_bytes": int, "max_register_regions": int, "max_register_block_bytes": int, "max_vi": int,
    "max_descriptors_per_queue": int, "max_segments_per_descriptor": int, "max_cq": int, "max_cq_entries": int,
    "max_transfer": int, "native_mtu": int, "max_ptags": int, "reliability_mask": int, "rdma_read_mask": int,
}


def run(*arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if k == "VIADUCT_AGENT" or not k.startswith("VIADUCT_")}
    environment.update(variables)
    return eventually.run([VIPINFO, *arguments], LIMIT, env=environment)


def agent(suffix):
    return {"VIADUCT_AGENT": os.environ.get("VIADUCT_AGENT", "@viaduct-vipinfo-test") + suffix}


class Case(unittest.TestCase):
    def expect(self, result, code, stdout, stderr=""):
        self.assertEqual(code, result.returncode, result.stdout + result.stderr)
        self.assertRegex(result.stdout, stdout or r"\A\Z")
        self.assertRegex(result.stderr, stderr or r"\A\Z")

    def finding(self, findings, subject):
        found = [f for f in findings["findings"] if f["subject"] == subject]
        self.assertEqual(1, len(found), f"{subject}: {findings}")
        return found[0]


    def names_without_the_machines(self, nics):
        return [nic["name"] for nic in nics if nic["provider"] != "udp"]


class Text(Case):
    def test_one_line_for_each_nic_and_the_default_marked(self):
        self.expect(run(), WELL, r"\Aparamnet0 +paramnet +" + ADDRESS + r" +link up [^\n]*\[default\]\n" +
                    OF_THE_MACHINE + r"\Z")

    def test_verbose_shows_every_attribute(self):
        result = run("-v")
        for line in (r"max transfer +\d", r"native MTU +\d", r"max VIs +\d{4}", r"max descriptors/queue +\d{4}",
                     r"reliability levels +unreliable, reliable delivery, reliable reception\n", r"max regions +\d{5}",
                     r"max CQs +\d", r"max CQ entries +\d", r"max protection tags +\d", r"max discriminator +\d",
                     r"max segments/descriptor +\d", r"hardware version +\d", r"provider version +\d",
                     r"RDMA read at +", r"Agent: vipkad \d[^\n]*process \d+\), protocol \d+"):
            self.expect(result, WELL, line)

    def test_providers_settings_links(self):
        self.expect(run("-p"), WELL, r"Providers considered:\n(  .*\n)*  paramnet +\d+\.\d+ +/[^\n]*/paramnet\.so\n")
        self.expect(run("-s"), WELL, r"\n  paramnet\.nics +1 +\(default\)\n")
        self.expect(run("-s", VIADUCT_PARAMNET_NICS="1"), WELL,
                    r"\n  paramnet\.nics +1 +\(environment VIADUCT_PARAMNET_NICS\)\n")
        self.expect(run("-l"), WELL, r"Links of this host:\n(.*\n)*  lo .*loopback=true")

    def test_all_is_everything(self):
        for title in ("Providers considered:", "Settings in force:", "Links of this host:", "max VIs"):
            self.expect(run("-a"), WELL, re.escape(title))

    def test_two_nics_by_configuration(self):
        result = run(VIADUCT_PARAMNET_NICS="2", **agent("-two"))
        self.expect(result, WELL, r"\Aparamnet0 [^\n]*\[default\]\nparamnet1 [^\n]*\n" + OF_THE_MACHINE + r"\Z")
        addresses = re.findall(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", result.stdout)
        self.assertEqual(len(result.stdout.splitlines()), len(set(addresses)))

    def test_help_and_version(self):
        self.expect(run("--help"), WELL, "--doctor")
        self.expect(run("--version"), WELL, r"\Avipinfo \(Viaduct\) \d+\.\d+")


class Json(Case):
    def parsed(self, *arguments, **variables):
        return json.loads(run("--json", *arguments, **variables).stdout)

    def test_has_every_attribute(self):
        nics = self.parsed()["nics"]
        self.assertEqual(["paramnet0"], self.names_without_the_machines(nics))
        for nic in nics:
            for name, kind in ATTRIBUTES.items():
                self.assertIsInstance(nic[name], kind, nic["name"] + ": " + name)
            self.assertRegex(nic["address"], "^" + ADDRESS + "$")
            self.assertEqual(nic is nics[0], nic["default"])
        self.assertGreaterEqual(nics[0]["max_transfer"], 65600)
        self.assertEqual(7, nics[0]["reliability_mask"])

    def test_agent_providers_settings_links(self):
        everything = self.parsed("-a")
        self.assertEqual("", everything["agent"]["error"])
        self.assertGreater(everything["agent"]["pid"], 0)
        self.assertIn("paramnet", [p["name"] for p in everything["providers"] if not p["error"]])
        self.assertIn({"section": "paramnet", "key": "nics", "value": "1", "origin": "default"},
                      [{k: s[k] for k in ("section", "key", "value", "origin")} for s in everything["settings"]])
        self.assertIn("lo", [link["name"] for link in everything["links"]])
        self.assertEqual([], everything["config_problems"])

    def test_agrees_with_the_text(self):
        self.assertIn(self.parsed()["nics"][0]["address"], run().stdout)

    def test_without_an_agent_is_still_json(self):
        result = run("--json", VIADUCT_AGENT=NOWHERE)
        self.assertEqual(NO_AGENT, result.returncode)
        self.assertIn(NOWHERE, json.loads(result.stdout)["agent"]["error"])

    def test_with_names_that_are_no_text(self):
        result = eventually.run([VIPINFO, "--json", b"\xff\xfe9"], LIMIT, text=False)
        self.assertEqual(PROBLEM, result.returncode)
        self.assertIsNone(json.loads(result.stdout)["opens"])


class Names(Case):
    def test_names_of_former_times_open_the_default_nic(self):
        for name in ("/dev/via_lo", "/dev/via_eth0", "/etc/via_lo", "/dev/clanvi0", "nic0", "VINIC0", "paramnet0"):
            self.expect(run(name), WELL, r"\Aparamnet0 ")
            self.assertEqual("paramnet0", json.loads(run("--json", name).stdout)["opens"]["name"])

    def test_numbers_beyond_the_nics_present_fail(self):
        for name in ("VINIC1", "nic1", "/dev/via_eth1", "paramnet1"):
            self.expect(run(name), PROBLEM, r"\A\Z", re.escape(f'VipOpenNic("{name}") would fail: '))
            failure = json.loads(run("--json", name).stdout)
            self.assertIsNone(failure["opens"])
            self.assertNotEqual("", failure["error"])

    def test_names_of_the_configuration_are_this_programs_own(self):
        two = {"VIADUCT_PARAMNET_NICS": "2", **agent("-names")}
        mine = {"VIADUCT_NICS": "/dev/via_eth0=paramnet1,mine=paramnet1,broken=paramnet7,gone=verbs9"}
        for name in ("/dev/via_eth0", "mine"):
            self.expect(run(name, **two, **mine), WELL, r"\Aparamnet1 ")
        for name in ("broken", "gone"):
            self.expect(run(name, **two, **mine), PROBLEM, r"\A\Z", re.escape(f'VipOpenNic("{name}") would fail: '))
        self.expect(run("/dev/via_eth0", **two), WELL, r"\Aparamnet0 ")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "names.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('[nics]\n"/dev/via_eth0" = "paramnet1"\n')
            other = {"VIADUCT_PARAMNET_NICS": "2", **agent("-names-by-file")}
            self.expect(run("/dev/via_eth0", VIADUCT_CONFIG=path, **other), WELL, r"\Aparamnet1 ")
            self.expect(run("/dev/via_eth0", **other), WELL, r"\Aparamnet0 ")

    def test_an_unknown_name_opens_the_default_nic_and_says_so(self):
        self.expect(run("nosuch"), PROBLEM, r"\Aparamnet0 ", r'"nosuch": unknown name, opens the default paramnet0 because [^\n]*\n\Z')
        self.expect(run("udpp0"), PROBLEM, r"\Aparamnet0 ", r"did you mean udp0\?")
        self.assertIn("unknown name", json.loads(run("--json", "nosuch").stdout)["unknown"])
        self.assertNotIn("unknown", json.loads(run("--json", "nic0").stdout))
        self.expect(run("nosuch", VIADUCT_NAMES_STRICT="true", **agent("-strict")), PROBLEM, "", "would fail")

    def test_a_name_too_long_fails(self):
        self.expect(run("n" * 300), PROBLEM, r"\A\Z", "longer than 255")

    def test_a_name_without_an_agent(self):
        self.expect(run("nic0", VIADUCT_AGENT=NOWHERE), NO_AGENT, r"\A\Z", re.escape(NOWHERE))


class Waiters(Case):
    def test_waiters_are_shown_with_address_time_and_process(self):
        own = agent("-waiters")
        program = os.path.join(os.path.dirname(VIPINFO), "vipping")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VIADUCT_")}
        with subprocess.Popen([program, "--server"], env={**environment, **own}, stdout=subprocess.PIPE, text=True) as server:
            try:
                server.stdout.readline()
                shown = eventually.eventually("the server waits", lambda: json.loads(run("--waiters", "--json", **own).stdout)["waiters"], [server.pid])
                self.assertEqual({(server.pid, os.geteuid(), "paramnet0", "")}, {(w["pid"], w["uid"], w["nic"], w["for"]) for w in shown})
                self.expect(run("--waiters", **own), WELL, re.escape(shown[0]["at"]) + r"  for [0-9.]+ s, process %d \(vipping\) of user" % server.pid)
            finally:
                server.terminate()
        eventually.eventually("no call waits", lambda: "\n  none\n" in run("--waiters", **own).stdout)


class ExitCodes(Case):
    def test_wrong_use(self):
        self.expect(run("--nonsense"), USAGE, "", "--nonsense")
        self.expect(run("one", "two"), USAGE, "", "two")

    def test_no_agent(self):
        self.expect(run(VIADUCT_AGENT=NOWHERE), NO_AGENT, r"\A\Z", re.escape(NOWHERE))


class Doctor(Case):
    def examine(self, *arguments, **variables):
        result = run("--doctor", "--json", *arguments, **variables)
        findings = json.loads(result.stdout)
        self.assertEqual(WELL if findings["healthy"] else PROBLEM, result.returncode)
        self.assertEqual(not findings["healthy"], any(f["verdict"] == "problem" for f in findings["findings"]))
        for finding in findings["findings"]:
            self.assertEqual(finding["verdict"] != "ok", finding["cure"] != "", finding)
        return findings

    def test_finds_this_machine_well_or_says_what_to_do(self):
        findings = self.examine()
        problems = [f for f in findings["findings"] if f["verdict"] == "problem"]
        # A low limit is the machine's business; everything else has to be well where the tests run.
        self.assertEqual([], [f for f in problems if f["subject"] not in ("open files", "memory mappings")])
        self.assertEqual("ok", self.finding(findings, "message")["verdict"])
        self.assertEqual("ok", self.finding(findings, "kernel agent")["verdict"])

    def test_says_the_same_in_words(self):
        result = run("--doctor")
        self.expect(result, 0 if "all well" in result.stdout else 1, r"\nok +message +[^\n]*\n(.*\n)*")

    def test_sends_its_message_through_the_nic_named(self):
        findings = self.examine("VINIC1", VIADUCT_PARAMNET_NICS="2", **agent("-doctor-two"))
        self.assertIn("paramnet1", self.finding(findings, "message")["finding"])
        self.assertEqual("problem", self.finding(self.examine("VINIC5"), "message")["verdict"])
        gone = self.examine("gone", VIADUCT_NICS="gone=verbs9")
        self.assertEqual("problem", self.finding(gone, "message")["verdict"])

    def test_a_provider_without_a_nic_is_no_host(self):
        found = self.finding(self.examine("paramnet9"), "message")
        self.assertEqual("problem", found["verdict"])
        self.assertIn("provider paramnet offers no NIC paramnet9", found["finding"])
        self.assertIn("paramnet0", self.finding(self.examine("paramnet"), "message")["finding"])
        self.expect(run("acenic0"), PROBLEM, r"\A\Z", r'VipOpenNic\("acenic0"\) would fail: provider acenic offers no NIC acenic0')

    def test_looks_at_another_host_where_the_name_is_no_nic(self):
        for name, found in (("localhost", "name-is-here"), ("no-such-host.invalid", "name-unknown")):
            findings = self.examine(name)
            self.assertEqual(("vipinfo", name), (findings["tool"], findings["host"]))
            self.assertEqual([found], [f["name"] for f in findings["findings"] if f["verdict"] == "problem"])
            self.assertNotIn("names-differ", [f.get("name") for f in findings["findings"]])
        known = self.examine("localhost", VIADUCT_NICS="localhost=paramnet0", **agent("-doctor-alias"))
        self.assertEqual("ok", self.finding(known, "message")["verdict"])
        strict = self.examine("localhost", VIADUCT_NAMES_STRICT="true", **agent("-doctor-strict"))
        self.assertEqual("localhost", strict["host"])

    def test_a_name_of_nothing_is_no_nic_that_is_well(self):
        for name in ("fe80::", "/dev/nothing"):
            found = self.finding(self.examine(name), "message")
            self.assertEqual("problem", found["verdict"], name)
            self.assertIn("unknown name, opens the default paramnet0", found["finding"])

    def test_low_limit_of_files(self):
        command = 'ulimit -n 100; exec "$0" --doctor --json'
        result = eventually.run(["sh", "-c", command, VIPINFO], LIMIT)
        found = self.finding(json.loads(result.stdout), "open files")
        self.assertEqual((PROBLEM, "problem"), (result.returncode, found["verdict"]))
        self.assertIn("ulimit -n", found["cure"])

    def test_one_processor(self):
        first = min(os.sched_getaffinity(0))
        result = eventually.run([VIPINFO, "--doctor", "--json"], LIMIT, preexec_fn=lambda: os.sched_setaffinity(0, {first}))
        self.assertEqual("note", self.finding(json.loads(result.stdout), "processors")["verdict"])

    def test_no_agent(self):
        found = self.finding(self.examine(VIADUCT_AGENT=NOWHERE), "kernel agent")
        self.assertEqual("problem", found["verdict"])
        self.assertIn(NOWHERE, found["finding"])
        self.assertIn("--socket " + NOWHERE, found["cure"])

    def test_a_default_provider_that_is_not_there(self):
        subject = 'names.default_provider = "acenik"'
        found = self.finding(self.examine(VIADUCT_NAMES_DEFAULT_PROVIDER="acenik", **agent("-absent")), subject)
        self.assertEqual(("problem", "there is no such provider; did you mean acenic?"), (found["verdict"], found["finding"]))

    def test_an_agent_with_other_settings(self):
        # The agent stays between the two, also where a busy machine takes its time.
        other = dict(agent("-settings"), VIADUCT_AGENT_LINGER_MS="60000")
        self.examine(**other)
        found = self.finding(self.examine(VIADUCT_PARAMNET_NICS="2", **other), "agent's configuration")
        self.assertEqual("problem", found["verdict"])
        self.assertIn("renew it", found["cure"])

    def test_mistake_in_the_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "viaduct.toml")
            with open(path, "w", encoding="utf-8") as f:
                f.write("[paramnet]\nnisc = 2\n")
            found = self.finding(self.examine(VIADUCT_CONFIG=path), "configuration")
            self.assertIn("nisc", found["finding"])
            self.assertIn("nics", found["finding"] + found["cure"])


class BrokenProviders(Case):
    """Files in VIADUCT_PROVIDER_PATH that are no providers."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=temporary.for_programs())
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, name, contents):
        with open(os.path.join(self.folder, name), "wb") as f:
            f.write(contents)

    def library(self, name):
        """A library that can be loaded and is no provider: libvipl itself."""
        folder = os.path.join(os.path.dirname(VIPINFO), "..")
        for place, _, names in os.walk(os.path.join(folder, "lib")):
            for candidate in names:
                if candidate.startswith("libvipl.so.1."):
                    shutil.copy(os.path.join(place, candidate), os.path.join(self.folder, name))
                    return
        self.fail("no libvipl beside " + VIPINFO)

    def rejected(self, name):
        result = run("-p", "--json", VIADUCT_PROVIDER_PATH=self.folder, **agent("-broken-" + name))
        self.assertEqual(WELL, result.returncode, result.stderr)
        everything = json.loads(result.stdout)
        row = [p for p in everything["providers"] if p["name"] == name]
        self.assertEqual(1, len(row))
        self.assertIn(self.folder, row[0]["path"])
        self.assertNotEqual("", row[0]["error"])
        self.assertNotEqual("", row[0]["cure"])
        self.assertEqual(["paramnet0"], self.names_without_the_machines(everything["nics"]), "the sound one is there")
        return row[0]["error"]

    def test_not_an_object(self):
        self.put("hollow.so", b"this is no shared object\n")
        self.assertIn("cannot be loaded", self.rejected("hollow"))

    def test_an_object_that_is_no_provider(self):
        self.library("other.so")
        self.assertIn("no provider", self.rejected("other"))

    def test_the_doctor_reports_it_with_a_cure(self):
        self.put("hollow.so", b"")
        result = run("--doctor", VIADUCT_PROVIDER_PATH=self.folder, **agent("-doctor-broken"))
        self.expect(result, PROBLEM, r"\nPROBLEM provider hollow +[^\n]*\n +cure: [^\n]+\n")
        self.assertRegex(result.stdout, r"\nok +message ", "the sound provider works all the same")

    def test_text_names_reason_and_cure(self):
        self.put("hollow.so", b"")
        self.expect(run("-p", VIADUCT_PROVIDER_PATH=self.folder, **agent("-text-broken")), WELL,
                    r"  hollow [^\n]*\n +rejected: [^\n]+\n +cure: [^\n]+\n")


if __name__ == "__main__":
    VIPINFO = os.path.abspath(sys.argv.pop(1))
    os.environ.setdefault("VIADUCT_AGENT", "@viaduct-vipinfo-test-%d" % os.getpid())
    unittest.main(verbosity=2)
