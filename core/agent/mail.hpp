// SPDX-License-Identifier: BSD-2-Clause
// One message of the agent protocol (viaduct/kagent.hpp is its specification) in memory, with its descriptors, and the
// functions that send and receive it. Used by clients and agent, on any thread; the caller serialises per socket.
#pragma once

#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/shm/segment.hpp"
#include "viaduct/kagent.hpp"

namespace viaduct {

struct Mail {
    kagent::MailHeader header;
    std::vector<std::byte> payload;
    std::vector<Fd> descriptors;
    bool descriptors_lost = false;  // received: RLIMIT_NOFILE left no number for some of them; `descriptors` has
                                    // those before the first that is lost

    Mail() = default;
    Mail(kagent::Type type, uint32_t ticket = 0) {
        header.type = static_cast<uint16_t>(type);
        header.ticket = ticket;
    }
    template <class T>
    static Mail of(kagent::Type type, const T& body, uint32_t ticket = 0) {
        static_assert(std::is_trivially_copyable_v<T>);
        Mail m(type, ticket);
        m.set(body);
        return m;
    }
    template <class T>
    void set(const T& body) {
        payload.resize(sizeof(T));
        std::memcpy(payload.data(), &body, sizeof(T));
    }
    // False unless the payload is exactly one T.
    template <class T>
    [[nodiscard]] bool get(T* out) const {
        static_assert(std::is_trivially_copyable_v<T>);
        if (payload.size() != sizeof(T)) return false;
        std::memcpy(out, payload.data(), sizeof(T));
        return true;
    }
    kagent::Type type() const { return static_cast<kagent::Type>(header.type); }
};

// Sends the message whole or not at all. ok; not_done: the socket is non-blocking and full; closed: the peer has ended;
// invalid: more than kMaxMessage bytes or kMaxDescriptors, or a bad descriptor; out_of_resources: no memory, or too
// many descriptors in flight.
Status send_mail(int socket, const Mail& mail);

// ok; not_done: the socket is non-blocking and empty; closed: the peer has ended and all that it has sent was read;
// invalid: not a message of the protocol (magic, length, version, too many descriptors). Descriptors are close-on-exec
// and above 2; `out` owns them, also when the result is invalid. Where RLIMIT_NOFILE leaves no numbers for some of the
// descriptors, the message is ok with descriptors_lost set, so that it can still be answered.
Status receive_mail(int socket, Mail* out);

// Reads a NUL-terminated text field defensively: at most N-1 characters, always terminated.
template <size_t N>
std::string_view text_of(const char (&field)[N]) {
    return {field, ::strnlen(field, N - 1)};
}

}  // namespace viaduct
