// SPDX-License-Identifier: BSD-2-Clause
// The reason that a provider gives for a call: which call has it, and what may be in it.
#include "vipl/why.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

namespace viaduct::vipl {
namespace {

TEST(ReasonOfAProvider, IsThatOfTheCallUnderWay) {
    refuse_as_said("no call is under way", "");
    Call outer("VipConnectRequest", nullptr);
    {
        Call call("VipOpenNic", nullptr);
        refuse_as_said("the device is away", "bring it back");
        refuse_as_said("a second reason", "another cure");
        put_before_reason("cannot open '%s'", "rxe0");
        EXPECT_STREQ(call.text, "cannot open 'rxe0': the device is away");
        EXPECT_STREQ(call.cure, "bring it back");
    }
    EXPECT_FALSE(outer.told);
    EXPECT_FALSE(is_refused());
}

TEST(ReasonOfAProvider, OfAnotherThreadIsNoneOfThisCall) {
    const Call call("VipOpenNic", nullptr);
    std::thread([] { refuse_as_said("of a thread without a call", ""); }).join();
    EXPECT_FALSE(call.told);
}

TEST(ReasonOfAProvider, IsOneLineOfPrintableTextThatFits) {
    Call call("VipOpenNic", nullptr);
    refuse_as_said(("a\x1b[2J\n\xc2\x9b%s%n" + std::string(10'000, 'x')).c_str(), nullptr);
    EXPECT_EQ(std::string(call.text).substr(0, 13), "a?[2J???%s%nx");
    EXPECT_EQ(std::strlen(call.text), sizeof call.text - 1);
    EXPECT_STREQ(call.cure, "");
    put_before_reason("cannot open '%s'", "rxe0");
    EXPECT_EQ(std::string(call.text).substr(0, 28), "cannot open 'rxe0': a?[2J???");
    EXPECT_EQ(std::strlen(call.text), sizeof call.text - 1);
    put_before_reason("%s", std::string(10'000, 'y').c_str());
    EXPECT_EQ(std::string(call.text).substr(0, 11), "cannot open") << "no words that leave the reason no place";
}

}  // namespace
}  // namespace viaduct::vipl
