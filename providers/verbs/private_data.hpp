// SPDX-License-Identifier: BSD-2-Clause
// The private data of rdma_cm's messages. docs/verbs.md has the layout. What comes from a peer is checked
// here before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "viaduct/types.hpp"

namespace viaduct::verbs {

inline constexpr uint8_t kPrivateDataMagic = 0x56;
inline constexpr uint8_t kPrivateDataVersion = 1;
inline constexpr size_t kRequestBytes = 55;  // 56 fit into a request of the TCP port space
inline constexpr size_t kAcceptBytes = 16;
inline constexpr size_t kRejectBytes = 4;

enum class PrivateDataKind : uint8_t { request = 1, peer = 2, accept = 3, reject = 4, probe = 5 };

struct PrivateData {
    PrivateDataKind kind = PrivateDataKind::request;
    ViTraits traits;
    uint32_t control_qp = 0;  // number of the control QP
    uint32_t nonce = 0;       // of the request; decides between two requests of equal addresses
    EndAddress local;         // the sender's
    EndAddress remote;        // the wanted end: the discriminator counts
};

enum class Refusal : uint8_t {
    no_match = 1,  // no waiter for that discriminator
    rejected = 2,  // by the program
    mismatch_level = 3,
    mismatch_mtu = 4,
    use_mine = 5,  // peer to peer: my own request to you counts
    no_resources = 6,
    version = 7,
    known = 8,    // to a probe: the program has that request
    unknown = 9,  // a kind of request that this version does not have
};

void write_request(const PrivateData&, uint8_t (&out)[kRequestBytes]);
void write_accept(const PrivateData&, uint8_t (&out)[kAcceptBytes]);
void write_refusal(Refusal, uint8_t (&out)[kRejectBytes]);

// ok, version (another version), invalid, or, of a request alone, not_supported (a kind that is not known).
Status read_request(const void* data, size_t bytes, PrivateData* out);
Status read_accept(const void* data, size_t bytes, PrivateData* out);
// False: not from this provider, so it does not listen there.
bool read_refusal(const void* data, size_t bytes, Refusal* out);

}  // namespace viaduct::verbs
