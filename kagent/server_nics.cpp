// SPDX-License-Identifier: BSD-2-Clause
// The host's interfaces and the NICs of providers, as they come, change and go. Part of Server.
#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "kagent/server.hpp"

namespace viaduct::kagent {

namespace {
constexpr int64_t kLinkPause = 20 * kMillisecond;  // interfaces change in bursts: one look for all of it
}

// Before the first look at NICs and interfaces: no change is missed.
void Server::watch_links() {
    why_no_reports_ = links_.open();
    if (why_no_reports_.empty()) watch(links_.fd(), EPOLLIN, static_cast<uint64_t>(Watch::links));
}

void Server::note_report(int64_t now) {
    links_.drain();
    links_due_ = std::min(links_due_, now + kLinkPause);
    inquiry_times_.changed(now);
}

void Server::look_at_links(int64_t now) {
    if (now < links_due_) return;
    links_due_ = kNever;
    agent_.note_links(Devices::look());
}

// ---- the NICs of providers

void Server::list_nics() {
    ask_providers(true);
    inquiries_.await(now_ns() + limit_ns(TimeLimit::agent_discovery));
    take_answers(now_ns());
    agent_.note_links(Devices::look());
    idle_since_ = now_ns();
    if (why_no_reports_.empty()) return;
    // Where no NIC depends on an interface, the program that has started the agent needs no warning.
    spdlog::log(agent_.depends_on_links() ? spdlog::level::warn : spdlog::level::info,
                "{}: NICs that come or go, and interfaces that go down, will not be reported", why_no_reports_);
}

// False: no thread can be started for some provider, which was not asked.
bool Server::ask_providers(bool here_where_no_thread_starts) {
    bool all = true;
    for (size_t i = 0; i < providers_.loaded().size(); ++i) {
        const Providers::Loaded& from = providers_.loaded()[i];
        if (inquiries_.ask(i, *from.provider, *from.settings)) continue;
        if (here_where_no_thread_starts) {
            NicAnswer answer = ask_for_nics(*from.provider, *from.settings);
            inquiry_times_.answered(i, answer.may_succeed_later, now_ns());
            agent_.note_nics(i, std::move(answer));
        } else {
            all = false;
        }
    }
    if (!watches_inquiries_ && inquiries_.fd() >= 0) {
        watch(inquiries_.fd(), EPOLLIN, static_cast<uint64_t>(Watch::inquiries));
        watches_inquiries_ = true;
    }
    if (!all && asks_all_)
        spdlog::warn("no thread or descriptor is left to ask each provider for its NICs: they are asked later");
    asks_all_ = all;
    return all;
}

NicChanges Server::take_answers(int64_t now) {
    NicChanges all;
    nics_answered_ = false;
    for (NicInquiries::Answer& answer : inquiries_.take()) {
        inquiry_times_.answered(answer.provider, answer.nics.may_succeed_later, now);
        all.add(agent_.note_nics(answer.provider, std::move(answer.nics)));
    }
    if (!all.vanished.empty()) inquiry_times_.vanished(now);
    return all;
}

void Server::look_at_nics(int64_t now) {
    if (nics_answered_) {
        const NicChanges changes = take_answers(now);
        agent_.note_links(Devices::look());
        for (const std::string& name : changes.appeared) spdlog::info("NIC {} has appeared", name);
        for (const std::string& name : changes.changed) spdlog::info("NIC {} has changed", name);
        for (const std::string& name : changes.vanished) spdlog::info("NIC {} has vanished", name);
    }
    if (inquiry_times_.take(now)) inquiry_times_.asked(ask_providers(false), now);
}

}  // namespace viaduct::kagent
