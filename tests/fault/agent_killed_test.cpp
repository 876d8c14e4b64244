// SPDX-License-Identifier: BSD-2-Clause
// The kernel agent is killed (-9) at any moment: connections go on, the next control call starts a new one
// and finds everything in its place (spec/architecture 2, 7).
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "fault.hpp"

namespace viaduct::fault {
namespace {

Invitation for_mute() {
    Invitation invitation;
    invitation.more = {"16", "256"};
    return invitation;
}

TEST(AgentKilled, ConnectionsGoOn) {
    Invitation invitation;
    invitation.receives = 0;
    invitation.more = {"500"};
    Meeting meeting("stream", {}, invitation);
    Stream in(*meeting.end, 500);
    in.begin_receiving();
    meeting.child->go();
    for (int kills = 0; kills < 3; ++kills) {
        ASSERT_TRUE(kill_agent());
        const std::uint32_t wanted = in.received() + 2000;
        ASSERT_TRUE(
            eventually([&] { return runs_until(in, &Stream::step_receiver, [&] { return in.received() > wanted; }); }));
        ASSERT_GT(in.received(), wanted);
        expect_new_connections_work();  // and brings up the agent that is killed next
    }
    EXPECT_FALSE(in.damaged());
    EXPECT_EQ(VIP_STATE_CONNECTED, End::state_of(meeting.end->vi));
    EXPECT_EQ(0u, meeting.end->errors.size());
}

TEST(AgentKilled, TheNextControlCallStartsANewOne) {
    Meeting meeting("mute", {}, for_mute());
    const pid_t first = agent_pid();
    ASSERT_TRUE(kill_agent());
    expect_new_connections_work();
    const pid_t second = agent_pid();
    EXPECT_NE(0, second);
    EXPECT_NE(first, second);
    // What was open before is known to the new agent: a VI of the old NIC handle can be connected.
    End other;
    const VIP_VI_HANDLE vi = meeting.end->create_vi();
    conformance::connect(meeting.end->nic, vi, other.nic, other.vi);
    EXPECT_EQ(VIP_STATE_CONNECTED, End::state_of(vi));
    conformance::retire(vi);
}

TEST(AgentKilled, ANicThatTheNextAgentDoesNotOfferStopsNoOtherNic) {
    expect_new_connections_work();
    ASSERT_TRUE(kill_agent());
    setenv("VIADUCT_PARAMNET_NICS", "2", 1);
    expect_new_connections_work();  // starts an agent that offers two
    unsetenv("VIADUCT_PARAMNET_NICS");
    VIP_NIC_HANDLE second = nullptr;
    char name[] = "paramnet1";
    ASSERT_EQ(VIP_SUCCESS, VipOpenNic(name, &second));
    ASSERT_TRUE(kill_agent());
    expect_new_connections_work();
    EXPECT_EQ(VIP_SUCCESS, VipCloseNic(second));
}

TEST(AgentKilled, AServerAsleepInConnectWaitIsStillReached) {
    End server, client;
    const std::string discriminator = conformance::unique_discriminator();
    std::atomic<pid_t> waiter{0};
    auto accepted = conformance::in_background([&] {
        waiter = ::gettid();
        conformance::accept_from(server, discriminator);
    });
    ASSERT_TRUE(eventually([&] { return waiter != 0; }));
    ASSERT_TRUE(conformance::falls_asleep(waiter));
    ASSERT_TRUE(kill_agent());
    Address local(client.nic, discriminator);
    Address remote(server.nic, discriminator);
    VIP_VI_ATTRIBUTES attributes{};
    EXPECT_EQ(VIP_SUCCESS, conformance::request(client.vi, local.get(), remote.get(), conformance::kLongWait,
                                                &attributes));
    ASSERT_TRUE(ready(accepted));
    accepted.get();
    exchange_one(client, server);
}

TEST(AgentKilled, AServerInAnotherProcessThatIsAsleepIsStillReached) {
    End client;
    const std::string discriminator = conformance::unique_discriminator();
    Child server("wait-only", conformance::client_arguments(client, discriminator));
    ASSERT_EQ("ready", server.line());
    ASSERT_TRUE(conformance::falls_asleep(server.pid()));
    ASSERT_TRUE(kill_agent());
    Address local(client.nic, discriminator), remote(client.nic, discriminator);
    // The server does not accept. An agent may take longer to start than one request waits; and after the request that
    // the server has met, no server waits for another.
    std::atomic<bool> met{false};
    auto requester = conformance::in_background([&] {
        VIP_VI_ATTRIBUTES attributes{};
        VIP_RETURN last = VIP_NO_MATCH;
        bool timed_out = false;
        eventually([&] {
            last = VipConnectRequest(client.vi, local.get(), remote.get(), 1000, &attributes);
            timed_out = timed_out || last == VIP_TIMEOUT;
            return (last != VIP_TIMEOUT && last != VIP_NO_MATCH) || (met.load() && timed_out);
        });
        return timed_out && last == VIP_NO_MATCH ? VIP_TIMEOUT : last;
    });
    EXPECT_EQ("met", server.line());
    met.store(true);
    ASSERT_TRUE(ready(requester));
    EXPECT_EQ(VIP_TIMEOUT, requester.get());
}

/// Two ends of this process, each of which asks for the other one.
struct Peers {
    End one, two;
    VIP_RETURN ask_for_two() {
        return VipConnectPeerRequest(one.vi, first_.get(), second_.get(), conformance::kLongWait);
    }
    VIP_RETURN ask_for_one() {
        return VipConnectPeerRequest(two.vi, second_.get(), first_.get(), conformance::kLongWait);
    }

private:
    const std::string discriminator_ = conformance::unique_discriminator();
    Address first_{one.nic, discriminator_ + "1"}, second_{two.nic, discriminator_ + "2"};
};

TEST(AgentKilled, PendingPeerRequestsAreStillMatched) {
    Peers peers;
    ASSERT_EQ(VIP_SUCCESS, peers.ask_for_two());
    ASSERT_TRUE(kill_agent());
    ASSERT_EQ(VIP_SUCCESS, peers.ask_for_one());
    VIP_VI_ATTRIBUTES attributes{}, attributes_two{};
    auto first = conformance::in_background([&] { return VipConnectPeerWait(peers.one.vi, &attributes); });
    EXPECT_EQ(VIP_SUCCESS, VipConnectPeerWait(peers.two.vi, &attributes_two));
    ASSERT_TRUE(ready(first));
    EXPECT_EQ(VIP_SUCCESS, first.get());
    exchange_one(peers.one, peers.two);
}

/// Until the attempt has a result, without a pause.
VIP_RETURN poll_peer(VIP_VI_HANDLE vi, VIP_VI_ATTRIBUTES* attributes) {
    VIP_RETURN code = VIP_NOT_DONE;
    while (code == VIP_NOT_DONE) code = VipConnectPeerDone(vi, attributes);
    return code;
}

/// One thread has both ends, and looks after one at a time.
void expect_both_are_matched(VIP_RETURN (*result)(VIP_VI_HANDLE, VIP_VI_ATTRIBUTES*)) {
    Peers peers;
    {
        const StoppedAgent stopped;  // it has read neither request when it dies
        ASSERT_TRUE(stopped.stopped());
        ASSERT_EQ(VIP_SUCCESS, peers.ask_for_two());
        ASSERT_EQ(VIP_SUCCESS, peers.ask_for_one());
        ASSERT_TRUE(kill_agent());
    }
    VIP_VI_ATTRIBUTES attributes{};
    EXPECT_EQ(VIP_SUCCESS, result(peers.one.vi, &attributes));
    EXPECT_EQ(VIP_SUCCESS, result(peers.two.vi, &attributes));
    exchange_one(peers.one, peers.two);
}

TEST(AgentKilled, PeerRequestsOfOneThreadThatWaitsAreStillMatched) { expect_both_are_matched(VipConnectPeerWait); }

TEST(AgentKilled, PeerRequestsOfOneThreadThatPollsAreStillMatched) { expect_both_are_matched(poll_peer); }

/// Two processes of one thread each, which wait for their two connections in a different order.
TEST(AgentKilled, PeerRequestsThatAreWaitedForInAnotherOrderAreStillMatched) {
    End first, second;
    const std::string discriminator = conformance::unique_discriminator();
    Child other("two-peers", conformance::client_arguments(first, discriminator));
    ASSERT_EQ("ready", other.line());
    Address here_first(first.nic, discriminator + "a"), there_first(first.nic, discriminator + "A");
    Address here_second(second.nic, discriminator + "b"), there_second(second.nic, discriminator + "B");
    {
        const StoppedAgent stopped;
        ASSERT_TRUE(stopped.stopped());
        ASSERT_EQ(VIP_SUCCESS, VipConnectPeerRequest(first.vi, here_first.get(), there_first.get(),
                                                     conformance::kLongWait));
        ASSERT_EQ(VIP_SUCCESS, VipConnectPeerRequest(second.vi, here_second.get(), there_second.get(),
                                                     conformance::kLongWait));
        other.go();
        ASSERT_EQ("asked", other.line());
        ASSERT_TRUE(kill_agent());
    }
    VIP_VI_ATTRIBUTES attributes{};
    EXPECT_EQ(VIP_SUCCESS, VipConnectPeerWait(first.vi, &attributes));
    EXPECT_EQ(VIP_SUCCESS, VipConnectPeerWait(second.vi, &attributes));
    EXPECT_EQ("connected", other.line());
}

TEST(AgentKilled, APeerRequestIsMatchedWhileItsProgramComputes) {
    Peers peers;
    ASSERT_EQ(VIP_SUCCESS, peers.ask_for_two());
    ASSERT_TRUE(kill_agent());
    ASSERT_EQ(VIP_SUCCESS, peers.ask_for_one());
    VIP_VI_ATTRIBUTES attributes{};
    EXPECT_EQ(VIP_SUCCESS, VipConnectPeerWait(peers.two.vi, &attributes));
    EXPECT_EQ(VIP_SUCCESS, VipConnectPeerWait(peers.one.vi, &attributes));
    exchange_one(peers.one, peers.two);
}

/// No call of the program is needed: the process looks for the next agent by itself.
TEST(AgentKilled, AProcessThatHasAPeerRequestStartsTheNextAgent) {
    End end;
    const std::string discriminator = conformance::unique_discriminator();
    Address local(end.nic, discriminator + "1"), remote(end.nic, discriminator + "2");
    ASSERT_EQ(VIP_SUCCESS, VipConnectPeerRequest(end.vi, local.get(), remote.get(), conformance::kLongWait));
    ASSERT_TRUE(kill_agent());
    EXPECT_TRUE(eventually([] { return agent_pid() != 0; }));
    EXPECT_EQ(VIP_STATE_CONNECT_PENDING, End::state_of(end.vi));
}

TEST(AgentKilled, ARequestThatIsWaitingForItsAcceptIsAnswered) {
    End client, server;
    const std::string discriminator = conformance::unique_discriminator();
    std::atomic<bool> killed{false};
    auto requester = conformance::in_background([&] {
        Address local(client.nic, discriminator), remote(server.nic, discriminator);
        VIP_VI_ATTRIBUTES attributes{};
        VIP_RETURN code = VIP_NO_MATCH;
        eventually([&] {
            const bool last = killed;
            code = VipConnectRequest(client.vi, local.get(), remote.get(), 3000, &attributes);
            return code != VIP_NO_MATCH || last;
        });
        return code;
    });
    Address at(server.nic, discriminator);
    Address from = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    ASSERT_EQ(VIP_SUCCESS, VipConnectWait(server.nic, at.get(), conformance::kLongWait, from.get(),
                                          &attributes, &connection));
    ASSERT_TRUE(kill_agent());
    killed = true;
    const VIP_RETURN accepted = VipConnectAccept(connection, server.vi);
    ASSERT_TRUE(ready(requester, Millis(5000)));
    const VIP_RETURN requested = requester.get();
    // Both or neither: a new agent cannot know what the dead one had handed out.
    EXPECT_EQ(accepted == VIP_SUCCESS, requested == VIP_SUCCESS) << accepted << " and " << requested;
    if (accepted == VIP_SUCCESS) {
        exchange_one(client, server);
    } else {
        EXPECT_TRUE(accepted == VIP_TIMEOUT || accepted == VIP_ERROR_RESOURCE) << accepted;
        EXPECT_TRUE(requested == VIP_TIMEOUT || requested == VIP_NO_MATCH || requested == VIP_ERROR_RESOURCE)
            << requested;
        EXPECT_EQ(VIP_STATE_IDLE, End::state_of(client.vi));
        EXPECT_EQ(VIP_STATE_IDLE, End::state_of(server.vi));
    }
}

TEST(AgentKilled, ThePeersDeathIsNoticedWithoutIt) {
    Meeting meeting("sleep");
    auto sleeper = asleep_apart([vi = meeting.end->vi] {
        VIP_DESCRIPTOR* done = nullptr;
        return VipRecvWait(vi, VIP_INFINITE, &done);
    });
    ASSERT_TRUE(kill_agent());
    meeting.kill();
    ASSERT_TRUE(ready(sleeper, kOneSecond));
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, sleeper.get());
    expect_survivor_is_told(meeting);
}

TEST(AgentKilled, TogetherWithThePeer) {
    for (int round = 0; round < 4; ++round) {
        Meeting meeting("mute", {}, for_mute());
        const pid_t agent = agent_pid();
        ASSERT_NE(0, agent);
        // Either first, as close together as can be.
        if (round % 2 == 0) meeting.kill();
        ASSERT_EQ(0, ::kill(agent, SIGKILL));
        if (round % 2 != 0) meeting.kill();
        EXPECT_TRUE(meeting.end->reaches(VIP_STATE_ERROR, kOneSecond));
        expect_flushed(*meeting.end, meeting.posted);
        expect_survivor_is_told(meeting);
        expect_new_connections_work();
    }
}

TEST(AgentKilled, RegistrationNeedsItNot) {
    End end;
    ASSERT_TRUE(kill_agent());
    std::vector<char> memory(4096);
    VIP_MEM_HANDLE handle = 0;
    EXPECT_EQ(VIP_SUCCESS, VipRegisterMem(end.nic, memory.data(), memory.size(), nullptr, &handle));
    EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(end.nic, memory.data(), handle));
}

/// Kills whatever agent it sees until stopped, with pauses up to the given length.
class Killer {
public:
    explicit Killer(unsigned longest_pause_ms)
        : thread_([this, longest_pause_ms] {
              std::uint32_t seed = 77;
              while (!enough_) {
                  seed = seed * 1664525u + 1013904223u;
                  // sleeps: the pace of the kills
                  if (longest_pause_ms != 0) pass_time(Millis(1 + (seed >> 16) % longest_pause_ms));
                  const pid_t agent = agent_pid();
                  if (agent != 0 && ::kill(agent, SIGKILL) == 0) ++kills_;
              }
          }) {}
    ~Killer() { stop(); }
    int kills() const { return kills_; }
    int stop() {
        enough_ = true;
        if (thread_.joinable()) thread_.join();
        return kills_;
    }

private:
    std::atomic<bool> enough_{false};
    std::atomic<int> kills_{0};
    std::thread thread_;
};

TEST(AgentKilledOften, WhileProcessesConnect) {
    const OtherAgent own("-killed-often");
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 4; ++i) children.push_back(std::make_unique<Child>("reconnect", Arguments{"250"}));
    int kills = 0;
    {
        Killer killer(100);
        pass_time(Millis(2000));  // sleeps: agents are killed meanwhile
        EXPECT_TRUE(eventually([&] { return killer.kills() > 3; }, Millis(30000))) << "the machine is slow";
        kills = killer.stop();
    }
    for (const auto& child : children) {
        EXPECT_EQ("done", child->line(Millis(40000)));
        EXPECT_NE("", child->line()) << "the number of attempts that had to be repeated";
        child->go();
        EXPECT_EQ(0, child->wait());
    }
    RecordProperty("kills", kills);
}

TEST(AgentKilledOften, WhileItIsBeingStarted) {
    const OtherAgent own("-killed-young");
    // Each process starts an agent, which dies as soon as it can be seen: on the way up, or just after.
    std::vector<std::unique_ptr<Child>> children;
    {
        Killer killer(0);
        for (int i = 0; i < 4; ++i)
            children.push_back(std::make_unique<Child>("open-with-retries", Arguments{}));
        EXPECT_TRUE(eventually([&] { return killer.kills() > 0; })) << "no agent was seen";
        pass_time(Millis(700));  // sleeps: agents are killed meanwhile
    }
    for (const auto& child : children) {
        EXPECT_EQ("open", child->line(Millis(10000)));
        child->go();
        EXPECT_EQ(0, child->wait());
    }
}

TEST(AgentLeaves, WhenTheLastProcessHasEnded) {
    const OtherAgent own("-leaves");
    {
        Child child("reconnect", {"1"});
        ASSERT_EQ("done", child.line());
        EXPECT_NE(0, agent_pid());
        child.go();
        EXPECT_EQ(0, child.wait());
    }
    EXPECT_TRUE(eventually([] { return agent_pid() == 0; }, Millis(10000))) << "vipkad stays behind";
}

TEST(AgentLeaves, NotWhileAProcessIsThere) {
    const OtherAgent own("-stays");
    Child child("wait-only", {"2", "", "6162"});
    ASSERT_EQ("ready", child.line());
    const pid_t agent = agent_pid();
    ASSERT_NE(0, agent);
    pass_time(Millis(2500));  // sleeps: longer than agent.linger_ms, which is 1000
    EXPECT_EQ(agent, agent_pid());
    child.kill();
    child.wait();
    EXPECT_TRUE(eventually([] { return agent_pid() == 0; }, Millis(10000))) << "vipkad stays behind";
}

}  // namespace
}  // namespace viaduct::fault
