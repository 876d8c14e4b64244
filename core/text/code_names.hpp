// SPDX-License-Identifier: BSD-2-Clause
// The numbers of vipl.h by name: answers of calls, asynchronous errors, status of a descriptor, states of a VI.
#pragma once

#include <vipl.h>

#include <cstddef>
#include <cstdint>

namespace viaduct {

struct CodeName {
    const char* name;
    const char* meaning;
};

// "VIP_INVALID_MTU", "MaxTransferSize is not offered, ..."; null names for a number that is none.
CodeName name_of_return(uint32_t code);
CodeName name_of_error(uint32_t code);
const char* name_of_state(uint32_t state);

// The bits of a descriptor's status, "VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR | VIP_STATUS_OP_RECEIVE". At most
// `bytes` with the zero behind it; returns the length of the whole.
size_t write_status_names(uint32_t status, char* text, size_t bytes);

}  // namespace viaduct
