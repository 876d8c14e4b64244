// SPDX-License-Identifier: BSD-2-Clause
// Taking completions (hot path).
#pragma once

#include <vipl.h>

#include "vipl/vi.hpp"

namespace viaduct::vipl {

VIP_RETURN send_done(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out);
VIP_RETURN recv_done(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** out);

}  // namespace viaduct::vipl
