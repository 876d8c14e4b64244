// SPDX-License-Identifier: BSD-2-Clause
// mpip_rails_*: the table entries of the module for several NICs, and one pass of progress.
#include <algorithm>
#include <cstring>
#include <thread>

#include "mpi-adi/transport/multirail/rails.hpp"
#include "mpi-adi/transport/protocol/entries.hpp"

namespace viaduct::rails {

namespace {
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
constexpr auto kBetweenAttempts = std::chrono::microseconds(200);
constexpr unsigned kPassesBetweenClocks = 256;
constexpr std::chrono::microseconds kShortestNap(20);
constexpr std::chrono::microseconds kLongestNap(1000);
}  // namespace

// Lanes are made, and what is lost is noticed, by the clock: on a busy machine each pass may cost a turn of
// everybody else.
void Rails::look_by_the_clock() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    const bool making = lanes_to_make_ != 0;
    next_look_ = now + (making ? Clock::duration(kBetweenAttempts) : Clock::duration(kBetweenLooks));
    look_for_lost(now);
    if (making) look_after_lanes(now);
    if (suspects_) take_out_suspects();
}

// Everything but giving messages to the engine.
int Rails::work() {
    int done = 0;
    // The peers take the rails in turn, so the next packet is likely on the next rail. A look in vain gives
    // way to other programs where there are such: the fewer the better.
    for (size_t i = 0; i < rails_.size() && done == 0; ++i) {
        const size_t index = (next_rail_ + i) % rails_.size();
        if (take_arrivals(*rails_[index]) == 0) continue;
        next_rail_ = index + 1;
        done = 1;
    }
    if (done != 0) nap_ = {};
    for (const auto& rail : rails_) {
        if (done == 0 || rail->stripes != 0 || rail->with_nic > send_depth_ / 2) collect_sends(*rail);
    }
    if (suspects_) take_out_suspects();
    for (size_t i = 0; i < bundles_.size(); ++i) {
        Bundle& bundle = *bundles_[i];
        if (!bundle.again.empty()) push_again(bundle);
    }
    if (stripes_ != 0) last_pass_ = Clock::now();
    if (done == 0 && !chores_.empty()) done = do_chores();
    if (lanes_to_make_ != 0 || ++idle_ % kPassesBetweenClocks == 0) look_by_the_clock();
    return done;
}

int Rails::progress() {
    if (!opened_) {
        opened_ = true;
        for (size_t i = 0; i < bundles_.size(); ++i) give_out(*bundles_[i]);
    }
    int done = work();
    if (has_landed()) {
        finish_landed();
        ++done;
    }
    (void)has_moved();
    for (size_t i = 0; i < bundles_.size(); ++i) {
        Bundle& bundle = *bundles_[i];
        if (!bundle.peer.lost() && bundle.peer.blocked()) done += push(bundle.peer);
    }
    return done;
}

// No call waits for several NICs, so with several this is a nap, longer each time while nothing comes.
void Rails::block(unsigned timeout_us) {
    if (rails_.empty() || !chores_.empty() || has_landed() || suspects_) return;
    for (const Bundle* bundle : bundles_) {
        if (!bundle->again.empty() || bundle->peer.moving != nullptr) return;
    }
    const std::chrono::microseconds timeout(timeout_us);
    Rail& rail = *rails_.front();
    if (rails_.size() == 1 && lanes_to_make_ == 0 && stripes_ == 0 && rail.cq != nullptr) {
        VIP_VI_HANDLE vi;
        VIP_BOOLEAN receive;
        const VIP_ULONG ms = std::max(1U, timeout_us / 1000);
        VIP_RETURN rc;
        {
            const adi::Asleep asleep;
            rc = VipCQWait(rail.cq, ms, &vi, &receive);
        }
        if (rc == VIP_SUCCESS) take_from(vi);
        return;
    }
    const bool busy = lanes_to_make_ != 0 || stripes_ != 0;
    nap_ = std::clamp(nap_ * 2, kShortestNap, busy ? kShortestNap : kLongestNap);
    const adi::Asleep asleep;
    std::this_thread::sleep_for(std::min(nap_, timeout));
}

size_t Rails::describe(int rank, mpip_rail* out, size_t room) const {
    const auto at = static_cast<size_t>(rank);
    if (rank < 0 || peer(at) == nullptr) return 0;
    const Bundle& bundle = *bundle_of(*peer(at));
    size_t count = 0;
    for (const auto& rail : rails_) {
        const Lane& lane = bundle.lanes[rail->index];
        if (lane.rail == nullptr || count == room) continue;
        out[count++] = {rail->name.c_str(), lane.state == LaneState::up, lane.frames,    lane.stripe_bytes,
                        lane.losses,        lane.bandwidth / 1e6,        lane.latency_ns};
    }
    return count;
}

}  // namespace viaduct::rails

namespace {
viaduct::rails::Rails rails_module;
viaduct::rails::Card own_card;
}  // namespace

VIADUCT_PROTOCOL_ENTRIES(rails, rails_module)

extern "C" {

int mpip_rails_initconns(taskinfo_t* task, void** env) {
    own_card = rails_module.make_card(task);
    *env = &own_card;
    task->ti_myenv[MPIP_PROTO_VIA] = &own_card;
    task->ti_myenvsize[MPIP_PROTO_VIA] = sizeof own_card;
    return MPIP_SUCCESS;
}

int mpip_rails_getevents(void**, unsigned*, unsigned*, unsigned* n) {
    *n = 0;  // a VIA queue has no word to sleep on: pt_block
    return MPIP_SUCCESS;
}

int mpip_rails_getpolls(struct pollfd**, int* n, int* timeout) {
    *n = 0;
    *timeout = -1;
    return MPIP_SUCCESS;
}

size_t mpip_rails_of(int rank, struct mpip_rail* out, size_t room) {
    return rails_module.describe(rank, out, room);
}
}
