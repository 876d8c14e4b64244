// SPDX-License-Identifier: BSD-2-Clause
// Sockets as a rail: the transport of tcp, with its own card. A poll of it is a system call, so it is polled less often
// than the NICs.
#include "mpi-adi/transport/multirail/rail.hpp"
#include "mpi-adi/transport/tcp/tcp.hpp"

namespace viaduct::multirail {

namespace {

constexpr uint32_t kSockets = 0x706374;  // "tcp"
constexpr unsigned kPassesBetweenTimers = 16;

class TcpRail final : public Rail {
public:
    const std::string& name() const override { return name_; }
    std::string device() const override { return name_; }
    void describe(const taskinfo_t*, Card* card, size_t at) override { card->rail[at].network = kSockets; }
    bool reaches(const taskinfo_t* task, int rank, const Card&, const Card& theirs, size_t at) const override {
        return at < theirs.rails && theirs.rail[at].network == kSockets && tcp_.reaches(task, rank);
    }
    int set_up(taskinfo_t*, int) override { return MPIP_SUCCESS; }
    protocol::Peer& make_lane(const taskinfo_t* task, const Card&, size_t, int rank, process_t* proc,
                              protocol::UpperLayer& upper) override {
        return tcp_.make_lane(task, rank, proc, &upper);
    }
    void connect(protocol::Peer& peer) override {
        if (peer.lost()) tcp_.renew(peer);
        peer.lane->start_connecting();
    }
    int progress() override {
        if (!busy_ && ++passes_ % kPassesBetweenTimers != 0) return 0;
        const int done = tcp_.progress();
        busy_ = done != 0;
        return done;
    }
    size_t whole_limit() const override { return tcp_.eager_limit(); }
    void finalize() override { tcp_.drop_rail_lanes(); }

private:
    std::string name_ = "tcp";
    tcp::Tcp& tcp_ = *tcp::tcp_module;
    unsigned passes_ = 0;
    bool busy_ = false;
};

}  // namespace

std::unique_ptr<Rail> open_tcp_rail() { return std::make_unique<TcpRail>(); }

}  // namespace viaduct::multirail
