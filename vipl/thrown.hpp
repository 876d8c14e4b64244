// SPDX-License-Identifier: BSD-2-Clause
// Turns an exception that reaches an exported call into a return code and a reason. Any thread; the reason belongs to
// the call that this thread is in. Allocates nothing.
#pragma once

#include <vipl.h>

#include <exception>

namespace viaduct::vipl {

// VIP_ERROR_RESOURCE, with a reason for each kind of exception. A reason that the call has set already stays.
[[gnu::cold]] VIP_RETURN refuse_thrown(const std::exception& thrown) noexcept;

// For an allocation that fails without an exception: of a pool, or of a handle.
[[gnu::cold]] VIP_RETURN refuse_no_memory() noexcept;

}  // namespace viaduct::vipl
