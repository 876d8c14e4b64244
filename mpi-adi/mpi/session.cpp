// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on sessions (MPI 4.0), by which a program uses MPI without MPI_Init; docs/mpi.md has what holds for the
// job. There are two process sets, mpi://WORLD and mpi://SELF. Each function but MPI_Session_init holds the
// engine's lock (Critical).
#include <strings.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/process/never_destroyed.hpp"
#include "mpi-adi/engine/coll/coll.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/engine/make_comm.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/mpi/call.hpp"
#include "mpi-adi/mpi/job_life.hpp"

namespace viaduct::mpi {
namespace {

struct Session {
    MPI_Session handle = MPI_SESSION_NULL;
    Errhandler* errhandler = nullptr;
};

NeverDestroyed<ObjectTable<Session, HandleType::session>> sessions;

MPI_Session keep_session(Errhandler* handler) {
    const AnyTime tables;
    Session* made = sessions->keep(std::unique_ptr<Session>(new Session{MPI_SESSION_NULL, handler}));
    errhandler_retain(handler);
    return made->handle;
}

// Null when there is none with that handle.
std::unique_ptr<Session> remove_session(MPI_Session handle) {
    const AnyTime tables;
    return std::unique_ptr<Session>(sessions->remove(handle));
}

constexpr std::array<const char*, 2> kSets = {"mpi://WORLD", "mpi://SELF"};
constexpr std::array<const char*, 4> kLevels = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                                "MPI_THREAD_MULTIPLE"};
constexpr char kLevelKey[] = "thread_level";

// The error handler of a session, or of a communicator that does not exist yet. A function of the program gets
// `handle`.
struct Told {
    Errhandler* handler = nullptr;  // null: that of the world
    int handle = MPI_SESSION_NULL;
};

// Returns the code unless the handler ends the job.
int tell_to(const Told& to, int code, const char* function) {
    if (!to.handler) {
        return tell(nullptr, code, function);
    }
    if (to.handler->returns()) {
        return code;
    }
    if (to.handler->function) {
        int handle = to.handle;
        int told = code;
        to.handler->call(&handle, &told, function);
        return code;
    }
    end_job(code > 0 && code < 256 ? code : 1, "%s: %s", function, error_text(code).c_str());
}

// The same at the end of the MPI function.
int raise_on(Errhandler* handler, int handle, int code, const char* function) {
    if (code == MPI_SUCCESS) {
        return code;
    }
    static thread_local Told to;
    to = {handler, handle};
    return note_failure(
        [](void* object, int error, const char* name) { return tell_to(*static_cast<Told*>(object), error, name); },
        &to, nullptr, code, function);
}

int raise_on(Session* session, int code, const char* function) {
    return raise_on(session ? session->errhandler : nullptr, session ? session->handle : MPI_SESSION_NULL, code,
                    function);
}

// The thread level that the info object asks for; MPI_THREAD_MULTIPLE when it names none.
int wanted_level(const Info* info) {
    const std::string* name = info ? info->find(kLevelKey) : nullptr;
    auto found =
        std::find_if(kLevels.begin(), kLevels.end(), [&](const char* level) { return name && *name == level; });
    return found == kLevels.end() ? MPI_THREAD_MULTIPLE : int(found - kLevels.begin());
}

// The index of a process set, or -1. Upper and lower case are the same.
int set_of(const char* name) {
    if (!name) {
        return -1;
    }
    auto found = std::find_if(kSets.begin(), kSets.end(), [&](const char* set) { return strcasecmp(set, name) == 0; });
    return found == kSets.end() ? -1 : int(found - kSets.begin());
}

Group* group_of_set(int set) {
    if (set == 0) {
        group_retain(base_comm().local);
        return base_comm().local;
    }
    return new Group({world().rank}, world().rank);
}

// The tag by which the messages of overlapping calls are kept apart: from the string that the program gives each call.
int tag_of(const char* stringtag) { return int(std::hash<std::string_view>{}(stringtag) & kMaxTag); }

// Gives a new communicator its info hints and error handler.
void adopt(Communicator& made, const Info* info, Errhandler* errhandler) {
    if (info) {
        add_hints(*info, made.hints);
        robust::use_hint(*info, made);
    }
    errhandler_retain(errhandler);
    errhandler_release(made.errhandler);
    made.errhandler = errhandler;
}

// Sessions have the processes of this job alone.
bool is_of_this_job(const Group& group) {
    return std::all_of(group.world.begin(), group.world.end(), [](int process) { return process < world().size; });
}

// What a member finds wrong with its info object, to all of them: the same answer everywhere.
int agree_on_info(Communicator& within, MPI_Info info) {
    int refused = wrong_info(info);
    Schedule s(within);
    coll::allreduce(s, MPI_IN_PLACE, &refused, 1, *type_of(MPI_INT), *op_of(MPI_MAX));
    const int failed = s.run();
    return failed != MPI_SUCCESS ? failed : refused;
}

int create_from_group(Group* group, const char* stringtag, MPI_Info info, Errhandler* errhandler,
                      MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    if (!group) {
        return MPI_ERR_GROUP;
    }
    if (!stringtag || strnlen(stringtag, MPI_MAX_STRINGTAG_LEN) == MPI_MAX_STRINGTAG_LEN) {
        return MPI_ERR_ARG;
    }
    if (group->size() == 0) {
        return MPI_SUCCESS;
    }
    if (group->rank == MPI_UNDEFINED || !is_of_this_job(*group)) {
        return MPI_ERR_GROUP;
    }
    Communicator* made = nullptr;
    if (int error = comm_create_group(base_comm(), *group, tag_of(stringtag), wrong_info(info), &made)) {
        return error;
    }
    adopt(*made, info_of(info), errhandler);
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

// The two groups have no process in common. Each makes a communicator of its own, and their leaders connect the two. A
// process that gives an empty group on either side communicates with no other process and gets MPI_COMM_NULL.
int inter_from_groups(Group* local, int local_leader, Group* remote, int remote_leader, const char* stringtag,
                      MPI_Info info, Errhandler* errhandler, MPI_Comm* newintercomm) {
    *newintercomm = MPI_COMM_NULL;
    if ((local && local->size() == 0) || (local && remote && remote->size() == 0)) {
        return MPI_SUCCESS;
    }
    if (!local || local->rank == MPI_UNDEFINED || !is_of_this_job(*local)) {
        return MPI_ERR_GROUP;
    }
    if (!stringtag || strnlen(stringtag, MPI_MAX_STRINGTAG_LEN) == MPI_MAX_STRINGTAG_LEN) {
        return MPI_ERR_ARG;
    }
    if (local_leader < 0 || local_leader >= local->size()) {
        return MPI_ERR_RANK;
    }
    int peer = MPI_PROC_NULL;
    int refused = MPI_SUCCESS;
    if (local->rank == local_leader) {  // remote group and leader count at the local leader only
        if (!remote || !is_of_this_job(*remote)) {
            refused = MPI_ERR_GROUP;
        } else if (remote_leader < 0 || remote_leader >= remote->size()) {
            refused = MPI_ERR_RANK;
        } else {
            peer = remote->world[size_t(remote_leader)];
        }
    }
    Communicator* within = nullptr;
    if (int error = comm_create_group(base_comm(), *local, tag_of(stringtag), refused, &within)) {
        return error;
    }
    // The leader knows its peer here, so a wrong info object ends the call on both sides.
    refused = agree_on_info(*within, info);
    Communicator* made = nullptr;
    int error = intercomm_create(*within, local_leader, &base_comm(), peer, tag_of(stringtag), refused, &made);
    (void)comm_free(within);  // no attribute of it can refuse
    if (error) {
        return error;
    }
    adopt(*made, info_of(info), errhandler);
    *newintercomm = made->handle;
    return MPI_SUCCESS;
}

// The error handler of that handle; null when there is none, or when it is a function for another kind of object.
Errhandler* handler_for(MPI_Errhandler handle, ErrhandlerKind kind) {
    Errhandler* found = errhandler_of(handle);
    return found && (!found->function || found->kind == kind) ? found : nullptr;
}

int set_name(int n, int* pset_len, char* pset_name) {
    if (n < 0 || n >= int(kSets.size()) || !pset_len || *pset_len < 0 || (*pset_len > 0 && !pset_name)) {
        return MPI_ERR_ARG;
    }
    const std::string_view name = kSets[size_t(n)];
    if (*pset_len > 0) {
        const size_t room = std::min(name.size(), size_t(*pset_len) - 1);
        std::memcpy(pset_name, name.data(), room);
        pset_name[room] = '\0';
    }
    *pset_len = int(name.size()) + 1;
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session)) {
    if (!session) {
        return Call("MPI_Session_init").result(MPI_ERR_ARG);
    }
    *session = MPI_SESSION_NULL;
    Errhandler* handler = handler_for(errhandler, ErrhandlerKind::session);
    if (!handler) {
        return Call("MPI_Session_init").result(MPI_ERR_ARG);
    }
    if (wrong_info(info)) {
        return raise_on(handler, MPI_SESSION_NULL, MPI_ERR_INFO, "MPI_Session_init");
    }
    if (int error = enter_job(wanted_level(info_of(info)))) {
        return raise_on(handler, MPI_SESSION_NULL, error, "MPI_Session_init");
    }
    *session = keep_session(handler);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Session_finalize, (MPI_Session * session)) {
    Critical guard;
    const std::unique_ptr<Session> ending = session ? remove_session(*session) : nullptr;
    if (!ending) {
        return raise_on(nullptr, MPI_ERR_SESSION, "MPI_Session_finalize");
    }
    *session = MPI_SESSION_NULL;
    errhandler_release(ending->errhandler);
    return exit_job(Leaving::session);
} VIADUCT_MPI_CATCH()

// A function on a session: takes the lock, finds the session (`found`), runs the body, raises the error on the session.
#define VIADUCT_MPI_ASK_SESSION(name, parameters, ...)                                    \
    VIADUCT_MPI(name, parameters) {                                                       \
        Critical guard;                                                                   \
        Session* found = sessions->find(session);                                         \
        auto body = [&]() -> int __VA_ARGS__;                                             \
        return raise_on(found, found ? body() : MPI_ERR_SESSION, "MPI_" #name);           \
    } VIADUCT_MPI_CATCH(session)

VIADUCT_MPI_ASK_SESSION(Session_get_info, (MPI_Session session, MPI_Info* info_used), {
    if (!info_used) {
        return MPI_ERR_ARG;
    }
    Info* made = info_create();
    made->set(kLevelKey, kLevels[size_t(thread_level())]);
    *info_used = made->handle;
    return MPI_SUCCESS;
})

VIADUCT_MPI_ASK_SESSION(Session_get_num_psets, (MPI_Session session, MPI_Info info, int* npset_names), {
    if (wrong_info(info)) {
        return MPI_ERR_INFO;
    }
    if (!npset_names) {
        return MPI_ERR_ARG;
    }
    *npset_names = int(kSets.size());
    return MPI_SUCCESS;
})

VIADUCT_MPI_ASK_SESSION(Session_get_nth_pset,
                        (MPI_Session session, MPI_Info info, int n, int* pset_len, char* pset_name),
                        { return wrong_info(info) ? MPI_ERR_INFO : set_name(n, pset_len, pset_name); })

VIADUCT_MPI_ASK_SESSION(Session_get_pset_info, (MPI_Session session, const char* pset_name, MPI_Info* info), {
    const int set = set_of(pset_name);
    if (set < 0 || !info) {
        return MPI_ERR_ARG;
    }
    Info* made = info_create();
    made->set("mpi_size", std::to_string(set == 0 ? world().size : 1));
    *info = made->handle;
    return MPI_SUCCESS;
})

VIADUCT_MPI_ASK_SESSION(Group_from_session_pset, (MPI_Session session, const char* pset_name, MPI_Group* newgroup), {
    if (!newgroup) {
        return MPI_ERR_ARG;
    }
    const int set = set_of(pset_name);
    if (set < 0) {
        *newgroup = MPI_GROUP_NULL;
        return MPI_ERR_ARG;
    }
    *newgroup = group_publish(group_of_set(set));
    return MPI_SUCCESS;
})

VIADUCT_MPI_ASK_SESSION(Session_set_errhandler, (MPI_Session session, MPI_Errhandler errhandler), {
    Errhandler* handler = handler_for(errhandler, ErrhandlerKind::session);
    if (!handler) {
        return MPI_ERR_ARG;
    }
    errhandler_retain(handler);
    errhandler_release(found->errhandler);
    found->errhandler = handler;
    return MPI_SUCCESS;
})

VIADUCT_MPI_ASK_SESSION(Session_get_errhandler, (MPI_Session session, MPI_Errhandler* errhandler), {
    if (!errhandler) {
        return MPI_ERR_ARG;
    }
    errhandler_retain(found->errhandler);  // the program frees what it gets here
    *errhandler = found->errhandler->handle;
    return MPI_SUCCESS;
})

VIADUCT_MPI(Session_call_errhandler, (MPI_Session session, int errorcode)) {
    Critical guard;
    Session* found = sessions->find(session);
    if (!found) {
        return raise_on(nullptr, MPI_ERR_SESSION, "MPI_Session_call_errhandler");
    }
    if (errorcode != MPI_SUCCESS) {
        (void)tell_to({found->errhandler, found->handle}, errorcode, "MPI_Session_call_errhandler");
    }
    return MPI_SUCCESS;  // the handler has run: the call has succeeded
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Session_create_errhandler, (MPI_Session_errhandler_function * function, MPI_Errhandler* errhandler)) {
    Critical guard;
    if (missing(reinterpret_cast<void*>(function), static_cast<void*>(errhandler))) {
        return raise(nullptr, MPI_ERR_ARG, "MPI_Session_create_errhandler");
    }
    // Handles are ints, so a handler function of a session has the type of one of a communicator.
    *errhandler = errhandler_create(ErrhandlerKind::session, function);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_create_from_group, (MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                     MPI_Comm* newcomm)) {
    Critical guard;
    Errhandler* handler = handler_for(errhandler, ErrhandlerKind::comm);
    if (!handler || !newcomm) {
        return raise(nullptr, MPI_ERR_ARG, "MPI_Comm_create_from_group");
    }
    return raise_on(handler, MPI_COMM_NULL,
                    create_from_group(group_of(group), stringtag, info, handler, newcomm),
                    "MPI_Comm_create_from_group");
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Intercomm_create_from_groups, (MPI_Group local_group, int local_leader, MPI_Group remote_group,
                                           int remote_leader, const char* stringtag, MPI_Info info,
                                           MPI_Errhandler errhandler, MPI_Comm* newintercomm)) {
    Critical guard;
    Errhandler* handler = handler_for(errhandler, ErrhandlerKind::comm);
    if (!handler || !newintercomm) {
        return raise(nullptr, MPI_ERR_ARG, "MPI_Intercomm_create_from_groups");
    }
    return raise_on(handler, MPI_COMM_NULL,
                    inter_from_groups(group_of(local_group), local_leader, group_of(remote_group), remote_leader,
                                      stringtag, info, handler, newintercomm),
                    "MPI_Intercomm_create_from_groups");
} VIADUCT_MPI_CATCH()
