// SPDX-License-Identifier: BSD-2-Clause
// The NICs of this host, of all providers, and the NICs that have vanished and are still open. An id stands for one NIC
// with one address, as long as that is there or open. A NIC has a name with a number. A provider may number its NICs
// anew at each inquiry; in the listing a NIC keeps its name and number, and no other NIC gets the number of an open
// NIC. Used by Providers on the agent's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kagent/nic_answer.hpp"
#include "viaduct/types.hpp"

namespace viaduct::kagent {

struct ListedNic {
    NicInfo info;
    std::vector<std::string> other_names;
    size_t provider = 0;
    bool present = true;  // false: it has vanished, and some program has it open
};

// Names of NICs, for the log.
struct NicChanges {
    std::vector<std::string> appeared, changed, vanished;
    void add(const NicChanges& more) {
        appeared.insert(appeared.end(), more.appeared.begin(), more.appeared.end());
        changed.insert(changed.end(), more.changed.begin(), more.changed.end());
        vanished.insert(vanished.end(), more.vanished.begin(), more.vanished.end());
    }
};

class NicListing {
public:
    // Whether some program has the NIC of that id open.
    using IsOpen = std::function<bool(size_t id)>;

    // Takes over the NICs that a provider has answered. A NIC stays the same one if its name and description, its
    // address, or another name of it stay. A NIC with a new address gets a new id, so that programs that have it open
    // keep the former one. An offer that cannot be listed as it describes itself is added to `answer->rejected`.
    NicChanges merge(size_t provider, const char* provider_name, NicAnswer* answer, const IsOpen& is_open);

    // The NICs that are there, by provider and number.
    const std::vector<NicInfo>& present() const { return present_; }
    const std::vector<std::vector<std::string>>& other_names() const { return other_names_; }  // of each of them
    size_t id_at(size_t position) const { return ids_[position]; }

    // All of them, also those that have vanished; by id.
    const std::map<size_t, ListedNic>& all() const { return all_; }
    const NicInfo& nic(size_t id) const { return all_.at(id).info; }
    void set_link(size_t id, bool up);
    // A vanished NIC had this name, and no NIC that is there has it.
    bool has_vanished(std::string_view name) const;

private:
    struct Match {
        OfferedNic* offer;
        std::optional<size_t> was;  // id
    };

    std::vector<Match> check(const char* provider_name, size_t provider, NicAnswer* answer) const;
    std::vector<size_t> match(size_t provider, std::vector<Match>& matches) const;
    void erase_closed(const IsOpen& is_open);
    std::optional<size_t> former(size_t provider, const OfferedNic& offer) const;
    void vanish(size_t id, const IsOpen& is_open, NicChanges* changes);
    void add(size_t provider, OfferedNic& offer);
    void take_place(size_t provider, OfferedNic& offer);
    bool update(size_t id, OfferedNic& offer, NicChanges* changes);
    bool appear(size_t provider, OfferedNic& offer);
    std::optional<std::string> name_for(size_t provider, NicInfo& nic) const;
    bool has_number(size_t provider, uint32_t number) const;
    void remember(const ListedNic& nic);
    void rebuild();

    static constexpr size_t kMostVanishedNames = 128;

    std::map<size_t, ListedNic> all_;
    size_t next_id_ = 0;
    std::deque<std::string> vanished_names_;  // the oldest first
    // Of the NICs that are there.
    std::vector<NicInfo> present_;
    std::vector<std::vector<std::string>> other_names_;
    std::vector<size_t> ids_;
};

}  // namespace viaduct::kagent
