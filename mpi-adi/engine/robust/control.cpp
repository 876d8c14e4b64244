// SPDX-License-Identifier: BSD-2-Clause
// See control.hpp.
#include "mpi-adi/engine/robust/control.hpp"

#include <algorithm>
#include <new>

#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/robust/agreement.hpp"
#include "mpi-adi/engine/robust/revoke.hpp"
#include "mpi-adi/engine/robust/state.hpp"

namespace viaduct::mpi::robust {
namespace {

void handle(Communicator& by, int source, Control kind, const char* data, size_t bytes) {
    if (kind == Control::wake) return;
    Communicator& comm = by.around != nullptr ? *by.around : by;
    if (kind == Control::revoke)
        revoke(comm);
    else
        take_agreement(comm, Members(comm).index_of(&by == &comm && comm.inter, source), kind, data, bytes);
}

class ControlServer final : public Server {
public:
    bool take(Matcher& in, int source, int tag, const void* data, size_t bytes) override {
        handle(static_cast<Communicator&>(*in.owner()), source, Control(tag), static_cast<const char*>(data), bytes);
        return true;
    }
} server;

// One that its module holds is received first: senders that have been asked for envelopes only send all so.
class HeldControl final : public Watcher {
public:
    HeldControl(Communicator& comm, Unexpected* message)
        : comm_(comm), bytes_(size_t(message->um_env.ev_len) + 1) {
        comm_retain(comm_);
        Request* const receive = new_request(Request::Kind::receive);
        set_up_receive_of_bytes(*receive, comm_, Channel::control, message->um_env.ev_rank, message->um_env.ev_tag,
                                bytes_.data(), bytes_.size() - 1);
        receive->watcher = this;
        receive->r_flags |= MPIP_REQ_NOTIFY;
        take_unexpected(message, receive);
    }
    void done(Request* receive) override {
        if (receive->r_error == MPI_SUCCESS)
            handle(comm_, receive->r_rank, Control(receive->r_tag), bytes_.data(), size_t(receive->r_length));
        free_request(receive);
        comm_release(comm_);
        delete this;
    }

private:
    Communicator& comm_;
    std::vector<char> bytes_;
};

}  // namespace

void take_kept_control(Communicator& comm) {
    Matcher& matcher = *comm.matchers[unsigned(Channel::control)];
    while (Unexpected* const message = matcher.first_message()) {
        matcher.remove(message);
        if (message->um_buf == nullptr) {
            new HeldControl(comm, message);
            continue;
        }
        handle(comm, message->um_env.ev_rank, Control(message->um_env.ev_tag), message->um_buf,
               size_t(message->um_env.ev_len));
        free_unexpected(message);
    }
}

const Server* control_server() { return &server; }

void serve_control(Communicator& comm) {
    comm.matchers[unsigned(Channel::control)]->serve_by(&server);
    if (comm.matchers[unsigned(Channel::control)]->first_message() != nullptr) take_kept_control(comm);
}

void send_control(process_t& to, const mpip_comm& way, Control kind, const std::vector<char>& bytes) {
    if (is_lost(to)) return;
    mpip_comm now = way;
    if (to.p_proto->pt_fsend(&to, bytes.data(), bytes.size(), nullptr, int(kind), &now,
                             MPIP_MODE_STANDARD | MPIP_MODE_TRY) != MPIP_AGAIN)
        return;
    auto copy = std::make_unique_for_overwrite<char[]>(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), copy.get());
    Request* const request = new_request(Request::Kind::send);
    request->owned = std::move(copy);
    request->r_flags = MPIP_REQ_SEND;
    request->r_tag = int(kind);
    request->r_proc = &to;
    request->r_buf = request->owned.get();
    request->r_bytes = bytes.size();
    request->r_ctxt = way.c_sndctxt;
    request->r_rank = way.c_rank;
    request->r_mode = MPIP_MODE_STANDARD;
    request->r_type = nullptr;
    request->r_count = 0;
    request->r_id = request->r_peereq = 0;
    request->r_data = nullptr;
    request->r_comm = nullptr;
    detach_request(request);
    mpip_enqsend(&to, request);
    try {
        to.p_proto->pt_queuedsend(&to);
    } catch (const std::bad_alloc&) {
        end_job(MPI_ERR_NO_MEM, "a message is half sent and there is no memory for the rest");
    }
}

Members::Members(Communicator& comm) : comm_(comm) {
    if (!comm.inter) return;
    const auto& numbers = world().numbers;
    first_is_local_ = numbers[size_t(comm.local->world[0])] < numbers[size_t(comm.remote->world[0])];
}

int Members::index_of(bool remote, int rank) const {
    if (remote == first_is_local_) return rank + (remote ? comm_.size : comm_.remote_size);
    return rank;
}

Members::Place Members::place_of(int index) const {
    if (!comm_.inter) return {&comm_, index};
    const int first = first_is_local_ ? comm_.size : comm_.remote_size;
    const bool in_first = index < first;
    return {in_first == first_is_local_ ? static_cast<Comm*>(comm_.within) : &comm_, in_first ? index : index - first};
}

process_t& Members::process(int index) const {
    const auto [by, rank] = place_of(index);
    return *(by->robust != nullptr ? by->robust->members : by->peers)[rank];
}

bool Members::is_lost(int index) const { return robust::is_lost(process(index)); }

void Members::send(int index, Control kind, const std::vector<char>& bytes) const {
    send_control(process(index), place_of(index).by->channels[unsigned(Channel::control)], kind, bytes);
}

}  // namespace viaduct::mpi::robust
