// SPDX-License-Identifier: BSD-2-Clause
// Writing and reading of cards.
#include "mpi-adi/engine/card.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>

namespace viaduct::mpi {
namespace {

constexpr char kVersion = 5;
constexpr size_t kLongestPart = 65535;

unsigned byte_at(std::string_view mask, size_t i) {
    return i < mask.size() ? static_cast<unsigned char>(mask[i]) : 0;
}

}  // namespace

void append_part(std::string* card, std::string_view part) {
    part = part.substr(0, kLongestPart);
    *card += static_cast<char>(part.size() & 255);
    *card += static_cast<char>(part.size() >> 8);
    *card += part;
}

bool take_part(std::string_view* card, std::string* part) {
    if (card->size() < 2) return false;
    const size_t length =
        static_cast<unsigned char>((*card)[0]) + 256u * static_cast<unsigned char>((*card)[1]);
    card->remove_prefix(2);
    if (card->size() < length) return false;
    *part = card->substr(0, length);
    card->remove_prefix(length);
    return true;
}

void append_number(std::string* card, uint32_t number) {
    for (int byte = 0; byte < 4; byte++) *card += static_cast<char>(number >> (8 * byte) & 255);
}

bool take_number(std::string_view* card, uint32_t* number) {
    if (card->size() < 4) return false;
    *number = 0;
    for (size_t byte = 0; byte < 4; byte++)
        *number |= static_cast<uint32_t>(static_cast<unsigned char>((*card)[byte])) << (8 * byte);
    card->remove_prefix(4);
    return true;
}

std::string Card::encode() const {
    std::string card(1, kVersion);
    append_number(&card, number);
    append_part(&card, host);
    append_part(&card, processors);
    append_part(&card, group);
    append_part(&card, placement);
    card += static_cast<char>(environments.size());
    for (const auto& [module, environment] : environments) {
        append_part(&card, module);
        append_part(&card, environment);
    }
    return card;
}

std::optional<Card> Card::decode(std::string_view bytes) {
    if (bytes.empty() || bytes[0] != kVersion) return std::nullopt;
    bytes.remove_prefix(1);
    Card card;
    if (!take_number(&bytes, &card.number) || !take_part(&bytes, &card.host) || !take_part(&bytes, &card.processors) ||
        !take_part(&bytes, &card.group) || !take_part(&bytes, &card.placement))
        return std::nullopt;
    if (bytes.empty()) return std::nullopt;
    card.environments.resize(static_cast<unsigned char>(bytes[0]));
    bytes.remove_prefix(1);
    for (auto& [module, environment] : card.environments)
        if (!take_part(&bytes, &module) || !take_part(&bytes, &environment)) return std::nullopt;
    if (!bytes.empty()) return std::nullopt;
    return card;
}

const std::string* Card::environment_of(std::string_view module) const {
    for (const auto& [name, environment] : environments)
        if (name == module) return &environment;
    return nullptr;
}

std::string own_processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
    std::string mask;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        mask.resize(std::max(mask.size(), static_cast<size_t>(cpu) / 8 + 1));
        mask[static_cast<size_t>(cpu) / 8] |= static_cast<char>(1 << (cpu % 8));
    }
    return mask;
}

// Ranks that are bound to processors of their own are not crowded, however many they are.
bool is_crowded(std::string_view own, const std::string_view* others, size_t count) {
    int processors = 0;
    for (size_t i = 0; i < own.size(); i++) processors += std::popcount(byte_at(own, i));
    int sharing = 0;
    for (size_t rank = 0; rank < count; rank++) {
        bool meets = false;
        for (size_t i = 0; i < own.size(); i++) meets |= (byte_at(own, i) & byte_at(others[rank], i)) != 0;
        sharing += meets ? 1 : 0;
    }
    return sharing > processors;
}

}  // namespace viaduct::mpi
