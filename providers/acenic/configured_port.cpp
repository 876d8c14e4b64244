// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/configured_port.hpp"

#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "core/provider/explain.hpp"
#include "core/shm/fd.hpp"
#include "providers/acenic/exclusive_port.hpp"
#include "providers/acenic/mode.hpp"
#include "providers/acenic/port_spec.hpp"
#include "providers/acenic/shared_port.hpp"
#include "providers/packet/nic.hpp"

namespace viaduct::acenic {

namespace {

class ConfiguredPort final : public packet::PortSource {
public:
    ConfiguredPort(PortSpec spec, ModeChoice mode)
        : PortSource("acenic", spec.text), spec_(std::move(spec)), mode_(std::move(mode)) {
        key_ = mode_.key;
    }

    std::unique_ptr<FramePort> open(std::string* why, std::string* cure) const override {
        if (mode_.mode != Mode::exclusive) {
            bool possible = true;
            std::unique_ptr<FramePort> port = SharedPort::open(spec_, mode_, &possible, why, cure);
            if (port != nullptr) return port;
            if (possible || mode_.mode == Mode::shared) return nullptr;
            VIADUCT_LOG(info, "acenic", "%s: exclusive, since %s", spec_.text.c_str(), why->c_str());
        }
        return ExclusivePort::open(spec_, key_.has_value(), why, cure);
    }

    bool resolve(uint32_t ip, NicAddress* out) const override { return find_neighbour(spec_, ip, out); }

private:
    const PortSpec spec_;
    const ModeChoice mode_;
};

}  // namespace

Status open(const OpenArgs& args, NicContext** out) {
    PortSpec port;
    Rejection rejection;
    if (!find_port(args.settings->get("ports", ""), args.settings->get("faults", ""), args.nic.address, &port,
                   &rejection)) {
        explain(args.agent, "acenic", rejection.reason, rejection.cure);
        return descriptors_left(1) ? Status::unknown_name : Status::out_of_resources;
    }
    if (std::string_view(args.settings->get("zero_copy", "on")) == "off") port.zero_copy = false;
    std::string why, cure;
    ModeChoice mode;
    if (!read_mode(*args.settings, &mode, &why, &cure)) {
        explain(args.agent, "acenic", why, cure);
        return Status::invalid;
    }
    return packet::open(args, std::make_unique<ConfiguredPort>(std::move(port), std::move(mode)), out);
}

}  // namespace viaduct::acenic
