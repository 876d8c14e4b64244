// SPDX-License-Identifier: BSD-2-Clause
// pthread_cancel: a call ends before its thread does and leaves everything usable (vipl.7).
#include <pthread.h>

#include "fixture.hpp"

namespace viaduct::conformance {
namespace {

/// What a thread does that has been told to end before its first call. The first cancellation point that it
/// meets inside of one would take it away there.
struct Work {
    Pair pair;
    VIP_DESCRIPTOR* receive = pair.server.receive(8);
    VIP_DESCRIPTOR* without_message = pair.server.receive(8);
    VIP_DESCRIPTOR* send = pair.client.message(pair.client.buffer(8), 8);
    Address here = Address(pair.client.nic, unique_discriminator());
    Address from = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};

    const char* last = "none";
    VIP_RETURN opened = VIP_NOT_DONE;
    VIP_RETURN waited = VIP_NOT_DONE;
    VIP_RETURN posted = VIP_NOT_DONE;
    VIP_RETURN sent = VIP_NOT_DONE;
    VIP_RETURN received = VIP_NOT_DONE;
    VIP_RETURN timed_out = VIP_NOT_DONE;
    VIP_RETURN disconnected = VIP_NOT_DONE;
    VIP_RETURN closed = VIP_NOT_DONE;
    bool ended = false;

    void run() {
        VIP_NIC_HANDLE nic = nullptr;
        last = "VipOpenNic";
        opened = VipOpenNic(options().nic.c_str(), &nic);
        last = "VipConnectWait";
        VIP_CONN_HANDLE connection = nullptr;
        waited = VipConnectWait(nic, here.get(), 20, from.get(), &attributes, &connection);
        last = "VipPostSend";
        posted = VipPostSend(pair.client.vi, send, pair.client.region);
        VIP_DESCRIPTOR* d = nullptr;
        last = "VipRecvWait";
        received = VipRecvWait(pair.server.vi, kLongWait, &d);
        timed_out = VipRecvWait(pair.server.vi, 20, &d);
        last = "VipSendDone";
        while (sent == VIP_NOT_DONE) sent = VipSendDone(pair.client.vi, &d);
        last = "VipDisconnect";
        disconnected = VipDisconnect(pair.client.vi);
        last = "VipRecvDone";  // finds the connection broken, tells of it
        while (VipRecvDone(pair.server.vi, &d) == VIP_NOT_DONE) continue;
        last = "VipErrorCallback";
        VipErrorCallback(nic, nullptr, nullptr);
        last = "VipCloseNic";
        closed = VipCloseNic(nic);
        ended = true;
    }
};

TEST(Cancel, TakesAThreadAwayAfterItsCallsAndNotInThem) {
    Work work;
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr,
                             [](void* raw) -> void* {
                                 pthread_cancel(pthread_self());
                                 static_cast<Work*>(raw)->run();
                                 pthread_testcancel();
                                 return nullptr;
                             },
                             &work),
              0);
    void* result = nullptr;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_TRUE(work.ended) << "ended in " << work.last;
    EXPECT_EQ(result, PTHREAD_CANCELED) << "the program's own cancellation points work on";
    EXPECT_EQ(work.opened, VIP_SUCCESS);
    EXPECT_EQ(work.waited, VIP_TIMEOUT);
    EXPECT_EQ(work.posted, VIP_SUCCESS);
    EXPECT_EQ(work.received, VIP_SUCCESS);
    EXPECT_EQ(work.timed_out, VIP_TIMEOUT);
    EXPECT_EQ(work.sent, VIP_SUCCESS);
    EXPECT_EQ(work.disconnected, VIP_SUCCESS);
    EXPECT_EQ(work.closed, VIP_SUCCESS);
    EXPECT_EQ(work.pair.client.state(), VIP_STATE_IDLE) << "no lock is left behind";
    EXPECT_TRUE(work.pair.server.reaches(VIP_STATE_ERROR));
}

}  // namespace
}  // namespace viaduct::conformance
