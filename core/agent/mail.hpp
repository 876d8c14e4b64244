// SPDX-License-Identifier: BSD-2-Clause
// One message of the agent protocol in memory, with its descriptors, and how it crosses a socket. Used by
// both ends.
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
    bool descriptors_lost = false;  // received: this process could not hold all that came (RLIMIT_NOFILE);
                                    // the first of them may be here

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

// Whole or not at all. ok; not_done (socket full, non-blocking); closed (peer gone); invalid (over
// kMaxMessage).
Status send_mail(int socket, const Mail& mail);

// ok; not_done (nothing there, non-blocking); closed (once all that was written has been read, also where the
// other end has left something unread); invalid (bytes that are no message: magic, length,
// version, too many descriptors). Descriptors arrive close-on-exec and above 2; `out` owns them, also those
// of bytes that are no message. A message whose descriptors do not fit under the limit of this process is ok,
// with those that came before and marked (descriptors_lost): who asked for it can be told.
Status receive_mail(int socket, Mail* out);

// Reads a NUL-terminated text field defensively: at most N-1 characters, always terminated.
template <size_t N>
std::string_view text_of(const char (&field)[N]) {
    return {field, ::strnlen(field, N - 1)};
}

}  // namespace viaduct
