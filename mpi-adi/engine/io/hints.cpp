// SPDX-License-Identifier: BSD-2-Clause
// See hints.hpp.
#include "mpi-adi/engine/io/hints.hpp"

#include <charconv>
#include <limits>

namespace viaduct::mpi::io {
namespace {

constexpr int64_t kLeastBuffer = 4096;

// False: not a number in these bounds, and nothing more.
bool number_of(const std::string& text, int base, int64_t least, int64_t most, int64_t* value) {
    const char* const end = text.data() + text.size();
    int64_t read = 0;
    const auto [stopped, error] = std::from_chars(text.data(), end, read, base);
    if (error != std::errc() || stopped != end || read < least || read > most) return false;
    *value = read;
    return true;
}

void take_buffering(const std::string& value, Buffering* buffering) {
    if (value == "enable" || value == "true") *buffering = Buffering::enable;
    if (value == "disable" || value == "false") *buffering = Buffering::disable;
    if (value == "automatic") *buffering = Buffering::automatic;
}

const char* text_of(Buffering buffering) {
    switch (buffering) {
        case Buffering::enable:
            return "enable";
        case Buffering::disable:
            return "disable";
        default:
            return "automatic";
    }
}

}  // namespace

void Hints::take(const Info& given) {
    int64_t number = 0;
    for (const auto& [key, value] : given.entries) {
        if (key == "collective_buffering") {
            take_buffering(value, &tuning.writes);
            take_buffering(value, &tuning.reads);
        } else if (key == "romio_cb_write") {
            take_buffering(value, &tuning.writes);
        } else if (key == "romio_cb_read") {
            take_buffering(value, &tuning.reads);
        } else if (key == "cb_nodes") {
            if (number_of(value, 10, 1, std::numeric_limits<int32_t>::max(), &number))
                tuning.nodes = static_cast<int32_t>(number);
        } else if (key == "cb_buffer_size") {
            if (number_of(value, 10, kLeastBuffer, int64_t{1} << 40, &number)) tuning.buffer_bytes = number;
        } else if (key == "file_perm") {
            if (number_of(value, 8, 0, 07777, &number)) permissions = static_cast<mode_t>(number);
        } else if (key == "access_style") {
            access_style = value;
        }
    }
}

void Hints::give(Info& out) const {
    if (tuning.writes == tuning.reads && tuning.writes != Buffering::automatic)
        out.set("collective_buffering", tuning.writes == Buffering::enable ? "true" : "false");
    out.set("romio_cb_write", text_of(tuning.writes));
    out.set("romio_cb_read", text_of(tuning.reads));
    out.set("cb_buffer_size", std::to_string(tuning.buffer_bytes));
    if (tuning.nodes > 0) out.set("cb_nodes", std::to_string(tuning.nodes));
    if (!access_style.empty()) out.set("access_style", access_style);
}

}  // namespace viaduct::mpi::io
