// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/via/listener.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/via/address.hpp"
#include "mpi-adi/transport/via/card.hpp"
#include "mpi-adi/transport/via/nic.hpp"

namespace viaduct::via {

// After a failed call: VIPL may be short of a resource.
static constexpr auto kShortPause = std::chrono::milliseconds(10);

struct ConnectListener::Shared {
    VIP_NIC_HANDLE nic = nullptr;
    std::atomic<uint32_t>* events = nullptr;  // Nic::events
    Address own;
    Discriminator expected;
    std::atomic<bool> ending{false};
    std::mutex mutex;
    std::vector<bool> asked;  // by world rank
    std::thread thread;
};

void ConnectListener::note(Shared& shared, const VIP_NET_ADDRESS* from) {
    Discriminator ranks;
    if (!read_discriminator(*from, &ranks) ||
        static_cast<uint64_t>(ranks.job) != static_cast<uint64_t>(shared.expected.job))
        return;
    const uint32_t rank = ranks.first;
    {
        const std::lock_guard lock(shared.mutex);
        if (rank >= shared.asked.size()) return;
        shared.asked[rank] = true;
    }
    shared.events->fetch_add(1, std::memory_order_release);
}

void ConnectListener::listen(Shared* shared) {
    ::pthread_setname_np(::pthread_self(), "vipl-listener");  // a helper (core/process/helper_threads.hpp)
    while (!shared->ending.load()) {
        Address from = {};
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE request = nullptr;
        const VIP_RETURN rc =
            VipConnectWait(shared->nic, &shared->own.head, VIP_INFINITE, &from.head, &attributes, &request);
        if (rc == VIP_SUCCESS) {
            note(*shared, &from.head);
            adi::ignore_result(VipConnectReject(request));  // the answer "noted"
        } else if (rc == VIP_INVALID_PARAMETER) {
            return;  // the NIC was closed
        } else {
            std::this_thread::sleep_for(kShortPause);
        }
    }
}

VIP_RETURN ConnectListener::call(Nic& nic, const unsigned char* host, size_t host_len, uint32_t rank) {
    if (vi_ == nullptr) {
        VIP_VI_ATTRIBUTES attributes = {};
        attributes.ReliabilityLevel = nic.level();
        attributes.MaxTransferSize = nic.attributes.MaxTransferSize;
        const VIP_RETURN rc = VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi_);
        if (rc != VIP_SUCCESS) return rc;
    }
    Discriminator mine = shared_->expected, theirs = shared_->expected;
    mine.first = shared_->expected.second;
    mine.second = theirs.second = rank;
    Address from = {}, to = {};
    from.fill(nic.attributes.LocalNicAddress, nic.attributes.NicAddressLen, mine);
    to.fill(host, host_len, theirs);
    VIP_VI_ATTRIBUTES attributes;
    return VipConnectRequest(vi_, &from.head, &to.head, kNoticeMilliseconds, &attributes);
}

int ConnectListener::start(Nic& nic, const taskinfo_t* task) {
    const size_t peers = static_cast<size_t>(task->ti_nprocs);
    if (shared_ != nullptr) {
        const std::lock_guard lock(shared_->mutex);
        shared_->asked.resize(peers);
        return MPIP_SUCCESS;
    }
    shared_ = new Shared;
    shared_->nic = nic.handle;
    shared_->events = &nic.events;
    shared_->expected = discriminator(task, kAnyRank, static_cast<uint32_t>(task->ti_index));
    shared_->own.fill(nic.attributes.LocalNicAddress, nic.attributes.NicAddressLen, shared_->expected);
    shared_->asked.resize(peers);
    // The program's signals are for the program's threads.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = MPIP_SUCCESS;
    try {
        shared_->thread = std::thread(listen, shared_);
    } catch (const std::system_error& error) {
        delete shared_;
        shared_ = nullptr;
        rc = adi::fail(MPIP_ERR_NO_MEM, "no thread for the connect listener: %s", error.what());
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return rc;
}

void ConnectListener::stop(Nic& nic) {
    if (shared_ == nullptr) return;
    shared_->ending = true;
    // A request to this process itself wakes the thread at once.
    adi::ignore_result(
        call(nic, nic.attributes.LocalNicAddress, nic.attributes.NicAddressLen, shared_->expected.second));
    adi::ignore_result(VipDestroyVi(vi_));
    vi_ = nullptr;
}

void ConnectListener::join() {
    if (shared_ == nullptr) return;
    shared_->thread.join();
    delete shared_;
    shared_ = nullptr;
}

std::vector<uint32_t> ConnectListener::take() {
    std::vector<uint32_t> ranks;
    if (shared_ == nullptr) return ranks;
    const std::lock_guard lock(shared_->mutex);
    for (size_t rank = 0; rank < shared_->asked.size(); ++rank) {
        if (shared_->asked[rank]) ranks.push_back(static_cast<uint32_t>(rank));
        shared_->asked[rank] = false;
    }
    return ranks;
}

Notice ConnectListener::notify(Nic& nic, const Card& card, uint32_t rank, VIP_RETURN* why) {
    *why = call(nic, card.address, card.address_len, rank);
    switch (*why) {
        case VIP_REJECT:
            return Notice::noted;
        case VIP_TIMEOUT:
            return Notice::no_answer;
        case VIP_NO_MATCH:
            return Notice::no_listener;
        default:
            return Notice::failed;
    }
}

}  // namespace viaduct::via
