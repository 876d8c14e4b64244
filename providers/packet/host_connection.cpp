// SPDX-License-Identifier: BSD-2-Clause
// The connection half of wire::Host (providers/wire/host.hpp): set-up, end, and counters of dropped and repeated
// frames. Engine::mutex is held; no lock of a VI is needed, as mark_broken is atomic.
#include <exception>
#include <string>
#include <utility>

#include "core/log/log.hpp"
#include "core/trace/probe.hpp"
#include "providers/packet/finding.hpp"
#include "providers/packet/nic.hpp"

namespace viaduct::packet {

using wire::Cookie;

namespace {

// The cookie of on_incoming() and on_request_refused() is a ConnectOp, that of every other call an Endpoint.
Endpoint& endpoint_of(Cookie cookie) { return *static_cast<Endpoint*>(cookie); }

}  // namespace

// ---- connecting

void Engine::on_incoming(Cookie listener, wire::IncomingId id, const EndAddress& remote, const ViTraits& traits) {
    auto& op = *static_cast<ConnectOp*>(listener);
    op.result.status = Status::ok;
    op.result.incoming = id;
    op.result.remote = remote;
    op.result.remote_traits = traits;
    op.decided = true;
    changed.notify_all();
}

// The thread that waits changes the filter, as this thread may be inside of the port. One wake-up for each wait.
void Engine::on_request_refused(Cookie listener) {
    auto& op = *static_cast<ConnectOp*>(listener);
    if (op.every || std::exchange(op.used_up, true)) return;
    changed.notify_all();
}

void Engine::on_connected(Cookie cookie, const ViTraits& remote) {
    Endpoint& ep = endpoint_of(cookie);
    if (ep.op == nullptr) return;
    ep.op->result.status = Status::ok;
    ep.op->result.remote_traits = remote;
    ep.op->decided = true;
    ep.receives.store(0, std::memory_order_relaxed);
    ep.found = ep.peers_cause = {};
    ep.bound.store(true, std::memory_order_release);
    port_->attend();
    changed.notify_all();
}

void Engine::on_failed(Cookie cookie, Status why) {
    Endpoint& ep = endpoint_of(cookie);
    ep.link = 0;
    if (ep.op == nullptr) return;
    ep.op->result.status = why;
    ep.op->decided = true;
    changed.notify_all();
}

// Logs the link's timers when a connection ends without a disconnect.
void Engine::log_end(const Endpoint& ep, wire::Ended why) {
    wire::LinkReport link;
    if (why == wire::Ended::by_peer || !log::enabled(log::Level::warn) || !node_->report(ep.link, &link))
        return;
    const int64_t now = this->now();
    const auto ms = [&](wire::Time since) { return static_cast<double>(now - since) / 1e6; };
    VIADUCT_LOG(warn, section_,
                "%s: a connection %s: the peer was last heard %.1f ms ago, work last progressed %.1f ms ago, "
                "silence counted for %.1f ms; %u operations open, %u frames in flight, round trip %.3f ms",
                name_.c_str(), wire::name_of(why), ms(link.received_at), ms(link.progressed), ms(link.awake),
                link.work_open, link.in_flight, static_cast<double>(link.round_trip) / 1e6);
}

wire::Finding Engine::finding(Cookie cookie) { return finding_of(endpoint_of(cookie).found); }

void Engine::on_finding(Cookie cookie, const wire::Finding& of_peer) {
    endpoint_of(cookie).peers_cause = cause_of(of_peer);
}

void Engine::on_ended(Cookie cookie, wire::Ended why) {
    Endpoint& ep = endpoint_of(cookie);
    log_end(ep, why);
    ep.link = 0;
    if (!ep.bound.load(std::memory_order_acquire)) return;  // disconnected here, or never connected: nothing to report
    BreakReason reason;  // by default VIP_ERROR_CONN_LOST, which is reported (spec/errors)
    switch (why) {
        case wire::Ended::refused_here:
        case wire::Ended::bad_source:
            reason = ep.refusal;
            break;
        case wire::Ended::refused_ours:
            // At Reliable Reception the descriptor has REMOTE_DESC or RDMA_PROT already (spec/reliability 6.2, 7): no
            // asynchronous error besides.
            reason.report = ep.vi->traits.reliability != VIP_SERVICE_RELIABLE_RECEPTION;
            break;
        case wire::Ended::by_peer:
            reason.cause.kind = CauseKind::disconnected;
            break;
        case wire::Ended::lost:
        case wire::Ended::gave_up:
            reason.cause.kind = CauseKind::no_answer;
            break;
        case wire::Ended::protocol:
            reason.cause.kind = CauseKind::protocol;
            break;
    }
    const bool peer_ended = why == wire::Ended::by_peer || why == wire::Ended::refused_ours || why == wire::Ended::lost;
    if (peer_ended && ep.peers_cause) {
        reason.cause = ep.peers_cause;
        reason.told_by_peer = true;
    }
    ep.vi->mark_broken(reason);
    broken_.push_back(ep.vi);
}

// ---- for statistics

void Engine::on_retransmitted(Cookie cookie) {
    ViCore& vi = *endpoint_of(cookie).vi;
    vi.stats.count(ViCount::retries);
    VIADUCT_PROBE1(sent_again, &vi);
}

void Engine::on_dropped(Cookie cookie) {
    ViCore& vi = *endpoint_of(cookie).vi;
    vi.stats.count(ViCount::drops);
    VIADUCT_PROBE1(not_used, &vi);
}

// Called for a frame that has come, in any call, so it throws nothing: if an allocation fails, the log lacks the line.
void Engine::on_other_version(const NicAddress& peer, uint8_t version) try {
    VIADUCT_LOG(warn, section_, "%s: %s speaks version %u of the wire format, this host version %u: no connection",
                name_.c_str(), port_->text_of(peer).c_str(), version, wire::kVersion);
} catch (const std::exception&) {
}

void Engine::on_auth_failure(const NicAddress& peer, wire::AuthFailure why) try {
    const char* const what = why == wire::AuthFailure::no_tag ? "does not authenticate, and a key is set here"
                             : why == wire::AuthFailure::no_key
                                 ? "authenticates, and no key is set here"
                                 : "authenticates with another key, or its frames are forged";
    VIADUCT_LOG(warn, section_, "%s: %s %s (%s.auth_key_file)", name_.c_str(), port_->text_of(peer).c_str(), what,
                section_);
} catch (const std::exception&) {
}

}  // namespace viaduct::packet
