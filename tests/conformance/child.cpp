// SPDX-License-Identifier: BSD-2-Clause
// The processes behind Child and the pipes to them, and how parent and role find each other.
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>

#include "../report/googletest_rows.hpp"

namespace viaduct::conformance {

namespace {

std::string own_path() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    require(length > 0 && static_cast<std::size_t>(length) < sizeof path, "readlink");
    return {path, static_cast<std::size_t>(length)};
}

}  // namespace

Child::Child(const std::string& role, const std::vector<std::string>& arguments) {
    int down[2];
    int up[2];
    require(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0, "pipe2");
    // Through a command it is started by its path; alone, also when the file has been replaced meanwhile.
    const bool alone = options().child_command.empty();
    std::istringstream before(options().child_command);
    std::vector<std::string> words{std::istream_iterator<std::string>(before), {}};
    words.insert(words.end(), {alone ? std::string(program_invocation_short_name) : own_path(), "--nic",
                               options().elsewhere(), "--role", role, "--with"});
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = fork();
    require(pid_ >= 0, "fork");
    if (pid_ == 0) {
        dup2(down[0], STDIN_FILENO);
        dup2(up[1], STDOUT_FILENO);
        dup2(up[1], STDERR_FILENO);
        execvp(alone ? "/proc/self/exe" : argv[0], argv.data());
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
    constexpr int kLook = 20;  // milliseconds
    std::size_t end = std::string::npos;
    const auto is_there = [&] {
        end = pending_.find('\n');
        pollfd readable{from_, POLLIN, 0};
        if (end != std::string::npos || poll(&readable, 1, kLook) <= 0) {
            return end != std::string::npos;
        }
        char bytes[512];
        const ssize_t got = read(from_, bytes, sizeof bytes);
        if (got <= 0) {
            return true;  // the role has ended
        }
        pending_.append(bytes, static_cast<std::size_t>(got));
        end = pending_.find('\n');
        return end != std::string::npos;
    };
    eventually(is_there, limit);
    if (end == std::string::npos) {
        return {};
    }
    std::string found = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return found;
}

void Child::go() { require(write(to_, "g", 1) == 1, "write to a role"); }

void Child::kill() { ::kill(pid_, SIGKILL); }

void Child::stop() {
    ::kill(pid_, SIGSTOP);
    siginfo_t stopped;  // or ended; on a busy machine its threads run on for a while
    while (waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
}

void Child::resume() { ::kill(pid_, SIGCONT); }

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

int run_suite(int argc, char** argv, PlayRole play) {
    const char* from_environment = std::getenv("VIADUCT_TEST_NIC");
    options().nic = from_environment != nullptr ? from_environment : "/dev/via_eth0";
    std::string role;
    std::vector<std::string> arguments;
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
        const bool has_value = i + 1 < argc;
        if (std::string* value = nic_option(argv[i]); value != nullptr && has_value) {
            *value = argv[++i];
        } else if (std::strcmp(argv[i], "--role") == 0 && has_value) {
            role = argv[++i];
        } else if (std::strcmp(argv[i], "--with") == 0) {
            arguments.assign(argv + i + 1, argv + argc);
            break;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argc = kept;
    argv[argc] = nullptr;
    if (!role.empty()) return play(role, arguments);
    signal(SIGPIPE, SIG_IGN);  // a message to a role that has ended is an error, not the end
    testing::InitGoogleTest(&argc, argv);
    return tests::choose_cases() ? RUN_ALL_TESTS() : 1;
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

// Arguments: level, host in hex, discriminator in hex.
std::unique_ptr<End> connected_to_parent(const std::vector<std::string>& arguments, EndOptions chosen) {
    chosen.level = static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(arguments.at(0)));
    auto end = std::make_unique<End>(chosen);
    Address local(end->nic, from_hex(arguments.at(2)));
    Address remote(from_hex(arguments.at(1)), from_hex(arguments.at(2)));
    VIP_VI_ATTRIBUTES attributes{};
    require(request(end->vi, local.get(), remote.get(), kLongWait, &attributes), "VipConnectRequest");
    return end;
}

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

}  // namespace viaduct::conformance
