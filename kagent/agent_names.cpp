// SPDX-License-Identifier: BSD-2-Clause
// The agent's part of the name service: names of this host, of its NICs, and names that sessions have given
// themselves (spec/compat A10-A12). Names of other hosts are libvipl's to resolve. Part of Agent.
#include <strings.h>

#include <algorithm>
#include <cstring>

#include "kagent/agent.hpp"

namespace viaduct::kagent {

namespace {

constexpr size_t kMaxNames = 64;  // per session
constexpr int64_t kDevicesFresh = 1'000'000'000;

bool same_text(std::string_view a, std::string_view b) {
    return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

const Devices& Agent::devices(int64_t now) {
    if (devices_seen_ == 0 || now - devices_seen_ > kDevicesFresh) {
        devices_ = Devices::look();
        devices_seen_ = now;
    }
    return devices_;
}

// The NICs that a host name stands for, by their ids, seen from a context: those it can reach, its own first, since a
// program that has several NICs opens the same one everywhere and always asks for index 0 (spec/compat A13).
std::vector<size_t> Agent::nics_behind(const Session& s, const Context& c, std::string_view name,
                                       int64_t now) {
    const auto& nics = providers_.nics();
    const auto reachable = [&](size_t id) { return providers_.provider_of(id) == providers_.provider_of(c.nic); };
    for (size_t i = 0; i < nics.size(); ++i) {
        const size_t id = providers_.id_at(i);
        if (same_text(name, nics[i].name)) return reachable(id) ? std::vector<size_t>{id} : std::vector<size_t>{};
    }
    std::vector<size_t> found;
    const auto add = [&](size_t id) {
        if (reachable(id) && std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
    };
    bool known = names_this_host(name, own_hostname(), devices(now).addresses);
    if (known) add(c.nic);
    for (const auto& [id, other] : sessions_) {
        if (!settings_.cross_user && !same_user(other, s)) continue;
        const bool named = std::any_of(other.names.begin(), other.names.end(),
                                       [&](const std::string& n) { return same_text(n, name); });
        if (!named) continue;
        known = true;
        for (const uint64_t context : registry_.of_session(id)) add(registry_.find(context)->nic);
    }
    if (known && found.empty()) add(c.nic);
    for (size_t i = 0; known && i < nics.size(); ++i) add(providers_.id_at(i));
    return found;
}

void Agent::name_lookup(Session& s, const Mail& mail, int64_t now) {
    NameLookup body;
    const Context* c = mail.get(&body) ? registry_.find(body.context_id, s.id) : nullptr;
    if (c == nullptr) {
        refuse(s, mail.header.ticket, Status::invalid, "malformed look-up, or no such context");
        return;
    }
    const std::string_view name = text_of(body.name);
    const std::vector<size_t> found = nics_behind(s, *c, name, now);
    if (body.index >= found.size()) {
        refuse(s, mail.header.ticket, Status::unknown_name,
               found.empty() ? "no host of this name is known here" : "the host has fewer NICs");
        return;
    }
    NameEntry e;
    e.address = providers_.nic(found[body.index]).address;
    std::memcpy(e.name, name.data(), std::min(name.size(), sizeof(e.name) - 1));
    answer(s, mail.header.ticket, Type::kNameEntry, e);
}

void Agent::address_lookup(Session& s, const Mail& mail) {
    AddressLookup body;
    if (!mail.get(&body) || registry_.find(body.context_id, s.id) == nullptr) {
        refuse(s, mail.header.ticket, Status::invalid, "malformed look-up, or no such context");
        return;
    }
    const auto& nics = providers_.all_nics();
    if (std::none_of(nics.begin(), nics.end(),
                     [&](const auto& entry) { return entry.second.info.address == body.address; })) {
        refuse(s, mail.header.ticket, Status::unknown_name, "no NIC of this host has this address");
        return;
    }
    NameEntry e;
    e.address = body.address;
    std::strncpy(e.name, own_hostname().c_str(), sizeof(e.name) - 1);
    answer(s, mail.header.ticket, Type::kNameEntry, e);
}

void Agent::name_add(Session& s, const Mail& mail) {
    NameText body;
    if (!mail.get(&body) || text_of(body.name).empty()) {
        refuse(s, mail.header.ticket, Status::invalid, "malformed name");
        return;
    }
    const std::string name(text_of(body.name));
    if (std::find(s.names.begin(), s.names.end(), name) == s.names.end()) {
        if (s.names.size() >= kMaxNames) {
            refuse(s, mail.header.ticket, Status::out_of_resources, "too many names of this session");
            return;
        }
        s.names.push_back(name);
    }
    answer(s, mail.header.ticket, Type::kDone);
}

}  // namespace viaduct::kagent
