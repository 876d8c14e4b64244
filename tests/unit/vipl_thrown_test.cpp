// SPDX-License-Identifier: BSD-2-Clause
// An exception that ends a call becomes its return code and reason.
#include "vipl/thrown.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "vipl/c_api.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

// The reason of a call that ends so.
template <class Exception>
std::string reason_of(const Exception& thrown) {
    Call call("VipOpenNic", nullptr);
    EXPECT_EQ(guarded([&]() -> VIP_RETURN { throw thrown; }), VIP_ERROR_RESOURCE);
    return call.text;
}

TEST(ExceptionInACall, OfMemoryNamesMemory) {
    EXPECT_EQ(reason_of(std::bad_alloc()), "no memory left");
    EXPECT_EQ(reason_of(std::bad_array_new_length()), "no memory left");
    EXPECT_EQ(reason_of(std::length_error("vector::reserve")), "no memory left");
    EXPECT_EQ(reason_of(std::system_error(ENOMEM, std::generic_category())), "no memory left");
}

TEST(ExceptionInACall, OfTheSystemNamesTheSystemsError) {
    EXPECT_EQ(reason_of(std::system_error(EAGAIN, std::system_category())),
              std::string("the system refuses a thread or a lock: ") + std::strerror(EAGAIN));
}

TEST(ExceptionInACall, OfAnotherKindHasItsOwnWords) {
    EXPECT_EQ(reason_of(std::out_of_range("map::at")), "a fault inside the library: map::at");
    EXPECT_EQ(reason_of(std::runtime_error("this cannot be understood")),
              "a fault inside the library: this cannot be understood");
}

TEST(ExceptionInACall, LeavesAReasonThatIsThere) {
    Call call("VipOpenNic", nullptr);
    EXPECT_EQ(guarded([]() -> VIP_RETURN {
                  refuse_as_said("the device is away", "bring it back");
                  throw std::bad_alloc();
              }),
              VIP_ERROR_RESOURCE);
    EXPECT_STREQ(call.text, "the device is away");
}

}  // namespace
}  // namespace viaduct::vipl
