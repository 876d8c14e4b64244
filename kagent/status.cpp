// SPDX-License-Identifier: BSD-2-Clause
// The state of the agent, as JSON for tools. Part of Agent; the only file here that includes the JSON library.
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "core/config/paths.hpp"
#include "core/text/end_address.hpp"
#include "kagent/agent.hpp"
#include "kagent/sealed_file.hpp"

namespace viaduct::kagent {

namespace {

using nlohmann::json;

json context_json(const Context& c, const NicInfo& nic) {
    return {{"nic", nic.name},
            {"device", c.device},
            {"lease",
             {{"bytes", c.held[kLeaseBytes]},
              {"regions", c.held[kLeaseRegions]},
              {"vis", c.held[kLeaseVis]},
              {"cqs", c.held[kLeaseCqs]}}}};
}

json quotas_json(const Limits& limits, uid_t user) {
    json out;
    for (uint32_t q = 0; q < static_cast<uint32_t>(Quota::count); ++q) {
        const auto quota = static_cast<Quota>(q);
        out[quota_name(quota)] = {{"used", limits.used(user, quota)}, {"limit", limits.limit(quota)}};
    }
    return out;
}

json links_json(const Devices& devices) {
    json out = json::array();
    for (const LinkInfo& l : devices.links) {
        out.push_back({{"name", l.name},
                       {"kind", l.kind},
                       {"driver", l.driver},
                       {"address", l.address},
                       {"mtu", l.mtu},
                       {"up", l.up},
                       {"running", l.running},
                       {"loopback", l.loopback}});
    }
    return out;
}

// Text from elsewhere may be no UTF-8: it is shown with replacement characters, never thrown at.
std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

Fd sealed_text(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return sealed_file("viaduct-status", std::span(&bytes, 1));
}

}  // namespace

std::string Agent::status_text(const Session& viewer, int64_t now, bool with_sessions) {
    json out;
    out["version"] = kVersion;
    out["pid"] = ::getpid();
    out["protocol"] = {{"min", kVersionMin}, {"max", kVersionMax}};
    out["configuration"] = settings_.configuration;
    out["linger_ms"] = settings_.linger_ms;
    json nics = json::array();
    for (size_t i = 0; i < providers_.nics().size(); ++i) {
        const NicInfo& n = providers_.nics()[i];
        nics.push_back({{"name", n.name},
                        {"provider", n.provider},
                        {"address", text_of_address(n.address)},
                        {"link_up", n.link_up != 0},
                        {"default", default_nic(naming()) == i}});
    }
    out["nics"] = std::move(nics);
    json rejected = json::array();
    for (const RejectedNic& r : providers_.rejected()) {
        rejected.push_back(
            {{"provider", r.provider}, {"name", r.name}, {"reason", r.reason}, {"cure", r.cure}});
    }
    out["rejected"] = std::move(rejected);
    const auto counts = table_.counts();
    out["connections"] = {{"made", table_.connections_made()},    {"waits", counts.waits},
                          {"requests", counts.held + counts.met}, {"handshakes", counts.accepted},
                          {"peer_requests", counts.peers},        {"abandoned", counts.abandoned}};
    out["quotas"] = quotas_json(limits_, viewer.credentials.uid);
    out["malformed_messages"] = refused_;
    size_t seen = 0;
    json sessions = json::array();
    for (const auto& [id, s] : sessions_) {
        if (!s.greeted || !may_see(viewer, s)) continue;
        ++seen;
        if (!with_sessions) continue;
        json contexts = json::array();
        for (const uint64_t c : registry_.of_session(id)) {
            const Context* context = registry_.find(c);
            contexts.push_back(context_json(*context, providers_.nic(context->nic)));
        }
        sessions.push_back({{"pid", s.credentials.pid},
                            {"uid", s.credentials.uid},
                            {"program", s.program},
                            {"tool", s.tool},
                            {"age_ms", (now - s.since) / 1'000'000},
                            {"names", s.names},
                            {"contexts", std::move(contexts)}});
    }
    out["session_count"] = seen;
    if (with_sessions) {
        json waiters = json::array();
        for (const WaitingEnd& w : table_.waiting()) {
            const auto s = sessions_.find(w.end->party.session);
            if (s == sessions_.end() || !may_see(viewer, s->second)) continue;
            const Context* context = registry_.find(w.end->party.context);
            waiters.push_back({{"nic", context != nullptr ? providers_.nic(context->nic).name : ""},
                               {"at", text_of(w.end->local)},
                               {"for", w.remote != nullptr ? text_of(*w.remote) : ""},
                               {"since_ms", (now - w.end->since) / 1'000'000},
                               {"pid", s->second.credentials.pid},
                               {"uid", s->second.credentials.uid},
                               {"program", s->second.program}});
        }
        out["waiters"] = std::move(waiters);
        const Devices& d = devices(now);
        out["sessions"] = std::move(sessions);
        out["links"] = links_json(d);
        if (!d.error.empty()) out["links_error"] = d.error;
    } else {
        out["complete"] = false;
    }
    return dump(out);
}

// Everything when it fits into one message; else a summary, with everything in a sealed memory file beside
// it.
void Agent::status(Session& s, const Mail& mail, int64_t now) {
    std::string text = status_text(s, now, true);
    Mail out(Type::kStatusText, mail.header.ticket);
    if (text.size() + 1 > kMaxMessage) {
        if (!limits_.allows(s.credentials.uid, Quota::descriptors, 1)) {
            refuse(s, mail.header.ticket, Status::out_of_resources,
                   "the agent has no file left for this user: too many that he has asked for are not taken");
            return;
        }
        if (Fd all = sealed_text(text); all.valid()) out.descriptors.push_back(std::move(all));
        text = status_text(s, now, false);
        if (text.size() + 1 > kMaxMessage) text = "{\"complete\":false}";
    }
    out.payload.resize(text.size() + 1);
    std::memcpy(out.payload.data(), text.c_str(), text.size() + 1);
    deliver(s, std::move(out));
}

}  // namespace viaduct::kagent
