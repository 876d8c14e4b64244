// SPDX-License-Identifier: BSD-2-Clause
// Operations of the control half (viaduct/provider.hpp, ControlOps); called by the agent only.
#pragma once

#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

Status discover(const Settings&, const Hints&, NicSink&);
Status join(const NicInfo&, const NicInfo&, const Settings&, JoinGrant*);

}  // namespace viaduct::paramnet
