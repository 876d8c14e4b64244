// SPDX-License-Identifier: BSD-2-Clause
// The fields of each kind of frame: where they are, and how they are told. The names are the dissector's.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "utils/vipcap/frame.hpp"

namespace viaduct::vipcap {

namespace {

enum class Form : uint8_t { decimal, hexadecimal, bytes, discriminator, lowest_bit };

struct Place {
    const char* name;
    uint16_t at, bytes;
    Form form = Form::decimal;
};

constexpr Place kHeaderFields[] = {
    {"version", 0, 1},
    {"kind", 1, 1},
    {"flags", 2, 2, Form::hexadecimal},
    {"destination", 4, 4, Form::hexadecimal},
    {"source", 8, 4, Form::hexadecimal},
    {"sequence", 12, 4},
    {"acknowledge", 16, 4},
    {"credit", 20, 4},
    {"pass", 24, 8, Form::hexadecimal},
    {"length", 32, 2},
    {"check", 36, 4, Form::hexadecimal},
};
constexpr Place kVersionAnswerFields[] = {
    {"version", 2, 1}, {"version_seen", 3, 1}, {"check", 4, 4, Form::hexadecimal}, {"quote", 8, 64, Form::bytes}};
constexpr Place kConnect[] = {
    {"nonce", 0, 8, Form::hexadecimal},
    {"first_sequence", 8, 4},
    {"max_frame", 12, 2},
    {"arrived", 14, 2},
    {"level", 16, 2},
    {"rdma", 18, 1},
    {"attended", 19, 1, Form::lowest_bit},
    {"window", 20, 4},
    {"max_transfer", 24, 8},
    {"qos", 32, 8},
    {"local.host", 40, 6, Form::bytes},
    {"local.discriminator", 46, 66, Form::discriminator},
    {"remote.host", 112, 6, Form::bytes},
    {"remote.discriminator", 118, 66, Form::discriminator},
    {"link_pass", 184, 8, Form::hexadecimal},
    {"cookie", 192, 8, Form::hexadecimal},
};
constexpr Place kAnswer[] = {{"nonce", 0, 8, Form::hexadecimal}, {"status", 8, 2}, {"arrived", 10, 2}};
constexpr Place kProve[] = {
    {"nonce", 0, 8, Form::hexadecimal}, {"arrived", 10, 2}, {"cookie", 16, 8, Form::hexadecimal}};
constexpr Place kEnding[] = {{"reason", 0, 2},
                             {"message", 4, 4},
                             {"finding", 8, 2},
                             {"finding.operation", 10, 1},
                             {"finding.of_target", 11, 1, Form::lowest_bit},
                             {"finding.handle", 12, 4, Form::hexadecimal},
                             {"finding.address", 16, 8, Form::hexadecimal},
                             {"finding.length", 24, 8}};
constexpr Place kSelective[] = {{"selective", 0, 32, Form::bytes}};
constexpr Place kMessage[] = {
    {"message", 0, 4}, {"offset", 4, 4}, {"total", 8, 4}, {"immediate", 12, 4, Form::hexadecimal}};
constexpr Place kWrite[] = {{"message", 0, 4},
                            {"offset", 4, 4},
                            {"total", 8, 4},
                            {"immediate", 12, 4, Form::hexadecimal},
                            {"address", 16, 8, Form::hexadecimal},
                            {"handle", 24, 4, Form::hexadecimal}};
constexpr Place kReadRequest[] = {
    {"address", 0, 8, Form::hexadecimal}, {"handle", 8, 4, Form::hexadecimal}, {"total", 12, 4}, {"message", 16, 4}};
constexpr Place kReadData[] = {{"message", 0, 4}, {"offset", 4, 4}, {"total", 8, 4}};
constexpr Place kAtomicRequest[] = {{"address", 0, 8, Form::hexadecimal},
                                    {"handle", 8, 4, Form::hexadecimal},
                                    {"message", 12, 4},
                                    {"operand", 16, 8},
                                    {"compare", 24, 8},
                                    {"atomic", 32, 1},
                                    {"width", 33, 1}};
constexpr Place kAtomicData[] = {{"message", 0, 4}, {"value", 8, 8}};

struct Kind {
    uint8_t number;
    const char* name;
    std::span<const Place> fields;
};
const Kind kKinds[] = {
    {1, "request", kConnect},
    {2, "peer-request", kConnect},
    {3, "accept", kConnect},
    {4, "confirm", kAnswer},
    {5, "reject", kAnswer},
    {6, "no-match", kAnswer},
    {7, "pending", kAnswer},
    {8, "withdraw", kAnswer},
    {9, "prove", kProve},
    {16, "disconnect", kEnding},
    {17, "disconnected", {}},
    {18, "reset", {}},
    {19, "keep-alive", kSelective},
    {20, "acknowledge", kSelective},
    {32, "send", kMessage},
    {33, "write", kWrite},
    {34, "read-request", kReadRequest},
    {35, "read-data", kReadData},
    {36, "atomic-request", kAtomicRequest},
    {37, "atomic-data", kAtomicData},
};

const Kind* kind_of(uint8_t number) {
    const auto* found =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.number == number; });
    return found != std::end(kKinds) ? found : nullptr;
}

std::string hexadecimal(Bytes b) {
    std::string text;
    for (const uint8_t byte : b) text += fmt::format("{:02x}", byte);
    return text;
}

std::string value_of(Bytes b, Form form) {
    if (form == Form::bytes) return hexadecimal(b);
    if (form == Form::lowest_bit) return std::to_string(b[0] & 1);
    if (form == Form::discriminator) {  // length, then as much of it
        const size_t n = static_cast<size_t>(b[0] << 8 | b[1]);
        return n > 0 && n <= 64 ? hexadecimal(b.subspan(2, n)) : "";
    }
    uint64_t value = 0;
    for (const uint8_t byte : b) value = value << 8 | byte;
    return form == Form::hexadecimal ? fmt::format("0x{:0{}x}", value, 2 * b.size()) : std::to_string(value);
}

void add(Bytes from, std::span<const Place> places, std::vector<Field>* out) {
    for (const Place& p : places) {
        if (size_t{p.at} + p.bytes > from.size()) return;  // cut short
        std::string value = value_of(from.subspan(p.at, p.bytes), p.form);
        if (!value.empty()) out->push_back({p.name, std::move(value)});
    }
}

std::string words_of(uint16_t flags) {
    static constexpr const char* kWords[] = {"immediate", "last", "ack-now", "again", "tagged"};
    std::string text;
    for (size_t i = 0; i < std::size(kWords); ++i)
        if ((flags >> i & 1) != 0) text += (text.empty() ? " [" : " ") + std::string(kWords[i]);
    return text.empty() ? text : text + "]";
}

}  // namespace

const char* name_of_kind(uint8_t number) {
    const Kind* const kind = kind_of(number);
    return kind != nullptr ? kind->name : nullptr;
}

bool is_sequenced(uint8_t kind) { return kind >= 32; }

std::vector<Field> fields_of(const Frame& f) {
    std::vector<Field> all;
    if (f.version_answer) {
        add(f.bytes, kVersionAnswerFields, &all);
        return all;
    }
    add(f.bytes, kHeaderFields, &all);
    if (const Kind* const kind = kind_of(f.kind())) add(f.bytes.subspan(kHeaderBytes), kind->fields, &all);
    return all;
}

std::string summary_of(const Frame& f) {
    if (f.version_answer) return fmt::format("speaks version {}, not {}", f.bytes[2], f.bytes[3]);
    const char* const name = name_of_kind(f.kind());
    std::string text = fmt::format("{} {:08x} > {:08x} seq {} ack {}", name != nullptr ? name : "unknown", f.source(),
                                   f.destination(), f.sequence(), f.acknowledge());
    std::string more;
    if (const Kind* const kind = kind_of(f.kind())) {
        std::vector<Field> fields;
        add(f.bytes.subspan(kHeaderBytes), kind->fields, &fields);
        for (const char* wanted : {"message", "offset", "total", "reason", "status"})
            for (const Field& field : fields)
                if (field.name == wanted) more += " " + field.name + " " + field.value;
    }
    if (!more.empty()) text += "," + more;
    return text + words_of(f.flags()) + (f.damaged ? " DAMAGED" : "");
}

}  // namespace viaduct::vipcap
