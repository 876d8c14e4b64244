// SPDX-License-Identifier: BSD-2-Clause
// The open NICs (contexts) of all sessions: what each may use, and what is handed to its peers. Used by Agent
// on the agent's one thread.
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
    // What peers know it by. They must not know its own id: the first process that claims it at the next agent has it.
    uint64_t public_id = 0;
    uint64_t session = 0;
    uid_t user = 0;
    size_t nic = 0;  // index in Providers
    std::string device;
    std::vector<Fd> descriptors;
    size_t private_descriptors = 0;  // so many of the last ones are for processes of `user` only
    std::array<uint64_t, 8> words{};
    std::array<uint64_t, kLeaseKinds> held{};
};

class Registry {
public:
    explicit Registry(Limits& limits) : limits_(limits) {}

    // ok | out_of_resources. `context.held` is what it had before (re-attached) and is granted whatever the
    // limit; a new one gets a first lease of each kind. The id must be free. Taken if ok, else left as it is.
    Status open(Context& context);
    // Its files, for the thread that may close them.
    std::vector<Fd> close(uint64_t id);
    Context* find(uint64_t id);
    // The context, if it belongs to the session.
    Context* find(uint64_t id, uint64_t session);
    std::vector<uint64_t> of_session(uint64_t session) const;

    // All or nothing; amounts below zero give back.
    Status lease(Context& context, LeaseKind kind, int64_t amount);

    const std::map<uint64_t, Context>& all() const { return contexts_; }

private:
    Limits& limits_;
    std::map<uint64_t, Context> contexts_;
    std::set<std::pair<uint64_t, uint64_t>> by_session_;  // session, context
};

}  // namespace viaduct::kagent
