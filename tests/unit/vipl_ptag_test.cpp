// SPDX-License-Identifier: BSD-2-Clause
// Protection tags while memory is registered or changed with them.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "vipl_nic_testing.hpp"

namespace viaduct::vipl {
namespace {

// Many mappings in a row: asking the kernel whether all is there takes a while.
struct ManyMappings {
    static constexpr size_t kPages = 4000;
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    char* const start =
        static_cast<char*>(::mmap(nullptr, kPages* page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ManyMappings() {
        for (size_t i = 0; i < kPages; i += 2) ::mprotect(start + i * page, page, PROT_READ);
    }
    ~ManyMappings() { ::munmap(start, kPages * page); }
};

TEST(PtagTest, ADestroyedTagNeverComesBackAsThatOfARegion) {
    End end;
    const ManyMappings memory;
    std::atomic<VIP_PROTECTION_HANDLE> tag{nullptr};
    std::atomic<bool> done{false};
    std::thread others([&] {  // the same number again and again, each time another tag
        while (!done) {
            VIP_PROTECTION_HANDLE made = nullptr;
            EXPECT_EQ(VipCreatePtag(end.nic, &made), VIP_SUCCESS);
            tag = made;
            while (VipDestroyPtag(end.nic, made) == VIP_ERROR_RESOURCE) std::this_thread::yield();
        }
    });
    int foreign = 0;
    for (int i = 0; i < 200; ++i) {
        VIP_MEM_ATTRIBUTES asked{};
        while ((asked.Ptag = tag) == nullptr) std::this_thread::yield();
        VIP_MEM_HANDLE handle = 0;
        const size_t bytes = memory.kPages * memory.page;
        if (VipRegisterMem(end.nic, memory.start, bytes, &asked, &handle) != VIP_SUCCESS) continue;
        VIP_MEM_ATTRIBUTES got{};
        EXPECT_EQ(VipQueryMem(end.nic, memory.start, handle, &got), VIP_SUCCESS);
        foreign += got.Ptag != asked.Ptag ? 1 : 0;
        EXPECT_EQ(VipDeregisterMem(end.nic, memory.start, handle), VIP_SUCCESS);
    }
    done = true;
    others.join();
    EXPECT_EQ(foreign, 0);
}

// A device that refuses to change memory, and during whose call the program destroys a tag.
struct Refusal {
    static inline DataOps ops;
    static inline VIP_NIC_HANDLE nic;
    static inline VIP_PROTECTION_HANDLE tag;
    static inline VIP_RETURN destroyed;

    static void put_under(Nic& object) {
        ops = *object.ops;
        ops.region_changed = [](NicContext*, uint32_t, const Region&) {
            destroyed = VipDestroyPtag(nic, tag);
            return Status::out_of_resources;
        };
        object.ops = &ops;
    }
};

TEST(PtagTest, ATagThatARegionMayGetBackIsInUse) {
    End end;
    VIP_PROTECTION_HANDLE old_tag = nullptr, new_tag = nullptr;
    ASSERT_EQ(VipCreatePtag(end.nic, &old_tag), VIP_SUCCESS);
    ASSERT_EQ(VipCreatePtag(end.nic, &new_tag), VIP_SUCCESS);
    static char memory[64];
    VIP_MEM_ATTRIBUTES attributes{};
    attributes.Ptag = old_tag;
    VIP_MEM_HANDLE handle = 0;
    ASSERT_EQ(VipRegisterMem(end.nic, memory, sizeof memory, &attributes, &handle), VIP_SUCCESS);
    Refusal::nic = end.nic;
    Refusal::tag = old_tag;
    Refusal::put_under(inside(end.nic));

    attributes.Ptag = new_tag;
    EXPECT_EQ(VipSetMemAttributes(end.nic, memory, handle, &attributes), VIP_ERROR_RESOURCE);

    EXPECT_EQ(Refusal::destroyed, VIP_ERROR_RESOURCE);
    VIP_MEM_ATTRIBUTES got{};
    EXPECT_EQ(VipQueryMem(end.nic, memory, handle, &got), VIP_SUCCESS);
    EXPECT_EQ(got.Ptag, old_tag);
    EXPECT_EQ(VipDeregisterMem(end.nic, memory, handle), VIP_SUCCESS);
    EXPECT_EQ(VipDestroyPtag(end.nic, old_tag), VIP_SUCCESS) << "it stays in use";
    EXPECT_EQ(VipDestroyPtag(end.nic, new_tag), VIP_SUCCESS);
}

}  // namespace
}  // namespace viaduct::vipl
