// SPDX-License-Identifier: BSD-2-Clause
// Socket activation and readiness by hand; see service.hpp.
#include "kagent/service.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace viaduct::kagent {

namespace {
constexpr int kFirstPassed = 3;
}

Fd activated_socket(std::string* error) {
    const char* pid = std::getenv("LISTEN_PID");
    const char* count = std::getenv("LISTEN_FDS");
    const bool for_us =
        pid != nullptr && count != nullptr && std::atol(pid) == ::getpid() && std::atoi(count) > 0;
    const int passed = for_us ? std::atoi(count) : 0;
    ::unsetenv("LISTEN_PID");
    ::unsetenv("LISTEN_FDS");
    ::unsetenv("LISTEN_FDNAMES");
    if (!for_us) return {};
    int type = 0, listening = 0;
    socklen_t length = sizeof type;
    const bool usable = passed == 1 && ::getsockopt(kFirstPassed, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
                        type == SOCK_SEQPACKET &&
                        ::getsockopt(kFirstPassed, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 &&
                        listening != 0;
    if (!usable) {
        *error =
            "the service manager must pass exactly one listening SOCK_SEQPACKET Unix socket "
            "(ListenSequentialPacket=)";
        return {};
    }
    ::fcntl(kFirstPassed, F_SETFD, FD_CLOEXEC);
    ::fcntl(kFirstPassed, F_SETFL, ::fcntl(kFirstPassed, F_GETFL) | O_NONBLOCK);
    return Fd(kFirstPassed);
}

void notify_manager(const char* state) {
    const char* path = std::getenv("NOTIFY_SOCKET");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path == nullptr || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof address.sun_path)
        return;
    std::memcpy(address.sun_path, path, std::strlen(path));
    if (path[0] == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
    const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return;
    // A manager that does not listen is its own trouble; the agent works all the same.
    (void)!::sendto(fd.get(), state, std::strlen(state), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address),
                    length);
}

}  // namespace viaduct::kagent
