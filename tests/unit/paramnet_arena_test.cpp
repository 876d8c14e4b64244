// SPDX-License-Identifier: BSD-2-Clause
// Memory that peers map: what the arena hands out, what a peer may find in it, and RDMA into it.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paramnet_fixture.hpp"
#include "providers/paramnet/arena.hpp"
#include "providers/paramnet/rdma.hpp"
#include "providers/paramnet/rendezvous.hpp"

namespace viaduct::paramnet::test {
namespace {

uint64_t page() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }
std::byte* at(const Region& r) { return reinterpret_cast<std::byte*>(r.base); }

TEST(Arena, GivesZeroedAlignedMemoryOfWholePages) {
    Arena arena;
    for (const uint64_t alignment : {uint64_t{0}, uint64_t{64}, page(), uint64_t{1} << 21}) {
        Region r;
        ASSERT_EQ(arena.allocate(5000, alignment, &r), Status::ok) << alignment;
        EXPECT_EQ(r.length, (5000 + page() - 1) / page() * page());
        EXPECT_EQ(r.base % (alignment > page() ? alignment : page()), 0u);
        EXPECT_EQ(r.arena, kArena);
        for (uint64_t i = 0; i < r.length; ++i) ASSERT_EQ(at(r)[i], std::byte{0});
        std::memset(at(r), 0xAB, r.length);
        arena.release(r);
    }
}

TEST(Arena, HasTheRoomThatTheLimitOfFilesLeaves) {
    struct rlimit before {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    for (const uint64_t bytes : {uint64_t{0}, 4 * page() + 1}) {
        struct rlimit low = before;
        low.rlim_cur = bytes;
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
        Arena arena;
        Region all, more;
        const Status whole = arena.allocate(4 * page(), 0, &all);
        const Status none = arena.allocate(1, 0, &more);
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
        EXPECT_EQ(arena.bytes(), bytes / page() * page());
        EXPECT_EQ(whole, bytes == 0 ? Status::out_of_resources : Status::ok);
        EXPECT_EQ(none, Status::out_of_resources);
        if (whole != Status::ok) continue;
        std::memset(at(all), 1, all.length);
        arena.release(all);
    }
}

TEST(Arena, RefusesWhatCannotBe) {
    Arena arena;
    Region r;
    EXPECT_EQ(arena.allocate(0, 0, &r), Status::invalid);
    EXPECT_EQ(arena.allocate(100, 3 * page(), &r), Status::invalid);
    EXPECT_EQ(arena.allocate(100, uint64_t{1} << 31, &r), Status::invalid);
    EXPECT_EQ(arena.allocate(arena.bytes() + 1, 0, &r), Status::out_of_resources);
}

TEST(Arena, UsesGivenBackPlacesAgainAndThenZeroed) {
    Arena arena;
    Region r[3];
    for (Region& one : r) ASSERT_EQ(arena.allocate(page(), 0, &one), Status::ok);
    std::memset(at(r[1]), 0x77, page());
    const uint64_t place = r[1].arena_offset;
    arena.release(r[1]);
    ASSERT_EQ(arena.allocate(page(), 0, &r[1]), Status::ok);
    EXPECT_EQ(r[1].arena_offset, place);
    EXPECT_EQ(at(r[1])[17], std::byte{0});
    for (const int i : {0, 2, 1}) arena.release(r[i]);
    ASSERT_EQ(arena.allocate(3 * page(), 0, &r[0]), Status::ok);
    EXPECT_EQ(r[0].arena_offset, 0u) << "the holes have become one";
}

TEST(MappedArena, ShowsTheOwnersBytesAndNothingOutside) {
    Arena arena;
    Region r;
    ASSERT_EQ(arena.allocate(2 * page(), 0, &r), Status::ok);
    MappedArena seen;
    seen.map(arena.duplicate(), arena.bytes());
    ASSERT_TRUE(seen.valid());
    std::byte* here = seen.find(r, r.base + 100, 50);
    ASSERT_NE(here, nullptr);
    ASSERT_NE(here, at(r) + 100);
    at(r)[100] = std::byte{0x5C};
    EXPECT_EQ(*here, std::byte{0x5C});
    EXPECT_NE(seen.find(r, r.base, r.length), nullptr);
    EXPECT_EQ(seen.find(r, r.base, r.length + 1), nullptr);
    EXPECT_EQ(seen.find(r, r.base - 1, 1), nullptr);
    EXPECT_EQ(seen.find(r, r.base + r.length, 1), nullptr);

    Region lie = r;  // the table of a hostile owner
    lie.arena_offset = arena.bytes() - page();
    EXPECT_EQ(seen.find(lie, lie.base, 1), nullptr) << "the whole region must lie inside";
    lie.arena_offset = UINT64_MAX - page();
    EXPECT_EQ(seen.find(lie, lie.base, 1), nullptr);
    lie = r;
    lie.length = UINT64_MAX;
    EXPECT_EQ(seen.find(lie, lie.base, 1), nullptr);
    lie = r;
    lie.arena = 0;
    EXPECT_EQ(seen.find(lie, lie.base, 1), nullptr) << "plain memory";
}

TEST(MappedArena, MakesNoPagesWhereFutureMemoryIsLocked) {
    Arena arena;
    const pid_t child = ::fork();  // what is locked and what it costs is the child's own
    if (child == 0) {
        ::alarm(20);
        if (::mlockall(MCL_FUTURE) != 0) ::_exit(2);
        MappedArena seen;
        seen.map(arena.duplicate(), arena.bytes());
        struct stat about {};
        ::fstat(arena.duplicate().get(), &about);
        ::_exit(about.st_blocks == 0 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "memory cannot be locked here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(MappedArena, MapsNothingOfAFileThatIsTooShort) {
    const Segment small = Segment::create("test", page());
    MappedArena seen;
    seen.map(small.duplicate(Segment::Access::read_write), 4 * page());
    EXPECT_FALSE(seen.valid());
    Region r;
    r.arena = kArena;
    r.length = page();
    EXPECT_EQ(seen.find(r, 0, 1), nullptr);
}

// Two NICs that take each other for other processes; RDMA goes to memory of b's arena.
class ArenaRdma : public testing::TestWithParam<Reach> {
protected:
    ArenaRdma() : pair(VIP_SERVICE_RELIABLE_DELIVERY, GetParam()) {
        EXPECT_EQ(memory_alloc(pair.nic_b.context, kBytes, 0, &region), Status::ok);
        region.flags = kRegionRdmaWrite | kRegionRdmaRead;
        handle = pair.nic_b.regions.add(region);
    }
    void write(uint64_t offset, uint32_t n) {
        pair.a.post_send(
            pair.a.make_rdma(VIP_CONTROL_OP_RDMAWRITE, pair.a.data(), n, at(region) + offset, handle));
    }
    static constexpr uint32_t kBytes = 1 << 20;
    TestPair pair;
    Region region;
    uint32_t handle = 0;
};

TEST_P(ArenaRdma, WritesAreInPlaceWhenThePostReturns) {
    uint32_t seed = 0;
    for (const uint32_t n : {1u, 7u, 8u, 64u, 1000u, 4096u, 70000u, 8u, 300000u}) {
        SCOPED_TRACE(n);
        fill(pair.a.data(), n, ++seed);
        write(13, n);
        EXPECT_TRUE(filled(at(region) + 13, n, seed)) << "no help of the target was needed";
        VIP_DESCRIPTOR* d = pair.a.wait_send();
        ASSERT_NE(d, nullptr);
        EXPECT_EQ(status_of(d), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE});
        EXPECT_EQ(d->CS.Length, n);
    }
}

TEST_P(ArenaRdma, ReadsFetchTheBytes) {
    fill(at(region) + 1000, 50000, 3);
    pair.a.post_send(
        pair.a.make_rdma(VIP_CONTROL_OP_RDMAREAD, pair.a.data(), 50000, at(region) + 1000, handle));
    VIP_DESCRIPTOR* d = pair.a.wait_send();
    ASSERT_NE(d, nullptr);
    EXPECT_EQ(status_of(d), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ});
    EXPECT_TRUE(filled(pair.a.data(), 50000, 3));
}

TEST_P(ArenaRdma, AWriteBeyondTheRegionIsRefusedAlsoWhenTheRegionIsRemembered) {
    write(0, 100);
    ASSERT_NE(pair.a.wait_send(), nullptr);
    write(0, 100);  // by the short way
    ASSERT_NE(pair.a.wait_send(), nullptr);
    write(kBytes - 99, 100);
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RDMAW_PROT));
}

TEST_P(ArenaRdma, ARegionThatIsRemovedIsNotWritten) {
    for (int i = 0; i < 2; ++i) {
        write(0, 8);
        ASSERT_NE(pair.a.wait_send(), nullptr);
    }
    std::memset(at(region), 0x42, kBytes);
    pair.nic_b.remove_region(handle);
    fill(pair.a.data(), 8, 9);
    write(0, 8);
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RDMAW_PROT));
    for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(at(region)[i], std::byte{0x42});
}

TEST_P(ArenaRdma, AWithdrawnPermissionCounts) {
    for (int i = 0; i < 2; ++i) {
        write(0, 8);
        ASSERT_NE(pair.a.wait_send(), nullptr);
    }
    ASSERT_TRUE(pair.nic_b.regions.change(handle, region.base, 0, kRegionRdmaRead));
    write(0, 8);
    EXPECT_TRUE(pair.b.is_told(VIP_ERROR_RDMAW_PROT));
}

// VipxWriteNow's part of the provider.
class WriteNow : public ArenaRdma {
protected:
    // From here on the region is remembered.
    void SetUp() override {
        write(0, 8);
        ASSERT_NE(pair.a.wait_send(), nullptr);
        std::memset(at(region), 0x42, kBytes);
    }
    Status put(uint64_t offset, VIP_ULONG first_bytes, VIP_ULONG last_bytes) {
        const VIPX_WRITE w{region.base + offset, handle, first.data(), first_bytes, last, last_bytes};
        const std::lock_guard held(pair.a.core.send.lock);
        return ops().write_now(pair.a.core, w);
    }
    bool untouched(uint64_t from, uint64_t to) const {
        for (uint64_t i = from; i < to; ++i)
            if (at(region)[i] != std::byte{0x42}) return false;
        return true;
    }
    std::vector<std::byte> first = std::vector<std::byte>(8192, std::byte{7});
    uint64_t last[17] = {};
};

TEST_P(WriteNow, PutsBothPiecesThereAndNothingBesideThem) {
    for (const uint32_t n : {0u, 8u, 64u, 200u, 1024u, 1032u, 8192u}) {
        for (const uint32_t words : {0u, 1u, 7u, 8u, 15u, 16u}) {
            SCOPED_TRACE(testing::Message() << n << " bytes, " << words << " words");
            std::memset(at(region), 0x42, 2 * first.size());
            for (uint32_t i = 0; i < 16; ++i) last[i] = n + i + 1;
            ASSERT_EQ(put(64, n, words * 8), Status::ok);
            EXPECT_EQ(std::memcmp(at(region) + 64, first.data(), n), 0);
            EXPECT_EQ(std::memcmp(at(region) + 64 + n, last, words * 8), 0);
            EXPECT_TRUE(untouched(0, 64) && untouched(64 + n + words * 8, 2 * first.size()));
        }
    }
    ASSERT_EQ(put(3, 5, 8), Status::ok) << "the words begin at a word";
}

TEST_P(WriteNow, LeavesAloneWhatItMayNotWrite) {
    EXPECT_EQ(put(kBytes, 0, 8), Status::not_done);
    EXPECT_EQ(put(kBytes - 8, 8, 8), Status::not_done);
    EXPECT_EQ(put(uint64_t{0} - 8, 0, 8), Status::not_done);
    EXPECT_EQ(put(0, 0, 17 * 8), Status::not_done) << "too long for words";
    EXPECT_EQ(put(0, UINT32_MAX - 7, 8), Status::not_done);
    EXPECT_EQ(put(0, VIP_ULONG{0} - 8, 8), Status::not_done) << "a sum of lengths that is none";
    EXPECT_EQ(put(0, 0, 12), Status::not_done) << "no whole words";
    EXPECT_EQ(put(4, 0, 8), Status::not_done) << "words that do not begin at a word";
    pair.a.core.max_transfer = 64;
    EXPECT_EQ(put(0, 64, 8), Status::not_done) << "longer than the VI transfers";
    handle ^= 1;
    EXPECT_EQ(put(0, 0, 8), Status::not_done);
    EXPECT_TRUE(untouched(0, kBytes));
}

TEST_P(WriteNow, EndsWithTheRegion) {
    pair.nic_b.remove_region(handle);
    EXPECT_EQ(put(0, 8, 8), Status::not_done);
    EXPECT_TRUE(untouched(0, 64));
}

TEST_P(WriteNow, EndsWithThePermission) {
    ASSERT_TRUE(pair.nic_b.regions.change(handle, region.base, 0, kRegionRdmaRead));
    EXPECT_EQ(put(0, 8, 8), Status::not_done);
    EXPECT_TRUE(untouched(0, 64));
}

TEST_P(WriteNow, EndsWithTheConnection) {
    pair.b.disconnect();
    EXPECT_EQ(put(0, 8, 8), Status::not_done);
    EXPECT_TRUE(untouched(0, 64));
}

TEST_P(WriteNow, NeedsARegionThatHasBeenWrittenTo) {
    Region other;
    ASSERT_EQ(memory_alloc(pair.nic_b.context, 4096, 0, &other), Status::ok);
    other.flags = kRegionRdmaWrite;
    const VIPX_WRITE w{other.base, pair.nic_b.regions.add(other), nullptr, 0, last, 8};
    *reinterpret_cast<uint64_t*>(at(other)) = 5;
    {
        const std::lock_guard held(pair.a.core.send.lock);
        EXPECT_EQ(ops().write_now(pair.a.core, w), Status::not_done);
    }
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(at(other)), 5u);
}

// VipxQueryMapped's part.
TEST_P(WriteNow, StoresWhereItSays) {
    const auto place = [&](uint64_t offset, uint64_t bytes) -> std::byte* {
        void* here = nullptr;
        const std::lock_guard held(pair.a.core.send.lock);
        const Status status = ops().mapped_at(pair.a.core, handle, region.base + offset, bytes, &here);
        EXPECT_EQ(status, here != nullptr ? Status::ok : Status::not_done);
        return static_cast<std::byte*>(here);
    };
    std::byte* const here = place(64, 8);
    ASSERT_NE(here, nullptr);
    EXPECT_NE(here, at(region) + 64) << "another mapping than the owner's";
    last[0] = 0x1234;
    ASSERT_EQ(put(64, 0, 8), Status::ok);
    EXPECT_EQ(std::memcmp(here, last, 8), 0);
    EXPECT_EQ(place(kBytes, 8), nullptr);
    EXPECT_EQ(place(kBytes - 8, 16), nullptr);
    EXPECT_EQ(place(uint64_t{0} - 8, 8), nullptr);
    EXPECT_EQ(place(0, 0), nullptr);
    ASSERT_TRUE(pair.nic_b.regions.change(handle, region.base, 0, kRegionRdmaRead));
    EXPECT_EQ(place(0, 8), nullptr) << "it may not be written";
    pair.nic_b.remove_region(handle);
    EXPECT_EQ(place(0, 8), nullptr);
}

TEST_P(WriteNow, IsNowhereWhenTheConnectionIs) {
    pair.b.disconnect();
    void* here = nullptr;
    const std::lock_guard held(pair.a.core.send.lock);
    EXPECT_EQ(ops().mapped_at(pair.a.core, handle, region.base, 8, &here), Status::not_done);
    EXPECT_EQ(here, nullptr);
}

TEST_P(ArenaRdma, LongSendsOutOfItAreFetchedByTheReceiver) {
    uint32_t seed = 0;
    for (const uint32_t n : {48u, 4096u, kArenaPullFrom - 1, kArenaPullFrom, 100001u, kBytes}) {
        SCOPED_TRACE(n);
        fill(at(region), n, ++seed);
        pair.a.receive(pair.a.data(), n);
        VIP_DESCRIPTOR* send = pair.b.make(false, at(region), n);
        send->DS[0].Local.Handle = handle;
        {
            const TakesNothing later(pair.a);
            pair.b.post_send(send);
            EXPECT_EQ(send->CS.Status == 0, n >= kArenaPullFrom) << "complete only when it has been fetched";
        }
        VIP_DESCRIPTOR* got = pair.a.wait_recv();
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(status_of(got), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE});
        EXPECT_EQ(got->CS.Length, n);
        EXPECT_TRUE(filled(pair.a.data(), n, seed));
        VIP_DESCRIPTOR* done = pair.b.wait_send();
        ASSERT_NE(done, nullptr);
        EXPECT_EQ(status_of(done), uint32_t{VIP_STATUS_DONE | VIP_STATUS_OP_SEND});
    }
}

INSTANTIATE_TEST_SUITE_P(Paramnet, ArenaRdma, testing::Values(Reach::cross_copy, Reach::none));
INSTANTIATE_TEST_SUITE_P(Paramnet, WriteNow, testing::Values(Reach::cross_copy, Reach::none));

}  // namespace
}  // namespace viaduct::paramnet::test
