// SPDX-License-Identifier: BSD-2-Clause
// A port of acenic as configured, for the engine (providers/packet): its own, or its part of a shared one.
#pragma once

#include "viaduct/provider.hpp"

namespace viaduct::acenic {

Status discover(const Settings&, const Hints&, NicSink&);
Status open(const OpenArgs&, NicContext** out);

}  // namespace viaduct::acenic
