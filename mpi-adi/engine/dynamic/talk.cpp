// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/engine/dynamic/talk.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace viaduct::mpi {
namespace {

// The introductions of some hundred thousand processes.
constexpr uint64_t kLongestText = uint64_t{1} << 28;

enum class SwapStep { moved, nothing, ended };

SwapStep step_of(ssize_t moved) {
    if (moved > 0) return SwapStep::moved;
    const bool later = moved < 0 && (errno == EAGAIN || errno == EINTR);
    return later ? SwapStep::nothing : SwapStep::ended;
}

// Both directions at once: two long texts fill what lies between.
class TextSwap {
public:
    TextSwap(int socket, const std::string& mine, std::string* theirs) : socket_(socket), theirs_(theirs) {
        const uint64_t length = mine.size();
        out_.assign(reinterpret_cast<const char*>(&length), sizeof length);
        out_ += mine;
        theirs_->clear();
    }
    // Whether there is nothing more to do.
    bool advance() {
        while (!over() && (send() || receive())) {
        }
        return over();
    }
    bool good() const { return !failed_; }

private:
    bool over() const { return failed_ || (sent_ == out_.size() && whole_); }

    bool note(SwapStep step) {
        failed_ = failed_ || step == SwapStep::ended;
        return step == SwapStep::moved;
    }
    bool send() {
        if (sent_ == out_.size()) return false;
        const ssize_t n = ::send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) sent_ += size_t(n);
        return note(step_of(n));
    }
    // Never more than belongs to the text: what follows is another one's.
    bool receive() {
        if (whole_) return false;
        char piece[4096];
        const size_t wanted = head_ < sizeof length_ ? sizeof length_ - head_
                                                     : std::min(sizeof piece, size_t(length_ - theirs_->size()));
        const ssize_t n = ::recv(socket_, piece, wanted, MSG_DONTWAIT);
        if (n > 0 && head_ < sizeof length_) {
            std::memcpy(reinterpret_cast<char*>(&length_) + head_, piece, size_t(n));
            head_ += size_t(n);
        } else if (n > 0) {
            theirs_->append(piece, size_t(n));
        }
        if (head_ == sizeof length_) {
            failed_ = failed_ || length_ > kLongestText;
            whole_ = theirs_->size() == length_;
        }
        return note(step_of(n));
    }

    int socket_;
    std::string out_;
    size_t sent_ = 0;
    std::string* theirs_;
    uint64_t length_ = 0;
    size_t head_ = 0;  // bytes of the length that are here
    bool whole_ = false;
    bool failed_ = false;
};

}  // namespace

bool swap_texts(int socket, const std::string& mine, std::string* theirs) {
    TextSwap exchange(socket, mine, theirs);
    wait_for_socket([&] { return exchange.advance(); });
    return exchange.good();
}

}  // namespace viaduct::mpi
