// SPDX-License-Identifier: BSD-2-Clause
// Connections of large jobs, made with the first message (spec/adi 3.3): the sender tells the peer, by a note in its
// page or by its connect listener, and then both request the connection as equals (VipConnectPeerRequest), which does
// not block, in any order of the two. Messages wait meanwhile on the send queue of their process. A peer that computes
// makes its request when it next makes progress. That a peer is dead is found by its process, or because no listener
// answers any more.
#include <algorithm>

#include "core/process/watched_process.hpp"
#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/via/address.hpp"
#include "mpi-adi/transport/via/card.hpp"
#include "mpi-adi/transport/via/receive.hpp"

namespace viaduct::via {

namespace {

using Clock = ConnectAttempt::Clock;

// The longest time that a request stays before the peer is notified again. The time doubles after each request that was
// not answered: where processes share processors the peer runs late, and two short requests would miss each other.
constexpr VIP_ULONG kLongestRequest = 16 * kFirstRequest;
// Between two checks of a peer's process, where it can be seen, while no more than so many peers are checked.
constexpr auto kCheckInterval = std::chrono::milliseconds(50);
constexpr size_t kCheckedTogether = 8;
// Of attempts that do not move on, so many are looked at in a pass: its time must not grow with their number.
constexpr size_t kLooks = 4;
constexpr auto kSoon = std::chrono::milliseconds(10);
// Between notices that meet no listener. Each one blocks progress for up to ConnectListener::kNoticeMilliseconds.
constexpr auto kLongestPause = std::chrono::milliseconds(1000);

enum class Step { pending, dead, no_memory, refused };

auto connect_timeout() { return std::chrono::seconds(adi::param_number(adi::Param::connect_timeout)); }

// A call has failed with an error that is not expected while connecting. True: for longer than the time limit.
bool keeps_failing(ConnectAttempt& o, const char* call, VIP_RETURN rc) {
    const auto now = Clock::now();
    if (o.failing_since == Clock::time_point()) o.failing_since = now;
    o.requested = o.known = o.joined = o.hello_sent = false;
    o.next = now + kSoon;
    if (now - o.failing_since < connect_timeout()) return false;
    (void)fail_call(call, rc);  // the text of the loss
    return true;
}

VIP_RETURN request(const Lane* c, VIP_ULONG milliseconds) {
    const uint32_t me = c->nic.me;
    const Card& card = c->nic.cards[c->peer.rank];
    Address local = {}, remote = {};
    local.fill(c->nic.attributes.LocalNicAddress, c->nic.attributes.NicAddressLen,
               discriminator(c->nic.task, me, c->peer.rank));
    remote.fill(card.address, card.address_len, discriminator(c->nic.task, c->peer.rank, me));
    return VipConnectPeerRequest(c->vi, &local.head, &remote.head, milliseconds);
}

// Of the peer's process, where it is visible from here.
WatchedProcess::State state_of(const Lane* c) {
    const Card& mine = c->nic.cards[c->nic.me];
    const Card& theirs = c->nic.cards[c->peer.rank];
    if (theirs.pids != mine.pids) return WatchedProcess::State::unseen;
    return WatchedProcess(static_cast<pid_t>(theirs.pid), c->known_since).state();
}

// Tells the peer of the attempt: where both see the same processes by a note in its page, which it finds whenever it
// next makes progress.
Notice tell(ConnectAttempt& o, VIP_RETURN* why) {
    Nic& nic = o.connection->nic;
    const uint32_t rank = o.connection->peer.rank;
    const Card& theirs = nic.cards[rank];
    if (theirs.pids == nic.cards[nic.me].pids) {
        const Opened page = RequestPage::note(request_page_of(theirs), nic.me);
        if (page == Opened::ok) {
            o.timeout = kLongestRequest;
            return Notice::noted;
        }
        if (is_withdrawn(page) && state_of(o.connection) == WatchedProcess::State::ended) return Notice::no_listener;
    }
    return nic.connects.listener.notify(nic, theirs, rank, why);
}

// Checks at most every kCheckInterval; of many attempts each one less often, so that the checks of all stay as many.
bool process_ended(ConnectAttempt& o, Clock::time_point now) {
    if (now < o.next_check) return false;
    const size_t attempts = o.connection->nic.connects.attempts.size();
    o.next_check = now + kCheckInterval * std::max<size_t>(1, attempts / kCheckedTogether);
    return state_of(o.connection) == WatchedProcess::State::ended;
}

// The notice met no listener; sets the time of the next one. True: the process is dead. Where the process is not
// visible, only after the time limit: it may not listen yet, or its thread may be busy with another request or without
// a processor.
bool is_dead(ConnectAttempt& o, Clock::time_point now) {
    o.next = Clock::now() + o.pause;
    o.pause = std::min(2 * o.pause, kLongestPause);
    if (o.no_listener_since == Clock::time_point()) o.no_listener_since = now;
    const WatchedProcess::State state = state_of(o.connection);
    return state == WatchedProcess::State::ended ||
           (state == WatchedProcess::State::unseen && now - o.no_listener_since >= connect_timeout() &&
            now >= o.connection->nic.connects.all_joined);
}

Step advance(ConnectAttempt& o) {
    Lane* c = o.connection;
    const auto now = Clock::now();
    if (o.joined) {
        if (!o.hello_sent) o.hello_sent = send_hello(c);
        if (!c->broken) return Step::pending;
        start_again(c);
        return keeps_failing(o, "a connection that breaks at once", VIP_SUCCESS) ? Step::refused : Step::pending;
    }
    if (o.requested) {
        const bool dead =
            process_ended(o, now);  // before the request is checked: the peer may have connected, sent, and ended
        VIP_VI_ATTRIBUTES theirs;
        const VIP_RETURN rc = VipConnectPeerDone(c->vi, &theirs);
        if (rc == VIP_SUCCESS) {
            o.joined = true;
            o.hello_sent = send_hello(c);
            return Step::pending;
        }
        if (rc == VIP_NOT_DONE) return dead ? Step::dead : Step::pending;
        if (rc != VIP_TIMEOUT && rc != VIP_NO_MATCH)
            return keeps_failing(o, "VipConnectPeerDone", rc) ? Step::refused : Step::pending;
        o.requested = o.known = false;  // the peer made no request in time
        o.timeout = std::min(2 * o.timeout, kLongestRequest);
        o.failing_since = {};
    }
    if (now < o.next) return Step::pending;
    if (!o.known && !c->nic.connects.mutual) {
        VIP_RETURN rc = VIP_SUCCESS;
        switch (tell(o, &rc)) {
            case Notice::no_listener:
                return is_dead(o, now) ? Step::dead : Step::pending;
            case Notice::failed:
                return keeps_failing(o, "VipConnectRequest", rc) ? Step::refused : Step::pending;
            default:  // the peer makes its request when it runs
                o.known = true;
                o.no_listener_since = {};
                o.pause = kSoon;
        }
    }
    if (!c->prepared && prepare_vi(c) != MPIP_SUCCESS) return Step::no_memory;
    const VIP_RETURN rc = request(c, o.timeout);
    if (rc != VIP_SUCCESS)
        return keeps_failing(o, "VipConnectPeerRequest", rc) ? Step::refused : Step::pending;
    o.requested = true;
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

auto attempt_of(const Lane* c) {
    auto& attempts = c->nic.connects.attempts;
    return std::find_if(attempts.begin(), attempts.end(),
                        [c](const ConnectAttempt& o) { return o.connection == c; });
}

}  // namespace

bool wants_on_demand(const taskinfo_t* task) {
    return task->ti_nprocs > adi::param_number(adi::Param::on_demand);
}

void request_connection(Lane* c) {
    if (c->peer.ready() || c->connecting || c->peer.lost()) return;
    c->connecting = true;
    c->nic.connects.note_step();
    c->nic.connects.attempts.push_back({c});
}

void drop_attempt(Lane* c) {
    const auto found = attempt_of(c);
    if (found != c->nic.connects.attempts.end()) c->nic.connects.attempts.erase(found);
    c->connecting = false;
}

namespace {

void take_request(Nic& nic, uint32_t rank, VIP_ULONG timeout) {
    Lane* c = nic.lane(rank);
    if (c == nullptr || c->peer.ready() || c->peer.lost()) return;
    request_connection(c);
    const auto attempt = attempt_of(c);
    attempt->known = true;
    attempt->timeout = std::max(attempt->timeout, timeout);
    attempt->next = {};
}

// What has been done for the attempt so far.
bool same_stage(const ConnectAttempt& a, const ConnectAttempt& b) {
    return a.requested == b.requested && a.joined == b.joined && a.hello_sent == b.hello_sent;
}

}  // namespace

void take_requests(Nic& nic) {
    for (const uint32_t rank : nic.connects.page.take(nic.lanes.size())) take_request(nic, rank, kLongestRequest);
    for (const uint32_t rank : nic.connects.listener.take()) take_request(nic, rank, kFirstRequest);
}

bool advance_attempts(Nic& nic) {
    auto& attempts = nic.connects.attempts;
    size_t& next = nic.connects.next;
    bool moved = false;
    size_t unmoved = 0;
    for (size_t left = attempts.size(); left != 0 && unmoved < kLooks && !attempts.empty(); --left) {
        if (next >= attempts.size()) next = 0;
        Lane* c = attempts[next].connection;
        const ConnectAttempt before = attempts[next];
        const Step step = c->peer.lost() ? Step::dead : advance(attempts[next]);
        if (step == Step::pending) {
            if (same_stage(before, attempts[next]))
                ++unmoved;
            else
                moved = true;
            ++next;
            continue;
        }
        attempts.erase(attempts.begin() + static_cast<std::ptrdiff_t>(next));
        c->connecting = false;
        moved = true;
        fail_connection(c, reason(step));
    }
    if (moved) nic.connects.note_step();
    return moved;
}

void finish_attempt(Lane* c) {
    const auto found = attempt_of(c);
    VIP_VI_ATTRIBUTES theirs;
    // It may be here before progress has looked at the request.
    const bool made = found->joined || VipConnectPeerWait(c->vi, &theirs) == VIP_SUCCESS;
    const bool greeted = made && (found->hello_sent || send_hello(c));
    drop_attempt(c);
    if (!greeted) return fail_connection(c, made ? reason(Step::no_memory) : reason(Step::refused));
    connected(c);
    enter_flow_list(c);
}

}  // namespace viaduct::via
