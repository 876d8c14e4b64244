// SPDX-License-Identifier: BSD-2-Clause
// The roles and the pipes to them. A role holds no gtest assertions: it says on stdout what it did and its parent checks.
#include "roles.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <thread>

namespace viaduct::conformance {
namespace {

std::string to_hex(const std::string& bytes) {
    std::string text;
    for (const char byte : bytes) {
        char pair[3];
        std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(byte));
        text += pair;
    }
    return text;
}

std::string from_hex(const std::string& text) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
    }
    return bytes;
}

void say(const char* text) {
    std::cout << text << std::endl;
}

void wait_for_go() {
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
    }
}

/// Connects to the parent. Arguments: level, host in hex, discriminator in hex.
std::unique_ptr<End> connected_to_parent(const std::vector<std::string>& arguments) {
    EndOptions chosen;
    chosen.level = static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(arguments.at(0)));
    auto end = std::make_unique<End>(chosen);
    Address local(end->nic, from_hex(arguments.at(2)));
    Address remote(from_hex(arguments.at(1)), from_hex(arguments.at(2)));
    VIP_VI_ATTRIBUTES attributes{};
    require(request(end->vi, local.get(), remote.get(), kLongWait, &attributes), "VipConnectRequest");
    return end;
}

/// Connects, posts receives, and stays until told; then ends without any clean-up, as many programs of old did (L5).
int role_client(const std::vector<std::string>& arguments) {
    const std::unique_ptr<End> end = connected_to_parent(arguments);
    for (int i = 0; i < 8; ++i) {
        end->receive(64);
    }
    say("connected");
    wait_for_go();
    _exit(0);
}

/// Connects, waits for one message in a blocking call, sends it back twice as long, and ends by exit().
int role_echo(const std::vector<std::string>& arguments) {
    const std::unique_ptr<End> end = connected_to_parent(arguments);
    VIP_DESCRIPTOR* receive = end->receive(64);
    say("connected");
    VIP_DESCRIPTOR* got = nullptr;
    require(VipRecvWait(end->vi, kLongWait, &got), "VipRecvWait");
    require(got == receive && got->CS.Length == 8, "the message is not the one sent");
    char* answer = end->buffer(16);
    std::memcpy(answer, reinterpret_cast<void*>(got->DS[0].Local.Data.AddressBits), 8);
    std::memcpy(answer + 8, answer, 8);
    end->send(answer, 16);
    require(VipSendWait(end->vi, kLongWait, &got), "VipSendWait");
    say("answered");
    wait_for_go();
    return 0;
}

/// A well-behaved program within one process: whatever it prints was printed by the library.
int role_quiet(const std::vector<std::string>&) {
    Pair pair;
    for (int i = 0; i < 100; ++i) {
        pair.server.receive(64);
        pair.client.send(pair.client.buffer(64), 64);
        const Outcome received = reap_recv(pair.server.vi);
        const Outcome sent = reap_send(pair.client.vi);
        if (received.code != VIP_SUCCESS || sent.code != VIP_SUCCESS) {
            return 1;
        }
    }
    return 0;
}

/// main() returns while another thread sits in VipCQWait (vipl-compat L4).
int role_return_with_waiter(const std::vector<std::string>&) {
    VIP_NIC_HANDLE nic = nullptr;
    VIP_CQ_HANDLE cq = nullptr;
    require(VipOpenNic(options().nic.c_str(), &nic), "VipOpenNic");
    require(VipCreateCQ(nic, 4, &cq), "VipCreateCQ");
    std::atomic<bool> started{false};
    std::thread([&started, cq] {
        started = true;
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN recv = VIP_FALSE;
        VipCQWait(cq, VIP_INFINITE, &vi, &recv);
        pause();
    }).detach();
    eventually([&] { return started.load(); });
    never([] { return false; });
    exit(0);
}

/// exit() inside the error callback, on the library's own thread (vipl-compat L3).
int role_exit_in_callback(const std::vector<std::string>& arguments) {
    const std::unique_ptr<End> end = connected_to_parent(arguments);
    require(VipErrorCallback(end->nic, nullptr, [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) { exit(7); }),
            "VipErrorCallback");
    say("connected");
    wait_for_go();
    never([] { return false; }, kPatience);
    return 1;
}

struct RoleEntry {
    const char* name;
    int (*play)(const std::vector<std::string>&);
};

constexpr RoleEntry kRoles[] = {
    {"client", role_client},
    {"echo", role_echo},
    {"quiet", role_quiet},
    {"return-with-waiter", role_return_with_waiter},
    {"exit-in-callback", role_exit_in_callback},
};

}  // namespace

int play_role(const std::string& role, const std::vector<std::string>& arguments) {
    // The suite may be killed; its roles must not stay.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        for (const RoleEntry& entry : kRoles) {
            if (role == entry.name) {
                return entry.play(arguments);
            }
        }
        std::cout << "unknown role " << role << std::endl;
    } catch (const std::exception& error) {
        std::cout << error.what() << std::endl;
    }
    return 1;
}

Child::Child(const std::string& role, const std::vector<std::string>& arguments) {
    int down[2];
    int up[2];
    require(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0, "pipe2");
    std::vector<std::string> words = {"viaduct_conformance", "--nic", options().nic, "--role", role, "--with"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    pid_ = fork();
    require(pid_ >= 0, "fork");
    if (pid_ == 0) {
        dup2(down[0], STDIN_FILENO);
        dup2(up[1], STDOUT_FILENO);
        dup2(up[1], STDERR_FILENO);
        execv("/proc/self/exe", argv.data());
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
}

Child::~Child() {
    if (!ended_) {
        kill();
        wait();
    }
    close(to_);
    close(from_);
}

std::string Child::line(Millis limit) {
    const auto end = Clock::now() + limit;
    for (;;) {
        const std::size_t at = pending_.find('\n');
        if (at != std::string::npos) {
            const std::string found = pending_.substr(0, at);
            pending_.erase(0, at + 1);
            return found;
        }
        const auto left = std::chrono::duration_cast<Millis>(end - Clock::now()).count();
        pollfd readable{from_, POLLIN, 0};
        if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) <= 0) {
            return {};
        }
        char bytes[512];
        const ssize_t got = read(from_, bytes, sizeof bytes);
        if (got <= 0) {
            return {};
        }
        pending_.append(bytes, static_cast<std::size_t>(got));
    }
}

void Child::go() { require(write(to_, "g", 1) == 1, "write to a role"); }

void Child::kill() { ::kill(pid_, SIGKILL); }

int Child::wait(Millis limit) {
    eventually(
        [&] {
            int status = 0;
            if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
                ended_ = true;
                code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            }
            return ended_;
        },
        limit);
    return code_;
}

std::string Child::everything() {
    std::string text;
    for (std::string next = line(); !next.empty(); next = line()) {
        text += next + "\n";
    }
    return text + pending_;
}

std::vector<std::string> client_arguments(End& server, const std::string& discriminator) {
    Address address(server.nic, discriminator);
    return {std::to_string(server.wanted.level), to_hex(address.host_bytes()), to_hex(discriminator)};
}

void accept_from(End& server, const std::string& discriminator) {
    Address local(server.nic, discriminator);
    Address remote = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    require(VipConnectWait(server.nic, local.get(), kLongWait, remote.get(), &attributes, &connection),
            "VipConnectWait");
    require(VipConnectAccept(connection, server.vi), "VipConnectAccept");
}

}  // namespace viaduct::conformance
