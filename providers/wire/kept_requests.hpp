// SPDX-License-Identifier: BSD-2-Clause
// Requests that found nobody listening, kept for a listener that comes within the requester's grace: so that
// one that only looks in (VipConnectWait with a timeout of zero) finds them, as it does where the agent
// matches (spec/compat C6). A fixed number, made once; when there are more, the oldest have to rely on their
// next copy. Used by Node only.
#pragma once

#include <algorithm>
#include <vector>

#include "providers/wire/format.hpp"
#include "providers/wire/host.hpp"

namespace viaduct::wire {

// A request as it came.
struct Request {
    NicAddress from;
    LinkId source = 0;
    Connect fields;
    uint32_t arrived = 0;  // size of the largest copy
};

class KeptRequests {
public:
    // grace: how long one can be taken. After forget without a copy its requester has gone.
    KeptRequests(uint32_t most, Time grace, Time forget) : most_(most), grace_(grace), forget_(forget) {
        kept_.reserve(most);
    }

    // A request, or another copy of one.
    void keep(const Request& request, Time now) {
        const auto same = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
            return k.request.fields.nonce == request.fields.nonce && k.request.from == request.from;
        });
        if (same != kept_.end()) {
            same->heard = now;
            same->request.arrived = std::max(same->request.arrived, request.arrived);
            return;
        }
        if (most_ == 0) return;
        std::erase_if(kept_, [&](const Kept& k) { return now - k.heard > forget_; });
        if (kept_.size() == most_) kept_.erase(kept_.begin());
        kept_.push_back({request, now, now});
    }

    // The oldest for that discriminator whose requester has not believed yet that nobody waits there: it has
    // been told so after `since` for the first time.
    bool take(const EndAddress& local, Time now, Request* out) {
        const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
            return now - k.since < grace_ && local.same_discriminator(k.request.fields.remote);
        });
        if (found == kept_.end()) return false;
        *out = found->request;
        kept_.erase(found);
        return true;
    }

    // That attempt of that peer is over, or has found somebody.
    void drop(const NicAddress& from, uint64_t nonce) {
        std::erase_if(kept_,
                      [&](const Kept& k) { return k.request.fields.nonce == nonce && k.request.from == from; });
    }

    size_t size() const { return kept_.size(); }

private:
    struct Kept {
        Request request;
        Time since = 0, heard = 0;  // first copy, last copy
    };

    uint32_t most_;
    Time grace_, forget_;
    std::vector<Kept> kept_;  // oldest first
};

}  // namespace viaduct::wire
