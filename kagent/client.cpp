// SPDX-License-Identifier: BSD-2-Clause
// One client's socket; see client.hpp.
#include "kagent/client.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace viaduct::kagent {

Client::Client(Fd socket, Fd pidfd, Credentials credentials)
    : socket_(std::move(socket)), pidfd_(std::move(pidfd)), credentials_(credentials) {}

Status Client::send_now(const Mail& mail) {
    // The socket shows whether earlier descriptors were received as long as this message is not in it.
    const size_t earlier = mail.descriptors.empty() ? in_flight_ : in_flight();
    const Status s = send_mail(socket_.get(), mail);
    if (s == Status::ok) in_flight_ = earlier + mail.descriptors.size();
    return s;
}

Status Client::send(Mail mail) {
    if (backlog_.empty()) {
        const Status s = send_now(mail);
        // Too many descriptors in flight is a state that passes, like a full socket.
        if (s != Status::not_done && s != Status::out_of_resources) return s;
    }
    if (backlog_.size() >= kMaxBacklog ||
        waiting_descriptors_ + mail.descriptors.size() > kMaxWaitingDescriptors)
        return Status::out_of_resources;
    waiting_descriptors_ += mail.descriptors.size();
    waiting_bytes_ += mail.payload.size();
    backlog_.push_back(std::move(mail));
    return Status::not_done;
}

Status Client::flush() {
    while (!backlog_.empty()) {
        const Status s = send_now(backlog_.front());
        if (s == Status::out_of_resources) return Status::not_done;
        if (s != Status::ok) return s;
        waiting_descriptors_ -= backlog_.front().descriptors.size();
        waiting_bytes_ -= backlog_.front().payload.size();
        ++taken_;
        backlog_.pop_front();
    }
    return Status::ok;
}

bool Client::all_taken() const {
    int bytes = 0;
    return ::ioctl(socket_.get(), SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

std::vector<Fd> Client::give_up_files() {
    std::vector<Fd> files;
    for (Mail& m : backlog_) std::move(m.descriptors.begin(), m.descriptors.end(), std::back_inserter(files));
    backlog_.clear();
    return files;
}

}  // namespace viaduct::kagent
