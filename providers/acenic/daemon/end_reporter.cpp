// SPDX-License-Identifier: BSD-2-Clause
// The reporter's half of reporting a program's end (providers/acenic/end_report.hpp): one thread, one program, one
// port. A frame is answered only after a look at the port's lock: a process that has taken the port since then sends
// and gets frames of its own, and whatever comes for it was sent after it took the lock.
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/agent/meeting_point.hpp"
#include "core/clock/clock.hpp"
#include "core/process/peer_process.hpp"
#include "providers/acenic/end_report.hpp"
#include "providers/acenic/port_lock.hpp"
#include "providers/packet/message.hpp"
#include "providers/wire/answer_rate.hpp"
#include "providers/wire/encapsulation.hpp"
#include "providers/wire/no_link_answer.hpp"

namespace viaduct::acenic {

namespace {

constexpr int64_t kAnswersFor = 2'000'000'000;  // ns
constexpr size_t kLeastFrame = 60;              // of Ethernet

class Reporter {
public:
    explicit Reporter(const PortSpec& spec)
        : spec_(spec), link_{spec.address}, owner_lock_(spec), frames_(1 << 16) {}

    // Receives nothing yet.
    bool open() {
        socket_ = Fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        return owner_lock_.is_valid() && socket_.valid() && bind(0);
    }
    void answer_frames() {
        if (!bind(wire::kEtherType)) return;
        for (const int64_t until = now_ns() + kAnswersFor; now_ns() < until && !owner_lock_.has_new_holder();) {
            pollfd p{socket_.get(), POLLIN, 0};
            ::poll(&p, 1, static_cast<int>((until - now_ns()) / 1'000'000) + 1);
            while (answer_one()) {
            }
        }
    }

private:
    bool bind(uint16_t type) {
        sockaddr_ll at{};
        at.sll_family = AF_PACKET;
        at.sll_protocol = htons(type);
        at.sll_ifindex = static_cast<int>(::if_nametoindex(spec_.interface.c_str()));
        return at.sll_ifindex != 0 && ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    }

    // False: none has come, or another process has the port.
    bool answer_one() {
        const ssize_t n = ::recv(socket_.get(), frames_.data(), frames_.size(), 0);
        if (n < 0) return errno == EINTR;
        if (owner_lock_.has_new_holder()) return false;
        NicAddress from;
        std::span<const std::byte> frame;
        std::byte answer[wire::kHeaderBytes];
        if (!link_.read({frames_.data(), static_cast<size_t>(n)}, &from, &frame) ||
            !wire::make_no_link_answer(frame, answer) || !rate_.allows(now_ns()))
            return true;
        std::byte out[std::max<size_t>(kLeastFrame, wire::Ethernet::kBytes + sizeof answer)] = {};
        link_.write(out, from, sizeof answer);
        std::memcpy(out + wire::Ethernet::kBytes, answer, sizeof answer);
        ::send(socket_.get(), out, sizeof out, MSG_DONTWAIT);
        return true;
    }

    const PortSpec& spec_;
    const wire::Ethernet link_;
    PortLockView owner_lock_;
    Fd socket_;
    wire::AnswerRate rate_{10'000, 2'000};  // a program may have had a thousand connections
    std::vector<std::byte> frames_;
};

// False: it has closed its port.
bool await_end(const Fd& program, const Fd& process) {
    for (;;) {
        pollfd fds[2] = {{program.get(), POLLIN, 0}, {process.get(), POLLIN, 0}};
        ::poll(fds, process.valid() ? 2 : 1, -1);
        char word = 0;
        std::vector<Fd> files;
        const Status said = packet::take_message(program.get(), &word, sizeof word, &files);
        if (said == Status::ok && word == kReportClosed) return false;
        if (said == Status::closed || fds[1].revents != 0) return true;
    }
}

}  // namespace

int report_end(const PortSpec& spec, const std::string& address) {
    Reporter reporter(spec);
    Fd program;
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (try_connect(address, &program) != 0 || !reporter.open() ||
        ::getsockopt(program.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return 1;
    bool ended = false;
    const Fd process = peer_process(program.get(), peer.pid, &ended);
    if (ended || !packet::send_message(program.get(), &kReportReady, sizeof kReportReady)) return 1;
    if (await_end(program, process)) reporter.answer_frames();
    return 0;
}

}  // namespace viaduct::acenic
