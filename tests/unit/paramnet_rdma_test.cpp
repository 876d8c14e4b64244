// SPDX-License-Identifier: BSD-2-Clause
// RDMA by all three ways to the target's memory: the same process, a copy between processes, and served by
// the target. The target calls nothing.
#include "paramnet_fixture.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "providers/paramnet/cross_copy.hpp"

namespace viaduct::paramnet::test {
namespace {

using LevelAndReach = std::tuple<uint16_t, Reach>;

class Rdma : public testing::TestWithParam<LevelAndReach> {
protected:
    uint16_t level() const { return std::get<0>(GetParam()); }
    Reach reach() const { return std::get<1>(GetParam()); }
    bool unreliable() const { return level() == VIP_SERVICE_UNRELIABLE; }
    bool reception() const { return level() == VIP_SERVICE_RELIABLE_RECEPTION; }
};

TEST_P(Rdma, WritesArriveWithoutACallOfTheTarget) {
    TestPair pair(level(), reach(), 5u << 20);
    uint32_t seed = 0;
    for (const uint32_t size : {1u, 4u, 8u, 63u, 64u, 65u, 4000u, 8192u, 100000u, 1u << 20, 4u << 20}) {
        SCOPED_TRACE(size);
        fill(pair.a.data(), size, ++seed);
        std::byte* target = pair.b.data() + 5;
        target[size] = std::byte{0xEE};
        pair.a.post_send(
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), size, target, pair.b.region));
        VIP_DESCRIPTOR* d = pair.a.wait_send();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE});
        EXPECT_EQ(d->CS.Length, size);
        EXPECT_TRUE(eventually([&] { return filled(target, size, seed); }));
        EXPECT_EQ(target[size], std::byte{0xEE});
    }
}

TEST_P(Rdma, WriteWithImmediateTakesAReceiveAndLeavesItsSegmentsAlone) {
    TestPair pair(level(), reach());
    std::memset(pair.b.data(), 0x11, 100);
    pair.b.receive(pair.b.data(), 100);
    fill(pair.a.data(), 3000, 4);
    VIP_DESCRIPTOR* d = pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, pair.a.data(),
                                         3000, pair.b.data() + 1000, pair.b.region);
    d->CS.ImmediateData = 0xDEADBEEF;
    pair.a.post_send(d);
    VIP_DESCRIPTOR* got = pair.b.wait_recv();
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(status_of(got),
              uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE});
    EXPECT_EQ(got->CS.Length, 3000u);
    EXPECT_EQ(got->CS.ImmediateData, 0xDEADBEEFu);
    EXPECT_TRUE(filled(pair.b.data() + 1000, 3000, 4)) << "in place when the receive completes";
    for (int i = 0; i < 100; ++i) ASSERT_EQ(pair.b.data()[i], std::byte{0x11});
    ASSERT_NE(pair.a.wait_send(), nullptr);
}

// A descriptor may lie in memory that the peer may write to. What has completed is told as it was.
TEST_P(Rdma, ACompletionIsToldAsItWasWhateverIsWrittenOverItsDescriptor) {
    TestPair pair(level(), reach());
    pair.b.receive(pair.b.data(), 8);
    pair.a.send(pair.a.data(), 8);
    WorkQueue& queue = pair.b.core.recv;
    ASSERT_TRUE(eventually([&] {
        pair.b.nic.poll();
        return queue.head_complete();
    }));
    VIP_DESCRIPTOR* received = pair.b.descriptor(true, 0);
    const VIP_UINT32 forged = VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR;
    std::memcpy(pair.a.data() + 64, &forged, sizeof forged);
    pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data() + 64, sizeof forged,
                                      &received->CS.Status, pair.b.region));
    ASSERT_TRUE(eventually([&] { return status_of(received) == forged; }));
    bool in_error = true;
    queue.lock.lock();
    EXPECT_EQ(queue.dequeue(&in_error), received);
    queue.lock.unlock();
    EXPECT_FALSE(in_error) << "what the fixture takes for a mistake unless told that the peer writes";
}

TEST_P(Rdma, ASendBehindAWriteFindsItDone) {
    TestPair pair(level(), reach());
    for (uint32_t i = 0; i < 200; ++i) {
        pair.b.receive(pair.b.data(), 8);
        fill(pair.a.data() + 100, 20000, i);
        pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data() + 100, 20000,
                                          pair.b.data() + 100, pair.b.region));
        pair.a.send(pair.a.data(), 8);
        ASSERT_NE(pair.b.wait_recv(), nullptr);
        ASSERT_TRUE(filled(pair.b.data() + 100, 20000, i));
        ASSERT_NE(pair.a.wait_send(), nullptr);
        ASSERT_NE(pair.a.wait_send(), nullptr);
    }
}

TEST_P(Rdma, RefusedWritesTouchNothing) {
    struct Case {
        const char* name;
        std::function<void(TestVi& target, const std::byte** address, uint32_t* handle)> spoil;
    };
    const Case cases[] = {
        {"unknown handle",
         [](TestVi&, const std::byte**, uint32_t* handle) { *handle += 1u << kRegionIndexBits; }},
        {"beyond the end",
         [](TestVi& t, const std::byte** address, uint32_t*) { *address = t.data() + (1 << 20) - 99; }},
        {"before the start",
         [](TestVi& t, const std::byte** address, uint32_t*) { *address = t.data() - (1 << 30); }},
        {"region not enabled",
         [](TestVi& t, const std::byte** address, uint32_t* handle) {
             *handle = t.nic.add_region(const_cast<std::byte*>(*address), 100, kRegionRdmaRead);
         }},
        {"another tag",
         [](TestVi& t, const std::byte** address, uint32_t* handle) {
             *handle = t.nic.add_region(const_cast<std::byte*>(*address), 100, kRegionRdmaWrite, 7);
         }},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Matcher matcher;
        matcher.same_process = reach() == Reach::same_process;
        const std::map<std::string, std::string> settings = {
            {"cross_copy", reach() == Reach::none ? "off" : "auto"}};
        TestNic nic_a(matcher, settings), nic_b(matcher, settings);
        TestVi a(nic_a, level()), b(nic_b, level());
        b.core.ptag = 3;
        connect(a, b);
        std::memset(b.data(), 0x33, 1 << 20);
        const std::byte* address = b.data();
        uint32_t handle = b.region;
        c.spoil(b, &address, &handle);
        a.post_send(a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, a.data(), 100, address, handle));
        EXPECT_TRUE(b.is_told(VIP_ERROR_RDMAW_PROT));
        VIP_DESCRIPTOR* d = a.wait_send();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK,
                  reception() ? uint32_t{VIP_STATUS_RDMA_PROT_ERROR} : 0u);
        EXPECT_TRUE(a.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
        EXPECT_TRUE(b.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
        for (int i = 0; i < 1 << 20; ++i) ASSERT_EQ(b.data()[i], std::byte{0x33});
    }
}

TEST_P(Rdma, AViThatDoesNotAllowItRefuses) {
    Matcher matcher;
    matcher.same_process = reach() == Reach::same_process;
    const std::map<std::string, std::string> settings = {
        {"cross_copy", reach() == Reach::none ? "off" : "auto"}};
    TestNic nic_a(matcher, settings), nic_b(matcher, settings);
    TestVi a(nic_a, level()), b(nic_b, level());
    b.core.traits.rdma_write = 0;
    connect(a, b);
    a.post_send(a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, a.data(), 100, b.data(), b.region));
    EXPECT_TRUE(b.is_told(VIP_ERROR_RDMAW_PROT));
}

TEST_P(Rdma, ReadsFetchWithoutACallOfTheTarget) {
    if (unreliable()) return;  // spec/reliability 6.1: there is none, and check_send refuses it
    TestPair pair(level(), reach(), 5u << 20);
    uint32_t seed = 100;
    for (const uint32_t size : {1u, 8u, 64u, 8192u, 8193u, 300000u, 4u << 20}) {
        SCOPED_TRACE(size);
        fill(pair.b.data() + 3, size, ++seed);
        pair.a.post_send(
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data(), size, pair.b.data() + 3, pair.b.region));
        VIP_DESCRIPTOR* d = nullptr;
        ASSERT_TRUE(eventually([&] {
            pair.a.recv_done();  // as VipSendDone does: the answer comes in on the receive side
            return (d = pair.a.send_done()) != nullptr;
        }));
        EXPECT_EQ(status_of(d), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ});
        EXPECT_EQ(d->CS.Length, size);
        EXPECT_TRUE(filled(pair.a.data(), size, seed));
    }
}

TEST_P(Rdma, ReadsAndSendsCompleteInPostingOrder) {
    if (unreliable()) return;
    TestPair pair(level(), reach());
    constexpr uint32_t kRounds = 100;
    for (uint32_t i = 0; i < kRounds; ++i) pair.b.receive(pair.b.data() + 600000, 100);
    fill(pair.b.data(), 20000, 8);
    std::vector<VIP_DESCRIPTOR*> posted;
    for (uint32_t i = 0; i < kRounds; ++i) {
        VIP_DESCRIPTOR* read =
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data(), 20000, pair.b.data(), pair.b.region);
        pair.a.post_send(read);
        VIP_DESCRIPTOR* send = pair.a.make(false, pair.a.data() + 30000, 20, VIP_CONTROL_QFENCE);
        pair.a.post_send(send);
        posted.push_back(read);
        posted.push_back(send);
    }
    for (VIP_DESCRIPTOR* expected : posted) {
        VIP_DESCRIPTOR* d = nullptr;
        ASSERT_TRUE(eventually([&] {
            pair.a.recv_done();
            return (d = pair.a.send_done()) != nullptr;
        }));
        ASSERT_EQ(d, expected);
        ASSERT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, 0u);
    }
    EXPECT_TRUE(filled(pair.a.data(), 20000, 8));
}

TEST_P(Rdma, RefusedReadsBreakTheConnection) {
    if (unreliable()) return;
    TestPair pair(level(), reach());
    pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data(), 100, pair.b.data(),
                                      pair.b.region + (1u << 17)));
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RDMAR_PROT));
    VIP_DESCRIPTOR* d = nullptr;
    ASSERT_TRUE(eventually([&] {
        pair.a.recv_done();
        return (d = pair.a.send_done()) != nullptr;
    }));
    EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_RDMA_PROT_ERROR});
    EXPECT_TRUE(pair.a.reaches(VIP_STATE_ERROR));
    EXPECT_TRUE(pair.b.reaches(VIP_STATE_ERROR));
}

TEST_P(Rdma, ARefusedWriteWithImmediateIsToldByTheReceive) {
    TestPair pair(level(), reach());
    pair.b.receive(pair.b.data(), 10);
    pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, pair.a.data(), 100,
                                      pair.b.data(), pair.b.region + (1u << 17)));
    VIP_DESCRIPTOR* d = pair.b.wait_recv();
    ASSERT_NE(d, nullptr);
    EXPECT_EQ(status_of(d) & (VIP_STATUS_ERROR_MASK | VIP_STATUS_OP_MASK),
              uint32_t{VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_RDMA_PROT_ERROR});
    EXPECT_TRUE(pair.b.errors().empty());
}

// The pattern of programs that poll memory: data first, the flag behind it last.
TEST_P(Rdma, TheLastBytesBecomeVisibleLast) {
    TestPair pair(level(), reach());
    constexpr uint32_t kWords = 700;
    auto* target = reinterpret_cast<std::atomic<uint32_t>*>(pair.b.data());
    std::atomic<uint32_t> rounds{0}, wrong{0};
    std::atomic<bool> stop{false};
    std::thread watcher([&] {
        uint32_t expected = 1;
        while (!stop) {
            if (target[kWords - 1].load(std::memory_order_acquire) != expected) continue;
            for (uint32_t i = 0; i + 1 < kWords; ++i)
                if (target[i].load(std::memory_order_relaxed) != expected) ++wrong;
            rounds = expected++;
        }
    });
    for (uint32_t round = 1; round <= 200; ++round) {
        auto* words = reinterpret_cast<uint32_t*>(pair.a.data());
        for (uint32_t i = 0; i < kWords; ++i) words[i] = round;
        pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), kWords * 4, pair.b.data(),
                                          pair.b.region));
        EXPECT_NE(pair.a.wait_send(), nullptr);
        if (!eventually([&] { return rounds == round; })) break;
    }
    stop = true;
    watcher.join();
    EXPECT_EQ(rounds, 200u);
    EXPECT_EQ(wrong, 0u);
}

// After deregistration returns, the memory is ours alone.
TEST_P(Rdma, DeregistrationEndsAllWriting) {
    TestPair pair(VIP_SERVICE_UNRELIABLE, reach());
    std::atomic<bool> stop{false};
    std::atomic<uint32_t> handle{0};
    std::byte* target = pair.b.data();
    std::thread writer([&] {
        std::memset(pair.a.data(), 0x77, 200000);
        while (!stop) {
            const uint32_t now = handle;
            if (now == 0) continue;
            pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), 200000, target, now));
            pair.a.wait_send();
        }
    });
    uint32_t late = 0;
    for (int round = 0; round < 50; ++round) {
        const uint32_t made = pair.nic_b.add_region(target, 200000);
        handle = made;
        eventually(
            [&] { return std::atomic_ref(reinterpret_cast<uint8_t&>(target[199999])).load() == 0x77; });
        pair.nic_b.remove_region(made);
        std::memset(target, 0, 200000);
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        for (int i = 0; i < 200000; ++i) late += target[i] != std::byte{0};
        std::memset(target, 0, 200000);
    }
    stop = true;
    writer.join();
    EXPECT_EQ(late, 0u);
}

TEST_P(Rdma, DisconnectEndsAllWriting) {
    for (int round = 0; round < 10; ++round) {
        TestPair pair(level(), reach());
        std::atomic<bool> stop{false};
        std::thread writer([&] {
            std::memset(pair.a.data(), 0x77, 200000);
            while (!stop && pair.a.state() == VIP_STATE_CONNECTED) {
                pair.a.post_send(pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), 200000,
                                                  pair.b.data(), pair.b.region));
                for (int i = 0; i < 10000 && pair.a.send_done() == nullptr; ++i) {
                }
            }
        });
        eventually([&] {
            return std::atomic_ref(reinterpret_cast<uint8_t&>(pair.b.data()[199999])).load() == 0x77;
        });
        pair.b.disconnect();
        std::memset(pair.b.data(), 0, 200000);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        uint32_t late = 0;
        for (int i = 0; i < 200000; ++i) late += pair.b.data()[i] != std::byte{0};
        EXPECT_EQ(late, 0u);
        stop = true;
        writer.join();
    }
}

// Memory that its program has registered, and then unmapped or protected without a call of the library. It lies far
// from where the system puts what it maps, so that nothing else comes to lie in the hole.
class Vanishing {
public:
    Vanishing(size_t bytes, uintptr_t place)
        : bytes_(bytes),
          start_(static_cast<std::byte*>(::mmap(reinterpret_cast<void*>(place << 32), bytes,
                                                PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0))) {}
    ~Vanishing() { ::munmap(start_, bytes_); }
    std::byte* start() const { return start_; }
    void lose(size_t from, size_t bytes) const { ::munmap(start_ + from, bytes); }
    void protect(size_t from, size_t bytes, int how) const { ::mprotect(start_ + from, bytes, how); }
    // The same places, but only the first half of the file behind them is there.
    void become_a_short_file() const {
        const int file = ::memfd_create("short", MFD_CLOEXEC);
        ASSERT_EQ(::ftruncate(file, static_cast<off_t>(bytes_ / 2)), 0);
        ASSERT_NE(::mmap(start_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), MAP_FAILED);
        ::close(file);
    }

private:
    size_t bytes_;
    std::byte* start_;
};

class LostMemory : public Rdma {
protected:
    static constexpr uint32_t kBytes = 1 << 20;
    const Vanishing memory_{kBytes, 0x2000};
    TestPair pair_{level(), reach()};
    const uint32_t region_ = pair_.nic_b.add_region(memory_.start(), kBytes);

    VIP_DESCRIPTOR* write(uint32_t bytes, uint32_t control = 0) {
        VIP_DESCRIPTOR* d = pair_.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE | control, pair_.a.data(), bytes,
                                              memory_.start(), region_);
        pair_.a.post_send(d);
        return d;
    }
    void expect_level_of_harm() {
        VIP_DESCRIPTOR* d = pair_.a.wait_send();
        ASSERT_NE(d, nullptr);
        const uint32_t error = status_of(d) & VIP_STATUS_ERROR_MASK;
        if (level() == VIP_SERVICE_RELIABLE_DELIVERY && error != 0) {
            // Where the end of the connection finds it half sent.
            EXPECT_EQ(error, uint32_t{VIP_STATUS_DESC_FLUSHED_ERROR});
        } else {
            EXPECT_EQ(error, reception() ? uint32_t{VIP_STATUS_RDMA_PROT_ERROR} : 0u);
        }
        EXPECT_TRUE(pair_.a.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
        EXPECT_TRUE(pair_.b.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
    }
    // At Unreliable nothing has happened to the connection.
    void expect_next_write_arrives() {
        if (!unreliable()) return;
        fill(pair_.a.data(), 40000, 9);
        pair_.a.post_send(pair_.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair_.a.data(), 40000, pair_.b.data(),
                                            pair_.b.region));
        EXPECT_NE(pair_.a.wait_send(), nullptr);
        EXPECT_TRUE(eventually([&] { return filled(pair_.b.data(), 40000, 9); }));
    }
};

TEST_P(LostMemory, AWriteToItIsRefusedAndTheProcessLives) {
    memory_.lose(0, kBytes);
    write(8);
    EXPECT_TRUE(pair_.b.is_told(VIP_ERROR_RDMAW_PROT));
    expect_level_of_harm();
    expect_next_write_arrives();
}

TEST_P(LostMemory, AWriteThatBeginsBeforeItIsRefusedOnce) {
    memory_.lose(kBytes / 2, kBytes / 2);
    write(kBytes);
    EXPECT_TRUE(pair_.b.is_told(VIP_ERROR_RDMAW_PROT));
    expect_level_of_harm();
    expect_next_write_arrives();
    EXPECT_EQ(pair_.b.errors().size(), 1u);
}

TEST_P(LostMemory, AWriteWithImmediateDataTellsItInOneReceive) {
    for (int i = 0; i < 3; ++i) pair_.b.receive(pair_.b.data(), 8);
    memory_.lose(kBytes / 2, kBytes / 2);
    for (const uint32_t bytes : {kBytes, 8u}) {
        if (bytes == 8) memory_.lose(0, 4096);
        if (pair_.a.state() != VIP_STATE_CONNECTED) break;
        write(bytes, VIP_CONTROL_IMMEDIATE)->CS.ImmediateData = bytes;
        VIP_DESCRIPTOR* d = pair_.b.wait_recv();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE |
                                         VIP_STATUS_IMMEDIATE | VIP_STATUS_RDMA_PROT_ERROR});
        EXPECT_TRUE(pair_.b.errors().empty());
        expect_level_of_harm();
    }
    expect_next_write_arrives();
    if (unreliable()) {
        EXPECT_EQ(pair_.b.recv_done(), nullptr) << "one receive each";
    }
    EXPECT_TRUE(pair_.b.errors().empty());
}

// The target calls nothing: a thread of ours takes the message.
TEST_P(LostMemory, AMessageIntoItFailsItsReceiveAndTheProcessLives) {
    memory_.lose(kBytes / 2, kBytes / 2);
    for (const uint32_t bytes : {8u, 6000u, kBytes}) {
        SCOPED_TRACE(bytes);
        TestPair pair(level(), reach());
        const uint32_t region = pair.nic_b.add_region(memory_.start(), kBytes);
        VIP_DESCRIPTOR* d =
            pair.b.make(true, memory_.start() + (bytes == kBytes ? 0 : kBytes - bytes), bytes);
        d->DS[0].Local.Handle = region;
        pair.b.post_recv(d);
        pair.a.send(pair.a.data(), bytes);
        EXPECT_TRUE(eventually([&] { return (status_of(d) & VIP_STATUS_DONE) != 0; }));
        const uint32_t error = status_of(d) & VIP_STATUS_ERROR_MASK;
        if (bytes == kBytes && reach() == Reach::cross_copy && !unreliable() && error != 0) {
            // Where it is fetched from the sender, that fails, and the connection with it.
            EXPECT_TRUE(error == VIP_STATUS_PROTECTION_ERROR || error == VIP_STATUS_DESC_FLUSHED_ERROR);
        } else {
            EXPECT_EQ(error, uint32_t{VIP_STATUS_PROTECTION_ERROR});
        }
        EXPECT_TRUE(pair.b.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
        if (!unreliable()) continue;
        pair.b.receive(pair.b.data(), 100);
        pair.a.send(pair.a.data(), 100);
        VIP_DESCRIPTOR* next = nullptr;
        ASSERT_EQ(pair.b.wait_recv(), d);
        ASSERT_NE(next = pair.b.wait_recv(), nullptr);
        EXPECT_EQ(status_of(next), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE});
    }
}

// It is mapped, but a store to it is a fault.
TEST_P(LostMemory, AMessageIntoWhatMayNotBeWrittenFailsItsReceive) {
    for (const bool file : {false, true}) {
        for (const uint32_t bytes : {8u, 6000u}) {
            SCOPED_TRACE(testing::Message() << (file ? "short file, " : "read-only, ") << bytes);
            const Vanishing memory(kBytes, 0x2001);
            TestPair pair(level(), reach());
            const uint32_t region = pair.nic_b.add_region(memory.start(), kBytes);
            if (file) {
                memory.become_a_short_file();
            } else {
                memory.protect(kBytes / 2, kBytes / 2, PROT_READ);
            }
            VIP_DESCRIPTOR* d = pair.b.make(true, memory.start() + kBytes - bytes, bytes);
            d->DS[0].Local.Handle = region;
            pair.b.post_recv(d);
            pair.a.send(pair.a.data(), bytes);
            EXPECT_TRUE(eventually([&] { return (status_of(d) & VIP_STATUS_DONE) != 0; }));
            EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_PROTECTION_ERROR});
            EXPECT_TRUE(pair.b.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
        }
    }
}

TEST_P(LostMemory, AReadOfItIsRefusedAndTheProcessLives) {
    if (unreliable()) return;
    memory_.lose(kBytes / 2, kBytes / 2);
    pair_.a.post_send(
        pair_.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair_.a.data(), kBytes, memory_.start(), region_));
    EXPECT_TRUE(pair_.b.is_told(VIP_ERROR_RDMAR_PROT));
    VIP_DESCRIPTOR* d = nullptr;
    ASSERT_TRUE(eventually([&] {
        pair_.a.recv_done();
        return (d = pair_.a.send_done()) != nullptr;
    }));
    EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_RDMA_PROT_ERROR});
    EXPECT_TRUE(pair_.a.reaches(VIP_STATE_ERROR));
    EXPECT_TRUE(pair_.b.reaches(VIP_STATE_ERROR));
}

// What the initiator has posted and then unmapped, where a thread of ours goes on with it. The test polls
// nothing: it would touch that memory itself.
class LostAtInitiator : public LostMemory {
protected:
    const uint32_t here_ = pair_.nic_a.add_region(memory_.start(), kBytes);

    void expect_error(const VIP_DESCRIPTOR* d, uint32_t error) {
        EXPECT_TRUE(eventually([&] { return (status_of(d) & VIP_STATUS_DONE) != 0; }));
        EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, error);
        EXPECT_TRUE(pair_.a.reaches(VIP_STATE_ERROR));
        EXPECT_TRUE(pair_.b.reaches(VIP_STATE_ERROR));
    }
};

TEST_P(LostAtInitiator, AReadIntoItFails) {
    if (unreliable() || reach() == Reach::same_process) return;  // read in the caller's own call
    VIP_DESCRIPTOR* d =
        pair_.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, memory_.start(), kBytes, pair_.b.data(), pair_.b.region);
    d->DS[1].Local.Handle = here_;
    {
        const TakesNothing b(pair_.b);  // it might be done before the memory is unmapped
        pair_.a.post_send(d);
        memory_.lose(kBytes / 2, kBytes / 2);
    }
    expect_error(d, VIP_STATUS_PROTECTION_ERROR);
}

// Through the ring, or fetched by the receiver within the same process.
TEST_P(LostAtInitiator, AMessageOutOfItFails) {
    pair_.b.receive(pair_.b.data(), kBytes);
    VIP_DESCRIPTOR* d = pair_.a.make(false, memory_.start(), kBytes);
    d->DS[0].Local.Handle = here_;
    {
        const TakesNothing b(pair_.b);
        pair_.a.post_send(d);
        ASSERT_EQ(status_of(d) & VIP_STATUS_DONE, 0u) << "it does not fit the ring";
        memory_.lose(kBytes / 2, kBytes / 2);
    }
    expect_error(d, reach() == Reach::none ? VIP_STATUS_PROTECTION_ERROR : VIP_STATUS_DESC_FLUSHED_ERROR);
}

TEST_P(LostAtInitiator, AShortMessageThatWaitsForRoomFails) {
    if (reach() != Reach::none) return;  // one way of short messages is enough
    for (uint32_t i = 0; i < 600; ++i) pair_.b.receive(pair_.b.data(), 8);
    VIP_DESCRIPTOR* d = nullptr;
    {
        const TakesNothing b(pair_.b);
        for (uint32_t i = 0; i < 300; ++i) pair_.a.send(pair_.a.data(), 8);  // more than the lane has lines
        d = pair_.a.make(false, memory_.start(), 8);
        d->DS[0].Local.Handle = here_;
        pair_.a.post_send(d);
        memory_.lose(0, kBytes);
    }
    EXPECT_TRUE(eventually([&] { return (status_of(d) & VIP_STATUS_DONE) != 0; }));
    EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_PROTECTION_ERROR});
    EXPECT_TRUE(pair_.a.reaches(unreliable() ? VIP_STATE_CONNECTED : VIP_STATE_ERROR));
}

TEST_P(LostAtInitiator, AShortMessageOutOfWhatMayNotBeReadFails) {
    if (reach() != Reach::none) return;
    for (uint32_t i = 0; i < 600; ++i) pair_.b.receive(pair_.b.data(), 8);
    VIP_DESCRIPTOR* d = nullptr;
    {
        const TakesNothing b(pair_.b);
        for (uint32_t i = 0; i < 300; ++i) pair_.a.send(pair_.a.data(), 8);
        d = pair_.a.make(false, memory_.start(), 8);
        d->DS[0].Local.Handle = here_;
        pair_.a.post_send(d);
        memory_.protect(0, kBytes, PROT_NONE);
    }
    EXPECT_TRUE(eventually([&] { return (status_of(d) & VIP_STATUS_DONE) != 0; }));
    EXPECT_EQ(status_of(d) & VIP_STATUS_ERROR_MASK, uint32_t{VIP_STATUS_PROTECTION_ERROR});
}

std::string way_name(const testing::TestParamInfo<LevelAndReach>& way) {
    static const char* const kMethods[] = {"Served", "SameProcess", "CrossCopy"};
    return "Level" + std::to_string(std::get<0>(way.param)) + kMethods[static_cast<int>(std::get<1>(way.param))];
}

INSTANTIATE_TEST_SUITE_P(Paramnet, Rdma,
                         testing::Combine(testing::ValuesIn(kLevels),
                                          testing::Values(Reach::same_process, Reach::cross_copy,
                                                          Reach::none)),
                         way_name);

// Within one process the initiator touches it in its own call, as a memcpy would.
INSTANTIATE_TEST_SUITE_P(Paramnet, LostMemory,
                         testing::Combine(testing::ValuesIn(kLevels),
                                          testing::Values(Reach::cross_copy, Reach::none)),
                         way_name);

INSTANTIATE_TEST_SUITE_P(Paramnet, LostAtInitiator,
                         testing::Combine(testing::ValuesIn(kLevels),
                                          testing::Values(Reach::same_process, Reach::none)),
                         way_name);

TEST(CopyBetweenProcesses, ProbeTellsRightFromWrong) {
    uint64_t word = 0x123456789ABCDEF0u;
    EXPECT_TRUE(probe_process(::getpid(), reinterpret_cast<uintptr_t>(&word), word));
    EXPECT_FALSE(probe_process(::getpid(), reinterpret_cast<uintptr_t>(&word), word + 1));
    EXPECT_FALSE(probe_process(::getpid(), 0, word));
    EXPECT_FALSE(probe_process(0, reinterpret_cast<uintptr_t>(&word), word));
}

}  // namespace
}  // namespace viaduct::paramnet::test
