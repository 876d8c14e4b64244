// SPDX-License-Identifier: BSD-2-Clause
// Data with gaps over via, packed and by lists of pieces, beside data without: `viaduct_gaps [rounds]`. Where
// the lists begin to pay on a NIC is what CMPI_GAP_PIECE should be there.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/adi/engine.hpp"

using namespace viaduct::adi_test;

namespace {

// Pieces of one length, as far from each other as they are long.
struct Strided : mpip_type_t {
    size_t piece;
    template <class Visit>
    void each(size_t offset, size_t bytes, Visit&& visit) const {
        while (bytes > 0) {
            const size_t now = std::min(piece - offset % piece, bytes);
            visit(offset / piece * 2 * piece + offset % piece, now);
            offset += now;
            bytes -= now;
        }
    }
    static const Strided& of(const mpip_type_t* type) { return *static_cast<const Strided*>(type); }
    explicit Strided(size_t length) : mpip_type{}, piece(length) {
        d_size = 1;
        d_pack = [](const mpip_type_t* type, const void* buf, size_t, size_t offset, void* to, size_t bytes) {
            of(type).each(offset, bytes, [&](size_t at, size_t n) {
                std::memcpy(to, static_cast<const char*>(buf) + at, n);
                to = static_cast<char*>(to) + n;
            });
        };
        d_unpack = [](const mpip_type_t* type, void* buf, size_t, size_t offset, const void* from,
                      size_t bytes) {
            of(type).each(offset, bytes, [&](size_t at, size_t n) {
                std::memcpy(static_cast<char*>(buf) + at, from, n);
                from = static_cast<const char*>(from) + n;
            });
        };
        d_pieces = [](const mpip_type_t* type, void* buf, size_t, size_t bytes, mpip_piece* to, size_t room) {
            size_t n = 0;
            if (bytes / of(type).piece >= room) return n;
            of(type).each(0, bytes,
                          [&](size_t at, size_t now) { to[n++] = {static_cast<char*>(buf) + at, now}; });
            return n;
        };
    }
};

// Half a round trip of a message with gaps on the sides that `where` names, ns into the word: 0 none, 1 the
// sender's, 2 the receiver's, 3 both.
void ping_pong(Job& job, size_t bytes, size_t piece, int where) {
    using Clock = std::chrono::steady_clock;
    Engine e(job, "via");
    const Strided type(piece);
    std::vector<char> out(2 * bytes + piece), in(2 * bytes + piece);
    const int rounds = static_cast<int>(std::max<size_t>(40, (32 << 20) / bytes));
    const auto send = [&] {
        mpip_req_t req;
        e.isend(req, 1 - e.rank(), 1, out.data(), bytes, 0, (where & 1) != 0 ? &type : nullptr, bytes);
        CHECK(e.wait(req) == MPIP_SUCCESS);
    };
    const auto receive = [&] {
        mpip_req_t req;
        e.irecv(req, 1 - e.rank(), 1, in.data(), bytes, (where & 2) != 0 ? &type : nullptr, bytes);
        CHECK(e.wait(req) == MPIP_SUCCESS);
    };
    Clock::time_point start;
    for (int i = -10; i < rounds; ++i) {
        if (i == 0) start = Clock::now();
        if (e.rank() == 0) send();
        receive();
        if (e.rank() == 1) send();
    }
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    if (e.rank() == 0) *job.word() = static_cast<int>(took.count() / rounds / 2);
    e.barrier();
}

double once(size_t bytes, size_t piece, int where, bool lists) {
    ::setenv("CMPI_GAP_PIECE", lists ? "1" : "1000000000", 1);
    int found = 0;
    const int bad =
        run_job("gaps", 2, 60, [&](Job& job) { ping_pong(job, bytes, piece, where); }, {}, &found);
    return bad == 0 ? found / 1e3 : -1;
}

double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
    ::setenv("VIADUCT_AGENT", ("@gaps-bench-" + std::to_string(::getpid())).c_str(), 1);
    std::printf("half a round trip, us, medians of %d rounds in turns\n", rounds);
    std::printf("%8s %7s | %8s | %8s %8s | %8s %8s | %8s %8s\n", "bytes", "piece", "no gaps", "sender's",
                "packed", "receiv.'s", "packed", "both", "packed");
    for (const size_t bytes : {size_t{64} << 10, size_t{1} << 20, size_t{4} << 20}) {
        for (const size_t piece : {512, 1024, 4096, 16384, 65536, 262144}) {
            if (bytes / piece > 3000 || bytes / piece < 2) continue;
            std::vector<double> found[7];
            for (int round = 0; round < rounds; ++round) {
                found[0].push_back(once(bytes, piece, 0, true));
                for (int where = 1; where <= 3; ++where) {
                    found[2 * where - 1].push_back(once(bytes, piece, where, true));
                    found[2 * where].push_back(once(bytes, piece, where, false));
                }
            }
            std::printf("%8zu %7zu | %8.1f | %8.1f %8.1f | %8.1f %8.1f | %8.1f %8.1f\n", bytes, piece,
                        median(found[0]), median(found[1]), median(found[2]), median(found[3]),
                        median(found[4]), median(found[5]), median(found[6]));
            std::fflush(stdout);
        }
    }
    return 0;
}
