// SPDX-License-Identifier: BSD-2-Clause
// A port belongs to one process at a time.
#include "providers/acenic/port_lock.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace viaduct::acenic {
namespace {

// Names that no other test of this network namespace has.
PortSpec spec_of(const std::string& interface, const std::string& arguments) {
    PortSpec spec;
    spec.driver = interface.empty() ? "net_x" : "net_af_packet";
    spec.interface = interface;
    spec.text = spec.driver + "," + arguments + std::to_string(::getpid());
    return spec;
}

TEST(AcenicOnlyOne, APortIsTakenOnceUntilItIsLetGo) {
    const PortSpec spec = spec_of("", "a=");
    Fd first = acquire_port_lock(spec);
    ASSERT_TRUE(first.valid());
    EXPECT_FALSE(acquire_port_lock(spec).valid());
    first.reset();
    EXPECT_TRUE(acquire_port_lock(spec).valid());
}

TEST(AcenicOnlyOne, PortsWithoutAnInterfaceAreToldApartByAllOfTheirText) {
    const Fd first = acquire_port_lock(spec_of("", "a=")), second = acquire_port_lock(spec_of("", "b="));
    EXPECT_TRUE(first.valid());
    EXPECT_TRUE(second.valid());
}

TEST(AcenicOnlyOne, AnInterfaceIsOnePortWhateverItsArguments) {
    const std::string interface = "t" + std::to_string(::getpid());
    const Fd first = acquire_port_lock(spec_of(interface, "a="));
    EXPECT_TRUE(first.valid());
    EXPECT_FALSE(acquire_port_lock(spec_of(interface, "b=")).valid());
}

TEST(AcenicOnlyOne, AViewTellsANewHolderFromTheOldOne) {
    const PortSpec spec = spec_of("", "a=");
    EXPECT_FALSE(PortLockView(spec).is_valid());
    Fd first = acquire_port_lock(spec);
    PortLockView view(spec);
    ASSERT_TRUE(view.is_valid());
    constexpr int kMoreThanTheQueueHolds = 100;
    for (int i = 0; i < kMoreThanTheQueueHolds; ++i) EXPECT_FALSE(view.has_new_holder());
    first.reset();
    EXPECT_FALSE(view.has_new_holder());
    const Fd second = acquire_port_lock(spec);
    ASSERT_TRUE(second.valid());
    EXPECT_TRUE(view.has_new_holder());
}

TEST(AcenicOnlyOne, AChildThatHasTheLockIsNoNewHolder) {
    const PortSpec spec = spec_of("", "a=");
    Fd first = acquire_port_lock(spec);
    PortLockView view(spec);
    const Fd of_child(::dup(first.get()));
    first.reset();
    EXPECT_FALSE(view.has_new_holder());
    EXPECT_FALSE(acquire_port_lock(spec).valid());
}

}  // namespace
}  // namespace viaduct::acenic
