// SPDX-License-Identifier: BSD-2-Clause
// Connection attempts (viaduct/provider.hpp, "Connecting"): the agent matches the ends, this side speaks its
// protocol and binds endpoints to what it answers. Any thread, no locks held.
#pragma once

#include "viaduct/provider.hpp"

namespace viaduct::paramnet {

Status listen(NicContext*, const EndAddress& local, Deadline, ConnectOp** out);
Status request(NicContext*, ViCore&, const EndAddress& local, const EndAddress& remote, const ViTraits&,
               Deadline, ConnectOp** out);
Status peer_request(NicContext*, ViCore&, const EndAddress& local, const EndAddress& remote, const ViTraits&,
                    Deadline, ConnectOp** out);
Status accept(NicContext*, uint64_t incoming, ViCore&, const ViTraits&, ConnectOp** out);
Status reject(NicContext*, uint64_t incoming);
Status connect_await(ConnectOp*, Deadline, ConnectResult*);
Status connect_finish(ConnectOp*, ConnectResult*);

}  // namespace viaduct::paramnet
