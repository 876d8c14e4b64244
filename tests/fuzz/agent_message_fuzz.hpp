// SPDX-License-Identifier: BSD-2-Clause
// One run of the agent over arbitrary bytes: three sessions of two users, and whatever the bytes say they
// send. Used by the libFuzzer program and, on a fixed corpus with seeded mutations, by a unit test.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "kagent/agent.hpp"
#include "tests/unit/fake_provider/fake_control.hpp"

namespace viaduct::fuzz {

// What clients would see. Answers are checked for form, remembered where they name something that later
// requests may use, and dropped.
class Clients final : public kagent::Outbox {
public:
    void send(uint64_t, Mail mail) override {
        if (mail.payload.size() > kagent::kMaxMessage || mail.descriptors.size() > kagent::kMaxDescriptors)
            std::abort();
        kagent::Incoming in;
        kagent::Joined j;
        if (mail.type() == kagent::Type::kIncoming && mail.get(&in)) incoming = in.incoming;
        if (mail.type() == kagent::Type::kJoined && mail.get(&j)) connection = j.connection_id;
    }
    bool all_out(uint64_t) override { return true; }
    void drop(uint64_t session, const char*) override { dropped.push_back(session); }
    void discard(uid_t, std::vector<Fd>) override {}
    uint64_t incoming = 0, connection = 0;
    std::vector<uint64_t> dropped;
};

class NoSettings final : public Settings {
public:
    const char* get(const char*, const char* fallback) const override { return fallback; }
    int64_t get_int(const char*, int64_t fallback) const override { return fallback; }
};

// A record of the input: one byte which session, one byte type, one byte ticket, one byte flags, two bytes
// length, payload. Flags: 1 a payload of the type's own size is made of what follows, 2 descriptors come with
// it, 4 time passes, 8 the session ends and comes again, 16 numbers that the agent gave are put where they
// belong.
inline size_t natural_size(kagent::Type t) {
    using namespace kagent;
    switch (t) {
        case Type::kHello:
            return sizeof(Hello);
        case Type::kResolveName:
        case Type::kNameAdd:
            return sizeof(NameText);
        case Type::kOpenNic:
            return sizeof(OpenNic);
        case Type::kCloseNic:
            return sizeof(ContextRef);
        case Type::kLease:
            return sizeof(Lease);
        case Type::kConnWait:
            return sizeof(ConnWait);
        case Type::kConnRequest:
        case Type::kConnPeer:
            return sizeof(ConnRequest);
        case Type::kConnAccept:
            return sizeof(ConnAccept);
        case Type::kConnConfirm:
            return sizeof(ConnConfirm);
        case Type::kConnReject:
            return sizeof(IncomingRef);
        case Type::kCancel:
            return sizeof(Cancel);
        case Type::kNameLookup:
            return sizeof(NameLookup);
        case Type::kAddressLookup:
            return sizeof(AddressLookup);
        case Type::kListEnded:
            return sizeof(EndedQuery);
        default:
            return 0;
    }
}

inline void run_agent(const uint8_t* data, size_t size) {
    using namespace kagent;
    static const NoSettings none;
    static const Provider provider = fake::provider("fake", fake::discover<2>);
    Providers providers;
    providers.add(provider, none);
    AgentSettings settings;
    settings.limits.outstanding = 20;
    settings.limits.contexts = 6;
    settings.max_incoming = 3;
    Clients clients;
    Agent agent(settings, providers, clients);
    int64_t now = 1;

    struct Who {
        uint64_t session;
        Credentials credentials;
    } sessions[3] = {{0, {10, 1000}}, {0, {11, 1000}}, {0, {12, 1001}}};
    const auto arrive = [&](Who& w) {
        w.session = agent.arrive(w.credentials, Fd(::eventfd(0, EFD_CLOEXEC)), now);
        agent.handle(w.session, Mail::of(Type::kHello, Hello{}, 1), now);
    };
    for (Who& w : sessions) arrive(w);

    while (size >= 6) {
        Who& w = sessions[data[0] % 3];
        Mail mail(static_cast<Type>(data[1]), data[2]);
        const uint8_t flags = data[3];
        size_t length =
            std::min<size_t>(static_cast<size_t>(data[4]) | static_cast<size_t>(data[5]) << 8, kMaxMessage);
        data += 6;
        size -= 6;
        const size_t taken = std::min(length, size);
        if ((flags & 1) != 0) length = natural_size(mail.type());
        mail.payload.resize(length);
        if (const size_t bytes = std::min(length, taken); bytes > 0)
            std::memcpy(mail.payload.data(), data, bytes);
        if ((flags & 16) != 0 && length >= 16) {
            if (mail.type() == Type::kConnAccept || mail.type() == Type::kConnReject) {
                std::memcpy(mail.payload.data() + 8, &clients.incoming, 8);
            }
        }
        if ((flags & 16) != 0 && mail.type() == Type::kConnConfirm && length == 8) {
            std::memcpy(mail.payload.data(), &clients.connection, 8);
        }
        data += taken;
        size -= taken;
        for (int i = 0; (flags & 2) != 0 && i < data[-1] % 9; ++i)
            mail.descriptors.emplace_back(::eventfd(0, EFD_CLOEXEC));
        if ((flags & 4) != 0) {
            now += 60'000'000;
            agent.tick(now);
        }
        agent.handle(w.session, std::move(mail), now);
        if ((flags & 8) != 0 ||
            std::find(clients.dropped.begin(), clients.dropped.end(), w.session) != clients.dropped.end()) {
            agent.leave(w.session, now);
            arrive(w);
        }
    }
    for (Who& w : sessions) agent.leave(w.session, now);
    // Nothing may be left of any session.
    const auto counts = agent.table().counts();
    if (counts.waits + counts.held + counts.met + counts.accepted + counts.peers + counts.abandoned != 0)
        std::abort();
    if (!agent.registry().all().empty() || agent.table().next_deadline() != kNever) std::abort();
    for (const uid_t user : {1000u, 1001u}) {
        for (uint32_t q = 0; q < static_cast<uint32_t>(Quota::count); ++q) {
            if (agent.limits().used(user, static_cast<Quota>(q)) != 0) std::abort();
        }
    }
}

// A meaningful conversation in the input's format, to begin from.
inline std::vector<uint8_t> seed_conversation() {
    using namespace kagent;
    std::vector<uint8_t> out;
    uint8_t ticket = 2;
    const auto add = [&](uint8_t who, Type type, const void* body, size_t bytes, uint8_t flags) {
        out.insert(out.end(), {who, static_cast<uint8_t>(type), ticket++, flags,
                               static_cast<uint8_t>(bytes & 0xFF), static_cast<uint8_t>(bytes >> 8)});
        const auto* p = static_cast<const uint8_t*>(body);
        out.insert(out.end(), p, p + bytes);
    };
    OpenNic o;
    std::strcpy(o.device, "fake0");
    for (uint8_t who = 0; who < 3; ++who) {
        o.context_id = 100u + who;
        add(who, Type::kOpenNic, &o, sizeof o, 2);
    }
    const NicAddress host = fake::nic("fake", 0).address;
    ConnWait w;
    w.context_id = 100;
    w.local.discriminator_len = 1;
    ConnRequest r;
    r.context_id = 101;
    r.local.discriminator_len = 1;
    r.remote = w.local;
    r.remote.host = host;
    r.timeout_ms = 500;
    ConnAccept a;
    a.context_id = 100;
    ConnConfirm c;
    add(0, Type::kConnWait, &w, sizeof w, 0);
    add(1, Type::kConnRequest, &r, sizeof r, 0);
    add(0, Type::kConnAccept, &a, sizeof a, 16);
    add(1, Type::kConnConfirm, &c, sizeof c, 16);
    r.local.host = host;
    add(1, Type::kConnPeer, &r, sizeof r, 0);
    r.context_id = 100;
    add(0, Type::kConnPeer, &r, sizeof r, 0);
    Lease l;
    l.context_id = 100;
    l.amount = 5;
    add(0, Type::kLease, &l, sizeof l, 0);
    NameLookup n;
    n.context_id = 100;
    std::strcpy(n.name, "localhost");
    add(0, Type::kNameLookup, &n, sizeof n, 0);
    AddressLookup al;
    al.context_id = 100;
    al.address = host;
    add(0, Type::kAddressLookup, &al, sizeof al, 0);
    NameText t;
    std::strcpy(t.name, "node7");
    add(0, Type::kNameAdd, &t, sizeof t, 0);
    add(1, Type::kResolveName, &t, sizeof t, 0);
    add(2, Type::kListNics, nullptr, 0, 0);
    add(2, Type::kStatus, nullptr, 0, 4);
    const EndedQuery all;
    add(2, Type::kShowStats, nullptr, 0, 2);
    add(1, Type::kListEnded, &all, sizeof all, 0);
    add(1, Type::kTrace, nullptr, 0, 2);
    IncomingRef ref;
    ref.context_id = 100;
    add(0, Type::kConnWait, &w, sizeof w, 0);
    r.context_id = 101;
    add(1, Type::kConnRequest, &r, sizeof r, 0);
    add(0, Type::kConnReject, &ref, sizeof ref, 16);
    Cancel cancel;
    cancel.ticket = 6;
    add(0, Type::kCancel, &cancel, sizeof cancel, 4);
    ContextRef context{102};
    add(2, Type::kCloseNic, &context, sizeof context, 8);
    return out;
}

}  // namespace viaduct::fuzz
