// SPDX-License-Identifier: BSD-2-Clause
// The small parts of the device: names of requests, packets, parameters, the choice of a protocol; and the
// protocol fed with frames that are invalid.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "mpi-adi/transport/adi/device.hpp"
#include "mpi-adi/transport/adi/params.hpp"
#include "mpi-adi/transport/adi/request_ids.hpp"
#include "mpi-adi/transport/multirail/multi_lane.hpp"
#include "mpi-adi/transport/protocol/send.hpp"
#include "mpi-adi/transport/shm/layout.hpp"
#include "mpi-adi/transport/tcp/handshake.hpp"
#include "mpi-adi/transport/protocol/pieces.hpp"
#include "mpi-adi/transport/via/request_page.hpp"
#include "mpi-adi/transport/via/vbuf.hpp"
#include "mpi-adi/transport/via/wire.hpp"

namespace viaduct {
namespace {

TEST(RequestPage, TellsEachNotedRankOnceAndKeepsThoseToCome) {
    via::RequestPage page;
    EXPECT_FALSE(page.is_noted());
    EXPECT_EQ(via::RequestPage::note(page.offer(), 1), Opened::not_offered);
    page.open();
    const MemoryOffer offer = page.offer();
    const uint32_t last = via::RequestPage::kMostRanks - 1;
    EXPECT_TRUE(page.take(last + 1).empty());
    for (const uint32_t rank : {63U, 0U, 64U, 63U, 100U, last})
        EXPECT_EQ(via::RequestPage::note(offer, rank), Opened::ok);
    EXPECT_EQ(via::RequestPage::note(offer, last + 1), Opened::not_offered);
    EXPECT_TRUE(page.is_noted());
    EXPECT_EQ(page.take(100), (std::vector<uint32_t>{0, 63, 64}));
    EXPECT_FALSE(page.is_noted());
    page.look_again();
    EXPECT_EQ(page.take(last + 1), (std::vector<uint32_t>{100, last}));
    EXPECT_FALSE(page.is_noted());
    EXPECT_EQ(via::RequestPage::note(offer, 5), Opened::ok);
    EXPECT_EQ(page.take(6), (std::vector<uint32_t>{5}));
    page.close();
    EXPECT_FALSE(page.is_noted());
    EXPECT_TRUE(is_withdrawn(via::RequestPage::note(offer, 5)));
}

TEST(RequestIds, AreNeverAddressesAndNeverComeBack) {
    adi::RequestIds ids;
    ids.count_in(&mpip_protocols[MPIP_PROTO_TCP].pt_nactv);
    const unsigned active = mpip_protocols[MPIP_PROTO_TCP].pt_nactv;
    mpip_req_t a = {}, b = {};
    std::set<reqaddr_t> seen;
    for (int i = 0; i < 1000; ++i) {
        ids.add(&a);
        const reqaddr_t name = a.r_id;
        EXPECT_TRUE(seen.insert(name).second);
        EXPECT_EQ(ids.find(name), &a);
        ids.add(&b);
        EXPECT_NE(a.r_id, b.r_id);
        EXPECT_EQ(mpip_protocols[MPIP_PROTO_TCP].pt_nactv, active + 2);
        ids.remove(&a);
        EXPECT_EQ(ids.find(name), nullptr);
        ids.remove(&b);
    }
    EXPECT_EQ(mpip_protocols[MPIP_PROTO_TCP].pt_nactv, active);
    EXPECT_EQ(ids.find(0), nullptr);
    EXPECT_EQ(ids.find(UINT64_MAX), nullptr);
    EXPECT_EQ(ids.find(reinterpret_cast<uintptr_t>(&a)), nullptr);
}

TEST(Wire, LiesInMemoryAsTheDocumentSays) {
    via::Eager p = {};
    p.header.type = via::PacketType::eager;
    p.header.sequence = 0x0102;
    p.header.credit = 0x0304;
    p.header.source = 0x05060708;
    p.context = 0x1112131415161718;
    p.tag = 0x21222324;
    p.rank = 0x31323334;
    const unsigned char expected[28] = {1,    0,    0x02, 0x01, 0x04, 0x03, 0,    0,    0x08, 0x07,
                                        0x06, 0x05, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
                                        0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31};
    EXPECT_EQ(std::memcmp(&p, expected, sizeof expected), 0);
    EXPECT_EQ(via::MAX_DATA_SIZE, 16384u - 64 - 28);
    for (int type = 0; type < 256; ++type) {
        const size_t least = via::least_length(static_cast<via::PacketType>(type));
        EXPECT_EQ(least >= sizeof(via::Header), type >= 1 && type <= 17) << type;
    }
}

TEST(Vbuf, HasItsDescriptorBehindItsBuffer) {
    EXPECT_EQ(sizeof(via::vbuf::buffer) + sizeof(VIP_DESCRIPTOR), 16384u);
    alignas(128) static via::vbuf v;
    EXPECT_EQ(via::vbuf_of(&v.desc), &v);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(&v.desc) % VIP_DESCRIPTOR_ALIGNMENT, 0u);
    EXPECT_EQ(static_cast<void*>(v.buffer + via::VBUF_BUFFER_SIZE), static_cast<void*>(&v.desc));
    EXPECT_EQ(via::vbuf_of_sent(&v.desc), &v);
    EXPECT_EQ(via::vbuf_of_sent(via::long_descriptor_of(&v)), &v);
}

// As a peer would tell it: all pieces in one registration, whose handle is 7.
protocol::PieceListPtr heard(const std::vector<protocol::WirePiece>& pieces, uint64_t bytes, uint32_t handle = 7) {
    protocol::WireMemory head;
    head.address = 0;
    head.first = 0;
    head.pieces = static_cast<uint32_t>(pieces.size());
    head.rows = head.handles = 1;
    protocol::Le32 row;
    row = handle;
    std::vector<char> told(sizeof head + sizeof row + pieces.size() * sizeof(protocol::WirePiece));
    std::memcpy(told.data(), &head, sizeof head);
    std::memcpy(told.data() + sizeof head, &row, sizeof row);
    std::memcpy(told.data() + sizeof head + sizeof row, pieces.data(), pieces.size() * sizeof(protocol::WirePiece));
    protocol::PieceListPtr list;
    uint64_t first = 0;
    return protocol::PieceList::parse(told.data(), told.size(), bytes, &list, &first) ? std::move(list) : nullptr;
}

protocol::PieceListPtr list_of(std::initializer_list<uint64_t> lengths, uint64_t bytes) {
    std::vector<protocol::WirePiece> wire(lengths.size());
    uint64_t address = 0x1000;
    size_t i = 0;
    for (const uint64_t length : lengths) {
        wire[i].address = address;
        wire[i].bytes = length;
        wire[i++].row = 0;
        address += 2 * length;
    }
    return heard(wire, bytes);
}

TEST(PieceLists, AreWalkedTogetherByDescriptorsOfOneRemotePieceEach) {
    alignas(128) static via::vbuf v;
    const auto near = list_of({10, 20, 30, 40}, 100), far = list_of({35, 5, 60}, 100);
    ASSERT_TRUE(near && far);
    // What each descriptor moves, in how many segments: bounded by pieces there, room for segments, and length.
    const std::pair<uint32_t, int> wanted[] = {{30, 2}, {5, 1}, {5, 1}, {50, 2}, {10, 1}};
    VIP_DESCRIPTOR* d = via::long_descriptor_of(&v);
    uint64_t moved = 0;
    for (const auto& [bytes, segments] : wanted) {
        EXPECT_EQ(via::vbuf_init_pieces(&v, VIP_CONTROL_OP_RDMAWRITE, *near, *far, 50, 3, 0), bytes);
        EXPECT_EQ(d->CS.Length, bytes);
        EXPECT_EQ(d->CS.SegCount, segments + 1);
        EXPECT_EQ(d->DS[0].Remote.Data.AddressBits, far->address());
        near->advance(bytes);
        far->advance(bytes);
        moved += bytes;
    }
    EXPECT_EQ(moved, 100u);
}

TEST(PieceLists, OfOthersMustMakeSense) {
    EXPECT_TRUE(list_of({1, 2, 3}, 6));
    EXPECT_FALSE(list_of({1, 2, 3}, 7));
    EXPECT_FALSE(list_of({1, 0, 3}, 4));
    EXPECT_FALSE(list_of({uint64_t{1} << 63, uint64_t{1} << 63, 5}, 5));
    EXPECT_FALSE(list_of({UINT64_MAX - 0x800, 1}, UINT64_MAX - 0x7ff));
    EXPECT_FALSE(list_of({8}, 8)) << "one piece is no list";
    std::vector<protocol::WirePiece> two(2);
    two[0].address = two[1].address = 0x1000;
    two[0].bytes = two[1].bytes = 8;
    two[0].row = 0;
    two[1].row = 0;
    EXPECT_TRUE(heard(two, 16));
    EXPECT_FALSE(heard(two, 16, 0)) << "without a handle";
    two[1].row = 1;
    EXPECT_FALSE(heard(two, 16)) << "of a registration that is not there";
}

TEST(Params, HaveANameAHelpAndAnOrigin) {
    size_t count = 0;
    const mpip_param* all = mpip_params(&count);
    ASSERT_GT(count, 10u);
    for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(std::strncmp(all[i].pa_name, "CMPI_", 5), 0);
        EXPECT_GT(std::strlen(all[i].pa_help), 20u) << all[i].pa_name;
        EXPECT_STREQ(all[i].pa_origin, "default") << all[i].pa_name;
        EXPECT_STREQ(all[i].pa_value, all[i].pa_default) << all[i].pa_name;
    }
}

TEST(Table, HasAllEntriesOfEachModuleAndNoOtherModule) {
    ASSERT_GE(mpip_protocol_count(), 4);
    for (int number = 0; number < mpip_protocol_count(); ++number) {
        struct protocol table;
        ASSERT_EQ(mpip_map_functions(mpip_protocol_name(number), &table), MPIP_SUCCESS);
        EXPECT_EQ(table.pt_number, number);
        // From the first entry to the last there are only functions: 26 of the design and five more.
        const auto* first = reinterpret_cast<void* const*>(&table.pt_initialize);
        const auto* last = reinterpret_cast<void* const*>(&table.pt_pressure);
        ASSERT_EQ(last - first + 1, 26 + 5);
        for (const auto* entry = first; entry <= last; ++entry) EXPECT_NE(*entry, nullptr);
    }
    struct protocol table;
    EXPECT_EQ(mpip_map_functions("token-ring", &table), MPIP_ERR_ARG);
    EXPECT_EQ(table.pt_loaded, 0);
    EXPECT_NE(std::strstr(mpip_last_error(), "token-ring"), nullptr);
    mpip_upcalls upcalls = {};
    upcalls.version = CMPI_ADI_VERSION + 1;
    EXPECT_EQ(mpip_set_upcalls(&upcalls), MPIP_ERR_ARG);
    upcalls.version = CMPI_ADI_VERSION;
    EXPECT_EQ(mpip_set_upcalls(&upcalls), MPIP_ERR_ARG);
}

int reach_all(taskinfo_t*, int) { return 1; }
int reach_even(taskinfo_t*, int rank) { return rank % 2 == 0; }

TEST(Getconns, TakesTheMostExclusiveThatReaches) {
    struct protocol saved[NPROTO];
    std::memcpy(saved, mpip_protocols, sizeof saved);
    std::memset(static_cast<void*>(mpip_protocols), 0, sizeof saved);
    int sizes[4] = {1, 1, 1, 1};
    char cards[] = "abcd";
    process_t processes[4] = {};
    procinfo infos[4] = {};
    taskinfo_t task = {};
    task.ti_nprocs = 4;
    task.ti_procs = infos;
    for (int i = 0; i < 4; ++i) infos[i].pi_proc = &processes[i];
    for (const int number : {MPIP_PROTO_SHM, MPIP_PROTO_TCP}) {
        mpip_protocols[number].pt_loaded = 1;
        mpip_protocols[number].pt_name = mpip_protocol_name(number);
        task.ti_renvsizes[number] = sizes;
        task.ti_renvs[number] = cards;
    }
    mpip_protocols[MPIP_PROTO_SHM].pt_prop.mp_exclusivity = 50;
    mpip_protocols[MPIP_PROTO_SHM].pt_reach = reach_even;
    mpip_protocols[MPIP_PROTO_TCP].pt_reach = reach_all;
    int whom = -1;
    EXPECT_EQ(mpip_getconns(&task, nullptr, &whom), MPIP_SUCCESS);
    EXPECT_EQ(infos[2].pi_proto, MPIP_PROTO_SHM);
    EXPECT_EQ(infos[3].pi_proto, MPIP_PROTO_TCP);
    EXPECT_EQ(task.ti_nproto[MPIP_PROTO_TCP], 2);
    EXPECT_EQ(infos[3].pi_ptrank, 1);
    EXPECT_EQ(task.ti_proto[MPIP_PROTO_TCP], &infos[1]);
    EXPECT_EQ(infos[1].pi_next, &infos[3]);
    EXPECT_EQ(processes[3].p_proto, &mpip_protocols[MPIP_PROTO_TCP]);
    EXPECT_EQ(mpip_getconns(&task, "shm", &whom), MPIP_ERR_UNREACHABLE);
    EXPECT_EQ(whom, 1);
    std::memcpy(mpip_protocols, saved, sizeof saved);
}

TEST(Stripes, AreNeitherBelowTheLeastNorAboveTheMost) {
    std::mt19937_64 dice(5);
    multirail::Link links[multirail::kMostRails];
    for (int round = 0; round < 10000; ++round) {
        for (multirail::Link& link : links) {
            link.state = dice() % 3 == 0 ? multirail::LinkState::down : multirail::LinkState::up;
            link.bandwidth = dice() % 4 == 0 ? 0 : static_cast<double>(dice() % 20'000'000'000);
        }
        links[0].state = multirail::LinkState::up;
        const size_t most = dice() % 2 == 0 ? multirail::kMostStripe : 2 * multirail::kLeastStripe;
        const size_t length = multirail::kLeastStripe + dice() % 10'000'000;
        for (size_t left = length; left != 0;) {
            const size_t bytes = multirail::stripe_size(links, links[0], left, most);
            ASSERT_LE(bytes, left);
            ASSERT_LE(bytes, most);
            ASSERT_GE(bytes, multirail::kLeastStripe);
            left -= bytes;
        }
    }
}

TEST(Rails, TheLeastLatencyIsThatOfLanesThatAreUpAndMeasured) {
    multirail::Link links[multirail::kMostRails];
    EXPECT_TRUE(std::isinf(multirail::least_latency(links)));
    for (multirail::Link& link : links) link.state = multirail::LinkState::up;
    EXPECT_TRUE(std::isinf(multirail::least_latency(links)));
    links[0].latency_ns = 9000;
    links[2].latency_ns = 5000;
    links[3].latency_ns = 100;
    links[3].state = multirail::LinkState::down;
    // Wherever those lie that are not measured.
    EXPECT_EQ(multirail::least_latency(links), 5000);
    std::swap(links[2].latency_ns, links[multirail::kMostRails - 1].latency_ns);
    EXPECT_EQ(multirail::least_latency(links), 5000);
}

TEST(ShmLayout, EachRingIsAligned) {
    for (size_t bytes = 4096; bytes <= 8192; bytes += shm::kLineBytes) {
        EXPECT_EQ(shm::lane_bytes(bytes) % alignof(shm::Consumed), 0u) << bytes;
        EXPECT_GE(shm::lane_bytes(bytes), sizeof(shm::Consumed) + shm::kLines * shm::kLineBytes + bytes);
    }
}

// --- invalid frames ---

class Recorder : public protocol::Protocol {
public:
    class Lane final : public protocol::Lane {
    public:
        Lane(protocol::Peer& of, Recorder& all) : protocol::Lane(of), recorder(all) { piece = 1000; }
        bool put(const protocol::Frame&, const protocol::Payload&) override { return !recorder.full; }
        void cut() override {}
        Recorder& recorder;
    };
    Recorder() {
        bind(adi::device, MPIP_PROTO_TCP);
        peers_.resize(1);
    }
    ~Recorder() { drop_peers(); }
    protocol::Peer& make_lane(process_t* proc) {
        protocol::Peer& one = add_peer(0, proc);
        one.lane = std::make_unique<Lane>(one, *this);
        lane_ready(one);
        return one;
    }
    bool full = false;
};

mpip_req_t receive;
char memory[4096];
int answer;
std::vector<unexmsg_t*> held;

int arrived(process_t*, const envelope* env, const void* data, size_t here, void* kept, mpip_req_t** match) {
    volatile char sink = 0;
    for (size_t i = 0; i < here; ++i) sink = sink + static_cast<const char*>(data)[i];
    if (answer == MPIP_IN_MATCHED && receive.r_data == nullptr) {
        receive = {};
        receive.r_buf = memory;
        receive.r_bytes = sizeof memory / 2;
        *match = &receive;
        return MPIP_IN_MATCHED;
    }
    if (kept == nullptr) return MPIP_IN_TAKEN;
    auto* message = new unexmsg_t{};
    message->um_env = *env;
    message->um_data = kept;
    held.push_back(message);
    return MPIP_IN_HELD;
}

unexmsg_t* withdraw(process_t*, reqaddr_t) {
    if (held.empty()) return nullptr;
    unexmsg_t* message = held.back();
    held.pop_back();
    return message;
}

TEST(Handshake, ProvesOneStepOfOneCallByThePair) {
    const tcp::Secret one = {1}, two = {2}, three = {3};
    const tcp::Key key = tcp::key_of("job", 4, one, 9, two);
    EXPECT_EQ(key, tcp::key_of("job", 9, two, 4, one));
    EXPECT_NE(key, tcp::key_of("job", 4, two, 9, one));
    EXPECT_NE(key, tcp::key_of("job", 4, one, 9, three));
    EXPECT_NE(key, tcp::key_of("job", 4, one, 8, two));
    EXPECT_NE(key, tcp::key_of("another job", 4, one, 9, two));
    const tcp::Call call = {4, 9, {5}, {6}};
    const tcp::Proof proof = tcp::prove(key, tcp::Step::answer, call);
    EXPECT_TRUE(tcp::is_proof(proof, key, tcp::Step::answer, call));
    EXPECT_FALSE(tcp::is_proof(proof, key, tcp::Step::confirm, call));
    EXPECT_FALSE(tcp::is_proof(proof, tcp::key_of("job", 4, one, 9, three), tcp::Step::answer, call));
    for (const tcp::Call& other : {tcp::Call{9, 4, {5}, {6}}, {4, 8, {5}, {6}}, {4, 9, {6}, {5}}, {4, 9, {5}, {}}})
        EXPECT_FALSE(tcp::is_proof(proof, key, tcp::Step::answer, other));
    tcp::Proof spoilt = proof;
    spoilt.front() ^= 0x80;
    EXPECT_FALSE(tcp::is_proof(spoilt, key, tcp::Step::answer, call));
}

TEST(Protocol, LivesThroughInvalidFrames) {
    const mpip_upcalls upcalls = {CMPI_ADI_VERSION,
                                  arrived,
                                  [](mpip_req_t*) {},
                                  [](process_t*, int) {},
                                  withdraw,
                                  [](unexmsg_t* message) { delete message; },
                                  [](mpip_req_t*) { return 0; },
                                  [] { return 0; },
                                  nullptr,
                                  nullptr};
    ASSERT_EQ(mpip_set_upcalls(&upcalls), MPIP_SUCCESS);
    std::mt19937_64 dice(17);
    std::vector<char> payload(1000);
    for (int round = 0; round < 1000; ++round) {
        Recorder module;
        process_t proc = {};
        protocol::Peer& connection = module.make_lane(&proc);
        receive = {};
        mpip_req_t send = {};
        send.r_flags = MPIP_REQ_SEND;
        send.r_proc = &proc;
        send.r_buf = memory;
        send.r_bytes = 3000;
        mpip_enqsend(&proc, &send);
        module.queued_send(&proc);
        for (int i = 0; i < 300 && !connection.lost(); ++i) {
            answer = static_cast<int>(dice() % 3);
            module.full = dice() % 4 == 0;
            protocol::Frame frame;
            for (size_t byte = 0; byte < sizeof frame; ++byte) {
                reinterpret_cast<unsigned char*>(&frame)[byte] = static_cast<unsigned char>(dice());
            }
            frame.type = static_cast<protocol::FrameType>(dice() % 13);
            frame.bytes = static_cast<uint32_t>(dice() % 1001);
            if (dice() % 2 == 0) frame.length = dice() % 2 == 0 ? frame.bytes : dice() % 5000;
            if (dice() % 2 == 0) frame.sreq = send.r_id;
            if (dice() % 2 == 0) frame.rreq = receive.r_id;
            if (!protocol::carries_data(frame.type) && dice() % 8 != 0) {
                frame.bytes = 0;
            }
            if (!module.incoming(connection, frame, payload.data())) {
                if (dice() % 64 == 0) module.fail(connection, "as it should");
            } else {
                module.push(connection);
            }
        }
        module.fail(connection, "the end of the round");
        EXPECT_NE(send.r_state & MPIP_REQ_DONE, 0);
        for (unexmsg_t* message : held) {
            module.ufree(message);
            delete message;
        }
        held.clear();
    }
}

}  // namespace
}  // namespace viaduct
