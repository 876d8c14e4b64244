// SPDX-License-Identifier: BSD-2-Clause
#include "utils/vipperf/limit.hpp"

#include "utils/common/error.hpp"
#include "utils/measure/limits.hpp"

namespace viaduct::vipperf {

double measure_limit(measure::Pair& pair, Limit limit, uint64_t bytes) {
    switch (limit) {
        case Limit::put:
            return measure::put_ping_pong(pair, bytes);
        case Limit::ring:
            return measure::ring_ping_pong(pair, bytes);
        case Limit::stream:
            return measure::ring_stream(pair, bytes);
        case Limit::copy:
            return measure::plain_copy(pair, bytes);
        case Limit::line_rate:
            return measure::line_rate(pair);
        case Limit::futex:
            return measure::futex_wake_up(pair);
    }
    throw tools::ToolError("no such limit");
}

}  // namespace viaduct::vipperf
