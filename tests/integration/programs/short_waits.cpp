// SPDX-License-Identifier: BSD-2-Clause
// A program that waits a short time, again and again, uses no more processor time than one that waits long: only the
// first wait of a row spins before it sleeps. It runs with a spin_us that is a good part of a wait, so that spinning
// each time is seen. Usage: short_waits WAIT_MS [PAUSE_MS]; the pause is what the program does between two waits.
// A wait that begins later than a quarter of a wait after the last one is the first of a row: where the machine makes
// it so late, it does not count.
#include <vipl.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int kWaits = 50;
constexpr int kTries = 20 * kWaits;  // so many may be late
constexpr int kRows = 5;             // the best counts
constexpr double kMost = 0.001;      // for each wait

double now(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
    const VIP_ULONG milliseconds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10;
    const timespec pause{0, argc > 2 ? std::atol(argv[2]) * 1'000'000 : 0};
    char device[] = "nic0";
    VIP_NIC_HANDLE nic = nullptr;
    VIP_CQ_HANDLE cq = nullptr;
    if (VipOpenNic(device, &nic) != VIP_SUCCESS || VipCreateCQ(nic, 16, &cq) != VIP_SUCCESS) {
        std::puts("FAILED: set-up");
        return 1;
    }
    const double soon = static_cast<double>(milliseconds) * 1e-3 / 5;  // surely: what it has slept is a little less
    double least = 1, ended = 0;
    int others = 0, counted = 0;
    for (int row = 0; row < kRows && least > kMost; ++row) {
        double used = 0;
        int in_time = 0;
        for (int i = 0; i < kTries && in_time < kWaits; ++i) {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            const bool follows = now(CLOCK_MONOTONIC) - ended < soon;
            const double before = now(CLOCK_THREAD_CPUTIME_ID);
            if (VipCQWait(cq, milliseconds, &vi, &receive) != VIP_TIMEOUT) ++others;
            if (follows) {
                used += now(CLOCK_THREAD_CPUTIME_ID) - before;
                ++in_time;
            }
            ended = now(CLOCK_MONOTONIC);
            if (pause.tv_nsec != 0) ::nanosleep(&pause, nullptr);  // sleeps: the waits lie apart
        }
        if (in_time != 0 && used / in_time < least) {
            least = used / in_time;
            counted = in_time;
        }
    }
    std::printf("%d waits of %lu ms: %.1f ms of a processor for each, %d ended by something else\n", counted,
                milliseconds, least * 1e3, others);
    VipDestroyCQ(cq);
    VipCloseNic(nic);
    return least <= kMost && others == 0 ? 0 : 1;
}
