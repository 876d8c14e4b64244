// SPDX-License-Identifier: BSD-2-Clause
// How two programs of ours meet at an address: "@name" in the abstract name space, or a path. An abstract name can be
// taken by any user. Where another user has it, a socket in a folder that only the server's user may write into serves
// instead (private_folder.hpp); both ends find it by the same rule, whatever their environments. Used by the agent's
// clients and the agent, by the clients of viaduct-acenicd and viaduct-udpd and these. Slow path, any thread; no state.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/shm/fd.hpp"
#include "viaduct/provider.hpp"
#include "viaduct/types.hpp"

namespace viaduct {

// The errno of connecting to exactly that address, 0 when connected. Never waits. Which server it reaches is not
// checked.
int try_connect(const std::string& address, Fd* out);

// Connects to a server of `user` at that address or at what serves instead: one that belongs to root or to this
// process' user, by the kernel's word. 0, or an errno: ECONNREFUSED or ENOENT: none serves; EAGAIN: its queue stays
// full, until the deadline or for a second; EBUSY: the queue there is full, and the kernel does not say whose it is:
// listen_at finds out, or serves elsewhere; EPERM: another user serves that path; EINTR: a signal has come.
// `in_the_way` names that user, if there is one, whatever the result. Waits for a place in a full queue only, and in
// the kernel, which gives places in turn: a client that looks again and again is overtaken by all that wait, for as
// long as others come.
int meet(const std::string& address, uid_t user, Fd* out, std::string* in_the_way, Deadline deadline);

// Binds and listens there, or at what serves instead: `place` says where in the end. not_done: a server of ours is
// there already. With `error` for people. A path, or what serves instead, is reachable for all users only if
// `for_all`. Sockets that killed servers of this user have left in its private folders are removed.
Status listen_at(const std::string& address, bool for_all, Fd* out, std::string* place, std::string* error);

}  // namespace viaduct
