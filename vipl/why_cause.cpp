// SPDX-License-Identifier: BSD-2-Clause
// Causes in words. A cause may come from the other end, which writes what it likes: numbers are only printed, and a
// kind that is not known has no words.
#include <cstdio>

#include "vipl/why.hpp"

namespace viaduct::vipl {

namespace {

const char* name_of(CauseOperation operation) {
    switch (operation) {
        case CauseOperation::send:
            return "send: ";
        case CauseOperation::receive:
            return "receive: ";
        case CauseOperation::rdma_write:
            return "RDMA write: ";
        case CauseOperation::rdma_read:
            return "RDMA read: ";
        case CauseOperation::atomic:
            return "atomic operation: ";
        default:
            return "";
    }
}

const char* right_of(CauseOperation operation) {
    if (operation == CauseOperation::rdma_read) return "EnableRdmaRead";
    return operation == CauseOperation::atomic ? "EnableRdmaWrite and EnableRdmaRead" : "EnableRdmaWrite";
}

// The words of a cause whose numbers the other end has not sent. False: the words of that kind have no such numbers.
bool write_without_numbers(const Cause& c, const char* head, char* text, size_t bytes) {
    const auto address = static_cast<unsigned long long>(c.address);
    const auto length = static_cast<unsigned long long>(c.length);
    const char* what;
    switch (c.kind) {
        case CauseKind::unknown_handle:
            what = "a memory handle is not registered";
            break;
        case CauseKind::other_ptag:
            what = "a memory handle has another protection tag than the VI";
            break;
        case CauseKind::outside_region:
            if (c.address == Cause::kNotSent) {
                std::snprintf(text, bytes, "%sa segment is outside its memory handle", head);
            } else {
                std::snprintf(text, bytes, "%saddress %#llx length %llu is outside memory handle %#x", head, address,
                              length, c.handle);
            }
            return true;
        case CauseKind::receive_too_small:
            std::snprintf(text, bytes, "%sa message of %llu bytes met a shorter receive", head, length);
            return true;
        case CauseKind::no_receive:
            std::snprintf(text, bytes, "%sa message of %llu bytes met no posted receive", head, length);
            return true;
        case CauseKind::control:
            what = "Control has reserved bits, or an operation this queue does not take";
            break;
        case CauseKind::segment_count:
            what = "SegCount is more than MaxSegmentsPerDesc";
            break;
        case CauseKind::length_sum:
            what = "CS.Length is not the sum of the data segments";
            break;
        case CauseKind::transfer_size:
            what = "the length is more than MaxTransferSize of the VI";
            break;
        case CauseKind::atomic_segments:
            what = "SegCount is not 2";
            break;
        case CauseKind::atomic_width:
            what = "the NIC takes no words of that length";
            break;
        case CauseKind::atomic_alignment:
            what = "the address is not a multiple of the word's length";
            break;
        case CauseKind::queue_full:
            what = "the queue was full, and one more descriptor was posted";
            break;
        case CauseKind::misaligned:
            what = "the descriptor's address is not a multiple of 64";
            break;
        case CauseKind::not_registered:
            what = "the descriptor is not in memory that the VI may use";
            break;
        case CauseKind::cq_full:
            what = "the completion queue was full, and one more entry came";
            break;
        default:
            return false;
    }
    std::snprintf(text, bytes, "%s%s", head, what);
    return true;
}

}  // namespace

void write_cause(const Cause& c, char* text, size_t bytes) {
    const auto address = static_cast<unsigned long long>(c.address);
    const auto length = static_cast<unsigned long long>(c.length);
    const auto low = static_cast<unsigned long long>(c.low);
    const auto high = static_cast<unsigned long long>(c.high);
    char where[48] = "";
    if (c.segment != 0) std::snprintf(where, sizeof where, "segment %u (DS[%u]): ", c.segment, c.segment - 1);
    char head[96];
    std::snprintf(head, sizeof head, "%s%s", name_of(c.operation), where);
    if (c.high == Cause::kNotSent && write_without_numbers(c, head, text, bytes)) return;
    switch (c.kind) {
        case CauseKind::unknown_handle:
            std::snprintf(text, bytes, "%saddress %#llx length %llu: memory handle %#x is not registered", head,
                          address, length, c.handle);
            return;
        case CauseKind::outside_region:
            std::snprintf(text, bytes, "%saddress %#llx length %llu is outside memory handle %#x (%#llx to %#llx)",
                          head, address, length, c.handle, low, high);
            return;
        case CauseKind::other_ptag:
            std::snprintf(text, bytes,
                          "%saddress %#llx length %llu: memory handle %#x has protection tag %llu, the VI has %llu",
                          head, address, length, c.handle, low, high);
            return;
        case CauseKind::memory_not_enabled:
            std::snprintf(text, bytes, "%saddress %#llx length %llu: memory handle %#x was registered without %s", head,
                          address, length, c.handle, right_of(c.operation));
            return;
        case CauseKind::vi_not_enabled:
            std::snprintf(text, bytes, "%saddress %#llx length %llu: the VI of the target has no %s", head, address,
                          length, right_of(c.operation));
            return;
        case CauseKind::receive_too_small:
            std::snprintf(text, bytes, "%sa message of %llu bytes met a receive of %llu bytes", head, length, high);
            return;
        case CauseKind::no_receive:
            std::snprintf(text, bytes, "%sa message of %llu bytes met no posted receive; %llu were posted so far", head,
                          length, high);
            return;
        case CauseKind::control:
            std::snprintf(text, bytes, "%sControl %#llx has reserved bits, or an operation this queue does not take",
                          head, low);
            return;
        case CauseKind::segment_count:
            std::snprintf(text, bytes, "%sSegCount is %llu; MaxSegmentsPerDesc is %llu", head, low, high);
            return;
        case CauseKind::no_address_segment:
            std::snprintf(text, bytes, "%sSegCount is 0; DS[0] must be the address segment", head);
            return;
        case CauseKind::no_rdma_read:
            std::snprintf(text, bytes, "%sthe NIC has no RDMA read at this reliability level (RDMAReadSupport)", head);
            return;
        case CauseKind::read_with_immediate:
            std::snprintf(text, bytes, "%sVIP_CONTROL_IMMEDIATE is set; a read carries no immediate data", head);
            return;
        case CauseKind::descriptor_past_region:
            std::snprintf(text, bytes, "%sthe segments of the descriptor go past its registered memory", head);
            return;
        case CauseKind::length_sum:
            std::snprintf(text, bytes, "%sCS.Length is %llu, the data segments hold %llu", head, length, high);
            return;
        case CauseKind::transfer_size:
            std::snprintf(text, bytes, "%slength %llu is more than MaxTransferSize %llu of the VI", head, length, high);
            return;
        case CauseKind::no_atomics:
            std::snprintf(text, bytes, "%sthe NIC has none at this reliability level", head);
            return;
        case CauseKind::atomic_segments:
            std::snprintf(text, bytes, "%sSegCount is %llu, it must be 2", head, low);
            return;
        case CauseKind::atomic_width:
            std::snprintf(text, bytes, "%s%llu bytes of operands; the NIC takes words of %s bytes", head, length,
                          high == 12  ? "4 or 8"
                          : high == 4 ? "4"
                          : high == 8 ? "8"
                                      : "no");
            return;
        case CauseKind::atomic_alignment:
            std::snprintf(text, bytes, "%saddress %#llx is not a multiple of the word's %llu bytes", head, address,
                          high);
            return;
        case CauseKind::changed_or_unmapped:
            std::snprintf(text, bytes,
                          "%sthe memory is unmapped or protected against this access (read-only, for example), or the "
                          "descriptor changed while it was posted",
                          head);
            return;
        case CauseKind::disconnected:
            std::snprintf(text, bytes, "the peer has disconnected or closed its NIC");
            return;
        case CauseKind::process_ended:
            std::snprintf(text, bytes, "the process of the peer has ended");
            return;
        case CauseKind::no_answer:
            std::snprintf(text, bytes, "%sthe peer does not answer", head);
            return;
        case CauseKind::link_down:
            std::snprintf(text, bytes, "%sthe link is down", head);
            return;
        case CauseKind::protocol:
            std::snprintf(text, bytes, "%sthe peer does not keep the protocol", head);
            return;
        case CauseKind::damaged:
            std::snprintf(text, bytes, "%sdata arrived damaged", head);
            return;
        case CauseKind::queue_full:
            std::snprintf(text, bytes, "%sthe queue holds %llu descriptors, and one more was posted", head, high);
            return;
        case CauseKind::misaligned:
            std::snprintf(text, bytes, "%sthe descriptor's address %#llx is not a multiple of 64", head, address);
            return;
        case CauseKind::not_registered:
            std::snprintf(text, bytes,
                          "%sthe descriptor at %#llx is not in memory that the VI may use; MemoryHandle is %#x", head,
                          address, c.handle);
            return;
        case CauseKind::cq_full:
            std::snprintf(text, bytes, "the completion queue holds %llu entries, and one more came", high);
            return;
        case CauseKind::device:
            std::snprintf(text, bytes, "the NIC failed");
            return;
        case CauseKind::not_open:
            std::snprintf(text, bytes,
                          "%saddress %#llx length %llu: memory handle %#x is not registered, has another protection "
                          "tag than the VI, or was registered without %s",
                          head, address, length, c.handle, right_of(c.operation));
            return;
        case CauseKind::none:
        case CauseKind::count_:
            break;
    }
    std::snprintf(text, bytes, "not known");
}

const char* cure_of(const Cause& c) {
    switch (c.kind) {
        case CauseKind::unknown_handle:
            return "VipRegisterMem first, and use the handle that it stores; do not deregister before the completion";
        case CauseKind::outside_region:
            return "register all of the buffer, or shorten the segment";
        case CauseKind::other_ptag:
            return "give the VI and the memory one protection tag, or the NULL tag to either";
        case CauseKind::memory_not_enabled:
            return "register the memory with the attribute, or VipSetMemAttributes";
        case CauseKind::vi_not_enabled:
            return "create the VI of the target with the attribute, or VipSetViAttributes before it connects";
        case CauseKind::receive_too_small:
            return "post longer receives, or send less";
        case CauseKind::no_receive:
            return "post receives before the peer sends: before the connection is made, and one more for each taken";
        case CauseKind::control:
            return "clear the descriptor before it is filled; use VIP_CONTROL_... constants only";
        case CauseKind::segment_count:
            return "use no more segments than VipQueryNic says, the address segment counted";
        case CauseKind::no_address_segment:
            return "put address and handle of the target in DS[0].Remote and count it in SegCount";
        case CauseKind::no_rdma_read:
            return "look at RDMAReadSupport of VipQueryNic, or write from the other end";
        case CauseKind::read_with_immediate:
            return "clear VIP_CONTROL_IMMEDIATE";
        case CauseKind::descriptor_past_region:
        case CauseKind::not_registered:
            return "register the memory of the descriptor, all segments, and pass its handle to the post";
        case CauseKind::length_sum:
            return "set CS.Length to the sum of the lengths of the data segments";
        case CauseKind::transfer_size:
            return "create the VI with a larger MaxTransferSize, or send in pieces";
        case CauseKind::no_atomics:
        case CauseKind::atomic_width:
            return "ask VipxQueryAtomics, and use a reliable level";
        case CauseKind::atomic_segments:
            return "DS[0] names the word, DS[1] the operands";
        case CauseKind::atomic_alignment:
            return "align the word";
        case CauseKind::changed_or_unmapped:
            return "leave descriptor, buffer and the protection of their memory alone until the descriptor is handed "
                   "back";
        case CauseKind::disconnected:
            return "VipDisconnect here, too, or connect again; a peer waits for its last completions before it leaves";
        case CauseKind::process_ended:
            return "look why it ended (its exit status, its log); then VipDisconnect and connect again";
        case CauseKind::no_answer:
            return "vipping to its host; vipinfo --links; the log of the peer";
        case CauseKind::link_down:
            return "look at the link: vipinfo --links, cable, ip link set up";
        case CauseKind::protocol:
            return "both ends must run the same version of Viaduct";
        case CauseKind::damaged:
            return "look at the network card and cable";
        case CauseKind::queue_full:
            return "take completions before more is posted; MaxDescriptorsPerQueue of VipQueryNic is the limit";
        case CauseKind::misaligned:
            return "allocate descriptors at VIP_DESCRIPTOR_ALIGNMENT (aligned_alloc, posix_memalign; a variable: "
                   "__attribute__((aligned(64))))";
        case CauseKind::cq_full:
            return "make the completion queue as large as all descriptors that may complete, or VipResizeCQ";
        case CauseKind::device:
            return "close the NIC and open it again";
        case CauseKind::not_open:
            return "VipxLastError of the other end names the reason";
        case CauseKind::none:
        case CauseKind::count_:
            break;
    }
    return "";
}

}  // namespace viaduct::vipl
