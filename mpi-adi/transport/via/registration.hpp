// SPDX-License-Identifier: BSD-2-Clause
// Registration of user buffers for long messages (adi-facts 11, C55, C56). See registration.cpp for why it is
// safe. Used under the engine's lock.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>
#include <cstdint>

namespace viaduct::via {

// Registered memory, held by the messages that use it.
struct Registration {
    uintptr_t base;
    size_t bytes;
    VIP_MEM_HANDLE handle;
    uint32_t users;      // messages underway
    uint64_t last_used;  // on the clock of the cache
    enum class Kind : uint8_t { library, kept, message } kind;

    bool covers(uintptr_t address, size_t length) const {
        return address - base <= bytes && length <= bytes - (address - base);
    }
};

// What covers the range, for local use and the peer's remote writes and reads; nullptr when it cannot be
// registered. Given back by release_buffer.
Registration* hold_buffer(void* address, size_t bytes);
void release_buffer(Registration* registration);

// Memory the library owns, registered until it is freed: what MPI_Alloc_mem should give out.
void* allocate_registered(size_t bytes);
// False when the address is not from allocate_registered.
bool free_registered(void* address);
// All of the above and the registrations kept; no message is underway.
void free_all_registered();

}  // namespace viaduct::via
