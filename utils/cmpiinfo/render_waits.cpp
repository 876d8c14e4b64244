// SPDX-License-Identifier: BSD-2-Clause
// Waits as a table and as JSON: the same facts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "utils/cmpiinfo/waits.hpp"

namespace viaduct::cmpiinfo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kAnyTag = -1;

std::string text_of_peers(const WaitView& wait) {
    if (wait.peers.empty()) return "-";
    std::string text;
    for (const int peer : wait.peers)
        text += (text.empty() ? "" : wait.any ? "|" : ",") +
                (peer < 0 ? std::string("other job") : std::to_string(peer));
    return text + (wait.more_peers ? "..." : "");
}

std::string text_of_tag(int tag) { return tag < kAnyTag ? "-" : tag == kAnyTag ? "any" : std::to_string(tag); }

std::string text_of_what(const WaitView& wait) { return wait.asks == 0 ? wait.what : wait.what + ", asks"; }

std::string filled(const std::string& text) { return text.empty() ? "-" : text; }

std::string sentence_of(const JobWaits& job, int rank, int next) {
    for (const RankView& one : job.ranks)
        if (one.rank == rank && !one.waits.empty()) {
            const WaitView& wait = one.waits.front();
            const std::string with = wait.tag < kAnyTag ? "" : ", tag " + text_of_tag(wait.tag);
            return fmt::format("  rank {} ({} in {}{}) waits for rank {}\n", rank, wait.what, filled(wait.communicator),
                               with, next);
        }
    return {};
}

}  // namespace

std::string text_of(const std::vector<JobWaits>& jobs) {
    std::string text;
    for (const JobWaits& job : jobs) {
        text += fmt::format("{}job {:08x}: {} of {} ranks are seen here\n", text.empty() ? "" : "\n", job.number,
                            job.ranks.size(), job.size);
        text += fmt::format("{:>5} {:>8}  {:<16}{:<18}{:>9}  {:<12}{:>8}  {:<20}{}\n", "rank", "pid", "program",
                            "waits in", "seconds", "for rank", "tag", "communicator", "by");
        for (const RankView& rank : job.ranks) {
            if (rank.waits.empty())
                text += fmt::format("{:>5} {:>8}  {:<16}{:<18}\n", rank.rank, rank.pid, rank.program, "nothing");
            for (const WaitView& wait : rank.waits)
                text += fmt::format("{:>5} {:>8}  {:<16}{:<18}{:>9.1f}  {:<12}{:>8}  {:<20}{}\n", rank.rank, rank.pid,
                                    rank.program, text_of_what(wait), wait.seconds, text_of_peers(wait),
                                    text_of_tag(wait.tag), filled(wait.communicator), filled(wait.transport));
        }
        if (job.stuck.empty()) continue;
        text += fmt::format("DEADLOCK: {} {} wait for each other and cannot go on\n", job.stuck.size(),
                            job.stuck.size() == 1 ? "rank" : "ranks");
        for (size_t i = 0; i < job.cycle.size(); i++)
            text += sentence_of(job, job.cycle[i], job.cycle[(i + 1) % job.cycle.size()]);
    }
    return text;
}

std::string json_of(const std::vector<JobWaits>& jobs) {
    Json all = {{"schema", "viaduct/cmpiinfo-job/1"}, {"version", 1}, {"jobs", Json::array()}};
    for (const JobWaits& job : jobs) {
        Json entry = {{"job", fmt::format("{:08x}", job.number)}, {"size", job.size}, {"ranks", Json::array()}};
        for (const RankView& rank : job.ranks) {
            Json one = {{"rank", rank.rank}, {"pid", rank.pid}, {"program", rank.program}, {"waits", Json::array()}};
            for (const WaitView& wait : rank.waits)
                one["waits"].push_back({{"what", wait.what},
                                        {"seconds", wait.seconds},
                                        {"peers", wait.peers},
                                        {"one_is_enough", wait.any},
                                        {"more_peers", wait.more_peers},
                                        {"tag", wait.tag < kAnyTag ? Json() : Json(wait.tag)},
                                        {"bytes", wait.bytes},
                                        {"communicator", wait.communicator},
                                        {"transport", wait.transport},
                                        {"asks", wait.asks != 0}});
            entry["ranks"].push_back(one);
        }
        entry["deadlock"] = {{"stuck", job.stuck}, {"cycle", job.cycle}};
        all["jobs"].push_back(entry);
    }
    return all.dump(2) + "\n";
}

}  // namespace viaduct::cmpiinfo
