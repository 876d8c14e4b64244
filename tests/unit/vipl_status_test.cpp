// SPDX-License-Identifier: BSD-2-Clause
// Every Status becomes a documented answer of every kind of call.
#include "vipl/status.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace viaduct::vipl {
namespace {

// spec/calls 4, and the comments of vipl.h.
const std::map<CallKind, std::set<VIP_RETURN>> kDocumented = {
    {CallKind::open_nic, {VIP_SUCCESS, VIP_ERROR_RESOURCE, VIP_INVALID_PARAMETER}},
    {CallKind::create, {VIP_SUCCESS, VIP_ERROR_RESOURCE, VIP_INVALID_PARAMETER}},
    {CallKind::connect_wait, {VIP_SUCCESS, VIP_TIMEOUT, VIP_ERROR_RESOURCE, VIP_INVALID_PARAMETER}},
    {CallKind::accept,
     {VIP_SUCCESS, VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU, VIP_INVALID_QOS, VIP_INVALID_STATE,
      VIP_TIMEOUT, VIP_ERROR_RESOURCE}},
    {CallKind::request,
     {VIP_SUCCESS, VIP_REJECT, VIP_TIMEOUT, VIP_NO_MATCH, VIP_INVALID_STATE, VIP_ERROR_RESOURCE}},
    {CallKind::peer,
     {VIP_SUCCESS, VIP_REJECT, VIP_TIMEOUT, VIP_NO_MATCH, VIP_INVALID_STATE, VIP_INVALID_RELIABILITY_LEVEL,
      VIP_INVALID_MTU, VIP_INVALID_QOS, VIP_ERROR_RESOURCE}},
    {CallKind::names, {VIP_SUCCESS, VIP_ERROR_RESOURCE, VIP_ERROR_NAMESERVICE}},
    {CallKind::extension,
     {VIP_SUCCESS, VIP_INVALID_PARAMETER, VIP_INVALID_STATE, VIP_ERROR_NOT_SUPPORTED, VIP_ERROR_RESOURCE}},
};

TEST(StatusTest, EveryStatusBecomesADocumentedAnswer) {
    for (const auto& [kind, documented] : kDocumented) {
        for (int value = 0; value <= static_cast<int>(Status::mismatch_qos); ++value) {
            const VIP_RETURN answer = to_return(kind, static_cast<Status>(value));
            EXPECT_TRUE(documented.contains(answer))
                << "kind " << static_cast<int>(kind) << ", status " << value << ", answer " << answer;
            EXPECT_EQ(answer == VIP_SUCCESS, value == 0) << "only ok is success";
        }
    }
}

TEST(StatusTest, AnAbsentPeerIsAnAnswerThatProgramsRetryOn) {
    for (const Status status : {Status::timeout, Status::no_match, Status::rejected, Status::broken,
                                Status::out_of_resources, Status::denied, Status::unknown_name}) {
        const VIP_RETURN answer = to_return(CallKind::request, status);
        EXPECT_TRUE(answer == VIP_TIMEOUT || answer == VIP_NO_MATCH || answer == VIP_REJECT ||
                    answer == VIP_ERROR_RESOURCE)
            << answer;
    }
}

TEST(StatusTest, TraitsAreComparedForEqualityButNotPermissions) {
    ViTraits a;
    a.reliability = VIP_SERVICE_RELIABLE_DELIVERY;
    a.max_transfer = 65536;
    ViTraits b = a;
    b.rdma_write = 1;
    b.rdma_read = 1;
    EXPECT_EQ(compare_traits(a, b), Status::ok);
    b.reliability = VIP_SERVICE_UNRELIABLE;
    EXPECT_EQ(compare_traits(a, b), Status::mismatch_level);
    b = a;
    b.max_transfer = 65535;
    EXPECT_EQ(compare_traits(a, b), Status::mismatch_mtu);
    b = a;
    b.qos = 1;
    EXPECT_EQ(compare_traits(a, b), Status::mismatch_qos);
}

}  // namespace
}  // namespace viaduct::vipl
