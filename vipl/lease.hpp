// SPDX-License-Identifier: BSD-2-Clause
// Quotas of the user. The kernel agent grants them in big pieces: a process creates VIs and registers memory without a
// call of the agent as long as a piece lasts. One Leases per open NIC; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "viaduct/kagent.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::vipl {

struct Nic;

class Leases {
public:
    // What the agent gave when the NIC was opened.
    void begin(Nic& nic, const uint64_t (&granted)[4]);
    // Uses `amount` of a quota; asks the agent for more when the lease is used up. False: refused.
    bool use(kagent::LeaseKind kind, uint64_t amount);
    void give_back(kagent::LeaseKind kind, uint64_t amount);
    // What is held altogether, for a new agent.
    void held(uint64_t (&out)[4]) const;

private:
    uint64_t ask(kagent::LeaseKind kind, uint64_t amount, Deadline deadline);

    std::mutex mutex_;
    Nic* nic_ = nullptr;
    std::atomic<uint64_t> held_[4] = {};  // read without the lock: another thread may request more
    uint64_t used_[4] = {};
};

// The part of a quota that one call uses. The destructor gives it back, unless keep() was called.
class LeasePart {
public:
    LeasePart(Leases& leases, kagent::LeaseKind kind) : leases_(leases), kind_(kind) {}
    ~LeasePart() {
        if (amount_ != 0) leases_.give_back(kind_, amount_);
    }
    LeasePart(const LeasePart&) = delete;
    LeasePart& operator=(const LeasePart&) = delete;

    // False: refused. Once.
    bool use(uint64_t amount) {
        if (!leases_.use(kind_, amount)) return false;
        amount_ = amount;
        return true;
    }
    void keep() { amount_ = 0; }

private:
    Leases& leases_;
    const kagent::LeaseKind kind_;
    uint64_t amount_ = 0;
};

}  // namespace viaduct::vipl
