// SPDX-License-Identifier: BSD-2-Clause
// What each process tells all others when a job starts: its host, the processors it may use, the group that
// rations them, where the ranks of its node tell their processors, and the address environment of each of its modules.
// Little-endian, versioned, checked when read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::mpi {

struct Card {
    uint32_t number = 0;     // random; that of rank 0 numbers the processes of the job
    std::string host;
    std::string processors;  // bit mask of allowed processors, lowest first, without trailing zero bytes
    std::string group;       // control group whose processor time is limited; "": none
    std::string placement;   // core/wait/cpu_placement.hpp; of the first rank of a node
    // By the name of the module: its number may be another one in another process.
    std::vector<std::pair<std::string, std::string>> environments;

    const std::string* environment_of(std::string_view module) const;
    std::string encode() const;
    static std::optional<Card> decode(std::string_view bytes);
};

// What cards consist of, for others that are made alike: a length of two bytes and so many bytes behind it, or four
// bytes.
void append_part(std::string* card, std::string_view part);
bool take_part(std::string_view* card, std::string* part);
void append_number(std::string* card, uint32_t number);
bool take_number(std::string_view* card, uint32_t* number);

// The mask of this process, and what follows from all masks of a node: whether more ranks need our processors
// than there are.
std::string own_processors();
bool is_crowded(std::string_view own, const std::string_view* others, size_t count);

}  // namespace viaduct::mpi
