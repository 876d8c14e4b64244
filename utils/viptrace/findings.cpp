// SPDX-License-Identifier: BSD-2-Clause
#include "utils/viptrace/findings.hpp"

#include <fmt/format.h>
#include <vipl.h>

#include <algorithm>
#include <bit>
#include <map>

namespace viaduct::viptrace {

namespace {

bool waits(What what) {
    return what == What::send_wait || what == What::recv_wait || what == What::cq_wait || what == What::connect_wait ||
           what == What::connect_request || what == What::peer_wait;
}

size_t time_class(int64_t ns) {
    const auto width = static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(ns, 1))));
    return static_cast<size_t>(std::clamp(width - 8, 0, static_cast<int>(kTimeClasses) - 1));
}

bool is_error(const Seen& e) {
    if (e.what == What::async_error) return true;
    // What was posted and not used comes back flushed, and a queue may be empty: neither is a fault.
    if (e.result == VIP_DESCRIPTOR_ERROR && (e.value == 0 || (e.high() & VIP_STATUS_DESC_FLUSHED_ERROR) != 0))
        return false;
    return e.phase != Phase::begin && e.result != VIP_SUCCESS && e.result != VIP_NOT_DONE && e.result != VIP_TIMEOUT &&
           e.result != VIP_NO_MATCH;
}

std::vector<SizeClass> sizes_of(const Matched& m) {
    std::map<int, std::vector<double>> times;
    std::map<int, SizeClass> classes;
    for (const Message& message : m.messages) {
        const auto key = static_cast<int>(std::bit_width(std::max(message.bytes, 1u) - 1));
        SizeClass& c = classes[key];
        c.least = key == 0 ? 0 : (1u << (key - 1)) + 1;
        c.most = key >= 32 ? UINT32_MAX : 1u << key;
        ++c.histogram[time_class(message.ns)];
        times[key].push_back(static_cast<double>(message.ns));
    }
    std::vector<SizeClass> out;
    for (auto& [key, c] : classes) {
        c.ns = tools::summarise(std::move(times[key]));
        out.push_back(c);
    }
    return out;
}

}  // namespace

int peer_of(const std::vector<Process>& all, const Matched& m, const Call& c) {
    const Seen& e = all[c.process].events[c.begin];
    if (e.what != What::send_wait && e.what != What::recv_wait) return -1;
    const int link = m.link_of(c.process, e.object, c.begin);
    const int peer = link < 0 ? -1 : m.links[static_cast<size_t>(link)].peer;
    return peer < 0 ? -1 : static_cast<int>(m.links[static_cast<size_t>(peer)].process);
}

Findings find(const std::vector<Process>& all, const Matched& m) {
    Findings f;
    f.sizes = sizes_of(m);
    std::map<std::pair<size_t, int>, Waits> by_pair;
    for (const Call& c : m.calls) {
        if (!waits(all[c.process].events[c.begin].what)) continue;
        const int peer = peer_of(all, m, c);
        Waits& w = by_pair[{c.process, peer}];
        w.process = c.process;
        w.peer = peer;
        ++w.count;
        w.total_ns += c.ns;
        w.longest_ns = std::max(w.longest_ns, c.ns);
        f.longest.push_back(c);
    }
    for (const auto& [key, w] : by_pair) f.waits.push_back(w);
    std::stable_sort(f.waits.begin(), f.waits.end(),
                     [](const Waits& a, const Waits& b) { return a.total_ns > b.total_ns; });
    std::stable_sort(f.longest.begin(), f.longest.end(), [](const Call& a, const Call& b) { return a.ns > b.ns; });
    if (f.longest.size() > kLongestWaits) f.longest.resize(kLongestWaits);
    for (const Process& p : all)
        f.errors += static_cast<size_t>(std::count_if(p.events.begin(), p.events.end(), is_error));
    return f;
}

std::string time_text(double ns) {
    if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
    if (ns < 1e6) return fmt::format("{:.1f} µs", ns / 1e3);
    if (ns < 1e9) return fmt::format("{:.1f} ms", ns / 1e6);
    return fmt::format("{:.2f} s", ns / 1e9);
}

std::string size_text(const SizeClass& c) {
    if (c.most == 1) return "0 to 1";
    return c.least == c.most ? fmt::format("{}", c.most) : fmt::format("{} to {}", c.least, c.most);
}

std::string text(const std::vector<Process>& all, const Matched& m, const Findings& f) {
    std::string out;
    for (const Process& p : all)
        out += fmt::format("{}  process {} {} on {}: {} events{}\n", p.name(), p.pid, p.program, p.host,
                           p.events.size(), p.lost == 0 ? "" : fmt::format(", {} older ones lost", p.lost));
    const size_t paired =
        static_cast<size_t>(std::count_if(m.links.begin(), m.links.end(), [](const Link& l) { return l.peer >= 0; }));
    out += fmt::format("{} ends of connections, {} with the other end in the record; {} errors\n", m.links.size(),
                       paired, f.errors);
    if (!f.sizes.empty())
        out += fmt::format("\n{:>22} {:>9} {:>10} {:>10} {:>10} {:>10}\n", "MESSAGES OF BYTES", "COUNT", "LEAST",
                           "MEDIAN", "99 %", "MOST");
    for (const SizeClass& c : f.sizes)
        out += fmt::format("{:>22} {:>9} {:>10} {:>10} {:>10} {:>10}\n", size_text(c), c.ns.count,
                           time_text(c.ns.least), time_text(c.ns.typical), time_text(c.ns.p99), time_text(c.ns.most));
    if (!f.waits.empty())
        out += fmt::format("\n{:<22} {:<22} {:>9} {:>10} {:>10}\n", "WAITS", "FOR", "TIMES", "TOTAL", "LONGEST");
    for (const Waits& w : f.waits)
        out += fmt::format("{:<22} {:<22} {:>9} {:>10} {:>10}\n", all[w.process].name(),
                           w.peer < 0 ? "-" : all[static_cast<size_t>(w.peer)].name(), w.count,
                           time_text(static_cast<double>(w.total_ns)), time_text(static_cast<double>(w.longest_ns)));
    if (!f.longest.empty()) out += "\nLONGEST WAITS\n";
    for (const Call& c : f.longest) {
        const Seen& e = all[c.process].events[c.begin];
        const int peer = peer_of(all, m, c);
        out +=
            fmt::format("{:>10}  {} by {} thread {}, at {}{}{}\n", time_text(static_cast<double>(c.ns)),
                        name_of(e.what), all[c.process].name(), e.thread, time_text(static_cast<double>(e.ns)),
                        peer < 0 ? "" : ", for " + all[static_cast<size_t>(peer)].name(), c.ended ? "" : ", not ended");
    }
    return out;
}

}  // namespace viaduct::viptrace
