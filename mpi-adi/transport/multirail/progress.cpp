// SPDX-License-Identifier: BSD-2-Clause
// One pass of progress over all rails, and what is looked at by the clock.
#include <poll.h>

#include <algorithm>
#include <thread>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/multirail/multirail.hpp"

namespace viaduct::multirail {

namespace {
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
constexpr auto kBetweenAttempts = std::chrono::microseconds(200);
constexpr auto kBetweenProbes = std::chrono::milliseconds(100);
constexpr unsigned kPassesBetweenClocks = 256;
constexpr std::chrono::microseconds kShortestNap(20);
constexpr std::chrono::microseconds kLongestNap(1000);
}  // namespace

bool Multirail::any_connecting() const {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const MultiLane* lane) { return !lane->peer.lost() && lane->is_connecting(); });
}

// Processes that have ended, or that no lane reaches any more.
void Multirail::look_for_lost(MultiLane& lane, Clock::time_point now) {
    if (lane.peer.lost() || lane.links_up != 0 || !lane.peer.ready()) return;
    const auto patience = std::chrono::seconds(adi::param_number(adi::Param::rail_patience));
    pollfd ended = {lane.pidfd, POLLIN, 0};
    if (lane.pidfd >= 0 && ::poll(&ended, 1, 0) > 0) {
        fail(lane.peer, "its process has ended");
    } else if (now - lane.alone_since > patience) {
        fail(lane.peer, "no rail reaches it any more");
    }
}

// Lanes are made, and what is lost is noticed, by the clock: on a busy machine each pass may cost a turn of everybody
// else.
void Multirail::look_by_the_clock() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    connecting_ = any_connecting();
    next_look_ = now + (connecting_ ? Clock::duration(kBetweenAttempts) : Clock::duration(kBetweenLooks));
    const bool probing = now >= next_probe_;
    if (probing) next_probe_ = now + kBetweenProbes;
    for (MultiLane* lane : lanes_) {
        look_for_lost(*lane, now);
        if (lane->peer.lost()) continue;
        if (connecting_) lane->look_after(now);
        if (probing) lane->probe();
    }
}

// Everything but giving messages to the engine.
int Multirail::work() {
    int done = 0;
    // The others take the rails in turn, so the next packet is likely on the next rail. A look in vain gives way to
    // other programs where there are such: the fewer the better.
    for (size_t i = 0; i < rails_.size() && done == 0; ++i) {
        const size_t at = (next_rail_ + i) % rails_.size();
        done = rails_[at]->progress();
        if (done != 0) next_rail_ = at + 1;
    }
    if (done != 0) nap_ = {};
    if (suspects_) {
        suspects_ = false;
        for (MultiLane* lane : lanes_) lane->take_out_suspects();
    }
    const bool idle = done == 0;
    for (MultiLane* lane : lanes_) {
        if (lane->peer.lost()) continue;
        done += lane->work(idle);
        if (measures_) lane->measure(Clock::now());
    }
    if (stripes_ != 0) last_pass_ = Clock::now();
    measures_ = false;
    if (connecting_ || ++idle_ % kPassesBetweenClocks == 0) look_by_the_clock();
    return done;
}

int Multirail::progress() {
    if (!opened_) {
        opened_ = true;
        for (MultiLane* lane : lanes_) lane->give_out();
    }
    int done = work();
    if (has_landed()) {
        finish_landed();
        ++done;
    }
    (void)has_moved();
    for (MultiLane* lane : lanes_) {
        if (!lane->peer.lost() && lane->peer.blocked()) done += push(lane->peer);
    }
    return done;
}

// No call waits for several NICs, so this is a nap, longer each time while nothing comes.
void Multirail::block(unsigned timeout_us) {
    if (rails_.empty() || has_landed() || suspects_) return;
    bool busy = connecting_;
    for (const MultiLane* lane : lanes_) {
        if (lane->peer.moving != nullptr) return;
        busy = busy || !lane->is_idle();
    }
    nap_ = std::clamp(nap_ * 2, kShortestNap, busy ? kShortestNap : kLongestNap);
    const adi::Asleep asleep;
    std::this_thread::sleep_for(std::min(nap_, std::chrono::microseconds(timeout_us)));
}

}  // namespace viaduct::multirail
