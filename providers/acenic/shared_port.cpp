// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/shared_port.hpp"

#include <fcntl.h>

#include <vector>

#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/wire/format.hpp"

namespace viaduct::acenic {

std::unique_ptr<FramePort> SharedPort::open(const PortSpec& spec, const ModeChoice& mode, bool* possible,
                                            std::string* why, std::string* cure) {
    std::unique_ptr<SharedPort> port(new SharedPort);
    const Status found = find_engine(spec, mode, &port->link_, why, cure);
    *possible = found != Status::not_supported;
    if (found != Status::ok) return nullptr;
    const Welcome& w = port->link_.welcome;
    if (w.max_frame < wire::kMinFrame || w.max_frame > wire::kMaxFrame || w.links == 0) {
        *why = "the engine process of " + spec.text + " answers wrongly";
        *cure = "end it";
        return nullptr;
    }
    *cure = "allow more memory, or set acenic.mode to exclusive";
    if (!port->driver_.start(tigon::kEthernetHeader + w.max_frame)) {
        *why = "no memory for the rings";
        return nullptr;
    }
    if (const Status attached = attach(port->link_, port->driver_.segment(), why); attached != Status::ok) {
        if (attached == Status::closed) *cure = "open the NIC again, which starts another one";
        return nullptr;
    }
    port->ethernet_.own = w.address;
    VIADUCT_LOG(info, "acenic", "%s is shared, frames up to %u bytes, links from %u", spec.text.c_str(),
                w.max_frame, w.first_link);
    return port;
}

// ---- frames

std::byte* SharedPort::begin_frame(uint32_t) {
    std::byte* at = driver_.begin_send();
    return at != nullptr ? at + wire::Ethernet::kBytes : nullptr;
}

void SharedPort::end_frame(std::byte* frame, uint32_t bytes, const NicAddress& to) {
    if (bytes == 0) return driver_.end_send(0);
    ethernet_.write(frame - wire::Ethernet::kBytes, to, bytes);
    driver_.end_send(wire::Ethernet::kBytes + bytes);
}

void SharedPort::transmit() {
    if (!driver_.ring_mailboxes()) return;
    const CancellationHeldOff inside_hot_calls;
    send_look(link_.socket.get());
}

uint32_t SharedPort::receive_into(Take take, void* argument) {
    tigon::Packed event;
    while (driver_.next_event(&event)) {
        if (event.id == tigon::kError)
            VIADUCT_LOG(warn, "acenic", "the engine refused command %u: error %u", event.index, event.code);
        if (event.id == tigon::kFilterAdded || event.id == tigon::kError) --unconfirmed_;
        if (event.id == tigon::kLinkState)
            VIADUCT_LOG(info, "acenic", "link %s", event.code == tigon::kUp ? "up" : "down");
    }
    return driver_.receive(kBurst, [&](std::span<const std::byte> packet) {
        NicAddress from;
        std::span<const std::byte> frame;
        if (ethernet_.read(packet, &from, &frame)) take(argument, frame, from);
    });
}

// The looks that have come are taken before the rings are looked at, so that a later one wakes us.
bool SharedPort::may_sleep() {
    std::vector<Fd> files;  // none: it is our engine
    take_looks(link_.socket.get(), &files);
    return driver_.wait_for_interrupt();
}

// The faults are injected where its frames leave the engine process.
bool SharedPort::set_faults(wire::LinkId link, const FaultPlan& plan) {
    tigon::FaultEntry entry;
    entry.link = link;
    entry.plan = plan;
    const bool given = driver_.set_faults(entry);
    transmit();
    return given;
}

// ---- what others on this port are told

uint32_t SharedPort::expect(const tigon::FilterEntry& entry) {
    const uint32_t index = driver_.add_filter(entry);
    if (index == tigon::kFilters) return 0;
    ++unconfirmed_;
    return index + 1;
}

uint32_t SharedPort::expect_request(const EndAddress& local, bool every) {
    tigon::FilterEntry entry;
    entry.kind = every ? tigon::FilterEntry::every_request : tigon::FilterEntry::request;
    entry.local = local;
    return expect(entry);
}

uint32_t SharedPort::expect_peer(const EndAddress& local, const EndAddress& remote, wire::LinkId own) {
    tigon::FilterEntry entry;
    entry.kind = tigon::FilterEntry::peer;
    entry.link = own;
    entry.local = local;
    entry.remote = remote;
    return expect(entry);
}

void SharedPort::cancel_expected(uint32_t number, bool over) { driver_.delete_filter(number - 1, over); }

// ----

int SharedPort::owner_fd() const { return ::fcntl(link_.liveness_pipe.get(), F_DUPFD_CLOEXEC, 3); }

std::string SharedPort::counters() const {
    using enum tigon::Statistic;
    return "send ring full " + std::to_string(driver_.send_full()) + ", dropped without a descriptor " +
           std::to_string(driver_.statistic(kStatNoStandard) + driver_.statistic(kStatNoJumbo)) +
           ", interrupts " + std::to_string(driver_.statistic(kStatInterrupts));
}

}  // namespace viaduct::acenic
