// SPDX-License-Identifier: BSD-2-Clause
// Info objects: ordered lists of keys and values.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace viaduct::mpi {

struct Info {
    MPI_Info handle = MPI_INFO_NULL;
    std::vector<std::pair<std::string, std::string>> entries;

    const std::string* find(const std::string& key) const;
    void set(const std::string& key, const std::string& value);
    bool erase(const std::string& key);
};

Info* info_of(MPI_Info handle);
Info* info_create();
void info_destroy(Info* info);

}  // namespace viaduct::mpi
