// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/daemon_session.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/agent/meeting_point.hpp"
#include "core/agent/own_limits.hpp"
#include "core/agent/start_agent.hpp"
#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/packet/message.hpp"
#include "providers/udp/address.hpp"
#include "providers/udp/daemon/protocol.hpp"

namespace viaduct::udp {

namespace {

constexpr int64_t kPause = 2'000'000;
constexpr int64_t kStartAgain = 1'000'000'000;  // where the started daemon does not come, then twice as long each time
constexpr int64_t kAtOnce = 0;                  // a deadline that has passed
constexpr int64_t kSlice = 20'000'000;          // `stop` is looked at so often

class Search {
public:
    Search(const SessionRequest& request, int64_t deadline, const std::atomic<bool>& stop)
        : request_(request), name_(text_of(request.nic)), deadline_(deadline), stop_(stop) {}

    Session run(Greeting);
    Status greet(Greeting*);
    std::string why, cure;

private:
    Status greet(uid_t user, Greeting*);
    Status take_answer(Greeting, Session* out);
    bool start();
    bool replace(int socket, uid_t user, uint32_t flaws, bool refused);
    void await_message(int socket) const;

    const SessionRequest& request_;
    const std::string name_;
    const int64_t deadline_;
    const std::atomic<bool>& stop_;
    int requests_to_end_ = 0;  // sent to daemons
};

// Until a message is there, or the end.
void Search::await_message(int socket) const {
    pollfd p{socket, POLLIN, 0};
    while (!stop_.load()) {
        const int64_t left = deadline_ - now_ns();
        const int64_t slice = std::clamp<int64_t>(left, 0, kSlice);
        if (::poll(&p, 1, static_cast<int>(slice / 1'000'000) + (left > 0 ? 1 : 0)) != 0 || left <= 0) return;
    }
}

// Asks a daemon to end that has inherited worse limits than this process has. The search starts a daemon with the
// limits of this process. It asks once, in case another program starts the next daemon, and a few times where this
// process is refused. True: the daemon has been asked.
bool Search::replace(int socket, uid_t user, uint32_t flaws, bool refused) {
    constexpr int kMostRequests = 5;
    const int most = refused ? kMostRequests : 1;
    if (requests_to_end_ >= most || user != ::geteuid() || !could_do_better(flaws)) return false;
    ++requests_to_end_;
    VIADUCT_LOG(warn, "udp",
                "viaduct-udpd of %s works under limits of the program that started it (%s): asked to leave",
                name_.c_str(), names_of_flaws(flaws).c_str());
    FilterMessage end;
    end.what = FilterMessage::end;
    if (packet::send_message(socket, &end, sizeof end)) await_message(socket);
    return true;
}

// no_match: no daemon serves there. not_done: not yet, or not any more.
Status Search::greet(uid_t user, Greeting* out) {
    Fd socket;
    std::string in_the_way;
    switch (meet(daemon_address(name_, user), user, &socket, &in_the_way, deadline_)) {
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
            why = "viaduct-udpd of " + name_ + " cannot be reached" + (in_the_way.empty() ? "" : ": " + in_the_way);
            cure = "see ulimit -n, or set udp.port to another port";
            return Status::denied;
    }
    Hello hello;
    hello.token = request_.token;
    hello.data = request_.data;
    if (!packet::send_message(socket.get(), &hello, sizeof hello)) return Status::not_done;
    *out = {std::move(socket), user};
    return Status::ok;
}

// The result of greet() for the daemon of this user, or else of root's.
Status Search::greet(Greeting* out) {
    const Status own = greet(::geteuid(), out);
    return own == Status::no_match && ::geteuid() != 0 ? greet(0, out) : own;
}

// not_done: the daemon does not answer by the deadline, or ends.
Status Search::take_answer(Greeting greeting, Session* out) {
    const int socket = greeting.socket.get();
    await_message(socket);
    Welcome w;
    std::vector<Fd> files;
    if (packet::take_message(socket, &w, sizeof w, &files) != Status::ok) return Status::not_done;
    if (w.magic == kDaemonMagic && w.version == kDaemonVersion &&
        replace(socket, greeting.user, w.flaws, w.status != 0))
        return Status::not_done;
    if (w.magic != kDaemonMagic || w.version != kDaemonVersion || w.status != 0) {
        why = w.magic == kDaemonMagic ? packet::get_text(w.why) : "another program answers for viaduct-udpd";
        cure = packet::get_text(w.cure);
        return Status::denied;
    }
    *out = {std::move(greeting.socket), w.flaws};
    return Status::ok;
}

bool Search::start() {
    std::string tried;
    const std::string program = find_beside_vipkad("viaduct-udpd", "VIADUCT_UDPD", &tried);
    const size_t colon = name_.find(':');
    const int e = program.empty() ? ENOENT
                                  : spawn_detached(program, {"viaduct-udpd", "--address", name_.substr(0, colon),
                                                             "--port", name_.substr(colon + 1)});
    if (e == 0) return true;
    why = program.empty() ? "there is no viaduct-udpd at " + tried : program + " does not start: " + std::strerror(e);
    cure = "install it: without it programs of this host can connect to others, but cannot accept any";
    return false;
}

Session Search::run(Greeting greeting) {
    const int64_t others_until = request_.ended ? now_ns() + time_for_a_better_server(*request_.ended) : 0;
    int64_t started_at = 0, again = 0;
    while (!stop_.load()) {
        Session session;
        Status last = greeting.socket.valid() ? Status::ok : greet(&greeting);
        if (last == Status::ok) last = take_answer(std::exchange(greeting, {}), &session);
        if (last == Status::ok) return session;
        if (last == Status::denied) return {};
        const int64_t now = now_ns();
        if (last == Status::no_match && now >= others_until && now - started_at > again) {
            if (!start()) return {};
            started_at = now_ns();
            again = std::max(2 * again, kStartAgain);
        }
        if (now_ns() >= deadline_) {
            why = "viaduct-udpd of " + name_ + " does not come up";
            cure = "run viaduct-udpd --foreground by hand and see what it says";
            return {};
        }
        ::usleep(kPause / 1000);
    }
    return {};
}

}  // namespace

Greeting greet_daemon(const SessionRequest& request) {
    const CancellationHeldOff held_off;
    const std::atomic<bool> go_on{false};
    Greeting greeting;
    (void)Search(request, kAtOnce, go_on).greet(&greeting);  // without one the socket is invalid
    return greeting;
}

Session open_session(const SessionRequest& request, Greeting greeting, int64_t deadline, const std::atomic<bool>& stop,
                     std::string* why, std::string* cure) {
    const CancellationHeldOff held_off;
    Search search(request, deadline, stop);
    Session session = search.run(std::move(greeting));
    *why = std::move(search.why);
    *cure = std::move(search.cure);
    return session;
}

bool is_open_session(const Fd& session) {
    pollfd p{session.get(), 0, 0};
    return session.valid() && ::poll(&p, 1, 0) == 0;
}

}  // namespace viaduct::udp
