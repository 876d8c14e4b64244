// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous errors: spec/errors 8, spec/calls 4.8, spec/compat Q13-Q17. Those that come with a row of the
// reliability table are in reliability_test.
#include <cstring>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

class PostDesc : public AtEachLevel {
protected:
    /// Posting d breaks the VI: POST_DESC names the descriptor, and the peer loses its connection.
    static void expect_post_desc(Pair& pair, VIP_DESCRIPTOR* d, VIP_MEM_HANDLE handle, bool on_receive_queue) {
        const VIP_VI_HANDLE vi = pair.client.vi;
        CONFORM_RESULT(on_receive_queue ? "VipPostRecv" : "VipPostSend", VIP_SUCCESS, VS::kConnected,
                       on_receive_queue ? VipPostRecv(vi, d, handle) : VipPostSend(vi, d, handle));
        ASSERT_TRUE(pair.client.errors.wait_for(VIP_ERROR_POST_DESC));
        const auto error = pair.client.errors.first(VIP_ERROR_POST_DESC);
        EXPECT_EQ(error->ResourceCode, VIP_RESOURCE_DESCRIPTOR);
        EXPECT_EQ(error->DescriptorPtr, d);
        EXPECT_EQ(error->ViHandle, vi);
        EXPECT_EQ(error->NicHandle, pair.client.nic);
        EXPECT_TRUE(pair.client.reaches(VIP_STATE_ERROR)) << "at every level";
        EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR, kOneSecond));
        EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_CONN_LOST, kOneSecond));
        VIP_DESCRIPTOR* got = d;
        EXPECT_EQ(on_receive_queue ? VipRecvDone(vi, &got) : VipSendDone(vi, &got), VIP_DESCRIPTOR_ERROR);
        EXPECT_EQ(got, nullptr) << "such a descriptor is never handed back";
        EXPECT_EQ(pair.client.errors.size(), 1u);
        EXPECT_EQ(VipDisconnect(vi), VIP_SUCCESS);
        EXPECT_EQ(pair.client.state(), VIP_STATE_IDLE);
    }
};

TEST_P(PostDesc, ForADescriptorThatIsNotAligned) {
    const Row row("8 POST_DESC", GetParam());
    NEEDS_LEVEL(GetParam());
    for (const std::size_t off : {8, 32}) {
        for (const bool on_receive_queue : {false, true}) {
            Pair pair(at_level());
            char* place = pair.client.buffer(256, 0, 64) + off;
            expect_post_desc(pair, reinterpret_cast<VIP_DESCRIPTOR*>(place), pair.client.region, on_receive_queue);
        }
    }
}

TEST_P(PostDesc, ForADescriptorInNoRegisteredMemory) {
    const Row row("8 POST_DESC", GetParam());
    NEEDS_LEVEL(GetParam());
    for (const bool on_receive_queue : {false, true}) {
        Pair pair(at_level());
        alignas(64) VIP_DESCRIPTOR outside{};
        expect_post_desc(pair, &outside, pair.client.region, on_receive_queue);
    }
}

TEST_P(PostDesc, ForADescriptorWhoseRegionHasAnotherTag) {
    const Row row("8 POST_DESC", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    // Not inside the end's own region: there the descriptor would be reachable by the right tag.
    alignas(64) VIP_DESCRIPTOR d{};
    VIP_PROTECTION_HANDLE other = nullptr;
    require(VipCreatePtag(pair.client.nic, &other), "VipCreatePtag");
    VIP_MEM_ATTRIBUTES attributes{other, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle = 0;
    require(VipRegisterMem(pair.client.nic, &d, sizeof d, &attributes, &handle), "VipRegisterMem");
    expect_post_desc(pair, &d, handle, false);
}

TEST_P(PostDesc, ForADescriptorAtAnImpossibleAddress) {
    const Row row("8 POST_DESC", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    expect_post_desc(pair, reinterpret_cast<VIP_DESCRIPTOR*>(std::uintptr_t{0x40}), pair.client.region, false);
}

TEST_P(PostDesc, ForADescriptorThatReachesBeyondItsRegion) {
    const Row row("8 POST_DESC", GetParam());
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    alignas(64) unsigned char block[128] = {};
    VIP_MEM_HANDLE handle = 0;
    require(VipRegisterMem(pair.client.nic, block, 64 + 31, nullptr, &handle), "VipRegisterMem");
    // Its control segment does not fit in.
    expect_post_desc(pair, reinterpret_cast<VIP_DESCRIPTOR*>(block + 64), handle, false);
}

INSTANTIATE_TEST_SUITE_P(EachLevel, PostDesc, VIADUCT_ALL_LEVELS, level_test_name);

using Overrun = AtEachLevel;

TEST_P(Overrun, OfTheReceiveQueueIsReportedAndBreaksTheVi) {
    const Row row("8 VI_OVERRUN", GetParam());
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    chosen.memory = 4 << 20;
    Pair pair(chosen);
    char* data = pair.client.buffer(64);
    for (VIP_ULONG i = 0; i < pair.client.limits.MaxDescriptorsPerQueue; ++i) {
        ASSERT_EQ(pair.client.post_recv(pair.client.message(data, 64)), VIP_SUCCESS);
    }
    EXPECT_EQ(pair.client.errors.size(), 0u) << "the documented depth is usable";
    EXPECT_EQ(pair.client.state(), VIP_STATE_CONNECTED);
    VIP_DESCRIPTOR* one_more = pair.client.message(data, 64);
    CONFORM(VIP_SUCCESS, kConnected, VipPostRecv(pair.client.vi, one_more, pair.client.region));
    ASSERT_TRUE(pair.client.errors.wait_for(VIP_ERROR_VI_OVERRUN));
    const auto error = pair.client.errors.first(VIP_ERROR_VI_OVERRUN);
    EXPECT_EQ(error->ResourceCode, VIP_RESOURCE_VI);
    EXPECT_EQ(error->ViHandle, pair.client.vi);
    EXPECT_EQ(error->OpCode, static_cast<VIP_ULONG>(VIP_STATUS_OP_RECEIVE)) << "tells which queue";
    EXPECT_TRUE(pair.client.reaches(VIP_STATE_ERROR));
    EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR, kOneSecond));
    EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_CONN_LOST, kOneSecond));
}

TEST_P(Overrun, OfTheSendQueueIsReportedAndBreaksTheVi) {
    const Row row("8 VI_OVERRUN", GetParam());
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    chosen.memory = 4 << 20;
    Pair pair(chosen);
    char* data = pair.client.buffer(64);
    char* there = pair.server.buffer(64);
    // Completions that are not taken stay on the queue.
    for (VIP_ULONG i = 0; i <= pair.client.limits.MaxDescriptorsPerQueue; ++i) {
        pair.client.write(data, 8, pair.server.target(there));
    }
    ASSERT_TRUE(pair.client.errors.wait_for(VIP_ERROR_VI_OVERRUN));
    EXPECT_EQ(pair.client.errors.first(VIP_ERROR_VI_OVERRUN)->OpCode & VIP_STATUS_OP_RECEIVE, 0u);
    EXPECT_TRUE(pair.client.reaches(VIP_STATE_ERROR));
    for (VIP_ULONG i = 0; i < pair.client.limits.MaxDescriptorsPerQueue; ++i) {
        ASSERT_NE(reap_send(pair.client.vi).descriptor, nullptr) << "what was on the queue stays on it";
    }
}

INSTANTIATE_TEST_SUITE_P(EachLevel, Overrun, VIADUCT_ALL_LEVELS, level_test_name);

// ---------------------------------------------------------------------------------------------------- the handler

TEST(ErrorHandler, ComesFromAnotherThreadWithItsContextAndNeverTwiceAtOnce) {
    End server(across());
    std::atomic<std::size_t> calls{0};
    struct Context {
        std::atomic<std::size_t>* calls;
        std::thread::id test_thread;
        std::atomic<bool> same_thread{false};
        std::atomic<int> inside{0};
        std::atomic<bool> overlapped{false};
    } context{&calls, std::this_thread::get_id(), {}, {}, {}};
    const auto handler = [](VIP_PVOID context_pointer, VIP_ERROR_DESCRIPTOR*) {
        auto& c = *static_cast<Context*>(context_pointer);
        c.overlapped = c.overlapped || c.inside.fetch_add(1) != 0;
        c.same_thread = c.same_thread || std::this_thread::get_id() == c.test_thread;
        never([] { return false; }, Millis{2});
        c.inside.fetch_sub(1);
        ++*c.calls;
    };
    require(VipErrorCallback(server.nic, &context, handler), "VipErrorCallback");
    constexpr std::size_t kVis = 10;
    End client;
    std::vector<VIP_VI_HANDLE> vis;
    for (std::size_t i = 0; i < kVis; ++i) {
        const VIP_VI_HANDLE here = client.create_vi();
        vis.push_back(server.create_vi());
        connect(client.nic, here, server.nic, vis.back());
    }
    require(VipCloseNic(client.nic), "VipCloseNic");
    client.nic = nullptr;
    EXPECT_TRUE(eventually([&] { return calls == kVis; })) << "one callback per VI, none merged";
    EXPECT_FALSE(context.overlapped);
    EXPECT_FALSE(context.same_thread);
    require(VipErrorCallback(server.nic, nullptr, nullptr), "VipErrorCallback");
}

TEST(ErrorHandler, MayCallTheLibrary) {
    struct Context {
        std::atomic<int> state{-1};
        std::atomic<VIP_RETURN> disconnected{VIP_NOT_DONE};
    } context;
    Pair pair;
    const auto handler = [](VIP_PVOID context_pointer, VIP_ERROR_DESCRIPTOR* error) {
        auto& c = *static_cast<Context*>(context_pointer);
        c.state = End::state_of(error->ViHandle);
        c.disconnected = VipDisconnect(error->ViHandle);
    };
    require(VipErrorCallback(pair.server.nic, &context, handler), "VipErrorCallback");
    require(VipDisconnect(pair.client.vi), "VipDisconnect");
    ASSERT_TRUE(eventually([&] { return context.disconnected != VIP_NOT_DONE; }));
    EXPECT_EQ(context.state, VIP_STATE_ERROR);
    EXPECT_EQ(context.disconnected, VIP_SUCCESS);
    EXPECT_EQ(pair.server.state(), VIP_STATE_IDLE);
    require(VipErrorCallback(pair.server.nic, nullptr, nullptr), "VipErrorCallback");
}

TEST(ErrorHandler, BelongsToOneNicHandle) {
    End bystander;
    Pair pair;
    require(VipDisconnect(pair.client.vi), "VipDisconnect");
    EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_CONN_LOST, kOneSecond));
    EXPECT_EQ(bystander.errors.size(), 0u);
}

TEST(ErrorHandler, ThatWasTakenAwayIsNotCalledAnyMore) {
    EndOptions chosen;
    chosen.level = VIP_SERVICE_UNRELIABLE;
    Pair pair(chosen);
    require(VipErrorCallback(pair.server.nic, nullptr, nullptr), "VipErrorCallback");
    pair.client.send(pair.client.buffer(8), 8);
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_TRUE(never([&] { return pair.server.errors.size() != 0; }));
    EXPECT_EQ(pair.server.state(), VIP_STATE_CONNECTED);
}

TEST(ErrorHandler, IsNotCalledForAViThatWasDestroyed) {
    struct Context {
        std::atomic<std::size_t> calls{0};
        std::atomic<bool> goes_on{false};
    } context;
    const auto handler = [](VIP_PVOID context_pointer, VIP_ERROR_DESCRIPTOR*) {
        auto& c = *static_cast<Context*>(context_pointer);
        ++c.calls;
        EXPECT_TRUE(eventually([&] { return c.goes_on.load(); }, kOneSecond));
    };
    End end;
    require(VipErrorCallback(end.nic, &context, handler), "VipErrorCallback");
    const VIP_VI_HANDLE told = end.create_vi();
    const VIP_VI_HANDLE destroyed = end.create_vi();
    auto* misaligned = reinterpret_cast<VIP_DESCRIPTOR*>(end.buffer(256, 0, 64) + 8);
    require(VipPostRecv(told, misaligned, end.region), "VipPostRecv");
    EXPECT_TRUE(eventually([&] { return context.calls == 1; }, kOneSecond));
    require(VipPostRecv(destroyed, misaligned, end.region), "VipPostRecv");
    require(retire(destroyed), "VipDestroyVi");
    context.goes_on = true;
    EXPECT_TRUE(never([&] { return context.calls != 1; })) << "of what the program has destroyed nothing is told";
    require(VipErrorCallback(end.nic, nullptr, nullptr), "VipErrorCallback");
}

/// An orderly end is told late (spec/compat Q14), after 250 ms: nothing is told of it when this end has left by then.
/// Where the machine lets it leave too late for that, it may be told, and another pair shows it.
template <typename Leave>
void expect_nothing_told(Leave&& leave) {
    constexpr Millis kSoon{200};
    constexpr int kPairs = 50;
    bool soon = false, quiet = false;
    for (int i = 0; i < kPairs && !soon && !quiet; ++i) {
        Pair pair;
        const auto start = Clock::now();
        require(VipDisconnect(pair.client.vi), "VipDisconnect");
        ASSERT_TRUE(pair.server.reaches(VIP_STATE_ERROR));
        leave(pair.server);
        soon = since(start) < kSoon;
        quiet = never([&] { return pair.server.errors.size() != 0; }, Millis{600});
    }
    EXPECT_TRUE(quiet) << (soon ? "told though it had left" : "told each time, as it never left in time");
}

TEST(ConnLost, IsNotDeliveredOnceTheViWasDisconnected) {
    expect_nothing_told([](End& server) { require(VipDisconnect(server.vi), "VipDisconnect"); });
}

TEST(ConnLost, IsNotDeliveredForADestroyedVi) {
    expect_nothing_told([](End& server) {  // spec/compat Q17
        require(retire(server.vi), "VipDestroyVi");
        server.vi = server.create_vi();
    });
}

TEST(ConnLost, ComesOncePerConnectionAlsoForAViThatWasConnectedAgain) {
    Pair pair;
    for (std::size_t round = 1; round <= 2; ++round) {
        require(VipDisconnect(pair.client.vi), "VipDisconnect");
        EXPECT_TRUE(eventually([&] { return pair.server.errors.size() == round; }, kOneSecond));
        require(VipDisconnect(pair.server.vi), "VipDisconnect");
        connect(pair.client.nic, pair.client.vi, pair.server.nic, pair.server.vi);
    }
    EXPECT_EQ(pair.server.errors.count(VIP_ERROR_CONN_LOST), 2u);
}

// --------------------------------------------------------------------------------------------------- catastrophic

TEST(Catastrophic, ACompletionQueueThatOverflowsIsReportedAndNeverOverwritten) {
    const Row row("8 CATASTROPHIC");
    EndOptions small;
    small.recv_cq = 4;
    Pair pair(EndOptions{}, small);
    constexpr VIP_ULONG room = 4;  // at least so many; how many there really are, filling the queue shows
    constexpr VIP_ULONG kMessages = 1000;
    for (VIP_ULONG i = 0; i < kMessages; ++i) {
        pair.server.receive(8);
    }
    char* data = pair.client.buffer(8);
    VIP_ULONG sent = 0;
    while (sent < kMessages && pair.server.errors.size() == 0) {
        VIP_DESCRIPTOR* d = pair.client.message(data, 8);
        require(pair.client.post_send(d), "VipPostSend");
        reap_send(pair.client.vi);
        ++sent;
        // Lets the library of the receiving side work without taking an entry.
        VIP_DESCRIPTOR* none = nullptr;
        VipSendDone(pair.server.vi, &none);
        if (sent > room) {
            eventually([&] { return pair.server.errors.size() != 0; }, Millis{2});
        }
    }
    ASSERT_TRUE(pair.server.errors.wait_for(VIP_ERROR_CATASTROPHIC, kOneSecond));
    const auto error = pair.server.errors.first(VIP_ERROR_CATASTROPHIC);
    EXPECT_EQ(error->ResourceCode, VIP_RESOURCE_CQ);
    EXPECT_EQ(error->CQHandle, pair.server.recv_cq);
    EXPECT_GT(sent, room) << "the size asked for is usable";
    EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR));
    VIP_ULONG entries = 0;
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv = VIP_FALSE;
    while (VipCQDone(pair.server.recv_cq, &vi, &recv) == VIP_SUCCESS) {
        EXPECT_EQ(vi, pair.server.vi);
        ++entries;
    }
    EXPECT_GE(entries, room);
}

}  // namespace
}  // namespace viaduct::conformance
