// SPDX-License-Identifier: BSD-2-Clause
// Requests about NICs: which there are, opening and closing, leases. Part of Agent.
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/agent/asked_name.hpp"
#include "core/provider/provider_name.hpp"
#include "kagent/agent.hpp"

namespace viaduct::kagent {

namespace {

// The rest of the message's room belongs to the connection segment, the peer's pidfd and a reserve.
constexpr size_t kMaxContextDescriptors = kMaxDescriptors - 3;

template <size_t N>
void fill(char (&field)[N], const std::string& text) {
    std::strncpy(field, text.c_str(), N - 1);
}

// The provider's first reason for a NIC of that name, else, unless only such a reason is wanted, its first reason.
const RejectedNic* find_rejection(const std::vector<RejectedNic>& all, std::string_view provider,
                                  std::string_view which, bool of_that_name_only) {
    const RejectedNic* first = nullptr;
    for (const RejectedNic& r : all) {
        if (r.provider != provider) continue;
        if (!which.empty() && (r.name + r.reason).find(which) != std::string::npos) return &r;
        if (first == nullptr && !of_that_name_only) first = &r;
    }
    return first;
}

}  // namespace

NicChanges Agent::note_nics(size_t provider, NicAnswer nics) {
    return providers_.take(provider, std::move(nics), [this](size_t id) {
        const auto& all = registry_.all();
        return std::any_of(all.begin(), all.end(), [id](const auto& entry) { return entry.second.nic == id; });
    });
}

// Why no NIC goes by that name: the reason of its provider. A name that counts NICs is of the default provider.
std::string Agent::why_no_nic(const NicNaming& named, std::string_view name) const {
    const auto& installed = providers_.provider_names();
    std::string_view provider = provider_named_by(name, installed);
    std::string text = "provider " + std::string(provider) + " offers no NIC " + std::string(name);
    if (provider.empty()) {
        if (!counts_default_nics(named, name) || default_nic(named)) return "no NIC has this name";
        provider = named.default_provider;
        text = "the default provider, " + named.default_provider + ", offers no NIC";
        if (std::find(installed.begin(), installed.end(), provider) == installed.end())
            return "the default provider, " + named.default_provider + ", is not installed";
    }
    const size_t colon = name.find(':');
    const std::string_view which = colon != name.npos ? name.substr(colon + 1) : std::string_view();
    const bool has_vanished = providers_.has_vanished(name);
    const RejectedNic* why = find_rejection(providers_.rejected(), provider, which, has_vanished);
    if (has_vanished) {
        text = "NIC " + std::string(name) + " has vanished: ";
        return text + (why != nullptr ? why->reason : "provider " + std::string(provider) + " does not offer it");
    }
    return why != nullptr ? text + ": " + why->reason : text;
}

NicNaming Agent::naming(std::string_view default_provider) const {
    return {&providers_.nics(), default_provider.empty() ? settings_.default_provider : std::string(default_provider),
            settings_.strict_names, &providers_.other_names(), &providers_.provider_names()};
}

NicEntry Agent::entry_of(const NicNaming& named, size_t position) const {
    NicEntry e;
    e.nic = providers_.nics()[position];
    e.is_default = default_nic(named) == position ? kNicIsDefault : 0;
    return e;
}

void Agent::list_nics(Session& s, const Mail& mail) {
    const auto& nics = providers_.nics();
    const auto& rejected = providers_.rejected();
    size_t left = nics.size() + rejected.size();
    if (left == 0) answer(s, mail.header.ticket, Type::kDone);
    for (size_t i = 0; i < nics.size(); ++i) {
        NicEntry e = entry_of(naming(), i);
        e.more = --left != 0 ? 1 : 0;
        answer(s, mail.header.ticket, Type::kNicEntry, e);
    }
    for (const RejectedNic& r : rejected) {
        RejectionEntry e;
        fill(e.provider, r.provider);
        fill(e.name, r.name);
        fill(e.reason, r.reason);
        fill(e.cure, r.cure);
        e.more = --left != 0 ? 1 : 0;
        answer(s, mail.header.ticket, Type::kRejection, e);
    }
}

void Agent::resolve_name(Session& s, const Mail& mail) {
    NameText body;
    if (!mail.get(&body)) {
        refuse(s, mail.header.ticket, Status::invalid, "malformed name request");
        return;
    }
    bool guessed = false;
    const NicNaming named = naming(asked_provider(body.name));
    const auto nic = find_nic(named, text_of(body.name), &guessed);
    if (!nic) {
        refuse(s, mail.header.ticket, Status::unknown_name, why_no_nic(named, text_of(body.name)));
        return;
    }
    NicEntry entry = entry_of(named, *nic);
    if (guessed) entry.is_default |= kNicIsGuessed;
    answer(s, mail.header.ticket, Type::kNicEntry, entry);
}

// The id of the NIC that the name stands for; none: why not.
std::optional<size_t> Agent::nic_to_open(const OpenNic& body, std::string* why) const {
    const NicNaming named = naming(asked_provider(body.device));
    if (const auto position = find_nic(named, text_of(body.device))) return providers_.id_at(*position);
    *why = why_no_nic(named, text_of(body.device));
    return std::nullopt;
}

// A context that is reattached keeps its NIC, whatever NIC the name means: the NIC that it has open at this agent, or,
// if an earlier agent has opened it, the NIC of the same address.
std::optional<size_t> Agent::nic_to_reattach(const Context* old, const OpenNic& body, std::string* why) const {
    if (old != nullptr) return old->nic;
    for (size_t i = 0; i < providers_.nics().size(); ++i) {
        if (providers_.nics()[i].address == body.address) return providers_.id_at(i);
    }
    const NicNaming named = naming(asked_provider(body.device));
    const std::string_view device = text_of(body.device);
    *why = find_nic(named, device) ? "no NIC of this host has its address" : why_no_nic(named, device);
    return std::nullopt;
}

void Agent::open_nic(Session& s, Mail& mail, int64_t now) {
    const uint32_t ticket = mail.header.ticket;
    OpenNic body;
    if (!mail.get(&body) || body.context_id == 0 || mail.descriptors.size() > kMaxContextDescriptors ||
        body.private_descriptors > mail.descriptors.size()) {
        ++refused_;
        refuse(s, ticket, Status::invalid, "malformed open request");
        return;
    }
    const Context* const old = registry_.find(body.context_id);
    std::string why;
    const auto nic = body.reattach != 0 ? nic_to_reattach(old, body, &why) : nic_to_open(body, &why);
    if (!nic) {
        refuse(s, ticket, Status::unknown_name, why);
        return;
    }
    if (old != nullptr) {
        // The process may have lost its connection while this agent lived on. That it is the same one is
        // shown by the id, which no other process has been told. Different numbers tell two processes apart; equal
        // ones, which may both be 0, prove nothing.
        const auto owner = sessions_.find(old->session);
        const bool same = owner != sessions_.end() && same_user(owner->second, s) &&
                          owner->second.credentials.pid == s.credentials.pid;
        if (body.reattach == 0 || !same) {
            refuse(s, ticket, Status::denied, "this context exists already");
            return;
        }
        close_context(body.context_id, now);
    }
    Context c;
    c.id = body.context_id;
    if (::getrandom(&c.public_id, sizeof c.public_id, 0) != sizeof c.public_id) {
        refuse(s, ticket, Status::out_of_resources, "the system gives no random numbers");
        return;
    }
    c.session = s.id;
    c.user = s.credentials.uid;
    c.nic = *nic;
    c.device = text_of(body.device);
    c.descriptors = std::move(mail.descriptors);
    c.private_descriptors = body.private_descriptors;
    std::copy(std::begin(body.provider_words), std::end(body.provider_words), c.words.begin());
    if (body.reattach != 0) std::copy(std::begin(body.held), std::end(body.held), c.held.begin());
    if (registry_.open(c) != Status::ok) {
        outbox_.discard(s.credentials.uid, std::move(c.descriptors));
        refuse(s, ticket, Status::out_of_resources,
               "too many open NICs of this user (limit " + std::to_string(limits_.limit(Quota::contexts)) +
                   ", agent.max_contexts) or descriptors for them (limit " +
                   std::to_string(limits_.limit(Quota::descriptors)) + ", agent.max_descriptors)");
        return;
    }
    Opened opened;
    opened.nic = providers_.nic(*nic);
    const auto& held = registry_.find(body.context_id)->held;
    std::copy(held.begin(), held.end(), std::begin(opened.lease));
    answer(s, ticket, Type::kOpened, opened);
}

void Agent::close_context(uint64_t id, int64_t now) {
    const Context* c = registry_.find(id);
    if (c == nullptr) return;
    const uid_t user = c->user;
    table_.context_closed(id, now);
    outbox_.discard(user, registry_.close(id));
}

void Agent::close_nic(Session& s, const Mail& mail, int64_t now) {
    ContextRef body;
    if (!mail.get(&body) || registry_.find(body.context_id, s.id) == nullptr) {
        refuse(s, mail.header.ticket, Status::invalid, "no such context in this session");
        return;
    }
    close_context(body.context_id, now);
    answer(s, mail.header.ticket, Type::kDone);
}

void Agent::lease(Session& s, const Mail& mail) {
    const uint32_t ticket = mail.header.ticket;
    Lease body;
    Context* c = mail.get(&body) ? registry_.find(body.context_id, s.id) : nullptr;
    if (c == nullptr || body.kind >= kLeaseKinds) {
        refuse(s, ticket, Status::invalid, "no such context or kind of lease");
        return;
    }
    const auto kind = static_cast<LeaseKind>(body.kind);
    if (const Status st = registry_.lease(*c, kind, body.amount); st != Status::ok) {
        const auto quota = static_cast<Quota>(kind);
        refuse(s, ticket, st,
               st == Status::invalid
                   ? std::string("gives back more than it holds")
                   : std::string("limit of ") + quota_name(quota) + " of this user reached (" +
                         std::to_string(limits_.limit(quota)) + ")");
        return;
    }
    answer(s, ticket, Type::kLeaseGrant, body);
}

}  // namespace viaduct::kagent
