# SPDX-License-Identifier: BSD-2-Clause
"""Mutants of the MPI device."""

from mutant import Mutant

VIA = "mpi-adi/transport/via/"
PROTOCOL = "mpi-adi/transport/protocol/"
RAILS = "mpi-adi/transport/multirail/"

MUTANTS = [
    Mutant(
        "polls-give-way", (), "polls give the processor away with the engine's lock held",
        VIA + "nic.cpp",
        "rc = VipxSetGiveWay(handle, VIP_FALSE);", "rc = VipxSetGiveWay(handle, VIP_TRUE);",
        ("ctest mpi.yields.via",), targets=("viaduct_runtime", "viaduct_mpi_yields"),
    ),
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
        ("adi_module_test via preserved", "adi_unit_test Credits.LeaveTheLastOnesToControlPackets"), quick=True,
    ),
    Mutant(
        "nothing-announced", ("C57",), "a request announces no receives",
        VIA + "lane.cpp",
        "    p->announced = frame.type == FrameType::request ? packets_of(frame.length) : 0;", "    p->announced = 0;",
        ("adi_module_test via announced",), quick=True,
    ),
    Mutant(
        "transfer-uncapped", ("C58",), "one transfer moves all of a message",
        VIA + "lane.cpp",
        "    size_t now = std::min<size_t>(nic.attributes.MaxTransferSize, most);", "    size_t now = most;",
        ("adi_module_test via beyond-a-transfer-rput", "adi_module_test via beyond-a-transfer-rget"), quick=True,
    ),
    Mutant(
        "last-come-first", ("C52",), "the newest long message is moved first",
        PROTOCOL + "move.cpp",
        "    t.next = nullptr;\n    (p.moving == nullptr ? p.moving : p.moving_last->next) = &t;\n    p.moving_last = &t;",
        "    if (p.moving == nullptr) p.moving_last = &t;\n    t.next = p.moving;\n    p.moving = &t;",
        ("adi_module_test via one-by-one",), quick=True,
    ),
    Mutant(
        "depth-unclamped", ("C8",), "more receives than a queue of the NIC has",
        VIA + "nic.cpp",
        "room && depth > 4) {", "room && depth > 4 && room < 0) {",
        ("adi_module_test via deep",), quick=True,
    ),
    Mutant(
        "flow-list-twice", ("C54",), "a connection may be twice in the flow list",
        VIA + "post.hpp",
        "    if (c->inflow) return;\n", "",
        ("adi_module_test via random-depth-1",),
    ),
    Mutant(
        "any-source", ("C40",), "a packet may name another process as its sender",
        VIA + "receive.cpp",
        "    if (h->source != c->peer.rank) return false;\n", "",
        ("adi_module_test via faulty",),
    ),
    Mutant(
        "series-interrupted", ("C53",), "another message may begin in the middle of a series",
        PROTOCOL + "receive.cpp",
        "if (p.upper == nullptr) return frame.type == FrameType::next;", "if (p.upper == nullptr) return true;",
        ("adi_module_test via faulty",), quick=True,
    ),
    Mutant(
        "series-unnumbered", ("C53",), "packets of a series may come in any order",
        VIA + "receive.cpp",
        "            if (reinterpret_cast<const Next*>(h)->number != c->part_in++) return false;\n", "",
        ("adi_module_test via faulty",),
    ),
    Mutant(
        "noops-answered-at-will", ("C41",), "a peer may answer noops that were not sent",
        VIA + "credits.hpp",
        "        if (static_cast<uint8_t>(free_had - free_answered_) > unanswered()) return false;\n", "",
        ("adi_module_test via faulty",),
    ),
    Mutant(
        "credits-told-twice", ("C41",), "what was told of receives is told again",
        VIA + "credits.hpp",
        "        local_ -= reported;\n", "",
        ("adi_unit_test Credits.*",),
    ),
    Mutant(
        "credit-not-spent", ("C33",), "a packet costs nothing",
        VIA + "credits.hpp",
        "void spend() { --remote_; }", "void spend() {}",
        ("adi_module_test via preserved",),
    ),
    Mutant(
        "noops-uncapped", (), "the other side's reserve may be overrun",
        VIA + "credits.hpp",
        "bool may_send_noop() const { return unanswered() < peer_reserve_ - 1; }", "bool may_send_noop() const { return true; }",
        ("adi_unit_test Credits.LeaveTheLastOfTheReserveToTheClosingPacket",),
    ),
    Mutant(
        "long-data-takes-all-credits", ("C37",), "packets of long messages take the preserved credits",
        VIA + "credits.hpp",
        "return remote_ > rules_.preserve;", "return remote_ > 0;",
        ("adi_module_test via answers",),
    ),
    Mutant(
        "long-data-unnumbered", ("C37",), "packets of a long message may come in any order",
        PROTOCOL + "move.cpp",
        "    if (static_cast<uint32_t>(frame.length) != static_cast<uint32_t>(t->offset)) return false;\n", "",
        ("adi_module_test via data",), quick=True,
    ),
    Mutant(
        "long-data-without-end", ("C37",), "a long message may have more bytes than it said",
        PROTOCOL + "move.cpp",
        "frame.bytes == 0 || frame.bytes > t->length - t->offset", "frame.bytes == 0",
        ("adi_module_test via data",),
    ),
    Mutant(
        "written-unasked", ("C56",), "a finish ends a receive that was not to be written into",
        PROTOCOL + "move.cpp",
        "    if (t->method != Method::put || frame.length == 0 ||", "    if (frame.length == 0 ||",
        ("adi_module_test via data",),
    ),
    Mutant(
        "reply-longer-than-message", ("C56",), "a reply may ask for more than there is",
        PROTOCOL + "rendezvous.cpp",
        "t->replied || frame.length > t->length) return false;", "t->replied) return false;",
        ("adi_module_test via answers",),
    ),
    Mutant(
        "replied-twice", ("C56",), "a request may be answered again",
        PROTOCOL + "rendezvous.cpp",
        "t->replied || frame.length > t->length) return false;", "frame.length > t->length) return false;",
        ("adi_module_test via answers",),
    ),
    Mutant(
        "chosen-unoffered", ("C55",), "a reply may choose what was not offered",
        PROTOCOL + "rendezvous.cpp",
        "(method == Method::both && t->method == Method::both && frame.length != 0)", "method == Method::both",
        ("adi_module_test via answers",),
    ),
    Mutant(
        "cancelled-unasked", ("C70",), "a peer may take back what was not recalled",
        PROTOCOL + "cancel.cpp",
        "    if (t == nullptr || !t->cancelling) return false;", "    if (t == nullptr) return false;",
        ("adi_module_test via answers",),
    ),
    Mutant(
        "request-by-address", ("P28",), "a name of a request comes back with its place",
        "mpi-adi/transport/adi/request_ids.hpp",
        "        ++slot.generation;\n", "",
        ("adi_unit_test RequestIds.AreNeverAddressesAndNeverComeBack",),
    ),
    Mutant(
        "stripe-unclamped", ("P48",), "a stripe may be as short as its share",
        RAILS + "stripe.cpp",
        "    bytes = std::clamp(bytes, least, most);\n", "    bytes = std::min(bytes, most);\n",
        ("adi_unit_test Stripes.AreNeitherBelowTheLeastNorAboveTheMost",), quick=True,
    ),
    Mutant(
        "frame-twice", ("P52",), "a frame that had come before is handed on again",
        RAILS + "order.cpp",
        "    if (ahead > UINT32_MAX / 2) return true;\n    if (ahead >= kWindow) return false;", "    if (ahead >= kWindow) return true;",
        ("adi_module_test rails damaged",),
    ),
    Mutant(
        "lost-frames-forgotten", ("P52",), "what a broken NIC has not brought over is not sent again",
        RAILS + "failover.cpp",
        "            k.state = Kept::to_send;\n            k.written = 0;\n            ++to_send_;", "            confirm(k);",
        ("adi_module_test rails flapping",),
    ),
    Mutant(
        "broken-read-forgotten", ("P52",), "a read that a broken NIC has begun counts as done",
        RAILS + "failover.cpp",
        "            redo_.push_back({&t, part->at, part->bytes});", "            --t.writes;",
        ("adi_module_test rails flapping-rget",),
    ),
    Mutant(
        "report-unchecked", ("P52",), "a peer may tell of frames that were not sent",
        RAILS + "failover.cpp",
        "        if ((report.received[bit / 8] >> bit % 8 & 1) != 0) return false;\n", "",
        ("adi_module_test rails damaged",),
    ),
    Mutant(
        "had-unchecked", ("P52",), "a peer may have had more frames than were sent",
        RAILS + "order.cpp",
        "    if (more > next_ - oldest_) return more > UINT32_MAX / 2;", "    if (more > next_ - oldest_) return true;",
        ("adi_module_test rails damaged",),
    ),
    Mutant(
        "report-of-another", ("P52",), "a report may be of another connection",
        RAILS + "failover.cpp",
        "frame.bytes != sizeof report || frame.sreq != link.their_number", "frame.bytes != sizeof report",
        ("adi_module_test rails damaged",),
    ),
]
