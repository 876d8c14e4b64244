// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/dynamic/spawn.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/clock/limits.hpp"
#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/dynamic/meet.hpp"
#include "mpi-adi/engine/dynamic/port.hpp"
#include "mpi-adi/engine/dynamic/talk.hpp"
#include "mpi-adi/engine/engine.hpp"

namespace viaduct::mpi {
namespace {

MPI_Comm parents_handle = MPI_COMM_NULL;

const std::string* hint_of(const rte::Command& command, std::string_view key) {
    for (const auto& [name, value] : command.hints)
        if (name == key) return &value;
    return nullptr;
}

bool is_program(const std::string& path) {
    struct stat found;
    return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

bool is_in_path(const std::string& path, const std::string& program) {
    for (size_t at = 0; at <= path.size();) {
        const size_t end = std::min(path.find(':', at), path.size());
        if (is_program(path.substr(at, end - at) + "/" + program)) return true;
        at = end + 1;
    }
    return false;
}

// A launcher ends the whole job when a program cannot be started, so this process does not ask for a program that is
// not there. On other hosts only the launcher can tell.
bool may_be_started(const rte::Command& command) {
    if (engine.task.ti_nhosts > 1 || hint_of(command, "host") || hint_of(command, "hosts") ||
        hint_of(command, "hostfile"))
        return true;
    const std::string* const folder = hint_of(command, "wdir");
    const std::string* const path = hint_of(command, "path");
    std::string base = folder ? *folder : ".";
    if (path) return is_in_path(*path, command.program);
    if (command.program.starts_with("/")) return is_program(command.program);
    if (command.program.find('/') != std::string::npos) return is_program(base + "/" + command.program);
    const char* const searched = std::getenv("PATH");
    return is_program(base + "/" + command.program) || (searched && is_in_path(searched, command.program));
}

// A name without a folder means the one in the working folder where there is one, as programs of the field expect.
rte::Command as_launcher_wants_it(rte::Command command) {
    const bool plain = command.program.find('/') == std::string::npos;
    if (plain && !hint_of(command, "path") && !hint_of(command, "wdir") && is_program("./" + command.program))
        command.program = "./" + command.program;
    return command;
}

int start_by_launcher(const std::vector<rte::Command>& commands, std::string* port) {
    std::vector<rte::Command> wanted;
    for (const rte::Command& command : commands) {
        if (!may_be_started(command)) return MPI_ERR_SPAWN;
        wanted.push_back(as_launcher_wants_it(command));
    }
    if (const int error = open_port(port)) return error;
    return engine.job->spawn(wanted, *port) ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

void use_contact_of(RootLink* link, Contact contact) {
    link->secret = contact.secret;
    link->swap = [socket = std::make_shared<Fd>(std::move(contact.socket))](const std::string& mine,
                                                                            std::string* theirs) {
        return swap_texts(socket->get(), mine, theirs) ? MPI_SUCCESS : MPI_ERR_SPAWN;
    };
}

}  // namespace

int spawn(Communicator& comm, int root, const std::vector<rte::Command>& commands, int refused, int* started,
          Communicator** made) {
    std::string port;
    const int error = meet(
        comm, root,
        [&](RootLink* link) {
            if (refused != MPI_SUCCESS) return refused;
            if (const int failed = start_by_launcher(commands, &port)) return failed;
            Contact contact;
            if (accept_call(port, &contact) != MPI_SUCCESS) return MPI_ERR_SPAWN;
            use_contact_of(link, std::move(contact));
            return MPI_SUCCESS;
        },
        false, made);
    if (!port.empty()) close_port(port);
    *started = error == MPI_SUCCESS ? (*made)->remote_size : 0;
    return error;
}

void meet_parents() {
    const auto port = engine.job->parent_port();
    if (!port) return;
    Communicator* made = nullptr;
    const int error = meet(
        *world_comm(), 0,
        [&](RootLink* link) {
            Contact contact;
            if (const int failed = call_port(*port, std::chrono::nanoseconds(limit_ns(TimeLimit::mpi_spawn)), &contact))
                return failed;
            use_contact_of(link, std::move(contact));
            return MPI_SUCCESS;
        },
        false, &made);
    if (error != MPI_SUCCESS) end_job(error, "the processes that have started this job cannot be reached");
    made->name = "MPI_COMM_PARENT";
    parents_handle = made->handle;
}

Communicator* parents() { return comm_of(parents_handle); }

}  // namespace viaduct::mpi
