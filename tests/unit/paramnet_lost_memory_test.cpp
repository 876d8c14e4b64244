// SPDX-License-Identifier: BSD-2-Clause
// RDMA and messages into or out of registered memory that its program has unmapped or protected: they fail, and the
// process lives.
#include <sys/mman.h>
#include <unistd.h>

#include "paramnet_rdma_testing.hpp"

namespace viaduct::paramnet::test {
namespace {

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

class LostMemory : public EachLevelAndReach {
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

// Within one process the initiator touches it in its own call, as a memcpy would.
INSTANTIATE_TEST_SUITE_P(Paramnet, LostMemory,
                         testing::Combine(testing::ValuesIn(kLevels),
                                          testing::Values(Reach::cross_copy, Reach::none)),
                         way_name);

INSTANTIATE_TEST_SUITE_P(Paramnet, LostAtInitiator,
                         testing::Combine(testing::ValuesIn(kLevels),
                                          testing::Values(Reach::same_process, Reach::none)),
                         way_name);

}  // namespace
}  // namespace viaduct::paramnet::test
