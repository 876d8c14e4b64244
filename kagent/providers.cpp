// SPDX-License-Identifier: BSD-2-Clause
// Loading of control halves; see providers.hpp. A provider is foreign code: what it says is checked,
// what it throws is caught.
#include "kagent/providers.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "core/provider/loader.hpp"

namespace viaduct::kagent {

namespace {

template <size_t N>
std::string bounded(const char (&field)[N]) {
    return std::string(field, ::strnlen(field, N - 1));
}

class Sink final : public NicSink {
public:
    void offer(const NicInfo& nic) override {
        offered.push_back(nic);
        names.emplace_back();
    }
    void also_called(const char* name) override {
        if (!names.empty()) names.back().emplace_back(name);
    }
    void reject(const Rejection& r) override { rejected.push_back(r); }
    std::vector<NicInfo> offered;
    std::vector<std::vector<std::string>> names;  // others, of each
    std::vector<Rejection> rejected;
};

// Why a NIC cannot be offered as it describes itself; null when it can.
const char* flaw(const NicInfo& nic, const std::vector<NicInfo>& known) {
    if (nic.name[0] == '\0' || std::memchr(nic.name, '\0', sizeof nic.name) == nullptr)
        return "the provider gave it no proper name";
    if (nic.address == NicAddress{}) return "the provider gave it no address";
    for (const NicInfo& other : known) {
        if (std::strcmp(other.name, nic.name) == 0) return "another NIC has this name";
        if (other.address == nic.address) return "another NIC has this address";
    }
    return nullptr;
}

}  // namespace

void Providers::load_all(const Config& config) {
    for (const ProviderFile& file : find_providers()) {
        const LoadedProvider loaded = load_provider(file.name);
        if (loaded.provider == nullptr) {
            provider_names_.push_back(file.name);
            reject({file.name, "", loaded.error, loaded.cure});
            continue;
        }
        add(*loaded.provider, config.settings(file.name.c_str()));
    }
}

void Providers::add(const Provider& provider, const Settings& settings) {
    Sink sink;
    Status s = Status::ok;
    std::string what = "its discovery failed";
    try {
        s = provider.control.discover(settings, Hints{}, sink);
    } catch (const std::exception& e) {
        s = Status::broken;
        what = std::string("its discovery threw: ") + e.what();
    } catch (...) {
        s = Status::broken;
        what = "its discovery threw something";
    }
    if (s != Status::ok) {
        reject({provider.name, "", what + " (status " + std::to_string(static_cast<int>(s)) + ")",
                std::string("look at the section [") + provider.name +
                    "] of the configuration, or reinstall Viaduct"});
    }
    loaded_.push_back({&provider, &settings});
    provider_names_.emplace_back(provider.name);
    for (size_t i = 0; i != sink.offered.size(); ++i) {
        NicInfo nic = sink.offered[i];
        if (const char* why = flaw(nic, nics_)) {
            reject({provider.name, bounded(nic.name), why, "report it to the maker of the provider"});
            continue;
        }
        std::memset(nic.provider, 0, sizeof nic.provider);
        std::strncpy(nic.provider, provider.name, sizeof(nic.provider) - 1);
        nic.provider_version = nic.provider_version != 0 ? nic.provider_version : provider.version;
        nics_.push_back(nic);
        other_names_.push_back(std::move(sink.names[i]));
        provider_of_.push_back(loaded_.size() - 1);
    }
    for (const Rejection& r : sink.rejected)
        reject({provider.name, bounded(r.name), bounded(r.reason), bounded(r.cure)});
}

Status Providers::join(size_t a, size_t b, Fd* segment, uint64_t* bytes) const {
    if (a >= nics_.size() || b >= nics_.size() || provider_of_[a] != provider_of_[b]) return Status::invalid;
    const Loaded& by = loaded_[provider_of_[a]];
    JoinGrant grant;
    Status s = Status::ok;
    try {
        s = by.provider->control.join(nics_[a], nics_[b], *by.settings, &grant);
    } catch (...) {
        s = Status::out_of_resources;
    }
    *segment = Fd(grant.segment_fd);
    *bytes = grant.segment_bytes;
    if (s != Status::ok) return s == Status::not_supported ? Status::not_supported : Status::out_of_resources;
    return segment->valid() ? Status::ok : Status::out_of_resources;
}

}  // namespace viaduct::kagent
