// SPDX-License-Identifier: BSD-2-Clause
// NICs that appear, change and go under an agent that runs, as programs and tools see them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kagent_testing.hpp"

namespace viaduct::kagent {
namespace {

using namespace testing;

// The answer of the fake provider, which is number 0, when only these NICs of it exist.
NicAnswer only(const std::vector<uint16_t>& numbers) {
    NicAnswer answer;
    for (const uint16_t n : numbers) answer.offered.push_back({fake::nic("fake", n), {"fake:" + std::to_string(n)}});
    return answer;
}

struct ChangingNics : Bench {
    // The names that vipinfo shows.
    std::vector<std::string> listed(uint64_t session) {
        std::vector<std::string> names;
        out.boxes[session].clear();
        post(session, Type::kListNics, Empty{}, 5);
        for (Mail m = take(session); m.type() == Type::kNicEntry; m = take(session))
            names.emplace_back(body_of<NicEntry>(m).nic.name);
        return names;
    }
    // The NIC that a context has open.
    std::string nic_of(uint64_t context) { return providers.nic(agent.registry().all().at(context).nic).name; }
    // As a process does that has lost its connection to the agent.
    Mail reattach(uint64_t session, uint64_t context, const char* device, const NicAddress& address) {
        OpenNic o;
        std::strncpy(o.device, device, sizeof(o.device) - 1);
        o.context_id = context;
        o.reattach = 1;
        o.address = address;
        Mail m = Mail::of(Type::kOpenNic, o, 2);
        m.descriptors.push_back(some_fd());
        agent.handle(session, std::move(m), now);
        return take(session);
    }
    std::string why_not(uint64_t session, const char* name) {
        open(session, name);
        return status_of(last) == Status::unknown_name ? body_of<Error>(last).text : "";
    }
};

using Names = std::vector<std::string>;

TEST(AgentNicsChangeTest, ANicThatAppearsIsListedAndOpenedAtOnce) {
    ChangingNics b;
    const uint64_t s = b.join();
    EXPECT_EQ(b.listed(s), (Names{"fake0", "fake1"}));
    EXPECT_EQ(b.why_not(s, "fake2"), "provider fake offers no NIC fake2: made to be rejected");
    EXPECT_EQ(b.agent.note_nics(0, only({0, 1, 2})).appeared, Names{"fake2"});
    EXPECT_EQ(b.listed(s), (Names{"fake0", "fake1", "fake2"}));
    b.open(s, "fake2");
    ASSERT_EQ(b.last.type(), Type::kOpened);
    EXPECT_EQ(body_of<Opened>(b.last).nic.address, nic_address(2));
    b.open(s, "fake:2");
    EXPECT_EQ(b.last.type(), Type::kOpened);
}

TEST(AgentNicsChangeTest, AnOpenOfAVanishedNicFailsWithTheReason) {
    ChangingNics b;
    const uint64_t s = b.join();
    b.agent.note_nics(0, only({0, 1}));
    b.agent.note_nics(0, only({0}));
    EXPECT_EQ(b.listed(s), Names{"fake0"});
    EXPECT_EQ(b.why_not(s, "fake1"), "NIC fake1 has vanished: provider fake does not offer it");
    NicAnswer answer = only({0});
    answer.rejected.push_back({"fake", "fake 1", "its cable was pulled", "plug it in"});
    b.agent.note_nics(0, std::move(answer));
    EXPECT_EQ(b.why_not(s, "fake:1"), "NIC fake:1 has vanished: its cable was pulled");
}

TEST(AgentNicsChangeTest, ProgramsThatHaveANicOpenKeepItWhenItHasVanished) {
    ChangingNics b;
    const uint64_t s = b.join(), other = b.join();
    const uint64_t held = b.open(s, "fake1"), same = b.open(other, "fake1");
    b.agent.note_nics(0, only({0}));
    b.agent.note_nics(0, only({0}));
    EXPECT_EQ(b.nic_of(held), "fake1");
    // Their connections are made as before.
    b.post(s, Type::kConnWait, wait_at(held, "kept"), 11);
    b.post(other, Type::kConnRequest, request_to(same, "x", nic_address(1), "kept"), 12);
    EXPECT_EQ(b.take(s).type(), Type::kIncoming);
    b.post(other, Type::kCloseNic, ContextRef{same}, 13);
    b.agent.note_nics(0, only({0, 2}));
    EXPECT_EQ(b.listed(s), (Names{"fake0", "fake2"}));
    EXPECT_EQ(b.nic_of(held), "fake1");
    b.agent.leave(s, b.now);
    b.agent.note_nics(0, only({0, 2}));
    EXPECT_EQ(b.providers.all_nics().size(), 2u) << "the last program has closed it";
}

TEST(AgentNicsChangeTest, AContextThatIsReattachedKeepsItsNic) {
    ChangingNics b;
    const uint64_t s = b.join(1000, 77);
    const uint64_t held = b.open(s, "fake1");
    b.agent.note_nics(0, only({0}));
    const Mail opened = b.reattach(b.join(1000, 77), held, "fake1", nic_address(1));
    ASSERT_EQ(opened.type(), Type::kOpened);
    EXPECT_STREQ(body_of<Opened>(opened).nic.name, "fake1");
}

TEST(AgentNicsChangeTest, AContextOfAnEarlierAgentGetsTheNicOfItsAddress) {
    ChangingNics b;
    const uint64_t s = b.join();
    const Mail opened = b.reattach(s, 500, "fake1", nic_address(0));  // which the earlier agent called fake1
    ASSERT_EQ(opened.type(), Type::kOpened);
    EXPECT_STREQ(body_of<Opened>(opened).nic.name, "fake0");
}

// unknown_name: a process keeps its connection to the agent, and its other NICs are served.
TEST(AgentNicsChangeTest, AContextWhoseNicIsNotListedIsRefusedWithTheProvidersReason) {
    ChangingNics b;
    const uint64_t s = b.join();
    NicAnswer scarce = only({0, 1});
    scarce.complete = false;
    scarce.may_succeed_later = true;
    scarce.rejected.push_back({"fake", "fake2", "no descriptors", "raise the limit"});
    b.agent.note_nics(0, std::move(scarce));
    const Mail refused = b.reattach(s, 500, "fake2", nic_address(2));
    EXPECT_EQ(status_of(refused), Status::unknown_name);
    EXPECT_STREQ(body_of<Error>(refused).text, "provider fake offers no NIC fake2: no descriptors");
    EXPECT_STREQ(body_of<Error>(b.reattach(s, 500, "fake1", nic_address(2))).text,
                 "no NIC of this host has its address");
    b.agent.note_nics(0, only({0, 1, 2}));
    EXPECT_EQ(b.reattach(s, 500, "fake2", nic_address(2)).type(), Type::kOpened);
}

TEST(AgentNicsChangeTest, LaterOpensSeeANewAddress) {
    ChangingNics b;
    const uint64_t s = b.join();
    b.agent.note_nics(0, only({0, 1}));
    const uint64_t former = b.open(s, "fake1");
    NicAnswer answer = only({0, 1});
    answer.offered[1].nic.address.bytes[5] = 99;
    b.agent.note_nics(0, std::move(answer));
    b.open(s, "fake1");
    ASSERT_EQ(b.last.type(), Type::kOpened);
    EXPECT_EQ(body_of<Opened>(b.last).nic.address.bytes[5], 99u);
    NameLookup look;
    look.context_id = former;
    std::strcpy(look.name, "localhost");
    EXPECT_EQ(body_of<NameEntry>(b.ask(s, Type::kNameLookup, look)).address, nic_address(1))
        << "its own NIC comes first, as it was opened";
}

TEST(AgentNicsChangeTest, TheNameServiceSeesTheChange) {
    ChangingNics b;
    const uint64_t s = b.join();
    NameLookup look;
    look.context_id = b.open(s, "fake0");
    std::strcpy(look.name, "fake2");
    EXPECT_EQ(status_of(b.ask(s, Type::kNameLookup, look)), Status::unknown_name);
    b.agent.note_nics(0, only({0, 1, 2}));
    EXPECT_EQ(body_of<NameEntry>(b.ask(s, Type::kNameLookup, look)).address, nic_address(2));
    b.agent.note_nics(0, only({0, 1}));
    EXPECT_EQ(status_of(b.ask(s, Type::kNameLookup, look)), Status::unknown_name);
}

TEST(AgentNicsChangeTest, ANicThatAppearsDependsOnItsInterface) {
    ChangingNics b;
    Devices host;
    LinkInfo link;
    link.name = "port";
    link.address = text_of_address(nic_address(2));
    link.up = true;
    b.agent.note_links(host);
    EXPECT_FALSE(b.agent.depends_on_links());
    host.links.push_back(link);
    b.agent.note_nics(0, only({0, 1, 2}));
    b.agent.note_links(host);
    EXPECT_TRUE(b.agent.depends_on_links());
    const uint64_t s = b.join();
    const uint64_t held = b.open(s, "fake2");
    // The provider does not offer it, and its interface has vanished.
    b.agent.note_nics(0, only({0, 1}));
    host.links.clear();
    b.agent.note_links(host);
    const Mail down = b.take(s);
    EXPECT_EQ(down.type(), Type::kNicDown);
    EXPECT_EQ(body_of<ContextRef>(down).context_id, held);
    b.agent.note_links(host);
    EXPECT_TRUE(b.quiet(s)) << "one report";
}

TEST(AgentNicsChangeTest, ANicDependsOnAnInterfaceThatIsThereAfterIt) {
    ChangingNics b;
    Devices host;
    b.agent.note_nics(0, only({0, 1, 2}));
    b.agent.note_links(host);
    LinkInfo link;
    link.name = "port";
    link.address = text_of_address(nic_address(2));
    host.links.push_back(link);
    const uint64_t s = b.join();
    const uint64_t held = b.open(s, "fake2");
    b.agent.note_links(host);
    EXPECT_TRUE(b.agent.depends_on_links());
    EXPECT_TRUE(b.quiet(s)) << "its interface has been down from the beginning";
    host.links[0].up = true;
    b.agent.note_links(host);
    EXPECT_TRUE(b.quiet(s));
    host.links[0].up = false;
    b.agent.note_links(host);
    const Mail down = b.take(s);
    EXPECT_EQ(down.type(), Type::kNicDown);
    EXPECT_EQ(body_of<ContextRef>(down).context_id, held);
}

}  // namespace
}  // namespace viaduct::kagent
