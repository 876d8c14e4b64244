// SPDX-License-Identifier: BSD-2-Clause
// Settings of a connection's socket, and reading a record from it piece by piece.
#pragma once

#include <cstddef>

namespace viaduct::tcp {

// Small messages leave at once; a peer whose host vanishes is found after some 15 s of silence.
void prepare(int fd);

// More of what is `bytes` long, of which `had` are there. 1: it is whole, 0: more is to come, -1: the connection has
// ended.
int read_more(int fd, void* to, size_t bytes, size_t* had);

}  // namespace viaduct::tcp
