// SPDX-License-Identifier: BSD-2-Clause
// Connecting all processes with all others (spec/adi 3.1, C22, C23): in world order, requests to higher ranks,
// accepting from lower ones. The design asks once and for ever; here NO_MATCH is tried again, because the
// other side may not listen yet, and everything has a deadline. The discriminator names the job and the pair,
// so that a wait can only meet its own peer. An end that VIPL has told that it is connected may be so alone: the other
// one may have given up this attempt. So each says hello and waits for the other's, and both begin again if the
// connection breaks before.
#include <chrono>
#include <thread>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/address.hpp"
#include "mpi-adi/transport/via/card.hpp"
#include "mpi-adi/transport/via/receive.hpp"

namespace viaduct::via {

namespace {

using Clock = std::chrono::steady_clock;

struct Attempt {
    Address local, remote;
    Clock::time_point deadline;
    bool late() const { return Clock::now() >= deadline; }
    VIP_ULONG left_ms() const {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        return left < 1 ? 1 : static_cast<VIP_ULONG>(left);
    }
};

VIP_RETURN request(Lane* c, Attempt& attempt) {
    VIP_VI_ATTRIBUTES theirs;
    for (;;) {
        const VIP_RETURN rc =
            VipConnectRequest(c->vi, &attempt.local.head, &attempt.remote.head, attempt.left_ms(), &theirs);
        const bool again = rc == VIP_NO_MATCH || rc == VIP_TIMEOUT || rc == VIP_REJECT;
        if (!again || attempt.late()) return rc;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

VIP_RETURN accept(Lane* c, Attempt& attempt) {
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE handle = nullptr;
    Address from;
    for (;;) {
        VIP_RETURN rc =
            VipConnectWait(c->nic.handle, &attempt.local.head, attempt.left_ms(), &from.head, &theirs, &handle);
        if (rc == VIP_SUCCESS) {
            rc = VipConnectAccept(handle, c->vi);
            if (rc == VIP_SUCCESS) return rc;
            if (rc != VIP_TIMEOUT) {
                adi::ignore_result(VipConnectReject(handle));
                return rc;
            }  // the requester gave up meanwhile and will come again
        } else if (rc != VIP_TIMEOUT) {
            return rc;
        }
        if (attempt.late()) return VIP_TIMEOUT;
    }
}

// MPIP_AGAIN: the connection broke before the peer said hello.
int greet(Lane* c, const Attempt& attempt) {
    constexpr VIP_ULONG kLook = 10;  // ms between two looks at the clock
    if (!send_hello(c)) return adi::fail(MPIP_ERR_NO_MEM, "no memory for the first packet to process %u", c->peer.rank);
    while (!c->peer.ready()) {
        if (c->peer.lost()) return MPIP_ERR_OTHER;  // it sent what cannot be
        if (c->broken || attempt.late()) {
            start_again(c);
            return MPIP_AGAIN;
        }
        VIP_VI_HANDLE vi;
        VIP_BOOLEAN receive;
        if (VipCQWait(c->nic.cq, kLook, &vi, &receive) == VIP_SUCCESS) take_completion(vi);
    }
    return MPIP_SUCCESS;
}

int connect_one(Lane* c, Clock::time_point deadline) {
    const Nic& nic = c->nic;
    const int other = static_cast<int>(c->peer.rank);
    const bool requester = nic.me < c->peer.rank;
    const Discriminator pair =
        discriminator(nic.task, requester ? nic.me : c->peer.rank, requester ? c->peer.rank : nic.me);
    const Card& card = nic.cards[c->peer.rank];
    Attempt attempt = {};
    attempt.deadline = deadline;
    attempt.local.fill(nic.attributes.LocalNicAddress, nic.attributes.NicAddressLen, pair);
    attempt.remote.fill(card.address, card.address_len, pair);
    for (;;) {
        if (const int rc = prepare_vi(c); rc != MPIP_SUCCESS) return rc;
        const VIP_RETURN rc = requester ? request(c, attempt) : accept(c, attempt);
        if (rc != VIP_SUCCESS) {
            return adi::fail(MPIP_ERR_OTHER, "process %d could not be connected over VIA: %s: %s", other,
                             requester ? "VipConnectRequest" : "VipConnectWait or VipConnectAccept",
                             VipxErrorString(rc));
        }
        const int met = greet(c, attempt);
        if (met != MPIP_AGAIN) return met;
        if (attempt.late())
            return adi::fail(MPIP_ERR_OTHER, "process %d could not be connected over VIA: no hello came", other);
    }
}

}  // namespace

int connect_all(Nic& nic) {
    const auto deadline = Clock::now() + std::chrono::seconds(adi::param_number(adi::Param::connect_timeout));
    for (Lane* c : nic.lanes) {
        if (c == nullptr || c->peer.ready()) continue;
        if (const int rc = connect_one(c, deadline); rc != MPIP_SUCCESS) return rc;
    }
    return MPIP_SUCCESS;
}

}  // namespace viaduct::via
