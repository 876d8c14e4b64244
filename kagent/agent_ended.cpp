// SPDX-License-Identifier: BSD-2-Clause
// What the agent keeps of processes that have ended, and what it tells tools of it; see agent.hpp and ended.hpp.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/stats/reader.hpp"
#include "kagent/agent.hpp"
#include "kagent/sealed_file.hpp"

namespace viaduct::kagent {

namespace {
constexpr uint64_t kFilesLeft = 64;  // to the user, or none is held for its statistics
constexpr size_t kMostInOneAnswer = kMaxMessage / sizeof(EndedEntry);
static_assert(EndedProcesses::kMost <= kMostInOneAnswer);
}  // namespace

void Agent::show_stats(Session& s, Mail& mail) {
    if (mail.descriptors.size() != 1 || mail.payload.size() > sizeof(Empty)) {
        ++refused_;
        refuse(s, mail.header.ticket, Status::invalid, "one descriptor belongs to it, and no payload");
        return;
    }
    if (!s.stats.valid()) {
        // Files are for connections first.
        const uint64_t enough = std::max(kFilesLeft, limits_.limit(Quota::descriptors) / 2);
        if (limits_.left(s.credentials.uid, Quota::descriptors) < enough ||
            !limits_.take(s.credentials.uid, Quota::descriptors, 1)) {
            refuse(s, mail.header.ticket, Status::out_of_resources, "the agent has too few files left for this user");
            return;
        }
        s.stats = std::move(mail.descriptors.front());
        mail.descriptors.clear();
    }
    answer(s, mail.header.ticket, Type::kDone);
}

// The session ends.
void Agent::keep_failures(Session& s, int64_t now) {
    if (!s.stats.valid()) return;
    if (ended_.keeps_any()) ended_.keep(s.credentials, stats::failures_part_of(s.stats.get()), now);
    std::vector<Fd> files;
    files.push_back(std::move(s.stats));
    outbox_.discard(s.credentials.uid, std::move(files));
    limits_.give(s.credentials.uid, Quota::descriptors, 1);
}

void Agent::list_ended(Session& s, const Mail& mail, int64_t now) {
    EndedQuery query;
    if (!mail.get(&query)) {
        ++refused_;
        refuse(s, mail.header.ticket, Status::invalid, "not a question for ended processes");
        return;
    }
    ended_.expire(now);
    const bool all_users = s.credentials.known && s.credentials.uid == 0;
    const auto found = ended_.find([&](const Ended& e) {
        const bool may_see = all_users || (s.credentials.known && e.known && s.credentials.uid == e.uid);
        return may_see && (query.pid == 0 || query.pid == e.pid);
    });
    if (found.empty()) {
        answer(s, mail.header.ticket, Type::kDone);
        return;
    }
    std::vector<std::span<const std::byte>> parts;
    Mail out(Type::kEndedList, mail.header.ticket);
    out.payload.resize(found.size() * sizeof(EndedEntry));
    for (size_t i = 0; i < found.size(); ++i) {
        const Ended& e = *found[i];
        parts.emplace_back(e.bytes);
        const EndedEntry entry{e.pid, e.uid, static_cast<uint32_t>((now - e.at) / 1'000'000),
                               static_cast<uint32_t>(e.bytes.size())};
        std::memcpy(out.payload.data() + i * sizeof entry, &entry, sizeof entry);
    }
    Fd file;
    if (limits_.allows(s.credentials.uid, Quota::descriptors, 1)) file = sealed_file("viaduct-ended", parts);
    if (!file.valid()) {
        refuse(s, mail.header.ticket, Status::out_of_resources,
               "the agent has no file or no memory left for this user");
        return;
    }
    out.descriptors.push_back(std::move(file));
    deliver(s, std::move(out));
}

}  // namespace viaduct::kagent
