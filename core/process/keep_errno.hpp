// SPDX-License-Identifier: BSD-2-Clause
// The library's own system calls leave errno as the application had it.
#pragma once

#include <cerrno>

namespace viaduct {

// Until the end of its scope.
class KeepErrno {
public:
    KeepErrno() = default;
    ~KeepErrno() { errno = saved_; }
    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

private:
    const int saved_ = errno;
};

}  // namespace viaduct
