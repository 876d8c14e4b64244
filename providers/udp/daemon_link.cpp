// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/daemon_link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "core/agent/meeting_point.hpp"
#include "core/agent/start_agent.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/packet/message.hpp"
#include "providers/udp/address.hpp"

namespace viaduct::udp {

namespace {

constexpr int64_t kPause = 2'000'000;
constexpr int64_t kStartAgain = 1'000'000'000;  // where the started daemon has left again
constexpr int64_t kLookEvery = 100'000'000;

}  // namespace

bool DaemonLink::is_alive() const {
    pollfd p{socket_.get(), 0, 0};
    return socket_.valid() && ::poll(&p, 1, 0) == 0;
}

// no_match: no daemon serves there. not_done: not yet, or not any more.
Status DaemonLink::greet(uid_t user, int64_t deadline) {
    Fd socket;
    std::string in_the_way;
    switch (meet(daemon_address(text_of(nic_), user), user, &socket, &in_the_way, deadline)) {
        case 0:
            break;
        case ECONNREFUSED:
        case ENOENT:
        case EBUSY:  // the one that is started decides
            return Status::no_match;
        case EAGAIN:
        case EINTR:
            return Status::not_done;
        default:
            why_ = "viaduct-udpd of " + text_of(nic_) + " cannot be reached" +
                   (in_the_way.empty() ? "" : ": " + in_the_way);
            cure_ = "see ulimit -n, or set udp.port to another port";
            return Status::denied;
    }
    Hello hello;
    hello.token = token_;
    hello.data = data_;
    if (!packet::send_message(socket.get(), &hello, sizeof hello)) return Status::not_done;
    pollfd p{socket.get(), POLLIN, 0};
    const int64_t left = deadline - now_ns();
    ::poll(&p, 1, left > 0 ? static_cast<int>(left / 1'000'000) + 1 : 0);
    Welcome w;
    std::vector<Fd> files;
    if (packet::take_message(socket.get(), &w, sizeof w, &files) != Status::ok) return Status::not_done;
    if (w.magic != kDaemonMagic || w.version != kDaemonVersion || w.status != 0) {
        why_ = w.magic == kDaemonMagic ? packet::get_text(w.why) : "another program answers for viaduct-udpd";
        cure_ = packet::get_text(w.cure);
        return Status::denied;
    }
    socket_ = std::move(socket);
    return Status::ok;
}

// Of this user, or of root; started when there is none.
bool DaemonLink::find(int64_t deadline) {
    const CancellationHeldOff held_off;
    int64_t started_at = 0;
    for (;;) {
        Status last = greet(::geteuid(), deadline);
        if (last == Status::no_match && ::geteuid() != 0) last = greet(0, deadline);
        if (last == Status::ok) break;
        if (last == Status::denied) return false;
        if (last == Status::no_match && now_ns() - started_at > kStartAgain) {
            std::string tried;
            const std::string program = find_beside_vipkad("viaduct-udpd", "VIADUCT_UDPD", &tried);
            const std::string name = text_of(nic_);
            const size_t colon = name.find(':');
            const int e = program.empty() ? ENOENT
                                          : spawn_detached(program, {"viaduct-udpd", "--address", name.substr(0, colon),
                                                                     "--port", name.substr(colon + 1)});
            if (e != 0) {
                why_ = program.empty() ? "there is no viaduct-udpd at " + tried
                                       : program + " does not start: " + std::strerror(e);
                cure_ = "install it: without it programs of this host can connect to others, but cannot accept any";
                return false;
            }
            started_at = now_ns();
        }
        if (now_ns() >= deadline) {
            why_ = "viaduct-udpd of " + text_of(nic_) + " does not come up";
            cure_ = "run viaduct-udpd --foreground by hand and see what it says";
            return false;
        }
        ::usleep(kPause / 1000);
    }
    for (const auto& [number, message] : filters_)
        if (!tell(message)) return false;
    return true;
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
    if ((!is_alive() && !find(now_ns() + limit_ns(TimeLimit::udpd_start))) || !tell(message)) {
        VIADUCT_LOG(error, "udp", "%s; %s", why_.c_str(), cure_.c_str());
        return 0;
    }
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
    if (filters_.empty() || now - looked_at_ < kLookEvery) return;
    looked_at_ = now;
    if (is_alive()) return;
    VIADUCT_LOG(warn, "udp", "viaduct-udpd of %s has ended; another one is started", text_of(nic_).c_str());
    if (!find(now + limit_ns(TimeLimit::udpd_start_again)))
        VIADUCT_LOG(error, "udp", "%s; %s", why_.c_str(), cure_.c_str());
}

}  // namespace viaduct::udp
