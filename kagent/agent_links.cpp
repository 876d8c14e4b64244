// SPDX-License-Identifier: BSD-2-Clause
// What becomes of NICs when the interfaces they depend on are switched off or vanish. Part of Agent.
#include <algorithm>

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
    return std::any_of(link_addresses_.begin(), link_addresses_.end(),
                       [](const std::string& address) { return !address.empty(); });
}

void Agent::note_links(const Devices& devices) {
    if (!devices.error.empty()) return;  // nothing is known, which is no news
    const auto& nics = providers_.nics();
    const bool first = !links_known_;
    links_known_ = true;
    if (first) {
        for (const NicInfo& nic : nics) {
            const std::string address = text_of_address(nic.address);
            link_addresses_.push_back(any_link(devices, address, false) ? address : std::string());
        }
    }
    for (size_t i = 0; i < nics.size(); ++i) {
        if (link_addresses_[i].empty()) continue;
        const bool was_up = nics[i].link_up != 0, is_up = any_link(devices, link_addresses_[i], true);
        providers_.set_link(i, is_up);
        if (first || !was_up || is_up) continue;
        for (const auto& [id, context] : registry_.all()) {
            const auto owner = sessions_.find(context.session);
            if (context.nic == i && owner != sessions_.end())
                answer(owner->second, 0, Type::kNicDown, ContextRef{id});
        }
    }
}

}  // namespace viaduct::kagent
