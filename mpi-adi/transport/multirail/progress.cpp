// SPDX-License-Identifier: BSD-2-Clause
// One pass of progress over all rails, and timers.
#include <algorithm>
#include <thread>

#include "mpi-adi/transport/adi/blocking.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/multirail/multirail.hpp"

namespace viaduct::multirail {

namespace {
constexpr auto kCheckInterval = std::chrono::milliseconds(20);
constexpr auto kAttemptInterval = std::chrono::microseconds(200);
constexpr auto kProbeInterval = std::chrono::milliseconds(100);
constexpr unsigned kPassesBetweenTimers = 256;
constexpr std::chrono::microseconds kShortestSleep(20);
constexpr std::chrono::microseconds kLongestSleep(1000);
}  // namespace

bool Multirail::any_connecting() const {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const MultiLane* lane) { return !lane->peer.lost() && lane->is_connecting(); });
}

// A process whose end can be seen is lost when it has ended or has become another program, and not before: without a
// lane it may be stopped, or get no processor. Any other is lost when no lane has reached it for the limit.
void Multirail::fail_if_lost(MultiLane& lane, Clock::time_point now) {
    if (lane.peer.lost() || lane.links_up != 0 || !lane.peer.ready()) return;
    if (now < lane.next_look) return;
    lane.next_look = now + kCheckInterval;
    switch (lane.process.state()) {
        case WatchedProcess::State::ended:
            return fail(lane.peer, "its process has ended");
        case WatchedProcess::State::lives:
            // One that has closed does not keep its mapping.
            if (!lane.peer.closing_received && lane.process.has_lost_mapping())
                fail(lane.peer, "its process has become another program, or ended");
            return;
        case WatchedProcess::State::unseen:
            break;
    }
    const auto limit = std::chrono::seconds(adi::param_number(adi::Param::rail_timeout));
    if (now - lane.down_since > limit) fail(lane.peer, "no rail reaches it any more");
}

// Lanes are connected, and failed peers are found, by timers and not by passes: on a busy machine a pass may take as
// long as a turn of every other process.
void Multirail::run_timers() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    connecting_ = any_connecting();
    next_look_ = now + (connecting_ ? Clock::duration(kAttemptInterval) : Clock::duration(kCheckInterval));
    const bool probing = now >= next_probe_;
    if (probing) next_probe_ = now + kProbeInterval;
    for (MultiLane* lane : lanes_) {
        fail_if_lost(*lane, now);
        if (lane->peer.lost()) continue;
        if (connecting_) lane->run_link_timers(now);
        if (probing) lane->probe();
    }
}

// Everything but giving messages to the engine.
int Multirail::work() {
    int done = 0;
    // Senders take the rails in turn, so the next packet is likely on the next rail. An empty poll may yield the
    // processor: the fewer the better.
    for (size_t i = 0; i < rails_.size() && done == 0; ++i) {
        const size_t at = (next_rail_ + i) % rails_.size();
        done = rails_[at]->progress();
        if (done != 0) next_rail_ = at + 1;
    }
    if (done != 0) sleep_ = {};
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
    if (connecting_ || ++idle_ % kPassesBetweenTimers == 0) run_timers();
    return done;
}

int Multirail::progress() {
    if (!opened_) {
        opened_ = true;
        for (MultiLane* lane : lanes_) lane->deliver_ready();
    }
    int done = work();
    if (has_done_transfers()) {
        finish_done_transfers();
        ++done;
    }
    (void)has_moved();
    for (MultiLane* lane : lanes_) {
        if (!lane->peer.lost() && lane->peer.blocked()) done += push(lane->peer);
    }
    return done;
}

// No call waits for several NICs, so this sleeps, longer each time while nothing arrives.
int Multirail::block(unsigned timeout_us) {
    if (rails_.empty() || has_done_transfers() || suspects_) return 0;
    bool busy = connecting_;
    for (const MultiLane* lane : lanes_) {
        if (lane->peer.moving != nullptr) return 0;
        busy = busy || !lane->is_idle();
    }
    sleep_ = std::clamp(sleep_ * 2, kShortestSleep, busy ? kShortestSleep : kLongestSleep);
    const adi::SleepScope sleep;
    std::this_thread::sleep_for(std::min(sleep_, std::chrono::microseconds(timeout_us)));
    return 0;
}

}  // namespace viaduct::multirail
