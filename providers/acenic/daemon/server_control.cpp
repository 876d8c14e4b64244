// SPDX-License-Identifier: BSD-2-Clause
// Applications that connect and leave; nothing here is on the path of a frame.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/acenic/daemon/server.hpp"

namespace viaduct::acenic {

namespace {

constexpr uint32_t kSendsPerRound = 32;              // of one host, so that none keeps the others waiting
constexpr uint32_t kFewestSends = 2;
constexpr int kLastRounds = 32;  // a send ring's worth of frames
constexpr uint64_t kMostSegment = uint64_t{256} << 20;
constexpr const char* kNoDescriptor = "the engine process has no descriptor left";
constexpr const char* kSeeLimit = "see ulimit -n";

// A plan from elsewhere: numbers that parse_fault_plan could have made.
bool sane(const FaultPlan& p) {
    for (const double chance : {p.drop, p.corrupt, p.duplicate, p.reorder})
        if (!(chance >= 0 && chance <= 1)) return false;
    return p.delay_us <= 10'000'000 && p.flap_ms <= 3'600'000;
}

Welcome refusal(Status status, const std::string& why, const std::string& cure) {
    Welcome w;
    w.status = static_cast<int32_t>(status);
    put_text(w.why, why);
    put_text(w.cure, cure);
    return w;
}

}  // namespace

void Server::look_at_sockets(int timeout_us) {
    epoll_event events[64];
    const timespec t{timeout_us / 1'000'000, timeout_us % 1'000'000 * 1000L};
    const int n = ::epoll_pwait2(epoll_.get(), events, 64, &t, nullptr);
    sockets_at_ = now_ns();
    bool callers = false;
    for (int i = 0; i < n; ++i) {
        void* subject = events[i].data.ptr;
        if (subject == nullptr) continue;  // the port: looked at anyway
        if (subject == this) {
            callers = true;
        } else {
            take_messages(*static_cast<Session*>(subject));
        }
    }
    if (callers) admission_.accept(*this);  // sessions may end by that, so it comes after the events of sessions
    for (const auto& s : sessions_)
        if (s->stage != Session::Stage::running && admission_.is_late(*s, sockets_at_)) s->over = true;
    close_over();
    if (closers_.busy()) closers_.look(sockets_at_);
    admission_.look(sockets_at_);
}

// Whether the files can be closed without waiting: a file that is no memory file may take long, and no application
// sends one. False: `files` are given away.
bool Server::are_harmless(const Session& s, std::vector<Fd>& files) {
    if (std::all_of(files.begin(), files.end(), is_memory_or_event)) return true;
    closers_.close(s.user, std::move(files));
    return false;
}

void Server::evict(uint64_t number) {
    Session& s =
        **std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& other) { return other->number == number; });
    take_messages(s);
    if (s.stage != Session::Stage::running) s.over = true;
    close_over();
}

// A user that shares the port with others has one round for all its programs.
void Server::share_rounds() {
    std::map<uid_t, uint32_t> running;
    for (const auto& s : sessions_)
        if (s->stage == Session::Stage::running) ++running[s->user];
    for (const auto& s : sessions_)
        if (s->stage == Session::Stage::running)
            s->sends = running.size() == 1 ? kSendsPerRound : std::max(kSendsPerRound / running[s->user], kFewestSends);
}

bool Server::enter(daemon::Program& p) {
    auto s = std::make_unique<Session>(std::move(p), memory_);
    if (!admission_.watch(*s, s.get())) {
        p = std::move(*s);
        return false;
    }
    sessions_.push_back(std::move(s));
    return true;
}

void Server::take_messages(Session& s) {
    if (s.over || stop_ != 0) return;  // an application without an answer looks for the next engine process
    if (pollfd p{s.process.get(), POLLIN, 0}; s.process.valid() && ::poll(&p, 1, 0) > 0) {
        s.over = true;  // that process has ended, though another one may hold its socket
        return;
    }
    // A user whose files wait to be closed brings no more of them here, the segment of a program neither.
    if (closers_.must_stay(s.user, s.socket.get())) {
        s.over = true;
        return;
    }
    switch (s.stage) {
        case Session::Stage::greeting:
            return on_hello(s);
        case Session::Stage::attaching:
            return on_attach(s);
        case Session::Stage::running: {
            std::vector<Fd> files;
            if (!take_looks(s.socket.get(), &files) || !files.empty()) s.over = true;
            closers_.close(s.user, std::move(files));
        }
    }
}

void Server::set_faults(Session& s, uint32_t link, const FaultPlan& plan) {
    if (steering_.slot_of(link) != s.slot || !sane(plan)) return;
    port_->set_faults(link, plan);
    std::erase(s.faulty, link);
    if (!plan.active()) return;
    // Links end without a word to us: those that are long over make room, as in the port.
    if (s.faulty.size() == packet::FaultyWire::kMostPlans) {
        port_->set_faults(s.faulty.front(), FaultPlan());
        s.faulty.erase(s.faulty.begin());
    }
    s.faulty.push_back(link);
}

// Another user may have as many places as stay free beside its own.
uint32_t Server::admit(uid_t user, uint32_t* links) {
    if (user != ::geteuid() && !hosts_.has_room(user)) return kNoSlot;
    const uint32_t slot = steering_.admit(links);
    if (slot != kNoSlot) hosts_.change(user, 1);
    return slot;
}

void Server::on_hello(Session& s) {
    Hello hello;
    std::vector<Fd> files;
    const Status got = take_message(s.socket.get(), &hello, sizeof hello, &files);
    if (got == Status::not_done) return;
    if (!are_harmless(s, files) || got != Status::ok || hello.magic != kEngineMagic) {
        s.over = true;
        return;
    }
    Welcome w;
    uint32_t links = 0;
    if (hello.version != kEngineVersion) {
        w = refusal(Status::version, "the engine process is of another version", "end it");
    } else if (get_text(hello.port) != options_.port) {
        w = refusal(Status::invalid, "the engine process has the port as \"" + options_.port + "\"",
                    "write it in the same way, or end the engine process");
    } else if (port_ == nullptr) {
        w = refusal(Status::out_of_resources, refusal_, cure_);
    } else if (s.refusal != daemon::Refusal::none) {
        w = refusal(Status::out_of_resources, kNoDescriptor, kSeeLimit);
    } else if (s.slot = admit(s.user, &links); s.slot == kNoSlot) {
        w = refusal(Status::out_of_resources, options_.port + " has no place for another application",
                    "end programs that use it: a user that is not the engine's may have as many as there are "
                    "places free");
    }
    int ends[2] = {-1, -1};
    if (w.status == 0 && ::pipe2(ends, O_CLOEXEC) != 0) w = refusal(Status::out_of_resources, kNoDescriptor, kSeeLimit);
    const Fd theirs(above_stdio(ends[0]));
    s.liveness_pipe = Fd(above_stdio(ends[1]));
    if (w.status == 0) {
        w.max_frame = port_->max_frame();
        w.first_link = Steering::first_link(s.slot);
        w.links = links;
        w.address = port_->address();
        by_slot_[s.slot] = &s;
        s.stage = Session::Stage::attaching;
    }
    const bool lacks_room = w.status == static_cast<int32_t>(Status::out_of_resources);
    if ((w.status == 0 || lacks_room) && may_be_replaced_by(s)) w.flaws = static_cast<uint16_t>(options_.flaws);
    s.refused = w.status != 0 && w.flaws != 0;
    if (s.refused) s.stage = Session::Stage::attaching;
    if (!send_message(s.socket.get(), &w, sizeof w, theirs.get()) || (w.status != 0 && !s.refused)) s.over = true;
}

// The connections of another application that has a place end with the engine process, or its VipOpenNic fails.
bool Server::may_be_replaced_by(const Session& s) const {
    return options_.flaws != 0 && daemon::may_replace(s.user) &&
           std::none_of(sessions_.begin(), sessions_.end(),
                        [&](const auto& other) { return other.get() != &s && other->slot != kNoSlot; });
}

void Server::on_attach(Session& s) {
    Attach request;
    std::vector<Fd> files;
    const Status got = take_message(s.socket.get(), &request, sizeof request, &files);
    if (got == Status::not_done) return;
    const bool sane = are_harmless(s, files) && got == Status::ok && request.magic == kEngineMagic;
    if (sane && request.end != 0 && may_be_replaced_by(s)) {
        VIADUCT_LOG(info, "acenicd", "process %d of user %u starts an engine process of better limits", s.pid, s.user);
        stop();
    }
    if (!sane || s.refused || request.end != 0 || files.size() != 1 || request.segment_bytes > kMostSegment) {
        s.over = true;
        return;
    }
    Attached answer;
    const char* why = "the segment is no sealed memory of that size";
    s.segment = Segment::map(std::move(files[0]), request.segment_bytes, Segment::Access::sparse);
    if (!s.segment.valid() || !s.firmware.start(s.segment.data(), request.segment_bytes, &why)) {
        answer.status = static_cast<int32_t>(Status::invalid);
        put_text(answer.why, std::string(why));
    } else {
        s.stage = Session::Stage::running;
        admission_.settle(s);
        share_rounds();
        steering_.join(s.slot);
        VIADUCT_LOG(info, "acenicd", "process %d of user %u is host %u", s.pid, s.user, s.slot);
    }
    if (!send_message(s.socket.get(), &answer, sizeof answer) || answer.status != 0) s.over = true;
}

void Server::close_over() {
    for (size_t i = 0; i < sessions_.size();) {
        Session& s = *sessions_[i];
        if (!s.over) {
            ++i;
            continue;
        }
        if (s.slot != kNoSlot) {
            if (s.stage == Session::Stage::running) {
                // Sends the frames that it has still given, its disconnects among them.
                for (int n = 0; n < kLastRounds && send_frames(s, now_ns()); ++n) port_->transmit();
                const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
                VIADUCT_LOG(info, "acenicd", "host %u has left: %llu frames in, %llu have waited, %llu out, %u dropped",
                            s.slot, number(s.firmware.frames_in()), number(s.fifo.waited()),
                            number(s.firmware.frames_out()), s.firmware.dropped());
                for (const uint32_t link : s.faulty) port_->set_faults(link, FaultPlan());
            }
            by_slot_[s.slot] = nullptr;
            hosts_.change(s.user, -1);
            end_connections(s.slot);
        }
        admission_.release(s);
        sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
        share_rounds();
        idle_end_.note_use(now_ns());
    }
}

bool Server::may_leave(int64_t now) {
    if (!sessions_.empty() || !idle_end_.is_due(now)) return false;
    look_at_sockets(0);  // an application may have connected just now
    if (!sessions_.empty()) return false;
    log_counters();
    return true;
}

}  // namespace viaduct::acenic
