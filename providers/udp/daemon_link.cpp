// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/daemon_link.hpp"

namespace viaduct::udp {

namespace {

constexpr int64_t kLookEvery = 100'000'000;

}  // namespace

void DaemonLink::attend(int64_t now) {
    in_use_ = true;
    keeper_.want();
    keeper_.look_after(*agent_, now);
}

uint32_t DaemonLink::add(FilterMessage message, int64_t now) {
    message.number = ++last_ != 0 ? last_ : ++last_;
    keeper_.add(message, now);
    in_use_ = true;
    asked_ = message.number;
    keeper_.look_after(*agent_, now);
    return message.number;
}

void DaemonLink::remove(uint32_t number, bool release_matches) {
    keeper_.remove(number, release_matches);
    if (number == asked_) known_ = asked_;  // no confirmation is waited for
}

void DaemonLink::look_after(int64_t now) {
    if (!in_use_ || now - looked_at_ < kLookEvery) return;
    looked_at_ = now;
    keeper_.look_after(*agent_, now);
}

}  // namespace viaduct::udp
