// SPDX-License-Identifier: BSD-2-Clause
// An engine that cannot begin leaves its port free for the next open, also when an exception ends the first one.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>

#include "providers/packet/engine.hpp"
#include "tests/unit/explained_agent.hpp"

namespace viaduct::packet {
namespace {

class PortWithoutMemory final : public PortSource {
public:
    PortWithoutMemory() : PortSource("udp", "a port of a test that has no memory") {}
    std::unique_ptr<FramePort> open(std::string* why, std::string*) const override {
        ++opens;
        if (throws) throw std::bad_alloc();
        *why = "refused";
        return nullptr;
    }
    bool resolve(uint32_t, NicAddress*) const override { return false; }

    mutable int opens = 0;
    bool throws = true;
};

TEST(EngineThatCannotBegin, LeavesItsPortFreeWhenMemoryIsShort) {
    tests::ExplainedAgent agent;
    PortWithoutMemory source;
    std::string why, cure;
    EXPECT_THROW((void)Engine::get(source, &agent, &why, &cure), std::bad_alloc);
    EXPECT_THROW((void)Engine::get(source, &agent, &why, &cure), std::bad_alloc);
    source.throws = false;
    EXPECT_EQ(Engine::get(source, &agent, &why, &cure), nullptr);
    EXPECT_EQ(why, "refused");
    EXPECT_EQ(source.opens, 3);
}

}  // namespace
}  // namespace viaduct::packet
