// SPDX-License-Identifier: BSD-2-Clause
// The program's half of reporting its end; see end_report.hpp.
#include "providers/acenic/end_report.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "core/agent/meeting_point.hpp"
#include "core/agent/start_agent.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "providers/packet/message.hpp"

namespace viaduct::acenic {

namespace {

constexpr int kSliceMs = 20;  // between two looks whether the process is still there

bool await_readable(int fd, pid_t process, int64_t deadline) {
    for (;;) {
        const bool late = now_ns() >= deadline || (::kill(process, 0) != 0 && errno == ESRCH);
        pollfd p{fd, POLLIN, 0};
        const int n = ::poll(&p, 1, late ? 0 : kSliceMs);
        if (n > 0) return true;
        if (late || (n < 0 && errno != EINTR)) return false;
    }
}

}  // namespace

EndReport::EndReport(Fd listener, std::string place, int64_t deadline)
    : listener_(std::move(listener)), place_(std::move(place)), deadline_(deadline) {}

std::unique_ptr<EndReport> EndReport::start(const PortSpec& spec) {
    const auto fail = [&](const std::string& why) -> std::unique_ptr<EndReport> {
        VIADUCT_LOG(info, "acenic", "%s: the end of this process is not reported: %s", spec.text.c_str(), why.c_str());
        return nullptr;
    };
    std::string tried;
    const std::string program = find_beside_vipkad("viaduct-acenicd", "VIADUCT_ACENICD", &tried);
    if (program.empty()) return fail("there is no viaduct-acenicd at " + tried);
    uint64_t drawn = 0;
    if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return fail("there are no random numbers to be had");
    const std::string address =
        "@viaduct-acenic-end-" + std::to_string(::getpid()) + "-" + std::to_string(drawn);
    Fd listener;
    std::string place, error;
    if (listen_at(address, false, &listener, &place, &error) != Status::ok) return fail(error);
    const int64_t deadline = now_ns() + limit_ns(TimeLimit::acenicd_start);
    std::unique_ptr<EndReport> report(new EndReport(std::move(listener), std::move(place), deadline));
    if (report->place_ != address) return fail("another program has its address");
    const int e = spawn_detached(program, {"viaduct-acenicd", "--port", spec.text, "--report-end", address},
                                 &report->started_);
    if (e != 0) return fail(program + " does not start: " + std::strerror(e));
    return report;
}

EndReport::~EndReport() {
    if (socket_.valid()) packet::send_message(socket_.get(), &kReportClosed, sizeof kReportClosed);
    if (place_[0] != '@') ::unlink(place_.c_str());
}

bool EndReport::await_ready() {
    while (!socket_.valid() && await_readable(listener_.get(), started_, deadline_)) {
        Fd caller(above_stdio(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
        ucred peer{};
        socklen_t bytes = sizeof peer;
        if (caller.valid() && ::getsockopt(caller.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
            peer.pid == started_ && peer.uid == ::geteuid())
            socket_ = std::move(caller);
    }
    listener_.reset();
    char word = 0;
    std::vector<Fd> files;
    const bool ready = socket_.valid() && await_readable(socket_.get(), started_, deadline_) &&
                       packet::take_message(socket_.get(), &word, sizeof word, &files) == Status::ok &&
                       word == kReportReady;
    if (!ready) VIADUCT_LOG(info, "acenic", "the end of this process is not reported: viaduct-acenicd is not ready");
    return ready;
}

}  // namespace viaduct::acenic
