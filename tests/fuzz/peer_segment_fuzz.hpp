// SPDX-License-Identifier: BSD-2-Clause
// One run of a connection whose other end writes arbitrary bytes into everything the two share. Used by the
// libFuzzer program and, on fixed scripts with seeded mutations, by a unit test. What must hold: no crash, no
// byte outside of what was posted or opened.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "providers/paramnet/progress.hpp"
#include "tests/unit/paramnet_fixture.hpp"

namespace viaduct::fuzz {

namespace pn = viaduct::paramnet;
using pn::test::TestNic;
using pn::test::TestVi;

inline constexpr uint32_t kSlot = 4096, kSlots = 8, kMargin = 1500, kRoom = 1000;
inline constexpr std::byte kGuard{0xA5};

// Bytes of the input, zeros behind its end.
class Script {
public:
    Script(const uint8_t* data, size_t size) : data_(data), left_(size) {}
    bool done() const { return left_ == 0; }
    template <class T>
    T take() {
        T value{};
        const size_t n = left_ < sizeof value ? left_ : sizeof value;
        if (n != 0) std::memcpy(&value, data_, n);
        data_ += n;
        left_ -= n;
        return value;
    }

private:
    const uint8_t* data_;
    size_t left_;
};

// Two ends that are connected anew for every run: `hostile` belongs to the script, `victim` to the library.
struct Stage {
    explicit Stage(uint16_t level, bool reach)
        : nic_a(matcher, {{"cross_copy", reach ? "auto" : "off"}}),
          nic_b(matcher, {{"cross_copy", reach ? "auto" : "off"}}),
          hostile(nic_a, level, (kSlots + 8) * kSlot),
          victim(nic_b, level, (kSlots + 8) * kSlot) {
        matcher.same_process = false;
    }
    pn::test::Matcher matcher;
    TestNic nic_a, nic_b;
    TestVi hostile, victim;
};

inline Stage& stage(uint8_t which) {
    // Never destroyed: threads of theirs may be anywhere when the process ends.
    static std::unique_ptr<Stage>* const stages = new std::unique_ptr<Stage>[6];
    std::unique_ptr<Stage>& chosen = stages[which % 6];
    if (!chosen) chosen = std::make_unique<Stage>(pn::test::kLevels[which % 3], which % 6 >= 3);
    return *chosen;
}

// The next line the victim looks at, or one near it, forged.
inline void forge_line(Script& script, pn::ConnectionSegment& shared, uint32_t side, TestVi& victim) {
    const uint32_t next = victim.endpoint().rx.next.load();
    const uint32_t position = next + script.take<uint8_t>() % 4;
    pn::Line& line = shared.lines[side][position % pn::kLines];
    line.immediate = script.take<uint32_t>();
    const auto shape = script.take<uint8_t>();
    // Lengths and units that nearly fit are found seldom by chance.
    const auto length = (shape & 1) != 0 ? script.take<uint32_t>() : script.take<uint16_t>() % 9000u;
    line.extra = (shape & 2) != 0 ? script.take<uint32_t>() : length;
    uint64_t payload[2] = {script.take<uint64_t>(), script.take<uint64_t>()};
    if ((shape & 4) != 0) payload[0] = victim.endpoint().rx.unit_next % pn::kUnits;
    if ((shape & 8) != 0) {  // an address and a handle of the victim's
        payload[0] = (payload[0] & 0xFFFFFFFF) | uint64_t{victim.region} << 32;
        payload[1] = reinterpret_cast<uintptr_t>(victim.descriptor(false, 0)) + payload[1] % (4u << 20);
    }
    std::memcpy(line.payload, payload, sizeof payload);
    line.word.store(
        pn::make_word(position, script.take<uint8_t>() & 15, script.take<uint8_t>() & 7, length & 0xFFFFFF),
        std::memory_order_release);
}

template <class Record>
void scribble_word(Script& script, Record& record) {
    auto* words = reinterpret_cast<uint32_t*>(&record);
    const uint32_t at = script.take<uint16_t>() % (sizeof(Record) / 4);
    const uint32_t value = (at & 1) != 0 ? script.take<uint32_t>() : script.take<uint8_t>();
    std::atomic_ref(words[at]).store(value, std::memory_order_relaxed);
}

inline void act(Script& script, Stage& s, pn::ConnectionSegment& shared, uint32_t side) {
    TestVi& v = s.victim;
    std::byte* outgoing = v.data() + kSlots * kSlot;
    switch (script.take<uint8_t>() % 10) {
        case 0:
        case 1:
            forge_line(script, shared, side, v);
            break;
        case 2:
            scribble_word(script, shared.ends[side]);
            // A peer that says it is in our memory is waited for, up to a second (fault PeerStopped): not in
            // every run.
            shared.ends[side].busy_send.store(0);
            shared.ends[side].busy_recv.store(0);
            break;
        case 3:
            scribble_word(script, *s.nic_b.context->hub);
            break;
        case 4: {
            auto* words = reinterpret_cast<uint64_t*>(shared.blocks[side]);
            words[script.take<uint16_t>()] = script.take<uint64_t>();
            break;
        }
        case 5:
            if (!v.core.send.full())
                v.send(outgoing, script.take<uint16_t>() % 20000u,
                       script.take<uint8_t>() & VIP_CONTROL_IMMEDIATE);
            break;
        case 6: {
            const uint32_t control =
                (script.take<uint8_t>() & 1) != 0 ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD;
            if (!v.core.send.full())
                v.post_send(v.make_rdma(control, outgoing, script.take<uint16_t>() % 20000u, s.hostile.data(),
                                        s.hostile.region + script.take<uint8_t>() % 2));
            break;
        }
        case 7:
            v.recv_done();
            v.send_done();
            break;
        case 8:
            s.nic_b.poll();
            break;
        default:
            pn::service(v.endpoint());
            break;
    }
}

inline void expect_guards(const TestVi& victim) {
    for (uint32_t i = 0; i < kSlots * kSlot; ++i) {
        const uint32_t k = i % kSlot;
        if ((k < kMargin || k >= kMargin + kRoom) && victim.data()[i] != kGuard) std::abort();
    }
}

// The first two bytes choose level, reach, and whether the peer may use RDMA.
inline void run_peer(const uint8_t* data, size_t size) {
    Script script(data, size);
    Stage& s = stage(script.take<uint8_t>());
    const uint8_t permissions = script.take<uint8_t>();
    TestVi& v = s.victim;
    v.written_by_peer = permissions & 1;
    v.core.traits.rdma_write = permissions & 1;
    v.core.traits.rdma_read = permissions >> 1 & 1;
    std::memset(v.data(), static_cast<int>(kGuard), kSlots * kSlot);
    connect(s.hostile, v);
    for (uint32_t i = 0; i < kSlots; ++i) v.receive(v.data() + i * kSlot + kMargin, kRoom);
    {
        // Kept by the hostile end, whatever the library does with its own mapping (mremap(2): old size 0).
        void* kept =
            ::mremap(s.hostile.endpoint().joint.shared(), 0, sizeof(pn::ConnectionSegment), MREMAP_MAYMOVE);
        if (kept == MAP_FAILED) std::abort();
        auto& shared = *static_cast<pn::ConnectionSegment*>(kept);
        const uint32_t side = s.hostile.endpoint().joint.side;
        while (!script.done()) act(script, s, shared, side);
        ::munmap(kept, sizeof(pn::ConnectionSegment));
    }
    // With RDMA the peer was allowed to write anywhere in the region, descriptors included: then only the
    // process has to live.
    if (permissions % 2 == 0) expect_guards(v);
    for (TestVi* vi : {&v, &s.hostile}) {
        vi->disconnect();
        while (vi->core.recv.head_complete()) vi->recv_done();
        while (vi->core.send.head_complete()) vi->send_done();
        if (!vi->core.recv.empty() || !vi->core.send.empty()) std::abort();  // flushed whatever the peer did
        vi->forget_errors();
        vi->core.traits.rdma_write = vi->core.traits.rdma_read = 1;
    }
}

// A conversation that makes sense, to begin from.
inline std::vector<std::vector<uint8_t>> seed_scripts() {
    std::vector<std::vector<uint8_t>> seeds;
    for (uint8_t which = 0; which < 6; ++which) {
        for (uint8_t operation = 1; operation < 10; ++operation) {
            std::vector<uint8_t> s = {which, static_cast<uint8_t>(operation % 4)};
            for (int i = 0; i < 3; ++i) {
                // forged line: at the next place; immediate; shape; length 64; payload; operation; flags
                s.insert(s.end(), {0, 0, 7, 0, 0, 0, static_cast<uint8_t>(operation > 4 ? 12 : 4), 40, 0});
                s.insert(s.end(), 16, 0);
                s.insert(s.end(),
                         {operation, static_cast<uint8_t>(operation == 2 || operation > 4 ? 4 : 0), 7, 9});
            }
            s.insert(s.end(),
                     {5, 100, 0, 0, 5, 0, 64, 4, 6, 0, 100, 0, 0, 6, 1, 0, 16, 1, 7, 8, 9, 2, 0, 0, 3, 7});
            seeds.push_back(std::move(s));
        }
    }
    return seeds;
}

}  // namespace viaduct::fuzz
