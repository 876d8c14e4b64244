// SPDX-License-Identifier: BSD-2-Clause
// Which objects the program has, by their handles.
#pragma once

#include <map>
#include <string>

#include "mpi-adi/engine/check/check.hpp"

namespace viaduct::mpi::checking {

struct Key {
    Kind kind;
    int handle;
    auto operator<=>(const Key&) const = default;
};

struct Record {
    std::string call;  // the last one that has given the handle
    int given = 0;     // how often it was given and not yet freed
};

// Objects that end by themselves (requests) stay until it is looked whether they are alive.
using Records = std::map<Key, Record>;
Records& records();
bool is_alive(const Key& key);
// Whether a thread is in the middle of a change of the records.
bool is_changing();

}  // namespace viaduct::mpi::checking
