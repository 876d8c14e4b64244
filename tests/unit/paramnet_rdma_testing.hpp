// SPDX-License-Identifier: BSD-2-Clause
// What tests of RDMA share: each runs at each reliability level and with each way to the target's memory.
#pragma once

#include <string>
#include <tuple>

#include "paramnet_fixture.hpp"

namespace viaduct::paramnet::test {

using LevelAndReach = std::tuple<uint16_t, Reach>;

class EachLevelAndReach : public testing::TestWithParam<LevelAndReach> {
protected:
    uint16_t level() const { return std::get<0>(GetParam()); }
    Reach reach() const { return std::get<1>(GetParam()); }
    bool unreliable() const { return level() == VIP_SERVICE_UNRELIABLE; }
    bool reception() const { return level() == VIP_SERVICE_RELIABLE_RECEPTION; }
};

inline std::string way_name(const testing::TestParamInfo<LevelAndReach>& way) {
    static const char* const kMethods[] = {"Served", "SameProcess", "CrossCopy"};
    return "Level" + std::to_string(std::get<0>(way.param)) + kMethods[static_cast<int>(std::get<1>(way.param))];
}

}  // namespace viaduct::paramnet::test
