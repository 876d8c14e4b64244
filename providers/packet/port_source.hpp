// SPDX-License-Identifier: BSD-2-Clause
// What an engine needs of the provider it works for: the port that the configuration names. Made when a NIC is opened,
// kept with it; read-only afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "providers/packet/frame_port.hpp"
#include "providers/wire/siphash.hpp"

namespace viaduct::packet {

class PortSource {
public:
    // The section of the settings, which is the provider's name in the log as well; a constant. The name of the port as
    // configured: opens of the same port in one process share an engine.
    PortSource(const char* section, std::string name) : section_(section), name_(std::move(name)) {}
    virtual ~PortSource() = default;
    PortSource(const PortSource&) = delete;
    PortSource& operator=(const PortSource&) = delete;

    const char* section() const { return section_; }
    const std::string& name() const { return name_; }
    // Frames are tagged with it, and others are dropped.
    const std::optional<wire::Key>& key() const { return key_; }

    // Null: *why and *cure say so for people.
    virtual std::unique_ptr<FramePort> open(std::string* why, std::string* cure) const = 0;
    // The address of frames for an IPv4 address (network order). False: unknown.
    virtual bool resolve(uint32_t ip, NicAddress* out) const = 0;

protected:
    std::optional<wire::Key> key_;

private:
    const char* const section_;
    const std::string name_;
};

}  // namespace viaduct::packet
