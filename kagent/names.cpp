// SPDX-License-Identifier: BSD-2-Clause
// Resolution of NIC names (spec/compat 4) and host names (spec/compat 6); see names.hpp.
#include "kagent/names.hpp"

#include <arpa/inet.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstring>

#include "core/provider/provider_name.hpp"

namespace viaduct::kagent {

namespace {

// Device name families of VIA's own time. The number that follows, if any, counts NICs, from the given one
// on.
struct Family {
    std::string_view name;
    uint64_t first = 0;
};

constexpr Family kFamilies[] = {{"/dev/via_eth"},  {"/dev/via_lo"}, {"/etc/via_lo"}, {"/dev/clanvi"},
                                {"/dev/paramnet"}, {"VINIC"},       {"nic"},         {"\\\\.\\VI", 1},
                                {"paramnet"}};

std::string_view name_of(const NicInfo& nic) { return {nic.name, ::strnlen(nic.name, sizeof nic.name)}; }

std::optional<size_t> canonical(const std::vector<NicInfo>& nics, std::string_view name) {
    for (size_t i = 0; i < nics.size(); ++i) {
        if (name_of(nics[i]) == name) return i;
    }
    return std::nullopt;
}

std::optional<size_t> by_other_name(const NicNaming& naming, std::string_view name) {
    if (naming.other_names == nullptr) return std::nullopt;
    for (size_t i = 0; i < naming.other_names->size(); ++i) {
        const auto& names = (*naming.other_names)[i];
        if (std::find(names.begin(), names.end(), name) != names.end()) return i;
    }
    return std::nullopt;
}

std::string_view digits_at_end(std::string_view name) {
    size_t n = name.size();
    while (n > 0 && std::isdigit(static_cast<unsigned char>(name[n - 1])) != 0) --n;
    return name.substr(n);
}

bool all_digits(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::optional<size_t> by_number(const NicNaming& naming, std::string_view digits, uint64_t first = 0) {
    if (digits.empty()) return default_nic(naming);
    if (digits.size() > 9) return std::nullopt;  // beyond every NIC there can be
    uint64_t n = 0;
    for (const char c : digits) n = n * 10 + static_cast<uint64_t>(c - '0');
    if (n < first) return std::nullopt;
    return default_nic(naming, n - first);
}

struct Counted {
    std::string_view digits;
    uint64_t first = 0;
    bool guessed = false;  // nothing is known of the name
};

// The number in a name that counts the default provider's NICs. None: the name says another thing.
std::optional<Counted> counted(const NicNaming& naming, std::string_view name) {
    if (naming.providers != nullptr && !provider_named_by(name, *naming.providers).empty()) return std::nullopt;
    for (const Family& family : kFamilies) {
        if (!name.starts_with(family.name)) continue;
        const std::string_view rest = name.substr(family.name.size());
        if (all_digits(rest)) return Counted{rest, family.first};
    }
    if (naming.strict) return std::nullopt;
    return Counted{digits_at_end(name), 0, !name.empty()};  // no name at all asks for the default NIC
}

std::string_view without_prefix(std::string_view text, std::string_view prefix) {
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

bool same_name(std::string_view a, std::string_view b) {
    return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool numeric_own_address(std::string_view name, const std::vector<HostIp>& addresses) {
    HostIp ip;
    const std::string text(name);
    if (::inet_pton(AF_INET, text.c_str(), ip.bytes.data()) == 1) {
        if (ip.bytes[0] == 127) return true;
        ip.length = 4;
    } else if (::inet_pton(AF_INET6, text.c_str(), ip.bytes.data()) == 1) {
        const in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
        if (std::memcmp(ip.bytes.data(), &loopback, sizeof loopback) == 0) return true;
        ip.length = 16;
    } else {
        return false;
    }
    return std::find(addresses.begin(), addresses.end(), ip) != addresses.end();
}

}  // namespace

bool counts_default_nics(const NicNaming& naming, std::string_view name) { return counted(naming, name).has_value(); }

std::optional<size_t> default_nic(const NicNaming& naming, uint64_t index) {
    const auto& nics = *naming.nics;
    for (size_t i = 0; i < nics.size(); ++i) {
        if (naming.default_provider == nics[i].provider && index-- == 0) return i;
    }
    return std::nullopt;
}

std::optional<size_t> find_nic(const NicNaming& naming, std::string_view name, bool* guessed) {
    const auto& nics = *naming.nics;
    if (const auto exact = canonical(nics, name)) return exact;
    if (const auto other = by_other_name(naming, name)) return other;
    const std::string_view path = without_prefix(name, "/dev/");
    if (const auto head = canonical(nics, path.substr(0, path.find_first_of("/:")))) return head;
    const auto number = counted(naming, name);
    if (!number) return std::nullopt;
    if (guessed != nullptr) *guessed = number->guessed;
    return by_number(naming, number->digits, number->first);
}

bool names_this_host(std::string_view name, std::string_view hostname, const std::vector<HostIp>& addresses) {
    if (name.empty()) return false;
    const std::string_view own_short = hostname.substr(0, hostname.find('.'));
    for (const std::string_view own :
         {hostname, own_short, std::string_view("localhost"), std::string_view("localhost.localdomain")}) {
        if (!own.empty() && same_name(name, own)) return true;
    }
    return numeric_own_address(name, addresses);
}

std::string own_hostname() {
    char name[HOST_NAME_MAX + 1] = {};
    if (::gethostname(name, sizeof name) != 0) return "localhost";
    return name;
}

}  // namespace viaduct::kagent
