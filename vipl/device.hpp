// SPDX-License-Identifier: BSD-2-Clause
// What a device name given to VipOpenNic means: a name that the configuration gives, "host:NAME" for the NIC that
// reaches a host, else what the agent makes of it (kagent/names.hpp). On the caller's thread; no lock.
#pragma once

#include <string>

#include "core/agent/mail.hpp"
#include "viaduct/types.hpp"
#include "vipl/library.hpp"

namespace viaduct::vipl {

inline constexpr const char* kHostPrefix = "host:";

// Why the agent does not do it, as it has said, or why it is not reached.
std::string refusal_text(const Library&, const Mail& answer);

// The NIC behind the name. *device: the name by which the agent lists it.
Status find_device(Library&, const std::string& given, Deadline, std::string* device, NicInfo*);

}  // namespace viaduct::vipl
