// SPDX-License-Identifier: BSD-2-Clause
// What the engine needs of a port. Its owner is the engine itself (acenic/exclusive_port.hpp) or an engine process
// (acenic/shared_port.hpp). One thread at a time, the engine's lock held, and maybe
// a VI's. No thread may end in here by pthread_cancel: where a system call is made, or may be, it is held
// off, and only there, since that takes locked instructions, which wait for all that was written to shared
// memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "core/fault/fault_plan.hpp"
#include "providers/wire/host.hpp"

namespace viaduct::packet {

// Which link ids are ours, where several nodes have one address.
struct LinkRange {
    uint32_t first = 0, count = 65'535;
};

class FramePort {
public:
    virtual ~FramePort() = default;

    virtual wire::Outlet& outlet() = 0;
    // Sends what the outlet was given.
    virtual void transmit() = 0;
    // Calls take(frame, from) for each of a burst of frames, of at most kBurst; how many.
    static constexpr uint32_t kBurst = 32;
    template <class Take>
    uint32_t receive(Take take) {
        return receive_into([](void* argument, std::span<const std::byte> frame,
                               const NicAddress& from) { (*static_cast<Take*>(argument))(frame, from); },
                            &take);
    }

    // Becomes readable when frames come; -1: there is no such descriptor, look every so often.
    virtual int wait_fd() const = 0;
    // To be called before sleeping on wait_fd(). False: there is something already.
    virtual bool may_sleep() { return true; }
    // When transmit() has to be called for frames that a fault plan holds back; INT64_MAX: never.
    virtual int64_t held_until() const { return INT64_MAX; }
    // Injects faults into what that link sends. False: the port's owner cannot be told.
    virtual bool set_faults(wire::LinkId, const FaultPlan&) = 0;
    virtual uint32_t max_frame() const = 0;
    virtual const NicAddress& address() const = 0;
    virtual LinkRange links() const { return {}; }
    // Tuning::ports: address() is what requests to this host are sent to, and frames come from other ports of it.
    virtual bool has_ports() const { return false; }
    // Frames of one connection that may be under way to us.
    virtual uint32_t window() const { return wire::Tuning{}.window; }
    virtual std::string counters() const = 0;  // for the log
    virtual std::string text_of(const NicAddress&) const;
    // Of a port that does not live through a fork: what a forked child is to do instead of opening it. Null: it may.
    virtual const char* cure_of_fork() const { return nullptr; }

    // ---- shared mode: who else is there must know what we wait for. A number for forget(); 0: too many.
    virtual uint32_t expect_request(const EndAddress& local);
    virtual uint32_t expect_peer(const EndAddress& local, const EndAddress& remote, wire::LinkId own);
    // There, somebody tells our peers when we die.
    virtual bool is_attended() const { return false; }
    // There, requests are kept that found nobody waiting.
    virtual bool keeps_requests() const { return false; }
    // What we wait for is known there, and what had come for it already has been received.
    virtual bool is_known() const { return true; }
    // over: nothing has come of it, so what has matched it is for others.
    virtual void forget(uint32_t number, bool over);
    // A new descriptor that becomes readable when the port's owner dies; -1: that is us.
    virtual int owner_fd() const { return -1; }

protected:
    using Take = void (*)(void* argument, std::span<const std::byte> frame, const NicAddress& from);
    virtual uint32_t receive_into(Take, void* argument) = 0;
};

inline std::string FramePort::text_of(const NicAddress& a) const {
    char text[3 * kNicAddressBytes];
    std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", a.bytes[0], a.bytes[1], a.bytes[2], a.bytes[3],
                  a.bytes[4], a.bytes[5]);
    return text;
}
inline uint32_t FramePort::expect_request(const EndAddress&) { return 1; }
inline uint32_t FramePort::expect_peer(const EndAddress&, const EndAddress&, wire::LinkId) { return 1; }
inline void FramePort::forget(uint32_t, bool) {}

}  // namespace viaduct::packet
