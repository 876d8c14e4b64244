// SPDX-License-Identifier: BSD-2-Clause
// Connection attempts of paramnet (viaduct/provider.hpp, "Connecting"; spec/calls 4.3, 4.4). The agent matches the two
// ends by the protocol of viaduct/kagent.hpp and answers each with the shared segment of the connection, to which its
// endpoint is then bound. Any thread, no locks held; both queue locks of the VI are taken inside.
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
