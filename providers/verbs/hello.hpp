// SPDX-License-Identifier: BSD-2-Clause
// The private data of rdma_cm's messages: how two ends introduce themselves. Byte by byte in docs/verbs.md;
// what comes from a peer is checked here before anybody uses it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "viaduct/types.hpp"

namespace viaduct::verbs {

inline constexpr uint8_t kHelloMagic = 0x56;
inline constexpr uint8_t kHelloVersion = 1;
inline constexpr size_t kRequestBytes = 55;  // 56 fit into a request of the TCP port space
inline constexpr size_t kAcceptBytes = 16;
inline constexpr size_t kRejectBytes = 4;

enum class HelloKind : uint8_t { request = 1, peer = 2, accept = 3, reject = 4, probe = 5 };

struct Hello {
    HelloKind kind = HelloKind::request;
    ViTraits traits;
    uint32_t companion = 0;  // number of the companion queue pair
    uint32_t nonce = 0;      // of the request; decides between two requests of equal addresses
    EndAddress local;        // the sender's
    EndAddress remote;       // whom it wants: the discriminator counts
};

enum class Refusal : uint8_t {
    no_match = 1,  // nobody waits here for that
    rejected = 2,  // the program said no
    mismatch_level = 3,
    mismatch_mtu = 4,
    use_mine = 5,  // peer to peer: my own request to you is the one that counts
    no_resources = 6,
    version = 7,
    known = 8,    // to a probe: that request is being thought about
    unknown = 9,  // a kind of request that this version does not have
};

void write_request(const Hello&, uint8_t (&out)[kRequestBytes]);
void write_accept(const Hello&, uint8_t (&out)[kAcceptBytes]);
void write_refusal(Refusal, uint8_t (&out)[kRejectBytes]);

// ok, version (another one speaks there), invalid, or, of a request alone, not_supported (a kind that we do
// not know).
Status read_request(const void* data, size_t bytes, Hello* out);
Status read_accept(const void* data, size_t bytes, Hello* out);
// False: not one of ours, so nobody listens there.
bool read_refusal(const void* data, size_t bytes, Refusal* out);

}  // namespace viaduct::verbs
