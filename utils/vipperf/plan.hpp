// SPDX-License-Identifier: BSD-2-Clause
// What is measured, and the records in which the two ends of vipperf agree on it. Records travel as they are
// in memory: both ends are of one byte order, as VIA programs always were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace viaduct::vipperf {

enum class Operation : uint8_t { send, write, read };
enum class Completion : uint8_t { queue, cq, wait, cq_wait };
enum class Kind : uint8_t { latency, bandwidth };

// One way of using the NIC; connections are made for it once, messages of any size up to max_bytes follow.
struct Plan {
    Operation operation = Operation::send;
    Completion completion = Completion::queue;
    uint16_t level = 2;  // VIP_SERVICE_...
    uint32_t vis = 1;
    uint32_t depth = 256;  // receives posted on each VI for messages
    uint16_t check = 0;    // every byte is looked at
    uint16_t mapped = 0;   // memory comes from VipxAllocMemory
    uint64_t max_bytes = 0;
};

// One measurement.
struct Run {
    Kind kind = Kind::latency;
    uint8_t both_ways = 0;
    uint8_t stamped = 0;  // the time of each message is kept
    uint32_t bundle = 0;
    uint64_t bytes = 0;
    uint64_t warm_up = 0;
    uint64_t iterations = 0;
};

// What this machine can do without any protocol (utils/measure/limits.hpp).
enum class Limit : uint8_t { put, ring, stream, copy, line_rate, futex };

// Memory of one end, for RDMA by the other.
struct Window {
    uint64_t incoming = 0;  // where it may be written
    uint64_t outgoing = 0;  // and read
    uint32_t handle = 0;
    uint32_t reserved = 0;
};

struct Command {
    enum class What : uint32_t { setup = 1, window, run, distance, limit, end };
    uint32_t magic = 0;
    uint32_t version = 0;
    What what = What::end;
    Limit limit = Limit::put;
    Plan plan;
    Run run;
    Window window;
};

struct Answer {
    uint32_t magic = 0;
    uint32_t version = 0;
    uint32_t bundle = 0;
    Window window;
    double ns = 0;           // what the run took at the server's end
    double share = 1;        // of a processor it had
    double peak_ns = 0;      // of a stream: see loops.hpp
    char trouble[160] = {};  // empty: well
};

inline constexpr uint32_t kMagic = 0x56504651;
inline constexpr uint32_t kProtocol = 1;
inline constexpr size_t kControlBytes = 256;
static_assert(sizeof(Command) <= kControlBytes && std::is_trivially_copyable_v<Command>);
static_assert(sizeof(Answer) <= kControlBytes && std::is_trivially_copyable_v<Answer>);

inline constexpr uint64_t kMostBytes = 4u << 20;
inline constexpr uint32_t kMostVis = 1024;
inline constexpr uint32_t kMostBundles = 32;

// Empty when a server may do as asked; else why not.
std::string fault_of(const Plan&);
std::string fault_of(const Run&, const Plan&);

// "send_lat", "write_bw"; "queue", "cq", "wait", "cq_wait".
std::string name_of(Operation, Kind);
std::string name_of(Completion);
std::optional<Completion> completion_named(const std::string&);
bool test_named(const std::string&, Operation*, Kind*);
// "Send latency", "RDMA write bandwidth".
std::string title_of(Operation, Kind);

}  // namespace viaduct::vipperf
