// SPDX-License-Identifier: BSD-2-Clause
// A process without a descriptor left.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include "core/shm/fd.hpp"

namespace viaduct::tests {

// In its scope no descriptor can be opened, unless another one has been closed in that scope.
class NoDescriptors {
public:
    NoDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const Fd first_free(::dup(0));
        rlimit now = before_;
        now.rlim_cur = static_cast<rlim_t>(first_free.get());
        ::setrlimit(RLIMIT_NOFILE, &now);
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

}  // namespace viaduct::tests
