// SPDX-License-Identifier: BSD-2-Clause
// The control half, in the agent: which NICs exist, and what joins two local ends.
#include "providers/paramnet/control.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>

#include "core/shm/segment.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/segment_layout.hpp"
#include "providers/paramnet/settings.hpp"
#include "vipl.h"

namespace viaduct::paramnet {

namespace {

constexpr uint64_t kMaxTransfer = 4u << 20;  // spec/compat N5, N6: at least 65,600, below 2^31
constexpr uint64_t kNativeMtu = 64u << 10;
constexpr uint64_t kMaxRegisterBytes = uint64_t{1}
                                       << 40;  // nothing is pinned: the address space is the limit

uint64_t mix(uint64_t hash, const char* text, size_t n) {  // FNV-1a
    for (size_t i = 0; i < n; ++i) hash = (hash ^ static_cast<uint8_t>(text[i])) * 0x100000001B3u;
    return hash;
}

// The same for all processes of the host and from one boot to the next.
uint64_t host_hash() {
    uint64_t hash = 0xCBF29CE484222325u;
    char text[256] = {};
    size_t n = 0;
    if (FILE* file = std::fopen("/etc/machine-id", "re")) {
        n = std::fread(text, 1, sizeof text, file);
        std::fclose(file);
    }
    if (n < 16) {  // none, or not yet made
        if (::gethostname(text, sizeof text - 1) != 0) text[0] = 0;
        n = ::strnlen(text, sizeof text);
    }
    return mix(mix(hash, "viaduct-paramnet", 16), text, n);
}

// What programs that choose among NICs are told.
Profile profile_of(const LinkModel& link) {
    Profile profile{80, 50'000, 100, 0};
    if (!link.active()) return profile;
    const int64_t way = link.out_ns + link.hop_ns * link.switches + link.wire_ns(0) + link.in_ns;
    profile.latency_ns += static_cast<uint32_t>(way);
    profile.bandwidth_mb_s = static_cast<uint32_t>(std::max<uint64_t>(link.rate / 1'000'000, 1));
    return profile;
}

NicInfo describe_nic(uint32_t index, const LinkModel& link) {
    NicInfo nic;
    std::snprintf(nic.name, sizeof nic.name, "paramnet%u", index);
    std::snprintf(nic.provider, sizeof nic.provider, "paramnet");
    std::snprintf(nic.description, sizeof nic.description,
                  "PARAMNet-II model between processes of this host");
    nic.address = host_address(index);
    nic.index = static_cast<uint16_t>(index);
    nic.capabilities = kCapRdmaWrite | kCapRdmaRead | kCapImmediate | kCapOwnWakeup | kCapLocalOnly |
                       kCapFaultPlan | kCapAtomics | kCapAtomicsGlobal | kCapUnpinned;
    nic.hardware_version = 2;
    nic.provider_version = 1;
    nic.link_up = 1;
    nic.reliability_mask =
        VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    nic.rdma_read_mask = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    // spec/limits 9, with spec/compat 12 on top.
    nic.max_register_bytes = kMaxRegisterBytes;
    nic.max_register_regions = kMaxRegions;
    nic.max_register_block_bytes = kMaxRegisterBytes;
    nic.max_vi = kMaxVi;
    nic.max_descriptors_per_queue = 1024;
    nic.max_segments = 252;
    nic.max_cq = 1024;
    nic.max_cq_entries = 65536;
    nic.max_transfer = kMaxTransfer;
    nic.native_mtu = kNativeMtu;
    nic.max_ptags = 1024;
    const OperationLimit limit{kMaxTransfer, 1, 252, kInlineBytes, 0};
    nic.send = limit;
    nic.put = nic.get = OperationLimit{kMaxTransfer, 1, 251, 0, 0};
    nic.atomic = OperationLimit{8, 4, 1, 0, 0};
    nic.profile = profile_of(link);
    return nic;
}

}  // namespace

NicAddress host_address(uint32_t index) {
    uint64_t hash = host_hash() + index;  // neighbours differ in the last byte first
    NicAddress address;
    for (int byte = kNicAddressBytes - 1; byte >= 0; --byte, hash >>= 8)
        address.bytes[byte] = static_cast<uint8_t>(hash);
    address.bytes[0] =
        static_cast<uint8_t>((address.bytes[0] & 0xFC) | 0x02);  // locally administered, one station
    return address;
}

Status discover(const Settings& settings, const Hints&, NicSink& sink) {
    NicSettings own;
    Rejection why;
    if (!read_settings(settings, 0, &own, &why)) {
        sink.reject(why);
        return Status::ok;
    }
    for (uint32_t index = 0; index < own.nics; ++index) {
        NicSettings settings_of_it;
        if (read_settings(settings, index, &settings_of_it, &why))
            sink.offer(describe_nic(index, settings_of_it.link));
        else
            sink.reject(why);
    }
    return Status::ok;
}

Status join(const NicInfo&, const NicInfo&, const Settings&, JoinGrant* grant) {
    Segment segment = Segment::create("viaduct-connection", sizeof(ConnectionSegment));
    if (!segment.valid()) return Status::out_of_resources;
    auto* header = reinterpret_cast<SegmentHeader*>(segment.data());
    *header = SegmentHeader{kSegmentMagic, kLayoutVersion, sizeof(ConnectionSegment)};
    grant->segment_fd = segment.duplicate(Segment::Access::read_write).release();
    grant->segment_bytes = sizeof(ConnectionSegment);
    return grant->segment_fd >= 0 ? Status::ok : Status::out_of_resources;
}

}  // namespace viaduct::paramnet
