// SPDX-License-Identifier: BSD-2-Clause
// Small value types that the provider contract and the agent protocol share: results, addresses, VI
// attributes, what a NIC is. Plain data with a fixed layout: they travel in messages and lie in shared
// memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace viaduct {

// How an operation of the library can end. The C boundary maps it to the VIP_RETURN of the call
// (vipl/status.cpp); each value has one meaning. Sources: spec/adi N42-N45 (broken, closed, not_supported,
// invalid), spec/adi B14 (too_large), spec/adi B15 (misaligned), spec/header 4.
enum class [[nodiscard]] Status : int32_t {
    ok = 0,
    not_done,          // still pending; call again
    invalid,           // bad argument; nothing happened
    out_of_resources,  // a limit, a quota or memory
    timeout,
    rejected,       // the other side said no
    no_match,       // no program waits there
    broken,         // the peer cannot be reached from now on
    closed,         // operation on something already closed
    not_supported,  // this provider does not have it
    too_large,      // over a published limit
    misaligned,     // off a published alignment
    invalid_state,
    unknown_name,  // no such NIC, or no such host
    version,       // peer or agent speaks no common version
    denied,        // credentials or limits of the user forbid it
    // The two ends of a connection differ in an attribute that must be equal (spec/calls 4.3).
    mismatch_level,  // ViTraits::reliability
    mismatch_mtu,    // ViTraits::max_transfer
    mismatch_qos,    // ViTraits::qos
};

inline constexpr uint32_t kNicAddressBytes = 6;    // everywhere: spec/compat N2
inline constexpr uint32_t kMaxDiscriminator = 64;  // spec/limits 9
inline constexpr uint32_t kNicNameBytes = 64;

// A NIC's own address.
struct NicAddress {
    uint8_t bytes[kNicAddressBytes] = {};
    bool operator==(const NicAddress&) const = default;
};

// VIP_NET_ADDRESS by value: host part and discriminator. Any bytes, any length up to the maximum (spec/compat
// A1).
struct EndAddress {
    NicAddress host;
    uint16_t discriminator_len = 0;
    uint8_t discriminator[kMaxDiscriminator] = {};

    bool same_discriminator(const EndAddress& other) const {
        return discriminator_len == other.discriminator_len &&
               std::memcmp(discriminator, other.discriminator, discriminator_len) == 0;
    }
    bool operator==(const EndAddress& other) const { return host == other.host && same_discriminator(other); }
};

// What of the VI attributes the other end must know or agree with (spec/calls 4.3: level, size, QoS must
// be equal).
struct ViTraits {
    uint64_t max_transfer = 0;
    uint64_t qos = 0;
    uint16_t reliability = 0;  // VIP_SERVICE_*: exactly one bit
    uint8_t rdma_write = 0;
    uint8_t rdma_read = 0;
    uint32_t reserved = 0;
};

enum Capability : uint32_t {
    kCapRdmaWrite = 1u << 0,
    kCapRdmaRead = 1u << 1,
    kCapImmediate = 1u << 2,
    kCapAtomics = 1u << 3,  // its send queues take the atomic operations of viaduct/ext.h
    kCapOwnWakeup = 1u << 4,    // sleeping threads are woken by the NIC itself
    kCapLocalOnly = 1u << 5,    // reaches this host only; its connections are matched by the agent
    kCapFaultPlan = 1u << 6,    // accepts a seeded fault plan per connection
    kCapAtomicsGlobal = 1u << 7,  // processors may use their own atomic instructions on the same words
    kCapUnpinned = 1u << 8,  // finds registered memory by its virtual address at each transfer
};

// Limits of one kind of operation (spec/adi B13). Zero max_bytes: the operation does not exist.
struct OperationLimit {
    uint64_t max_bytes = 0;
    uint32_t alignment = 1;
    uint32_t max_segments = 0;
    uint32_t inline_bytes = 0;
    uint32_t reserved = 0;
};

// Nominal figures by which an engine above ranks NICs (spec/adi N7, P46). Data, never names, decide.
struct Profile {
    uint32_t latency_ns = 0;
    uint32_t bandwidth_mb_s = 0;
    uint32_t exclusivity = 0;
    uint32_t reserved = 0;
};

// What a NIC says of itself. A program sees the values of its open; only `link_up` changes. Sizes are in bytes;
// spec/limits 9 has the limits.
struct NicInfo {
    char name[kNicNameBytes] = {};  // canonical, for example "paramnet0"
    char provider[32] = {};
    char description[96] = {};
    NicAddress address;
    uint16_t index = 0;  // among the NICs of its provider
    uint32_t capabilities = 0;
    uint32_t hardware_version = 0;
    uint32_t provider_version = 0;
    uint32_t link_up = 0;
    uint32_t numa_node = 0;
    uint16_t reliability_mask = 0;  // VIP_SERVICE_* mask
    uint16_t rdma_read_mask = 0;
    uint32_t max_discriminator = kMaxDiscriminator;
    uint32_t reserved = 0;
    uint64_t max_register_bytes = 0;
    uint64_t max_register_regions = 0;
    uint64_t max_register_block_bytes = 0;
    uint64_t max_vi = 0;
    uint64_t max_descriptors_per_queue = 0;
    uint64_t max_segments = 0;
    uint64_t max_cq = 0;
    uint64_t max_cq_entries = 0;
    uint64_t max_transfer = 0;
    uint64_t native_mtu = 0;
    uint64_t max_ptags = 0;
    OperationLimit send, put, get, atomic;
    Profile profile;
};

// Widths of the words that atomic operations of a NIC take, the sum of 4 and 8: its limit is of the widest
// word, its alignment of the narrowest.
inline uint32_t atomic_widths(const NicInfo& nic) {
    if ((nic.capabilities & kCapAtomics) == 0) return 0;
    uint32_t widths = 0;
    for (uint32_t width = 4; width <= 8; width *= 2)
        if (nic.atomic.alignment <= width && width <= nic.atomic.max_bytes) widths += width;
    return widths;
}

static_assert(std::is_trivially_copyable_v<NicInfo> && std::is_trivially_copyable_v<EndAddress>);

}  // namespace viaduct
