// SPDX-License-Identifier: BSD-2-Clause
// The client: one message at a time, each with its number, and how long its answer takes.
#include <time.h>

#include <algorithm>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/sync/pause.hpp"
#include "utils/common/error.hpp"
#include "utils/common/stop.hpp"
#include "utils/messages/message_vi.hpp"
#include "utils/messages/ping.hpp"

namespace viaduct::messages {

namespace {

using tools::ToolError;

constexpr long kSliceMs = 200;  // a wait looks for Ctrl-C so often
constexpr double kNsPerUs = 1000.0;

// Differs from message to message at every place.
std::byte pattern(uint64_t sequence, uint32_t at) {
    return static_cast<std::byte>(sequence * 131 + at * 7 + 1);
}

class Client {
public:
    Client(const Options& options, const Progress& progress)
        : options_(options),
          progress_(progress),
          nic_(options.device.empty() ? tools::device_toward(options.host) : options.device),
          bytes_(options.bytes) {
        if (bytes_ > nic_.attributes().MaxTransferSize)
            throw ToolError("messages of " + nic_.name() + " are of " +
                                std::to_string(nic_.attributes().MaxTransferSize) + " bytes at most",
                            tools::kExitUsage);
        const tools::Address remote = nic_.remote(options.host, options.discriminator);
        const tools::Address local = nic_.local("vipping-client");
        message_vi_ = std::make_unique<MessageVi>(nic_, tools::level_named(options.level), bytes_, nullptr);
        request(nic_, message_vi_->vi(), local, remote, options.connect_wait_ms);
        outcome_.nic = nic_.name();
        outcome_.local = tools::text_of(local.head);
        outcome_.remote = tools::text_of(remote.head);
    }

    Outcome run() {
        if (progress_.connected) progress_.connected(outcome_);
        const int64_t began = now_ns();
        try {
            for (uint64_t n = 1; !tools::stopped() && (options_.count == 0 || n <= options_.count); ++n) {
                const int64_t next = now_ns() + static_cast<int64_t>(options_.interval_s * 1e9);
                exchange(n);
                const bool last = options_.count != 0 && n == options_.count;
                if (!options_.flood && !last) sleep_until(next);
            }
        } catch (const ToolError& error) {
            outcome_.ended_by = error.what();
        }
        outcome_.seconds = static_cast<double>(now_ns() - began) / 1e9;
        return std::move(outcome_);
    }

private:
    void exchange(uint64_t sequence) {
        std::byte* out = message_vi_->outgoing();
        const Head head{kMagic, bytes_, sequence};
        std::memcpy(out, &head, sizeof head);
        for (uint32_t i = sizeof head; i < bytes_; ++i) out[i] = pattern(sequence, i);
        const int64_t sent = now_ns();
        message_vi_->send(bytes_);
        ++outcome_.sent;
        const int64_t deadline = sent + options_.answer_ms * 1'000'000;
        while (VIP_DESCRIPTOR* d = receive(deadline)) {
            const double us = static_cast<double>(now_ns() - sent) / kNsPerUs;
            Head seen{};
            std::memcpy(&seen, MessageVi::data_of(d), sizeof seen);
            const bool whole = d->CS.Length == bytes_ && intact(MessageVi::data_of(d), seen);
            message_vi_->repost(d);
            if (!whole) ++outcome_.damaged;
            if (seen.sequence != sequence) continue;  // the answer of one that was given up
            outcome_.round_trips_us.push_back(us);
            if (progress_.answered) progress_.answered(sequence, us);
            return;
        }
        if (!tools::stopped() && progress_.unanswered) progress_.unanswered(sequence);
    }

    bool intact(const std::byte* data, const Head& head) const {
        if (head.magic != kMagic || head.bytes != bytes_) return false;
        for (uint32_t i = sizeof head; i < bytes_; ++i) {
            if (data[i] != pattern(head.sequence, i)) return false;
        }
        return true;
    }

    VIP_DESCRIPTOR* receive(int64_t deadline) {
        VIP_DESCRIPTOR* d = nullptr;
        do {
            const VIP_RETURN result = options_.poll ? poll(&d) : VipRecvWait(message_vi_->vi(), slice(deadline), &d);
            if (result == VIP_SUCCESS) return d;
            if (result == VIP_DESCRIPTOR_ERROR) throw ToolError("the server has ended the connection");
            if (result != VIP_TIMEOUT && result != VIP_NOT_DONE) tools::fail(result, "VipRecvWait");
        } while (!tools::stopped() && now_ns() < deadline);
        return nullptr;
    }

    VIP_RETURN poll(VIP_DESCRIPTOR** d) const {
        constexpr int kLooks = 1000;
        VIP_RETURN result = VIP_NOT_DONE;
        for (int i = 0; i < kLooks && result == VIP_NOT_DONE; ++i) result = VipRecvDone(message_vi_->vi(), d);
        return result;
    }

    static VIP_ULONG slice(int64_t deadline) {
        const int64_t left = (deadline - now_ns()) / 1'000'000 + 1;
        return static_cast<VIP_ULONG>(std::clamp<int64_t>(left, 1, kSliceMs));
    }

    static void sleep_until(int64_t when) {
        while (!tools::stopped()) {
            const int64_t left = std::min<int64_t>(when - now_ns(), kSliceMs * 1'000'000);
            if (left <= 0) return;
            const timespec t = timespec_of(left);
            ::nanosleep(&t, nullptr);
        }
    }

    const Options& options_;
    const Progress& progress_;
    tools::Nic nic_;
    uint32_t bytes_;
    std::unique_ptr<MessageVi> message_vi_;
    Outcome outcome_;
};

}  // namespace

Outcome ping(const Options& options, const Progress& progress) { return Client(options, progress).run(); }

}  // namespace viaduct::messages
