// SPDX-License-Identifier: BSD-2-Clause
// Peer requests whose agent has ended. The thread that waits for a request sends it to the next agent by
// itself. One that no thread waits for is sent by a helper thread: the program may be computing, or wait for another
// request, whose partner in turn waits for the partner of this one.
#pragma once

namespace viaduct::vipl {

class Library;

// The agent has ended, or there is another one. Does not wait; false: no thread was to be had. Event thread only.
bool renew_peer_requests(Library& library);

}  // namespace viaduct::vipl
