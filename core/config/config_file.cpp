// SPDX-License-Identifier: BSD-2-Clause
#include "core/config/config_file.hpp"

#include <fmt/format.h>

// Whole in this file: the packaged shared object would become a dependency of every VIA program, and it
// throws.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
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

FileContent read_toml(std::string_view text, std::string_view origin) {
    FileContent content;
    const toml::parse_result parsed = toml::parse(text, std::string(origin));
    if (!parsed) {
        content.problems.push_back(fmt::format("{}:{}: {}", origin, parsed.error().source().begin.line,
                                               parsed.error().description()));
        return content;
    }
    for (const auto& [section, node] : parsed.table()) {
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
