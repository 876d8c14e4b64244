// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/tcp/handshake.hpp"

#include <sodium.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace viaduct::tcp {

namespace {

static_assert(std::tuple_size_v<Key> == crypto_auth_KEYBYTES &&
              std::tuple_size_v<Proof> == crypto_auth_BYTES);
static_assert(std::tuple_size_v<Key> >= crypto_generichash_BYTES_MIN &&
              std::tuple_size_v<Secret> >= crypto_generichash_KEYBYTES_MIN);

struct Statement {
    uint32_t magic;
    uint32_t version;
    Step step;
    Call call;
};
static_assert(sizeof(Statement) == 52, "no bytes between the members");

Statement statement(Step step, const Call& call) { return {kMagic, kVersion, step, call}; }

}  // namespace

bool ready_to_prove() { return ::sodium_init() >= 0; }

bool make_random(void* to, size_t bytes) { return ::getrandom(to, bytes, 0) == static_cast<ssize_t>(bytes); }

Key key_of(std::string_view job, uint32_t rank, const Secret& secret, uint32_t other_rank,
           const Secret& other_secret) {
    const Secret& lower = rank < other_rank ? secret : other_secret;
    const Secret& higher = rank < other_rank ? other_secret : secret;
    const uint32_t ranks[2] = {std::min(rank, other_rank), std::max(rank, other_rank)};
    std::string about(reinterpret_cast<const char*>(ranks), sizeof ranks);
    about.append(reinterpret_cast<const char*>(higher.data()), higher.size());
    about.append(job);
    Key key;
    ::crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(about.data()),
                         about.size(), lower.data(), lower.size());
    return key;
}

Proof prove(const Key& key, Step step, const Call& call) {
    const Statement said = statement(step, call);
    Proof proof;
    ::crypto_auth(proof.data(), reinterpret_cast<const unsigned char*>(&said), sizeof said, key.data());
    return proof;
}

bool is_proof(const Proof& proof, const Key& key, Step step, const Call& call) {
    const Statement said = statement(step, call);
    return ::crypto_auth_verify(proof.data(), reinterpret_cast<const unsigned char*>(&said), sizeof said,
                                key.data()) == 0;
}

}  // namespace viaduct::tcp
