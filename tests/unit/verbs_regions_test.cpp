// SPDX-License-Identifier: BSD-2-Clause
// Device keys of registered memory (providers/verbs/regions.hpp): what they allow, when they change, when they end.
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs::test {
namespace {

// Memory that is mapped for reading only.
int refused_with = 0;
ibv_mr* read_only_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
    if ((access & IBV_ACCESS_LOCAL_WRITE) == 0) return fake_reg_mr(pd, address, length, access);
    errno = refused_with;
    return nullptr;
}

class VerbsRegions : public VerbsFixture {
protected:
    VerbsRegions() {
        region_.base = reinterpret_cast<uintptr_t>(memory_);
        region_.length = 128;
        fake_.registered.clear();
    }
    uint32_t add(uint32_t flags) {
        region_.flags = flags;
        const uint32_t handle = regions_.add(region_);
        EXPECT_EQ(nic_.keys.add(handle, region_), Status::ok);
        return handle;
    }
    Status change(uint32_t handle, uint32_t flags) {
        region_.flags = flags;
        return nic_.keys.change(handle, region_);
    }

    Region region_;
};

TEST_F(VerbsRegions, ADeviceIsAskedForWhatTheRegionAllowsAndNoMore) {
    add(0);
    EXPECT_EQ(fake_.registered.back(), IBV_ACCESS_LOCAL_WRITE);
    add(kRegionRdmaWrite);
    EXPECT_EQ(fake_.registered.back(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    add(kRegionRdmaRead);
    EXPECT_EQ(fake_.registered.back(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

TEST_F(VerbsRegions, MemoryForReadingOnlyIsSentFromAndNotWrittenTo) {
    table_.reg_mr = read_only_reg_mr;
    for (const int error : {EFAULT, EACCES, EPERM}) {
        SCOPED_TRACE(error);
        refused_with = error;
        const uint32_t handle = add(kRegionRdmaRead);
        EXPECT_EQ(fake_.registered.back(), IBV_ACCESS_REMOTE_READ);
        region_.flags = kRegionRdmaWrite;
        EXPECT_EQ(nic_.keys.add(regions_.add(region_), region_), Status::out_of_resources);
        const size_t times = fake_.registered.size();
        EXPECT_EQ(change(handle, kRegionRdmaRead), Status::ok);
        EXPECT_EQ(fake_.registered.size(), times) << "nothing has changed";
    }
}

TEST_F(VerbsRegions, WhatGrewIsGivenBackWhole) {
    const int before = fake_.live_mrs;
    for (const bool by_clear : {false, true}) {
        const uint32_t handle = add(kRegionRdmaWrite);
        ASSERT_EQ(change(handle, kRegionRdmaWrite | kRegionRdmaRead), Status::ok);
        EXPECT_EQ(fake_.live_mrs, before + 2);
        if (by_clear) break;  // the fixture looks for what is left
        nic_.keys.remove(handle);
        EXPECT_EQ(fake_.live_mrs, before);
    }
}

TEST_F(VerbsRegions, AKeyThatAllowsMoreThanTheRegionEnds) {
    const uint32_t handle = add(kRegionRdmaWrite | kRegionRdmaRead);
    const int live = fake_.live_mrs;
    ASSERT_EQ(change(handle, kRegionRdmaRead), Status::ok);
    EXPECT_EQ(fake_.live_mrs, live);
}

TEST_F(VerbsRegions, AHandleThatHasEndedNamesNoLaterRegion) {
    const uint32_t handle = add(kRegionRdmaWrite);
    const uint32_t earlier = handle + (1u << kRegionIndexBits);
    EXPECT_EQ(change(earlier, kRegionRdmaRead), Status::invalid);
    const uint32_t key = nic_.keys.remote_key(handle);
    nic_.keys.remove(earlier);
    EXPECT_EQ(nic_.keys.remote_key(handle), key);
    EXPECT_EQ(nic_.keys.remote_key(earlier), 0u);
}

TEST_F(VerbsRegions, AChangeThatTheDeviceRefusesChangesNothing) {
    const uint32_t handle = add(kRegionRdmaWrite);
    const uint32_t key = nic_.keys.remote_key(handle);
    fake_.refuse_registration = true;
    EXPECT_EQ(change(handle, kRegionRdmaRead), Status::out_of_resources);
    EXPECT_EQ(nic_.keys.remote_key(handle), key);
}

}  // namespace
}  // namespace viaduct::verbs::test
