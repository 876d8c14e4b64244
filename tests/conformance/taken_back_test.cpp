// SPDX-License-Identifier: BSD-2-Clause
// Memory that is deregistered and unmapped while sends from it are under way: whatever becomes of them, each
// ends, and nothing reads what is not there any more (spec/calls 4.5).
#include <sys/mman.h>

#include <cstring>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

TEST(TakenBack, SendsUnderWayEndAndWhatArrivesIsWhole) {
    constexpr std::size_t kMessage = 16'384;
    constexpr int kMessages = 48, kBefore = 3, kRounds = 8;
    EndOptions roomy;
    roomy.memory = kMessage * (kMessages + 4);
    int arrived = 0;
    for (int round = 0; round < kRounds; ++round) {
        Pair pair(roomy);
        for (int i = 0; i < kMessages; ++i) pair.server.receive(kMessage);
        void* const data =
            ::mmap(nullptr, kMessage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(data, MAP_FAILED);
        std::memset(data, 'a' + round, kMessage);
        VIP_MEM_HANDLE handle = 0;
        require(VipRegisterMem(pair.client.nic, data, kMessage, nullptr, &handle), "VipRegisterMem");
        for (int i = 0; i < kMessages; ++i) {
            VIP_DESCRIPTOR* d = pair.client.descriptor();
            fill(d, VIP_CONTROL_OP_SENDRECV, {{data, handle, kMessage}});
            require(pair.client.post_send(d), "VipPostSend");
        }
        for (int i = 0; i < kBefore; ++i) EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        require(VipDeregisterMem(pair.client.nic, data, handle), "VipDeregisterMem");
        ::munmap(data, kMessage);
        bool good = true;
        for (int i = kBefore; i < kMessages; ++i) {
            const Outcome sent = reap_send(pair.client.vi);
            ASSERT_NE(sent.descriptor, nullptr) << "round " << round << ", send " << i;
            EXPECT_FALSE(sent.code == VIP_SUCCESS && !good) << "a send is good behind one that failed";
            good = sent.code == VIP_SUCCESS;
        }
        for (int i = 0; i < kMessages; ++i) {
            const Outcome got = reap_recv(pair.server.vi);
            ASSERT_NE(got.descriptor, nullptr) << "round " << round << ", receive " << i;
            if (got.code != VIP_SUCCESS) break;
            ++arrived;
            const auto* bytes = reinterpret_cast<const char*>(got.descriptor->DS[0].Local.Data.Address);
            EXPECT_EQ(bytes[0], 'a' + round);
            EXPECT_EQ(std::memcmp(bytes, bytes + 1, kMessage - 1), 0) << "a message is damaged";
        }
    }
    EXPECT_GE(arrived, kBefore * kRounds);
}

}  // namespace
}  // namespace viaduct::conformance
