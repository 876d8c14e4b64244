# SPDX-License-Identifier: BSD-2-Clause
"""Mutants of acenic: which host a frame on a shared port is for, what a port is, lent memory."""

from mutant import Mutant

ACENIC = "providers/acenic/"
PACKET = "providers/packet/"

MUTANTS = [
    Mutant(
        "memif-event-taken", (), "a memif socket is kept from the driver that has still to serve its event",
        ACENIC + "memif_control.cpp",
        "    if (driver_fd < 0 || has_event(driver_fd)) return false;\n", "    if (driver_fd < 0) return false;\n",
        ("unit AcenicMemifControl.ASocketWithAnEventStaysWithTheDriver",),
    ),
    Mutant(
        "memif-still-watched", (), "DPDK's thread waits for events of a memif socket that the port has",
        ACENIC + "memif_control.cpp",
        "|| !stop_watching(driver_fd)) return false;", ") return false;",
        ("unit AcenicMemifControl.TheEndOfThePeerIsAnEventOfThePortAndNotOfTheDriver",),
    ),
    Mutant(
        "sent-as-another-host", (), "a host sends frames of the links of another",
        ACENIC + "daemon/steering.cpp",
        "    if (slot_of(g.source) != slot) return false;\n", "",
        ("unit AcenicSteering.AHostSendsAsItselfOnly",),
    ),
    Mutant(
        "answered-as-another-host", (), "a host answers requests as another",
        ACENIC + "daemon/steering.cpp",
        "return g.source == 0 || slot_of(g.source) == slot;", "return true;",
        ("unit AcenicSteering.AHostSendsAsItselfOnly",),
    ),
    Mutant(
        "withdrawal-to-a-link", (), "a host sends to any link under the name of a withdrawal",
        ACENIC + "daemon/steering.cpp",
        "return g.source == 0 && g.destination == 0;", "return true;",
        ("unit AcenicSteering.AHostSendsAsItselfOnly",),
    ),
    Mutant(
        "short-accept-read", (), "an accept is read beyond its end",
        ACENIC + "daemon/steering.cpp",
        "    if (connects && frame.size() < wire::kHeaderBytes + wire::kConnectBytes) return false;\n", "",
        ("unit AcenicSteering.AHostSendsAsItselfOnly",),
    ),
    Mutant(
        "listener-refused-by-another", (), "a host says for another that it does not listen",
        PACKET + "requests.cpp",
        "match == matches_.end() || match->second.slot != slot", "match == matches_.end() || slot == kNoSlot",
        ("unit AcenicSteering.NoMatchOfAListenerThatHasLeftDoesNotCount",),
    ),
    Mutant(
        "damaged-withdrawal", (), "a damaged withdrawal takes a request back",
        ACENIC + "daemon/steering.cpp",
        "    if (wire::read_frame(frame, &f) != wire::Flaw::none) return {};\n",
        "    (void)wire::read_frame(frame, &f);\n",
        ("unit AcenicSteering.OnlyTheSenderOfARequestTakesItBackAndByAWholeFrame",),
    ),
    Mutant(
        "withdrawal-of-another-host", (), "any host takes a request back that a host has",
        PACKET + "requests.cpp",
        "if (attempt.nonce == nonce && attempt.from == from) return", "if (attempt.nonce == nonce) return",
        ("unit AcenicSteering.OnlyTheSenderOfARequestTakesItBackAndByAWholeFrame",),
    ),
    Mutant(
        "withdrawal-of-a-kept-request", (), "any host takes a request back that is kept",
        PACKET + "requests.cpp",
        "return w.nonce == nonce && w.request.from == from; });", "return w.nonce == nonce; });",
        ("unit AcenicSteering.OnlyTheSenderOfARequestTakesItBackAndByAWholeFrame",),
    ),
    Mutant(
        "kept-request-of-another-host", (), "a request of another host under the same number is not kept",
        PACKET + "requests.cpp",
        "w.nonce == nonce && w.request.from == from) return;", "w.nonce == nonce) return;",
        ("unit AcenicSteering.RequestsOfTwoHostsUnderOneNumberAreTwo",),
    ),
    Mutant(
        "kept-requests-unlimited", (), "any number of requests without a waiter is kept",
        PACKET + "requests.cpp",
        "    if (waiting_.size() == kMostWaiting) erase_one_waiting();\n", "",
        ("unit AcenicSteering.OfManyRequestsWithoutAWaiterTheLastOnesAreKept",),
    ),
    Mutant(
        "requests-of-a-dead-host", (), "requests go on to a host that has left",
        PACKET + "requests.cpp",
        "    erase_matches([&](const Match& m) { return m.slot == slot; });\n", "",
        ("unit AcenicSteering.WhatAHostHadGoesToTheOthersWhenItHasLeft",),
    ),
    Mutant(
        "frames-before-joining", (), "a host takes frames before it has joined",
        ACENIC + "daemon/steering.cpp",
        "slot != kNoSlot && alive_[slot]", "slot != kNoSlot",
        ("unit AcenicSteering.AHostThatHasNotJoinedTakesNoFrames",),
    ),
    Mutant(
        "orphan-out-of-sequence", (), "the connections of a dead host are ended out of their sequence",
        ACENIC + "daemon/steering.cpp",
        "g.sequence + (wire::is_sequenced(g.kind) ? 1 : 0)", "g.sequence",
        ("unit AcenicSteering.TheConnectionsOfADeadHostAreKnown",),
    ),
    Mutant(
        "mtu-beyond-most", (), "a port may have any MTU",
        ACENIC + "port_spec.cpp",
        " || port->mtu > kMostMtu)", ")",
        ("unit AcenicPorts.ThatCannotBeAreRefusedWithACure",),
    ),
    Mutant(
        "mtu-of-letters", (), "an MTU may be followed by anything",
        ACENIC + "port_spec.cpp",
        " || end != mtu.data() + mtu.size() ||", " ||",
        ("unit AcenicPorts.ThatCannotBeAreRefusedWithACure",),
    ),
    Mutant(
        "zero-copy-to-a-driver-that-keeps", (), "memory is lent to a driver that keeps it",
        ACENIC + "port_spec.cpp",
        "port->zero_copy = argument(port->arguments, \"zero-copy\") != \"yes\";", "port->zero_copy = true;",
        ("unit AcenicPorts.ZeroCopyIsOnlyForDriversThatCopyWhileTheySend",),
    ),
    Mutant(
        "port-taken-twice", (), "two processes have one port",
        ACENIC + "port_lock.cpp",
        "    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), bytes) == 0) return socket;", "    if (bytes != 0) return socket;",
        ("unit AcenicOnlyOne.APortIsTakenOnceUntilItIsLetGo",),
    ),
    Mutant(
        "ports-of-a-driver-are-one", (), "all ports of one driver are taken for one",
        ACENIC + "port_lock.cpp",
        "    for (const char c : spec.text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001B3;",
        "    for (const char c : spec.driver) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001B3;",
        ("unit AcenicOnlyOne.PortsWithoutAnInterfaceAreToldApartByAllOfTheirText",),
    ),
    Mutant(
        "zero-copy-pieces-over-each-other", (), "pieces of payload are copied over each other",
        ACENIC + "zero_copy_tx.cpp",
        "        frame->data_len = static_cast<uint16_t>(frame->data_len + part->data_len);\n", "",
        ("unit AcenicZeroCopyTx.WhatHasToWaitIsCopiedInWholeAndInOrder",),
    ),
    Mutant(
        "zero-copy-memory-kept", (), "lent memory is not let go",
        ACENIC + "zero_copy_tx.cpp",
        "    ::rte_pktmbuf_free(frame->next);\n", "",
        ("unit AcenicZeroCopyTx.TheTailOfWhatHasBeenSentIsFreedUntouched",),
    ),
]
