// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/no_link_answer.hpp"

namespace viaduct::wire {

bool answer_without_link(const Header& came, Header* answer) {
    *answer = Header{};
    answer->destination = came.source;
    answer->source = came.destination;
    answer->sequence = came.acknowledge;
    answer->acknowledge = came.sequence;
    answer->pass = came.pass;
    switch (came.kind) {
        case Kind::disconnect:
            answer->kind = Kind::disconnected;
            return true;
        case Kind::reset:
        case Kind::disconnected:
        case Kind::reject:
        case Kind::no_match:
        case Kind::pending:
        case Kind::prove:
            return false;
        default:
            answer->kind = Kind::reset;
            return true;
    }
}

bool make_no_link_answer(std::span<const std::byte> frame, std::byte (&answer)[kHeaderBytes]) {
    Frame f;
    Header h;
    if (read_frame(frame, &f) != Flaw::none || (f.header.flags & kFlagTagged) != 0) return false;
    const bool requests = f.header.kind == Kind::request || f.header.kind == Kind::peer_request ||
                          f.header.kind == Kind::withdraw;
    if (requests || !answer_without_link(f.header, &h)) return false;
    seal(answer, h);
    return true;
}

}  // namespace viaduct::wire
