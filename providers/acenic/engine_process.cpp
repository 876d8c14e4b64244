// SPDX-License-Identifier: BSD-2-Clause
#include "providers/acenic/engine_process.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "core/agent/socket_address.hpp"
#include "core/agent/start_agent.hpp"
#include "core/clock/clock.hpp"
#include "core/log/log.hpp"
#include "providers/acenic/only_one.hpp"

namespace viaduct::acenic {

namespace {

// Opening a DPDK port takes a fraction of a second; more on a busy machine.
constexpr int64_t kStartPatience = 15'000'000'000;
constexpr int64_t kPause = 5'000'000;

// Only root's engine and our own user's are trusted with what we send.
bool is_trusted(int socket) {
    ucred who{};
    socklen_t n = sizeof who;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
           (who.uid == 0 || who.uid == ::geteuid());
}

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

// no_match: nobody listens there. closed: it was leaving.
Status greet(const std::string& address, const PortSpec& spec, EngineLink* out, int64_t deadline) {
    sockaddr_un name;
    socklen_t length = 0;
    if (!fill_socket_address(address, &name, &length)) return Status::invalid;
    Fd socket(above_stdio(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
    if (!socket.valid()) return Status::out_of_resources;
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0)
        return errno == ECONNREFUSED || errno == ENOENT ? Status::no_match : Status::denied;
    if (!is_trusted(socket.get())) return Status::denied;
    Hello hello;
    put_text(hello.port, spec.text);
    if (!send_message(socket.get(), &hello, sizeof hello)) return Status::closed;
    const Status s =
        await_message(socket.get(), &out->welcome, sizeof out->welcome, &out->lifeline, deadline);
    if (s != Status::ok) return s;
    if (out->welcome.magic != kEngineMagic || out->welcome.version != kEngineVersion) return Status::version;
    out->socket = std::move(socket);
    return Status::ok;
}

std::vector<std::string> addresses(const PortSpec& spec, const ModeChoice& mode) {
    if (!mode.engine.empty()) return {mode.engine};
    const std::string port = short_name(spec);
    std::vector<std::string> all{engine_address(port, ::geteuid())};
    if (::geteuid() != 0) all.push_back(engine_address(port, 0));
    return all;
}

}  // namespace

Status find_engine(const PortSpec& spec, const ModeChoice& mode, EngineLink* out, std::string* why,
                   std::string* cure) {
    const int64_t deadline = now_ns() + kStartPatience;
    const std::vector<std::string> places = addresses(spec, mode);
    bool started = false;
    for (;;) {
        Status last = Status::no_match;
        for (const std::string& place : places) {
            last = greet(place, spec, out, deadline);
            if (last == Status::ok || last == Status::closed) break;
            if (last != Status::no_match) {
                *why = "the engine process of " + spec.text + " cannot be used";
                *cure = last == Status::denied    ? "it belongs to another user: see acenic.engine"
                        : last == Status::version ? "it is of another version: end it"
                        : last == Status::timeout ? "it does not answer: end it"
                                                  : "see acenic.engine, and ulimit -n";
                return last;
            }
        }
        if (last == Status::ok) break;
        if (now_ns() >= deadline) {
            *why = "the engine process of " + spec.text + " does not come up";
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
                    program, {"viaduct-acenicd", "--port", spec.text, "--socket", places.front()});
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
        *why = "the engine process has gone";
        return Status::closed;
    }
    const Status s = await_message(link.socket.get(), &answer, sizeof answer, nullptr, now_ns() + kStartPatience);
    if (s != Status::ok) *why = "the engine process has gone";
    if (s == Status::ok && answer.status != 0) *why = get_text(answer.why);
    return s != Status::ok ? s : static_cast<Status>(answer.status);
}

}  // namespace viaduct::acenic
