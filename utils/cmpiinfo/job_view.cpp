// SPDX-License-Identifier: BSD-2-Clause
// Looking into the engine.
#include "utils/cmpiinfo/job_view.hpp"

#include "mpi-adi/engine/engine.hpp"

namespace viaduct::cmpiinfo {
namespace {

using mpi::Channel;
using mpi::Comm;
using mpi::Payload;

constexpr int kRowTag = 1;

std::vector<ProtocolView> protocols() {
    std::vector<ProtocolView> all;
    for (int i = 0; i < mpip_protocol_count(); i++) {
        const protocol& module = mpip_protocols[i];
        const mpip_properties& properties = module.pt_prop;
        ProtocolView one;
        one.name = mpip_protocol_name(i);
        one.ready = module.pt_loaded != 0;
        if (one.ready) {
            one.exclusivity = properties.mp_exclusivity;
            one.latency_ns = properties.mp_latency_ns;
            one.bandwidth_mb = properties.mp_bandwidth_mb;
            one.eager_limit = properties.mp_eager_limit;
            one.put = (properties.mp_flags & MPIP_PROP_PUT) != 0;
            one.get = (properties.mp_flags & MPIP_PROP_GET) != 0;
            one.words = (properties.mp_flags & MPIP_PROP_WORDS) != 0;
        } else {
            one.reason = mpi::engine.refusals[static_cast<size_t>(i)];
        }
        all.push_back(one);
    }
    return all;
}

std::vector<ParameterView> parameters() {
    size_t count = 0;
    const mpip_param* table = mpip_params(&count);
    std::vector<ParameterView> all;
    for (size_t i = 0; i < count; i++)
        all.push_back(
            {table[i].pa_name, table[i].pa_value, table[i].pa_default, table[i].pa_origin, table[i].pa_help,
             table[i].pa_low, table[i].pa_high});
    return all;
}

std::vector<std::string> names_of(const std::vector<int>& row) {
    std::vector<std::string> names;
    names.reserve(row.size());
    for (const int number : row) names.emplace_back(mpip_protocol_name(number));
    return names;
}

// Each rank has its own protocols; rank 0 collects them. False: a rank does not answer.
bool collect_ways(std::vector<std::vector<std::string>>* ways) {
    const mpi::World& world = mpi::world();
    Comm comm;
    comm.rank = world.rank;
    comm.size = comm.remote_size = world.size;
    comm.peers = mpi::engine.world.processes.data();
    mpi::attach(comm);

    std::vector<int> row;
    for (const process_t* process : world.processes) row.push_back(process->p_proto->pt_number);
    int rc = MPI_SUCCESS;
    if (world.rank != 0) {
        rc = mpi::send(comm, Channel::p2p, 0, kRowTag, {row.data(), row.size() * sizeof(int), nullptr, 0});
    } else {
        ways->push_back(names_of(row));
        for (int rank = 1; rank < world.size && rc == MPI_SUCCESS; rank++) {
            rc = mpi::recv(comm, Channel::p2p, rank, kRowTag, {row.data(), row.size() * sizeof(int), nullptr, 0});
            ways->push_back(names_of(row));
        }
    }
    mpi::detach(comm);
    return rc == MPI_SUCCESS;
}

}  // namespace

bool take_view(JobView* view) {
    if (mpi::start_job() != MPI_SUCCESS) return false;
    const mpi::World& world = mpi::world();
    view->launcher = mpi::engine.job->name();
    view->rank = world.rank;
    view->size = world.size;
    view->nodes = mpi::engine.task.ti_nhosts;
    view->crowded = mpi::engine.crowded;
    for (const procinfo& info : mpi::engine.infos) view->hosts.emplace_back(info.pi_host);
    view->protocols = protocols();
    view->parameters = parameters();
    const bool told = collect_ways(&view->ways);
    return mpi::leave_job() == MPI_SUCCESS && told;
}

}  // namespace viaduct::cmpiinfo
