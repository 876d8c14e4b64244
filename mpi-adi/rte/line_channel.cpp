// SPDX-License-Identifier: BSD-2-Clause
// Reading and writing of PMI-1 lines.
#include "mpi-adi/rte/line_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace viaduct::rte {
namespace {

// A launcher's descriptor may be of either kind; on a socket the process must not be killed by SIGPIPE.
ssize_t write_some(int fd, const char* data, size_t bytes) {
    const ssize_t sent = ::send(fd, data, bytes, MSG_NOSIGNAL);
    return sent >= 0 || errno != ENOTSOCK ? sent : ::write(fd, data, bytes);
}

// Some launchers hand out non-blocking descriptors.
void wait_for(int fd, short events) {
    pollfd one{fd, events, 0};
    ::poll(&one, 1, -1);
}

}  // namespace

std::optional<std::string_view> field_of(std::string_view line, std::string_view key) {
    while (!line.empty()) {
        const size_t end = line.find(' ');
        const std::string_view field = line.substr(0, end);
        if (field.size() > key.size() && field[key.size()] == '=' && field.starts_with(key))
            return field.substr(key.size() + 1);
        if (end == std::string_view::npos) break;
        line.remove_prefix(end + 1);
    }
    return std::nullopt;
}

std::optional<int> number_of(std::string_view line, std::string_view key) {
    const auto text = field_of(line, key);
    if (!text) return std::nullopt;
    int value = 0;
    const auto [rest, bad] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (bad != std::errc() || rest != text->data() + text->size()) return std::nullopt;
    return value;
}

LineChannel::LineChannel(int fd) : fd_(Fd(fd)) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

bool LineChannel::send(std::string line) {
    line += '\n';
    size_t done = 0;
    while (done < line.size()) {
        const ssize_t sent = write_some(fd_.ours(), line.data() + done, line.size() - done);
        if (sent > 0) {
            done += static_cast<size_t>(sent);
        } else if (errno == EAGAIN) {
            wait_for(fd_.ours(), POLLOUT);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

std::optional<std::string> LineChannel::receive() {
    for (;;) {
        if (const size_t end = pending_.find('\n'); end != std::string::npos) {
            std::string line = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            return line;
        }
        if (pending_.size() > kLongestLine) return std::nullopt;
        char piece[4096];
        const ssize_t got = ::read(fd_.ours(), piece, sizeof piece);
        if (got > 0) {
            pending_.append(piece, static_cast<size_t>(got));
        } else if (got < 0 && errno == EAGAIN) {
            wait_for(fd_.ours(), POLLIN);
        } else if (got == 0 || errno != EINTR) {
            return std::nullopt;
        }
    }
}

bool LineChannel::wait_for_line(std::chrono::milliseconds at_most) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + at_most;
    if (pending_.find('\n') != std::string::npos) return true;
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0) return false;
        if (!fd_.is_ours()) return true;
        pollfd other{fd_.ours(), POLLIN, 0};
        const int ready = ::poll(&other, 1, static_cast<int>(left));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

void LineChannel::wait_for_end(std::chrono::milliseconds at_most) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + at_most;
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0 || !fd_.is_ours()) return;
        pollfd other{fd_.ours(), POLLIN, 0};
        const int ready = ::poll(&other, 1, static_cast<int>(left));
        if (ready < 0 && errno != EINTR) return;
        if (ready <= 0) continue;
        char piece[256];
        const ssize_t got = ::read(fd_.ours(), piece, sizeof piece);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return;
    }
}

}  // namespace viaduct::rte
