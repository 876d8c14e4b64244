// SPDX-License-Identifier: BSD-2-Clause
// Two ends that are connected and idle, until nothing comes through between them any more: vanish NIC
// PEER-NIC HOST LIMIT LOSE. The VI of NIC waits for the connection, that of PEER-NIC asks; HOST names NIC to
// the asking end. LOSE is a command after which the wire loses everything without a word. Each end, which
// neither sends nor is told, has to notice the loss of its connection within LIMIT seconds, and
// not before.
#include <vipl.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/eventually.hpp"
#include "tests/vm/two_ends.hpp"

namespace {

using namespace viaduct::vm;
using Clock = std::chrono::steady_clock;
constexpr auto kIdle = std::chrono::seconds(3);  // longer than one keep-alive

void count_losses(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    std::printf("error %d\n", static_cast<int>(error->ErrorCode));
    if (error->ErrorCode == VIP_ERROR_CONN_LOST) static_cast<std::atomic<int>*>(context)->fetch_add(1);
}

VIP_VI_STATE state_of(const End& end) {
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN sends_empty, receives_empty;
    must(VipQueryVi(end.vi, &state, &attributes, &sends_empty, &receives_empty), "VipQueryVi");
    return state;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: vanish NIC PEER-NIC HOST LIMIT LOSE\n");
        return 2;
    }
    const auto limit = std::chrono::seconds(std::atoi(argv[4]));
    std::atomic<int> losses{0};
    End waiter(argv[1], VIP_SERVICE_RELIABLE_DELIVERY, count_losses, &losses);
    End asker(argv[2], VIP_SERVICE_RELIABLE_DELIVERY, count_losses, &losses);
    Address remote = asker.find(argv[3]);
    std::thread asking([&] { ask(asker, remote.get(), 30'000); });
    answer(waiter, 30'000);
    asking.join();

    std::this_thread::sleep_for(kIdle);  // sleeps: the connection is idle
    if (losses.load() != 0 || state_of(waiter) != VIP_STATE_CONNECTED ||
        state_of(asker) != VIP_STATE_CONNECTED) {
        std::printf("an idle connection does not last\n");
        give_up();
    }
    run(argv[5]);
    const Clock::time_point since = Clock::now();
    (void)viaduct::tests::eventually("both ends see the loss", [&] { return losses.load() == 2; }, {.limit = limit});
    std::printf("%d of 2 ends have heard of it after %.1f s\n", losses.load(),
                std::chrono::duration<double>(Clock::now() - since).count());
    if (losses.load() != 2 || state_of(waiter) != VIP_STATE_ERROR || state_of(asker) != VIP_STATE_ERROR)
        give_up();
    must(VipDisconnect(asker.vi), "VipDisconnect");
    must(VipDisconnect(waiter.vi), "VipDisconnect");
    VipCloseNic(asker.nic);
    VipCloseNic(waiter.nic);
    return 0;
}
