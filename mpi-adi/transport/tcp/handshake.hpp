// SPDX-License-Identifier: BSD-2-Clause
// Authentication of the other end of a connection. Every process publishes a secret through the launcher, so two
// processes of a job, and no others, can make the key of their pair. The caller shows with its first bytes
// that it has it, the one called with its answer, and the caller again by what it makes of the answer: no
// secret crosses the network, and what was recorded is of no use, neither again nor in the other direction.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace viaduct::tcp {

constexpr uint32_t kMagic = 0x32504354;  // "TCP2"
constexpr uint32_t kVersion = 3;

using Secret = std::array<unsigned char, 16>;
using Nonce = std::array<unsigned char, 16>;
using Key = std::array<unsigned char, 32>;
using Proof = std::array<unsigned char, 32>;

// First bytes on a connection, from the caller and then from the one called; then the caller sends a Proof.
// Little-endian.
struct Hello {
    uint32_t magic;
    uint32_t version;
    uint32_t from;  // world rank
    uint32_t to;
    Nonce nonce;  // of the sender
    Proof proof;
};
static_assert(sizeof(Hello) == 64 && std::endian::native == std::endian::little);

// What all proofs of one connection are about.
struct Call {
    uint32_t caller = 0;  // world ranks
    uint32_t called = 0;
    Nonce caller_nonce = {};
    Nonce called_nonce = {};  // zeros in the caller's first proof
};
enum class Step : uint32_t { call = 1, answer = 2, confirm = 3 };

// False: the library that does the arithmetic cannot be used.
[[nodiscard]] bool ready_to_prove();
// False: the system has no random bytes.
[[nodiscard]] bool make_random(void* to, size_t bytes);
// Alike on both sides.
Key key_of(std::string_view job, uint32_t rank, const Secret& secret, uint32_t other_rank,
           const Secret& other_secret);
Proof prove(const Key& key, Step step, const Call& call);
bool is_proof(const Proof& proof, const Key& key, Step step, const Call& call);

}  // namespace viaduct::tcp
