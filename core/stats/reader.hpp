// SPDX-License-Identifier: BSD-2-Clause
// The reading side of the segment described in layout.hpp. Reads with pread, never maps: the process looked
// at may do with its memory what it likes. Everything read is checked: it belongs to another process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/shm/fd.hpp"
#include "core/stats/layout.hpp"

namespace viaduct::stats {

struct Value {
    FieldKind kind = FieldKind::number;
    uint64_t number = 0;
    std::string text;
};

using Values = std::map<std::string, Value, std::less<>>;

struct SeenFailure {
    int64_t at = 0;
    uint64_t object = 0;
    uint32_t times = 0;
    std::string text;  // a line
};

struct Picture {
    pid_t pid = 0;
    std::string program;
    std::string library;
    int64_t started = 0;
    int64_t taken = 0;  // CLOCK_MONOTONIC, ns
    Values process;
    std::vector<Values> vis;  // those that live
    std::vector<SeenFailure> failures;  // the oldest first
};

enum class Look { ok, no_process, no_permission, no_stats, unreadable };

// The segment of a process, for reading.
Look open_segment(pid_t pid, Fd* out);
Look look_at(pid_t pid, Picture* out);
// The same of a segment, or of its first kRecordsAt bytes, that is open already and begins there; its owner may have
// ended.
Look look_into(int fd, size_t at, Picture* out);
// The first kRecordsAt bytes of a segment, without its VIs: whose process it is, and why its calls failed. Empty: it is
// none, or no call has failed. Does not wait, whatever the descriptor is.
std::vector<std::byte> failures_part_of(int fd);
// Processes of this user (of all users for root) that show something.
std::vector<pid_t> visible_processes();

// 0 or "" when there is no such field.
uint64_t number_of(const Values&, std::string_view name);
std::string text_of(const Values&, std::string_view name);

}  // namespace viaduct::stats
