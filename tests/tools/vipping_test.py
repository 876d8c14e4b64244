#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipping_test.py PATH-OF-VIPPING"""
import signal
import subprocess

import tool
from eventually import communicated
from tool import NO_NIC, NOWHERE, PROBLEM, USAGE, WELL, Case, Server, run


class Client(Case):
    def test_shows_each_answer_and_a_summary(self):
        with Server() as server:
            result = run("-c", "3", "-i", "0.01", "localhost")
            self.expect(result, WELL, r"\AVIPPING localhost \(([0-9a-f]{2}:){5}[0-9a-f]{2}\) through paramnet0: 56 bytes\n"
                        r"(56 bytes: seq=\d time=[\d.]+ us\n){3}\n--- localhost vipping statistics ---\n"
                        r"3 messages sent, 3 answered, 0% lost, \d+ ms\n"
                        r"round trip min/avg/max/mdev = ([\d.]+/){3}[\d.]+ us\n"
                        r"round trip 50%/90%/99%/99.9% = ([\d.]+/){3}[\d.]+ us\n\Z")
            server.read_until("has left")
            self.assertEqual(WELL, server.interrupt())
            # A client may come before the server answers on the second NIC, too.
            udp = r"(vipping: answering on udp\d+ [^\n]* discriminator vipping\n)*"
            self.assertRegex("".join(server.lines), r"\Avipping: answering on paramnet0 [^\n]* discriminator vipping\n" + udp +
                             r"vipping: \S+ has come\n" + udp + r"vipping: \S+ has left after 3 messages\n\Z")

    def test_summary_as_json_agrees_with_itself(self):
        with Server():
            for options in ((), ("-p",), ("-b", "65536"), ("-b", "16"), ("-r", "reception"), ("-r", "unreliable")):
                seen = self.parsed("-f", "-c", "200", *options)
                self.assertEqual((200, 200, 0, 0, ""), tuple(seen[k] for k in ("sent", "answered", "lost", "damaged", "error")))
                trip = seen["round_trip_us"]
                order = [trip[k] for k in ("min", "p50", "p90", "p99", "p99.9", "max")]
                self.assertEqual(sorted(order), order)
                self.assertGreater(trip["min"], 0)
                self.assertTrue(trip["min"] <= trip["avg"] <= trip["max"])
                self.assertLessEqual(trip["avg"] * 200 / 1e6, seen["seconds"] * 1.01)

    def test_several_clients_at_once(self):
        with Server():
            clients = [subprocess.Popen([tool.TOOL, "-f", "-q", "-c", "300"], env=tool.environment(), text=True,
                                        stdout=subprocess.PIPE) for _ in range(4)]
            for client in clients:
                output, _ = communicated(client, tool.SECONDS)
                self.assertEqual(WELL, client.returncode)
                self.assertIn("300 messages sent, 300 answered", output)

    def test_interrupted_prints_what_it_has(self):
        with Server():
            # No answer is under way between the first message and the second.
            client = subprocess.Popen([tool.TOOL, "-i", "600"], env=tool.environment(), text=True, stdout=subprocess.PIPE)
            client.stdout.readline()
            self.assertIn("time=", client.stdout.readline())
            client.send_signal(signal.SIGINT)
            output, _ = communicated(client, tool.SECONDS)
            self.assertIn("1 messages sent, 1 answered, 0% lost", output)
            self.assertEqual(WELL, client.returncode)

    def test_address_instead_of_a_name(self):
        with Server("-D", "elsewhere") as server:
            address = server.lines[0].split()[4].rstrip(",")
            self.assertEqual(address, self.parsed("-c", "1", "-D", "elsewhere", address)["remote"])

    def test_a_server_that_dies_is_noticed(self):
        with Server() as server:
            client = subprocess.Popen([tool.TOOL, "-i", "0.02"], env=tool.environment(), text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
            client.stdout.readline()
            client.stdout.readline()
            server.process.kill()
            output, errors = communicated(client, tool.SECONDS)
            self.assertEqual(PROBLEM, client.returncode)
            self.assertRegex(errors, r"vipping: the (server has ended the connection|connection has ended)")
            self.assertIn("vipping statistics", output)


class TheServer(Case):
    def test_once_ends_with_its_first_client(self):
        with Server("-1") as server:
            self.expect(run("-c", "1", "-q"), WELL, "1 answered")
            self.assertEqual(WELL, server.wait())

    def test_a_killed_client_is_taken_away(self):
        with Server() as server:
            client = subprocess.Popen([tool.TOOL, "-i", "0.02"], env=tool.environment(), text=True, stdout=subprocess.PIPE)
            client.stdout.readline()
            client.stdout.readline()
            client.kill()
            client.wait()
            client.stdout.close()
            server.read_until("has left after ")
            self.expect(run("-c", "1", "-q"), WELL, "1 answered")


class Mistakes(Case):
    def test_no_server(self):
        self.expect(run("-w", "0", "localhost"), PROBLEM, "", r"\Avipping: no connection through paramnet0 to [0-9a-f:]+/vipping: VIP_NO_MATCH")

    def test_unknown_host(self):
        self.expect(run("no-such-host.invalid"), PROBLEM, "", r'\Avipping: no address of "no-such-host.invalid" on paramnet0')

    def test_unknown_nic(self):
        for role in ((), ("-s",)):
            self.expect(run("-d", "VINIC7", *role), NO_NIC, "", r'\Avipping: cannot open the NIC "VINIC7": [^\n]*vipinfo')

    def test_no_agent(self):
        self.expect(run(VIADUCT_AGENT=NOWHERE), NO_NIC, "", r"\Avipping: cannot open the NIC ")

    def test_wrong_use(self):
        for options in (("--nonsense",), ("-b", "15"), ("-b", "65537"), ("-c", "0"), ("-r", "perhaps"), ("-i", "x"),
                        ("-s", "somewhere")):
            self.expect(run(*options), USAGE, "", r"\S")

    def test_a_discriminator_too_long(self):
        self.expect(run("-D", "x" * 300), USAGE, "", "longer than")

    def test_help_and_version(self):
        self.expect(run("--help"), WELL, "--discriminator")
        self.expect(run("--version"), WELL, r"\Avipping \(Viaduct\) \d+\.\d+")


if __name__ == "__main__":
    tool.main()
