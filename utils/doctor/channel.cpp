// SPDX-License-Identifier: BSD-2-Clause
#include "utils/doctor/channel.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"

namespace viaduct::doctor {

namespace {

constexpr size_t kLongest = 1 << 16;  // of a line
constexpr size_t kLongestText = 300;

// Waits for the descriptor; false: not within that time.
bool ready(int fd, short events, int64_t until) {
    for (;;) {
        const int64_t left = until - now_ns();
        pollfd p{fd, events, 0};
        const int n = ::poll(&p, 1, static_cast<int>(std::max<int64_t>(left, 0) / 1'000'000 + (left > 0)));
        if (n > 0) return true;
        if (n == 0 && now_ns() >= until) return false;
        if (n < 0 && errno != EINTR) return false;
    }
}

}  // namespace

Channel::Channel(Fd socket) : socket_(std::move(socket)) {}

int Channel::open(const sockaddr_in& to, int64_t timeout_ns, Fd* out) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return errno;
    int error = 0;
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        if (errno != EINPROGRESS) return errno;
        if (!ready(socket.get(), POLLOUT, now_ns() + timeout_ns)) return ETIMEDOUT;
        socklen_t bytes = sizeof error;
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
    if (error == 0) *out = std::move(socket);
    return error;
}

bool Channel::receive(Json* out, int64_t timeout_ns) {
    const int64_t until = now_ns() + timeout_ns;
    for (;;) {
        const size_t end = had_.find('\n');
        if (end != std::string::npos) {
            *out = Json::parse(had_.substr(0, end), nullptr, false);
            had_.erase(0, end + 1);
            if (!out->is_object()) throw ChannelError("what came is no object of JSON");
            return true;
        }
        if (had_.size() > kLongest) throw ChannelError("what came is too long");
        if (!ready(socket_.get(), POLLIN, until)) return false;
        char piece[4096];
        const ssize_t n = ::recv(socket_.get(), piece, sizeof piece, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return open_ = false;
        if (n > 0) had_.append(piece, static_cast<size_t>(n));
    }
}

void Channel::send(const Json& what) {
    const std::string line = what.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
    const int64_t until = now_ns() + limit_ns(TimeLimit::doctor_send);
    for (size_t at = 0; at < line.size();) {
        const ssize_t n = ::send(socket_.get(), line.data() + at, line.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) at += static_cast<size_t>(n);
        if (n < 0 && errno != EAGAIN && errno != EINTR) throw ChannelError("the other end has left");
        if (n < 0 && !ready(socket_.get(), POLLOUT, until)) throw ChannelError("the other end takes nothing");
    }
}

Json Channel::ask(const Json& question, int64_t timeout_ns) {
    send(question);
    Json answer;
    if (!receive(&answer, timeout_ns)) throw ChannelError("the other end does not answer any more");
    return answer;
}

sockaddr_in Channel::here() const {
    sockaddr_in at{};
    socklen_t bytes = sizeof at;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&at), &bytes);
    return at;
}

sockaddr_in Channel::there() const {
    sockaddr_in at{};
    socklen_t bytes = sizeof at;
    ::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&at), &bytes);
    return at;
}

int64_t number_in(const Json& object, const char* key, int64_t low, int64_t high) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer()) return low;
    return std::clamp(found->get<int64_t>(), low, high);
}

std::string text_in(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return {};
    std::string text = found->get<std::string>().substr(0, kLongestText);
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '.';
    return text;
}

std::string text_of(const in_addr& ip) {
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &ip, text, sizeof text);
    return text;
}

}  // namespace viaduct::doctor
