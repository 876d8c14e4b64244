// SPDX-License-Identifier: BSD-2-Clause
// Lines of `key=value` fields over a descriptor: what PMI-1 speaks (spec/mpi 1.3). One reader buffer,
// because answers come in pieces and, from a hurried server, several at once. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/shm/kept_fd.hpp"

namespace viaduct::rte {

// A field of a line; none if it is not there.
std::optional<std::string_view> field_of(std::string_view line, std::string_view key);
// The same as a number; none also when it is not one.
std::optional<int> number_of(std::string_view line, std::string_view key);

class LineChannel {
public:
    // A line longer than this comes from no PMI server: the channel is given up.
    static constexpr size_t kLongestLine = 64 * 1024;

    // Owns the descriptor, and keeps programs started later from inheriting it. Once the program has closed it the
    // other side has ended, whatever file has its number then.
    explicit LineChannel(int fd);
    LineChannel(const LineChannel&) = delete;
    LineChannel& operator=(const LineChannel&) = delete;

    // Writes the line and its end, whole. False when the other side has ended.
    [[nodiscard]] bool send(std::string line);
    // The next line, without its end. Waits as long as the other side lives: it is the launcher, and its end
    // is seen as the end of the channel.
    std::optional<std::string> receive();
    // Whether something to receive comes within this time; the end of the channel counts.
    [[nodiscard]] bool wait_for_line(std::chrono::milliseconds at_most) const;
    // Waits until the other side ends, at most so long; what it still says is dropped.
    void wait_for_end(std::chrono::milliseconds at_most);
    void close() { fd_.reset(); }

private:
    KeptFd fd_;
    std::string pending_;
};

}  // namespace viaduct::rte
