// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/connection.hpp"

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/text/code_names.hpp"
#include "vipl/attempt.hpp"
#include "vipl/sleeping_call.hpp"
#include "vipl/stats.hpp"
#include "vipl/status.hpp"
#include "vipl/thrown.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

// Reads an address of the program: any bytes, any alignment (spec/compat A1, A2). `argument`: its name in the call.
bool read_address(const Nic& nic, const char* argument, const VIP_NET_ADDRESS& from, EndAddress* to) {
    const uint32_t most = std::min(nic.info.max_discriminator, kMaxDiscriminator);
    if (from.HostAddressLen != kNicAddressBytes) {
        refuse(VIP_INVALID_PARAMETER, "copy LocalNicAddress of VipQueryNic, or ask VipNSGetHostByName",
               "HostAddressLen of %s is %u, it must be %u", argument, from.HostAddressLen, kNicAddressBytes);
        return false;
    }
    if (from.DiscriminatorLen > most) {
        refuse(VIP_INVALID_PARAMETER, "use a shorter discriminator; MaxDiscriminatorLen of VipQueryNic",
               "DiscriminatorLen of %s is %u, NIC %s takes %u at most", argument, from.DiscriminatorLen, nic.info.name,
               most);
        return false;
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(&from) + offsetof(VIP_NET_ADDRESS, HostAddress);
    std::memcpy(to->host.bytes, bytes, kNicAddressBytes);
    to->discriminator_len = from.DiscriminatorLen;
    std::memcpy(to->discriminator, bytes + kNicAddressBytes, from.DiscriminatorLen);
    return true;
}

// Writes what the address really has and not a byte more: buffers are sized for it (spec/compat A8).
void write_address(const EndAddress& from, VIP_NET_ADDRESS* to) {
    auto* bytes = reinterpret_cast<uint8_t*>(to);
    const uint16_t lengths[2] = {kNicAddressBytes, from.discriminator_len};
    std::memcpy(bytes, lengths, sizeof lengths);
    bytes += sizeof lengths;
    std::memcpy(bytes, from.host.bytes, kNicAddressBytes);
    std::memcpy(bytes + kNicAddressBytes, from.discriminator, from.discriminator_len);
}

void write_traits(const ViTraits& from, VIP_VI_ATTRIBUTES* to) {
    to->ReliabilityLevel = from.reliability;
    to->MaxTransferSize = from.max_transfer;
    to->QoS = nullptr;
    to->Ptag = nullptr;  // the other side's business
    to->EnableRdmaWrite = from.rdma_write != 0 ? VIP_TRUE : VIP_FALSE;
    to->EnableRdmaRead = from.rdma_read != 0 ? VIP_TRUE : VIP_FALSE;
}

VIP_RETURN refuse_connection(VIP_CONN_HANDLE handle) {
    return refuse_handle("ConnHandle", handle, HandleKind::connection);
}

bool is_mismatch(Status status) {
    return status == Status::mismatch_level || status == Status::mismatch_mtu || status == Status::mismatch_qos;
}

void refuse_mismatch(Status status, const ViTraits& mine, const ViTraits& other) {
    const bool level = status == Status::mismatch_level;
    const char* name = level ? "ReliabilityLevel" : status == Status::mismatch_mtu ? "MaxTransferSize" : "QoS";
    const uint64_t here = level ? mine.reliability : status == Status::mismatch_mtu ? mine.max_transfer : mine.qos;
    const uint64_t there = level ? other.reliability : status == Status::mismatch_mtu ? other.max_transfer : other.qos;
    refuse(level ? VIP_INVALID_RELIABILITY_LEVEL : VIP_INVALID_MTU,
           "give both VIs the same attribute; VipConnectWait tells that of the other end",
           "%s of this VI is %llu, that of the other end %llu", name, static_cast<unsigned long long>(here),
           static_cast<unsigned long long>(there));
}

// How an attempt to connect to that address has failed. Without memory for the text the answer stays what it is.
void refuse_attempt(Status status, const EndAddress& to) try {
    const std::string where = to == EndAddress() ? "the address of the request" : text_of(to);
    switch (status) {
        case Status::timeout:
        case Status::not_done:
            refuse(VIP_TIMEOUT, "VipConnectWait at the other end first, then VipConnectAccept; a longer Timeout",
                   "%s did not accept in time", where.c_str());
            return;
        case Status::rejected:
            refuse(VIP_REJECT, "the log of the other program says why", "the program at %s has rejected the request",
                   where.c_str());
            return;
        case Status::no_match:
        case Status::unknown_name:
            refuse(
                VIP_NO_MATCH,
                "start the other end first, or try again; compare host address and discriminator with what it waits at",
                "no program waits at %s", where.c_str());
            return;
        case Status::closed:
        case Status::invalid_state:
            refuse(VIP_INVALID_STATE, "", "VipDisconnect has ended the attempt");
            return;
        default:
            return;
    }
} catch (const std::exception&) {
}

void refuse_late_accept(const EndAddress& requester) try {
    refuse(VIP_TIMEOUT, "let the requester wait longer in VipConnectRequest, and accept at once",
           "the requester at %s does not wait any more", text_of(requester).c_str());
} catch (const std::exception&) {
}

void refuse_wait(const Nic& nic, const EndAddress& address) try {
    refuse(VIP_TIMEOUT, "start the requesting end with this address; vipstat shows what its calls were refused for",
           "no request came to %s of NIC %s", text_of(address).c_str(), nic.info.name);
} catch (const std::exception&) {
}

VIP_RETURN keep_request(Nic& nic, const EndAddress& local, const ConnectResult& found, VIP_CONN_HANDLE* out) try {
    const std::lock_guard lock(nic.mutex);
    nic.connections.reserve(nic.connections.size() + 1);  // memory runs short before anything has changed
    Connection* connection = nic.library->connections.take();
    if (connection == nullptr) return refuse_no_memory();
    const uintptr_t handle = handle_table.insert(HandleKind::connection, connection);
    if (handle == 0) {
        nic.library->connections.give_back(connection);
        return refuse_no_memory();
    }
    connection->nic = &nic;
    connection->incoming = found.incoming;
    connection->remote_traits = found.remote_traits;
    connection->local = local;
    connection->remote = found.remote;
    connection->taken = false;
    nic.connections.push_back(connection);
    connection->handle.store(handle);
    *out = reinterpret_cast<VIP_CONN_HANDLE>(handle);
    return VIP_SUCCESS;
} catch (const std::exception&) {
    return refuse_no_memory();
}

Connection* find_connection(VIP_CONN_HANDLE handle) {
    return static_cast<Connection*>(handle_table.find(handle, HandleKind::connection));
}

// One Accept or Reject at a time; false when the handle is dead or in use.
bool take_connection(Nic& nic, Connection& connection, VIP_CONN_HANDLE handle) {
    const std::lock_guard lock(nic.mutex);
    if (connection.handle.load() != reinterpret_cast<uintptr_t>(handle) || connection.taken) return false;
    connection.taken = true;
    return true;
}

void put_connection_back(Nic& nic, Connection& connection) {
    const std::lock_guard lock(nic.mutex);
    connection.taken = false;
}

void end_connection(Nic& nic, Connection& connection) {
    const std::lock_guard lock(nic.mutex);
    const auto handle = connection.handle.exchange(0);
    if (handle == 0) return;  // the NIC was closed meanwhile
    handle_table.remove(reinterpret_cast<void*>(handle));
    nic.connections.erase(std::find(nic.connections.begin(), nic.connections.end(), &connection));
    nic.library->connections.give_back(&connection);
}

}  // namespace

namespace {

Status turn_away(Nic& nic, uint64_t incoming) {
    return in_short_memory([&] { return nic.ops->reject(nic.context, incoming); });
}

}  // namespace

void kill_connections(Nic& nic) {
    const std::lock_guard lock(nic.mutex);
    bool answers = true;  // an agent that stands still is told once
    for (Connection*& connection : nic.connections) {
        if (connection->taken) continue;  // by the call that a signal handler has interrupted; it ends it
        // The provider may go on for other handles of the NIC: without this the requester would go on waiting.
        if (answers) answers = turn_away(nic, connection->incoming) != Status::timeout;
        handle_table.remove(reinterpret_cast<void*>(connection->handle.exchange(0)));
        nic.library->connections.give_back(std::exchange(connection, nullptr));
    }
    std::erase(nic.connections, nullptr);
}

VIP_RETURN connect_wait(Nic& nic, const VIP_NET_ADDRESS& local, Deadline deadline, VIP_NET_ADDRESS* remote,
                        VIP_VI_ATTRIBUTES* attributes, VIP_CONN_HANDLE* out) {
    EndAddress address;
    if (!read_address(nic, "LocalAddr", local, &address)) return VIP_INVALID_PARAMETER;
    const SleepingCall here(nic);
    {
        const std::lock_guard lock(nic.mutex);
        if (nic.connections.size() >= kMaxConnectionHandles)
            return refuse(VIP_ERROR_RESOURCE, "VipConnectAccept or VipConnectReject each request",
                          "%u requests of this NIC handle wait to be accepted or rejected", kMaxConnectionHandles);
    }
    ConnectOp* op = nullptr;
    const Status begun = nic.ops->listen(nic.context, address, deadline, &op);
    if (begun != Status::ok) return to_return(CallKind::connect_wait, begun);

    // The handle is looked at between slices: VipCloseNic ends the wait.
    const auto open = [&nic] { return nic.handle.load() != 0; };
    ConnectResult result;
    // connect_finish says how it ended, but not that memory was short.
    const Status waited = in_short_memory([&] { return await_in_slices(nic, op, deadline, open, &result); });
    Status ended = in_short_memory([&] { return nic.ops->connect_finish(op, &result); });
    if (ended != Status::ok && waited == Status::out_of_resources) ended = waited;
    if (ended == Status::ok) {
        const VIP_RETURN kept = open() ? keep_request(nic, address, result, out) : VIP_INVALID_PARAMETER;
        if (kept != VIP_SUCCESS) {
            (void)turn_away(nic, result.incoming);  // as in connect_reject
            return kept;
        }
        write_address(result.remote, remote);
        write_traits(result.remote_traits, attributes);
        return VIP_SUCCESS;
    }
    if (!open()) return refuse(VIP_INVALID_PARAMETER, "", "the NIC was closed by another thread");
    if (ended == Status::timeout || ended == Status::not_done) {
        refuse_wait(nic, address);
        return VIP_TIMEOUT;
    }
    return to_return(CallKind::connect_wait, ended);
}

VIP_RETURN connect_accept(VIP_CONN_HANDLE connection_handle, VIP_VI_HANDLE vi_handle) {
    Connection* connection = find_connection(connection_handle);
    Vi* vi = find_vi(vi_handle);
    if (connection == nullptr) return refuse_connection(connection_handle);
    if (vi == nullptr) return refuse_vi(vi_handle);
    const NicPin pin(connection->nic, connection->handle, connection_handle);
    if (!pin) return refuse_connection(connection_handle);
    if (vi->nic != connection->nic)
        return refuse(VIP_INVALID_PARAMETER, "create the VI on the NIC handle that VipConnectWait was called with",
                      "the VI belongs to another NIC handle than the request");
    Nic& nic = *pin;
    const SleepingCall here(nic, vi);
    if (!take_connection(nic, *connection, connection_handle)) return refuse_connection(connection_handle);

    // A mismatch is not reported to the requester; the handle stays (spec/calls 4.3).
    VIP_RETURN answer = begin_attempt(*vi, vi_handle, false);
    if (answer == VIP_SUCCESS) {
        const Status fits = compare_traits(vi->core.traits, connection->remote_traits);
        if (fits != Status::ok) {
            refuse_mismatch(fits, vi->core.traits, connection->remote_traits);
            answer = to_return(CallKind::accept, conclude_attempt(*vi, fits));
        }
    }
    if (answer != VIP_SUCCESS) {
        put_connection_back(nic, *connection);
        return answer;
    }

    ConnectOp* op = nullptr;
    const Deadline deadline = now_ns() + limit_ns(TimeLimit::accept);
    Status status = in_short_memory([&] {
        show_ends(*vi, connection->local, connection->remote);
        return nic.ops->accept(nic.context, connection->incoming, vi->core, vi->core.traits, &op);
    });
    const bool nothing_sent = status == Status::out_of_resources;  // the request still waits (spec/calls 4.3)
    if (status == Status::ok) status = run_attempt(*vi, op, deadline, nullptr);
    answer = to_return(CallKind::accept, conclude_attempt(*vi, status));
    const EndAddress requester = connection->remote;
    nothing_sent ? put_connection_back(nic, *connection) : end_connection(nic, *connection);
    if (answer == VIP_TIMEOUT) refuse_late_accept(requester);
    return answer;
}

VIP_RETURN connect_reject(VIP_CONN_HANDLE connection_handle) {
    Connection* connection = find_connection(connection_handle);
    if (connection == nullptr) return refuse_connection(connection_handle);
    const NicPin pin(connection->nic, connection->handle, connection_handle);
    if (!pin || !take_connection(*pin, *connection, connection_handle)) return refuse_connection(connection_handle);
    // Whether the requester still waits makes no difference (spec/calls 4.3).
    (void)turn_away(*pin, connection->incoming);
    end_connection(*pin, *connection);
    return VIP_SUCCESS;
}

VIP_RETURN connect_request(Vi& vi, VIP_VI_HANDLE handle, const VIP_NET_ADDRESS& local,
                           const VIP_NET_ADDRESS& remote, Deadline deadline, VIP_VI_ATTRIBUTES* attributes) {
    const NicPin pin(vi.nic, vi.handle, handle);
    if (!pin) return refuse_vi(handle);
    Nic& nic = *pin;
    const SleepingCall here(nic, &vi);
    EndAddress from, to;
    if (!read_address(nic, "LocalAddr", local, &from) || !read_address(nic, "RemoteAddr", remote, &to))
        return VIP_INVALID_PARAMETER;
    const VIP_RETURN begun = begin_attempt(vi, handle, false);
    if (begun != VIP_SUCCESS) return begun;

    ConnectOp* op = nullptr;
    ConnectResult result;
    Status status = in_short_memory([&] {
        show_ends(vi, from, to);
        return nic.ops->request(nic.context, vi.core, from, to, vi.core.traits, deadline, &op);
    });
    if (status == Status::ok) status = run_attempt(vi, op, agent_deadline(deadline), &result);
    status = conclude_attempt(vi, status);
    if (!vi.is(handle)) return refuse_vi(handle);
    if (status == Status::ok) write_traits(result.remote_traits, attributes);
    if (status != Status::ok) refuse_attempt(status, to);
    return to_return(CallKind::request, status);
}

VIP_RETURN peer_request(Vi& vi, VIP_VI_HANDLE handle, const VIP_NET_ADDRESS& local,
                        const VIP_NET_ADDRESS& remote, Deadline deadline) {
    const NicPin pin(vi.nic, vi.handle, handle);
    if (!pin) return refuse_vi(handle);
    Nic& nic = *pin;
    EndAddress from, to;
    if (!read_address(nic, "LocalAddr", local, &from) || !read_address(nic, "RemoteAddr", remote, &to))
        return VIP_INVALID_PARAMETER;
    const VIP_RETURN begun = begin_attempt(vi, handle, true);
    if (begun != VIP_SUCCESS) return begun;
    ConnectOp* op = nullptr;
    const Status status = in_short_memory([&] {
        show_ends(vi, from, to);
        return nic.ops->peer_request(nic.context, vi.core, from, to, vi.core.traits, deadline, &op);
    });
    if (status != Status::ok) {
        (void)conclude_attempt(vi, status);  // why the request failed is told, not what ended it meanwhile
        return to_return(CallKind::create, status);
    }
    vi.attempt.deadline = deadline;  // ours alone until the attempt is left
    leave_attempt(vi, op);
    return VIP_SUCCESS;
}

VIP_RETURN peer_result(Vi& vi, VIP_VI_HANDLE handle, bool wait, VIP_VI_ATTRIBUTES* attributes) {
    const NicPin pin(vi.nic, vi.handle, handle);
    if (!pin) return refuse_vi(handle);
    const SleepingCall here(*pin, &vi);
    ConnectOp* op = nullptr;
    const Status resumed = resume_attempt(vi, wait, &op);
    if (!vi.is(handle)) return refuse_vi(handle);
    if (resumed == Status::not_done) return VIP_NOT_DONE;  // another thread is at it
    if (resumed != Status::ok)
        return refuse(VIP_INVALID_STATE, "VipConnectPeerRequest first; its result is told once",
                      "no peer request of the VI is under way; the VI is %s", name_of_state(vi.state()));

    ConnectResult result;
    // The request's own timeout ends the wait. A call that only polls waits for no other thread, and goes on until
    // the agent has answered: it may have joined both ends at the last moment, and have had no processor since.
    const Deadline until = wait ? agent_deadline(vi.attempt.deadline) : answer_due(vi.attempt.deadline);
    const auto wanted = [&vi] { return !vi.attempt.given_up.load(); };
    const auto look = [&] {
        try {
            return await_in_slices(*pin, op, wait ? until : now_ns(), wanted, &result);
        } catch (const std::exception&) {
            return Status::not_done;  // nothing is known of the attempt, which goes on
        }
    };
    Status open = look();
    for (constexpr timespec kPause{0, 10'000'000}; wait && open == Status::not_done && wanted() && now_ns() < until;) {
        ::nanosleep(&kPause, nullptr);
        open = look();
    }
    if (open == Status::not_done && wanted() && now_ns() < until) {
        leave_attempt(vi, op);
        return VIP_NOT_DONE;
    }
    const auto finish = [&] {
        try {
            return pin->ops->connect_finish(op, &result);
        } catch (const std::exception&) {
            return Status::timeout;  // of one that is decided nothing has to be said
        }
    };
    const Status ended = conclude_attempt(vi, finish());
    if (!vi.is(handle)) return refuse_vi(handle);
    if (ended == Status::ok) {
        write_traits(result.remote_traits, attributes);
        return VIP_SUCCESS;
    }
    if (is_mismatch(ended))
        refuse_mismatch(ended, vi.core.traits, result.remote_traits);
    else
        refuse_attempt(ended, EndAddress());
    return to_return(CallKind::peer, ended);
}

}  // namespace viaduct::vipl
