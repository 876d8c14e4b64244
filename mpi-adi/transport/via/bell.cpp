// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/via/bell.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/via/address.hpp"
#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::via {

namespace {

// Of what VIPL has too little of at the moment.
constexpr auto kShortPause = std::chrono::milliseconds(10);

// What the thread shares with progress. A process may end without taking its bell down.
struct Bell {
    VIP_NIC_HANDLE nic = nullptr;
    Address own;
    Discriminator expected;
    std::atomic<bool> ending{false};
    std::mutex mutex;
    std::vector<bool> rang;  // by world rank
    std::thread thread;
};
Bell* bell = nullptr;
VIP_VI_HANDLE ringing_vi = nullptr;

void note(Bell& b, const Address& from) {
    Discriminator who;
    if (!from.read(&who) || static_cast<uint64_t>(who.job) != static_cast<uint64_t>(b.expected.job)) return;
    const uint32_t rank = who.first;
    {
        const std::lock_guard lock(b.mutex);
        if (rank >= b.rang.size()) return;
        b.rang[rank] = true;
    }
    viadev.lost_events.fetch_add(1, std::memory_order_release);  // progress looks at what has happened
}

void answer_the_bell(Bell* b) {
    ::pthread_setname_np(::pthread_self(), "vipl-bell");  // a helper, for the library below (vipl/last_thread.hpp)
    while (!b->ending.load()) {
        Address from = {};
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE request = nullptr;
        const VIP_RETURN rc =
            VipConnectWait(b->nic, &b->own.head, VIP_INFINITE, &from.head, &attributes, &request);
        if (rc == VIP_SUCCESS) {
            note(*b, from);
            adi::let_go(VipConnectReject(request));  // who hears this knows that it was noted
        } else if (rc == VIP_INVALID_PARAMETER) {
            return;  // the NIC was closed
        } else {
            std::this_thread::sleep_for(kShortPause);
        }
    }
}

VIP_RETURN call(const unsigned char* host, size_t host_len, uint32_t whom) {
    if (ringing_vi == nullptr) {
        VIP_VI_ATTRIBUTES attributes = {};
        attributes.ReliabilityLevel = level();
        attributes.MaxTransferSize = viadev.attributes.MaxTransferSize;
        const VIP_RETURN rc = VipCreateVi(viadev.nic, &attributes, nullptr, nullptr, &ringing_vi);
        if (rc != VIP_SUCCESS) return rc;
    }
    Discriminator mine = bell->expected, theirs = bell->expected;
    mine.first = bell->expected.second;
    mine.second = theirs.second = whom;
    Address from = {}, to = {};
    from.fill(viadev.attributes.LocalNicAddress, viadev.attributes.NicAddressLen, mine);
    to.fill(host, host_len, theirs);
    VIP_VI_ATTRIBUTES attributes;
    return VipConnectRequest(ringing_vi, &from.head, &to.head, kRingMilliseconds, &attributes);
}

}  // namespace

int hang_out_bell(const taskinfo_t* task) {
    const size_t peers = static_cast<size_t>(task->ti_nprocs);
    if (bell != nullptr) {
        const std::lock_guard lock(bell->mutex);
        bell->rang.resize(peers);
        return MPIP_SUCCESS;
    }
    bell = new Bell;
    bell->nic = viadev.nic;
    bell->expected = discriminator(task, kAnybody, static_cast<uint32_t>(task->ti_index));
    bell->own.fill(viadev.attributes.LocalNicAddress, viadev.attributes.NicAddressLen, bell->expected);
    bell->rang.resize(peers);
    // The program's signals are for the program's threads.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = MPIP_SUCCESS;
    try {
        bell->thread = std::thread(answer_the_bell, bell);
    } catch (const std::system_error& error) {
        delete bell;
        bell = nullptr;
        rc = adi::fail(MPIP_ERR_NO_MEM, "no thread for the bell: %s", error.what());
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return rc;
}

void silence_bell() {
    if (bell == nullptr) return;
    bell->ending = true;
    // Who rings at himself wakes the thread at once.
    adi::let_go(call(viadev.attributes.LocalNicAddress, viadev.attributes.NicAddressLen, bell->expected.second));
    adi::let_go(VipDestroyVi(ringing_vi));
    ringing_vi = nullptr;
}

void take_down_bell() {
    if (bell == nullptr) return;
    bell->thread.join();
    delete bell;
    bell = nullptr;
}

std::vector<uint32_t> who_rang() {
    std::vector<uint32_t> ranks;
    if (bell == nullptr) return ranks;
    const std::lock_guard lock(bell->mutex);
    for (size_t rank = 0; rank < bell->rang.size(); ++rank) {
        if (bell->rang[rank]) ranks.push_back(static_cast<uint32_t>(rank));
        bell->rang[rank] = false;
    }
    return ranks;
}

Ring ring(const Lane* c, VIP_RETURN* why) {
    const Card* card = card_of(viadev.task, static_cast<int>(c->peer.rank));
    *why = call(card->address, card->address_len, c->peer.rank);
    switch (*why) {
        case VIP_REJECT:
            return Ring::heard;
        case VIP_TIMEOUT:
            return Ring::unheard;
        case VIP_NO_MATCH:
            return Ring::nobody;
        default:
            return Ring::failed;
    }
}

}  // namespace viaduct::via
