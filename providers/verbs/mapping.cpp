// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/mapping.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "core/memory/region_table.hpp"
#include "providers/verbs/atomic.hpp"

namespace viaduct::verbs {

namespace {

constexpr uint8_t kAddressTag[2] = {'V', 'B'};  // 'V' = 0x56: locally administered, one station
constexpr uint64_t kSmallestMemlock = 1u << 20;
constexpr uint64_t kLargestTransfer = uint64_t{1} << 30;

bool reception(uint16_t level) { return level == VIP_SERVICE_RELIABLE_RECEPTION; }

// What went wrong at the target is told to the descriptor at Reliable Reception only: at Reliable Delivery
// the network had accepted the message, and what breaks is the connection (spec/reliability 6.2).
Outcome at_target(uint32_t bits, uint16_t level) {
    Outcome v;
    v.descriptor = true;
    if (reception(level)) {
        v.bits = bits;
    } else {
        v.report = true;
    }
    return v;
}

Outcome here(uint32_t bits) {
    Outcome v;
    v.descriptor = true;
    v.bits = bits;
    return v;
}

// A read or an atomic operation that the target has not done, or cannot do: no level may call that good.
Outcome not_fetched() {
    Outcome v = here(VIP_STATUS_RDMA_PROT_ERROR);
    v.refused = true;
    return v;
}

// The other end could not, for a reason of its own, do what it had not refused.
Outcome failed_there() {
    Outcome v = here(VIP_STATUS_TRANSPORT_ERROR);
    v.report = true;
    return v;
}

Outcome connection_only() {
    Outcome v;
    v.report = true;
    return v;
}

// At Unreliable only what the transport itself has to say ends the connection (spec/reliability 6.2).
Outcome at_level(Outcome v, uint16_t level, ibv_wc_status status) {
    const bool transport = (v.bits & VIP_STATUS_TRANSPORT_ERROR) != 0;
    if (level != VIP_SERVICE_UNRELIABLE || status == IBV_WC_SUCCESS || !v.descriptor || transport) return v;
    v.goes_on = true;
    v.report = false;
    return v;
}

Outcome map_send_at_all(ibv_wc_status status, uint16_t level, bool fetches) {
    Outcome v;
    switch (status) {
        case IBV_WC_SUCCESS:
            return here(0);
        case IBV_WC_LOC_LEN_ERR:
            return here(VIP_STATUS_LENGTH_ERROR);
        case IBV_WC_LOC_QP_OP_ERR:
        case IBV_WC_LOC_EEC_OP_ERR:
        case IBV_WC_MW_BIND_ERR:
            return here(VIP_STATUS_FORMAT_ERROR);
        case IBV_WC_LOC_PROT_ERR:
            return here(VIP_STATUS_PROTECTION_ERROR);
        case IBV_WC_REM_ACCESS_ERR:
            if (fetches) return not_fetched();
            v = at_target(VIP_STATUS_RDMA_PROT_ERROR, level);
            v.refused = true;
            return v;
        case IBV_WC_REM_INV_REQ_ERR:
        case IBV_WC_REM_INV_RD_REQ_ERR:
            // The receive was too short, or could not be used (spec/reliability 6.2 rows "larger than",
            // "receive descriptor"); of a fetch, that the target's queue pair does not permit it.
            if (fetches) return not_fetched();
            return at_target(VIP_STATUS_REMOTE_DESC_ERROR, level);
        case IBV_WC_REM_OP_ERR:
            if (fetches) return failed_there();
            return at_target(VIP_STATUS_REMOTE_DESC_ERROR, level);
        case IBV_WC_RNR_RETRY_EXC_ERR:
            if (fetches) return failed_there();  // takes no receive: it is the device that was not ready
            v = at_target(VIP_STATUS_REMOTE_DESC_ERROR, level);
            v.no_receive = true;
            return v;
        case IBV_WC_RETRY_EXC_ERR:
        case IBV_WC_REM_ABORT_ERR:
        case IBV_WC_BAD_RESP_ERR:
        case IBV_WC_RESP_TIMEOUT_ERR:
        case IBV_WC_LOC_ACCESS_ERR:
        case IBV_WC_LOC_RDD_VIOL_ERR:
        case IBV_WC_INV_EECN_ERR:
        case IBV_WC_INV_EEC_STATE_ERR:
            v = here(VIP_STATUS_TRANSPORT_ERROR);
            v.report = true;
            return v;
        case IBV_WC_WR_FLUSH_ERR:
            return connection_only();
        default:  // FATAL_ERR, GENERAL_ERR and whatever comes later
            v = here(VIP_STATUS_TRANSPORT_ERROR);
            v.report = true;
            return v;
    }
}

Outcome map_receive_at_all(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_SUCCESS:
            return here(0);
        case IBV_WC_LOC_LEN_ERR:
        // Other words of devices for a message that does not fit: form and memory were found good when the
        // receive was posted.
        case IBV_WC_REM_INV_REQ_ERR:
        case IBV_WC_LOC_QP_OP_ERR:
        case IBV_WC_LOC_EEC_OP_ERR:
            return here(VIP_STATUS_LENGTH_ERROR);
        case IBV_WC_LOC_PROT_ERR:
        case IBV_WC_LOC_ACCESS_ERR:
            return here(VIP_STATUS_PROTECTION_ERROR);
        case IBV_WC_REM_ABORT_ERR: {
            Outcome v = here(VIP_STATUS_PARTIAL_ERROR | VIP_STATUS_TRANSPORT_ERROR);
            v.report = true;
            return v;
        }
        case IBV_WC_WR_FLUSH_ERR:
            return connection_only();
        default: {
            Outcome v = here(VIP_STATUS_TRANSPORT_ERROR);
            v.report = true;
            return v;
        }
    }
}

}  // namespace

Outcome map_send(ibv_wc_status status, uint16_t level, bool fetches) {
    return at_level(map_send_at_all(status, level, fetches), level, status);
}

Outcome map_receive(ibv_wc_status status, uint16_t level) {
    return at_level(map_receive_at_all(status), level, status);
}

NicAddress address_of(in_addr ip) {
    NicAddress address;
    std::memcpy(address.bytes, kAddressTag, sizeof kAddressTag);
    std::memcpy(address.bytes + sizeof kAddressTag, &ip, sizeof ip);
    return address;
}

bool ip_of(const NicAddress& address, in_addr* out) {
    if (std::memcmp(address.bytes, kAddressTag, sizeof kAddressTag) != 0) return false;
    std::memcpy(out, address.bytes + sizeof kAddressTag, sizeof *out);
    return true;
}

uint16_t port_of(const NicSettings& settings, const EndAddress& end) {
    uint32_t hash =
        0x811C9DC5u;  // FNV-1a, as docs/verbs.md says: other implementations must come to the same
    for (uint32_t i = 0; i < end.discriminator_len; ++i) hash = (hash ^ end.discriminator[i]) * 0x01000193u;
    return static_cast<uint16_t>(settings.base_port + hash % kPortRange);
}

namespace {

bool refuse(const PortFacts& facts, Rejection* why, const char* reason, const char* cure) {
    std::snprintf(why->name, sizeof why->name, "%.56s/%u", facts.device, facts.port);
    std::snprintf(why->reason, sizeof why->reason, "%s", reason);
    std::snprintf(why->cure, sizeof why->cure, "%s", cure);
    return false;
}

void set_limits(const PortFacts& facts, const NicSettings& settings, NicInfo* nic) {
    const ibv_device_attr& d = facts.device_attr;
    const auto at_least_zero = [](int value) { return static_cast<uint64_t>(std::max(value, 0)); };
    const uint64_t segments = std::min<uint64_t>(at_least_zero(d.max_sge), settings.segments);
    const uint64_t sge_rd = d.max_sge_rd > 0 ? at_least_zero(d.max_sge_rd) : segments;
    nic->max_register_bytes =
        d.max_mr_size != 0 ? std::min<uint64_t>(d.max_mr_size, uint64_t{1} << 46) : uint64_t{1} << 46;
    nic->max_register_block_bytes = nic->max_register_bytes;
    nic->max_register_regions = std::min<uint64_t>(at_least_zero(d.max_mr), kMaxRegions);
    // Two queue pairs make one VI: the data's own and its control QP (docs/verbs.md).
    nic->max_vi = std::min<uint64_t>(at_least_zero(d.max_qp) / 2, kMaxVi);
    // Queues have room for powers of two.
    nic->max_descriptors_per_queue =
        std::bit_floor(std::min<uint64_t>(at_least_zero(d.max_qp_wr), settings.depth));
    nic->max_segments = std::min(segments, sge_rd);
    nic->max_cq = std::min<uint64_t>(at_least_zero(d.max_cq), 1024);
    nic->max_cq_entries = std::min<uint64_t>(at_least_zero(d.max_cqe), 65536);
    nic->max_transfer = std::min<uint64_t>(facts.port_attr.max_msg_sz, kLargestTransfer);
    nic->native_mtu = uint64_t{128} << facts.port_attr.active_mtu;
    nic->max_ptags = 1024;
    const auto most = static_cast<uint32_t>(nic->max_segments);
    nic->send = OperationLimit{nic->max_transfer, 1, most, settings.inline_bytes, 0};
    nic->put = OperationLimit{nic->max_transfer, 1, most - 1, settings.inline_bytes, 0};
    if (d.max_qp_rd_atom > 0) nic->get = OperationLimit{nic->max_transfer, 1, most - 1, 0, 0};
    if (has_atomics(d)) nic->atomic = OperationLimit{8, 8, 1, 0, 0};
}

}  // namespace

bool describe_port(const PortFacts& facts, const NicSettings& settings, uint32_t index, NicInfo* out,
                   Rejection* why) {
    const ibv_device_attr& d = facts.device_attr;
    if (facts.port_attr.max_msg_sz < 65600)  // spec/compat N6
        return refuse(facts, why, "its messages are shorter than the 65,600 bytes VIA programs use",
                      "use another device");
    if (d.max_qp < 4 || d.max_qp_wr < 16 || d.max_sge < 2 || d.max_cqe < 64)
        return refuse(facts, why, "it has too few queue pairs, work requests, segments or completion entries",
                      "use another device");
    if (facts.memlock < kSmallestMemlock) {
        char reason[160];
        std::snprintf(
            reason, sizeof reason,
            "only %llu KiB of memory may be pinned (RLIMIT_MEMLOCK), too little to register buffers",
            static_cast<unsigned long long>(facts.memlock >> 10));
        return refuse(facts, why, reason,
                      "raise it: 'ulimit -l unlimited' or memlock lines in /etc/security/limits.conf");
    }
    NicInfo nic;
    std::snprintf(nic.name, sizeof nic.name, "verbs%u", index);
    std::snprintf(nic.provider, sizeof nic.provider, "verbs");
    char ip[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &facts.ip, ip, sizeof ip);
    const char* layer = link_layer_name(facts.port_attr, facts.transport);
    const int used = std::snprintf(nic.description, sizeof nic.description, "%.24s port %u, %s, %s on %s",
                                   facts.device, facts.port, layer, ip, facts.interface);
    char gid[INET6_ADDRSTRLEN] = {};
    if ((facts.gid.global.subnet_prefix | facts.gid.global.interface_id) != 0 &&
        ::inet_ntop(AF_INET6, facts.gid.raw, gid, sizeof gid) != nullptr)
        std::snprintf(nic.description + used, sizeof nic.description - static_cast<size_t>(used), ", GID %s",
                      gid);
    nic.address = address_of(facts.ip);
    nic.index = static_cast<uint16_t>(index);
    nic.capabilities = kCapRdmaWrite | kCapImmediate | kCapOwnWakeup;
    const bool reads = d.max_qp_rd_atom > 0 && d.max_qp_init_rd_atom > 0;
    if (reads) nic.capabilities |= kCapRdmaRead;
    if (has_atomics(d)) nic.capabilities |= kCapAtomics;
    if (has_atomics(d) && d.atomic_cap == IBV_ATOMIC_GLOB) nic.capabilities |= kCapAtomicsGlobal;
    nic.hardware_version = d.hw_ver;
    nic.link_up = facts.port_attr.state == IBV_PORT_ACTIVE ? 1 : 0;
    nic.reliability_mask = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
    if (facts.transport != IBV_TRANSPORT_IWARP) nic.reliability_mask |= VIP_SERVICE_UNRELIABLE;
    nic.rdma_read_mask = reads ? VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION : 0;
    nic.max_discriminator = kMaxDiscriminatorHere;
    set_limits(facts, settings, &nic);
    nic.profile = Profile{1500, megabytes_per_second(facts.port_attr), 50, 0};
    *out = nic;
    return true;
}

Status compare(const ViTraits& mine, const ViTraits& theirs) {
    if (mine.reliability != theirs.reliability) return Status::mismatch_level;
    if (mine.max_transfer != theirs.max_transfer) return Status::mismatch_mtu;
    return Status::ok;
}

bool is_gid_of(const ibv_gid& gid, in_addr ip) {
    static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0 &&
           std::memcmp(gid.raw + sizeof kMapped, &ip, sizeof ip) == 0;
}

const char* link_layer_name(const ibv_port_attr& port, ibv_transport_type transport) {
    if (transport == IBV_TRANSPORT_IWARP) return "iWARP";
    return port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

uint32_t megabytes_per_second(const ibv_port_attr& port) {
    static constexpr struct {
        uint8_t code;
        uint32_t lane_mb;  // payload of one lane, line coding taken off
    } kSpeeds[] = {{1, 250},   {2, 500},   {4, 1000},  {8, 1212},
                   {16, 1704}, {32, 3125}, {64, 6250}, {128, 12500}};
    static constexpr struct {
        uint8_t code;
        uint32_t lanes;
    } kWidths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    for (const auto& speed : kSpeeds)
        for (const auto& width : kWidths)
            if (speed.code == port.active_speed && width.code == port.active_width)
                return speed.lane_mb * width.lanes;
    return 250;
}

}  // namespace viaduct::verbs
