// SPDX-License-Identifier: BSD-2-Clause
// One of the processes of the soak: connected with all others, it answers each message with one of random
// size, and looks at every byte of what comes. At the end it says what it saw, and by how much its own memory
// has grown.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>

#include "../open_files.hpp"
#include "roles.hpp"

namespace viaduct::integration {

namespace {

constexpr std::uint32_t kLargest = 32768;
constexpr int kReceivesPerPeer =
    2;  // one ball is on its way between two processes, and one may just have been taken

/// What a message says of itself; the rest follows from it.
struct Head {
    std::uint32_t from, to, number, bytes;
};

std::uint64_t word_of(const Head& head, std::uint32_t at) {
    std::uint64_t x = (std::uint64_t{head.from} << 48 ^ std::uint64_t{head.to} << 32 ^ head.number) +
                      at * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    return x ^ x >> 27;
}

void write_body(char* data, const Head& head) {
    std::memcpy(data, &head, sizeof head);
    for (std::uint32_t at = sizeof head; at < head.bytes; at += 8) {
        const std::uint64_t word = word_of(head, at);
        std::memcpy(data + at, &word, std::min<std::uint32_t>(8, head.bytes - at));
    }
}

bool right_body(const char* data, const Head& wanted) {
    Head head;
    std::memcpy(&head, data, sizeof head);
    if (std::memcmp(&head, &wanted, sizeof head) != 0) return false;
    for (std::uint32_t at = sizeof head; at < head.bytes; at += 8) {
        const std::uint64_t word = word_of(head, at);
        if (std::memcmp(data + at, &word, std::min<std::uint32_t>(8, head.bytes - at)) != 0) return false;
    }
    return true;
}

/// KiB of a line of /proc/self/status.
long kib_of(const std::string& what) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.compare(0, what.size(), what) == 0) return std::stol(line.substr(what.size() + 1));
    }
    return 0;
}

/// The connection to one other process.
struct Peer {
    VIP_VI_HANDLE vi = nullptr;
    VIP_DESCRIPTOR* receives[kReceivesPerPeer] = {};
    VIP_DESCRIPTOR* send = nullptr;
    std::uint32_t sent = 0, received = 0;
    bool sending = false;
    bool answer_due = false;  // an answer, as soon as the last one is out
};

class Soaker {
public:
    // Own arguments: index, processes, run (part of the discriminators), seconds.
    explicit Soaker(const Arguments& a)
        : self_(number(a, 0)),
          count_(number(a, 1)),
          seconds_(number(a, 3)),
          end_(options(count_)),
          random_(self_ + 1) {
        peers_.resize(count_);
        for (std::uint32_t i = 0; i < count_; ++i) {
            if (i != self_) prepare(peers_[i]);
        }
        connect_all(a.at(kFirstOwnArgument + 2));
    }

    void run() {
        for (std::uint32_t i = self_ + 1; i < count_; ++i) answer(i);  // of two processes the first serves
        const auto begun = Clock::now();
        const auto end = begun + std::chrono::seconds(seconds_);
        const auto warm = begun + std::chrono::seconds(seconds_) / 4;
        long before = 0;
        std::size_t descriptors = 0;
        while (Clock::now() < end) {
            turn(100);
            if (before == 0 && Clock::now() > warm) {
                before = kib_of("RssAnon:");
                descriptors = tests::open_files().size();
            }
        }
        const long grown = kib_of("RssAnon:") - before;
        std::cout << "done " << messages_ << ' ' << bytes_ << ' ' << damaged_ << ' ' << end_.errors.size()
                  << ' ' << grown << ' ' << (tests::open_files().size() - descriptors) << std::endl;
        char byte = 0;
        while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
        }
    }

private:
    static std::uint32_t number(const Arguments& a, std::size_t i) {
        return static_cast<std::uint32_t>(std::stoul(a.at(kFirstOwnArgument + i)));
    }
    static EndOptions options(std::uint32_t count) {
        EndOptions chosen;
        chosen.memory = std::size_t{count} * (kReceivesPerPeer + 1) * (kLargest + 256) + 65536;
        chosen.send_cq = count * 8;
        chosen.one_cq = true;
        return chosen;
    }

    void prepare(Peer& peer) {
        peer.vi = end_.create_vi();
        for (VIP_DESCRIPTOR*& d : peer.receives) {
            d = end_.message(end_.buffer(kLargest, 'r'), kLargest);
            require(VipPostRecv(peer.vi, d, end_.region), "VipPostRecv");
        }
        peer.send = end_.message(end_.buffer(kLargest, 's'), kLargest);
    }

    // Each process asks each, then waits for one after the other.
    void connect_all(const std::string& run) {
        const auto name = [&](std::uint32_t from, std::uint32_t to) {
            return run + "-" + std::to_string(from) + "-" + std::to_string(to);
        };
        for (std::uint32_t i = 0; i < count_; ++i) {
            if (i == self_) continue;
            Address local(end_.nic, name(self_, i)), remote(end_.nic, name(i, self_));
            require(VipConnectPeerRequest(peers_[i].vi, local.get(), remote.get(), 60'000),
                    "VipConnectPeerRequest");
        }
        for (std::uint32_t i = 0; i < count_; ++i) {
            VIP_VI_ATTRIBUTES attributes{};
            if (i != self_) require(VipConnectPeerWait(peers_[i].vi, &attributes), "VipConnectPeerWait");
        }
    }

    std::uint32_t some_size() {
        // Small ones are as frequent as large ones.
        const std::uint32_t limit = 32u << random_() % 11;
        return sizeof(Head) + static_cast<std::uint32_t>(random_() % (limit - sizeof(Head) + 1));
    }

    void answer(std::uint32_t to) {
        Peer& peer = peers_[to];
        if (peer.sending) {
            peer.answer_due = true;
            return;
        }
        const Head head{self_, to, peer.sent++, some_size()};
        char* data = static_cast<char*>(peer.send->DS[0].Local.Data.Address);
        write_body(data, head);
        conformance::fill(peer.send, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE,
                          {end_.piece(data, head.bytes)}, std::nullopt, head.number);
        peer.sending = true;
        require(VipPostSend(peer.vi, peer.send, end_.region), "VipPostSend");
    }

    void take(std::uint32_t from) {
        Peer& peer = peers_[from];
        VIP_DESCRIPTOR* done = nullptr;
        require(VipRecvDone(peer.vi, &done), "VipRecvDone");
        const Head wanted{from, self_, peer.received, done->CS.Length};
        const char* data = static_cast<const char*>(done->DS[0].Local.Data.Address);
        const bool right = done == peer.receives[peer.received % kReceivesPerPeer] &&
                           (done->CS.Status & VIP_STATUS_IMMEDIATE) != 0 &&
                           done->CS.ImmediateData == peer.received && right_body(data, wanted);
        damaged_ += right ? 0 : 1;
        ++peer.received;
        ++messages_;
        bytes_ += done->CS.Length;
        conformance::fill(done, VIP_CONTROL_OP_SENDRECV,
                          {end_.piece(done->DS[0].Local.Data.Address, kLargest)});
        require(VipPostRecv(peer.vi, done, end_.region), "VipPostRecv");
        answer(from);
    }

    void turn(VIP_ULONG limit) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        const VIP_RETURN code = VipCQWait(end_.send_cq, limit, &vi, &receive);
        if (code == VIP_TIMEOUT) return;
        require(code, "VipCQWait");
        std::uint32_t i = 0;
        while (i < count_ && (i == self_ || peers_[i].vi != vi)) ++i;
        require(i < count_, "a completion of no VI of ours");
        if (receive) {
            take(i);
            return;
        }
        VIP_DESCRIPTOR* done = nullptr;
        require(VipSendDone(vi, &done), "VipSendDone");
        peers_[i].sending = false;
        if (peers_[i].answer_due) {
            peers_[i].answer_due = false;
            answer(i);
        }
    }

    std::uint32_t self_, count_, seconds_;
    End end_;
    std::mt19937 random_;
    std::vector<Peer> peers_;
    std::uint64_t messages_ = 0, bytes_ = 0, damaged_ = 0;
};

}  // namespace

int play_soak(const Arguments& arguments) {
    Soaker soaker(arguments);
    soaker.run();
    return 0;
}

}  // namespace viaduct::integration
