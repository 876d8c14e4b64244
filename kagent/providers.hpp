// SPDX-License-Identifier: BSD-2-Clause
// The providers of this host and the NICs that their control halves offer, as far as they have answered. Used by Agent
// and Server on the agent's one thread. The asking itself is done by NicInquiries.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.hpp"
#include "core/shm/segment.hpp"
#include "kagent/nic_answer.hpp"
#include "kagent/nic_listing.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::kagent {

class Providers {
public:
    struct Loaded {
        const Provider* provider;
        const Settings* settings;
        std::vector<RejectedNic> rejected;  // by its last answer
    };

    // Loads every provider object there is and asks none. A broken object becomes a rejection. The configuration must
    // live as long as inquiries run.
    void load_all(const Config& config);
    // Takes up a provider that is in memory already, and asks it on the calling thread.
    void add(const Provider& provider, const Settings& settings);
    // The providers that have been loaded, by number.
    const std::vector<Loaded>& loaded() const { return loaded_; }
    // Takes over a provider's answer.
    NicChanges take(size_t provider, NicAnswer answer, const NicListing::IsOpen& is_open);

    // The NICs that are there, and other names of each. A position here is good until the next take().
    const std::vector<NicInfo>& nics() const { return listing_.present(); }
    const std::vector<std::vector<std::string>>& other_names() const { return listing_.other_names(); }
    // An id is good as long as the NIC is there or open.
    size_t id_at(size_t position) const { return listing_.id_at(position); }
    const NicInfo& nic(size_t id) const { return listing_.nic(id); }
    size_t provider_of(size_t id) const { return listing_.all().at(id).provider; }
    const std::map<size_t, ListedNic>& all_nics() const { return listing_.all(); }  // by id, vanished ones too
    bool has_vanished(std::string_view name) const { return listing_.has_vanished(name); }
    void set_link(size_t id, bool up) { listing_.set_link(id, up); }

    const std::vector<std::string>& provider_names() const { return provider_names_; }
    const std::vector<RejectedNic>& rejected() const { return rejected_; }
    // Makes the memory that two ends share; the NICs are given by their ids.
    Status join(size_t a, size_t b, Fd* segment, uint64_t* bytes) const;

private:
    void take_up(const Provider& provider, const Settings& settings);
    void collect_rejected();

    NicListing listing_;
    std::vector<std::string> provider_names_;  // also of those that cannot be loaded
    std::vector<Loaded> loaded_;
    std::vector<RejectedNic> not_loaded_;
    std::vector<RejectedNic> rejected_;  // all of them
};

}  // namespace viaduct::kagent
