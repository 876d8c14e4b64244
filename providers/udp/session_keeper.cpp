// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/session_keeper.hpp"

#include <poll.h>

#include <atomic>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/packet/message.hpp"
#include "providers/udp/address.hpp"

namespace viaduct::udp {

namespace {

constexpr int64_t kAskAgain = 60'000'000'000;        // after a failure: it starts a process
constexpr int64_t kAskAgainWaiting = 1'000'000'000;  // the same where the program waits for requests
constexpr int64_t kRefusesFor = 200'000'000;         // as long as the daemon itself refuses
constexpr int kFullMs = 10;                          // between two looks at a daemon that reads nothing

struct Filter {
    enum class State : uint8_t { untold, told, leaving, refused };
    FilterMessage message;
    State state = State::untold;
    bool was_told = false;  // in this session or an earlier one
};

}  // namespace

struct SessionKeeper::State {
    explicit State(const SessionRequest& r) : request(r), name(text_of(r.nic)) {}

    const SessionRequest request;
    const std::string name;  // of the NIC
    std::atomic<bool> stop{false};
    std::mutex mutex;   // of the members below
    Fd session;         // while the thread runs, only the thread closes it
    Greeting greeting;  // whose answer the thread is to take
    std::map<uint32_t, Filter> filters;
    size_t unsent = 0;  // of them: untold or leaving
    bool running = false, wanted = false;
    std::optional<uint32_t> daemon_flaws;  // of the daemon of the last session
    int64_t not_before = 0, refused_until = 0;
    std::string why, cure;  // of the last refusal

    bool send(Filter&);
    bool send_all();
    void drop_ended_session();
    void refuse(const char* reason, const char* way_out, int64_t now);
    void keep_reason(const char* reason, const char* way_out) noexcept;
    void greet() noexcept;
    bool find();
};

// False: the daemon takes no more now, or has ended.
bool SessionKeeper::State::send(Filter& f) {
    if (!session.valid() || !packet::send_message(session.get(), &f.message, sizeof f.message)) return false;
    f.state = Filter::State::told;
    f.was_told = true;
    return true;
}

bool SessionKeeper::State::send_all() {
    for (auto at = filters.begin(); unsent != 0 && at != filters.end();) {
        Filter& f = at->second;
        const bool leaves = f.state == Filter::State::leaving;
        if (leaves || f.state == Filter::State::untold) {
            if (!send(f)) return false;
            --unsent;
        }
        at = leaves ? filters.erase(at) : std::next(at);
    }
    return true;
}

// The next session begins without filters.
void SessionKeeper::State::drop_ended_session() {
    if (!session.valid() || is_open_session(session)) return;
    session.reset();
    std::erase_if(filters, [](const auto& f) { return f.second.state == Filter::State::leaving; });
    unsent = 0;
    for (auto& [number, f] : filters) {
        if (f.state == Filter::State::told) f.state = Filter::State::untold;
        if (f.state == Filter::State::untold) ++unsent;
    }
    if (!filters.empty())
        VIADUCT_LOG(warn, "udp", "viaduct-udpd of %s has ended; another one is started", name.c_str());
}

// Without memory the reason is empty.
void SessionKeeper::State::keep_reason(const char* reason, const char* way_out) noexcept try {
    why = reason;
    cure = way_out;
} catch (const std::exception&) {
    why.clear();
    cure.clear();
}

// A program that waits already goes on waiting.
void SessionKeeper::State::refuse(const char* reason, const char* way_out, int64_t now) {
    for (auto& [number, f] : filters) {
        if (f.state != Filter::State::untold || f.was_told) continue;
        f.state = Filter::State::refused;
        --unsent;
    }
    keep_reason(reason, way_out);
    not_before = now + (filters.empty() ? kAskAgain : kAskAgainWaiting);
    refused_until = now + kRefusesFor;
    if (filters.empty())
        VIADUCT_LOG(info, "udp", "peers may see the end of this program late: %s; %s", reason, way_out);
    else
        VIADUCT_LOG(error, "udp", "%s; %s", reason, way_out);
}

// The daemon watches this process from the greeting on, also when the thread gets no processor for long.
void SessionKeeper::State::greet() noexcept try {
    if (!session.valid() && !greeting.socket.valid()) greeting = greet_daemon(request);
} catch (const std::exception&) {
    // The thread greets the daemon.
}

// On the thread. False: there is no session, and the thread ends.
bool SessionKeeper::State::find() {
    std::string reason, way_out;
    Session found;
    try {
        Greeting begun;
        SessionRequest wanted_session = request;
        {
            const std::scoped_lock lock(mutex);
            begun = std::exchange(greeting, {});
            wanted_session.ended = daemon_flaws;
        }
        found = open_session(wanted_session, std::move(begun), now_ns() + limit_ns(TimeLimit::udpd_start), stop,
                             &reason, &way_out);
    } catch (const std::exception&) {
        found.socket.reset();
    }
    const std::scoped_lock lock(mutex);
    if (found.socket.valid() && !stop.load()) {
        session = std::move(found.socket);
        daemon_flaws = found.flaws;
        return true;
    }
    running = false;
    if (stop.load()) return false;
    if (reason.empty())
        refuse("viaduct-udpd cannot be asked: no memory", "see ulimit -a", now_ns());
    else
        refuse(reason.c_str(), way_out.c_str(), now_ns());
    return false;
}

void SessionKeeper::run(void* argument) {
    const std::unique_ptr<std::shared_ptr<State>> owned(static_cast<std::shared_ptr<State>*>(argument));
    State& state = **owned;
    for (;;) {
        pollfd full{-1, 0, 0};  // its end only: a socket may be writable and take nothing, where memory is short
        {
            const std::scoped_lock lock(state.mutex);
            state.drop_ended_session();
            if (state.stop.load() || (state.session.valid() && state.send_all())) {
                state.running = false;
                return;
            }
            full.fd = state.session.get();
        }
        if (full.fd >= 0)
            ::poll(&full, 1, kFullMs);
        else if (!state.find())
            return;
    }
}

SessionKeeper::SessionKeeper(const SessionRequest& request) : state_(std::make_shared<State>(request)) {}

SessionKeeper::~SessionKeeper() { state_->stop.store(true); }

void SessionKeeper::want() {
    const std::scoped_lock lock(state_->mutex);
    state_->wanted = true;
}

void SessionKeeper::add(const FilterMessage& message, int64_t now) {
    State& s = *state_;
    const std::scoped_lock lock(s.mutex);
    Filter& f = s.filters[message.number];
    f.message = message;
    if (s.unsent == 0 && s.send(f)) return;
    if (!s.running && !is_open_session(s.session) && now < s.refused_until) {
        f.state = Filter::State::refused;
        return;
    }
    ++s.unsent;
    s.not_before = 0;
}

void SessionKeeper::remove(uint32_t number, bool release_matches) {
    State& s = *state_;
    const std::scoped_lock lock(s.mutex);
    const auto found = s.filters.find(number);
    if (found == s.filters.end() || found->second.state == Filter::State::leaving) return;
    Filter& f = found->second;
    f.message.what = release_matches ? FilterMessage::remove_matches : FilterMessage::remove;
    if (f.state == Filter::State::told && (s.unsent != 0 || !s.send(f))) {
        f.state = Filter::State::leaving;
        ++s.unsent;
        return;
    }
    if (f.state == Filter::State::untold) --s.unsent;
    s.filters.erase(found);
}

bool SessionKeeper::is_refused(uint32_t number) const {
    const std::scoped_lock lock(state_->mutex);
    const auto found = state_->filters.find(number);
    return found != state_->filters.end() && found->second.state == Filter::State::refused;
}

void SessionKeeper::why_refused(std::string* why, std::string* cure) const {
    const std::scoped_lock lock(state_->mutex);
    *why = state_->why;
    *cure = state_->cure;
}

void SessionKeeper::look_after(UserAgent& agent, int64_t now) {
    const CancellationHeldOff inside_hot_calls;
    State& s = *state_;
    const std::scoped_lock lock(s.mutex);
    if (s.running) return;
    s.drop_ended_session();
    if (s.session.valid() ? s.unsent == 0 : (!s.wanted && s.filters.empty()) || now < s.not_before) return;
    s.greet();
    auto* const argument = new (std::nothrow) std::shared_ptr<State>(state_);
    if (argument == nullptr) return;
    s.running = true;
    if (agent.spawn("vipl-udp-ask", run, argument) == Status::ok) return;
    delete argument;
    s.running = false;
    s.refuse("no thread can be started to ask viaduct-udpd", "raise the limit of processes (ulimit -u)", now);
}

}  // namespace viaduct::udp
