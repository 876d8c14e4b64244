// SPDX-License-Identifier: BSD-2-Clause
#include "core/config/config_file.hpp"

#include <fmt/format.h>

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

}  // namespace

namespace {

// The line of the first character beyond ASCII that stands neither in a string of one line nor in a comment;
// 0: none. TOML has none there, and the parser's look at such characters has a hole (its list of white space
// is undefined for some).
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
        } else if ((static_cast<unsigned char>(c) & 0x80) != 0) {
            return line;
        }
    }
    return 0;
}

// False, with the problem told, when the text is no TOML.
bool parse(std::string_view text, std::string_view origin, toml::table* out,
           std::vector<std::string>* problems) {
    if (const unsigned line = stray_character(text); line != 0) {
        problems->push_back(
            fmt::format("{}:{}: only strings and comments have characters beyond ASCII", origin, line));
        return false;
    }
    try {
        *out = toml::parse(text, std::string(origin));
        return true;
    } catch (const toml::parse_error& error) {
        problems->push_back(fmt::format("{}:{}: {}", origin, error.source().begin.line, error.description()));
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
                                                   node.source().begin.line, section.str()));
            continue;
        }
        for (const auto& [key, value] : *table) {
            FileSetting setting{std::string(section.str()), std::string(key.str()), "",
                                value.source().begin.line};
            if (text_of(value, &setting.text)) {
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
