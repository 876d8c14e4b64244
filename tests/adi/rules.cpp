// SPDX-License-Identifier: BSD-2-Clause
// Rules of the wire that no message shows while both sides keep them: one side is a peer by hand
// (wire_peer.hpp), or does not look for a while.
#include <unistd.h>

#include <algorithm>

#include "tests/eventually.hpp"
#include "wire_peer.hpp"

namespace viaduct::adi_test {
namespace {

using Kind = WirePacket::Kind;

// --- one packet with one fault each round ---

// What is sent, in order; the last one has the fault. The first round has none.
std::vector<std::vector<WirePacket>> faulty_packets() {
    const WirePacket good;
    std::vector<std::vector<WirePacket>> all = {{good}};
    const auto alone = [&all](auto change) {
        WirePacket p;
        change(p);
        all.push_back({p});
    };
    alone([](WirePacket& p) { p.sequence = 1; });  // the first one is missing
    alone([](WirePacket& p) { p.sequence = 65535; });
    all.push_back({good, good});  // a second time
    alone([](WirePacket& p) { p.source = 0; });
    alone([](WirePacket& p) { p.source = 2; });
    alone([](WirePacket& p) { p.here = 0, p.cut = 1; });
    alone([](WirePacket& p) { p.here = 0, p.cut = 25; });  // not even a header
    alone([](WirePacket& p) { p.kind = Kind::unknown; });
    alone([](WirePacket& p) { p.noops = 100; });  // for packets that were not sent
    alone([](WirePacket& p) { p.kind = Kind::noop, p.sequence = 1; });
    alone([](WirePacket& p) { p.kind = Kind::next, p.number = 1; });  // of no message
    alone([](WirePacket& p) { p.kind = Kind::reply, p.length = 8; });
    alone([](WirePacket& p) { p.kind = Kind::data; });
    alone([](WirePacket& p) { p.kind = Kind::written; });
    alone([](WirePacket& p) { p.kind = Kind::read; });
    alone([](WirePacket& p) { p.kind = Kind::request, p.length = uint64_t{1} << 63; });
    alone([](WirePacket& p) { p.kind = Kind::request, p.length = 100, p.protocol = 4; });
    alone([](WirePacket& p) { p.kind = Kind::first, p.length = 100, p.claimed = 9; });
    alone([](WirePacket& p) { p.kind = Kind::first, p.length = 7; });
    WirePacket first, next;
    first.kind = Kind::first;
    first.length = 16;
    next.kind = Kind::next;
    next.sequence = next.number = 1;
    const auto behind_it = [&](auto change) {
        WirePacket second = next;
        change(second);
        all.push_back({first, second});
    };
    behind_it([](WirePacket& p) { p.kind = Kind::eager; });  // in the middle of another message (spec/adi C53)
    behind_it([](WirePacket& p) { p.kind = Kind::request, p.length = 100; });
    behind_it([](WirePacket& p) { p.kind = Kind::first, p.length = 100; });
    behind_it([](WirePacket& p) { p.number = 2; });
    behind_it([](WirePacket& p) { p.here = 9; });  // more than the message has
    behind_it([](WirePacket& p) { p.here = 0; });
    return all;
}

// The receiver of such a packet ends the connection and hands nothing of the packet to the engine.
void faulty(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    const std::vector<WirePacket> packets = faulty_packets().at(seed - 1);
    const bool good = seed == 1;
    if (e.rank() == 0) job.say(0);
    job.barrier();
    if (e.rank() == 1) {
        for (const WirePacket& p : packets) put_on_wire(e, 0, p);
        job.await(1);
        ::_exit(0);  // nothing orderly is left to be done
    }
    // Messages that begin before the fault: an eager one that is whole, or the first packet of a longer one.
    const size_t right = packets.size() - (good ? 0 : 1);
    while (good ? e.unexpected() == 0 : e.failed().empty()) {
        e.progress();
        CHECK(e.unexpected() <= right);
    }
    CHECK(good || (e.failed().size() == 1 && e.failed()[0] == 1));
    CHECK(((e.process(1)->p_flags & MPIP_PROC_TRANSPORTERR) != 0) != good);
    CHECK(e.unexpected() == right);
    job.say(1);
    ::_exit(0);
}

// --- credits ---

constexpr int kDepth = 16, kPreserved = 4;

// Short messages leave the last credits to envelopes: one leaves although the receiver does not look (spec/adi C33).
void preserved(Job& job) {
    Engine e(job, module);
    if (e.rank() == 0) job.say(0);
    job.barrier();
    if (e.rank() == 0) {
        process_t* other = e.process(1);
        int sent = 0;
        const char byte = 0;
        while (other->p_proto->pt_fsend(other, &byte, 1, nullptr, 1, e.comm(), MPIP_MODE_TRY) == MPIP_SUCCESS)
            ++sent;
        CHECK(sent == kDepth - kPreserved);
        static mpip_req_t request;
        e.isend(request, 1, 2, &byte, 1, MPIP_MODE_SYNC);
        job.say(1);
        job.await(2);
        ::_exit(0);
    }
    job.await(1);
    WireNews news;
    for (int i = 0; i < kDepth - kPreserved; ++i) {
        CHECK(take_off_wire(e, 0, &news));
        CHECK(news.kind == Kind::eager && news.sequence == i && news.length == 1 && news.tag == 1);
    }
    CHECK(take_off_wire(e, 0, &news));
    CHECK(news.kind == Kind::request && news.sequence == kDepth - kPreserved && news.tag == 2);
    CHECK(!take_off_wire(e, 0, &news));
    job.say(2);
    ::_exit(0);
}

// What is told of receives posted anew may be spent, to the last one and no further (spec/adi C41).
void told(Job& job) {
    Engine e(job, module);
    if (e.rank() == 0) job.say(0);
    job.barrier();
    if (e.rank() == 0) {
        process_t* other = e.process(1);
        const char byte = 0;
        const auto send_all = [&] {
            int sent = 0;
            while (other->p_proto->pt_fsend(other, &byte, 1, nullptr, 1, e.comm(), MPIP_MODE_TRY) ==
                   MPIP_SUCCESS)
                ++sent;
            return sent;
        };
        CHECK(send_all() == kDepth - kPreserved);
        job.say(1);
        job.await(2);
        const uint64_t before = mpip_counters_of(other->p_proto->pt_number)->mc_unexpected;
        while (e.unexpected() == 0) e.progress();
        CHECK(mpip_counters_of(other->p_proto->pt_number)->mc_unexpected >= before);
        CHECK(send_all() == 5);
        job.say(3);
        ::_exit(0);
    }
    job.await(1);
    WirePacket p;
    p.credit = 5;
    put_on_wire(e, 0, p);
    job.say(2);
    job.await(3);
    ::_exit(0);
}

// --- long messages ---

constexpr size_t kLongest = 600'000;

// A request says how long the message is and how many receives its packets will take (spec/adi C57, C39).
void announced(Job& job) {
    Engine e(job, module);
    if (e.rank() == 0) job.say(0);
    job.barrier();
    if (e.rank() == 0) {
        static std::vector<unsigned char> data(kLongest);
        static mpip_req_t request;
        e.isend(request, 1, 7, data.data(), data.size());
        job.say(1);
        job.await(2);
        ::_exit(0);
    }
    job.await(1);
    WireNews news;
    CHECK(take_off_wire(e, 0, &news));
    CHECK(news.kind == Kind::request && news.sequence == 0 && news.tag == 7 && news.request != 0);
    CHECK(news.length == kLongest);
    CHECK(news.announced == (kLongest + data_per_packet() - 1) / data_per_packet());
    CHECK(!take_off_wire(e, 0, &news));
    job.say(2);
    ::_exit(0);
}

// What a peer may answer to a request, and what it may not: each round one answer with one fault, the first
// with none.
std::vector<std::vector<WirePacket>> faulty_answers() {
    std::vector<std::vector<WirePacket>> all;
    const auto answer = [&all](auto change) {
        WirePacket p;
        p.kind = Kind::reply;
        p.length = kLongest;
        change(p);
        all.push_back({p});
    };
    answer([](WirePacket&) {});
    answer([](WirePacket& p) { p.length = kLongest + 1; });  // more than there is
    answer([](WirePacket& p) { p.request ^= 1; });           // to another request
    answer([](WirePacket& p) { p.request ^= uint64_t{1} << 32; });
    answer([](WirePacket& p) { p.protocol = 2; });                // what the receiver begins without a reply
    answer([](WirePacket& p) { p.protocol = 3, p.handle = 1; });  // what was not offered
    answer([](WirePacket& p) { p.protocol = 4; });
    answer([](WirePacket& p) { p.protocol = 1, p.pieces = 1U << 20; });  // a list longer than any
    answer([](WirePacket& p) { p.pieces = 2; });                         // a list that is not wanted
    answer([](WirePacket& p) { p.kind = Kind::read; });                  // nothing was offered to be read
    answer([](WirePacket& p) { p.kind = Kind::written; });               // it is a send
    answer([](WirePacket& p) { p.kind = Kind::data; });
    answer([](WirePacket& p) { p.kind = Kind::taken_back; });  // it was not recalled
    answer([](WirePacket&) {});
    all.back().push_back(all.back().front());  // a second time
    all.back().back().sequence = 1;
    return all;
}

void answers(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    if (e.rank() == 0) job.say(0);
    job.barrier();
    std::vector<WirePacket> packets = faulty_answers().at(seed - 1);
    const bool good = seed == 1;
    if (e.rank() == 1) {
        job.await(1);
        WireNews news;
        CHECK(take_off_wire(e, 0, &news) && news.kind == Kind::request && news.length == kLongest);
        for (WirePacket& p : packets) {
            p.request += news.request - 77;
            if (seed == 3 || seed == 4) p.request = news.request ^ (seed == 3 ? 1 : uint64_t{1} << 32);
            put_on_wire(e, 0, p);
        }
        constexpr int kPieces = kDepth - 1 - kPreserved;  // one credit went with the request
        for (int pieces = 0; good && pieces < kPieces;) {
            if (!take_off_wire(e, 0, &news)) continue;
            CHECK(news.kind == Kind::data);
            ++pieces;
        }
        if (good) job.say(3);
        job.await(2);
        CHECK(!take_off_wire(e, 0, &news) || !good);
        ::_exit(0);
    }
    static std::vector<unsigned char> data(kLongest);
    static mpip_req_t request;
    e.isend(request, 1, 7, data.data(), data.size(), MPIP_MODE_SYNC);
    job.say(1);
    if (good) {
        while (job.said() != 3) e.progress();
        e.progress_for(5);
        CHECK(e.failed().empty() && (request.r_state & MPIP_REQ_DONE) == 0);
    } else {
        CHECK(e.wait(request) == MPIP_ERR_PROC_FAILED);
        CHECK((request.r_state & MPIP_REQ_CANCELLED) == 0 && e.failed().size() == 1);
    }
    job.say(2);
    ::_exit(0);
}

// What follows a reply: each round the data of a message of two packets, the second one with a fault; the
// first round has none.
constexpr int kRoundsOfData = 9;
void data_of_a_message(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    if (e.rank() == 0) job.say(0);
    job.barrier();
    constexpr uint32_t kPiece = 100;
    const bool good = seed == 1;
    if (e.rank() == 1) {
        job.await(1);
        WirePacket request;
        request.kind = Kind::request;
        request.length = 2 * kPiece;
        put_on_wire(e, 0, request);
        WireNews reply;
        CHECK(tests::eventually("the reply", [&] { return take_off_wire(e, 0, &reply); }));
        CHECK(reply.kind == Kind::reply && reply.length == 2 * kPiece && reply.request == request.request);
        WirePacket p;
        p.kind = Kind::data;
        p.here = kPiece;
        p.request = reply.receive;
        p.sequence = 1;
        put_on_wire(e, 0, p);
        p.sequence = 2;
        p.number = kPiece;
        switch (seed) {
            case 2:
                p.number = 0;
                break;
            case 3:
                p.number = 2 * kPiece;
                break;
            case 4:
                p.here = kPiece + 1;
                break;
            case 5:
                p.here = 0;
                break;
            case 6:
                p.request ^= uint64_t{1} << 32;
                break;
            case 7:
                p.kind = Kind::written;  // no address was given to write to
                break;
            case 8:
                p.kind = Kind::read;
                break;
            case kRoundsOfData:
                p.sequence = 3;  // the one between is missing
                break;
            default:
                break;
        }
        put_on_wire(e, 0, p);
        job.await(2);
        ::_exit(0);
    }
    std::vector<unsigned char> in(2 * kPiece, 0xee);
    mpip_req_t req;
    e.irecv(req, 1, 0, in.data(), in.size());
    job.say(1);
    CHECK(e.wait(req) == (good ? MPIP_SUCCESS : MPIP_ERR_PROC_FAILED));
    CHECK(e.failed().empty() == good);
    for (size_t i = 0; i < kPiece; ++i) CHECK(in[i] == 0);
    CHECK(in[kPiece] == (good ? 0 : 0xee));
    job.say(2);
    ::_exit(0);
}

// Messages that wait for the same credits are moved one after the other, in the order of their replies (spec/adi C52).
void one_by_one(Job& job) {
    constexpr size_t kMessages = 3;
    Engine e(job, module);
    if (e.rank() == 0) job.say(0);
    job.barrier();
    mpip_req_t requests[kMessages];
    std::vector<unsigned char> data[kMessages];
    for (size_t i = 0; i < kMessages; ++i) data[i].resize(kLongest);
    if (e.rank() == 0) {
        for (size_t i = 0; i < kMessages; ++i) {
            fill(data[i], static_cast<uint32_t>(i));
            e.isend(requests[i], 1, static_cast<int>(i), data[i].data(), kLongest, MPIP_MODE_SYNC);
        }
        job.await(1);  // all replies are there before any of them is read
        for (mpip_req_t& request : requests) CHECK(e.wait(request) == MPIP_SUCCESS);
        return e.barrier();
    }
    for (size_t i = 0; i < kMessages; ++i)
        e.irecv(requests[i], 0, static_cast<int>(i), data[i].data(), kLongest);
    const auto started = [](const mpip_req_t& r) { return (r.r_state & MPIP_REQ_STARTED) != 0; };
    while (!std::all_of(requests, requests + kMessages, started)) e.progress();
    job.say(1);
    const auto done = [](const mpip_req_t& r) { return (r.r_state & MPIP_REQ_DONE) != 0; };
    while (!done(requests[kMessages - 1])) {
        e.progress();
        for (size_t i = 1; i < kMessages; ++i) CHECK(!done(requests[i]) || done(requests[i - 1]));
    }
    for (size_t i = 0; i < kMessages; ++i) CHECK(holds(data[i].data(), kLongest, static_cast<uint32_t>(i)));
    e.barrier();
}

// Longer than one transfer of the NIC (spec/adi C58), either way.
void beyond_a_transfer(Job& job) {
    Engine e(job, module);
    std::vector<unsigned char> out(9'000'001), in(out.size());
    const int other = 1 - e.rank();
    fill(out, static_cast<uint32_t>(e.rank()));
    mpip_req_t send, receive;
    e.irecv(receive, other, 1, in.data(), in.size());
    e.isend(send, other, 1, out.data(), out.size());
    CHECK(e.wait(receive) == MPIP_SUCCESS && e.wait(send) == MPIP_SUCCESS);
    CHECK(holds(in.data(), in.size(), static_cast<uint32_t>(other)));
    e.barrier();
    CHECK(e.failed().empty());
}

// More receives are asked for than a queue of the NIC takes: as many as it does are posted (spec/adi C8).
void deep(Job& job) {
    Engine e(job, module);
    std::vector<unsigned char> data(100);
    for (int round = 0; round < 20; ++round) {
        e.rank() == 0 ? e.send(1, round, data.data(), data.size())
                      : CHECK(e.receive(0, round, data.data(), data.size()) == data.size());
    }
    e.barrier();
    CHECK(e.failed().empty());
}

}  // namespace

std::vector<Case> rule_cases() {
    using Environment = std::vector<std::pair<const char*, const char*>>;
    const Environment queue_only = {{"CMPI_EAGER_RING_AFTER", "0"}, {"CMPI_PREPOST_DEPTH", "16"}};
    Environment by_packets = queue_only, writing = queue_only, reading = queue_only, both = queue_only;
    by_packets.push_back({"CMPI_RENDEZVOUS", "r3"});
    writing.push_back({"CMPI_RENDEZVOUS", "rput"});
    reading.push_back({"CMPI_RENDEZVOUS", "rget"});
    both.push_back({"CMPI_RENDEZVOUS", "both"});
    const int faults = static_cast<int>(faulty_packets().size());
    return {
        {"faulty", faulty, 2, 10, "via", queue_only, {}, faults},
        {"preserved", preserved, 2, 10, "via", queue_only},
        {"told", told, 2, 10, "via", queue_only},
        {"announced", announced, 2, 10, "via", by_packets},
        {"answers", answers, 2, 10, "via", by_packets, {}, static_cast<int>(faulty_answers().size())},
        {"data", data_of_a_message, 2, 10, "via", by_packets, {}, kRoundsOfData},
        {"one-by-one", one_by_one, 2, 20, "via", by_packets},
        {"beyond-a-transfer", beyond_a_transfer, 2, 20},
        {"beyond-a-transfer-rput", beyond_a_transfer, 2, 20, "via", writing},
        {"beyond-a-transfer-rget", beyond_a_transfer, 2, 20, "via", reading},
        {"beyond-a-transfer-both", beyond_a_transfer, 2, 20, "via", both},
        {"deep", deep, 2, 20, "via", {{"CMPI_PREPOST_DEPTH", "4096"}, {"CMPI_RENDEZVOUS_EXTRA", "4096"}}},
    };
}

}  // namespace viaduct::adi_test
