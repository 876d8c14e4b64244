// SPDX-License-Identifier: BSD-2-Clause
// Files of captured packets (pcap, Ethernet), as tcpdump and Wireshark have them; written in a ring of files where a
// size is set.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "utils/vipcap/frame.hpp"

namespace viaduct::vipcap {

struct CloseFile {
    void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

inline constexpr uint32_t kLongestPacket = 1 << 18;

// Calls take(packet, seconds) for each while that is true. Throws ToolError where it is no such file; one that is cut
// short ends there.
void read_pcap(const std::string& path, const std::function<bool(Bytes packet, double seconds)>& take);

// Files of one capture, as PcapWriter names them or in any order: by the times of their first packets.
std::vector<std::string> by_time(std::vector<std::string> paths);

class PcapWriter {
public:
    // `most_bytes`: of a file; 0: no limit, and one file of that name. Else the files are path.0, path.1 and so on, and
    // the oldest is written again when there are `files`.
    PcapWriter(std::string path, uint64_t most_bytes, uint32_t files);
    void add(Bytes packet, int64_t ns_since_1970);
    void flush();

private:
    void open();
    const std::string path_;
    const uint64_t most_bytes_;
    const uint32_t files_;
    uint32_t next_ = 0;
    uint64_t bytes_ = 0;
    File file_;
};

}  // namespace viaduct::vipcap
