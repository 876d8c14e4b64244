// SPDX-License-Identifier: BSD-2-Clause
// Sends and receives a message as one packet: header, then payload, and the descriptors as SCM_RIGHTS; see mail.hpp and
// viaduct/kagent.hpp.
#include "core/agent/mail.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

namespace viaduct {

namespace {

constexpr size_t kControlBytes = CMSG_SPACE(sizeof(int) * kagent::kMaxDescriptors);

Status status_of_errno(int error) {
    switch (error) {
        case EAGAIN:
        case ENOBUFS:
            return Status::not_done;
        case EMSGSIZE:
        case EBADF:
        case EINVAL:
            return Status::invalid;
        case ENOMEM:
        case ETOOMANYREFS:  // too many descriptors of this user are in flight
            return Status::out_of_resources;
        default:
            return Status::closed;
    }
}

// All descriptors that came with the message. Each has an owner before memory is asked for, so that none leaks.
std::vector<Fd> collect_descriptors(msghdr& message) {
    std::array<Fd, kControlBytes / sizeof(int)> found;
    size_t count = 0;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            found[count++] = Fd(above_stdio(fd));
        }
    }
    return {std::make_move_iterator(found.begin()), std::make_move_iterator(found.begin() + count)};
}

// The layouts of MailHeader and Hello are the same in every version, so that two versions can greet each other: kHello
// and its answers may have any. All other messages must have a version that this build speaks.
bool version_fits(const kagent::MailHeader& header) {
    const auto type = static_cast<kagent::Type>(header.type);
    if (type == kagent::Type::kHello || type == kagent::Type::kWelcome || type == kagent::Type::kError)
        return header.version != 0;
    return header.version >= kagent::kVersionMin && header.version <= kagent::kVersionMax;
}

}  // namespace

Status send_mail(int socket, const Mail& mail) {
    if (mail.payload.size() > kagent::kMaxMessage || mail.descriptors.size() > kagent::kMaxDescriptors)
        return Status::invalid;
    kagent::MailHeader header = mail.header;
    header.bytes = static_cast<uint32_t>(mail.payload.size());

    std::array<iovec, 2> pieces{
        {{&header, sizeof(header)}, {const_cast<std::byte*>(mail.payload.data()), mail.payload.size()}}};
    alignas(cmsghdr) char control[kControlBytes] = {};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = mail.payload.empty() ? 1 : 2;
    if (!mail.descriptors.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * mail.descriptors.size());
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * mail.descriptors.size());
        for (size_t i = 0; i < mail.descriptors.size(); ++i) {
            const int fd = mail.descriptors[i].get();
            std::memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
        }
    }
    ssize_t sent = 0;
    do {
        sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? status_of_errno(errno) : Status::ok;
}

Status receive_mail(int socket, Mail* out) {
    kagent::MailHeader header;
    std::array<std::byte, kagent::kMaxMessage> body;
    std::array<iovec, 2> pieces{{{&header, sizeof(header)}, {body.data(), body.size()}}};
    alignas(cmsghdr) char control[kControlBytes];
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t got = 0;
    // A peer that closes with unread data leaves ECONNRESET: it is reported once, before what the peer had sent. The
    // next call reads that.
    bool told = false;
    do {
        got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(told, true))));
    if (got < 0) return errno == EAGAIN ? Status::not_done : Status::closed;

    out->descriptors = collect_descriptors(message);
    if (got == 0) return Status::closed;
    if ((message.msg_flags & MSG_TRUNC) != 0) return Status::invalid;
    // The kernel leaves descriptors out when there are more than a message may have, or no number is free for them.
    const bool left_out = (message.msg_flags & MSG_CTRUNC) != 0;
    if (left_out && out->descriptors.size() >= kagent::kMaxDescriptors) return Status::invalid;
    const auto length = static_cast<size_t>(got);
    if (length < sizeof(header) || header.magic != kagent::kMagic || !version_fits(header))
        return Status::invalid;
    if (header.bytes != length - sizeof(header)) return Status::invalid;

    out->descriptors_lost = left_out || std::any_of(out->descriptors.begin(), out->descriptors.end(),
                                                    [](const Fd& fd) { return !fd.valid(); });
    out->descriptors.erase(std::find_if(out->descriptors.begin(), out->descriptors.end(),
                                        [](const Fd& fd) { return !fd.valid(); }),
                           out->descriptors.end());
    out->header = header;
    out->payload.assign(body.begin(), body.begin() + header.bytes);
    return Status::ok;
}

}  // namespace viaduct
