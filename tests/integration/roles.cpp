// SPDX-License-Identifier: BSD-2-Clause
// The other processes of the integration tests. A role says on stdout what it did; its parent checks.
#include "roles.hpp"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace viaduct::integration {

Arguments arguments_for(End& server, const std::string& discriminator, const Arguments& more) {
    Arguments arguments = conformance::client_arguments(server, discriminator);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

void accept_on(End& end, VIP_VI_HANDLE vi, const std::string& discriminator) {
    Address local(end.nic, discriminator);
    Address remote = Address::blank();
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    require(
        VipConnectWait(end.nic, local.get(), conformance::kLongWait, remote.get(), &attributes, &connection),
        "VipConnectWait");
    require(VipConnectAccept(connection, vi), "VipConnectAccept");
}

Variable::Variable(const std::string& name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name.c_str());
    was_set_ = before != nullptr;
    if (was_set_) before_ = before;
    setenv(name.c_str(), value.c_str(), 1);
}

Variable::~Variable() {
    if (was_set_) {
        setenv(name_.c_str(), before_.c_str(), 1);
    } else {
        unsetenv(name_.c_str());
    }
}

OtherAgent::OtherAgent(const std::string& suffix)
    : variable_("VIADUCT_AGENT", [&] {
          const char* name = std::getenv("VIADUCT_AGENT");
          return (name != nullptr ? name : "@viaduct-integration-" + std::to_string(getpid())) + suffix;
      }()) {}

namespace {

void wait_for_go() {
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
    }
}

/// Connects as a client of the parent under the given discriminator.
void request_from_parent(End& end, VIP_VI_HANDLE vi, const Arguments& arguments,
                         const std::string& discriminator) {
    Address local(end.nic, discriminator);
    Address remote(conformance::from_hex(arguments.at(1)), discriminator);
    VIP_VI_ATTRIBUTES attributes{};
    require(conformance::request(vi, local.get(), remote.get(), conformance::kLongWait, &attributes),
            "VipConnectRequest");
}

/// Many VIs on one completion queue, two receives each; whatever comes goes back. Own argument: how many.
int role_echo_many(const Arguments& arguments) {
    const auto count = std::stoul(arguments.at(kFirstOwnArgument));
    EndOptions chosen;
    chosen.memory = count * 512 + 65536;
    chosen.send_cq = count * 4;
    chosen.one_cq = true;
    End end(chosen);
    for (std::size_t i = 0; i < count; ++i) {
        const VIP_VI_HANDLE vi = i == 0 ? end.vi : end.create_vi();
        for (int k = 0; k < 2; ++k) {
            VIP_DESCRIPTOR* d = end.message(end.buffer(64), 64);
            require(VipPostRecv(vi, d, end.region), "VipPostRecv");
        }
        request_from_parent(end, vi, arguments, conformance::from_hex(arguments.at(2)) + std::to_string(i));
    }
    say("ready");
    for (;;) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        if (VipCQWait(end.send_cq, VIP_INFINITE, &vi, &receive) != VIP_SUCCESS) return 1;
        VIP_DESCRIPTOR* d = nullptr;
        const VIP_RETURN code = receive ? VipRecvDone(vi, &d) : VipSendDone(vi, &d);
        if (code != VIP_SUCCESS) return 0;  // the parent has begun to disconnect
        d->CS.Status = 0;
        require(receive ? VipPostSend(vi, d, end.region) : VipPostRecv(vi, d, end.region), "posting it back");
    }
}

VIP_DESCRIPTOR* take(VIP_VI_HANDLE vi) {
    const Outcome got = conformance::reap_recv(vi);
    require(got.code, "VipRecvDone");
    return got.descriptor;
}

void write_one(End& end, VIP_DESCRIPTOR* d, const conformance::Piece& piece,
               const conformance::Target& target) {
    conformance::fill(d, VIP_CONTROL_OP_RDMAWRITE, {piece}, target);
    require(end.post_send(d), "VipPostSend");
    require(conformance::reap_send(end.vi).code, "an RDMA write");
}

/// Writes its number into each of the parent's regions. They lie side by side; their handles come in a
/// message.
int role_write_regions(const Arguments& arguments) {
    const auto end = conformance::connected_to_parent(arguments);
    VIP_DESCRIPTOR* message = end->receive(65000);
    say("ready");
    require(take(end->vi) == message, "another receive");
    const char* data = static_cast<char*>(message->DS[0].Local.Data.Address);
    Window window;
    std::memcpy(&window, data, sizeof window);
    auto* number = static_cast<std::uint32_t*>(end->alloc(4, 4));
    VIP_DESCRIPTOR* d = end->descriptor();
    for (std::uint32_t i = 0; i < window.count; ++i) {
        VIP_MEM_HANDLE handle = 0;
        std::memcpy(&handle, data + sizeof window + i * sizeof handle, sizeof handle);
        *number = i + 1;
        char* at = reinterpret_cast<char*>(window.address) + i * window.bytes;
        write_one(*end, d, end->piece(number, 4), {at + window.bytes - 4, handle});
    }
    say("written");
    wait_for_go();
    return 0;
}

/// Writes pieces of 1 MiB all over one region of the parent's, and reads the last one back.
int role_write_pieces(const Arguments& arguments) {
    constexpr std::size_t kPiece = 1 << 20;
    EndOptions chosen;
    chosen.memory = 4 << 20;
    const auto end = conformance::connected_to_parent(arguments, chosen);
    VIP_DESCRIPTOR* message = end->receive(256);
    say("ready");
    require(take(end->vi) == message, "another receive");
    Window window;
    std::memcpy(&window, message->DS[0].Local.Data.Address, sizeof window);
    char* data = end->buffer(kPiece);
    VIP_DESCRIPTOR* d = end->descriptor();
    char* target = nullptr;
    for (std::uint32_t i = 0; i < window.count; ++i) {
        std::memset(data, static_cast<int>('A' + i % 26), kPiece);
        target = reinterpret_cast<char*>(window.address) + (window.bytes - kPiece) / (window.count - 1) * i;
        write_one(*end, d, end->piece(data, kPiece), {target, window.handle});
    }
    char* back = end->buffer(kPiece);
    end->read(back, kPiece, {target, window.handle});
    require(conformance::reap_send(end->vi).code, "an RDMA read");
    require(std::memcmp(back, data, kPiece) == 0, "what is read back differs");
    say("written");
    wait_for_go();
    return 0;
}

/// One of two that send a message to and fro. Own arguments: "serve" or "ask", "poll" or "block", how often.
int role_pingpong(const Arguments& arguments) {
    const bool serves = arguments.at(kFirstOwnArgument) == "serve";
    const bool polls = arguments.at(kFirstOwnArgument + 1) == "poll";
    const int times = std::stoi(arguments.at(kFirstOwnArgument + 2));
    End end;
    const std::string discriminator = conformance::from_hex(arguments.at(2));
    VIP_DESCRIPTOR* receives[2] = {end.receive(64), end.receive(64)};
    VIP_DESCRIPTOR* send = end.message(end.buffer(8, 'p'), 8);
    serves ? accept_on(end, end.vi, discriminator)
           : request_from_parent(end, end.vi, arguments, discriminator);
    const auto complete = [&](VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR**),
                              VIP_RETURN (*wait)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR**)) {
        VIP_DESCRIPTOR* d = nullptr;
        VIP_RETURN code = VIP_NOT_DONE;
        if (!polls) code = wait(end.vi, conformance::kLongWait, &d);
        while (code == VIP_NOT_DONE) code = done(end.vi, &d);  // without a pause (spec/compat T16)
        require(code, "a completion");
        return d;
    };
    const auto receive_one = [&](int i) {
        VIP_DESCRIPTOR* d = complete(VipRecvDone, VipRecvWait);
        require(d == receives[i % 2], "receives in order");
        d->CS.Status = 0;
        require(end.post_recv(d), "VipPostRecv");
    };
    const auto send_one = [&] {
        send->CS.Status = 0;
        require(end.post_send(send), "VipPostSend");
        require(complete(VipSendDone, VipSendWait) == send, "the send");
    };
    say("ready");
    wait_for_go();
    const auto begun = Clock::now();
    for (int i = 0; i < times; ++i) {
        if (serves) {
            receive_one(i);
            send_one();
        } else {
            send_one();
            receive_one(i);
        }
    }
    say(std::to_string(conformance::since(begun).count()));
    wait_for_go();
    return 0;
}

/// Which processor the process is confined to, and which descriptors it has beyond 0 to 2.
int role_look_around(const Arguments&) {
    std::string text = "descriptors:";
    DIR* folder = opendir("/proc/self/fd");
    for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
        const int fd = std::atoi(entry->d_name);
        if (fd > 2 && fd != dirfd(folder)) text += std::string(" ") + entry->d_name;
    }
    closedir(folder);
    say(text);
    return 0;
}

}  // namespace

int play_busy(const Arguments& arguments);      // silence_roles.cpp
int play_two_nics(const Arguments& arguments);  // nics_roles.cpp
int play_soak(const Arguments& arguments);      // soak_roles.cpp
int play_user(const Arguments& arguments);      // users_roles.cpp
int play_link(const Arguments& arguments);      // link_roles.cpp

int play_role(const std::string& role, const Arguments& arguments) {
    struct RoleEntry {
        const char* name;
        int (*play)(const Arguments&);
    };
    constexpr RoleEntry kRoles[] = {
        {"echo-many", role_echo_many},
        {"write-regions", role_write_regions},
        {"write-pieces", role_write_pieces},
        {"pingpong", role_pingpong},
        {"look-around", role_look_around},
        {"busy", play_busy},
        {"two-nics", play_two_nics},
        {"soak", play_soak},
        {"user", play_user},
        {"link", play_link},
    };
    try {
        for (const RoleEntry& entry : kRoles) {
            if (role == entry.name) return entry.play(arguments);
        }
        std::cout << "unknown role " << role << std::endl;
    } catch (const std::exception& error) {
        std::cout << error.what() << std::endl;
    }
    return 1;
}

}  // namespace viaduct::integration
