// SPDX-License-Identifier: BSD-2-Clause
// When a daemon that programs start on demand ends without a program: its linger time after the last one has left, or
// after its own start. One thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace viaduct::daemon {

class IdleEnd {
public:
    // linger_ns: negative means that the daemon stays. `now` is its start.
    IdleEnd(int64_t linger_ns, int64_t now) : linger_ns_(linger_ns), since_(now) {}

    void set_linger(int64_t ns) { linger_ns_ = ns; }
    // A program has left.
    void note_use(int64_t now) { since_ = now; }
    // While the daemon has no program: the time until its end, and whether its end is due.
    int64_t left(int64_t now) const {
        return linger_ns_ < 0 ? INT64_MAX : std::max<int64_t>(since_ + linger_ns_ - now, 0);
    }
    bool is_due(int64_t now) const { return linger_ns_ >= 0 && now - since_ >= linger_ns_; }

private:
    int64_t linger_ns_, since_;
};

}  // namespace viaduct::daemon
