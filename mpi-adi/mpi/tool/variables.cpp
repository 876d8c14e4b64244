// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/mpi/tool/variables.hpp"

#include "mpi-adi/engine/engine.hpp"

namespace viaduct::mpi::tool {
namespace {

struct CounterRow {
    const char* name;
    uint64_t mpip_counters::*counter;
    const char* description;
};

constexpr CounterRow kCounters[] = {
    {"eager", &mpip_counters::mc_eager, "messages sent at once, without a hand-shake"},
    {"long", &mpip_counters::mc_long, "long messages sent after a hand-shake"},
    {"packets", &mpip_counters::mc_packets, "packets sent"},
    {"noops", &mpip_counters::mc_noops, "packets sent only to give credits back"},
    {"backlogged", &mpip_counters::mc_backlogged, "packets that had to wait for credits"},
    {"rput", &mpip_counters::mc_rput, "long messages moved by remote write"},
    {"rget", &mpip_counters::mc_rget, "long messages moved by remote read"},
    {"r3", &mpip_counters::mc_r3, "long messages moved as packets"},
    {"unexpected", &mpip_counters::mc_unexpected, "messages that arrived before their receive was posted"},
    {"vbufs_grown", &mpip_counters::mc_vbufs_grown, "times the pool of packet buffers grew"},
    {"scattered", &mpip_counters::mc_scattered, "long messages that the NIC gathered or scattered"},
    {"lists", &mpip_counters::mc_lists, "lists of pieces fetched from the other side's memory"},
    {"puts", &mpip_counters::mc_puts, "one-sided writes to memory of other processes by the NIC"},
    {"gets", &mpip_counters::mc_gets, "one-sided reads of memory of other processes by the NIC"},
    {"changes", &mpip_counters::mc_changes, "atomic operations on memory of other processes by the NIC"},
};
static_assert(sizeof(mpip_counters) == sizeof kCounters / sizeof *kCounters * sizeof(uint64_t),
              "one row for each counter");

std::vector<Performance> all_performances() {
    std::vector<Performance> all;
    all.push_back({"job_stage", "whether the job of this process runs", MPI_T_PVAR_CLASS_STATE, MPI_INT,
                   &stage_enum(), -1, nullptr, [] { return uint64_t(engine.stage); }});
    all.push_back({"job_processes", "processes in the job; 0 before it runs", MPI_T_PVAR_CLASS_SIZE,
                   MPI_UNSIGNED_LONG_LONG, MPI_T_ENUM_NULL, -1, nullptr,
                   [] { return engine.stage == Stage::before ? 0 : uint64_t(engine.world.size); }});
    all.push_back({"unexpected_bytes", "bytes held by messages without a posted receive",
                   MPI_T_PVAR_CLASS_LEVEL, MPI_UNSIGNED_LONG_LONG, MPI_T_ENUM_NULL, -1, nullptr,
                   unexpected_bytes});
    for (int protocol = 0; protocol < mpip_protocol_count(); ++protocol) {
        const std::string name = mpip_protocol_name(protocol);
        for (const CounterRow& row : kCounters) {
            all.push_back({name + "_" + row.name, name + ": " + row.description, MPI_T_PVAR_CLASS_COUNTER,
                           MPI_UNSIGNED_LONG_LONG, MPI_T_ENUM_NULL, protocol, row.counter, nullptr});
        }
    }
    return all;
}

}  // namespace

std::vector<Control> controls() {
    size_t count = 0;
    const mpip_param* rows = mpip_params(&count);
    std::vector<Control> all;
    for (size_t i = 0; i < count; ++i) {
        all.push_back({rows + i});
    }
    return all;
}

uint64_t Performance::now() const { return counter ? mpip_counters_of(protocol)->*counter : value(); }

// Never destroyed, as tools ask from anywhere.
const std::vector<Performance>& performances() {
    static const auto* all = new std::vector<Performance>(all_performances());
    return *all;
}

MPIR_T_enum_s& stage_enum() {
    static auto* stages = new MPIR_T_enum_s{"job_stage", {"before", "running", "finalizing", "after"}};
    return *stages;
}

}  // namespace viaduct::mpi::tool
