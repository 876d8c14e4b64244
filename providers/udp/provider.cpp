// SPDX-License-Identifier: BSD-2-Clause
// udp: VI over the kernel's UDP sockets. This file is its table of operations, and how its NICs are found and opened.
#include <cstdio>
#include <utility>

#include "core/provider/explain.hpp"
#include "core/shm/fd.hpp"
#include "providers/packet/key_file.hpp"
#include "providers/packet/nic.hpp"
#include "providers/udp/address.hpp"
#include "providers/udp/udp_port.hpp"

namespace viaduct::udp {

namespace {

class ConfiguredPort final : public packet::PortSource {
public:
    ConfiguredPort(Spec spec, std::optional<wire::Key> key)
        : PortSource("udp", text_of(spec.address)), spec_(std::move(spec)) {
        key_ = key;
    }
    std::unique_ptr<packet::FramePort> open(std::string* why, std::string* cure) const override {
        return UdpPort::open(spec_, why, cure);
    }
    bool resolve(uint32_t ip, NicAddress* out) const override { return find_host(spec_, ip, out); }

private:
    const Spec spec_;
};

NicInfo describe_nic(uint16_t index, const Spec& spec) {
    NicInfo nic = packet::common_info();
    std::snprintf(nic.name, sizeof nic.name, "udp%u", index);
    std::snprintf(nic.provider, sizeof nic.provider, "udp");
    std::snprintf(nic.description, sizeof nic.description, "VI over UDP: iface=%.32s, %s", spec.interface.c_str(),
                  text_of(spec.address).c_str());
    nic.address = spec.address;
    nic.index = index;
    nic.hardware_version = 1;
    nic.link_up = spec.up ? 1 : 0;
    nic.native_mtu = spec.mtu;
    nic.profile = Profile{6000, 1000, 20, 0};
    return nic;
}

Status discover(const Settings& settings, const Hints&, NicSink& sink) {
    const std::vector<std::string> all = split_interfaces(settings);
    Status seen = Status::ok;
    if (all.empty() && interfaces_are_chosen_here(settings)) {
        seen = list_of_interfaces();
        if (seen != Status::ok)
            sink.reject(Rejection{"udp", "the interfaces of this host cannot be listed",
                                  "raise the limit of descriptors, ulimit -n, and let the agent open netlink sockets"});
    }
    for (uint16_t index = 0; index != all.size(); ++index) {
        Spec spec;
        Rejection why;
        if (read_spec(settings, all[index], index, &spec, &why)) {
            sink.offer(describe_nic(index, spec));
            sink.also_called(("udp:" + spec.interface).c_str());
            sink.also_called(("udp:" + text_of_ip(spec.address)).c_str());
        } else {
            sink.reject(why);
            if (seen == Status::ok) seen = list_of_interfaces();
        }
    }
    return seen;
}

Status open(const OpenArgs& args, NicContext** out) {
    Spec spec;
    Rejection rejection;
    // The one that the agent means: interfaces may have changed since it looked.
    if (!read_spec(*args.settings, text_of_ip(args.nic.address), args.nic.index, &spec, &rejection)) {
        explain(args.agent, "udp", rejection.reason, rejection.cure);
        return descriptors_left(1) ? Status::unknown_name : Status::out_of_resources;
    }
    spec.address = args.nic.address;
    std::optional<wire::Key> key;
    if (const std::string file = args.settings->get("auth_key_file", ""); !file.empty()) {
        std::string why, cure;
        if (!packet::read_key_file("udp", file, &key.emplace(), &why, &cure)) {
            explain(args.agent, "udp", why, cure);
            return Status::invalid;
        }
    }
    return packet::open(args, std::make_unique<ConfiguredPort>(std::move(spec), key), out);
}

constexpr Provider make_provider() {
    Provider p{};
    p.name = "udp";
    p.description = "VI over the kernel's UDP sockets";
    p.version = 1;
    p.control.discover = discover;
    p.data = packet::common_data();
    p.data.open = open;
    return p;
}

}  // namespace

}  // namespace viaduct::udp

extern "C" __attribute__((visibility("default"))) constexpr viaduct::Provider viaduct_provider_v1 =
    viaduct::udp::make_provider();
