// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/session_seeker.hpp"

#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"

namespace viaduct::udp {

namespace {

constexpr int64_t kAskAgain = 60'000'000'000;  // after a failure: it starts a process

}  // namespace

struct SessionSeeker::Search {
    explicit Search(const SessionRequest& r) : request(r) {}

    const SessionRequest request;
    std::atomic<bool> stop{false};
    std::mutex mutex;  // of the members below
    Fd session;
    bool running = false;
    int64_t not_before = 0;

    void finish(Fd found) {
        const std::scoped_lock lock(mutex);
        if (!found.valid()) not_before = now_ns() + kAskAgain;
        if (!stop.load()) session = std::move(found);
        running = false;
    }
};

SessionSeeker::SessionSeeker(const SessionRequest& request) : search_(std::make_shared<Search>(request)) {}

SessionSeeker::~SessionSeeker() { search_->stop.store(true); }

void SessionSeeker::run(void* argument) {
    const std::unique_ptr<std::shared_ptr<Search>> owned(static_cast<std::shared_ptr<Search>*>(argument));
    Search& search = **owned;
    Fd session;
    try {
        std::string why, cure;
        session =
            open_session(search.request, now_ns() + limit_ns(TimeLimit::udpd_start), search.stop, &why, &cure);
        if (!session.valid() && !search.stop.load())
            VIADUCT_LOG(info, "udp", "peers may see the end of this program late: %s; %s", why.c_str(), cure.c_str());
    } catch (const std::bad_alloc&) {
        session.reset();
    }
    search.finish(std::move(session));
}

void SessionSeeker::begin(UserAgent& agent, int64_t now) {
    const std::scoped_lock lock(search_->mutex);
    if (search_->running || now < search_->not_before || is_open_session(search_->session)) return;
    auto* const argument = new (std::nothrow) std::shared_ptr<Search>(search_);
    if (argument == nullptr) return;
    search_->session.reset();
    search_->running = true;
    const CancellationHeldOff held_off;
    if (agent.spawn("vipl-udp-ask", run, argument) == Status::ok) return;
    delete argument;
    search_->running = false;
    search_->not_before = now + kAskAgain;
}

Fd SessionSeeker::take() {
    const std::scoped_lock lock(search_->mutex);
    return std::move(search_->session);
}

}  // namespace viaduct::udp
