// SPDX-License-Identifier: BSD-2-Clause
// Cookies that prove where a connection request comes from (docs/wire-format.md, Proof of the sender's address): a
// keyed hash of the request and its sender's address, which only a host that gets frames for that address can repeat.
// No state is kept for a cookie. Its secret is replaced every `life`, and the one before it counts for as long. Pure:
// the clock and the secrets come from the caller. Used by Node.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/wire/host.hpp"
#include "providers/wire/siphash.hpp"

namespace viaduct::wire {

class RequestCookies {
public:
    explicit RequestCookies(Time life) : life_(life) {}

    // The next cookie needs a fresh secret.
    bool wants_secret(Time now) const { return now >= renew_at_; }
    void renew(const Key& fresh, Time now);

    // Never 0. A secret has been given.
    uint64_t make(const NicAddress& from, LinkId source, const Connect& request) const;
    // Whether the request shows its own cookie, and the cookie is not too old.
    bool is_shown(const NicAddress& from, LinkId source, const Connect& request, Time now) const;

private:
    const Time life_;
    Time renew_at_ = INT64_MIN;
    std::optional<Key> current_, before_;
};

}  // namespace viaduct::wire
