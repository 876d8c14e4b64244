// SPDX-License-Identifier: BSD-2-Clause
#include "core/config/config_file.hpp"

#include <fmt/format.h>

#include <new>
#include <stdexcept>

namespace viaduct {

// The parser asserts what it has not looked at before: a header that begins with anything but a key, "[=]",
// would end the program. Whatever it gives up on is a mistake in the file.
[[noreturn]] static void give_up() { throw std::runtime_error("this cannot be understood"); }

}  // namespace viaduct

// Whole in this file: the packaged shared object would become a dependency of every VIA program.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expr) (static_cast<bool>(expr) ? static_cast<void>(0) : ::viaduct::give_up())
#undef NDEBUG  // or it would assume instead
#include <toml++/toml.h>

namespace viaduct {

namespace {

bool text_of(const toml::node& value, std::string* out) {
    if (const auto* text = value.as_string()) {
        *out = text->get();
    } else if (const auto* number = value.as_integer()) {
        *out = fmt::format("{}", number->get());
    } else if (const auto* truth = value.as_boolean()) {
        *out = truth->get() ? "true" : "false";
    } else {
        return false;
    }
    return true;
}

bool beyond_ascii(char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; }

// The line of the first character beyond ASCII that stands neither in a string of one line nor in a comment;
// 0: none. TOML has none there.
unsigned stray_character(std::string_view text) {
    unsigned line = 1;
    char quote = '\0';
    bool comment = false, escaped = false;
    for (const char c : text) {
        if (c == '\n') {
            ++line;
            quote = '\0';
            comment = escaped = false;
        } else if (comment) {
            continue;
        } else if (quote != '\0') {
            if (c == quote && !escaped) quote = '\0';
            escaped = quote == '"' && c == '\\' && !escaped;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '#') {
            comment = true;
        } else if (beyond_ascii(c)) {
            return line;
        }
    }
    return 0;
}

// How many bytes the character beyond ASCII that begins here has; 0: it is no UTF-8.
size_t length_in_utf8(std::string_view at) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(at[i]); };
    const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
    if (byte(0) < 0xc2 || byte(0) > 0xf4 || at.size() < length) return 0;
    for (size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    // Longer than it has to be, half of a pair of UTF-16, or beyond the last character.
    if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
    if (byte(0) == 0xed && byte(1) > 0x9f) return 0;
    if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
    if (byte(0) == 0xf4 && byte(1) > 0x8f) return 0;
    return length;
}

// The parser's look at characters beyond ASCII has a hole (its list of white space is undefined for some), so
// it is shown none: each of their bytes stands as this mark and two hexadecimal digits while it reads, and so
// does the mark. No word, number or escape of TOML has it.
constexpr char kMark = 'Q';
constexpr std::string_view kDigits = "0123456789abcdef";

// False, with the line, when it is no UTF-8.
bool mark_beyond_ascii(std::string_view text, std::string* out, unsigned* line) {
    *line = 1;
    size_t checked = 0;  // up to here it is UTF-8
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\n') ++*line;
        if (!beyond_ascii(c) && c != kMark) {
            *out += c;
            continue;
        }
        if (beyond_ascii(c) && i >= checked) {
            const size_t length = length_in_utf8(text.substr(i));
            if (length == 0) return false;
            checked = i + length;
        }
        *out +=
            {kMark, kDigits[static_cast<unsigned char>(c) >> 4], kDigits[static_cast<unsigned char>(c) & 15]};
    }
    return true;
}

std::string unmarked(std::string_view marked) {
    std::string text;
    for (size_t i = 0; i < marked.size(); ++i) {
        text += marked[i];
        if (marked[i] != kMark || i + 2 >= marked.size()) continue;
        const size_t high = kDigits.find(marked[i + 1]), low = kDigits.find(marked[i + 2]);
        if (high == kDigits.npos || low == kDigits.npos) continue;
        text.back() = static_cast<char>(high << 4 | low);
        i += 2;
    }
    return text;
}

// False, with the problem told, when the text is no TOML.
bool parse(std::string_view text, std::string_view origin, toml::table* out,
           std::vector<std::string>* problems) {
    if (const unsigned line = stray_character(text); line != 0) {
        problems->push_back(
            fmt::format("{}:{}: only strings and comments have characters beyond ASCII", origin, line));
        return false;
    }
    std::string marked;
    if (unsigned line = 0; !mark_beyond_ascii(text, &marked, &line)) {
        problems->push_back(fmt::format("{}:{}: this is no UTF-8", origin, line));
        return false;
    }
    try {
        *out = toml::parse(std::string_view(marked), std::string(origin));
        return true;
    } catch (const toml::parse_error& error) {
        problems->push_back(
            fmt::format("{}:{}: {}", origin, error.source().begin.line, unmarked(error.description())));
    } catch (const std::bad_alloc&) {
        throw;  // the file is not at fault
    } catch (const std::exception& error) {
        problems->push_back(fmt::format("{}: {}", origin, error.what()));
    }
    return false;
}

}  // namespace

FileContent read_toml(std::string_view text, std::string_view origin) {
    FileContent content;
    toml::table parsed;
    if (!parse(text, origin, &parsed, &content.problems)) return content;
    for (const auto& [section, node] : parsed) {
        const toml::table* table = node.as_table();
        if (table == nullptr) {
            content.problems.push_back(fmt::format("{}:{}: '{}' stands outside of a section", origin,
                                                   node.source().begin.line, unmarked(section.str())));
            continue;
        }
        for (const auto& [key, value] : *table) {
            FileSetting setting{unmarked(section.str()), unmarked(key.str()), "", value.source().begin.line};
            if (text_of(value, &setting.text)) {
                setting.text = unmarked(setting.text);
                content.settings.push_back(std::move(setting));
            } else {
                content.problems.push_back(
                    fmt::format("{}:{}: [{}] {} is neither text, whole number nor truth value", origin,
                                setting.line, setting.section, setting.key));
            }
        }
    }
    return content;
}

}  // namespace viaduct
