// SPDX-License-Identifier: BSD-2-Clause
// What the exported functions share. They check pointers and handles, call, and let no C++ exception out.
#pragma once

#include <vipl.h>

#include <new>

#include "core/sync/cancellation.hpp"
#include "vipl/exiting.hpp"
#include "vipl/nic.hpp"

namespace viaduct::vipl {

// Runs the body of a call that is not on the hot path; memory running short becomes ERROR_RESOURCE. A thread
// that is cancelled meanwhile ends after it. On the hot path there is no cancellation point: the cold ways
// off it hold cancellation off where they begin (settling, waking, asking the system), and so does a provider
// whose device wants system calls.
template <class Body>
VIP_RETURN guarded(Body&& body) noexcept {
    const CancellationHeldOff whole_call;
    watch_this_thread();
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return VIP_ERROR_RESOURCE;
    }
}

// For calls on a NIC handle.
template <class Body>
VIP_RETURN with_nic(VIP_NIC_HANDLE handle, Body&& body) noexcept {
    return guarded([&] {
        const NicPin pin(handle);
        return pin ? body(*pin) : VIP_INVALID_PARAMETER;
    });
}

}  // namespace viaduct::vipl
