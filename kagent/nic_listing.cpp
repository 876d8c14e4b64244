// SPDX-License-Identifier: BSD-2-Clause
// How a new answer of a provider becomes part of the listing; see nic_listing.hpp.
#include "kagent/nic_listing.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace viaduct::kagent {

namespace {

constexpr uint32_t kMostNumbers = 65'536;  // NicInfo::index has 16 bits

const char* offer_flaw(const NicInfo& nic) {
    if (nic.name[0] == '\0' || std::memchr(nic.name, '\0', sizeof nic.name) == nullptr)
        return "the provider gave it no proper name";
    if (nic.address == NicAddress{}) return "the provider gave it no address";
    return nullptr;
}

bool same_name(const NicInfo& a, const NicInfo& b) { return std::strncmp(a.name, b.name, sizeof a.name) == 0; }

bool same_description(const NicInfo& a, const NicInfo& b) {
    return std::strncmp(a.description, b.description, sizeof a.description) == 0;
}

// Signs that an offer is a NIC of the listing, the surest first. Name and description come before the address: the
// number of an acenic NIC is its place in acenic.ports, and two ports may exchange their addresses.
using Likeness = bool (*)(const OfferedNic&, const ListedNic&);
constexpr Likeness kLikenesses[] = {
    [](const OfferedNic& offer, const ListedNic& listed) {
        return same_name(offer.nic, listed.info) && same_description(offer.nic, listed.info);
    },
    [](const OfferedNic& offer, const ListedNic& listed) { return offer.nic.address == listed.info.address; },
    [](const OfferedNic& offer, const ListedNic& listed) {
        const std::vector<std::string>& names = listed.other_names;
        return std::any_of(offer.other_names.begin(), offer.other_names.end(), [&](const std::string& name) {
            return std::find(names.begin(), names.end(), name) != names.end();
        });
    },
};

// Whether a program that opens the NIC sees no difference.
bool same_state(const NicInfo& a, const NicInfo& b) {
    return same_description(a, b) && a.link_up == b.link_up && a.native_mtu == b.native_mtu &&
           a.max_transfer == b.max_transfer && a.max_register_bytes == b.max_register_bytes &&
           a.max_register_regions == b.max_register_regions && a.max_vi == b.max_vi && a.max_cq == b.max_cq &&
           a.capabilities == b.capabilities && a.reliability_mask == b.reliability_mask;
}

// "udp" of "udp3" with number 3. None: the name does not end with the number.
std::optional<std::string> name_without_number(const NicInfo& nic) {
    const std::string name(nic.name), number = std::to_string(nic.index);
    if (!name.ends_with(number)) return std::nullopt;
    return name.substr(0, name.size() - number.size());
}

void set_name(NicInfo& nic, const std::string& name) {
    std::memset(nic.name, 0, sizeof nic.name);
    std::strncpy(nic.name, name.c_str(), sizeof(nic.name) - 1);
}

}  // namespace

NicChanges NicListing::merge(size_t provider, const char* provider_name, NicAnswer* answer, const IsOpen& is_open) {
    NicChanges changes;
    erase_closed(is_open);
    std::vector<Match> matches = check(provider_name, provider, answer);
    const std::vector<size_t> missing = match(provider, matches);
    if (answer->complete) {
        for (const size_t id : missing) vanish(id, is_open, &changes);
    }
    // Listed NICs first: no new NIC gets one of their numbers.
    std::vector<OfferedNic*> fresh;
    for (Match& m : matches) {
        if (!m.was) {
            fresh.push_back(m.offer);
        } else if (!update(*m.was, *m.offer, &changes)) {
            NicChanges quiet;  // it has changed, not vanished
            vanish(*m.was, is_open, &quiet);
            take_place(provider, *m.offer);
            changes.changed.emplace_back(m.offer->nic.name);
        }
    }
    for (OfferedNic* offer : fresh) {
        if (appear(provider, *offer)) {
            changes.appeared.emplace_back(offer->nic.name);
        } else {
            answer->rejected.push_back({provider_name, offer->nic.name, "another NIC has this name",
                                        "report it to the maker of the provider"});
        }
    }
    rebuild();
    return changes;
}

// The offers that can be listed; the provider's name is filled in.
std::vector<NicListing::Match> NicListing::check(const char* provider_name, size_t provider, NicAnswer* answer) const {
    std::vector<Match> good;
    for (OfferedNic& offer : answer->offered) {
        NicInfo& nic = offer.nic;
        const char* why = offer_flaw(nic);
        const auto clashes = [&](const NicInfo& other) {
            if (why != nullptr) return;
            if (same_name(other, nic)) {
                why = "another NIC has this name";
            } else if (other.address == nic.address) {
                why = "another NIC has this address";
            }
        };
        if (why == nullptr) {
            for (const Match& m : good) clashes(m.offer->nic);
            for (const auto& [id, listed] : all_) {
                if (listed.present && listed.provider != provider) clashes(listed.info);
            }
        }
        if (why != nullptr) {
            const std::string name(nic.name, ::strnlen(nic.name, sizeof(nic.name) - 1));
            answer->rejected.push_back({provider_name, name, why, "report it to the maker of the provider"});
            continue;
        }
        std::memset(nic.provider, 0, sizeof nic.provider);
        std::strncpy(nic.provider, provider_name, sizeof(nic.provider) - 1);
        good.push_back({&offer, std::nullopt});
    }
    return good;
}

// Finds for each offer the listed NIC that it describes; the result is the listed NICs that no offer describes.
std::vector<size_t> NicListing::match(size_t provider, std::vector<Match>& matches) const {
    std::vector<size_t> left;
    for (const auto& [id, listed] : all_) {
        if (listed.present && listed.provider == provider) left.push_back(id);
    }
    for (const Likeness is_like : kLikenesses) {
        for (Match& m : matches) {
            if (m.was) continue;
            const auto found =
                std::find_if(left.begin(), left.end(), [&](size_t id) { return is_like(*m.offer, all_.at(id)); });
            if (found == left.end()) continue;
            m.was = *found;
            left.erase(found);
        }
    }
    return left;
}

// The vanished NIC that the offer describes: some program has it open, and no NIC that is there has its name.
std::optional<size_t> NicListing::former(size_t provider, const OfferedNic& offer) const {
    const auto is_taken = [&](const NicInfo& nic) {
        return std::any_of(all_.begin(), all_.end(), [&](const auto& entry) {
            return entry.second.present && same_name(entry.second.info, nic);
        });
    };
    for (const Likeness is_like : kLikenesses) {
        for (const auto& entry : all_) {
            const ListedNic& listed = entry.second;
            if (!listed.present && listed.provider == provider && is_like(offer, listed) && !is_taken(listed.info))
                return entry.first;
        }
    }
    return std::nullopt;
}

void NicListing::erase_closed(const IsOpen& is_open) {
    std::erase_if(all_, [&](const auto& entry) { return !entry.second.present && !is_open(entry.first); });
}

void NicListing::vanish(size_t id, const IsOpen& is_open, NicChanges* changes) {
    const auto it = all_.find(id);
    remember(it->second);
    changes->vanished.emplace_back(it->second.info.name);
    if (is_open(id)) {
        it->second.present = false;
    } else {
        all_.erase(it);
    }
}

void NicListing::add(size_t provider, OfferedNic& offer) {
    all_.emplace(next_id_++, ListedNic{offer.nic, std::move(offer.other_names), provider, true});
}

// Lists an offer that has the name and the number of a NIC with another address: as the vanished NIC with its address,
// if some program has that open, else as a new one.
void NicListing::take_place(size_t provider, OfferedNic& offer) {
    for (auto& [id, listed] : all_) {
        if (listed.present || listed.provider != provider || listed.info.address != offer.nic.address) continue;
        listed = ListedNic{offer.nic, std::move(offer.other_names), provider, true};
        return;
    }
    add(provider, offer);
}

// Gives the offer the name and the number of the listed NIC that it describes. If their addresses are equal, the listed
// NIC takes over the offer, for later opens; if not, the result is false.
bool NicListing::update(size_t id, OfferedNic& offer, NicChanges* changes) {
    ListedNic& listed = all_.at(id);
    std::memcpy(offer.nic.name, listed.info.name, sizeof listed.info.name);
    offer.nic.index = listed.info.index;
    if (listed.info.address != offer.nic.address) return false;
    if (!same_state(listed.info, offer.nic)) changes->changed.emplace_back(listed.info.name);
    listed.info = offer.nic;
    listed.other_names = std::move(offer.other_names);
    return true;
}

// False: another NIC has the name, which has no number that could be changed.
bool NicListing::appear(size_t provider, OfferedNic& offer) {
    if (const auto id = former(provider, offer)) {
        NicChanges quiet;
        if (update(*id, offer, &quiet)) {
            all_.at(*id).present = true;
        } else {
            take_place(provider, offer);
        }
        return true;
    }
    const auto name = name_for(provider, offer.nic);
    if (!name) return false;
    set_name(offer.nic, *name);
    add(provider, offer);
    return true;
}

// The name of a new NIC, with its number: the offered name if it is free, else the name with the lowest free number.
std::optional<std::string> NicListing::name_for(size_t provider, NicInfo& nic) const {
    const auto is_free = [&](const std::string& name) {
        return std::none_of(all_.begin(), all_.end(),
                            [&](const auto& entry) { return name == entry.second.info.name; });
    };
    if (is_free(nic.name)) return std::string(nic.name);
    const auto stem = name_without_number(nic);
    if (!stem) return std::nullopt;
    for (uint32_t number = 0; number < kMostNumbers; ++number) {
        const std::string name = *stem + std::to_string(number);
        if (has_number(provider, number) || !is_free(name)) continue;
        nic.index = static_cast<uint16_t>(number);
        return name;
    }
    return std::nullopt;
}

bool NicListing::has_number(size_t provider, uint32_t number) const {
    return std::any_of(all_.begin(), all_.end(), [&](const auto& entry) {
        return entry.second.provider == provider && entry.second.info.index == number;
    });
}

void NicListing::set_link(size_t id, bool up) {
    all_.at(id).info.link_up = up ? 1 : 0;
    const auto at = std::find(ids_.begin(), ids_.end(), id);
    if (at != ids_.end()) present_[static_cast<size_t>(at - ids_.begin())].link_up = up ? 1 : 0;
}

void NicListing::remember(const ListedNic& nic) {
    vanished_names_.emplace_back(nic.info.name);
    for (const std::string& name : nic.other_names) vanished_names_.push_back(name);
    while (vanished_names_.size() > kMostVanishedNames) vanished_names_.pop_front();
}

bool NicListing::has_vanished(std::string_view name) const {
    constexpr std::string_view kFolder = "/dev/";
    if (name.starts_with(kFolder)) name.remove_prefix(kFolder.size());
    const auto is_it = [&](const std::string& other) { return other == name; };
    if (std::none_of(vanished_names_.begin(), vanished_names_.end(), is_it)) return false;
    return std::none_of(all_.begin(), all_.end(), [&](const auto& entry) {
        const ListedNic& listed = entry.second;
        return listed.present &&
               (name == listed.info.name || std::any_of(listed.other_names.begin(), listed.other_names.end(), is_it));
    });
}

void NicListing::rebuild() {
    ids_.clear();
    for (const auto& [id, listed] : all_) {
        if (listed.present) ids_.push_back(id);
    }
    std::stable_sort(ids_.begin(), ids_.end(), [&](size_t a, size_t b) {
        const ListedNic &one = all_.at(a), &two = all_.at(b);
        return std::tie(one.provider, one.info.index) < std::tie(two.provider, two.info.index);
    });
    present_.clear();
    other_names_.clear();
    for (const size_t id : ids_) {
        present_.push_back(all_.at(id).info);
        other_names_.push_back(all_.at(id).other_names);
    }
}

}  // namespace viaduct::kagent
