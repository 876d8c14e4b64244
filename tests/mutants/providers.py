# SPDX-License-Identifier: BSD-2-Clause
"""Mutants below the device: paramnet, libvipl."""

from mutant import Mutant

PARAMNET = "providers/paramnet/"

MUTANTS = [
    Mutant(
        "target-tag-ignored", ("B17",), "a write reaches a region of another tag",
        PARAMNET + "rdma.cpp",
        "           ptags_agree(region.ptag, peer.ptag.load(std::memory_order_relaxed)) && length", "           ptags_agree(region.ptag, region.ptag) && length",
        ("conformance RdmaRefusal.OfAWrite",),
    ),
    Mutant(
        "target-end-ignored", (), "a write may go beyond the end of its region",
        PARAMNET + "rdma.cpp",
        "address - region.base <= region.length - length;", "address - region.base <= region.length;",
        ("conformance PastTheRegion.AWriteUpToTheEndOfTheRegionIsPermittedAndOneByteMoreIsNot",),
    ),
    Mutant(
        "remembered-end-ignored", (), "a write goes beyond the end of a region that was written to before",
        PARAMNET + "rdma_direct.cpp",
        "tx.rdma.target.region.covers(target.handle, target.address, s.length)) {", "tx.rdma.target.region.covers(target.handle, target.address, 1)) {",
        ("unit ArenaRdma.AWriteBeyondTheRegionIsRefusedAlsoWhenTheRegionIsRemembered",),
    ),
    Mutant(
        "written-now-end-ignored", (), "the same of a write without descriptor",
        PARAMNET + "rdma_direct.cpp",
        "tx.rdma.target.region.covers(handle, address, total)) [[likely]] {", "tx.rdma.target.region.covers(handle, address, 1)) [[likely]] {",
        ("unit WriteNow.LeavesAloneWhatItMayNotWrite",),
    ),
    Mutant(
        "served-write-unchecked", (), "a line writes into memory that is not for writing",
        PARAMNET + "rdma_served.cpp",
        "        range_permitted(ep, ep.rx.own->busy_recv, m.handle, m.address, total, kRegionRdmaWrite);", "        true;",
        ("unit Hostile.AServedWriteReachesPermittedMemoryOnly",),
    ),
    Mutant(
        "served-vi-enable-ignored", (), "a line writes by a VI that does not allow it",
        PARAMNET + "rdma_served.cpp",
        "        ep.vi->traits.rdma_write != 0 &&\n", "",
        ("unit Hostile.AServedWriteNeedsAViThatAllowsIt",),
    ),
    Mutant(
        "served-read-enable-ignored", (), "a line reads by a VI that does not allow it",
        PARAMNET + "rdma_served.cpp",
        "            ep.vi->traits.rdma_read == 0 ||\n", "",
        ("unit Hostile.AServedReadReachesPermittedMemoryOnly",),
    ),
    Mutant(
        "line-longer-than-message", (), "a line has more than its message",
        PARAMNET + "receive_message.cpp",
        "kind != IncomingMessage::none || n > total) return protocol_violation(ep);", "kind != IncomingMessage::none) return protocol_violation(ep);",
        ("unit Hostile.AMessageHasNoMoreBytesThanItSaid",),
    ),
    Mutant(
        "more-than-the-rest", (), "a later line has more than is left of its message",
        PARAMNET + "receive_message.cpp",
        "n == 0 || n > m.remaining ||", "n == 0 ||",
        ("unit Hostile.AMessageHasNoMoreBytesThanItSaid",),
    ),
    Mutant(
        "inline-length-unchecked", (), "a line has more than a line holds",
        PARAMNET + "receive_message.cpp",
        "        if (length > kInlineBytes) {", "        if (length > UINT32_MAX) {",
        ("unit Hostile.ImpossibleLinesBreakTheConnectionAndNothingElse",),
    ),
    Mutant(
        "block-length-unchecked", (), "a fragment is longer than a fragment may be",
        PARAMNET + "receive_message.cpp",
        "    if (length > kMaxFragment || unit != expected) {", "    if (unit != expected) {",
        ("unit Hostile.ImpossibleLinesBreakTheConnectionAndNothingElse",),
    ),
    Mutant(
        "block-place-unchecked", (), "a fragment lies where the sender says",
        PARAMNET + "receive_message.cpp",
        "    if (length > kMaxFragment || unit != expected) {", "    if (length > kMaxFragment || (unit != expected && unit == 0)) {",
        ("unit Hostile.ImpossibleLinesBreakTheConnectionAndNothingElse",),
    ),
    Mutant(
        "receive-too-short", (), "a message longer than its receive is placed",
        PARAMNET + "receive_message.cpp",
        "    if (error == 0 && total > capacity) {\n", "    if (false) {\n",
        ("unit Errors.MessageLongerThanTheReceive",),
    ),
    Mutant(
        "no-receive", (), "a message without a receive does not break the connection",
        PARAMNET + "receive_message.cpp",
        "    if (!q.has_untaken()) return protocol_violation(ep);\n    VIP_DESCRIPTOR* d", "    if (!q.has_untaken()) return false;\n    VIP_DESCRIPTOR* d",
        ("unit Hostile.MoreMessagesThanReceivesBreakTheConnection",),
    ),
    Mutant(
        "pull-without-limit", (), "a long message may be longer than a VI takes",
        PARAMNET + "rendezvous.cpp",
        "kind != IncomingMessage::none || total > ep.vi->max_transfer) return protocol_violation(ep);", "kind != IncomingMessage::none) return protocol_violation(ep);",
        ("unit Hostile.ImpossibleLinesBreakTheConnectionAndNothingElse",),
    ),
    Mutant(
        "flush-without-error", ("N36",), "a flushed descriptor looks like a finished one",
        "core/vi/work_queue.cpp",
        "operation | VIP_STATUS_DESC_FLUSHED_ERROR, 0);", "operation, 0);",
        ("conformance FlushRules.DisconnectFlushesInPostingOrder", "unit Queues.FlushInPostingOrderAfterWhatIsFinished"), quick=True,
    ),
    Mutant(
        "receives-kept-at-disconnect", ("N36",), "receives are not flushed by a disconnect",
        "vipl/vi_events.cpp",
        "                flush_queue(core.recv);\n", "",
        ("conformance FlushRules.DisconnectFlushesInPostingOrder",),
    ),
    Mutant(
        "length-unchecked", ("B14",), "a send may be longer than the VI's transfers",
        "core/vi/work_queue.cpp",
        "    if (sum != d->CS.Length || sum > vi.max_transfer) [[unlikely]]", "    if (sum != d->CS.Length) [[unlikely]]",
        ("unit Descriptors.LengthErrorsOfTheSendQueue",),
    ),
    Mutant(
        "segments-behind-memory", (), "segments may lie behind registered memory",
        "core/vi/work_queue.cpp",
        "    if (count > vi.max_segments || !lies_in_registered_memory(d, count, *vi.regions, vi.ptag)) [[unlikely]]", "    if (count > vi.max_segments) [[unlikely]]",
        ("unit Descriptors.SegmentsBehindRegisteredMemoryAreNeverRead",),
    ),
    Mutant(
        "exceptions-leave-calls", (), "only std::bad_alloc becomes an answer of a call",
        "vipl/c_api.hpp",
        "    } catch (const std::exception& thrown) {\n", "    } catch (const std::bad_alloc& thrown) {\n",
        ("unit ExceptionInACall.OfTheSystemNamesTheSystemsError", "unit ExceptionInACall.OfAnotherKindHasItsOwnWords"),
    ),
    Mutant(
        "open-left-half", (), "a NIC whose open fails at its end stays open",
        "vipl/nic.cpp",
        "        if (kept_) return;\n", "        if (kept_ || listed_) return;\n",
        ("ctest mistakes.no_memory.paramnet",), targets=("viaduct_runtime", "viaduct_vipl_no_memory"),
    ),
    Mutant(
        "hosts-read-in-part", (), "a hosts file ends where an allocation fails",
        "vipl/hosts_file.cpp",
        "    in.exceptions(std::ios::badbit);", "    in.exceptions(std::ios::goodbit);",
        ("ctest mistakes.no_memory.paramnet",), targets=("viaduct_runtime", "viaduct_vipl_no_memory"),
    ),
]
