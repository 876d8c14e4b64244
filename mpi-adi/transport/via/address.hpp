// SPDX-License-Identifier: BSD-2-Clause
// Addresses in the form of VIPL: the NIC's bytes, then a discriminator that names the job and both ranks
// (spec/adi C22), so that a request can only meet the one it is for. Pure layout.
#pragma once

#include "mpi-adi/transport/adi/vip_calls.hpp"

#include <cstddef>
#include <cstring>

#include "mpi-adi/transport/adi/cmpi_adi.h"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/via/wire.hpp"

namespace viaduct::via {

// In place of a rank: any.
constexpr uint32_t kAnyRank = 0xffffffff;

struct Discriminator {
    Le64 job;
    Le32 first;
    Le32 second;
};
static_assert(sizeof(Discriminator) == 16);

inline Discriminator discriminator(const taskinfo_t* task, uint32_t first, uint32_t second) {
    Discriminator made;
    made.job = adi::hash(adi::kHashSeed, task->ti_job, std::strlen(task->ti_job));
    made.first = first;
    made.second = second;
    return made;
}

union Address {
    VIP_NET_ADDRESS head;
    unsigned char room[4 + 64 + 64];

    void fill(const unsigned char* host, size_t host_len, const Discriminator& ranks) {
        head.HostAddressLen = static_cast<VIP_UINT16>(host_len);
        head.DiscriminatorLen = sizeof ranks;
        std::memcpy(head.HostAddress, host, host_len);
        std::memcpy(head.HostAddress + host_len, &ranks, sizeof ranks);
    }
};

// False: this is none of ours.
[[nodiscard]] inline bool read_discriminator(const VIP_NET_ADDRESS& address, Discriminator* ranks) {
    if (address.DiscriminatorLen != sizeof *ranks || address.HostAddressLen > 64) return false;
    std::memcpy(ranks, address.HostAddress + address.HostAddressLen, sizeof *ranks);
    return true;
}

}  // namespace viaduct::via
