// SPDX-License-Identifier: BSD-2-Clause
// Connection requests without a listener, kept for one that comes within the requester's grace, so that
// VipConnectWait with a timeout of zero finds them, as it does where the agent matches (spec/compat C6). A
// fixed number, allocated once; when there are more, the oldest is dropped until its next copy. Used by Node
// only.
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
    bool proved = false;   // by a right cookie: its sender gets the frames to that address
};

class PendingConnects {
public:
    // grace: how long one can be taken. expiry: after so long without another copy its requester has left.
    PendingConnects(uint32_t most, Time grace, Time expiry) : most_(most), grace_(grace), expiry_(expiry) {
        pending_.reserve(most);
    }

    // A request, or another copy of one.
    void keep(const Request& request, Time now) {
        const auto same = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& k) {
            return k.request.fields.nonce == request.fields.nonce && k.request.from == request.from;
        });
        if (same != pending_.end()) {
            same->received_at = now;
            same->request.arrived = std::max(same->request.arrived, request.arrived);
            same->request.proved |= request.proved;
            return;
        }
        if (most_ == 0) return;
        std::erase_if(pending_, [&](const Pending& k) { return now - k.received_at > expiry_; });
        if (pending_.size() == most_) pending_.erase(pending_.begin());
        pending_.push_back({request, now, now});
    }

    // The oldest for that discriminator within its grace, which counts from `since`, its first copy.
    bool take(const EndAddress& local, Time now, Request* out) {
        const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& k) {
            return now - k.since < grace_ && local.same_discriminator(k.request.fields.remote);
        });
        if (found == pending_.end()) return false;
        *out = found->request;
        pending_.erase(found);
        return true;
    }

    // That attempt of that peer has ended or has been matched.
    void drop(const NicAddress& from, uint64_t nonce) {
        std::erase_if(pending_, [&](const Pending& k) {
            return k.request.fields.nonce == nonce && k.request.from == from;
        });
    }

    void drop_unproved() {
        std::erase_if(pending_, [](const Pending& k) { return !k.request.proved; });
    }

    size_t size() const { return pending_.size(); }

private:
    struct Pending {
        Request request;
        Time since = 0, received_at = 0;  // first copy, last copy
    };

    uint32_t most_;
    Time grace_, expiry_;
    std::vector<Pending> pending_;  // oldest first
};

}  // namespace viaduct::wire
