// SPDX-License-Identifier: BSD-2-Clause
// The fuzzer of what is told apart behind one address (viaduct-udpd, the engine process of acenic): bytes are a script
// of filters of programs and of requests that come, well sealed with any fields that the script gives, and as raw
// bytes. Used by libFuzzer's entry and, with scripts at random, by the unit tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "providers/packet/requests.hpp"
#include "providers/wire/encapsulation.hpp"

namespace viaduct::fuzz {

class RequestScript {
public:
    RequestScript(const uint8_t* data, size_t size) : data_(data), left_(size) {}
    bool more() const { return left_ != 0; }
    uint8_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *data_++;
    }
    NicAddress address() {
        return wire::udp_address(0xC0000200 + byte() % 3, static_cast<uint16_t>(4792 + byte() % 3));
    }
    EndAddress end() {
        EndAddress a;
        a.host = address();
        a.discriminator_len = byte() % 3;
        for (uint16_t i = 0; i < a.discriminator_len; ++i) a.discriminator[i] = static_cast<uint8_t>('a' + byte() % 2);
        return a;
    }

private:
    const uint8_t* data_;
    size_t left_;
};

inline void must(bool good) {
    if (!good) std::abort();
}

inline std::vector<std::byte> request_of(RequestScript& script) {
    static constexpr wire::Kind kKinds[] = {wire::Kind::request, wire::Kind::peer_request, wire::Kind::withdraw,
                                            wire::Kind::accept, wire::Kind::send};
    const wire::Kind kind = kKinds[script.byte() % 5];
    const uint16_t length = kind == wire::Kind::withdraw ? wire::kAnswerBytes : wire::kConnectBytes;
    std::vector<std::byte> frame(wire::kHeaderBytes + length);
    if (kind == wire::Kind::withdraw) {
        wire::write_answer(frame.data() + wire::kHeaderBytes, {script.byte() % 4u, 0, 0});
    } else {
        wire::Connect c;
        c.nonce = script.byte() % 4;
        c.local = script.end();
        c.remote = script.end();
        wire::write_connect(frame.data() + wire::kHeaderBytes, c);
    }
    const uint8_t damage = script.byte();
    if (damage < 32) frame[wire::kHeaderBytes + damage % length] = std::byte{script.byte()};
    wire::Header h;
    h.kind = kind;
    h.source = script.byte() % 4;
    h.length = length;
    wire::seal(frame.data(), h);
    if (damage >= 250) frame.resize(script.byte() % frame.size());
    return frame;
}

inline void run_requests(const uint8_t* data, size_t size) {
    RequestScript script(data, size);
    packet::Requests requests(script.byte() % 2 != 0);
    std::set<uint32_t> programs;
    int64_t now = 1;
    // A program's user follows from its number, a requester's from its address.
    const auto user_of = [](uint32_t slot) { return static_cast<uid_t>(slot % 3); };
    const auto arrives = [&](const std::vector<std::byte>& frame) {
        const NicAddress from = script.address();
        const uid_t user = from.bytes[5] % 3;
        const packet::Requester requester = user == 0 ? packet::Requester() : user;
        const packet::Target target = requests.incoming(frame, from, now, requester);
        must(target.slot == packet::kNoSlot || programs.contains(target.slot));
        const bool may_meet = !requester || user_of(target.slot) == *requester || user_of(target.slot) == 0;
        must(target.slot == packet::kNoSlot || may_meet);
        if (target.answer != wire::Kind::no_match) return;
        std::byte answer[packet::kNoMatchBytes];
        wire::Frame read;
        if (packet::make_no_match(frame, target.nonce, answer))
            must(wire::read_frame(answer, &read) == wire::Flaw::none);
    };
    while (script.more()) {
        now += int64_t{1} << (script.byte() % 34);
        const uint32_t slot = script.byte() % 4;
        switch (script.byte() % 8) {
            case 0:
            case 1: {
                const uint8_t index = script.byte() % 4, kind = script.byte() % 4;
                packet::RequestFilter filter{index,        kind % 2 != 0,    script.byte() % 4u, script.end(),
                                             script.end(), script.address(), user_of(slot),      kind >= 2};
                packet::Held held;
                programs.insert(slot);
                requests.add(slot, filter, now, &held);
                break;
            }
            case 2:
                requests.remove(slot, script.byte() % 4, script.byte() % 2 != 0);
                break;
            case 3:
                requests.drop(slot);
                programs.erase(slot);
                break;
            case 4:
                requests.pass_on(slot, script.address(), script.byte() % 4, script.byte() % 4);
                break;
            case 5: {
                std::vector<std::byte> raw(script.byte());
                for (std::byte& b : raw) b = std::byte{script.byte()};
                arrives(raw);
                break;
            }
            default:
                arrives(request_of(script));
        }
    }
    for (const uint32_t slot : programs) requests.drop(slot);
    must(requests.count_filters() == 0);
}

}  // namespace viaduct::fuzz
