// SPDX-License-Identifier: BSD-2-Clause
// The provider's settings as values: section [verbs] of the configuration (man/viaduct-verbs.7).
#pragma once

#include <cstdint>
#include <string>

#include "viaduct/provider.hpp"

namespace viaduct::verbs {

struct NicSettings {
    std::string devices;          // names, separated by commas; empty: all there are
    uint16_t base_port = 20480;   // of the port range that discriminators are mapped to
    uint32_t depth = 1024;        // descriptors per queue
    uint32_t segments = 16;       // per descriptor
    uint32_t inline_bytes = 128;  // sends of up to so many bytes travel with the work request
    uint32_t send_window = 128;   // work requests of one VI that the device holds at once
    uint8_t ack_timeout = 14;     // 4.096 us * 2^this
    uint8_t retries = 6;
    uint32_t keepalive_ms = 2000;  // 0: never
};

// False, with a reason and a cure for people, when a value makes no sense.
bool read_settings(const Settings&, NicSettings* out, Rejection* why);

// Whether this device is one of those asked for.
bool wants_device(const NicSettings&, const char* name);

}  // namespace viaduct::verbs
