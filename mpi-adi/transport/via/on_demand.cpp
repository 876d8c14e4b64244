// SPDX-License-Identifier: BSD-2-Clause
// Connections of large jobs, made when somebody first sends (spec/adi 3.3): the sender notifies the other's
// connect listener, and then both ask for it as equals (VipConnectPeerRequest), which neither blocks nor
// cares who comes first or whether both wanted it. Messages wait meanwhile on the send queue of their
// process. A peer that computes asks when it next makes progress, one that gets no processor when it does; a
// dead one is seen by its process, or nobody listens there any more.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/address.hpp"
#include "mpi-adi/transport/via/card.hpp"
#include "mpi-adi/transport/via/receive.hpp"

namespace viaduct::via {

namespace {

using Clock = Opening::Clock;

// How long a request stays before its maker notifies the peer again. Twice as long after each in vain: on a
// crowded machine the peer has its turn late, and two whose requests are short miss each other for long.
constexpr VIP_ULONG kLongestAttempt = 16 * kFirstAttempt;
// Between two looks whether the peer still lives, where that can be seen.
constexpr auto kLook = std::chrono::milliseconds(50);
constexpr auto kSoon = std::chrono::milliseconds(10);
// Between notices in vain, each of which keeps progress for up to ConnectListener::kNoticeMilliseconds.
constexpr auto kLongestPause = std::chrono::milliseconds(1000);

enum class Step { pending, dead, no_memory, refused };

auto patience() { return std::chrono::seconds(adi::param_number(adi::Param::connect_timeout)); }

// Connecting has failed for a reason that time does not mend, or seldom. True: for too long.
bool keeps_failing(Opening& o, const char* call, VIP_RETURN rc) {
    const auto now = Clock::now();
    if (o.failing_since == Clock::time_point()) o.failing_since = now;
    o.asked = o.known = o.joined = o.greeted = false;
    o.next = now + kSoon;
    if (now - o.failing_since < patience()) return false;
    adi::fail(MPIP_ERR_OTHER, "%s answers %d", call, static_cast<int>(rc));
    return true;
}

VIP_RETURN ask(const Lane* c, VIP_ULONG milliseconds) {
    const uint32_t me = c->nic.me;
    const Card& card = c->nic.cards[c->peer.rank];
    Address local = {}, remote = {};
    local.fill(c->nic.attributes.LocalNicAddress, c->nic.attributes.NicAddressLen,
               discriminator(c->nic.task, me, c->peer.rank));
    remote.fill(card.address, card.address_len, discriminator(c->nic.task, c->peer.rank, me));
    return VipConnectPeerRequest(c->vi, &local.head, &remote.head, milliseconds);
}

enum class Life { lives, ended, unseen };

// Of the peer's process, as far as that can be seen from here: also of one that has ended and whose parent
// has not heard of it yet.
Life life_of(const Lane* c) {
    const Card& mine = c->nic.cards[c->nic.me];
    const Card& theirs = c->nic.cards[c->peer.rank];
    if (theirs.pids != mine.pids) return Life::unseen;
    pollfd process = {static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(theirs.pid), 0)), POLLIN, 0};
    if (process.fd < 0) return errno == ESRCH ? Life::ended : Life::unseen;
    const bool ended = ::poll(&process, 1, 0) > 0;
    ::close(process.fd);
    return ended ? Life::ended : Life::lives;
}

// From time to time.
bool is_seen_dead(Opening& o, Clock::time_point now) {
    if (now < o.look) return false;
    o.look = now + kLook;
    return life_of(o.connection) == Life::ended;
}

// Nobody listens there; sets the time of the next try. True: a dead process. But where nothing tells better,
// not soon: it may not listen yet, and while its thread is busy with another request, or gets no processor
// for that, nobody listens either.
bool means_death(Opening& o, Clock::time_point now) {
    o.next = Clock::now() + o.pause;
    o.pause = std::min(2 * o.pause, kLongestPause);
    if (o.deaf_since == Clock::time_point()) o.deaf_since = now;
    const Life life = life_of(o.connection);
    return life == Life::ended ||
           (life == Life::unseen && now - o.deaf_since >= patience() && now >= o.connection->nic.connects.all_joined);
}

Step advance(Opening& o) {
    Lane* c = o.connection;
    const auto now = Clock::now();
    if (o.joined) {
        if (!o.greeted) o.greeted = send_hello(c);
        if (!c->broken) return Step::pending;
        start_again(c);
        return keeps_failing(o, "a connection that breaks at once", VIP_SUCCESS) ? Step::refused : Step::pending;
    }
    if (o.asked) {
        const bool dead =
            is_seen_dead(o, now);  // before the request is looked at: it may have asked, and sent, and ended
        VIP_VI_ATTRIBUTES theirs;
        const VIP_RETURN rc = VipConnectPeerDone(c->vi, &theirs);
        if (rc == VIP_SUCCESS) {
            o.joined = true;
            o.greeted = send_hello(c);
            return Step::pending;
        }
        if (rc == VIP_NOT_DONE) return dead ? Step::dead : Step::pending;
        if (rc != VIP_TIMEOUT && rc != VIP_NO_MATCH)
            return keeps_failing(o, "VipConnectPeerDone", rc) ? Step::refused : Step::pending;
        o.asked = o.known = false;  // it did not come in time
        o.attempt = std::min(2 * o.attempt, kLongestAttempt);
        o.failing_since = {};
    }
    if (now < o.next) return Step::pending;
    if (!o.known && !c->nic.connects.mutual) {
        VIP_RETURN rc = VIP_SUCCESS;
        switch (c->nic.connects.listener.notify(c->nic, c->nic.cards[c->peer.rank], c->peer.rank, &rc)) {
            case Notice::nobody:
                return means_death(o, now) ? Step::dead : Step::pending;
            case Notice::failed:
                return keeps_failing(o, "VipConnectRequest", rc) ? Step::refused : Step::pending;
            default:  // it asks when it runs
                o.known = true;
                o.deaf_since = {};
                o.pause = kSoon;
        }
    }
    if (!c->equipped && equip(c) != MPIP_SUCCESS) return Step::no_memory;
    const VIP_RETURN rc = ask(c, o.attempt);
    if (rc != VIP_SUCCESS)
        return keeps_failing(o, "VipConnectPeerRequest", rc) ? Step::refused : Step::pending;
    o.asked = true;
    return Step::pending;
}

const char* reason(Step step) {
    switch (step) {
        case Step::no_memory:
            return "no memory for its receives";
        case Step::refused:
            return "no connection to it can be made";
        default:
            return "it does not answer";
    }
}

auto opening_of(const Lane* c) {
    auto& openings = c->nic.connects.openings;
    return std::find_if(openings.begin(), openings.end(),
                        [c](const Opening& o) { return o.connection == c; });
}

}  // namespace

bool wants_on_demand(const taskinfo_t* task) {
    return task->ti_nprocs > adi::param_number(adi::Param::on_demand);
}

void want_connection(Lane* c) {
    if (c->peer.ready() || c->opening || c->peer.lost()) return;
    c->opening = true;
    c->nic.connects.openings.push_back({c});
}

void drop_opening(Lane* c) {
    const auto found = opening_of(c);
    if (found != c->nic.connects.openings.end()) c->nic.connects.openings.erase(found);
    c->opening = false;
}

void take_requests(Nic& nic) {
    for (const uint32_t rank : nic.connects.listener.take()) {
        Lane* c = nic.lane(rank);
        if (c == nullptr || c->peer.ready() || c->peer.lost()) continue;
        want_connection(c);
        opening_of(c)->known = true;
        opening_of(c)->next = {};
    }
}

bool advance_openings(Nic& nic) {
    auto& openings = nic.connects.openings;
    bool moved = false;
    for (size_t i = 0; i < openings.size();) {
        Lane* c = openings[i].connection;
        const Step step = c->peer.lost() ? Step::dead : advance(openings[i]);
        if (step == Step::pending) {
            ++i;
            continue;
        }
        openings.erase(openings.begin() + static_cast<std::ptrdiff_t>(i));
        c->opening = false;
        moved = true;
        fail_connection(c, reason(step));
    }
    return moved;
}

void finish_opening(Lane* c) {
    const auto found = opening_of(c);
    VIP_VI_ATTRIBUTES theirs;
    // It may be here before progress has looked at the request.
    const bool made = found->joined || VipConnectPeerWait(c->vi, &theirs) == VIP_SUCCESS;
    const bool greeted = made && (found->greeted || send_hello(c));
    drop_opening(c);
    if (!greeted) return fail_connection(c, made ? reason(Step::no_memory) : reason(Step::refused));
    connected(c);
    want_flow(c);
}

}  // namespace viaduct::via
