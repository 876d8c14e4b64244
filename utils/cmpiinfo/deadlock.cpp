// SPDX-License-Identifier: BSD-2-Clause
// Which ranks cannot go on. A rank can when it waits for nothing, when all that it waits for can, or, where one is
// enough, one of them. What is left when nothing more follows from that is stuck; among the stuck ones a circle is
// named. A rank that is not seen (another host, another user) may always go on, and so may a program that asks by
// itself, which may do something else at any time. So no deadlock is told that is none.
#include <algorithm>
#include <map>
#include <set>

#include "utils/cmpiinfo/waits.hpp"

namespace viaduct::cmpiinfo {
namespace {

using Waits = std::map<int, const RankView*>;

bool may_go_on(const WaitView& wait, const std::set<int>& stuck) {
    if (wait.asks != 0) return true;
    if (wait.peers.empty() || wait.more_peers) return true;  // for what is not told
    const auto goes_on = [&](int peer) { return !stuck.contains(peer); };
    return wait.any ? std::any_of(wait.peers.begin(), wait.peers.end(), goes_on)
                    : std::all_of(wait.peers.begin(), wait.peers.end(), goes_on);
}

// Threads of a rank wait for themselves; while one goes on, it may do what others wait for. So may one that computes.
bool may_go_on(const RankView& rank, const std::set<int>& stuck) {
    return rank.waits.size() < rank.threads ||
           std::any_of(rank.waits.begin(), rank.waits.end(),
                       [&](const WaitView& wait) { return may_go_on(wait, stuck); });
}

int next_stuck(const RankView& rank, const std::set<int>& stuck) {
    for (const WaitView& wait : rank.waits)
        for (const int peer : wait.peers)
            if (stuck.contains(peer)) return peer;
    return -1;
}

}  // namespace

void find_deadlock(JobWaits* job) {
    Waits ranks;
    std::set<int> stuck;
    for (const RankView& rank : job->ranks) {
        ranks[rank.rank] = &rank;
        if (!rank.waits.empty() && rank.looks) stuck.insert(rank.rank);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [number, rank] : ranks) {
            if (!stuck.contains(number) || !may_go_on(*rank, stuck)) continue;
            stuck.erase(number);
            changed = true;
        }
    }
    job->stuck.assign(stuck.begin(), stuck.end());
    job->cycle.clear();
    if (stuck.empty()) return;
    // Each of them waits for a stuck one, so following them comes round.
    std::vector<int> path;
    for (int at = *stuck.begin();;) {
        const auto seen = std::find(path.begin(), path.end(), at);
        if (seen != path.end()) {
            job->cycle.assign(seen, path.end());
            return;
        }
        path.push_back(at);
        at = next_stuck(*ranks[at], stuck);
        if (at < 0) return;
    }
}

}  // namespace viaduct::cmpiinfo
