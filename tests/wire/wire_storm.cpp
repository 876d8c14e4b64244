// SPDX-License-Identifier: BSD-2-Clause
// wire_storm [--messages N] [--seed S] [--level U|RD|RR] [--frame BYTES]: sends N messages each way through a
// wire with 5 % loss, 5 % repetition, reordering, damage and link flaps, checks every byte, and shows that
// memory does not grow.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/wire/storm.hpp"

namespace {

uint64_t allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
    ++allocations;
    if (void* p = std::malloc(bytes)) return p;
    std::abort();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

int main(int argc, char** argv) {
    using namespace viaduct::wire;
    test::Storm storm;
    storm.messages = 5'000'000;
    storm.weather = test::bad_weather();
    for (int i = 1; i + 1 < argc; i += 2) {
        const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0; };
        if (is("--messages")) {
            storm.messages = std::strtoull(argv[i + 1], nullptr, 10);
        } else if (is("--seed")) {
            storm.seed = std::strtoull(argv[i + 1], nullptr, 10);
        } else if (is("--frame")) {
            storm.max_frame = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 10));
        } else if (is("--level")) {
            const std::string level = argv[i + 1];
            storm.level = level == "U"    ? VIP_SERVICE_UNRELIABLE
                          : level == "RR" ? VIP_SERVICE_RELIABLE_RECEPTION
                                          : VIP_SERVICE_RELIABLE_DELIVERY;
        } else {
            std::fprintf(stderr, "wire_storm: %s is no option\n", argv[i]);
            return 2;
        }
    }
    std::printf("wire_storm: seed %llu, %llu messages each way\n",
                static_cast<unsigned long long>(storm.seed), static_cast<unsigned long long>(storm.messages));
    uint64_t at_warm = 0, at_end = 0;
    const auto report = test::run_storm(storm, [&](uint64_t done) {
        if (at_warm == 0 && done >= storm.messages / 10) at_warm = allocations;
        at_end = allocations;
    });
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    std::printf(
        "arrived %llu; frames %llu, lost %llu, repeated %llu, damaged %llu, flaps %llu, retransmitted %llu, "
        "timeouts %llu; %.3f simulated seconds; allocations after the first tenth %llu; %ld KiB\n",
        static_cast<unsigned long long>(report.arrived), static_cast<unsigned long long>(report.sent),
        static_cast<unsigned long long>(report.lost), static_cast<unsigned long long>(report.repeated),
        static_cast<unsigned long long>(report.damaged), static_cast<unsigned long long>(report.flaps),
        static_cast<unsigned long long>(report.retransmitted),
        static_cast<unsigned long long>(report.timeouts), static_cast<double>(report.took) / 1e9,
        static_cast<unsigned long long>(at_end - at_warm), usage.ru_maxrss);
    if (!report.wrong.empty()) std::printf("WRONG: %s\n", report.wrong.c_str());
    if (at_end != at_warm) std::printf("WRONG: memory was allocated on the way\n");
    return report.wrong.empty() && at_end == at_warm ? 0 : 1;
}
