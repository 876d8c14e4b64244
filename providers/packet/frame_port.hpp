// SPDX-License-Identifier: BSD-2-Clause
// The interface between engine and port. A port belongs to this process (acenic/exclusive_port.hpp, udp/udp_port.hpp)
// or to an engine process that serves several programs (acenic/shared_port.hpp). Called by one thread at a time, with
// the engine's lock held, perhaps a VI's too. No thread may be cancelled in here: a port holds pthread_cancel off
// around its system calls, and only there, because that takes atomic instructions, which wait until all earlier stores
// are visible.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "core/fault/fault_plan.hpp"
#include "providers/wire/host.hpp"
#include "viaduct/provider.hpp"

namespace viaduct::packet {

// The link ids that this process may use, where several nodes share one address.
struct LinkRange {
    uint32_t first = 0, count = 65'535;
};

class FramePort {
public:
    virtual ~FramePort() = default;

    virtual wire::Outlet& outlet() = 0;
    // Sends what the outlet was given.
    virtual void transmit() = 0;
    // Receives up to kBurst frames and calls take(frame, from) for each. Returns their number.
    static constexpr uint32_t kBurst = 32;
    template <class Take>
    uint32_t receive(Take take) {
        return receive_into([](void* argument, std::span<const std::byte> frame,
                               const NicAddress& from) { (*static_cast<Take*>(argument))(frame, from); },
                            &take);
    }

    // A descriptor that becomes readable when frames come; -1: there is none, and the engine polls at intervals.
    virtual int wait_fd() const = 0;
    // Called before a sleep on wait_fd(). False: frames are here already.
    virtual bool may_sleep() { return true; }
    // When transmit() has to be called for frames that a fault plan holds back; INT64_MAX: never.
    virtual int64_t held_until() const { return INT64_MAX; }
    // Injects faults into the frames that the link sends. False: the owner of the port cannot be reached.
    virtual bool set_faults(wire::LinkId, const FaultPlan&) = 0;
    virtual uint32_t max_frame() const = 0;
    virtual const NicAddress& address() const = 0;
    virtual LinkRange links() const { return {}; }
    // Whether an address includes a port (wire::Tuning::ports): requests go to address(), and all other frames come
    // from and go to other ports of the same host.
    virtual bool has_ports() const { return false; }
    // How many frames of one connection may be under way to this end.
    virtual uint32_t window() const { return wire::Tuning{}.window; }
    virtual std::string counters() const = 0;  // for the log
    virtual std::string text_of(const NicAddress&) const;
    // For a port that a forked child cannot use: text that says what to do instead. Null: the child may open it.
    virtual const char* cure_of_fork() const { return nullptr; }

    // The agent by which the port starts threads. Called once, before any other call.
    virtual void use(UserAgent&) {}

    // ---- where another process (engine process, viaduct-udpd) receives requests: it gets this
    // process' request filters. No call waits for it. A number for cancel_expected(); 0: too many.
    // every: all requests until cancel_expected(), which may show a proof only when they come again; else one request.
    virtual uint32_t expect_request(const EndAddress& local, bool every);
    virtual uint32_t expect_peer(const EndAddress& local, const EndAddress& remote, wire::LinkId own);
    // Why expect_request() or expect_peer() has last returned 0, or still_expects() false: texts for the user.
    virtual void why_not_expected(std::string* why, std::string* cure) const;
    // Whether that process reports this one's death to the peers.
    virtual bool is_attended() const { return false; }
    // A connection has been made: that process reports this one's end to the peer.
    virtual void attend() {}
    // Whether that process keeps requests for which no program waits yet.
    virtual bool keeps_requests() const { return false; }
    // Whether that process has noted all that was expected, and requests that it had kept have been received.
    virtual bool is_known() const { return true; }
    // Called now and then while an expected request is waited for. False: that process cannot be had, and no request
    // comes.
    virtual bool still_expects(uint32_t) { return true; }
    // Ends expect_request() or expect_peer(). `over`: without a connection, so requests that matched go to others.
    virtual void cancel_expected(uint32_t number, bool over);
    // A new descriptor that becomes readable when the owner of the port dies; -1: this process owns it.
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
inline uint32_t FramePort::expect_request(const EndAddress&, bool) { return 1; }
inline uint32_t FramePort::expect_peer(const EndAddress&, const EndAddress&, wire::LinkId) { return 1; }
inline void FramePort::why_not_expected(std::string* why, std::string* cure) const {
    *why = "too many requests are waited for at this port";
    *cure = "wait for fewer at a time";
}
inline void FramePort::cancel_expected(uint32_t, bool) {}

}  // namespace viaduct::packet
