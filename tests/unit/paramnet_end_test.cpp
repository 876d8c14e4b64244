// SPDX-License-Identifier: BSD-2-Clause
// Ends of connections and processes: races of disconnect, killed peers, what stays behind; and the control
// half.
#include "explained_agent.hpp"
#include "paramnet_fixture.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

namespace viaduct::paramnet::test {
namespace {

uint32_t open_descriptors() {
    uint32_t count = 0;
    DIR* dir = ::opendir("/proc/self/fd");
    while (::readdir(dir) != nullptr) ++count;
    ::closedir(dir);
    return count;
}

TEST(Ends, MayComeAtAnyMomentOfTraffic) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, kLevel), b(nic_b, kLevel);
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 100; ++i) b.receive(b.data(), 5000);
        connect(a, b);
        std::atomic<bool> stop{false};
        std::thread receiver([&] {
            while (!stop) {
                b.recv_done();
                nic_b.poll();
            }
        });
        for (int i = 0; i < round % 60; ++i) {
            a.send(a.data(), static_cast<uint32_t>(i * 83 % 5000));
            a.send_done();
        }
        a.disconnect();
        EXPECT_TRUE(b.reaches(VIP_STATE_ERROR)) << round;
        stop = true;
        receiver.join();
        b.disconnect();
        while (a.send_done() != nullptr) {
        }
        while (b.recv_done() != nullptr) {
        }
        ASSERT_TRUE(a.core.send.empty());
        ASSERT_TRUE(b.core.recv.empty());
    }
}

TEST(Ends, OfBothSidesAtOnceAgree) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, kLevel), b(nic_b, kLevel);
    for (int round = 0; round < 200; ++round) {
        connect(a, b);
        std::thread other([&] { b.disconnect(); });
        a.disconnect();
        other.join();
        EXPECT_EQ(a.state(), uint32_t{VIP_STATE_IDLE});
        EXPECT_EQ(b.state(), uint32_t{VIP_STATE_IDLE});
    }
}

TEST(Ends, LeaveNoMappingAndNoDescriptorBehind) {
    const auto mappings = [] {
        FILE* maps = std::fopen("/proc/self/maps", "re");
        char line[512];
        uint32_t count = 0;
        while (std::fgets(line, sizeof line, maps) != nullptr) count += std::strstr(line, "viaduct-") != nullptr;
        std::fclose(maps);
        return count;
    };
    const uint32_t before_mappings = mappings(), before_descriptors = open_descriptors();
    {
        Matcher matcher;
        TestNic nic_a(matcher), nic_b(matcher);
        TestVi a(nic_a, kLevel), b(nic_b, kLevel);
        for (int round = 0; round < 50; ++round) {
            connect(a, b);
            a.disconnect();
            b.disconnect();
        }
        // While VIs live their last segment is freed by the progress thread.
        EXPECT_TRUE(eventually([&] { return mappings() <= before_mappings + 4 + 4; }));
        EXPECT_LE(open_descriptors(), before_descriptors + 12);
        EXPECT_TRUE(nic_a.context->peers.empty() || nic_a.context->peers.size() == 1);
    }
    EXPECT_EQ(mappings(), before_mappings);
    EXPECT_EQ(open_descriptors(), before_descriptors);
}

TEST(Ends, OfAnAttemptThatWasNeverStartedAreSeenByThePeer) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, kLevel);
    {
        TestVi b(nic_b, kLevel);
        ConnectOp* from_a = begin_connect(a, "half");
        ConnectOp* from_b = begin_connect(b, "half");
        finish_connect(a, from_a);
        ConnectResult result;
        EXPECT_EQ(ops().connect_await(from_b, kNever, &result), Status::ok);
        EXPECT_EQ(ops().connect_finish(from_b, &result), Status::ok);
    }
    EXPECT_TRUE(a.is_told(VIP_ERROR_CONN_LOST));
}

// An agent that gets no processor has joined both ends, and one of them has given up before it heard so.
TEST(Ends, OfAnAttemptThatWasGivenUpTooEarlyAreSeenByThePeer) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, kLevel), b(nic_b, kLevel);
    ConnectOp* from_b = begin_connect(b, "late");
    nic_b.agent.hold_back();
    ConnectOp* from_a = begin_connect(a, "late");
    ConnectResult result;
    EXPECT_EQ(ops().connect_finish(from_b, &result), Status::timeout);
    finish_connect(a, from_a);
    nic_b.agent.catch_up();
    EXPECT_TRUE(a.is_told(VIP_ERROR_CONN_LOST));
    a.disconnect();
    connect(a, b);
}

TEST(Ends, OfAnAttemptThatLacksDescriptorsAreSeenByThePeer) {
    Matcher matcher;
    TestNic nic_a(matcher), nic_b(matcher);
    TestVi a(nic_a, kLevel), b(nic_b, kLevel);
    nic_b.agent.loses_descriptors = true;
    ConnectOp* from_a = begin_connect(a, "poor");
    ConnectOp* from_b = begin_connect(b, "poor");
    finish_connect(a, from_a);
    ConnectResult result;
    EXPECT_EQ(ops().connect_await(from_b, kNever, &result), Status::out_of_resources);
    EXPECT_EQ(ops().connect_finish(from_b, &result), Status::out_of_resources);
    EXPECT_TRUE(a.is_told(VIP_ERROR_CONN_LOST));
}

// ---- another process
// ----------------------------------------------------------------------------------------

// Runs `body` in a child that has a NIC and a VI of its own, connected with `vi`.
pid_t with_child(TestVi& vi, Matcher& matcher, const std::map<std::string, std::string>& settings,
                 const std::function<void(TestVi&)>& body) {
    int sockets[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    const pid_t parent = ::getpid();
    ConnectOp* op = begin_connect(vi, "parent and child");
    const Matcher::Waiting own = matcher.waiting.begin()->second;
    matcher.waiting.clear();
    JoinGrant grant;
    EXPECT_EQ(viaduct_provider_v1.control.join(NicInfo(), NicInfo(), vi.nic.settings, &grant), Status::ok);
    Mail for_child = joined_mail(vi.nic.agent, own.request, grant.segment_fd, 0, false, parent);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(30);
        Matcher alone;
        auto* nic = new TestNic(alone, settings);
        auto* mine = new TestVi(*nic, vi.core.traits.reliability);
        ConnectOp* child_op = begin_connect(*mine, "child");
        const Matcher::Waiting waiting = alone.waiting.begin()->second;
        nic->agent.opened.header.ticket = waiting.request.endpoint_words[kEndSlot] + 1;
        if (send_mail(sockets[1], nic->agent.opened) != Status::ok) ::_exit(2);
        nic->agent.answer(waiting.ticket, std::move(for_child));
        finish_connect(*mine, child_op);
        body(*mine);
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    Mail opened;
    EXPECT_EQ(receive_mail(sockets[0], &opened), Status::ok);
    FakeAgent remote(matcher);
    kagent::OpenNic body_of_opened;
    EXPECT_TRUE(opened.get(&body_of_opened));
    remote.context_id = uint64_t{0x1000} + static_cast<uint64_t>(child);
    kagent::ConnRequest request;
    request.traits = vi.core.traits;
    request.endpoint_words[kEndSlot] = opened.header.ticket - 1;
    remote.opened = std::move(opened);
    vi.nic.agent.answer(own.ticket, joined_mail(remote, request, grant.segment_fd, 1, false, child));
    ::close(grant.segment_fd);
    ::close(sockets[0]);
    ::close(sockets[1]);
    finish_connect(vi, op);
    return child;
}

int wait_for(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

TEST(OtherProcess, ExchangesMessagesAndRdma) {
    for (const char* cross : {"auto", "off"}) {
        SCOPED_TRACE(cross);
        Matcher matcher;
        TestNic nic(matcher, {{"cross_copy", cross}});
        TestVi vi(nic, kLevel);
        for (int i = 0; i < 20; ++i) vi.receive(vi.data(), 10000);
        const pid_t child = with_child(vi, matcher, {{"cross_copy", cross}}, [&](TestVi& mine) {
            fill(mine.data(), 10000, 6);
            for (int i = 0; i < 20; ++i) mine.send(mine.data(), 10000);
            for (int i = 0; i < 20; ++i) mine.wait_send();
            // The parent's memory: the same address, because the child is its copy.
            mine.post_send(mine.make_rdma(VIP_CONTROL_OP_RDMAWRITE, mine.data(), 5000, vi.data() + 20000, vi.region));
            mine.wait_send();
            eventually([&] { return mine.state() != VIP_STATE_CONNECTED; });
        });
        {
            vi.core.recv.lock.lock();
            const bool alive = vi.endpoint().joint.valid();
            const Reach reach = alive ? vi.endpoint().joint.peer->reach : Reach::none;
            vi.core.recv.lock.unlock();
            ASSERT_TRUE(alive) << "the child left with status " << wait_for(child);
            EXPECT_EQ(reach, std::string(cross) == "off" ? Reach::none : Reach::cross_copy);
        }
        for (int i = 0; i < 20; ++i) {
            ASSERT_NE(vi.wait_recv(), nullptr);
            ASSERT_TRUE(filled(vi.data(), 10000, 6));
        }
        EXPECT_TRUE(eventually([&] { return filled(vi.data() + 20000, 5000, 6); }));
        vi.disconnect();
        EXPECT_EQ(wait_for(child), 0);
    }
}

TEST(OtherProcess, KilledIsNoticedAndWhatItPublishedIsDelivered) {
    for (int round = 0; round < 10; ++round) {
        Matcher matcher;
        TestNic nic(matcher);
        TestVi vi(nic, kLevel);
        for (int i = 0; i < 900; ++i) vi.receive(vi.data(), 64);
        const pid_t child = with_child(vi, matcher, {}, [&](TestVi& mine) {
            for (int i = 0; i < 5; ++i) mine.send(mine.data(), 33);
            for (int i = 0; i < 5; ++i) mine.wait_send();  // before the other end has started it holds them back
            if (round % 2 == 0) ::raise(SIGKILL);
            for (int i = 0; i < 800; ++i) mine.send(mine.data(), 33);
            ::raise(SIGKILL);
        });
        const int status = wait_for(child);
        EXPECT_TRUE(WIFSIGNALED(status));
        tests::RunningTime time;
        EXPECT_TRUE(vi.reaches(VIP_STATE_ERROR)) << "without a call";
        EXPECT_LT(time.running_ns(), 1'000'000'000);
        uint32_t good = 0, flushed = 0;
        while (VIP_DESCRIPTOR* d = vi.recv_done()) ((status_of(d) & VIP_STATUS_ERROR_MASK) == 0 ? good : flushed) += 1;
        EXPECT_GE(good, 5u);
        EXPECT_EQ(good + flushed, 900u);
        EXPECT_TRUE(vi.is_told(VIP_ERROR_CONN_LOST));
        EXPECT_EQ(vi.errors().size(), 1u);
    }
}

TEST(OtherProcess, KilledInTheMiddleOfAnythingIsSurvived) {
    for (int round = 0; round < 20; ++round) {
        Matcher matcher;
        TestNic nic(matcher, {{"cross_copy", round % 2 == 0 ? "auto" : "off"}});
        TestVi vi(nic, kLevel);
        for (int i = 0; i < 900; ++i) vi.receive(vi.data(), 9000);
        const pid_t child =
            with_child(vi, matcher, {{"cross_copy", round % 2 == 0 ? "auto" : "off"}}, [&](TestVi& mine) {
                for (uint32_t i = 0;; ++i) {
                    if (i % 3 == 0)
                        mine.post_send(mine.make_rdma(VIP_CONTROL_OP_RDMAWRITE, mine.data(), 60000, vi.data() + 100000,
                                                      vi.region));
                    else if (i < 800)
                        mine.send(mine.data(), i * 97 % 9000);
                    while (mine.send_done() != nullptr) {
                    }
                }
            });
        for (int polls = 0; polls < 1000 * round; ++polls) {
            vi.recv_done();
            if (polls % 256 == 0) std::this_thread::yield();  // on one processor the child gets a time slice each time
        }
        ::kill(child, SIGKILL);
        wait_for(child);
        tests::RunningTime time;
        EXPECT_TRUE(vi.reaches(VIP_STATE_ERROR));
        EXPECT_LT(time.running_ns(), 1'000'000'000);
        vi.disconnect();
        std::memset(vi.data(), 0, 200000);
        for (int polls = 0; polls < 1000; ++polls) nic.poll();
        for (int i = 0; i < 200000; ++i) ASSERT_EQ(vi.data()[i], std::byte{0});
    }
}

// ---- control half
// -------------------------------------------------------------------------------------------

class Offers final : public NicSink {
public:
    std::vector<NicInfo> offered;
    std::vector<Rejection> rejected;
    void offer(const NicInfo& nic) override { offered.push_back(nic); }
    void reject(const Rejection& why) override { rejected.push_back(why); }
};

TEST(Control, AnOpenSaysWhichSettingItDoesNotTake) {
    MapSettings settings;
    settings.values["timing"] = "warp";
    tests::ExplainedAgent agent;
    RegionTable regions;
    OpenArgs args;
    args.settings = &settings;
    args.agent = &agent;
    args.regions = &regions;
    NicContext* opened = nullptr;
    EXPECT_EQ(ops().open(args, &opened), Status::not_supported);
    EXPECT_EQ(agent.reason, "paramnet.timing = warp is unknown");
    EXPECT_EQ(agent.cure, "set paramnet.timing to none or paramnet2");
}

TEST(Control, OffersAsManyNicsAsConfiguredWithAddressesOfTheirOwn) {
    MapSettings settings;
    settings.values["nics"] = "4";
    Offers first, second;
    EXPECT_EQ(viaduct_provider_v1.control.discover(settings, Hints(), first), Status::ok);
    EXPECT_EQ(viaduct_provider_v1.control.discover(settings, Hints(), second), Status::ok);
    ASSERT_EQ(first.offered.size(), 4u);
    std::set<std::vector<uint8_t>> addresses;
    for (size_t i = 0; i < 4; ++i) {
        const NicInfo& nic = first.offered[i];
        EXPECT_EQ(nic.index, i);
        EXPECT_EQ(std::string(nic.name), "paramnet" + std::to_string(i));
        EXPECT_EQ(nic.address.bytes[0] & 3, 2) << "locally administered, one station";
        EXPECT_EQ(nic.address, second.offered[i].address) << "stable";
        addresses.emplace(nic.address.bytes, nic.address.bytes + kNicAddressBytes);
        EXPECT_GE(nic.max_transfer, 65600u);
        EXPECT_LT(nic.max_transfer, uint64_t{1} << 31);
        EXPECT_EQ(nic.reliability_mask, 7);
    }
    EXPECT_EQ(addresses.size(), 4u);
}

// An engine above selects a NIC by these figures, never by its name.
TEST(Control, TellsWhatTheNicCanDoItsLimitsAndHowGoodItIs) {
    const MapSettings settings;
    Offers offers;
    ASSERT_EQ(viaduct_provider_v1.control.discover(settings, Hints(), offers), Status::ok);
    ASSERT_FALSE(offers.offered.empty());
    const NicInfo& nic = offers.offered[0];
    constexpr uint32_t kAll = kCapRdmaWrite | kCapRdmaRead | kCapImmediate | kCapAtomics | kCapAtomicsGlobal |
                              kCapOwnWakeup | kCapLocalOnly | kCapUnpinned;
    EXPECT_EQ(nic.capabilities & kAll, kAll);
    for (const OperationLimit& limit : {nic.send, nic.put, nic.get}) {
        EXPECT_EQ(limit.max_bytes, nic.max_transfer);
        EXPECT_EQ(limit.alignment, 1u);
        EXPECT_GE(limit.max_segments, nic.max_segments - 1);  // an RDMA's address takes one
        EXPECT_LE(limit.max_segments, nic.max_segments);
    }
    EXPECT_GT(nic.send.inline_bytes, 0u);
    EXPECT_EQ(nic.atomic.max_bytes, 8u);
    EXPECT_EQ(nic.atomic.alignment, 4u) << "of the narrowest word";
    EXPECT_EQ(atomic_widths(nic), 4u + 8u);
    EXPECT_GT(nic.profile.latency_ns, 0u);
    EXPECT_LT(nic.profile.latency_ns, 1000u);
    EXPECT_GT(nic.profile.bandwidth_mb_s, 1000u);
    EXPECT_GT(nic.profile.exclusivity, 50u) << "before networks";
}

TEST(Control, TellsHowFastTheModelledLinkIs) {
    MapSettings settings;
    settings.values = {{"timing", "paramnet2"}, {"switches", "3"}, {"nics", "2"}, {"link_rate", ";100M"}};
    Offers offers;
    ASSERT_EQ(viaduct_provider_v1.control.discover(settings, Hints(), offers), Status::ok);
    ASSERT_EQ(offers.offered.size(), 2u);
    EXPECT_NEAR(offers.offered[0].profile.latency_ns, 10'100, 300);
    EXPECT_EQ(offers.offered[0].profile.bandwidth_mb_s, 312u);
    EXPECT_EQ(offers.offered[1].profile.bandwidth_mb_s, 104u);
}

TEST(Control, RefusesSettingsThatMakeNoSenseWithACure) {
    const std::pair<const char*, const char*> wrong[] = {
        {"nics", "65"}, {"nics", "-1"}, {"cross_copy", "maybe"}, {"timing", "myrinet"}, {"switches", "17"}};
    for (const auto& [key, value] : wrong) {
        SCOPED_TRACE(key);
        MapSettings settings;
        settings.values[key] = value;
        Offers offers;
        EXPECT_EQ(viaduct_provider_v1.control.discover(settings, Hints(), offers), Status::ok);
        EXPECT_TRUE(offers.offered.empty());
        ASSERT_EQ(offers.rejected.size(), 1u);
        EXPECT_NE(std::string(offers.rejected[0].reason).find(key), std::string::npos);
        EXPECT_NE(std::string(offers.rejected[0].cure), "");
    }
}

TEST(Control, AnswersForAddressesOfThisHostOnly) {
    Matcher matcher;
    TestNic nic(matcher, {{"nics", "2"}});
    const uint8_t local[4] = {127, 0, 0, 1}, away[4] = {192, 0, 2, 77};
    uint8_t local6[16] = {};
    local6[15] = 1;
    NicAddress address;
    EXPECT_EQ(ops().resolve(nic.context, local, 4, 0, &address), Status::ok);
    EXPECT_EQ(address, nic.context->info.address);
    EXPECT_EQ(ops().resolve(nic.context, local6, 16, 1, &address), Status::ok);
    EXPECT_EQ(address, host_address(1));
    EXPECT_EQ(ops().resolve(nic.context, local, 4, 2, &address), Status::no_match);
    EXPECT_EQ(ops().resolve(nic.context, away, 4, 0, &address), Status::no_match);
}

}  // namespace
}  // namespace viaduct::paramnet::test
