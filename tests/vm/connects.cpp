// SPDX-License-Identifier: BSD-2-Clause
// Connections between two NICs, one after the other: connects NIC PEER-NIC HOST COUNT LIMIT
// [LOSE MEND [meanwhile]]. The VI of NIC waits, that of PEER-NIC asks, and often asks first. HOST names NIC
// to the asking end. No connection may take longer than LIMIT seconds. LOSE is a command that makes the wire
// lose something: it is run before each request, and MEND, which ends it, half a second later. The waiter
// comes after that, or `meanwhile`: what comes of its answer is lost only then.
#include <vipl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/vm/two_ends.hpp"

namespace {

using namespace viaduct::vm;
using Clock = std::chrono::steady_clock;
constexpr auto kLossLasts = std::chrono::milliseconds(500);

// No program answers, but a requester finds the place where one will.
void begin_to_listen(End& end) {
    Address requester;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    VipConnectWait(end.nic, end.own.get(), 10, requester.get(), &attributes, &connection);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6 && argc != 8 && argc != 9) {
        std::fprintf(stderr, "usage: connects NIC PEER-NIC HOST COUNT LIMIT [LOSE MEND [meanwhile]]\n");
        return 2;
    }
    End waiter(argv[1]);
    End asker(argv[2]);
    const int count = std::atoi(argv[4]);
    const auto limit_ms = 1000 * static_cast<VIP_ULONG>(std::atoi(argv[5]));
    const std::string lose = argc > 6 ? argv[6] : "", mend = argc > 6 ? argv[7] : "";
    const bool meanwhile = argc == 9;
    Address remote = asker.find(argv[3]);
    begin_to_listen(waiter);

    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) {
        run(lose);
        double took = 0;
        const Clock::time_point since = Clock::now();
        std::thread asking([&] {
            ask(asker, remote.get(), limit_ms);
            took = std::chrono::duration<double>(Clock::now() - since).count();
        });
        std::thread answering;
        if (meanwhile) answering = std::thread([&] { answer(waiter, limit_ms); });
        if (!lose.empty()) {
            std::this_thread::sleep_for(kLossLasts);  // sleeps: the loss
            run(mend);
        } else {
            // sleeps: the answer begins at another moment each time
            std::this_thread::sleep_for(std::chrono::milliseconds(i % 8 * 3));
        }
        meanwhile ? answering.join() : answer(waiter, limit_ms);
        asking.join();
        seconds.push_back(took);
        must(VipDisconnect(asker.vi), "VipDisconnect");
        must(VipDisconnect(waiter.vi), "VipDisconnect");
    }
    std::sort(seconds.begin(), seconds.end());
    std::printf("%d connections, the median took %.3f s, the longest %.3f s\n", count,
                seconds[seconds.size() / 2], seconds.back());
    VipCloseNic(asker.nic);
    VipCloseNic(waiter.nic);
    return 0;
}
