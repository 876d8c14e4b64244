// SPDX-License-Identifier: BSD-2-Clause
#include "providers/verbs/private_data.hpp"

#include <endian.h>
#include <vipl.h>

#include <cstring>

#include "providers/verbs/mapping.hpp"

namespace viaduct::verbs {

namespace {

constexpr uint8_t kWriteBit = 1u << 3;
constexpr uint8_t kReadBit = 1u << 4;
constexpr uint8_t kLevelBits = 7;

void put32(uint8_t* at, uint32_t value) {
    value = htobe32(value);
    std::memcpy(at, &value, sizeof value);
}

uint32_t get32(const uint8_t* at) {
    uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return be32toh(value);
}

// Bytes 0 to 11 are the same in a request and in an accept. Byte 8 is the length of the sender's
// discriminator.
void write_head(const PrivateData& private_data, PrivateDataKind kind, uint8_t* out) {
    out[0] = kPrivateDataMagic;
    out[1] = kPrivateDataVersion;
    out[2] = static_cast<uint8_t>(kind);
    out[3] = static_cast<uint8_t>((private_data.traits.reliability & kLevelBits) |
                                  (private_data.traits.rdma_write != 0 ? kWriteBit : 0) |
                                  (private_data.traits.rdma_read != 0 ? kReadBit : 0));
    put32(out + 4, static_cast<uint32_t>(private_data.traits.max_transfer));
    put32(out + 8, private_data.control_qp & 0xFFFFFF);
}

Status read_head(const uint8_t* in, PrivateData* out) {
    if (in[0] != kPrivateDataMagic) return Status::invalid;
    if (in[1] != kPrivateDataVersion) return Status::version;
    out->kind = static_cast<PrivateDataKind>(in[2]);
    out->traits = ViTraits();
    out->traits.reliability = in[3] & kLevelBits;
    out->traits.rdma_write = (in[3] & kWriteBit) != 0;
    out->traits.rdma_read = (in[3] & kReadBit) != 0;
    out->traits.max_transfer = get32(in + 4);
    out->control_qp = get32(in + 8) & 0xFFFFFF;
    const uint16_t level = out->traits.reliability;
    const bool one_level = level == VIP_SERVICE_UNRELIABLE || level == VIP_SERVICE_RELIABLE_DELIVERY ||
                           level == VIP_SERVICE_RELIABLE_RECEPTION;
    return one_level ? Status::ok : Status::invalid;
}

}  // namespace

void write_request(const PrivateData& private_data, uint8_t (&out)[kRequestBytes]) {
    std::memset(out, 0, sizeof out);
    write_head(private_data, private_data.kind, out);
    out[8] = static_cast<uint8_t>(private_data.local.discriminator_len);
    put32(out + 12, private_data.nonce);
    std::memcpy(out + 16, private_data.local.host.bytes, kNicAddressBytes);
    out[22] = static_cast<uint8_t>(private_data.remote.discriminator_len);
    std::memcpy(out + 23, private_data.local.discriminator, private_data.local.discriminator_len);
    std::memcpy(out + 39, private_data.remote.discriminator, private_data.remote.discriminator_len);
}

void write_accept(const PrivateData& private_data, uint8_t (&out)[kAcceptBytes]) {
    std::memset(out, 0, sizeof out);
    write_head(private_data, PrivateDataKind::accept, out);
}

void write_refusal(Refusal why, uint8_t (&out)[kRejectBytes]) {
    out[0] = kPrivateDataMagic;
    out[1] = kPrivateDataVersion;
    out[2] = static_cast<uint8_t>(PrivateDataKind::reject);
    out[3] = static_cast<uint8_t>(why);
}

Status read_request(const void* data, size_t bytes, PrivateData* out) {
    if (data == nullptr || bytes < kRequestBytes) return Status::invalid;
    const auto* in = static_cast<const uint8_t*>(data);
    const Status head = read_head(in, out);
    if (head != Status::ok) return head;
    if (out->kind != PrivateDataKind::request && out->kind != PrivateDataKind::peer &&
        out->kind != PrivateDataKind::probe)
        return Status::not_supported;
    if (in[8] > kMaxDiscriminatorHere || in[22] > kMaxDiscriminatorHere) return Status::invalid;
    out->nonce = get32(in + 12);
    std::memcpy(out->local.host.bytes, in + 16, kNicAddressBytes);
    out->local.discriminator_len = in[8];
    out->remote.discriminator_len = in[22];
    std::memcpy(out->local.discriminator, in + 23, in[8]);
    std::memcpy(out->remote.discriminator, in + 39, in[22]);
    return Status::ok;
}

Status read_accept(const void* data, size_t bytes, PrivateData* out) {
    if (data == nullptr || bytes < kAcceptBytes) return Status::invalid;
    const Status head = read_head(static_cast<const uint8_t*>(data), out);
    if (head != Status::ok) return head;
    return out->kind == PrivateDataKind::accept ? Status::ok : Status::invalid;
}

bool read_refusal(const void* data, size_t bytes, Refusal* out) {
    if (data == nullptr || bytes < kRejectBytes) return false;
    const auto* in = static_cast<const uint8_t*>(data);
    if (in[0] != kPrivateDataMagic || in[2] != static_cast<uint8_t>(PrivateDataKind::reject)) return false;
    *out = in[1] == kPrivateDataVersion ? static_cast<Refusal>(in[3]) : Refusal::version;
    return true;
}

}  // namespace viaduct::verbs
