// SPDX-License-Identifier: BSD-2-Clause
// The kernel's own ways over the same interfaces: UDP and TCP, never blocking, one message a call.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "wire.hpp"

namespace viaduct::bench {

namespace {

constexpr int kBuffer = 8 << 20;  // a window of large frames must fit

sockaddr_in address_of(const std::string& ip, uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    if (!ip.empty() && ::inet_pton(AF_INET, ip.c_str(), &a.sin_addr) != 1)
        give_up(ip + " is no IPv4 address");
    return a;
}

void widen(int socket) {
    for (const int option : {SO_RCVBUFFORCE, SO_SNDBUFFORCE})
        ::setsockopt(socket, SOL_SOCKET, option, &kBuffer, sizeof kBuffer);
}

class Socket : public Wire {
public:
    explicit Socket(int fd) : fd_(fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }
    ~Socket() override { ::close(fd_); }

protected:
    int fd_;
};

class Datagrams final : public Socket {
public:
    using Socket::Socket;
    bool send(const std::byte* data, uint32_t bytes) override {
        return ::send(fd_, data, bytes, 0) == static_cast<ssize_t>(bytes);
    }
    uint32_t receive(std::byte* to, uint32_t bytes) override {
        const ssize_t n = ::recv(fd_, to, bytes, 0);
        return n > 0 ? static_cast<uint32_t>(n) : 0;
    }
};

// Messages are told apart by their length, which both ends know.
class Stream final : public Socket {
public:
    using Socket::Socket;
    bool send(const std::byte* data, uint32_t bytes) override {
        for (uint32_t done = 0; done != bytes;) {
            const ssize_t n = ::send(fd_, data + done, bytes - done, MSG_NOSIGNAL);
            if (n > 0) done += static_cast<uint32_t>(n);
            if (n < 0 && done == 0) return false;
            if (n < 0 && errno != EAGAIN) give_up("the TCP connection has ended");
        }
        return true;
    }
    uint32_t receive(std::byte* to, uint32_t bytes) override {
        const ssize_t n = ::recv(fd_, to + had_, bytes - had_, 0);
        if (n == 0) give_up("the other end has left");
        if (n > 0) had_ += static_cast<uint32_t>(n);
        if (had_ != bytes) return 0;
        had_ = 0;
        return bytes;
    }

private:
    uint32_t had_ = 0;  // of the message under way
};

int new_socket(int type) {
    const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd < 0) give_up("no socket");
    widen(fd);
    return fd;
}

}  // namespace

// Both ends have the same port, so that both know where the other one is.
std::unique_ptr<Wire> open_udp(const std::string& other, uint16_t port, bool) {
    const int fd = new_socket(SOCK_DGRAM);
    const sockaddr_in here = address_of("", port), there = address_of(other, port);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
        ::connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
        give_up(std::string("UDP: ") + std::strerror(errno));
    return std::make_unique<Datagrams>(fd);
}

std::unique_ptr<Wire> open_tcp(const std::string& other, uint16_t port, bool leader) {
    int fd = new_socket(SOCK_STREAM);
    const int one = 1;
    if (leader) {
        const sockaddr_in there = address_of(other, port);
        for (int tries = 0; ::connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0;
             ++tries) {
            if (tries == 500) give_up(std::string("TCP: ") + std::strerror(errno));
            ::close(fd);
            ::usleep(10'000);  // sleeps: the other end does not listen yet
            fd = new_socket(SOCK_STREAM);
        }
    } else {
        const sockaddr_in here = address_of("", port);
        ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 || ::listen(fd, 1) != 0)
            give_up(std::string("TCP: ") + std::strerror(errno));
        const int taken = ::accept(fd, nullptr, nullptr);
        ::close(fd);
        if (taken < 0) give_up(std::string("TCP: ") + std::strerror(errno));
        fd = taken;
    }
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return std::make_unique<Stream>(fd);
}

}  // namespace viaduct::bench
