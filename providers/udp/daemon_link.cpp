// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/daemon_link.hpp"

#include <atomic>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/packet/message.hpp"
#include "providers/udp/address.hpp"

namespace viaduct::udp {

namespace {

constexpr int64_t kLookEvery = 100'000'000;

}  // namespace

// The session that the seeker has opened, or another one. All filters go there.
bool DaemonLink::find(int64_t deadline) {
    static constexpr std::atomic<bool> kGoOn{false};
    socket_ = seeker_.take();
    if (!is_alive()) socket_ = open_session(request_, deadline, kGoOn, &why_, &cure_);
    if (!socket_.valid()) return false;
    for (const auto& [number, message] : filters_)
        if (!tell(message)) return false;
    return true;
}

void DaemonLink::attend(UserAgent& agent, int64_t now) {
    attended_by_ = &agent;
    if (!is_alive()) seeker_.begin(agent, now);
}

bool DaemonLink::tell(const FilterMessage& message) {
    if (packet::send_message(socket_.get(), &message, sizeof message)) return true;
    why_ = "viaduct-udpd takes no more request filters";
    cure_ = "wait for fewer connections at a time";
    return false;
}

uint32_t DaemonLink::add(FilterMessage message) {
    message.number = ++last_ != 0 ? last_ : ++last_;
    // Its place is there first: what the daemon knows must be in filters_, or nothing could remove it.
    std::map<uint32_t, FilterMessage> place{{message.number, message}};
    if ((!is_alive() && !find(now_ns() + limit_ns(TimeLimit::udpd_start))) || !tell(message)) return 0;
    asked_ = message.number;
    filters_.merge(place);
    return message.number;
}

void DaemonLink::remove(uint32_t number, bool release_matches) {
    const auto found = filters_.find(number);
    if (found == filters_.end()) return;
    FilterMessage message = found->second;
    message.what = release_matches ? FilterMessage::remove_matches : FilterMessage::remove;
    filters_.erase(found);
    tell(message);
}

void DaemonLink::look_after(int64_t now) {
    if ((filters_.empty() && attended_by_ == nullptr) || now - looked_at_ < kLookEvery) return;
    looked_at_ = now;
    if (is_alive()) return;
    if (filters_.empty()) return seeker_.begin(*attended_by_, now);
    VIADUCT_LOG(warn, "udp", "viaduct-udpd of %s has ended; another one is started", text_of(request_.nic).c_str());
    if (!find(now + limit_ns(TimeLimit::udpd_start_again)))
        VIADUCT_LOG(error, "udp", "%s; %s", why_.c_str(), cure_.c_str());
}

}  // namespace viaduct::udp
