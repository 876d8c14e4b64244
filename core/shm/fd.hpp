// SPDX-License-Identifier: BSD-2-Clause
// Owned file descriptors.
#pragma once

#include <utility>

namespace viaduct {

// A file descriptor with one owner. Ours are close-on-exec, and above 2 if they outlast a call (spec/compat L11).
class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~Fd() { reset(); }
    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    void reset();

private:
    int fd_ = -1;
};

inline constexpr int kFirstFd = 3;  // the standard three are the program's

// Moves a descriptor above the standard three when it is one of them (programs redirect those); closes the
// low one.
int above_stdio(int fd);

// Whether this process may open so many descriptors more (RLIMIT_NOFILE, or what the system has). A moment later it
// need not be true.
bool descriptors_left(int count);

}  // namespace viaduct
