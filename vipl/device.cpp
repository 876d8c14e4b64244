// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/device.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "core/agent/asked_name.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/shm/segment.hpp"
#include "vipl/name_service.hpp"
#include "vipl/policy.hpp"
#include "vipl/resolver.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

constexpr const char* kDefaultNic = "nic0";

// *guessed, which may be null: nothing is known of the name.
Status ask_agent(Library& library, const std::string& device, Deadline deadline, NicInfo* out, std::string* why,
                 bool* guessed = nullptr) {
    if (device.size() >= sizeof(kagent::NameText::name)) return Status::invalid;
    const kagent::NameText name = asked_name(device, library.config.get("names", "default_provider"));
    Mail answer;
    const Status status = library.link.call(Mail::of(kagent::Type::kResolveName, name), &answer, deadline);
    if (status != Status::ok) {
        *why = refusal_text(library, answer);
        return status;
    }
    kagent::NicEntry entry;
    if (!answer.get(&entry)) return Status::broken;
    *out = entry.nic;
    if (guessed != nullptr) *guessed = (entry.is_default & kagent::kNicIsGuessed) != 0;
    out->provider[sizeof out->provider - 1] = '\0';
    out->name[sizeof out->name - 1] = '\0';
    return Status::ok;
}

std::string text_of(const IpAddress& ip) {
    char text[INET6_ADDRSTRLEN] = {};
    ::inet_ntop(ip.length == 4 ? AF_INET : AF_INET6, ip.bytes.data(), text, sizeof text);
    return text;
}

// The address from which this host sends to that one; empty: no route leads there. Connecting a datagram socket sends
// nothing.
std::string source_toward(const IpAddress& ip) {
    sockaddr_storage to{}, own{};
    socklen_t bytes = 0;
    if (ip.length == 4) {
        sockaddr_in in{};
        in.sin_family = AF_INET;
        in.sin_port = htons(9);
        std::memcpy(&in.sin_addr, ip.bytes.data(), 4);
        std::memcpy(&to, &in, bytes = sizeof in);
    } else {
        sockaddr_in6 in{};
        in.sin6_family = AF_INET6;
        in.sin6_port = htons(9);
        std::memcpy(&in.sin6_addr, ip.bytes.data(), 16);
        std::memcpy(&to, &in, bytes = sizeof in);
    }
    const Fd socket(::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), bytes) != 0) return {};
    bytes = sizeof own;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return {};
    IpAddress source;
    source.length = ip.length;
    if (ip.length == 4) {
        std::memcpy(source.bytes.data(), &reinterpret_cast<const sockaddr_in&>(own).sin_addr, 4);
    } else {
        std::memcpy(source.bytes.data(), &reinterpret_cast<const sockaddr_in6&>(own).sin6_addr, 16);
    }
    return text_of(source);
}

// The NIC of the far provider that starts where the route to the host does, else its first one.
std::string far_nic(Library& library, const std::string& provider, const std::string& source, Deadline deadline) {
    NicInfo found;
    std::string why;
    const std::string by_source = provider + ":" + source;
    if (!source.empty() && ask_agent(library, by_source, deadline, &found, &why) == Status::ok) return found.name;
    return provider + "0";
}

// The default NIC where it reaches the host, as far as can be known without asking the host.
std::string nic_toward(Library& library, const std::string& host, Deadline deadline) {
    NicInfo standard;
    std::string why;
    const std::string far = library.config.get("names", "far_provider");
    if (ask_agent(library, kDefaultNic, deadline, &standard, &why) != Status::ok) return kDefaultNic;
    if ((standard.capabilities & kCapLocalOnly) == 0 || far.empty()) return standard.name;
    const HostsFile hosts = hosts_of(library.config);
    const bool listed = hosts.knows(host);
    if (listed && *hosts.address_of(host, 0) == standard.address) return standard.name;
    if (library.config.get_bool("names", "resolver")) {
        for (const IpAddress& ip : resolve(host.c_str(), now_ns() + limit_ns(TimeLimit::resolver))) {
            const std::string source = source_toward(ip);
            if (source.empty()) continue;
            return source == text_of(ip) ? standard.name : far_nic(library, far, source, deadline);
        }
    }
    return listed ? far + "0" : standard.name;
}

}  // namespace

std::string refusal_text(const Library& library, const Mail& answer) {
    kagent::Error refusal;
    if (answer.type() == kagent::Type::kError && answer.get(&refusal) && refusal.text[0] != '\0')
        return std::string(viaduct::text_of(refusal.text));
    const std::string why = library.link.last_error();
    return why.empty() ? "the agent has not answered in time" : why;
}

Status find_device(Library& library, const std::string& given, Deadline deadline, std::string* device, NicInfo* out) {
    const std::string* const alias = library.config.nic_of_alias(given);
    *device = alias != nullptr ? *alias : given;
    const bool by_host = device->starts_with(kHostPrefix);
    if (by_host) *device = nic_toward(library, device->substr(std::strlen(kHostPrefix)), deadline);
    std::string why;
    bool guessed = false;
    const Status status = ask_agent(library, *device, deadline, out, &why, &guessed);
    if (status == Status::ok && guessed)
        note("VipOpenNic", nullptr, "vipinfo shows the names of NICs; names.strict = true refuses unknown ones",
             "unknown name '%.200s', opens the default %s because nothing is known of it", given.c_str(), out->name);
    if (status != Status::ok) {
        const bool unknown = status == Status::unknown_name || status == Status::invalid;
        refuse(unknown ? VIP_INVALID_PARAMETER : VIP_ERROR_RESOURCE,
               unknown ? "vipinfo --providers shows all NICs, and why others are missing, with a cure for each; "
                         "VIADUCT_NICS=NAME=NIC gives one another name"
                       : "vipinfo --doctor", "cannot open '%s': %s",
               device->c_str(), why.empty() ? "the agent does not answer" : why.c_str());
        return status;
    }
    // A name of one NIC is of no other that stands in for it.
    const bool exact = by_host || (alias != nullptr && alias->find(':') == std::string::npos);
    if (!exact || *device == out->name || *device == kDefaultNic) return Status::ok;
    refuse(VIP_INVALID_PARAMETER, "vipinfo shows the names of NICs; correct VIADUCT_NICS or section [nics]",
           "cannot open '%s': there is no NIC %s, and %s does not stand in for it", given.c_str(), device->c_str(),
           out->name);
    return Status::unknown_name;
}

}  // namespace viaduct::vipl
