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
// Whether a call may be given it: an info object, or none.
inline bool is_info_or_none(MPI_Info handle) { return handle == MPI_INFO_NULL || info_of(handle) != nullptr; }
inline int wrong_info(MPI_Info handle) { return is_info_or_none(handle) ? MPI_SUCCESS : MPI_ERR_INFO; }
Info* info_create();
void info_destroy(Info* info);

}  // namespace viaduct::mpi
