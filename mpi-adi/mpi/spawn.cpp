// SPDX-License-Identifier: BSD-2-Clause
// MPI functions that start processes.
#include <algorithm>

#include "mpi-adi/engine/dynamic/spawn.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

// MPI_Comm_spawn's arguments, and each command's of MPI_Comm_spawn_multiple.
int command_of(const char* program, char* const* arguments, int processes, MPI_Info info, rte::Command* command) {
    if (!program || !*program || processes < 0) {
        return program && *program ? MPI_ERR_ARG : MPI_ERR_SPAWN;
    }
    command->program = program;
    command->processes = processes;
    for (; arguments && *arguments; ++arguments) {
        command->arguments.push_back(*arguments);
    }
    const Info* hints = info_of(info);
    if (!hints && info != MPI_INFO_NULL) {
        return MPI_ERR_INFO;
    }
    if (hints) {
        for (const auto& entry : hints->entries) {
            // All processes are started, or none: as many as were requested are always among those allowed.
            if (entry.first != "soft") {
                command->hints.push_back(entry);
            }
        }
    }
    return MPI_SUCCESS;
}

int commands_of(int count, char* const* programs, char** const* arguments, const int* processes, const MPI_Info* infos,
                std::vector<rte::Command>* commands) {
    if (count < 1 || !programs || !processes || !infos) {
        return count < 1 ? MPI_ERR_COUNT : MPI_ERR_ARG;
    }
    commands->resize(size_t(count));
    int all = 0;
    for (int i = 0; i < count; ++i) {
        if (int error = command_of(programs[i], arguments ? arguments[i] : nullptr, processes[i], infos[i],
                                   &(*commands)[size_t(i)])) {
            return error;
        }
        all += processes[i];
    }
    return all > 0 ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

int number_of(const std::vector<rte::Command>& commands) {
    int all = 0;
    for (const rte::Command& command : commands) {
        all += command.processes;
    }
    return all;
}

// Processes that do not have the requested number get codes for those that were started.
int spawn_for(Communicator& comm, int root, const std::vector<rte::Command>& commands, int refused, MPI_Comm* intercomm,
              int* codes) {
    Communicator* made = nullptr;
    int started = 0;
    const int error = spawn(comm, root, commands, refused, &started, &made);
    *intercomm = made ? made->handle : MPI_COMM_NULL;
    if (codes != MPI_ERRCODES_IGNORE) {
        const int known = comm.rank == root ? number_of(commands) : started;
        std::fill_n(codes, known, error);
    }
    return error;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Comm_get_parent, (MPI_Comm * parent)) {
    Call call("MPI_Comm_get_parent");
    VIADUCT_MPI_NEED(parent)
    const Communicator* found = parents();
    *parent = found ? found->handle : MPI_COMM_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_spawn, (const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
                         MPI_Comm* intercomm, int errcodes[])) {
    Communicator* members = comm_of(comm);
    Call call("MPI_Comm_spawn", members);
    VIADUCT_MPI_NEED(intercomm)
    *intercomm = MPI_COMM_NULL;
    if (!members || members->inter) {
        return call.result(MPI_ERR_COMM);
    }
    if (root < 0 || root >= members->size) {
        return call.result(MPI_ERR_ROOT);
    }
    std::vector<viaduct::rte::Command> commands;
    int refused = MPI_SUCCESS;
    if (members->rank == root) {
        char* const program = const_cast<char*>(command);
        refused = commands_of(1, &program, &argv, &maxprocs, &info, &commands);
    }
    return call.result(spawn_for(*members, root, commands, refused, intercomm, errcodes));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_spawn_multiple, (int count, char* commands[], char** argvs[], const int maxprocs[],
                                  const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm* intercomm,
                                  int errcodes[])) {
    Communicator* members = comm_of(comm);
    Call call("MPI_Comm_spawn_multiple", members);
    VIADUCT_MPI_NEED(intercomm)
    *intercomm = MPI_COMM_NULL;
    if (!members || members->inter) {
        return call.result(MPI_ERR_COMM);
    }
    if (root < 0 || root >= members->size) {
        return call.result(MPI_ERR_ROOT);
    }
    std::vector<viaduct::rte::Command> wanted;
    const int refused =
        members->rank == root ? commands_of(count, commands, argvs, maxprocs, infos, &wanted) : MPI_SUCCESS;
    return call.result(spawn_for(*members, root, wanted, refused, intercomm, errcodes));
} VIADUCT_MPI_CATCH(comm)
