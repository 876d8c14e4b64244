// SPDX-License-Identifier: BSD-2-Clause
// The open NICs (contexts) of all sessions: the leases each one holds, and what the agent hands to its peers (public
// id, descriptors, provider words). A lease is a part of the user's quota (docs/decisions.md, "quotas of a user are
// leased in large pieces"; limits.hpp). Used by Agent on the agent's one thread; no lock.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/shm/segment.hpp"
#include "kagent/limits.hpp"
#include "viaduct/kagent.hpp"

namespace viaduct::kagent {

inline constexpr size_t kLeaseKinds = 4;

struct Context {
    uint64_t id = 0;
    // The number that peers are given, random. `id` is kept from them: after a restart of the agent the first process
    // that names an id gets the context (reattach).
    uint64_t public_id = 0;
    uint64_t session = 0;
    uid_t user = 0;
    size_t nic = 0;  // its id in Providers
    std::string device;
    std::vector<Fd> descriptors;
    size_t private_descriptors = 0;  // the last so many descriptors go to processes of `user` only
    std::array<uint64_t, 8> words{};
    std::array<uint64_t, kLeaseKinds> held{};
};

class Registry {
public:
    explicit Registry(Limits& limits) : limits_(limits) {}

    // ok or out_of_resources. A reattached context has its former leases in `held`: each is granted if it is within the
    // limit of one user, whatever that user has left. A new context, with all of `held` 0, gets a first lease of each
    // kind. The id must be free. When ok, the context has been moved from; else it is unchanged.
    Status open(Context& context);
    // Removes the context and gives its leases back. Returns its descriptors, for Closers (core/shm/foreign_files.hpp):
    // to close them may block.
    std::vector<Fd> close(uint64_t id);
    Context* find(uint64_t id);
    // The context, if it belongs to the session.
    Context* find(uint64_t id, uint64_t session);
    std::vector<uint64_t> of_session(uint64_t session) const;

    // Takes `amount` more from the user's quota, whole or not at all; an amount below zero gives back.
    Status lease(Context& context, LeaseKind kind, int64_t amount);

    const std::map<uint64_t, Context>& all() const { return contexts_; }

private:
    Limits& limits_;
    std::map<uint64_t, Context> contexts_;
    std::set<std::pair<uint64_t, uint64_t>> by_session_;  // session, context
};

}  // namespace viaduct::kagent
