// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipstat/ended.hpp"

#include <algorithm>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"

namespace viaduct::vipstat {

namespace {


LinkOptions as_tool() {
    LinkOptions options;
    options.start_agent = false;
    options.hello_flags = kagent::kHelloTool;
    return options;
}

std::vector<kagent::EndedEntry> entries_of(const Mail& answer) {
    if (answer.type() != kagent::Type::kEndedList || answer.descriptors.size() != 1) return {};
    std::vector<kagent::EndedEntry> entries(answer.payload.size() / sizeof(kagent::EndedEntry));
    std::memcpy(entries.data(), answer.payload.data(), entries.size() * sizeof(kagent::EndedEntry));
    return entries;
}

// Its connection to the agent has ended, but the process has not: it has closed descriptors that it does not know.
bool still_runs(const stats::Picture& ended) {
    stats::Picture now;
    return stats::look_at(ended.pid, &now) == stats::Look::ok && now.started == ended.started;
}

}  // namespace

EndedLook::EndedLook() : link_(as_tool()) {}

std::vector<ProcessView> EndedLook::look(const std::vector<pid_t>& pids, Watch& watch) {
    Mail answer;
    // An agent without this question is older.
    if (link_.call(Mail::of(kagent::Type::kListEnded, kagent::EndedQuery{}), &answer,
                   now_ns() + limit_ns(TimeLimit::tool_ended)) != Status::ok)
        return {};
    std::vector<ProcessView> out;
    size_t at = 0;
    for (const kagent::EndedEntry& entry : entries_of(answer)) {
        stats::Picture picture;
        picture.pid = entry.pid;
        const stats::Look seen = stats::look_into(answer.descriptors[0].get(), at, &picture);
        at += entry.bytes;
        const bool wanted = pids.empty() || std::find(pids.begin(), pids.end(), entry.pid) != pids.end();
        if (seen != stats::Look::ok || !wanted || still_runs(picture)) continue;
        ProcessView view = watch.view(picture);
        view.ended_s = entry.ago_ms / 1000.0;
        view.running_s = std::max(0.0, view.running_s - view.ended_s);
        out.push_back(std::move(view));
    }
    return out;
}

}  // namespace viaduct::vipstat
