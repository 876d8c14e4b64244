// SPDX-License-Identifier: BSD-2-Clause
// The control half of a provider that exists for tests: NICs "fake0", "fake1", one rejected NIC, and joins
// that hand out a small sealed memory file. Used as a loadable object and inside test programs.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "viaduct/provider.hpp"

namespace viaduct::fake {

inline constexpr uint64_t kSegmentBytes = 4096;

inline NicInfo nic(const char* provider, uint16_t index) {
    NicInfo n;
    std::snprintf(n.name, sizeof n.name, "%s%u", provider, unsigned{index});
    std::snprintf(n.description, sizeof n.description, "NIC %u of a test", unsigned{index});
    n.address.bytes[0] = 2;
    for (size_t i = 0; provider[i] != '\0'; ++i)
        n.address.bytes[1 + i % 4] ^= static_cast<uint8_t>(provider[i]);
    n.address.bytes[5] = static_cast<uint8_t>(index + 1);
    n.index = index;
    n.link_up = 1;
    n.capabilities = kCapLocalOnly;
    return n;
}

inline Status join(const NicInfo&, const NicInfo&, const Settings&, JoinGrant* grant) {
    const int fd = ::memfd_create("viaduct-fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ::ftruncate(fd, kSegmentBytes) != 0) return Status::out_of_resources;
    ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    *grant = {fd, kSegmentBytes};
    return Status::ok;
}

template <uint16_t kNics>
Status discover(const Settings&, const Hints&, NicSink& sink) {
    for (uint16_t i = 0; i < kNics; ++i) sink.offer(nic("fake", i));
    Rejection r;
    std::strcpy(r.name, "fake-broken");
    std::strcpy(r.reason, "made to be rejected");
    std::strcpy(r.cure, "none is needed");
    sink.reject(r);
    return Status::ok;
}

inline Provider provider(const char* name, Status (*how)(const Settings&, const Hints&, NicSink&)) {
    Provider p{};
    p.name = name;
    p.description = "for tests";
    p.version = 7;
    p.control = {how, join};
    return p;
}

}  // namespace viaduct::fake
