// SPDX-License-Identifier: BSD-2-Clause
// See Standstill in waits.hpp.
#include <utility>

#include "utils/cmpiinfo/waits.hpp"

namespace viaduct::cmpiinfo {
namespace {

constexpr int kRounds = 2;
// Of each rank in a round: the first one may have begun before the round, the second one is whole.
constexpr uint32_t kPasses = 2;
// A rank that has not made them by then lies without a processor: the others may be stuck without it.
constexpr int kMostWaits = 10;

}  // namespace

void Standstill::begin(std::vector<Standing> standing, std::vector<uint32_t> idle_passes) {
    standing_ = std::move(standing);
    idle_passes_ = std::move(idle_passes);
    looks_ = 0;
}

bool Standstill::proven_by(JobWaits* job) {
    for (RankView& rank : job->ranks) rank.looks = !without_processor_.contains(rank.pid);
    find_deadlock(job);
    if (job->stuck.empty()) return true;

    const std::set<int> stuck(job->stuck.begin(), job->stuck.end());
    std::vector<Standing> now;
    std::vector<uint32_t> idle_passes;
    for (const RankView& rank : job->ranks) {
        if (!stuck.contains(rank.rank)) continue;
        Standing one{rank.pid, rank.moving_passes, {}};
        for (const WaitView& wait : rank.waits) one.places.push_back(wait.place);
        now.push_back(std::move(one));
        idle_passes.push_back(rank.idle_passes);
    }
    if (now != standing_) {
        begin(std::move(now), std::move(idle_passes));
        rounds_ = 0;
        return false;
    }
    if (rounds_ == kRounds) return true;
    std::set<pid_t> late;
    for (size_t i = 0; i < now.size(); i++)
        if (idle_passes[i] - idle_passes_[i] < kPasses) late.insert(now[i].pid);
    if (late.empty()) {
        rounds_++;
        begin(std::move(now), std::move(idle_passes));
    } else if (++looks_ == kMostWaits) {
        without_processor_.merge(late);
        rounds_ = 0;
        looks_ = 0;
        return proven_by(job);
    }
    return rounds_ == kRounds;
}

}  // namespace viaduct::cmpiinfo
