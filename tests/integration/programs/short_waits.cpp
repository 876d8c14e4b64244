// SPDX-License-Identifier: BSD-2-Clause
// A program that waits a short time, again and again, uses no more processor time than one that waits long: only the
// first wait of a row spins before it sleeps. It runs with a spin_us that is a good part of a wait, so that spinning
// each time is seen. Usage: short_waits WAIT_MS [PAUSE_MS]; the pause is what the program does between two waits.
#include <vipl.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int kWaits = 50;
constexpr int kRows = 5;  // the best counts
constexpr double kMost = 0.05;

double used() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
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
    double least = 1;
    int others = 0;
    for (int row = 0; row < kRows && least > kMost; ++row) {
        const double before = used();
        for (int i = 0; i < kWaits; ++i) {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            if (VipCQWait(cq, milliseconds, &vi, &receive) != VIP_TIMEOUT) ++others;
            if (pause.tv_nsec != 0) ::nanosleep(&pause, nullptr);
        }
        if (const double row_used = used() - before; row_used < least) least = row_used;
    }
    std::printf("%d waits of %lu ms: %.1f ms of a processor, %d ended by something else\n", kWaits, milliseconds,
                least * 1e3, others);
    VipDestroyCQ(cq);
    VipCloseNic(nic);
    return least <= kMost && others == 0 ? 0 : 1;
}
