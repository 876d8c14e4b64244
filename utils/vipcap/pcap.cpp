// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipcap/pcap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "utils/common/error.hpp"

namespace viaduct::vipcap {

namespace {

constexpr uint32_t kMicroseconds = 0xA1B2C3D4, kNanoseconds = 0xA1B23C4D, kEthernetLink = 1;

struct FileHead {
    uint32_t magic = kNanoseconds;
    uint16_t major = 2, minor = 4;
    uint32_t zone = 0, precision = 0, longest = kLongestPacket, link = kEthernetLink;
};
struct PacketHead {
    uint32_t seconds, fraction, kept, bytes;
};

File open_file(const std::string& path, const char* mode) {
    File file(std::fopen(path.c_str(), mode));
    if (file == nullptr) throw tools::ToolError(fmt::format("{}: {}", path, std::strerror(errno)));
    return file;
}

uint32_t turned(uint32_t value, bool other_order) { return other_order ? __builtin_bswap32(value) : value; }

}  // namespace

void read_pcap(const std::string& path, const std::function<bool(Bytes packet, double seconds)>& take) {
    const File file = open_file(path, "rb");
    FileHead head;
    if (std::fread(&head, sizeof head, 1, file.get()) != 1) throw tools::ToolError(path + " is no pcap file");
    const bool other = head.magic == __builtin_bswap32(kMicroseconds) || head.magic == __builtin_bswap32(kNanoseconds);
    const uint32_t magic = turned(head.magic, other);
    if ((magic != kMicroseconds && magic != kNanoseconds) || turned(head.link, other) != kEthernetLink)
        throw tools::ToolError(path + " is no pcap file of Ethernet; pcapng: editcap -F pcap");
    std::vector<uint8_t> room;
    for (PacketHead p; std::fread(&p, sizeof p, 1, file.get()) == 1;) {
        const uint32_t kept = turned(p.kept, other);
        if (kept > kLongestPacket) throw tools::ToolError(path + " is damaged");
        room.resize(kept);
        if (kept != 0 && std::fread(room.data(), kept, 1, file.get()) != 1) return;
        const double fraction = turned(p.fraction, other) * (magic == kNanoseconds ? 1e-9 : 1e-6);
        if (!take(room, turned(p.seconds, other) + fraction)) return;
    }
}

std::vector<std::string> by_time(std::vector<std::string> paths) {
    std::map<std::string, double> began;
    for (const std::string& path : paths)
        read_pcap(path, [&](Bytes, double seconds) {
            began[path] = seconds;
            return false;
        });
    std::stable_sort(paths.begin(), paths.end(),
                     [&](const std::string& a, const std::string& b) { return began[a] < began[b]; });
    return paths;
}

PcapWriter::PcapWriter(std::string path, uint64_t most_bytes, uint32_t files)
    : path_(std::move(path)), most_bytes_(most_bytes), files_(files) {
    open();
}

void PcapWriter::flush() {
    if (std::fflush(file_.get()) != 0) throw tools::ToolError(path_ + ": cannot be written");
}

void PcapWriter::open() {
    if (file_ != nullptr) flush();
    const std::string name = most_bytes_ == 0 ? path_ : fmt::format("{}.{}", path_, next_++ % files_);
    file_ = open_file(name, "wb");
    const FileHead head;
    bytes_ = sizeof head;
    if (std::fwrite(&head, sizeof head, 1, file_.get()) != 1) throw tools::ToolError(name + ": cannot be written");
}

void PcapWriter::add(Bytes packet, int64_t ns) {
    const auto kept = static_cast<uint32_t>(packet.size());
    if (most_bytes_ != 0 && bytes_ + sizeof(PacketHead) + kept > most_bytes_ && bytes_ > sizeof(FileHead)) open();
    const PacketHead head{static_cast<uint32_t>(ns / 1'000'000'000), static_cast<uint32_t>(ns % 1'000'000'000), kept,
                          kept};
    if (std::fwrite(&head, sizeof head, 1, file_.get()) != 1 || std::fwrite(packet.data(), kept, 1, file_.get()) != 1)
        throw tools::ToolError(path_ + ": cannot be written");
    bytes_ += sizeof head + kept;
}

}  // namespace viaduct::vipcap
