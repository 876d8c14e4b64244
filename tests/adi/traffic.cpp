// SPDX-License-Identifier: BSD-2-Clause
// Messages of all kinds between processes that mean well: order, contents, modes, cancelling.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "cases.hpp"

namespace viaduct::adi_test {
namespace {

using Clock = std::chrono::steady_clock;

const size_t kSizes[] = {0,     1,      8,      20,     21,      64,      1000,   4096,
                         16291, 16292,  16293,  16384,  16385,   32000,   65535,  65536,
                         65537, 100000, 262144, 500001, 1048576, 4194303, 4194304};

// Every size there and back, to a receive that waits and to one that comes later.
void sizes(Job& job) {
    Engine e(job, module);
    std::vector<unsigned char> out, in;
    const int other = e.rank() ^ 1;
    if (other >= e.size()) {
        e.barrier();
        return;
    }
    for (const size_t size : kSizes) {
        for (int round = 0; round < 2; ++round) {
            const uint32_t number = static_cast<uint32_t>(size * 7 + static_cast<size_t>(round));
            out.assign(size, 0);
            in.assign(size + 8, 0xee);
            mpip_req_t send, receive;
            if (round == 0) e.irecv(receive, other, 5, in.data(), size);
            fill(out, number + static_cast<uint32_t>(e.rank()));
            e.isend(send, other, 5, out.data(), size);
            if (round == 1) {
                e.progress_for(2);  // most of them are unexpected
                e.irecv(receive, other, 5, in.data(), size);
            }
            CHECK(e.wait(receive) == MPIP_SUCCESS);
            CHECK(e.wait(send) == MPIP_SUCCESS);
            CHECK(receive.r_length == static_cast<int64_t>(size));
            CHECK(holds(in.data(), size, number + static_cast<uint32_t>(other)));
            CHECK(in[size] == 0xee);
        }
    }
    e.barrier();
}

// Messages of one pair and tag arrive in the order in which they were sent, short and long mixed.
void order(Job& job) {
    Engine e(job, module);
    constexpr int kMessages = 300;
    const auto size_of = [](int i) {
        return static_cast<size_t>(i % 7 == 0 ? 70000 + i : i % 5 == 0 ? 9000 + i : 4 + i);
    };
    if (e.rank() == 0) {
        std::vector<std::vector<unsigned char>> data;
        std::vector<mpip_req_t> requests(kMessages);
        for (int i = 0; i < kMessages; ++i) {
            data.emplace_back(size_of(i));
            fill(data.back(), static_cast<uint32_t>(i));
        }
        for (int i = 0; i < kMessages; ++i) {
            e.isend(requests[static_cast<size_t>(i)], 1, 9, data[static_cast<size_t>(i)].data(),
                    data[static_cast<size_t>(i)].size());
        }
        for (auto& req : requests) CHECK(e.wait(req) == MPIP_SUCCESS);
    } else if (e.rank() == 1) {
        std::vector<unsigned char> in(80000);
        for (int i = 0; i < kMessages; ++i) {
            CHECK(e.receive(0, i % 3 == 0 ? kAny : 9, in.data(), in.size()) == size_of(i));
            CHECK(holds(in.data(), size_of(i), static_cast<uint32_t>(i)));
        }
    }
    e.barrier();
}

// Each process sends a random mixture to each; receivers ask for anything, and are slow now and then.
void random_traffic(Job& job) {
    Engine e(job, module);
    const int n = e.size();
    constexpr int kEach = 150;
    std::mt19937 dice(static_cast<unsigned>(4711 + e.rank()));
    struct Out {
        mpip_req_t req;
        std::vector<unsigned char> data;
    };
    std::vector<Out> outs(static_cast<size_t>(kEach * n));
    std::vector<int> expected(static_cast<size_t>(n), 0);
    size_t started = 0;
    int received = 0;
    std::vector<unsigned char> in(300000);
    while (started < outs.size() || received < kEach * n) {
        if (started < outs.size()) {
            Out& out = outs[started];
            const int to = static_cast<int>(started % static_cast<size_t>(n));
            const unsigned kind = dice() % 16;
            const size_t size = kind == 0  ? 20000 + dice() % 200000
                                : kind < 4 ? 1000 + dice() % 30000
                                           : dice() % 200;
            out.data.resize(size + 8);
            const uint32_t number = static_cast<uint32_t>(started / static_cast<size_t>(n));
            std::memcpy(out.data.data(), &number, 4);
            std::memcpy(out.data.data() + 4, &size, 4);
            for (size_t i = 8; i < out.data.size(); ++i)
                out.data[i] = byte_at(number + static_cast<uint32_t>(e.rank()), i);
            e.isend(out.req, to, 3, out.data.data(), out.data.size(),
                    kind == 5 && to != e.rank() ? MPIP_MODE_SYNC : 0);
            ++started;
        }
        if (dice() % 256 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // sleeps: the rank computes
        const bool drain = started == outs.size();
        if (received < kEach * n && (drain || dice() % 4 != 0)) {
            mpip_req_t req;
            e.irecv(req, kAny, 3, in.data(), in.size());
            CHECK(e.wait(req) == MPIP_SUCCESS);
            const int from = req.r_proc->p_gid.pg_wrank;
            CHECK(from == req.r_rank);
            uint32_t number, size;
            std::memcpy(&number, in.data(), 4);
            std::memcpy(&size, in.data() + 4, 4);
            CHECK(static_cast<int>(number) == expected[static_cast<size_t>(from)]++);
            CHECK(req.r_length == static_cast<int64_t>(size + 8));
            for (size_t i = 8; i < size + 8; ++i)
                CHECK(in[i] == byte_at(number + static_cast<uint32_t>(from), i));
            ++received;
        } else {
            e.progress();
        }
    }
    for (Out& out : outs) CHECK(e.wait(out.req) == MPIP_SUCCESS);
    e.barrier();
}

// All send to one that sleeps, then takes everything in the opposite order of tags.
void flood(Job& job) {
    Engine e(job, module);
    constexpr int kMessages = 3000;
    if (e.rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // sleeps: the others send
        unsigned char in[512];
        for (int tag = kMessages - 1; tag >= 0; --tag) {
            for (int from = 1; from < e.size(); ++from) {
                const size_t size = static_cast<size_t>(tag % 500);
                CHECK(e.receive(from, tag, in, sizeof in) == size);
                CHECK(holds(in, size, static_cast<uint32_t>(tag + from)));
            }
        }
    } else {
        std::vector<unsigned char> out;
        for (int tag = 0; tag < kMessages; ++tag) {
            out.resize(static_cast<size_t>(tag % 500));
            fill(out, static_cast<uint32_t>(tag + e.rank()));
            e.send(0, tag, out.data(), out.size());
        }
    }
    e.barrier();
}

// Told again and again that it may go on, while it does not look, a process sends as ever afterwards.
void pressed_often(Job& job) {
    Engine e(job, module);
    constexpr int kTimes = 40, kMessages = 300;
    *job.word() = 0;
    e.barrier();
    if (e.rank() == 0) {
        for (int i = 0; i < kTimes; ++i) e.process(1)->p_proto->pt_pressure(0);
        job.say(1);
        for (int i = 0; i < kMessages; ++i) {
            int got = -1;
            CHECK(e.receive(1, 1, &got, sizeof got) == sizeof got && got == i);
        }
    } else {
        job.await(1);
        for (int i = 0; i < kMessages; ++i) e.send(0, 1, &i, sizeof i);
    }
    e.barrier();
}

// Under pressure unexpected messages come as envelopes: what lies at the receiver stays bounded.
void pressure(Job& job) {
    Engine e(job, module);
    constexpr int kMessages = 800;
    constexpr size_t kBytes = 6000;  // short enough for every module to send without asking
    if (e.rank() == 0) {
        bool on = false;
        size_t most = 0;
        // Messages go on coming for a while; the first ones may be late.
        auto until = Clock::time_point::max();
        while (Clock::now() < until) {
            e.progress();
            most = std::max(most, e.unexpected_bytes());
            if (!on && e.unexpected_bytes() > 200 * 1000) {
                on = true;
                e.process(1)->p_proto->pt_pressure(1);
                until = Clock::now() + std::chrono::milliseconds(300);
            }
        }
        // What was under way when the pressure was told: the credits of each sender. (A sender on a ring
        // is told when it next makes progress.)
        const size_t under_way = static_cast<size_t>(e.size() - 1) * 4 * 1000 * 1000;
        CHECK(std::strcmp(module, "via") != 0 || most < 200 * 1000 + under_way);
        std::vector<unsigned char> in(kBytes);
        for (int i = 0; i < kMessages; ++i) {
            for (int from = 1; from < e.size(); ++from)
                CHECK(e.receive(from, i, in.data(), kBytes) == kBytes);
            if (i == kMessages / 2) e.process(1)->p_proto->pt_pressure(0);
        }
    } else {
        std::vector<unsigned char> out(kBytes, 7);
        std::vector<mpip_req_t> requests(kMessages);
        for (int i = 0; i < kMessages; ++i)
            e.isend(requests[static_cast<size_t>(i)], 0, i, out.data(), kBytes);
        for (auto& req : requests) CHECK(e.wait(req) == MPIP_SUCCESS);
    }
    e.barrier();
}

// A message longer than its receive is cut and says so; what follows is whole. Short, several packets, long.
void truncation(Job& job) {
    Engine e(job, module);
    for (const size_t size : {size_t{100}, size_t{20000}, size_t{60000}, size_t{400000}}) {
        for (const size_t room : {size_t{0}, size_t{50}, size / 2}) {
            if (e.rank() == 0) {
                std::vector<unsigned char> out(size);
                fill(out, 3);
                e.send(1, 1, out.data(), size);
                e.send(1, 2, out.data(), 10);
            } else if (e.rank() == 1) {
                std::vector<unsigned char> in(size + 1, 0xcc);
                mpip_req_t req;
                e.irecv(req, 0, 1, in.data(), room);
                CHECK(e.wait(req) == MPIP_ERR_TRUNCATE);
                CHECK(req.r_length == static_cast<int64_t>(room));
                CHECK(holds(in.data(), room, 3));
                CHECK(in[room] == 0xcc);
                CHECK(e.receive(0, 2, in.data(), 10) == 10);
            }
        }
    }
    e.barrier();
}

// A synchronous send is done when it is matched, not before; a ready send is like any other.
void modes(Job& job) {
    Engine e(job, module);
    for (const size_t size : {size_t{0}, size_t{8}, size_t{300000}}) {
        std::vector<unsigned char> data(size + 1);
        if (e.rank() == 0) {
            mpip_req_t req;
            *job.word() = 0;
            job.barrier();
            e.isend(req, 1, 4, data.data(), size, MPIP_MODE_SYNC);
            e.progress_for(20);
            CHECK((req.r_state & MPIP_REQ_DONE) == 0);
            job.say(1);
            CHECK(e.wait(req) == MPIP_SUCCESS);
            e.send(1, 5, data.data(), size, MPIP_MODE_READY);
        } else {
            job.barrier();
            if (e.rank() == 1) {
                while (__atomic_load_n(job.word(), __ATOMIC_SEQ_CST) == 0) e.progress();
                CHECK(e.receive(0, 4, data.data(), size) == size);
                CHECK(e.receive(0, 5, data.data(), size) == size);
            }
        }
        e.barrier();
    }
}

// A send that is not matched can be taken back; one that is matched is delivered.
void cancel(Job& job) {
    Engine e(job, module);
    for (const size_t size : {size_t{16}, size_t{500000}}) {
        std::vector<unsigned char> data(size);
        if (e.rank() == 0) {
            mpip_req_t lost, kept;
            e.isend(lost, 1, 6, data.data(), size, MPIP_MODE_SYNC);
            e.progress_for(5);
            CHECK(e.process(1)->p_proto->pt_cancelsend(&lost) == MPIP_SUCCESS);
            e.wait(lost);
            CHECK((lost.r_state & MPIP_REQ_CANCELLED) != 0);
            e.isend(kept, 1, 7, data.data(), size, MPIP_MODE_SYNC);
            e.send(1, 8, nullptr, 0);
            e.progress_for(5);
            CHECK(e.process(1)->p_proto->pt_cancelsend(&kept) == MPIP_SUCCESS);
            CHECK(e.wait(kept) == MPIP_SUCCESS);
            CHECK((kept.r_state & MPIP_REQ_CANCELLED) == 0);
        } else if (e.rank() == 1) {
            mpip_req_t req;
            e.irecv(req, 0, 7, data.data(), size);
            e.receive(0, 8, nullptr, 0);
            CHECK(e.wait(req) == MPIP_SUCCESS);
            mpip_req_t never;
            e.irecv(never, 0, 6, data.data(), size);
            e.progress_for(5);
            CHECK(e.cancel_receive(never));
        }
        e.barrier();
    }
}

// Every other word of an array: packed on the way out, unpacked on the way in.
struct EveryOther : mpip_type_t {  // whose pieces are not told
    static void pack(const mpip_type_t*, const void* buf, size_t, size_t offset, void* to, size_t bytes) {
        for (size_t i = 0; i < bytes; ++i) {
            const size_t at = offset + i;
            static_cast<char*>(to)[i] = static_cast<const char*>(buf)[at / 4 * 8 + at % 4];
        }
    }
    static void unpack(const mpip_type_t*, void* buf, size_t, size_t offset, const void* from, size_t bytes) {
        for (size_t i = 0; i < bytes; ++i) {
            const size_t at = offset + i;
            static_cast<char*>(buf)[at / 4 * 8 + at % 4] = static_cast<const char*>(from)[i];
        }
    }
    EveryOther() : mpip_type{} {
        d_size = 4;
        d_pack = pack;
        d_unpack = unpack;
    }
};

void gaps(Job& job) {
    Engine e(job, module);
    const EveryOther type;
    for (const size_t count : {size_t{1}, size_t{100}, size_t{5000}, size_t{100000}}) {
        std::vector<unsigned char> packed(count * 4);
        std::vector<unsigned char> spread(count * 8, 0xaa);
        fill(packed, 11);
        if (e.rank() == 0) {
            mpip_req_t req;
            EveryOther::unpack(nullptr, spread.data(), count, 0, packed.data(), packed.size());
            e.isend(req, 1, 1, spread.data(), count * 4, 0, &type, count);
            CHECK(e.wait(req) == MPIP_SUCCESS);
            e.send(1, 2, packed.data(), packed.size());
            e.isend(req, 0, 3, spread.data(), count * 4, 0, &type, count);  // to oneself
            CHECK(e.wait(req) == MPIP_SUCCESS);
            std::fill(packed.begin(), packed.end(), 0);
            CHECK(e.receive(0, 3, packed.data(), packed.size()) == packed.size());
            CHECK(holds(packed.data(), packed.size(), 11));
        } else if (e.rank() == 1) {
            std::vector<unsigned char> in(count * 4);
            CHECK(e.receive(0, 1, in.data(), in.size()) == in.size());
            CHECK(holds(in.data(), in.size(), 11));
            mpip_req_t req;
            e.irecv(req, 0, 2, spread.data(), count * 4, &type, count);
            CHECK(e.wait(req) == MPIP_SUCCESS);
            for (size_t i = 0; i < spread.size(); ++i) {
                CHECK(spread[i] == (i % 8 < 4 ? packed[i / 8 * 4 + i % 4] : 0xaa));
            }
        }
        e.barrier();
    }
}

// Each process sends to each at the same moment, and none is connected before.
void crossing(Job& job) {
    for (int round = 0; round < 25; ++round) {
        Engine e(job, module);
        const auto n = static_cast<size_t>(e.size());
        std::vector<mpip_req_t> out(n), in(n);
        std::vector<int> got(n, -1);
        job.barrier();
        for (size_t i = 1; i < n; ++i) {
            const size_t other = (static_cast<size_t>(e.rank()) + i) % n;
            e.isend(out[other], static_cast<int>(other), 1, &round, sizeof round);
            e.irecv(in[other], static_cast<int>(other), 1, &got[other], sizeof got[other]);
        }
        for (size_t other = 0; other < n; ++other) {
            if (other == static_cast<size_t>(e.rank())) continue;
            CHECK(e.wait(in[other]) == MPIP_SUCCESS && e.wait(out[other]) == MPIP_SUCCESS);
            CHECK(got[other] == round);
        }
        CHECK(e.process(e.rank() ^ 1)->p_proto->pt_ping(e.comm(), e.rank() ^ 1) == MPIP_SUCCESS);
        e.barrier();
    }
}

// A crowd of processes, each with a neighbour and all with one that sleeps first.
void small_flood(Job& job) {
    Engine e(job, module);
    constexpr int kMessages = 24;
    const int next = (e.rank() + 1) % e.size();
    const int before = (e.rank() + e.size() - 1) % e.size();
    const auto size_of = [](int tag) { return static_cast<size_t>(tag % 8 == 7 ? 20000 + tag : 40 * tag); };
    std::vector<unsigned char> in(30000);
    std::vector<std::vector<unsigned char>> data;
    for (int tag = 0; tag < kMessages; ++tag) {
        data.emplace_back(size_of(tag));
        fill(data.back(), static_cast<uint32_t>(tag + e.rank()));
    }
    std::vector<mpip_req_t> out(2 * kMessages);
    for (int tag = 0; tag < kMessages; ++tag) {
        const auto& message = data[static_cast<size_t>(tag)];
        const size_t first = 2 * static_cast<size_t>(tag);
        e.isend(out[first], next, tag, message.data(), message.size());
        if (e.rank() == 0) continue;
        e.isend(out[first + 1], 0, 1000 + tag, message.data(), message.size());
    }
    // sleeps: the others send meanwhile
    if (e.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int tag = kMessages - 1; tag >= 0; --tag) {
        CHECK(e.receive(before, tag, in.data(), in.size()) == size_of(tag));
        CHECK(holds(in.data(), size_of(tag), static_cast<uint32_t>(tag + before)));
        for (int from = 1; e.rank() == 0 && from < e.size(); ++from) {
            CHECK(e.receive(from, 1000 + tag, in.data(), in.size()) == size_of(tag));
            CHECK(holds(in.data(), size_of(tag), static_cast<uint32_t>(tag + from)));
        }
    }
    for (size_t i = 0; i < out.size(); ++i) {
        if (i % 2 == 0 || e.rank() != 0) CHECK(e.wait(out[i]) == MPIP_SUCCESS);
    }
    e.barrier();
}

}  // namespace

std::vector<Case> traffic_cases() {
    const std::vector<std::pair<const char*, const char*>> kBothAlways = {{"CMPI_RENDEZVOUS", "both"},
                                                                          {"CMPI_BOTH_FROM", "0"},
                                                                          {"CMPI_R3_LIMIT", "0"},
                                                                          {"CMPI_EAGER_LIMIT", "100"}};
    return {
        {"sizes", sizes, 2, 40},
        {"order", order, 2, 20},
        {"random", random_traffic, 4, 60},
        {"random-8", random_traffic, 8, 60},
        {"flood", flood, 4, 40},
        {"pressure", pressure, 3, 40},
        {"pressed-often", pressed_often, 2, 20},
        {"truncation", truncation, 2, 20},
        {"modes", modes, 3, 20},
        {"cancel", cancel, 2, 20},
        {"gaps", gaps, 2, 20},
        // The VIA module in its other ways: tiny pools, each rendezvous, several eager packets.
        {"sizes-depth-4", sizes, 2, 60, "via", {{"CMPI_PREPOST_DEPTH", "4"}}},
        {"random-depth-4",
         random_traffic,
         4,
         60,
         "via",
         {{"CMPI_PREPOST_DEPTH", "4"}, {"CMPI_VBUF_SPARES", "4"}}},
        {"random-depth-1", random_traffic, 3, 60, "via", {{"CMPI_PREPOST_DEPTH", "1"}}},
        {"flood-depth-4", flood, 4, 60, "via", {{"CMPI_PREPOST_DEPTH", "4"}}},
        {"sizes-r3", sizes, 2, 40, "via", {{"CMPI_RENDEZVOUS", "r3"}}},
        {"sizes-r3-depth-4", sizes, 2, 60, "via", {{"CMPI_RENDEZVOUS", "r3"}, {"CMPI_PREPOST_DEPTH", "4"}}},
        {"random-r3", random_traffic, 4, 60, "via", {{"CMPI_RENDEZVOUS", "r3"}}},
        {"sizes-rget", sizes, 2, 40, "via", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"random-rget", random_traffic, 4, 60, "via", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"sizes-rput", sizes, 2, 40, "rails", {{"CMPI_RENDEZVOUS", "rput"}}},
        {"sizes-r3", sizes, 2, 40, "rails", {{"CMPI_RENDEZVOUS", "r3"}}},
        {"sizes-rget", sizes, 2, 40, "rails", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"random-rget", random_traffic, 4, 60, "rails", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"random-both", random_traffic, 4, 60, "rails", kBothAlways},
        {"sizes-series", sizes, 2, 40, "rails", {{"CMPI_EAGER_LIMIT", "300000"}}},
        {"order-rget", order, 2, 20, "via", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"truncation-rget", truncation, 2, 20, "via", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"sizes-rput", sizes, 2, 40, "via", {{"CMPI_RENDEZVOUS", "rput"}}},
        {"random-rput", random_traffic, 4, 60, "via", {{"CMPI_RENDEZVOUS", "rput"}}},
        {"truncation-rput", truncation, 2, 20, "via", {{"CMPI_RENDEZVOUS", "rput"}}},
        // However short, moved by both sides.
        {"sizes-both", sizes, 2, 40, "via", kBothAlways},
        {"random-both", random_traffic, 4, 60, "via", kBothAlways},
        {"order-both", order, 2, 20, "via", kBothAlways},
        {"truncation-both", truncation, 2, 20, "via", kBothAlways},
        {"cancel-both", cancel, 2, 20, "via", kBothAlways},
        {"truncation-series", truncation, 2, 20, "via", {{"CMPI_EAGER_LIMIT", "300000"}}},
        {"sizes-series", sizes, 2, 40, "via", {{"CMPI_EAGER_LIMIT", "300000"}}},
        {"random-series", random_traffic, 4, 60, "via", {{"CMPI_EAGER_LIMIT", "300000"}}},
        // Connections made by the first message, from both sides at once; buffers that are nearly always
        // full.
        {"crossing", crossing, 4, 60, "tcp", {{"CMPI_ON_DEMAND", "0"}}},
        {"crossing", crossing, 4, 60, "via", {{"CMPI_ON_DEMAND", "0"}}},
        {"random-on-demand", random_traffic, 8, 60, "tcp", {{"CMPI_ON_DEMAND", "0"}}},
        {"random-on-demand", random_traffic, 8, 60, "via", {{"CMPI_ON_DEMAND", "0"}}},
        {"random-small-buffer", random_traffic, 4, 60, "tcp", {{"CMPI_TCP_BUFFER", "8192"}}},
        {"random-small-ring", random_traffic, 4, 60, "shm", {{"CMPI_SHM_RING", "4096"}}},
        // More processes than processors by far, few credits, small buffers.
        {"flood-64",
         small_flood,
         64,
         120,
         "!rails",  // 12,000 VIs
         {{"CMPI_PREPOST_DEPTH", "4"},
          {"CMPI_VBUF_SPARES", "16"},
          {"CMPI_SHM_RING", "4096"},
          {"CMPI_TCP_BUFFER", "8192"}}},
    };
}

}  // namespace viaduct::adi_test
