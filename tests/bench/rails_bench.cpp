// SPDX-License-Identifier: BSD-2-Clause
// Large messages over one, two and four NICs whose links are slower than the processor (paramnet.link_rate):
// `rails_bench [MB/s of a link]`. Fails when two NICs carry less than 1.9 or four less than 3.6 times what
// one does.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/adi/engine.hpp"

using namespace viaduct::adi_test;

namespace {

constexpr size_t kBytes = 16 << 20;
constexpr int kRounds = 6;

// Bytes a second of messages that the other side has confirmed.
void stream(Job& job) {
    using Clock = std::chrono::steady_clock;
    Engine e(job, "via");
    std::vector<unsigned char> data(kBytes, static_cast<unsigned char>(e.rank()));
    char word = 0;
    Clock::time_point start;
    for (int round = -1; round < kRounds; ++round) {  // the first one measures the links
        if (round == 0) start = Clock::now();
        if (e.rank() == 0) {
            e.send(1, 1, data.data(), data.size());
        } else {
            CHECK(e.receive(0, 1, data.data(), data.size()) == data.size());
            CHECK(data[0] == 0 && data[kBytes - 1] == 0);
        }
    }
    if (e.rank() == 1) {
        e.send(0, 2, &word, 1);
    } else {
        e.receive(1, 2, &word, 1);
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        *job.word() = static_cast<int>(static_cast<double>(kBytes) * kRounds / seconds / 1e3);
        std::printf("%8.1f MB/s ", *job.word() / 1e3);
        std::fflush(stdout);
    }
}

double run(const std::string& nics) {
    ::setenv("CMPI_VIA_NICS", nics.c_str(), 1);
    int found = 0;
    const int bad = run_job(
        nics.empty() ? "via, one NIC" : nics.c_str(), 2, 60, [&](Job& job) { stream(job); }, {}, &found);
    return bad == 0 ? found / 1e3 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const int rate = argc > 1 ? std::atoi(argv[1]) : 150;
    ::setenv("VIADUCT_AGENT", ("@rails-bench-" + std::to_string(::getpid())).c_str(), 1);
    ::setenv("VIADUCT_PARAMNET_NICS", "4", 1);
    ::setenv("VIADUCT_PARAMNET_LINK_RATE", std::to_string(rate * 1'000'000).c_str(), 1);
    std::printf("links of %d MB/s, messages of %zu MiB\n", rate, kBytes >> 20);
    run("");
    const double one = run("paramnet0");
    const double two = run("paramnet0,paramnet1");
    const double four = run("paramnet0,paramnet1,paramnet2,paramnet3");
    if (one <= 0 || two <= 0 || four <= 0) return 1;
    std::printf("two NICs: %.2f times one (wanted: 1.9)\nfour NICs: %.2f times one (wanted: 3.6)\n",
                two / one, four / one);
    return two >= 1.9 * one && four >= 3.6 * one ? 0 : 1;
}
