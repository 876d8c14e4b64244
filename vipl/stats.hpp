// SPDX-License-Identifier: BSD-2-Clause
// What the user agent shows of itself to vipstat and to tracers. Slow paths only.
#pragma once

#include <string>

#include "core/stats/process_stats.hpp"
#include "core/text/end_address.hpp"
#include "vipl/vi.hpp"

namespace viaduct::vipl {

// A VI has been made.
void show_vi(Vi&);
// It is about to connect these.
void show_ends(Vi&, const EndAddress& local, const EndAddress& remote);
// An attempt has ended. Both queue locks held.
void note_attempt(Vi&, bool connected);
void note_error(Vi&, VIP_ERROR_CODE);
// A waiting call goes to sleep, or wakes up.
void note_sleep(Vi&, WorkQueue&, bool begins);
void note_cq_sleep(VIP_CQ_HANDLE, bool begins);

}  // namespace viaduct::vipl
