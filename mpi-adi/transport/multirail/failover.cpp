// SPDX-License-Identifier: BSD-2-Clause
// The end of a lane. Its VI is disconnected and drained, so that nothing more can come by it, and the peer is
// told by all other lanes how many packets had come. The peer does the same. What either has sent and the
// other has not received goes out again on other lanes; what has been received is not sent again, least of
// all a remote write. With no lane left, the hello of the next one that is made says it.
#include <poll.h>

#include <algorithm>

#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/multirail/rails.hpp"

namespace viaduct::rails {

namespace {
constexpr auto kBetweenProbes = std::chrono::milliseconds(100);
}

void Rails::suspect(Lane& lane) {
    if (lane.state < LaneState::greeting) return;
    lane.suspect = suspects_ = true;
}

void Rails::take_out_suspects() {
    while (suspects_) {
        suspects_ = false;
        for (size_t i = 0; i < bundles_.size(); ++i) {  // a lost one takes itself out of the list
            Bundle* bundle = bundles_[i];
            for (Lane& lane : bundle->lanes) {
                if (lane.suspect && !bundle->peer.lost()) take_out(lane);
            }
        }
    }
}

void Rails::take_out(Lane& lane) {
    Bundle& bundle = *lane.bundle;
    const auto now = Clock::now();
    const bool was_up = lane.state == LaneState::up;
    lane.state = LaneState::down;
    lane.suspect = lane.report_due = lane.tell_soon = false;
    if (was_up) {
        ++lanes_to_make_;
        ++lane.losses;
        if (--bundle.lanes_up == 0) bundle.alone_since = now;
    }
    adi::let_go(VipDisconnect(lane.vi));
    VIP_DESCRIPTOR* desc = nullptr;
    for (;;) {
        const VIP_RETURN rc = VipSendDone(lane.vi, &desc);
        if (desc == nullptr) break;
        sent(packet_of(desc), rc == VIP_SUCCESS);
    }
    // What had come in before the end is taken: it counts as received.
    for (;;) {
        const VIP_RETURN rc = VipRecvDone(lane.vi, &desc);
        if (desc == nullptr) break;
        if (rc != VIP_SUCCESS) {
            release(packet_of(desc));
        } else if (!take(lane, packet_of(desc))) {
            fail(bundle.peer, "it sent a packet that cannot be");
        }
    }
    lane.prepared = 0;
    lane.batch_bytes = 0;
    if (bundle.peer.lost()) return;

    lane.own_end.up_to = lane.number;
    if (lane.had_frames) {
        lane.own_end.number = lane.number;
        lane.own_end.received = lane.received;
    }
    if (was_up) {
        lane.unsettled = true;
        lane.unsettled_number = lane.their_number;
        lane.unsettled_told = lane.told;
        lane.limbo = lane.awaited;
        lane.awaited = {};
        lane.pause = {};
        if (!settle(lane)) return fail(bundle.peer, "it tells of packets that cannot be");
    } else {
        while (!lane.awaited.empty()) release(lane.awaited.pop());  // a hello and no more
    }
    retry_later(lane, now);
    for (Lane& other : bundle.lanes) {
        if (other.state == LaneState::up && !other.suspect) send_report(other, Kind::report);
    }
}

// If the peer has told of the end of the connection in question: what it had is here, the rest goes again.
// False: it tells of fewer packets than it had told of before, or of more than were sent.
bool Rails::settle(Lane& lane) {
    if (!lane.unsettled || static_cast<int32_t>(lane.their_end.up_to - lane.unsettled_number) < 0)
        return true;
    Bundle& bundle = *lane.bundle;
    uint32_t received = 0;
    if (lane.their_end.number == lane.unsettled_number) {
        received = lane.their_end.received;
        uint32_t sent = lane.unsettled_told;
        for (const Packet* p = lane.limbo.head; p != nullptr; p = p->next) ++sent;
        if (received < lane.unsettled_told || received > sent) return false;
    }
    lane.unsettled = false;
    for (uint32_t told = lane.unsettled_told; !lane.limbo.empty(); ++told) {
        Packet* p = lane.limbo.pop();
        if (told < received) {
            here(p);
        } else if (p->numbered) {
            bundle.again.push_back(p);
        } else {
            release(p);
        }
    }
    // The oldest last: that is where they are taken from.
    std::sort(bundle.again.begin(), bundle.again.end(), [](const Packet* a, const Packet* b) {
        return static_cast<int32_t>(a->sequence - b->sequence) > 0;
    });
    return true;
}

bool Rails::take_report(Lane& lane, const Report& report) {
    Bundle& bundle = *lane.bundle;
    if (report.number == 0 || (lane.their_number != 0 && report.number != lane.their_number)) return false;
    lane.their_number = report.number;
    for (size_t i = 0; i < kMostRails; ++i) {
        Lane& told = bundle.lanes[i];
        if (told.state == LaneState::absent) continue;
        const uint32_t up_to = report.ended[i].up_to;
        // Reports may overtake each other.
        if (static_cast<int32_t>(up_to - told.their_end.up_to) > 0) {
            told.their_end.up_to = up_to;
            told.their_end.number = report.ended[i].number;
            told.their_end.received = report.ended[i].received;
        }
        if (!settle(told)) return false;
        const bool current = told.state >= LaneState::greeting && told.their_number != 0;
        if (current && static_cast<int32_t>(up_to - told.their_number) >= 0) suspect(told);
    }
    if (lane.state != LaneState::greeting || lane.suspect) return true;
    lane.state = LaneState::up;
    lane.pause = {};
    --lanes_to_make_;
    ++bundle.lanes_up;
    send_probe(lane);
    if (bundle.peer.ready()) return true;
    greeted(bundle.peer);
    return true;
}

// By the clock, when nothing comes in: lanes whose VI has broken without a word, processes that have ended,
// peers that no lane reaches any more.
void Rails::look_for_lost(Clock::time_point now) {
    for (const auto& rail : rails_) {
        const uint32_t errors = rail->errors.load(std::memory_order_acquire);
        if (errors == rail->errors_seen) continue;
        rail->errors_seen = errors;
        for (Bundle* bundle : bundles_) {
            Lane& lane = bundle->lanes[rail->index];
            if (lane.state < LaneState::greeting) continue;
            VIP_VI_STATE state;
            VIP_VI_ATTRIBUTES attributes;
            VIP_BOOLEAN send_empty, recv_empty;
            if (VipQueryVi(lane.vi, &state, &attributes, &send_empty, &recv_empty) == VIP_SUCCESS &&
                state != VIP_STATE_CONNECTED)
                suspect(lane);
        }
    }
    const bool probing = now >= next_probe_;
    if (probing) next_probe_ = now + kBetweenProbes;
    for (size_t i = 0; i < bundles_.size() && probing; ++i) {
        Bundle& bundle = *bundles_[i];
        // Only peers that are talked with, for a probe wakes the other side; but every lane to them: one that
        // measured badly once carries nothing until it has measured well.
        if (bundle.next_sequence + bundle.expected == bundle.frames_at_probe) continue;
        bundle.frames_at_probe = bundle.next_sequence + bundle.expected;
        for (Lane& lane : bundle.lanes) {
            if (lane.state == LaneState::up && !lane.probed) send_probe(lane);
        }
    }
    const auto patience = std::chrono::seconds(adi::param_number(adi::Param::rail_patience));
    for (size_t i = 0; i < bundles_.size(); ++i) {
        Bundle& bundle = *bundles_[i];
        if (bundle.peer.lost() || bundle.lanes_up != 0 || !bundle.peer.ready()) continue;
        pollfd ended = {bundle.pidfd, POLLIN, 0};
        if (bundle.pidfd >= 0 && ::poll(&ended, 1, 0) > 0) {
            fail(bundle.peer, "its process has ended");
        } else if (now - bundle.alone_since > patience) {
            fail(bundle.peer, "no rail reaches it any more");
        }
    }
}

// The peer is lost, or all is said: nothing of it stays under way. Its lanes stay, idle, until the end.
void Rails::cut(Bundle& bundle) {
    std::vector<Packet*> all;
    for (Lane& lane : bundle.lanes) {
        if (lane.state == LaneState::absent) continue;
        // The last word about what has come: the other side waits for it before it goes.
        if (lane.state == LaneState::up && !lane.suspect && lane.credits.local() > 0) send_noop(lane);
        if (lane.state == LaneState::up) {
            --bundle.lanes_up;
        } else {
            --lanes_to_make_;
        }
        lane.state = LaneState::absent;
        lane.suspect = false;
        adi::let_go(VipDisconnect(lane.vi));
        VIP_DESCRIPTOR* desc = nullptr;
        for (;;) {
            adi::let_go(VipSendDone(lane.vi, &desc));  // the descriptor tells whether there was one
            if (desc == nullptr) break;
            sent(packet_of(desc), true);
        }
        for (;;) {
            adi::let_go(VipRecvDone(lane.vi, &desc));
            if (desc == nullptr) break;
            release(packet_of(desc));
        }
        while (!lane.awaited.empty()) all.push_back(lane.awaited.pop());
        while (!lane.limbo.empty()) all.push_back(lane.limbo.pop());
    }
    all.insert(all.end(), bundle.again.begin(), bundle.again.end());
    bundle.again.clear();
    for (Packet* p : all) release(p);
    for (Packet*& p : bundle.sent) p = nullptr;
    for (Packet*& p : bundle.early) {
        if (p != nullptr) release(p);
        p = nullptr;
    }
    chores_.erase(std::remove_if(chores_.begin(), chores_.end(),
                                 [&bundle](const Lane* lane) { return lane->bundle == &bundle; }),
                  chores_.end());
    for (Lane& lane : bundle.lanes) lane.chores = false;
    bundles_.erase(std::remove(bundles_.begin(), bundles_.end(), &bundle), bundles_.end());
}

void Bundle::cut() { rails.cut(*this); }

}  // namespace viaduct::rails
