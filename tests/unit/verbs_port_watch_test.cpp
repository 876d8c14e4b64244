// SPDX-License-Identifier: BSD-2-Clause
// A port that goes down: its connections are lost when it stays so, and only then.
#include "core/clock/limits.hpp"
#include "providers/verbs/port_watch.hpp"

#include "tests/unit/verbs_fixture.hpp"

namespace viaduct::verbs {
namespace {

class VerbsPortWatch : public test::VerbsFixture {
protected:
    VerbsPortWatch() {
        nic_.port = 2;
        nic_.settings.ack_timeout = 14;
        nic_.settings.retries = 7;
        limit_ = port_down_limit(nic_.settings);
        connect(VIP_SERVICE_RELIABLE_DELIVERY);
    }
    void say(ibv_event_type type, int port = 2) {
        ibv_async_event event{};
        event.event_type = type;
        event.element.port_num = port;
        handle_port_event(nic_, event, now_);
    }
    int64_t limit_ = 0;
};

TEST_F(VerbsPortWatch, TheLimitIsWhatADeviceTriesAtMost) {
    EXPECT_EQ(limit_, int64_t{4} * 8 * 4096 * (1 << 14));
    nic_.settings.ack_timeout = 31;
    EXPECT_EQ(port_down_limit(nic_.settings), int64_t{4} * 8 * 4096 * (int64_t{1} << 31));
    nic_.settings.ack_timeout = 1;
    nic_.settings.retries = 0;
    EXPECT_EQ(port_down_limit(nic_.settings), limit_ns(TimeLimit::verbs_port_down));
}

TEST_F(VerbsPortWatch, OneThatStaysDownHasLostItsConnections) {
    EXPECT_EQ(watch_port(nic_, now_), kNever);
    say(IBV_EVENT_PORT_ERR);
    EXPECT_EQ(watch_port(nic_, now_), now_ + limit_);
    say(IBV_EVENT_PORT_ERR);
    EXPECT_EQ(watch_port(nic_, now_ + limit_ - 1), now_ + limit_) << "counted from the first word";
    EXPECT_FALSE(link_.lost);
    EXPECT_EQ(watch_port(nic_, now_ + limit_), kNever) << "and once";
    EXPECT_TRUE(link_.lost);
}

TEST_F(VerbsPortWatch, OneThatComesBackInTimeHasLostNothing) {
    say(IBV_EVENT_PORT_ERR);
    now_ += limit_ - 1;
    say(IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(watch_port(nic_, now_ + 10 * limit_), kNever);
    EXPECT_FALSE(link_.lost);
    say(IBV_EVENT_PORT_ERR);
    EXPECT_EQ(watch_port(nic_, now_), now_ + limit_) << "a new time";
}

TEST_F(VerbsPortWatch, OtherPortsOfTheDeviceDoNotMatter) {
    say(IBV_EVENT_PORT_ERR, 1);
    EXPECT_EQ(watch_port(nic_, now_), kNever);
    say(IBV_EVENT_PORT_ERR);
    say(IBV_EVENT_PORT_ACTIVE, 1);
    EXPECT_EQ(watch_port(nic_, now_), now_ + limit_);
}

}  // namespace
}  // namespace viaduct::verbs
