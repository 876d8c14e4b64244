// SPDX-License-Identifier: BSD-2-Clause
// The answer of one provider to the question for its NICs. A provider is foreign code: its exceptions are caught here,
// its NICs are checked by NicListing. Any thread; one thread at a time asks one provider.
#pragma once

#include <string>
#include <vector>

#include "viaduct/provider.hpp"

namespace viaduct::kagent {

struct RejectedNic {
    std::string provider, name, reason, cure;
};

struct OfferedNic {
    NicInfo nic;
    std::vector<std::string> other_names;
};

struct NicAnswer {
    // False: the provider has failed, and NICs that exist may be missing in `offered`.
    bool complete = true;
    // It failed for want of memory, descriptors or threads, and may succeed later.
    bool may_succeed_later = false;
    std::vector<OfferedNic> offered;
    std::vector<RejectedNic> rejected;
};

// Asks the provider on the calling thread, however long that takes. Throws nothing: if memory is short, the answer has
// may_succeed_later set.
NicAnswer ask_for_nics(const Provider& provider, const Settings& settings);

}  // namespace viaduct::kagent
