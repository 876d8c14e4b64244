// SPDX-License-Identifier: BSD-2-Clause
// What tests of the agent share: an Agent without sockets whose answers can be looked at.
#pragma once

#include <sys/eventfd.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fake_provider/fake_control.hpp"
#include "kagent/agent.hpp"

namespace viaduct::kagent::testing {

class NoSettings final : public Settings {
public:
    const char* get(const char*, const char* fallback) const override { return fallback; }
    int64_t get_int(const char*, int64_t fallback) const override { return fallback; }
};

class Letterbox final : public Outbox {
public:
    void send(uint64_t session, Mail mail) override { boxes[session].push_back(std::move(mail)); }
    bool all_out(uint64_t session) override { return !full.contains(session); }
    void drop(uint64_t session, const char* why) override { dropped[session] = why; }
    void discard(uid_t, std::vector<Fd> files) override { discarded += files.size(); }

    std::map<uint64_t, std::deque<Mail>> boxes;
    std::map<uint64_t, std::string> dropped;
    size_t discarded = 0;     // files
    std::set<uint64_t> full;  // sessions that do not take what they are sent
};

inline Providers& add_fake(Providers& providers, uint16_t nics = 2) {
    static const NoSettings none;
    static const Provider one = fake::provider("fake", fake::discover<1>);
    static const Provider two = fake::provider("fake", fake::discover<2>);
    static const Provider three = fake::provider("fake", fake::discover<3>);
    providers.add(nics == 1 ? one : nics == 2 ? two : three, none);
    return providers;
}

inline AgentSettings by_default_fake(AgentSettings settings) {
    settings.default_provider = "fake";
    return settings;
}

// An agent with two fake NICs, which are the default ones, and a clock of its own.
struct Bench {
    explicit Bench(AgentSettings settings = {})
        : agent(by_default_fake(std::move(settings)), add_fake(providers), out) {}

    static Fd some_fd() { return Fd(::eventfd(0, EFD_CLOEXEC)); }

    // A session that has said hello.
    uint64_t join(uid_t uid = 1000, pid_t pid = 0, uint32_t flags = 0) {
        const uint64_t s = agent.arrive({pid != 0 ? pid : ++last_pid, uid}, some_fd(), now);
        Hello h;
        h.flags = flags;
        agent.handle(s, Mail::of(Type::kHello, h, 1), now);
        last = take(s);
        return s;
    }
    uint64_t open(uint64_t session, const char* device = "fake0", uint64_t id = 0, size_t fds = 1) {
        OpenNic o;
        std::strncpy(o.device, device, sizeof(o.device) - 1);
        o.context_id = id != 0 ? id : ++last_context;
        o.provider_words[0] = o.context_id * 10;
        Mail m = Mail::of(Type::kOpenNic, o, 2);
        for (size_t i = 0; i < fds; ++i) m.descriptors.push_back(some_fd());
        agent.handle(session, std::move(m), now);
        last = take(session);
        return o.context_id;
    }
    template <class T>
    void post(uint64_t session, Type type, const T& body, uint32_t ticket) {
        agent.handle(session, Mail::of(type, body, ticket), now);
    }
    template <class T>
    Mail ask(uint64_t session, Type type, const T& body, uint32_t ticket = 99) {
        post(session, type, body, ticket);
        return take(session);
    }
    // The oldest message to a session; type 0 when there is none.
    Mail take(uint64_t session) {
        auto& box = out.boxes[session];
        if (box.empty()) return {};
        Mail m = std::move(box.front());
        box.pop_front();
        return m;
    }
    bool quiet(uint64_t session) { return out.boxes[session].empty(); }
    void pass(int64_t ms) {
        now += ms * 1'000'000;
        agent.tick(now);
    }

    Providers providers;
    Letterbox out;
    Agent agent;
    Mail last;
    int64_t now = 1'000'000'000;
    pid_t last_pid = 5000;
    uint64_t last_context = 100;
};

inline Status status_of(const Mail& m) {
    Error e;
    if (m.type() != Type::kError || !m.get(&e)) return Status::ok;
    return static_cast<Status>(e.status);
}

template <class T>
T body_of(const Mail& m) {
    T t{};
    if (!m.get(&t)) t = T{};
    return t;
}

inline EndAddress at(const NicAddress& host, const std::string& discriminator) {
    EndAddress a;
    a.host = host;
    a.discriminator_len = static_cast<uint16_t>(discriminator.size());
    std::memcpy(a.discriminator, discriminator.data(), discriminator.size());
    return a;
}

inline NicAddress nic_address(uint16_t index) { return fake::nic("fake", index).address; }

inline ConnWait wait_at(uint64_t context, const std::string& d) {
    ConnWait w;
    w.context_id = context;
    w.local = at({}, d);
    std::memset(w.local.host.bytes, 0xEE, sizeof w.local.host.bytes);  // programs leave it uninitialised
    return w;
}

inline ConnRequest request_to(uint64_t context, const std::string& local, const NicAddress& host,
                       const std::string& remote, uint32_t timeout_ms = 0xFFFFFFFF) {
    ConnRequest r;
    r.context_id = context;
    r.local = at({}, local);
    r.remote = at(host, remote);
    r.traits.reliability = 2;
    r.traits.max_transfer = 65600;
    r.timeout_ms = timeout_ms;
    r.endpoint_words[0] = 40 + static_cast<uint32_t>(context);
    return r;
}

// Two sessions, each with an open NIC.
struct TwoEnds : Bench {
    explicit TwoEnds(AgentSettings settings = {}, uid_t second_user = 1000) : Bench(std::move(settings)) {
        server = join(1000);
        client = join(second_user);
        here = open(server, "fake0", 0, 2);
        there = open(client, "fake1", 0, 3);
    }
    uint64_t server, client, here, there;
};

}  // namespace viaduct::kagent::testing
