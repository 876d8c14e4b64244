// SPDX-License-Identifier: BSD-2-Clause
// Parsing and searching a vip_hosts file; see hosts_file.hpp.
#include "vipl/hosts_file.hpp"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/log/log.hpp"
#include "core/text/file_text.hpp"

namespace viaduct::vipl {
namespace {

constexpr size_t kLargest = 256 << 20;  // bytes

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool same_name(std::string_view a, std::string_view b) {
    return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string expand_home(std::string path) {
    if (path.rfind("~/", 0) != 0) return path;
    const char* home = std::getenv("HOME");
    return home != nullptr ? home + path.substr(1) : std::string();
}

}  // namespace

std::optional<NicAddress> parse_nic_address(std::string_view text) {
    NicAddress address;
    size_t at = 0;
    for (uint32_t i = 0; i < kNicAddressBytes; ++i) {
        if (i != 0 && at < text.size() && (text[at] == ':' || text[at] == '-')) ++at;
        if (at + 2 > text.size()) return std::nullopt;
        const int high = hex_digit(text[at]);
        const int low = hex_digit(text[at + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        address.bytes[i] = static_cast<uint8_t>(high << 4 | low);
        at += 2;
    }
    if (at != text.size()) return std::nullopt;
    return address;
}

HostsFile HostsFile::parse(std::string_view text) {
    HostsFile file;
    std::istringstream in{std::string(text)};
    in.exceptions(std::ios::badbit);  // a failed allocation throws; getline would end the text early
    for (std::string row; std::getline(in, row);) {
        row.resize(std::min(row.size(), row.find('#')));
        std::istringstream words(row);
        words.exceptions(std::ios::badbit);
        Line line;
        bool has_address = false;
        for (std::string word; words >> word;) {
            const auto address = has_address ? std::nullopt : parse_nic_address(word);
            if (address) {
                line.address = *address;
                has_address = true;
            } else {
                line.names.push_back(word);
            }
        }
        if (has_address && !line.names.empty()) file.lines_.push_back(std::move(line));
    }
    return file;
}

HostsFile HostsFile::find(std::string_view search_path) {
    std::istringstream paths{std::string(search_path)};
    paths.exceptions(std::ios::badbit);
    for (std::string path; std::getline(paths, path, ':');) {
        std::string text;
        const FileRead how = path.empty() ? FileRead::not_opened : read_text(expand_home(path), kLargest, &text);
        if (how == FileRead::done) return parse(text);
        if (how != FileRead::not_opened)
            VIADUCT_LOG(warn, "hosts", "%s cannot be read%s; it is passed over", path.c_str(),
                        how == FileRead::not_regular ? ": no regular file" : "");
    }
    return {};
}

std::optional<NicAddress> HostsFile::address_of(std::string_view name, size_t index) const {
    for (const Line& line : lines_) {
        const bool named =
            std::any_of(line.names.begin(), line.names.end(),
                        [&](const std::string& candidate) { return same_name(candidate, name); });
        if (named && index-- == 0) return line.address;
    }
    return std::nullopt;
}

std::string HostsFile::name_of(const NicAddress& address) const {
    for (const Line& line : lines_) {
        if (line.address == address) return line.names.front();
    }
    return {};
}

}  // namespace viaduct::vipl
