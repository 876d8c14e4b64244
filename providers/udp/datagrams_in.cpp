// SPDX-License-Identifier: BSD-2-Clause
#include "providers/udp/datagrams_in.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/sync/cancellation.hpp"
#include "providers/udp/address.hpp"
#include "providers/wire/bytes.hpp"
#include "providers/wire/format.hpp"
#include "providers/wire/header_words.hpp"

namespace viaduct::udp {

// What is no frame of this version comes alone.
void DatagramsIn::note_size_of_frames(In* in, const std::byte* datagram) {
    in->each = in->bytes;
    if (in->bytes < wire::kHeaderBytes || wire::load8(datagram) != wire::kVersion) return;
    in->each = std::min(in->bytes, wire::kHeaderBytes + wire::load16(datagram + wire::kLengthAt));
    if (in->each != in->bytes) ++trains_;
}

// An error is one that an earlier frame met on its way, and says nothing of what has come.
bool DatagramsIn::fetch_one(int socket) {
    sockaddr_in from;
    socklen_t length = sizeof from;
    ssize_t n = 0;
    {
        const CancellationHeldOff inside_hot_calls;
        for (int tries = 0; tries < 2; ++tries) {
            n = ::recvfrom(socket, room_.data(), kRoom, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &length);
            if (n >= 0 || errno == EAGAIN) break;
            met_error_ = true;
        }
    }
    if (n < 0) return false;
    in_[0].bytes = static_cast<uint32_t>(n);
    in_[0].from = from_socket_address(from);
    note_size_of_frames(&in_[0], room_.data());
    count_ = 1;
    return true;
}

bool DatagramsIn::fetch_several(int socket) {
    std::array<mmsghdr, kMost> messages;
    std::array<sockaddr_in, kMost> addresses;
    std::array<iovec, kMost> parts;
    for (uint32_t i = 0; i < kMost; ++i) {
        parts[i] = {room_.data() + size_t{i} * kRoom, kRoom};
        msghdr& m = messages[i].msg_hdr;
        m = {};
        m.msg_name = &addresses[i];
        m.msg_namelen = sizeof(sockaddr_in);
        m.msg_iov = &parts[i];
        m.msg_iovlen = 1;
    }
    int n = 0;
    {
        const CancellationHeldOff inside_hot_calls;
        n = ::recvmmsg(socket, messages.data(), kMost, MSG_DONTWAIT, nullptr);
    }
    if (n < 0 && errno != EAGAIN) met_error_ = true;
    if (n <= 0) return false;
    count_ = static_cast<uint32_t>(n);
    for (uint32_t i = 0; i < count_; ++i) {
        in_[i].bytes = messages[i].msg_len;
        in_[i].from = from_socket_address(addresses[i]);
        note_size_of_frames(&in_[i], room_.data() + size_t{i} * kRoom);
    }
    return true;
}

// The answer to a message comes alone: only where one has come right after another there may be more of them.
bool DatagramsIn::fetch(int socket) {
    count_ = next_ = offset_ = 0;
    const bool found = in_a_row_ >= 2 ? fetch_several(socket) : fetch_one(socket);
    in_a_row_ = found && in_[count_ - 1].each == in_[count_ - 1].bytes ? in_a_row_ + 1 : 0;
    return found;
}

bool DatagramsIn::next(std::span<const std::byte>* frame, NicAddress* from) {
    if (next_ == count_) return false;
    const In& in = in_[next_];
    const uint32_t bytes = std::min(in.each, in.bytes - offset_);
    *frame = {room_.data() + size_t{next_} * kRoom + offset_, bytes};
    *from = in.from;
    offset_ += bytes;
    if (offset_ == in.bytes) {
        ++next_;
        offset_ = 0;
    }
    return bytes != 0;  // else a datagram of nothing
}

}  // namespace viaduct::udp
