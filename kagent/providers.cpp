// SPDX-License-Identifier: BSD-2-Clause
// Loading of control halves, and their answers; see providers.hpp.
#include "kagent/providers.hpp"

#include <utility>

#include "core/provider/loader.hpp"

namespace viaduct::kagent {

void Providers::load_all(const Config& config) {
    for (const ProviderFile& file : find_providers()) {
        const LoadedProvider loaded = load_provider(file.name);
        if (loaded.provider == nullptr) {
            provider_names_.push_back(file.name);
            not_loaded_.push_back({file.name, "", loaded.error, loaded.cure});
            continue;
        }
        take_up(*loaded.provider, config.settings(file.name.c_str()));
    }
    collect_rejected();
}

void Providers::add(const Provider& provider, const Settings& settings) {
    take_up(provider, settings);
    take(loaded_.size() - 1, ask_for_nics(provider, settings), [](size_t) { return false; });
}

void Providers::take_up(const Provider& provider, const Settings& settings) {
    loaded_.push_back({&provider,
                       &settings,
                       {{provider.name, "", "it has not answered yet which NICs there are",
                         "if this lasts, look at its hardware and for messages of its driver ('dmesg')"}}});
    provider_names_.emplace_back(provider.name);
}

NicChanges Providers::take(size_t provider, NicAnswer answer, const NicListing::IsOpen& is_open) {
    Loaded& from = loaded_.at(provider);
    for (OfferedNic& offer : answer.offered) {
        if (offer.nic.provider_version == 0) offer.nic.provider_version = from.provider->version;
    }
    NicChanges changes = listing_.merge(provider, from.provider->name, &answer, is_open);
    from.rejected = std::move(answer.rejected);
    collect_rejected();
    return changes;
}

void Providers::collect_rejected() {
    rejected_ = not_loaded_;
    for (const Loaded& from : loaded_) rejected_.insert(rejected_.end(), from.rejected.begin(), from.rejected.end());
}

Status Providers::join(size_t a, size_t b, Fd* segment, uint64_t* bytes) const {
    const auto& all = listing_.all();
    const auto one = all.find(a), other = all.find(b);
    if (one == all.end() || other == all.end() || one->second.provider != other->second.provider)
        return Status::invalid;
    const Loaded& by = loaded_[one->second.provider];
    JoinGrant grant;
    Status s = Status::ok;
    try {
        s = by.provider->control.join(one->second.info, other->second.info, *by.settings, &grant);
    } catch (...) {
        s = Status::out_of_resources;
    }
    *segment = Fd(grant.segment_fd);
    *bytes = grant.segment_bytes;
    if (s != Status::ok) return s == Status::not_supported ? Status::not_supported : Status::out_of_resources;
    return segment->valid() ? Status::ok : Status::out_of_resources;
}

}  // namespace viaduct::kagent
