// SPDX-License-Identifier: BSD-2-Clause
// What a descriptor may hold, which error bit answers which mistake, and what survives: spec/descriptors
// with spec/compat 10, M10, T1-T8.
#include <sys/mman.h>

#include <cstring>
#include <numeric>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

// ------------------------------------------------------------------------------- mistakes in a send descriptor

/// One mistake: how to make it, and the bit that has to answer.
struct Mistake {
    const char* what;
    VIP_UINT32 bit;
    std::function<void(End&, VIP_DESCRIPTOR*)> make;
};

VIP_MEM_HANDLE region_with_tag_of_its_own(End& end, void* address, std::size_t length) {
    VIP_PROTECTION_HANDLE tag = nullptr;
    require(VipCreatePtag(end.nic, &tag), "VipCreatePtag");
    VIP_MEM_ATTRIBUTES attributes{tag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle = 0;
    require(VipRegisterMem(end.nic, address, length, &attributes, &handle), "VipRegisterMem");
    return handle;
}

const std::vector<Mistake>& segment_mistakes() {
    static const std::vector<Mistake> list = {
        {"unknown memory handle", VIP_STATUS_PROTECTION_ERROR,
         [](End& end, VIP_DESCRIPTOR* d) { d->DS[0].Local.Handle = end.region ^ 0x55550000u; }},
        {"handle 0", VIP_STATUS_PROTECTION_ERROR, [](End&, VIP_DESCRIPTOR* d) { d->DS[0].Local.Handle = 0; }},
        {"handle of all ones", VIP_STATUS_PROTECTION_ERROR,
         [](End&, VIP_DESCRIPTOR* d) { d->DS[0].Local.Handle = 0xFFFFFFFFu; }},
        {"address before the region", VIP_STATUS_PROTECTION_ERROR,
         [](End& end, VIP_DESCRIPTOR* d) { d->DS[0].Local.Data.Address = end.memory - 1; }},
        {"range beyond the region", VIP_STATUS_PROTECTION_ERROR,
         [](End& end, VIP_DESCRIPTOR* d) {
             d->DS[0].Local.Data.Address = end.memory + end.wanted.memory - d->DS[0].Local.Length + 1;
         }},
        {"range around the end of the address space", VIP_STATUS_PROTECTION_ERROR,
         [](End&, VIP_DESCRIPTOR* d) { d->DS[0].Local.Data.AddressBits = ~VIP_UINT64{0} - 8; }},
        {"NULL address", VIP_STATUS_PROTECTION_ERROR,
         [](End&, VIP_DESCRIPTOR* d) { d->DS[0].Local.Data.Address = nullptr; }},
        {"memory of another tag", VIP_STATUS_PROTECTION_ERROR,
         [](End& end, VIP_DESCRIPTOR* d) {
             d->DS[0].Local.Handle = region_with_tag_of_its_own(end, d->DS[0].Local.Data.Address, 64);
         }},
    };
    return list;
}

const std::vector<Mistake>& send_mistakes() {
    static const std::vector<Mistake> list = [] {
        std::vector<Mistake> all = segment_mistakes();
        const std::vector<Mistake> more = {
            {"lowest reserved control bit", VIP_STATUS_FORMAT_ERROR,
             [](End&, VIP_DESCRIPTOR* d) { d->CS.Control |= 0x0010; }},
            {"highest reserved control bit", VIP_STATUS_FORMAT_ERROR,
             [](End&, VIP_DESCRIPTOR* d) { d->CS.Control |= 0x8000; }},
            {"reserved operation", VIP_STATUS_FORMAT_ERROR,
             [](End&, VIP_DESCRIPTOR* d) { d->CS.Control |= VIP_CONTROL_OP_RESERVED; }},
            {"more segments than the NIC takes", VIP_STATUS_FORMAT_ERROR,
             [](End& end, VIP_DESCRIPTOR* d) {
                 d->CS.SegCount = static_cast<VIP_UINT16>(end.limits.MaxSegmentsPerDesc + 1);
             }},
            {"65,535 segments", VIP_STATUS_FORMAT_ERROR,
             [](End&, VIP_DESCRIPTOR* d) { d->CS.SegCount = 0xFFFF; }},
            {"RDMA write without an address segment", VIP_STATUS_FORMAT_ERROR,
             [](End&, VIP_DESCRIPTOR* d) {
                 d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
                 d->CS.SegCount = 0;
                 d->CS.Length = 0;
             }},
            {"RDMA read without an address segment", VIP_STATUS_FORMAT_ERROR,
             [](End&, VIP_DESCRIPTOR* d) {
                 d->CS.Control = VIP_CONTROL_OP_RDMAREAD;
                 d->CS.SegCount = 0;
                 d->CS.Length = 0;
             }},
            {"RDMA read with immediate data", VIP_STATUS_FORMAT_ERROR,
             [](End& end, VIP_DESCRIPTOR* d) {
                 char* data = static_cast<char*>(d->DS[0].Local.Data.Address);
                 fill(d, VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE, {end.piece(data, 64)},
                      Target{data, end.region});
             }},
            {"Length above the sum of the segments", VIP_STATUS_LENGTH_ERROR,
             [](End&, VIP_DESCRIPTOR* d) { d->CS.Length += 1; }},
            {"Length below the sum of the segments", VIP_STATUS_LENGTH_ERROR,
             [](End&, VIP_DESCRIPTOR* d) { d->CS.Length -= 1; }},
            {"more than the VI's MaxTransferSize", VIP_STATUS_LENGTH_ERROR,
             [](End& end, VIP_DESCRIPTOR* d) {
                 fill(d, VIP_CONTROL_OP_SENDRECV, {end.piece(end.memory, end.wanted.max_transfer + 1)});
             }},
        };
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }();
    return list;
}

const char* row_of(VIP_UINT32 bit) {
    return bit == VIP_STATUS_FORMAT_ERROR       ? "6.2 Local send descriptor format error"
           : bit == VIP_STATUS_PROTECTION_ERROR ? "6.2 Local send descriptor protection error"
                                                : "6.2 Local send descriptor length error";
}

const char* bit_row_of(VIP_UINT32 bit) {
    return bit == VIP_STATUS_FORMAT_ERROR       ? "2.3 FORMAT_ERROR"
           : bit == VIP_STATUS_PROTECTION_ERROR ? "2.3 PROTECTION_ERROR"
                                                : "2.3 LENGTH_ERROR";
}

/// The end of a connection is told late (spec/compat Q14): to wait for it after each mistake would take long.
bool waits_for_the_callback(const Mistake& mistake) {
    return mistake.what == segment_mistakes().front().what || mistake.what == send_mistakes().back().what;
}

using SendMistakes = AtEachLevel;

TEST_P(SendMistakes, AreReportedInTheDescriptorAndBreakReliableConnections) {
    for (const Mistake& mistake : send_mistakes()) {
        SCOPED_TRACE(mistake.what);
        const Row row(row_of(mistake.bit), GetParam());
        const Row bit_row(bit_row_of(mistake.bit), GetParam());
        NEEDS_LEVEL(GetParam());
        EndOptions chosen = at_level();
        chosen.max_transfer = 8192;
        Pair pair(chosen);
        pair.server.receive(128);
        VIP_DESCRIPTOR* d = pair.client.message(pair.client.buffer(64, 'm'), 64);
        mistake.make(pair.client, d);
        const VIP_UINT16 control = d->CS.Control;
        CONFORM(VIP_SUCCESS, kConnected, VipPostSend(pair.client.vi, d, pair.client.region));
        const Outcome sent = reap_send(pair.client.vi);
        EXPECT_EQ(sent.code, VIP_DESCRIPTOR_ERROR);
        ASSERT_EQ(sent.descriptor, d);
        EXPECT_TRUE(sent.status() & VIP_STATUS_DONE);
        EXPECT_TRUE(sent.errors() & mistake.bit) << std::hex << sent.status();
        const VIP_UINT32 operation =
            (control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAWRITE  ? VIP_STATUS_OP_RDMA_WRITE
            : (control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAREAD ? VIP_STATUS_OP_RDMA_READ
                                                                         : VIP_STATUS_OP_SEND;
        if ((control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_RESERVED) {
            EXPECT_EQ(sent.operation(), operation) << "op bits are valid in error completions too";
        }
        if (unreliable()) {
            EXPECT_EQ(pair.client.state(), VIP_STATE_CONNECTED);
            pair.client.send(pair.client.buffer(8, 'o'), 8);
            const Outcome got = reap_recv(pair.server.vi);
            EXPECT_EQ(got.code, VIP_SUCCESS) << "nothing of the bad send may take a receive";
            EXPECT_EQ(got.descriptor->CS.Length, 8u);
            EXPECT_EQ(pair.server.errors.size(), 0u);
        } else {
            EXPECT_TRUE(pair.client.reaches(VIP_STATE_ERROR));
            EXPECT_TRUE(pair.server.reaches(VIP_STATE_ERROR, kOneSecond));
            EXPECT_TRUE(reap_recv(pair.server.vi).errors() & VIP_STATUS_DESC_FLUSHED_ERROR);
            if (waits_for_the_callback(mistake)) {
                EXPECT_TRUE(pair.server.errors.wait_for(VIP_ERROR_CONN_LOST, kOneSecond));
                EXPECT_EQ(pair.server.errors.size(), 1u);
            }
            EXPECT_LE(pair.client.errors.size(), 1u) << "at most once per entry to Error";
        }
    }
}

TEST_P(SendMistakes, RdmaReadWhereItIsNotOfferedIsAFormatError) {
    const Row row("2.3 FORMAT_ERROR", GetParam());
    NEEDS_LEVEL(GetParam());
    if ((nic_attributes().RDMAReadSupport & GetParam()) != 0) {
        GTEST_SKIP() << "the NIC offers RDMA read at this level";
    }
    Pair pair(at_level());
    char* data = pair.client.buffer(64);
    pair.client.read(data, 64, pair.server.target(pair.server.buffer(64)));
    const Outcome got = reap_send(pair.client.vi);
    EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
    EXPECT_TRUE(got.errors() & VIP_STATUS_FORMAT_ERROR);
    EXPECT_EQ(got.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_RDMA_READ));
}

INSTANTIATE_TEST_SUITE_P(EachLevel, SendMistakes, VIADUCT_ALL_LEVELS, level_test_name);

// ---------------------------------------------------------------------------- mistakes in a receive descriptor

TEST(ReceiveMistakes, AreReportedInTheDescriptorWithoutTouchingMemory) {
    std::vector<Mistake> list = segment_mistakes();
    const auto control = [](VIP_UINT16 bits) {
        return [bits](End&, VIP_DESCRIPTOR* d) { d->CS.Control |= bits; };
    };
    list.push_back({"RDMA write operation", VIP_STATUS_FORMAT_ERROR, control(VIP_CONTROL_OP_RDMAWRITE)});
    list.push_back({"RDMA read operation", VIP_STATUS_FORMAT_ERROR, control(VIP_CONTROL_OP_RDMAREAD)});
    list.push_back({"reserved operation", VIP_STATUS_FORMAT_ERROR, control(VIP_CONTROL_OP_RESERVED)});
    list.push_back({"reserved control bit", VIP_STATUS_FORMAT_ERROR, control(0x0100)});
    list.push_back({"too many segments", VIP_STATUS_FORMAT_ERROR, [](End& end, VIP_DESCRIPTOR* d) {
                        d->CS.SegCount = static_cast<VIP_UINT16>(end.limits.MaxSegmentsPerDesc + 1);
                    }});
    for (const Mistake& mistake : list) {
        SCOPED_TRACE(mistake.what);
        EndOptions chosen;
        chosen.level = VIP_SERVICE_UNRELIABLE;
        Pair pair(chosen);
        char* data = pair.server.buffer(64, 'k');
        VIP_DESCRIPTOR* d = pair.server.message(data, 64);
        mistake.make(pair.server, d);
        CONFORM(VIP_SUCCESS, kConnected, VipPostRecv(pair.server.vi, d, pair.server.region));
        pair.client.send(pair.client.buffer(64, 'n'), 64);
        EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
        const Outcome got = reap_recv(pair.server.vi);
        EXPECT_EQ(got.code, VIP_DESCRIPTOR_ERROR);
        ASSERT_EQ(got.descriptor, d);
        EXPECT_TRUE(got.errors() & mistake.bit) << std::hex << got.status();
        EXPECT_EQ(got.operation(), static_cast<VIP_UINT32>(VIP_STATUS_OP_RECEIVE));
        EXPECT_EQ(data[0], 'k');
        EXPECT_EQ(pair.server.state(), VIP_STATE_CONNECTED);
    }
}

TEST(ReceiveTolerance, BitsAndLengthASenderWouldSetAreAccepted) {
    Pair pair;
    VIP_DESCRIPTOR* d = pair.server.message(pair.server.buffer(64), 64, VIP_CONTROL_IMMEDIATE, 4711);
    d->CS.Length = 12345;
    require(pair.server.post_recv(d), "VipPostRecv");
    pair.client.send(pair.client.buffer(10, 'i'), 10);
    const Outcome got = reap_recv(pair.server.vi);
    EXPECT_EQ(got.code, VIP_SUCCESS);
    EXPECT_EQ(got.descriptor->CS.Length, 10u);
    EXPECT_EQ(got.status(), static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE))
        << "the sender sent no immediate data";
    EXPECT_EQ(got.descriptor->CS.ImmediateData, 4711u) << "without the bit the field is left alone (spec/compat T7)";
}

// ------------------------------------------------------------------------------------------- what has to survive

TEST(DescriptorFields, SegmentsCountAndControlSurviveACompletion) {
    Pair pair;
    VIP_DESCRIPTOR* receive = pair.server.message(pair.server.buffer(64), 64);
    VIP_DESCRIPTOR* send = pair.client.message(pair.client.buffer(40, 's'), 40, VIP_CONTROL_IMMEDIATE, 0xFFFFFFFFu);
    const VIP_DESCRIPTOR receive_before = *receive;
    const VIP_DESCRIPTOR send_before = *send;
    require(pair.server.post_recv(receive), "VipPostRecv");
    require(pair.client.post_send(send), "VipPostSend");
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    for (const auto& [before, after] : {std::pair{&receive_before, receive}, std::pair{&send_before, send}}) {
        EXPECT_EQ(std::memcmp(before->DS, after->DS, sizeof before->DS), 0);
        EXPECT_EQ(before->CS.SegCount, after->CS.SegCount);
        EXPECT_EQ(before->CS.Control, after->CS.Control);
        EXPECT_EQ(before->CS.Reserved, after->CS.Reserved);
    }
    EXPECT_EQ(send->CS.ImmediateData, 0xFFFFFFFFu) << "the sender finds its own value unchanged (spec/compat T8)";
    EXPECT_EQ(send->CS.Length, 40u);
}

TEST(DescriptorFields, NextBelongsToTheProgramOnceTheDescriptorWasHandedBack) {
    Pair pair;
    for (int i = 0; i < 10; ++i) {
        pair.server.receive(16);
    }
    char* data = pair.client.buffer(16);
    std::vector<VIP_DESCRIPTOR*> returned;
    for (int i = 0; i < 10; ++i) {
        pair.client.send(data, 16);
        for (const Outcome& each : {reap_send(pair.client.vi), reap_recv(pair.server.vi)}) {
            ASSERT_EQ(each.code, VIP_SUCCESS);
            each.descriptor->CS.Next.Address = each.descriptor;
            each.descriptor->CS.NextHandle = 99;
            returned.push_back(each.descriptor);
        }
    }
    for (const VIP_DESCRIPTOR* d : returned) {
        EXPECT_EQ(d->CS.Next.Address, d);
        EXPECT_EQ(d->CS.NextHandle, 99u);
    }
}

TEST(DescriptorFields, StatusIsOverwrittenCompletely) {
    Pair pair;
    VIP_DESCRIPTOR* receive = pair.server.message(pair.server.buffer(64), 64);
    VIP_DESCRIPTOR* send = pair.client.message(pair.client.buffer(8), 8);
    receive->CS.Status = send->CS.Status = 0xFFFFFFFFu & ~static_cast<VIP_UINT32>(VIP_STATUS_DONE);
    require(pair.server.post_recv(receive), "VipPostRecv");
    require(pair.client.post_send(send), "VipPostSend");
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    EXPECT_EQ(send->CS.Status, static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_SEND));
    EXPECT_EQ(receive->CS.Status, static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE));
}

TEST(DescriptorFields, AFreshlyDoneDescriptorCanBePostedAgainAtOnce) {
    Pair pair;
    VIP_DESCRIPTOR* receive = pair.server.message(pair.server.buffer(64), 64);
    VIP_DESCRIPTOR* send = pair.client.message(pair.client.buffer(8), 8);
    for (int i = 0; i < 200; ++i) {
        receive->CS.Status = send->CS.Status = 0;
        receive->CS.Length = 64;
        send->CS.Length = 8;
        require(pair.server.post_recv(receive), "VipPostRecv");
        require(pair.client.post_send(send), "VipPostSend");
        ASSERT_EQ(reap_send(pair.client.vi).descriptor, send);
        ASSERT_EQ(reap_recv(pair.server.vi).descriptor, receive);
    }
}

// ---------------------------------------------------------------------------------------- segments and placement

void scatter_gather(std::size_t out_segments, std::size_t in_segments) {
    SCOPED_TRACE(std::to_string(out_segments) + " segments into " + std::to_string(in_segments));
    EndOptions chosen;
    chosen.memory = 4 << 20;
    Pair pair(chosen);
    const auto cut = [](End& end, std::size_t segments, std::size_t total, char filler) {
        std::vector<Piece> pieces;
        std::size_t left = total;
        for (std::size_t i = 0; i < segments; ++i) {
            const std::size_t here = i + 1 == segments ? left : std::min(left, total / segments + (i % 3));
            pieces.push_back(end.piece(end.buffer(here + 1, filler, 1), here));
            left -= here;
        }
        return pieces;
    };
    const std::size_t total = 4000 + out_segments;
    const std::vector<Piece> out = cut(pair.client, out_segments, total, 0);
    const std::vector<Piece> in = cut(pair.server, in_segments, total, '#');
    unsigned char next = 0;
    for (const Piece& piece : out) {
        std::iota(static_cast<unsigned char*>(piece.address), static_cast<unsigned char*>(piece.address) + piece.length,
                  next);
        next = static_cast<unsigned char>(next + piece.length);
    }
    VIP_DESCRIPTOR* receive = pair.server.descriptor(in_segments);
    fill(receive, VIP_CONTROL_OP_SENDRECV, in);
    require(pair.server.post_recv(receive), "VipPostRecv");
    VIP_DESCRIPTOR* send = pair.client.descriptor(out_segments);
    fill(send, VIP_CONTROL_OP_SENDRECV, out);
    require(pair.client.post_send(send), "VipPostSend");
    ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    EXPECT_EQ(receive->CS.Length, total);
    next = 0;
    for (const Piece& piece : in) {
        const auto* bytes = static_cast<unsigned char*>(piece.address);
        for (std::uint32_t i = 0; i < piece.length; ++i) {
            ASSERT_EQ(bytes[i], next++);
        }
        EXPECT_EQ(bytes[piece.length], '#') << "one byte too many";
    }
}

TEST(Segments, GatherAndScatterWithAsManyAsTheNicHas) {
    const std::size_t most = nic_attributes().MaxSegmentsPerDesc;  // NicQuery tests how many it has to be
    for (const auto& [out, in] :
         {std::pair<std::size_t, std::size_t>{1, 1}, {2, 1}, {1, 2}, {3, 5}, {16, 7}, {127, 31},
          {most, 1}, {1, most}, {most, most}, {most, most - 1}}) {
        if (out <= most && in <= most) {
            scatter_gather(out, in);
        }
    }
}

TEST(Segments, AShortMessageLeavesTheRestOfTheReceiveAlone) {
    Pair pair;
    char* one = pair.server.buffer(10, '-');
    char* two = pair.server.buffer(10, '-');
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    fill(receive, VIP_CONTROL_OP_SENDRECV, {pair.server.piece(one, 10), pair.server.piece(two, 10)});
    require(pair.server.post_recv(receive), "VipPostRecv");
    pair.client.send(pair.client.buffer(13, 'a'), 13);
    ASSERT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    EXPECT_EQ(receive->CS.Length, 13u);
    EXPECT_EQ(std::string(one, 10), "aaaaaaaaaa");
    EXPECT_EQ(std::string(two, 10), "aaa-------");
}

TEST(Segments, EmptyOnesAreSkippedWithoutLookingAtAddressAndHandle) {
    Pair pair;
    char* in = pair.server.buffer(8);
    VIP_DESCRIPTOR* receive = pair.server.descriptor(3);
    fill(receive, VIP_CONTROL_OP_SENDRECV, {{nullptr, 0, 0}, pair.server.piece(in, 8), {&pair, 77, 0}});
    require(pair.server.post_recv(receive), "VipPostRecv");
    VIP_DESCRIPTOR* send = pair.client.descriptor(3);
    fill(send, VIP_CONTROL_OP_SENDRECV,
         {{nullptr, 0, 0}, {&pair, 0xFFFFFFFF, 0}, pair.client.piece(pair.client.buffer(8, 'z'), 8)});
    require(pair.client.post_send(send), "VipPostSend");
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    EXPECT_EQ(in[7], 'z');
}

TEST(Placement, ADescriptorMayCrossAPage) {
    Pair pair;
    constexpr std::size_t kPage = 4096;
    constexpr std::size_t kSegments = 12;  // 32 + 12 * 16 = 224 bytes, from 64 bytes before a page's end
    constexpr std::size_t kEach = 10;
    const auto crossing = [](End& end, char filler) {
        char* block = end.buffer(3 * kPage, filler, kPage);
        auto* d = reinterpret_cast<VIP_DESCRIPTOR*>(block + kPage - 64);
        std::vector<Piece> pieces;
        for (std::size_t i = 0; i < kSegments; ++i) {
            pieces.push_back(end.piece(block + 2 * kPage + i * kEach, kEach));
        }
        fill(d, VIP_CONTROL_OP_SENDRECV, pieces);
        return d;
    };
    VIP_DESCRIPTOR* receive = crossing(pair.server, ' ');
    VIP_DESCRIPTOR* send = crossing(pair.client, 'q');
    require(pair.server.post_recv(receive), "VipPostRecv");
    require(pair.client.post_send(send), "VipPostSend");
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
    const Outcome got = reap_recv(pair.server.vi);
    EXPECT_EQ(got.code, VIP_SUCCESS);
    EXPECT_EQ(got.descriptor, receive);
    const char* data = reinterpret_cast<char*>(receive) - (kPage - 64) + 2 * kPage;
    EXPECT_EQ(std::string(data, kSegments * kEach), std::string(kSegments * kEach, 'q'));
}

TEST(Placement, ADescriptorInAnotherRegionThanTheOneNamedIsTolerated) {
    Pair pair;
    VIP_MEM_HANDLE other = 0;
    char* elsewhere = pair.client.buffer(64);
    require(VipRegisterMem(pair.client.nic, elsewhere, 64, nullptr, &other), "VipRegisterMem");
    pair.server.receive(16);
    VIP_DESCRIPTOR* d = pair.client.message(pair.client.buffer(16, 'w'), 16);
    CONFORM(VIP_SUCCESS, kConnected, VipPostSend(pair.client.vi, d, other));
    EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS) << "spec/compat M10";
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    EXPECT_EQ(pair.client.state(), VIP_STATE_CONNECTED);
    EXPECT_EQ(pair.client.errors.size(), 0u);
}

TEST(Placement, ARegisteredDescriptorIsFoundWhateverItsHandleSays) {
    Pair pair;
    for (const VIP_MEM_HANDLE handle : {VIP_MEM_HANDLE{0}, VIP_MEM_HANDLE{0xFFFFFFFFu}, pair.client.region ^ 0x10u}) {
        pair.server.receive(16);
        VIP_DESCRIPTOR* d = pair.client.message(pair.client.buffer(16, 'w'), 16);
        CONFORM(VIP_SUCCESS, kConnected, VipPostSend(pair.client.vi, d, handle));
        EXPECT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS) << "it lies in some region of the NIC (spec/compat M10)";
        EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    }
}

TEST(Placement, BothDialectsOfTheDescriptorAreTheSameMemory) {
    Pair pair;
    char* in = pair.server.buffer(32);
    VIP_DESCRIPTOR* receive = pair.server.descriptor();
    receive->Control.SegCount = 1;
    receive->Data[0].Data.Address = in;
    receive->Data[0].Handle = pair.server.region;
    receive->Data[0].Length = 32;
    require(pair.server.post_recv(receive), "VipPostRecv");
    pair.client.send(pair.client.buffer(32, 'b'), 32);
    EXPECT_EQ(reap_recv(pair.server.vi).code, VIP_SUCCESS);
    EXPECT_EQ(receive->Control.Length, 32u);
    EXPECT_EQ(in[31], 'b');
}

}  // namespace
}  // namespace viaduct::conformance
