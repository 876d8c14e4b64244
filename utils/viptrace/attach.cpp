// SPDX-License-Identifier: BSD-2-Clause
// The tool makes the memory for the record and has the agent hand it to the process (kTrace), so that what was recorded
// is here whatever becomes of the process: it may be killed, execute another program or stand still. What is in the
// memory is the process': it is copied into a file as it is, and read with the same checks as any other (read.cpp).
#include "utils/viptrace/attach.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>

#include "core/agent/link.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/shm/segment.hpp"
#include "core/stats/reader.hpp"
#include "utils/common/error.hpp"
#include "utils/viptrace/read.hpp"
#include "utils/viptrace/record.hpp"

namespace viaduct::viptrace {

namespace {

using tools::ToolError;

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kBetweenLooks = 10 * kMillisecond;

volatile std::sig_atomic_t enough = 0;

LinkOptions as_tool() {
    LinkOptions options;
    options.start_agent = false;
    options.hello_flags = kagent::kHelloTool;
    return options;
}

class Attached {
public:
    // Throws ToolError when the process cannot be recorded.
    Attached(pid_t pid, uint64_t capacity) : pid_(pid), link_(std::make_unique<AgentLink>(as_tool())) {
        Fd segment;
        switch (stats::open_segment(pid, &segment)) {
            case stats::Look::ok:
                break;
            case stats::Look::no_process:
                throw refusal("there is no such process");
            case stats::Look::no_permission:
                throw refusal("it is another user's, or may not be looked into");
            default:
                throw refusal("it has no NIC open");
        }
        if (capacity <= (SIZE_MAX - kEventsAt) / sizeof(Event))
            memory_ = Segment::reserve("viaduct-trace", kEventsAt + capacity * sizeof(Event));
        if (memory_.fd() < 0 ||
            ::posix_fallocate(memory_.fd(), 0, static_cast<off_t>(kEventsAt + capacity * sizeof(Event))) != 0)
            throw refusal("no memory for so many events");
        link_->on_event([this](const Mail& news, uint64_t) { over_ |= news.type() == kagent::Type::kTraceOver; });
        ask(std::move(segment));
        wait_until_it_records();
    }

    // Whether the process has ended, or is another program now, or the agent has ended.
    bool is_over() {
        link_->pump();
        return over_ || link_->socket() < 0;
    }
    pid_t pid() const { return pid_; }
    int socket() const { return link_->socket(); }

    // The process records no more. One that stands still cannot say so: what it has written is there.
    void stop() {
        const bool alive = !is_over();
        link_.reset();
        uint32_t ended = 0;
        for (const int64_t until = now_ns() + limit_ns(TimeLimit::trace_ends); alive && ended != 1 && now_ns() < until;
             pause())
            if (!read(offsetof(Header, ended), &ended, sizeof ended)) break;
    }

    // Into a file of the folder; says what is in it.
    std::string save(const std::string& folder) const {
        uint64_t written = 0, capacity = 0;
        const uint64_t room = (size() - kEventsAt) / sizeof(Event);
        if (!read(offsetof(Header, written), &written, sizeof written) ||
            !read(offsetof(Header, capacity), &capacity, sizeof capacity))
            throw refusal("its record cannot be read");
        const uint64_t there = std::min({written, capacity, room});
        std::string path;
        const Fd file = make_file(folder, &path);
        std::array<std::byte, 1 << 16> piece;
        const uint64_t bytes = kEventsAt + there * sizeof(Event);
        for (uint64_t at = 0; at < bytes;) {
            const size_t now = std::min<uint64_t>(bytes - at, piece.size());
            if (!read(at, piece.data(), now)) throw refusal("its record cannot be read");
            if (::write(file.get(), piece.data(), now) != static_cast<ssize_t>(now))
                throw ToolError(path + ": " + std::strerror(errno));
            at += now;
        }
        return fmt::format("{} events of process {} in {}", there, pid_, path);
    }

private:
    static void pause() {
        const timespec short_time{0, kBetweenLooks};
        ::nanosleep(&short_time, nullptr);
    }
    ToolError refusal(const std::string& why) const { return ToolError(fmt::format("process {}: {}", pid_, why)); }
    uint64_t size() const {
        struct stat s {};
        return ::fstat(memory_.fd(), &s) == 0 ? static_cast<uint64_t>(s.st_size) : kEventsAt;
    }
    bool read(uint64_t at, void* to, size_t bytes) const {
        return ::pread(memory_.fd(), to, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
    }

    void ask(Fd segment) {
        Mail request(kagent::Type::kTrace), answer;
        request.descriptors.push_back(std::move(segment));
        request.descriptors.emplace_back(::fcntl(memory_.fd(), F_DUPFD_CLOEXEC, 3));
        const Deadline until = now_ns() + limit_ns(TimeLimit::trace_agent);
        uint32_t ticket = 0;
        Status status = link_->start(std::move(request), &ticket, until);
        if (status == Status::ok) status = link_->await(ticket, until, &answer);
        if (status != Status::ok)
            throw refusal("its agent does not answer: " + link_->last_error() +
                          " (is VIADUCT_AGENT here as it is there?)");
        kagent::Error error;
        if (answer.type() == kagent::Type::kError && answer.get(&error)) {
            error.text[sizeof error.text - 1] = 0;
            throw refusal(error.text);
        }
    }

    void wait_until_it_records() {
        uint64_t magic = 0;
        for (const int64_t until = now_ns() + limit_ns(TimeLimit::trace_begins); magic != kRecordMagic; pause()) {
            if (!read(0, &magic, sizeof magic)) throw refusal("its record cannot be read");
            if (magic == kRefusedMagic) throw refusal("it is recorded already (viptrace record)");
            if (magic == kRecordMagic) return;
            if (is_over()) throw refusal("it has ended");
            if (enough != 0 || now_ns() >= until)
                throw refusal("it does not begin: it is stopped, or its library is older than this tool");
        }
    }

    Fd make_file(const std::string& folder, std::string* path) const {
        for (int turn = 0; turn < 1000; ++turn) {
            *path = fmt::format("{}/{}.{}{}", folder, pid_, turn, kSuffix);
            Fd fd(::open(path->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
            if (fd.valid()) return fd;
            if (errno != EEXIST) break;
        }
        throw ToolError(*path + ": " + std::strerror(errno));
    }

    const pid_t pid_;
    Segment memory_;
    bool over_ = false;
    std::unique_ptr<AgentLink> link_;
};

using All = std::vector<std::unique_ptr<Attached>>;

void wait_for_the_end(const All& all, double seconds) {
    const int64_t until = seconds > 0 ? now_ns() + static_cast<int64_t>(seconds * 1e9) : INT64_MAX;
    while (enough == 0 && now_ns() < until) {
        std::vector<pollfd> sockets;
        for (const auto& a : all)
            if (!a->is_over()) sockets.push_back({a->socket(), POLLIN, 0});
        if (sockets.empty()) return;
        // A signal may come just before: it is seen a tenth of a second later.
        const int64_t left = std::min<int64_t>((until - now_ns()) / kMillisecond + 1, 100);
        ::poll(sockets.data(), sockets.size(), static_cast<int>(std::max<int64_t>(left, 0)));
    }
}

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { enough = 1; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

int attach(const std::string& folder, uint64_t events, double seconds, const std::vector<pid_t>& pids) {
    make_folder(folder);
    catch_signals();
    All all;
    int status = tools::kExitWell;
    const auto tell = [&status](const ToolError& error) {
        std::fprintf(stderr, "viptrace: %s\n", error.what());
        status = tools::kExitProblem;
    };
    for (const pid_t pid : pids) {
        if (std::any_of(all.begin(), all.end(), [pid](const auto& a) { return a->pid() == pid; })) continue;
        try {
            all.push_back(std::make_unique<Attached>(pid, std::bit_ceil(events)));
        } catch (const ToolError& error) {
            tell(error);
        }
    }
    if (all.empty()) return tools::kExitProblem;
    std::printf("recording %zu process%s, until Ctrl-C\n", all.size(), all.size() == 1 ? "" : "es");
    std::fflush(stdout);
    wait_for_the_end(all, seconds);
    for (const auto& a : all) {
        try {
            a->stop();
            std::printf("%s\n", a->save(folder).c_str());
        } catch (const ToolError& error) {
            tell(error);
        }
    }
    return status;
}

}  // namespace viaduct::viptrace
