// SPDX-License-Identifier: BSD-2-Clause
// The text of an error: its class, the call with its arguments, and what is wrong with which of them, as MPICH prints
// it. Nothing of this runs before a call has failed: an error carries its class only, and the arguments tell the rest.
#include "mpi-adi/mpi/explain.hpp"

#include <cctype>

#include "mpi-adi/engine/critical.hpp"
#include "mpi-adi/engine/error.hpp"
#include "mpi-adi/engine/failure.hpp"
#include "mpi-adi/mpi/entry.hpp"
#include "mpi-adi/mpi/reasons.hpp"

namespace viaduct::mpi {
namespace {

// Longer calls are cut: the reason behind them has to fit MPI_MAX_ERROR_STRING.
constexpr size_t kLongestCall = 300;

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
    return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "const Count counts[]" is an array of Count with the name counts. A parameter without a name is its type.
Argument argument_of(std::string_view text, const Value& value) {
    Argument all;
    all.value = value;
    if (const size_t bracket = text.find('['); bracket != std::string_view::npos) {
        all.pointer = true;
        text = trimmed(text.substr(0, bracket));
    }
    size_t begin = text.size();
    while (begin > 0 && is_word(text[begin - 1])) begin--;
    all.name = text.substr(begin);
    std::string_view type = trimmed(text.substr(0, begin));
    while (!type.empty() && type.back() == '*') {
        all.pointer = true;
        type = trimmed(type.substr(0, type.size() - 1));
    }
    if (type.starts_with("const ")) {
        all.constant = true;
        type = trimmed(type.substr(6));
    }
    all.type = type.empty() ? all.name : type;
    if (type.empty()) all.name = {};
    return all;
}

std::string text_of(const Argument& one) {
    if (!one.pointer)
        if (std::string handle = name_of_handle(one); !handle.empty()) return handle;
    std::string text = one.name.empty() ? "" : std::string(one.name) + "=";
    if (one.pointer || one.value.pointer != nullptr) return text + text_of_pointer(one);
    return text + text_of_number(one);
}

}  // namespace

ArgumentList arguments_of(const char* parameters, const Value* values, int count) {
    ArgumentList all;
    std::string_view text = trimmed(parameters);
    text = text.substr(1, text.size() - 2);  // its parentheses
    for (int i = 0; i < count; i++) {
        const size_t comma = text.find(',');
        all.push_back(argument_of(trimmed(text.substr(0, comma)), values[i]));
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    }
    return all;
}

std::string text_of_call(const char* function, const ArgumentList& arguments) {
    std::string text = std::string(function) + "(";
    for (const Argument& one : arguments) {
        if (text.back() != '(') text += ", ";
        text += text_of(one);
        if (text.size() > kLongestCall) return text.substr(0, kLongestCall) + "...)";
    }
    return text + ")";
}

int end_failed_call(const char* function, const char* parameters, const Value* values, int count, int code) {
    if (code == checking::kCallToNote) {
        note_made(function, parameters, values, count);
        return MPI_SUCCESS;
    }
    try {
        const Critical guard;
        const std::string detail = take_detail();
        if (const char* known = class_text(code)) {
            const ArgumentList arguments = arguments_of(parameters, values, count);
            std::string text = std::string(known) + ", error stack:\n" + text_of_call(function, arguments) + " failed";
            const std::string reason = detail.empty() ? reason_of(function, code, arguments) : detail;
            if (!reason.empty()) text += "\n" + reason;
            keep_failure_text(code, std::move(text));
        }
    } catch (const std::bad_alloc&) {
        // The class is told, then.
    }
    return settle_failure(code);
}

}  // namespace viaduct::mpi
