// SPDX-License-Identifier: BSD-2-Clause
// See http.hpp.
#include "utils/common/http.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "utils/common/error.hpp"
#include "utils/common/stop.hpp"

namespace viaduct::tools {
namespace {

constexpr size_t kMostRequest = 8192;
constexpr int kLookForStop = 200;  // milliseconds

[[noreturn]] void refuse(const std::string& address, const std::string& why) {
    throw ToolError("cannot listen on " + address + ": " + why);
}

// Waits until the socket is ready for `events`; false: the time is over.
bool wait_for(int fd, short events, int64_t deadline) {
    while (true) {
        const int64_t left = deadline - now_ns();
        if (left <= 0 || stopped()) return false;
        pollfd one{fd, events, 0};
        const int ready = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(left / 1'000'000 + 1, kLookForStop)));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

// Up to the empty line behind the head; nothing when that does not come, or is too long.
std::optional<std::string> read_head(int fd, int64_t deadline) {
    std::string head;
    char part[1024];
    while (head.find("\r\n\r\n") == std::string::npos) {
        if (head.size() > kMostRequest || !wait_for(fd, POLLIN, deadline)) return std::nullopt;
        const ssize_t n = ::recv(fd, part, sizeof part, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return std::nullopt;
        if (n > 0) head.append(part, static_cast<size_t>(n));
    }
    return head;
}

void write_all(int fd, std::string_view text, int64_t deadline) {
    while (!text.empty() && wait_for(fd, POLLOUT, deadline)) {
        const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return;
        if (n > 0) text.remove_prefix(static_cast<size_t>(n));
    }
}

// Value of a header, or nothing.
std::string header_of(std::string_view head, const char* name) {
    for (size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
        const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
        const size_t colon = line.find(':');
        if (colon != std::strlen(name) || ::strncasecmp(line.data(), name, colon) != 0) continue;
        std::string_view value = line.substr(colon + 1);
        while (value.starts_with(' ')) value.remove_prefix(1);
        while (value.ends_with(' ')) value.remove_suffix(1);
        return std::string(value);
    }
    return {};
}

// A page of another host whose name was made to lead here must not read what this one says.
bool is_own_host(std::string host) {
    if (const size_t colon = host.rfind(':'); colon != std::string::npos && host.find(']', colon) == std::string::npos)
        host.resize(colon);
    in_addr address{};
    if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return (ntohl(address.s_addr) >> 24) == 127;
    return host == "localhost" || host == "[::1]";
}

std::string response(int status, const char* reason, const Answer& answer) {
    return fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'\r\n\r\n{}",
        status, reason, answer.type, answer.body.size(), answer.body);
}

std::string plain(int status, const char* reason) {
    return response(status, reason, {"text/plain", std::string(reason) + "\n"});
}

}  // namespace

HttpEndpoint::HttpEndpoint(const std::string& address) {
    address.starts_with("unix:") ? listen_on_unix(address.substr(5)) : listen_on_loopback(address);
}

HttpEndpoint::~HttpEndpoint() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
}

void HttpEndpoint::listen_on_unix(const std::string& path) {
    where_ = "unix:" + path;
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof name.sun_path) refuse(where_, "a path has 1 to 107 characters");
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const auto* const any = reinterpret_cast<const sockaddr*>(&name);
    if (fd_ < 0) refuse(where_, std::strerror(errno));
    // A socket that nothing listens on any more is taken away; anything else is left alone.
    struct stat there{};
    if (::lstat(path.c_str(), &there) == 0) {
        if (!S_ISSOCK(there.st_mode)) refuse(where_, "there is a file of this name");
        if (::connect(fd_, any, sizeof name) == 0 || errno != ECONNREFUSED) refuse(where_, "something listens there");
        ::unlink(path.c_str());
    }
    const mode_t before = ::umask(0177);
    const int bound = ::bind(fd_, any, sizeof name);
    const int error = errno;
    ::umask(before);
    if (bound != 0) refuse(where_, std::strerror(error));
    path_ = path;
    if (::listen(fd_, 16) != 0) refuse(where_, std::strerror(errno));
}

void HttpEndpoint::listen_on_loopback(const std::string& address) {
    const size_t colon = address.rfind(':');
    const std::string host = address.substr(0, colon);
    const std::string digits = colon == std::string::npos ? "" : address.substr(colon + 1);
    uint16_t port = 0;
    const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (digits.empty() || wrong != std::errc{} || end != digits.data() + digits.size())
        refuse(address, "127.0.0.1:PORT, localhost:PORT, [::1]:PORT or unix:PATH is wanted");
    sockaddr_in four{};
    sockaddr_in6 six{};
    const bool is_six = host == "[::1]";
    four.sin_family = AF_INET;
    four.sin_port = six.sin6_port = htons(port);
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_loopback;
    if (host == "localhost")
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (!is_six && ::inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1)
        refuse(address, "the host is no address of loopback");
    if (!is_six && (ntohl(four.sin_addr.s_addr) >> 24) != 127)
        refuse(address, "it is no address of loopback, and others must not read this");
    auto* const any = is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
    socklen_t bytes = is_six ? sizeof six : sizeof four;
    fd_ = ::socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    if (fd_ < 0 || ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 || ::bind(fd_, any, bytes) != 0 ||
        ::listen(fd_, 16) != 0 || ::getsockname(fd_, any, &bytes) != 0)
        refuse(address, std::strerror(errno));
    where_ = fmt::format("http://{}:{}", host, ntohs(is_six ? six.sin6_port : four.sin_port));
}

void HttpEndpoint::serve_connection(int fd, const Answers& answer) const {
    const auto say = [fd](const std::string& text) {
        write_all(fd, text, now_ns() + limit_ns(TimeLimit::http_request));
    };
    const std::optional<std::string> head = read_head(fd, now_ns() + limit_ns(TimeLimit::http_request));
    if (!head) return say(plain(400, "Bad Request"));
    const size_t space = head->find(' ');
    const size_t end = head->find(' ', space + 1);
    if (end == std::string::npos || end > head->find("\r\n")) return say(plain(400, "Bad Request"));
    if (head->substr(0, space) != "GET") return say(plain(405, "Method Not Allowed"));
    if (path_.empty() && !is_own_host(header_of(*head, "Host"))) return say(plain(403, "Forbidden"));
    std::string path = head->substr(space + 1, end - space - 1);
    path.resize(std::min(path.find('?'), path.size()));
    const std::optional<Answer> found = answer(path);
    say(found ? response(200, "OK", *found) : plain(404, "Not Found"));
}

void HttpEndpoint::serve(const Answers& answer) {
    while (!stopped()) {
        pollfd one{fd_, POLLIN, 0};
        if (::poll(&one, 1, kLookForStop) <= 0) continue;
        const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            const bool is_out_of_room = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
            if (is_out_of_room) ::usleep(kLookForStop * 1000);
            continue;
        }
        serve_connection(fd, answer);
        ::close(fd);
    }
}

}  // namespace viaduct::tools
