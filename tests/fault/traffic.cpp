// SPDX-License-Identifier: BSD-2-Clause
#include "traffic.hpp"

#include <cstring>

namespace viaduct::fault {

using conformance::fill;
using conformance::require;

namespace {

/// The words a message is made of.
class Words {
public:
    explicit Words(std::uint32_t number) : value_(number * 0x9E3779B97F4A7C15u + 1) {}
    std::uint64_t next() {
        value_ = value_ * 6364136223846793005u + 1442695040888963407u;
        return value_ ^ value_ >> 29;
    }

private:
    std::uint64_t value_;
};

}  // namespace

void write_pattern(char* data, std::size_t bytes, std::uint32_t number) {
    Words words(number);
    for (std::size_t at = 0; at < bytes; at += 8) {
        const std::uint64_t word = words.next();
        std::memcpy(data + at, &word, std::min<std::size_t>(8, bytes - at));
    }
}

bool has_pattern(const char* data, std::size_t bytes, std::uint32_t number) {
    Words words(number);
    for (std::size_t at = 0; at < bytes; at += 8) {
        const std::uint64_t word = words.next();
        if (std::memcmp(data + at, &word, std::min<std::size_t>(8, bytes - at)) != 0) return false;
    }
    return true;
}

// -------------------------------------------------------------------------------------------------------
// stream

Stream::Stream(conformance::End& end, std::uint32_t bytes) : end_(end), bytes_(bytes) {
    for (std::uint32_t i = 0; i < kWindow; ++i) {
        data_.push_back(end_.buffer(bytes_));
        slots_.push_back(end_.descriptor());
        credit_slots_.push_back(end_.descriptor());
    }
}

void Stream::begin_receiving() {
    for (std::uint32_t i = 0; i < kWindow; ++i) {
        fill(slots_[i], VIP_CONTROL_OP_SENDRECV, {end_.piece(data_[i], bytes_)});
        require(end_.post_recv(slots_[i]), "VipPostRecv");
    }
}

void Stream::begin_sending() {
    constexpr int kCreditsUnderWay = 4;  // at most two, of half a window each
    for (int i = 0; i < kCreditsUnderWay; ++i) {
        fill(credit_slots_[i], VIP_CONTROL_OP_SENDRECV, {});
        require(end_.post_recv(credit_slots_[i]), "VipPostRecv");
    }
}

bool Stream::give_credit() {
    VIP_DESCRIPTOR* d = credit_slots_[(received_ / (kWindow / 2)) % kWindow];
    fill(d, VIP_CONTROL_IMMEDIATE, {}, std::nullopt, kWindow / 2);
    if (end_.post_send(d) != VIP_SUCCESS) return false;
    return conformance::reap_send(end_.vi).code == VIP_SUCCESS;
}

bool Stream::step_receiver() {
    VIP_DESCRIPTOR* done = nullptr;
    const VIP_RETURN code = VipRecvDone(end_.vi, &done);
    if (code == VIP_NOT_DONE) return true;
    if (code != VIP_SUCCESS) return false;
    const std::uint32_t slot = received_ % kWindow;
    if (done != slots_[slot] || done->CS.Length != bytes_ || !has_pattern(data_[slot], bytes_, received_))
        damaged_ = true;
    ++received_;
    fill(done, VIP_CONTROL_OP_SENDRECV, {end_.piece(data_[slot], bytes_)});
    if (end_.post_recv(done) != VIP_SUCCESS) return false;
    return received_ % (kWindow / 2) != 0 || give_credit();
}

bool Stream::take_credit() {
    VIP_DESCRIPTOR* done = nullptr;
    const VIP_RETURN code = VipRecvDone(end_.vi, &done);
    if (code == VIP_NOT_DONE) return true;
    if (code != VIP_SUCCESS) return false;
    if ((done->CS.Status & VIP_STATUS_IMMEDIATE) == 0 || done->CS.ImmediateData != kWindow / 2)
        damaged_ = true;
    credits_ += done->CS.ImmediateData;
    fill(done, VIP_CONTROL_OP_SENDRECV, {});
    return end_.post_recv(done) == VIP_SUCCESS;
}

bool Stream::step_sender() {
    if (!take_credit()) return false;
    if (completed_ != sent_) {
        VIP_DESCRIPTOR* done = nullptr;
        const VIP_RETURN code = VipSendDone(end_.vi, &done);
        if (code == VIP_SUCCESS) {
            if (done != slots_[completed_ % kWindow]) damaged_ = true;
            ++completed_;
        } else if (code != VIP_NOT_DONE) {
            return false;
        }
    }
    if (credits_ == 0 || sent_ - completed_ == kWindow) return true;
    const std::uint32_t slot = sent_ % kWindow;
    write_pattern(data_[slot], bytes_, sent_);
    fill(slots_[slot], VIP_CONTROL_OP_SENDRECV, {end_.piece(data_[slot], bytes_)});
    ++sent_;
    --credits_;
    return end_.post_send(slots_[slot]) == VIP_SUCCESS;
}

// -------------------------------------------------------------------------------------------------------
// volley

Volley::Volley(conformance::End& end, std::uint32_t bytes) : end_(end), bytes_(bytes) {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
        in_.push_back(end_.descriptor());
        out_.push_back(end_.descriptor());
        in_data_.push_back(end_.buffer(bytes_));
        out_data_.push_back(end_.buffer(bytes_));
    }
}

void Volley::begin() {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
        fill(in_[i], VIP_CONTROL_OP_SENDRECV, {end_.piece(in_data_[i], bytes_)});
        require(end_.post_recv(in_[i]), "VipPostRecv");
    }
}

void Volley::serve() { owed_ += kBalls; }

bool Volley::take() {
    VIP_DESCRIPTOR* done = nullptr;
    const VIP_RETURN code = VipRecvDone(end_.vi, &done);
    if (code == VIP_NOT_DONE) return true;
    if (code != VIP_SUCCESS) return false;
    const std::uint32_t slot = received_ % kSlots;
    if (done != in_[slot] || done->CS.Length != bytes_ || !has_pattern(in_data_[slot], bytes_, received_))
        damaged_ = true;
    ++received_;
    ++owed_;
    fill(done, VIP_CONTROL_OP_SENDRECV, {end_.piece(in_data_[slot], bytes_)});
    return end_.post_recv(done) == VIP_SUCCESS;
}

bool Volley::send_one() {
    const std::uint32_t slot = sent_ % kSlots;
    write_pattern(out_data_[slot], bytes_, sent_);
    fill(out_[slot], VIP_CONTROL_OP_SENDRECV, {end_.piece(out_data_[slot], bytes_)});
    ++sent_;
    --owed_;
    return end_.post_send(out_[slot]) == VIP_SUCCESS;
}

bool Volley::step() {
    if (!take()) return false;
    if (completed_ != sent_) {
        VIP_DESCRIPTOR* done = nullptr;
        const VIP_RETURN code = VipSendDone(end_.vi, &done);
        if (code == VIP_SUCCESS) {
            if (done != out_[completed_ % kSlots]) damaged_ = true;
            ++completed_;
        } else if (code != VIP_NOT_DONE) {
            return false;
        }
    }
    return owed_ == 0 || sent_ - completed_ == kSlots || send_one();
}

}  // namespace viaduct::fault
