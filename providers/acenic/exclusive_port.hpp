// SPDX-License-Identifier: BSD-2-Clause
// Exclusive mode: the engine has the DPDK port in its own process.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "core/provider/explain.hpp"
#include "providers/acenic/end_report.hpp"
#include "providers/acenic/port.hpp"
#include "providers/acenic/port_lock.hpp"
#include "providers/packet/frame_port.hpp"

namespace viaduct::acenic {

using packet::FramePort;

class ExclusivePort final : public FramePort {
public:
    // keyed: frames carry tags, which no other process can make. Null: *why and *cure say so for people.
    static std::unique_ptr<FramePort> open(const PortSpec& spec, bool keyed, std::string* why, std::string* cure) {
        Fd lock = acquire_port_lock(spec);
        if (!lock.valid() && errno != EADDRINUSE) {
            *why = with_error(spec.text + ": no socket for the lock of the port", errno);
            *cure = "raise the limit of open files (ulimit -n)";
            return nullptr;
        }
        if (!lock.valid()) {
            *why = spec.text + " is in use by another process";
            *cure = "share it (acenic.mode = \"shared\" for all of them), or give each application an interface of "
                    "its own (a veth, macvlan or virtual function)";
            return nullptr;
        }
        std::unique_ptr<EndReport> report;
        if (!spec.interface.empty() && !keyed) report = EndReport::start(spec);  // comes up meanwhile
        std::unique_ptr<Port> port = Port::open(spec, why, cure);
        if (port == nullptr) return nullptr;
        if (report != nullptr && !report->await_ready()) report.reset();
        return std::unique_ptr<FramePort>(
            new ExclusivePort(std::move(lock), std::move(port), std::move(report), spec.joined));
    }

    wire::Outlet& outlet() override { return *port_; }
    void transmit() override { port_->transmit(); }
    int wait_fd() const override { return port_->wait_fd(); }
    int64_t held_until() const override { return port_->held_until(); }
    bool set_faults(wire::LinkId link, const FaultPlan& plan) override {
        port_->set_faults(link, plan);
        return true;
    }
    uint32_t max_frame() const override { return port_->max_frame(); }
    const NicAddress& address() const override { return port_->address(); }
    std::string counters() const override { return counters_text(*port_); }
    // The driver of a joined port reports the end of the process at the other end (Port::next_unreachable).
    bool is_attended() const override { return joined_ || report_ != nullptr; }
    // What DPDK has is not for a forked child (docs/acenic.md).
    const char* cure_of_fork() const override {
        return "open it after exec, or let the ports be shared (acenic.mode)";
    }
    static std::string counters_text(const Port& port) {
        const PortCounters& c = port.counters();
        const PacketSocket::Lost lost = port.lost();
        return "too large " + std::to_string(lost.too_large) + ", not taken " + std::to_string(lost.not_taken) +
               ", lost otherwise " + std::to_string(lost.other) + ", refused by the port " +
               std::to_string(c.tx_refused) + ", no buffer " + std::to_string(c.no_buffer) + ", foreign " +
               std::to_string(c.foreign) + ", copied after all " + std::to_string(c.taken_in);
    }

private:
    ExclusivePort(Fd lock, std::unique_ptr<Port> port, std::unique_ptr<EndReport> report, bool joined)
        : lock_(std::move(lock)), report_(std::move(report)), port_(std::move(port)), joined_(joined) {}
    uint32_t receive_into(Take take, void* argument) override { return port_->receive_into(take, argument); }

    Fd lock_;  // no other process of this host uses the port
    std::unique_ptr<EndReport> report_;  // null: no process reports the end of this one
    std::unique_ptr<Port> port_;
    const bool joined_;
};

}  // namespace viaduct::acenic
