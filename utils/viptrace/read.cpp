// SPDX-License-Identifier: BSD-2-Clause
#include "utils/viptrace/read.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "core/shm/fd.hpp"
#include "core/text/printable.hpp"
#include "utils/common/error.hpp"

namespace viaduct::viptrace {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostCapacity = uint64_t{1} << kMostEventBits;
constexpr uint64_t kEventsAtOnce = 1 << 12;

constexpr std::array<const char*, static_cast<size_t>(What::count_)> kNames = {"none",
                                                                               "VipOpenNic",
                                                                               "VipCloseNic",
                                                                               "VipRegisterMem",
                                                                               "VipDeregisterMem",
                                                                               "VipCreateVi",
                                                                               "VipDestroyVi",
                                                                               "VipPostSend",
                                                                               "VipPostRecv",
                                                                               "VipSendDone",
                                                                               "VipRecvDone",
                                                                               "VipSendWait",
                                                                               "VipRecvWait",
                                                                               "VipCQWait",
                                                                               "VipConnectWait",
                                                                               "VipConnectAccept",
                                                                               "VipConnectReject",
                                                                               "VipConnectRequest",
                                                                               "VipConnectPeerRequest",
                                                                               "VipConnectPeerWait",
                                                                               "VipConnectPeerDone",
                                                                               "VipDisconnect",
                                                                               "asynchronous error",
                                                                               "VipSendNotify",
                                                                               "VipRecvNotify",
                                                                               "VipxWriteNow",
                                                                               "connection from before",
                                                                               "made"};

bool read_at(const Fd& fd, size_t at, std::span<std::byte> to) {
    while (!to.empty()) {
        const ssize_t got = ::pread(fd.get(), to.data(), to.size(), static_cast<off_t>(at));
        if (got <= 0) return false;
        at += static_cast<size_t>(got);
        to = to.subspan(static_cast<size_t>(got));
    }
    return true;
}

bool is_time(int64_t ns) { return ns >= 0 && ns <= kLatest; }

// From ticks to CLOCK_MONOTONIC, by two moments. One for all processes of a host: their ticks are the same, and the
// times of a message at both ends fit together. The longer between the moments, the better.
class Clock {
public:
    void learn(const Header& h) {
        const int64_t apart = h.later.ns > h.begin.ns ? h.later.ns - h.begin.ns : 0;
        if (apart <= apart_ || h.later.ticks <= h.begin.ticks) return;
        apart_ = apart;
        begin_ = h.begin;
        ns_per_tick_ = static_cast<double>(apart) / static_cast<double>(h.later.ticks - h.begin.ticks);
    }
    int64_t ns(int64_t ticks) const {
        const double since = static_cast<double>(ticks) - static_cast<double>(begin_.ticks);
        return begin_.ns + static_cast<int64_t>(std::clamp(since * ns_per_tick_, -kLongest, kLongest));
    }

private:
    static constexpr double kLongest = 1e17;  // three years: more is invalid

    int64_t apart_ = 0;
    Moment begin_{};
    double ns_per_tick_ = 1;
};
using Clocks = std::map<std::string, Clock>;  // by host

std::string text_of(const char* bytes, size_t most) { return printable({bytes, ::strnlen(bytes, most)}); }

// Those that were finished, with ticks for times.
void add_events(std::span<const Event> events, Process* p) {
    for (const Event& e : events) {
        const uint64_t at = e.at.load();
        if (at == 0 || e.what == What::none || e.what >= What::count_ || e.phase > Phase::end) continue;
        p->events.push_back(
            {static_cast<int64_t>(at & INT64_MAX), e.what, e.phase, e.result, e.thread, e.object, e.value});
    }
}

// With ticks for times. What is wrong; empty: nothing.
std::string read_file(const std::string& path, Process* p, Clocks* clocks) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) return std::strerror(errno);
    alignas(Header) std::array<std::byte, sizeof(Header)> bytes;
    if (!read_at(fd, 0, bytes)) return "it is too short";
    const auto& h = *reinterpret_cast<const Header*>(bytes.data());
    if (h.magic != kRecordMagic || h.version != kRecordVersion) return "it is no record of this version";
    if (h.capacity == 0 || h.capacity > kMostCapacity || (h.capacity & (h.capacity - 1)) != 0) return "it is damaged";
    if (!is_time(h.begin.ns) || !is_time(h.later.ns)) return "it is damaged";
    p->pid = h.pid;
    p->rank = static_cast<int>(h.rank_plus_one & 0x7FFFFFFF) - 1;
    p->program = text_of(h.program, sizeof h.program);
    p->host = text_of(h.host, sizeof h.host);
    const uint64_t written = h.written.load();
    const uint64_t there = std::min(written, h.capacity);
    p->lost = written - there;
    // Its length first: no time and no memory for what a header only claims.
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return std::strerror(errno);
    if (static_cast<uint64_t>(status.st_size) < kEventsAt + there * sizeof(Event)) return "it is too short";
    std::vector<Event> events(std::min(there, kEventsAtOnce));
    for (uint64_t first = 0; first < there; first += events.size()) {
        const std::span now(events.data(), std::min<uint64_t>(there - first, events.size()));
        if (!read_at(fd, kEventsAt + first * sizeof(Event), std::as_writable_bytes(now))) return "it is too short";
        add_events(now, p);
    }
    (*clocks)[p->host].learn(h);
    std::stable_sort(p->events.begin(), p->events.end(), [](const Seen& a, const Seen& b) { return a.ns < b.ns; });
    return "";
}

}  // namespace

const char* name_of(What what) { return what < What::count_ ? kNames[static_cast<size_t>(what)] : "?"; }

std::string Process::name() const {
    return rank >= 0 ? fmt::format("rank {}", rank) : fmt::format("{} {}", pid, program);
}

std::vector<Process> read_folder(const std::string& folder, std::vector<std::string>* problems) {
    std::error_code error;
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.path().extension() == kSuffix) paths.push_back(entry.path());
    if (error) throw tools::ToolError(folder + ": " + error.message());
    std::sort(paths.begin(), paths.end());
    std::vector<Process> all;
    Clocks clocks;
    for (const std::string& path : paths) {
        Process p;
        if (std::string why = read_file(path, &p, &clocks); !why.empty())
            problems->push_back(path + ": " + why);
        else
            all.push_back(std::move(p));
    }
    if (all.empty())
        throw tools::ToolError(folder + ": no record of a process is there (a program that calls no VIPL leaves none)");
    std::stable_sort(all.begin(), all.end(), [](const Process& a, const Process& b) { return a.rank < b.rank; });
    int64_t first = INT64_MAX;
    for (Process& p : all) {
        for (Seen& e : p.events) e.ns = clocks[p.host].ns(e.ns);
        if (!p.events.empty()) first = std::min(first, p.events.front().ns);
    }
    for (Process& p : all) {
        p.zero_ns = first;
        for (Seen& e : p.events) e.ns -= first;
    }
    return all;
}

}  // namespace viaduct::viptrace
