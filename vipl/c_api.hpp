// SPDX-License-Identifier: BSD-2-Clause
// What the exported functions share. They check pointers and handles, call, and let no C++ exception out.
#pragma once

#include <vipl.h>

#include <exception>

#include "core/sync/cancellation.hpp"
#include "vipl/exiting.hpp"
#include "vipl/nic.hpp"
#include "vipl/recorded.hpp"
#include "vipl/thrown.hpp"
#include "vipl/vi.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {

// Runs the body of a call that is not on the hot path; an exception becomes ERROR_RESOURCE with its reason. A thread
// that is cancelled meanwhile ends after it. On the hot path there is no cancellation point: the cold ways
// off it hold cancellation off where they begin (settling, waking, asking the system), and so does a provider
// whose device needs system calls.
template <class Body>
VIP_RETURN guarded(Body&& body) noexcept {
    const CancellationHeldOff whole_call;
    watch_this_thread();
    try {
        return body();
    } catch (const std::exception& thrown) {
        return refuse_thrown(thrown);
    }
}

// The same with a record when the call fails. `object` is the handle it is about, `pointers` must not be NULL.
template <class Body>
VIP_RETURN guarded(const char* name, const void* object, std::initializer_list<Argument> pointers,
                   Body&& body) noexcept {
    Call call(name, object);
    return call.end(guarded([&] {
        const VIP_RETURN bad = need(pointers);
        return bad != VIP_SUCCESS ? bad : body();
    }));
}

// For calls on a NIC handle.
template <class Body>
VIP_RETURN with_nic(const char* name, VIP_NIC_HANDLE handle, std::initializer_list<Argument> pointers,
                    Body&& body) noexcept {
    return guarded(name, handle, pointers, [&] {
        const NicPin pin(handle);
        return pin ? body(*pin) : refuse_handle("NicHandle", handle, HandleKind::nic);
    });
}

// For calls on a VI handle. Does not pin the NIC: where it must stay open, `body` takes a NicPin.
template <class Body>
VIP_RETURN with_vi(const char* name, VIP_VI_HANDLE handle, std::initializer_list<Argument> pointers,
                   Body&& body) noexcept {
    return guarded(name, handle, pointers, [&] {
        Vi* vi = find_vi(handle);
        return vi != nullptr ? body(*vi) : refuse_vi(handle);
    });
}

}  // namespace viaduct::vipl
