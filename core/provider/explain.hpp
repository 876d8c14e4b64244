// SPDX-License-Identifier: BSD-2-Clause
// Why an operation of a provider fails, in words: to the log under the provider's name, and with the error to the
// program. Slow path, the thread of the operation.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "core/log/log.hpp"
#include "core/text/printable.hpp"
#include "viaduct/provider.hpp"

namespace viaduct {

// Without a user agent, as in tests of a provider alone, to the log only. Neither memory nor a descriptor is needed.
inline void explain(UserAgent* agent, const char* provider, const char* reason, const char* cure) {
    char shown[320], remedy[224];
    copy_printable(reason, shown);
    copy_printable(cure, remedy);
    VIADUCT_LOG(error, provider, "%s; %s", shown, remedy);
    if (agent != nullptr) agent->explain(reason, cure);
}

inline void explain(UserAgent* agent, const char* provider, const std::string& reason, const std::string& cure) {
    explain(agent, provider, reason.c_str(), cure.c_str());
}

// `what` with the text of the errno `error` behind it.
inline std::string with_error(std::string what, int error) { return std::move(what) + ": " + std::strerror(error); }

}  // namespace viaduct
