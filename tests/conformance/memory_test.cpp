// SPDX-License-Identifier: BSD-2-Clause
// Registered memory: spec/calls 4.5, spec/compat 9.
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>
#include <viaduct/ext.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <set>
#include <string>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

constexpr std::size_t kBytes = 64 * 16 * 8;

char static_data[kBytes] = {1};
char bss_data[kBytes];

VIP_MEM_HANDLE enroll(End& end, void* address, std::size_t length, VIP_MEM_ATTRIBUTES* attributes = nullptr) {
    VIP_MEM_HANDLE handle = 0;
    require(VipRegisterMem(end.nic, address, length, attributes, &handle), "VipRegisterMem");
    return handle;
}

/// Sends from one piece into another and compares the bytes.
void expect_transfer(Pair& pair, const Piece& from, const Piece& to) {
    auto* source = static_cast<unsigned char*>(from.address);
    for (std::uint32_t i = 0; i < from.length; ++i) {
        source[i] = static_cast<unsigned char>(i * 7 + from.length);
    }
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    fill(receive, VIP_CONTROL_OP_SENDRECV, {to});
    require(pair.server.post_recv(receive), "VipPostRecv");
    VIP_DESCRIPTOR* send = pair.client.descriptor();
    fill(send, VIP_CONTROL_OP_SENDRECV, {from});
    require(pair.client.post_send(send), "VipPostSend");
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    EXPECT_EQ(std::memcmp(from.address, to.address, from.length), 0);
}

/// Both directions between some memory and the region of the other end.
void expect_usable(char* memory, std::size_t length) {
    Pair pair;
    const VIP_MEM_HANDLE here = enroll(pair.client, memory, length);
    expect_transfer(pair, {memory, here, static_cast<std::uint32_t>(length)},
                    pair.server.piece(pair.server.buffer(length), length));
    const VIP_MEM_HANDLE there = enroll(pair.server, memory, length);
    expect_transfer(pair, pair.client.piece(pair.client.buffer(length), length),
                    {memory, there, static_cast<std::uint32_t>(length)});
}

TEST(MemoryRegister, HandlesAreNeverZeroNorAllOnesNorTheSame) {
    End end;
    std::set<VIP_MEM_HANDLE> handles;
    for (int i = 0; i < 500; ++i) {
        VIP_MEM_HANDLE handle = 0;
        ASSERT_TRUE(CONFORM(VIP_SUCCESS, kNone, VipRegisterMem(end.nic, end.memory, 100, nullptr, &handle)));
        EXPECT_NE(handle, 0u);
        EXPECT_NE(handle, 0xFFFFFFFFu);
        EXPECT_TRUE(handles.insert(handle).second) << "each registration has a handle of its own";
    }
    for (const VIP_MEM_HANDLE handle : handles) {
        CONFORM(VIP_SUCCESS, kNone, VipDeregisterMem(end.nic, end.memory, handle));
    }
}

TEST(MemoryRegister, ImpossibleArgumentsAreRefused) {
    End end;
    VIP_MEM_HANDLE handle = 0;
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipRegisterMem(end.nic, end.memory, 0, nullptr, &handle));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipRegisterMem(end.nic, nullptr, 64, nullptr, &handle));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipRegisterMem(end.nic, end.memory, 64, nullptr, nullptr));
    EXPECT_NE(VipRegisterMem(end.nic, end.memory, ~VIP_ULONG{0}, nullptr, &handle), VIP_SUCCESS)
        << "the range wraps around the address space";
}

TEST(MemoryRegister, MoreThanTheNicTakesInOneBlockIsAMatterOfResources) {
    End end;
    const VIP_ULONG too_much = end.limits.MaxRegisterBlockBytes + 1;
    if (too_much == 0 || too_much > (1ul << 46)) {
        cannot_show("VipRegisterMem", VIP_ERROR_RESOURCE, VS::kNone,
                    "MaxRegisterBlockBytes exceeds the address space of a process");
        GTEST_SKIP() << "MaxRegisterBlockBytes exceeds the address space of a process";
    }
    void* memory = mmap(nullptr, too_much, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    VIP_MEM_HANDLE handle = 0;
    CONFORM(VIP_ERROR_RESOURCE, kNone, VipRegisterMem(end.nic, memory, too_much, nullptr, &handle));
    munmap(memory, too_much);
}

TEST(MemoryRegister, RdmaReadIsRefusedWhereTheNicHasNone) {
    End end;
    VIP_MEM_ATTRIBUTES attributes{end.ptag, VIP_FALSE, VIP_TRUE};
    VIP_MEM_HANDLE handle = 0;
    if (end.limits.RDMAReadSupport != 0) {
        CONFORM(VIP_SUCCESS, kNone, VipRegisterMem(end.nic, end.memory, 64, &attributes, &handle));
        const std::string reason = "the NIC offers RDMA read, memory has no level";
        cannot_show("VipRegisterMem", VIP_INVALID_RDMAREAD, VS::kNone, reason);
        cannot_show("VipSetMemAttributes", VIP_INVALID_RDMAREAD, VS::kNone, reason);
        return;
    }
    CONFORM(VIP_INVALID_RDMAREAD, kNone, VipRegisterMem(end.nic, end.memory, 64, &attributes, &handle));
    CONFORM(VIP_INVALID_RDMAREAD, kNone, VipSetMemAttributes(end.nic, end.memory, end.region, &attributes));
}

TEST(MemoryQuery, AnyByteInsideNamesTheRegion) {
    End end;
    VIP_MEM_ATTRIBUTES attributes{end.ptag, VIP_TRUE, VIP_FALSE};
    char* start = end.buffer(300) + 3;
    const VIP_MEM_HANDLE handle = enroll(end, start, 201, &attributes);
    for (const std::size_t offset : {0, 1, 100, 200}) {
        VIP_MEM_ATTRIBUTES seen{};
        CONFORM(VIP_SUCCESS, kNone, VipQueryMem(end.nic, start + offset, handle, &seen));
        EXPECT_EQ(seen.Ptag, end.ptag);
        EXPECT_TRUE(seen.EnableRdmaWrite);
        EXPECT_FALSE(seen.EnableRdmaRead);
    }
    VIP_MEM_ATTRIBUTES seen{};
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryMem(end.nic, start - 1, handle, &seen));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryMem(end.nic, start + 201, handle, &seen));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryMem(end.nic, start, handle, nullptr));
}

TEST(MemoryQuery, NullAttributesMeanTheDefaultTagAndNoRdma) {
    End end;
    const VIP_MEM_HANDLE handle = enroll(end, end.memory, 64);
    VIP_MEM_ATTRIBUTES seen{&seen, VIP_TRUE, VIP_TRUE};
    CONFORM(VIP_SUCCESS, kNone, VipQueryMem(end.nic, end.memory, handle, &seen));
    EXPECT_EQ(seen.Ptag, nullptr);
    EXPECT_FALSE(seen.EnableRdmaWrite);
    EXPECT_FALSE(seen.EnableRdmaRead);
}

TEST(MemorySetAttributes, ReplacesTagAndEnables) {
    End end;
    const VIP_MEM_HANDLE handle = enroll(end, end.memory, 64);
    VIP_MEM_ATTRIBUTES wanted{end.ptag, VIP_TRUE, VIP_FALSE};
    CONFORM(VIP_SUCCESS, kNone, VipSetMemAttributes(end.nic, end.memory, handle, &wanted));
    VIP_MEM_ATTRIBUTES seen{};
    CONFORM(VIP_SUCCESS, kNone, VipQueryMem(end.nic, end.memory + 10, handle, &seen));
    EXPECT_EQ(seen.Ptag, end.ptag);
    EXPECT_TRUE(seen.EnableRdmaWrite);
    wanted.Ptag = &wanted;
    CONFORM(VIP_INVALID_PTAG, kNone, VipSetMemAttributes(end.nic, end.memory, handle, &wanted));
    CONFORM(VIP_SUCCESS, kNone, VipQueryMem(end.nic, end.memory, handle, &seen));
    EXPECT_EQ(seen.Ptag, end.ptag) << "a refused change changes nothing";
}

TEST(MemoryDeregister, WantsTheStartAddressAndEndsTheHandleForGood) {
    End end;
    char* start = end.buffer(100);
    const VIP_MEM_HANDLE handle = enroll(end, start, 100);
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipDeregisterMem(end.nic, start + 1, handle));
    CONFORM(VIP_SUCCESS, kNone, VipDeregisterMem(end.nic, start, handle));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipDeregisterMem(end.nic, start, handle));
    VIP_MEM_ATTRIBUTES attributes{};
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryMem(end.nic, start, handle, &attributes));
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipSetMemAttributes(end.nic, start, handle, &attributes));
    const VIP_MEM_HANDLE again = enroll(end, start, 100);
    EXPECT_NE(again, handle);
    CONFORM(VIP_INVALID_PARAMETER, kNone, VipQueryMem(end.nic, start, handle, &attributes));
}

TEST(MemoryDeregister, ADeadHandleInADescriptorIsAProtectionError) {
    Pair pair;
    char* data = pair.client.buffer(64);
    const VIP_MEM_HANDLE handle = enroll(pair.client, data, 64);
    require(VipDeregisterMem(pair.client.nic, data, handle), "VipDeregisterMem");
    VIP_DESCRIPTOR* d = pair.client.descriptor();
    fill(d, VIP_CONTROL_OP_SENDRECV, {{data, handle, 64}});
    require(pair.client.post_send(d), "VipPostSend");
    const Outcome sent = reap_send(pair.client.vi);
    EXPECT_EQ(sent.code, VIP_DESCRIPTOR_ERROR);
    EXPECT_TRUE(sent.errors() & VIP_STATUS_PROTECTION_ERROR);
}

TEST(MemoryDeregister, AReceiveWhoseMemoryWentAwayCompletesWithAProtectionError) {
    Pair pair;
    char* data = pair.server.buffer(64, 'k');
    const VIP_MEM_HANDLE handle = enroll(pair.server, data, 64);
    VIP_DESCRIPTOR* d = pair.server.descriptor();
    fill(d, VIP_CONTROL_OP_SENDRECV, {{data, handle, 64}});
    require(pair.server.post_recv(d), "VipPostRecv");
    require(VipDeregisterMem(pair.server.nic, data, handle), "VipDeregisterMem");
    pair.client.send(pair.client.buffer(64, 'n'), 64);
    const Outcome got = reap_recv(pair.server.vi);
    EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
    EXPECT_EQ(got.descriptor, d);
    EXPECT_TRUE(got.errors() & VIP_STATUS_PROTECTION_ERROR);
    EXPECT_EQ(data[0], 'k') << "memory that is not registered any more was written";
}

TEST(MemoryUse, StaticDataWorks) { expect_usable(static_data, kBytes); }

TEST(MemoryUse, ZeroedStaticDataWorks) { expect_usable(bss_data, kBytes); }

TEST(MemoryUse, TheStackWorks) {
    char here[kBytes];
    expect_usable(here, kBytes);
}

TEST(MemoryUse, TheHeapWorks) {
    const std::unique_ptr<char[]> heap(new char[kBytes + 1]);
    expect_usable(heap.get() + 1, kBytes);
}

TEST(MemoryUse, SystemVSharedMemoryWorks) {
    const int id = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0600);
    ASSERT_GE(id, 0);
    void* memory = shmat(id, nullptr, 0);
    shmctl(id, IPC_RMID, nullptr);
    ASSERT_NE(memory, reinterpret_cast<void*>(-1));
    expect_usable(static_cast<char*>(memory), kBytes);
    shmdt(memory);
}

TEST(MemoryUse, SharedMappingsWork) {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    expect_usable(static_cast<char*>(memory), kBytes);
    munmap(memory, kBytes);
}

TEST(MemoryUse, EveryAlignmentAndLengthWorks) {
    Pair pair;
    char* base = pair.client.buffer(4096, 0, 64);
    char* there = pair.server.buffer(4096, 0, 64);
    for (std::size_t offset = 0; offset < 17; ++offset) {
        for (const std::size_t length : {1, 2, 3, 7, 8, 63, 64, 65, 1000}) {
            const VIP_MEM_HANDLE handle = enroll(pair.client, base + offset, length);
            expect_transfer(pair, {base + offset, handle, static_cast<std::uint32_t>(length)},
                            pair.server.piece(there + 16 - offset, length));
            EXPECT_EQ(VipDeregisterMem(pair.client.nic, base + offset, handle), VIP_SUCCESS);
        }
    }
}

TEST(MemoryUse, ASegmentMayLieAnywhereInItsRegionAndNotOneByteBeyond) {
    Pair pair;
    char* start = pair.client.buffer(256) + 5;
    const VIP_MEM_HANDLE handle = enroll(pair.client, start, 200);
    char* there = pair.server.buffer(256);
    expect_transfer(pair, {start + 199, handle, 1}, pair.server.piece(there, 1));
    expect_transfer(pair, {start + 50, handle, 150}, pair.server.piece(there, 150));
    VIP_DESCRIPTOR* d = pair.client.descriptor();
    fill(d, VIP_CONTROL_OP_SENDRECV, {{start + 50, handle, 151}});
    require(pair.client.post_send(d), "VipPostSend");
    EXPECT_TRUE(reap_send(pair.client.vi).errors() & VIP_STATUS_PROTECTION_ERROR);
}

TEST(MemoryUse, OverlappingAndRepeatedRegionsLiveSideBySide) {
    Pair pair;
    char* base = pair.client.buffer(1000);
    char* there = pair.server.buffer(1000);
    const VIP_MEM_HANDLE whole = enroll(pair.client, base, 1000);
    const VIP_MEM_HANDLE again = enroll(pair.client, base, 1000);
    const VIP_MEM_HANDLE middle = enroll(pair.client, base + 300, 400);
    expect_transfer(pair, {base, whole, 1000}, pair.server.piece(there, 1000));
    require(VipDeregisterMem(pair.client.nic, base, whole), "VipDeregisterMem");
    expect_transfer(pair, {base, again, 1000}, pair.server.piece(there, 1000));
    expect_transfer(pair, {base + 300, middle, 400}, pair.server.piece(there, 400));
    require(VipDeregisterMem(pair.client.nic, base, again), "VipDeregisterMem");
    expect_transfer(pair, {base + 310, middle, 100}, pair.server.piece(there, 100));
}

TEST(MemoryUse, OneRegionRegisteredTwiceHasTwoPermissions) {
    Pair pair;
    char* window = pair.server.buffer(64, 0, 64);
    VIP_MEM_ATTRIBUTES open{pair.server.ptag, VIP_TRUE, VIP_FALSE};
    VIP_MEM_ATTRIBUTES closed{pair.server.ptag, VIP_FALSE, VIP_FALSE};
    const VIP_MEM_HANDLE writable = enroll(pair.server, window, 64, &open);
    const VIP_MEM_HANDLE sealed = enroll(pair.server, window, 64, &closed);
    char* data = pair.client.buffer(64, 'w');
    pair.client.write(data, 64, {window, writable});
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_TRUE(eventually([&] { return peek(&window[63]) == 'w'; }));
    pair.client.write(data, 64, {window, sealed});
    EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_RDMAW_PROT));
}

// Memory that is taken back while a write with immediate data comes in, wherever in its bytes that may be.
TEST(MemoryUse, AWriteWithImmediateDataThatLosesItsTargetIsToldInTheReceiveOnly) {
    NEEDS_LEVEL(VIP_SERVICE_UNRELIABLE);
    EndOptions unreliable;
    unreliable.level = VIP_SERVICE_UNRELIABLE;
    unreliable.memory = 4 << 20;
    Pair pair(unreliable);
    const VIP_ULONG bytes = std::min<VIP_ULONG>(nic_attributes().MaxTransferSize, 1 << 20);
    char* data = pair.client.buffer(bytes, 'w', 64);
    char* window = pair.server.buffer(bytes, 0, 64);
    VIP_MEM_ATTRIBUTES open{pair.server.ptag, VIP_TRUE, VIP_FALSE};
    constexpr int kRounds = 20;
    for (int i = 0; i < kRounds; ++i) pair.server.receive(64);
    int told = 0;
    for (int round = 0; round < kRounds; ++round) {
        const VIP_MEM_HANDLE writable = enroll(pair.server, window, bytes, &open);
        std::atomic<bool> over{false};
        auto writer = in_background([&] {
            pair.client.write(data, bytes, {window, writable}, VIP_CONTROL_IMMEDIATE, 5);
            const Outcome sent = reap_send(pair.client.vi);
            over = true;
            return sent.code;
        });
        // What is lost on the way never begins.
        while (glance(window) != 'w' && !over) breathe(0);
        require(VipDeregisterMem(pair.server.nic, window, writable), "VipDeregisterMem");
        EXPECT_EQ(writer.get(), VIP_SUCCESS);
        VIP_DESCRIPTOR* got = nullptr;
        eventually([&] { return VipRecvDone(pair.server.vi, &got) != VIP_NOT_DONE; }, Millis(200));
        if (got != nullptr) {
            ++told;
            EXPECT_EQ(got->CS.Status & VIP_STATUS_OP_MASK, uint32_t{VIP_STATUS_OP_REMOTE_RDMA_WRITE});
            EXPECT_NE(got->CS.Status & VIP_STATUS_IMMEDIATE, 0u);
            EXPECT_EQ(got->CS.Status & VIP_STATUS_ERROR_MASK & ~VIP_STATUS_RDMA_PROT_ERROR, 0u);
        }
        std::memset(window, 0, bytes);
    }
    EXPECT_NE(told, 0);
    EXPECT_EQ(pair.server.errors.size(), 0u) << "the receives tell it instead";
    EXPECT_EQ(pair.server.state(), VIP_STATE_CONNECTED);
}

TEST(MemoryUse, OneHandleServesAllVisOfItsNic) {
    Pair pair;
    const VIP_VI_HANDLE from = pair.client.create_vi();
    const VIP_VI_HANDLE to = pair.server.create_vi();
    connect(pair.client.nic, from, pair.server.nic, to);
    char* window = pair.server.buffer(64, 0, 64);
    char* data = pair.client.buffer(64, 'v');
    for (const VIP_VI_HANDLE vi : {pair.client.vi, from}) {
        VIP_DESCRIPTOR* d = pair.client.descriptor();
        fill(d, VIP_CONTROL_OP_RDMAWRITE, {pair.client.piece(data, 64)}, pair.server.target(window));
        require(VipPostSend(vi, d, pair.client.region), "VipPostSend");
        EXPECT_EQ(reap_send(vi).code, VIP_SUCCESS);
    }
    retire(from);
    retire(to);
}

TEST(MemoryAlloc, AnswersAsItsPageSays) {
    End end;
    VIP_PVOID memory = nullptr;
    VIP_MEM_HANDLE handle = 0;
    EXPECT_EQ(VipxAllocMemory(nullptr, 100, 0, nullptr, &memory, &handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxAllocMemory(end.nic, 0, 0, nullptr, &memory, &handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxAllocMemory(end.nic, 100, 48, nullptr, &memory, &handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxAllocMemory(end.nic, 100, 0, nullptr, nullptr, &handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxAllocMemory(end.nic, 100, 0, nullptr, &memory, nullptr), VIP_INVALID_PARAMETER);
    const VIP_ULONG most = end.limits.MaxRegisterBlockBytes;
    const VIP_ULONG too_many = most + 1 != 0 ? most + 1 : most;  // of a 32-bit program no call can ask for more
    EXPECT_EQ(VipxAllocMemory(end.nic, too_many, 0, nullptr, &memory, &handle), VIP_ERROR_RESOURCE);
    VIP_MEM_ATTRIBUTES wrong{reinterpret_cast<VIP_PROTECTION_HANDLE>(end.nic), VIP_FALSE, VIP_FALSE};
    EXPECT_EQ(VipxAllocMemory(end.nic, 100, 0, &wrong, &memory, &handle), VIP_INVALID_PTAG);

    ASSERT_EQ(VipxAllocMemory(end.nic, 100, 1 << 16, nullptr, &memory, &handle), VIP_SUCCESS);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (1 << 16), 0u);
    EXPECT_EQ(VipxFreeMemory(end.nic, static_cast<char*>(memory) + 1, handle), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxFreeMemory(end.nic, memory, handle + 1), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxFreeMemory(end.nic, memory, handle), VIP_SUCCESS);
    EXPECT_EQ(VipxFreeMemory(end.nic, memory, handle), VIP_INVALID_PARAMETER);
    VIP_MEM_ATTRIBUTES attributes{};
    EXPECT_EQ(VipQueryMem(end.nic, memory, handle, &attributes), VIP_INVALID_PARAMETER)
        << "deregistered, too";
}

TEST(MemoryAlloc, IsUsableAsAnyRegisteredMemory) {
    Pair pair;
    VIP_PVOID from = nullptr, to = nullptr;
    VIP_MEM_HANDLE from_handle = 0, to_handle = 0;
    VIP_MEM_ATTRIBUTES open{pair.server.ptag, VIP_TRUE, VIP_FALSE};
    constexpr std::uint32_t kLength = 100'000;
    require(VipxAllocMemory(pair.client.nic, kLength, 0, nullptr, &from, &from_handle), "VipxAllocMemory");
    require(VipxAllocMemory(pair.server.nic, kLength, 0, &open, &to, &to_handle), "VipxAllocMemory");
    expect_transfer(pair, {from, from_handle, kLength}, {to, to_handle, kLength});
    for (int i = 0; i < 3; ++i) {
        char* data = pair.client.buffer(64, static_cast<char>('a' + i));
        pair.client.write(data, 64, {to, to_handle});
        EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        EXPECT_TRUE(eventually([&] { return peek(&static_cast<char*>(to)[63]) == 'a' + i; }));
    }
    EXPECT_EQ(VipxFreeMemory(pair.client.nic, from, from_handle), VIP_SUCCESS);
    EXPECT_EQ(VipxFreeMemory(pair.server.nic, to, to_handle), VIP_SUCCESS);
}

TEST(MemoryPinned, TheDefaultNicPinsNothing) {
    const std::string name(reinterpret_cast<const char*>(nic_attributes().Name));
    if (name.rfind("paramnet", 0) != 0) GTEST_SKIP() << name << " may pin memory";
    const End end;
    VIP_BOOLEAN pinned = VIP_TRUE;
    EXPECT_EQ(VipxQueryPinned(end.nic, &pinned), VIP_SUCCESS);
    EXPECT_EQ(pinned, VIP_FALSE);
}

TEST(MemoryPinned, ChecksItsArguments) {
    const End end;
    VIP_BOOLEAN pinned = VIP_FALSE;
    EXPECT_EQ(VipxQueryPinned(end.nic, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipxQueryPinned(nullptr, &pinned), VIP_INVALID_PARAMETER);
}

}  // namespace
}  // namespace viaduct::conformance
