// SPDX-License-Identifier: BSD-2-Clause
// Reports of the kernel about interfaces and addresses, in a network namespace of a child process.
#include "kagent/link_watch.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "core/shm/fd.hpp"

namespace viaduct::kagent {
namespace {

constexpr int kNoNamespace = 77;

bool has_report(const LinkWatch& watch) {
    pollfd event{watch.fd(), POLLIN, 0};
    return ::poll(&event, 1, 0) == 1;
}

ifreq loopback() {
    ifreq r{};
    std::strcpy(r.ifr_name, "lo");
    return r;
}

bool switch_loopback(int control, bool on) {
    ifreq r = loopback();
    r.ifr_flags = static_cast<short>(on ? IFF_UP : 0);
    return ::ioctl(control, SIOCSIFFLAGS, &r) == 0;
}

bool give_address(int control, const char* text) {
    ifreq r = loopback();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, text, &address.sin_addr);
    std::memcpy(&r.ifr_addr, &address, sizeof address);
    return ::ioctl(control, SIOCSIFADDR, &r) == 0;
}

// The kernel adds addresses of IPv6 a moment after the interface is up, and reports them then.
void switch_ipv6_off() {
    const Fd setting(::open("/proc/sys/net/ipv6/conf/all/disable_ipv6", O_WRONLY | O_CLOEXEC));
    if (setting.valid()) (void)!::write(setting.get(), "1", 1);
}

// The number of the first step that went wrong; 0: none did.
int watch_changes() {
    LinkWatch watch;
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kNoNamespace;
    if (!watch.open().empty()) return 9;
    switch_ipv6_off();
    const Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    watch.drain();
    if (has_report(watch)) return 1;
    if (!switch_loopback(control.get(), true)) return kNoNamespace;
    if (!has_report(watch)) return 2;
    watch.drain();
    if (has_report(watch)) return 3;
    if (!give_address(control.get(), "127.0.0.2") || !has_report(watch)) return 4;
    watch.drain();
    // More reports than there is room for (ENOBUFS).
    const int smallest = 1;
    ::setsockopt(watch.fd(), SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest);
    for (int i = 0; i < 200; ++i) {
        if (!switch_loopback(control.get(), i % 2 != 0)) return 5;
    }
    if (!has_report(watch)) return 6;
    watch.drain();
    if (has_report(watch)) return 7;
    return switch_loopback(control.get(), false) && has_report(watch) ? 0 : 8;
}

TEST(LinkWatchTest, ChangesOfLinksAndAddressesAndLostReportsAreReported) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(watch_changes());
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "no network namespace here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace viaduct::kagent
