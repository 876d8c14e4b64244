// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/bundle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "utils/common/limits.hpp"

namespace viaduct::vipperf {

namespace {

constexpr uint32_t kNoteRoom = 16;  // receives beyond the credit, for notes
constexpr uint64_t kCheckedBytes = 64u << 20;
constexpr size_t kPage = 4096;

constexpr size_t kDescriptorsPerSide = 2 * Bundle::kSends;

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// With --check every receive has its own buffer, which bounds how many there can be; otherwise all share one,
// as in other benchmarks: what is measured is the way, not the target's memory.
Plan fitted(Plan plan, const VIP_NIC_ATTRIBUTES& nic) {
    plan.max_bytes = std::min<uint64_t>(plan.max_bytes, nic.MaxTransferSize);
    const auto most = static_cast<uint32_t>(std::min<VIP_ULONG>(nic.MaxDescriptorsPerQueue, 1u << 16));
    plan.depth = std::min(plan.depth, most - kNoteRoom);
    if (plan.check != 0)
        plan.depth = static_cast<uint32_t>(
            std::clamp<uint64_t>(kCheckedBytes / plan.max_bytes / plan.vis, 4, plan.depth));
    return plan;
}

std::string discriminator_of(const std::string& base, size_t index) {
    return base + "#" + std::to_string(index);
}

}  // namespace

void StallCheck::look_at_clock() {
    const int64_t now = now_ns();
    if (began_ == 0) began_ = now;
    if (now - began_ > limit_ns(TimeLimit::vipperf_stall))
        throw tools::ToolError(fmt::format("nothing has come for {} s: the other end hangs",
                                           tools::limit_ms(TimeLimit::vipperf_stall) / 1000));
}

Bundle::Bundle(const std::string& device, const Plan& plan) : plan_(plan), nic_(device), channels_(plan.vis) {
    if ((nic_.attributes().ReliabilityLevelSupport & plan.level) == 0)
        throw tools::ToolError(nic_.name() + " does not offer this reliability level");
    if (plan.operation == Operation::read && (nic_.attributes().RDMAReadSupport & plan.level) == 0)
        throw tools::ToolError(nic_.name() + " has no RDMA read at this reliability level");
    if (plan.vis > nic_.attributes().MaxVI)
        throw tools::ToolError(fmt::format("{} has {} VIs at most", nic_.name(), nic_.attributes().MaxVI));
    plan_ = fitted(plan, nic_.attributes());
    lay_out();
    make_vis();
}

Bundle::~Bundle() {
    for (const Channel& c : channels_) {
        if (c.vi != nullptr) VipDisconnect(c.vi);
    }
    // The NIC takes the rest with it.
}

// Descriptors of all channels, then what is sent, then what is received.
void Bundle::lay_out() {
    const uint32_t receives = plan_.depth + kNoteRoom;
    const uint64_t descriptors = channels_.size() * (receives + kDescriptorsPerSide) * sizeof(VIP_DESCRIPTOR);
    slot_bytes_ = round_up(plan_.max_bytes, 64);
    const uint64_t slots = plan_.check != 0 ? uint64_t{receives} * channels_.size() : 1;
    const uint64_t out_at = round_up(descriptors, kPage);
    const uint64_t in_at = round_up(out_at + slot_bytes_ + kPatternRoom, kPage);
    memory_ = std::make_unique<tools::Memory>(
        nic_, in_at + slots * slot_bytes_, true,
        plan_.mapped != 0 ? tools::Memory::Kind::mapped : tools::Memory::Kind::plain);
    handle_ = memory_->handle();
    outgoing_ = memory_->data() + out_at;
    incoming_ = memory_->data() + in_at;

    pattern_.resize(slot_bytes_ + kPatternRoom);
    uint64_t state = 0x9E3779B97F4A7C15;  // xorshift: no two places alike
    for (std::byte& b : pattern_) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b = static_cast<std::byte>(state >> 32);
    }
    std::memcpy(outgoing_, pattern_.data(), pattern_.size());
}

void Bundle::make_vis() {
    const uint32_t receives = plan_.depth + kNoteRoom;
    const bool by_cq = plan_.completion == Completion::cq || plan_.completion == Completion::cq_wait;
    if (by_cq) {
        const uint64_t each = receives_by_plan() ? receives : kSends;
        const auto entries = std::min<uint64_t>(each * channels_.size(), nic_.attributes().MaxCQEntries);
        tools::check(VipCreateCQ(nic_.handle(), entries, &cq_), "VipCreateCQ");
    }
    const VIP_BOOLEAN readable =
        (nic_.attributes().RDMAReadSupport & plan_.level) != 0 ? VIP_TRUE : VIP_FALSE;
    VIP_VI_ATTRIBUTES wanted{plan_.level, plan_.max_bytes, nullptr, nullptr, VIP_TRUE, readable};
    auto* descriptors = reinterpret_cast<VIP_DESCRIPTOR*>(memory_->data());
    uint64_t slot = 0;
    for (Channel& c : channels_) {
        tools::check(VipCreateVi(nic_.handle(), &wanted, receives_by_plan() ? nullptr : cq_,
                                 receives_by_plan() ? cq_ : nullptr, &c.vi),
                     "VipCreateVi");
        VipSetUserData(c.vi, &c);
        c.receives = descriptors;
        c.sends = c.receives + receives;
        c.notes = c.sends + kSends;
        descriptors = c.notes + kSends;
        c.credits = plan_.depth;
        for (uint32_t i = 0; i < receives; ++i) {
            VIP_DESCRIPTOR* d = &c.receives[i];
            d->CS.SegCount = 1;
            d->CS.Length = static_cast<VIP_UINT32>(plan_.max_bytes);
            d->DS[0].Local.Data.Address = incoming_ + (plan_.check != 0 ? slot++ * slot_bytes_ : 0);
            d->DS[0].Local.Handle = handle_;
            d->DS[0].Local.Length = static_cast<VIP_UINT32>(plan_.max_bytes);
            repost({d, &c});
        }
    }
}

void Bundle::accept_all(const std::string& discriminator) {
    for (size_t i = 0; i < channels_.size(); ++i) {
        tools::Address local = nic_.local(discriminator_of(discriminator, i)), remote{};
        VIP_VI_ATTRIBUTES theirs{};
        VIP_CONN_HANDLE request = nullptr;
        tools::check(VipConnectWait(nic_.handle(), &local.head, tools::limit_ms(TimeLimit::vipperf_connect),
                                    &remote.head, &theirs, &request),
                     "VipConnectWait");
        tools::check(VipConnectAccept(request, channels_[i].vi), "VipConnectAccept");
    }
}

void Bundle::request_all(const std::string& host, const std::string& discriminator) {
    for (size_t i = 0; i < channels_.size(); ++i) {
        tools::request(nic_, channels_[i].vi, nic_.local("vipperf"),
                       nic_.remote(host, discriminator_of(discriminator, i)),
                       static_cast<long>(tools::limit_ms(TimeLimit::vipperf_connect)));
    }
}

Window Bundle::window() const {
    return {reinterpret_cast<uintptr_t>(incoming_), reinterpret_cast<uintptr_t>(outgoing_), handle_, 0};
}

void Bundle::prepare(uint64_t bytes) {
    bytes_ = bytes;
    reap_all();
    const bool rdma = plan_.operation != Operation::send;
    const bool read = plan_.operation == Operation::read;
    for (Channel& c : channels_) {
        for (uint32_t i = 0; i < kSends; ++i) {
            VIP_DESCRIPTOR* d = &c.sends[i];
            *d = VIP_DESCRIPTOR{};
            d->CS.Control = read   ? VIP_CONTROL_OP_RDMAREAD
                            : rdma ? VIP_CONTROL_OP_RDMAWRITE
                                   : VIP_CONTROL_OP_SENDRECV;
            d->CS.SegCount = rdma ? 2 : 1;
            d->CS.Length = static_cast<VIP_UINT32>(bytes);
            if (rdma) {
                d->DS[0].Remote.Data.AddressBits = read ? remote_.outgoing : remote_.incoming;
                d->DS[0].Remote.Handle = remote_.handle;
            }
            VIP_DATA_SEGMENT& local = d->DS[rdma ? 1 : 0].Local;
            local.Data.Address = read ? incoming_ : outgoing_;
            local.Handle = handle_;
            local.Length = static_cast<VIP_UINT32>(bytes);
        }
    }
}

// Message number n begins at a place of its own in the pattern. A write's last byte is a flag set by the
// loop, so its bytes are copied instead.
void Bundle::choose_bytes(Channel& c, VIP_DESCRIPTOR* d) {
    const uint64_t number = c.sent++;
    switch (plan_.operation) {
        case Operation::send:
            d->DS[0].Local.Data.Address = outgoing_ + offset_of(number);
            break;
        case Operation::read:
            d->DS[0].Remote.Data.AddressBits = remote_.outgoing + offset_of(number);
            break;
        case Operation::write:
            break;
    }
}

void Bundle::send_note(Channel& c, Note note, uint32_t value) {
    make_room(c);
    VIP_DESCRIPTOR* d = &c.notes[c.next_note++ % kSends];
    *d = VIP_DESCRIPTOR{};
    d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    d->CS.ImmediateData = static_cast<uint32_t>(note) << kNoteShift | value;
    tools::check(VipPostSend(c.vi, d, handle_), "VipPostSend");
    ++c.outstanding;
}

void Bundle::reap_more(Channel& c) {
    constexpr uint32_t kLeft = kSends / 2;
    if (receives_by_plan()) {
        plan_.completion == Completion::wait ? reap<Completion::wait>(c, kLeft)
                                             : reap<Completion::queue>(c, kLeft);
        return;
    }
    switch (plan_.completion) {
        case Completion::queue:
            return reap<Completion::queue>(c, kLeft);
        case Completion::cq:
            return reap<Completion::cq>(c, kLeft);
        case Completion::wait:
            return reap<Completion::wait>(c, kLeft);
        case Completion::cq_wait:
            return reap<Completion::cq_wait>(c, kLeft);
    }
}

void Bundle::reap_all() {
    const bool by_cq = !receives_by_plan() &&
                       (plan_.completion == Completion::cq || plan_.completion == Completion::cq_wait);
    for (Channel& c : channels_) by_cq ? reap<Completion::cq>(c, 0) : reap<Completion::queue>(c, 0);
}

void Bundle::verify(Channel& c, const std::byte* data, uint64_t bytes) {
    const std::byte* wanted = expected(c.received);
    if (std::memcmp(data, wanted, bytes) == 0) {
        ++c.received;
        return;
    }
    const auto at = std::mismatch(data, data + bytes, wanted).first - data;
    throw tools::ToolError(
        fmt::format("message {} of {} bytes arrived damaged at byte {}", c.received, bytes, at));
}

void Bundle::fail_with(VIP_RETURN result, const VIP_DESCRIPTOR* d, const char* where) const {
    if (result == VIP_DESCRIPTOR_ERROR && d != nullptr) {
        const uint32_t status = d->CS.Status;
        if ((status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0)
            throw tools::ToolError(std::string(where) + ": the other end has left");
        throw tools::ToolError(fmt::format("{}: completed with status {:#x}", where, status));
    }
    tools::fail(result, where);
}

}  // namespace viaduct::vipperf
