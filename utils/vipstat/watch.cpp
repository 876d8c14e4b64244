// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipstat/watch.hpp"

#include <vipl.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/stats/process_stats.hpp"
#include "core/text/code_names.hpp"

namespace viaduct::vipstat {

namespace {

using stats::number_of;
using stats::Values;

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string state_text(uint64_t state) {
    static constexpr std::array kNames = {"idle", "connected", "connecting", "error"};
    return state < kNames.size() ? kNames[state] : "?";
}

std::string level_text(uint64_t level) {
    return level == VIP_SERVICE_UNRELIABLE           ? "unreliable"
           : level == VIP_SERVICE_RELIABLE_DELIVERY  ? "delivery"
           : level == VIP_SERVICE_RELIABLE_RECEPTION ? "reception"
                                                     : "?";
}

std::string error_text(uint64_t code_and_one) {
    if (code_and_one == 0) return "";
    const char* name = name_of_error(static_cast<uint32_t>(code_and_one - 1)).name;
    return name != nullptr ? name + std::strlen("VIP_ERROR_") : "?";
}

template <class Table>
std::vector<std::pair<std::string, uint64_t>> counters_of(const Values& values, const Table& table) {
    std::vector<std::pair<std::string, uint64_t>> out;
    for (const CounterInfo& info : table) {
        if (values.contains(info.name)) out.emplace_back(info.name, number_of(values, info.name));
    }
    return out;
}

}  // namespace

std::vector<FailureView> failures_of(const stats::Picture& picture) {
    std::vector<FailureView> out;
    for (const stats::SeenFailure& f : picture.failures)
        out.push_back({std::max(0.0, seconds(picture.taken - f.at)), f.object, f.times, f.text});
    return out;
}

QueueView Watch::queue(const Values& vi, const std::string& prefix, int64_t now, const Seen* before,
                       uint32_t completed_before, int64_t* since) {
    QueueView q;
    const auto posted = static_cast<uint32_t>(number_of(vi, prefix + "posted"));
    const auto completed = static_cast<uint32_t>(number_of(vi, prefix + "completed"));
    const auto fetched = static_cast<uint32_t>(number_of(vi, prefix + "fetched"));
    q.posted = posted;
    q.completed = completed;
    // The positions are read while they change: a difference below zero is an artefact of that.
    q.outstanding = static_cast<uint32_t>(std::max<int32_t>(static_cast<int32_t>(posted - completed), 0));
    q.unfetched = static_cast<uint32_t>(std::max<int32_t>(static_cast<int32_t>(completed - fetched), 0));
    q.oldest = completed;
    q.asleep = number_of(vi, prefix + "sleepers") != 0;
    if (before != nullptr && now > before->at)
        q.per_second = static_cast<double>(completed - completed_before) / seconds(now - before->at);
    if (q.outstanding == 0) {
        *since = 0;
        return q;
    }
    // What the process itself has noted, or how long we have seen it stand still.
    if (before == nullptr || completed != completed_before || *since == 0) *since = now;
    const auto noted = static_cast<int64_t>(number_of(vi, prefix + "waited_since"));
    if (noted != 0 && static_cast<uint32_t>(number_of(vi, prefix + "waited_for")) == completed)
        q.waiting_s = std::max(0.0, seconds(now - noted));
    if (before != nullptr && now != *since) q.waiting_s = std::max(q.waiting_s, seconds(now - *since));
    return q;
}

ProcessView Watch::view(const stats::Picture& picture) {
    ProcessView p;
    p.pid = picture.pid;
    p.program = picture.program;
    p.library = picture.library;
    p.running_s = seconds(picture.taken - picture.started);
    p.counters = counters_of(picture.process, stats::kProcessCounters);
    for (const Values& vi : picture.vis) {
        ViView v;
        v.handle = number_of(vi, "handle");
        v.state = state_text(number_of(vi, "state"));
        v.level = level_text(number_of(vi, "reliability"));
        v.nic = stats::text_of(vi, "nic");
        v.local = stats::text_of(vi, "local");
        v.peer = stats::text_of(vi, "peer");
        v.credits = number_of(vi, "credits");
        v.last_error = error_text(number_of(vi, "last_error"));
        const auto changed = static_cast<int64_t>(number_of(vi, "changed_at"));
        v.state_s = std::max(0.0, seconds(picture.taken - changed));
        const auto failed = static_cast<int64_t>(number_of(vi, "last_error_at"));
        if (failed != 0) v.last_error_s = std::max(0.0, seconds(picture.taken - failed));
        v.counters = counters_of(vi, kViCounters);

        const auto key = std::make_pair(picture.pid, v.handle);
        const auto found = seen_.find(key);
        const Seen* before = found == seen_.end() ? nullptr : &found->second;
        Seen now = before != nullptr ? *before : Seen{};
        v.send = queue(vi, "send_", picture.taken, before, now.send_completed, &now.send_since);
        v.recv = queue(vi, "recv_", picture.taken, before, now.recv_completed, &now.recv_since);
        now.send_completed = static_cast<uint32_t>(v.send.completed);
        now.recv_completed = static_cast<uint32_t>(v.recv.completed);
        now.at = picture.taken;
        seen_[key] = now;
        p.vis.push_back(std::move(v));
    }
    p.failures = failures_of(picture);
    std::erase_if(seen_, [&](const auto& entry) {
        return entry.first.first == picture.pid && entry.second.at != picture.taken;
    });
    return p;
}

}  // namespace viaduct::vipstat
