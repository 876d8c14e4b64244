// SPDX-License-Identifier: BSD-2-Clause
// Before a collective call each member tells each other one, in a message, what it calls (signature.hpp). The messages
// go by the channel of collective calls, with the tag of the call and a bit that no other tag has. So calls meet that
// were made as the n-th of their communicator, whatever they are.
#include <cstring>
#include <memory>
#include <utility>

#include "mpi-adi/engine/awaited.hpp"
#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/check/signature.hpp"
#include "mpi-adi/engine/coll/schedule.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/request.hpp"

namespace viaduct::mpi::checking {
namespace {

constexpr int kTagBit = 0x40000000;
static_assert(kTagBit > kMaxOwnTag + kPartTags);

// One call: messages to and from all other members.
class Meeting {
public:
    Meeting(Communicator& comm, int tag, const char* function, bool waits, Description own)
        : comm_(comm), function_(plain_name(function)), own_(std::move(own)),
          theirs_(static_cast<size_t>(comm.remote_size)), ours_(theirs_.size()), receives_(theirs_.size()) {
        comm_retain(comm_);
        for (int peer = 0; peer < comm.remote_size; peer++) {
            if (!comm.inter && peer == comm.rank) continue;
            const auto i = static_cast<size_t>(peer);
            ours_[i] = signature_for(peer, function_, waits, own_);
            receives_[i] = irecv_bytes(comm, Channel::collective, peer, tag | kTagBit, &theirs_[i], sizeof theirs_[i]);
            sends_.push_back(isend(comm, Channel::collective, peer, tag | kTagBit,
                                   {&ours_[i], sizeof ours_[i], nullptr, 0}));
        }
    }
    ~Meeting() { comm_release(comm_); }
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    // Polls without waiting. Ends the job when a call does not fit; a message that is missing because its process is
    // lost is ignored.
    bool is_over() {
        bool over = true;
        for (size_t i = 0; i < receives_.size(); i++) {
            if (receives_[i] == nullptr) continue;
            if (!done(receives_[i])) {
                over = false;
                continue;
            }
            if (finish(std::exchange(receives_[i], nullptr)) != MPI_SUCCESS) continue;
            const std::string wrong = difference(comm_, function_, own_, static_cast<int>(i), theirs_[i]);
            if (!wrong.empty()) end_job(MPI_ERR_OTHER, "CMPI_CHECK: %s", wrong.c_str());
        }
        while (!sends_.empty() && done(sends_.back())) {
            (void)finish(sends_.back());  // a lost process needs no message
            sends_.pop_back();
        }
        return over && sends_.empty();
    }

    void add_awaited(Awaited& what) const {
        for (const Request* receive : receives_)
            if (receive != nullptr) mpi::add_awaited(*receive, what);
    }

    // A member that has not come here, and waits in a collective call of another communicator for this process, which
    // waits here: neither can go on.
    void look_elsewhere() const {
        if (EngineLock::enabled() || comm_.inter) return;
        for_each_comm([this](Communicator& other) {
            if (&other == &comm_ || other.inter) return;
            for (int rank = 0; rank < other.size; rank++) look_at(other, rank);
        });
    }

private:
    void look_at(Communicator& other, int rank) const {
        const Unexpected* const message = other.matchers[static_cast<unsigned>(Channel::collective)]->find(
            rank, other.collective_tag | kTagBit);
        if (message == nullptr || message->um_buf == nullptr ||
            message->um_env.ev_len != static_cast<int64_t>(sizeof(Signature)))
            return;
        Signature theirs;
        std::memcpy(&theirs, message->um_buf, sizeof theirs);
        if (theirs.waits == 0) return;
        for (size_t i = 0; i < receives_.size(); i++)
            if (receives_[i] != nullptr && comm_.peers[i] == other.peers[rank])
                end_job(MPI_ERR_OTHER,
                        "CMPI_CHECK: this process calls %s on %s, and %s calls %.40s on %s: each waits for the other "
                        "one. Members of two communicators make the calls on both in the same order",
                        function_.c_str(), text_of_comm(comm_).c_str(),
                        text_of_rank(comm_, static_cast<int>(i)).c_str(), theirs.function, text_of_comm(other).c_str());
    }

    Communicator& comm_;
    const std::string function_;
    const Description own_;
    std::vector<Signature> theirs_;
    std::vector<Signature> ours_;
    std::vector<Request*> receives_;  // by rank; null: none, or done
    std::vector<Request*> sends_;
};

class MeetFirst final : public Activity {
public:
    MeetFirst(Schedule& s, const char* function, Activity* then)
        : then_(then), meeting_(std::make_unique<Meeting>(s.comm(), s.tag(), function, false, description_of(s))) {}

    bool advance(int* error) override {
        if (meeting_ != nullptr) {
            if (!meeting_->is_over()) return false;
            meeting_.reset();
        }
        return then_->advance(error);
    }
    void add_awaited(Awaited& what) const override {
        meeting_ != nullptr ? meeting_->add_awaited(what) : then_->add_awaited(what);
    }

private:
    const std::unique_ptr<Activity> then_;
    std::unique_ptr<Meeting> meeting_;
};

void meet_now(Communicator& comm, int tag, const char* function, Description own) {
    Meeting meeting(comm, tag, function, !EngineLock::enabled(), std::move(own));
    progress_until_one(
        [&] {
            if (meeting.is_over()) return true;
            meeting.look_elsewhere();
            return false;
        },
        [&](Awaited& what) { meeting.add_awaited(what); });
}

}  // namespace

void meet(Schedule& s, const char* function) { meet_now(s.comm(), s.tag(), function, description_of(s)); }

Activity* meet_first(Schedule& s, const char* function, Activity* then) { return new MeetFirst(s, function, then); }

void meet_by_name(Communicator& comm, const char* function) { meet_now(comm, comm.collective_tag, function, {}); }

}  // namespace viaduct::mpi::checking
