// SPDX-License-Identifier: BSD-2-Clause
// The NICs of this host as their providers' control halves tell: discovered once at start. Used by Agent on
// the agent's one thread.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/shm/segment.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::kagent {

struct RejectedNic {
    std::string provider, name, reason, cure;
};

class Providers {
public:
    // Loads and asks every provider object there is. One that is broken becomes a rejection.
    void load_all(const Config& config);
    // Asks one provider that is in memory already.
    void add(const Provider& provider, const Settings& settings);
    void reject(RejectedNic r) { rejected_.push_back(std::move(r)); }

    const std::vector<NicInfo>& nics() const { return nics_; }
    const std::vector<std::vector<std::string>>& other_names() const { return other_names_; }  // of each NIC
    const std::vector<std::string>& provider_names() const { return provider_names_; }
    const std::vector<RejectedNic>& rejected() const { return rejected_; }
    void set_link(size_t nic, bool up) { nics_[nic].link_up = up ? 1 : 0; }
    // Makes what two ends share.
    Status join(size_t a, size_t b, Fd* segment, uint64_t* bytes) const;

private:
    struct Loaded {
        const Provider* provider;
        const Settings* settings;
    };
    std::vector<NicInfo> nics_;
    std::vector<std::vector<std::string>> other_names_;
    std::vector<std::string> provider_names_;  // also of those that cannot be loaded
    std::vector<size_t> provider_of_;  // index into loaded_, by NIC
    std::vector<Loaded> loaded_;
    std::vector<RejectedNic> rejected_;
};

}  // namespace viaduct::kagent
