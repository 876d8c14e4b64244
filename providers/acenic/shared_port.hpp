// SPDX-License-Identifier: BSD-2-Clause
// Shared mode: the port belongs to an engine process, and we are one of its hosts. Frames go through the
// rings of the Tigon-II's host interface; registered memory stays ours, each payload is copied into a send
// buffer and out of a receive buffer.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "providers/acenic/engine_process.hpp"
#include "providers/packet/frame_port.hpp"
#include "providers/acenic/tigon/driver.hpp"
#include "providers/wire/encapsulation.hpp"

namespace viaduct::acenic {

using packet::FramePort;
using packet::LinkRange;

class SharedPort final : public FramePort, public wire::Outlet {
public:
    // Null: *why and *cure say so for people; *possible is false when there is no engine and no way to start
    // one.
    static std::unique_ptr<FramePort> open(const PortSpec&, const ModeChoice&, bool* possible,
                                           std::string* why, std::string* cure);

    wire::Outlet& outlet() override { return *this; }
    void transmit() override;
    int wait_fd() const override { return link_.socket.get(); }
    bool may_sleep() override;
    bool set_faults(wire::LinkId, const FaultPlan&) override;
    uint32_t max_frame() const override { return link_.welcome.max_frame; }
    const NicAddress& address() const override { return link_.welcome.address; }
    LinkRange links() const override { return {link_.welcome.first_link, link_.welcome.links}; }
    std::string counters() const override;
    uint32_t expect_request(const EndAddress& local, bool every) override;
    uint32_t expect_peer(const EndAddress& local, const EndAddress& remote, wire::LinkId own) override;
    bool is_attended() const override { return true; }
    bool keeps_requests() const override { return true; }
    bool is_known() const override { return unconfirmed_ <= 0; }
    void cancel_expected(uint32_t number, bool over) override;
    int owner_fd() const override;

    std::byte* begin_frame(uint32_t bytes) override;
    void end_frame(std::byte* frame, uint32_t bytes, const NicAddress& to) override;
    bool stands_still(wire::Time now) override { return driver_.stands_still(now); }

private:
    SharedPort() = default;
    uint32_t receive_into(Take, void* argument) override;
    uint32_t expect(const tigon::FilterEntry&);

    EngineLink link_;
    tigon::Driver driver_;
    wire::Ethernet ethernet_;
    int unconfirmed_ = 0;  // filters the engine has not yet said that it has
};

}  // namespace viaduct::acenic
