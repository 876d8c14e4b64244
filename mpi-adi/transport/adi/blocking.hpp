// SPDX-License-Identifier: BSD-2-Clause
// What the blocking entries of all modules share: make a request, hand it over, and let the engine make
// progress until it is done. The engine's progress serves all protocols and sleeps when that is wise, so no
// module waits by itself.
#pragma once

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {

inline size_t bytes_of(size_t count, const mpip_type_t* type) {
    return type == nullptr ? count : count * type->d_size;
}

[[nodiscard]] int wait_for(const mpip_req_t* req);

// The scope of a sleep inside pt_block: while it lasts, other threads may be in the module.
class SleepScope {
public:
    SleepScope() {
        if (mpip_up.sleeping != nullptr) mpip_up.sleeping();
    }
    ~SleepScope() {
        if (mpip_up.awake != nullptr) mpip_up.awake();
    }
    SleepScope(const SleepScope&) = delete;
    SleepScope& operator=(const SleepScope&) = delete;
};

// The slow path of pt_fsend: a request on the stack of the caller.
[[nodiscard]] int blocking_send(process_t*, const void* buf, size_t count, const mpip_type_t*, int tag, mpip_comm_t*,
                  int mode);
[[nodiscard]] int blocking_receive(process_t*, void* buf, size_t count, const mpip_type_t*, int tag, mpip_comm_t*,
                     mpip_req_t* status);
[[nodiscard]] int blocking_unexpected(process_t*, unexmsg_t*, void* buf, size_t count, const mpip_type_t*, mpip_comm_t*,
                        mpip_req_t* status);
// A send that ends without having been started, or fails underway.
void end_request(mpip_req_t* req, int error);
// Logical disconnection (spec/adi 3.2): counts down, marks at zero.
[[nodiscard]] int remove_logically(process_t** procs, int count, void** info);
// Its connection is no more: flag, and count of the protocol.
void detach(process_t*);

}  // namespace viaduct::adi
