// SPDX-License-Identifier: BSD-2-Clause
#include "core/stats/reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include "core/clock/clock.hpp"
#include "core/process/shown_memory.hpp"
#include "core/text/printable.hpp"

namespace viaduct::stats {

namespace {

constexpr uint32_t kMostRecordBytes = 1 << 16;
constexpr uint32_t kMostRecords = 1 << 16;

bool read_at(int fd, size_t at, void* to, size_t bytes) {
    return ::pread(fd, to, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
}

std::string text_at(const char* bytes, size_t most) { return printable({bytes, ::strnlen(bytes, most)}); }

Value value_of(const Field& field, const std::byte* record, size_t record_bytes) {
    Value value;
    value.kind = field.kind;
    if (field.offset > record_bytes || field.bytes > record_bytes - field.offset) return value;
    const std::byte* at = record + field.offset;
    if (field.kind == FieldKind::text) {
        value.text = text_at(reinterpret_cast<const char*>(at), field.bytes);
    } else if (field.bytes <= sizeof value.number) {
        std::memcpy(&value.number, at, field.bytes);  // little-endian: the low bytes are the number
    }
    return value;
}

Values values_of(const Field* fields, uint32_t count, const std::byte* record, size_t record_bytes) {
    Values values;
    for (uint32_t i = 0; i < std::min(count, kMostFields); ++i)
        values[text_at(fields[i].name, sizeof fields[i].name)] = value_of(fields[i], record, record_bytes);
    return values;
}

// What is half written, or was overwritten meanwhile, is left out.
std::vector<SeenFailure> failures_of(std::byte* ring_bytes) {
    std::vector<std::pair<uint64_t, SeenFailure>> found;
    for (FailureRecord& r : reinterpret_cast<FailureRing*>(ring_bytes)->records) {
        const uint64_t number = r.number.load(std::memory_order_relaxed);
        if (number == 0) continue;
        for (auto [text, bytes] :
             {std::pair(r.call, sizeof r.call), std::pair(r.peer, sizeof r.peer), std::pair(r.text, sizeof r.text),
              std::pair(r.said, sizeof r.said), std::pair(r.cure, sizeof r.cure)})
            text[bytes - 1] = 0;
        char line[kFailureLineBytes];
        write_failure(r, line, sizeof line);
        found.push_back({number, {r.at, r.object, r.times, printable(line)}});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<SeenFailure> out;
    for (auto& [number, failure] : found) out.push_back(std::move(failure));
    return out;
}

}  // namespace

Look open_segment(pid_t pid, Fd* out) {
    const auto is_it = [pid](const Fd& fd) {
        uint32_t owner = 0;
        return read_at(fd.get(), offsetof(StatsHeader, pid), &owner, sizeof owner) && owner == own_number_of(pid);
    };
    switch (find_shown_memory(pid, kSegmentName, is_it, out)) {
        case Shown::found:
            return Look::ok;
        case Shown::no_process:
            return Look::no_process;
        case Shown::no_permission:
            return Look::no_permission;
        case Shown::no_memory:
            break;
    }
    return Look::no_stats;
}

Look look_at(pid_t pid, Picture* out) {
    Fd fd;
    if (const Look found = open_segment(pid, &fd); found != Look::ok) return found;
    out->pid = pid;
    return look_into(fd.get(), 0, out);
}

Look look_into(int fd, size_t at, Picture* out) {
    auto bytes = std::make_unique<std::byte[]>(kRecordsAt);
    if (!read_at(fd, at, bytes.get(), kRecordsAt)) return Look::unreadable;
    const auto* h = reinterpret_cast<const StatsHeader*>(bytes.get());
    if (h->magic != kMagic || h->version != kVersion) return Look::unreadable;
    out->failures = failures_of(bytes.get() + kFailuresAt);
    out->program = text_at(h->program, sizeof h->program);
    out->library = text_at(h->library, sizeof h->library);
    out->started = h->started;
    out->taken = now_ns();
    out->process = values_of(h->process_fields, h->process_field_count, bytes.get(), kHeaderBytes);
    out->vis.clear();
    const uint32_t record_bytes = h->record_bytes.load();
    const uint32_t records = std::min(h->record_count.load(), kMostRecords);
    if (record_bytes == 0 || record_bytes > kMostRecordBytes) return Look::ok;
    std::vector<std::byte> record(record_bytes);
    for (uint32_t i = 0; i < records; ++i) {
        if (!read_at(fd, at + h->records_at + size_t{i} * record_bytes, record.data(), record_bytes)) break;
        Values vi = values_of(h->vi_fields, h->vi_field_count, record.data(), record_bytes);
        if (number_of(vi, "handle") != 0) out->vis.push_back(std::move(vi));
    }
    return Look::ok;
}

std::vector<std::byte> failures_part_of(int fd) {
    std::vector<std::byte> bytes(kRecordsAt);
    // Reading a memory file does not wait; that of anything else could.
    if (::fcntl(fd, F_GET_SEALS) < 0 || !read_at(fd, 0, bytes.data(), bytes.size())) return {};
    auto* h = reinterpret_cast<StatsHeader*>(bytes.data());
    if (h->magic != kMagic || h->version != kVersion) return {};
    h->record_count.store(0, std::memory_order_relaxed);
    const auto& failures = reinterpret_cast<const FailureRing*>(bytes.data() + kFailuresAt)->records;
    const bool failed = std::any_of(std::begin(failures), std::end(failures), [](const FailureRecord& r) {
        return r.number.load(std::memory_order_relaxed) != 0 && r.kind != FailureKind::notice;
    });
    return failed ? bytes : std::vector<std::byte>();
}

std::vector<pid_t> visible_processes() {
    std::vector<pid_t> pids = all_processes();
    std::erase_if(pids, [](pid_t pid) {
        Fd unused;
        return open_segment(pid, &unused) != Look::ok;
    });
    return pids;
}

uint64_t number_of(const Values& values, std::string_view name) {
    const auto found = values.find(name);
    return found == values.end() ? 0 : found->second.number;
}

std::string text_of(const Values& values, std::string_view name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second.text;
}

}  // namespace viaduct::stats
