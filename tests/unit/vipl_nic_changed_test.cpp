// SPDX-License-Identifier: BSD-2-Clause
// A NIC that changes at the agent between the question for its name and its open.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "core/agent/mail.hpp"
#include "core/config/config.hpp"
#include "core/provider/loader.hpp"
#include "vipl_nic_testing.hpp"

namespace viaduct::vipl {
namespace {

using kagent::Type;

struct FirstNic final : NicSink {
    NicInfo nic;
    int count = 0;
    void offer(const NicInfo& offered) override {
        if (count++ == 0) nic = offered;
    }
    void reject(const Rejection&) override {}
};

// An agent of one client. What it opens differs from what it has named.
class ChangingAgent {
public:
    explicit ChangingAgent(void (*change)(NicInfo&)) : change_(change) {
        const LoadedProvider paramnet = load_provider("paramnet");
        const Config config = Config::parse("", "test");
        FirstNic first;
        if (paramnet.provider != nullptr)
            (void)paramnet.provider->control.discover(config.settings("paramnet"), Hints{}, first);
        nic = first.nic;
        std::strcpy(nic.provider, "paramnet");
        const std::string name = "viaduct-unit-changing-" + std::to_string(::getpid());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path + 1, name.data(), name.size());
        listener_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
            ::listen(listener_.get(), 8) != 0)
            ::_exit(9);
        ::setenv("VIADUCT_AGENT", ("@" + name).c_str(), 1);
        std::thread([this] { serve(); }).detach();  // until the process ends
    }
    NicInfo nic;
    std::atomic<int> opens{0}, closes{0}, closes_before_second_open{0};

private:
    Mail answer_to(const Mail& request) {
        const uint32_t ticket = request.header.ticket;
        kagent::Welcome welcome;
        kagent::NicEntry entry;
        kagent::Opened opened;
        switch (request.type()) {
            case Type::kHello:
                welcome.version = kagent::kVersionMax;
                welcome.agent_pid = static_cast<uint32_t>(::getpid());
                return Mail::of(Type::kWelcome, welcome, ticket);
            case Type::kResolveName:
                entry.nic = nic;
                return Mail::of(Type::kNicEntry, entry, ticket);
            case Type::kOpenNic:
                if (++opens == 2) closes_before_second_open = closes.load();
                opened.nic = nic;
                change_(opened.nic);
                return Mail::of(Type::kOpened, opened, ticket);
            case Type::kCloseNic:
                ++closes;
                [[fallthrough]];
            default:
                return Mail(Type::kDone, ticket);
        }
    }
    void serve() {
        for (;;) {
            const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            Mail request;
            while (client.valid() && receive_mail(client.get(), &request) == Status::ok)
                (void)send_mail(client.get(), answer_to(request));
        }
    }
    void (*change_)(NicInfo&);
    Fd listener_;
};

// The status of a child process, in which no other agent has been met.
int status_in_child(int (*body)()) {
    use_this_build();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

TEST(NicChangedTest, AnotherAddressFailsTheOpenAndClosesTheNicOnce) {
    EXPECT_EQ(status_in_child([] {
                  ChangingAgent agent([](NicInfo& nic) { nic.address.bytes[5] ^= 1; });
                  VIP_NIC_HANDLE nic = nullptr;
                  if (VipOpenNic("nic0", &nic) != VIP_ERROR_RESOURCE) return 1;
                  if (VipOpenNic("nic0", &nic) != VIP_ERROR_RESOURCE) return 2;
                  if (agent.opens != 2) return 3;
                  return agent.closes_before_second_open == 1 ? 0 : 4;
              }),
              0);
}

TEST(NicChangedTest, AProgramSeesTheValuesThatTheProviderWasGiven) {
    EXPECT_EQ(status_in_child([] {
                  ChangingAgent agent([](NicInfo& nic) {
                      nic.native_mtu += 100;
                      nic.max_transfer -= 100;
                  });
                  VIP_NIC_HANDLE nic = nullptr;
                  VIP_NIC_ATTRIBUTES seen{};
                  if (VipOpenNic("nic0", &nic) != VIP_SUCCESS) return 1;
                  if (VipQueryNic(nic, &seen) != VIP_SUCCESS) return 2;
                  if (seen.NativeMTU != agent.nic.native_mtu) return 3;
                  return seen.MaxTransferSize == agent.nic.max_transfer ? 0 : 4;
              }),
              0);
}

}  // namespace
}  // namespace viaduct::vipl
