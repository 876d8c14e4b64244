// SPDX-License-Identifier: BSD-2-Clause
// Processes that are recorded by order of a tool (viptrace attach); see agent.hpp. The agent hands the memory on and
// keeps nothing of it. A tool that could open the statistics segment of a process has the kernel's permission to look
// into that process.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "kagent/agent.hpp"

namespace viaduct::kagent {

namespace {

bool same_file(const Fd& a, const Fd& b) {
    struct stat x {
    }, y{};
    return a.valid() && b.valid() && ::fstat(a.get(), &x) == 0 && ::fstat(b.get(), &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

}  // namespace

void Agent::trace(Session& s, Mail& mail) {
    const uint32_t ticket = mail.header.ticket;
    if (mail.descriptors.size() != 2 || mail.payload.size() > sizeof(Empty)) {
        ++refused_;
        refuse(s, ticket, Status::invalid, "two descriptors belong to it, and no payload");
        return;
    }
    const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
        return !entry.second.dropped && same_file(entry.second.stats, mail.descriptors[0]);
    });
    if (found == sessions_.end()) {
        refuse(s, ticket, Status::no_match, "the process is not one of this agent");
        return;
    }
    Session& process = found->second;
    if (!may_see(s, process)) {
        refuse(s, ticket, Status::denied, "the process is another user's");
        return;
    }
    if (s.records != 0 || process.recorded_by != 0) {
        refuse(s, ticket, Status::not_done,
               s.records != 0 ? "this session records a process already" : "the process is recorded already");
        return;
    }
    // The tool's own descriptor stays in its mail, which is discarded later: an order that cannot be sent frees no
    // memory on this thread.
    Fd memory(::fcntl(mail.descriptors[1].get(), F_DUPFD_CLOEXEC, 3));
    if (!memory.valid()) {
        refuse(s, ticket, Status::out_of_resources, "the agent has no descriptors left");
        return;
    }
    Mail order(Type::kTraceWanted, 0);
    order.descriptors.push_back(std::move(memory));
    s.records = process.id;
    process.recorded_by = s.id;
    answer(s, ticket, Type::kDone);
    deliver(process, std::move(order));
}

// The session ends.
void Agent::end_trace(Session& s) {
    for (uint64_t Session::*link : {&Session::records, &Session::recorded_by}) {
        const auto other = sessions_.find(std::exchange(s.*link, 0));
        if (other == sessions_.end()) continue;
        (link == &Session::records ? other->second.recorded_by : other->second.records) = 0;
        answer(other->second, 0, Type::kTraceOver);
    }
}

}  // namespace viaduct::kagent
