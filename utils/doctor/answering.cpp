// SPDX-License-Identifier: BSD-2-Clause
#include "utils/doctor/answering.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "utils/common/error.hpp"
#include "utils/common/stop.hpp"
#include "utils/doctor/neighbours.hpp"
#include "utils/doctor/probe.hpp"
#include "utils/doctor/report.hpp"

namespace viaduct::doctor {

namespace {

constexpr int kSliceMs = 100;
constexpr int64_t kSlice = 100'000'000;
// One is examined after the other: one that goes on asking does not keep the others away.

class Examination {
public:
    Examination(Fd socket, const Notes& notes) : channel_(std::move(socket)), notes_(notes) {}

    std::string name() const { return text_of(channel_.there().sin_addr); }

    void run() {
        const int64_t until = now_ns() + limit_ns(TimeLimit::doctor_examination);
        int64_t last = now_ns();
        while (!tools::stopped() && now_ns() - last < limit_ns(TimeLimit::doctor_question) && now_ns() < until) {
            Json question;
            if (!channel_.receive(&question, kSlice)) {
                if (!channel_.is_open()) return;
                continue;
            }
            channel_.send(answer(question));
            last = now_ns();
        }
    }

private:
    Json answer(const Json& question) {
        const std::string what = text_in(question, "do");
        if (what == "report") return report();
        if (what == "open") return open();
        if (what == "send") return send(question);
        if (what == "count") return count(question);
        if (what == "request_port") return request_port(question);
        if (what == "ask_you") return ask_you(question);
        if (what == "owners") return owners(question);
        return {{"error", "what is that?"}};
    }

    Json report() {
        Report r = own_report();
        for (std::string& line : notes_.all()) r.faults.push_back(std::move(line));
        Json out = to_json(r);
        out["sees_you_at"] = text_of(channel_.there().sin_addr);
        out["is_at"] = text_of(channel_.here().sin_addr);
        std::string interface;
        out["mtu"] = mtu_of_address(channel_.here().sin_addr, &interface);
        out["interface"] = interface;
        return out;
    }

    Json open() {
        Json ports = Json::array();
        for (auto& probe : probes_) {
            probe.emplace(channel_.here().sin_addr);
            if (!probe->valid()) return {{"error", "no UDP socket"}};
            ports.push_back(probe->port());
        }
        return {{"ports", ports}};
    }

    Probe* probe_of(const Json& question) {
        auto& probe = probes_[static_cast<size_t>(number_in(question, "socket", 0, 1))];
        return probe ? &*probe : nullptr;
    }

    static Series series_in(const Json& question) {
        Series s;
        s.number = static_cast<uint32_t>(number_in(question, "series", 0, UINT32_MAX));
        s.count = static_cast<uint32_t>(number_in(question, "count", 1, kMostOfSeries));
        s.bytes = static_cast<uint32_t>(number_in(question, "bytes", kLeastProbe, kMostProbe));
        s.gap_us = static_cast<uint32_t>(number_in(question, "gap_us", 0, 10'000));
        return s;
    }

    // To the host that asks, and to no other.
    Json send(const Json& question) {
        Probe* const probe = probe_of(question);
        if (probe == nullptr) return {{"error", "open first"}};
        sockaddr_in to = channel_.there();
        to.sin_port = htons(static_cast<uint16_t>(number_in(question, "to", 1, 65535)));
        const Sent sent = probe->send(to, series_in(question));
        return {{"sent", sent.sent}, {"too_large", sent.too_large}, {"errno", sent.error}};
    }

    Json count(const Json& question) {
        Probe* const probe = probe_of(question);
        if (probe == nullptr) return {{"error", "open first"}};
        const Series s = series_in(question);
        const Received got = probe->collect(s.number, s.count, number_in(question, "wait_ms", 0, 2000) * 1'000'000);
        return {{"count", got.count}, {"damaged", got.damaged}, {"twice", got.twice}};
    }

    Json request_port(const Json& question) {
        sockaddr_in at = channel_.here();
        at.sin_port = htons(static_cast<uint16_t>(number_in(question, "port", 1, 65535)));
        return {{"answers", version_spoken_at(at, 3, limit_ns(TimeLimit::doctor_version_near))},
                {"taken", port_is_taken(at)}};
    }

    // The port of requests of the host that asks, and of no other.
    Json ask_you(const Json& question) {
        sockaddr_in at = channel_.there();
        at.sin_port = htons(static_cast<uint16_t>(number_in(question, "port", 1, 65535)));
        return {{"answers", version_spoken_at(at, 5, limit_ns(TimeLimit::doctor_version_near))}};
    }

    // Of this end's address, and of the other one's.
    Json owners(const Json& question) {
        std::string interface;
        if (mtu_of_address(channel_.here().sin_addr, &interface) == 0) return {{"asked", false}};
        const bool own = number_in(question, "own", 0, 1) != 0;
        const Owners found = owners_of(own ? channel_.here().sin_addr : channel_.there().sin_addr, interface);
        return {{"asked", found.asked}, {"macs", found.macs}};
    }

    Channel channel_;
    const Notes& notes_;
    std::array<std::optional<Probe>, 2> probes_;
};

}  // namespace

Fd listen_for_examinations() {
    Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(kDoctorPort);
    if (!listener.valid() || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(listener.get(), 4) != 0)
        throw tools::ToolError(fmt::format("TCP port {} cannot be had: {}", kDoctorPort, std::strerror(errno)));
    return listener;
}

void answer_examinations(const Fd& listener, const Notes& notes,
                         const std::function<void(const std::string&)>& on_line) {
    while (!tools::stopped()) {
        pollfd p{listener.get(), POLLIN, 0};
        ::poll(&p, 1, kSliceMs);
        Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.valid()) continue;
        Examination examination(std::move(socket), notes);
        on_line(fmt::format("{} examines this end", examination.name()));
        try {
            examination.run();
        } catch (const std::exception& error) {
            on_line(fmt::format("the examination has ended: {}", error.what()));
        }
    }
}

}  // namespace viaduct::doctor
