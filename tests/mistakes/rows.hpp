// SPDX-License-Identifier: BSD-2-Clause
// A row: a mistake, a function that makes it and returns what the library says, and words that this must have.
#pragma once

#include <string>
#include <vector>

namespace mistakes {

struct Row {
    const char* name;
    const char* mistake;  // as a programmer would say it
    std::string (*make)();
    std::vector<const char*> words;  // all of them must be in the text
};

using Rows = std::vector<Row>;

Rows rows_objects();  // NICs, VIs, completion queues, handles, the name service
Rows rows_memory();
Rows rows_connect();
Rows rows_send();
Rows rows_rdma();

}  // namespace mistakes
