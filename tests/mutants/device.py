# SPDX-License-Identifier: BSD-2-Clause
"""Mutants of the MPI device."""

from mutant import Mutant

VIA = "mpi-adi/transport/via/"

MUTANTS = [
    Mutant(
        "sequence-unchecked", ("C40",), "any sequence number is taken",
        VIA + "receive.cpp",
        "    if (h->sequence != (free_packet ? 0 : c->next_packet_expected)) return false;\n", "",
        ("adi_module_test via faulty",), quick=True,
    ),
    Mutant(
        "preserved-credits-spent", ("C33",), "eager data takes the last credits",
        VIA + "credits.hpp",
        "return remote_ - packets >= rules_.preserve;", "return remote_ - packets >= 0;",
        ("adi_module_test via preserved", "adi_unit_test Credits.LeaveTheLastOnesToControlPackets"),
    ),
    Mutant(
        "nothing-announced", ("C57",), "a request announces no receives",
        VIA + "rendezvous.cpp",
        "    p->descriptor_required = packets_of(req->r_bytes);", "    p->descriptor_required = 0;",
        ("adi_module_test via announced",),
    ),
    Mutant(
        "transfer-uncapped", ("C58",), "one transfer moves all of a message",
        VIA + "move.cpp",
        "    size_t now = std::min<size_t>(viadev.maxtransfersize, t->end - t->offset);", "    size_t now = t->end - t->offset;",
        ("adi_module_test via beyond-a-transfer-rput", "adi_module_test via beyond-a-transfer-rget"),
    ),
    Mutant(
        "last-come-first", ("C52",), "the newest long message is moved first",
        VIA + "move.cpp",
        "    t->next = nullptr;\n    (c->shandle_head == nullptr ? c->shandle_head : c->shandle_tail->next) = t;\n    c->shandle_tail = t;",
        "    if (c->shandle_head == nullptr) c->shandle_tail = t;\n    t->next = c->shandle_head;\n    c->shandle_head = t;",
        ("adi_module_test via one-by-one",),
    ),
    Mutant(
        "depth-unclamped", ("C8",), "more receives than a queue of the NIC has",
        VIA + "device.cpp",
        "room && depth > 4) {", "room && depth > 4 && room < 0) {",
        ("adi_module_test via deep",),
    ),
    Mutant(
        "flow-list-twice", ("C54",), "a connection may be twice in the flow list",
        VIA + "device.hpp",
        "    if (c->inflow) return;\n", "",
        ("adi_module_test via random-depth-1",),
    ),
]
