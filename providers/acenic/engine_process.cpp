// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/engine_process.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "core/agent/meeting_point.hpp"
#include "core/agent/own_limits.hpp"
#include "core/agent/start_agent.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/acenic/port_lock.hpp"

namespace viaduct::acenic {

namespace {

// Opening a DPDK port takes a fraction of a second; more on a busy machine. VipOpenNic ends within ten seconds.
constexpr int64_t kPause = 5'000'000;

// Waits for one message; closed also when it does not come in time.
Status await_message(int socket, void* message, size_t bytes, Fd* fd, int64_t deadline) {
    for (;;) {
        std::vector<Fd> files;
        const Status s = take_message(socket, message, bytes, &files);
        if (fd != nullptr && files.size() == 1) *fd = std::move(files[0]);
        if (s != Status::not_done) return s;
        const int64_t left = deadline - now_ns();
        if (left <= 0) return Status::timeout;
        pollfd p{socket, POLLIN, 0};
        ::poll(&p, 1, static_cast<int>(left / 1'000'000) + 1);
    }
}

struct Place {
    std::string address;
    uid_t user;  // whose engine
};

// no_match: no engine listens there. not_done: it is too busy for another session. closed: it was leaving. Only root's
// engine and that of our own user get what we send.
Status greet(const Place& place, const PortSpec& spec, EngineLink* out, std::string* in_the_way) {
    Fd socket;
    switch (meet(place.address, place.user, &socket, in_the_way, out->deadline)) {
        case 0:
            break;
        case ECONNREFUSED:
        case ENOENT:
        case EBUSY:  // the one that is started decides
            return Status::no_match;
        case EAGAIN:
        case EINTR:
            return Status::not_done;
        case ENAMETOOLONG:
            return Status::invalid;
        case EMFILE:
        case ENFILE:
            return Status::out_of_resources;
        default:
            return Status::denied;
    }
    Hello hello;
    put_text(hello.port, spec.text);
    if (!send_message(socket.get(), &hello, sizeof hello)) return Status::closed;
    const Status s =
        await_message(socket.get(), &out->welcome, sizeof out->welcome, &out->liveness_pipe, out->deadline);
    if (s != Status::ok) return s;
    if (out->welcome.magic != kEngineMagic || out->welcome.version != kEngineVersion) return Status::version;
    out->socket = std::move(socket);
    return Status::ok;
}

// Asks an engine process to end that has inherited worse limits than this process has and serves no other application.
// The search starts an engine process with the limits of this process. True: the engine process has been asked.
bool replace(const Place& place, const PortSpec& spec, EngineLink* link) {
    const uint32_t flaws = link->welcome.flaws;
    if (place.user != ::geteuid() || !could_do_better(flaws)) return false;
    VIADUCT_LOG(warn, "acenic",
                "the engine process of %s works under limits of the program that started it (%s): asked to leave",
                spec.text.c_str(), names_of_flaws(flaws).c_str());
    Attach request;
    request.end = 1;
    char none = 0;
    if (send_message(link->socket.get(), &request, sizeof request))
        (void)await_message(link->socket.get(), &none, sizeof none, nullptr, link->deadline);
    link->socket.reset();
    link->liveness_pipe.reset();
    return true;
}

std::vector<Place> addresses(const PortSpec& spec, const ModeChoice& mode) {
    if (!mode.engine.empty()) return {{mode.engine, ::geteuid()}};
    const std::string port = short_name(spec);
    std::vector<Place> all{{engine_address(port, ::geteuid()), ::geteuid()}};
    if (::geteuid() != 0) all.push_back({engine_address(port, 0), 0});
    return all;
}

}  // namespace

Status find_engine(const PortSpec& spec, const ModeChoice& mode, EngineLink* out, std::string* why,
                   std::string* cure) {
    out->deadline = now_ns() + limit_ns(TimeLimit::acenicd_start);
    const std::vector<Place> places = addresses(spec, mode);
    std::string in_the_way;
    bool started = false, replaced = false;
    for (;;) {
        Status last = Status::no_match;
        for (const Place& place : places) {
            last = greet(place, spec, out, &in_the_way);
            if (last == Status::ok && !replaced && replace(place, spec, out)) {
                replaced = true;
                last = Status::closed;
            }
            if (last == Status::ok || last == Status::closed || last == Status::not_done) break;
            if (last != Status::no_match) {
                *why = "the engine process of " + spec.text + " cannot be used";
                *cure = last == Status::denied    ? (in_the_way.empty() ? "it belongs to another user" : in_the_way) +
                                                        ": see acenic.engine"
                        : last == Status::version ? "it is of another version: end it"
                        : last == Status::timeout ? "it does not answer: end it"
                                                  : "see acenic.engine, and ulimit -n";
                return last;
            }
        }
        if (last == Status::ok) break;
        if (now_ns() >= out->deadline) {
            *why = "the engine process of " + spec.text +
                   (last == Status::not_done ? " takes no more connections" : " does not come up") +
                   (in_the_way.empty() ? "" : "; " + in_the_way);
            *cure = "run viaduct-acenicd by hand and see what it says";
            return Status::timeout;
        }
        if (last == Status::no_match && !started) {
            std::string tried;
            const std::string program = find_beside_vipkad("viaduct-acenicd", "VIADUCT_ACENICD", &tried);
            if (program.empty()) {
                *why = "there is no viaduct-acenicd at " + tried;
                *cure = "install it, or set acenic.mode to exclusive";
                return Status::not_supported;
            }
            if (const int e = spawn_detached(
                    program, {"viaduct-acenicd", "--port", spec.text, "--socket", places.front().address});
                e != 0) {
                *why = program + " does not start: " + std::strerror(e);
                *cure = "set acenic.mode to exclusive";
                return Status::not_supported;
            }
            started = true;
        } else if (last == Status::closed) {
            started = false;  // it was about to leave
        }
        ::usleep(kPause / 1000);
    }
    if (out->welcome.status != static_cast<int32_t>(Status::ok)) {
        *why = get_text(out->welcome.why);
        *cure = get_text(out->welcome.cure);
        return Status::denied;
    }
    return Status::ok;
}

Status attach(const EngineLink& link, const Segment& segment, std::string* why) {
    Attach request;
    request.segment_bytes = segment.size();
    Attached answer;
    const Fd copy = segment.duplicate(Segment::Access::read_write);
    if (!copy.valid() || !send_message(link.socket.get(), &request, sizeof request, copy.get())) {
        *why = "the engine process has ended";
        return Status::closed;
    }
    const Status s = await_message(link.socket.get(), &answer, sizeof answer, nullptr, link.deadline);
    if (s != Status::ok) *why = "the engine process has ended";
    if (s == Status::ok && answer.status != 0) *why = get_text(answer.why);
    return s != Status::ok ? s : static_cast<Status>(answer.status);
}

}  // namespace viaduct::acenic
