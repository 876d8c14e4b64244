// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/via/nic.hpp"

#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/card.hpp"

namespace viaduct::via {

namespace {

void on_error(VIP_PVOID events, VIP_ERROR_DESCRIPTOR*) {
    static_cast<std::atomic<uint32_t>*>(events)->fetch_add(1, std::memory_order_release);
}

}  // namespace

int fail_call(const char* call, VIP_RETURN rc) {
    // The last failure of this process is most often that of this call; its text begins with the name of the call.
    char why[512];
    if (VipxLastError(nullptr, why, sizeof why) == VIP_SUCCESS && std::strncmp(why, call, std::strlen(call)) == 0)
        return adi::fail(MPIP_ERR_OTHER, "%s", why);
    return adi::fail(MPIP_ERR_OTHER, "%s: %s", call, VipxErrorString(rc));
}

VIP_RELIABILITY_LEVEL Nic::level() const {
    const VIP_RELIABILITY_LEVEL offered = attributes.ReliabilityLevelSupport;
    return (offered & VIP_SERVICE_RELIABLE_DELIVERY) != 0 ? VIP_SERVICE_RELIABLE_DELIVERY
                                                          : VIP_SERVICE_RELIABLE_RECEPTION;
}

int Nic::open(const char* name) {
    VIP_RETURN rc = VipOpenNic(name, &handle);
    if (rc != VIP_SUCCESS) return fail_call("VipOpenNic", rc);
    rc = VipQueryNic(handle, &attributes);
    if (rc != VIP_SUCCESS) return fail_call("VipQueryNic", rc);
    if (attributes.MaxTransferSize < VBUF_BUFFER_SIZE ||
        (attributes.ReliabilityLevelSupport & (VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION)) == 0 ||
        attributes.MaxDiscriminatorLen < 16 || attributes.NicAddressLen > sizeof Card::address) {
        return adi::fail(MPIP_ERR_OTHER, "NIC %s cannot carry this module: no reliable service, or limits too low",
                         attributes.Name);
    }
    rc = VipErrorCallback(handle, &events, on_error);
    if (rc != VIP_SUCCESS) return fail_call("VipErrorCallback", rc);
    // The engine gives the processor away between its passes, without its lock. A poll that did so within a pass would
    // keep the lock from all threads of the process for as long as others compute.
    rc = VipxSetGiveWay(handle, VIP_FALSE);
    if (rc != VIP_SUCCESS) return fail_call("VipxSetGiveWay", rc);
    rdma_read = (attributes.RDMAReadSupport & level()) != 0;
    VIP_BOOLEAN pinned = VIP_TRUE;
    if (VipxQueryPinned(handle, &pinned) != VIP_SUCCESS) pinned = VIP_TRUE;
    pins_memory = pinned != VIP_FALSE;
    // Where processors do the NIC's copying, and its atomic operations, the memory that it gives is mapped by
    // all.
    VIP_BOOLEAN processors = VIP_FALSE;
    if (VipxQueryAtomicScope(handle, &processors) != VIP_SUCCESS) processors = VIP_FALSE;
    mapped = !pins_memory && processors != VIP_FALSE;
    VIP_ULONG widths = 0;
    if (VipxQueryAtomics(handle, &widths) != VIP_SUCCESS) widths = 0;
    atomics = processors != VIP_FALSE && rdma_read && widths == 4 + 8;
    return MPIP_SUCCESS;
}

void Nic::close() {
    if (handle == nullptr) return;
    adi::ignore_result(VipErrorCallback(handle, nullptr, nullptr));
    connects.listener.stop(*this);
    adi::ignore_result(VipCloseNic(handle));
    connects.listener.join();
    connects.page.close();
    handle = nullptr;
}

void Nic::choose_rules(int processes) {
    const int queue = static_cast<int>(std::min<VIP_ULONG>(attributes.MaxDescriptorsPerQueue, 1 << 15));
    const int each = static_cast<int>(std::min<VIP_ULONG>(attributes.MaxCQEntries, 1 << 20)) / std::max(1, processes);
    const int room = std::min(queue, each);
    int depth = static_cast<int>(adi::param_number(adi::Param::prepost_depth));
    if (depth == 0) depth = std::clamp(1024 / std::max(1, processes), 8, 64);
    int extra = static_cast<int>(adi::param_number(adi::Param::rendezvous_extra));
    if (!adi::param_given(adi::Param::rendezvous_extra)) extra = std::min(extra, depth);
    credit_rules = CreditRules::for_depth(depth, extra);
    while (credit_rules.most_receives() > room && depth > 4) {
        extra > 0 ? extra /= 2 : depth /= 2;
        credit_rules = CreditRules::for_depth(depth, extra);
    }
}

// Entries of the completion queue of receives for so many peers.
VIP_ULONG Nic::receive_entries(int peers) const {
    const VIP_ULONG each = static_cast<VIP_ULONG>(credit_rules.most_receives());
    return std::min(attributes.MaxCQEntries, static_cast<VIP_ULONG>(peers) * each + 16);
}

// And of that of sends, whose queues share it.
VIP_ULONG Nic::send_entries(int peers) {
    const VIP_ULONG most = attributes.MaxCQEntries;
    send_depth = static_cast<int>(
        std::min<VIP_ULONG>({attributes.MaxDescriptorsPerQueue, 128, most / static_cast<VIP_ULONG>(peers)}));
    // Where a send is mostly complete when it is posted, few buffers that stay in the cache are better than
    // many.
    constexpr int kFew = 8;
    collect_from = mapped ? std::min(kFew, send_depth) : send_depth;
    return static_cast<VIP_ULONG>(peers) * static_cast<VIP_ULONG>(send_depth);
}

int Nic::make_queues(int peers) {
    VIP_RETURN rc = VipCreateCQ(handle, receive_entries(peers), &cq);
    if (rc != VIP_SUCCESS) return fail_call("VipCreateCQ", rc);
    const VIP_ULONG entries = send_entries(peers);
    // There the queues themselves are as quickly looked at.
    if (!mapped) rc = VipCreateCQ(handle, entries, &scq);
    if (rc != VIP_SUCCESS) return fail_call("VipCreateCQ", rc);
    rc = VipCreatePtag(handle, &ptag);
    return rc == VIP_SUCCESS ? MPIP_SUCCESS : fail_call("VipCreatePtag", rc);
}

int Nic::grow_queues(int peers) {
    VIP_RETURN rc = VipResizeCQ(cq, receive_entries(peers));
    const VIP_ULONG entries = send_entries(peers);
    if (rc == VIP_SUCCESS && scq != nullptr) rc = VipResizeCQ(scq, entries);
    return rc == VIP_SUCCESS ? MPIP_SUCCESS : fail_call("VipResizeCQ", rc);
}

// The design destroys the tag while memory still uses it; here memory goes first.
void Nic::destroy_queues() {
    registrations.free_all();
    buffers.free_all();
    if (ptag != nullptr) adi::ignore_result(VipDestroyPtag(handle, ptag));
    if (cq != nullptr) adi::ignore_result(VipDestroyCQ(cq));
    if (scq != nullptr) adi::ignore_result(VipDestroyCQ(scq));
    ptag = nullptr;
    cq = scq = nullptr;
}

}  // namespace viaduct::via
