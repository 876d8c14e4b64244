// SPDX-License-Identifier: BSD-2-Clause
// Messages at every reliability level: spec/descriptors 2.4, spec/completion 5, spec/compat 10.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

constexpr VIP_UINT32 kSent = VIP_STATUS_DONE | VIP_STATUS_OP_SEND;
constexpr VIP_UINT32 kReceived = VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE;

/// Bytes that differ from message to message and place to place.
void paint(char* data, std::size_t bytes, std::uint32_t seed) {
    for (std::size_t i = 0; i < bytes; ++i) {
        data[i] = static_cast<char>((i * 131 + (i >> 8) * 17 + seed) & 0xFF);
    }
}

bool painted(const char* data, std::size_t bytes, std::uint32_t seed) {
    for (std::size_t i = 0; i < bytes; ++i) {
        if (data[i] != static_cast<char>((i * 131 + (i >> 8) * 17 + seed) & 0xFF)) {
            return false;
        }
    }
    return true;
}

using Messages = AtEachLevel;

TEST_P(Messages, OfEverySizeArriveWithTheirLengthAndNothingBeyond) {
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    const VIP_ULONG largest = nic_attributes().MaxTransferSize;
    chosen.memory = 4 * largest + (1 << 20);
    Pair pair(chosen);
    std::vector<std::size_t> sizes = {0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 63, 64, 65, 127, 128, 200, 255, 256, 1000,
                                      1024, 1500, 4000, 4095, 4096, 4097, 9000, 16384, 32768, 65472, 65480, 65536,
                                      100001, 262144, 1 << 20};
    sizes.push_back(largest - 1);
    sizes.push_back(largest);
    char* out = pair.client.buffer(largest, 0, 64);
    char* in = pair.server.buffer(largest + 64, 0, 64);
    VIP_DESCRIPTOR* send = pair.client.descriptor();
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    for (const std::size_t size : sizes) {
        if (size > largest) {
            continue;
        }
        SCOPED_TRACE(size);
        paint(out, size, static_cast<std::uint32_t>(size));
        in[size] = '#';
        fill(receive, VIP_CONTROL_OP_SENDRECV, {pair.server.piece(in, size)});
        fill(send, VIP_CONTROL_OP_SENDRECV, {pair.client.piece(out, size)});
        CONFORM(VIP_SUCCESS, kConnected, VipPostRecv(pair.server.vi, receive, pair.server.region));
        CONFORM(VIP_SUCCESS, kConnected, VipPostSend(pair.client.vi, send, pair.client.region));
        const Outcome sent = reap_send(pair.client.vi);
        const Outcome got = reap_recv(pair.server.vi);
        CONFORM_RESULT("VipSendDone", VIP_SUCCESS, VS::kConnected, sent.code);
        ASSERT_TRUE(CONFORM_RESULT("VipRecvDone", VIP_SUCCESS, VS::kConnected, got.code));
        EXPECT_EQ(sent.descriptor, send);
        EXPECT_EQ(sent.status(), kSent);
        EXPECT_EQ(send->CS.Length, size);
        EXPECT_EQ(got.descriptor, receive);
        EXPECT_EQ(got.status(), kReceived);
        EXPECT_EQ(receive->CS.Length, size);
        EXPECT_TRUE(painted(in, size, static_cast<std::uint32_t>(size)));
        EXPECT_EQ(in[size], '#') << "one byte too many";
    }
}

TEST_P(Messages, OfOddAlignmentOnBothSidesArriveUnchanged) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* out = pair.client.buffer(20000, 0, 64);
    char* in = pair.server.buffer(20000, 0, 64);
    VIP_DESCRIPTOR* send = pair.client.descriptor();
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    std::uint32_t seed = 0;
    for (const std::size_t from : {1, 2, 3, 5, 8, 15, 33, 63}) {
        for (const std::size_t to : {0, 1, 4, 7, 13, 32, 63}) {
            for (const std::size_t size : {5, 40, 70, 300, 5001, 17000}) {
                paint(out + from, size, ++seed);
                fill(receive, VIP_CONTROL_OP_SENDRECV, {pair.server.piece(in + to, size)});
                fill(send, VIP_CONTROL_OP_SENDRECV, {pair.client.piece(out + from, size)});
                require(pair.server.post_recv(receive), "VipPostRecv");
                require(pair.client.post_send(send), "VipPostSend");
                ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
                ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
                ASSERT_TRUE(painted(in + to, size, seed)) << from << " to " << to << ", " << size << " bytes";
            }
        }
    }
}

TEST_P(Messages, CarryImmediateDataOfAllBitPatterns) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    for (const std::uint32_t value : {0u, 1u, 65535u, 0xFFFFFFFFu, 0xdeadbeefu, static_cast<std::uint32_t>(-77)}) {
        for (const std::size_t size : {0, 4, 100, 5000}) {
            VIP_DESCRIPTOR* receive = pair.server.message(pair.server.buffer(size), size, 0, ~value);
            require(pair.server.post_recv(receive), "VipPostRecv");
            VIP_DESCRIPTOR* send = pair.client.send(pair.client.buffer(size), size, VIP_CONTROL_IMMEDIATE, value);
            ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
            EXPECT_EQ(receive->CS.Status, kReceived | VIP_STATUS_IMMEDIATE);
            EXPECT_EQ(receive->CS.ImmediateData, value);
            EXPECT_EQ(receive->CS.Length, size);
            ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
            EXPECT_EQ(send->CS.Status, kSent) << "the bit belongs to the receiving side";
            EXPECT_EQ(send->CS.ImmediateData, value);
        }
    }
}

TEST_P(Messages, OfNoBytesConsumeAReceiveInAllTheirForms) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    struct Form {
        std::vector<Piece> out;
        std::vector<Piece> in;
        VIP_UINT16 control;
    };
    const Piece none_out = pair.client.piece(pair.client.buffer(8), 0);
    const Piece some_in = pair.server.piece(pair.server.buffer(8), 8);
    const Piece none_in = pair.server.piece(pair.server.buffer(8), 0);
    const std::vector<Form> forms = {{{}, {}, 0},
                                     {{}, {}, VIP_CONTROL_IMMEDIATE},
                                     {{none_out}, {some_in}, 0},
                                     {{none_out}, {none_in}, VIP_CONTROL_IMMEDIATE},
                                     {{}, {some_in}, VIP_CONTROL_IMMEDIATE},
                                     {{none_out, none_out}, {}, 0}};
    for (const Form& form : forms) {
        VIP_DESCRIPTOR* receive = pair.server.descriptor();
        VIP_DESCRIPTOR* send = pair.client.descriptor();
        fill(receive, 0, form.in);
        fill(send, form.control, form.out, std::nullopt, 0xCAFE);
        require(pair.server.post_recv(receive), "VipPostRecv");
        require(pair.client.post_send(send), "VipPostSend");
        ASSERT_EQ(reap_send(pair.client.vi).descriptor, send);
        ASSERT_EQ(reap_recv(pair.server.vi).descriptor, receive);
        EXPECT_EQ(send->CS.Status, kSent);
        EXPECT_EQ(receive->CS.Length, 0u);
        EXPECT_EQ(receive->CS.Status & VIP_STATUS_IMMEDIATE, form.control != 0 ? VIP_STATUS_IMMEDIATE : 0u);
    }
}

TEST_P(Messages, ArriveAndCompleteInPostingOrder) {
    const Row once("6.1 Delivered at most once", GetParam());
    std::optional<Row> exactly;
    std::optional<Row> order;
    if (!unreliable()) {
        exactly.emplace("6.1 Delivered exactly once", GetParam());
        order.emplace("6.1 Order guaranteed", GetParam());
    }
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    chosen.memory = 8 << 20;
    Pair pair(chosen);
    constexpr int kMessages = 600;
    std::vector<VIP_DESCRIPTOR*> receives;
    std::vector<VIP_DESCRIPTOR*> sends;
    for (int i = 0; i < kMessages; ++i) {
        receives.push_back(pair.server.receive(5000));
    }
    // Sizes alternate between those a provider would move in different ways.
    constexpr std::size_t kSizes[] = {4, 40, 4000, 8, 700, 5000, 64};
    // All at once, but for a link that may lose what is not taken in time.
    const std::string nic(reinterpret_cast<const char*>(nic_attributes().Name));
    const std::uint32_t ahead = unreliable() && nic.rfind("paramnet", 0) != 0 ? 16 : kMessages;
    const auto send_up_to = [&](std::uint32_t end) {
        for (auto i = static_cast<std::uint32_t>(sends.size()); i < std::min<std::uint32_t>(end, kMessages); ++i) {
            const std::size_t size = kSizes[i % std::size(kSizes)];
            char* data = pair.client.buffer(size, 0, 4);
            std::memcpy(data, &i, sizeof i);
            sends.push_back(pair.client.send(data, size));
        }
    };
    for (std::uint32_t i = 0; i < kMessages; ++i) {
        send_up_to(i + ahead);
        const Outcome got = reap_recv(pair.server.vi);
        ASSERT_EQ(got.code, VIP_SUCCESS);
        ASSERT_EQ(got.descriptor, receives[i]);
        std::uint32_t number = 0;
        std::memcpy(&number, got.descriptor->DS[0].Local.Data.Address, sizeof number);
        ASSERT_EQ(number, i);
        ASSERT_EQ(got.descriptor->CS.Length, kSizes[i % std::size(kSizes)]);
        const Outcome sent = reap_send(pair.client.vi);
        ASSERT_EQ(sent.code, VIP_SUCCESS);
        ASSERT_EQ(sent.descriptor, sends[i]);
    }
    VIP_DESCRIPTOR* none = nullptr;
    EXPECT_EQ(VipRecvDone(pair.server.vi, &none), VIP_DESCRIPTOR_ERROR);
}

TEST_P(Messages, AreAllThereWhenTheReceiverLooksLate) {
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    chosen.memory = 4 << 20;
    Pair pair(chosen);
    constexpr int kMessages = 400;
    for (int i = 0; i < kMessages; ++i) {
        pair.server.receive(64);
    }
    for (int i = 0; i < kMessages; ++i) {
        pair.client.send(pair.client.buffer(64, static_cast<char>(i)), 64);
    }
    for (int i = 0; i < kMessages; ++i) {
        ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS) << "sends complete without a call of the receiver";
    }
    for (int i = 0; i < kMessages; ++i) {
        const Outcome got = reap_recv(pair.server.vi);
        ASSERT_EQ(got.code, VIP_SUCCESS);
        ASSERT_EQ(*static_cast<char*>(got.descriptor->DS[0].Local.Data.Address), static_cast<char>(i));
    }
}

TEST_P(Messages, LargestBothWaysAtOnceWithSendWaitFirstDoNotLockUp) {
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    const std::size_t largest = nic_attributes().MaxTransferSize;
    constexpr int kRounds = 3;
    chosen.memory = 2 * largest + (1 << 20);
    Pair pair(chosen);
    std::atomic<int> posted{0};
    const auto side = [&](End& end, std::uint32_t own, std::uint32_t other) {
        char* out = end.buffer(largest, 0, 64);
        char* in = end.buffer(largest, 0, 64);
        VIP_DESCRIPTOR* send = end.descriptor();
        VIP_DESCRIPTOR* receive = end.descriptor();
        for (int round = 0; round < kRounds; ++round) {
            paint(out, largest, own + static_cast<std::uint32_t>(round));
            fill(receive, 0, {end.piece(in, largest)});
            fill(send, 0, {end.piece(out, largest)});
            require(end.post_recv(receive), "VipPostRecv");
            ++posted;
            require(eventually([&] { return posted >= 2 * (round + 1); }), "the other side posts its receive");
            require(end.post_send(send), "VipPostSend");
            VIP_DESCRIPTOR* got = nullptr;
            CONFORM(VIP_SUCCESS, kConnected, VipSendWait(end.vi, kLongWait, &got));
            CONFORM(VIP_SUCCESS, kConnected, VipRecvWait(end.vi, kLongWait, &got));
            EXPECT_EQ(got, receive);
            EXPECT_EQ(receive->CS.Length, largest);
            EXPECT_TRUE(painted(in, largest, other + static_cast<std::uint32_t>(round)));
        }
        return 0;
    };
    auto other = in_background([&] { return side(pair.server, 100, 200); });
    side(pair.client, 200, 100);
    other.get();
}

TEST_P(Messages, LoseNothingForAsLongAsTheReceiverPostsInTime) {
    NEEDS_LEVEL(GetParam());
    EndOptions chosen = at_level();
    Pair pair(chosen);
    constexpr int kWindow = 16;
    constexpr int kMessages = 3000;
    std::vector<VIP_DESCRIPTOR*> sends;
    char* data = pair.client.buffer(256, 'c');
    for (int i = 0; i < kWindow; ++i) {
        pair.server.receive(256);
        sends.push_back(pair.client.descriptor());
    }
    int received = 0;
    for (int sent = 0; sent < kMessages; ++sent) {
        VIP_DESCRIPTOR* d = sends[static_cast<std::size_t>(sent % kWindow)];
        if (sent >= kWindow) {
            ASSERT_EQ(reap_send(pair.client.vi).descriptor, d);
            const Outcome got = reap_recv(pair.server.vi);
            ASSERT_EQ(got.code, VIP_SUCCESS) << "message " << received;
            ++received;
            got.descriptor->CS.Status = 0;
            got.descriptor->CS.Length = 256;
            require(pair.server.post_recv(got.descriptor), "VipPostRecv");
        }
        fill(d, 0, {pair.client.piece(data, static_cast<std::size_t>(1 + sent % 256))});
        require(pair.client.post_send(d), "VipPostSend");
    }
    while (received < kMessages) {
        ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
        ++received;
    }
    EXPECT_EQ(pair.server.errors.size(), 0u);
}

TEST_P(Messages, MayShareTheirBuffers) {
    NEEDS_LEVEL(GetParam());
    Pair pair(at_level());
    char* in = pair.server.buffer(64);
    char* out = pair.client.buffer(64, 't');
    for (int i = 0; i < 8; ++i) {
        require(pair.server.post_recv(pair.server.message(in, 64)), "VipPostRecv");
    }
    for (int i = 0; i < 8; ++i) {
        pair.client.send(out, 64);
    }
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
        EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    }
    EXPECT_EQ(in[63], 't');
}

TEST_P(Messages, PostedBeforeConnectingAreReceivedAfterwards) {
    NEEDS_LEVEL(GetParam());
    End client(at_level());
    End server(across(at_level()));
    std::vector<VIP_DESCRIPTOR*> early;
    for (int i = 0; i < 200; ++i) {
        early.push_back(server.receive(64));
    }
    connect(client.nic, client.vi, server.nic, server.vi);
    for (VIP_DESCRIPTOR* expected : early) {
        client.send(client.buffer(16), 16);
        ASSERT_EQ(reap_recv(server.vi).descriptor, expected);
        ASSERT_EQ(reap_send(client.vi).code, VIP_SUCCESS);
    }
}

INSTANTIATE_TEST_SUITE_P(EachLevel, Messages, VIADUCT_ALL_LEVELS, level_test_name);

TEST(ReceptionLevel, ASendIsCompleteOnlyWhenItsDataIsInTheTargetsMemory) {
    const Row row("6.1 Data in target memory when the send completes", VIP_SERVICE_RELIABLE_RECEPTION);
    NEEDS_LEVEL(VIP_SERVICE_RELIABLE_RECEPTION);
    EndOptions chosen;
    chosen.level = VIP_SERVICE_RELIABLE_RECEPTION;
    Pair pair(chosen);
    for (const std::size_t size : {4, 100, 5000, 60000}) {
        char* in = pair.server.buffer(size, 0, 64);
        VIP_DESCRIPTOR* receive = pair.server.message(in, size);
        require(pair.server.post_recv(receive), "VipPostRecv");
        pair.client.send(pair.client.buffer(size, '!', 64), size);
        ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        // No call on the target's side in between: its memory has to have the bytes by now.
        EXPECT_EQ(peek(&in[0]), '!');
        EXPECT_EQ(peek(&in[size - 1]), '!');
        EXPECT_EQ(reap_recv(pair.server.vi).descriptor, receive);
    }
}

TEST(MessageThreads, OneThreadSendsAndPollsWhileAnotherWaitsForReceives) {
    Pair pair;
    constexpr int kMessages = 500;
    const auto sender = [](End& end) {
        char* data = end.buffer(32);
        VIP_DESCRIPTOR* d = end.descriptor();
        for (int i = 0; i < kMessages; ++i) {
            fill(d, 0, {end.piece(data, 32)});
            require(end.post_send(d), "VipPostSend");
            require(reap_send(end.vi).code, "VipSendDone");
        }
        return kMessages;
    };
    const auto receiver = [](End& end) {
        for (int i = 0; i < kMessages; ++i) {
            VIP_DESCRIPTOR* d = nullptr;
            require(VipRecvWait(end.vi, kLongWait, &d), "VipRecvWait");
        }
        return kMessages;
    };
    for (int i = 0; i < kMessages; ++i) {
        pair.client.receive(32);
        pair.server.receive(32);
    }
    auto receive_there = in_background([&] { return receiver(pair.server); });
    auto receive_here = in_background([&] { return receiver(pair.client); });
    auto send_there = in_background([&] { return sender(pair.server); });
    EXPECT_EQ(sender(pair.client), kMessages);
    EXPECT_EQ(send_there.get(), kMessages);
    EXPECT_EQ(receive_there.get(), kMessages);
    EXPECT_EQ(receive_here.get(), kMessages);
}

}  // namespace
}  // namespace viaduct::conformance
