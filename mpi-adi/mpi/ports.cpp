// SPDX-License-Identifier: BSD-2-Clause
// MPI functions by which jobs that were started apart find each other: ports, and sockets of the program.
#include <sys/socket.h>

#include <charconv>
#include <cstring>

#include "core/clock/limits.hpp"
#include "mpi-adi/engine/dynamic/meet.hpp"
#include "mpi-adi/engine/dynamic/port.hpp"
#include "mpi-adi/engine/dynamic/talk.hpp"
#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

// The roots' texts go through a socket that lives as long as the link.
void use_contact(RootLink* link, Contact contact) {
    link->secret = contact.secret;
    link->swap = [socket = std::make_shared<Fd>(std::move(contact.socket))](const std::string& mine,
                                                                            std::string* theirs) {
        return swap_texts(socket->get(), mine, theirs) ? MPI_SUCCESS : MPI_ERR_PORT;
    };
}

// What all processes of a collective call look at.
int check_root(const Communicator* comm, int root) {
    if (!comm || comm->inter) {
        return MPI_ERR_COMM;
    }
    return root >= 0 && root < comm->size ? MPI_SUCCESS : MPI_ERR_ROOT;
}

// How long a call waits for its accept: the program may say so (info key "timeout", seconds, as in MPICH).
std::chrono::nanoseconds limit_of(const Info* info) {
    const std::string* text = info ? info->find("timeout") : nullptr;
    int seconds = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), seconds).ec != std::errc() ||
        seconds <= 0) {
        return std::chrono::nanoseconds(limit_ns(TimeLimit::mpi_port_connect));
    }
    return std::chrono::seconds(seconds);
}

// The info object counts at the root alone, which tells all members when it is wrong.
int accept_at(Communicator& comm, const char* port, MPI_Info info, int root, Communicator** made) {
    return meet(
        comm, root,
        [=](RootLink* link) {
            if (const int wrong = wrong_info(info)) {
                return wrong;
            }
            Contact contact;
            const int error = port ? accept_call(port, &contact) : MPI_ERR_PORT;
            if (error == MPI_SUCCESS) {
                use_contact(link, std::move(contact));
            }
            return error;
        },
        true, made);
}

int connect_to(Communicator& comm, const char* port, MPI_Info info, int root, Communicator** made) {
    return meet(
        comm, root,
        [=](RootLink* link) {
            if (const int wrong = wrong_info(info)) {
                return wrong;
            }
            Contact contact;
            const int error = port ? call_port(port, limit_of(info_of(info)), &contact) : MPI_ERR_PORT;
            if (error == MPI_SUCCESS) {
                use_contact(link, std::move(contact));
            }
            return error;
        },
        false, made);
}

// The program's socket is used for the texts alone, and is the program's again afterwards.
int join_over(int socket, Communicator** made) {
    return meet(
        *self_comm(), 0,
        [socket](RootLink* link) {
            link->swap = [socket](const std::string& mine, std::string* theirs) {
                return swap_texts(socket, mine, theirs) ? MPI_SUCCESS : MPI_ERR_OTHER;
            };
            return MPI_SUCCESS;
        },
        false, made);
}

// `made` by reference: it is set by the argument before it.
int give_inter(int error, Communicator* const& made, MPI_Comm* handle) {
    *handle = error == MPI_SUCCESS ? made->handle : MPI_COMM_NULL;
    return error;
}

bool is_stream(int fd) {
    int type = 0;
    socklen_t length = sizeof type;
    return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Open_port, (MPI_Info info, char* port_name)) {
    Call call("MPI_Open_port");
    VIADUCT_MPI_NEED(port_name)
    if (!is_info_or_none(info)) {
        return call.result(MPI_ERR_INFO);
    }
    std::string name;
    const int error = open_port(&name);
    if (error == MPI_SUCCESS) {
        std::strcpy(port_name, name.c_str());
    }
    return call.result(error);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Close_port, (const char* port_name)) {
    Call call("MPI_Close_port");
    VIADUCT_MPI_NEED(port_name)
    return call.result(close_port(port_name));
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Comm_accept, (const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm)) {
    Communicator* members = comm_of(comm);
    Call call("MPI_Comm_accept", members);
    VIADUCT_MPI_NEED(newcomm)
    *newcomm = MPI_COMM_NULL;
    if (const int error = check_root(members, root)) {
        return call.result(error);
    }
    Communicator* made = nullptr;
    return call.result(give_inter(accept_at(*members, port_name, info, root, &made), made, newcomm));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_connect, (const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm)) {
    Communicator* members = comm_of(comm);
    Call call("MPI_Comm_connect", members);
    VIADUCT_MPI_NEED(newcomm)
    *newcomm = MPI_COMM_NULL;
    if (const int error = check_root(members, root)) {
        return call.result(error);
    }
    Communicator* made = nullptr;
    return call.result(give_inter(connect_to(*members, port_name, info, root, &made), made, newcomm));
} VIADUCT_MPI_CATCH(comm)

VIADUCT_MPI(Comm_join, (int fd, MPI_Comm* intercomm)) {
    Call call("MPI_Comm_join");
    VIADUCT_MPI_NEED(intercomm)
    *intercomm = MPI_COMM_NULL;
    if (!is_stream(fd) || !self_comm()) {
        return call.result(self_comm() ? MPI_ERR_ARG : MPI_ERR_OTHER);
    }
    Communicator* made = nullptr;
    return call.result(give_inter(join_over(fd, &made), made, intercomm));
} VIADUCT_MPI_CATCH()
