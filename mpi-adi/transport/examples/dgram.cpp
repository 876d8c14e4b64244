// SPDX-License-Identifier: BSD-2-Clause
// A transport of one page, to write another from: docs/adi-writing-a-transport.md goes through it.
// Messages are frames of the protocol, a frame is one datagram between Unix sockets: these keep order,
// lose nothing, and refuse what the receiver has no room for. The kernel says which process sent a datagram.
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "mpi-adi/transport/adi/error.hpp"
#include "mpi-adi/transport/adi/host.hpp"
#include "mpi-adi/transport/protocol/entries.hpp"

namespace viaduct::dgram {

constexpr size_t kPiece = 60000;  // most payload of one datagram
constexpr unsigned kPassesBetweenTimers = 256;

struct Card {                // what a process publishes: below 128 bytes
    uint64_t network, pids;  // names of sockets and of processes mean the same where these are the same
    int32_t pid;
    uint32_t length;
    unsigned char name[16];  // sockaddr_un as the kernel made it
};

class Datagrams;

class Lane final : public protocol::Lane {
public:
    Lane(protocol::Peer& of, Datagrams& owner) : protocol::Lane(of), all(owner) {}
    ~Lane() override { ::close(pidfd); }
    bool put(const protocol::Frame& frame, const protocol::Payload& payload) override;
    bool put_eager(const void* data, size_t bytes, int tag, int rank, uint64_t context, int mode) {
        return protocol::put_eager_frame(*this, data, bytes, tag, rank, context, mode);
    }
    void cut() override;

    Datagrams& all;
    Card card = {};
    int pidfd = -1;  // readable when its process has ended
};

class Datagrams : public protocol::Protocol {
public:
    using LaneClass = Lane;

    int initialize() {
        fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const sockaddr_un any = {AF_UNIX, {}};  // a name without a file, made by the kernel
        if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&any), sizeof any.sun_family) != 0)
            return adi::fail(MPIP_ERR_OTHER, "there is no Unix socket: %s", std::strerror(errno));
        mpip_properties& told = table().pt_prop;
        told = {};
        told.mp_exclusivity = 10;
        told.mp_latency_ns = 5000;
        told.mp_bandwidth_mb = 2000;
        told.mp_eager_limit = told.mp_first_frag = told.mp_max_frag = kPiece;
        told.mp_min_frag = told.mp_cache_size = 256;
        return MPIP_SUCCESS;
    }

    const Card& card() {
        socklen_t length = sizeof own_.name;
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(own_.name), &length);
        own_.length = length;
        own_.network = adi::host_number("net");
        own_.pids = adi::host_number("pid");
        own_.pid = ::getpid();
        return own_;
    }

    bool reaches(const taskinfo_t* task, int rank) const {
        const Card theirs = card_of(task, rank);
        return rank != task->ti_index && theirs.network == own_.network && theirs.pids == own_.pids;
    }

    // A process that joins later may send at once, so all are known from the start.
    int connect(taskinfo_t* task) {
        peers_.resize(static_cast<size_t>(task->ti_nprocs));
        for (int rank = 0; rank < task->ti_nprocs; ++rank) {
            if (peer(static_cast<size_t>(rank)) != nullptr || rank == task->ti_index ||
                task->ti_procs[rank].pi_proto != number_)
                continue;
            protocol::Peer& added = add_peer(static_cast<size_t>(rank), task->ti_procs[rank].pi_proc);
            auto lane = std::make_unique<Lane>(added, *this);
            lane->card = card_of(task, rank);
            lane->pidfd = static_cast<int>(::syscall(SYS_pidfd_open, lane->card.pid, 0));
            lane->piece = kPiece;
            lanes_.push_back(lane.get());
            added.lane = std::move(lane);
            lane_ready(added);
        }
        return MPIP_SUCCESS;
    }
    int complete(const taskinfo_t*) { return MPIP_SUCCESS; }

    int progress() {
        int done = 0;
        while (done < 64 && take()) ++done;
        for (size_t i = 0; i < lanes_.size(); ++i) {  // a lost one takes itself out
            protocol::Peer& one = lanes_[i]->peer;
            if (one.blocked()) done += push(one);
        }
        if (done == 0 && ++idle_ % kPassesBetweenTimers == 0) wait_for_events(0);
        return done;
    }

    int block(unsigned timeout_us) {
        for (const Lane* lane : lanes_) {
            if (lane->peer.blocked()) return 0;  // free room is not signalled
        }
        wait_for_events(static_cast<int>(timeout_us / 1000));
        return 0;
    }

    void finalize() {
        lanes_.clear();
        drop_peers();
        ::close(fd_);
    }

private:
    friend class Lane;
    Card card_of(const taskinfo_t* task, int rank) const {  // environments lie at any address: a copy
        Card card = {};
        int size = 0;
        const void* found = mpip_environment(task, number_, rank, &size);
        if (found != nullptr && size == sizeof card) std::memcpy(&card, found, sizeof card);
        card.length = std::min<uint32_t>(card.length, sizeof card.name);
        return card;
    }

    // Takes one datagram. One that is not from the socket of a peer is dropped.
    bool take() {
        sockaddr_un from;
        socklen_t length = sizeof from;
        const ssize_t got = ::recvfrom(fd_, in_, sizeof in_, 0, reinterpret_cast<sockaddr*>(&from), &length);
        if (got < 0) return false;
        const auto sender = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane* lane) {
            return lane->card.length == length && std::memcmp(lane->card.name, &from, length) == 0;
        });
        if (sender == lanes_.end()) return true;
        protocol::Peer& one = (*sender)->peer;
        const auto bytes = static_cast<size_t>(got);
        protocol::Frame frame;
        std::memcpy(&frame, in_, sizeof frame);
        if (bytes < sizeof frame || frame.bytes != bytes - sizeof frame || !incoming(one, frame, in_ + sizeof frame))
            fail(one, "it sent an invalid frame");
        return true;
    }

    // Sleeps until something arrives or a process ends. What a process has sent before its end is still valid.
    void wait_for_events(int timeout_ms) {
        std::vector<pollfd> polls = {{fd_, POLLIN, 0}};
        const std::vector<Lane*> lanes = lanes_;
        for (const Lane* lane : lanes) polls.push_back({lane->pidfd, POLLIN, 0});
        if (::poll(polls.data(), polls.size(), timeout_ms) <= 0) return;
        for (size_t i = 0; i < lanes.size(); ++i) {
            if ((polls[i + 1].revents & POLLIN) == 0) continue;  // the program may have closed it
            while (take()) {
            }
            fail(lanes[i]->peer, "its process has ended");
        }
    }

    int fd_ = -1;
    Card own_ = {};
    std::vector<Lane*> lanes_;
    unsigned idle_ = 0;
    char in_[sizeof(protocol::Frame) + kPiece], out_[sizeof(protocol::Frame) + kPiece];
};

bool Lane::put(const protocol::Frame& frame, const protocol::Payload& payload) {
    std::memcpy(all.out_, &frame, sizeof frame);
    payload.copy(all.out_ + sizeof frame, frame.bytes);
    ++all.counters().mc_packets;
    return ::sendto(all.fd_, all.out_, sizeof frame + frame.bytes, MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(card.name), card.length) >= 0;
}

void Lane::cut() { std::erase(all.lanes_, this); }

Datagrams module;

}  // namespace viaduct::dgram

VIADUCT_PROTOCOL_ENTRIES(dgram, viaduct::dgram::module)

extern "C" {

int mpip_dgram_initconns(taskinfo_t* task, void** env) {
    const int number = viaduct::dgram::module.number();
    *env = task->ti_myenv[number] = const_cast<viaduct::dgram::Card*>(&viaduct::dgram::module.card());
    task->ti_myenvsize[number] = sizeof(viaduct::dgram::Card);
    return MPIP_SUCCESS;
}

int mpip_dgram_getevents(void**, unsigned*, unsigned*, unsigned* n) {
    *n = 0;  // no word in memory to sleep on: pt_block
    return MPIP_SUCCESS;
}

int mpip_dgram_getpolls(struct pollfd**, int* n, int* timeout) {
    *n = 0;  // nor descriptors alone, for an end has to be seen as well
    *timeout = -1;
    return MPIP_SUCCESS;
}
}
