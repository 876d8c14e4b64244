// SPDX-License-Identifier: BSD-2-Clause
// What an end answers to a frame of a connection that it does not have (docs/wire-format.md, Ending). Used by Node, and
// by viaduct-udpd in the place of programs that have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "providers/wire/format.hpp"

namespace viaduct::wire {

// The header of the answer, which has no fields. False: such a frame has none. No answer is answered, so that two ends
// never talk about nothing for ever. The answer shows the pass of the frame: only the frame's sender can use it.
bool answer_without_link(const Header& came, Header* answer);

// The same as bytes, of an end without a key. False: none; a tagged frame has none, either.
bool make_no_link_answer(std::span<const std::byte> frame, std::byte (&answer)[kHeaderBytes]);

}  // namespace viaduct::wire
