// SPDX-License-Identifier: BSD-2-Clause
#include "core/stats/failures.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/sync/cancellation.hpp"
#include "core/sync/pause.hpp"
#include "core/text/code_names.hpp"

namespace viaduct::stats {

namespace {

FailureRing before_the_segment;
std::atomic<FailureRing*> ring{&before_the_segment};

constexpr uint32_t kLooksWithoutPause = 100;
constexpr timespec kPause{0, 50'000};

bool has_ended(uint32_t thread) { return ::syscall(SYS_tgkill, ::getpid(), thread, 0) != 0 && errno == ESRCH; }

// A signal handler that has interrupted the holder does not wait for its own thread. A thread that has ended inside
// holds nothing; in a forked child, that is each other thread of the parent.
class Hold {
public:
    explicit Hold(FailureRing& r) : ring_(r) {
        const int saved_errno = errno;
        const auto self = static_cast<uint32_t>(::gettid());
        int64_t end = 0;
        for (uint32_t look = 0; !held_; ++look) {
            uint32_t holder = 0;
            held_ = take_from(&holder, self);
            if (held_ || holder == self) break;
            if (look < kLooksWithoutPause) {
                cpu_pause();
                continue;
            }
            held_ = has_ended(holder) && take_from(&holder, self);
            if (held_) break;
            // The holder may have lost its processor: it gets one again in less than this time.
            if (end == 0) end = now_ns() + limit_ns(TimeLimit::failure_ring);
            if (now_ns() >= end) break;
            ::nanosleep(&kPause, nullptr);
        }
        errno = saved_errno;
    }
    ~Hold() {
        if (held_) ring_.busy.store(0, std::memory_order_release);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    explicit operator bool() const { return held_; }

private:
    bool take_from(uint32_t* holder, uint32_t self) {
        return ring_.busy.compare_exchange_strong(*holder, self, std::memory_order_acquire);
    }

    FailureRing& ring_;
    bool held_ = false;
    const CancellationHeldOff whole_;
};

template <size_t size>
void put_text(char (&to)[size], const char* text) {
    size_t n = 0;
    for (; n + 1 < size && text[n] != 0; ++n) to[n] = text[n];
    to[n] = 0;
}

bool wants_stderr() {
    // Not a guarded static: a child that is forked meanwhile would wait for ever for a thread that it does not have.
    enum Answer : int { unknown, no, yes };
    static constinit std::atomic<int> wanted{unknown};
    if (wanted.load(std::memory_order_relaxed) == unknown) {
        const char* text = ::secure_getenv("VIADUCT_WHY");
        const bool is_set = text != nullptr && *text != 0 && std::strcmp(text, "0") != 0;
        wanted.store(is_set ? yes : no, std::memory_order_relaxed);
    }
    return wanted.load(std::memory_order_relaxed) == yes;
}

bool is_repetition(const FailureRecord& r, const Failure& f) {
    return r.kind == f.kind && r.code == f.code && r.object == reinterpret_cast<uintptr_t>(f.object) &&
           std::strncmp(r.call, f.call, sizeof r.call - 1) == 0 &&
           std::strncmp(r.peer, f.peer, sizeof r.peer - 1) == 0 &&
           std::strncmp(r.text, f.text, sizeof r.text - 1) == 0 &&
           std::strncmp(r.said, f.said, sizeof r.said - 1) == 0 &&
           std::strncmp(r.cure, f.cure, sizeof r.cure - 1) == 0;
}

uint64_t number_of(const FailureRecord& r) { return r.number.load(std::memory_order_relaxed); }

// The record that this failure repeats, or null.
FailureRecord* repeated(FailureRing& r, const Failure& f) {
    for (FailureRecord& one : r.records)
        if (number_of(one) != 0 && is_repetition(one, f)) return &one;
    return nullptr;
}

// A free record, or the oldest.
FailureRecord& next_place(FailureRing& r) {
    const auto older = [](const FailureRecord& a, const FailureRecord& b) { return number_of(a) < number_of(b); };
    return *std::min_element(std::begin(r.records), std::end(r.records), older);
}

void fill(FailureRecord& r, const Failure& f) {
    r.at = now_ns();
    r.object = reinterpret_cast<uintptr_t>(f.object);
    r.code = f.code;
    r.kind = f.kind;
    r.times = 1;
    put_text(r.call, f.call);
    put_text(r.peer, f.peer);
    put_text(r.text, f.text);
    put_text(r.said, f.said);
    put_text(r.cure, f.cure);
}

void copy(const FailureRecord& from, FailureRecord* to) {
    std::memcpy(static_cast<void*>(to), static_cast<const void*>(&from), sizeof from);
}

// False: it repeats the newest record.
bool keep(const Failure& f) {
    FailureRing& r = *ring.load(std::memory_order_acquire);
    const Hold hold(r);
    if (!hold) return true;
    const uint64_t written = r.written.load(std::memory_order_relaxed);
    if (FailureRecord* known = repeated(r, f)) {
        ++known->times;
        known->at = now_ns();
        if (number_of(*known) == written) return false;
        known->number.store(written + 1, std::memory_order_release);
        r.written.store(written + 1, std::memory_order_release);
        return true;
    }
    FailureRecord& record = next_place(r);
    record.number.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    fill(record, f);
    record.number.store(written + 1, std::memory_order_release);
    r.written.store(written + 1, std::memory_order_release);
    return true;
}

// Grows a line within its bytes; counts all of it.
class Line {
public:
    Line(char* text, size_t bytes) : text_(text), bytes_(bytes) {
        if (bytes_ != 0) text_[0] = 0;
    }
    void add(const char* part, size_t most) {
        for (size_t i = 0; i < most && part[i] != 0; ++i, ++used_)
            if (used_ + 1 < bytes_) text_[used_] = part[i];
        if (bytes_ != 0) text_[used_ < bytes_ ? used_ : bytes_ - 1] = 0;
    }
    template <size_t size>
    void add(const char (&part)[size]) {
        add(part, size);
    }
    size_t used() const { return used_; }

private:
    char* text_;
    size_t bytes_;
    size_t used_ = 0;
};

void add_code(Line& line, const FailureRecord& r) {
    char names[256] = "";
    switch (r.kind) {
        case FailureKind::call:
            if (const char* name = name_of_return(r.code).name; name != nullptr) line.add(name, 64);
            break;
        case FailureKind::descriptor:
            write_status_names(r.code, names, sizeof names);
            line.add(names);
            break;
        case FailureKind::connection:
            if (const char* name = name_of_error(r.code).name; name != nullptr) line.add(name, 64);
            break;
        case FailureKind::notice:
            return;
    }
    line.add(": ");
}

}  // namespace

size_t write_failure(const FailureRecord& r, char* text, size_t bytes) {
    Line line(text, bytes);
    line.add(r.call);
    line.add(": ");
    add_code(line, r);
    line.add(r.text);
    if (r.peer[0] != 0) {
        line.add("; peer ");
        line.add(r.peer);
    }
    if (r.said[0] != 0) {
        line.add("; the peer says: ");
        line.add(r.said);
    }
    if (r.cure[0] != 0) {
        line.add("; cure: ");
        line.add(r.cure);
    }
    if (r.times > 1) {
        char times[32];
        std::snprintf(times, sizeof times, " (%u times)", r.times);
        line.add(times);
    }
    return line.used();
}

void record_failure(const Failure& failure) {
    const CancellationHeldOff whole;  // what follows writes, and a call that is cancelled must end first
    if (!keep(failure)) return;
    const bool to_stderr = wants_stderr();
    if (!to_stderr && !log::enabled(log::Level::warn)) return;
    FailureRecord record;
    std::memset(static_cast<void*>(&record), 0, sizeof record);
    fill(record, failure);
    char line[kFailureLineBytes];
    write_failure(record, line, sizeof line);
    VIADUCT_LOG(warn, "why", "%s", line);
    if (!to_stderr) return;
    const int saved_errno = errno;
    char whole_line[kFailureLineBytes + 32];
    const int n = std::snprintf(whole_line, sizeof whole_line, "viaduct[%d]: %s\n", static_cast<int>(::getpid()), line);
    if (n > 0) {
        const auto length = static_cast<size_t>(n);
        [[maybe_unused]] const ssize_t written =
            ::write(STDERR_FILENO, whole_line, length < sizeof whole_line ? length : sizeof whole_line - 1);
    }
    errno = saved_errno;
}

bool last_failure(const void* object, FailureRecord* out) {
    FailureRing& r = *ring.load(std::memory_order_acquire);
    const Hold hold(r);
    if (!hold) return false;
    const FailureRecord* newest = nullptr;
    for (const FailureRecord& record : r.records) {
        if (number_of(record) == 0 || (newest != nullptr && number_of(record) < number_of(*newest))) continue;
        if (object != nullptr && record.object != reinterpret_cast<uintptr_t>(object)) continue;
        newest = &record;
    }
    if (newest != nullptr) copy(*newest, out);
    return newest != nullptr;
}

void move_failures(FailureRing* to) {
    FailureRing& from = *ring.load(std::memory_order_acquire);
    if (to == nullptr || to == &from) return;
    const Hold hold(from);
    for (uint32_t i = 0; i < kFailureRecords; ++i) copy(from.records[i], &to->records[i]);
    to->written.store(from.written.load(std::memory_order_relaxed), std::memory_order_relaxed);
    ring.store(to, std::memory_order_release);
}

bool failures_are_in_segment() { return ring.load(std::memory_order_relaxed) != &before_the_segment; }

void reset_failures() {
    std::memset(static_cast<void*>(&before_the_segment), 0, sizeof before_the_segment);
    ring.store(&before_the_segment, std::memory_order_release);
}

}  // namespace viaduct::stats
