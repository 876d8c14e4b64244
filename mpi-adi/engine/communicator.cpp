// SPDX-License-Identifier: BSD-2-Clause
// The life of communicators: world and self, making, freeing, contexts, and the error handlers they carry.
#include "mpi-adi/engine/communicator.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/any_time.hpp"
#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/dynamic/processes.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/engine/robust/control.hpp"

namespace viaduct::mpi {
namespace {

NeverDestroyed<ObjectTable<Communicator, HandleType::comm>> comms;
NeverDestroyed<ObjectTable<Errhandler, HandleType::errhandler>> errhandlers;

Communicator* the_world = nullptr;
Communicator* the_self = nullptr;

// World, self, base, and what they derive use the numbers below; no process has the number 0.
constexpr uint64_t kWorldContext = 0;
constexpr uint64_t kSelfContext = 4;
constexpr uint64_t kBaseContext = 8;
uint32_t contexts_made = 3;

Errhandler* builtin_errhandler(MPI_Errhandler handle) {
    static std::array<Errhandler, 4> all = {
        {{MPI_ERRORS_ARE_FATAL}, {MPI_ERRORS_RETURN}, {kErrorsThrowExceptions}, {MPI_ERRORS_ABORT}}};
    for (Errhandler& one : all) {
        if (one.handle == handle) {
            return &one;
        }
    }
    return nullptr;
}

// Of communicators for which, and for whose parents, none was set: what MPI_COMM_WORLD has when the error is found, as
// in MPICH. Programs duplicate communicators first and set the world's handler afterwards.
Errhandler* unset_errhandler() {
    static Errhandler unset{MPI_ERRORS_ARE_FATAL};
    return &unset;
}

void fill(Communicator& comm, const Communicator* parent) {
    comm.rank = comm.local->rank;
    comm.size = comm.local->size();
    comm.remote_size = comm.remote->size();
    comm.processes.reserve(size_t(comm.remote_size));
    for (int rank : comm.remote->world) {
        comm.processes.push_back(world().processes[size_t(rank)]);
    }
    comm.peers = comm.processes.data();
    comm.errhandler = parent ? parent->errhandler : unset_errhandler();
    errhandler_retain(comm.errhandler);
    hold_processes(*comm.remote);
}

Communicator* make_builtin(MPI_Comm handle, const char* name, std::vector<int> ranks, uint64_t context) {
    auto* group = new Group(std::move(ranks), world().rank);
    Communicator* comm = make_intra(group, context, nullptr, true);
    comm->handle = handle;
    comm->name = name;
    return comm;
}

std::vector<int> all_ranks() {
    std::vector<int> all(size_t(world().size));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

}  // namespace

Communicator* comm_of(MPI_Comm handle) {
    if (handle == MPI_COMM_WORLD) {
        return the_world;
    }
    if (handle == MPI_COMM_SELF) {
        return the_self;
    }
    return comms->find(handle);
}

std::string name_of_context(uint64_t context) {
    std::string name;
    const auto take = [&](const Communicator& comm) {
        for (const uint64_t channel : kContextOf) {
            if ((comm.recv_context ^ channel) == context) {
                const std::string number = std::to_string(unsigned(comm.handle) & 0xfffff);
                name = comm.name.empty() ? "communicator " + number : comm.name;
            }
        }
    };
    for_each_comm(take);
    return name;
}

void for_each_comm(const std::function<void(Communicator&)>& each) {
    for (Communicator* comm : {the_world, the_self}) {
        if (comm) {
            each(*comm);
        }
    }
    comms->for_each(each);
}

Communicator* world_comm() { return the_world; }
Communicator* self_comm() { return the_self; }

Communicator& base_comm() {
    static Communicator* base = make_builtin(MPI_COMM_NULL, "all processes", all_ranks(), kBaseContext);
    return *base;
}

uint64_t new_context() {
    return (uint64_t(world().numbers[size_t(world().rank)]) << 32) | (uint64_t(contexts_made++) << 2);
}

uint32_t own_node() {
    const World& all = world();
    const auto same = std::find(all.nodes.begin(), all.nodes.end(), all.nodes[size_t(all.rank)]);
    return all.numbers[size_t(same - all.nodes.begin())];
}

Communicator* make_intra(Group* group, uint64_t context, const Communicator* parent, bool internal,
                         Communicator* around) {
    auto* comm = new Communicator();
    if (around) {
        comm->around = around;
        around->within = comm;
    }
    comm->local = comm->remote = group;
    group_retain(group);
    comm->send_context = comm->recv_context = context;
    fill(*comm, parent);
    if (!internal) {
        comm->handle = comms->add(comm);
    }
    attach(*comm);
    robust::serve_control(*comm);
    return comm;
}

Communicator* make_inter(Group* local, Group* remote, uint64_t recv_context, uint64_t send_context,
                         const Communicator* parent) {
    auto* comm = new Communicator();
    comm->local = local;
    comm->remote = remote;
    comm->inter = true;
    comm->send_context = send_context;
    comm->recv_context = recv_context;
    fill(*comm, parent);
    comm->handle = comms->add(comm);
    attach(*comm);
    group_retain(local);
    // Both halves would share a number if each took that of its own side plus two only when the sides are one process
    // set; they are disjoint.
    make_intra(local, recv_context + 2, comm, true, comm);
    robust::serve_control(*comm);
    return comm;
}

void add_hints(const Info& given, std::unique_ptr<Info>& hints) {
    for (const auto& [key, value] : given.entries) {
        if (key.starts_with("mpi_assert_")) {
            if (!hints) {
                hints = std::make_unique<Info>();
            }
            hints->set(key, value);
        }
    }
}

void comm_destroy(Comm& base) {
    auto& comm = static_cast<Communicator&>(base);
    detach(comm);
    if (comm.within) {
        comm_release(*comm.within);
    }
    let_processes_go(*comm.remote);
    group_release(comm.local);
    group_release(comm.remote);
    errhandler_release(comm.errhandler);
    delete &comm;
}

int comm_free(Communicator* comm) {
    if (int error = comm->attributes.clear(comm->handle)) {
        return error;
    }
    // The program's handle ends now; the object when the last pending operation does.
    comms->remove(comm->handle);
    comm->handle = MPI_COMM_NULL;
    comm_release(*comm);
    return MPI_SUCCESS;
}

int mpi_setup() {
    the_world = make_builtin(MPI_COMM_WORLD, "MPI_COMM_WORLD", all_ranks(), kWorldContext);
    the_self = make_builtin(MPI_COMM_SELF, "MPI_COMM_SELF", {world().rank}, kSelfContext);
    return MPI_SUCCESS;
}

int mpi_teardown(bool session_is_open) {
    // MPI 3.1, 8.7.1: first the attributes of MPI_COMM_SELF, the last one set first.
    for (Communicator* comm : {the_self, the_world}) {
        if (int error = comm->attributes.clear(comm->handle)) {
            return error;
        }
    }
    if (checking::on) {
        checking::at_end(session_is_open);
    }
    for (Communicator** comm : {&the_self, &the_world}) {
        Communicator* ending = *comm;
        *comm = nullptr;
        ending->handle = MPI_COMM_NULL;
        comm_release(*ending);
    }
    return MPI_SUCCESS;
}

Errhandler* errhandler_of(MPI_Errhandler handle) {
    Errhandler* found = builtin_errhandler(handle);
    return found ? found : errhandlers->find(handle);
}

MPI_Errhandler errhandler_create(ErrhandlerKind kind, MPI_Comm_errhandler_function* function) {
    const AnyTime tables;
    return errhandlers->keep(std::unique_ptr<Errhandler>(new Errhandler{MPI_ERRHANDLER_NULL, kind, function, 1}))
        ->handle;
}

void errhandler_retain(Errhandler* handler) {
    if (!handler->function) {
        return;
    }
    const AnyTime tables;
    ++handler->references;
}

void errhandler_release(Errhandler* handler) {
    if (!handler->function) {
        return;
    }
    const AnyTime tables;
    if (--handler->references == 0) {
        errhandlers->remove(handler->handle);
        delete handler;
    }
}

// Errors of calls without a communicator, window, file or session belong to MPI_COMM_SELF (MPI 4.0, 9.3). Before MPI
// 4.0 they belonged to MPI_COMM_WORLD, and a program that has set a handler there alone gets them there.
Communicator* comm_of_no_object() {
    const auto is_fatal = [](const Communicator* comm) { return comm->errhandler->handle == MPI_ERRORS_ARE_FATAL; };
    return the_self != nullptr && is_fatal(the_self) && !is_fatal(the_world) ? the_world : the_self;
}

int tell(Comm* base, int code, const char* function) {
    if (code == MPI_SUCCESS) [[likely]] {
        return code;
    }
    auto* comm = static_cast<Communicator*>(base);
    if (!comm) {
        comm = comm_of_no_object();
    } else if (comm->errhandler == unset_errhandler() && the_world->errhandler->handle != MPI_ERRORS_ARE_FATAL) {
        comm = the_world;
    }
    if (comm && comm->errhandler->returns()) {
        return code;
    }
    if (comm && comm->errhandler->function) {
        MPI_Comm handle = comm->handle;
        MPI_File file = comm->file;
        int told = code;
        Errhandler* handler = comm->errhandler;
        errhandler_retain(handler);
        handler->call(file != MPI_FILE_NULL ? reinterpret_cast<int*>(&file) : &handle, &told, function);
        // The layer for C++ asks the handler by itself about every code that it is given.
        const bool asked_twice = handler->proxy != nullptr;
        errhandler_release(handler);
        return asked_twice ? MPI_SUCCESS : told;  // the handler may have taken the error back
    }
    end_job(code > 0 && code < 256 ? code : 1, "%s: %s (%s %s)", function, error_text(code).c_str(),
            comm && comm->file != MPI_FILE_NULL ? "file" : "communicator",
            comm ? comm->name.c_str() : "none: MPI is not initialised, or is finalised");
}

int raise(Comm* comm, int code, const char* function) {
    return code <= MPI_SUCCESS  // see publish()
               ? code
               : note_failure([](void* object, int error, const char* name) {
                     return tell(static_cast<Comm*>(object), error, name);
                 }, comm, comm, code, function);
}

}  // namespace viaduct::mpi
