// SPDX-License-Identifier: BSD-2-Clause
// What the companion brings, and what is done when it has no room (providers/verbs/companion.hpp).
#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs::test {
namespace {

int no_event(ibv_comp_channel*, ibv_cq**, void**) { return -1; }

class VerbsCompanion : public VerbsFixture {
protected:
    VerbsCompanion() {
        table_.get_cq_event = no_event;
        nic_.control_cq = &cq_;
    }
    uint64_t number(bool receive, uint32_t buffer) const {
        return uint64_t{link_.number} << 32 | uint64_t{link_.generation} << 16 | uint64_t{receive} << 8 |
               buffer;
    }
    void hear(const Message& m, uint32_t buffer) {
        write_message(m, buffers_ + buffer * kMessageBytes);
        complete(number(true, buffer), IBV_WC_SUCCESS, kMessageBytes, IBV_WC_RECV);
        serve_companions(nic_);
    }
    void hear_that_one_has_gone() {
        complete(number(false, 0), IBV_WC_SUCCESS);
        serve_companions(nic_);
    }
    Message question() const {
        Message m;
        m.kind = MessageKind::ask;
        m.handle = handle_;
        m.address = reinterpret_cast<uint64_t>(memory_);
        m.length = 8;
        return m;
    }
};

TEST_F(VerbsCompanion, AQuestionIsAnsweredAndItsBufferIsUsedAgain) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    hear(question(), 3);
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).kind, MessageKind::answer);
    EXPECT_EQ(message(0).handle, handle_);
    ASSERT_EQ(fake_.receives.size(), 1u);
    EXPECT_EQ(fake_.receives[0].wr.wr_id, number(true, 3));
}

// The peer asks once and waits for ever.
TEST_F(VerbsCompanion, AnAnswerThatFindsNoRoomComesAsSoonAsThereIsSome) {
    connect(VIP_SERVICE_RELIABLE_DELIVERY);
    link_.free_sends = 0;
    hear(question(), 3);
    EXPECT_TRUE(fake_.messages.empty());
    EXPECT_TRUE(fake_.receives.empty()) << "the question stays where it is";
    hear_that_one_has_gone();
    ASSERT_EQ(fake_.messages.size(), 1u);
    EXPECT_EQ(message(0).kind, MessageKind::answer);
    ASSERT_EQ(fake_.receives.size(), 1u);
    EXPECT_EQ(fake_.receives[0].wr.wr_id, number(true, 3));
    hear_that_one_has_gone();
    EXPECT_EQ(fake_.messages.size(), 1u) << "once";
}

}  // namespace
}  // namespace viaduct::verbs::test
