// SPDX-License-Identifier: BSD-2-Clause
// Destroying what the program's handlers may be told of: a VI, a completion queue.
#pragma once

#include <memory>

#include "vipl/dispatcher.hpp"
#include "vipl/nic.hpp"

namespace viaduct::vipl {

// `destroy` does it while the NIC is pinned; `refuse` says that the handle is none. A handler that runs for the object
// ends before this returns, since programs free its context next.
template <class Object, class Handle>
VIP_RETURN destroy_after_handler(Object& object, Handle handle, VIP_RETURN (*destroy)(Nic&, Object&, Handle),
                                 VIP_RETURN (*refuse)(const void*)) {
    std::shared_ptr<Dispatcher> dispatcher;
    {
        const NicPin pin(object.nic, object.handle, handle);
        if (!pin) return refuse(handle);
        dispatcher = pin->dispatcher;
        const VIP_RETURN result = destroy(*pin, object, handle);
        if (result != VIP_SUCCESS) return result;
    }
    dispatcher->await_handler_of(handle);
    return VIP_SUCCESS;
}

}  // namespace viaduct::vipl
