// SPDX-License-Identifier: BSD-2-Clause
// A peer that writes invalid values into everything it shares with us: nothing crashes, nothing outside the posted
// receives is touched, and only this connection is lost.
#include "paramnet_fixture.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <random>

#include "core/clock/clock.hpp"
#include "tests/eventually.hpp"

namespace viaduct::paramnet::test {
namespace {

// Memory around every buffer that no message may touch.
constexpr uint32_t kSlot = 4096, kUsed = 1000;

void post_guarded(TestVi& vi, uint32_t i) { vi.receive(vi.data() + i * kSlot + 1500, kUsed); }

bool guards_intact(const TestVi& vi, uint32_t slots) {
    for (uint32_t i = 0; i < slots; ++i)
        for (uint32_t k = 0; k < kSlot; ++k)
            if ((k < 1500 || k >= 1500 + kUsed) && vi.data()[i * kSlot + k] != std::byte{0xA5}) return false;
    return true;
}

// Puts one line, as a hostile sender would.
void forge(TestVi& from, uint64_t word_meta, uint32_t extra, const void* payload, size_t n) {
    Endpoint& ep = from.endpoint();
    ConnectionSegment& shared = *ep.joint.shared();
    Line& line = shared.lines[ep.joint.side][ep.tx.next % kLines];
    line.extra = extra;
    std::memcpy(line.payload, payload, n);
    line.word.store(uint64_t{line_tag(ep.tx.next)} | word_meta << 32, std::memory_order_release);
    ++ep.tx.next;
}

// As after a message that came alone to a polling thread.
void look_at_one_line(TestVi& vi) {
    Endpoint& ep = vi.endpoint();
    ep.rx.own->recv_mode.store(kModePolled);
    ep.rx.polled.store(1);
    ep.rx.poll_budget = 1;
}

uint64_t meta(uint32_t operation, uint32_t flags, uint32_t length) {
    return meta_of(make_word(0, operation, flags, length));
}

TEST(Hostile, ImpossibleLinesBreakTheConnectionAndNothingElse) {
    struct Case {
        const char* name;
        uint64_t meta;
        uint32_t extra;
        uint32_t words[4];
    };
    const Case cases[] = {
        {"unknown operation", meta(15, 0, 0), 0, {}},
        {"no operation", meta(0, 0, 0), 0, {}},
        {"inline length too large", meta(kLineSend, 0, kInlineBytes + 1), kInlineBytes + 1, {}},
        {"inline length huge", meta(kLineSend, 0, 0xFFFFFF), 0, {}},
        {"fragment too long", meta(kLineSend, kFlagBlocks, kMaxFragment + 1), kMaxFragment + 1, {0}},
        {"fragment longer than its message", meta(kLineSend, kFlagBlocks, 600), 599, {0}},
        {"wrong place", meta(kLineSend, kFlagBlocks, 600), 600, {77}},
        {"place outside", meta(kLineSend, kFlagBlocks, 600), 600, {0xFFFFFFFF}},
        {"continuation of nothing", meta(kLineMore, kFlagBlocks, 600), 0, {0}},
        {"read data without a request", meta(kLineReadData, kFlagBlocks, 64), 0, {0}},
        {"refusal without a request", meta(kLineReadRefused, 0, 0), 0, {}},
        {"served write longer than allowed", meta(kLineWrite, kFlagBlocks, 64), 0xFFFFFFFF, {0}},
        {"served write of no bytes at first", meta(kLineWrite, kFlagBlocks, 0), 64, {0}},
        {"read longer than allowed", meta(kLineRead, 0, 0), 0xFFFFFFFF, {0}},
        {"atomic of three bytes", meta(kLineAtomic, 0, 0), 0, {0, 3}},
        {"atomic off its alignment", meta(kLineAtomic, 0, 0), 0, {0, 4, 2}},
        {"pull longer than allowed", meta(kLinePull, kFlagAck, 0), 0xFFFFFFFF, {0}},
    };
    // At Unreliable, too, where a message that only finds no good receive breaks nothing.
    for (const Case& c : cases)
        for (const uint16_t level : {VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_UNRELIABLE})
            for (const bool dialogue : {false, true}) {
                SCOPED_TRACE(c.name);
                SCOPED_TRACE(level);
                SCOPED_TRACE(dialogue ? "taken alone" : "taken in general");
                TestPair pair(level);
                std::memset(pair.b.data(), 0xA5, 1 << 20);
                for (uint32_t i = 0; i < 4; ++i) post_guarded(pair.b, i);
                if (dialogue) look_at_one_line(pair.b);
                forge(pair.a, c.meta, c.extra, c.words, sizeof c.words);
                EXPECT_TRUE(eventually([&] {
                    pair.b.recv_done();
                    return pair.b.state() == VIP_STATE_ERROR;
                }));
                EXPECT_TRUE(guards_intact(pair.b, 4));
            }
}

// Of a message that has no good receive as well: what is dropped is counted.
TEST(Hostile, AMessageHasNoMoreBytesThanItSaid) {
    struct Fragments {
        uint32_t first, total, second;
    };
    for (const auto& [first, total, second] :
         {Fragments{600, 1700, 1101}, {600, 1700, 4000}, {3000, 2000, 0}}) {
        SCOPED_TRACE(first);
        SCOPED_TRACE(second);
        TestPair pair(VIP_SERVICE_UNRELIABLE);
        std::memset(pair.b.data(), 0xA5, 1 << 20);
        for (uint32_t i = 0; i < 4; ++i) post_guarded(pair.b, i);  // too short for it
        BlockPlace where{0};
        forge(pair.a, meta(kLineSend, kFlagBlocks, first), total, &where, sizeof where);
        where.unit = (first + kUnitBytes - 1) / kUnitBytes;
        if (second != 0) forge(pair.a, meta(kLineMore, kFlagBlocks, second), 0, &where, sizeof where);
        EXPECT_TRUE(eventually([&] {
            pair.b.recv_done();
            return pair.b.state() == VIP_STATE_ERROR;
        }));
        EXPECT_TRUE(guards_intact(pair.b, 4));
    }
}

TEST(Hostile, AskingForTheTimeOfAnyLineIsHarmless) {
    TestPair pair(VIP_SERVICE_RELIABLE_DELIVERY);
    std::memset(pair.b.data(), 0xA5, 1 << 20);
    for (uint32_t i = 0; i < 3; ++i) post_guarded(pair.b, i);
    std::byte payload[64] = {};
    std::memset(payload + kProbeMarkAt, 0x80,
                sizeof payload - kProbeMarkAt);  // begun long before the machine
    forge(pair.a, meta(kLineSend, kFlagProbe, 8), 0, payload, sizeof payload);
    forge(pair.a, meta(kLineSend, kFlagProbe | kFlagBlocks, 600), 600, payload, sizeof payload);
    for (uint32_t i = 0; i < 2; ++i) {
        VIP_DESCRIPTOR* d = pair.b.wait_recv();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(d->CS.Length, i == 0 ? 8u : 600u);
    }
    EXPECT_TRUE(guards_intact(pair.b, 3));
    EXPECT_EQ(pair.b.state(), uint32_t{VIP_STATE_CONNECTED});
}

TEST(Hostile, MoreMessagesThanReceivesBreakTheConnection) {
    for (const uint32_t operation : {kLineSend, kLineImmediate, kLineWriteRefused}) {
        TestPair pair(VIP_SERVICE_UNRELIABLE);
        forge(pair.a, meta(operation, 0, 0), 0, "", 1);
        EXPECT_TRUE(eventually([&] {
            pair.b.recv_done();
            return pair.b.state() == VIP_STATE_ERROR;
        }));
    }
}

TEST(Hostile, AServedWriteReachesPermittedMemoryOnly) {
    TestPair pair(VIP_SERVICE_UNRELIABLE, Reach::none);
    std::memset(pair.b.data(), 0xA5, 1 << 20);
    const uint32_t closed = pair.nic_b.add_region(pair.b.data(), 1 << 20, kRegionRdmaRead);
    RemoteRange where{0, closed, reinterpret_cast<uintptr_t>(pair.b.data())};
    forge(pair.a, meta(kLineWrite, kFlagBlocks, 64), 64, &where, sizeof where);
    where = {1, pair.b.region, reinterpret_cast<uintptr_t>(pair.b.data()) + (1 << 20) - 63};
    forge(pair.a, meta(kLineWrite, kFlagBlocks, 64), 64, &where, sizeof where);
    where = {2, pair.b.region, UINT64_MAX - 10};
    forge(pair.a, meta(kLineWrite, kFlagBlocks, 64), 64, &where, sizeof where);
    // All of it has to be permitted, not only what comes first.
    where = {3, pair.b.region, reinterpret_cast<uintptr_t>(pair.b.data()) + (1 << 20) - 64};
    forge(pair.a, meta(kLineWrite, kFlagBlocks, 64), 128, &where, sizeof where);
    EXPECT_TRUE(eventually([&] {
        pair.b.recv_done();
        return pair.b.errors().size() == 4;
    }));
    for (const AsyncError& error : pair.b.errors()) EXPECT_EQ(error.code, VIP_ERROR_RDMAW_PROT);
    EXPECT_TRUE(guards_intact(pair.b, 256) || pair.b.data()[0] == std::byte{0xA5});
    for (int i = 0; i < 1 << 20; ++i) ASSERT_EQ(pair.b.data()[i], std::byte{0xA5});
}

TEST(Hostile, AServedWriteNeedsAViThatAllowsIt) {
    TestPair pair(VIP_SERVICE_UNRELIABLE, Reach::none);
    std::memset(pair.b.data(), 0xA5, 4096);
    pair.b.core.traits.rdma_write = 0;
    const RemoteRange where{0, pair.b.region, reinterpret_cast<uintptr_t>(pair.b.data())};
    forge(pair.a, meta(kLineWrite, kFlagBlocks, 64), 64, &where, sizeof where);
    EXPECT_TRUE(eventually([&] {
        pair.b.recv_done();
        return pair.b.errors().size() == 1;
    }));
    EXPECT_EQ(pair.b.errors().at(0).code, VIP_ERROR_RDMAW_PROT);
    for (int i = 0; i < 4096; ++i) ASSERT_EQ(pair.b.data()[i], std::byte{0xA5});
}

TEST(Hostile, WrongCountersBreakTheSendersConnection) {
    for (const uint64_t consumed : {uint64_t{5}, uint64_t{0xFFFFFFFF}, uint64_t{7} << 32, ~uint64_t{0}}) {
        SCOPED_TRACE(consumed);
        TestPair pair(VIP_SERVICE_RELIABLE_DELIVERY);
        for (int i = 0; i < 300; ++i) pair.b.receive(pair.b.data(), 8);
        EndRecord& forged = pair.b.endpoint().joint.shared()->ends[pair.b.endpoint().joint.side];
        for (uint32_t i = 0; i < 2; ++i) pair.a.send(pair.a.data(), 8);
        pair.a.endpoint().tx.burst_credit = 0;
        pair.a.endpoint().tx.limit = pair.a.endpoint().tx.next;  // looks at the counter now
        forged.consumed.store(consumed);
        pair.a.send(pair.a.data(), 8);
        EXPECT_TRUE(pair.a.reaches(VIP_STATE_ERROR));
    }
    TestPair pair(VIP_SERVICE_RELIABLE_RECEPTION);
    pair.b.receive(pair.b.data(), 8);
    pair.a.send(pair.a.data(), 8);
    pair.b.endpoint().joint.shared()->ends[pair.b.endpoint().joint.side].placed.store(2);
    EXPECT_EQ(pair.a.send_done(), nullptr);
    EXPECT_TRUE(pair.a.reaches(VIP_STATE_ERROR));
}

// A mapping of the connection segment that stays when the library has given up its own: a hostile process
// keeps what it was given.
class KeptSegment {
public:
    explicit KeptSegment(TestVi& vi) : side(vi.endpoint().joint.side) {
        // An old size of 0 makes a second mapping of shared memory (mremap(2)).
        void* again = ::mremap(vi.endpoint().joint.shared(), 0, sizeof(ConnectionSegment), MREMAP_MAYMOVE);
        if (again == MAP_FAILED) throw std::runtime_error("mremap");
        shared = static_cast<ConnectionSegment*>(again);
    }
    ~KeptSegment() { ::munmap(shared, sizeof(ConnectionSegment)); }
    KeptSegment(const KeptSegment&) = delete;
    KeptSegment& operator=(const KeptSegment&) = delete;

    ConnectionSegment* shared;
    uint32_t side;
};

TEST(Hostile, AServedReadReachesPermittedMemoryOnly) {
    enum Fault { vi, region, end, beginning, none };
    for (const Fault fault : {vi, region, end, beginning, none}) {
        SCOPED_TRACE(fault);
        TestPair pair(VIP_SERVICE_RELIABLE_DELIVERY, Reach::none);
        std::memset(pair.b.data(), 0xA5, 1 << 20);
        const KeptSegment kept(pair.b);
        std::byte* blocks = kept.shared->blocks[kept.side];
        std::memset(blocks, 0x11, 64);
        const auto base = reinterpret_cast<uintptr_t>(pair.b.data());
        RemoteRange where{0, pair.b.region, base};
        if (fault == vi) pair.b.core.traits.rdma_read = 0;
        if (fault == region) where.handle = pair.nic_b.add_region(pair.b.data(), 1 << 20, kRegionRdmaWrite);
        if (fault == end) where.address = base + (1 << 20) - 63;
        if (fault == beginning) where.address = UINT64_MAX - 10;
        forge(pair.a, meta(kLineRead, 0, 0), 64, &where, sizeof where);
        EXPECT_TRUE(eventually([&] {
            pair.b.recv_done();
            return fault == none ? blocks[0] == std::byte{0xA5} : pair.b.state() == VIP_STATE_ERROR;
        }));
        if (fault == none) continue;
        EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RDMAR_PROT));
        for (int i = 0; i < 64; ++i) ASSERT_EQ(blocks[i], std::byte{0x11});
    }
}

// Writes random words over everything the other end reads.
void scribble(KeptSegment& hostile, std::mt19937_64& random, bool lines_too) {
    ConnectionSegment& shared = *hostile.shared;
    const uint32_t side = hostile.side;
    auto* words = reinterpret_cast<uint64_t*>(&shared.ends[side]);
    const uint64_t value = random() % 3 == 0 ? random() : random() % 300;
    std::atomic_ref(words[random() % (sizeof(EndRecord) / 8)]).store(value, std::memory_order_relaxed);
    if (!lines_too) return;
    const auto position = static_cast<uint32_t>(random() % 64);
    Line& line = shared.lines[side][position];
    line.extra =
        random() % 2 == 0 ? static_cast<uint32_t>(random()) : static_cast<uint32_t>(random() % 20000);
    uint64_t payload[2] = {random() % 2 == 0 ? 0 : random(), random()};
    std::memcpy(line.payload, payload, sizeof payload);
    line.word.store(
        make_word(position, static_cast<uint32_t>(random() % 10 + 1), static_cast<uint32_t>(random() % 8),
                  static_cast<uint32_t>(random() % 3 == 0 ? random() % 0xFFFFFF : random() % 64)),
        std::memory_order_release);
}

class Scribbling : public testing::TestWithParam<uint16_t> {};

TEST_P(Scribbling, NeverCrashesNorTouchesMemoryOutside) {
    std::mt19937_64 random(GetParam());
    for (int round = 0; round < 25; ++round) {
        SCOPED_TRACE(round);
        Matcher matcher;
        matcher.same_process = false;
        const char* const cross = round % 2 == 0 ? "auto" : "off";
        TestNic nic_a(matcher), nic_b(matcher, {{"cross_copy", cross}});
        TestVi a(nic_a, GetParam()), b(nic_b, GetParam()), witness_a(nic_a, GetParam()),
            witness_b(nic_b, GetParam());
        b.core.traits.rdma_write = b.core.traits.rdma_read = 0;
        connect(a, b);
        connect(witness_a, witness_b);
        std::memset(b.data(), 0xA5, 1 << 20);
        for (uint32_t i = 0; i < 16; ++i) post_guarded(b, i);
        std::atomic<bool> stop{false};
        KeptSegment kept(a);
        std::thread hostile([&] {
            while (!stop) scribble(kept, random, round % 3 != 0);
        });
        for (int i = 0; i < 200 && b.state() == VIP_STATE_CONNECTED; ++i) {
            if (i % 4 == 0) b.send(b.data() + 100 * kSlot, static_cast<uint32_t>(i * 37 % 9000));
            if (i % 50 == 0)
                b.post_send(
                    b.make_rdma(VIP_CONTROL_OP_RDMAWRITE, b.data() + 100 * kSlot, 64, a.data(), a.region));
            b.recv_done();
            b.send_done();
        }
        stop = true;
        hostile.join();
        EXPECT_TRUE(guards_intact(b, 16));
        witness_b.receive(witness_b.data(), 8);
        witness_a.send(witness_a.data(), 8);
        EXPECT_NE(witness_b.wait_recv(), nullptr) << "another connection of the same peers is unharmed";
    }
}

INSTANTIATE_TEST_SUITE_P(Paramnet, Scribbling, testing::ValuesIn(kLevels));

TEST(Hostile, AScribbledHubDelaysAndNothingMore) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, VIP_SERVICE_RELIABLE_DELIVERY), b(nic_b, VIP_SERVICE_RELIABLE_DELIVERY);
    connect(a, b);
    std::atomic<bool> stop{false};
    std::thread hostile([&] {
        std::mt19937_64 random(5);
        auto* words = reinterpret_cast<uint64_t*>(nic_b.context->hub);
        while (!stop) {
            std::atomic_ref(words[random() % (sizeof(Hub) / 8)]).store(random() % 2 == 0 ? 0 : random());
            std::this_thread::yield();
        }
    });
    for (int i = 0; i < 20; ++i) {
        b.receive(b.data(), 8);
        a.send(a.data(), 8);
        VIP_DESCRIPTOR* d = nullptr;
        const uint32_t key = ops().sleep_begin(nic_b.context);
        EXPECT_TRUE(eventually([&] {
            nic_b.poll();
            if (b.core.recv.head_complete()) d = b.recv_done();
            if (d == nullptr) ops().sleep_wait(nic_b.context, key, INT64_MAX);
            return d != nullptr;
        }));
        ops().sleep_end(nic_b.context);
    }
    stop = true;
    hostile.join();
}

// Another peer of the same context has put the words of the hub back, as if there had been no ring.
TEST(Hostile, ARingTakenOutOfTheHubIsFoundByPolling) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, VIP_SERVICE_RELIABLE_DELIVERY), b(nic_b, VIP_SERVICE_RELIABLE_DELIVERY);
    connect(a, b);
    Hub& hub = *nic_b.context->hub;
    b.receive(b.data(), 8);
    nic_b.poll();
    const uint32_t rings = hub.rings.load();
    a.send(a.data(), 8);
    ASSERT_NE(hub.rings.load(), rings) << "a VI without traffic is rung for";
    hub.rings = rings;
    for (auto& doorbells : hub.doorbells) doorbells = 0;
    for (int polls = 0; polls < 2 << 14 && !b.core.recv.head_complete(); ++polls) nic_b.poll();
    EXPECT_TRUE(b.core.recv.head_complete());
}

// A bit in the hub that no end record agrees with is not followed, and stands in the way of no ring.
TEST(Hostile, ABitOfTheHubAloneRingsForNoEndpoint) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, VIP_SERVICE_RELIABLE_DELIVERY), b(nic_b, VIP_SERVICE_RELIABLE_DELIVERY);
    connect(a, b);
    nic_b.poll();
    for (auto& doorbells : nic_b.context->hub->doorbells) doorbells = ~uint64_t{0};
    const uint32_t rings = nic_b.context->hub->rings.load();
    b.receive(b.data(), 8);
    a.send(a.data(), 8);
    EXPECT_NE(nic_b.context->hub->rings.load(), rings) << "the peer rings although the bit was set";
    nic_b.poll();
    EXPECT_TRUE(b.core.recv.head_complete());
}

TEST(Hostile, JoinedMailsThatDoNotFitAreRefused) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, VIP_SERVICE_RELIABLE_DELIVERY);
    const auto attempt = [&](const std::function<void(kagent::Joined&, Mail&)>& spoil) {
        ConnectOp* op = begin_connect(a, "never matched");
        Matcher::Waiting waiting;
        {
            const std::lock_guard lock(matcher.mutex);
            waiting = matcher.waiting.begin()->second;
            matcher.waiting.clear();
        }
        JoinGrant grant;
        EXPECT_EQ(viaduct_provider_v1.control.join(NicInfo(), NicInfo(), nic_a.settings, &grant), Status::ok);
        Mail mail = joined_mail(nic_b.agent, waiting.request, grant.segment_fd, 1, true, ::getpid());
        ::close(grant.segment_fd);
        kagent::Joined joined;
        EXPECT_TRUE(mail.get(&joined));
        spoil(joined, mail);
        if (mail.payload.size() == sizeof joined) mail.set(joined);
        nic_a.agent.answer(waiting.ticket, std::move(mail));
        ConnectResult result;
        const Status status = ops().connect_await(op, kNever, &result);
        EXPECT_EQ(ops().connect_finish(op, &result), status);
        return status;
    };
    EXPECT_EQ(attempt([](kagent::Joined&, Mail&) {}), Status::ok);
    EXPECT_NE(attempt([](kagent::Joined& j, Mail&) { j.side = 2; }), Status::ok);
    EXPECT_NE(attempt([](kagent::Joined& j, Mail&) { j.segment_bytes -= 1; }), Status::ok);
    EXPECT_NE(attempt([](kagent::Joined& j, Mail&) { j.peer_endpoint_words[kEndSlot] = kMaxVi; }),
              Status::ok);
    EXPECT_NE(attempt([](kagent::Joined& j, Mail&) { j.peer_context_id = 99, j.descriptor_count = 1; }),
              Status::ok);
    EXPECT_NE(
        attempt([](kagent::Joined& j, Mail&) {
            j.peer_context_id = 98, j.peer_words[kWordVersion] = kLayoutVersion + 1;
        }),
        Status::ok);
    EXPECT_NE(attempt([](kagent::Joined&, Mail& m) { m.payload.pop_back(); }), Status::ok);
    EXPECT_NE(attempt([](kagent::Joined&, Mail& m) { m.descriptors.clear(); }), Status::ok);
    EXPECT_NE(attempt([](kagent::Joined& j, Mail& m) {
                  j.peer_context_id = 97;  // the process alone may be missing
                  m.descriptors.pop_back();
                  m.descriptors.pop_back();
              }),
              Status::ok);
    EXPECT_NE(attempt([](kagent::Joined&, Mail& m) { std::swap(m.descriptors[0], m.descriptors[2]); }),
              Status::ok);
    EXPECT_EQ(attempt([](kagent::Joined& j, Mail& m) {
                  j.peer_context_id = 96;  // of another user: it keeps its arena
                  j.descriptor_count = 2;
                  m.descriptors.erase(m.descriptors.begin() + 3);
              }),
              Status::ok);
}

// A peer that says it is touching our memory, and never stops saying so, delays us once.
TEST(Hostile, BusyForEverDelaysOnce) {
    Matcher matcher;
    matcher.same_process = false;
    TestNic nic_a(matcher), nic_b(matcher);
    constexpr int kVis = 10;
    std::vector<std::unique_ptr<TestVi>> hostile, ours;
    std::vector<std::unique_ptr<KeptSegment>> kept;
    for (int i = 0; i < kVis; ++i) {
        hostile.push_back(std::make_unique<TestVi>(nic_a, VIP_SERVICE_RELIABLE_DELIVERY, 4096));
        ours.push_back(std::make_unique<TestVi>(nic_b, VIP_SERVICE_RELIABLE_DELIVERY, 4096));
        connect(*hostile.back(), *ours.back());
        kept.push_back(std::make_unique<KeptSegment>(*hostile.back()));
        kept.back()->shared->ends[kept.back()->side].busy_send = kBusySomewhere;
        kept.back()->shared->ends[kept.back()->side].busy_recv = kBusySomewhere;
    }
    std::vector<uint32_t> regions(kVis);
    for (uint32_t& region : regions) region = nic_b.add_region(ours[0]->data(), 64);
    const auto took_ms = [](const std::function<void()>& work) {
        tests::RunningTime time;
        work();
        return std::pair(time.wall_ns() / 1'000'000, time.running_ns() / 1'000'000);
    };
    EXPECT_GE(took_ms([&] { nic_b.remove_region(regions[0]); }).first, 900) << "a copy under way may be awaited";
    const int64_t others = took_ms([&] {
        for (int i = 1; i < kVis; ++i) nic_b.remove_region(regions[static_cast<size_t>(i)]);
        for (auto& vi : ours) vi->disconnect();
    }).second;
    EXPECT_LT(others, 1500) << "nineteen calls, each of a few hundredths of a second";
}

}  // namespace
}  // namespace viaduct::paramnet::test
