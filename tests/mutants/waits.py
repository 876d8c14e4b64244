# SPDX-License-Identifier: BSD-2-Clause
"""Mutants of code that waits: a wake-up that is lost, a deadline that is not kept, a timer that is never armed. Most of the
tests that kill them move the clock."""

from mutant import Mutant

MUTANTS = [
    Mutant(
        "sleep-of-half-the-time", (), "a sleep on a word of memory ends at half of its time",
        "core/sync/futex.cpp",
        "        limit = timespec_of(timeout_ns);\n", "        limit = timespec_of(timeout_ns / 2);\n",
        ("unit Futex.WaitsForAWakeOrTheTimeoutAndKeepsErrno",),
    ),
    Mutant(
        "holder-not-awaited", (), "a thread gives up at once where another one holds the ring of failures",
        "core/stats/failures.cpp",
        "            if (now_ns() >= end) break;\n", "            break;\n",
        ("unit HeldFailures.AWriterWaitsForTheHolder", "unit HeldFailures.AReaderWaitsForTheHolder"),
    ),
    Mutant(
        "handler-thread-not-woken", (), "a report does not wake the handler thread",
        "vipl/dispatcher.cpp",
        "    poked_ = true;\n    changed_.notify_all();\n", "    poked_ = true;\n",
        ("unit NicFailedTest.BreaksEveryConnectionAndIsToldOnce",),
    ),
    Mutant(
        "deadline-at-the-next-try", (), "a request looks at its deadline only when it is repeated",
        "providers/wire/link.cpp",
        "            return std::min(next_try_, deadline_);\n", "            return next_try_;\n",
        ("unit WireConnect.ADeadHostEndsInTimeoutAtTheDeadline",),
    ),
    Mutant(
        "grace-of-a-met-request", (), "a request that has met a waiter still ends with its grace",
        "kagent/connection_table.cpp",
        "    set_due(request, e.deadline);\n    Incoming in;\n", "    Incoming in;\n",
        ("unit ConnectionTableTest.WaiterThatComesWithinTheGraceGetsTheRequest",),
    ),
    Mutant(
        "grace-beyond-the-deadline", (), "a request without a waiter has its whole grace, whatever its deadline",
        "kagent/connection_table.cpp",
        "    e.due = std::min(deadline, after(now, rules_.grace_ns));\n    ", "    e.due = after(now, rules_.grace_ns);\n    ",
        ("unit ConnectionTableTest.GraceIsNeverLongerThanTheTimeout",),
    ),
    Mutant(
        "answer-awaited-for-a-second-more", (), "a call waits for its answer of the agent for a second after its deadline",
        "core/agent/link.cpp",
        "        if (remaining_ns(deadline) == 0) break;\n", "        if (remaining_ns(deadline) == 0 && now_ns() > deadline + 1'000'000'000) break;\n",
        ("unit AgentLinkTest.AwaitEndsAtItsDeadlineAndTheRequestStaysOpen",),
    ),
    Mutant(
        "port-tried-once", (), "viaduct-udpd tries once to take the port of a process that has ended",
        "providers/udp/daemon/dead_ports.cpp",
        "        if (!port.socket.valid()) try_to_bind(port, now);\n", "",
        ("unit DeadPortsTest.APortThatIsNotFreeYetIsTriedAgain",),
    ),
    Mutant(
        "greeting-by-the-thread", (), "viaduct-udpd gets the first message of a program only when a thread runs",
        "providers/udp/session_keeper.cpp",
        "    s.greet();\n", "",
        ("unit SessionKeeperTest.TheDaemonHasTheGreetingThoughNoThreadStarts",),
    ),
    Mutant(
        "early-end-unseen", (), "viaduct-udpd does not read the first message of a program that has ended",
        "providers/udp/daemon/server.cpp",
        "    if (speaks_first) on_hello(s);", "    if (speaks_first && !has_ended) on_hello(s);",
        ("unit EarlyEndTest.OfAProgramThatNoParentHasWaitedFor",),
    ),
    Mutant(
        "probe-timer-not-armed", (), "no probe follows a request over verbs",
        "providers/verbs/connect.cpp",
        "    arm_probe_timer(op);\n", "",
        ("unit VerbsConnectProbe.AProbeAsksForTheRequestAtTheSamePort", "unit VerbsConnectProbe.AProbeThatIsLostIsFollowedByAnother"),
    ),
    Mutant(
        "no-grace-for-a-listener", (), "a requester over verbs tries each port once and gives up",
        "providers/verbs/connect.cpp",
        "now_ns() >= op.begun + limit_ns(TimeLimit::verbs_grace))", "now_ns() >= op.begun)",
        ("unit VerbsConnect.FourPortsAreTriedAndThenAllOfThemAgainForAWhile",),
    ),
    Mutant(
        "deadline-of-a-sleeper", (), "a thread that sleeps on a NIC of paramnet sleeps on after its deadline",
        "providers/paramnet/nic.cpp",
        "    int64_t slice = left < 0 || left > longest ? longest : left;\n", "    int64_t slice = longest;\n",
        ("unit Sleepers.KeepTheirDeadline",),
    ),
    Mutant(
        "deadlock-of-ranks-that-move", (), "MPI waits count as a deadlock although a rank has moved something meanwhile",
        "utils/cmpiinfo/standstill.cpp",
        "        rounds_ = 0;\n        return false;\n", "        return false;\n",
        ("viaduct_engine_unit Stuck.IsProvenAnewWhenARankHasMovedSomething",),
    ),
]
