// SPDX-License-Identifier: BSD-2-Clause
// What becomes of NICs when the interfaces they depend on are switched off or vanish. Part of Agent.
#include <algorithm>
#include <utility>
#include <vector>

#include "kagent/agent.hpp"

namespace viaduct::kagent {

namespace {

bool any_link(const Devices& devices, const std::string& address, bool switched_on) {
    return std::any_of(devices.links.begin(), devices.links.end(), [&](const LinkInfo& link) {
        return link.address == address && (link.up || !switched_on);
    });
}

}  // namespace

bool Agent::depends_on_links() const {
    return std::any_of(nic_links_.begin(), nic_links_.end(),
                       [](const auto& entry) { return !entry.second.address.empty(); });
}

void Agent::note_links(const Devices& devices) {
    devices_seen_ = 0;                   // the name service asks for the devices again
    if (!devices.error.empty()) return;  // nothing is known, which is no news
    std::vector<std::pair<size_t, bool>> links;
    std::vector<size_t> failed;
    std::erase_if(nic_links_, [&](const auto& entry) { return !providers_.all_nics().contains(entry.first); });
    for (const auto& [id, nic] : providers_.all_nics()) {
        NicLink& link = nic_links_[id];
        const bool first = link.address.empty();
        if (first) {
            const std::string address = text_of_address(nic.info.address);
            if (any_link(devices, address, false)) link.address = address;
        }
        if (link.address.empty()) continue;
        const bool was_up = std::exchange(link.up, any_link(devices, link.address, true));
        links.emplace_back(id, link.up);
        if (!first && was_up && !link.up) failed.push_back(id);
    }
    for (const auto& [id, up] : links) providers_.set_link(id, up);
    for (const auto& [id, context] : registry_.all()) {
        if (std::find(failed.begin(), failed.end(), context.nic) == failed.end()) continue;
        const auto owner = sessions_.find(context.session);
        if (owner != sessions_.end()) answer(owner->second, 0, Type::kNicDown, ContextRef{id});
    }
}

}  // namespace viaduct::kagent
