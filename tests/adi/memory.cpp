// SPDX-License-Identifier: BSD-2-Clause
// Memory that messages lie in: of the library, and of a program that gives it back and takes it again.
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <random>

#include "cases.hpp"
#include "mpi-adi/transport/protocol/peer.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::adi_test {
namespace {

// Memory of the library's own, on both sides, from its middle on.
void allocated(Job& job) {
    Engine e(job, module);
    constexpr size_t kBytes = 1 << 20;
    auto* memory = static_cast<unsigned char*>(mpip_alloc_mem(kBytes));
    CHECK(memory != nullptr || std::strcmp(module, "via") != 0);
    std::vector<unsigned char> own(memory == nullptr ? kBytes : 0);
    unsigned char* data = memory != nullptr ? memory : own.data();
    for (size_t bytes = 1000; bytes <= kBytes; bytes *= 4) {
        std::vector<unsigned char> expected(bytes);
        fill(expected, static_cast<uint32_t>(bytes));
        unsigned char* place = data + (kBytes - bytes) / 2;
        if (e.rank() == 0) {
            std::memcpy(place, expected.data(), bytes);
            e.send(1, 1, place, bytes);
        } else {
            CHECK(e.receive(0, 1, place, bytes) == bytes);
            CHECK(std::memcmp(place, expected.data(), bytes) == 0);
        }
    }
    e.barrier();
    CHECK(mpip_free_mem(own.data()) == MPIP_ERR_ARG);
    if (memory != nullptr) CHECK(mpip_free_mem(memory) == MPIP_SUCCESS);
    e.barrier();
}

// Memory that goes and comes back at the same address with another content and other pages behind it: what
// was known of it (registrations) must be removed with it, on both sides.
void remapped(Job& job) {
    Engine e(job, module);
    constexpr size_t kBytes = 1 << 20;
    void* place = nullptr;
    for (uint32_t round = 0; round < 40; ++round) {
        // The new mapping takes the place of the old one: no other mapping can get there in between.
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (place != nullptr ? MAP_FIXED : 0);
        place = ::mmap(place, kBytes, PROT_READ | PROT_WRITE, flags, -1, 0);
        CHECK(place != MAP_FAILED);
        auto* data = static_cast<unsigned char*>(place);
        if (e.rank() == 0) {
            for (size_t i = 0; i < kBytes; ++i) data[i] = byte_at(round, i);
            e.send(1, 1, data, kBytes);
        } else {
            CHECK(e.receive(0, 1, data, kBytes) == kBytes);
            CHECK(holds(data, kBytes, round));
        }
        std::vector<unsigned char> from_heap(kBytes / 2);  // by brk or mmap as malloc likes, freed each time
        if (e.rank() == 0) fill(from_heap, round + 1);
        if (e.rank() == 0) {
            e.send(1, 2, from_heap.data(), from_heap.size());
        } else {
            CHECK(e.receive(0, 2, from_heap.data(), from_heap.size()) == from_heap.size());
            CHECK(holds(from_heap.data(), from_heap.size(), round + 1));
        }
    }
    CHECK(::munmap(place, kBytes) == 0);
    e.barrier();
}

// Blocks of pages that come, go, move and are replaced at random in one stretch of addresses, smaller and larger
// than what was there before and across its edges. Nothing else of the process is mapped into the stretch.
class Blocks {
public:
    explicit Blocks(uint32_t seed) : random_(seed) {
        stretch_ = static_cast<unsigned char*>(
            ::mmap(nullptr, kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        CHECK(stretch_ != MAP_FAILED);
    }
    ~Blocks() { ::munmap(stretch_, kPages * kPage); }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;

    // Something happens to one of them, or to several.
    void change() {
        const size_t first = below(kPages), pages = 1 + below(std::min<size_t>(kPages - first, kMost));
        switch (below(3)) {
            case 0:
                return map(first, pages, PROT_NONE);
            case 1:
                return map(first, pages, PROT_READ | PROT_WRITE);
            default:
                return move();
        }
    }

    // Bytes that may be used, in the middle of other such bytes as it happens.
    unsigned char* room(size_t bytes) {
        const size_t pages = (bytes + 2 * kPage - 1) / kPage;
        const size_t from = below(kPages);
        for (size_t i = 0, run = 0; i < kPages; ++i) {
            const size_t at = (from + i) % kPages;
            run = at == 0 || !usable_[at] ? usable_[at] : run + 1;
            if (run >= pages) return stretch_ + (at + 1) * kPage - bytes - below(pages * kPage - bytes + 1);
        }
        map(std::min(from, kPages - pages), pages, PROT_READ | PROT_WRITE);
        return stretch_ + std::min(from, kPages - pages) * kPage + below(pages * kPage - bytes + 1);
    }

private:
    static constexpr size_t kPage = 4096, kPages = 1024, kMost = 160;

    size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
    void map(size_t first, size_t pages, int protection) {
        CHECK(::mmap(stretch_ + first * kPage, pages * kPage, protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED);
        for (size_t i = first; i < first + pages; ++i) usable_[i] = protection != PROT_NONE;
    }
    // The pages themselves go to another place, in front of others or over them.
    void move() {
        const size_t from = below(kPages), to = below(kPages);
        if (!usable_[from] || from == to) return;
        CHECK(::mremap(stretch_ + from * kPage, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED,
                       stretch_ + to * kPage) != MAP_FAILED);
        usable_[to] = true;
        map(from, 1, PROT_NONE);
    }

    std::mt19937 random_;
    unsigned char* stretch_;
    std::array<bool, kPages> usable_{};
};

// Messages, long ones mostly, between such blocks: each brings what the sender's bytes are now to where the
// receiver's are now.
void remapped_at_random(Job& job) {
    Engine e(job, module);
    constexpr size_t kLongest = 500000;
    constexpr uint32_t kRounds = 600;
    std::mt19937 lengths(1);  // the same on both sides
    Blocks blocks(static_cast<uint32_t>(2 + e.rank()));
    for (uint32_t round = 0; round < kRounds; ++round) {
        for (uint32_t i = 0; i < round % 4; ++i) blocks.change();
        const size_t bytes = 1 + lengths() % (round % 8 == 0 ? kLongest : kLongest / 16);
        unsigned char* const data = blocks.room(bytes);
        if (e.rank() == static_cast<int>(round / 3 % 2)) {
            for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(round, i);
            e.send(1 - e.rank(), 1, data, bytes);
        } else {
            std::memset(data, 0xee, bytes);
            CHECK(e.receive(1 - e.rank(), 1, data, bytes) == bytes);
            CHECK(holds(data, bytes, round));
        }
    }
    e.barrier();
}

// What a long send is about to need is registered while its envelope is on the way, before the peer can have
// answered: the other side makes no call before it has been seen. When the answer is that it goes otherwise,
// it is given back.
bool registered(mpip_req_t& req) {
    return protocol::transfer_of(&req)->own != nullptr && protocol::transfer_of(&req)->own->is_registered();
}

bool answered(mpip_req_t& req) {
    if ((req.r_state & MPIP_REQ_DONE) != 0) return true;
    return protocol::transfer_of(&req)->replied;
}

void prefetch(Job& job) {
    using Clock = std::chrono::steady_clock;
    using Microseconds = std::chrono::duration<double, std::micro>;
    Engine e(job, module);
    constexpr size_t kBytes = 1 << 20;
    constexpr size_t kShort = 1000;  // room for so much is not worth a remote write
    std::vector<unsigned char> data(kBytes);
    const mpip_counters* counters = mpip_counters_of(MPIP_PROTO_VIA);
    *job.word() = 0;
    e.barrier();
    for (int round = 1; round <= 6; ++round) {
        const bool direct = round % 2 == 1;
        if (e.rank() == 0) {
            fill(data, static_cast<uint32_t>(round));
            const uint64_t written = counters->mc_rput;
            mpip_req_t req;
            const auto begun = Clock::now();
            e.isend(req, 1, 1, data.data(), kBytes);
            const auto ready = Clock::now();
            CHECK((req.r_state & (MPIP_REQ_STARTED | MPIP_REQ_DONE)) == MPIP_REQ_STARTED);
            CHECK(registered(req));
            __atomic_store_n(job.word(), round, __ATOMIC_SEQ_CST);
            while (!answered(req)) e.progress();
            const auto answer = Clock::now();
            if (direct) {
                std::printf("    sent and registered after %.1f us, answered after %.1f us\n",
                            Microseconds(ready - begun).count(), Microseconds(answer - begun).count());
            }
            CHECK(e.wait(req) == MPIP_SUCCESS);
            CHECK(counters->mc_rput == written + (direct ? 1 : 0));
        } else {
            while (__atomic_load_n(job.word(), __ATOMIC_SEQ_CST) != round) e.progress();
            mpip_req_t req;
            e.irecv(req, 0, 1, data.data(), direct ? kBytes : kShort);
            CHECK(e.wait(req) == (direct ? MPIP_SUCCESS : MPIP_ERR_TRUNCATE));
            CHECK(holds(data.data(), direct ? kBytes : kShort, static_cast<uint32_t>(round)));
        }
    }
    // One that is taken back before it is answered.
    if (e.rank() == 0) {
        mpip_req_t req;
        e.isend(req, 1, 2, data.data(), kBytes);
        CHECK(registered(req));
        CHECK(e.process(1)->p_proto->pt_cancelsend(&req) == MPIP_SUCCESS);
        e.wait(req);
        CHECK((req.r_state & MPIP_REQ_CANCELLED) != 0);
    }
    e.barrier();
}
void set_word(Job& job, int value) { __atomic_store_n(job.word(), value, __ATOMIC_SEQ_CST); }
// Without progress of this process: what the other one sends stays in the queue.
void await_word(Job& job, int value) {
    while (__atomic_load_n(job.word(), __ATOMIC_SEQ_CST) != value) sched_yield();
}

constexpr int kStreamMessages = 16;
constexpr size_t kStreamBytes = 100000;
using StreamData = std::vector<std::vector<unsigned char>>;

void send_stream(Job& job, Engine& e, StreamData& data, int sent) {
    std::vector<mpip_req_t> requests(kStreamMessages);
    for (size_t i = 0; i < kStreamMessages; ++i) {
        fill(data[i], static_cast<uint32_t>(i));
        e.isend(requests[i], 1, 1, data[i].data(), kStreamBytes);
    }
    set_word(job, sent);
    for (auto& req : requests) CHECK(e.wait(req) == MPIP_SUCCESS);
}

// True: no packet has gone only to tell of receives.
bool take_stream(Job& job, Engine& e, StreamData& data, int sent) {
    std::vector<mpip_req_t> requests(kStreamMessages);
    for (size_t i = 0; i < kStreamMessages; ++i) e.irecv(requests[i], 0, 1, data[i].data(), kStreamBytes);
    await_word(job, sent);
    const uint64_t noops = mpip_counters_of(MPIP_PROTO_VIA)->mc_noops;
    while ((requests[0].r_state & MPIP_REQ_DONE) == 0) e.progress();
    for (auto& req : requests) CHECK((req.r_state & (MPIP_REQ_STARTED | MPIP_REQ_DONE)) != 0);
    CHECK((requests[2].r_state & MPIP_REQ_DONE) == 0);
    for (auto& req : requests) CHECK(e.wait(req) == MPIP_SUCCESS);
    while (e.progress() != 0) {
    }
    for (size_t i = 0; i < kStreamMessages; ++i)
        CHECK(holds(data[i].data(), kStreamBytes, static_cast<uint32_t>(i)));
    return mpip_counters_of(MPIP_PROTO_VIA)->mc_noops == noops;
}

// A receiver that comes to many requests at once takes all of them before it copies its second message, and
// its finishes tell of the receives it posts anew: no packet for that alone. (A pass that finds nothing to do while
// the sender has no processor sends one: of ten streams one goes without.)
void stream(Job& job) {
    Engine e(job, module);
    StreamData data(kStreamMessages, std::vector<unsigned char>(kStreamBytes));
    constexpr int kMostStreams = 10;
    constexpr int kAgain = 1, kSent = 2, kEnough = 3;
    e.barrier();
    for (int round = 1;; ++round) {
        const int now = 10 * round;
        if (e.rank() == 0) {
            send_stream(job, e, data, now + kSent);
            int answer = 0;
            while ((answer = __atomic_load_n(job.word(), __ATOMIC_SEQ_CST)) == now + kSent) e.progress();
            if (answer == now + kEnough) break;
        } else {
            const bool enough = take_stream(job, e, data, now + kSent);
            CHECK(enough || round < kMostStreams);
            set_word(job, now + (enough ? kEnough : kAgain));
            if (enough) break;
        }
    }
    e.barrier();
}

// A receive that the engine ends while it waits for its turn to be moved takes its connection with it.
void ended(Job& job) {
    Engine e(job, module);
    e.expect_loss = true;
    constexpr int kMessages = 8;
    constexpr size_t kBytes = 100000;
    std::vector<std::vector<unsigned char>> data(kMessages, std::vector<unsigned char>(kBytes));
    std::vector<mpip_req_t> requests(kMessages);
    e.barrier();
    if (e.rank() == 0) {
        for (size_t i = 0; i < kMessages; ++i) e.isend(requests[i], 1, 1, data[i].data(), kBytes);
        set_word(job, 1);
    } else {
        for (size_t i = 0; i < kMessages; ++i) e.irecv(requests[i], 0, 1, data[i].data(), kBytes);
        await_word(job, 1);
        while ((requests[kMessages - 1].r_state & MPIP_REQ_STARTED) == 0) e.progress();
        mpip_req_t& one = requests[kMessages - 2];
        CHECK((one.r_state & MPIP_REQ_DONE) == 0 && protocol::transfer_of(&one)->offset == 0);
        e.process(0)->p_proto->pt_error_request(&one);
        for (size_t i = kMessages - 2; i < kMessages; ++i)
            CHECK(e.wait(requests[i]) == MPIP_ERR_PROC_FAILED);
        CHECK(e.failed().size() == 1);
    }
    for (auto& req : requests) e.wait(req);
}

// Where both sides copy, the cut lies on the edge of a page of the receiver's.
void halves(Job& job) {
    Engine e(job, module);
    constexpr size_t kBytes = 100000;
    constexpr size_t kPage = 4096;
    std::vector<unsigned char> data(kBytes);
    std::vector<unsigned char> room(kBytes + 2 * kPage);
    unsigned char* page = room.data() + kPage - reinterpret_cast<uintptr_t>(room.data()) % kPage;
    mpip_req_t req;
    e.barrier();
    for (const size_t into_page : {size_t{0}, size_t{24}, size_t{4095}}) {
        if (e.rank() == 0) {
            fill(data, 7);
            e.isend(req, 1, 1, data.data(), kBytes);
            set_word(job, 1);
            await_word(job, 2);  // its part waits
            CHECK(e.wait(req) == MPIP_SUCCESS);
        } else {
            unsigned char* at = page + into_page;
            e.irecv(req, 0, 1, at, kBytes);
            await_word(job, 1);
            while ((req.r_state & MPIP_REQ_STARTED) == 0 || !protocol::transfer_of(&req)->own_part_done)
                e.progress();
            CHECK(reinterpret_cast<uintptr_t>(at + protocol::transfer_of(&req)->end) % kPage == 0);
            CHECK(protocol::transfer_of(&req)->end > kBytes / 3);
            set_word(job, 2);
            CHECK(e.wait(req) == MPIP_SUCCESS);
            CHECK(holds(at, kBytes, 7));
        }
        e.barrier();
    }
}

// A message of each length: so many begin with a handshake, so many are read by the receiver.
void count_methods(Job& job, std::initializer_list<size_t> sizes, int mode, uint64_t handshakes, uint64_t reads) {
    Engine e(job, module);
    const mpip_counters* counters = mpip_counters_of(MPIP_PROTO_VIA);
    std::vector<unsigned char> data(std::max(sizes));
    e.barrier();
    const mpip_counters before = *counters;
    for (const size_t size : sizes) {
        if (e.rank() == 0) {
            e.send(1, 1, data.data(), size, mode);
        } else {
            CHECK(e.receive(0, 1, data.data(), data.size()) == size);
        }
    }
    if (e.rank() == 0) CHECK(counters->mc_long == before.mc_long + handshakes);
    if (e.rank() == 1) CHECK(counters->mc_rget == before.mc_rget + reads);
    e.barrier();
}

// Up to 6 KiB in one packet, beyond by a read of the receiver's.
void methods(Job& job) { count_methods(job, {6144, 6145, 8192}, MPIP_MODE_STANDARD, 2, 2); }

// What is long enough is read, also where longer messages would go without a handshake.
void synchronous(Job& job) { count_methods(job, {6144, 6145, 65536}, MPIP_MODE_SYNC, 3, 2); }

}  // namespace

std::vector<Case> memory_cases() {
    return {
        {"allocated", allocated, 2, 20},
        {"prefetch", prefetch, 2, 20, "rails", {{"CMPI_RENDEZVOUS", "rput"}}},
        {"prefetch", prefetch, 2, 20, "via", {{"CMPI_RENDEZVOUS", "rput"}}},
        {"stream", stream, 2, 20, "via", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"halves", halves, 2, 20, "via"},
        {"ended", ended, 2, 20, "via", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"methods", methods, 2, 20, "via"},
        {"synchronous", synchronous, 2, 20, "via", {{"CMPI_EAGER_LIMIT", "65536"}}},
        {"remapped", remapped, 2, 20},
        {"random-maps", remapped_at_random, 2, 30},
        {"random-maps-rget", remapped_at_random, 2, 30, "via", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"random-maps-rput", remapped_at_random, 2, 30, "via", {{"CMPI_RENDEZVOUS", "rput"}}},
        {"remapped-rget", remapped, 2, 20, "via", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"remapped-rget", remapped, 2, 20, "rails", {{"CMPI_RENDEZVOUS", "rget"}}},
        {"remapped-rput", remapped, 2, 20, "via", {{"CMPI_RENDEZVOUS", "rput"}}},
    };
}

}  // namespace viaduct::adi_test
