// SPDX-License-Identifier: BSD-2-Clause
// viaduct_port_limits: what a port carries without VI. Started twice, one end with --lead, which prints one
// number:
//
//   viaduct_port_limits frames|udp|tcp ping|stream [--lead] --bytes N [--count N]
//                       [--device VDEV --own MAC --other MAC] [--ip OTHER] [--port N]
//
//   ping    half a round trip in ns, the median; the other end answers with a message of the same size
//   stream  10^6 bytes a second one way, at most 64 messages under way, every 16th answered; up to 4 MiB each by tcp
//
// Waiting is as in the provider: 100 looks, then the processor is offered to others.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "wire.hpp"

namespace viaduct::bench {

void give_up(const std::string& why) {
    std::fprintf(stderr, "viaduct_port_limits: %s\n", why.c_str());
    std::exit(1);
}

namespace {

constexpr uint32_t kWindow = 64, kAnswerEvery = 16, kAnswerBytes = 64;
constexpr int kLooks = 100;

int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

struct Setting {
    std::string wire, test, device, own, other, ip;
    bool lead = false;
    uint32_t bytes = 64, count = 20000;
    uint16_t port = 4793;
};

class End {
public:
    End(Wire& wire, const Setting& s)
        : wire_(wire), s_(s), out_(s.bytes + kAnswerBytes), in_(s.bytes + kAnswerBytes) {}

    double lead() {
        meet();
        return s_.test == "ping" ? ping() : stream();
    }

    // Answers until it is ended from outside.
    [[noreturn]] void follow() {
        uint32_t taken = 0;
        for (;;) {
            const uint32_t number = await(s_.bytes, -1);
            if (s_.test == "ping" || number == 0) {
                say(number, number == 0 ? first_answer() : s_.bytes);
                continue;
            }
            if (++taken % kAnswerEvery == 0 || number == s_.count) say(taken, kAnswerBytes);
        }
    }

private:
    uint32_t first_answer() const { return s_.test == "ping" ? s_.bytes : kAnswerBytes; }

    void say(uint32_t number, uint32_t bytes) {
        std::memcpy(out_.data(), &number, sizeof number);
        while (!wire_.send(out_.data(), bytes)) wire_.flush();
        wire_.flush();
    }

    // The number of the next message; -1 as a limit waits for ever, else UINT32_MAX after so many ns.
    uint32_t await(uint32_t bytes, int64_t limit) {
        const int64_t until = limit < 0 ? INT64_MAX : now_ns() + limit;
        for (int looks = 0;; ++looks) {
            if (wire_.receive(in_.data(), bytes) != 0) {
                uint32_t number;
                std::memcpy(&number, in_.data(), sizeof number);
                return number;
            }
            if (looks < kLooks) continue;
            ::sched_yield();
            if (limit >= 0 && now_ns() > until) return UINT32_MAX;
        }
    }

    // The other end may start later, and the first frames on a new port may be lost.
    void meet() {
        for (int tries = 0;; ++tries) {
            if (tries == 1000) give_up("the other end does not answer");
            if (s_.wire != "tcp" || tries == 0) say(0, s_.bytes);
            if (await(first_answer(), 10'000'000) == 0) break;
        }
        while (await(first_answer(), 20'000'000) != UINT32_MAX) {
        }
    }

    double ping() {
        std::vector<int64_t> took;
        took.reserve(s_.count);
        for (uint32_t i = 1; i <= s_.count; ++i) {
            const int64_t began = now_ns();
            say(i, s_.bytes);
            while (await(s_.bytes, 1'000'000'000) != i)
                if (now_ns() - began > 2'000'000'000) give_up("an answer was lost");
            if (i > s_.count / 10) took.push_back(now_ns() - began);
        }
        std::nth_element(took.begin(), took.begin() + static_cast<ptrdiff_t>(took.size() / 2), took.end());
        return static_cast<double>(took[took.size() / 2]) / 2;
    }

    double stream() {
        uint32_t answered = 0;
        const int64_t began = now_ns();
        for (uint32_t sent = 0; answered != s_.count;) {
            while (sent != s_.count && sent - answered < kWindow) {
                const uint32_t number = sent + 1;
                std::memcpy(out_.data(), &number, sizeof number);
                if (!wire_.send(out_.data(), s_.bytes)) break;
                ++sent;
            }
            wire_.flush();
            const uint32_t number = await(kAnswerBytes, 1'000'000'000);
            if (number == UINT32_MAX) give_up("messages were lost");
            answered = std::max(answered, number);
        }
        return static_cast<double>(s_.bytes) * s_.count * 1e3 / static_cast<double>(now_ns() - began);
    }

    Wire& wire_;
    const Setting& s_;
    std::vector<std::byte> out_, in_;
};

Setting read(int argc, char** argv) {
    if (argc < 3) give_up("frames|udp|tcp ping|stream ...");
    Setting s;
    s.wire = argv[1];
    s.test = argv[2];
    for (int i = 3; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--lead") {
            s.lead = true;
            continue;
        }
        if (i + 1 == argc) give_up(word + " lacks its value");
        const char* value = argv[++i];
        if (word == "--bytes")
            s.bytes = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
        else if (word == "--count")
            s.count = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
        else if (word == "--port")
            s.port = static_cast<uint16_t>(std::strtoul(value, nullptr, 10));
        else if (word == "--device")
            s.device = value;
        else if (word == "--own")
            s.own = value;
        else if (word == "--other")
            s.other = value;
        else if (word == "--ip")
            s.ip = value;
        else
            give_up("unknown option " + word);
    }
    const uint32_t most = s.wire == "tcp" ? 4u << 20 : 16000;
    if (s.bytes < 4 || s.bytes > most || s.count < 100)
        give_up("4 to " + std::to_string(most) + " bytes, at least 100 messages");
    return s;
}

}  // namespace
}  // namespace viaduct::bench

int main(int argc, char** argv) {
    using namespace viaduct::bench;
    const Setting s = read(argc, argv);
    const std::unique_ptr<Wire> wire = s.wire == "frames" ? open_frames(s.device, s.own, s.other)
                                       : s.wire == "udp"  ? open_udp(s.ip, s.port, s.lead)
                                       : s.wire == "tcp"  ? open_tcp(s.ip, s.port, s.lead)
                                                          : nullptr;
    if (wire == nullptr) give_up("frames, udp or tcp");
    End end(*wire, s);
    if (!s.lead) end.follow();
    std::printf("%.1f\n", end.lead());
    std::fflush(stdout);
    ::_exit(0);  // what DPDK has started ends with the process
}
