// SPDX-License-Identifier: BSD-2-Clause
// Registration of user buffers for long messages (spec/adi 11, C55, C56). See registration.cpp for why it is
// safe. Used under the engine's lock.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

#include "mpi-adi/transport/protocol/lane.hpp"

namespace viaduct::via {

class Nic;

// Registered memory, held by the messages that use it.
struct Registration : protocol::Registration {
    uint32_t users = 0;      // messages underway
    uint64_t last_used = 0;  // on the clock of the cache
    enum class Kind : uint8_t { library, kept, message } kind = Kind::message;

    Registration(uintptr_t begin, size_t length, VIP_MEM_HANDLE entered, Kind what) : kind(what) {
        base = begin;
        bytes = length;
        handle[0] = entered;
    }
    bool covers(uintptr_t address, size_t length) const {
        return address - base <= bytes && length <= bytes - (address - base);
    }
};

// The registrations of one NIC.
class RegistrationCache {
public:
    explicit RegistrationCache(const Nic& nic) : nic_(nic) {}

    // What covers the range, for local use and the peer's remote writes and reads; nullptr when it cannot be
    // registered. Given back by release().
    [[nodiscard]] Registration* acquire(void* address, size_t bytes);
    void release(Registration* registration);

    // Memory the library owns, registered until it is freed: what MPI_Alloc_mem should give out.
    [[nodiscard]] void* allocate(size_t bytes);
    // False when the address is not from allocate().
    [[nodiscard]] bool free(void* address);
    // All of the above and the registrations kept; no message is underway.
    void free_all();

private:
    using ByBase = std::map<uintptr_t, Registration>;
    VIP_MEM_HANDLE register_range(uintptr_t base, size_t bytes) const;
    void deregister(const Registration& r) const;
    void drop(ByBase::iterator at);
    void give_back(ByBase::iterator block);
    void make_room();
    Registration* keep(uintptr_t address, size_t bytes);
    Registration* for_one_message(uintptr_t address, size_t bytes) const;
    Registration* find_or_make(uintptr_t address, size_t bytes);

    const Nic& nic_;
    ByBase blocks_;                      // of allocate()
    ByBase kept_;                        // of user buffers
    Registration* last_used_ = nullptr;  // of kept_: programs use few buffers
    uint64_t uses_ = 0;
};

}  // namespace viaduct::via
