// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/thrown.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

constexpr const char* kLimitsCure = "look at the limits of the process (ulimit -a) and at its cgroup";

// std::length_error: a container would exceed the address space.
bool is_of_memory(const std::exception& thrown) {
    return dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ||
           dynamic_cast<const std::length_error*>(&thrown) != nullptr;
}

bool is_errno(const std::error_code& code) {
    return code.category() == std::generic_category() || code.category() == std::system_category();
}

}  // namespace

VIP_RETURN refuse_no_memory() noexcept { return refuse(VIP_ERROR_RESOURCE, kLimitsCure, "no memory left"); }

VIP_RETURN refuse_thrown(const std::exception& thrown) noexcept {
    const auto* const system = dynamic_cast<const std::system_error*>(&thrown);
    if (is_of_memory(thrown) || (system != nullptr && is_errno(system->code()) && system->code().value() == ENOMEM))
        return refuse_no_memory();
    if (system != nullptr && is_errno(system->code()))
        return refuse(VIP_ERROR_RESOURCE, kLimitsCure, "the system refuses a thread or a lock: %s",
                      std::strerror(system->code().value()));
    return refuse(VIP_ERROR_RESOURCE, "vipinfo --doctor", "a fault inside the library: %s", thrown.what());
}

}  // namespace viaduct::vipl
