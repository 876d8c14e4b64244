// SPDX-License-Identifier: BSD-2-Clause
#include "providers/paramnet/joined.hpp"

#include <exception>

#include "core/log/log.hpp"
#include "core/sync/asymmetric_barrier.hpp"
#include "providers/paramnet/nic.hpp"
#include "providers/paramnet/outcome.hpp"
#include "providers/paramnet/rendezvous.hpp"

namespace viaduct::paramnet {

namespace {

// The other end does not become connected; if it is already, it sees that this end has closed.
void give_up(ConnectionSegment& shared, uint32_t side) {
    (void)decide(shared, Outcome::given_up);
    shared.ends[side].closed.store(1, std::memory_order_seq_cst);
}

}  // namespace

Status map_joint(NicContext& nic, const kagent::Joined& joined, Mail& mail, Joint* out) {
    if (mail.descriptors_lost) {
        VIADUCT_LOG(error, "paramnet", "connecting: no descriptors are left for what the agent sends (ulimit -n)");
        return Status::out_of_resources;
    }
    if (mail.descriptors.empty() || joined.side > 1 ||
        joined.segment_bytes != sizeof(ConnectionSegment) || joined.peer_endpoint_words[kEndSlot] >= kMaxVi ||
        joined.remote.discriminator_len > kMaxDiscriminator)
        return Status::broken;
    Joint joint;
    joint.segment =
        Segment::map(std::move(mail.descriptors[0]), sizeof(ConnectionSegment), Segment::Access::read_write);
    if (!joint.segment.valid()) return Status::out_of_resources;
    const SegmentHeader header = joint.shared()->header;
    if (header.magic != kSegmentMagic || header.version != kLayoutVersion) {
        VIADUCT_LOG(
            error, "paramnet",
            "the running agent lays out shared memory by version %u, this library by version %u: an agent of "
            "another release serves here; it leaves when its last program does (or end it), and the next one "
            "fits",
            header.version, kLayoutVersion);
        return Status::version;
    }
    joint.side = joined.side;
    joint.peer_slot = joined.peer_endpoint_words[kEndSlot];
    try {
        joint.peer = acquire_peer(nic, joined, mail);
    } catch (const std::exception&) {  // the other end gets the refusal, as for any resource
    }
    if (joint.peer == nullptr) {
        give_up(*joint.shared(), joint.side);
        return Status::out_of_resources;
    }
    *out = std::move(joint);
    return Status::ok;
}

// Writes into the segment what the other end needs of this one before data flows.
void introduce(const NicContext& nic, const ViCore& vi, const ViTraits& traits, const Joint& joint) {
    EndRecord& own = joint.shared()->ends[joint.side];
    const uint32_t permission =
        (traits.rdma_write != 0 ? kMayWrite : 0u) | (traits.rdma_read != 0 ? kMayRead : 0u);
    own.permission.store(permission, std::memory_order_relaxed);
    own.ptag.store(vi.ptag, std::memory_order_relaxed);
    own.pull_from.store(pull_threshold(nic, *joint.peer), std::memory_order_relaxed);
    const bool maps_arena = joint.peer->arena.valid() && joint.peer->reach != Reach::same_process;
    own.maps_arena.store(maps_arena ? 1 : 0, std::memory_order_relaxed);
    own.needs_fence.store(asymmetric_barrier_available() ? 0 : 1, std::memory_order_relaxed);
    own.attached.store(1, std::memory_order_release);
}

void leave_at_once(Mail& mail, const kagent::Joined& joined) {
    if (mail.descriptors.empty() || joined.side > 1 || joined.segment_bytes != sizeof(ConnectionSegment))
        return;
    Joint joint;
    joint.segment =
        Segment::map(std::move(mail.descriptors[0]), sizeof(ConnectionSegment), Segment::Access::read_write);
    if (!joint.segment.valid() || joint.shared()->header.magic != kSegmentMagic ||
        joint.shared()->header.version != kLayoutVersion)
        return;
    give_up(*joint.shared(), joined.side);
}

}  // namespace viaduct::paramnet
